"""What must stay the same, or may only fall, when a question is put another way.

Every notion of the registry that has a measure is asked. Nothing here knows a level: a structure
against its table, outputs in another order, joined or passed on, rows in another order, mixtures.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
from fastpriv.accounting import PrivacyProfile
from fastpriv.measures.levels import LEVELS
from fastpriv.notions import NOTIONS

#: Distortion is about outputs as databases, realised levels about draws; singling out is yes or no.
OTHERS = {"distortion", "realised-dp", "singles-out"}
MEASURED = [n for n in NOTIONS.values() if n.slug in LEVELS and n.scope in ("mechanism", "prior")]
MEASURED = [notion for notion in MEASURED if notion.slug not in OTHERS]
MECHANISM = [notion for notion in MEASURED if notion.scope == "mechanism"]
ADDING = [n for n in MEASURED if n.law and n.law.first == n.law.later == n.slug]
#: Under priors that give every database a chance, a mixture is no worse than the worse of two.
MIXED = [NOTIONS[s] for s in ("identifiability", "pml", "max-information", "information-privacy")]

every = pytest.mark.parametrize("notion", MEASURED, ids=lambda notion: notion.slug)
few = settings(max_examples=5, deadline=None)
SPACES = [(2,), (3,), (2, 2), (2, 3)]


def test_the_registry_is_asked():
    assert {"dp", "pml", "mutual-information", "sdpi"} <= {notion.slug for notion in MEASURED}
    assert len(MEASURED) >= 20
    assert ADDING


@st.composite
def laws(draw, size, least=0):
    """Draw probabilities with a common denominator; zeros where they are allowed."""
    weights = draw(st.lists(st.integers(least, 9), min_size=size, max_size=size).filter(any))
    return np.array(weights) / sum(weights)


@st.composite
def cases(draw, priors=1, spaces=SPACES):
    """Draw a channel with outputs that all can occur, and priors over its databases."""
    sizes = draw(st.sampled_from(spaces))
    size, outputs = math.prod(sizes), draw(st.integers(2, 4))
    matrix = np.array([draw(laws(outputs)) for _ in range(size)])
    matrix = matrix[:, matrix.any(axis=0)]
    chosen = [fp.Dense(draw(laws(size, least=1)), list(sizes)) for _ in range(priors)]
    return fp.Channel(matrix, fp.Space(sizes)), *chosen


def ends(value):
    """Return both ends of an answer."""
    return (value.lower, value.upper) if isinstance(value, fp.Bracket) else (value, value)


def asked(notion, channel, prior=None):
    """Return the level; the search of one constant stops early, at a bracket."""
    if notion.slug == "sdpi":
        return fp.sdpi_constant(channel, prior, gap=0.1, time_limit=None)
    return notion.level(channel, prior)


def at_most(small, large, share=1e-9):
    """Whether an answer may be no more than another, up to the rounding of the matrices."""
    return ends(small)[0] <= ends(large)[1] * (1.0 + share) + 1e-11


def same(one, other):
    """Whether two answers may be the same number."""
    return at_most(one, other) and at_most(other, one)


def changed(channel, matrix):
    """Return a channel on the same space."""
    return fp.Channel(np.ascontiguousarray(matrix), channel.space)


@every
@few
@given(cases(), st.randoms(use_true_random=False))
def test_the_order_of_outputs_does_not_matter(notion, case, random):
    channel, prior = case
    order = list(range(channel.matrix().shape[1]))
    random.shuffle(order)
    other = changed(channel, channel.matrix()[:, order])
    assert same(asked(notion, channel, prior), asked(notion, other, prior))


@every
@few
@given(cases())
def test_joining_outputs_raises_nothing(notion, case):
    channel, prior = case
    matrix = channel.matrix()
    joined = np.column_stack([matrix[:, :2].sum(axis=1), matrix[:, 2:]])
    assert at_most(asked(notion, changed(channel, joined), prior), asked(notion, channel, prior))


@every
@few
@given(cases(), st.sampled_from([0.25, 0.5, 0.75]))
def test_splitting_an_output_at_random_changes_nothing(notion, case, share):
    channel, prior = case
    matrix = channel.matrix()
    split = np.column_stack([share * matrix[:, 0], (1.0 - share) * matrix[:, 0], matrix[:, 1:]])
    assert same(asked(notion, changed(channel, split), prior), asked(notion, channel, prior))


@every
@few
@given(cases(), st.data())
def test_passing_outputs_on_raises_nothing(notion, case, data):
    channel, prior = case
    matrix = channel.matrix()
    outputs = matrix.shape[1]
    onwards = np.array([data.draw(laws(3)) for _ in range(outputs)])
    passed = changed(channel, matrix @ onwards)
    assert at_most(asked(notion, passed, prior), asked(notion, channel, prior))


@pytest.mark.search(every=10)
@every
@few
@given(cases(spaces=[(2, 2), (2, 3)]))
def test_the_order_of_people_does_not_matter(notion, case):
    channel, prior = case
    sizes = channel.space.sizes
    turned = np.arange(channel.space.size).reshape(sizes).T.reshape(-1)
    other = fp.Channel(np.ascontiguousarray(channel.matrix()[turned]), fp.Space(sizes[::-1]))
    law = fp.Dense(prior.pmf()[turned], list(sizes[::-1]))
    assert same(asked(notion, channel, prior), asked(notion, other, law))


@every
@few
@given(cases(), cases())
def test_two_releases_are_one_with_both_outputs(notion, case, second):
    (channel, prior), (other, _) = case, second
    if other.space.sizes != channel.space.sizes:
        rows = np.resize(other.matrix(), (channel.space.size, other.matrix().shape[1]))
        other = changed(channel, rows)
    both = np.einsum("xa,xb->xab", channel.matrix(), other.matrix())
    table = changed(channel, both.reshape(channel.space.size, -1))
    assert same(asked(notion, fp.compose(channel, other), prior), asked(notion, table, prior))


@pytest.mark.parametrize("notion", ADDING, ids=lambda notion: notion.slug)
@few
@given(cases())
def test_two_releases_cost_no_more_than_twice_one(notion, case):
    channel, prior = case
    one = ends(asked(notion, channel, prior))[1]
    twice = asked(notion, fp.compose(channel, channel), prior)
    assert at_most(twice, min(2.0 * one, notion.law.most))
    added = fp.accounting.compose_levels(notion.slug, [one, one])
    assert ends(added)[1] >= min(2.0 * one, notion.law.most)


@few
@given(cases(), st.integers(2, 3), st.sampled_from([0.0, 0.3, 1.0]))
def test_so_many_releases_are_single_ones_together(case, count, epsilon):
    one = PrivacyProfile.of(case[0])
    single = one
    for _ in range(count - 1):
        single = single.compose(one)
    assert same(one.self_compose(count).delta(epsilon), single.delta(epsilon))
    many = case[0]
    for _ in range(count - 1):
        many = fp.compose(many, case[0])
    # Neighbours are the same two in every release: what they reach is between the ends.
    assert one.self_compose(count).delta(epsilon).lower <= fp.hockey_stick(many, epsilon) + 1e-12
    assert fp.hockey_stick(many, epsilon) <= one.self_compose(count).delta(epsilon).upper + 1e-12


@pytest.mark.search(every=10)
@pytest.mark.parametrize("notion", MECHANISM, ids=lambda notion: notion.slug)
@few
@given(cases(), st.data(), st.sampled_from([0.25, 0.5]))
def test_a_mixture_of_mechanisms_is_no_worse_than_the_worse(notion, case, data, share):
    channel, _ = case
    other = np.array([data.draw(laws(channel.matrix().shape[1])) for _ in channel.matrix()])
    mixed = changed(channel, share * channel.matrix() + (1.0 - share) * other)
    parts = asked(notion, channel), asked(notion, changed(channel, other))
    assert at_most(asked(notion, mixed), max(ends(part)[1] for part in parts))


@pytest.mark.parametrize("notion", MIXED, ids=lambda notion: notion.slug)
@few
@given(cases(priors=2), st.sampled_from([0.25, 0.5]))
def test_a_mixture_of_priors_is_no_worse_than_the_worse(notion, case, share):
    channel, first, second = case
    mixed = fp.Dense(share * first.pmf() + (1.0 - share) * second.pmf(), first.space.sizes)
    parts = asked(notion, channel, first), asked(notion, channel, second)
    assert at_most(asked(notion, channel, mixed), max(ends(part)[1] for part in parts))


@few
@given(cases(priors=2), st.sampled_from([0.25, 0.5]))
def test_information_is_concave_in_the_prior(case, share):
    channel, first, second = case
    mixed = fp.Dense(share * first.pmf() + (1.0 - share) * second.pmf(), first.space.sizes)
    parts = [fp.mutual_information(channel, law) for law in (first, second)]
    average = share * parts[0] + (1.0 - share) * parts[1]
    assert at_most(average, fp.mutual_information(channel, mixed))


CHANNELS = {
    "hamming": lambda: fp.HammingChannel(3, 2, 0.7),
    "product": lambda: fp.ProductChannel([[[0.8, 0.2], [0.1, 0.9]], [[0.5, 0.5], [0.3, 0.7]]] * 1),
    "tilted": lambda: fp.TiltedChannel(fp.Product.iid([0.3, 0.7], 3), 0.9),
    "posterior": lambda: fp.PosteriorChannel(fp.Exchangeable.beta_binomial(3, 2.0, 1.0), 4.0),
    "query": lambda: fp.QueryChannel.count(3, [[0.7, 0.3], [0.6, 0.4], [0.4, 0.6], [0.3, 0.7]]),
}
PRIORS = {
    "uniform": lambda n: fp.Uniform(n, 2),
    "product": lambda n: fp.Product([[0.4, 0.6], [0.7, 0.3], [0.5, 0.5]][:n]),
    "exchangeable": lambda n: fp.Exchangeable.beta_binomial(n, 1.0, 3.0),
    "markov": lambda n: fp.Markov([0.6, 0.4], [[0.8, 0.2], [0.3, 0.7]], n),
}


PAIRS = [
    (notion, kind, law)
    for notion, kind, law in itertools.product(MEASURED, CHANNELS, PRIORS)
    if notion.scope == "prior" or law == "uniform"
]


@pytest.mark.search(every=10)
@pytest.mark.parametrize(
    ("notion", "kind", "law"), PAIRS, ids=["-".join([n.slug, k, p]) for n, k, p in PAIRS]
)
def test_a_structure_is_its_table(notion, kind, law):
    channel = CHANNELS[kind]()
    prior = PRIORS[law](channel.space.n)
    table = fp.Channel(channel.matrix(), channel.space)
    dense = fp.Dense(prior.pmf(), prior.space.sizes)
    assert same(asked(notion, channel, prior), asked(notion, table, dense))
