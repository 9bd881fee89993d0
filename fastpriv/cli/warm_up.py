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
        description="Compile every kernel into numba's cache: in an image that is being built,\n"
        "say. NUMBA_CACHE_DIR moves the cache.",
        epilog=examples("fastpriv warm-up --json"),
    )
    add_json(parser)
    return parser


def run(given: argparse.Namespace) -> str:
    """Return what the subcommand prints."""
    from fastpriv import kernels
    from fastpriv._core.warm_up import warm_up

    start = time.perf_counter()
    warm_up(progress=True)
    seconds = time.perf_counter() - start
    stats = [getattr(kernels, name).stats for name in kernels.SIGNATURES]
    compiled = sum(sum(each.cache_misses.values()) for each in stats)
    cached = sum(sum(each.cache_hits.values()) for each in stats)
    folder = stats[0].cache_path
    if given.json:
        return to_json(
            {"compiled": compiled, "cached": cached, "seconds": seconds, "cache": folder}
        )
    where = f"in {folder}" if folder else "for this process only: no cache folder can be written"
    return f"{compiled} kernels compiled and {cached} found compiled in {seconds:.1f} s, {where}"
