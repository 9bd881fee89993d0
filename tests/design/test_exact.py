"""Exact optima against plain programs in fractions, and their own proofs against tampering."""

import dataclasses
import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mpmath import exp as mp_exp
from mpmath import mp, mpf, workdps

import fastpriv as fp
import oracles.fraction_programs as plain
from fastpriv.design.exact import arithmetic
from fastpriv.design.exact.arithmetic import (
    independent_columns,
    is_at_most_exp,
    level_bounds,
    ratio_above,
    ratio_below,
    simplest,
    solve_system,
    solve_transposed,
    whole_numbers,
)
from oracles import databases, markov_pmf

pytest.importorskip("flint")

LEVELS = [0.0, 1e-8, 0.02, 0.4, 1.0, 3.0, 50.0, 700.0]
SPACES = [(2,), (2, 2), (2, 2, 2), (3, 2), (4,), (2, 1, 3), (3, 3), (1,)]


def solve(prior, epsilon, joint):
    return (fp.solve_pd_i if joint else fp.solve_pd_dp)(prior, epsilon, exact=True)


def level_of(channel, prior, joint):
    return fp.identifiability_level(channel, prior) if joint else fp.dp_level(channel)


def multipliers(best):
    """Return the multiplier of every database of a program over databases."""
    (vertex,) = best.vertices
    program, space = vertex.program, best.prior.space
    kinds = program.types.number(space.rows(np.arange(space.size))).tolist()
    scale = 1 if program.joint else sum(program.prices)
    return [vertex.totals[k] / (program.types.size(k) * scale) for k in kinds]


def check(best, weights, sizes, joint):
    """Check the mechanism, and that no ray of the cone beats its multipliers."""
    p = plain.law(weights)
    assert plain.check_mechanism(best.fractions(), p, sizes, best.ratio, joint) == best.value
    mu = multipliers(best)
    assert sum(m * (b if joint else 1) for m, b in zip(mu, p, strict=True)) == best.value
    assert plain.is_dual(mu, p, sizes, best.ratio, joint)
    assert best.verify()


# Numbers.


@given(st.floats(1e-300, 700.0))
def test_the_ratio_is_just_below_the_exponential(epsilon):
    ratio, above = ratio_below(epsilon), ratio_above(epsilon)
    with workdps(700):
        true, a = mp_exp(mpf(epsilon)), mpf(ratio.numerator) / ratio.denominator
        assert 0 <= true - a <= true * mpf(10) ** -15 * min(1, mpf(epsilon))
        assert mpf(above.numerator) / above.denominator >= true
    assert is_at_most_exp(ratio, epsilon)
    assert not is_at_most_exp(above, epsilon)
    low, high = level_bounds(ratio)
    with workdps(700):
        assert mpf(low) <= mp.log(a) <= mpf(high)
    assert low <= epsilon


@pytest.mark.search(every=10)
@given(st.fractions(Fraction(1, 100), 50), st.fractions(Fraction(1, 10**6), 1))
def test_the_simplest_fraction_has_the_least_denominator(low, width):
    result = simplest(low, low + width)
    assert low <= result <= low + width
    for q in range(1, result.denominator):
        assert math.ceil(low * q) > (low + width) * q


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=5))
def test_floats_become_whole_numbers_in_proportion(values):
    whole = whole_numbers(values)
    for a, u in zip(whole, values, strict=True):
        assert a * Fraction(values[0]) == whole[0] * Fraction(u)


# Optima.


@pytest.mark.parametrize("sizes", [(2,), (3,), (4,), (2, 2)])
@pytest.mark.parametrize("joint", [False, True])
def test_against_the_plain_simplex(sizes, joint):
    rng = np.random.default_rng(sum(sizes) + joint)
    for spread in (0.5, 5.0):
        weights = rng.dirichlet(np.full(math.prod(sizes), spread))
        prior = fp.Dense(weights, sizes)
        epsilon = 0.3 + (prior.epsilon_x() if joint else 0.0)
        best = solve(prior, epsilon, joint)
        p = plain.law(weights)
        assert best.value == plain.least_distortion(p, sizes, best.ratio, joint)
        check(best, weights, sizes, joint)


