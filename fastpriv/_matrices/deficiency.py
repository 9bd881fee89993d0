"""How far a channel B is from every processing A R of a channel A, by linear programs.

Unit gains: the total variation between rows of A R and B, which is the most that a decision maker
with utilities in [0, 1] gains from B over A (Le Cam 1964). Bounded gains: the smallest mass that is
missing from a part A R <= B of B, R with row sums of at most 1; it is the most that a gain of at
most 1 with the action of doing nothing, worth 0, gains. Both on average under a prior, or for the
worst database. The solver's R and multipliers are repaired, and bound the optimum from both sides.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from fastpriv import kernels
from fastpriv._core.highs import Rows, minimise
from fastpriv._core.rounding import LEAST, roundoff, sum_error
from fastpriv._core.validation import Floats

#: Largest total variation at which the solution of A R = B is taken.
_SOLVED = 1e-12
#: Smallest probability of a database in the worst prior for bounded gains.
_RARE = 1e-11


class Deficiency(NamedTuple):
    """Proved bounds, a processing for the upper one, and a decision problem for the lower one.

    If the lower bound is positive, ``utility[x, z]`` of deciding z under the prior is a problem
    that B solves better than A. A last column of zeros stands for doing nothing.
    """

    lower: float
    upper: float
    processing: Floats
    prior: Floats | None
    utility: Floats | None


def deficiency(
    A: Floats, B: Floats, prior: Floats | None, bounded: bool, seconds: float
) -> Deficiency:
    """Bound the deficiency of A with regard to B under a prior, or under the worst one (None)."""
    if prior is not None:  # databases that do not occur are ignored
        size, seen = len(A), np.flatnonzero(prior > 0.0)
        A, B, prior = A[seen], B[seen], prior[seen]
    if not bounded:  # a channel with A R = B needs no program
        for solve in (np.linalg.solve, _least_squares):
            with suppress(np.linalg.LinAlgError):  # not square, or singular
                R, upper = _repaired(A, B, np.asarray(solve(A, B), np.float64), prior)
                if upper <= _SOLVED:
                    return Deficiency(0.0, upper, R, None, None)
    program = _missing_mass if bounded else _variation
    values, prices, weights = program(A, B, prior, seconds)
    R, upper = (_repaired_part if bounded else _repaired)(A, B, values, prior)
    law = weights / max(math.fsum(weights), 1e-300)
    gained = weights[:, None] - prices if bounded else prices
    utility = gained / np.where(weights > 0.0, weights, 1.0)[:, None]
    lower = min(max(_advantage(A, B, law[:, None] * utility, bounded), 0.0), upper)
    if lower == 0.0:
        return Deficiency(0.0, upper, R, None, None)
    if bounded:
        utility = np.hstack([utility, np.zeros((len(utility), 1))])
    if prior is not None:
        utility, law = _spread(utility, seen, size), _spread(law, seen, size)
    return Deficiency(lower, upper, R, law, utility)


def _least_squares(A: Floats, B: Floats) -> Floats:
    """Return the R of smallest norm with the smallest |A R - B|."""
    return np.asarray(np.linalg.lstsq(A, B, rcond=None)[0], np.float64)


def _spread(values: Floats, places: np.ndarray, size: int) -> Floats:
    """Put rows back in their places among zeros."""
    whole = np.zeros((size, *values.shape[1:]))
    whole[places] = values
    return whole


def _variation(
    A: Floats, B: Floats, prior: Floats | None, seconds: float
) -> tuple[Floats, Floats, Floats]:
    """Minimise the mean or the largest over x of sum_z s[x, z], s >= B - A R, s >= 0.

    Returns R, the multipliers of the rows s + A R >= B, and weights of the databases that no
    multiplier exceeds.
    """
    (n, inner), outer = A.shape, B.shape[1]
    size = inner * outer
    x, z = np.indices((n, outer)).reshape(2, -1)
    missing = size + np.arange(n * outer)
    # For every (x, z): entries A[x, y] at R[y, z], and 1 at s[x, z]; row sums of R; t.
    places = [
        np.concatenate([np.arange(inner) * outer + z[:, None], missing[:, None]], axis=1),
        np.arange(size).reshape(inner, outer),
        np.concatenate([missing.reshape(n, outer), np.full((n, 1), size + n * outer)], axis=1),
    ]
    entries = [
        np.concatenate([A[x], np.ones((n * outer, 1))], axis=1),
        np.ones((inner, outer)),
        np.concatenate([-np.ones((n, outer)), np.ones((n, 1))], axis=1),
    ]
    cost = np.zeros(size + n * outer + 1)
    if prior is None:
        cost[-1] = 1.0
    else:  # t is free of charge
        cost[missing] = np.repeat(prior, outer)
    infinite = np.full(n, math.inf)
    rows = _rows(
        places,
        entries,
        np.concatenate([B.reshape(-1), np.ones(inner), np.zeros(n)]),
        np.concatenate([np.repeat(infinite, outer), np.ones(inner), infinite]),
    )
    answer = minimise(cost, np.zeros(len(cost)), rows, seconds)
    prices = np.maximum(answer.duals[: n * outer].reshape(n, outer), 0.0)
    if prior is not None:
        prices = np.minimum(prices, prior[:, None])
        return answer.values[:size].reshape(inner, outer), prices, prior
    return answer.values[:size].reshape(inner, outer), prices, prices.max(axis=1)


def _missing_mass(
    A: Floats, B: Floats, prior: Floats | None, seconds: float
) -> tuple[Floats, Floats, Floats]:
    """Maximise the mean or the smallest over x of sum_yz A[x, y] R[y, z] under A R <= B.

    Returns R, the multipliers of the rows A R <= B, and the weights of the databases.
    """
    (n, inner), outer = A.shape, B.shape[1]
    size = inner * outer
    x, z = np.indices((n, outer)).reshape(2, -1)
    least = np.arange(size)
    places = [
        np.arange(inner) * outer + z[:, None],
        least.reshape(inner, outer),
        np.hstack([np.tile(least, (n, 1)), np.full((n, 1), size)]),
    ]
    entries = [
        A[x],
        np.ones((inner, outer)),
        np.hstack([np.repeat(A, outer, axis=1), -np.ones((n, 1))]),
    ]
    rows = _rows(
        places,
        entries,
        np.concatenate([np.full(n * outer + inner, -math.inf), np.zeros(n)]),
        np.concatenate([B.reshape(-1), np.ones(inner), np.full(n, math.inf)]),
    )
    if prior is None:
        cost = np.append(np.zeros(size), -1.0)
    else:
        cost = np.append(-np.repeat(prior @ A, outer), 0.0)
    answer = minimise(cost, np.zeros(size + 1), rows, seconds)
    prices = np.maximum(-answer.duals[: n * outer].reshape(n, outer), 0.0)
    if prior is None:
        # The worst prior may be a limit of priors, at which large losses weigh nothing.
        weights = np.maximum(answer.duals[-n:], _RARE)
        prior = weights / math.fsum(weights)
    return answer.values[:size].reshape(inner, outer), prices, prior


def _rows(places: list[np.ndarray], entries: list[Floats], lower: Floats, upper: Floats) -> Rows:
    lengths = np.concatenate([np.full(len(part), part.shape[1]) for part in places])
    return Rows(
        np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate([part.reshape(-1) for part in places]),
        np.concatenate([part.reshape(-1) for part in entries]),
        lower,
        upper,
    )


def _repaired(A: Floats, B: Floats, values: Floats, prior: Floats | None) -> tuple[Floats, float]:
    """Return a channel R, and its mean or largest total variation, rounded up."""
    R, missing = np.array(values, order="C"), np.empty(len(B))
    A, B = np.array(A, order="C"), np.array(B, order="C")  # faster than to ask whether they fit
    kernels.processing_gap(A, B, R, missing)
    whole = missing.max() if prior is None else prior @ missing
    return R, min(float(whole) * (1.0 + sum_error(sum(B.shape), 8)), 1.0)


def _repaired_part(
    A: Floats, B: Floats, values: Floats, prior: Floats | None
) -> tuple[Floats, float]:
    """Return a channel R, and an upper bound on the mass that its part below B misses.

    Columns are scaled until A R <= B, and rows until they add up to at most 1. The rest of a row
    goes to the outputs that B has more often than A R.
    """
    slack = sum_error(sum(A.shape) + B.shape[1], 16)
    part = np.maximum(values, 0.0)
    # If an output has probability zero in B, A R must not have it.
    part[(A > 0.0).astype(np.float64).T @ (B == 0.0) > 0.0] = 0.0
    reached = A @ part
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(reached > 0.0, B * (1.0 - slack) / reached, math.inf)
    part = part * np.minimum(1.0, ratios.min(axis=0))
    totals = part.sum(axis=1)
    part = part / np.maximum(1.0, totals * (1.0 + slack))[:, None]
    kept = part.sum(axis=1) * (1.0 - slack)
    held = A @ kept
    whole = float(held.min() if prior is None else prior @ held)
    spare = np.maximum(B - A @ part, 0.0).mean(axis=0)
    law = spare / spare.sum() if spare.sum() > 0.0 else np.full(B.shape[1], 1.0 / B.shape[1])
    R = part + np.maximum(1.0 - part.sum(axis=1), 0.0)[:, None] * law
    return R / R.sum(axis=1, keepdims=True), min(1.0, max(0.0, 1.0 - whole * (1.0 - slack)))


def _advantage(A: Floats, B: Floats, U: Floats, bounded: bool) -> float:
    """Return the gain of following B over the best use of A. Rounded down.

    ``U[x, z]`` is the utility of z times the probability of x, with an error of one ulp.
    """
    gained = math.fsum((U * B).reshape(-1))
    tops = (A.T @ U).max(axis=1)
    best = math.fsum(np.maximum(tops, 0.0) if bounded else tops)
    sizes = np.abs(U)
    largest = float((sizes * B).sum() + (A.T @ sizes).max(axis=1).sum())
    terms = len(A) + B.size + 8
    return float(gained - best - roundoff(terms) * largest - terms * LEAST)
