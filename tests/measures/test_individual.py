"""Individual and group capacity: brute force, closed forms, theorems, structures, bad input."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
import oracles as o
from cases import kernel, law
from fastpriv import kernels
from fastpriv._matrices.capacity import capacities
from fastpriv._matrices.selection import _Node, _Search, best_selection, mean_questions
from oracles import individual as brute

SHAPES = [(1,), (2,), (4,), (2, 2), (2, 3), (3, 2), (2, 1, 2), (2, 2, 2), (3, 3), (4, 2)]


def channel(rng, sizes, outputs, zeros=False):
    """A random channel, some of its rows equal, some of its entries zero."""
    size = math.prod(sizes)
    matrix = kernel(rng, size, outputs, floor=0.0)
    if zeros:
        matrix = np.where(rng.random(matrix.shape) < 0.3, 0.0, matrix)
        matrix[:, 0] += 0.05
        matrix /= matrix.sum(axis=1, keepdims=True)
    if size > 2:
        matrix[size // 2] = matrix[0]
    return matrix


def holds(found, low, high):
    """Whether a bracket and an oracle's bounds on the same number meet."""
    return found.lower <= high + 1e-12 and low <= found.upper + 1e-12


def reached(found, matrix, sizes):
    """Whether the adversary's databases fit together and carry the lower end of the bracket."""
    who = found.adversary
    values = who.databases[:, who.rows]
    assert len({tuple(v) for v in values.tolist()}) == len(values)
    assert ((who.databases >= 0) & (who.databases < np.array(sizes))).all()
    assert (who.law >= 0).all()
    assert abs(who.law.sum() - 1.0) < 1e-12
    rows = fp.Space(sizes).index(who.databases)
    # The law has been divided by its sum, which may cost its last digit.
    return found.lower <= float(brute.information(matrix[rows], who.law)) * (1 + 1e-13)


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("outputs", [1, 2, 3, 6])
@pytest.mark.parametrize("sizes", SHAPES)
def test_brute_force(sizes, outputs, zeros):
    rng = np.random.default_rng([outputs, zeros, *sizes])
    matrix = channel(rng, sizes, outputs, zeros)
    for k in range(1, len(sizes) + 1):
        found = fp.group_capacity(fp.Channel(matrix, sizes), k)
        assert holds(found, *brute.group_capacity(matrix, sizes, k))
        assert found.width <= 1e-9
        assert reached(found, matrix, sizes)


def test_larger_shapes_agree_with_all_selections():
    rng = np.random.default_rng(1)
    for m, n, outputs in [(3, 3, 3), (3, 3, 12), (4, 2, 5), (5, 2, 3)]:
        matrix = channel(rng, (m,) * n, outputs)
        found = fp.individual_capacity(fp.Channel(matrix, (m,) * n))
        assert found.width <= 1e-9
        most = 0.0
        for i in range(n):
            chosen = brute.selections(matrix, (m,) * n, (i,))
            low, high, _ = capacities(chosen, 1e-10)
            most = max(most, high.max())
            assert low.max() <= found.upper
        assert found.lower <= most


def test_random_channel_with_many_databases_closes():
    rng = np.random.default_rng(2)
    matrix = rng.dirichlet(np.ones(8), 512)
    found = fp.individual_capacity(fp.Channel(matrix, [2] * 9))
    first, second = np.triu_indices(512, 1)
    pairs = np.stack([matrix[first], matrix[second]], axis=1)
    low, high, _ = capacities(pairs, 1e-10)
    assert low.max() <= found.upper
    assert found.lower <= high.max()
    assert found.width <= 1e-9
    assert reached(found, matrix, [2] * 9)


def test_example_1():
    # x_1 in {0, 1, 2}, x_2 in {0, 1}, and whether they are equal, flipped with chance p.
    p = 0.125
    values = [int(a == b) for a in range(3) for b in range(2)]
    query = fp.QueryChannel(values, [[1 - p, p], [p, 1 - p]], [3, 2])
    exact = o.log(o.num(2)) - o.entropy([o.num(p), o.num(1 - p)])
    found = fp.individual_capacity(query)
    assert found.lower <= exact <= found.upper
    assert found.width < 1e-9
    assert reached(found, query.matrix(), [3, 2])


