"""Ranges of posteriors that a distribution within reach of a bound can have.

The distribution p = alpha_a pi_x attains the largest value U of a bound at the multiplier t. The
bound at another distribution p' is at most U minus

    cost(p') = t sum_a p'_a D(pi'_a || pi_a) + (1 + t) D(p'_A || alpha).

So a distribution with a value above a floor costs less than gap = U - floor. Then for every nu > 0

    sum_x p'_x phi_x <= nu gap + nu (1 + t) ln sum_a alpha_a M_a^(t/(1 + t)),
    M_a = sum_x pi_x e^(phi_x/(nu t)).

With phi_x = W_xy (a_x - u) this is negative only if the posterior of y is below u.
"""

import math

import numpy as np

from .declare import helper

LEAST = 1e-12  # probability of a value, or of an output, that is looked at
TRIALS = 5  # bounds that are tried, from the nearest on
STEEPEST = 200.0  # of an exponent: beyond, sums of exponentials might overflow
U = 2.0**-53


@helper(error_model="numpy")
def _most(W, y, sign, u, first, p, alpha, t, nu, gap):
    """Bound sign * sum p' W (a - u) over distributions within the gap, rounded up."""
    each = sign / (nu * t)
    if not abs(each) < STEEPEST:
        return math.inf
    M = np.zeros(2)
    for x in range(p.size):
        if x < first:
            M[0] += p[x] / alpha[0] * math.exp(each * W[x, y] * (1.0 - u))
        else:
            M[1] += p[x] / alpha[1] * math.exp(-each * W[x, y] * u)
    share = t / (1.0 + t)
    total = alpha[0] * M[0] ** share + alpha[1] * M[1] ** share
    doubt = (4 * p.size + 64) * U * (1.0 + abs(each))  # sums, and their exponents
    return nu * (gap + (1.0 + t) * (math.log(total) + doubt))


@helper(error_model="numpy")
def narrow_by_reach(low, high, W, first, p, t, gap):
    """Narrow the ranges to posteriors of distributions within the gap; whether any are left."""
    inputs, outputs = W.shape
    alpha = np.zeros(2)
    for x in range(inputs):
        alpha[0 if x < first else 1] += p[x]
    if not (alpha[0] > LEAST and alpha[1] > LEAST and t > 0.0 and 0.0 < gap < math.inf):
        return True
    mean = np.empty(2)
    for y in range(outputs):
        mean[0], mean[1], within = 0.0, 0.0, 0.0
        for x in range(inputs):
            mean[0 if x < first else 1] += p[x] * W[x, y]
        P = mean[0] + mean[1]
        if P < LEAST:
            continue
        Q = mean[0] / P
        mean[0] /= alpha[0]
        mean[1] /= alpha[1]
        for x in range(inputs):
            a = 0 if x < first else 1
            lever = 1.0 - Q if a == 0 else Q
            within += p[x] * (lever * (W[x, y] - mean[a])) ** 2
        across = alpha[0] * alpha[1] * ((1.0 - Q) * mean[0] + Q * mean[1]) ** 2
        spread = within / t + across / (1.0 + t)
        step = math.sqrt(2.0 * gap * spread) / P
        nu = math.sqrt(0.5 * spread / gap)
        if not (step > 0.0 and nu > 0.0):
            continue
        for side in range(2):
            sign = 1.0 if side == 0 else -1.0
            for k in range(TRIALS):
                factor = 1.05 + 0.1 * k * (1 + k)
                u = Q + sign * factor * step
                if (side == 0 and u >= high[y]) or (side == 1 and u <= low[y]):
                    break
                if (
                    min(
                        _most(W, y, sign, u, first, p, alpha, t, nu, gap),
                        _most(W, y, sign, u, first, p, alpha, t, 1.6 * nu, gap),
                    )
                    < 0.0
                ):
                    if side == 0:
                        high[y] = u
                    else:
                        low[y] = u
                    break
        if low[y] > high[y]:
            return False
    return True
