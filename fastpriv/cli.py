"""The ``fastpriv`` command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from fastpriv import __version__
from fastpriv.commands import audit, estimate, release
from fastpriv.errors import Infeasible, InvalidInput, SolverFailure, TooLarge


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command and of all subcommands."""
    parser = argparse.ArgumentParser(prog="fastpriv", description="Privacy of finite mechanisms.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True)
    for command in (audit, release, estimate):
        command.add(commands).set_defaults(run=command.run)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0 done, 2 for input that cannot be used."""
    given = make_parser().parse_args(arguments)
    try:
        print(given.run(given))
    except (Infeasible, InvalidInput, SolverFailure, TooLarge, ImportError) as problem:
        print(f"fastpriv: {' '.join(str(problem).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("fastpriv: interrupted; nothing was written", file=sys.stderr)
        return 130
    return 0
