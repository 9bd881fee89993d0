"""The package of a checkout without links: imported from inside, from outside, built, installed."""

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: What a checkout needs to be imported and built.
PARTS = ["fastpriv", "kernels", "pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"]


def git(*arguments):
    """Return the lines that git prints; skip where this is no clone or git is missing."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("needs a clone and git")
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def run(code, folder, *options, **environment):
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, *options, "-c", code]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env={**clean, **environment}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of the package's sources, as an archive without links holds them."""
    folder = tmp_path_factory.mktemp("a folder with spaces") / "fast priv"
    folder.mkdir()
    for part in PARTS:
        if (ROOT / part).is_dir():
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / part, folder / part, ignore=ignore, symlinks=True)
        else:
            shutil.copy(ROOT / part, folder)
    return folder


def modules(folder, prefix):
    """Return the modules in a folder, as paths within a wheel."""
    return {prefix / path.relative_to(folder) for path in folder.rglob("*.py")}


def test_no_file_of_the_repository_is_a_link():
    assert [line for line in git("ls-files", "--stage") if line.startswith("12")] == []


def test_a_checkout_finds_its_kernels_and_nothing_else_beside_it(checkout, tmp_path):
    code = "from importlib.util import find_spec\nprint(find_spec('fastpriv.kernels').origin)\n"
    expected = str(checkout / "kernels" / "__init__.py")
    assert run(code, checkout) == expected
    assert run(code, tmp_path, PYTHONPATH=str(checkout)) == expected
    others = "print(find_spec('fastpriv.setup'), find_spec('fastpriv.fastpriv'))"
    assert run(code + others, checkout).splitlines() == [expected, "None None"]


@pytest.mark.outer
def test_the_kernels_of_a_checkout_answer(checkout, tmp_path):
    code = "import fastpriv as fp\nprint(fp.dp_level([[0.5, 0.5], [0.25, 0.75]]) > 0.69)"
    assert run(code, tmp_path, PYTHONPATH=str(checkout)) == "True"


@pytest.mark.outer
def test_the_wheel_holds_the_modules_of_both_folders(checkout, tmp_path):
    pytest.importorskip("setuptools", minversion="77")
    code = "import setuptools.build_meta as m, sys; m.build_wheel(sys.argv[1])"
    command = [sys.executable, "-c", code, str(tmp_path)]
    subprocess.run(command, cwd=checkout, check=True, capture_output=True)
    names = set(map(Path, zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist()))
    package = Path("fastpriv")
    there = modules(ROOT / "fastpriv", package) | modules(ROOT / "kernels", package / "kernels")
    assert {name for name in names if name.suffix == ".py"} == there
    assert {package / "py.typed", package / "__init__.pyi"} <= names
    assert package / "kernels.pyi" not in names  # it serves a checkout


@pytest.mark.outer
def test_an_editable_installation_uses_the_checkout(checkout, tmp_path):
    pytest.importorskip("setuptools", minversion="77")
    site = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--target", site, "--editable", checkout], check=True)
    # Without the site-packages of this Python, in which another checkout may be installed.
    code = (
        f"import site, sys; site.addsitedir({str(site)!r})\n"
        f"sys.path.append({sysconfig.get_path('purelib')!r})\n"
        "import fastpriv.kernels as k\nprint(k.__file__)"
    )
    command = [sys.executable, "-S", "-c", code]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == str(checkout / "kernels" / "__init__.py")
