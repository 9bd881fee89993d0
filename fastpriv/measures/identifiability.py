"""Identifiability: the largest ratio of posterior probabilities of neighbouring databases."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike

from fastpriv import kernels as compiled
from fastpriv._core import validation as check
from fastpriv._core.logs import log_ratio
from fastpriv._core.rounding import round_up, roundoff, sum_up
from fastpriv._core.validation import Floats
from fastpriv._matrices.leakage import log_error
from fastpriv._matrices.ratios import matrix_level
from fastpriv._structure.neighbours import related_pairs
from fastpriv._structure.rows import RowKernels, TiltedRow
from fastpriv.channels import (
    AbstractChannel,
    Channel,
    HammingChannel,
    ProductChannel,
    QueryChannel,
    TiltedChannel,
)
from fastpriv.channels.local import SupportChannel
from fastpriv.channels.queries import Histogram
from fastpriv.channels.record import ColumnsChannel
from fastpriv.channels.tilted import TiltedProduct
from fastpriv.channels.types import TypeChannel
from fastpriv.measures import supports
from fastpriv.measures.dp import (
    all_ratios,
    home_error,
    live_level,
    log_sum,
    neighbour_level,
    products_error,
)
from fastpriv.measures.inputs import (
    as_pair,
    is_stack,
    measured,
    plain_pair,
    plainly,
    stacked,
    table,
)
from fastpriv.measures.neighbours import group_size, per_distance, with_neighbours
from fastpriv.priors import Dense, Distribution, Exchangeable, Markov, Product
from fastpriv.priors.sums import Odds, group_odds
from fastpriv.spaces import Space

__all__ = ["identifiability_level"]

ChannelLike = AbstractChannel | ArrayLike
PriorLike = Distribution | ArrayLike
#: Below this level the products p(x) W[x, y] would spoil the last digits of an identifiability.
_SMALL = 0.1
#: Times 2^900 and the smallest double, probabilities from here on have all their digits.
_RARE = 2.0**-848
#: How many entries of pairs of answers are compared at a time.
_BLOCK = 1 << 20
#: Most numbers that the search for a group of records in a chain compares.
_WORK = 1 << 32


@overload
def identifiability_level(
    channel: AbstractChannel,
    prior: PriorLike,
    *,
    neighbours: ArrayLike | None = ...,
    group: int = ...,
) -> float: ...
@overload
def identifiability_level(
    channel: ChannelLike,
    prior: PriorLike,
    *,
    neighbours: ArrayLike | None = ...,
    group: int = ...,
    out: Floats | None = ...,
) -> float | Floats: ...
def identifiability_level(
    channel: ChannelLike,
    prior: PriorLike,
    *,
    neighbours: ArrayLike | None = None,
    group: int = 1,
    out: Floats | None = None,
) -> float | Floats:
    """Compute the identifiability level of a mechanism under a prior.

    The level is the largest ln p(x|y)/p(x'|y) over neighbours x, x' and outputs y that can occur
    (Wang-Ying-Zhang 2015, Definition 2). It is infinite if some database has probability zero,
    because the prior alone then excludes that database.

    Parameters
    ----------
    channel : channel, 2-D array, or stack (B, N, K)
        The mechanism, or many matrices.
    prior : Distribution or 1-D array
        Distribution of the databases; for a stack also (B, N), a distribution for each channel.
    neighbours : array or sparse array, optional
        Databases that must be hard to distinguish. Default: those that differ in one record. Pairs
        (k, 2) of integers, or a matrix of zeros and ones, are the edges of a graph. A matrix of
        other numbers has distances d: the level is the largest ratio
        of ln p(x|y)/p(x'|y) to d(x, x').
    group : int
        Number of records in which neighbours may differ. With a graph, the number of its edges
        between neighbours.
    out : array of length B, optional
        Array that receives the results of a stack.

    Returns
    -------
    float, or array of length B for a stack
        Level in nats, rounded up. It is at most ``dp_level(channel) + prior.epsilon_x()``, with
        equality for randomised response (E_d). It is epsilon for E_i under its own prior.

    Examples
    --------
    >>> import fastpriv as fp
    >>> prior = fp.Product.iid([0.8, 0.2], 3)
    >>> level = fp.identifiability_level(fp.HammingChannel(3, 2, 0.5), prior)
    >>> round(level, 6)  # 0.5 + ln 4
    1.886294
    """
    group = group_size(group)
    if neighbours is not None or group > 1:
        is_stack(channel, out)  # out is refused for one matrix
        with_neighbours(channel, None, 1)  # a stack is refused
        mechanism, law = as_pair(channel, prior)
        return related_level(mechanism, law, neighbours, group)
    if (
        out is None
        and (pair := plain_pair(channel, prior))
        and isinstance(channel, Channel)
        and len(channel.space.sizes) == 1
    ):
        level = plainly(compiled.posterior_levels, *pair)
        if level >= 0.0:
            return level
    if is_stack(channel, out):
        return stacked(compiled.posterior_levels, identifiability_level, channel, prior, out)
    return posterior_level(*as_pair(channel, prior))


def related_level(
    channel: AbstractChannel, prior: Distribution, neighbours: ArrayLike | None, group: int
) -> float:
    """Return the posterior level over other neighbours, or over groups of records.

    Channels that act record by record need no list of databases if records are independent, a
    Markov chain or exchangeable bits. Counts, sums and histograms need only the pairs of their
    answers, with the largest odds of the prior for each. Otherwise the cost is O(K) for each pair
    of databases.
    """
    if neighbours is None and isinstance(channel, QueryChannel):
        by_answers = channel.query.odds(prior, min(group, channel.space.n))
        if by_answers is not None:
            return odds_level(channel.kernel.matrix, by_answers)
    own = getattr(channel, "as_product", channel)
    if neighbours is None and isinstance(own, ProductChannel):
        k = min(group, channel.space.n)
        level = group_level(prior, own.kernels, k)
        if level is not None:
            return round_up(level + 2.0 * k * tilt_error(own.kernels))
    matrix, logs = table(channel), prior.logs_if_rare()
    p = prior.probabilities()
    occurs = p > 0.0 if logs is None else logs > -math.inf
    error = products_error(prior) if logs is None else log_error(logs, 0.0)
    worst = 0.0
    for d, pairs in related_pairs(neighbours, channel.space, group):
        pairs = pairs[occurs[pairs[:, 0]]]
        step = max(1, _BLOCK // matrix.shape[1])
        for start in range(0, len(pairs), step):
            x, z = pairs[start : start + step].T
            seen = matrix[x] > 0.0
            ratios = log_ratio(np.where(seen, matrix[x], 1.0), np.where(seen, matrix[z], 1.0))
            top = np.where(seen, ratios, -math.inf).max(axis=1)
            odds = log_ratio(p[x], p[z]) if logs is None else logs[x] - logs[z]
            level = float(log_sum(top, odds).max(initial=0.0))
            level = round_up(level) + error + 4.0 * channel.matrix_error
            worst = max(worst, per_distance(level, d))
    return worst


@singledispatch
def group_level(prior: Distribution, kernels: RowKernels, k: int) -> float | None:
    """Return the largest sum of k records' log-ratios and ln p(x)/p(x'). None if it needs a list.

    The databases x and x' differ in at most k records.
    """
    return None


@group_level.register
def _product_group_level(prior: Product, kernels: RowKernels, k: int) -> float:
    """The k largest levels of single records."""
    laws, which, counts, _ = prior.paired(kernels)
    first, levels = np.zeros(1, dtype=np.int64), []
    for law, kind, count in zip(laws, which, counts.tolist(), strict=True):
        kernel = ProductChannel.of(RowKernels([kernels.distinct[kind]], first))
        level = posterior_level(kernel, Product.of([prior.distinct[law]], first))
        levels += [level] * min(count, k)
    return sum_up(sorted(levels)[-k:])


@group_level.register
def _exchangeable_group_level(prior: Exchangeable, kernels: RowKernels, k: int) -> float | None:
    """Compare the types of bits with one kernel. Cost O(n k).

    Of two types, the databases that differ in most records are worst: one more record of each value
    adds log-ratios that are not negative in total.
    """
    if prior.space.m != 2 or len(kernels.distinct) > 1:
        return None
    n, ratios, worst = prior.space.n, kernels.distinct[0].log_ratios, 0.0
    for first, second, odds, size in group_odds(prior, [np.arange(2)], np.zeros(n, int), k) or ():
        moved = second - first
        up, down = np.maximum(moved, 0), np.maximum(-moved, 0)
        swaps = np.minimum((k - np.abs(moved)) // 2, np.minimum(n - first - up, first - down))
        up, down = up + swaps, down + swaps
        parts = ((up, ratios[0, 1]), (down, ratios[1, 0]))
        kernel = sum(np.where(held > 0, one, 0.0) * np.maximum(held, 1) for held, one in parts)
        levels = log_sum(kernel, odds)
        levels += 2.0**-50 * np.where(levels < math.inf, np.abs(kernel) + size, 0.0)
        worst = max(worst, float(levels.max(initial=0.0)))
    return worst


@group_level.register
def _markov_group_level(prior: Markov, kernels: RowKernels, k: int) -> float | None:
    """Extend two databases record by record, with their last values and how many records differ.

    Between two records that differ, more than two that agree make no difference, so with one kernel
    a chain of 3 k records has the level of any longer one. Cost O(k^2 m^4), else O(n k m^4).
    """
    m, chain = len(prior.initial), [prior.initial]
    if prior.space.n > 1:
        chain += [*prior.transition]
    if m > 1 and min(law.min() for law in chain) == 0.0:
        return math.inf  # a possible database is beside an impossible one
    rows = kernels.assignment if len(kernels.distinct) > 1 else kernels.assignment[: 3 * k]
    work = len(rows) * m**4 * (k + 1)
    check.fits(work, "the search for a group of records", "use a smaller group", _WORK)
    own = [kernel.log_ratios for kernel in kernels.distinct]
    if max(float(ratios.max()) for ratios in own) == math.inf:
        return math.inf
    start = log_ratio(prior.initial[:, None], prior.initial)
    if len(rows) == 1:
        return float((start + own[rows[0]]).max()) + roundoff(8.0) * float(start.max())
    T = prior.transition
    steps = log_ratio(T[:, None, :, None], T[None, :, None, :])  # ln T[a, c]/T[b, d]
    same = np.arange(m)[:, None] == np.arange(m)
    differ = np.logical_not(same)
    best = np.full((m, m, k + 1), -math.inf)
    for i, kind in enumerate(rows.tolist()):
        if i == 0:
            ahead = np.full((m, m, k + 1), -math.inf)
            ahead[:, :, 0] = start
        else:
            ahead = (best[:, :, None, None, :] + steps[..., None]).max(axis=(0, 1))
        ahead += own[kind][:, :, None]
        best = np.full_like(ahead, -math.inf)
        best[same] = ahead[same]
        best[differ, 1:] = ahead[differ, :-1]
    # A record that differs adds at most three numbers: its own, and those of two steps.
    each = max(float(ratios.max()) for ratios in own) + 2.0 * float(max(steps.max(), start.max()))
    error = roundoff(8.0 * k + 16.0) * k * each + k * prior.rounding_error
    return max(0.0, float(best.max())) + error


def tilt_error(kernels: RowKernels) -> float:
    """Return the largest error of the log-ratios of tilted kernels."""
    errors = [kernel.log_error for kernel in kernels.distinct if isinstance(kernel, TiltedRow)]
    return max(errors, default=0.0)


@singledispatch
def posterior_level(channel: AbstractChannel, prior: Distribution) -> float:
    """Return the largest ln p(x|y)/p(x'|y) over neighbours."""
    return _listed_level(channel, prior)


def _listed_level(channel: AbstractChannel, prior: Distribution) -> float:
    """Return the level from the joint distribution. Cost O(N K n).

    If the matrix has errors, the sum of the channel's and the prior's level is a second bound.
    """
    level = _joint_level(np.array(channel.nearest_matrix(), order="C"), prior, channel.space)
    if channel.matrix_error == 0.0:
        return level
    most = round_up(neighbour_level(channel) + prior.epsilon_x())
    return min(level + 4.0 * channel.matrix_error, most)


@posterior_level.register
def _dense_posterior_level(channel: Channel, prior: Distribution) -> float:
    """From the joint distribution; with one record every two databases are neighbours."""
    if channel.space.n == 1 and prior.logs_if_rare() is None:
        level = measured(compiled.posterior_levels, channel.table(), prior.probabilities()[None])
        if not math.isnan(level):
            return level
    return _joint_level(channel.table(), prior, channel.space)


def _joint_level(matrix: Floats, prior: Distribution, space: Space) -> float:
    p, logs = prior.probabilities(), prior.logs_if_rare()
    if logs is None and np.any((p > 0.0) & (p < _RARE)):
        with np.errstate(divide="ignore"):
            logs = np.log(p)
    if logs is not None:
        return _rare_level(matrix, logs, space)
    # A power of two keeps products of small numbers from underflowing, and is exact.
    level = matrix_level((p * 2.0**900)[:, None] * matrix, space.axes)
    rounded = products_error(prior)
    if level >= _SMALL:  # each of the two products is off by one rounding error at most
        return level + roundoff(4.0) + rounded
    # Close to zero, products p W carry rounding errors as large as the level. Work with
    # p W / (p_0 W_0) - 1 = a + b + a b instead, where a and b come from exact differences.
    a = (p - p[0]) / p[0]
    first = matrix[0]
    b = np.where(first > 0, (matrix - first) / np.where(first > 0, first, 1.0), 0.0)
    u = a[:, None] + b + a[:, None] * b
    size = float((np.abs(a)[:, None] + np.abs(b)).max())  # a and b may cancel
    return matrix_level(u, space.axes, 1.0) + roundoff(16.0) * size + rounded


def _rare_level(matrix: Floats, logs: Floats, space: Space) -> float:
    """Return the posterior level under a prior given by logarithms, if probabilities underflow."""
    with np.errstate(divide="ignore"):
        table = np.log(matrix) + logs[:, None]
    worst, seen = 0.0, table > -math.inf
    for x, other in space.neighbour_pairs():
        gaps = np.where(seen[x], table[x], 0.0) - np.where(seen[x], table[other], 0.0)
        worst = max(worst, float(gaps.max()))
    return round_up(worst) + log_error(table, 0.0)


@posterior_level.register
def _product_posterior_level(channel: ProductChannel, prior: Distribution) -> float:
    """The worst sum of a record's and the prior's log-ratios. Cost O(distinct records)."""
    worst = [0.0]
    for kernel, rows in channel.kernels.groups():
        ratios = prior.log_ratios(rows)
        # A value that never occurs (-inf) has no posterior to compare, even with an infinity.
        seen = ratios > -math.inf
        total = log_sum(kernel.log_ratios[seen], ratios[seen])
        worst.append(float(total.max(initial=0.0)))
    return round_up(max(worst))


@posterior_level.register
def _hamming_posterior_level(channel: HammingChannel, prior: Distribution) -> float:
    """Epsilon + eps_X: every pair of neighbours reaches e^epsilon at some output."""
    alone = neighbour_level(channel)
    if max(channel.space.sizes) == 1:
        return alone  # there are no neighbours
    spread = prior.epsilon_x()
    return round_up(channel.epsilon + spread) if spread > 0.0 else alone


@posterior_level.register
def _query_posterior_level(channel: QueryChannel, prior: Distribution) -> float:
    """The largest sum of the answers' and the databases' log-ratios.

    Cost O(K) for each pair of answers that neighbours have if the prior knows their odds, else
    O(N n m).
    """
    odds = channel.query.odds(prior)
    if odds is not None:
        return odds_level(channel.kernel.matrix, odds)
    logs = prior.logs_if_rare()
    error = products_error(prior) if logs is None else log_error(logs, 0.0)
    return round_up(likeliest_step(channel, prior)[0]) + error


def likeliest_step(channel: QueryChannel, prior: Distribution) -> tuple[float, int, int]:
    """Return the largest ln kernel ratio + ln p(x)/p(x') over neighbours x, x', and the two.

    Cost O(N n m).
    """
    pmf, logs, values = prior.probabilities(), prior.logs_if_rare(), channel.query.listed()
    alive = pmf > 0 if logs is None else logs > -math.inf
    worst = 0.0, 0, 0
    for x, other in channel.space.neighbour_pairs():
        x, other = x[alive], other[alive]
        ratios = channel.kernel.log_ratios[values[x], values[other]]
        odds = log_ratio(pmf[x], pmf[other]) if logs is None else logs[x] - logs[other]
        levels = log_sum(ratios, odds)
        at = int(levels.argmax())
        if levels[at] > worst[0]:
            worst = float(levels[at]), int(x[at]), int(other[at])
    return worst


@posterior_level.register
def _type_posterior_level(channel: TypeChannel, prior: Distribution) -> float:
    """Over moves of one record from class to class, O(classes), if the prior knows their odds."""
    odds = type_odds(channel, prior)
    if odds is None:
        return posterior_level(channel.as_channel(), prior)
    return round_up(likeliest_move(channel, odds)[0])


@posterior_level.register
def _tilted_posterior_level(channel: TiltedChannel, prior: Distribution) -> float:
    """Epsilon under the channel's own prior. Under another one as for neighbours."""
    if not channel.space.has_neighbours:
        return 0.0
    if channel.is_own_prior(prior):
        return channel.own_level
    types, same = channel.by_type, prior.by_type()
    if types is not None and same is not None:
        ratios = types.log_ratios(types.log_prior(same) - types.log_home)
        return live_level(channel, [ratios], prior) + types.error + same.log_error
    logs = prior.logs_if_rare()
    if logs is None and channel.is_listable:
        exact = [all_ratios(channel, rows, prior) for rows in channel.alike_groups]
        return live_level(channel, exact, prior)
    with np.errstate(divide="ignore"):
        given = np.log(prior.probabilities()) if logs is None else logs
    tilt = channel.log_tilt()[1]
    rare = given + tilt
    odds = Dense.of(np.exp(rare - rare.max()), channel.space, rare)
    error = home_error(channel, tilt) + log_error(given, 0.0) + products_error(prior)
    every = [odds.log_ratios(rows) + error for rows in channel.alike_groups]
    return live_level(channel, every, prior)


@posterior_level.register
def _tilted_product_posterior_level(channel: TiltedProduct, prior: Distribution) -> float:
    """Return epsilon under the channel's own prior. Otherwise use the product channel."""
    if not channel.space.has_neighbours:
        return 0.0
    if channel.is_own_prior(prior):
        return channel.own_level
    error = tilt_error(channel.as_product.kernels)
    return posterior_level(channel.as_product, prior) + 2.0 * error


@posterior_level.register
def _columns_posterior_level(channel: ColumnsChannel, prior: Distribution) -> float:
    """Return the level of the worst column if columns are independent, else use the matrix."""
    pairs = supports.independent(channel, prior)
    if pairs is None:
        return _listed_level(channel, prior)
    return max(posterior_level(*pair) for pair in pairs)


@posterior_level.register
def _support_posterior_level(channel: SupportChannel, prior: Distribution) -> float:
    """Return epsilon + eps_X: some message distinguishes any two values."""
    return round_up(channel.level + prior.epsilon_x())


# Posterior odds of neighbours, from the odds of the prior behind answers or types.


def odds_level(laws: Floats, odds: Odds) -> float:
    """Return the largest ln laws[a, y]/laws[b, y] + ln p(x)/p(x') over y and answers a, b."""
    worst, step = 0.0, max(1, _BLOCK // laws.shape[1])
    for start in range(0, len(odds.first), step):
        first, second, prior, size = (part[start : start + step] for part in odds)
        seen = laws[first] > 0
        ratios = log_ratio(np.where(seen, laws[first], 1.0), np.where(seen, laws[second], 1.0))
        kernel = np.where(seen, ratios, -math.inf).max(axis=1)
        levels = kernel + prior
        # Two logarithms of opposite signs leave the error of the larger one.
        levels += 2.0**-50 * np.where(levels < math.inf, np.abs(kernel) + size, 0.0)
        worst = max(worst, float(levels.max(initial=0.0)))
    return round_up(worst)


class TypeOdds(NamedTuple):
    """Largest ln p(x)/p(x') over neighbours of two types, and the size of its parts."""

    log_odds: Floats
    size: Floats


def type_odds(channel: TypeChannel, prior: Distribution) -> TypeOdds | None:
    """Return the odds of neighbours by their types; None if they need a list."""
    query = Histogram(channel.space.n, channel.space.sizes[0])
    odds = query.odds(prior)
    if odds is None:
        return None
    place = {kind[0]: j for j, kind in enumerate(channel.types.counts)}
    number = np.array([place[tuple(counts)] for counts in query.counts.tolist()])
    table = TypeOdds(np.full((len(place),) * 2, -math.inf), np.zeros((len(place),) * 2))
    pairs = number[odds.first], number[odds.second]
    table.log_odds[pairs], table.size[pairs] = odds.log_odds, odds.size
    return table


def likeliest_move(channel: TypeChannel, odds: TypeOdds) -> tuple[float, int]:
    """Return the largest ln of posterior odds over moves of one record, and its place.

    Every output y of a type is possible for any two neighbours, up to the order of its records. So
    the odds of neighbours matter by their types only.
    """
    stack, entry = channel.all_classes, channel.all_entries
    kinds = stack.row[stack.source], stack.row[stack.target]
    seen = np.flatnonzero((entry[stack.source] > 0) & (odds.log_odds[kinds] > -math.inf))
    if not len(seen):
        return 0.0, 0
    ratios = log_ratio(entry[stack.source[seen]], entry[stack.target[seen]])
    own, size = (table[kinds][seen] for table in odds)
    levels = ratios + own
    # Two logarithms of opposite signs leave the error of the larger one.
    levels += 2.0**-50 * np.where(levels < math.inf, np.abs(ratios) + size, 0.0)
    at = int(levels.argmax())
    return max(0.0, float(levels[at])), int(seen[at])
