"""Events of dp-accounting that sample, repeat and aggregate, under every relation."""

import math
from fractions import Fraction

import pytest

from fastpriv.accounting import PrivacyProfile

pytest.importorskip("dp_accounting", reason="needs the extra 'dp-accounting'")

from dp_accounting import NeighboringRelation, UnsupportedEventError
from dp_accounting import dp_event as dpa
from dp_accounting.rdp import rdp_privacy_accountant as rdp

from fastpriv.accounting.profile.repeated import _gamma, _mean, repeat_and_select
from fastpriv.adapters.dp_accounting import ProfileAccountant
from fastpriv.adapters.dp_events import SUPPORTED

Relation = NeighboringRelation
ONE, SPECIAL, ADD = Relation.REPLACE_ONE, Relation.REPLACE_SPECIAL, Relation.ADD_OR_REMOVE_ONE
EVERY = (ONE, SPECIAL, ADD)
Gaussian, Laplace = dpa.GaussianDpEvent, dpa.LaplaceDpEvent
Without, With = dpa.SampledWithoutReplacementDpEvent, dpa.SampledWithReplacementDpEvent
Repeat, Tree = dpa.RepeatAndSelectDpEvent, dpa.SingleEpochTreeAggregationDpEvent


def epsilon(event, relation, count=1, delta=1e-6):
    return ProfileAccountant(relation).compose(event, count).get_epsilon(delta)


def test_every_event_is_taken_or_refused_in_words():
    """All event classes of the installed dp-accounting, but bases and compositions."""
    basic = {
        "DpEvent",
        "NoOpDpEvent",
        "NonPrivateDpEvent",
        "ComposedDpEvent",
        "SelfComposedDpEvent",
    }
    every = {name for name in dir(dpa) if name.endswith("DpEvent")} - basic
    taken = {kind.__name__ for kind in SUPPORTED}
    assert every - taken == {"UnsupportedDpEvent"}
    with pytest.raises(UnsupportedEventError, match=r"Supported are .*RepeatAndSelectDpEvent"):
        ProfileAccountant(ADD).compose(dpa.UnsupportedDpEvent())


@pytest.mark.parametrize("relation", EVERY)
@pytest.mark.parametrize("kind", [Without, With])
def test_samples_of_fixed_size(relation, kind):
    name = {ONE: "replace-one", SPECIAL: "replace-special", ADD: "add-or-remove"}[relation]
    noise = PrivacyProfile.laplace(3.0, relation="replace-one")
    method = "sampled_without_replacement" if kind is Without else "sampled_with_replacement"
    expected = getattr(noise, method)(3, 100, relation=name).delta(0.1).upper
    got = ProfileAccountant(relation).compose(kind(100, 3, Laplace(3.0)))
    assert got.get_delta(0.1) == expected
    assert got.neighboring_relation is relation


def test_samples_are_of_neighbours_that_are_replaced_by_default():
    accountant = ProfileAccountant().compose(Without(100, 3, Gaussian(2.0)))
    assert accountant.neighboring_relation is ONE
    assert accountant.get_delta(0.1) == ProfileAccountant(ONE).compose(
        Without(100, 3, Gaussian(2.0))
    ).get_delta(0.1)


def test_below_the_renyi_accountant():
    """Its noise is relative to what a replaced person moves, which is twice its norm."""
    peer = rdp.RdpAccountant(neighboring_relation=ONE)
    peer.compose(Without(1000, 10, Gaussian(1.0)), 200)
    ours = epsilon(Without(1000, 10, Gaussian(2.0)), ONE, 200)
    assert 0.3 * peer.get_epsilon(1e-6) < ours < peer.get_epsilon(1e-6)


def test_compositions_inside_of_samples():
    inner = dpa.ComposedDpEvent(
        [dpa.SelfComposedDpEvent(Gaussian(2.0), 2), Gaussian(math.sqrt(2.0))]
    )
    one = ProfileAccountant(ONE).compose(Without(50, 5, inner))
    other = ProfileAccountant(ONE).compose(Without(50, 5, Gaussian(1.0)))
    assert one.get_delta(0.5) == pytest.approx(other.get_delta(0.5), rel=1e-12)


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (Without(5, 6, Gaussian(1.0)), "below dataset_size"),
        (Without(0, 0, Gaussian(1.0)), "dataset_size"),
        (With(5, 2, dpa.RandomizedResponseDpEvent(0.5, 2)), "with replacement"),
        (Without(5, 2, dpa.UnsupportedDpEvent()), "Unsupported"),
        (Repeat(Gaussian(1.0), 0.5, 1.0), "mean"),
        (Repeat(Gaussian(1.0), 2.0, -1.0), "shape"),
    ],
)
def test_what_is_refused(event, words):
    accountant = ProfileAccountant(ONE)
    assert not accountant.supports(event)
    with pytest.raises(UnsupportedEventError, match=words):
        accountant.compose(event)
    assert accountant.get_epsilon(0.0) == 0.0


def test_nothing_hidden():
    for event in (Without(9, 3, dpa.NonPrivateDpEvent()), Repeat(Gaussian(0.0), 2.0, 1.0)):
        assert epsilon(event, ONE) == math.inf
    for event in (Without(9, 0, Gaussian(1.0)), Repeat(dpa.NoOpDpEvent(), 2.0, 1.0)):
        assert epsilon(event, ONE, delta=0.0) == 0.0


# Runs of which the best is chosen.


@pytest.mark.parametrize("shape", [0.0, 0.5, 1.0, 3.0, math.inf])
def test_repetitions_against_the_renyi_accountant(shape):
    event = Repeat(Gaussian(3.0), 8.0, shape)
    peer = rdp.RdpAccountant(neighboring_relation=ADD)
    peer.compose(event)
    theirs, ours = peer.get_epsilon(1e-6), epsilon(event, ADD)
    assert 0.5 * theirs < ours < theirs * 1.001


