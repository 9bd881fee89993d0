"""Leakage about groups of records over sets of priors, by the definition at drawn priors."""

import itertools
import math

import numpy as np
import pytest

import fastpriv as fp

SIZES = [
    pytest.param((2, 2, 2), marks=pytest.mark.slow),
    (2, 3),
    (3, 2),
    (2, 1, 2),
    pytest.param((3, 3), marks=pytest.mark.slow),
    (2, 2),
]


def leakages(matrix, pmf, sizes, group):
    """Largest ln P(y | x_G = v)/P(y) over settings v that can occur, for every output y."""
    rows = np.array(list(itertools.product(*map(range, sizes))))
    law, worst = pmf @ matrix, np.zeros(matrix.shape[1])
    for v in itertools.product(*[range(sizes[i]) for i in group]):
        own = (rows[:, group] == v).all(axis=1)
        if pmf[own].sum() > 0:
            given = pmf[own] @ matrix[own] / pmf[own].sum()
            seen = given > 0
            worst[seen] = np.maximum(worst[seen], np.log(given[seen] / law[seen]))
    return worst


def filled(rng, lower, upper):
    """A distribution at a corner of a box, or near one."""
    pmf, free = lower.copy(), 1.0 - lower.sum()
    for x in [*rng.permutation(len(lower)), *rng.permutation(len(lower))]:
        added = min(free, upper[x] - pmf[x]) * (rng.random() if rng.random() < 0.2 else 1.0)
        pmf[x], free = pmf[x] + added, free - added
    for x in range(len(lower)):
        added = min(free, upper[x] - pmf[x])
        pmf[x], free = pmf[x] + added, free - added
    return pmf


def kron(laws):
    whole = np.ones(1)
    for law in laws:
        whole = np.kron(whole, law)
    return whole


def sets_and_members(rng, sizes):
    """Yield sets of priors, each with a function that draws a member."""
    size, n, m = math.prod(sizes), len(sizes), sizes[0]
    centre = rng.dirichlet(np.full(size, 3.0))
    lower, upper = centre * rng.random(size) * 0.9, np.minimum(1.0, centre + rng.random(size) * 0.3)
    yield fp.PriorSet.box(lower, upper), lambda: filled(rng, lower, upper)
    A, b = np.vstack([np.eye(size), -np.eye(size)]), np.concatenate([upper, -lower])
    yield fp.PriorSet.polytope(A, b), lambda: filled(rng, lower, upper)
    laws = rng.dirichlet(np.ones(size), 3)
    yield fp.PriorSet.hull(list(laws)), lambda: rng.dirichlet(np.full(3, 0.5)) @ laws

    def within(distance, radius):
        pmf, share = rng.dirichlet(np.full(size, 0.5)), 1.0
        while distance(centre + share * (pmf - centre)) > radius:
            share *= 0.9
        return centre + share * (pmf - centre)

    yield (
        fp.PriorSet.total_variation(centre, 0.1),
        lambda: within(lambda p: np.abs(p - centre).sum() / 2, 0.1),
    )
    yield (
        fp.PriorSet.kl_ball(centre, 0.05),
        lambda: within(lambda p: p @ np.log(np.maximum(p, 1e-300) / centre), 0.05),
    )
    near = lambda k: rng.dirichlet(np.full(k, 0.15)) * (1.0 - 1e-6 * k) + 1e-6  # noqa: E731
    yield fp.PriorSet.all(size), lambda: near(size)
    yield fp.PriorSet.product(list(sizes)), lambda: kron([near(k) for k in sizes])
    if set(sizes) == {2}:
        c = float(rng.uniform(0.05, 0.45))
        ends = lambda: (c, 1.0 - c, rng.uniform(c, 1.0 - c))[rng.integers(3)]  # noqa: E731
        yield (
            fp.PriorSet.bernoulli_interval(n, c),
            lambda: kron([[1.0 - p, p] for p in (ends() for _ in range(n))]),
        )
        yield fp.PriorSet.iid_interval(n, c), lambda: kron([(lambda p: [1 - p, p])(ends())] * n)
    if len(set(sizes)) == 1:
        low, high = np.full(m, 0.3 / m), np.minimum(1.0, rng.random(m) * 0.5 + 0.6)
        yield (
            fp.PriorSet.row_box(low, high, n),
            lambda: kron([filled(rng, low, high) for _ in range(n)]),
        )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sizes", SIZES)
