"""Calibration, fixed mechanisms, and curves in other words, against plain references."""

import json
import math
from fractions import Fraction
from itertools import product
from statistics import NormalDist

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
from fastpriv.accounting import Ledger, PrivacyProfile, calibrate
from fastpriv.accounting.profile.text import part_of, plain
from fastpriv.errors import BudgetExceeded, Infeasible, InvalidInput, TooLarge

gaussian = PrivacyProfile.gaussian


# Calibration.


@pytest.mark.slow
def test_least_noise():
    found = calibrate(lambda noise: gaussian(noise, 0.1).self_compose(512), epsilon=1.0, delta=1e-6)
    assert found.lower - 1e-6 < 9.661757 < found.upper + 1e-6
    assert found.width < 1e-7
    assert gaussian(found.upper, 0.1).self_compose(512).delta(1.0).upper <= 1e-6
    assert gaussian(found.lower, 0.1).self_compose(512).delta(1.0).lower > 1e-6


def test_most_steps():
    found = calibrate(
        lambda n: gaussian(5.0).self_compose(n), epsilon=1.0, delta=1e-6, parameter="steps"
    )
    assert found.lower == found.upper == 1
    found = calibrate(
        lambda n: gaussian(50.0).self_compose(n), epsilon=1.0, delta=1e-6, parameter="steps"
    )
    n = int(found.lower)
    assert gaussian(50.0).self_compose(n).delta(1.0).upper <= 1e-6
    assert gaussian(50.0).self_compose(n + 1).delta(1.0).lower > 1e-6


@pytest.mark.slow
def test_largest_rate():
    found = calibrate(
        lambda q: gaussian(1.0, q).self_compose(200), epsilon=2.0, delta=1e-5, parameter="sampling"
    )
    assert found.width < 1e-8 * found.upper
    assert gaussian(1.0, found.lower).self_compose(200).delta(2.0).upper <= 1e-5
    assert gaussian(1.0, found.upper).self_compose(200).delta(2.0).lower > 1e-5
    assert calibrate(gaussian_of_rate, epsilon=50.0, delta=0.1, parameter="sampling").lower == 1.0


def gaussian_of_rate(q):
    return gaussian(1.0, q)


def test_pure_level():
    found = calibrate(PrivacyProfile.laplace, epsilon=0.5, delta=0.0)
    assert 2.0 in found
    assert found.width < 1e-8


PHI = NormalDist()


@pytest.mark.parametrize("advantage", [0.02, 0.1, 0.6])
def test_noise_for_an_advantage_in_closed_form(advantage):
    found = calibrate(gaussian, advantage=advantage)
    exact = 1.0 / (2.0 * PHI.inv_cdf(0.5 * (1.0 + advantage)))
    assert found.lower * (1 - 1e-12) <= exact <= found.upper * (1 + 1e-12)
    assert found.width < 1e-8 * exact
    assert gaussian(found.upper).delta(0.0).upper <= advantage


@pytest.mark.parametrize(
    ("tpr", "fpr"), [(0.05, 0.01), (0.5, 0.1), (2e-4, 1e-4), (0.9, 0.5), (0.999, 0.1)]
)
def test_noise_for_a_true_positive_rate_in_closed_form(tpr, fpr):
    found = calibrate(gaussian, tpr=tpr, fpr=fpr)
    exact = 1.0 / (PHI.inv_cdf(tpr) - PHI.inv_cdf(fpr))
    assert found.lower * (1 - 1e-12) <= exact <= found.upper * (1 + 1e-12)
    assert found.width < 1e-6 * exact
    assert gaussian(found.upper).tpr(fpr).lower <= tpr


@pytest.mark.parametrize(("risk", "prior"), [(0.4, 0.5), (0.05, 0.1), (0.05, 0.9)])
def test_noise_for_a_bayes_risk(risk, prior):
    found = calibrate(gaussian, bayes_risk=risk, prior=prior)
    mu, t = 1.0 / found.midpoint, abs(math.log(prior / (1 - prior)))
    delta = PHI.cdf(mu / 2 - t / mu) - math.exp(t) * PHI.cdf(-mu / 2 - t / mu)
    assert min(prior, 1 - prior) * (1 - delta) == pytest.approx(risk, rel=1e-7)
    assert found.width < 1e-8 * found.upper
    assert gaussian(found.upper).bayes_risk(prior).lower >= risk * (1 - 1e-15)
    if prior == 0.5:
        assert -0.5 / PHI.inv_cdf(risk) in found
        assert calibrate(gaussian, bayes_risk=risk) == found