@pytest.mark.search(every=10)
@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(SPACES),
    st.sampled_from(LEVELS) | st.floats(0.001, 10.0),
    st.data(),
)
def test_dp_against_all_rays(sizes, epsilon, data):
    """Whole weights up to 3: zeros, equal entries and degenerate vertices."""
    count = math.prod(sizes)
    counts = data.draw(st.lists(st.integers(0, 3), min_size=count, max_size=count).filter(any))
    weights = np.array(counts) / sum(counts)
    best = solve(fp.Dense(weights, sizes), epsilon, False)
    check(best, weights, sizes, False)
    assert fp.dp_level(best.channel) <= epsilon


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.sampled_from(SPACES), st.sampled_from([0.0, 1e-12, 1e-6, 0.1, 1.0, 40.0]), st.data())
def test_identifiability_against_all_rays(sizes, beyond, data):
    count = math.prod(sizes)
    counts = data.draw(st.lists(st.integers(1, 9), min_size=count, max_size=count))
    weights = np.array(counts) / sum(counts)
    prior = fp.Dense(weights, sizes)
    epsilon = prior.epsilon_x() + beyond
    best = solve(prior, epsilon, True)
    check(best, weights, sizes, True)
    assert fp.identifiability_level(best.channel, prior) <= epsilon


@pytest.mark.search(every=10)
@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.05, 3.0))
def test_random_priors_on_three_bits(seed, epsilon):
    weights = np.random.default_rng(seed).dirichlet(np.ones(8))
    best = solve(fp.Dense(weights, [2, 2, 2]), epsilon, False)
    check(best, weights, (2, 2, 2), False)
    float_value = fp.distortion(best.channel, best.prior)
    assert abs(float_value - float(best.value)) <= 1e-11


@pytest.mark.slow(but=["sizes0-0.02-False", "sizes1-1.0-False", "sizes2-1.0-True"])
@pytest.mark.parametrize(
    ("sizes", "epsilon", "joint"),
    [
        ((2,) * 4, 0.02, False),
        ((2,) * 4, 1.0, False),
        ((2,) * 4, 1.0, True),
        ((2,) * 5, 0.7, False),
        ((2,) * 6, 1.0, False),
        ((3, 3, 2), 1e-8, False),
        ((40,), 1.0, False),
        ((40,), 4.0, False),
        ((25,), 0.5, True),
    ],
)
def test_larger_programs_prove_themselves(sizes, epsilon, joint):
    rng = np.random.default_rng(len(sizes))
    weights = rng.dirichlet(np.full(math.prod(sizes), 3.0))
    prior = fp.Dense(weights, sizes)
    epsilon += prior.epsilon_x() if joint else 0.0
    best = solve(prior, epsilon, joint)
    assert best.verify()
    p = plain.law(weights)
    assert plain.check_mechanism(best.fractions(), p, sizes, best.ratio, joint) == best.value
    rough = (fp.solve_pd_i if joint else fp.solve_pd_dp)(prior, epsilon, gap=1e-5)
    assert rough.bound <= best.value * (1 + Fraction(1, 10**12))
    assert rough.value * (1 + 1e-12) >= best.bound
    assert level_of(best.channel, prior, joint) <= epsilon
    assert fp.distortion(best.channel, prior) == pytest.approx(float(best.value), abs=1e-10)


@pytest.mark.parametrize("epsilon", LEVELS)
def test_levels_from_nothing_to_almost_everything(epsilon):
    weights = [0.375, 0.0, 0.25, 0.125, 0.125, 0.125]
    best = solve(fp.Dense(weights, [3, 2]), epsilon, False)
    check(best, weights, (3, 2), False)
    assert fp.dp_level(best.channel) <= epsilon
    assert best.bound <= best.value


