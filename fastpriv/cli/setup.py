"""``fastpriv warm-up`` and ``completion``: compile ahead of time; complete in a shell."""

from __future__ import annotations

import argparse
import time
from typing import Any

from fastpriv._core.extras import optional
from fastpriv._text.encoding import to_json
from fastpriv.cli.parser import add_json, examples


def add_warm_up(commands: Any) -> argparse.ArgumentParser:
    """Declare the subcommand and its options."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "warm-up",
        help="compile everything now rather than on first use",
        description="Compile every kernel into the cache, for example in an image being built.\n"
        "NUMBA_CACHE_DIR moves the cache.",
        epilog=examples("fastpriv warm-up"),
    )
    parser.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="processes that compile at the same time (default: one a processor)",
    )
    add_json(parser)
    return parser


def run_warm_up(given: argparse.Namespace) -> str:
    """Return what the subcommand prints."""
    from fastpriv._core import validation as check
    from fastpriv._core.threads import workers
    from fastpriv._core.warm_up import compile_all
    from fastpriv.kernels import loader, writable_folder

    start = time.perf_counter()
    jobs = workers() if given.jobs is None else check.integer(given.jobs, "--jobs", 1)
    compiled, cached = compile_all(True, jobs)
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


def add_completion(commands: Any) -> argparse.ArgumentParser:
    """Declare the subcommand and its options."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "completion",
        help="print a script with which a shell completes commands and options",
        description="Print the script for a shell (needs: pip install 'fastpriv[completion]').\n\n"
        "  bash   fastpriv completion bash > ~/.local/share/bash-completion/completions/fastpriv\n"
        "  zsh    fastpriv completion zsh > a folder of your $fpath/_fastpriv\n"
        "  fish   fastpriv completion fish > ~/.config/fish/completions/fastpriv.fish\n"
        "  tcsh   fastpriv completion tcsh, sourced in ~/.tcshrc",
        epilog=examples("fastpriv completion bash"),
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish", "tcsh"), help="which one")
    return parser


def run_completion(given: argparse.Namespace) -> str:
    """Return what the subcommand prints."""
    script: str = optional("shtab", "completion").complete(given.parser, given.shell)
    return script
