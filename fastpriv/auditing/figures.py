"""The figures of an audit's page, as SVG that takes the page's colours and fonts."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from fastpriv import plot
from fastpriv._core.extras import optional
from fastpriv.errors import Infeasible, InvalidInput, SolverFailure, TooLarge

if TYPE_CHECKING:
    from fastpriv.auditing.report import Audit

#: What is drawn in this colour gets the colour of the page's text.
_TEXT = "#010203"
#: Rows of all outputs that are drawn together, and rows of different kinds, which cost more.
_DRAWN, _DIFFERENT = 1 << 20, 1 << 14
#: Greys that the figures use for text and thin lines.
_GREYS = ("#404040", "#262626", "#000000")


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
