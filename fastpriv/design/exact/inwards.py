"""Floats for an exact mechanism, rounded so that their own level is within what was asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats
from fastpriv.design.exact.numbers import ratio_below
from fastpriv.design.exact.program import Program
from fastpriv.design.exact.simplex import Simplex
from fastpriv.design.exact.vertex import Vertex

#: p(y|x) of every class, for every type of output.
Entries = list[Floats]


def rounded(
    vertices: Sequence[Vertex], epsilon: float, n: int, holds: Callable[[list[Entries]], bool]
) -> list[Entries] | None:
    """Return floats of the mechanisms for which ``holds``, None where there are none.

    First the same pattern at a slightly smaller ratio, which costs next to nothing. Where that
    has no such pattern, a trace of a mechanism that is constant in x, with every output as likely
    as it ever is: that loosens every tight ratio but those that the prior itself has, for which
    rows are tilted within the rounding of their sums. The trace is doubled until it is enough.
    """
    margin = (64 + 8 * min(n, 64) + 8 * epsilon) * ULP
    if epsilon > 2.0 * margin:
        inside = [_shrunk(vertex, epsilon - margin) for vertex in vertices]
        moved = [entries for entries in inside if entries is not None]
        if len(moved) == len(inside) and holds(moved):
            return moved
    plain = [[np.array(list(map(float, column))) for column in v.chances] for v in vertices]
    trace = 16 * ULP / -math.expm1(-max(epsilon, ULP))
    while trace < 1.0:
        mixed = [
            _mixed(vertex.program, entries, trace, epsilon)
            for vertex, entries in zip(vertices, plain, strict=True)
        ]
        if holds(mixed):
            return mixed
        trace *= 2.0
    return None


def _shrunk(vertex: Vertex, epsilon: float) -> Entries | None:
    """Return the same rays at a smaller ratio, None where one of them would be negative."""
    if epsilon <= 0.0:
        return None
    ratio = ratio_below(epsilon)
    basis = Simplex(vertex.program, ratio, vertex.rays)
    numerators, denominator = basis.scales
    if min(numerators) < 0:
        return None
    scales = tuple(
        Fraction(n * ratio.denominator ** max(ray.pattern), denominator)
        for n, ray in zip(numerators, vertex.rays, strict=True)
    )
    moved = Vertex(vertex.program, ratio, Fraction(0), vertex.rays, scales, (), ())
    entries = [np.array(list(map(float, column))) for column in moved.chances]
    # A chance below the doubles would leave a zero beside a positive number.
    if any(column.max() > 0.0 and column.min() < 2.0**-1020 for column in entries):
        return None
    return entries


def _mixed(program: Program, entries: Entries, trace: float, epsilon: float) -> Entries:
    sizes = [program.types.size(k) for k in range(len(program.outputs))]
    tops = [float(column.max()) for column in entries]
    total = math.fsum(size * top for size, top in zip(sizes, tops, strict=True))
    share = min(1.0, trace * total)
    tilts = _tilts(program, epsilon)
    return [
        ((1.0 - share) * column + share * (top / total)) * tilts[list(output.row)]
        for column, top, output in zip(entries, tops, program.outputs, strict=True)
    ]


def _tilts(program: Program, epsilon: float) -> Floats:
    """Return factors of rows next to one, smaller for likelier databases.

    Two rows whose probabilities have the ratio e^epsilon get factors 8 + 4 epsilon ulp apart.
    """
    if not program.joint:
        return np.ones(program.size)
    logs = np.array([math.log(total) for total in program.totals])
    middle = 0.5 * (logs.max() + logs.min())
    return np.asarray(1.0 + (8 + 4 * epsilon) * ULP * (middle - logs) / max(epsilon, ULP))
