"""The report of a release: what it gave away, in every notion that the library can certify.

The file is read top to bottom: the report, how a plan is measured, its JSON, and its HTML page.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from html import escape
from pathlib import Path
from typing import Any

from fastpriv import __version__
from fastpriv._core import rounding
from fastpriv._core import validation as check
from fastpriv._core.defined import load
from fastpriv._core.files import appearing, check_target
from fastpriv._core.rounding import lowered, product_up, round_up
from fastpriv._structure.rows import RowKernel, Symmetric
from fastpriv._text import encoding, html
from fastpriv._text.numbers import quantity, shown, up
from fastpriv._text.table import table
from fastpriv.accounting.ledger.ledger import Receipt
from fastpriv.accounting.profile.profile import PrivacyProfile
from fastpriv.channels import (
    AbstractChannel,
    ColumnsChannel,
    HammingChannel,
    RecordChannel,
    SupportChannel,
)
from fastpriv.channels.record import MOST_VALUES
from fastpriv.errors import InvalidInput, TooLarge, described
from fastpriv.measures.capacity import capacity
from fastpriv.measures.dp import neighbour_level
from fastpriv.measures.identifiability import posterior_level
from fastpriv.measures.information import information
from fastpriv.measures.leakage import extreme_level, maxima_level
from fastpriv.measures.levels import LEVELS
from fastpriv.measures.pointwise.database import leakage_levels
from fastpriv.measures.realised import INFORMATION_ERROR, raised_information, realised, with_draws
from fastpriv.notions.registry import NOTIONS
from fastpriv.priors import Distribution
from fastpriv.releasing import domain as domains
from fastpriv.releasing.domain import COLUMNS, DECLARED, RECORD, TABLE, Digest, Domain
from fastpriv.releasing.estimator import expected_error
from fastpriv.releasing.plan import LocalPlan, Plan, on_records, responses
from fastpriv.results import Bracket, Value, top

__all__ = ["ReleaseReport"]

#: Version of the JSON form.
_VERSION = 2
#: Where the draws came from, as reports print it.
_SECURE = "cryptographic"
_SEEDED = "seeded, NOT secure"
#: What a mechanism acts on, as reports print it.
_SCOPE = {
    RECORD: " on every record",
    COLUMNS: " on the columns of every record",
    TABLE: " on the table",
}
#: Relative error of probabilities that profiles of shuffled records allow for.
_SHUFFLED_SLACK = 2.0**-49
#: Share of changed records above which a report advises to randomise columns.
_MOST_CHANGED = 0.8
#: Level in nats above which a report warns that it protects little.
_WEAK = 10.0
#: Tables of fewer records are released without asking how well they can be counted.
_FEW = 100
#: Most databases of a matrix whose capacity a report waits for.
_OPTIMISED = 512
#: Width of the bracket of a capacity.
_CAPACITY_GAP = 1e-9
#: Level in nats from which a page writes the factor e^level as a power.
_LARGE_LEVEL = 14.0
#: Rounding of the entropies of a prior, which are sums, in units in the last place.
_ENTROPY_ULPS = 64.0

#: Standard errors on each side of an estimate that cover it with probability 95 %.
_MARGIN = 1.96
#: Changes in per cent below which a page writes no number.
_HARDLY = 1e-9
#: Words of notes that a person must read before publishing.
_WARNING = ("protects little", "nothing can be learnt", "given away", "unprotected", "give away")
#: Words of notes on the choice of a mechanism, which stand with the formulas.
_CHOICE = "whose counts have the smallest variance"

#: What each level is about, in words.
_PROTECTED = {
    "dp": "A person's whole record",
    "column-dp": "One column of a record",
    "record-strong-dp": "A released record, against any two true ones",
    "record-maximal-leakage": "Any secret of a person, on average",
    "record-channel-capacity": "Information in a released record",
    "identifiability": "Which record is a person's",
    "record-mutual-information": "Information in a released record, on average",
    "record-pml": "Any secret of a person, for the worst output",
}
#: What levels of a release mean, for readers without formulas.
_MEANINGS = {
    "dp": "Replacing one person's whole record changes the probability of any released table by a "
    "factor of at most {factor}.",
    "column-dp": "Changing one column of one record changes the probability of any released table "
    "by a factor of at most {factor}.",
    "record-strong-dp": "No released record changes the odds between two possible true records by "
    "more than a factor of {factor}.",
    "record-maximal-leakage": "Seeing a released record raises the probability of guessing any "
    "secret of its person by a factor of at most {factor}.",
    "record-channel-capacity": "A released record carries at most {bits} bits about the true one.",
    "identifiability": "Given the released table, no record is more likely than another by more "
    "than a factor of {factor}.",
    "record-mutual-information": "On average a released record reveals {bits} bits about the true "
    "one.",
    "record-pml": "No released record makes a guess about its person more likely to be right by "
    "more than a factor of {factor}.",
}


@dataclass(frozen=True, repr=False)
class ReleaseReport:
    """What may be published about a release, and separately what may not.

    Attributes
    ----------
    n, m : int
        Number of records, and of values a record can take.
    levels : dict
        Levels in nats by notion, such as "dp", that hold for every distribution of the table. They
        are levels of the probabilities that were drawn, rounded up. Names are keys of
        ``fastpriv.notions.NOTIONS``; "record-..." is about one record, the others about all.
    levels_under_prior : dict
        Levels under ``prior``, by notion.
    prior : str
        The prior, and whether it was given or assumed.
    distortion : float
        Expected number of changed records, or of changed cells (``counted``) if every column is
        randomised by itself.
    secure : bool
        Whether the randomness was cryptographic. Anybody who guesses the seed of a generator can
        undo the release.
    domain_source : str
        Whether the domain was declared.
    unit : {"record", "columns", "table"}
        What is randomised by itself.
    notes : tuple of str
        Advice before publishing.
    standard_errors : dict
        For every column, the standard error of the estimated count of a value if the values are
        equally common.
    time : datetime
        When the report was written, in UTC.
    receipt : Receipt or None
        The charge to a ledger, made before the table was drawn.
    private : dict
        Realised distortion. It is computed from the data and not protected: do not publish it.
        ``to_dict`` and ``to_json`` leave it out.
    channel : channel
        The mechanism on one record, or on the table. Its input is the person's record, also if
        every column is randomised independently (:class:`fastpriv.RecordChannel`).
    domain : Domain
        Columns and their values, as :func:`fastpriv.estimate_frequencies` needs them.
    digest : Digest or None
        Keyed digest of the released records, by which :func:`fastpriv.estimate_frequencies`
        recognises them in any order and format. It is a function of the released table and a
        random key, so that all levels hold for it too. A preview has none.
    file : str or None
        Name of the released file, without its folder. None for a table in memory.

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
    file: str | None = field(default=None, compare=False)

    def spending(self) -> dict[str, float]:
        """Return what the release costs a ledger: levels that hold for every distribution.

        Neighbouring tables differ in one record, in any of its columns.
        """
        return _costs({slug: top(level) for slug, level in self.levels.items()})

    def shuffled(self) -> PrivacyProfile:
        """Return the privacy profile if the records are shuffled before anybody sees them.

        Neighbours differ in one whole record. ``release`` keeps the order of records, so that this
        holds only if they are shuffled afterwards, by somebody who is trusted not to look.

        Returns
        -------
        PrivacyProfile
            Of :func:`fastpriv.accounting.shuffled`, for the probabilities that were drawn.

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
                "one by one are hidden by shuffling. "
                "Release with epsilon= instead of a mechanism on the table."
            )
        channel, slack = realised(self.channel)
        if slack > _SHUFFLED_SLACK:
            raise InvalidInput(
                f"mechanism must have draws of known probabilities to be shuffled; {channel!r} "
                "has not. Release with epsilon= instead."
            )
        return shuffled(channel, self.n)

    def to_dict(self) -> dict[str, Any]:
        """Return the public part as plain numbers and texts."""
        return {
            "version": _VERSION,
            "date": self.time.isoformat(),
            **({} if self.file is None else {"file": self.file}),
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
        """Return the declared domain if JSON can hold it; one read from the data is left out."""
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
        """The channel on the columns of a record if they are randomised by themselves."""
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
        """Return the public part as JSON; :meth:`from_json` reads it."""
        return encoding.to_json(self.to_dict())

    def to_registry(
        self, name: str = "Release", *, curators: Sequence[str] = (), use: str = ""
    ) -> str:
        """Return the release as a YAML file of the public registry of deployments.

        Fields that only the curator knows are empty, to be filled in. The extra ``registry`` is
        needed.

        Parameters
        ----------
        name : str
            Name of the deployment.
        curators : sequence of str
            Organisations that hold the data.
        use : str
            Intended use of the data product.

        Examples
        --------
        >>> import fastpriv as fp
        >>> report = fp.preview_release(1_000, domain={"sex": ["F", "M"]}, epsilon=1.0)
        >>> report.to_registry("Survey").splitlines()[:2]
        ['url_slug: survey', 'status: draft']
        """
        from fastpriv.releasing.registry import entry

        return entry(
            self,
            check.text(name, "name"),
            tuple(check.text(each, "curators") for each in curators),
            check.text(use, "use"),
        )

    @property
    def randomness(self) -> str:
        """Where the draws came from."""
        return _SECURE if self.secure else _SEEDED

    def to_html(self, path: str | os.PathLike[str] | None = None, overwrite: bool = False) -> str:
        """Return an HTML page for the person who approves the release; write it to ``path``.

        The verdict and its warnings come first. Then follow what was published, the mechanism and
        the levels in plain words, the errors of estimates, and what is not protected. Formulas are
        behind a fold. The page loads nothing from elsewhere.

        Parameters
        ----------
        path : path, optional
            Where to write the page. The file appears complete or not at all.
        overwrite : bool
            Whether an existing file may be replaced.
        """
        text = _page(self)
        if path is not None:
            target = check.path(path, "path")
            check_target(target, overwrite)
            with appearing(target, overwrite) as stream:
                stream.write(text.encode())
        return text

    def _repr_html_(self) -> str:
        return html.part(_page_body(self))

    @classmethod
    def from_json(cls, text: str | os.PathLike[str]) -> ReleaseReport:
        """Read a report back from its JSON, or from the path of a file of it.

        Parameters
        ----------
        text : str or path
            What :meth:`to_json` returned, or the report file of a release.

        Returns
        -------
        ReleaseReport
            The public part, with all that :func:`fastpriv.estimate_frequencies` needs. The release
            must be of randomised response, or of local mechanisms by column, with a declared
            domain.

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
                "that the release wrote as its report (--report)."
            ) from problem

    def __repr__(self) -> str:
        return f"ReleaseReport({self.n} records of {self.m} values, {self.mechanism})"

    def __str__(self) -> str:
        lines = [f"{self.n} records of {self.m} values each, through {self.mechanism}"]
        lines += ["Levels for every distribution of the table (nats)", _listed(self.levels)]
        lines += [f"Levels under the prior ({self.prior})", _listed(self.levels_under_prior)]
        lines.append(f"Expected number of changed {self.counted}: {up(self.distortion)}")
        lines.append(f"Randomness: {self.randomness}")
        lines.append(f"Domain: {self.domain_source}")
        lines += [f"Note: {note}" for note in self.notes]
        return "\n".join(lines)


