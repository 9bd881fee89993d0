"""How often each value occurred before the randomisation, with intervals."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpriv._core import validation as check
from fastpriv._core.validation import Floats
from fastpriv._structure.rows import RowKernel, Symmetric
from fastpriv.channels import AbstractChannel
from fastpriv.channels.rowwise import row_kernels
from fastpriv.errors import InvalidInput, did_you_mean
from fastpriv.measures.arguments import as_channel
from fastpriv.releasing import domain as domains
from fastpriv.releasing import plan as plans
from fastpriv.releasing.domain import Digits, Domain
from fastpriv.releasing.plan import COLUMNS, TABLE, Plan
from fastpriv.releasing.release import Release, open_table, undeclared
from fastpriv.releasing.report import ReleaseReport
from fastpriv.releasing.unmixing import Axis, axis_of, merged, moments

__all__ = ["Frequencies", "Marginal", "estimate_frequencies"]

#: Most values of a record whose frequencies are listed.
_LISTED = 1 << 20
#: Records counted at a time: wide integers are formed of no more.
_CHUNK = 1 << 20
#: Values in the table that stands for a marginal.
_SHOWN = 12


@dataclass(frozen=True, repr=False)
class Marginal:
    """Estimated counts of the values of a column, or of whole records.

    Attributes
    ----------
    values : sequence
        The values; tuples of them for records.
    estimates : ndarray
        Unbiased estimates of their true counts. They add up to the number of records and may be
        negative; see ``projected``.
    standard_errors : ndarray
        Estimated standard deviations of the estimates.
    lower, upper : ndarray
        Ends of the confidence intervals, within 0 and the number of records.
    """

    values: Sequence[Any]
    estimates: Floats
    standard_errors: Floats
    lower: Floats
    upper: Floats

    def projected(self) -> Floats:
        """Return the nearest counts that are non-negative and add up to the number of records.

        Closer to the truth in mean square, and no longer unbiased.
        """
        total = float(self.estimates.sum())
        falling = np.sort(self.estimates)[::-1]
        excess = (np.cumsum(falling) - total) / np.arange(1, len(falling) + 1)
        kept = np.flatnonzero(falling > excess)[-1]
        return np.asarray(np.maximum(self.estimates - excess[kept], 0.0))

    def to_dict(self) -> dict[str, list[Any]]:
        """Return plain lists, one entry per value."""
        return {
            "values": [list(v) if isinstance(v, tuple) else v for v in self.values],
            "estimates": self.estimates.tolist(),
            "standard errors": self.standard_errors.tolist(),
            "lower": self.lower.tolist(),
            "upper": self.upper.tolist(),
        }

    def lines(self, title: str, most: int) -> list[str]:
        """Return a table in words, of the first ``most`` values."""
        shown = ["(missing)" if v is None else str(v) for v in self.values[:most]]
        width = max(map(len, [title, *shown])) + 2
        heads = "".join(f"{head:>12}" for head in ("count", "std. error", "lower", "upper"))
        found = [f"{title:<{width}}{heads}"]
        numbers = (self.estimates, self.standard_errors, self.lower, self.upper)
        for value, *row in zip(shown, *(part[:most] for part in numbers), strict=True):
            found.append(f"{value:<{width}}" + "".join(f"{number:>12.1f}" for number in row))
        rest = len(self.values) - len(shown)
        return [*found, f"... and {rest} more values"] if rest else found

    def __repr__(self) -> str:
        return "\n".join(self.lines("value", _SHOWN))


@dataclass(frozen=True, repr=False)
class Frequencies:
    """Estimated frequencies of every column, ``found[column]``, and of whole ``records``.

    ``records`` is None where a record has more than 2^20 values.

    Examples
    --------
    >>> import fastpriv as fp
    >>> import numpy as np
    >>> released = fp.release(np.repeat([0, 1], [700, 300]), domain=2, epsilon=3.0, rng=1)
    >>> fp.estimate_frequencies(released)
    Frequencies(1000 records, 1 columns, 95% intervals)
    """

    n: int
    confidence: float
    columns: dict[Hashable, Marginal]
    records: Marginal | None

    def __getitem__(self, column: Hashable) -> Marginal:
        if column not in self.columns:
            hint = did_you_mean(column, self.columns)
            raise InvalidInput(f"there is no column {column!r:.60}{hint}; see .columns")
        return self.columns[column]

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and lists."""
        return {
            "records": self.n,
            "confidence": self.confidence,
            "columns": {str(name): found.to_dict() for name, found in self.columns.items()},
        }

    def __repr__(self) -> str:
        level = f"{100 * self.confidence:g}%"
        beyond = sum(
            int(((c.estimates < 0.0) | (c.estimates > self.n)).sum()) for c in self.columns.values()
        )
        note = f"; {beyond} estimates outside 0 .. {self.n}, see projected()" if beyond else ""
        return (
            f"Frequencies({self.n} records, {len(self.columns)} columns, {level} intervals{note})"
        )

    def __str__(self) -> str:
        lines = [f"{self.n} records, {100 * self.confidence:g}% intervals"]
        for name, column in self.columns.items():
            lines += ["", *column.lines(str(name), len(column.values))]
        return "\n".join(lines)


