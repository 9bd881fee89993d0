"""Leakage under exchangeable priors of two values per row, from counts alone.

An output y turns the row-by-row channel into a polynomial in u, the product over rows of
near[0, y_i] + near[1, y_i] u: its coefficient c_k adds up W[x, y] over the x with k ones.
"""

from __future__ import annotations

import math

import numpy as np

from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats, Ints
from fastpriv._structure.rows import RowKernels


class OutputForm:
    """The polynomial of one output: how many rows have each factor a + b u."""

    def __init__(self, kernels: RowKernels, y: Ints) -> None:
        near, logs, counts = [], [], []
        for kernel, rows in kernels.groups():
            rows_of = np.bincount(y[rows], minlength=kernel.shape[1])
            for value in np.flatnonzero(rows_of):
                near.append(kernel.near[:, value])
                logs.append(kernel.log_near[:, value])
                counts.append(rows_of[value])
        self.near, self.logs, self.counts = np.array(near), np.array(logs), np.array(counts)
        self.n = int(self.counts.sum())

    @property
    def error(self) -> float:
        """Bound the rounding error of the logarithms below."""
        size = np.where(np.isinf(self.logs), 0.0, np.abs(self.logs)).max(axis=1)
        return (24 * self.n + 64) * ULP + 16.0 * ULP * float(self.counts @ size)

    @property
    def possible(self) -> bool:
        """Whether any database leads to the output."""
        return bool(np.all(self.logs.max(axis=1) > -math.inf))

    def _split(self) -> tuple[int, int, Floats, Ints]:
        """Rows that must hold 1, rows that must hold 0, and ln near and counts of the others.

        A row that must hold its value has near 1 there.
        """
        ones, zeros = np.isinf(self.logs[:, 0]), np.isinf(self.logs[:, 1])
        free = ~(ones | zeros)
        forced, barred = int(self.counts[ones].sum()), int(self.counts[zeros].sum())
        return forced, barred, self.logs[free], self.counts[free]

    def extreme(self, allowed: Ints, sign: float = 1.0) -> float:
        """Largest (sign 1) or least (sign -1) ln W[x, y] over x with an allowed number of ones.

        Rows that gain most by a one get theirs first: linear between the kinds' turns.
        """
        if sign < 0 and np.isinf(self.logs).any():
            return self.smallest(allowed)
        forced, barred, logs, counts = self._split()
        ones = allowed[(allowed >= forced) & (allowed <= self.n - barred)] - forced
        if not len(ones):
            return -math.inf
        gains = logs[:, 1] - logs[:, 0]
        order = np.argsort(-sign * gains)
        turns = np.concatenate([[0], np.cumsum(counts[order])])
        heights = np.concatenate([[0.0], np.cumsum(counts[order] * gains[order])])
        signed = sign * np.interp(ones, turns, heights)
        return float(counts @ logs[:, 0]) + sign * float(signed.max())

    def smallest(self, allowed: Ints) -> float:
        """Least ln W[x, y] where some factor vanishes: -inf unless no allowed x meets it."""
        ones, zeros = np.isinf(self.logs[:, 0]), np.isinf(self.logs[:, 1])
        need, bar = int(self.counts[ones].sum()), int(self.counts[zeros].sum())
        # Every x with fewer than n ones can leave a forced row at 0, one with a one can spoil a
        # barred row: only the all-ones and all-zeros databases escape.
        escapes = (allowed == self.n) if not bar else np.zeros(len(allowed), bool)
        if not need:
            escapes |= allowed == 0
        if not escapes.all():
            return -math.inf
        ends = [self.counts @ self.logs[:, 1 if k else 0] for k in allowed.tolist()]
        return float(min(ends))

    def log_mass(self, log_weights: Floats) -> float | None:
        """Log of sum_k e^log_weights[k] c_k / C(n, k); None where more than two factors are mixed.

        Cost O(n).
        """
        from fastpriv.kernels import binomial_product

        if not self.possible:
            return -math.inf
        forced, barred, logs, counts = self._split()
        if len(logs) > 2:
            return None
        forms: list[tuple[int, float, float]] = [
            (int(c), math.exp(zero), math.exp(one))
            for c, (zero, one) in zip(counts, logs.tolist(), strict=True)
        ]
        forms += [(0, 1.0, 1.0)] * (2 - len(forms))
        if min(min(form[1:]) for form in forms) == 0.0:
            return None
        first = float(counts @ logs[:, 0]) - log_binomial(self.n, forced)
        last = float(counts @ logs[:, 1]) - log_binomial(self.n, barred)
        terms = binomial_product(*forms[0], *forms[1], self.n, forced, first, last)
        terms = terms + log_weights[forced : self.n - barred + 1]
        top = float(terms.max())
        if top == -math.inf:
            return -math.inf
        return top + math.log(math.fsum(np.exp(terms - top)))


def log_binomial(n: int, k: int) -> float:
    """Log of n choose k."""
    k = min(k, n - k)
    return math.fsum(np.log(np.arange(n, n - k, -1) / np.arange(1, k + 1)))