@pytest.mark.parametrize("joint", [False, True])
def test_products_are_solved_row_by_row(joint):
    """Marginals whose products are exact floats, so that both priors are the same numbers."""
    rows = [[0.75, 0.25], [0.5, 0.25, 0.25], [0.75, 0.25]]
    prior = fp.Product(rows)
    for epsilon in (0.7, 1.2, 2.0):
        best = solve(prior, epsilon + (0.5 if joint else 0.0), joint)
        dense = solve(fp.Dense(prior.pmf(), prior.space.sizes), best.epsilon, joint)
        assert best.value == dense.value
        assert best.method == "rows"
        assert best.verify()
        p = plain.law(prior.pmf())
        sizes = prior.space.sizes
        assert plain.check_mechanism(best.fractions(), p, sizes, best.ratio, joint) == best.value
        assert level_of(best.channel, prior, joint) <= best.epsilon


@pytest.mark.slow
def test_a_million_rows_cost_as_much_as_one():
    best = solve(fp.Product.iid([0.7, 0.2, 0.1], 10**6), 1.0, False)
    one = solve(fp.Dense([0.7, 0.2, 0.1]), 1.0, False)
    assert best.value == 10**6 * one.value
    assert best.verify()
    with pytest.raises(fp.TooLarge, match="matrix of fractions"):
        best.fractions()


@pytest.mark.parametrize("joint", [False, True])
def test_types_agree_with_databases(joint):
    """Weights that the sizes of the types divide, so that both priors are the same numbers."""
    prior = fp.Exchangeable([0.5, 0.1875, 0.1875, 0.125])
    epsilon = 0.4 + (prior.epsilon_x() if joint else 0.0)
    best = solve(prior, epsilon, joint)
    dense = solve(fp.Dense(prior.pmf(), [2, 2, 2]), epsilon, joint)
    assert best.method == "types"
    assert best.value == dense.value
    p = plain.law(prior.pmf())
    assert plain.check_mechanism(best.fractions(), p, (2, 2, 2), best.ratio, joint) == best.value
    assert level_of(best.channel, prior, joint) <= epsilon


def test_exchangeable_rows_of_several_values():
    weights = {(2, 0, 0): 0.25, (0, 2, 0): 0.25, (1, 1, 0): 0.125, (1, 0, 1): 0.375}
    prior = fp.Exchangeable(weights)
    best = solve(prior, 0.8, False)
    p = plain.law(prior.pmf())
    assert plain.check_mechanism(best.fractions(), p, (3, 3), best.ratio, False) == best.value
    assert best.verify()
    assert best.value == solve(fp.Dense(prior.pmf(), [3, 3]), 0.8, False).value


@pytest.mark.slow
def test_a_correlated_prior_of_twenty_bits():
    prior = fp.Exchangeable.beta_binomial(20, 0.5, 0.8)
    best = solve(prior, 1.0, False)
    assert best.verify()
    assert float(best.value) == pytest.approx(3.46757229, abs=5e-9)
    assert fp.dp_level(best.channel) <= 1.0
    assert fp.distortion(best.channel, prior) == pytest.approx(float(best.value), abs=1e-11)


def test_a_chain_is_solved_over_its_databases():
    prior = fp.Markov([0.6, 0.4], [[0.8, 0.2], [0.3, 0.7]], 3)
    best = solve(prior, 1.0, False)
    chain = plain.law(prior.initial), [plain.law(row) for row in prior.transition]
    check(best, markov_pmf(*chain, 3), (2, 2, 2), False)


def test_products_of_chances_do_not_underflow():
    prior = fp.Markov([1e-300, 1.0], [[1e-112, 1.0], [0.0, 1.0]], 2)
    best = solve(prior, 0.005, False)
    # a constant answer changes the first row of 1e-300, and both of 1e-412
    chain = plain.law(prior.initial), [plain.law(row) for row in prior.transition]
    assert best.value == sum(
        p * (2 - sum(x)) for x, p in zip(databases([2, 2]), markov_pmf(*chain, 2), strict=True)
    )


