"""Leakage of exchangeable rows through one kernel, tilted or not, by the type of the output."""

from __future__ import annotations

import math

import numpy as np

from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats
from fastpriv._matrices.leakage import Leakages
from fastpriv._structure.type_pairs import TypePairs
from fastpriv.channels.tilted import TiltedChannel
from fastpriv.channels.tilted_types import TypeTilt
from fastpriv.priors import Distribution, Exchangeable
from fastpriv.priors.exchanged import as_exchangeable


def pair_leakages(
    pairs: TypePairs, log_prior: Floats, tilt: Floats, error: float = 0.0
) -> Leakages:
    """Return both leakages of an output of each type, of a channel proportional to W e^tilt[x].

    ``log_prior`` is the log of the probability of each type, ``tilt`` a number for each type. Cost
    O(types^2). Rounded up; 0 where no database has the output.
    """
    seen, weights = log_prior > -math.inf, log_prior + tilt
    best = (tilt[:, None] + pairs.nearest)[seen].max(axis=0)
    worst = (tilt[:, None] + pairs.farthest)[seen].min(axis=0)
    occurs = (best > -math.inf) & (pairs.log_tops > -math.inf)
    with np.errstate(invalid="ignore"):
        scale = np.where(occurs, pairs.log_output_sizes + pairs.log_tops, 0.0)
        mass = pairs.log_sum(pairs.log_joint(weights)) - scale
        # Laws that underflow are lost from the mass, which only one of the two leakages allows.
        most = np.logaddexp(mass, pairs.log_lost(weights) - scale)
        size = np.abs(mass) + np.abs(best) + np.abs(scale)
        finite = size[occurs & (mass > -math.inf)].max(initial=0.0)
        error = error + 4.0 * pairs.error + 64.0 * ULP * (1.0 + float(finite))
        above, below = np.maximum(best - mass, 0.0), np.maximum(most - worst, 0.0)
        below += 64.0 * ULP * below
    return Leakages(*(np.where(occurs, part + error, 0.0) for part in (above, below)))


def rows_types(prior: Exchangeable, pairs: TypePairs) -> Leakages:
    """Return both leakages of a row-by-row channel for an output of each type."""
    log_prior = prior.log_weights[tuple(pairs.types[1:])]
    return pair_leakages(pairs, log_prior, np.zeros(len(log_prior)), prior.log_error)


def tilted_types(channel: TiltedChannel, prior: Distribution) -> Leakages | None:
    """Return both leakages of an output of each type, None where they do not follow from types."""
    types = channel.by_type
    if types is None:
        return None
    if channel.owns(prior):
        both = own_types(types, 2.0 * channel.misfit)
    else:
        same = as_exchangeable(prior)
        if same is None or not types.fits:
            return None
        error = types.error + same.log_error
        both = pair_leakages(types.pairs, types.log_prior(same), -types.log_each, error)
    return Leakages(*(np.where(types.occurs, part, 0.0) for part in both))


def own_types(types: TypeTilt, misfit: float) -> Leakages:
    """Return both leakages under the channel's own prior, where every posterior is R.

    ln R[y, y]/(R q)(y) upwards, and ln (R q)(x)/R[x, y] for x that differs from y in every row.
    Cost O(types).
    """
    above = types.log_stay - types.log_each
    below = types.kernel.epsilon * types.n - types.log_stay + types.opposite
    return Leakages(*(np.maximum(part, 0.0) + types.error + misfit for part in (above, below)))
