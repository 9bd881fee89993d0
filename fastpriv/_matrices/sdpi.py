"""Strong data-processing constants: S* = sup over Q of D(QW || q) / D(Q || p), q = pW.

For two inputs with weights t and 1 - t, F(t) = l D(t || p) - D(m_t || q) has the second derivative
(l - g(t))/(t (1-t)), where g is the concave function whose maximum is the contraction coefficient
and whose value at p is the squared maximal correlation. So from p in the direction of the maximum
of g, F is convex, then concave, then convex, and one tangent in the last part proves l >= S*.
"""

from __future__ import annotations

import math

import numpy as np

from fastpriv._core.clock import Clock
from fastpriv._core.divergence import divergence
from fastpriv._core.rounding import LEAST, ULP, lowered, raised
from fastpriv._core.validation import Floats
from fastpriv._matrices.contraction import matrix_contraction
from fastpriv._matrices.correlation import matrix_correlation
from fastpriv._matrices.sdpi_search import LARGEST, Search, step_seconds
from fastpriv.results import Bracket, SdpiConstant

_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)

#: Seconds of a step beyond which a search would take minutes.
_STEP = 1.0
#: Chances of inputs and outputs below this number are not searched: rho^2 and eta have to do.
_RARE = 2.0**-500


def matrix_sdpi(
    matrix: Floats, prior: Floats, gap: float = 1e-6, time_limit: float | None = None
) -> SdpiConstant:
    """Bracket for S* of a matrix, and a law that attains the lower end.

    Inputs with equal rows count as one. Without a time limit the work is bounded.
    """
    clock = Clock(math.inf if time_limit is None else time_limit)
    seen = prior > 0.0
    rows, which = np.unique(matrix[seen], axis=0, return_inverse=True)
    which = which.reshape(-1)
    p = np.asarray(np.bincount(which, prior[seen]) / prior.sum())
    off = max(abs(math.fsum(row) - 1.0) for row in rows.tolist())
    rows = np.ascontiguousarray(rows[:, rows.any(axis=0)])
    if len(rows) == 1:
        return SdpiConstant(0.0, 0.0, prior / prior.sum())
    rho, eta = matrix_correlation(rows, p), matrix_contraction(rows)
    lower, upper, law = lowered(rho.lower**2, 4.0), eta.upper, None
    searched = upper > lower and min(p.min(), (p @ rows).min()) > _RARE
    if searched and len(rows) == 2:
        lower, upper, law = _two_inputs(rows, p, rho, lower, upper)
    elif searched and step_seconds(len(rows)) <= min(clock.left(), _STEP):
        search = Search(rows, p, lower, upper, clock)
        if len(rows) <= LARGEST and 0.0 < search.lower < upper:
            search.narrow(gap, None if time_limit is None else clock.left())
        lower, law = search.lower, search.law
        # The rows as laws: sums that are off by d change the root of the constant by about d.
        upper = min(upper, raised((math.sqrt(search.upper) + 8.0 * off) ** 2, 64.0))
    whole = np.zeros(len(prior))
    # Databases with equal rows share the weight of their class as they do under the prior.
    whole[seen] = prior[seen] / prior.sum() * ((p if law is None else law) / p)[which]
    # Rows that differ tell something, though it may be less than the least double.
    return SdpiConstant(min(lower, upper), max(upper, LEAST), whole)


def entries_off(bracket: Bracket, error: float) -> Bracket:
    """Bounds on S* of a channel whose matrix has entries with a relative error e.

    With q_t = p + t (q - p) and m_t = q_t W, D(qW || pW) is the integral of (1 - t) N_t(m - r)^2
    from 0 to 1, N_t(v)^2 = sum_y v(y)^2/m_t(y), and likewise D(q || p). An error of the entries
    adds at most e |q - p| W to m - r, of which N_t is at most the norm of q - p (Cauchy-Schwarz),
    and lowers m_t by a factor 1 - e at most. By Minkowski's inequality the root of S* is at most
    (root + e) / sqrt(1 - e).
    """
    e = 2.0 * error
    low = max(math.sqrt(bracket.lower) * (1.0 - e) - e, 0.0) ** 2
    high = ((math.sqrt(bracket.upper) + e) * (1.0 + e)) ** 2
    return Bracket(lowered(low, 8.0), min(raised(high, 8.0), 1.0))


