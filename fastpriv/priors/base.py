"""What every prior answers, and the parts of the answer that do not depend on its structure."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.logs import log_ratio, round_up
from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.leakage import (
    TINY,
    Column,
    Leakages,
    log_masses,
    vector_column,
    vector_leakages,
)
from fastpriv._structure.rows import RowKernel, RowKernels, distinct_sizes
from fastpriv.errors import InvalidInput
from fastpriv.results import Bracket
from fastpriv.spaces import Space

if TYPE_CHECKING:
    from fastpriv._sampling.source import Source
    from fastpriv.priors.dense import Dense


#: Largest pmf that a structured prior keeps once it was asked for.
_KEEP = 1 << 12
#: Largest law that is drawn from by sums over its prefixes.
_MAX_DRAWN = 1 << 25
#: Databases whose log-probabilities are asked for in one go.
_CHUNK = 1 << 16


class Distribution(ABC):
    """A law over the databases of a space.

    Subclasses store a structure (independent rows, exchangeable rows, a chain, a full vector) and
    answer every question in it, without listing the N databases where the structure allows.
    """

    space: Space

    # What a user asks.

    @abstractmethod
    def pmf(self) -> Floats:
        """Return the probability of every database, flat in C order (N numbers)."""

    @abstractmethod
    def _log_prob(self, rows: Ints) -> Floats:
        """Log-probability of databases of shape (k, n)."""

    @abstractmethod
    def entropy(self) -> float | Bracket:
        """Return H(X) in nats."""

    @abstractmethod
    def min_entropy(self) -> float:
        """Return -ln of the largest probability, in nats."""

    @abstractmethod
    def _sample(self, k: int, rng: np.random.Generator) -> Ints:
        """Draw k databases, shape (k, n)."""

    def log_prob(self, rows: ArrayLike) -> Floats | float:
        """Log-probability of databases: shape (..., n) to (...), -inf where impossible."""
        given = check.rows(rows, self.space.sizes)
        flat = self._log_prob(given.reshape(-1, self.space.n))
        return float(flat[0]) if given.ndim == 1 else flat.reshape(given.shape[:-1])

    def sample(self, k: int, rng: np.random.Generator | int | None = None) -> Ints:
        """Draw ``k`` databases as an array of shape (k, n).

        ``rng`` is a NumPy generator or a seed; by default one seeded from the operating system.
        Made-up databases hide nobody, so this is a fast generator and not a secure one.
        """
        k = check.integer(k, "k", 0)
        check.fits(k * self.space.n, "the sample", "draw it in parts")
        return self._sample(k, check.generator(rng))

    def epsilon_x(self) -> float:
        """Return eps_X, the largest ln p(x)/p(x') over neighbours (Wang-Ying-Zhang 2015, eq. (16)).

        Infinite as soon as some database has probability zero. Rounded up.
        """
        ratios = [self._log_ratios(rows).max() for rows in self._equal_sized_rows()]
        return round_up(max(0.0, *map(float, ratios)))

    @abstractmethod
    def epsilon_hat(self) -> float:
        """Return the epsilon from which E_d is the best mechanism for differential privacy.

        From there on it has the least expected distortion of all epsilon-private mechanisms (it
        solves the program PD-DP of Wang-Ying-Zhang 2015; the threshold is our own result).

        The largest ln(1/p(x_i | x_-i) - m_i + 1) over rows and databases, at least 0. It lies
        between eps_X (where it is for two values per row) and eps_tilde. Rounded up.
        """

    def epsilon_tilde(self) -> float:
        """Return the least epsilon for which E_i exists (Wang-Ying-Zhang 2015, Section 3).

        The least e with R_e^-1 p >= 0, where R_e is the Hamming kernel of E_d: from there on some
        output law makes the posterior exactly R_e. Infinite if a database has probability zero.

        R_e^-1 amplifies the rounding of the prior, the more the smaller e is. The answer is the
        least e that a prior within a few ulp of the given one can have: rounded binomial weights
        get the threshold of independent bits, not that of their rounding errors.
        """
        return self._dense("epsilon_tilde").epsilon_tilde()

    # What channels ask.

    def _vector(self) -> Floats:
        """Probability of every database for a kernel to read; kept while it is small."""
        kept: Floats | None = self.__dict__.get("_kept_vector")
        if kept is None:
            kept = self.pmf()
            if kept.size <= _KEEP:
                self.__dict__["_kept_vector"] = kept
        return kept

    def _logs(self) -> Floats | None:
        """Log-probability of every database where some underflow, None where none can.

        A database too rare for a double is not an impossible one: its output may leak most.
        Every subclass has its own answer to this question or to ``_log_least``.
        """
        if self._log_least() > math.log(TINY):
            return None
        return self._all_logs()

    def _all_logs(self) -> Floats:
        """Log-probability of every database (N numbers)."""
        check.fits(self.space.size, f"the pmf of {self!r}", "ask for log_prob of chosen rows")
        logs = np.empty(self.space.size)
        for start in range(0, len(logs), _CHUNK):
            part = np.arange(start, min(start + _CHUNK, len(logs)))
            logs[part] = self._log_prob(self.space.rows(part))
        return logs

    @abstractmethod
    def _log_ratios(self, rows: Ints) -> Floats:
        """Largest ln p(s, rest)/p(t, rest) for every pair (s, t) of values of the given rows."""

    @abstractmethod
    def _expected_counts(self, rows: Ints) -> Floats:
        """Sum of the marginals of the given rows, which have the same size."""

    def _log_marginal(self, i: int) -> tuple[Floats, float]:
        """Log of the law of row i, -inf only for values that cannot occur.

        Also bounds what the chances of values that are too rare for a double are off by.
        """
        marginal = self._expected_counts(np.array([i]))
        with np.errstate(divide="ignore"):
            logs = np.log(marginal)
        rare, error = np.flatnonzero(marginal < TINY), 0.0
        if len(rare):
            hide = [RowKernel(np.ones((m, 1))) for m in distinct_sizes(self.space.sizes)[0]]
            kernels = RowKernels(hide, distinct_sizes(self.space.sizes)[1])
            shown = kernels.replaced(i, RowKernel(np.eye(len(marginal))))
            y = np.zeros(self.space.n, dtype=np.int64)
            for value in rare.tolist():
                y[i] = value
                column = self.column_through(shown, y)
                if column.mass > -math.inf:
                    error = max(error, column.error)
                logs[value] = column.mass
        return np.asarray(logs), error

    @abstractmethod
    def through(self, kernels: RowKernels) -> Distribution:
        """Law of the output of a row-by-row channel."""

    def column_through(self, kernels: RowKernels, y: Ints) -> Column:
        """One output of a row-by-row channel: the likeliest database behind it and its chance.

        Cost O(N), less where the structure allows.
        """
        return vector_column(self._vector(), kernels, y, self._logs())

    def leakages_through(self, kernels: RowKernels) -> Leakages:
        """How far every output of a row-by-row channel moves the odds. Cost O(N n m)."""
        return vector_leakages(self._vector(), kernels, self._logs())

    def log_output_through(self, kernels: RowKernels) -> Floats:
        """Log of p_Y(y) / prod max W[., y_i], -inf only where impossible. Cost O(N n m)."""
        return log_masses(self._vector(), kernels, self._logs())

    def levels_through(self, kernels: RowKernels) -> tuple[float, float]:
        """Return the largest of each of the leakages over outputs."""
        return self.leakages_through(kernels).largest()

    def leading_through(self, kernels: RowKernels) -> tuple[Ints, Ints]:
        """Return the output of a row-by-row channel that leaks most, and the likeliest cause."""
        y = Space(kernels.sizes_out).rows(int(self.leakages_through(kernels).above.argmax()))
        return y, self._cause(kernels, y)

    def _cause(self, kernels: RowKernels, y: Ints) -> Ints:
        """Return the database with the largest chance of y, of those that can occur."""
        x = np.empty_like(y)
        for kernel, rows in kernels.groups():
            x[rows] = kernel.causes(y[rows])
        if self.log_prob(x) > -math.inf:
            return x
        possible, logs = self._vector() > 0, np.zeros(1)
        for kernel, value in zip(kernels, y.tolist(), strict=True):
            logs = np.add.outer(logs, kernel.log_near[:, value]).reshape(-1)
        return self.space.rows(int(np.where(possible, logs, -math.inf).argmax()))

    def _steepest(self, rows: Ints, s: int, t: int) -> tuple[Ints, int]:
        """Return a database and one of ``rows``, where p falls most as its value s becomes t.

        The rows have the same size. Through the vector; less where the structure allows.
        """
        p, best = self._vector(), (-math.inf, 0, 0)
        for i in rows.tolist():
            m, inner = self.space.sizes[i], int(self.space._strides[i])
            lanes = p.reshape(-1, m, inner)
            top, seen = lanes[:, s], lanes[:, s] > 0
            logs = log_ratio(np.where(seen, top, 1.0), np.where(seen, lanes[:, t], 1.0))
            place = int(np.where(seen, logs, -math.inf).argmax())
            if logs.flat[place] > best[0] and seen.flat[place]:
                index = (place // inner * m + s) * inner + place % inner
                best = float(logs.flat[place]), i, index
        return self.space.rows(best[2]), best[1]

    def tilted_draws(self, rows: Ints, epsilon: float, source: Source) -> Ints:
        """Draw y with chance proportional to p(y) e^(-epsilon d(x, y)) for each database x.

        Cost O(N) for every distinct x and O(n m) for each draw; less where the structure allows.
        """
        from fastpriv._sampling.sequential import States

        law = self._dense("sampling a tilted law", _MAX_DRAWN)
        return States.dense(law._vector(), self.space.sizes).draws(rows, epsilon, source)

    def given(self, values: Mapping[int, int]) -> Distribution:
        """Law of the databases given the values of some rows, or say that it has none."""
        kept = np.ones(self.space.sizes, dtype=bool)
        for i, value in values.items():
            lane = np.moveaxis(kept, i, 0)
            lane[:value] = False
            lane[value + 1 :] = False
        return self._dense("the law given some rows").restricted(kept.reshape(-1))

    def unmixed(self, epsilon: float) -> Distribution:
        """Law p_Y with R_epsilon p_Y = p, clipped at zero: the output law of E_i."""
        return self._dense("the output law of E_i").unmixed(epsilon)

    def _log_least(self) -> float:
        """Log of the least positive probability, through the dense form. Rounded down."""
        law = self._dense("the least probability")
        logs, pmf = law._logs(), law._vector()
        if logs is not None:
            return float(logs[logs > -math.inf].min()) * (1.0 + 64.0 * ULP)
        return -round_up(-math.log(pmf[pmf > 0].min()))

    def _misfit(self, other: Distribution) -> float:
        """Largest |ln p(x)/q(x)| between this full-support law and another of its structure."""
        return log_misfit(self._vector(), other._vector())

    def _shell_profile(self, y: Ints) -> Floats:
        return self._dense("shell_profile")._shell_profile(y)

    @abstractmethod
    def equals(self, other: Distribution) -> bool:
        """Whether the two are the same law in the same structure, float for float."""

    # Helpers.

    def _alike(self) -> list[Ints]:
        """Return the rows in groups that play the same part in the law."""
        return [np.array([i]) for i in range(self.space.n)]

    def _equal_sized_rows(self) -> list[Ints]:
        """Return the rows grouped by their number of values."""
        sizes = np.asarray(self.space.sizes)
        return [np.flatnonzero(sizes == m) for m in np.unique(sizes)]

    def _dense(self, what: str, limit: int = check.MAX_VECTOR) -> Dense:
        """Expand into a full vector, or say why ``what`` cannot be had that way."""
        from fastpriv.priors.dense import Dense

        check.fits(
            self.space.size,
            f"{what} of {self!r} needs the dense form, which",
            "use fewer rows, or a product or exchangeable prior, which need no such vector",
            limit,
        )
        return Dense._trusted(self.pmf(), self.space, self._logs())

    def __repr__(self) -> str:
        n, m = self.space.n, self.space.m
        return f"{type(self).__name__}(n={n}, {f'm={m}' if m else 'mixed m'})"


class LineDistribution(Distribution):
    """A prior that can list how a row is distributed given all others."""

    @abstractmethod
    def _lines(self, rows: Ints) -> Floats:
        """Weights of a row's values given all others, up to scale: (lines, m) for equal rows.

        Every line belongs to one of ``rows`` (which have the same size) and to one setting of the
        other rows; together they cover all ratios that occur.
        """

    def _log_ratios(self, rows: Ints) -> Floats:
        return line_log_ratios(self._lines(rows))

    def epsilon_x(self) -> float:
        """Return eps_X, the largest ln p(x)/p(x') over neighbours. Rounded up."""
        worst = 0.0
        for rows in self._equal_sized_rows():
            lines = self._lines(rows)
            most, least = lines.max(axis=1), lines.min(axis=1)
            seen = most > 0
            worst = max(worst, float(log_ratio(most[seen], least[seen]).max(initial=0.0)))
        return round_up(worst)

    def epsilon_hat(self) -> float:
        """Return the epsilon from which E_d is the best mechanism for differential privacy.

        The largest ln(1/p(x_i | x_-i) - m_i + 1) over rows and databases, at least 0. Rounded up.
        """
        lines = (self._lines(rows) for rows in self._equal_sized_rows())
        return max(self.epsilon_x(), round_up(max(map(_line_hat, lines))))


def as_prior(prior: object) -> Distribution:
    """Return the prior, or say what one looks like."""
    if not isinstance(prior, Distribution):
        raise InvalidInput(
            "prior must be a Distribution, such as Dense(pmf, sizes) with the number of values of "
            f"each row in sizes, got {type(prior).__name__}"
        )
    return prior


def made_prior(prior: Distribution | ArrayLike) -> Distribution:
    """Return the prior, made from a plain vector if it is one: a database of one row."""
    if isinstance(prior, Distribution):
        return prior
    from fastpriv.priors.dense import Dense

    try:
        return Dense(prior)
    except InvalidInput as problem:
        raise InvalidInput(
            "prior must be a Distribution, or a vector with the probability of each value of a "
            f"single row: {problem}"
        ) from None


def log_misfit(p: Floats, q: Floats) -> float:
    """Largest |ln p/q| over the support of p."""
    p, q = p[p > 0], q[p > 0]
    return float(np.abs(log_ratio(p, q)).max())


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
    return math.log1p(worst) if worst < math.inf else float((np.log(spread) - np.log(least)).max())
