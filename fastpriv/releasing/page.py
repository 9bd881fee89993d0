"""The report of a release as one HTML page, for the person who signs it off."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

from fastpriv import __version__
from fastpriv._core.rounding import raised
from fastpriv._text.html import document, listed, part, row, section
from fastpriv._text.numbers import quantity, shown, up
from fastpriv.notions.registry import NOTIONS
from fastpriv.results import Value, top

if TYPE_CHECKING:
    from fastpriv.releasing.report import ReleaseReport

#: What levels of a release mean to somebody who reads no formulas.
_MEANINGS = {
    "dp": "Replacing one person's whole record changes the probability of any released table by a "
    "factor of at most {factor}.",
    "column-dp": "Changing one column of one record changes the probability of any released table "
    "by a factor of at most {factor}.",
    "record-strong-dp": "No released record changes the odds between two possible true records by "
    "more than a factor of {factor}.",
    "record-maximal-leakage": "Seeing a released record raises the chance of guessing any secret "
    "of its person by a factor of at most {factor}.",
    "record-channel-capacity": "A released record carries at most {bits} bits about the true one.",
    "identifiability": "Given the released table, no record is more likely than another by more "
    "than a factor of {factor}.",
    "record-mutual-information": "On average a released record tells {bits} bits about the true "
    "one.",
    "record-pml": "No released record makes a guess about its person more likely to be right by "
    "more than a factor of {factor}.",
}


def page(report: ReleaseReport) -> str:
    """Return a page that stands by itself."""
    return document(f"Release of {report.n:,} records", "".join(_parts(report)))


def fragment(report: ReleaseReport) -> str:
    """Return what a notebook shows."""
    return part("".join(_parts(report)))


def _parts(report: ReleaseReport) -> list[str]:
    heads = ("Level", "Value", "What it means")
    return [
        _header(report),
        _cards(report),
        section("Whatever anybody knows", heads, _levels(report.levels)),
        section(f"Under a prior: {report.prior}", heads, _levels(report.levels_under_prior)),
        section(
            "What can be estimated",
            ("Column", "Standard error", "Of the count of a value, if values are equally common"),
            [_error(report, name, error) for name, error in report.standard_errors.items()],
        ),
        listed("What was not protected", _unprotected(report)),
        listed("Notes", list(report.notes)) if report.notes else "",
        f'<p class="soft">Written by fastpriv {escape(__version__)}. Levels are in nats and '
        "rounded up; a level of e is a factor of exp(e). They hold for the probabilities that were "
        "drawn from.</p>\n",
    ]


def _header(report: ReleaseReport) -> str:
    columns = ", ".join(
        f"{name} ({size})"
        for name, size in zip(report.domain.columns, report.domain.sizes, strict=True)
    )
    when = report.time.strftime("%Y-%m-%d %H:%M UTC")
    ledger = "not charged to a ledger"
    if report.receipt is not None:
        label = f" “{report.receipt.label}”" if report.receipt.label else ""
        ledger = f"entry {report.receipt.number}{label} of the ledger"
    lines = [
        f"Date: {when}",
        f"Table: {report.n:,} records",
        f"Columns (number of values): {columns}",
        f"Mechanism: {report.mechanism}",
        f"Randomness: {report.randomness}",
        f"Domain: {report.domain_source}",
        f"Budget: {ledger}",
    ]
    return (
        "<header><h1>Release report</h1>\n"
        + "".join(f"<p>{escape(line)}</p>\n" for line in lines)
        + "</header>\n"
    )


def _cards(report: ReleaseReport) -> str:
    level = report.levels.get("dp")
    share = min(report.distortion / max(1, report.n * _cells(report)), 1.0)
    cards = [
        (
            "Protection of a person",
            "unknown" if level is None else quantity(up(top(level), 6), "nats"),
            _meaning("dp", level) if level is not None else "",
        ),
        (
            f"Changed {report.counted}",
            f"{100.0 * share:.1f} %",
            "Expected share of what is released.",
        ),
        (
            "Randomness",
            "secure" if report.secure else "NOT secure",
            "From a cryptographic source."
            if report.secure
            else "From a seed: whoever guesses it can undo the noise. Do not publish this table.",
        ),
    ]
    return (
        '<div class="cards">\n'
        + "".join(
            f'<div class="card">{escape(title)}<b>{escape(value)}</b>'
            f"<small>{escape(text)}</small></div>\n"
            for title, value, text in cards
        )
        + "</div>\n"
    )


def _cells(report: ReleaseReport) -> int:
    return len(report.domain.columns) if report.counted == "cells" else 1


def _levels(levels: dict[str, Value]) -> list[str]:
    return [
        row(
            f"{escape(NOTIONS[slug].title)}<small>{escape(NOTIONS[slug].source)}</small>",
            escape(quantity(shown(level, 6), NOTIONS[slug].unit)),
            escape(_meaning(slug, level)),
        )
        for slug, level in levels.items()
    ]


def _meaning(slug: str, level: Value) -> str:
    """Say in plain words what a level means; the formula where there are none."""
    words, number = _MEANINGS.get(slug), top(level)
    if words is None:
        return NOTIONS[slug].bounds
    if math.isinf(number):
        return (
            "There is no bound: some output is possible for one record and impossible for another."
        )
    factor = up(raised(math.exp(number), 8.0), 4) if number < 14.0 else f"e^{up(number, 4)}"
    return words.format(factor=factor, bits=up(raised(number / math.log(2.0), 8.0), 4))


def _error(report: ReleaseReport, name: object, error: float) -> str:
    if math.isinf(error):
        return row(escape(str(name)), "none", "The mechanism cannot be undone.")
    share = f"{100.0 * error / report.n:.1f} % of the records" if report.n else ""
    return row(escape(str(name)), f"{error:,.1f}", escape(share))


def _unprotected(report: ReleaseReport) -> list[str]:
    """List what everybody can read off the release, whatever the level."""
    lines = [
        f"The number of records, {report.n:,}.",
        "The order of the records: whoever knows whose record stands where knows whose this is.",
        "The columns, their declared values and the mechanism; the levels do not rely on secrecy.",
    ]
    lines += [f"{note[0].upper()}{note[1:]}." for note in report.notes if "given away" in note]
    lines += [f"{note[0].upper()}{note[1:]}." for note in report.notes if "unprotected" in note]
    if report.unit == "columns" and len(report.domain.columns) > 1:
        lines.append(
            "The level of a single column is smaller than that of a record and protects that "
            "column only; the level of a person is that of the record."
        )
    return lines
