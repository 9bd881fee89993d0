"""Steps that the convex programs share: divergences, sums of exponentials, Newton's method."""

import math

from .arrays import largest
from .declare import Vector, helper, kernel

RIDGE = 1e-12  # relative, added to the diagonal of a Newton matrix


@kernel(small=True, error_model="numpy")
def divergence(w: float, q: float, diff: float) -> float:
    """Return w ln(w/q) - w + q, given diff = w - q; three good to a few ulp give it to 100.

    With s = diff/(w + q), ln(w/q) = 2 atanh(s) and w 2 s - diff = s diff: nothing cancels.
    """
    if w == 0.0:
        return -diff
    s = diff / (w + q)
    if abs(s) > 0.2:
        return w * math.log(w / q) - diff
    z = s * s
    tail = 0.0
    for k in range(21, 1, -2):
        tail = tail * z + 2.0 / k
    return s * diff + w * s * z * tail


@kernel(small=True, error_model="numpy")
def divergence_terms(w: Vector, q: Vector, diff: Vector, out: Vector) -> None:
    """Write the divergence of every entry of w from the entry of q."""
    for y in range(w.size):
        out[y] = divergence(w[y], q[y], diff[y])


@helper(error_model="numpy")
def log_sum(g, logs, first, last, s, pi):
    """Write the Gibbs distribution of g[first:last] at s; return s ln sum e^(g/s + logs)."""
    top = -math.inf
    for x in range(first, last):
        pi[x] = g[x] / s + logs[x]
        top = max(top, pi[x])
    total = 0.0
    for x in range(first, last):
        pi[x] = math.exp(pi[x] - top)
        total += pi[x]
    for x in range(first, last):
        pi[x] /= total
    return s * (top + math.log(total))


@helper(error_model="numpy")
def log_total(logs):
    """Bound ln sum e^logs from above."""
    return largest(logs) + math.log(logs.size)


@helper(error_model="numpy")
def add_square(H, v, weight):
    """Add weight v v' to the lower triangle of H."""
    for i in range(v.size):
        if v[i] != 0.0:
            step = weight * v[i]
            for j in range(i + 1):
                H[i, j] += step * v[j]


@helper(error_model="numpy")
def newton_step(H, G, step):
    """Solve H step = -G by a Cholesky factor in place of the lower triangle of H.

    Returns whether H is positive definite. If it is not, the step is of no use.
    """
    size, definite = G.size, True
    for i in range(size):
        for j in range(i):
            total = H[i, j]
            for k in range(j):
                total -= H[i, k] * H[j, k]
            H[i, j] = total / H[j, j]
        total = H[i, i] * (1.0 + RIDGE)
        for k in range(i):
            total -= H[i, k] * H[i, k]
        definite = definite and total > RIDGE * H[i, i]
        H[i, i] = math.sqrt(max(total, 1e-15 * H[i, i], 1e-300))
    for i in range(size):
        total = -G[i]
        for k in range(i):
            total -= H[i, k] * step[k]
        step[i] = total / H[i, i]
    for i in range(size - 1, -1, -1):
        step[i] /= H[i, i]
        for k in range(i):
            step[k] -= H[i, k] * step[i]
    return definite
