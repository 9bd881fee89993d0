"""Contraction coefficient of a mechanism."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from fastpriv import kernels
from fastpriv._core.rounding import LEAST, lowered, raised, roundoff
from fastpriv._core.validation import Floats
from fastpriv._matrices.contraction import (
    UNSUMMED,
    contractions,
    largest_distance,
    matrix_contraction,
)
from fastpriv._matrices.tilted import perturbed
from fastpriv._structure.johnson import listed_outputs, pair_contraction
from fastpriv._structure.leakage import row_slack
from fastpriv._structure.rows import RowKernel, RowKernels, Symmetric, TiltedRow
from fastpriv.channels import AbstractChannel, ProductChannel, QueryChannel, TiltedChannel
from fastpriv.channels.local import SupportChannel
from fastpriv.channels.tilted import PosteriorChain, TiltedProduct
from fastpriv.channels.types import TypeChannel, type_error
from fastpriv.measures import supports
from fastpriv.measures.inputs import as_mechanism, is_stack, stacked
from fastpriv.measures.leakage import extreme_level
from fastpriv.priors.exchangeable import inverse_matrix
from fastpriv.results import Bracket, Brackets

__all__ = ["contraction_coefficient"]

#: Base-2 logarithm of the most entries of a product channel whose pairs are listed (32 MB).
_LISTED = 22
#: Base-2 logarithm of the most terms over all pairs, in both orders.
_TERMS = 29
#: Most entries of the matrix of a tilted channel that is formed.
_SMALL = 1 << 22
#: Most records of randomised response whose distances are summed.
_MOST_ROWS = 1 << 24
#: Most kinds of outputs of all kinds of pairs of databases that are listed.
_PAIRED = 1 << 22
#: Most entries of the matrix of a channel on types that is formed.
_FORMED = 1 << 22


@overload
def contraction_coefficient(channel: AbstractChannel) -> Bracket: ...
@overload
def contraction_coefficient(channel: AbstractChannel | ArrayLike) -> Bracket | Brackets: ...
def contraction_coefficient(channel: AbstractChannel | ArrayLike) -> Bracket | Brackets:
    """Bound the contraction coefficient eta of a mechanism.

    eta is the smallest number with D(QW || PW) <= eta D(Q || P) for all distributions P, Q of the
    database. Hence I(S; Y) <= eta I(S; X) for all private data S (Makhdoumi-Fawaz 2013, Theorem 1).
    Priors on two databases suffice (Ordentlich-Polyanskiy 2021). So eta is the maximum over pairs
    x, x' and 0 < b < 1 of b(1-b) sum_y (W_x - W_x')^2 / (b W_x + (1-b) W_x'). This is a concave
    function of b.

    Parameters
    ----------
    channel : channel, 2-D array, scipy.sparse matrix, or stack (B, N, K)
        The mechanism, or many matrices. Rows of matrices are used without normalisation.

    Returns
    -------
    Bracket, or Brackets for a stack
        eta. The relative width is about 5 (K + 16) 2^-53 for a matrix and for randomised response
        on records of one size. It is wider for other products with too many pairs to list. Cost
        O(N^2 K), plus a few sums of K terms for each pair that Hellinger distances do not exclude.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.contraction_coefficient([[0.7, 0.15, 0.15], [0.15, 0.7, 0.15], [0.15, 0.15, 0.7]])
    Bracket(0.3558823529, 0.355882353)
    >>> fp.contraction_coefficient(fp.HammingChannel(10, 2, 1.0))  # one bit: 0.2135522671
    Bracket(0.8244043077, 0.8244043078)
    """
    if is_stack(channel):
        ends = stacked(None, _ends, channel, shape=(2,))
        return Brackets(ends[:, 0].copy(), ends[:, 1].copy())
    return contraction(as_mechanism(channel))


def _ends(matrix: Floats) -> tuple[float, float]:
    eta = matrix_contraction(matrix)
    return eta.lower, eta.upper


@singledispatch
def contraction(channel: AbstractChannel) -> Bracket:
    """Contraction coefficient of a checked channel.

    The general algorithm uses the matrix, and widens by its error. Cost O(N^2 K).
    """
    eta, error = matrix_contraction(channel.nearest_matrix()), channel.matrix_error
    return perturbed(eta, error, extreme_level(channel)) if error else eta


@contraction.register
def _query_contraction(channel: QueryChannel) -> Bracket:
    """Use every answer that occurs, counted once."""
    return matrix_contraction(channel.occurring_rows())


@contraction.register
def _support_contraction(channel: SupportChannel) -> Bracket:
    """Use the two values that are easiest to distinguish. Closed form."""
    return supports.contraction(channel)


@contraction.register
def _product_contraction(channel: ProductChannel) -> Bracket:
    """Use a closed form for randomised response, listed pairs or bounds for other products."""
    return rows_contraction(channel.kernels)


@contraction.register
def _type_contraction(channel: TypeChannel) -> Bracket:
    """Use all kinds of pairs of databases for bits, O(n^7), or the matrix if it is small.

    Otherwise return two bounds. The lower bound is the coefficient of the matrix of types. The
    upper bound is tanh^2(l/2) for the strong level l. Two distributions with ratios in [e^-l, e^l]
    are a mixture of pairs on two outputs, whose coefficient is largest if both ratios are extreme.
    """
    n = channel.space.n
    if channel.space.m != 2 and channel.space.size**2 <= _FORMED:
        return matrix_contraction(channel.nearest_matrix())
    if channel.space.m == 2 and listed_outputs(n) <= _PAIRED:
        eta = pair_contraction(channel.by_overlap())
    else:
        alike = matrix_contraction(channel.type_matrix())
        eta = Bracket(alike.lower, max(alike.lower, math.tanh(0.5 * extreme_level(channel)) ** 2))
    off = type_error(n)
    return Bracket(eta.lower * (1.0 - off), min(eta.upper * (1.0 + off), 1.0))


@contraction.register
def _tilted_contraction(channel: TiltedChannel) -> Bracket:
    """Use the matrix if it is small, otherwise two bounds.

    The lower bound uses the best two databases that hold one value in all records. For the upper
    bound, let L be the leakage capacity. Two distributions with ratios within e^L have at most the
    coefficient tanh^2(L/2) of randomised response. With r = P/Q the sum is 1 - E_Q r/(b r + 1 - b),
    and r/(b r + 1 - b) is concave in r.
    """
    if channel.space.size**2 <= _SMALL:
        return channel.widened(matrix_contraction(channel.nearest_matrix()))
    rows, error = constant_rows(channel)
    off = 2.0 * error + UNSUMMED
    lower = max(math.sqrt(matrix_contraction(rows).lower) - off, 0.0) ** 2
    upper = raised(math.tanh(0.5 * extreme_level(channel)) ** 2, 32.0)
    return Bracket(min(lower, upper, 1.0), min(upper, 1.0))


def constant_rows(channel: TiltedChannel) -> tuple[Floats, float]:
    """Return output distributions of databases with one value in all records, and their error.

    Outputs of one type are merged, because the ratio of two such distributions is equal for them.
    """
    types, least = channel.by_type, min(channel.space.sizes)
    if types is not None:
        logs = types.log_law + channel.epsilon * types.types  # n - d(x, y) is the count of a value
        laws = np.exp(logs - logs.max(axis=1, keepdims=True))
        return laws / laws.sum(axis=1, keepdims=True), types.error
    if isinstance(channel, PosteriorChain):
        return _first_output(channel), 4.0 * row_slack(channel.hamming_kernels)
    law, sizes = channel.base.as_dense("contraction").probabilities(), channel.space.sizes
    rows = []
    for value in (0, least - 1):
        near = np.ones(1)
        for m in sizes:
            step = np.where(np.arange(m) == value, 1.0, math.exp(-channel.epsilon))
            near = np.multiply.outer(near, step).reshape(-1)
        rows.append(law * near / (law @ near))
    return np.array(rows), 4.0 * row_slack(channel.hamming_kernels)


def _first_output(channel: PosteriorChain) -> Floats:
    """Return the distributions of the first output of E_i, for databases of one value only.

    The factors R^-1 and R of the other records cancel: p(y_1 = b | x) is proportional to R[b, x_1]
    times sum_s initial[s] R^-1[s, b] T[s, x_2].
    """
    chain, kernel = channel.prior, channel.hamming_kernels[0]
    assert isinstance(kernel, Symmetric)
    front = chain.initial[:, None] * inverse_matrix(kernel)
    laws = np.maximum((front.T @ chain.transition).T * kernel.matrix, 0.0)
    return np.asarray(laws / laws.sum(axis=1, keepdims=True))


@contraction.register
def _tilted_product_contraction(channel: TiltedProduct) -> Bracket:
    """Delegate to the product channel, and widen by its error."""
    return channel.widened(contraction(channel.as_product))


@singledispatch
def row_contraction(kernel: RowKernel) -> Bracket:
    """Contraction coefficient of the channel of one record."""
    return matrix_contraction(kernel.matrix)


@row_contraction.register
def _symmetric_row_contraction(kernel: Symmetric) -> Bracket:
    """Return (a - b)^2/(a + b), the value for two inputs of equal probability."""
    # The last operation is one product, so that at most one number underflows.
    value = kernel.gap * (kernel.gap / (kernel.stay + kernel.off)) if kernel.m > 1 else 0.0
    least = LEAST if kernel.m > 1 and kernel.epsilon > 0.0 else 0.0
    return Bracket(lowered(value, 16.0), min(max(raised(value, 16.0), least), 1.0))


@row_contraction.register
def _tilted_row_contraction(kernel: TiltedRow) -> Bracket:
    """Use the matrix, and widen by its error."""
    return kernel.widened(matrix_contraction(kernel.matrix))


@singledispatch
def hellinger(kernel: RowKernel) -> tuple[float, float]:
    """Largest 1 - sum_y sqrt(W[s, y] W[t, y]) of one record's channel, rounded down and up."""
    return largest_distance(kernel.matrix)


@hellinger.register
def _symmetric_hellinger(kernel: Symmetric) -> tuple[float, float]:
    """Return (sqrt a - sqrt b)^2, without cancellation."""
    if kernel.m == 1:
        return 0.0, 0.0
    value = (kernel.gap / (math.sqrt(kernel.stay) + math.sqrt(kernel.off))) ** 2
    return lowered(value, 32.0), raised(value, 32.0)


def rows_contraction(row_kernels: RowKernels) -> Bracket:
    """Contraction coefficient of a record-by-record channel.

    A further record that differs never makes two databases harder to distinguish, so the worst pair
    differs in every record. For randomised response on records of one size all such pairs are
    equivalent. Other pairs are listed if they are few. Otherwise 1 - prod A_i <= eta <= 1 -
    max(prod A_i^2, prod (1 - eta_i)), where A_i is the smallest Hellinger affinity of record i. The
    last product is a bound of Polyanskiy-Wu 2017 for networks.
    """
    counts = np.bincount(row_kernels.assignment).tolist()
    kinds = [
        (kernel, count)
        for kernel, count in zip(row_kernels.distinct, counts, strict=True)
        if kernel.shape[0] > 1
    ]
    if not kinds:
        return Bracket(0.0, 0.0)
    kernel, n = kinds[0]
    if len(kinds) == 1 and isinstance(kernel, Symmetric) and n <= _MOST_ROWS:
        return symmetric_contraction(kernel, n)
    if sum(count for _, count in kinds) == 1:
        return row_contraction(kernel)
    return _listed(kinds) or _bounded(kinds)


def symmetric_contraction(kernel: Symmetric, n: int) -> Bracket:
    """Return E tanh^2(epsilon K / 2) for n records.

    K is the number of records that favour x minus the number that favour x'. The pair is symmetric,
    so b = 1/2 is best. The distribution of K follows a recursion with positive terms. The bracket
    allows for the rounding of every step.
    """
    value = kernels.net_contraction(n, kernel.m, kernel.epsilon)
    error = roundoff(24 * n + 256)
    # Each of the n + 1 probabilities may lose a few of the smallest doubles by underflow.
    lost = (8 * n + 8) * LEAST if kernel.epsilon > 0.0 else 0.0
    low, high = value * (1.0 - error) - lost, value * (1.0 + error) + lost
    return Bracket(min(max(low, 0.0), 1.0), min(high, 1.0))


def _listed(kinds: list[tuple[RowKernel, int]]) -> Bracket | None:
    """Contraction over pairs that differ in every informative record, None if there are many."""
    distinct = [(np.unique(kernel.matrix, axis=0), count) for kernel, count in kinds]
    informative = [(rows, count) for rows, count in distinct if len(rows) > 1]
    entries = math.fsum(count * math.log2(rows.size) for rows, count in informative)
    work = math.fsum(count * math.log2((len(rows) - 1) * rows.size) for rows, count in informative)
    if entries > _LISTED or work > _TERMS:
        return None
    if not informative:
        return Bracket(0.0, 0.0)
    factors = [rows for rows, count in informative for _ in range(count)]
    left = right = np.zeros(1, dtype=np.int64)
    for place, factor in enumerate(factors):
        s, t = np.triu_indices(len(factor), 1)
        if place:  # the first record fixes the order of the two databases
            s, t = np.concatenate([s, t]), np.concatenate([t, s])
        left = np.add.outer(left * len(factor), s).reshape(-1)
        right = np.add.outer(right * len(factor), t).reshape(-1)
    rows = factors[0]
    for factor in factors[1:]:
        rows = np.ascontiguousarray(np.kron(rows, factor))
    lower, upper, _, _ = contractions(rows, left, right)
    # Products have a relative error of d = n ulp. At a fixed mean sqrt(g) is a norm of P - Q, in
    # which an error of d P counts at most d sqrt(2). The mean has the relative error d.
    off = roundoff(2.0 * (len(factors) + 1))
    low = max(math.sqrt(lower) - off, 0.0) * (1.0 - off)
    high = (math.sqrt(upper) + off) * (1.0 + off) if upper > 0.0 else 0.0
    return Bracket(min(low**2, 1.0), min(high**2, 1.0))


def _bounded(kinds: list[tuple[RowKernel, int]]) -> Bracket:
    """Return bounds from the contraction and the affinity of each record."""
    parts = [(row_contraction(kernel), *hellinger(kernel), count) for kernel, count in kinds]
    lowest = max(eta.lower for eta, _, _, _ in parts)
    lower = max(lowest, _together([(low, count) for _, low, _, count in parts], 1))
    # An error of 1e-14 in the sum of a distribution changes the root of a contraction by at most
    # 1e-14.
    etas = [((math.sqrt(eta.upper) + UNSUMMED) ** 2, count) for eta, _, _, count in parts]
    distances = [(high + UNSUMMED, count) for _, _, high, count in parts]
    upper = min(_together(etas, 1), _together(distances, 2))
    slack = roundoff(8 * len(kinds) + 32)
    return Bracket(min(lower * (1.0 - slack), 1.0), min(upper * (1.0 + slack), 1.0))


def _together(parts: list[tuple[float, int]], power: int) -> float:
    """Return 1 - prod (1 - v)^(power count) over the pairs (v, count)."""
    if any(v >= 1.0 for v, _ in parts):
        return 1.0
    return -math.expm1(power * math.fsum(count * math.log1p(-v) for v, count in parts))
