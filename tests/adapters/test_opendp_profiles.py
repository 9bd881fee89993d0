"""Profiles of OpenDP's measurements under each of its measures."""

import math

import pytest

import fastpriv as fp
from fastpriv.accounting import PrivacyProfile
from fastpriv.adapters.opendp import make_channel, measurement_profile, to_privacy_profile
from fastpriv.errors import InvalidInput

dp = pytest.importorskip("opendp.prelude", reason="needs the extra 'opendp'")


dp.enable_features("contrib", "honest-but-curious")
SPACE = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
LAPLACE, GAUSS = dp.m.make_laplace(*SPACE, scale=2.0), dp.m.make_gaussian(*SPACE, scale=2.0)


def user(measure, value):
    """A measurement that says what its privacy is."""
    return dp.m.make_user_measurement(*SPACE, measure, lambda x: x, lambda d: value)


def test_pure_and_approximate_levels():
    made = measurement_profile(LAPLACE, 1.0)
    assert made.epsilon(0.0).upper == pytest.approx(0.5, rel=1e-12)
    assert measurement_profile(LAPLACE, 2.0).epsilon(0.0).upper == pytest.approx(1.0, rel=1e-12)
    made = measurement_profile(user(dp.approximate(dp.max_divergence()), (0.5, 1e-3)), 1.0)
    assert made.delta(0.5).upper == pytest.approx(1e-3, rel=1e-9)
    assert measurement_profile(LAPLACE, 1.0).self_compose(100).epsilon(1e-6).upper < 40.0


def test_zero_concentrated_levels():
    made = measurement_profile(GAUSS, 1.0)
    assert made.zcdp().upper == pytest.approx(0.125, rel=1e-9)
    # Never below the mechanism itself, and no more than OpenDP's own conversion.
    truth = PrivacyProfile.gaussian(2.0).epsilon(1e-6).upper
    theirs = dp.c.make_zCDP_to_approxDP(GAUSS).map(1.0).epsilon(1e-6)
    assert truth < made.epsilon(1e-6).upper < theirs * (1 + 1e-6)
    both = measurement_profile(dp.c.make_approximate(GAUSS), 1.0)
    assert both.epsilon(1e-6).upper == pytest.approx(made.epsilon(1e-6).upper, rel=1e-9)
    some = measurement_profile(
        user(dp.approximate(dp.zero_concentrated_divergence()), (0.125, 1e-7)), 1.0
    )
    assert some.delta(50.0).upper >= 1e-7
    assert some.epsilon(1e-6).upper > made.epsilon(1e-6).upper


def test_curves_are_bounded_by_their_chords():
    smoothed = dp.c.make_zCDP_to_approxDP(GAUSS)
    made, curve = measurement_profile(smoothed, 1.0), smoothed.map(1.0)
    truth = PrivacyProfile.gaussian(2.0)
    for t in (0.0, 0.3, 1.0, 2.0, 3.7):
        assert truth.delta(t).lower <= made.delta(t).upper
        assert made.delta(t).upper <= curve.delta(t) * 1.01 + 1e-15
    assert made.self_compose(20).epsilon(1e-6).upper > truth.self_compose(20).epsilon(1e-6).lower
    again = PrivacyProfile.from_json(made.to_json())
    assert again.delta(1.0).upper == made.delta(1.0).upper


def test_there_and_back():
    profile = PrivacyProfile.randomised_response(2, 0.5).self_compose(20)
    exported = to_privacy_profile(profile)
    for t in (0.0, 1.0, 4.0):
        assert exported.delta(t) == profile.delta(t).upper
    assert exported.epsilon(1e-6) == pytest.approx(profile.epsilon(1e-6).upper, rel=1e-6)
    back = measurement_profile(exported)
    for t in (0.0, 1.0, 4.0, 9.9):
        assert profile.delta(t).upper <= back.delta(t).upper * (1 + 1e-9) + 1e-300
        assert back.delta(t).upper <= profile.delta(t).upper * 1.01 + 1e-12


def test_renyi_divergences():
    made = measurement_profile(user(dp.renyi_divergence(), lambda order: 0.125 * order), 1.0)
    assert made.renyi(2.0).upper == pytest.approx(0.25, rel=1e-3)
    assert made.epsilon(1e-6).upper == pytest.approx(
        PrivacyProfile.zcdp(0.125).epsilon(1e-6).upper, rel=1e-3
    )
    assert made.epsilon(1e-6).upper >= PrivacyProfile.zcdp(0.125).epsilon(1e-6).upper * (1 - 1e-9)


@pytest.mark.parametrize("value", [math.inf, 0.0])
def test_edges(value):
    for measure in (dp.max_divergence(), dp.zero_concentrated_divergence()):
        made = measurement_profile(user(measure, value), 1.0)
        assert made.epsilon(1e-6).upper == value


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_flat_curves(value):
    made = measurement_profile(dp.new_privacy_profile(lambda epsilon: value))
    assert made.delta(0.0).upper == pytest.approx(value, rel=1e-9)
    assert made.delta(700.0).upper == pytest.approx(value, rel=1e-9)


def test_what_has_no_profile():
    with pytest.raises(InvalidInput, match="output measure must be one of"):
        measurement_profile(user(dp.user_divergence("mine"), 1.0), 1.0)
    for wrong in (3, None, "laplace"):
        with pytest.raises(InvalidInput, match="measurement"):
            measurement_profile(wrong)
        with pytest.raises(InvalidInput, match="PrivacyProfile"):
            to_privacy_profile(wrong)


DATA = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
COUNT = dp.t.make_count(*DATA) >> dp.m.then_laplace(10.0)
CHANNEL = make_channel(fp.HammingChannel(2, 2, 0.5))


@pytest.mark.parametrize(
    ("d_in", "asked", "relation"),
    [
        (1, None, "add-or-remove"),
        (1, "add-or-remove", "add-or-remove"),
        (2, None, "add-or-remove"),
        (2, "replace-one", "replace-one"),
    ],
)
def test_symmetric_distances_are_of_records_that_come_and_go(d_in, asked, relation):
    assert measurement_profile(COUNT, d_in, relation=asked).relation == relation


def test_a_replacement_is_two_steps_in_the_symmetric_distance():
    with pytest.raises(InvalidInput, match="Give d_in=2"):
        measurement_profile(COUNT, 1, relation="replace-one")
    with pytest.raises(InvalidInput, match="relation must be 'replace-one'"):
        measurement_profile(CHANNEL, relation="add-or-remove")


def test_other_distances():
    channel = measurement_profile(CHANNEL)
    assert channel.relation == "replace-one"
    assert measurement_profile(LAPLACE, 1.0).relation == "add-or-remove"
    stated = measurement_profile(LAPLACE, 1.0, relation="replace-one")
    assert stated.compose(channel).relation == "replace-one"
