"""Types of databases and classes of pairs, for programs that are symmetric in the records.

PD-DP and PD-I have the same form: for every output y choose a non-negative vector v_y over
databases that varies by at most e^epsilon between neighbours, such that the v_y add up to a given b
at minimum cost. If records are exchangeable under the prior, a solution may be averaged over their
permutations. So v_y(x) depends on the pair only through its *class*: the number of records of each
exchangeable block that hold value s in x and v in y. There remain one output for each type of y,
and one equation for each type of x. If all blocks have one record, this is the plain program. If
there is one block, it is the program on types.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from fastpriv._core.validation import Floats, Ints
from fastpriv._structure.counts import composition_index, compositions, log_multinomial
from fastpriv.spaces import Space

#: Most databases for which the places of all pairs are kept: half a megabyte.
_KEPT = 256

Counts = tuple[tuple[int, ...], ...]  # per block, how many records hold each value


class Blocks(NamedTuple):
    """The blocks of exchangeable records, and the number of values of a record in each block."""

    rows: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]

    @classmethod
    def single(cls, n: int, m: int) -> Blocks:
        """Put all records in one block."""
        return cls((tuple(range(n)),), (m,))


class Classes(NamedTuple):
    """The classes of databases x against one output y of a given type.

    For every block b and value v, take the records of b with value v in y. A class fixes how many
    of them have each value in x. This is one composition for each cell (b, v). Classes are
    numbered in C order of the cells, the largest first, so that the numbers of neighbours are
    close.
    """

    cells: list[tuple[int, int, int]]  # block, value of y, number of records
    strides: list[int]
    row: Ints  # type of x, per class
    distance: Ints  # d(x, y)
    log_count: Floats  # ln of the number of x in the class, for that y
    source: Ints  # ordered pairs of neighbouring classes: x ...
    target: Ints  # ... and x'
    count_ratio: Floats  # number of x in the source class over that in the target class
    size_ratio: Floats  # databases of the target's type over databases of the source's
    share: Floats  # fraction of the records with the changing value that lead to the target
    band: int  # largest |source - target|

    def number(self, x: Ints, y: Ints, blocks: Blocks) -> Ints:
        """Class of every database of ``x`` (k, n) against one output ``y`` (n,)."""
        numbers = np.zeros(len(x), dtype=np.int64)
        for (b, v, w), stride in zip(self.cells, self.strides, strict=True):
            rows = [i for i in blocks.rows[b] if y[i] == v]
            counts = np.stack([(x[:, rows] == s).sum(axis=1) for s in range(blocks.sizes[b])])
            numbers += stride * composition_index(counts, w)
        return numbers

    def held(self, v: int, m: int) -> Ints:
        """Return [s, class]: how many records with v in y hold s in x, if there is one block."""
        counts = np.zeros((m, len(self.row)), dtype=np.int64)
        for (_, value, w), stride in zip(self.cells, self.strides, strict=True):
            if value == v:
                made = np.array(compositions(w, m))
                counts = made[np.arange(len(self.row)) // stride % len(made)].T
        return counts

    def pair_counts(self, number: int, m: int) -> Ints:
        """Return how many records have v in y and s in x, [v, s]. All are in one block."""
        counts = np.zeros((m, m), dtype=np.int64)
        for (_, v, w), stride in zip(self.cells, self.strides, strict=True):
            made = compositions(w, m)
            counts[v] = made[number // stride % len(made)]
        return counts


class Types(NamedTuple):
    """All types of databases, and ln of the number of databases of each."""

    blocks: Blocks
    counts: list[Counts]
    log_sizes: Floats

    def size(self, j: int) -> int:
        """Return how many databases have type j, exactly."""
        return math.prod(
            math.factorial(sum(counts)) // math.prod(map(math.factorial, counts))
            for counts in self.counts[j]
        )

    def number(self, x: Ints) -> Ints:
        """Type of every database of ``x`` (k, n)."""
        numbers = np.zeros(len(x), dtype=np.int64)
        for rows, m in zip(self.blocks.rows, self.blocks.sizes, strict=True):
            counts = np.stack([(x[:, rows] == s).sum(axis=1) for s in range(m)])
            numbers *= len(compositions(len(rows), m))
            numbers += composition_index(counts, len(rows))
        return numbers


@lru_cache(maxsize=4096)
def _cell(total: int, parts: int) -> tuple[Ints, Floats, Ints]:
    """Compositions of one cell, ln of their multinomials, and the moves between them.

    A move (from, to, s, t) changes one record from value s to value t.
    """
    table = compositions(total, parts)
    place = {c: k for k, c in enumerate(table)}
    moves = []
    for k, c in enumerate(table):
        for s, t in itertools.permutations(range(parts), 2):
            if c[s]:
                moved = list(c)
                moved[s] -= 1
                moved[t] += 1
                moves.append((k, place[tuple(moved)], s, t))
    logs = np.array([log_multinomial(c) for c in table])
    return np.array(table), logs, np.array(moves, dtype=np.int64).reshape(-1, 4)


def types_of(blocks: Blocks) -> Types:
    """List the types of databases whose records come in exchangeable blocks."""
    per_block = [
        compositions(len(rows), m) for rows, m in zip(blocks.rows, blocks.sizes, strict=True)
    ]
    counts = list(itertools.product(*per_block))
    logs = np.array([sum(map(log_multinomial, kind)) for kind in counts])
    return Types(blocks, counts, logs)


def classes_against(kind: Counts, types: Types) -> Classes:
    """List the classes of databases against an output of type ``kind``."""
    blocks = types.blocks
    cells = [(b, v, w) for b, ws in enumerate(kind) for v, w in enumerate(ws) if w]
    cells.sort(key=lambda cell: -len(compositions(cell[2], blocks.sizes[cell[0]])))
    made = [_cell(w, blocks.sizes[b]) for b, _, w in cells]
    shape = [len(table) for table, *_ in made]
    size = math.prod(shape)
    strides = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    index = np.arange(size)
    distance = np.zeros(size, dtype=np.int64)
    logs = np.zeros(size)
    totals = [np.zeros((m, size), dtype=np.int64) for m in blocks.sizes]
    for (b, v, w), (table, log, _), stride, count in zip(cells, made, strides, shape, strict=True):
        digit = index // stride % count
        totals[b] += table[digit].T
        distance += w - table[digit, v]
        logs += log[digit]
    edges = []
    for (b, _, _), (table, _, moves), stride, count in zip(
        cells, made, strides, shape, strict=True
    ):
        # The moves of this cell, for all compositions of the other cells. The ratio of two
        # multinomials is a ratio of counts, which is exact.
        others = index[index // stride % count == 0][:, None]
        start, stop, s, t = moves.T
        source, target = others + start * stride, others + stop * stride
        counts = np.broadcast_to((table[start, t] + 1.0) / table[start, s], source.shape)
        sizes = totals[b][s, source] / (totals[b][t, source] + 1.0)
        shares = table[start, s] / totals[b][s, source]
        edges.append([part.reshape(-1) for part in (source, target, counts, sizes, shares)])
    row = np.zeros(size, dtype=np.int64)
    for rows, m, counts in zip(blocks.rows, blocks.sizes, totals, strict=True):
        row = row * len(compositions(len(rows), m)) + composition_index(counts, len(rows))
    joined = [np.concatenate(parts) for parts in zip(*edges, strict=True)]
    band = int(np.abs(joined[0] - joined[1]).max(initial=0))
    source, target, counts, sizes, shares = joined
    return Classes(cells, strides, row, distance, logs, source, target, counts, sizes, shares, band)


class Stack(NamedTuple):
    """The classes against all types of outputs, one type after the other."""

    starts: Ints  # start of each block, and the end of the last
    kind: Ints  # type of y, per class
    row: Ints  # type of x
    distance: Ints
    log_count: Floats
    log_outputs: Floats  # ln of the number of y that make the class, for one x of its type
    source: Ints
    target: Ints
    share: Floats

    @classmethod
    def of(cls, types: Types, classes: list[Classes]) -> Stack:
        """Concatenate the classes against all types, and renumber the pairs."""
        sizes = [len(c.row) for c in classes]
        starts = np.cumsum([0, *sizes])
        kind = np.repeat(np.arange(len(classes)), sizes)
        shift = np.repeat(starts[:-1], [len(c.source) for c in classes])
        row, distance, log_count, source, target, share = (
            np.concatenate([getattr(c, name) for c in classes])
            for name in ("row", "distance", "log_count", "source", "target", "share")
        )
        log_outputs = types.log_sizes[kind] + log_count - types.log_sizes[row]
        source, target = source + shift, target + shift
        return cls(starts, kind, row, distance, log_count, log_outputs, source, target, share)


def expand(types: Types, classes: list[Classes], entries: list[Floats]) -> Floats:
    """Return W[x, y] for all databases x and y, from the entry of each class. Cost O(N^2 n)."""
    size = math.prod(m ** len(rows) for rows, m in zip(*types.blocks, strict=True))
    places = _places(types.blocks) if size <= _KEPT else _listed_places(types, classes)
    return np.asarray(np.concatenate(entries)[places])


@lru_cache(maxsize=8)
def _places(blocks: Blocks) -> Ints:
    """Return the places of a small matrix, which the programs of a curve share."""
    types = types_of(blocks)
    return _listed_places(types, [classes_against(kind, types) for kind in types.counts])


def _listed_places(types: Types, classes: list[Classes]) -> Ints:
    """Return where the entry of x and y stands among the entries of all classes."""
    sizes = np.empty(sum(map(len, types.blocks.rows)), dtype=np.int64)
    for rows, m in zip(types.blocks.rows, types.blocks.sizes, strict=True):
        sizes[list(rows)] = m
    space = Space(sizes)
    x = space.rows(np.arange(space.size))
    kinds = types.number(x)
    starts = np.cumsum([0, *(len(c.row) for c in classes)])
    places = np.empty((space.size, space.size), dtype=np.int64)
    for y in range(space.size):
        places[:, y] = classes[kinds[y]].number(x, x[y], types.blocks) + starts[kinds[y]]
    return places
