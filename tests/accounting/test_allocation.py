"""Random allocation against nested integrals, sums over outputs and a published value."""

import numpy as np
import pytest
from mpmath import mpf

import fastpriv as fp
from fastpriv.accounting.profile.steps import allocation
from fastpriv.accounting.profile.steps.allocation import curve, lognormal_sums, transform
from oracles import allocation as oracle

of = fp.accounting.random_allocation


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
        sums = allocation._by_sums(1.0, 20, epsilon)
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
    ],
)
def test_what_is_refused(arguments, words):
    with pytest.raises(fp.InvalidInput, match=words):
        of(*arguments)
    with pytest.raises(fp.InvalidInput, match="no tight pair"):
        of(1.0, 5, relation="replace-one")
    with pytest.raises(fp.InvalidInput, match="sampled from"):
        of(1.0, 5).poisson_subsampled(0.5)
