"""``fastpriv release``: a sanitised copy of a file, and a report of what it gives away."""

from __future__ import annotations

import argparse
import json
from typing import Any

from fastpriv._text import encoding
from fastpriv._text.numbers import up
from fastpriv.cli.parser import add_file, add_force, add_json, examples


def add(commands: Any) -> argparse.ArgumentParser:
    """Declare the subcommand and its options."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "release",
        help="write a sanitised copy of a CSV or Parquet file",
        description="Randomise every record of a file and say how private the result is. The\n"
        "file is read in chunks; the result appears when all went well, or not at all.",
        epilog=examples(
            "fastpriv release people.csv --domain domain.json --epsilon 1.0 --out released.csv "
            "--report report.json"
        ),
    )
    add_file(parser, "table", help="a .csv or .parquet file, one record per row")
    add_file(parser, "--domain", metavar="JSON", help='file with {"column": [values]}')
    cost = parser.add_mutually_exclusive_group(required=True)
    cost.add_argument("--epsilon", type=float, help="level of a whole record, in nats")
    cost.add_argument("--distortion", type=float, help="expected number of changed records")
    parser.add_argument(
        "--mechanism",
        metavar="NAME",
        help="a local mechanism for every column, at its share of --epsilon: auto (the least "
        "variance), subset-selection, hashing, projective, hadamard, unary, symmetric-unary or "
        "randomised-response",
    )
    add_file(parser, "--out", required=True, help="the released file")
    add_file(parser, "--report", metavar="JSON", help="also write the report there")
    parser.add_argument(
        "--per-column", action="store_true", help="every column by itself, at level epsilon each"
    )
    parser.add_argument(
        "--split",
        choices=("columns", "record"),
        help="divide epsilon among the columns, or take a record as one value; by default the way "
        "that keeps most",
    )
    add_file(parser, "--ledger", help="ledger to charge before anything is drawn")
    parser.add_argument("--label", default="release", help="name of the spend in the ledger")
    parser.add_argument(
        "--resume",
        metavar="LABEL",
        help="repeat a release that was interrupted after it was charged under this label; the "
        "same table and options are not charged again",
    )
    parser.add_argument(
        "--accept-useless", action="store_true", help="release even what nothing can be learnt from"
    )
    parser.add_argument(
        "--drop-undeclared", action="store_true", help="leave out columns not in the domain"
    )
    parser.add_argument(
        "--accept-domain-from-data",
        action="store_true",
        help="without --domain: read it off the data, which gives away the values that occur",
    )
    parser.add_argument(
        "--shuffled",
        type=float,
        metavar="DELTA",
        help="also say the epsilon at this delta if the records are shuffled before anybody looks",
    )
    parser.add_argument("--seed", type=int, help="for tests only: reproducible and NOT secure")
    add_force(parser)
    add_json(parser)
    return parser


def run(given: argparse.Namespace) -> str:
    """Return what the subcommand prints."""
    from fastpriv.releasing.release import ReleaseFile, release

    delta = given.shuffled
    if delta is not None:  # before anything is drawn
        from fastpriv._core import validation as check

        delta = check.real(delta, "--shuffled", least=0.0, most=1.0)
    dangers = {
        "domain-from-data": given.accept_domain_from_data,
        "undeclared-columns": given.drop_undeclared,
        "useless": given.accept_useless,
    }
    released = release(
        given.table,
        epsilon=given.epsilon,
        distortion=given.distortion,
        mechanism=given.mechanism,
        domain=given.domain,
        split=given.split,
        per_column=given.per_column,
        ledger=given.ledger,
        label=given.label,
        resume=given.resume,
        rng=given.seed,
        accept=[word for word, accepted in dangers.items() if accepted],
        out=ReleaseFile(given.out, given.report, overwrite=given.force, progress=True),
    )
    if delta is None:
        return (
            released.report.to_json()
            if given.json
            else f"{released.report}\nWritten to {released.table}"
        )
    level = released.report.shuffled().epsilon(delta)
    if given.json:
        ends = {"delta": delta, "epsilon": encoding.plain(level)}
        return json.dumps(json.loads(released.report.to_json()) | {"shuffled": ends}, indent=2)
    return (
        f"{released.report}\nShuffled before anybody looks: ({up(level.upper)}, {delta:g})-"
        f"differentially private for a whole record.\nWritten to {released.table}"
    )
