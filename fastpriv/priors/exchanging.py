"""When types take the place of databases."""

from __future__ import annotations

from fastpriv._structure.rows import RowKernels
from fastpriv._structure.type_pairs import TypePairs, pairs_fit
from fastpriv.priors.exchangeable import Exchangeable

#: Databases up to this number are listed: measures of them keep more digits near zero.
LISTED = 1 << 14


def many_types(prior: Exchangeable, kernels: RowKernels) -> TypePairs | None:
    """Return the tables of pairs of types, None where databases are few or kernels differ."""
    kernel = kernels.distinct[0]
    if prior.space.size <= LISTED or len(kernels.distinct) > 1 or 1 in kernel.shape:
        return None
    return TypePairs(prior.space.n, kernel) if pairs_fit(prior.space.n, kernel) else None
