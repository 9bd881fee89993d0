"""Strong data-processing constants: S* = sup over Q of D(QW || q) / D(Q || p), q = pW.

For two inputs with weights t and 1 - t, F(t) = l D(t || p) - D(m_t || q) has the second derivative
(l - g(t))/(t (1-t)), where g is the concave function whose maximum is the contraction coefficient
and whose value at p is the squared maximal correlation. So from p in the direction of the maximum
of g, F is convex, then concave, then convex, and one tangent in the last part proves l >= S*.

For three or more inputs, a distribution r with the ratio s = D(rW || q)/D(r || p) bounds the
constant from below. From above, a level l is proved by branch and bound over simplices of
distributions: F(r) = l D(r || p) - D(rW || q) >= 0. Both divergences are convex, so F is bounded on
a simplex by a quadratic function that touches it; see ``kernels/sdpi.py``. Near p and near a
minimiser of F the function touches at that very point, and a cell that contains it is proved as
soon as the quadratic function is convex.
"""

from __future__ import annotations

import math

import numpy as np

from fastpriv import kernels
from fastpriv._core.clock import Clock, Meter
from fastpriv._core.divergence import divergence
from fastpriv._core.rounding import LEAST, lowered, raised, sum_error
from fastpriv._core.search import golden
from fastpriv._core.validation import Floats
from fastpriv._core.warm_up import load_kernels
from fastpriv._matrices.contraction import matrix_contraction
from fastpriv._matrices.correlation import matrix_correlation
from fastpriv.results import Bracket, SdpiConstant

# Three or more inputs.

#: Most inputs that are searched.
_LARGEST = 8
#: Most cells that wait.
_WAITING = 4096
#: Cells between two checks of the time.
_ROUND = 50
#: Seeded random starts.
_STARTS = 12
#: Steps from each: Newton's method follows, and is fast with few inputs.
_STEPS = 24
#: The same for more inputs than are searched.
_STEPS_LARGE = 80
#: Steps of Newton's method.
_NEWTON = 20
#: How often it is repeated at a higher level.
_RAISES = 8
#: Work that a search without a time limit may do.
_WORK = 5e5
#: Such a search with as many inputs as are searched gives up once this many times the first cells
#: are open: most of these proofs need a thousand times the work, and then the cells soon grow.
_OPEN = 2
#: Cells between two looks at that.
_FIRST_ROUND = 10
#: Inputs up to which a step of linear algebra counts as cheap.
_QUICK = 64
#: Inputs up to which a symmetric matrix is diagonalised by rotations.
_FEW = 16
#: Parts of the width at which levels are tried before the gap itself.
_PARTS = 3.0, 30.0
#: Most local maxima that are followed up from one set of starts. A mechanism of least S* has many.
_KEPT = 12
#: The same for more inputs than are searched.
_KEPT_LARGE = 4
#: How far apart these are.
_APART = 0.02
#: Divergences below are left to rho^2.
_NEAR_PRIOR = 1e-9
#: Distributions nearer than this count as one.
_SAME = 1e-6


