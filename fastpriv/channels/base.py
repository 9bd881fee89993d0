"""What every channel answers: the primitives that measures are formulas over."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastpriv._core import validation as check
from fastpriv._core.logs import log_ratio, log_total, round_up
from fastpriv._core.rounding import ULP
from fastpriv._core.transform import mix
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.leakage import Leakages, matrix_log_output, row_leakages
from fastpriv._matrices.pairs import Pairs, crossing, excesses
from fastpriv._sampling.source import Source
from fastpriv._sampling.source import source as random_source
from fastpriv._sampling.thresholds import Codes
from fastpriv._structure.rows import RowKernels
from fastpriv.channels.witnesses import few, furthest, matrix_step, small_matrix
from fastpriv.errors import InvalidInput, short
from fastpriv.priors import Dense, Distribution
from fastpriv.results import Witness
from fastpriv.spaces import Space


class AbstractChannel(ABC):
    """A mechanism p(y|x) from the databases of a space to finitely many outputs.

    Subclasses answer the primitives below in their own structure; measures combine the answers
    and never ask which class they came from.
    """

    space: Space
    #: The space of the outputs; one row of K values where outputs are not databases.
    output_space: Space

    # What a user asks.

    @abstractmethod
    def matrix(self) -> Floats:
        """Return W[x, y] = p(y|x), an N x K array."""

    @abstractmethod
    def _output(self, prior: Distribution) -> Distribution:
        """Law of the output when the database follows ``prior``."""

    @abstractmethod
    def _sample(self, rows: Codes, source: Source) -> Codes:
        """Outputs for databases of shape (k, n)."""

    def output(self, prior: Distribution | ArrayLike) -> Distribution:
        """Law of the output when the database follows ``prior``, structured where it can be."""
        return self._output(self.prior_for(prior))

    def sample(self, rows: ArrayLike, rng: np.random.Generator | int | None = None) -> Codes:
        """Draw an output for each database, with the chances that realised_level accounts for.

        Parameters
        ----------
        rows : integer array of shape (k, n)
            The databases.
        rng : numpy.random.Generator or int, optional
            A generator or a seed for work that is to be repeated. By default the draws are
            cryptographically secure, which releases should be: who can predict the generator can
            undo the noise.

        Returns
        -------
        ndarray
            (k, n) rows where outputs are databases, in the dtype of the given ones wherever it
            fits; (k,) output indices otherwise.
        """
        given = check.codes(rows, self.space.sizes, self.space.m)
        if given.ndim != 2:
            raise InvalidInput(
                f"rows must have shape (k, n), got {given.shape}; one row: rows[None]"
            )
        return self._sample(given, random_source(rng))

    @abstractmethod
    def realised_level(self) -> float:
        """Return an upper bound on the differential privacy level of what ``sample`` draws."""

    def realised(self) -> tuple[AbstractChannel, float]:
        """Return a channel for measures to ask about what ``sample`` draws, and a slack.

        No level of the draws exceeds that of the channel by more than the slack.
        """
        level, nominal = self.realised_level(), self.neighbour_level()
        return self, level - nominal if level > nominal else 0.0  # both may be infinite

    # Primitives.

    @abstractmethod
    def neighbour_level(self) -> float:
        """Largest ln W[x, y]/W[x', y] over neighbours x, x' and outputs y."""

    @abstractmethod
    def posterior_level(self, prior: Distribution) -> float:
        """Largest ln p(x|y)/p(x'|y) over neighbours x, x' and outputs y that can occur."""

    @abstractmethod
    def column_maxima(self) -> Floats:
        """Largest p(y|x) over x, for every output y."""

    @abstractmethod
    def column_minima(self) -> Floats:
        """Least p(y|x) over x, for every output y."""

    def neighbour_laws(self) -> Iterator[Pairs]:
        """Yield output laws and which of them neighbours have, through the matrix.

        Only outputs that tell the two apart count, so a channel may leave out common factors.
        """
        matrix = np.array(self.matrix())
        for x, other in self.space._steps():
            yield matrix, np.stack([x, other], axis=1)

    @property
    def laws_apart(self) -> float:
        """Relative error by which ``neighbour_laws`` rounds the laws of a pair apart."""
        return 0.0

    def response(self) -> tuple[int, float] | None:
        """Values and level of the randomised response that dominates neighbours, if one does."""
        return None

    def excess(self, epsilons: Floats) -> Floats:
        """Largest sum_y (W[x, y] - e^epsilon W[x', y])_+ over neighbours, for each epsilon."""
        return excesses(self.neighbour_laws(), epsilons)

    def excess_crossing(self, delta: float) -> float:
        """Least epsilon >= 0 from which the excess is at most delta > 0."""
        return crossing(self.neighbour_laws(), delta)

    def attribute_range(self, low: Ints, high: Ints) -> tuple[Ints, Ints]:
        """Least ``low`` and largest ``high`` over the databases that can cause each output.

        Through the matrix; an output that nothing causes keeps the neutral elements.
        """
        return support_range(np.array(self.matrix()) > 0.0, low, high)

    def least_support(self) -> int:
        """Least number of databases that can cause an output, over outputs that can occur."""
        counts = (self.matrix() > 0.0).sum(axis=0)
        return int(counts[counts > 0].min())

    def ruling_out(self) -> tuple[int, Ints]:
        """Count the outputs that some database cannot cause and others can; the first few."""
        most, least = self.column_maxima(), self.column_minima()
        return few(np.flatnonzero((most > 0.0) & (least == 0.0)), self.output_space)

    def step_witness(self, prior: Distribution | None = None) -> Witness:
        """Find what attains the neighbour level, or under a prior the posterior level.

        Through the matrix; TooLarge where it is not to be formed.
        """
        return matrix_step(self, None if prior is None else prior._vector())

    def extreme_witness(self) -> Witness:
        """Find what attains the extreme level, through the matrix."""
        matrix = small_matrix(self)
        x, other, y = furthest(matrix)
        return Witness(self.output_space.rows(y), *self.space.rows(np.array([x, other])))

    def leakage_witness(self, prior: Distribution) -> Witness:
        """Find the output that leaks most, and the likeliest database behind it."""
        y = int(self.leakages(prior).above.argmax())
        column = np.where(prior._vector() > 0, small_matrix(self)[:, y], -1.0)
        return Witness(self.output_space.rows(y), self.space.rows(int(column.argmax())))

    def row_kernels(self) -> RowKernels | None:
        """Return the kernels of a channel that acts on every row by itself; None for others."""
        return None

    @abstractmethod
    def leakages(self, prior: Distribution) -> Leakages:
        """How far every output moves the odds of databases that can occur, up and down."""

    @abstractmethod
    def leakage_at(self, prior: Distribution, y: Ints) -> float:
        """Pointwise maximal leakage of one output, given as a row of the output space."""

    def scaled_matrix(self) -> Floats:
        """Return the matrix with every column divided by a number of its own, that of y alone.

        Levels do not notice, and columns of structured channels that underflow are not lost.
        """
        return np.asarray(self.matrix())

    def column_at(self, y: Ints) -> Floats:
        """Return p(y|x) for every database x, through the matrix."""
        return np.array(self.matrix()[:, self.output_space.index(y)])

    def row_columns(self, y: Ints) -> RowKernels | None:
        """Return p(y|x) as a product over rows of kernels with one output, where it is one."""
        return None

    def leakage_levels(self, prior: Distribution) -> tuple[float, float]:
        """Return the largest of each of the leakages over outputs."""
        return self.leakages(prior).largest()

    def extreme_level(self) -> float:
        """Largest ln W[x, y]/W[x', y] over all x, x' and outputs y."""
        most, least = self.column_maxima(), self.column_minima()
        seen = most > 0
        return round_up(float(log_ratio(most[seen], least[seen]).max()))

    def maximal_leakage(self) -> float:
        """Log of the sum over outputs of the largest p(y|x)."""
        return log_total(self.column_maxima())

    def log_output(self, prior: Distribution) -> Floats:
        """Log of the law of the output up to a factor for every y, -inf only where impossible.

        The factor depends on the channel alone. Here through the matrix.
        """
        return matrix_log_output(self.scaled_matrix(), prior._vector(), prior._logs())

    def row_leakages(self, prior: Distribution, i: int) -> Floats:
        """Leakage of every output about row i, from the laws given each of its values."""
        if self.space.n == 1:
            return self.leakages(prior).above
        marginal, off = prior._log_marginal(i)
        values = np.flatnonzero(marginal > -math.inf)
        check.fits(
            len(values) * self.output_space.size, "a law of the output per value", "give one y="
        )
        laws = [self.log_output(prior.given({i: value})) for value in values.tolist()]
        return row_leakages(laws, marginal[values], self._law_error) + off

    def row_level(self, prior: Distribution, i: int) -> float:
        """Largest leakage of an output about row i."""
        if self.space.n == 1:
            return self.leakage_levels(prior)[0]
        return float(self.row_leakages(prior, i).max())

    def row_leakage_at(self, prior: Distribution, i: int, y: Ints) -> float:
        """Leakage of one output about row i, from those of all."""
        return float(self.row_leakages(prior, i)[self.output_space.index(y)])

    @property
    def _law_error(self) -> float:
        """Bound the relative error of an output law."""
        return (2 * self.space.size + 8 * self.space.n + 16) * ULP

    def row_ratio(self, i: int, fixed: bool) -> float:
        """Largest ln W[x, y]/W[x', y] over x, x' that differ in row i, through the matrix.

        With ``fixed`` they differ in nothing else.
        """
        inner, m = int(self.space._strides[i]), self.space.sizes[i]
        blocks = self.scaled_matrix().reshape(-1, m, inner, self.output_space.size)
        axes = () if fixed else (0, 2)
        tops, bottoms = blocks.max(axis=axes), blocks.min(axis=axes)
        worst = 0.0
        for s, t in itertools.permutations(range(m), 2):
            top, bottom = (tops[:, s], bottoms[:, t]) if fixed else (tops[s], bottoms[t])
            seen = top > 0
            worst = max(worst, float(log_ratio(top[seen], bottom[seen]).max(initial=0.0)))
        return round_up(worst)

    def bernoulli_level(self, c: float, i: int | None) -> float:
        """Largest leakage (about row i, if given) under independent bits, each c to 1 - c.

        The chance of y is linear in each bit's chance, so it is least, and its ratio to the one
        given a bit most extreme, at chances c or 1 - c: all corners at once by one O(N n K)
        transform.
        """
        outputs, sizes = self.output_space.size, self.space.sizes
        coefficients = [0.0 if row == i else c for row in range(self.space.n)]
        matrix = self.scaled_matrix()
        corners = mix(matrix.reshape(-1).copy(), (*sizes, outputs), (*coefficients, 0.0))
        slack = (8 * self.space.n + 16) * ULP
        if i is None:
            least, most = corners.reshape(-1, outputs).min(axis=0), matrix.max(axis=0)
        else:
            lines = corners.reshape(-1, 2, int(self.space._strides[i]), outputs)
            most, least = lines.max(axis=1), lines.min(axis=1)
            least = c * most + (1.0 - c) * least
        seen = most > 0
        return round_up(float(log_ratio(most[seen], least[seen]).max(initial=0.0))) + slack

    def _row_kinds(self) -> Ints:
        """Number the rows so that rows with equal numbers play the same part."""
        return np.arange(self.space.n)

    # Helpers.

    def prior_for(self, prior: Distribution | ArrayLike) -> Distribution:
        """Return the prior, made from a plain vector if it is one, and on this channel's space."""
        if not isinstance(prior, Distribution):
            pmf = check.law(prior, "prior")
            if len(pmf) != self.space.size:
                raise InvalidInput(
                    f"prior has {len(pmf)} entries, but the channel has "
                    f"{short(self.space.size)} databases"
                )
            return Dense._trusted(pmf, self.space)
        if prior.space is not self.space and prior.space != self.space:
            raise InvalidInput(
                f"the prior is on {prior.space!r} but the channel on {self.space!r}; make both on "
                "the same space (for a matrix: Channel(matrix, space=prior.space))"
            )
        return prior

    def _check_matrix(self) -> None:
        check.fits(
            self.space.size * self.output_space.size,
            f"the matrix of {self!r}",
            "use fewer rows, or measures that this channel answers without its matrix",
            check.MAX_MATRIX,
        )

    def __repr__(self) -> str:
        outputs = short(self.output_space.size)
        return f"{type(self).__name__}({self.space!r} -> {outputs} outputs)"


#: Neutral elements of the least and the largest attribute value.
NO_LOW, NO_HIGH = np.iinfo(np.int64).max, -1
#: Entries of a boolean matrix that are looked at in one go.
_BLOCK = 1 << 20


def support_range(seen: NDArray[np.bool_], low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Least ``low[x]`` and largest ``high[x]`` over the x with ``seen[x, y]``, for every y.

    ``low`` and ``high`` may have further axes after the first. Cost O(N K) for each of them.
    """
    tail = low.shape[1:]
    least = np.full((seen.shape[1], *tail), NO_LOW, dtype=np.int64)
    most = np.full((seen.shape[1], *tail), NO_HIGH, dtype=np.int64)
    rows = max(1, _BLOCK // (seen.shape[1] * math.prod(tail)))
    for start in range(0, len(seen), rows):
        part = slice(start, start + rows)
        mask = seen[part].reshape(*seen[part].shape, *(1,) * len(tail))
        np.minimum(least, np.where(mask, low[part, None], NO_LOW).min(axis=0), out=least)
        np.maximum(most, np.where(mask, high[part, None], NO_HIGH).max(axis=0), out=most)
    return least, most
