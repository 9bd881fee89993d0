"""``fastpriv solve``: the best mechanism for a prior, with a certificate."""

from __future__ import annotations

import argparse
import shlex
from typing import Any

from fastpriv._text.encoding import to_json
from fastpriv.cli import arrays, files
from fastpriv.cli.certificates import INFERENCE, solved
from fastpriv.cli.mechanisms import add_prior
from fastpriv.cli.parser import add_file, add_force, add_json, examples
from fastpriv.notions.registry import DESIGNED

TASKS = (*DESIGNED, INFERENCE)


def add(commands: Any) -> argparse.ArgumentParser:
    """Declare the subcommand and its options."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "solve",
        help="find the best mechanism, and write it with a certificate",
        description="Find the mechanism of least distortion (expected number of changed rows) at\n"
        "a privacy level, or of least level at a distortion. The certificate says what the\n"
        "channel has, measured on the numbers that are written, and what no mechanism can go\n"
        "below.\n\n"
        "  dp, identifiability, mutual-information\n"
        "             --prior with --epsilon or --distortion\n"
        "  pml, individual-capacity\n"
        "             the same, for priors on few databases\n"
        "  inference  --joint, a file with P(S = s, X = x), with --distortion: what is released\n"
        "             for X tells least about S",
        epilog=examples(
            "fastpriv solve dp --prior beta-binomial:a=0.5,b=0.8,n=4 --epsilon 1 --out best.csv "
            "--certificate best.json",
            "fastpriv audit best.csv --prior beta-binomial:a=0.5,b=0.8,n=4",
            "fastpriv solve identifiability --prior prior.csv --distortion 0.2 --json",
            "fastpriv solve dp --prior beta-binomial:a=0.5,b=0.8,n=4 --epsilon 1 --exact",
            "fastpriv solve pml --prior prior.csv --epsilon 0.5 --out leaks.csv",
            "fastpriv solve inference --joint joint.csv --distortion 0.1 --out mapping.npy",
        ),
    )
    parser.add_argument("notion", choices=TASKS, metavar="NOTION", help=", ".join(TASKS))
    add_prior(parser)
    add_file(parser, "--joint", help="inference: .csv or .npy file, a line for each s")
    add_file(
        parser,
        "--metric",
        help="inference: .csv or .npy file with the cost of releasing y for x, a line for each x "
        "(default: 0 where y = x, 1 elsewhere)",
    )
    goal = parser.add_mutually_exclusive_group(required=True)
    goal.add_argument("--epsilon", type=float, help="privacy level in nats")
    goal.add_argument("--distortion", type=float, help="expected number of changed rows, or cost")
    parser.add_argument("--gap", type=float, help="certified gap to stop at")
    parser.add_argument(
        "--time-limit", type=float, metavar="SECONDS", help="then take the best found so far"
    )
    parser.add_argument(
        "--exact",
        action="store_true",
        help="dp and identifiability: solve in rational arithmetic, and prove the optimum",
    )
    add_file(parser, "--out", metavar="FILE", help="write the channel there: .csv or .npy")
    add_file(parser, "--certificate", metavar="JSON", help="write the certificate there")
    add_force(parser)
    add_json(parser)
    return parser


def run(given: argparse.Namespace) -> str:
    """Return what the subcommand prints."""
    out = certificate = None
    if given.out is not None:
        inputs = given.prior, given.joint, given.metric
        out = files.target(given.out, given.force, arrays.SUFFIXES, *inputs)
    if given.certificate is not None:
        certificate = files.target(given.certificate, given.force, (".json",))
    best = solved(given, dense=out is not None)
    page = best.to_dict()
    if out is not None:
        content = arrays.written(best.solution.channel.matrix(), out.suffix)
        page["channel"] |= files.identity(out, content)
        files.write(out, content, given.force)
    if certificate is not None:
        files.write(certificate, (to_json(page) + "\n").encode(), given.force)
    if given.json:
        return to_json(page)
    lines = [str(best)]
    lines += [f"Written to {path}" for path in (out, certificate) if path is not None]
    if out is not None:
        lines.append(f"To confirm it: {_confirming(given)}")
    return "\n".join(lines)


def _confirming(given: argparse.Namespace) -> str:
    """Return the command that measures again what was written."""
    words = ["fastpriv", "audit", given.out]
    for name in ("prior", "joint"):
        if getattr(given, name) is not None:
            words += [f"--{name}", getattr(given, name)]
    if given.sizes is not None:
        words += ["--sizes", ",".join(map(str, given.sizes))]
    return shlex.join(words)
