"""The search for strong data-processing constants of three or more inputs."""

import math

import mpmath
import numpy as np
import pytest

import fastpriv as fp
from fastpriv.errors import InvalidInput

HARD = [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.25, 0.05, 0.7]], [0.1, 0.3, 0.6]


def divergences(laws, p):
    """D of each law from p, by plain sums."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(laws > 0.0, laws * np.log(laws / p), 0.0).sum(axis=1)


def sampled(W, p, count, rng):
    """Largest ratio of many laws: spread ones, ones near p, and ones near corners."""
    W, p = np.array(W), np.array(p)
    size = len(p)
    spread = rng.dirichlet(np.full(size, 0.5), count)
    mixed = rng.uniform(0.02, 1.0, (count, 1))
    laws = np.vstack([spread, mixed * spread + (1.0 - mixed) * p, np.eye(size)])
    below = divergences(laws, p)
    kept = below > 1e-5
    return float((divergences(laws @ W, p @ W)[kept] / below[kept]).max())


def ratio(law, W, p):
    """D(rW || pW)/D(r || p) at 40 digits."""
    with mpmath.workdps(40):
        r, p = ([mpmath.mpf(float(v)) for v in law] for law in (law, p))
        r, p = ([v / sum(law) for v in law] for law in (r, p))
        rows = [[mpmath.mpf(float(v)) for v in row] for row in W]
        m, q = ([mpmath.fdot(law, column) for column in zip(*rows, strict=True)] for law in (r, p))

        def apart(a, b):
            return mpmath.fsum(x * mpmath.log(x / y) for x, y in zip(a, b, strict=True) if x > 0)

        return float(apart(m, q) / apart(r, p))


def test_constant_that_local_searches_missed():
    constant = fp.sdpi_constant(*HARD)
    assert constant.lower >= 0.34263079
    assert constant.upper <= constant.lower * (1.0 + 1e-6)
    assert ratio(constant.law, *HARD) == pytest.approx(constant.lower, rel=1e-9)


@pytest.mark.parametrize("size", [3, 4, 5])
@pytest.mark.parametrize("outputs", [2, 3, 4])
def test_random_channels(size, outputs):
    rng = np.random.default_rng(10 * size + outputs)
    W = rng.dirichlet(np.ones(outputs), size)
    p = rng.dirichlet(np.full(size, 2.0))
    constant = fp.sdpi_constant(W, p, time_limit=3600.0)
    assert constant.lower <= constant.upper <= constant.lower * (1.0 + 1e-6)
    assert sampled(W, p, 50_000, rng) <= constant.lower * (1.0 + 1e-9)
    assert ratio(constant.law, W, p) == pytest.approx(constant.lower, rel=1e-6)
    assert fp.maximal_correlation(W, p) ** 2 <= constant.upper * (1.0 + 1e-12)
    assert constant.upper <= fp.contraction_coefficient(W).upper


@pytest.mark.parametrize("seed", range(6))
def test_zeros_and_outputs_of_one_input(seed):
    rng = np.random.default_rng(seed)
    W = rng.dirichlet(np.ones(4), 3) * (rng.random((3, 4)) < 0.6)
    W[:, 0] += 0.1
    W /= W.sum(axis=1, keepdims=True)
    p = rng.dirichlet(np.ones(3))
    constant = fp.sdpi_constant(W, p, time_limit=3600.0)
    best = sampled(W, p, 50_000, rng)
    assert best <= constant.lower * (1.0 + 1e-9) + 1e-15
    assert constant.lower <= constant.upper


@pytest.mark.parametrize("erased", [0.25, 0.9])
def test_erasure_keeps_the_same_share_of_all(erased):
    W = np.hstack([(1.0 - erased) * np.eye(4), np.full((4, 1), erased)])
    constant = fp.sdpi_constant(W, [0.1, 0.2, 0.3, 0.4])
    assert constant.lower == pytest.approx(1.0 - erased, rel=1e-11)
    assert constant.upper == pytest.approx(1.0 - erased, rel=1e-11)


def test_symmetric_channel_of_three():
    """With equal probabilities, laws (t, s, s) are the best; their largest ratio by a fine grid."""
    W = np.full((3, 3), 0.15) + 0.55 * np.eye(3)
    t = np.linspace(0.0, 1.0, 200_001)
    laws = np.stack([t, 0.5 - 0.5 * t, 0.5 - 0.5 * t], axis=1)
    p = np.full(3, 1.0 / 3.0)
    below = divergences(laws, p)
    kept = below > 1e-6
    best = float((divergences(laws @ W, p)[kept] / below[kept]).max())
    constant = fp.sdpi_constant(W, p)
    assert constant.lower == pytest.approx(best, rel=1e-9)
    assert constant.upper <= constant.lower * (1.0 + 1e-6)


def test_limits():
    wide = fp.sdpi_constant(*HARD, time_limit=0.0)
    assert wide.upper == pytest.approx(fp.contraction_coefficient(HARD[0]).upper, rel=1e-12)
    assert wide.lower <= fp.sdpi_constant(*HARD).upper
    loose = fp.sdpi_constant(*HARD, gap=1e-2)
    assert loose.upper <= loose.lower * 1.01
    bounded = fp.sdpi_constant(*HARD, time_limit=None)
    assert bounded == fp.sdpi_constant(*HARD, time_limit=None)
    with pytest.raises(InvalidInput):
        fp.sdpi_constant(*HARD, gap=-1.0)
    with pytest.raises(InvalidInput):
        fp.sdpi_constant(*HARD, time_limit=math.nan)


def test_secret_that_attains_it():
    """A rare S with the law of the constant loses no more than the constant says."""
    W, p = np.array(HARD[0]), np.array(HARD[1])
    constant = fp.sdpi_constant(W, p)
    rare = 1e-6
    joint = np.stack([p - rare * constant.law, rare * constant.law])

    def information(law):
        return fp.mutual_information(law / law.sum(axis=1, keepdims=True), law.sum(axis=1))

    kept = information(joint @ W) / information(joint)
    assert kept == pytest.approx(constant.lower, rel=1e-3)
    assert kept <= constant.upper


def test_rows_that_differ_by_less_than_rounding_still_tell_something():
    channel = fp.HammingChannel(1, 2, 1e-8)
    bracket = fp.sdpi_constant(channel, [1.0, 1e-16])
    assert bracket.lower <= 1.3571702559476617e-18 <= bracket.upper  # in 60 digits


@pytest.mark.parametrize("rare", [1e-300, 5e-324])
def test_two_inputs_too_rare_to_search(rare):
    # The second row's chances times its own prior are none in a double.
    matrix = [[1.0, 0.0, 0.0], [0.0, 1e-300, 1.0]]
    found = fp.sdpi_constant(matrix, [1.0, rare], time_limit=None)
    assert found.upper == 1.0  # of a row that is told apart for certain
    assert 0.0 <= found.lower <= 1.0
    nearly = fp.sdpi_constant([[1.0, rare], [rare, 1.0]], [0.5, 0.5], time_limit=None)
    assert nearly.lower <= 1.0 == nearly.upper
