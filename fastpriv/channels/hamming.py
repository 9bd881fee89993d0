"""E_d: the same randomised response on every row."""

from __future__ import annotations

from collections.abc import Sequence

from fastpriv._core import validation as check
from fastpriv._structure.rows import RowKernels, Symmetric
from fastpriv.channels.copies import by_copies
from fastpriv.channels.product import SEARCHED, ProductChannel, hamming_distance
from fastpriv.priors import Distribution
from fastpriv.results import IndividualCapacity

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

    def individual_capacity(self, k: int, gap: float, time_limit: float) -> IndividualCapacity:
        """Two opposite databases in closed form; a bracket from copies, searched while small."""
        bracket = by_copies(self._symmetric(), self._kernels.assignment, k)
        narrow = bracket.width <= gap * min(1.0, bracket.lower)
        if narrow or self.space.size**2 > SEARCHED:
            return bracket
        found = self._searched(k, gap, time_limit)
        best = max(found, bracket, key=lambda b: b.lower)
        upper = max(best.lower, min(found.upper, bracket.upper))
        return IndividualCapacity(best.lower, upper, best.adversary)

    def _symmetric(self) -> list[Symmetric]:
        return [k for k in self._kernels.distinct if isinstance(k, Symmetric)]

    def expected_distance(self, prior: Distribution) -> float:
        """Return h(epsilon), whatever the prior (Lemma 5)."""
        return hamming_distance(self._kernels)

    def __repr__(self) -> str:
        sizes = self.space.m or "mixed"
        return f"HammingChannel(n={self.space.n}, m={sizes}, epsilon={self.epsilon:g})"
