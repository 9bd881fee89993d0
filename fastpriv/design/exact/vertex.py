"""One exact optimum of one program: its numbers, its pattern and its proof."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from fastpriv.design.exact.flows import weights
from fastpriv.design.exact.program import Output, Program
from fastpriv.design.exact.simplex import Optimum, Ray
from fastpriv.design.exact.trees import Arc, components
from fastpriv.errors import SolverFailure

#: One component of an output: the power of a at every class that belongs to it.
Component = dict[int, int]


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

    program: Program
    ratio: Fraction
    value: Fraction
    rays: tuple[Ray, ...]
    scales: tuple[Fraction, ...]
    totals: tuple[Fraction, ...]
    outputs: tuple[Multipliers, ...]

    @classmethod
    def of(cls, program: Program, ratio: Fraction, optimum: Optimum) -> Vertex:
        """Turn a simplex's whole numbers into fractions."""
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
        """The powers of a inside every component of every output that is ever used."""
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
            raise SolverFailure("verification failed: the outputs do not add up to one")
        for output, multipliers in zip(program.outputs, self.outputs, strict=True):
            self._check_dual(output, multipliers)
        bound = sum(m * b for m, b in zip(self.totals, program.totals, strict=True))
        if not self.value == cost * program.unit == bound * program.unit:
            raise SolverFailure("verification failed: value, cost and bound are not equal")

    def _check_cone(self, output: Output, entry: tuple[Fraction, ...]) -> None:
        if min(entry) < 0 or any(entry[u] > self.ratio * entry[t] for u, t in output.arcs):
            raise SolverFailure("verification failed: an output breaks the privacy constraint")

    def _check_dual(self, output: Output, multipliers: Multipliers) -> None:
        """Check that count (price d - multiplier) is a sum of constraints, none negative."""
        flows = multipliers.arcs
        if multipliers.slack < 0 or min(flows.values(), default=Fraction(0)) < 0:
            raise SolverFailure("verification failed: a multiplier is negative")
        if not flows.keys() <= set(output.arcs):
            raise SolverFailure("verification failed: a multiplier belongs to no constraint")
        left = [multipliers.slack] * len(output.row)
        for (u, t), amount in flows.items():
            left[u] -= amount
            left[t] += self.ratio * amount
        for u, (t, count, d) in enumerate(
            zip(output.row, output.count, output.distance, strict=True)
        ):
            if left[u] != count * (self.program.prices[t] * d - self.totals[t]):
                raise SolverFailure("verification failed: the multipliers do not balance")


def _components(
    output: Output, entry: tuple[Fraction, ...], ratio: Fraction
) -> tuple[Component, ...]:
    """Join the classes along tight constraints, and read off the powers from the least entry."""
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
