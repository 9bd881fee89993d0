"""The audit's page: whole by itself, safe with hostile names, and looked at in a real browser."""

import dataclasses
import html.parser
import json
import re
import shutil
import subprocess
import sys
from functools import cache

import numpy as np
import pytest

import fastpriv as fp

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
needs_browser = pytest.mark.skipif(
    BROWSER is None, reason="no chromium, chromium-browser or google-chrome is installed"
)
HOSTILE = '</title><script>document.title="owned"</script><img src=x onerror=alert(1)>&"\''
JOINT = np.array([[0.3, 0.1, 0.05, 0.05], [0.05, 0.05, 0.1, 0.3]])
#: Elements without an end.
VOID = {"meta", "img", "br", "hr", "path"}


MATRIX = [[0.6, 0.3, 0.1, 0.0], [0.3, 0.5, 0.1, 0.1], [0.25] * 4, [0.0, 0.1, 0.3, 0.6]]
SUBJECTS = {
    "response": lambda: fp.audit(
        fp.HammingChannel(5, 2, 1.0), fp.Exchangeable.beta_binomial(5, 0.8, 1.2)
    ),
    "zeros": lambda: fp.audit(MATRIX, joint=JOINT),
    "no prior": lambda: fp.audit(fp.ProductChannel([MATRIX] * 3)),
    "constant": lambda: fp.audit(np.full((2, 2), 0.5), [0.5, 0.5]),
    "one database": lambda: fp.audit([[1.0]], [1.0]),
    "epsilon 700": lambda: fp.audit(fp.HammingChannel(2, 3, 700.0), fp.Uniform(2, 3)),
    "many rows": lambda: fp.audit(
        fp.HammingChannel(3000, 2, 0.5), fp.Product.iid([0.7, 0.3], 3000)
    ),
    "hostile": lambda: fp.audit(fp.HammingChannel(2, 2, 1.0), fp.Uniform(2, 2), name=HOSTILE),
}


def every(test):
    """Ask a test of every page; those of quick audits by default."""
    test = pytest.mark.slow(but=["constant", "one database"])(test)
    return pytest.mark.parametrize("name", SUBJECTS)(test)


@cache
def audited(name):
    return SUBJECTS[name]()


@cache
def page_of(name):
    return audited(name).to_html()


