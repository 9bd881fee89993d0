"""Estimates of true counts and their variances, in the structure of the mechanism."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property

import numpy as np

from fastpriv._core.validation import Floats
from fastpriv._structure.rows import RowKernel, Symmetric
from fastpriv.errors import InvalidInput, TooLarge
from fastpriv.releasing.digest import Digest
from fastpriv.releasing.domain import Digits, Domain
from fastpriv.releasing.plan import COLUMNS, TABLE, Plan
from fastpriv.releasing.unmixing import Axis, axis_of, merged, moments

#: A choice of columns, by their places in the domain.
Places = tuple[int, ...]

#: Records counted at a time: wide integers are formed of no more.
_CHUNK = 1 << 20
#: Most steps of the iterative Bayesian update, and the change at which it stops.
_STEPS, _STILL = 10_000, 1e-10


class Counts:
    """How often every combination of values of some columns was released, and their digest.

    The digest is taken under the key of the one that is given, if any.
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
        """Add what was counted elsewhere, of the same choices."""
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
    """Return the number of values of each of the chosen columns."""
    return tuple(domain.sizes[j] for j in choice)


class Estimator:
    """Undoes a mechanism for the counts of chosen columns."""

    def __init__(self, plan: Plan) -> None:
        self._domain = plan.domain
        rows = plan.channel.kernels
        if plan.unit == TABLE and (rows is None or len(rows.distinct) > 1):
            raise InvalidInput(
                "frequencies can be estimated only where all records were randomised alike, each "
                f"by itself, which {plan.channel!r} does not do"
            )
        self._by_column = plan.unit == COLUMNS and rows is not None
        if rows is None:
            self._rows = [RowKernel(np.asarray(plan.channel.nearest_matrix()))]
        else:
            self._rows = list(rows) if self._by_column else [rows[0]]

    def moments(self, counts: Floats, choice: Places) -> tuple[Floats, Floats]:
        """Estimate true counts of the chosen columns, and the variances of the estimates.

        ``counts`` are released counts of the same columns. A general mechanism on whole records
        needs those of all columns: see :meth:`needs`.
        """
        if self._is_symmetric or self._by_column:
            shape = counts.shape if self._by_column else (-1,)
            estimates, variances = moments(counts.reshape(shape), self._axes(choice))
            return estimates.reshape(-1), variances.reshape(-1)
        if choice == self.everything:
            return moments(counts.reshape(-1), [self._whole])
        return self._whole.grouped(counts.reshape(-1), self._groups(choice))

    def needs(self, choice: Places) -> Places:
        """Return the columns whose joint counts an estimate for the chosen ones starts from."""
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

        Every step multiplies the law p of the true values by W (c / (p W)) / n, which never
        lowers the likelihood (Agrawal and Aggarwal 2001). The counts are non-negative and add up
        to n; they are biased.
        """
        if not (self._by_column or self._is_symmetric) and choice != self.everything:
            raise InvalidInput(
                "the Bayesian update of some columns of a general mechanism is not offered; "
                "estimate all columns, or use the unbiased estimates"
            )
        shape = counts.shape if self._by_column else (-1,)
        seen, n = counts.reshape(shape), float(counts.sum())
        axes = self._axes(choice) if self._by_column or self._is_symmetric else [self._whole]
        law = np.full(seen.shape, 1.0 / seen.size)
        for _ in range(_STEPS):
            forward = law
            for j, axis in enumerate(axes):
                forward = axis.forward(forward, j)
            ratio = np.divide(seen, n * forward, out=np.zeros_like(seen), where=forward > 0.0)
            for j, axis in enumerate(axes):
                ratio = axis.backward(ratio, j)
            step = law * ratio
            moved, law = float(np.abs(step - law).sum()), step
            if moved < _STILL:
                break
        return np.asarray(n * law).reshape(-1)


def expected_errors(plan: Plan, n: int) -> dict[object, float]:
    """Return the standard error that a count of each column will have, before anything is drawn.

    For a table whose column is uniform; infinite where the mechanism cannot be undone.
    """
    domain = plan.domain
    errors: dict[object, float] = dict.fromkeys(domain.columns, math.inf)
    with suppress(InvalidInput, TooLarge):
        estimator = Estimator(plan)
        for j, name in enumerate(domain.columns):
            with suppress(InvalidInput, TooLarge):
                start = shape_of(domain, estimator.needs((j,)))
                uniform = np.full(start, n / math.prod(start))
                errors[name] = math.sqrt(float(estimator.moments(uniform, (j,))[1].max()))
    return errors
