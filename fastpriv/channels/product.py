"""Channels that act on every record by itself, and randomised response."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.defined import runs, unrolled
from fastpriv._core.rounding import roundoff
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.ratios import inwards, raised_beside
from fastpriv._matrices.tilted import distances
from fastpriv._sampling.source import Source
from fastpriv._sampling.thresholds import Codes
from fastpriv._structure.rows import (
    RowKernel,
    RowKernels,
    Symmetric,
    distinct,
    draw_rows,
    inner_level,
)
from fastpriv.channels.base import AbstractChannel
from fastpriv.errors import InvalidInput, described
from fastpriv.priors import Distribution
from fastpriv.spaces import Space

__all__ = ["HammingChannel", "ProductChannel"]

#: Largest matrix in which an adversary is searched for.
SEARCHED = 1 << 20


class ProductChannel(AbstractChannel):
    """Independent mechanisms on the records: W[x, y] = product of factors[i][x_i, y_i].

    Parameters
    ----------
    factors : sequence of 2-D arrays and channels
        ``factors[i][s, y]`` = p(y_i = y | x_i = s), one per record; equal factors are stored once.
        A channel on one record stands for its matrix. A channel that acts on several records by
        themselves (a :class:`HammingChannel`, a product) stands for all of its records, in order.

    Examples
    --------
    >>> import fastpriv as fp
    >>> noisy, exact = [[0.75, 0.25], [0.25, 0.75]], [[1.0, 0.0], [0.0, 1.0]]
    >>> channel = fp.ProductChannel([noisy, exact])
    >>> fp.dp_level(channel), fp.distortion(channel, fp.Uniform(2, 2))
    (inf, 0.25)
    >>> strong, weak = fp.HammingChannel(2, 2, 0.5), fp.HammingChannel(3, 4, 1.5)
    >>> both = fp.ProductChannel([strong, weak])
    >>> both.space.sizes, round(fp.dp_level(both), 9), round(fp.strong_dp_level(both), 9)
    ((2, 2, 4, 4, 4), 1.5, 5.5)
    """

    def __init__(self, factors: Sequence[ArrayLike | AbstractChannel]) -> None:
        factors = check.items(factors, "factors", "one item per row")
        if any(isinstance(f, AbstractChannel) for f in factors):
            self._set(_concatenated([_kernels_of(f, i) for i, f in enumerate(factors)]))
            return
        matrices, which = distinct(factors, _load, "factors")
        self._set(RowKernels([RowKernel(matrix) for matrix in matrices], which))

    def _set(self, kernels: RowKernels) -> None:
        self.kernels = kernels
        self.space = Space.of(kernels.sizes_in)
        out = Space.of(kernels.sizes_out)
        self.output_space = self.space if out == self.space else out

    #: The kernel of every record.
    kernels: RowKernels

    @property
    def record_kinds(self) -> Ints:
        return self.kernels.assignment

    @classmethod
    def of(cls, kernels: RowKernels) -> ProductChannel:
        self = ProductChannel.__new__(ProductChannel)
        self._set(kernels)
        return self

    def definition(self) -> dict[str, Any]:
        factors = [
            [kernel.m, kernel.epsilon] if isinstance(kernel, Symmetric) else kernel.matrix
            for kernel in self.kernels.distinct
        ]
        return {"factors": factors, "rows": runs(self.kernels.assignment)}

    @classmethod
    def from_definition(cls, given: Mapping[str, Any]) -> ProductChannel:
        kernels = [_read(factor, i) for i, factor in enumerate(given["factors"])]
        rows = unrolled(given["rows"], len(kernels))
        return ProductChannel.of(RowKernels(kernels, rows))

    def kron(self, parts: Sequence[Floats]) -> Floats:
        """Return the Kronecker product over records of a vector or matrix per distinct kernel."""
        return np.asarray(reduce(np.kron, [parts[k] for k in self.kernels.assignment]))

    def matrix(self) -> Floats:
        """Return W[x, y] = p(y|x), an N x K array of doubles, rounded inwards.

        Its differential privacy level is at most the level of the channel. Randomised response is
        rounded at a level that is lower by a few units of 2^-53. Entries whose ratio would still
        exceed the level are raised.
        """
        self.check_matrix_fits()
        kinds = self.kernels.distinct
        matrix = np.array(self.kron([k.exported(self.space.n) for k in kinds]), order="C")
        return inwards(matrix, self.space.axes, max(kernel.level for kernel in kinds))

    def nearest_matrix(self) -> Floats:
        """Return W[x, y] to the nearest doubles, up to the rounding of products over records."""
        self.check_matrix_fits()
        return np.array(self.kron([k.matrix for k in self.kernels.distinct]), order="C")

    @property
    def matrix_error(self) -> float:
        """Bound on the relative error of entries, which are products over records."""
        return roundoff(8.0 * (self.space.n + 4))

    def output_distribution(self, prior: Distribution) -> Distribution:
        return prior.through(self.kernels)

    def column_maxima(self) -> Floats:
        """Return the largest p(y|x) over x, for every output y."""
        self.check_vector_fits()
        return self.kron([k.matrix.max(axis=0) for k in self.kernels.distinct])

    def column_minima(self) -> Floats:
        """Return the smallest p(y|x) over x, for every output y."""
        self.check_vector_fits()
        return self.kron([k.matrix.min(axis=0) for k in self.kernels.distinct])

    def check_vector_fits(self) -> None:
        check.fits(self.output_space.size, "a vector over outputs", "ask for single outputs")

    def draw(self, rows: Codes, source: Source) -> Codes:
        return draw_rows(self.kernels, rows, source)


def _read(factor: Any, i: int) -> RowKernel:
    """Make a record's kernel from JSON: [m, epsilon] for randomised response, or its matrix."""
    if len(factor) == 2 and not isinstance(factor[0], list):
        m, epsilon = factor
        return Symmetric(check.integer(m, "m", 1), check.real(epsilon, "epsilon", least=0.0))
    return RowKernel(_load(factor, i))


