"""What a release gave away, in every notion the library can certify."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from fastpriv._core import validation as check
from fastpriv._core.defined import load
from fastpriv._core.files import appearing, check_target
from fastpriv._structure.rows import Symmetric
from fastpriv._text import encoding
from fastpriv._text.numbers import shown, up
from fastpriv._text.table import table
from fastpriv.accounting.ledger.receipt import Receipt
from fastpriv.accounting.profile.profile import PrivacyProfile
from fastpriv.channels import AbstractChannel, ColumnsChannel, RecordChannel, SupportChannel
from fastpriv.channels.record import MOST_VALUES
from fastpriv.errors import InvalidInput, described
from fastpriv.measures.levels import LEVELS
from fastpriv.measures.realised import realised
from fastpriv.notions.registry import NOTIONS
from fastpriv.releasing import domain as domains
from fastpriv.releasing.digest import Digest
from fastpriv.releasing.domain import DECLARED, Domain
from fastpriv.releasing.local.plan import person
from fastpriv.releasing.page import fragment, page
from fastpriv.releasing.plan import COLUMNS, RECORD, TABLE, responses
from fastpriv.results import Bracket, Value, top

#: Version of the JSON form.
_VERSION = 2
#: Relative error of probabilities that profiles of shuffled records allow for.
_SLACK = 2.0**-49
_SECURE, _SEEDED = "cryptographic", "seeded, NOT secure"


@dataclass(frozen=True, repr=False)
class ReleaseReport:
    """What may be published about a release, and apart from it what may not.

    Attributes
    ----------
    n, m : int
        Number of records, and of values a record can take.
    levels : dict
        Levels in nats by notion, such as "dp", that hold whatever the law of the table: those of
        the probabilities the sampler realised, rounded up. Names are those of
        ``fastpriv.notions.NOTIONS``; "record-..." is about one record, the others about all.
    levels_under_prior : dict
        Levels under ``prior``, by notion.
    prior : str
        The law they are for, and whether it was given or assumed.
    distortion : float
        Expected number of changed records, or of changed cells (``counted``) where every column
        goes by itself.
    secure : bool
        Whether the randomness was cryptographic. A release from a seeded generator can be undone
        by whoever guesses the seed.
    domain_source : str
        Whether the domain was declared.
    unit : {"record", "columns", "table"}
        What is randomised by itself.
    notes : tuple of str
        What else to know before publishing.
    standard_errors : dict
        For every column, the standard error that the estimated count of a value has where the
        values are equally common.
    time : datetime
        When the report was written, in UTC.
    receipt : Receipt or None
        What a ledger was charged before the table was drawn.
    private : dict
        Realised distortion. It is computed from the data and not protected: keep it. ``to_dict``
        and ``to_json`` leave it out.
    channel : channel
        The mechanism on one record, or on the table. Its row is the person's record, also where
        every column goes by itself (:class:`fastpriv.RecordChannel`): its levels are those of a
        person.
    domain : Domain
        Columns and their values, as :func:`fastpriv.estimate_frequencies` needs them.
    digest : Digest or None
        Keyed digest of the released records, by which :func:`fastpriv.estimate_frequencies`
        recognises them in any order and format. It is computed from the released table and a
        random key, so that by post-processing all levels hold for it too. A preview has none.

    Examples
    --------
    >>> import fastpriv as fp
    >>> import numpy as np
    >>> report = fp.release(np.zeros(100, dtype=int), domain=4, epsilon=1.0).report
    >>> report.levels["dp"] <= 1.0, report.secure
    (True, True)
    """

    n: int
    m: int
    mechanism: str
    levels: dict[str, Value]
    levels_under_prior: dict[str, Value]
    prior: str
    distortion: float
    counted: str
    secure: bool
    domain_source: str
    unit: str
    notes: tuple[str, ...]
    private: dict[str, int]
    channel: AbstractChannel = field(compare=False)
    domain: Domain = field(compare=False)
    standard_errors: dict[Hashable, float]
    time: datetime = field(compare=False)
    receipt: Receipt | None = None
    digest: Digest | None = field(default=None, compare=False)

    def spending(self) -> dict[str, float]:
        """Return what the release costs a ledger: levels that hold whatever the law of the table.

        Neighbouring tables differ in one record, all columns of it.
        """
        return _costs({slug: top(level) for slug, level in self.levels.items()})

    def shuffled(self) -> PrivacyProfile:
        """Profile of the released records if they are put in a random order before anybody looks.

        Neighbours differ in one whole record, which is randomised as one value: what its columns
        tell together counts, not each by itself. ``release`` keeps the order of records, so that
        this holds only if they are shuffled afterwards, by somebody who is trusted not to look.

        Returns
        -------
        PrivacyProfile
            Of :func:`fastpriv.accounting.shuffled`, for the probabilities that were drawn with.

        Examples
        --------
        >>> import fastpriv as fp
        >>> plan = fp.preview_release(100_000, domain={"answer": list(range(16))}, epsilon=4.0)
        >>> plan.shuffled().epsilon(1e-6)
        Bracket(0.1047066582, 0.1047067636)
        """
        from fastpriv.accounting.shuffling import shuffled

        if self.unit == TABLE:
            raise InvalidInput(
                "this mechanism takes the whole table at once; only records that are randomised "
                "one by one are hidden by shuffling"
            )
        channel, slack = realised(self.channel)
        if slack > _SLACK:
            raise InvalidInput(f"the draws of {channel!r} are not known well enough to shuffle")
        return shuffled(channel, self.n)

    def to_dict(self) -> dict[str, Any]:
        """Return what may be published, as plain numbers and words."""
        return {
            "version": _VERSION,
            "date": self.time.isoformat(),
            "records": self.n,
            "values of a record": self.m,
            "values of each column": dict(
                zip(map(str, self.domain.columns), self.domain.sizes, strict=True)
            ),
            **self._columns(),
            "mechanism": self.mechanism,
            "randomised": self.unit,
            **self._epsilon(),
            "levels": encoding.plain(self.levels),
            "prior": self.prior,
            "levels under the prior": encoding.plain(self.levels_under_prior),
            "expected changes": {self.counted: encoding.plain(self.distortion)},
            "standard errors": encoding.plain(self.standard_errors),
            "randomness": self.randomness,
            "domain": self.domain_source,
            "notes": list(self.notes),
            **({} if self.receipt is None else {"receipt": _receipt(self.receipt)}),
            **({} if self.digest is None else {"digest": _digest(self.digest)}),
        }

    def _columns(self) -> dict[str, Any]:
        """Return the declared domain where JSON can hold it; one read off the data stays out."""
        names, values = self.domain.columns, self.domain.values
        plain = str | int | float | bool | None
        holds = all(isinstance(value, plain) for column in values for value in column)
        if self.domain_source != DECLARED or not holds:
            return {}
        if all(isinstance(column, range) for column in values):
            return {"columns": list(self.domain.sizes)}
        listed = zip(names, values, strict=True)
        return {"columns": [{"name": name, "values": list(column)} for name, column in listed]}

    @property
    def _columns_channel(self) -> AbstractChannel:
        """The channel as it acts: on the columns of a record where they go by themselves."""
        return self.channel.columns if isinstance(self.channel, RecordChannel) else self.channel

    def _epsilon(self) -> dict[str, Any]:
        """Return the level of randomised response, of each column, or the mechanisms of columns."""
        channel = self._columns_channel
        if isinstance(channel, ColumnsChannel | SupportChannel):
            columns = channel.columns if isinstance(channel, ColumnsChannel) else (channel,)
            return {"mechanisms": [column.to_dict() for column in columns]}
        rows = channel.kernels
        if rows is None or not all(isinstance(row, Symmetric) for row in rows.distinct):
            return {}
        levels = [row.epsilon for row in rows.distinct if isinstance(row, Symmetric)]
        if len(set(levels)) == 1:
            return {"epsilon": levels[0]}
        return {"epsilon": [levels[k] for k in rows.assignment.tolist()]}

    def to_json(self) -> str:
        """Return what may be published, as JSON; :meth:`from_json` reads it."""
        return encoding.to_json(self.to_dict())

    @property
    def randomness(self) -> str:
        """Where the draws came from, in words."""
        return _SECURE if self.secure else _SEEDED

    def to_html(self, path: str | os.PathLike[str] | None = None, overwrite: bool = False) -> str:
        """Return a page for the person who signs the release off; write it to ``path`` if given.

        The page says when, what and how much was released, the levels in plain words, what can be
        estimated from it, and what was not protected. It fetches nothing and needs no plotting
        library.

        Parameters
        ----------
        path : path, optional
            Where to write the page. It appears whole or not at all.
        overwrite : bool
            Whether an existing file may be replaced.
        """
        text = page(self)
        if path is not None:
            target = check.path(path, "path")
            check_target(target, overwrite)
            with appearing(target, overwrite) as stream:
                stream.write(text.encode())
        return text

    def _repr_html_(self) -> str:
        return fragment(self)

    @classmethod
    def from_json(cls, text: str | os.PathLike[str]) -> ReleaseReport:
        """Read a report back from its JSON, or from the path of a file of it.

        Parameters
        ----------
        text : str or path
            What :meth:`to_json` returned, or the file that ``release(..., report=)`` wrote.

        Returns
        -------
        ReleaseReport
            Without what is private. It must be of randomised response, or of local mechanisms by
            column, with a declared domain:
            then it holds all that :func:`fastpriv.estimate_frequencies` needs.

        Examples
        --------
        >>> import fastpriv as fp
        >>> report = fp.preview_release(1_000, domain={"sex": ["F", "M"]}, epsilon=1.0)
        >>> fp.ReleaseReport.from_json(report.to_json()).levels == report.levels
        True
        """
        given = text if isinstance(text, str) else str(check.path(text, "text"))
        name = "the text" if given.lstrip().startswith("{") else f"{given:.100}"
        document = _document(given if name == "the text" else _read(given), name)
        try:
            return _from_dict(document)
        except (ValueError, KeyError, TypeError, IndexError) as problem:
            if isinstance(problem, InvalidInput):
                raise
            raise InvalidInput(
                f"{name} is no report of randomised response with a declared domain; give the file "
                "that the release wrote with report= (--report)"
            ) from problem

    def __repr__(self) -> str:
        return f"ReleaseReport({self.n} records of {self.m} values, {self.mechanism})"

    def __str__(self) -> str:
        lines = [f"{self.n} records of {self.m} values each, through {self.mechanism}"]
        lines += ["Levels whatever the law of the table (nats)", _listed(self.levels)]
        lines += [f"Levels under the prior ({self.prior})", _listed(self.levels_under_prior)]
        lines.append(f"Expected number of changed {self.counted}: {up(self.distortion)}")
        lines.append(f"Randomness: {self.randomness}")
        lines.append(f"Domain: {self.domain_source}")
        lines += [f"Note: {note}" for note in self.notes]
        return "\n".join(lines)


def spending(path: str) -> dict[str, float]:
    """Read from a report's JSON what the release costs a ledger."""
    document = _document(_read(path), path)
    try:
        levels = document["levels"]
        return _costs({slug: encoding.number(level) for slug, level in levels.items()})
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise InvalidInput(
            f"{path} is no report of a release; give the file that the release wrote with --report"
        ) from error


