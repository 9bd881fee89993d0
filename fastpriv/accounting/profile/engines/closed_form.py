"""One release of a continuous pair, or a few of Laplace noise, in closed form."""

from __future__ import annotations

import math
from contextlib import suppress

from fastpriv._core.rounding import ULP
from fastpriv.accounting.profile.composition import tilt_at
from fastpriv.accounting.profile.engines.contour import line
from fastpriv.accounting.profile.losses import Directed, TooCostly
from fastpriv.accounting.profile.steps.gaussian import GaussianMixture, GaussianNoise
from fastpriv.accounting.profile.steps.laplace import MOST, Interval, laplace_delta


def is_closed(pairs: list[tuple[Directed, int]]) -> bool:
    """Whether releases have a closed form."""
    if len(pairs) != 1:
        return False
    pair, k = pairs[0][0].pair, pairs[0][1]
    plain = isinstance(pair, Interval) and pair.atoms and pair.q == 1.0
    return k == 1 or (plain and k <= MOST)


def closed(ordered: Directed, k: int, t: float) -> tuple[float, float]:
    """Bound delta(t) of k releases; NotImplementedError where a contour is as good."""
    if k > 1 and isinstance(ordered.pair, Interval):
        return laplace_delta(ordered.pair.e, k, t)
    return single(ordered, t)


def single(ordered: Directed, t: float) -> tuple[float, float]:
    """Bound delta(t) of one release; NotImplementedError where it is as good as many."""
    pair = ordered.pair
    if isinstance(pair, GaussianMixture) and not pair.down and len(pair.up) == 1:
        with suppress(TooCostly):  # too little noise for a contour: by tails
            return _amplified(pair, t, ordered.flipped)
    return pair.single(t, ordered.flipped)


def _amplified(pair: GaussianMixture, t: float, flipped: bool) -> tuple[float, float]:
    """Of one shift: the curve of the noise itself at another level, times a factor.

    (1-q) Q + q P against Q has q delta(ln(1 + (e^t - 1)/q)); Q against it has
    r delta(t + ln q/r) with r = 1 - (1-q) e^t.
    """
    (shift, q), grown = pair.up[0], math.expm1(min(t, 700.0))
    factor, slack = q, 4.0 * ULP
    if flipped:
        factor = q - (1.0 - q) * grown
        slack = 8.0 * ULP * (q + (1.0 - q) * grown) / max(factor, 1e-300)
        if slack > 0.5:
            return 0.0, 16.0 * ULP if factor > -16.0 * ULP * (q + grown) else 0.0
        level = t + math.log(q / factor)
    else:
        level = math.log1p(grown / q) if t < 700.0 else t - math.log(q)
    noise = [(Directed(GaussianNoise(1.0 / shift)), 1)]
    off = 16.0 * ULP * (1.0 + level) * (level > 0.0) + slack
    made = line(noise, level, tilt_at(noise, level))
    low, high = made.bounds(level + off)[0], made.bounds(max(level - off, 0.0))[1]
    return low * factor * (1.0 - 2.0 * slack), min(
        high * factor * (1.0 + 2.0 * slack) + 1e-322, 1.0
    )