def test_the_optimum_at_the_level_itself_lies_between():
    best = solve(fp.Dense([0.4, 0.1, 0.2, 0.3], [2, 2]), 0.6, False)
    assert 0 < best.value - best.bound < Fraction(1, 10**14)


# Patterns.


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([(2, 2, 2), (3, 2), (5,)]), st.booleans())
def test_powers_give_the_mechanism_up_to_scales(seed, sizes, joint):
    weights = np.random.default_rng(seed).dirichlet(np.full(math.prod(sizes), 4.0))
    prior = fp.Dense(weights, sizes)
    best = solve(prior, 0.3 + (prior.epsilon_x() if joint else 0.0), joint)
    W, p = best.fractions(), plain.law(weights)
    table = [[W[x][y] * (p[x] if joint else 1) for y in range(len(p))] for x in range(len(p))]
    assert len(best.powers) == len(p)
    for y, parts in enumerate(best.powers):
        assert sorted(x for part in parts for x in part) == (
            list(range(len(p))) if table[0][y] else []
        )
        for part in parts:
            scales = {table[x][y] / best.ratio**k for x, k in part.items()}
            assert len(scales) == 1
            assert min(part.values()) == 0
            for x, k in part.items():  # tight neighbours join a component of several
                assert len(part) == 1 or any(
                    abs(part[t] - k) == 1
                    for s, t in plain.neighbours(sizes)
                    if s == x and t in part
                )


def test_powers_of_types_and_rows():
    types = solve(fp.Exchangeable([0.4, 0.1, 0.1, 0.4]), 0.5, False)
    assert len(types.powers) == 4
    for parts in types.powers:
        for part in parts:
            assert all(sum(map(sum, table)) == 3 for table in part)
    rows = solve(fp.Product([[0.7, 0.3], [0.6, 0.3, 0.1]]), 1.5, False)
    assert len(rows.powers) == 5


def test_the_interval_is_where_the_pattern_is_optimal():
    prior = fp.Dense([0.35, 0.25, 0.22, 0.18], [2, 2])
    best = solve(prior, 0.35, False)
    low, high = best.interval
    assert low <= 0.35 <= high
    for level in np.linspace(low, high, 7)[1:-1].tolist():
        assert set(live(solve(prior, level, False))) == set(live(best))
    for level in (low - 1e-6, high + 1e-6):
        assert set(live(solve(prior, level, False))) != set(live(best))


def live(best):
    (vertex,) = best.vertices
    return [ray for ray, scale in zip(vertex.rays, vertex.scales, strict=True) if scale]


def test_intervals_of_other_structures():
    product = solve(fp.Product([[0.7, 0.3], [0.6, 0.4]]), 0.5, False)
    assert product.interval == pytest.approx((math.log(1.5), math.log(7 / 3)), abs=1e-14)
    assert solve(fp.Uniform(3, 2), 1.0, False).interval == (0.0, math.inf)
    assert solve(fp.Uniform(3, 2), 0.0, False).interval == (0.0, 0.0)
    types = solve(fp.Exchangeable.beta_binomial(4, 0.5, 0.8), 1.0, False)
    low, high = types.interval
    assert low < 1.0 < high


# Proofs that fail, and other complaints.