def _listed(levels: dict[str, Value]) -> str:
    return table([(NOTIONS[slug].title, shown(level)) for slug, level in levels.items()], "  ")


# Measuring.


_Raise = Callable[[float, float], float]


def measured(
    plan: Plan, prior: Any, n: int, *, secure: bool, notes: tuple[str, ...]
) -> ReleaseReport:
    """Return the report of a plan on n records, for the probabilities that are drawn."""
    channel, slack = realised(plan.channel)
    distribution, name = plan.prior(prior)
    records = None if plan.unit == TABLE else n
    always, under = _Levels(records, slack), _Levels(records, slack)
    _measure(channel, distribution, plan.unit, always, under)
    changed = plan.expected_changes(channel, distribution)
    return ReleaseReport(
        n=n,
        m=plan.domain.size,
        mechanism=repr(plan.channel) + _SCOPE[plan.unit],
        levels=always.levels,
        levels_under_prior=under.levels,
        prior=name,
        distortion=changed * (records or 1),
        counted=plan.counted,
        secure=secure,
        domain_source=plan.domain.source,
        unit=plan.unit,
        notes=(
            *notes,
            *plan.reasons,
            *_advice(plan, n, changed, always.levels),
            *(f"not computed: {name}" for name in always.left_out + under.left_out),
        ),
        private={},
        channel=plan.about_people,
        domain=plan.domain,
        standard_errors=plan.errors(n),
        time=datetime.now(timezone.utc),
    )


