"""Private choice of the best of several candidates: permute-and-flip, and report noisy max."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.validation import Floats
from fastpriv.channels import Channel
from fastpriv.errors import InvalidInput

__all__ = ["permute_and_flip", "report_noisy_max"]

#: Distributions of the noise on a utility.
_NOISE = ("exponential", "gumbel", "laplace")
#: Nodes of a cell of an integral over Laplace noise, in addition to those for candidates.
_NODES = 40
#: Length of such a cell.
_CELL = 4.0
#: Differences of utilities, times the rate, beyond which a candidate is never chosen.
_NEVER = 740.0
#: Most candidates.
_CANDIDATES = 1 << 12


def permute_and_flip(utilities: ArrayLike, epsilon: float, sensitivity: float = 1.0) -> Channel:
    """Choose a candidate of high utility by permute-and-flip (McKenna and Sheldon 2020).

    Candidates come in a random order, and each candidate r is taken with probability
    q_r = exp(epsilon (u_r - max u) / (2 sensitivity)), until one is taken. So

        p(r) = q_r * integral over [0, 1] of the product over s != r of (1 - q_s x) dx.

    The mechanism is epsilon-differentially private if one person changes every utility by at most
    the sensitivity. For no utilities is it worse than the exponential mechanism. It equals
    reporting the largest utility with exponential noise (Ding et al. 2021).

    Parameters
    ----------
    utilities : array
        ``utilities[x, r]`` of candidate r for database x, or of one database.
    epsilon : float
        Level, at least 0.
    sensitivity : float
        Most by which one person changes a utility, above 0.

    Returns
    -------
    Channel
        Of one row with as many values as there are databases; outputs are candidates. Probabilities
        are known to some 1e-14 of each; the channel is measured, and drawn from, as it stands.

    Notes
    -----
    O(databases candidates^2), at most 4,096 candidates. Its losses are in [-epsilon, epsilon], but
    their range is more than epsilon: from utilities (0, 0) to (1, -1) they are epsilon and
    -ln(2 - e^-epsilon). So it does not compose as a mechanism of bounded range epsilon does
    (``PrivacyProfile.exponential``). ``PrivacyProfile.from_epsilon_delta(epsilon)`` holds for any
    utilities, ``PrivacyProfile.of(channel)`` for the given ones.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = fp.mechanisms.permute_and_flip([[0.0, 0.0], [1.0, -1.0]], 1.0)
    >>> channel.matrix().round(4)
    array([[0.5   , 0.5   ],
           [0.8161, 0.1839]])
    >>> fp.dp_level(channel) <= 1.0 + 1e-12
    True
    """
    return _channel(_flipped(_exponents(utilities, epsilon, sensitivity)))


def report_noisy_max(
    utilities: ArrayLike, epsilon: float, sensitivity: float = 1.0, noise: str = "exponential"
) -> Channel:
    """Choose the candidate whose utility is the largest after noise of scale 2 sensitivity/epsilon.

    With Gumbel noise it is the exponential mechanism, p(r) proportional to
    exp(epsilon u_r / (2 sensitivity)), of bounded range epsilon (Durfee and Rogers 2019). With
    exponential noise it is :func:`permute_and_flip`. With Laplace noise p(r) is an integral over
    the largest noisy utility.

    Parameters
    ----------
    utilities, epsilon, sensitivity
        As for :func:`permute_and_flip`.
    noise : {"exponential", "gumbel", "laplace"}
        Distribution of the noise.

    Returns
    -------
    Channel
        As for :func:`permute_and_flip`: epsilon-differentially private with any of the noises.

    Notes
    -----
    O(databases candidates^2), and as much for every unit of the spread of utilities, over the
    scale, with Laplace noise. For compositions of the exponential mechanism see
    ``PrivacyProfile.exponential``; of the others, :func:`permute_and_flip`.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.mechanisms.report_noisy_max([2.0, 1.0, 0.0], 2.0, noise="gumbel").matrix().round(4)
    array([[0.6652, 0.2447, 0.09  ]])
    >>> fp.mechanisms.report_noisy_max([2.0, 1.0, 0.0], 2.0, noise="laplace").matrix().round(4)
    array([[0.6713, 0.2462, 0.0825]])
    """
    kind = check.word(noise, "noise", _NOISE)
    exponents = _exponents(utilities, epsilon, sensitivity)
    if kind == "gumbel":
        with np.errstate(under="ignore"):
            return _channel(np.exp(exponents))
    return _channel((_flipped if kind == "exponential" else _noisy)(exponents))


def _exponents(utilities: ArrayLike, epsilon: float, sensitivity: float) -> Floats:
    """Return epsilon (u - max u) / (2 sensitivity), row by row."""
    given = check.array(utilities, "utilities")
    if given.dtype.kind not in "iuf" or given.ndim not in (1, 2) or not given.size:
        raise InvalidInput(
            "utilities must be numbers, one for each candidate or a row of them for each database, "
            f"got an array of shape {given.shape} and type {given.dtype}."
        )
    u: Floats = np.atleast_2d(given).astype(np.float64)
    if not np.isfinite(u).all():
        raise InvalidInput("utilities must be finite; leave out candidates that may not be chosen.")
    check.fits(u.shape[1], "a choice among candidates", "choose among fewer", _CANDIDATES)
    level = check.real(epsilon, "epsilon", least=0.0)
    scale = check.real(sensitivity, "sensitivity", least=5e-324)
    rate = level / 2.0 / scale
    if not math.isfinite(rate):
        raise InvalidInput(
            f"epsilon over sensitivity is too large; got {level:g} and {scale:g}. Scale utilities "
            "so that a person changes them by about one."
        )
    with np.errstate(over="ignore"):
        far = u - u.max(axis=1, keepdims=True)
        return np.asarray(np.maximum(rate * np.maximum(far, -1e300), -_NEVER))


def _channel(weights: Floats) -> Channel:
    """Return the channel of rows that sum to one but for rounding."""
    return Channel(weights / weights.sum(axis=1, keepdims=True))


def _flipped(exponents: Floats) -> Floats:
    """Probabilities of permute-and-flip: integrals over [0, 1] of products of 1 - q x."""
    with np.errstate(under="ignore"):
        q = np.exp(exponents)
    x, weights = _rule(q.shape[1] // 2 + 1)
    return np.stack(
        [row * (_others(1.0 - np.outer(x, row)) * weights[:, None]).sum(0) for row in q]
    )


def _noisy(exponents: Floats) -> Floats:
    """Probabilities that u + noise is the largest, for Laplace noise of scale one.

    The integral over the largest value is cut at all utilities, between which it is smooth.
    """
    return np.stack([_largest(row) for row in exponents])


def _largest(u: Floats) -> Floats:
    x, weights = _rule(_NODES + len(u) // 2)
    ends = np.unique(np.append(u, 0.0))
    ends = np.concatenate([ends[:1] - _NEVER / 10.0, ends, [_NEVER / 10.0]])
    total = np.zeros(len(u))
    for low, high in pairwise(ends.tolist()):
        count = max(math.ceil((high - low) / _CELL), 1)
        for start in low + (high - low) / count * np.arange(count):
            z = start + (high - low) / count * x
            apart = z[:, None] - u
            with np.errstate(under="ignore"):
                tail = 0.5 * np.exp(-np.abs(apart))
            below = np.where(apart > 0.0, 1.0 - tail, tail)
            total += weights @ (tail * _others(below)) * (high - low) / count
    return total


def _others(factors: Floats) -> Floats:
    """Products of all factors of a row but one, for each of them, without a division."""
    ones = np.ones((len(factors), 1))
    before = np.cumprod(np.concatenate([ones, factors[:, :-1]], axis=1), axis=1)
    after = np.cumprod(np.concatenate([ones, factors[:, :0:-1]], axis=1), axis=1)[:, ::-1]
    return np.asarray(before * after)


def _rule(n: int) -> tuple[Floats, Floats]:
    """Gauss and Legendre's rule on [0, 1]."""
    x, weights = np.polynomial.legendre.leggauss(n)
    return 0.5 * (x + 1.0), 0.5 * weights
