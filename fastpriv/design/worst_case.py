"""Mechanisms that are safe whatever the private data: least contraction, least correlation.

Both criteria are suprema of sums of squares over linear forms, (f'v)^2/q, of the mechanism. Such a
term lies above 2 h f'v - h^2 q for every h, so that the criterion is convex, every point gives
cuts that pass through the origin, and any weights of the cuts give a lower bound. Kelley's method
with HiGHS collects them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.highs import Rows, minimise
from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats
from fastpriv._matrices.contraction import contractions
from fastpriv.channels import Channel
from fastpriv.design.task import made_task, told
from fastpriv.errors import Infeasible, InvalidInput, SolverFailure, described
from fastpriv.priors import Distribution
from fastpriv.priors.base import as_prior
from fastpriv.results import Solution

__all__ = ["design_worst_case"]

_ROUNDS = 400
_PATIENCE = 60

#: Value of a mechanism, rounded up, and cuts G with criterion(W) >= <G, W> for every W.
Criterion = Callable[[Floats], tuple[float, list[Floats]]]


def design_worst_case(
    prior: Distribution | ArrayLike | None,
    distortion: float,
    metric: ArrayLike | None = None,
    criterion: str = "contraction",
    *,
    gap: float = 1e-4,
    time_limit: float = math.inf,
) -> Solution:
    """Find a mapping from X to Y that limits the leakage about every S, none of them known.

    Whatever P(s|x) is, I(S; Y) <= S*(X; Y) I(S; X), and rho^2 <= S* <= eta, where eta(W) is the
    contraction coefficient, the largest S* over laws of X, and rho the maximal correlation of X
    and Y. ``"contraction"`` minimises eta(W): a guarantee for all S and all laws of X.
    ``"correlation"`` minimises rho^2 under the given law of X, which bounds S* from below and
    equals it for weak dependence: a design rule, not a guarantee.

    Parameters
    ----------
    prior : Distribution, 1-D array or None
        Law of X, under which the expected distortion is taken. None where it is not known: then
        the expected distortion of every single x must meet the budget.
    distortion : float
        The budget D.
    metric : 2-D array, optional
        ``metric[x, y]``; by default 0 for y = x and 1 otherwise, which needs a prior.
    criterion : {"contraction", "correlation"}
        What to minimise.
    gap : float
        Certified absolute gap at which to stop; the criterion is at most 1.
    time_limit : float
        Seconds after which to return the best certified mapping so far.

    Returns
    -------
    Solution
        ``.value`` and ``.level`` are the criterion of ``.channel``, rounded up; ``.bound`` is a
        proved lower bound on the least, rounded down. Where they are further apart than ``gap``,
        ``.converged`` is False and a :class:`GapWarning` says so.

    Notes
    -----
    Programs (5) = (8) and (10) = (11) of Makhdoumi-Fawaz 2013. Corollary 1 there states that (11)
    is convex for a fixed law of Y; it is convex in W without fixing it, because rho^2 is the
    largest over f with E f = 0, E f^2 = 1 of sum_y (sum_x f(x) P(x, y))^2 / q(y), convex terms.

    Closed forms by symmetry for the default metric: the m-ary symmetric channel, with
    eta = (1-D-d)^2/(1-D+d), d = D/(m-1), and rho^2 = (1 - mD/(m-1))^2, where the law of X is
    uniform or, for eta, not known; and any law of two values for rho^2. Otherwise cutting planes,
    which suit alphabets of a dozen values: each round solves a linear program of |X| |Y| unknowns.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.design_worst_case([1 / 3] * 3, 0.3)
    Solution(value=0.355882353, bound=0.3558823529, level=0.355882353, method='closed-form')
    >>> round(fp.design_worst_case([0.5, 0.5], 0.1, criterion="correlation").value, 9)  # (1-2D)^2
    0.64
    """
    check.word(criterion, "criterion", ("contraction", "correlation"))
    p = None if prior is None else _law(prior)
    if p is not None:
        costs = check.metric(1.0 - np.eye(len(p)) if metric is None else metric, len(p))
    elif metric is None or criterion == "correlation":
        raise InvalidInput("without a prior, give a metric and use the criterion 'contraction'")
    else:
        costs = check.metric(metric, len(np.atleast_1d(check.array(metric, "metric"))))
    budget = check.real(distortion, "distortion")
    task = made_task(0.0, False, gap, time_limit, "auto")
    check.fits(costs.size**2, "the program", "use fewer values of X and Y", check.MAX_MATRIX)
    nearest = costs.min(axis=1)
    least = float(nearest.max()) if p is None else math.fsum(p * nearest)
    size = max(abs(least), float(np.abs(nearest).max()))
    if budget < least - 8.0 * len(costs) * ULP * size:
        raise Infeasible(
            f"no mapping has a distortion of {described(budget)}: the least is {described(least)}"
        )
    known = _closed_form(p, max(budget, least), costs, criterion)
    if known is not None:
        return known
    seen = np.ones(len(costs), bool) if p is None else p > 0.0
    weights = np.eye(len(costs)) if p is None else p[None, seen]
    oracle = _contraction if p is None or criterion == "contraction" else _correlation(p[seen])
    W, bound = _cutting_planes(oracle, weights, costs[seen], budget, task.gap, task.deadline)
    matrix = np.eye(costs.shape[1])[np.argmin(costs, axis=1)]
    matrix[seen] = W
    if criterion == "contraction":  # a rare x counts as much as any other
        matrix[~seen] = W[0]
    value = oracle(W)[0]
    found = Solution(value, min(bound, value), Channel(matrix), value, "dense")
    return told(found, task, depth=3, absolute=True)


def _law(prior: Distribution | ArrayLike) -> Floats:
    p = as_prior(prior).probabilities()
    return np.asarray(p / math.fsum(p))


def _closed_form(p: Floats | None, D: float, costs: Floats, criterion: str) -> Solution | None:
    """Return what symmetry or a constant output gives, None where neither applies."""
    n, m = costs.shape
    if p is not None and (p @ costs).min() <= D:
        constant = np.tile(np.eye(m)[np.argmin(p @ costs)], (n, 1))
        return Solution(0.0, 0.0, Channel(constant), 0.0, "closed-form")
    if n != m or n < 2 or not np.array_equal(costs, 1.0 - np.eye(n)):
        return None
    if p is None or np.ptp(p) == 0.0:
        D = min(D, 1.0 - 1.0 / n)
        off = D / (n - 1)
        W = np.full((n, n), off)
        np.fill_diagonal(W, 1.0 - D)
        keep = max(1.0 - D - off, 0.0)
        value = keep**2 / (1.0 - D + off) if criterion == "contraction" else keep**2
    elif n == 2 and criterion == "correlation" and p.min() > 0.0:
        W, value = _binary(p, D)
    else:
        return None
    return Solution(value, value, Channel(W), value, "closed-form")


def _binary(p: Floats, D: float) -> tuple[Floats, float]:
    """Least rho^2 = det^2/(p0 p1 q0 q1) for two values and D < min p, in closed form.

    The budget is spent in full, v = P(X = minority, Y = majority) and u = D - v the other way;
    the stationary point of the quotient is the root of a linear equation.
    """
    major = int(p[1] > p[0])
    p0, p1 = float(p[major]), float(p[1 - major])
    beta, alpha = p0 - p1, p1 * (p0 - D)
    v = (beta * (p0 - D) * (p1 + D) - alpha * (beta - 2.0 * D)) / (
        4.0 * alpha + beta * (beta - 2.0 * D)
    )
    v = min(max(v, 0.0), D)
    u = D - v
    det = p0 * p1 - p0 * v - p1 * u
    value = det**2 / (p0 * p1 * (p0 - u + v) * (p1 + u - v))
    W = np.array([[1.0 - u / p0, u / p0], [v / p1, 1.0 - v / p1]])
    return (W if major == 0 else W[::-1, ::-1].copy()), value


def _contraction(W: Floats) -> tuple[float, list[Floats]]:
    """eta(W), the largest b(1-b) sum_y (P-Q)^2/(bP + (1-b)Q) over pairs of rows and b in (0, 1)."""
    left, right = np.triu_indices(len(W), 1)
    if not len(left):
        return 0.0, []
    _, most, values, weights = contractions(np.ascontiguousarray(W), left, right)
    cuts = []
    for i in np.flatnonzero(values >= 0.5 * values.max()):
        P, Q = W[left[i]], W[right[i]]
        b = min(max(float(weights[i]), 1e-4), 1.0 - 1e-4)  # moderate coefficients for cuts
        mean = b * P + (1.0 - b) * Q
        h = np.divide(P - Q, mean, out=np.zeros_like(mean), where=mean > 0.0)
        G = np.zeros_like(W)
        G[left[i]] = b * (1.0 - b) * (2.0 * h - h**2 * b)
        G[right[i]] = -b * (1.0 - b) * (2.0 * h + h**2 * (1.0 - b))
        cuts.append(G)
    return min(most, 1.0), cuts


def _correlation(p: Floats) -> Criterion:
    """rho^2 under p, the largest of sum_y q(y) E[f|y]^2 over f with E f = 0 and E f^2 = 1."""
    root = np.sqrt(p)

    def criterion(W: Floats) -> tuple[float, list[Floats]]:
        q = p @ W
        scaled = (root[:, None] * W - root[:, None] * q) / np.sqrt(np.where(q > 0.0, q, 1.0))
        values, vectors = np.linalg.eigh(scaled @ scaled.T)
        value = max(float(values[-1]), 0.0) * (1.0 + 1e-12) + 64.0 * len(p) * ULP
        cuts = []
        for f in (vectors[:, values >= 0.3 * values[-1]] / root[:, None]).T:
            f = f - p @ f
            f /= math.sqrt(p @ f**2)
            h = (p * f) @ W / np.where(q > 0.0, q, 1.0)
            cuts.append(p[:, None] * (2.0 * f[:, None] * h - h**2))
        return min(value, 1.0), cuts

    return criterion


def _cutting_planes(
    oracle: Criterion, weights: Floats, costs: Floats, budget: float, gap: float, deadline: float
) -> tuple[Floats, float]:
    """Return a mapping within the budgets, weights[r] @ (W * costs).sum(1) <= D, and a bound.

    New cuts are taken halfway between the program's answer and the best mapping, which tames the
    swings of Kelley's method.
    """
    n, m = costs.shape
    size = float(np.abs(costs).max()) or 1.0
    costs, budget = costs / size, budget / size
    nearest = costs <= costs.min(axis=1, keepdims=True) + 4.0 * ULP
    cheapest = nearest / nearest.sum(axis=1, keepdims=True)
    rows = (weights[:, :, None] * costs).reshape(len(weights), -1)
    slack = (n + m + 16) * ULP * (1.0 + abs(budget))
    least = (rows @ cheapest.ravel()).max()
    tight = len(weights) == 1 and budget - least <= 1e-9  # no room but among the nearest outputs

    def within(W: Floats) -> Floats:
        W = np.maximum(W, 0.0) * nearest + 1e-12 * cheapest if tight else np.maximum(W, 0.0)
        W = W / W.sum(axis=1, keepdims=True)
        spent = (rows @ W.ravel()).max()
        if tight or spent <= budget - slack or spent <= least:
            return np.asarray(W)
        share = min(1.0, (spent - budget + slack) / (spent - least))
        return np.asarray((1.0 - share) * W + share * cheapest)

    best = within(np.full((n, m), 1.0 / m))
    value, cuts = oracle(best)
    bound, gaps = 0.0, [math.inf]
    for _ in range(_ROUNDS):
        gaps.append(value - bound)
        stalled = len(gaps) > _PATIENCE and gaps[-1] > 0.9 * gaps[-1 - _PATIENCE]
        left = deadline - time.monotonic()
        if gaps[-1] <= gap or stalled or left <= 0.0 or not cuts:
            break
        try:
            W, weight, price = _master(np.array(cuts), rows, budget, n, m, left)
        except SolverFailure:
            break
        lost = (len(cuts) + n + m + 64) * ULP
        reach = np.tensordot(weight, np.abs(cuts), 1).ravel() + price @ np.abs(rows)
        floor = np.tensordot(weight, cuts, 1).ravel() + price @ rows - lost * reach
        total = math.fsum(floor.reshape(n, m).min(axis=1)) - price.sum() * (budget + slack)
        bound = max(bound, float(total - lost * (4.0 + price.sum() * abs(budget))))
        for point in (within(0.5 * (W + best)), within(0.9 * W + 0.1 * best)):
            reached, result = oracle(point)
            cuts = cuts + result
            if reached < value:
                best, value = point, reached
    return best, bound


def _master(
    cuts: Floats, rows: Floats, budget: float, n: int, m: int, seconds: float
) -> tuple[Floats, Floats, Floats]:
    """Minimise the largest cut; return W, weights of the cuts that sum to 1 and budget prices."""
    count, budgets = len(cuts), len(rows)
    width = n * m + 1  # the entries of W and the value
    dense = np.zeros((count + budgets, width))
    dense[:count, :-1], dense[:count, -1] = cuts.reshape(count, -1), -1.0
    dense[count:, :-1] = rows
    lengths = np.repeat([width, m], [count + budgets, n])
    answer = minimise(
        np.eye(width)[-1],
        np.zeros(width),
        Rows(
            np.concatenate([[0], np.cumsum(lengths)]),
            np.concatenate([np.tile(np.arange(width), count + budgets), np.arange(n * m)]),
            np.concatenate([dense.ravel(), np.ones(n * m)]),
            np.concatenate([np.full(count + budgets, -np.inf), np.ones(n)]),
            # A budget that leaves no room must not make the program infeasible by rounding.
            np.concatenate([np.zeros(count), np.full(budgets, budget + 1e-9), np.ones(n)]),
        ),
        seconds,
    )
    weight = np.maximum(-answer.duals[:count], 0.0)
    price = np.maximum(-answer.duals[count : count + budgets], 0.0)
    total = weight.sum()
    scale = 1.0 / total if total > 0.0 else 0.0
    return answer.values[:-1].reshape(n, m), weight * scale, price * scale
