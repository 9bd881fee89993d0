"""Grid of losses below a threshold beyond which one loss of a rare sample decides.

Let every loss be at least its bottom. If one loss exceeds T = t - (the bottoms of all other steps),
the sum exceeds t, whatever the other losses are. The outputs with such a loss, a set A, therefore
contribute exactly P(A) - e^t Q(A), in closed form. A lower threshold T will do where the other
steps are unlikely to add up to less than t - T; then this contribution is a lower bound, and
Chernoff's inequality bounds the rest. The losses up to T have moments of all orders, and their sum
has a contour integral, or a grid, for levels far below the largest losses. The proof is in
docs/theory/contour.md.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fastpriv import kernels
from fastpriv._core.rounding import lowered, raised, roundoff
from fastpriv._core.validation import Floats
from fastpriv.accounting.profile.composition import (
    Bounds,
    Composition,
    Prepared,
    cumulant,
    discrete_tilt_at,
    log_moment_above,
    share,
)
from fastpriv.accounting.profile.discrete import DiscreteLosses, Releases, discrete_cumulant
from fastpriv.accounting.profile.engines.contour import CUT_CONTOUR
from fastpriv.accounting.profile.engines.grid import grid_above, grid_below, one_sided
from fastpriv.accounting.profile.losses import (
    Directed,
    NoBound,
    OutOfRange,
    cells_above,
    cells_below,
    gauss_legendre,
)
from fastpriv.accounting.profile.steps.gaussian import CutMixture, GaussianMixture

#: Number of grid points up to T, and of those that only guide the tilt.
_POINTS = 1 << 17
_GUIDES = 1 << 9
#: Number of steps whose losses are not yet smooth, and of grid points for so few.
_FEW_STEPS = 3
_FEW_POINTS = 1 << 19
#: Approximate width of a window, in standard deviations.
_SPAN = 21.0
#: Levels up to this multiple of the expected level are within the threshold.
_ROOM = 1.0 + 2.0**-5
#: Logarithm of the share of delta that outputs with a large loss but a sum below t may have.
_UNLIKELY = 40.0
#: Most exponents that are tried for a bound on the probability of small sums.
_LOWER_TAILS = 32
#: Relative distance of a threshold from the smallest one that is certain.
_BEYOND = 1e-11
#: Largest output of a threshold, in units of the noise; densities there are still normal doubles.
_FARTHEST = 35.0


class Threshold:
    """Engine for subsampled Gaussian noise in which one large loss decides."""

    name = "threshold grid"

    def applies(self, parts: Composition) -> bool:
        """Whether every loss has a bottom, and all continuous losses are of sampled noise."""
        return bool(parts.pairs) and all(_is_sampled(one) for one, _ in parts.pairs)

    def prepare(self, parts: Composition, t: float, s: float) -> Prepared | None:
        """Prepare the grid up to a threshold for levels near t; None if a grid is no better."""
        thresholds = _thresholds(parts, t, s)
        if thresholds is None:
            return None
        with suppress(NoBound):
            return _by_contour(parts, thresholds, t)
        return _on_grid(parts, thresholds, t)


THRESHOLD = Threshold()


@dataclass(frozen=True)
class _Thresholds:
    """Threshold of each pair for levels up to ``level``.

    Losses beyond ``certain``, one for each pair, exceed the level whatever the others are. For
    lower thresholds, the others are below the difference with a probability that ``b`` and
    ``log_moment``, an upper bound on ln E e^(-b sum), limit.
    """

    level: float
    ends: list[float]
    certain: list[float]
    b: float
    log_moment: float


def _thresholds(parts: Composition, t: float, s: float) -> _Thresholds | None:
    """Choose thresholds for levels near t with the saddle point s."""
    bottom, slack = _bottom(parts)
    level = _ROOM * t
    if not 0.0 < level - bottom < math.inf:
        return None
    certain = [level - (bottom - slack) + _lowest(one) for one, _ in parts.pairs]
    room, b = math.inf, 1.0
    if max(certain) > 2.0 * level:
        value = cumulant(parts.terms, s)[0] - s * t if s > 0.0 else 0.0
        room, b = _likely_room(parts, _UNLIKELY - min(value, 0.0))
    # Outputs of a given loss are rounded: a little further, no loss beyond is below the threshold.
    ends = [min(end + _BEYOND * (abs(end) + level), level + room) for end in certain]
    log_moment = 0.0
    if any(end < sure for end, sure in zip(ends, certain, strict=True)):
        logs = [k * log_moment_above(term, -b, 1e-14) for term, k in parts.terms]
        log_moment = math.fsum(logs) + parts.mass_error + b * parts.loss_error + share(b - 1.0)
        log_moment += 1e-9 * (1.0 + abs(log_moment))
    # The sums have roundings of their own.
    return _Thresholds(level * (1.0 - 1e-12), ends, certain, b, log_moment)


def _likely_room(parts: Composition, needed: float) -> tuple[float, float]:
    """Return a sum that losses fall short of with a probability of e^-needed, negated, and b.

    The bound (ln E e^(-b sum) + needed) / b falls and then rises with b.
    """
    spread = math.sqrt(cumulant(parts.terms, 0.0)[2])
    best, b = (math.inf, 1.0), 1.0 + math.sqrt(2.0 * needed) / spread
    for _ in range(_LOWER_TAILS):
        try:
            log = cumulant(parts.terms, -b)[0] + share(b - 1.0)
        except NoBound:
            break
        if (log + needed) / b > best[0]:
            break
        best, b = ((log + needed) / b, b), 2.0 * b
    return best


def _by_contour(parts: Composition, thresholds: _Thresholds, t: float) -> Prepared:
    """Bound the losses up to the thresholds by a contour integral."""
    exceeding = _exceeding(parts, thresholds, thresholds.ends)
    pairs = [
        (Directed(CutMixture(_mixture(one), x)), k)
        for (one, k), x in zip(parts.pairs, exceeding.outputs, strict=True)
    ]
    rest = Composition(pairs, [(measure.without_infinite, k) for measure, k in parts.finite])
    inside = CUT_CONTOUR.prepare(rest, t, rest.tilt_at(t))
    return _Bounds(inside, inside, exceeding)


def _on_grid(parts: Composition, thresholds: _Thresholds, t: float) -> Prepared | None:
    """Bound the losses up to the thresholds on a grid."""
    room = max(
        end - _lowest(one) for end, (one, _) in zip(thresholds.ends, parts.pairs, strict=True)
    )
    guides, _ = _sides(parts, thresholds, room / _GUIDES)
    c = discrete_tilt_at(guides, t - sum(k * m.shift for m, k in guides))
    sigma = math.sqrt(discrete_cumulant(guides, c)[2])
    if not c > 0.0:
        return None
    few = sum(k for _, k in parts.pairs) <= _FEW_STEPS
    h = max(_SPAN * sigma, room) / (_FEW_POINTS if few else _POINTS)
    above, below = _sides(parts, thresholds, h)
    return _Bounds(
        one_sided(grid_below(below, c, h), below, False),
        one_sided(grid_above(above, c, h), above, True),
        _exceeding(parts, thresholds, [h * math.ceil(end / h) for end in thresholds.ends]),
    )


def _is_sampled(one: Directed) -> bool:
    """Whether this is Gaussian noise on a Poisson sample, with the record against without it."""
    pair = one.pair
    return (
        isinstance(pair, GaussianMixture)
        and not one.flipped
        and not pair.down
        and len(pair.up) == 1
        and 0.0 < pair.up[0][1] < 1.0
    )


def _mixture(one: Directed) -> GaussianMixture:
    assert isinstance(one.pair, GaussianMixture)
    return one.pair


def _sampled(one: Directed) -> tuple[float, float]:
    """Return the shift in units of the noise, and the probability of being sampled."""
    ((shift, q),) = _mixture(one).up
    return shift, q


def _bottom(parts: Composition) -> tuple[float, float]:
    """Return the smallest sum of finite losses, and a bound on its error."""
    each = [k * _lowest(one) for one, k in parts.pairs]
    each += [k * (m.shift + float(m.losses[0]) - m.off) for m, k in parts.finite if len(m.losses)]
    return math.fsum(each), roundoff(16.0) * math.fsum(map(abs, each))


def _sides(parts: Composition, thresholds: _Thresholds, h: float) -> tuple[Releases, Releases]:
    """Return losses up to the thresholds that bound all steps from above, and from below."""
    cut = [
        (_cut(*_sampled(one), math.ceil(end / h), h), k)
        for end, (one, k) in zip(thresholds.ends, parts.pairs, strict=True)
    ]
    finite = [(measure.without_infinite, k) for measure, k in parts.finite]
    above, below = ([(both[i], k) for both, k in cut] for i in (0, 1))
    return [*above, *finite], [*below, *finite]


def _lowest(one: Directed) -> float:
    """Return the smallest loss of a step."""
    return math.log1p(-_sampled(one)[1])


def _output(shift: float, q: float, loss: Floats) -> Floats:
    """Return the outputs with given losses, and -inf for losses below the bottom."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.maximum(np.expm1(loss) / q, -1.0)
        return np.asarray((np.log1p(ratio) + 0.5 * shift * shift) / shift)