def useless_columns(plan: Plan, rows: Callable[[], int]) -> dict[object, float]:
    """Return the columns whose counts have a standard error of the number of records or more.

    The result maps each to its error. It is empty for tables of fewer than 100 records.
    """
    errors = plan.errors(1)
    # The error of n records is sqrt(n) times that of one, and at least n if it is at least sqrt(n).
    if max(errors.values()) < math.sqrt(_FEW) or (n := rows()) < _FEW:
        return {}
    root = math.sqrt(n)
    return {name: error * root for name, error in errors.items() if error >= root}


def _advice(plan: Plan, n: int, changed: float, levels: dict[str, Value]) -> list[str]:
    """Return notes that a data owner needs before publishing."""
    notes, columns, level = [], len(plan.domain.columns), levels.get("dp", 0.0)
    estimable = plan.unit != TABLE and plan.channel.kernels is not None
    useless = useless_columns(plan, lambda: n) if estimable or isinstance(plan, LocalPlan) else {}
    if useless:
        notes.append(
            f"nothing can be learnt about {domains.named(list(useless))}: a count would have a "
            "standard error of the number of records or more"
        )
    if plan.unit == RECORD and columns > 1 and changed > _MOST_CHANGED:
        notes.append(
            f"{100 * changed:.0f}% of the records are expected to change; every column by itself "
            f"(split='columns', --split columns) at epsilon/{columns} protects a record as much "
            "and usually keeps more of each column"
        )
    if isinstance(level, float) and level > _WEAK:
        notes.append(
            f"a level of {up(level, 3)} protects little: an output may change the odds of two "
            f"records by a factor of {_factor(level)}"
        )
    return notes


