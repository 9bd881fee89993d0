"""The divergence of two vectors, term by term, against arithmetic with many digits."""

import math

import mpmath
import numpy as np

from fastpriv._core.divergence import divergence, divergence_terms


def test_terms_keep_their_digits():
    rng = np.random.default_rng(3)
    q = 10.0 ** rng.uniform(-250, 0, 400)
    diff = q * rng.uniform(-1.0, 1.0, 400) * 10.0 ** rng.uniform(-18, 0, 400)
    w = q + diff
    terms = divergence_terms(w, q, w - q)
    with mpmath.workdps(60):
        for term, a, b in zip(terms, map(mpmath.mpf, w), map(mpmath.mpf, q), strict=True):
            exact = a * mpmath.log(a / b) - a + b
            assert abs(term - exact) <= 100 * 2.0**-53 * exact


def test_zeros_and_shapes():
    terms = divergence_terms(np.array([[0.0, 1.0], [0.0, 0.5]]), np.array([0.25, 0.5]))
    assert terms.shape == (2, 2)
    assert terms[0, 0] == 0.25
    assert terms[1, 1] == 0.0
    assert divergence(np.array([0.5, 0.5]), np.array([0.0, 1.0])) == math.inf
    assert divergence_terms(np.zeros(1), np.zeros(1)) == 0.0
