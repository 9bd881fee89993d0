"""Capacities of groups at a least entropy, and of several releases under such priors."""

import itertools
import math

import numpy as np
import pytest

import fastpriv as fp


def about(matrix, pmf, sizes, group):
    """I(X_G; Y), from the joint law."""
    joint = (pmf[:, None] * matrix).reshape(*sizes, -1)
    rest = tuple(i for i in range(len(sizes)) if i not in group)
    joint = joint.sum(axis=rest).reshape(-1, matrix.shape[1])
    seen = joint > 0
    outer = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    return float((joint[seen] * np.log(joint[seen] / outer[seen])).sum())


def entropy(pmf):
    return -float(pmf[pmf > 0] @ np.log(pmf[pmf > 0]))


def with_entropy(pmf, b):
    """Mix a law with the uniform one until its entropy is at least b."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        enough = entropy((1 - middle) * pmf + middle / len(pmf)) >= b
        low, high = (low, middle) if enough else (middle, high)
    return (1 - high) * pmf + high / len(pmf)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "sizes", "k"), [(0, (2, 2, 2), 2), (1, (2, 3), 2), (2, (3, 2, 2), 2)]
)
def test_groups_against_many_priors(seed, sizes, k):
    """No prior of that entropy tells more about a group; both ends meet the known ones."""
    rng, size = np.random.default_rng(seed), math.prod(sizes)
    matrix = rng.dirichlet(np.full(3, 0.4), size)
    channel = fp.Channel(matrix, sizes)
    b = 0.7 * math.log(size)
    bracket = fp.constrained_capacity(channel, b, k=k, time_limit=None)
    for sharp in np.repeat([0.05, 0.3, 1.0], 60):
        pmf = with_entropy(rng.dirichlet(np.full(size, sharp)), b)
        for group in itertools.combinations(range(len(sizes)), k):
            assert about(matrix, pmf, sizes, group) <= bracket.upper + 1e-12
    assert bracket.lower <= fp.group_capacity(channel, k).upper
    assert bracket.upper >= fp.constrained_capacity(channel, b, time_limit=None).lower
    free, full = fp.constrained_capacity(channel, [0.0, math.log(size)], k=k, time_limit=None)
    assert free.lower == pytest.approx(fp.group_capacity(channel, k).lower, rel=1e-8)
    even = np.full(size, 1 / size)
    groups = itertools.combinations(range(len(sizes)), k)
    truth = max(about(matrix, even, sizes, group) for group in groups)
    assert full.lower - 1e-9 <= truth <= full.upper + 1e-9


@pytest.mark.slow
def test_whole_databases_and_structures():
    """A group of all rows is one row; a count agrees with its matrix; bad groups are refused."""
    channel = fp.HammingChannel(2, 2, 1.0)
    one = fp.constrained_capacity(fp.Channel(channel.matrix()), 1.1, gap=1e-6)
    both = fp.constrained_capacity(channel, 1.1, k=2, gap=1e-6)
    assert both.lower <= one.upper + 1e-12
    assert one.lower <= both.upper + 1e-12
    count = fp.mechanisms.GeometricCount(4, 0.8).channel()
    plain = fp.Channel(count.matrix(), count.space)
    brackets = [fp.constrained_capacity(c, 2.0, k=2, time_limit=1.0) for c in (count, plain)]
    assert brackets[0].lower <= brackets[1].upper + 1e-9
    assert brackets[1].lower <= brackets[0].upper + 1e-9
    for k, error in ((3, fp.InvalidInput), (0, fp.InvalidInput), (1.5, fp.InvalidInput)):
        with pytest.raises(error, match="k must be"):
            fp.constrained_capacity(channel, 1.0, k=k)
    long = fp.constrained_capacity(fp.HammingChannel(40, 2, 1.0), 1.0, k=2)
    assert long.lower <= fp.group_capacity(fp.HammingChannel(40, 2, 1.0), 2).upper
    assert long.upper <= math.log(4.0)
    with pytest.raises(fp.TooLarge):
        fp.constrained_capacity(fp.mechanisms.GeometricCount(100, 1.0).channel(), 60.0, k=30)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_composition_is_bounded(seed):
    """The composed channel at an entropy is below the bound, which is below unconstrained ones."""
    rng = np.random.default_rng(seed)
    channels = [fp.Channel(rng.dirichlet(np.full(2, 0.4), 4), [2, 2]) for _ in range(2)]
    b = 0.8 * math.log(4)
    bound = fp.constrained_composition_bound(*channels, b=b)
    truth = fp.constrained_capacity(fp.compose(*channels), b)
    assert truth.lower <= bound
    assert bound <= fp.composition_bound(*channels) + 2e-3
    first = fp.constrained_capacity(channels[0], b).upper
    law = fp.accounting.compose_levels(
        "constrained-capacity", [first, fp.individual_capacity(channels[1]).upper]
    )
    assert truth.lower <= law
    assert bound <= law + 2e-3
    assert fp.constrained_composition_bound(channels[0], b=0.0) == pytest.approx(
        fp.individual_capacity(channels[0]).upper, rel=1e-6
    )


@pytest.mark.slow
def test_capacities_at_an_entropy_do_not_add():
    """Two parities that tell nothing alone tell a bit together; the bound is met."""
    bits, top = fp.Space.hamming(3, 2).rows(np.arange(8)), math.log(8)
    parities = bits.sum(axis=1) % 2, bits[:, 1:].sum(axis=1) % 2
    told = [fp.QueryChannel(parity, np.eye(2), [2, 2, 2]) for parity in parities]
    assert max(fp.constrained_capacity(channel, top).upper for channel in told) < 1e-9
    together = fp.constrained_capacity(fp.compose(*told), top)
    assert together.lower == pytest.approx(math.log(2))
    assert fp.constrained_composition_bound(*told, b=top) == pytest.approx(math.log(2))
    # The channel capacity of the first, ln 2, is what the posterior lacks.
    assert fp.constrained_capacity(told[1], top - math.log(2)).upper == pytest.approx(math.log(2))


def test_compositions_that_are_refused():
    channel, other = fp.HammingChannel(2, 2, 1.0), fp.HammingChannel(3, 2, 1.0)
    for call, error in (
        (lambda: fp.constrained_composition_bound(b=1.0), "one channel or more"),
        (lambda: fp.constrained_composition_bound(channel, np.eye(3), b=1.0), "3"),
        (
            lambda: fp.constrained_composition_bound(channel, other, b=1.0),
            "same databases",
        ),
        (lambda: fp.constrained_composition_bound(channel, b=-1.0), "b must"),
        (lambda: fp.constrained_composition_bound(channel, b=1.0, points=1), "points"),
    ):
        with pytest.raises(fp.InvalidInput, match=error):
            call()
    with pytest.raises(fp.Infeasible):
        fp.constrained_composition_bound(channel, channel, b=2.0)
