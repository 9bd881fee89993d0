"""Estimates of true counts from released ones, and their variances.

Counts are arrays with an axis for each part of a record that was randomised by itself. On one axis
with matrix W let V be the inverse. The count of value t is estimated by the sum of V[y, t] over
released values y. A record that held x adds Q[x, t] - [x = t] to its variance, where
Q = W (V * V) with the product * taken entry by entry. Over several axes inverses and Q multiply.
Both are therefore applied one axis at a time, and no matrix over whole records is formed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property, reduce

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.validation import Floats
from fastpriv._structure.rows import RowKernel, Symmetric
from fastpriv.channels import AbstractChannel
from fastpriv.errors import InvalidInput, TooLarge
from fastpriv.releasing.domain import COLUMNS, TABLE, Digest, Digits, Domain

#: A choice of columns, by their places in the domain.
Places = tuple[int, ...]

#: Condition numbers beyond which a solution is mostly amplified rounding and noise.
_CONDITION = 1e10
#: Largest matrix that is inverted, by its number of rows.
_INVERTED = 4096
#: Records counted at a time: wide integers are formed of no more.
_CHUNK = 1 << 20
#: Most steps of the iterative Bayesian update.
_STEPS = 10_000
#: Total change of the distribution at which the update stops.
_STILL = 1e-10


class Axis:
    """A part of a record that was randomised by itself, through a matrix."""

    def __init__(self, matrix: Floats) -> None:
        self.matrix, self.inverse = matrix, _inverse(matrix)
        self.squares = matrix @ self.inverse**2
        self.own, self.smallest = np.diag(self.squares), self.squares.min(axis=0)

    def estimate(self, counts: Floats, axis: int) -> Floats:
        """Apply the inverse to one axis of some counts."""
        return _along(counts, self.inverse, axis)

    def spread(self, counts: Floats, axis: int) -> Floats:
        """Apply Q to one axis of some counts."""
        return _along(counts, self.squares, axis)

    def forward(self, distribution: Floats, axis: int) -> Floats:
        """Multiply one axis of a distribution by the matrix."""
        return _along(distribution, self.matrix, axis)

    def backward(self, weights: Floats, axis: int) -> Floats:
        """Average weights of outputs over the output distribution of each value of one axis."""
        return _along(weights, self.matrix.T, axis)

    def grouped(self, counts: Floats, groups: Floats) -> tuple[Floats, Floats]:
        """Estimate counts of groups of values and their variances; groups[x, t] = [x is in t]."""
        solved = self.inverse @ groups
        spread = self.matrix @ solved**2 - groups
        floor = counts.sum() * np.maximum(spread.min(axis=0), 0.0)
        return counts @ solved, np.maximum(counts @ self.inverse @ spread, floor)


class SymmetricAxis(Axis):
    """An axis of randomised response, whose matrices have the form u I + v J, J all ones.

    A value stays with probability a and becomes each other value with probability b. With
    gap = a - b, V = (I - b J)/gap and Q = (1 - 2b)/gap I + b (1 - b)/gap^2 J.
    """

    def __init__(self, m: int, off: float, gap: float) -> None:
        if gap < 1.0 / _CONDITION:
            raise InvalidInput(
                "the mechanism cannot be undone: at a level this close to 0 the released values "
                "say next to nothing about the true ones. "
                "Release at a larger epsilon."
            )
        self.off, self.gap = off, gap
        self.other = off * (1.0 - off) / gap**2
        self.own = np.full(m, (1.0 - 2.0 * off) / gap + self.other)
        self.smallest = np.full(m, self.other if m > 1 else self.own[0])

    def estimate(self, counts: Floats, axis: int) -> Floats:
        """Apply the inverse to one axis of some counts."""
        return np.asarray((counts - self.off * counts.sum(axis=axis, keepdims=True)) / self.gap)

    def spread(self, counts: Floats, axis: int) -> Floats:
        """Apply Q to one axis of some counts."""
        total = counts.sum(axis=axis, keepdims=True)
        return np.asarray((1.0 - 2.0 * self.off) / self.gap * counts + self.other * total)

    def forward(self, distribution: Floats, axis: int) -> Floats:
        """Multiply one axis of a distribution by the matrix, which is gap I + off J."""
        total = distribution.sum(axis=axis, keepdims=True)
        return np.asarray(self.gap * distribution + self.off * total)

    def backward(self, weights: Floats, axis: int) -> Floats:
        """Average weights of outputs; the matrix is symmetric."""
        return self.forward(weights, axis)


def axis_of(kernel: RowKernel) -> Axis:
    """Return the axis of values that went through a kernel."""
    return merged(kernel, kernel.m) if isinstance(kernel, Symmetric) else Axis(kernel.matrix)


def merged(kernel: Symmetric, size: int) -> Axis:
    """Return the axis of ``size`` equally large groups of values.

    A value moves to each value of its own group as often as to each value of another one, so that
    groups go through randomised response with the same gap. A single group always stays.
    """
    if size == 1:
        return SymmetricAxis(1, 0.0, 1.0)
    return SymmetricAxis(size, kernel.off * (kernel.m // size), kernel.gap)


def moments(counts: Floats, axes: Sequence[Axis]) -> tuple[Floats, Floats]:
    """Estimate true counts from released ones, and the variances of the estimates.

    The estimate of a variance is unbiased. It is raised to the smallest variance that n records
    can have, whatever values they held.
    """
    estimates = counts
    for j, axis in enumerate(axes):
        estimates = axis.estimate(estimates, j)
    variances = estimates
    for j, axis in enumerate(axes):
        variances = axis.spread(variances, j)
    variances = variances - estimates
    own = reduce(np.multiply.outer, [axis.own for axis in axes]) - 1.0
    other = reduce(np.multiply.outer, [axis.smallest for axis in axes])
    floor = counts.sum() * np.maximum(np.minimum(own, other), 0.0)
    return estimates, np.maximum(variances, floor)


def _inverse(matrix: Floats) -> Floats:
    """Invert a channel's matrix, or raise if it is singular or too large."""
    if len(matrix) > _INVERTED:
        raise TooLarge.entries(
            "the matrix to invert",
            matrix.size,
            "release fewer values, or by randomised response",
        )
    condition = float(np.linalg.cond(matrix))
    if not condition <= _CONDITION:
        raise InvalidInput(
            f"the mechanism cannot be undone: its matrix has condition number {condition:.3g}, "
            f"beyond {_CONDITION:g}. Use a mechanism whose rows differ more."
        )
    return np.asarray(np.linalg.inv(matrix), dtype=np.float64)


