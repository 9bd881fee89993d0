"""Individual capacity over independent rows, each with a law of its own in a box."""

from __future__ import annotations

import numpy as np

from fastpriv._core.clock import Clock
from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats
from fastpriv._matrices.capacity import capacities
from fastpriv.channels import AbstractChannel, ProductChannel
from fastpriv.channels.rowwise import row_kinds
from fastpriv.errors import TooLarge, short
from fastpriv.measures.individual.bits import interval_leak
from fastpriv.measures.individual.inputs import most_information
from fastpriv.measures.individual.search import widened
from fastpriv.measures.pointwise.boxes import chances, corners
from fastpriv.priors.sets import Box
from fastpriv.results import IndividualCapacity

#: Most channels at corners of other rows, and the gap of their capacities over all laws.
_CHANNELS, _ROUGH = 1 << 12, 1e-3


def row_box_leak(
    channel: AbstractChannel, box: Box, gap: float, clock: Clock
) -> IndividualCapacity:
    """Return the largest I(X_i; Y) over rows i and independent rows, each with a law in a box.

    The channel from x_i to y is linear in the law of each other row, and information is convex in
    the channel. So all other rows are at corners of the box. In its own law it is concave. Channels
    of largest capacity come first; those whose capacity is below what is found are left out, and
    those that the time does not suffice for are bounded by it.
    """
    if box.size == 2:
        return interval_leak(channel, *chances(box), gap, clock)
    if isinstance(channel, ProductChannel):
        tables = [kernel.matrix[None] for kernel in channel.kernels.distinct]
    else:
        tables = _at_corners(channel, corners(box))
    bounded = [pair for part in tables for pair in _bounded(part)]
    lower = upper = 0.0
    for number, (most, table) in enumerate(sorted(bounded, key=lambda pair: -pair[0])):
        if most <= upper or (number and clock.left() == 0.0):
            upper = max(upper, most)
            break
        low, high = most_information(table, box, gap, clock)
        lower, upper = max(lower, low), max(upper, min(high, most))
    leak = IndividualCapacity(lower, upper, None)
    return widened(leak, channel.matrix_error + 8.0 * channel.space.n * (box.size + 2) * ULP)


def _bounded(tables: Floats) -> list[tuple[float, Floats]]:
    """Return channels of one row, each with its capacity over all laws, from above."""
    caps = capacities(np.ascontiguousarray(tables), _ROUGH)[1]
    return list(zip(caps.tolist(), tables, strict=True))


def _at_corners(channel: AbstractChannel, laws: Floats) -> list[Floats]:
    """Return for each row its channels to the output, with the other rows at corners."""
    n, m = channel.space.n, laws.shape[1]
    rows = np.unique(row_kinds(channel), return_index=True)[1].tolist()
    count = len(rows) * len(laws) ** (n - 1)
    if count > _CHANNELS:
        raise TooLarge(
            f"each corner of the box of all other rows leaves a channel of one row to search, "
            f"{short(count)} of them, and at most {_CHANNELS:,} are searched; use fewer rows, or a "
            "channel that acts row by row"
        )
    lead = np.array(channel.nearest_matrix()).reshape((m,) * n + (-1,))
    tables = []
    for i in rows:
        table = lead
        for j in range(n):
            if j != i:
                table = np.moveaxis(np.tensordot(laws, np.moveaxis(table, j, 0), 1), 0, j)
        moved: Floats = np.moveaxis(table, i, -2)
        tables.append(moved.reshape(-1, m, np.shape(moved)[-1]))
    return tables
