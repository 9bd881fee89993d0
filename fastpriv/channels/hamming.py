"""E_d: the same randomised response on every row."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.defined import runs, unrolled
from fastpriv._core.validation import Floats
from fastpriv._matrices.excess import distances
from fastpriv._matrices.levels import raised_beside
from fastpriv._structure.rows import RowKernels, Symmetric, inner_level
from fastpriv.channels.product import ProductChannel

__all__ = ["HammingChannel"]


class HammingChannel(ProductChannel):
    """E_d: every row keeps its value or moves to another one with chances 1 : e^-epsilon.

    W[x, y] = e^(-epsilon d(x, y)) / (1 + (m-1) e^-epsilon)^n, with DP level epsilon, distortion
    h(epsilon) and identifiability epsilon + eps_X (Wang-Ying-Zhang 2015, (27) and Lemma 5). From
    ``prior.epsilon_hat()`` on no mechanism of that DP level has less distortion; the paper's
    Theorem 1 bounds it only, the proof is in the documentation's Theory.

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

    def matrix(self) -> Floats:
        """Return W[x, y] = p(y|x), an N x N array of doubles, rounded inwards.

        Its level is at most epsilon, and pairs at the same distance have the same entry.
        """
        self.check_matrix_fits()
        n, sizes = self.space.n, self.space.sizes
        level = inner_level(self.epsilon, n, max(sizes))
        stay = math.prod(Symmetric(m, level).stay for m in sizes)
        entries: Floats = np.multiply.accumulate(np.array([stay, *[math.exp(-level)] * n]))
        d = np.arange(n)
        entries = raised_beside(entries[:, None], [(d + 1, d)], self.epsilon)[:, 0]
        return np.asarray(entries[distances(sizes).astype(np.int64)])

    def symmetric(self) -> list[Symmetric]:
        return [k for k in self.kernels.distinct if isinstance(k, Symmetric)]

    def definition(self) -> dict[str, Any]:
        return {"sizes": runs(np.asarray(self.space.sizes)), "epsilon": self.epsilon}

    @classmethod
    def from_definition(cls, given: Mapping[str, Any]) -> HammingChannel:
        sizes = unrolled(given["sizes"], 1 << 62).tolist()
        return cls(len(sizes), sizes, given["epsilon"])

    def __repr__(self) -> str:
        sizes = self.space.m or "mixed"
        return f"HammingChannel(n={self.space.n}, m={sizes}, epsilon={self.epsilon:g})"
