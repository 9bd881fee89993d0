"""Fano's bound on the error of a guess, and the leakage factor it takes."""

import math

import numpy as np
import pytest

import fastpriv as fp
import oracles as o


def fano(p, values):
    """Return h(p) + p ln(values - 1), in nats."""
    return o.entropy([p, 1 - p]) + p * o.log(values - 1)


@pytest.mark.parametrize(
    "prior",
    [[0.3, 0.7], [0.5, 0.3, 0.2], [0.4, 0.3, 0.2, 0.1], [0.5, 0.0, 0.3, 0.2], [0.05] * 20],
)
@pytest.mark.parametrize("factor", [0.0, 0.1, 0.37, 0.9, 0.999999])
def test_the_error_bound_solves_fanos_inequality_rounded_down(prior, factor):
    found = fp.error_probability_bound(factor, prior)
    law = [o.num(p) for p in prior if p > 0.0]
    nats = (1 - o.num(factor)) * o.entropy([p / sum(law) for p in law])
    values = len(law)
    assert fano(o.num(found), values) <= nats
    more = o.num(found) * (1 + o.mpf(10) ** -10)
    at_the_end = more >= 1 - o.mpf(1) / values
    assert at_the_end or fano(more, values) > nats * (1 - o.mpf(10) ** -12)
    # Proposition 1 as printed is weaker.
    if values > 2:
        assert found >= (nats / o.log(2) - 1) / (o.log(values - 1) / o.log(2)) - o.mpf(10) ** -12


def test_the_full_form_is_better():
    found = fp.error_probability_bound(0.1, [0.5, 0.3, 0.2])
    weak = 0.9 * fp.Dense([0.5, 0.3, 0.2]).entropy() / math.log(2) - 1
    assert (round(found, 3), round(weak, 3)) == (0.379, 0.337)
    assert fp.error_probability_bound(0.0, [0.5, 0.5]) == pytest.approx(0.5, abs=1e-5)


@pytest.mark.parametrize("seed", range(10))
def test_no_guess_is_wrong_less_often(seed):
    rng = np.random.default_rng(seed)
    size = 2 + seed % 4
    prior, W = rng.dirichlet(np.ones(size)), rng.dirichlet(np.full(3, 0.5), size)
    error = 1 - (prior[:, None] * W).max(axis=0).sum()  # of the best guess
    assert fp.error_probability_bound(fp.leakage_factor(W, prior), prior) <= error + 1e-12


def test_error_bounds_at_the_ends():
    for prior in ([1.0], [1.0, 0.0], [0.5, 0.5], [0.25] * 4, fp.Uniform(1000, 2)):
        assert fp.error_probability_bound(1.0, prior) == 0.0
    assert fp.error_probability_bound(0.0, [1.0, 0.0, 0.0]) == 0.0
    assert fp.error_probability_bound(0.0, [0.5, 0.5, 0.0]) > 0.49
    assert fp.error_probability_bound(0.0, fp.Uniform(1000, 2)) == pytest.approx(1.0, abs=1e-9)
    assert 0.66 <= fp.error_probability_bound(0.0, [1 / 3] * 3) <= 2 / 3
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


def entropy(p):
    return -(p * math.log(p) + (1 - p) * math.log1p(-p))


def test_fano_for_priors_over_more_databases_than_a_double_can_count():
    for n in (1023, 1024, 10**6):
        bound = fp.error_probability_bound(0.3, fp.Uniform(n, 2))
        # h2(P_e) + P_e n >= 0.7 n bits, up to log2(1 - 2^-n).
        assert bound == pytest.approx(0.7 - entropy(bound) / math.log(2) / n, rel=1e-9)
    assert fp.error_probability_bound(0.3, fp.Dense([0.5, 0.5, 0.0])) > 0.18
