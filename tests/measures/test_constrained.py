"""Constrained capacity and balance function: no prior violates them, closed forms, edges."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import fastpriv as fp
import oracles as o
from fastpriv._core.clock import Meter
from fastpriv._matrices.searches.entropy import (
    Constrained,
    Search,
    database_bound,
    record_capacity,
)
from fastpriv._matrices.searches.entropy_parts import Bit, Individual, Slice
from fastpriv.channels.queries import Histogram, Listed, Sum, slice_ways, ways_error
from oracles import balance as ob

SHAPES = [
    ((2, 2), 3, 1.0),
    ((2, 2, 2, 2), 4, 10.0),
    ((2, 2, 2), 5, 0.3),
    ((2, 2, 2), 2, 1.0),
    ((2, 2, 2), 9, 1.0),
    ((2, 2, 2, 2), 2, 1.0),
    ((2, 2, 2, 2), 16, 5.0),
    ((4, 4), 4, 1.0),
    ((2, 3), 4, 0.3),
    ((2, 8), 5, 1.0),
    ((3, 1, 2), 2, 1.0),
    ((6,), 4, 1.0),
]


def channel(sizes, outputs, weight, seed=0):
    rng = np.random.default_rng([seed, outputs, *sizes])
    W = rng.dirichlet(np.full(outputs, weight), math.prod(sizes))
    if weight < 1.0:
        W = np.where(W < 0.05, 0.0, W)  # zeros, and with them slices that lack an output
        W /= W.sum(axis=1, keepdims=True)
    return W


def z_channel_information(x, p):
    """I of the Z channel that turns a one, of chance x, into a zero with chance p."""
    zero = 1.0 - x * (1.0 - p)
    noise = 0.0 if p in (0.0, 1.0) else -p * math.log(p) - (1 - p) * math.log(1 - p)
    return -zero * math.log(zero) - (1 - zero) * math.log(1 - zero) - x * noise


@pytest.mark.slow
@pytest.mark.parametrize(("sizes", "outputs", "weight"), SHAPES)
def test_no_prior_is_above_the_upper_end(sizes, outputs, weight):
    W = channel(sizes, outputs, weight)
    top = math.log(len(W))
    grid = np.array([0.0, 0.4, 0.7, 0.85, 0.95, 1.0]) * top
    found = fp.constrained_capacity(fp.Channel(W, sizes), grid, time_limit=0.5)
    assert (found.lower <= found.upper).all()
    assert (np.diff(found.lower) <= 0.0).all()
    assert (np.diff(found.upper) <= 0.0).all()
    priors = ob.random_priors(np.random.default_rng(1), W, 100_000)
    H, most = ob.entropies(priors), ob.informations(W, sizes, priors).max(axis=0)
    for b, upper in zip(grid, found.upper, strict=True):
        kept = most[b <= H]
        assert kept.max(initial=0.0) <= upper * (1.0 + 1e-12)


@pytest.mark.parametrize(("sizes", "outputs", "weight"), SHAPES)
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_the_lower_end_is_that_of_a_prior_with_enough_entropy(sizes, outputs, weight, share):
    W = channel(sizes, outputs, weight)
    b = share * math.log(len(W))
    problem = Constrained.of_matrix(W, sizes)
    found = Search(problem.individuals, b, 1e-3, math.inf, 0.0).run()
    value, law = max((one.best for one in problem.individuals), key=lambda best: best[0])
    individual = next(one for one in problem.individuals if one.best[1] is law)
    assert value == found.lower
    # Inputs back to databases, row by row of the matrix, wherever the individual's slices are.
    for i, m in enumerate(sizes):
        where = ob.value_of_row(sizes, i)
        if m > 1 and len(individual.slices) == m:
            prior = np.zeros(len(W))
            used = np.zeros(len(W), dtype=bool)
            for part, own in zip(individual.slices, individual.split(law), strict=True):
                for row, count, mass in zip(part.rows, np.exp(part.logs), own, strict=True):
                    same = np.flatnonzero((W[:, : W.shape[1]] == row).all(axis=1) & ~used)
                    a = where[same[0]]
                    same = same[where[same] == a]
                    assert len(same) == round(count)
                    used[same] = True
                    prior[same] = mass / count
            if used.all() and ob.exact_information(W, sizes, i, prior) >= value:
                assert o.entropy(o.normal(prior)) >= b
                return
    pytest.fail("no individual has this information")


@pytest.mark.slow(but=["sizes1-5-0.3", "sizes4-4-0.3"])
@pytest.mark.parametrize(("sizes", "outputs", "weight"), SHAPES[::2])
def test_never_above_what_the_whole_database_tells(sizes, outputs, weight):
    W = channel(sizes, outputs, weight)
    for share in (0.6, 0.9):
        b = share * math.log(len(W))
        found = fp.constrained_capacity(fp.Channel(W, sizes), b, time_limit=0.0)
        assert found.upper <= ob.whole_database(W, b) * (1.0 + 2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_one_row_is_a_concave_problem(seed):
    rng = np.random.default_rng(seed)
    W = rng.dirichlet(np.full(3, 0.7), 5)
    for share in (0.3, 0.7, 0.9, 0.99):
        b = share * math.log(5)
        found = fp.constrained_capacity(W, b, gap=1e-8)
        assert found.width <= 1e-8
        assert ob.whole_database(W, b) == pytest.approx(found.midpoint, abs=2e-8)


@pytest.mark.parametrize("p", [0.0, 0.3, 0.5, 0.9])
def test_z_channel_in_closed_form(p):
    # Beyond the entropy of its capacity prior, the prior is fixed by H = b.
    W = [[1.0, 0.0], [p, 1.0 - p]]
    x = 0.45 if p < 0.8 else 0.42
    b = -x * math.log(x) - (1 - x) * math.log(1 - x)
    best = fp.capacity_prior(fp.Channel(W)).pmf()
    value = max(z_channel_information(x, p), z_channel_information(1 - x, p))
    if -(best * np.log(best)).sum() < b:
        found = fp.constrained_capacity(W, b, gap=1e-8)
        assert value == pytest.approx(found.midpoint, rel=1e-7)
        assert found.width <= 1e-8
    else:
        assert fp.constrained_capacity(W, b).lower >= value


def test_symmetric_channels_lose_nothing_with_one_row():
    W = np.full((5, 5), 0.1) + 0.5 * np.eye(5)
    capacity = fp.channel_capacity(W)
    found = fp.constrained_capacity(W, [0.0, 1.0, math.log(5)])
    assert np.abs(found.lower - capacity.lower).max() < 1e-9
    assert np.abs(found.upper - capacity.upper).max() < 1e-9


@pytest.mark.parametrize("sizes", [(2, 2, 2), (4, 2), (3,)])
def test_the_identity_tells_everything_about_everyone(sizes):
    size = math.prod(sizes)
    grid = np.linspace(0.0, math.log(size), 5)
    found = fp.constrained_capacity(fp.Channel(np.eye(size), sizes), grid)
    # The uniform prior already gives ln m, and nothing gives more.
    assert found.lower == pytest.approx(math.log(max(sizes)), rel=1e-12)
    assert (found.upper >= math.log(max(sizes)) * (1 - 1e-15)).all()
    assert found.upper == pytest.approx(math.log(max(sizes)), rel=1e-8)


def test_constant_channels_tell_nothing():
    one = fp.Channel([[0.2, 0.8]] * 4, [2, 2])
    assert fp.constrained_capacity(one, 0.7) == fp.Bracket(0.0, 0.0)
    assert fp.balance_function(one, 1.2) == fp.Bracket(0.0, 0.0)
    assert fp.constrained_capacity([[0.2, 0.8]], 0.0) == fp.Bracket(0.0, 0.0)


@pytest.mark.parametrize("sizes", [(2, 2, 2), (2, 3)])
def test_both_ends_of_b(sizes):
    W = channel(sizes, 4, 1.0)
    made = fp.Channel(W, sizes)
    worst = fp.individual_capacity(made)
    assert fp.constrained_capacity(made, 0.0) == fp.Bracket(worst.lower, worst.upper)
    assert fp.balance_function(made, 0.0) == fp.Bracket(0.0, 0.0)
    even = np.full(len(W), 1.0 / len(W))
    exact = max(ob.exact_information(W, sizes, i, even) for i in range(len(sizes)))
    found = fp.constrained_capacity(made, math.log(len(W)))
    assert found.lower <= exact <= found.upper
    assert found.width < 1e-7  # ln N is no double: the set is a small ball
    # An adversary who attains C_1 lacks some entropy already.
    law = worst.adversary.law
    lacking = float(-(law * np.log(law)).sum())
    assert fp.constrained_capacity(made, 0.99 * lacking).lower == worst.lower


@pytest.mark.slow
def test_bracket_of_two_bits_against_brute_force():
    W = channel((2, 2), 3, 1.0)
    steps = np.arange(1, 80) / 80.0
    grid = np.stack(np.meshgrid(steps, steps, steps), axis=-1).reshape(-1, 3)
    grid = grid[grid.sum(axis=1) < 1.0]
    priors = np.column_stack([grid, 1.0 - grid.sum(axis=1)])
    H, most = ob.entropies(priors), ob.informations(W, (2, 2), priors).max(axis=0)
    for b in (0.8, 1.0, 1.2, 1.35):
        found = fp.constrained_capacity(fp.Channel(W, [2, 2]), b)
        best = most[b <= H].max()
        assert best <= found.upper
        assert best >= 0.97 * found.lower  # the grid comes close to the best prior
        assert found.width <= 1e-3 * found.lower


@pytest.mark.slow(but=["sizes6-3"])
@pytest.mark.parametrize(
    ("sizes", "outputs"),
    [
        ((2, 2), 4),
        ((2, 2, 2), 2),
        ((2, 2, 2), 8),
        ((2, 2, 2, 2), 2),
        ((2, 2, 2, 2), 4),
        ((2, 8), 5),
        ((3, 2), 3),
    ],
)
def test_small_shapes_reach_the_gap(sizes, outputs):
    W = channel(sizes, outputs, 1.0, seed=3)
    for share in (0.6, 0.95):
        found = fp.constrained_capacity(
            fp.Channel(W, sizes), share * math.log(len(W)), gap=1e-2, time_limit=3600.0
        )
        assert found.width <= 1e-2 * found.lower * (1.0 + 1e-9)


def test_rows_that_play_the_same_part_are_searched_once():
    matrix = np.array(fp.HammingChannel(3, 2, 1.0).matrix())
    assert len(Constrained.of_matrix(matrix, (2, 2, 2)).individuals) == 1
    count = fp.QueryChannel([0, 1, 1, 2], [[0.8, 0.2], [0.5, 0.5], [0.2, 0.8]], [2, 2])
    individual = Constrained.of_matrix(np.array(count.matrix()), (2, 2)).individuals[0]
    assert len(individual.W) == 4
    assert fp.constrained_capacity(count, 1.0) == fp.constrained_capacity(
        fp.Channel(count.matrix(), [2, 2]), 1.0
    )


def test_databases_that_tell_the_same_count_for_their_entropy():
    # Two values, each of two databases alike: ln 2 of entropy for free, so b = ln 4 costs nothing.
    W = np.array([[0.9, 0.1], [0.9, 0.1], [0.1, 0.9], [0.1, 0.9]])
    found = fp.constrained_capacity(fp.Channel(W, [2, 2]), 1.38)
    assert found.lower == pytest.approx(fp.channel_capacity(W).lower, rel=1e-4)


@pytest.mark.slow(but=["1.0", "30.0", "700.0"])
@pytest.mark.parametrize("epsilon", [1e-8, 1e-4, 1.0, 30.0, 700.0])
def test_all_strengths(epsilon):
    made = fp.HammingChannel(2, 2, epsilon)
    worst = fp.individual_capacity(made)
    found = fp.constrained_capacity(made, [0.9, 1.2], time_limit=3600.0)
    assert (found.lower > 0.0).all()
    assert (found.upper <= worst.upper).all()
    assert (found.width <= 2e-3 * found.lower).all()
    if epsilon <= 1e-4:  # to second order in epsilon the balance does not depend on it
        ratio = fp.constrained_capacity(fp.HammingChannel(2, 2, 1e-3), 1.2).midpoint
        scaled = found.midpoint[1] / epsilon**2
        assert scaled == pytest.approx(ratio / 1e-6, rel=5e-3)


@pytest.mark.slow
def test_example_1_of_the_paper():
    # x_1 in {0, 1, 2}, x_2 a bit, f = [x_1 = x_2] through a binary symmetric channel.
    f = [1, 0, 0, 1, 0, 0]
    p = 0.1
    made = fp.QueryChannel(f, [[1 - p, p], [p, 1 - p]], [3, 2])
    top = math.log(2) + p * math.log(p) + (1 - p) * math.log(1 - p)
    grid = np.linspace(0.0, math.log(6), 7)
    found = fp.constrained_capacity(made, grid)
    gained = fp.balance_function(made, grid)
    assert found.upper[0] == pytest.approx(top, rel=1e-9)
    # Lemma 1: 0 = g(0) <= g(b) <= g(ln N) <= C_1, non-decreasing.
    assert gained.upper[0] == 0.0
    assert (np.diff(gained.lower) >= 0.0).all()
    assert (np.diff(gained.upper) >= 0.0).all()
    assert gained.upper[-1] <= top * (1 + 1e-9)
    # Proposition 3, as arithmetic of the brackets: C_1^b + g(b) = C_1.
    assert (found.lower + gained.lower <= top * (1 + 1e-9)).all()
    assert (found.upper + gained.upper >= top * (1 - 1e-9)).all()
    # Under the uniform prior f is 1 with chance 1/2 given x_1 = 0, 1 and 0 given x_1 = 2.
    W = np.array(made.matrix())
    even = np.full(6, 1 / 6)
    exact = max(ob.exact_information(W, (3, 2), i, even) for i in range(2))
    assert found.lower[-1] <= exact <= found.upper[-1]


rows = st.lists(
    st.lists(st.integers(0, 9), min_size=3, max_size=3).filter(any), min_size=2, max_size=5
)


def slice_of(counts):
    W = np.array(counts, dtype=float)
    W = np.unique(W / W.sum(axis=1, keepdims=True), axis=0)
    r = 0.5 * W.mean(axis=0) + 0.5 / 3
    return Slice(W, np.log(np.arange(1.0, len(W) + 1)), r)


def height(part, law):
    v = law @ part.rows
    seen = v > 0.0
    return float((v[seen] * np.log(v[seen] / part.r[seen])).sum() - v.sum() + part.r.sum())


@pytest.mark.search(every=10)
@settings(deadline=None, max_examples=60)
@given(rows, st.integers(0, 2**32 - 1))
def test_lines_and_simplices_are_above_every_law(counts, seed):
    part = slice_of(counts)
    rng = np.random.default_rng(seed)
    laws = rng.dirichlet(np.full(len(part.rows), 0.5), 200)
    laws[0] = np.eye(len(part.rows))[0]
    line = part.tangent(laws[1])
    for law in laws:
        seen = law > 0.0
        entropy = -float(law[seen] @ (np.log(law[seen]) - part.logs[seen]))
        above = float(law @ (line.values + line.doubt)) - line.theta * entropy
        assert height(part, law) <= above + 1e-12
    # Halves cover the simplex they come from, and the chord is above in each.
    simplices = [part.whole()]
    if len(part.rows) > 1:
        for _ in range(3):
            simplices = [half for s in simplices for half in s.halves(laws[2], part)]
    for law in laws:
        homes = [s for s in simplices if (law @ s.B >= -1e-12).all()]
        assert homes
        for s in homes:
            assert s.B.sum(axis=1) == pytest.approx(1.0)
            assert law @ s.B @ s.corners == pytest.approx(law @ part.E, abs=1e-12)
            assert height(part, law) <= float(law @ s.B @ s.heights) + 1e-12


@pytest.mark.search(every=10)
@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.lists(st.integers(0, 9), min_size=3, max_size=3).filter(any), min_size=8, max_size=8
    ),
    st.floats(0.0, 0.98),
    st.integers(0, 2**32 - 1),
)
def test_cells_of_posteriors_hold_every_prior_below_their_bound(counts, share, seed):
    W = np.array(counts, dtype=float)
    W = W[:, W.any(axis=0)]
    W /= W.sum(axis=1, keepdims=True)
    b = share * math.log(8)
    individual = Constrained.of_matrix(W, (2, 2, 2)).individuals[0]
    bit = Bit(individual, b)
    cells = [bit.root(-math.inf, 1e-4)]
    for _ in range(4):
        cells = [child for cell in cells for child in cell.children(-1.0) or [cell]]
    laws = ob.random_priors(np.random.default_rng(seed), individual.W, 300)
    for law in laws:
        if individual.entropy(law) < b:
            continue
        joint = law[: bit.edges[1]] @ bit.W[: bit.edges[1]]
        Q = joint / np.maximum(law @ bit.W, 1e-300)
        homes = [
            cell
            for cell in cells
            if (cell.low <= Q + 1e-12).all() and (cell.high + 1e-12 >= Q).all()
        ]
        assert homes
        assert max(cell.bound for cell in homes) >= individual.information(law)[0]
        # Cells share only their borders, so that inside of one its own bound holds.
        for cell in homes:
            if (cell.low < Q - 1e-9).all() and (cell.high - 1e-9 > Q).all():
                assert cell.bound >= individual.information(law)[0]


@pytest.mark.slow
@example([[1, 4, 1]] * 4, 0.0, 0)  # nothing is told; the doubles of the check say 2e-16
@settings(deadline=None, max_examples=25)
@given(
    st.lists(
        st.lists(st.integers(0, 6), min_size=3, max_size=3).filter(any), min_size=4, max_size=4
    ),
    st.floats(0.0, 1.0),
    st.integers(0, 2**32 - 1),
)
def test_any_small_channel_with_zeros(counts, share, seed):
    W = np.array(counts, dtype=float)
    W /= W.sum(axis=1, keepdims=True)
    b = share * math.log(4)
    found = fp.constrained_capacity(fp.Channel(W, [2, 2]), b, gap=1e-2, time_limit=0.5)
    priors = ob.random_priors(np.random.default_rng(seed), W, 3_000)
    most = ob.informations(W, (2, 2), priors).max(axis=0)[b <= ob.entropies(priors)]
    assert most.max(initial=0.0) <= found.upper * (1.0 + 1e-12) + 1e-15
    even = np.full((1, 4), 0.25)
    assert ob.informations(W, (2, 2), even).max() <= found.upper * (1.0 + 1e-12) + 1e-15


@pytest.mark.parametrize("b", [-0.1, math.nan, math.inf, "1", None, [[0.1]], [], True])
def test_wrong_b(b):
    for function in (fp.constrained_capacity, fp.balance_function):
        with pytest.raises(fp.InvalidInput, match="b must"):
            function([[0.9, 0.1], [0.1, 0.9]], b)


def test_more_entropy_than_there_is():
    with pytest.raises(fp.Infeasible, match=r"ln 2 = 0\.693"):
        fp.constrained_capacity([[0.9, 0.1], [0.1, 0.9]], 0.7)
    with pytest.raises(fp.Infeasible, match="ln 4"):
        fp.balance_function(fp.HammingChannel(2, 2, 1.0), [0.0, 1.4])


def test_too_many_databases():
    with pytest.raises(fp.TooLarge, match="databases"):
        fp.constrained_capacity(fp.HammingChannel(40, 2, 1.0), 1.0)
    flat = np.full((1 << 15, 2), 0.5)
    flat[::2] = [0.4, 0.6]
    flat[:, 0] += np.linspace(0.0, 0.1, len(flat))
    flat[:, 1] -= np.linspace(0.0, 0.1, len(flat))
    with pytest.raises(fp.TooLarge, match="inputs with 2 outputs"):
        fp.constrained_capacity(fp.QueryChannel.count(len(flat) - 1, flat), 1.0)


def exact_ways(query, i):
    """The logs of the numbers of databases by answer, for each value of row i, from a list."""
    rows = query.space.rows(np.arange(query.space.size))
    ways = []
    for value in range(query.space.sizes[i]):
        answers, number = np.unique(query.of(rows[rows[:, i] == value]), return_counts=True)
        ways.append((answers.tolist(), np.log(number)))
    return ways


@pytest.mark.parametrize(
    "query",
    [
        Sum([np.array([0, 1])], np.zeros(6, int)),
        Sum([np.array([0, 2, 5]), np.array([1, 0])], np.array([0, 1, 0, 1, 1])),
        Sum([np.array([3, 1])], np.zeros(1, int)),
        Histogram(4, 3),
        Histogram(1, 2),
        Listed(np.arange(12) % 5, fp.Space([2, 3, 2]), 5),
    ],
)
def test_ways_by_listing(query):
    for i in range(query.space.n):
        for (answers, logs), (expected, exact) in zip(
            slice_ways(query, i), exact_ways(query, i), strict=True
        ):
            assert answers.tolist() == expected
            assert np.abs(logs - exact).max() <= ways_error(query)


def test_ways_of_many_rows():
    n = 1_500
    query = Sum([np.array([0, 1])], np.zeros(n, int))
    for answers, logs in slice_ways(query, 7):
        exact = [math.log(math.comb(n - 1, j)) for j in range(n)]
        assert np.abs(logs - exact).max() <= ways_error(query)
        assert answers[-1] - answers[0] == n - 1


@pytest.mark.parametrize("share", [0.0, 0.4, 0.8, 1.0])
def test_answers_with_multiplicities_are_all_databases(share, monkeypatch):
    apart = np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    law = np.exp(-0.7 * apart)
    counting = fp.QueryChannel.count(4, law / law.sum(axis=1, keepdims=True))
    b = share * math.log(16)
    listed = fp.constrained_capacity(counting, b)
    monkeypatch.setattr("fastpriv.measures.constrained._LISTED", 1)
    counted = fp.constrained_capacity(counting, b)
    assert listed.lower == pytest.approx(counted.lower, rel=1e-3)
    assert max(listed.lower, counted.lower) <= min(listed.upper, counted.upper)


@pytest.mark.slow
def test_counts_of_many_rows():
    """The least count has so few of 2^1200 databases that its share is no double.

    The output depends on the mean count alone, given the bit. Of all laws of the other bits with a
    given mean, independent ones have the largest entropy. So the best prior is found by bisection.
    """
    n = 1_200
    counting = fp.QueryChannel.count(n, np.linspace([0.9, 0.1], [0.1, 0.9], n + 1))
    b = 0.9 * n * math.log(2.0)

    def entropy(x):
        return -x * math.log(x) - (1.0 - x) * math.log1p(-x)

    low, high = 0.0, 0.5
    for _ in range(60):
        chance = 0.5 * (low + high)
        enough = math.log(2.0) + (n - 1) * entropy(chance) >= b
        low, high = (low, chance) if enough else (chance, high)
    exact = math.log(2.0) - entropy(0.1 + 0.8 * high * (n - 1) / n)
    bracket = fp.constrained_capacity(counting, b, time_limit=0.0)
    assert bracket.lower == pytest.approx(exact, rel=1e-9)
    assert exact * (1.0 - 1e-9) <= bracket.upper <= 1.03 * exact


@pytest.mark.slow(but=["0.1-0.3", "1.0-0.3", "50.0-0.3"])
@pytest.mark.parametrize("share", [0.3, 0.8, 0.99])
@pytest.mark.parametrize("weight", [0.1, 1.0, 50.0])
def test_bound_on_the_whole_database(share, weight):
    """No prior is above it, and for a single row it is the constrained capacity."""
    W, b = channel((9,), 5, weight), share * math.log(9)
    individual = Individual([(row[None], np.zeros(1)) for row in W])
    bound = database_bound(individual, b, Meter(None, math.inf), math.inf)
    priors = ob.random_priors(np.random.default_rng(1), W, 2_000)
    told = ob.informations(W, (9,), priors).max(axis=0)[b <= ob.entropies(priors)]
    assert told.max(initial=0.0) <= bound
    exact = fp.constrained_capacity(W, b, gap=1e-6)
    assert exact.lower <= bound <= 1.01 * exact.upper


def test_bound_on_the_whole_database_without_time():
    individual = Individual([(row[None], np.zeros(1)) for row in channel((4,), 3, 1.0)])
    assert database_bound(individual, 1.0, Meter(None, 1.0), 0.0) == math.inf


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.5, 0.8])
def test_both_sides_for_large_counts(share):
    n, b = 5, share * 5 * math.log(2.0)
    apart = np.abs(np.subtract.outer(np.arange(n + 1), np.arange(n + 1)))
    W = np.exp(-0.4 * apart)
    W /= W.sum(axis=1, keepdims=True)
    logs = np.log([math.comb(n - 1, j) for j in range(n)])
    below, above = 0.0, {t: 0.0 for t in (0.02, 0.1, 0.3)}
    for x in range(n):  # with the bit 0
        for other in range(1, n + 1):  # with the bit 1
            for a in np.linspace(0.02, 0.98, 49):
                told = o.mutual_information(W[[x, other]], np.array([a, 1.0 - a]))
                spread = a * logs[x] + (1.0 - a) * logs[other - 1]
                if spread - a * math.log(a) - (1.0 - a) * math.log(1.0 - a) >= b:
                    below = max(below, told)
                for t in above:
                    above[t] = max(above[t], told + t * (spread + math.log(2 * n) - b))
    bracket = fp.constrained_capacity(fp.QueryChannel.count(n, W), b, gap=1e-2, time_limit=1.0)
    assert below <= bracket.upper
    assert bracket.lower <= min(above.values())


def test_wrong_settings():
    for wrong in ({"gap": -1.0}, {"time_limit": math.nan}):
        with pytest.raises(fp.InvalidInput):
            fp.constrained_capacity([[0.9, 0.1], [0.1, 0.9]], 0.5, **wrong)


def test_plot_of_the_balance():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from fastpriv import plot

    made = fp.HammingChannel(2, 2, 1.0)
    ax = plot.balance(made, points=5)
    assert "entropy" in ax.get_xlabel()
    assert "nats" in ax.get_ylabel()
    found = fp.constrained_capacity(made, np.linspace(0.0, math.log(4), 5))
    line = ax.lines[0]
    assert line.get_xdata()[-1] == pytest.approx(math.log(4))
    assert (line.get_ydata()[1::2] >= found.lower - 1e-12).all()  # stairs from the upper left
    assert len(ax.collections) == 2
    matplotlib.pyplot.close("all")


@pytest.mark.parametrize("seed", range(6))
def test_one_record_is_a_concave_problem(seed):
    """Against a grid of priors, and against the search that knows no concavity."""
    rng = np.random.default_rng(seed)
    W = rng.dirichlet(np.full(4, 0.5 + seed), 3)
    most = fp.channel_capacity(W).upper
    steps = 60
    grid = np.array([(i, j, steps - i - j) for i in range(steps + 1) for j in range(steps + 1 - i)])
    P = grid / steps
    logs = np.log(np.where(P > 0.0, P, 1.0))
    entropy = -(P * logs).sum(axis=1)
    q = P @ W
    information = P @ (W * np.log(W)).sum(axis=1) - (q * np.log(q)).sum(axis=1)
    for b in np.linspace(0.3, 1.09, 7):
        found, law = record_capacity(W, b, 1e-3, most)
        assert -np.sum(law[law > 0.0] * np.log(law[law > 0.0])) >= b * (1.0 - 1e-12)
        assert found is not None
        assert found.width <= 1e-3 * found.lower
        allowed = information[entropy >= b]
        assert allowed.max(initial=0.0) <= found.upper
        assert found.lower <= most
        searched = Constrained.of_matrix(W, (3,)).at(b, 1e-3, most, None)
        assert found.lower <= searched.upper
        assert searched.lower <= found.upper
        if b < 1.0:  # close to the uniform prior the grid is too coarse
            assert found.lower <= allowed.max() + 0.02
