"""A checked ``Channel`` and ``Dense`` prior: kernels at once, the same numbers as plain arrays."""

import math

import numpy as np
import pytest

import fastpriv as fp
from fastpriv._matrices.contraction import contractions, matrix_contraction
from fastpriv._matrices.leakage import matrix_leakages
from fastpriv.measures.inputs import plain_pair
from oracles import levels as o


def pairs():
    """Matrices and priors: random, with zeros, nearly constant, with tiny numbers, of one value."""
    rng = np.random.default_rng(7)
    for rows, outputs in ((1, 3), (2, 2), (3, 7), (5, 4), (8, 8), (13, 6)):
        W, p = rng.dirichlet(np.ones(outputs), rows), rng.dirichlet(np.ones(rows))
        yield W, p
        yield np.where(W < 0.1, 0.0, W) / np.where(W < 0.1, 0.0, W).sum(axis=1, keepdims=True), p
        yield np.full((rows, outputs), 1.0 / outputs) + 1e-9 * (W - W.mean(axis=1)[:, None]), p
        if rows > 1:
            yield W, np.append(0.0, p[1:] / p[1:].sum())
            yield W, np.append(1e-300, p[1:] / p[1:].sum())
            tiny = np.array(W)
            tiny[0, 0] = 1e-310
            tiny[0, 1] += 1.0 - tiny[0].sum()
            yield tiny, p


CASES = list(pairs())
ALONE = [fp.dp_level, fp.strong_dp_level, fp.leakage_capacity, fp.maximal_leakage]
UNDER = [
    fp.mutual_information,
    fp.leakage_factor,
    fp.worst_leakage_factor,
    fp.identifiability_level,
    fp.pml_level,
    fp.pml,
    fp.max_information,
    fp.information_privacy_level,
    fp.posterior_vulnerability,
    fp.g_leakage,
    fp.additive_g_leakage,
]


@pytest.mark.parametrize("measure", ALONE, ids=lambda m: m.__name__)
def test_a_channel_is_its_matrix(measure):
    for W, _ in CASES:
        assert measure(fp.Channel(W)) == measure(np.asarray(W, order="F").tolist())


@pytest.mark.parametrize("measure", UNDER, ids=lambda m: m.__name__)
def test_a_pair_is_its_arrays(measure):
    for W, p in CASES:
        channel, prior = fp.Channel(W), fp.Dense(p)
        assert plain_pair(channel, prior) is not None
        assert plain_pair(W, p) is None
        found, plain = measure(channel, prior), measure(W.tolist(), p.tolist())
        np.testing.assert_allclose(found, plain, rtol=2e-12, atol=1e-300)


@pytest.mark.parametrize(
    "measure", [each for each in UNDER if each is not fp.pml], ids=lambda m: m.__name__
)
def test_a_stack_of_one_is_the_pair(measure):
    for W, p in CASES:
        assert measure(W[None], p)[0] == pytest.approx(
            measure(fp.Channel(W), fp.Dense(p)), rel=2e-12, abs=1e-300
        )


def test_leakages_are_on_the_safe_side():
    for W, p in CASES:
        if p.min() == 0.0 or W.min() == 0.0 or W[0, 0] < 1e-300:
            continue
        q = p @ W
        plain = np.log(W.max(axis=0) / q)
        found = fp.pml(fp.Channel(W), fp.Dense(p))
        assert np.all(found >= plain - 1e-15 * (1.0 + plain))
        np.testing.assert_allclose(found, matrix_leakages(W, p).above, rtol=1e-13, atol=1e-300)


def test_rare_priors_take_the_careful_way():
    prior = fp.Markov([1.0, 0.0], [[1.0 - 1e-200, 1e-200], [0.5, 0.5]], 3).as_dense("a test")
    channel = fp.Channel(np.random.default_rng(0).dirichlet(np.ones(4), 8), [2, 2, 2])
    if prior.logs_if_rare() is not None:
        assert plain_pair(channel, prior) is None
    assert plain_pair(channel, fp.Dense(np.full(8, 0.125))) is None  # another space
    assert fp.pml_level(channel, prior) >= 0.0


def test_priors_on_another_space_are_refused():
    channel, prior = fp.Channel(np.eye(4), [2, 2]), fp.Dense(np.full(4, 0.25))
    for measure in UNDER:
        with pytest.raises(fp.InvalidInput, match="same space"):
            measure(channel, prior)
    with pytest.raises(fp.InvalidInput, match="same space"):
        channel.output(prior)


def test_identifiability_of_several_records_is_over_neighbours():
    rng = np.random.default_rng(3)
    W, p = rng.dirichlet(np.ones(5), 8), rng.dirichlet(np.ones(8))
    channel, prior = fp.Channel(W, [2, 2, 2]), fp.Dense(p, [2, 2, 2])
    truth = o.identifiability_level(W.tolist(), p.tolist(), [2, 2, 2])
    assert fp.identifiability_level(channel, prior) == pytest.approx(truth, rel=1e-12)
    assert fp.dp_level(channel) == pytest.approx(o.dp_level(W.tolist(), [2, 2, 2]), rel=1e-12)


def test_contraction_of_few_rows_is_that_of_listed_pairs():
    for W, _ in CASES:
        rows = np.unique(W, axis=0)
        i, j = np.triu_indices(len(rows), 1)
        low, high = contractions(rows, i, j)[:2] if len(i) else (0.0, 0.0)
        found = matrix_contraction(W)
        assert found.lower <= high * (1.0 + 1e-13)
        assert found.upper >= low * (1.0 - 1e-13)
        assert found.upper - found.lower <= 1e-13 * found.upper + 1e-300
    assert matrix_contraction(np.full((5, 3), 1.0 / 3.0)) == fp.Bracket(0.0, 0.0)
    assert matrix_contraction(np.eye(3)).upper == 1.0


def test_gains_far_apart_are_checked():
    channel, prior = fp.Channel(np.eye(2)), fp.Dense([0.5, 0.5])
    huge = np.array([[1e100, 0.0], [0.0, 1.0]])
    assert fp.posterior_vulnerability(channel, prior, huge) == pytest.approx(5e99)
    for bad in (math.nan, math.inf, 1e200):
        with pytest.raises(fp.InvalidInput):
            fp.posterior_vulnerability(channel, prior, np.array([[bad, 0.0], [0.0, 1.0]]))


@pytest.mark.parametrize("limit", [-1.0, math.nan, "long", [1.0, 2.0]])
def test_a_time_limit_is_checked_on_every_way(limit):
    W, p = [[0.75, 0.25], [0.25, 0.75]], [0.5, 0.5]
    for channel, prior in ((W, p), (fp.Channel(W), fp.Dense(p))):
        with pytest.raises(fp.InvalidInput, match="time_limit"):
            fp.pml_level(channel, prior, time_limit=limit)
    assert fp.pml_level(fp.Channel(W), fp.Dense(p), time_limit=1e3) == fp.pml_level(W, p)
