"""Engines of the privacy programs, and the order in which they are tried.

``vertex`` uses HiGHS to reach a vertex; ``interior`` follows the central path. Both return a point
and a certified lower bound.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np

from fastpriv._core.clock import Clock
from fastpriv.design.certificate import lower_bound
from fastpriv.design.cone import Cone, ListedCone
from fastpriv.design.engines import interior, vertex
from fastpriv.design.engines.interior import Iterate
from fastpriv.errors import SolverFailure

#: Up to this many pairs the simplex method of HiGHS is tried first.
_FEW_PAIRS = 2_000
#: Up to this many pairs HiGHS finishes if rounding stops the interior-point method.
_FINISHED_PAIRS = 60_000
#: Relative gap below which rounding often stops the interior-point method.
_SMALL_GAP = 1e-7


class Run(Protocol):
    """Move a point towards the optimum until the gap is met or the time is over."""

    def __call__(self, cone: ListedCone, gap: float, clock: Clock) -> Iterate:
        """Return the best point and lower bound."""


class Engine(NamedTuple):
    """An engine, and the condition under which it runs after the previous one."""

    name: str
    run: Run
    finishes: bool = False  # it runs if the gap was missed; otherwise only if there is no point


_HIGHS = Engine("highs", vertex.run)
_INTERIOR = Engine("interior", interior.run)


def plan(pairs: int, gap: float, engine: str) -> list[Engine]:
    """Return the engines in the order in which they are tried; only sizes decide.

    Parameters
    ----------
    pairs : int
        Number of pairs of the program.
    gap : float
        Relative gap to reach.
    engine : {"auto", "interior", "highs"}
        The requested engine.
    """
    if engine == "highs":
        return [_HIGHS]
    if engine == "interior":
        return [_INTERIOR]
    if pairs <= (_FEW_PAIRS if gap >= _SMALL_GAP else _FINISHED_PAIRS):
        return [_HIGHS, _INTERIOR]
    if pairs <= _FINISHED_PAIRS:
        return [_INTERIOR, _HIGHS._replace(finishes=True)]
    return [_INTERIOR]


def solve(cone: Cone, gap: float, clock: Clock, engine: str) -> tuple[Iterate, str]:
    """Return the best point and bound, and the name of the engine that reached them.

    Raises ``SolverFailure`` if no engine of the plan has a point.
    """
    if not isinstance(cone, ListedCone):  # only the interior-point method has a working set
        return interior.run(cone, gap, clock), "interior"
    if not len(cone.source):  # no inputs are related
        return _cheapest(cone), "interior" if engine == "interior" else "highs"
    best: tuple[Iterate, str] | None = None
    failure: SolverFailure | None = None
    for name, run, finishes in plan(len(cone.source), gap, engine):
        if best is not None and not (finishes and _gap(cone, best[0]) > gap):
            break
        try:
            point = run(cone, gap, clock)
        except SolverFailure as failed:
            failure = failed
            continue
        if best is None or _gap(cone, point) < _gap(cone, best[0]):
            best = point, name
    if best is None:
        assert failure is not None
        raise failure
    return best


def _cheapest(cone: ListedCone) -> Iterate:
    """Fill every equation with its cheapest unknown: the optimum if no pair is bounded."""
    order = np.lexsort((cone.cost, cone.row))
    first = order[np.searchsorted(cone.row[order], np.arange(len(cone.total)))]
    v = np.zeros(len(cone.cost))
    v[first] = cone.total
    return Iterate(v, lower_bound(cone, np.zeros(0)))


def _gap(cone: ListedCone, point: Iterate) -> float:
    value = float(cone.cost @ point.v)
    return (value - point.bound) / value if value > 0.0 else math.inf
