"""Distributions of largest score plus entropy, with a range for every input and for every slice.

Inputs x come in slices a(x) and stand for k_x databases each, given by their logarithms. Under
low <= p_x <= high and least <= P(a) <= most, the largest value of L p + t H(X) is at

    p_x = k_x e^((L_x - nu_a)/t - 1), cut off at the bounds of its range,

and for any nu, nu_a nothing is above

    U = nu + sum_a max((nu_a - nu) least_a, (nu_a - nu) most_a)
          + sum_x (L_x - nu_a) p_x + t p_x ln(k_x/p_x).

For any other distribution p' in the ranges the value is at most

    U - t D(p' || p) - sum_x push_x |p'_x - p_x|,

where push_x is the slope at an input that is cut off.
"""

import math

from .declare import helper

SMALLEST = 300.0  # -ln of the smallest weight over the largest: others are raised, and so is U
HALVINGS = 60
TINY = 1e-30  # replaces a bound of a range that is zero
FAR = 350.0  # distance between logarithms of scales


@helper(error_model="numpy")
def _mass(scale, weight, low, high, first, last):
    """Sum of the weights times a scale, cut off at the bounds of their ranges."""
    total = 0.0
    for x in range(first, last):
        total += min(max(scale * weight[x], low[x]), high[x])
    return total


@helper(error_model="numpy")
def _scale(weight, low, high, first, last, target):
    """Return the scale at which the mass is the target, or the nearest that it can be."""
    below, above = math.inf, -math.inf
    for x in range(first, last):
        below = min(below, math.log(max(low[x], TINY) / weight[x]))
        above = max(above, math.log(max(high[x], TINY) / weight[x]))
    for _ in range(HALVINGS):
        middle = 0.5 * (below + above)
        if _mass(math.exp(middle), weight, low, high, first, last) < target:
            below = middle
        else:
            above = middle
    return math.exp(above)


@helper(error_model="numpy")
def _common_scale(weight, low, high, least, most, edges):
    """Return the scale at which all masses sum to one, with slices in their ranges."""
    last = weight.size
    scale = _scale(weight, low, high, 0, last, 1.0)
    below, above = math.log(scale) - FAR, math.log(scale) + FAR
    for _ in range(HALVINGS):
        middle = 0.5 * (below + above)
        total = 0.0
        for a in range(least.size):
            own = _mass(math.exp(middle), weight, low, high, edges[a], edges[a + 1])
            total += min(max(own, least[a]), most[a])
        if total < 1.0:
            below = middle
        else:
            above = middle
    return math.exp(above)


@helper(error_model="numpy")
def truncated_gibbs(L, logs, low, high, least, most, edges, t, p, push, weight):
    """Write the best p and the slopes push; return U, the entropy and the size of all terms.

    Scores so low that weights would underflow are raised, in L as well, which raises U.
    """
    top, largest = -math.inf, 0.0
    for x in range(L.size):
        top = max(top, L[x] / t + logs[x])
    for x in range(L.size):
        L[x] = max(L[x], t * (top - logs[x] - SMALLEST))
        weight[x] = math.exp(L[x] / t + logs[x] - top)
        largest = max(largest, abs(L[x]) + t * logs[x])
    common = _common_scale(weight, low, high, least, most, edges)
    nu = -t * (1.0 + math.log(common) - top)
    value, entropy, size = nu, 0.0, abs(nu)
    for a in range(least.size):
        first, last = edges[a], edges[a + 1]
        own, scale = _mass(common, weight, low, high, first, last), common
        if own < least[a]:
            scale = _scale(weight, low, high, first, last, least[a])
        elif own > most[a]:
            scale = _scale(weight, low, high, first, last, most[a])
        level = -t * (1.0 + math.log(scale) - top)
        value += max((level - nu) * least[a], (level - nu) * most[a])
        size += abs(level)
        for x in range(first, last):
            p[x] = min(max(scale * weight[x], low[x]), high[x])
            depth = logs[x] - math.log(p[x])
            entropy += p[x] * depth
            value += p[x] * (L[x] - level + t * depth)
            slope = L[x] - level + t * (depth - 1.0)
            push[x] = 0.0
            if p[x] >= high[x]:
                push[x] = max(slope, 0.0)
            elif p[x] <= low[x]:
                push[x] = max(-slope, 0.0)
    return value, entropy, size + largest + t * (abs(top) + SMALLEST)
