"""Ways in which a stranger made guarantees smaller than the truth."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp

import fastpriv as fp
from fastpriv.accounting import Ledger, PrivacyOdometer, PrivacyProfile
from fastpriv.accounting.profile.discrete import Step
from fastpriv.errors import InvalidInput

MATRIX = np.array([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6], [0.3, 0.4, 0.3]])


@pytest.mark.parametrize("columns", [[2, 0, 1], [0, 1, 2]])
def test_two_channels_with_one_curve_are_charged_twice(columns):
    both = PrivacyProfile.of(MATRIX).compose(PrivacyProfile.of(MATRIX[:, columns]))
    ledger = Ledger({"approximate-dp": (9.0, 1e-6)})
    ledger.spend(both)
    assert ledger.spent["approximate-dp"] >= both.epsilon(1e-6).lower > 2.0


def test_a_step_that_is_written_twice_counts_twice():
    once = {"relation": "add-or-remove", "releases": [[["normal", 1.0], 1]]}
    twice = once | {"releases": once["releases"] * 2}
    assert PrivacyProfile.from_dict(twice) == PrivacyProfile.from_dict(once).self_compose(2)


def test_a_profile_without_its_relation_is_refused():
    text = json.loads(PrivacyProfile.of(fp.HammingChannel(1, 3, 0.5)).to_json())
    del text["relation"]
    with pytest.raises(InvalidInput, match="relation"):
        PrivacyProfile.from_json(json.dumps(text))


@pytest.mark.parametrize("q", [0.01, 0.3])
def test_a_sampled_count_is_within_the_bound_for_replacing_a_record(q):
    attained = PrivacyProfile.gaussian(1.0, q).epsilon(1e-5).lower  # a 1 is replaced by a 0
    for noise in (
        PrivacyProfile.gdp(1.0, relation="replace-one"),
        PrivacyProfile.gaussian(1.0).with_relation("replace-one"),
    ):
        assert noise.poisson_subsampled(q).epsilon(1e-5).upper >= attained


def test_vectors_of_bounded_length_keep_their_tight_pair():
    tight = PrivacyProfile.gaussian(1.0, 0.01, relation="replace-one").epsilon(1e-5)
    loose = PrivacyProfile.gaussian(1.0, relation="replace-one").poisson_subsampled(0.01)
    assert tight.upper <= loose.epsilon(1e-5).upper
    assert loose.epsilon(1e-5).lower <= tight.upper


@pytest.mark.parametrize(("parameter", "distance"), [(0.7, 3), (0.1, 3), (0.5, 2)])
def test_discrete_laplace_noise_has_the_exact_product_as_its_level(parameter, distance):
    level = PrivacyProfile.discrete_laplace(parameter, distance).epsilon(0.0)
    assert Fraction(level.lower) <= distance * Fraction(parameter) <= Fraction(level.upper)


@pytest.mark.parametrize(
    ("channel", "level"),
    [
        (fp.SubsetChannel(4, 709.0), 709.0),
        (fp.RecordChannel(fp.HammingChannel(2, 2, 355.0)), 710.0),
    ],
)
def test_chances_that_underflow_are_no_infinite_losses(channel, level):
    bracket = PrivacyProfile.of(channel).epsilon(0.0)
    assert bracket.lower <= level <= bracket.upper


@pytest.mark.parametrize("rho", [1e305, 1e308])
def test_an_odometer_ends_beyond_all_numbers(rho):
    odometer = PrivacyOdometer()
    with pytest.raises(fp.BudgetExceeded):
        odometer.spend(rho, 10)
    assert odometer.epsilon(1e-6) == 0.0


def test_an_import_never_changes_the_relation_of_a_file(tmp_path):
    Ledger.open(tmp_path / "a", {"dp": 1.0}, relation="add-or-remove").close()
    other = Ledger({"dp": 1.0})
    other.spend(fp.HammingChannel(1, 2, 0.1))
    with pytest.raises(InvalidInput, match="path must be a new file"):
        Ledger.from_json(other.to_json(), path=tmp_path / "a")
    with Ledger.open(tmp_path / "a") as ledger:
        assert ledger.relation == "add-or-remove"
        assert len(ledger) == 0
    with Ledger.from_json(other.to_json(), path=tmp_path / "b") as ledger:
        assert ledger.relation == "replace-one"


@pytest.mark.parametrize("seed", range(20))
def test_shuffled_messages_of_one_user_have_the_level_of_the_randomiser(seed):
    rng = np.random.default_rng(seed)
    first, apart = rng.uniform(0.05, 0.95), 10.0 ** rng.uniform(-15.0, -1.0)
    rows = [[p, 1.0 - p] for p in (first, min(first + apart, 1.0 - 1e-3))]
    level = fp.accounting.shuffled(rows, 1).epsilon(0.0)
    alone = PrivacyProfile.of(rows).epsilon(0.0)
    assert level.lower <= alone.upper
    assert alone.lower <= level.upper <= alone.upper * (1.0 + 1e-9) + 1e-14


@pytest.mark.parametrize(
    "step",
    [
        ["renyi", [3.0], [0.1, 0.2], 0.0, 0.0],
        ["renyi", [3.0, 2.0], [0.1, 0.2], 0.0, 0.0],
        ["renyi", [1.0], [0.1], 0.0, 0.0],
        ["allocation", 1e308, 4],
        ["discrete-gaussian", 1e308, 1],
    ],
)
def test_edited_steps_are_refused_when_they_are_read(step):
    with pytest.raises(InvalidInput):
        PrivacyProfile.from_dict({"relation": "add-or-remove", "releases": [[step, 1]]})


def test_a_shuffled_response_whose_odds_underflow_is_refused():
    with pytest.raises(InvalidInput, match="at most 740"):
        fp.accounting.shuffled(fp.HammingChannel(1, 2, 800.0), 10)
    level = fp.accounting.shuffled(fp.HammingChannel(1, 2, 740.0), 10).epsilon(1e-5)
    assert level.lower <= 740.0 <= level.upper


def test_endless_epochs_are_refused_without_a_warning():
    profile = fp.accounting.random_allocation(1.0, 10, epochs=10**30)
    with pytest.raises(fp.TooLarge):
        profile.epsilon(1e-5)


def test_a_sampled_infinite_mass_is_not_above_the_truth():
    step = PrivacyProfile.from_epsilon_delta(0.0, 1.0).poisson_subsampled(0.3)
    for profile in (step, step.compose(PrivacyProfile.gaussian(1.0))):
        assert profile.delta(1000.0).lower <= 0.3 <= profile.delta(1000.0).upper
        assert profile.epsilon(math.nextafter(0.3, 1.0)).lower < math.inf


def test_a_step_that_no_rule_composes_is_refused():
    class Other(Step):
        key = ("other",)
        symmetric = exact = True

    with pytest.raises(TypeError, match="got \\['Other'\\]"):
        PrivacyProfile({Other(): 1}, "add-or-remove").delta(0.0)


@pytest.mark.parametrize("steps", [1, 3])
def test_denormal_deltas_are_not_below_the_truth(steps):
    profile = PrivacyProfile.gaussian(1.0 / 120.0).self_compose(steps)
    with mp.workdps(50):
        mu = 120 * mp.sqrt(steps)
        for z in np.linspace(36.0, 39.0, 13).tolist():
            t = float(z * mu + mu * mu / 2)
            truth = mp.ncdf(mu / 2 - t / mu) - mp.exp(t) * mp.ncdf(-mu / 2 - t / mu)
            assert profile.delta(t).upper >= truth
            assert profile.delta(t).lower <= truth


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-16, 0.25), (3e-16, 0.75), (1e-15, 0.5)])
def test_finite_and_infinite_parts_are_added_downwards(epsilon, delta):
    found = PrivacyProfile.from_epsilon_delta(epsilon, delta).delta(0.0)
    with mp.workdps(50):
        truth = mp.mpf(delta) + (1 - mp.mpf(delta)) * mp.tanh(mp.mpf(epsilon) / 2)
        assert mp.mpf(found.lower) <= truth <= mp.mpf(found.upper)


@pytest.mark.parametrize("relation", [np.ones((2, 2)), np.ones((2, 0)), "", 3])
def test_a_relation_is_one_of_the_words(relation):
    with pytest.raises(InvalidInput):
        PrivacyProfile.from_epsilon_delta(1.0, 1e-6, relation=relation)
