"""Normal and Laplace noise on a given query: what an output tells about one row, or about all."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.rounding import LEAST, ULP, lowered, raised, round_up
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.cliques import mean_questions
from fastpriv.channels import QueryChannel
from fastpriv.channels.queries.query import Listed
from fastpriv.errors import InvalidInput
from fastpriv.measures.individual import individual_capacity
from fastpriv.measures.individual.search import widened
from fastpriv.mechanisms import noise_tables
from fastpriv.mechanisms.amplitude import amplitude_capacity
from fastpriv.mechanisms.answers import Query, furthest_pair, told_apart
from fastpriv.mechanisms.noise_tables import Table
from fastpriv.notions.rules import Facts, capacity_bound
from fastpriv.results import Bracket, IndividualCapacity
from fastpriv.spaces import Space

__all__ = ["gaussian_query_capacity", "laplace_query_capacity", "laplace_query_leakage"]

#: Most entries of a table of output laws.
_TABLE = 1 << 23
#: Relative error of distances, the directions that are left out included.
_BLUR = 64.0 * ULP


@dataclass(frozen=True)
class _Noise:
    """What is known of a kind of noise of size 1."""

    pair: Callable[[float], Bracket]  # capacity of two points at a distance
    ceiling: Callable[[float, int], float]  # upper bound for points of k directions in a distance
    few: float  # distance up to which the two outermost points are the best of any number
    gap: float  # distance from which on points are told apart
    entries: Callable[[Floats], float]
    table: Callable[[Floats], Table]


def _gaussian_pair(distance: float) -> Bracket:
    return amplitude_capacity(0.5 * distance, 2.0, 0.0)


def _gaussian_ceiling(distance: float, k: int) -> float:
    """Return k/2 ln(1 + r^2/k), r the radius of a ball around points within a distance (Jung)."""
    square = distance * distance * k / (2.0 * (k + 1.0))
    return raised(0.5 * k * math.log1p(square / k), 16.0) + 4.0 * LEAST  # a square may be lost


def _laplace_pair(distance: float) -> Bracket:
    value = noise_tables.laplace_pair(distance)
    return Bracket(max(lowered(value, 64.0), 0.0), raised(value, 64.0) + LEAST)


def _laplace_ceiling(distance: float, k: int) -> float:
    """Return psi of the largest log-ratio of densities."""
    bound = capacity_bound(distance, Facts(None))
    return math.inf if bound is None else bound


_GAUSSIAN = _Noise(
    _gaussian_pair,
    _gaussian_ceiling,
    2.0,
    noise_tables.GAUSSIAN_GAP,
    noise_tables.gaussian_entries,
    noise_tables.gaussian_table,
)
_LAPLACE = _Noise(
    _laplace_pair,
    _laplace_ceiling,
    0.0,
    noise_tables.LAPLACE_GAP,
    noise_tables.laplace_entries,
    noise_tables.laplace_table,
)


def gaussian_query_capacity(
    values: ArrayLike,
    sigma: float | ArrayLike,
    space: Space | ArrayLike,
    *,
    priors: str = "all",
    gap: float = 1e-9,
    time_limit: float | None = 60.0,
) -> IndividualCapacity:
    """Individual capacity of a query with normal noise: the most it tells about one row, in nats.

    Y = f(X) + sigma Z with Z standard normal. C_1 is the largest I(X_i; Y) over rows i and priors
    (Wu-Xia-He 2020, Definition 5). It is the largest capacity of normal noise on m_i points, one
    answer f(x) for each value of x_i (Theorem 2 there).

    Parameters
    ----------
    values : array of shape (N,) or (N, d)
        The answer f(x) for every database, in C order: a number, or a vector of d numbers.
    sigma : float or array of length d
        Standard deviation of the noise, above 0, or one for each coordinate. For noise of
        covariance L L^T give the vectors L^-1 f(x) and sigma = 1.
    space : Space or sequence of int
        The databases.
    priors : {"all", "independent"}
        Which priors an adversary may have; see :func:`fastpriv.individual_capacity`.
    gap : float
        Width to reach, in nats, and relative to capacities below one nat.
    time_limit : float or None
        Seconds for the search over selections of answers, where there is one.

    Returns
    -------
    IndividualCapacity
        A certified bracket, with the adversary that attains its lower end.

    Notes
    -----
    For bits the worst adversary knows the two answers furthest apart, and so does any adversary
    while these are at most 2 sigma apart: a point between tells less. Otherwise the density is
    replaced by its values on a grid with a proved error (``fastpriv.mechanisms.noise_tables``), and
    the finite channel is searched. On a line the grid has about 11 (a + 10) a points for answers
    within 2a standard deviations, in a plane that many for each axis. Beyond 2^23 entries for all
    answers, and for vectors in more directions, the bracket is wide: from the best pair, or from
    what is seen in a plane, to a bound.
    Answers that m values tell apart by 24 standard deviations need no grid. Cost O(N n) for bits.

    Examples
    --------
    How many of three bits are set, with noise of size 1:

    >>> import fastpriv as fp
    >>> count = [0, 1, 1, 2, 1, 2, 2, 3]
    >>> fp.mechanisms.gaussian_query_capacity(count, 1.0, [2, 2, 2])
    IndividualCapacity(0.5267773065, 0.5267773066)
    >>> fp.mechanisms.gaussian_query_capacity(count, 1.0, [2, 2, 2], priors="independent")
    IndividualCapacity(0.1114214821, 0.1114214822)
    """
    given = check.array(values, "values")
    if given.ndim not in (1, 2) or given.dtype.kind not in "iufb" or not given.size:
        raise InvalidInput(
            f"values must be numbers or vectors of them, got shape {given.shape} of {given.dtype}"
        )
    scales = np.atleast_1d(check.array(sigma, "sigma")).astype(np.float64)
    dimensions = given.shape[1] if given.ndim == 2 else 1
    if scales.shape not in ((1,), (dimensions,)):
        raise InvalidInput(f"sigma must be one number or {dimensions}, got shape {scales.shape}")
    query = Query.of(given, scales, "sigma", space)
    return _capacity(query, _GAUSSIAN, priors, gap, time_limit)


def laplace_query_capacity(
    values: ArrayLike,
    scale: float,
    space: Space | ArrayLike,
    *,
    priors: str = "all",
    gap: float = 1e-9,
    time_limit: float | None = 60.0,
) -> IndividualCapacity:
    """Individual capacity of a query with Laplace noise: the most it tells about one row, in nats.

    As :func:`gaussian_query_capacity`, with noise of density e^(-|z|/scale)/(2 scale).

    Parameters
    ----------
    values : array of length N
        The answer f(x) for every database, in C order.
    scale : float
        Scale b of the noise, above 0.
    space : Space or sequence of int
        The databases.
    priors, gap, time_limit
        As for :func:`gaussian_query_capacity`.

    Returns
    -------
    IndividualCapacity
        A certified bracket, with the adversary that attains its lower end.

    Notes
    -----
    Two answers at a distance of 2 a b have the capacity a - ln cosh a - e^-a arctan(sinh a), which
    is the result for bits. Otherwise integrals are taken by Gauss quadrature with a proved error,
    16 outputs for each b between answers, and the finite channel is searched. No capacity exceeds
    psi(t), t the distance over b; see :func:`fastpriv.individual_capacity`.

    Examples
    --------
    >>> import fastpriv as fp
    >>> count = [0, 1, 1, 2, 1, 2, 2, 3]
    >>> fp.mechanisms.laplace_query_capacity(count, 1.0, [2, 2, 2])
    IndividualCapacity(0.392037102, 0.3920371021)
    """
    given = check.array(values, "values")
    if given.ndim != 1 or given.dtype.kind not in "iufb" or not given.size:
        raise InvalidInput(
            f"values must be a list of numbers, got shape {given.shape} of {given.dtype}"
        )
    scales = np.array([check.real(scale, "scale", LEAST)])
    return _capacity(Query.of(given, scales, "scale", space), _LAPLACE, priors, gap, time_limit)


def laplace_query_leakage(values: ArrayLike, scale: float) -> float:
    """Maximal leakage of a query with Laplace noise about the whole database, in nats.

    ln of the integral of max_x p(y|x) (Issa-Wagner-Kamath 2020, Theorem 1). Between neighbouring
    answers at a distance g the largest density has mass 1 - e^(-g/2b), and 1/2 beyond each end, so
    that the leakage is ln(1 + sum over gaps of (1 - e^(-g/2b))).

    Parameters
    ----------
    values : array
        The answers that the query can have, in any order, repetitions allowed.
    scale : float
        Scale b of the noise, above 0.

    Returns
    -------
    float
        Level in nats, rounded up. Cost O(k log k) for k answers.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(fp.mechanisms.laplace_query_leakage(range(11), 1.0), 6)  # a count of ten bits
    1.596291
    """
    answers = np.unique(check.array(values, "values").astype(np.float64))
    if not answers.size or not np.isfinite(answers).all():
        raise InvalidInput("values must hold at least one number, and no NaN or infinity")
    b = check.real(scale, "scale", LEAST)
    with np.errstate(over="ignore", under="ignore"):
        parts = -np.expm1(-0.5 * (np.diff(answers) / b))
    total = raised(math.fsum(parts), 8.0) + len(parts) * LEAST  # small gaps may be lost
    return round_up(math.log1p(total)) if total else 0.0


def _capacity(
    query: Query, noise: _Noise, priors: str, gap: float, time_limit: float | None
) -> IndividualCapacity:
    check.word(priors, "priors", ("all", "independent"))
    width = check.real(gap, "gap", least=0.0)
    seconds = check.optional_limit(time_limit, "time_limit")
    places = query.directions()
    line = places[:, 0] if places.shape[1] == 1 else None
    distance, adversary = furthest_pair(query, line, priors == "all")
    m = max(query.space.sizes)
    if distance == 0.0:
        return IndividualCapacity(0.0, 0.0, adversary)
    near, far = distance * (1.0 - _BLUR), distance * (1.0 + _BLUR)
    pair = Bracket(noise.pair(near).lower, noise.pair(far).upper)
    if m == 2 or (line is not None and far <= noise.few):
        return IndividualCapacity(pair.lower, pair.upper, adversary)
    most = min(
        noise.ceiling(far, min(places.shape[1], m - 1)),
        round_up(pair.upper * mean_questions(m)),
        round_up(math.log(m)),
    )
    best = IndividualCapacity(pair.lower, max(most, pair.lower), adversary)
    if line is not None:
        apart = told_apart(query, line, noise.gap * (1.0 + _BLUR), priors == "all")
        if apart is not None:
            least = lowered(math.log(m), 8.0) - noise_tables.MISTAKE
            return IndividualCapacity(least, best.upper, apart)
    table, numbers = _table(places[:, :2], noise)
    if table is None:
        return best
    listed = Listed(numbers, query.space, len(table.laws))
    channel = QueryChannel._trusted(listed, table.laws)
    told = individual_capacity(channel, priors, gap=width, time_limit=seconds)
    told = widened(told, table.rounding)
    low, high = told.lower - table.error, min(told.upper + table.error, most)
    if places.shape[1] > 2:  # seen along two directions only: less is told
        high = most
    if low < best.lower:
        return IndividualCapacity(best.lower, max(best.lower, high), adversary)
    return IndividualCapacity(low, max(low, high), told.adversary)


def _table(places: Floats, noise: _Noise) -> tuple[Table | None, Ints]:
    """Return the output laws of all answers and the answer of each database; None: too many."""
    answers, numbers = np.unique(places, axis=0, return_inverse=True)
    numbers = numbers.reshape(-1)
    if places.shape[1] == 2:
        fits = len(answers) * noise_tables.plane_entries(answers) <= _TABLE
        return noise_tables.plane_table(answers) if fits else None, numbers
    points = noise_tables.closer(answers[:, 0], noise.gap)
    if len(points) * noise.entries(points) > _TABLE:
        return None, numbers
    table = noise.table(points)
    cut = points[-1] < answers[-1, 0] - answers[0, 0]
    return table._replace(error=table.error + (noise_tables.MISTAKE if cut else 0.0)), numbers
