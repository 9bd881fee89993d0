"""Priors whose rows may be permuted, as laws of types: which priors are exchangeable."""

from __future__ import annotations

import math
from functools import singledispatch

import numpy as np

from fastpriv.priors.base import Distribution
from fastpriv.priors.exchangeable import Exchangeable
from fastpriv.priors.product import Product

#: Most types that are listed.
_TYPES = 1 << 22


@singledispatch
def as_exchangeable(prior: Distribution) -> Exchangeable | None:
    """Return the same law given by its types, None for a prior that is not known to have them."""
    return None


@as_exchangeable.register
def _exchangeable_as_exchangeable(prior: Exchangeable) -> Exchangeable:
    return prior


@as_exchangeable.register
def _product_as_exchangeable(prior: Product) -> Exchangeable | None:
    """Independent rows of one law: multinomial weights, kept with their logs. Cost O(types m)."""
    used = np.unique(prior.assignment)
    n, m = prior.space.n, len(prior.distinct[used[0]])
    if len(used) > 1 or m == 1 or (n + 1) ** (m - 1) > _TYPES:
        return None
    kept: Exchangeable | None = prior.__dict__.get("_exchanged")
    if kept is None:
        kept = prior.__dict__["_exchanged"] = _multinomial(prior.distinct[used[0]], n)
    return kept


def _multinomial(law: np.ndarray, n: int) -> Exchangeable:
    """Return n independent rows of one law. Types too rare for a double keep their logs."""
    m = len(law)
    types = Exchangeable.of(np.zeros((n + 1,) * (m - 1)))
    counts = np.stack([types.zero_counts, *np.indices(types.type_weights.shape)])
    with np.errstate(divide="ignore"):
        chances = np.log(law / law.sum())
    logs = np.zeros(types.type_weights.shape)
    for count, chance in zip(counts, chances.tolist(), strict=True):
        logs += np.where(count > 0, np.where(count > 0, count, 1) * chance, 0.0)
    logs = np.where(counts[0] >= 0, logs, -math.inf)
    weights = np.exp(logs + types.log_class_sizes)
    self = Exchangeable.of(weights / weights.sum())
    self.__dict__["log_class_sizes"] = types.log_class_sizes
    self.__dict__["log_per_database"] = logs
    self.__dict__["log_weights"] = logs + types.log_class_sizes
    self.__dict__["line_table"] = np.tile(law, (math.comb(n + m - 2, m - 1), 1))
    return self
