"""How old the README's table is, counted in commits of code."""

import importlib.util
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("age", ROOT / "tools" / "benchmark_age.py")
age = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(age)


@pytest.fixture
def repository(tmp_path):
    """A repository whose README names its first commit, with three more."""

    def git(*words):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        run = subprocess.run(
            ["git", *identity, *words], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return run.stdout.strip()

    git("init", "-q")
    (tmp_path / "fastpriv").mkdir()
    for number, name in enumerate(["fastpriv/a.py", "fastpriv/a.py", "notes.md", "fastpriv/b.py"]):
        (tmp_path / name).write_text(str(number))
        git("add", "-A")
        git("commit", "-qm", str(number))
    return tmp_path, git("rev-list", "--max-parents=0", "HEAD")[:7]


def test_only_commits_of_code_count(repository):
    root, first = repository
    (root / "README.md").write_text(f"A machine, measured at revision {first}.\n")
    told = f"README's table was measured at revision {first}: 2 commits of code behind."
    assert age.report(root) == told


def test_a_table_without_or_with_another_revision(repository):
    root, _ = repository
    (root / "README.md").write_text("no table")
    assert "names no revision" in age.report(root)
    (root / "README.md").write_text("measured at revision 0123abc.")
    assert "does not know" in age.report(root)
