"""``fastpriv estimate``: the frequencies of a table before it was released."""

from __future__ import annotations

import argparse
from typing import Any

from fastpriv._text.encoding import to_json
from fastpriv.cli.parser import add_file, add_json, examples
from fastpriv.errors import InvalidInput


def add(commands: Any) -> argparse.ArgumentParser:
    """Declare the subcommand and its options."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "estimate",
        help="estimate the frequencies a file had before it was released",
        description="Undo the randomisation of a released file for the counts of every column.\n"
        "Intervals cover the randomisation, the table being what it was.",
        epilog=examples(
            "fastpriv release people.csv --domain domain.json --epsilon 1.0 --out released.csv",
            "fastpriv estimate released.csv --domain domain.json --epsilon 1.0",
        ),
    )
    add_file(parser, "table", help="a released .csv or .parquet file")
    add_file(parser, "--domain", metavar="JSON", required=True, help="as for the release")
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("--epsilon", type=float, help="as for the release")
    add_file(how, "--report", metavar="JSON", help="report that the release wrote")
    parser.add_argument("--per-column", action="store_true", help="as for the release")
    parser.add_argument("--confidence", type=float, default=0.95, help="default: 0.95")
    parser.add_argument(
        "--simultaneous", action="store_true", help="cover all values of a column at once"
    )
    add_json(parser)
    return parser


def run(given: argparse.Namespace) -> str:
    """Return what the subcommand prints."""
    from fastpriv.releasing import domain as domains
    from fastpriv.releasing import plan as plans
    from fastpriv.releasing import report as reports
    from fastpriv.releasing.frequencies import estimate_frequencies
    from fastpriv.releasing.release import open_table, undeclared

    domain = domains.read(given.domain)
    epsilon, per_column = given.epsilon, given.per_column
    if given.report is not None:
        epsilon, per_column = reports.response(given.report)
    extra = undeclared(open_table(given.table), domain)
    if extra and not per_column:
        raise InvalidInput(
            f"the domain does not declare {', '.join(map(repr, extra))}; records were randomised "
            "as a whole, so give the domain of the release with all of its columns"
        )
    frequencies = estimate_frequencies(
        given.table,
        plans.hamming(domain, epsilon, per_column).channel,
        domain=domain,
        confidence=given.confidence,
        simultaneous=given.simultaneous,
    )
    return to_json(frequencies) if given.json else str(frequencies)
