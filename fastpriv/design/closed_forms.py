"""Mechanisms and bounds that theorems give without solving a program."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.logs import log_ratio
from fastpriv._core.rounding import LEAST, lowered, round_up, roundoff
from fastpriv._core.search import bisect_each
from fastpriv._core.validation import Floats, Ints
from fastpriv._structure.neighbours import hamming_distances
from fastpriv._structure.rows import RowKernel, RowKernels
from fastpriv.channels import (
    AbstractChannel,
    Channel,
    HammingChannel,
    PosteriorChannel,
    ProductChannel,
)
from fastpriv.design.certificate import TOLERANCE, Layout, distance_closure, repair_margin, repaired
from fastpriv.design.problem import Kind
from fastpriv.errors import InvalidInput, TooLarge
from fastpriv.measures.distortion import expected_cost, expected_distance, hamming_distance
from fastpriv.measures.identifiability import posterior_level
from fastpriv.measures.individual import individual_capacity
from fastpriv.priors import Dense, Distribution, Product
from fastpriv.priors.unmixing import rounding, tilde_bound
from fastpriv.results import Bracket, Solution

__all__ = ["h", "h_inverse"]

#: Most entries of a matrix whose expected cost is summed exactly.
_MAX_SUMMED = 1 << 16
#: Products of two doubles from this size on are exactly a sum of two doubles.
_SMALLEST_SPLIT = 1e-250
#: Most halvings of an interval of levels; adjacent doubles are reached earlier.
_HALVINGS = 100
#: Attempts at a lower level of the posterior response, to meet a level after rounding.
_MAX_RETREATS = 4
#: Relative error of a level in closed form: h^-1 has an error of some 20 ulp, this is 900.
LEVEL_ERROR = 1e-13
#: Relative error of an entropy that is summed from rounded logarithms.
_ENTROPY_ERROR = 1e-12
#: Most databases of a matrix that can be repaired.
_MAX_MENDED = 64
#: Smallest room, relative to 1 + epsilon; below it two databases get equal rows.
_TIGHT = 1e-11
#: Assignment of one record to the first distribution.
_ONE_RECORD = np.zeros(1, dtype=np.int64)


def h(epsilon: ArrayLike, n: int, m: int | Sequence[int]) -> Any:
    """Return the distortion n / (1 + e^epsilon / (m - 1)) of randomised response.

    Parameters
    ----------
    epsilon : float or array
        Privacy level in nats; infinity gives 0.
    n : int
        Number of records.
    m : int or sequence of int
        Number of values of every record, or a sequence with one number per record. The records'
        distortions then add up.

    Returns
    -------
    float or ndarray
        Expected number of changed records (Wang-Ying-Zhang 2015, Lemma 1).

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.h(0.0, n=10, m=2)
    5.0
    >>> round(fp.h(1.0, n=3, m=[2, 3, 7]), 6)
    1.381034
    """
    counts = Counter(check.row_sizes(n, m))
    level = _array(epsilon, "epsilon")
    total = np.zeros_like(level)
    for size, count in counts.items():
        if size > 1:  # a single value cannot change
            total += count * _moved(level, size)
    return _like(total, epsilon)


def _moved(level: Floats, m: int) -> Floats:
    """Probability that a record changes, (m-1) / (m - 1 + e^level), without overflow."""
    r = np.exp(-np.abs(level))
    return np.where(level >= 0, (m - 1) * r / (1.0 + (m - 1) * r), (m - 1) / (r + (m - 1.0)))


def h_inverse(distortion: ArrayLike, n: int, m: int | Sequence[int]) -> Any:
    """Return the level ln(n/D - 1) + ln(m - 1) at which randomised response has a distortion D.

    Parameters
    ----------
    distortion : float or array
        Expected number of changed records, between 0 (level infinity) and n (minus infinity). The
        level is negative beyond n (m-1)/m, the distortion of a uniformly random output.
    n : int
        Number of records.
    m : int or sequence of int
        Number of values of every record, or a sequence with one number per record, at least 2. If
        the numbers differ there is no closed form, and the level is found by bisection.

    Returns
    -------
    float or ndarray
        Level in nats (Wang-Ying-Zhang 2015, eq. (17)).

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.h_inverse(fp.h(1.5, n=10, m=4), n=10, m=4)
    1.5
    """
    sizes = check.row_sizes(n, m)
    if min(sizes) < 2:
        raise InvalidInput("m must be at least 2: a record with one value never changes.")
    cost = _array(distortion, "distortion")
    if not np.all((cost >= 0) & (cost <= n)):
        raise InvalidInput(
            f"distortion must be between 0 and n = {n}; a record changes at most once."
        )
    if len(set(sizes)) > 1:
        return _like(_level_of_sizes(cost, sizes), distortion)
    size = sizes[0]
    # ln((n-D)(m-1)/D) = ln(1 + (n (m-1) - m D)/D). Near level 0 the numerator nearly vanishes.
    # Splitting D into a high and a low half makes m D exact.
    high = cost * 134217729.0
    high = high - (high - cost)
    surplus = (n * (size - 1.0) - size * high) - size * (cost - high)
    with np.errstate(divide="ignore", over="ignore"):
        near = np.log1p(np.maximum(surplus / np.where(cost > 0, cost, 1.0), -1.0))
        far = np.log(n - cost) + np.log(size - 1.0) - np.log(cost)
    return _like(np.where(np.abs(surplus) < 0.5 * cost, near, far), distortion)


def _level_of_sizes(cost: Floats, sizes: Sequence[int]) -> Floats:
    """Return the level for records of different sizes; each record's own level brackets it."""
    n, counts = len(sizes), Counter(sizes)
    ends = np.array([h_inverse(cost, n, m) for m in counts])
    low, high = ends.min(axis=0), ends.max(axis=0)

    def above(level: Floats) -> np.ndarray:
        return np.asarray(sum(c * _moved(level, m) for m, c in counts.items()) > cost)

    with np.errstate(invalid="ignore"):
        _, high = bisect_each(above, low, high, _HALVINGS)
    return np.asarray(np.where(np.isinf(ends[0]), ends[0], high))


