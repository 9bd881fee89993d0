"""Individual capacity over boxes of priors and over boxes of the laws of independent rows."""

import itertools
import math

import numpy as np
import pytest

import fastpriv as fp
from fastpriv._core.clock import Clock
from fastpriv.measures.individual.convex import most_information


def about(matrix, pmf, sizes, i):
    """I(X_i; Y), from the joint law."""
    joint = (pmf[:, None] * matrix).reshape(*sizes, -1)
    rest = tuple(j for j in range(len(sizes)) if j != i)
    joint = joint.sum(axis=rest)
    seen = joint > 0
    outer = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    return float((joint[seen] * np.log(joint[seen] / outer[seen])).sum())


def filled(lower, upper, order):
    """A corner of the box: room is used up in some order."""
    p, left = lower.copy(), 1.0 - lower.sum()
    for x in order:
        step = min(left, upper[x] - lower[x])
        p[x], left = p[x] + step, left - step
    return p


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "sizes"), [(0, (2, 2)), (1, (2, 2)), (2, (3, 2))])
def test_boxes_against_many_priors(seed, sizes):
    """No prior of the box tells more; mixtures of two corners come close."""
    rng, size = np.random.default_rng(seed), math.prod(sizes)
    matrix = rng.dirichlet(np.full(2, 0.4), size)
    centre = rng.dirichlet(np.ones(size))
    lower, upper = 0.5 * centre, np.minimum(1.0, centre + rng.random(size) * 0.4)
    bracket = fp.individual_capacity(
        fp.Channel(matrix, sizes), fp.PriorSet.box(lower, upper), time_limit=6.0
    )
    orders = itertools.permutations(range(size))
    corners = np.unique([filled(lower, upper, order) for order in orders], axis=0)

    def told(pmf):
        return max(about(matrix, pmf, sizes, i) for i in range(len(sizes)))

    corners = sorted(corners, key=told)[-30:]
    best = 0.0
    for first, second in itertools.combinations(corners, 2):
        for share in (0.0, 0.25, 0.5, 0.75, 1.0):
            pmf = first + share * (second - first)
            best = max(best, told(pmf))
    assert best <= bracket.upper + 1e-12
    assert bracket.lower <= best * 1.05 + 1e-3
    assert bracket.lower <= bracket.upper


@pytest.mark.slow
def test_limits_of_boxes():
    """All laws, a single law, and min-entropies between the two."""
    rng = np.random.default_rng(5)
    matrix = rng.dirichlet(np.full(2, 0.4), 4)
    channel, pmf = fp.Channel(matrix, [2, 2]), rng.dirichlet(np.ones(4))
    free = fp.individual_capacity(channel)
    whole = fp.individual_capacity(channel, fp.PriorSet.box([0] * 4, [1] * 4))
    assert whole.upper >= free.lower
    assert whole.lower == pytest.approx(free.lower, rel=2e-3)
    single = fp.individual_capacity(channel, fp.PriorSet.box(pmf, pmf))
    truth = max(about(matrix, pmf, (2, 2), i) for i in (0, 1))
    assert single.lower - 1e-9 <= truth <= single.upper + 1e-9
    assert single.width < 2e-3
    ends = [
        fp.individual_capacity(channel, fp.PriorSet.min_entropy(4, b)) for b in (0.4, 1.0, 1.38)
    ]
    assert all(a.upper >= b.lower for a, b in itertools.pairwise(ends))
    even = max(about(matrix, np.full(4, 0.25), (2, 2), i) for i in (0, 1))
    assert ends[-1].upper >= even
    assert ends[-1].lower <= even + 0.1
    # Less entropy than min-entropy is asked for elsewhere: the set is smaller.
    assert ends[1].lower <= fp.constrained_capacity(channel, 1.0).upper + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_information_over_a_box_of_inputs(seed):
    """A concave maximum: bracketed closely, and no law inside has more."""
    rng = np.random.default_rng(seed)
    matrix, centre = rng.dirichlet(np.full(4, 0.5), 5), rng.dirichlet(np.ones(5))
    lower, upper = 0.3 * centre, np.minimum(1.0, centre + 0.2)
    low, high = most_information(matrix, fp.PriorSet.box(lower, upper), 1e-6, Clock(math.inf))
    assert high - low < 1e-5
    for _ in range(200):
        mix = rng.random()
        one, two = (filled(lower, upper, rng.permutation(5)) for _ in range(2))
        assert fp.mutual_information(matrix, mix * one + (1 - mix) * two) <= high + 1e-12
    free = most_information(matrix, fp.PriorSet.box([0] * 5, [1] * 5), 1e-6, Clock(math.inf))
    truth = fp.channel_capacity(matrix)
    assert free[0] <= truth.upper
    assert truth.lower <= free[1]


