"""Random allocation against nested integrals, sums over outputs and a published value."""

import numpy as np
import pytest
from mpmath import mpf

import fastpriv as fp
from fastpriv.accounting.profile.allocation import curve, transform
from oracles import allocation as oracle

of = fp.accounting.random_allocation


def holds(bracket, value, slack=0.0):
    return bracket.lower * (1 - slack) <= value <= bracket.upper * (1 + slack)


def test_published_value():
    bracket = of(1.0, 100).delta(0.1)
    assert holds(bracket, 1.788232e-2, 5e-7)
    assert bracket.width < 1e-4 * bracket.upper


@pytest.mark.parametrize(("sigma", "epsilon"), [(2.0, 0.1), (2.0, 0.7)])
def test_one_epoch_of_two_batches_by_integrals(sigma, epsilon):
    expected = max(oracle.removed_delta(sigma, 2, epsilon), oracle.added_delta(sigma, 2, epsilon))
    bracket = of(sigma, 2).delta(epsilon)
    assert bracket.lower <= expected <= bracket.upper
    assert bracket.width < 1e-3 * bracket.upper


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
        ((0.1, 5), "noise_multiplier"),
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
