"""Minimum distortion at an individual capacity: a convex program over small spaces."""

from __future__ import annotations

import itertools
import math
import time
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.clock import Clock
from fastpriv._core.rounding import ULP, log_up, lowered, raised, round_up
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.capacity import capacities
from fastpriv._structure.rows import RowKernel, RowKernels
from fastpriv._structure.types import Blocks, Stack, classes_against, types_of
from fastpriv.channels import AbstractChannel, Channel, HammingChannel, ProductChannel
from fastpriv.channels.types import TypeChannel, type_error, type_weights
from fastpriv.design.closed_forms import constant_mechanism, rounded_up
from fastpriv.design.problem import limits, made_task, told
from fastpriv.errors import SolverFailure, TooLarge, short
from fastpriv.measures.distortion import expected_distance
from fastpriv.priors import Distribution, Exchangeable, Product
from fastpriv.priors.arguments import as_prior
from fastpriv.priors.exchanged import as_exchangeable
from fastpriv.priors.rare import log_binomials
from fastpriv.results import Solution
from fastpriv.spaces import Space

__all__ = ["solve_pd_capacity"]

#: Most databases, and most numbers that are kept for all selections.
_MAX_DATABASES, _MAX_KEPT = 64, 1 << 26
#: Level of E_d from which a start is looked for, and share of the capacity that it may have.
_STEEP, _START = 20.0, 0.6
#: Least capacity of a program; below it, a constant is within about 1e-6 of the optimum.
_LEAST = 1e-12
#: Gap of the capacities that are certified.
_FINE = 1e-13
_TRIES = 60


class _Row(NamedTuple):
    """A solved program: the channel, its certified capacity, the bound, whether time was short."""

    matrix: Floats
    level: float
    bound: float
    late: bool = False


def solve_pd_capacity(
    prior: Distribution | ArrayLike,
    epsilon: float,
    *,
    priors: str = "all",
    gap: float = 1e-6,
    time_limit: float = math.inf,
) -> Solution:
    """Mechanism of least expected Hamming distortion that tells at most epsilon about any row.

    min sum p(x) d(x, y) W[x, y] subject to C_1(W) <= epsilon, where C_1 is the individual channel
    capacity (Wu-Xia-He 2020, Definition 5): the most that the output tells about one row, whatever
    the adversary's prior.

    Parameters
    ----------
    prior : Distribution or 1-D array
        Law of the database, under which the distortion is expected.
    epsilon : float
        Individual capacity in nats, at least 0.
    priors : {"all", "independent"}
        Which priors an adversary may have; see :func:`individual_capacity`.
    gap : float
        Certified relative gap at which to stop. In a few programs rounding stops the method at
        gaps of 1e-6 to 1e-5: of several rows with three or more values at small capacities, and
        where the distortion itself is small. A :class:`GapWarning` says so.
    time_limit : float
        Seconds after which to return the best certified solution so far.

    Returns
    -------
    Solution
        ``value`` is the distortion of the channel, rounded up. ``level`` is an upper bound on its
        individual capacity, at most epsilon for the floats in it. ``bound`` is proved by
        multipliers and rounded down.

    Raises
    ------
    TooLarge
        For more than 64 databases, or more selections than fit; for more than 25 bits whose order
        does not matter (:class:`Exchangeable`, or independent bits of one law). With
        ``priors="independent"`` and independent rows under the prior there is no limit.

    Notes
    -----
    C_1 is the largest capacity of a channel that consists of one row of W for each value of some
    x_i (Theorem 2 there), so that the program is convex. For adversaries with independent rows only
    databases that differ in x_i alone are selected together. If in addition the rows are
    independent under ``prior``, the program tensorises: averaged over the other rows, W is a
    channel of one row with at most the same capacity, so the optimum is the sum over rows.

    An interior-point method solves it; see ``fastpriv.design.capacity_interior`` for the steps and
    the bound. From epsilon = ln m on the identity is allowed. Cost O(N^6 + B m^3 N^2) for each
    of about 40 steps with B selections of m rows, and N^4 numbers in memory: 0.1 s for 8 databases,
    1 s for 16. For 64 some 30 s over independent rows; over all priors a gap of 1 % after a minute.
    If the order of bits does not matter, neither does it for some optimal mechanism, and there is
    a variable for each class of pairs (``fastpriv.design.capacity_types``).

    Examples
    --------
    >>> import fastpriv as fp
    >>> prior = fp.Dense([0.4, 0.1, 0.1, 0.4], [2, 2])
    >>> best = fp.solve_pd_capacity(prior, 0.1)
    >>> best.level <= 0.1, best.gap < 1e-6
    (True, True)
    >>> tied, alone = best.value, fp.solve_pd_capacity(prior, 0.1, priors="independent").value
    >>> round(tied, 4), round(alone, 4)
    (0.6087, 0.3654)
    """
    law = as_prior(prior)
    epsilon = check.real(epsilon, "epsilon", least=0.0)
    check.word(priors, "priors", ("all", "independent"))
    gap, time_limit = limits(gap, time_limit)
    task = made_task(epsilon, False, gap, time_limit, "auto")
    known = _without_program(law, epsilon)
    if known is not None:
        return rounded_up(known, law)
    clock = Clock(time_limit)
    if priors == "independent" and isinstance(law, Product):
        rows = [_solved(Space([len(p)]), p, epsilon, priors, gap, clock) for p in law.distinct]
        kernels = RowKernels([RowKernel(row.matrix) for row in rows], law.assignment)
        channel: AbstractChannel = ProductChannel.of(kernels)
        level, bound = max(row.level for row in rows), law.total([row.bound for row in rows])
        bound = lowered(bound, 4.0)
        method, late = "rows", any(row.late for row in rows)
    elif (types := _types(law)) is not None:
        problem = CappedTypes(types, max(epsilon, _LEAST), priors)
        channel, level, bound = problem.solved(gap, clock)
        method, late = "types", problem.late
        constant = constant_mechanism(law)
        if level > epsilon or constant.value <= expected_distance(channel, law):
            channel, level = constant.channel, 0.0
    else:
        check_size(law.space, priors)
        best = _solved(law.space, law.probabilities(), epsilon, priors, gap, clock)
        channel, level, bound = Channel(best.matrix, law.space), best.level, best.bound
        method, late = "dense", best.late
    value = expected_distance(channel, law)
    bound = max(0.0, min(bound, value))
    best_so_far = Solution(value, bound, channel, level, method, solver="interior")
    best_so_far = rounded_up(best_so_far, law)
    return told(best_so_far, task, depth=3, why="the time limit passed" if late else "")


