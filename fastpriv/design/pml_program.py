"""Least distortion at a level of pointwise maximal leakage: a linear program.

PML at level epsilon says W[x, y] <= e^epsilon p_Y(y) for all x in the support of the prior, and
p_Y(y) = sum_x p(x) W[x, y] is linear in W.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.rounding import ULP, expm1_up, lowered, raised
from fastpriv._core.validation import Floats, Ints
from fastpriv.channels import Channel
from fastpriv.design.common import constant_mechanism, rounded_up
from fastpriv.design.pml_types import TypeProgram, solver_law
from fastpriv.design.task import Task, limits, made_task, told
from fastpriv.errors import SolverFailure, TooLarge
from fastpriv.measures.distortion import expected_distance
from fastpriv.measures.pointwise import pml_level
from fastpriv.priors import Distribution, Exchangeable
from fastpriv.priors.base import as_prior
from fastpriv.results import Solution

__all__ = ["solve_pd_pml"]

#: Most databases: the program has N^2 variables and constraints.
_MOST = 128
#: Shares of a constant mechanism that are mixed in besides what the repair asks for.
_SHARES = (0.0, *(2.0**k for k in range(-50, 0)), 1.0)


def solve_pd_pml(
    prior: Distribution | ArrayLike,
    epsilon: float,
    *,
    gap: float = 1e-6,
    time_limit: float = math.inf,
) -> Solution:
    """Mechanism of least expected Hamming distortion whose outputs leak at most epsilon.

    min sum p(x) d(x, y) W[x, y] subject to ln W[x, y]/p_Y(y) <= epsilon for every output and every
    x in the support (Saeidian et al. 2024, Definition 2.6). For databases that never occur the
    mechanism answers like one that does.

    Parameters
    ----------
    prior : Distribution or 1-D array
        Law of the database. At most 128 databases occur, unless the order of rows does not matter
        (:class:`Exchangeable`, or independent rows of one law): then it is 64 bits, or 10 rows of
        three values.
    epsilon : float
        Level of pointwise maximal leakage in nats, at least 0.
    gap : float
        Certified relative gap above which a :class:`GapWarning` is given.
    time_limit : float
        Seconds for the linear program.

    Returns
    -------
    Solution
        ``value`` is the distortion of the channel, rounded up. ``level`` is its
        :func:`pml_level`, at most epsilon for the floats in it. ``bound`` is proved by multipliers
        of the constraints and rounded down.

    Notes
    -----
    The solver's matrix V is repaired by mixing it with the mechanism that always draws from V's
    own output law q: (1 - t) V + t q has the same q, and its ratios are (1 - t) V/q + t. Columns
    are mended one by one beforehand. For any multipliers l >= 0 a lower bound is

        sum_x min_y [p(x) d(x, y) + l[x, y] - e^epsilon p(x) sum_z l[z, y]].

    Another one, sharp as epsilon goes to 0, needs no solver: W <= e^epsilon q leaves
    p(x) W[x, y] >= q(y) (p(x) - (e^epsilon - 1)(1 - p(x))), so that the distortion is at least
    min_y sum_x d(x, y) of that, or of 0 if that is negative. At epsilon = 0 the best mechanism is
    constant, and so is the answer where the solver gives none, with this bound.

    From epsilon = -ln p_min on the identity is allowed. Cost of a linear program with N^2
    variables, N^2 constraints and 4 N^2 entries: 0.03 s for N = 16, 0.3 s for N = 64, 5 s for
    N = 128. If the order of rows does not matter, neither does it for some optimal mechanism, and
    the program has a variable for each class of pairs (``fastpriv.design.pml_types``).

    Examples
    --------
    >>> import fastpriv as fp
    >>> best = fp.solve_pd_pml([0.7, 0.2, 0.1], 0.5)
    >>> round(best.value, 6), best.level <= 0.5, best.gap < 1e-9
    (0.3, True, True)
    """
    law = as_prior(prior)
    epsilon = check.real(epsilon, "epsilon", least=0.0)
    gap, time_limit = limits(gap, time_limit)
    if epsilon == 0.0:  # a mean that is no less than any of its terms: all databases answer alike
        return rounded_up(constant_mechanism(law), law)
    task = made_task(epsilon, False, gap, time_limit, "auto")
    small = law.space.size <= _MOST and not isinstance(law, Exchangeable)
    types = None if small else law.by_type()
    if types is not None:
        return _on_types(types, law, epsilon, task)
    support = np.flatnonzero(law.probabilities()) if law.space.size <= _MOST**2 else np.arange(0)
    if not 0 < len(support) <= _MOST:
        raise TooLarge.entries(
            "the program over databases", law.space.size, f"at most {_MOST} of them may occur"
        )
    p = law.probabilities()[support]
    rows = law.space.rows(np.arange(law.space.size))
    distance = (rows[support][:, None] != rows[None]).sum(axis=2).astype(np.float64)
    try:
        V, multipliers = _solved(p, distance, epsilon, time_limit)
    except SolverFailure as failure:
        constant = constant_mechanism(law)  # what needs no program is what there is
        proved = min(_near_constant(p, distance, epsilon), constant.value)
        return told(
            rounded_up(replace(constant, bound=proved), law),
            task,
            depth=3,
            why=_reason(failure, task),
        )
    bound = _dual_bound(p, distance, epsilon, multipliers)
    bound = max(bound, _near_constant(p, distance, epsilon))
    for share in _SHARES:
        channel = Channel(_expanded(_mixed(V, p, epsilon, share), support, rows), law.space)
        level = float(pml_level(channel, law))
        if level <= epsilon:
            break
    value, constant = expected_distance(channel, law), constant_mechanism(law)
    if level > epsilon or value > constant.value:  # all that is gained is lost to the repair
        simple = replace(constant, bound=min(bound, constant.value))
        return told(rounded_up(simple, law), task, depth=3)
    bound = min(bound, value)
    best = Solution(value, bound, channel, level, "dense", solver="highs")
    return told(rounded_up(best, law), task, depth=3)


def _on_types(types: Exchangeable, law: Distribution, epsilon: float, task: Task) -> Solution:
    """Solve the program over classes of pairs, for rows whose order does not matter."""
    program, constant = TypeProgram(types, epsilon), constant_mechanism(law)
    try:
        solved = program.solve(max(0.0, task.deadline - time.monotonic()))
    except SolverFailure as failure:
        # As near a constant as below: p(x) - (e^epsilon - 1), and distances are at most n.
        lost = raised(expm1_up(epsilon) * law.space.n * float(min(law.space.size, 1 << 1000)), 8.0)
        proved = max(0.0, lowered(constant.bound - lost, 4.0))
        return told(replace(constant, bound=proved), task, why=_reason(failure, task))
    for share in _SHARES:
        channel = program.channel(solved.mixed(epsilon, share))
        level = float(pml_level(channel, types))
        if level <= epsilon:
            break
    value = expected_distance(channel, types)
    if level > epsilon or value >= constant.value:  # so near 0 that rounding is all that is told
        return told(replace(constant, bound=max(0.0, min(solved.bound, constant.value))), task)
    bound = max(0.0, min(solved.bound, value))
    return told(Solution(value, bound, channel, level, "types", solver="highs"), task)


def _reason(failure: SolverFailure, task: Task) -> str:
    """Return the solver's words, unless it had no time."""
    return "" if time.monotonic() > task.deadline else str(failure)


