"""``fp.release``: from a table to a sanitised table, with a report of what it gives away."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Hashable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.files import appearing, check_apart, check_target
from fastpriv._sampling.source import is_secure
from fastpriv.accounting.ledger.ledger import Ledger
from fastpriv.errors import Infeasible, InvalidInput, described
from fastpriv.measures.dp import dp_level
from fastpriv.measures.inputs import as_channel
from fastpriv.releasing import choice, measuring
from fastpriv.releasing import domain as domains
from fastpriv.releasing.digest import Digest
from fastpriv.releasing.domain import FROM_DATA, Domain
from fastpriv.releasing.local.plan import LocalPlan
from fastpriv.releasing.payment import Payment
from fastpriv.releasing.plan import TABLE, Plan
from fastpriv.releasing.report import ReleaseReport
from fastpriv.releasing.running import Run
from fastpriv.releasing.tables.dask import DaskFrame, Secret
from fastpriv.releasing.tables.memory import Codes, Labels, Table
from fastpriv.releasing.tables.opening import open_table

__all__ = ["Release", "preview_release", "release"]


@dataclass(frozen=True, repr=False)
class Release:
    """A sanitised table and the report that goes with it.

    Attributes
    ----------
    table : DataFrame, ndarray, list of dict, or Path
        The released table, of the same kind as the one given; for a file its path. A Dask frame is
        lazy: publish what it computes, not the frame, whose graph leads to the records.
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
    epsilon: float | Mapping[Hashable, float] | None = None,
    distortion: float | None = None,
    mechanism: Any = None,
    domain: Any = None,
    prior: Any = None,
    split: str | Mapping[Hashable, float] | None = None,
    per_column: bool = False,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    label: str = "release",
    resume: str | None = None,
    rng: np.random.Generator | int | None = None,
    accept_domain_from_data: bool = False,
    drop_undeclared: bool = False,
    accept_useless: bool = False,
    out: str | os.PathLike[str] | None = None,
    report: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    progress: bool = False,
) -> Release:
    """Sanitise a table: every record is randomised with exactly the accounted probabilities.

    The table is epsilon-differentially private for the replacement of one whole record. A record
    goes through randomised response in one of two ways. As one value of the product of its
    columns' domains it stays with probability 1/(1 + (m-1) e^-epsilon) and otherwise becomes any
    other record, all equally likely (E_d, Wang-Ying-Zhang 2015, Lemma 5). Or every column is
    randomised by itself at a share of epsilon. With several columns the way whose counts have the
    smaller standard errors is taken, unless ``split`` says otherwise.

    Parameters
    ----------
    table : DataFrame, Series, Arrow table, integer array, list of dict or of str, or path
        One record per row: pandas, polars, Dask, pyarrow; a .csv, .csv.gz or .parquet file, or a
        folder of .parquet files. Arrays hold codes 0 .. size - 1, of shape (records,) or (records,
        columns). A list of labels is one column. Files are read and written in chunks and need not
        fit in memory. A Dask frame is checked where its partitions lie and comes back lazy; see
        the notes.
    epsilon : float or mapping
        Level of a whole record, in nats (of each column with ``per_column``); or a level for every
        column, ``{"column": epsilon}``, which add up to that of a record.
    distortion : float
        Instead: the expected number of records (cells with ``per_column``) that E_d may change in
        the whole table, as :func:`fastpriv.distortion` counts; its level is h_inverse(distortion).
    mechanism : channel or str
        Beside epsilon: "auto" or the name of a local mechanism ("subset-selection", "hashing",
        "projective", "hadamard", "unary", "symmetric-unary", "randomised-response"). Every column
        goes by itself at its share of epsilon, and its values become short texts, the reports.
        "auto" takes for each column the mechanism whose counts have the least variance, and the
        report says which. Instead of epsilon: a channel on one record (one row of as many values
        as a record has, or one row per column), used for each record independently, or on the
        whole table (one row per record), such as :class:`fastpriv.PosteriorChannel` or the
        channel of a ``Solution``.
    domain : mapping, path of a JSON file, or sizes
        ``{"column": [values]}``, or the number of codes (of each column) for an array. ``None``
        among the values stands for missing ones. In a CSV file values are written as ``str``
        writes them.
    prior : Distribution or 1-D array, optional
        Law of one record, the records being independent, or of the whole table. Only the report
        depends on it. By default the mechanism's own, if it has one, or else uniform.
    split : {"columns", "record"} or mapping, optional
        How epsilon is divided: evenly among the columns, each randomised by itself; not at all,
        the record being one value; or as given, ``{"column": epsilon}``. The levels that are
        reported add up to at most epsilon exactly.
    per_column : bool
        Randomise every column by itself, at level epsilon each. The level of a whole record is
        then the sum over columns, which the report states.
    ledger : Ledger or path of a ledger file, optional
        Where the release is charged. All records are checked first; then the budget is spent, or
        :class:`~fastpriv.errors.BudgetExceeded` raised, before anything is drawn. The receipt is
        in the report. A release that fails after that stays charged; its error says under which
        label, and ``resume`` uses the charge.
    label : str
        Name of the spend in the ledger's history.
    resume : str, optional
        Label of a charge whose release was interrupted before anything was published. The same
        release, of the same table with the same plan, is repeated under it without another charge.
        It takes the place of ``label``.
    rng : numpy.random.Generator or int, optional
        Makes the release reproducible and NOT secure; the report says so.
    accept_domain_from_data : bool
        Read the domain off the data where none is declared. That gives away which values occur,
        which no level covers; the report says so.
    drop_undeclared : bool
        Leave out columns that the domain does not list, instead of refusing the table.
    accept_useless : bool
        Release even where nothing can be learnt: at level 0, and from a column whose counts would
        have a standard error of at least the number of records, if that is 100 or more. The message
        names the column before anything is drawn.
    out, report : path, optional
        Where the released file or folder goes (needed for files), and the public report as JSON.
        They appear in one step when all went well.
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
    Infeasible
        When the release would be useless; the message says how large the errors would be.
    BudgetExceeded
        When the ledger has too little left. Nothing was drawn.
    TooLarge
        When a record is released as one of more than 2^28 values.

    Notes
    -----
    Cost: O(1) per cell, in chunks for files. A single mechanism on the table reads all of it.

    Dask computes a lazy frame as often as it is asked for, and runs a task again when its worker
    dies. Every partition is therefore drawn from a keystream that is a function of a secret of
    this release, of the partition's number and of its records: drawn again, it is the same bit for
    bit, so that one record is never drawn twice. The secret is drawn by the operating system, goes
    to the workers with the tasks, and is in no report. A partition whose records are not those
    that were checked, when the ledger was charged, is refused. For the digest in the report every
    partition is drawn once when it is checked; that draw is not kept. A lazy frame counts as
    published when it is returned.

    Examples
    --------
    >>> import fastpriv as fp
    >>> people = [{"sex": "F", "smokes": "no"}, {"sex": "M", "smokes": "yes"}] * 50
    >>> domain = {"sex": ["F", "M"], "smokes": ["no", "yes"]}
    >>> released = fp.release(people, domain=domain, epsilon=2.0)
    >>> len(released.table), released.report.levels["dp"] <= 2.0
    (100, True)
    """
    if out is None and isinstance(table, str | os.PathLike):
        raise InvalidInput("give out= (--out), the path of the released file")
    for allowed, what in (
        (accept_domain_from_data, "accept_domain_from_data"),
        (drop_undeclared, "drop_undeclared"),
        (accept_useless, "accept_useless"),
    ):
        check.flag(allowed, what)
    books = ledger.path if isinstance(ledger, Ledger) else ledger
    for target, what in ((out, "out"), (report, "report")):
        if target is not None:
            check.path(target, what)
            check_apart(Path(target), *_paths(books))
    source = open_table(table, out, overwrite)
    declared = _domain(source, domain, mechanism, accept_domain_from_data, drop_undeclared)
    plan = choice.make(
        declared,
        source.rows,
        epsilon=epsilon,
        distortion=distortion,
        mechanism=mechanism,
        prior=prior,
        per_column=per_column,
        split=split,
    )
    run = Run(plan, rng)
    with ExitStack() as stack:
        payment = page = None
        if ledger is not None:
            name = label if resume is None else resume
            payment = stack.enter_context(Payment(ledger, name, resume is not None))
        elif resume is not None:
            raise InvalidInput("resume needs ledger=, the ledger that was charged")
        if report is not None:
            target = Path(report)
            check_target(target, overwrite, *_paths(table, out, domain))
            page = stack.enter_context(appearing(target, overwrite))
        if (mechanism is None or isinstance(plan, LocalPlan)) and not accept_useless:
            _refuse_useless(plan, source.rows)
        if isinstance(source, DaskFrame):
            released = _partitions(source, plan, prior, rng, payment)
            if page is not None:
                page.write(released.report.to_json().encode() + b"\n")
            return released
        names = [declared.columns[j] for j in getattr(plan, "report_columns", ())]
        publish = payment.publish if payment is not None else _free
        writer = stack.enter_context(source.writer(declared, names, publish))
        notes = _notes(source, declared)
        planned = receipt = None
        if payment is not None:
            planned = _charged(payment, plan, prior, source, run.secure, notes)
            receipt = payment.receipt
        run.write(writer, source, progress)
        if run.n == 0:
            raise InvalidInput("the table has no records, so there is nothing to release")
        if planned is None:
            planned = measuring.write(plan, prior, run.n, secure=run.secure, notes=notes)
        elif planned.n != run.n:
            raise InvalidInput(
                f"the table had {planned.n:,} records when the ledger was charged and {run.n:,} "
                "when it was drawn; nothing was released; release it once it no longer changes"
            )
        private = {f"changed {plan.counted}": run.changed}
        written = replace(planned, private=private, receipt=receipt, digest=run.digest)
        if page is not None:
            page.write(written.to_json().encode() + b"\n")
    return Release(writer.table, written)


