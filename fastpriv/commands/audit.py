"""``fastpriv audit``: measure the two optimal mechanisms of a small built-in prior."""

from __future__ import annotations

import argparse
import json
from typing import Any


def add(commands: Any) -> argparse.ArgumentParser:
    """Declare the subcommand and its options."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "audit",
        help="measure the two optimal mechanisms of a small built-in prior",
        description="Print every level for E_d and E_i on three rows of three values.",
        epilog="example: fastpriv audit --epsilon 2.0 --json",
    )
    parser.add_argument("--epsilon", type=float, default=2.0, help="level of both (default: 2)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser


def run(given: argparse.Namespace) -> str:
    """Return what the subcommand prints."""
    from fastpriv.auditing.example import example
    from fastpriv.measures.indistinguishability import dp_level, identifiability_level
    from fastpriv.measures.information import distortion, mutual_information

    prior, channels = example(given.epsilon)
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
        return json.dumps({"prior": about, "mechanisms": found}, indent=2)
    lines = [f"Prior: {prior.space.n} independent rows with laws"]
    lines += [f"  {law.tolist()}" for law in prior.marginals]
    lines += [f"  {name:<22}{value:>12.6f}" for name, value in about.items()]
    lines.append("")
    lines.append(f"{'Level (nats)':<24}" + "".join(f"{name:>12}" for name in channels))
    for notion in next(iter(found.values())):
        row = "".join(f"{found[name][notion]:>12.6f}" for name in channels)
        unit = " (rows)" if notion == "distortion" else ""
        lines.append(f"{notion + unit:<24}{row}")
    return "\n".join(lines)
