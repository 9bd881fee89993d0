"""Shannon capacity: closed forms, 50-digit brackets, duality, structures, batches, bad input."""

import math
import threading
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
import fastpriv._matrices.capacity as internals
import oracles as o
from cases import channels, kernel, law
from fastpriv import kernels


def holds(bracket, low, high=None):
    """Whether the bracket contains the oracle's bounds [low, high] (or one number)."""
    high = low if high is None else high
    return o.num(bracket.lower) <= low and high <= o.num(bracket.upper)


def reached(bracket, gap=1e-9):
    """Whether the bracket is as narrow as was asked for."""
    return 0.0 <= bracket.width <= gap * min(1.0, bracket.upper)


def typewriter(m):
    """Every letter goes to itself or to the next, evenly."""
    return 0.5 * (np.eye(m) + np.roll(np.eye(m), 1, axis=1))


def entropy(p):
    return o.entropy([o.num(p), 1 - o.num(p)])


def z_capacity(p):
    p = o.num(p)
    return o.log(1 + (1 - p) * p ** (p / (1 - p)))


def truth(matrix):
    """Bounds from the oracle, with enough digits for what tiny entries leave of a difference."""
    least = min(v for row in matrix for v in row if v > 0)
    with o.mp.workdps(50 - 2 * min(0, math.floor(math.log10(least)))):
        return o.capacity(matrix)


LN2 = o.log(o.num(2))
P = 0.125  # exact in binary, as are 1 - P and the sums
CLOSED = {
    "bsc": ([[1 - P, P], [P, 1 - P]], LN2 - entropy(P)),
    "bec": ([[1 - P, P, 0], [0, P, 1 - P]], (1 - o.num(P)) * LN2),
    "z": ([[1, 0], [P, 1 - P]], z_capacity(P)),
    "z-noisy": ([[1, 0], [1 - 2**-20, 2**-20]], z_capacity(1 - 2**-20)),
    "z-clear": ([[1, 0], [2**-40, 1 - 2**-40]], z_capacity(2**-40)),
    "typewriter-3": (typewriter(3), o.log(o.num(1.5))),
    "typewriter-8": (typewriter(8), o.log(o.num(4))),
    "typewriter-200": (typewriter(200), o.log(o.num(100))),
    "identity-2": (np.eye(2), LN2),
    "identity-5": (np.eye(5), o.log(o.num(5))),
    "identity-300": (np.eye(300), o.log(o.num(300))),
    "deterministic": (np.eye(4)[[0, 1, 1, 3, 3, 3]], o.log(o.num(3))),
    "deterministic-tall": (np.eye(3)[np.arange(1000) % 3], o.log(o.num(3))),
    "weakly-symmetric": ([[0.25, 0.5, 0.125, 0.125], [0.5, 0.25, 0.125, 0.125]], None),
    "two-of-three": ([[1, 0, 0], [0, 1, 0], [0.5, 0.5, 0]], LN2),
}


@pytest.mark.grid
@pytest.mark.parametrize("gap", [1e-2, 1e-9, 1e-12, 0.0])
@pytest.mark.parametrize("name", CLOSED)
def test_closed_forms(name, gap):
    matrix, exact = CLOSED[name]
    if exact is None:  # no closed form in one line: the middle columns of a bsc, rescaled
        exact = 0.75 * (LN2 - o.entropy([o.num(1) / 3, o.num(2) / 3]))
    bracket = fp.channel_capacity(matrix, gap=gap)
    assert holds(bracket, exact)
    assert reached(bracket, max(gap, 1e-12))


def random_channel(rng, inputs, outputs, kind):
    """A random channel of one of the hard kinds."""
    shape = (inputs, outputs)
    if isinstance(kind, float):  # rows that differ by this much
        W = law(rng, outputs) * (1 + kind * (rng.random(shape) - 0.5))
    elif kind == "spiky":
        W = rng.random(shape) ** 12
    elif kind == "zeros":
        W = rng.random(shape) * (rng.random(shape) < 0.5)
        W[:, 0] += 0.1
    elif kind == "huge-range":
        W = np.exp(-700 * rng.random(shape))
    else:
        W = rng.dirichlet(np.ones(outputs), inputs)
    return W / W.sum(axis=1, keepdims=True)