def preview_release(
    records: int,
    *,
    domain: Any,
    epsilon: float | Mapping[Hashable, float] | None = None,
    distortion: float | None = None,
    mechanism: Any = None,
    prior: Any = None,
    split: str | Mapping[Hashable, float] | None = None,
    per_column: bool = False,
) -> ReleaseReport:
    """Say what a release would cost and what could be learnt from it, before anything is drawn.

    Parameters
    ----------
    records : int
        Number of records of the table.
    domain, epsilon, distortion, mechanism, prior, split, per_column
        As for :func:`release`.

    Returns
    -------
    ReleaseReport
        Levels, expected distortion, and in ``standard_errors`` the standard error that the count
        of a value will have, for every column.

    Examples
    --------
    >>> import fastpriv as fp
    >>> plan = fp.preview_release(1_000, domain={"sex": ["F", "M"]}, epsilon=1.0)
    >>> round(plan.standard_errors["sex"], 1)
    30.3
    """
    n = check.integer(records, "records", 1)
    check.fits(n, "a table", "use fewer records", 1 << 53)
    plan = choice.make(
        domains.read(domain),
        lambda: n,
        epsilon=epsilon,
        distortion=distortion,
        mechanism=mechanism,
        prior=prior,
        per_column=per_column,
        split=split,
    )
    return measuring.write(plan, prior, n, secure=True, notes=())


