"""Hockey-stick curves and their inverse, against exact lines over sorted likelihood ratios."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
import oracles as o
from cases import channels, close, once
from oracles import disclosure as od

SPACES = [(2,), (3,), (2, 2), (3, 2), (2, 3, 1), (1,), (2, 2, 2)]
CHANNELS = [
    pytest.param(sizes, channel, matrix, id=f"{sizes}-{name}")
    for sizes in SPACES
    for name, channel, matrix in channels(sizes)
]
every_channel = pytest.mark.parametrize(
    ("sizes", "channel", "matrix"), CHANNELS, indirect=["matrix"]
)


@pytest.mark.grid
@every_channel
def test_curve(sizes, channel, matrix):
    epsilons = [0.0, 1e-9, 0.3, 1.0, 2.5, 40.0, 800.0]
    for eps, delta in zip(epsilons, fp.hockey_stick(channel, epsilons), strict=True):
        truth = o.hockey_stick(matrix, sizes, eps)
        # The laws of a tilted channel are computed, and rounded apart by a hundred ulp.
        tilted = isinstance(channel, fp.TiltedChannel)
        assert close(delta, truth, 1e-13, 3e-14 if tilted else 1e-15), eps
        assert not tilted or delta >= truth
        assert delta == fp.hockey_stick(channel, eps)
    assert fp.hockey_stick(channel, min(fp.dp_level(channel), 1e6)) >= 0.0


@pytest.mark.grid
@every_channel
@pytest.mark.parametrize("delta", [1e-12, 0.01, 0.1, 0.25, 0.6, 1.0])
def test_inverse(sizes, channel, matrix, delta):
    # Structured channels hold rounded numbers; their inverse is checked on the floats they show.
    shown = channel.matrix()
    plain = fp.Channel(shown, sizes)
    truth = od.hockey_stick_epsilon(plain.matrix(), sizes, delta)
    found = fp.hockey_stick_epsilon(plain, delta)
    assert close(found, truth, 1e-13, 1e-15)
    assert found >= truth or found == fp.dp_level(plain)
    if truth == o.inf or (truth > 0 and o.hockey_stick(shown, sizes, found) < delta * 0.99):
        return  # where the curve jumps, rounding decides on which side a structured channel is
    assert close(fp.hockey_stick_epsilon(channel, delta), truth, 1e-11, 1e-13)


@st.composite
def channels(draw):
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    outputs = draw(st.integers(1, 4))
    weights = st.lists(st.integers(0, 8), min_size=outputs, max_size=outputs).filter(any)
    rows = [draw(weights) for _ in range(math.prod(sizes))]
    return sizes, np.array([[v / sum(row) for v in row] for row in rows])


@pytest.mark.search(every=10)
@settings(max_examples=150, deadline=None)
@given(channels(), st.floats(0, 5), st.floats(1e-6, 1))
def test_upper_bounds_on_the_very_floats(case, eps, delta):
    sizes, given_matrix = case
    channel = fp.Channel(given_matrix, sizes)
    matrix = channel.matrix()
    truth = o.hockey_stick(matrix, sizes, eps)
    found = fp.hockey_stick(channel, eps)
    assert min(truth, 1) <= found <= truth * (1 + o.num("1e-13")) + o.num("1e-15")
    level, least = (
        fp.hockey_stick_epsilon(channel, delta),
        od.hockey_stick_epsilon(matrix, sizes, delta),
    )
    assert level >= least
    assert close(level, least, 1e-12, 1e-14)
    if level < math.inf:
        assert o.hockey_stick(matrix, sizes, level) <= delta


@settings(max_examples=100, deadline=None)
@given(channels(), st.lists(st.floats(0, 700), min_size=2, max_size=5))
def test_shape_of_the_curve(case, epsilons):
    channel = fp.Channel(case[1], case[0])
    values = fp.hockey_stick(channel, sorted(epsilons))
    assert np.all(np.diff(values) <= 1e-15)
    level = fp.dp_level(channel)
    assert fp.hockey_stick_epsilon(channel, 0.0) == level
    if level < math.inf:
        assert fp.hockey_stick(channel, level) == 0.0
    total_variation = max(
        [0.0] + [0.5 * np.abs(case[1][x] - case[1][z]).sum() for x, z in o.neighbour_pairs(case[0])]
    )
    assert fp.hockey_stick(channel, 0.0) == pytest.approx(total_variation, abs=1e-14)


@pytest.mark.parametrize("epsilon", [1e-8, 1e-3, 1.0, 30.0, 700.0])
@pytest.mark.parametrize("share", [1e-6, 0.1, 0.5, 0.999])
def test_closed_form_of_e_d(epsilon, share):
    channel = fp.HammingChannel(3, [2, 5, 1], epsilon)
    with o.mp.workdps(400):
        stay = 1 / (1 + o.exp(-o.num(epsilon)))
        at = share * epsilon
        truth = stay * (1 - o.exp(o.num(at) - o.num(epsilon)))
        found = fp.hockey_stick(channel, at)
        assert truth <= found
        assert close(found, truth, 1e-14)
        back = epsilon + o.log(1 - o.num(found) / stay) if found < stay else o.mpf(0)
        level = fp.hockey_stick_epsilon(channel, found)
        assert level >= back
        # Where delta is 1 up to rounding, a level is known only as well as 1 - delta.
        slack = 1e-15 / (1 - found) if found < 1 else math.inf
        assert level <= back + 1e-14 * epsilon + 10 * slack


def test_huge_spaces_need_no_matrix():
    assert fp.hockey_stick(fp.HammingChannel(10**6, 4, 1.5), 1.5) == 0.0
    factor = [[0.7, 0.3], [0.2, 0.8]]
    channel = fp.ProductChannel([factor] * 10**5 + [[[0.5, 0.5]] * 3])
    assert fp.hockey_stick(channel, 0.4) == fp.hockey_stick(factor, 0.4)
    assert fp.hockey_stick_epsilon(channel, 0.1) == fp.hockey_stick_epsilon(factor, 0.1)
    tilted = fp.PosteriorChannel(fp.Product.iid([0.6, 0.4], 1000), 2.0)
    one = fp.PosteriorChannel(fp.Product.iid([0.6, 0.4], 1), 2.0)
    assert fp.hockey_stick(tilted, 0.7) == pytest.approx(fp.hockey_stick(one, 0.7), rel=1e-12)


def test_only_answers_that_neighbours_have_are_compared():
    space = fp.Space.hamming(3, 2)
    count = space.rows(np.arange(8)).sum(axis=1)
    kernel = [[0.97, 0.01, 0.01, 0.01], [0.4, 0.4, 0.1, 0.1], [0.1, 0.1, 0.4, 0.4]]
    kernel.append([0.01, 0.01, 0.01, 0.97])
    channel = fp.QueryChannel(count, kernel, space)
    assert close(fp.hockey_stick(channel, 0.2), o.hockey_stick(channel.matrix(), [2] * 3, 0.2))
    assert fp.hockey_stick(channel, 0.2) < fp.hockey_stick(kernel, 0.2)


def test_impossible_outputs_are_paid_to_the_last_digit():
    channel = [[0.5, 0.5], [0.0, 1.0]]
    assert fp.hockey_stick_epsilon(channel, 0.5) == 0.0
    assert fp.hockey_stick_epsilon(channel, np.nextafter(0.5, 0)) == math.inf
    tiny = [[1.0, 1e-320], [1.0, 0.0]]
    assert fp.hockey_stick_epsilon(tiny, 1e-310) == 0.0
    assert fp.hockey_stick_epsilon(tiny, 1e-323) == math.inf
    far = [[1 - 1e-3, 1e-3], [1.0, 1e-320]]
    assert 690 < fp.hockey_stick_epsilon(far, 1e-6) <= fp.dp_level(far) < 800


def test_levels_where_scaled_numbers_would_vanish():
    beside_zero = [[1.0, 1e-320], [1.0, 0.0]]
    assert fp.dp_level(beside_zero) == math.inf
    both = [[0.5, 0.5, 1e-320], [0.5 + 0.5, 1e-320, 0.0]]  # 1e-320 under 0.5 is finite, 0 is not
    assert fp.dp_level(both) == math.inf
    assert fp.Dense([1 - 1e-3, 1e-3, 1e-320, 0.0], [2, 2]).epsilon_x() == math.inf


def test_threads_and_blocks_agree():
    rng = np.random.default_rng(3)
    matrix = rng.dirichlet(np.full(700, 0.2), 128)
    channel = fp.Channel(matrix, [2] * 7)
    pairs = [(x, x ^ (1 << i)) for x in range(128) for i in range(7)]
    for eps in (0.0, 0.5, 3.0):
        truth = max(np.maximum(matrix[a] - np.exp(eps) * matrix[b], 0).sum() for a, b in pairs)
        assert fp.hockey_stick(channel, eps) == pytest.approx(truth, rel=1e-12)
    level = fp.hockey_stick_epsilon(channel, 0.2)
    assert fp.hockey_stick(channel, level) == pytest.approx(0.2, rel=1e-11)


@pytest.mark.parametrize(
    "epsilon", [-1.0, math.nan, math.inf, "1", None, [0.0, -1.0], [], [[1.0], [2.0, 3.0]], 1j]
)
def test_hostile_epsilon(epsilon):
    with pytest.raises(fp.InvalidInput):
        fp.hockey_stick([[0.5, 0.5]], epsilon)


@pytest.mark.parametrize("delta", [-1e-300, 1.5, math.nan, math.inf, "0.1", None, [0.1]])
def test_hostile_delta(delta):
    with pytest.raises(fp.InvalidInput):
        fp.hockey_stick_epsilon([[0.5, 0.5]], delta)


def test_shapes_of_answers():
    channel = [[0.5, 0.5], [0.25, 0.75]]
    assert isinstance(fp.hockey_stick(channel, 1), float)
    assert fp.hockey_stick(channel, np.zeros((2, 3))).shape == (2, 3)
    assert fp.hockey_stick([[1.0]], 0.0) == 0.0
    assert fp.hockey_stick_epsilon([[1.0]], 0.0) == 0.0


def structured():
    rng = np.random.default_rng(3)
    for sizes in [(2, 2, 2), (3, 2), (2, 1, 3), (4,)]:
        q = rng.dirichlet(np.ones(int(np.prod(sizes))))
        yield f"tilted-{sizes}", fp.TiltedChannel(fp.Dense(q, sizes), 0.8)
        q[1::2] = 0.0
        yield f"zeros-{sizes}", fp.TiltedChannel(fp.Dense(q / q.sum(), sizes), 1.3)
    three = fp.Exchangeable({(2, 0, 0): 0.5, (1, 1, 0): 0.2, (0, 1, 1): 0.2, (0, 0, 2): 0.1})
    for name, prior in (("three", three), ("two", fp.Exchangeable.beta_binomial(5, 0.5, 0.8))):
        yield f"dp-{name}", once(lambda p: fp.solve_pd_dp(p, 0.6).channel, prior)
        yield f"rate-{name}", once(lambda p: fp.solve_pd_mip(p, slope=0.7).channel, prior)


@pytest.mark.parametrize(
    "channel", [pytest.param(made, id=name) for name, made in structured()], indirect=True
)
def test_without_the_matrix(channel):
    """What tells neighbours apart is one row of the output, or its class: the same curve."""
    plain = fp.Channel(channel.matrix(), channel.space)
    for epsilon in (0.0, 1e-8, 0.3, 0.6, 1.0, 2.0):
        found, truth = fp.hockey_stick(channel, epsilon), fp.hockey_stick(plain, epsilon)
        assert truth * (1 - 1e-14) <= found <= truth + 1e-13
    for delta in (1e-6, 0.05, 0.2):
        found, truth = (fp.hockey_stick_epsilon(c, delta) for c in (channel, plain))
        assert truth * (1 - 1e-14) <= found <= truth * (1 + 1e-9) + 1e-9


def test_optimal_mechanisms_over_many_databases():
    best = fp.solve_pd_dp(fp.Exchangeable.beta_binomial(20, 0.5, 0.8), 1.0).channel
    assert 0.0 < fp.hockey_stick(best, 0.5) < fp.hockey_stick(best, 0.0) < 1.0
    assert fp.hockey_stick_epsilon(best, 0.01) <= fp.dp_level(best)


def test_the_least_level_has_some_excess():
    # A quarter of the least double is no zero.
    assert fp.hockey_stick(fp.HammingChannel(1, 4, 5e-324), 0.0) == 5e-324
    assert fp.hockey_stick(fp.HammingChannel(1, 4, 5e-324), 5e-324) == 0.0
    assert fp.hockey_stick(fp.HammingChannel(2, 1, 1.0), 0.0) == 0.0
