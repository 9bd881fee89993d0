"""The files that a hosting service reads, by the linters of such files."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def program(name):
    """Return a program of the extra ``dev``."""
    beside = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    return beside or pytest.skip(f"{name} is not installed")


@pytest.mark.outer
@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("github-workflows", WORKFLOWS),
        ("dependabot", [ROOT / ".github" / "dependabot.yml"]),
        ("readthedocs", [ROOT / ".readthedocs.yaml"]),
    ],
)
def test_the_files_fit_their_schemas(schema, files):
    assert files
    command = [program("check-jsonschema"), "--builtin-schema", f"vendor.{schema}", *files]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.outer
def test_the_workflows_are_safe():
    command = [program("zizmor"), "--offline", "--no-progress", "--min-severity", "medium", "."]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout


def test_the_suite_runs_on_three_systems_and_every_declared_python():
    text = (ROOT / ".github" / "workflows" / "tests.yml").read_text()
    declared = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', PROJECT)
    assert re.findall(r'"(3\.\d+)"', text.split("python: [")[1].split("]")[0]) == declared
    for system in ("ubuntu", "macos", "windows"):
        assert f"{system}-latest" in text


def test_the_lowest_python_is_one_for_all_tools():
    (lowest,) = re.findall(r'requires-python = ">=(3\.\d+)"', PROJECT)
    assert f'target-version = "py{lowest.replace(".", "")}"' in PROJECT
    assert f"Python :: {lowest}" in PROJECT
    assert f"mypy --python-version {lowest}" in (ROOT / ".ci" / "run").read_text()
