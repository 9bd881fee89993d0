"""Sums of discrete losses, enumerated or as waves, against sums in long arithmetic."""

import math
from itertools import product

import mpmath as mp
import numpy as np
import pytest

from fastpriv.accounting import PrivacyProfile
from fastpriv.accounting.profile.discrete import DiscreteLosses
from fastpriv.accounting.profile.engines import lattice


def power(masses, count):
    """Coefficients of a polynomial with integer coefficients, raised to a power, by one integer."""
    bits = count * sum(masses).bit_length() + 1
    whole = sum(mass << (bits * j) for j, mass in enumerate(masses)) ** count
    places = count * (len(masses) - 1) + 1
    return [(whole >> (bits * j)) & ((1 << bits) - 1) for j in range(places)]


def exact_delta(losses, masses, t):
    """Sum of masses times (1 - e^(t - loss)), losses above t."""
    return mp.fsum(
        mass * -mp.expm1(t - loss) for loss, mass in zip(losses, masses, strict=True) if loss > t
    )


@pytest.mark.parametrize("stride", [1, 2, 3, 4])
@pytest.mark.parametrize("s", [0.0, 0.4, 3.0])
def test_waves_enclose_the_sum_over_all_losses(monkeypatch, stride, s):
    monkeypatch.setattr(lattice, "_COARSE", 1 << 8)
    rng = np.random.default_rng(int(10 * s) + stride)
    given, count, h, start = rng.integers(1, 1 << 10, 24).tolist(), 60, 0.0625, -7
    logs = np.log(np.array(given, dtype=np.longdouble)) - np.log(np.longdouble(sum(given)))
    steps = lattice.Steps(start + stride * np.arange(24), logs, count)
    bounds = [lattice.waves([steps], h, s, 0.0, 0.0, up) for up in (False, True)]
    with mp.workdps(60):
        masses = [mp.mpf(c) / mp.mpf(sum(given)) ** count for c in power(given, count)]
        losses = [mp.mpf(h) * (start * count + stride * j) for j in range(len(masses))]
        tilted = [mass * mp.exp(s * loss) for mass, loss in zip(masses, losses, strict=True)]
        middle = float(mp.fdot(tilted, losses) / mp.fsum(tilted))
        nearest = float(min(losses, key=lambda loss: abs(loss - middle)))
        for t in (middle - 9.0, middle - h, middle, nearest, middle + 1.0, middle + 9.0):
            low, high = (bound.value(t) for bound in bounds)
            assert low <= exact_delta(losses, masses, mp.mpf(t)) <= high
            if abs(t - middle) <= 1.0:
                assert high - low <= 1e-10 * high
        assert bounds[1].value(float(losses[-1])) < 1e-15
        assert bounds[0].value(float(losses[-1])) == 0.0


def test_waves_of_two_kinds_of_steps_add_up(monkeypatch):
    monkeypatch.setattr(lattice, "_COARSE", 1 << 8)
    h, kinds, parts = 0.125, [([3, 1, 4, 1, 5], 200), ([2, 7, 1, 8], 150)], []
    total = [1]
    for given, count in kinds:
        logs = np.log(np.array(given, dtype=np.longdouble) / sum(given))
        parts.append(lattice.Steps(np.arange(len(given)) - 2, logs, count))
        total = np.convolve(np.array(total, dtype=object), np.array(power(given, count), object))
    with mp.workdps(60):
        whole = mp.fsum(map(mp.mpf, total))
        masses = [mp.mpf(mass) / whole for mass in total]
        losses = [mp.mpf(h) * (j - 700) for j in range(len(masses))]
        tilted = [mass * mp.exp(0.2 * loss) for mass, loss in zip(masses, losses, strict=True)]
        middle = float(mp.fdot(tilted, losses) / mp.fsum(tilted))
        low, high = (lattice.waves(parts, h, 0.2, 0.0, 0.0, up) for up in (False, True))
        for t in (middle - 1.0, middle, middle + 1.0):
            exact = exact_delta(losses, masses, mp.mpf(t))
            assert low.value(t) <= exact <= high.value(t) <= low.value(t) * (1.0 + 1e-9)


def test_many_angles_are_too_much_work(monkeypatch):
    monkeypatch.setattr(lattice, "_COARSE", 1 << 4)
    logs = np.log(np.array([0.999, 0.0005, 0.0005], dtype=np.longdouble))
    with pytest.raises(lattice.TooMuchWork):
        lattice.waves([lattice.Steps(np.array([0, 3000, 9001]), logs, 5)], 0.1, 0.1, 0.0, 0.0, True)


@pytest.mark.parametrize("kinds", [((4, 6),), ((3, 4), (3, 3)), ((2, 9),)])
def test_sums_enumerated_at_once_enclose_all_orders(kinds):
    rng = np.random.default_rng(7)
    releases, outcomes = [], []
    for size, count in kinds:
        losses = np.sort(rng.uniform(-1.0, 2.0, size))
        logs = np.log(rng.dirichlet(np.ones(size)).astype(np.longdouble))
        releases.append((DiscreteLosses(losses, logs, 0.0, 0.0), count))
        outcomes += [list(zip(losses.tolist(), logs, strict=True))] * count
    with mp.workdps(40):
        sums, masses = [], []
        for chosen in product(*outcomes):
            sums.append(mp.fsum(loss for loss, _ in chosen))
            masses.append(mp.exp(mp.fsum(mp.mpf(str(log)) for _, log in chosen)))
        for t in (-0.5, 0.3, 2.0, 5.0):
            low, high = (lattice.listed(releases, 0.7, up).value(t) for up in (False, True))
            exact = exact_delta(sums, masses, mp.mpf(t))
            assert low <= exact <= high <= low * (1.0 + 1e-11)


def test_sums_at_once_and_one_by_one_agree(monkeypatch):
    logs = np.log(np.random.default_rng(1).dirichlet(np.ones(5)).astype(np.longdouble))
    measure = DiscreteLosses(np.array([-0.7, 0.0, 0.31, 1.2, 3.3]), logs, 0.0, 0.0)
    at_once = [lattice.listed([(measure, 12)], 0.5, up).value(2.0) for up in (False, True)]
    monkeypatch.setattr(lattice, "_AT_ONCE", 1)
    low, high = (lattice.listed([(measure, 12)], 0.5, up).value(2.0) for up in (False, True))
    assert low <= at_once[1]
    assert at_once[0] <= high
    assert math.isclose(low, high, rel_tol=1e-10)


def test_steps_that_are_added_one_by_one_are_fewer():
    logs = np.log(np.array([0.25, 0.75], dtype=np.longdouble))
    measure = DiscreteLosses(np.array([0.0, 0.1]), logs, 0.0, 0.0)
    with pytest.raises(lattice.TooMuchWork):
        lattice.listed([(measure, 10_000)], 0.1, True)
    assert lattice.listed([(measure, 500)], 0.1, True).value(40.0) > 0.0


def test_steps_without_losses_count_in_waves():
    noise = PrivacyProfile.discrete_gaussian(300.0).self_compose(10**4)
    both = noise.compose(PrivacyProfile.from_epsilon_delta(0.0, 0.1))
    alone, answer = noise.delta(0.5), both.delta(0.5)
    assert answer.lower <= 0.1 + 0.9 * alone.upper
    assert answer.upper >= 0.1 + 0.9 * alone.lower
    assert answer.width <= 1e-8
