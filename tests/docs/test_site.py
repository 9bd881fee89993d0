"""The documentation site as it was built: reads offline, and on a phone."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
SITE = DOCS / "_build" / "html"
BUILD = "python -m sphinx -W -b html docs docs/_build/html"
pytestmark = pytest.mark.skipif(not SITE.exists(), reason=f"the site is not built; {BUILD}")
PHONE = 360


@pytest.fixture(scope="module")
def pages():
    return sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))


def test_every_page_was_built_from_what_it_is_now(pages):
    for source in (path for path in DOCS.rglob("*.md") if "_build" not in path.parts):
        page = source.relative_to(DOCS).with_suffix(".html").as_posix()
        assert page in pages, f"{page} is missing; {BUILD}"
        assert (SITE / page).stat().st_mtime >= source.stat().st_mtime, f"{page} is old; {BUILD}"


def test_nothing_is_fetched_from_outside(pages):
    for page in pages:
        text = (SITE / page).read_text(encoding="utf-8")
        fetched = re.findall(r"<(?:script|img|iframe)\b[^>]*\bsrc=[\"']([^\"']*)", text)
        for tag in re.findall(r"<link\b[^>]*>", text):
            fetched += re.findall(r"\bhref=[\"']([^\"']*)", tag)
        assert not [address for address in fetched if re.match(r"(\w+:)?//", address)], page
    for style in SITE.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", style.read_text()), style


MEASURE = """<!doctype html><pre id="found"></pre><script>
const found = {}, pages = %s;
for (const page of pages) {
  const frame = document.createElement("iframe");
  frame.style = "width: %dpx; height: 700px; border: 0";
  frame.src = page;
  frame.onload = () => {
    found[page] = frame.contentDocument.documentElement.scrollWidth;
    document.getElementById("found").textContent = JSON.stringify(found);
  };
  document.body.append(frame);
}
</script>"""


def test_no_page_is_wider_than_a_phone(pages, tmp_path):
    names = ("chromium", "chromium-browser", "google-chrome")
    browser = next(filter(None, map(shutil.which, names)), None)
    if browser is None:
        pytest.skip(f"no browser: none of {', '.join(names)} is installed")
    addresses = {(SITE / page).as_uri(): page for page in pages}
    harness = tmp_path / "measure.html"
    harness.write_text(MEASURE % (json.dumps(list(addresses)), PHONE))
    options = "--headless=new --no-sandbox --disable-gpu --allow-file-access-from-files --dump-dom"
    shown = subprocess.run(
        [
            browser,
            *options.split(),
            "--virtual-time-budget=60000",
            f"--user-data-dir={tmp_path / 'profile'}",
            harness.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    ).stdout
    found = json.loads(html.unescape(re.search(r'<pre id="found">(.*?)</pre>', shown)[1]))
    assert set(found) == set(addresses)
    assert {page: found[uri] for uri, page in addresses.items() if found[uri] > PHONE} == {}
