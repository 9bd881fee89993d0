"""The one place that talks to HiGHS.

Seen with highspy 1.15: a NaN cost still reports an optimum; a NaN right-hand side makes passModel
fail and the run "optimal" with objective 0; coefficients below 1e-9 are dropped with a warning. So
numbers are checked, tiny coefficients are dropped beforehand, anything but kOk is a failure, and
values are read only where the status is optimal. Callers scale their rows, and repair and certify
what they get with all coefficients: a solution obeys its constraints up to a tolerance.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fastpriv._core.observing import emit
from fastpriv._core.validation import Floats, Ints
from fastpriv.errors import SolverFailure, described

_TOLERANCE = 1e-10
TINY = 2e-9


class Answer(NamedTuple):
    """Values of the variables and multipliers of the rows."""

    values: Floats
    duals: Floats


class Block(NamedTuple):
    """Constraints of one kind: lower <= sum over the columns of a row of entry times x <= upper."""

    columns: Ints  # (rows, width), or those of all rows one after the other with their lengths
    entries: Floats | float  # one number for each column, or one that all share
    lower: Floats | float
    upper: Floats | float
    lengths: Ints | None = None

    @classmethod
    def sums(cls, group: Ints, count: int, total: Floats | float) -> Block:
        """Let the variables of every group 0, ..., count - 1 sum to its total."""
        lengths = np.bincount(group, minlength=count)
        return cls(np.argsort(group, kind="stable"), 1.0, total, total, lengths)

    @classmethod
    def dense(cls, table: Floats, lower: Floats | float, upper: Floats | float) -> Block:
        """Constrain the products of a matrix with the first variables."""
        return cls(np.tile(np.arange(table.shape[1]), (len(table), 1)), table, lower, upper)


class Rows(NamedTuple):
    """Constraints lower <= A x <= upper, A by rows: row i has entries starts[i] to starts[i+1]."""

    starts: Ints
    columns: Ints
    entries: Floats
    lower: Floats
    upper: Floats

    @classmethod
    def stacked(cls, blocks: Sequence[Block]) -> Rows:
        """Stack blocks of constraints, the first on top."""
        lengths = [
            np.full(len(block.columns), block.columns.shape[1])
            if block.lengths is None
            else block.lengths
            for block in blocks
        ]
        columns = [block.columns.reshape(-1) for block in blocks]
        entries = [np.broadcast_to(b.entries, b.columns.shape).reshape(-1) for b in blocks]
        counts = list(map(len, lengths))
        lower, upper = (
            np.concatenate([np.broadcast_to(*pair) for pair in zip(ends, counts, strict=True)])
            for ends in ([b.lower for b in blocks], [b.upper for b in blocks])
        )
        starts = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
        return cls(starts, np.concatenate(columns), np.concatenate(entries), lower, upper)


class Model:
    """A linear program, min <cost, x> over x >= lower and the rows, that HiGHS keeps.

    Solving again after :meth:`reprice` starts from the basis where the last run ended.

    Parameters
    ----------
    cost, lower : ndarray
        One number per variable; a lower bound may be -inf.
    rows : Rows
        The constraints.
    """

    def __init__(self, cost: Floats, lower: Floats, rows: Rows) -> None:
        import highspy

        bounds = (lower, rows.lower, rows.upper)
        if not np.isfinite(rows.entries).all() or any(np.isnan(a).any() for a in bounds):
            raise SolverFailure(
                "the linear program has coefficients that are not finite numbers. Check the prior "
                "for tiny probabilities, or use a smaller epsilon."
            )
        _check_costs(cost)
        lp = highspy.HighsLp()
        self._solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        self._solver.silent()
        self._shape = len(rows.lower), len(cost)
        lp.num_row_, lp.num_col_ = self._shape
        lp.col_cost_, lp.col_lower_ = cost, lower
        lp.col_upper_ = np.full(len(cost), np.inf)
        lp.row_lower_, lp.row_upper_ = rows.lower, rows.upper
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        kept = np.abs(rows.entries) > TINY
        lp.a_matrix_.start_ = np.concatenate([[0], np.cumsum(kept)])[rows.starts]
        lp.a_matrix_.index_, lp.a_matrix_.value_ = rows.columns[kept], rows.entries[kept]
        for name in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
            self._solver.setOptionValue(name, _TOLERANCE)
        status = self._solver.passModel(lp)
        if status != highspy.HighsStatus.kOk:
            raise SolverFailure(
                f"HiGHS did not accept the linear program (passModel returned {status.name}). "
                "Use fewer databases, or values of similar size."
            )

    def reprice(self, cost: Floats) -> None:
        """Replace the costs; the basis stays."""
        _check_costs(cost)
        self._solver.changeColsCost(len(cost), np.arange(len(cost), dtype=np.int32), cost)

    def solve(self, seconds: float, method: str = "choose") -> Answer:
        """Return an optimal vertex and its multipliers.

        Parameters
        ----------
        seconds : float
            Time after which HiGHS gives up.
        method : {"choose", "simplex", "ipm"}
            HiGHS's own name of the algorithm; an interior point is crossed over to a vertex.
        """
        import highspy

        self._solver.setOptionValue("solver", method)
        # HiGHS counts the time of all runs of one model.
        self._solver.setOptionValue("time_limit", self._solver.getRunTime() + seconds)
        begun = time.perf_counter()
        self._solver.run()
        status = self._solver.getModelStatus()
        emit(
            "solver",
            solver="highs",
            columns=self._solver.getNumCol(),
            rows=self._solver.getNumRow(),
            seconds=time.perf_counter() - begun,
            status=self._solver.modelStatusToString(status),
        )
        if status != highspy.HighsModelStatus.kOptimal:
            raise SolverFailure(
                f"HiGHS stopped with {described(self._solver.modelStatusToString(status))}. "
                "Give a larger gap or time_limit."
            )
        solution = self._solver.getSolution()
        return Answer(np.array(solution.col_value), np.array(solution.row_dual))


def minimise(
    cost: Floats, lower: Floats, rows: Rows, seconds: float, method: str = "choose"
) -> Answer:
    """Minimise <cost, x> over x >= lower (which may be -inf) and the rows.

    Parameters
    ----------
    cost, lower : ndarray
        One number per variable.
    rows : Rows
        The constraints.
    seconds : float
        Time after which HiGHS gives up.
    method : {"choose", "simplex", "ipm"}
        How. The interior-point method ends with a crossover, so that all end in a vertex.
    """
    return Model(cost, lower, rows).solve(seconds, method)


def _check_costs(cost: Floats) -> None:
    if not np.isfinite(cost).all():
        raise SolverFailure(
            "the linear program has costs that are not finite numbers. Check the metric."
        )
