"""Random allocation against nested integrals, sums over outputs and a published value."""

import numpy as np
import pytest
from mpmath import mpf

import fastpriv as fp
from fastpriv.accounting.profile.steps import allocation
from fastpriv.accounting.profile.steps.allocation import curve, lognormal_sums, transform
from oracles import allocation as oracle

of = fp.accounting.random_allocation
Profile = fp.accounting.PrivacyProfile


def holds(bracket, value, slack=0.0):
    return bracket.lower * (1 - slack) <= value <= bracket.upper * (1 + slack)


def test_published_value():
    bracket = of(1.0, 100).delta(0.1)
    assert holds(bracket, 1.788232e-2, 5e-7)
    assert bracket.width < 1e-12 * bracket.upper


@pytest.mark.slow(but=["2.0-0.1-1e-13", "2.0-0.7-1e-11"])
@pytest.mark.parametrize(
    ("sigma", "epsilon", "width"),
    [(2.0, 0.1, 1e-13), (2.0, 0.7, 1e-11), (1.0, 0.5, 1e-4), (0.4, 1.0, 1e-4), (0.15, 9.0, 1e-4)],
)
def test_one_epoch_of_two_batches_by_integrals(sigma, epsilon, width):
    """By the integral over s where noise is large, and by sums in convex order."""
    expected = max(oracle.removed_delta(sigma, 2, epsilon), oracle.added_delta(sigma, 2, epsilon))
    bracket = of(sigma, 2).delta(epsilon)
    assert bracket.lower <= expected * (1 + mpf(10) ** -13)
    assert expected * (1 - mpf(10) ** -13) <= bracket.upper
    assert bracket.width < width * bracket.upper


@pytest.mark.slow(but=["0.5-400.0-0.001", "0.5-1000000.0-0.01"])
@pytest.mark.parametrize(
    ("sigma", "a", "width"),
    [(2.0, 1.1, 1e-4), (0.5, 3.0, 1e-4), (0.5, 400.0, 1e-3), (0.5, 1e6, 1e-2)],
)
def test_sums_in_convex_order(sigma, a, width):
    """Both ends of E (S - 2a)_+ and of E (2a - S)_+, however small, against integrals."""
    small, large = (lognormal_sums(sigma, 2, up) for up in (False, True))
    truth = 2 * oracle.removed_delta(sigma, 2, oracle.log(mpf(a)))
    for law in (small, large):
        assert law.chances.sum() == pytest.approx(1.0, abs=1e-10)
        assert law.chances @ law.values == pytest.approx(2.0, abs=1e-10)
    assert small.excess(2.0 * a) * (1 - 1e-10) <= truth <= large.excess(2.0 * a) * (1 + 1e-10)
    assert large.excess(2.0 * a) < small.excess(2.0 * a) * (1 + width)
    assert small.shortfall(2.0 * a) <= truth + 2 * (a - 1) + 1e-8 * a
    assert large.shortfall(2.0 * a) >= truth + 2 * (a - 1) - 1e-8 * a


@pytest.mark.slow(but=["1"])
@pytest.mark.parametrize("t", [1, 3, 6])
def test_sums_of_any_number(t):
    """Doubling and adding give t copies: means, and variances between those of the two orders."""
    variance = t * np.expm1(1.0 / 4.0)
    small, large = (lognormal_sums(2.0, t, up) for up in (False, True))
    second = [float(law.chances @ law.values**2) - t * t for law in (small, large)]
    assert second[0] <= variance * (1 + 1e-9)
    assert second[1] >= variance * (1 - 1e-9)
    assert second[1] < second[0] * (1 + 1e-3)


@pytest.mark.slow
def test_both_methods_agree_on_one_epoch():
    for epsilon in (0.1, 1.0):
        direct = allocation._one_epoch(1.0, 20, epsilon)
        sums = allocation.OneOf.delta(allocation.Allocated(1.0, 20), epsilon)
        assert sums[0] <= direct[1]
        assert direct[0] <= sums[1]
        assert sums[1] - sums[0] < 2e-3 * sums[1]
        assert direct[1] - direct[0] < 1e-6 * direct[1]


@pytest.mark.slow
def test_levels_of_one_epoch_invert_deltas():
    profile = of(0.5, 4)
    for delta in (1e-2, 1e-12, 1e-30):
        level = profile.epsilon(delta)
        assert level.width < 2e-3 * level.upper
        assert profile.delta(level.upper).upper <= delta * (1 + 1e-6)
        assert profile.delta(level.lower).lower >= delta * (1 - 1e-6)
    assert profile.epsilon(0.0).lower == np.inf
    assert profile.epsilon(1.0).upper == 0.0


