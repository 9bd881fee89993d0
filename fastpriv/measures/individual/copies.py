"""Individual capacity of channels that act row by row, by priors under which rows are copies.

For E_d with rows of one size, copies are optimal: whatever the other rows do, row j tells most
about a value V if it is an injective function of V (the proof is on the page "Individuals" of the
documentation). For larger groups, or rows of several sizes, copies give a lower bound. Upper bounds
are the sum of the rows' capacities, k times a bound for one row, and the capacity of the best pair
of databases times a number of yes-or-no questions.
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
from fastpriv._core.rounding import ULP, log_up, round_up
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.cliques import mean_questions
from fastpriv._structure.rows import RowKernels, Symmetric
from fastpriv.channels import HammingChannel, ProductChannel
from fastpriv.channels.queries.laws import score_law
from fastpriv.measures.capacity import capacity, row_capacity
from fastpriv.measures.individual.types import copies_bracket, mixed_bracket
from fastpriv.priors import Product
from fastpriv.results import Adversary, Bracket, IndividualCapacity
from fastpriv.spaces import Space

Search = Callable[[ProductChannel], IndividualCapacity]

#: Most values of a group that are listed.
_VALUES = 1 << 16
#: Rows that are tried before all rows.
_FEW = 1 << 12
#: Probabilities below the first are lost. Masses above the second are scaled down by it.
_LOST, _HUGE = 1e-290, 1e250
#: Epsilon from which on a row shows its value: what it hides, about e^-epsilon nats, is far less
#: than separates the logarithm of a whole number from any double.
_SHOWN = 1e4


def row_kernels(channel: HammingChannel) -> list[Symmetric]:
    """Return the distinct rows of E_d, with an epsilon whose multiples and squares are finite."""
    if channel.epsilon <= _SHOWN:
        return channel.symmetric()
    return [Symmetric(kernel.m, _SHOWN) for kernel in channel.symmetric()]


def opposite_capacity(rows: list[Symmetric]) -> Bracket:
    """Capacity of two databases that differ in all the given rows, in closed form.

    Of the two values that a row may hold, R_epsilon shows the true one with odds e^epsilon to 1,
    whatever m is. So a sufficient statistic is d, the number of rows whose output agrees with the
    first database minus the number that agrees with the second:

        C = sum_(d > 0) (P(d) + P(-d)) phi(tanh(epsilon d/2)),
        phi(s) = ((1 + s) ln(1 + s) + (1 - s) ln(1 - s))/2.

    Cost O(n) for rows of one size, O(n^2) otherwise.
    """
    if not rows or rows[0].epsilon == 0.0:
        return Bracket(0.0, 0.0)
    if len(rows) > _FEW:  # a few of many rows may reach ln 2 already
        lower = opposite_capacity(rows[:_FEW]).lower
        if lower >= math.log(2.0) * (1.0 - 2.0**-36):
            return Bracket(lower, log_up(2.0))
    epsilon = rows[0].epsilon
    law = _net_law(rows)
    # A gain is at least 0.4 of this, so what is left out is below an ulp of the sum.
    sizes = law * np.minimum(0.125 * (epsilon * np.arange(1.0, len(law) + 1.0)) ** 2, 1.0)
    kept = np.flatnonzero(sizes > 1e-20 * sizes.max() / len(law)).tolist()
    terms = [law[d] * _gain(epsilon * (d + 1)) for d in kept]
    value, error = math.fsum(terms), (16 * len(rows) + 512) * ULP
    return Bracket(max(value * (1.0 - error) - _LOST, 0.0), value * (1.0 + error) + _LOST)


def _gain(loss: float) -> float:
    """phi(tanh(loss/2)), without cancellation."""
    if loss > 700.0:
        return math.log(2.0)
    s, rest = math.tanh(0.5 * loss), 2.0 / (math.exp(loss) + 1.0)
    return 0.5 * (kernels.divergence(1.0 + s, 1.0, s) + kernels.divergence(rest, 1.0, -s))


def _net_law(rows: list[Symmetric]) -> Floats:
    """P(d) + P(-d) for d = 1 .. n, d = rows that show the true value minus the opposite one.

    For rows of one size m the masses from d = n down to 0 obey a recurrence with positive terms,
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
    """Return the capacity of copies of one row, and a law of its value that reaches the lower end.

    The channel is the same for all values, so the uniform law is optimal. Where its information
    is not known well, the uniform law on two values may have a higher lower end.
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
    """Capacity of the best k databases, where every row has at least k values.

    In the best k databases every row is an injective function of a value V of k, which is uniform.
    An output tells about V only if it is one of the k values that its row may hold, and then it is
    an output of R_epsilon on k values. So the result is the mean, over the number of such rows, of
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
    slack = 64.0 * ULP * (len(rows) * math.log(len(rows) + 2.0) + 745.0)
    told = mixed_bracket(law, kernel)
    return Bracket(told.lower * (1.0 - slack), told.upper * (1.0 + slack) + _LOST)


def _binomial(n: int, hit: float, miss: float) -> Floats:
    """Return the law of the number of hits in n, given both chances."""
    from scipy.special import gammaln, xlogy

    r = np.arange(n + 1)
    ways = gammaln(n + 1.0) - gammaln(r + 1.0) - gammaln(n - r + 1.0)
    return np.asarray(np.exp(ways + xlogy(r, hit) + xlogy(n - r, miss)))


def by_copies(kinds: list[Symmetric], which: Ints, k: int, clock: Clock) -> IndividualCapacity:
    """Bracket for groups of k rows. Every other row copies a row of the group of its size."""
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
    lower = math.fsum(part.lower for part, _ in told) * (1.0 - 4.0 * ULP if k > 1 else 1.0)
    rows = math.fsum(np.bincount(which) * [row_capacity(kind, 0.0)[0].upper for kind in kinds])
    logs = math.fsum(log_up(space.sizes[g]) for g in group)
    alone = k == 1 and len(set(size[live].tolist())) <= 1
    one = told[0][0].upper if alone else _one_row([kinds[t] for t in which[live].tolist()], clock)
    upper = one if k == 1 else round_up(min(k * one, rows, logs))
    who = _copying(space, group, leader, [law for _, law in told])
    return IndividualCapacity(lower, max(lower, upper), who)


def _one_row(rows: list[Symmetric], clock: Clock) -> float:
    """Return a bound for one row: that of copies, or by yes-or-no questions if sizes differ."""
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
    """Return the adversary: independent rows in the group, copies outside. None if too long."""
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
    """Bracket from a search over the rows of largest capacity, as many as give a small matrix.

    Further rows can only help an adversary, so this is a lower bound. The upper end is the sum of
    ln m over the rows of the group, or the capacity of all rows, or ``most``, if that is less.
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
