"""Break one line at a time and see whether a test notices: ``python tools/mutants.py``.

A mutant is the source with one operator, comparison, direction or constant changed. Each runs in a
process of its own, kernels as plain Python, against the search for wrong numbers (``tests/fuzz``
from a fixed seed) and against tests. What nobody notices is printed. All lines of directed rounding
are broken, and of other files those that round: they name a unit, a slack, an error or a bound.

    python tools/mutants.py                                        # rounding, then the kernels
    python tools/mutants.py fastpriv/_core/rounding.py --tests tests/core/test_rounding.py
    python tools/mutants.py fastpriv/measures/dp.py --cases 400 --tests tests/measures
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib.abc
import importlib.machinery
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

os.environ["NUMBA_DISABLE_JIT"] = "1"
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parent.parent
#: Lines that decide which way a number is rounded.
ROUNDING = re.compile(
    r"\b(ULP|UNIT|U|LEAST|WIDER|ENTROPY|ROUND_UP|EDGE|LOST|_SLACK|raised|lowered|directed|round_up"
    r"|sum_up|product_up|nextafter|slack|error|margin|doubt)\b"
)
#: Names that count rounding errors.
UNITS = ("U", "UNIT", "ULP", "WIDER", "LEAST", "LIBM")
SWAPPED_NAMES = {
    "raised": "lowered",
    "lowered": "raised",
    "round_up": "abs",
    "sum_up": "sum_down",
    "product_up": "product_down",
    "max": "min",
    "min": "max",
}
SWAPPED = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.USub: ast.UAdd,
}


def mutants(source, everywhere):
    """Yield (line, what was changed, syntax tree) for every way to break the source."""
    tree, lines = ast.parse(source), source.splitlines()
    texts = {id(n) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    count = len(list(ast.walk(tree)))
    for position in range(count):
        node = list(ast.walk(tree))[position]
        line = getattr(node, "lineno", None)
        if line is None or id(node) in texts:
            continue
        whole = " ".join(lines[line - 1 : node.end_lineno])
        if not everywhere and not ROUNDING.search(whole.split("#")[0]):
            continue
        for what, change in changes(node, everywhere):
            broken = copy.deepcopy(tree)
            change(list(ast.walk(broken))[position])
            yield line, f"{lines[line - 1].strip()[:90]}   [{what}]", broken


def changes(node, everywhere):
    """Yield descriptions of single changes to a node, and functions that make them."""
    turned = (ast.Add, ast.Sub, ast.Mult, ast.Div) if everywhere else (ast.Add, ast.Sub)
    if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, turned):
        other = SWAPPED[type(node.op)]
        yield f"{type(node.op).__name__} -> {other.__name__}", _setter("op", other)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
        name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
        if name in SWAPPED_NAMES and isinstance(node.func, ast.Name):
            yield f"{name} -> {SWAPPED_NAMES[name]}", lambda n: _rename(n, SWAPPED_NAMES[name])
        if name == "nextafter":
            yield "nextafter the other way", lambda n: n.args.__setitem__(1, _negative(n.args[1]))
    if isinstance(node, ast.Name) and node.id in UNITS and isinstance(node.ctx, ast.Load):
        yield f"{node.id} -> 0", _zero
    if not everywhere:
        return
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in SWAPPED:
        other = SWAPPED[type(node.ops[0])]
        yield (
            f"{type(node.ops[0]).__name__} -> {other.__name__}",
            lambda n: n.ops.__setitem__(0, other()),
        )
    if isinstance(node, ast.BoolOp | ast.UnaryOp) and type(node.op) in SWAPPED:
        other = SWAPPED[type(node.op)]
        yield f"{type(node.op).__name__} -> {other.__name__}", _setter("op", other)
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield f"{node.value} -> {node.value + 1}", lambda n: setattr(n, "value", n.value + 1)
    if isinstance(node, ast.IfExp):
        yield "branches swapped", _swap_branches


def _setter(field, kind):
    return lambda node: setattr(node, field, kind())


def _rename(call, name):
    call.func = ast.copy_location(ast.Name(name, ast.Load()), call.func)
    if name == "abs":
        call.args = call.args[:1]


def _negative(node):
    return ast.copy_location(ast.UnaryOp(ast.USub(), node), node)


def _zero(node):
    node.id = "_nothing_"


def _swap_branches(node):
    node.body, node.orelse = node.orelse, node.body


class Loader(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Give the broken source to whoever imports a module."""

    def __init__(self, name, path, tree):
        self.name, self.path, self.tree = name, path, tree

    def find_spec(self, name, path=None, target=None):
        """Recognise the module."""
        if name != self.name:
            return None
        return importlib.machinery.ModuleSpec(name, self, origin=str(self.path))

    def exec_module(self, module):
        """Run the broken source."""
        module.__file__ = str(self.path)
        module.__dict__.update(_nothing_=0.0)
        if not self.name.startswith(("fastpriv.kernels", "fastpriv._core.rounding")):
            helpers = "from fastpriv._core.rounding import lowered, raised, sum_down, product_down"
            exec(helpers, module.__dict__)
        tree = ast.fix_missing_locations(self.tree)
        exec(compile(tree, str(self.path), "exec"), module.__dict__)


