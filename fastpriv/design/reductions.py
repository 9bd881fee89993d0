"""The same program on fewer unknowns: rows, types, orbits, databases."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fastpriv._core.validation import Floats, Ints
from fastpriv._structure.types import Blocks


def swappable_rows(cube: np.ndarray) -> Blocks:
    """Group the axes that may be swapped without changing an array. Cost O(n^2 N)."""
    sizes = cube.shape
    blocks: list[list[int]] = []
    for i, m in enumerate(sizes):
        for block in blocks:
            if sizes[block[0]] == m and np.array_equal(cube.swapaxes(block[0], i), cube):
                block.append(i)
                break
        else:
            blocks.append([i])
    return Blocks(tuple(map(tuple, blocks)), tuple(sizes[block[0]] for block in blocks))


#: More symmetries than this are not used: finding them would take longer than the program.
_MAX_SYMMETRIES = 48
#: Partial permutations that are tried before the search is given up.
_MAX_TRIED = 20_000


class Orbits(NamedTuple):
    """A group of permutations (one per row) and the orbits of inputs and outputs."""

    group: Ints
    row: Ints  # orbit of every input
    sizes: Floats  # number of inputs of every orbit
    outputs: Ints  # one output of every orbit of outputs
    copies: Floats  # number of outputs of its orbit

    @classmethod
    def of(cls, group: Ints, outputs: int) -> Orbits:
        """Find the orbits of a group that acts on outputs as on inputs, or of the trivial one."""
        row = np.unique(group.min(axis=0), return_inverse=True)[1]
        sizes = np.bincount(row).astype(np.float64)
        if len(group) == 1:
            return cls(group, row, sizes, np.arange(outputs), np.ones(outputs))
        first = np.unique(row, return_index=True)[1]
        return cls(group, row, sizes, first, sizes)

    def expand(self, entries: Floats) -> Floats:
        """Return W[x, y] from the entries [x] of one output of every orbit."""
        if len(self.group) == 1:
            return np.ascontiguousarray(entries.T)
        size = entries.shape[1]
        matrix, times = np.zeros((size, size)), np.zeros(size)
        for moved in self.group:
            # The output y goes to moved[y], and what x had there is what moved[x] has now.
            matrix[np.ix_(moved, moved[self.outputs])] += entries.T
            times[moved[self.outputs]] += 1.0
        return matrix / times


def automorphisms(prior: Floats, cost: Floats, distance: Floats) -> Ints:
    """Return all permutations g with p, cost[gx, gy] and d(gx, gz) as before, the identity first.

    Inputs are told apart by their distances to a few chosen ones, whose images are searched for.
    Only the identity where the outputs are not the inputs, or where there are too many.
    """
    size = len(prior)
    alone = np.arange(size)[None, :]
    if cost.shape != distance.shape or size > 1 << 11:
        return alone
    kinds = _kinds(prior, cost, distance)
    base = _resolving(kinds, cost, distance)
    if base is None:
        return alone
    known = _keys(base, kinds, cost, distance)
    order = np.lexsort(known.T)
    result, tried = list[Ints](), 0
    stack: list[tuple[int, ...]] = [()]
    while stack:
        images = stack.pop()
        tried += 1
        if tried > _MAX_TRIED or len(result) > _MAX_SYMMETRIES:
            return alone
        if len(images) < len(base):
            b = base[len(images)]
            fits = kinds == kinds[b]
            for c, image in zip(base, images, strict=False):
                fits &= (distance[image] == distance[c, b]) & (cost[image] == cost[c, b])
            stack += [(*images, z) for z in np.flatnonzero(fits)[::-1].tolist()]
            continue
        keys = _keys(list(images), kinds, cost, distance)
        places = np.lexsort(keys.T)
        if not np.array_equal(known[order], keys[places]):
            continue
        moved = np.empty(size, dtype=np.int64)
        moved[order] = places
        if (
            np.array_equal(prior[moved], prior)
            and np.array_equal(cost[np.ix_(moved, moved)], cost)
            and np.array_equal(distance[np.ix_(moved, moved)], distance)
        ):
            result.append(moved)
    result.sort(key=lambda moved: not np.array_equal(moved, alone[0]))
    return np.array(result)


def _kinds(prior: Floats, cost: Floats, distance: Floats) -> Ints:
    """Number inputs by what no symmetry can change: probability and sorted distances and costs."""
    profile = np.column_stack([prior, np.sort(distance, axis=1), np.sort(cost, axis=1)])
    return np.unique(profile, axis=0, return_inverse=True)[1].reshape(-1)


def _keys(base: list[int], kinds: Ints, cost: Floats, distance: Floats) -> Floats:
    return np.column_stack([kinds, distance[:, base], cost[:, base]])


def _resolving(kinds: Ints, cost: Floats, distance: Floats) -> list[int] | None:
    """Choose a few inputs whose distances to an input say which one it is; None if six do not."""
    rare = np.bincount(kinds)[kinds]
    base = [int(rare.argmin())]
    while len(base) <= 6:
        keys = _keys(base, kinds, cost, distance)
        groups = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
        if groups.max() == len(kinds) - 1:
            return base
        crowd = np.flatnonzero(groups == np.bincount(groups).argmax())
        base.append(int(crowd[0]))
    return None
