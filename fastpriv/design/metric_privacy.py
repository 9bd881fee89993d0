"""Least expected cost at a privacy level that scales with a distance between inputs.

Any cost, any number of outputs, any graph or metric: differential privacy for groups, for
neighbourhoods of one's own, geo-indistinguishability (Andres, Bordenabe, Chatzikokolakis and
Palamidessi 2013; the optimal mechanism as a linear program: Bordenabe, Chatzikokolakis and
Palamidessi 2014). The program has the form of :mod:`fastpriv._structure.types`, one vector over
inputs for every output, each in the same cone.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from fastpriv import kernels
from fastpriv._core import validation as check
from fastpriv._core.rounding import ULP, raised
from fastpriv._core.threads import split
from fastpriv._core.validation import Floats, Ints
from fastpriv._core.wide import wide
from fastpriv._matrices.leakage import TINY
from fastpriv.channels import Channel
from fastpriv.design import engine, growing
from fastpriv.design.interior import Iterate, OutOfRange, OutOfTime, Program
from fastpriv.design.neighbours import CHAIN, components, distances, hamming_distances, spanner
from fastpriv.design.repair import TOLERANCE, Shape, matrix_closed, repair, rounding
from fastpriv.design.symmetries import Orbits, symmetries
from fastpriv.design.task import Task, told
from fastpriv.errors import Infeasible, InvalidInput, TooLarge, described
from fastpriv.priors import Distribution
from fastpriv.results import Solution
from fastpriv.spaces import Space

#: Most inputs: a matrix of distances between them has 32 MB.
_MAX_INPUTS = 1 << 11
#: More pairs than this are met one by one as they come near.
_LISTED = 60_000
#: Most entries of the dense factors (2.4 GB).
_MAX_FACTORS = 300_000_000
#: Stretch of the first working set; pairs that a chain implies up to this are left out.
_STRETCH = 1e-2
#: Pairs whose ratio may be e^60 say nothing.
_FAR = 60.0


def solve_general(
    prior: Distribution,
    metric: ArrayLike | None,
    neighbours: ArrayLike | None,
    group: int,
    task: Task,
) -> Solution:
    """Check the arguments, solve, and warn where the gap is not met."""
    dense = prior.as_dense("the program", _MAX_INPUTS)
    size = dense.space.size
    if group > 1 and neighbours is not None:
        raise InvalidInput("give either neighbours or group, not both: group is one of rows")
    cost = hamming_distances(dense.space) if metric is None else check.metric(metric, size)
    if neighbours is None:
        distance = hamming_distances(dense.space, group)
    else:
        distance = distances(neighbours, size)
    solution = solve_metric(dense.probabilities(), cost, distance, dense.space, task)
    return told(solution, task, why=_cramped(distance, task))


def solve_metric(
    prior: Floats, cost: Floats, distance: Floats, space: Space, task: Task
) -> Solution:
    """Solve and certify: see :func:`fastpriv.solve_pd_dp` with ``metric`` or ``neighbours``.

    Parameters
    ----------
    prior : ndarray
        p(x).
    cost : ndarray
        Cost of output y for input x.
    distance : ndarray
        d(x, z), its own shortest paths.
    space : Space
        The inputs.
    task : Task
        Level, program and limits.
    """
    if task.joint:
        _check_feasible(prior, distance, task.epsilon)
        if not prior.all():
            return _beside_impossible(prior, cost, distance, space, task)
    floor = np.minimum(cost.min(axis=1), 0.0)  # costs are counted from 0 on
    offset = math.fsum(prior * floor)
    problem = _Problem(prior, cost - floor[:, None], distance, task)
    part = components(distance)
    constant = _constant(prior, cost, part, space, problem.least)
    apart = part.max() + 1 == len(prior)  # nothing has to look alike
    free = not (prior[:, None] * problem.cost).any()
    if task.epsilon == 0.0 or apart or cost.shape[1] == 1 or free:
        return replace(constant, method="closed-form")
    try:
        matrix, bound, solver = problem.solve()
    except OutOfTime:
        matrix, bound, solver = None, 0.0, None
    bound = max(bound, 0.0)  # shifted costs are no less
    bound += offset - 4.0 * ULP * (abs(offset) + bound)
    best = constant
    if matrix is not None:
        level = certified_level(matrix, distance, prior if task.joint else None)
        value = math.fsum((prior[:, None] * matrix * cost).reshape(-1))
        if level <= task.epsilon and value < constant.value:
            best = Solution(value, bound, Channel(matrix, space), level, "dense")
    return Solution(
        best.value, min(bound, best.value), best.channel, best.level, "dense", solver=solver
    )


def _cramped(distance: Floats, task: Task) -> str:
    """Say so where rounding is more than the shortest distance leaves room for, in the gap."""
    shortest = float(distance[distance > 0.0].min(initial=1.0))
    room = task.epsilon * shortest
    late = bool(task.stopped) or time.monotonic() > task.deadline
    if late or shortest >= 1.0 or room * task.gap > 4.0 * TOLERANCE:
        return ""
    return (
        f"inputs at a distance of {shortest:.3g} may differ by a factor of 1 + {room:.1e} only, "
        "which rounding spoils; merge inputs so close to each other"
    )


def certified_level(matrix: Floats, distance: Floats, prior: Floats | None = None) -> float:
    """Return the largest ln(V[x, y] / V[z, y]) / d(x, z) over all pairs, rounded up.

    V is the matrix, or p(x) times it where a prior is given: products that may be smaller than any
    double. Columns are divided by powers of two, which changes no ratio and no digit.
    """
    entries, slack = wide(matrix), 0.0
    if prior is not None:
        entries, slack = entries * wide(prior[:, None]), 3.0 * ULP  # two rounded products
    given = entries.to_one(axis=0), entries.mantissa, entries.exponent.astype(np.float64)
    parts = split(
        lambda first, last: kernels.metric_level(*given, distance, slack, first, last),
        len(matrix),
        1,
    )
    return raised(max(parts), 24.0)


def _check_feasible(prior: Floats, distance: Floats, epsilon: float) -> None:
    least = certified_level(prior[:, None], distance)
    if least == math.inf:
        raise Infeasible(
            "no mechanism has a finite identifiability here: a database of probability zero is "
            "related to a possible one, which every output tells from it; leave it out"
        )
    if epsilon < least:
        raise Infeasible(
            f"no mechanism has identifiability {described(epsilon)} here: the prior alone has "
            f"level {described(least)}, which is the least possible"
        )


def _beside_impossible(
    prior: Floats, cost: Floats, distance: Floats, space: Space, task: Task
) -> Solution:
    """Solve over the databases that can occur; to the others none of those is related.

    Posteriors of a database of probability zero are zero whatever it is mapped to, so that its
    cheapest output is as good as any.
    """
    seen = np.flatnonzero(prior)
    within = Space([len(seen)])
    best = solve_metric(prior[seen], cost[seen], distance[np.ix_(seen, seen)], within, task)
    matrix = np.eye(cost.shape[1])[cost.argmin(axis=1)]
    matrix[seen] = best.channel.matrix()
    return replace(best, channel=Channel(matrix, space))


def _constant(prior: Floats, cost: Floats, part: Ints, space: Space, level: float) -> Solution:
    """Return the best mechanism that gives one output to all inputs that anything relates.

    At epsilon 0 no other has its level: related inputs have the same row, and the cheapest one
    has a single output.
    """
    charge = prior[:, None] * cost
    expected, size = np.zeros((2, part.max() + 1, cost.shape[1]))
    np.add.at(expected, part, charge)
    np.add.at(size, part, np.abs(charge))
    matrix = np.eye(cost.shape[1])[expected.argmin(axis=1)[part]]
    value = math.fsum((charge * matrix).reshape(-1))
    least = (expected - (len(prior) + 4.0) * ULP * size).min(axis=1)
    bound = math.fsum(least) - 4.0 * ULP * math.fsum(np.abs(least))
    return Solution(value, min(bound, value), Channel(matrix, space), level, "dense")


class _Problem:
    """The program, reduced by its symmetries."""

    def __init__(self, prior: Floats, cost: Floats, distance: Floats, task: Task) -> None:
        self.prior, self.cost, self.distance, self.task = prior, cost, distance, task
        self.orbits = Orbits.of(symmetries(prior, cost, distance), cost.shape[1])
        # Chains of pairs and averages over symmetries round; the repair allows for it.
        self.extra = 32.0 * CHAIN * task.epsilon + 32.0 * ULP
        self.least = certified_level(prior[:, None], distance) if task.joint else 0.0
        margin = (2.0 * TOLERANCE + rounding(task.epsilon, self.extra)) / self._shortest()
        self.margin = margin if self.least + 4.0 * margin < task.epsilon else 0.0

    def _shortest(self) -> float:
        return min(1.0, float(self.distance[self.distance > 0.0].min(initial=1.0)))

    def solve(self) -> tuple[Floats, float, str]:
        """Return W[x, y], the proved lower bound, and the engine."""
        task, orbits = self.task, self.orbits
        outputs, size = len(orbits.outputs), len(self.prior)
        if outputs * size * size > _MAX_FACTORS:
            raise TooLarge.entries(
                f"the factors of {outputs} outputs over {size} inputs after symmetry",
                outputs * size * size,
                "use fewer inputs or outputs, or a prior and a metric with more symmetry",
            )
        if time.monotonic() > task.deadline:
            raise OutOfTime
        if task.joint and self.prior.min() < TINY:
            raise OutOfRange
        weights = self.prior if task.joint else np.ones(size)
        cost = self.cost[:, orbits.outputs].T * (1.0 if task.joint else self.prior)
        rhs = np.asarray(np.bincount(orbits.row, weights), dtype=np.float64)
        inside = np.tile(weights / outputs, (outputs, 1))
        listed = self._listed(outputs)
        if listed is not None:
            point, solver = self._by_pairs(listed, cost, rhs, inside)
        else:
            point, solver = self._by_growth(cost, rhs, inside), "interior"
        # Masses of whole orbits of outputs become entries of one output.
        entry = (point.v.reshape(outputs, size) / orbits.copies[:, None] / weights).reshape(-1)
        shape = Shape(
            np.tile(orbits.row, outputs),
            np.outer(orbits.copies, 1.0 / orbits.sizes[orbits.row]).reshape(-1),
            rhs / orbits.sizes,
            matrix_closed(self.distance),
        )
        constant = np.full(outputs * size, 1.0 / self.cost.shape[1])
        entry = repair(entry, constant, shape, task.epsilon, self.extra)
        matrix = orbits.expand(entry.reshape(outputs, size))
        return matrix / matrix.sum(axis=1, keepdims=True), point.bound, solver

    def _listed(self, outputs: int) -> np.ndarray | None:
        """Return the pairs to list for every output, None where they are too many."""
        needed = spanner(self.distance)
        with np.errstate(over="ignore"):  # an infinite exponent is far, too
            needed &= self.task.epsilon * self.distance <= _FAR
        few = np.count_nonzero(needed) * outputs <= _LISTED
        return needed if few or self.task.solver == "highs" else None

    def _by_pairs(
        self, needed: np.ndarray, cost: Floats, rhs: Floats, inside: Floats
    ) -> tuple[Iterate, str]:
        outputs, size = cost.shape
        source, target = np.nonzero(needed)
        length = np.tile(self.distance[source, target], outputs)
        shift = np.repeat(size * np.arange(outputs), len(source))
        program = Program(
            cost.reshape(-1), rhs, np.tile(self.orbits.row, outputs),
            np.tile(source, outputs) + shift, np.tile(target, outputs) + shift,
            np.exp((self.task.epsilon - self.margin) * length), 0.0, self.margin,
            size * np.arange(outputs + 1), len(source) * np.arange(outputs + 1),
            np.full(outputs, size - 1), inside.reshape(-1), length,
        )  # fmt: skip
        task = self.task
        return engine.solve(program, 0.5 * task.gap, task.deadline, task.solver)

    def _by_growth(self, cost: Floats, rhs: Floats, inside: Floats) -> Iterate:
        task, capped = self.task, np.minimum(self.distance, _FAR / self.task.epsilon)
        cone = growing.Cone(
            np.ascontiguousarray(cost), self.orbits.row, rhs,
            np.exp((task.epsilon - self.margin) * capped),
            np.exp(task.epsilon * capped),
            spanner(self.distance, _STRETCH) & (capped == self.distance),
        )  # fmt: skip
        return growing.solve(cone, inside, 0.8 * task.gap, task.deadline)
