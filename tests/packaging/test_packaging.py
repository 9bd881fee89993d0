"""Importing, compiling and caching, each in a fresh interpreter."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import fastpriv
from fastpriv.errors import InvalidInput


def run(code, **environment):
    """Run code in a fresh interpreter, warnings as errors, and return what it printed."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
        cwd=os.path.sep,
    ).stdout


def test_import_is_light():
    heavy = ["numba", "scipy", "highspy", "matplotlib", "numpy", "cryptography"]
    out = run(f"import sys, fastpriv; print([m for m in {heavy} if m in sys.modules])")
    assert out.strip() == "[]"


def test_priors_and_spaces_need_no_numba():
    code = """
import sys, fastpriv as fp
fp.Dense([0.5, 0.5]), fp.Space([2, 3]).rows(3), fp.Uniform(2, 2).entropy(), fp.h(1.0, 2, 2)
print([m for m in ("numba", "scipy.optimize", "highspy") if m in sys.modules])
"""
    assert run(code).strip() == "[]"


def test_every_public_name_exists_and_is_listed():
    for name in fastpriv.__all__:
        assert getattr(fastpriv, name) is not None
    assert set(fastpriv.__all__) <= set(dir(fastpriv))


def test_warm_up_leaves_nothing_to_compile(tmp_path):
    """After warm_up, a new process that tours the facade compiles nothing."""
    run("import fastpriv; fastpriv.warm_up()")
    code = f"""
import sys
sys.path.append({str(Path(__file__).parents[1])!r})
import fastpriv.kernels as k
from tour import tour
tour({str(tmp_path)!r})
for name, kernel in k.KERNELS.items():
    assert not kernel.stats.cache_misses, (name, kernel.stats.cache_misses)
assert sum(bool(kernel.stats.cache_hits) for kernel in k.KERNELS.values()) > 100
print("nothing new")
"""
    assert run(code).strip() == "nothing new"


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "many"])
def test_warm_up_refuses_a_wrong_number_of_processes(wrong):
    with pytest.raises(InvalidInput, match="jobs must be"):
        fastpriv.warm_up(jobs=wrong)


def test_the_compiled_wheel_asks_for_setuptools_before_it_compiles(tmp_path, monkeypatch, capsys):
    path = Path(__file__).parents[2] / "tools" / "compiled_wheel.py"
    tool = runpy.run_path(str(path))
    monkeypatch.setitem(tool["main"].__globals__, "version", lambda name: "65.5.0")
    monkeypatch.setattr(sys, "argv", [path.name, "--out", str(tmp_path)])
    with pytest.raises(SystemExit):
        tool["main"]()
    assert "setuptools must be 77 or newer; got 65.5.0" in capsys.readouterr().err


def test_the_citation_names_this_version():
    citation = (Path(__file__).parents[2] / "CITATION.cff").read_text()
    assert f"\nversion: {fastpriv.__version__}\n" in citation
