"""Graphs and metrics over inputs, as distances.

A mechanism is private at level epsilon if W[x, y] <= e^(epsilon d(x, z)) W[z, y] for all x, z. For
a graph, d is the number of edges of a shortest path. For a metric, d is the metric. Bounds along a
chain add up. So only the pairs that no shorter chain implies are needed: an exact spanner.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fastpriv import kernels
from fastpriv._core import validation as check
from fastpriv._core.rounding import lowered, roundoff
from fastpriv._core.validation import Floats, Ints
from fastpriv.errors import InvalidInput
from fastpriv.spaces import Space

#: Relative excess length of a chain that still implies a pair.
CHAIN = roundoff(64.0)


def hamming_distances(space: Space, group: int = 1) -> Floats:
    """Return the number of steps between databases, if a step changes up to ``group`` records."""
    rows = space.rows(np.arange(space.size))
    changed = np.zeros((space.size, space.size), dtype=np.int64)
    for column in rows.T:
        changed += column[:, None] != column
    return -(-changed // min(group, space.n)).astype(np.float64)


def distances(neighbours: ArrayLike, size: int) -> Floats:
    """Return d(x, z) for all pairs of ``size`` inputs, infinite if they are unrelated.

    Parameters
    ----------
    neighbours : array or sparse array
        Pairs (k, 2) of integers, the edges of a graph; a matrix of zeros and ones, its adjacency;
        or a matrix of numbers, the distances (infinite without a direct bound). A sparse matrix
        holds adjacency or lengths of edges in the same way.
    size : int
        Number of inputs.
    """
    lengths = direct_lengths(neighbours, size)
    shortest = _shortest(lengths)
    # If a chain is shorter only by rounding, the pair keeps its own length.
    return np.where(shortest >= lowered(lengths, 64.0), lengths, shortest)


def direct_lengths(neighbours: ArrayLike, size: int) -> Floats:
    """Return the lengths of direct pairs of inputs, 0 on the diagonal, infinite if unrelated."""
    lengths = _lengths(neighbours, size)
    np.fill_diagonal(lengths, 0.0)
    if not np.array_equal(lengths, lengths.T):
        x, z = np.argwhere(lengths != lengths.T)[0].tolist()
        raise InvalidInput(
            f"neighbours must be symmetric, but ({x}, {z}) is not as ({z}, {x}); for a relation of "
            "both directions pass the larger of the two, A | A.T."
        )
    if not (lengths[~np.eye(size, dtype=bool)] > 0.0).all():
        raise InvalidInput(
            "distances between different inputs must be positive; merge inputs at distance 0."
        )
    return lengths


def _shortest(lengths: Floats) -> Floats:
    """Return the lengths of shortest paths."""
    from scipy.sparse.csgraph import csgraph_from_dense, shortest_path

    graph = csgraph_from_dense(lengths, null_value=np.inf)
    return np.asarray(shortest_path(graph, directed=False))


#: A distance, and the ordered pairs (x, z) of inputs at this distance: (P, 2).
Related = tuple[float, Ints]


def related_pairs(neighbours: ArrayLike | None, space: Space, group: int) -> list[Related]:
    """Return the pairs of databases that a level compares, by their distance.

    Without ``neighbours`` these are the databases that differ in up to ``group`` records. The
    distances of a graph stand for its edges, the pairs at distance 1; with a group, for the pairs
    at a distance of at most ``group``. Other distances scale the level.
    """
    check.fits(space.size**2, "the pairs of databases", "use fewer records", check.MAX_MATRIX)
    if neighbours is None:
        return _by_length(np.where(hamming_distances(space, group) == 1.0, 1.0, np.inf))
    lengths = direct_lengths(neighbours, space.size)
    finite = lengths[np.isfinite(lengths)]
    whole = bool((finite == np.floor(finite)).all())
    if group > 1:
        if not whole:
            raise InvalidInput(
                "neighbours must be a graph or whole distances if group is given; got other "
                "distances. Scale the distances instead."
            )
        lengths = np.ceil(_shortest(lengths) / group)
    edges = np.where(lengths == 1.0, 1.0, np.inf)
    if whole and (np.isinf(lengths) | (_shortest(edges) == lengths)).all():
        lengths = edges
    return _by_length(lengths)


def _by_length(lengths: Floats) -> list[Related]:
    """Return the ordered pairs at each finite distance."""
    x, z = np.nonzero(np.isfinite(lengths) & ~np.eye(len(lengths), dtype=bool))
    own = lengths[x, z]
    order = np.argsort(own, kind="stable")
    values, starts = np.unique(own[order], return_index=True)
    parts = np.split(np.stack([x, z], axis=1)[order], starts[1:])
    return list(zip(values.tolist(), parts, strict=True)) if len(own) else []


def components(distance: Floats) -> Ints:
    """Number the inputs by component: 0, 1, ... for each set joined by finite distances."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    _, part = connected_components(csr_array(np.isfinite(distance)), directed=False)
    return np.asarray(part, dtype=np.int64)


def _lengths(neighbours: Any, size: int) -> Floats:
    """Return lengths of direct pairs as a matrix, infinite if there is none."""
    if hasattr(neighbours, "tocoo"):
        sparse = neighbours.tocoo()
        if sparse.shape != (size, size):
            raise InvalidInput(
                f"neighbours must be a {size} x {size} matrix, a row for each input; got shape "
                f"{sparse.shape}."
            )
        edges = np.stack([sparse.row, sparse.col], axis=1)[sparse.data != 0]
        data = sparse.data[sparse.data != 0]
        return _graph(edges, np.ones(len(data)) if data.dtype == bool else _checked(data), size)
    given = check.array(neighbours, "neighbours")
    if given.shape == (size, size):
        apart = given[~np.eye(size, dtype=bool)]
        if given.dtype == bool or (np.isin(apart, (0, 1)).all() and len(np.unique(apart)) == 2):
            return np.where(given, 1.0, np.inf)
        return _checked(given).copy()
    if given.ndim == 2 and given.shape[1] == 2 and np.issubdtype(given.dtype, np.integer):
        if given.size and not 0 <= given.min() <= given.max() < size:
            raise InvalidInput(
                f"neighbours must be pairs of inputs 0 to {size - 1}; got {given.min()} to "
                f"{given.max()}."
            )
        edges = np.concatenate([given, given[:, ::-1]])
        return _graph(edges, np.ones(len(edges)), size)
    raise InvalidInput(
        f"neighbours must be pairs of integers (k, 2) or a matrix ({size}, {size}), of zeros and "
        f"ones for a graph or of distances; got shape {given.shape} of {given.dtype}."
    )


def _graph(edges: Any, lengths: Floats, size: int) -> Floats:
    matrix = np.full((size, size), np.inf)
    matrix[edges[:, 0], edges[:, 1]] = lengths
    return matrix


def _checked(values: Any) -> Floats:
    result = np.asarray(values, dtype=np.float64)
    if np.isnan(result).any() or (result < 0.0).any():
        raise InvalidInput("neighbours must hold distances of at least 0; got a NaN or less.")
    return result


def spanner(distance: Floats, stretch: float = 0.0) -> np.ndarray:
    """Mark the pairs (x, z) that no chain of shorter pairs implies, up to a stretch of d."""
    keep = np.empty(distance.shape, dtype=np.bool_)
    kernels.metric_spanner(distance, CHAIN + stretch, keep)
    return keep
