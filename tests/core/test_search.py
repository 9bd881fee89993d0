"""Bisection, golden section and best-first search."""

import math
from dataclasses import dataclass

import pytest

from fastpriv._core.search import BestFirst, bisect, crossing, golden


def test_bisect_to_neighbouring_doubles():
    low, high = bisect(lambda x: x * x <= 2.0, 1.0, 2.0)
    assert low * low <= 2.0 < high * high
    assert math.nextafter(low, 2.0) == high


@pytest.mark.parametrize("ends", [(0.0, 1.0), (1.0, 0.0)])
def test_bisect_keeps_the_side_that_holds(ends):
    held = []
    low, high = bisect(lambda x: held.append(x) or abs(x - ends[0]) < 0.3, *ends, absolute=1e-6)
    assert abs(low - ends[0]) < 0.3 <= abs(high - ends[0])
    assert 0.0 < abs(high - low) <= 1e-6
    assert not set(held) & set(ends)


def test_bisect_halves_ratios():
    asked = []
    low, high = bisect(
        lambda x: asked.append(x) or x < 1e-200, 1e-300, 1.0, relative=1e-3, geometric=True
    )
    assert low < 1e-200 <= high <= low * 1.002
    assert len(asked) < 25


def test_golden_finds_a_minimum():
    x, value = golden(lambda x: (x - 0.3) ** 2, 0.0, 1.0, 60)
    assert abs(x - 0.3) < 1e-7
    assert value == (x - 0.3) ** 2


@dataclass
class Interval:
    low: float
    high: float

    @property
    def bound(self):  # of x (1 - x), whose slope is at most 1
        middle = (self.low + self.high) / 2
        return middle * (1 - middle) + (self.high - self.low) / 2


def test_best_first_brackets_a_maximum():
    best = -math.inf

    def split(part):
        nonlocal best
        middle = (part.low + part.high) / 2
        best = max(best, middle * (1 - middle))
        return [Interval(part.low, middle), Interval(middle, part.high)]

    search = BestFirst([Interval(0.0, 1.0)], split)
    steps = iter(range(5))
    first = search.run(lambda: best, lambda: next(steps, None) is None)
    assert best <= 0.25 <= first
    assert search.run(lambda: best + 1e-3, lambda: False) <= best + 1e-3
    assert best <= 0.25 <= max(best, search.bound)


def test_best_first_ends_with_nothing_open():
    search = BestFirst([Interval(0.0, 1.0)], lambda part: [])
    assert search.run(lambda: -math.inf, lambda: False) == -math.inf
    assert len(search) == 0


@pytest.mark.parametrize("start", [0.0, 1.0, 3.4, 40.0])
@pytest.mark.parametrize("noise", [0.0, 1e-14])
def test_a_falling_value_meets_its_target(start, noise):
    """Few values are needed, also if the last digits are not monotone."""
    asked = []

    def value(t):
        asked.append(t)
        return math.erfc(t) * (1.0 + noise * math.sin(1e17 * t))

    low, high = crossing(value, 1e-6, start, math.inf, 1e-3)
    assert value(low) > 1e-6 >= value(high)
    assert high - low <= 2.0**-51 * high
    assert abs(high - 3.4589107372795) < 1e-12
    assert len(asked) <= (22 if start == 3.4 else 60)


@pytest.mark.parametrize("at", [1e-8, 0.7, 7.3])
def test_a_crossing_at_a_jump(at):
    low, high = crossing(lambda t: 1.0 if t < at else 0.0, 1e-6, 3.8, math.inf, 1e-2)
    assert low < at <= high
    assert high - low <= 2.0**-51 * high


def test_crossings_at_the_ends():
    assert crossing(lambda t: 0.0, 0.5, 1.0, math.inf, 1e-3) == (0.0, 0.0)
    low, high = crossing(lambda t: 1.0, 0.5, 1.0, math.inf, 1e-3)
    assert low > 1e200
    assert high == math.inf
    low, high = crossing(lambda t: 1.0, 0.5, 1.0, 4.0, 1e-3)
    assert high == 4.0
    assert high - low <= 2.0**-50 * high


def test_known_values_are_not_asked_again():
    asked = []

    def value(t):
        asked.append(t)
        return math.exp(-t)

    seen = [(t, math.exp(-t)) for t in (2.9, 3.0, 3.1)]
    low, high = crossing(value, math.exp(-3.05), 1.0, math.inf, 1e-3, seen)
    assert low <= 3.05 <= high
    assert len(asked) <= 8
