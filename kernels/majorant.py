"""Quadratic functions above divergences of outputs, over distributions of inputs in a box.

With phi(z) = (1+z) ln(1+z) - z, D(v || w) is the sum of w phi(v/w - 1), and 2 phi(z)/z^2 falls in
z. So D is at most a sum of weighted squares (v - w)^2/2, with weights from the smallest v, and at
least such a sum with weights from the largest v. See ``boxes.py``.
"""

import math

import numpy as np

from .declare import helper

WIDER = 1e-9  # relative widening of ranges, far above their rounding
RARE = 0.25  # slices with a smaller ratio least/most are bounded as if inputs were revealed


@helper(error_model="numpy")
def bend(z):
    """Return 2 phi(z)/z^2, which falls from 2 at z = -1."""
    if z <= -1.0:
        return 2.0
    if abs(z) < 1e-3:
        return 1.0 - z / 3.0 + z * z / 6.0 - z * z * z / 10.0
    return 2.0 * (math.log1p(z) * (1.0 + z) / z - 1.0) / z


@helper(error_model="numpy")
def most_likely(y, low, high, W, order):
    """Return the largest probability of output y over distributions in the box."""
    mass, total = 0.0, 0.0
    for x in range(low.size):
        mass += low[x]
        total += low[x] * W[x, y]
    for k in range(low.size - 1, -1, -1):
        x = order[y, k]
        step = max(min(high[x] - low[x], 1.0 - mass), 0.0)
        mass += step
        total += step * W[x, y]
    return total


@helper(error_model="numpy")
def least_likely(y, first, last, low, high, least, most, W, order):
    """Return the smallest probability of output y given a slice, over distributions in the box.

    The least likely inputs are filled first. Mass beyond the minimum is taken while it lowers
    the mean.
    """
    mass, total = 0.0, 0.0
    for x in range(first, last):
        mass += low[x]
        total += low[x] * W[x, y]
    for k in range(low.size):
        x = order[y, k]
        if first <= x < last:
            limit = most if W[x, y] * mass < total else least
            step = max(min(high[x] - low[x], limit - mass), 0.0)
            mass += step
            total += step * W[x, y]
    return total / mass if mass > 0.0 else 0.0


@helper(error_model="numpy")
def majorant(low, high, least, most, W, edges, order, V, q, S, A):
    """Write A, with p A p/2 above sum_a P(a) D(W_a || V_a) - D(W_p || q); return its size.

    W_a and W_p are the output distributions of slice a and of all inputs under p; ``V`` and ``q``
    are those at the center. ``S`` receives the weights of squared differences of W_a and V_a.
    """
    inputs, outputs = W.shape
    B = np.empty(outputs)
    for y in range(outputs):
        B[y] = bend(max(most_likely(y, low, high, W, order) / q[y], 1.0) * (1.0 + WIDER) - 1.0)
        B[y] /= q[y]
        for a in range(least.size):
            S[a, y] = 0.0
            if V[a, y] > 0.0 and least[a] >= RARE * most[a]:
                lowest = least_likely(
                    y, edges[a], edges[a + 1], low, high, least[a], most[a], W, order
                )
                z = min(lowest / V[a, y] * (1.0 - WIDER) - 1.0, -WIDER)
                S[a, y] = bend(z) / (least[a] * V[a, y])
    for x in range(inputs):
        for u in range(x + 1):
            A[x, u] = 0.0
            for y in range(outputs):
                A[x, u] -= B[y] * (W[x, y] - q[y]) * (W[u, y] - q[y])
    size = 0.0
    for a in range(least.size):
        for x in range(edges[a], edges[a + 1]):
            own = 0.0
            for y in range(outputs):
                each = S[a, y] * (W[x, y] - V[a, y])
                own += each * (W[x, y] - V[a, y])
            size = max(size, 2.0 * own - A[x, x])
            for u in range(edges[a], x + 1):
                for y in range(outputs):
                    A[x, u] += S[a, y] * (W[x, y] - V[a, y]) * (W[u, y] - V[a, y])
    for x in range(inputs):
        for u in range(x):
            A[u, x] = A[x, u]
    return size
