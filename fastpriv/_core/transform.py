"""The Hamming transform: v <- v + c (sum along an axis - m v), for every axis, in place.

With c = b this applies the m-ary symmetric channel R_epsilon to a row, with c = -b/(a - b) its
inverse. Both leave a constant vector exactly as it is. Planning is here, arithmetic in
`kernels/transform.py`: each pass over memory handles several axes on pieces that stay in cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from math import ceil, log, prod
from typing import NamedTuple

import numpy as np

from fastpriv._core.threads import split
from fastpriv._core.validation import Floats

_BLOCK = 1 << 18  # most elements of a contiguous block (2 MB, shared cache)
_PANEL = 1 << 15  # elements of a strided panel (256 KB, half a second-level cache)
_ROWS = 1 << 9  # most rows of a strided panel
_TURN = 12  # most axes of size 2 that are turned (32 KB, first-level cache)
_TAIL = 128  # most elements spanned by the axes that are transposed
_TILE = 1 << 12  # elements of a transposed tile (32 KB)
_FEWEST = 8  # fewest columns of a panel or tile: one cache line
_SERIAL = 1 << 16  # vectors up to this length are one block for one thread

Step = tuple[int, int, int]  # first axis, how many axes of size 2 are fused (0: none), total size


class Pass(NamedTuple):
    """One sweep over the vector: a kernel, its steps, its sizes, and how many pieces it has."""

    kernel: str
    steps: list[Step]
    arguments: tuple[int, ...]
    pieces: int


def mix(v: Floats, sizes: Sequence[int], coefficients: Sequence[float]) -> Floats:
    """Transform ``v`` in place along every axis of ``sizes`` and return it.

    Cost O(N n) arithmetic in two or three passes over memory; scratch of at most 512 KB a thread.
    """
    from fastpriv import kernels

    c = np.array([step for step, m in zip(coefficients, sizes, strict=True) if m > 1])
    for kernel, steps, arguments, pieces in _plan(tuple(m for m in sizes if m > 1)):
        task = partial(getattr(kernels, kernel), v, c, np.array(steps, dtype=np.int64), *arguments)
        split(task, pieces, 1 if v.size > _SERIAL else pieces)
    return v


@lru_cache(maxsize=256)
def _plan(sizes: tuple[int, ...]) -> list[Pass]:
    """Split the axes into passes: the lowest ones in contiguous blocks, the rest in panels."""
    total, stop = prod(sizes), len(sizes)
    if not stop:
        return []
    first, length = _suffix(sizes, total if total <= _SERIAL else min(_BLOCK, total // 4))
    stop, stride = first, length
    steps, in_place, tail, group = _lowest(sizes, first)
    if not in_place:  # only moved axes: a piece is as many as are moved at a time
        length = tail * max(group, 1)
    passes = [Pass("contiguous", steps, (in_place, length, tail, group), -(-total // length))]
    if stop:
        # As few passes as the row limit allows, of about equal size.
        rest = total // stride
        limit = ceil(rest ** (1 / ceil(log(rest, _ROWS))) - 1e-9)
    while stop:
        first, rows = _suffix(sizes[:stop], limit)
        steps = _steps(sizes, first, stop)
        if rows > _PANEL // _FEWEST:  # a single huge axis
            length = rows * stride
            passes.append(Pass("contiguous", steps, (len(steps), length, 1, 1), total // length))
        else:
            columns = min(stride, max(_PANEL // rows, _FEWEST))
            pieces = total // (rows * stride) * -(-stride // columns)
            passes.append(Pass("strided", steps, (rows, stride, columns), pieces))
        stop, stride = first, stride * rows
    return passes


def _suffix(sizes: Sequence[int], limit: int) -> tuple[int, int]:
    """Start and product of the longest suffix with product <= limit, at least one axis."""
    first, product = len(sizes) - 1, sizes[-1]
    while first and product * sizes[first - 1] <= limit:
        first -= 1
        product *= sizes[first]
    return first, product


def _steps(sizes: Sequence[int], first: int, stop: int, most: int = 3) -> list[Step]:
    """Steps for the axes first .. stop - 1, at most ``most`` axes of size 2 fused in each."""
    steps = []
    while first < stop:
        twos = 0
        while twos < most and first + twos < stop and sizes[first + twos] == 2:
            twos += 1
        steps.append((first, twos, 2**twos if twos else sizes[first]))
        first += max(twos, 1)
    return steps


def _lowest(sizes: Sequence[int], first: int) -> tuple[list[Step], int, int, int]:
    """Steps of the lowest axes, how many are done in place, and how the others are moved.

    Axes with strides below a cache line cannot be vectorised where they lie. Eight or more of
    size 2 are turned (each step carries its axes to the other end), others are transposed.
    """
    stop, binary = len(sizes), 0
    while binary < min(_TURN, stop - first) and sizes[stop - 1 - binary] == 2:
        binary += 1
    if binary >= 8:
        low, tail, group = stop - binary, 2**binary, 0
        threes = low + 3 * (binary - 8)
        last = _steps(sizes, low, threes) + _steps(sizes, threes, stop, 2)
    elif sizes[-1] <= _PANEL // _FEWEST:
        low, tail = _suffix(sizes[first:], _TAIL)
        low += first
        group = max(_TILE // tail, _FEWEST)
        last = _steps(sizes, low, stop)
    else:
        low, tail, group, last = stop, 1, 1, []
    front = _steps(sizes, first, low)
    return front + last, len(front), tail, group