def _measure(
    channel: AbstractChannel, prior: Distribution, unit: str, always: _Levels, under: _Levels
) -> None:
    """Measure the whole table, or a record whose levels add over independent records.

    If records are randomised one by one, differential privacy compares any two values of a record.
    """
    table = unit == TABLE
    if channel.space.n > 1 and not table:
        always.add("column-dp", lambda: neighbour_level(channel))
    always.add("dp", lambda: neighbour_level(channel) if table else extreme_level(channel))
    always.add_total("maximal-leakage", lambda: maxima_level(channel))
    always.add_total("strong-dp", lambda: extreme_level(channel))
    always.add_total("channel-capacity", lambda: _capacity(channel), raised_information)
    under.add("identifiability", lambda: _identifiability(channel, prior, table))
    under.add_total("mutual-information", lambda: _information(channel, prior), raised_information)
    under.add_total("pml", lambda: leakage_levels(channel, prior)[0])


def _capacity(channel: AbstractChannel) -> float:
    """Return the capacity: closed for randomised response, an optimisation for small matrices."""
    if not isinstance(channel, HammingChannel | ColumnsChannel):
        check.fits(channel.space.size, "a capacity", "ask channel_capacity for it", _OPTIMISED)
    return capacity(channel, _CAPACITY_GAP).upper


def _information(channel: AbstractChannel, prior: Distribution) -> Value:
    """Return the mutual information, raised by the rounding of its sum of non-negative terms."""
    value = information(channel, prior)
    return value if isinstance(value, Bracket) else value * (1.0 + INFORMATION_ERROR)


