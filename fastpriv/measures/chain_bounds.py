"""Bounds for record-by-record channels on Markov chains that are too long to list.

No recursion finds the output that leaks most, because its probability is a sum over paths that
share one output. Bounds follow from a relaxation in which the output may depend on the state of the
chain.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from fastpriv._core.rounding import roundoff
from fastpriv._core.validation import Floats, Ints
from fastpriv._structure.rows import RowKernel, RowKernels
from fastpriv.priors.markov import Markov, chain_information
from fastpriv.results import Bracket

#: Longest vector of a chain whose databases are listed.
_LISTED = 1 << 20


def is_long(chain: Markov) -> bool:
    """Whether measures of a chain are bounded rather than computed from all databases."""
    return chain.space.size > _LISTED


def leakage_bounds(chain: Markov, kernels: RowKernels) -> tuple[Bracket, Bracket]:
    """Return brackets of the largest leakage upwards and downwards over outputs. Cost O(n m^3).

    Outputs of period one and two give the lower bounds. For the upper bounds W is divided by its
    column maxima. Then ln of its largest entry is at most 0, and ln of its smallest entry is at
    least the sum of the records' smallest values. A recursion bounds the probability of an output:
    every step uses the least or the most likely output for each state.
    """
    n, error = chain.space.n, roundoff(16.0 * chain.space.n * (4 * len(chain.initial) + 16))
    least, most = (_extreme_mass(chain, kernels, sign) for sign in (-1.0, 1.0))
    farthest = math.fsum(
        len(rows) * float(kernel.log_relative[:, kernel.column_maxima > 0.0].min())
        for kernel, rows in kernels.groups()
    )
    tops = [-least + error * (1.0 - least), most - farthest + error * (1.0 - farthest)]
    up, down = 0.0, 0.0
    for y in _outputs(kernels, n):
        one = chain.column(kernels, y)
        if one.mass > -math.inf:
            up = max(up, one.best - one.mass - one.error)
            down = max(down, one.mass - _least_path(chain, kernels, y) - one.error)
    # The lower bounds use possible databases and their outputs only.
    return Bracket(min(up, tops[0]), tops[0]), Bracket(min(down, tops[1]), tops[1])


def _extreme_mass(chain: Markov, kernels: RowKernels, sign: float) -> float:
    """Return a bound on ln of the probability of any output, W divided by its column maxima."""
    from fastpriv.kernels import chain_extreme_mass

    columns = [kernel.relative[:, kernel.column_maxima > 0.0].T for kernel in kernels.distinct]
    outputs = np.array([len(near) for near in columns])
    table = np.zeros((len(columns), int(outputs.max()), len(chain.initial)))
    for part, near in zip(table, columns, strict=True):
        part[: len(near)] = near
    return chain_extreme_mass(
        chain.initial, chain.transition, table, outputs, kernels.assignment, sign
    )


def _outputs(kernels: RowKernels, n: int) -> list[Ints]:
    """Return outputs of period one and two."""
    width = min(kernel.shape[1] for kernel in kernels.distinct)
    pairs = itertools.product(range(min(width, 4)), repeat=2)
    return [np.resize(np.array(pair, dtype=np.int64), n) for pair in pairs]


def _least_path(chain: Markov, kernels: RowKernels, y: Ints) -> float:
    """Return the smallest ln of W[x, y] over its column maxima, over databases that can occur."""
    from fastpriv.kernels import chain_log_best

    widest = max(kernel.shape[1] for kernel in kernels.distinct)
    table = np.zeros((len(kernels.distinct), widest, len(chain.initial)))
    for part, kernel in zip(table, kernels.distinct, strict=True):
        part[: kernel.shape[1]] = np.minimum(-kernel.log_relative.T, 1e200)
    best = chain_log_best(chain.initial, chain.transition, table, kernels.assignment, y)
    return -best if best < 1e200 else 0.0


def gain_bounds(chain: Markov, kernels: RowKernels) -> Bracket:
    """Return a bracket of the largest H(X) - H(X | Y = y). Cost O(m^4) for each kernel, and O(n).

    It is at least its mean I(X; Y). Given y and the previous record, a record has a distribution
    proportional to T[a, b] W[b, y_i] v(b). Here v depends on the later outputs and is a combination
    of the columns of T. Entropy is concave, so the record's entropy is smallest if v is one of the
    columns.
    """
    T, n = chain.transition, chain.space.n
    after = T if n > 1 else np.ones((len(T), 1))
    left = list[float]()
    for kernel, rows in kernels.groups():
        middle = np.count_nonzero((rows > 0) & (rows < n - 1))
        if middle:
            left.append(int(middle) * _least_entropy(T, kernel, T))
        if 0 in rows:
            left.append(_least_entropy(chain.initial[None, :], kernel, after))
        if n > 1 and n - 1 in rows:
            left.append(_least_entropy(T, kernel, np.ones((len(T), 1))))
    whole = chain.entropy()
    error = 1e-12 * (1.0 + whole)
    upper = min(max(whole - math.fsum(left), 0.0), whole) + error
    told = chain_information(chain, kernels)
    lower = told.lower if isinstance(told, Bracket) else told
    return Bracket(min(max(lower - error, 0.0), upper), upper)


def _least_entropy(before: Floats, kernel: RowKernel, after: Floats) -> float:
    """Return the smallest entropy of before[a, .] W[., y] after[., c] over a, y and c."""
    from scipy.special import xlogy

    laws = np.einsum("ab,by,bc->aycb", before, kernel.relative, after)
    total = laws.sum(axis=-1, keepdims=True)
    seen = total[..., 0] > 0.0
    p = laws[seen] / total[seen]
    return float(-xlogy(p, p).sum(axis=1).max(initial=-math.inf)) if len(p) else 0.0