KINDS = ["dirichlet", "spiky", "zeros", "huge-range", 1e-3, 1e-8, 1e-12]


@pytest.mark.grid
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(2, 2), (2, 5), (3, 3), (4, 3), (3, 7)])
def test_the_bracket_holds_the_truth(shape, kind):
    rng = np.random.default_rng(7)
    sharp = 0
    for _ in range(3):
        matrix = random_channel(rng, *shape, kind)
        low, high = truth(matrix)
        for gap in (1e-9, 0.0):
            bracket = fp.channel_capacity(matrix, gap=gap)
            assert reached(bracket, max(gap, 1e-12))
            assert bracket.lower <= high
            assert bracket.upper >= low
            if high - low <= 1e-20 * high:
                sharp += 1
                assert holds(bracket, low, high)
    assert sharp  # the oracle is sharp often enough for the test to mean something


def test_a_useless_and_nearly_useless_channels():
    assert fp.channel_capacity([[0.3, 0.7]] * 5) == fp.Bracket(0.0, 0.0)
    assert fp.channel_capacity([[0.3, 0.7]] * 2) == fp.Bracket(0.0, 0.0)
    assert fp.channel_capacity([[0.3, 0.0, 0.7]] * 100) == fp.Bracket(0.0, 0.0)
    assert fp.channel_capacity([[0.2, 0.8]]) == fp.Bracket(0.0, 0.0)
    assert fp.channel_capacity([[1.0]] * 3) == fp.Bracket(0.0, 0.0)
    # Rows a unit in the last place apart: some 1e-33 nats, to full relative accuracy.
    matrix = [[0.5, 0.5], [np.nextafter(0.5, 1), np.nextafter(0.5, 0)]]
    bracket = fp.channel_capacity(matrix)
    assert holds(bracket, *o.capacity(matrix))
    assert reached(bracket)
    assert 0.0 < bracket.upper < 1e-31


@pytest.mark.slow
@pytest.mark.parametrize("tiny", [1e-250, 1e-300, 5e-324])
def test_tiny_entries(tiny):
    for matrix in (
        [[1.0, tiny], [tiny, 1.0]],
        [[1.0, tiny, tiny], [tiny, 1.0, tiny], [tiny, tiny, 1.0]],
    ):
        bracket = fp.channel_capacity(matrix)
        assert holds(bracket, *truth(matrix))
        assert reached(bracket)
    for rows in (2, 3, 70):  # all that is told hangs on the tiny entry
        matrix = [[1.0, tiny]] + [[1.0, 0.0]] * (rows - 1)
        bracket = fp.channel_capacity(matrix)
        assert holds(bracket, *truth(matrix[:2]))
        assert bracket.upper <= 1e-240


@pytest.mark.slow(but=["dirichlet-shape4", "spiky-shape3", "zeros-shape3", "1e-08-shape3"])
@pytest.mark.parametrize("shape", [(65, 65), (70, 5), (200, 40), (3, 400), (2, 1000)])
@pytest.mark.parametrize("kind", ["dirichlet", "spiky", "zeros", 1e-8])
def test_the_prior_certifies_larger_channels(shape, kind):
    """Duality in 50 digits: the returned prior alone proves the bracket."""
    matrix = random_channel(np.random.default_rng(3), *shape, kind)
    bracket, prior = fp.channel_capacity(matrix), fp.capacity_prior(matrix)
    assert reached(bracket)
    seen = np.flatnonzero(prior.pmf())
    p = prior.pmf()[seen]
    p_y = o.output_law(matrix[seen], p / o.num(math.fsum(p)))
    low = o.capacity_bracket(matrix[seen], p)[0]
    high = max(o.divergence(row, p_y) for row in matrix[np.argsort(-matrix @ matrix[0])[:20]])
    assert bracket.lower <= low * (1 + 1e-13)
    assert high <= bracket.upper * (1 + 1e-13)
    assert bracket.upper - low <= 1.1e-9 * low


def test_extreme_shapes():
    rng = np.random.default_rng(0)
    tall = rng.dirichlet(np.ones(3), 100_000)
    bracket = fp.channel_capacity(tall)
    assert reached(bracket)
    assert fp.mutual_information(tall, fp.capacity_prior(tall)) == pytest.approx(bracket.lower)
    wide = rng.dirichlet(np.ones(100_000), 3)
    assert reached(fp.channel_capacity(wide))
    # A million columns of one split between equals tell no more than one column.
    few = rng.dirichlet(np.ones(4), 3)
    split = np.repeat(few / 1024, 1024, axis=1)
    assert fp.channel_capacity(split).midpoint == pytest.approx(fp.channel_capacity(few).midpoint)