class Ratios:
    """The two divergences of distributions r, rW from p, q, and their ratio.

    Ascents stop when the time is over.
    """

    def __init__(self, rows: Floats, p: Floats, clock: Clock) -> None:
        self.rows, self.p, self.q, self.clock = rows, p, p @ rows, clock
        # From differences of rows, so that small ones keep their digits.
        excess = rows - rows[np.argmax(p)]
        for _ in range(2):
            excess = excess - p @ excess
        self.excess = excess

    def logs(self, u: Floats) -> Floats:
        """Return ln(rW/q) for distributions r = p + u."""
        shift = u @ self.excess
        mean = np.maximum(self.q + shift, 2.0**-1000)
        with np.errstate(divide="ignore", invalid="ignore"):
            small = np.abs(shift) < 0.5 * self.q
            logs = np.where(small, np.log1p(shift / self.q), np.log(mean / self.q))
        return np.asarray(logs)

    def ratio(self, r: Floats) -> float:
        """Return a lower bound on D(rW || q)/D(r || p), 0 if r is too near p."""
        return kernels.sdpi_ratio(r, self.p, self.excess, self.q, _NEAR_PRIOR)

    def tilted(self, u: Floats, level: Floats | float) -> Floats:
        """Return p e^(h/l), h(x) = sum_y W[x, y] ln(rW/q)(y): F does not rise on the way there.

        It maximises a minorant of D(rW || q) - l D(r || p). If l is the ratio of r, the ratio
        does not decrease.
        """
        h = self.logs(u) @ self.excess.T / level
        r = self.p * np.exp(h - h.max(axis=-1, keepdims=True))
        return np.asarray(r / r.sum(axis=-1, keepdims=True))

    def climbed(self, starts: Floats) -> tuple[Floats, Floats]:
        """Return distributions of larger ratios, by some steps from each start, and the ratios."""
        r, level = np.array(starts, order="C"), np.zeros(len(starts))
        steps = _STEPS if len(self.p) <= _LARGEST else _STEPS_LARGE
        if len(self.p) <= _QUICK:
            kernels.sdpi_climb(r, self.p, self.excess, self.q, steps, level)
            return r, level
        for _ in range(steps):
            if self.clock.left() == 0.0:
                break
            u = r - self.p
            below = (r * np.log(np.maximum(r, 2.0**-1000) / self.p)).sum(axis=1)
            above = ((self.q + u @ self.excess) * self.logs(u)).sum(axis=1)
            level = above / np.maximum(below, 1e-14)
            r = self.tilted(u, np.maximum(level, 1e-14)[:, None])
        return r, level

    def difference(self, r: Floats, level: float) -> float:
        """Return F(r) = l D(r || p) - D(rW || q)."""
        u = r - self.p
        shift = u @ self.excess
        inputs = divergence(r, self.p, u)
        return level * inputs - divergence(np.maximum(self.q + shift, 0.0), self.q, shift)

    def minimiser(self, r: Floats, level: float) -> Floats:
        """Return a distribution near r at which F has a local minimum.

        Newton's method in the coordinates u / sqrt(r), with the absolute values of the
        curvatures, so that it leaves saddle points.
        """
        if len(r) <= _FEW:
            moved = r.copy()
            kernels.sdpi_newton(moved, self.p, self.excess, self.q, level, _NEWTON)
            return moved
        value = self.difference(r, level)
        for _ in range(_NEWTON):
            if r.min() <= 1e-14 or self.clock.left() < _step_seconds(len(r)):
                break
            u, root = r - self.p, np.sqrt(r)
            mean = np.maximum(self.q + u @ self.excess, 2.0**-1000)
            scaled = self.excess * root[:, None]
            curvature = level * np.eye(len(r)) - (scaled / mean) @ scaled.T
            slope = root * (level * np.log1p(u / self.p) - self.excess @ self.logs(u))
            across = np.eye(len(r)) - np.outer(root, root)  # keeps the sum of the distribution
            values, vectors = np.linalg.eigh(across @ curvature @ across)
            sizes = np.maximum(np.abs(values), 1e-9 * level)
            step = -root * (across @ vectors @ ((vectors.T @ across @ slope) / sizes))
            size = min(1.0, 0.9 / max(float(np.max(-step / r)), 1e-300))
            while size > 1e-6:
                moved = r + size * step
                moved = moved / moved.sum()
                if (reached := self.difference(moved, level)) < value:
                    break
                size *= 0.25
            if size <= 1e-6:
                break
            r, value = moved, reached
        return r


def _step_seconds(inputs: int) -> float:
    """Return about how long a matrix of all pairs of inputs takes to decompose."""
    return 5e-9 * inputs**3 if inputs > _QUICK else 0.0


