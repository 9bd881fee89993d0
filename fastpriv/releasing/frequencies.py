"""How often each value occurred before a release, with confidence intervals."""

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
from fastpriv._core.extras import progress_bar
from fastpriv._core.validation import Floats
from fastpriv._structure.rows import RowKernel
from fastpriv._text.tabular import Tabular
from fastpriv.channels import (
    AbstractChannel,
    ColumnsChannel,
    HammingChannel,
    RecordChannel,
    SupportChannel,
)
from fastpriv.errors import EstimateWarning, InvalidInput, TooLarge, described, did_you_mean, short
from fastpriv.measures.inputs import as_channel
from fastpriv.releasing import domain as domains
from fastpriv.releasing.domain import Digest, Domain, code_table, scalar
from fastpriv.releasing.estimator import Counts, Estimator, Places, axis_of, moments, shape_of
from fastpriv.releasing.messages import messages_of
from fastpriv.releasing.plan import Plan, plan_of, side_by_side
from fastpriv.releasing.release import Release, undeclared
from fastpriv.releasing.report import ReleaseReport
from fastpriv.releasing.tables import open_table
from fastpriv.releasing.tables.dask import DaskFrame
from fastpriv.releasing.tables.memory import Table

__all__ = ["Frequencies", "Marginal", "estimate_frequencies"]

