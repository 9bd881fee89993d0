"""What every channel answers: the primitives that measures are formulas over."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.capacity import matrix_capacity
from fastpriv._matrices.contraction import matrix_contraction
from fastpriv._matrices.correlation import matrix_correlation
from fastpriv._matrices.pairs import joint_laws
from fastpriv._matrices.sdpi import matrix_sdpi
from fastpriv._sampling.source import Source
from fastpriv._sampling.source import source as random_source
from fastpriv._sampling.thresholds import Codes
from fastpriv._structure.rows import RowKernels
from fastpriv.channels.adversaries import representatives, strongest
from fastpriv.channels.queries.query import Listed, Query
from fastpriv.errors import InvalidInput, short
from fastpriv.priors import Dense, Distribution
from fastpriv.priors.arguments import as_prior
from fastpriv.results import Bracket, IndividualCapacity
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
        return self._output(as_prior(prior, self.space))

    def sample(self, rows: ArrayLike, rng: np.random.Generator | int | None = None) -> Codes:
        """Draw an output for each database; :func:`realised_level` is the level of the draws.

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

    # Primitives.

    @abstractmethod
    def information(self, prior: Distribution) -> float | Bracket:
        """Return I(X; Y)."""

    @abstractmethod
    def expected_distance(self, prior: Distribution) -> float:
        """Expected Hamming distance between database and output."""

    @abstractmethod
    def column_maxima(self) -> Floats:
        """Largest p(y|x) over x, for every output y."""

    @abstractmethod
    def column_minima(self) -> Floats:
        """Least p(y|x) over x, for every output y."""

    @abstractmethod
    def row_entropies(self) -> Floats:
        """Entropy of the output for every database x."""

    @property
    def searched_entries(self) -> int:
        """How many numbers an optimisation over all databases goes through."""
        return self.space.size * self.output_space.size

    def row_kernels(self) -> RowKernels | None:
        """Return the kernels of a channel that acts on every row by itself; None for others."""
        return None

    @abstractmethod
    def entropy_gain(self, prior: Distribution) -> float:
        """Largest H(X) - H(X | Y = y) over outputs that occur."""

    def column_at(self, y: Ints) -> Floats:
        """Return p(y|x) for every database x, through the matrix."""
        return np.array(self.matrix()[:, self.output_space.index(y)])

    def capacity(self, gap: float) -> Bracket:
        """Largest I(X; Y) over priors, through the matrix."""
        return matrix_capacity(np.array(self.matrix()), gap)[0]

    def capacity_prior(self, gap: float) -> Distribution:
        """Return a prior that reaches the lower end of the capacity."""
        return Dense._trusted(matrix_capacity(np.array(self.matrix()), gap)[1], self.space)

    def individual_capacity(self, k: int, gap: float, time_limit: float) -> IndividualCapacity:
        """Largest I(X_G; Y) over groups G of k rows and all priors, in the query's structure."""
        return strongest(*self.as_query(), k, gap, time_limit)

    def as_query(self) -> tuple[Query, Floats]:
        """Return a query and a table of output laws, one for each answer, through the matrix."""
        matrix = np.array(self.matrix())
        kinds = self._row_kinds()
        return Listed(representatives(matrix), self.space, len(matrix), kinds), matrix

    def law_factors(self) -> list[tuple[Floats, int]]:
        """Return matrices, each with a multiplicity, a row of each of which makes every law."""
        return [(np.array(self.matrix()), 1)]

    def joined(self, other: AbstractChannel) -> AbstractChannel:
        """Return the channel of both outputs on one database, through the matrices."""
        from fastpriv.channels.dense import Channel

        return Channel(joint_laws(self.matrix(), other.matrix()), self.space)

    def _row_kinds(self) -> Ints:
        """Number the rows so that rows with equal numbers play the same part."""
        return np.arange(self.space.n)

    def correlation(self, prior: Distribution) -> Bracket:
        """Maximal correlation of database and output, through the matrix."""
        return matrix_correlation(self.matrix(), prior._vector())

    def contraction(self) -> Bracket:
        """Contraction coefficient, through the matrix."""
        return matrix_contraction(self.matrix())

    def sdpi(self, prior: Distribution) -> Bracket:
        """Strong data-processing constant, through the matrix."""
        return matrix_sdpi(self.matrix(), prior._vector())

    def expected_cost(self, prior: Distribution, metric: Floats) -> float:
        """Sum of p(x) W[x, y] metric[x, y], through the matrix."""
        return float(prior._vector() @ (self.matrix() * metric).sum(axis=1))

    # Helpers.

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
