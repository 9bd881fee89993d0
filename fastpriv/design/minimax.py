"""Least distortion at a privacy level when only a set of priors is known: a minimax program."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.highs import Rows, minimise
from fastpriv._core.rounding import ULP, raised
from fastpriv._core.validation import Floats
from fastpriv.channels import Channel
from fastpriv.design.metric_privacy import certified_level, solve_metric
from fastpriv.design.neighbours import components, distances, hamming_distances, spanner
from fastpriv.design.repair import TOLERANCE, Shape, matrix_closed, repair, rounding
from fastpriv.design.task import Task, made_task, told
from fastpriv.errors import InvalidInput, TooLarge, described
from fastpriv.priors.sets import (
    AllPriors,
    Box,
    ConvexPriors,
    PolytopePriors,
    PriorSet,
    ProductPriors,
)
from fastpriv.results import Solution
from fastpriv.spaces import Space

__all__ = ["solve_minimax"]

#: Most privacy rows of the program.
_LARGEST = 400_000


def solve_minimax(
    priors: PriorSet,
    epsilon: float,
    *,
    sizes: Sequence[int] | None = None,
    metric: ArrayLike | None = None,
    neighbours: ArrayLike | None = None,
    gap: float = 1e-6,
    time_limit: float = math.inf,
) -> Solution:
    """Find the mechanism whose expected distortion is least under the worst prior of a set.

    Parameters
    ----------
    priors : PriorSet
        All laws, a box, a polytope, or all product laws.
    epsilon : float
        Differential privacy level, at least 0.
    sizes : sequence of int, optional
        Number of values of every row; by default one row with as many values as there are
        databases.
    metric, neighbours : array, optional
        Costs and pairs as for :func:`solve_pd_dp`.
    gap : float
        Certified relative gap to reach.
    time_limit : float
        Seconds after which HiGHS gives up.

    Returns
    -------
    Solution
        ``.value`` bounds the distortion of ``.channel`` for every prior of the set from above;
        ``.bound`` is a lower bound for every mechanism: what one prior of the set, the least
        favourable one, forces (a law counts as in a polytope when rounding cannot tell).

    Notes
    -----
    One linear program: the worst case over {p : A p <= b} of the losses l(x) is, by duality, the
    least t + <b, u> with t + (A' u)(x) >= l(x) and u >= 0. The multipliers of these rows are the
    least favourable prior. N K variables and as many privacy rows for every needed pair.

    Examples
    --------
    >>> import fastpriv as fp
    >>> near = fp.PriorSet.box([0.5, 0.0, 0.0], [0.7, 0.3, 0.3])
    >>> known, unknown = (fp.solve_minimax(s, 0.5).value for s in (near, fp.PriorSet.all(3)))
    >>> round(known, 4), round(unknown, 4)
    (0.5, 0.5481)
    """
    if not isinstance(priors, PriorSet):
        raise InvalidInput(f"priors must be a PriorSet, got {described(priors)}")
    epsilon = check.real(epsilon, "epsilon", least=0.0)
    task = made_task(epsilon, False, gap, time_limit, "auto")
    space = Space([priors.size]) if sizes is None else Space(sizes)
    if space.size != priors.size:
        raise InvalidInput(
            f"the priors are over {priors.size} databases, but sizes {tuple(space.sizes)} have "
            f"{space.size}"
        )
    cost = hamming_distances(space) if metric is None else check.metric(metric, space.size)
    floor = min(float(cost.min()), 0.0)  # every row sums to one, so that a shift is a constant
    apart = hamming_distances(space) if neighbours is None else distances(neighbours, space.size)
    problem = _Minimax(priors, cost - floor, apart, space, task)
    return told(problem.solve(floor), task, depth=3)


class _Minimax:
    def __init__(
        self, priors: PriorSet, cost: Floats, distance: Floats, space: Space, task: Task
    ) -> None:
        self.priors, self.cost, self.distance = priors, cost, distance
        self.space, self.task = space, task
        self.A, self.b = _inequalities(priors)

    def solve(self, floor: float) -> Solution:
        """Solve the program, repair the mechanism, and prove both sides."""
        found, prior = self._program()
        matrix = self._repaired(found)
        level, value = certified_level(matrix, self.distance), self._worst(matrix)
        constant = min([self._alike(found), *self._constants()], key=self._worst)
        if not level <= self.task.epsilon or self._worst(constant) <= value:
            matrix, value, level = constant, self._worst(constant), 0.0
        forced = solve_metric(prior, self.cost, self.distance, self.space, self.task)
        bound = min(max(forced.bound, 0.0), value) if self._inside(prior) else 0.0
        return Solution(
            value + floor,
            bound + floor - (4.0 * ULP * (abs(bound) + abs(floor)) if floor else 0.0),
            Channel(matrix, self.space),
            level,
            "dense",
            solver="highs",
        )

    def _program(self) -> tuple[Floats, Floats]:
        """Return the solver's mechanism and the least favourable prior."""
        (inputs, outputs), task = self.cost.shape, self.task
        source, target = np.nonzero(spanner(self.distance) & np.isfinite(self.distance))
        with np.errstate(over="ignore"):  # an infinite exponent is far, too
            near = task.epsilon * self.distance[source, target] <= 40.0
        source, target = source[near], target[near]
        if len(source) * outputs > _LARGEST:
            raise TooLarge.entries(
                "the minimax program", len(source) * outputs, "use fewer databases or outputs"
            )
        margin = 2.0 * TOLERANCE + rounding(task.epsilon, 32.0 * ULP)
        level = max(task.epsilon - margin, 0.0)
        half = np.exp(0.5 * level * self.distance[source, target])
        y = np.arange(outputs)
        ratios = np.stack(
            [target[:, None] * outputs + y, source[:, None] * outputs + y], axis=2
        ).reshape(-1)
        coefficients = np.stack([half, -1.0 / half], axis=1).repeat(outputs, axis=0).reshape(-1)
        entries, bounds = inputs * outputs, len(self.b)
        unit = max(float(self.cost.max()), 1e-300)
        # Losses: t + A' u - sum_y c W >= 0, for every database.
        losses = np.hstack([-self.cost / unit, np.ones((inputs, 1)), self.A.T])
        places = np.hstack(
            [
                np.arange(entries).reshape(inputs, outputs),
                np.full((inputs, 1), entries),
                np.tile(entries + 1 + np.arange(bounds), (inputs, 1)),
            ]
        )
        count = len(source) * outputs
        lengths = np.repeat([2, outputs + 1 + bounds, outputs], [count, inputs, inputs])
        rows = Rows(
            np.concatenate([[0], np.cumsum(lengths)]),
            np.concatenate([ratios, places.reshape(-1), np.arange(entries)]),
            np.concatenate([coefficients, losses.reshape(-1), np.ones(entries)]),
            np.repeat([0.0, 0.0, 1.0], [count, inputs, inputs]),
            np.repeat([math.inf, math.inf, 1.0], [count, inputs, inputs]),
        )
        answer = minimise(
            np.concatenate([np.zeros(entries), [1.0], self.b]),
            np.concatenate([np.zeros(entries), [-math.inf], np.zeros(bounds)]),
            rows,
            max(1e-3, task.deadline - time.monotonic()),
        )
        prior = np.maximum(answer.duals[count : count + inputs], 0.0)
        return answer.values[:entries].reshape(inputs, outputs), prior / prior.sum()

    def _repaired(self, matrix: Floats) -> Floats:
        inputs, outputs = matrix.shape
        shape = Shape(
            np.tile(np.arange(inputs), outputs),
            np.ones(inputs * outputs),
            np.ones(inputs),
            matrix_closed(self.distance),
        )
        mean = np.maximum(matrix, 0.0).mean(axis=0)
        constant = np.repeat(mean / mean.sum(), inputs)
        entry = repair(matrix.T.reshape(-1), constant, shape, self.task.epsilon, 32.0 * ULP)
        return np.ascontiguousarray(entry.reshape(outputs, inputs).T)

    def _worst(self, matrix: Floats) -> float:
        """Upper bound on the expected cost over the set."""
        loss = raised((matrix * self.cost).sum(axis=1), 4.0 * matrix.shape[1])
        most = float(loss.max())
        if most == 0.0 or not isinstance(self.priors, ConvexPriors):
            return most
        # The priors' own search is for the least mean of numbers between 0 and 1; one half is
        # added so that the least is not lost to rounding.
        spared = self.priors.smallest(1.0 - loss / (2.0 * most))
        return min(2.0 * most * (1.0 - spared) + 8.0 * ULP * most, most)

    def _alike(self, matrix: Floats) -> Floats:
        """Give all inputs that anything relates the mean of their rows, which has level 0."""
        part = components(self.distance)
        total = np.zeros((part.max() + 1, matrix.shape[1]))
        np.add.at(total, part, np.maximum(matrix, 0.0))
        return np.asarray((total / total.sum(axis=1, keepdims=True))[part])

    def _constants(self) -> list[Floats]:
        """Return the mechanisms that always give one output."""
        return [np.tile(output, (len(self.cost), 1)) for output in np.eye(self.cost.shape[1])]

    def _inside(self, prior: Floats) -> bool:
        """Whether a law is in the set as far as rounding can tell."""
        reach = np.abs(self.A) @ prior + np.abs(self.b)
        return bool((self.A @ prior <= self.b + 64.0 * len(prior) * ULP * reach).all())


def _inequalities(priors: PriorSet) -> tuple[Floats, Floats]:
    """Return A and b with the set {p >= 0 : sum p = 1, A p <= b}."""
    size = priors.size
    if isinstance(priors, AllPriors | ProductPriors):
        return np.empty((0, size)), np.empty(0)  # point masses are products
    if isinstance(priors, Box):
        return np.vstack([np.eye(size), -np.eye(size)]), np.append(priors.upper, -priors.lower)
    if isinstance(priors, PolytopePriors):
        return priors.inequalities.A, priors.inequalities.b
    raise InvalidInput(f"{priors!r} is not a polytope of laws; use a box around it")