def _array(values: ArrayLike, name: str) -> Floats:
    array = check.array(values, name).astype(np.float64)
    if np.isnan(array).any():
        raise InvalidInput(f"{name} must be a number; got a NaN.")
    return array


def _like(values: Floats, given: ArrayLike) -> Any:
    return float(values) if np.ndim(given) == 0 else values


def rounding_margin(epsilon: float, n: int) -> float:
    """Bound the rounding error of the log of a ratio of matrix entries with n record factors."""
    return roundoff(16 + 8 * min(n, 64) + 4 * epsilon)


def constant_mechanism(prior: Distribution) -> Solution:
    """Return the best mechanism at level 0: always output every record's most likely value."""
    answers: list[RowKernel] = []
    value, assignment = [], np.empty(prior.space.n, dtype=np.int64)
    for rows in prior.alike_records():
        mean = prior.marginal_sum(rows) / len(rows)
        kernel = np.zeros((len(mean), len(mean)))
        kernel[:, int(mean.argmax())] = 1.0
        assignment[rows] = len(answers)
        answers.append(RowKernel(kernel))
        value.append(len(rows) * float(np.delete(mean, mean.argmax()).sum()))
    channel = ProductChannel.of(RowKernels(answers, assignment))
    bound = lowered(math.fsum(value), 128.0)
    return Solution(expected_distance(channel, prior), bound, channel, 0.0, "closed-form")


def identity_mechanism(prior: Distribution) -> ProductChannel:
    """Return the mechanism whose output is the database."""
    values, assignment = np.unique(prior.space.sizes, return_inverse=True)
    return ProductChannel.of(RowKernels([RowKernel(np.eye(m)) for m in values], assignment))


def randomised_response(sizes: tuple[int, ...], epsilon: float) -> Solution:
    """Return randomised response at a level lowered so that the rounded numbers meet epsilon."""
    safe = max(0.0, epsilon - rounding_margin(epsilon, len(sizes)))
    channel = HammingChannel(len(sizes), sizes, safe)
    value = hamming_distance(RowKernels.symmetric(sizes, safe))
    return Solution(value, least_distance(sizes, epsilon), channel, epsilon, "closed-form")


