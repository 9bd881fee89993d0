"""Leakage of single outputs under the worst prior of a set, about a row or given an event."""

from __future__ import annotations

import itertools
import math
from functools import singledispatch

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.clock import Clock
from fastpriv._core.logs import log_ratio
from fastpriv._core.rounding import ULP, log_down, round_up
from fastpriv._core.validation import Floats
from fastpriv.channels import AbstractChannel
from fastpriv.errors import InvalidInput, short
from fastpriv.measures.pointwise.boxes import box_row_leakages
from fastpriv.measures.pointwise.row_sets import convex_row_leakages
from fastpriv.measures.pointwise.scaled import scaled_matrix
from fastpriv.priors.sets import (
    AllPriors,
    Box,
    ConvexPriors,
    PriorSet,
    ProductPriors,
    RowPriors,
)
from fastpriv.spaces import Space

#: Rounds of the search for a least quotient of two means.
_ROUNDS = 60
#: Relative distance of two quotients at which it stops.
_CLOSE = 1e-12


def check_set(priors: PriorSet, channel: AbstractChannel) -> None:
    """Refuse a set of priors on other databases than those of the channel."""
    if isinstance(priors, RowPriors) and channel.space != priors.space:
        raise InvalidInput(f"the priors are on {priors.space!r}, the channel on {channel.space!r}")
    if channel.space.size != priors.size:
        raise InvalidInput(
            f"the priors are over {short(priors.size)} databases, but the channel has "
            f"{short(channel.space.size)}"
        )


def set_row_leakages(priors: PriorSet, channel: AbstractChannel, i: int, clock: Clock) -> Floats:
    """Return the largest leakage of every output about row i over a set of priors.

    Where the time is over before, it is what is proved so far.
    """
    check_set(priors, channel)
    check.fits(channel.output_count, "the leakage of every output", "use pml_level with row=")
    return _row(priors, channel, i, clock)


@singledispatch
def _row(priors: PriorSet, channel: AbstractChannel, i: int, clock: Clock) -> Floats:
    raise InvalidInput(
        f"single outputs have no algorithm here over {priors!r}; pml_level(channel, priors, row=i) "
        "is the largest leakage of all of them"
    )


@_row.register(AllPriors)
@_row.register(ProductPriors)
def _all_or_product_row(priors: PriorSet, channel: AbstractChannel, i: int, clock: Clock) -> Floats:
    """Rows tied in any way: any two databases with other values of row i. Otherwise neighbours."""
    fixed = isinstance(priors, ProductPriors)
    ratios = row_ratios(scaled_matrix(channel), channel.space, i, fixed)
    return np.array([round_up(ratio) for ratio in ratios.tolist()])


def row_ratios(matrix: Floats, space: Space, i: int, fixed: bool) -> Floats:
    """Return the largest ln W[x, y]/W[x', y] over x, x' that differ in row i, for every y."""
    inner, m = int(space.strides[i]), space.sizes[i]
    blocks = matrix.reshape(-1, m, inner, matrix.shape[1])
    axes = () if fixed else (0, 2)
    tops, bottoms = blocks.max(axis=axes), blocks.min(axis=axes)
    worst = np.zeros(matrix.shape[1])
    for s, t in itertools.permutations(range(m), 2):
        top, bottom = (tops[:, s], bottoms[:, t]) if fixed else (tops[s], bottoms[t])
        seen = top > 0
        ratios = np.zeros(top.shape)
        ratios[seen] = log_ratio(top[seen], bottom[seen])
        worst = np.maximum(worst, ratios.reshape(-1, matrix.shape[1]).max(axis=0))
    return worst


@_row.register
def _box_row(priors: Box, channel: AbstractChannel, i: int, clock: Clock) -> Floats:
    return box_row_leakages(priors, channel, i)


@_row.register
def _convex_row(priors: ConvexPriors, channel: AbstractChannel, i: int, clock: Clock) -> Floats:
    return convex_row_leakages(priors, channel, i, clock)


def set_conditional_leakages(
    priors: PriorSet, channel: AbstractChannel, event: np.ndarray
) -> Floats:
    """Return the largest leakage of every output given an event, over a set of priors.

    Priors that rule the event out do not count.
    """
    check_set(priors, channel)
    if not event.any():
        raise InvalidInput("no database is in the given event")
    return _given(priors, scaled_matrix(channel), event)


@singledispatch
def _given(priors: PriorSet, matrix: Floats, event: np.ndarray) -> Floats:
    raise InvalidInput(
        f"leakage given an event has no algorithm here over {priors!r}; use PriorSet.all or "
        ".product, a box, a ball or a polytope"
    )


@_given.register(AllPriors)
@_given.register(ProductPriors)
def _all_or_product_given(priors: PriorSet, matrix: Floats, event: np.ndarray) -> Floats:
    """Laws near a point mass in the event, which are products."""
    inside = matrix[event]
    tops, bottoms = inside.max(axis=0), inside.min(axis=0)
    seen = tops > 0.0
    ratios = np.zeros(len(tops))
    ratios[seen] = log_ratio(tops[seen], bottoms[seen])
    return np.array([round_up(ratio) for ratio in ratios.tolist()])


@_given.register
def _convex_given(priors: ConvexPriors, matrix: Floats, event: np.ndarray) -> Floats:
    """Output by output: the least P(y, E)/P(E), a quotient of two means."""
    possible = priors.possible() & event
    if not possible.any():
        raise InvalidInput("no prior of the set allows the given event")
    leaks = np.zeros(matrix.shape[1])
    tops = matrix[possible].max(axis=0)
    for y in np.flatnonzero(tops > 0.0):
        column = np.where(possible, matrix[:, y] / tops[y], 0.0)
        least = _least_quotient(priors, column, possible)
        leaks[y] = -log_down(least) + 8.0 * ULP if least > 0.0 else math.inf
    return leaks


def _least_quotient(priors: ConvexPriors, column: Floats, inside: np.ndarray) -> float:
    """Return a lower bound on the least P(y, E)/P(E) over laws with P(E) > 0.

    For every r the quotient is at least r + min(P(y, E) - r P(E))/min P(E), where the first minimum
    is 0 at the least quotient (Dinkelbach). Where P(E) may vanish the bound is the least entry: a
    law may then be anything inside the event, unless a polytope ties its databases together.
    """
    chance = inside.astype(np.float64)
    best, law = float(column[inside].min()), priors.smallest_sum(-chance)[1]
    rarest = priors.smallest_sum(chance)[0]
    if rarest <= 0.0:
        return best
    quotient = math.inf
    for _ in range(_ROUNDS):
        reached = float(column @ law / (chance @ law))
        if reached >= quotient * (1.0 - _CLOSE):
            break
        quotient = reached
        below, law = priors.smallest_sum(column - quotient * chance)
        best = max(best, quotient + min(below, 0.0) / rarest * (1.0 + 8.0 * ULP))
    return best * (1.0 - 8.0 * ULP)
