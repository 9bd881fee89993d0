"""The same program on fewer unknowns: types of databases, or orbits of inputs.

Averaging a mechanism over permutations that preserve prior, cost and privacy changes neither cost
nor privacy. So one unknown remains for every class of pairs (x, y), and one equation for every
class of inputs.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from fastpriv._core.clock import Clock
from fastpriv._core.threads import serial_algebra, workers
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.leakage import TINY
from fastpriv._structure.neighbours import spanner
from fastpriv._structure.types import Blocks, Classes, Stack, Types, classes_against, types_of
from fastpriv.design import engines
from fastpriv.design.certificate import (
    TOLERANCE,
    Layout,
    certified_level,
    distance_closure,
    pairs_closure,
    repair_margin,
    repaired,
)
from fastpriv.design.cone import Cone, GrowingCone, ListedCone, SharedCone
from fastpriv.design.engines import first_order
from fastpriv.design.problem import Limits, OutOfRange, OutOfTime
from fastpriv.errors import TooLarge

#: Most pairs of a program on types: 24 bytes for each, and as much again for its iterates.
MAX_PAIRS = 30_000_000
#: Most pairs that are listed; more pairs use a working set.
MAX_LISTED = 60_000
#: Most types whose classes are kept for the next program.
_FEW_TYPES = 64
#: Stretch of the first working set: pairs that a chain implies up to this factor are left out.
_STRETCH = 3e-2
#: Stretches of the pairs of the first-order method, as shares of the gap, until they are few.
_STRETCHES = (0.5, 1.0, 2.0, 4.0)
#: Most pairs per input of the first-order method: all that are needed, or those up to a stretch.
_FEW_PAIRS = 16
_MOST_PAIRS = 64
#: Most doubles of the first-order method (4 GB).
MAX_ENTRIES = 500_000_000
#: The time to measure a matrix is estimated from this part of its outputs. Repairing and measuring
#: take up to so many times as long as measuring alone.
_MEASURED_PARTS = 16
_FINISHING = 3.0
#: The interior-point method takes about 60 steps to a gap of 1e-3, and a step over all pairs twice
#: as long as its factorisations: both numbers measured on 16 x 16 to 32 x 32 cells.
_FACTORISATIONS = 120.0
#: Factorisations that are timed.
_TIMED = 3
#: Pairs whose ratio may be e^60 are left out.
_FAR = 60.0
#: Most symmetries that are used.
_MAX_SYMMETRIES = 48
#: Most partial permutations that are tried in the search for symmetries.
_MAX_TRIED = 20_000
#: Most inputs for which symmetries are searched.
_MAX_INPUTS = 1 << 11
#: Most inputs whose images determine a permutation.
_MAX_BASE = 6


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


class Orbits(NamedTuple):
    """A group of permutations (one per row of the array) and the orbits of inputs and outputs."""

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
            # The output y goes to moved[y], and the entry of x goes to moved[x].
            matrix[np.ix_(moved, moved[self.outputs])] += entries.T
            times[moved[self.outputs]] += 1.0
        return matrix / times


def automorphisms(prior: Floats, cost: Floats, distance: Floats) -> Ints:
    """Return all permutations g that preserve p, cost[gx, gy] and d(gx, gz), identity first.

    Inputs are distinguished by their distances to a few chosen inputs, whose images are searched
    for. Returns only the identity if the outputs are not the inputs, or if there are too many.
    """
    size = len(prior)
    alone = np.arange(size)[None, :]
    if cost.shape != distance.shape or size > _MAX_INPUTS:
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
    """Number inputs by invariants: probability, and sorted distances and costs."""
    profile = np.column_stack([prior, np.sort(distance, axis=1), np.sort(cost, axis=1)])
    return np.unique(profile, axis=0, return_inverse=True)[1].reshape(-1)


def _keys(base: list[int], kinds: Ints, cost: Floats, distance: Floats) -> Floats:
    return np.column_stack([kinds, distance[:, base], cost[:, base]])


def _resolving(kinds: Ints, cost: Floats, distance: Floats) -> list[int] | None:
    """Choose a few inputs whose distances identify every input; None if six are not enough."""
    rare = np.bincount(kinds)[kinds]
    base = [int(rare.argmin())]
    while len(base) <= _MAX_BASE:
        keys = _keys(base, kinds, cost, distance)
        groups = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
        if groups.max() == len(kinds) - 1:
            return base
        crowd = np.flatnonzero(groups == np.bincount(groups).argmax())
        base.append(int(crowd[0]))
    return None


class Reduced(NamedTuple):
    """A solved program: its entries p(y|x), the proved lower bound, the engine, and the clock."""

    entries: Floats
    bound: float
    engine: str
    late: bool


class Reduction(ABC):
    """A program on fewer unknowns; it depends on prior and cost, never on the level."""

    least: float  # level of the prior alone
    shortest = 1.0  # smallest distance of two inputs, at most 1

    @abstractmethod
    def cone(self, epsilon: float, margin: float, limits: Limits) -> Cone | SharedCone:
        """Return the program at a margin below the level, in the form that its engine takes."""

    @abstractmethod
    def layout(self) -> Layout:
        """Return how entries add up and how their ratios are restored."""

    @abstractmethod
    def entries(self, v: Floats) -> tuple[Floats, Floats]:
        """Return p(y|x) of the unknowns, and of a constant mechanism."""

    def solve(self, epsilon: float, limits: Limits, extra: float, reserve: float = 0.0) -> Reduced:
        """Solve the program and repair the engine's floats.

        Raises ``OutOfTime`` if the time is over before there is a point to repair.

        Parameters
        ----------
        epsilon : float
            The level.
        limits : Limits
            Gap, time and engine.
        extra : float
            Further rounding error that the repair allows for.
        reserve : float
            Seconds that are kept for the repair.
        """
        if limits.late:
            raise OutOfTime
        # The program is solved slightly below the level, so that the repair has room.
        margin = (2.0 * TOLERANCE + repair_margin(epsilon, extra)) / self.shortest
        margin = margin if self.least + 4.0 * margin < epsilon else 0.0
        cone = self.cone(epsilon, margin, limits)
        clock = Clock(max(0.0, limits.clock.left() - reserve))
        point, engine = engines.solve(cone, cone.gap_share * limits.gap, clock, limits.engine)
        late = point.late or clock.left() == 0.0
        entries, constant = self.entries(point.v)
        entries = repaired(entries, constant, self.layout(), epsilon, extra)
        return Reduced(entries, point.bound, engine, late)


@lru_cache(maxsize=8)
def _listed_once(blocks: Blocks) -> tuple[list[Classes], Stack]:
    """List the classes of few types; a search over levels asks for the same ones again."""
    types = types_of(blocks)
    classes = [classes_against(kind, types) for kind in types.counts]
    return classes, Stack.of(types, classes)


class ByTypes(Reduction):
    """Databases grouped by the permutations of records that leave the prior unchanged.

    The unknowns are the masses of classes of pairs (x, y). Without symmetry every database is a
    type.
    """

    def __init__(self, types: Types, weights: Floats, joint: bool, clock: Clock) -> None:
        self.types, self.weights, self.joint = types, weights, joint
        begun = clock.left()
        if len(types.counts) <= _FEW_TYPES:
            self.classes, self.stack = _listed_once(types.blocks)
        else:
            self.classes = self._listed(clock)
            self.stack = Stack.of(types, self.classes)
        self.per_database = weights / np.exp(types.log_sizes) if joint else np.ones_like(weights)
        self.least = 0.0
        if joint:
            if self.per_database.min() < TINY:
                raise OutOfRange
            row = self.stack.row
            odds = self.per_database[row[self.stack.source]]
            odds = odds / self.per_database[row[self.stack.target]]
            self.least = math.log(odds.max(initial=1.0))
        #: Seconds of this step; repairing and building the channel take about as long.
        self.seconds = 0.0 if math.isinf(begun) else begun - clock.left()

    def _listed(self, clock: Clock) -> list[Classes]:
        """List the classes for every type of output, if they fit and time allows."""
        classes: list[Classes] = []
        size = 0
        for kind in self.types.counts:
            if clock.left() == 0.0:
                raise OutOfTime
            classes.append(classes_against(kind, self.types))
            size += len(classes[-1].source)
            if size > MAX_PAIRS:
                raise TooLarge(
                    f"the program has more than {MAX_PAIRS:,} pairs even after symmetry; use fewer "
                    "records or values, or a prior with more structure."
                )
        return classes

    def cone(self, epsilon: float, margin: float, limits: Limits) -> ListedCone:
        """Return the program in masses of classes."""
        stack, row = self.stack, self.stack.row
        # Masses under a constant channel whose output has a uniform type: inside the cone.
        start = np.exp(stack.log_count - self.types.log_sizes[row]) / len(self.classes)
        distance = stack.distance.astype(np.float64)
        ratio = np.concatenate([c.count_ratio for c in self.classes])
        if self.joint:
            cost, total, start = distance, self.weights, self.weights[row] * start
        else:
            cost, total = self.weights[row] * distance, np.ones_like(self.weights)
            ratio = ratio * np.concatenate([c.size_ratio for c in self.classes])
        near = np.exp(stack.log_outputs - epsilon * distance)  # randomised response
        near *= (total / np.bincount(row, near))[row]
        return ListedCone(
            cost, total, row, stack.source, stack.target, ratio, epsilon - margin, margin,
            stack.starts, np.cumsum([0, *(len(c.source) for c in self.classes)]),
            np.array([c.band for c in self.classes]), start, near=near,
        )  # fmt: skip

    def layout(self) -> Layout:
        """Return the classes as entries."""
        stack = self.stack
        closure = pairs_closure(stack.source, stack.target)
        return Layout(stack.row, np.exp(stack.log_outputs), self.per_database, closure)

    def entries(self, v: Floats) -> tuple[Floats, Floats]:
        """Divide masses by the number of outputs that make a class for one x."""
        stack = self.stack
        entry = v / np.exp(stack.log_outputs) / (self.weights[stack.row] if self.joint else 1.0)
        # The same number for every x, exactly.
        constant = np.exp(-self.types.log_sizes)[stack.kind] / len(self.classes)
        return entry, constant

    def split(self, entries: Floats) -> list[Floats]:
        """Return the entries of every type of output."""
        return np.split(entries, self.stack.starts[1:-1])


class ByOrbits(Reduction):
    """One output of every orbit under the automorphisms of prior, cost and distance.

    The unknowns are v[k, x], the mass of input x and the outputs of orbit k.
    """

    def __init__(self, prior: Floats, cost: Floats, distance: Floats, joint: bool) -> None:
        self.prior, self.cost, self.distance, self.joint = prior, cost, distance, joint
        self.orbits = Orbits.of(automorphisms(prior, cost, distance), cost.shape[1])
        self.least = certified_level(prior[:, None], distance) if joint else 0.0
        self.shortest = min(1.0, float(distance[distance > 0.0].min(initial=1.0)))
        self.weights = prior if joint else np.ones(len(prior))
        total = np.bincount(self.orbits.row, self.weights)
        self.total = np.asarray(total, dtype=np.float64)

    def finishing_seconds(self) -> float:
        """Estimate the time to repair and measure a matrix, from a part of its outputs."""
        outputs = self.cost.shape[1]
        few = -(-outputs // _MEASURED_PARTS)
        certified_level(np.ones((1, 1)), np.zeros((1, 1)))  # compiled before the clock starts
        begun = time.monotonic()
        certified_level(np.ones((len(self.prior), few)), self.distance)
        taken = time.monotonic() - begun
        return float(_FINISHING * outputs / few * taken)

    def _interior_seconds(self) -> float:
        """Estimate the time of the interior-point method from one factorisation."""
        from scipy.linalg.lapack import dpotrf

        matrix, outputs = np.eye(len(self.prior)), len(self.orbits.outputs)
        with serial_algebra():
            begun = time.monotonic()
            for _ in range(_TIMED):
                dpotrf(matrix, lower=1)
            taken = (time.monotonic() - begun) / _TIMED
        return float(_FACTORISATIONS * -(-outputs // workers()) * taken)

    def cone(self, epsilon: float, margin: float, limits: Limits) -> Cone | SharedCone:
        """Return the program with the needed pairs, or with a part of them if they are many."""
        orbits, outputs, size = self.orbits, len(self.orbits.outputs), len(self.prior)
        if self.joint and self.prior.min() < TINY:
            raise OutOfRange
        cost = self.cost[:, orbits.outputs].T * (1.0 if self.joint else self.prior)
        engine, work = limits.engine, float(outputs) * size**3
        start = np.tile(self.weights / outputs, (outputs, 1))
        needed = self._needed(epsilon)
        if engine == "first-order" or (
            engine == "auto"
            and work > engines.MAX_WORK
            and (
                int(np.count_nonzero(needed)) <= _FEW_PAIRS * size
                or outputs * size * size > engines.MAX_FACTORS
                or self._interior_seconds() > limits.clock.left()
            )
        ):
            return self._shared(cost.T, epsilon, margin, limits.gap)
        if int(np.count_nonzero(needed)) * outputs > MAX_LISTED and engine != "highs":
            if outputs * size * size > engines.MAX_FACTORS:
                raise TooLarge.entries(
                    f"the factors of {outputs} outputs over {size} inputs after symmetry",
                    outputs * size * size,
                    "use solver='first-order'",
                )
            capped = np.minimum(self.distance, _FAR / epsilon)
            return GrowingCone(
                np.ascontiguousarray(cost), orbits.row, self.total,
                np.exp((epsilon - margin) * capped), np.exp(epsilon * capped),
                spanner(self.distance, _STRETCH) & (capped == self.distance), start,
            )  # fmt: skip
        source, target = np.nonzero(needed)
        length = np.tile(self.distance[source, target], outputs)
        shift = np.repeat(size * np.arange(outputs), len(source))
        return ListedCone(
            cost.reshape(-1), self.total, np.tile(orbits.row, outputs),
            np.tile(source, outputs) + shift, np.tile(target, outputs) + shift,
            np.exp((epsilon - margin) * length), 0.0, margin,
            size * np.arange(outputs + 1), len(source) * np.arange(outputs + 1),
            np.full(outputs, size - 1), start.reshape(-1), length,
        )  # fmt: skip

    def _needed(self, epsilon: float, stretch: float = 0.0) -> np.ndarray:
        """Mark the pairs that chains do not imply up to a stretch, without those of huge ratios."""
        with np.errstate(over="ignore"):  # an infinite exponent is far as well
            return spanner(self.distance, stretch) & (epsilon * self.distance <= _FAR)

    def _shared(self, cost: Floats, epsilon: float, margin: float, gap: float) -> SharedCone:
        """Return the program with one list of pairs for all outputs."""
        size, outputs = cost.shape
        for stretch in (0.0, *(share * gap for share in _STRETCHES)):
            needed = self._needed(epsilon, stretch)
            pairs = int(np.count_nonzero(needed))
            if pairs <= (_MOST_PAIRS if stretch else _FEW_PAIRS) * size:
                break
        entries = first_order.entries(size, outputs, pairs)
        if entries > MAX_ENTRIES:
            raise TooLarge.entries(
                f"the iterates of {outputs} outputs over {size} inputs after symmetry", entries,
                "use fewer inputs or outputs, or a larger gap",
            )  # fmt: skip
        source, target = (np.ascontiguousarray(end) for end in np.nonzero(needed))
        length = self.distance[source, target]
        capped = np.minimum(self.distance, _FAR / epsilon)
        row, copies = self.orbits.row, self.orbits.copies
        # The exponential mechanism if outputs are inputs, else a constant.
        near = np.ones(cost.shape)
        if self.cost.shape == self.distance.shape:
            near = np.exp(-epsilon * capped[:, self.orbits.outputs])
        near = near * copies * self.weights[:, None]
        near *= (self.total / np.bincount(row, near.sum(axis=1)))[row][:, None]
        return SharedCone(
            np.ascontiguousarray(cost), row, self.total, source, target,
            np.exp((epsilon - margin) * length), np.exp(epsilon * length), near,
            np.exp((epsilon - margin) * capped) if stretch else None,
        )  # fmt: skip

    def layout(self) -> Layout:
        """Return the entries of one output of every orbit."""
        orbits, outputs = self.orbits, len(self.orbits.outputs)
        return Layout(
            np.tile(orbits.row, outputs),
            np.outer(orbits.copies, 1.0 / orbits.sizes[orbits.row]).reshape(-1),
            self.total / orbits.sizes,
            distance_closure(self.distance),
        )

    def entries(self, v: Floats) -> tuple[Floats, Floats]:
        """Divide masses of whole orbits by their numbers of outputs."""
        outputs, size = len(self.orbits.outputs), len(self.prior)
        entry = v.reshape(outputs, size) / self.orbits.copies[:, None] / self.weights
        return entry.reshape(-1), np.full(outputs * size, 1.0 / self.cost.shape[1])

    def matrix(self, entries: Floats) -> Floats:
        """Return W[x, y] with rows that sum to one."""
        matrix = self.orbits.expand(entries.reshape(len(self.orbits.outputs), len(self.prior)))
        return np.asarray(matrix / matrix.sum(axis=1, keepdims=True))