@pytest.mark.parametrize("shape", [0.0, 1.0, 2.5])
def test_the_parameter_of_a_mean(shape):
    gamma = _gamma(7.0, shape)
    assert _mean(gamma, shape) == pytest.approx(7.0, rel=1e-9)
    assert _mean(gamma, shape) >= 7.0


@pytest.mark.parametrize("mean", [2.0, 10.0])
def test_repetitions_of_a_response(mean):
    """Geometric K of binary answers, the larger is shown: exact laws."""
    gamma, a = Fraction(1) / Fraction(mean), Fraction(3, 5)
    laws = []
    for one in (a, 1 - a):
        none = gamma * (1 - one) / (1 - (1 - gamma) * (1 - one))  # all answers are 0
        laws.append([none, 1 - none])
    profile = repeat_and_select(PrivacyProfile.of([[0.6, 0.4], [0.4, 0.6]]), mean, 1.0)
    for t in (0.0, 0.2, 0.5, 1.0):
        for P, Q in (laws, laws[::-1]):
            gain = sum(
                max(float(p) - math.exp(t) * float(q), 0.0) for p, q in zip(P, Q, strict=True)
            )
            assert gain <= profile.delta(t).upper


def test_trees():
    once = epsilon(Tree(2.0, 7), SPECIAL)
    assert once == pytest.approx(epsilon(dpa.SelfComposedDpEvent(Gaussian(2.0), 3), SPECIAL))
    assert epsilon(Tree(2.0, [1, 7, 3]), SPECIAL) == once
    assert epsilon(Tree(4.0, 7), ONE) == pytest.approx(once)
    with pytest.raises(UnsupportedEventError, match="REPLACE_SPECIAL"):
        epsilon(Tree(2.0, 7), ADD)


def test_sampled_noise_where_a_person_is_replaced():
    step = dpa.PoissonSampledDpEvent(0.1, Laplace(2.0))
    assert epsilon(step, ADD) < epsilon(step, ONE) < epsilon(Laplace(2.0), ONE)
    discrete = dpa.PoissonSampledDpEvent(0.1, dpa.DiscreteLaplaceDpEvent(0.5, 2))
    assert epsilon(discrete, ADD) < epsilon(discrete, ONE)
    with pytest.raises(UnsupportedEventError, match="of a `RandomizedResponseDpEvent`"):
        epsilon(dpa.PoissonSampledDpEvent(0.1, dpa.RandomizedResponseDpEvent(0.5, 2)), ONE)


@pytest.mark.parametrize("noise", [0.999, 0.5, 0.1])
@pytest.mark.parametrize("m", [2, 3, 10])
def test_response_against_a_blank_is_not_below_the_truth(noise, m):
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(50):
        exact = mpmath.mpf(noise)
        kept = 1 - exact * (m - 1) / m  # against 1/m, and the other answers against (m - 1)/m
        truth = max(mpmath.log(kept * m), -mpmath.log(exact))
    found = epsilon(dpa.RandomizedResponseDpEvent(noise, m), SPECIAL, delta=0.0)
    assert truth <= found <= truth * (1 + 1e-10)


# Events of later versions, by name.


def later(name, **fields):
    """An event of a later version of dp-accounting: a class with that name."""
    import attr

    made = {field: attr.ib(default=value) for field, value in fields.items()}
    return attr.make_class(name, made, bases=(dpa.DpEvent,), frozen=True)()


def test_events_of_later_versions():
    of = PrivacyProfile
    cases = [
        (later("EpsilonDeltaDpEvent", epsilon=0.5, delta=1e-3), of.from_epsilon_delta(0.5, 1e-3)),
        (
            later("DiscreteGaussianDpEvent", sigma=2.0, sensitivity=1.0, dimension=1),
            of.discrete_gaussian(2.0),
        ),
        (
            later("DiscreteGaussianDpEvent", sigma=2.0, sensitivity=1.5, dimension=1),
            of.discrete_gaussian(2.0),
        ),
        (later("ExponentialMechanismDpEvent", epsilon=0.1), of.exponential(0.1)),
        (later("PermuteAndFlipDpEvent", epsilon=0.1), of.permute_and_flip(0.1)),
    ]
    for event, profile in cases:
        accountant = ProfileAccountant().compose(event, 10)
        expected = profile.self_compose(10)
        assert accountant.get_epsilon(0.02) == expected.epsilon(0.02).upper
        assert accountant.get_delta(0.3) == expected.delta(0.3).upper


def test_discrete_gaussian_noise_of_unknown_dimension():
    for dimension in (None, 3):
        event = later("DiscreteGaussianDpEvent", sigma=2.0, sensitivity=1.0, dimension=dimension)
        epsilon = ProfileAccountant().compose(event, 4).get_epsilon(1e-5)
        zcdp = PrivacyProfile.zcdp(0.5).epsilon(1e-5).upper
        assert epsilon == pytest.approx(zcdp, rel=1e-9)
    assert (
        ProfileAccountant()
        .compose(later("DiscreteGaussianDpEvent", sigma=0.0, sensitivity=1.0, dimension=1))
        .get_epsilon(1e-5)
        == math.inf
    )


def test_the_exponential_mechanism_counts_every_release():
    """Ten releases at level 1 cost at least 8 at a small delta, not as much as one."""
    event = dpa.SelfComposedDpEvent(later("ExponentialMechanismDpEvent", epsilon=1.0), 10)
    assert ProfileAccountant().compose(event).get_epsilon(1e-6) > 5.0
