"""The parser of every command: whole option names only, hints for near misses, one-line errors."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from fastpriv.errors import InvalidInput, described, did_you_mean, hint_or_list

#: What shtab puts into completion scripts for arguments that are files.
FILES = {
    "bash": "_shtab_compgen_files",
    "zsh": "_files",
    "fish": "(__fish_complete_path (commandline -ct))",
    "tcsh": "f",
}


class Parser(argparse.ArgumentParser):
    """An argument parser that raises :class:`InvalidInput` instead of leaving the process."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=_Help, **options)

    def error(self, message: str) -> NoReturn:
        """Raise the error, and name the help page to look at."""
        mark = "" if message.endswith("?") else "."
        raise InvalidInput(f"{message}{mark} See {self.prog} --help.")

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Report misspelt options first, before arguments that are missing because of them."""
        words = list(sys.argv[1:] if args is None else args)
        if self._subparsers is None:
            for word in words[: words.index("--")] if "--" in words else words:
                name = word.partition("=")[0]
                if name.startswith("--") and name not in self._option_string_actions:
                    options = [known for known in self._option_string_actions if len(known) > 2]
                    self.error(f"there is no option {name}{did_you_mean(name, options)}")
        return super().parse_known_args(words, namespace)

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        if action.type in (float, int):
            kind = "a number, with a point for decimals" if action.type is float else "an integer"
            try:
                return action.type(arg_string)
            except ValueError:
                text = f"must be {kind}; got {described(arg_string)}"
                raise argparse.ArgumentError(action, text) from None
        return super()._get_value(action, arg_string)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            names = [str(choice) for choice in action.choices]
            hint = hint_or_list(str(value), names)
            raise argparse.ArgumentError(action, f"{described(value)} is not known{hint}")


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help with paragraphs as they are written, and room for the longest name of a command."""

    def __init__(self, prog: str, **options: Any) -> None:
        super().__init__(prog, **({"max_help_position": 26} | options))
        self._action_max_length = 16


def examples(*lines: str) -> str:
    """Return the end of a help page. The tests run every line of it, in this order."""
    return "\n".join(["examples:", *(f"  {line}" for line in lines)])


def add_file(parser: Any, *names: str, **options: Any) -> None:
    """Declare an argument whose value is a file, so that shells complete it."""
    parser.add_argument(*names, **options).complete = FILES


def add_json(parser: Any) -> None:
    """Declare ``--json``."""
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")


def add_force(parser: Any) -> None:
    """Declare ``--force``."""
    parser.add_argument("--force", action="store_true", help="replace files that exist")