def _identifiability(channel: AbstractChannel, prior: Distribution, table: bool) -> float:
    """Identifiability of a table or a record; of several columns the DP level plus the prior's."""
    if table or channel.space.n == 1:
        return posterior_level(channel, prior)
    spread = -lowered(prior.min_entropy(), _ENTROPY_ULPS) - prior.log_smallest()
    return round_up(extreme_level(channel) + max(spread, 0.0))


class _Levels:
    """Levels that were measured, and the titles of those that would take too long.

    Each is raised by ``slack``, by which the drawn probabilities may exceed the channel's ratios.
    ``records`` is None for a channel on the whole table.
    """

    def __init__(self, records: int | None, slack: float) -> None:
        self._records, self._slack = records, slack
        self.levels: dict[str, Value] = {}
        self.left_out: list[str] = []

    def add(self, slug: str, level: Callable[[], Value], raise_by: _Raise = with_draws) -> None:
        """Measure a level of the whole release."""
        try:
            value = level()
        except TooLarge:
            self.left_out.append(NOTIONS[slug].title)
            return
        if isinstance(value, Bracket):
            lower = max(value.lower - self._slack, 0.0)
            self.levels[slug] = Bracket(lower, raise_by(value.upper, self._slack))
        else:
            self.levels[slug] = raise_by(value, self._slack)

    def add_total(
        self, slug: str, level: Callable[[], Value], raise_by: _Raise = with_draws
    ) -> None:
        """Measure a level of the whole release that adds over independent records."""
        if self._records is None:
            return self.add(slug, level, raise_by)
        one = f"record-{slug}"
        self.add(one, level, raise_by)
        value = self.levels.get(one)
        if isinstance(value, Bracket):
            lower = lowered(self._records * value.lower, 4.0)
            self.levels[slug] = Bracket(lower, product_up(self._records, value.upper))
        elif value is not None:
            self.levels[slug] = product_up(self._records, value)


# JSON.


def spending(path: str) -> dict[str, float]:
    """Read from a report's JSON what the release costs a ledger."""
    document = _document(_read(path), path)
    try:
        levels = document["levels"]
        return _costs({slug: encoding.number(level) for slug, level in levels.items()})
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise InvalidInput(
            f"{path} is no report of a release; give the file that the release wrote with --report."
        ) from error


def _costs(levels: Mapping[str, float]) -> dict[str, float]:
    """Return the level of every notion that a ledger adds up and that was measured."""
    by_measure = {LEVELS[slug]: level for slug, level in levels.items() if slug in LEVELS}
    return {
        slug: by_measure[LEVELS[slug]]
        for slug, notion in NOTIONS.items()
        if notion.law is not None and slug in LEVELS and LEVELS[slug] in by_measure
    }


def _document(text: str | bytes, name: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"{name} is not valid JSON, so it is no report of a release. "
            "Give the file that the release wrote with --report."
        ) from error


def _from_dict(document: Any) -> ReleaseReport:
    """Rebuild a report from its plain form."""
    if not isinstance(document, Mapping) or "levels" not in document:
        raise KeyError("levels")
    if document.get("version") != _VERSION:
        raise InvalidInput(
            f"the report has version {described(document.get('version'))}, expected {_VERSION}; "
            "write it again with this version of fastpriv."
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
        file=None if document.get("file") is None else str(document["file"]),
    )


def _channel(sizes: tuple[int, ...], document: Any, unit: str) -> AbstractChannel:
    """Return randomised response on a record or its columns, or the mechanisms of the columns."""
    if "mechanisms" in document:
        local = ColumnsChannel([load(given) for given in document["mechanisms"]])
        if local.space.sizes != sizes:
            raise ValueError("mechanisms of other columns")
        return on_records(local)
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
        raise InvalidInput(
            f"the report {path:.100} cannot be read: {error.strerror}. Check the path."
        ) from error


# The HTML page.


