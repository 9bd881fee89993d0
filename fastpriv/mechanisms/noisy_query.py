"""Normal and Laplace noise on a query: what an output reveals about one row, or about all.

A query is a list of answers, one for every database (:class:`Query`), or a
:class:`~fastpriv.mechanisms.noisy_sums.SumQuery`.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.clock import Meter
from fastpriv._core.rounding import LEAST, log1p_up, lowered, raised
from fastpriv._core.validation import Floats, Ints
from fastpriv.channels import QueryChannel
from fastpriv.channels.queries import Listed
from fastpriv.errors import InvalidInput, described, short
from fastpriv.measures.individual import individual_capacity
from fastpriv.measures.individual.adversary import widened
from fastpriv.mechanisms.noise import (
    BLUR,
    FLAT,
    FURTHEST,
    GAUSSIAN,
    LAPLACE,
    MISTAKE,
    Noise,
    as_doubles,
    largest_capacity,
    noise_table,
    pair_capacity,
)
from fastpriv.mechanisms.noisy_sums import SumQuery, all_sums, check_line, sum_capacity
from fastpriv.results import Adversary, IndividualCapacity
from fastpriv.spaces import Space

__all__ = ["gaussian_query_capacity", "laplace_query_capacity", "laplace_query_leakage"]

#: Most pairs of answers in several dimensions.
_PAIRS = 1 << 22
#: Most columns whose orders are all tried: 120 of them.
_ALL_ORDERS = 5


def gaussian_query_capacity(
    values: ArrayLike | SumQuery,
    sigma: float | ArrayLike,
    space: Space | ArrayLike | None = None,
    *,
    priors: str = "all",
    gap: float = 1e-9,
    time_limit: float | None = 60.0,
) -> IndividualCapacity:
    """Individual capacity of a query with normal noise, in nats: the most it reveals about a row.

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
        Seconds for the search over selections of answers. Large tables of answers are left out if
        there is no time for them.

    Returns
    -------
    IndividualCapacity
        A certified bracket, with the adversary that attains its lower bound.

    Notes
    -----
    For bits the worst adversary knows the two answers furthest apart, and so does any adversary
    while these are at most 2 sigma apart. Otherwise the density is replaced by its values on a grid
    with a proved error (``fastpriv.mechanisms.noise``), and the finite channel is searched. On a
    line the grid has about 11 (a + 10) a points for answers within 2a standard deviations, in a
    plane that many for each axis. Beyond 2^23 entries for all answers, and for vectors in more than
    two directions, the bracket is wide. Answers that are 24 standard deviations apart need no grid.
    Cost O(N n) for bits.

    For a :class:`SumQuery` bits and independent rows need O(1). With more values the answers of up
    to 4096 types of the other rows are searched. If there are more types, the lower bound comes
    from some of the answers, and the upper bound from the best m points within their range.

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
    """Individual capacity of a query with Laplace noise, in nats: the most it reveals about a row.

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
        A certified bracket, with the adversary that attains its lower bound.

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
    total = raised(math.fsum(parts), 16.0) + float(times.sum()) * LEAST  # small gaps may underflow
    return log1p_up(total)


def _gaps(values: ArrayLike | SumQuery, scale: float) -> tuple[Floats, Ints]:
    """Return the gaps between neighbouring answers in units of the noise, and their counts."""
    if isinstance(values, SumQuery):
        sums, whole = all_sums(values)
        gaps, times = np.unique(np.diff(sums), return_counts=True)
        top, bottom = scale.as_integer_ratio()
        # Quotients of integers are rounded once; beyond 2000 the part of a gap is 1.
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
    """Check the arguments that all kinds of noise and queries share, and compute the capacity."""
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
    distance, adversary = _furthest_pair(query, line, priors == "all")
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
        apart = _distinguished(query, line, noise.gap * (1.0 + BLUR) + 2.0 * error, priors == "all")
        if apart is not None:
            lower = lowered(math.log(m), 8.0) - MISTAKE
            return IndividualCapacity(lower, best.upper, apart)
    meter = Meter(seconds, 0.0)
    table, numbers = noise_table(places[:, :2], noise, error, meter)
    if table is None:
        return best
    listed = Listed(numbers, query.space, len(table.rows))
    channel = QueryChannel.of(listed, table.rows)
    found = individual_capacity(channel, priors, gap=width, time_limit=meter.seconds_left())
    found = widened(found, table.rounding)
    low, high = found.lower - table.error, min(found.upper + table.error, most)
    if places.shape[1] > 2:  # two of the directions give a lower bound only
        high = most
    if low < best.lower:
        return IndividualCapacity(best.lower, max(best.lower, high), adversary)
    return IndividualCapacity(low, max(low, high), found.adversary)


# Answers of all databases, and adversaries who know answers far apart.


@dataclass(frozen=True)
class Query:
    """Answers of all databases, in units of the noise."""

    points: Floats  # (N, d)
    space: Space
    varies: bool  # whether any two answers differ, even if the difference underflows

    @staticmethod
    def of(values: Floats, scales: Floats, name: str, space: Space | ArrayLike) -> Query:
        """Check and scale the answers; differences from the smallest one keep their digits."""
        databases = space if isinstance(space, Space) else Space(space)
        if len(values) != databases.size:
            raise InvalidInput(
                f"values must hold one answer for each of the {short(databases.size)} databases, "
                f"got {len(values)}"
            )
        table = as_doubles(values, "values").reshape(len(values), -1)
        if not np.isfinite(table).all():
            raise InvalidInput("values must not hold a NaN or an infinity")
        with np.errstate(over="ignore"):
            points = (table - table.min(axis=0)) / scales
        if not points.max() <= FURTHEST:
            raise InvalidInput(
                f"values may be at most {FURTHEST:g} times {name} apart; use a larger {name}"
            )
        return Query(points, databases, bool((table != table[0]).any()))

    def directions(self) -> tuple[Floats, float]:
        """Return the answers in coordinates of the directions in which they vary, of shape (N, r).

        The second result bounds their error, by rounding and by directions that are left out.
        """
        error = float(np.linalg.norm(self.points, axis=1).max()) * BLUR
        moved = self.points - self.points.mean(axis=0)
        if moved.shape[1] == 1 or not moved.any():
            return self.points[:, :1], error
        _, sizes, axes = np.linalg.svd(moved, full_matrices=False)
        axes = axes[sizes > FLAT * sizes[0]]
        places = moved @ axes.T
        left_out = float(np.linalg.norm(moved - places @ axes, axis=1).max())
        return places, error * (1.0 + 0.125 * moved.shape[1]) + left_out

    def lines(self, i: int) -> Ints:
        """Return the databases by the other rows and the value of row i, of shape (N/m, m)."""
        m, inner = self.space.sizes[i], int(self.space.strides[i])
        numbers = np.arange(self.space.size).reshape(-1, m, inner)
        return np.asarray(np.swapaxes(numbers, 1, 2).reshape(-1, m))


def _distinguished(query: Query, line: Floats, gap: float, all_of_them: bool) -> Adversary | None:
    """Return an adversary with answers a gap apart for all values of a longest row, if any."""
    m = max(query.space.sizes)
    for i in np.flatnonzero(np.array(query.space.sizes) == m).tolist():
        lines = query.lines(i)
        values = line[lines]
        if all_of_them:
            chosen = _far_apart(values, gap)
        else:
            nearest = np.diff(np.sort(values, axis=1), axis=1).min(axis=1)
            at = int(nearest.argmax())
            chosen = np.full(m, at) if nearest[at] >= gap else None
        if chosen is not None:
            databases = query.space.rows(lines[chosen, np.arange(m)])
            return Adversary((i,), databases, np.full(m, 1.0 / m))
    return None


def _far_apart(values: Floats, gap: float) -> Ints | None:
    """Choose an entry of each column so that all are a gap apart, for some order of the columns.

    In a given order the smallest entry beyond the last one is the best choice. All orders of up to
    5 columns are tried, otherwise the orders by smallest and by largest entries.
    """
    m = values.shape[1]
    order = np.argsort(values, axis=0)
    ordered = np.take_along_axis(values, order, axis=0)
    some = [np.argsort(ordered[0]).tolist(), np.argsort(ordered[-1]).tolist()]
    for columns in itertools.permutations(range(m)) if m <= _ALL_ORDERS else some:
        chosen, last = np.zeros(m, dtype=np.int64), -math.inf
        for a in columns:
            k = int(np.searchsorted(ordered[:, a], last + gap))
            if k == len(values):
                break
            chosen[a], last = order[k, a], float(ordered[k, a])
        else:
            return chosen
    return None


def _furthest_pair(query: Query, line: Floats | None, all_of_them: bool) -> tuple[float, Adversary]:
    """Return the largest distance of answers with different values of a row, and its adversary."""
    best, pair, row = -1.0, (0, 0), 0
    for i, m in enumerate(query.space.sizes):
        lines = query.lines(i)
        if m == 1:
            continue
        if line is None:
            distance, found = _apart(query.points, lines, all_of_them)
        elif all_of_them:
            distance, found = _spread(line, lines)
        else:
            values = line[lines]
            at = int((values.max(axis=1) - values.min(axis=1)).argmax())
            found = int(lines[at, values[at].argmin()]), int(lines[at, values[at].argmax()])
            distance = float(np.ptp(values[at]))
        if distance > best:
            best, pair, row = distance, found, i
    rows = query.space.rows(np.array(pair))
    if best < 0.0:  # rows of one value
        return 0.0, Adversary((0,), rows[:1], np.ones(1))
    databases = np.repeat(rows[:1], query.space.sizes[row], axis=0)
    databases[:, row] = np.arange(query.space.sizes[row])
    prior = np.zeros(len(databases))
    for database in rows:
        databases[database[row]], prior[database[row]] = database, 0.5
    return max(best, 0.0), Adversary((row,), databases, prior)


def _spread(line: Floats, lines: Ints) -> tuple[float, tuple[int, int]]:
    """Return the largest difference of answers with different values, and its databases."""
    values = line[lines]
    high, low = values.argmax(axis=0), values.argmin(axis=0)
    columns = np.arange(lines.shape[1])
    gaps = values[high, columns][:, None] - values[low, columns]
    np.fill_diagonal(gaps, -1.0)
    a, b = np.unravel_index(gaps.argmax(), gaps.shape)
    return float(gaps[a, b]), (int(lines[low[b], b]), int(lines[high[a], a]))


def _apart(points: Floats, lines: Ints, all_of_them: bool) -> tuple[float, tuple[int, int]]:
    """Return the same for vectors: over all pairs with different values, or over neighbours."""
    best, pair = -1.0, (0, 0)
    m = lines.shape[1]
    for a in range(m):
        for b in range(a + 1, m):
            first, second = lines[:, a], lines[:, b]
            if all_of_them:
                first, second = (_distinct(points, part) for part in (first, second))
                check.fits(len(first) * len(second), "the pairs of answers", "use fewer", _PAIRS)
                first, second = np.repeat(first, len(second)), np.tile(second, len(first))
            distances = np.linalg.norm(points[first] - points[second], axis=1)
            at = int(distances.argmax())
            if distances[at] > best:
                best, pair = float(distances[at]), (int(first[at]), int(second[at]))
    return best, pair


def _distinct(points: Floats, databases: Ints) -> Ints:
    """Return one database for each distinct answer."""
    return np.asarray(databases[np.unique(points[databases], axis=0, return_index=True)[1]])
