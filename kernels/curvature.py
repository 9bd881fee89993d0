"""How far the information about a bit stays below the chords over ranges of its posteriors.

The distribution p = alpha_a pi_x attains the largest value U of the bound with chords, at
multiplier t (see ``posterior.py``). For any other distribution p' in the ranges, entropies cost

    U - bound(p') = t sum_a p'_a D(pi'_a || pi_a) + (1 + t) D(p'_A || alpha),

and the chord over a range [l, u] of width w and middle m, where f'' >= k, is above f by at least
k (Q - l)(u - Q)/2 = min over |c| <= w/2 of k (w^2/4 + c^2 - 2 c (Q - m))/2. So nothing is above
U plus the largest value, over c in a box, of

    (1 + t) ln sum_a alpha_a (sum_x pi_x e^(h_x(c)/t))^(t/(1 + t)),
    h_x(c) = sum_y k_y W_xy (c_y (a_x - m_y) - c_y^2/2 - w_y^2/8).

By Bennett's inequality, ln E e^X <= E X + Var(X) R(M)/2 for X - E X <= M and
R(M) = 2 (e^M - 1 - M)/M^2, this is at most a quadratic function of c.
"""

import math

import numpy as np

from .declare import helper

SWEEPS = 12  # of the ascent in the box
POWERS = 12  # steps towards the largest eigenvalue
SHARES = 6  # of the curvature that are tried: 1, 1/2, 1/4 ...
NARROW = 1e-9  # a range whose curvature is not counted
LEAST = 1e-12  # probability of a value
STEEPEST = 30.0  # of an exponent: beyond, errors of covariances might count


@helper(error_model="numpy")
def _excess(M):
    """Return R(M) = 2 (e^M - 1 - M)/M^2, rounded up."""
    if M < 1e-2:
        return 1.0 + 0.34 * M
    return 2.0 * (math.expm1(M) - M) / (M * M) * (1.0 + 1e-10)


@helper(error_model="numpy")
def _least_bend(low, high, look):
    """Bound f'' = sum_z u_z v_z / (q (1-q) (q u_z + (1-q) v_z)) from below over a range of q."""
    q = min(max(0.5, low), high)
    total = 0.0
    for z in range(look.shape[1]):
        u, v = look[0, z], look[1, z]
        most = max(low * u + (1.0 - low) * v, high * u + (1.0 - high) * v)
        if most > 0.0:
            total += u * v / most
    return total / (q * (1.0 - q)) * (1.0 - 1e-12)


@helper(error_model="numpy")
def _definite(H, work):
    """Whether a symmetric matrix is positive definite, by its Cholesky factor."""
    size = H.shape[0]
    for i in range(size):
        for j in range(i + 1):
            total = H[i, j]
            for k in range(j):
                total -= work[i, k] * work[j, k]
            if i == j:
                if not total > 1e-9:
                    return False
                work[i, i] = math.sqrt(total)
            else:
                work[i, j] = total / work[j, j]
    return True


@helper(error_model="numpy")
def _top(N, v, w):
    """Estimate the largest eigenvalue of N."""
    size, value = N.shape[0], 0.0
    for i in range(size):
        v[i] = 1.0 + 0.1 * (i % 3)
    for _ in range(POWERS):
        norm = 0.0
        for i in range(size):
            total = 0.0
            for j in range(size):
                total += N[i, j] * v[j]
            w[i] = total
            norm += total * total
        norm = math.sqrt(norm)
        if norm == 0.0:
            return 0.0
        before = 0.0
        for i in range(size):
            before += v[i] * v[i]
        value = norm / math.sqrt(before)
        for i in range(size):
            v[i] = w[i] / norm
    return value


@helper(error_model="numpy")
def _largest(L, H, reach, z):
    """Bound L z - z H z/2 over |z| <= reach from above, for a positive definite H."""
    size = L.size
    for i in range(size):
        z[i] = 0.0
    for _ in range(SWEEPS):
        for i in range(size):
            slope = L[i]
            for j in range(size):
                if j != i:
                    slope -= H[i, j] * z[j]
            z[i] = min(max(slope / H[i, i], -reach[i]), reach[i])
    value = 0.0
    for i in range(size):
        slope = L[i]
        for j in range(size):
            slope -= H[i, j] * z[j]
        value += 0.5 * (L[i] + slope) * z[i]
        value += max(slope * (reach[i] - z[i]), slope * (-reach[i] - z[i]))
    return value


