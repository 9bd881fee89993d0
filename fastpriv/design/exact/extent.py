"""Over which ratios a basis of rays stays optimal, proved by signs of polynomials in a."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from fastpriv.design.exact.flows import Certificate, tight
from fastpriv.design.exact.numbers import level_bounds, simplest
from fastpriv.design.exact.polynomials import (
    Poly,
    Root,
    evaluate,
    nearer,
    nearest_root,
    polynomial,
    refine,
    solve_polynomials,
)
from fastpriv.design.exact.program import Output, Program
from fastpriv.design.exact.simplex import Ray, Simplex
from fastpriv.design.exact.trees import tree_flows, without_cycles

#: How far beyond a root the next point is tried, relative to it.
_BEYOND = Fraction(1, 2**40)


@dataclass(frozen=True)
class End:
    """Where a pattern stops being optimal: a root, or the limit of what was looked at."""

    root: Root | None
    limit: Fraction | None

    @property
    def bounds(self) -> tuple[Fraction, Fraction]:
        """Rational numbers around the end."""
        if self.root is not None:
            return self.root.low, self.root.high
        if self.limit is None:
            raise ValueError("this end is at infinity")
        return self.limit, self.limit

    @property
    def endless(self) -> bool:
        """Whether the end is at infinity."""
        return self.root is None and self.limit is None

    @property
    def below(self) -> float:
        """The level of the end, rounded down."""
        return math.inf if self.endless else level_bounds(self.bounds[0])[0]

    @property
    def above(self) -> float:
        """The level of the end, rounded up."""
        return math.inf if self.endless else level_bounds(self.bounds[1])[1]


class Basis:
    """A basis of rays as functions of a: scales and multipliers over common denominators."""

    def __init__(self, program: Program, rays: Sequence[Ray]) -> None:
        self.program, self.rays = program, tuple(rays)

    @cached_property
    def _columns(self) -> list[list[list[int]]]:
        found = []
        for ray in self.rays:
            output, top = self.program.outputs[ray.output], max(ray.pattern)
            column = [[0] * (top + 1) for _ in range(self.program.size)]
            for t, count, k in zip(output.row, output.count, ray.pattern, strict=True):
                column[t][k] += count
            found.append(column)
        return found

    @cached_property
    def scales(self) -> tuple[list[Poly], Poly]:
        """Scales of the rays: numerators and their denominator."""
        right = [[total] for total in self.program.totals]
        return solve_polynomials(self._columns, right, transposed=False)

    @cached_property
    def multipliers(self) -> tuple[list[Poly], Poly]:
        """Multipliers of the totals: numerators and their denominator."""
        costs = []
        for ray in self.rays:
            output, cost = self.program.outputs[ray.output], [0] * (max(ray.pattern) + 1)
            terms = zip(output.row, output.count, output.distance, ray.pattern, strict=True)
            for t, count, d, k in terms:
                cost[k] += self.program.prices[t] * count * d
            costs.append(cost)
        return solve_polynomials(self._columns, costs, transposed=True)

    @cached_property
    def value(self) -> tuple[Poly, Poly]:
        """The least cost as a quotient of polynomials in lowest terms, leading sign positive."""
        numerators, denominator = self.multipliers
        top = polynomial([0])
        for total, q in zip(self.program.totals, numerators, strict=True):
            top = top + total * q
        unit = self.program.unit
        top, bottom = top * unit.numerator, denominator * unit.denominator
        common = top.gcd(bottom)
        if int(bottom.coeffs()[-1]) < 0:
            common = -common
        return top // common, bottom // common

    def certificates(self, at: Fraction) -> list[Certificate] | None:
        """Return the proof that the basis is optimal at a rational ratio, None if it is not."""
        point = Simplex(self.program, at, self.rays)
        if min(point.scales[0]) < 0:
            return None
        return point.proof()

    def live(self) -> frozenset[Ray]:
        """Return the rays whose scale is not identically zero."""
        return frozenset(r for r, q in zip(self.rays, self.scales[0], strict=True) if q != 0)

    def conditions(self, proof: Sequence[Certificate]) -> Iterator[Poly]:
        """Yield polynomials that must not change their sign for the proof to hold.

        Those that are identically zero hold everywhere.
        """
        numerators, denominator = self.scales
        yield denominator
        yield self.multipliers[1]
        yield from numerators
        for output, certificate in zip(self.program.outputs, proof, strict=True):
            yield from self._flows(output, certificate)

    def _flows(self, output: Output, proof: Certificate) -> Iterator[Poly]:
        """Yield the slack of an output and the flows on a spanning tree of its tight arcs."""
        numerators, denominator = self.multipliers
        prices = self.program.prices
        powers = [polynomial([0] * k + [1]) for k in range(max(proof.pattern) + 1)]
        g = [
            count * (denominator * (prices[t] * d) - numerators[t])
            for t, count, d in zip(output.row, output.count, output.distance, strict=True)
        ]
        w = [powers[k] for k in proof.pattern]
        cost = sum((a * b for a, b in zip(w, g, strict=True)), polynomial([0]))
        yield cost
        scale = sum(w, polynomial([0])) if cost != 0 else polynomial([1])
        net = [a * (b * scale - cost) for a, b in zip(w, g, strict=True)]
        used = without_cycles(proof.flow)
        yield from tree_flows(used, tight(output, proof.pattern), net)


def reach(basis: Basis, at: Fraction, limit: Fraction | None, up: bool) -> tuple[End, bool]:
    """Follow a basis that is optimal at ``at`` towards ``limit`` as far as it stays optimal.

    Where only the proof fails, another one for the same basis takes over: it must hold from just
    beyond the root back to that very root. Returns the end, and whether anything was proved.
    """
    proof = basis.certificates(at)
    if proof is None:
        return End(Root(polynomial([0, 1]), at, at), at), False
    while True:
        first = _first(basis, proof, at, limit, up)
        if first is None:
            return End(None, limit), True
        beyond = step_over(first, up)
        if limit is not None and (beyond >= limit if up else beyond <= limit):
            return End(first, None), True
        following = basis.certificates(beyond)
        if following is None:
            return End(first, None), True
        back = _first(basis, following, beyond, at, not up)
        if back is not None and not back.same(first) and not _past(back, first, up):
            return End(first, None), True
        proof, at = following, beyond


def _past(back: Root, first: Root, up: bool) -> bool:
    """Whether one root lies strictly behind another, seen in the direction of travel."""
    return back.high < first.low if up else back.low > first.high


def step_over(root: Root, up: bool) -> Fraction:
    """Return a short fraction just beyond a root."""
    near = root.high if up else root.low
    far = near * (1 + _BEYOND) if up else near * (1 - _BEYOND)
    low, high = sorted((near, far))
    third = (high - low) / 3
    return simplest(low + third, high - third)


def _first(
    basis: Basis, proof: Sequence[Certificate], at: Fraction, limit: Fraction | None, up: bool
) -> Root | None:
    """Return the nearest root of any condition between a point and a limit."""
    best: Root | None = None
    for q in basis.conditions(proof):
        if q == 0:
            continue
        if evaluate(q, at) == 0:
            return Root(q, at, at)
        bound = limit if best is None else (best.high if up else best.low)
        found = nearest_root(q, at, bound, up)
        if found is not None:
            best = found if best is None else nearer(best, found, up)
    return None if best is None else refine(best)


def extent(program: Program, rays: Sequence[Ray], at: Fraction) -> tuple[End, End]:
    """Return the ratios between which a basis that is optimal at ``at`` stays optimal."""
    basis = Basis(program, rays)
    low, _ = reach(basis, at, Fraction(1), up=False)
    high, _ = reach(basis, at, None, up=True)
    return low, high