@pytest.mark.parametrize(
    ("goal", "mu"),
    [
        ({"advantage": 0.2}, 2 * PHI.inv_cdf(0.6)),
        ({"tpr": 0.2, "fpr": 0.01}, PHI.inv_cdf(0.2) - PHI.inv_cdf(0.01)),
        ({"bayes_risk": 0.4}, -2 * PHI.inv_cdf(0.4)),
    ],
)
def test_steps_for_a_risk_in_closed_form(goal, mu):
    """n steps of noise s have mu = sqrt(n) / s."""
    found = calibrate(lambda n: gaussian(20.0).self_compose(n), **goal, parameter="steps")
    assert found.lower == found.upper == math.floor((20.0 * mu) ** 2)


@pytest.mark.slow
def test_rates_for_a_risk():
    def of(q):
        return gaussian(1.0, q).self_compose(50)

    found = calibrate(of, advantage=0.1, parameter="sampling")
    assert of(found.lower).delta(0.0).upper <= 0.1 < of(found.upper).delta(0.0).lower
    found = calibrate(of, tpr=0.1, fpr=0.01, parameter="sampling", tolerance=1e-6)
    assert of(found.lower).tpr(0.01).lower <= 0.1 < of(found.upper).tpr(0.01).lower
    assert found.width < 1e-4 * found.upper


def test_rates_of_curves_with_corners():
    """The best level is a corner, so its error is not squared: the rate itself narrows it."""
    found = calibrate(PrivacyProfile.laplace, tpr=0.1, fpr=0.01)
    assert found.lower <= 1.0 / math.log(10.0) <= found.upper
    assert found.width < 1e-7
    found = calibrate(
        lambda n: PrivacyProfile.randomised_response(2, 0.05).self_compose(n),
        tpr=0.1,
        fpr=0.01,
        parameter="steps",
    )
    assert found.lower == found.upper == 437


def test_rates_at_the_limits():
    found = calibrate(
        lambda q: PrivacyProfile.laplace(2.0, q), tpr=0.1, fpr=0.01, parameter="sampling"
    )
    assert found == fp.Bracket(1.0, 1.0)
    found = calibrate(gaussian, tpr=0.5, fpr=1e-320, tolerance=1e-3)
    assert 1e-6 <= found.lower <= 0.026 <= found.upper < 0.028


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        ({}, "one guarantee.*got none"),
        ({"epsilon": 1.0}, "delta must be given with epsilon"),
        ({"tpr": 0.1}, "fpr must be given with tpr"),
        ({"fpr": 0.1}, "tpr must be given with fpr"),
        ({"prior": 0.5}, "bayes_risk must be given with prior"),
        ({"epsilon": 1.0, "delta": 1e-5, "advantage": 0.1}, "one guarantee.*advantage"),
        ({"tpr": 0.1, "fpr": 0.2}, "tpr must be above fpr"),
        ({"tpr": 0.1, "fpr": 1.0}, "tpr must be above fpr"),
        ({"advantage": 1.5}, "advantage"),
        ({"bayes_risk": 0.3, "prior": 0.2}, "bayes_risk must be below prior"),
    ],
)
def test_impossible_guarantees(goal, words):
    with pytest.raises(InvalidInput, match=words):
        calibrate(gaussian, **goal)


