"""Maximal correlation of exchangeable rows and their outputs, all through one kernel.

Functions of the rows split into those of the type alone and those that are orthogonal to all of
them. The operator B = sqrt(p/q) W of the correlation keeps both parts. On the first it is that of
the types, of which the second singular value counts. The norm on the second part is attained by
functions that change sign when rows 1 and 2 are exchanged, because every irreducible part of it
holds such a function. On them B acts by the 2 x 2 minors of W in rows 1 and 2, and by W in the
other n - 2 rows. With the absolute values of the minors the operator is non-negative, so that its
norm is attained by functions of the type of the other rows: an upper bound. With the minors
themselves such functions give a lower bound. For bits there is one minor, and both are the same.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.correlation import UNSUMMED, norm_bounds
from fastpriv._structure.rows import RowKernel
from fastpriv._structure.type_laws import (
    laws_error,
    rise_of_laws,
    rises,
    type_laws,
    types_array,
)
from fastpriv._structure.types import log_multinomial
from fastpriv.priors import Exchangeable
from fastpriv.results import Bracket

#: Most numbers in the table of the laws of types, and most types.
_TABLE, _TYPES = 1 << 24, 4096


def fits(n: int, kernel: RowKernel) -> bool:
    """Whether the table of the laws of types is small enough."""
    m, outputs = kernel.shape
    most = math.comb(n + max(m, outputs) - 1, n)
    return (n + 1) ** (m + outputs - 2) <= _TABLE and most <= _TYPES


def type_correlation(prior: Exchangeable, kernel: RowKernel) -> Bracket:
    """Return a bracket of the maximal correlation; as narrow as rounding for bits.

    Cost O(n^3) for bits, O(n (n+1)^(m+K-2)) and the cube of the number of types in general.
    """
    n, matrix = prior.space.n, kernel.matrix
    laws, less = type_laws(n, matrix), type_laws(n - 1, matrix)
    types, outputs = types_array(n, matrix.shape[0]), types_array(n, matrix.shape[1])
    log_p = prior._log_weights[tuple(types[1:])]
    seen = log_p > -math.inf
    log_p, types = log_p[seen], types[:, seen]
    table = laws[_grid(types, outputs)]
    with np.errstate(divide="ignore"):
        log_q = np.logaddexp.reduce(log_p[:, None] + np.log(table), axis=0)
    apart = _rise(less, kernel, table, types, outputs, int(np.argmax(log_p)))
    # Logs of laws and weights: errors in proportion to their sizes, and those of the tables.
    sizes = float(np.abs(log_p).max()) + float(np.abs(log_q[log_q > -math.inf]).max())
    relative = 16.0 * ULP * (sizes + n) + 2.0 * laws_error(n, matrix) + prior._log_error + UNSUMMED
    pair = _of_types(*apart, log_p, log_q)
    if n > 1:
        swapped = _of_swaps(type_laws(n - 2, matrix), kernel, (types, log_p), (outputs, log_q))
        pair = max(pair[0], swapped[0]), max(pair[1], swapped[1])
    tiny = len(log_p) * 2.0**-400  # entries whose laws underflow are below their roots
    lower = max(pair[0] * (1.0 - relative) - tiny, 0.0)
    return Bracket(min(lower, 1.0), min(pair[1] * (1.0 + relative) + tiny, 1.0))


def _grid(types: Ints, outputs: Ints) -> tuple[Ints, ...]:
    """Return the index of all pairs of types in a table of laws."""
    return (*(c[:, None] for c in types[1:]), *(c[None, :] for c in outputs[1:]))


def _rise(
    less: Floats, kernel: RowKernel, table: Floats, types: Ints, outputs: Ints, base: int
) -> tuple[Floats, Floats]:
    """Return the laws minus that of the type ``base``, and a bound on the error of each entry.

    Entry by entry the better of the plain difference and of a sum of single changes.
    """
    n, steps, place = int(types[:, 0].sum()), rises(kernel), _grid(types, outputs)
    plain = table - table[base]
    slack = laws_error(n, kernel.matrix) + ULP
    error = slack * (table + table[base])
    total, terms = (rise_of_laws(less, part)[place] for part in (steps, np.abs(steps)))
    summed, bound = total - total[base], (slack + n * ULP) * (terms + terms[base])
    better = bound < error
    return np.where(better, summed, plain), np.where(better, bound, error)


def _of_types(apart: Floats, error: Floats, log_p: Floats, log_q: Floats) -> tuple[float, float]:
    """Bound the second singular value of the operator on types."""
    kept = log_q > -math.inf
    apart, error, log_q = apart[:, kept], error[:, kept], log_q[kept]
    weight = np.exp(0.5 * (log_p[:, None] - log_q))
    p = np.exp(log_p) / np.exp(log_p).sum()
    before = float(np.linalg.norm(weight * apart))
    for _ in range(2):  # the second pass removes the rounding error of the first
        apart = apart - p @ apart
    B = weight * apart
    lower, upper = norm_bounds(B)
    # The error of the mean, and of what is subtracted.
    off = float(np.linalg.norm(weight * error) + np.linalg.norm(weight * (p @ error)))
    off += 16.0 * ULP * (before + float(np.linalg.norm(B)))
    return max(lower - off, 0.0), upper + off


def _of_swaps(
    fewer: Floats, kernel: RowKernel, inputs: tuple[Ints, Floats], outputs: tuple[Ints, Floats]
) -> tuple[float, float]:
    """Bound the norm on functions that change sign when two rows are exchanged.

    ``inputs`` and ``outputs`` are types and the log-probabilities of them.
    """
    matrix, steps = kernel.matrix, rises(kernel)
    left, right = (_pairs_and_rest(*side) for side in (inputs, outputs))
    if not len(left[2]) or not len(right[2]):
        return 0.0, 0.0
    (s, t), (u, v) = left[0][:, :, None], right[0][:, None, :]
    first = matrix[s, u] * (steps[t, v] - steps[s, v])
    second = matrix[s, v] * (steps[t, u] - steps[s, u])
    minors, error = first - second, 8.0 * ULP * (np.abs(first) + np.abs(second))
    with np.errstate(divide="ignore"):
        logs = np.log(fewer[_grid(left[1], right[1])]) + left[2][:, None] - right[2]
    weight = np.exp(logs)
    lower, upper = norm_bounds(minors * weight)
    if minors.min() < 0.0 < minors.max():
        upper = norm_bounds(np.abs(minors) * weight)[1]
    off = float(np.linalg.norm(error * weight))
    return max(lower - off, 0.0), upper + off


def _pairs_and_rest(types: Ints, logs: Floats) -> tuple[Ints, Ints, Floats]:
    """Split types into two different values of rows 1 and 2 and the type of the other rows.

    Returns the two values, the type of the others, and ln of the root of the probability of one
    such database times the number of arrangements of the other rows.
    """
    values, others, roots = [], [], []
    for counts, log in zip(types.T.tolist(), logs.tolist(), strict=True):
        if log == -math.inf:
            continue
        whole = log - log_multinomial(counts)
        for s, t in itertools.combinations(range(len(counts)), 2):
            if counts[s] and counts[t]:
                rest = [c - (value in (s, t)) for value, c in enumerate(counts)]
                values.append((s, t))
                others.append(rest)
                roots.append(0.5 * (whole + log_multinomial(rest)))
    m = len(types)
    shaped = np.array(values, dtype=np.int64).reshape(-1, 2).T
    return shaped, np.array(others, dtype=np.int64).reshape(-1, m).T, np.array(roots)
