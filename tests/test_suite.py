"""The suite itself: what runs by default, and that every test can fail, on any machine."""

import ast
import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
MARKERS = ["grid", "search", "docs", "outer", "slow"]
#: Seconds of processor time that every worker may spend on collecting the default suite.
COLLECTION = 5.0
#: Limits in between may or may not be reached, as the machine likes: at once, or never.
AT_ONCE, NEVER = 1e-3, 600.0


@functools.cache
def files():
    """Return the syntax tree of every file of tests; parsed when a test asks."""
    paths = sorted(TESTS.rglob("*.py"))
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def functions(tree):
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def every_test():
    """Yield (file and name, function) of every test."""
    for path, tree in files().items():
        if path.name.startswith("test_"):
            for function in tree.body:
                if isinstance(function, ast.FunctionDef) and function.name.startswith("test_"):
                    yield f"{path.relative_to(TESTS)}::{function.name}", function


def default_nodes():
    """Yield (file and name, node) of every node in the tests that run by default."""
    for name, test in every_test():
        if default(test):
            for node in ast.walk(test):
                yield name, node


def called(node):
    """Return the last part of the name of what is called, as in ``pytest.raises``."""
    if isinstance(node, ast.withitem):
        node = node.context_expr
    if not isinstance(node, ast.Call):
        return None
    return getattr(node.func, "attr", getattr(node.func, "id", None))


def own_nodes(function):
    """Yield the nodes of a function in the order of its lines, without functions inside it."""
    waiting = list(reversed(function.body))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.Lambda):
            waiting += reversed(list(ast.iter_child_nodes(node)))


def checks(node, others=()):
    """Whether a statement can fail a test by itself."""
    if isinstance(node, ast.Assert | ast.Raise):
        return True
    name = called(node) or ""
    return name in {"raises", "warns", "fail", *others} or name.startswith("assert_")


@functools.cache
def helpers():
    """Return the functions that check something, to be called instead of an assertion."""
    return {
        function.name
        for tree in files().values()
        for function in functions(tree)
        if not function.name.startswith("test_") and any(map(checks, ast.walk(function)))
    }


def default(function):
    """Whether a test runs by default, at least in part."""
    marks = [ast.unparse(mark) for mark in function.decorator_list]
    return not any(mark == f"pytest.mark.{name}" for mark in marks for name in MARKERS[1:])


@pytest.mark.slow  # parses every file of tests
def test_every_test_checks_something():
    idle = [
        name for name, test in every_test() if not any(checks(n, helpers()) for n in ast.walk(test))
    ]
    assert not idle


@pytest.mark.slow  # parses every file of tests
def test_no_test_returns_before_it_has_checked_something():
    early = []
    for name, test in every_test():
        for node in own_nodes(test):
            if checks(node, helpers()):
                break
            if isinstance(node, ast.Return):
                early.append(f"{name}, line {node.lineno}")
                break
    assert not early


@pytest.mark.slow  # parses every file of tests
def test_no_default_test_reads_a_clock():
    clocks = {"monotonic", "perf_counter", "time"}
    reading = [
        f"{name}, line {node.lineno}"
        for name, node in default_nodes()
        if called(node) in clocks and ast.unparse(node).startswith("time.")
    ]
    assert not reading


@pytest.mark.slow  # parses every file of tests
def test_time_limits_are_reached_at_once_or_never():
    depending = [
        f"{name}, line {node.lineno}"
        for name, node in default_nodes()
        if isinstance(node, ast.keyword) and node.arg == "time_limit"
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, int | float)
        if AT_ONCE < node.value.value < NEVER
    ]
    assert not depending


def test_markers_are_declared_and_left_out_by_default(pytestconfig):
    declared = {line.split(":")[0] for line in pytestconfig.getini("markers")}
    assert declared >= set(MARKERS)
    options = pytestconfig.getini("addopts")
    left_out = " and ".join(f"not {name}" for name in MARKERS)
    assert options[options.index("-m") + 1] == left_out


EXAMPLE = """
import pytest
from hypothesis import given, strategies as st

DRAWN = []

@pytest.mark.grid
@pytest.mark.parametrize("case", ["uniform-1", "uniform-2", "dense-1"])
def test_grid(case): assert case in ("uniform-1", "dense-1")

@pytest.mark.search(every=10)
@pytest.mark.parametrize("seed", range(20))
def test_search(seed): assert seed in (0, 10)

@pytest.mark.slow(but=["b"])
@pytest.mark.parametrize("size", ["a", "b"])
def test_size(size): assert size == "b"

@pytest.mark.slow
def test_slow(): assert False

@pytest.mark.search(every=10)
@given(st.integers())
def test_examples(number): DRAWN.append(number)

def test_fewer_examples(): assert 0 < len(DRAWN) <= 20
"""


def pytest_run(*arguments):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    return subprocess.run([*command, *arguments], cwd=TESTS.parent, capture_output=True, text=True)


@pytest.mark.slow  # another pytest
def test_one_case_of_each_kind_stays(tmp_path):
    path = tmp_path / "test_example.py"
    path.write_text(EXAMPLE)
    by_default = pytest_run("-c", "pyproject.toml", "-p", "conftest", str(path))
    assert "7 passed, 21 deselected" in by_default.stdout
    everything = pytest_run("-c", "pyproject.toml", "-p", "conftest", "-m", "", str(path))
    assert "7 passed" not in everything.stdout
    assert "deselected" not in everything.stdout


@pytest.mark.slow  # two collections
def test_collection_is_quick(monkeypatch):
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    spent = []
    for _ in range(2):  # the first one may compile Python
        before = os.times()
        assert pytest_run("--collect-only").returncode == 0
        after = os.times()
        spent.append(sum(after[2:4]) - sum(before[2:4]))
    assert min(spent) < COLLECTION