class Reader(html.parser.HTMLParser):
    """Tags, attributes and text of a page, and whether elements are nested."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.text = [], [], []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] not in ("style", "title"):
            self.text.append(data)

    def words(self):
        return " ".join(" ".join(self.text).split())


@pytest.mark.slow
@every
def test_the_page_has_every_level_and_nothing_from_outside(name):
    audit = audited(name)
    page = page_of(name)
    found = Reader(page)
    for level in audit.levels.values():
        assert level.shown in found.words()
        assert " ".join(level.meaning.split()) in found.words()
        assert " ".join(level.where.split()) in found.words()
    assert {tag for tag, _ in found.tags}.isdisjoint({"script", "link", "iframe", "img", "object"})
    for tag, attributes in found.tags:
        assert not any(key.startswith("on") for key in attributes)
        for key in ("src", "href", "xlink:href"):
            assert attributes.get(key, "#").startswith("#"), tag
    assert not re.search(r"@import|url\((?!#)", page)
    ids = [attributes["id"] for _, attributes in found.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    pointed = re.findall(r'(?:href="#|url\(#)([^")]+)', page)
    assert set(pointed) <= set(ids)


@every
def test_the_page_can_be_heard(name):
    found = Reader(page_of(name))
    pictures = [attributes for tag, attributes in found.tags if tag == "svg"]
    assert len(pictures) >= 2
    assert all(p["role"] == "img" and p["aria-label"] for p in pictures)
    assert {a.get("scope") for tag, a in found.tags if tag == "th"} == {"col", "row"}
    assert dict(found.tags)["html"]["lang"] == "en"
    assert [tag for tag, _ in found.tags if tag == "h1"] == ["h1"]


def test_names_are_words_and_not_markup():
    page = page_of("hostile")
    assert "<script" not in page
    assert "<img" not in page
    assert HOSTILE in Reader(page).words()
    assert "<script" not in audited("hostile")._repr_html_()


@pytest.mark.slow
def test_the_page_is_written_and_the_same_twice(tmp_path):
    audit = audited("zeros")
    path = tmp_path / "audit.html"
    assert audit.to_html(path) == page_of("zeros") == path.read_text(encoding="utf-8")
    assert audit.to_html(str(path), plots=False).count("<svg") == 0


def test_without_matplotlib_the_page_says_that_it_has_no_figures(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    page = audited("zeros").to_html()
    assert "<svg" not in page
    assert "<table" in page
    assert "no figures: drawing them needs matplotlib" in Reader(page).words()
    assert "no figures" not in audited("zeros").to_html(plots=False)  # nobody asked for them
    assert "<table" in audited("zeros")._repr_html_()


# In a browser.

FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--enable-logging=stderr",
    "--virtual-time-budget=3000",
]
PROBE = """<script>
const report = {errors: []};
addEventListener("error", e => report.errors.push(String(e.message)));
addEventListener("load", () => {
  const box = document.documentElement, view = box.clientWidth;
  report.view = view; report.wide = box.scrollWidth;
  report.over = [...document.querySelectorAll(".fp-audit *:not(thead):not(thead *)")].filter(e => {
    const r = e.getBoundingClientRect();
    return r.width > 0 && (r.right > view + 1 || r.left < -1) && !e.closest("svg");
  }).map(e => e.outerHTML.slice(0, 80));
  report.rows = [...document.querySelectorAll("tbody tr")].filter(
    r => r.getClientRects().length && r.innerText.trim()).length;
  report.svg = [...document.querySelectorAll("svg")].map(e => e.getBoundingClientRect().width);
  report.dark = getComputedStyle(document.body).backgroundColor;
  const pre = document.createElement("pre");
  pre.id = "probe"; pre.textContent = JSON.stringify(report); document.body.append(pre);
});
</script>"""


def browse(page, folder, *flags):
    """Load a page in the browser and return its standard output and errors."""
    path = folder / "page.html"
    path.write_text(page, encoding="utf-8")
    profile = f"--user-data-dir={folder / 'profile'}"
    done = subprocess.run(
        [BROWSER, *FLAGS, profile, *flags, path.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "CONSOLE" not in done.stderr, done.stderr
    return done.stdout


def probed(name, width, folder, *flags):
    """Return what the probe saw. A frame gives the width, below what a window can have."""
    page = page_of(name).replace("</head>", PROBE + "</head>")
    # Let the probe run; whatever else the page tried to load would be an error on the console.
    assert "default-src 'none';" in page
    page = page.replace("default-src 'none';", "default-src 'none'; script-src 'unsafe-inline';")
    (folder / "inner.html").write_text(page, encoding="utf-8")
    inner = (folder / "inner.html").as_uri()
    frame = f'<iframe src="{inner}" style="width:{width}px;height:9000px;border:0"></iframe>'
    relay = """<script>addEventListener("load", () => setTimeout(() => {
      const seen = document.querySelector("iframe").contentDocument.querySelector("#probe");
      document.body.insertAdjacentHTML("beforeend", "<pre id=out></pre>");
      document.querySelector("#out").textContent = seen.textContent;
    }, 200))</script>"""
    outer = f"<!doctype html><meta charset=utf-8><body style='margin:0'>{frame}{relay}"
    allowed = ("--allow-file-access-from-files", f"--window-size={max(width, 600)},1000")
    text = browse(outer, folder, "--dump-dom", *allowed, *flags)
    found = re.search(r'<pre id="out">(.*?)</pre>', text, re.S)
    assert found, text[-500:]
    return json.loads(html.unescape(found[1]))


@needs_browser
@pytest.mark.parametrize(
    ("name", "width"),
    [("response", 1280), ("zeros", 360), ("zeros", 1280), ("many rows", 360), ("hostile", 360)],
)
def test_it_fits_a_phone_and_a_desk(name, width, tmp_path):
    seen = probed(name, width, tmp_path)
    audit = audited(name)
    assert seen["view"] == width
    assert seen["wide"] <= width
    assert seen["over"] == []
    assert seen["rows"] == len(audit.levels) + len(audit.implied)
    assert seen["errors"] == []
    assert all(200 < drawn <= width for drawn in seen["svg"])
    assert seen["dark"] == "rgb(255, 255, 255)"


@needs_browser
def test_it_is_dark_where_people_ask_for_it(tmp_path):
    seen = probed("response", 1280, tmp_path, "--blink-settings=preferredColorScheme=0")
    assert seen["dark"] == "rgb(13, 17, 23)"


@needs_browser
def test_it_prints(tmp_path):
    target = tmp_path / "page.pdf"
    browse(page_of("zeros"), tmp_path, f"--print-to-pdf={target}")
    pdf = target.read_bytes()
    assert pdf.startswith(b"%PDF")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 12


def test_a_page_without_levels():
    measured = fp.audit(np.eye(2))
    audit = dataclasses.replace(measured, levels={}, implied=[], skipped={"dp": "no time"})
    page = audit.to_html()
    assert "no time" in page
    assert "<figure" not in page
    assert "Figures</h2>" not in page
