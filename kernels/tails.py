"""Sums over the upper tail of a sum of independent losses, without cancellation.

Masses y are tilted: the mass of loss l is y e^(-s l) up to a common factor. With x = l - t the
mean of (1 - e^-x)_+ is a sum of products of non-negative numbers throughout.
"""

import math

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def tail_tables(losses, rests, masses, s, both, above):
    """Suffix sums over rising losses, for every start j, with d = losses[i] - losses[j] >= 0.

    both[j] = sum of y_i e^(-(s+1) d), above[j] = sum of y_i e^(-s d) (1 - e^-d). From the top
    down: 1 - e^-(a+b) = (1 - e^-a) + e^-a (1 - e^-b), so that nothing is subtracted.
    """
    last = losses.size - 1
    both[last] = masses[last]
    above[last] = 0.0
    for j in range(last - 1, -1, -1):
        d = (losses[j + 1] - losses[j]) + (rests[j + 1] - rests[j])
        keep = math.exp(-s * d)
        above[j] = keep * (above[j + 1] - math.expm1(-d) * both[j + 1])
        both[j] = masses[j] + keep * math.exp(-d) * both[j + 1]


@njit(nogil=True, cache=True)
def tail_excess(shifts, weights, losses, rests, both, above, s, t):
    """Sum over shifts c and losses l > t - c of w y e^(-s x) (1 - e^-x), x = c + l - t.

    Shifts rise, so the first loss that counts only moves down. A loss is losses[j] + rests[j].
    """
    total = 0.0
    j = np.searchsorted(losses, t - shifts[0], side="right")
    for i in range(shifts.size):
        from_ = t - shifts[i]
        while j > 0 and (losses[j - 1] - from_) + rests[j - 1] > 0.0:
            j -= 1
        if j < losses.size:
            x = max((losses[j] - from_) + rests[j], 0.0)
            total += weights[i] * math.exp(-s * x) * (above[j] - math.expm1(-x) * both[j])
    return total


SIGNATURES = {
    "tail_tables": ["void(f8[::1], f8[::1], f8[::1], f8, f8[::1], f8[::1])"],
    "tail_excess": ["f8(f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8, f8)"],
}
