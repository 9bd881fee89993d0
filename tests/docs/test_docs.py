"""The examples in docstrings, in the README and on the pages of the site, run as written."""

import doctest
import importlib
import pkgutil
import re
import shlex
import types
from collections.abc import Mapping
from pathlib import Path

import pytest

import fastpriv
from fastpriv.cli.main import main, make_parser

MODULES = sorted(
    info.name
    for info in pkgutil.walk_packages(fastpriv.__path__, "fastpriv.")
    if not info.name.startswith("fastpriv.kernels")
)
ROOT = Path(__file__).parents[2]
PAGES = sorted(p for p in (ROOT / "docs").rglob("*.md") if "_build" not in p.parts)
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    if name.startswith("fastpriv.adapters."):
        pytest.importorskip(name.rpartition(".")[2], reason="needs the extra of its name")
    failed, _ = doctest.testmod(importlib.import_module(name), report=True)
    assert failed == 0


def run_commands(page, capsys):
    """Run the commands in the console blocks of a page, and compare what they print."""
    same = doctest.OutputChecker().check_output
    for block in re.findall(r"^```console\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
        assert block.startswith("$ ")
        for command, _, expected in (part.partition("\n") for part in block[2:].split("\n$ ")):
            program, *arguments = shlex.split(command, comments=True)
            capsys.readouterr()
            assert (program, main(arguments)) == ("fastpriv", 0), command
            printed = capsys.readouterr().out
            expected = expected.rstrip() + "\n" if expected else printed
            assert same(expected, printed, doctest.ELLIPSIS), printed


def test_examples_and_commands_of_the_readme(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert tried >= 3
    assert failed == 0
    Path("people.csv").write_text("smokes\n" + "no\n" * 700 + "yes\n" * 300)
    Path("domain.json").write_text('{"smokes": ["no", "yes"]}')
    run_commands(ROOT / "README.md", capsys)
    assert Path("report.json").exists()


@each_page
@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of pandas, by Dask's reader
def test_examples_and_commands_of_a_page(page, tmp_path, monkeypatch, capsys):
    """Python first, then the commands, in one folder: commands may use files Python wrote."""
    monkeypatch.chdir(tmp_path)
    assert doctest.testfile(str(page), module_relative=False).failed == 0
    run_commands(page, capsys)


def test_every_command_is_named():
    page = (ROOT / "docs" / "command-line.md").read_text()
    [commands] = (a.choices for a in make_parser()._actions if a.dest == "command")
    assert len(commands) > 5
    assert [name for name in commands if f"`{name}`" not in page] == []


def public(module):
    """Every public name of a module and of the public modules in it, with what it names."""
    for name in getattr(module, "__all__", ()):
        thing = getattr(module, name)
        if isinstance(thing, Mapping):
            continue  # a table, which cannot carry a docstring
        yield f"{module.__name__}.{name}", thing
        if isinstance(thing, types.ModuleType):
            yield from public(thing)


NOT_MADE_BY_HAND = {"Distribution", "HiddenMarkov", "TradeoffCurve", "TypeChannel"}


@pytest.mark.parametrize(("name", "thing"), list(public(fastpriv)))
def test_every_public_name_is_documented_with_an_example(name, thing):
    assert thing.__doc__
    error = isinstance(thing, type) and issubclass(thing, Exception)
    needs_none = error or isinstance(thing, types.ModuleType)
    assert needs_none or name.split(".")[-1] in NOT_MADE_BY_HAND or ">>>" in thing.__doc__


def test_every_public_name_is_in_the_api_reference():
    listed = set()
    for page in (ROOT / "docs" / "api").glob("*.md"):
        for module, names in re.findall(
            r"^\.\. reference:: (\S+)\n\n((?: +\S+\n)+)", page.read_text(), re.M
        ):
            listed |= {f"{module}.{name}" for name in names.split()}
    things = {name for name, thing in public(fastpriv) if not isinstance(thing, types.ModuleType)}
    for name in ("dp_accounting", "opendp"):
        module = pytest.importorskip(f"fastpriv.adapters.{name}")
        things |= {f"{module.__name__}.{thing}" for thing in module.__all__}
    assert things <= listed, sorted(things - listed)