@pytest.mark.slow
def test_a_delta_below_all_sums_has_finite_bounds():
    """From above by the noise of a known batch, from below by the output of one batch."""
    noise, batch = Profile.gaussian(1.0), Profile.gaussian(1.0, 0.1)
    level = of(1.0, 10).epsilon(1e-60)
    assert batch.epsilon(1e-60).lower * (1 - 1e-9) <= level.lower
    assert level.lower < level.upper <= noise.epsilon(1e-60).upper * (1 + 1e-9)
    assert of(1.0, 10).epsilon(0.0).lower == np.inf
    twice = of(1.0, 10).compose(of(1.2, 10)).epsilon(1e-60)
    assert level.upper < twice.upper <= noise.self_compose(2).epsilon(1e-60).upper
    several = of(1.0, 10, selected=3).epsilon(1e-60)
    assert level.lower < several.upper <= noise.self_compose(3).epsilon(1e-60).upper * (1 + 1e-9)


def test_little_noise_in_several_epochs():
    """Composed measures: below the sum of what epochs cost, above one of them, and nested."""
    one, three = of(0.5, 4), of(0.5, 4, 3)
    level = three.epsilon(1e-6)
    assert one.epsilon(1e-6).lower < level.lower <= level.upper < 3 * one.epsilon(3e-7).upper
    assert level.width < 1e-3 * level.upper


@pytest.mark.slow
@pytest.mark.parametrize("a", [0.4, 1.0, 1.9])
def test_both_orders_of_two_batches(a):
    given = curve(2.0, 2)
    i = int(np.argmin(np.abs(given.at - a)))
    point = mpf(str(given.at[i]))
    truth = oracle.removed_delta(2.0, 2, oracle.log(point)) + point - 1
    assert (
        mpf(str(given.low[i])) - mpf(10) ** -15 <= truth <= mpf(str(given.high[i])) + mpf(10) ** -15
    )
    assert given.high[i] - given.low[i] < 1e-13


def test_three_batches_by_sums_over_a_grid():
    expected = oracle.removed_delta_of_three(2.0, 0.2)
    bracket = of(2.0, 3).delta(0.2)
    assert holds(bracket, expected, 1e-6)
    assert bracket.width < 1e-3 * bracket.upper


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_two_epochs_by_sums_over_outputs(epsilon):
    bracket = of(2.0, 2, epochs=2).delta(epsilon)
    value = oracle.two_epochs(2.0, epsilon)
    assert holds(bracket, value, 1e-4)


def test_the_transform_of_one_ratio():
    points = np.array([0.3, 1 + 2j, 0.01 + 5j]).astype(np.clongdouble)
    for sigma in (0.5, 1.0, 4.0):
        values, errors = transform(points, sigma)
        x, h = np.linspace(-12 * sigma, 12 * sigma, 400_001, retstep=True)
        weight = np.exp(-(x**2) / (2 * sigma**2)) * h / (sigma * np.sqrt(2 * np.pi))
        with np.errstate(over="ignore", invalid="ignore"):
            ratio = np.minimum(np.exp((2 * x - 1) / (2 * sigma**2)), 1e6)
        for s, value, error in zip(points, values, errors, strict=True):
            assert abs((weight * np.exp(-complex(s) * ratio)).sum() - complex(value)) < 1e-10
            assert error < 1e-15


def test_a_single_batch_is_gaussian_noise():
    assert of(1.5, 1, 4).epsilon(1e-6) == (
        fp.accounting.PrivacyProfile.gaussian(1.5).self_compose(4).epsilon(1e-6)
    )


@pytest.mark.slow
def test_composes_and_is_written():
    profile = of(2.0, 50, 3).compose(fp.accounting.PrivacyProfile.gaussian(5.0))
    again = fp.accounting.PrivacyProfile.from_json(profile.to_json())
    assert again.epsilon(1e-6) == profile.epsilon(1e-6)
    more = of(2.0, 50, 4).compose(fp.accounting.PrivacyProfile.gaussian(5.0))
    assert (
        more.epsilon(1e-6).upper > profile.epsilon(1e-6).lower > of(2.0, 50, 3).epsilon(1e-6).lower
    )
    assert of(1.0, 5, 0).epsilon(1e-6).upper == 0.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0.05, 5), "noise_multiplier"),
        ((1.0, 0), "batches"),
        ((1.0, 5, -1), "epochs"),
        ((500.0, 100), "at most 1000"),
        ((1.0, 5, 1, 0), "selected"),
        ((1.0, 5, 1, 6), "selected must be at most the number of batches, 5; got 6"),
        ((Profile.laplace(1.0, relation="replace-one"), 5), "absent, not replaced"),
        ((Profile.zcdp(0.5), 5), "one step with a pair"),
        ((Profile.laplace(1.0).self_compose(2), 5), "one step with a pair"),
        ((Profile.laplace(1e-3), 5), "Add noise"),
        ((Profile.laplace(1.0), 10**7), "batches must be at most"),
    ],
)
def test_what_is_refused(arguments, words):
    with pytest.raises(fp.InvalidInput, match=words):
        of(*arguments)
    with pytest.raises(fp.InvalidInput, match="sampled from"):
        of(1.0, 5).poisson_subsampled(0.5)


