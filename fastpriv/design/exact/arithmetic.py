"""Rational numbers near e^epsilon, rounded in one direction, and integer linear systems."""

from __future__ import annotations

import decimal
import importlib.util
import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction

import numpy as np

from fastpriv._core.extras import optional
from fastpriv.errors import TooLarge

#: Relative distance of the ratio from e^epsilon, times epsilon if that is below one.
_DISTANCE = Fraction(1, 10**15)
#: Digits of logarithms and exponentials beyond the digits that the argument needs.
_DIGITS = 60
#: Largest level: its e^epsilon has some 4,300 digits.
_MAX_LEVEL = 1e4


def ratio_below(epsilon: float, least: Fraction = Fraction(0)) -> Fraction:
    """Return the fraction of smallest denominator just below e^epsilon, not below ``least``.

    Its distance from e^epsilon is at most 1e-15 min(1, epsilon) e^epsilon. Its logarithm therefore
    has the relative accuracy of a float even for tiny epsilon. ``least`` must be at most e^epsilon;
    :func:`is_at_most_exp` decides that.
    """
    if epsilon == 0.0:
        return Fraction(1)
    low, high = exp_bounds(epsilon)
    inside = high * (1 - _DISTANCE * min(Fraction(1), Fraction(epsilon)))
    return simplest(max(inside, least), max(low, least))


def ratio_above(epsilon: float) -> Fraction:
    """Return the fraction of smallest denominator just above e^epsilon, as far as the one below."""
    if epsilon == 0.0:
        return Fraction(1)
    low, high = exp_bounds(epsilon)
    return simplest(high, low * (1 + _DISTANCE * min(Fraction(1), Fraction(epsilon))))


def is_at_most_exp(value: Fraction, epsilon: float) -> bool:
    """Decide whether a rational number is at most e^epsilon.

    e^epsilon is irrational unless epsilon is 0, so enough digits decide every case.
    """
    if epsilon == 0.0:
        return value <= 1
    digits = _DIGITS
    while True:
        low, high = exp_bounds(epsilon, digits)
        if value <= low or value > high:
            return value <= low
        digits *= 2


def exp_bounds(epsilon: float, digits: int = _DIGITS) -> tuple[Fraction, Fraction]:
    """Return rational numbers below and above e^epsilon, from the correctly rounded decimal."""
    if epsilon > _MAX_LEVEL:
        raise TooLarge(
            f"e^{epsilon:g} is a fraction of {1.4427 * epsilon:.3g} bits, too many for exact "
            f"programs; use an epsilon of at most {_MAX_LEVEL:g}."
        )
    small = max(0, -math.frexp(epsilon)[1])
    with decimal.localcontext() as context:
        context.prec = digits + small // 3
        context.Emax, context.Emin = decimal.MAX_EMAX, decimal.MIN_EMIN
        value = Decimal(epsilon).exp()
        return Fraction(value.next_minus()), Fraction(value.next_plus())


def level_bounds(value: Fraction) -> tuple[float, float]:
    """Return the floats just below and above ln(value), for a value of at least one."""
    if value == 1:
        return 0.0, 0.0
    with decimal.localcontext() as context:
        excess = max(0, value.denominator.bit_length() - (value - 1).numerator.bit_length())
        context.prec = _DIGITS + excess // 3
        context.Emax, context.Emin = decimal.MAX_EMAX, decimal.MIN_EMIN
        quotient = Decimal(value.numerator) / Decimal(value.denominator)
        low = quotient.next_minus().ln().next_minus()
        high = quotient.next_plus().ln().next_plus()
        below, above = float(low), float(high)
        if Decimal(below) > low:
            below = math.nextafter(below, -math.inf)
        if Decimal(above) < high:
            above = math.nextafter(above, math.inf)
    return max(below, 0.0), above


