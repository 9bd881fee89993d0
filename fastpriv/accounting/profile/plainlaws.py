"""Laws of the loss before sampling, on its positive side: of normal noise, and on an interval."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats
from fastpriv.accounting.profile.intervals import Interval
from fastpriv.accounting.profile.mixtures import Mixtures
from fastpriv.accounting.profile.pairs import Pair

_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


class PlainLaw(Protocol):
    """Density f of the loss l of a symmetric pair under its second law, for l > 0.

    ``bend`` bounds |(ln f)''|, ``lift`` is such that |f(l + iy)| <= f(l) e^(lift y^2), ``width`` is
    the scale on which f changes, and ``top`` the largest loss.
    """

    bend: float
    lift: float
    width: float
    top: float

    def log(self, loss: Floats) -> Floats:
        """Logarithm of f."""

    def slope(self, loss: Floats) -> Floats:
        """(ln f)', which falls."""

    def largest(self, loss: Floats) -> Floats:
        """Upper bound on ln f at a loss and to the right of it."""

    def fuzz(self, loss: Floats) -> Floats:
        """Relative error of f at losses that are off by some units of the last one."""

    def below(self) -> float:
        """Q(l < 0) - Q(l > 0), to a few units."""

    def atom(self) -> float:
        """Logarithm of the mass under Q at the largest loss; minus infinity for none."""


class Bell:
    """Two normal laws at a distance of a: l is normal with mean -a^2/2 and variance a^2."""

    top = math.inf

    def __init__(self, a: float) -> None:
        self.a, self.width = a, a
        self.bend, self.lift = 1.0 / (a * a), 0.5 / (a * a)

    def log(self, loss: Floats) -> Floats:
        """Logarithm of f."""
        u = loss / self.a + 0.5 * self.a
        return np.asarray(-0.5 * u * u - _HALF_LOG_TWO_PI - math.log(self.a))

    def slope(self, loss: Floats) -> Floats:
        """(ln f)'."""
        return np.asarray(-(loss / self.a + 0.5 * self.a) / self.a)

    def largest(self, loss: Floats) -> Floats:
        """Upper bound on ln f from a loss on."""
        return self.log(np.maximum(loss, -0.5 * self.a * self.a))

    def fuzz(self, loss: Floats) -> Floats:
        """Relative error of f."""
        u, most = np.abs(loss) / self.a + 0.5 * self.a, float(np.abs(loss).max()) / self.a
        return np.asarray(ULP * (64.0 + 8.0 * u * (u + most)))

    def below(self) -> float:
        """erf(a / (2 sqrt 2))."""
        return math.erf(self.a * math.sqrt(0.125))

    def atom(self) -> float:
        """None."""
        return -math.inf


class Slope:
    """Losses on [-e, e] with density k e^(-(l + e)/2), and maybe an atom at each end."""

    bend = lift = 0.0

    def __init__(self, e: float, atoms: bool) -> None:
        self.top, self.atoms, self.width = e, atoms, max(e, 2.0)
        self.start = math.log(0.25) if atoms else -math.log(-2.0 * math.expm1(-e))

    def log(self, loss: Floats) -> Floats:
        """Logarithm of f."""
        return np.asarray(self.start - 0.5 * (loss + self.top))

    def slope(self, loss: Floats) -> Floats:
        """(ln f)'."""
        return np.full(len(loss), -0.5)

    def largest(self, loss: Floats) -> Floats:
        """Upper bound on ln f from a loss on."""
        return self.log(loss)

    def fuzz(self, loss: Floats) -> Floats:
        """Relative error of f."""
        return np.full(len(loss), ULP * (64.0 + 8.0 * self.top))

    def below(self) -> float:
        """1 - e^(-e/2) with atoms, tanh(e/4) without."""
        return -math.expm1(-0.5 * self.top) if self.atoms else math.tanh(0.25 * self.top)

    def atom(self) -> float:
        """Logarithm of e^-e / 2."""
        return math.log(0.5) - self.top if self.atoms else -math.inf


def plain_law(sampled: Pair) -> tuple[PlainLaw, float]:
    """Return the law of the loss before sampling, and the rate, of a pair that is sampled."""
    if isinstance(sampled, Interval):
        return Slope(sampled.e, sampled.atoms), sampled.q
    assert isinstance(sampled, Mixtures)
    ((a, q),) = sampled.up
    return Bell(a), q