def test_out_of_rounds_the_bracket_is_wider_and_true(monkeypatch):
    matrix = np.random.default_rng(1).dirichlet(np.ones(90), 300)
    sharp = fp.channel_capacity(matrix)
    monkeypatch.setattr(internals, "_ROUNDS", 1)
    wide = fp.channel_capacity(matrix)
    assert wide.width > 1e-9
    assert wide.lower <= sharp.lower <= sharp.upper <= wide.upper


# Structure.

SPACES = [(2, 2), (3,), (2, 3), (2, 1, 2)]
STRUCTURED = [
    pytest.param(channel, id=f"{name}-{sizes}")
    for sizes in SPACES
    for name, channel, _ in channels(sizes)
]


@pytest.mark.grid
@pytest.mark.parametrize("channel", STRUCTURED)
def test_structured_channels_agree_with_their_matrix(channel):
    bracket, plain = fp.channel_capacity(channel), fp.channel_capacity(np.array(channel.matrix()))
    slack = 1e-15  # the matrix of a product is itself rounded
    assert bracket.lower <= plain.upper + slack
    assert plain.lower <= bracket.upper + slack
    assert bracket.width <= 1e-9
    prior = fp.capacity_prior(channel)
    assert prior.space == channel.space
    assert fp.mutual_information(channel, prior) == pytest.approx(
        bracket.lower, rel=1e-8, abs=1e-15
    )


@pytest.mark.parametrize("epsilon", [1e-8, 1e-4, 0.5, 1.1, 40.0, 700.0, 800.0])
@pytest.mark.parametrize("m", [2, 3, 50])
def test_randomised_response(m, epsilon):
    """Weakly symmetric: ln m - H(row), in 50 digits."""
    exact = o.log(o.num(m)) - o.entropy(o.randomised_response(m, epsilon)[0])
    for n in (1, 7, 10**6):
        bracket = fp.channel_capacity(fp.HammingChannel(n, m, epsilon))
        assert holds(bracket, n * exact)
        assert bracket.width <= 1e-12 * bracket.upper
    assert fp.capacity_prior(fp.HammingChannel(2, m, epsilon)).pmf() == pytest.approx(1 / m**2)


def test_products_add_up():
    rng = np.random.default_rng(2)
    factors = [kernel(rng, 2, 3), kernel(rng, 3, 2), kernel(rng, 2, 3)]
    ends = [o.capacity(factor) for factor in factors]
    low, high = (sum(side) for side in zip(*ends, strict=True))
    bracket = fp.channel_capacity(fp.ProductChannel(factors))
    assert holds(bracket, low, high)
    assert bracket.width <= 1e-9
    many = fp.channel_capacity(fp.ProductChannel([factors[0]] * 200_000 + [factors[1]] * 100_000))
    assert holds(many, *(200_000 * a + 100_000 * b for a, b in zip(*ends[:2], strict=True)))
    assert many.width <= 1e-12 * many.upper


def test_queries_count_answers_that_occur_once():
    kernel_rows = [[0.75, 0.25], [0.5, 0.5], [0.25, 0.75], [0.0, 1.0]]
    space = fp.Space.hamming(10, 2)
    values = np.minimum(space.rows(np.arange(space.size)).sum(axis=1), 2)
    channel = fp.QueryChannel(values, kernel_rows, space)
    assert holds(fp.channel_capacity(channel), *o.capacity(kernel_rows[:3]))
    prior = fp.capacity_prior(channel).pmf()
    assert np.count_nonzero(prior) <= 3
    assert fp.mutual_information(channel, prior) == pytest.approx(LN2 - float(entropy(0.25)))


