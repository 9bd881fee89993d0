"""``fastpriv compare``: two mechanisms side by side."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING, Any

from fastpriv._text.table import table
from fastpriv.cli.audit import add_audit, audited
from fastpriv.cli.mechanisms import add_mechanism, has_sizes
from fastpriv.cli.parser import add_json, examples
from fastpriv.cli.text import to_json
from fastpriv.errors import InvalidInput
from fastpriv.results import Bracket

if TYPE_CHECKING:
    from fastpriv.auditing.report import Level

#: Levels that are closer than this, relative to 1 + level, are not told apart.
_SAME = 1e-9


def add(commands: Any) -> argparse.ArgumentParser:
    """Declare the subcommand and its options."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "compare",
        help="two mechanisms side by side",
        description="Print the levels of two mechanisms on the same databases, and which of the\n"
        "two is better at each. Bounds that overlap decide nothing.",
        epilog=examples(
            "fastpriv compare hamming:n=2,m=2,epsilon=1 channel.csv --sizes 2,2",
            "fastpriv compare hamming:n=2,m=2,epsilon=1 posterior:epsilon=1 "
            "--prior iid:p=0.6,0.4,n=2 --json",
        ),
    )
    add_mechanism(parser, "first")
    add_mechanism(parser, "second")
    add_audit(parser)
    add_json(parser)
    return parser


def run(given: argparse.Namespace) -> str:
    """Return what the subcommand prints."""
    names = given.first, given.second
    if given.sizes is not None and not any(map(has_sizes, names)):
        raise InvalidInput("--sizes is for files; named mechanisms have rows of their own")
    (one, first), (two, second) = (
        audited(given, name, given.sizes if has_sizes(name) else None) for name in names
    )
    if one.space != two.space:
        raise InvalidInput(
            f"the two are for different databases, {one.space!r} and {two.space!r}; for a matrix "
            "in a file give --sizes"
        )
    pairs = {
        notion: (level, second.levels[notion])
        for notion, level in first.levels.items()
        if notion in second.levels and level.scope != "facts"
    }
    if given.json:
        levels = {
            notion: {
                "title": a.title,
                "unit": a.unit,
                "first": a.value,
                "second": b.value,
                "better": _better(a, b),
            }
            for notion, (a, b) in pairs.items()
        }
        return to_json({"first": given.first, "second": given.second, "levels": levels})
    rows = [["", "first", "second", "better"]]
    rows += [[a.title, a.shown, b.shown, _better(a, b) or "?"] for a, b in pairs.values()]
    return f"first:  {given.first}\nsecond: {given.second}\n\n{table(rows)}"


def _better(first: Level, second: Level) -> str | None:
    """Return which of two levels is proved to be better: "first", "second", "same", or None."""
    from fastpriv.auditing.report import FROM_BELOW

    a, b = (_bounds(level) for level in (first, second))
    if a.lower == b.lower == math.inf:
        return "same"
    lower, upper = min(a.lower, b.lower), max(a.upper, b.upper)
    if upper < math.inf and upper - lower <= _SAME * (1.0 + abs(upper)):
        return "same"
    if a.upper < b.lower:
        return "second" if first.notion in FROM_BELOW else "first"
    if b.upper < a.lower:
        return "first" if first.notion in FROM_BELOW else "second"
    return None


def _bounds(level: Level) -> Bracket:
    value = level.value
    return value if isinstance(value, Bracket) else Bracket(float(value), float(value))
