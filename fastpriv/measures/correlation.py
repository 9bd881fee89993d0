"""Maximal correlation of database and output."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import reduce, singledispatch
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.rounding import ULP, lowered, raised, root_up, roundoff
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.correlation import (
    SCALE,
    UNSUMMED,
    capped,
    excess_correlation,
    lanczos,
    matrix_correlation,
    norm_bounds,
    relative_correlation,
    shrinking_correlation,
    sparse_correlation,
)
from fastpriv._matrices.tilted import SMALL
from fastpriv._structure.counts import log_multinomials, types_array
from fastpriv._structure.johnson import block_norms
from fastpriv._structure.rows import RowKernel, RowKernels, Symmetric, TiltedRow
from fastpriv._structure.type_pairs import (
    laws_error,
    rise_of_laws,
    rises,
    type_laws,
)
from fastpriv.channels import (
    AbstractChannel,
    Channel,
    ProductChannel,
    QueryChannel,
    TiltedChannel,
)
from fastpriv.channels.local import SupportChannel
from fastpriv.channels.tilted import TiltedProduct, TypeTilt
from fastpriv.channels.types import TypeChannel, log_type_weights, type_error, type_weights
from fastpriv.errors import InvalidInput
from fastpriv.measures import supports
from fastpriv.measures.contraction import contraction, rows_contraction
from fastpriv.measures.inputs import as_pair, is_stack, sparse_matrix, stacked, table
from fastpriv.measures.leakage import extreme_level
from fastpriv.priors import Distribution, Exchangeable, Markov, Product
from fastpriv.priors.base import as_prior
from fastpriv.priors.markov import HiddenMarkov
from fastpriv.results import Bracket

__all__ = ["channel_from_correlation", "maximal_correlation"]

#: Most entries of the matrix of a record-by-record channel that is formed to be certified.
_FORMED = 1 << 22
#: Longest vector of a search without the matrix.
_LONGEST = 1 << 24
#: Most values of neighbouring records that are treated as one record.
_GROUP = 64
#: Width up to which only rounding separates the bounds; then the upper bound is returned.
_NARROW = 1e-5
#: Differences of rows below this number may be lost to underflow.
_LOST = 2.0**-900
#: Most numbers in the table of the distributions of types, 128 MB.
_TABLE = 1 << 24
#: Most types for which the singular values of their matrix are computed.
_TYPES = 4096
#: How far the conditions on a matrix of correlations may be missed.
_TOLERANCE = 1e-9


@overload
def maximal_correlation(
    channel: AbstractChannel, prior: Distribution | ArrayLike
) -> float | Bracket: ...
@overload
def maximal_correlation(
    channel: AbstractChannel | ArrayLike,
    prior: Distribution | ArrayLike,
    *,
    out: Floats | None = ...,
) -> float | Bracket | Floats: ...
def maximal_correlation(
    channel: AbstractChannel | ArrayLike,
    prior: Distribution | ArrayLike,
    *,
    out: Floats | None = None,
) -> float | Bracket | Floats:
    """Compute the maximal correlation rho of database and output (Hirschfeld, Gebelein, Renyi).

    rho is the largest correlation of a function of the database with a function of the output. It
    equals the second singular value of p(x, y)/sqrt(p(x) p(y)). It is 0 if and only if database and
    output are independent. Its square is a lower bound on :func:`sdpi_constant`. The mean squared
    error of any estimate of a function of the database is at least 1 - rho^2 times its variance
    (Makhdoumi-Fawaz 2013, Section III-B).

    Parameters
    ----------
    channel : channel, 2-D array, scipy.sparse matrix, or stack (B, N, K)
        The mechanism, or many matrices.
    prior : Distribution or 1-D array
        Distribution of the databases; for a stack also (B, N), one for each channel.
    out : array of length B, optional
        Array that receives the correlations of a stack.

    Returns
    -------
    float or Bracket, or array of length B for a stack
        rho, rounded up. A bracket for long Markov chains, and for exchangeable records of three or
        more values unless both bounds meet. If the smaller side of a matrix exceeds 4096, the
        result is a singular value of the Lanczos method plus its residual of 1e-10. It may then be
        too small if the random start is orthogonal to the largest singular vector.

    Notes
    -----
    Cost O(N K s) for a matrix of smaller side s, O(nonzeros) per step for a sparse matrix. For
    independent records rho is the largest correlation of a record (Witsenhausen 1975).

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(fp.maximal_correlation([[0.9, 0.1], [0.1, 0.9]], [0.5, 0.5]), 9)
    0.8
    >>> prior = fp.Product.iid([0.7, 0.3], 1_000_000)
    >>> round(fp.maximal_correlation(fp.HammingChannel(1_000_000, 2, 1.0), prior), 6)
    0.430964
    """
    if is_stack(channel, out):
        return stacked(None, maximal_correlation, channel, prior, out)
    if hasattr(channel, "tocsr"):
        matrix = sparse_matrix(channel)
        return sparse_correlation(matrix, _law(prior, matrix.shape[0])).upper
    mechanism, law = as_pair(channel, prior)
    rho = correlation(mechanism, law)
    if has_rare(mechanism, law):
        rho = Bracket(rho.lower, max(rho.upper, min(root_up(contraction(mechanism).upper), 1.0)))
    return rho.upper if rho.width <= _NARROW else rho


def has_rare(channel: AbstractChannel, prior: Distribution) -> bool:
    """Whether the probability of a listed database underflows, so that it looks impossible.

    Such a database still counts. The contraction coefficient bounds the correlation.
    """
    by_row = isinstance(channel, ProductChannel) and isinstance(prior, Product)
    listed = not by_row and prior.space.size <= check.MAX_VECTOR  # larger ones by their structure
    return listed and prior.logs_if_rare() is not None


def _law(prior: Distribution | ArrayLike, size: int) -> Any:
    p = as_prior(prior).probabilities()
    if len(p) != size:
        raise InvalidInput(
            f"prior must have {size} entries, one for each database of the channel; got {len(p)}."
        )
    return p


@singledispatch
def correlation(channel: AbstractChannel, prior: Distribution) -> Bracket:
    """Maximal correlation of database and output, for checked arguments.

    The general algorithm uses the matrix, and widens by its error. Cost O(N K s), where s is the
    smaller side.
    """
    rho = matrix_correlation(table(channel), prior.probabilities())
    if channel.matrix_error == 0.0:
        return rho
    # The root of the mean of (W/q - 1)^2 is another bound, which the leakage capacity bounds.
    apart = raised(math.expm1(min(extreme_level(channel), 1.0)), 8.0)
    return _moved(rho, channel, min(apart, 1.0))


def _moved(rho: Bracket, channel: AbstractChannel, most: float) -> Bracket:
    """Widen a correlation of at most ``most`` by the errors of the matrix.

    A norm of the joint distribution over the roots of its margins, which moves by what they do.
    """
    off = 4.0 * channel.matrix_error
    return Bracket(min(max(rho.lower - off, 0.0), most), min(rho.upper + off, most))


@correlation.register
def _query_correlation(channel: QueryChannel, prior: Distribution) -> Bracket:
    """Use the answer in place of the database.

    If the distribution of the answer is off by a factor of at most 1 + e at every answer, rho is
    off by at most (1 + e)/(1 - e): the centred matrix is multiplied by diagonal matrices and a
    projection.
    """
    rho = row_correlation(channel.kernel, channel.query.law(prior))
    off = 4.0 * channel.query.law_error
    return Bracket(rho.lower * (1.0 - off), min(rho.upper * (1.0 + off), 1.0))


@correlation.register
def _product_correlation(channel: ProductChannel, prior: Distribution) -> Bracket:
    """Record by record, in the structure of the prior."""
    rho = rows_correlation(prior, channel.kernels)
    # For epsilon near 5e-324 the differences underflow; only an upper bound is known.
    lost = any(isinstance(k, Symmetric) and 0.0 < k.gap < _LOST for k in channel.kernels.distinct)
    return Bracket(0.0, max(rho.upper, _LOST)) if lost else rho


@correlation.register
def _tilted_correlation(channel: TiltedChannel, prior: Distribution) -> Bracket:
    """Under its own prior, use randomised response on q: correlation is symmetric in X and Y.

    Use differences of rows if they fit.
    """
    formed = channel.excess()
    if formed is not None:
        return relative_correlation(formed, channel.base.probabilities(), prior.probabilities())
    if channel.is_own_prior(prior):
        return _own_correlation(channel)
    types, same = channel.by_type, prior.by_type()
    if types is not None and same is not None and types.fits:
        return tilted_correlation(types, same)
    if prior.is_certain:  # nothing varies
        return Bracket(0.0, 0.0)
    return _moved(matrix_correlation(channel.nearest_matrix(), prior.probabilities()), channel, 1.0)


@correlation.register
def _tilted_product_correlation(channel: TiltedProduct, prior: Distribution) -> Bracket:
    """Delegate to the product channel; for a dense prior use differences of rows if they fit."""
    formed = None if isinstance(prior, Product) else channel.excess()
    if formed is not None:
        return relative_correlation(formed, channel.base.probabilities(), prior.probabilities())
    return correlation(channel.as_product, prior)


@correlation.register
def _type_correlation(channel: TypeChannel, prior: Distribution) -> Bracket:
    """Bits under an exchangeable prior: part by part, O(n^4). Otherwise use the matrix."""
    types = prior.by_type()
    if types is None or channel.space.m != 2:
        return matrix_correlation(channel.nearest_matrix(), prior.probabilities())
    weights, output = type_weights(channel.types, types), channel.types.log_sizes
    alike = matrix_correlation(channel.type_matrix(), weights)
    with np.errstate(divide="ignore"):
        law = np.log(channel.output_types(weights)) - output
    own = log_type_weights(channel.types, types) - output
    parts = block_norms(channel.by_overlap(), own[::-1], law[::-1])
    # Relative errors of the entries are absolute errors of the norm.
    off = type_error(channel.space.n)
    return Bracket(
        max(alike.lower - off, parts.lower, 0.0), min(max(alike.upper + off, parts.upper), 1.0)
    )


@correlation.register
def _support_correlation(channel: SupportChannel, prior: Distribution) -> Bracket:
    """Closed form under a uniform prior; otherwise at most the root of the contraction."""
    p = prior.probabilities()
    if channel.symmetric and p.min() == p.max():
        return supports.correlation(channel)
    most = raised(math.sqrt(contraction(channel).upper), 8.0)
    if not channel.is_small():
        return Bracket(0.0, most)
    return _moved(matrix_correlation(channel.nearest_matrix(), p), channel, most)


def _own_correlation(channel: TiltedChannel) -> Bracket:
    """Return the correlation of randomised response on q, widened by the effect of clipping q."""
    rho = rows_correlation(channel.base, channel.hamming_kernels)
    misfit = math.expm1(channel.misfit) + 2.0**-52
    return Bracket(rho.lower * (1.0 - misfit), min(rho.upper * (1.0 + misfit), 1.0))


@singledispatch
def rows_correlation(prior: Distribution, kernels: RowKernels) -> Bracket:
    """Maximal correlation across a channel that acts record by record.

    The general algorithm uses the vector of the prior. Cost O(N n) for each of some hundred
    products. A small matrix is used directly.
    """
    return vector_correlation(prior.as_dense("maximal correlation").probabilities(), kernels)


@rows_correlation.register
def _product_rows_correlation(prior: Product, kernels: RowKernels) -> Bracket:
    """Return the largest of the records' correlations (Witsenhausen 1975)."""
    laws, which, _, _ = prior.paired(kernels)
    pairs = zip(laws, which, strict=True)
    return largest([row_correlation(kernels.distinct[j], prior.distinct[k]) for k, j in pairs])


