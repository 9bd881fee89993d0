"""Priors that store a structure instead of a vector: what the structure does not answer."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.logs import log_ratio
from fastpriv._core.rounding import log1p_up, raised, round_up
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.leakage import log_error
from fastpriv.priors.base import Distribution
from fastpriv.priors.dense import Dense
from fastpriv.priors.rare import rare_hat, rare_ratios
from fastpriv.priors.unmixing import vector_threshold
from fastpriv.results import Bracket


class StructuredDistribution(Distribution):
    """A prior with a structure. Questions without an answer in it go through the full vector."""

    def as_dense(self, what: str, limit: int = check.MAX_VECTOR) -> Dense:
        """Expand into a full vector, or say why ``what`` cannot be had that way."""
        check.fits(
            self.space.size,
            f"{what} of {self!r} needs the dense form, which",
            "use fewer rows, or a product or exchangeable prior, which need no such vector",
            limit,
        )
        return Dense.of(self.pmf(), self.space, self.logs_if_rare())

    def epsilon_tilde(self) -> float | Bracket:
        """Return the least epsilon for which E_i exists, through the vector of the law."""
        return vector_threshold(self, self.as_dense("epsilon_tilde").probabilities)

    def given(self, values: Mapping[int, int]) -> Distribution:
        """Return the law given the values of some rows, through the vector."""
        return self.as_dense("the law given some rows").given(values)

    def log_smallest(self) -> float:
        """Log of the least positive probability, through the vector. Rounded down."""
        return self.as_dense("the least probability").log_smallest()


class LineDistribution(StructuredDistribution):
    """A prior that can list how a row is distributed given all others."""

    @abstractmethod
    def conditional_lines(self, rows: Ints) -> Floats:
        """Weights of a row's values given all others, up to scale: (lines, m) for equal rows.

        Every line belongs to one of ``rows`` (which have the same size) and to one setting of the
        other rows; together they cover all ratios that occur.
        """

    @property
    def rounding_error(self) -> float:
        """What the rounding of lines may take from the log of a ratio of their weights."""
        return 0.0

    def _log_lines(self, rows: Ints) -> Floats | None:
        """Logarithms of the same where doubles do not hold the ratios, else None."""
        return None

    def log_ratios(self, rows: Ints) -> Floats:
        logs = self._log_lines(rows)
        if logs is not None:
            return rare_ratios(logs)
        ratios = line_log_ratios(self.conditional_lines(rows))
        return np.asarray(ratios + self.rounding_error * (1.0 - np.eye(len(ratios))))

    def epsilon_x(self) -> float:
        """Return eps_X, the largest ln p(x)/p(x') over neighbours. Rounded up."""
        worst = 0.0
        for rows in self.equal_sized_records():
            if (logs := self._log_lines(rows)) is not None:
                worst = max(worst, float(rare_ratios(logs).max()))
                continue
            lines = self.conditional_lines(rows)
            most, least = lines.max(axis=1), lines.min(axis=1)
            seen = most > 0
            worst = max(worst, float(log_ratio(most[seen], least[seen]).max(initial=0.0)))
        return round_up(worst + self.rounding_error)

    @property
    def epsilon_x_error(self) -> float:
        logs = (self._log_lines(rows) for rows in self.equal_sized_records())
        return max([self.rounding_error, *(log_error(log, 0.0) for log in logs if log is not None)])

    def epsilon_hat(self) -> float:
        """Return the epsilon from which E_d is the best mechanism for differential privacy.

        The largest ln(1/p(x_i | x_-i) - m_i + 1) over rows and databases, at least 0. Rounded up.
        """
        worst = 0.0
        for rows in self.equal_sized_records():
            logs = self._log_lines(rows)
            hat = _line_hat(self.conditional_lines(rows)) if logs is None else rare_hat(logs)
            worst = max(worst, hat)
        # A relative error of every weight of a line counts at most m times.
        slack = max(self.space.sizes) * self.rounding_error
        return max(self.epsilon_x(), round_up(worst + slack))


def line_log_ratios(lines: Floats) -> Floats:
    """Largest ln L[s]/L[t] over lines, for every (s, t); -inf where no line has weight at s."""
    m = lines.shape[1]
    worst = np.full((m, m), -math.inf)
    for s in range(m):
        seen = lines[lines[:, s] > 0]
        if len(seen):
            worst[s] = log_ratio(seen[:, s : s + 1], seen).max(axis=0)
    return worst


def _line_hat(lines: Floats) -> float:
    """Largest ln(1/p(s | line) - m + 1), from sum (L - min L) / min L so that nothing cancels."""
    least = lines.min(axis=1)
    spread = (lines - least[:, None]).sum(axis=1)
    if np.any(spread[least == 0] > 0):
        return math.inf
    live = spread > 0
    if not live.any():
        return 0.0
    spread, least = spread[live], least[live]
    with np.errstate(over="ignore"):
        worst = float((spread / least).max())
    if worst == math.inf:
        return float(raised(log_ratio(spread, least).max(), lines.shape[1] + 4.0))
    return log1p_up(raised(worst, lines.shape[1] + 3.0))
