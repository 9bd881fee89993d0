"""``fastpriv release``: a sanitised copy of a file, and a report of what it gives away."""

from __future__ import annotations

import argparse
import json
import math
from typing import Any

from fastpriv._text import encoding
from fastpriv._text.numbers import up
from fastpriv._text.table import table
from fastpriv.cli.parser import add_file, add_force, add_json, examples
from fastpriv.errors import InvalidInput


def add(commands: Any) -> argparse.ArgumentParser:
    """Declare the subcommand and its options."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "release",
        help="write a sanitised copy of a CSV or Parquet file",
        description="Randomise every record of a file and say how private the result is. The\n"
        "file is read in chunks; the result appears when all went well, or not at all.",
        epilog=examples(
            "fastpriv release people.csv --domain domain.json --epsilon 1.0 --out released.csv "
            "--report report.json",
            "fastpriv release people.csv --domain domain.json --epsilon 1.0 --preview",
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
        help="a local mechanism for every column, at its share of --epsilon: auto (the smallest "
        "variance), subset-selection, hashing, projective, hadamard, unary, symmetric-unary or "
        "randomised-response",
    )
    target = parser.add_mutually_exclusive_group(required=True)
    add_file(target, "--out", help="the released file")
    target.add_argument(
        "--preview",
        action="store_true",
        help="release nothing; print the levels and the standard errors of counts",
    )
    parser.add_argument(
        "--delimiter",
        default=",",
        metavar="MARK",
        help="between the fields of a CSV file, such as ';' (,)",
    )
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
    if given.preview:
        return _preview(given)
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
        out=ReleaseFile(
            given.out, given.report, overwrite=given.force, progress=True, delimiter=given.delimiter
        ),
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


def _preview(given: argparse.Namespace) -> str:
    """Return levels and standard errors of a release that is not made."""
    from fastpriv.releasing import domain as domains
    from fastpriv.releasing.release import preview_release, undeclared
    from fastpriv.releasing.tables import open_table

    if given.domain is None:
        raise InvalidInput("--domain must be given for a preview. Declare the values of columns.")
    for name in ("report", "ledger", "resume", "shuffled", "seed"):
        if getattr(given, name) is not None:
            raise InvalidInput(f"--{name} must be left out of a preview, which releases nothing.")
    domain = domains.read(given.domain)
    source = open_table(given.table, delimiter=given.delimiter)
    extra = undeclared(source, domain)
    report = preview_release(
        source.rows(),
        domain=domain,
        epsilon=given.epsilon,
        distortion=given.distortion,
        mechanism=given.mechanism,
        split=given.split,
        per_column=given.per_column,
    )
    if given.json:
        return report.to_json()
    errors = [
        (str(name), "none" if math.isinf(e) else f"{e:,.1f}", f"{100.0 * e / report.n:.2g} %")
        for name, e in report.standard_errors.items()
    ]
    rows = [("column", "standard error", "of the records"), *errors]
    note = ""
    if extra and not given.drop_undeclared:
        note = (
            f"\nThe domain does not declare {domains.named(extra)}: a release needs their values, "
            "or --drop-undeclared."
        )
    return (
        f"{report}\nStandard error of a count, if the values of a column are equally common\n"
        f"{table(rows, '  ')}{note}\nThis is a preview: nothing was released."
    )
