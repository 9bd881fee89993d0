"""Closed forms for one step with a density of losses, or a few steps of Laplace noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fastpriv._core.rounding import lowered, raised, roundoff
from fastpriv.accounting.profile.composition import Bounds, Composition, tilt_at
from fastpriv.accounting.profile.engines.contour import CONTOUR
from fastpriv.accounting.profile.losses import Directed, NoBound, unsampled_level
from fastpriv.accounting.profile.steps.gaussian import GaussianMixture, GaussianNoise


class ClosedForm:
    """Engine for steps with a closed-form curve."""

    name = "closed form"

    def applies(self, parts: Composition) -> bool:
        """Whether there is one kind of step, with a closed form for this number of steps."""
        if parts.finite or len(parts.pairs) != 1:
            return False
        (one, count), *_ = parts.pairs
        return count <= one.pair.closed_form_up_to

    def prepare(self, parts: Composition, t: float, s: float) -> _Closed:
        """Return the curve; there is nothing to prepare."""
        return _Closed(*parts.pairs[0])


CLOSED_FORM = ClosedForm()


@dataclass(frozen=True)
class _Closed:
    one: Directed
    count: int

    def bounds(self, t: float) -> Bounds:
        """Bound delta(t)."""
        if self.count == 1:
            return curve_of_one(self.one, t)
        return self.one.pair.delta(t, self.one.flipped, self.count)


def curve_of_one(one: Directed, t: float) -> Bounds:
    """Bound delta(t) of one step that has a closed form."""
    step = one.pair
    if step.choices:
        flipped = one.flipped and not step.symmetric
        each = [(w, curve_of_one(Directed(part, flipped), t)) for w, part in step.choices]
        low, high = (math.fsum(w * bounds[i] for w, bounds in each) for i in (0, 1))
        slack = roundoff(16.0) + 2.0 * step.slack
        return lowered(low * (1.0 - slack), 4.0), min(raised(high * (1.0 + slack), 4.0), 1.0)
    if isinstance(step, GaussianMixture) and not step.down and len(step.up) == 1:
        try:
            return _amplified(step, t, one.flipped)
        except NoBound:  # too little noise for a contour: use tails
            pass
    return step.delta(t, one.flipped)


def _amplified(step: GaussianMixture, t: float, flipped: bool) -> Bounds:
    """Bound delta(t) for one shift by the curve of the noise at another level, times a factor.

    (1-q) Q + q P against Q has the curve q delta(ln(1 + (e^t - 1)/q)). Q against (1-q) Q + q P has
    the curve r delta(t + ln q/r) with r = 1 - (1-q) e^t.
    """
    (shift, q), grown = step.up[0], math.expm1(min(t, 700.0))
    factor, slack = q, roundoff(4.0)
    if flipped:
        factor = q - (1.0 - q) * grown
        slack = roundoff(8.0) * (q + (1.0 - q) * grown) / max(factor, 1e-300)
        if slack > 0.5:
            return 0.0, roundoff(16.0) if factor > roundoff(-16.0) * (q + grown) else 0.0
        level = t + math.log(q / factor)
    else:
        level = unsampled_level(t, q)
    noise = Composition([(Directed(GaussianNoise(1.0 / shift)), 1)], [])
    off = roundoff(16.0) * (1.0 + level) * (level > 0.0) + slack
    made = CONTOUR.prepare(noise, level, tilt_at(noise.terms, level))
    low, high = made.bounds(level + off)[0], made.bounds(max(level - off, 0.0))[1]
    return (
        max(low * factor * (1.0 - 2.0 * slack) - 1e-322, 0.0),  # a subnormal product may round up
        min(high * factor * (1.0 + 2.0 * slack) + 1e-322, 1.0),
    )
