"""What every test of the documentation runs under."""

import sys

import pytest


def close_figures():
    """Close all figures, without an import of matplotlib."""
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(autouse=True)
def _figures():
    """Examples draw figures and close none; matplotlib warns of more than 20 open ones."""
    close_figures()  # of other tests
    yield
    close_figures()
