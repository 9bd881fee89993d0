"""Least expected cost at an (epsilon, delta) level: a linear program with room for delta.

    W[x, y] - e^epsilon W[z, y] <= u[x, z, y],   u >= 0,   sum_y u[x, z, y] <= delta

for neighbours x, z. Mixing with a constant mechanism shrinks every sum by its share, which repairs
a solution whose sums are a little too large.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.highs import Rows, minimise
from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats, Ints
from fastpriv.channels import Channel
from fastpriv.design.neighbours import hamming_distances
from fastpriv.design.task import Task, told
from fastpriv.errors import SolverFailure, TooLarge
from fastpriv.priors import Distribution
from fastpriv.results import Solution
from fastpriv.spaces import Space

#: Most variables of the program.
_LARGEST = 200_000
#: Largest level whose ratio is a double.
_STEEPEST = 700.0


def solve_within_delta(
    prior: Distribution, metric: ArrayLike | None, delta: float, task: Task
) -> Solution:
    """Check the arguments, solve, and warn where the gap is not met."""
    dense = prior.as_dense("the program", 1 << 11)
    space = dense.space
    cost = hamming_distances(space) if metric is None else check.metric(metric, space.size)
    floor = min(float(cost.min()), 0.0)  # every row sums to one, so that a shift is a constant
    solution = _solve(dense.probabilities(), cost - floor, space, delta, task)
    shifted = replace(solution, value=solution.value + floor, bound=solution.bound + floor)
    return told(shifted, task)


def _solve(prior: Floats, cost: Floats, space: Space, delta: float, task: Task) -> Solution:
    """Solve, repair and certify; databases that differ in one row are neighbours."""
    if delta == 1.0:  # anything goes
        matrix, value = (
            np.eye(cost.shape[1])[cost.argmin(axis=1)],
            math.fsum(prior * cost.min(axis=1)),
        )
        return Solution(value, value, Channel(matrix, space), task.epsilon, "closed-form")
    first, second = _neighbours(space)
    inputs, outputs = cost.shape
    variables = (inputs + len(first)) * outputs
    if variables > _LARGEST:
        raise TooLarge.entries(
            "the program at an (epsilon, delta) level", variables, "use fewer databases"
        )
    charge = prior[:, None] * cost
    unit = max(float(charge.max()), 1e-300)
    # A level beyond the largest double is lowered: the program proves nothing there anyway.
    grow = math.exp(min(task.epsilon, _STEEPEST))
    seconds = max(1e-3, task.deadline - time.monotonic())
    best, bound = _constant(prior, cost), 0.0
    try:
        answer = minimise(
            np.concatenate([charge.reshape(-1) / unit, np.zeros(len(first) * outputs)]),
            np.zeros(variables),
            _rows(first, second, inputs, outputs, grow, delta),
            seconds,
        )
    except SolverFailure:
        pass  # what needs no program is what there is
    else:
        entries = answer.values[: inputs * outputs].reshape(inputs, outputs)
        matrix = _repaired(entries, best, first, second, grow, delta)
        if (charge * matrix).sum() < (charge * best).sum():
            best = matrix
        duals = np.maximum(-answer.duals[: len(first) * outputs], 0.0).reshape(-1, outputs) * unit
        if task.epsilon <= _STEEPEST:
            bound = _bound(charge, duals, first, second, grow, delta)
    value = math.fsum((charge * best).reshape(-1))
    lower = min(max(bound, 0.0), value)
    return Solution(value, lower, Channel(best, space), task.epsilon, "dense", solver="highs")


def _neighbours(space: Space) -> tuple[Ints, Ints]:
    pairs = [(x, z) for x in range(space.size) for z in np.asarray(space.neighbours(x)).tolist()]
    table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def _constant(prior: Floats, cost: Floats) -> Floats:
    matrix = np.zeros(cost.shape)
    matrix[:, int((prior @ cost).argmin())] = 1.0
    return matrix


def _rows(first: Ints, second: Ints, inputs: int, outputs: int, grow: float, delta: float) -> Rows:
    """Ratios with their excess, sums of excesses, sums of rows."""
    y = np.arange(outputs)
    count = len(first) * outputs
    excess = inputs * outputs + np.arange(count)
    one, two = ((part[:, None] * outputs + y).reshape(-1) for part in (first, second))
    ratios = np.stack([one, two, excess], axis=1).reshape(-1)
    entries = np.tile([1.0, -grow, -1.0], count)
    lengths = np.repeat([3, outputs, outputs], [count, len(first), inputs])
    return Rows(
        np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate([ratios, excess, np.arange(inputs * outputs)]),
        np.concatenate([entries, np.ones(count + inputs * outputs)]),
        np.repeat([-math.inf, -math.inf, 1.0], [count, len(first), inputs]),
        np.repeat([0.0, delta, 1.0], [count, len(first), inputs]),
    )


def _repaired(
    entries: Floats, constant: Floats, first: Ints, second: Ints, grow: float, delta: float
) -> Floats:
    """Make rows sum to one and mix in a constant mechanism until every excess is within delta."""
    matrix = np.maximum(entries, 0.0)
    matrix /= matrix.sum(axis=1, keepdims=True)
    excess = np.maximum(matrix[first] - grow * matrix[second], 0.0).sum(axis=1)
    rounding = (8 * entries.shape[1] + 64) * ULP * (1.0 + grow)
    worst = float(excess.max(initial=0.0)) + rounding
    keep = min(1.0, max(delta - rounding, 0.0) / worst)
    return np.asarray(keep * matrix + (1.0 - keep) * constant)


def _bound(
    charge: Floats, duals: Floats, first: Ints, second: Ints, grow: float, delta: float
) -> float:
    """Lower bound from multipliers of the ratios.

    For l >= 0 and n(x, z) = max_y l(x, z, y), the cost of any mechanism is at least the sum over x
    of min_y (c(x, y) + sum_z l(x, z, y) - e^epsilon sum_z l(z, x, y)), less delta sum n.
    """
    price, size = charge.copy(), np.abs(charge)
    np.add.at(price, first, duals)
    np.add.at(price, second, -grow * duals)
    np.add.at(size, first, duals)
    np.add.at(size, second, grow * duals)
    price -= (int(np.bincount(first).max(initial=0)) * 2 + 16) * ULP * size
    floor, paid = price.min(axis=1), delta * duals.max(axis=1, initial=0.0)
    total = math.fsum(np.abs(floor)) + math.fsum(paid)
    return math.fsum(floor) - math.fsum(paid) - 8.0 * ULP * total
