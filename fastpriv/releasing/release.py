"""``fp.release``: from a table to a sanitised table, with a report of what it gives away."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.files import appearing, check_target
from fastpriv._sampling.source import is_secure
from fastpriv.errors import InvalidInput
from fastpriv.measures.arguments import as_channel
from fastpriv.releasing import domain as domains
from fastpriv.releasing import plan as plans
from fastpriv.releasing import report as reports
from fastpriv.releasing.domain import FROM_DATA, Digits, Domain
from fastpriv.releasing.plan import TABLE, Plan
from fastpriv.releasing.report import ReleaseReport
from fastpriv.releasing.tables.csv import CsvFile
from fastpriv.releasing.tables.memory import Codes, Frame, Records, Table
from fastpriv.releasing.tables.parquet import ParquetFile

__all__ = ["Release", "release"]


@dataclass(frozen=True, repr=False)
class Release:
    """A sanitised table and the report that goes with it.

    Attributes
    ----------
    table : DataFrame, ndarray, list of dict, or Path
        The released table, of the same kind as the one given; for a file its path.
    report : ReleaseReport
        Levels, assumptions and cost.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.release([{"sex": "F"}, {"sex": "M"}], domain={"sex": ["F", "M"]}, epsilon=1.0)
    Release(list of 2 records of 2 values, HammingChannel(n=1, m=2, epsilon=1) on every record)
    """

    table: Any
    report: ReleaseReport

    def spending(self) -> dict[str, float]:
        """Return what the release costs a ledger; see :meth:`ReleaseReport.spending`."""
        return self.report.spending()

    def __repr__(self) -> str:
        kind, about = type(self.table).__name__, self.report
        return f"Release({kind} of {about.n} records of {about.m} values, {about.mechanism})"


def release(
    table: Any,
    *,
    epsilon: float | None = None,
    distortion: float | None = None,
    mechanism: Any = None,
    domain: Any = None,
    prior: Any = None,
    per_column: bool = False,
    rng: np.random.Generator | int | None = None,
    accept_domain_from_data: bool = False,
    drop_undeclared: bool = False,
    out: str | os.PathLike[str] | None = None,
    report: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    progress: bool = False,
) -> Release:
    """Sanitise a table: every record is randomised with exactly the accounted probabilities.

    By default each record goes through E_d as one value of the product of its columns' domains: it
    stays with chance 1/(1 + (m-1) e^-epsilon) and otherwise becomes any other record, all equally
    likely. The table is then epsilon-differentially private for the replacement of one whole
    record (Wang-Ying-Zhang 2015, Lemma 5), and no mechanism of that level changes fewer records
    where the prior allows: from ``prior.epsilon_hat()`` on, by a proof of our own (Theory in the
    documentation; Theorem 1 of the paper gives a bound that is lower by up to eps_X).

    Parameters
    ----------
    table : DataFrame, integer array, list of dict, or path of a .csv or .parquet file
        One record per row. Arrays hold codes 0 .. size - 1, of shape (records,) or
        (records, columns). Files are read and written in chunks and need not fit in memory.
    epsilon : float
        Level of E_d, in nats, for a whole record (for each column with ``per_column``).
    distortion : float
        Instead: the expected number of records (cells with ``per_column``) that E_d may change in
        the whole table, as :func:`fastpriv.distortion` counts; its level is h_inverse(distortion).
    mechanism : channel
        Instead: a channel on one record (one row of as many values as a record has, or one row
        per column), used for each record independently, or on the whole table (one row per
        record), such as :class:`fastpriv.PosteriorChannel` or the channel of a ``Solution``.
    domain : mapping, path of a JSON file, or sizes
        ``{"column": [values]}``, or the number of codes (of each column) for an array. ``None``
        among the values stands for missing ones. In a CSV file values are written as ``str``
        writes them.
    prior : Distribution or 1-D array, optional
        Law of one record, the records being independent, or of the whole table. Only the report
        depends on it. By default the mechanism's own, if it has one, or else uniform.
    per_column : bool
        Randomise every column by itself, at level epsilon each. The level of a whole record is
        then the sum over columns, which the report states.
    rng : numpy.random.Generator or int, optional
        Makes the release reproducible and NOT secure; the report says so.
    accept_domain_from_data : bool
        Read the domain off the data where none is declared. That gives away which values occur,
        which no level covers; the report says so.
    drop_undeclared : bool
        Leave out columns that the domain does not list, instead of refusing the table.
    out, report : path, optional
        Where the released file goes (needed for files), and the public report as JSON. They
        appear in one step when all went well.
    overwrite : bool
        Whether existing files may be replaced.
    progress : bool
        Show a progress bar on a terminal while a file is read, if tqdm is installed.

    Returns
    -------
    Release
        The sanitised table and a :class:`ReleaseReport`. Records keep their order (and a frame its
        index), so whoever knows the order knows which record is whose.

    Raises
    ------
    InvalidInput
        For values outside the domain, undeclared columns, missing values. Nothing is written.
    TooLarge
        When a record has more than 2^28 values.

    Notes
    -----
    Cost: O(1) per cell, in chunks for files. A single mechanism on the table reads all of it.

    Examples
    --------
    >>> import fastpriv as fp
    >>> people = [{"sex": "F", "smokes": "no"}, {"sex": "M", "smokes": "yes"}] * 50
    >>> domain = {"sex": ["F", "M"], "smokes": ["no", "yes"]}
    >>> released = fp.release(people, domain=domain, epsilon=2.0)
    >>> len(released.table), released.report.levels["differential privacy"] <= 2.0
    (100, True)
    """
    if out is None and isinstance(table, str | os.PathLike):
        raise InvalidInput("give out=, the path of the released file")
    source = open_table(table, out, overwrite)
    declared = _domain(source, domain, mechanism, accept_domain_from_data, drop_undeclared)
    plan = plans.make(
        declared,
        source.rows,
        epsilon=epsilon,
        distortion=distortion,
        mechanism=mechanism,
        prior=prior,
        per_column=per_column,
    )
    run = _Run(plan, rng)
    with ExitStack() as stack:
        page = None
        if report is not None:
            target = Path(report)
            check_target(target, overwrite, *_paths(table, out, domain))
            page = stack.enter_context(appearing(target, overwrite))
        writer = stack.enter_context(source.writer(declared))
        for digits in run.chunks(source, progress):
            writer.write(digits)
        if run.n == 0:
            raise InvalidInput("the table has no records, so there is nothing to release")
        notes = _notes(source, declared)
        found = reports.write(
            plan, prior, run.n, changed=run.changed, secure=run.secure, notes=notes
        )
        if page is not None:
            page.write(found.to_json().encode() + b"\n")
    return Release(writer.table, found)


class _Run:
    """Records on their way through the plan, counted."""

    def __init__(self, plan: Plan, rng: Any) -> None:
        self.plan, self.secure = plan, is_secure(rng)
        # One generator for all chunks: a seed used again for each would repeat its noise.
        self.rng = None if rng is None else check.generator(rng)
        self.n = self.changed = 0

    def chunks(self, source: Table, progress: bool) -> Iterator[Digits]:
        chunks: Any = source.chunks(self.plan.domain, progress)
        if self.plan.unit == TABLE:
            chunks = [np.concatenate(whole)] if (whole := list(chunks)) else []
        for before in chunks:
            after, changed = self.plan.randomise(before, self.rng)
            self.n += len(before)
            self.changed += changed
            yield after


def open_table(
    table: Any, out: str | os.PathLike[str] | None = None, overwrite: bool = False
) -> Table:
    """Recognise a table by what it is."""
    if isinstance(table, str | os.PathLike):
        return _open_file(Path(table), None if out is None else Path(out), overwrite)
    if out is not None:
        raise InvalidInput("out is for files; a table in memory comes back as the result's .table")
    pandas = sys.modules.get("pandas")  # who has a frame has imported it
    if pandas is not None and isinstance(table, pandas.DataFrame):
        return Frame(table)
    if isinstance(table, np.ndarray):
        return Codes(table)
    if isinstance(table, Sequence) and table:
        if all(isinstance(record, Mapping) for record in table):
            return Records(table)
        return Codes(check.array(table, "table"))
    raise InvalidInput(
        "a table is a pandas DataFrame, an integer array, a list of dicts or the path of a file, "
        f"and has records; got {table!r:.60}"
    )


def _open_file(path: Path, out: Path | None, overwrite: bool) -> Table:
    kinds: dict[str, Callable[..., Table]] = {".csv": CsvFile, ".parquet": ParquetFile}
    kind = path.suffix.lower()
    if kind not in kinds:
        raise InvalidInput(f"{path} must be a .csv or .parquet file")
    if not path.is_file():
        raise InvalidInput(f"there is no file {path}")
    if out is not None:
        check_target(out, overwrite, path)
        if out.suffix.lower() != kind:
            raise InvalidInput(f"{out} must be a {kind} file, as {path.name} is")
    return kinds[kind](path, out, overwrite)


def _paths(*given: Any) -> list[Path]:
    return [Path(path) for path in given if isinstance(path, str | os.PathLike)]


def _domain(
    source: Table, given: Any, mechanism: Any, accept_from_data: bool, drop_undeclared: bool
) -> Domain:
    """Return the declared domain, checked against the columns of the table."""
    if given is None and mechanism is not None and isinstance(source, Codes):
        given = _sizes_of(mechanism, source)
    if given is None:
        if not accept_from_data:
            raise domains.refuse(source.columns)
        listed = ((name, source.observed(name)) for name in source.columns)
        return domains.make(listed, FROM_DATA)
    declared = domains.read(given)
    extra = undeclared(source, declared)
    if extra and not drop_undeclared:
        raise InvalidInput(
            f"the domain does not declare {', '.join(map(repr, extra))}; declare every column, or "
            "leave the others out with drop_undeclared=True (--drop-undeclared)"
        )
    return declared


def undeclared(source: Table, declared: Domain) -> list[Hashable]:
    """List the columns that the domain leaves out; it must not name any that are not there."""
    if isinstance(source, Codes):  # columns of an array have no names
        if len(source.columns) != len(declared.columns):
            raise InvalidInput(
                f"the array has {len(source.columns)} columns, the domain {len(declared.columns)}"
            )
        return []
    absent = [name for name in declared.columns if name not in source.columns]
    if absent:
        raise InvalidInput(
            f"the table has no column {absent[0]!r}, which the domain declares; it has "
            f"{', '.join(map(repr, source.columns))}"
        )
    return [name for name in source.columns if name not in declared.columns]


def _sizes_of(mechanism: Any, source: Codes) -> tuple[int, ...]:
    """A mechanism on coded columns says how many codes there are."""
    sizes = as_channel(mechanism).space.sizes
    return sizes if len(sizes) == len(source.columns) else sizes[:1]


def _notes(source: Table, declared: Domain) -> tuple[str, ...]:
    notes = []
    if declared.source == FROM_DATA:
        notes.append("which values occur in the data is given away by the domain")
    if source.kept:
        notes.append(f"released unprotected: {source.kept}")
    if left_out := undeclared(source, declared):
        notes.append(f"columns left out: {', '.join(map(str, left_out))}")
    return tuple(notes)
