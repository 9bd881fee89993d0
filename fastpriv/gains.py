"""Gain functions g[w, x]: the gain of an adversary who takes action w if the database is x.

A gain function is an array with a row for each action and a column for each database. Its entries
are finite numbers of any sign. Sources: Alvim et al. 2012; Alvim et al. 2020, Chapter 3.

Examples
--------
>>> import fastpriv as fp
>>> fp.gains.tries(3, 2)
array([[1., 1., 0.],
       [1., 0., 1.],
       [0., 1., 1.]])
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.validation import Floats
from fastpriv.errors import InvalidInput, short
from fastpriv.spaces import Space

__all__ = ["Row", "attribute", "distance", "identity", "penalty", "tries"]

#: Largest gain: products of two do not overflow.
_LARGEST = 1e150


def identity(size: int) -> Floats:
    """Guess the database in one try: gain 1 if right, 0 if wrong (Bayes vulnerability).

    This is the default gain of measures, which then use the structure of the channel.

    Parameters
    ----------
    size : int
        Number of databases, N.

    Returns
    -------
    ndarray of shape (N, N)

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(fp.vulnerability([0.5, 0.3, 0.2], fp.gains.identity(3)), 6)
    0.5
    """
    return tries(size, 1)


def tries(size: int, k: int) -> Floats:
    """Guess the database in k tries: gain 1 if one of k different guesses is right.

    Parameters
    ----------
    size : int
        Number of databases, N.
    k : int
        Number of tries, at most N.

    Returns
    -------
    ndarray of shape (C(N, k), N)

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(fp.vulnerability([0.5, 0.25, 0.25], fp.gains.tries(3, 2)), 6)
    0.75
    """
    size, k = check.integer(size, "size", 1), check.integer(k, "k", 1)
    if k > size:
        raise InvalidInput(f"k must be at most the number of databases {size}; got {short(k)}.")
    actions = math.comb(size, k)
    check.fits(actions * size, "the gain function", "use fewer tries", check.MAX_MATRIX)
    gain = np.zeros((actions, size))
    guesses = np.array(list(combinations(range(size), k)))
    np.put_along_axis(gain, guesses, 1.0, axis=1)
    return gain


def penalty(size: int, loss: float = 1.0) -> Floats:
    """Guess the database or abstain: gain 1 if right, -loss if wrong, 0 for no guess.

    Parameters
    ----------
    size : int
        Number of databases, N.
    loss : float
        The cost of a wrong guess, at least 0.

    Returns
    -------
    ndarray of shape (N + 1, N)
        The last action abstains.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.vulnerability([0.25, 0.25, 0.5], fp.gains.penalty(3, 2.0))  # abstaining is best
    0.0
    """
    size, loss = check.integer(size, "size", 1), check.real(loss, "loss", least=0.0)
    check.fits((size + 1) * size, "the gain function", "use fewer databases", check.MAX_MATRIX)
    guesses = np.where(np.eye(size) > 0.0, 1.0, -loss)
    return np.vstack([guesses, np.zeros(size)])


def distance(metric: ArrayLike) -> Floats:
    """Guess as near as possible: gain 1 - d(x, w)/max d.

    Parameters
    ----------
    metric : 2-D array
        ``metric[x, w]``, the distance of guess w from database x, at least 0.

    Returns
    -------
    ndarray of shape (guesses, N)
        All entries are 1 if all distances are 0.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.gains.distance([[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0.5],
           [0. , 0.5, 1. ]])
    """
    distances = check.floats(metric, "metric", 2)
    most = float(distances.max())
    return np.ascontiguousarray(1.0 - distances.T / (most if most > 0.0 else 1.0))


def attribute(labels: ArrayLike) -> Floats:
    """Guess an attribute of the database: gain 1 if the value is right.

    Parameters
    ----------
    labels : 1-D array of N values
        The value of the attribute for each database, of any type that can be sorted.

    Returns
    -------
    ndarray of shape (values, N)
        The values in sorted order.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.gains.attribute(["ill", "well", "well"])
    array([[1., 0., 0.],
           [0., 1., 1.]])
    """
    try:
        values, places = np.unique(np.asarray(labels), return_inverse=True)
    except (TypeError, ValueError):
        raise InvalidInput("labels must be values of one type that can be sorted.") from None
    if np.ndim(labels) != 1 or not len(values):
        raise InvalidInput(f"labels must be one value per database; got shape {np.shape(labels)}.")
    check.fits(len(values) * len(places), "the gain function", "use fewer values", check.MAX_MATRIX)
    return np.asarray(places == np.arange(len(values))[:, None], np.float64)


class Row(NamedTuple):
    """Guess the value of one record of the database.

    For channels that act on each record separately, under independent records, only this record is
    computed.

    Parameters
    ----------
    i : int
        The record, 0 .. n-1.
    gain : 2-D array, optional
        Gain function on the values of this record; by default 1 for the right value.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel, prior = fp.HammingChannel(1_000, 2, 1.0), fp.Uniform(1_000, 2)
    >>> round(fp.posterior_vulnerability(channel, prior, fp.gains.Row(0)), 6)  # e / (e + 1)
    0.731059
    """

    i: int
    gain: ArrayLike | None = None

    def on_row(self, space: Space) -> Floats:
        """Return the gain function on the values of the record, checked."""
        i = check.integer(self.i, "i", 0)
        if i >= space.n:
            raise InvalidInput(f"i must be a record, 0 .. {space.n - 1}; got {short(i)}.")
        return identity(space.sizes[i]) if self.gain is None else checked(self.gain, space.sizes[i])

    def matrix(self, space: Space) -> Floats:
        """Return the gain function on all databases of a space."""
        own = self.on_row(space)
        entries = len(own) * space.size
        check.fits(entries, "the gain function", "use fewer records", check.MAX_MATRIX)
        return own[:, space.rows(np.arange(space.size))[:, self.i]]


def checked(gain: ArrayLike, size: int) -> Floats:
    """Return g[w, x] as a C-contiguous array of finite numbers, a column for each database."""
    given = check.array(gain, "gain")
    if given.ndim != 2 or given.shape[1] != size or given.size == 0:
        raise InvalidInput(
            f"gain must have a row for each action and a column for each of {short(size)} "
            f"databases; got shape {given.shape}."
        )
    result = np.ascontiguousarray(given, dtype=np.float64)
    if result.min() >= -_LARGEST and result.max() <= _LARGEST:  # not so if one is a NaN
        return result
    if not np.isfinite(result).all():
        raise InvalidInput("gain must be finite numbers; got a NaN or an infinity.")
    if np.abs(result).max() > _LARGEST:
        raise InvalidInput(
            f"gain must be numbers up to {_LARGEST:g}; got {np.abs(result).max():g}. Divide it by "
            "its largest entry."
        )
    return result