def estimate_frequencies(
    released: Any,
    mechanism: AbstractChannel | ReleaseReport | None = None,
    *,
    domain: Any = None,
    confidence: float = 0.95,
    simultaneous: bool = False,
) -> Frequencies:
    """Estimate how often each value occurred in the table before it was released.

    If g solves W g = f for the mechanism W, then g(y), added over the released records y, has the
    mean f(x), added over the true ones: with f the indicator of a value, an unbiased estimate of
    its count. Its variance for a fixed table is the sum over records of (W g^2)(x) - f(x)^2, which
    is again linear in the true counts and estimated without bias in the same way. For E_d on m
    values, with chances a to stay and b of each other value and c of n released records holding
    the value, the estimate is (c - n b)/(a - b), and a record adds a (1-a)/(a-b)^2 to its variance
    if it held the value and b (1-b)/(a-b)^2 if not.

    Parameters
    ----------
    released : Release, or a table as :func:`fastpriv.release` takes
        The released table. A Release knows its mechanism and domain.
    mechanism : ReleaseReport or channel
        What the table went through: the report of the release, or the channel of a record
        (``HammingChannel(1, m, epsilon)`` for whole records,
        ``HammingChannel(columns, sizes, epsilon)`` with ``per_column``).
    domain : mapping, path of a JSON file, or sizes
        As declared for the release; a report knows it.
    confidence : float
        Chance that an interval covers the true count. It is over the randomisation alone, the
        table being what it was, and approximate: by the normal law, good where some tens of
        released records hold the value.
    simultaneous : bool
        Widen the intervals (Bonferroni) so that all values of a column are covered at once.

    Returns
    -------
    Frequencies
        For every column and for whole records.

    Raises
    ------
    InvalidInput
        When the mechanism cannot be undone: level 0, a condition number beyond 1e10, or records
        that were not randomised alike.

    Notes
    -----
    Cost O(records), then O(values) for E_d and O(m^3) for one matrix on m values of a record.

    Examples
    --------
    >>> import fastpriv as fp
    >>> import numpy as np
    >>> truth = np.repeat([0, 1, 2], [6_000, 3_000, 1_000])
    >>> released = fp.release(truth, domain=3, epsilon=2.0, rng=7)
    >>> found = fp.estimate_frequencies(released)[0]
    >>> bool((found.lower <= [6_000, 3_000, 1_000]).all())
    True
    """
    confidence = check.real(confidence, "confidence", least=0.0, most=1.0)
    if isinstance(released, Release):
        mechanism = released.report if mechanism is None else mechanism
        released = released.table
    source = open_table(released)
    if isinstance(mechanism, ReleaseReport):
        domain = mechanism.domain if domain is None else domain
        mechanism = mechanism.channel
    if mechanism is None:
        raise InvalidInput("say what the table went through: mechanism= a channel or a report")
    if domain is None:
        raise domains.refuse(source.columns)
    declared = domains.read(domain)
    undeclared(source, declared)
    plan = plans.given(as_channel(mechanism), declared, source.rows)
    counts = _Counts(declared)
    for digits in source.chunks(declared):
        counts.add(digits)
    if not counts.n:
        raise InvalidInput("the table has no records, so there is nothing to estimate")
    estimator = _Estimator(plan, counts)
    interval = _Interval(counts.n, confidence, simultaneous)
    marginals = {
        name: interval.around(declared.values[j], *estimator.column(j))
        for j, name in enumerate(declared.columns)
    }
    whole = None
    if counts.records is not None:
        whole = interval.around(tuple(product(*declared.values)), *estimator.records())
    return Frequencies(counts.n, confidence, marginals, whole)