class SdpiSearch:
    """Bounds on the constant so far, the maximiser of the lower one, and levels to prove."""

    def __init__(self, rows: Floats, p: Floats, lower: float, upper: float, clock: Clock) -> None:
        self.ratios, self.lower, self.upper = Ratios(rows, p, clock), lower, upper
        self.law: Floats | None = None
        self.peaks: list[Floats] = []
        size = len(p)
        scaled = np.sqrt(p)[:, None] * self.ratios.excess / np.sqrt(self.ratios.q)
        tilt = np.linalg.svd(scaled, full_matrices=False)[0][:, 0] / np.sqrt(p)
        self.tilt = tilt / np.abs(tilt).max()
        corners = 0.999 * np.eye(size)[np.argsort(p)[:64]] + 0.001 * p
        near = [p * (1.0 + t * self.tilt) for t in (-0.9, -0.5, -0.1, 0.1, 0.5, 0.9)]
        drawn = np.random.default_rng(0).dirichlet(np.full(size, 0.5), _STARTS)
        starts = np.vstack([corners, near, 0.999 * drawn + 0.001 * p])
        self._offer(*self.ratios.climbed(starts))
        for x in range(min(size, 64)):
            self._note(np.eye(size)[x])
        if self.law is None:  # rho^2 is approached near p
            self.law = p * (1.0 + 1e-4 * self.tilt)

    def _note(self, r: Floats) -> None:
        ratio = self.ratios.ratio(r)
        if ratio > self.lower:
            self.lower, self.law = ratio, r

    def _peak(self, r: Floats) -> Floats | None:
        """Move to a local minimum of F at the best level, None near a known one.

        If F is negative there, the ratio is larger, and the level is raised to it.
        """
        self._note(r)
        for _ in range(_RAISES):
            level = self.lower
            moved = self.ratios.minimiser(r, level) if level > 0.0 else r
            if self._is_known(moved, _SAME):
                return None
            r = moved
            self._note(r)
            if self.lower <= raised(level, 4.0):
                break
        return r

    def _is_known(self, r: Floats, apart: float) -> bool:
        """Whether a distribution is not further from some peak."""
        return any(np.abs(r - peak).max() <= apart for peak in self.peaks)

    def _offer(self, laws: Floats, ratios: Floats) -> None:
        """Raise the best of some distributions, and keep those that are far from others."""
        kept = np.empty(_KEPT if len(self.ratios.p) <= _LARGEST else _KEPT_LARGE, np.int64)
        count = kernels.sdpi_apart(laws, np.argsort(-ratios), _APART, kept)
        for r in laws[kept[:count]]:
            peak = self._peak(r)
            if peak is not None:
                self.peaks.append(peak)

    def narrow(self, gap: float, time_limit: float | None) -> None:
        """Prove smaller levels until the relative gap is met, or the time or work is used up."""
        if time_limit is not None:
            load_kernels("sdpi_cells", interpret=False)
        meter = Meter(time_limit, _WORK)
        patient = time_limit is not None or len(self.ratios.p) < _LARGEST
        width = self.upper / self.lower - 1.0
        for part in (*_PARTS, np.inf):
            while True:
                level = self.lower * (1.0 + max(0.99 * gap, width / part))
                if level >= self.upper:
                    break
                better = self._prove(level, meter, patient)
                if better is None:
                    return
                if not len(better):
                    self.upper = level
                    break
                before = self.lower
                self._offer(*self.ratios.climbed(better[None]))
                self._note(better)
                if self.lower <= before:  # within rounding of the level
                    return

    def _prove(self, level: float, meter: Meter, patient: bool) -> Floats | None:
        """Return an empty array if a level is proved, None if it is open, else a counterexample."""
        ratios, p = self.ratios, self.ratios.p
        size = len(p)
        alone = (ratios.rows > 0.0).sum(axis=0) == 1
        weights = level - np.where(alone, ratios.rows, 0.0).sum(axis=1)
        W, q = np.ascontiguousarray(ratios.excess[:, ~alone]), ratios.q[~alone]
        points = [np.zeros(size)]
        for r in self.peaks:
            u = ratios.minimiser(r, level) - p
            if min(np.abs(u - other).max() for other in points) > _SAME:
                points.append(u)
        touched = np.array(points[:16])
        cells, better = np.zeros((3 * size, size, size)), np.zeros(size)
        corners = np.eye(size) - p
        for x in range(size):
            cells[x, 1:] = np.delete(corners, x, axis=0)
        count, each, most = size, _ROUND, _WAITING - 2
        if not patient:
            each, most = _FIRST_ROUND, _OPEN * size
        while 0 < count <= most and meter.used() < meter.limit:
            if count > len(cells) - 2:
                cells = np.concatenate([cells, np.zeros_like(cells)])
            count, used = kernels.sdpi_cells(
                cells, count, W, p, q, weights, level, touched, each, better
            )
            meter.spend(used * size**3)
            if better.any():
                return np.maximum(p + better, 0.0)
        return np.empty(0) if count == 0 else None


