"""Normal and Laplace noise on a query: what an output reveals about one row, or about all.

A query is a list of answers, one for every database (:class:`Query`), or a
:class:`~fastpriv.mechanisms.noisy_sums.SumQuery`.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastpriv._core import validation as check
from fastpriv._core.clock import Meter
from fastpriv._core.rounding import (
    LEAST,
    log1p_up,
    lowered,
    raised,
    roundoff,
    sum_error,
)
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.information import matrix_information
from fastpriv._matrices.leakage import log_error
from fastpriv.channels import QueryChannel
from fastpriv.channels.queries import Listed, Sum
from fastpriv.errors import InvalidInput, described, short
from fastpriv.measures.individual import individual_capacity
from fastpriv.measures.individual.adversary import information_error, widened
from fastpriv.measures.leakage import information_share
from fastpriv.measures.realised import INFORMATION_ERROR
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
from fastpriv.mechanisms.noisy_sums import (
    SumQuery,
    all_sums,
    check_line,
    integer_scores,
    sum_capacity,
)
from fastpriv.priors import Distribution
from fastpriv.priors.base import as_prior
from fastpriv.results import Adversary, Bracket, IndividualCapacity
from fastpriv.spaces import Space

__all__ = [
    "QueryInformation",
    "gaussian_query_capacity",
    "gaussian_query_information",
    "laplace_query_capacity",
    "laplace_query_information",
    "laplace_query_leakage",
    "laplace_query_pml",
]

#: Most pairs of answers in several dimensions.
_PAIRS = 1 << 22
#: Most columns whose orders are all tried: 120 of them.
_ALL_ORDERS = 5
#: Probability on either side that may be left out of a large table of answers.
_LEFT_OUT = 1e-18
#: Most pairs of an output and an answer whose densities are added up.
_DENSITIES = 1 << 30
#: Pairs of an output and an answer that are added up at a time.
_BLOCK = 1 << 20
#: Terms of a sum of densities that are smaller than the largest by this logarithm do not matter.
_SMALL_TERM = 64.0


def gaussian_query_capacity(
    values: ArrayLike | SumQuery,
    sigma: float | ArrayLike,
    space: Space | ArrayLike | None = None,
    *,
    priors: str = "all",
    gap: float = 1e-9,
    time_limit: float | None = 60.0,
) -> IndividualCapacity:
    """Bound the individual capacity of a query with normal noise, in nats.

    Y = f(X) + sigma Z with Z standard normal. C_1 is the largest I(X_i; Y) over records i and
    priors (Wu-Xia-He 2020, Definition 5). It is the largest capacity of normal noise on m_i points,
    one answer f(x) for each value of x_i (Theorem 2 there).

    Parameters
    ----------
    values : array of shape (N,) or (N, d), or SumQuery
        The answer f(x) for every database, in C order: a number, or a vector of d numbers. A count,
        sum or histogram of many records is a :class:`SumQuery`.
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
    For bits, and for answers at most 2 sigma apart, the worst prior is on the two answers that are
    furthest apart; cost O(N n). Otherwise the density is replaced by its values on a grid with a
    proved error, and the finite channel is searched. The bracket is wide beyond 2^23 entries for
    all answers, and for vectors in more than two directions. For a :class:`SumQuery`, bits and
    independent records need O(1), and more values are searched over up to 4096 types of the other
    records.

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
    given, scales = _with_scales(values, sigma)
    return _capacity(given, scales, "sigma", space, GAUSSIAN, priors, gap, time_limit)


def _with_scales(
    values: ArrayLike | SumQuery, sigma: float | ArrayLike
) -> tuple[Floats | SumQuery, Floats]:
    """Check the answers, and the standard deviations of their coordinates."""
    scales = _scales(sigma)
    if isinstance(values, SumQuery):
        _check_scales(scales, values.dimensions)
        return values, scales
    given = check.array(values, "values")
    if given.ndim not in (1, 2) or given.dtype.kind not in "iufb" or not given.size:
        raise InvalidInput(
            f"values must be numbers or vectors of them; got shape {given.shape} of {given.dtype}."
        )
    _check_scales(scales, given.shape[1] if given.ndim == 2 else 1)
    return given, scales


