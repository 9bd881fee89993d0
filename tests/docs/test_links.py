"""Links between the files of the repository lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    *ROOT.glob("*.md"),
    *(page for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts),
]


def links(page):
    """Targets of links and pictures, without those in code and outside the repository."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    text = re.sub(r"`[^`\n]*`", "", text)
    found = re.findall(r"\]\(([^)\s]+)\)", text)
    files = [target for target in found if re.search(r"\.(md|png|svg|ipynb|cff|csv)(#|$)", target)]
    return [target for target in files if not re.match(r"[a-z]+:", target)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page(page):
    for target in links(page):
        file, _, anchor = target.partition("#")
        path = page.parent / file
        assert path.exists(), target
        if anchor and path.suffix == ".md":
            titles = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.M)
            slugs = {re.sub(r"[^\w\- ]", "", t.lower()).replace(" ", "-") for t in titles}
            assert anchor in slugs, target


def test_the_readme_is_short_and_has_two_commands():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 200
    commands = re.findall(r"```sh\n(.*?)\n```", text, re.S)
    assert len(commands) == 2
    assert not any("\n" in command for command in commands)
    assert len(links(ROOT / "README.md")) > 25
