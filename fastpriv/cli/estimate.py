"""``fastpriv estimate``: the frequencies of a table before it was released."""

from __future__ import annotations

import argparse
from typing import Any

from fastpriv._text.encoding import to_json
from fastpriv._text.numbers import up
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
    add_file(parser, "--domain", metavar="JSON", help="as for the release; a report knows it")
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("--epsilon", type=float, help="as for the release")
    add_file(how, "--report", metavar="JSON", help="report that the release wrote")
    parser.add_argument("--per-column", action="store_true", help="as for the release")
    parser.add_argument("--split", choices=("columns", "record"), help="as for the release")
    parser.add_argument(
        "--columns",
        nargs="+",
        metavar="NAME",
        help="only these columns, and their cross-tabulation: --columns A B, or A,B",
    )
    parser.add_argument(
        "--delimiter", default=",", metavar="MARK", help="between the fields of a CSV file (,)"
    )
    parser.add_argument(
        "--method",
        choices=("unbiased", "bayesian"),
        default="unbiased",
        help="bayesian: the counts of largest likelihood, none negative",
    )
    parser.add_argument("--confidence", type=float, default=0.95, help="default: 0.95")
    parser.add_argument(
        "--simultaneous", action="store_true", help="cover all values of a column at once"
    )
    add_json(parser)
    return parser


def run(given: argparse.Namespace) -> str:
    """Return what the subcommand prints."""
    from fastpriv.releasing.frequencies import estimate_frequencies
    from fastpriv.releasing.report import ReleaseReport

    if given.report is not None:
        if given.per_column or given.split:
            raise InvalidInput(
                "--per-column and --split must be left out with --report, which states how the "
                "table was released."
            )
        mechanism, domain, assumed = ReleaseReport.from_json(given.report), given.domain, None
    else:
        mechanism, domain, assumed = _channel(given)
    frequencies = estimate_frequencies(
        given.table,
        mechanism,
        domain=domain,
        columns=_columns(given.columns),
        confidence=given.confidence,
        simultaneous=given.simultaneous,
        method=given.method,
        delimiter=given.delimiter,
        progress=True,
    )
    text = str(frequencies).replace("see projected()", "see --method bayesian")
    if assumed is None:
        return to_json(frequencies) if given.json else text
    if given.json:
        return to_json({"assumed": assumed, **frequencies.to_dict()})
    return f"Assumed: {assumed}. The report of the release (--report) knows.\n{text}"


def _columns(words: list[str] | None) -> list[str] | None:
    """Return the names of columns: several words, or one word with commas."""
    if words is None or len(words) > 1:
        return words
    return words[0].split(",")


def _channel(given: argparse.Namespace) -> tuple[Any, Any, str]:
    """Return the mechanism of a release with the same options, its domain, and how it splits."""
    from fastpriv.channels import HammingChannel
    from fastpriv.releasing import domain as domains
    from fastpriv.releasing.plan import choose
    from fastpriv.releasing.release import undeclared
    from fastpriv.releasing.tables import open_table

    if given.domain is None:
        raise InvalidInput(
            "--domain or --report must be given. The report of the release contains the domain."
        )
    domain = domains.read(given.domain)
    source = open_table(given.table, delimiter=given.delimiter)
    plan = choose(
        domain,
        source.rows,
        epsilon=given.epsilon,
        per_column=given.per_column,
        split=given.split,
    )
    extra = undeclared(source, domain)
    if extra and plan.unit == "record":
        raise InvalidInput(
            f"the domain does not declare {domains.named(extra)}; records were randomised as a "
            "whole, so give the domain of the release with all of its columns."
        )
    words = f"each record as one value at epsilon {up(given.epsilon)} (--split record)"
    if plan.unit == "columns":
        assert isinstance(plan.channel, HammingChannel)
        option = "--per-column" if given.per_column else "--split columns"
        share = up(plan.channel.epsilon)
        words = f"each of {len(domain.columns)} columns by itself at epsilon {share} ({option})"
    return plan.channel, domain, words
