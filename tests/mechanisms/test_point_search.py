"""The best places of a few points behind normal noise, against all places of a grid."""

import itertools

import numpy as np
import pytest

import fastpriv as fp
from fastpriv._matrices.capacity import capacities


def on_a_grid(a, m, step):
    """Largest capacity of the two ends and m - 2 places of a grid, by sums over a fine output."""
    y = np.arange(-a - 8.0, a + 8.0, 0.1)
    places = np.arange(-a, a + 1e-9, step)
    chosen = np.array(list(itertools.combinations_with_replacement(places, m - 2)))
    points = np.column_stack([np.full(len(chosen), -a), chosen, np.full(len(chosen), a)])
    rows = np.exp(-0.5 * (y - points[..., None]) ** 2)
    rows /= rows.sum(axis=2, keepdims=True)
    lower, upper, _ = capacities(rows, 1e-9)
    return lower.max(), upper.max()


@pytest.mark.parametrize(("a", "m", "step"), [(3.2, 3, 0.04), (6.0, 3, 0.05), (5.0, 4, 0.25)])
def test_no_places_tell_more(a, m, step):
    told = fp.mechanisms.GaussianChannel(a, 1.0).capacity(m)
    least, most = on_a_grid(a, m, step)
    assert least <= told.upper + 1e-9
    # Off by a step h at most, information falls by about h^2 at most.
    assert told.lower <= most + step * step
    assert told.width <= 2e-7


def test_four_points_within_six_deviations():
    told = fp.mechanisms.GaussianChannel(6.0, 1.0).capacity(4)
    assert told.width <= 2e-7
    assert told.lower > 1.296156
    # Also in other units, and no less with more noise taken off.
    scaled = fp.mechanisms.GaussianChannel(3.0, 0.25).capacity(4)
    assert scaled == told
    assert told.lower > fp.mechanisms.GaussianChannel(5.0, 1.0).capacity(4).upper


def test_a_search_that_does_not_end_keeps_what_is_known():
    whole = fp.mechanisms.GaussianChannel(8.0, 1.0).capacity()
    many = fp.mechanisms.GaussianChannel(8.0, 1.0).capacity(7)
    assert many.lower <= many.upper <= whole.upper * (1 + 1e-14)
