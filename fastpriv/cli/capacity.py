"""``fastpriv capacity``: the most that anybody can learn, whatever they believe beforehand."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from fastpriv._text.encoding import to_json
from fastpriv._text.numbers import quantity, shown
from fastpriv.cli.mechanisms import add_mechanism, add_prior, load
from fastpriv.cli.parser import add_json, examples
from fastpriv.notions.registry import NOTIONS

if TYPE_CHECKING:
    from fastpriv.results import Bracket


def add(commands: Any) -> argparse.ArgumentParser:
    """Declare the subcommand and its options."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "capacity",
        help="the most an output can tell, over all priors",
        description="Print the capacity of a mechanism in nats: the most mutual information that\n"
        "its output has with the database, or with an individual, over all priors. What is\n"
        "printed is proved: one number, or a lower and an upper bound.",
        epilog=examples(
            "fastpriv capacity hamming:n=3,m=2,epsilon=1 --individual",
            "fastpriv capacity channel.csv --sizes 2,2 --group 2",
            "fastpriv capacity geometric-count:n=3,epsilon=1 --constrained 0.5 --json",
        ),
    )
    add_mechanism(parser, "mechanism")
    add_prior(parser)
    about = parser.add_mutually_exclusive_group()
    about.add_argument("--individual", action="store_true", help="about one row, the worst one")
    about.add_argument("--group", type=int, metavar="K", help="about the worst K rows together")
    about.add_argument(
        "--constrained",
        type=float,
        metavar="B",
        help="about one row, to those who lack at least B nats about the database",
    )
    parser.add_argument("--gap", type=float, help="width to reach, in nats")
    parser.add_argument(
        "--time-limit", type=float, metavar="SECONDS", help="then print the bounds as they stand"
    )
    add_json(parser)
    return parser


def run(given: argparse.Namespace) -> str:
    """Return what the subcommand prints."""
    import fastpriv as fp

    if given.prior is not None and not given.mechanism.startswith("posterior:"):
        raise fp.InvalidInput("capacities are over all priors; --prior is for posterior:epsilon=X")
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
                "--time-limit is for --individual, --group and --constrained; the capacity of the "
                "whole channel takes --gap"
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
