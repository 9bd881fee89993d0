"""Identifiability of groups of records, structured and by a list of all databases."""

import itertools
import math

import numpy as np
import pytest

import fastpriv as fp


def by_hand(matrix, pmf, sizes, k):
    """Largest ln p(x|y)/p(x'|y) over databases that differ in up to k records."""
    rows = np.array(list(itertools.product(*map(range, sizes))))
    worst = 0.0
    for x, z in itertools.permutations(range(len(rows)), 2):
        if pmf[x] == 0.0 or (rows[x] != rows[z]).sum() > k:
            continue
        seen = matrix[x] > 0.0
        with np.errstate(divide="ignore"):
            ratios = np.log(matrix[x, seen]) - np.log(matrix[z, seen])
            worst = max(worst, float(ratios.max() + np.log(pmf[x]) - np.log(pmf[z])))
    return worst


def kernel(rng, m, zeros=False):
    made = rng.dirichlet(np.ones(rng.integers(2, 4)), m)
    if zeros:
        made[rng.integers(m), 0] = 0.0
    return made / made.sum(axis=1, keepdims=True)


def cases(rng, n, m):
    """Yield channels that act record by record, on n records of m values."""
    one = kernel(rng, m)
    yield fp.HammingChannel(n, m, 0.7)
    yield fp.ProductChannel([one] * n)
    yield fp.ProductChannel([kernel(rng, m) for _ in range(n)])
    yield fp.ProductChannel([kernel(rng, m, zeros=True)] * n)


def priors(rng, n, m):
    law = lambda k: rng.dirichlet(np.full(k, 0.7))  # noqa: E731
    yield fp.Product([law(m) for _ in range(n)])
    yield fp.Markov(law(m), [law(m) for _ in range(m)], n)
    yield fp.Markov(law(m), np.eye(m), n)
    if m == 2:
        yield fp.Exchangeable(law(n + 1))
        yield fp.Exchangeable(np.eye(n + 1)[n // 2])


@pytest.mark.parametrize(
    ("n", "m"), [(1, 2), (1, 3), (2, 2), (3, 2), (4, 2), (2, 3), (3, 3), (3, 1)]
)
def test_groups_by_a_list_of_databases(n, m):
    rng = np.random.default_rng([n, m])
    for prior in priors(rng, n, m):
        dense = fp.Dense(prior.pmf(), prior.space)
        for channel in cases(rng, n, m):
            matrix = np.array(channel.nearest_matrix())
            for k in range(1, n + 1):
                truth = by_hand(matrix, dense.pmf(), [m] * n, k)
                found = fp.identifiability_level(channel, prior, group=k)
                assert found == pytest.approx(truth, rel=1e-12, abs=1e-12)
                listed = fp.identifiability_level(channel, dense, group=k)
                assert found == pytest.approx(listed, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("k", [2, 3, 50])
def test_randomised_response_on_long_databases(k):
    """Closed forms: independent records add up, and longer chains do not change a level."""
    response = fp.HammingChannel(1000, 2, 0.1)
    for prior, one in (
        (fp.Uniform(1000, 2), 0.1),
        (fp.Product.iid([0.3, 0.7], 1000), 0.1 + math.log(7 / 3)),
    ):
        level = fp.identifiability_level(response, prior, group=k)
        assert k * one * (1.0 - 1e-15) <= level <= k * one * (1.0 + 1e-13)
    chains = [fp.Markov([0.4, 0.6], [[0.8, 0.2], [0.3, 0.7]], n) for n in (3 * k, 3 * k + 2, 1000)]
    levels = [
        fp.identifiability_level(fp.HammingChannel(chain.space.n, 2, 0.1), chain, group=k)
        for chain in chains
    ]
    assert levels[0] == levels[1] == levels[2]
    # Records of different kernels are not shortened: here the kernels are the same.
    mixed = fp.ProductChannel([[[0.6, 0.4], [0.4, 0.6]]] * 999 + [[[0.6, 0.4], [0.3, 0.7]]])
    plain = fp.ProductChannel([[[0.6, 0.4], [0.4, 0.6]]] * 1000)
    found = fp.identifiability_level(plain, chains[-1], group=2)
    assert found <= fp.identifiability_level(mixed, chains[-1], group=2)


def test_groups_of_more_records_than_there_are():
    chain = fp.Markov([0.5, 0.5], [[0.5, 0.5], [0.2, 0.8]], 2)
    response = fp.HammingChannel(2, 2, 1.0)
    levels = {fp.identifiability_level(response, chain, group=k) for k in (2, 3, 10**400)}
    assert len(levels) == 1


def test_exchangeable_bits_of_many_records():
    """A count with as much noise as it allows is worse than randomised response by its odds."""
    prior = fp.Exchangeable.beta_binomial(400, 0.5, 0.8)
    response = fp.HammingChannel(400, 2, 0.1)
    levels = [fp.identifiability_level(response, prior, group=k) for k in (1, 2, 3, 7)]
    odds = [
        fp.identifiability_level(fp.HammingChannel(400, 2, 0.0), prior, group=k)
        for k in (1, 2, 3, 7)
    ]
    for k, level, own in zip((1, 2, 3, 7), levels, odds, strict=True):
        assert own <= level <= own + 0.1 * k + 1e-9
    assert levels == sorted(levels)
