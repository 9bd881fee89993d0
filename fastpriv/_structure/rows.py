"""Channels that act on each record of a database separately.

A mechanism such as randomised response is a small channel for each record. Records with equal
channels share one object, so a million identical records cost as much as one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.logs import log_ratio
from fastpriv._core.rounding import LEAST, raised, roundoff
from fastpriv._core.validation import Floats, Ints
from fastpriv._core.wide import wide
from fastpriv._matrices.leakage import TINY
from fastpriv._matrices.ratios import matrix_level
from fastpriv._matrices.tilted import (
    SMALL,
    Excess,
    excess_information,
    far_matrix,
    perturbed,
    relative_excess,
)
from fastpriv._sampling.source import Source
from fastpriv._sampling.thresholds import Codes, fitting
from fastpriv.errors import InvalidInput, described
from fastpriv.results import Bracket

if TYPE_CHECKING:
    from fastpriv._sampling.thresholds import Thresholds

#: Most lines of a joint distribution whose information is computed one by one.
_LINES = 64
#: Number of values that are sorted by the kernels of their records at a time.
_BLOCK = 1 << 22


def inner_level(epsilon: float, n: int, m: int, room: float = 8.0) -> float:
    """Return the level at which n records of m values are rounded to a matrix of doubles.

    Entries are products over n records. The level is below epsilon by as much as their rounding can
    add to ratios, to the root of a capacity and to the root of a contraction. The ``room``, in
    units of epsilon, is for measures that round the level of the matrix up.
    """
    return max(0.0, epsilon - roundoff(2.0 * math.sqrt(m) * (n + 4)) - roundoff(room) * epsilon)


class RowKernel:
    """A channel for one record, p(y_i | x_i), given by its matrix."""

    def __init__(self, matrix: Floats) -> None:
        self.matrix = matrix

    @property
    def shape(self) -> tuple[int, int]:
        """Number of values in and out."""
        return self.matrix.shape[0], self.matrix.shape[1]

    @cached_property
    def log_ratios(self) -> Floats:
        """Largest ln W[s, y] / W[t, y] over y, for every pair (s, t) of inputs."""
        W = self.matrix
        ratios = np.empty((W.shape[0], W.shape[0]))
        for s, row in enumerate(W):
            seen = row > 0
            ratios[s] = log_ratio(row[seen], W[:, seen]).max(axis=1)
        return ratios

    @property
    def level(self) -> float:
        """Largest ln W[s, y] / W[t, y] of all; of a matrix that was given it is rounded up."""
        values = len(self.matrix)
        return matrix_level(np.array(self.matrix), np.array([[1, values]])) if values > 1 else 0.0

    @cached_property
    def column_maxima(self) -> Floats:
        """Largest entry of every column."""
        return np.asarray(self.matrix.max(axis=0))

    @cached_property
    def loss(self) -> Floats:
        """1 - W[s, y] / max W[., y], without cancellation; 1 if y never occurs."""
        tops = np.where(self.column_maxima > 0, self.column_maxima, 1.0)
        return np.where(self.column_maxima > 0, (self.column_maxima - self.matrix) / tops, 1.0)

    @cached_property
    def relative(self) -> Floats:
        """W[s, y] / max W[., y]; 0 if y never occurs."""
        return np.asarray(self.matrix / np.where(self.column_maxima > 0, self.column_maxima, 1.0))

    @cached_property
    def log_relative(self) -> Floats:
        """Log of ``relative``."""
        seen = (self.matrix > 0) & (self.column_maxima > 0)
        logs = -log_ratio(np.where(seen, self.column_maxima, 1.0), np.where(seen, self.matrix, 1.0))
        return np.where(seen, logs, -math.inf)

    def column(self, y: int) -> RowKernel:
        """Return the column of one output, with accurate logarithms."""
        parts = (self.matrix, self.relative, self.log_relative, self.loss)
        return RowKernel.of(*(np.ascontiguousarray(part[:, [y]]) for part in parts))

    def among(self, values: Ints) -> RowKernel:
        """Return the channel of some values, relative to the largest entries of these values."""
        return RowKernel(self.matrix[values])

    @classmethod
    def of(cls, matrix: Floats, relative: Floats, log_relative: Floats, loss: Floats) -> RowKernel:
        """Make a kernel whose entries relative to the column maxima are known better than W."""
        kernel = RowKernel(matrix)
        kernel.relative, kernel.log_relative, kernel.loss = relative, log_relative, loss
        return kernel

    @cached_property
    def thresholds(self) -> Thresholds:
        """Integer thresholds, from which samplers draw."""
        from fastpriv._sampling.thresholds import LawThresholds

        return LawThresholds(self.matrix)

    def information(self, joint: Floats) -> float:
        """Return I(S; Y | L) times the total of ``joint[l, s]``, a multiple of P(L = l, S = s)."""
        from fastpriv._matrices.information import in_range  # which loads the kernels
        from fastpriv.kernels import factor_information

        given = np.ascontiguousarray(joint)
        value = in_range(lambda scale: factor_information(given, scale * self.matrix))
        if value == 0.0:  # or less than the smallest double
            kinds = np.unique(self.matrix, axis=0, return_inverse=True)[1].reshape(-1)
            told = (given > 0.0) @ np.eye(kinds.max() + 1, dtype=np.int64)[kinds]
            return LEAST if ((told > 0).sum(axis=1) > 1).any() else 0.0
        return value

    def exported(self, n: int) -> Floats:
        """Return the matrix that a product of n records exports."""
        return self.matrix

    def largest_ratio(self) -> tuple[float, int, int]:
        """Return the largest log-ratio, and two values (s, t) that have it."""
        s, t = np.unravel_index(self.log_ratios.argmax(), self.log_ratios.shape)
        return float(self.log_ratios[s, t]), int(s), int(t)

    def revealing_output(self, s: int, t: int) -> int:
        """Return the output with the largest W[s, y] / W[t, y]."""
        top, seen = self.matrix[s], self.matrix[s] > 0
        logs = log_ratio(np.where(seen, top, 1.0), np.where(seen, self.matrix[t], 1.0))
        return int(np.where(seen, logs, -math.inf).argmax())

    def likeliest(self, values: Ints) -> Ints:
        """Return the likeliest output for each value."""
        return np.asarray(self.matrix.argmax(axis=1)[values])

    def causes(self, outputs: Ints) -> Ints:
        """Return the value with the largest probability of each output."""
        return np.asarray(self.matrix.argmax(axis=0)[outputs])


class Symmetric(RowKernel):
    """The m-ary symmetric channel R_epsilon (Wang-Ying-Zhang 2015, eq. (27) for one record).

    Besides the matrix it keeps ``off`` = b, the probability of each wrong value, and ``gap`` =
    a - b, because at small epsilon the difference of the rounded a and b has lost most digits.
    """

    def __init__(self, m: int, epsilon: float) -> None:
        self.m, self.epsilon = m, epsilon
        r = math.exp(-epsilon)
        total = 1.0 + (m - 1) * r
        self.stay, self.off = 1.0 / total, r / total
        # Less than the smallest double is not nothing.
        self.gap = max(-math.expm1(-epsilon) / total, min(epsilon, LEAST))

    @property
    def shape(self) -> tuple[int, int]:
        """Number of values in and out."""
        return self.m, self.m

    @cached_property
    def matrix(self) -> Floats:  # type: ignore[override]
        """The m x m matrix: ``stay`` on the diagonal, ``off`` beside it."""
        check.fits(
            self.m**2, "the matrix of one record", "use records of fewer values", check.MAX_MATRIX
        )
        matrix = np.full((self.m, self.m), self.off)
        np.fill_diagonal(matrix, self.stay)
        return matrix

    @cached_property
    def loss(self) -> Floats:
        """1 - e^-epsilon beside the diagonal."""
        return -math.expm1(-self.epsilon) * (1.0 - np.eye(self.m))

    @cached_property
    def relative(self) -> Floats:
        """e^-epsilon beside the diagonal."""
        return np.where(np.eye(self.m) > 0, 1.0, math.exp(-self.epsilon))

    @cached_property
    def log_relative(self) -> Floats:
        """-epsilon beside the diagonal."""
        return -self.epsilon * (1.0 - np.eye(self.m))

    @cached_property
    def log_ratios(self) -> Floats:
        """Epsilon between any two values, exactly."""
        return self.epsilon * (1.0 - np.eye(self.m))

    @property
    def level(self) -> float:
        """Epsilon, or 0 for a single value."""
        return float(self.log_ratios.max())

    @cached_property
    def thresholds(self) -> Thresholds:
        """Integer thresholds with a ratio that is rounded down."""
        from fastpriv._sampling.thresholds import SymmetricThresholds

        return SymmetricThresholds(self.m, self.epsilon)

    def information(self, joint: Floats) -> float:
        """Return I(S; Y | L) times the total of ``joint[l, s]``, a multiple of P(L = l, S = s)."""
        from fastpriv._matrices.information import in_range  # which loads the kernels
        from fastpriv.kernels import symmetric_information

        given = np.ascontiguousarray(joint)
        value = in_range(lambda c: symmetric_information(given, c * self.off, c * self.gap))
        if value == 0.0 and self.gap > 0.0:  # or less than the smallest double
            return LEAST if ((given > 0.0).sum(axis=1) > 1).any() else 0.0
        return value

    def among(self, values: Ints) -> RowKernel:
        """Return the channel of some values: all others come out equally likely."""
        near = np.isin(np.arange(self.m), values)
        parts = ((self.relative, 1.0), (self.log_relative, 0.0), (self.loss, 0.0))
        return RowKernel.of(
            self.matrix[values], *(np.where(near, part[values], even) for part, even in parts)
        )

    def largest_ratio(self) -> tuple[float, int, int]:
        """Return epsilon, for any two values."""
        return (self.epsilon, 0, 1) if self.m > 1 else (0.0, 0, 0)

    def revealing_output(self, s: int, t: int) -> int:
        """Return the value itself."""
        return s

    def likeliest(self, values: Ints) -> Ints:
        """Return the values themselves."""
        return values

    def causes(self, outputs: Ints) -> Ints:
        """Return the outputs themselves."""
        return outputs

    def exported(self, n: int) -> Floats:
        """Return the matrix rounded inwards, for a product of n records."""
        return Symmetric(self.m, inner_level(self.epsilon, n, self.m)).matrix

    @property
    def mixing(self) -> float:
        """The c in v <- v + c (sum - m v), which applies R to the record's axis."""
        return self.off

    @property
    def unmixing(self) -> float:
        """The c in v <- v + c (sum - m v), which applies the inverse of R.

        Near epsilon 0, R keeps only the sum. Then only a uniform distribution has an inverse, for
        any c.
        """
        if self.epsilon < 1e-300:
            return 0.0
        return math.exp(-self.epsilon) / math.expm1(-self.epsilon)


