"""Which tests run by default, profiles of Hypothesis, and tables that are made when a test asks.

The default suite leaves out what is marked ``grid``, ``search``, ``docs``, ``outer`` or ``slow``
(see ``markers`` in pyproject.toml); ``pytest -m ""`` runs everything. A marker of a parametrised
test may keep some of its cases in the default suite:

- ``slow(but=["a", "b"])``: the cases with these ids,
- ``slow(only=["a", "b"])``: the cases with other ids,
- ``search(every=10)``: every tenth case; or, of a test without cases, a tenth of its examples,
- ``grid``: the first case of each kind, where the kind is the id without its numbers.
"""

import functools
import gc
import importlib
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Which examples are tried never depends on how fast the machine is, nor on chance: a newcomer sees
# what CI sees. HYPOTHESIS_PROFILE=dev or =thorough tries others.
settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.register_profile(
    "thorough",
    deadline=None,
    max_examples=1000,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


#: Markers that may keep some cases of a test in the default suite.
PARTLY = ("grid", "search", "slow")
TESTS = Path(__file__).parent
#: The marker of all tests in a folder or a file.
PLACES = {
    TESTS / "accounting/ledger/test_processes.py": "slow",
    TESTS / "adapters": "outer",
    TESTS / "benchmarks": "outer",
    TESTS / "docs": "docs",
    TESTS / "packaging": "outer",
    TESTS / "plot": "outer",
    TESTS / "releasing/test_dask.py": "slow",
    TESTS / "tools": "outer",
}


@functools.cache
def place_marker(path):
    """Return the marker of the file or folder that a test stands in, if it has one."""
    return next((PLACES[place] for place in (path, *path.parents) if place in PLACES), None)


def pytest_ignore_collect(collection_path, config):
    """Import no file whose marker is left out, unless the command names such a place."""
    marker = place_marker(collection_path)
    if marker and f"not {marker}" in config.option.markexpr:
        named = [Path(argument.split("::")[0]).resolve() for argument in config.args]
        return None if any(map(place_marker, named)) else True
    return None


def pytest_addoption(parser):
    parser.addoption(
        "--cpu-limit", type=float, help="fail tests that take more seconds of processor time"
    )


def pytest_configure(config):
    """Compile the kernels once, before every worker of pytest-xdist compiles them by itself."""
    workers = getattr(config.option, "numprocesses", None)  # of the process that starts them
    if workers and not config.option.collectonly and not compiled():
        command = [sys.executable, "-m", "fastpriv", "warm-up", "--jobs", str(workers)]
        subprocess.run(command, check=True)


def pytest_sessionstart(session):
    """Load what tests share, so that ``--cpu-limit`` charges it to none of them."""
    if session.config.option.cpu_limit is not None:
        import fastpriv

        fastpriv.warm_up()
        for name in ("matplotlib.pyplot", "pandas", "scipy.optimize", "scipy.stats"):
            importlib.import_module(name)


def compiled():
    """Whether nothing is to be compiled: the cache is complete and newer than the kernels."""
    from fastpriv.kernels import KERNELS, cache, loader

    if loader.SHIPPED or cache.config.DISABLE_JIT:
        return True
    newest = max(path.stat().st_mtime for path in cache.HERE.glob("*.py"))
    files = [path for folder in cache.folders() for path in folder.glob("*.nbc")]
    fresh = {path.name for path in files if path.stat().st_mtime >= newest}
    return len(fresh) >= sum(len(kernel.declared) for kernel in KERNELS.values())


def processor_time():
    """Return the seconds that this process and those it has waited for have computed."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Hold a test to ``--cpu-limit``."""
    start, limit = processor_time(), item.config.option.cpu_limit
    result = yield
    spent = processor_time() - start
    if limit is not None and spent > limit:
        pytest.fail(f"{spent:.1f} s of processor time; mark the test slow, or make it smaller")
    return result


def kept_cases(marker, cases):
    """Return those cases of a test that stay in the default suite in spite of a marker."""
    if "every" in marker.kwargs:
        return cases[:: marker.kwargs["every"]]
    if "but" in marker.kwargs:
        return [case for case in cases if case.callspec.id in marker.kwargs["but"]]
    if "only" in marker.kwargs:
        return [case for case in cases if case.callspec.id not in marker.kwargs["only"]]
    if marker.name != "grid":
        return []
    kinds = {re.sub(r"[^a-zA-Z]+", "-", case.callspec.id): case for case in reversed(cases)}
    return list(kinds.values())


def draw_fewer_examples(test, every):
    """Let Hypothesis draw one example of so many."""
    chosen = test._hypothesis_internal_use_settings
    fewer = settings(chosen, max_examples=-(-chosen.max_examples // every))
    test._hypothesis_internal_use_settings = fewer


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Mark files and folders, and take the marker from the cases that stay in the default suite."""
    functions = defaultdict(list)
    for item in items:
        if marker := place_marker(item.path):
            item.add_marker(marker)
        if isinstance(item, pytest.Function):
            functions[item.path, item.originalname].append(item)
    for cases in functions.values():
        test = cases[0].obj
        for marker in [m for m in getattr(test, "pytestmark", ()) if m.name in PARTLY]:
            for case in kept_cases(marker, cases):
                case.own_markers.remove(marker)
            fewer = "not search" in config.option.markexpr and len(cases) == 1
            if hasattr(test, "hypothesis") and fewer:
                draw_fewer_examples(test, marker.kwargs.get("every", 1))


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect without solving: what runs at collection would run again in every worker.

    Collection keeps nearly all objects that it makes, so there is no garbage to look for, neither
    while it runs nor among its objects later.
    """

    def refuse(solver):
        raise RuntimeError("a linear program was solved at collection: solve it in the test")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("highspy.Highs.run", refuse)
        gc.disable()
        try:
            return (yield)
        finally:
            gc.freeze()
            gc.enable()


@pytest.fixture
def matrix(request):
    """The table of a channel, from the function that ``cases`` gives for it (see ``once``)."""
    return request.param()


@pytest.fixture
def channel(request):
    """A channel, or what the function that makes it returns: no solver runs at collection."""
    return request.param() if callable(request.param) else request.param
