"""Square systems of whole numbers, solved exactly."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from fastpriv._core.extras import optional

#: Largest system that plain fractions solve where python-flint is not installed.
_PLAIN = 8
#: From this size on, p-adic lifting is faster than elimination.
_LIFTED = 8
#: A prime below 2^31, so that products of residues fit 64 bits.
_PRIME = 2147483629

Columns = Sequence[Sequence[int]]


def solve(columns: Columns, right: Sequence[int]) -> tuple[list[int], int]:
    """Solve M x = right for the matrix with the given columns: numerators over one denominator.

    The denominator is positive. Cost O(T^3) operations on numbers of T times the digits of an
    entry, by python-flint; without it, plain fractions solve the smallest systems.
    """
    return _solve(list(zip(*columns, strict=True)), right)


def solve_transposed(columns: Columns, right: Sequence[int]) -> tuple[list[int], int]:
    """Solve M' x = right for the matrix with the given columns."""
    return _solve(columns, right)


def _solve(rows: Columns, right: Sequence[int]) -> tuple[list[int], int]:
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


def independent(columns: Columns) -> list[int]:
    """Return the places of the first independent columns among many, as many as there are rows.

    Elimination modulo a prime: what is independent there is independent. Columns whose
    determinant the prime divides are passed over, which costs a column and no correctness.
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
        # Clear this place in the later columns by multiples of this one.
        inverse = pow(int(table[j, place]), -1, _PRIME)
        factors = table[j + 1 :, place] * inverse % _PRIME
        table[j + 1 :] = (table[j + 1 :] - factors[:, None] * table[j]) % _PRIME
        if len(kept) == size:
            break
    return kept