def _refuse_useless(plan: Plan, rows: Callable[[], int]) -> None:
    """Raise where the counts of some column could not be estimated better than by a guess."""
    fixed = isinstance(plan, LocalPlan) or max(plan.domain.sizes) == 1
    if not fixed and dp_level(plan.channel) == 0.0:
        raise Infeasible(
            "at level 0 the released values do not depend on the table, so that nothing can be "
            "learnt from them; raise epsilon, or insist with accept_useless=True (--accept-useless)"
        )
    useless = measuring.useless_columns(plan, rows)
    if useless:
        name, error = next(iter(useless.items()))
        more = f" and {len(useless) - 1} more" if len(useless) > 1 else ""
        size = f"a standard error of about {error:,.0f}" if error < math.inf else "no estimate"
        raise Infeasible(
            f"column {described(name)}{more} would be useless: a count among {rows():,} records "
            f"has {size}; raise epsilon, or insist with accept_useless=True (--accept-useless)"
        )


def _free() -> None:
    """Publish a release that no ledger is charged for."""


def _charged(
    payment: Payment,
    plan: Plan,
    prior: Any,
    source: Table,
    secure: bool,
    notes: tuple[str, ...],
) -> ReleaseReport:
    """Check and count every record, and charge what their release will cost."""
    n, digests = 0, payment.digests()
    for digits in source.chunks(plan.domain):
        n += len(digits)
        digests = [digest.plus(digits) for digest in digests]
    if n == 0:
        raise InvalidInput("the table has no records, so there is nothing to release")
    planned = measuring.write(plan, prior, n, secure=secure, notes=notes)
    payment.charge(planned, digests)
    return planned


