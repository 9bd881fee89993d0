"""Expected gains of plain matrices: before an output is seen, and after."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from fastpriv import kernels
from fastpriv._core import validation as check
from fastpriv._core.rounding import LEAST, ULP, round_up
from fastpriv._core.validation import Floats


class Vulnerability(NamedTuple):
    """Vulnerability before an output is seen, after it, and the difference.

    ``lower`` and ``upper`` enclose the prior vulnerability. ``posterior``, ``added`` (the
    difference) and ``level`` (ln of the ratio) are rounded up.
    """

    lower: float
    upper: float
    posterior: float
    added: float
    level: float

    @classmethod
    def of(cls, lower: float, upper: float, posterior: float, added: float) -> Vulnerability:
        """Take the level from the others; NaN where the prior vulnerability is negative."""
        added = max(added, 0.0)
        if upper < 0.0:
            return cls(lower, upper, posterior, added, math.nan)
        if added == 0.0:
            return cls(lower, upper, posterior, 0.0, 0.0)
        level = round_up(math.log1p(added / lower)) if lower > 0.0 else math.inf
        return cls(lower, upper, posterior, added, level)

    @classmethod
    def multiplied(cls, lower: float, upper: float, level: float) -> Vulnerability:
        """Take what is added, and the sum, from the ratio of two probabilities."""
        grown = 1.0 + 16.0 * ULP
        added = min(1.0, upper * math.expm1(level) * grown + (LEAST if level > 0.0 else 0.0))
        return cls(lower, upper, min(1.0, upper + added * grown), added, level)

    def capped(self, level: float) -> Vulnerability:
        """Take another upper bound on the level of a gain that is not negative."""
        if level >= self.level:
            return self
        grown = 1.0 + 16.0 * ULP
        added = min(self.added, self.upper * math.expm1(level) * grown)
        return Vulnerability(
            self.lower, self.upper, min(self.posterior, (self.upper + added) * grown), added, level
        )


def prior_vulnerability(prior: Floats, gain: Floats) -> tuple[float, float, int]:
    """Return the largest sum_x g[w, x] p(x), from below and above, and the action."""
    values = gain @ prior
    error = _error(np.abs(gain) @ prior, len(prior))
    return float((values - error).max()), float((values + error).max()), int(values.argmax())


def matrix_vulnerability(W: Floats, prior: Floats, gain: Floats) -> Vulnerability:
    """Take sum_y max_w sum_x p(x) W[x, y] g[w, x] of matrices. Cost O(N K actions).

    The difference is the sum over y of what the best action after y gains over the best action
    before it: no term is negative.
    """
    lower, upper, best = prior_vulnerability(prior, gain)
    outputs = W.shape[1]
    check.fits(len(gain) * outputs, "the table of actions and outputs", "use fewer actions")
    joint = prior[:, None] * W
    excess = gain - gain[best]
    other = excess[np.abs(excess).max(axis=1) > 0.0]  # actions that are not worth just the same
    added = 0.0
    seen = W[prior > 0.0]
    if len(other) and (seen != seen[0]).any():  # equal rows add nothing, exactly
        sizes = np.abs(other).max(axis=0) @ joint
        more = (other @ joint).max(axis=0) + _error(sizes, len(prior))
        added = math.fsum(np.maximum(more, 0.0)) * (1.0 + 4.0 * ULP)
    posterior = upper + added
    return Vulnerability.of(lower, upper, posterior + 2.0 * ULP * abs(posterior), added)


def bayes_vulnerability(W: Floats, prior: Floats) -> Vulnerability:
    """Take sum_y max_x p(x) W[x, y] of matrices: the gain of a right guess. Cost O(N K)."""
    before, out = float(prior.max()), np.empty((1, 3))
    kernels.bayes_vulnerabilities(W[None], prior[None], math.inf, out)
    return Vulnerability(before, before, *out[0].tolist())


def _error(sizes: Floats, terms: int) -> Floats:
    """Bound the rounding of sums of products, given the sums of their absolute values."""
    return np.where(sizes > 0.0, (terms + 8) * ULP * sizes + 2 * terms * LEAST, 0.0)
