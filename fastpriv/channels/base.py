"""The protocol of channels: the methods that every structure defines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.defined import Defined
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.leakage import extremes
from fastpriv._sampling.source import Source
from fastpriv._sampling.source import source as random_source
from fastpriv._sampling.thresholds import Codes, ManyThresholds, fitting
from fastpriv._structure.rows import RowKernels
from fastpriv.errors import InvalidInput, short
from fastpriv.priors import Dense, Distribution
from fastpriv.priors.base import as_prior
from fastpriv.spaces import Space


class Sampler(ABC):
    """Something that draws an output for every database of a space.

    ``fastpriv.measures.realised`` bounds the level of the draws. A class with its own sampler
    registers its bound there.
    """

    #: The space of the databases.
    space: Space

    @abstractmethod
    def draw(self, rows: Codes, source: Source) -> Codes:
        """Return outputs for databases of shape (k, n)."""

    def sample(self, rows: ArrayLike, rng: np.random.Generator | int | None = None) -> Codes:
        """Draw an output for each database; :func:`realised_level` is the level of the draws.

        Parameters
        ----------
        rows : integer array of shape (k, n)
            The databases.
        rng : numpy.random.Generator or int, optional
            A generator or a seed, for reproducible work. Default: cryptographically secure draws.
            Use the default for publication: anyone who can predict the generator can undo the
            noise.

        Returns
        -------
        ndarray
            If every record has an output of its own, an array (k, n), in the dtype of ``rows`` if
            it fits. Otherwise output indices of shape (k,).
        """
        given = check.codes(rows, self.space.sizes, self.space.m)
        if given.ndim != 2:
            raise InvalidInput(
                f"rows must have shape (k, n); got {given.shape}. For one database give rows[None]."
            )
        return self.draw(given, random_source(rng))


class AbstractChannel(Defined, Sampler, family="channel"):
    """A mechanism p(y|x) from the databases of a space to finitely many outputs.

    This is the protocol that a new channel structure implements. A subclass must set

    - ``space``, the databases,
    - ``output_space``, the outputs: the same space if outputs are databases, a space of n records
      if every record has an output of its own, otherwise one record of K values,

    and must define ``matrix()``, W[x, y] = p(y|x), which calls ``check_matrix_fits()`` first. For
    equality and JSON it defines ``definition()`` and ``from_definition(given)``. It may define, if
    its structure allows a better method than the matrix,

    - ``kernels``, if it acts on every record by itself,
    - ``record_kinds``, if some records are interchangeable,
    - ``output_distribution(prior)``, the distribution of the output,
    - ``column_maxima()`` and ``column_minima()``, the largest and smallest p(y|x) over x,
    - ``nearest_matrix()`` and ``matrix_error``, if ``matrix()`` is rounded inwards,
    - ``output_count``, ``output_row(y)`` and ``column_index(output)``, if not every element of the
      output space is an output,
    - ``draw(rows, source)``, a sampler of its own.

    Every measure has a general algorithm that uses only this protocol. A faster algorithm for a
    structure is registered in the file of the measure. A class with its own ``draw`` must register
    the level of the draws with ``fastpriv.measures.realised.drawn_level``.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpriv as fp
    >>> class Erasure(fp.AbstractChannel):
    ...     '''Show the database or, with some probability, nothing.'''
    ...     def __init__(self, space, chance):
    ...         self.space, self.output_space = space, fp.Space([space.size + 1])
    ...         self.chance = chance
    ...     def matrix(self):
    ...         size = self.space.size
    ...         shown = (1 - self.chance) * np.eye(size)
    ...         return np.concatenate([shown, np.full((size, 1), self.chance)], axis=1)
    >>> channel = Erasure(fp.Space.hamming(2, 2), 0.75)
    >>> fp.dp_level(channel), round(fp.mutual_information(channel, fp.Uniform(2, 2)), 6)
    (inf, 0.346574)
    """

    #: The space of the outputs; one record of K values if outputs are not databases.
    output_space: Space
    #: The kernels of a channel that acts on every record by itself; None for others.
    kernels: RowKernels | None = None

    @property
    def record_kinds(self) -> Ints:
        """Numbers of the records; records with equal numbers are interchangeable."""
        return np.arange(self.space.n)

    def table(self) -> Floats:
        """Return W[x, y] for compiled code: read-only doubles in C order."""
        return np.array(self.matrix(), order="C")

    @abstractmethod
    def matrix(self) -> Floats:
        """Return W[x, y] = p(y|x), an N x K array of doubles.

        If the channel is not itself given by doubles, they are rounded inwards: ``dp_level`` of the
        matrix is at most ``dp_level`` of the channel.
        """

    def nearest_matrix(self) -> Floats:
        """Return W[x, y] to the nearest doubles, for measures that allow for the rounding."""
        return self.matrix()

    @property
    def matrix_error(self) -> float:
        """Bound on the relative errors of ``nearest_matrix``; 0 if the matrix is given."""
        return 0.0

    def output(self, prior: Distribution | ArrayLike) -> Distribution:
        """Return the distribution of the output when the database follows ``prior``."""
        return self.output_distribution(as_prior(prior, self.space))

    def output_distribution(self, prior: Distribution) -> Distribution:
        """Return the distribution of the output under a prior on the channel's space."""
        return Dense.of(prior.probabilities() @ self.nearest_matrix(), self.column_space)

    @property
    def output_count(self) -> int:
        """Number of outputs, the columns of the matrix; beyond 2^60 perhaps up to a power of two.

        It is smaller than the output space if not every element of that space is an output.
        """
        return self.output_space.size

    @property
    def column_space(self) -> Space:
        """The output space, or column numbers if the output space has further elements."""
        count = self.output_count
        return self.output_space if count == self.output_space.size else Space.of((count,))

    def output_row(self, y: int) -> Ints:
        """Return the output of a column, as an element of the output space."""
        return np.asarray(self.output_space.rows(y))

    def column_index(self, output: Ints) -> int:
        """Return the column of an output, given as an element of the output space."""
        return int(self.output_space.index(output))

    def column_maxima(self) -> Floats:
        """Return the largest p(y|x) over x, for every output y."""
        return extremes(np.array(self.nearest_matrix(), order="C"))[0]

    def column_minima(self) -> Floats:
        """Return the smallest p(y|x) over x, for every output y."""
        return extremes(np.array(self.nearest_matrix(), order="C"))[1]

    def draw(self, rows: Codes, source: Source) -> Codes:
        drawn = self.thresholds.draw(np.asarray(self.space.index(rows)), source)
        if self.output_space != self.space:
            return drawn
        return self.databases.astype(fitting(rows.dtype, max(self.space.sizes)))[drawn]

    @cached_property
    def thresholds(self) -> ManyThresholds:
        """The output distributions as integers, from which samplers draw."""
        return ManyThresholds(np.array(self.matrix(), order="C"))

    @cached_property
    def databases(self) -> Ints:
        """All databases in C order, (N, n)."""
        return self.space.rows(np.arange(self.space.size))

    def check_matrix_fits(self) -> None:
        """Raise an error if the matrix has too many entries."""
        check.fits(
            self.space.size * self.output_count,
            f"the matrix of {self!r}",
            "use fewer records, or measures that this channel answers without its matrix",
            check.MAX_MATRIX,
        )

    def __repr__(self) -> str:
        outputs = short(self.output_count)
        return f"{type(self).__name__}({self.space!r} -> {outputs} outputs)"
