"""Compiled kernels on disk, each case in fresh interpreters."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import fastpriv
from fastpriv.kernels import KERNELS, cache

#: Calls one small kernel; prints its answer, how often it was compiled and how often loaded.
CALL = """
import numpy as np
from fastpriv import kernels
kernel = kernels.markov_best_path
answer = kernel(np.zeros(2), np.full((2, 2), -1.0), 3)
print(answer, sum(kernel.stats.cache_misses.values()), sum(kernel.stats.cache_hits.values()))
"""
COMPILED, LOADED = ["-2.0", "1", "0"], ["-2.0", "0", "1"]
ROOT_USER = hasattr(os, "getuid") and os.getuid() == 0
needs_root = pytest.mark.skipif(not ROOT_USER, reason="only root can become another user")


def start(code, where, **environment):
    gone = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "FASTPRIV_QUIET")
    clean = {k: v for k, v in os.environ.items() if k not in gone}
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**clean, "PYTHONPATH": str(where), **environment},
        cwd=os.path.sep,
    )


def run(code, where, **environment):
    """Run code with the package in a folder; return the words and the errors it printed."""
    process = start(code, where, **environment)
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return out.split(), errors


@pytest.fixture
def site():
    """A copy of the package in a folder that everybody can read, without compiled kernels."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    ignore = shutil.ignore_patterns("__pycache__", "compiled_*")
    package = folder / "site" / "fastpriv"
    shutil.copytree(Path(fastpriv.__file__).parent, package, ignore=ignore)
    shutil.copytree(cache.HERE, package / "kernels", ignore=ignore, dirs_exist_ok=True)
    yield folder / "site"
    shutil.rmtree(folder)


def compiled(folder):
    return sorted(folder.rglob("markov_best_path-*"))


def as_nobody(code):
    """Load all modules, which nobody may be allowed to read, and become nobody."""
    load = "import os, numba, fastpriv.kernels\nnumba.njit(lambda: None)()\n"
    return load + "os.setgid(65534)\nos.setuid(65534)\n" + code


@pytest.mark.slow
def test_a_kernel_is_compiled_once(site):
    assert run(CALL, site)[0] == COMPILED
    assert len(compiled(site / "fastpriv" / "kernels" / "__pycache__")) == 1
    assert run(CALL, site)[0] == LOADED


@pytest.mark.slow
def test_a_chosen_folder_is_used_and_can_be_moved_with_the_package(site, tmp_path):
    assert run(CALL, site, NUMBA_CACHE_DIR=str(tmp_path / "cache"))[0] == COMPILED
    assert not compiled(site)
    shutil.copytree(tmp_path / "cache", tmp_path / "shipped")
    moved = shutil.copytree(site, tmp_path / "elsewhere")  # copies have new dates
    assert run(CALL, moved, NUMBA_CACHE_DIR=str(tmp_path / "shipped"))[0] == LOADED


@pytest.mark.slow
def test_a_changed_helper_in_another_file_is_noticed(site):
    assert run(CALL, site)[0] == COMPILED
    arrays = site / "fastpriv" / "kernels" / "arrays.py"
    dates = arrays.stat().st_atime, arrays.stat().st_mtime
    arrays.write_text(arrays.read_text().replace("    result = v[0]\n", "    result = 7.0\n"))
    os.utime(arrays, dates)
    assert run(CALL, site)[0] == ["7.0", "1", "0"]


@pytest.mark.slow
@needs_root
def test_a_cache_that_can_only_be_read_is_read(site):
    # As in an image that is built by root and run by somebody else, without a home.
    assert run(CALL, site)[0] == COMPILED
    assert run(as_nobody(CALL), site, HOME="/nonexistent")[0] == LOADED


