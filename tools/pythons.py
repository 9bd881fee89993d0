"""Use one built wheel on every Python it declares, each time in a fresh environment.

    python tools/pythons.py dist/fastpriv-0.1.0-py3-none-any.whl
    python tools/pythons.py dist/fastpriv-0.1.0-py3-none-any.whl --no-suite --only 3.12

Pythons are looked for on the path and in pyenv; one that is missing is left out with a message. The
lowest one is also tried with the lowest versions of the dependencies, the highest with the newest
numba, release candidates included. On these two Pythons the default suite runs against the wheel.
Prints a table, and what failed; exit code 1 if anything did.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

IMPORTS = """
import importlib, pkgutil, fastpriv
modules = [info.name for info in pkgutil.walk_packages(fastpriv.__path__, "fastpriv.")]
for name in modules:
    if not name.startswith("fastpriv.adapters.") and name != "fastpriv.__main__":
        importlib.import_module(name)
assert len(modules) > 100 and "fastpriv.kernels.lines" in modules, len(modules)
"""
RELEASE = """
import fastpriv as fp
people = [{"smokes": "no"}, {"smokes": "yes"}] * 500
released = fp.release(people, domain={"smokes": ["no", "yes"]}, epsilon=2.0)
assert released.report.levels["dp"] <= 2.0 and released.report.secure
assert abs(fp.estimate_frequencies(released)["smokes"].estimates - 500).max() < 200
"""
DP_SGD = """
import fastpriv as fp
step = fp.accounting.PrivacyProfile.gaussian(noise_multiplier=1.0, sampling_probability=0.01)
assert round(step.self_compose(1000).epsilon(1e-5).upper, 6) == 1.828237
"""
LEDGER = """
import fastpriv as fp
with fp.accounting.Ledger.open("study.ledger", {"dp": 1.0}) as ledger:
    ledger.spend(fp.HammingChannel(3, 2, 0.5))
    assert ledger.spent["dp"] <= 0.5
    try:
        ledger.spend({"dp": 0.75})
    except fp.BudgetExceeded:
        pass
    else:
        raise AssertionError("a spend above the budget was accepted")
"""
COMMANDS = [
    ["audit", "randomised-response:n=3,epsilon=1", "--prior", "iid:p=0.7,0.3,n=3"],
    ["release", "{data}/titanic.csv", "--domain", "{data}/titanic.json", "--epsilon", "2",
     "--out", "released.csv", "--report", "report.json"],
    ["estimate", "released.csv", "--domain", "{data}/titanic.json", "--report", "report.json"],
]  # fmt: skip
CHECKS = ["install", "imports", "readme", "release", "dp-sgd", "ledger", "commands", "suite"]


def declared(wheel):
    """Return the Pythons that a wheel declares and its dependencies, from its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        text = archive.read(name).decode()
    pythons = re.findall(r"^Classifier: Programming Language :: Python :: (3\.\d+)$", text, re.M)
    return pythons, re.findall(r"^Requires-Dist: ([^;\n]+)$", text, re.M)


