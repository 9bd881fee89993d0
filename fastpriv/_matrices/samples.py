"""Bounds on sums over distributions that are known up to a box, low <= p <= high and sum p = 1.

Everything takes many distributions at once, one in each row. Boxes come from samples. So results
are padded by far more than rounding and far less than the statistical uncertainty.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from fastpriv._core.divergence import divergence_terms
from fastpriv._core.validation import Floats

#: Relative error of binomial quantiles by SciPy, generously.
_QUANTILE = 1e-9
#: Absolute error of sums over a box: far more than rounding, far less than samples leave open.
_SUM = 1e-12
#: Steps of the search for a distribution that bounds an information from above.
_ABOVE = 8
#: Steps of the search from below; every eighth is evaluated.
_BELOW = 16


class Box(NamedTuple):
    """Bounds on the entries of distributions, of shape (distributions, values)."""

    low: Floats
    high: Floats

    def tightened(self) -> Box:
        """Use that every distribution adds up to one."""
        low, high = self.low, self.high
        rest_high = high.sum(axis=1, keepdims=True) - high
        rest_low = low.sum(axis=1, keepdims=True) - low
        return Box(
            np.clip(1.0 - rest_high - _SUM, low, high), np.clip(1.0 - rest_low + _SUM, low, high)
        )


def clopper_pearson(counts: Floats, draws: Floats, beta: float) -> Box:
    """Bound the probabilities behind binomial counts; each bound fails with probability beta.

    Clopper-Pearson 1934. ``draws`` broadcasts against ``counts``.
    """
    from scipy.special import betainccinv, betaincinv

    missed = np.broadcast_to(draws, counts.shape) - counts
    with np.errstate(invalid="ignore"):
        low = np.where(counts > 0, betaincinv(counts, missed + 1.0, beta), 0.0)
        high = np.where(missed > 0, betainccinv(counts + 1.0, missed, beta), 1.0)
    return Box(low * (1.0 - _QUANTILE), np.minimum(1.0, high * (1.0 + _QUANTILE)))


def sides(values: int) -> int:
    """Return how many one-sided bounds a distribution needs: two of a bit serve both values."""
    return 2 * values if values > 2 else 2 * (values - 1)


def largest_sum(box: Box, at_low: Floats, at_high: Floats) -> tuple[Floats, Floats]:
    """Bound sum_i f_i(p_i) over each box, for convex f_i given at low and high; also the maximiser.

    Convex functions lie below their chords. The largest sum of chords puts the mass above ``low``
    on the entries of largest slope. It is exact for linear functions.
    """
    width = box.high - box.low
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = np.where(width > 0.0, (at_high - at_low) / width, -math.inf)
    order = np.argsort(-slopes, axis=1, kind="stable")
    lengths = np.take_along_axis(width, order, axis=1)
    left = 1.0 - box.low.sum(axis=1, keepdims=True) - (np.cumsum(lengths, axis=1) - lengths)
    law = box.low.copy()
    spent = np.clip(left, 0.0, lengths)
    np.put_along_axis(law, order, np.take_along_axis(law, order, axis=1) + spent, axis=1)
    gained = np.where(width > 0.0, slopes * (law - box.low), 0.0)
    sums = (at_low + gained).sum(axis=1)
    return sums + _SUM * (1.0 + np.abs(at_low + gained).sum(axis=1)), law


def least_mean(box: Box, f: Floats) -> Floats:
    """Return the smallest sum_i p_i f_i over each box. Rounded down."""
    return -largest_sum(box, -f * box.low, -f * box.high)[0]


def largest_divergence(box: Box, q: Floats) -> tuple[Floats, Floats]:
    """Bound D(p || q) over each box, for distributions q > 0; also the maximiser."""
    return largest_sum(box, divergence_terms(box.low, q), divergence_terms(box.high, q))


def nearest(box: Box, q: Floats) -> Floats:
    """Approximate the minimiser of D(p || q) in each box: c q, clipped to the box.

    Its sum is piecewise linear in c, with corners at which an entry leaves its lower or upper
    bound.
    """
    corners = np.concatenate([box.low / q, box.high / q], axis=1)
    order = np.argsort(corners, axis=1, kind="stable")
    places = np.take_along_axis(corners, order, axis=1)
    slopes = np.cumsum(np.take_along_axis(np.concatenate([q, -q], axis=1), order, axis=1), axis=1)
    grown = np.cumsum(slopes[:, :-1] * np.diff(places, axis=1), axis=1)
    sums = box.low.sum(axis=1, keepdims=True) + np.insert(grown, 0, 0.0, axis=1)
    last = np.maximum((sums < 1.0).sum(axis=1, keepdims=True) - 1, 0)
    place, total, slope = (np.take_along_axis(a, last, axis=1) for a in (places, sums, slopes))
    c = place + np.where(slope > 0.0, (1.0 - total) / np.where(slope > 0.0, slope, 1.0), 0.0)
    return np.clip(c * q, box.low, box.high)


def information_of_rows(box: Box, prior: Floats, centre: Floats) -> tuple[float, float]:
    """Bound I(X; Y) for rows W_x in boxes and a known prior; ``centre`` is a guess of the rows.

    From above: I is at most sum_x p(x) D(W_x || q) for any distribution q. From below: I is at
    least sum p(x) W[x, y] ln V(x|y)/p(x) for any V, linear in W. Distributions q and V are improved
    in turn.
    """
    q, upper = prior @ centre, math.inf
    for _ in range(_ABOVE):
        values, worst = largest_divergence(box, np.broadcast_to(q, centre.shape))
        upper = min(upper, float(prior @ values))
        q = 0.75 * q + 0.25 * (prior @ worst)
    q, lower = prior @ centre, 0.0
    for step in range(_BELOW):
        W = nearest(box, np.broadcast_to(q, centre.shape))
        q = prior @ W
        if step % 8 == 7:  # the bound holds at every step
            with np.errstate(divide="ignore", invalid="ignore"):
                f = np.where(W > 0.0, np.log(W / q), 0.0)
            lower = max(lower, float(prior @ least_mean(box, f)) - _SUM)
    return lower, max(lower, upper + _SUM)


def information_of_cells(
    cells: Box, inputs: Box, centre: Floats, shape: tuple[int, int]
) -> tuple[float, float]:
    """Bound I(X; Y) for a joint distribution in a box and a distribution of X in another box.

    ``centre`` is a guess of the joint distribution. From above: I is at most D(p || r q) for any
    distributions r of X and q of Y. From below: I is at least sum p(x, y) ln V(x|y)/r(x) - D(p_X ||
    r), for any V.
    """
    joint = centre.reshape(shape)
    r, q = joint.sum(axis=1), joint.sum(axis=0)
    upper = math.inf
    first, second = r, q
    for _ in range(_ABOVE):
        values, worst = largest_divergence(cells, np.outer(first, second).reshape(1, -1))
        upper = min(upper, float(values[0]))
        there = worst.reshape(shape)
        first = 0.75 * first + 0.25 * there.sum(axis=1)
        second = 0.75 * second + 0.25 * there.sum(axis=0)
    away = float(largest_divergence(inputs, r[None])[0][0])
    first, second, lower = r, q, 0.0
    for step in range(_BELOW):
        near = nearest(cells, np.outer(first, second).reshape(1, -1)).reshape(shape)
        first, second = near.sum(axis=1), near.sum(axis=0)
        if step % 8 == 7:  # the bound holds at every step
            with np.errstate(divide="ignore", invalid="ignore"):
                f = np.where(near > 0.0, np.log(near / np.outer(r, second)), 0.0)
            lower = max(lower, float(least_mean(cells, f.reshape(1, -1))[0]) - away - _SUM)
    return lower, max(lower, upper + _SUM)


def best_guess(box: Box, weights: Floats, centre: Floats) -> tuple[float, float]:
    """Bound sum_y max_x w(x) W[x, y] for rows W_x in boxes.

    From below by the guess that is best at ``centre``. From above: the mass of a set S of outputs
    is at most high(S) and at most 1 - low(all) + low(S), hence at most any mean of both.
    """
    guess = _guess(weights[:, None] * centre)
    sure = np.where(guess, box.low, 0.0).sum(axis=1)
    rest = 1.0 - np.where(guess, 0.0, box.high).sum(axis=1)
    lower = float(weights @ np.maximum(sure, rest))
    spare = float(weights @ np.maximum(0.0, 1.0 - box.low.sum(axis=1)))
    upper = _largest_tops(weights[:, None] * box.low, weights[:, None] * box.high, spare)
    size = float(weights.sum())
    return lower - _SUM * size, upper + _SUM * size


def best_cells(cells: Box, centre: Floats, shape: tuple[int, int]) -> tuple[float, float]:
    """Bound sum_y max_x p(x, y) for a joint distribution in a box, in the same way."""
    low, high = (side.reshape(shape) for side in cells)
    guess = _guess(centre.reshape(shape))
    lower: float = max(float(low[guess].sum()), 1.0 - float(high[~guess].sum()))
    upper = _largest_tops(low, high, max(0.0, 1.0 - float(low.sum())))
    return lower - _SUM, upper + _SUM


def _guess(joint: Floats) -> np.ndarray:
    """Mark the likeliest input of every output."""
    return np.asarray(joint.argmax(axis=0) == np.arange(len(joint))[:, None])


def _largest_tops(low: Floats, high: Floats, spare: float) -> float:
    """Bound the sum of column maxima, if the mass above the lower bounds is ``spare``."""
    shares: list[float] = np.linspace(0.0, 1.0, 17).tolist()
    tops = [float((s * high + (1.0 - s) * low).max(axis=0).sum()) for s in shares]
    return min(top + (1.0 - s) * spare for s, top in zip(shares, tops, strict=True))