def posterior_response(prior: Distribution, epsilon: float, tilde: float) -> Solution:
    """Return the posterior response at a level of at least eps_tilde = ``tilde``.

    Its level is lowered until the rounded output distribution meets the requested level. If this is
    impossible, close to eps_tilde, the reported level includes the rounding error.
    """
    n, sizes = prior.space.n, prior.space.sizes
    aim = epsilon - rounding_margin(epsilon, n) - 2.0 * rounding(min(n, 64))
    for k in range(_MAX_RETREATS):
        channel = PosteriorChannel.up_to_rounding(prior, max(aim, 0.0))
        over = channel.drawn_level - epsilon
        lower = aim - 2.0 * 4.0**k * over  # at another level rounding may cost more
        if over <= 0.0 or not lower >= tilde:
            break
        aim = lower
    level, value = max(channel.drawn_level, epsilon), expected_distance(channel, prior)
    return Solution(value, least_distance(sizes, epsilon), channel, level, "closed-form")


def joint_level(channel: AbstractChannel, prior: Distribution) -> float:
    """Return the identifiability of the floats of a channel, rounded up."""
    if not isinstance(prior, Product) or not isinstance(channel, ProductChannel):
        return posterior_level(channel, prior)
    # Independent records are measured one by one. Products p W have fewer rounding errors than sums
    # of logarithms, which cancel if the channel compensates the prior.
    laws, rows, *_ = prior.paired(channel.kernels)
    return max(
        posterior_level(Channel(channel.kernels.distinct[j].matrix), Dense(prior.distinct[k]))
        for k, j in zip(laws, rows, strict=True)
    )


def least_distance(sizes: tuple[int, ...], epsilon: float) -> float:
    """Return h(epsilon) rounded down, even if it underflows."""
    distance = hamming_distance(RowKernels.symmetric(sizes, epsilon))
    return max(lowered(distance, 8.0) - 4.0 * len(sizes) * LEAST, 0.0)


def rounded_up(solution: Kind, prior: Distribution, cost: Floats | None = None) -> Kind:
    """Return the solution with a value that is at least the distortion of its matrix's floats.

    The expected cost sum p(x) W[x, y] d(x, y) is summed exactly and rounded up. Larger channels
    keep their measured value.
    """
    return replace(solution, value=distortion_up(solution.channel, prior, cost, solution.value))


def distortion_up(
    channel: AbstractChannel, prior: Distribution, cost: Floats | None, least: float
) -> float:
    """Return the expected cost of a channel rounded up, and at least ``least``."""
    if channel.space.size * channel.output_count > _MAX_SUMMED:
        return least
    if cost is None:
        usual = expected_distance(channel, prior)
        cost = hamming_distances(prior.space)
    else:
        usual = expected_cost(channel, prior, cost)
    exact = exact_cost(prior.probabilities(), np.array(channel.matrix(), order="C"), cost)
    return max(least, exact, usual)


def exact_cost(weights: Floats, matrix: Floats, cost: Floats) -> float:
    """Return sum p(x) W[x, y] d(x, y) rounded up: every product is split into two doubles."""
    shares, lost = _split_product(weights[:, None], matrix)
    parts = [*_split_product(shares, cost), *_split_product(lost, cost)]
    terms = np.concatenate([part.reshape(-1) for part in parts])
    if not np.isfinite(terms).all():
        return -math.inf  # too large to be split: use the usual sum
    # Parts of these may have underflowed.
    rare = np.minimum(shares, np.abs(parts[0])) < _SMALLEST_SPLIT
    rare &= (weights[:, None] > 0.0) & (matrix > 0.0) & (cost != 0.0)
    slack = 4.0 * LEAST * np.count_nonzero(rare) * max(1.0, float(np.abs(cost).max()))
    total = math.fsum(terms)
    return math.nextafter(total, math.inf) if math.fsum([*terms, -total, slack]) > 0.0 else total


