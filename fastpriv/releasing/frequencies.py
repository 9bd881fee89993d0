"""How often each value occurred before the randomisation, with intervals."""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpriv._core import validation as check
from fastpriv._core.validation import Floats
from fastpriv._text.tabular import Tabular
from fastpriv.channels import AbstractChannel, ColumnsChannel, RecordChannel, SupportChannel
from fastpriv.errors import EstimateWarning, InvalidInput, TooLarge, described, did_you_mean, short
from fastpriv.measures.inputs import as_channel
from fastpriv.releasing import domain as domains
from fastpriv.releasing import plan as plans
from fastpriv.releasing.digest import Digest
from fastpriv.releasing.domain import Domain
from fastpriv.releasing.estimator import Counts, Estimator, Places
from fastpriv.releasing.local.estimating import Tallies, tallied
from fastpriv.releasing.release import Release, undeclared
from fastpriv.releasing.report import ReleaseReport
from fastpriv.releasing.tables.dask import DaskFrame
from fastpriv.releasing.tables.memory import Table
from fastpriv.releasing.tables.opening import open_table

__all__ = ["Frequencies", "Marginal", "estimate_frequencies"]

#: Most values of a record whose frequencies are listed.
_LISTED = 1 << 20
#: Values in the table that stands for a marginal.
_SHOWN = 12
#: Standard errors outside 0 .. n beyond which an estimate does not come from noise: for one value a
#: probability below 10^-7 by the sub-Gaussian bound exp(-t^2/2), raised for many values.
_FAR = 6.0


def _shown(value: Any) -> str:
    return "(missing)" if value is None else str(value)


@dataclass(frozen=True, repr=False)
class Marginal:
    """Estimated counts of the values of a column, or of whole records.

    Attributes
    ----------
    values : sequence
        The values; tuples of them for records.
    estimates : ndarray
        Unbiased estimates of their true counts. They may be negative; see ``projected``. They add
        up to the number of records, up to noise where reports support sets of several sizes.
    standard_errors : ndarray
        Estimated standard deviations of the estimates.
    lower, upper : ndarray
        Ends of the confidence intervals, within 0 and the number of records.
    outside : ndarray of bool
        Which estimates lie outside their own intervals: noise carried them beyond the counts that
        are possible, or a biased method moved them.
    """

    values: Sequence[Any]
    estimates: Floats
    standard_errors: Floats
    lower: Floats
    upper: Floats

    @property
    def outside(self) -> NDArray[np.bool_]:
        """Which estimates lie outside their own intervals."""
        return np.asarray((self.estimates < self.lower) | (self.estimates > self.upper))

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
            "outside": self.outside.tolist(),
        }

    def lines(self, title: str, most: int) -> list[str]:
        """Return a table in words, of the first ``most`` values."""
        shown = [_shown(v) for v in self.values[:most]]
        width = max(map(len, [title, *shown])) + 2
        heads = "".join(f"{head:>12}" for head in ("count", "std. error", "lower", "upper"))
        lines = [f"{title:<{width}}{heads}"]
        numbers = (self.outside, self.estimates, self.standard_errors, self.lower, self.upper)
        for value, out, *row in zip(shown, *(part[:most] for part in numbers), strict=True):
            word = "  outside its interval: see projected()" if out else ""
            lines.append(f"{value:<{width}}" + "".join(f"{number:>12.1f}" for number in row) + word)
        rest = len(self.values) - len(shown)
        return [*lines, f"... and {rest} more values"] if rest else lines

    def __repr__(self) -> str:
        return "\n".join(self.lines("value", _SHOWN))