class _Pair:
    """Two inputs with weights p + s and 1 - p - s, as functions of s."""

    def __init__(self, rows: Floats, p: Floats) -> None:
        self.P, self.Q, self.p, self.rest = rows[0], rows[1], float(p[0]), float(p[1])
        self.d = self.P - self.Q
        self.q = self.p * self.P + self.rest * self.Q
        self.error = (len(self.d) + 160) * ULP

    def curve(self, s: float) -> tuple[float, float, float]:
        """Return g at weight p + s, its slope, and a bound on the rounding error of the slope."""
        t, rest = self.p + s, self.rest - s
        if rest <= 0.0:
            missing = self.P == 0.0
            gained = float(self.Q[missing].sum())
            with np.errstate(over="ignore"):  # of an entry as small as 1e-310
                lost = float((self.d[~missing] ** 2 / self.P[~missing]).sum())
            return gained, gained - lost, self.error * (gained + lost)
        mean = t * self.P + rest * self.Q
        with np.errstate(over="ignore"):  # a weight as small as 1e-300 may make the rise infinite
            up, down = rest * self.d / mean, t * self.d / mean
            rise, fall = float((self.Q * up) @ up), float((self.P * down) @ down)
            return rest * float(self.d @ down), rise - fall, self.error * (rise + fall)

    def divergences(self, s: float) -> tuple[float, float]:
        """Return D(p + s || p) and D(m || q), each with a relative error of ``error``."""
        t, rest = self.p + s, max(self.rest - s, 0.0)
        inputs = np.array([t, rest]), np.array([self.p, self.rest]), np.array([s, -s])
        return divergence(*inputs), divergence(t * self.P + rest * self.Q, self.q, s * self.d)

    def ratio(self, s: float) -> float:
        """D(m || q) / D(p + s || p)."""
        below, above = self.divergences(s)
        return above / below if below > 0.0 else 0.0

    def slopes(self, s: float) -> tuple[float, float, float]:
        """Return the derivatives of both divergences, and the sum of |terms| of the second."""
        t, rest = self.p + s, self.rest - s
        terms = self.d * _logs(t * self.P + rest * self.Q, self.q, s * self.d)
        first = math.log1p(s / self.p) - math.log(rest / self.rest)
        return first, float(terms.sum()), float(np.abs(terms).sum())


def _logs(w: Floats, q: Floats, diff: Floats) -> Floats:
    """Return ln(w/q), from the accurate diff = w - q if w/q is near 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.abs(diff) < 0.5 * q, np.log1p(diff / q), np.log(w / q))


def _two_inputs(
    rows: Floats, p: Floats, rho: Bracket, lower: float, upper: float
) -> tuple[float, float, Floats]:
    """Narrow the ends of S* for two inputs, which rho and eta give first."""
    pair, order = _Pair(rows, p), [0, 1]
    if pair.curve(0.0)[1] < 0.0:
        pair, order = _Pair(rows[::-1].copy(), p[::-1].copy()), [1, 0]
    _, slope, doubt = pair.curve(0.0)
    s = _peak(pair)
    reached = max(pair.ratio(s), pair.ratio(pair.rest))
    best = s if pair.ratio(s) >= reached else pair.rest
    if reached * (1.0 - 4.0 * pair.error) < lower:  # rho^2 is approached near p
        best = 1e-4 * min(pair.p, pair.rest)
    law = np.array([pair.p + best, max(pair.rest - best, 0.0)])[order]
    lower = max(lower, reached * (1.0 - 4.0 * pair.error))
    if slope <= doubt:  # g is largest at p up to rounding, so that rho^2 and eta agree
        return lower, upper, law
    level, margin = max(reached, raised(rho.upper**2, 4.0)), 4.0 * pair.error
    while level * (1.0 + margin) < upper:
        if _proved(pair, s, level * (1.0 + margin)):
            return lower, level * (1.0 + margin), law
        margin *= 2.0
    return lower, upper, law


def _peak(pair: _Pair) -> float:
    """Return the s of the largest ratio. It has one peak above rho^2: F <= 0 on an interval."""
    odds = np.linspace(-30.0, 30.0, 61)
    values = [pair.ratio(pair.rest / (1.0 + math.exp(-v))) for v in odds]
    best = int(np.argmax(values))
    low, high = odds[max(best - 1, 0)], odds[min(best + 1, 60)]
    for _ in range(40):
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        if pair.ratio(pair.rest / (1.0 + math.exp(-left))) < pair.ratio(
            pair.rest / (1.0 + math.exp(-right))
        ):
            low = left
        else:
            high = right
    s = pair.rest / (1.0 + math.exp(-0.5 * (low + high)))
    for _ in range(6):
        s = _lowest(pair, s, pair.ratio(s))
    return s


def _lowest(pair: _Pair, s: float, level: float) -> float:
    """Take a Newton step from s towards the least F at a level, or return s if there is none."""
    rest = pair.rest - s
    if not 0.0 < rest < pair.rest:
        return s
    first, second, _ = pair.slopes(s)
    bend = (level - pair.curve(s)[0]) / ((pair.p + s) * rest)
    moved = s - (level * first - second) / bend if bend > 0.0 else s
    return moved if 0.0 < moved < pair.rest else s


def _proved(pair: _Pair, s: float, level: float) -> bool:
    """Whether F >= 0 everywhere at this level, given that g rises at p and is below the level.

    One of two conditions proves it. Either F is concave from its first inflection to the end, and
    non-negative at the end. Or g has fallen to the level at s, so that F is convex from before s
    on, and the tangent at s is non-negative from p to the end.
    """
    error = pair.error
    value, slope, doubt = pair.curve(pair.rest)
    below, above = pair.divergences(pair.rest)
    if slope >= doubt or value * (1.0 - error) >= level:
        return level * below * (1.0 - error) >= above * (1.0 + error)
    s = _lowest(pair, _lowest(pair, s, level), level)
    if not 0.0 < s < pair.rest:
        return False
    value, slope, doubt = pair.curve(s)
    if value * (1.0 + error) > level or slope > -doubt:
        return False
    below, above = pair.divergences(s)
    first, second, size = pair.slopes(s)
    height = level * below * (1.0 - error) - above * (1.0 + error)
    tilt, loose = level * first - second, error * (level * first + size)
    return height >= max((loose - tilt) * (pair.rest - s), (tilt + loose) * s) * (1.0 + error)
