"""Pages that are read off the code, so that they cannot go stale."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import pydoc
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import fastpriv
from fastpriv.cli.main import main, make_parser
from fastpriv.notions import NOTIONS


class Reference(SphinxDirective):
    """The names of a module, each in full; ``tools/reference.py`` lists them before."""

    has_content = True
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return what autodoc makes of the names."""
        module, names = self.arguments[0], [name.strip() for name in self.content if name.strip()]
        lines = [f".. currentmodule:: {module}", ""]
        for name in names:
            thing = pydoc.locate(f"{module}.{name}")
            lines += ["", f".. auto{_kind(thing)}:: {name}"]
            if isinstance(thing, type):
                lines += ["   :members:", "   :member-order: bysource"]
                lines += [f"   :exclude-members: {', '.join(sorted(_inherited(thing)))}"]
        return self.parse_text_to_nodes("\n".join(lines))


def _inherited(thing: type) -> set[str]:
    """What a base of ours has too, and is described there, once."""
    bases = [base for base in thing.__mro__[1:] if base.__module__.startswith("fastpriv.")]
    return {name for base in bases for name in vars(base) if not name.startswith("_")}


def _kind(thing: object) -> str:
    if not isinstance(thing, type):
        return "function"
    return "exception" if issubclass(thing, Exception) else "class"


class Commands(SphinxDirective):
    """What the help of every command says, and the mechanisms and priors that they take."""

    def run(self) -> list[nodes.Node]:
        """Return one section per command, and one for the names."""
        found = [self._section(p.prog, p.format_help()) for p in _commands(make_parser())]
        with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.suppress(SystemExit):
            main(["audit", "--list"])
        return [*found, self._section("Mechanisms and priors", printed.getvalue())]

    def _section(self, title: str, text: str) -> nodes.section:
        section = nodes.section(ids=[nodes.make_id(title)])
        section += nodes.title(text=title)
        section += nodes.literal_block(text.strip(), text.strip(), language="text")
        self.state.document.note_explicit_target(section)
        return section


def _commands(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parser of a command, and those of its subcommands."""
    below = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    yield parser
    for action in below:
        for child in dict.fromkeys(action.choices.values()):  # an alias is the same parser
            yield from _commands(child)


class Notions(SphinxDirective):
    """A definition of every notion of privacy, and how its levels combine."""

    def run(self) -> list[nodes.Node]:
        """Return a definition list."""
        listed = nodes.definition_list()
        for slug, notion in NOTIONS.items():
            name = nodes.term("", "", nodes.literal(text=slug), ids=[f"notion-{slug}"])
            text = f"{_capital(notion.title)}: {notion.bounds}. Source: {notion.source}."
            about = nodes.definition("", nodes.paragraph(text=text))
            if notion.law is not None:
                law = f"Of several releases: {notion.law.name}; {notion.law.needs}."
                about += nodes.paragraph(text=law)
            listed += nodes.definition_list_item("", name, about)
        return [listed]


class Structures(SphinxDirective):
    """What is answered in structure, from the answers that benchmarks/structure_table.py saved."""

    def run(self) -> list[nodes.Node]:
        """Return a table for each channel: measures down, priors across."""
        _, path = self.env.relfn2path("structure.json")
        self.env.note_dependency(path)
        answers = json.loads(Path(path).read_text())
        made: list[nodes.Node] = []
        for channel in dict.fromkeys(answer["channel"] for answer in answers):
            own = [answer for answer in answers if answer["channel"] == channel]
            title = channel or "the prior alone"
            section = nodes.section(ids=[nodes.make_id(title)])
            section += nodes.title(text=title)
            section += self._table(own)
            made.append(section)
        return made

    def _table(self, answers: list[dict[str, Any]]) -> nodes.table:
        priors = list(dict.fromkeys(answer["prior"] for answer in answers))
        cells = {(answer["measure"], answer["prior"]): _answer(answer) for answer in answers}
        group = nodes.tgroup(cols=len(priors) + 1)
        group += [nodes.colspec(colwidth=1) for _ in range(len(priors) + 1)]
        group += nodes.thead("", _row(["", *priors]))
        body = nodes.tbody()
        for measure in dict.fromkeys(answer["measure"] for answer in answers):
            body += _row([measure, *(cells.get((measure, prior), "") for prior in priors)])
        group += body
        return nodes.table("", group)


def _row(words: list[str]) -> nodes.row:
    entries = [nodes.entry("", nodes.paragraph(text=word)) for word in words]
    return nodes.row("", *entries)


def _answer(answer: dict[str, Any]) -> str:
    size = answer.get("size")
    return f"{answer['kind']}, {size:,}" if size else str(answer["kind"])


def _capital(title: str) -> str:
    return title if "_" in title else title[0].upper() + title[1:]


_LITERAL = re.compile(r"(``.*?``|:[\w:]+:`.*?`)")


def keep_formulas(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """Keep reStructuredText from reading |x| and p(x_) in a plain formula as its own marks."""
    example = False
    for k, line in enumerate(lines):
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        if not example:
            parts = _LITERAL.split(line)
            parts[::2] = [re.sub(r"(\||_(?!\w))", r"\\\1", part) for part in parts[::2]]
            lines[k] = "".join(parts)


def write_audit(app: Sphinx) -> None:
    """Put the page of an audit beside the site, for a tutorial to show."""
    table = [[0.80, 0.15, 0.05], [0.10, 0.80, 0.10], [0.05, 0.15, 0.80]]
    if app.builder.format == "html":
        fastpriv.audit(table, [0.7, 0.2, 0.1]).to_html(app.outdir / "audit-example.html")


def close_fences(app: Sphinx, page: str, source: list[str]) -> None:
    """Drop the empty line that doctest needs before a closing fence."""
    source[0] = source[0].replace("\n\n```\n", "\n```\n")


def setup(app: Sphinx) -> dict[str, bool]:
    """Declare the directives."""
    app.setup_extension("sphinx.ext.autodoc")
    app.add_directive("commands", Commands)
    app.add_directive("notions", Notions)
    app.add_directive("reference", Reference)
    app.add_directive("structures", Structures)
    app.connect("autodoc-process-docstring", keep_formulas, priority=400)  # before numpydoc
    app.connect("builder-inited", write_audit)
    app.connect("source-read", close_fences)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