@rows_correlation.register
def _exchangeable_rows_correlation(prior: Exchangeable, kernels: RowKernels) -> Bracket:
    """Use types if all records have one kernel. Exact for bits, at a cost of O(n^3).

    For more values it is a bracket unless the bounds meet or the matrix is small.
    """
    kernel, n = kernels.distinct[0], prior.space.n
    if len(kernels.distinct) > 1 or 1 in kernel.shape:
        return vector_correlation(prior.as_dense("maximal correlation").probabilities(), kernels)
    rho = type_correlation(prior, kernel) if fits(n, kernel) else _between(prior, kernels)
    listed = (kernel.shape[0] * kernel.shape[1]) ** n <= _FORMED
    if listed and rho.width > 1e-3 * _NARROW * rho.upper:
        return vector_correlation(prior.probabilities(), kernels)
    return rho


@rows_correlation.register(HiddenMarkov)
@rows_correlation.register(Markov)
def _hidden_markov_or_markov_rows_correlation(prior: Distribution, kernels: RowKernels) -> Bracket:
    """Use the vector if it fits, otherwise return a bracket."""
    if prior.space.size <= _LONGEST:
        return vector_correlation(prior.probabilities(), kernels)
    return _between(prior, kernels)


def _between(prior: Distribution, kernels: RowKernels) -> Bracket:
    """Bound it below by the first records alone, and above by the contraction coefficient.

    Functions of the first records and their outputs are functions of all, and rho^2 <= eta.
    """
    first = kernels.distinct[int(kernels.assignment[0])]
    lower = row_correlation(first, prior.marginal(0)).lower
    upper = min(raised(math.sqrt(rows_contraction(kernels).upper), 8.0), 1.0)
    return Bracket(min(lower, upper), upper)


