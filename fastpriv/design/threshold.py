"""E_i where it has no room to round inwards: mended as the floats of a solver are."""

from __future__ import annotations

import math

import numpy as np

from fastpriv._core.logs import log_ratio
from fastpriv._core.rounding import ULP, round_up
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.tilted import distances
from fastpriv._structure.rows import RowKernel, RowKernels
from fastpriv.channels import AbstractChannel, Channel, PosteriorChannel, ProductChannel
from fastpriv.design.common import constant_mechanism, rounding_margin
from fastpriv.design.repair import TOLERANCE, Shape, repair, rounding
from fastpriv.measures.distortion import expected_distance
from fastpriv.priors import Distribution, Product
from fastpriv.results import Solution

#: Most databases of a matrix that is repaired.
_FEW = 64
#: Room, relative to 1 + epsilon, below which two databases get equal rows.
_TIGHT = 1e-11
#: One row with the first law.
_FIRST = np.zeros(1, dtype=np.int64)


def rounded_inwards(prior: Distribution, epsilon: float, bound: float) -> Solution | None:
    """Return a mechanism of identifiability epsilon close to E_i, None where databases are many.

    Within a rounding error of eps_tilde, clipping the output law of E_i costs more than a margin
    saves. A trace of a constant mechanism gives room again. ``bound`` is the least distortion at
    epsilon. Cost O(N^3), or that of each distinct row of a product.
    """
    channel: AbstractChannel
    if isinstance(prior, Product):
        rows = [_mended(Product.of([law], _FIRST), epsilon) for law in prior.distinct]
        kernels = RowKernels([RowKernel(W) for W, _ in rows], prior.assignment)
        channel, level = ProductChannel.of(kernels), max(level for _, level in rows)
    elif prior.space.size <= _FEW:
        W, level = _mended(prior, epsilon)
        channel = Channel(W, prior.space)
    else:
        return None
    value = expected_distance(channel, prior)
    return Solution(value, min(bound, value), channel, level, "closed-form")


def _mended(prior: Distribution, epsilon: float) -> tuple[Floats, float]:
    """Return the better of E_i's matrix, mended, and of a constant answer, with its level.

    W has the level if W[x, y] <= e^room(x, x') W[x', y] for neighbours, where the room is what the
    odds of the prior leave of epsilon. Without room rows have to be equal: W[x, .] is nowhere
    above W[x', .], and both sum to one. Such databases are merged into one. The rest has room to
    round inwards. Equal rows have the level eps_X, which epsilon is not below.
    """
    own, constant = min(prior.epsilon_x(), epsilon), constant_mechanism(prior)
    best = constant.channel.matrix(), own
    margin = rounding_margin(epsilon, prior.space.n)
    if epsilon <= 2.0 * margin:
        return best
    logs = prior.wide().logs()
    error = 8.0 * ULP * float(np.abs(logs).max())
    neighbours = distances(prior.space.sizes) == 1.0
    odds = np.where(neighbours, logs[:, None] - logs + error, -math.inf)
    group, firsts = _merged(epsilon - odds < _TIGHT * (1.0 + epsilon), logs)
    E_i = PosteriorChannel.up_to_rounding(prior, epsilon - margin).matrix()[firsts]
    W = _with_room(E_i, _least_rooms(epsilon - odds, group), epsilon, margin)[group]
    level = _crossing_level(W, odds, group)
    value = expected_distance(Channel(W, prior.space), prior)
    if level <= epsilon and value < constant.value:
        return W, max(level, own)
    return best


def _merged(tight: np.ndarray, logs: Floats) -> tuple[Ints, Ints]:
    """Return the number of every database's group, and the likeliest database of each group."""
    group = np.arange(len(logs))
    for x, z in np.argwhere(tight):
        group[group == group[z]] = group[x]
    names, group = np.unique(group, return_inverse=True)
    return group, np.array(
        [np.where(group == k, logs, -math.inf).argmax() for k in range(len(names))]
    )


def _least_rooms(rooms: Floats, group: Ints) -> Floats:
    """Return the least room from group to group."""
    count = int(group.max()) + 1
    least = np.full((count, count), math.inf)
    np.minimum.at(least, (group[:, None], group[None, :]), rooms)
    np.fill_diagonal(least, 0.0)
    return least


def _with_room(W: Floats, rooms: Floats, epsilon: float, margin: float) -> Floats:
    """Repair a matrix so that W[g, y] <= e^rooms[g, h] W[h, y], rounding included."""
    count, outputs = W.shape
    paths = np.maximum(rooms - rounding(epsilon, margin) - TOLERANCE, 0.0)
    np.fill_diagonal(paths, 0.0)
    for k in range(count):
        paths = np.minimum(paths, paths[:, k : k + 1] + paths[k : k + 1])
    shrink = np.exp(-paths)

    def closure(entry: Floats, _: float) -> Floats:
        table = entry.reshape(outputs, count)
        return np.asarray((table[:, :, None] * shrink).max(axis=1).reshape(-1))

    size = count * outputs
    shape = Shape(np.tile(np.arange(count), outputs), np.ones(size), np.ones(count), closure)
    mended = repair(W.T.reshape(-1), np.full(size, 1.0 / outputs), shape, epsilon, margin)
    return np.ascontiguousarray(mended.reshape(outputs, count).T)


def _crossing_level(W: Floats, odds: Floats, group: Ints) -> float:
    """Return the largest ln W[x, y]/W[x', y] + ln p(x)/p(x') over neighbours of two groups."""
    worst = 0.0
    for x, z in np.argwhere((odds > -math.inf) & (group[:, None] != group)):
        seen = W[x] > 0.0
        ratio = float(log_ratio(W[x][seen], W[z][seen]).max())
        worst = max(worst, ratio + odds[x, z] + 8.0 * ULP * (abs(ratio) + abs(odds[x, z])))
    return round_up(worst)
