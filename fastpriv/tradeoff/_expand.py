"""From one number per class back to a matrix over databases."""

from __future__ import annotations

import numpy as np

from fastpriv._validation import Floats
from fastpriv.spaces import Space
from fastpriv.tradeoff._blocks import Classes, Types


def expand(types: Types, classes: list[Classes], entries: list[Floats]) -> Floats:
    """Return W[x, y] for all databases x and y, from the entry of each class. Cost O(N^2 n)."""
    sizes = np.empty(sum(map(len, types.blocks.rows)), dtype=np.int64)
    for rows, m in zip(types.blocks.rows, types.blocks.sizes, strict=True):
        sizes[list(rows)] = m
    space = Space(sizes)
    x = space.rows(np.arange(space.size))
    kinds = types.number(x)
    matrix = np.empty((space.size, space.size))
    for y in range(space.size):
        found = classes[kinds[y]].number(x, x[y], types.blocks)
        matrix[:, y] = entries[kinds[y]][found]
    return matrix
