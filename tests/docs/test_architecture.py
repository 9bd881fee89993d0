"""The page on the architecture lists the layers of the contract."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()


def test_layers_are_those_of_the_contract():
    settings = (ROOT / "pyproject.toml").read_text()
    block = re.findall(r"^layers = \[(.*?)^\]", settings, re.S | re.M)[0]  # of the whole package
    contract = [name.strip("()") for name in re.findall(r'"([^"]+)"', block)]
    (listing,) = re.findall(r"```text\n(.*?)```", PAGE, re.S)
    shown = [line.split()[0].removesuffix(".py").rstrip("/") for line in listing.splitlines()]
    assert shown == contract
