"""Polynomials with integer coefficients: roots between rational numbers, linear systems.

Python-flint's ``fmpz_poly`` does the arithmetic. Roots are told apart by Descartes' rule of signs
on ever smaller intervals, so that every statement about a sign is exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any

from fastpriv._core.extras import optional
from fastpriv.design.exact import linear
from fastpriv.design.exact.numbers import simplest
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
    """The only root of ``poly``, which has no double ones, between two rational numbers."""

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
    """Bound the number of roots in the open interval: exact where it says 0 or 1."""
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
    """Depth-first bisection, the half nearer to the start first."""
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
    # An end of the interval may itself be a root; signs are read just inside.
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
    near = simplest(low, high)  # a rational root is one of few digits
    return Root(q, near, near) if evaluate(q, near) == 0 else Root(q, low, high)


def nearer(first: Root, second: Root, up: bool) -> Root:
    """Return the one of two roots that comes first in a direction; either, if they are one."""
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
    beyond all coefficients of the determinants in Cramer's rule (which their values at 1 bound),
    and the coefficients are read off as digits.
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
            f"{_MAX_BITS:,} are formed; use fewer databases"
        )
    at = 1 << digit
    values = [[_value(entry, at) for entry in column] for column in columns]
    b = [_value(entry, at) for entry in right]
    numerators, denominator = (linear.solve_transposed if transposed else linear.solve)(values, b)
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
    """Read the coefficients of a polynomial off its value at 2^digit."""
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
