"""Which engine solves a privacy program: HiGHS while it is small, an interior point beyond."""

from __future__ import annotations

import math

import numpy as np

from fastpriv.design import interior, vertex
from fastpriv.design.interior import Iterate, Program
from fastpriv.errors import SolverFailure

SOLVERS = ("auto", "interior", "highs")
#: Up to so many pairs of neighbouring classes HiGHS's simplex method is the faster engine.
_SMALL = 2_000
#: Up to so many pairs HiGHS finishes what rounding kept the interior-point method from.
_FINISHED = 60_000
#: Relative gap below which rounding often does so.
_CLOSE = 1e-7


def solve(program: Program, gap: float, deadline: float, solver: str) -> tuple[Iterate, str]:
    """Return the best point and bound, and the name of the engine that reached them.

    Parameters
    ----------
    program : Program
        What to minimise.
    gap : float
        Relative gap to reach.
    deadline : float
        Time of the monotonic clock at which to stop.
    solver : {"auto", "interior", "highs"}
        "auto" takes HiGHS for small programs and for small gaps. For larger ones it takes the
        interior-point method, and HiGHS again where that ends above the gap.
    """
    pairs = len(program.source)
    if not pairs:  # nothing has to look alike
        return _cheapest(program), "interior" if solver == "interior" else "highs"
    suits = pairs <= (_SMALL if gap >= _CLOSE else _FINISHED)
    if solver == "highs" or (solver == "auto" and suits):
        try:
            return vertex.solve(program, gap, deadline), "highs"
        except SolverFailure:
            if solver == "highs":
                raise
    reached = interior.solve(program, gap, deadline)
    unfinished = not suits and pairs <= _FINISHED and _gap(program, reached) > gap
    if solver == "auto" and unfinished:
        try:
            finished = vertex.solve(program, gap, deadline)
        except SolverFailure:
            return reached, "interior"
        if _gap(program, finished) < _gap(program, reached):
            return finished, "highs"
    return reached, "interior"


def _cheapest(program: Program) -> Iterate:
    """Fill every equation with its cheapest class: the optimum where no pair is bounded."""
    order = np.lexsort((program.cost, program.row))
    first = order[np.searchsorted(program.row[order], np.arange(len(program.rhs)))]
    v = np.zeros(len(program.cost))
    v[first] = program.rhs
    return Iterate(v, program.bound(np.zeros(0)))


def _gap(program: Program, point: Iterate) -> float:
    value = float(program.cost @ point.v)
    return (value - point.bound) / value if value > 0.0 else math.inf
