"""Report how many commits of code the table in README.md is behind. A report, never a gate.

``python tools/benchmark_age.py`` reads the revision that README.md names as measured, and counts
the commits since then that change the package or its kernels.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
#: Folders whose commits make a table old.
CODE = ("fastpriv", "kernels")


def measured(readme: str) -> str | None:
    """Return the revision that a README names."""
    found = re.search(r"measured at revision ([0-9a-f]{7,40})", readme)
    return found[1] if found else None


def commits_since(revision: str, root: Path = ROOT) -> int | None:
    """Count the commits of code since a revision; None if git does not know it."""
    command = ["git", "rev-list", "--count", "--no-merges", f"{revision}..HEAD", "--", *CODE]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    return int(run.stdout) if run.returncode == 0 else None


def report(root: Path = ROOT) -> str:
    """Return one sentence."""
    revision = measured((root / "README.md").read_text(encoding="utf-8"))
    if revision is None:
        return "README.md names no revision at which its table was measured."
    count = commits_since(revision, root)
    if count is None:
        return f"README's table was measured at revision {revision}, which git does not know here."
    behind = f"{count} commit{'' if count == 1 else 's'} of code behind" if count else "up to date"
    return f"README's table was measured at revision {revision}: {behind}."


if __name__ == "__main__":
    sys.stdout.write(report() + "\n")
