"""Engines of the privacy programs, and the order in which they are tried.

``vertex`` uses HiGHS to reach a vertex. ``interior`` follows the central path. ``first_order``
makes many cheap steps where a factorisation does not fit. Each returns a point and a certified
lower bound.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from fastpriv._core.clock import Clock
from fastpriv._core.observing import emit
from fastpriv.design.certificate import lower_bound
from fastpriv.design.cone import Cone, ListedCone, SharedCone
from fastpriv.design.engines import first_order, interior, vertex
from fastpriv.design.engines.interior import Iterate
from fastpriv.design.problem import OutOfTime
from fastpriv.errors import InvalidInput, SolverFailure, TooLarge

#: Up to this many unknowns the simplex method of HiGHS is tried first. Measured for records, bits,
#: types and grids: the times are equal between 100 and 170 unknowns, however many pairs there are.
_FEW_UNKNOWNS = 128
#: Up to this many pairs HiGHS finishes if rounding stops the interior-point method.
_FINISHED_PAIRS = 60_000
#: Most entries of the Cholesky factors of all outputs (2.4 GB).
MAX_FACTORS = 300_000_000
#: Relative gap below which rounding often stops the interior-point method.
_SMALL_GAP = 1e-7
#: Most operations of a factorisation of all outputs. Above, the first-order method is tried first:
#: it is faster to a gap of 1e-3 from there on (dense priors: between 256 and 512 databases).
MAX_WORK = 1e10


class Run(Protocol):
    """Move a point towards the optimum until the gap is met or the time is over."""

    def __call__(self, cone: Any, gap: float, clock: Clock) -> Iterate:
        """Return the best point and lower bound."""


class Engine(NamedTuple):
    """An engine, and the condition under which it runs after the previous one."""

    name: str
    run: Run
    finishes: bool = False  # it runs if the gap was missed; otherwise only if there is no point


class _Observed:
    """An engine of this package; its runs are events, as those of HiGHS are."""

    def __init__(self, name: str, run: Callable[[Any, float, Clock], Iterate]) -> None:
        self._name, self._run = name, run

    def __call__(self, cone: Cone | SharedCone, gap: float, clock: Clock) -> Iterate:
        begun, status = time.perf_counter(), "Failed"
        try:
            result = self._run(cone, gap, clock)
            status = "Finished"
            return result
        finally:
            emit(
                "solver",
                solver=self._name,
                columns=cone.cost.size,
                rows=len(cone.total),
                seconds=time.perf_counter() - begun,
                status=status,
            )


def _first_order(cone: ListedCone | SharedCone, gap: float, clock: Clock) -> Iterate:
    if isinstance(cone, SharedCone):
        return first_order.run(cone, gap, clock)
    point = first_order.run(SharedCone.of(cone), gap, clock)
    return point._replace(v=cone.listed(point.v))


_HIGHS = Engine("highs", vertex.run)
_INTERIOR = Engine("interior", _Observed("interior", interior.run))
_FIRST_ORDER = Engine("first-order", _Observed("first-order", _first_order))


def plan(
    unknowns: int, pairs: int, gap: float, engine: str, factors: int = 0, work: float = 0.0
) -> list[Engine]:
    """Return the engines in the order in which they are tried.

    Parameters
    ----------
    unknowns, pairs : int
        Number of unknowns of the program, and of pairs of them with a bounded ratio.
    gap : float
        Relative gap to reach.
    engine : {"auto", "interior", "highs", "first-order"}
        The requested engine.
    factors : int
        Number of entries of the factors of the interior-point method.
    work : float
        Number of operations of a factorisation; 0 if only this method applies.
    """
    if engine == "highs":
        return [_HIGHS]
    if engine == "first-order" or factors > MAX_FACTORS:
        return [_FIRST_ORDER]
    if engine == "interior":
        return [_INTERIOR]
    if work > MAX_WORK:
        return [_FIRST_ORDER, _INTERIOR._replace(finishes=True)]
    if unknowns <= _FEW_UNKNOWNS or (gap < _SMALL_GAP and pairs <= _FINISHED_PAIRS):
        return [_HIGHS, _INTERIOR]
    if pairs <= _FINISHED_PAIRS:
        return [_INTERIOR, _HIGHS._replace(finishes=True)]
    return [_INTERIOR]


def solve(cone: Cone | SharedCone, gap: float, clock: Clock, engine: str) -> tuple[Iterate, str]:
    """Return the best point and bound, and the name of the engine that reached them.

    Raises ``SolverFailure`` if no engine of the plan has a point.
    """
    if isinstance(cone, SharedCone):
        return _FIRST_ORDER.run(cone, gap, clock), "first-order"
    if not isinstance(cone, ListedCone):  # only the interior-point method has a working set
        return _INTERIOR.run(cone, gap, clock), "interior"
    if not len(cone.source):  # no inputs are related
        return _cheapest(cone), "interior" if engine == "interior" else "highs"
    best: tuple[Iterate, str] | None = None
    failure: SolverFailure | None = None
    factors = int(np.diff(cone.starts) @ (cone.bands + 1))
    work = float(np.diff(cone.starts) @ (cone.bands + 1.0) ** 2)
    if not cone.has_one_unknown_per_equation:
        if engine == "first-order":
            raise InvalidInput(
                "solver must be 'auto' here: the program is reduced to types, which makes it "
                "small. 'first-order' is for programs without types."
            )
        if factors > MAX_FACTORS:
            raise TooLarge.entries(
                "the factors of the program after symmetry", factors, "use fewer records or values"
            )
        work = 0.0
    for name, run, finishes in plan(len(cone.cost), len(cone.source), gap, engine, factors, work):
        if best is not None and not (finishes and _gap(cone, best[0]) > gap and not best[0].late):
            break
        try:
            point = run(cone, gap, clock)
        except SolverFailure as failed:
            failure = failed
            continue
        except OutOfTime:
            if best is None:
                raise
            break
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
