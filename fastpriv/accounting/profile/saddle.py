"""Which tilt suits a question: where the law of the losses is centred. No digit of a result."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from fastpriv.accounting.profile.measures import Releases


def cumulant(releases: Releases, s: float) -> tuple[float, float, float]:
    """Return K(s) = ln of the mean of e^(s loss), and its first two derivatives."""
    value = slope = curve = 0.0
    for measure, k in releases:
        logs = (measure.logs + s * measure.losses).astype(np.float64)
        most = float(logs.max())
        law = np.exp(logs - most)
        total = float(law.sum())
        law /= total
        mean = float((law * measure.losses).sum())
        value += k * (most + math.log(total))
        slope += k * mean
        curve += k * float((law * (measure.losses - mean) ** 2).sum())
    return value, slope, curve


def tilt_at(releases: Releases, t: float) -> float:
    """Tilt whose law is centred where delta(t) comes from.

    The saddle point of e^(K - s t) / (s (1 + s)), whose integral delta(t) is: a little above t,
    and never at s = 0, so that losses above t that are rare in all are not rare under the tilt.
    """
    return _least(
        releases,
        lambda s: s == 0.0 or cumulant(releases, s)[1] < t + 1.0 / s + 1.0 / (1.0 + s),
    )


def tilt_for(releases: Releases, delta: float) -> float:
    """Tilt whose law is centred near where the curve falls to delta.

    The saddle point: delta is about e^(K - s K') / (sqrt(2 pi K'') s (1 + s)), no more than 1/2.
    """
    target = math.log(delta)

    def above(s: float) -> bool:
        value, slope, curve = cumulant(releases, s)
        share = 2.0 + math.sqrt(2.0 * math.pi * curve) * s * (1.0 + s)
        return value - s * slope - math.log(share) > target

    return _least(releases, above)


def _least(releases: Releases, more: Callable[[float], bool]) -> float:
    """Least tilt, to three digits, at which ``more`` no longer holds."""
    moving = [(measure, k) for measure, k in releases if measure.top > 0.0]
    if not (moving and more(0.0)):
        return 0.0
    low, high = 0.0, 1.0 / sum(k * measure.top for measure, k in moving)
    gap = min(float(np.diff(measure.losses)[-1]) for measure, _ in moving)
    # By then hardly any release is below its top, however rare that was.
    rarest = max(float(measure.logs.max() - measure.logs[-1]) for measure, _ in moving)
    most = (rarest + math.log(sum(k for _, k in moving) + 1.0) + 7.0) / gap
    while high < most and more(high):
        low, high = high, 2.0 * high
    high = min(high, most)
    while high - low > 1e-3 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if more(middle) else (low, middle)
    return high
