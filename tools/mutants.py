"""Break one line at a time and see whether a test notices: ``python tools/mutants.py``.

A mutant is the source with one operator, comparison, direction or constant changed. All lines of
directed rounding are broken, and of other files those that round: they name a unit, a slack, an
error or a bound. Kernels run as plain Python.

Cases of the search for wrong numbers (``tests/fuzz``, from a fixed seed) and tests are run once
without a mutant, to see which lines each of them reaches. A mutant is then a fork of this process
with other code in its functions, which runs what reaches its line until something fails: those
first that caught the mutants before it. What nobody notices is printed, and what nothing reaches.

    python tools/mutants.py                                        # rounding, then the kernels
    python tools/mutants.py fastpriv/_core/rounding.py --cases 0 --tests tests/core/test_rounding.py
    python tools/mutants.py fastpriv/measures/dp.py --cases 400 --tests tests/measures
"""

from __future__ import annotations

import argparse
import ast
import gc
import importlib
import math
import os
import pickle
import re
import signal
import sys
import threading
import time
import types
import warnings
from collections import Counter
from pathlib import Path

from mutations import SWAPPED_NAMES, mutants

os.environ["NUMBA_DISABLE_JIT"] = "1"
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parent.parent
#: Files of which every line is broken, as all of them round.
WHOLE = ("rounding", "wide")


def functions_of(module):
    """Return the functions of a module, methods and registered ones included."""
    return [
        f for f in gc.get_objects()
        if isinstance(f, types.FunctionType) and f.__code__.co_filename == module.__file__
    ]  # fmt: skip


def install(module, functions, tree):
    """Put the broken code into the functions of a module, wherever they were imported to."""
    from fastpriv._core import rounding

    names = vars(module)
    names["_nothing_"] = 0.0
    for name in SWAPPED_NAMES:
        if hasattr(rounding, name):
            names.setdefault(name, getattr(rounding, name))
    filename = module.__file__
    codes = dict(_functions(compile(ast.fix_missing_locations(tree), filename, "exec")))
    for function in functions:
        code = function.__code__
        function.__code__ = codes[code.co_qualname, code.co_firstlineno]
    constants = [s for s in tree.body if isinstance(s, ast.Assign)]
    changed = dict(names)
    for statement in constants:
        exec(compile(ast.Module([statement], []), filename, "exec"), changed)
    for name, new in changed.items():
        if isinstance(new, int | float) and new != names.get(name, new):
            _rebind(name, names[name], new)


def _functions(code):
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield (inner.co_qualname, inner.co_firstlineno), inner
            yield from _functions(inner)


def _rebind(name, old, new):
    """Change a constant in the module that has it and in those that imported it."""
    for module in list(sys.modules.values()):
        if getattr(module, "__dict__", {}).get(name) is old:
            setattr(module, name, new)


class Check:
    """A case of the search, or a test: what it reaches, how long it takes, what it has caught."""

    def __init__(self, name, fails):
        self.name, self.fails = name, fails
        self.seconds, self.caught = math.inf, 0
        #: File and line of everything that is run.
        self.reached = set()

    def traced(self, files, longest):
        """Run it once; return whether it fails, its processor time and what it reaches."""
        reached = set()

        def local(frame, event, argument):
            if event == "line":
                reached.add((frame.f_code.co_filename, frame.f_lineno))
            return local

        def calls(frame, event, argument):
            return local if frame.f_code.co_filename in files else None

        start = time.process_time()
        threading.settrace(calls)
        sys.settrace(calls)
        signal.setitimer(signal.ITIMER_PROF, longest)
        try:
            failed = self.fails()
        except TimeoutError:
            failed = True
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            sys.settrace(None)
            threading.settrace(None)
        seconds = time.process_time() - start
        return failed or seconds > longest, seconds, reached