def test_data_independent_rows_reach_the_closed_form():
    # Rows are rotations of one law; three of them, one per value of x_1, have equal column sums.
    z = np.array([0.5, 0.25, 0.25])
    matrix = np.array([np.roll(z, a + b) for a in range(3) for b in range(3)])
    found = fp.individual_capacity(fp.Channel(matrix, [3, 3]))
    exact = o.log(o.num(3)) - o.entropy([o.num(v) for v in z])
    assert found.lower <= exact <= found.upper
    assert found.width < 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_groups_are_monotone_and_subadditive(seed):
    rng = np.random.default_rng(seed)
    mechanism = fp.Channel(channel(rng, (2, 3, 2), 4), (2, 3, 2))
    found = [fp.group_capacity(mechanism, k) for k in (1, 2, 3)]
    whole = fp.channel_capacity(mechanism)
    for k, (less, more) in enumerate(itertools.pairwise(found), start=2):
        assert less.lower <= more.upper
        assert more.lower <= k * found[0].upper  # Theorem 4
    assert holds(found[2], whole.lower, whole.upper)
    assert found[0].lower <= math.log(3)


def test_parallel_composition_leaks_more_than_its_parts():
    p = 0.125
    flip = [[1 - p, p], [p, 1 - p]]
    one, two = fp.ProductChannel([flip]), fp.ProductChannel([flip, flip])
    assert fp.individual_capacity(two).lower > fp.individual_capacity(one).upper + 0.1


# The engine.


@st.composite
def laws(draw, rows):
    outputs = draw(st.integers(1, 6))
    entry = st.one_of(st.just(0.0), st.floats(1e-12, 1.0), st.floats(0.99, 1.0))
    found = []
    for _ in range(rows):
        row = np.array(draw(st.lists(entry, min_size=outputs, max_size=outputs)))
        row[0] += row.sum() == 0
        found.append(row / row.sum())
    if draw(st.booleans()):  # close together
        found = [0.999999 * found[0] + 0.000001 * row for row in found]
    return np.array(found)


@settings(max_examples=300, deadline=None)
@given(laws(2))
def test_pair_bounds_hold(rows):
    zero, one = np.array([0]), np.array([1])
    loose, sharp = np.empty((1, 1)), np.empty(1)
    kernels.pair_bounds(rows, zero, one, 0, 1, loose)
    kernels.sharp_pair_bounds(rows, zero, one, 0, 1, sharp)
    low = capacities(rows[None], 1e-13)[0][0]
    assert low <= loose[0, 0] + 1e-280
    assert low <= sharp[0] + 1e-280
    assert loose[0, 0] <= low + 0.02  # and are of use
    assert sharp[0] <= low + 0.005


@settings(max_examples=100, deadline=None)
@given(st.integers(3, 6).flatmap(laws))
def test_questions_bound_capacity_by_the_best_pair(rows):
    whole = capacities(rows[None], 1e-10)[0][0]
    pairs = np.array([[a, b] for a, b in itertools.combinations(rows, 2)])
    assert whole <= mean_questions(len(rows)) * capacities(pairs, 1e-10)[1].max()


def test_mean_questions():
    assert [mean_questions(m) for m in (1, 2, 4, 8)] == [0.0, 1.0, 2.0, 3.0]
    assert mean_questions(3) == pytest.approx(5 / 3, rel=1e-15)
    assert mean_questions(5) == pytest.approx(12 / 5, rel=1e-15)


@settings(max_examples=60, deadline=None)
@given(laws(6), st.sampled_from([0.0, 1e-9, 1e-3]))
def test_divergence_bounds_hold_and_selections_are_optimal(rows, gap):
    slices = [np.array([0, 1, 2]), np.array([2, 3]), np.array([4, 5, 0])]
    found = best_selection(rows, [slices], gap)
    low, high, _ = capacities(rows[np.array(list(itertools.product(*slices)))], 1e-12)
    assert low.max() <= found.upper
    assert found.lower <= high.max()
    assert found.upper - found.lower <= max(gap, 1e-10) * max(1.0, found.upper) + 1e-279
    assert all(row in part for row, part in zip(found.choice, slices, strict=True))


@pytest.mark.parametrize("sizes", [(3, 3), (2, 2, 2)])
def test_no_time_leaves_a_true_bracket(sizes):
    matrix = channel(np.random.default_rng(3), sizes, 5)
    for k in (1, 2):
        found = fp.group_capacity(fp.Channel(matrix, sizes), k, time_limit=0.0)
        assert holds(found, *brute.group_capacity(matrix, sizes, k))
        assert found.upper <= k * math.log(3) + 1e-12
        assert reached(found, matrix, sizes)


