"""The gallery draws every function of fp.plot, in few lines that run."""

import re
import textwrap
from pathlib import Path

import pytest

import fastpriv as fp

plt = pytest.importorskip("matplotlib.pyplot")
PAGES = Path(__file__).parents[2] / "docs"
PAGE = (PAGES / "gallery.md").read_text()
BLOCKS = dict(
    re.findall(
        r"^### (\w+)\n.*?^\.\. plot::\n   :filename-prefix: \S+\n\n(.*?)^```", PAGE, re.S | re.M
    )
)


def test_every_function_has_a_figure():
    assert set(BLOCKS) == set(fp.plot.__all__)


def test_every_figure_has_a_name_of_its_own():
    """Blocks of reStructuredText in Markdown would all number their figures from 1."""
    for page in PAGES.rglob("*.md"):
        text = page.read_text()
        names = re.findall(r"^ *:filename-prefix: (\S+)$", text, re.M)
        assert len(set(names)) == len(names)
        assert len(names) == text.count(".. plot::") or text.count(".. plot::") == 1, page


@pytest.mark.parametrize("name", BLOCKS)
def test_lines_of_a_figure_run(name):
    plt.switch_backend("agg")
    code = textwrap.dedent(BLOCKS[name])
    assert len(code.strip().splitlines()) <= 5
    assert f"fp.plot.{name}(" in code
    names = {}
    exec(code, names)
    (number,) = plt.get_fignums()
    figure = plt.figure(number)
    figure.canvas.draw()
    assert any(ax.lines or ax.patches or ax.texts for ax in figure.axes)
    plt.close(figure)
