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
from fastpriv._structure.type_pairs import log_sizes
from fastpriv.channels.tilted_types import TypeTilt
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
    log_p = prior.log_weights[tuple(types[1:])]
    seen = log_p > -math.inf
    log_p, types = log_p[seen], types[:, seen]
    table = laws[_grid(types, outputs)]
    with np.errstate(divide="ignore"):
        log_q = np.logaddexp.reduce(log_p[:, None] + np.log(table), axis=0)
    apart = _rise(less, kernel, table, types, outputs, int(np.argmax(log_p)))
    # Logs of laws and weights: errors in proportion to their sizes, and those of the tables.
    sizes = float(np.abs(log_p).max()) + float(np.abs(log_q[log_q > -math.inf]).max())
    relative = 16.0 * ULP * (sizes + n) + 2.0 * laws_error(n, matrix) + prior.log_error
    pair = _of_types(*apart, log_p, log_q)
    if n > 1:
        left = 0.5 * (log_p - log_sizes(types))
        right = np.where(log_q > -math.inf, 0.5 * (log_sizes(outputs) - log_q), -math.inf)
        swapped = _of_swaps(n, kernel, (types, left), (outputs, right))
        pair = max(pair[0], swapped[0]), max(pair[1], swapped[1])
    return _rounded(pair, relative, len(log_p))


def tilted_correlation(tilt: TypeTilt, prior: Exchangeable) -> Bracket:
    """Return a bracket of the maximal correlation of a tilted channel of exchangeable rows.

    Its operator is R between two diagonal matrices as well: sqrt(p)/(R q) and q/sqrt(law of Y).
    """
    log_p = tilt.log_prior(prior)
    seen, n = log_p > -math.inf, tilt.n
    log_p, types = log_p[seen], tilt.types[:, seen]
    logs = (tilt.log_law[:, None] + tilt.pairs.log_laws - tilt.log_home)[:, seen].T
    log_q = np.logaddexp.reduce(log_p[:, None] + logs, axis=0)
    table, base = np.exp(logs), int(np.argmax(log_p))
    slack = tilt.pairs.error + tilt.error
    plain = table - table[base]
    pair = _of_types(plain, slack * (table + table[base]), log_p, log_q)
    if n > 1:
        left = 0.5 * (log_p - tilt.sizes[seen]) - tilt.log_each[seen]
        with np.errstate(invalid="ignore"):
            right = tilt.log_law - tilt.sizes - 0.5 * (log_q - tilt.sizes)
        right = np.where(tilt.occurs, right, -math.inf)
        swapped = _of_swaps(n, tilt.kernel, (types, left), (tilt.types, right))
        pair = max(pair[0], swapped[0]), max(pair[1], swapped[1])
    return _rounded(pair, 4.0 * slack + prior.log_error, len(log_p))


def _rounded(pair: tuple[float, float], relative: float, count: int) -> Bracket:
    """Allow for the errors of weights, and for entries whose laws underflow, below their roots."""
    relative, tiny = relative + UNSUMMED, count * 2.0**-400
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
    n: int, kernel: RowKernel, inputs: tuple[Ints, Floats], outputs: tuple[Ints, Floats]
) -> tuple[float, float]:
    """Bound the norm on functions that change sign when two rows are exchanged.

    The operator is W between two diagonal matrices. ``inputs`` and ``outputs`` are types and the
    logarithms of the diagonal entries of one database of each.
    """
    matrix, steps, fewer = kernel.matrix, rises(kernel), type_laws(n - 2, kernel.matrix)
    left, right = (_pairs_and_rest(*side) for side in (inputs, outputs))
    if not len(left[2]) or not len(right[2]):
        return 0.0, 0.0
    (s, t), (u, v) = left[0][:, :, None], right[0][:, None, :]
    first = matrix[s, u] * (steps[t, v] - steps[s, v])
    second = matrix[s, v] * (steps[t, u] - steps[s, u])
    minors, error = first - second, 8.0 * ULP * (np.abs(first) + np.abs(second))
    halves = 0.5 * log_sizes(left[1])[:, None] - 0.5 * log_sizes(right[1])
    with np.errstate(divide="ignore"):
        logs = np.log(fewer[_grid(left[1], right[1])]) + left[2][:, None] + right[2] + halves
    weight = np.exp(logs)
    lower, upper = norm_bounds(minors * weight)
    if minors.min() < 0.0 < minors.max():
        upper = norm_bounds(np.abs(minors) * weight)[1]
    off = float(np.linalg.norm(error * weight))
    return max(lower - off, 0.0), upper + off


def _pairs_and_rest(types: Ints, logs: Floats) -> tuple[Ints, Ints, Floats]:
    """Split types into two different values of rows 1 and 2 and the type of the other rows.

    Returns the two values, the type of the others, and the number of the type in ``logs``.
    """
    values, others, chosen = [], [], []
    for s, t in itertools.combinations(range(len(types)), 2):
        able = (types[s] > 0) & (types[t] > 0) & (logs > -math.inf)
        rest = types[:, able].copy()
        rest[[s, t]] -= 1
        values.append(np.tile([[s], [t]], rest.shape[1]))
        others.append(rest)
        chosen.append(logs[able])
    return np.hstack(values), np.hstack(others), np.concatenate(chosen)
