"""Kernels where numba compiles nothing, and where its private parts are not the ones we use."""

import os
import subprocess
import sys

import numpy as np
import pytest

import fastpriv as fp
from fastpriv.auditing.sentences import percent

MATRIX, PRIOR = [[0.9, 0.1], [0.2, 0.8]], [0.5, 0.5]
#: Prints the kind of a kernel and a few levels.
LEVELS = f"""
import fastpriv as fp, fastpriv.kernels as k
print(type(k.loader.declared("entropy")).__name__)
W, p = {MATRIX}, {PRIOR}
print([float(fp.dp_level(W)), float(fp.pml_level(W, p)), float(fp.mutual_information(W, p))])
"""
MISSING = """
import sys, types, numba.core.ccallback, numba.core.dispatcher as whole
part = types.ModuleType(whole.__name__)
vars(part).update({name: it for name, it in vars(whole).items() if name != "_FunctionCompiler"})
sys.modules[whole.__name__] = part
"""
NEWER = "import numba\nnumba.version_info = numba.version_info._replace(short=(99, 0))\n"
NEWER_AND_OTHER = NEWER + "import numba.core.compiler as c\ndel c.CompileResult._reduce\n"


def run(code, **environment):
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def levels():
    found = fp.dp_level(MATRIX), fp.pml_level(MATRIX, PRIOR), fp.mutual_information(MATRIX, PRIOR)
    return list(map(float, found))


@pytest.mark.slow
@pytest.mark.parametrize("change", [MISSING, NEWER_AND_OTHER], ids=["missing", "other"])
def test_a_numba_that_does_not_fit_compiles_plainly(change, tmp_path):
    kind, answer = run(change + LEVELS, NUMBA_CACHE_DIR=str(tmp_path))
    assert kind == "CPUDispatcher"
    assert eval(answer) == levels()


@pytest.mark.slow
def test_a_newer_numba_that_fits_is_used_in_full():
    kind, answer = run(NEWER + LEVELS)
    assert kind == "Kernel"
    assert eval(answer) == levels()


@pytest.mark.slow
def test_an_audit_and_a_search_without_the_compiler():
    code = f"""
import fastpriv as fp
audit = fp.audit({MATRIX}, {PRIOR})
print("np." in repr(audit) + audit.to_json(), audit["dp"])
import numpy as np, fastpriv.kernels as k
print(type(k.entropy(np.array({PRIOR}))).__name__)
print(fp.individual_capacity(fp.Channel([[.7, .3], [.4, .6], [.5, .5], [.2, .8]], [2, 2])).upper)
"""
    numpy_text, kind, capacity = run(code, NUMBA_DISABLE_JIT="1")
    expected = fp.audit(MATRIX, PRIOR)["dp"]
    assert numpy_text == f"False {expected}"
    assert kind == "float"
    matrix = fp.Channel([[0.7, 0.3], [0.4, 0.6], [0.5, 0.5], [0.2, 0.8]], [2, 2])
    assert abs(float(capacity) - fp.individual_capacity(matrix).upper) < 1e-9


@pytest.mark.parametrize("number", [0.25, np.float64(0.25), np.float32(0.25)])
def test_percentages_of_numbers_of_any_kind(number):
    assert percent(number) == "25 %"
