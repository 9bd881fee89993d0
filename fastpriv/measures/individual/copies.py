"""Individual capacity of record-by-record channels, by priors under which records are copies.

For randomised response (E_d) on records of one size, copies are optimal. Whatever the other records
are, record j reveals most about a value V if it is an injective function of V. The proof is on the
page "Individuals" of the documentation. For larger groups, or records of several sizes, copies give
a lower bound. There are three upper bounds: the sum of the records' capacities, k times a bound for
one record, and the capacity of the best pair of databases times a number of yes-or-no questions.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable

import numpy as np

from fastpriv import kernels
from fastpriv._core import validation as check
from fastpriv._core.clock import Clock
from fastpriv._core.rounding import log_up, lowered, raised, round_up, roundoff
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.searches.cliques import mean_questions
from fastpriv._structure.counts import compositions_array, log_multinomials
from fastpriv._structure.rows import RowKernels, Symmetric
from fastpriv.channels import HammingChannel, ProductChannel
from fastpriv.measures.capacity import capacity, row_capacity
from fastpriv.priors import Product
from fastpriv.priors.sums import score_law
from fastpriv.results import Adversary, Bracket, IndividualCapacity
from fastpriv.spaces import Space

Search = Callable[[ProductChannel], IndividualCapacity]
#: Most values of a group that are listed.
_VALUES = 1 << 16
#: Records that are tried before all records.
_FEW = 1 << 12
#: Information that may be lost to underflow, in nats.
_LOST = 1e-290
#: Relative error of a binomial tail from SciPy is far below this factor.
_TAIL_ERROR = 1.0 + 1e-6
#: Share of ln 2 above which the bracket of a few records is narrow enough.
_ALMOST = 1.0 - 2.0**-36
#: Masses above are scaled down by it.
_HUGE = 1e250
#: Largest epsilon that is used. Beyond it an output hides about e^-epsilon nats of its record,
#: far less than separates the logarithm of a whole number from any double.
_SHOWN = 1e4
#: Most entries in a list of partitions.
_ENTRIES = 1 << 21
#: Most entries in a list of partitions if less than ``_SECOND`` is left.
_QUICK = 1 << 18
#: Most copies whose partitions may fit. Three values have n^2/12 of them.
_COPIES = 8000
#: Seconds that must be left for a long list.
_SECOND = 1.0
#: Most multiplications for all values together.
_WORK = 2e8
#: Fewest points of a grid.
_LEAST = 128
#: Most points of a grid.
_MOST = 1 << 14
#: Probabilities below are left out.
_RARE = 1e-22
#: Probability that a sum is beyond the grid.
_BEYOND = 1e-16
#: Most words of a code.
_WORDS = 1 << 10
#: Most entries of a table of counts and words.
_CODE_ENTRIES = 1 << 22


def row_kernels(channel: HammingChannel) -> list[Symmetric]:
    """Return the distinct kernels, with an epsilon whose multiples and squares are finite."""
    if channel.epsilon <= _SHOWN:
        return channel.symmetric()
    return [Symmetric(kernel.m, _SHOWN) for kernel in channel.symmetric()]


def opposite_capacity(rows: list[Symmetric]) -> Bracket:
    """Return the capacity of two databases that differ in all the given records, in closed form.

    Between the two values that a record may hold, R_epsilon outputs the true one with odds
    e^epsilon to 1, for every m. So a sufficient statistic is d, the number of records whose output
    agrees with the first database minus the number that agrees with the second:

        C = sum_(d > 0) (P(d) + P(-d)) phi(tanh(epsilon d/2)),
        phi(s) = ((1 + s) ln(1 + s) + (1 - s) ln(1 - s))/2.

    Cost O(n) for records of one size, O(n^2) otherwise.
    """
    if not rows or rows[0].epsilon == 0.0:
        return Bracket(0.0, 0.0)
    if len(rows) > _FEW:  # a few of many records may reach ln 2 already
        lower = opposite_capacity(rows[:_FEW]).lower
        if lower >= math.log(2.0) * _ALMOST:
            return Bracket(lower, log_up(2.0))
    epsilon = rows[0].epsilon
    law = _net_law(rows)
    # A gain is at least 0.4 of this, so the omitted terms are below an ulp of the sum.
    sizes = law * np.minimum(0.125 * (epsilon * np.arange(1.0, len(law) + 1.0)) ** 2, 1.0)
    kept = np.flatnonzero(sizes > 1e-20 * sizes.max() / len(law)).tolist()
    terms = [law[d] * _gain(epsilon * (d + 1)) for d in kept]
    value, error = math.fsum(terms), roundoff(16 * len(rows) + 512)
    return Bracket(max(value * (1.0 - error) - _LOST, 0.0), value * (1.0 + error) + _LOST)


def _gain(loss: float) -> float:
    """phi(tanh(loss/2)), without cancellation."""
    if loss > 700.0:
        return math.log(2.0)
    s, rest = math.tanh(0.5 * loss), 2.0 / (math.exp(loss) + 1.0)
    return 0.5 * (kernels.divergence(1.0 + s, 1.0, s) + kernels.divergence(rest, 1.0, -s))


def _net_law(rows: list[Symmetric]) -> Floats:
    """Return P(d) + P(-d) for d = 1 .. n, d = true outputs minus opposite outputs.

    For records of one size m the masses from d = n down to 0 obey a recurrence with positive terms,
    a i q_i = z (n-i+1) q_(i-1) + b (2n-i+2) q_(i-2), where q_i is the mass at d = n - i, and a, b
    and z are the probabilities of the true value, the opposite one and all others. Moreover
    P(-d) = e^(-epsilon d) P(d).
    """
    n, epsilon = len(rows), rows[0].epsilon
    if len({kernel.m for kernel in rows}) > 1:
        kinds = {kernel.m: kernel for kernel in rows}
        place = {m: j for j, m in enumerate(kinds)}
        laws = [np.array([k.off, (k.m - 2) * k.off, k.stay]) for k in kinds.values()]
        which = np.array([place[kernel.m] for kernel in rows])
        law = score_law(Product.of(laws, which), [np.arange(3)], np.zeros(n, np.int64))
        return np.asarray(law[n + 1 :] + law[:n][::-1])
    r, others = math.exp(-epsilon), rows[0].m - 2
    masses = np.zeros(n + 1)
    masses[0] = now = 1.0
    last, first, start = 0.0, 0, 0
    for i in range(1, n + 1):
        last, now = now, r * (others * (n - i + 1) * now + (2 * n - i + 2) * last) / i
        masses[i] = now
        if now + last > _HUGE:  # scale down; masses that were scaled down before become zero
            masses[first:start] = 0.0
            masses[start : i + 1] /= _HUGE
            last, now, first, start = last / _HUGE, now / _HUGE, start, i + 1
    both = masses[:n][::-1] * (1.0 + np.exp(-epsilon * np.arange(1, n + 1)))
    return np.asarray(both / (both.sum() + masses[n]))


def copied_information(kernel: Symmetric, copies: int, clock: Clock) -> tuple[Bracket, Floats]:
    """Return the capacity of copies of one record, and a distribution for the lower bound.

    The channel is symmetric in the values, so the uniform distribution is optimal. If its bracket
    is wide, the uniform distribution on two values may have a higher lower bound.
    """
    m = kernel.m
    if m == 1:
        return Bracket(0.0, 0.0), np.ones(1)
    pair = opposite_capacity([kernel] * copies)
    two = np.where(np.arange(m) < 2, 0.5, 0.0)
    if m == 2:
        return pair, two
    told = copies_bracket(copies, kernel, clock)
    upper = min(told.upper, log_up(m), round_up(pair.upper * mean_questions(m)))
    if pair.lower > told.lower:
        return Bracket(pair.lower, max(pair.lower, upper)), two
    return Bracket(told.lower, max(told.lower, upper)), np.full(m, 1.0 / m)


def shown_capacity(rows: list[Symmetric], k: int, clock: Clock) -> Bracket:
    """Return the capacity of the best k databases, if every record has at least k values.

    In the best k databases every record is an injective function of a uniform value V of k. An
    output reveals V only if it is one of the k values that its record may hold. Then it is an
    output of R_epsilon on k values. So the result is the mean, over the number of such outputs, of
    the information in so many copies.
    """
    if k == 2:
        return opposite_capacity(rows)
    kernel, law = Symmetric(k, rows[0].epsilon), np.ones(1)
    if all(row.m == k for row in rows):
        return copied_information(kernel, len(rows), clock)[0]
    for m, number in Counter(row.m for row in rows).items():
        row = Symmetric(m, kernel.epsilon)
        law = np.convolve(law, _binomial(number, row.stay + (k - 1) * row.off, (m - k) * row.off))
    slack = roundoff(64.0) * (len(rows) * math.log(len(rows) + 2.0) + 745.0)
    told = mixed_bracket(law, kernel)
    return Bracket(told.lower * (1.0 - slack), told.upper * (1.0 + slack) + _LOST)


def _binomial(n: int, hit: float, miss: float) -> Floats:
    """Return the distribution of the number of hits in n, given both probabilities."""
    from scipy.special import xlogy

    r = np.arange(n + 1)
    ways = log_multinomials(np.stack([r, n - r]))
    return np.asarray(np.exp(ways + xlogy(r, hit) + xlogy(n - r, miss)))


def by_copies(kinds: list[Symmetric], which: Ints, k: int, clock: Clock) -> IndividualCapacity:
    """Bracket groups of k records. Every other record copies one of the group of its size."""
    space = Space.of(tuple(kinds[t].m for t in which.tolist()))
    size = np.asarray(space.sizes)
    live = np.flatnonzero(size > 1)
    group = tuple(np.sort(np.argsort(-size, kind="stable")[:k]).tolist())
    leader = np.full(space.n, -1)
    leader[list(group)] = group
    for m in {space.sizes[g] for g in group} - {1}:
        rest = np.flatnonzero((size == m) & (leader < 0))
        leader[rest] = np.resize([g for g in group if space.sizes[g] == m], len(rest))
    copies = np.bincount(leader[leader >= 0], minlength=space.n).tolist()
    keys = [(int(which[g]), copies[g]) for g in group]
    known = {key: copied_information(kinds[key[0]], key[1], clock) for key in sorted(set(keys))}
    told = [known[key] for key in keys]
    lower = math.fsum(part.lower for part, _ in told) * (1.0 - roundoff(4.0) if k > 1 else 1.0)
    rows = math.fsum(np.bincount(which) * [row_capacity(kind, 0.0)[0].upper for kind in kinds])
    logs = math.fsum(log_up(space.sizes[g]) for g in group)
    alone = k == 1 and len(set(size[live].tolist())) <= 1
    one = told[0][0].upper if alone else _one_row([kinds[t] for t in which[live].tolist()], clock)
    upper = one if k == 1 else round_up(min(k * one, rows, logs))
    who = _copying(space, group, leader, [law for _, law in told])
    return IndividualCapacity(lower, max(lower, upper), who)


def _one_row(rows: list[Symmetric], clock: Clock) -> float:
    """Bound one record: by copies, or by yes-or-no questions if sizes differ."""
    if not rows:
        return 0.0
    if len({row.m for row in rows}) == 1:
        return copied_information(rows[0], len(rows), clock)[0].upper
    most = max(row.m for row in rows)
    pair = opposite_capacity(rows).upper
    return min(log_up(most), round_up(pair * mean_questions(most)))


def _copying(
    space: Space, group: tuple[int, ...], leader: Ints, laws: list[Floats]
) -> Adversary | None:
    """Return the adversary: independent records in the group, copies outside. None if too long."""
    used = [np.flatnonzero(law).tolist() for law in laws]
    count = math.prod(map(len, used))
    if count > _VALUES or count * space.n > check.MAX_VECTOR:
        return None
    databases = np.zeros((count, space.n), dtype=np.int64)
    values = np.array(list(itertools.product(*used))).reshape(count, len(group))
    for j, g in enumerate(group):
        databases[:, leader == g] = values[:, j : j + 1]
    law = np.array([math.prod(p) for p in itertools.product(*(p[p > 0] for p in laws))])
    return Adversary(group, databases, law)


def by_part(
    channel: ProductChannel, entries: int, k: int, search: Search, most: float
) -> IndividualCapacity:
    """Bracket by a search over the records of largest capacity whose matrix is small.

    Further records can only help an adversary, so this is a lower bound. The upper bound is the
    smallest of ln m summed over the group, the capacity of all records, and ``most``.
    """
    kernels = channel.kernels
    told = np.array([row_capacity(kernel, 1e-3)[0].lower for kernel in kernels.distinct])
    order = np.argsort(-told[kernels.assignment], kind="stable")
    sizes = np.array([math.prod(kernel.shape) for kernel in kernels.distinct], dtype=np.float64)
    logs = np.cumsum(np.log(sizes)[kernels.assignment][order])
    fitting = int((logs <= math.log(entries) + 1e-9).sum())
    rows = np.sort(order[: max(fitting, k)])
    part = search(channel.of(RowKernels(kernels.distinct, kernels.assignment[rows])))
    who = part.adversary
    assert who is not None  # every search names its adversary
    databases = np.zeros((len(who.law), channel.space.n), dtype=np.int64)
    databases[:, rows] = who.databases
    group = tuple(rows[list(who.rows)].tolist())
    values = round_up(math.fsum(map(log_up, sorted(channel.space.sizes)[-k:])))
    upper = max(part.lower, min(values, capacity(channel, 1e-9).upper, most))
    return IndividualCapacity(part.lower, upper, Adversary(group, databases, who.law))


# Information in noisy copies of one value, by types of the outputs.
#
# A value V, uniform on m values, is sent n times through R_epsilon. Given outputs in which value
# v occurs c_v times, the probability of V = v is proportional to e^(epsilon c_v). So
#
#     I_n = sum over outputs of P(output) D(posterior || uniform),
#
# and both factors depend only on the sorted counts, a partition of n into at most m parts. I_n
# grows with n and is concave, because the copies are independent given V.


def copies_bracket(copies: int, kernel: Symmetric, clock: Clock) -> Bracket:
    """Bracket the information about a uniform value in copies of it through R_epsilon.

    The bracket is as narrow as rounding allows while the partitions can be listed: for m = 3 up to
    2800 copies, for m = 10 up to 60. Otherwise it is the better one of :func:`extended` and
    :func:`~fastpriv.measures.individual.copies.merged`. Cost O(min(m, n)) for each partition of n
    into at most m parts. If less than a second is left, only short lists are made.
    """
    if kernel.m == 1 or copies == 0 or kernel.epsilon == 0.0:
        return Bracket(0.0, 0.0)
    top = min(copies, _COPIES)
    counts = partition_counts(top, kernel.m) * np.minimum(kernel.m, np.arange(top + 1))
    entries = _ENTRIES if clock.left() > _SECOND else _QUICK
    fitting = max(1, int((counts <= entries).sum()) - 1)
    if fitting == copies:
        return listed(copies, kernel)
    told = extended(copies, kernel, [listed(j, kernel) for j in (fitting - 1, fitting)], fitting)
    near = merged(copies, kernel, clock)
    if near is None:
        return told
    lower = max(told.lower, near.lower)
    return Bracket(lower, max(lower, min(told.upper, near.upper)))


def mixed_bracket(law: Floats, kernel: Symmetric) -> Bracket:
    """Bracket the mean information in r copies over a distribution of r = 0 .. n, n >= 1.

    Cost O(min(m, n)) for each partition of each r that is listed.
    """
    n, m = len(law) - 1, kernel.m
    entries = partition_counts(min(n, _COPIES), m) * min(m, n)
    fitting = max(1, int((np.cumsum(entries) <= _ENTRIES).sum()) - 1)
    told = [listed(r, kernel) for r in range(fitting + 1)]
    last = told[-2:]
    told += [extended(r, kernel, last, fitting) for r in range(fitting + 1, n + 1)]
    lower = math.fsum(law * [part.lower for part in told])
    upper = math.fsum(law * [part.upper for part in told])
    return Bracket(lowered(lower, 4.0), raised(upper, 4.0))


def extended(copies: int, kernel: Symmetric, last: list[Bracket], fitting: int) -> Bracket:
    """Bracket the information in n copies, n > j, from the brackets for j - 1 and j copies.

    I_j <= I_n <= I_j + (n - j)(I_j - I_(j-1)), and I_n <= ln m. Moreover I_n >= ln m - (m - 1) (1 -
    (sqrt(a) - sqrt(b))^2)^n with the probabilities a and b of the true value and of another one:
    H(V | Y) is the mean of ln(1 + sum_u e^(epsilon (c_u - c_v))), u != v, and ln(1 + t) <= sqrt(t).
    """
    before, at = last
    all_of_it = math.log(kernel.m)
    rise = (copies - fitting) * (at.upper - before.lower)
    most = min(log_up(kernel.m), raised(at.upper + rise, 4.0))
    # sqrt(a) - sqrt(b) = sqrt(a) (1 - e^(-epsilon/2)). If its square is near 1, one
    # minus the square is computed as 2 sqrt(a b) + (m - 2) b, which does not cancel.
    apart = kernel.stay * math.expm1(-0.5 * kernel.epsilon) ** 2
    half = math.exp(-0.5 * kernel.epsilon)
    rest = kernel.stay * half * (2.0 + (kernel.m - 2) * half)
    log = math.log1p(-apart) if apart < 0.5 else math.log(max(rest, _LOST))
    missed = (kernel.m - 1) * math.exp(raised(copies * log, 16.0))
    least = lowered(all_of_it, 4.0) - raised(missed, 16.0)
    return Bracket(max(at.lower, least), max(at.lower, most))


def partition_counts(n: int, m: int) -> Floats:
    """Return the numbers of partitions of 0 .. n into at most m parts, as floats."""
    counts = np.zeros(n + 1)
    counts[0] = 1.0
    for size in range(1, min(m, n, 100) + 1):  # with 100 parts they are too many to matter
        for first in range(min(size, n + 1)):
            np.cumsum(counts[first::size], out=counts[first::size])
    return counts


def partitions(n: int, m: int) -> Ints:
    """Return the partitions of n into at most m parts, decreasing, with min(m, n) columns."""
    width = min(m, n)
    parts = np.zeros((1, 0), dtype=np.int64)
    rest, most = np.array([n]), np.array([n])
    for column in range(width):
        low, high = -(-rest // (width - column)), np.minimum(rest, most)
        number = high - low + 1
        own = np.repeat(np.arange(len(rest)), number)
        start = np.repeat(np.cumsum(number) - number, number)
        most = low[own] + np.arange(len(own)) - start
        parts = np.concatenate([parts[own], most[:, None]], axis=1)
        rest = rest[own] - most
    return parts


def listed(copies: int, kernel: Symmetric) -> Bracket:
    """Bracket the information in copies, by a list of the partitions."""
    if copies == 0:
        return Bracket(0.0, 0.0)
    m, epsilon = kernel.m, kernel.epsilon
    parts = partitions(copies, m)
    width = parts.shape[1]
    below = parts[:, :1] - parts
    weight = np.ones(width + 1)
    if m > width:  # values that never occur have count 0
        below, weight[-1] = np.concatenate([below, parts[:, :1]], axis=1), m - width
    else:
        weight = weight[:-1]
    near = np.exp(-epsilon * below)
    mean = near @ weight / m
    gains = posterior_gains(near, np.expm1(-epsilon * below), mean, weight / m)
    logs = _log_outputs(parts, m) - epsilon * (copies - parts[:, 0])
    logs -= copies * math.log1p((m - 1) * math.exp(-epsilon))
    value = math.fsum(np.exp(logs) * mean * gains)
    # Logarithms up to these sizes are rounded. Terms with a larger epsilon (n - c) underflow.
    sizes = copies * (math.log(copies + 2.0) + math.log(m))
    sizes += min(epsilon * copies, 745.0 + copies * math.log(m)) + 16.0
    error = roundoff(32.0 * sizes + 64.0 * (width + 8) * math.sqrt(m))
    return Bracket(max(value * (1.0 - error) - _LOST, 0.0), value * (1.0 + error) + _LOST)


def _log_outputs(parts: Ints, m: int) -> Floats:
    """Return the logarithm of the number of outputs with the given sorted counts."""
    width = parts.shape[1]
    falling = np.concatenate([[0.0], np.cumsum(np.log(m - np.arange(width)))])
    logs = log_multinomials(parts, axis=1)
    logs += falling[(parts > 0).sum(axis=1)]  # which values have the positive counts
    run = np.ones(len(parts), dtype=np.int64)
    for column in range(1, width):  # equal counts are exchanged without effect
        same = (parts[:, column] == parts[:, column - 1]) & (parts[:, column] > 0)
        run = np.where(same, run + 1, 1)
        logs -= np.log(run)
    return np.asarray(logs)


def posterior_gains(near: Floats, minus: Floats, mean: Floats, share: Floats) -> Floats:
    """Return D(posterior || uniform) for posteriors near/mean/m, given minus = near - 1.

    The terms are w ln w - w + 1 with w = near/mean. For w about 1 the difference w - 1 is taken
    from ``minus``, which has all its digits for small epsilon, and the logarithm from a series, so
    that nothing cancels.
    """
    w = near / mean[:, None]
    exact = (minus - (minus @ share)[:, None]) / mean[:, None]
    diff = np.where((mean[:, None] > 0.25) & (w > 0.5) & (w < 2.0), exact, w - 1.0)
    s = diff / (w + 1.0)
    z, tail = s * s, np.zeros_like(s)
    for k in range(21, 1, -2):
        tail = tail * z + 2.0 / k
    far = np.abs(s) > 0.2
    direct = w * np.log(np.where(far & (w > 0.0), w, 1.0)) - diff
    return np.asarray(np.where(far, direct, s * diff + w * s * z * tail) @ share)


# Information in noisy copies of one value, by the distribution of a sum of exponentials.
#
# Let V = v, and let c_u be the number of outputs u among n copies. With L the logarithm of the sum
# of e^(epsilon c_u) over u != v, the information is I_n = ln m - E ln(1 + e^(L - epsilon c_v)). If
# r outputs are wrong, they are spread evenly over m - 1 values. The distribution of L is built up
# value by value on a grid. If a new sum lies between two points of the grid, its probability is
# divided between them so that the mean of L does not change. The functions ln(e^L + s) are convex
# and increasing in L, and so are their compositions, with second derivatives in 0 .. 1/4. So every
# division with a step d of the grid raises the expectation, by at most d^2/32.


def merged(copies: int, kernel: Symmetric, clock: Clock) -> Bracket | None:
    """Bracket the information about a uniform value in copies, m >= 3. None if it costs too much.

    Cost O(m n^1.5) for each point of the grid. The width is about m (epsilon n/points)^2/32.
    """
    n, m, epsilon = copies, kernel.m, kernel.epsilon
    usual = min(n, 12.0 * math.sqrt(n) + 24.0)  # counts of one value that are not rare
    points = int(min(_MOST, _WORK / (m * n * usual)))
    if points < _LEAST:
        return None
    most, beyond = _largest(n, kernel)
    top = epsilon * most + math.log(m)
    law, step = _sums(n, m - 1, epsilon, top, points, clock)
    if law is None:
        return None
    seen = np.arange(n + 1)
    right = _binomials(n, kernel.stay, (m - 1) * kernel.off)[n]
    grid = step * np.arange(points + 1)
    missed = np.logaddexp(0.0, grid[:, None] - epsilon * (n - seen))  # column r: r wrong outputs
    mean = float((law * missed).sum(axis=0) @ right[::-1])
    # Errors of omitted terms, terms beyond the grid, sums of positive terms, logarithms of
    # factorials, and places on the grid.
    rough = n * m * _RARE * 4.0 + roundoff(64.0 * m * (n * math.log(n + 2.0) + 64.0) + points)
    error = (rough + m * beyond) * (epsilon * n + math.log(m) + 1.0)
    told = math.log(m) - mean
    lower = max(told - error, 0.0)
    return Bracket(lower, told + (m - 1) * step * step / 32.0 + error)


def _sums(
    n: int, values: int, epsilon: float, top: float, points: int, clock: Clock
) -> tuple[Floats | None, float]:
    """Return P(L = k step | r outputs on these values) as an array over k and r, and the step.

    None in place of the array if the time is over.
    """
    from scipy.sparse import csr_array

    step, r = top / points, np.arange(n + 1)
    grid = step * np.arange(points + 1)
    law = np.zeros((points + 1, n + 1))
    place, share = _between(epsilon * r.astype(np.float64), step, points)
    law[place, r] = 1.0 - share
    law[place + 1, r] += share
    columns = np.tile(np.arange(points + 1), 2)
    for value in range(2, values + 1):
        chances = _binomials(n, 1.0 / value, (value - 1.0) / value)
        after = np.zeros_like(law)
        for c in range(n + 1):
            if clock.left() == 0.0:
                return None, step
            weight = chances[c:, c]
            if weight.max() < _RARE:
                continue
            place, share = _between(np.logaddexp(grid, epsilon * c), step, points)
            moved = csr_array(
                (np.append(1.0 - share, share), (np.append(place, place + 1), columns)),
                shape=(points + 1, points + 1),
            )
            after[:, c:] += (moved @ np.ascontiguousarray(law[:, : n + 1 - c])) * weight
        law = after
    return law, step


def _largest(n: int, kernel: Symmetric) -> tuple[int, float]:
    """Return a count that a wrong value hardly exceeds, and the probability that it does."""
    from scipy.special import bdtrc

    tail = bdtrc(np.arange(n + 1.0), n, raised(kernel.off, 8.0)) * _TAIL_ERROR
    most = int(np.argmax(tail <= _BEYOND))
    return most, float(tail[most])


def _between(values: Floats, step: float, points: int) -> tuple[Ints, Floats]:
    """Return the points of the grid below the values, and the share of the way to the next.

    Values beyond the grid go to its last point. Some count is then above the largest.
    """
    place = np.minimum(values / step, points - 1.0).astype(np.int64)
    return place, np.clip(values / step - place, 0.0, 1.0)


def _binomials(n: int, hit: float, miss: float) -> Floats:
    """Return the distributions of the number of hits in 0 .. n, in the rows of a triangle."""
    from scipy.special import xlogy

    r, c = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
    rest = np.maximum(r - c, 0)
    logs = log_multinomials(np.stack([c, rest]))
    return np.where(c <= r, np.exp(logs + xlogy(c, hit) + xlogy(rest, miss)), 0.0)


# Group capacity of randomised response: records outside a group as check symbols of a code on the
# group's values.
#
# A group of k records with m values each holds a word v of Z_m^k. Let every record of the database
# be a linear function f_j(v) modulo m, the records of the group its coordinates. The outputs are
# noisy versions of the m^k words of a linear code. Adding a word only renames the outputs, so the
# uniform distribution is optimal. Let c_fu count the output u among the records with the
# function f. The probability of v given the outputs is proportional to e^(epsilon score), score =
# sum_f c_(f, f(v)). So the information is a sum over the counts. It is a lower bound of the group
# capacity. An upper bound for bits is on the page "Individuals" of the documentation.


def with_code(
    bracket: IndividualCapacity, kernel: Symmetric, n: int, k: int, clock: Clock
) -> IndividualCapacity:
    """Narrow the bracket for k of n records of one size, by a code and by pairs of bits.

    Cost O(m^k) for each of at most 2^22/m^k combinations of counts. For pairs of bits that covers
    up to 300 records. Further records are left constant.
    """
    upper = min(bracket.upper, pairs_bound(kernel, n, k)) if kernel.m == 2 else bracket.upper
    lower, who = _code(kernel, n, k, clock) or (0.0, None)
    if lower <= bracket.lower:
        lower, who = bracket.lower, bracket.adversary
    return IndividualCapacity(lower, max(lower, upper), who)


def _code(kernel: Symmetric, n: int, k: int, clock: Clock) -> tuple[float, Adversary] | None:
    """Return the information of a linear code, rounded down, and its adversary; None if large."""
    m = kernel.m
    if m == 1 or k * math.log(m) > math.log(_WORDS) or m**k * n > check.MAX_VECTOR:
        return None
    words = np.array(list(itertools.product(range(m), repeat=k)))
    symbols = _rows(kernel, words, n)
    value, error = code_information(kernel, symbols, clock)
    databases = np.zeros((len(words), n), dtype=np.int64)
    databases[:, : len(symbols)] = symbols.T
    who = Adversary(tuple(range(k)), databases, np.full(len(words), 1.0 / len(words)))
    return max(value * (1.0 - error) - _LOST, 0.0), who


def pairs_bound(kernel: Symmetric, n: int, k: int) -> float:
    """Bound C_k on n bits by pairs: C_2 <= 2 I(2n/3), with I(d) the information in d copies.

    Between whole numbers I is the chord. C_k is at most C_2 for every pair, plus C_1 if k is odd.
    """
    at, third = divmod(2 * n, 3)
    ends = [opposite_capacity([kernel] * d).upper for d in (at, at + 1, n)]
    pair = 2.0 * ((3 - third) * ends[0] + third * ends[1]) / 3.0
    return round_up(raised(k // 2 * pair + k % 2 * ends[2], 8.0))


def _rows(kernel: Symmetric, words: Ints, n: int) -> Ints:
    """Return the records for every word: the coordinates, and further linear functions.

    Each further function makes sum z^(weight of a word) smallest, where z is the Bhattacharyya
    coefficient of two values of a record. It bounds how often words are confused.
    """
    m, k = kernel.m, words.shape[1]
    first = words[np.arange(len(words)), (words > 0).argmax(axis=1)]
    forms = words[first == 1]  # others are multiples, or have fewer values
    values = forms @ words.T % m
    z = 2.0 * math.sqrt(kernel.stay * kernel.off) + (m - 2) * kernel.off
    used = [int(np.flatnonzero((forms == unit).all(axis=1))[0]) for unit in np.eye(k, dtype=int)]
    weight = (values[used] > 0).sum(axis=0).astype(np.float64)
    steps = np.where(values > 0, math.log(max(z, 1e-300)), 0.0)
    room = math.log(_CODE_ENTRIES / len(words))
    while len(used) < n:
        logs = weight * math.log(max(z, 1e-300)) + steps
        best = int(np.argmin(np.logaddexp.reduce(logs, axis=1).round(12)))
        if _log_counts([*used, best], m) > room:
            break
        used.append(best)
        weight += values[best] > 0
    return np.asarray(values[used])


def _log_counts(used: list[int], m: int) -> float:
    """Return the logarithm of the number of combinations of counts."""
    return math.fsum(math.log(math.comb(c + m - 1, m - 1)) for c in Counter(used).values())


def code_information(kernel: Symmetric, symbols: Ints, clock: Clock) -> tuple[float, float]:
    """Return the information about a uniform word of a linear code, and its relative error.

    ``symbols`` holds the values of each record for every word. If the time is over, terms are
    left out. All terms are positive.
    """
    m, epsilon, n, words = kernel.m, kernel.epsilon, *symbols.shape
    parts = []
    for form, copies in Counter(map(tuple, symbols.tolist())).items():
        counts = compositions_array(copies, m)
        parts.append((counts[:, list(form)].astype(np.float64), log_multinomials(counts, axis=1)))
    parts.sort(key=lambda part: len(part[1]))
    scores, ways = parts[0]
    for more, logs in parts[1:-1]:
        scores = (scores[:, None] + more).reshape(-1, words)
        ways = (ways[:, None] + logs).reshape(-1)
    last = parts[-1] if len(parts) > 1 else (np.zeros((1, words)), np.zeros(1))
    share, total = np.full(words, 1.0 / words), []
    norm = n * math.log1p((m - 1) * math.exp(-epsilon))
    for more, logs in zip(*last, strict=True):
        if clock.left() == 0.0:
            break
        score, log = scores + more, ways + logs
        top = score.max(axis=1)
        below = epsilon * (top[:, None] - score)
        near = np.exp(-below)
        mean = near @ share
        gains = posterior_gains(near, np.expm1(-below), mean, share)
        total.append(math.fsum(np.exp(log - epsilon * (n - top) - norm) * mean * gains))
    # Logarithms up to these sizes are rounded. Terms with a larger epsilon (n - top) underflow.
    sizes = n * (math.log(n + 2.0) + math.log(m)) + 16.0
    sizes += min(epsilon * n, 745.0 + n * math.log(m))
    return math.fsum(total), roundoff(32.0 * sizes + 64.0 * (words + 8) * math.sqrt(words))
