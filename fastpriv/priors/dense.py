"""A law given by the probability of every database."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.infinities import numbers
from fastpriv._core.logs import log_spread
from fastpriv._core.rounding import log_down, lowered, round_up
from fastpriv._core.threads import split
from fastpriv._core.transform import mix
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.leakage import log_error
from fastpriv._structure.rows import RowKernel, RowKernels, Symmetric
from fastpriv.errors import InvalidInput, short
from fastpriv.priors.base import Distribution
from fastpriv.priors.rare import rare_hat, rare_ratios
from fastpriv.priors.unmixing import vector_threshold
from fastpriv.spaces import Space

__all__ = ["Dense"]

_GRAIN = 1 << 15


class Dense(Distribution):
    """Any law, as a vector over all databases in C order.

    Parameters
    ----------
    pmf : 1-D array
        Probability of every database.
    sizes : Space or sequence of int, optional
        The space, or the number of values of each row; by default one row with ``len(pmf)``
        values.

    Notes
    -----
    Levels and output laws cost O(N n) and one or two further vectors; nothing here is N x N.

    Examples
    --------
    >>> import fastpriv as fp
    >>> prior = fp.Dense([0.4, 0.1, 0.2, 0.3], [2, 2])
    >>> round(prior.epsilon_x(), 6)  # ln(0.4 / 0.1)
    1.386294
    """

    def __init__(self, pmf: ArrayLike, sizes: Space | Sequence[int] | None = None) -> None:
        self._pmf, self._rare = check.law(pmf, "pmf"), None
        if sizes is None:
            sizes = Space.of((len(self._pmf),))
        self.space = sizes if isinstance(sizes, Space) else Space(sizes)
        if self.space.size != len(self._pmf):
            raise InvalidInput(
                f"sizes make {short(self.space.size)} databases, but pmf has "
                f"{len(self._pmf)} entries"
            )

    #: Logarithms of the law, where it was made from one that underflows.
    _rare: Floats | None

    @classmethod
    def of(cls, pmf: Floats, space: Space, logs: Floats | None = None) -> Dense:
        self = cls.__new__(cls)
        self._pmf, self.space, self._rare = pmf, space, logs
        return self

    def definition(self) -> dict[str, Any]:
        rare = {} if self._rare is None else {"logs": self._rare}
        return {"sizes": list(self.space.sizes), "pmf": self._pmf, **rare}

    @classmethod
    def from_definition(cls, given: Mapping[str, Any]) -> Dense:
        made = cls(given["pmf"], given["sizes"])
        if "logs" in given:
            logs = np.array(numbers(given["logs"]), dtype=np.float64)
            if logs.shape != made.probabilities().shape or not np.all(logs <= 1e-9):
                raise InvalidInput("logs must be the logarithm of every probability")
            made._rare = logs
        return made

    def pmf(self) -> Floats:
        """Return the probability of every database (N numbers, read-only)."""
        return check.shown(self._pmf)

    def probabilities(self) -> Floats:
        return self._pmf

    def logs_if_rare(self) -> Floats | None:
        return self._rare

    def log_probabilities(self, rows: Ints) -> Floats:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self._pmf[self.space.index(rows)]))

    def entropy(self) -> float:
        """Return H(X) in nats. Cost O(N)."""
        from fastpriv.kernels import entropy, entropy_range

        if self._pmf.max() > 0.5:
            return entropy(self._pmf)
        return math.fsum(split(partial(entropy_range, self._pmf), len(self._pmf), _GRAIN))

    def min_entropy(self) -> float:
        """Return -ln max p(x). Cost O(N)."""
        return -math.log(self._pmf.max())

    def restricted(self, event: np.ndarray) -> Dense:
        """Return the law given an event, True for every database in it."""
        logs = None if self._rare is None else np.where(event, self._rare, -math.inf)
        if logs is not None and logs.max() > -math.inf:
            logs -= np.logaddexp.reduce(logs)
            return Dense.of(np.exp(logs), self.space, logs)
        kept = np.where(event, self._pmf, 0.0)
        total = float(kept.sum())
        if total <= 0.0:
            raise InvalidInput("what is given has probability zero; nothing can be conditioned on")
        return Dense.of(kept / total, self.space)

    def axes(self, rows: Ints | None = None) -> list[tuple[int, int, int]]:
        """Stride, size and number of lines of the given axes that have two or more values."""
        sizes, strides = self.space.sizes, self.space.strides
        chosen = range(self.space.n) if rows is None else rows
        return [
            (int(strides[i]), sizes[i], len(self._pmf) // sizes[i]) for i in chosen if sizes[i] > 1
        ]

    def _spreads(self, which: int) -> float:
        """ln(1 + s), s the largest max/min - 1 (which = 0) or sum/min - m (1) over all lines."""
        from fastpriv.kernels import axis_spreads

        def worst(scale: float) -> float:
            spreads = [0.0]
            for inner, m, lines in self.axes():
                task = partial(axis_spreads, self._pmf, scale, inner, m)
                spreads += [pair[which] for pair in split(task, lines, _GRAIN)]
            return max(spreads)

        return log_spread(worst, 2 if which == 0 else max(self.space.sizes) + 1)

    def epsilon_x(self) -> float:
        """Return eps_X, the largest ln p(x)/p(x') over neighbours. Cost O(N n). Rounded up."""
        return self._spreads(0) if self._rare is None else super().epsilon_x()

    @property
    def epsilon_x_error(self) -> float:
        return 0.0 if self._rare is None else log_error(self._rare, 0.0)

    def epsilon_hat(self) -> float:
        """Return the epsilon from which E_d is optimal for DP. Cost O(N n). Rounded up."""
        if self._rare is None:
            return self._spreads(1)
        return round_up(max(0.0, *(rare_hat(self._log_lines(axis)) for axis in self.axes())))

    def _log_lines(self, axis: tuple[int, int, int]) -> Floats:
        """Return the logarithms with one line per setting of the other rows."""
        assert self._rare is not None
        inner, m, _ = axis
        return self._rare.reshape(-1, m, inner).swapaxes(1, 2).reshape(-1, m)

    def log_ratios(self, rows: Ints) -> Floats:
        from fastpriv.kernels import axis_log_ratios

        m = self.space.sizes[rows[0]]
        worst = np.full((m, m), -math.inf)
        for inner, _, lines in self.axes(rows):
            if self._rare is None:
                axis_log_ratios(self._pmf, inner, m, 0, lines, worst)
                continue
            worst = np.maximum(worst, rare_ratios(self._log_lines((inner, m, lines))))
        return worst

    def marginal_sum(self, rows: Ints) -> Floats:
        total = np.zeros(self.space.sizes[rows[0]])
        for i in rows:
            m, inner = self.space.sizes[i], int(self.space.strides[i])
            total += self._pmf.reshape(-1, m, inner).sum(axis=(0, 2))
        return total

    def through(self, kernels: RowKernels) -> Dense:
        """Law of the output of a row-by-row channel. Cost O(N n)."""
        return Dense.of(apply_rows(self._pmf, kernels), Space(kernels.sizes_out))

    def epsilon_tilde(self) -> float:
        """Return the least epsilon for which E_i exists: about a hundred O(N n) transforms."""
        return vector_threshold(self, self.probabilities)

    def given(self, values: Mapping[int, int]) -> Dense:
        """Return the law given the values of some rows: other databases get probability zero."""
        kept = np.ones(self.space.size, dtype=bool)
        for i, value in values.items():  # three axes: there may be more rows than NumPy has axes
            lanes = kept.reshape(-1, self.space.sizes[i], int(self.space.strides[i]))
            lanes[:, :value] = False
            lanes[:, value + 1 :] = False
        return self.restricted(kept)

    def log_smallest(self) -> float:
        """Log of the least positive probability of a database. Rounded down."""
        if self._rare is not None:
            return lowered(float(self._rare[self._rare > -math.inf].min()), 64.0)
        return log_down(float(self._pmf[self._pmf > 0].min()))

    def as_dense(self, what: str, limit: int = check.MAX_VECTOR) -> Dense:
        check.fits(self.space.size, f"{what} of {self!r}", "use fewer rows", limit)
        return self

    def draw(self, k: int, rng: np.random.Generator) -> Ints:
        edges = np.cumsum(self._pmf)
        return self.space.rows(np.searchsorted(edges, rng.random(k) * edges[-1], side="right"))


def _symmetric(kernels: RowKernels) -> list[Symmetric]:
    return [kernel for kernel in kernels if isinstance(kernel, Symmetric)]


def apply_rows(vector: Floats, kernels: Sequence[RowKernel], trailing: int = 1) -> Floats:
    """Push a vector over databases through one kernel per leading axis; a new vector.

    ``trailing`` entries per setting of those axes are carried along untouched. Symmetric kernels
    go through the fast in-place transform, others one axis at a time through a matrix product.
    """
    sizes = [kernel.shape[0] for kernel in kernels]
    steps = [kernel.mixing if isinstance(kernel, Symmetric) else 0.0 for kernel in kernels]
    result = vector.copy()
    if any(steps):
        mix(result, (*sizes, trailing), (*steps, 0.0))
    inner = trailing
    for kernel in reversed(kernels):
        m, k = kernel.shape
        if not isinstance(kernel, Symmetric):
            result = np.matmul(kernel.matrix.T, result.reshape(-1, m, inner)).reshape(-1)
        inner *= k
    return np.ascontiguousarray(result)
