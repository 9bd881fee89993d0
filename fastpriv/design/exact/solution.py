"""The result of an exact program: its numbers, its pattern and its proof."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.validation import Ints
from fastpriv.channels import AbstractChannel
from fastpriv.design.exact.arithmetic import is_at_most_exp, ratio_above
from fastpriv.design.exact.pieces import extent
from fastpriv.design.exact.program import IntegerProgram, Output, programs_of
from fastpriv.design.exact.simplex import Arc, OptimalBasis, Ray, Simplex, components, weights
from fastpriv.errors import SolverFailure
from fastpriv.priors import Distribution, Product
from fastpriv.spaces import Space

__all__ = ["ExactSolution"]

#: One component of an output: the power of a at every class that belongs to it.
Component = dict[int, int]


def _failed(what: str) -> SolverFailure:
    """Return the error for a solution that is not what it claims to be."""
    return SolverFailure(
        f"verification failed: {what}. Solve it again; it was changed or is wrong."
    )


@dataclass(frozen=True)
class Multipliers:
    """Multipliers of one output: of its neighbour constraints, and of v >= 0 (one for all)."""

    arcs: dict[Arc, Fraction]
    slack: Fraction


@dataclass(frozen=True, eq=False)
class Vertex:
    """An optimal basis: rays with their scales, and multipliers that prove it optimal.

    ``totals`` are the multipliers of the equations. All numbers are in the program's own units.
    """

    program: IntegerProgram
    ratio: Fraction
    value: Fraction
    rays: tuple[Ray, ...]
    scales: tuple[Fraction, ...]
    totals: tuple[Fraction, ...]
    outputs: tuple[Multipliers, ...]

    @classmethod
    def of(cls, program: IntegerProgram, ratio: Fraction, optimum: OptimalBasis) -> Vertex:
        """Convert a simplex's integers to fractions."""
        power, root = ratio.numerator, ratio.denominator
        scales = tuple(
            Fraction(n * root ** max(ray.pattern), optimum.scales[1])
            for ray, n in zip(optimum.rays, optimum.scales[0], strict=True)
        )
        numerators, denominator = optimum.multipliers
        totals = tuple(Fraction(n, denominator) for n in numerators)
        outputs = []
        for proof in optimum.certificates:
            w = weights(proof.pattern, power, root)
            scale = proof.scale * denominator
            arcs = {(u, t): Fraction(amount, scale * w[u]) for (u, t), amount in proof.flow.items()}
            outputs.append(Multipliers(arcs, Fraction(proof.slack, scale)))
        value = sum(map(Fraction.__mul__, totals, map(Fraction, program.totals)), Fraction(0))
        value *= program.unit
        return cls(program, ratio, value, optimum.rays, scales, totals, tuple(outputs))

    @cached_property
    def entries(self) -> tuple[tuple[Fraction, ...], ...]:
        """The vector v of every output."""
        entries = [[Fraction(0)] * len(output.row) for output in self.program.outputs]
        powers = [self.ratio**k for k in range(self.program.diameter + 1)]
        for ray, scale in zip(self.rays, self.scales, strict=True):
            if scale:
                for u, k in enumerate(ray.pattern):
                    entries[ray.output][u] += scale * powers[k]
        return tuple(map(tuple, entries))

    @cached_property
    def chances(self) -> tuple[tuple[Fraction, ...], ...]:
        """p(y|x) of every class: its entry over the total of its type."""
        totals = self.program.totals
        return tuple(
            tuple(v / totals[t] for v, t in zip(entry, output.row, strict=True))
            for entry, output in zip(self.entries, self.program.outputs, strict=True)
        )

    @cached_property
    def components(self) -> tuple[tuple[Component, ...], ...]:
        """The powers of a inside every component of every output in use."""
        return tuple(
            _components(output, entry, self.ratio)
            for output, entry in zip(self.program.outputs, self.entries, strict=True)
        )

    def verify(self) -> None:
        """Prove feasibility, dual feasibility and equality again, from the stored fractions."""
        program = self.program
        sums, cost = [Fraction(0)] * program.size, Fraction(0)
        for output, entry in zip(program.outputs, self.entries, strict=True):
            self._check_cone(output, entry)
            for t, count, d, v in zip(
                output.row, output.count, output.distance, entry, strict=True
            ):
                sums[t] += count * v
                cost += program.prices[t] * count * d * v
        if sums != list(program.totals):
            raise _failed("the outputs do not add up to one")
        for output, multipliers in zip(program.outputs, self.outputs, strict=True):
            self._check_dual(output, multipliers)
        bound = sum(m * b for m, b in zip(self.totals, program.totals, strict=True))
        if not self.value == cost * program.unit == bound * program.unit:
            raise _failed("value, cost and bound are not equal")

    def _check_cone(self, output: Output, entry: tuple[Fraction, ...]) -> None:
        if min(entry) < 0 or any(entry[u] > self.ratio * entry[t] for u, t in output.arcs):
            raise _failed("an output breaks the privacy constraint")

    def _check_dual(self, output: Output, multipliers: Multipliers) -> None:
        """Check that count (price d - multiplier) is a sum of constraints, none negative."""
        flows = multipliers.arcs
        if multipliers.slack < 0 or min(flows.values(), default=Fraction(0)) < 0:
            raise _failed("a multiplier is negative")
        if not flows.keys() <= set(output.arcs):
            raise _failed("a multiplier belongs to no constraint")
        left = [multipliers.slack] * len(output.row)
        for (u, t), amount in flows.items():
            left[u] -= amount
            left[t] += self.ratio * amount
        for u, (t, count, d) in enumerate(
            zip(output.row, output.count, output.distance, strict=True)
        ):
            if left[u] != count * (self.program.prices[t] * d - self.totals[t]):
                raise _failed("the multipliers do not balance")


