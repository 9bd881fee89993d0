"""The dp-accounting adapter, by dp-accounting's own conformance class and against exact values."""

import importlib
import importlib.metadata
import math
import pickle
import unittest

import numpy as np
import pytest

import fastpriv as fp
from fastpriv.accounting import PrivacyProfile

pytest.importorskip("dp_accounting", reason="needs the extra 'dp-accounting'")

import dp_accounting
from dp_accounting import privacy_accountant_test
from dp_accounting.pld import pld_privacy_accountant, privacy_loss_distribution

from fastpriv.adapters.dp_accounting import ChannelDpEvent, ProfileAccountant, to_pld

Relation = dp_accounting.NeighboringRelation
Response = dp_accounting.RandomizedResponseDpEvent
ONE, SPECIAL, ADD = Relation.REPLACE_ONE, Relation.REPLACE_SPECIAL, Relation.ADD_OR_REMOVE_ONE


class ProfileAccountantTest(privacy_accountant_test.PrivacyAccountantTest):
    """dp-accounting's conformance class."""

    def _make_test_accountants(self):
        return [ProfileAccountant(), *map(ProfileAccountant, (ONE, SPECIAL, ADD))]


def response(m, epsilon):
    """Randomised response at a level, as dp-accounting says it."""
    return Response(noise_parameter=m / (m - 1 + math.exp(epsilon)), num_buckets=m)


# What dp-accounting asks of its own accountant for randomised response.


def test_the_tests_in_the_wheel(monkeypatch):
    """All of dp-accounting's tests of its own accountant, with ours in its place.

    Some assert a refusal where ours has an answer: Laplace noise where a person is replaced, also
    on a sample.
    """
    shipped = importlib.import_module("dp_accounting.pld.pld_privacy_accountant_test")
    monkeypatch.setattr(shipped.pld_privacy_accountant, "PLDAccountant", ProfileAccountant)
    every = unittest.defaultTestLoader.loadTestsFromTestCase(shipped.PldPrivacyAccountantTest)
    result = unittest.TestResult()
    every.run(result)
    assert result.testsRun >= 60
    wrong = [str(test) for test, _ in result.failures + result.errors]
    assert len(wrong) == 4
    assert all("laplace" in test.lower() for test in wrong)
    assert all("composition_errors" in test or "not_supported" in test for test in wrong)


@pytest.mark.parametrize(("relation", "taken"), [(ONE, True), (SPECIAL, True), (ADD, False)])
def test_relations_of_randomised_response(relation, taken):
    accountant = ProfileAccountant(relation)
    assert accountant.supports(Response(0.1, 3)) is taken
    if not taken:
        with pytest.raises(
            dp_accounting.UnsupportedEventError,
            match="neighboring_relation must be `REPLACE_ONE` or `REPLACE_SPECIAL`",
        ):
            accountant.compose(Response(0.1, 3))
        assert accountant.get_epsilon(0.0) == 0.0


@pytest.mark.parametrize("relation", [ONE, SPECIAL])
def test_a_single_bucket_tells_nothing(relation):
    accountant = ProfileAccountant(relation).compose(Response(0.0, 1), 5)
    assert accountant.get_delta(0) == accountant.get_epsilon(0) == 0


@pytest.mark.parametrize("relation", [ONE, SPECIAL])
@pytest.mark.parametrize("noise", [0.0, 5e-324])
def test_no_noise_tells_all(relation, noise):
    accountant = ProfileAccountant(relation).compose(Response(noise, 3))
    assert accountant.get_delta(1.0) == 1
    assert accountant.get_epsilon(0.01) == math.inf


@pytest.mark.parametrize("relation", [ONE, SPECIAL])
def test_nothing_but_noise_tells_nothing(relation):
    accountant = ProfileAccountant(relation).compose(Response(1.0, 3), 100)
    assert accountant.get_epsilon(0.0) < 1e-12


@pytest.mark.parametrize(
    ("relation", "noise", "m"),
    [(ONE, 4 / (3 + math.e), 4), (SPECIAL, (4 - math.e) / 3, 4), (SPECIAL, math.exp(-1), 2)],
)
def test_levels_of_randomised_response(relation, noise, m):
    accountant = ProfileAccountant(relation).compose(Response(noise, m))
    assert accountant.get_delta(1.0) < 1e-14  # the level is 1 but for a few units in the last place
    assert 1.0 <= accountant.get_epsilon(0.0) * (1 + 1e-15) < 1.0 + 1e-12
    assert accountant.get_delta(0.9) > 1e-3


