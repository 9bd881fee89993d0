"""``fastpriv compare``: two mechanisms side by side."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from fastpriv._text.encoding import to_json
from fastpriv.cli.audit import add_audit, audited
from fastpriv.cli.mechanisms import add_mechanism, has_sizes
from fastpriv.cli.parser import add_json, examples
from fastpriv.errors import InvalidInput


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
    (_, first), (_, second) = (
        audited(given, name, given.sizes if has_sizes(name) else None) for name in names
    )
    from fastpriv.auditing.compare import side_by_side

    comparison = side_by_side(replace(first, name=given.first), replace(second, name=given.second))
    return to_json(comparison) if given.json else repr(comparison)
