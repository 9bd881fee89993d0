"""Group capacity of E_d: rows outside a group as check symbols of a code on the group's values.

A group of k rows with m values each holds a word v of Z_m^k. Let every row of the database be a
linear function f_j(v) modulo m, the rows of the group its coordinates. The outputs are noisy looks
at the m^k words of a linear code. Adding a word only renames the outputs, so the uniform law is the
best one. Let c_fu be how often output u occurs among the rows with the function f. The probability
of v given the outputs is proportional to e^(epsilon score), score = sum_f c_(f, f(v)). So the
information is a sum over the counts. It is a lower bound of the group capacity. An upper bound for
bits is on the page "Individuals" of the documentation.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.clock import Clock
from fastpriv._core.rounding import ULP, round_up
from fastpriv._core.validation import Floats, Ints
from fastpriv._structure.rows import Symmetric
from fastpriv.measures.individual.copies import opposite_capacity
from fastpriv.measures.individual.types import posterior_gains
from fastpriv.results import Adversary, IndividualCapacity

#: Most words of a code, and most entries: counts times words.
_WORDS, _ENTRIES = 1 << 10, 1 << 22
#: Information below is lost to underflow.
_LOST = 1e-290


def with_code(
    bracket: IndividualCapacity, kernel: Symmetric, n: int, k: int, clock: Clock
) -> IndividualCapacity:
    """Narrow the bracket for k of n rows of E_d, all of one size, by a code and by pairs of bits.

    Cost O(m^k) for every combination of counts, of which there are at most 2^22/m^k: for pairs of
    bits up to 300 rows. Further rows are left constant.
    """
    upper = min(bracket.upper, pairs_bound(kernel, n, k)) if kernel.m == 2 else bracket.upper
    lower, who = _code(kernel, n, k, clock) or (0.0, None)
    if lower <= bracket.lower:
        lower, who = bracket.lower, bracket.adversary
    return IndividualCapacity(lower, max(lower, upper), who)


def _code(kernel: Symmetric, n: int, k: int, clock: Clock) -> tuple[float, Adversary] | None:
    """Return what a linear code tells, rounded down, and its adversary. None if it is too large."""
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
    """Bound C_k of E_d on n bits by pairs: C_2 <= 2 I(2n/3), with I(d) the information in d copies.

    Between whole numbers I is the chord. C_k is at most C_2 for every pair, plus C_1 if k is odd.
    """
    at, third = divmod(2 * n, 3)
    ends = [opposite_capacity([kernel] * d).upper for d in (at, at + 1, n)]
    pair = 2.0 * ((3 - third) * ends[0] + third * ends[1]) / 3.0
    return round_up((k // 2 * pair + k % 2 * ends[2]) * (1.0 + 8.0 * ULP))


def _rows(kernel: Symmetric, words: Ints, n: int) -> Ints:
    """Return the values of the rows, for every word: the coordinates, and further linear functions.

    Each further function makes sum z^(weight of a word) least, where z is the Bhattacharyya
    coefficient of two values of a row. It bounds how often words are confused.
    """
    m, k = kernel.m, words.shape[1]
    first = words[np.arange(len(words)), (words > 0).argmax(axis=1)]
    forms = words[first == 1]  # others are multiples, or have fewer values
    values = forms @ words.T % m
    z = 2.0 * math.sqrt(kernel.stay * kernel.off) + (m - 2) * kernel.off
    used = [int(np.flatnonzero((forms == unit).all(axis=1))[0]) for unit in np.eye(k, dtype=int)]
    weight = (values[used] > 0).sum(axis=0).astype(np.float64)
    steps = np.where(values > 0, math.log(max(z, 1e-300)), 0.0)
    room = math.log(_ENTRIES / len(words))
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
    """Information about a uniform word of a linear code, and its relative error.

    ``symbols`` holds the values of each row for every word. When the time is over, terms are left
    out. All terms are positive.
    """
    m, epsilon, n, words = kernel.m, kernel.epsilon, *symbols.shape
    parts = []
    for form, copies in Counter(map(tuple, symbols.tolist())).items():
        counts = np.array(list(_compositions(copies, m)))
        parts.append((counts[:, list(form)].astype(np.float64), _log_ways(counts)))
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
    return math.fsum(total), (32.0 * sizes + 64.0 * (words + 8) * math.sqrt(words)) * ULP


def _compositions(total: int, parts: int) -> Iterator[list[int]]:
    """Yield all lists of counts with the given sum."""
    if parts == 1:
        yield [total]
        return
    for first in range(total + 1):
        for rest in _compositions(total - first, parts - 1):
            yield [first, *rest]


def _log_ways(counts: Ints) -> Floats:
    """Return the logarithms of multinomial coefficients."""
    from scipy.special import gammaln

    logs = gammaln(np.arange(counts.max() + counts.shape[1] * counts.max() + 2.0) + 1.0)
    return np.asarray(logs[counts.sum(axis=1)] - logs[counts].sum(axis=1))