def _split_product(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return the rounded product of two doubles and its rounding error (Dekker 1971)."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        product = a * b
        (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
        rest = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, np.broadcast_to(rest, product.shape)


def _halves(a: Floats) -> tuple[Floats, Floats]:
    high = a * 134217729.0
    high = high - (high - a)
    return high, a - high


def tilde_upper(prior: Distribution) -> float:
    """Return eps_tilde or an upper bound on it."""
    try:
        return float(prior.epsilon_tilde())
    except TooLarge:
        return tilde_bound(prior.space.sizes, prior.epsilon_x())


def theorem_bracket(prior: Distribution, distortion: float, notion: str) -> Bracket:
    """Bracket the best level at a distortion below the distortion of a constant output.

    Let e = h^-1(distortion). The bounds are max(e - eps_X, 0) and max(e, 0) for differential
    privacy, and max(e, eps_X) and max(e, 0) + eps_X for identifiability (Wang-Ying-Zhang 2015,
    Theorem 1 and Main Result 1). From eps_tilde on the level is e. Mutual information is at least
    H(X) - H(record noise) by Fano's inequality for every record. Randomised response reaches at
    most ln N - H(record noise).

    Pointwise maximal leakage is at least the information. It is at most n e with randomised
    response, and -ln p_min with any mechanism. The individual capacity is at least 1/n of the
    information, by the chain rule. Randomised response reaches its upper bound.

    Parameters
    ----------
    prior : Distribution
        Distribution of the databases.
    distortion : float
        Expected number of changed records.
    notion : str
        A notion with a program.
    """
    if notion in ("pml", "individual-capacity"):
        return _beside_information(prior, distortion, notion)
    sizes = [m for m in prior.space.sizes if m > 1]
    spread = prior.epsilon_x()
    plain = float(h_inverse(distortion, len(sizes), sizes))
    low, high = plain * (1.0 - LEVEL_ERROR), plain * (1.0 + LEVEL_ERROR)
    tilde = tilde_upper(prior)
    exact = plain >= tilde
    if notion == "dp":
        return Bracket(low if exact else max(low - spread, 0.0), max(high, 0.0))
    if notion == "identifiability":
        # If this distortion is beyond h(eps_tilde), the posterior response at eps_tilde has a
        # smaller distortion.
        beyond = min(max(high, 0.0) + spread, tilde * (1.0 + LEVEL_ERROR))
        return Bracket(max(low, prior.epsilon_x_lower()), high if exact else max(beyond, spread))
    noise = math.fsum(_noise(max(plain, 0.0), m) for m in sizes)
    entropy = float(prior.entropy())
    error = _ENTROPY_ERROR * (entropy + noise)
    least = max(entropy - noise - error, 0.0)
    most = entropy if exact else min(entropy + noise, math.fsum(map(math.log, sizes)))
    return Bracket(least, max(min(most - noise, entropy), 0.0) + error)


def _beside_information(prior: Distribution, distortion: float, notion: str) -> Bracket:
    """Bracket a leakage by the information, a lower bound, and by randomised response."""
    sizes, n = [m for m in prior.space.sizes if m > 1], prior.space.n
    information = theorem_bracket(prior, distortion, "mutual-information")
    level = max(float(h_inverse(distortion, len(sizes), sizes)), 0.0) * (1.0 + LEVEL_ERROR)
    if notion == "pml":
        most = min(n * level, -prior.log_smallest()) * (1.0 + LEVEL_ERROR)
        return Bracket(min(information.lower, most), most)
    least = information.lower / n * (1.0 - LEVEL_ERROR)
    most = math.log(max(sizes)) * (1.0 + LEVEL_ERROR)
    if level < math.inf:
        channel = HammingChannel(n, prior.space.sizes, level)
        most = min(most, individual_capacity(channel, time_limit=None).upper)
    return Bracket(min(least, most), most)


def _noise(level: float, m: int) -> float:
    """Return the entropy of a row of the m-ary symmetric channel."""
    if level == math.inf:
        return 0.0
    move = (m - 1) * math.exp(-level)
    return math.log1p(move) + level * move / (1.0 + move)


def rounded_inwards(prior: Distribution, epsilon: float, bound: float) -> Solution | None:
    """Return a mechanism of identifiability epsilon close to the posterior response.

    None if there are too many databases. ``bound`` is the minimum distortion at epsilon. Cost
    O(N^3), or the sum over distinct records of a product.
    """
    # Within a rounding error of eps_tilde, clipping the output distribution of the posterior
    # response costs more than a margin saves. Mixing in a little of a constant mechanism gives
    # room.
    channel: AbstractChannel
    if isinstance(prior, Product):
        rows = [_mended(Product.of([law], _ONE_RECORD), epsilon) for law in prior.distinct]
        kernels = RowKernels([RowKernel(W) for W, _ in rows], prior.assignment)
        channel, level = ProductChannel.of(kernels), max(level for _, level in rows)
    elif prior.space.size <= _MAX_MENDED:
        W, level = _mended(prior, epsilon)
        channel = Channel(W, prior.space)
    else:
        return None
    value = expected_distance(channel, prior)
    return Solution(value, min(bound, value), channel, level, "closed-form")


def _mended(prior: Distribution, epsilon: float) -> tuple[Floats, float]:
    """Return the better of the repaired posterior response and a constant output, and its level."""
    own, constant = min(prior.epsilon_x(), epsilon), constant_mechanism(prior)
    best = constant.channel.matrix(), own
    margin = rounding_margin(epsilon, prior.space.n)
    if epsilon <= 2.0 * margin:
        return best
    # W has the level if W[x, y] <= e^room(x, x') W[x', y] for neighbours. The room is epsilon minus
    # the log-odds of the prior. Without room two rows must be equal, because W[x, .] <= W[x', .]
    # and both sum to one. Such databases are merged. The others have room to round inwards. Equal
    # rows have the level eps_X <= epsilon.
    logs = prior.wide().logs()
    error = roundoff(8.0) * float(np.abs(logs).max())
    neighbours = hamming_distances(prior.space) == 1.0
    odds = np.where(neighbours, logs[:, None] - logs + error, -math.inf)
    group, firsts = _merged(epsilon - odds < _TIGHT * (1.0 + epsilon), logs)
    E_i = PosteriorChannel.up_to_rounding(prior, epsilon - margin).matrix()[firsts]
    W = _with_room(E_i, _least_rooms(epsilon - odds, group), epsilon, margin)[group]
    level = _crossing_level(W, odds, group)
    value = expected_distance(Channel(W, prior.space), prior)
    if level <= epsilon and value < constant.value:
        return W, max(level, own)
    return best


def _merged(tight: np.ndarray, logs: Floats) -> tuple[Ints, Ints]:
    """Return the number of every database's group, and the most likely database of each group."""
    group = np.arange(len(logs))
    for x, z in np.argwhere(tight):
        group[group == group[z]] = group[x]
    names, group = np.unique(group, return_inverse=True)
    return group, np.array(
        [np.where(group == k, logs, -math.inf).argmax() for k in range(len(names))]
    )


def _least_rooms(rooms: Floats, group: Ints) -> Floats:
    """Return the smallest room from group to group."""
    count = int(group.max()) + 1
    least = np.full((count, count), math.inf)
    np.minimum.at(least, (group[:, None], group[None, :]), rooms)
    np.fill_diagonal(least, 0.0)
    return least


def _with_room(W: Floats, rooms: Floats, epsilon: float, margin: float) -> Floats:
    """Repair a matrix so that W[g, y] <= e^rooms[g, h] W[h, y], rounding included."""
    count, outputs = W.shape
    paths = np.maximum(rooms - repair_margin(epsilon, margin) - TOLERANCE, 0.0)
    np.fill_diagonal(paths, 0.0)
    for k in range(count):
        paths = np.minimum(paths, paths[:, k : k + 1] + paths[k : k + 1])
    within = distance_closure(np.ascontiguousarray(paths.T))
    size = count * outputs
    layout = Layout(
        np.tile(np.arange(count), outputs),
        np.ones(size),
        np.ones(count),
        lambda entry, _: within(entry, 1.0),  # the rooms are logarithms of ratios themselves
    )
    mended = repaired(W.T.reshape(-1), np.full(size, 1.0 / outputs), layout, epsilon, margin)
    return np.ascontiguousarray(mended.reshape(outputs, count).T)


def _crossing_level(W: Floats, odds: Floats, group: Ints) -> float:
    """Return the largest ln W[x, y]/W[x', y] + ln p(x)/p(x') over neighbours of two groups."""
    worst = 0.0
    for x, z in np.argwhere((odds > -math.inf) & (group[:, None] != group)):
        seen = W[x] > 0.0
        ratio = float(log_ratio(W[x][seen], W[z][seen]).max())
        worst = max(worst, ratio + odds[x, z] + roundoff(8.0) * (abs(ratio) + abs(odds[x, z])))
    return round_up(worst)
