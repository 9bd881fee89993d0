"""What every channel answers: the primitives that measures are formulas over."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.validation import Floats, Ints
from fastpriv._sampling.source import Source
from fastpriv._sampling.source import source as random_source
from fastpriv._sampling.thresholds import Codes
from fastpriv._structure.rows import RowKernels
from fastpriv.errors import InvalidInput, short
from fastpriv.priors import Distribution
from fastpriv.priors.arguments import as_prior
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
    def column_maxima(self) -> Floats:
        """Largest p(y|x) over x, for every output y."""

    @abstractmethod
    def column_minima(self) -> Floats:
        """Least p(y|x) over x, for every output y."""

    def row_kernels(self) -> RowKernels | None:
        """Return the kernels of a channel that acts on every row by itself; None for others."""
        return None

    def column_at(self, y: Ints) -> Floats:
        """Return p(y|x) for every database x, through the matrix."""
        return np.array(self.matrix()[:, self.output_space.index(y)])

    def _row_kinds(self) -> Ints:
        """Number the rows so that rows with equal numbers play the same part."""
        return np.arange(self.space.n)

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
