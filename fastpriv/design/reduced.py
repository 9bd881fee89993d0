"""One reduced program from start to finish: build it, solve it, repair the floats."""

from __future__ import annotations

import math
import time

import numpy as np

from fastpriv import kernels
from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats
from fastpriv._structure.types import Classes, Stack, Types, classes_against
from fastpriv.design import interior as _interior
from fastpriv.errors import TooLarge

#: Most entries of the blocks' Cholesky factors (2.4 GB).
_MAX_FACTORS = 300_000_000
_REPAIRS = 30


def solve_reduced(
    types: Types,
    weights: Floats,
    epsilon: float,
    joint: bool,
    gap: float,
    deadline: float,
    extra: float,
) -> tuple[list[Classes], list[Floats], float]:
    """Build, solve and repair: the classes, p(y|x) for each, and the proved lower bound.

    Raises ``OutOfTime`` where the clock passes before there is anything to repair.
    """
    classes: list[Classes] = []
    size, begun = 0, time.monotonic()
    for kind in types.counts:
        if time.monotonic() > deadline:
            raise _interior.OutOfTime
        classes.append(classes_against(kind, types))
        size += len(classes[-1].row) * (classes[-1].band + 1)
        if size > _MAX_FACTORS:
            raise TooLarge(
                f"the program's factors have more than {_MAX_FACTORS:,} entries even after "
                "symmetry; use fewer rows or values, or a prior with more structure"
            )
    stack = Stack.of(types, classes)
    row = stack.row
    # Number of outputs that make a class for one x, and masses under a constant channel whose
    # output has a uniform type: strictly inside the cone.
    outputs = np.exp(stack.log_outputs)
    inside = np.exp(stack.log_count - types.log_sizes[row]) / len(classes)
    distance = stack.distance.astype(np.float64)
    ratio = np.concatenate([c.count_ratio for c in classes])
    if joint:
        cost, rhs, inside = distance, weights, weights[row] * inside
    else:
        cost, rhs = weights[row] * distance, np.ones_like(weights)
        ratio = ratio * np.concatenate([c.size_ratio for c in classes])
    program = _interior.Program(
        cost, rhs, row, stack.source, stack.target, ratio, epsilon, stack.starts,
        np.cumsum([0, *(len(c.source) for c in classes)]),
        np.array([c.band for c in classes]), inside,
    )  # fmt: skip
    # The repair and the matrix to come take about as long as what was built so far.
    built = time.monotonic() - begun
    found = _interior.solve(program, 0.5 * gap, deadline - built)
    entry = found.v / outputs / (weights[row] if joint else 1.0)
    constant = np.exp(-types.log_sizes)[stack.kind] / len(classes)  # the same for every x, exactly
    per_database = weights / np.exp(types.log_sizes) if joint else np.ones_like(weights)
    entry = _repair(entry, constant, outputs, stack, per_database, epsilon, extra)
    return classes, np.split(entry, stack.starts[1:-1]), found.bound


def _repair(
    entry: Floats,
    constant: Floats,
    outputs: Floats,
    stack: Stack,
    prior: Floats,
    epsilon: float,
    extra: float,
) -> Floats:
    """Make rows sum to one and keep every ratio of prior times entry within e^epsilon, in floats.

    Columns are raised to their Lipschitz closure and rows divided by their sums, in turn, until
    the sums agree to a tolerance by which the closure's level was lowered beforehand, along with
    the rounding to come. The sums are off by the solver's residual, so that is soon; where a
    tight prior lets the two steps chase each other, a trace of a constant mechanism gives room,
    and where there is none at all the constant mechanism itself is what is left.
    """
    row = stack.row
    p = prior[row]
    rounding = extra + (64 + 8 * epsilon) * ULP
    tolerance = min(1e-12, 0.01 * epsilon)
    if not epsilon > 2.0 * (rounding + tolerance) or not np.isfinite(entry).all():
        return constant
    shrink = math.exp(-(epsilon - rounding - tolerance))
    given = np.maximum(entry, 0.0) / np.bincount(row, np.maximum(entry, 0.0) * outputs)[row]
    for trace in (0.0, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0):
        found = (1.0 - trace) * given + trace * constant
        for _ in range(_REPAIRS):
            weighted = p * found
            if not kernels.cone_closure(weighted, stack.source, stack.target, shrink, 10_000):
                break
            found = weighted / p
            total = np.bincount(row, found * outputs)
            found = found / total[row]
            if math.log(total.max() / total.min()) <= tolerance:
                return np.asarray(found)
    return constant