def test_hard_selections_end_in_a_true_bracket():
    rng = np.random.default_rng(4)
    matrix = rng.dirichlet(np.ones(40), 3**5)
    found = fp.individual_capacity(fp.Channel(matrix, [3] * 5), time_limit=0.5)
    pairs = np.array([matrix[list(pair)] for pair in itertools.combinations(range(3**5), 2)])
    # Any two databases are a choice of two values of some row.
    assert capacities(pairs, 1e-9)[0].max() <= found.upper <= math.log(3) * (1 + 1e-12)
    assert 0 < found.lower < found.upper
    assert reached(found, matrix, [3] * 5)


@pytest.mark.parametrize("distance", [1e-3, 1e-7, 1e-12])
def test_close_rows_keep_their_digits(distance):
    matrix = np.array([[0.5, 0.5], [0.5 + distance, 0.5 - distance], [0.5, 0.5]])
    found = fp.individual_capacity(matrix)
    exact = float(brute.information(matrix, found.adversary.law))
    assert found.width <= 1e-9 * found.lower
    assert found.lower == pytest.approx(exact, rel=1e-8)


def test_nothing_to_tell():
    same = fp.Channel([[0.25, 0.75]] * 6, [2, 3])
    for k in (1, 2):
        found = fp.group_capacity(same, k)
        assert (found.lower, found.upper) == (0.0, 0.0)
    assert fp.individual_capacity(fp.Channel([[0.5, 0.5]] * 4, [2, 2])).upper == 0.0
    assert fp.individual_capacity([[0.5, 0.5]]).upper == 0.0
    assert fp.individual_capacity([[1.0], [1.0]]).upper == 0.0


# Structures.


def queries(seed=0):
    """Structured queries beside the same ones with all databases listed."""
    rng = np.random.default_rng(seed)
    found = []

    def add(name, make, values, sizes, answers, outputs=4):
        table = channel(rng, (answers,), outputs)
        found.append((name, make(table), fp.QueryChannel(values, table, sizes)))

    for n in (1, 2, 5):
        values = [sum(x) for x in brute.databases([2] * n)]
        add(f"count-{n}", lambda t, n=n: fp.QueryChannel.count(n, t), values, [2] * n, n + 1)
    for scores in (
        [[0, 1, 3], [0, 1, 3], [2, 5], [0, 4]],
        [[0, 2], [0, 2], [0, 2]],
        [[1, 0, 1], [0, 0], [3]],
        [[0], [0]],
    ):
        sizes = [len(s) for s in scores]
        values = [sum(s[v] for s, v in zip(scores, x, strict=True)) for x in brute.databases(sizes)]
        top = sum(map(max, scores))
        add(f"sum-{scores}", lambda t, s=scores: fp.QueryChannel.sum(s, t), values, sizes, top + 1)
    for n, m in ((3, 2), (2, 3), (3, 3), (2, 4), (3, 1)):
        order = [c for c in itertools.product(range(n + 1), repeat=m - 1) if sum(c) <= n]
        rows = brute.databases([m] * n)
        values = [order.index(tuple(x.count(v) for v in range(1, m))) for x in rows]
        add(
            f"histogram-{n}-{m}",
            lambda t, n=n, m=m: fp.QueryChannel.histogram(n, m, t),
            values,
            [m] * n,
            len(order),
        )
    return found


QUERIES = queries()
NAMES = [name for name, _, _ in QUERIES]


def priors(sizes, seed=1):
    rng = np.random.default_rng(seed)
    found = [fp.Product([law(rng, m) for m in sizes]), fp.Dense(law(rng, math.prod(sizes)), sizes)]
    if len(set(sizes)) == 1 and sizes[0] > 1:
        n, m = len(sizes), sizes[0]
        weights = np.where(sum(np.indices((n + 1,) * (m - 1))) <= n, 1.0, 0.0)
        weights *= rng.random(weights.shape)
        found.append(fp.Exchangeable(weights / weights.sum()))
        found.append(fp.Markov(law(rng, m), kernel(rng, m, m), n))
    return found


