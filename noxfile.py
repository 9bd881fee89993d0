"""Tests on every Python that is installed, lint, types, the site and the lowest dependencies.

``nox`` runs the tests on the Pythons that it finds and skips the others; ``nox -l`` lists the rest.
"""

import nox

nox.options.sessions = ["tests", "lint", "types", "layers"]
nox.options.error_on_missing_interpreters = False
PYTHONS = ["3.10", "3.11", "3.12", "3.13"]
PROJECT = nox.project.load_toml("pyproject.toml")["project"]


@nox.session(python=PYTHONS)
def tests(session):
    """Run the tests; arguments go to pytest: ``nox -s tests-3.12 -- tests/measures -n 2``."""
    session.install("-e", ".[test]")
    session.run("python", "-m", "pytest", "-q", *session.posargs)


@nox.session
def lint(session):
    """Check style and formatting."""
    session.install("ruff")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session):
    """Check types."""
    session.install("-e", ".[test]", "mypy")
    session.run("mypy")


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


def lowest_versions():
    """Return the dependencies of the library, each pinned at the lowest version allowed."""
    return [requirement.replace(">=", "==") for requirement in PROJECT["dependencies"]]


@nox.session(python="3.11")
def lowest(session):
    """Run the tests of the core with the lowest dependencies allowed."""
    session.install("-e", ".[exact,progress]", *lowest_versions(), "hypothesis", "mpmath", "pytest")
    chosen = session.posargs or ["tests/measures", "tests/design", "tests/priors", "tests/sampling"]
    session.run("python", "-m", "pytest", "-q", *chosen)