# Several batches of an epoch, and other noise.


@pytest.mark.slow(but=["1.0-0.5"])
@pytest.mark.parametrize(("sigma", "epsilon"), [(2.0, 0.1), (2.0, 1.0), (1.0, 0.5), (0.6, 2.0)])
def test_two_of_three_batches_by_integrals(sigma, epsilon):
    expected = oracle.removed_delta_two_of_three(sigma, epsilon)
    bracket = of(sigma, 3, selected=2).delta(epsilon)
    assert bracket.lower <= expected * (1 + 1e-6)
    assert expected * (1 - 1e-6) <= bracket.upper
    assert bracket.lower > 0.85 * expected
    assert bracket.upper < 1.35 * expected


@pytest.mark.parametrize(("scale", "epsilon"), [(1.0, 0.0), (1.0, 0.5), (0.5, 1.2), (3.0, 0.1)])
def test_laplace_noise_on_two_batches_by_an_integral(scale, epsilon):
    removed = oracle.laplace_one_of_two(scale, epsilon)
    a = oracle.exp(-mpf(epsilon))
    expected = max(removed, (oracle.laplace_one_of_two(scale, -epsilon) + a - 1) / a)
    bracket = of(Profile.laplace(scale), 2).delta(epsilon)
    assert bracket.lower <= expected * (1 + mpf(10) ** -12)
    assert expected * (1 - mpf(10) ** -12) <= bracket.upper
    assert bracket.width < 1e-4 * bracket.upper


@pytest.mark.parametrize("t", [2, 3, 4, 5])
@pytest.mark.parametrize("level", [0.5, 2.0])
def test_responses_in_k_of_t_batches_by_enumeration(t, level):
    one = np.array([np.exp(level), 1.0]) / (1.0 + np.exp(level))
    step = Profile.from_epsilon_delta(level)
    for k in range(1, t + 1):
        profile = of(step, t, selected=k)
        for epsilon in (0.0, 0.3, 1.0):
            truth = oracle.enumerated((one, one[::-1], one[::-1]), t, k, epsilon)
            bracket = profile.delta(epsilon)
            assert bracket.lower <= truth * (1 + 1e-9) + 1e-15
            assert truth * (1 - 1e-9) <= bracket.upper + 1e-15


def test_all_batches_are_a_composition():
    assert of(1.5, 4, 3, selected=4) == Profile.gaussian(1.5).self_compose(12)
    laplace = Profile.laplace(2.0)
    assert of(laplace, 4, 3, selected=4) == laplace.self_compose(12)
    replaced = of(1.5, 4, selected=4, relation="replace-one")
    assert replaced == Profile.gaussian(1.5, relation="replace-one").self_compose(4)


