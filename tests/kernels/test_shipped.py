"""Kernels of a compiled wheel against numba's own code for the processor at hand.

Run where a compiled wheel is installed: ``pytest -m "" tests/kernels/test_shipped.py -s`` prints
how many numbers differ, kernel by kernel.
"""

import copy
import importlib
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from fastpriv import kernels
from fastpriv.kernels import loader
from tour import tour

needs_shipped = pytest.mark.skipif(not loader.SHIPPED, reason="needs a compiled wheel")
pytestmark = [needs_shipped, pytest.mark.slow]
#: Calls of each kernel that are compared, and the most numbers in the arguments of one.
CALLS, SIZE = 6, 3_000_000


#: Kernels that iterate towards an optimum, and factors of their Newton steps, whose errors grow
#: with the condition of the matrix. Whoever calls them proves what they reached, so only the path
#: may differ: by a billionth of the largest number in an array.
SEARCHES = {
    "capacities",
    "cone_factor",
    "mapping_direction",
    "mapping_factor",
    "pair_contractions",
    "sdpi_cells",
}
PATH = 1e-9
#: Roundings that callers add for logarithms and the like, beside one for each term of a sum.
FIXED = 128


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    """The arguments of some calls of every kernel, from a tour on random input."""
    found = {name: [] for name in loader.FILES}

    def recorder(name, kernel):
        def call(*arguments):
            size = sum(np.size(each) for each in arguments)
            if len(found[name]) < CALLS and size <= SIZE:
                found[name].append(copy.deepcopy(arguments))
            return kernel(*arguments)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in loader.FILES:
            patch.setattr(kernels, name, recorder(name, loader.load(name)), raising=False)
        tour(str(tmp_path_factory.mktemp("tour")), seed=1)
    return found


def numbers(kernel, arguments):
    """Call a kernel on copies; return all numbers that it returned or wrote."""
    given = copy.deepcopy(arguments)
    result = kernel(*given)
    parts = [*(result if isinstance(result, tuple) else (result,)), *given]
    arrays = [np.asarray(part).reshape(-1) for part in parts if part is not None]
    return [array for array in arrays if array.size]


def proved_error(name, arguments):
    """Return the error of a kernel relative to the largest number in an array.

    A sum of K terms, in any order and with or without fused products, is within K units of
    roundoff, and callers round by K + 128 of them (``_core/rounding.py``). Two codes may err to
    different sides.
    """
    if name in SEARCHES:
        return PATH
    terms = max((size for each in arguments for size in np.shape(each)), default=1)
    return 2 * (terms + FIXED) * 2.0**-53


@pytest.mark.parametrize("module", ["compiled_v3", "compiled_v2", "compiled_baseline"])
def test_shipped_and_native_code_agree_within_the_proved_error(module, calls, capsys):
    try:
        shipped = importlib.import_module(f"fastpriv.kernels.{module}")
    except ImportError:
        pytest.skip(f"{module} is not there, or not for this processor")
    assert [name for name, found in calls.items() if not found] == []
    lines, differing, compared = [], 0, 0
    for name, found in calls.items():
        count = other = 0
        worst = 0.0
        for arguments in found:
            native = numbers(loader.declared(name), arguments)
            ours = numbers(getattr(shipped, name), arguments)
            for one, two in zip(native, ours, strict=True):
                same = (one == two) | ((one != one) & (two != two))
                count, other = count + one.size, other + np.count_nonzero(~same)
                if not same.all():
                    finite = np.abs(one[np.isfinite(one)])
                    gap = np.abs(one[~same] - two[~same]).max() / finite.max()
                    worst = max(worst, gap)
                    assert gap <= proved_error(name, arguments), (name, gap)
        compared, differing = compared + count, differing + other
        if other:
            lines.append(f"  {name}: {other} of {count} numbers, by at most {worst:.1e}")
    with capsys.disabled():
        print(
            f"\n{module}: {differing} of {compared} numbers differ from native code",
            *lines,
            sep="\n",
        )


