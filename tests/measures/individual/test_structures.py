"""Individual and group capacity of structured channels."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
import oracles as o
from cases import kernel, law
from fastpriv._core.clock import Clock, Meter
from fastpriv._matrices.capacity import capacities
from fastpriv._matrices.searches.selection import Node, Search
from individual_cases import channel, holds, reached
from oracles import individual as brute


def queries(seed=0):
    """Structured queries beside the same ones with all databases listed."""
    rng = np.random.default_rng(seed)
    found = []

    def add(name, make, values, sizes, answers, outputs=4):
        table = channel(rng, (answers,), outputs)
        found.append((name, make(table), fp.QueryChannel(values, table, sizes)))

    for n in (1, 2, 5):
        values = [sum(x) for x in o.databases([2] * n)]
        add(f"count-{n}", lambda t, n=n: fp.QueryChannel.count(n, t), values, [2] * n, n + 1)
    for scores in (
        [[0, 1, 3], [0, 1, 3], [2, 5], [0, 4]],
        [[0, 2], [0, 2], [0, 2]],
        [[1, 0, 1], [0, 0], [3]],
        [[0], [0]],
    ):
        sizes = [len(s) for s in scores]
        values = [sum(s[v] for s, v in zip(scores, x, strict=True)) for x in o.databases(sizes)]
        top = sum(map(max, scores))
        add(f"sum-{scores}", lambda t, s=scores: fp.QueryChannel.sum(s, t), values, sizes, top + 1)
    for n, m in ((3, 2), (2, 3), (3, 3), (2, 4), (3, 1)):
        order = [c for c in itertools.product(range(n + 1), repeat=m - 1) if sum(c) <= n]
        rows = o.databases([m] * n)
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
    assert np.array_equal(structured.query.of(rows), listed.query.values)
    assert np.array_equal(structured.query.seen(), listed.query.seen())
    assert np.array_equal(structured.query.neighbours(), listed.query.neighbours())
    assert np.array_equal(structured.query.class_sizes(), listed.query.class_sizes())
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


@pytest.mark.slow
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
    ends = fp.channel_capacity(channel.kernel.matrix[[0, n]])
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
    bound = Search(table, 1e-9, Meter(math.inf, 0.0)).told_apart(Node(0, slices))
    choices = np.array(list(itertools.product(*slices)))
    lower, upper, _ = capacities(table[choices], 1e-9)
    assert lower.max() <= bound
    if len(choices) == 1:  # nothing is lost where there is one row each
        assert bound <= upper.max() + 1e-9


def test_rows_of_their_own_kind_are_asked_about_at_once():
    scores = [[0, 1 << i] for i in range(6)]
    rng = np.random.default_rng(5)
    channel = fp.QueryChannel.sum(scores, rng.dirichlet(np.ones(4), size=64))
    assert len(channel.query.candidates(1, 4)) == 1
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


@pytest.mark.slow
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
            found = by_copies(
                mechanism.symmetric(), mechanism.kernels.assignment, k, Clock(math.inf)
            )
            assert holds(found, *brute.group_capacity(mechanism.matrix(), sizes, k))
            assert reached(found, mechanism.matrix(), sizes)


@pytest.mark.slow
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


@pytest.mark.slow
def test_other_structures_go_through_their_matrix():
    prior = fp.Product.iid([0.6, 0.4], 3)
    solved = fp.solve_pd_dp(fp.Exchangeable([0.1, 0.2, 0.3, 0.4]), 1.0).channel
    for mechanism in (fp.PosteriorChannel(prior, 1.0), fp.TiltedChannel(prior, 0.7), solved):
        sizes = mechanism.space.sizes
        for k in (1, 2):
            found = fp.group_capacity(mechanism, k)
            assert holds(found, *brute.group_capacity(np.array(mechanism.matrix()), sizes, k))


@pytest.mark.parametrize("priors", ["all", "independent"])
@pytest.mark.parametrize(
    "law",
    [
        fp.Dense(np.random.default_rng(0).dirichlet(np.ones(8)), [2] * 3),
        fp.Product.iid([0.5, 0.3, 0.2], 3),
    ],
)
def test_rounding_tells_nothing(law, priors):
    """At epsilon = 0 all rows are the same law, and their matrix differs by rounding."""
    bracket = fp.individual_capacity(fp.TiltedChannel(law, 0.0), priors)
    assert bracket.lower == 0.0 <= bracket.upper < 1e-25
    assert fp.group_capacity(fp.TiltedChannel(law, 0.0), 2).lower == 0.0