def _solved(p: Floats, distance: Floats, epsilon: float, seconds: float) -> tuple[Floats, Floats]:
    """Return the solver's matrix and its multipliers of the leakage constraints, at least 0."""
    from fastpriv._core.highs import Rows, minimise

    count, outputs = distance.shape
    number, y = count * outputs, np.arange(outputs)
    # Variables V[x, y] and q(y). Rows: sum_y V = 1; sum_x p V - q = 0; e^-epsilon V[x, y] - q <= 0.
    each = np.arange(number).reshape(count, outputs)
    averages = np.column_stack([each.T, number + y])
    leaks = np.column_stack([each.reshape(-1), np.tile(number + y, count)])
    rows = Rows(
        np.concatenate(
            [
                outputs * np.arange(count),
                number + (count + 1) * y,
                number + (count + 1) * outputs + 2 * np.arange(number + 1),
            ]
        ),
        np.concatenate([each.reshape(-1), averages.reshape(-1), leaks.reshape(-1)]),
        np.concatenate(
            [
                np.ones(number),
                np.tile(np.append(solver_law(p, epsilon), -1.0), outputs),
                np.tile([math.exp(-epsilon), -1.0], number),
            ]
        ),
        np.concatenate([np.ones(count), np.zeros(outputs), np.full(number, -math.inf)]),
        np.concatenate([np.ones(count), np.zeros(outputs + number)]),
    )
    cost = np.append((p[:, None] * distance).reshape(-1), np.zeros(outputs))
    answer = minimise(cost, np.zeros(number + outputs), rows, seconds)
    V = np.maximum(answer.values[:number].reshape(count, outputs), 0.0)
    leaking = answer.duals[count + outputs :].reshape(count, outputs)
    multipliers = np.maximum(-leaking, 0.0)
    return V / V.sum(axis=1, keepdims=True), multipliers