@pytest.mark.slow
@needs_root
def test_where_nothing_can_be_written_kernels_are_compiled_in_memory(site):
    log = "import logging\nlogging.basicConfig(level=logging.DEBUG)\n"
    out, errors = run(log + as_nobody(CALL), site, HOME="/nonexistent")
    assert out == COMPILED
    assert re.search(r"compiling up to \d+ kernels, for this process only \(no cache", errors)


@pytest.mark.slow
def test_a_file_in_the_place_of_every_folder_costs_only_compilation(site, tmp_path):
    # A file where a folder is wanted stops everybody, root included.
    blocked = tmp_path / "blocked"
    blocked.write_text("in the way")
    (site / "fastpriv" / "kernels" / "__pycache__").write_text("in the way")
    environment = {"HOME": str(blocked), "PYTHONDONTWRITEBYTECODE": "1"}
    assert run(CALL, site, **environment)[0] == COMPILED
    assert run(CALL, site, NUMBA_CACHE_DIR=str(blocked), **environment)[0] == COMPILED


@pytest.mark.slow
def test_the_user_folder_is_used_where_the_package_cannot_be_written(site, tmp_path):
    (site / "fastpriv" / "kernels" / "__pycache__").write_text("in the way")
    environment = {"HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    assert run(CALL, site, **environment)[0] == COMPILED
    assert len(compiled(tmp_path / ".cache")) == 1
    assert run(CALL, site, **environment)[0] == LOADED


@pytest.mark.slow
def test_a_folder_that_goes_away_costs_only_compilation(site, tmp_path):
    gone = """
import os, shutil, fastpriv.kernels
os.makedirs(os.environ["NUMBA_CACHE_DIR"])
shutil.rmtree(os.environ["NUMBA_CACHE_DIR"])
open(os.environ["NUMBA_CACHE_DIR"], "w").close()
"""
    assert run(gone + CALL, site, NUMBA_CACHE_DIR=str(tmp_path / "cache"))[0] == COMPILED


@pytest.mark.slow
def test_processes_may_compile_at_the_same_time(site):
    processes = [start(CALL, site) for _ in range(3)]
    for process in processes:
        out, errors = process.communicate(timeout=300)
        assert out.split()[0] == "-2.0", errors
    assert len(compiled(site)) == 1  # and no part of a file
    assert run(CALL, site)[0] == LOADED


@pytest.mark.slow
def test_warm_up_in_processes(site):
    # Two processes compile, here two small kernels, and the one that started them loads them.
    code = """
import fastpriv.kernels as k
from fastpriv._core.warm_up import compile_all
for name in set(k.KERNELS) - {"any_below", "axis_closure"}:
    del k.KERNELS[name]
print(compile_all(False, jobs=2), compile_all(False, jobs=1))
print([kernel.stats.cache_misses for kernel in k.KERNELS.values()])
"""
    out, errors = run(code, site)
    assert " ".join(out) == "(2, 0) (0, 2) [Counter(), Counter()]"
    assert errors == "fastpriv: compiling 2 kernels, once per machine\n"


@pytest.mark.slow
def test_warm_up_fills_a_chosen_folder(tmp_path):
    # Kernels that lie beside the package are put there, too: the folder serves other machines.
    fastpriv.warm_up()
    done = subprocess.run(
        [sys.executable, "-m", "fastpriv", "warm-up", "--json"],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["compiled"] == 0
    forms = sum(len(kernel.declared) for kernel in KERNELS.values())
    assert len(list(tmp_path.rglob("*.nbc"))) == forms


@pytest.mark.slow
@pytest.mark.parametrize("keep", [0, 1000])
def test_a_damaged_file_is_replaced(site, keep):
    assert run(CALL, site)[0] == COMPILED
    (path,) = compiled(site)
    path.write_bytes(path.read_bytes()[:keep])
    assert run(CALL, site)[0] == COMPILED
    assert run(CALL, site)[0] == LOADED


#: The line on stderr, where no kernel is compiled yet.
LINE = f"compiling up to {sum(len(each.declared) for each in KERNELS.values())} kernels, "
LINE += "once per machine"


@pytest.mark.slow
def test_compiling_is_logged_and_numba_keeps_quiet(site):
    log = "import logging\nlogging.basicConfig(level=logging.DEBUG)\n"
    hook = "import fastpriv\nfastpriv.observe(lambda event, fields: print(event, *fields))\n"
    again = "kernels.any_below(np.zeros(1), np.ones(1), 1.0)\n"
    out, errors = run(log + hook + CALL + again, site)
    first, line, *each = errors.splitlines()
    assert (first, line) == (f"INFO:fastpriv:{LINE}", f"fastpriv: {LINE}")
    names = [
        re.fullmatch(r"INFO:fastpriv:compilation kernel=(\w+) seconds=\d+\.\d+", e)[1] for e in each
    ]
    assert "markov_best_path" in names
    assert out[:3] == ["compilation", "kernel", "seconds"]
    assert out.count("compilation") == len(names)
    asked = "import logging\nlogging.getLogger('numba').setLevel(logging.INFO)\n"
    code = asked + "from fastpriv.kernels import entropy\nprint(logging.getLogger('numba').level)"
    assert run(code, site)[0] == ["20"]


@pytest.mark.slow
def test_a_line_shows_that_kernels_are_compiled_unless_it_is_unwanted(site, tmp_path):
    elsewhere = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert run(CALL, site, FASTPRIV_QUIET="1", **elsewhere) == (COMPILED, "")
    assert run(CALL, site)[1] == f"fastpriv: {LINE}\n"
    assert run(CALL, site) == (LOADED, "")


@pytest.mark.slow
def test_a_chosen_folder_becomes_complete_where_kernels_are_compiled_already(site, tmp_path):
    assert run(CALL, site)[0] == COMPILED
    assert run(CALL, site, NUMBA_CACHE_DIR=str(tmp_path))[0] == LOADED
    (path,) = compiled(tmp_path)
    assert path.read_bytes() == compiled(site)[0].read_bytes()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs owners and modes of POSIX")
@pytest.mark.parametrize("writable", [0o777, 0o775, "owner"])
def test_a_folder_that_others_can_write_is_not_read(site, tmp_path, writable):
    chosen = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert run(CALL, site, **chosen)[0] == COMPILED
    (folder,) = (tmp_path / "cache").iterdir()
    assert folder.stat().st_mode & 0o777 == 0o755
    assert run(CALL, site, **chosen)[0] == LOADED
    if writable == "owner":
        if not ROOT_USER:
            pytest.skip("only root can give a folder away")
        os.chown(folder, 65534, 65534)
    else:
        folder.chmod(writable)
    out, errors = run(CALL, site, **chosen)
    assert out == COMPILED
    assert "for this process only" in errors


#: A module in the place of one of a compiled wheel.
FAKE = """
from .loader import STAMP as stamp
def markov_best_path(*arguments):
    return "shipped"
"""
SHOW = """
import sys, numpy as np
from fastpriv import kernels
print(kernels.markov_best_path(np.zeros(2), np.full((2, 2), -1.0), 3), "numba" in sys.modules)
"""


@pytest.mark.slow
def test_shipped_code_is_preferred_where_it_fits(site):
    folder = site / "fastpriv" / "kernels"
    (folder / "compiled_v3.py").write_text("raise ImportError('the processor is no x86-64-v3')")
    (folder / "compiled_v2.py").write_text(FAKE)
    assert run(SHOW, site)[0] == ["shipped", "False"]
    assert run(SHOW, site, FASTPRIV_NATIVE="1")[0] == ["-2.0", "True"]
    (folder / "compiled_v2.py").write_text("stamp = 'of other sources'")
    assert run(SHOW, site)[0] == ["-2.0", "True"]
    (folder / "compiled_v2.py").write_text("raise OSError('damaged')")
    assert run(SHOW, site)[0] == ["-2.0", "True"]
