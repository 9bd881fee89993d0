"""The one place that talks to HiGHS.

Seen with highspy 1.15: a NaN cost still reports an optimum; a NaN right-hand side makes passModel
fail and the run "optimal" with objective 0; coefficients below 1e-9 are dropped with a warning. So
numbers are checked, tiny coefficients are dropped beforehand, anything but kOk is a failure, and
values are read only where the status is optimal. Callers scale their rows, and repair and certify
what they get with all coefficients: a solution obeys its constraints up to a tolerance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fastpriv._core.validation import Floats, Ints
from fastpriv.errors import SolverFailure

_TOLERANCE = 1e-10
_TINY = 2e-9


class Answer(NamedTuple):
    """Values of the variables and multipliers of the rows."""

    values: Floats
    duals: Floats


class Rows(NamedTuple):
    """Constraints lower <= A x <= upper, A by rows: row i has entries starts[i] to starts[i+1]."""

    starts: Ints
    columns: Ints
    entries: Floats
    lower: Floats
    upper: Floats


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
    import highspy

    finite = (cost, rows.entries)
    bounds = (lower, rows.lower, rows.upper)
    if not all(np.isfinite(a).all() for a in finite) or any(np.isnan(a).any() for a in bounds):
        raise SolverFailure("the linear program has coefficients that are not finite numbers")
    lp, solver = highspy.HighsLp(), highspy.Highs()  # type: ignore[no-untyped-call]
    solver.silent()
    lp.num_col_, lp.num_row_ = len(cost), len(rows.lower)
    lp.col_cost_, lp.col_lower_ = cost, lower
    lp.col_upper_ = np.full(len(cost), np.inf)
    lp.row_lower_, lp.row_upper_ = rows.lower, rows.upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    kept = np.abs(rows.entries) > _TINY
    lp.a_matrix_.start_ = np.concatenate([[0], np.cumsum(kept)])[rows.starts]
    lp.a_matrix_.index_, lp.a_matrix_.value_ = rows.columns[kept], rows.entries[kept]
    options: dict[str, float | str] = {
        "primal_feasibility_tolerance": _TOLERANCE,
        "dual_feasibility_tolerance": _TOLERANCE,
        "time_limit": seconds,
        "solver": method,
    }
    for name, value in options.items():
        solver.setOptionValue(name, value)
    status = solver.passModel(lp)
    if status != highspy.HighsStatus.kOk:
        raise SolverFailure(f"HiGHS did not take the linear program: passModel said {status.name}")
    solver.run()
    model_status = solver.getModelStatus()
    if model_status != highspy.HighsModelStatus.kOptimal:
        raise SolverFailure(f"HiGHS stopped with {solver.modelStatusToString(model_status)!r}")
    solution = solver.getSolution()
    return Answer(np.array(solution.col_value), np.array(solution.row_dual))
