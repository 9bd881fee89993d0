"""The ratios over which a basis of rays stays optimal, proved by signs of polynomials in a.

Python-flint's ``fmpz_poly`` does the arithmetic. Roots are isolated by Descartes' rule of signs on
shrinking intervals, so every sign is exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import pairwise
from typing import Any

from fastpriv._core.extras import optional
from fastpriv.design.exact.arithmetic import (
    level_bounds,
    simplest,
    solve_system,
    solve_transposed,
)
from fastpriv.design.exact.program import IntegerProgram
from fastpriv.design.exact.simplex import (
    Certificate,
    Ray,
    Simplex,
    tight,
    tree_flows,
    without_cycles,
)
from fastpriv.errors import TooLarge, short

#: Relative width to which roots are refined: 2^-_FINE.
_FINE = 90
#: Most bits of a determinant of polynomials.
_MAX_BITS = 600_000
Poly = Any  # flint.fmpz_poly, which has no type hints


@cache
def _flint() -> Any:
    return optional("flint", "exact")


def polynomial(coefficients: Iterable[int]) -> Poly:
    """Return the polynomial with the given coefficients, the constant one first."""
    return _flint().fmpz_poly(list(coefficients))


def evaluate(q: Poly, at: Fraction) -> Fraction:
    """Return q(at)."""
    value, power = 0, 1
    coefficients = [int(c) for c in q.coeffs()]
    for c in reversed(coefficients):
        value = value * at.numerator + c * power
        power *= at.denominator
    return Fraction(value * at.denominator, power) if coefficients else Fraction(0)


@dataclass(frozen=True)
class Root:
    """The only root of ``poly`` between two rational numbers; ``poly`` has no double roots."""

    poly: Poly
    low: Fraction
    high: Fraction

    def same(self, other: Root) -> bool:
        """Whether two roots are the same number."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        if low > high:
            return False
        common = self.poly.gcd(other.poly)
        if low == high:
            return bool(evaluate(common, low) == 0)
        ends = evaluate(common, low), evaluate(common, high)
        return bool(ends[0] == 0 or ends[1] == 0 or ends[0] * ends[1] < 0)


def square_free(q: Poly) -> Poly:
    """Return a polynomial with the same roots, each of them once, none of them zero."""
    coefficients = q.coeffs()
    lowest = next(k for k, c in enumerate(coefficients) if c != 0)
    q = polynomial(map(int, coefficients[lowest:]))
    return q // q.gcd(q.derivative()) if q.degree() > 0 else q


def _changes(q: Poly) -> int:
    signs = [c > 0 for c in q.coeffs() if c != 0]
    return sum(a != b for a, b in pairwise(signs))


