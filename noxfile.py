"""Tests on every Python that is installed, lint, types, the site and the wheel.

``nox`` runs the tests on the Pythons that it finds and skips the others; ``nox -l`` lists the rest.
"""

from pathlib import Path

import nox

nox.options.sessions = ["tests", "lint", "types", "layers"]
nox.options.error_on_missing_interpreters = False
PYTHONS = ["3.10", "3.11", "3.12", "3.13"]


@nox.session(python=PYTHONS)
def tests(session):
    """Run the default suite; arguments go to pytest: ``nox -s tests-3.12 -- tests/measures``."""
    session.install("-e", ".[test]")
    session.run("python", "-m", "pytest", "-q", *session.posargs)


@nox.session
def everything(session):
    """Run all tests, slow ones, whole grids, searches and pages included."""
    session.install("-e", ".[test,dev,docs]")
    session.run("python", "-m", "sphinx", "-W", "-q", "-b", "html", "docs", "docs/_build/html")
    options = ["-q", "-n", "auto", "--dist", "worksteal", "-m", ""]
    session.run("python", "-m", "pytest", *options, *session.posargs)


@nox.session
def lint(session):
    """Check style, formatting, white space and spelling."""
    session.install("-e", ".[dev]")
    session.run("pre-commit", "run", "--all-files")


@nox.session
def types(session):
    """Check types, and that the lowest Python has all names."""
    session.install("-e", ".[test]", "mypy")
    session.run("mypy")
    session.run("mypy", "--python-version", "3.10", "--no-warn-return-any")


@nox.session
def layers(session):
    """Check that imports go one way."""
    session.install("-e", ".", "import-linter")
    session.run("lint-imports")


@nox.session
def docs(session):
    """Build the site and run the tests that look at it."""
    session.install("-e", ".[docs,test]")
    session.run("python", "-m", "sphinx", "-W", "-b", "html", "docs", "docs/_build/html")
    session.run("python", "-m", "pytest", "-q", "tests/docs")


@nox.session
def coverage(session):
    """Measure which lines and branches the tests reach; numba kernels are not traced."""
    session.install("-e", ".[test]")
    session.run("python", "-m", "pytest", "-q", "--cov", "--cov-report=term", *session.posargs)


@nox.session
def mutants(session):
    """Break the lines that round, one at a time; arguments go to tools/mutants.py."""
    session.install("-e", ".[test]")
    session.run("python", "tools/mutants.py", *session.posargs)


@nox.session
def benchmarks(session):
    """Time everything, beside the last run that was kept; arguments go to pytest."""
    session.install("-e", ".[bench,peers]")
    options = ["--benchmark-only", "--benchmark-autosave", "--benchmark-compare"]
    session.run("python", "-m", "pytest", "benchmarks", *options, *session.posargs)


@nox.session
def pythons(session):
    """Use the built wheel on every Python, with the lowest dependencies and the newest numba."""
    session.install("build")
    wheels = session.create_tmp()
    session.run("python", "-m", "build", "--outdir", wheels, ".")
    (wheel,) = Path(wheels).glob("*.whl")
    session.run("python", "tools/pythons.py", str(wheel), *session.posargs)
