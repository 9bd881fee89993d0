"""What every channel answers: the primitives that measures are formulas over."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from fastpriv import _validation as check
from fastpriv._capacity import matrix_capacity
from fastpriv._contraction import matrix_contraction
from fastpriv._correlation import matrix_correlation
from fastpriv._sdpi import matrix_sdpi
from fastpriv._validation import Floats, Ints
from fastpriv.distributions import Dense, Distribution
from fastpriv.errors import InvalidInput, short
from fastpriv.results import Bracket
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
    def _sample(self, rows: Ints, rng: np.random.Generator) -> Ints:
        """Outputs for databases of shape (k, n)."""

    def output(self, prior: Distribution | ArrayLike) -> Distribution:
        """Law of the output when the database follows ``prior``, structured where it can be."""
        return self._output(self.prior_for(prior))

    def sample(self, rows: ArrayLike, rng: np.random.Generator | int | None = None) -> Ints:
        """Draw an output for each database.

        Parameters
        ----------
        rows : integer array of shape (k, n)
            The databases.
        rng : numpy.random.Generator or int, optional
            Source of randomness; by default one seeded from the operating system.

        Returns
        -------
        ndarray
            (k, n) rows where outputs come row by row, (k,) output indices otherwise.
        """
        given = check.rows(rows, self.space.sizes)
        if given.ndim != 2:
            raise InvalidInput(
                f"rows must have shape (k, n), got {given.shape}; one row: rows[None]"
            )
        return self._sample(given, check.generator(rng))

    # Primitives.

    @abstractmethod
    def neighbour_level(self) -> float:
        """Largest ln W[x, y]/W[x', y] over neighbours x, x' and outputs y."""

    @abstractmethod
    def posterior_level(self, prior: Distribution) -> float:
        """Largest ln p(x|y)/p(x'|y) over neighbours x, x' and outputs y that can occur."""

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

    def capacity(self, gap: float) -> Bracket:
        """Largest I(X; Y) over priors, through the matrix."""
        return matrix_capacity(np.array(self.matrix()), gap)[0]

    def capacity_prior(self, gap: float) -> Distribution:
        """Return a prior that reaches the lower end of the capacity."""
        return Dense._trusted(matrix_capacity(np.array(self.matrix()), gap)[1], self.space)

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
            "ask the channel itself, which needs no matrix",
            check.MAX_MATRIX,
        )

    def __repr__(self) -> str:
        outputs = short(self.output_space.size)
        return f"{type(self).__name__}({self.space!r} -> {outputs} outputs)"
