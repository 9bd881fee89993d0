"""Largest information under laws of at least some entropy, for an input of two values.

The laws (t, 1-t) with an entropy of at least b are those with x <= t <= 1-x. The information is
concave in t. For any output law q it is at most t D(W_0 || q) + (1-t) D(W_1 || q), which is
linear in t. Taken at the output law of an end, it meets the information there.
"""

from __future__ import annotations

import math

from fastpriv._core.divergence import divergence
from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats
from fastpriv.results import Bracket


def bit_capacity(rows: Floats, b: float, most: float) -> Bracket:
    """Bracket of the largest I(X; Y) with H(X) >= b for two rows; it is at most ``most``.

    Cost O(K), without a search.
    """
    inner, outer = _ends(b)
    lower = max(t * d + (1.0 - t) * e for t in inner for d, e in [_divergences(rows, t)])
    error = (rows.shape[1] + 192) * ULP
    tops = []
    for t in outer:
        d, e = _divergences(rows, t)
        tops.append(max(s * d + (1.0 - s) * e for s in outer))
    upper = min(min(tops) * (1.0 + error), most)
    return Bracket(min(lower * (1.0 - error), upper), upper)


def _ends(b: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Ends of the range of t, moved inwards and outwards by the rounding of the entropy."""
    low, high = 0.0, 0.5
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (low, middle) if _entropy(middle) >= b else (middle, high)
    inner, outer = _moved(high, 0.5, b), _moved(high, 0.0, b)
    return (inner, 1.0 - inner), (outer, 1.0 - outer)


def _entropy(t: float) -> float:
    return -t * math.log(t) - (1.0 - t) * math.log1p(-t)


def _moved(x: float, end: float, b: float) -> float:
    """Move x towards an end, by growing steps, until its entropy is surely on that side of b."""
    step = 4.0 * ULP * x
    while abs(end - x) > step:
        x += math.copysign(step, end - x)
        if abs(_entropy(x) - b) >= 16.0 * ULP * b:
            return x
        step *= 2.0
    return end


def _divergences(rows: Floats, t: float) -> tuple[float, float]:
    """D of both rows from their mixture with weights t and 1-t."""
    apart = rows[0] - rows[1]
    q = t * rows[0] + (1.0 - t) * rows[1]
    return (
        divergence(rows[0], q, (1.0 - t) * apart),
        divergence(rows[1], q, -t * apart),
    )
