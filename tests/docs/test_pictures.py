"""The pictures of README and documentation show what the library computes now."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("pictures", ROOT / "tools" / "pictures.py")
pictures = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pictures)
KEPT = json.loads(pictures.MANIFEST.read_text())
AGAIN = "draw it again with tools/pictures.py"


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_a_picture_is_current(name):
    assert KEPT[name]["file"] == pictures.digest(pictures.FOLDER / name), f"{name} changed; {AGAIN}"
    shown, _ = pictures.PICTURES[name]
    found, kept = json.loads(json.dumps(shown())), KEPT[name]["shows"]
    assert found.keys() == kept.keys(), AGAIN
    for key in found:
        if name == "tradeoff.svg":
            assert found[key] == pytest.approx(kept[key], rel=1e-4, abs=1e-6), AGAIN
        else:
            assert found[key] == kept[key], AGAIN


def test_every_kept_picture_is_drawn_and_used():
    files = {path.name for path in pictures.FOLDER.iterdir()} - {pictures.MANIFEST.name}
    assert files == set(KEPT) == set(pictures.PICTURES)
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    pattern = r"_static/pictures/(\S+?)\)"
    used = {name for page in pages for name in re.findall(pattern, page.read_text())}
    assert used == files


def test_the_readme_counts_the_accountants():
    strips = pictures.accountants_data()
    others = [strip for name, strip in strips.items() if name != "fastpriv"]
    words = [
        "None",
        "One",
        "Two",
        "Three",
        "Four",
        "Five",
        "Six",
        "Seven",
        "Eight",
        "Nine",
        "Ten",
        "Eleven",
        "Twelve",
    ]
    text = " ".join((ROOT / "README.md").read_text().split())
    assert f"{words[len(others)]} other accountants answered" in text
    unsound = sum(bool(strip["below"]) for strip in others)
    assert f"{words[unsound]} of them gave answers below the proved lower bound" in text
    assert not strips["fastpriv"]["below"]


def test_a_wrong_name_is_refused(capsys):
    assert pictures.main(["tradeof.svg"]) == 2
    assert "tradeoff.svg" in capsys.readouterr().out
