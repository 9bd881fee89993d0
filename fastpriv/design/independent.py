"""Rate-distortion of independent rows with Hamming distance: a closed form at every slope.

With K = e^(-slope [x != y]) on one row, the optimal output law keeps the k likeliest values and
takes the same amount off each, q(y) = p(y) (1 + k a)/P_k - a with a = 1/(e^slope - 1) and P_k
their probability (Gallager 1968, Section 9.6). All rows share the slope.
"""

from __future__ import annotations

import math

import numpy as np

from fastpriv._core.rounding import ULP, lowered
from fastpriv._core.validation import Floats
from fastpriv.priors import Product

#: Slopes beyond this cannot be told from infinity: e^-700 is the end of the doubles.
STEEPEST = 700.0


def common_slope(prior: Product, target: float) -> float:
    """Slope at which the rows' distortions add up to the target."""
    from scipy.optimize import brentq

    laws = [np.sort(law)[::-1] for law in prior.distinct]
    aim = lowered(target, 32.0)  # so that rounding leaves us on the right side

    def surplus(slope: float) -> float:
        return prior.total([_row_distortion(law, slope) for law in laws]) - aim

    low = high = 1.0
    while low > 1e-300 and surplus(low) < 0.0:
        low *= 0.25
    while high < STEEPEST and surplus(high) > 0.0:
        high = min(2.0 * high, STEEPEST)
    if surplus(low) <= 0.0 or surplus(high) >= 0.0:
        return low if surplus(low) <= 0.0 else high
    return float(brentq(surplus, low, high, xtol=1e-300, rtol=8 * ULP))


def _live(law: Floats, slope: float) -> int:
    """How many values of a row, likeliest first, still come out at a slope.

    The k-th does while p_k (e^slope - 1) exceeds the sum over j < k of p_j - p_k.
    """
    grow = math.expm1(slope) if slope < STEEPEST else math.inf
    ahead = np.cumsum(law) - np.arange(1, len(law) + 1) * law
    with np.errstate(invalid="ignore"):
        return max(1, int(np.count_nonzero((law > 0.0) & (law * grow > ahead))))


def _row_distortion(law: Floats, slope: float) -> float:
    k, r = _live(law, slope), math.exp(-slope)
    return float(law[:k].sum()) * (k - 1) * r / (1.0 + (k - 1) * r) + float(law[k:].sum())


def tilted_row(law: Floats, slope: float) -> Floats:
    """Return W[x, y], the row's optimal channel at a slope."""
    m, r = len(law), math.exp(-slope)
    order = np.argsort(-law, kind="stable")
    top = law[order]
    k = _live(top, slope)
    a = 1.0 / math.expm1(slope) if slope < STEEPEST else r
    q = np.zeros(m)
    mass = top[:k].sum()
    # p (1 + k a)/P - a, from differences of probabilities.
    q[order[:k]] = np.maximum(top[:k] + a * (k * top[:k] - mass), 0.0) / mass
    joint = np.full((m, m), r) * q
    np.fill_diagonal(joint, q)
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))
