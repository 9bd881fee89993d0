"""Enumeration of Hamming shells, and sums of a distribution over them."""

import numpy as np

from .arrays import count_up_to
from .declare import Ints, Vector, kernel


@kernel()
def fill_shell(center: int, delta: Ints, start: Ints, choice: Ints, out: Ints) -> int:
    """Write the next members of a shell into ``out`` and return how many were written.

    A member changes ``len(choice)`` records. All single changes are numbered record by record:
    changes ``start[i] .. start[i+1]-1`` belong to record i, and change c adds ``delta[c]`` to the
    index. ``choice`` holds the current changes, in increasing records; it is the whole state of the
    enumeration, is advanced in place, and ``choice[0] = -1`` marks the end. The innermost change
    runs over a contiguous stretch of ``delta``, so the hot loop is one vector addition.
    """
    depth = choice.shape[0]
    total = delta.shape[0]
    n = start.shape[0] - 1
    room = out.shape[0]
    written = 0
    if depth == 0:
        out[0] = center
        return 1
    while written < room and choice[0] >= 0:
        base = center
        for j in range(depth - 1):
            base += delta[choice[j]]
        first = choice[depth - 1]
        count = min(total - first, room - written)
        for c in range(count):
            out[written + c] = base + delta[first + c]
        written += count
        if first + count < total:
            choice[depth - 1] = first + count
            break
        # The innermost change is exhausted: advance the deepest one that can still move on and
        # restart those below it on the records after it.
        level = depth - 2
        while level >= 0:
            row = count_up_to(start, choice[level] + 1) - 1
            if row + depth - level <= n:  # enough records remain for deeper changes
                choice[level] += 1
                for j in range(level + 1, depth):
                    row += 1
                    choice[j] = start[row]
                break
            level -= 1
        if level < 0:
            choice[0] = -1
    return written


@kernel()
def shell_masses(pmf: Vector, outer_distance: Ints, inner_distance: Ints, profile: Vector) -> None:
    """Add the mass of ``pmf`` at each distance to ``profile``.

    The index is split as outer * len(inner) + inner and the distance is the sum of the two
    parts' distances, looked up in two small tables. Each inner block is summed on its own first,
    which keeps the rounding error of the sum near the square root of its length.
    """
    inner = inner_distance.shape[0]
    block = np.zeros(profile.shape[0])
    for o in range(outer_distance.shape[0]):
        block[:] = 0.0
        base = o * inner
        for i in range(inner):
            block[inner_distance[i]] += pmf[base + i]
        shift = outer_distance[o]
        for d in range(profile.shape[0] - shift):
            profile[d + shift] += block[d]