@lru_cache(maxsize=1)
def _rules() -> Floats:
    rules = [gauss_legendre(n) for n in (3, 8)]
    return np.ascontiguousarray(np.concatenate([np.array(rule) for rule in rules], axis=1))


@lru_cache(maxsize=8)
def _cut(shift: float, q: float, last: int, h: float) -> tuple[DiscreteLosses, DiscreteLosses]:
    """Bound one step with losses up to ``last`` h from above and from below.

    The upper bound splits the mass between two grid points. The lower bound merges the outputs
    that are nearest to the same grid point.
    """
    first = math.floor(math.log1p(-q) / h)
    losses = (0.5 * h) * np.arange(2 * first, 2 * last + 1, dtype=np.float64)
    edges = _output(shift, q, losses)
    edges[0] = -math.inf
    far = float(edges[-1])
    if not abs(far) < _FARTHEST:
        raise OutOfRange
    p, base = np.empty(len(losses) - 1), np.empty(len(losses) - 1)
    kernels.sampled_cells(edges, shift, q, _rules(), p, base)
    # A rule adds at most eight terms; differences of tails lose the ratio of a tail and a cell.
    reach = (1.0 + abs(far) + shift) ** 2
    error = roundoff(128.0 + 16.0 * reach)
    off = roundoff(16.0) * (1.0 + shift * (abs(far) + shift)) * float(np.abs(losses).max() + q)
    never = np.full(1, -math.inf)

    def logs(masses: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.concatenate([never, np.log(masses), never])

    pairs = (p[0::2] + p[1::2], base[0::2] + base[1::2])
    above = cells_above(losses[0::2], logs(pairs[0]), logs(pairs[1]), off, error, True)
    middle = [np.concatenate([m[:1], m[1:-1:2] + m[2:-1:2], m[-1:]]) for m in (p, base)]
    below = cells_below(losses[0::2], logs(middle[0]), logs(middle[1]), off, error, True)
    return above, below


@dataclass(frozen=True)
class _Exceeding:
    """P(A) - e^t Q(A) for the outputs A with a loss beyond a threshold, for t up to ``level``."""

    level: float
    p: Bounds
    q: Bounds
    outputs: list[float]
    #: Upper bound on the mean of (e^(t - sum) - 1)_+ over the outputs whose sum is below t.
    short: float

    def bounds(self, t: float) -> Bounds:
        """Bound the contribution of these outputs at a level t <= ``level``."""
        grown = math.exp(min(t, 700.0))  # less than e^t for a larger t: enough for ``high``
        low = lowered(self.p[0] - raised(grown * self.q[1], 8.0), 2.0) if t <= 700.0 else 0.0
        high = raised(self.p[1] - lowered(grown * self.q[0], 8.0), 2.0)
        return low, raised(high + self.short, 2.0)


def _exceeding(parts: Composition, thresholds: _Thresholds, ends: list[float]) -> _Exceeding:
    """Return the probabilities of losses beyond the given ends, at or above the thresholds."""
    level, logs, errors, short = thresholds.level, [0.0, 0.0], [0.0, 0.0], 0.0
    root, outputs = math.sqrt(0.5), []
    for (one, k), last, certain in zip(parts.pairs, ends, thresholds.certain, strict=True):
        shift, q = _sampled(one)
        x = float(_output(shift, q, np.array([last]))[0])
        off = roundoff(16.0) * (1.0 + shift * (abs(x) + shift)) * (abs(last) + q)
        outputs.append(x)
        base = 0.5 * math.erfc(x * root)
        for i, tail in enumerate(
            ((1.0 - q) * base + 0.5 * q * math.erfc((x - shift) * root), base)
        ):
            logs[i] += k * math.log1p(-tail)
            errors[i] = max(errors[i], roundoff(32.0 + 4.0 * (1.0 + abs(x) + shift) ** 2))
        if last - off < certain:
            tail = 0.5 * (math.erfc(x * root) + q * math.erfc((x - shift) * root))
            log = thresholds.log_moment + thresholds.b * (level - (last - off))
            short += k * tail * math.exp(min(log + 1e-9 * (1.0 + abs(log)), 0.0)) * (1.0 + 1e-9)
    result = []
    for i in (0, 1):
        value, error = -math.expm1(logs[i]), errors[i] + roundoff(16.0) * (1.0 + len(parts.pairs))
        for measure, k in parts.finite:
            moved = 0.0 if i == 0 else measure.losses + np.longdouble(measure.shift)
            value *= float(np.exp(measure.logs - moved).sum()) ** k
            error += k * (measure.error + (measure.off + roundoff(4.0)) * (1.0 + i))
        result.append((lowered(value * (1.0 - error), 4.0), raised(value * (1.0 + error), 4.0)))
    return _Exceeding(level, result[0], result[1], outputs, short)


@dataclass(frozen=True)
class _Bounds:
    """Contribution of outputs beyond the threshold, and bounds on that of all others."""

    below: Prepared
    above: Prepared
    exceeding: _Exceeding

    def bounds(self, t: float) -> Bounds:
        """Bound delta(t); beyond the last level of the threshold, delta is at most delta there."""
        low = self.exceeding.bounds(t)[0] + self.below.bounds(t)[0]
        at = min(t, self.exceeding.level)
        high = self.exceeding.bounds(at)[1] + self.above.bounds(at)[1]
        return max(lowered(low, 4.0), 0.0), min(raised(high, 4.0), 1.0)
