"""Collusion: the information about private data in several outputs together."""

from __future__ import annotations

import math
import string
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fastpriv import kernels
from fastpriv._core import validation as check
from fastpriv._core.validation import Floats
from fastpriv._matrices.information import matrix_information
from fastpriv.channels import AbstractChannel
from fastpriv.errors import InvalidInput
from fastpriv.measures.inputs import as_channel, stacked
from fastpriv.measures.realised import INFORMATION_ERROR
from fastpriv.measures.sdpi import sdpi_constant
from fastpriv.results import Bracket

__all__ = ["Collusion", "collusion"]

#: Conditional informations up to this value count as zero.
_NOTHING = 1e-12
#: Bounds are raised by more than the relative error of an information.
_UP = 1.0 + INFORMATION_ERROR
#: Most agents: each takes two letters of a formula for sums of products.
_MOST_AGENTS = 12


@dataclass(frozen=True, repr=False)
class Collusion:
    """Information about S in several outputs together, and bounds from each output alone.

    All informations are in nats. See :func:`collusion`.

    Attributes
    ----------
    exact : float
        I(S; Y1, ..., Yk).
    alone : tuple of float
        I(S; Yi) of each output.
    markov : tuple of str
        "S" if the outputs are independent given S. "Yi" if S is independent of the other outputs
        given Yi.
    lemma_2 : float
        Bound of Lemma 2. Infinite if no such independence holds.
    coefficient : Bracket
        The largest of the constants S*(X_i; Y_i); lambda in Theorem 4.
    condition : bool or None
        Whether T(Y) >= lambda T(X), the condition of Theorem 4. T is the total correlation, for two
        agents I(Y1; Y2) and I(X1; X2). None if the bracket of lambda does not decide it.
    theorem_4 : float
        lambda I(S; X1, ..., Xk), plus lambda T(X) - T(Y) if this difference is positive. It is
        positive if the condition fails; the proof of the theorem then gives this bound.
    corollary_2 : float
        The same with H(S) in place of I(S; X1, ..., Xk).

    Examples
    --------
    >>> import numpy as np, fastpriv as fp
    >>> shown, noisy = np.eye(2), [[0.9, 0.1], [0.1, 0.9]]
    >>> result = fp.collusion([[0.5, 0.0], [0.0, 0.5]], shown, noisy)
    >>> result.markov  # S = X = Y1, so given either of them the others are independent
    ('S', 'Y1')
    """

    exact: float
    alone: tuple[float, ...]
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
        alone = ", ".join(f"{value:.6g}" for value in self.alone)
        return f"Collusion(exact={self.exact:.6g}, alone=({alone}), bound={self.bound:.6g})"


