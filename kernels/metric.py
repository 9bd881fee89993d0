"""Privacy that scales with a distance: pairs of inputs x, z whose ratio is bounded by a factor.

An output is a vector v over inputs, and ``bound[x, z]`` = e^(epsilon d(x, z)) bounds v[x] / v[z].
Outputs are the rows of a matrix. A working set of pairs has, for output k, the entries
``starts[k]`` to ``starts[k + 1]`` of ``source`` and ``target``.
"""

import math

from .arrays import NORMAL
from .declare import (
    BoolCube,
    BoolMatrix,
    Ints,
    Matrix,
    ShortMatrix,
    Shorts,
    Vector,
    helper,
    kernel,
)

LOG_2 = math.log(2.0)


@kernel()
def metric_spanner(distance: Matrix, tolerance: float, keep: BoolMatrix) -> None:
    """Mark the pairs that no shorter chain implies: no z has d(x, z) + d(z, y) <= d(x, y)."""
    size = distance.shape[0]
    for x in range(size):
        keep[x, x] = False
        for y in range(x):
            most = distance[x, y] * (1.0 + tolerance)
            needed = most < math.inf
            if needed:
                for z in range(size):
                    if z != x and z != y and distance[x, z] + distance[y, z] <= most:
                        needed = False
                        break
            keep[x, y] = keep[y, x] = needed


@kernel()
def metric_closure(v: Matrix, shrink: Matrix, first: int, last: int, out: Matrix) -> None:
    """Set out[k, x] = max over z of shrink[x, z] v[k, z] for the outputs first to last - 1."""
    for k in range(first, last):
        for x in range(v.shape[1]):
            best = v[k, x]
            for z in range(v.shape[1]):
                best = max(best, shrink[x, z] * v[k, z])
            out[k, x] = best


@kernel()
def metric_level(
    entries: Matrix,
    mantissa: Matrix,
    exponent: Matrix,
    distance: Matrix,
    slack: float,
    first: int,
    last: int,
) -> float:
    """Largest (ln V[x, y] - ln V[z, y] + slack) / distance[x, z], V = mantissa 2^exponent.

    ``entries`` are V with every column divided by a power of two. Gains a/b - 1 are taken from
    differences, which keep their digits if rows are close. An output that is impossible for
    both is ignored.
    """
    worst = 0.0
    for x in range(first, last):
        for z in range(entries.shape[0]):
            if z != x and distance[x, z] < math.inf:
                gain, most = 0.0, 0.0
                for y in range(entries.shape[1]):
                    a, b = entries[x, y], entries[z, y]
                    if b >= NORMAL:
                        gain = max(gain, (a - b) / b)
                    elif mantissa[x, y] > 0.0:
                        shift = exponent[x, y] - exponent[z, y]
                        most = max(most, _log_ratio(mantissa[x, y], mantissa[z, y], shift))
                worst = max(worst, (max(most, math.log1p(gain)) + slack) / distance[x, z])
    return worst


@helper()
def _log_ratio(a, b, shift):
    """Return ln(a 2^shift / b) if that is positive, of mantissas from 1/2 to 1 or b = 0."""
    if b == 0.0:
        return math.inf
    if shift > 1.0:
        return math.log(a / b) + shift * LOG_2
    if shift < -1.0:
        return 0.0
    return math.log1p(max((a * 2.0**shift - b) / b, 0.0))


@kernel()
def metric_slack(
    v: Matrix, bound: Matrix, starts: Ints, source: Shorts, target: Shorts, out: Vector
) -> None:
    """Set out = bound v[target] - v[source] for the working set."""
    for k in range(v.shape[0]):
        for e in range(starts[k], starts[k + 1]):
            out[e] = bound[source[e], target[e]] * v[k, target[e]] - v[k, source[e]]


@kernel()
def metric_adjoint(
    weight: Vector, bound: Matrix, starts: Ints, source: Shorts, target: Shorts, out: Matrix
) -> None:
    """Set out to the transpose of `metric_slack` applied to the weights."""
    out[:] = 0.0
    for k in range(out.shape[0]):
        for e in range(starts[k], starts[k + 1]):
            out[k, target[e]] += bound[source[e], target[e]] * weight[e]
            out[k, source[e]] -= weight[e]


@kernel()
def metric_normal(
    weight: Vector, bound: Matrix, source: Shorts, target: Shorts, out: Matrix
) -> None:
    """Set out = A' diag(weight) A for the pairs of one output."""
    out[:] = 0.0
    for e in range(weight.shape[0]):
        s, t, w = source[e], target[e], weight[e]
        a = bound[s, t]
        out[s, s] += w
        out[t, t] += a * a * w
        out[s, t] -= a * w
        out[t, s] -= a * w


@kernel()
def metric_nearest(
    v: Matrix,
    bound: Matrix,
    member: BoolCube,
    limit: float,
    first: int,
    last: int,
    out: ShortMatrix,
) -> None:
    """For each output and x, find the pair outside the set that is closest to being tight.

    ``out[k, x]`` is its z, or -1 if bound[x, z] v[z] / v[x] is above the limit for all z.
    """
    for k in range(first, last):
        for x in range(v.shape[1]):
            nearest, least = -1, limit * v[k, x]
            for z in range(v.shape[1]):
                reach = bound[x, z] * v[k, z]
                if reach < least and not member[k, x, z]:
                    nearest, least = z, reach
            out[k, x] = nearest
