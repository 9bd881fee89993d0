"""Noise on sums over rows, against lists of all databases and against known values."""

import itertools
import math

import numpy as np
import pytest

import fastpriv as fp
from fastpriv.mechanisms import (
    SumQuery,
    gaussian_query_capacity,
    laplace_query_capacity,
    noisy_sums,
)
from fastpriv.mechanisms.noisy_query import laplace_query_leakage
from fastpriv.mechanisms.noisy_sums import chain_menu, menu

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


@pytest.mark.slow(
    but=[
        "count-gaussian-0.4-all",
        "count-gaussian-1.0-independent",
        "count-laplace-0.4-all",
        "count-laplace-0.4-independent",
        "sum-gaussian-3.0-independent",
        "mixed-gaussian-1.0-independent",
        "mixed-gaussian-3.0-all",
        "signs-gaussian-3.0-independent",
    ]
)
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


@pytest.mark.slow(
    but=[
        "histogram-3.0-independent",
        "bits-1.5-independent",
        "bits-3.0-all",
        "plane-1.5-independent",
    ]
)
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


@pytest.mark.slow
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
        (lambda: gaussian_query_capacity(count, 1.0, [2, 2, 2]), "left out with a SumQuery"),
        (lambda: gaussian_query_capacity([0, 1], 1.0), "with a list"),
        (lambda: gaussian_query_capacity(count, 0.0), "above 0"),
        (lambda: gaussian_query_capacity(count, [1.0, 2.0]), "one number for answers that are"),
        (lambda: gaussian_query_capacity(SumQuery.histogram(2, 3), [1.0, 2.0]), "or 3 of them"),
        (lambda: gaussian_query_capacity(count, True), "sigma must be a number"),
        (lambda: gaussian_query_capacity([0, 1], [True], [2]), "sigma must be a number"),
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


def clusters(kind, gaps):
    """Capacity of pairs of answers at some gaps, the pairs far from each other: a sum of channels.

    Given which pair an output belongs to, C = ln sum of e^C_j (Shannon 1948).
    """
    pairs = [CAPACITIES[kind]([0.0, g], 1.0, [2]).midpoint if g else 0.0 for g in gaps]
    return math.log(math.fsum(math.exp(c) for c in pairs))


@pytest.mark.parametrize("kind", CAPACITIES)
@pytest.mark.parametrize("far", [1e6, 2.0**53, 1e17, 1e60])
def test_answers_that_doubles_do_not_tell_apart(kind, far):
    """Behind a large score of another row, the scores 0 .. 3 still differ."""
    query = SumQuery([[0, 1, 2, 3], [0, far]])
    told = CAPACITIES[kind](query, 1.0, time_limit=None)
    truth = clusters(kind, [3.0, 1.0])  # 0 and 3 here, far + 1 and far + 2 there
    assert told.lower <= truth + 1e-9
    assert told.upper >= truth - 1e-9
    if far == 1e6:
        assert told.width < 1e-5


@pytest.mark.parametrize("shift", range(0, 16, 2))
@pytest.mark.parametrize("kind", CAPACITIES)
def test_gaps_far_from_the_least_answer(kind, shift):
    """Answers over the noise are rounded, by as much as a gap where they are large."""
    values = [0.0, 4.0, 2.0**53 + shift, 2.0**53 + shift + 2.0]
    told = CAPACITIES[kind](values, 3.0, [4])
    truth = clusters(kind, [4.0 / 3.0, 2.0 / 3.0])
    assert told.lower - 1e-9 <= truth <= told.upper + 1e-9


@pytest.mark.parametrize("scale", [1e3, 1e20])
def test_directions_that_look_flat(scale):
    """A short direction beside a long one is seen through the same noise."""
    points = np.array([[0.0, 0.0], [scale, 0.0], [scale, 5.0]])
    truth = clusters("gaussian", [0.0, 5.0])
    for told in (
        gaussian_query_capacity(points, 1.0, [3]),
        gaussian_query_capacity(SumQuery([points]), 1.0),
    ):
        assert told.lower - 1e-9 <= truth <= told.upper + 1e-9


