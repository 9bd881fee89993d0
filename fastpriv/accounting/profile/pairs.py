"""Pairs of laws that are not finite: what each kind knows about its privacy losses.

A pair (P, Q) is used in both orders. With Phi(w) = E_Q e^(wL), L = ln P/Q, the losses of P against
Q have the moments E_P e^(sL) = Phi(1 + s), and those of Q against P have Phi(-s).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats
from fastpriv.accounting.profile.measures import Releases
from fastpriv.accounting.profile.nodes import (
    Complexes,
    Nodes,
    TooCostly,
    cumulant,
    log_moments,
)

#: Accuracy of moments that guide a search, and of those that scale a bound.
ROUGH = 1e-9
#: Exponents at which a variance is bounded by moments, in parts of one over the deviation.
_STEPS = 0.1 * 0.25 ** np.arange(5)


@dataclass(frozen=True, eq=False)
class Cells:
    """Outputs cut into cells in the order of their losses.

    Attributes
    ----------
    losses : ndarray
        Losses at the n edges, rising, off by at most ``off``.
    p, q : ndarray
        Log-masses of the n + 1 cells, those beyond the first and the last edge among them, known
        up to a relative ``error``. Of the outer two upper bounds will do.
    bounded : bool
        Whether the outer cells are atoms at the first and the last edge.
    """

    losses: Floats
    p: Floats
    q: Floats
    off: float
    error: float
    bounded: bool


class Pair(ABC):
    """Two laws, known by the moments of their likelihood ratio.

    ``key`` says which pair it is, ``symmetric`` whether both orders have the same losses.
    """

    key: tuple[Any, ...]
    symmetric: bool = False
    #: Whether two databases attain the pair; else it is an upper bound only.
    attained: bool = True
    #: Whether some two databases attain the curve of one release, at each level.
    tight: bool = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pair) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def is_trivial(self) -> bool:
        """Whether neighbours have the same law."""
        return False

    @property
    def below(self) -> Pair | None:
        """A pair that two databases attain: itself, or one that is less far apart, if any."""
        return self if self.attained else None

    @abstractmethod
    def nodes(self, c: float, angle: float, tolerance: float) -> Nodes:
        """Quadrature of Phi on Re w = c up to an angle, to about a tolerance."""

    @abstractmethod
    def variation(self, c: float) -> tuple[Floats, Floats]:
        """Return some a, b with |Phi(c + i angle)| <= a + b / angle, relative to Phi(c)."""

    @abstractmethod
    def single(self, t: float, flipped: bool) -> tuple[float, float]:
        """Bound delta(t) of one release of P against Q, or of Q against P."""

    @abstractmethod
    def cells(self, far: float, count: int) -> Cells:
        """Cut the outputs into cells, outside of which is at most about e^-far of the mass."""

    def log_moments(self, c: float, angles: Floats, tolerance: float) -> tuple[Complexes, Floats]:
        """Return ln Phi(c + i angle), and bounds on its error."""
        nodes = self.nodes(c, float(np.abs(angles).max(initial=0.0)), tolerance)
        return log_moments(nodes, c, angles)

    def ceiling(self, c: float, angles: Floats) -> Floats:
        """Bound |Phi(c + i angle)| / Phi(c) for each angle and all larger ones."""
        a, b = _variation(self, c)
        return np.asarray(np.minimum((a[:, None] + b[:, None] / angles).min(axis=0), 1.0))

    def cumulant(self, c: float) -> tuple[float, float, float]:
        """Return ln Phi(c) and two derivatives; used only to guide the search."""
        return _cumulant(self, c)

    def log_moment_bounds(self, c: float) -> tuple[float, float]:
        """Return proved lower and upper bounds on ln Phi(c)."""
        return _log_moment_bounds(self, c)

    def top(self, flipped: bool) -> float:
        """Largest loss, to a few units."""
        return math.inf

    def witnesses(self) -> list[Releases]:
        """Measures of pairs that are attained, where this one is an envelope of many."""
        return []

    def slope(self, c: float) -> float:
        """Bound the change of |Phi(c + i angle)| / Phi(c) with the angle.

        It is at most the mean of |L - m| under the tilted law, for any m, and so at most the root
        of the mean of (L - m)^2 <= (e^(a (L - m)) + e^(-a (L - m)) - 2) / a^2, for any a.
        """
        _, m, variance = self.cumulant(c)
        if not 0.0 < variance < math.inf:
            raise TooCostly
        whole = self.log_moment_bounds(c)[0]
        best = math.inf
        for a in (_STEPS / math.sqrt(variance)).tolist():
            right = self.log_moment_bounds(c + a)[1] - whole - a * m
            left = self.log_moment_bounds(c - a)[1] - whole + a * m
            slack = 8.0 * ULP * (abs(whole) + abs(a * m) + 1.0)
            if max(right, left) < 1.0:
                square = math.expm1(right + slack) + math.expm1(left + slack)
                best = min(best, math.sqrt(max(square, 0.0)) / a * (1.0 + 8.0 * ULP))
        return best


@lru_cache(maxsize=1024)
def _cumulant(pair: Pair, c: float) -> tuple[float, float, float]:
    return cumulant(pair.nodes(c, 0.0, ROUGH), c)


@lru_cache(maxsize=1024)
def _log_moment_bounds(pair: Pair, c: float) -> tuple[float, float]:
    values, errors = pair.log_moments(c, np.zeros(1), ROUGH)
    value, error = float(values[0].real), float(errors[0])
    return value - error, value + error


@lru_cache(maxsize=64)
def _variation(pair: Pair, c: float) -> tuple[Floats, Floats]:
    return pair.variation(c)


class Blend(Pair):
    """A choice among pairs by chance, the choice being shown: Phi is the mean of theirs.

    An upper bound: ``attained_pair``, if any, is what two databases attain.
    """

    attained = tight = False

    def __init__(
        self,
        pairs: tuple[Pair, ...],
        weights: tuple[float, ...],
        slack: float = 0.0,
        attained_pair: Pair | None = None,
    ) -> None:
        self.pairs, self.weights, self.slack = pairs, weights, slack
        self.attained_pair = attained_pair
        other = None if attained_pair is None else attained_pair.key
        self.key = ("blend", tuple(pair.key for pair in pairs), weights, other)
        self.symmetric = all(pair.symmetric for pair in pairs)

    @property
    def below(self) -> Pair | None:
        """What two databases attain."""
        return self.attained_pair

    def nodes(self, c: float, angle: float, tolerance: float) -> Nodes:
        """Quadrature of Phi on a line."""
        parts = [pair.nodes(c, angle, tolerance) for pair in self.pairs]
        logs = [part.logs + math.log(r) for part, r in zip(parts, self.weights, strict=True)]

        def remainder(angles: Floats, scale: float) -> Floats:
            terms = (
                r * part.remainder(angles, scale)
                for part, r in zip(parts, self.weights, strict=True)
            )
            return np.asarray(sum(terms))

        return Nodes(
            np.concatenate(logs),
            np.concatenate([part.losses for part in parts]),
            np.concatenate([part.fuzz for part in parts]) + 4.0 * ULP + self.slack,
            np.concatenate([part.off for part in parts]),
            remainder,
        )

    def top(self, flipped: bool) -> float:
        """Largest loss, to a few units."""
        return max(pair.top(flipped) for pair in self.pairs)

    def variation(self, c: float) -> tuple[Floats, Floats]:
        """Bounds that fall like one over the angle."""
        bounds = np.array([pair.log_moment_bounds(c) for pair in self.pairs])
        low, high = (bounds + np.log(self.weights)[:, None]).T
        shares = np.exp(high - np.logaddexp.reduce(low)) * (1.0 + 1e-6)
        each = [_variation(pair, c) for pair in self.pairs]
        a, b = ([share * v[i] for share, v in zip(shares, each, strict=True)] for i in (0, 1))
        # One line of the first with one of the second, and so on: all pairs of a few.
        total = np.zeros(1), np.zeros(1)
        for x, y in zip(a, b, strict=True):
            some = slice(None, None, max(1, len(x) // 24))
            total = (
                np.add.outer(total[0], x[some]).reshape(-1),
                np.add.outer(total[1], y[some]).reshape(-1),
            )
        return total

    def single(self, t: float, flipped: bool) -> tuple[float, float]:
        """Bound delta(t) of one release."""
        each = [pair.single(t, flipped) for pair in self.pairs]
        low = sum(r * one[0] for r, one in zip(self.weights, each, strict=True))
        high = sum(r * one[1] for r, one in zip(self.weights, each, strict=True))
        slack = 16.0 * ULP + 2.0 * self.slack
        return low * (1.0 - slack), min(high * (1.0 + slack), 1.0)

    def cells(self, far: float, count: int) -> Cells:
        """Cells of the outputs."""
        raise TooCostly  # several cells for one loss
