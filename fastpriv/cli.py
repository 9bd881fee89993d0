"""The ``fastpriv`` command."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from fastpriv import __version__
from fastpriv.errors import Infeasible, InvalidInput, SolverFailure, TooLarge


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0 done, 2 for input that cannot be used."""
    parser = argparse.ArgumentParser(prog="fastpriv", description="Privacy of finite mechanisms.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True)
    audit = commands.add_parser(
        "audit",
        help="measure the two optimal mechanisms of a small built-in prior",
        description="Print every level for E_d and E_i on three rows of three values.",
        epilog="example: fastpriv audit --epsilon 2.0 --json",
    )
    audit.add_argument("--epsilon", type=float, default=2.0, help="level of both (default: 2)")
    audit.add_argument("--json", action="store_true", help="print JSON instead of a table")
    given = parser.parse_args(arguments)
    try:
        print(_audit(given.epsilon, given.json))
    except (Infeasible, InvalidInput, SolverFailure, TooLarge) as problem:
        print(f"fastpriv: {problem}", file=sys.stderr)
        return 2
    return 0


def _audit(epsilon: float, as_json: bool) -> str:
    from fastpriv.audit import example, levels

    prior, channels = example(epsilon)
    about = {
        "epsilon_x": prior.epsilon_x(),
        "epsilon_hat": prior.epsilon_hat(),
        "epsilon_tilde": prior.epsilon_tilde(),
        "entropy": prior.entropy(),
    }
    found = {name: levels(channel, prior) for name, channel in channels.items()}
    if as_json:
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
