"""Hyper-distributions: the posteriors of the database and their probabilities."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from fastpriv import gains, kernels
from fastpriv._core import validation as check
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.gains import prior_vulnerability
from fastpriv.channels import AbstractChannel
from fastpriv.measures.inputs import as_pair, table
from fastpriv.priors import Distribution

__all__ = ["Hyper", "hyper"]

#: Posteriors this near in every probability are one.
_SAME = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class Hyper:
    """Posteriors of the database and their probabilities.

    Attributes
    ----------
    outer : array of length L
        Probability of each posterior, in decreasing order.
    inners : array of shape (L, N)
        The posteriors p(x|y), all different.
    outputs : integer array of length K
        Index of the posterior of each output; -1 for outputs that do not occur.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.hyper([[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]], [0.5, 0.5])
    Hyper(2 posteriors of 2 databases)
    """

    outer: Floats
    inners: Floats
    outputs: Ints

    def vulnerability(self, gain: ArrayLike | None = None) -> float:
        """Return the posterior vulnerability: the mean over posteriors of the best gain.

        ``gain[w, x]`` is a gain function; by default a right guess of the database. Rounded up,
        up to the rounding of the posteriors.

        Examples
        --------
        >>> import fastpriv as fp
        >>> fp.hyper([[1, 0], [0.5, 0.5]], [0.5, 0.5]).vulnerability()
        0.75
        """
        if gain is None:
            return math.fsum(self.outer * self.inners.max(axis=1))
        action = gains.checked(gain, self.inners.shape[1])
        values = [prior_vulnerability(inner, action)[1] for inner in self.inners]
        return math.fsum(self.outer * values)

    def __len__(self) -> int:
        return len(self.outer)

    def __repr__(self) -> str:
        many = "posteriors" if len(self) > 1 else "posterior"
        return f"Hyper({len(self)} {many} of {self.inners.shape[1]} databases)"


def hyper(channel: AbstractChannel | ArrayLike, prior: Distribution | ArrayLike) -> Hyper:
    """Compute the hyper-distribution [p, W]: posteriors of a channel and their probabilities.

    Outputs with proportional columns on the support of the prior have the same posterior and are
    merged. Two channels with the same hyper-distribution have the same leakage in every measure
    that depends on posteriors alone (McIver et al. 2014).

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    prior : Distribution or 1-D array
        Distribution of the databases.

    Returns
    -------
    Hyper
        Posteriors within 1e-12 of each other in every probability are merged. Cost
        O(N K + K log K).

    Examples
    --------
    >>> import fastpriv as fp
    >>> both = fp.hyper([[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]], [0.5, 0.5])
    >>> both.outer.tolist(), both.inners[1].tolist(), both.outputs.tolist()
    ([0.75, 0.25], [0.0, 1.0], [0, 0, 1])
    """
    mechanism, law = as_pair(channel, prior)
    W = table(mechanism)
    size, count = W.shape
    check.fits(W.size, "the posteriors", "use fewer outputs", check.MAX_MATRIX)
    outer, inners, outputs = np.empty(count), np.empty((count, size)), np.empty(count, np.int64)
    different = kernels.posteriors(
        W, law.probabilities(), _direction(size), _SAME, outer, inners, outputs
    )
    return Hyper(outer[:different], inners[:different], outputs)


@lru_cache(maxsize=64)
def _direction(size: int) -> Floats:
    return np.random.default_rng(0).random(size)
