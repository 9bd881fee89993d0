"""Information in noisy copies of one value, by the law of a sum of exponentials.

Let V = v, and let c_u be the number of outputs u among n copies. With L the logarithm of the sum
of e^(epsilon c_u) over u != v, they tell I_n = ln m - E ln(1 + e^(L - epsilon c_v)). Given that r
outputs are wrong, they are spread evenly over m - 1 values. The law of L is built up value by value
on a grid. Where a new sum lies between two points of the grid, its probability is divided between
them so that the mean of L does not change. The functions ln(e^L + s) are convex and increasing in
L, and so are their compositions, with second derivatives in 0 .. 1/4. So every division with a
step d of the grid raises the expectation, by at most d^2/32.
"""

from __future__ import annotations

import math

import numpy as np

from fastpriv._core.clock import Clock
from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats, Ints
from fastpriv._structure.rows import Symmetric
from fastpriv.results import Bracket

#: Multiplications for all values together, and the fewest and most points of a grid.
_WORK, _LEAST, _MOST = 2e8, 128, 1 << 14
#: Probabilities below are left out, and how probable it may be that a sum is beyond the grid.
_RARE, _BEYOND = 1e-22, 1e-16


def merged(copies: int, kernel: Symmetric, clock: Clock) -> Bracket | None:
    """Information about a uniform value in copies of it, m at least 3. None if that takes long.

    Cost O(m n^1.5) for each point of the grid, of which there are as many as a second allows. The
    width is about m (epsilon n/points)^2/32.
    """
    n, m, epsilon = copies, kernel.m, kernel.epsilon
    usual = min(n, 12.0 * math.sqrt(n) + 24.0)  # counts of one value that are not rare
    points = int(min(_MOST, _WORK / (m * n * usual)))
    if points < _LEAST:
        return None
    most, beyond = _largest(n, kernel)
    top = epsilon * most + math.log(m)
    law, step = _sums(n, m - 1, epsilon, top, points, clock)
    if law is None:
        return None
    seen = np.arange(n + 1)
    right = _binomials(n, kernel.stay, (m - 1) * kernel.off)[n]
    grid = step * np.arange(points + 1)
    missed = np.logaddexp(0.0, grid[:, None] - epsilon * (n - seen))  # column r: r wrong outputs
    mean = float((law * missed).sum(axis=0) @ right[::-1])
    # What is left out or beyond the grid, sums of positive terms, logarithms of factorials, and
    # places on the grid.
    rough = n * m * _RARE * 4.0 + (64.0 * m * (n * math.log(n + 2.0) + 64.0) + points) * ULP
    error = (rough + m * beyond) * (epsilon * n + math.log(m) + 1.0)
    told = math.log(m) - mean
    lower = max(told - error, 0.0)
    return Bracket(lower, told + (m - 1) * step * step / 32.0 + error)


def _sums(
    n: int, values: int, epsilon: float, top: float, points: int, clock: Clock
) -> tuple[Floats | None, float]:
    """Return P(L = k step | r outputs on these values) as an array over k and r, and the step.

    None in place of the array if the time is over.
    """
    from scipy.sparse import csr_array

    step, r = top / points, np.arange(n + 1)
    grid = step * np.arange(points + 1)
    law = np.zeros((points + 1, n + 1))
    place, share = _between(epsilon * r.astype(np.float64), step, points)
    law[place, r] = 1.0 - share
    law[place + 1, r] += share
    columns = np.tile(np.arange(points + 1), 2)
    for value in range(2, values + 1):
        chances = _binomials(n, 1.0 / value, (value - 1.0) / value)
        after = np.zeros_like(law)
        for c in range(n + 1):
            if clock.left() == 0.0:
                return None, step
            weight = chances[c:, c]
            if weight.max() < _RARE:
                continue
            place, share = _between(np.logaddexp(grid, epsilon * c), step, points)
            moved = csr_array(
                (np.append(1.0 - share, share), (np.append(place, place + 1), columns)),
                shape=(points + 1, points + 1),
            )
            after[:, c:] += (moved @ np.ascontiguousarray(law[:, : n + 1 - c])) * weight
        law = after
    return law, step


def _largest(n: int, kernel: Symmetric) -> tuple[int, float]:
    """Return a count that a wrong value hardly exceeds, and the probability that it does."""
    from scipy.special import bdtrc

    tail = bdtrc(np.arange(n + 1.0), n, kernel.off * (1.0 + 8.0 * ULP)) * (1.0 + 1e-6)
    most = int(np.argmax(tail <= _BEYOND))
    return most, float(tail[most])


def _between(values: Floats, step: float, points: int) -> tuple[Ints, Floats]:
    """Return the points of the grid below the values, and the share of the way to the next.

    Values beyond the grid, where some count is above the largest, go to its end.
    """
    place = np.minimum(values / step, points - 1.0).astype(np.int64)
    return place, np.clip(values / step - place, 0.0, 1.0)


def _binomials(n: int, hit: float, miss: float) -> Floats:
    """Return the laws of the number of hits in 0 .. n, in the rows of a triangle."""
    from scipy.special import gammaln, xlogy

    r, c = np.arange(n + 1)[:, None], np.arange(n + 1)
    rest = np.maximum(r - c, 0)
    logs = gammaln(r + 1.0) - gammaln(c + 1.0) - gammaln(rest + 1.0)
    return np.where(c <= r, np.exp(logs + xlogy(c, hit) + xlogy(rest, miss)), 0.0)