@pytest.mark.slow(but=["1.0-100-10-0.07"])
@pytest.mark.parametrize(
    ("noise", "t", "k", "width"),
    [
        (1.0, 100, 10, 0.07),
        (2.0, 100, 5, 0.02),
        (0.5, 60, 2, 0.1),
        (1.0, 100, 99, 0.02),
        (Profile.laplace(2.0), 40, 4, 0.01),
    ],
)
def test_several_batches_from_both_sides(noise, t, k, width):
    """Narrow, at most the blocks, at least the Gaussian test by the sum of all outputs."""
    profile = of(noise, t, selected=k)
    level = profile.epsilon(1e-5)
    assert level.width < width * level.upper
    blocks = of(noise, t // k).self_compose(k)
    assert level.upper <= blocks.epsilon(1e-5).upper * (1 + 1e-6)
    if not isinstance(noise, Profile):
        assert level.upper >= Profile.gdp(k / (noise * np.sqrt(t))).epsilon(1e-5).lower
    assert profile.epsilon(1e-5).lower >= of(noise, t).epsilon(1e-5).lower * (1 - 1e-3)


@pytest.mark.slow
def test_scores_of_one_batch_are_below_the_truth_and_near_it():
    for sigma, t in ((0.5, 100), (1.0, 30), (2.0, 100)):
        scored = allocation._scored(allocation.GaussianNoise(sigma), t, 1, False)
        found = Profile({Found(scored): 1}).epsilon(1e-5)
        truth = of(sigma, t).epsilon(1e-5)
        assert 0.98 * truth.lower < found.lower <= truth.upper


class Found(allocation.CurveStep):
    """A step with given losses."""

    levelwise = False

    def __init__(self, given):
        super().__init__(("found", id(given)))
        self.given = given

    def measure(self, flipped, up):
        return self.given


@pytest.mark.parametrize(("t", "k"), [(2, 1), (3, 1), (3, 2)])
def test_a_replaced_record_by_enumeration(t, k):
    """Discrete Laplace noise on 1, -1 or 0, shown as one of a few values."""
    a, x = 0.8, np.arange(-6, 7)
    laws = []
    for centre in (1, -1, 0):
        law = np.exp(-a * np.abs(x - centre)) * np.tanh(a / 2)
        law[0] = np.exp(-a * (centre + 6)) / (1 + np.exp(-a))  # all below
        law[-1] = np.exp(-a * (6 - centre)) / (1 + np.exp(-a))
        assert law.sum() == pytest.approx(1.0, abs=1e-12)
        laws.append(law)
    profile = of(Profile.discrete_laplace(a), t, selected=k, relation="replace-one")
    for epsilon in (0.0, 0.5, 1.0):
        truth = oracle.enumerated(laws, t, k, epsilon)
        bracket = profile.delta(epsilon)
        assert bracket.lower <= truth * (1 + 1e-9)
        assert truth * (1 - 1e-9) <= bracket.upper


@pytest.mark.parametrize("noise", [3.0, Profile.laplace(3.0)])
def test_a_replaced_record_from_both_sides(noise):
    added, replaced = of(noise, 50), of(noise, 50, relation="replace-one")
    level = replaced.epsilon(1e-4)
    assert replaced.relation == "replace-one"
    assert 1.5 * added.epsilon(1e-4).upper < level.lower
    assert level.width < 0.07 * level.upper


@pytest.mark.parametrize(
    "profile",
    [
        of(Profile.laplace(1.0), 5, 2),
        of(1.0, 5, 2, 3),
        of(1.0, 5, 2, 3, relation="replace-one"),
        of(1.0, 5, relation="replace-one"),
        of(Profile.from_epsilon_delta(1.0), 4, selected=2, relation="replace-special"),
    ],
)
def test_allocations_are_written(profile):
    again = Profile.from_json(profile.to_json())
    assert again == profile
    assert hash(again) == hash(profile)
    assert again.epsilon(1e-3) == profile.epsilon(1e-3)


@pytest.mark.parametrize("gap", [1e-12, 1e-6, 0.25])
@pytest.mark.parametrize("t", [2, 10])
def test_any_channel_from_above(gap, t):
    """No pair of a channel attains its curve at all levels, so the lower bound is zero."""
    matrix = [[0.5 + gap, 0.5 - gap, 0.0], [0.5, 0.25, 0.25], [0.5, 0.5, 0.0]]
    step = Profile.of([matrix[0][:2], matrix[2][:2]] if gap < 0.1 else matrix)
    profile = of(step.with_relation("add-or-remove"), t)
    one = step.delta(0.0).upper
    assert 0.0 <= profile.delta(0.0).lower <= profile.delta(0.0).upper
    assert one / t <= profile.delta(0.0).upper <= one * (1 + 1e-6) + 1e-11


@pytest.mark.parametrize("noise", [1.0, Profile.laplace(2.0)])
def test_levels_whose_exponential_overflows(noise):
    for level in (1e3, 1e300):
        bracket = of(noise, 10).delta(level)
        assert bracket.lower == 0.0 <= bracket.upper <= of(noise, 10).delta(600.0).upper < 1e-12


def test_the_text_of_a_profile_names_the_batches():
    laplace = fp.accounting.PrivacyProfile.laplace(2.0)
    for profile, words in [
        (fp.accounting.random_allocation(1.0, 3, selected=2), "Gaussian noise, multiplier 1"),
        (fp.accounting.random_allocation(1.0, 3, selected=2), "2 of 3 batches"),
        (fp.accounting.random_allocation(laplace, 4, selected=2), "2 of 4 batches"),
        (fp.accounting.random_allocation(laplace, 4), "multiplier 2, one of 4 batches"),
    ]:
        assert words in repr(profile)


def test_every_batch_is_a_composition_of_any_profile():
    for profile in (Profile.zcdp(0.1), Profile.gaussian(1.0).compose(Profile.laplace(2.0))):
        assert of(profile, 5, 2, 5) == profile.self_compose(10)
    replaced = Profile.laplace(2.0, relation="replace-one")
    assert of(replaced, 3, selected=3) == replaced.self_compose(3)
    with pytest.raises(fp.InvalidInput, match="a pair of distributions"):
        of(Profile.zcdp(0.1), 5, selected=2)