def _along(counts: Floats, matrix: Floats, axis: int) -> Floats:
    return np.asarray(np.moveaxis(np.tensordot(counts, matrix, ([axis], [0])), -1, axis))


class Counts:
    """How often every combination of values of some columns was released, and the digest.

    The digest has the key of the ``expected`` one; without it there is none.
    """

    def __init__(
        self, domain: Domain, choices: Sequence[Places], expected: Digest | None = None
    ) -> None:
        self.n, self._sizes = 0, domain.sizes
        self.digest = None if expected is None else Digest(expected.key)
        self._tables = {choice: np.zeros(shape_of(domain, choice)) for choice in choices}

    def add(self, digits: Digits) -> None:
        """Count more records, given by the codes of their columns."""
        self.n += len(digits)
        if self.digest is not None:
            self.digest = self.digest.plus(digits)
        for start in range(0, len(digits), _CHUNK):
            part = digits[start : start + _CHUNK]
            for choice, counts in self._tables.items():
                codes = np.zeros(len(part), dtype=np.int64)
                for j in choice:
                    codes = codes * self._sizes[j] + part[:, j].astype(np.int64)
                counts += np.bincount(codes, minlength=counts.size).reshape(counts.shape)

    def include(self, other: Counts) -> None:
        """Add counts of other records, for the same choices."""
        self.n += other.n
        if self.digest is not None and other.digest is not None:
            self.digest = self.digest.joined(other.digest)
        for choice, counts in self._tables.items():
            counts += other[choice]

    def __getitem__(self, choice: Places) -> Floats:
        return self._tables[choice]

    def __contains__(self, choice: Places) -> bool:
        return choice in self._tables


def shape_of(domain: Domain, choice: Places) -> tuple[int, ...]:
    """Return the number of values of each chosen column."""
    return tuple(domain.sizes[j] for j in choice)


