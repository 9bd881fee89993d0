"""A table of output laws, and how far its rows are from other laws and from each other."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from fastpriv import kernels
from fastpriv._core.rounding import ULP, raised
from fastpriv._core.threads import split
from fastpriv._core.validation import Floats, Ints

#: Fewest entries worth a thread of their own, in logarithms and in plain operations.
_LOGS, _PLAIN = 1 << 15, 1 << 18
#: Entries that are copied together.
_BLOCK = 1 << 20
#: Capacities below are only bounded by it, as in the kernels.
LEAST = 1e-280
#: Outputs that a law never shows count as this likely.
_NEVER = 1e-300


class Laws:
    """The rows of a table, with bounds on their divergences from any law.

    D(w, q) = sum w ln(w/q) - w + q is bounded above in one of two ways: as the sum of
    w ln w - w, known once and for all, and a product of w with -ln q, which costs little but has
    an error of about K ulp; and where that error matters as in ``kernels.capacities``, with the
    relative error of a few ulp that divergences of any size deserve.
    """

    def __init__(self, table: Floats) -> None:
        self.table = table
        self.size, self.outputs = table.shape
        self._dots = np.empty(self.size)

    @cached_property
    def own(self) -> Floats:
        """Sum of w ln w - w for every row."""
        own = np.empty(self.size)

        def task(start: int, stop: int) -> None:
            kernels.negative_entropies(self.table, start, stop, own)

        split(task, self.size, max(1, _LOGS // self.outputs))
        return own

    @cached_property
    def sums(self) -> tuple[float, float]:
        """Least and largest sum of a row: one, up to rounding."""
        sums = self.table.sum(axis=1)
        return float(sums.min()), float(sums.max())

    def mean(self, rows: Ints, law: Floats) -> tuple[Floats, Floats]:
        """Law of the output when rows are drawn with given chances, as a sum q + c."""
        q, c = np.empty(self.outputs), np.empty(self.outputs)
        kernels.output_law(self.table[rows], law, q, c)
        return q, c

    def least(self, rows: Ints) -> Floats:
        """Least chance of every output among some rows."""
        step = max(1, _BLOCK // self.outputs)
        parts = [
            self.table[rows[start : start + step]].min(axis=0)
            for start in range(0, len(rows), step)
        ]
        return np.asarray(np.minimum.reduce(parts))

    def divergences(self, rows: Ints, q: Floats, c: Floats, enough: float) -> Floats:
        """Bound D(w, q + c) of some rows from above; precisely where ``enough`` is in doubt."""
        floor = np.maximum(q, _NEVER)
        logs, dots = np.log(floor), self._dots

        def task(start: int, stop: int) -> None:
            kernels.row_dots(self.table, rows, logs, start, stop, dots)

        split(task, len(rows), max(1, _PLAIN // self.outputs))
        own, cross = self.own[rows], dots[rows]
        error = (2 * self.outputs + 32) * ULP * (np.abs(own) + np.abs(cross) + 4.0)
        above = own - cross + floor.sum() + error
        doubt = np.flatnonzero((above > enough) & (above - 3.0 * error <= enough))
        if len(doubt):
            above[doubt] = self._precise(rows[doubt], q, c)
        return np.asarray(above)

    def _precise(self, rows: Ints, q: Floats, c: Floats) -> Floats:
        divergences = np.empty(len(rows))
        step = max(1, _BLOCK // self.outputs)

        def task(start: int, stop: int) -> None:
            for first in range(start, stop, step):
                part = rows[first : min(first + step, stop)]
                here = np.empty(len(part))
                kernels.row_divergences(self.table[part], q, c, 0, len(part), here)
                divergences[first : first + len(part)] = here

        split(task, len(rows), max(1, _LOGS // self.outputs))
        return np.asarray(raised(divergences, self.outputs + 128) + LEAST)

    def pairs(self, left: Ints, right: Ints) -> Floats:
        """Bound the capacity of every pair of rows, one from each list."""
        out = np.empty((len(left), len(right)))
        swap = len(left) < len(right)  # threads share the longer list
        rows, others = (right, left) if swap else (left, right)
        into = np.empty((len(rows), len(others))) if swap else out

        def task(start: int, stop: int) -> None:
            kernels.pair_bounds(self.table, rows, others, start, stop, into)

        split(task, len(rows), max(1, _PLAIN // (len(others) * self.outputs)))
        return np.asarray((into.T if swap else into) + LEAST)

    def sharp_pairs(self, left: Ints, right: Ints) -> Floats:
        """Bound the capacities of rows ``left[j]``, ``right[j]`` more closely, at more cost."""
        out = np.empty(len(left))

        def task(start: int, stop: int) -> None:
            kernels.sharp_pair_bounds(self.table, left, right, start, stop, out)

        split(task, len(left), max(1, _LOGS // self.outputs))
        return np.asarray(out + LEAST)

    def halves(self, rows: Ints, pivot: int) -> tuple[Ints, Ints]:
        """Two clusters: rows closer to the pivot, and to the row furthest from it."""
        first = self._apart(rows, pivot)
        second = self._apart(rows, int(rows[first.argmax()]))
        nearer = first < second
        if not nearer.any() or nearer.all():  # rows too close to tell
            nearer = np.arange(len(rows)) < len(rows) // 2
        return rows[nearer], rows[~nearer]

    def _apart(self, rows: Ints, center: int) -> Floats:
        distances = np.empty(len(rows))

        def task(start: int, stop: int) -> None:
            kernels.row_distances(self.table, rows, center, start, stop, distances)

        split(task, len(rows), max(1, _PLAIN // self.outputs))
        return distances
