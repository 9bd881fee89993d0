"""The examples in docstrings and in the README, run as written."""

import doctest
import importlib
import pkgutil
import types
from collections.abc import Mapping
from pathlib import Path

import pytest

import fastpriv

MODULES = sorted(
    info.name
    for info in pkgutil.walk_packages(fastpriv.__path__, "fastpriv.")
    if not info.name.startswith("fastpriv.kernels")
)
ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    if name.startswith("fastpriv.adapters."):
        pytest.importorskip(name.rpartition(".")[2], reason="needs the extra of its name")
    failed, _ = doctest.testmod(importlib.import_module(name), report=True)
    assert failed == 0


def test_readme_examples():
    failed, tried = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert tried >= 3
    assert failed == 0


def public(module):
    """Every public name of a module and of the public modules in it, with what it names."""
    for name in module.__all__:
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
