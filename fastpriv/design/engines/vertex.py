"""The privacy programs by HiGHS, to a vertex.

Variables are scaled so that every equation sums to one, and pairs so that their two coefficients
are inverses of each other. HiGHS stops at an absolute dual tolerance. If the certified gap is still
too wide, costs are scaled up until the optimum is of order one, and the simplex method continues
from its last basis.
"""

from __future__ import annotations

import numpy as np

from fastpriv._core.clock import Clock
from fastpriv._core.highs import Block, Model, Rows
from fastpriv._core.validation import Floats
from fastpriv.design.certificate import lower_bound
from fastpriv.design.cone import ListedCone
from fastpriv.design.engines.interior import Iterate
from fastpriv.errors import SolverFailure

#: The sum of every scaled equation: the primal tolerance of HiGHS is 1e-13 of it.
_TOTAL = 1024.0
#: Scaled optimum of each round: tolerances are 1e-10 of the largest cost, then of the optimum.
_OPTIMA = (1.0, 1e3)
#: Up to this many pairs the simplex method is used, not the interior-point method of HiGHS.
_SIMPLEX_PAIRS = 20_000
#: Smallest unit of the prices, relative to the largest cost: smaller ones underflow.
_SMALLEST_UNIT = 1e-200
#: Smallest time limit of HiGHS, in seconds.
_AT_LEAST = 1e-3


def run(cone: ListedCone, gap: float, clock: Clock) -> Iterate:
    """Minimise to a vertex; raise ``SolverFailure`` if HiGHS stops without one.

    The gap decides whether the certificate is good enough. HiGHS itself always runs to its
    tolerance.
    """
    size = cone.total[cone.row] / _TOTAL
    cost = cone.cost * size
    unit = float(cost.max())
    rows, scale = _rows(cone, size)
    model = Model(cost / unit, np.zeros(len(cost)), rows)
    method = "simplex" if len(cone.source) <= _SIMPLEX_PAIRS else "ipm"
    best: Iterate | None = None
    for optimum in (None, *_OPTIMA):
        if optimum is not None and best is not None:
            value = float(cone.cost @ best.v)
            if value - best.bound <= gap * value or value <= 0.0:
                break
            if value / optimum < _SMALLEST_UNIT * float(cost.max()):
                break
            unit = value / optimum
            model.reprice(cost / unit)
        try:
            answer = model.solve(max(_AT_LEAST, clock.left()), method)
        except SolverFailure:
            if best is None:
                raise
            break  # keep the first vertex and its certificate
        w = np.maximum(answer.duals[: len(scale)], 0.0) * (unit / scale)
        v, bound = np.maximum(answer.values, 0.0) * size, lower_bound(cone, w)
        if best is None or cone.cost @ v - bound < cone.cost @ best.v - best.bound:
            best = Iterate(v, bound)
        method = "simplex"  # from the basis
    assert best is not None
    return best


def _rows(cone: ListedCone, size: Floats) -> tuple[Rows, Floats]:
    """Return the constraints in u = v / size, pairs first, and the divisor of each pair."""
    reach = (1.0 + cone.growth) * cone.ratio * size[cone.target]
    scale = np.sqrt(reach * size[cone.source])
    pairs = Block(
        np.stack([cone.target, cone.source], axis=1),
        np.stack([reach / scale, -size[cone.source] / scale], axis=1),
        0.0,
        np.inf,
    )
    return Rows.stacked([pairs, Block.sums(cone.row, len(cone.total), _TOTAL)]), scale
