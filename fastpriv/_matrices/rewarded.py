"""Mutual information plus a reward for each input, at its largest over input laws.

f(p) = I(p, W) + sum_x p(x) r(x) is concave, and for the output law q of any p

    sum_x p(x) (D(W_x || q) + r(x)) <= max f <= max_x (D(W_x || q) + r(x)).
"""

from __future__ import annotations

import numpy as np

from fastpriv._core.divergence import divergence_terms
from fastpriv._core.validation import Floats

#: Most steps, and share of the way to the boundary that a step goes.
_STEPS, _ROOM = 100, 0.995
#: Complementarity to aim for, relative to that of the last step.
_CENTRE = 0.1


def rewarded_law(matrix: Floats, rewards: Floats, gap: float) -> Floats:
    """Return an input law close to the best one.

    A primal-dual interior-point method. It ends where the bounds above are within ``gap``, in
    relation to values below one, or where rounding stops it. Cost O(N^3 + N^2 K) for each of some
    twenty steps.
    """
    size = len(matrix)
    matrix = matrix[:, matrix.any(axis=0)]
    p, best, width = np.full(size, 1.0 / size), np.full(size, 1.0 / size), np.inf
    z: Floats | None = None
    for _ in range(_STEPS):
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