def _dual_bound(p: Floats, distance: Floats, epsilon: float, multipliers: Floats) -> float:
    """Return the bound of any multipliers l >= 0 of the scaled constraints, rounded down."""
    own, all_of = math.exp(-epsilon) * multipliers, multipliers.sum(axis=0)
    terms = p[:, None] * distance + own - p[:, None] * all_of
    sizes = p[:, None] * distance + own + p[:, None] * all_of
    error = (len(p) + 16.0) * 2.0 * ULP
    return math.fsum((terms - error * sizes).min(axis=1)) - 1e-15


def _near_constant(p: Floats, distance: Floats, epsilon: float) -> float:
    """Return a bound that is sharp as epsilon goes to 0, rounded down and at least 0.

    W[x, y] <= e^epsilon q(y) for all x but one leaves p(x) W[x, y] >= q(y) (p(x) - (e^epsilon - 1)
    (1 - p(x))) for that one. The distortion of an output law q is a mean over y of its sums.
    """
    others = p.sum() * (1.0 + (len(p) + 8.0) * ULP) - p
    least = np.maximum(lowered(p, 4.0) - raised(expm1_up(epsilon) * others, 8.0), 0.0)
    return max(0.0, float(lowered(least @ distance, 4.0 * len(p) + 16.0).min()))


def _mixed(V: Floats, p: Floats, epsilon: float, share: float) -> Floats:
    """Mix V with its own output law as much as the level asks for, and a share more.

    Every column is first mixed with its own mean: the solver's tolerance is a large ratio in
    columns that are nearly 0, and mending them takes next to no mass.
    """
    most = math.exp(min(epsilon, 700.0))
    V = _flatter(V, p, most)
    V = V / V.sum(axis=1, keepdims=True)
    q = p @ V / p.sum()
    seen = q > 0.0
    worst = float((V[:, seen] / q[seen]).max())
    t = min(1.0, _excess(worst, most) + share)
    mixed = (1.0 - t) * V + t * q if t < 1.0 else np.repeat(q[None], len(V), axis=0)
    return np.asarray(mixed / mixed.sum(axis=1, keepdims=True))


def _flatter(V: Floats, p: Floats, most: float) -> Floats:
    """Mix every column with its own mean until its ratios are at most ``most``."""
    q = p @ V / p.sum()
    worst = V.max(axis=0) / np.where(q > 0.0, q, 1.0)
    t = np.array([_excess(float(ratio), most) for ratio in worst])
    return np.asarray((1.0 - t) * V + t * q)


def _excess(worst: float, most: float) -> float:
    """Share of the mean that brings a largest ratio down to ``most``."""
    return (worst - most) / (worst - 1.0) if worst > most else 0.0


def _expanded(V: Floats, support: Ints, rows: Ints) -> Floats:
    """Let databases that never occur answer like the nearest one that does."""
    distance = (rows[:, None] != rows[support][None]).sum(axis=2)
    return np.asarray(V[distance.argmin(axis=1)])