def _between(q: Poly, low: Fraction, high: Fraction | None) -> int:
    """Bound the number of roots in the open interval; exact if the bound is 0 or 1."""
    degree = q.degree()
    common = low.denominator * (high.denominator if high is not None else 1)
    start = low.numerator * (common // low.denominator)
    step = common
    if high is not None:
        step = high.numerator * (common // high.denominator) - start
    # common^degree q((start + step x) / common), then x in (0, 1) to (0, inf).
    scaled = polynomial(int(c) * common ** (degree - k) for k, c in enumerate(q.coeffs()))
    moved = scaled(polynomial([start, step]))
    if high is None:
        return _changes(moved)
    coefficients = [int(c) for c in moved.coeffs()]
    padded = coefficients + [0] * (degree + 1 - len(coefficients))
    turned = polynomial(reversed(padded))
    return _changes(turned(polynomial([1, 1])))


def nearest_root(q: Poly, at: Fraction, limit: Fraction | None, up: bool) -> Root | None:
    """Return the root nearest to ``at`` in the open interval towards ``limit``, or None.

    ``limit`` None is infinity. The polynomial must not be zero.
    """
    q = square_free(q)
    if q.degree() < 1:
        return None
    if limit is None:
        if not _between(q, at, None):
            return None
        limit = max(at, 1 + Fraction(_height(q))) + 1
    low, high = (at, limit) if up else (limit, at)
    return _isolate(q, low, high, up) if low < high else None


def _height(q: Poly) -> Fraction:
    """Cauchy's bound on the size of roots."""
    coefficients = [abs(int(c)) for c in q.coeffs()]
    return Fraction(max(coefficients[:-1], default=0), coefficients[-1]) + 1


def _isolate(q: Poly, low: Fraction, high: Fraction, up: bool) -> Root | None:
    """Bisect depth first, the half nearer to the start first."""
    waiting = [(low, high)]
    while waiting:
        low, high = waiting.pop()
        if low == high:
            return Root(q, low, high)
        count = _between(q, low, high)
        if count == 0:
            continue
        if count == 1:
            return Root(q, low, high)
        middle = _middle(low, high)
        halves = [(low, middle), (middle, high)]
        if evaluate(q, middle) == 0:
            halves.insert(1, (middle, middle))
        waiting += reversed(halves) if up else halves
    return None


def _middle(low: Fraction, high: Fraction) -> Fraction:
    """Return a short binary fraction near the middle; far apart, near the geometric mean."""
    if high > 16 * low > 0:
        return Fraction(2) ** ((_exponent(low) + _exponent(high)) // 2)
    unit = Fraction(2) ** (_exponent(high - low) - 4)
    return Fraction(math.floor((low + high) / 2 / unit)) * unit


def _exponent(value: Fraction) -> int:
    return value.numerator.bit_length() - value.denominator.bit_length()


def refine(root: Root, fine: int = _FINE) -> Root:
    """Halve the interval of a root until its relative width is 2^-fine, or the root is hit."""
    q, low, high = root.poly, root.low, root.high
    if low == high:
        return root
    # A bound of the interval may itself be a root; signs are read just inside.
    sign = _sign_after(q, low)
    while (high - low) * 2**fine > high:
        middle = _middle(low, high)
        value = evaluate(q, middle)
        if value == 0:
            return Root(q, middle, middle)
        if (value > 0) == sign:
            low = middle
        else:
            high = middle
    near = simplest(low, high)  # a rational root has few digits
    return Root(q, near, near) if evaluate(q, near) == 0 else Root(q, low, high)


def nearer(first: Root, second: Root, up: bool) -> Root:
    """Return the root that comes first in a direction; either, if they are equal."""
    if first.same(second):
        return first
    fine = 8
    while max(first.low, second.low) <= min(first.high, second.high):
        first, second, fine = refine(first, fine), refine(second, fine), 2 * fine
    return first if (first.high < second.low) == up else second


def _sign_after(q: Poly, at: Fraction) -> bool:
    """Return whether q is positive just to the right of a point."""
    value = evaluate(q, at)
    if value == 0:
        value = evaluate(q.derivative(), at)
    return value > 0


def solve_polynomials(
    columns: Sequence[Sequence[Sequence[int]]], right: Sequence[Sequence[int]], transposed: bool
) -> tuple[list[Poly], Poly]:
    """Solve M x = right for a matrix of polynomials, or M' x = right: numerators, denominator.

    Entries are lists of non-negative coefficients. The system is solved once, at a power of two
    beyond all coefficients of the determinants in Cramer's rule. Their values at 1 bound these
    coefficients. The coefficients of the result are its digits.
    """
    flint = _flint()
    size = len(columns)
    sums = [sum(sum(entry) for entry in column) for column in columns]
    extra = [sum(entry) for entry in right]
    if transposed:
        bound = math.prod(a + b for a, b in zip(sums, extra, strict=True))
    else:
        bound = math.prod(a + 1 for a in sums) * (sum(extra) + 1)
    digit = bound.bit_length() + 2
    degree = sum(max(len(entry) for entry in column) for column in columns)
    if degree * digit > _MAX_BITS:
        raise TooLarge(
            f"the polynomials of this pattern have about {short(degree * digit)} bits, and at most "
            f"{_MAX_BITS:,} are formed; use fewer databases."
        )
    at = 1 << digit
    values = [[_value(entry, at) for entry in column] for column in columns]
    b = [_value(entry, at) for entry in right]
    numerators, denominator = (solve_transposed if transposed else solve_system)(values, b)
    determinant = int(flint.fmpz_mat(size, size, [n for row in values for n in row]).det())
    factor = determinant // denominator
    common = _digits(determinant, digit)
    tops = [_digits(n * factor, digit) for n in numerators]
    shared = common
    for q in tops:
        if shared.degree() < 1 and abs(int(shared.content())) == 1:
            break
        shared = shared.gcd(q)
    if int(common.coeffs()[-1]) * int(shared.coeffs()[-1]) < 0:
        shared = -shared
    return [q // shared for q in tops], common // shared


def _value(entry: Sequence[int], at: int) -> int:
    value = 0
    for c in reversed(entry):
        value = value * at + c
    return value


def _digits(number: int, digit: int) -> Poly:
    """Return the coefficients of a polynomial, the digits of its value at 2^digit."""
    negative, number = number < 0, abs(number)
    half, mask = 1 << (digit - 1), (1 << digit) - 1
    coefficients = []
    while number:
        c = number & mask
        number >>= digit
        if c >= half:
            c -= 1 << digit
            number += 1
        coefficients.append(-c if negative else c)
    return polynomial(coefficients)


#: Relative distance beyond a root at which the next point is tried.
BEYOND = Fraction(1, 2**40)
#: Most ratios at which a basis is cached.
_KEPT = 16


@dataclass(frozen=True)
class End:
    """The ratio at which a pattern stops being optimal: a root, or the limit of the search."""

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

    def __init__(self, program: IntegerProgram, rays: Sequence[Ray]) -> None:
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
        """The minimum cost as a quotient of polynomials in lowest terms, leading sign positive."""
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

        The proof holds while none of them changes its sign.
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
    """Follow a basis that is optimal at ``at`` towards ``limit`` while it stays optimal.

    The scales must stay feasible, and every output must have a proof. Returns None if the basis is
    not optimal at ``at``.
    """
    if not basis.feasible(at):
        return None
    best = _first(basis.signs(), at, limit, up)
    for k in range(len(basis.program.outputs)):
        proof = basis.certificate(at, k)
        if proof is None:
            return None
        bound = limit if best is None else (best.high if up else best.low)
        end = _follow_proof(basis, k, proof, at, bound, up)
        if end is not None:
            best = end if best is None else nearer(best, end, up)
    return End(None, limit) if best is None else End(refine(best), None)


def _follow_proof(
    basis: Basis, k: int, proof: Certificate, at: Fraction, limit: Fraction | None, up: bool
) -> Root | None:
    """Return the end of an output's proof, None if that is not before the limit.

    If one flow fails, another one replaces it if it holds from just beyond the root back to the
    root itself.
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
    """Whether one root lies strictly behind another, in the direction of travel."""
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


def extent(program: IntegerProgram, rays: Sequence[Ray], at: Fraction) -> tuple[End, End]:
    """Return the ratios between which a basis that is optimal at ``at`` stays optimal."""
    basis = Basis(program, rays)
    low, high = reach(basis, at, Fraction(1), up=False), reach(basis, at, None, up=True)
    stay = End(None, at)
    return low or stay, high or stay