def interpreter(version):
    """Return a Python of a version, None if there is none."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    installed = sorted(pyenv.glob(f"{version}.*/bin/python"), reverse=True)
    on_path = shutil.which(f"python{version}")
    for python in [sys.executable, *([on_path] if on_path else []), *installed]:
        code = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
        tried = subprocess.run([python, "-c", code], capture_output=True, text=True)
        if tried.stdout.strip() == version:
            return str(python)
    return None


class Row:
    """One environment: a Python, and what is installed beside the wheel."""

    def __init__(self, title, python, extras, pins=(), suite=False):
        self.title, self.python, self.extras = title, python, extras
        self.pins, self.suite = list(pins), suite
        self.results = dict.fromkeys(CHECKS, "")
        self.errors = []

    def prepare(self, wheel, folder):
        """Make the environment and do everything but the suite."""
        self.folder = folder / re.sub(r"\W+", "-", self.title)
        self.folder.mkdir()
        self.bin = self.folder / "env" / ("Scripts" if os.name == "nt" else "bin")
        package = f"{wheel}[{','.join(self.extras)}]"
        venv = [self.python, "-m", "venv", "env"]
        pip = [self.bin / "python", "-m", "pip", "install", "--quiet"]
        if self.check("install", venv, [*pip, package, *self.pins]):
            self.check("imports", self.code(IMPORTS))
            (self.folder / "readme.txt").write_text(readme(), encoding="utf-8")
            self.check("readme", [self.bin / "python", "-m", "doctest", "readme.txt"])
            self.check("release", self.code(RELEASE))
            self.check("dp-sgd", self.code(DP_SGD))
            self.check("ledger", self.code(LEDGER))
            data = ROOT / "tests" / "data"
            program = self.bin / "fastpriv"
            runs = [[program, *(word.format(data=data) for word in words)] for words in COMMANDS]
            self.check("commands", *runs)
        return self

    def run_suite(self):
        """Run the default suite against the wheel: the checkout is not on the path of `pytest`."""
        if self.suite and self.results["install"].startswith("ok"):
            options = ["-q", "-n", "auto", "--dist", "worksteal", "-p", "no:cacheprovider"]
            self.check("suite", [self.bin / "pytest", *options], where=ROOT)

    def code(self, text):
        """Return the command that runs some code."""
        return [self.bin / "python", "-c", text]

    def check(self, name, *commands, where=None):
        """Run commands in the folder; note whether all went well and the seconds they took."""
        start = time.perf_counter()
        clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
        for command in commands:
            words = list(map(str, command))
            done = subprocess.run(
                words, cwd=where or self.folder, env=clean, capture_output=True, text=True
            )
            if done.returncode:
                end = (done.stdout + done.stderr)[-3000:]
                self.errors.append(f"{self.title}, {name}: {' '.join(words)[:200]}\n{end}")
                break
        seconds = time.perf_counter() - start
        self.results[name] = f"{'FAILED' if done.returncode else 'ok'} {seconds:.0f} s"
        print(f"{self.title}: {name} {self.results[name]}", flush=True)
        return not done.returncode


def readme():
    """Return the Python blocks of the README."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return "\n".join(re.findall(r"```python\n(.*?)```", text, re.S))


def rows(wheel, only, suite):
    """Return the environments to try."""
    versions, dependencies = declared(wheel)
    pythons = {
        version: interpreter(version) for version in versions if version in (only or [version])
    }
    for version in [version for version, python in pythons.items() if python is None]:
        print(f"Python {version} is not installed: left out", flush=True)
        del pythons[version]
    if not pythons:
        sys.exit("none of the declared Pythons is installed")
    lowest, *_, highest = [*pythons, *pythons]
    few, many = ["dp-accounting", "plot"], ["test"]
    ends = {lowest, highest} if suite else set()
    found = [
        Row(version, python, many if version in ends else few, suite=version in ends)
        for version, python in pythons.items()
    ]
    least = [re.sub(r"\s*>=\s*", "==", each.strip()) for each in dependencies]
    found.append(Row(f"{lowest} lowest versions", pythons[lowest], few, least))
    newest = ["--pre", "--upgrade-strategy", "only-if-needed", "--upgrade", "numba"]
    found.append(Row(f"{highest} newest numba", pythons[highest], few, newest))
    return found


def table(found):
    """Return the table of Pythons and checks."""
    lines = [["Python", *CHECKS], *([row.title, *row.results.values()] for row in found)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def main():
    """Try the wheel everywhere."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--only", nargs="+", metavar="3.X", help="these Pythons")
    parser.add_argument("--no-suite", action="store_true", help="leave the default suite out")
    given = parser.parse_args()
    wheel = given.wheel.resolve()
    found = rows(wheel, given.only, not given.no_suite)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        for row in pool.map(lambda row: row.prepare(wheel, Path(folder)), found):
            row.run_suite()
    errors = [error for row in found for error in row.errors]
    print(*errors, table(found), sep="\n\n")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