def _page(report: ReleaseReport) -> str:
    """Return a complete HTML page."""
    kind = "Planned release" if report.digest is None else "Release"
    return html.document(f"{kind} of {report.n:,} records", _page_body(report))


def _page_body(report: ReleaseReport) -> str:
    """Return verdict and warnings, what was published, protection, errors, and formulas."""
    heads = ("Protected", "Level", "Meaning")
    under = f"With assumptions about the data ({report.prior})"
    parts = [
        f"<header><h1>{'Planned release' if report.digest is None else 'Release report'}</h1>"
        "</header>\n",
        _verdict(report),
        html.facts(
            "The planned table" if report.digest is None else "The released table",
            _published(report),
        ),
        f"<h2>How it is randomised</h2>\n<p>{escape(_mechanism(report))}</p>\n",
        html.section("What is protected, without assumptions", heads, _level_rows(report.levels)),
        html.section(under, heads, _level_rows(report.levels_under_prior)),
        html.section(
            "What can be estimated",
            ("Count", "Margin of error", "Meaning"),
            _error_rows(report),
        ),
        html.listed("What is not protected", _unprotected(report)),
        html.listed("Notes", _other_notes(report)) if _other_notes(report) else "",
        html.fold("Formulas, sources and all digits", _formulas(report)),
        f'<p class="soft">Written by fastpriv {escape(__version__)}. A level of L nats means a '
        "factor of exp(L). Levels on this page are rounded to four digits; the last section has "
        "the proved upper bounds. They hold for the probabilities that were used.</p>\n",
    ]
    return "".join(parts)


def _verdict(report: ReleaseReport) -> str:
    """Return the verdict in one sentence, with its reasons; red if the table must stay unpublished.

    Grave reasons are a seed, a domain that was read from the data, a level without a bound.
    """
    level = report.levels.get("dp")
    grave = []
    if not report.secure:
        grave.append(
            "The randomness is NOT secure: it came from a seed. Anybody who guesses the seed can "
            "undo the randomisation. Release the table again without a seed."
        )
    if report.domain_source == domains.FROM_DATA:
        grave.append(
            "The list of values was read from the data. It reveals which values occur, at any "
            "level. Declare the domain and release the table again."
        )
    if level is not None and math.isinf(top(level)):
        grave.append("Some output is possible for one record and impossible for another.")
    warnings = [_sentence(note) for note in report.notes if _is_warning(note)]
    if grave:
        kind, title = "bad", "Do not publish this table"
    elif warnings:
        kind, title = "warn", f"Read the {'warning' if len(warnings) == 1 else 'warnings'} first"
    else:
        kind, title = "good", "No warnings"
    protection = (
        "The level of protection was not computed." if level is None else _meaning("dp", level)
    )
    randomness = "secure, from a cryptographic source" if report.secure else "NOT secure"
    lines = [*grave, *warnings]
    reasons = "".join(f"<li>{escape(line)}</li>\n" for line in lines)
    return (
        f'<section class="verdict {kind}" role="status">\n<b>{title}</b>\n'
        f"<p>{escape(protection)} Randomness: {escape(randomness)}.</p>\n"
        + (f"<ul>\n{reasons}</ul>\n" if reasons else "")
        + "</section>\n"
    )


def _is_warning(note: str) -> bool:
    """Return whether a note warns of little protection, useless columns or unprotected data."""
    return any(word in note for word in _WARNING)


def _sentence(note: str) -> str:
    return f"{note[:1].upper()}{note[1:]}" + ("" if note.endswith(".") else ".")


def _other_notes(report: ReleaseReport) -> list[str]:
    """Return the notes that are neither warnings nor technical."""
    return [
        _sentence(note) for note in report.notes if not _is_warning(note) and _CHOICE not in note
    ]


