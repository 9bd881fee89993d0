"""Largest g-leakage over priors for one gain function, or over gain functions for one prior."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fastpriv import gains as gain_functions
from fastpriv._core import validation as check
from fastpriv._core.logs import log_total
from fastpriv._core.rounding import raised, roundoff
from fastpriv._core.validation import Floats
from fastpriv._matrices.gains import best_set
from fastpriv._matrices.searches.strategies import Problem, search
from fastpriv._structure.rows import RowKernels
from fastpriv.channels import AbstractChannel
from fastpriv.errors import InvalidInput, TooLarge
from fastpriv.measures.inputs import as_channel, as_pair
from fastpriv.measures.leakage import extreme_level, maxima_floor, maxima_level
from fastpriv.priors import Distribution, Product
from fastpriv.results import Bracket
from fastpriv.spaces import Space

__all__ = [
    "GainCapacity",
    "additive_g_capacity",
    "additive_gain_capacity",
    "g_capacity",
    "gain_capacity",
]

#: Most entries of a gain function or a channel in the search over priors.
_LARGEST = 1 << 20
#: Most databases whose sets are listed.
_SETS = 16

ChannelLike = AbstractChannel | ArrayLike
PriorLike = Distribution | ArrayLike
GainLike = ArrayLike | gain_functions.Row | None


@dataclass(frozen=True, eq=False, repr=False)
class GainCapacity(Bracket):
    """Bracket of the largest g-leakage over priors, with a prior that attains the lower bound.

    ``prior`` is None if a closed form was used; the uniform prior then attains it.

    Examples
    --------
    >>> import fastpriv as fp
    >>> capacity = fp.additive_g_capacity([[0.9, 0.1, 0.0], [0.1, 0.9, 0.0], [0.5, 0.5, 0.0]])
    >>> capacity, capacity.prior.round(6).tolist()
    (GainCapacity(0.3999999999, 0.4000000001), [0.5, 0.5, 0.0])
    """

    prior: Floats | None


def g_capacity(
    channel: ChannelLike,
    gain: GainLike = None,
    *,
    gap: float = 1e-6,
    time_limit: float | None = None,
) -> GainCapacity:
    """Bound the largest multiplicative g-leakage over all priors, for one gain function.

    With no gain function it is min-capacity, which equals :func:`maximal_leakage`. The uniform
    prior attains it (Braun et al. 2009). Non-negative gains never leak more: the miracle theorem
    (Alvim et al. 2012, Theorem 5.1).

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    gain : 2-D array or gains.Row, optional
        Gain function ``gain[w, x]`` with no negative entry; see ``fastpriv.gains``.
    gap : float
        Width of the bracket at which the search ends.
    time_limit : float, optional
        Seconds after which no further linear program starts. By default the search ends after a
        fixed amount of work.

    Returns
    -------
    GainCapacity
        Bracket in nats. It reaches ``gap`` up to about 20 databases, outputs and actions. If K
        actions^2 N exceeds 2^19, a local search and the miracle theorem give a wider bracket. The
        search is branch and bound over strategies. Its linear programs have N K actions variables,
        and their multipliers prove the bounds.

    Examples
    --------
    >>> import fastpriv as fp
    >>> W = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
    >>> fp.g_capacity(W)  # ln 2.4
    GainCapacity(0.8754687373, 0.8754687374)
    >>> fp.g_capacity(W, fp.gains.tries(3, 2))  # ln 1.35
    GainCapacity(0.3001045924, 0.3001045925)
    """
    mechanism = as_channel(channel)
    if gain is None:
        return GainCapacity(maxima_floor(mechanism), maxima_level(mechanism), None)
    W, g = _matrices(mechanism, gain)
    if g.min() < 0.0:
        raise InvalidInput(
            f"gain must be at least 0 for a multiplicative capacity; got {g.min():.6g}. Use "
            "additive_g_capacity, or a gain of at least 0."
        )
    tops = g.max(axis=0)
    live = tops > 0.0
    if not live.any():
        return GainCapacity(0.0, 0.0, None)
    # Dividing the gain of a database by its largest is the same as multiplying its probability.
    cap = raised(math.exp(log_total(W[live].max(axis=0))), 4.0)
    problem = Problem(W[live], g[:, live] / tops[live], additive=False)
    bounds = search(problem, cap, check.real(gap, "gap", least=0.0), _limit(time_limit))
    law = np.zeros(len(tops))
    with np.errstate(divide="ignore"):  # quotients of gains may overflow
        logs = np.log(bounds.prior) - np.log(tops[live])
    law[live] = np.exp(logs - logs.max())
    lower, upper = (math.log(max(1.0, end)) for end in (bounds.lower, bounds.upper))
    error = 1e-15 + _off(mechanism)
    return GainCapacity(
        max(0.0, lower - error * (1.0 + lower)), upper + error * (1.0 + upper), law / law.sum()
    )


def additive_g_capacity(
    channel: ChannelLike,
    gain: GainLike = None,
    *,
    gap: float = 1e-6,
    time_limit: float | None = None,
) -> GainCapacity:
    """Bound the largest additive g-leakage over all priors, for one gain function.

    It is the maximum of a difference of two convex functions of the prior. This is NP-hard even if
    the gain is a right guess of the database (Alvim et al. 2014), so large sizes get a bracket.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    gain : 2-D array or gains.Row, optional
        Gain function ``gain[w, x]`` of any sign; by default a right guess of the database.
    gap : float
        Width of the bracket at which the search ends, relative to the largest absolute gain.
    time_limit : float, optional
        Seconds after which no further linear program starts. By default the search ends after a
        fixed amount of work.

    Returns
    -------
    GainCapacity
        Bracket in units of the gain, by the search of :func:`g_capacity`. For a right guess of at
        most 16 databases all sets are listed at cost O(2^N K), because a uniform distribution on
        some set is worst.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.additive_g_capacity([[0.75, 0.25], [0.25, 0.75]])
    GainCapacity(0.2499999999, 0.2500000001)
    """
    mechanism = as_channel(channel)
    width, limit = check.real(gap, "gap", least=0.0), _limit(time_limit)
    if gain is None:
        N, K = mechanism.space.size, mechanism.output_count
        if N <= _SETS and K << N <= _LARGEST:
            lower, upper, law = best_set(np.asarray(mechanism.nearest_matrix()))
            off = _off(mechanism)
            return GainCapacity(max(lower - off, 0.0), upper + off, law)
        check.fits(N**2, "the gain function", "use fewer databases", _LARGEST)
        gain = gain_functions.identity(N)
    W, g = _matrices(mechanism, gain)
    size = float(np.abs(g).max())
    if size == 0.0:
        return GainCapacity(0.0, 0.0, None)
    scaled = g / size
    # No prior adds more than the span of the gain times the mass not common to all rows.
    off = _off(mechanism)
    common = math.fsum(W.min(axis=0)) * (1.0 - roundoff(4.0) - off)
    cap = raised(float(np.ptp(scaled)) * (1.0 - common), 8.0)
    bounds = search(Problem(W, scaled, additive=True), cap, width, limit)
    # Dividing by the size and multiplying again moves every gain by two ulp.
    error = (roundoff(8.0) + 2.0 * off) * size
    lower = max(0.0, bounds.lower * size - error)
    return GainCapacity(lower, max(lower, bounds.upper * size + error), bounds.prior)


def _matrices(channel: AbstractChannel, gain: GainLike) -> tuple[Floats, Floats]:
    """Return the matrix and the gain function, small enough for a search."""
    space: Space = channel.space
    if isinstance(gain, gain_functions.Row):
        g = gain.matrix(space)
    else:
        assert gain is not None
        g = gain_functions.checked(gain, space.size)
    W = np.asarray(channel.nearest_matrix())
    largest = max(g.size, W.size, len(g) * W.shape[1])
    if largest > _LARGEST:
        raise TooLarge.entries(
            "the search over priors", largest, "use fewer databases, outputs or actions"
        )
    return W, g


def _off(channel: AbstractChannel) -> float:
    """Bound the effect of matrix errors on a gain of at most 1; it is 0 if rows are equal."""
    error = channel.matrix_error
    return 2.0 * error if error and extreme_level(channel) > 0.0 else 0.0


def _limit(time_limit: float | None) -> float | None:
    return check.optional_limit(time_limit, "time_limit")


def gain_capacity(channel: ChannelLike, prior: PriorLike) -> float:
    """Compute the largest multiplicative g-leakage under one prior, over non-negative gains.

    It is ln sum_y max_x p(y|x) over databases x that can occur: maximal leakage, for every prior
    (Alvim et al. 2014). The gain g[x, x] = 1/p(x), and 0 elsewhere, attains it.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    prior : Distribution or 1-D array
        Distribution of the databases; only its support matters.

    Returns
    -------
    float
        Leakage in nats, rounded up. Cost as for :func:`maximal_leakage`.

    Examples
    --------
    >>> import fastpriv as fp
    >>> W = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    >>> [round(fp.gain_capacity(W, p), 6) for p in ([0.5, 0.25, 0.25], [0.5, 0.5, 0.0])]
    [1.098612, 0.693147]
    """
    mechanism, law = as_pair(channel, prior)
    if _covers(law):
        return maxima_level(mechanism)
    return log_total(_seen(mechanism, law).max(axis=0))


def additive_gain_capacity(channel: ChannelLike, prior: PriorLike, gains: str = "unit") -> float:
    """Compute the largest additive g-leakage under one prior, over a class of gain functions.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    prior : Distribution or 1-D array
        Distribution of the databases.
    gains : {"unit", "spanning", "bounded"}
        The class. ``"unit"``: g[w, x] in [0, 1]. ``"spanning"``: g[w, x] - g[w, x'] at most 1 for
        every action. ``"bounded"``: g at most 1 and no distribution has a negative vulnerability.
        Each class contains the previous class, up to a constant.

    Returns
    -------
    float
        Leakage in units of the gain, rounded up. Cost O(N K log N) for ``"unit"`` and O(N K) for
        the other classes. For ``"bounded"`` and record-by-record channels it is O(distinct
        records).

    Notes
    -----
    - Unit gains: min over distributions r of sum_x p(x) TV(W_x, r), the deficiency of an
      uninformative channel. The sum is convex and piecewise linear in each r(y), so r is filled
      greedily.
    - Spanning gains: the mean total variation between posterior and prior, the Kantorovich
      distance of the hyper-distributions (Alvim et al. 2014).
    - Bounded gains: 1 - sum_y min_x p(y|x) over databases that occur, whatever the prior is
      (Alvim et al. 2020, Chapter 7).

    Examples
    --------
    >>> import fastpriv as fp
    >>> W, p = [[0.8, 0.2], [0.2, 0.8], [0.2, 0.8]], [0.4, 0.3, 0.3]
    >>> [round(fp.additive_gain_capacity(W, p, g), 6) for g in ("unit", "spanning", "bounded")]
    [0.24, 0.288, 0.6]
    """
    mechanism, law = as_pair(channel, prior)
    check.word(gains, "gains", ("unit", "spanning", "bounded"))
    if gains == "bounded":
        kernels = mechanism.kernels
        if kernels is not None and _covers(law):
            return _uncommon(kernels)
        W = _seen(mechanism, law)
        uncommon = math.fsum([1.0, *(-W.min(axis=0)).tolist()]) + _off(mechanism)
        return min(1.0, math.nextafter(uncommon, 2.0)) if uncommon > 0.0 else 0.0
    W, p = np.asarray(mechanism.nearest_matrix()), law.probabilities()
    if gains == "unit":
        return min(1.0, nearest_law(W, p) + _off(mechanism))
    joint = p[:, None] * W
    output = joint.sum(axis=0)
    apart = np.maximum(joint - p[:, None] * output, 0.0).sum()
    off = roundoff(len(p) + 8) + 2.0 * _off(mechanism)
    return min(1.0, float(apart) + off) if apart > 0.0 else 0.0


def _uncommon(kernels: RowKernels) -> float:
    """Return 1 - the product over records of sum_y min_x p(y|x). Rounded up."""
    logs = []
    for kernel, rows in kernels.groups():
        common = math.fsum(np.asarray(kernel.matrix).min(axis=0))
        if common == 0.0:
            return 1.0
        logs.append(len(rows) * math.log(min(1.0, common)))
    total = math.fsum(logs)
    error = roundoff(8.0) * (len(kernels) + abs(total))
    return min(1.0, -math.expm1(total - error)) if total < 0.0 else 0.0


def nearest_law(W: Floats, prior: Floats) -> float:
    """Return the smallest sum_x p(x) TV(W_x, r) over distributions r, rounded up.

    Cost O(N K log N).

    For one output the sum falls with r(y) at the rate P(W[X, y] > r(y)). Start with the smallest
    entries, and add the remaining mass at the outputs with the largest rate.
    """
    order = np.argsort(W, axis=0, kind="stable")
    values = np.take_along_axis(W, order, axis=0)
    tails = np.cumsum(prior[order][::-1], axis=0)[::-1][1:]
    pieces = np.diff(values, axis=0)
    steepest = np.argsort(-tails, axis=None, kind="stable")
    lengths = pieces.reshape(-1)[steepest]
    left = 1.0 - values[0].sum() - (np.cumsum(lengths) - lengths)
    grown = np.zeros(pieces.size)
    grown[steepest] = np.clip(left, 0.0, lengths)
    r = values[0] + grown.reshape(pieces.shape).sum(axis=0)
    r = r / r.sum()
    apart = float(prior @ np.maximum(W - r, 0.0).sum(axis=1))
    if apart == 0.0:
        return 0.0
    error = roundoff(len(prior) + 8) * apart + roundoff(W.shape[1] + 8)
    return float(min(1.0, apart + error))


def _covers(prior: Distribution) -> bool:
    """Whether every database occurs."""
    if isinstance(prior, Product):
        return all(law.min() > 0.0 for law in prior.distinct)
    return (
        prior.epsilon_x() < math.inf
        if prior.space.n > 1
        else bool(prior.probabilities().min() > 0.0)
    )


def _seen(channel: AbstractChannel, prior: Distribution) -> Floats:
    """Return the rows of databases that can occur."""
    logs = prior.logs_if_rare()
    occurs = prior.probabilities() > 0.0 if logs is None else logs > -math.inf
    return np.asarray(channel.nearest_matrix())[occurs]
