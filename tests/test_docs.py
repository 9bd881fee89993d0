"""The examples in docstrings and in the README, run as written."""

import doctest
import importlib
import pkgutil
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


@pytest.mark.parametrize("name", fastpriv.__all__)
def test_every_public_name_is_documented_with_an_example(name):
    thing = getattr(fastpriv, name)
    assert thing.__doc__
    if not (isinstance(thing, type) and issubclass(thing, Exception)):
        exempt = {
            "Distribution",
            "HiddenMarkov",
            "TradeoffCurve",
            "TypeChannel",
        }  # not made by hand
        assert name in exempt or ">>>" in thing.__doc__
