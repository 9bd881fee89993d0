"""Many divergences and distances between rows of a table, and bounds on capacities of pairs.

Pairs are bounded without logarithms.

For two distributions v, w and the weight t of the first, the information f(t) is concave, and f'(t)
is the difference of the two divergences from the mean q_t. The best t lies in [1/e, 1 - 1/e]
(Majani and Rumsey 1991), where q_t <= (1 - 1/e)(v + w) and so -f''(t) = sum_y (v - w)^2/q_t is at
least c = e/(e - 1) sum_y (v - w)^2/(v + w). Hence

    C <= f(1/2) + min((1/2 - 1/e) |f'(1/2)|, f'(1/2)^2 / (2 c)).

With M = (v + w)/2 and s = (v - w)/(v + w), |s| <= 1, the two are power series

    f(1/2) = sum_y M (s^2/2 + s^4/12 + s^6/30 + ...),   coefficients 1/(2k (2k - 1)), sum ln 2,
    -f'(1/2)/2 = sum_y M (s^3/6 + s^5/20 + ...),        coefficients 1/(2k (2k + 1)), sum 1 - ln 2,

cut off by bounding all higher powers by the first one left out. Rows need not sum to one: the
terms come from w ln(w/q) - w + q, as in kernels/capacity.py.
"""

import math

from .arrays import dot
from .declare import Ints, Matrix, Vector, helper, kernel

#: Unit roundoff.
U = 2.0**-53
#: Largest distance of the best t from 1/2, rounded up.
OFF = 0.5 - 1.0 / math.e + 1e-12
#: The inverse (e - 1)/e of the factor in c, rounded up.
SHARE = 1.0 - 1.0 / math.e + 1e-12
#: First coefficients of the even series and of the odd one.
E1, E2, E3, E4, E5, E6, E7 = (1.0 / (2 * k * (2 * k - 1)) for k in range(1, 8))
O1, O2, O3, O4 = (1.0 / (2 * k * (2 * k + 1)) for k in range(1, 5))
#: Sum of all later coefficients of the even series, rounded up.
EVEN = math.log(2.0) - (E1 + E2 + E3 + E4 + E5 + E6 + E7) + 1e-15
#: From this s^2 on, logarithms are taken instead of series.
SMALL = 0.09
#: Bound on the even series from its sixth term on, over its power, for s^2 below SMALL.
EDGE = E6 + SMALL * (E7 + EVEN)
#: Sum of all later coefficients of the odd series, rounded up.
ODD = 1.0 - math.log(2.0) - (O1 + O2 + O3 + O4) + 1e-15


@helper(error_model="numpy", fastmath={"contract", "reassoc"})
def _sums(W, i, j):
    """Return sums over outputs of 2 M times s^2, the even series, the odd one, and |s|^11.

    The odd series ends before |s|^11, which bounds its other terms.
    """
    chi, even, odd, rest = 0.0, 0.0, 0.0, 0.0
    for y in range(W.shape[1]):
        v, w = W[i, y], W[j, y]
        d = v - w
        s = d / max(v + w, 1e-300)
        r = s * s
        part = d * s
        chi += part
        high = E4 + r * (E5 + r * (E6 + r * (E7 + r * EVEN)))
        even += part * (E1 + r * (E2 + r * (E3 + r * high)))
        odd += part * s * (O1 + r * (O2 + r * (O3 + r * O4)))
        rest += part * (r * r) * (r * r) * abs(s)
    return chi, even, odd, rest


@kernel(error_model="numpy")
def pair_bounds(W: Matrix, left: Ints, right: Ints, start: int, stop: int, out: Matrix) -> None:
    """Write bounds on the capacity of rows left[i], right[j] of W, rounded up, start <= i < stop.

    Terms have errors of at most 32 units, and the even series is larger than the odd one. So
    raising the bounds by 2 K + 128 units covers the rounding.
    """
    up = 1.0 + (2 * W.shape[1] + 128) * U
    for i in range(start, stop):
        for j in range(right.size):
            chi, even, odd, rest = _sums(W, left[i], right[j])
            slope = (abs(odd) + 2.0 * W.shape[1] * U * even + ODD * rest) * up
            off = slope * min(OFF, 0.5 * SHARE * slope / chi) if chi > 0.0 else 0.0
            out[i, j] = (0.5 * even + off) * up


@kernel(error_model="numpy")
def sharp_pair_bounds(
    W: Matrix, left: Ints, right: Ints, start: int, stop: int, out: Vector
) -> None:
    """Write the same bounds for rows left[j], right[j], from logarithms if |s| is not small."""
    up = 1.0 + (2 * W.shape[1] + 128) * U
    for j in range(start, stop):
        chi, even, odd, rest, size = 0.0, 0.0, 0.0, 0.0, 0.0
        for y in range(W.shape[1]):
            v, w = W[left[j], y], W[right[j], y]
            d = v - w
            total = max(v + w, 1e-300)
            s = d / total
            r = s * s
            part = d * s
            chi += part
            if r < SMALL:
                even += part * (E1 + r * (E2 + r * (E3 + r * (E4 + r * (E5 + r * EDGE)))))
                odd += part * s * (O1 + r * (O2 + r * (O3 + r * O4)))
                rest += part * (r * r) * (r * r) * abs(s)
            else:
                a = v * math.log(2.0 * v / total) if v > 0.0 else 0.0
                b = w * math.log(2.0 * w / total) if w > 0.0 else 0.0
                even += a + b
                odd += d - a + b
                size += abs(a) + abs(b) + abs(d)
        slope = (abs(odd) + 2.0 * W.shape[1] * U * (even + 2.0 * size) + ODD * rest) * up
        off = slope * min(OFF, 0.5 * SHARE * slope / chi) if chi > 0.0 else 0.0
        out[j] = (0.5 * even + off + 2.0 * W.shape[1] * U * size) * up


@kernel(error_model="numpy")
def negative_entropies(W: Matrix, start: int, stop: int, out: Vector) -> None:
    """Write sum_y w ln w - w for rows start <= x < stop."""
    for x in range(start, stop):
        total = 0.0
        for y in range(W.shape[1]):
            w = W[x, y]
            if w > 0.0:
                total += w * math.log(w) - w
        out[x] = total


@kernel()
def row_dots(W: Matrix, rows: Ints, v: Vector, start: int, stop: int, out: Vector) -> None:
    """Write the products of some rows with a vector at the places of the rows in ``out``."""
    for j in range(start, stop):
        out[rows[j]] = dot(W[rows[j]], v)


@helper(error_model="numpy", fastmath={"contract", "reassoc"})
def _apart(W, i, j):
    """Return sum_y (v - w)^2/(v + w) of two rows v, w."""
    total = 0.0
    for y in range(W.shape[1]):
        d = W[i, y] - W[j, y]
        total += d * d / max(W[i, y] + W[j, y], 1e-300)
    return total


@kernel()
def row_distances(W: Matrix, rows: Ints, center: int, start: int, stop: int, out: Vector) -> None:
    """Write sum_y (v - w)^2/(v + w) between some rows and one: out[j] for rows[j]."""
    for j in range(start, stop):
        out[j] = _apart(W, rows[j], center)
