"""``fastpriv audit``: every privacy level of a mechanism."""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from fastpriv._text.encoding import to_json
from fastpriv._text.numbers import shown
from fastpriv._text.table import table
from fastpriv.cli import arrays, files
from fastpriv.cli.mechanisms import add_mechanism, add_prior, load
from fastpriv.cli.parser import add_file, add_force, add_json, examples
from fastpriv.errors import InvalidInput
from fastpriv.notions.registry import NOTIONS

if TYPE_CHECKING:
    from fastpriv.auditing.report import Audit
    from fastpriv.channels import AbstractChannel

#: What the built-in example shows of the prior, and of its two mechanisms.
_FACTS = ("epsilon-x", "epsilon-hat", "epsilon-tilde", "entropy")
_LEVELS = ("dp", "identifiability", "mutual-information", "distortion")


def add(commands: Any) -> argparse.ArgumentParser:
    """Declare the subcommand and its options."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "audit",
        help="every privacy level of a mechanism",
        description="Print every privacy level of a mechanism, what each means and what limits\n"
        "it. With a prior also the levels that depend on it. Without a mechanism: the two\n"
        "optimal mechanisms of a small built-in prior, side by side.",
        epilog=examples(
            "fastpriv audit",
            "fastpriv audit randomised-response:n=3,m=2,epsilon=1 --prior uniform",
            "fastpriv audit channel.csv --sizes 2,2 --prior prior.csv --json",
            "fastpriv audit channel.csv --joint joint.csv --html page.html",
            "fastpriv audit --list",
        ),
    )
    add_mechanism(parser, "mechanism", nargs="?")
    add_audit(parser)
    add_file(parser, "--html", metavar="PAGE", help="also write a page to read and to print")
    parser.add_argument("--epsilon", type=float, help="level of the built-in example (2)")
    add_force(parser)
    add_json(parser)
    return parser


def add_audit(parser: Any) -> None:
    """Declare what audits of one mechanism and of two take."""
    add_prior(parser)
    add_file(
        parser,
        "--joint",
        help="a .csv or .npy file with P(S = s, X = x), a line for each s: also measure what the "
        "output tells about S",
    )
    parser.add_argument(
        "--notions", metavar="SLUG,...", help="which levels to measure, such as dp,pml (all)"
    )
    parser.add_argument(
        "--time-limit",
        type=float,
        metavar="SECONDS",
        help="for searches, which then print the bounds as they stand; by default their work is "
        "bounded instead",
    )


def audited(
    given: argparse.Namespace, mechanism: str, sizes: list[int] | None
) -> tuple[AbstractChannel, Audit]:
    """Return a mechanism and its audit."""
    import fastpriv as fp

    channel, prior = load(mechanism, given.prior, sizes)
    joint = None if given.joint is None else arrays.read(given.joint, "the joint law")
    chosen = None if given.notions is None else given.notions.split(",")
    limit = given.time_limit
    return channel, fp.audit(
        channel, prior, joint, notions=chosen, name=mechanism, time_limit=limit
    )


def run(given: argparse.Namespace) -> str:
    """Return what the subcommand prints."""
    if given.mechanism is None:
        return _example(given)
    if given.epsilon is not None:
        raise InvalidInput(
            "--epsilon is for the built-in example; write it into the mechanism, such as "
            f"hamming:n=3,m=2,epsilon={given.epsilon:g}"
        )
    page = None if given.html is None else files.target(given.html, given.force, (".html",))
    _, report = audited(given, given.mechanism, given.sizes)
    if page is not None:
        text = report.to_html()
        files.write(page, text.encode(errors="backslashreplace"), given.force)
    if given.json:
        return report.to_json()
    if page is None:
        return str(report)
    figures = find_spec("matplotlib") is not None
    bare = "" if figures else ", without figures: they take pip install 'fastpriv[plot]'"
    return f"{report}\nWritten to {page}{bare}"


def _example(given: argparse.Namespace) -> str:
    from fastpriv.channels import HammingChannel, PosteriorChannel
    from fastpriv.priors import Product

    for name in ("prior", "sizes", "joint", "html"):
        if getattr(given, name) is not None:
            raise InvalidInput(f"--{name} needs a mechanism; fastpriv audit --list names some")
    # A small prior and its two optimal mechanisms, which exist from ln 3 on.
    epsilon = 2.0 if given.epsilon is None else given.epsilon
    prior = Product([[0.5, 0.3, 0.2], [0.6, 0.2, 0.2], [0.4, 0.35, 0.25]])
    channels = {
        "E_d": HammingChannel(prior.space.n, prior.space.sizes, epsilon),
        "E_i": PosteriorChannel(prior, epsilon),
    }
    facts = {slug: NOTIONS[slug].level(None, prior) for slug in _FACTS}
    levels = {
        name: {slug: NOTIONS[slug].level(channel, prior) for slug in _LEVELS}
        for name, channel in channels.items()
    }
    if given.json:
        return to_json({"prior": facts, "mechanisms": levels})
    laws = [f"  {law.tolist()}" for law in prior.marginals]
    rows = [["Level (nats)", *channels]]
    for slug in _LEVELS:
        notion = NOTIONS[slug]
        unit = "" if notion.unit == "nats" else f" ({notion.unit})"
        rows.append([notion.title + unit, *(shown(levels[name][slug]) for name in channels)])
    return "\n".join(
        [
            f"Prior: {prior.space.n} independent rows with laws",
            *laws,
            table([[NOTIONS[slug].title, shown(value)] for slug, value in facts.items()]),
            "",
            table(rows),
        ]
    )