@pytest.mark.parametrize("count", [0, -1])
def test_counts_that_are_none(count):
    accountant = ProfileAccountant()
    with pytest.raises(ValueError, match="count"):
        accountant.compose(Response(0.1, 3), count)
    assert accountant.get_epsilon(0.0) == 0.0


# Counts and exact values.

EXACT = [  # m = 4, epsilon = 0.5, to 80 digits
    (100, 1e-6, 23.4674670330556),
    (100, 1e-14, 33.1864818604555),
    (1000, 1e-6, 124.340019018036),
    (1000, 1e-14, 157.682916784456),
]


@pytest.mark.parametrize(("count", "delta", "truth"), EXACT)
def test_counts_are_handled_in_every_form(count, delta, truth):
    event = response(4, 0.5)
    forms = {
        "count": ProfileAccountant().compose(event, count),
        "self-composed": ProfileAccountant().compose(
            dp_accounting.SelfComposedDpEvent(event, count)
        ),
        "nested": ProfileAccountant().compose(
            dp_accounting.ComposedDpEvent(
                [dp_accounting.SelfComposedDpEvent(event, count // 10), dp_accounting.NoOpDpEvent()]
            ),
            10,
        ),
        "channel": ProfileAccountant().compose(
            ChannelDpEvent(fp.HammingChannel(10**6, 4, 0.5)), count
        ),
    }
    for name, accountant in forms.items():
        assert truth - 1e-12 <= accountant.get_epsilon(delta) <= truth + 1e-8, name
        assert accountant.get_delta(truth) >= delta * (1 - 1e-9), name


def test_where_the_peer_fails():
    """dp-accounting 0.6.0's own accountant forgets the count; ours does not."""
    peer = pld_privacy_accountant.PLDAccountant(ONE).compose(response(4, 0.5), 100)
    ours = ProfileAccountant().compose(response(4, 0.5), 100)
    assert ours.get_epsilon(1e-6) == pytest.approx(23.4674670330556, rel=1e-9)
    if importlib.metadata.version("dp-accounting") == "0.6.0":
        assert peer.get_epsilon(1e-6) < 0.6


def test_special_records_by_hand():
    """Ten answers of a record against ten uniform ones, summed over how often it told the truth."""
    m, noise, count, level = 3, 0.4, 10, 1.5
    stay = 1 - noise + noise / m
    accountant = ProfileAccountant(SPECIAL).compose(Response(noise, m), count)
    worst = 0.0
    for p, q in ((stay, 1 / m), (1 / m, stay)):
        hits = [math.comb(count, i) * p**i * (1 - p) ** (count - i) for i in range(count + 1)]
        base = [math.comb(count, i) * q**i * (1 - q) ** (count - i) for i in range(count + 1)]
        worst = max(
            worst,
            sum(max(0.0, a - math.exp(level) * b) for a, b in zip(hits, base, strict=True)),
        )
    # The two directions are covered by one symmetric pair, so more may be reported, never less.
    assert worst * (1 - 1e-12) <= accountant.get_delta(level)
    one = ProfileAccountant(SPECIAL).compose(Response(noise, m))
    single = max(stay - math.exp(0.2) / m, (1 - 1 / m) - math.exp(0.2) * (1 - stay))
    assert one.get_delta(0.2) == pytest.approx(single, rel=1e-12)


def test_channels_and_responses_compose():
    W = fp.Channel([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]])
    accountant = ProfileAccountant().compose(ChannelDpEvent(W), 3).compose(response(4, 0.5), 2)
    profile = PrivacyProfile.of(W).self_compose(3)
    both = profile.compose(PrivacyProfile.randomised_response(4, 0.5).self_compose(2))
    for delta in (0.0, 1e-9, 1e-3):
        assert accountant.get_epsilon(delta) == pytest.approx(both.epsilon(delta).upper, rel=1e-9)
    assert accountant.ledger == dp_accounting.ComposedDpEvent(
        [
            dp_accounting.SelfComposedDpEvent(ChannelDpEvent(W), 3),
            dp_accounting.SelfComposedDpEvent(response(4, 0.5), 2),
        ]
    )
    accountant.compose(dp_accounting.NonPrivateDpEvent())
    assert accountant.get_epsilon(1e-3) == math.inf


def test_outputs_that_give_a_database_away():
    accountant = ProfileAccountant().compose(ChannelDpEvent(fp.Channel([[0.9, 0.1], [1.0, 0.0]])))
    assert accountant.get_delta(math.inf) == pytest.approx(0.1, rel=1e-12)
    assert accountant.get_epsilon(0.05) == math.inf
    assert accountant.get_epsilon(0.2) == 0.0


@pytest.mark.parametrize("relation", [SPECIAL, ADD])
def test_channels_are_for_neighbours_of_ours(relation):
    event = ChannelDpEvent(fp.HammingChannel(3, 2, 1.0))
    accountant = ProfileAccountant(relation)
    assert not accountant.supports(event)
    with pytest.raises(dp_accounting.UnsupportedEventError, match="REPLACE_ONE"):
        accountant.compose(dp_accounting.ComposedDpEvent([response(2, 0.1), event]))
    assert accountant.get_epsilon(0.0) == 0.0
    assert not ProfileAccountant().supports(dp_accounting.UnsupportedDpEvent())


@pytest.mark.parametrize("event", [Response(-0.1, 3), Response(math.nan, 3), Response(0.5, 0)])
def test_responses_that_mean_nothing(event):
    accountant = ProfileAccountant()
    with pytest.raises(ValueError, match="must be"):
        accountant.compose(event)
    assert accountant.ledger == dp_accounting.NoOpDpEvent()


def test_events_are_events():
    channel = fp.HammingChannel(3, 2, 1.0)
    event = ChannelDpEvent(channel)
    assert event == ChannelDpEvent(channel)
    assert dp_accounting.DpEvent.from_named_tuple(event.to_named_tuple()) == event
    assert isinstance(pickle.loads(pickle.dumps(event)), ChannelDpEvent)


# Privacy loss distributions.


@pytest.mark.parametrize("width", [1e-4, 1e-3, 0.3])
def test_loss_distributions_are_pessimistic(width):
    rng = np.random.default_rng(0)
    for channel in (
        fp.HammingChannel(7, 4, 0.5),
        fp.Channel(rng.dirichlet(np.ones(4), 3)),
        fp.Channel([[0.9, 0.1], [1.0, 0.0]]),
        fp.HammingChannel(3, 2, 0.0),
    ):
        pld = to_pld(channel, width)
        for epsilon in (0.0, 0.01, 0.25, 0.5, 1.0, 3.0):
            truth = fp.hockey_stick(channel, epsilon)
            assert pld.get_delta_for_epsilon(epsilon) >= truth * (1 - 1e-12) - 1e-15
            later = fp.hockey_stick(channel, max(epsilon - width, 0.0))
            assert pld.get_delta_for_epsilon(epsilon) <= max(later, truth) + width + 1e-12


def test_loss_distribution_of_randomised_response():
    ours = to_pld(PrivacyProfile.randomised_response(4, 0.5).self_compose(30))
    theirs = privacy_loss_distribution.from_randomized_response(
        4 / (3 + math.exp(0.5)), 4, neighboring_relation=ONE
    ).self_compose(30)
    for delta in (1e-3, 1e-6, 1e-9):
        assert ours.get_epsilon_for_delta(delta) == pytest.approx(
            theirs.get_epsilon_for_delta(delta), rel=1e-3
        )
    mixed = ours.compose(privacy_loss_distribution.from_gaussian_mechanism(5.0))
    assert mixed.get_epsilon_for_delta(1e-6) > ours.get_epsilon_for_delta(1e-6)


def test_grids_that_are_too_fine():
    with pytest.raises(ValueError, match="must be larger"):
        to_pld(fp.HammingChannel(1, 2, 700.0), 1e-9)


def test_an_event_takes_a_matrix_and_refuses_what_is_none():
    event = ChannelDpEvent([[0.75, 0.25], [0.25, 0.75]])
    assert event == ChannelDpEvent(fp.Channel([[0.75, 0.25], [0.25, 0.75]]))
    assert isinstance(event.channel, fp.Channel)
    for wrong in ([[0.5, 0.6]], [fp.HammingChannel(1, 2, 1.0)], 3):
        with pytest.raises(fp.InvalidInput):
            ChannelDpEvent(wrong)