def largest(rows: list[Bracket]) -> Bracket:
    """Bracket of the largest of some numbers."""
    return Bracket(max(row.lower for row in rows), max(row.upper for row in rows))


@singledispatch
def row_correlation(kernel: RowKernel, law: Floats) -> Bracket:
    """Maximal correlation of one record's value and its output, when the value follows ``law``."""
    return matrix_correlation(kernel.matrix, law)


@row_correlation.register
def _symmetric_row_correlation(kernel: Symmetric, law: Floats) -> Bracket:
    """Return a - b for the uniform distribution. Use the matrix for other distributions."""
    if kernel.m > 1 and np.ptp(law) == 0.0:
        return Bracket(lowered(kernel.gap, 8.0), min(raised(kernel.gap, 8.0), 1.0))
    return shrinking_correlation(kernel.gap, kernel.off, law)


@row_correlation.register
def _tilted_row_row_correlation(kernel: TiltedRow, law: Floats) -> Bracket:
    """Use differences of rows, which keep their digits if epsilon is small."""
    if kernel._epsilon <= SMALL:
        return relative_correlation(kernel.excess, kernel.base, law)
    rho = matrix_correlation(kernel.matrix, law)
    error = 4.0 * kernel.error
    return Bracket(max(rho.lower - error, 0.0), min(rho.upper + error, 1.0))