@pytest.mark.parametrize(("name", "structured", "listed"), QUERIES, ids=NAMES)
def test_structured_queries_are_the_listed_ones(name, structured, listed):
    assert np.array_equal(structured.matrix(), listed.matrix())
    rows = fp.Space(structured.space.sizes).rows(np.arange(structured.space.size))
    assert np.array_equal(structured._query.of(rows), listed._query.values)
    assert np.array_equal(structured._query.seen(), listed._query.seen())
    assert np.array_equal(structured._query.neighbours(), listed._query.neighbours())
    assert np.array_equal(structured._query.class_sizes(), listed._query.class_sizes())
    for measure in (
        fp.dp_level,
        fp.leakage_capacity,
        fp.maximal_leakage,
        fp.channel_capacity,
        fp.singles_out,
        lambda c: fp.hockey_stick(c, 0.3),
        lambda c: fp.hockey_stick_epsilon(c, 0.1),
        lambda c: c.sample(rows, rng=1).tolist(),
        lambda c: fp.max_individual_capacity(c, "independent"),
    ):
        assert measure(structured) == measure(listed)
    for k in range(1, structured.space.n + 1):
        found, other = fp.group_capacity(structured, k), fp.group_capacity(listed, k)
        assert holds(found, other.lower, other.upper)
        assert found.width <= 1e-9
        assert reached(found, listed.matrix(), listed.space.sizes)


@pytest.mark.parametrize(("name", "structured", "listed"), QUERIES, ids=NAMES)
def test_structured_queries_under_priors(name, structured, listed):
    for prior in priors(structured.space.sizes):
        output = structured.output(prior).pmf()
        assert np.allclose(output, listed.output(prior).pmf(), rtol=1e-13)
        assert fp.mutual_information(structured, prior) == pytest.approx(
            fp.mutual_information(listed, prior), rel=1e-9, abs=1e-15
        )
        for measure in (fp.pml_level, fp.max_information, fp.identifiability_level):
            near, exact = measure(structured, prior), measure(listed, prior)
            assert near == pytest.approx(exact, rel=1e-9, abs=1e-12)
        near, exact = fp.row_pml(structured, prior, 0), fp.row_pml(listed, prior, 0)
        assert np.allclose(near, exact, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("name", "structured", "listed"), QUERIES, ids=NAMES)
def test_best_prior_of_a_structured_query(name, structured, listed):
    best = fp.capacity_prior(structured)
    told = fp.mutual_information(listed, fp.Dense(best.pmf(), listed.space.sizes))
    assert told == pytest.approx(fp.channel_capacity(listed).lower, rel=1e-9, abs=1e-12)


def test_count_over_many_bits():
    n = 10_000
    share = np.linspace(0.125, 0.875, n + 1)
    count = fp.QueryChannel.count(n, np.stack([1 - share, share], axis=1))
    exact = o.log(o.num(2)) - o.entropy([o.num(0.125), o.num(0.875)])
    found = fp.individual_capacity(count)
    assert found.lower <= exact <= found.upper
    assert found.width < 1e-9
    assert sorted(found.adversary.databases.sum(axis=1).tolist()) == [0, n]
    # Two people together, and one alone where the kernel sees the ends only.
    assert holds(fp.group_capacity(count, 2), found.lower, found.upper)
    step = float(np.log(share[1:] / share[:-1]).max())
    assert fp.dp_level(count) == pytest.approx(step, rel=1e-9)
    told = fp.mutual_information(count, fp.Exchangeable.beta_binomial(n, 1.0, 1.0))
    bits = fp.Product.iid([0.5, 0.5], n)
    assert 0 < fp.mutual_information(count, bits) < told < found.upper
    assert count.sample(np.zeros((3, n), dtype=int), rng=0).shape == (3,)
    assert not fp.singles_out(count)
    assert 0 < fp.row_pml(count, bits, 0).max() < fp.pml_level(count, bits) < math.log(2)
    with pytest.raises(fp.TooLarge, match=r"databases|matrix"):
        count.matrix()


@pytest.mark.parametrize("rate", [0.5, 2.0, 8.0, 400.0])
def test_geometric_noise_on_a_count(rate):
    n = 400
    steps = np.arange(n + 1)
    noise = np.exp(-rate / n * np.abs(steps[:, None] - steps))
    noise /= noise.sum(axis=1, keepdims=True)
    found = fp.individual_capacity(fp.QueryChannel.count(n, noise))
    ends = fp.channel_capacity(noise[[0, n]])
    assert found.width < 1e-9
    assert ends.lower <= found.upper
    # Any other pair is no better.
    first, second = np.triu_indices(n + 1, 1)
    some = np.random.default_rng(0).choice(len(first), 3000)
    pairs = np.stack([noise[first[some]], noise[second[some]]], axis=1)
    assert capacities(pairs, 1e-9)[0].max() <= found.upper