def test_calibrations_that_fail():
    with pytest.raises(Infeasible, match="an advantage of 0"):
        calibrate(lambda noise: gaussian(1.0), advantage=0.1)
    with pytest.raises(Infeasible, match="one step"):
        calibrate(
            lambda n: gaussian(1.0).self_compose(n), epsilon=0.1, delta=1e-9, parameter="steps"
        )
    with pytest.raises(Infeasible, match="no noise"):
        calibrate(lambda noise: gaussian(0.0), epsilon=0.1, delta=1e-9)
    with pytest.raises(Infeasible, match="any number of steps gives an advantage"):
        calibrate(lambda n: gaussian(1.0), advantage=0.9, parameter="steps")
    for parameter in ("noize", ["noise"]):
        with pytest.raises(InvalidInput, match="parameter must be"):
            calibrate(gaussian, epsilon=1.0, delta=1e-6, parameter=parameter)
    with pytest.raises(InvalidInput, match="fpr must be"):
        gaussian(1.0).tpr(2.0)
    with pytest.raises(InvalidInput, match="must return"):
        calibrate(lambda noise: noise, epsilon=1.0, delta=1e-6)


# Fixed mechanisms on one database.


def worst(kinds, level):
    """The largest sum of (P - e^t Q)_+ over all outcomes, for pairs of rows of all matrices."""
    best = 0.0
    rows = range(len(kinds[0][0]))
    for x, z in product(rows, rows):
        outcomes = [(1.0, 1.0)]
        for matrix, count in kinds:
            for _ in range(count):
                outcomes = [
                    (p * a, q * b)
                    for p, q in outcomes
                    for a, b in zip(matrix[x], matrix[z], strict=True)
                ]
        best = max(best, math.fsum(max(p - math.exp(level) * q, 0.0) for p, q in outcomes))
    return best


@pytest.mark.search(every=10)
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(1, 3), st.integers(0, 2))
def test_fixed_mechanisms(seed, size, first, second):
    rng = np.random.default_rng(seed)
    kinds = [(rng.dirichlet(np.ones(3), size), first), (rng.dirichlet(np.ones(2), size), second)]
    profile = PrivacyProfile({}).compose(
        *(PrivacyProfile.of(fp.Channel(matrix)).self_compose(count) for matrix, count in kinds)
    )
    level = float(rng.uniform(0.0, 2.0))
    truth = worst(kinds, level)
    found = profile.delta(level, adaptive=False)
    assert found.lower - 1e-13 <= truth <= found.upper + 1e-13
    assert found.width < 1e-8
    assert found.lower <= profile.delta(level).upper
    bound = profile.epsilon(1e-2, adaptive=False)
    assert bound.upper <= profile.epsilon(1e-2).upper * (1 + 1e-9) + 1e-9
    if bound.upper < math.inf:
        assert worst(kinds, bound.upper) <= 1e-2 * (1 + 1e-9)


@pytest.mark.slow
def test_fixed_and_free():
    response = PrivacyProfile.randomised_response(3, 0.5).self_compose(4)
    assert response.delta(0.3, adaptive=False) == response.delta(0.3)
    assert gaussian(1.0).delta(0.3, adaptive=False) == gaussian(1.0).delta(0.3)
    noise = gaussian(1.0).with_relation("replace-one")
    mixed = noise.compose(PrivacyProfile.of([[0.6, 0.4], [0.5, 0.5]]))
    assert mixed.delta(0.3, adaptive=False).upper <= mixed.delta(0.3).upper * (1 + 1e-9)
    many = np.random.default_rng(0).dirichlet(np.ones(2), 70)
    with pytest.raises(TooLarge, match="pairs of neighbours"):
        PrivacyProfile.of(many).self_compose(2).delta(0.1, adaptive=False)


# Curves.


