"""Upper bounds on the capacities of many pairs of rows, without logarithms.

For two laws v, w and the weight t of the first, the information f(t) is concave, f'(t) is the
difference of the two divergences from the mean, and the best t lies in [1/e, 1 - 1/e] (Majani and
Rumsey 1991), so

    C <= f(1/2) + (1/2 - 1/e) |f'(1/2)|.

With M = (v + w)/2 and s = (v - w)/(v + w), |s| <= 1, the two terms are power series

    f(1/2) = sum_y M (s^2/2 + s^4/12 + s^6/30 + ...),   coefficients 1/(2k (2k - 1)), sum ln 2,
    -f'(1/2)/2 = sum_y M (s^3/6 + s^5/20 + ...),        coefficients 1/(2k (2k + 1)), sum 1 - ln 2,

cut off by bounding all higher powers by the first one left out. Rows need not sum to one: the
terms are those of w ln(w/q) - w + q, as in kernels/capacity.py.
"""

import math

from numba import njit

U = 2.0**-53
OFF = 0.5 - 1.0 / math.e + 1e-12
EVEN = math.log(2.0) - 1.0 / 2.0 - 1.0 / 12.0 - 1.0 / 30.0 + 1e-15
ODD = 1.0 - math.log(2.0) - 1.0 / 6.0 - 1.0 / 20.0 + 1e-15


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract", "reassoc"})
def _sums(W, i, j):
    """Sums over outputs of d^2/(v + w) times the series, twice each: even, odd and its rest."""
    even, odd, rest = 0.0, 0.0, 0.0
    for y in range(W.shape[1]):
        v, w = W[i, y], W[j, y]
        d = v - w
        total = v + w
        s = d / total if total > 0.0 else 0.0
        r = s * s
        part = d * s
        even += part * (0.5 + r * (1.0 / 12.0 + r * (1.0 / 30.0 + r * EVEN)))
        odd += part * s * (1.0 / 6.0 + r * (1.0 / 20.0))
        rest += part * r * r * abs(s)
    return even, odd, rest


@njit(nogil=True, cache=True, error_model="numpy")
def pair_bounds(W, left, right, start, stop, out):
    """Write bounds on the capacity of rows left[i], right[j] of W, rounded up, start <= i < stop.

    Entries are sums of K terms good to 16 units, or cancelling ones whose parts the even sum
    dominates; 2 K + 64 units are granted.
    """
    up = 1.0 + (2 * W.shape[1] + 64) * U
    for i in range(start, stop):
        for j in range(right.size):
            even, odd, rest = _sums(W, left[i], right[j])
            out[i, j] = (0.5 * even + OFF * (abs(odd) + ODD * rest)) * up


SIGNATURES = {
    "pair_bounds": ["void(f8[:, ::1], i8[::1], i8[::1], i8, i8, f8[:, ::1])"],
}
