"""E_i where it has no room to round inwards: mended as the floats of a solver are."""

from __future__ import annotations

import numpy as np

from fastpriv._core.validation import Floats
from fastpriv._matrices.excess import distances
from fastpriv._structure.rows import RowKernel, RowKernels
from fastpriv.channels import AbstractChannel, Channel, PosteriorChannel, ProductChannel
from fastpriv.design.common import constant_mechanism, joint_level, rounding_margin
from fastpriv.design.repair import Shape, matrix_closed, repair
from fastpriv.measures.distortion import expected_distance
from fastpriv.priors import Distribution, Product
from fastpriv.results import Solution

#: Most databases of a matrix that is repaired.
_FEW = 64
#: One row with the first law.
_FIRST = np.zeros(1, dtype=np.int64)


def rounded_inwards(prior: Distribution, epsilon: float, bound: float) -> Solution | None:
    """Return a mechanism of identifiability epsilon close to E_i, None where databases are many.

    Within a rounding error of eps_tilde, clipping the output law of E_i costs more than a margin
    saves. A trace of a constant mechanism gives room again, unless eps_X is as close: neighbours
    whose odds are e^epsilon already need equal rows, and only a constant answer is left. ``bound`` is the
    least distortion at epsilon. Cost O(N^3), or that of each distinct row of a product.
    """
    channel: AbstractChannel
    if isinstance(prior, Product):
        rows = [_mended(Product._trusted([law], _FIRST), epsilon) for law in prior._laws]
        kernels = RowKernels([RowKernel(W) for W, _ in rows], prior._assignment)
        channel, level = ProductChannel._trusted(kernels), max(level for _, level in rows)
    elif prior.space.size <= _FEW:
        W, level = _mended(prior, epsilon)
        channel = Channel(W, prior.space)
    else:
        return None
    value = expected_distance(channel, prior)
    return Solution(value, min(bound, value), channel, level, "closed-form")


def _mended(prior: Distribution, epsilon: float) -> tuple[Floats, float]:
    """Return the better of E_i's matrix, repaired, and of a constant answer, with its level.

    A constant answer has the level eps_X, which epsilon is not below.
    """
    sizes, size, p = prior.space.sizes, prior.space.size, prior._vector()
    constant = constant_mechanism(prior)
    best = constant.channel.matrix(), min(prior.epsilon_x(), epsilon)
    margin = rounding_margin(epsilon, prior.space.n)
    if not prior.epsilon_x() < epsilon - margin:
        return best
    entries = PosteriorChannel._near(prior, epsilon - margin).matrix().T.reshape(-1)
    rows = np.tile(np.arange(size), size)
    shape = Shape(rows, np.ones(size**2), p, matrix_closed(distances(sizes)))
    trace = np.full(size**2, 1.0 / size)
    mended = repair(entries, trace, shape, epsilon, margin).reshape(size, size).T
    W = Channel(np.ascontiguousarray(mended), prior.space)
    level = joint_level(W, prior)
    if level <= epsilon and expected_distance(W, prior) < constant.value:
        return W.matrix(), level
    return best