@helper(error_model="numpy")
def curvature_gain(low, high, look, W, first, p, t):
    """Return an amount to subtract from the value U of the chords at p, rounded down."""
    inputs, K = W.shape
    alpha, V = np.zeros(2), np.zeros((2, K))
    for x in range(inputs):
        a = 0 if x < first else 1
        alpha[a] += p[x]
        for y in range(K):
            V[a, y] += p[x] * W[x, y]
    if not (alpha[0] > LEAST and alpha[1] > LEAST and t > 0.0):
        return 0.0
    bend, mid, width, P, Q = np.zeros(K), np.zeros(K), np.zeros(K), np.zeros(K), np.zeros(K)
    for y in range(K):
        mid[y], width[y], P[y] = 0.5 * (low[y] + high[y]), high[y] - low[y], V[0, y] + V[1, y]
        if y < K - 1 and width[y] > NARROW and P[y] > 0.0:
            bend[y], Q[y] = _least_bend(low[y], high[y], look), V[0, y] / P[y]
        V[0, y] /= alpha[0]
        V[1, y] /= alpha[1]
    lever = np.empty((2, K))
    for y in range(K):
        lever[0, y], lever[1, y] = 1.0 - mid[y], -mid[y]
    # Covariances of the output distributions within each slice.
    cov = np.zeros((2, K, K))
    for x in range(inputs):
        a = 0 if x < first else 1
        for y in range(K):
            step = p[x] / alpha[a] * (W[x, y] - V[a, y])
            for k in range(y + 1):
                cov[a, y, k] += step * (W[x, k] - V[a, k])
    spread, even, flat = np.zeros(2), np.zeros(2), np.zeros(2)  # deviations at all of the curvature
    for a in range(2):
        for y in range(K):
            own = math.sqrt(max(cov[a, y, y], 0.0))
            spread[a] += (bend[y] * lever[a, y] * 0.5 * width[y] * own) ** 2
            flat[a] += bend[y] * abs(lever[a, y]) * 0.5 * width[y] * own
            even[a] += bend[y] * width[y] ** 2 / 16.0 * own
            for k in range(y):
                cov[a, k, y] = cov[a, y, k]
        total = 0.0
        for y in range(K):
            for k in range(K):
                both = bend[y] * width[y] ** 2 * bend[k] * width[k] ** 2
                total += 9.0 / 256.0 * both * cov[a, y, k]
        even[a] += math.sqrt(max(total, 0.0))
        spread[a] = math.sqrt(spread[a])
    top = np.zeros(2)  # the most that h exceeds its mean in a slice
    for x in range(inputs):
        a = 0 if x < first else 1
        total = 0.0
        for y in range(K):
            apart = W[x, y] - V[a, y]
            total += bend[y] * width[y] * (0.5 * abs(apart * lever[a, y]) - 0.25 * width[y] * apart)
        top[a] = max(top[a], total)
    delta, far, common, shift = np.zeros(K), 0.0, 0.0, 0.0
    for y in range(K):
        delta[y] = bend[y] * (V[0, y] * lever[0, y] - V[1, y] * lever[1, y])
        far += 0.5 * delta[y] * width[y]
        common += bend[y] * abs(V[0, y] - V[1, y]) * width[y] ** 2 / 16.0
        shift += bend[y] * (V[0, y] - V[1, y]) * width[y] ** 2 * 3.0 / 16.0
    common += abs(shift)
    root, reach, L = np.zeros(K), np.zeros(K), np.zeros(K)
    for y in range(K):
        root[y] = math.sqrt(bend[y] * P[y])
    N, H, work = np.empty((K, K)), np.empty((K, K)), np.zeros((K, K))
    v, w = np.empty(K), np.empty(K)
    best, share = 0.0, 2.0
    for _ in range(SHARES):
        share *= 0.5
        across = share * (far + common) / (1.0 + t)
        outer = _excess(across) / (1.0 + t) * alpha[0] * alpha[1]
        ratio = common / far if far > 0.0 else 1.0
        left = 0.5 * (1.0 + 1.0 / max(ratio, 1e-3)) * outer * (share * common) ** 2
        outer *= 1.0 + max(ratio, 1e-3)
        inner, worst, steepest = np.zeros(2), 0.0, across
        for a in range(2):
            inner[a] = _excess(share * top[a] / t) / t
            steepest = max(steepest, share * top[a] / t)
            worst = max(worst, 0.5 * inner[a] * (share * (flat[a] + even[a])) ** 2 / (1.0 + t))
        if not (worst <= STEEPEST and steepest <= STEEPEST):
            continue
        scale = math.exp(across) * (math.expm1(worst) / worst if worst > 1e-9 else 1.0 + 1e-8)
        for a in range(2):
            inner[a] *= scale * alpha[a]
            ratio = max(even[a] / spread[a], 1e-3) if spread[a] > 0.0 else 1.0
            left += 0.5 * (1.0 + 1.0 / ratio) * inner[a] * (share * even[a]) ** 2
            inner[a] *= 1.0 + ratio
        room, size = 0.0, 0.0
        for y in range(K):
            reach[y] = math.sqrt(share) * root[y] * 0.5 * width[y]
            L[y] = math.sqrt(share) * root[y] * (Q[y] - mid[y])
            room += 0.5 * reach[y] ** 2
            size += share * root[y] ** 2 * width[y]
            for k in range(K):
                N[y, k] = 0.0
                if root[y] > 0.0 and root[k] > 0.0:
                    total = outer * delta[y] * delta[k]
                    for a in range(2):
                        each = bend[y] * lever[a, y] * bend[k] * lever[a, k]
                        total += inner[a] * each * cov[a, y, k]
                    N[y, k] = share * total / (root[y] * root[k])
        lack = max(0.0, 1.01 * _top(N, v, w) - 1.0)
        if lack >= 1.0:
            continue
        for y in range(K):
            for k in range(K):
                H[y, k] = -N[y, k]
            H[y, y] += 1.0 + lack
        if not _definite(H, work):
            lack = 1.1 * lack + 0.1
            for y in range(K):
                H[y, y] = 1.0 + lack - N[y, y]
            if not _definite(H, work):
                continue
        gain = room * (1.0 - lack) - _largest(L, H, reach, v) - left
        doubt = (2.0**-30 + (inputs + K + 64) * 2.0**-50 / t) * (size + room)
        if gain - doubt > best:  # not if it is NaN
            best = gain - doubt
    return best
