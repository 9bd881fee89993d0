"""Levels of ordinary numbers, one by one: the last digit is on the right side of the truth.

The search for wrong numbers draws zeros and denormals, for which many levels are infinite or exact.
Here numbers are ordinary, so that a result is rounded either way by chance: a level that is not
raised past its rounding errors is below the truth in about every second case.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

import fastpriv as fp
from fastpriv._matrices.capacity import repeated
from fastpriv._structure.types import Blocks, Stack, classes_against, types_of
from fastpriv.channels import tilted as tilted_channels
from fastpriv.channels.types import TypeChannel
from fastpriv.measures import contraction, dp, entropy_gain
from fastpriv.measures.correlation import row_correlation
from fastpriv.measures.pointwise.rows import kernel_levels
from fastpriv.measures.pointwise.sets import row_ratio
from fastpriv.priors import exchanging
from fuzz import balls, claims, specs
from fuzz.numbers import settled

#: Sizes of spaces in turn: one row, two that differ, three.
SPACES = ([3], [2, 3], [2, 2, 2])
#: How far weights are apart: levels near one, where logarithms are series, and near nothing.
SPREADS = (0.9, 1e-3, 1e-9)
DRAWS = 18


@pytest.fixture(autouse=True)
def _precise():
    before, ctx.prec = ctx.prec, 256
    yield
    ctx.prec = before


class Draw:
    """A source of numbers that are as far apart as told."""

    def __init__(self, seed):
        self._rng, self.spread = np.random.default_rng(seed), 0.9

    def law(self, size):
        return settled((1.0 - self.spread * self._rng.random(size)).tolist())

    def matrix(self, rows, columns):
        return [self.law(columns) for _ in range(rows)]

    def epsilon(self, low, high):
        return self.spread * self._rng.uniform(low, high)


def dense_prior(draw, sizes):
    return {"kind": "dense", "sizes": sizes, "pmf": draw.law(math.prod(sizes))}


def product_prior(draw, sizes):
    return {"kind": "product", "marginals": [draw.law(m) for m in sizes]}


def markov_prior(draw, sizes):
    m = sizes[0]
    chain = draw.matrix(m, m)
    return {"kind": "markov", "initial": draw.law(m), "transition": chain, "n": len(sizes)}


def uniform_prior(draw, sizes):
    return {"kind": "uniform", "n": len(sizes), "m": sizes[0]}


def exchangeable_prior(draw, sizes):
    return {"kind": "exchangeable", "weights": draw.law(len(sizes) + 1)}


def dense(draw, sizes):
    return {"kind": "dense", "sizes": sizes, "matrix": draw.matrix(math.prod(sizes), 3)}


def product(draw, sizes):
    return {"kind": "product", "factors": [draw.matrix(m, 3) for m in sizes]}


def query(draw, sizes):
    values = [k % 3 for k in range(math.prod(sizes))]
    return {"kind": "query", "sizes": sizes, "values": values, "matrix": draw.matrix(3, 3)}


def hamming(draw, sizes):
    return {"kind": "hamming", "n": len(sizes), "m": sizes[0], "epsilon": draw.epsilon(0.1, 3.0)}


def tilted(law_of):
    return lambda draw, sizes: {
        "kind": "tilted", "law": law_of(draw, sizes), "epsilon": draw.epsilon(0.1, 3.0)
    }  # fmt: skip


def posterior(law_of):
    # Above the level from which on E_i exists for laws as even as these.
    return lambda draw, sizes: {
        "kind": "posterior", "law": law_of(draw, sizes), "epsilon": draw.epsilon(4.0, 6.0)
    }  # fmt: skip


#: Channels and priors by name, and whether all rows have to be alike.
CHANNELS = {
    "dense": (dense, False),
    "product": (product, False),
    "query": (query, False),
    "hamming": (hamming, True),
    "tilted dense": (tilted(dense_prior), False),
    "tilted product": (tilted(product_prior), False),
    "tilted exchangeable": (tilted(exchangeable_prior), True),
    "posterior dense": (posterior(dense_prior), False),
    "posterior markov": (posterior(markov_prior), True),
}
PRIORS = {
    "dense": (dense_prior, False),
    "product": (product_prior, False),
    "markov": (markov_prior, True),
    "exchangeable": (exchangeable_prior, True),
    "uniform": (uniform_prior, True),
}
OF_CHANNELS = (
    "dp_level",
    "strong_dp_level",
    "leakage_capacity",
    "maximal_leakage",
    "hockey_stick",
    "contraction_coefficient",
    "channel_capacity",
)
OF_PAIRS = (
    "identifiability_level",
    "pml_level",
    "information_privacy_level",
    "max_information",
    "maximal_correlation",
)


def broken(question, channel, prior, seed, draws=DRAWS):
    """Return the claims that are broken, of a number of cases."""
    draw = Draw(seed)
    (make, alike), (make_prior, also) = CHANNELS[channel], PRIORS[prior]
    found = []
    for k in range(draws):
        sizes = [2, 2, 2][: 1 + k % 3] if alike or also else SPACES[k % 3]
        draw.spread = SPREADS[k // 3 % 3]
        case = {"question": question, "channel": make(draw, sizes)}
        case |= {"epsilon": draw.epsilon(0.0, 0.5), "count": 1}
        draw.spread = SPREADS[k // 2 % 3]
        case["prior"] = make_prior(draw, sizes)
        found.append(claims.answer(case))
    return [str(violation) for violation in found if violation]


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("question", OF_CHANNELS)
def test_levels_of_channels(question, channel):
    assert not broken(question, channel, "dense", 1)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("question", OF_PAIRS)
def test_levels_under_priors(question, channel, prior):
    assert not broken(question, channel, prior, 2)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("question", ["epsilon_x", "epsilon_hat"])
def test_levels_of_priors(question, prior):
    assert not broken(question, "hamming" if PRIORS[prior][1] else "dense", prior, 3)


@pytest.mark.parametrize("question", OF_CHANNELS[:5] + OF_PAIRS)
def test_levels_through_types(monkeypatch, question):
    # What is a matter of types for 2^15 databases is asked of a few, whose levels are known.
    for module in (tilted_channels, exchanging, entropy_gain):
        monkeypatch.setattr(module, "LISTED", 0)
    assert not broken(question, "tilted exchangeable", "exchangeable", 4)


@pytest.mark.parametrize("question", OF_CHANNELS[:4])
def test_levels_along_chains(monkeypatch, question):
    monkeypatch.setattr(fp.Markov, "_long", True)
    assert not broken(question, "posterior markov", "markov", 5, 6)


@pytest.mark.parametrize("question", ["dp_level", "identifiability_level"])
@pytest.mark.parametrize("channel", ["tilted dense", "tilted exchangeable", "posterior dense"])
def test_levels_of_tilted_laws_that_are_not_listed(monkeypatch, question, channel):
    monkeypatch.setattr(tilted_channels, "FEW", 0)
    monkeypatch.setattr(dp, "FEW", 0)
    assert not broken(question, channel, "dense", 6)


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


@pytest.mark.parametrize("spread", SPREADS)
def test_epsilons_at_a_delta(spread):
    # At the epsilon returned, rounded up, no more than delta is left; rows either as they are
    # given or divided by their sums.
    draw = Draw(7)
    draw.spread = spread
    for columns, share in itertools.product((2, 3, 30), (0.5, 0.9, 1.0 - 1e-6, 1.0 - 1e-12)):
        matrix = draw.matrix(2, columns)
        W, pairs = balls.balls(matrix), [(0, 1), (1, 0)]
        laws = [balls.normal(row) for row in W]
        delta = share * fp.hockey_stick(matrix, 0.0)
        epsilon = fp.hockey_stick_epsilon(matrix, delta)
        left = [balls.hockey_stick(rows, pairs, epsilon) for rows in (W, laws)]
        assert not all(balls.less(arb(delta), value) for value in left)


def type_channel(n, m, rng):
    """A channel on types, whose numbers are the entries of its matrix."""
    types = types_of(Blocks.single(n, m))
    classes = [classes_against(kind, types) for kind in types.counts]
    stack = Stack.of(types, classes)
    weights = 0.1 + rng.random(len(stack.row))
    total = np.bincount(stack.row, weights * np.exp(stack.log_outputs))
    entries = weights / total[stack.row]
    return TypeChannel(types, classes, np.split(entries, stack.starts[1:-1]))


@pytest.mark.parametrize(("n", "m"), [(2, 2), (3, 2), (2, 3)])
def test_levels_of_channels_on_types(n, m):
    rng, pairs = np.random.default_rng(8), balls.pairs_of((m,) * n)
    prior = fp.Uniform(n, m)
    p = balls.normal([1.0] * m**n)
    for _ in range(8):
        channel = type_channel(n, m, rng)
        W = balls.balls(channel.matrix())
        for given, exact in (
            (fp.dp_level(channel), balls.dp_level(W, pairs)),
            (fp.leakage_capacity(channel), balls.strong_dp_level(W)),
            (fp.maximal_leakage(channel), balls.maximal_leakage(W)),
            (fp.identifiability_level(channel, prior), balls.identifiability_level(W, p, pairs)),
        ):
            assert not balls.less(arb(given), exact)


@pytest.mark.parametrize("m", [2, 3, 7])
@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 0.7, 1.3, 3.0, 20.0])
def test_closed_forms_of_randomised_response_are_bracketed(m, epsilon):
    # Later steps add margins of their own, which would hide an end on the wrong side.
    (kernel,) = fp.HammingChannel(1, m, epsilon)._kernels.distinct
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


@pytest.mark.parametrize("question", ["epsilon_x", "epsilon_hat"])
def test_levels_of_chains_whose_rows_do_not_sum_to_one(question):
    # The truth divides rows by their sums: a larger one stands against a smaller one in ratios.
    for k, off in enumerate((1e-10, -1e-10, 1e-13)):
        chain = [[0.3 * (1.0 + off), 0.7 * (1.0 + off)], [0.6, 0.4]]
        prior = {"kind": "markov", "initial": [0.5, 0.5], "transition": chain, "n": 2 + k % 2}
        channel = {"kind": "hamming", "n": 2 + k % 2, "m": 2, "epsilon": 1.0}
        case = {"question": question, "channel": channel, "prior": prior, "epsilon": 1.0}
        assert claims.answer(case) is None


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
        lambda k: fp.Product([[k * 1e-200, 1.0]] * 2)._dense("a test"),
        lambda k: [arb(k * 1e-200) ** j for j in (2, 1, 1, 0)],
    ),
}


@pytest.mark.parametrize("k", range(1, 7))
@pytest.mark.parametrize("name", LISTS)
def test_spreads_of_priors_are_rounded_both_ways(name, k):
    # The least spread and the least chance, rounded down, decide what no mechanism can do.
    prior, exact = (make(k) for make in LISTS[name])
    spread = balls.epsilon_x(exact, balls.pairs_of(prior.space.sizes))
    assert arb(prior._least_spread()) <= spread <= arb(prior.epsilon_x())
    assert prior.epsilon_x() - prior._least_spread() <= 1e-11 * prior.epsilon_x()
    least = min((value.log() for value in exact), key=float)
    assert arb(prior._log_least()) <= least
    assert prior._log_least() >= float(least) * (1.0 + 1e-12)


@pytest.mark.parametrize("m", [2, 3, 10**6])
@pytest.mark.parametrize("epsilon", [1e-9, 0.3, 0.99, 1.0, 2.3, 30.0, 699.0, 701.0])
def test_leakage_of_randomised_response_is_rounded_up(m, epsilon):
    # Of a million values each is rare: the odds of all of them hardly fall.
    (kernel,) = fp.HammingChannel(1, m, epsilon)._kernels.distinct
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


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("make", [dense, product])
def test_leakage_about_a_row_over_all_priors_is_rounded_up(make, fixed):
    draw, sizes = Draw(9), (2, 3)
    databases = list(itertools.product(*map(range, sizes)))
    for spread in SPREADS * 3:
        draw.spread = spread
        spec = make(draw, list(sizes))
        channel, W = specs.build_channel(spec), balls.channel(spec, sizes)
        for i in range(2):
            pairs = [
                (j, k)
                for (j, x), (k, z) in itertools.product(enumerate(databases), repeat=2)
                if x[i] != z[i] and (x[1 - i] == z[1 - i] or not fixed)
            ]
            assert not balls.less(arb(row_ratio(channel, i, fixed)), balls.dp_level(W, pairs))
