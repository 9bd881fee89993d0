"""Write the names of every page of docs/api as plain Markdown: signatures and first sentences.

Run ``python tools/reference.py`` after a public name, a signature or the first sentence of a
docstring has changed; ``--check`` writes nothing and fails where a page is not up to date. Pages
then read well without being built. What each name does in full is in its docstring and on the
built site.
"""

from __future__ import annotations

import inspect
import pydoc
import re
import sys
from pathlib import Path

PAGES = Path(__file__).parents[1] / "docs" / "api"
BEGIN, END = "<!-- names, by tools/reference.py -->", "<!-- end of names -->"
_BLOCK = re.compile(
    rf"(?:{re.escape(BEGIN)}\n.*?{re.escape(END)}\n\n)?"
    r"(?P<block>```\{eval-rst\}\n\.\. reference:: (?P<module>\S+)\n(?P<names>.*?)```)",
    re.DOTALL,
)


def rewritten(page: str) -> str:
    """Return a page with a list of names before every reference."""

    def listed(match: re.Match[str]) -> str:
        names = match["names"].split()
        lines = [line(match["module"], name) for name in names]
        return "\n".join([BEGIN, *lines, END, "", match["block"]])

    return _BLOCK.sub(listed, page)


def line(module: str, name: str) -> str:
    """Return a name as an item of a list: how it is called, and what it is."""
    thing = pydoc.locate(f"{module}.{name}")
    return f"- `{name}{signature(thing)}`: {first_sentence(thing)}"


def signature(thing: object) -> str:
    """Return the arguments of a function or of the constructor of a class, with defaults."""
    if isinstance(thing, type) and issubclass(thing, Exception):
        return ""
    try:
        given = inspect.signature(thing)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""
    plain = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in given.parameters.values()
        if not parameter.name.startswith("_")
    ]
    kept = given.replace(parameters=plain, return_annotation=inspect.Signature.empty)
    # A default that is an object shows where it lies in memory.
    return re.sub(r"<[^<>]*? at 0x[0-9a-f]+>|<factory>", "...", str(kept))


def first_sentence(thing: object) -> str:
    """Return the first sentence of a docstring, in one line, in Markdown."""
    text = " ".join((inspect.getdoc(thing) or "").partition("\n\n")[0].split())
    sentence = re.split(r"(?<=[.!?])\s+(?=[A-Z(])", text)[0]
    return re.sub(r":\w+:`~?([^`]*)`", r"`\1`", sentence).replace("``", "`")


def stale() -> list[Path]:
    """List the pages whose names are not up to date."""
    return [
        page
        for page in sorted(PAGES.glob("*.md"))
        if rewritten(page.read_text()) != page.read_text()
    ]


if __name__ == "__main__":
    pages = stale()
    if "--check" in sys.argv:
        if pages:
            print(f"run python tools/reference.py: {', '.join(page.name for page in pages)}")
        sys.exit(bool(pages))
    for page in pages:
        page.write_text(rewritten(page.read_text()))
        print(page.name)