# Two inputs, and the choice between both.


#: Most seconds of a step.
_LONGEST_STEP = 1.0
#: Relative width of a bracket that needs no other bound.
_SLIGHT = 2.0**-36
#: Probabilities of inputs and outputs below this number are not searched: rho^2 and eta have to do.
_RARE = 2.0**-500


def matrix_sdpi(
    matrix: Floats, prior: Floats, gap: float = 1e-6, time_limit: float | None = None
) -> SdpiConstant:
    """Bracket for S* of a matrix, and a distribution that attains the lower bound.

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
    rho, law = matrix_correlation(rows, p), None
    lower, common = lowered(rho.lower**2, 4.0), min(p.min(), (p @ rows).min()) > _RARE
    if common and len(rows) == 2:
        lower, upper, law = _two_inputs(rows, p, rho, lower)
        common = False
    else:
        upper = matrix_contraction(rows).upper
    searched = common and upper > lower
    if searched and _step_seconds(len(rows)) <= min(clock.left(), _LONGEST_STEP):
        search = SdpiSearch(rows, p, lower, upper, clock)
        if len(rows) <= _LARGEST and 0.0 < search.lower < upper:
            search.narrow(gap, None if time_limit is None else clock.left())
        lower, law = search.lower, search.law
        # The rows as distributions: sums that are off by d change the root of the constant by about
        # d.
        upper = min(upper, raised((math.sqrt(search.upper) + 8.0 * off) ** 2, 64.0))
    whole = np.zeros(len(prior))
    # Databases with equal rows share the weight of their class as they do under the prior.
    whole[seen] = prior[seen] / prior.sum() * ((p if law is None else law) / p)[which]
    # Rows that differ reveal something, though it may be less than the smallest positive double.
    return SdpiConstant(min(lower, upper), max(upper, LEAST), whole)


def entries_off(bracket: Bracket, error: float) -> Bracket:
    """Bounds on S* of a channel whose matrix has entries with a relative error e.

    With q_t = p + t (q - p) and m_t = q_t W, D(qW || pW) is the integral of (1 - t) N_t(m - r)^2
    from 0 to 1, N_t(v)^2 = sum_y v(y)^2/m_t(y), and likewise D(q || p). An error of the entries
    adds at most e |q - p| W to m - r. Its N_t is at most the norm of q - p (Cauchy-Schwarz). The
    error lowers m_t by a factor 1 - e at most. By Minkowski's inequality the root of S* is at most
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
        self.error = sum_error(len(self.d), 160)

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


def _two_inputs(rows: Floats, p: Floats, rho: Bracket, lower: float) -> tuple[float, float, Floats]:
    """Bound S* for two inputs from below and above, starting from rho; eta is the last resort."""
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
    level, margin = max(reached, raised(rho.upper**2, 4.0)), 4.0 * pair.error
    while slope > doubt and margin <= _SLIGHT and level * (1.0 + margin) < 1.0:
        if _proved(pair, s, level * (1.0 + margin)):
            return lower, level * (1.0 + margin), law
        margin *= 2.0
    upper = matrix_contraction(rows).upper
    if slope <= doubt:  # g is largest at p up to rounding, so that rho^2 and eta agree
        return lower, upper, law
    while level * (1.0 + margin) < upper:
        if _proved(pair, s, level * (1.0 + margin)):
            return lower, level * (1.0 + margin), law
        margin *= 2.0
    return lower, upper, law


def _peak(pair: _Pair) -> float:
    """Return the s of the largest ratio. It has one peak above rho^2: F <= 0 on an interval."""

    def at(log_odds: float) -> float:
        return pair.rest / (1.0 + math.exp(-log_odds))

    odds = np.linspace(-30.0, 30.0, 61)
    values = [pair.ratio(at(v)) for v in odds]
    best = int(np.argmax(values))
    low, high = float(odds[max(best - 1, 0)]), float(odds[min(best + 1, 60)])
    s = at(golden(lambda v: -pair.ratio(at(v)), low, high, 40)[0])
    for _ in range(6):
        s = _lowest(pair, s, pair.ratio(s))
    return s


def _lowest(pair: _Pair, s: float, level: float) -> float:
    """Take a Newton step from s towards the minimum of F at a level, or return s."""
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
