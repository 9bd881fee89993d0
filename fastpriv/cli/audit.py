"""``fastpriv audit``, ``compare`` and ``capacity``: the levels of one mechanism or two."""

from __future__ import annotations

import argparse
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from fastpriv._text.encoding import to_json
from fastpriv._text.numbers import quantity, shown
from fastpriv._text.table import table
from fastpriv.cli import files
from fastpriv.cli.mechanisms import add_mechanism, add_prior, has_sizes, load
from fastpriv.cli.parser import add_file, add_force, add_json, examples
from fastpriv.errors import InvalidInput
from fastpriv.notions.registry import NOTIONS

if TYPE_CHECKING:
    from fastpriv.auditing.report import Audit
    from fastpriv.channels import AbstractChannel
    from fastpriv.results import Bracket

#: Facts about the prior that the built-in example shows.
_FACTS = ("epsilon-x", "epsilon-hat", "epsilon-tilde", "entropy")
#: Levels of its two mechanisms that the built-in example shows.
_LEVELS = ("dp", "identifiability", "mutual-information", "distortion")


def add_audit(commands: Any) -> argparse.ArgumentParser:
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
    add_options(parser)
    add_file(parser, "--html", metavar="PAGE", help="also write a page to read and to print")
    parser.add_argument(
        "--all",
        action="store_true",
        help="print every level, its worst case, and what follows from what",
    )
    parser.add_argument("--epsilon", type=float, help="level of the built-in example (2)")
    add_force(parser)
    add_json(parser)
    return parser


def add_options(parser: Any) -> None:
    """Declare the options that audits of one mechanism and of two share."""
    add_prior(parser)
    add_file(
        parser,
        "--joint",
        help="a .csv or .npy file with P(S = s, X = x), a line for each s: also measure what the "
        "output reveals about S",
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
    joint = None if given.joint is None else files.read(given.joint, "the joint distribution")
    chosen = None if given.notions is None else given.notions.split(",")
    limit = given.time_limit
    return channel, fp.audit(
        channel, prior, joint, notions=chosen, name=mechanism, time_limit=limit
    )


def run_audit(given: argparse.Namespace) -> str:
    """Return what the subcommand prints."""
    if given.mechanism is None:
        return _example(given)
    if given.epsilon is not None:
        raise InvalidInput(
            "--epsilon must be left out; it is for the built-in example. Write it into the "
            f"mechanism, such as hamming:n=3,m=2,epsilon={given.epsilon:g}."
        )
    page = None if given.html is None else files.target(given.html, given.force, (".html",))
    _, report = audited(given, given.mechanism, given.sizes)
    if page is not None:
        text = report.to_html()
        files.write(page, text.encode(errors="backslashreplace"), given.force)
    if given.json:
        return report.to_json()
    report_text = str(report) if given.all or given.notions is not None else report.brief()
    if page is None:
        return report_text
    figures = find_spec("matplotlib") is not None
    bare = "" if figures else ", without figures: they take pip install 'fastpriv[plot]'"
    return f"{report_text}\nWritten to {page}{bare}"


def _example(given: argparse.Namespace) -> str:
    from fastpriv.channels import HammingChannel, PosteriorChannel
    from fastpriv.priors import Product

    for name in ("prior", "sizes", "joint", "html"):
        if getattr(given, name) is not None:
            raise InvalidInput(f"--{name} needs a mechanism. fastpriv audit --list shows them.")
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
    marginals = [f"  {marginal.tolist()}" for marginal in prior.marginals]
    rows = [["Level (nats)", *channels]]
    for slug in _LEVELS:
        notion = NOTIONS[slug]
        unit = "" if notion.unit == "nats" else f" ({notion.unit})"
        rows.append([notion.title + unit, *(shown(levels[name][slug]) for name in channels)])
    return "\n".join(
        [
            f"Prior: {prior.space.n} independent records with distributions",
            *marginals,
            table([[NOTIONS[slug].title, shown(value)] for slug, value in facts.items()]),
            "",
            table(rows),
        ]
    )


def add_compare(commands: Any) -> argparse.ArgumentParser:
    """Declare the subcommand and its options."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "compare",
        help="two mechanisms side by side",
        description="Print the levels of two mechanisms on the same databases, and which of the\n"
        "two is better at each. Bounds that overlap decide nothing.",
        epilog=examples(
            "fastpriv compare hamming:n=2,m=2,epsilon=1 channel.csv --sizes 2,2",
            "fastpriv compare hamming:n=2,m=2,epsilon=1 posterior:epsilon=1 "
            "--prior iid:p=0.6,0.4,n=2 --json",
        ),
    )
    add_mechanism(parser, "first")
    add_mechanism(parser, "second")
    add_options(parser)
    add_json(parser)
    return parser


def run_compare(given: argparse.Namespace) -> str:
    """Return what the subcommand prints."""
    names = given.first, given.second
    if given.sizes is not None and not any(map(has_sizes, names)):
        raise InvalidInput(
            "--sizes must be left out for named mechanisms, which fix their records. "
            "It is for files."
        )
    (_, first), (_, second) = (
        audited(given, name, given.sizes if has_sizes(name) else None) for name in names
    )
    from fastpriv.auditing.compare import side_by_side

    comparison = side_by_side(replace(first, name=given.first), replace(second, name=given.second))
    return to_json(comparison) if given.json else repr(comparison)


def add_capacity(commands: Any) -> argparse.ArgumentParser:
    """Declare the subcommand and its options."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "capacity",
        help="the most an output can reveal, over all priors",
        description="Print the capacity of a mechanism in nats: the largest mutual information\n"
        "of its output with the database, or with one record, over all priors. The result is one\n"
        "proved number, or a lower and an upper bound.",
        epilog=examples(
            "fastpriv capacity hamming:n=3,m=2,epsilon=1 --individual",
            "fastpriv capacity channel.csv --sizes 2,2 --group 2",
            "fastpriv capacity geometric-count:n=3,epsilon=1 --constrained 0.5 --json",
        ),
    )
    add_mechanism(parser, "mechanism")
    add_prior(parser)
    about = parser.add_mutually_exclusive_group()
    about.add_argument("--individual", action="store_true", help="about the worst record")
    about.add_argument("--group", type=int, metavar="K", help="about the worst K records together")
    about.add_argument(
        "--constrained",
        type=float,
        metavar="B",
        help="about one record, under priors with an entropy of at least B nats",
    )
    parser.add_argument("--gap", type=float, help="width to reach, in nats")
    parser.add_argument(
        "--time-limit", type=float, metavar="SECONDS", help="then print the bounds as they stand"
    )
    add_json(parser)
    return parser


