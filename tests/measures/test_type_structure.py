"""Channels on types under exchangeable priors, against their matrices."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
from fastpriv._structure.johnson import block_norms
from fastpriv._structure.types import Blocks, Stack, classes_against, types_of
from fastpriv.channels.types import TypeChannel

CHANCES = st.sampled_from([0.0, 0.0, 1e-9, 0.1, 0.3, 0.5, 1.0])


def laws(size):
    """Laws of ``size`` values, often with zeros."""
    some = st.lists(CHANCES, min_size=size, max_size=size).filter(any)
    return some.map(lambda values: np.array(values) / np.sum(values))


def type_channel(n, m, weigh):
    """A channel whose classes have weights, divided by their sums for every database."""
    types = types_of(Blocks.single(n, m))
    classes = [classes_against(kind, types) for kind in types.counts]
    stack = Stack.of(types, classes)
    weights = weigh(stack)
    total = np.bincount(stack.row, weights * np.exp(stack.log_outputs))
    entries = weights / total[stack.row]
    return TypeChannel(types, classes, np.split(entries, stack.starts[1:-1]))


@st.composite
def cases(draw):
    """A channel on types and an exchangeable prior, both perhaps with zeros."""
    n, m = draw(st.sampled_from([(1, 2), (2, 2), (3, 2), (5, 2), (1, 3), (2, 3), (3, 3)]))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    zeros, power = draw(st.sampled_from([0.0, 0.3])), draw(st.sampled_from([1, 6]))
    near = draw(st.booleans())

    def weigh(stack):
        own = rng.random(len(stack.row)) ** power
        own = 1.0 + 1e-6 * own if near else own * (rng.random(len(own)) >= zeros)
        return own + 1e-3 * (stack.distance == 0)

    kind = draw(st.sampled_from(["uniform", "iid", "types"]))
    if kind == "uniform":
        prior = fp.Uniform(n, m)
    elif kind == "iid":
        prior = fp.Product.iid(draw(laws(m)), n)
    else:
        kinds = [c for c in np.ndindex(*(n + 1,) * m) if sum(c) == n]
        prior = fp.Exchangeable(dict(zip(kinds, draw(laws(len(kinds))), strict=True)))
    return type_channel(n, m, weigh), prior


def same(value, truth):
    """Whether two levels, both rounded up, agree up to what they were rounded up by."""
    return value == truth or abs(value - truth) <= 1e-12 * (1 + truth)


@pytest.mark.search(every=10)
@settings(max_examples=25)
@given(cases())
def test_structure_agrees_with_the_matrix(case):
    channel, prior = case
    plain = fp.Channel(channel.matrix(), channel.space)
    dense = fp.Dense(prior.pmf() / prior.pmf().sum(), prior.space.sizes)
    last = prior.space.n - 1
    for level in (
        fp.identifiability_level,
        fp.worst_leakage_factor,
        fp.max_information,
        fp.information_privacy_level,
        fp.maximal_correlation,
        lambda c, p: fp.pml_level(c, p, row="worst"),
        lambda c, p: fp.row_pml(c, p, last).max(),
        lambda c, p: fp.row_pml(c, p, 0, y=1),
        lambda c, p: fp.pml(c, p, y=c.output_space.size - 1),
    ):
        assert same(level(channel, prior), level(plain, dense))
    assert fp.mutual_information(channel, prior) == pytest.approx(
        fp.mutual_information(plain, dense), rel=1e-11, abs=1e-15
    )
    np.testing.assert_allclose(
        fp.row_pml(channel, prior, last), fp.row_pml(plain, dense, last), rtol=1e-12, atol=1e-12
    )
    bracket = fp.sdpi_constant(channel, prior, time_limit=None)
    truth = fp.sdpi_constant(plain, dense, time_limit=None)
    assert bracket.lower <= truth.upper
    assert truth.lower <= bracket.upper


@settings(max_examples=40)
@given(cases(), st.data())
def test_rows_that_differ(case, data):
    """Independent rows of different laws, and chains: absorbing ones and ones with zeros too."""
    channel, _ = case
    n, m = channel.space.n, channel.space.m
    if data.draw(st.booleans()):
        prior = fp.Product([data.draw(laws(m)) for _ in range(n)])
    else:
        steps = [data.draw(laws(m)) for _ in range(m)]
        prior = fp.Markov(data.draw(laws(m)), steps, n)
    plain = fp.Channel(channel.matrix(), channel.space)
    dense = fp.Dense(prior.pmf() / prior.pmf().sum(), prior.space.sizes)
    level = fp.identifiability_level(channel, prior)
    assert same(level, fp.identifiability_level(plain, dense))
    y = data.draw(st.integers(0, channel.space.size - 1))
    assert same(fp.pml(channel, prior, y=y), fp.pml(plain, dense, y=y))
    assert fp.distortion(channel, prior) == pytest.approx(fp.distortion(plain, dense), rel=1e-12)


@settings(max_examples=30)
@given(cases())
def test_capacity_and_contraction_agree_with_the_matrix(case):
    channel, _ = case
    plain = fp.Channel(channel.matrix(), channel.space)
    for measure in (fp.channel_capacity, fp.contraction_coefficient):
        value, truth = measure(channel), measure(plain)
        assert value.lower <= truth.upper
        assert truth.lower <= value.upper
        assert value.upper - value.lower <= 1e-8 * value.upper + 1e-13
    best = fp.capacity_prior(channel)
    reached = fp.mutual_information(plain, fp.Dense(best.pmf(), best.space.sizes))
    assert reached == pytest.approx(fp.channel_capacity(channel).lower, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_randomised_response_on_types(n):
    """E_d as a channel on types has the closed forms of E_d."""
    channel = type_channel(n, 2, lambda stack: np.exp(-0.7 * stack.distance))
    closed, prior = fp.HammingChannel(n, 2, 0.7), fp.Product.iid([0.8, 0.2], n)
    for level in (
        fp.identifiability_level,
        fp.mutual_information,
        fp.pml_level,
        fp.maximal_correlation,
        fp.worst_leakage_factor,
        lambda c, p: fp.row_pml(c, p, 0, y=[0] * n),
    ):
        assert level(channel, prior) == pytest.approx(level(closed, prior), rel=1e-10)
    capacity, truth = fp.channel_capacity(channel), fp.channel_capacity(closed)
    assert capacity.lower <= truth.upper
    assert truth.lower <= capacity.upper
    eta, truth = fp.contraction_coefficient(channel), fp.contraction_coefficient(closed)
    assert eta.lower <= truth.upper
    assert truth.lower <= eta.upper


def test_parts_of_randomised_response():
    """Part k of E_d under the uniform prior has the norm (a - b)^k, so k = 1 is the largest."""
    channel = type_channel(8, 2, lambda stack: np.exp(-stack.distance))
    even = np.full(9, -8 * math.log(2.0))
    gap = math.tanh(0.5)
    norms = block_norms(channel.by_overlap(), even, even)
    assert norms.lower <= gap <= norms.upper
    assert norms.upper - norms.lower <= 1e-12


@settings(max_examples=30)
@given(st.integers(1, 6), st.integers(2, 3).flatmap(laws))
def test_independent_rows_of_one_law_are_exchangeable(n, law):
    prior = fp.Product.iid(law, n)
    view = prior.by_type()
    np.testing.assert_allclose(view.pmf(), prior.pmf(), rtol=1e-13, atol=1e-300)
    assert view.epsilon_x() == pytest.approx(prior.epsilon_x(), rel=1e-13)
    assert view.min_entropy() == pytest.approx(prior.min_entropy(), rel=1e-13, abs=1e-15)
    assert view.by_type() is view
    assert fp.Product([[0.5, 0.5], [0.6, 0.4]]).by_type() is None
    assert fp.Markov([0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]], 2).by_type() is None
