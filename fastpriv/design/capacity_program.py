"""Least distortion at an individual capacity: a convex program over small spaces."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.clock import Clock
from fastpriv._core.rounding import ULP, log_up, lowered
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.capacity import capacities
from fastpriv._structure.rows import RowKernel, RowKernels
from fastpriv.channels import AbstractChannel, Channel, HammingChannel, ProductChannel
from fastpriv.design.common import constant_mechanism, rounded_up
from fastpriv.design.task import limits, made_task, told
from fastpriv.errors import TooLarge, short
from fastpriv.measures.distortion import expected_distance
from fastpriv.priors import Distribution, Exchangeable, Product
from fastpriv.priors.base import as_prior
from fastpriv.results import Solution
from fastpriv.spaces import Space

if TYPE_CHECKING:
    from fastpriv.design.capacity_interior import Capped


__all__ = ["solve_pd_capacity"]

#: Most databases, and most numbers that are kept for all selections.
_MOST, _KEPT = 64, 1 << 26
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
        from fastpriv.design.capacity_types import CappedTypes  # loads scipy.linalg

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
    few = prior.space.size <= _MOST and not isinstance(prior, Exchangeable)
    return None if few or prior.space.m != 2 or prior.space.n < 2 else prior.by_type()


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
    if space.size > _MOST:
        raise TooLarge(
            f"the program at an individual capacity is solved over at most {_MOST} databases, and "
            f"there are {short(space.size)}; use fewer rows, or independent rows with "
            'priors="independent"'
        )
    number = sum(m * (space.size // m) ** (m if priors == "all" else 1) for m in sizes)
    if number * max(sizes, default=1) ** 2 * space.size > _KEPT:
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
    from fastpriv.design.capacity_interior import Capped  # loads scipy.linalg

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
