"""Gaussian noise by itself: a pair of normal laws, whose moments have a closed form."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats
from fastpriv.accounting.profile.mixtures import Mixtures
from fastpriv.accounting.profile.nodes import Complexes, Nodes
from fastpriv.accounting.profile.pairs import Cells, Pair


class Normal(Pair):
    """Two normal laws whose means are one apart: ln Phi(w) = mu^2 w (w - 1) / 2, mu = 1 / sigma.

    ``square`` is mu^2. Compositions add it, so all normal pairs of a profile are one.
    """

    symmetric = True

    def __init__(self, sigma: float) -> None:
        self.sigma, self.square, self.error = sigma, sigma**-2.0, 4.0 * ULP
        self.key = ("normal", sigma)

    @classmethod
    def together(cls, parts: list[tuple[Normal, int]]) -> Normal:
        """All releases of normal pairs as one."""
        total = math.fsum(k * part.square for part, k in parts)
        result = cls(total**-0.5)
        result.square, result.error = total, 16.0 * ULP
        return result

    def nodes(self, c: float, angle: float, tolerance: float) -> Nodes:
        """Quadrature of Phi on a line."""
        raise NotImplementedError  # moments are known in closed form

    def log_moments(self, c: float, angles: Floats, tolerance: float) -> tuple[Complexes, Floats]:
        """Return ln Phi(c + i angle), exactly but for rounding."""
        half = 0.5 * self.square
        real = half * (c * (c - 1.0) - angles * angles)
        turn = half * angles * (2.0 * c - 1.0)
        size = half * (abs(c) * (abs(c) + 1.0) + angles**2 + np.abs(angles) * (2 * abs(c) + 1.0))
        return real + 1j * turn, size * (8.0 * ULP + self.error)

    def ceiling(self, c: float, angles: Floats) -> Floats:
        """|Phi(c + i angle)| / Phi(c), which falls with the angle."""
        return np.asarray(np.exp(-0.5 * self.square * (1.0 - 1e-12) * angles**2))

    def cumulant(self, c: float) -> tuple[float, float, float]:
        """Return ln Phi(c) and two derivatives."""
        half = 0.5 * self.square
        return half * c * (c - 1.0), half * (2.0 * c - 1.0), self.square

    def variation(self, c: float) -> tuple[Floats, Floats]:
        """Bounds that fall like one over the angle."""
        return np.zeros(1), np.array([1.0 / math.sqrt(self.square)])

    def slope(self, c: float) -> float:
        """Standard deviation of the losses."""
        return math.sqrt(self.square)

    def single(self, t: float, flipped: bool) -> tuple[float, float]:
        """Bound delta(t) of one release."""
        raise NotImplementedError  # one release is as good as many

    def cells(self, far: float, count: int) -> Cells:
        """Cells of the outputs."""
        result = Mixtures(1.0, ((math.sqrt(self.square), 1.0),)).cells(far, count)
        return replace(result, off=result.off + self.error * float(np.abs(result.losses).max()))