def _published(report: ReleaseReport) -> list[tuple[str, str]]:
    """Return what identifies the released table."""
    columns = ", ".join(
        f"{name} ({size} {'value' if size == 1 else 'values'})"
        for name, size in zip(report.domain.columns, report.domain.sizes, strict=True)
    )
    ledger = "not charged to a ledger"
    if report.receipt is not None:
        label = f" “{report.receipt.label}”" if report.receipt.label else ""
        ledger = f"entry {report.receipt.number}{label} of the ledger"
    digest = "none: this is a preview, and nothing has been drawn"
    if report.digest is not None:
        digest = f"{report.digest.total:016x} under the key {report.digest.key.hex()}"
    return [
        ("File", report.file or ("not written yet" if report.digest is None else "in memory")),
        ("Records", f"{report.n:,}"),
        ("Columns", columns),
        ("Values", f"the list of values was {report.domain_source}"),
        ("Date", report.time.strftime("%Y-%m-%d %H:%M UTC")),
        ("Digest of the records", digest),
        ("Budget", ledger),
    ]


def _mechanism(report: ReleaseReport) -> str:
    """Return the mechanism as a sentence."""
    channel, names = report._columns_channel, report.domain.columns
    if isinstance(channel, SupportChannel):
        channel = ColumnsChannel([channel])
    if isinstance(channel, ColumnsChannel):
        parts = [
            f"column {name} {_as_sentence(column)}"
            for name, column in zip(names, channel.columns, strict=True)
        ]
        return _sentence("; ".join(parts))
    rows = channel.kernels
    if report.unit == TABLE or rows is None or not all(isinstance(r, Symmetric) for r in rows):
        what = {
            RECORD: "Every record is",
            COLUMNS: "The columns of every record are",
            TABLE: "The whole table is",
        }[report.unit]
        return f"{what} randomised by probabilities that were given; the last section names them."
    if report.unit == RECORD or len(names) == 1:
        whole = "value" if len(names) == 1 else "whole record"
        return f"Each {whole} is {_kept(rows[0])}, independently of all others."
    parts = [f"{name} is {_kept(row)}" for name, row in zip(names, rows, strict=True)]
    return (
        f"Every column of a record is randomised on its own: {'; '.join(parts)}. All draws are "
        "independent."
    )


def _kept(row: RowKernel) -> str:
    """Return what randomised response does to a value."""
    assert isinstance(row, Symmetric)
    others = row.m - 1
    if not others:
        return "the only value there is"
    other = "the other value" if others == 1 else f"one of the {others:,} other values at random"
    changed = 100.0 * row.off * others
    if changed < _HARDLY:
        return f"kept almost always and otherwise replaced by {other}"
    digits = max(1, 1 - math.floor(math.log10(changed)))
    kept = f"{100.0 - changed:.{digits}f} %"
    return f"kept with probability {kept} and otherwise replaced by {other}"


def _as_sentence(column: AbstractChannel) -> str:
    """Return what the mechanism of one column does."""
    if isinstance(column, SupportChannel):
        name = type(column).__name__.removesuffix("Channel").lower()
        level = f"{column.epsilon:.4g}"
        return f"becomes a short message of the {name} mechanism at level {level}"
    rows = column.kernels
    assert rows is not None
    return f"is {_kept(rows[0])}"


def _level_rows(levels: dict[str, Value]) -> list[str]:
    """Return one row for each level, in plain words; levels without words are in the fold."""
    return [
        html.row(
            escape(_PROTECTED[slug]), escape(_short(slug, level)), escape(_meaning(slug, level))
        )
        for slug, level in levels.items()
        if slug in _MEANINGS
    ]


def _short(slug: str, level: Value) -> str:
    """Write a level in four digits, so that 3 and 3.00001 read alike."""
    number = top(level)
    if math.isinf(number):
        return "no bound"
    unit = NOTIONS[slug].unit
    return quantity(f"{number:.4g}", unit)


def _formulas(report: ReleaseReport) -> str:
    """Return formula, source and proved upper bound of every level."""
    rows = [
        html.row(
            escape(NOTIONS[slug].title),
            escape(quantity(shown(level), NOTIONS[slug].unit)),
            f"{escape(_sentence(NOTIONS[slug].bounds))}"
            f"<small>{escape(NOTIONS[slug].source)}</small>",
        )
        for slug, level in (report.levels | report.levels_under_prior).items()
    ]
    choices = [_sentence(note) for note in report.notes if _CHOICE in note]
    return (
        html.section("Levels", ("Notion", "Proved upper bound", "Bounds"), rows)
        + f"<p>Mechanism: <code>{escape(report.mechanism)}</code></p>\n"
        + "".join(f"<p>{escape(choice)}</p>\n" for choice in choices)
    )