@singledispatch
def excess(kernel: RowKernel, base: int) -> tuple[Floats, Floats]:
    """Return the distributions of all values minus that of the ``base`` value, and that one."""
    return kernel.matrix - kernel.matrix[base], kernel.matrix[base]


@excess.register
def _symmetric_excess(kernel: Symmetric, base: int) -> tuple[Floats, Floats]:
    """Return (a - b) times the differences of unit vectors, and the distribution of the value."""
    check.fits(kernel.m**2, "the matrix of one record", "use fewer values", check.MAX_MATRIX)
    unit = np.eye(kernel.m)
    return kernel.gap * (unit - unit[base]), kernel.matrix[base]


def _restricted(p: Floats, row_kernels: Sequence[RowKernel]) -> tuple[Floats, list[Axis]]:
    """Omit values that no database has: their rows would hide small differences of others.

    Differences are to the likeliest database, whose outputs cannot be rare.
    """
    axes, tail, likely = [], len(p), int(np.argmax(p))
    for kernel in row_kernels:
        m = kernel.shape[0]
        tail //= m
        table = p.reshape(-1, m, tail)
        values = np.asarray(table.any(axis=(0, 2)))
        p = table[:, values].reshape(-1)
        apart, law = excess(kernel, likely // tail % m)
        axes.append(Axis(kernel.matrix[values], apart[values], law))
    return p, axes


def vector_correlation(prior: Floats, row_kernels: Sequence[RowKernel]) -> Bracket:
    """Maximal correlation across a record-by-record channel, from the vector of any prior.

    A small matrix is used directly. Otherwise the cost is O(N n) for each of some hundred products.
    """
    p, axes = _restricted(prior / prior.sum(), row_kernels)
    inputs = math.prod(len(axis.matrix) for axis in axes)
    outputs = math.prod(len(axis.law) for axis in axes)
    if inputs * outputs <= _FORMED:
        whole, seen = reduce(Axis.times, axes), p > 0.0
        # Products of differences as small as 1e-300 may underflow.
        least = _LOST if any(0.0 < np.abs(a.excess).max() < _LOST for a in axes) else 0.0
        rho = excess_correlation(whole.excess[seen], p[seen], (p * SCALE) @ whole.matrix)
        return Bracket(rho.lower, max(rho.upper, least if seen.sum() > 1 else 0.0))
    check.fits(max(inputs, outputs), "a vector of the search", "use fewer records", _LONGEST)
    axes = _grouped(axes)
    back = [axis.turned() for axis in axes]
    spread, laws = [np.ones(len(axis.matrix)) for axis in axes], [axis.law for axis in axes]
    # The distribution of Y is the product of the records' common distributions plus its excess over
    # that product.
    common = laws[0]
    for row in laws[1:]:
        common = np.asarray(np.kron(common, row), dtype=np.float64)
    q = np.maximum(_swept(back, p, laws) + common, 0.0)
    root = np.sqrt(p)
    inverse = np.divide(1.0, np.sqrt(q), out=np.zeros_like(q), where=q > 0.0)

    def apply(v: Floats) -> Floats:
        moved = _swept(axes, v * inverse, spread)
        return np.asarray(root * (moved - p @ moved))

    def adjoint(u: Floats) -> Floats:
        mass = root * u
        return np.asarray(inverse * _swept(back, mass - p * mass.sum(), laws))

    return capped(lanczos(apply, adjoint, inputs))


class Axis:
    """The matrix of a record as W = 1 law' + D: a common distribution, and the excess D."""

    def __init__(self, matrix: Floats, excess: Floats, law: Floats) -> None:
        self.matrix, self.excess, self.law = matrix, excess, law

    def turned(self) -> Axis:
        """Return the transpose, D' + law 1'."""
        return Axis(self.matrix.T, self.excess.T, np.ones(len(self.matrix)))

    def times(self, other: Axis) -> Axis:
        """Treat two records as one: W W' - P P' = W D' + D P', where P is the rank-one part."""
        common = np.tile(other.law, (len(other.matrix), 1))
        return Axis(
            np.asarray(np.kron(self.matrix, other.matrix), dtype=np.float64),
            np.asarray(np.kron(self.matrix, other.excess) + np.kron(self.excess, common)),
            np.asarray(np.kron(self.law, other.law), dtype=np.float64),
        )


def _grouped(axes: Sequence[Axis]) -> list[Axis]:
    """Join neighbouring records while they are small, for fewer and larger matrix products."""
    groups: list[Axis] = [axes[0]]
    for axis in axes[1:]:
        last = groups[-1].matrix.shape
        if max(last[0] * axis.matrix.shape[0], last[1] * axis.matrix.shape[1]) <= _GROUP:
            groups[-1] = groups[-1].times(axis)
        else:
            groups.append(axis)
    return groups


def _swept(axes: Sequence[Axis], vector: Floats, tails: Sequence[Floats]) -> Floats:
    """Apply the product of matrices minus the product of rank-one parts to a vector.

    From the last axis to the first, e <- W e + D mean. The rank-one parts reduce the axes so far
    to ``mean``, and spread it over ``tail``.
    """
    mean, tail, e = vector, np.ones(1), np.zeros(len(vector))
    for axis, spread in zip(reversed(axes), reversed(tails), strict=True):
        width = axis.matrix.shape[1]
        mean = mean.reshape(-1, width)
        own = mean @ axis.excess.T
        e = np.matmul(axis.matrix, e.reshape(len(mean), width, len(tail)))
        e = (e + own[:, :, None] * tail).reshape(-1)
        mean, tail = mean @ axis.law, np.multiply.outer(spread, tail).reshape(-1)
    return e


# Maximal correlation of exchangeable records and their outputs, all with one kernel.
#
# Functions of the records split into functions of the type alone, and functions orthogonal to all
# of them. The operator B = sqrt(p/q) W of the correlation keeps both parts. On the first part B is
# the operator on types, and its second singular value counts. The norm on the second part is
# attained by functions that change sign if records 1 and 2 are exchanged, because every irreducible
# part of it holds such a function. On them B acts by the 2 x 2 minors of W in records 1 and 2, and
# by W in the other n - 2 records. With the absolute values of the minors the operator is
# non-negative. Its norm is attained by functions of the type of the other records: an upper bound.
# With the minors themselves such functions give a lower bound. For bits there is one minor, and
# both bounds are equal.


def fits(n: int, kernel: RowKernel) -> bool:
    """Whether the table of the distributions of types is small enough."""
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
    # Logs of distributions and weights: errors in proportion to their sizes, and those of the
    # tables.
    sizes = float(np.abs(log_p).max()) + float(np.abs(log_q[log_q > -math.inf]).max())
    relative = roundoff(16.0) * (sizes + n) + 2.0 * laws_error(n, matrix) + prior.log_error
    pair = _of_types(*apart, log_p, log_q)
    if n > 1:
        left = 0.5 * (log_p - log_multinomials(types))
        right = np.where(log_q > -math.inf, 0.5 * (log_multinomials(outputs) - log_q), -math.inf)
        swapped = _of_swaps(n, kernel, (types, left), (outputs, right))
        pair = max(pair[0], swapped[0]), max(pair[1], swapped[1])
    return _rounded(pair, relative, len(log_p))


def tilted_correlation(tilt: TypeTilt, prior: Exchangeable) -> Bracket:
    """Return a bracket of the maximal correlation of a tilted channel of exchangeable records.

    Its operator is R between two diagonal matrices as well: sqrt(p)/(R q) and q/sqrt(distribution
    of Y).
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
    """Return the index of all pairs of types in a table of distributions."""
    return (*(c[:, None] for c in types[1:]), *(c[None, :] for c in outputs[1:]))


def _rise(
    less: Floats, kernel: RowKernel, table: Floats, types: Ints, outputs: Ints, base: int
) -> tuple[Floats, Floats]:
    """Return the rows minus the row of type ``base``, and a bound on the error of each entry.

    Each entry is the better of the plain difference and a sum of single changes.
    """
    n, steps, place = int(types[:, 0].sum()), rises(kernel), _grid(types, outputs)
    plain = table - table[base]
    slack = laws_error(n, kernel.matrix) + ULP
    error = slack * (table + table[base])
    total, terms = (rise_of_laws(less, part)[place] for part in (steps, np.abs(steps)))
    summed, bound = total - total[base], (slack + roundoff(n)) * (terms + terms[base])
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
    # The error of the mean, and of the subtracted part.
    off = float(np.linalg.norm(weight * error) + np.linalg.norm(weight * (p @ error)))
    off += roundoff(16.0) * (before + float(np.linalg.norm(B)))
    return max(lower - off, 0.0), upper + off


def _of_swaps(
    n: int, kernel: RowKernel, inputs: tuple[Ints, Floats], outputs: tuple[Ints, Floats]
) -> tuple[float, float]:
    """Bound the norm on functions that change sign if two records are exchanged.

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
    minors, error = first - second, roundoff(8.0) * (np.abs(first) + np.abs(second))
    halves = 0.5 * log_multinomials(left[1])[:, None] - 0.5 * log_multinomials(right[1])
    with np.errstate(divide="ignore"):
        logs = np.log(fewer[_grid(left[1], right[1])]) + left[2][:, None] + right[2] + halves
    weight = np.exp(logs)
    lower, upper = norm_bounds(minors * weight)
    if minors.min() < 0.0 < minors.max():
        upper = norm_bounds(np.abs(minors) * weight)[1]
    off = float(np.linalg.norm(error * weight))
    return max(lower - off, 0.0), upper + off


def _pairs_and_rest(types: Ints, logs: Floats) -> tuple[Ints, Ints, Floats]:
    """Split types into two different values of records 1 and 2 and the type of the others.

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


def channel_from_correlation(correlations: ArrayLike, prior: Distribution | ArrayLike) -> Channel:
    """Return the mechanism of a matrix Q[x, y] = p(x, y) / sqrt(p(x) p(y)).

    With r the vector of roots of the prior, a matrix Q >= 0 is of this form if and only if Q Q' r =
    r. The roots of the output probabilities are then Q' r, and p(y|x) = Q[x, y] (Q' r)(y) / r(x)
    (Makhdoumi-Fawaz 2013, Theorem 2). The singular values of Q are 1, the maximal correlation, and
    smaller ones.

    Parameters
    ----------
    correlations : 2-D array
        The matrix Q, entries at least 0. Rows of databases without probability are ignored.
    prior : Distribution or 1-D array
        Distribution of the databases.

    Returns
    -------
    Channel
        The mechanism, with rows divided by their sums. A database without probability gets the
        distribution of the output.

    Examples
    --------
    >>> import numpy as np, fastpriv as fp
    >>> fp.channel_from_correlation([[0.9, 0.1], [0.1, 0.9]], [0.5, 0.5]).matrix()
    array([[0.9, 0.1],
           [0.1, 0.9]])
    """
    law = as_prior(prior)
    p = law.probabilities()
    Q = check.floats(correlations, "correlations", 2)
    if len(Q) != len(p):
        raise InvalidInput(
            f"correlations must have {len(p)} rows, one for each database of the prior; "
            f"got {len(Q)}."
        )
    if (Q < 0.0).any():
        raise InvalidInput(f"correlations must be at least 0; got {float(Q.min()):g}.")
    seen, root = p > 0.0, np.sqrt(p / math.fsum(p))
    output = Q[seen].T @ root[seen]
    off = float(np.abs(Q[seen] @ output - root[seen]).max())
    if not off <= _TOLERANCE:
        raise InvalidInput(
            "correlations must satisfy Q Q' r = r, with r the roots of the prior; the difference is"
            f" {off:.2g}."
        )
    matrix = np.tile(output**2, (len(p), 1))
    matrix[seen] = Q[seen] * output / root[seen, None]
    return Channel(matrix / matrix.sum(axis=1, keepdims=True), law.space)
