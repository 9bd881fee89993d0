"""Best weights for a bound, from points that a convex set is known to contain.

The weights are used only to guide the search. The bound that they prove is computed elsewhere, so
nothing here has to be exact.
"""

from __future__ import annotations

import math

import numpy as np

from fastpriv._core.validation import Floats

#: Accuracy of the logarithmic barrier.
_ACCURATE = 1e-8
#: Largest slope in units of the point of reference.
_STEEP = 1e4


def best_tangents(
    points: Floats, reference: Floats, low: float, high: float
) -> tuple[float, float, float, float]:
    """Return alpha, m, D with the smallest k + D - 2 - ln alpha - ln beta, and that value.

    For all points (t, s, A), alpha A + beta - m t <= D s; and k >= m tau - ln tau at both bounds of
    an interval of tau. Convex in (alpha, beta, m, k, D). Newton's method with a barrier, in units
    of a point of reference.
    """
    t, s, A = points.T
    unit_t, unit_s, unit_A = np.maximum(reference, 1e-300)
    tau = unit_t / unit_s
    ends = np.array([low, high]) / tau
    cone = np.stack([A / unit_A * unit_s, np.full(len(s), unit_s), -t / tau, 0.0 * s, -s], axis=1)
    cone /= np.abs(cone).max(axis=1, keepdims=True)
    line = np.stack([0.0 * ends, 0.0 * ends, ends, -np.ones(2), 0.0 * ends], axis=1)
    walls = np.array([[0.0, 0.0, 1.0, 0.0, 0.0], [0.0, 0.0, -1.0, 0.0, 0.0]])
    G = np.vstack([cone, line, walls])
    h = np.concatenate([np.zeros(len(s)), np.log(ends), [_STEEP, _STEEP]])
    x = _start(cone, ends)
    weight = 1.0
    while len(h) / weight > _ACCURATE:
        weight *= 100.0
        x = _centred(x, G, h, weight)
    alpha, beta, m, k, D = x.tolist()
    shift = math.log(unit_A) - math.log(unit_s) - math.log(unit_s) - math.log(tau)
    value = k + D - 2.0 - math.log(alpha) - math.log(beta) + shift
    return alpha * unit_s / unit_A, m / tau, D, value


def _start(cone: Floats, ends: Floats) -> Floats:
    """Return a point that satisfies every inequality strictly."""
    beta, m = 1.0, 1.0
    never = cone[:, 4] > -1e-290  # s = 0, or nearly: beta <= m t has to hold
    if never.any():
        beta = min(1.0, 0.25 * float((-cone[never, 2] / cone[never, 1]).min()))
        beta = max(beta, 1e-300)
    k = float((m * ends - np.log(ends)).max()) + 1.0
    used = cone[~never]
    D = float(((used[:, 0] + beta * used[:, 1] + m * used[:, 2]) / -used[:, 4]).max()) + 1.0
    return np.array([1.0, beta, m, k, D])


def _centred(x: Floats, G: Floats, h: Floats, weight: float) -> Floats:
    """Minimise weight (k + D - ln alpha - ln beta) minus the logs of the slacks."""
    cost = weight * np.array([0.0, 0.0, 0.0, 1.0, 1.0])

    def value(x: Floats) -> float:
        slack = h - G @ x
        if not (x[:2] > 0.0).all() or not (slack > 0.0).all():
            return math.inf
        return float(cost @ x - weight * np.log(x[:2]).sum() - np.log(slack).sum())

    now = value(x)
    for _ in range(30):
        slack = h - G @ x
        gradient = cost + G.T @ (1.0 / slack)
        gradient[:2] -= weight / x[:2]
        scaled = G / slack[:, None]
        hessian = scaled.T @ scaled
        hessian[[0, 1], [0, 1]] += weight / x[:2] ** 2
        hessian[np.diag_indices(5)] *= 1.0 + 1e-14
        try:
            step = -np.linalg.solve(hessian, gradient)
        except np.linalg.LinAlgError:
            return x
        decrease, length = -float(gradient @ step), 1.0
        if not decrease > 1e-3:
            return x
        while (new := value(x + length * step)) > now - 0.1 * length * decrease:
            length *= 0.4
            if length < 1e-6:
                return x
        x, now = x + length * step, new
    return x
