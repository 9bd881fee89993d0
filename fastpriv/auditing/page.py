"""An audit as one HTML page: for a phone, a desk, a dark room and paper, with nothing to fetch."""

from __future__ import annotations

from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING

from fastpriv import __version__
from fastpriv._text.html import document, listed, part, row, section
from fastpriv.auditing.figures import figures
from fastpriv.notions.registry import NOTIONS

if TYPE_CHECKING:
    from fastpriv.auditing.report import Audit, Implied, Level

#: Most numbers that a page starts with.
_CARDS = 4


def page(audit: Audit, plots: bool) -> str:
    """Return a page that stands by itself."""
    return document(f"Privacy audit of {audit.name}", _content(audit, plots))


def fragment(audit: Audit) -> str:
    """Return what a notebook shows: the same without figures."""
    return part(_content(audit, False))


def _content(audit: Audit, plots: bool) -> str:
    parts = [_header(audit), _cards(audit)]
    if plots:
        parts.append(_plots(audit))
    parts += [
        section(title, ("Level", "Value", "What it means"), map(_level, levels))
        for title, levels in audit.scopes()
    ]
    if audit.implied:
        heads = ("Guarantee", "At most", "Follows from")
        parts.append(section("What follows from what", heads, map(_implied, audit.implied)))
    if audit.skipped:
        reasons = [f"{', '.join(many)}: {why}" for why, many in audit.reasons().items()]
        parts.append(listed("Not measured", reasons))
    if audit.notes:
        parts.append(listed("Notes", list(audit.notes)))
    parts.append(
        f'<p class="soft">Measured by fastpriv {escape(__version__)}. Numbers are rounded against '
        "the mechanism; a pair in brackets encloses the true value. Levels are in nats: a level of "
        "e is a factor of exp(e).</p>\n"
    )
    return "".join(parts)


def _header(audit: Audit) -> str:
    prior = "" if audit.prior is None else f"<p>Prior: <code>{escape(repr(audit.prior))}</code></p>"
    return (
        f"<header><h1>Privacy audit</h1>\n<p><code>{escape(audit.name)}</code></p>\n{prior}"
        f'<p class="soft">{escape(audit.summary)}</p></header>\n'
    )


def _cards(audit: Audit) -> str:
    headlines = [
        level for slug, level in audit.levels.items() if NOTIONS[slug].display == "headline"
    ]
    cards = [
        f'<div class="card">{escape(_name(level.title))}<b>{escape(level.shown)}</b>'
        f"<small>{escape(level.meaning)}</small></div>\n"
        for level in headlines[:_CARDS]
    ]
    if not cards:
        return ""
    return f'<div class="cards">\n{"".join(cards)}</div>\n'


def _plots(audit: Audit) -> str:
    if find_spec("matplotlib") is None:
        return (
            '<p class="soft">This page has no figures: drawing them needs matplotlib, which '
            "pip install 'fastpriv[plot]' installs.</p>\n"
        )
    drawn = [
        f"<figure><figcaption>{escape(figure.caption)}</figcaption>{figure.svg}</figure>\n"
        for figure in figures(audit)
    ]
    if not drawn:
        return ""
    return f'<h2>Figures</h2>\n<div class="plots">\n{"".join(drawn)}</div>\n'


def _level(level: Level) -> str:
    place = f"<small>{escape(level.place)}</small>" if level.where else ""
    head = f"{escape(_name(level.title))}<small>{escape(level.source)}</small>"
    return row(head, escape(level.shown), escape(level.meaning) + place)


def _implied(implied: Implied) -> str:
    head = f"{escape(implied.notion)}<small>{escape(NOTIONS[implied.notion].bounds)}</small>"
    return row(head, escape(implied.shown), escape(implied.reason))


def _name(title: str) -> str:
    """Begin a title with a capital, unless it is a symbol."""
    return title if "_" in title else title[0].upper() + title[1:]
