"""Priors from observed databases."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.validation import Floats
from fastpriv.errors import InvalidInput, described
from fastpriv.priors.base import Dense, Distribution
from fastpriv.priors.exchangeable import Exchangeable
from fastpriv.priors.markov import Markov
from fastpriv.priors.product import Product
from fastpriv.spaces import Space

__all__ = ["estimate"]

_KINDS = ("iid", "product", "exchangeable", "markov", "dense")


def estimate(
    samples: ArrayLike,
    kind: str = "product",
    smoothing: float = 0.5,
    sizes: Sequence[int] | None = None,
) -> Distribution:
    """Estimate a prior from observed databases, by smoothed frequencies.

    ``smoothing`` is added to the count of every cell of the table, and the counts are divided by
    their sum. This is the posterior mean under a symmetric Dirichlet distribution; 0.5 is Jeffreys'
    choice. Without smoothing an unseen value has probability zero and eps_X is infinite.

    Parameters
    ----------
    samples : integer array of shape (k, n)
        Observed databases, one per line.
    kind : {"product", "iid", "exchangeable", "markov", "dense"}
        Structure of the prior: a distribution per record, one distribution for all records, a
        distribution of counts (cells are types), a homogeneous chain along the records, or a
        distribution of whole databases.
    smoothing : float
        Pseudo-count added to every cell.
    sizes : sequence of int, optional
        Number of values of each record. Default: one more than the largest value seen (in the
        record for "product" and "dense", anywhere otherwise). State known sizes, because sizes
        inferred from the data depend on it.

    Returns
    -------
    Distribution

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.estimate([[0, 1], [1, 1], [0, 1]], "iid", smoothing=1.0).marginals[0]
    array([0.375, 0.625])
    """
    array = check.array(samples, "samples")
    if array.ndim != 2 or array.size == 0 or array.dtype.kind not in "iub":
        raise InvalidInput(
            "samples must be a (k, n) array of integers, one database per line; got shape "
            f"{array.shape} of {array.dtype}."
        )
    check.word(kind, "kind", _KINDS)
    smoothing = check.real(smoothing, "smoothing", least=0.0, most=1e12)
    n = array.shape[1]
    if sizes is None:
        if array.min() < 0:
            raise InvalidInput("samples must hold values of at least 0. Number the values from 0.")
        tops = array.max(axis=0).astype(np.int64) + 1
        sizes = tops.tolist() if kind in ("product", "dense") else [int(tops.max())] * n
    space = Space(sizes)
    if space.n != n:
        raise InvalidInput(
            f"sizes must hold one size per record; got {space.n} sizes for {n} records."
        )
    rows = check.rows(array, space.sizes)
    if kind not in ("product", "dense") and space.m is None:
        raise InvalidInput(
            f"records must have one size for kind {described(kind)}; got {space.sizes}. Use "
            "kind 'product'."
        )

    def law(values: np.ndarray, cells: int) -> Floats:
        counts = np.bincount(values.reshape(-1), minlength=cells) + smoothing
        if counts.sum() == 0:
            raise InvalidInput(
                "smoothing must be positive: some table of counts has no observation."
            )
        return np.asarray(counts / counts.sum())

    m = space.sizes[0]
    if kind == "product":
        return Product([law(rows[:, i], size) for i, size in enumerate(space.sizes)])
    if kind == "iid":
        return Product.iid(law(rows, m), n)
    if kind == "markov":
        steps = rows[:, :-1] * m + rows[:, 1:]
        table = np.bincount(steps.reshape(-1), minlength=m * m).reshape(m, m) + smoothing
        empty = table.sum(axis=1) == 0
        table[empty] = 1.0  # no transition seen from this value: take the uniform distribution
        return Markov(law(rows[:, 0], m), table / table.sum(axis=1, keepdims=True), n)
    if kind == "dense":
        check.fits(space.size, "a dense prior", "use another kind")
        return Dense(law(np.asarray(space.index(rows)), space.size), space.sizes)
    if m < 2:
        raise InvalidInput(
            "records must have two values or more for kind 'exchangeable'. Give sizes=."
        )
    check.fits((n + 1) ** (m - 1), "the table of types", "use fewer records or another kind")
    counts = np.stack([(rows == v).sum(axis=1) for v in range(1, m)])
    weights = np.full((n + 1,) * (m - 1), smoothing)
    weights[np.indices(weights.shape).sum(axis=0) > n] = 0.0
    np.add.at(weights, tuple(counts), 1.0)
    return Exchangeable(weights / weights.sum())
