"""Draws from channels that act row by row."""

from __future__ import annotations

import numpy as np

from fastpriv._sampling.source import Source
from fastpriv._sampling.thresholds import Codes, fitting
from fastpriv._structure.rows import RowKernels

#: How many values are sorted by the kernels of their rows at a time.
_BLOCK = 1 << 22


def draw_rows(kernels: RowKernels, rows: Codes, source: Source) -> Codes:
    """Send every row of every database through its kernel, independently of the others."""
    if len(kernels.distinct) == 1:
        return kernels.distinct[0].thresholds.draw(rows, source)
    widest = max(kernel.shape[1] for kernel in kernels.distinct)
    out = np.empty(rows.shape, dtype=fitting(rows.dtype, widest))
    step = max(1, _BLOCK // rows.shape[1])
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        for kernel, which in kernels.groups():
            out[part, which] = kernel.thresholds.draw(rows[part, which], source)
    return out