def _types(prior: Distribution) -> Exchangeable | None:
    """Return the law of the types of bits whose order does not matter, unless they are few."""
    few = prior.space.size <= _MAX_DATABASES and not isinstance(prior, Exchangeable)
    return None if few or prior.space.m != 2 or prior.space.n < 2 else as_exchangeable(prior)


def _without_program(prior: Distribution, epsilon: float) -> Solution | None:
    """Return the identity where it is allowed, or a constant where nothing else is."""
    sizes = prior.space.sizes
    most = log_up(max(sizes))
    if most <= epsilon:
        values, assignment = np.unique(sizes, return_inverse=True)
        same = RowKernels([RowKernel(np.eye(m)) for m in values], assignment)
        return Solution(0.0, 0.0, ProductChannel.of(same), most, "closed-form")
    constant = constant_mechanism(prior)
    return constant if epsilon == 0.0 or constant.value == 0.0 else None


def check_size(space: Space, priors: str) -> None:
    """Refuse spaces that are too large for the program."""
    sizes = [m for m in space.sizes if m > 1]
    if space.size > _MAX_DATABASES:
        raise TooLarge(
            f"the program at an individual capacity is solved over at most "
            f"{_MAX_DATABASES} databases, and there are {short(space.size)}; use fewer rows, or "
            'independent rows with priors="independent"'
        )
    number = sum(m * (space.size // m) ** (m if priors == "all" else 1) for m in sizes)
    if number * max(sizes, default=1) ** 2 * space.size > _MAX_KEPT:
        raise TooLarge(
            f"an adversary has {number:,} selections of {space.size} databases, too many for the "
            'program; use fewer values, or priors="independent"'
        )


def selections(space: Space, priors: str) -> list[Ints]:
    """Return the sets of databases that an adversary may choose from, by their size: (B, m)."""
    rows = space.rows(np.arange(space.size))
    sets: dict[int, list[Ints]] = {}
    for i, m in enumerate(space.sizes):
        if m == 1:
            continue
        slices = [np.flatnonzero(rows[:, i] == a) for a in range(m)]
        chosen = zip(*slices, strict=True) if priors != "all" else itertools.product(*slices)
        sets.setdefault(m, []).append(np.sort(np.array(list(chosen)), axis=1))
    return [np.unique(np.concatenate(parts), axis=0) for parts in sets.values()]


def _solved(space: Space, p: Floats, epsilon: float, priors: str, gap: float, clock: Clock) -> _Row:
    """Solve the program of one space, and repair what rounding exceeds."""
    check_size(space, priors)
    if log_up(max(space.sizes)) <= epsilon:
        return _Row(np.eye(space.size), log_up(max(space.sizes)), 0.0)
    rows = space.rows(np.arange(space.size))
    cost = p[:, None] * (rows[:, None] != rows[None]).sum(axis=2)
    sets = selections(space, priors)
    constant = np.zeros((space.size, space.size))
    constant[:, int(cost.sum(axis=0).argmin())] = 1.0
    if cost.sum(axis=0).min() == 0.0:  # one database has all the mass
        return _Row(constant, 0.0, 0.0)
    # The least distortion falls with the capacity, so that a bound at a larger one holds.
    problem = Capped(cost, sets, max(epsilon, _LEAST))
    W, bound = problem.solve(_start(problem, space, problem.epsilon), gap, clock)
    if epsilon < _LEAST:
        return _Row(constant, 0.0, bound)
    share = 0.0
    for _ in range(_TRIES):
        mixed = (1.0 - share) * W + share * constant if share < 1.0 else constant
        mixed = mixed / mixed.sum(axis=1, keepdims=True)
        level = _certified(mixed, sets)
        if level <= epsilon:
            break
        # Capacity is convex: mixing with a constant takes at least its share off.
        share = min(1.0, max(4.0 * share, 2.0 * (level - epsilon) / level, 2.0 * ULP))
    if (constant * cost).sum() <= (mixed * cost).sum():
        return _Row(constant, 0.0, bound, problem.late)
    return _Row(np.asarray(mixed), level, bound, problem.late)


def _start(problem: Capped, space: Space, epsilon: float) -> Floats:
    """Return E_d at a level with about half of the capacity that is allowed."""
    level = _STEEP
    while True:
        W = np.array(HammingChannel(space.n, space.sizes, level).matrix())
        slacks = problem.slacks(W, problem.means(W))
        most = epsilon - min(float(slack.min()) for slack in slacks)
        if most <= _START * epsilon:
            return W
        level *= max(0.3, math.sqrt(0.5 * epsilon / most))


def _certified(W: Floats, sets: list[Ints]) -> float:
    """Return the largest capacity of all selections. Rounded up."""
    ends = [capacities(np.ascontiguousarray(W[rows]), _FINE)[1] for rows in sets]
    return max(float(upper.max()) for upper in ends)


_STEPS = 80
#: Share of the way to the boundary that a step goes; shares of the complementarity it aims at, at
#: least and in the first step.
_STEP, _AIM, _FIRST = 0.99, 0.1, 0.5
#: Share of the gap that was asked for which the iterates reach, to leave some for the repair.
_INNER_GAP = 0.25
#: How far the gap may exceed the complementarity before a step only centres.
_AHEAD = 2.0
_SHORTER = 40
#: Least product of a number and its multiplier, relative to the mean of all products.
_CENTRAL = 1e-2
#: Multipliers below this share of the largest are left out of the last program, and its seconds.
_NEEDED, _SECONDS = 1e-7, 60.0
#: Share of the time that is kept for the last program.
_RESERVED = 0.15
#: Entries of the low-rank part of the second derivative that are formed at once.
_BLOCK = 1 << 23
#: Least W/q - 1 that floats tell from -1.
_FLOOR = -1.0 + 2.0 * ULP


class Point(NamedTuple):
    """A channel, an output law for each selection of a part, and all multipliers."""

    W: Floats
    laws: list[Floats]  # (B, K) for each part
    Z: Floats  # of W >= 0
    weights: list[Floats]  # (B, m) for each part


class Part:
    """Selections of m rows each: rows (B, m) of the channel."""

    def __init__(self, rows: Ints) -> None:
        self.rows = rows

    def view(self, W: Floats) -> Floats:
        """Return the channel that the rows are taken from, which is linear in W."""
        return W

    def ratios(self, W: Floats, q: Floats) -> Floats:
        """Return W/q - 1, (B, m, K)."""
        return np.asarray((W[self.rows] - q[:, None]) / q[:, None])

    def radii(self, W: Floats, q: Floats) -> Floats:
        """Return D(W || q), (B, m), from terms none of which is negative."""
        ratio = self.ratios(W, q)
        return np.asarray((q[:, None] * ((1.0 + ratio) * _logs(ratio) - ratio)).sum(axis=2))

    def slopes(self, W: Floats, weights: Floats) -> Floats:
        """Return weights times ln(W/mean), for the means of rows under the weights.

        Means are taken relative to the heaviest row, which is at most m times the mean, so that
        relative errors are a few times m ulp.
        """
        V = W[self.rows]
        share = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
        heavy = V[np.arange(len(V)), weights.argmax(axis=1)][:, None]
        apart = V - heavy
        mean = np.einsum("ba,bak->bk", share, apart)[:, None]
        return np.asarray(weights[:, :, None] * _logs((apart - mean) / (heavy + mean)))


class Eliminated(NamedTuple):
    """What is left of a part after q_k and the multipliers are eliminated."""

    low: Floats  # (B, m, K, m): the second derivative has sum over the last axis of low low^T
    rhs: Floats  # (B, m, K): what is added to the right-hand side


class Capped:
    """The program: costs, selections of equal size in each part, and the bound on capacities."""

    #: Whether the time was over before the gap was met.
    late = False

    def __init__(self, cost: Floats, selections: list[Ints], epsilon: float) -> None:
        self.cost, self.epsilon = cost, epsilon
        self.parts: list[Part] = [Part(rows) for rows in selections]
        self.number = cost.size + sum(part.rows.size for part in self.parts)

    def means(self, W: Floats) -> list[Floats]:
        """Return the mean of the rows of each selection."""
        return [np.asarray(part.view(W)[part.rows].mean(axis=1)) for part in self.parts]

    def slacks(self, W: Floats, laws: list[Floats]) -> list[Floats]:
        """Return epsilon minus the divergences, (B, m) for each part."""
        pairs = zip(self.parts, laws, strict=True)
        return [self.epsilon - part.radii(part.view(W), q) for part, q in pairs]

    def normalised(self, W: Floats) -> Floats:
        """Let the law of the output given each database sum to 1."""
        return np.asarray(W / W.sum(axis=1, keepdims=True))

    def bound(self, W: Floats, weights: list[Floats]) -> float:
        """Lower bound on the cost, from multipliers >= 0 and a channel. Rounded down."""
        total, size, spent = self.cost.copy(), np.abs(self.cost), 0.0
        for part, weight in zip(self.parts, weights, strict=True):
            slopes = part.slopes(W, weight)
            np.add.at(total, part.rows, slopes)
            # Logarithms are off by a few ulp of 1, of themselves, and of the sum of the law.
            np.add.at(size, part.rows, weight[:, :, None] + np.abs(slopes))
            spent += math.fsum(weight.reshape(-1))
        error = (64.0 + 4.0 * max(part.rows.size for part in self.parts)) * ULP
        least = math.fsum((total - error * size).min(axis=1))
        return lowered(least, 8.0) - raised(self.epsilon * spent, 8.0) - 8.0 * ULP * abs(least)

    def solve(self, W: Floats, gap: float, clock: Clock) -> tuple[Floats, float]:
        """Return a channel strictly within the bounds, and the best lower bound on the cost.

        ``W`` is a channel with positive entries; the divergences of its rows from the means of
        their selections are below epsilon.
        """
        laws = self.means(W)
        slacks = self.slacks(W, laws)
        first = float((self.cost * W).sum()) / self.number
        point = Point(W, laws, first / W, [first / slack for slack in slacks])
        best, aim = -math.inf, _FIRST
        limit = clock.left()
        kept, step = 0.0 if math.isinf(limit) else _RESERVED * limit, 0.0
        for _ in range(_STEPS):
            start = time.monotonic()
            bound, value = self.bound(point.W, point.weights), float((self.cost * point.W).sum())
            best, rest = max(best, bound), float(_products(point, slacks).sum())
            # Rounding may spoil the bound of the multipliers themselves; the last program mends it.
            if min(value - best, 2.0 * rest) <= _INNER_GAP * gap * value:
                break
            if clock.left() <= kept + step:  # no step begins that would end too late
                self.late = True
                break
            if value - bound > _AHEAD * rest and aim < 1.0:
                aim = 1.0
            move = self._direction(point, slacks, aim * rest / self.number)
            taken = None if move is None else self._taken(point, move)
            if taken is None:
                break
            point, slacks, length = taken
            aim = min(max(_AIM, (1.0 - length) ** 2), 0.99)  # short steps ask for centring
            step = time.monotonic() - start
        seconds = min(_SECONDS, max(1.0, clock.left()))
        return point.W, max(best, self._polished(point.W, point.weights, seconds))

    def _taken(self, point: Point, move: Point) -> tuple[Point, list[Floats], float] | None:
        """Take the longest step that stays central; None where there is none."""
        pairs = [(point.W, move.W), (point.Z, move.Z)]
        pairs += [*zip(point.laws, move.laws, strict=True)]
        pairs += [*zip(point.weights, move.weights, strict=True)]
        length = min(1.0, _STEP * min(_room(at, by) for at, by in pairs))
        for _ in range(_SHORTER):
            W = point.W + length * move.W
            near = Point(
                self.normalised(W),
                [q + length * by for q, by in zip(point.laws, move.laws, strict=True)],
                point.Z + length * move.Z,
                [w + length * by for w, by in zip(point.weights, move.weights, strict=True)],
            )
            slacks = self.slacks(near.W, near.laws)
            products = _products(near, slacks)
            if products.min() >= _CENTRAL * products.mean():
                return near, slacks, length
            length *= 0.7
        return None

    def _direction(self, point: Point, slacks: list[Floats], aim: float) -> Point | None:
        """Newton step towards complementarity ``aim``; None where rounding leaves none."""
        from scipy.linalg import cho_factor, cho_solve

        W, laws, Z, weights = point
        flat, rhs = self._system(point, slacks, aim)
        flat[np.diag_indices(len(flat))] += (Z / W).reshape(-1)
        scale = W.reshape(-1)  # scaled by W, the matrix has entries of one size
        flat *= scale
        flat *= scale[:, None]
        sums = self._sums()
        try:
            factor = cho_factor(flat, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            return None
        solved = cho_solve(factor, scale[:, None] * np.column_stack([rhs.reshape(-1), sums]))
        solved *= scale[:, None]
        means = np.linalg.lstsq(sums.T @ solved[:, 1:], sums.T @ solved[:, 0], rcond=None)[0]
        dW = (solved[:, 0] - solved[:, 1:] @ means).reshape(W.shape)
        if not np.isfinite(dW).all():
            return None
        moves = [
            _recovered(part, part.view(W), q, weight, slack, aim, part.view(dW))
            for part, q, weight, slack in zip(self.parts, laws, weights, slacks, strict=True)
        ]
        return Point(dW, [dq for dq, _ in moves], aim / W - Z - Z / W * dW, [dl for _, dl in moves])

    def _system(self, point: Point, slacks: list[Floats], aim: float) -> tuple[Floats, Floats]:
        """Return the second derivatives without those of W >= 0, and the right-hand side."""
        W, laws, _, weights = point
        N, K = W.shape
        total, rhs = np.zeros((N, K, N, K)), aim / W - self.cost
        for part, q, weight, slack in zip(self.parts, laws, weights, slacks, strict=True):
            left = eliminate(part, W, q, weight, slack, aim)
            np.add.at(rhs, part.rows, left.rhs)
            _add_blocks(total, part, W, q, weight)
            _add_low(total, part, left.low)
        return total.reshape(N * K, N * K), rhs

    def _sums(self) -> Floats:
        """Return which entries of W sum to 1, a column for each sum."""
        N, K = self.cost.shape
        return np.asarray(np.kron(np.eye(N), np.ones((K, 1))), dtype=np.float64)

    def _polished(self, W: Floats, weights: list[Floats], seconds: float) -> float:
        """Lower bound from the best multiples of the same multipliers, by a linear program."""
        from fastpriv._core.highs import Rows, minimise

        N, K = W.shape
        sums = [weight.sum(axis=1) for weight in weights]
        largest = max(float(total.max()) for total in sums)
        kept = [total > _NEEDED * largest for total in sums]
        shares, table = [], []
        for part, weight, total, keep in zip(self.parts, weights, sums, kept, strict=True):
            share = np.where(keep[:, None], weight / total[:, None], 0.0)
            spread = np.zeros((int(keep.sum()), N, K))
            where = np.arange(len(spread))[:, None], part.rows[keep]
            np.add.at(spread, where, part.slopes(W, share)[keep])
            shares.append(share)
            table.append(spread.reshape(len(spread), N * K))
        slopes = np.concatenate(table)
        # Variables: multipliers, then the least reduced cost of every x, which is free.
        left = np.concatenate([slopes.T, -np.kron(np.eye(N), np.ones((K, 1)))], axis=1)
        filled = left != 0.0
        rows = Rows(
            np.concatenate([[0], np.cumsum(filled.sum(axis=1))]),
            np.nonzero(filled)[1],
            left[filled],
            -self.cost.reshape(-1),
            np.full(N * K, math.inf),
        )
        lower = np.concatenate([np.zeros(len(slopes)), np.full(N, -math.inf)])
        costs = np.concatenate([np.full(len(slopes), self.epsilon), -np.ones(N)])
        try:
            answer = minimise(costs, lower, rows, seconds).values[: len(slopes)]
        except SolverFailure:
            return -math.inf
        best, start = [], 0
        for share, keep in zip(shares, kept, strict=True):
            multiple = np.zeros(len(share))
            multiple[keep] = np.maximum(answer[start : start + int(keep.sum())], 0.0)
            start += int(keep.sum())
            best.append(multiple[:, None] * share)
        return self.bound(W, best)


def eliminate(
    part: Part, W: Floats, q: Floats, weight: Floats, slack: Floats, aim: float
) -> Eliminated:
    """Eliminate dq and dl from the Newton system of a part.

    With t = W/q - 1 and E = sum_a l_a (1 + t_a)/q, the equations of dq and dl are

        E dq = sum_a (l_a/q) dW_a + sum_a (l_a + dl_a) t_a,
        sum_y ln(1 + t_a) dW_a - t_a dq - (s_a/l_a) dl_a = s_a - aim/l_a.
    """
    ratio, E, root, lack = _eliminated(part, W, q, weight, slack, aim)
    logs = _logs(ratio)
    count, m, outputs = ratio.shape
    # How dl depends on dW: own logarithms, less what dq takes along.
    taken = weight[:, :, None, None] * np.swapaxes(ratio / (E * q)[:, None], 1, 2)[:, None]
    bond = np.eye(m)[:, None] * logs[..., None] - taken
    low = np.linalg.solve(root, np.swapaxes(bond.reshape(count, -1, m), 1, 2))
    low = np.swapaxes(low, 1, 2)
    drawn = low @ np.linalg.solve(root, lack[..., None])
    pulled = np.einsum("ba,bak->bk", weight, ratio) / (E * q)
    rhs = weight[:, :, None] * (pulled[:, None] - logs) + drawn.reshape(count, m, outputs)
    return Eliminated(np.asarray(low, dtype=np.float64).reshape(count, m, outputs, m), rhs)


def _eliminated(
    part: Part, W: Floats, q: Floats, weight: Floats, slack: Floats, aim: float
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return W/q - 1, E, the Cholesky factor of the equations of dl, and their right-hand sides.

    The equations are S dl = bond . dW - lack, S = diag(s/l) + sum_y t t^T/E.
    """
    ratio = part.ratios(W, q)
    E = np.einsum("ba,bak->bk", weight, 1.0 + ratio) / q
    S = np.einsum("bak,bck->bac", ratio / E[:, None], ratio)
    S += np.eye(weight.shape[1]) * (slack / weight)[:, :, None]
    pulled = np.einsum("ba,bak->bk", weight, ratio) / E
    lack = slack - aim / weight + np.einsum("bak,bk->ba", ratio, pulled)
    return ratio, E, np.linalg.cholesky(S), lack


def _recovered(
    part: Part, W: Floats, q: Floats, weight: Floats, slack: Floats, aim: float, dW: Floats
) -> tuple[Floats, Floats]:
    """Return dq and dl of a part for the step of the channel."""
    ratio, E, root, lack = _eliminated(part, W, q, weight, slack, aim)
    step = dW[part.rows]
    carried = np.einsum("ba,bak->bk", weight, step) / (q * E)
    rise = (_logs(ratio) * step).sum(axis=2) - np.einsum("bak,bk->ba", ratio, carried)
    dl = np.linalg.solve(root @ np.swapaxes(root, 1, 2), (rise - lack)[..., None])[..., 0]
    dq = carried + np.einsum("ba,bak->bk", weight + dl, ratio) / E
    return np.asarray(dq), np.asarray(dl)


def _add_blocks(total: Floats, part: Part, W: Floats, q: Floats, weight: Floats) -> None:
    """Add l_a/W_a on the diagonal, less l_a l_c/(q^2 E) for pairs of rows, for each y alone."""
    V, m, y = W[part.rows], weight.shape[1], np.arange(W.shape[1])
    mass = np.einsum("ba,bak->bk", weight, V)  # q^2 E
    diagonal = np.zeros((len(W), len(W), W.shape[1]))
    for a in range(m):
        for c in range(m):
            block = -(weight[:, a] * weight[:, c])[:, None] / mass
            if a == c:
                block = block + weight[:, a, None] / V[:, a]
            np.add.at(diagonal, (part.rows[:, a], part.rows[:, c]), block)
    total[:, y, :, y] += np.moveaxis(diagonal, 2, 0)


def _add_low(total: Floats, part: Part, low: Floats) -> None:
    """Add the products of the vectors of all constraints with themselves.

    The vectors of a selection touch its own rows only: a block of K x K for each pair of them.
    """
    N, K = total.shape[:2]
    m, blocks = low.shape[1], total.transpose(0, 2, 1, 3)
    step = max(1, _BLOCK // (K * K))
    for a in range(m):
        for c in range(m):
            pairs = part.rows[:, a] * N + part.rows[:, c]
            order = np.argsort(pairs, kind="stable")
            for start in range(0, len(order), step):
                chosen = order[start : start + step]
                products = low[chosen, a] @ np.swapaxes(low[chosen, c], 1, 2)
                which, first = np.unique(pairs[chosen], return_index=True)
                blocks[which // N, which % N] += np.add.reduceat(products, first, axis=0)


def _logs(ratio: Floats) -> Floats:
    """Return ln(1 + ratio); a ratio of -1 counts as the next larger float."""
    return np.asarray(np.log1p(np.maximum(ratio, _FLOOR)))


def _products(point: Point, slacks: list[Floats]) -> Floats:
    """Return the products of all numbers that stay positive and their multipliers."""
    pairs = zip(point.weights, slacks, strict=True)
    parts = [(weight * slack).reshape(-1) for weight, slack in pairs]
    return np.concatenate([(point.W * point.Z).reshape(-1), *parts])


def _room(at: Floats, move: Floats) -> float:
    """Longest step that keeps positive numbers at least 0."""
    falling = move < 0.0
    return float((-at[falling] / move[falling]).min(initial=math.inf))


#: Most classes: the second derivatives are a matrix of this size.
_MAX_CLASSES = 3_300
#: Level of E_d from which a start is looked for, and share of the capacity that it may have.
_STEEP, _START = 20.0, 0.6
#: Share of the gap that is asked of the method, as no last program mends the bound.
_INNER_GAP_TYPES = 0.1
#: Gap of the capacities that are certified, and how often a mechanism is repaired.
_FINE, _TRIES = 1e-13, 60


class _Pair(Part):
    """Two databases: shares ``scale[a, c]`` of the masses of the classes ``index[a, c]``."""

    def __init__(self, index: Ints, scale: Floats) -> None:
        super().__init__(np.array([[0, 1]]))
        self.index, self.scale = index, scale

    def view(self, W: Floats) -> Floats:
        """Return the output laws of both databases."""
        return np.asarray(self.scale * W[self.index])


class CappedTypes(Capped):
    """The program over masses of classes, for the bits of an exchangeable prior."""

    def __init__(self, prior: Exchangeable, epsilon: float, priors: str) -> None:
        n = prior.space.n
        check.fits(
            math.comb(n + 3, 3),
            "the program over classes of databases and outputs",
            'use fewer rows, or independent rows with priors="independent"',
            _MAX_CLASSES,
        )
        self.n, self.types = n, types_of(Blocks.single(n, 2))
        self.classes = [classes_against(kind, self.types) for kind in self.types.counts]
        self.stack = Stack.of(self.types, self.classes)
        weights = type_weights(self.types, prior)
        self.cost = weights[self.stack.row] * self.stack.distance
        self.epsilon, self.parts = epsilon, self._pairs(priors)
        self.number = self.cost.size + 2 * len(self.parts)

    def _pairs(self, priors: str) -> list[Part]:
        """Return the pairs of databases that an adversary may choose, up to permutations."""
        n, table = self.n, self._table()
        logs = [log_binomials(k) for k in range(n + 1)]
        parts: list[Part] = []
        for up in range(1, n + 1):
            for down in range(0, min(up, n - up) + 1):
                if priors != "all" and (up, down) != (1, 0):
                    continue
                for both in range(n - up - down + 1):
                    kinds = n - up - down - both, up, down, both
                    ones = np.indices([k + 1 for k in kinds]).reshape(4, -1)
                    ways = sum(logs[k][o] for k, o in zip(kinds, ones, strict=True))
                    j = ones.sum(axis=0)
                    index = np.stack(
                        [
                            table[down + both, j, ones[2] + ones[3]],
                            table[up + both, j, ones[1] + ones[3]],
                        ]
                    )
                    scale = np.exp(ways - self.stack.log_outputs[index])
                    parts.append(_Pair(index, scale))
        return parts

    def _table(self) -> Ints:
        """Return the number of the class with i ones in x, j in y and t in both, [i, j, t]."""
        table = np.zeros((self.n + 1,) * 3, dtype=np.int64)
        starts = self.stack.starts.tolist()
        for kind, part, start in zip(self.types.counts, self.classes, starts, strict=False):
            shared = part.held(1, 2)[1]
            numbers = start + np.arange(len(part.row))
            table[shared + part.held(0, 2)[1], kind[0][1], shared] = numbers
        return table

    def normalised(self, W: Floats) -> Floats:
        """Let the masses of every type of x sum to 1."""
        return np.asarray(W / np.bincount(self.stack.row, W)[self.stack.row])

    def start(self) -> Floats:
        """Return E_d at a level with about half of the capacity that is allowed."""
        level, n, d = _STEEP, self.n, self.stack.distance
        while True:
            logs = self.stack.log_outputs - level * d - n * math.log1p(math.exp(-level))
            W = self.normalised(np.exp(logs))
            slacks = self.slacks(W, self.means(W))
            most = self.epsilon - min(float(slack.min()) for slack in slacks)
            if most <= _START * self.epsilon:
                return W
            level *= max(0.3, math.sqrt(0.5 * self.epsilon / most))

    def bound(self, W: Floats, weights: list[Floats]) -> float:
        """Lower bound on the cost, from multipliers >= 0 and masses. Rounded down."""
        total, size, spent = self.cost.copy(), np.abs(self.cost), 0.0
        terms = np.zeros(len(W))
        for part, weight in zip(self.parts, weights, strict=True):
            assert isinstance(part, _Pair)
            slopes = part.slopes(part.view(W), weight)[0]
            np.add.at(total, part.index, part.scale * slopes)
            np.add.at(size, part.index, part.scale * (weight[0][:, None] + np.abs(slopes)))
            np.add.at(terms, part.index, 1.0)
            spent += math.fsum(weight.reshape(-1))
        error = (256.0 + 4.0 * float(terms.max())) * ULP + 4.0 * type_error(self.n)
        least = np.full(self.n + 1, math.inf)
        np.minimum.at(least, self.stack.row, total - error * size)
        whole = math.fsum(least)
        return lowered(whole, 8.0) - raised(self.epsilon * spent, 8.0) - 8.0 * ULP * abs(whole)

    def _system(self, point: Point, slacks: list[Floats], aim: float) -> tuple[Floats, Floats]:
        """Return the second derivatives without those of W >= 0, and the right-hand side."""
        W, laws, _, weights = point
        total, rhs = np.zeros((len(W), len(W))), aim / W - self.cost
        low = np.zeros((2 * len(self.parts), len(W)))
        for k, (part, q, weight, slack) in enumerate(
            zip(self.parts, laws, weights, slacks, strict=True)
        ):
            assert isinstance(part, _Pair)
            V, index, scale = part.view(W), part.index, part.scale
            left = eliminate(part, V, q, weight, slack, aim)
            np.add.at(rhs, index, scale * left.rhs[0])
            mass = weight[0] @ V
            for a in range(2):
                for b in range(2):
                    block = -weight[0, a] * weight[0, b] / mass
                    if a == b:
                        block = block + weight[0, a] / V[a]
                    np.add.at(total, (index[a], index[b]), scale[a] * scale[b] * block)
                np.add.at(low[2 * k + a], index, scale * left.low[0, :, :, a])
        total += low.T @ low
        return total, rhs

    def _sums(self) -> Floats:
        """Return which masses sum to 1, a column for each type of x."""
        return np.asarray(self.stack.row[:, None] == np.arange(self.n + 1), dtype=np.float64)

    def _polished(self, W: Floats, weights: list[Floats], seconds: float) -> float:
        """Nothing to mend: the bound of the multipliers is what there is."""
        return self.bound(W, weights)

    def level(self, W: Floats) -> float:
        """Return the largest capacity of all pairs. Rounded up."""
        worst = max(
            float(capacities(np.ascontiguousarray(part.view(W)[None]), _FINE)[1][0])
            for part in self.parts
        )
        error = 4.0 * type_error(self.n)
        return round_up(worst + error * (worst + math.sqrt(2.0 * worst) + 4.0 * error))

    def repaired(self, W: Floats) -> tuple[Floats, float]:
        """Mix with a constant answer until the capacity is at most epsilon; return it as well."""
        constants = [(self.stack.kind == kind).astype(np.float64) for kind in (0, self.n)]
        constant = min(constants, key=lambda masses: float(self.cost @ masses))
        constant, share = self.normalised(constant), 0.0
        for _ in range(_TRIES):
            mixed = self.normalised((1.0 - share) * W + share * constant)
            level = self.level(mixed)
            if level <= self.epsilon:
                return mixed, level
            share = min(1.0, max(4.0 * share, 2.0 * (level - self.epsilon) / level, 2.0 * ULP))
        return constant, 0.0

    def solved(self, gap: float, clock: Clock) -> tuple[TypeChannel, float, float]:
        """Return the mechanism, its certified capacity, and the bound on the distortion."""
        W, bound = self.solve(self.start(), _INNER_GAP_TYPES * gap, clock)
        W, level = self.repaired(W)
        parts = np.split(W / np.exp(self.stack.log_outputs), self.stack.starts[1:-1])
        return TypeChannel(self.types, self.classes, parts), level, bound