def _costs(levels: Mapping[str, float]) -> dict[str, float]:
    """Return the level of every notion that a ledger adds up and that some level measures."""
    measured = {LEVELS[slug]: level for slug, level in levels.items() if slug in LEVELS}
    return {
        slug: measured[LEVELS[slug]]
        for slug, notion in NOTIONS.items()
        if notion.law is not None and slug in LEVELS and LEVELS[slug] in measured
    }


def _document(text: str | bytes, name: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{name} is not valid JSON, so it is no report of a release") from error


def _from_dict(document: Any) -> ReleaseReport:
    """Rebuild a report from its plain form."""
    if not isinstance(document, Mapping) or "levels" not in document:
        raise KeyError("levels")
    if document.get("version") != _VERSION:
        raise InvalidInput(
            f"the report has version {described(document.get('version'))}, expected {_VERSION}; "
            "write it again with this version of fastpriv"
        )
    given, unit = document["columns"], document["randomised"]
    if unit not in (RECORD, COLUMNS):
        raise KeyError(unit)
    coded = all(isinstance(column, int) for column in given)
    listed = given if coded else {column["name"]: column["values"] for column in given}
    domain = domains.read(listed)
    sizes = domain.sizes if unit == COLUMNS else (domain.size,)
    ((counted, distortion),) = document["expected changes"].items()
    errors = document["standard errors"]
    receipt, digest = document.get("receipt"), document.get("digest")
    return ReleaseReport(
        n=int(document["records"]),
        m=domain.size,
        mechanism=document["mechanism"],
        levels=_levels(document["levels"]),
        levels_under_prior=_levels(document["levels under the prior"]),
        prior=document["prior"],
        distortion=encoding.number(distortion),
        counted=counted,
        secure=document["randomness"] == _SECURE,
        domain_source=document["domain"],
        unit=unit,
        notes=tuple(document["notes"]),
        private={},
        channel=_channel(sizes, document, unit),
        domain=domain,
        standard_errors={name: encoding.number(errors[str(name)]) for name in domain.columns},
        time=datetime.fromisoformat(document["date"]),
        receipt=None if receipt is None else _read_receipt(receipt),
        digest=None if digest is None else _read_digest(digest),
    )


def _channel(sizes: tuple[int, ...], document: Any, unit: str) -> AbstractChannel:
    """Make randomised response on a record or its columns, or the mechanisms of the columns."""
    if "mechanisms" in document:
        local = ColumnsChannel([load(given) for given in document["mechanisms"]])
        if local.space.sizes != sizes:
            raise ValueError("mechanisms of other columns")
        return person(local)
    epsilon = document["epsilon"]
    columns = responses(sizes, epsilon if isinstance(epsilon, list) else [epsilon] * len(sizes))
    single = unit == RECORD or len(sizes) == 1 or columns.space.size > MOST_VALUES
    return columns if single else RecordChannel(columns)


def _levels(given: Mapping[str, Any]) -> dict[str, Value]:
    levels: dict[str, Value] = {}
    for slug, value in given.items():
        upper = encoding.number(value)
        if math.isnan(upper) or slug not in NOTIONS:
            raise ValueError(slug)
        levels[slug] = Bracket(float(value["lower"]), upper) if isinstance(value, dict) else upper
    return levels


def _receipt(receipt: Receipt) -> dict[str, Any]:
    return {
        "number": receipt.number,
        "time": receipt.time.isoformat(),
        "label": receipt.label,
        "count": receipt.count,
        "charged": encoding.plain(dict(receipt.charged)),
    }


def _read_receipt(given: Mapping[str, Any]) -> Receipt:
    charged = {slug: encoding.number(level) for slug, level in given["charged"].items()}
    when = datetime.fromisoformat(given["time"])
    return Receipt(given["number"], when, given["label"], given["count"], charged)


def _digest(digest: Digest) -> dict[str, str]:
    return {"key": digest.key.hex(), "sum": f"{digest.total:016x}"}


def _read_digest(given: Mapping[str, Any]) -> Digest:
    return Digest(bytes.fromhex(given["key"]), int(given["sum"], 16))


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InvalidInput(f"the report {path:.100} cannot be read: {error.strerror}") from error


def _listed(levels: dict[str, Value]) -> str:
    return table([(NOTIONS[slug].title, shown(level)) for slug, level in levels.items()], "  ")
