"""An audit as one HTML page that loads nothing, with figures in the page's colours and fonts."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from fastpriv import __version__, plot
from fastpriv._core.extras import optional
from fastpriv._text.html import document, listed, part, row, section
from fastpriv.errors import Infeasible, InvalidInput, SolverFailure, TooLarge
from fastpriv.notions.registry import NOTIONS

if TYPE_CHECKING:
    from fastpriv.auditing.report import Audit, Implied, Level

#: Most numbers that a page starts with.
_CARDS = 4
#: Parts of the figures in this colour get the colour of the page's text.
_TEXT = "#010203"
#: Greys that the figures use for text and thin lines.
_GREYS = ("#404040", "#262626", "#000000")
#: Records of all sampled outputs that a figure passes through the mechanism: about a second.
_DRAWN = 1 << 20
#: The same for records of different kinds, which cost more.
_DIFFERENT = 1 << 14


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


class Figure(NamedTuple):
    """One figure: its caption, and the SVG element."""

    caption: str
    svg: str


def figures(audit: Audit) -> list[Figure]:
    """Draw the levels, the leakage of outputs and the privacy profile, those that can be drawn."""
    matplotlib: Any = optional("matplotlib", "plot")
    prior = audit.prior
    # Outputs that are drawn at random, where there are too many, each cost one pass over the rows.
    rows = audit.channel.kernels
    kinds = 1 if rows is None else len(rows.distinct)
    draws = min(max(10, min(100, _DRAWN // audit.channel.space.n)), _DIFFERENT // kinds)
    wanted: list[tuple[str, float, Callable[[Any], Any]]] = []
    if audit.levels:
        wanted.append(
            (
                "Levels side by side: shorter is more private.",
                1.0 + 0.17 * sum(level.unit == "nats" for level in audit.levels.values()),
                lambda ax: plot.levels(audit, ax=ax),
            )
        )
    if prior is not None and "pml" in audit and draws >= 10:
        wanted.append(
            (
                "Leakage of the outputs, each as wide as it is likely.",
                3.4,
                lambda ax: plot.leakage(audit.channel, prior, draws=draws, ax=ax),
            )
        )
    if "approximate-dp-1e-3" in audit:  # all neighbours can be compared
        wanted.append(
            (
                "Privacy profile: the delta that each epsilon leaves.",
                3.4,
                lambda ax: plot.profile(audit.channel, labels=["this mechanism"], ax=ax),
            )
        )
    drawn = []
    for number, (caption, height, draw) in enumerate(wanted):
        try:
            with matplotlib.rc_context(_style(number)):
                drawn.append(Figure(caption, _svg(draw, height, caption, number)))
        except (Infeasible, InvalidInput, SolverFailure, TooLarge):
            continue  # what cannot be measured is in the list of what was skipped
    return drawn


def _style(number: int) -> dict[str, Any]:
    names = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    return {
        **dict.fromkeys(names, _TEXT),
        "font.size": 9.0,
        "svg.fonttype": "none",
        "svg.hashsalt": f"fastpriv-{number}",
    }


def _svg(draw: Callable[[Any], Any], height: float, caption: str, number: int) -> str:
    """Draw on a figure of its own and return the bare SVG element, its ids apart from others'."""
    module: Any = optional("matplotlib.figure", "plot")
    figure = module.Figure(figsize=(4.4, height), layout="constrained")
    draw(figure.subplots())
    file = io.StringIO()
    figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>", "", text, flags=re.S)
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>f{number}-", text)
    for colour in (_TEXT, *_GREYS):
        text = text.replace(colour, "currentColor")
    view = re.search(r'viewBox="[^"]*"', text)
    assert view is not None
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'{view[0]} role="img" aria-label="{escape(caption)}">'
    )
    return head + text[text.index(">") + 1 :]
