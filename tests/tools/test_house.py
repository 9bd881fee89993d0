"""The import graph: no cycle, no upward import, nothing private at the root or found by name."""

import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("house", ROOT / "tools" / "house.py")
house = importlib.util.module_from_spec(SPEC)
sys.modules["house"] = house
SPEC.loader.exec_module(house)

RULES = """
layers = [
  "top",
  "bottom",
]
"""


def made(tmp_path, **files):
    """A checkout with these files, "top/a.py" written as top__a."""
    (tmp_path / "pyproject.toml").write_text(RULES)
    for name, text in files.items():
        path = tmp_path / "fastpriv" / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return house.survey(tmp_path)


def test_this_package_keeps_the_rules():
    found = house.survey(ROOT)
    assert found.faults == []
    assert len(found.lines) > 100
    text = house.report(found, house.layers((ROOT / "pyproject.toml").read_text()), True)
    assert "cycles, function-level imports counted: 0" in text
    assert "upward edges: 0" in text
    assert "private modules at the root: 0" in text


def test_an_import_within_a_function_counts(tmp_path):
    inside = "def f():\n    from fastpriv.top import a\n"
    found = made(tmp_path, top__a="import fastpriv.bottom.b\n", bottom__b=inside)
    assert found.cycles == [["fastpriv.bottom.b", "fastpriv.top.a"]]
    assert found.upward == [("fastpriv.bottom.b", "fastpriv.top.a")]
    assert len(found.faults) == 2


def test_an_import_for_types_does_not(tmp_path):
    types = (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from fastpriv.top.a import x\n"
    )
    found = made(tmp_path, top__a="from fastpriv.bottom.b import y\n", bottom__b=types)
    assert found.faults == []
    assert found.edges["fastpriv.top.a"] == {"fastpriv.bottom.b"}


def test_a_private_module_at_the_root_is_named(tmp_path):
    assert made(tmp_path, _loose="x = 1\n").faults == ["private at the root: _loose.py"]


def test_relative_imports_are_followed(tmp_path):
    found = made(
        tmp_path, top__a="from . import c\nfrom ..bottom import b\n", top__c="", bottom__b=""
    )
    assert found.edges["fastpriv.top.a"] == {"fastpriv.top.c", "fastpriv.bottom.b"}


def test_an_import_by_name_is_a_fault(tmp_path):
    text = "import importlib\nimportlib.import_module('fastpriv.top.a')\n"
    assert made(tmp_path, top__a="", bottom__b=text).faults == [
        "imports by name: fastpriv.bottom.b"
    ]


def test_neighbours_and_private_attributes_are_counted(tmp_path):
    found = made(tmp_path, top__a="from fastpriv.top.c import x\nx._y\n", top__c="x = 1\n")
    assert found.single == ["fastpriv.top.c"]
    assert found.private == 1
