"""Thresholds of priors with databases rarer than 5e-324."""

import numpy as np
import pytest
from mpmath import mp, workdps

import fastpriv as fp
import oracles as o
from oracles.priors import unmix

DIGITS = 2000


def chain(initial, transition, n):
    with workdps(DIGITS):
        law = o.normal(initial), [o.normal(row) for row in transition]
        return fp.Markov(initial, transition, n), o.markov_pmf(*law, n)


def bits(weights):
    with workdps(DIGITS):
        return fp.Exchangeable(weights), o.exchangeable_pmf(o.normal(weights), len(weights) - 1)


CASES = {
    "chain": lambda: chain([1e-300, 1.0], [[0.5, 0.5], [1e-300, 1.0]], 3),
    "back": lambda: chain([1e-16, 1.0], [[2 / 3, 1 / 3], [1.0, 1e-300]], 3),
    "denormal": lambda: chain([0.5, 0.5], [[1e-318, 1.0], [0.3, 0.7]], 3),
    "bits": lambda: bits([1.0 - 8e-9, 1e-300, 8e-9]),
    "rare bits": lambda: bits([1.0, 1e-310, 3e-320]),
}


@pytest.mark.parametrize("name", CASES)
def test_thresholds(name):
    prior, pmf = CASES[name]()
    sizes = prior.space.sizes
    with workdps(DIGITS):
        spread, hat = o.epsilon_x(pmf, sizes), o.epsilon_hat(pmf, sizes)
        for found, truth in ((prior.epsilon_x(), spread), (prior.epsilon_hat(), hat)):
            assert truth <= found <= truth * (1 + mp.mpf(10) ** -12)
        assert spread * (1 - mp.mpf(10) ** -12) <= prior.epsilon_x_lower() <= spread
        tilde = mp.mpf(prior.epsilon_tilde())
        above, below = (
            unmix(pmf, sizes, mp.exp(-tilde * (1 + sign * mp.mpf(10) ** -12))) for sign in (1, -1)
        )
        assert min(above) > 0
        assert min(below) < 0


def test_a_law_of_outputs_beyond_doubles():
    """The outputs of E_d of a rare chain: their law is known by logarithms."""
    prior, pmf = chain([1e-200, 1.0], [[0.5, 0.5], [1e-200, 1.0]], 2)
    output = fp.HammingChannel(2, 2, 500.0).output(prior)
    with workdps(DIGITS):
        W = o.e_d_matrix([2, 2], 500.0)
        law = [
            sum(p * w for p, w in zip(pmf, column, strict=True)) for column in zip(*W, strict=True)
        ]
        truth = o.epsilon_hat(law, [2, 2])
        assert truth <= output.epsilon_hat() <= truth * (1 + mp.mpf(10) ** -12)
        assert output.as_dense("it").epsilon_x_lower() <= o.epsilon_x(law, [2, 2])


@pytest.mark.parametrize(
    ("law", "epsilon"),
    [
        (fp.Exchangeable([0.9999999918920245, 1e-300, 8e-09]), 745.0),
        (fp.Dense([1e-300, 0.5, 0.5, 1e-200], [2, 2]), 700.0),
        (fp.Product([[1.0, 1e-300], [0.5, 0.5]]), 745.0),
    ],
    ids=["exchangeable", "dense", "product"],
)
def test_distortion_where_weights_lose_their_digits(law, epsilon):
    """e^-745 is a denormal: a weight beside 1e-300 has all its digits all the same."""
    prior = fp.Dense([0.4, 0.3, 0.2, 0.1], [2, 2])
    with workdps(DIGITS):
        if isinstance(law, fp.Product):
            q = o.product_pmf([o.normal(row) for row in law.marginals])
        elif isinstance(law, fp.Exchangeable):
            q = o.exchangeable_pmf(o.normal(law.weights), 2)
        else:
            q = o.normal(law.pmf())
        truth = o.distortion(o.tilted_matrix(q, [2, 2], epsilon), o.normal(prior.pmf()), [2, 2])
        found = fp.distortion(fp.TiltedChannel(law, epsilon), prior)
        assert abs(found / truth - 1) < 1e-13


def test_long_rare_bits_are_bounded_from_above():
    """Types rarer than a double, too many databases for a list: the closed bound."""
    prior = fp.Exchangeable.beta_binomial(2000, 3000.0, 3000.0)
    bound = np.log(2000 / np.log(2.0) + 1.0) + prior.epsilon_x()
    assert prior.epsilon_hat() <= prior.epsilon_tilde() <= bound * (1.0 + 1e-12)