def _scales(sigma: float | ArrayLike) -> Floats:
    given = check.array(sigma, "sigma")
    if given.dtype.kind == "b":
        raise InvalidInput(
            f"sigma must be a number, or one for each coordinate; got {described(sigma)}."
        )
    return np.atleast_1d(given).astype(np.float64)


def _check_scales(scales: Floats, dimensions: int) -> None:
    if scales.shape not in ((1,), (dimensions,)):
        more = f", or {dimensions} of them" if dimensions > 1 else " for answers that are numbers"
        raise InvalidInput(f"sigma must be one number{more}; got shape {scales.shape}.")


def laplace_query_capacity(
    values: ArrayLike | SumQuery,
    scale: float,
    space: Space | ArrayLike | None = None,
    *,
    priors: str = "all",
    gap: float = 1e-9,
    time_limit: float | None = 60.0,
) -> IndividualCapacity:
    """Bound the individual capacity of a query with Laplace noise, in nats.

    As :func:`gaussian_query_capacity`, with noise of density e^(-|z|/scale)/(2 scale).

    Parameters
    ----------
    values : array of length N, or SumQuery
        The answer f(x) for every database, in C order; or a sum of numbers over many records.
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
    given, scales = _with_scale(values, scale)
    return _capacity(given, scales, "scale", space, LAPLACE, priors, gap, time_limit)


def _with_scale(values: ArrayLike | SumQuery, scale: float) -> tuple[Floats | SumQuery, Floats]:
    """Check answers that are numbers, and the scale of their noise."""
    scales = np.array([check.real(scale, "scale", LEAST)])
    if isinstance(values, SumQuery):
        check_line(values)
        return values, scales
    given = check.array(values, "values")
    if given.ndim != 1 or given.dtype.kind not in "iufb" or not given.size:
        raise InvalidInput(
            f"values must be a list of numbers; got shape {given.shape} of {given.dtype}."
        )
    return given, scales


def laplace_query_leakage(values: ArrayLike | SumQuery, scale: float) -> float:
    """Compute the maximal leakage of a query with Laplace noise, in nats.

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
        raise InvalidInput("values must hold at least one number, and no NaN or infinity.")
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
        raise InvalidInput(
            "space must be given with a list of answers, and left out with a SumQuery."
        )
    if not (np.isfinite(scales).all() and (scales > 0.0).all()):
        raise InvalidInput(f"{name} must be finite and above 0; without noise nothing is hidden.")
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
                f"got {len(values)}."
            )
        table = as_doubles(values, "values").reshape(len(values), -1)
        if not np.isfinite(table).all():
            raise InvalidInput("values must not hold a NaN or an infinity.")
        with np.errstate(over="ignore"):
            points = (table - table.min(axis=0)) / scales
        if not points.max() <= FURTHEST:
            raise InvalidInput(
                f"values may be at most {FURTHEST:g} times {name} apart; use a larger {name}."
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


# Under a known prior.


@dataclass(frozen=True, eq=False, repr=False)
class QueryInformation(Bracket):
    """The information I(X; Y) in a noisy answer, in nats, and its share of the entropy of X.

    A :class:`~fastpriv.Bracket`. ``leakage_factor`` is a bracket of I(X; Y) / H(X).

    Examples
    --------
    >>> import fastpriv as fp
    >>> bit = fp.mechanisms.laplace_query_information([0, 1], 1.0, [0.5, 0.5])
    >>> bit.leakage_factor
    Bracket(0.1277068459, 0.127706846)
    """

    leakage_factor: Bracket


def gaussian_query_information(
    values: ArrayLike | SumQuery, sigma: float | ArrayLike, prior: Distribution | ArrayLike
) -> QueryInformation:
    """Bound the information I(X; Y) in a query with normal noise under a prior, and its share.

    Y = f(X) + sigma Z with Z standard normal. The share I(X; Y) / H(X) is the leakage factor
    (Makhdoumi-Fawaz 2013, Definition 1).

    Parameters
    ----------
    values : array of shape (N,) or (N, d), or SumQuery
        The answer f(x) for every database, in C order: a number, or a vector of d numbers. A sum of
        numbers over many rows is a :class:`SumQuery`.
    sigma : float or array of length d
        Standard deviation of the noise, above 0, or one for each coordinate.
    prior : Distribution or 1-D array
        Distribution of the databases.

    Returns
    -------
    QueryInformation
        A proved bracket, 1e-12 to 1e-9 wide. It is wider for answers in more than two directions,
        and for more than 2^23 pairs of an answer and an output of the grid.

    Notes
    -----
    The density is replaced by its values on a grid with a proved error, as for
    :func:`gaussian_query_capacity`. The distribution of a sum is computed in the structure of the
    prior. Answers at the two ends of a large table that have probability below 1e-18 are left out
    and accounted for.

    Examples
    --------
    How many of 1,000 bits are set, with noise of standard deviation 10:

    >>> import fastpriv as fp
    >>> count = fp.mechanisms.SumQuery.count(1000)
    >>> fp.mechanisms.gaussian_query_information(count, 10.0, fp.Product.iid([0.7, 0.3], 1000))
    QueryInformation(0.5656812864, 0.5656812865)
    """
    return _information(*_with_scales(values, sigma), "sigma", prior, GAUSSIAN)


def laplace_query_information(
    values: ArrayLike | SumQuery, scale: float, prior: Distribution | ArrayLike
) -> QueryInformation:
    """Bound the information I(X; Y) in a query with Laplace noise under a prior, and its share.

    As :func:`gaussian_query_information`, with noise of density e^(-|z|/scale)/(2 scale).

    Parameters
    ----------
    values : array of length N, or SumQuery
        The answer f(x) for every database, in C order; or a sum of numbers over many records.
    scale : float
        Scale b of the noise, above 0.
    prior : Distribution or 1-D array
        Distribution of the databases.

    Returns
    -------
    QueryInformation
        A proved bracket, 1e-12 to 1e-9 wide. It is wider for more than about 700 answers that can
        occur, because the table has 16 outputs between neighbouring answers.

    Examples
    --------
    A count of 256 bits that is a multiple of 4, all 65 values equally likely (Makhdoumi-Fawaz 2013,
    Example 4 with k = 4):

    >>> import fastpriv as fp
    >>> noisy = fp.mechanisms.laplace_query_information(range(0, 257, 4), 1.0, [1 / 65] * 65)
    >>> round(noisy.leakage_factor.upper, 4)
    0.9067
    """
    return _information(*_with_scale(values, scale), "scale", prior, LAPLACE)


def laplace_query_pml(
    values: ArrayLike | SumQuery,
    scale: float,
    prior: Distribution | ArrayLike,
    y: ArrayLike | None = None,
    *,
    row: int | None = None,
) -> float | Floats:
    """Compute the pointwise maximal leakage of a query with Laplace noise, in nats.

    l(X -> y) = ln max_x p(y|x) / p(y) (Saeidian et al. 2024, Theorem 2.4, for densities), or l(X_i
    -> y) about one record, which maximises over the values of that record.

    Parameters
    ----------
    values : array of length N, or SumQuery
        The answer f(x) for every database, in C order; or a sum of numbers over many records.
    scale : float
        Scale b of the noise, above 0.
    prior : Distribution or 1-D array
        Distribution of the databases.
    y : array of float, optional
        Outputs; infinities are allowed. Default: the largest leakage over all outputs.
    row : int, optional
        The record i about which something is leaked. Default: the whole database.

    Returns
    -------
    float or ndarray
        The largest leakage, or the leakage at each y, rounded up by about 1e-13 times the range of
        the answers over b; by more if probabilities of answers underflow.

    Notes
    -----
    Between neighbouring answers every density is A e^(y/b) + B e^(-y/b), so a ratio of two is
    monotone in y, and constant beyond the outermost answers. The leakage is largest at an answer.
    Cost O(k^2) for k answers that can occur, O(k) for each y.

    Examples
    --------
    The fraction of ones among 100 bits with noise of scale 0.01, about one bit:

    >>> import fastpriv as fp
    >>> fraction = fp.mechanisms.SumQuery([[0.0, 0.01]] * 100)
    >>> bits = fp.Product.iid([0.7, 0.3], 100)
    >>> round(fp.mechanisms.laplace_query_pml(fraction, 0.01, bits, row=0), 6)
    0.584265
    >>> round(fp.mechanisms.laplace_query_pml(fraction, 0.01, bits), 4)  # about all of them
    58.4265
    """
    given, scales = _with_scale(values, scale)
    answers = _Answers.of(given, scales, "scale", prior)
    joint, error = answers.logs() if row is None else answers.row_logs(_row(row, answers.space))
    seen = (joint > -math.inf).any(axis=0)
    joint, points = joint[:, seen], answers.points[seen, 0]
    if y is None:
        level = _leakages(joint, points, points, row is None)
        return raised(float(level.max()) + error + 2.0 * answers.error, 8.0)
    places = np.asarray(check.array(y, "y"), dtype=np.float64)
    if np.isnan(places).any():
        raise InvalidInput("y must be numbers; got a NaN. Leave it out.")
    with np.errstate(over="ignore"):
        moved = np.clip((places - answers.origin) / scales[0], points[0], points[-1])
    level = _leakages(joint, points, moved.reshape(-1), row is None).reshape(places.shape)
    off = BLUR * (abs(answers.origin) / scales[0] + points[-1])
    return np.asarray(raised(level + error + 2.0 * (answers.error + off), 8.0))


def _row(row: int, space: Space) -> int:
    return check.index(row, space.n, "row")


def _leakages(joint: Floats, points: Floats, places: Floats, whole: bool) -> Floats:
    """Return the leakage at some places, from logs of the probabilities [v, answer].

    About the whole database the largest density is the one around the nearest answer.
    """
    check.fits(len(places) * joint.size, "the sums of densities", "give some y", _DENSITIES)
    marginal = _log_sum(joint)
    out = np.empty(len(places))
    size = max(1, _BLOCK // joint.size)
    for start in range(0, len(places), size):
        part = slice(start, start + size)
        apart = np.abs(places[part, None] - points)
        given = np.stack([_log_sum(row - apart) for row in joint])
        top = given.max(axis=0)
        output = top + np.log(np.exp(given - top).sum(axis=0))
        most = -apart.min(axis=1) if whole else (given - marginal[:, None]).max(axis=0)
        # Exponents are sums of two numbers whose errors are 8 units of the terms that matter.
        exact = 8.0 * (_SMALL_TERM + np.abs(output)) + math.log2(joint.size) + 64.0
        out[part] = np.maximum(most - output, 0.0) + roundoff(exact)
    return out


def _log_sum(logs: Floats) -> Floats:
    """Return the log of the sum of exponentials along the last axis."""
    top = logs.max(axis=-1, keepdims=True)
    base = np.where(top > -math.inf, top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(base[..., 0] + np.log(np.exp(logs - base).sum(axis=-1)))


def _information(
    given: Floats | SumQuery,
    scales: Floats,
    name: str,
    prior: Distribution | ArrayLike,
    noise: Noise,
) -> QueryInformation:
    """Return the information in the answers with noise, and its share of the entropy."""
    answers = _Answers.of(given, scales, name, prior)
    found = _noisy_information(answers, noise)
    share: float | Bracket = 0.0
    if found.upper > 0.0:  # a certain database has entropy 0
        share = information_share(found, answers.prior.entropy())
    factor = share if isinstance(share, Bracket) else Bracket(share, share)
    return QueryInformation(found.lower, found.upper, factor)


def _noisy_information(answers: _Answers, noise: Noise) -> Bracket:
    """Bound I(X; Y) = I(f(X); Y) by a table of output distributions.

    If answers of probability d are left out, X determines whether they occur, an event T. So
    I(X; Y) = I(T; Y) + I(X; Y | T) is between (1 - d) I and I + h(d) + d ln k.
    """
    law, error = answers.law()
    seen = law > 0.0
    if seen.sum() < 2:
        return Bracket(0.0, 0.0)
    directions = answers.points.shape[1]
    spread = float(np.linalg.norm(np.ptp(answers.points[seen], axis=0))) + 2.0 * answers.error
    entropy = -math.fsum((law[seen] * np.log(law[seen])).tolist()) + float(seen.sum()) * error
    most = raised(min(entropy, noise.ceiling(spread, directions)), 64.0) + LEAST
    for kept in (seen, seen & _likely(law)):
        p, points = law[kept], answers.points[kept, :2]
        table, numbers = noise_table(points, noise, answers.error, Meter(None, math.inf))
        if table is not None:
            break
    else:
        return Bracket(0.0, most)
    out = float(law[seen & ~kept].sum()) * (1.0 + 2.0 * error)
    value = matrix_information(table.rows, np.bincount(numbers, p).astype(np.float64))
    slack = value * (INFORMATION_ERROR + 4.0 * error) + table.error
    slack += information_error(value, table.rounding)
    lower = lowered(max(value - slack, 0.0) * (1.0 - out), 8.0)
    unsure = out * (1.0 - math.log(out) + math.log(len(law))) if out > 0.0 else 0.0
    upper = raised(value + slack + unsure, 8.0)
    # Two directions of several give a lower bound only.
    upper = min(most, upper) if directions <= 2 else most
    return Bracket(min(lower, upper), upper)


def _likely(law: Floats) -> NDArray[np.bool_]:
    """Return which answers are left if a small probability is cut off at either end."""
    return np.asarray((np.cumsum(law) > _LEFT_OUT) & (np.cumsum(law[::-1])[::-1] > _LEFT_OUT))


class _Answers(NamedTuple):
    """The answers of a query under a prior, in units of the noise."""

    query: Listed | Sum
    points: Floats  # (answers, directions), on a line in order and from 0
    error: float  # of the points
    origin: float  # the smallest answer on a line, in the units of the caller
    prior: Distribution

    @staticmethod
    def of(
        given: Floats | SumQuery, scales: Floats, name: str, prior: Distribution | ArrayLike
    ) -> _Answers:
        """Number the answers; those of a sum are counted in its smallest steps."""
        if not (np.isfinite(scales).all() and (scales > 0.0).all()):
            raise InvalidInput(
                f"{name} must be finite and above 0; without noise nothing is hidden."
            )
        if not isinstance(given, SumQuery):
            law = as_prior(prior)
            query = Query.of(given, scales, name, law.space)
            places, error = query.directions()
            points, numbers = np.unique(places, axis=0, return_inverse=True)
            listed = Listed(numbers.reshape(-1), law.space, len(points))
            lowest = float(given.min()) if given.ndim == 1 else 0.0
            return _Answers(listed, points, error, lowest, law)
        law = as_prior(prior, given.space)
        scores, whole = integer_scores(given)
        lows = [min(row) for row in scores]
        step = math.gcd(*(s - low for row, low in zip(scores, lows, strict=True) for s in row)) or 1
        tables = [
            np.array([(s - low) // step for s in row], np.int64)
            for row, low in zip(scores, lows, strict=True)
        ]
        query_sum = Sum(tables, given.which)
        unit = float(Fraction(step, whole) / Fraction(float(scales[0])))
        points = np.arange(query_sum.answers, dtype=np.float64) * unit
        if not points[-1] <= FURTHEST:
            raise InvalidInput(
                f"values may be at most {FURTHEST:g} times {name} apart; use a larger {name}."
            )
        total = sum(c * low for c, low in zip(given.counts, lows, strict=True))
        lowest = float(Fraction(total, whole))
        return _Answers(query_sum, points[:, None], BLUR * float(points[-1]), lowest, law)

    @property
    def space(self) -> Space:
        """Space of the databases."""
        return self.prior.space

    def law(self) -> tuple[Floats, float]:
        """Return the distribution of the answers, and the relative error of its entries."""
        return self.query.law(self.prior), self._law_error()

    def _law_error(self) -> float:
        return self.query.law_error or sum_error(self.space.size, 8)

    def logs(self) -> tuple[Floats, float]:
        """Return the logs of the distribution of the answers as one row, and their error."""
        logs = self.query.log_law(self.prior)
        if logs is not None:
            return logs[None], log_error(logs, self._law_error())
        with np.errstate(divide="ignore"):
            return np.log(self.query.law(self.prior))[None], self._law_error()

    def row_logs(self, i: int) -> tuple[Floats, float]:
        """Return the logs of the joint distribution [v, answer] of a row, and twice their error.

        Values of the row that do not occur are left out.
        """
        if isinstance(self.query, Listed):
            values = self.space.rows(np.arange(self.space.size))[:, i]
            both = Listed(
                values * self.query.answers + self.query.values,
                self.space,
                self.space.sizes[i] * self.query.answers,
            )
            logs, error = _Answers(both, self.points, 0.0, 0.0, self.prior).logs()
            joint = logs.reshape(self.space.sizes[i], -1)
        elif self.query.log_law(self.prior) is None:
            with np.errstate(divide="ignore"):
                joint = np.log(next(self.query.row_laws(self.prior, np.array([i]))))
            error = self._law_error()
        else:
            joint = self.query.log_row_law(self.prior, i)
            error = log_error(joint, self._law_error())
        return joint[(joint > -math.inf).any(axis=1)], 2.0 * error