def _partitions(
    source: DaskFrame, plan: Plan, prior: Any, rng: Any, payment: Payment | None
) -> Release:
    """Check all partitions, charge the ledger once, and return a frame that draws when computed."""
    if isinstance(plan, LocalPlan):
        raise InvalidInput(
            "reports of local mechanisms are not drawn on Dask frames; give table.compute(), or a "
            "folder of Parquet files"
        )
    if plan.unit == TABLE:
        raise InvalidInput(
            f"{plan.channel!r} takes the whole table at once, which a Dask frame is not; give a "
            "mechanism for one record, or table.compute()"
        )
    key = os.urandom(32) if rng is None else check.generator(rng).bytes(32)
    secret = Secret(key, is_secure(rng))
    digests = [Digest(os.urandom(16)), *(payment.digests() if payment is not None else ())]
    checks = source.checked(plan, secret, digests)
    n = sum(one.records for one in checks)
    if n == 0:
        raise InvalidInput("the table has no records, so there is nothing to release")
    notes = _notes(source, plan.domain)
    by_key = zip(*(one.digests for one in checks), strict=True)
    drawn, *given = (reduce(Digest.joined, parts) for parts in by_key)
    report = measuring.write(plan, prior, n, secure=secret.secure, notes=notes)
    report = replace(report, digest=drawn)
    if payment is not None:
        payment.charge(report, given)
        report = replace(report, receipt=payment.receipt)
    released = source.released(plan, secret, checks)
    if payment is not None:
        payment.publish()
    return Release(released, report)


def _paths(*given: Any) -> list[Path]:
    return [Path(path) for path in given if isinstance(path, str | os.PathLike)]


def _domain(
    source: Table, given: Any, mechanism: Any, accept_from_data: bool, drop_undeclared: bool
) -> Domain:
    """Return the declared domain, checked against the columns of the table."""
    named = isinstance(mechanism, str)
    if given is None and mechanism is not None and not named and isinstance(source, Codes):
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
            f"the domain does not declare {domains.named(extra)}; declare every "
            "column, or leave the others out with drop_undeclared=True (--drop-undeclared)"
        )
    return declared


def undeclared(source: Table, declared: Domain) -> list[Hashable]:
    """List the columns that the domain leaves out; it must not name any that are not there."""
    if isinstance(source, Codes | Labels):  # columns of an array or a list have no names
        if len(source.columns) != len(declared.columns):
            raise InvalidInput(
                f"the table has {len(source.columns)} columns, the domain {len(declared.columns)}"
            )
        return []
    absent = [name for name in declared.columns if name not in source.columns]
    if absent:
        raise InvalidInput(
            f"the table has no column {described(absent[0])}, which the domain declares; it has "
            f"{domains.named(source.columns)}"
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
