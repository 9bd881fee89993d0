"""Capacities of matrices: many small ones at once, or one large one through a few of its rows.

Some optimal input distribution has at most as many inputs as there are outputs, usually far fewer.
A channel with many rows is therefore solved on a working set of rows. The divergences of all rows
from the resulting output distribution prove the upper bound, and rows with a larger divergence join
the set.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from fastpriv import kernels
from fastpriv._core.divergence import divergence_terms
from fastpriv._core.rounding import lowered, raised
from fastpriv._core.threads import split
from fastpriv._core.validation import Floats, Ints
from fastpriv.results import Bracket

#: Most rows that are solved for at once, and the size of the first working set.
_FEW = 64
#: Rows of largest divergence that always join the set.
_CLOSE = 16
#: Entries that are compared for further rows.
_BLOCK = 1 << 22
#: Gap to which working sets are solved until no row outside has a larger divergence.
_COARSE = 1e-3
#: Rows with less than this share of the mean weight leave the working set.
_IDLE = 1e-3
_ROUNDS = 100
#: Smaller positive capacities are only bounded by this number, as in the kernel.
_LEAST = 1e-280
#: Fewest divergences worth a thread of their own.
_GRAIN = 1 << 15


def _never() -> bool:
    return False


def matrix_capacity(
    matrix: Floats, gap: float, over: Callable[[], bool] = _never
) -> tuple[Bracket, Floats]:
    """Return the capacity of a matrix and an input distribution that reaches its lower bound.

    If ``over`` returns True, a large matrix has the bounds found so far.
    """
    if len(matrix) > _FEW:
        least, most, law = _by_rows(matrix, gap, over)
        return Bracket(least, most), law
    lower, upper, laws = capacities(matrix[None], gap)
    return Bracket(float(lower[0]), float(upper[0])), laws[0]


def capacities(matrices: Floats, gap: float) -> tuple[Floats, Floats, Floats]:
    """Return both bounds and input distributions of B channels, given as (B, N, K)."""
    count, inputs, outputs = matrices.shape
    lower, upper, laws = np.empty(count), np.empty(count), np.empty((count, inputs))
    if inputs > _FEW:
        for b, matrix in enumerate(matrices):
            lower[b], upper[b], laws[b] = _by_rows(matrix, gap, _never)
    else:
        solve = kernels.two_row_capacities if inputs == 2 else kernels.capacities
        grain = max(1, _GRAIN // (inputs * inputs * outputs))

        def task(start: int, stop: int) -> None:
            solve(matrices, gap, start, stop, lower, upper, laws)

        split(task, count, grain)
    return lower, upper, laws


def _by_rows(matrix: Floats, gap: float, over: Callable[[], bool]) -> tuple[float, float, Floats]:
    """Return a bracket and an input distribution of one channel, from growing sets of its rows."""
    size, outputs = matrix.shape
    q, c, above = np.empty(outputs), np.empty(outputs), np.empty(size)

    def bound(rows: Floats, law: Floats) -> float:
        """Bound by an input distribution; leaves the divergences of all rows in ``above``."""
        kernels.output_law(rows, law, q, c)
        task = partial(_divergences, matrix, q, c, above)
        return max(split(task, size, max(1, _GRAIN // outputs)))

    lower, upper = 0.0, bound(matrix, np.full(size, 1.0 / size))
    best = np.full(size, 1.0 / size)
    if upper < _LEAST:
        return 0.0, 0.0 if (matrix == matrix[0]).all() else _LEAST, best
    work = np.sort(np.argsort(above)[-_FEW:])
    reach = _COARSE
    low, high = np.empty(1), np.empty(1)
    for _ in range(_ROUNDS):
        if over():
            break
        rows, law = matrix[work], np.empty((1, len(work)))
        kernels.capacities(rows[None], reach, 0, 1, low, high, law)
        if low[0] > lower:
            lower, best = float(low[0]), np.zeros(size)
            best[work] = law[0]
        upper = min(upper, bound(rows, law[0]))
        if upper - lower <= gap * min(1.0, lower):
            break
        others = np.flatnonzero(above > above[work].max())
        if len(others):
            worst = _unlike(matrix, q, others[np.argsort(above[others])])
            work = np.union1d(work[law[0] > _IDLE / len(work)], worst)
        elif reach == _COARSE:
            reach = 0.5 * gap
        else:
            break  # solved as well as rounding allows
    return lower, upper, best


def _unlike(matrix: Floats, q: Floats, rows: Ints) -> Ints:
    """Return the last few of the rows, and for every output the last row that favours it most.

    Many rows may be similar, such as the rows of neighbouring counts. A few of them are enough.
    """
    rows = rows[-max(_FEW, _BLOCK // len(q)) :]
    speaks = (matrix[rows] / np.maximum(q, _LEAST)).argmax(axis=1)
    last = len(rows) - 1 - np.unique(speaks[::-1], return_index=True)[1]
    return np.union1d(rows[last], rows[-_CLOSE:])


def _divergences(matrix: Floats, q: Floats, c: Floats, out: Floats, start: int, stop: int) -> float:
    return kernels.row_divergences(matrix, q, c, start, stop, out)


def repeated(parts: list[tuple[int, Bracket]]) -> Bracket:
    """Sum of brackets with their multiplicities, rounded outwards."""
    lower = math.fsum(count * part.lower for count, part in parts)
    upper = math.fsum(count * part.upper for count, part in parts)
    return Bracket(lowered(lower, 4.0), raised(upper, 4.0))


# Mutual information plus a reward r(x) for each input, at its largest over input distributions.
#
# f(p) = I(p, W) + sum_x p(x) r(x) is concave, and for the output distribution q of any p
#     sum_x p(x) (D(W_x || q) + r(x)) <= max f <= max_x (D(W_x || q) + r(x)).

#: Most steps; some twenty are enough if rounding does not interfere.
_NEWTON_STEPS = 100
#: Share of the way to the boundary that a step goes.
_ROOM = 0.995
#: Complementarity to aim for, relative to the complementarity of the last step.
_CENTRE = 0.1


def rewarded_law(matrix: Floats, rewards: Floats, gap: float) -> Floats:
    """Return an input distribution close to the best one.

    A primal-dual interior-point method. It stops if the bounds are within ``gap``, relative to
    values below one, or if rounding prevents progress. Cost O(N^3 + N^2 K) for each of some twenty
    steps.
    """
    size = len(matrix)
    matrix = matrix[:, matrix.any(axis=0)]
    p, best, width = np.full(size, 1.0 / size), np.full(size, 1.0 / size), np.inf
    z: Floats | None = None
    for _ in range(_NEWTON_STEPS):
        q = p @ matrix
        D = divergence_terms(matrix, q).sum(axis=1) + rewards
        value, top = float(p @ D), float(D.max())
        if top - value < width:
            best, width = p, top - value
        if width <= gap * min(1.0, value) or not np.isfinite(D).all():
            break
        if z is None:
            z = top - D + 0.1 * (top - value)
        nu = float(p @ (D + z))
        target = _CENTRE * float(p @ z) / size
        V = matrix / np.sqrt(q)
        newton = V @ V.T + np.diag(z / p)
        try:
            sides = np.linalg.solve(newton, np.stack([D - nu + target / p, np.ones(size)], axis=1))
        except np.linalg.LinAlgError:
            break
        total = float(sides[:, 1].sum())
        if total == 0.0 or not np.isfinite(sides).all():  # rows are equal up to rounding
            break
        step = sides[:, 0] - sides[:, 1] * (sides[:, 0].sum() / total)
        other = (target - p * z - z * step) / p
        p = p + step * _reach(p, step)
        z = z + other * _reach(z, other)
        p = p / p.sum()
    return best


def _reach(x: Floats, step: Floats) -> float:
    """Return how much of a step to take so that x stays positive."""
    back = step < 0.0
    return min(1.0, _ROOM * float((-x[back] / step[back]).min(initial=np.inf)))