def _kernels_of(factor: Any, i: int) -> RowKernels:
    """Return the kernels of the records that a factor stands for."""
    if isinstance(factor, ProductChannel):
        return factor.kernels
    if isinstance(factor, AbstractChannel):
        if factor.space.n > 1 or factor.output_space.n > 1:
            raise InvalidInput(
                f"factor {i} must act on every row by itself; got {described(factor)}. Give a "
                "matrix, a channel on one row with one output value, or a ProductChannel."
            )
        matrix = np.asarray(factor.matrix())
    else:
        matrix = _load(factor, i)
    return RowKernels([RowKernel(matrix)], np.zeros(1, dtype=np.int64))


def _concatenated(parts: Sequence[RowKernels]) -> RowKernels:
    """Concatenate the kernels of several factors; equal kernels are stored once."""
    numbers: dict[Any, int] = {}
    kernels: list[RowKernel] = []
    which = []
    for part in parts:
        places = np.empty(len(part.distinct), dtype=np.int64)
        for k, kernel in enumerate(part.distinct):
            if isinstance(kernel, Symmetric):
                key: tuple[Any, ...] = kernel.m, kernel.epsilon
            else:
                key = *kernel.shape, kernel.matrix.tobytes()
            places[k] = numbers.setdefault(key, len(kernels))
            if places[k] == len(kernels):
                kernels.append(kernel)
        which.append(places[part.assignment])
    return RowKernels(kernels, np.concatenate(which))


def _load(factor: ArrayLike, i: int) -> Floats:
    return check.stochastic(factor, f"factor {i}")


class HammingChannel(ProductChannel):
    """Randomised response: each record keeps its value with odds e^epsilon to each other value.

    W[x, y] = e^(-epsilon d(x, y)) / (1 + (m-1) e^-epsilon)^n. Its DP level is epsilon, its
    distortion is h(epsilon) and its identifiability is epsilon + eps_X.

    Parameters
    ----------
    n : int
        Number of records.
    m : int or sequence of int
        Number of values of every record, or a sequence with one number per record.
    epsilon : float
        Differential privacy level in nats, at least 0.

    Notes
    -----
    E_d of Wang-Ying-Zhang 2015, eq. (27) and Lemma 5. From ``prior.epsilon_hat()`` on, it has the
    smallest distortion of all mechanisms of its DP level. Theorem 1 of the paper only bounds this
    distortion; the proof is in the documentation's Theory.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = fp.HammingChannel(1_000_000, 4, 1.5)
    >>> fp.dp_level(channel)
    1.5
    >>> table = [[0, 1, 1]]  # one database of three bits; five noisy versions of it
    >>> fp.HammingChannel(3, 2, 1.5).sample(table * 5, rng=1).shape
    (5, 3)
    """

    def __init__(self, n: int, m: int | Sequence[int], epsilon: float) -> None:
        self.epsilon = check.real(epsilon, "epsilon", least=0.0)
        self._set(RowKernels.symmetric(check.row_sizes(n, m), self.epsilon))

    def matrix(self) -> Floats:
        """Return W[x, y] = p(y|x), an N x N array of doubles, rounded inwards.

        Its level is at most epsilon, and pairs at the same distance have the same entry.
        """
        self.check_matrix_fits()
        n, sizes = self.space.n, self.space.sizes
        level = inner_level(self.epsilon, n, max(sizes))
        stay = math.prod(Symmetric(m, level).stay for m in sizes)
        entries: Floats = np.multiply.accumulate(np.array([stay, *[math.exp(-level)] * n]))
        d = np.arange(n)
        entries = raised_beside(entries[:, None], [(d + 1, d)], self.epsilon)[:, 0]
        return np.asarray(entries[distances(sizes).astype(np.int64)])

    def symmetric(self) -> list[Symmetric]:
        return [k for k in self.kernels.distinct if isinstance(k, Symmetric)]

    def definition(self) -> dict[str, Any]:
        return {"sizes": runs(np.asarray(self.space.sizes)), "epsilon": self.epsilon}

    @classmethod
    def from_definition(cls, given: Mapping[str, Any]) -> HammingChannel:
        sizes = unrolled(given["sizes"], 1 << 62).tolist()
        return cls(len(sizes), sizes, given["epsilon"])

    def __repr__(self) -> str:
        sizes = self.space.m or "mixed"
        return f"HammingChannel(n={self.space.n}, m={sizes}, epsilon={self.epsilon:g})"
