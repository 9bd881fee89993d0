"""The surprise of the databases behind every answer: p(x) ln p(x), added up answer by answer.

With the law of the answer, it gives the entropy of the database given an output of a query.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch

import numpy as np

from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.leakage import surprise
from fastpriv.channels.queries.arranged import arranged_law
from fastpriv.channels.queries.laws import largest_sum, shifted, sums, type_sums
from fastpriv.priors import Distribution, Exchangeable, Markov, Product


@singledispatch
def score_surprise(prior: Distribution, scores: Sequence[Ints], which: Ints) -> Floats:
    """Sum of p(x) ln p(x) over the databases x with each sum of ``scores[which[i]][x_i]``.

    The general algorithm takes the vector of the prior. Cost O(N).
    """
    own = surprise(prior.as_dense("the entropy of databases behind a sum").probabilities())
    return np.asarray(np.bincount(sums(scores, which), own, largest_sum(scores, which) + 1))


@score_surprise.register
def _product_score_surprise(prior: Product, scores: Sequence[Ints], which: Ints) -> Floats:
    """Add row by row: ln p(x) is a sum over rows. All terms have one sign. Cost O(n m sums)."""
    laws = [(law / law.sum(), surprise(law)) for law in prior.distinct]
    mass, total = np.zeros((2, largest_sum(scores, which) + 1))
    mass[0], end = 1.0, 1
    for k, kind in zip(prior.assignment.tolist(), which.tolist(), strict=True):
        last, own = mass[:end].copy(), total[:end].copy()
        mass[:end] = total[:end] = 0.0
        for step, p, q in zip(scores[kind].tolist(), *laws[k], strict=True):
            mass[step : step + end] += p * last
            total[step : step + end] += p * own + q * last
        end += int(scores[kind].max())
    return total


@score_surprise.register
def _exchangeable_score_surprise(
    prior: Exchangeable, scores: Sequence[Ints], which: Ints
) -> Floats:
    """Take the types of databases. Cost O(types) where all rows have the same scores."""
    total, inside = type_sums(prior, scores[0])
    weights, most = prior.type_weights[inside], largest_sum(scores, which)
    own = surprise(weights) - weights / weights.sum() * prior.log_class_sizes[inside]
    if len(scores) > 1:
        return np.asarray(own @ arranged_law(scores, which)[inside])
    return np.asarray(np.bincount(total, own, most + 1))


@score_surprise.register
def _markov_score_surprise(prior: Markov, scores: Sequence[Ints], which: Ints) -> Floats:
    """Carry the mass and the surprise by sum and last row along the chain. O(n m^2 sums)."""
    m, T = len(prior.initial), prior.transition
    steps = (T / T.sum(axis=1, keepdims=True)).T
    bends = np.stack([surprise(row) for row in T]).T
    mass, total = np.zeros((2, m, largest_sum(scores, which) + 1))
    first = np.arange(m), scores[which[0]]
    mass[first], total[first] = prior.initial / prior.initial.sum(), surprise(prior.initial)
    for kind in which[1:].tolist():
        total = shifted(steps @ total + bends @ mass, scores[kind])
        mass = shifted(steps @ mass, scores[kind])
    return np.asarray(total.sum(axis=0))