def test_answers_that_tell_a_bit_apart_almost_surely():
    # Most pairs are within 1e-4 of ln 2, so that no output law of two rows sets the best apart.
    n, outputs = 2_000, 60
    off = np.abs(np.arange(outputs) - np.linspace(0, outputs - 1, n + 1)[:, None])
    weights = np.exp(-off / 3)
    channel = fp.QueryChannel.count(n, weights / weights.sum(axis=1, keepdims=True))
    found = fp.individual_capacity(channel)
    assert found.width <= 1e-9
    ends = fp.channel_capacity(channel._kernel.matrix[[0, n]])
    assert ends.lower - 1e-9 <= found.upper < math.log(2) - 1e-5


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 3), st.booleans())
def test_what_slices_have_in_common_bounds_every_selection(seed, m, close):
    rng = np.random.default_rng(seed)
    outputs = int(rng.integers(1, 6))
    table = rng.dirichlet(np.full(outputs, 0.3), size=8)
    table = np.where(rng.random(table.shape) < 0.2, 0.0, table)
    table[:, 0] += 1e-3
    table = table / table.sum(axis=1, keepdims=True)
    if close:
        table = 0.99 * table[:1] + 0.01 * table
        table /= table.sum(axis=1, keepdims=True)
    slices = tuple(np.unique(rng.integers(0, 8, 3)) for _ in range(m))
    bound = _Search(table, 1e-9, math.inf).told_apart(_Node(0, slices))
    choices = np.array(list(itertools.product(*slices)))
    lower, upper, _ = capacities(table[choices], 1e-9)
    assert lower.max() <= bound
    if len(choices) == 1:  # nothing is lost where there is one row each
        assert bound <= upper.max() + 1e-9


def test_rows_of_their_own_kind_are_asked_about_at_once():
    scores = [[0, 1 << i] for i in range(6)]
    rng = np.random.default_rng(5)
    channel = fp.QueryChannel.sum(scores, rng.dirichlet(np.ones(4), size=64))
    assert len(channel._query.candidates(1, 4)) == 1
    found = fp.individual_capacity(channel)
    listed = fp.individual_capacity(fp.Channel(channel.matrix(), [2] * 6))
    assert found.lower <= listed.upper
    assert listed.lower <= found.upper
    (i,) = found.adversary.rows
    assert sorted(found.adversary.databases[:, i]) == [0, 1]
    information = fp.mutual_information(
        fp.Channel(channel.matrix()[channel.space.index(found.adversary.databases)]),
        found.adversary.law,
    )
    assert information >= found.lower * (1 - 1e-12)


def test_rows_without_a_choice_may_be_many():
    laws = [[0.5, 0.5], [0.2, 0.8], [0.9, 0.1]]
    found = fp.individual_capacity(fp.Channel(laws, [1] * 70 + [3]))
    assert found.adversary.rows == (70,)
    assert found.lower in fp.channel_capacity(laws, gap=1e-8)


def test_products_of_many_rows_do_not_overflow():
    rng = np.random.default_rng(3)
    rows = [rng.dirichlet(np.ones(4), size=3) for _ in range(400)]
    found = fp.individual_capacity(fp.ProductChannel(rows), gap=1e-2, time_limit=0.0)
    assert 0.0 < found.lower <= found.upper <= math.log(3) * (1 + 1e-12)


def test_sum_over_many_people():
    stars, n = [0, 1, 2, 5], 300
    high = np.linspace(0.25, 0.75, 5 * n + 1)
    total = fp.QueryChannel.sum([stars] * n, np.stack([1 - high, high], axis=1))
    found = fp.individual_capacity(total)
    exact = o.log(o.num(2)) - o.entropy([o.num(0.25), o.num(0.75)])
    assert found.lower <= exact <= found.upper
    sums = np.array(stars)[found.adversary.databases].sum(axis=1)
    assert {0, 5 * n} <= set(sums[found.adversary.law > 0.1].tolist())