def run(code, **environment):
    """Run code outside of the checkout, without a home; return what it printed."""
    lonely = {**os.environ, "HOME": "/nonexistent", "NUMBA_CACHE_DIR": "", **environment}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=os.path.sep, env=lonely)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_shipped_kernels_answer_without_numba_and_write_nothing():
    code = """
import sys
sys.modules["numba"] = sys.modules["llvmlite"] = None
import fastpriv as fp
fp.audit([[0.9, 0.1], [0.2, 0.8]], [0.5, 0.5])
print(fp.dp_level([[0.9, 0.1], [0.2, 0.8]]))
"""
    before = set(loader.HERE.rglob("*"))
    assert abs(float(run(code, PYTHONDONTWRITEBYTECODE="1")) - np.log(8.0)) < 1e-12
    assert set(loader.HERE.rglob("*")) == before


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can")
def test_another_user_without_a_home_gets_answers_and_nothing_is_written():
    # Python itself may lie where only root can read: what is imported is imported before.
    code = """
import os, sys, fastpriv as fp
fp.audit([[0.9, 0.1], [0.2, 0.8]], [0.5, 0.5])
os.setgid(65534)
os.setuid(65534)
fp.audit([[0.7, 0.3], [0.2, 0.8]], [0.5, 0.5])
print(fp.dp_level([[0.9, 0.1], [0.2, 0.8]]), "numba" in sys.modules)
"""
    before = set(loader.HERE.rglob("*"))
    level, numba = run(code, PYTHONDONTWRITEBYTECODE="1").split()
    assert abs(float(level) - np.log(8.0)) < 1e-12
    assert numba == "False"
    assert set(loader.HERE.rglob("*")) == before


def test_native_code_is_a_choice():
    code = "from fastpriv.kernels import loader; print(loader.SHIPPED is None)"
    assert run(code) == "False\n"
    assert run(code, FASTPRIV_NATIVE="1") == "True\n"
    assert run(code, FASTPRIV_NATIVE="0") == "False\n"


def cpu_seconds(*command):
    """Return the CPU seconds of a command, the best of three runs."""
    resource = pytest.importorskip("resource")  # not on Windows
    best = np.inf
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *command], check=True, capture_output=True, cwd=os.path.sep)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        best = min(best, used)
    return best


FIRST = {
    "audit": ["audit", "randomised-response:n=3,epsilon=1", "--prior", "iid:p=0.7,0.3,n=3"],
    "help": ["--help"],
}
ANSWERS = {
    "example": "fp.audit([[.8, .15, .05], [.1, .8, .1], [.05, .15, .8]], prior=[.7, .2, .1])",
    "epsilon": "fp.accounting.PrivacyProfile.gaussian(1.0, 0.01).self_compose(1000).epsilon(1e-5)",
    "spend": "fp.accounting.Ledger({'dp': 1.0}).spend(fp.HammingChannel(3, 2, 0.5))",
}


def test_a_first_level_takes_little_longer_than_importing_numpy():
    numpy = cpu_seconds("-c", "import numpy")
    level = "import fastpriv as fp; fp.dp_level([[0.9, 0.1], [0.2, 0.8]])"
    assert cpu_seconds("-c", level) <= 3.0 * numpy + 0.2


@pytest.mark.parametrize("command", FIRST.values(), ids=FIRST)
def test_a_first_command_takes_less_than_a_second(command):
    assert cpu_seconds("-m", "fastpriv", *command) <= 0.8


@pytest.mark.parametrize("code", ANSWERS.values(), ids=ANSWERS)
def test_a_first_answer_takes_less_than_a_second(code):
    assert cpu_seconds("-c", f"import fastpriv as fp; {code}") <= 0.8


def test_other_types_are_compiled_with_a_warning():
    from fastpriv.kernels.dispatchers import UndeclaredTypes

    with pytest.warns(UndeclaredTypes, match="kernel any_below is not declared for"):
        assert kernels.any_below(np.array([-2.0], dtype=np.float32), np.ones(1), 1.0)


def test_errors_are_those_of_native_code():
    with pytest.raises(ZeroDivisionError):
        loader.declared("axis_closure")(np.ones(4), 1.0, 0, 2)
    with pytest.raises(ZeroDivisionError):
        kernels.axis_closure(np.ones(4), 1.0, 0, 2)


def test_a_shipped_kernel_is_pickled_by_its_name():
    assert pickle.loads(pickle.dumps(kernels.entropy)) is kernels.entropy