@pytest.mark.parametrize("mu", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("alpha", [1e-6, 0.05, 0.31, 0.5, 0.9])
def test_tradeoff_of_gaussian_noise(mu, alpha):
    law = NormalDist()
    truth = law.cdf(-law.inv_cdf(alpha) - mu)
    profile = gaussian(1.0 / mu)
    found = profile.tradeoff(alpha)
    assert found.lower - 1e-12 <= truth <= found.upper + 1e-12
    assert found.width < 1e-6
    rate = profile.tpr(alpha)
    assert rate.lower - 1e-12 <= 1.0 - truth <= rate.upper + 1e-12


@pytest.mark.parametrize(
    "alpha", [1e-6, 0.3, 0.7, 1 - 1e-3, 1 - 1e-6, 1 - 1e-8, 1 - 1e-12, 1 - 1e-14]
)
@pytest.mark.parametrize("mu", [0.5, 1.0])
def test_tradeoffs_in_all_digits(mu, alpha):
    # Close to alpha = 1 next to nothing is left of 1 - delta - alpha, and all of it counts.
    with mpmath.workdps(50):
        right = 1 - mpmath.mpf(alpha)
        start = NormalDist().inv_cdf(float(right))
        z = mpmath.findroot(lambda x: mpmath.log(mpmath.ncdf(x) / right), start)
        truth = mpmath.ncdf(z - mu)
        found, rate = gaussian(1.0 / mu).tradeoff(alpha), gaussian(1.0 / mu).tpr(alpha)
        assert truth * (1 - mpmath.mpf("1e-12")) <= found.lower <= truth <= found.upper
        assert rate.lower <= 1 - truth <= rate.upper


@pytest.mark.parametrize("alpha", [0.0, 1e-17, 0.1, 0.3, 0.6, 0.7])
def test_tradeoff_of_nothing_is_one_less_alpha(alpha):
    found = PrivacyProfile.of([[0.3, 0.7], [0.3, 0.7]]).tradeoff(alpha)
    assert Fraction(found.lower) <= 1 - Fraction(alpha) <= Fraction(found.upper)
    assert found.width <= 1e-14


@pytest.mark.parametrize("caught", [0.1, 0.3, 1e-17])
def test_tradeoff_of_a_test_that_is_never_wrong(caught):
    profile = PrivacyProfile.of([[caught, 1.0 - caught], [0.0, 1.0]])
    lost, found = profile.delta(1e6), profile.tradeoff(0.0)
    assert Fraction(found.lower) <= 1 - Fraction(lost.upper)
    assert Fraction(found.upper) >= 1 - Fraction(lost.lower)


def test_tradeoff_of_response():
    """Ratios 3, 1/3: the best tests flip between two outputs."""
    found = PrivacyProfile.of([[0.75, 0.25], [0.25, 0.75]]).tradeoff(0.1)
    assert found.lower - 1e-12 <= 0.7 <= found.upper + 1e-12
    assert found.width < 1e-6
    assert PrivacyProfile.gaussian(0.0).tradeoff(0.0) == fp.Bracket(0.0, 0.0)


@pytest.mark.parametrize("noise", [0.7, 1.1, 1.3, 3.0])
@pytest.mark.parametrize("count", [1, 3, 7])
def test_closed_forms_of_gaussian_noise_are_bracketed(noise, count):
    profile = gaussian(noise).self_compose(count)
    square = count / Fraction(noise) ** 2
    rho, mu = profile.zcdp_level(), profile.gdp_level()
    assert Fraction(rho.lower) <= square / 2 <= Fraction(rho.upper)
    assert Fraction(mu.lower) ** 2 <= square <= Fraction(mu.upper) ** 2
    for order in (1.3, 2.7, 11.0):
        found = profile.renyi_level(order)
        assert Fraction(found.lower) <= Fraction(order) * square / 2 <= Fraction(found.upper)
        assert found.width <= 1e-13 * found.upper
    assert max(rho.width / rho.upper, mu.width / mu.upper) <= 1e-13


@pytest.mark.parametrize("prior", [0.1, 0.3, 0.5, 0.77])
@pytest.mark.parametrize("stay", [0.55, 0.7, 0.9])
def test_risks_of_a_guess_are_bracketed(prior, stay):
    p, a = Fraction(prior), Fraction(stay)
    truth = min(p * a, (1 - p) * (1 - a)) + min(p * (1 - a), (1 - p) * a)
    found = PrivacyProfile.of([[stay, 1.0 - stay], [1.0 - stay, stay]]).bayes_risk(prior)
    assert Fraction(found.lower) <= truth <= Fraction(found.upper)
    assert found.width <= 1e-13


@pytest.mark.parametrize("prior", [0.0, 0.01, 0.5, 0.8, 1.0])
def test_risk_of_a_guess(prior):
    stay = 0.75
    truth = sum(min(prior * p, (1 - prior) * q) for p, q in ((stay, 1 - stay), (1 - stay, stay)))
    found = PrivacyProfile.of([[0.75, 0.25], [0.25, 0.75]]).bayes_risk(prior)
    assert found.lower - 1e-14 <= truth <= found.upper + 1e-14
    assert found.width < 1e-12


def test_renyi_levels():
    assert 1.875 in gaussian(2.0).self_compose(3).renyi_level(5.0)
    matrix = [[0.75, 0.25], [0.25, 0.75]]
    truth = 2 * math.log(0.75**2 / 0.25 + 0.25**2 / 0.75)
    found = PrivacyProfile.of(matrix).self_compose(2).renyi_level(2.0)
    assert found.lower * (1 - 1e-14) <= truth <= found.upper * (1 + 1e-14)
    assert PrivacyProfile.zcdp(0.5).renyi_level(2.0).upper == pytest.approx(1.0, rel=1e-14)
    assert PrivacyProfile.from_epsilon_delta(1.0, 1e-3).renyi_level(2.0).upper == math.inf
    both = [gaussian(1.0, 0.1).renyi_level(order) for order in (2.0, 8.0)]
    assert both[0].width < 1e-12 < both[0].lower < both[1].lower


# Plain data.


@pytest.mark.parametrize(
    "make",
    [
        lambda: gaussian(2.0).self_compose(3),
        lambda: gaussian(1.0, 0.1, relation="replace-one"),
        lambda: PrivacyProfile.laplace(2.0, 0.3),
        lambda: PrivacyProfile.exponential(0.5),
        lambda: PrivacyProfile.discrete_gaussian(3.0, 2),
        lambda: PrivacyProfile.discrete_laplace(0.5, 2),
        lambda: PrivacyProfile.zcdp(0.1, 0.01),
        lambda: PrivacyProfile.renyi([2.0, 3.0], [0.1, 0.2]),
        lambda: PrivacyProfile.mixture_of_gaussians(1.0, [0.0, 1.0, 2.0], [0.5, 0.25, 0.25]),
        lambda: PrivacyProfile.truncated_subsampled_gaussian(100, 0.1, 15, 2.0),
        lambda: PrivacyProfile.from_epsilon_delta(0.5, 1e-6).poisson_subsampled(0.1),
        lambda: PrivacyProfile.randomised_response(3, 0.5),
        lambda: PrivacyProfile.of([[0.9, 0.1], [0.4, 0.6]]).self_compose(2),
        lambda: PrivacyProfile.of([[0.9, 0.1], [0.4, 0.6]]).sampled_without_replacement(1, 5),
        lambda: PrivacyProfile.of(fp.HammingChannel(3, 4, 0.5)),
        lambda: PrivacyProfile.of(fp.HammingChannel(3, [2, 3, 3], 0.5)),
        lambda: PrivacyProfile.realised(fp.HammingChannel(3, [2, 3, 3], 0.7)),
        lambda: PrivacyProfile.realised(fp.HammingChannel(3, 2, 30.0)),
        lambda: PrivacyProfile.realised([[0.9, 0.1], [0.4, 0.6]]).self_compose(2),
    ],
)
def test_plain_data(make):
    profile = make()
    given = json.loads(json.dumps(profile.to_dict()))
    again = PrivacyProfile.from_dict(given)
    assert again == profile == PrivacyProfile.from_json(profile.to_json())
    assert hash(again) == hash(profile)
    assert again.delta(0.5) == profile.delta(0.5)
    assert again != profile.self_compose(2)
    assert again != profile.to_dict()


def test_of_a_curve_alone_only_one_release_is_known_to_be_attained():
    """The best sets of outputs of two releases have a difference of .5462 at epsilon .5."""
    laws = [[0.9, 0.1], [0.4, 0.6]]
    single, channel = PrivacyProfile.of(laws).delta(0.5), PrivacyProfile.of(laws).self_compose(2)
    (part,) = channel.parts
    curve = PrivacyProfile({part_of(plain(part, curves=True)): 2}, channel.relation)
    truth = 0.0
    for p, q in (laws, laws[::-1]):
        both = product(range(2), repeat=2)
        gains = [p[i] * p[j] - math.exp(0.5) * q[i] * q[j] for i, j in both]
        truth = max(truth, sum(max(gain, 0.0) for gain in gains))
    for adaptive in (True, False):
        known, unknown = channel.delta(0.5, adaptive), curve.delta(0.5, adaptive)
        assert known.lower == pytest.approx(truth, rel=1e-12)
        assert unknown.lower == pytest.approx(single.lower, rel=1e-12)
        assert unknown.upper == channel.delta(0.5).upper
    beside = curve.compose(gaussian(2.0, relation="replace-one")).delta(0.5)
    attained = channel.compose(gaussian(2.0, relation="replace-one")).delta(0.5)
    assert beside.lower < attained.lower < attained.upper == beside.upper


@pytest.mark.parametrize("given", [{}, {"relation": None}, {"relation": "x", "releases": []}, 3])
def test_no_plain_data(given):
    with pytest.raises(InvalidInput):
        PrivacyProfile.from_dict(given)
    with pytest.raises(InvalidInput):
        PrivacyProfile.from_dict({"relation": None, "releases": [[["normal", -1.0], 1]]})


def test_ledgers_take_profiles():
    ledger = Ledger({"approximate-dp": (2.0, 1e-6)})
    step = gaussian(20.0)
    count = ledger.runs_left(step)
    assert step.self_compose(count).epsilon(1e-6).upper <= 2.0
    assert step.self_compose(count + 1).epsilon(1e-6).upper > 2.0
    ledger.spend(step, count=count)
    assert ledger.spent["approximate-dp"] == pytest.approx(
        step.self_compose(count).epsilon(1e-6).upper, rel=1e-9
    )
    assert ledger.runs_left(step) == 0
    with pytest.raises(BudgetExceeded):
        ledger.spend(step)
    pure = Ledger({"dp": 1.0})
    assert pure.runs_left(PrivacyProfile.laplace(10.0)) in (9, 10)  # rounded up
    assert pure.runs_left([[0.25, 0.75], [0.25, 0.75]]) == 2**63 - 1  # it was an OverflowError
    with pytest.raises(InvalidInput):
        pure.spend(gaussian(1.0))


def test_names_that_declare_and_ask():
    """On the class they make a profile, on an instance they ask for its level."""
    noise = gaussian(2.0)
    assert 0.125 in noise.zcdp()
    assert noise.renyi(4.0) == noise.renyi_level(4.0)
    assert 0.5 in noise.gdp()
    declared = PrivacyProfile.gdp(0.5)
    assert declared.delta(1.0) == noise.delta(1.0)
    assert isinstance(PrivacyProfile.zcdp(0.5), PrivacyProfile)
    assert PrivacyProfile.zcdp.__doc__.startswith("Profile of any")
    assert noise.zcdp.__doc__.startswith("Smallest rho")
    assert PrivacyProfile.gdp(0.0).epsilon(0.0).upper == 0.0


@pytest.mark.parametrize(
    "make",
    [
        lambda: PrivacyProfile.gdp(-1.0),
        lambda: PrivacyProfile.gdp(math.inf),
        lambda: PrivacyProfile.gdp("1"),
        lambda: gaussian(1.0).renyi(1.0),
        lambda: gaussian(1.0).renyi(math.nan),
        lambda: gaussian(1.0).renyi("2"),
    ],
)
def test_levels_that_mean_nothing(make):
    with pytest.raises(InvalidInput):
        make()


@pytest.mark.parametrize("text", ["1e-6", "x", b"x"])
def test_texts_are_no_numbers_and_no_files(text):
    profile = PrivacyProfile.gaussian(1.0)
    for name, ask in (("delta", profile.epsilon), ("epsilon", profile.delta)):
        with pytest.raises(InvalidInput, match=f"{name} must be a number.* by float") as error:
            ask(text)
        assert "loadtxt" not in str(error.value)


def test_a_level_that_no_noise_reaches_is_refused_at_once():
    """Gaussian noise has no level of pure DP; the search ends after its two ends."""
    tried = []

    def make(noise):
        tried.append(noise)
        return PrivacyProfile.gaussian(noise, 0.01).self_compose(100)

    with pytest.raises(fp.Infeasible, match="ask for a larger epsilon or delta"):
        calibrate(make, epsilon=2.0, delta=0.0)
    assert len(tried) == 2
