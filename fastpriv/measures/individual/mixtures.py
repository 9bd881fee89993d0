"""Individual capacity over the mixtures of a few priors, by a search over their weights.

For a mixture p = sum_j w_j p_j, the joint distribution of record i and the output is the mixture of
the joint distributions of the p_j. Let J be drawn with weights w, and (A, Y) from p_J. Then

    I(A; Y) <= I(A; Y | J) + I(J; Y) = sum_j w_j (I_j + D(P_j(y) || P(y))),

and the same with A in the place of Y in the second term. With any distribution r in the place of
P(y), the right-hand side becomes larger and linear in w. So its largest value over a simplex of
weights is at a corner. It exceeds the information by a multiple of the squared size of the simplex.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.clock import Clock, Meter
from fastpriv._core.rounding import roundoff
from fastpriv._core.search import BestFirst
from fastpriv._core.validation import Floats
from fastpriv.channels import AbstractChannel
from fastpriv.channels.queries import group_lines
from fastpriv.measures.individual.adversary import adversary_of, capped, widened
from fastpriv.priors.sets import HullPriors
from fastpriv.results import IndividualCapacity

#: Most distributions whose mixtures are searched.
MOST = 6
#: Deepest halving of a simplex, which counts the roundings of its corners.
_DEPTH = 200
#: Steps towards the weights at which the bound is largest.
_STEPS = 6
#: Units of work of one halving.
_HALVING = 1 << 18
#: Units of work of a search without a time limit.
_WORK = 1 << 32
#: Most entries of a matrix that is searched.
_ENTRIES = 1 << 22
#: Smallest probability in a logarithm.
_LEAST = 1e-300


def hull_leak(
    channel: AbstractChannel, priors: HullPriors, gap: float, time_limit: float | None
) -> IndividualCapacity:
    """Return the largest I(X_i; Y) over records i and mixtures of at most ``MOST`` priors."""
    sizes, size = channel.space.sizes, channel.space.size
    check.fits(
        size * channel.output_count,
        "the matrix that is searched over a set of priors",
        "use fewer databases or outputs",
        _ENTRIES,
    )
    matrix = np.array(channel.nearest_matrix(), order="C")
    matrix = matrix[:, matrix.any(axis=0)]
    rows = [i for i, m in enumerate(sizes) if m > 1] or [0]
    joints = []
    for i in rows:
        places = group_lines(np.arange(size), sizes, (i,))
        lines = [priors.laws[:, place] @ matrix[place] for place in places]
        joints.append(np.stack(lines, axis=1))
    lower, upper, at, weights = _searched(joints, size, gap, Meter(time_limit, _WORK))
    known = adversary_of(channel.space, (rows[at],), weights @ priors.laws)
    leak = widened(IndividualCapacity(lower, upper, known), channel.matrix_error)
    return capped(leak, 0.0, channel, Clock(math.inf))


class _Simplex(NamedTuple):
    """A simplex of weights for one record, and an upper bound on the information over it.

    ``weights`` are its corners, ``told`` the information there, rounded up, and ``middle`` the
    shares of corners at which the bound was largest.
    """

    bound: float
    depth: int
    row: int
    weights: Floats
    told: Floats
    middle: Floats


def _searched(
    joints: list[Floats], size: int, gap: float, meter: Meter
) -> tuple[float, float, int, Floats]:
    """Return bounds on the largest I(A; Y) over mixtures, the best record, and its weights.

    ``joints[i][j, a, y]`` is the joint distribution of record i and the output under distribution
    j, a sum over ``size`` databases.
    """
    count = len(joints[0])
    error = roundoff(8.0 * size + 4.0 * max(j[0].size for j in joints) + 4.0 * _DEPTH + 64.0)
    best, at, where = -1.0, 0, np.full(count, 1.0 / count)

    def told(row: int, weights: Floats) -> Floats:
        """Return the information at some weights, rounded up; keep the largest, rounded down."""
        nonlocal best, at, where
        joint = np.tensordot(weights, joints[row], 1)
        outer = joint.sum(axis=2, keepdims=True) * joint.sum(axis=1, keepdims=True)
        terms = joint * np.log(np.maximum(joint, _LEAST) / np.maximum(outer, _LEAST))
        value, slack = terms.sum(axis=(1, 2)), error * (1.0 + np.abs(terms).sum(axis=(1, 2)))
        j = int((value - slack).argmax())
        if value[j] - slack[j] > best:
            best, at, where = float(value[j] - slack[j]), row, weights[j]
        return np.asarray(np.maximum(value, 0.0) + slack)

    def simplex(row: int, weights: Floats, values: Floats, depth: int, most: float) -> _Simplex:
        joint, bound = np.tensordot(weights, joints[row], 1), most
        middle = np.full(count, 1.0 / count)
        for axis in (1, 2):  # output, or record
            law = joint.sum(axis=axis)
            shares, step = np.full(count, 1.0 / count), 0.0
            for _ in range(_STEPS):
                mean = np.maximum(shares @ law, _LEAST)
                terms = law * np.log(np.maximum(law, _LEAST) / mean)
                apart = terms.sum(axis=1)
                tops = values + apart + error * (1.0 + np.abs(terms).sum(axis=1))
                top = float(tops.max())
                if top < bound:
                    bound, middle = top, shares
                step = step or 1.0 / max(float(apart.max()), 1e-12)
                shares = shares * np.exp(np.maximum(step * (tops - top), -50.0))
                shares = shares / shares.sum()
        return _Simplex(bound, depth, row, weights, values, middle)

    def halves(whole: _Simplex) -> Iterator[_Simplex]:
        meter.spend(_HALVING)
        _, depth, row, weights, values, middle = whole
        if depth == _DEPTH or count == 1:
            search.close(whole.bound)
            return
        first, second = np.triu_indices(count, 1)
        centres = 0.5 * (weights[first] + weights[second])
        # The edge along which the information is furthest below its chord.
        loose = 0.5 * (values[first] + values[second]) - told(row, centres)
        joint = np.tensordot(weights, joints[row], 1)
        spread = np.abs(joint[first] - joint[second]).sum(axis=(1, 2))
        edge = int((loose + spread**2).argmax())
        j, k = int(first[edge]), int(second[edge])
        share = middle[k] / max(middle[j] + middle[k], _LEAST)
        share = min(max(float(share), 0.25), 0.75)
        cut = (1.0 - share) * weights[j] + share * weights[k]
        value = told(row, np.stack([cut, middle @ weights]))[0]
        for lost in (j, k):
            corners, information = weights.copy(), values.copy()
            corners[lost], information[lost] = cut, value
            yield simplex(row, corners, information, depth + 1, whole.bound)

    start = np.eye(count)
    parts = [simplex(row, start, told(row, start), 0, math.inf) for row in range(len(joints))]
    search = BestFirst(parts, halves)
    # Rounding keeps the bounds a few errors apart.
    upper = search.run(
        lambda: best + max(gap * min(1.0, best), 4.0 * error), lambda: meter.room() <= 0.0
    )
    best = max(best, 0.0)
    return best, max(best, upper), at, where
