"""``fp.release``: from a table to a sanitised table, with a report of what it gives away.

A ledger is charged before anything is drawn. The charge is reserved together with a claim, a keyed
digest of the table, the plan and its cost. The reservation is deleted immediately before the table
appears, in one transaction that is on the disk by then. Only the process that deletes it may
publish. Therefore

- every published table has been charged before;
- every charge pays for at most one published table: of several releases that use one reservation,
  in whatever processes, one deletes it, and the others publish nothing;
- as long as the reservation exists, nothing has been published, and the same release may use it
  without another charge. Its cost is the same, because the cost is part of the claim.

A process that is killed between the deletion and the appearance of the table has paid for nothing.
That the file is absent proves nothing: it may have been published and moved away since.

The claim depends on the original table. It stays in the file of the ledger, is in no export, and is
overwritten when the reservation is deleted.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import warnings
from collections.abc import Callable, Collection, Hashable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.files import appearing, check_apart, check_target
from fastpriv._sampling.source import is_secure
from fastpriv._text.numbers import up
from fastpriv.accounting.ledger.ledger import Ledger, Receipt
from fastpriv.errors import BudgetExceeded, Infeasible, InvalidInput, described, did_you_mean
from fastpriv.measures.inputs import as_channel
from fastpriv.measures.leakage import extreme_level
from fastpriv.releasing import domain as domains
from fastpriv.releasing.domain import FROM_DATA, TABLE, Digest, Domain
from fastpriv.releasing.plan import LocalPlan, Plan, choose
from fastpriv.releasing.report import ReleaseReport, measured, useless_columns
from fastpriv.releasing.tables import open_table
from fastpriv.releasing.tables.dask import DaskFrame, Secret
from fastpriv.releasing.tables.memory import Codes, Labels, Table, Writer

__all__ = ["Release", "ReleaseFile", "preview_release", "release"]

#: What ``accept`` may name.
_ACCEPTED = ("domain-from-data", "undeclared-columns", "useless")
#: The key of a digest and a digest; others may keep claims of another kind in a ledger.
_CLAIM = re.compile("[0-9a-f]{32}:[0-9a-f]{128}")
#: Most records that are counted exactly as doubles.
_MOST_RECORDS = 1 << 53


@dataclass(frozen=True, repr=False)
class Release:
    """A sanitised table and its report.

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


