"""The largest gain of one output, and bad input."""

import itertools
import math

import numpy as np
import pytest

import fastpriv as fp
import oracles as o
from cases import kernel, law
from oracles import pointwise as op


@pytest.mark.slow(only=["0", "1", "2", "3"])
@pytest.mark.parametrize("seed", range(4))
def test_max_individual_capacity(seed):
    rng = np.random.default_rng(seed)
    sizes = (2, 3)
    matrix = kernel(rng, 6, 4)
    mechanism = fp.Channel(matrix, sizes)
    every = fp.max_individual_capacity(mechanism)
    alone = fp.max_individual_capacity(mechanism, "independent")
    assert alone == fp.dp_level(mechanism)
    assert every == fp.leakage_capacity(mechanism)
    best_alone = best = 0.0
    for x, other in itertools.permutations(range(6), 2):
        first, second = (np.array(o.databases(sizes)[j]) for j in (x, other))
        for i in np.flatnonzero(first != second):
            pmf = np.full(6, 0.0)
            pmf[x], pmf[other] = 1e-9, 1 - 1e-9  # almost certainly the other database
            best = max(best, max(op.row_pml(matrix, pmf, sizes, i)))
            if (first != second).sum() == 1:  # rows stay independent
                best_alone = max(best_alone, max(op.row_pml(matrix, pmf, sizes, i)))
    assert best == pytest.approx(every, rel=1e-6)
    assert best_alone == pytest.approx(alone, rel=1e-6)
    for _ in range(200):  # Theorem 1: no independent prior gains more than the DP level
        pmf = np.multiply.outer(law(rng, 2, 0.0), law(rng, 3, 0.0)).reshape(-1)
        assert max(max(op.row_pml(matrix, pmf, sizes, i)) for i in (0, 1)) <= alone
        pmf = law(rng, 6, 0.0) ** 4
        assert max(max(op.row_pml(matrix, pmf / pmf.sum(), sizes, i)) for i in (0, 1)) <= every


def test_max_individual_capacity_bounds_the_average():
    mechanism = fp.Channel(kernel(np.random.default_rng(6), 8, 4), [2] * 3)
    assert fp.individual_capacity(mechanism).lower <= fp.max_individual_capacity(mechanism)
    assert fp.max_individual_capacity([[0.5, 0.5], [1.0, 0.0]]) == math.inf


def test_adversaries_read_as_attacks():
    short = fp.individual_capacity(fp.HammingChannel(2, 2, 1.0)).adversary
    assert repr(short).splitlines() == [
        "Adversary against record 0, who expects",
        "  0 0  with probability 0.5",
        "  1 1  with probability 0.5",
    ]
    long = fp.individual_capacity(fp.HammingChannel(10_000, 2, 0.001)).adversary
    assert "1 (10000 times)  with probability 0.5" in repr(long)
    group = fp.group_capacity(fp.HammingChannel(4, 2, 1.0), 4).adversary
    assert "records 0, 1, 2, 3" in repr(group)
    assert "and 8 more" in repr(group)
    ragged = fp.Adversary((0,), np.arange(40)[None] % 7, np.ones(1))
    assert repr(ragged).endswith("6 0 1 ...  with probability 1")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda c: fp.group_capacity(c, 0), "k must be at least 1"),
        (lambda c: fp.group_capacity(c, 3), "at most the number of records 2"),
        (lambda c: fp.group_capacity(c, 1.5), "k must be an integer"),
        (lambda c: fp.individual_capacity(c, gap=-1.0), "gap"),
        (lambda c: fp.individual_capacity(c, time_limit=math.inf), "time_limit"),
        (lambda c: fp.individual_capacity(fp.Uniform(2, 2)), "must be a channel"),
        (lambda c: fp.max_individual_capacity(c, "some"), "all, independent"),
        (lambda c: fp.QueryChannel.count(2, [[1.0]] * 2), "each of 3 counts; got 2"),
        (lambda c: fp.QueryChannel.count(0, [[1.0]]), "n must be at least 1"),
        (lambda c: fp.QueryChannel.sum([[0, 1]] * 2, [[1.0]] * 4), "each of 3 sums; got 4"),
        (lambda c: fp.QueryChannel.sum([[0, 0.5]], [[1.0]] * 2), "integers of at least 0"),
        (lambda c: fp.QueryChannel.sum([[0, -1]], [[1.0]] * 2), "at least 0"),
        (lambda c: fp.QueryChannel.sum([], [[1.0]]), "one item per row"),
        (lambda c: fp.QueryChannel.histogram(2, 3, [[1.0]] * 5), "each of 6 histograms"),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(fp.InvalidInput, match=words):
        call(fp.Channel(np.eye(4), [2, 2]))


def test_too_large_is_said():
    with pytest.raises(fp.TooLarge, match="histograms"):
        fp.QueryChannel.histogram(1000, 5, [[1.0]])
    with pytest.raises(fp.TooLarge, match="matrix"):
        fp.individual_capacity(fp.TiltedChannel(fp.Uniform(40, 2), 1.0))


@pytest.mark.parametrize(("n", "m"), [(30, 2), (30, 3), (2000, 2)])
def test_all_rows_of_e_d_tell_the_sum_of_their_capacities(n, m):
    channel = fp.HammingChannel(n, m, 1.0)
    found, whole = fp.group_capacity(channel, n), fp.channel_capacity(channel)
    assert found.adversary is None  # whose list of databases would be as long as the space
    assert found.width <= 1e-9 * whole.upper
    assert found.lower <= whole.upper
    assert found.upper >= whole.lower
    part = fp.group_capacity(channel, 20)
    assert part.lower <= part.upper <= found.upper * (1 + 1e-12)


def test_two_data_sets_of_many_rows_with_one_value():
    noise = np.array([[0.9, 0.1], [0.2, 0.8]])
    many = fp.ProductChannel([noise, *[[[1.0]]] * 40, noise])
    both = fp.pair_datasets(many, many)
    few = fp.pair_datasets(fp.ProductChannel([noise] * 2), fp.ProductChannel([noise] * 2))
    assert both.space.n == 42
    assert both.space.sizes[:2] == (4, 1)
    assert (both.matrix() == few.matrix()).all()