def test_groups_over_sets(seed, sizes):
    rng = np.random.default_rng([seed, *sizes])
    matrix = rng.dirichlet(np.ones(3), math.prod(sizes))
    if seed == 1:  # zeros
        matrix[:, 1:] *= rng.random((len(matrix), 2)) > 0.3
        matrix /= matrix.sum(axis=1, keepdims=True)
    channel = fp.Channel(matrix, list(sizes))
    if seed == 2:
        channel = fp.HammingChannel(len(sizes), list(sizes), 0.8)
        matrix = channel.nearest_matrix()
    group = sorted(rng.choice(len(sizes), 2, replace=False).tolist())
    for priors, member in sets_and_members(rng, sizes):
        level = fp.pml_level(channel, priors, row=group)
        common = "iid" in repr(priors)
        each = np.full(matrix.shape[1], level) if common else fp.row_pml(channel, priors, group)
        assert each.max() == pytest.approx(level, rel=3e-6, abs=3e-6)
        reached = np.zeros(matrix.shape[1])
        for _ in range(40):
            leaks = leakages(matrix, member(), sizes, group)
            assert (leaks <= each + 1e-12).all()
            reached = np.maximum(reached, leaks)
        if "bernoulli" in repr(priors) or "iid" in repr(priors) or "row_box" in repr(priors):
            assert level <= reached.max() + 0.1
        if level < math.inf:  # a group of all records is the database
            whole = fp.pml_level(channel, priors, row=list(range(len(sizes))))
            assert whole == pytest.approx(fp.pml_level(channel, priors), rel=4e-6, abs=4e-6)


def test_counts_and_products_over_common_chances():
    """Structured channels agree with their matrices."""
    count = fp.mechanisms.GeometricCount(6, 0.7).channel()
    plain = fp.Channel(count.matrix(), [2] * 6)
    bits = fp.ProductChannel(
        [[[0.8, 0.2], [0.4, 0.6]], [[0.6, 0.4], [0.3, 0.7]], np.eye(2) / 2 + 0.25]
    )
    for priors in (fp.PriorSet.iid_interval(6, 0.2), fp.PriorSet.bernoulli_interval(6, 0.2)):
        for group in ([0, 3], [1, 2, 5]):
            one, other = (fp.pml_level(channel, priors, row=group) for channel in (count, plain))
            assert one == pytest.approx(other, rel=1e-9)
    matrix = fp.Channel(bits.matrix(), [2, 2, 2])
    for priors in (
        fp.PriorSet.iid_interval(3, 0.2),
        fp.PriorSet.iid_interval(3, 0.0),
        fp.PriorSet.bernoulli_interval(3, 0.2),
        fp.PriorSet.row_box([0.1, 0.3], [0.8, 0.8], 3),
    ):
        for group in ([0, 2], [0, 1, 2]):
            one, other = (fp.pml_level(channel, priors, row=group) for channel in (bits, matrix))
            assert one == pytest.approx(other, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.007549102364691109, 0.017, 0.0027059880258050316, 1.0])
@pytest.mark.parametrize(("n", "m"), [(1, 3), (2, 2), (3, 2), (2, 3)])
def test_levels_of_randomised_response_are_not_below_the_truth(epsilon, n, m):
    """The leakage over all priors is n epsilon, over independent records epsilon."""
    channel = fp.HammingChannel(n, m, epsilon)
    everything, product = fp.PriorSet.all(m**n), fp.PriorSet.product([m] * n)
    for group in range(n), [0]:
        for leaks in (
            fp.row_pml(channel, everything, list(group)),
            [fp.pml_level(channel, everything, row=list(group))],
        ):
            assert n * epsilon <= max(leaks) <= n * epsilon * (1 + 1e-12)
        for leaks in (
            fp.row_pml(channel, product, list(group)),
            [fp.pml_level(channel, product, row=list(group))],
        ):
            assert len(group) * epsilon <= max(leaks) <= len(group) * epsilon + 1e-13


def test_chains_leak_no_more_than_their_channel():
    chain = fp.Markov([0.9473351631924787, 0.052664837], [[0.0, 1.0], [1e-16, 1.0]], 1)
    nothing = fp.ProductChannel([[[1.0], [1.0]]])
    assert fp.pml_level(nothing, chain, row=0) == 0.0
    assert fp.pml_level(nothing, chain, row="worst") == 0.0
    longer = fp.Markov(chain.initial, chain.transition, 3)
    assert fp.pml_level(fp.ProductChannel([[[1.0], [1.0]]] * 3), longer, row=1) == 0.0


def test_groups_of_many_records():
    """Channels that act record by record need no list of databases."""
    response = fp.HammingChannel(500, 2, 0.1)
    product, everything = fp.PriorSet.product([2] * 500), fp.PriorSet.all(2**500)
    level = fp.pml_level(response, product, [0, 1, 7])
    assert 3 * 0.1 <= level == pytest.approx(0.3)
    assert fp.pml_level(response, everything, [0, 1, 7]) == pytest.approx(50.0)
    some = fp.ProductChannel([np.eye(2) / 2 + 0.25, [[0.5, 0.5], [0.5, 0.5]]])
    plain = fp.Channel(some.matrix(), [2, 2])
    for priors in (fp.PriorSet.all(4), fp.PriorSet.product([2, 2])):
        one, other = (fp.pml_level(channel, priors, [0, 1]) for channel in (some, plain))
        assert one == pytest.approx(other, rel=1e-12)
