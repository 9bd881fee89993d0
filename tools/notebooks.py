"""Run the notebooks of the documentation and keep their outputs.

``python tools/notebooks.py`` runs every cell of ``docs/notebooks/*.ipynb`` in order and writes what
it prints, shows and draws into the file. It needs no Jupyter. The tests run the cells as well.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"


def outputs(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """Run a cell and return what Jupyter would show: prints, the last value, and figures."""
    from matplotlib import pyplot as plt

    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    shown: list[dict[str, Any]] = []
    value = None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, "<cell>", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    if printed.getvalue():
        shown.append({"output_type": "stream", "name": "stdout", "text": printed.getvalue()})
    if value is not None and not plt.get_fignums():
        data = {"text/plain": repr(value)}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = value._repr_html_()
        shown.append({"output_type": "display_data", "data": data, "metadata": {}})
    for number in plt.get_fignums():
        picture = io.BytesIO()
        plt.figure(number).savefig(picture, format="png", dpi=80)
        encoded = base64.b64encode(picture.getvalue()).decode()
        data = {"text/plain": "figure", "image/png": encoded}
        shown.append({"output_type": "display_data", "data": data, "metadata": {}})
    plt.close("all")
    return shown


def run(path: Path) -> dict[str, Any]:
    """Run all cells of a notebook and return it with its outputs."""
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    names: dict[str, Any] = {}
    count = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            count += 1
            cell["outputs"] = outputs("".join(cell["source"]), names)
            cell["execution_count"] = count
    return notebook


def main() -> int:
    """Run every notebook and write it back."""
    import matplotlib

    matplotlib.use("agg")
    for path in sorted(FOLDER.glob("*.ipynb")):
        notebook = run(path)
        text = json.dumps(notebook, indent=1, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