@pytest.mark.parametrize("epsilon", [0.0, 1e-8, 0.3, 3.0, 40.0, 700.0])
@pytest.mark.parametrize("n", [1, 2, 7])
def test_hamming_bits(n, epsilon):
    found = fp.individual_capacity(fp.HammingChannel(n, 2, epsilon))
    exact = brute.opposite(n, 2, epsilon)
    assert found.lower <= exact <= found.upper
    assert found.width <= 1e-12 * found.upper
    assert found.adversary.databases.tolist() == [[0] * n, [1] * n]


@pytest.mark.parametrize("sizes", [(2, 2, 2), (3, 3), (2, 3), (3, 1, 2), (4,), (1, 1)])
def test_hamming_agrees_with_its_matrix(sizes):
    mechanism = fp.HammingChannel(len(sizes), sizes, 0.8)
    for k in range(1, len(sizes) + 1):
        found = fp.group_capacity(mechanism, k)
        assert holds(found, *brute.group_capacity(mechanism.matrix(), sizes, k))
        assert found.width <= 1e-9
        assert reached(found, mechanism.matrix(), sizes)


@pytest.mark.parametrize("epsilon", [1e-12, 1e-8, 1e-3])
def test_small_levels_survive_the_rounding_of_the_matrix(epsilon):
    # Two copies of a row of three values tell e^2/9 per copy of its uniform law, to first order.
    found = fp.individual_capacity(fp.HammingChannel(2, 3, epsilon))
    assert found.lower <= 2 * epsilon**2 / 9 * (1 + epsilon)
    assert found.upper >= 2 * epsilon**2 / 9 * (1 - epsilon)


def test_hamming_with_many_rows():
    small = fp.individual_capacity(fp.HammingChannel(3000, 2, 0.02))
    large = fp.individual_capacity(fp.HammingChannel(30_000, 2, 0.02))
    assert small.width < 1e-10
    assert small.upper < large.lower < math.log(2)
    assert small.lower == pytest.approx(float(brute.opposite(3000, 2, 0.02)), rel=1e-10)
    three = fp.individual_capacity(fp.HammingChannel(500, 3, 0.5))
    assert three.lower > math.log(2)
    assert three.upper <= math.log(3) * (1 + 1e-12)
    mixed = fp.individual_capacity(fp.HammingChannel(60, [2] * 30 + [3] * 30, 0.4))
    assert float(brute.opposite(30, 3, 0.4)) <= mixed.upper
    pair = fp.group_capacity(fp.HammingChannel(40, 2, 0.5), 2)
    assert pair.lower >= 2 * fp.individual_capacity(fp.HammingChannel(20, 2, 0.5)).lower * (
        1 - 1e-12
    )
    assert pair.upper <= 2 * math.log(2) * (1 + 1e-12)


@pytest.mark.parametrize(("n", "m"), [(3, 50), (1, 5000), (40, 7), (2, 1)])
def test_hamming_rows_of_many_values(n, m):
    found = fp.individual_capacity(fp.HammingChannel(n, m, 2.0))
    one = fp.channel_capacity(fp.HammingChannel(1, m, 2.0))
    assert one.lower * (1 - 1e-9) <= found.lower <= found.upper
    assert found.upper <= n * one.upper * (1 + 1e-9)
    assert found.upper <= math.log(m) * (1 + 1e-12)


def test_brackets_of_copies_hold():
    from fastpriv.measures.individual.copies import by_copies

    for sizes in ((3, 3), (2, 3), (2, 2, 2), (3, 2, 1)):
        mechanism = fp.HammingChannel(len(sizes), sizes, 0.9)
        for k in range(1, len(sizes) + 1):
            found = by_copies(mechanism._symmetric(), mechanism._kernels.assignment, k)
            assert holds(found, *brute.group_capacity(mechanism.matrix(), sizes, k))
            assert reached(found, mechanism.matrix(), sizes)


def test_products():
    rng = np.random.default_rng(5)
    z, other = [[1.0, 0.0], [0.5, 0.5]], kernel(rng, 2, 3)
    for factors in ([z, z], [z, other, z], [other, kernel(rng, 3, 2)]):
        mechanism = fp.ProductChannel(factors)
        sizes = mechanism.space.sizes
        found = fp.individual_capacity(mechanism)
        assert holds(found, *brute.group_capacity(mechanism.matrix(), sizes, 1))
        assert found.width <= 1e-9
    many = fp.ProductChannel([z, other] * 10)
    found = fp.individual_capacity(many, time_limit=5.0)
    few = fp.individual_capacity(fp.ProductChannel([z, other] * 2))
    assert few.lower <= found.lower <= found.upper <= math.log(2) * (1 + 1e-12)
    assert found.adversary.databases.shape == (2, 20)


