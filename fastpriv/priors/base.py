"""The protocol of priors, and ``Dense``, the vector behind every default."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.defined import Defined
from fastpriv._core.infinities import numbers
from fastpriv._core.logs import log_ratio, log_spread
from fastpriv._core.rounding import log1p_up, log_down, lowered, raised, round_up
from fastpriv._core.threads import split
from fastpriv._core.transform import mix
from fastpriv._core.validation import Floats, Ints
from fastpriv._core.wide import Wide, wide, wide_from_logs
from fastpriv._matrices.leakage import (
    TINY,
    log_error,
)
from fastpriv._structure.leakage import Column, vector_column
from fastpriv._structure.rows import RowKernel, RowKernels, Symmetric, distinct_sizes
from fastpriv.errors import InvalidInput, short
from fastpriv.priors.unmixing import clipped, log_misfit, surely_positive, vector_threshold
from fastpriv.results import Bracket
from fastpriv.spaces import Space

if TYPE_CHECKING:
    from fastpriv.priors.exchangeable import Exchangeable

__all__ = ["Dense", "Distribution", "as_prior"]

#: Largest pmf that a structured prior keeps after the first call.
_KEEP = 1 << 12
#: Databases whose log-probabilities are computed at a time.
_CHUNK = 1 << 16
#: Entries of a vector below which a second thread costs more than it saves.
_GRAIN = 1 << 15
#: Rounding error, in units in the last place, of a log-probability that is a sum of logarithms.
_LOG_UNITS = 64.0


class Distribution(Defined, ABC, family="prior"):
    """A distribution over the databases of a space.

    Subclasses store a structure: independent records, exchangeable records, a chain or a full
    vector. They avoid listing the N databases if the structure allows it. A new structure
    implements this protocol. It must set ``space`` and define

    - ``pmf()``, the probability of every database,
    - ``log_probabilities(rows)``, logs of single databases, -inf only if impossible,
    - ``entropy()``,
    - ``draw(k, rng)``, a sampler,
    - ``definition()`` and ``from_definition(given)``, for equality and JSON.

    Every other method has a default that uses the vector of all databases. A structure that can
    list the distribution of a record given all others derives from ``LineDistribution``. It defines
    ``conditional_lines(rows)``, and its thresholds then need no vector. A structure may replace
    these defaults: ``log_smallest``, ``marginal_sum``, ``through``, ``given``, ``column``,
    ``by_type``, ``unmixed``, ``alike_records`` and ``min_entropy``.

    A class method ``of(*parts)`` makes an object without checks. In all classes of the package its
    parts are already checked, belong to the new object, and are never written to again.
    """

    #: The databases.
    space: Space

    # Public methods.

    @abstractmethod
    def pmf(self) -> Floats:
        """Return the probability of every database, flat in C order (N numbers)."""

    @abstractmethod
    def log_probabilities(self, rows: Ints) -> Floats:
        """Return the log-probability of databases of shape (k, n)."""

    @abstractmethod
    def entropy(self) -> float | Bracket:
        """Return H(X) in nats."""

    def min_entropy(self) -> float:
        """Return -ln of the largest probability, in nats."""
        return self.as_dense("min_entropy").min_entropy()

    @abstractmethod
    def draw(self, k: int, rng: np.random.Generator) -> Ints:
        """Draw k databases, shape (k, n)."""

    def log_prob(self, rows: ArrayLike) -> Floats | float:
        """Return the log-probability of databases: shape (..., n) to (...), -inf if impossible."""
        given = check.rows(rows, self.space.sizes)
        flat = self.log_probabilities(given.reshape(-1, self.space.n))
        return float(flat[0]) if given.ndim == 1 else flat.reshape(given.shape[:-1])

    def marginal(self, i: int) -> Floats:
        """Return the distribution of record ``i``: the probability of each of its values.

        Parameters
        ----------
        i : int
            The record, 0 .. n-1.

        Returns
        -------
        ndarray
            m_i numbers. Cost O(N) for a prior given by its vector, O(i m^2) for a chain and O(1)
            for independent records.

        Examples
        --------
        >>> import fastpriv as fp
        >>> fp.Markov([1.0, 0.0], [[0.75, 0.25], [0.5, 0.5]], 3).marginal(1).tolist()
        [0.75, 0.25]
        """
        row = check.integer(i, "i", 0)
        if row >= self.space.n:
            raise InvalidInput(f"i must be a row of 0 .. {self.space.n - 1}; got {short(row)}.")
        return self.marginal_sum(np.array([row]))

    def sample(self, k: int, rng: np.random.Generator | int | None = None) -> Ints:
        """Draw ``k`` databases as an array of shape (k, n).

        ``rng`` is a NumPy generator or a seed. Default: a generator seeded from the operating
        system. The generator is fast and not cryptographically secure, because samples of a prior
        protect nobody.
        """
        k = check.integer(k, "k", 0)
        check.fits(k * self.space.n, "the sample", "draw it in parts")
        return self.draw(k, check.generator(rng))

    def epsilon_x(self) -> float:
        """Return eps_X, the largest ln p(x)/p(x') over neighbours (Wang-Ying-Zhang 2015, eq. (16)).

        Infinite if some database has probability zero. Rounded up.
        """
        ratios = [self.log_ratios(rows).max() for rows in self.equal_sized_records()]
        return round_up(max(0.0, *map(float, ratios)))

    @property
    def epsilon_x_error(self) -> float:
        """Absolute error of eps_X before it is rounded up, in addition to the last digits."""
        return 0.0

    def epsilon_x_lower(self) -> float:
        """Return eps_X rounded down, a lower bound on the identifiability of every mechanism."""
        return max(0.0, lowered(self.epsilon_x(), 16.0) - 2.0 * self.epsilon_x_error)

    def epsilon_hat(self) -> float:
        """Return the epsilon from which randomised response is optimal for differential privacy.

        The largest ln(1/p(x_i | x_-i) - m_i + 1) over records and databases, at least 0. From this
        level on, randomised response has the smallest expected distortion of all epsilon-private
        mechanisms. The threshold lies between eps_X and eps_tilde, and equals eps_X for two values
        per record. Rounded up.

        Notes
        -----
        Randomised response is E_d of Wang-Ying-Zhang 2015. From epsilon_hat on it solves their
        program PD-DP; the threshold is our own result.
        """
        return self.as_dense("epsilon_hat").epsilon_hat()

    def epsilon_tilde(self) -> float | Bracket:
        """Return the smallest epsilon at which the posterior response exists.

        The smallest e with R_e^-1 p >= 0, where R_e is the matrix of randomised response. From this
        level on, some output distribution makes the posterior exactly R_e. Infinite if a database
        has probability zero.

        Notes
        -----
        The posterior response is E_i of Wang-Ying-Zhang 2015, Section 3. R_e^-1 amplifies the
        rounding of the prior, more so for small e. The result is therefore the smallest e over all
        priors within a few units in the last place of the given one. For example, rounded binomial
        weights get the threshold of independent bits.
        """
        return vector_threshold(self, self.as_dense("epsilon_tilde").probabilities)

    # Protocol used by other modules.

    def probabilities(self) -> Floats:
        """Return the probability of every database for a kernel to read; kept while it is small."""
        kept: Floats | None = self.__dict__.get("_kept_vector")
        if kept is None:
            kept = self.pmf()
            if kept.size <= _KEEP:
                self.__dict__["_kept_vector"] = kept
        return kept

    def logs_if_rare(self) -> Floats | None:
        """Return the log-probability of every database if some underflow, None if none can.

        A database whose probability underflows is still possible: its output may leak most.
        """
        if self.log_smallest() > math.log(TINY):
            return None
        return self.all_log_probabilities()

    def all_log_probabilities(self) -> Floats:
        """Return the log-probability of every database (N numbers)."""
        check.fits(self.space.size, f"the pmf of {self!r}", "ask for log_prob of chosen rows")
        logs = np.empty(self.space.size)
        for start in range(0, len(logs), _CHUNK):
            part = np.arange(start, min(start + _CHUNK, len(logs)))
            logs[part] = self.log_probabilities(self.space.rows(part))
        return logs

    def wide(self) -> Wide:
        """Return the probability of every database, without underflow."""
        logs = self.logs_if_rare()
        return wide(self.probabilities()) if logs is None else wide_from_logs(logs)

    def log_ratios(self, rows: Ints) -> Floats:
        """Return the largest ln p(s, rest)/p(t, rest) for every pair (s, t) of record values."""
        return self.as_dense("a level").log_ratios(rows)

    def marginal_sum(self, rows: Ints) -> Floats:
        """Return the sum of the marginals of the given records, which have the same size."""
        return self.as_dense("a marginal").marginal_sum(rows)

    def through(self, kernels: RowKernels) -> Distribution:
        """Return the output distribution of a channel that acts record by record."""
        return self.as_dense("the output law").through(kernels)

    def column(self, kernels: RowKernels, y: Ints) -> Column:
        """Return one output of a channel that acts record by record, without its matrix.

        Every record's kernel is divided by its largest entry p(y_i | .). The column holds two logs
        over the databases that can occur: of the largest and of the mean product of these entries.
        Their difference is the pointwise maximal leakage of y. Default: through the vector, O(N).
        """
        return vector_column(self.probabilities(), kernels, y, self.logs_if_rare())

    def log_marginal(self, i: int) -> tuple[Floats, float]:
        """Return the log of the distribution of record i, -inf only for impossible values.

        The second number bounds the error of the logs of values whose probability underflows.
        """
        marginal = self.marginal_sum(np.array([i]))
        with np.errstate(divide="ignore"):
            logs = np.log(marginal)
        rare, error = np.flatnonzero(marginal < TINY), 0.0
        if len(rare):
            sizes, assignment = distinct_sizes(self.space.sizes)
            kernels = RowKernels([RowKernel(np.ones((m, 1))) for m in sizes], assignment)
            shown = kernels.replaced(i, RowKernel(np.eye(len(marginal))))
            y = np.zeros(self.space.n, dtype=np.int64)
            for value in rare.tolist():
                y[i] = value
                one = self.column(shown, y)
                if one.mass > -math.inf:
                    error = max(error, one.error)
                logs[value] = one.mass
        return np.asarray(logs), error

    def by_type(self) -> Exchangeable | None:
        """Return the same distribution by counts of values; None if it has no such form."""
        return None

    def unmixed(self, epsilon: float) -> Distribution:
        """Return q with R_epsilon q = p, clipped at zero: outputs of the posterior response.

        Default: through the vector, O(N n).
        """
        law = self.as_dense("the output law of E_i")
        kernels = RowKernels.symmetric(law.space.sizes, epsilon)
        down = [kernel.unmixing for kernel in kernels if isinstance(kernel, Symmetric)]
        inverse = mix(law.probabilities().copy(), law.space.sizes, down)
        mixed = clipped(inverse, lambda q: apply_rows(q, kernels), law.probabilities(), epsilon)
        return Dense.of(mixed, law.space)

    def surely_unmixed(self, epsilon: float) -> bool:
        """Whether q > 0 for exactly this prior, not only for a prior within rounding of it."""
        law = self.as_dense("the output law of E_i")
        return epsilon > 0.0 and surely_positive(law.probabilities(), law.space.sizes, epsilon)

    def misfit(self, other: Distribution) -> float:
        """Return the largest |ln p(x)/q(x)| to a prior q of the same structure."""
        return log_misfit(self.probabilities(), other.probabilities())

    def given(self, values: Mapping[int, int]) -> Distribution:
        """Return the distribution given values of some records, which must be possible."""
        return self.as_dense("the law given some rows").given(values)

    @property
    def is_certain(self) -> bool:
        """Whether one database surely has probability one: nothing can be revealed about it."""
        return self.log_smallest() >= 0.0

    def log_smallest(self) -> float:
        """Return the log of the smallest positive probability of a database. Rounded down."""
        logs = self.all_log_probabilities()
        return lowered(float(logs[logs > -math.inf].min()), _LOG_UNITS)

    # Helpers.

    def alike_records(self) -> list[Ints]:
        """Return the records in groups that are interchangeable under the distribution."""
        return [np.array([i]) for i in range(self.space.n)]

    def equal_sized_records(self) -> list[Ints]:
        """Return the records grouped by their number of values."""
        sizes = np.asarray(self.space.sizes)
        return [np.flatnonzero(sizes == m) for m in np.unique(sizes)]

    def as_dense(self, what: str, limit: int = check.MAX_VECTOR) -> Dense:
        """Return the distribution as a full vector; raise an error naming ``what`` if too long."""
        check.fits(
            self.space.size,
            f"{what} of {self!r} needs the dense form, which",
            "use fewer records, or a product or exchangeable prior, which need no such vector",
            limit,
        )
        return Dense.of(self.pmf(), self.space, self.logs_if_rare())

    def __repr__(self) -> str:
        n, m = self.space.n, self.space.m
        return f"{type(self).__name__}(n={n}, {f'm={m}' if m else 'mixed m'})"


class Dense(Distribution):
    """Any distribution, as a vector over all databases in C order.

    Parameters
    ----------
    pmf : 1-D array
        Probability of every database.
    sizes : Space or sequence of int, optional
        The space, or the number of values of each record. Default: one record with ``len(pmf)``
        values.

    Notes
    -----
    Levels and output distributions cost O(N n) time and one or two further vectors.

    Examples
    --------
    >>> import fastpriv as fp
    >>> prior = fp.Dense([0.4, 0.1, 0.2, 0.3], [2, 2])
    >>> round(prior.epsilon_x(), 6)  # ln(0.4 / 0.1)
    1.386294
    """

    def __init__(self, pmf: ArrayLike, sizes: Space | Sequence[int] | None = None) -> None:
        self._pmf, self._rare = check.law(pmf, "pmf"), None
        if sizes is None:
            sizes = Space.of((len(self._pmf),))
        self.space = sizes if isinstance(sizes, Space) else Space(sizes)
        if self.space.size != len(self._pmf):
            raise InvalidInput(
                "sizes must make as many databases as pmf has entries; got "
                f"{short(self.space.size)} databases and {len(self._pmf)} entries."
            )

    #: Logarithms of the distribution, if it was made from a distribution that underflows.
    _rare: Floats | None

    @classmethod
    def of(cls, pmf: Floats, space: Space, logs: Floats | None = None) -> Dense:
        self = cls.__new__(cls)
        self._pmf, self.space, self._rare = pmf, space, logs
        return self

    def definition(self) -> dict[str, Any]:
        rare = {} if self._rare is None else {"logs": self._rare}
        return {"sizes": list(self.space.sizes), "pmf": self._pmf, **rare}

    @classmethod
    def from_definition(cls, given: Mapping[str, Any]) -> Dense:
        made = cls(given["pmf"], given["sizes"])
        if "logs" in given:
            logs = np.array(numbers(given["logs"]), dtype=np.float64)
            if logs.shape != made.probabilities().shape or not np.all(logs <= 1e-9):
                raise InvalidInput("logs must be the logarithm of every probability.")
            return cls.of(made.probabilities(), made.space, logs)
        return made

    def pmf(self) -> Floats:
        """Return the probability of every database (N numbers, read-only)."""
        return check.shown(self._pmf)

    def probabilities(self) -> Floats:
        return self._pmf

    def logs_if_rare(self) -> Floats | None:
        return self._rare

    @cached_property
    def one(self) -> Floats:
        """The probabilities as a stack of one prior, for kernels."""
        return self._pmf[None]

    def log_probabilities(self, rows: Ints) -> Floats:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self._pmf[self.space.index(rows)]))

    def entropy(self) -> float:
        """Return H(X) in nats. Cost O(N)."""
        from fastpriv.kernels import entropy, entropy_range

        if self._pmf.max() > 0.5:
            return entropy(self._pmf)
        return math.fsum(split(partial(entropy_range, self._pmf), len(self._pmf), _GRAIN))

    def min_entropy(self) -> float:
        """Return -ln max p(x). Cost O(N)."""
        return -math.log(self._pmf.max())

    def restricted(self, event: np.ndarray) -> Dense:
        """Return the distribution given an event, True for every database in it."""
        logs = None if self._rare is None else np.where(event, self._rare, -math.inf)
        if logs is not None and logs.max() > -math.inf:
            logs -= np.logaddexp.reduce(logs)
            return Dense.of(np.exp(logs), self.space, logs)
        kept = np.where(event, self._pmf, 0.0)
        total = float(kept.sum())
        if total <= 0.0:
            raise InvalidInput(
                "what is given has probability zero; nothing can be conditioned on. "
                "Give values that can occur."
            )
        return Dense.of(kept / total, self.space)

    def axes(self, rows: Ints | None = None) -> list[tuple[int, int, int]]:
        """Return stride, size and number of lines of the given axes with two or more values."""
        sizes, strides = self.space.sizes, self.space.strides
        chosen = range(self.space.n) if rows is None else rows
        return [
            (int(strides[i]), sizes[i], len(self._pmf) // sizes[i]) for i in chosen if sizes[i] > 1
        ]

    def _spreads(self, which: int) -> float:
        """Return ln(1 + s), s the largest max/min - 1 (which = 0) or sum/min - m (1) over lines."""
        from fastpriv.kernels import axis_spreads

        def worst(scale: float) -> float:
            spreads = [0.0]
            for inner, m, lines in self.axes():
                task = partial(axis_spreads, self._pmf, scale, inner, m)
                spreads += [pair[which] for pair in split(task, lines, _GRAIN)]
            return max(spreads)

        return log_spread(worst, 2 if which == 0 else max(self.space.sizes) + 1)

    def epsilon_x(self) -> float:
        """Return eps_X, the largest ln p(x)/p(x') over neighbours. Cost O(N n). Rounded up."""
        return self._spreads(0) if self._rare is None else super().epsilon_x()

    @property
    def epsilon_x_error(self) -> float:
        return 0.0 if self._rare is None else log_error(self._rare, 0.0)

    def epsilon_hat(self) -> float:
        """Return the level from which randomised response is optimal. O(N n). Rounded up."""
        if self._rare is None:
            return self._spreads(1)
        return round_up(max(0.0, *(rare_hat(self._log_lines(axis)) for axis in self.axes())))

    def _log_lines(self, axis: tuple[int, int, int]) -> Floats:
        """Return the logarithms with one line per setting of the other records."""
        assert self._rare is not None
        inner, m, _ = axis
        return self._rare.reshape(-1, m, inner).swapaxes(1, 2).reshape(-1, m)

    def log_ratios(self, rows: Ints) -> Floats:
        from fastpriv.kernels import axis_log_ratios

        m = self.space.sizes[rows[0]]
        worst = np.full((m, m), -math.inf)
        for inner, _, lines in self.axes(rows):
            if self._rare is None:
                axis_log_ratios(self._pmf, inner, m, 0, lines, worst)
                continue
            worst = np.maximum(worst, rare_ratios(self._log_lines((inner, m, lines))))
        return worst

    def marginal_sum(self, rows: Ints) -> Floats:
        total = np.zeros(self.space.sizes[rows[0]])
        for i in rows:
            m, inner = self.space.sizes[i], int(self.space.strides[i])
            total += self._pmf.reshape(-1, m, inner).sum(axis=(0, 2))
        return total

    def through(self, kernels: RowKernels) -> Dense:
        """Return the distribution of the output of a record-by-record channel. Cost O(N n)."""
        return Dense.of(apply_rows(self._pmf, kernels), Space(kernels.sizes_out))

    def epsilon_tilde(self) -> float:
        """Return the smallest epsilon at which the posterior response exists."""
        return vector_threshold(self, self.probabilities)

    def given(self, values: Mapping[int, int]) -> Dense:
        """Return the distribution given values of some records."""
        kept = np.ones(self.space.size, dtype=bool)
        for i, value in values.items():  # three axes: there may be more records than NumPy has axes
            lanes = kept.reshape(-1, self.space.sizes[i], int(self.space.strides[i]))
            lanes[:, :value] = False
            lanes[:, value + 1 :] = False
        return self.restricted(kept)

    def log_smallest(self) -> float:
        """Return the log of the smallest positive probability of a database. Rounded down."""
        if self._rare is not None:
            return lowered(float(self._rare[self._rare > -math.inf].min()), _LOG_UNITS)
        return log_down(float(self._pmf[self._pmf > 0].min()))

    def as_dense(self, what: str, limit: int = check.MAX_VECTOR) -> Dense:
        check.fits(self.space.size, f"{what} of {self!r}", "use fewer records", limit)
        return self

    def draw(self, k: int, rng: np.random.Generator) -> Ints:
        edges = np.cumsum(self._pmf)
        return self.space.rows(np.searchsorted(edges, rng.random(k) * edges[-1], side="right"))


def _symmetric(kernels: RowKernels) -> list[Symmetric]:
    return [kernel for kernel in kernels if isinstance(kernel, Symmetric)]


def apply_rows(vector: Floats, kernels: Sequence[RowKernel], trailing: int = 1) -> Floats:
    """Apply one kernel per leading axis to a vector over databases; return a new vector.

    ``trailing`` is the number of entries per setting of those axes; they are not mixed.
    """
    sizes = [kernel.shape[0] for kernel in kernels]
    steps = [kernel.mixing if isinstance(kernel, Symmetric) else 0.0 for kernel in kernels]
    result = vector.copy()
    if any(steps):
        mix(result, (*sizes, trailing), (*steps, 0.0))
    inner = trailing
    for kernel in reversed(kernels):
        m, k = kernel.shape
        if not isinstance(kernel, Symmetric):
            result = np.matmul(kernel.matrix.T, result.reshape(-1, m, inner)).reshape(-1)
        inner *= k
    return np.ascontiguousarray(result)


class LineDistribution(Distribution):
    """A prior that can list the distribution of a record given all others."""

    @abstractmethod
    def conditional_lines(self, rows: Ints) -> Floats:
        """Return weights of a record's values given all others, up to scale: shape (lines, m).

        Every line belongs to one of ``rows`` (records of the same size) and to one setting of the
        other records. Together the lines cover all ratios that occur.
        """

    @property
    def rounding_error(self) -> float:
        """Bound on the rounding error of the log of a ratio of weights in a line."""
        return 0.0

    def _log_lines(self, rows: Ints) -> Floats | None:
        """Return the logarithms of the lines if doubles cannot hold their ratios, else None."""
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
        """Return the epsilon from which randomised response is optimal for differential privacy.

        The largest ln(1/p(x_i | x_-i) - m_i + 1) over records and databases, at least 0. Rounded
        up.
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
    """Return the largest ln L[s]/L[t] over lines, for every (s, t); -inf if no line has s."""
    m = lines.shape[1]
    worst = np.full((m, m), -math.inf)
    for s in range(m):
        seen = lines[lines[:, s] > 0]
        if len(seen):
            worst[s] = log_ratio(seen[:, s : s + 1], seen).max(axis=0)
    return worst


def _line_hat(lines: Floats) -> float:
    """Return the largest ln(1/p(s | line) - m + 1), by sum (L - min L) / min L."""
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


def rare_ratios(lines: Floats) -> Floats:
    """Return the largest ln L[s]/L[t] over lines (k, m) of logs, for (s, t). Rounded up."""
    m = lines.shape[1]
    worst = np.full((m, m), -math.inf)
    for s in range(m):
        seen = lines[lines[:, s] > -math.inf]
        worst[s] = (seen[:, s : s + 1] - seen).max(axis=0, initial=-math.inf)
        worst[s] += log_error(lines, 0.0) * (np.arange(m) != s)
    return worst


def rare_hat(lines: Floats) -> float:
    """Return the largest ln(sum L/min L - m + 1) over lines (k, m) of logs. Rounded up.

    With w = ln(sum L/min L) it is w + ln(1 - (m-1) e^-w).
    """
    m = lines.shape[1]
    seen = lines[lines.max(axis=1) > -math.inf]
    if m == 1 or not len(seen):
        return 0.0
    whole = np.logaddexp.reduce(seen, axis=1) - seen.min(axis=1)
    rest = np.log1p(-(m - 1.0) * np.exp(-np.maximum(whole, math.log(m))))
    # An error of w counts up to m times.
    return max(0.0, float((whole + rest).max())) + float(m * log_error(lines, 0.0))


def as_prior(prior: Distribution | ArrayLike, space: Space | None = None) -> Distribution:
    """Return a prior: the given one, or a vector as a distribution over the databases of ``space``.

    Without a space, a vector is the distribution of a single record. With a space, the prior must
    be on it.
    """
    if isinstance(prior, Distribution):
        if space is not None and prior.space is not space and prior.space != space:
            raise InvalidInput(
                f"the prior is on {prior.space!r} but the channel on {space!r}; make both on the "
                "same space (for a matrix: Channel(matrix, space=prior.space))."
            )
        return prior
    if isinstance(prior, list | tuple) and any(isinstance(one, Distribution) for one in prior):
        raise InvalidInput(
            "prior must be one distribution; got a list of them. Where a set of priors is taken, "
            "PriorSet.hull([...]) has their mixtures."
        )
    if space is None:
        try:
            pmf = check.law(prior, "prior")
        except InvalidInput as problem:
            if isinstance(prior, str):  # the message names classes of priors
                raise
            raise InvalidInput(
                "prior must be a Distribution, or a vector with the probability of each value of "
                f"a single row: {problem}"
            ) from None
        return Dense.of(pmf, Space.of((len(pmf),)))
    pmf = check.law(prior, "prior")
    if len(pmf) != space.size:
        raise InvalidInput(
            f"prior has {len(pmf)} entries, but the channel has {short(space.size)} databases. "
            "Give one probability for each database."
        )
    return Dense.of(pmf, space)
