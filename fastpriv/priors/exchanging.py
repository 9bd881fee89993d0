"""Exchangeable rows: which priors have them, and when types take the place of databases."""

from __future__ import annotations

import math
from functools import singledispatch

import numpy as np

from fastpriv._core import validation as check
from fastpriv._structure.rows import RowKernels
from fastpriv._structure.type_laws import types_array
from fastpriv._structure.type_pairs import TypePairs, log_sizes, pairs_fit
from fastpriv.priors.base import Distribution
from fastpriv.priors.exchangeable import Exchangeable
from fastpriv.priors.product import Product

#: Most types that are listed.
_TYPES = 1 << 22
#: Databases up to this number are listed: measures of them keep more digits near zero.
LISTED = 1 << 14


@singledispatch
def exchangeable(prior: Distribution) -> Exchangeable | None:
    """Return the law as one of types, or None where rows are not known to be exchangeable."""
    return None


@exchangeable.register
def _(prior: Exchangeable) -> Exchangeable | None:
    return prior


@exchangeable.register
def _(prior: Product) -> Exchangeable | None:
    """Independent rows with one law: the law of the counts is multinomial. Cost O(types)."""
    n, m = prior.space.n, prior.space.m
    if len(prior._laws) > 1 or m is None or m == 1 or (n + 1) ** (m - 1) > _TYPES:
        return None
    check.fits((n + 1) ** (m - 1), "the table of types", "use fewer rows or values")
    types, law = types_array(n, m), prior._laws[0]
    with np.errstate(divide="ignore"):
        logs = np.log(law / law.sum())
    terms = np.where(types > 0, types * logs[:, None], 0.0)
    log_weights = np.full((n + 1,) * (m - 1), -math.inf)
    log_weights[tuple(types[1:])] = log_sizes(types) + terms.sum(axis=0)
    weights = np.exp(log_weights)
    made = Exchangeable._trusted(weights / weights.sum())
    made.__dict__["_log_weights"] = log_weights
    return made


def many_types(prior: Exchangeable, kernels: RowKernels) -> TypePairs | None:
    """Return the tables of pairs of types, None where databases are few or kernels differ."""
    kernel = kernels.distinct[0]
    if prior.space.size <= LISTED or len(kernels.distinct) > 1 or 1 in kernel.shape:
        return None
    return TypePairs(prior.space.n, kernel) if pairs_fit(prior.space.n, kernel) else None