class RowKernels(Sequence[RowKernel]):
    """The channels of all records: the distinct ones, and which of them each record uses."""

    def __init__(self, distinct: Sequence[RowKernel], assignment: Ints) -> None:
        self.distinct = tuple(distinct)
        self.assignment = assignment

    @classmethod
    def symmetric(cls, sizes: Sequence[int], epsilon: float) -> RowKernels:
        """Return R_epsilon on records with the given numbers of values."""
        values, assignment = distinct_sizes(sizes)
        return cls([Symmetric(m, epsilon) for m in values], assignment)

    def __len__(self) -> int:
        return len(self.assignment)

    def __getitem__(self, i: int) -> RowKernel:  # type: ignore[override]
        return self.distinct[int(self.assignment[i])]

    def replaced(self, i: int, kernel: RowKernel) -> RowKernels:
        """Return the same kernels with another one at record ``i``."""
        assignment = self.assignment.copy()
        assignment[i] = len(self.distinct)
        return RowKernels([*self.distinct, kernel], assignment)

    def part(self, rows: Sequence[int] | Ints) -> RowKernels:
        """Return the kernels of some records, in the given order."""
        used, assignment = np.unique(self.assignment[np.asarray(rows)], return_inverse=True)
        return RowKernels([self.distinct[k] for k in used.tolist()], assignment.reshape(-1))

    def groups(self) -> Iterator[tuple[RowKernel, Ints]]:
        """Yield every distinct kernel with the records that use it."""
        yield from zip(self.distinct, self._users, strict=True)

    @cached_property
    def _users(self) -> list[Ints]:
        """Rows that use each kernel, in order. Cost O(n log n), however many kernels."""
        order = np.argsort(self.assignment, kind="stable")
        starts = np.arange(1, len(self.distinct))
        return np.split(order, np.searchsorted(self.assignment[order], starts))

    @property
    def sizes_in(self) -> tuple[int, ...]:
        """Number of input values of each record."""
        return self._sizes(0)

    @property
    def sizes_out(self) -> tuple[int, ...]:
        """Number of output values of each record."""
        return self._sizes(1)

    def _sizes(self, side: int) -> tuple[int, ...]:
        sides = np.array([kernel.shape[side] for kernel in self.distinct])
        sizes: list[int] = sides[self.assignment].tolist()
        return tuple(sizes)