class Estimator:
    """Undoes a mechanism for the counts of chosen columns."""

    def __init__(self, channel: AbstractChannel, unit: str, domain: Domain) -> None:
        self._domain = domain
        rows = channel.kernels
        if unit == TABLE and (rows is None or len(rows.distinct) > 1):
            raise InvalidInput(
                "mechanism must randomise all records alike and each independently; "
                f"{channel!r} does not. Frequencies cannot be estimated from it."
            )
        self._by_column = unit == COLUMNS and rows is not None
        if rows is None:
            self._rows = [RowKernel(np.asarray(channel.nearest_matrix()))]
        else:
            self._rows = list(rows) if self._by_column else [rows[0]]

    def moments(self, counts: Floats, choice: Places) -> tuple[Floats, Floats]:
        """Estimate true counts of the chosen columns, and the variances of the estimates.

        ``counts`` are released counts of the columns that :meth:`needs` returns.
        """
        if self._is_symmetric or self._by_column:
            shape = counts.shape if self._by_column else (-1,)
            estimates, variances = moments(counts.reshape(shape), self._axes(choice))
            return estimates.reshape(-1), variances.reshape(-1)
        if choice == self.everything:
            return moments(counts.reshape(-1), [self._whole])
        return self._whole.grouped(counts.reshape(-1), self._groups(choice))

    def needs(self, choice: Places) -> Places:
        """Return the columns whose joint counts an estimate for the chosen ones needs.

        A general mechanism on whole records needs all columns.
        """
        return choice if self._is_symmetric or self._by_column else self.everything

    @property
    def everything(self) -> Places:
        """All columns."""
        return tuple(range(len(self._domain.sizes)))

    @property
    def _is_symmetric(self) -> bool:
        return not self._by_column and isinstance(self._rows[0], Symmetric)

    def _axes(self, choice: Places) -> list[Axis]:
        if self._by_column:
            return [axis_of(self._rows[j]) for j in choice]
        # Records that agree on the chosen columns are groups of equal size.
        assert isinstance(self._rows[0], Symmetric)
        return [merged(self._rows[0], math.prod(shape_of(self._domain, choice)))]

    @cached_property
    def _whole(self) -> Axis:
        return axis_of(self._rows[0])

    def _groups(self, choice: Places) -> Floats:
        """Indicators of the combinations of chosen values, for every record."""
        digits = np.indices(self._domain.sizes).reshape(len(self._domain.sizes), -1)
        codes = np.zeros(digits.shape[1], dtype=np.int64)
        for j in choice:
            codes = codes * self._domain.sizes[j] + digits[j]
        return np.eye(math.prod(shape_of(self._domain, choice)))[codes]

    def likeliest(self, counts: Floats, choice: Places) -> Floats:
        """Return the counts of largest likelihood, by the iterative Bayesian update.

        With released counts c of n records, every step multiplies the distribution p of the true
        values by W (c / (p W)) / n, which never lowers the likelihood (Agrawal and Aggarwal 2001).
        The counts are non-negative, add up to n, and are biased.
        """
        if not (self._by_column or self._is_symmetric) and choice != self.everything:
            raise InvalidInput(
                "method must be 'unbiased' for some columns of a general mechanism. Use it, or "
                "estimate all columns."
            )
        shape = counts.shape if self._by_column else (-1,)
        seen, n = counts.reshape(shape), float(counts.sum())
        axes = self._axes(choice) if self._by_column or self._is_symmetric else [self._whole]
        distribution = np.full(seen.shape, 1.0 / seen.size)
        for _ in range(_STEPS):
            forward = distribution
            for j, axis in enumerate(axes):
                forward = axis.forward(forward, j)
            ratio = np.divide(seen, n * forward, out=np.zeros_like(seen), where=forward > 0.0)
            for j, axis in enumerate(axes):
                ratio = axis.backward(ratio, j)
            before, distribution = distribution, distribution * ratio
            if float(np.abs(distribution - before).sum()) < _STILL:
                break
        return np.asarray(n * distribution).reshape(-1)


def expected_errors(
    channel: AbstractChannel, unit: str, domain: Domain, n: int
) -> dict[object, float]:
    """Return the standard error of a count of each column, before anything is drawn."""
    places = enumerate(domain.columns)
    return {name: expected_error(channel, unit, domain, n, (j,)) for j, name in places}


def expected_error(
    channel: AbstractChannel, unit: str, domain: Domain, n: int, choice: Places
) -> float:
    """Return the standard error of a joint count of the chosen columns, before anything is drawn.

    It is for n records whose values are equally common; infinite if the mechanism cannot be undone.
    """
    with suppress(InvalidInput, TooLarge):
        estimator = Estimator(channel, unit, domain)
        start = shape_of(domain, estimator.needs(choice))
        check.fits(math.prod(start), "the counts", "choose fewer columns")
        uniform = np.full(start, n / math.prod(start))
        return math.sqrt(float(estimator.moments(uniform, choice)[1].max()))
    return math.inf