def test_other_structures_go_through_their_matrix():
    prior = fp.Product.iid([0.6, 0.4], 3)
    solved = fp.solve_pd_dp(fp.Exchangeable([0.1, 0.2, 0.3, 0.4]), 1.0).channel
    for mechanism in (fp.PosteriorChannel(prior, 1.0), fp.TiltedChannel(prior, 0.7), solved):
        sizes = mechanism.space.sizes
        for k in (1, 2):
            found = fp.group_capacity(mechanism, k)
            assert holds(found, *brute.group_capacity(np.array(mechanism.matrix()), sizes, k))


# Largest gain of one output.


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
        first, second = (np.array(brute.databases(sizes)[j]) for j in (x, other))
        for i in np.flatnonzero(first != second):
            pmf = np.full(6, 0.0)
            pmf[x], pmf[other] = 1e-9, 1 - 1e-9  # almost certainly the other database
            best = max(best, brute.gain(matrix, pmf, sizes, i))
            if (first != second).sum() == 1:  # rows stay independent
                best_alone = max(best_alone, brute.gain(matrix, pmf, sizes, i))
    assert best == pytest.approx(every, rel=1e-6)
    assert best_alone == pytest.approx(alone, rel=1e-6)
    for _ in range(200):  # Theorem 1: no independent prior gains more than the DP level
        pmf = np.multiply.outer(law(rng, 2, 0.0), law(rng, 3, 0.0)).reshape(-1)
        assert max(brute.gain(matrix, pmf, sizes, i) for i in (0, 1)) <= alone
        pmf = law(rng, 6, 0.0) ** 4
        assert max(brute.gain(matrix, pmf / pmf.sum(), sizes, i) for i in (0, 1)) <= every


def test_max_individual_capacity_bounds_the_average():
    mechanism = fp.Channel(kernel(np.random.default_rng(6), 8, 4), [2] * 3)
    assert fp.individual_capacity(mechanism).lower <= fp.max_individual_capacity(mechanism)
    assert fp.max_individual_capacity([[0.5, 0.5], [1.0, 0.0]]) == math.inf


# Words.


def test_adversaries_read_as_attacks():
    short = fp.individual_capacity(fp.HammingChannel(2, 2, 1.0)).adversary
    assert repr(short).splitlines() == [
        "Adversary against row 0, who believes in",
        "  0 0  with probability 0.5",
        "  1 1  with probability 0.5",
    ]
    long = fp.individual_capacity(fp.HammingChannel(10_000, 2, 0.001)).adversary
    assert "1 (10000 times)  with probability 0.5" in repr(long)
    group = fp.group_capacity(fp.HammingChannel(4, 2, 1.0), 4).adversary
    assert "rows 0, 1, 2, 3" in repr(group)
    assert "and 8 more" in repr(group)
    ragged = fp.Adversary((0,), np.arange(40)[None] % 7, np.ones(1))
    assert repr(ragged).endswith("6 0 1 ...  with probability 1")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda c: fp.group_capacity(c, 0), "k must be at least 1"),
        (lambda c: fp.group_capacity(c, 3), "at most the number of rows 2"),
        (lambda c: fp.group_capacity(c, 1.5), "k must be an integer"),
        (lambda c: fp.individual_capacity(c, gap=-1.0), "gap"),
        (lambda c: fp.individual_capacity(c, time_limit=math.inf), "time_limit"),
        (lambda c: fp.individual_capacity(fp.Uniform(2, 2)), "must be a channel"),
        (lambda c: fp.max_individual_capacity(c, "some"), '"all" or "independent"'),
        (lambda c: fp.QueryChannel.count(2, [[1.0]] * 2), "each of 3 counts, got 2"),
        (lambda c: fp.QueryChannel.count(0, [[1.0]]), "n must be at least 1"),
        (lambda c: fp.QueryChannel.sum([[0, 1]] * 2, [[1.0]] * 4), "each of 3 sums, got 4"),
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
