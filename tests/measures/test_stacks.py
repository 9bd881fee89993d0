"""Measures of stacks: each channel by itself and plain references give the same numbers."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mpmath import mpf

import fastpriv as fp
from fastpriv.measures import inputs
from oracles import correlation, information, levels, pointwise
from oracles.numbers import normal

#: Measure by name, whether it takes a prior, and a plain reference in exact numbers.
LEVELS = {
    "dp_level": (False, lambda W, p: levels.strong_dp_level(W)),
    "strong_dp_level": (False, lambda W, p: levels.strong_dp_level(W)),
    "leakage_capacity": (False, lambda W, p: levels.strong_dp_level(W)),
    "maximal_leakage": (False, lambda W, p: levels.maximal_leakage(W)),
    "identifiability_level": (True, lambda W, p: levels.identifiability_level(W, p, [len(W)])),
    "pml_level": (True, lambda W, p: max(pointwise.pml(W, p))),
    "max_information": (True, lambda W, p: max(pointwise.pml(W, p))),
    "information_privacy_level": (True, pointwise.information_privacy),
}
#: Numbers whose two computations differ by more than their last digits.
OTHERS = ("mutual_information", "leakage_factor", "worst_leakage_factor", "maximal_correlation")
#: The references have fifty digits.
REFERENCE = mpf(10) ** -45
SHAPES = [(1, 1, 1), (3, 1, 4), (5, 4, 1), (7, 2, 2), (9, 3, 5), (6, 8, 8), (4, 5, 19), (2, 33, 6)]


def arguments(name, stack, priors):
    return (stack, priors) if name in OTHERS or LEVELS[name][0] else (stack,)


def one_by_one(name, stack, priors):
    laws = np.broadcast_to(priors, stack.shape[:2])
    each = zip(stack, laws, strict=True)
    return np.array([getattr(fp, name)(*arguments(name, W, p)) for W, p in each])


def random_stack(shape, seed, zeros=0.0, spread=3.0):
    rng = np.random.default_rng(seed)
    stack = np.exp(spread * rng.standard_normal(shape)) * (rng.random(shape) >= zeros)
    stack[..., 0] += stack.sum(axis=-1) == 0
    priors = rng.random(shape[:2]) * (rng.random(shape[:2]) >= zeros)
    priors[:, 0] += priors.sum(axis=1) == 0
    return stack / stack.sum(-1, keepdims=True), priors / priors.sum(-1, keepdims=True)


@pytest.mark.grid
@pytest.mark.parametrize("name", [*LEVELS, *OTHERS])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("zeros", "spread"), [(0.0, 3.0), (0.4, 1.0), (0.0, 1e-9)])
def test_a_stack_is_measured_as_its_channels_are(name, shape, zeros, spread):
    stack, priors = random_stack(shape, 1, zeros, spread)
    if spread < 1e-3:  # an identifiability of a few ulp needs equal chances
        priors = np.full_like(priors, 1.0 / shape[1])
    for laws in (priors, priors[0]):
        many = getattr(fp, name)(*arguments(name, stack, laws))
        alone = one_by_one(name, stack, laws)
        assert many.shape == (shape[0],)
        if name in LEVELS:
            np.testing.assert_array_max_ulp(many, alone, 2)
        else:
            np.testing.assert_allclose(many, alone, rtol=1e-12, atol=1e-15)


@st.composite
def channels(draw):
    """A channel and a prior in numbers from 1 down to denormals."""
    inputs, outputs = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    sizes = [0.0, 5e-324, 1e-310, 1e-160, 1e-30, 1e-12, 1e-9, 0.1, 0.25, 1 / 3]
    entry = st.sampled_from(sizes) | st.floats(0.0, 1.0, allow_subnormal=True)

    def law(size):
        rest = [draw(entry) / size for _ in range(size - 1)]
        place = draw(st.integers(0, size - 1))
        return [*rest[:place], 1.0 - math.fsum(rest), *rest[place:]]

    return np.array([law(outputs) for _ in range(inputs)]), np.array(law(inputs))


@pytest.mark.search(every=10)
@given(channels())
@example((np.array([[1.0, 5e-324], [1.0, 1e-310]]), np.array([1.0, 5e-324])))
@example((np.array([[0.5, 0.5], [0.5 + 1e-16, 0.5 - 1e-16]]), np.array([0.5, 0.5])))
@example((np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1.0, 0.0])))
def test_levels_of_a_stack_are_guarantees(case):
    W, p = case
    stack, priors = np.stack([W, W[::-1]]), np.stack([p, p[::-1]])
    for name, (_, reference) in LEVELS.items():
        many = getattr(fp, name)(*arguments(name, stack, priors))
        alone = one_by_one(name, stack, priors)
        np.testing.assert_array_max_ulp(many, alone, 2)
        for level, matrix, law in zip(many, stack, priors, strict=True):
            truth = reference(matrix.tolist(), law.tolist())
            assert level + REFERENCE >= truth, name
    total = fp.worst_leakage_factor(stack, priors)
    entropy = information.entropy(normal(p.tolist()))
    if entropy > 0:
        for share, matrix, law in zip(total, stack, priors, strict=True):
            gain = pointwise.worst_gain(matrix.tolist(), law.tolist())
            assert share + REFERENCE / entropy >= min(1, gain / entropy)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_information_of_a_stack_against_a_plain_sum(shape):
    stack, priors = random_stack(shape, 3, 0.2)
    shares = fp.leakage_factor(stack, priors)
    for value, share, W, p in zip(
        fp.mutual_information(stack, priors), shares, stack, priors, strict=True
    ):
        truth = information.mutual_information(W.tolist(), p.tolist())
        assert value == pytest.approx(float(truth), rel=1e-12, abs=1e-300)
        entropy = information.entropy(p.tolist())
        assert share == pytest.approx(float(truth / entropy) if entropy else 0.0, rel=1e-12)


@pytest.mark.slow(only=["(2, 33, 6)"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_hockey_stick_of_a_stack(shape):
    stack, _ = random_stack(shape, 4, 0.2)
    epsilons = [0.0, 1e-8, 0.5, 700.0]
    deltas = fp.hockey_stick(stack, epsilons)
    assert deltas.shape == (shape[0], 4)
    for W, row in zip(stack, deltas, strict=True):
        np.testing.assert_array_equal(row, fp.hockey_stick(W, epsilons))
        for epsilon, delta in zip(epsilons, row, strict=True):
            truth = levels.hockey_stick(W.tolist(), [len(W)], epsilon)
            assert delta >= truth or delta == 1.0
    np.testing.assert_array_equal(fp.hockey_stick(stack, 0.5), deltas[:, 2])
    out = np.empty((shape[0], 2, 2))
    assert fp.hockey_stick(stack, np.reshape(epsilons, (2, 2)), out=out) is out
    np.testing.assert_array_equal(out.reshape(-1, 4), deltas)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_distortion_of_a_stack(shape):
    stack, priors = random_stack(shape, 5)
    metric = np.random.default_rng(6).random(shape[1:])
    for W, p, value in zip(stack, priors, fp.distortion(stack, priors, metric), strict=True):
        truth = levels.distortion_metric(W.tolist(), p.tolist(), metric.tolist())
        assert value == pytest.approx(float(truth), rel=1e-14)
        assert value == pytest.approx(fp.distortion(W, p, metric), rel=1e-14)
    if shape[1] == shape[2]:
        for W, p, value in zip(stack, priors, fp.distortion(stack, priors), strict=True):
            assert value == fp.distortion(W, p)
    else:
        with pytest.raises(fp.InvalidInput, match=r"Pass metric\[x, y\]"):
            fp.distortion(stack, priors)


def test_contraction_and_correlation_of_a_stack():
    stack, priors = random_stack((6, 3, 4), 7)
    etas, rhos = fp.contraction_coefficient(stack), fp.maximal_correlation(stack, priors)
    assert isinstance(etas, fp.Brackets)
    for b, (W, p) in enumerate(zip(stack, priors, strict=True)):
        assert etas[b] == fp.contraction_coefficient(W)
        assert etas.lower[b] <= correlation.contraction(W.tolist()) <= etas.upper[b]
        assert rhos[b] >= correlation.maximal_correlation(W.tolist(), p.tolist())


def test_a_set_of_priors_takes_every_channel():
    stack, _ = random_stack((3, 3, 4), 8)
    every = fp.PriorSet.all(3)
    expected = [fp.pml_level(W, every) for W in stack]
    np.testing.assert_array_equal(fp.pml_level(stack, every), expected)


@pytest.mark.parametrize("name", list(LEVELS))
def test_blocks_threads_and_layouts_do_not_change_a_level(name, monkeypatch):
    monkeypatch.setattr(inputs, "_BLOCK", 100)
    monkeypatch.setattr(inputs, "_GRAIN", 50)
    stack, priors = random_stack((57, 4, 5), 9, 0.1)
    measure, out = getattr(fp, name), np.empty(57)
    expected = one_by_one(name, stack, priors)
    locked = stack.copy()
    locked.flags.writeable = False
    wide = np.zeros((57, 8, 5))
    wide[:, ::2] = stack
    for layout in (stack, locked, np.asfortranarray(stack), wide[:, ::2], stack.tolist()):
        result = measure(*arguments(name, layout, priors), out=out)
        assert result is out
        np.testing.assert_array_max_ulp(out, expected, 2)
    np.testing.assert_array_max_ulp(measure(*arguments(name, list(stack), priors)), expected, 2)


def test_rows_that_almost_sum_to_one_are_divided_as_in_single_calls():
    stack, priors = random_stack((5, 3, 3), 10)
    stack[3] *= 1.0 + 1e-11
    priors[2] *= 1.0 - 1e-11
    for name in LEVELS:
        many = getattr(fp, name)(*arguments(name, stack, priors))
        np.testing.assert_array_max_ulp(many, one_by_one(name, stack, priors), 2)


def test_a_prior_of_one_row_serves_all_channels():
    stack, priors = random_stack((5, 3, 3), 11)
    expected = fp.pml_level(stack, priors[0])
    np.testing.assert_array_equal(fp.pml_level(stack, fp.Dense(priors[0])), expected)
    with pytest.raises(fp.InvalidInput, match="on one row"):
        fp.pml_level(np.full((2, 4, 2), 0.5), fp.Uniform(2, 2))


@pytest.mark.parametrize("blocks", [1 << 16, 9])
@pytest.mark.parametrize("name", [*LEVELS, *OTHERS])
def test_a_wrong_element_is_named(name, blocks, monkeypatch):
    monkeypatch.setattr(inputs, "_BLOCK", blocks)
    measure = getattr(fp, name)
    for value in (math.nan, -0.5, math.inf, 0.7):
        stack, priors = random_stack((5, 3, 3), 12)
        stack[3, 1, 2] = value
        with pytest.raises(fp.InvalidInput, match="channel 3 of the stack"):
            measure(*arguments(name, stack, priors))
        if len(arguments(name, stack, priors)) == 2:
            stack, priors = random_stack((5, 3, 3), 12)
            priors[4, 0] = value
            with pytest.raises(fp.InvalidInput, match="prior 4 of the stack"):
                measure(stack, priors)


def test_bad_shapes_are_refused_in_words():
    stack, priors = random_stack((5, 3, 4), 13)
    with pytest.raises(fp.InvalidInput, match=r"shape \(3,\) or \(5, 3\); got \(5, 4\)"):
        fp.mutual_information(stack, np.full((5, 4), 0.25))
    with pytest.raises(fp.InvalidInput, match="no empty side"):
        fp.dp_level(stack[:0])
    with pytest.raises(fp.InvalidInput, match="out must be a writeable array"):
        fp.dp_level(stack, out=np.empty(4))
    with pytest.raises(fp.InvalidInput, match="out is for a stack"):
        fp.dp_level(stack[0], out=np.empty(1))
    with pytest.raises(fp.InvalidInput, match="row must be left out"):
        fp.pml_level(stack, priors, row=0)
    with pytest.raises(fp.InvalidInput, match="PriorSet"):
        fp.mutual_information(stack, fp.PriorSet.all(3))
    with pytest.raises(fp.InvalidInput, match="2-D"):
        fp.dp_level(stack[None])


def test_nothing_of_the_size_of_the_stack_is_made():
    stack, priors = random_stack((20_000, 8, 8), 14)
    stack[7] *= 1.0 + 1e-11  # this block is copied
    for name in LEVELS:
        getattr(fp, name)(*arguments(name, stack[:10], priors[:10]))
        tracemalloc.start()
        getattr(fp, name)(*arguments(name, stack, priors))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < stack.nbytes / 2, name
