"""Shuffling: people randomise their own records, and the messages appear in random order."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.validation import Floats
from fastpriv._structure.rows import Symmetric
from fastpriv.accounting.profile.profile import PrivacyProfile
from fastpriv.accounting.profile.relations import REPLACED
from fastpriv.accounting.profile.steps.shuffling import Shuffled
from fastpriv.channels import AbstractChannel, HammingChannel, RecordChannel
from fastpriv.errors import InvalidInput, TooLarge, short
from fastpriv.measures.inputs import as_channel

__all__ = ["shuffled"]

#: Maximum number of people; it is used as a double.
_PEOPLE = 10**12
#: Largest level of a randomised response; probabilities near e^-744 underflow.
_HIGHEST = 740.0
#: Maximum number of values of a randomiser that is not a response: all pairs are compared.
_VALUES = 32
#: Maximum number of entries of the distributions of all pairs.
_ENTRIES = 1 << 22


def shuffled(channel: AbstractChannel | ArrayLike, n: int) -> PrivacyProfile:
    """Return the profile of n records that are randomised by a channel and then shuffled.

    Neighbours differ in the value of one record, x or x'. Every other message y has at least the
    probability w(y) = min over x of W(y|x), whatever the record. This w is the privacy blanket of
    Balle, Bell, Gascon and Nissim (2019). Let q = w, and let V be
    (W(y|x) - e^t W(y|x')) / q(y) at y with probability q(y), and 0 otherwise. Then

        delta(t) <= max over x, x' of E[(V_1 + ... + V_n)_+] / n.

    With q = W(.|x'') instead, the value is attained if all other records have the value x''.
    Outputs with q(y) = 0 add the positive part of W(y|x) - e^t W(y|x').

    Parameters
    ----------
    channel : channel or 2-D array
        The local randomiser W[x, y] of one record. For k-ary randomised response of any size, also
        given as a matrix, three rows suffice, and so for every column of a
        :class:`fastpriv.RecordChannel` of responses. Other channels may have 32 values and
        hundreds of outputs; every pair of values takes about as long as one response.
    n : int
        Number of people, from 1 to 10^12.

    Returns
    -------
    PrivacyProfile
        Profile for the relation "replace-one". The upper bound holds for all databases. The lower
        bound is attained by two neighbouring databases. The bounds nearly agree for k-ary
        randomised response with k > 2 and many people. For other randomisers they differ: by 4 %
        of epsilon for binary response and 1,000 people, by 14 % for a random matrix of 3 values
        and 200 outputs and 10,000 people. Which of both is nearer is open. If the blanket is
        empty, the upper bound shows no gain from shuffling.

    Notes
    -----
    Contour integrals at the requested level bound one step, each in O(10^4 m), to about 1e-9. For
    composition, the step becomes a pair of measures on losses, each from some 700 points of the
    curve. This is computed once, and the brackets are about 1e-4 wide. The lower bound then
    belongs to two databases, the same in every step, in which all other records have one value.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.accounting.shuffled(fp.HammingChannel(1, 16, 4.0), 100_000).epsilon(1e-6)
    Bracket(0.1047066582, 0.1047067636)
    >>> fp.accounting.shuffled([[0.75, 0.25], [0.25, 0.75]], 3).delta(0.0)
    Bracket(0.2812499999, 0.3125000001)
    """
    people = check.integer(n, "n", 1)
    if people > _PEOPLE:
        raise InvalidInput(f"n must be at most 10^12; got {short(people)}.")
    given = as_channel(channel)
    if given.space.n != 1:
        raise InvalidInput(
            "channel must be a local mechanism on one record; got a channel on "
            f"{given.space.n} records. Give the channel of one person."
        )
    laws, alike = _laws(given)
    _check_size(*laws.shape)
    return PrivacyProfile({Shuffled(laws, people, alike): 1}, REPLACED)


def _laws(channel: AbstractChannel) -> tuple[Floats, bool]:
    """Return the output distributions, and whether values can be renamed.

    Two neighbours and all other records have at most three values in a column. Randomised response
    treats the other values alike, so three rows suffice, with the other outputs merged.
    """
    if isinstance(channel, HammingChannel):
        return _response(channel.space.sizes[0], channel.epsilon), True
    kernels = channel.columns.kernels if isinstance(channel, RecordChannel) else None
    if kernels is None:
        matrix = channel.nearest_matrix()
        known = _two_probabilities(matrix)
        return (matrix, False) if known is None else (_reduced(len(matrix), *known), True)
    laws: Floats = np.ones((1, 1))
    for kind in kernels.assignment.tolist():
        kernel = kernels.distinct[kind]
        if not isinstance(kernel, Symmetric):
            return channel.nearest_matrix(), False
        laws = np.asarray(np.kron(laws, _response(kernel.m, kernel.epsilon)), dtype=np.float64)
        _check_size(*laws.shape)
    return laws, False


def _response(k: int, epsilon: float) -> Floats:
    """Return k-ary randomised response, reduced to three values if k is above four."""
    if epsilon > _HIGHEST:
        raise InvalidInput(
            f"the level of a shuffled response must be at most {_HIGHEST:g}; got {epsilon:g}. "
            "Use a response with a lower level."
        )
    odds = math.exp(-epsilon)
    return _reduced(k, 1.0 / (1.0 + (k - 1) * odds), odds / (1.0 + (k - 1) * odds))


def _two_probabilities(matrix: Floats) -> tuple[float, float] | None:
    """Return the probabilities of the true value and of each other one, if this is a response.

    Outputs may be in any order.
    """
    k = len(matrix)
    if k < 3 or matrix.shape[1] != k:
        return None
    stay, rest = float(matrix.max()), float(matrix.min())
    largest = matrix == stay
    known = (largest.sum(axis=0) == 1).all() and (largest.sum(axis=1) == 1).all()
    return (stay, rest) if known and (matrix[~largest] == rest).all() else None


def _reduced(k: int, stay: float, rest: float) -> Floats:
    """Return a k-ary response with three values if k is above four, the other outputs merged."""
    laws = np.full((k if k <= 4 else 3, min(k, 4)), rest)
    np.fill_diagonal(laws, stay)
    if k > 4:
        laws[:, 3] = (k - 3) * rest
    return laws


def _check_size(k: int, m: int) -> None:
    """Refuse randomisers with too many pairs of distributions."""
    if (k > _VALUES and k**3 * m > _ENTRIES) or k * k * m > _ENTRIES:
        raise TooLarge(
            f"a local mechanism of {k} values and {m} outputs has too many triples of "
            "distributions to shuffle; use k-ary randomised response, or merge values or "
            "columns."
        )
