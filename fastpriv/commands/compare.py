"""``fastpriv compare``: two mechanisms side by side."""

from __future__ import annotations

import argparse
from typing import Any

from fastpriv.commands import _arrays
from fastpriv.commands._mechanisms import add_mechanism, add_prior, load
from fastpriv.commands._parser import add_file, add_json, examples
from fastpriv.commands._text import shown, table, to_json
from fastpriv.results import Bracket


def add(commands: Any) -> argparse.ArgumentParser:
    """Declare the subcommand and its options."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "compare",
        help="two mechanisms side by side",
        description="Print the levels of two mechanisms on the same databases, and which of the\n"
        "two is lower at each. Brackets that overlap decide nothing.",
        epilog=examples(
            "fastpriv compare hamming:n=3,m=2,epsilon=1 channel8.csv --sizes 2,2,2",
            "fastpriv compare hamming:n=2,m=2,epsilon=1 posterior:epsilon=1 "
            "--prior iid:p=0.6,0.4,n=2 --json",
        ),
    )
    add_mechanism(parser, "first")
    add_mechanism(parser, "second")
    add_prior(parser)
    add_file(parser, "--joint", help="a .csv or .npy file with P(S = s, X = x): a line for each s")
    add_json(parser)
    return parser


def run(given: argparse.Namespace) -> str:
    """Return what the subcommand prints."""
    import fastpriv as fp

    joint = None if given.joint is None else _arrays.read(given.joint, "the joint law")
    names = [given.first, given.second]
    audits = []
    for name in names:
        sizes = given.sizes if _arrays.is_file(name) else None
        channel, prior = load(name, given.prior, sizes)
        audits.append((channel, fp.audit(channel, prior, joint)))
    (one, first), (two, second) = audits
    if one.space != two.space:
        raise fp.InvalidInput(
            f"the two are for different databases, {one.space!r} and {two.space!r}; for a matrix "
            "in a file give --sizes"
        )
    shared = [slug for slug in first.levels if slug in second.levels]
    pairs = {slug: (first.levels[slug].value, second.levels[slug].value) for slug in shared}
    lower = {slug: _lower(*pair) for slug, pair in pairs.items()}
    if given.json:
        return to_json(
            {
                "first": names[0],
                "second": names[1],
                "levels": {
                    slug: {"first": a, "second": b, "lower": lower[slug]}
                    for slug, (a, b) in pairs.items()
                },
            }
        )
    rows = [["", "first", "second", "lower"]]
    for slug, (a, b) in pairs.items():
        level = first.levels[slug]
        rows.append([f"{level.title} ({level.unit})", shown(a), shown(b), lower[slug] or "-"])
    return f"first:  {names[0]}\nsecond: {names[1]}\n\n{table(rows)}"


def _lower(a: Any, b: Any) -> str | None:
    """Return which of two values is proved to be lower: "first", "second", "same", or None."""
    one = a if isinstance(a, Bracket) else Bracket(a, a)
    two = b if isinstance(b, Bracket) else Bracket(b, b)
    if one == two and one.width == 0.0:
        return "same"
    if one.upper < two.lower:
        return "first"
    return "second" if two.upper < one.lower else None
