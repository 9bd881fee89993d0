"""One row of a tilted product law, with accurate logarithms."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from fastpriv._core.rounding import ULP, raised
from fastpriv._core.validation import Floats
from fastpriv._core.wide import wide
from fastpriv._matrices.excess import (
    SMALL,
    Excess,
    excess_information,
    far_matrix,
    perturbed,
    relative_excess,
)
from fastpriv._matrices.leakage import TINY
from fastpriv._structure.rows import RowKernel, Symmetric
from fastpriv.results import Bracket

#: Most lines of a joint law whose information is computed one by one.
_LINES = 64


class TiltedRow(RowKernel):
    """One row of a tilted product law, W[s, y] = q(y) R[s, y] / (R q)(s).

    Its logarithms are computed from epsilon and from differences of q. Those of the rounded matrix
    would lose most digits at small epsilon.
    """

    def __init__(self, kernel: RowKernel, law: Floats) -> None:
        assert isinstance(kernel, Symmetric)
        joint = kernel.matrix * law
        home, least = joint.sum(axis=1), int(np.argmin(law))
        matrix = joint / np.where(home > 0.0, home, 1.0)[:, None]
        if kernel.off * law[law > 0.0].min() < TINY:  # some weights have lost their digits
            matrix = far_matrix(wide(law), (len(law),), kernel.epsilon)
        if home.min() < TINY:  # a value is too far from all that come out
            with np.errstate(divide="ignore"):
                masses = np.logaddexp.reduce(np.log(law) + kernel.log_near, axis=1)
            logs = kernel.log_near - (masses - masses[least])[:, None]
        else:
            apart = kernel.gap * (law - law[least]) / float(home[least])
            logs = kernel.log_near - np.log1p(apart)[:, None]
        super().__init__(matrix)
        self.logs_if_rare = logs
        #: Bound on the error of ``log_near``, in which two terms may cancel.
        self.noise = 16.0 * ULP * float(np.abs(logs).max())
        self.occurs = law > 0.0
        self.base, self._epsilon = law, kernel.epsilon
        #: Bound on the relative error of the entries of the matrix.
        self.error = (len(law) + 32) * ULP

    @cached_property
    def excess(self) -> Excess:
        """W[s, y] / q(y) - 1 from epsilon and q, and bounds on its errors."""
        return relative_excess(self.base, (len(self.base),), self._epsilon)

    def widened(self, bracket: Bracket) -> Bracket:
        """Bounds on a capacity or a contraction, for the error of the matrix."""
        return perturbed(bracket, self.error, raised(2.0 * self._epsilon, 8.0))

    def information(self, joint: Floats) -> float:
        """Return I(S; Y | L) times the total of ``joint[l, s]``, from differences of rows."""
        if len(joint) > _LINES or self._epsilon > SMALL:
            return super().information(joint)
        lines = [line for line in joint if line.any()]
        return math.fsum(
            line.sum() * excess_information(self.excess, self.base, line) for line in lines
        )

    @cached_property
    def log_ratios(self) -> Floats:
        """Largest ln W[s, y] / W[t, y] over y, for every pair (s, t) of inputs."""
        logs = self.logs_if_rare[:, self.occurs]
        return np.asarray((logs[:, None] - logs[None]).max(axis=2))

    @cached_property
    def log_near(self) -> Floats:
        """Log of W[s, y] / max W[., y]."""
        return np.where(self.occurs, self.logs_if_rare - self.logs_if_rare.max(axis=0), -math.inf)

    @cached_property
    def near(self) -> Floats:
        """W[s, y] / max W[., y]; 0 where y never comes out."""
        return np.asarray(np.exp(self.log_near))

    @cached_property
    def loss(self) -> Floats:
        """1 - near, without cancellation; 1 where y never comes out."""
        return np.asarray(-np.expm1(self.log_near))
