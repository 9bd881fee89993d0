"""``fastpriv ledger``: a privacy budget in a file, and what has been spent of it."""

from __future__ import annotations

import argparse
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from fastpriv._text.encoding import to_json
from fastpriv._text.numbers import down, up
from fastpriv._text.table import table
from fastpriv.cli import mechanisms
from fastpriv.cli.parser import Parser, add_file, add_json, examples
from fastpriv.errors import InvalidInput, described

if TYPE_CHECKING:
    from fastpriv.accounting import Ledger


def add(commands: Any) -> argparse.ArgumentParser:
    """Declare the subcommand and its own subcommands."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "ledger",
        help="keep a privacy budget in a file, and spend it",
        description="Keep a privacy budget in a file that any number of processes may share. What\n"
        "does not fit is refused before anything is spent, with exit code 5.",
        epilog=examples(
            "fastpriv ledger init study.ledger --budget dp=1.0",
            "fastpriv ledger spend study.ledger --level dp=0.25 --label survey",
            "fastpriv ledger spend study.ledger hamming:n=100,m=2,epsilon=0.5 --dry-run",
            "fastpriv ledger remaining study.ledger --json",
            "fastpriv ledger show study.ledger",
        ),
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions", required=True)
    _add_init(actions)
    _add_spend(actions)
    for name, words in (("show", "the totals and the history"), ("remaining", "what is left")):
        action = actions.add_parser(
            name,
            help=f"print {words}",
            description=f"Print {words} of a ledger.",
            epilog=examples(
                "fastpriv ledger init study.ledger --budget dp=1.0",
                f"fastpriv ledger {name} study.ledger",
            ),
        )
        add_file(action, "file", help="the ledger")
        if name == "show":
            action.add_argument(
                "--last",
                type=int,
                default=20,
                metavar="K",
                help="spends to show (20; JSON has all)",
            )
        add_json(action)
        action.set_defaults(act={"show": _show, "remaining": _remaining}[name])
    return parser


def _add_init(actions: Any) -> None:
    parser: Parser = actions.add_parser(
        "init",
        help="make a ledger",
        description="Make a ledger with a budget for each notion, in nats. Notions: dp,\n"
        "identifiability, mutual-information, pml, maximal-leakage, individual-capacity and the\n"
        "others of fastpriv.accounting.LAWS; approximate-dp=EPSILON,DELTA composes profiles.",
        epilog=examples(
            "fastpriv ledger init study.ledger --budget dp=1.0 --budget approximate-dp=3,1e-6"
        ),
    )
    add_file(parser, "file", help="the ledger, which must not exist")
    parser.add_argument(
        "--budget", action="append", required=True, metavar="NOTION=LEVEL", help="may be repeated"
    )
    _add_relation(parser)
    add_json(parser)
    parser.set_defaults(act=_init)


def _add_spend(actions: Any) -> None:
    parser: Parser = actions.add_parser(
        "spend",
        help="charge a release to a ledger",
        description="Charge a release: that of a mechanism, whose levels are computed for the\n"
        "chances it is drawn with; a declared level; or a report of fastpriv release.",
        epilog=examples(
            "fastpriv ledger init study.ledger --budget dp=2.0",
            "fastpriv ledger spend study.ledger geometric-count:n=100,epsilon=0.5 --count 2",
            "fastpriv ledger spend study.ledger --level dp=0.1 --label 'week 1' --json",
        ),
    )
    add_file(parser, "file", help="the ledger")
    mechanisms.add_mechanism(parser, "mechanism", nargs="?")
    mechanisms.add_prior(parser)
    parser.add_argument(
        "--level", action="append", metavar="NOTION=LEVEL", help="declare it; may be repeated"
    )
    add_file(parser, "--report", metavar="JSON", help="what fastpriv release wrote with --report")
    parser.add_argument("--count", type=int, default=1, metavar="K", help="released K times (1)")
    parser.add_argument("--label", help="a name for the history")
    _add_relation(parser)
    parser.add_argument("--dry-run", action="store_true", help="say what would happen, only")
    add_json(parser)
    parser.set_defaults(act=_spend)


def _add_relation(parser: Parser) -> None:
    parser.add_argument(
        "--relation",
        help="add-or-remove, replace-one or replace-special: which databases are neighbours, for "
        "all spends (replace-one from the first mechanism on)",
    )


def run(given: argparse.Namespace) -> str:
    """Return what the subcommand prints."""
    text: str = given.act(given)
    return text


def _init(given: argparse.Namespace) -> str:
    from fastpriv.accounting import Ledger

    if Path(given.file).exists():
        raise InvalidInput(f"{given.file} exists; a ledger is never replaced. Choose another name.")
    budget = _levels(given.budget, "--budget")
    with Ledger.open(given.file, budget, relation=given.relation) as ledger:
        return _state(ledger, given.json)


def _spend(given: argparse.Namespace) -> str:
    from fastpriv.accounting import Ledger

    mechanism, prior = _offered(given)
    stated = None if given.dry_run else given.relation
    with Ledger.open(given.file, relation=stated) as ledger:
        book = Ledger.from_json(ledger.to_json()) if given.dry_run else ledger
        receipt = book.spend(mechanism, prior, given.count, given.label)
        remaining = book.remaining
    if given.json:
        return to_json(
            {
                "spent": not given.dry_run,
                "number": receipt.number,
                "time": receipt.time.isoformat(),
                "label": receipt.label,
                "count": receipt.count,
                "charged": receipt.charged,
                "remaining": remaining,
            }
        )
    rows = [["notion", "charged", "remaining"]]
    rows += [[notion, up(receipt.charged[notion]), down(remaining[notion])] for notion in remaining]
    said = "Nothing was spent. It would be" if given.dry_run else "It is"
    return f"{table(rows)}\n{said} spend {receipt.number} of {given.file}"


def _offered(given: argparse.Namespace) -> tuple[Any, Any]:
    """Return what is to be charged, and the prior."""
    ways = [given.mechanism, given.level, given.report]
    if sum(way is not None for way in ways) != 1:
        raise InvalidInput("one of a mechanism, --level and --report must be given. Choose one.")
    if given.mechanism is not None:
        return mechanisms.load(given.mechanism, given.prior, given.sizes)
    if given.prior is not None or given.sizes is not None:
        raise InvalidInput(
            "--prior and --sizes must be left out with declared levels. They are for mechanisms."
        )
    if given.level is not None:
        return _levels(given.level, "--level"), None
    from fastpriv.releasing.report import spending

    levels = spending(given.report)
    return SimpleNamespace(spending=lambda: levels), None  # a release, for neighbours of its own


def _levels(words: list[str], option: str) -> dict[str, Any]:
    """Return the levels of an option that is repeated: notion=level or notion=epsilon,delta."""
    levels: dict[str, Any] = {}
    for word in words:
        notion, equals, level = word.partition("=")
        if not equals or notion in levels:
            problem = f"names {notion} twice" if equals else "must be NOTION=LEVEL, such as dp=0.5"
            raise InvalidInput(f"{option} {described(word)} {problem}")
        pair = level.split(",")
        if len(pair) > 1 and notion != "approximate-dp":
            raise InvalidInput(
                f"{option} {described(word)} must be one number: only approximate-dp takes "
                "EPSILON,DELTA."
            )
        levels[notion] = level if len(pair) == 1 else tuple(pair)
    return levels


def _show(given: argparse.Namespace) -> str:
    from fastpriv.accounting import Ledger

    with Ledger.open(given.file) as ledger:
        last = ledger.history(given.last)
        if given.json:
            return ledger.to_json()
        past = [
            [
                str(receipt.number),
                f"{receipt.time:%Y-%m-%d %H:%M:%S}",
                str(receipt.count),
                *(up(level) for level in receipt.charged.values()),
                receipt.label or "",
            ]
            for receipt in last
        ]
        head = ["spend", "time (UTC)", "count", *ledger.budget, "label"]
        history = table([head, *past]) if past or not given.last else "Nothing has been spent."
        return f"{_state(ledger, False)}\n\n{history}"


def _remaining(given: argparse.Namespace) -> str:
    from fastpriv.accounting import Ledger

    with Ledger.open(given.file) as ledger:
        return _state(ledger, given.json)


def _state(ledger: Ledger, as_json: bool) -> str:
    """Return budget, what is spent and what is left, as a table or as JSON."""
    budget, spent, left = ledger.budget, ledger.spent, ledger.remaining
    if as_json:
        known = {} if ledger.relation is None else {"relation": ledger.relation}
        return to_json({"budget": budget, "spent": spent, "remaining": left, **known})
    rows = [["notion", "spent", "remaining", "budget", "rule"]]
    for notion, law in ledger.laws.items():
        limit = budget[notion]
        total = (
            f"{down(limit[0])} at delta {limit[1]:g}" if isinstance(limit, tuple) else down(limit)
        )
        rows.append([notion, up(spent[notion]), down(left[notion]), total, law.name])
    relation = "" if ledger.relation is None else f"\nrelation: {ledger.relation}"
    return table(rows) + relation
