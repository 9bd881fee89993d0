"""Fano's bound on the error of a guess, and the leakage factor it takes."""

import math

import numpy as np
import pytest

import fastpriv as fp
import oracles as o


def test_the_error_bound_is_the_formula_rounded_down():
    prior = [o.mpf(v) / 100 for v in (40, 30, 20, 10)]
    for factor in (0.0, 0.1, 0.37):
        bits = (1 - o.num(factor)) * o.entropy(prior) / o.log(2)
        truth = max((bits - 1) / (o.log(3) / o.log(2)), 0)
        found = fp.error_probability_bound(factor, [0.4, 0.3, 0.2, 0.1])
        assert truth - 1e-12 <= found <= truth
    for factor in (0.0, 0.2, 0.9, 0.999999):
        found = fp.error_probability_bound(factor, [0.3, 0.7])
        bits = (1 - o.num(factor)) * o.entropy([o.mpf("0.3"), o.mpf("0.7")])
        assert o.entropy([found, 1 - o.num(found)]) <= bits
        more = o.num(found) * (1 + o.mpf(10) ** -10)
        assert o.entropy([more, 1 - more]) > bits * (1 - o.mpf(10) ** -12)
    assert fp.error_probability_bound(0.0, [0.5, 0.5]) == pytest.approx(0.5, abs=1e-5)


def test_error_bounds_at_the_ends():
    for prior in ([1.0], [1.0, 0.0], [0.5, 0.5], [0.25] * 4, fp.Uniform(1000, 2)):
        assert fp.error_probability_bound(1.0, prior) == 0.0
    assert fp.error_probability_bound(0.0, [1.0, 0.0, 0.0]) == 0.0
    assert fp.error_probability_bound(0.0, [0.5, 0.5, 0.0]) > 0.49
    assert fp.error_probability_bound(0.0, fp.Uniform(1000, 2)) == pytest.approx(0.999, abs=1e-9)
    assert 0.0 <= fp.error_probability_bound(0.0, [1 / 3] * 3) <= 2 / 3
    for wrong in (-0.1, 1.1, math.nan, "half", None):
        with pytest.raises(fp.InvalidInput):
            fp.error_probability_bound(wrong, [0.5, 0.5])


def test_leakage_factors():
    assert fp.leakage_factor(np.eye(3), [0.2, 0.3, 0.5]) == pytest.approx(1.0)
    assert fp.leakage_factor([[1.0], [1.0]], [0.5, 0.5]) == 0.0
    assert fp.leakage_factor(np.eye(2), [1.0, 0.0]) == 0.0
    chain = fp.Markov([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], 200)
    part = fp.leakage_factor(fp.HammingChannel(200, 2, 1.0), chain)
    assert 0.0 < part.lower <= part.upper < 1.0


def test_fano_for_priors_over_more_databases_than_a_double_can_count():
    for n in (1023, 1024, 10**6):
        bound = fp.error_probability_bound(0.3, fp.Uniform(n, 2))
        assert bound == pytest.approx(0.7 - 1 / n, rel=1e-9)
    assert fp.error_probability_bound(0.3, fp.Dense([0.5, 0.5, 0.0])) > 0.18
