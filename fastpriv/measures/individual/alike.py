"""Individual capacity of many rows that all pass through one channel, by types of their outputs.

An adversary makes every row a function of x_i. Rows with the same function are interchangeable, so
the counts of their outputs are sufficient. Here all rows but a few copy x_i, and the few share one
other function: a lower bound, for any number of rows. For bits these are all adversaries
(``flips``). The upper end is ln m, the capacity of all rows, or a bound by the affinities of the
databases.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from fastpriv._core.clock import Clock
from fastpriv._core.rounding import ULP, log_up, lowered, round_up
from fastpriv._core.validation import Floats
from fastpriv._matrices.capacity import capacities, matrix_capacity
from fastpriv._matrices.searches.cliques import alike_limit
from fastpriv._structure.rows import RowKernels
from fastpriv.results import Adversary, IndividualCapacity

#: Most values of a group that affinities bound, and most values of a row.
_VALUES, _ROW = 4, 64
#: Most types of outputs of one channel, most functions that are tried, and a gap for trying.
_TYPES, _FUNCTIONS, _TRIED = 1 << 18, 256, 1e-6


def affinity_limit(kernels: RowKernels, k: int) -> float:
    """Bound what a product of rows tells about k of them, by the affinities of two databases.

    The affinity of two databases is the product of the affinities of their rows, so it is at least
    the product of the least ones. Infinity for groups of many values.
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
    return alike_limit(values, math.exp(log * (1.0 + 16.0 * ULP) - 16.0 * ULP))


def alike(kernels: RowKernels) -> bool:
    """Whether all rows have the same channel, and few enough types of outputs."""
    n, (m, outputs) = len(kernels.assignment), kernels.distinct[0].shape
    return len(kernels.distinct) == 1 and m > 1 and math.comb(n + outputs - 1, n) <= _TYPES


def by_types(kernels: RowKernels, gap: float, clock: Clock, most: float) -> IndividualCapacity:
    """Bracket for one row, given that nothing is above ``most``.

    Cost O(m^2) for each type of outputs, of each number of rows that have another function, of
    about 2 log2 n, and each function.
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
    # Relative errors of the entries; for their effect see ``search.widened``.
    error = (32.0 * n * math.log(n + 2.0) + 745.0 + 64.0) * ULP
    lower = max(lower - error * (lower + math.sqrt(2.0 * lower) + 4.0 * error) - 1e-290, 0.0)
    databases = np.repeat(np.arange(m)[:, None], n, axis=1)
    databases[:, n - s :] = np.array(f)[:, None]
    upper = max(lower, min(round_up(most), log_up(m)))
    return IndividualCapacity(lower, upper, Adversary((0,), databases, law))


def _capacity(
    kernel: Floats, n: int, s: int, f: tuple[int, ...], gap: float
) -> tuple[float, Floats]:
    """Return the lower end of what n - s copies and s rows with the function f tell, and a law."""
    first, second = counts_law(kernel, n - s), counts_law(kernel[list(f)], s)
    if first.shape[1] * second.shape[1] > _TYPES:
        return 0.0, np.full(len(kernel), 1.0 / len(kernel))
    rows = (first[:, :, None] * second[:, None]).reshape(len(kernel), -1)
    seen = np.ascontiguousarray(rows[:, rows.any(axis=0)])
    lower, _, laws = capacities(seen[None], gap)
    return float(lower[0]), laws[0]


def counts_law(kernel: Floats, n: int) -> Floats:
    """Return the laws of the counts of all outputs among n, for each value. Cost O(m K) each."""
    from scipy.special import gammaln, xlogy

    outputs = kernel.shape[1]
    counts = np.array([[n]])
    for _ in range(outputs - 1):  # divide the last count into two
        rest = counts[:, -1]
        own = np.repeat(np.arange(len(rest)), rest + 1)
        taken = np.arange(len(own)) - np.repeat(np.cumsum(rest + 1) - rest - 1, rest + 1)
        counts = np.column_stack([counts[own, :-1], taken, rest[own] - taken])
    ways = gammaln(n + 1.0) - gammaln(counts + 1.0).sum(axis=1)
    logs = sum(xlogy(counts[:, y], kernel[:, y, None]) for y in range(outputs))
    return np.asarray(np.exp(ways + logs))