@dataclass(frozen=True, repr=False)
class Frequencies(Tabular):
    """Estimated frequencies of every column, ``frequencies[column]``, and of whole ``records``.

    ``records`` are the joint counts of all columns, or of those that were chosen: then ``joint``
    is True. If no columns were chosen, they are None where a record has more than 2^20 values or a
    column became reports of a local mechanism.

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
    joint: bool = False

    def __getitem__(self, column: Hashable) -> Marginal:
        if isinstance(column, tuple) and column not in self.columns:
            if column == tuple(self.columns) and self.records is not None:
                return self.records
            raise InvalidInput(
                "these columns were not estimated jointly; ask for "
                f"columns={described(list(column))}"
            )
        if column not in self.columns:
            hint = did_you_mean(column, self.columns)
            raise InvalidInput(f"there is no column {described(column)}{hint}; see .columns")
        return self.columns[column]

    def columns_of_table(self) -> dict[str, list[Any]]:
        """Return one row for each value of each column; the joint counts if columns were chosen."""
        chosen = self.records if self.joint and self.records is not None else None
        parts = {tuple(self.columns): chosen} if chosen is not None else self.columns
        rows: dict[str, list[Any]] = {
            name: [] for name in ("column", "value", "count", "standard error", "lower", "upper")
        }
        for name, part in parts.items():
            shown = " x ".join(map(str, name)) if isinstance(name, tuple) else name
            rows["column"] += [shown] * len(part.values)
            rows["value"] += list(part.values)
            rows["count"] += part.estimates.tolist()
            rows["standard error"] += part.standard_errors.tolist()
            rows["lower"] += part.lower.tolist()
            rows["upper"] += part.upper.tolist()
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and lists; the joint counts too if columns were chosen."""
        chosen = self.records if self.joint and self.records is not None else None
        return {
            "records": self.n,
            "confidence": self.confidence,
            "columns": {str(name): column.to_dict() for name, column in self.columns.items()},
            **({} if chosen is None else {"joint": chosen.to_dict()}),
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
        if self.joint and self.records is not None and len(self.columns) > 1:
            cells = [", ".join(_shown(v) for v in record) for record in self.records.values]
            joint = replace(self.records, values=cells)
            lines += ["", *joint.lines(" x ".join(map(str, self.columns)), len(cells))]
        return "\n".join(lines)


def estimate_frequencies(
    released: Any,
    mechanism: AbstractChannel | ReleaseReport | None = None,
    *,
    domain: Any = None,
    columns: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    simultaneous: bool = False,
    method: str = "unbiased",
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
        What the table went through: the report of the release, by which the table is recognised
        (see the notes), a local mechanism such as
        :class:`fastpriv.HashingChannel` whose reports an array holds, or the channel of a record
        (``HammingChannel(1, m, epsilon)`` for whole records,
        ``HammingChannel(columns, sizes, epsilon)`` with ``per_column``).
    domain : mapping, path of a JSON file, or sizes
        As declared for the release; a report knows it.
    columns : sequence, optional
        The columns to estimate. Their cross-tabulation, the joint counts of their values, is then
        ``.records`` of the result, also ``result["a", "b"]``. By default all columns, and whole
        records while a record has at most 2^20 values.
    confidence : float
        Chance that an interval covers the true count. It is over the randomisation alone, the
        table being what it was, and approximate: by the normal law, good where some tens of
        released records hold the value.
    simultaneous : bool
        Widen the intervals (Bonferroni) so that all values of a column are covered at once.
    method : {"unbiased", "bayesian"}
        How counts are estimated: by the unbiased inverse, or by the iterative Bayesian update,
        which finds the non-negative counts of largest likelihood. Standard errors and intervals
        are those of the unbiased estimates in either case.

    Returns
    -------
    Frequencies
        For every column, and for the columns jointly.

    Raises
    ------
    InvalidInput
        When the mechanism cannot be undone: level 0, a condition number beyond 1e10, or records
        that were not randomised alike. When the table is not the one that the report is about. When
        the cross-tabulation of columns was asked for that became reports of local mechanisms.

    Warns
    -----
    EstimateWarning
        When an estimate lies more than 6 standard errors outside 0 and the number of records: the
        table did not go through this mechanism.

    Notes
    -----
    Cost O(records), then O(values) for E_d and O(m^3) for one matrix on m values of a record.

    The report of a release has the number of records and a digest of what was released. A table
    with another number or digest is refused: the original table, changed values, part of the
    records. The order of records and columns and the format do not matter. To estimate from part
    of the records on purpose, give ``report.channel`` and ``domain=report.domain`` instead of the
    report. The digest protects against mistakes, not against forgery.

    Examples
    --------
    >>> import fastpriv as fp
    >>> import numpy as np
    >>> truth = np.repeat([0, 1, 2], [6_000, 3_000, 1_000])
    >>> released = fp.release(truth, domain=3, epsilon=2.0, rng=7)
    >>> counts = fp.estimate_frequencies(released)[0]
    >>> bool((counts.lower <= [6_000, 3_000, 1_000]).all())
    True
    """
    confidence = check.real(confidence, "confidence", least=0.0, most=1.0)
    check.flag(simultaneous, "simultaneous")
    if isinstance(released, Release):
        mechanism = released.report if mechanism is None else mechanism
        released = released.table
    if isinstance(mechanism, SupportChannel) and isinstance(released, np.ndarray):
        return _of_reports(released, mechanism, domain, _Interval(confidence, simultaneous))
    source = open_table(_records(released))
    report = mechanism if isinstance(mechanism, ReleaseReport) else None
    if isinstance(mechanism, ReleaseReport):
        if domain is not None and not _same(domains.read(domain), mechanism.domain):
            raise InvalidInput("the domain is not that of the release; leave it to the report")
        domain, mechanism = mechanism.domain, mechanism.channel
    if mechanism is None:
        raise InvalidInput("say what the table went through: mechanism= a channel or a report")
    if domain is None:
        raise domains.refuse(source.columns)
    check.word(method, "method", ("unbiased", "bayesian"))
    declared = domains.read(domain)
    undeclared(source, declared)
    interval = _Interval(confidence, simultaneous)
    acting = mechanism.columns if isinstance(mechanism, RecordChannel) else mechanism
    if isinstance(acting, SupportChannel):
        acting = ColumnsChannel([acting])
    if isinstance(acting, ColumnsChannel):
        if method != "unbiased":
            raise InvalidInput("reports of local mechanisms have unbiased estimates only")
        return _of_columns(source, acting, declared, columns, interval, report)
    estimator = Estimator(plans.given(as_channel(mechanism), declared, source.rows))
    chosen = _places(declared, columns)
    singles: list[Places] = [(j,) for j in chosen]
    size = math.prod(declared.sizes[j] for j in chosen)
    if columns is not None and size > _LISTED:
        raise TooLarge.entries("the cross-tabulation", size, "choose fewer columns")
    joint = [chosen] if size <= _LISTED else []
    needed = [estimator.needs(choice) for choice in (*singles, *joint)]
    expected = None if report is None else report.digest
    counts = _counted(source, declared, list(dict.fromkeys(needed)), expected)
    _check_released(counts, report)

    def marginal(choice: Places) -> Marginal:
        released_counts = counts[estimator.needs(choice)]
        values = [declared.values[j] for j in choice]
        listed = values[0] if len(choice) == 1 and choice in singles else tuple(product(*values))
        part = interval.around(counts.n, listed, *estimator.moments(released_counts, choice))
        _warn_if_impossible(part, counts.n, [declared.columns[j] for j in choice])
        if method == "bayesian":
            part = replace(part, estimates=estimator.likeliest(released_counts, choice))
        return part

    marginals = {declared.columns[j]: marginal((j,)) for j in chosen}
    whole = marginal(chosen) if joint else None
    if whole is not None and len(chosen) == 1:
        whole = replace(whole, values=[(value,) for value in whole.values])
    return Frequencies(counts.n, confidence, marginals, whole, columns is not None)


def _records(released: Any) -> Any:
    """Return a released array of texts as records, which is what such an array stands for."""
    if not isinstance(released, np.ndarray) or released.dtype.kind != "U":
        return released
    table = released[:, None] if released.ndim == 1 else released
    return [dict(enumerate(row)) for row in table.tolist()]


def _of_reports(
    reports: Any, channel: SupportChannel, domain: Any, interval: _Interval
) -> Frequencies:
    """Estimate counts from reports as the mechanism draws them."""
    declared = domains.read(channel.k if domain is None else domain)
    if declared.sizes != (channel.k,):
        raise InvalidInput(f"the domain must be one column of {channel.k} values")
    given = channel.checked_reports(reports)
    n = len(given)
    if not n:
        raise InvalidInput("there are no reports, so there is nothing to estimate")
    part = interval.around(n, declared.values[0], *channel.moments(channel.tally(given), n))
    _warn_if_impossible(part, n, declared.columns)
    return Frequencies(n, interval.confidence, {declared.columns[0]: part}, None)


def _of_columns(
    source: Table,
    channel: ColumnsChannel,
    domain: Domain,
    columns: Sequence[Hashable] | None,
    interval: _Interval,
    report: ReleaseReport | None,
) -> Frequencies:
    """Estimate the counts of every column whose values became reports."""
    places = _places(domain, columns)
    if channel.space.sizes != domain.sizes:
        raise InvalidInput(
            f"{channel!r} is not for columns of {described(list(domain.sizes))} values"
        )
    reported = [j for j in places if isinstance(channel.columns[j], SupportChannel)]
    if columns is not None and len(places) > 1 and reported:
        raise InvalidInput(
            f"columns must have values, not reports, for a cross-tabulation; column "
            f"{described(domain.columns[reported[0]])} holds reports of a local mechanism. "
            "Estimate one column at a time, or release without mechanism="
        )
    size = math.prod(domain.sizes[j] for j in places)
    if columns is not None and len(places) > 1 and size > _LISTED:
        raise TooLarge.entries("the cross-tabulation", size, "choose fewer columns")
    expected = None if report is None else report.digest
    joint = not reported and size <= _LISTED
    counts = tallied(source, channel, domain, places, joint, expected)
    _check_released(counts, report)
    marginals = {}
    for j, both in zip(places, counts.moments(), strict=True):
        part = interval.around(counts.n, domain.values[j], *both)
        _warn_if_impossible(part, counts.n, [domain.columns[j]])
        marginals[domain.columns[j]] = part
    records = None
    if (both_joint := counts.joint_moments()) is not None:
        listed = tuple(product(*(domain.values[j] for j in places)))
        records = interval.around(counts.n, listed, *both_joint)
    elif len(places) == 1:
        (only,) = marginals.values()
        records = replace(only, values=[(value,) for value in only.values])
    return Frequencies(counts.n, interval.confidence, marginals, records, columns is not None)


def _check_released(counts: Counts | Tallies, report: ReleaseReport | None) -> None:
    """Refuse a table of no records, and one that is not the table of the report."""
    if not counts.n:
        raise InvalidInput("the table has no records, so there is nothing to estimate")
    if report is not None and counts.n != report.n:
        raise InvalidInput(
            f"the table has {short(counts.n)} records, but the report is of a release of "
            f"{short(report.n)}; give the released table, or for part of it report.channel and "
            "report.domain instead of the report"
        )
    if report is not None and counts.digest != report.digest:
        raise InvalidInput(
            "the table is not the one that was released with this report: its records differ; give "
            "the released table as it was published, not the original one"
        )


def _warn_if_impossible(part: Marginal, n: int, columns: Sequence[Hashable]) -> None:
    """Warn where an estimate is further outside 0 .. n than noise carries it."""
    beyond = np.maximum(-part.estimates, part.estimates - n)
    reach = math.sqrt(_FAR**2 + 2.0 * math.log(len(part.values))) * part.standard_errors
    worst = int(np.argmax(beyond - reach))
    # Rounding alone carries an estimate without noise, of standard error 0, by a part of n.
    if beyond[worst] > reach[worst] + 1e-6 * n:
        warnings.warn(
            f"an estimated count of {' x '.join(map(str, columns)):.60} is "
            f"{part.estimates[worst]:,.0f} with standard error {part.standard_errors[worst]:,.0f}, "
            f"outside 0 .. {n:,}; the table did not go through this mechanism. Check the table, "
            "epsilon and split",
            EstimateWarning,
            stacklevel=4,
        )


def _counted(
    source: Table, domain: Domain, choices: list[Places], expected: Digest | None
) -> Counts:
    """Count the values of chosen columns, in one pass over the table."""
    if isinstance(source, DaskFrame):
        return source.counted(domain, choices, expected)
    counts = Counts(domain, choices, expected)
    for digits in source.chunks(domain):
        counts.add(digits)
    return counts


def _same(one: Domain, other: Domain) -> bool:
    """Whether two domains list the same values of the same columns in the same order."""
    return one.columns == other.columns and [*map(list, one.values)] == [*map(list, other.values)]


def _places(domain: Domain, columns: Sequence[Hashable] | None) -> Places:
    """Return where the chosen columns stand in the domain."""
    if columns is None:
        return tuple(range(len(domain.columns)))
    named = [] if isinstance(columns, str) else check.items(columns, "columns", "column names")
    if not named:
        raise InvalidInput("columns must be a list of at least one column name")
    for name in named:
        if not isinstance(name, Hashable) or name not in domain.columns:
            hint = did_you_mean(name, domain.columns)
            raise InvalidInput(f"there is no column {described(name)}{hint}")
    if len(set(named)) < len(named):
        raise InvalidInput("columns must differ from each other")
    return tuple(domain.columns.index(name) for name in named)


class _Interval:
    """Normal intervals, within the counts that are possible."""

    def __init__(self, confidence: float, simultaneous: bool) -> None:
        self.confidence, self._simultaneous = confidence, simultaneous

    def around(
        self, n: int, values: Sequence[Any], estimates: Floats, variances: Floats
    ) -> Marginal:
        from scipy.special import ndtri

        miss = (1.0 - self.confidence) / (len(values) if self._simultaneous else 1)
        errors = np.sqrt(variances)
        reach = -ndtri(miss / 2.0) * errors if miss > 0.0 else np.full(len(values), math.inf)
        # An estimate outside 0 .. n says that noise carried it there, not that the truth is 0 or
        # n: the interval starts from the nearest count that is possible.
        lower = np.clip(np.minimum(estimates, n) - reach, 0.0, n)
        upper = np.clip(np.maximum(estimates, 0.0) + reach, 0.0, n)
        return Marginal(values, estimates, errors, lower, upper)
