"""Expected gains of plain matrices: before an output is seen, and after."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from fastpriv import kernels
from fastpriv._core import validation as check
from fastpriv._core.rounding import LEAST, log1p_up, raised, roundoff, sum_error
from fastpriv._core.validation import Floats


class Vulnerability(NamedTuple):
    """Vulnerability before an output is seen, after it, and the difference.

    ``lower`` and ``upper`` enclose the prior vulnerability. ``posterior``, ``added`` (the
    difference) and ``level`` (ln of the ratio) are rounded up. The level is NaN if the prior
    vulnerability is negative.
    """

    lower: float
    upper: float
    posterior: float
    added: float
    level: float

    @classmethod
    def of(cls, lower: float, upper: float, posterior: float, added: float) -> Vulnerability:
        """Take the level from the others, for a right guess."""
        added = max(added, 0.0)
        return cls(lower, upper, posterior, added, log1p_up(raised(added / lower, 2.0)))

    @classmethod
    def multiplied(cls, lower: float, upper: float, level: float) -> Vulnerability:
        """Compute the added gain, and the sum, from the ratio of two probabilities."""
        grown = 1.0 + roundoff(16.0)
        added = min(1.0, upper * math.expm1(level) * grown + (LEAST if level > 0.0 else 0.0))
        return cls(lower, upper, min(1.0, upper + added * grown), added, level)

    def moved(self, error: float, size: float) -> Vulnerability:
        """Allow for relative errors of the matrix, for gains of at most ``size``."""
        off = 2.0 * error * size
        level = self.level + raised(off / self.lower, 4.0) if self.lower > 0.0 else self.level
        return Vulnerability(self.lower, self.upper, self.posterior + off, self.added + off, level)


def prior_vulnerability(prior: Floats, gain: Floats) -> tuple[float, float, int]:
    """Return the largest sum_x g[w, x] p(x), from below and above, and the action."""
    values = gain @ prior
    error = _error(np.abs(gain) @ prior, len(prior))
    return float((values - error).max()), float((values + error).max()), int(values.argmax())


def matrix_vulnerability(W: Floats, prior: Floats, gain: Floats) -> Vulnerability:
    """Take sum_y max_w sum_x p(x) W[x, y] g[w, x] of matrices. Cost O(N K actions)."""
    check.fits(len(gain) * W.shape[1], "the table of actions and outputs", "use fewer actions")
    out = np.empty((1, 5))
    W, prior, gain = (_own(a) for a in (W, prior, gain))
    kernels.gain_vulnerabilities(W[None], prior[None], gain, math.inf, out)
    posterior, added, level, lower, upper = out[0].tolist()
    return Vulnerability(lower, upper, posterior, added, level)


def bayes_vulnerability(W: Floats, prior: Floats) -> Vulnerability:
    """Take sum_y max_x p(x) W[x, y] of matrices: the gain of a right guess. Cost O(N K)."""
    before, out = float(prior.max()), np.empty((1, 3))
    kernels.bayes_vulnerabilities(_own(W)[None], _own(prior)[None], math.inf, out)
    return Vulnerability(before, before, *out[0].tolist())


def _own(array: Floats) -> Floats:
    """Return memory in C order that may be written to: kernels are compiled for no other."""
    return array if array.flags.carray else np.array(array, order="C")


def _error(sizes: Floats, terms: int) -> Floats:
    """Bound the rounding of sums of products, given the sums of their absolute values."""
    return np.where(sizes > 0.0, sum_error(terms, 8) * sizes + 2 * terms * LEAST, 0.0)


def best_set(W: Floats) -> tuple[float, float, Floats]:
    """Bound the largest additive Bayes leakage over priors; return a prior that has it.

    Some uniform distribution on a set S of databases has it (Alvim et al. 2014): a prior is a
    mixture of the uniform distributions on its level sets, prior vulnerability is linear in the
    weights and posterior vulnerability convex. The distribution on S adds (sum_y max_S W[x, y] -
    1)/|S|. Cost O(2^N K).
    """
    tops, members = np.zeros((1, W.shape[1])), np.zeros(1)
    for row in W[::-1]:  # set number j has the databases of the binary digits of j
        tops = np.concatenate([tops, np.maximum(tops, row)])
        members = np.concatenate([members, members + 1.0])
    added = (tops[1:].sum(axis=1) - 1.0) / members[1:]
    number = int(added.argmax())
    chosen = [(number + 1) >> x & 1 for x in range(len(W))][::-1]
    law, value = np.array(chosen, np.float64) / sum(chosen), float(added[number])
    error = sum_error(W.shape[1], 8) * (value + 1.0)
    return max(0.0, value - error), value + error, law
