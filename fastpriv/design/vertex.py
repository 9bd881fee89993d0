"""The privacy programs by HiGHS: the same program as the interior-point method's, at a vertex.

Variables are scaled so that every equation sums to one, and pairs so that their two coefficients
are each other's inverses. HiGHS stops at an absolute dual tolerance. Where that leaves a certified
gap that is too wide, costs are scaled up until the optimum is of order one, and the simplex method
goes on from its last basis.
"""

from __future__ import annotations

import time

import numpy as np

from fastpriv._core.highs import Model, Rows
from fastpriv._core.validation import Floats
from fastpriv.design.interior import Iterate, Program
from fastpriv.errors import SolverFailure

#: What every scaled equation sums to: HiGHS's primal tolerance is 1e-13 of it.
_TOTAL = 1024.0
#: Scaled optimum of each round: tolerances are 1e-10 of the largest cost, then of the optimum.
_OPTIMA = (1.0, 1e3)
#: Up to so many pairs the simplex method is faster than HiGHS's interior-point method.
_SIMPLEX = 20_000
#: Least unit of the prices, relative to the largest cost.
_RANGE = 1e-200


def solve(program: Program, gap: float, deadline: float) -> Iterate:
    """Minimise to a vertex; raise ``SolverFailure`` where HiGHS stops without one.

    The gap says when the certificate is good enough. HiGHS itself always goes to its tolerance.
    """
    p, size = program, program.rhs[program.row] / _TOTAL
    cost = p.cost * size
    unit = float(cost.max())
    rows, scale = _rows(p, size)
    model = Model(cost / unit, np.zeros(len(cost)), rows)
    method = "simplex" if len(p.source) <= _SIMPLEX else "ipm"
    best: Iterate | None = None
    for optimum in (None, *_OPTIMA):
        if optimum is not None and best is not None:
            value = float(p.cost @ best.v)
            if value - best.bound <= gap * value or value <= 0.0:
                break
            if value / optimum < _RANGE * float(cost.max()):
                break  # prices would leave the range of a double
            unit = value / optimum
            model.reprice(cost / unit)
        try:
            answer = model.solve(max(1e-3, deadline - time.monotonic()), method)
        except SolverFailure:
            if best is None:
                raise
            break  # the first vertex is worth what its certificate says
        weight = np.maximum(answer.duals[: len(scale)], 0.0) * (unit / scale)
        v, bound = np.maximum(answer.values, 0.0) * size, p.bound(weight)
        if best is None or p.cost @ v - bound < p.cost @ best.v - best.bound:
            best = Iterate(v, bound)
        method = "simplex"  # from the basis
    assert best is not None
    return best


def _rows(p: Program, size: Floats) -> tuple[Rows, Floats]:
    """Return the constraints in u = v / size, pairs first, and what each pair was divided by."""
    pairs, equations = len(p.source), len(p.rhs)
    reach = (1.0 + p.growth) * p.ratio * size[p.target]
    scale = np.sqrt(reach * size[p.source])
    entries = np.stack([reach / scale, -size[p.source] / scale], axis=1).reshape(-1)
    columns = np.stack([p.target, p.source], axis=1).reshape(-1)
    members = np.argsort(p.row, kind="stable")
    counts = np.bincount(p.row, minlength=equations)
    starts = np.concatenate([2 * np.arange(pairs), 2 * pairs + np.cumsum([0, *counts])])
    return Rows(
        starts,
        np.concatenate([columns, members]),
        np.concatenate([entries, np.ones(len(members))]),
        np.repeat([0.0, _TOTAL], [pairs, equations]),
        np.repeat([np.inf, _TOTAL], [pairs, equations]),
    ), scale
