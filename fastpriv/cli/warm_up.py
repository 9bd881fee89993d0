"""``fastpriv warm-up``: compile ahead of time."""

from __future__ import annotations

import argparse
import time
from typing import Any

from fastpriv._text.encoding import to_json
from fastpriv.cli.parser import add_json, examples


def add(commands: Any) -> argparse.ArgumentParser:
    """Declare the subcommand and its options."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "warm-up",
        help="compile everything now rather than on first use",
        description="Compile every kernel into the cache, in an image that is being built, say.\n"
        "NUMBA_CACHE_DIR moves the cache.",
        epilog=examples("fastpriv warm-up --jobs 4"),
    )
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="processes that compile at the same time"
    )
    add_json(parser)
    return parser


def run(given: argparse.Namespace) -> str:
    """Return what the subcommand prints."""
    from fastpriv._core import validation as check
    from fastpriv._core.warm_up import compile_all
    from fastpriv.kernels import loader, writable_folder

    start = time.perf_counter()
    compiled, cached = compile_all(True, check.integer(given.jobs, "--jobs", 1))
    seconds = time.perf_counter() - start
    folder = "" if loader.SHIPPED else str(writable_folder() or "")
    if given.json:
        return to_json(
            {"compiled": compiled, "cached": cached, "seconds": seconds, "cache": folder}
        )
    if loader.SHIPPED:
        return f"{cached} kernels came compiled with the package: nothing to do"
    where = f"in {folder}" if folder else "for this process only: no cache folder can be written"
    return f"{compiled} kernels compiled and {cached} loaded in {seconds:.1f} s, {where}"