def distinct_sizes(sizes: Sequence[int]) -> tuple[list[int], Ints]:
    """Return the distinct sizes of records, and which of them each record has."""
    values = sorted(set(sizes))
    if len(values) == 1:
        return values, np.zeros(len(sizes), dtype=np.int64)
    return values, np.searchsorted(values, np.asarray(sizes))


def distinct(
    items: Iterable[ArrayLike], load: Callable[[ArrayLike, int], Floats], what: str
) -> tuple[list[Floats], Ints]:
    """Return the distinct arrays among ``items``, and which of them each item is.

    Items are compared by identity first, which is enough for a list such as ``[p] * n``. New items
    are checked by ``load(item, i)`` and compared by value.
    """
    # Listing keeps the items alive, so that no two of them share an id.
    kept = check.items(items, what, "one item per row")
    if not kept or isinstance(items, Mapping):
        raise InvalidInput(
            f"{what} must be a sequence with one item per row; got {described(items)}."
        )
    by_object: dict[int, int] = {}
    by_value: dict[tuple[tuple[int, ...], bytes], int] = {}
    arrays: list[Floats] = []
    assignment = np.empty(len(kept), dtype=np.int64)
    for i, item in enumerate(kept):
        k = by_object.get(id(item))
        if k is None:
            array = load(item, i)
            k = by_value.setdefault((array.shape, array.tobytes()), len(arrays))
            if k == len(arrays):
                arrays.append(array)
            by_object[id(item)] = k
        assignment[i] = k
    return arrays, assignment


