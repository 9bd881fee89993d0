"""From a solver's floats to a mechanism whose floats meet the privacy level.

A solver obeys its constraints up to a tolerance, and a zero beside 1e-16 is infinite leakage. Two
steps are repeated: columns are raised to their Lipschitz closure, which restores every ratio, and
rows are divided by their sums. The closure's level is a little lower than the one that is asked
for, so that sums that differ by no more than a tolerance do no harm.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fastpriv import kernels
from fastpriv._core.rounding import ULP
from fastpriv._core.threads import split
from fastpriv._core.validation import Floats, Ints

#: Relative differences of row sums that the closure's level allows for.
TOLERANCE = 1e-13
_REPAIRS = 30
#: Traces of a constant mechanism, in the order in which they are tried.
_TRACES = (0.0, *(10.0**k for k in range(-13, 1)))


class Shape(NamedTuple):
    """The entries of a mechanism: how they add up and how their ratios are restored."""

    row: Ints  # equation of every entry
    outputs: Floats  # how often the entry counts in its equation
    prior: Floats  # factor of the entries of each equation before ratios are taken
    closure: Callable[[Floats, float], Floats | None]  # least vector above one, within a level


def pairs_closed(source: Ints, target: Ints) -> Callable[[Floats, float], Floats | None]:
    """Return the closure over pairs of entries whose ratio is bounded by e^level."""

    def closure(entry: Floats, level: float) -> Floats | None:
        closure = entry.copy()
        done = kernels.cone_closure(closure, source, target, math.exp(-level), 10_000)
        return closure if done else None

    return closure


def matrix_closed(distance: Floats) -> Callable[[Floats, float], Floats | None]:
    """Return the closure of vectors over inputs, one after the other, within e^(level d(x, z))."""

    def closure(entry: Floats, level: float) -> Floats:
        with np.errstate(under="ignore"):
            shrink = np.exp(-level * distance)
        v = entry.reshape(-1, len(distance))
        out = np.empty_like(v)
        split(lambda first, last: kernels.metric_closure(v, shrink, first, last, out), len(v), 1)
        return out.reshape(-1)

    return closure


def rounding(epsilon: float, extra: float) -> float:
    """What rounding can add to the log of a ratio of repaired entries."""
    return extra + (64 + 8 * epsilon) * ULP


def repair(entry: Floats, constant: Floats, shape: Shape, epsilon: float, extra: float) -> Floats:
    """Make rows sum to one and keep ratios of prior times entry within their bounds.

    Where a tight prior lets the two steps chase each other, a trace of a constant mechanism gives
    room; where there is none at all the constant mechanism itself is what is left.

    Parameters
    ----------
    entry : ndarray
        The solver's p(y|x).
    constant : ndarray
        Entries of a mechanism that does not depend on x.
    shape : Shape
        Equations, and the closure that restores ratios.
    epsilon : float
        The level.
    extra : float
        Rounding to come, added to what the repair allows for.
    """
    row, p = shape.row, shape.prior[shape.row]
    spare = min(TOLERANCE, 0.01 * epsilon)
    inner_level = epsilon - rounding(epsilon, extra) - spare
    if not inner_level > 0.5 * epsilon or not np.isfinite(entry).all():
        return constant
    given = np.maximum(entry, 0.0)
    given = given / np.bincount(row, given * shape.outputs)[row]
    for trace in _TRACES:
        mixed = (1.0 - trace) * given + trace * constant
        for _ in range(_REPAIRS):
            closed = shape.closure(p * mixed, inner_level)
            if closed is None:
                break
            mixed = closed / p
            total = np.bincount(row, mixed * shape.outputs)
            mixed = mixed / total[row]
            if math.log(total.max() / total.min()) <= spare:
                return np.asarray(mixed)
    return constant
