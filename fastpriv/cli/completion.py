"""``fastpriv completion``: a script that teaches a shell the commands and their options.

The script is static (shtab): completing a word starts no Python, and nothing is needed but the
script itself once it was made.
"""

from __future__ import annotations

import argparse
from typing import Any

from fastpriv._core.extras import optional
from fastpriv.cli.parser import examples


def add(commands: Any) -> argparse.ArgumentParser:
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


def run(given: argparse.Namespace) -> str:
    """Return what the subcommand prints."""
    script: str = optional("shtab", "completion").complete(given.parser, given.shell)
    return script
