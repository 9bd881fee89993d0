"""The table of public deployments is up to date."""

import runpy
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "deployments.py"


@pytest.mark.docs
def test_the_page_is_up_to_date():
    assert runpy.run_path(str(TOOL))["main"](["--check"]) == 0, "run python tools/deployments.py"