def noticed(name, path, tree, cases, tests, options):
    """Whether a mutant is caught, in a process of its own: wrong numbers, errors, a hang."""
    child = os.fork()
    if child == 0:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        signal.alarm(int(options.seconds))
        try:
            sys.meta_path.insert(0, Loader(name, path, tree))
            searched = cases and _searched(cases, options.like)
            caught = searched or (tests and _tested(tests))
        except BaseException:
            caught = True
        os._exit(1 if caught else 0)
    _, status = os.waitpid(child, 0)
    return status != 0


def _searched(cases, like):
    return any(number not in _broken for number in _wrong(cases, like))


def _wrong(cases, like):
    """Yield the numbers of cases that break a claim; those of the corpus count from -1 down."""
    from fuzz import claims
    from fuzz.search import case_of, corpus

    for number, case in enumerate(corpus()):
        if claims.answer(case):
            yield -1 - number
    names = [name for name in claims.QUESTIONS if name.startswith(like)]
    for number in range(cases):
        if claims.answer(case_of(2026, number, names[number % len(names)])):
            yield number


def _wrong_already(cases, like):
    """Return the cases that are broken without a mutant, asked in another process."""
    code = f"import mutants; print(*mutants._wrong({cases}, {like!r}))"
    paths = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tools")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return set(map(int, run.stdout.split()))


def _tested(tests):
    import pytest

    return pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]) != 0


#: Cases that are broken without a mutant.
_broken: set[int] = set()


def module_name(path):
    """Return the name a file is imported by."""
    relative = path.resolve().relative_to(ROOT)
    parts = relative.with_suffix("").parts
    return ".".join(("fastpriv", *parts) if parts[0] == "kernels" else parts)


def main():
    """Run the mutants of some files: exit code 1 where one survives."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("files", nargs="*", type=Path, help="files to break")
    parser.add_argument("--tests", nargs="*", default=[], help="tests to run besides the search")
    parser.add_argument("--cases", type=int, default=120, help="cases of the search")
    parser.add_argument("--like", default="", help="questions that begin like this")
    parser.add_argument("--seconds", type=float, default=120.0, help="most time of a mutant")
    parser.add_argument("--every", type=int, default=1, help="take only every so many mutants")
    options = parser.parse_args()
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    import flint  # noqa: F401 - before the fork: every mutant needs them
    import mpmath  # noqa: F401
    import numba  # noqa: F401
    import pytest  # noqa: F401
    import scipy.optimize
    import scipy.special  # noqa: F401

    files = options.files or [
        ROOT / "fastpriv/_core/rounding.py",
        *sorted((ROOT / "kernels").glob("*.py")),
    ]
    if any(path.name != "rounding.py" for path in files):
        _broken.update(_wrong_already(options.cases, options.like))
    survivors, total, start = [], 0, time.monotonic()
    for path in files:
        everywhere = path.name == "rounding.py"
        tests = options.tests or (["tests/core/test_rounding.py"] if everywhere else [])
        cases = 0 if everywhere else options.cases
        source, count, left = path.read_text(), 0, 0
        if noticed(module_name(path), path, ast.parse(source), cases, tests, options):
            sys.exit(f"{path}: the tests fail without a mutant")
        for number, (line, what, tree) in enumerate(mutants(source, everywhere)):
            if number % options.every:
                continue
            count += 1
            if not noticed(module_name(path), path, tree, cases, tests, options):
                left += 1
                survivors.append(f"{path.resolve().relative_to(ROOT)}:{line}: {what}")
                print("survived:", survivors[-1], flush=True)
        total += count
        if count:
            print(
                f"{path.resolve().relative_to(ROOT)}: {count} mutants, {left} survived", flush=True
            )
    print(f"{total} mutants, {len(survivors)} survived, {time.monotonic() - start:.0f} s")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