class _Counts:
    """How often every value of every column was released, and every record if not too many."""

    def __init__(self, domain: Domain) -> None:
        self.n, self._domain = 0, domain
        self.columns = [np.zeros(size) for size in domain.sizes]
        self.records = np.zeros(domain.size) if domain.size <= _LISTED else None

    def add(self, digits: Digits) -> None:
        self.n += len(digits)
        for start in range(0, len(digits), _CHUNK):
            part = digits[start : start + _CHUNK]
            for j, counts in enumerate(self.columns):
                counts += _bins(part[:, j], len(counts))
            if self.records is not None:
                self.records += _bins(self._domain.records(part), len(self.records))


def _bins(codes: NDArray[Any], size: int) -> NDArray[np.int64]:
    return np.bincount(codes.astype(np.int64), minlength=size)


class _Estimator:
    """Estimates and variances of true counts, in the structure of the mechanism."""

    def __init__(self, plan: Plan, counts: _Counts) -> None:
        self._sizes, self._counts = plan.domain.sizes, counts
        kernels = row_kernels(plan.channel)
        if plan.unit == TABLE and (kernels is None or len(kernels.distinct) > 1):
            raise InvalidInput(
                "frequencies can be estimated only where all records were randomised alike, each "
                f"by itself, which {plan.channel!r} does not do"
            )
        self._by_column = plan.unit == COLUMNS and kernels is not None
        if kernels is None:
            self._kernels = [RowKernel(np.asarray(plan.channel.matrix()))]
        else:
            self._kernels = list(kernels) if self._by_column else [kernels[0]]

    def column(self, j: int) -> tuple[Floats, Floats]:
        counts, size = self._counts.columns[j], self._sizes[j]
        if self._by_column:
            return moments(counts, [axis_of(self._kernels[j])])
        if isinstance(self._kernels[0], Symmetric):
            return moments(counts, [merged(self._kernels[0], size)])
        before, after = math.prod(self._sizes[:j]), math.prod(self._sizes[j + 1 :])
        groups = np.tile(np.repeat(np.eye(size), after, axis=0), (before, 1))
        return self._axes[0].grouped(self._records(), groups)

    def records(self) -> tuple[Floats, Floats]:
        shape = self._sizes if self._by_column else (-1,)
        estimates, variances = moments(self._records().reshape(shape), self._axes)
        return estimates.reshape(-1), variances.reshape(-1)

    @cached_property
    def _axes(self) -> list[Axis]:
        return [axis_of(kernel) for kernel in self._kernels]

    def _records(self) -> Floats:
        assert self._counts.records is not None  # a matrix on records is smaller than the limit
        return self._counts.records


class _Interval:
    """Normal intervals, within the counts that are possible."""

    def __init__(self, n: int, confidence: float, simultaneous: bool) -> None:
        self._n, self._miss, self._simultaneous = n, 1.0 - confidence, simultaneous

    def around(self, values: Sequence[Any], estimates: Floats, variances: Floats) -> Marginal:
        from scipy.special import ndtri

        miss = self._miss / (len(values) if self._simultaneous else 1)
        errors = np.sqrt(variances)
        reach = -ndtri(miss / 2.0) * errors if miss > 0.0 else np.full(len(values), math.inf)
        lower, upper = (np.clip(e, 0.0, self._n) for e in (estimates - reach, estimates + reach))
        return Marginal(values, estimates, errors, lower, upper)