@dataclass(frozen=True)
class ReleaseFile:
    """How the files of a release are written: ``fp.release(..., out=ReleaseFile(path, ...))``.

    Attributes
    ----------
    path : path or None
        The released file or folder. None for a table in memory, whose report is written.
    report : path or None
        Where the public report goes, as JSON.
    overwrite : bool
        Whether existing files may be replaced.
    progress : bool
        Show a progress bar on a terminal while a file is read, if tqdm is installed.
    delimiter : str
        What separates the fields of a CSV file, both of the original and of the released one.

    Notes
    -----
    The files appear complete, after everything was drawn and charged, or not at all.

    Examples
    --------
    >>> import os, tempfile
    >>> import fastpriv as fp
    >>> page = os.path.join(tempfile.mkdtemp(), "report.json")
    >>> out = fp.ReleaseFile(report=page)
    >>> released = fp.release(["F", "M"], domain={"sex": ["F", "M"]}, epsilon=1.0, out=out)
    >>> fp.ReleaseReport.from_json(page).n
    2
    """

    path: str | os.PathLike[str] | None = None
    report: str | os.PathLike[str] | None = None
    overwrite: bool = False
    progress: bool = False
    delimiter: str = ","


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
    accept: str | Collection[str] = (),
    out: str | os.PathLike[str] | ReleaseFile | None = None,
) -> Release:
    """Randomise the records of a table and report the privacy of the result.

    The table is epsilon-differentially private for the replacement of one whole record. A record
    is randomised in one of two ways. Either it is one of m values, the product of its columns'
    domains. It then stays with probability 1/(1 + (m-1) e^-epsilon) and otherwise becomes any other
    value, all equally likely. Or every column is randomised independently at a share of epsilon.
    The default is the way whose counts have the smaller standard errors.

    Parameters
    ----------
    table : DataFrame, Series, Arrow table, integer array, list of dict or of str, or path
        One record per row: pandas, polars, Dask, pyarrow; a .csv, .csv.gz or .parquet file, or a
        folder of .parquet files. Arrays hold codes 0 .. size - 1, of shape (records,) or (records,
        columns). A list of labels is one column. Files are read and written in chunks and need not
        fit in memory.
    epsilon : float or mapping
        Level of a whole record, in nats (of each column with ``per_column``). Or a level for every
        column, ``{"column": epsilon}``; their sum is the level of a record.
    distortion : float
        Instead of epsilon: the expected number of records (cells with ``per_column``) that
        randomised response changes in the whole table.
    mechanism : channel or str
        With epsilon: "auto" or the name of a local mechanism ("subset-selection", "hashing",
        "projective", "hadamard", "unary", "symmetric-unary", "randomised-response"). Every column
        is randomised at its share of epsilon, and its values become short texts, the messages.
        "auto" takes for each column the mechanism whose counts have the smallest variance.
        Instead of epsilon: a channel on one record (or with one record per column), used for each
        record independently, or a channel on the whole table.
    domain : mapping, path of a JSON file, or sizes
        ``{"column": [values]}``, or the number of codes (of each column) for an array. ``None``
        among the values stands for missing ones. A CSV file holds values as ``str`` writes them.
    prior : Distribution or 1-D array, optional
        Distribution of one record, the records being independent, or of the whole table. Only the
        report depends on it. Default: the mechanism's own prior, or else uniform.
    split : {"columns", "record"} or mapping, optional
        How epsilon is divided: evenly among the columns; not at all, the record being one value;
        or as given, ``{"column": epsilon}``. The reported levels add up to at most epsilon.
    per_column : bool
        Randomise every column by itself, at level epsilon each. The level of a whole record is
        then the sum over columns, which the report states.
    ledger : Ledger or path of a ledger file, optional
        The ledger to charge. All records are checked first. Then the budget is spent, or
        :class:`~fastpriv.errors.BudgetExceeded` raised, before anything is drawn. The receipt is
        in the report. A release that fails after that stays charged; ``resume`` uses the charge.
    label : str
        Name of the spend in the ledger's history.
    resume : str, optional
        Label of a charge whose release was interrupted before anything was published. The same
        release, of the same table with the same plan, is repeated without another charge.
    rng : numpy.random.Generator or int, optional
        Makes the release reproducible and NOT secure; the report states it.
    accept : str or collection of str
        Dangers to accept. "domain-from-data" reads an undeclared domain from the data, which
        reveals the values that occur, at any level. "undeclared-columns" leaves out the columns
        that the domain does not list. "useless" releases at level 0, and columns whose counts have
        a standard error of at least the number of records, if that is 100 or more.
    out : path or ReleaseFile, optional
        The released file or folder, needed if ``table`` is a path. A :class:`ReleaseFile` also
        says where the report goes and whether files may be replaced.

    Returns
    -------
    Release
        The sanitised table and a :class:`ReleaseReport`. Records keep their order (and a frame its
        index), so that anybody who knows the order knows which record is whose.

    Raises
    ------
    InvalidInput
        For values outside the domain, undeclared columns, missing values. Nothing is written.
    Infeasible
        If the release would be useless; the message states how large the errors would be.
    BudgetExceeded
        If the ledger has too little left. Nothing was drawn.
    TooLarge
        If a record is released as one of more than 2^28 values.

    Notes
    -----
    Randomised response is E_d of Wang, Ying and Zhang (2015), Lemma 5. Cost: O(1) per cell, in
    chunks for files. A mechanism on the whole table reads all of it.

    A Dask frame comes back lazy and counts as published when it is returned. Computing it twice
    gives the same records. A partition whose records have changed since the charge is refused. The
    page "Leave one machine" of the documentation has the details.

    Examples
    --------
    >>> import fastpriv as fp
    >>> people = [{"sex": "F", "smokes": "no"}, {"sex": "M", "smokes": "yes"}] * 50
    >>> domain = {"sex": ["F", "M"], "smokes": ["no", "yes"]}
    >>> released = fp.release(people, domain=domain, epsilon=2.0)
    >>> len(released.table), released.report.levels["dp"] <= 2.0
    (100, True)
    """
    files = out if isinstance(out, ReleaseFile) else ReleaseFile(out)
    accepted = _accepted(accept)
    if files.path is None and isinstance(table, str | os.PathLike):
        raise InvalidInput("out= (--out) must be given: the path of the released file.")
    books = ledger.path if isinstance(ledger, Ledger) else ledger
    for target, what in ((files.path, "out"), (files.report, "report")):
        if target is not None:
            check.path(target, what)
            check_apart(Path(target), *_paths(books))
    source = open_table(table, files.path, files.overwrite, files.delimiter)
    declared = _domain(source, domain, mechanism, accepted)
    plan = choose(
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
            raise InvalidInput("resume must come with ledger=, the ledger that was charged.")
        if files.report is not None:
            target = Path(files.report)
            check_target(target, files.overwrite, *_paths(table, files.path, domain))
            page = stack.enter_context(appearing(target, files.overwrite))
        if (mechanism is None or isinstance(plan, LocalPlan)) and "useless" not in accepted:
            _refuse_useless(plan, source.rows)
        if isinstance(source, DaskFrame):
            released = _partitions(source, plan, prior, rng, payment)
            if page is not None:
                page.write(released.report.to_json().encode() + b"\n")
            return released
        messages = [declared.columns[j] for j in plan.message_columns]
        publish = payment.publish if payment is not None else lambda: None
        writer = stack.enter_context(source.writer(declared, messages, publish))
        notes = _notes(source, declared)
        planned = receipt = None
        if payment is not None:
            planned = _charged(payment, plan, prior, source, run.secure, notes)
            receipt = payment.receipt
        run.write(writer, source, files.progress)
        if run.n == 0:
            raise InvalidInput(
                "the table has no records, so there is nothing to release. "
                "Give a table with records."
            )
        if planned is None:
            planned = measured(plan, prior, run.n, secure=run.secure, notes=notes)
        elif planned.n != run.n:
            raise InvalidInput(
                f"the table had {planned.n:,} records when the ledger was charged and {run.n:,} "
                "when it was drawn; nothing was released; release it once it no longer changes."
            )
        private = {f"changed {plan.counted}": run.changed}
        file = None if files.path is None else Path(files.path).name
        written = replace(planned, private=private, receipt=receipt, digest=run.digest, file=file)
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
    """Return the report of a release before anything is drawn: its cost and its errors.

    Parameters
    ----------
    records : int
        Number of records of the table.
    domain, epsilon, distortion, mechanism, prior, split, per_column
        As for :func:`release`.

    Returns
    -------
    ReleaseReport
        Levels, expected distortion, and in ``standard_errors`` for every column the standard error
        of the count of a value.

    Examples
    --------
    >>> import fastpriv as fp
    >>> plan = fp.preview_release(1_000, domain={"sex": ["F", "M"]}, epsilon=1.0)
    >>> round(plan.standard_errors["sex"], 1)
    30.3
    """
    n = check.integer(records, "records", 1)
    check.fits(n, "a table", "use fewer records", _MOST_RECORDS)
    plan = choose(
        domains.read(domain),
        lambda: n,
        epsilon=epsilon,
        distortion=distortion,
        mechanism=mechanism,
        prior=prior,
        per_column=per_column,
        split=split,
    )
    return measured(plan, prior, n, secure=True, notes=())


def _accepted(accept: str | Collection[str]) -> set[str]:
    """Return the dangers that are accepted."""
    named = [accept] if isinstance(accept, str) else check.items(accept, "accept", "words")
    return {check.word(word, "accept", _ACCEPTED) for word in named}


def _refuse_useless(plan: Plan, rows: Callable[[], int]) -> None:
    """Raise if the counts of some column cannot be estimated better than by a guess."""
    fixed = isinstance(plan, LocalPlan) or max(plan.domain.sizes) == 1
    if not fixed and extreme_level(plan.channel) == 0.0:
        raise Infeasible(
            "at level 0 the released values do not depend on the table, so that nothing can be "
            "learnt from them; raise epsilon, or insist with accept='useless' (--accept-useless)."
        )
    useless = useless_columns(plan, rows)
    if useless:
        name, error = next(iter(useless.items()))
        more = f" and {len(useless) - 1} more" if len(useless) > 1 else ""
        size = f"a standard error of about {error:,.0f}" if error < math.inf else "no estimate"
        raise Infeasible(
            f"column {described(name)}{more} would be useless: a count among {rows():,} records "
            f"has {size}; raise epsilon, or insist with accept='useless' (--accept-useless)."
        )


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
        raise InvalidInput(
            "the table has no records, so there is nothing to release. Give a table with records."
        )
    planned = measured(plan, prior, n, secure=secure, notes=notes)
    payment.charge(planned, digests)
    return planned


def _partitions(
    source: DaskFrame, plan: Plan, prior: Any, rng: Any, payment: Payment | None
) -> Release:
    """Check all partitions, charge the ledger once, and return a frame that draws when computed."""
    if isinstance(plan, LocalPlan):
        raise InvalidInput(
            "messages of local mechanisms are not drawn on Dask frames; give table.compute(), or a "
            "folder of Parquet files."
        )
    if plan.unit == TABLE:
        raise InvalidInput(
            f"{plan.channel!r} takes the whole table at once, which a Dask frame is not; give a "
            "mechanism for one record, or table.compute()."
        )
    key = os.urandom(32) if rng is None else check.generator(rng).bytes(32)
    secret = Secret(key, is_secure(rng))
    digests = [Digest(os.urandom(16)), *(payment.digests() if payment is not None else ())]
    checks = source.checked(plan, secret, digests)
    n = sum(one.records for one in checks)
    if n == 0:
        raise InvalidInput(
            "the table has no records, so there is nothing to release. Give a table with records."
        )
    notes = _notes(source, plan.domain)
    by_key = zip(*(one.digests for one in checks), strict=True)
    drawn, *given = (reduce(Digest.joined, parts) for parts in by_key)
    report = measured(plan, prior, n, secure=secret.secure, notes=notes)
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


def _domain(source: Table, given: Any, mechanism: Any, accepted: Collection[str]) -> Domain:
    """Return the declared domain, checked against the columns of the table."""
    named = isinstance(mechanism, str)
    if given is None and mechanism is not None and not named and isinstance(source, Codes):
        given = _sizes_of(mechanism, source)
    if given is None:
        if "domain-from-data" not in accepted:
            raise domains.refuse(source.columns)
        listed = ((name, source.observed(name)) for name in source.columns)
        return domains.make(listed, FROM_DATA)
    declared = domains.read(given)
    extra = undeclared(source, declared)
    if extra and "undeclared-columns" not in accepted:
        raise InvalidInput(
            f"the domain does not declare {domains.named(extra)}. Declare every "
            "column, or leave the others out with accept='undeclared-columns' "
            "(--drop-undeclared)."
        )
    return declared


def undeclared(source: Table, declared: Domain) -> list[Hashable]:
    """List the columns that the domain leaves out; raise if it names one that is not there."""
    if isinstance(source, Codes | Labels):  # columns without names
        if len(source.columns) != len(declared.columns):
            raise InvalidInput(
                f"the table has {len(source.columns)} columns, the domain {len(declared.columns)}. "
                "Declare the values of every column."
            )
        return []
    absent = [name for name in declared.columns if name not in source.columns]
    if absent:
        near = did_you_mean(absent[0], source.columns)
        hint = near or getattr(source, "hint", ".")
        raise InvalidInput(
            f"the table has no column {described(absent[0])}, which the domain declares; it has "
            f"{domains.named(source.columns)}{hint}"
        )
    return [name for name in source.columns if name not in declared.columns]


def _sizes_of(mechanism: Any, source: Codes) -> tuple[int, ...]:
    """Return the number of codes of each column, from a mechanism on coded columns."""
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


class Run:
    """Records on their way through a plan, counted."""

    def __init__(self, plan: Plan, rng: Any) -> None:
        self.plan, self.secure = plan, is_secure(rng)
        # One generator for all chunks: a seed used again for each would repeat its noise.
        self.rng = None if rng is None else check.generator(rng)
        self.n = self.changed = 0
        #: Digest of the released records.
        self.digest = Digest(os.urandom(16))

    def write(self, writer: Writer, source: Table, progress: bool) -> None:
        """Draw all records and write them."""
        chunks: Any = source.chunks(self.plan.domain, progress)
        if self.plan.unit == TABLE:
            chunks = [np.concatenate(whole)] if (whole := list(chunks)) else []
        for before in chunks:
            drawn = self.plan.draw(before, self.rng)
            self.n += len(drawn.codes)
            self.changed += drawn.changed
            self.digest = self.digest.plus(drawn.integers)
            writer.write(drawn.codes, drawn.domain)


# The charge.


class Payment:
    """The charge of one release. An error that interrupts the release states what was charged.

    Parameters
    ----------
    ledger : Ledger or path
        The ledger to charge. A path is opened, and closed with the context.
    label : str
        Name of the spend.
    resume : bool
        Whether to use a reservation under this label instead of a new charge.
    """

    def __init__(self, ledger: Ledger | str | os.PathLike[str], label: str, resume: bool) -> None:
        self._opened = not isinstance(ledger, Ledger)
        self._ledger = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
        self._label, self._resume = label, resume
        self._claim: str | None = None
        self.receipt: Receipt | None = None

    def __enter__(self) -> Payment:
        return self

    def __exit__(
        self, kind: object, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is not None and self._claim is not None:
                with suppress(Exception):  # the error itself matters more
                    _add_note(error, self._state())
        finally:
            if self._opened:
                self._ledger.close()

    def digests(self) -> list[Digest]:
        """Return empty digests, one for each key under which the table must be read.

        The last one is for a new charge.
        """
        reservations = self._reservations()
        if self._resume and not reservations:
            raise InvalidInput(
                f"resume must be the label of a charge whose release was not published; the ledger "
                f"has none under {described(self._label)}. Release without it, which is charged."
            )
        keys = [bytes.fromhex(claim.partition(":")[0]) for _, claim in reservations]
        return [Digest(key) for key in (keys if self._resume else [*keys, os.urandom(16)])]

    def charge(self, planned: ReleaseReport, digests: list[Digest]) -> None:
        """Reserve the cost of a release, or use the reservation for it."""
        claims = [_claim(planned, digest) for digest in digests]
        same = [(receipt, claim) for receipt, claim in self._reservations() if claim in claims]
        if not self._resume:
            hint = _hint(same[0][0]) if same else ""
            self._claim = claims[-1]
            try:
                self.receipt = self._ledger.spend(planned, label=self._label, claim=self._claim)
            except BudgetExceeded as error:
                _add_note(error, hint)
                raise
            if hint:
                warnings.warn(f"this release was charged again; {hint}", stacklevel=4)
        elif same:
            self.receipt, self._claim = same[0]
        else:
            raise InvalidInput(
                f"resume must be the label of the same release; the charge under "
                f"{described(self._label)} was for another table, domain or mechanism. Give the "
                "same ones, or release without resume, which is charged."
            )

    def publish(self) -> None:
        """Use up the charge; if this returns, the table may be published."""
        assert self.receipt is not None
        self._ledger.publish(self.receipt)

    def _reservations(self) -> list[tuple[Receipt, str]]:
        """Return the reservations of releases under the label, with their claims."""
        unpublished = self._ledger.unpublished(self._label)
        return [(receipt, claim) for receipt, claim in unpublished if _CLAIM.fullmatch(claim)]

    def _state(self) -> str:
        """Return a sentence about what was charged and can still be used, empty for no charge."""
        label = described(self._label)
        for receipt, claim in self._reservations():
            if claim == self._claim:
                return (
                    f"the ledger was charged {_levels(receipt)} under the label {label} and "
                    f"nothing was published; resume={label} (--resume) repeats the release without "
                    "a charge"
                )
        if self.receipt is None:
            return ""
        return (
            f"the charge under the label {label} is used up: the table was published or about to "
            "be; if it is not there, release it anew, which is charged"
        )


def _levels(receipt: Receipt) -> str:
    return ", ".join(f"{notion} {up(level)}" for notion, level in receipt.charged.items())


def _hint(receipt: Receipt) -> str:
    """Name a reservation that the release could use instead of a charge."""
    label = described(receipt.label)
    return (
        f"spend {receipt.number} ({_levels(receipt)}) under the label {label} paid for the same "
        f"release and nothing was published; resume={label} (--resume) uses it without a charge"
    )


def _claim(planned: ReleaseReport, digest: Digest) -> str:
    """Return the key and a digest of the table, the plan and the cost.

    A ledger charges a function of the cost, so that equal claims cost the same.
    """
    plan = (planned.n, planned.mechanism, planned.unit, planned.domain.columns)
    about = repr((digest.total, plan, planned.domain.values, sorted(planned.spending().items())))
    return f"{digest.key.hex()}:{hashlib.blake2b(about.encode(), key=digest.key).hexdigest()}"


def _add_note(error: BaseException, note: str) -> None:
    """Add a note to an error, which Python 3.11 prints; Ctrl-C has no text of its own."""
    if note and isinstance(error, KeyboardInterrupt):
        error.args = (note,)
    elif note:
        vars(error).setdefault("__notes__", []).append(note)
