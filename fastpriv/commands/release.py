"""``fastpriv release``: a sanitised copy of a file, and a report of what it gives away."""

from __future__ import annotations

import argparse
import signal
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastpriv.releasing.release import Release


def add(commands: Any) -> argparse.ArgumentParser:
    """Declare the subcommand and its options."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "release",
        help="write a sanitised copy of a CSV or Parquet file",
        description="Randomise every record of a file and say how private the result is. The file "
        "is read in chunks; the result appears when all went well, or not at all.",
        epilog="example: fastpriv release people.csv --domain domain.json --epsilon 1.0 "
        "--out released.csv",
    )
    parser.add_argument("table", help="a .csv or .parquet file, one record per row")
    parser.add_argument("--domain", metavar="JSON", help='file with {"column": [values]}')
    cost = parser.add_mutually_exclusive_group(required=True)
    cost.add_argument("--epsilon", type=float, help="level of a whole record, in nats")
    cost.add_argument("--distortion", type=float, help="expected number of changed records")
    parser.add_argument("--out", required=True, help="the released file")
    parser.add_argument("--report", metavar="JSON", help="also write the report there")
    parser.add_argument(
        "--per-column", action="store_true", help="every column by itself, at level epsilon each"
    )
    parser.add_argument(
        "--drop-undeclared", action="store_true", help="leave out columns not in the domain"
    )
    parser.add_argument(
        "--accept-domain-from-data",
        action="store_true",
        help="without --domain: read it off the data, which gives away the values that occur",
    )
    parser.add_argument("--seed", type=int, help="for tests only: reproducible and NOT secure")
    parser.add_argument("--force", action="store_true", help="replace files that exist")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    return parser


def run(given: argparse.Namespace) -> str:
    """Return what the subcommand prints."""
    before = signal.signal(signal.SIGTERM, _stop)
    try:
        found = _release(given)
    finally:
        signal.signal(signal.SIGTERM, before)
    return found.report.to_json() if given.json else f"{found.report}\nWritten to {found.table}"


def _release(given: argparse.Namespace) -> Release:
    from fastpriv.releasing.release import release

    return release(
        given.table,
        epsilon=given.epsilon,
        distortion=given.distortion,
        domain=given.domain,
        per_column=given.per_column,
        rng=given.seed,
        accept_domain_from_data=given.accept_domain_from_data,
        drop_undeclared=given.drop_undeclared,
        out=given.out,
        report=given.report,
        overwrite=given.force,
        progress=True,
    )


def _stop(number: int, frame: FrameType | None) -> None:
    """End as Ctrl-C does, so that unfinished files are removed."""
    raise KeyboardInterrupt
