"""Levels of ordinary numbers, one by one: the last digit is on the right side of the truth.

The search for wrong numbers draws zeros and denormals, for which many levels are infinite or exact.
Here numbers are ordinary, so that a result is rounded either way by chance: a level that is not
raised past its rounding errors is below the truth in about every second case.
"""

import itertools
import math

import numpy as np
import pytest
from flint import arb, ctx

import fastpriv as fp
from fastpriv._structure.types import Blocks, Stack, classes_against, types_of
from fastpriv.channels import tilted as tilted_channels
from fastpriv.channels.types import TypeChannel
from fastpriv.measures import dp, leakage
from fastpriv.measures.pointwise.prior_sets import row_ratio
from fastpriv.priors import exchangeable
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


@pytest.mark.search(every=10)
@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("question", OF_CHANNELS)
def test_levels_of_channels(question, channel):
    assert not broken(question, channel, "dense", 1)


@pytest.mark.search(every=10)
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
    for module in (tilted_channels, exchangeable, leakage):
        monkeypatch.setattr(module, "LISTED", 0)
    assert not broken(question, "tilted exchangeable", "exchangeable", 4)


@pytest.mark.slow
@pytest.mark.parametrize("question", OF_CHANNELS[:4])
def test_levels_along_chains(monkeypatch, question):
    monkeypatch.setattr(fp.Markov, "is_long", True)
    assert not broken(question, "posterior markov", "markov", 5, 6)


@pytest.mark.parametrize("question", ["dp_level", "identifiability_level"])
@pytest.mark.parametrize("channel", ["tilted dense", "tilted exchangeable", "posterior dense"])
def test_levels_of_tilted_laws_that_are_not_listed(monkeypatch, question, channel):
    monkeypatch.setattr(tilted_channels, "FEW", 0)
    monkeypatch.setattr(dp, "FEW", 0)
    assert not broken(question, channel, "dense", 6)


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


@pytest.mark.parametrize("question", ["epsilon_x", "epsilon_hat"])
def test_levels_of_chains_whose_rows_do_not_sum_to_one(question):
    # The truth divides rows by their sums: a larger one stands against a smaller one in ratios.
    for k, off in enumerate((1e-10, -1e-10, 1e-13)):
        chain = [[0.3 * (1.0 + off), 0.7 * (1.0 + off)], [0.6, 0.4]]
        prior = {"kind": "markov", "initial": [0.5, 0.5], "transition": chain, "n": 2 + k % 2}
        channel = {"kind": "hamming", "n": 2 + k % 2, "m": 2, "epsilon": 1.0}
        case = {"question": question, "channel": channel, "prior": prior, "epsilon": 1.0}
        assert claims.answer(case) is None


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