@pytest.mark.parametrize(
    ("scores", "scale"),
    [
        ([[1e17, 0], [1, 0]], 1.0),
        ([[2.0**53, 0], [1, 0]], 0.25),
        ([[1e9, 0], [1e-8, 0]], 1e-9),
        ([[0, 0.1], [0, 0.2], [0, 0.3]], 1e-17),
        ([[0, 0.1, 1e300]] * 3 + [[0, 3e-320]], 1e-320),
        ([[0, 1e308]] * 5, 1.0),
        ([[0, 1e308]] * 5, 1e308),
        ([[-1e308, 1e308]] * 2 + [[0, 5e-324]], 5e-324),
    ],
)
def test_leakage_of_exact_sums(scores, scale):
    """Answers are exact sums, however much the scores differ in size."""
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workprec(2300):
        answers = {mpmath.mpf(0)}
        for row in scores:
            answers = {x + mpmath.mpf(v) for x in answers for v in row}
        places = sorted(answers)
        gaps = [(v - u) / (2 * mpmath.mpf(scale)) for u, v in itertools.pairwise(places)]
        truth = mpmath.log(1 + mpmath.fsum(1 - mpmath.exp(-g) if g < 3000 else 1 for g in gaps))
        told = laplace_query_leakage(SumQuery(scores), scale)
        assert truth <= told <= truth * (1 + mpmath.mpf(10) ** -14)


def test_whole_numbers_that_are_no_doubles_are_refused():
    """2^53 + 1 would become 2^53, and two answers one."""
    odd = 2**53 + 1
    for call in (
        lambda: laplace_query_leakage([2**53, odd], 1.0),
        lambda: SumQuery([[2**53, odd]]),
        lambda: gaussian_query_capacity([2**53, odd], 1.0, [2]),
        lambda: laplace_query_leakage([10**30, 10**30 + 1], 1.0),
    ):
        with pytest.raises(fp.InvalidInput, match="that a double represents"):
            call()
    assert laplace_query_leakage([2**60, 2**60 + 2**9], 1.0) == pytest.approx(math.log(2.0))


@pytest.mark.slow
def test_a_time_limit_holds_from_the_start(monkeypatch):
    """Without time the answer is what needs no search; a million people in a thousand groups."""
    told = gaussian_query_capacity(SumQuery.histogram(10**6, 1000), 100.0, time_limit=1.0)
    assert told.lower - 1e-9 <= math.log(1000.0) <= told.upper
    assert told.width < 1e-6
    assert told.adversary is None  # a thousand databases of a million rows

    def searched(*_):
        raise AssertionError("there is no time to search")

    monkeypatch.setattr(noisy_sums, "best_selection", searched)
    known = gaussian_query_capacity(SumQuery.histogram(500, 3), 100.0, time_limit=0.0)
    assert 1.0 < known.lower < known.upper <= math.log(3.0) * (1.0 + 1e-12)
    with pytest.raises(AssertionError, match="no time"):
        gaussian_query_capacity(SumQuery.histogram(500, 3), 100.0, time_limit=None)


def test_furthest_answers_of_vectors():
    """Bounds on the furthest pair from lengths of differences, against all pairs of databases."""
    rng = np.random.default_rng(7)
    for _ in range(20):
        scores = [rng.normal(size=(3, 2)).round(2)] * 3 + [rng.normal(size=(2, 2)).round(2)] * 2
        values, sizes = listed(scores)
        rows = np.array([*itertools.product(*map(range, sizes))])
        apart = np.linalg.norm(values[:, None] - values, axis=2)
        differs = (rows[:, None] != rows)[:, :, [0, 3]].any(axis=2)  # a row of either kind
        far = gaussian_query_capacity([0.0, apart[differs].max()], 100.0, [2])
        told = gaussian_query_capacity(SumQuery(scores), 100.0, time_limit=0.0)
        assert told.lower == pytest.approx(far.lower, rel=1e-9)


def test_answers_closer_than_doubles_can_tell():
    """The truth is positive, however much the noise: zero is for constants alone."""
    for query in (SumQuery.count(10), SumQuery([[0, 1, 2]] * 4), SumQuery.histogram(3, 3)):
        for noise in (1e165, 1e200, 1e308):
            told = gaussian_query_capacity(query, noise)
            assert 0.0 <= told.lower < told.upper < 1e-300
    tiny = SumQuery([[0.0, 1e-300], [0.0, 0.0]])
    for kind in CAPACITIES:
        assert CAPACITIES[kind](tiny, 1e200).upper > 0.0
        assert CAPACITIES[kind](tiny, 1e200, priors="independent").upper > 0.0
        assert CAPACITIES[kind]([0.0, 1e-300], 1e200, [2]).upper > 0.0
        assert CAPACITIES[kind]([1.0, 1.0], 1e200, [2]).upper == 0.0
        assert CAPACITIES[kind](SumQuery([[1.0, 1.0], [2.0, 2.0]]), 1e200).upper == 0.0
