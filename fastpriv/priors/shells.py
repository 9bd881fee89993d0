"""Mass of a prior at each Hamming distance from a database."""

from __future__ import annotations

import math
from functools import singledispatch

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.validation import Floats, Ints
from fastpriv.errors import InvalidInput
from fastpriv.priors.base import Dense, Distribution, as_prior
from fastpriv.priors.exchangeable import Exchangeable
from fastpriv.priors.product import Product

__all__ = ["shell_profile"]

#: Most records of different distributions that are convolved one by one, at cost O(n^2).
_MAX_CONVOLUTION = 200_000


def shell_profile(prior: Distribution | ArrayLike, y: ArrayLike) -> Floats:
    """Return the mass of a prior at Hamming distance 0, 1, ..., n from a database.

    The profile gives the output probability of ``y`` under randomised response at every level. If
    all records have m values, p_Y(y) = sum_l profile[l] e^(-epsilon l) / (1 + (m-1) e^-epsilon)^n.

    Parameters
    ----------
    prior : Distribution or 1-D array
        Distribution over databases.
    y : int or array of n record values
        The centre, as an index or as a database.

    Returns
    -------
    ndarray
        n + 1 masses. Cost O(N) for dense and Markov priors, at most O(n^2) for product and binary
        exchangeable priors.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.shell_profile(fp.Product.iid([0.75, 0.25], 2), [0, 0])
    array([0.5625, 0.375 , 0.0625])
    """
    law = as_prior(prior)
    if check.array(y, "y").ndim == 0:
        rows = law.space.rows(check.index(y, law.space.size, "y"))
    else:
        rows = check.rows(y, law.space.sizes)
        if rows.ndim != 1:
            raise InvalidInput(f"y must be one database; got {rows.shape[0]}. Give y[0].")
    return _profile(law, rows)


@singledispatch
def _profile(prior: Distribution, y: Ints) -> Floats:
    """Use the vector, in one O(N) pass."""
    return _profile(prior.as_dense("shell_profile"), y)


@_profile.register
def _dense_profile(prior: Dense, y: Ints) -> Floats:
    from fastpriv.kernels import shell_masses

    space = prior.space
    differ = [np.arange(m) != value for m, value in zip(space.sizes, y, strict=True)]
    half = np.searchsorted(-space.strides, -math.isqrt(space.size))
    outer, inner = (_distances(part) for part in (differ[:half], differ[half:]))
    profile = np.zeros(space.n + 1)
    shell_masses(prior.probabilities(), outer, inner, profile)
    return profile


def _distances(differ: list[np.ndarray]) -> Ints:
    """Return Hamming distances of all settings of a few records, from tables of differences."""
    distances = np.zeros(1, dtype=np.int64)
    for table in differ:
        distances = np.add.outer(distances, table.astype(np.int64)).reshape(-1)
    return distances


@_profile.register
def _product_profile(prior: Product, y: Ints) -> Floats:
    """Convolve two-point distributions of independent records; equal records are binomial."""
    from scipy.stats import binom

    agree = np.empty(prior.space.n)
    for k, law in enumerate(prior.distinct):
        rows = prior.assignment == k
        agree[rows] = law[y[rows]]
    chances, counts = np.unique(agree, return_counts=True)
    if len(chances) > 1:
        check.fits(
            prior.space.n,
            f"the profile of {len(chances)} distinct rows",
            "use fewer records or fewer distinct distributions",
            _MAX_CONVOLUTION,
        )
    profile = np.ones(1)
    for chance, count in zip(chances.tolist(), counts.tolist(), strict=True):
        # Count the agreements and read them backwards. The difference 1 - probability would lose
        # the small digits of a probability near one. SciPy computes the complement accurately.
        differ = binom.pmf(np.arange(count, -1, -1), count, chance)
        profile = np.convolve(profile, differ)
    return profile


@_profile.register
def _exchangeable_profile(prior: Exchangeable, y: Ints) -> Floats:
    """Use hypergeometric overlaps for exchangeable bits, O(n^2); else the vector."""
    if prior.type_weights.ndim > 1:
        return _profile(prior.as_dense("shell_profile"), y)
    from scipy.stats import hypergeom

    n, ones = prior.space.n, int(y.sum())
    profile = np.zeros(n + 1)
    for k in np.flatnonzero(prior.type_weights).tolist():
        overlap = np.arange(max(0, ones + k - n), min(ones, k) + 1)
        profile[ones + k - 2 * overlap] += prior.type_weights[k] * hypergeom.pmf(
            overlap, n, k, ones
        )
    return profile
