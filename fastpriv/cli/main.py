"""The ``fastpriv`` command."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

from fastpriv import __version__
from fastpriv.cli import audit, deployment, estimate, ledger, release, setup, solve, tradeoff
from fastpriv.cli.parser import Parser, examples
from fastpriv.errors import BudgetExceeded, Infeasible, InvalidInput, SolverFailure, TooLarge

#: Every command: the function that declares it, and the one that returns what it prints.
_COMMANDS = (
    (audit.add_audit, audit.run_audit),
    (audit.add_compare, audit.run_compare),
    (audit.add_capacity, audit.run_capacity),
    (solve.add, solve.run),
    (tradeoff.add, tradeoff.run),
    (release.add, release.run),
    (estimate.add, estimate.run),
    (ledger.add, ledger.run),
    (deployment.add, deployment.run),
    (setup.add_warm_up, setup.run_warm_up),
    (setup.add_completion, setup.run_completion),
)

#: Exit codes by the first kind of error that fits; anything else is a defect of ours.
_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (Infeasible, 3),
    (TooLarge, 4),
    (MemoryError, 4),
    (BudgetExceeded, 5),
    (SolverFailure, 6),
    (InvalidInput, 2),
    (ImportError, 2),
    (OSError, 2),
)

#: Characters that steer a terminal, and what is printed instead; tabs and ends of lines may stay.
_CONTROLS = {
    code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n"
}

_ABOUT = """\
How private is a mechanism, and which one is best? Levels are in nats, and guarantees are rounded
up.

New here? Try the first example below, then the second with a file of yours. Such a file has a line
for each value of a record, with the probability of every output: the two lines 0.75,0.25 and
0.25,0.75 for a bit that is kept with probability 3/4."""

_EXITS = """

exit codes:
  0 done                     4 too large for this machine
  1 a defect of fastpriv     5 refused: more than the budget has left
  2 wrong input or usage     6 a solver failed
  3 no mechanism can do it   130 interrupted, 141 the reader left (such as head)

With --json, errors are JSON as well: {"error": ..., "kind": ..., "exit_code": ...} on stderr."""


def make_parser() -> Parser:
    """Return the parser of the command and of all subcommands."""
    parser = Parser(
        prog="fastpriv",
        description=_ABOUT,
        epilog=examples(
            "fastpriv audit randomised-response:epsilon=1",
            "fastpriv audit channel.csv --prior prior.csv",
            "fastpriv solve dp --prior iid:p=0.7,0.3,n=3 --epsilon 1 --out best.csv",
        )
        + _EXITS,
    )
    parser.add_argument("--version", action="version", version=f"fastpriv {__version__}")
    parser.set_defaults(parser=parser)  # for the command that prints completions of all of them
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for add, run in _COMMANDS:
        add(commands).set_defaults(run=run)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code, which ``fastpriv --help`` explains."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with _terminating(), _warnings_in_one_line():
            parser = make_parser()
            given = parser.parse_args(words)
            _print(given.run(given) if given.command else parser.format_help())
    except KeyboardInterrupt as problem:
        text = "; ".join(["interrupted; no unfinished file was left", *map(str, problem.args)])
        return _failed(text, "Interrupted", 130, words)
    except BrokenPipeError:
        # Python would complain about the rest of the buffer when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as problem:
        return _explained(problem, words)
    return 0


def _print(text: str) -> None:
    """Print a text. Characters that steer the terminal, or that it cannot encode, are escaped."""
    letters = getattr(sys.stdout, "encoding", None) or "utf-8"
    text = text.translate(_CONTROLS).encode(letters, "backslashreplace").decode(letters)
    print(text, flush=True)


def _explained(problem: Exception, words: list[str]) -> int:
    kind = type(problem).__name__
    message = "; ".join([_words(problem), *getattr(problem, "__notes__", [])])
    text = " ".join(message.split()) or kind
    for known, code in _CODES:
        if isinstance(problem, known):
            return _failed(text, kind, code, words)
    if os.environ.get("FASTPRIV_DEBUG"):
        traceback.print_exc()
    text = f"{kind}: {text}; this is a defect of fastpriv, FASTPRIV_DEBUG=1 shows where"
    return _failed(text, kind, 1, words)


def _words(problem: Exception) -> str:
    if isinstance(problem, OSError) and problem.strerror and problem.filename:
        path = " Check the path." if isinstance(problem, FileNotFoundError) else ""
        return f"{problem.filename}: {problem.strerror}.{path}"
    return f"out of memory {problem}" if isinstance(problem, MemoryError) else str(problem)


def _failed(text: str, kind: str, code: int, words: list[str]) -> int:
    line = f"fastpriv: {text}".translate(_CONTROLS)
    if "--json" in words:
        line = json.dumps({"error": text, "kind": kind, "exit_code": code})
    if sys.stderr is not None:  # None if it was closed
        with suppress(OSError):  # the exit code remains
            print(line, file=sys.stderr, flush=True)
    return code


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Print warnings like errors: the sentence without its place in the code."""
    before = warnings.formatwarning
    warnings.formatwarning = lambda message, *where, **line: (
        f"fastpriv: warning: {message}".translate(_CONTROLS) + "\n"
    )
    try:
        yield
    finally:
        warnings.formatwarning = before


@contextmanager
def _terminating() -> Iterator[None]:
    """End at SIGTERM as at Ctrl-C, so that unfinished files are removed."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals go to the main thread
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