def _meaning(slug: str, level: Value) -> str:
    """Return the meaning of a level in plain words."""
    number = top(level)
    if math.isinf(number):
        return (
            "There is no bound: some output is possible for one record and impossible for another."
        )
    bits = up(rounding.raised(number / math.log(2.0), 8.0), 4)
    return _MEANINGS[slug].format(factor=_factor(number), bits=bits)


def _factor(level: float) -> str:
    """Return e^level, rounded up, in figures or as a power if it is large."""
    if level >= _LARGE_LEVEL:
        return f"e^{up(level, 4)}"
    factor = up(rounding.raised(math.exp(level), 8.0), 4)
    return f"{int(factor):,}" if factor.isdecimal() else factor


def _error_rows(report: ReleaseReport) -> list[str]:
    """Return the errors of the count of one value of each column, and of one cell of a cross-tab.

    A margin is 1.96 standard errors, if all values are equally common.
    """
    rows = []
    for name, values in zip(report.domain.columns, report.domain.values, strict=True):
        count = report.n / max(1, len(values))
        cell = f"{name} = {_value(values[-1])}"
        rows.append(_error_row(report, cell, count, report.standard_errors[name]))
    if len(report.domain.columns) > 1:
        first, second = report.domain.columns[:2]
        cells = report.domain.sizes[0] * report.domain.sizes[1]
        values = [_value(column[-1]) for column in report.domain.values[:2]]
        cell = f"{first} = {values[0]} and {second} = {values[1]}"
        error = _cross_error(report)
        if error is None:
            text = "Messages of a local mechanism have no cross-tabulation."
            rows.append(html.row(escape(cell), "none", text))
        else:
            rows.append(_error_row(report, cell, report.n / cells, error))
    return rows


def _value(value: object) -> str:
    return "(missing)" if value is None else str(value)


def _cross_error(report: ReleaseReport) -> float | None:
    """Return the standard error of a cell of the first two columns; None if there is no cell."""
    channel = report._columns_channel
    if isinstance(channel, ColumnsChannel):
        columns = channel.columns[:2]
        if any(isinstance(column, SupportChannel) for column in columns):
            return None
        channel = responses(channel.space.sizes, [_response_level(c) for c in channel.columns])
    return expected_error(channel, report.unit, report.domain, report.n, (0, 1))


def _response_level(column: AbstractChannel) -> float:
    """Return the level of randomised response; that of another mechanism is not asked for."""
    return column.epsilon if isinstance(column, HammingChannel) else 0.0


def _error_row(report: ReleaseReport, cell: str, count: float, error: float) -> str:
    if math.isinf(error):
        return html.row(escape(cell), "none", "The mechanism cannot be undone.")
    margin = _MARGIN * error
    low, high = max(0.0, count - margin), min(float(report.n), count + margin)
    text = (
        f"If the true count is {count:,.0f}, 95 of 100 estimates lie between {low:,.0f} and "
        f"{high:,.0f}."
    )
    if margin >= count:
        text += " A count of this size cannot be distinguished from 0."
    return html.row(escape(cell), f"± {margin:,.0f}", escape(text))


def _unprotected(report: ReleaseReport) -> list[str]:
    """List what the release reveals at any level."""
    lines = [
        f"The number of records, {report.n:,}.",
        "The order of the records: anybody who knows the order knows whose record is whose.",
        "The columns, their declared values and the mechanism; the levels do not rely on secrecy.",
    ]
    if report.unit == "columns" and len(report.domain.columns) > 1:
        lines.append(
            "The level of a single column is smaller than the level of a record and protects that "
            "column only; the level of a person is the level of the record."
        )
    return lines
