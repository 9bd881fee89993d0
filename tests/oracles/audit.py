"""What a witness says, read off a full matrix entry by entry."""

from __future__ import annotations

import math
from itertools import product


def index(values, sizes):
    """Number of a database in C order."""
    found = 0
    for value, size in zip(values, sizes, strict=True):
        found = found * size + int(value)
    return found


def log_ratio(top, bottom):
    """ln(top/bottom) of two chances, in 60 digits; None for 0/0."""
    from mpmath import mp, mpf

    with mp.workdps(60):
        top, bottom = mpf(top), mpf(bottom)
        if top == 0:
            return None
        return math.inf if bottom == 0 else float(mp.log(top / bottom))


def differ(x, other):
    """Rows in which two databases differ."""
    return [i for i, (a, b) in enumerate(zip(x, other, strict=True)) if a != b]


def leakage(matrix, pmf, y):
    """ln max_x W[x, y]/p_Y(y) over databases that can occur."""
    from mpmath import mp, mpf

    with mp.workdps(60):
        law = mp.fsum(mpf(p) * mpf(row[y]) for p, row in zip(pmf, matrix, strict=True))
        best = max(mpf(row[y]) for p, row in zip(pmf, matrix, strict=True) if p > 0)
        return float(mp.log(best / law)) if law > 0 else 0.0


def ruling_out(matrix):
    """Outputs that some database can cause and another cannot."""
    columns = range(len(matrix[0]))
    return [y for y in columns if {row[y] > 0 for row in matrix} == {True, False}]


def through(joint, matrix):
    """The joint law of S and Y when Y is made from X."""
    values, inputs, outputs = len(joint), len(matrix), len(matrix[0])
    return [
        [sum(joint[s][x] * matrix[x][y] for x in range(inputs)) for y in range(outputs)]
        for s in range(values)
    ]


def information(joint):
    """I(S; Y) of a joint law."""
    rows, columns = range(len(joint)), range(len(joint[0]))
    first = [math.fsum(joint[s]) for s in rows]
    second = [math.fsum(joint[s][y] for s in rows) for y in columns]
    return math.fsum(
        joint[s][y] * math.log(joint[s][y] / (first[s] * second[y]))
        for s, y in product(rows, columns)
        if joint[s][y] > 0
    )
