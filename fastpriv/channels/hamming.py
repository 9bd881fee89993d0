"""E_d: the same randomised response on every row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.logs import round_up
from fastpriv._core.validation import Floats, Ints
from fastpriv._structure.rows import RowKernels, Symmetric
from fastpriv.channels.product import ProductChannel
from fastpriv.priors import Distribution

__all__ = ["HammingChannel"]


class HammingChannel(ProductChannel):
    """E_d: every row keeps its value or moves to another one with chances 1 : e^-epsilon.

    The optimal mechanism of Wang-Ying-Zhang 2015 for differential privacy on part of the range
    (Theorem 1, Lemma 5): W[x, y] = e^(-epsilon d(x, y)) / (1 + (m-1) e^-epsilon)^n. Its DP level
    is epsilon, its distortion h(epsilon), its identifiability epsilon + eps_X.

    Parameters
    ----------
    n : int
        Number of rows.
    m : int or sequence of int
        Number of values of every row, or of each.
    epsilon : float
        Differential privacy level, at least 0.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = fp.HammingChannel(1_000_000, 4, 1.5)
    >>> fp.dp_level(channel)
    1.5
    >>> table = [[0, 1, 1]]  # one database of three bits; five noisy versions of it
    >>> fp.HammingChannel(3, 2, 1.5).sample(table * 5, rng=1).shape
    (5, 3)
    """

    def __init__(self, n: int, m: int | Sequence[int], epsilon: float) -> None:
        self.epsilon = check.real(epsilon, "epsilon", least=0.0)
        self._set(RowKernels.symmetric(check.row_sizes(n, m), self.epsilon))

    def neighbour_level(self) -> float:
        """Epsilon itself, or 0 where no row has a second value."""
        return self.epsilon if max(self.space.sizes) > 1 else 0.0

    def extreme_level(self) -> float:
        """Epsilon for every row that has a second value, the product rounded up."""
        count = self.space.n - self.space.sizes.count(1)
        level = self.epsilon * count
        short = Fraction(level) < Fraction(self.epsilon) * count
        return math.nextafter(level, math.inf) if short else level

    def posterior_level(self, prior: Distribution) -> float:
        """Epsilon + eps_X: every pair of neighbours reaches e^epsilon at some output."""
        spread = prior.epsilon_x()
        return round_up(self.epsilon + spread) if spread > 0.0 else self.neighbour_level()

    def realised(self) -> tuple[HammingChannel, float]:
        """Return E_d at the realised level: what is drawn is what it gives, or garbled further."""
        return HammingChannel(self.space.n, self.space.sizes, self.realised_level()), 0.0

    def response(self) -> tuple[int, float] | None:
        """Randomised response of one row with the fewest values, whose a is largest."""
        return min((m for m in self.space.sizes if m > 1), default=1), self.epsilon

    def excess(self, epsilons: Floats) -> Floats:
        """Chance of the one output that favours x, less e^epsilon times its chance under x'.

        a - e^t b = a (1 - e^(t - epsilon)), largest for the rows with the fewest values.
        """
        stay = max((k.stay for k in self._symmetric() if k.m > 1), default=0.0)
        gaps = np.minimum(epsilons - self.epsilon, 0.0)
        return -stay * np.expm1(gaps) * (1.0 + 2.0**-49)

    def excess_crossing(self, delta: float) -> float:
        """Where a (1 - e^(t - epsilon)) falls to delta: t = epsilon + ln(1 - delta/a)."""
        stay = max((k.stay for k in self._symmetric() if k.m > 1), default=0.0)
        share = delta / stay if delta < stay else 1.0
        if share >= 1.0:
            return 0.0
        level = self.epsilon + math.log1p(-share)
        # The chance a is good to 4 units, which log1p amplifies where the share is close to 1.
        level += 2.0**-50 * (self.epsilon + share / (1.0 - share))
        return min(max(level, 0.0), self.neighbour_level())

    def attribute_range(self, low: Ints, high: Ints) -> tuple[Ints, Ints]:
        """Every database can cause every output, also where its chance rounds to 0."""
        return low.min(keepdims=True), high.max(keepdims=True)

    def least_support(self) -> int:
        """All databases."""
        return self.space.size

    def ruling_out(self) -> tuple[int, Ints]:
        """No output does, also where a chance rounds to 0."""
        return 0, np.empty((0, self.space.n), dtype=np.int64)

    def _symmetric(self) -> list[Symmetric]:
        return [k for k in self._kernels.distinct if isinstance(k, Symmetric)]

    def __repr__(self) -> str:
        sizes = self.space.m or "mixed"
        return f"HammingChannel(n={self.space.n}, m={sizes}, epsilon={self.epsilon:g})"
