"""Rate-distortion: the minimum mutual information at an expected distortion (PD-MIP)."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.rounding import lowered, roundoff
from fastpriv._core.validation import Floats
from fastpriv._structure.rows import RowKernel, RowKernels
from fastpriv._structure.types import Blocks, Stack, classes_against, types_of
from fastpriv.channels import (
    AbstractChannel,
    Channel,
    PosteriorChannel,
    ProductChannel,
    TiltedChannel,
)
from fastpriv.channels.types import TypeChannel, type_weights
from fastpriv.design.closed_forms import constant_mechanism, h_inverse, identity_mechanism
from fastpriv.design.mixture import Family, Fit, HammingTilt, MatrixTilt, certify, fit
from fastpriv.design.problem import Limits, reported
from fastpriv.errors import Infeasible, InvalidInput, TooLarge, described
from fastpriv.measures.distortion import expected_cost, expected_distance
from fastpriv.measures.information import information
from fastpriv.priors import Dense, Distribution, Exchangeable, Product
from fastpriv.priors.base import as_prior
from fastpriv.results import Solution

__all__ = ["RateDistortion", "solve_pd_mip"]

#: Slopes beyond this count as infinite: e^-700 nearly underflows.
_STEEPEST = 700.0
#: Relative error of an information that is a sum of non-negative terms.
_ROUNDED = 1e-12
#: Relative error of a distortion, which is a sum of non-negative terms too.
_COST = roundoff(64.0)
#: Largest space that is solved over all databases.
_MAX_DENSE = 1 << 24
#: Most classes of pairs of a program on types.
_MAX_CLASSES = 1 << 22
#: At a smaller distortion, by Fano's inequality, less than 1e-200 nats can be saved.
_LEAST = 1e-250
#: Smallest weight of an output, so that (K q)(x) > 0 for every database.
_FLOOR = 1e-280


@dataclass(frozen=True, repr=False)
class RateDistortion(Solution):
    """A point of the rate-distortion curve, with the mechanism that reaches it.

    Attributes
    ----------
    value, bound, channel, level, method
        As in :class:`Solution`; ``value`` and ``level`` are the mutual information in nats.
    distortion : float
        Expected distortion of the channel.
    slope : float
        Nats saved per unit of distortion at this point: minus the derivative of the curve.

    Examples
    --------
    >>> import fastpriv as fp
    >>> point = fp.solve_pd_mip(fp.Product.iid([0.8, 0.2], 10), slope=1.0)
    >>> round(point.distortion, 6), round(point.value, 6)
    (2.0, 0.0)
    """

    distortion: float
    slope: float

    def __repr__(self) -> str:
        inside = super().__repr__().split("(", 1)[1][:-1]
        return f"RateDistortion({inside}, distortion={self.distortion:.6g}, slope={self.slope:.6g})"


def solve_pd_mip(
    prior: Distribution | ArrayLike,
    distortion: float | None = None,
    *,
    slope: float | None = None,
    metric: ArrayLike | None = None,
    gap: float = 1e-9,
    time_limit: float = math.inf,
) -> RateDistortion:
    """Find the mechanism of minimum mutual information I(X; Y) at an expected distortion.

    Parameters
    ----------
    prior : Distribution or 1-D array
        Distribution of the databases; a vector is the distribution of one record.
    distortion : float
        Largest expected distortion. Give this or ``slope``.
    slope : float
        Find the point at which the curve falls by this many nats per unit of distortion.
    metric : 2-D array, optional
        ``metric[x, y]``, finite, for every database and any number of outputs. Default: the Hamming
        distance, with databases as outputs.
    gap : float
        Certified gap in nats at which to stop.
    time_limit : float
        Seconds after which to return the best certified solution so far.

    Returns
    -------
    RateDistortion
        ``.value`` is the mutual information of ``.channel`` in nats. ``.bound`` is a proved lower
        bound for any mechanism of that distortion (Blahut 1972), rounded down. If they differ by
        more than ``gap``, ``.converged`` is False and a :class:`GapWarning` is given.

    Raises
    ------
    Infeasible
        If the metric allows no distortion that small; the message names the smallest.

    Notes
    -----
    PD-MIP of Wang-Ying-Zhang 2015. At slopes from ``prior.epsilon_tilde()`` on, the optimum is the
    posterior response (Theorem 2). Independent records have a common slope s. Each record keeps its
    k most likely values, of total probability P_k: q(y) = p(y) (1 + k a)/P_k - a with a = 1/(e^s -
    1). Other priors are solved by products with e^(-s d). A product costs O(N n) for the Hamming
    distance (N up to 2^24, or as many squared types of an exchangeable prior) and O(N K) for a
    metric.

    Examples
    --------
    >>> import fastpriv as fp
    >>> prior = fp.Exchangeable.beta_binomial(20, 0.5, 0.8)
    >>> point = fp.solve_pd_mip(prior, 4.0)
    >>> round(point.value, 6), point.method, point.gap < 1e-8
    (0.473827, 'types', True)
    """
    prior = as_prior(prior)
    if (distortion is None) == (slope is None):
        raise InvalidInput("exactly one of distortion and slope must be given. Choose one.")
    limits = Limits.checked(gap, time_limit, absolute=True)
    if slope is not None:
        slope = check.real(slope, "slope", 0.0, _STEEPEST)
    if metric is not None:
        costs = check.metric(metric, prior.space.size)
        point = _by_metric(prior, distortion, slope, costs, limits)
        return reported(point, limits)
    if distortion is not None:
        distortion = check.real(distortion, "distortion", 0.0, float(prior.space.n))
        if distortion >= constant_mechanism(prior).value:
            return _constant(prior)
        if distortion <= _LEAST:
            return _identity(prior)
    elif slope is None or slope < 1e-300 or max(prior.space.sizes) == 1:
        return _constant(prior)
    steep = slope if distortion is None else _slope_of_e_i(prior, distortion)
    assert steep is not None
    # For a nearly uniform prior, rounding may dominate the posterior response, and eps_tilde may
    # have no bound. The program is solved in these cases.
    with suppress(Infeasible, TooLarge):
        if steep >= float(prior.epsilon_tilde()):
            return _e_i(prior, steep, distortion)
    if prior.space.n == 1:
        prior = Product([prior.pmf()])
    if isinstance(prior, Product):
        point = _rows(prior, distortion, slope)  # a closed form for each record
        rounded = _ROUNDED * point.value + 4.0 * _COST * point.slope * point.distortion
        return reported(point, limits._replace(negligible=rounded))
    start = min(max(steep, 0.05), _STEEPEST) if slope is None else slope
    if isinstance(prior, Exchangeable):
        point = _on_types(prior, distortion, start, limits)
    else:
        point = _on_databases(prior, distortion, start, limits)
    return reported(point, limits)


def _slope_of_e_i(prior: Distribution, distortion: float) -> float:
    """Return h^-1(distortion), the slope if the posterior response is optimal, else a start."""
    sizes = [m for m in prior.space.sizes if m > 1]
    return float(h_inverse(distortion, len(sizes), sizes))


# Closed forms.


def _constant(prior: Distribution) -> RateDistortion:
    """Return the constant output with the most likely value of every record."""
    constant = constant_mechanism(prior)
    return RateDistortion(0.0, 0.0, constant.channel, 0.0, "closed-form", constant.value, 0.0)


def _identity(prior: Distribution) -> RateDistortion:
    """Return the point of distortion 0, at which the output is the database."""
    channel = identity_mechanism(prior)
    value = float(prior.entropy())
    bound = max(value * (1.0 - _ROUNDED) - 1e-200, 0.0)
    return RateDistortion(value, bound, channel, value, "closed-form", 0.0, math.inf)


def _e_i(prior: Distribution, slope: float, target: float | None) -> RateDistortion:
    channel = PosteriorChannel.up_to_rounding(prior, slope)
    cost = expected_distance(channel, prior)
    for k in range(50):
        if target is None or cost <= target:
            break
        slope += roundoff(2.0**k) * max(slope, 1.0)  # an ulp over
        channel = PosteriorChannel.up_to_rounding(prior, slope)
        cost = expected_distance(channel, prior)
    value = float(information(channel, prior))
    bound = _tangent(value, cost, slope, target)
    return RateDistortion(value, bound, channel, value, "closed-form", cost, slope)


def _tangent(value: float, cost: float, slope: float, target: float | None) -> float:
    """Bound the curve at a distortion from below by its tangent at another, rounded down."""
    missed = (cost if target is None else target) - cost * (1.0 - _COST)
    return max(value * (1.0 - _ROUNDED) - slope * missed, 0.0)


# Independent records.


def _rows(prior: Product, target: float | None, slope: float | None) -> RateDistortion:
    """Solve every distinct record at a common slope."""
    if slope is None:
        assert target is not None
        slope = common_slope(prior, target)
    for k in range(60):
        factors = [RowKernel(tilted_row(law, slope)) for law in prior.distinct]
        channel = ProductChannel.of(RowKernels(factors, prior.assignment))
        cost = expected_distance(channel, prior)
        if target is None or cost <= target:
            break
        slope *= 1.0 + roundoff(2.0**k)  # an ulp over
    value = float(information(channel, prior))
    bound = _tangent(value, cost, slope, target)
    return RateDistortion(value, bound, channel, value, "rows", cost, slope)


# Programs.


def _on_databases(
    prior: Distribution, target: float | None, start: float, limits: Limits
) -> RateDistortion:
    dense = prior.as_dense("the rate-distortion program", _MAX_DENSE)
    family = partial(HammingTilt, dense.space.sizes)
    p = dense.probabilities()
    if target is None and _is_constant_optimal(
        p, family(start), constant_mechanism(prior).channel, dense
    ):
        return _constant(prior)
    fitted = fit(p, family, len(p), start, target, limits)
    law = Dense.of(np.maximum(fitted.law, _FLOOR), dense.space)

    def make(slope: float) -> tuple[AbstractChannel, float]:
        channel = TiltedChannel(law, slope)
        return channel, expected_distance(channel, dense)

    return _finish(dense, p, family, fitted, target, make, "dense")


def _is_constant_optimal(
    p: Floats, tilt: HammingTilt, constant: AbstractChannel, prior: Dense
) -> bool:
    """Whether the best constant output is optimal at this slope (Kuhn-Tucker conditions)."""
    answer = constant.sample(np.zeros((1, prior.space.n), dtype=np.int64))
    alone = np.zeros(len(p))
    alone[prior.space.index(answer)] = 1.0
    # Every database must have a positive weight that does not underflow.
    v = tilt.forward(alone)
    return bool(v.min() > _FLOOR) and float(tilt.backward(p / v).max()) <= 1.0


def _on_types(
    prior: Exchangeable, target: float | None, start: float, limits: Limits
) -> RateDistortion:
    n, m = prior.space.n, prior.space.sizes[0]
    check.fits(
        math.comb(n + m * m - 1, m * m - 1),
        f"the list of pair classes of {prior!r}",
        "use fewer records or values, or an independent prior",
        _MAX_CLASSES,
    )
    types = types_of(Blocks.single(n, m))
    classes = [classes_against(kind, types) for kind in types.counts]
    stack = Stack.of(types, classes)
    count = len(classes)
    place = stack.row * count + stack.kind

    p = type_weights(types, prior)
    members = math.fsum(p * types.log_sizes)

    def family(slope: float) -> MatrixTilt:
        # From the type of y to the type of x; a database has an equal share of its type.
        masses = np.exp(stack.log_count - slope * stack.distance - scale(slope))
        tables = [np.bincount(place, masses * stack.distance**k, count**2) for k in range(3)]
        kernel, first, second = np.reshape(np.asarray(tables, np.float64), (3, count, count))
        return MatrixTilt(slope, kernel, first, second, scale(slope) - members)

    def scale(slope: float) -> float:
        return n * math.log1p((m - 1) * math.exp(-slope))

    fitted = fit(p, family, count, start, target, limits)

    def make(slope: float) -> tuple[AbstractChannel, float]:
        # W[x, y] = q(y) R[x, y] / v(x); q and v are uniform within a type.
        law = np.maximum(fitted.law, _FLOOR)
        q = np.log(law) - types.log_sizes
        v = np.log(family(slope).forward(law)) - types.log_sizes
        logs = q[stack.kind] - slope * stack.distance - scale(slope) - v[stack.row]
        entries = np.split(np.exp(logs), stack.starts[1:-1])
        channel = TypeChannel(types, classes, entries)
        return channel, expected_distance(channel, prior)

    return _finish(prior, p, family, fitted, target, make, "types")


def _by_metric(
    prior: Distribution,
    target: float | None,
    slope: float | None,
    metric: Floats,
    limits: Limits,
) -> RateDistortion:
    p = prior.probabilities()
    nearest = metric.min(axis=1)
    excess = metric - nearest[:, None]
    least = math.fsum(p * nearest)
    columns = p @ metric
    constant = int(columns.argmin())
    if target is not None:
        target = check.real(target, "distortion")
        if target < least - roundoff(4) * math.fsum(p * np.abs(nearest)):
            raise Infeasible(
                f"distortion must be at least {described(least)}, the smallest possible; got "
                f"{described(target)}."
            )
    if slope == 0.0 or (target is not None and target >= columns[constant]):
        silent = np.zeros_like(metric)
        silent[:, constant] = 1.0
        channel = Channel(silent, prior.space)
        cost = float(columns[constant])
        return RateDistortion(0.0, 0.0, channel, 0.0, "closed-form", cost, 0.0)
    family = partial(MatrixTilt.of, excess)
    over = None if target is None else target - least
    if over is not None:
        # A budget of 0 has an infinite slope. Otherwise start where a flat distribution meets the
        # target.
        if over > 1e-12 * float(excess.max()):
            flat = np.full(metric.shape[1], 1.0 / metric.shape[1])
            usual = float(p @ excess.mean(axis=1))
            slope = _steepen(p, family, flat, 1e-3 / usual, min(over, 0.5 * usual))
        else:
            slope, over = math.inf, None
    assert slope is not None
    fitted = fit(p, family, metric.shape[1], slope, over, limits)

    def make(slope: float) -> tuple[AbstractChannel, float]:
        joint = family(slope).joint(fitted.law)
        channel = Channel(joint / joint.sum(axis=1, keepdims=True), prior.space)
        return channel, expected_cost(channel, prior, metric)

    rounded = roundoff(8.0) * math.fsum(p * np.abs(nearest))
    return _finish(prior, p, family, fitted, target, make, "dense", least - rounded)


def _finish(
    prior: Distribution,
    p: Floats,
    family: Family,
    fitted: Fit,
    target: float | None,
    make: Callable[[float], tuple[AbstractChannel, float]],
    method: str,
    least: float = 0.0,
) -> RateDistortion:
    """Make the channel, slightly steeper if it exceeds the distortion, with a lower bound.

    ``least`` is the distortion that the family does not count.
    """
    law, slope = fitted.law, fitted.slope
    if target is not None and slope < math.inf:
        slope = _steepen(p, family, law, slope, target - least)
    channel, cost = make(slope)
    for k in range(50):
        if target is None or cost <= target or math.isinf(slope):
            break
        slope *= 1.0 + roundoff(2.0**k)  # the channel's own distortion is rounded differently
        channel, cost = make(slope)
    value = float(information(channel, prior))
    if math.isinf(slope):
        bound = fitted.bound
    else:
        reached = cost if target is None else max(target, cost)
        tilt = family(slope)
        v = tilt.forward(law)
        _, here = certify(p, law, tilt, v, tilt.backward(p / v))
        bounds = [(fitted.slope, fitted.bound), (slope, here)]
        over = reached - least + roundoff(4.0) * (abs(reached) + abs(least))
        bound = max(b - s * over for s, b in bounds)
    bound = min(max(bound, 0.0), value)
    return RateDistortion(value, bound, channel, value, method, cost, slope)


def _steepen(p: Floats, family: Family, q: Floats, slope: float, target: float) -> float:
    """Raise the slope until an output distribution has at most the target distortion.

    Newton's method in a bracket; the distortion falls with the slope.
    """
    low, high = slope, math.inf
    for _ in range(100):
        tilt = family(slope)
        v = tilt.forward(q)
        first, second = tilt.distances(q, v)
        mean = first / v
        miss = float((p * mean).sum()) - target
        if miss <= 0.0:
            high = slope
        else:
            low = slope
        if (miss <= 0.0 and (slope == low or -miss <= 1e-14 * target)) or high - low <= roundoff(
            low
        ):
            break
        spread = float((p * np.maximum(second / v - mean * mean, 0.0)).sum())
        # Aim slightly below the target, so that rounding does not exceed it.
        slope += (miss + 2.0**-50 * target) / spread if spread > 0.0 else math.inf
        if not low < slope < high:
            slope = 0.5 * (low + high) if high < math.inf else 2.0 * low
    return high if high < math.inf else slope


def common_slope(prior: Product, target: float) -> float:
    """Return the slope at which the records' distortions add up to the target."""
    from scipy.optimize import brentq

    laws = [np.sort(law)[::-1] for law in prior.distinct]
    aim = lowered(target, 32.0)  # so that rounding does not exceed the target

    def surplus(slope: float) -> float:
        return prior.total([_row_distortion(law, slope) for law in laws]) - aim

    low = high = 1.0
    while low > 1e-300 and surplus(low) < 0.0:
        low *= 0.25
    while high < _STEEPEST and surplus(high) > 0.0:
        high = min(2.0 * high, _STEEPEST)
    if surplus(low) <= 0.0 or surplus(high) >= 0.0:
        return low if surplus(low) <= 0.0 else high
    return float(brentq(surplus, low, high, xtol=1e-300, rtol=roundoff(8)))