#: Most values of a record whose frequencies are listed.
_LISTED = 1 << 20
#: Values that the representation of a marginal shows.
_SHOWN = 12
#: Standard errors outside 0 .. n beyond which noise does not explain an estimate. For one value the
#: probability is below 10^-7, by the sub-Gaussian bound exp(-t^2/2); many values allow more.
_FAR = 6.0
#: Rounding error of an estimate without noise, as a share of the number of records.
_ROUNDING = 1e-6


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
        up to the number of records; for some local mechanisms only up to noise.
    standard_errors : ndarray
        Estimated standard deviations of the estimates.
    lower, upper : ndarray
        Bounds of the confidence intervals, within 0 and the number of records.
    outside : ndarray of bool
        Which estimates lie outside their own intervals: by noise they are impossible counts, or
        the method is biased.
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

        They are closer to the truth in mean square, but biased.
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
        """Return the lines of a text table of the first ``most`` values."""
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

    ``records`` are the joint counts of all columns, or of the chosen ones; then ``joint`` is True.
    If no columns were chosen, they are None for records of more than 2^20 values and for messages
    of local mechanisms.

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
                f"columns={described(list(column))}."
            )
        if column not in self.columns:
            hint = did_you_mean(column, self.columns)
            raise InvalidInput(f"there is no column {described(column)}{hint or '; see .columns'}")
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
    delimiter: str = ",",
    progress: bool = False,
) -> Frequencies:
    """Estimate how often each value occurred in the table before it was released.

    For randomised response that keeps a value with probability a and turns it into each other value
    with probability b, the estimate of a value that c of n released records hold is
    (c - n b)/(a - b). It is unbiased. A record adds a (1-a)/(a-b)^2 to its variance if it held the
    value, and b (1-b)/(a-b)^2 if not.

    Parameters
    ----------
    released : Release, or a table as :func:`fastpriv.release` takes
        The released table. A Release knows its mechanism and domain.
    mechanism : ReleaseReport or channel
        What the table went through. The report of the release also recognises the table; see the
        notes. A local mechanism such as :class:`fastpriv.HashingChannel`, if an array holds its
        messages. Or the channel of a record: ``HammingChannel(1, m, epsilon)`` for whole records,
        ``HammingChannel(columns, sizes, epsilon)`` with ``per_column``.
    domain : mapping, path of a JSON file, or sizes
        As declared for the release; a report contains it.
    columns : sequence, optional
        The columns to estimate. Their cross-tabulation, the joint counts of their values, is then
        ``.records`` of the result, also ``result["a", "b"]``. Default: all columns, and whole
        records of at most 2^20 values.
    confidence : float
        Probability that an interval covers the true count, over the randomisation for a fixed
        table. It is approximate, by the normal distribution, and good if some tens of released
        records hold the value.
    simultaneous : bool
        Widen the intervals (Bonferroni) so that all values of a column are covered at once.
    method : {"unbiased", "bayesian"}
        How counts are estimated: by the unbiased inverse, or by the iterative Bayesian update,
        which finds the non-negative counts of largest likelihood. Standard errors and intervals
        belong to the unbiased estimates in either case.
    delimiter : str
        What separates the fields of a CSV file.
    progress : bool
        Show a progress bar on a terminal while a file is read, if tqdm is installed.

    Returns
    -------
    Frequencies
        For every column, and for the columns jointly.

    Raises
    ------
    InvalidInput
        If the mechanism cannot be undone: level 0, a condition number beyond 1e10, or records
        that were not randomised alike. If the table is not the one of the report. If a
        cross-tabulation is asked for columns of messages.

    Warns
    -----
    EstimateWarning
        If an estimate lies more than 6 standard errors outside 0 and the number of records: the
        table did not go through this mechanism.

    Notes
    -----
    If g solves W g = f for the mechanism W, then the sum of g(y) over the released records y has
    as its mean the sum of f(x) over the true ones. With f the indicator of a value this estimates
    its count. The variance for a fixed table is the sum over records of (W g^2)(x) - f(x)^2, which
    is linear in the true counts and estimated in the same way. Cost O(records), then O(values) for
    randomised response and O(m^3) for one matrix on m values of a record.

    The report contains the number of records and a digest of the released table. Another table is
    refused: the original one, changed values, part of the records. The order of records and columns
    and the format do not matter. To estimate from part of the records on purpose, give
    ``report.channel`` and ``domain=report.domain`` instead of the report. The digest protects
    against mistakes, not against forgery.

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
        return _of_messages(released, mechanism, domain, _Interval(confidence, simultaneous))
    check.flag(progress, "progress")
    source = open_table(_records(released), delimiter=delimiter)
    report = mechanism if isinstance(mechanism, ReleaseReport) else None
    if isinstance(mechanism, ReleaseReport):
        if domain is not None and not _same(domains.read(domain), mechanism.domain):
            raise InvalidInput(
                "domain must be the one of the release. Leave it out; the report contains it."
            )
        domain, mechanism = mechanism.domain, mechanism.channel
    if mechanism is None:
        raise InvalidInput(
            "mechanism must be the channel or the report of the release; got none. Give mechanism=."
        )
    if domain is None:
        raise domains.refuse(source.columns)
    check.word(method, "method", ("unbiased", "bayesian"))
    declared = domains.read(domain)
    undeclared(source, declared)
    acting = mechanism.columns if isinstance(mechanism, RecordChannel) else mechanism
    if isinstance(acting, SupportChannel):
        acting = ColumnsChannel([acting])
    chosen = _places(declared, columns)
    size = math.prod(declared.sizes[j] for j in chosen)
    if columns is not None and len(chosen) > 1 and size > _LISTED:
        raise TooLarge.entries("the cross-tabulation", size, "choose fewer columns")
    singles: list[Places] = [(j,) for j in chosen]
    expected = None if report is None else report.digest
    counts: _Codes | _Messages
    if isinstance(acting, ColumnsChannel):
        if method != "unbiased":
            raise InvalidInput(
                "messages of local mechanisms have unbiased estimates only. Use method='unbiased'."
            )
        joint = size <= _LISTED and _can_cross(acting, declared, chosen, columns is not None)
        choices = [*singles, chosen] if joint else singles
        counts = _Messages(source, acting, declared, choices, expected, progress)
    else:
        joint = size <= _LISTED
        choices = [*singles, chosen] if joint else singles
        plan = plan_of(as_channel(mechanism), declared, source.rows)
        counts = _Codes(source, plan, choices, expected, progress)
    _check_released(counts, report)
    interval = _Interval(confidence, simultaneous)

    def marginal(choice: Places) -> Marginal:
        values = [declared.values[j] for j in choice]
        listed = values[0] if len(choice) == 1 else tuple(product(*values))
        part = interval.around(counts.n, listed, *counts.moments(choice))
        _warn_if_impossible(part, counts.n, [declared.columns[j] for j in choice])
        if isinstance(counts, _Codes) and method == "bayesian":
            part = replace(part, estimates=counts.likeliest(choice))
        return part

    marginals = {declared.columns[j]: marginal((j,)) for j in chosen}
    whole = None
    if joint and len(chosen) == 1:
        (only,) = marginals.values()
        whole = replace(only, values=[(value,) for value in only.values])
    elif joint:
        whole = marginal(chosen)
    return Frequencies(counts.n, confidence, marginals, whole, columns is not None)


def _records(released: Any) -> Any:
    """Return a released array of texts as records."""
    if not isinstance(released, np.ndarray) or released.dtype.kind != "U":
        return released
    table = released[:, None] if released.ndim == 1 else released
    return [dict(enumerate(row)) for row in table.tolist()]


def _of_messages(
    messages: Any, channel: SupportChannel, domain: Any, interval: _Interval
) -> Frequencies:
    """Estimate counts from messages as the mechanism draws them."""
    declared = domains.read(channel.k if domain is None else domain)
    if declared.sizes != (channel.k,):
        raise InvalidInput(f"domain must be one column of {channel.k} values.")
    given = channel.checked_reports(messages)
    n = len(given)
    if not n:
        raise InvalidInput(
            "there are no messages, so there is nothing to estimate. Give one message or more."
        )
    part = interval.around(n, declared.values[0], *channel.moments(channel.tally(given), n))
    _warn_if_impossible(part, n, declared.columns)
    return Frequencies(n, interval.confidence, {declared.columns[0]: part}, None)


def _can_cross(channel: ColumnsChannel, domain: Domain, places: Places, required: bool) -> bool:
    """Return whether the columns have joint counts; messages have none."""
    if channel.space.sizes != domain.sizes:
        raise InvalidInput(
            f"mechanism must fit columns of {described(list(domain.sizes))} values; got "
            f"{channel!r}. Give the mechanism of the release."
        )
    messages = [j for j in places if isinstance(channel.columns[j], SupportChannel)]
    if len(places) == 1 or not messages:
        return True
    if required:
        raise InvalidInput(
            f"columns must have values, not messages, for a cross-tabulation; column "
            f"{described(domain.columns[messages[0]])} holds messages of a local mechanism. "
            "Estimate one column at a time, or release without mechanism= (--mechanism)."
        )
    return False


def _check_released(counts: _Codes | _Messages, report: ReleaseReport | None) -> None:
    """Refuse a table without records, and one that is not the table of the report."""
    if not counts.n:
        raise InvalidInput(
            "the table has no records, so there is nothing to estimate. Give a table with records."
        )
    if report is not None and counts.n != report.n:
        raise InvalidInput(
            f"the table has {short(counts.n)} records, but the report is of a release of "
            f"{short(report.n)}; give the released table, or for part of it report.channel and "
            "report.domain instead of the report."
        )
    if report is not None and counts.digest != report.digest:
        raise InvalidInput(
            "the table is not the one that was released with this report: its records differ; give "
            "the released table as it was published, not the original one."
        )


def _warn_if_impossible(part: Marginal, n: int, columns: Sequence[Hashable]) -> None:
    """Warn if an estimate is further outside 0 .. n than noise explains."""
    beyond = np.maximum(-part.estimates, part.estimates - n)
    reach = math.sqrt(_FAR**2 + 2.0 * math.log(len(part.values))) * part.standard_errors
    worst = int(np.argmax(beyond - reach))
    if beyond[worst] > reach[worst] + _ROUNDING * n:
        warnings.warn(
            f"an estimated count of {' x '.join(map(str, columns)):.60} is "
            f"{part.estimates[worst]:,.0f} with standard error {part.standard_errors[worst]:,.0f}, "
            f"outside 0 .. {n:,}; the table did not go through this mechanism. Check the table, "
            "epsilon and split",
            EstimateWarning,
            stacklevel=4,
        )


def _same(one: Domain, other: Domain) -> bool:
    """Whether two domains list the same values of the same columns in the same order."""
    return one.columns == other.columns and [*map(list, one.values)] == [*map(list, other.values)]


def _places(domain: Domain, columns: Sequence[Hashable] | None) -> Places:
    """Return the places of the chosen columns in the domain."""
    if columns is None:
        return tuple(range(len(domain.columns)))
    named = [] if isinstance(columns, str) else check.items(columns, "columns", "column names")
    if not named:
        raise InvalidInput(
            "columns must be a list of at least one column name. Leave it out to estimate each "
            "column."
        )
    for name in named:
        if not isinstance(name, Hashable) or name not in domain.columns:
            hint = did_you_mean(name, domain.columns)
            raise InvalidInput(f"there is no column {described(name)}{hint}")
    if len(set(named)) < len(named):
        raise InvalidInput("columns must differ from each other. Name each once.")
    return tuple(domain.columns.index(name) for name in named)


class _Codes:
    """Counts of released codes, and the estimator that undoes their mechanism."""

    def __init__(
        self,
        source: Table,
        plan: Plan,
        choices: Sequence[Places],
        expected: Digest | None,
        progress: bool,
    ) -> None:
        domain = plan.domain
        self._estimator = Estimator(plan.channel, plan.unit, domain)
        needed = list(dict.fromkeys(map(self._estimator.needs, choices)))
        if isinstance(source, DaskFrame):
            self._counts = source.counted(domain, needed, expected)
        else:
            self._counts = Counts(domain, needed, expected)
            for digits in source.chunks(domain, progress):
                self._counts.add(digits)
        self.n, self.digest = self._counts.n, self._counts.digest

    def moments(self, choice: Places) -> tuple[Floats, Floats]:
        """Estimate the true counts of chosen columns, and the variances."""
        return self._estimator.moments(self._counts[self._estimator.needs(choice)], choice)

    def likeliest(self, choice: Places) -> Floats:
        """Return the true counts of largest likelihood."""
        return self._estimator.likeliest(self._counts[self._estimator.needs(choice)], choice)


class _Messages:
    """Tallies of columns whose values went through mechanisms of their own."""

    def __init__(
        self,
        source: Table,
        channel: ColumnsChannel,
        domain: Domain,
        choices: Sequence[Places],
        expected: Digest | None,
        progress: bool,
    ) -> None:
        self.n, self._domain, self._columns = 0, domain, channel.columns
        self.digest = None if expected is None else Digest(expected.key)
        self._tallies: dict[Places, Any] = dict.fromkeys(choices, 0.0)
        # A digest is of whole records.
        every = range(len(domain.columns))
        read = every if expected is not None else sorted({j for choice in choices for j in choice})
        with progress_bar(None, "records", progress) as bar:
            for cells in source.cells([domain.columns[j] for j in read]):
                before = self.n
                self._add({j: self._integers(j, part) for j, part in zip(read, cells, strict=True)})
                bar.update(self.n - before)

    def _add(self, integers: dict[int, Any]) -> None:
        """Count more records, given by the integers of each column."""
        self.n += len(next(iter(integers.values())))
        for choice in self._tallies:
            column = self._columns[choice[0]]
            tally: Any
            if isinstance(column, SupportChannel):
                tally = column.tally(integers[choice[0]])
            else:
                shape = shape_of(self._domain, choice)
                codes = np.ravel_multi_index([integers[j] for j in choice], shape)
                tally = np.bincount(codes, minlength=math.prod(shape)).reshape(shape)
            self._tallies[choice] = self._tallies[choice] + tally
        if self.digest is not None:
            self.digest = self.digest.plus(side_by_side(list(integers.values())))

    def _integers(self, j: int, part: Sequence[Any]) -> Any:
        """Return a column as it was drawn: messages, or codes of values."""
        name, column = self._domain.columns[j], self._columns[j]
        if isinstance(column, SupportChannel):
            return messages_of(column, part, name)
        return _codes(part, name, self._domain)

    def moments(self, choice: Places) -> tuple[Floats, Floats]:
        """Estimate the true counts of chosen columns, and the variances."""
        column, tally = self._columns[choice[0]], np.asarray(self._tallies[choice])
        if isinstance(column, SupportChannel):
            return column.moments(tally, self.n)
        axes = [axis_of(_response(self._columns[j])) for j in choice]
        estimates, variances = moments(tally, axes)
        return estimates.reshape(-1), variances.reshape(-1)


def _response(column: AbstractChannel) -> RowKernel:
    assert isinstance(column, HammingChannel)
    return column.kernels[0]


def _codes(values: Sequence[Any], name: Hashable, domain: Domain) -> NDArray[np.int64]:
    """Return the codes of the values of a column that went through randomised response."""
    listed: dict[Any, int] = {}
    numbers = [listed.setdefault(value, len(listed)) for value in map(scalar, values)]
    codes = code_table(name, domain, listed)[:-1]
    if (codes < 0).any():  # a CSV file holds texts
        spelt = {"" if v is None else str(v): v for v in domain.values[domain.columns.index(name)]}
        codes = code_table(name, domain, [spelt.get(str(value), value) for value in listed])[:-1]
    if (codes < 0).any():
        raise InvalidInput(
            f"column {described(name)} holds a value that its domain does not list. "
            "Give the domain of the release."
        )
    return codes[np.array(numbers, dtype=np.int64)]


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
        # An estimate outside 0 .. n is due to noise and does not prove that the truth is 0 or n:
        # the interval starts from the nearest possible count.
        lower = np.clip(np.minimum(estimates, n) - reach, 0.0, n)
        upper = np.clip(np.maximum(estimates, 0.0) + reach, 0.0, n)
        return Marginal(values, estimates, errors, lower, upper)