def test_boxes_of_independent_rows():
    """Bits agree with bernoulli_interval; other rows are at corners; structure changes nothing."""
    rng = np.random.default_rng(2)
    matrix = rng.dirichlet(np.full(3, 0.5), 8)
    channel = fp.Channel(matrix, [2, 2, 2])
    same = fp.individual_capacity(channel, fp.PriorSet.bernoulli_interval(3, 0.2))
    bits = fp.individual_capacity(channel, fp.PriorSet.row_box([0.2] * 2, [0.8] * 2, 3), gap=1e-7)
    assert bits.midpoint == pytest.approx(same.midpoint, rel=1e-5)
    lower, upper = np.array([0.1, 0.2, 0.1]), np.array([0.6, 0.6, 0.5])
    matrix = rng.dirichlet(np.full(3, 0.5), 9)
    box = fp.PriorSet.row_box(lower, upper, 2)
    bracket = fp.individual_capacity(fp.Channel(matrix, [3, 3]), box, gap=1e-6)
    for _ in range(200):
        laws = [filled(lower, upper, rng.permutation(3)) for _ in range(3)]
        mixed = rng.random()
        pmf = np.outer(laws[0], mixed * laws[1] + (1 - mixed) * laws[2]).reshape(-1)
        assert max(about(matrix, pmf, (3, 3), i) for i in (0, 1)) <= bracket.upper + 1e-12
    assert bracket.width < 1e-4
    rows = fp.HammingChannel(2, 3, 1.0)
    plain = fp.Channel(rows.matrix(), rows.space)
    one, other = (fp.individual_capacity(c, box, gap=1e-7) for c in (rows, plain))
    assert one.midpoint == pytest.approx(other.midpoint, rel=1e-4)
    long = fp.HammingChannel(1000, 3, 1.0)
    many = fp.individual_capacity(long, fp.PriorSet.row_box(lower, upper, 1000), gap=1e-7)
    assert many.midpoint == pytest.approx(one.midpoint, rel=1e-4)


def test_sizes_and_sets_that_are_refused():
    channel = fp.HammingChannel(2, 2, 1.0)
    for priors, word in (
        (fp.PriorSet.iid_interval(3, 0.1), "on the same databases"),
        (fp.PriorSet.box([0.0] * 3, [1.0] * 3), "got 3"),
        (fp.PriorSet.row_box([0.1] * 2, [0.9] * 2, 3), "on the same databases"),
    ):
        with pytest.raises(fp.InvalidInput, match=word):
            fp.individual_capacity(channel, priors)
    for n, words in (
        (11, "searched over a set"),
        (10, "joint distribution of a record and the output"),
    ):
        with pytest.raises(fp.TooLarge, match=words):
            fp.individual_capacity(fp.HammingChannel(n, 2, 1.0), fp.PriorSet.min_entropy(2**n, 1.0))
    count = fp.mechanisms.GeometricCount(14, 1.0).channel()
    boxed = fp.individual_capacity(count, fp.PriorSet.row_box([0.1] * 2, [0.9] * 2, 14))
    bounded = fp.individual_capacity(count, fp.PriorSet.bernoulli_interval(14, 0.1))
    assert boxed.midpoint == pytest.approx(bounded.midpoint, rel=1e-9)
