"""What every prior answers, and the parts of the answer that do not depend on its structure."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.defined import Defined
from fastpriv._core.rounding import lowered, round_up
from fastpriv._core.validation import Floats, Ints
from fastpriv._core.wide import Wide, wide, wide_from_logs
from fastpriv._matrices.leakage import (
    TINY,
)
from fastpriv._structure.rows import RowKernels
from fastpriv.errors import InvalidInput, short
from fastpriv.results import Bracket
from fastpriv.spaces import Space

if TYPE_CHECKING:
    from fastpriv.priors.dense import Dense


#: Largest pmf that a structured prior keeps once it was asked for.
_KEEP = 1 << 12
#: Databases whose log-probabilities are asked for in one go.
_CHUNK = 1 << 16


class Distribution(Defined, ABC, family="prior"):
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
    def log_probabilities(self, rows: Ints) -> Floats:
        """Log-probability of databases of shape (k, n)."""

    @abstractmethod
    def entropy(self) -> float | Bracket:
        """Return H(X) in nats."""

    @abstractmethod
    def min_entropy(self) -> float:
        """Return -ln of the largest probability, in nats."""

    @abstractmethod
    def draw(self, k: int, rng: np.random.Generator) -> Ints:
        """Draw k databases, shape (k, n)."""

    def log_prob(self, rows: ArrayLike) -> Floats | float:
        """Log-probability of databases: shape (..., n) to (...), -inf where impossible."""
        given = check.rows(rows, self.space.sizes)
        flat = self.log_probabilities(given.reshape(-1, self.space.n))
        return float(flat[0]) if given.ndim == 1 else flat.reshape(given.shape[:-1])

    def marginal(self, i: int) -> Floats:
        """Return the law of row ``i``: the probability of each of its values.

        Parameters
        ----------
        i : int
            The row, 0 .. n-1.

        Returns
        -------
        ndarray
            m_i numbers. Cost O(N) for a law that is given by its vector, and in the structure
            otherwise: O(i m^2) for a chain, O(1) for independent rows.

        Examples
        --------
        >>> import fastpriv as fp
        >>> fp.Markov([1.0, 0.0], [[0.75, 0.25], [0.5, 0.5]], 3).marginal(1).tolist()
        [0.75, 0.25]
        """
        row = check.integer(i, "i", 0)
        if row >= self.space.n:
            raise InvalidInput(f"i must be a row of 0 .. {self.space.n - 1}, got {short(row)}")
        return self.marginal_sum(np.array([row]))

    def sample(self, k: int, rng: np.random.Generator | int | None = None) -> Ints:
        """Draw ``k`` databases as an array of shape (k, n).

        ``rng`` is a NumPy generator or a seed; by default one seeded from the operating system.
        Made-up databases hide nobody, so this is a fast generator and not a secure one.
        """
        k = check.integer(k, "k", 0)
        check.fits(k * self.space.n, "the sample", "draw it in parts")
        return self.draw(k, check.generator(rng))

    def epsilon_x(self) -> float:
        """Return eps_X, the largest ln p(x)/p(x') over neighbours (Wang-Ying-Zhang 2015, eq. (16)).

        Infinite as soon as some database has probability zero. Rounded up.
        """
        ratios = [self.log_ratios(rows).max() for rows in self.equal_sized_records()]
        return round_up(max(0.0, *map(float, ratios)))

    @property
    def epsilon_x_error(self) -> float:
        """Absolute error of eps_X before it is rounded up, beside its last digits."""
        return 0.0

    def epsilon_x_lower(self) -> float:
        """Return eps_X rounded down: no mechanism has a smaller identifiability."""
        return max(0.0, lowered(self.epsilon_x(), 16.0) - 2.0 * self.epsilon_x_error)

    @abstractmethod
    def epsilon_hat(self) -> float:
        """Return the epsilon from which E_d is the best mechanism for differential privacy.

        From there on it has the least expected distortion of all epsilon-private mechanisms (it
        solves the program PD-DP of Wang-Ying-Zhang 2015; the threshold is our own result).

        The largest ln(1/p(x_i | x_-i) - m_i + 1) over rows and databases, at least 0. It lies
        between eps_X (where it is for two values per row) and eps_tilde. Rounded up.
        """

    @abstractmethod
    def epsilon_tilde(self) -> float | Bracket:
        """Return the least epsilon for which E_i exists (Wang-Ying-Zhang 2015, Section 3).

        The least e with R_e^-1 p >= 0, where R_e is the Hamming kernel of E_d: from there on some
        output law makes the posterior exactly R_e. Infinite if a database has probability zero.

        R_e^-1 amplifies the rounding of the prior, the more the smaller e is. The answer is the
        least e that a prior within a few ulp of the given one can have: rounded binomial weights
        get the threshold of independent bits, not that of their rounding errors.
        """

    # What channels ask.

    def probabilities(self) -> Floats:
        """Probability of every database for a kernel to read; kept while it is small."""
        kept: Floats | None = self.__dict__.get("_kept_vector")
        if kept is None:
            kept = self.pmf()
            if kept.size <= _KEEP:
                self.__dict__["_kept_vector"] = kept
        return kept

    def logs_if_rare(self) -> Floats | None:
        """Log-probability of every database where some underflow, None where none can.

        A database too rare for a double is not an impossible one: its output may leak most.
        Every subclass has its own answer to this question or to ``log_smallest``.
        """
        if self.log_smallest() > math.log(TINY):
            return None
        return self.all_log_probabilities()

    def all_log_probabilities(self) -> Floats:
        """Log-probability of every database (N numbers)."""
        check.fits(self.space.size, f"the pmf of {self!r}", "ask for log_prob of chosen rows")
        logs = np.empty(self.space.size)
        for start in range(0, len(logs), _CHUNK):
            part = np.arange(start, min(start + _CHUNK, len(logs)))
            logs[part] = self.log_probabilities(self.space.rows(part))
        return logs

    def wide(self) -> Wide:
        """Probability of every database, also where doubles end."""
        logs = self.logs_if_rare()
        return wide(self.probabilities()) if logs is None else wide_from_logs(logs)

    @abstractmethod
    def log_ratios(self, rows: Ints) -> Floats:
        """Largest ln p(s, rest)/p(t, rest) for every pair (s, t) of values of the given rows."""

    @abstractmethod
    def marginal_sum(self, rows: Ints) -> Floats:
        """Sum of the marginals of the given rows, which have the same size."""

    @abstractmethod
    def through(self, kernels: RowKernels) -> Distribution:
        """Law of the output of a row-by-row channel."""

    @abstractmethod
    def given(self, values: Mapping[int, int]) -> Distribution:
        """Return the law of the databases given the values of some rows, or say it has none."""

    @abstractmethod
    def log_smallest(self) -> float:
        """Log of the least positive probability of a database. Rounded down."""

    # Helpers.

    def alike_records(self) -> list[Ints]:
        """Return the rows in groups that play the same part in the law."""
        return [np.array([i]) for i in range(self.space.n)]

    def equal_sized_records(self) -> list[Ints]:
        """Return the rows grouped by their number of values."""
        sizes = np.asarray(self.space.sizes)
        return [np.flatnonzero(sizes == m) for m in np.unique(sizes)]

    @abstractmethod
    def as_dense(self, what: str, limit: int = check.MAX_VECTOR) -> Dense:
        """Return the law as a full vector, or say why ``what`` cannot be had that way."""

    def __repr__(self) -> str:
        n, m = self.space.n, self.space.m
        return f"{type(self).__name__}(n={n}, {f'm={m}' if m else 'mixed m'})"
