"""Collusion: the information about private data in two outputs together."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.validation import Floats
from fastpriv._matrices.information import matrix_information
from fastpriv.channels import AbstractChannel
from fastpriv.errors import InvalidInput
from fastpriv.measures.inputs import as_channel
from fastpriv.measures.realised import INFORMATION_ERROR
from fastpriv.measures.sdpi import sdpi_constant
from fastpriv.results import Bracket

__all__ = ["Collusion", "collusion"]

#: Conditional informations up to this value count as zero.
_NOTHING = 1e-12
#: Bounds are raised by more than the relative error of an information.
_UP = 1.0 + INFORMATION_ERROR


@dataclass(frozen=True, repr=False)
class Collusion:
    """Information about S in two outputs together, and bounds from each output alone.

    All informations are in nats. See :func:`collusion`.

    Attributes
    ----------
    exact : float
        I(S; Y1, Y2).
    alone : tuple of float
        I(S; Y1) and I(S; Y2).
    markov : tuple of str
        The variables among "S", "Y1", "Y2" that make the other two conditionally independent.
    lemma_2 : float
        Bound of Lemma 2. Infinite if the three variables form no Markov chain in any order.
    coefficient : Bracket
        The larger of the two constants S*(X_i; Y_i); lambda in Theorem 4.
    condition : bool or None
        Whether I(Y1; Y2) >= lambda I(X1; X2), the condition of Theorem 4. None if the bracket of
        lambda does not decide it.
    theorem_4 : float
        lambda I(S; X1, X2), plus lambda I(X1; X2) - I(Y1; Y2) if this difference is positive. It is
        positive if the condition fails; the proof of the theorem then gives this bound.
    corollary_2 : float
        The same with H(S) in place of I(S; X1, X2).

    Examples
    --------
    >>> import numpy as np, fastpriv as fp
    >>> shown, noisy = np.eye(2), [[0.9, 0.1], [0.1, 0.9]]
    >>> result = fp.collusion([[0.5, 0.0], [0.0, 0.5]], shown, noisy)
    >>> result.markov  # S = X = Y1, so given either of them the others are independent
    ('S', 'Y1')
    """

    exact: float
    alone: tuple[float, float]
    markov: tuple[str, ...]
    lemma_2: float
    coefficient: Bracket
    condition: bool | None
    theorem_4: float
    corollary_2: float

    @property
    def bound(self) -> float:
        """The smallest of the bounds."""
        return min(self.lemma_2, self.theorem_4, self.corollary_2)

    def __repr__(self) -> str:
        return (
            f"Collusion(exact={self.exact:.6g}, alone=({self.alone[0]:.6g}, {self.alone[1]:.6g}), "
            f"bound={self.bound:.6g})"
        )


def collusion(
    joint: ArrayLike,
    channel_1: AbstractChannel | ArrayLike,
    channel_2: AbstractChannel | ArrayLike,
) -> Collusion:
    """Compute the information about private data in two outputs together, with upper bounds.

    S is private. The inputs X1 and X2 depend on S, and each has its own mechanism. Two outputs may
    reveal S although each output alone reveals nothing, for example if S = Y1 xor Y2.

    Parameters
    ----------
    joint : array [s, x] or [s, x1, x2]
        Joint distribution of S and the inputs. The mechanisms share one input x, or have their own
        inputs x1 and x2.
    channel_1, channel_2 : channel or 2-D array
        The mechanisms.

    Returns
    -------
    Collusion
        ``exact`` has a relative error of about 1e-13. Bounds are rounded up. Cost O(|S| K1 K2) plus
        one pass over the joint distribution.

    Notes
    -----
    Lemma 2 of Makhdoumi-Fawaz 2013: I(S; Y1, Y2) <= I(S; Y1) + I(S; Y2) if the three form a Markov
    chain in any order. If the order is S - Y1 - Y2, I(S; Y1, Y2) <= I(S; Y1).

    Theorem 4: let lambda = max S*(X_i; Y_i). If I(Y1; Y2) >= lambda I(X1; X2), then I(S; Y1, Y2) <=
    lambda I(S; X1, X2). Without the condition, a comparison with independent X1, X2 (S* tensorises)
    gives I(S; Y1, Y2) + I(Y1; Y2) <= lambda (I(S; X1, X2) + I(X1; X2)). ``theorem_4`` reports this
    bound. Corollary 2 replaces I(S; X1, X2) by H(S).

    I(Y1; Y2) is at most S*(X1; Y1) S*(X2; Y2) I(X1; X2). So the condition holds only if X1, X2 are
    independent, or if both constants are 0 or both are 1.

    Examples
    --------
    S is the exclusive or of two bits, and each agent sees one bit:

    >>> import numpy as np, fastpriv as fp
    >>> joint = np.zeros((2, 2, 2))
    >>> joint[0, 0, 0] = joint[0, 1, 1] = joint[1, 0, 1] = joint[1, 1, 0] = 0.25
    >>> fp.collusion(joint, np.eye(2), np.eye(2))
    Collusion(exact=0.693147, alone=(0, 0), bound=0.693147)

    One record through two noisy channels:

    >>> noisy = [[0.75, 0.25], [0.25, 0.75]]
    >>> result = fp.collusion([[0.4, 0.1], [0.1, 0.4]], noisy, noisy)
    >>> result.condition, result.lemma_2
    (False, inf)
    """
    first, second = as_channel(channel_1).nearest_matrix(), as_channel(channel_2).nearest_matrix()
    law = _joint(joint, first, second)
    outputs = np.einsum("sab,ay,bz->syz", law, first, second, optimize=True)
    size = len(outputs)
    exact = _information(outputs.reshape(size, -1))
    alone = _information(outputs.sum(axis=2)), _information(outputs.sum(axis=1))
    # The information between two of them given the third.
    left = {
        "S": _conditional(outputs),
        "Y1": _conditional(outputs.transpose(1, 0, 2)),
        "Y2": _conditional(outputs.transpose(2, 0, 1)),
    }
    markov = tuple(middle for middle, rest in left.items() if rest <= _NOTHING)
    tops = {"S": sum(alone), "Y1": alone[0], "Y2": alone[1]}
    lemma = min(((tops[middle] + left[middle]) * _UP for middle in markov), default=math.inf)
    pair = law.sum(axis=0)
    parts = (first, pair.sum(axis=1)), (second, pair.sum(axis=0))
    constants = [sdpi_constant(matrix, prior, time_limit=None) for matrix, prior in parts]
    factor = Bracket(max(c.lower for c in constants), max(c.upper for c in constants))
    between, seen = _information(pair), _information(outputs.sum(axis=0))
    told = _information(law.reshape(size, -1))
    prior = law.sum(axis=(1, 2))
    entropy = -float(sum(p * math.log(p) for p in prior.tolist() if p > 0.0))
    gap = max(factor.upper * between * _UP - seen / _UP, 0.0)
    condition = None
    if gap <= _NOTHING:
        condition = True
    elif factor.lower * between / _UP > seen * _UP:
        condition = False
    theorem, corollary = ((factor.upper * most + gap) * _UP for most in (told, entropy))
    return Collusion(exact, alone, markov, lemma, factor, condition, theorem, corollary)


def _joint(joint: ArrayLike, channel_1: Floats, channel_2: Floats) -> Floats:
    """Return the joint distribution of S, X1 and X2 from joint[s, x] or joint[s, x1, x2]."""
    given, first, second = check.array(joint, "joint"), len(channel_1), len(channel_2)
    law = check.law(given, "joint", given.ndim if given.ndim in (2, 3) else 3)
    size = len(law) * max(first, channel_1.shape[1]) * max(second, channel_2.shape[1])
    check.fits(size, "the law of all variables", "use smaller channels")
    if law.ndim == 2:
        if first != second or law.shape[1] != first:
            raise InvalidInput(
                f"joint[s, x] has {law.shape[1]} values of x, but the channels have {first} and "
                f"{second} rows; give joint[s, x1, x2] if they read different data"
            )
        return np.asarray(np.einsum("sa,ab->sab", law, np.eye(first)))
    if law.shape[1:] != (first, second):
        raise InvalidInput(
            f"joint[s, x1, x2] has {law.shape[1]} and {law.shape[2]} values of x1 and x2, but the "
            f"channels have {first} and {second} rows"
        )
    return law


def _information(joint: Floats) -> float:
    """Mutual information of the two axes of a joint distribution."""
    prior = joint.sum(axis=1)
    rows = joint[prior > 0.0] / prior[prior > 0.0, None]
    return matrix_information(np.ascontiguousarray(rows), prior[prior > 0.0])


def _conditional(joint: Floats) -> float:
    """Mutual information of the last two axes given the first."""
    given = joint.sum(axis=(1, 2))
    return math.fsum(
        float(p) * _information(part / p) for p, part in zip(given, joint, strict=True) if p > 0.0
    )