def test_verification_notices_every_stored_number():
    best = solve(fp.Dense([0.4, 0.1, 0.2, 0.3], [2, 2]), 0.6, False)
    (vertex,) = best.vertices
    tiny = Fraction(1, 10**40)
    scales = (vertex.scales[0] + tiny, *vertex.scales[1:])
    totals = (vertex.totals[0] + tiny, *vertex.totals[1:])
    live_output = next(k for k, m in enumerate(vertex.outputs) if m.arcs)
    changed = []
    arcs = dict(vertex.outputs[live_output].arcs)
    arc = next(iter(arcs))
    for wrong in ({**arcs, arc: arcs[arc] + tiny}, {**arcs, arc: -arcs[arc]}, {(0, 3): tiny}):
        moved = list(vertex.outputs)
        moved[live_output] = dataclasses.replace(moved[live_output], arcs=wrong)
        changed.append({"outputs": tuple(moved)})
    slack = dataclasses.replace(vertex.outputs[0], slack=vertex.outputs[0].slack - 1)
    changed += [
        {"scales": scales},
        {"totals": totals},
        {"value": vertex.value + tiny},
        {"ratio": vertex.ratio - tiny},
        {"outputs": (slack, *vertex.outputs[1:])},
    ]
    for change in changed:
        wrong = dataclasses.replace(vertex, **change)
        with pytest.raises(fp.SolverFailure, match="verification failed"):
            dataclasses.replace(best, vertices=(wrong,)).verify()
    for change in (
        {"value": best.value - tiny},
        {"ratio": Fraction(2)},
        {"vertices": ()},
        {"prior": fp.Dense([0.4, 0.1, 0.3, 0.2], [2, 2])},
    ):
        with pytest.raises(fp.SolverFailure, match="verification failed"):
            dataclasses.replace(best, **change).verify()
    assert best.verify()


def test_infeasible_levels_are_named():
    prior = fp.Dense([0.4, 0.1, 0.2, 0.3], [2, 2])
    with pytest.raises(fp.Infeasible, match=r"epsilon_x = 1\.386294361119890"):
        solve(prior, 1.0, True)
    with pytest.raises(fp.Infeasible, match="every level is infinite"):
        solve(fp.Dense([0.5, 0.5, 0.0, 0.0], [2, 2]), 5.0, True)


def test_hopeless_sizes_are_refused_at_once(monkeypatch):
    weights = np.random.default_rng(0).dirichlet(np.ones(512))
    monkeypatch.setattr("highspy.Highs.run", lambda solver: pytest.fail("a program was solved"))
    with pytest.raises(fp.TooLarge, match=r"262,144 pairs .* at most 20,000"):
        solve(fp.Dense(weights, [2] * 9), 1.0, False)
    with pytest.raises(fp.TooLarge, match="pairs"):
        solve(fp.Exchangeable.beta_binomial(500, 0.5, 0.8), 1.0, False)
    with pytest.raises(fp.TooLarge, match="bits"):
        solve(fp.Dense(weights[:64] / weights[:64].sum(), [2] * 6), 1e5, False)


def test_bad_levels_are_refused():
    for wrong in (-1.0, math.nan, math.inf, "one"):
        with pytest.raises(fp.InvalidInput, match="epsilon"):
            solve(fp.Uniform(2, 2), wrong, False)


def test_without_flint_small_programs_still_work(monkeypatch):
    weights = [0.4, 0.1, 0.2, 0.3]
    best = solve(fp.Dense(weights, [2, 2]), 0.6, False)
    monkeypatch.setitem(sys.modules, "flint", None)
    monkeypatch.setattr(arithmetic.importlib.util, "find_spec", lambda name: None)
    again = solve(fp.Dense(weights, [2, 2]), 0.6, False)
    assert again.value == best.value
    assert again.verify()
    law = np.random.default_rng(0).dirichlet(np.ones(16))
    with pytest.raises(ImportError, match=r"fastpriv\[exact\]"):
        solve(fp.Dense(law, [2] * 4), 0.6, False)


@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_linear_systems_are_solved_exactly(size, seed):
    rng = np.random.default_rng(seed)
    columns = rng.integers(-5, 6, (size, size)).tolist()
    right = rng.integers(-5, 6, size).tolist()
    assume(len(independent_columns(columns)) == size)
    for solved, matrix in (
        (solve_system, np.array(columns, dtype=object).T),
        (solve_transposed, np.array(columns, dtype=object)),
    ):
        numerators, denominator = solved(columns, right)
        assert denominator > 0
        assert (matrix @ np.array(numerators, dtype=object)).tolist() == [
            denominator * r for r in right
        ]
        rows = [list(row) for row in matrix.tolist()]
        plain_numerators, plain_denominator = arithmetic._eliminate(rows, right)
        assert [Fraction(n, plain_denominator) for n in plain_numerators] == [
            Fraction(n, denominator) for n in numerators
        ]
