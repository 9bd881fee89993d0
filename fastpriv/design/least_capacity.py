"""The mapping that tells least whatever the law of its input: least capacity at a distortion."""

from __future__ import annotations

import math
import warnings

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.highs import Rows, minimise
from fastpriv._core.rounding import ULP, raised
from fastpriv._core.validation import Floats
from fastpriv.channels import Channel
from fastpriv.design.task import made_task, told
from fastpriv.errors import Infeasible, InvalidInput, SolverFailure, described
from fastpriv.measures.capacity import channel_capacity
from fastpriv.results import Solution

__all__ = ["least_capacity"]

#: Largest slope, as a multiple of the inverse of the largest cost.
_STEEP = 600.0
#: Seconds after which one linear program is given up.
_SECONDS = 300.0


def least_capacity(metric: ArrayLike, budget: ArrayLike, *, gap: float = 1e-6) -> Solution:
    """Find the mapping of least capacity whose expected cost is within budget for every input.

    Parameters
    ----------
    metric : 2-D array
        ``metric[x, y]``, the cost of output y for input x.
    budget : float or 1-D array
        Largest expected cost, for all inputs or one for each.
    gap : float
        Certified relative gap to reach.

    Returns
    -------
    Solution
        ``.value`` is the capacity of ``.channel`` in nats, ``.bound`` a proved lower bound.

    Raises
    ------
    Infeasible
        Where an input has no output within its budget.

    Notes
    -----
    Makhdoumi-Fawaz 2013, Case 2 of Section III: nothing is known of the secret S or of the data X,
    and the worst case over both is S = X with the capacity-achieving law. Minimax: the least
    capacity is the least over output laws q of max over x of g_x(q), with g_x(q) the least
    divergence D(w || q) of a row w within budget, which is convex in q. For a law p of inputs and
    slopes s >= 0, every mapping within budget has capacity at least -sum p (ln Z_x + s_x b_x) -
    ln max_y sum_x p(x) e^(-s_x d(x, y)) / Z_x, Z_x = sum_y q(y) e^(-s_x d(x, y)) (Blahut 1972).
    Cost O(N K) per step of a sequential quadratic method in K unknowns: meant for K below 100.

    Examples
    --------
    >>> import fastpriv as fp
    >>> apart = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    >>> round(fp.least_capacity(apart, 0.4).value, 4)
    0.2615
    """
    task = made_task(0.0, False, gap, math.inf, "auto")
    given = check.array(metric, "metric")
    cost = check.metric(given, len(given) if given.ndim else 0)
    limits = check.array(budget, "budget")
    if limits.shape not in ((), (len(cost),)):
        raise InvalidInput(
            f"budget must be one number or one for each of {len(cost)} inputs, got shape "
            f"{limits.shape}"
        )
    most = np.broadcast_to(limits, len(cost)).astype(np.float64)
    if not np.isfinite(most).all():
        raise InvalidInput("budget must hold finite numbers, found a NaN or an infinity")
    least = cost.min(axis=1)
    if (most < least).any():
        x = int((least - most).argmax())
        raise Infeasible(
            f"no output costs input {x} at most {described(most[x])}; its least cost is "
            f"{described(float(least[x]))}"
        )
    cost, most = cost - least[:, None], most - least
    silent = _silent(cost, most)
    if (raised(cost @ silent, 4.0 * len(silent)) <= most).all():
        channel = Channel(np.tile(silent, (len(cost), 1)))
        return Solution(0.0, 0.0, channel, 0.0, "closed-form")
    problem = _Minimax(cost, most)
    q = problem.minimise()
    matrix = problem.rows(q)
    channel = Channel(matrix)
    value = channel_capacity(channel).upper
    bound = min(max(problem.bound(q), 0.0), value)
    return told(Solution(value, bound, channel, value, "dense"), task, depth=3)


def _silent(cost: Floats, budget: Floats) -> Floats:
    """Return the law of outputs that, given for every input, exceeds budgets least."""
    inputs, outputs = cost.shape
    unit = max(float(cost.max()), 1e-300)
    table = np.vstack(
        [np.column_stack([cost / unit, -np.ones(inputs)]), np.append(np.ones(outputs), 0.0)]
    )
    rows = Rows(
        (outputs + 1) * np.arange(inputs + 2),
        np.tile(np.arange(outputs + 1), inputs + 1),
        table.reshape(-1),
        np.append(np.full(inputs, -math.inf), 1.0),
        np.append(budget / unit, 1.0),
    )
    free = np.append(np.zeros(outputs), -math.inf)
    answer = minimise(np.append(np.zeros(outputs), 1.0), free, rows, _SECONDS)
    law = np.maximum(answer.values[:-1], 0.0)
    return np.asarray(law / law.sum())


