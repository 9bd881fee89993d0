"""Closed forms and sums by themselves: later steps add margins that would hide a wrong end."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

import fastpriv as fp
from fastpriv._matrices.capacity import repeated
from fastpriv.measures import contraction
from fastpriv.measures.correlation import row_correlation
from fastpriv.measures.pointwise.database import kernel_levels
from fuzz import balls


@pytest.fixture(autouse=True)
def _precise():
    before, ctx.prec = ctx.prec, 256
    yield
    ctx.prec = before


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.7, 1.1, 1.3])
def test_levels_of_rows_are_multiplied_upwards(epsilon):
    for n in (3, 5, 6, 7, 9, 11):
        level = fp.leakage_capacity(fp.HammingChannel(n, 2, epsilon))
        assert n * Fraction(epsilon) <= Fraction(level)
        assert Fraction(math.nextafter(level, 0.0)) < n * Fraction(epsilon)


def test_levels_of_columns_are_added_upwards():
    # Levels of randomised response are exact, and 0.1 + 0.2 is not: only the sum is rounded.
    columns = fp.ColumnsChannel([fp.HammingChannel(1, 2, 0.1), fp.HammingChannel(1, 2, 0.2)])
    exact = Fraction(0.1) + Fraction(0.2)
    for measure in (fp.leakage_capacity, fp.strong_dp_level):
        assert exact <= Fraction(measure(columns)) <= exact * (1 + Fraction(1, 2**50))
    assert Fraction(fp.dp_level(fp.RecordChannel(columns))) >= exact


@pytest.mark.parametrize("m", [2, 3, 7])
@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 0.7, 1.3, 3.0, 20.0])
def test_closed_forms_of_randomised_response_are_bracketed(m, epsilon):
    # Later steps add margins of their own, which would hide an end on the wrong side.
    (kernel,) = fp.HammingChannel(1, m, epsilon).kernels.distinct
    e = arb(epsilon).exp()
    stay, off = e / (e + m - 1), 1 / (e + m - 1)
    gap = (arb(epsilon).expm1()) / (e + m - 1)
    eta = contraction.row_contraction(kernel)
    rho = row_correlation(kernel, np.full(m, 1.0 / m))
    for (low, high), exact in (
        ((eta.lower, eta.upper), gap**2 / (stay + off)),
        ((rho.lower, rho.upper), gap),
        (contraction.hellinger(kernel), (stay.sqrt() - off.sqrt()) ** 2),
    ):
        assert arb(low) <= exact <= arb(high)
        assert high - low <= 1e-14 * high


def test_sums_of_brackets_are_rounded_outwards():
    parts = [(3, fp.Bracket(0.1, 0.1)), (7, fp.Bracket(0.7, 0.7)), (1, fp.Bracket(1e-9, 1e-9))]
    for some in (parts[:1], parts[1:2], parts):
        total, exact = repeated(some), sum(n * Fraction(part.lower) for n, part in some)
        assert Fraction(total.lower) <= exact <= Fraction(total.upper)
        assert total.upper - total.lower <= 1e-14 * total.upper


CHAIN = {"initial": [0.3, 0.7], "transition": [[0.2, 0.8], [0.6, 0.4]]}
#: Priors by a number, and their chances in as many digits as asked for.
LISTS = {
    "dense": (
        lambda k: fp.Dense([0.1, 0.2, 0.3, 0.4], (2, 2) if k % 2 else (4,)),
        lambda k: [arb(v) for v in (0.1, 0.2, 0.3, 0.4)],
    ),
    "product": (
        lambda k: fp.Product([[0.25, 0.75]] * k + [[1.0 - k / 64, k / 64]]),
        lambda k: balls.prior(
            {"kind": "product", "marginals": [[0.25, 0.75]] * k + [[1.0 - k / 64, k / 64]]}
        ),
    ),
    "markov": (
        lambda k: fp.Markov(**CHAIN, n=k + 1),
        lambda k: balls.prior({"kind": "markov", **CHAIN, "n": k + 1}),
    ),
    "rare": (
        lambda k: fp.Product([[k * 1e-200, 1.0]] * 2).as_dense("a test"),
        lambda k: [arb(k * 1e-200) ** j for j in (2, 1, 1, 0)],
    ),
}


@pytest.mark.search(every=5)
@pytest.mark.parametrize("k", range(1, 7))
@pytest.mark.parametrize("name", LISTS)
def test_spreads_of_priors_are_rounded_both_ways(name, k):
    # The least spread and the least chance, rounded down, decide what no mechanism can do.
    prior, exact = (make(k) for make in LISTS[name])
    spread = balls.epsilon_x(exact, balls.pairs_of(prior.space.sizes))
    assert arb(prior.epsilon_x_lower()) <= spread <= arb(prior.epsilon_x())
    assert prior.epsilon_x() - prior.epsilon_x_lower() <= 1e-11 * prior.epsilon_x()
    least = min((value.log() for value in exact), key=float)
    assert arb(prior.log_smallest()) <= least
    assert prior.log_smallest() >= float(least) * (1.0 + 1e-12)


@pytest.mark.search(every=5)
@pytest.mark.parametrize("m", [2, 3, 10**6])
@pytest.mark.parametrize("epsilon", [1e-9, 0.3, 0.99, 1.0, 2.3, 30.0, 699.0, 701.0])
def test_leakage_of_randomised_response_is_rounded_up(m, epsilon):
    # Of a million values each is rare: the odds of all of them hardly fall.
    (kernel,) = fp.HammingChannel(1, m, epsilon).kernels.distinct
    given = kernel_levels(kernel, np.full(m, 1.0 / m))
    p, e = arb(1.0 / m), arb(epsilon)
    exact = -((1 - p) * (-e).expm1()).log1p(), (p * e.expm1()).log1p()
    for level, truth in zip(given, exact, strict=True):
        assert truth <= arb(level) <= truth * (1 + arb("1e-14"))


@pytest.mark.parametrize(("n", "m"), [(1, 2), (3, 2), (2, 3), (10, 5)])
@pytest.mark.parametrize("solve", [fp.solve_pd_dp, fp.solve_pd_i])
def test_bounds_of_closed_forms_are_no_more_than_the_optimum(solve, n, m):
    # Under the uniform prior both programs have R_epsilon for every row.
    for epsilon in (0.3, 1.1, 2.3, 5.0):
        solution = solve(fp.Uniform(n, m), epsilon)
        optimum = n * (m - 1) / (m - 1 + arb(epsilon).exp())
        assert arb(solution.bound) <= optimum <= arb(solution.value) * (1 + arb("1e-13"))
        assert arb(solution.bound) >= optimum * (1 - arb("1e-12"))


def test_bounds_at_level_zero_are_no_more_than_the_optimum():
    for laws in ([[0.3, 0.7], [0.1, 0.2, 0.7]], [[0.4, 0.6]] * 3, [[0.1, 0.3, 0.6]]):
        exact = sum(1 - Fraction(max(law)) / sum(map(Fraction, law)) for law in laws)
        bound = Fraction(fp.solve_pd_dp(fp.Product(laws), 0.0).bound)
        assert exact * (1 - Fraction(1, 10**12)) <= bound <= exact