def simplest(low: Fraction, high: Fraction) -> Fraction:
    """Return the fraction of smallest denominator in ``[low, high]``, 0 < low <= high.

    Descent in the Stern-Brocot tree: the common part of the continued fractions of both bounds.
    """
    whole = low.numerator // low.denominator
    if whole == low:
        return Fraction(whole)
    if whole + 1 <= high:
        return Fraction(whole + 1)
    return whole + 1 / simplest(1 / (high - whole), 1 / (low - whole))


def whole_numbers(values: Iterable[float]) -> list[int]:
    """Return the floats times the smallest power of two that makes all of them integers."""
    exact = [Fraction(value) for value in values]
    unit = max(value.denominator for value in exact)
    return [int(value * unit) for value in exact]


#: Largest system that plain fractions solve if python-flint is not installed.
_PLAIN = 8
#: From this size on, p-adic lifting is faster than elimination.
_LIFTED = 8
#: A prime below 2^31, so that products of residues fit 64 bits.
_PRIME = 2147483629
Columns = Sequence[Sequence[int]]


def solve_system(columns: Columns, right: Sequence[int]) -> tuple[list[int], int]:
    """Solve M x = right for the matrix with the given columns: numerators and one denominator.

    The denominator is positive. Cost O(T^3) operations on numbers of T times the digits of an
    entry, by python-flint. Without it, plain fractions solve the smallest systems.
    """
    return _solve_rows(list(zip(*columns, strict=True)), right)


def solve_transposed(columns: Columns, right: Sequence[int]) -> tuple[list[int], int]:
    """Solve M' x = right for the matrix with the given columns."""
    return _solve_rows(columns, right)


def _solve_rows(rows: Columns, right: Sequence[int]) -> tuple[list[int], int]:
    size = len(rows)
    if size <= _PLAIN and importlib.util.find_spec("flint") is None:
        return _eliminate(rows, right)
    flint = optional("flint", "exact")
    matrix = flint.fmpq_mat(size, size, [n for row in rows for n in row])
    method = "dixon" if size >= _LIFTED else "fflu"
    solution = matrix.solve(flint.fmpq_mat(size, 1, list(right)), algorithm=method)
    numerators, denominator = solution.numer_denom()
    return [int(n) for n in numerators.entries()], int(denominator)


def _eliminate(rows: Columns, right: Sequence[int]) -> tuple[list[int], int]:
    """Gauss-Jordan elimination in fractions."""
    size = len(rows)
    table = [[*map(Fraction, row), Fraction(r)] for row, r in zip(rows, right, strict=True)]
    for j in range(size):
        pivot = next(i for i in range(j, size) if table[i][j])
        table[j], table[pivot] = table[pivot], table[j]
        lead = table[j][j]
        table[j] = [n / lead for n in table[j]]
        for i in range(size):
            if i != j and (factor := table[i][j]):
                table[i] = [n - factor * p for n, p in zip(table[i], table[j], strict=True)]
    return over_one([row[-1] for row in table])


def over_one(values: Sequence[Fraction]) -> tuple[list[int], int]:
    """Write fractions over one positive denominator."""
    common = math.lcm(*(v.denominator for v in values))
    return [int(v * common) for v in values], common


def independent_columns(columns: Columns) -> list[int]:
    """Return the indices of the first independent columns, as many as there are rows.

    Elimination modulo a prime: columns that are independent modulo the prime are independent.
    Columns whose determinant the prime divides are skipped, which is still correct.
    """
    size = len(columns[0])
    table = np.array([[n % _PRIME for n in column] for column in columns], dtype=np.int64)
    kept: list[int] = []
    used = np.zeros(size, dtype=bool)
    for j in range(len(table)):
        open_places = np.flatnonzero((table[j] != 0) & ~used)
        if not len(open_places):
            continue
        place = int(open_places[0])
        used[place] = True
        kept.append(j)
        # Eliminate this entry in the later columns by multiples of this one.
        inverse = pow(int(table[j, place]), -1, _PRIME)
        factors = table[j + 1 :, place] * inverse % _PRIME
        table[j + 1 :] = (table[j + 1 :] - factors[:, None] * table[j]) % _PRIME
        if len(kept) == size:
            break
    return kept