class _Minimax:
    """max over x of g_x(q), in costs that are 0 at the best output of every input."""

    def __init__(self, cost: Floats, budget: Floats) -> None:
        self.cost, self.budget = cost, budget
        self.steepest = _STEEP / max(float(cost.max()), 1e-300)

    def slopes(self, q: Floats) -> Floats:
        """Slope at which the tilted row of each input just meets its budget, by bisection."""
        low, high = np.zeros(len(self.cost)), np.full(len(self.cost), self.steepest)
        low = np.where(self._mean(q, low) <= self.budget, 0.0, low)
        high = np.where(self._mean(q, low) <= self.budget, 0.0, high)
        for _ in range(80):
            middle = 0.5 * (low + high)
            above = self._mean(q, middle) > self.budget
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return high

    def _tilted(self, q: Floats, slope: Floats) -> Floats:
        return np.asarray(q * np.exp(-slope[:, None] * self.cost))

    def _mean(self, q: Floats, slope: Floats) -> Floats:
        tilted = self._tilted(q, slope)
        return np.asarray((tilted * self.cost).sum(axis=1) / tilted.sum(axis=1))

    def divergences(self, q: Floats) -> tuple[Floats, Floats]:
        """g_x(q) and its gradient."""
        slope = self.slopes(q)
        kernel = np.exp(-slope[:, None] * self.cost)
        total = kernel @ q
        return -np.log(total) - slope * self.budget, -kernel / total[:, None]

    def minimise(self) -> Floats:
        """Minimise the largest divergence over output laws."""
        from scipy.optimize import minimize

        outputs = self.cost.shape[1]
        start = np.full(outputs, 1.0 / outputs)
        floor = 1e-12  # keeps divergences finite; what it costs shows in the gap
        with warnings.catch_warnings():  # some versions warn of steps that they clip
            warnings.filterwarnings("ignore", "Values in x were outside bounds", RuntimeWarning)
            result = minimize(
                lambda z: z[-1],
                np.append(start, self.divergences(start)[0].max()),
                jac=lambda z: np.append(np.zeros(outputs), 1.0),
                method="SLSQP",
                bounds=[(floor, 1.0)] * outputs + [(0.0, None)],
                constraints=[
                    {
                        "type": "ineq",
                        "fun": lambda z: z[-1] - self.divergences(z[:-1])[0],
                        "jac": lambda z: np.column_stack(
                            [-self.divergences(z[:-1])[1], np.ones(len(self.cost))]
                        ),
                    },
                    {
                        "type": "eq",
                        "fun": lambda z: z[:-1].sum() - 1.0,
                        "jac": lambda z: np.append(np.ones(outputs), 0.0),
                    },
                ],
                options={"ftol": 1e-15, "maxiter": 1000},
            )
        q = np.maximum(result.x[:-1], floor)
        return np.asarray(q / q.sum())

    def rows(self, q: Floats) -> Floats:
        """Return the tilted rows, with a trace of the cheapest output where rounding overspends."""
        tilted = self._tilted(q, self.slopes(q))
        rows = tilted / tilted.sum(axis=1, keepdims=True)
        spent = raised((rows * self.cost).sum(axis=1), 16.0 * self.cost.shape[1])
        with np.errstate(divide="ignore", invalid="ignore"):
            kept = np.where(spent > self.budget, self.budget / spent, 1.0)
        cheapest = np.eye(self.cost.shape[1])[self.cost.argmin(axis=1)]
        return np.asarray(kept[:, None] * rows + (1.0 - kept)[:, None] * cheapest)

    def bound(self, q: Floats) -> float:
        """Lower bound on the least capacity, from the law of inputs that makes it largest.

        The law is the solution of a linear program; the bound holds for any law.
        """
        slope = self.slopes(q)
        kernel = np.exp(-slope[:, None] * self.cost)
        total = kernel @ q
        gain = -np.log(total) - slope * self.budget
        share = kernel / total[:, None]
        inputs, outputs = self.cost.shape
        # Largest sum p gain - r with sum_x p share <= 1 + r for every output, p a law.
        table = np.column_stack([share.T, -np.ones(outputs)])
        law = np.append(np.ones(inputs), 0.0)
        rows = Rows(
            (inputs + 1) * np.arange(outputs + 2),
            np.tile(np.arange(inputs + 1), outputs + 1),
            np.concatenate([table.reshape(-1), law]),
            np.append(np.full(outputs, -math.inf), 1.0),
            np.ones(outputs + 1),
        )
        try:
            lower = np.append(np.zeros(inputs), -1.0)
            p = np.maximum(minimise(np.append(-gain, 1.0), lower, rows, _SECONDS).values[:-1], 0.0)
        except SolverFailure:
            return 0.0
        p /= p.sum()
        reach = float((p @ share).max())
        size = math.fsum(p * (np.abs(np.log(total)) + slope * self.budget))
        error = (4 * inputs + 4 * outputs + 64) * ULP * (1.0 + size)
        return float(math.fsum(p * gain) - math.log(reach) - error)
