"""Capacities over priors by all strategies and all sets; over gains by linear programs."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp
from scipy.optimize import linprog

import fastpriv as fp
from oracles import gains as plain

seeds = st.integers(0, 2**32 - 1)


def channel(rng, size, outputs):
    W = rng.dirichlet(np.full(outputs, 0.5), size)
    W[rng.random(W.shape) < 0.15] = 0.0
    W[:, -1] = 0.0
    W[:, -1] = 1.0 - W.sum(axis=1)
    return np.maximum(W, 0.0)


def over_strategies(W, g, additive):
    """Best prior of every strategy, each by its own linear program."""
    size, best = len(W), -math.inf
    for strategy in product(range(len(g)), repeat=W.shape[1]):
        c = sum(W[:, y] * g[w] for y, w in enumerate(strategy))
        if additive:  # max <p, c> - t with t >= <p, g_w>
            top = np.hstack([g, -np.ones((len(g), 1))])
            sums = np.append(np.ones(size), 0.0)[None]
            bounds = [(0, None)] * size + [(None, None)]
            cost, sides = np.append(-c, 1.0), np.zeros(len(g))
            answer = linprog(cost, top, sides, sums, [1.0], bounds=bounds)
        else:
            answer = linprog(-c, g, np.ones(len(g)))
        best = max(best, -answer.fun)
    return best


@settings(max_examples=10, deadline=None)
@given(seeds, st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.booleans())
def test_capacities_are_those_of_the_best_strategy(seed, size, outputs, actions, additive):
    rng = np.random.default_rng(seed)
    W = channel(rng, size, outputs)
    if additive:
        g = rng.normal(size=(actions, size))
        bracket, measure = fp.additive_g_capacity(W, g), fp.additive_g_leakage
        true = over_strategies(W, g, True)
    else:
        g = rng.random((actions, size))
        bracket, measure = fp.g_capacity(W, g), fp.g_leakage
        true = math.log(over_strategies(W, g, False))
    assert bracket.lower <= true + 1e-8
    assert bracket.upper >= true - 1e-8
    assert bracket.width <= 2e-6 * max(1.0, abs(g).max())
    if bracket.prior is not None:  # the prior that is named has the lower end
        assert measure(W, bracket.prior, g) >= bracket.lower


@settings(max_examples=15, deadline=None)
@given(seeds, st.integers(1, 6), st.integers(1, 5))
def test_a_right_guess_gains_most_on_a_set(seed, size, outputs):
    W = channel(np.random.default_rng(seed), size, outputs)
    true = float(plain.subsets_capacity(plain.exact(W)))
    by_sets, by_search = fp.additive_g_capacity(W), fp.additive_g_capacity(W, np.eye(size))
    assert by_sets.lower <= true <= by_sets.upper
    assert by_sets.width < 1e-13
    assert fp.additive_g_leakage(W, by_sets.prior) >= by_sets.lower
    assert by_search.lower - 1e-14 <= true <= by_search.upper + 1e-14
    assert by_search.width <= 2e-6


def test_min_capacity_is_maximal_leakage():
    W = channel(np.random.default_rng(4), 4, 5)
    whole = fp.g_capacity(W)
    assert whole.upper == fp.maximal_leakage(W)
    by_search = fp.g_capacity(W, fp.gains.identity(4))
    assert by_search.lower <= whole.upper
    assert whole.lower <= by_search.upper + 1e-12
    assert by_search.width < 1e-6
    thousand = fp.HammingChannel(1_000, 2, 0.5)
    assert fp.g_capacity(thousand).upper == fp.maximal_leakage(thousand)


@pytest.mark.parametrize("n", [1, 3, 50])
@pytest.mark.parametrize("m", [1, 2, 5])
def test_both_ends_of_the_min_capacity_of_randomised_response(n, m):
    """n ln(m / (1 + (m-1) e^-epsilon)), in 50 digits."""
    with mp.workdps(50):
        for exponent in np.linspace(-320, 2.5, 60):
            epsilon = float(10.0**exponent)
            capacity = fp.g_capacity(fp.HammingChannel(n, m, epsilon))
            truth = -n * mp.log1p((m - 1) * mp.expm1(-mp.mpf(epsilon)) / m)
            assert capacity.lower <= truth <= capacity.upper
            assert capacity.width <= 1e-14 * capacity.upper + 1e-321 * n


def _tilted(law, epsilon):
    """Return ln sum_y max_x p(y|x) of p(y|x) ~ q(y) e^(-epsilon d(x, y)), over all databases."""
    q, sizes = [mp.mpf(p) for p in law.pmf().tolist()], law.space.sizes
    rows = list(product(*map(range, sizes)))
    near = [[mp.exp(-mp.mpf(epsilon) * sum(map(int.__ne__, x, y))) for y in rows] for x in rows]
    W = [[a * b / mp.fdot(q, row) for a, b in zip(q, row, strict=True)] for row in near]
    return mp.log(sum(map(max, zip(*W, strict=True))))


@pytest.mark.parametrize(
    "law",
    [
        fp.Uniform(3, 1),
        fp.Uniform(2, 2),
        fp.Product([[0.3, 0.7], [1.0], [0.2, 0.5, 0.3]]),
        fp.Exchangeable([0.1, 0.2, 0.3, 0.4]),
        fp.Dense([0.1, 0.2, 0.3, 0.15, 0.05, 0.2], [2, 3]),
        fp.Markov([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], 3),
    ],
)
def test_both_ends_of_the_min_capacity_of_tilted_laws(law):
    with mp.workdps(50):
        for epsilon in (1e-12, 0.3, 5.0, 40.0):
            channel = fp.TiltedChannel(law, epsilon)
            capacity, truth = fp.g_capacity(channel), _tilted(law, epsilon)
            assert capacity.lower <= truth <= capacity.upper
            assert capacity.width < 1e-12


@pytest.mark.parametrize(("k", "size"), [(3, 1), (4, 2), (5, 2)])
def test_both_ends_of_the_min_capacity_of_subsets(k, size):
    """Every subset reaches e^epsilon / (C(k-1, d-1) e^epsilon + C(k-1, d))."""
    with mp.workdps(50):
        for epsilon in (1e-300, 1e-9, 0.4, 3.0, 50.0):
            capacity = fp.g_capacity(fp.SubsetChannel(k, epsilon, size))
            inside, outside = math.comb(k - 1, size - 1), math.comb(k - 1, size)
            shrink = mp.exp(-mp.mpf(epsilon))
            less = -mp.expm1(-mp.mpf(epsilon))
            excess = (math.comb(k, size) - inside - outside) + outside * less
            truth = mp.log1p(excess / (inside + outside * shrink))
            assert capacity.lower <= truth <= capacity.upper
            assert capacity.width <= 1e-14 * capacity.upper
            law = fp.Dense([0.2, 0.5, 0.3])
            columns = [fp.SubsetChannel(k, epsilon, size), fp.TiltedChannel(law, epsilon)]
            both = fp.g_capacity(fp.RecordChannel(fp.ColumnsChannel(columns)))
            assert both.lower <= truth + _tilted(law, epsilon) <= both.upper


def test_priors_do_not_beat_the_capacity():
    rng = np.random.default_rng(6)
    W, g = channel(rng, 4, 4), rng.random((3, 4))
    most, added = fp.g_capacity(W, g).upper, fp.additive_g_capacity(W, g).upper
    for p in rng.dirichlet(np.full(4, 0.4), 200):
        assert fp.g_leakage(W, p, g) <= most + 1e-12
        assert fp.additive_g_leakage(W, p, g) <= added + 1e-12


@pytest.mark.parametrize("scale", [1e-140, 1e-3, 1e140])
def test_units_of_the_gain(scale):
    rng = np.random.default_rng(8)
    W, g = channel(rng, 3, 3), rng.random((2, 3))
    assert fp.g_capacity(W, scale * g).upper == pytest.approx(fp.g_capacity(W, g).upper, abs=2e-6)
    added = fp.additive_g_capacity(W, g).upper
    assert fp.additive_g_capacity(W, scale * g).upper == pytest.approx(scale * added, rel=1e-5)


def test_gains_that_differ_in_size():
    # The second database is worth next to nothing: its column is scaled, not dropped.
    W = np.array([[0.9, 0.1], [0.1, 0.9]])
    bracket = fp.g_capacity(W, [[1.0, 0.0], [0.0, 1e-12]])
    assert bracket.lower <= math.log(1.8) <= bracket.upper
    assert bracket.width < 1e-6
    assert fp.g_leakage(W, bracket.prior, [[1.0, 0.0], [0.0, 1e-12]]) >= bracket.lower


def test_nothing_to_gain():
    W = np.eye(2)
    assert fp.g_capacity(W, [[0.0, 0.0]]) == 0.0
    assert fp.additive_g_capacity(W, [[0.0, 0.0]]) == 0.0
    assert fp.additive_g_capacity([[1.0], [1.0]]).upper < 1e-14
    assert fp.g_capacity(W, [[1.0, 1.0]]).upper < 1e-13


def test_large_sizes_get_a_bracket():
    W = channel(np.random.default_rng(2), 40, 40)
    bracket = fp.additive_g_capacity(W)
    assert 0.3 < bracket.lower < bracket.upper <= 1.0
    assert fp.additive_g_leakage(W, bracket.prior) >= bracket.lower


@pytest.mark.parametrize("gap", [0.0, 1.0])
def test_a_search_that_ends_early_is_a_bracket(gap):
    rng = np.random.default_rng(9)
    W, g = channel(rng, 4, 4), rng.random((4, 4)) - 0.5
    fine = fp.additive_g_capacity(W, g)
    for bracket in (
        fp.additive_g_capacity(W, g, gap=gap),
        fp.additive_g_capacity(W, g, time_limit=0.0),
    ):
        assert bracket.lower <= fine.upper
        assert bracket.upper >= fine.lower


def over_gains(W, p, kind):
    """Largest additive leakage over a class of gains: one action for each output, and t."""
    size, outputs = W.shape
    g = np.arange(outputs * size).reshape(outputs, size)
    low, last = outputs * size + np.arange(outputs), outputs * size + outputs
    cost = np.zeros(last + 1)
    cost[g] = -(p[:, None] * W).T
    cost[last] = 1.0
    rows, sides = [], []

    def at_most(places, entries, side):
        row = np.zeros(last + 1)
        row[places] = entries
        rows.append(row)
        sides.append(side)

    for y in range(outputs):
        at_most(np.append(g[y], last), np.append(p, -1.0), 0.0)
        for x in range(size):
            if kind == "spanning":  # low[y] <= g[y, x] <= low[y] + 1
                at_most([g[y, x], low[y]], [1.0, -1.0], 1.0)
                at_most([g[y, x], low[y]], [-1.0, 1.0], 0.0)
    free, unit = (None, None), (0.0, 1.0)
    each = {"unit": unit, "spanning": free, "bounded": (None, 1.0)}[kind]
    # A bounded gain has the action of doing nothing, so that t is at least 0.
    end = (0.0, None) if kind == "bounded" else free
    bounds = [each] * g.size + [free] * outputs + [end]
    if kind == "unit":
        bounds[last] = free
    return -linprog(cost, np.array(rows), sides, bounds=bounds).fun


@settings(max_examples=20, deadline=None)
@given(seeds, st.integers(1, 5), st.integers(1, 4))
def test_additive_capacities_over_gains_by_linear_programs(seed, size, outputs):
    rng = np.random.default_rng(seed)
    W, p = channel(rng, size, outputs), rng.dirichlet(np.ones(size))
    values = [fp.additive_gain_capacity(W, p, kind) for kind in ("unit", "spanning", "bounded")]
    assert values[0] <= values[1] + 1e-13
    assert values[1] <= values[2] + 1e-13
    for value, kind in zip(values, ("unit", "spanning", "bounded"), strict=True):
        true = over_gains(W, p, kind)
        assert value == pytest.approx(true, abs=1e-8)
        assert value >= true - 1e-9


@settings(max_examples=20, deadline=None)
@given(seeds, st.integers(1, 5), st.integers(1, 5))
def test_the_multiplicative_capacity_over_gains_is_attained(seed, size, outputs):
    rng = np.random.default_rng(seed)
    W, p = channel(rng, size, outputs), rng.dirichlet(np.ones(size))
    most = fp.gain_capacity(W, p)
    assert fp.g_leakage(W, p, np.diag(p.min() / p)) == pytest.approx(most, abs=1e-11)
    for g in rng.random((5, 3, size)):
        assert fp.g_leakage(W, p, g) <= most


def test_databases_that_do_not_occur_do_not_count():
    W, p = np.eye(3), [0.5, 0.5, 0.0]
    assert fp.gain_capacity(W, p) == pytest.approx(math.log(2), abs=1e-15)
    rows = [[0.5, 0.5], [0.5, 0.5], [1.0, 0.0]]
    for kind in ("unit", "spanning", "bounded"):
        assert fp.additive_gain_capacity(rows, p, kind) == 0.0


@pytest.mark.parametrize("epsilon", [1e-8, 0.3, 5.0])
def test_bounded_gains_row_by_row(epsilon):
    product_channel = fp.HammingChannel(4, 3, epsilon)
    prior = fp.Uniform(4, 3)
    dense = fp.additive_gain_capacity(product_channel.matrix(), prior.pmf(), "bounded")
    rows = fp.additive_gain_capacity(product_channel, prior, "bounded")
    assert dense - 1e-14 <= rows <= dense + 1e-13


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fp.g_capacity(np.eye(2), [[1.0, -1.0]]), "at least 0"),
        (lambda: fp.g_capacity(np.eye(2), [[1.0]]), "column for each"),
        (lambda: fp.additive_g_capacity(np.eye(2), gap=-1.0), "gap"),
        (lambda: fp.additive_g_capacity(np.eye(2), time_limit="x"), "time_limit"),
        (lambda: fp.additive_gain_capacity(np.eye(2), [0.5, 0.5], "units"), "did you mean unit"),
        (lambda: fp.gain_capacity(np.eye(2), [0.5, 0.6]), "sum to 1"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(fp.InvalidInput, match=words):
        call()


def test_too_large():
    with pytest.raises(fp.TooLarge):
        fp.additive_g_capacity(fp.HammingChannel(20, 2, 1.0))


def test_a_search_that_closes_everything_has_a_bracket():
    """One action, and a gap of zero: nothing is left to divide."""
    found = fp.additive_g_capacity([[0.75, 0.25], [0.25, 0.75]], [[0.5, 0.5]], gap=0.0)
    assert found.lower == 0.0 <= found.upper < 1e-14
