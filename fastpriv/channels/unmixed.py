"""The output law of E_i: the law that the Hamming kernel mixes to a given prior."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import singledispatch

import numpy as np

from fastpriv._core.logs import log_ratio
from fastpriv._core.transform import mix
from fastpriv._core.validation import Floats, Ints
from fastpriv._core.wide import Wide
from fastpriv._matrices.excess import wide_home
from fastpriv._structure.rows import RowKernels, Symmetric
from fastpriv.priors import Dense, Distribution, Exchangeable, Markov, Product
from fastpriv.priors.dense import apply_rows
from fastpriv.priors.markov import UnmixedMarkov
from fastpriv.priors.product import flat_excess
from fastpriv.priors.type_weights import inverse_matrix, substitute
from fastpriv.priors.unmixing import clipped, rounding, surely_positive


@singledispatch
def unmixed(prior: Distribution, epsilon: float) -> Distribution:
    """Return p_Y with R_epsilon p_Y = p, clipped at zero, through the vector. Cost O(N n)."""
    law = prior.as_dense("the output law of E_i")
    kernels = RowKernels.symmetric(law.space.sizes, epsilon)
    down = [kernel.unmixing for kernel in kernels if isinstance(kernel, Symmetric)]
    inverse = mix(law.probabilities().copy(), law.space.sizes, down)
    mixed = clipped(inverse, lambda q: apply_rows(q, kernels), law.probabilities(), epsilon)
    return Dense.of(mixed, law.space)


@unmixed.register
def _product_unmixed(prior: Product, epsilon: float) -> Distribution:
    """Independent rows: every row by itself."""
    laws = []
    for law in prior.distinct:
        inverse = law + Symmetric(len(law), epsilon).unmixing * flat_excess(law)
        laws.append(np.maximum(inverse, 0.0))
    return Product.of(laws, prior.assignment)


@unmixed.register
def _exchangeable_unmixed(prior: Exchangeable, epsilon: float) -> Distribution:
    """Exchangeable rows: a substitution in the polynomial of types."""
    if epsilon == 0.0:
        return prior
    weights, kernel = prior.type_weights, Symmetric(prior.type_weights.ndim + 1, epsilon)
    inverse = substitute(weights, inverse_matrix(kernel))
    law = clipped(inverse, lambda q: substitute(q, kernel.matrix), weights, epsilon)
    return Exchangeable.of(law)


@unmixed.register
def _markov_unmixed(prior: Markov, epsilon: float) -> Distribution:
    """Markov chain: kept as such where its databases are too many to list."""
    if prior.is_long:
        return UnmixedMarkov(prior, epsilon)
    return unmixed.dispatch(Distribution)(prior, epsilon)


@singledispatch
def surely_exists(prior: Distribution, epsilon: float) -> bool:
    """Whether p_Y is positive for the prior itself, not only for one some units away."""
    law = prior.as_dense("the output law of E_i")
    return epsilon > 0.0 and surely_positive(law.probabilities(), law.space.sizes, epsilon)


@surely_exists.register
def _exchangeable_surely_exists(prior: Exchangeable, epsilon: float) -> bool:
    if epsilon == 0.0:
        return False
    weights, kernel = prior.type_weights, Symmetric(prior.type_weights.ndim + 1, epsilon)
    inverse = inverse_matrix(kernel)
    error = rounding(prior.space.n) * substitute(weights, np.abs(inverse))
    return bool((substitute(weights, inverse) >= error).all())


@singledispatch
def misfit(prior: Distribution, other: Distribution) -> float:
    """Return the largest |ln p(x)/q(x)| between two full-support laws of one structure."""
    return _log_misfit(prior.probabilities(), other.probabilities())


@misfit.register
def _product_misfit(prior: Product, other: Distribution) -> float:
    """Independent rows: the sum over rows."""
    parts, counts = _row_misfits(prior, other)
    return math.fsum(counts * parts)


@misfit.register
def _exchangeable_misfit(prior: Exchangeable, other: Distribution) -> float:
    assert isinstance(other, Exchangeable)
    return _log_misfit(prior.type_weights, other.type_weights)


def wide_misfit(p: Wide, q: Wide, sizes: Sequence[int], epsilon: float) -> float:
    """Return the largest |ln p(x)/(R q)(x)| of laws whose digits doubles do not hold."""
    mixed = wide_home(q, sizes, epsilon) * math.prod(Symmetric(m, epsilon).stay for m in sizes)
    if not (mixed.mantissa > 0.0).all():
        return math.inf
    return float(np.abs((p / mixed).logs()).max())


def row_misfit(prior: Distribution, other: Distribution) -> float:
    """Return the largest |ln p_i(s)/q_i(s)| of any row, of two laws of independent rows."""
    return float(_row_misfits(prior, other)[0].max())


def _row_misfits(prior: Distribution, other: Distribution) -> tuple[Floats, Ints]:
    """Return the misfits of the distinct rows, and how many rows have each."""
    assert isinstance(prior, Product)
    assert isinstance(other, Product)
    pairs = np.stack([prior.assignment, other.assignment])
    kinds, counts = np.unique(pairs, axis=1, return_counts=True)
    parts = [_log_misfit(prior.distinct[k], other.distinct[j]) for k, j in kinds.T]
    return np.array(parts), counts


def _log_misfit(p: Floats, q: Floats) -> float:
    """Return the largest |ln p/q| over the support of p."""
    p, q = p[p > 0], q[p > 0]
    return float(np.abs(log_ratio(p, q)).max())
