"""Over which ratios a basis of rays stays optimal, proved by signs of polynomials in a."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
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
from fastpriv.design.exact.program import Program
from fastpriv.design.exact.simplex import Ray, Simplex
from fastpriv.design.exact.trees import tree_flows, without_cycles

#: How far beyond a root the next point is tried, relative to it.
BEYOND = Fraction(1, 2**40)
#: Ratios at which a basis is remembered.
_KEPT = 16


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
        self._points: dict[Fraction, Simplex] = {}

    @cached_property
    def _columns(self) -> list[list[list[int]]]:
        columns = []
        for ray in self.rays:
            output, top = self.program.outputs[ray.output], max(ray.pattern)
            column = [[0] * (top + 1) for _ in range(self.program.size)]
            for t, count, k in zip(output.row, output.count, ray.pattern, strict=True):
                column[t][k] += count
            columns.append(column)
        return columns

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

    def _point(self, at: Fraction) -> Simplex:
        """Return the basis at one rational ratio; the last few are kept."""
        point = self._points.get(at)
        if point is None:
            point = self._points[at] = Simplex(self.program, at, self.rays)
            point.multiply()
            while len(self._points) > _KEPT:
                del self._points[next(iter(self._points))]
        return point

    def feasible(self, at: Fraction) -> bool:
        """Whether all scales are non-negative at a rational ratio."""
        return min(self._point(at).scales[0]) >= 0

    def certificate(self, at: Fraction, k: int) -> Certificate | None:
        """Return the proof that an output cannot improve at a rational ratio, None if it can."""
        answer = self._point(at).certificate(k)
        return answer if isinstance(answer, Certificate) else None

    def optimal(self, at: Fraction) -> bool:
        """Whether the basis is optimal at a rational ratio."""
        outputs = range(len(self.program.outputs))
        return self.feasible(at) and all(self.certificate(at, k) is not None for k in outputs)

    def live(self) -> frozenset[Ray]:
        """Return the rays whose scale is not identically zero."""
        return frozenset(r for r, q in zip(self.rays, self.scales[0], strict=True) if q != 0)

    def signs(self) -> list[Poly]:
        """Return polynomials that must not change their sign for the scales to be feasible."""
        return [self.scales[1], self.multipliers[1], *self.scales[0]]

    def flows(self, k: int, proof: Certificate) -> Iterator[Poly]:
        """Yield the slack of an output and the flows on a spanning tree of its tight arcs.

        None of them may change its sign for the proof to hold.
        """
        output = self.program.outputs[k]
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


def reach(basis: Basis, at: Fraction, limit: Fraction | None, up: bool) -> End | None:
    """Follow a basis that is optimal at ``at`` towards ``limit`` as far as it stays optimal.

    First as far as its scales stay feasible, then every output as far as it has a proof. Returns
    None where the basis is not optimal at ``at``.
    """
    if not basis.feasible(at):
        return None
    best = _first(basis.signs(), at, limit, up)
    for k in range(len(basis.program.outputs)):
        proof = basis.certificate(at, k)
        if proof is None:
            return None
        bound = limit if best is None else (best.high if up else best.low)
        end = _follow(basis, k, proof, at, bound, up)
        if end is not None:
            best = end if best is None else nearer(best, end, up)
    return End(None, limit) if best is None else End(refine(best), None)


def _follow(
    basis: Basis, k: int, proof: Certificate, at: Fraction, limit: Fraction | None, up: bool
) -> Root | None:
    """Return where an output has no proof any more, None if that is not before the limit.

    Where one flow fails, another one takes over if it holds from just beyond the root back to
    that very root.
    """
    while True:
        first = _first(basis.flows(k, proof), at, limit, up)
        if first is None:
            return None
        first = refine(first)
        beyond = step_over(first, up, limit)
        following = None if beyond is None else basis.certificate(beyond, k)
        if beyond is None or following is None:
            return first
        back = _first(basis.flows(k, following), beyond, at, not up)
        if back is not None and not back.same(first) and not _past(refine(back), first, up):
            return first
        proof, at = following, beyond


def _past(back: Root, first: Root, up: bool) -> bool:
    """Whether one root lies strictly behind another, seen in the direction of travel."""
    return back.high < first.low if up else back.low > first.high


def step_over(
    root: Root, up: bool, limit: Fraction | None, step: Fraction = BEYOND
) -> Fraction | None:
    """Return a short fraction just beyond a root and before a limit, None if there is no room."""
    near = root.high if up else root.low
    far = near * (1 + step) if up else near * (1 - step)
    if limit is not None:
        far = min(far, limit) if up else max(far, limit)
    low, high = (near, far) if up else (far, near)
    if low >= high:
        return None
    third = (high - low) / 3
    return simplest(low + third, high - third)


def _first(
    conditions: Iterable[Poly], at: Fraction, limit: Fraction | None, up: bool
) -> Root | None:
    """Return the nearest root of any condition between a point and a limit."""
    best: Root | None = None
    for q in conditions:
        if q == 0:  # holds everywhere
            continue
        if evaluate(q, at) == 0:
            return Root(q, at, at)
        bound = limit if best is None else (best.high if up else best.low)
        root = nearest_root(q, at, bound, up)
        if root is not None:
            best = root if best is None else nearer(best, root, up)
    return best


def extent(program: Program, rays: Sequence[Ray], at: Fraction) -> tuple[End, End]:
    """Return the ratios between which a basis that is optimal at ``at`` stays optimal."""
    basis = Basis(program, rays)
    low, high = reach(basis, at, Fraction(1), up=False), reach(basis, at, None, up=True)
    stay = End(None, at)
    return low or stay, high or stay
