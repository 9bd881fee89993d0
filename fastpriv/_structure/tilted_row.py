"""One row of a tilted product law, with accurate logarithms."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats
from fastpriv._structure.rows import RowKernel, Symmetric


class TiltedRow(RowKernel):
    """One row of a tilted product law, W[s, y] = q(y) R[s, y] / (R q)(s).

    Its logarithms are computed from epsilon and from differences of q. Those of the rounded matrix
    would lose most digits at small epsilon.
    """

    def __init__(self, kernel: RowKernel, law: Floats) -> None:
        joint = kernel.matrix * law
        super().__init__(joint / joint.sum(axis=1, keepdims=True))
        assert isinstance(kernel, Symmetric)
        least = int(np.argmin(law))
        home = kernel.gap * (law - law[least]) / float(joint[least].sum())
        logs = kernel.log_near - np.log1p(home)[:, None]
        self._logs = logs
        #: Bound on the error of ``log_near``, in which two terms may cancel.
        self.noise = 16.0 * ULP * float(np.abs(logs).max())
        self._occurs = law > 0.0

    @cached_property
    def log_near(self) -> Floats:
        """Log of W[s, y] / max W[., y]."""
        return np.where(self._occurs, self._logs - self._logs.max(axis=0), -math.inf)

    @cached_property
    def near(self) -> Floats:
        """W[s, y] / max W[., y]; 0 where y never comes out."""
        return np.asarray(np.exp(self.log_near))

    @cached_property
    def loss(self) -> Floats:
        """1 - near, without cancellation; 1 where y never comes out."""
        return np.asarray(-np.expm1(self.log_near))
