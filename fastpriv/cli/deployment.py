"""``fastpriv deployment``: what a file of the public registry of deployments promises."""

from __future__ import annotations

import argparse
from typing import Any

from fastpriv.cli.parser import add_json, examples


def add(commands: Any) -> argparse.ArgumentParser:
    """Declare the subcommand and its options."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "deployment",
        help="what the parameters of a published deployment imply",
        description="Read a YAML file of the public registry of deployments. Print what the\n"
        "stated parameters imply: epsilon at other deltas, for one and for more releases, the\n"
        "advantage and the true positive rate of a membership attack. Contradictions come first.\n"
        "Needs: pip install 'fastpriv[registry]'.",
        epilog=examples("fastpriv deployment deployment.yaml --json"),
    )
    parser.add_argument("file", metavar="FILE.yaml", help="the file")
    add_json(parser)
    return parser


def run(given: argparse.Namespace) -> str:
    """Return what the subcommand prints."""
    from fastpriv.releasing.registry import Deployment

    deployment = Deployment.read(given.file)
    return deployment.to_json() if given.json else str(deployment)