def _live(law: Floats, slope: float) -> int:
    """Return how many of a record's values, most likely first, are outputs at a slope.

    The k-th value is an output if p_k (e^slope - 1) exceeds the sum over j < k of p_j - p_k.
    """
    grow = math.expm1(slope) if slope < _STEEPEST else math.inf
    ahead = np.cumsum(law) - np.arange(1, len(law) + 1) * law
    with np.errstate(invalid="ignore"):
        return max(1, int(np.count_nonzero((law > 0.0) & (law * grow > ahead))))


def _row_distortion(law: Floats, slope: float) -> float:
    k, r = _live(law, slope), math.exp(-slope)
    return float(law[:k].sum()) * (k - 1) * r / (1.0 + (k - 1) * r) + float(law[k:].sum())


def tilted_row(law: Floats, slope: float) -> Floats:
    """Return W[x, y], a record's optimal channel at a slope."""
    m, r = len(law), math.exp(-slope)
    order = np.argsort(-law, kind="stable")
    top = law[order]
    k = _live(top, slope)
    a = 1.0 / math.expm1(slope) if slope < _STEEPEST else r
    q = np.zeros(m)
    mass = top[:k].sum()
    # p (1 + k a)/P - a, from differences of probabilities.
    q[order[:k]] = np.maximum(top[:k] + a * (k * top[:k] - mass), 0.0) / mass
    joint = np.full((m, m), r) * q
    np.fill_diagonal(joint, q)
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))
