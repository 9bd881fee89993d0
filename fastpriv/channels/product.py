"""Channels that act on every row by itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike

from fastpriv import kernels
from fastpriv._core import validation as check
from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.capacity import repeated
from fastpriv._matrices.contraction import product_contraction
from fastpriv._matrices.pairs import joint_laws
from fastpriv._sampling.source import Source
from fastpriv._sampling.thresholds import Codes
from fastpriv._structure.drawing import draw_rows
from fastpriv._structure.rows import RowKernel, RowKernels, Symmetric, distinct
from fastpriv.channels.base import AbstractChannel
from fastpriv.channels.copies import by_part
from fastpriv.errors import InvalidInput
from fastpriv.priors import Distribution, Product
from fastpriv.results import Bracket, IndividualCapacity
from fastpriv.spaces import Space

__all__ = ["ProductChannel"]

#: Largest matrix that is searched for an adversary.
SEARCHED = 1 << 20


class ProductChannel(AbstractChannel):
    """A mechanism that treats every row by itself, W[x, y] = product of factors[i][x_i, y_i].

    Parameters
    ----------
    factors : sequence of 2-D arrays
        ``factors[i][s, y]`` = p(y_i = y | x_i = s), one per row; equal ones are stored once.

    Examples
    --------
    >>> import fastpriv as fp
    >>> noisy, exact = [[0.75, 0.25], [0.25, 0.75]], [[1.0, 0.0], [0.0, 1.0]]
    >>> channel = fp.ProductChannel([noisy, exact])
    >>> fp.dp_level(channel), fp.distortion(channel, fp.Uniform(2, 2))
    (inf, 0.25)
    """

    def __init__(self, factors: Sequence[ArrayLike]) -> None:
        matrices, which = distinct(factors, _load, "factors")
        self._set(RowKernels([RowKernel(matrix) for matrix in matrices], which))

    def _set(self, kernels: RowKernels) -> None:
        self._kernels = kernels
        self.space = Space._trusted(kernels.sizes_in)
        out = Space._trusted(kernels.sizes_out)
        self.output_space = self.space if out == self.space else out

    @classmethod
    def _trusted(cls, kernels: RowKernels) -> ProductChannel:
        self = ProductChannel.__new__(ProductChannel)
        self._set(kernels)
        return self

    def row_kernels(self) -> RowKernels:
        """Return the kernels of the rows."""
        return self._kernels

    def _kron(self, parts: Sequence[Floats]) -> Floats:
        """Kronecker product over rows of a vector or matrix given per distinct kernel."""
        return np.asarray(reduce(np.kron, [parts[k] for k in self._kernels.assignment]))

    def matrix(self) -> Floats:
        """Return W[x, y] = p(y|x), an N x K array."""
        self._check_matrix()
        return np.array(self._kron([k.matrix for k in self._kernels.distinct]), order="C")

    def _output(self, prior: Distribution) -> Distribution:
        return prior.through(self._kernels)

    @property
    def searched_entries(self) -> int:
        """Entries of the distinct kernels that have no closed forms."""
        kinds = (k for k in self._kernels.distinct if not isinstance(k, Symmetric))
        return sum(math.prod(kernel.shape) for kernel in kinds)

    def information(self, prior: Distribution) -> float | Bracket:
        """Return I(X; Y), in the prior's structure."""
        return prior.information_through(self._kernels)

    def law_factors(self) -> list[tuple[Floats, int]]:
        """Return the distinct kernels and the number of rows that use each."""
        counts = np.bincount(self._kernels.assignment, minlength=len(self._kernels.distinct))
        kinds = self._kernels.distinct
        return [(k.matrix, count) for k, count in zip(kinds, counts.tolist(), strict=True)]

    def joined(self, other: AbstractChannel) -> AbstractChannel:
        """Return both outputs row by row, where the other acts row by row as well."""
        if not isinstance(other, ProductChannel):
            return super().joined(other)
        mine, theirs = self._kernels, other._kernels
        codes = mine.assignment * len(theirs.distinct) + theirs.assignment
        kinds, which = np.unique(codes, return_inverse=True)
        pairs = [divmod(code, len(theirs.distinct)) for code in kinds.tolist()]
        laws = [
            RowKernel(joint_laws(mine.distinct[a].matrix, theirs.distinct[b].matrix))
            for a, b in pairs
        ]
        return ProductChannel._trusted(RowKernels(laws, which))

    def capacity(self, gap: float) -> Bracket:
        """Sum of the rows' capacities, each to its share of the gap. Cost O(distinct rows)."""
        kinds, rows = self._kernels.distinct, self._kernels.assignment
        counts = [len(rows)] if len(kinds) == 1 else np.bincount(rows).tolist()
        found = [kernel.capacity(gap / len(rows))[0] for kernel in kinds]
        return repeated(list(zip(counts, found, strict=True)))

    def individual_capacity(self, k: int, gap: float, time_limit: float) -> IndividualCapacity:
        """Largest I(X_G; Y) over groups of k rows: searched while the matrix is small.

        Otherwise at least what some rows tell that are searched, and at most the capacity of all.
        """

        def search(channel: ProductChannel) -> IndividualCapacity:
            return channel._searched(k, gap, time_limit)

        small = self.space.size * self.output_space.size <= SEARCHED
        return search(self) if small else by_part(self, SEARCHED, k, search)

    def _searched(self, k: int, gap: float, time_limit: float) -> IndividualCapacity:
        """Search the matrix, whose entries have the rounding errors of n products.

        Entries that are off by a share e move I(p) by at most e sum p W |ln(W/q)|, which Pinsker's
        inequality bounds by e (I + sqrt(2 I)).
        """
        found = super().individual_capacity(k, gap, time_limit)
        error = 8.0 * (self.space.n + 4) * ULP
        slack = error * (found.upper + math.sqrt(2.0 * found.upper) + 4.0 * error)
        lower = max(found.lower - slack, 0.0)
        return IndividualCapacity(lower, found.upper + slack, found.adversary)

    def _row_kinds(self) -> Ints:
        return self._kernels.assignment

    def capacity_prior(self, gap: float) -> Product:
        """Return independent rows, each with the law that is best for its kernel."""
        kinds, rows = self._kernels.distinct, self._kernels.assignment
        return Product._trusted([kernel.capacity(gap / len(rows))[1] for kernel in kinds], rows)

    def correlation(self, prior: Distribution) -> Bracket:
        """Maximal correlation, in the prior's structure."""
        return prior.correlation_through(self._kernels)

    def contraction(self) -> Bracket:
        """Contraction coefficient: closed form for E_d, listed or bounded for other products."""
        return product_contraction(self._kernels)

    def sdpi(self, prior: Distribution) -> Bracket:
        """Strong data-processing constant, in the prior's structure."""
        return prior.sdpi_through(self._kernels)

    def expected_distance(self, prior: Distribution) -> float:
        """Expected number of rows that change. Cost O(distinct rows) and the prior's marginals."""
        if self.output_space != self.space:
            raise InvalidInput("outputs have other row sizes than databases: give metric[x, y]")
        total = []
        for kernel, rows in self._kernels.groups():
            change = kernel.matrix.copy()
            np.fill_diagonal(change, 0.0)
            total.append(float(prior._expected_counts(rows) @ change.sum(axis=1)))
        return math.fsum(total)

    def column_at(self, y: Ints) -> Floats:
        """Return p(y|x) for every database x."""
        check.fits(self.space.size, "a vector over databases", "use releases row by row only")
        found = np.ones(1)
        for kernel, value in zip(self._kernels, y.tolist(), strict=True):
            found = np.multiply.outer(found, kernel.matrix[:, value]).reshape(-1)
        return found

    def entropy_gain(self, prior: Distribution) -> float:
        """Largest H(X) - H(X | Y = y), in the prior's structure."""
        return prior.gain_through(self._kernels)

    def column_maxima(self) -> Floats:
        """Largest p(y|x) over x, for every output y."""
        self._check_vector()
        return self._kron([k.matrix.max(axis=0) for k in self._kernels.distinct])

    def column_minima(self) -> Floats:
        """Least p(y|x) over x, for every output y."""
        self._check_vector()
        return self._kron([k.matrix.min(axis=0) for k in self._kernels.distinct])

    def row_entropies(self) -> Floats:
        """Entropy of the output for every database x: the sum over its rows."""
        check.fits(self.space.size, "a vector over databases", "ask for single rows")
        parts = [
            np.array([kernels.entropy(row) for row in k.matrix]) for k in self._kernels.distinct
        ]
        total = np.zeros(1)
        for k in self._kernels.assignment:
            total = np.add.outer(total, parts[k]).reshape(-1)
        return total

    def _check_vector(self) -> None:
        check.fits(self.output_space.size, "a vector over outputs", "ask for single outputs")

    def _sample(self, rows: Codes, source: Source) -> Codes:
        return draw_rows(self._kernels, rows, source)


def _load(factor: ArrayLike, i: int) -> Floats:
    return check.stochastic(factor, f"factor {i}")


def hamming_distance(kernels: RowKernels) -> float:
    """Expected number of rows that R_epsilon moves: h(epsilon), for any row sizes."""
    return math.fsum(
        len(rows) * (kernel.m - 1) * kernel.off
        for kernel, rows in kernels.groups()
        if isinstance(kernel, Symmetric)
    )
