"""Bounds on capacities by the affinities of pairs of rows, against laws and channels drawn."""

import itertools
import math

import numpy as np
import pytest

import fastpriv as fp
from fastpriv._matrices.capacity import capacities as solved
from fastpriv._matrices.searches import cliques as module
from fastpriv._matrices.searches.cliques import (
    NEVER,
    Cliques,
    alike_limit,
    excess,
    pair_limit,
    part_limit,
    sum_test,
)
from fastpriv._matrices.searches.selection import Laws
from oracles import individual as brute
from oracles.optima import capacities as ends

SHARPNESS = [0.1, 0.5, 3.0]


def capacities(batch):
    """Bounds by a few steps: the lower ones are attained, the upper ones hold."""
    return ends(batch, 1e-4, 300)


def tables(count, rows, outputs, sharpness, seed=0):
    return np.random.default_rng([seed, rows, outputs]).dirichlet(
        np.full(outputs, sharpness), (count, rows)
    )


def affinities(batch):
    roots = np.sqrt(batch)
    return roots @ roots.transpose(0, 2, 1)


def entropy(p):
    return -(p * np.log(np.maximum(p, 1e-300))).sum(axis=-1)


def paired(p):
    """Sum of sqrt(p_a p_b) over pairs."""
    return 0.5 * (np.sqrt(p).sum(axis=-1) ** 2 - 1.0)


@pytest.mark.parametrize("slope", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_excess(k, slope):
    """Laws of all kinds stay below, and laws with two probabilities come close."""
    drawn = [
        np.random.default_rng(k).dirichlet(np.full(k, s), 2000) for s in (0.05, 0.5, 5.0, 50.0)
    ]
    laws = np.concatenate(drawn)
    most = excess(k, slope)
    assert (slope * paired(laws) - entropy(laws)).max() <= most
    rare = np.linspace(1e-9, 1.0 / k, 2000)[:, None]
    laws = np.concatenate([1.0 - (k - 1) * rare, np.repeat(rare, k - 1, axis=1)], axis=1)
    assert (slope * paired(laws) - entropy(laws)).max() >= most - 2e-3


@pytest.mark.parametrize("sharpness", SHARPNESS)
def test_pairs_at_any_weight(sharpness):
    for pair in tables(50, 2, 4, sharpness):
        z = affinities(pair[None])[0, 0, 1]
        for t in (0.001, 0.1, 0.5, 0.7):
            q = t * pair[0] + (1.0 - t) * pair[1]
            told = [(w * np.log(np.maximum(w, 1e-300) / q)).sum() for w in pair]
            assert t * told[0] + (1.0 - t) * told[1] <= pair_limit(np.array(t), z)


def test_a_symmetric_channel_has_the_bound_of_its_affinity():
    p = 0.1
    exact = math.log(2.0) + p * math.log(p) + (1.0 - p) * math.log(1.0 - p)
    assert alike_limit(2, 2.0 * math.sqrt(p * (1.0 - p))) == pytest.approx(exact, abs=1e-10)


@pytest.mark.slow(but=["2-0.1", "2-0.5", "2-3.0"])
@pytest.mark.parametrize("sharpness", SHARPNESS)
@pytest.mark.parametrize("k", [2, 3, 4])
def test_rows_that_are_alike(k, sharpness):
    batch = tables(6, k, 5, sharpness)
    for low, Z in zip(capacities(batch)[0], affinities(batch), strict=True):
        assert low <= alike_limit(k, Z.min())


def test_equal_affinities_have_a_narrow_bound():
    """Three rows with equal affinities: the bound is a few percent above what they carry."""
    for off in (0.02, 0.05, 0.1, 0.15):
        rows = np.full((3, 3), off) + (1.0 - 3.0 * off) * np.eye(3)
        exact = math.log(3.0) - entropy(rows[0])
        assert exact <= alike_limit(3, affinities(rows[None])[0, 0, 1]) <= exact * 1.1 + 0.01


@pytest.mark.slow(but=["3-0.1", "3-0.5", "3-3.0"])
@pytest.mark.parametrize("sharpness", SHARPNESS)
@pytest.mark.parametrize("k", [3, 4, 5])
def test_what_sums_prove(k, sharpness):
    """Selections that a test leaves are below the level, and it leaves many."""
    batch = tables(600, k, 6, sharpness)
    low, _ = capacities(batch)
    parts = np.max(
        [capacities(np.delete(batch, a, axis=1))[1] for a in range(k)],
        axis=0,
    )
    Z = affinities(batch) * (1.0 - np.eye(k))
    sums = Z.sum(axis=2)
    S = 0.5 * sums.sum(axis=1)
    D = ((sums - sums.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    most = 0.0
    for level in np.quantile(low, [0.8, 0.99, 1.0]):
        test = sum_test(k, level, np.quantile(parts, 0.5))
        if test == NEVER:
            continue
        T = np.minimum(S, test.best)
        w = test.scale * (test.room - test.share * T) * (T - test.least) / T**2
        left = (test.least < S) & (S**2 * w >= D) & (parts <= test.parts)
        assert low[left].max(initial=0.0) <= level
        most = max(most, left.mean())
    assert most > 0.3 or sharpness > 1.0


def test_part_limit():
    """With a rare value and the others at the limit, no more than the level is carried."""
    for level, t in itertools.product((0.5, 1.0), (0.01, 0.1)):
        limit = part_limit(level, t)
        rare = np.linspace(1e-6, t, 100)
        h = entropy(np.stack([rare, 1.0 - rare], axis=1))
        assert (h + (1.0 - rare) * limit).max() <= level
        assert (h + (1.0 - rare) * (limit + 0.01)).max() > level


@pytest.mark.slow
def test_four_slices(monkeypatch):
    """With and without affinities the same selections are above a level; with them fewer steps."""
    monkeypatch.setattr(module, "_BUDGET", 1 << 8)
    table = tables(1, 64, 12, 0.5)[0]
    slices = list(np.split(np.arange(64), 4))
    choices = np.array(list(itertools.product(*slices)))
    told = solved(table[choices], 1e-9)[0]
    level = 0.98 * told.max()
    above = {tuple(c) for c in choices[told > level * (1.0 + 1e-9)]}
    steps = []
    for proved in (False, True):
        cliques = Cliques(Laws(table), np.arange(64))
        if proved:
            triples = [
                solved(table[np.array(list(itertools.product(*part)))], 1e-6)[1].max()
                for part in itertools.combinations(slices, 3)
            ]
            cliques.parts[3] = float(max(triples))
            assert cliques.tests(cliques.levels(level, 4))[4, 0] < math.inf
        else:
            monkeypatch.setattr(cliques, "tests", lambda levels: np.array([NEVER] * len(levels)))
        parts = list(cliques.listed(slices, level, np.ones(64, bool)))
        assert {tuple(c) for part in parts for c in part} >= above
        steps.append(len(parts))
    assert steps[1] < 0.8 * steps[0]


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [[[0.5, 0.3, 0.2], [0.3, 0.4, 0.3], [0.3, 0.2, 0.5]]])
def test_products_are_below_the_bound_of_affinities(kernel):
    from fastpriv.measures.individual.equal_records import affinity_limit

    for n in (1, 2):
        channel = fp.ProductChannel([kernel] * n)
        low, _ = brute.group_capacity(np.array(channel.matrix()), [3] * n, 1)
        assert low <= affinity_limit(channel.kernels, 1)
    many = fp.individual_capacity(fp.ProductChannel([kernel] * 30), time_limit=1.0)
    assert many.upper < 0.95 * min(math.log(3.0), 30 * fp.channel_capacity(kernel).upper)
