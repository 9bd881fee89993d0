"""Noise on sums over rows, against lists of all databases and against known values."""

import itertools
import math

import numpy as np
import pytest

import fastpriv as fp
from fastpriv.mechanisms import SumQuery, gaussian_query_capacity, laplace_query_capacity
from fastpriv.mechanisms.noisy_query import laplace_query_leakage
from fastpriv.mechanisms.sum_query import chain_menu, menu

CAPACITIES = {"gaussian": gaussian_query_capacity, "laplace": laplace_query_capacity}


def listed(scores):
    """The answer of every database, and the space."""
    tables = [np.asarray(s, dtype=float).reshape(len(s), -1) for s in scores]
    answers = [sum(parts) for parts in itertools.product(*tables)]
    return np.array(answers), [len(t) for t in tables]


SCORES = {
    "count": [[0, 1]] * 4,
    "sum": [[0, 1, 2.5]] * 3,
    "mixed": [[0, 1], [0.3, 2.0, 1.1], [0, 1]],
    "signs": [[-2.0, 1.0, 3.0], [1.0, -1.0]],
}
VECTORS = {
    "histogram": [np.eye(3)] * 3,
    "bits": [np.eye(2)] * 4,
    "plane": [[[0, 0], [1, 0], [0, 2]], [[0, 1], [1, 1]]],
}


@pytest.mark.parametrize("priors", ["all", "independent"])
@pytest.mark.parametrize("noise", [0.4, 1.0, 3.0])
@pytest.mark.parametrize("kind", CAPACITIES)
@pytest.mark.parametrize("name", SCORES)
def test_sums_agree_with_lists(name, kind, noise, priors):
    """The same bracket as from a list of all answers, and adversaries who exist."""
    scores = SCORES[name]
    values, sizes = listed(scores)
    plain = CAPACITIES[kind](values[:, 0], noise, sizes, priors=priors)
    told = CAPACITIES[kind](SumQuery(scores), noise, priors=priors)
    assert told.lower == pytest.approx(plain.lower, rel=1e-8)
    assert told.upper == pytest.approx(plain.upper, rel=1e-8)
    who, space = told.adversary, fp.Space(sizes)
    (i,) = who.rows
    assert who.databases[:, i].tolist() == list(range(sizes[i]))
    reached = values[space.index(who.databases)]
    single = CAPACITIES[kind](reached[:, 0], noise, [sizes[i]])
    assert single.upper >= told.lower
    if priors == "independent":
        assert (np.delete(who.databases, i, axis=1) == np.delete(who.databases[0], i)).all()


@pytest.mark.parametrize("priors", ["all", "independent"])
@pytest.mark.parametrize("noise", [1.5, 3.0])
@pytest.mark.parametrize("name", VECTORS)
def test_vectors_agree_with_lists(name, noise, priors):
    scores = VECTORS[name]
    values, sizes = listed(scores)
    plain = gaussian_query_capacity(values, noise, sizes, priors=priors, gap=1e-6)
    told = gaussian_query_capacity(SumQuery(scores), noise, priors=priors, gap=1e-6)
    assert told.lower <= plain.upper
    assert plain.lower <= told.upper
    assert told.width <= plain.width + 1e-6