def collusion(
    joint: ArrayLike,
    channel_1: AbstractChannel | ArrayLike,
    channel_2: AbstractChannel | ArrayLike,
    *channels: AbstractChannel | ArrayLike,
) -> Collusion:
    """Compute the information about private data in several outputs together, with upper bounds.

    S is private. The inputs X1, ..., Xk depend on S, and each has its own mechanism. Outputs may
    reveal S together although each output alone reveals nothing, for example if S = Y1 xor Y2.

    Parameters
    ----------
    joint : array [s, x] or [s, x1, ..., xk]
        Joint distribution of S and the inputs. The mechanisms share one input x, or have their own
        inputs.
    channel_1, channel_2, *channels : channel or 2-D array
        The mechanisms, two to twelve.

    Returns
    -------
    Collusion
        ``exact`` has a relative error of about 1e-13. Bounds are rounded up. Cost O(|S| K1 ... Kk)
        plus one pass over the joint distribution for each agent.

    Notes
    -----
    Lemma 2 of Makhdoumi-Fawaz 2013: I(S; Y1, Y2) <= I(S; Y1) + I(S; Y2) if the three form a Markov
    chain in any order. If the order is S - Y1 - Y2, I(S; Y1, Y2) <= I(S; Y1). For more agents the
    informations add up if the outputs are independent given S.

    Theorem 4, for any number of agents: let lambda = max S*(X_i; Y_i), and let T(X) = D(P(x1, ...,
    xk) || P(x1) ... P(xk)) be the total correlation, I(X1; X2) for two. If T(Y) >= lambda T(X),
    then I(S; Y) <= lambda I(S; X), all outputs and inputs together. Without the condition, a
    comparison with independent inputs (S* tensorises) gives I(S; Y) + T(Y) <= lambda (I(S; X) +
    T(X)). ``theorem_4`` reports this bound. Corollary 2 replaces I(S; X) by H(S).

    I(Y1; Y2) is at most S*(X1; Y1) S*(X2; Y2) I(X1; X2). So for two agents the condition holds only
    if X1, X2 are independent, or if both constants are 0 or both are 1.

    Examples
    --------
    S is the exclusive or of two bits, and each agent sees one bit:

    >>> import numpy as np, fastpriv as fp
    >>> joint = np.zeros((2, 2, 2))
    >>> joint[0, 0, 0] = joint[0, 1, 1] = joint[1, 0, 1] = joint[1, 1, 0] = 0.25
    >>> fp.collusion(joint, np.eye(2), np.eye(2))
    Collusion(exact=0.693147, alone=(0, 0), bound=0.693147)

    One record through two noisy channels, and through three:

    >>> noisy = [[0.75, 0.25], [0.25, 0.75]]
    >>> result = fp.collusion([[0.4, 0.1], [0.1, 0.4]], noisy, noisy)
    >>> result.condition, result.lemma_2
    (False, inf)
    >>> fp.collusion([[0.4, 0.1], [0.1, 0.4]], noisy, noisy, noisy)
    Collusion(exact=0.0976478, alone=(0.0457005, 0.0457005, 0.0457005), bound=0.311749)
    """
    given = (channel_1, channel_2, *channels)
    if len(given) > _MOST_AGENTS:
        raise InvalidInput(f"channels must be at most {_MOST_AGENTS}; got {len(given)}.")
    matrices = [as_channel(channel).nearest_matrix() for channel in given]
    law = _joint(joint, matrices)
    shared = law.ndim == 2
    outputs = _outputs(law, matrices, shared)
    agents, size = range(1, len(given) + 1), len(law)
    exact = _information(outputs.reshape(size, -1))
    alone = tuple(_information(_kept(outputs, 0, i)) for i in agents)
    # How far each of them is from making the others independent.
    left = {"S": _mean_correlation(outputs)}
    for i in agents:
        part = np.moveaxis(outputs, i, 0)
        left[f"Y{i}"] = _mean_information(part.reshape(len(part), size, -1))
    markov = tuple(middle for middle, rest in left.items() if rest <= _NOTHING)
    tops = {"S": math.fsum(alone), **{f"Y{i}": alone[i - 1] for i in agents}}
    lemma = min(((tops[middle] + left[middle]) * _UP for middle in markov), default=math.inf)
    inputs = law.sum(axis=0)
    marginals = [inputs if shared else _kept(inputs, i - 1) for i in agents]
    constants = [
        sdpi_constant(matrix, prior, time_limit=None)
        for matrix, prior in zip(matrices, marginals, strict=True)
    ]
    factor = Bracket(max(c.lower for c in constants), max(c.upper for c in constants))
    # A shared input is k copies of it.
    between = (len(given) - 1) * _entropy(inputs) if shared else _total_correlation(inputs)
    seen = _total_correlation(outputs.sum(axis=0))
    told, entropy = _information(law.reshape(size, -1)), _entropy(_kept(law, 0))
    gap = max(factor.upper * between * _UP - seen / _UP, 0.0)
    condition = None
    if gap <= _NOTHING:
        condition = True
    elif factor.lower * between / _UP > seen * _UP:
        condition = False
    theorem, corollary = ((factor.upper * most + gap) * _UP for most in (told, entropy))
    return Collusion(exact, alone, markov, lemma, factor, condition, theorem, corollary)


