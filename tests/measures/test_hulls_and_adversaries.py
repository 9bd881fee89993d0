"""Hulls of priors, single priors as sets of one, and the priors that attain lower bounds."""

import itertools
import math

import numpy as np
import pytest
import scipy.optimize

import fastpriv as fp

RNG = np.random.default_rng(38)
LAWS = RNG.dirichlet(np.ones(4), 3)
W = RNG.dirichlet(np.ones(3), 4)
PAIR = fp.Channel(W, [2, 2])
HULL = fp.PriorSet.hull(list(LAWS))


def vector(space, adversary):
    p = np.zeros(space.size)
    p[space.index(adversary.databases)] = adversary.law
    return p


def test_leakage_over_a_hull_is_reached_at_its_corners():
    truth = np.log(W.max(axis=0) / (LAWS @ W).min(axis=0)).max()
    assert fp.pml_level(W, HULL) == pytest.approx(truth, abs=1e-12)
    zeros = fp.PriorSet.hull([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0]])  # the third never occurs
    two = [[0.5, 0.5], [0.5, 0.5], [1.0, 0.0]]
    assert fp.pml_level(two, zeros) == pytest.approx(0.0, abs=1e-12)
    mixtures = RNG.dirichlet(np.ones(3), 200) @ LAWS
    for row in (0, 1):
        level = fp.pml_level(PAIR, HULL, row)
        assert level >= max(fp.pml_level(PAIR, p, row) for p in mixtures) - 1e-12


def test_individual_capacity_over_a_hull():
    found = fp.individual_capacity(PAIR, HULL)
    mixtures = RNG.dirichlet(np.full(3, 0.5), 300) @ LAWS
    told = max(fp.row_information(PAIR, p, i) for p in mixtures for i in (0, 1))
    assert told <= found.upper
    assert found.width < 1e-3


@pytest.mark.parametrize(
    "make",
    [
        lambda: HULL,
        lambda: fp.PriorSet.hull([fp.Dense(LAWS[0], [2, 2])]),
        lambda: fp.PriorSet.box([0.1] * 4, [0.6] * 4),
        lambda: fp.PriorSet.total_variation([0.25] * 4, 0.1),
        lambda: fp.PriorSet.polytope([[1.0, 1.0, 0.0, 0.0]], [0.3]),
        lambda: fp.PriorSet.entropy(4, 1.0),
    ],
)
def test_sets_return_the_attaining_prior(make):
    found = fp.individual_capacity(PAIR, make())
    p = vector(PAIR.space, found.adversary)
    assert p.sum() == pytest.approx(1.0, abs=1e-12)
    told = fp.row_information(PAIR, p, found.adversary.rows)
    assert told == pytest.approx(found.lower, abs=1e-10)


def test_one_prior_is_a_set_of_one():
    p = LAWS[0]
    truth = max(fp.row_information(PAIR, p, i) for i in (0, 1))
    for single in (p, fp.Dense(p, [2, 2]), fp.PriorSet.hull([p])):
        assert float(fp.individual_capacity(PAIR, single)) == pytest.approx(truth, abs=1e-6)
        worst = fp.max_individual_capacity(PAIR, single)
        assert worst == pytest.approx(fp.pml_level(PAIR, p, "worst"), abs=2e-6)
    best = fp.solve_pd_dp(p, 0.7)
    for single in (p, fp.Dense(p), fp.PriorSet.hull([p])):
        assert fp.solve_minimax(single, 0.7).value == pytest.approx(best.value, abs=1e-6)


def test_minimax_over_a_hull():
    found = fp.solve_minimax(HULL, 0.7)
    loss = (found.channel.matrix() * (1.0 - np.eye(4))).sum(axis=1)
    assert found.value == pytest.approx((LAWS @ loss).max(), abs=1e-9)
    assert found.value - found.bound < 1e-6
    mixtures = RNG.dirichlet(np.full(3, 0.6), 20) @ LAWS
    assert max(fp.solve_pd_dp(p, 0.7).bound for p in mixtures) <= found.value + 1e-9


@pytest.mark.parametrize("bad", ["every", None, 3, [LAWS[0], [0.5, 0.5]], [0.5, 0.6]])
def test_errors_name_prior_sets(bad):
    with pytest.raises(fp.InvalidInput, match="PriorSet"):
        fp.solve_minimax(bad, 0.5)


@pytest.mark.parametrize("bad", [[], [[0.5, 0.5], [0.2, 0.3, 0.5]], [[0.5, 0.6]], 3])
def test_bad_hulls(bad):
    with pytest.raises(fp.InvalidInput, match="prior"):
        fp.PriorSet.hull(bad)


CONSTRAINED = [
    (fp.HammingChannel(2, 2, 1.0), 1),
    (fp.ProductChannel([RNG.dirichlet(np.ones(3), 2), RNG.dirichlet(np.ones(2), 3)]), 1),
    (fp.Channel(RNG.dirichlet(np.ones(3), 6), [2, 3]), 1),
    (fp.Channel(RNG.dirichlet(np.ones(3), 8), [2, 2, 2]), 2),
    (fp.QueryChannel.count(5, RNG.dirichlet(np.ones(2), 6)), 1),
    (fp.Channel([[0.9, 0.1], [0.2, 0.8]]), 1),
]


@pytest.mark.parametrize(("channel", "k"), CONSTRAINED)
def test_constrained_capacity_returns_the_attaining_prior(channel, k):
    for share in (0.0, 0.5, 0.8, 1.0):
        b = share * math.log(channel.space.size)
        found = fp.constrained_capacity(channel, b, k=k, gap=0.02, time_limit=None)
        p = vector(channel.space, found.adversary)
        entropy = -math.fsum(v * math.log(v) for v in p if v > 0.0)
        assert entropy >= b - 1e-12 * (1.0 + b)
        told = fp.row_information(channel, fp.Dense(p, channel.space), found.adversary.rows)
        assert told == pytest.approx(found.lower, abs=1e-8)