def cases(count, like):
    """Return checks that ask the cases of the corpus, and some of the search."""
    from fuzz import claims
    from fuzz.search import case_of, corpus

    names = [name for name in claims.QUESTIONS if name.startswith(tuple(like))]
    with warnings.catch_warnings(action="ignore"):  # of kernels as plain Python
        drawn = [case_of(2026, k, names[k % len(names)]) for k in range(count)]
    kept = [case for case in corpus() if case["question"] in names] if count else []
    return [
        Check(f"case {case['question']}", lambda case=case: claims.answer(case) is not None)
        for case in kept + drawn
    ]


def sample(items, whole, most):
    """Return some parameters of every test, far apart in the list of them, and some files whole."""
    kinds = {}
    for item in items:
        if item.path in whole:
            kinds[item.nodeid] = [item]
        else:
            kinds.setdefault(item.nodeid.split("[")[0], []).append(item)
    chosen = []
    for same in kinds.values():
        count = min(most, len(same))
        chosen += [same[k * len(same) // count] for k in range(count)]
    return chosen


def tests_of(items):
    """Return a check for every test that was collected."""
    from _pytest.runner import runtestprotocol

    def failing(item):
        return any(r.failed for r in runtestprotocol(item, log=False, nextitem=None))

    return [Check(item.nodeid, lambda item=item: failing(item)) for item in items]


def measured(checks, files, longest):
    """Return the checks that pass, with the lines they reach, asked in other processes."""
    passed, dropped, begun = [], Counter(), 0
    while begun < len(checks):
        for check, (failed, seconds, reached) in _traced(checks[begun:], files, longest):
            check.seconds, check.reached, begun = seconds, reached, begun + 1
            if failed:
                dropped["take too long" if seconds > longest else "fail without a mutant"] += 1
            else:
                passed.append(check)
        if begun < len(checks):
            dropped["end the process"] += 1
            begun += 1
    told = [f"{count} that {why}" for why, count in dropped.items()]
    print(f"{len(passed)} checks", *told, sep=", ", flush=True)
    return passed


def _traced(checks, files, longest):
    """Yield each check and what it did, until one of them ends the process that runs them."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        _quiet()
        signal.signal(signal.SIGPROF, _too_slow)
        try:
            for check in checks:
                with os.fdopen(write, "wb", closefd=False) as stream:
                    stream.write(pickle.dumps(check.traced(files, longest)))
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        for check in checks:
            if not stream.peek(1):
                break
            yield check, pickle.load(stream)
    os.waitpid(child, 0)


def _too_slow(number, frame):
    raise TimeoutError


def _quiet():
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)


def catcher(break_it, checks):
    """Return the check that catches a mutant by a failure, an error or a hang, or None."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        _quiet()
        try:
            break_it()
            for k, check in enumerate(checks):
                os.write(write, bytes([k % 256]))
                signal.setitimer(signal.ITIMER_PROF, 5.0 + 10.0 * check.seconds)
                if check.fails():
                    os._exit(1)
        except BaseException:
            os._exit(1)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        begun = len(stream.read())
    _, status = os.waitpid(child, 0)
    if status == 0:
        return None
    return checks[begun - 1] if begun else Check("it cannot be run", None)


class Broken:
    """Pytest collects the tests, and this breaks the files instead of running them."""

    def __init__(self, options):
        self.options, self.survivors = options, 0

    def pytest_collection(self, session):
        """Try the same examples every time, and make none of them smaller."""
        from hypothesis import Phase, settings

        phases = (Phase.explicit, Phase.generate)
        given = {"phases": phases, "max_examples": 25, "database": None}
        settings.register_profile("mutants", settings.get_profile("ci"), **given)
        settings.load_profile("mutants")

    def pytest_runtestloop(self, session):
        """Run the mutants of every file."""
        start, options = time.monotonic(), self.options
        sources = [path.read_text() for path in options.files]
        modules = [importlib.import_module(module_name(path)) for path in options.files]
        whole = {Path(name).resolve() for name in options.tests}
        chosen = sample(session.items, whole, options.alike)
        checks = cases(options.cases, options.like) + tests_of(chosen)
        checks = measured(checks, {m.__file__ for m in modules}, options.longest)
        gc.unfreeze()  # functions that were loaded at collection are found too
        functions = [functions_of(module) for module in modules]
        gc.freeze()  # what is not touched is not copied by forks
        for path, *loaded in zip(options.files, sources, modules, functions, strict=True):
            self.run(path.resolve().relative_to(ROOT), *loaded, checks)
        print(f"{self.survivors} survived, {time.monotonic() - start:.0f} s", flush=True)
        return True

    def run(self, name, source, module, functions, checks):
        """Run the mutants of one file."""
        tree, found, start = ast.parse(source), Counter(), time.monotonic()
        bodies = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
        first, last = self.options.lines
        for number, (node, what, change) in enumerate(mutants(source, tree, name.stem in WHOLE)):
            if number % self.options.every or not first <= node.lineno <= last:
                continue
            if not re.search(self.options.only, what.rsplit("[", 1)[1]):
                continue
            inside = any(f.body[0].lineno <= node.lineno <= f.end_lineno for f in bodies)
            lines = {(module.__file__, k) for k in range(node.lineno, node.end_lineno + 1)}
            able = [c for c in checks if not inside or lines & c.reached]
            able.sort(key=lambda c: (-c.caught, c.seconds))

            def break_it(node=node, change=change):
                change(node)
                install(module, functions, tree)

            by = catcher(break_it, _affordable(able, self.options.seconds))
            found["survived" if able and by is None else "caught" if by else "not reached"] += 1
            if by is None:
                print(
                    "survived:" if able else "not reached:",
                    f"{name}:{node.lineno}: {what}",
                    flush=True,
                )
            else:
                by.caught += 1
        self.survivors += found["survived"] + found["not reached"]
        told = ", ".join(f"{found[k]} {k}" for k in ("caught", "survived", "not reached"))
        print(
            f"{name}: {found.total()} mutants, {told}, {time.monotonic() - start:.0f} s", flush=True
        )


def _affordable(checks, seconds):
    """Return the first checks, as many as fit into some processor time."""
    chosen = []
    for check in checks:
        seconds -= check.seconds
        if chosen and seconds < 0.0:
            break
        chosen.append(check)
    return chosen


def module_name(path):
    """Return the name a file is imported by."""
    relative = path.resolve().relative_to(ROOT)
    parts = relative.with_suffix("").parts
    return ".".join(("fastpriv", *parts) if parts[0] == "kernels" else parts)


def main():
    """Run the mutants of some files: exit code 1 where one survives."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("files", nargs="*", type=Path, help="files to break")
    parser.add_argument("--tests", nargs="*", default=[], help="files of tests to run besides")
    parser.add_argument("--some", nargs="*", default=[], help="tests with --alike parameters each")
    parser.add_argument("--all", action="store_true", help="tests that do not run by default too")
    parser.add_argument("--cases", type=int, default=400, help="cases of the search")
    parser.add_argument("--like", nargs="*", default=[""], help="questions that begin so")
    parser.add_argument("--seconds", type=float, default=20.0, help="processor time of a mutant")
    parser.add_argument("--longest", type=float, default=5.0, help="longest check that is used")
    parser.add_argument("--alike", type=int, default=2, help="how many of those")
    parser.add_argument("--every", type=int, default=1, help="take only every so many mutants")
    parser.add_argument("--only", default="", help="only changes like this, a regular expression")
    parser.add_argument("--lines", type=int, nargs=2, default=(0, 10**6), help="only these lines")
    options = parser.parse_args()
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    import pytest

    if not options.tests:
        options.tests = [
            "tests/core/test_rounding.py",
            "tests/test_directions.py",
            "tests/kernels/test_directions.py",
        ]
    options.files = options.files or [
        ROOT / "fastpriv/_core/rounding.py",
        *sorted((ROOT / "kernels").glob("*.py")),
    ]
    plugin = Broken(options)
    quiet = ["-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore::RuntimeWarning"]
    chosen = ["-m", ""] if options.all else []
    code = pytest.main([*quiet, *chosen, *options.tests, *options.some], [plugin])
    return 1 if plugin.survivors or code not in (0, 5) else 0


if __name__ == "__main__":
    sys.exit(main())
