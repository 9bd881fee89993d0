"""Linear programs over the laws p with A p <= b, answered by what weak duality proves."""

from __future__ import annotations

import math

import numpy as np

from fastpriv._core.highs import Answer, Rows, minimise
from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats
from fastpriv._matrices.least_mean import Least
from fastpriv.errors import SolverFailure

#: Seconds after which one linear program is given up.
_SECONDS = 300.0
#: By how much b is raised where the solver, but not its multipliers, says that there is no law.
_RAISE = 1e-8


class Polytope:
    """The laws p with A p <= b, every row divided by a power of two near its largest entry."""

    def __init__(self, A: Floats, b: Floats) -> None:
        scale = np.abs(A).max(axis=1)
        scale[scale == 0] = 1.0
        scale = np.exp2(np.floor(np.log2(scale)))  # exact
        self.A, self.b, self.size = A / scale[:, None], b / scale, A.shape[1]
        self._violation, self._room, self._centre = self._central()

    @property
    def empty(self) -> bool:
        """Whether multipliers prove that there is no such law."""
        return self._violation > 0.0

    def possible(self) -> np.ndarray:
        """Return all databases but those that a row with b = 0 and no negative entry rules out."""
        possible = np.ones(self.size, dtype=bool)
        while True:
            bars = (self.b <= 0) & (self.A[:, possible] >= 0).all(axis=1)
            out = possible & (self.A[bars] > 0).any(axis=0)
            if not out.any():
                return possible
            possible &= ~out

    def least(self, column: Floats) -> Least:
        """Bound <column, p> from below by weak duality, whatever the solver says of its optimum.

        For any multipliers l >= 0, <column, p> >= min(column + A^T l) - b l, p being a law.
        Without multipliers that is the least entry.
        """
        law, multipliers = self._solve(column)
        return max(self._proved(column, multipliers), float(column.min())), law

    def _proved(self, column: Floats, multipliers: Floats) -> float:
        """Return what multipliers prove, rounded down."""
        sums = column + multipliers @ self.A
        size = np.abs(column) + multipliers @ np.abs(self.A)
        error = (len(self.b) + 8) * ULP * (float(size.max()) + multipliers @ np.abs(self.b))
        return float(sums.min() - multipliers @ self.b - error)

    def _solve(self, cost: Floats) -> tuple[Floats, Floats]:
        """Return a law of about least cost and multipliers."""
        extra = max(0.0, -self._room)
        while True:
            try:
                answer = self._minimise(cost, self.b + extra)
                break
            except SolverFailure as failure:
                if "nfeasible" not in str(failure) or extra > 1.0:
                    raise
                extra = 8.0 * extra + _RAISE
        law = np.maximum(answer.values, 0.0)
        return self._drawn_in(law / law.sum()), np.maximum(-answer.duals[:-1], 0.0)

    def _drawn_in(self, law: Floats) -> Floats:
        """Mix a law with the central one until A p <= b, where that one leaves room."""
        over = self.A @ law - self.b + 8.0 * self.size * ULP * (np.abs(self.A) @ law)
        room = self.b - self.A @ self._centre
        needed = (over > 0.0) & (room > 0.0)
        share = over[needed] / (over[needed] + room[needed])
        return np.asarray(law + float(share.max(initial=0.0)) * (self._centre - law))

    def _minimise(self, cost: Floats, b: Floats) -> Answer:
        count, rows = len(cost), len(b)
        table = np.vstack([self.A, np.ones(count)])
        return minimise(
            cost,
            np.zeros(count),
            Rows(
                np.arange(rows + 2) * count,
                np.tile(np.arange(count), rows + 1),
                table.reshape(-1),
                np.append(np.full(rows, -math.inf), 1.0),
                np.append(b, 1.0),
            ),
            _SECONDS,
        )

    def _central(self) -> tuple[float, float, Floats]:
        """Return a proved lower bound on max(A p - b) over laws p, and a law with the most room.

        For l >= 0 with A^T l > b l everywhere there is no law, whatever its sum. The room that the
        law leaves in every row is at most 1, and negative where there is no law.
        """
        rows, count = self.A.shape
        table = np.hstack([self.A, -np.ones((rows, 1))])
        table = np.vstack([table, np.append(np.ones(count), 0.0)])
        answer = minimise(
            np.append(np.zeros(count), 1.0),
            np.append(np.zeros(count), -1.0),
            Rows(
                np.arange(rows + 2) * (count + 1),
                np.tile(np.arange(count + 1), rows + 1),
                table.reshape(-1),
                np.append(np.full(rows, -math.inf), 1.0),
                np.append(self.b, 1.0),
            ),
            _SECONDS,
        )
        multipliers = np.maximum(-answer.duals[:-1], 0.0)
        multipliers /= max(1.0, float(multipliers.sum()) * (1.0 + rows * ULP))
        law = np.maximum(answer.values[:-1], 0.0)
        proved = self._proved(np.zeros(count), multipliers)
        return proved, -float(answer.values[-1]), law / law.sum()
