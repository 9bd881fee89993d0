"""``fastpriv audit``: every privacy level of a mechanism."""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from fastpriv._text.numbers import shown
from fastpriv._text.table import table
from fastpriv.cli import arrays as _arrays
from fastpriv.cli import files as _files
from fastpriv.cli.mechanisms import add_mechanism, add_prior, load
from fastpriv.cli.parser import add_file, add_force, add_json, examples
from fastpriv.cli.text import to_json
from fastpriv.errors import InvalidInput

if TYPE_CHECKING:
    from fastpriv.auditing.report import Audit
    from fastpriv.channels import AbstractChannel


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
        "--time-limit",
        type=float,
        default=3.0,
        metavar="SECONDS",
        help="for searches, which then print the bounds as they stand (3)",
    )


def audited(
    given: argparse.Namespace, mechanism: str, sizes: list[int] | None
) -> tuple[AbstractChannel, Audit]:
    """Return a mechanism and its audit."""
    import fastpriv as fp

    channel, prior = load(mechanism, given.prior, sizes)
    joint = None if given.joint is None else _arrays.read(given.joint, "the joint law")
    limit = given.time_limit
    return channel, fp.audit(channel, prior, joint, name=mechanism, time_limit=limit)


def run(given: argparse.Namespace) -> str:
    """Return what the subcommand prints."""
    if given.mechanism is None:
        return _example(given)
    if given.epsilon is not None:
        raise InvalidInput(
            "--epsilon is for the built-in example; write it into the mechanism, such as "
            f"hamming:n=3,m=2,epsilon={given.epsilon:g}"
        )
    page = None if given.html is None else _files.target(given.html, given.force, (".html",))
    _, found = audited(given, given.mechanism, given.sizes)
    if page is not None:
        figures = find_spec("matplotlib") is not None
        text = found.to_html(plots=figures)
        _files.write(page, text.encode(errors="backslashreplace"), given.force)
    if given.json:
        return found.to_json()
    if page is None:
        return str(found)
    bare = "" if figures else ", without figures: they take pip install 'fastpriv[plot]'"
    return f"{found}\nWritten to {page}{bare}"


def _example(given: argparse.Namespace) -> str:
    from fastpriv.auditing.example import example
    from fastpriv.measures.distortion import distortion
    from fastpriv.measures.dp import dp_level, identifiability_level
    from fastpriv.measures.information import mutual_information

    for name in ("prior", "sizes", "joint", "html"):
        if getattr(given, name) is not None:
            raise InvalidInput(f"--{name} needs a mechanism; fastpriv audit --list names some")
    prior, channels = example(2.0 if given.epsilon is None else given.epsilon)
    about = {
        "epsilon_x": prior.epsilon_x(),
        "epsilon_hat": prior.epsilon_hat(),
        "epsilon_tilde": prior.epsilon_tilde(),
        "entropy": prior.entropy(),
    }
    found = {
        name: {
            "differential privacy": dp_level(channel),
            "identifiability": identifiability_level(channel, prior),
            "mutual information": mutual_information(channel, prior),
            "distortion": distortion(channel, prior),
        }
        for name, channel in channels.items()
    }
    if given.json:
        return to_json({"prior": about, "mechanisms": found})
    laws = [f"  {law.tolist()}" for law in prior.marginals]
    rows = [["Level (nats)", *channels]]
    for notion in found["E_d"]:
        unit = " (rows)" if notion == "distortion" else ""
        rows.append([notion + unit, *(shown(found[name][notion]) for name in channels)])
    return "\n".join(
        [
            f"Prior: {prior.space.n} independent rows with laws",
            *laws,
            table([[name, shown(value)] for name, value in about.items()]),
            "",
            table(rows),
        ]
    )