def run_capacity(given: argparse.Namespace) -> str:
    """Return what the subcommand prints."""
    import fastpriv as fp

    if given.prior is not None and not given.mechanism.startswith("posterior:"):
        raise fp.InvalidInput(
            "--prior must be left out, because capacities are over all priors. It is for "
            "posterior:epsilon=X."
        )
    channel, _ = load(given.mechanism, given.prior, given.sizes)
    limits = {
        name: value
        for name, value in (("gap", given.gap), ("time_limit", given.time_limit))
        if value is not None
    }
    capacity: Bracket
    if given.individual:
        slug, about = "individual-capacity", ""
        capacity = fp.individual_capacity(channel, **limits)
    elif given.group is not None:
        slug, about = "group-capacity", f" of {given.group}"
        capacity = fp.group_capacity(channel, given.group, **limits)
    elif given.constrained is not None:
        slug, about = "constrained-capacity", f" of at least {given.constrained:g} nats"
        capacity = fp.constrained_capacity(channel, given.constrained, **limits)
    else:
        if given.time_limit is not None:
            raise fp.InvalidInput(
                "--time-limit must come with --individual, --group or --constrained. The capacity "
                "of the whole channel takes --gap."
            )
        slug, about, capacity = "channel-capacity", "", fp.channel_capacity(channel, **limits)
    title = NOTIONS[slug].title + about
    adversary = getattr(capacity, "adversary", None)
    if given.json:
        return to_json(
            {
                "mechanism": repr(channel),
                "notion": slug,
                "title": title,
                "unit": "nats",
                "value": capacity,
                "adversary": adversary,
            }
        )
    lines = [f"{title}: {quantity(shown(capacity), 'nats')}"]
    return "\n".join(lines + ([repr(adversary)] if adversary else []))
