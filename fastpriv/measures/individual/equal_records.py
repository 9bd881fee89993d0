"""Individual capacity of bits that all pass through one channel, by the number of flipped bits.

An adversary chooses two databases. A bit in which they agree reveals nothing, so they differ in all
bits. Bits are interchangeable, so only the number j of bits that are 1 in the first database
matters, and j and n - j give the same pair. Let outputs of these j bits count as minus one
and all other outputs as plus one. The likelihood ratio of the two databases is a function of the
net number of each output. So every candidate is a channel from two inputs to net numbers.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpriv._core.clock import Clock
from fastpriv._core.rounding import log_up, lowered, round_up, roundoff
from fastpriv._core.validation import Floats
from fastpriv._matrices.capacity import capacities, matrix_capacity
from fastpriv._matrices.searches.cliques import alike_limit
from fastpriv._structure.counts import compositions_array, log_multinomials
from fastpriv._structure.rows import RowKernels
from fastpriv.measures.individual.adversary import information_error
from fastpriv.results import Adversary, IndividualCapacity

#: Most multiplications for all candidates together.
_WORK = 1 << 31
#: Most entries of all powers, 128 MB.
_ENTRIES = 1 << 24
Powers = list[NDArray[Any]]
#: Most values of a group that affinities bound; the bound is useless for more.
_VALUES = 4
#: Most values of a record whose affinities are computed.
_ROW = 64
#: Most types of outputs of one channel.
_TYPES = 1 << 18
#: Most functions that are tried.
_FUNCTIONS = 256
#: Information that may be lost to underflow, in nats.
_LOST = 1e-290
#: Gap of a capacity that only selects the best function.
_TRIED = 1e-6


def fits(kernels: RowKernels) -> bool:
    """Whether all records are bits with one channel, and few enough for this algorithm."""
    if len(kernels.distinct) > 1 or kernels.distinct[0].shape[0] != 2:
        return False
    n, outputs = len(kernels.assignment), kernels.distinct[0].shape[1]
    largest = (n + 1.0) ** (outputs - 1)
    return n * largest <= _ENTRIES and n * (largest / 4.0 ** (outputs - 1)) * largest <= _WORK


def by_flips(kernels: RowKernels, gap: float, clock: Clock, most: float) -> IndividualCapacity:
    """Bracket the capacity for one bit, at most ``most``.

    If the time is over, the other candidates are bounded by ``most`` and ln 2. With K outputs the
    cost is at most O(n^(2K-1)), all of it in convolutions.
    """
    n, (zero, one) = len(kernels.assignment), kernels.distinct[0].matrix
    plus = [_powers(law, n, False) for law in (zero, one)]
    minus = [_powers(law, n // 2, True) for law in (zero, one)]
    lower, upper, best, law = -1.0, 0.0, 0, np.empty(2)
    left = min(round_up(most), log_up(2.0))
    for flips in range(n // 2 + 1):
        if flips and clock.left() == 0.0:
            upper = max(upper, left)
            break
        first = _convolved(plus[0][n - flips], minus[1][flips])
        second = _convolved(plus[1][n - flips], minus[0][flips])
        rows = np.stack([first.reshape(-1), second.reshape(-1)])
        seen = np.ascontiguousarray(rows[:, rows.any(axis=0)])
        low, high, laws = capacities(seen[None], 0.25 * gap)
        upper = max(upper, float(high[0]))
        if low[0] > lower:
            lower, best, law = float(low[0]), flips, laws[0]
    # Entries are sums of products of up to n factors.
    terms = float(n + 1) ** (kernels.distinct[0].shape[1] - 1)
    slack = information_error(upper, roundoff(4.0 * n + terms + 16.0)) + _LOST
    databases = np.zeros((2, n), dtype=np.int64)
    databases[1, : n - best] = databases[0, n - best :] = 1
    lower = max(lower - slack, 0.0)
    upper = max(lower, min(upper + slack, left))
    return IndividualCapacity(lower, upper, Adversary((0,), databases, law))


def _powers(law: Floats, count: int, reflected: bool) -> Powers:
    """Return the distributions of the numbers of outputs 1 .. K-1 among 0 .. count outputs.

    Reflected, they are the distributions of minus these numbers. All arrays start at the smallest
    numbers.
    """
    axes = len(law) - 1
    powers: Powers = [np.ones((1,) * axes)]
    for size in range(1, count + 1):
        total = np.zeros((size + 1,) * axes)
        for output, chance in enumerate(law.tolist()):
            step = [int(axis + 1 == output) for axis in range(axes)]
            start = [1 - s for s in step] if reflected else step
            total[tuple(slice(s, s + size) for s in start)] += chance * powers[-1]
        powers.append(total)
    return powers


def _convolved(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """Return the distribution of a sum, without subtractions."""
    if a.ndim == 1:
        return np.convolve(a, b)
    from scipy.signal import convolve

    return np.asarray(convolve(a, b, method="direct"))


# Individual capacity of many records that all pass through one channel, by types of their outputs.
#
# An adversary makes every record a function of x_i. Records with the same function are
# interchangeable, so the counts of their outputs are sufficient. Here all records but a few copy
# x_i, and the few share one other function. This is a lower bound, for any number of records. For
# bits these are all adversaries (``by_flips``). The upper bound is ln m, the capacity of all
# records, or a bound by the affinities of the databases.


def affinity_limit(kernels: RowKernels, k: int) -> float:
    """Bound the information about k records of a product, by the affinities of two databases.

    The affinity of two databases is the product of the affinities of their records, so it is at
    least the product of the smallest ones. Infinity for groups of many values.
    """
    shapes = [kernel.shape for kernel in kernels.distinct]
    values = math.prod(sorted(shapes[t][0] for t in kernels.assignment.tolist())[-k:])
    if values > _VALUES or max(m for m, _ in shapes) > _ROW:
        return math.inf
    least = []
    for kernel in kernels.distinct:
        roots = np.sqrt(kernel.matrix)
        least.append(float(lowered(roots @ roots.T, 2.0 * roots.shape[1] + 16.0).min()))
    counts = np.bincount(kernels.assignment, minlength=len(least))
    if min(least) <= 0.0:
        return math.inf
    log = math.fsum(counts * np.log(least))
    return alike_limit(values, math.exp(lowered(log, 16.0) - roundoff(16.0)))


def alike(kernels: RowKernels) -> bool:
    """Whether all records have the same channel, and few enough types of outputs."""
    n, (m, outputs) = len(kernels.assignment), kernels.distinct[0].shape
    return len(kernels.distinct) == 1 and m > 1 and math.comb(n + outputs - 1, n) <= _TYPES


def by_types(kernels: RowKernels, gap: float, clock: Clock, most: float) -> IndividualCapacity:
    """Bracket the capacity for one record, at most ``most``.

    Cost O(m^2) for each type of outputs, each function and each number of records with another
    function. About ten such numbers are tried.
    """
    n, kernel = len(kernels.assignment), kernels.distinct[0].matrix
    m = len(kernel)
    same = tuple(range(m))
    best, told = (0, same), matrix_capacity(counts_law(kernel, n), _TRIED)[0].lower
    functions = itertools.islice(itertools.product(range(m), repeat=m), _FUNCTIONS)
    few = sorted({round(n * 2.0**-j) for j in range(1, 10)} | {n // 3, 1} - {0})
    for f, s in itertools.product(functions, few):
        if clock.left() == 0.0:
            break
        if f != same and 0 < s < n:
            lower = _capacity(kernel, n, s, f, _TRIED)[0]
            if lower > told:
                best, told = (s, f), lower
    s, f = best
    lower, law = _capacity(kernel, n, s, f, 0.25 * gap)
    error = roundoff(32.0 * n * math.log(n + 2.0) + 745.0 + 64.0)
    lower = max(lower - information_error(lower, error) - _LOST, 0.0)
    databases = np.repeat(np.arange(m)[:, None], n, axis=1)
    databases[:, n - s :] = np.array(f)[:, None]
    upper = max(lower, min(round_up(most), log_up(m)))
    return IndividualCapacity(lower, upper, Adversary((0,), databases, law))


def _capacity(
    kernel: Floats, n: int, s: int, f: tuple[int, ...], gap: float
) -> tuple[float, Floats]:
    """Return the capacity of n - s copies and s values f, rounded down, and a distribution."""
    first, second = counts_law(kernel, n - s), counts_law(kernel[list(f)], s)
    if first.shape[1] * second.shape[1] > _TYPES:
        return 0.0, np.full(len(kernel), 1.0 / len(kernel))
    rows = (first[:, :, None] * second[:, None]).reshape(len(kernel), -1)
    seen = np.ascontiguousarray(rows[:, rows.any(axis=0)])
    lower, _, laws = capacities(seen[None], gap)
    return float(lower[0]), laws[0]


def counts_law(kernel: Floats, n: int) -> Floats:
    """Return the distributions of the counts of all outputs among n, for each value.

    Cost O(m K) each.
    """
    from scipy.special import xlogy

    outputs = kernel.shape[1]
    counts = compositions_array(n, outputs)
    ways = log_multinomials(counts, axis=1)
    logs = sum(xlogy(counts[:, y], kernel[:, y, None]) for y in range(outputs))
    return np.asarray(np.exp(ways + logs))