@pytest.mark.parametrize(
    "priors",
    [
        fp.PriorSet.hull([[0.25, 0.75, 0.0], [0.5, 0.25, 0.25]]),
        fp.PriorSet.hull([[0.0, 1.0, 0.0]]),
        fp.PriorSet.box([0.1, 0.2, 0.3], [0.5, 0.5, 0.5]),
        fp.PriorSet.entropy(3, 1.0),
    ],
)
def test_a_channel_that_reveals_nothing_has_an_adversary_of_the_set(priors):
    found = fp.individual_capacity([[0.5, 0.5]] * 3, priors)
    assert found.upper == 0.0
    assert found.adversary.law.sum() == pytest.approx(1.0, abs=1e-12)
    alone = fp.individual_capacity([[0.5, 0.5]], fp.PriorSet.hull([[1.0]]))  # one database
    assert alone.adversary.databases.tolist() == [[0]]


@pytest.mark.parametrize(
    "make",
    [
        lambda: fp.PriorSet.hull([[0.0, 1.0, 0.0]]),
        lambda: fp.PriorSet.box([0.0, 1.0, 0.0], [0.0, 1.0, 0.0]),
        lambda: fp.PriorSet.polytope([[1.0, 0.0, 1.0]], [0.0]),
    ],
)
def test_a_certain_database_is_published_without_error(make):
    found = fp.solve_minimax(make(), 1.0)
    assert found.value == found.bound == 0.0
    assert found.converged


def test_minimax_of_a_rare_database_keeps_its_digits():
    found = fp.solve_minimax(fp.PriorSet.hull([[1.0 - 2.0**-40, 2.0**-40]]), 1.0)
    assert 2.0**-40 <= found.value <= 2.0**-40 * (1.0 + 1e-12)


def told_about(matrix, sizes, law, i):
    """I(X_i; Y) term by term."""
    space = fp.Space(sizes)
    joint = np.zeros((sizes[i], matrix.shape[1]))
    for x in range(space.size):
        joint[space.rows(x)[i]] += law[x] * matrix[x]
    value, records, outputs = 0.0, joint.sum(axis=1), joint.sum(axis=0)
    for (a, y), p in np.ndenumerate(joint):
        if p > 0.0:
            value += p * math.log(p / (records[a] * outputs[y]))
    return value


@pytest.mark.parametrize("sizes", [(2, 2), (3, 2), (2, 2, 2), (4,)])
@pytest.mark.parametrize("sharp", [0.1, 1.0])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_individual_capacity_over_few_priors(sizes, sharp, count):
    """All mixtures on a grid of weights; the adversary attains the lower bound."""
    rng = np.random.default_rng(count)
    size = math.prod(sizes)
    matrix, laws = rng.dirichlet(np.full(3, sharp), size), rng.dirichlet(np.full(size, 0.3), count)
    found = fp.individual_capacity(fp.Channel(matrix, sizes), fp.PriorSet.hull(laws))
    assert found.upper - found.lower <= 1e-8 * found.lower + 1e-12
    grid = [w for w in itertools.product(range(11), repeat=count) if sum(w) == 10]
    for weights in grid:
        law = np.array(weights) / 10 @ laws
        assert max(told_about(matrix, sizes, law, i) for i in range(len(sizes))) <= found.upper
    who = found.adversary
    law = np.zeros(size)
    law[fp.Space(sizes).index(who.databases)] = who.law
    assert told_about(matrix, sizes, law, who.rows[0]) == pytest.approx(found.lower, abs=1e-11)
    # The attaining prior is a mixture of the given ones.
    shares, rest = scipy.optimize.nnls(np.vstack([laws.T, np.ones(count)]), np.append(law, 1.0))
    assert rest < 1e-8
    assert shares.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("group", [(0, 1), (0, 2), (0, 1, 2), (1,)])
def test_leakage_about_groups_over_sets(group):
    """A group of records is one record with as many values as the group has settings."""
    rng = np.random.default_rng(2)
    sizes = (2, 3, 2)
    channel = fp.Channel(rng.dirichlet(np.ones(3), 12), sizes)
    laws = rng.dirichlet(np.ones(12), 3)
    hull, every = fp.PriorSet.hull(laws), fp.PriorSet.all(12)
    found = fp.pml_level(channel, hull, group)
    reached = [
        fp.pml_level(channel, weights @ laws, group) for weights in rng.dirichlet([0.4] * 3, 200)
    ]
    assert max(reached) <= found <= max(reached) + 0.01
    assert fp.row_pml(channel, hull, group).max() == pytest.approx(found, abs=1e-9)
    assert found <= fp.pml_level(channel, every, group) <= fp.leakage_capacity(channel)
    box = fp.PriorSet.box(laws.min(axis=0), laws.max(axis=0))  # contains the hull
    assert found <= fp.pml_level(channel, box, group) <= fp.pml_level(channel, every, group)


@pytest.mark.parametrize("call", [fp.individual_capacity, fp.pml_level, fp.max_individual_capacity])
def test_a_list_of_priors_is_no_prior(call):
    with pytest.raises(fp.InvalidInput, match=r"PriorSet\.hull"):
        call(PAIR, [fp.Dense(p, [2, 2]) for p in LAWS])


def test_levels_over_sets_are_plain_floats():
    assert type(fp.pml_level(PAIR, HULL, row=0)) is float