def _joint(joint: ArrayLike, matrices: list[Floats]) -> Floats:
    """Check the joint distribution of S and the inputs, and that all arrays fit."""
    given, agents = check.array(joint, "joint"), len(matrices)
    law = check.law(given, "joint", 2 if given.ndim == 2 else agents + 1)
    rows = tuple(len(matrix) for matrix in matrices)
    if law.ndim == 2 and set(rows) != {law.shape[1]}:
        raise InvalidInput(
            f"joint[s, x] has {law.shape[1]} values of x, but the channels have {_listed(rows)} "
            "rows; give joint[s, x1, x2, ...] if they read different data."
        )
    if law.ndim > 2 and law.shape[1:] != rows:
        raise InvalidInput(
            f"joint[s, x1, x2, ...] has {_listed(law.shape[1:])} values of the inputs, but the "
            f"channels have {_listed(rows)} rows. Give one value for each row."
        )
    sizes = (max(matrix.shape) if law.ndim > 2 else matrix.shape[1] for matrix in matrices)
    outputs = len(law) * math.prod(sizes)
    size = outputs * law.shape[1] if law.ndim == 2 else outputs
    check.fits(size, "the distribution of all variables", "use smaller channels")
    return law


def _listed(numbers: tuple[int, ...]) -> str:
    return " and ".join(map(str, numbers))


def _outputs(law: Floats, matrices: list[Floats], shared: bool) -> Floats:
    """Return the joint distribution of S and the outputs."""
    letters = string.ascii_letters
    ends = letters[: len(matrices)]
    starts = "Z" * len(matrices) if shared else letters[26 : 26 + len(matrices)]
    pairs = ",".join(f"{x}{y}" for x, y in zip(starts, ends, strict=True))
    formula = f"z{starts[:1] if shared else starts},{pairs}->z{ends}"
    return np.asarray(np.einsum(formula, law, *matrices, optimize=True))


def _kept(joint: Floats, *axes: int) -> Floats:
    """Return the distribution of some axes."""
    return np.asarray(joint.sum(axis=tuple(set(range(joint.ndim)) - set(axes))))


def _information(joint: Floats) -> float:
    """Mutual information of the two axes of a joint distribution."""
    prior = joint.sum(axis=1)
    rows = joint[prior > 0.0] / prior[prior > 0.0, None]
    return matrix_information(np.ascontiguousarray(rows), prior[prior > 0.0])


def _total_correlation(joint: Floats) -> float:
    """Total correlation of all axes: the sum of I(axis i; axes after i)."""
    parts = []
    while joint.ndim > 1:
        parts.append(_information(joint.reshape(len(joint), -1)))
        joint = joint.sum(axis=0)
    return math.fsum(parts)


def _mean_correlation(joint: Floats) -> float:
    """Mean of the total correlation of the other axes, given the first."""
    parts = []
    while joint.ndim > 2:
        parts.append(_mean_information(joint.reshape(*joint.shape[:2], -1)))
        joint = joint.sum(axis=1)
    return math.fsum(parts)


def _mean_information(joint: Floats) -> float:
    """Mean of the information of the last two axes, given the first."""
    weights = joint.sum(axis=(1, 2))
    weights, joint = weights[weights > 0.0], joint[weights > 0.0]
    masses = joint.sum(axis=2)
    rows = joint / np.where(masses > 0.0, masses, 1.0)[:, :, None]
    rows[masses == 0.0] = 1.0 / joint.shape[2]
    parts = stacked(kernels.informations, matrix_information, rows, masses / weights[:, None])
    return math.fsum(weights * parts)


def _entropy(law: Floats) -> float:
    return -math.fsum(p * math.log(p) for p in law.tolist() if p > 0.0)
