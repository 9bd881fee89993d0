"""Leakage of channels that act row by row, in the structure of the prior."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import singledispatch

import numpy as np

from fastpriv._core.rounding import LEAST, ULP, raised, round_up
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.leakage import Leakages
from fastpriv._structure.leakage import Column, log_masses, vector_leakages
from fastpriv._structure.rows import RowKernel, RowKernels, Symmetric
from fastpriv.measures.chain_bounds import is_long, leakage_bounds
from fastpriv.measures.pointwise.types import rows_types
from fastpriv.priors import Distribution, Exchangeable, Markov, Product
from fastpriv.priors.exchanging import many_types
from fastpriv.priors.type_leakage import OutputForm


@singledispatch
def rows_leakages(prior: Distribution, kernels: RowKernels) -> Leakages:
    """Return both leakages of every output of a row-by-row channel. Cost O(N n m)."""
    return vector_leakages(prior.probabilities(), kernels, prior.logs_if_rare())


@singledispatch
def rows_log_output(prior: Distribution, kernels: RowKernels) -> Floats:
    """Return ln p_Y(y) / prod max W[., y_i], -inf only where impossible. Cost O(N n m)."""
    return log_masses(prior.probabilities(), kernels, prior.logs_if_rare())


@singledispatch
def rows_levels(prior: Distribution, kernels: RowKernels) -> tuple[float, float]:
    """Return the largest of both leakages over outputs."""
    return rows_leakages(prior, kernels).largest()


@rows_leakages.register
def _product_rows_leakages(prior: Product, kernels: RowKernels) -> Leakages:
    """Independent rows: a sum over rows. Cost O(outputs)."""
    laws, which, _, place = prior.paired(kernels)
    rows = [
        vector_leakages(prior.distinct[k], [kernels.distinct[j]])
        for k, j in zip(laws, which, strict=True)
    ]
    above, below = (_outer_sum(place, part) for part in zip(*rows, strict=True))
    seen = rows_log_output(prior, kernels) > -math.inf
    up = 1.0 + 2.0 * len(place) * ULP
    return Leakages(np.where(seen, above * up, 0.0), np.where(seen, below * up, 0.0))


@rows_log_output.register
def _product_rows_log_output(prior: Product, kernels: RowKernels) -> Floats:
    """Independent rows: a sum over rows. Cost O(outputs)."""
    laws, which, _, place = prior.paired(kernels)
    pairs = zip(laws, which, strict=True)
    return _outer_sum(
        place, [log_masses(prior.distinct[k], [kernels.distinct[j]]) for k, j in pairs]
    )


def _outer_sum(place: Ints, parts: Sequence[Floats]) -> Floats:
    """Return the sum over rows of parts[place[i]][y_i], for every y."""
    total = np.zeros(1)
    for k in place:
        total = np.add.outer(total, parts[k]).reshape(-1)
    return total


@rows_levels.register
def _product_rows_levels(prior: Product, kernels: RowKernels) -> tuple[float, float]:
    """Independent rows: the sum over rows of the largest of each. Cost O(distinct rows)."""
    laws, which, counts, _ = prior.paired(kernels)
    levels = [
        kernel_levels(kernels.distinct[j], prior.distinct[k])
        for k, j in zip(laws, which, strict=True)
    ]
    above, below = (math.fsum(np.multiply(counts, part)) for part in zip(*levels, strict=True))
    return round_up(above), round_up(below)


@singledispatch
def kernel_levels(kernel: RowKernel, law: Floats) -> tuple[float, float]:
    """Return how far an output can move the odds of one row's value, up and down."""
    return vector_leakages(law, [kernel]).largest()


@kernel_levels.register
def _symmetric_kernel_levels(kernel: Symmetric, law: Floats) -> tuple[float, float]:
    """R_epsilon: up at the rarest value p that occurs, down at the commonest. No matrix is formed.

    An output y has the chance b + (a-b) p_y, which is a (1 - (1 - e^-epsilon)(1 - p_y)) and
    b (1 + (e^epsilon - 1) p_y). Rounded up.
    """
    seen, epsilon = law[law > 0], kernel.epsilon
    if len(seen) == 1:
        return 0.0, 0.0
    rare, common = float(seen.min()), float(seen.max())
    r = math.exp(-epsilon)
    if epsilon < 1.0:
        above = -math.log1p(math.expm1(-epsilon) * (1.0 - rare))
    else:
        above = -math.log(rare + (1.0 - rare) * r)
    if epsilon < 700.0:  # nothing cancels, also where every value is rare
        below = math.log1p(math.expm1(epsilon) * common)
    else:
        below = epsilon + math.log(common + (1.0 - common) * r)
    least = min(epsilon, LEAST)  # a product may be less than any double
    return raised(max(above, least), 16.0), raised(max(below, least), 16.0)


@rows_levels.register
def _markov_rows_levels(prior: Markov, kernels: RowKernels) -> tuple[float, float]:
    """Chain: by the vector, or the upper ends of brackets where it is too long for one."""
    if is_long(prior):
        above, below = leakage_bounds(prior, kernels)
        return above.upper, below.upper
    return rows_leakages(prior, kernels).largest()


@rows_levels.register
def _exchangeable_rows_levels(prior: Exchangeable, kernels: RowKernels) -> tuple[float, float]:
    """Exchangeable rows with one kernel: over types of outputs, O(n^2) for bits.

    For more values over pairs of types where databases are many. Otherwise by the vector.
    """
    by_type = count_leakages(prior, kernels)
    if by_type is None:
        pairs = many_types(prior, kernels)
        if pairs is None:
            return rows_leakages(prior, kernels).largest()
        return rows_types(prior, pairs).largest()
    return max(up for _, up, _ in by_type), max(down for *_, down in by_type)


def count_leakages(
    prior: Exchangeable, kernels: RowKernels
) -> list[tuple[int, float, float]] | None:
    """Return both leakages of an output with each number of ones; None where not by types."""
    kernel, n = kernels.distinct[0], prior.space.n
    if len(kernels.distinct) > 1 or kernel.shape != (2, 2):
        return None
    allowed, leaks = prior.possible, [(0, 0.0, 0.0)]
    zero, one = (kernel.tops > 0.0).tolist()  # which values can come out at all
    for ones in range(0 if zero else n, n + 1 if one else 1):
        form = OutputForm(kernels, np.repeat([0, 1], [n - ones, ones]))
        mass, best = form.log_mass(prior.log_weights), form.extreme(allowed)
        error = form.error + prior.log_error
        if mass is None:
            return None
        if best > -math.inf:  # the output can occur
            below = mass - form.extreme(allowed, -1.0) + error
            leaks.append((ones, Column(best, mass, error).leakage(), below))
    return leaks
