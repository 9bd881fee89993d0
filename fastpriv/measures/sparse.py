"""Channels given as scipy.sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastpriv._core import validation as check
from fastpriv.channels import AbstractChannel
from fastpriv.errors import InvalidInput, described
from fastpriv.measures.arguments import as_channel
from fastpriv.priors import Distribution


def as_mechanism(channel: Any, prior: Any = None) -> AbstractChannel:
    """Return the channel. A dense or sparse matrix is made into one."""
    if hasattr(channel, "tocsr"):
        matrix = sparse_matrix(channel)
        entries = matrix.shape[0] * matrix.shape[1]
        check.fits(entries, "the dense matrix", "only maximal_correlation", check.MAX_MATRIX)
        channel = matrix.toarray()
    return as_channel(channel, prior.space if isinstance(prior, Distribution) else None)


def sparse_matrix(channel: Any) -> Any:
    """Check a scipy.sparse matrix, and return it in compressed rows that sum to one."""
    from scipy.sparse import csr_matrix

    if channel.dtype.kind not in "iufb" or len(channel.shape) != 2:
        raise InvalidInput(f"a sparse channel must be a real matrix, got {described(channel)}")
    matrix = csr_matrix(channel, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    if min(matrix.shape) == 0 or matrix.nnz == 0:
        raise InvalidInput("a sparse channel must not be empty")
    check.floats(matrix.data, "the sparse channel", 1)
    matrix.eliminate_zeros()
    totals = np.asarray(matrix.sum(axis=1)).reshape(-1)
    wrong = np.flatnonzero(np.abs(totals - 1.0) > check.SUM_TOLERANCE)
    if len(wrong):
        raise InvalidInput(
            f"every row of the sparse channel must sum to 1 within {check.SUM_TOLERANCE:g}; row "
            f"{wrong[0]} sums to {described(float(totals[wrong[0]]))}"
        )
    matrix.data /= np.repeat(totals, np.diff(matrix.indptr))
    return matrix