def test_posterior_and_type_channels():
    product = fp.Product([[0.6, 0.4], [0.3, 0.7]])
    types = fp.Exchangeable([0.1, 0.2, 0.3, 0.4])
    solved = fp.solve_pd_dp(fp.Exchangeable.beta_binomial(4, 0.5, 0.8), 1.0).channel
    for channel in (
        fp.PosteriorChannel(product, 1.5),
        fp.PosteriorChannel(types, types.epsilon_tilde() + 0.2),
        solved,
    ):
        bracket = fp.channel_capacity(channel)
        plain = fp.channel_capacity(np.array(channel.matrix()))
        assert bracket.midpoint == pytest.approx(plain.midpoint, abs=1e-9)
        told = fp.mutual_information(channel, fp.capacity_prior(channel))
        assert told == pytest.approx(bracket.lower, abs=1e-9)


# Properties.

seeds = st.integers(0, 2**32 - 1)
shapes = st.tuples(st.integers(1, 6), st.integers(1, 6))
common = settings(deadline=None, max_examples=60)


@common
@given(seeds, shapes, st.sampled_from(KINDS))
def test_bounds(seed, shape, kind):
    rng = np.random.default_rng(seed)
    matrix = random_channel(rng, *shape, kind)
    bracket = fp.channel_capacity(matrix)
    assert reached(bracket)
    assert bracket.lower <= math.log(min(shape))
    told = fp.mutual_information(matrix, law(rng, shape[0]))
    assert told <= bracket.upper * (1 + 1e-12)


@common
@given(seeds, shapes, st.sampled_from(KINDS))
def test_permuting_repeating_and_splitting_change_nothing(seed, shape, kind):
    rng = np.random.default_rng(seed)
    matrix = random_channel(rng, *shape, kind)
    bracket = fp.channel_capacity(matrix)
    again = np.concatenate([matrix, matrix[rng.integers(0, shape[0], 3)]])
    halves = np.concatenate([matrix / 2, matrix / 2], axis=1)
    zero = np.insert(matrix, 0, 0.0, axis=1)
    shuffled = matrix[rng.permutation(shape[0])][:, rng.permutation(shape[1])]
    for same in (again, halves, zero, shuffled):
        other = fp.channel_capacity(same)
        assert other.lower <= bracket.upper
        assert bracket.lower <= other.upper


@common
@given(seeds, shapes, st.sampled_from(KINDS[:4]), st.floats(0.0, 1.0))
def test_data_processing_and_convexity(seed, shape, kind, t):
    rng = np.random.default_rng(seed)
    first, second = random_channel(rng, *shape, kind), random_channel(rng, *shape, kind)
    one, two = fp.channel_capacity(first), fp.channel_capacity(second)
    after = first @ random_channel(rng, shape[1], 4, kind)
    before = random_channel(rng, 4, shape[0], kind) @ first
    for less in (after, before):
        less /= less.sum(axis=1, keepdims=True)
        assert fp.channel_capacity(less).lower <= one.upper + 1e-14
    mixed = t * first + (1 - t) * second
    mixed /= mixed.sum(axis=1, keepdims=True)
    assert fp.channel_capacity(mixed).lower <= t * one.upper + (1 - t) * two.upper + 1e-14


@common
@given(st.floats(1e-250, 1.0), st.floats(-1.0, 1.0), st.integers(0, 60))
def test_one_term_of_a_divergence(q, shift, halvings):
    """The constant that rounding is granted: 100 units of 2^-53 for every ratio of w to q."""
    w = q * (1 + shift * 0.5**halvings)
    exact = o.divergence([w], [q])
    assert abs(kernels.divergence(w, q, w - q) - exact) <= 100 * 2.0**-53 * exact


# Batches.


@pytest.mark.parametrize("shape", [(2, 2), (2, 7), (1, 3), (3, 3), (8, 5), (70, 4)])
def test_a_batch_is_its_channels(shape):
    rng = np.random.default_rng(5)
    batch = np.array([random_channel(rng, *shape, kind) for kind in KINDS * 3])
    found, priors = fp.channel_capacity(batch), fp.capacity_prior(batch)
    assert isinstance(found, fp.Brackets)
    assert len(found) == len(batch)
    for b, matrix in enumerate(batch):
        assert found[b] == fp.channel_capacity(matrix)
        assert np.array_equal(priors[b], fp.capacity_prior(matrix).pmf())
    assert np.array_equal(found.width, found.upper - found.lower)
    assert np.all((found.lower <= found.midpoint) & (found.midpoint <= found.upper))
    assert repr(found) == "Brackets(21 values)"
    assert np.array_equal(fp.channel_capacity(batch.tolist()).upper, found.upper)
    assert np.array_equal(fp.channel_capacity(np.asfortranarray(batch)).upper, found.upper)


