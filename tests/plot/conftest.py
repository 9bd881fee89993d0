"""What every test of a figure runs under."""

import importlib

import pytest


@pytest.fixture(autouse=True)
def _figures():
    """Every figure can be drawn, no setting is changed, and nothing is left behind."""
    matplotlib = pytest.importorskip("matplotlib")
    plt = importlib.import_module("matplotlib.pyplot")
    plt.close("all")  # what examples of the documentation left
    before = dict(matplotlib.rcParams)
    yield
    try:
        for figure in map(plt.figure, plt.get_fignums()):
            figure.canvas.draw()
    finally:
        plt.close("all")
    assert dict(matplotlib.rcParams) == before
