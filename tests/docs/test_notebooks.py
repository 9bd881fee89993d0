"""Every cell of the notebooks runs, and every cell has kept its output."""

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("notebooks", ROOT / "tools" / "notebooks.py")
notebooks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(notebooks)
plt = pytest.importorskip("matplotlib.pyplot")
FILES = sorted(notebooks.FOLDER.glob("*.ipynb"))


def kinds(notebook):
    """What each cell shows, without numbers and pictures."""
    shown = [cell.get("outputs", []) for cell in notebook["cells"]]
    return [[sorted(out.get("data", {"text": 0})) for out in cell] for cell in shown]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_notebook_runs(path):
    plt.switch_backend("agg")
    kept = json.loads(path.read_text(encoding="utf-8"))
    assert kinds(notebooks.run(path)) == kinds(kept)
    assert sum(map(bool, kinds(kept))) >= 4


def test_there_are_three_and_the_page_lists_them():
    page = (notebooks.FOLDER / "index.md").read_text()
    assert len(FILES) == 3
    assert all(f"<{path.name}>" in page for path in FILES)
