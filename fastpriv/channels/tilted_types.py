"""A tilted law of exchangeable rows, in types."""

from __future__ import annotations

import itertools
import math
from functools import cached_property

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats
from fastpriv._matrices.leakage import TINY
from fastpriv._structure.leakage import row_slack
from fastpriv._structure.rows import RowKernels, Symmetric
from fastpriv._structure.type_laws import types_array
from fastpriv._structure.type_pairs import TypePairs, log_sizes, pairs_fit
from fastpriv.priors import Distribution, Exchangeable

#: Most types, counted with one axis for each value, of three or more values.
_BOX = 1 << 24


class TypeTilt:
    """The laws q and R q of a tilted channel over types, and the channel that they make.

    A channel W[x, y] = q(y) R[x, y] / (R q)(x) has its largest entry of column y at x = y: a step
    of x away from y divides R by e^epsilon, and R q, an output law of E_d, changes by at most
    this factor. For the same reason the least entry is at an x that differs from y in every row.
    """

    def __init__(self, law: Exchangeable, home: Exchangeable, kernel: Symmetric) -> None:
        self.n, self.kernel = law.space.n, kernel
        self.types = types_array(self.n, kernel.m)
        self.sizes = log_sizes(self.types)
        place = tuple(self.types[1:])
        #: Logs of q and of R q, summed over the databases of each type.
        self.log_law, self.log_home = law.log_weights[place], home.log_weights[place]
        self.occurs = self.log_law > -math.inf
        #: Log of (R q)(x) for one database of each type.
        self.log_each = self.log_home - self.sizes
        self.log_stay = self.n * math.log(kernel.stay)
        slack = row_slack(RowKernels([kernel], np.zeros(self.n, dtype=np.int64)))
        largest = float(np.abs(self.log_each).max() + self.sizes.max())
        #: Bound on the error of sums of a few of these logarithms.
        self.error = 4.0 * slack + 64.0 * ULP * (1.0 + largest + self.n * kernel.epsilon)

    @cached_property
    def pairs(self) -> TypePairs:
        """Tables over pairs of types."""
        return TypePairs(self.n, self.kernel)

    @property
    def fits(self) -> bool:
        """Whether the tables over pairs of types are small enough."""
        return pairs_fit(self.n, self.kernel)

    @cached_property
    def opposite(self) -> Floats:
        """Largest ln (R q)(x) over the x that differ from y in every row, for each type of y.

        Types s and t have such databases where s_v + t_v <= n for every value v.
        """
        if self.kernel.m == 2:
            return np.asarray(self.log_each[::-1])
        m, n = self.kernel.m, self.n
        check.fits((n + 1) ** m, "the table of types", "use fewer rows or values", _BOX)
        best = np.full((n + 1,) * m, -math.inf)
        best[tuple(self.types)] = self.log_each
        for axis in range(m):
            best = np.maximum.accumulate(best, axis=axis)
        return np.asarray(best[tuple(n - self.types)])

    def log_joint(self, log_prior: Floats) -> Floats:
        """Log of the joint law of the types of the output (first axis) and of the database."""
        return np.asarray(self.log_law[:, None] + self.pairs.log_laws + (log_prior - self.log_home))

    def log_ratios(self, logs: Floats) -> Floats:
        """Largest logs(x) - logs(x') where one row goes from s to t, for every (s, t).

        ``logs`` is a number for each type, -inf where x cannot occur.
        """
        m, n = self.kernel.m, self.n
        table = np.full((n + 1,) * (m - 1), -math.inf)
        table[tuple(self.types[1:])] = logs
        worst = np.full((m, m), -math.inf)
        for s, t in itertools.product(range(m), repeat=2):
            moved = self.types[:, (self.types[s] > 0) & (logs > -math.inf)].copy()
            here = table[tuple(moved[1:])]
            moved[s] -= 1
            moved[t] += 1
            worst[s, t] = (here - table[tuple(moved[1:])]).max(initial=-math.inf)
        return worst

    def log_prior(self, prior: Exchangeable) -> Floats:
        """Log of the probability of each type under a prior."""
        return np.asarray(prior.log_weights[tuple(self.types[1:])])


def type_tilt(law: Distribution, kernels: RowKernels) -> TypeTilt | None:
    """Return the laws over types, or None where they have none or are too rare for doubles."""
    kernel = kernels.distinct[0]
    if not isinstance(law, Exchangeable) or not isinstance(kernel, Symmetric):
        return None
    home = law.through(kernels)
    assert isinstance(home, Exchangeable)
    if home.type_weights[home.zero_counts >= 0].min() < TINY:
        return None
    return TypeTilt(law, home, kernel)