class TiltedRow(RowKernel):
    """One record of a tilted product distribution, W[s, y] = q(y) R[s, y] / (R q)(s).

    Its logarithms are computed from epsilon and from differences of q. Logarithms of the rounded
    matrix would lose most digits at small epsilon.
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
                masses = np.logaddexp.reduce(np.log(law) + kernel.log_relative, axis=1)
            logs = kernel.log_relative - (masses - masses[least])[:, None]
        else:
            apart = kernel.gap * (law - law[least]) / float(home[least])
            logs = kernel.log_relative - np.log1p(apart)[:, None]
        super().__init__(matrix)
        self.logs = logs
        #: Bound on the error of ``log_relative``, in which two terms may cancel.
        self.log_error = roundoff(16.0) * float(np.abs(logs).max())
        self.occurs = law > 0.0
        self.base, self._epsilon = law, kernel.epsilon
        #: Bound on the relative error of the entries of the matrix.
        self.error = roundoff(len(law) + 32)

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
        logs = self.logs[:, self.occurs]
        return np.asarray((logs[:, None] - logs[None]).max(axis=2))

    @property
    def level(self) -> float:
        """Largest of the log-ratios."""
        return float(self.log_ratios.max())

    @cached_property
    def log_relative(self) -> Floats:
        """Log of W[s, y] / max W[., y]."""
        return np.where(self.occurs, self.logs - self.logs.max(axis=0), -math.inf)

    def among(self, values: Ints) -> RowKernel:
        """Return the channel of some values, from the logarithms."""
        logs = self.logs[values]
        logs = np.where(self.occurs, logs - logs.max(axis=0), -math.inf)
        return RowKernel.of(self.matrix[values], np.exp(logs), logs, -np.expm1(logs))

    @cached_property
    def relative(self) -> Floats:
        """W[s, y] / max W[., y]; 0 if y has probability zero."""
        return np.asarray(np.exp(self.log_relative))

    @cached_property
    def loss(self) -> Floats:
        """1 - near, without cancellation; 1 if y has probability zero."""
        return np.asarray(-np.expm1(self.log_relative))


def draw_rows(kernels: RowKernels, rows: Codes, source: Source) -> Codes:
    """Send every record of every database through its kernel, independently of the others."""
    if len(kernels.distinct) == 1:
        return kernels.distinct[0].thresholds.draw(rows, source)
    widest = max(kernel.shape[1] for kernel in kernels.distinct)
    out = np.empty(rows.shape, dtype=fitting(rows.dtype, widest))
    step = max(1, _BLOCK // rows.shape[1])
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        for kernel, which in kernels.groups():
            out[part, which] = kernel.thresholds.draw(rows[part, which], source)
    return out
