"""Normal and Laplace noise on a given query: what an output tells about one row, or about all."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.clock import Meter
from fastpriv._core.rounding import LEAST, log1p_up, lowered, raised
from fastpriv._core.validation import Floats, Ints
from fastpriv.channels import QueryChannel
from fastpriv.channels.queries import Listed
from fastpriv.errors import InvalidInput, described
from fastpriv.measures.individual import individual_capacity
from fastpriv.measures.individual.adversary import widened
from fastpriv.mechanisms import noise_tables
from fastpriv.mechanisms.answers import BLUR, Query, as_doubles, furthest_pair, told_apart
from fastpriv.mechanisms.noise_kinds import (
    GAUSSIAN,
    LAPLACE,
    Noise,
    largest_capacity,
    noise_table,
    pair_capacity,
)
from fastpriv.mechanisms.noisy_sums import sum_capacity
from fastpriv.mechanisms.sum_query import SumQuery, all_sums, check_line
from fastpriv.results import IndividualCapacity
from fastpriv.spaces import Space

__all__ = ["gaussian_query_capacity", "laplace_query_capacity", "laplace_query_leakage"]


def gaussian_query_capacity(
    values: ArrayLike | SumQuery,
    sigma: float | ArrayLike,
    space: Space | ArrayLike | None = None,
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
    values : array of shape (N,) or (N, d), or SumQuery
        The answer f(x) for every database, in C order: a number, or a vector of d numbers. A count,
        sum or histogram of many rows is a :class:`SumQuery`.
    sigma : float or array of length d
        Standard deviation of the noise, above 0, or one for each coordinate. For noise of
        covariance L L^T give the vectors L^-1 f(x) and sigma = 1.
    space : Space or sequence of int
        The databases. A :class:`SumQuery` has its own.
    priors : {"all", "independent"}
        Which priors an adversary may have; see :func:`fastpriv.individual_capacity`.
    gap : float
        Width to reach, in nats, and relative to capacities below one nat.
    time_limit : float or None
        Seconds for the search over selections of answers, where there is one. Large tables of
        answers are left out where there is no time for them.

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

    For a :class:`SumQuery` bits need O(1), and so do independent rows. With more values the answers
    of up to 4096 types of the other rows are searched. If there are more, the lower end comes from
    some of the answers, and the upper end from the best m points anywhere within their range.

    Examples
    --------
    How many of three bits are set, with noise of size 1:

    >>> import fastpriv as fp
    >>> count = [0, 1, 1, 2, 1, 2, 2, 3]
    >>> fp.mechanisms.gaussian_query_capacity(count, 1.0, [2, 2, 2])
    IndividualCapacity(0.5267773065, 0.5267773066)
    >>> fp.mechanisms.gaussian_query_capacity(count, 1.0, [2, 2, 2], priors="independent")
    IndividualCapacity(0.1114214821, 0.1114214822)

    The sum of a million ratings, with noise of a quarter of its range:

    >>> stars = fp.mechanisms.SumQuery([[0, 1, 2]] * 1_000_000)
    >>> fp.mechanisms.gaussian_query_capacity(stars, 5e5)
    IndividualCapacity(0.6528688117, 0.6528688122)
    """
    scales = _scales(sigma)
    if isinstance(values, SumQuery):
        _check_scales(scales, values.dimensions)
        return _capacity(values, scales, "sigma", space, GAUSSIAN, priors, gap, time_limit)
    given = check.array(values, "values")
    if given.ndim not in (1, 2) or given.dtype.kind not in "iufb" or not given.size:
        raise InvalidInput(
            f"values must be numbers or vectors of them, got shape {given.shape} of {given.dtype}"
        )
    _check_scales(scales, given.shape[1] if given.ndim == 2 else 1)
    return _capacity(given, scales, "sigma", space, GAUSSIAN, priors, gap, time_limit)


def _scales(sigma: float | ArrayLike) -> Floats:
    given = check.array(sigma, "sigma")
    if given.dtype.kind == "b":
        raise InvalidInput(
            f"sigma must be a number, or one for each coordinate, got {described(sigma)}"
        )
    return np.atleast_1d(given).astype(np.float64)


def _check_scales(scales: Floats, dimensions: int) -> None:
    if scales.shape not in ((1,), (dimensions,)):
        more = f", or {dimensions} of them" if dimensions > 1 else " for answers that are numbers"
        raise InvalidInput(f"sigma must be one number{more}, got shape {scales.shape}")


