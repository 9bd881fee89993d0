"""Individual capacity of bits that all pass through one channel, by the number of flipped bits.

An adversary chooses two databases. A bit in which they agree tells nothing, so they differ in all
bits. Bits are interchangeable, so only the number j of bits that are 1 in the first database
matters, and j and n - j give the same pair. Let outputs of these j bits count as minus one
and all other outputs as plus one. The likelihood ratio of the two databases is a function of the
net number of each output. So every candidate is a channel from two inputs to net numbers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpriv._core.clock import Clock
from fastpriv._core.rounding import ULP, log_up, round_up
from fastpriv._core.validation import Floats
from fastpriv._matrices.capacity import capacities
from fastpriv._structure.rows import RowKernels
from fastpriv.results import Adversary, IndividualCapacity

#: Most multiplications for all candidates together, and most entries of all powers.
_WORK, _ENTRIES = 1 << 31, 1 << 24

Powers = list[NDArray[Any]]


def fits(kernels: RowKernels) -> bool:
    """Whether all rows are bits with one channel, and few enough for this algorithm."""
    if len(kernels.distinct) > 1 or kernels.distinct[0].shape[0] != 2:
        return False
    n, outputs = len(kernels.assignment), kernels.distinct[0].shape[1]
    largest = (n + 1.0) ** (outputs - 1)
    return n * largest <= _ENTRIES and n * (largest / 4.0 ** (outputs - 1)) * largest <= _WORK


def by_flips(kernels: RowKernels, gap: float, clock: Clock, most: float) -> IndividualCapacity:
    """Bracket for one bit, given that nothing is above ``most``.

    Candidates that the time does not suffice for are bounded by ``most`` and ln 2. With K outputs
    the cost is O(n^(2K-1)), at worst, all of it in convolutions.
    """
    n, (zero, one) = len(kernels.assignment), kernels.distinct[0].matrix
    plus = [_powers(law, n, False) for law in (zero, one)]
    minus = [_powers(law, n // 2, True) for law in (zero, one)]
    lower, upper, best, law = -1.0, 0.0, 0, np.empty(2)
    left = min(round_up(most), log_up(2.0))
    for flips in range(n // 2 + 1):
        if flips and clock.left() == 0.0:
            upper = max(upper, left)
            break
        first = _convolved(plus[0][n - flips], minus[1][flips])
        second = _convolved(plus[1][n - flips], minus[0][flips])
        rows = np.stack([first.reshape(-1), second.reshape(-1)])
        seen = np.ascontiguousarray(rows[:, rows.any(axis=0)])
        low, high, laws = capacities(seen[None], 0.25 * gap)
        upper = max(upper, float(high[0]))
        if low[0] > lower:
            lower, best, law = float(low[0]), flips, laws[0]
    # Entries are sums of products of up to n factors. For the effect of their relative errors
    # see ``search.widened``. What underflows is below the last term.
    terms = float(n + 1) ** (kernels.distinct[0].shape[1] - 1)
    error = (4.0 * n + terms + 16.0) * ULP
    slack = error * (upper + math.sqrt(2.0 * upper) + 4.0 * error) + 1e-290
    databases = np.zeros((2, n), dtype=np.int64)
    databases[1, : n - best] = databases[0, n - best :] = 1
    lower = max(lower - slack, 0.0)
    upper = max(lower, min(upper + slack, left))
    return IndividualCapacity(lower, upper, Adversary((0,), databases, law))


def _powers(law: Floats, count: int, reflected: bool) -> Powers:
    """Return the laws of the numbers of outputs 1 .. K-1 among 0 .. count outputs.

    Reflected, they are the laws of minus these numbers. All arrays start at the least numbers.
    """
    axes = len(law) - 1
    powers: Powers = [np.ones((1,) * axes)]
    for size in range(1, count + 1):
        total = np.zeros((size + 1,) * axes)
        for output, chance in enumerate(law.tolist()):
            step = [int(axis + 1 == output) for axis in range(axes)]
            start = [1 - s for s in step] if reflected else step
            total[tuple(slice(s, s + size) for s in start)] += chance * powers[-1]
        powers.append(total)
    return powers


def _convolved(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """Return the law of a sum, from products and sums alone."""
    if a.ndim == 1:
        return np.convolve(a, b)
    from scipy.signal import convolve

    return np.asarray(convolve(a, b, method="direct"))
