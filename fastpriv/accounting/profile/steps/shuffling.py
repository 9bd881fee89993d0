"""Messages of many people in a random order: bounds by blankets, and attained ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import permutations, product
from typing import Any

import numpy as np

from fastpriv._core.logs import log_ratio
from fastpriv._core.rounding import ULP, lowered, raised, roundoff
from fastpriv._core.search import bisect, lost_near_zero
from fastpriv._core.validation import Floats, Ints
from fastpriv.accounting.profile.discrete import FINE, DiscreteLosses, Longs, pair_measure
from fastpriv.accounting.profile.losses import Complexes
from fastpriv.accounting.profile.steps.finite import (
    CurveStep,
    curve_above,
    curve_below,
    deviation,
    levels,
    lower_of,
)

# E[(V_1 + ... + V_n)_+] for independent copies of a variable with finitely many values.
#
# Few copies are listed. For many, with M(s) = E e^(sV) and a line Re s = c > 0,
#
#     E[(S - u)_+] = 1/(2 pi i) * integral of M(s)^n e^(-su) / s^2 ds.
#
# |M| of finitely many values does not fall with the angle, so S is first blurred by an
# independent normal G of deviation eta. From above, E[S_+] <= E[(S + G)_+], as the positive part
# is convex. From below, E[(S + G)_+] - E[S_+] <= eta E[phi(S/eta)], where phi is the normal
# density; its integral has M(s)^n e^(eta^2 s^2/2) eta^2 for an integrand. The trapezoidal rule
# with spacing tau gives, by Poisson summation, the sum over all integers m of e^(cmW) times the
# value at u = mW, W = 2 pi/tau. All terms are non-negative, so the rule is an upper bound;
# Chernoff's bound E[(S - u)_+] <= M(a)^n e^(-au) / (e a) says what the other terms are worth.


#: Most copies whose sums are listed.
_FEW = 1 << 9
#: Most sums that are listed.
_LISTED = 1 << 16
#: Angles of the first attempt.
_FIRST = 1 << 14
#: Most angles.
_MOST = 1 << 22
#: Maximum number of entries of all triples of distributions; for more, few pairs are tried.
_ENTRIES = 1 << 20
#: Number of these pairs, in both orders: the most distant ones.
_FARTHEST_PAIRS = 16
#: How many times as many angles are taken next.
_MORE = 4
#: Sines that are computed together: 1 MB.
_CHUNK = 1 << 17
#: Most sines in all.
_WORK = 1 << 20
#: Angles of a cell.
_CELL = 64
#: Logarithm of the share that aliases may have.
_ALIAS = -32.0
#: Angles beyond which the smoothing has fallen to e^-45 are left out.
_CUT = 45.0
#: Logarithm of the share below which a cell of angles is left out.
_SKIP = -60.0
#: Probabilities that are lost to underflow.
_LOST = 1e-300
#: Largest exponent of a moment.
_EXPONENT = 690.0


@dataclass(frozen=True)
class Variable:
    """A variable V: values, their probabilities, and errors; with the rest of the chance V = 0.

    Parameters
    ----------
    values, chances, errors : arrays
        Values, their probabilities, and absolute bounds on the errors of the values.
    relative : float
        Bound on the relative errors of the probabilities.
    """

    values: Floats
    chances: Floats
    errors: Floats
    relative: float

    def log_moment(self, c: float) -> tuple[float, float]:
        """Return ln M(c), and a bound on its error."""
        rise = self.chances * np.expm1(c * self.values)
        total = float(rise.sum())
        moved = c * (self.errors + roundoff(4.0) * np.abs(self.values))
        with np.errstate(over="ignore"):
            weights = self.chances * np.exp(c * self.values)
            slack = float((weights * np.expm1(np.minimum(2.0 * moved, _EXPONENT))).sum())
        slack += (self.relative + roundoff(len(rise) + 8.0)) * float(np.abs(rise).sum())
        if not total - slack > -1.0:
            return math.log1p(max(total, -1.0 + ULP)), math.inf
        value = math.log1p(total)
        return value, 2.0 * slack / (1.0 + min(total, total - slack)) + roundoff(4.0) * abs(value)

    def slope(self, c: float) -> tuple[float, float]:
        """Return the mean and the variance of V under the tilted law; no digit of a result."""
        whole = 1.0 + float((self.chances * np.expm1(c * self.values)).sum())
        weights = self.chances * np.exp(c * self.values) / max(whole, ULP)
        mean = float(weights @ self.values)
        spread = weights @ np.minimum(np.abs(self.values - mean), 1e150) ** 2
        return mean, float(spread) + max(1.0 - float(weights.sum()), 0.0) * mean**2

    @property
    def mean_excess(self) -> float:
        """E[V_+], rounded up."""
        parts = self.chances * np.maximum(self.values + self.errors, 0.0)
        return float(parts.sum()) * (1.0 + self.relative + roundoff(len(parts) + 8.0))


class Excess:
    """Bounds on E[S_+]/n for a sum S of n independent copies of a variable.

    Parameters
    ----------
    variable : Variable
        With at least one positive value.
    n : int
        Number of copies.
    """

    def __init__(self, variable: Variable, n: int) -> None:
        self._v, self._n = variable, n
        self._high = variable.mean_excess
        self._low = 0.0
        self._angles = 0  # listed
        if not is_short(len(variable.values), n):
            self._angles = _FIRST
            self._prepare()

    def _prepare(self) -> None:
        """Choose the line, and the period W."""
        v, n = self._v, self._n
        self.c = c = _saddle(v, n)
        self._log, self._log_error = (n * part for part in v.log_moment(c))
        self._weights: Floats = v.chances * np.exp(c * v.values - self._log / n)
        self._zero = max(1.0 - float(v.chances.sum()), 0.0) * math.exp(-self._log / n) + 1e-12
        wide = n * v.slope(c)[1] + 2.0 / c**2
        self.estimate = self._log - 2.0 * math.log(c) - 0.5 * math.log(2.0 * math.pi * wide)
        unit = 1.0 / math.sqrt(wide)
        most = _EXPONENT / float(v.values.max())
        steps = (0.3, 0.6, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 11.0, 16.0)
        above = [min(c + step * unit, 0.5 * (c + most)) for step in steps]
        below = [c - step * unit for step in steps if step * unit < 0.95 * c]
        below += [0.1 * c, 0.25 * c, 0.5 * c]
        ends = [min(map(self._period, tried)) for tried in (above, below)]
        self._period_length = max(end[0] for end in ends)
        self._at = [end[1:] for end in ends]

    def _period(self, a: float) -> tuple[float, float, float]:
        """Return the W at which aliases are small by Chernoff's bound at a, a, and that bound."""
        value, error = self._v.log_moment(a)
        bound = self._n * (value + error) - math.log(a) - 1.0 + 1e-9
        apart = abs(a - self.c)
        return max((bound - self.estimate - _ALIAS) / apart, 1.0 / apart), a, bound

    @property
    def chernoff(self) -> float:
        """Upper bound on E[S_+]/n, at once."""
        if not self._angles:
            return self._high
        log = self._log + self._log_error - math.log(self.c) - 1.0 - math.log(self._n)
        return min(math.exp(min(log + 1e-9, 1.0 + _EXPONENT)), self._high)

    @property
    def about(self) -> float:
        """E[S_+]/n, about: by Laplace's method."""
        if not self._angles:
            return self._high
        return math.exp(min(self.estimate - math.log(self._n), _EXPONENT))

    def refine(self) -> bool:
        """Make the bounds better; False where nothing more is to be had."""
        if not self._angles:
            if self._low > 0.0:
                return False
            self._take(*_listed_excess(self._v, self._n))
            return self._low > 0.0
        if self._angles > _MOST:
            return False
        made = self._line(self._angles)
        self._angles *= _MORE
        if made is None:
            self._angles = 2 * _MOST
            return False
        self._take(*made)
        return True

    @property
    def bounds(self) -> tuple[float, float]:
        """Lower and upper bounds so far."""
        return self._low, self._high

    def _take(self, low: float, high: float) -> None:
        scale = 1.0 / self._n
        self._low = max(self._low, lowered(low * scale, 4.0))
        self._high = min(self._high, math.nextafter(raised(high * scale, 4.0), 1.0))

    def _line(self, count: int) -> tuple[float, float] | None:
        """Bounds on E[S_+] by a number of angles; None where it takes too long."""
        c, W = self.c, self._period_length
        tau = 2.0 * math.pi / W
        last = count * tau
        eta = math.sqrt(2.0 * _CUT) / last
        if eta * c > 10.0:  # far too coarse
            return 0.0, math.inf
        kept, error = self._kept(count // _CELL, tau, eta)
        if len(kept) * _CELL * len(self._v.values) > _WORK:
            return None
        high = low = 0.0
        step = max(_CHUNK // len(self._v.values) // _CELL, 1)
        for start in range(0, len(kept), step):
            cells = kept[start : start + step, None] * _CELL + np.arange(_CELL)
            angles: Floats = tau * cells.reshape(-1).astype(np.float64)
            power, off = self._powers(angles)
            s = c + 1j * angles
            blur = np.exp(0.5 * (eta * s) ** 2)
            inner = 1.0 / s**2
            half = np.where(angles == 0.0, 0.5, 1.0)
            high += float((half * (power * blur * inner).real).sum())
            low += float((half * (power * blur * (inner - eta**2)).real).sum())
            size = np.abs(blur) * (np.abs(inner) + eta**2) * half
            error += float((size * (off + roundoff(256.0) * np.abs(power))).sum())
        error = error * tau / math.pi * (1.0 + 1e-9)
        # Beyond: one more angle, and the integral of e^(-eta^2 x^2/2) (1/x^2 + eta^2).
        beyond = tau * (1.0 / last**2 + eta**2) + 2.0 / last
        error += math.exp(0.5 * (eta * c) ** 2 - _CUT) / math.pi * beyond * (1.0 + 1e-9)
        slack = self._log_error + roundoff(8.0) * (abs(self._log) + 8.0)
        above = _times(self._log + slack, tau / math.pi * high + error)
        below = _times(self._log - slack, tau / math.pi * low - error)
        for a, bound in self._at:
            apart = min(abs(a - c) * W * (1.0 - 1e-12), _EXPONENT)
            alias = math.exp(min(bound + 0.5 * (eta * a) ** 2, _EXPONENT)) / math.expm1(apart)
            below -= alias * (1.0 + 1e-9)
        return max(below * (1.0 - 1e-12) if below > 0.0 else 0.0, 0.0), above

    def _kept(self, cells: int, tau: float, eta: float) -> tuple[Ints, float]:
        """Return the cells of angles that count, and a bound on the sum over the others.

        In a cell |M(c + i angle)| / M(c) changes by at most the angle times E|V - mean|.
        """
        v, n = self._v, self._n
        weights, mean = self._weights, v.slope(self.c)[0]
        slope = float(weights @ np.abs(v.values - mean)) + abs(mean) * self._zero
        reach = 0.5 * _CELL * tau * slope * (1.0 + 1e-9)
        kept, error = [], 0.0
        step = max(_CHUNK // len(v.values), 16)
        for start in range(0, cells, step):
            index = np.arange(start, min(start + step, cells))
            first: Floats = index.astype(np.float64) * (_CELL * tau)
            x, y, off = self._moments(first + 0.5 * _CELL * tau)
            size = np.minimum(np.hypot(1.0 + x, y) + off + reach + 1e-14, 1.0 + 1e-14)
            log = n * np.log(size)
            out = (log < _SKIP) & (index > 0)
            kept.append(index[~out])
            at = first[out]
            blur = np.exp(np.maximum(0.5 * eta**2 * (self.c**2 - at**2), -_EXPONENT))
            with np.errstate(under="ignore"):
                error += _CELL * float((np.exp(log[out]) * blur * (at**-2.0 + eta**2)).sum())
        return np.concatenate(kept), error

    def _moments(self, angles: Floats) -> tuple[Floats, Floats, Floats]:
        """Return M(c + i angle) / M(c) - 1, its two parts, and bounds on its error."""
        v, weights = self._v, self._weights
        moved = v.errors + roundoff(4.0) * np.abs(v.values)
        loose = v.relative + 2.0 * self.c * moved + self._log_error / self._n + roundoff(16.0)
        half = 0.5 * angles[:, None] * v.values
        sine, cosine = np.sin(half), np.cos(half)
        x = -2.0 * (sine**2 @ weights)
        y = 2.0 * ((sine * cosine) @ weights)
        # |e^(i angle v) - 1| is 2 |sine|; an error of v turns it by the angle times the error.
        off = 2.0 * (np.abs(sine) @ (weights * loose)) + angles * float(weights @ moved)
        return x, y, off * (1.0 + 1e-6)

    def _powers(self, angles: Floats) -> tuple[Complexes, Floats]:
        """Return (M(c + i angle) / M(c))^n, and bounds on the errors."""
        n = self._n
        x, y, off = self._moments(angles)
        size = np.maximum((1.0 + x) ** 2 + y**2, 1e-300)
        turn = np.arctan2(y, 1.0 + x)
        log = 0.5 * np.log1p(np.clip(2.0 * x + x**2 + y**2, -1.0 + ULP, 0.0))
        lost = off / np.sqrt(size) + roundoff(8.0) * (2.0 * np.abs(x) + x**2 + y**2) / size
        lost = n * (2.0 * lost + roundoff(4.0) * np.abs(turn))
        with np.errstate(under="ignore"):
            power = np.exp(n * (log + 1j * turn))
            whole = np.exp(n * np.log(np.minimum(np.sqrt(size) + off + 1e-14, 1.0 + 1e-14)))
        small = np.abs(power) * 1.75 * lost
        return power, np.where(lost < 1.0, small, np.abs(power) + whole)


def _times(log: float, factor: float) -> float:
    """e^log times a factor; nothing for factors below zero."""
    if factor <= 0.0:
        return 0.0
    return math.exp(min(log + math.log(factor), _EXPONENT))


def _saddle(v: Variable, n: int) -> float:
    """Return the c at which n ln M(c) - 2 ln c is least, to a few digits."""
    top = float(v.values.max())
    low, high = 1e-3 / (n * float(np.abs(v.values).max())), _EXPONENT / top
    falls = lambda c: n * v.slope(c)[0] <= 2.0 / c  # noqa: E731
    return bisect(falls, low, high, relative=1e-3, geometric=True)[0]


def is_short(kinds: int, n: int) -> bool:
    """Whether sums are few enough to be listed."""
    return n <= _FEW and math.comb(n + kinds, kinds) <= _LISTED


def _listed_excess(v: Variable, n: int) -> tuple[float, float]:
    """Bounds on E[S_+] from all sums: multinomial probabilities of the counts of each value."""
    counts, least, most = multinomial(v.chances.tobytes(), n, v.relative)
    sums = counts @ v.values
    off = counts @ (v.errors + roundoff(4.0) * np.abs(v.values)) * (1.0 + roundoff(2.0 * n))
    low = float(least @ np.maximum(sums - off, 0.0))
    high = float(most @ np.maximum(sums + off, 0.0))
    slack = roundoff(len(sums) + 2.0 * len(v.values) + 8.0)
    return low * (1.0 - slack), high * (1.0 + slack)


@lru_cache(maxsize=32)
def multinomial(given: bytes, n: int, relative: float) -> tuple[Floats, Floats, Floats]:
    """Counts of n draws, and bounds on their probabilities; the rest of the chance is not shown."""
    chances = np.frombuffer(given)
    factorials = np.append(0.0, np.log(np.arange(1, n + 1, dtype=np.longdouble)).cumsum())
    logs = np.zeros(1, dtype=np.longdouble)
    left, counts = np.full(1, n), np.zeros((1, 0))
    for chance in np.log(chances.astype(np.longdouble)):
        rows = np.repeat(np.arange(len(left)), left + 1)
        starts = np.cumsum(left + 1) - (left + 1)
        taken = np.arange(len(rows)) - starts[rows]
        logs = logs[rows] - factorials[taken] + taken * chance
        counts = np.column_stack([counts[rows], taken.astype(np.float64)])
        left = left[rows] - taken
    logs += factorials[n] - factorials[left]
    rest = 1.0 - float(chances.sum())
    spare = relative + roundoff(8.0) * len(chances)
    # Logarithms of factorials and of probabilities are rounded as they are added up.
    size = float(factorials[n]) + n * float(np.abs(np.log(chances)).max(initial=40.0))
    slack = 2.0 * n * (relative + roundoff(16.0)) + roundoff(64.0) + FINE * (n + 8.0) * (8.0 + size)
    with np.errstate(under="ignore", divide="ignore"):
        low, high = (
            np.asarray(np.exp(logs + _times_log(left, rest + sign * spare)), dtype=np.float64)
            for sign in (-1.0, 1.0)
        )
    return counts, low * (1.0 - slack), high * (1.0 + slack) + _LOST


def _times_log(count: Ints, chance: float) -> Longs:
    """Return count ln(probability), where nothing of no probability at all is nothing."""
    log = np.log(np.longdouble(max(chance, 0.0)))
    return np.where(count > 0, np.maximum(count, 1) * log, np.longdouble(0.0))


# Two databases whose other people are all alike, or covered by one blanket.


#: Probabilities of histograms that are left out of a list.
_RARE = 1e-150
#: Groups of close ratios that histograms are put into.
_GROUPS = 2048

#: Whether bounds from below and above are close enough.
Enough = Callable[[float, float], bool]


@dataclass(frozen=True)
class Triple:
    """Laws a and b of a person's output, and the reference law q of everybody else's.

    The positive part of sum (a - e^t b)/q over n draws from q, and what q never shows.
    """

    a: Floats
    b: Floats
    q: Floats
    only_a: Floats
    only_b: Floats
    relative: float
    lost: float = 0.0

    @property
    def key(self) -> tuple[bytes, ...]:
        """What it is: equal for databases that are as easy to tell apart."""
        parts = (self.a, self.b, self.q, self.only_a, self.only_b, np.float64(self.lost))
        return tuple(part.tobytes() for part in parts)

    def blurred(self, t: float, n: int) -> float:
        """How much less delta may be, for probabilities of q that were taken for zero."""
        return n * self.lost * (1.0 + math.exp(t)) * (1.0 + 1e-12)

    def shown(self, t: float) -> float:
        """What outputs that nobody else has give away."""
        return float(np.maximum(self.only_a - math.exp(t) * self.only_b, 0.0).sum())

    def always(self, n: int) -> float:
        """Limit of delta for large levels, rounded down: all outputs are possible under a only."""
        never = self.b == 0.0
        hidden = float(self.a[never].sum())
        rest = 1.0 - float(self.q[~never].sum()) - self.relative * (not never.all())
        shown = float(self.only_a[self.only_b == 0.0].sum()) + hidden * max(rest, 0.0) ** (n - 1)
        return shown * (1.0 - self.relative)

    def excess(self, t: float, n: int) -> Excess | None:
        """Return what bounds the rest; None where it is 0."""
        values = ((self.a - self.b) - math.expm1(t) * self.b) / self.q
        if not len(values) or not values.max() > 0.0:
            return None
        errors = self.relative * (self.a + math.exp(t) * self.b) / self.q
        return Excess(Variable(values, self.q, errors, self.relative), n)

    def bounds(self, t: float, n: int, enough: Enough) -> tuple[float, float]:
        """Bounds on delta of two databases."""
        low, high = refined(self.excess(t, n), self.shown(t), enough)
        blur = self.blurred(t, n)
        return max(low - blur, 0.0), high + blur

    def listable(self, n: int) -> bool:
        """Whether histograms are few."""
        return self.lost == 0.0 and is_short(len(self.q), n)

    def measure(self, n: int) -> DiscreteLosses:
        """Losses of the pair of databases, from a list of all histograms; rounded down.

        Histograms with nearly the same ratio are not told apart, which can only lower delta.
        """
        counts, least, most = multinomial(self.q.tobytes(), n, self.relative)
        seen = least > _RARE
        weight = least[seen] / n
        p, q = (weight * (counts[seen] @ (law / self.q)) for law in (self.a, self.b))
        p, q = np.append(p, self.only_a), np.append(q, self.only_b)
        error = float((most[seen] / least[seen] - 1.0).max(initial=0.0))
        error += self.relative + roundoff(len(self.q) + 16.0)
        return pair_measure(*_grouped(p, q), (error, 0.0))


def triple_of(a: Floats, b: Floats, q: Floats, relative: float, lost: float) -> Triple:
    """Merge outputs with the same ratios, and leave out those that say nothing."""
    seen = (q > 0.0) & ((a > 0.0) | (b > 0.0))
    only = (q == 0.0) & (a > 0.0)
    ratios = np.column_stack([a[seen] / q[seen], b[seen] / q[seen]])
    _, where = np.unique(ratios, axis=0, return_inverse=True)
    where = where.reshape(-1)
    sums: list[Floats] = [np.zeros(int(where.max(initial=-1)) + 1) for _ in range(3)]
    for total, part in zip(sums, (a, b, q), strict=True):
        np.add.at(total, where, part[seen])
    order = np.argsort(a[only], kind="stable")
    return Triple(sums[0], sums[1], sums[2], a[only][order], b[only][order], relative, lost)


def _grouped(p: Floats, q: Floats) -> tuple[Floats, Floats]:
    """Add up probabilities of outcomes whose ratios are close."""
    with np.errstate(divide="ignore"):
        losses = np.log(p) - np.log(q)
    finite = np.isfinite(losses)
    top, bottom = losses[finite].max(initial=-1e-9), losses[finite].min(initial=1e-9)
    cell = np.where(finite, (losses - bottom) / max(top - bottom, 1e-9) * (_GROUPS - 1), 0.0)
    cell = np.where(finite, np.rint(cell), np.where(losses > 0.0, _GROUPS, _GROUPS + 1))
    _, where = np.unique(cell, return_inverse=True)
    total: list[Floats] = [np.zeros(int(where.max()) + 1) for _ in range(2)]
    for sums, law in zip(total, (p, q), strict=True):
        np.add.at(sums, where.reshape(-1), law)
    return total[0], total[1]


def refined(excess: Excess | None, shown: float, enough: Enough) -> tuple[float, float]:
    """Bounds on delta that are good enough, or as good as they get."""
    slack = 1e-14 * shown
    if excess is None:
        return shown - slack, shown + slack
    while True:
        low, high = (end + shown for end in excess.bounds)
        low, high = lowered(low - slack, 2.0), raised(high + slack, 2.0)
        if enough(low, high) or not excess.refine():
            return low, high


# Outputs of many people in a random order: bounds by blankets, and what databases attain.


#: Levels beyond which e^t is not computed with: e^709 overflows.
_FAR = 690.0
#: Levels beyond which discrete losses are not made: delta is below 1e-20.
_REACH = 60.0
#: Relative width at which bounds on delta are good.
_GOOD = 1e-9
#: Relative width of a level.
_LEVEL = 1e-10
#: Width of the points of a curve, and how many in a deviation, where bounds nearly meet.
_CLOSE = (1e-5, 64)
#: The same elsewhere.
_WIDE = (1e-4, 16)
#: Relative gap of the bounds up to which they nearly meet.
_GAP = 0.01
#: Triples from below that are computed; the others look less promising.
_TRIED = 24
#: Reference probabilities that are taken for zero.
_TINY = 1e-100

#: Values of the two neighbours that differ, and of everybody else.
Site = tuple[int, int, int]


class Shuffled(CurveStep):
    """n people's outputs of a local randomiser, in a random order.

    Parameters
    ----------
    laws : 2-D array
        The local randomiser.
    n : int
        Number of people.
    alike : bool
        Whether values can be renamed without a change, as in k-ary response.
    """

    def __init__(self, laws: Floats, n: int, alike: bool) -> None:
        super().__init__(("shuffled", tuple(map(tuple, laws.tolist())), n, alike))
        self._laws, self.n, self.alike = laws, n, alike

    @cached_property
    def symmetric(self) -> bool:
        """Whether both orders of the neighbours have the same measures.

        They have, but for the lower one where histograms are listed.
        """
        return not self.triple(*self.site).listable(self.n)

    @property
    def is_trivial(self) -> bool:
        """Whether neighbours have the same distribution."""
        return bool((self._laws == self._laws[0]).all())

    @property
    def asked_of(self) -> tuple[Any, ...]:
        """Which values the neighbours of the lower measure have, and of how many.

        The same for releases that two databases attain together.
        """
        x, other, rest = self.site
        return len(self._laws), rest in (x, other) if self.alike else self.site

    def measure(self, flipped: bool, up: bool) -> DiscreteLosses:
        """Measure of one order, from above or below."""
        if up:
            return _above(self)
        x, other, rest = self.site
        if self.symmetric:
            return _below(self)
        return _listed(self, (other, x, rest) if flipped else self.site)

    @cached_property
    def top(self) -> float:
        """Largest ln W(y|x)/W(y|x'), infinite where an output is possible under one value only."""
        shown = self._laws.max(axis=0) > 0.0
        high, low = self._laws.max(axis=0)[shown], self._laws.min(axis=0)[shown]
        return float(log_ratio(high, low).max()) if low.all() else math.inf

    @cached_property
    def top_bounds(self) -> tuple[float, float]:
        """Lower and upper bounds on ``top``, for the rows as they are and divided by their sums."""
        if self.top in (0.0, math.inf):
            return self.top, self.top
        off = max(abs(math.fsum((-1.0, *law))) for law in self._laws.tolist())
        slack = 2.0 * off + roundoff(8.0)
        return max(lowered(self.top, 16.0) - slack, 0.0), raised(self.top + slack, 16.0)

    @cached_property
    def _blankets(self) -> list[Triple]:
        blanket = self._laws.min(axis=0)
        pairs = permutations(range(len(self._laws)), 2)
        return _distinct(self._triple(x, other, blanket) for x, other in pairs)

    @cached_property
    def _sites(self) -> dict[Site, Triple]:
        """Databases of one person and others who are all alike, a few of each kind."""
        k = range(len(self._laws))
        pairs = list(permutations(k, 2))
        if len(pairs) * self._laws.size > _ENTRIES:  # a lower bound needs some pairs only
            apart = {(x, y): float(np.abs(self._laws[x] - self._laws[y]).sum()) for x, y in pairs}
            pairs = sorted(pairs, key=lambda pair: -apart[pair])[:_FARTHEST_PAIRS]
        return {
            (x, other, rest): self._triple(x, other, self._laws[rest])
            for (x, other), rest in product(pairs, k)
        }

    def triple(self, x: int, other: int, rest: int) -> Triple:
        """Two neighbouring databases."""
        return self._sites[x, other, rest]

    @cached_property
    def _databases(self) -> list[Triple]:
        return _distinct(iter(self._sites.values()))

    def _triple(self, x: int, other: int, q: Floats) -> Triple:
        # A smaller blanket is a blanket. Laws of databases are moved by n times what is lost.
        kept = np.where(q < _TINY, 0.0, q)
        relative = roundoff(self._laws.shape[1] + 24.0)
        return triple_of(self._laws[x], self._laws[other], kept, relative, float((q - kept).sum()))

    @cached_property
    def _middle(self) -> float:
        """A level at which delta is about a thousandth of its most."""
        return min(3.0 * deviation(self.upper(0.0, _within(_WIDE[0]))), 0.5 * self.top, _REACH)

    @cached_property
    def site(self) -> Site:
        """The databases that are hardest to hide there."""
        return max(self._sites, key=lambda site: _likely(self._sites[site], self._middle, self.n))

    @cached_property
    def points(self) -> tuple[float, Floats]:
        """Relative width of the points that measures are made of, and their levels."""
        t, within = self._middle, _within(_WIDE[0])
        gap = 1.0 - self.lower(t, within) / max(self.upper(t, within), 1e-300)
        width, fine = _CLOSE if gap < _GAP else _WIDE
        return width, levels(self.upper(0.0, within), min(self.top, _REACH), fine)

    # The curve of one release.

    @cached_property
    def always(self) -> float:
        """Limit of the lower bound for large levels."""
        limits = (triple.always(self.n) for triple in self._databases if triple.lost == 0.0)
        return max(limits, default=0.0)

    def delta(self, t: float) -> tuple[float, float]:
        """Bounds on delta(t)."""
        if t >= self.top_bounds[1]:
            return 0.0, 0.0
        low = self.always
        if t <= _FAR:
            low = max(low, self.lower(t, _within(_GOOD)))
        return low, self.upper(min(t, _FAR), _within(_GOOD))

    def epsilon(self, delta: float) -> tuple[float, float]:
        """Bounds on the smallest level at a delta."""
        if delta >= 1.0:
            return 0.0, 0.0
        if delta == 0.0:
            return self.top_bounds
        start = min(self.top, _FAR)

        def decided(low: float, high: float) -> bool:
            return high <= delta or low > delta or high - low <= 0.1 * _GOOD * high

        if self.always > delta:
            return math.inf, math.inf
        low, _ = lost_near_zero(lambda t: self.lower(t, decided) > delta, start, _LEVEL)
        if start < self.top and self.upper(start, decided) > delta:
            return low, math.inf
        _, high = lost_near_zero(lambda t: self.upper(t, decided) > delta, start, _LEVEL)
        return low, min(high, self.top_bounds[1])

    def upper(self, t: float, enough: Enough) -> float:
        """Upper bound on delta(t), by blankets."""
        best = 0.0
        parts = [(triple.shown(t), triple.excess(t, self.n)) for triple in self._blankets]
        parts.sort(key=lambda part: part[0] + (part[1].about if part[1] else 0.0), reverse=True)
        for shown, excess in parts:
            if excess is None or shown + excess.chernoff > best:
                best = max(best, refined(excess, shown, _or_below(best, enough))[1])
        return min(best, 1.0)

    def lower(self, t: float, enough: Enough) -> float:
        """Lower bound on delta(t): what two neighbouring databases attain."""
        parts = [(triple, triple.shown(t), triple.excess(t, self.n)) for triple in self._databases]
        parts.sort(key=lambda part: part[1] + (part[2].about if part[2] else 0.0), reverse=True)
        best = 0.0
        for triple, shown, excess in parts[:_TRIED]:
            if excess is not None and shown + excess.chernoff <= best:
                continue
            low, _ = refined(excess, shown, _or_below(best, enough))
            best = max(best, low - triple.blurred(t, self.n))
        return best


@lru_cache(maxsize=16)
def _above(part: Shuffled) -> DiscreteLosses:
    """Measure of the blankets: their curve at points, joined."""
    width, at = part.points
    return curve_above(lambda t: part.upper(t, _within(width)), at, part.top)


@lru_cache(maxsize=16)
def _listed(part: Shuffled, site: Site) -> DiscreteLosses:
    """Measure of two neighbouring databases, whose histograms are few."""
    return part.triple(*site).measure(part.n)


@lru_cache(maxsize=16)
def _below(part: Shuffled) -> DiscreteLosses:
    """Measure of two neighbouring databases, below their curves in both orders."""
    x, other, rest = part.site
    width, at = part.points
    both = _distinct(part.triple(*site) for site in ((x, other, rest), (other, x, rest)))
    curves = [
        lower_of(partial(triple.bounds, n=part.n, enough=_within(width)), at, part.top)
        for triple in both
    ]
    return curve_below(
        curves, min(0.0 if triple.lost else triple.always(part.n) for triple in both)
    )


def _within(width: float) -> Enough:
    return lambda low, high: high - low <= width * high


def _or_below(best: float, enough: Enough) -> Enough:
    """Whether it is enough, or known to be below another value."""
    return lambda low, high: high <= best or enough(low, high)


def _likely(triple: Triple, t: float, n: int) -> float:
    excess = triple.excess(t, n)
    return triple.shown(t) + (excess.about if excess else 0.0)


def _distinct(triples: Iterator[Triple]) -> list[Triple]:
    return list({triple.key: triple for triple in triples}.values())