def test_large_batches_in_many_threads():
    rng = np.random.default_rng(6)
    pairs, threes = rng.dirichlet(np.ones(3), (50_000, 2)), rng.dirichlet(np.ones(3), (5_000, 3))
    alone = [fp.channel_capacity(batch).upper for batch in (pairs, threes)]
    parts = [fp.channel_capacity(part).upper for part in np.split(pairs, 50)]
    assert np.array_equal(np.concatenate(parts), alone[0])
    wrong = []

    def work():
        for batch, upper in zip((pairs, threes), alone, strict=True):
            if not np.array_equal(fp.channel_capacity(batch).upper, upper):
                wrong.append(batch.shape)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# Input that means nothing.

GOOD = [[0.5, 0.5], [0.25, 0.75]]


@pytest.mark.parametrize(
    ("channel", "gap", "words"),
    [
        ([0.5, 0.5], 1e-9, "matrix"),
        (0.5, 1e-9, "matrix"),
        (np.full((1, 1, 1, 1), 1.0), 1e-9, "batch"),
        (np.empty((0, 2, 2)), 1e-9, "empty"),
        (np.empty((3, 0, 2)), 1e-9, "empty"),
        (np.empty((0, 2)), 1e-9, "empty"),
        ([[0.5, np.nan]], 1e-9, "NaN"),
        ([[[0.5, np.nan]]], 1e-9, "NaN"),
        ([[[0.5, -0.5]]], 1e-9, "at least 0"),
        ([GOOD, [[0.5, 0.5], [0.5, 0.6]]], 1e-9, "row 3 sums to 1.1"),
        ([[[50, 50], [20, 80]]], 1e-9, "percentages"),
        ([GOOD, [[1.0]]], 1e-9, "rectangular"),
        ("channel", 1e-9, "must be an array; got 'channel'"),
        (None, 1e-9, "matrix"),
        (fp.Uniform(2, 2), 1e-9, "must be a channel"),
        (GOOD, -1e-9, "gap"),
        (GOOD, math.nan, "gap"),
        (GOOD, "small", "gap"),
    ],
)
def test_refused_in_words(channel, gap, words):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for measure in (fp.channel_capacity, fp.capacity_prior):
            with pytest.raises(fp.InvalidInput, match=words):
                measure(channel, gap=gap)


def test_nothing_of_the_callers_is_changed():
    batch = np.array([GOOD, GOOD])
    batch.flags.writeable = False
    before = batch.copy()
    fp.channel_capacity(batch)
    fp.channel_capacity(batch[0])
    assert np.array_equal(batch, before)
    assert reached(fp.channel_capacity(GOOD, gap=1e300), 1e300)


def test_many_rows_that_are_much_the_same_take_few(monkeypatch):
    # The rows above come in clusters of neighbours: all of them together would be a matrix.
    n, outputs, solve, most = 3_000, 40, kernels.capacities, []

    class Watched:
        def __getattr__(self, name):
            return getattr(kernels, name)

        def capacities(self, rows, *rest):
            most.append(rows.shape[1])
            solve(rows, *rest)

    monkeypatch.setattr(internals, "kernels", Watched())
    off = np.abs(np.arange(outputs) - np.linspace(0, outputs - 1, n + 1)[:, None])
    weights = np.exp(-off / 2)
    found = fp.channel_capacity(weights / weights.sum(axis=1, keepdims=True))
    assert found.width <= 1e-9
    assert max(most) <= 64 + 4 * outputs


def test_rows_whose_sums_are_as_far_apart_as_they_are():
    # Their product has (s - s')(t - t') more than the sum of the two.
    factors = [
        [[0.2972114404998407, 0.7027885595001593], [0.2972114404998409, 0.702788559500159]],
        [
            [0.3333333333333332, 0.33333333333333337, 0.3333333333333334],
            [0.33333333333333326, 0.3333333333333335, 0.3333333333333333],
        ],
    ]
    exact = o.product_matrix([o.nums(factor) for factor in factors])
    low, _ = o.capacity(exact, 60)
    found = fp.channel_capacity(fp.ProductChannel(factors))
    assert o.num(found.upper) >= low
    assert found.upper < 1e-30
