"""One reduced program from start to finish: build it, solve it, repair the floats."""

from __future__ import annotations

import math
import time
from typing import NamedTuple

import numpy as np

from fastpriv._core.validation import Floats
from fastpriv._matrices.leakage import TINY
from fastpriv._structure.types import Classes, Stack, Types, classes_against
from fastpriv.design import engine
from fastpriv.design.interior import OutOfRange, OutOfTime, Program
from fastpriv.design.problem import Task
from fastpriv.design.repair import TOLERANCE, Shape, pairs_closed, repair, rounding
from fastpriv.errors import TooLarge

#: Largest level of a PD-DP program and of a PD-I program: beyond, coefficients leave the doubles.
_STEEPEST = (200.0, 700.0)
#: Most entries of the blocks' Cholesky factors (2.4 GB).
_MAX_FACTORS = 300_000_000


class Reduced(NamedTuple):
    """What came of it: p(y|x) of every class, the proved lower bound, and the engine."""

    classes: list[Classes]
    entries: list[Floats]
    bound: float
    solver: str


def solve_reduced(types: Types, weights: Floats, task: Task, extra: float = 0.0) -> Reduced:
    """Build, solve and repair the program over types with the given masses.

    Raises ``OutOfTime`` where the clock passes before there is anything to repair, and
    ``OutOfRange`` where there is no program in doubles. ``extra`` is rounding to come, which the
    repair allows for.
    """
    begun = time.monotonic()
    if task.epsilon > _STEEPEST[task.joint]:
        raise OutOfRange
    classes = _classes(types, task.deadline)
    stack = Stack.of(types, classes)
    row = stack.row
    # Number of outputs that make a class for one x, and masses under a constant channel whose
    # output has a uniform type: strictly inside the cone.
    outputs = np.exp(stack.log_outputs)
    inside = np.exp(stack.log_count - types.log_sizes[row]) / len(classes)
    distance = stack.distance.astype(np.float64)
    ratio = np.concatenate([c.count_ratio for c in classes])
    per_database, least = np.ones_like(weights), 0.0
    if task.joint:
        cost, rhs, inside = distance, weights, weights[row] * inside
        per_database = weights / np.exp(types.log_sizes)
        if per_database.min() < TINY:
            raise OutOfRange
        pairs = per_database[row[stack.source]] / per_database[row[stack.target]]
        least = math.log(pairs.max(initial=1.0))
    else:
        cost, rhs = weights[row] * distance, np.ones_like(weights)
        ratio = ratio * np.concatenate([c.size_ratio for c in classes])
    # The program is posed a little below the level, so that the repair has room.
    margin = 2.0 * TOLERANCE + rounding(task.epsilon, extra)
    margin = margin if least + 4.0 * margin < task.epsilon else 0.0
    program = Program(
        cost, rhs, row, stack.source, stack.target, ratio, task.epsilon - margin, margin,
        stack.starts, np.cumsum([0, *(len(c.source) for c in classes)]),
        np.array([c.band for c in classes]), inside,
    )  # fmt: skip
    # The repair and the matrix to come take about as long as what was built so far.
    built = time.monotonic() - begun
    deadline = task.deadline - built
    try:
        point, solver = engine.solve(program, 0.5 * task.gap, deadline, task.solver)
    finally:
        if time.monotonic() > deadline:
            task.stopped.append("engine")
    entry = point.v / outputs / (weights[row] if task.joint else 1.0)
    constant = np.exp(-types.log_sizes)[stack.kind] / len(classes)  # the same for every x, exactly
    shape = Shape(row, outputs, per_database, pairs_closed(stack.source, stack.target))
    entry = repair(entry, constant, shape, task.epsilon, extra)
    return Reduced(classes, np.split(entry, stack.starts[1:-1]), point.bound, solver)


def _classes(types: Types, deadline: float) -> list[Classes]:
    """List the classes against every type of output, while they fit and the clock allows."""
    classes: list[Classes] = []
    size = 0
    for kind in types.counts:
        if time.monotonic() > deadline:
            raise OutOfTime
        classes.append(classes_against(kind, types))
        size += len(classes[-1].row) * (classes[-1].band + 1)
        if size > _MAX_FACTORS:
            raise TooLarge(
                f"the program's factors have more than {_MAX_FACTORS:,} entries even after "
                "symmetry; use fewer rows or values, or a prior with more structure"
            )
    return classes
