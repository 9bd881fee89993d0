"""Write the table of docs/guides/deployments.md from the parameters in deployments.csv beside it.

Run ``python tools/deployments.py`` after a parameter or a computation has changed; ``--check``
writes nothing and fails if the page is not up to date.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

from fastpriv._text.numbers import up
from fastpriv.releasing.registry import Deployment

GUIDES = Path(__file__).parents[1] / "docs" / "guides"
BEGIN, END = "<!-- table, by tools/deployments.py -->", "<!-- end of table -->"
HEAD = (
    "deployment", "stated", "unit", "epsilon at delta 1e-6", "at 1e-10", "advantage",
    "TPR at FPR 1 %",
)  # fmt: skip
DIGITS = 4


def content(row: dict[str, str]) -> dict[str, object]:
    """Return a line of the list in the form of the registry's files."""
    parameters = {name: row[name] or None for name in ("epsilon", "delta", "rho")}
    return {
        "deployment": {
            "basic": {"name": row["file"]},
            "dp_variant": {"variant_name": row["variant"]},
            "privacy_loss": {"privacy_unit": row["unit"], "privacy_parameters": parameters},
            "deployment_model": {"release_type": row["releases"]},
            "implementation": {"mechanisms": row["noise"]},
        }
    }


def cells(row: dict[str, str], notes: list[str]) -> list[str]:
    """Return the line of one deployment; contradictions go to the notes."""
    read = Deployment.from_dict(content(row))
    parts = (read.variant, *(f"{n} {row[n]}" for n in ("epsilon", "delta", "rho") if row[n]))
    mark = ""
    if read.contradictions:
        notes.append(f"`{row['file']}`: {' '.join(read.contradictions)}")
        mark = f" ({len(notes)})"
    first = [f"{row['who']}: {row['file'].replace('_', ' ')}{mark}", ", ".join(parts), read.unit]
    implied = [one for one in read.implied() if one.releases == 1]
    if not implied:
        return [*first, *4 * ["-"]]
    chosen = implied[-1]  # Gaussian noise if the file names it
    exact = "" if chosen.mechanism == "any" else " (Gaussian)"
    levels = [up(chosen.epsilon[delta].upper, DIGITS) + exact for delta in (1e-6, 1e-10)]
    return [*first, *levels, up(chosen.advantage.upper, DIGITS), up(chosen.tpr.upper, DIGITS)]


def table() -> str:
    """Return the table and its notes."""
    with open(GUIDES / "deployments.csv", newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    notes: list[str] = []
    lines = [HEAD, ["---"] * len(HEAD), *(cells(row, notes) for row in rows)]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return text + "\n\n" + "\n".join(f"{k}. {note}" for k, note in enumerate(notes, 1)) + "\n"


def rewritten(page: str) -> str:
    """Return the page with a new table."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n\n{table()}\n{END}{rest.split(END)[1]}"


def main(arguments: list[str]) -> int:
    """Write the page, or compare."""
    path = GUIDES / "deployments.md"
    page = path.read_text(encoding="utf-8")
    new = rewritten(page)
    if "--check" in arguments:
        return int(new != page)
    path.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
