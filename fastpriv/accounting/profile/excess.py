"""E[(V_1 + ... + V_n)_+] for independent copies of a variable with finitely many values.

Few copies are listed. For many, with M(s) = E e^(sV) and a line Re s = c > 0,

    E[(S - u)_+] = 1/(2 pi i) * integral of M(s)^n e^(-su) / s^2 ds.

|M| of finitely many values does not fall with the angle, so S is first blurred by an independent
normal G of deviation eta. From above, E[S_+] <= E[(S + G)_+], as the positive part is convex. From
below, E[(S + G)_+] - E[S_+] <= eta E[phi(S/eta)], where phi is the normal density; its integral
has M(s)^n e^(eta^2 s^2/2) eta^2 for an integrand. The trapezoidal rule with spacing tau gives, by
Poisson summation, the sum over all integers m of e^(cmW) times the value at u = mW, W = 2 pi/tau.
All terms are non-negative, so the rule is an upper bound; Chernoff's bound
E[(S - u)_+] <= M(a)^n e^(-au) / (e a) says what the other terms are worth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fastpriv._core.rounding import ULP, lowered, raised
from fastpriv._core.validation import Floats, Ints
from fastpriv.accounting.profile.measures import FINE, Longs
from fastpriv.accounting.profile.nodes import Complexes

#: Most copies, and sums of them, that are listed.
_FEW, _LISTED = 1 << 9, 1 << 16
#: Fewest and most angles, and how many times as many are taken next.
_FIRST, _MOST, _MORE = 1 << 14, 1 << 22, 4
#: Most sines at once, and in all.
_CHUNK, _WORK = 1 << 17, 1 << 20
#: Angles of a cell.
_CELL = 64
#: Logarithms of the shares that aliases, angles left out, and cells left out, may have.
_ALIAS, _CUT, _SKIP = -32.0, 45.0, -60.0
#: Chances that are lost to underflow.
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
        moved = c * (self.errors + 4.0 * ULP * np.abs(self.values))
        with np.errstate(over="ignore"):
            weights = self.chances * np.exp(c * self.values)
            slack = float((weights * np.expm1(np.minimum(2.0 * moved, _EXPONENT))).sum())
        slack += (self.relative + (len(rise) + 8.0) * ULP) * float(np.abs(rise).sum())
        if not total - slack > -1.0:
            return math.log1p(max(total, -1.0 + ULP)), math.inf
        value = math.log1p(total)
        return value, 2.0 * slack / (1.0 + min(total, total - slack)) + 4.0 * ULP * abs(value)

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
        return float(parts.sum()) * (1.0 + self.relative + (len(parts) + 8.0) * ULP)


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
            self._take(*_listed(self._v, self._n))
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
            error += float((size * (off + 256.0 * ULP * np.abs(power))).sum())
        error = error * tau / math.pi * (1.0 + 1e-9)
        # Beyond: one more angle, and the integral of e^(-eta^2 x^2/2) (1/x^2 + eta^2).
        beyond = tau * (1.0 / last**2 + eta**2) + 2.0 / last
        error += math.exp(0.5 * (eta * c) ** 2 - _CUT) / math.pi * beyond * (1.0 + 1e-9)
        slack = self._log_error + 8.0 * ULP * (abs(self._log) + 8.0)
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
        moved = v.errors + 4.0 * ULP * np.abs(v.values)
        loose = v.relative + 2.0 * self.c * moved + self._log_error / self._n + 16.0 * ULP
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
        lost = off / np.sqrt(size) + 8.0 * ULP * (2.0 * np.abs(x) + x**2 + y**2) / size
        lost = n * (2.0 * lost + 4.0 * ULP * np.abs(turn))
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
    while high > 1.001 * low:
        c = math.sqrt(low * high)
        low, high = (low, c) if n * v.slope(c)[0] > 2.0 / c else (c, high)
    return low


def is_short(kinds: int, n: int) -> bool:
    """Whether sums are few enough to be listed."""
    return n <= _FEW and math.comb(n + kinds, kinds) <= _LISTED


def _listed(v: Variable, n: int) -> tuple[float, float]:
    """Bounds on E[S_+] from all sums: multinomial probabilities of the counts of each value."""
    counts, least, most = multinomial(v.chances.tobytes(), n, v.relative)
    sums = counts @ v.values
    off = counts @ (v.errors + 4.0 * ULP * np.abs(v.values)) * (1.0 + 2.0 * n * ULP)
    low = float(least @ np.maximum(sums - off, 0.0))
    high = float(most @ np.maximum(sums + off, 0.0))
    slack = (len(sums) + 2.0 * len(v.values) + 8.0) * ULP
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
    spare = relative + 8.0 * ULP * len(chances)
    # Logarithms of factorials and of chances are rounded as they are added up.
    size = float(factorials[n]) + n * float(np.abs(np.log(chances)).max(initial=40.0))
    slack = 2.0 * n * (relative + 16.0 * ULP) + 64.0 * ULP + FINE * (n + 8.0) * (8.0 + size)
    with np.errstate(under="ignore", divide="ignore"):
        low, high = (
            np.asarray(np.exp(logs + _times_log(left, rest + sign * spare)), dtype=np.float64)
            for sign in (-1.0, 1.0)
        )
    return counts, low * (1.0 - slack), high * (1.0 + slack) + _LOST


def _times_log(count: Ints, chance: float) -> Longs:
    """Return count ln(chance), where nothing of no chance at all is nothing."""
    log = np.log(np.longdouble(max(chance, 0.0)))
    return np.where(count > 0, np.maximum(count, 1) * log, np.longdouble(0.0))