def laplace_query_capacity(
    values: ArrayLike | SumQuery,
    scale: float,
    space: Space | ArrayLike | None = None,
    *,
    priors: str = "all",
    gap: float = 1e-9,
    time_limit: float | None = 60.0,
) -> IndividualCapacity:
    """Individual capacity of a query with Laplace noise: the most it tells about one row, in nats.

    As :func:`gaussian_query_capacity`, with noise of density e^(-|z|/scale)/(2 scale).

    Parameters
    ----------
    values : array of length N, or SumQuery
        The answer f(x) for every database, in C order; or a sum of numbers over many rows.
    scale : float
        Scale b of the noise, above 0.
    space : Space or sequence of int
        The databases. A :class:`SumQuery` has its own.
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
    scales = np.array([check.real(scale, "scale", LEAST)])
    if isinstance(values, SumQuery):
        check_line(values)
        return _capacity(values, scales, "scale", space, LAPLACE, priors, gap, time_limit)
    given = check.array(values, "values")
    if given.ndim != 1 or given.dtype.kind not in "iufb" or not given.size:
        raise InvalidInput(
            f"values must be a list of numbers, got shape {given.shape} of {given.dtype}"
        )
    return _capacity(given, scales, "scale", space, LAPLACE, priors, gap, time_limit)


def laplace_query_leakage(values: ArrayLike | SumQuery, scale: float) -> float:
    """Maximal leakage of a query with Laplace noise about the whole database, in nats.

    ln of the integral of max_x p(y|x) (Issa-Wagner-Kamath 2020, Theorem 1). Between neighbouring
    answers at a distance g the largest density has mass 1 - e^(-g/2b), and 1/2 beyond each end, so
    that the leakage is ln(1 + sum over gaps of (1 - e^(-g/2b))).

    Parameters
    ----------
    values : array or SumQuery
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
    b = check.real(scale, "scale", LEAST)
    gaps, times = _gaps(values, b)
    parts = -np.expm1(-0.5 * gaps) * times
    total = raised(math.fsum(parts), 16.0) + float(times.sum()) * LEAST  # small gaps may be lost
    return log1p_up(total)


def _gaps(values: ArrayLike | SumQuery, scale: float) -> tuple[Floats, Ints]:
    """Return the gaps between neighbouring answers in units of the noise, and how often each is."""
    if isinstance(values, SumQuery):
        sums, whole = all_sums(values)
        gaps, times = np.unique(np.diff(sums), return_counts=True)
        top, bottom = scale.as_integer_ratio()
        # Quotients of whole numbers are rounded once; beyond 2000 answers are told apart.
        far = 2000 * top * whole // bottom + 1
        return np.array([min(g, far) * bottom / (top * whole) for g in gaps.tolist()]), times
    answers = np.unique(as_doubles(check.array(values, "values"), "values"))
    if not answers.size or not np.isfinite(answers).all():
        raise InvalidInput("values must hold at least one number, and no NaN or infinity")
    with np.errstate(over="ignore", under="ignore"):
        return np.diff(answers) / scale, np.ones(len(answers) - 1, np.int64)


def _capacity(
    given: Floats | SumQuery,
    scales: Floats,
    name: str,
    space: Space | ArrayLike | None,
    noise: Noise,
    priors: str,
    gap: float,
    time_limit: float | None,
) -> IndividualCapacity:
    """Check what all kinds of noise and queries have in common, and look for the answer."""
    check.word(priors, "priors", ("all", "independent"))
    width = check.real(gap, "gap", least=0.0)
    seconds = check.optional_limit(time_limit, "time_limit")
    if (space is None) != isinstance(given, SumQuery):
        raise InvalidInput("give the space of a list of answers, and none for a SumQuery")
    if not (np.isfinite(scales).all() and (scales > 0.0).all()):
        raise InvalidInput(f"{name} must be finite and above 0: without noise nothing is hidden")
    if isinstance(given, SumQuery):
        return sum_capacity(given, scales, noise, priors == "independent", width, seconds)
    assert space is not None
    return _listed(Query.of(given, scales, name, space), noise, priors, width, seconds)


def _listed(
    query: Query, noise: Noise, priors: str, width: float, seconds: float | None
) -> IndividualCapacity:
    """Return the capacity of a query that is given for every database."""
    places, error = query.directions()
    line = places[:, 0] if places.shape[1] == 1 else None
    distance, adversary = furthest_pair(query, line, priors == "all")
    m = max(query.space.sizes)
    if distance == 0.0:
        return IndividualCapacity(0.0, LEAST if query.varies else 0.0, adversary)
    blur = BLUR + 0.125 * error / distance  # two answers are off by two units each
    far, pair = distance * (1.0 + blur), pair_capacity(noise, distance, blur)
    if m == 2 or (line is not None and far <= noise.few):
        return IndividualCapacity(pair.lower, pair.upper, adversary)
    most = largest_capacity(noise, pair, far, m, places.shape[1])
    best = IndividualCapacity(pair.lower, most, adversary)
    if line is not None:
        apart = told_apart(query, line, noise.gap * (1.0 + BLUR) + 2.0 * error, priors == "all")
        if apart is not None:
            least = lowered(math.log(m), 8.0) - noise_tables.MISTAKE
            return IndividualCapacity(least, best.upper, apart)
    meter = Meter(seconds, 0.0)
    table, numbers = noise_table(places[:, :2], noise, error, meter)
    if table is None:
        return best
    listed = Listed(numbers, query.space, len(table.laws))
    channel = QueryChannel.of(listed, table.laws)
    told = individual_capacity(channel, priors, gap=width, time_limit=meter.seconds_left())
    told = widened(told, table.rounding)
    low, high = told.lower - table.error, min(told.upper + table.error, most)
    if places.shape[1] > 2:  # seen along two directions only: less is told
        high = most
    if low < best.lower:
        return IndividualCapacity(best.lower, max(best.lower, high), adversary)
    return IndividualCapacity(low, max(low, high), told.adversary)
