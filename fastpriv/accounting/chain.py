"""Leakage of a sequence of observed outputs."""

from __future__ import annotations

from collections.abc import Iterable
from functools import singledispatch

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.rounding import roundoff
from fastpriv._core.validation import Floats, Ints
from fastpriv._structure.rows import RowKernel, RowKernels
from fastpriv.channels import AbstractChannel, ProductChannel
from fastpriv.errors import InvalidInput, described
from fastpriv.measures.inputs import as_pair, output_rows
from fastpriv.priors import Dense, Distribution

__all__ = ["pml_chain"]


def pml_chain(
    prior: Distribution | ArrayLike,
    releases: Iterable[tuple[AbstractChannel | ArrayLike, ArrayLike]],
) -> Floats:
    """Compute the pointwise maximal leakage of observed outputs, after each output.

    l(X -> (y_1, .., y_i)) = ln max_x p(y_1|x) .. p(y_i|x) / p(y_1, .., y_i), over databases x with
    positive probability. It is at most the sum of the leakages of the single outputs, each under
    the posterior given the earlier outputs (Saeidian et al. 2024, on composition). It is usually
    far smaller than the sum of worst cases, which a budget must assume in advance.

    Parameters
    ----------
    prior : Distribution or 1-D array
        Distribution of the databases.
    releases : iterable of (channel, y)
        The mechanisms, independent given the database, and the output of each: its index, or its
        value for each record.

    Returns
    -------
    ndarray
        Leakage in nats after 1, 2, ... outputs, rounded up; the last entry is the joint leakage.
        It is 0 if the outputs cannot occur together. The cost per output is O(N). If all channels
        act on each record separately, it follows the structure of the prior: O(n) for independent
        records, O(n m^2) for a chain.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = [[0.75, 0.25], [0.25, 0.75]]
    >>> fp.accounting.pml_chain([0.5, 0.5], [(channel, 0), (channel, 1), (channel, 0)]).round(6)
    array([0.405465, 0.      , 0.405465])
    """
    leakages: list[float] = []
    seen: list[tuple[AbstractChannel, np.ndarray]] = []
    law = None
    for release in check.items(releases, "releases", "pairs (channel, y)"):
        try:
            channel, y = release
        except (TypeError, ValueError):
            raise InvalidInput(
                f"every step must be a pair (channel, y); got {described(release)}."
            ) from None
        mechanism, law = as_pair(channel, prior if law is None else law)
        seen.append((mechanism, output_rows(mechanism, y)))
    if law is None:
        return np.zeros(0)
    parts = [_row_columns(mechanism, y) for mechanism, y in seen]
    rows = [part for part in parts if part is not None]
    if len(rows) < len(parts):
        kernels = [RowKernel(_column(mechanism, y)[:, None]) for mechanism, y in seen]
        rows = [RowKernels([kernel], np.zeros(1, dtype=np.int64)) for kernel in kernels]
        law = Dense(law.probabilities())
    total = rows[0]
    for i, part in enumerate(rows):
        total = _joined(total, part) if i else total
        first = np.zeros(len(total), dtype=np.int64)
        leakages.append(law.column(total, first).leakage() + _error(total, i + 1))
    return np.array(leakages)


@singledispatch
def _column(channel: AbstractChannel, y: Ints) -> Floats:
    """Return p(y|x) for every database x, through the matrix."""
    return np.array(channel.nearest_matrix()[:, channel.column_index(y)])


@_column.register
def _product_column(channel: ProductChannel, y: Ints) -> Floats:
    """Return p(y|x) for every database x as a product over records, in O(N)."""
    check.fits(channel.space.size, "a vector over databases", "use releases row by row only")
    column = np.ones(1)
    for kernel, value in zip(channel.kernels, y.tolist(), strict=True):
        column = np.multiply.outer(column, kernel.matrix[:, value]).reshape(-1)
    return column


def _row_columns(channel: AbstractChannel, y: Ints) -> RowKernels | None:
    """Return p(y|x) as a product over records of kernels with one output, or None."""
    kernels = channel.kernels
    if kernels is None:
        return None
    chosen, which = np.unique(np.stack([kernels.assignment, y]), axis=1, return_inverse=True)
    kinds = [kernels.distinct[k].column(v) for k, v in chosen.T.tolist()]
    return RowKernels(kinds, which.reshape(-1))


def _joined(first: RowKernels, second: RowKernels) -> RowKernels:
    """Multiply the likelihoods of two outputs, record by record."""
    chosen, which = np.unique(
        np.stack([first.assignment, second.assignment]), axis=1, return_inverse=True
    )
    kinds = [_product(first.distinct[a], second.distinct[b]) for a, b in chosen.T.tolist()]
    return RowKernels(kinds, which.reshape(-1))


def _product(first: RowKernel, second: RowKernel) -> RowKernel:
    """Return the product of two columns divided by its largest entry, accurate near 1."""
    logs = first.log_relative + second.log_relative
    most = logs.max()
    logs = logs - most if most > -np.inf else logs
    relative = np.exp(logs)
    return RowKernel.of(relative, relative, logs, -np.expm1(logs))


def _error(kernels: RowKernels, count: int) -> float:
    """Bound the rounding error, in nats, of a product of ``count`` likelihoods."""
    sizes = [
        float(np.abs(kernel.log_relative[kernel.log_relative > -np.inf]).max(initial=0.0))
        for kernel in kernels.distinct
    ]
    return roundoff(16.0 * count) * float(np.array(sizes)[kernels.assignment].sum())