def _components(
    output: Output, entry: tuple[Fraction, ...], ratio: Fraction
) -> tuple[Component, ...]:
    """Join the classes along tight constraints; return powers from the smallest entry."""
    if not entry[0]:
        return ()
    tight = [(u, t) for u, t in output.arcs if entry[u] == ratio * entry[t]]
    groups: dict[int, list[int]] = {}
    for u, c in enumerate(components(len(entry), tight)):
        groups.setdefault(c, []).append(u)
    made = []
    for members in groups.values():
        least = min(entry[u] for u in members)
        made.append({u: _power(entry[u] / least, ratio) for u in members})
    return tuple(made)


def _power(quotient: Fraction, ratio: Fraction) -> int:
    k = 0
    while quotient > 1 and ratio > 1:
        quotient /= ratio
        k += 1
    return k


def total_value(prior: Distribution, vertices: Sequence[Vertex]) -> Fraction:
    """Return the value of a solution: the sum over the records of a product."""
    counts = prior.multiplicities().tolist() if isinstance(prior, Product) else [1]
    return sum((c * v.value for c, v in zip(counts, vertices, strict=True)), Fraction(0))


#: Most entries of a matrix of fractions.
_MAX_FRACTIONS = 1 << 18


@dataclass(frozen=True, eq=False, repr=False)
class ExactSolution:
    """An optimum in rational arithmetic, with its proof.

    The prior is the exact values of its floats divided by their sum (for a Markov chain, each of
    its distributions). e^epsilon is replaced by the rational number ``ratio``. At that ratio all
    numbers are exact.

    Attributes
    ----------
    prior : Distribution
        The given prior.
    epsilon : float
        The requested level, in nats.
    notion : {"dp", "identifiability"}
        The program of the optimum.
    ratio : Fraction
        The rational number used for e^epsilon: at most e^epsilon, with a relative distance of at
        most 1e-15 min(1, epsilon).
    value : Fraction
        The minimum expected number of changed records of any mechanism whose ratios are at most
        ``ratio``.
    channel : channel
        A mechanism in floats, rounded inwards: its measured level is at most epsilon.
    method : {"rows", "types", "dense"}
        One program per distinct record, one on types, or one over databases.
    vertices : tuple of Vertex
        The optimal vertex of every program that was solved, with its multipliers.

    Notes
    -----
    The documentation's page on exact optima explains why a vertex is a pattern of powers, and why
    the stored numbers prove it optimal.

    Examples
    --------
    >>> import fastpriv as fp
    >>> best = fp.solve_pd_dp(fp.Dense([0.5, 0.25, 0.125, 0.125], [2, 2]), 0.5, exact=True)
    >>> best
    ExactSolution(value=0.6144949955, ratio=54516085/33065677, notion='dp', method='dense')
    >>> best.verify(), sum(best.fractions()[0])
    (True, Fraction(1, 1))
    """

    prior: Distribution
    epsilon: float
    notion: str
    ratio: Fraction
    value: Fraction
    channel: AbstractChannel
    method: str
    vertices: tuple[Vertex, ...]

    @cached_property
    def powers(self) -> tuple[tuple[Mapping[object, int], ...], ...]:
        """The integer powers of e^epsilon inside each component of every output.

        Every output has a tuple of components, empty if the output never occurs. Within a
        component, p(y|x) (for identifiability p(x, y)) is one scale times e^(epsilon k). The
        component maps x to k, and the smallest k is 0. Outputs and inputs are numbered databases
        (method "dense"), or values of a record, for each distinct record in turn ("rows"). For
        "types", outputs are types in the order of their counts. Inputs are then given by how many
        records hold v in the output and s in the input, ``((v=0: s=0, 1, ...), (v=1: ...), ...)``.
        """
        return tuple(
            tuple(
                {name: k for u, k in component.items() for name in names[u]}
                for component in vertex.components[kind]
            )
            for vertex in self.vertices
            for kind, names in self._named_outputs(vertex)
        )

    def _named_outputs(self, vertex: Vertex) -> list[tuple[int, dict[int, list[object]]]]:
        """Return the type of every output, and the names of the inputs in each class."""
        program = vertex.program
        if self.method == "types":
            m = program.types.blocks.sizes[0]
            return [
                (
                    k,
                    {
                        u: [tuple(map(tuple, classes.pair_counts(u, m).tolist()))]
                        for u in range(len(classes.row))
                    },
                )
                for k, classes in enumerate(program.classes)
            ]
        named = []
        for kind, numbers in _placed(vertex):
            names: dict[int, list[object]] = {u: [] for u in range(len(program.classes[kind].row))}
            for x, u in enumerate(numbers.tolist()):
                names[u].append(x)
            named.append((kind, names))
        return named

    def fractions(self) -> list[list[Fraction]]:
        """Return p(y|x) as exact fractions, a list for every database x.

        Rows sum to exactly one. The entries of two neighbours (for identifiability, times the
        prior) have a ratio of at most ``ratio``. Cost N^2 fractions; raises ``TooLarge`` if these
        are too many.
        """
        size = self.prior.space.size
        instead = "read the vertices, or the floats of .channel"
        check.fits(size**2, "the matrix of fractions", instead, _MAX_FRACTIONS)
        tables = [_table(vertex) for vertex in self.vertices]
        if not isinstance(self.prior, Product):
            return tables[0]
        matrix = [[Fraction(1)]]
        for k in self.prior.assignment.tolist():
            matrix = [[a * b for a in row for b in part] for row in matrix for part in tables[k]]
        return matrix

    @cached_property
    def interval(self) -> tuple[float, float]:
        """Levels (low, high) between which the pattern stays optimal, rounded inwards.

        The pattern is the basis of rays: the powers of each output. Its scales and multipliers are
        rational functions of e^epsilon, and each bound is a root of one of them. Needs
        python-flint. Raises ``TooLarge`` if the polynomials would be too long.
        """
        if self.epsilon == 0.0:
            return 0.0, 0.0
        ends = [extent(vertex.program, vertex.rays, self.ratio) for vertex in self.vertices]
        low = max(low.above for low, _ in ends)
        high = min(high.below for _, high in ends)
        return min(low, self.epsilon), max(high, self.epsilon)

    @cached_property
    def bound(self) -> Fraction:
        """The optimum at a rational number just above e^epsilon.

        e^epsilon itself is irrational. The optimum at e^epsilon is between ``bound`` and ``value``,
        some 1e-15 apart.
        """
        ratio = ratio_above(self.epsilon)
        if ratio == self.ratio:
            return self.value
        # The optimal rays at one ratio are a good start at the other.
        vertices = [
            Vertex.of(v.program, ratio, Simplex(v.program, ratio, v.rays).optimum())
            for v in self.vertices
        ]
        return total_value(self.prior, vertices)

    def verify(self) -> bool:
        """Prove the optimum again in exact arithmetic, from the stored numbers alone.

        Checks that the mechanism and the multipliers are feasible and have the same value. Returns
        True, or raises ``SolverFailure``.
        """
        _, programs = programs_of(self.prior, self.notion == "identifiability")
        if not is_at_most_exp(self.ratio, self.epsilon):
            raise _failed("the ratio is above e^epsilon")
        if len(programs) != len(self.vertices):
            raise _failed("there is not one vertex for every program")
        for program, vertex in zip(programs, self.vertices, strict=True):
            if vertex.ratio != self.ratio:
                raise _failed("a vertex has another ratio")
            replace(vertex, program=program).verify()
        if total_value(self.prior, self.vertices) != self.value:
            raise _failed("the value is not that of the vertices")
        return True

    def __repr__(self) -> str:
        ratio = str(self.ratio)
        ratio = ratio if len(ratio) <= 40 else f"{float(self.ratio):.6g}"
        return (
            f"ExactSolution(value={float(self.value):.10g}, ratio={ratio}, "
            f"notion={self.notion!r}, method={self.method!r})"
        )


def _placed(vertex: Vertex) -> list[tuple[int, Ints]]:
    """Return, for every output y in order, its type and the class of every database."""
    types = vertex.program.types
    sizes = np.empty(sum(map(len, types.blocks.rows)), dtype=np.int64)
    for rows, m in zip(types.blocks.rows, types.blocks.sizes, strict=True):
        sizes[list(rows)] = m
    space = Space(sizes)
    x = space.rows(np.arange(space.size))
    kinds = types.number(x).tolist()
    return [
        (kind, vertex.program.classes[kind].number(x, x[y], types.blocks))
        for y, kind in enumerate(kinds)
    ]


def _table(vertex: Vertex) -> list[list[Fraction]]:
    """Return p(y|x) of every pair of databases."""
    columns = [
        [vertex.chances[kind][u] for u in numbers.tolist()] for kind, numbers in _placed(vertex)
    ]
    return [list(row) for row in zip(*columns, strict=True)]
