"""Minimum distortion at a level of pointwise maximal leakage: a linear program."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.rounding import ULP, expm1_up, lowered, raised
from fastpriv._core.validation import Floats, Ints
from fastpriv._structure.types import Blocks, Stack, classes_against, types_of
from fastpriv.channels import Channel
from fastpriv.channels.types import TypeChannel, type_error, type_weights
from fastpriv.design.closed_forms import constant_mechanism, rounded_up
from fastpriv.design.problem import Task, limits, made_task, told
from fastpriv.errors import SolverFailure, TooLarge
from fastpriv.measures.distortion import expected_distance
from fastpriv.measures.pointwise import pml_level
from fastpriv.priors import Distribution, Exchangeable
from fastpriv.priors.arguments import as_prior
from fastpriv.priors.exchanged import as_exchangeable
from fastpriv.results import Solution

__all__ = ["solve_pd_pml"]

#: Most databases: the program has N^2 variables and constraints.
_MAX_DATABASES = 128
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
    small = law.space.size <= _MAX_DATABASES and not isinstance(law, Exchangeable)
    types = None if small else as_exchangeable(law)
    if types is not None:
        return _on_types(types, law, epsilon, task)
    support = (
        np.flatnonzero(law.probabilities()) if law.space.size <= _MAX_DATABASES**2 else np.arange(0)
    )
    if not 0 < len(support) <= _MAX_DATABASES:
        raise TooLarge.entries(
            "the program over databases",
            law.space.size,
            f"at most {_MAX_DATABASES} of them may occur",
        )
    p = law.probabilities()[support]
    rows = law.space.rows(np.arange(law.space.size))
    distance = (rows[support][:, None] != rows[None]).sum(axis=2).astype(np.float64)
    try:
        V, multipliers = _solve_dense(p, distance, epsilon, time_limit)
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


def _solve_dense(
    p: Floats, distance: Floats, epsilon: float, seconds: float
) -> tuple[Floats, Floats]:
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
                np.tile(np.append(solver_distribution(p, epsilon), -1.0), outputs),
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


#: Most classes of a program.
_MAX_CLASSES = 50_000
#: Largest root of a coefficient; what would have a larger one is 0 in all digits.
_STEEPEST = 1e8
#: Room of a constant answer below which the solver may find none.
_ROOM = 1e-6


class LeakageProgram(NamedTuple):
    """The classes: types of x and y, d, r, and the law of the types of x."""

    row: Ints
    kind: Ints
    distance: Floats
    share: Floats
    weights: Floats

    @property
    def types(self) -> int:
        return len(self.weights)

    def law(self, v: Floats) -> Floats:
        """Return the law of the type of the output."""
        masses = self.weights[self.row] * v
        return np.asarray(np.bincount(self.kind, masses, self.types), dtype=np.float64)

    def normalised(self, v: Floats) -> Floats:
        """Let the masses of every type of x sum to 1."""
        return np.asarray(v / np.bincount(self.row, v, self.types)[self.row])

    def ratios(self, v: Floats) -> Floats:
        """Return p(y|x)/p_Y(y); 0 where y does not occur."""
        whole = self.share * self.law(v)[self.kind]
        return np.asarray(np.where(whole > 0.0, v / np.where(whole > 0.0, whole, 1.0), 0.0))


class TypeMechanism(NamedTuple):
    """A solved program: the masses of classes, and a proved lower bound on the distortion."""

    masses: Floats
    bound: float
    program: LeakageProgram

    def mixed(self, epsilon: float, share: float) -> Floats:
        """Mix in the output law as much as the level asks for, and a share more.

        Every type of output is first mixed with its own mean, as for programs over databases.
        """
        most, v, program = math.exp(min(epsilon, 700.0)), self.masses, self.program
        alive = program.weights[program.row] > 0.0
        ratios = np.where(alive, program.ratios(v), 0.0)
        worst = np.zeros(program.types)
        np.maximum.at(worst, program.kind, ratios)
        t = _excesses(worst, most)[program.kind]
        v = program.normalised((1.0 - t) * v + t * program.share * program.law(v)[program.kind])
        ratios = np.where(alive, program.ratios(v), 0.0)
        more = min(1.0, float(_excesses(ratios, most).max()) + share)
        same = program.share * program.law(v)[program.kind]
        return program.normalised(np.where(alive, (1.0 - more) * v + more * same, same))


def _excesses(worst: Floats, most: float) -> Floats:
    """Share of the mean that brings a ratio down to ``most``."""
    above = worst > most
    return np.where(above, (worst - most) / np.where(above, worst - 1.0, 1.0), 0.0)


def solver_distribution(p: Floats, epsilon: float) -> Floats:
    """Return a law for the solver, which drops weights that are tiny.

    A constant answer V = q needs e^epsilon sum p >= 1. Near epsilon = 0 the weights that are kept
    must therefore be a law by themselves.
    """
    from fastpriv._core.highs import TINY

    kept = np.where(p > TINY, p, 0.0)
    return kept / kept.sum() if math.exp(min(epsilon, 1.0)) * kept.sum() < 1.0 + _ROOM else p


class TypeProgram:
    """The program of an exchangeable prior."""

    def __init__(self, prior: Exchangeable, epsilon: float) -> None:
        n, m = prior.space.n, prior.space.sizes[0]
        check.fits(
            math.comb(n + m * m - 1, n),
            "the program over classes of databases and outputs",
            "use fewer rows or values",
            _MAX_CLASSES,
        )
        self._types = types_of(Blocks.single(n, m))
        self._classes = [classes_against(kind, self._types) for kind in self._types.counts]
        stack = Stack.of(self._types, self._classes)
        self._stack, self._epsilon, self._n = stack, epsilon, n
        share = np.exp(stack.log_count - self._types.log_sizes[stack.row])
        weights = type_weights(self._types, prior)
        distance = stack.distance.astype(np.float64)
        self._program = LeakageProgram(stack.row, stack.kind, distance, share, weights)

    def channel(self, masses: Floats) -> TypeChannel:
        """Return the mechanism with these masses of classes."""
        entries = masses / np.exp(self._stack.log_outputs)
        parts = np.split(entries, self._stack.starts[1:-1])
        return TypeChannel(self._types, self._classes, parts)

    def solve(self, seconds: float) -> TypeMechanism:
        """Return the solver's masses with the bound of its multipliers."""
        from fastpriv._core.highs import Rows, minimise

        row, kind, distance, share, weights = self._program
        number, types = len(row), len(weights)
        # A leakage row is v root - Q/root <= 0 with root^2 = e^-epsilon/r. Where it is so steep
        # that v must be 0 in all digits, v is held at 0 by the row alone.
        roots = np.exp(-0.5 * self._epsilon) / np.sqrt(share)
        leaking = np.flatnonzero(weights[row] > 0.0)
        root = np.minimum(roots[leaking], _STEEPEST)
        by_row, by_kind = np.argsort(row, kind="stable"), np.argsort(kind, kind="stable")
        in_row, in_kind = np.bincount(row, minlength=types), np.bincount(kind, minlength=types)
        averages = np.insert(by_kind, np.cumsum(in_kind), number + np.arange(types))
        law = solver_distribution(weights, self._epsilon)
        masses = np.insert(law[row[by_kind]], np.cumsum(in_kind), -1.0)
        leaks = np.column_stack([leaking, number + kind[leaking]])
        starts = np.concatenate([[0], np.cumsum(in_row), number + np.cumsum(in_kind + 1)])
        starts = np.append(starts, starts[-1] + 2 * np.arange(1, len(leaking) + 1))
        rows = Rows(
            starts,
            np.concatenate([by_row, averages, leaks.reshape(-1)]),
            np.concatenate(
                [np.ones(number), masses, np.column_stack([root, -1.0 / root]).reshape(-1)]
            ),
            np.concatenate([np.ones(types), np.zeros(types), np.full(len(leaking), -math.inf)]),
            np.concatenate([np.ones(types), np.zeros(types + len(leaking))]),
        )
        cost = np.append(weights[row] * distance, np.zeros(types))
        answer = minimise(cost, np.zeros(number + types), rows, seconds)
        v = np.maximum(answer.values[:number], 0.0)
        k = np.zeros(number)
        k[leaking] = np.maximum(-answer.duals[2 * types :], 0.0) / root
        return TypeMechanism(self._program.normalised(v), self._bound(k), self._program)

    def _bound(self, k: Floats) -> float:
        """Return the bound of any k >= 0, rounded down."""
        row, kind, distance, share, weights = self._program
        own = math.exp(-self._epsilon) * k / share
        all_of = np.bincount(kind, k, len(weights))[kind]
        terms = weights[row] * (distance - all_of) + own
        sizes = weights[row] * (distance + all_of) + own
        # Sizes of classes and weights are rounded, and so is a sum over the classes of a type.
        error = 4.0 * type_error(self._n) + 4.0 * (len(row) + 16.0) * ULP
        least = np.full(len(weights), math.inf)
        np.minimum.at(least, row, terms - error * sizes)
        return math.fsum(least) - 1e-15
