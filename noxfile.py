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
    """Run the default tests, none of them above a second, and then all tests."""
    session.install("-e", ".[test,dev,docs]")
    session.run("python", "-m", "sphinx", "-W", "-q", "-b", "html", "docs", "docs/_build/html")
    spread = ["-n", "auto", "--dist", "worksteal", *session.posargs]
    session.run("python", "-m", "pytest", "-q", "--cpu-limit", "1", *spread)
    session.run("python", "-m", "pytest", "-q", "-m", "", *spread)


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
    session.run("python", "-m", "pytest", "-q", "-m", "", "tests/docs")


@nox.session
def coverage(session):
    """Compare the lines and branches that the default tests and all tests reach.

    Numba kernels are not traced. Fails if the default tests reach two points less.
    """
    session.install("-e", ".[test]")
    reached = []
    for chosen in ([], ["-m", ""]):
        options = [*chosen, "-n", "auto", "--dist", "worksteal", "--cov", "--cov-report="]
        session.run("python", "-m", "pytest", "-q", *options, *session.posargs)
        total = session.run("coverage", "report", "--format=total", "--precision=2", silent=True)
        reached.append(float(total))
    session.log("default tests: %.2f %%, all tests: %.2f %%", *reached)
    if reached[0] < reached[1] - 2.0:
        session.error("the default tests reach two points less than all tests")


@nox.session
def mutants(session):
    """Break the lines that round, one at a time; arguments go to tools/mutants.py.

    Tests that are left out by default are left out here, unless the arguments have ``--all``.
    """
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
