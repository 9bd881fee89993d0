"""Exact curves against exact optima at single levels, their roots, and E_d's own threshold."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fastpriv as fp
from fastpriv.design.exact.arithmetic import ratio_above, ratio_below
from fastpriv.design.exact.simplex import tree_flows, without_cycles

flint = pytest.importorskip("flint")

from fastpriv.design.exact import arithmetic, pieces  # noqa: E402


def solve(prior, epsilon, notion):
    solver = fp.solve_pd_dp if notion == "dp" else fp.solve_pd_i
    return solver(prior, epsilon, exact=True).value


def check(curve, rng, count=6):
    """The curve has the optima of single levels, falls, and its pieces meet."""
    low, high = curve.pieces[0].low, curve.pieces[-1].high
    for piece in curve.pieces:
        inside = rng.uniform(piece.low, piece.high, 2).tolist()
        for level in inside:
            assert curve.value(level) == solve(curve.prior, level, curve.notion)
    for level in [low, high, *rng.uniform(low, high, count).tolist()]:
        assert curve.value(level) == solve(curve.prior, level, curve.notion)
    values = [curve.value(level) for level in np.linspace(low, high, 40).tolist()]
    assert values == sorted(values, reverse=True)
    for before, after in zip(curve.pieces, curve.pieces[1:], strict=False):
        assert before.high == after.low
        assert before.ratios[1] == after.ratios[0]
        for ratio in before.ratios[1]:  # an isolating interval 2^-90 wide
            assert abs(before.at(ratio) - after.at(ratio)) < Fraction(1, 2**70)
        left, right = before.ratios[1]
        if left == right:
            assert before.at(left) == after.at(left)


@pytest.mark.slow(but=["sizes0-identifiability", "sizes1-dp", "sizes1-identifiability"])
@pytest.mark.parametrize("notion", ["dp", "identifiability"])
@pytest.mark.parametrize("sizes", [(2, 2), (3,), (2, 2, 2), (6,), (3, 2)])
def test_random_priors(sizes, notion):
    rng = np.random.default_rng(math.prod(sizes))
    prior = fp.Dense(rng.dirichlet(np.full(math.prod(sizes), 4.0)), sizes)
    low = prior.epsilon_x() if notion == "identifiability" else 0.0
    curve = fp.exact_curve(prior, low, low + 2.5, notion)
    assert len(curve.pieces) > 1
    check(curve, rng)


@pytest.mark.search(every=10)
@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=4, max_size=4).filter(lambda w: sum(w) > 0))
def test_degenerate_priors(counts):
    prior = fp.Dense(np.array(counts) / sum(counts), [2, 2])
    check(fp.exact_curve(prior, 0.0, 3.0), np.random.default_rng(0), 3)


@pytest.mark.parametrize("notion", ["dp", "identifiability"])
def test_products_add_up(notion):
    prior = fp.Product([[0.7, 0.3], [0.6, 0.4], [0.7, 0.3]])
    curve = fp.exact_curve(prior, prior.epsilon_x(), 3.0, notion)
    check(curve, np.random.default_rng(1))
    whole = fp.exact_curve(prior, 0.0, 2.0)
    assert whole.breaks == pytest.approx([math.log(1.5), math.log(7 / 3)], abs=1e-15)
    assert [p.denominator for p in whole.pieces][-1] == (1, 1)
    check(whole, np.random.default_rng(2))


def test_exchangeable_rows():
    prior = fp.Exchangeable.beta_binomial(4, 0.5, 0.8)
    check(fp.exact_curve(prior, 0.2, 1.6), np.random.default_rng(3), 3)


def test_one_row_in_closed_form():
    """Two values: constant up to ln(p/q), then 1/(1 + e^epsilon)."""
    curve = fp.exact_curve([0.75, 0.25], 0.0, 2.0)
    assert [(p.numerator, p.denominator) for p in curve.pieces] == [((1,), (4,)), ((1,), (1, 1))]
    assert curve.pieces[0].high == pytest.approx(math.log(3), abs=1e-15)
    assert curve.pieces[0].ratios[1] == (3, 3)
    assert curve.to_latex() == (
        "D_d^*(\\epsilon) = \\begin{cases}\n"
        "\\frac{1}{4}, & 0 \\le \\epsilon \\le 1.09861 \\\\\n"
        "\\frac{1}{a + 1}, & 1.09861 \\le \\epsilon \\le 2\n"
        "\\end{cases}"
    )
    assert repr(curve.pieces[1]) == "ExactPiece(1.098612289 to 2, degrees (0, 1))"


def test_the_last_piece_is_that_of_e_d():
    prior = fp.Dense([0.35, 0.25, 0.22, 0.18], [2, 2])
    curve = fp.exact_curve(prior, 0.3, 1.0)
    assert (curve.pieces[-1].numerator, curve.pieces[-1].denominator) == ((2,), (1, 1))
    assert curve.breaks[-1] in fp.hamming_threshold(prior)


def test_curves_of_other_priors_and_edges():
    assert len(fp.exact_curve(fp.Uniform(2, 2), 0.0, 3.0).pieces) == 1
    silent = fp.exact_curve(fp.Dense([1.0], [1]), 0.0, 1.0)
    assert silent.value(0.5) == 0
    sure = fp.exact_curve([1.0, 0.0], 0.0, 1.0)
    assert sure.value(0.7) == 0
    curve = fp.exact_curve([0.6, 0.4], 0.0, 1.0)
    for wrong in (-0.1, 1.1, math.nan):
        with pytest.raises(fp.InvalidInput, match="epsilon"):
            curve.value(wrong)


def test_complaints():
    with pytest.raises(fp.InvalidInput, match="low must be below high"):
        fp.exact_curve([0.5, 0.5], 1.0, 1.0)
    with pytest.raises(fp.InvalidInput, match="notion must be"):
        fp.exact_curve([0.5, 0.5], 0.0, 1.0, "mutual-information")
    with pytest.raises(fp.Infeasible, match="epsilon_x"):
        fp.exact_curve([0.9, 0.1], 0.0, 1.0, "identifiability")
    with pytest.raises(fp.TooLarge):
        fp.exact_curve(fp.Dense(np.random.default_rng(0).dirichlet(np.ones(512)), [2] * 9), 0, 1)


def test_the_figure():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    curve = fp.exact_curve([0.6, 0.3, 0.1], 0.0, 3.0)
    ax = curve.plot()
    line, dots = ax.get_lines()
    x, y = line.get_data()
    assert (x[0], x[-1]) == (0.0, 3.0)
    for level, value in zip(x[1::20], y[1::20], strict=True):  # stairs from the upper left
        assert value == pytest.approx(float(curve.value(min(float(level), 3.0))), rel=1e-12)
    assert dots.get_xdata().tolist() == curve.breaks
    matplotlib.pyplot.close(ax.figure)


# E_d's own threshold.


@pytest.mark.parametrize(
    ("prior", "truth"),
    [
        (fp.Dense([0.35, 0.25, 0.22, 0.18], [2, 2]), 0.4189),
        (fp.Markov([0.6, 0.4], [[0.8, 0.2], [0.3, 0.7]], 3), 1.8480),
    ],
)
def test_threshold_of_dependent_rows(prior, truth):
    result = fp.hamming_threshold(prior)
    assert result.lower == pytest.approx(truth, abs=5e-5)
    assert result.width < 1e-11
    assert result.upper < prior.epsilon_hat()


@pytest.mark.search(every=10)
@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([(2, 2), (3, 2), (2, 2, 2)]))
def test_threshold_is_where_e_d_begins_to_be_optimal(seed, sizes):
    prior = fp.Dense(np.random.default_rng(seed).dirichlet(np.full(math.prod(sizes), 4.0)), sizes)
    result = fp.hamming_threshold(prior)
    assert 0.0 <= result.lower <= result.upper <= prior.epsilon_hat()

    def e_d(ratio):
        return sum(Fraction(m - 1) / (ratio + m - 1) for m in sizes)

    for beyond in (0.0, 1e-9, 0.1):
        assert solve(prior, result.upper + 1e-15 + beyond, "dp") == e_d(
            ratio_below(result.upper + 1e-15 + beyond)
        )
    below = result.lower * (1 - 1e-9)
    assert solve(prior, below, "dp") < e_d(ratio_below(below))


def test_threshold_of_independent_rows_is_epsilon_hat():
    prior = fp.Product([[0.6, 0.4], [0.2, 0.3, 0.5]])
    assert fp.hamming_threshold(prior) == fp.Bracket(prior.epsilon_hat(), prior.epsilon_hat())
    assert fp.hamming_threshold(fp.Uniform(3, 2)) == fp.Bracket(0.0, 0.0)
    zero = fp.hamming_threshold(fp.Dense([0.5, 0.25, 0.25, 0.0], [2, 2]))
    assert zero == fp.Bracket(math.inf, math.inf)


def test_threshold_of_a_large_prior_is_bracketed():
    rng = np.random.default_rng(5)
    weights = rng.dirichlet(np.full(2**9, 30.0))
    prior = fp.Dense(weights, [2] * 9)
    result = fp.hamming_threshold(prior)
    assert result.upper == prior.epsilon_hat()
    cube = weights.reshape(prior.space.sizes)
    means = sum(cube.sum(axis=i, keepdims=True) / cube for i in range(9)) / 9 - 1
    assert result.lower == pytest.approx(math.log(means.max()), rel=1e-9)
    assert result.lower <= math.log(means.max())


# Polynomials and trees.


@pytest.mark.search(every=10)
@given(st.lists(st.fractions(Fraction(1, 8), 40, max_denominator=60), max_size=6), st.booleans())
def test_the_nearest_root_is_found(roots, up):
    q = pieces.polynomial([3])
    for r in roots:
        q = q * pieces.polynomial([-r.numerator, r.denominator])
    at = Fraction(101, 10)
    ahead = [r for r in roots if (r > at if up else r < at)]
    for limit in (Fraction(50) if up else Fraction(1, 100), None):
        if limit is None and not up:
            continue
        result = pieces.nearest_root(q, at, limit, up)
        if not ahead:
            assert result is None
            continue
        result = pieces.refine(result)
        nearest = min(ahead) if up else max(ahead)
        assert result.low <= nearest <= result.high
        assert result.high - result.low <= result.high / 2**80
        exact = pieces.Root(
            pieces.polynomial([-nearest.numerator, nearest.denominator]), nearest, nearest
        )
        assert result.same(exact)


def test_roots_that_are_no_fractions():
    two, three = pieces.polynomial([-2, 0, 1]), pieces.polynomial([-3, 0, 1])
    both = two * three * two
    result = pieces.nearest_root(both, Fraction(1), Fraction(10), up=True)
    assert result.same(pieces.nearest_root(two, Fraction(1), Fraction(10), up=True))
    other = pieces.nearest_root(three, Fraction(1), None, up=True)
    assert not result.same(other)
    assert pieces.nearer(result, other, up=True).same(result)
    assert pieces.nearer(result, other, up=False).same(other)
    assert pieces.nearest_root(both, Fraction(2), None, up=True) is None
    left = pieces.refine(pieces.nearest_root(both, Fraction(2), Fraction(1), up=False))
    assert left.low**2 < 3 < left.high**2


@given(st.integers(1, 4), st.integers(0, 2**32 - 1), st.booleans())
def test_systems_of_polynomials(size, seed, transposed):
    rng = np.random.default_rng(seed)
    columns = [
        [rng.integers(0, 4, rng.integers(1, 4)).tolist() for _ in range(size)] for _ in range(size)
    ]
    right = [rng.integers(0, 9, rng.integers(1, 3)).tolist() for _ in range(size)]

    def at(entry, point):
        return sum(c * point**k for k, c in enumerate(entry))

    assume(
        len(arithmetic.independent_columns([[at(e, 1000003) for e in c] for c in columns])) == size
    )
    numerators, denominator = pieces.solve_polynomials(columns, right, transposed)
    for point in (3, 17):
        matrix = np.array([[at(e, point) for e in c] for c in columns], dtype=object)
        x = [int(q(point)) for q in numerators]
        got = (matrix if transposed else matrix.T) @ np.array(x, dtype=object)
        assert got.tolist() == [int(denominator(point)) * at(e, point) for e in right]


@given(st.integers(2, 8), st.integers(0, 2**32 - 1))
def test_flows_on_trees(count, seed):
    """Any flow becomes one on a forest that gives every node the same amount."""
    rng = np.random.default_rng(seed)
    arcs = [(u, t) for u in range(count) for t in range(u)]
    flow = {arc: int(rng.integers(1, 9)) for arc in arcs if rng.random() < 0.7}
    net = [0] * count
    for (u, t), amount in flow.items():
        net[u] -= amount
        net[t] += amount
    used = without_cycles(flow)
    assert len(used) < count
    assert set(used) <= set(flow)
    amounts = list(tree_flows(used, arcs, net))
    assert min(amounts) >= 0
    assert len(amounts) == count  # a tree's arcs, and what is left at its last node
    assert amounts[-1] == 0


def test_ratios_on_both_sides_of_a_level():
    assert ratio_below(0.0) == ratio_above(0.0) == 1