def test_a_million_rows():
    """Bits by the two answers furthest apart; ratings and histograms in brackets."""
    n = 10**6
    far = fp.mechanisms.GaussianChannel(1.0, 1.0).capacity(2)  # n/2 = sigma
    count = gaussian_query_capacity(SumQuery.count(n), n / 2)
    assert count.midpoint == pytest.approx(far.midpoint, rel=1e-9)
    alone = gaussian_query_capacity(SumQuery.count(n), 1.0, priors="independent")
    assert alone.midpoint == pytest.approx(
        gaussian_query_capacity([0, 1], 1.0, [2]).midpoint, rel=1e-9
    )
    ratings = SumQuery([[0, 1, 2]] * n)
    told = gaussian_query_capacity(ratings, n / 2)
    best = fp.mechanisms.GaussianChannel(2.0, 1.0).capacity(3)  # anywhere within the range
    assert best.lower - 1e-4 <= told.lower <= told.upper <= best.upper + 1e-12
    assert told.width < 1e-6
    blurred = laplace_query_capacity(ratings, n, gap=1e-3, time_limit=None)
    assert blurred.width < 0.05 * blurred.lower
    assert set(np.unique(blurred.adversary.databases[:, 1:])) <= {0, 2}
    sharp = gaussian_query_capacity(SumQuery.histogram(n, 10), 1000.0)
    assert sharp.lower == pytest.approx(math.log(10), abs=1e-12)
    near = gaussian_query_capacity(SumQuery.histogram(n, 10), 3e5)
    assert 1.5 < near.lower <= near.upper <= math.log(10) * (1 + 1e-12)


def test_menus():
    """All types, or some of them; chains go from the least sum to the largest."""
    tables = [np.array([[0.0], [1.0], [5.0]]), np.array([[0.0], [2.0]])]
    whole = menu(tables, [3, 2], 3)
    assert whole.complete
    sums = {sum(c) for c in itertools.product(*[(0, 1, 5)] * 3, *[(0, 2)] * 2)}
    assert set(whole.points[:, 0]) == sums
    some = menu(tables, [30, 20], 4)
    assert not some.complete
    chain = chain_menu(tables, [30, 20], 8)
    for part in (some, chain):
        assert (part.types[:, :3].sum(axis=1) == 30).all()
        assert (part.types[:, 3:].sum(axis=1) == 20).all()
        assert part.points[:, 0].min() == 0.0
        assert part.points[:, 0].max() == 190.0
        assert np.allclose(part.points, part.types @ np.concatenate(tables))


def test_laplace_leakage_of_sums():
    assert laplace_query_leakage(SumQuery.count(10), 1.0) == laplace_query_leakage(range(11), 1.0)
    values, _ = listed(SCORES["mixed"])
    assert laplace_query_leakage(SumQuery(SCORES["mixed"]), 0.7) == pytest.approx(
        laplace_query_leakage(values, 0.7), rel=1e-12
    )
    with pytest.raises(fp.TooLarge, match="types of rows"):
        laplace_query_leakage(SumQuery([[0, 1, 2]] * 10**6), 1.0)


def test_bad_sums_are_refused():
    count = SumQuery.count(3)
    for call, words in (
        (lambda: SumQuery([]), "one item per row"),
        (lambda: SumQuery([[0, math.nan]]), "NaN"),
        (lambda: SumQuery([["a"]]), "real numbers"),
        (lambda: SumQuery([[0, 1], np.eye(2)]), "one length"),
        (lambda: SumQuery.count(0), "n"),
        (lambda: gaussian_query_capacity(count, 1.0, [2, 2, 2]), "none for a SumQuery"),
        (lambda: gaussian_query_capacity([0, 1], 1.0), "space of a list"),
        (lambda: gaussian_query_capacity(count, 0.0), "above 0"),
        (lambda: gaussian_query_capacity(count, [1.0, 2.0]), "sigma must be one number"),
        (lambda: laplace_query_capacity(SumQuery.histogram(3, 2), 1.0), "sum of numbers"),
        (lambda: laplace_query_leakage(SumQuery.histogram(3, 2), 1.0), "sum of numbers"),
        (lambda: gaussian_query_capacity(SumQuery([[0, 1e300]]), 1e-9), "more noise"),
    ):
        with pytest.raises(fp.InvalidInput, match=words):
            call()
    many = [np.array([[0.0, 0.0], [k, 1.0]]) for k in range(1, 30)]
    with pytest.raises(fp.TooLarge, match="kinds of rows"):
        gaussian_query_capacity(SumQuery(many), 1.0)
    assert gaussian_query_capacity(SumQuery([[4.0]] * 5), 1.0).upper == 0.0
