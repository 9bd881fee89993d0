"""The officer's page in a real browser: on a phone, on a desktop and on paper."""

import html
import itertools
import json
import re
import shutil
import subprocess

import numpy as np
import pytest

import fastpriv as fp

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
needs_browser = pytest.mark.skipif(
    BROWSER is None, reason="no chromium, chromium-browser or google-chrome is installed"
)
pytestmark = pytest.mark.outer
OPTIONS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--allow-file-access-from-files",
]
DOMAIN = {
    "smokes": ["no", "yes"],
    "region": ["north", "south", "west"],
    "a column with a very long name and_no_place_to_break_it": ["18-29", "30-44", "65 and over"],
}
WIDTHS = {"phone": 360, "desktop": 1200}


def people(n=900):
    rng = np.random.default_rng(3)
    drawn = [rng.choice(values, n).tolist() for values in DOMAIN.values()]
    return [dict(zip(DOMAIN, record, strict=True)) for record in zip(*drawn, strict=True)]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Pages of three kinds: nothing to warn of, a warning, and a table that must not go out."""
    folder = tmp_path_factory.mktemp("pages")
    reports = {
        "good": fp.release(people(), domain=DOMAIN, epsilon=3.0).report,
        "warn": fp.release(people(), domain=DOMAIN, epsilon=12.0).report,
        "bad": fp.release(people(), domain=DOMAIN, epsilon=3.0, rng=1).report,
        "plan": fp.preview_release(120_000, domain=DOMAIN, epsilon=3.0, split="columns"),
    }
    for name, report in reports.items():
        report.to_html(folder / f"{name}.html")
    return folder


def browse(folder, *arguments):
    profile = folder / "profile"
    command = [BROWSER, *OPTIONS, f"--user-data-dir={profile}", *map(str, arguments)]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    shutil.rmtree(profile, ignore_errors=True)
    return shown.stdout


MEASURE = """<!doctype html><pre id="found"></pre><script>
const found = {}, pages = %s;
for (const [name, page, width] of pages) {
  const frame = document.createElement("iframe");
  frame.style = `width: ${width}px; height: 900px; border: 0`;
  frame.src = page;
  frame.onload = () => {
    const inside = frame.contentDocument, style = (e) => frame.contentWindow.getComputedStyle(e);
    const box = (e) => { const r = e.getBoundingClientRect(); return [r.left, r.top, r.right,
      r.bottom].map(Math.round); };
    const verdict = inside.querySelector(".verdict"), fold = inside.querySelector("details");
    found[name] = {
      width: inside.documentElement.scrollWidth,
      verdict: box(verdict), colour: style(verdict).color, title: verdict.children[0].innerText,
      headings: [...inside.querySelectorAll("h2")].filter((h) => !fold.contains(h)).map(box),
      rows: [...inside.querySelectorAll("tbody tr")].filter((r) => !fold.contains(r)).map((r) =>
        [...r.children].map(box)),
      folded: fold.getBoundingClientRect().height,
      size: parseFloat(style(inside.querySelector("td")).fontSize),
    };
    document.getElementById("found").textContent = JSON.stringify(found);
  };
  document.body.append(frame);
}
</script>"""


@pytest.fixture(scope="module")
def layouts(pages):
    """Where a browser puts the parts of every page, at every width."""
    wanted = [
        (f"{path.stem} {device}", path.as_uri(), width)
        for path in sorted(pages.glob("*.html"))
        for device, width in WIDTHS.items()
    ]
    harness = pages / "measure.htm"
    harness.write_text(MEASURE % json.dumps(wanted))
    shown = browse(pages, "--dump-dom", "--virtual-time-budget=20000", harness.as_uri())
    found = json.loads(html.unescape(re.search(r'<pre id="found">(.*?)</pre>', shown)[1]))
    assert set(found) == {name for name, _, _ in wanted}
    return found


@needs_browser
@pytest.mark.parametrize("device", WIDTHS)
@pytest.mark.parametrize("kind", ["good", "warn", "bad", "plan"])
def test_layout(layouts, kind, device):
    page = layouts[f"{kind} {device}"]
    assert page["width"] <= WIDTHS[device]
    first = page["headings"][0]
    assert page["verdict"][1] < page["verdict"][3] <= first[1]  # the verdict stands above the rest
    assert page["verdict"][1] < 120  # and on the first screen
    tops = [top for _, top, _, _ in page["headings"]]
    assert tops == sorted(tops)
    assert page["size"] >= 14
    assert page["folded"] < 60  # one line, closed
    for row in page["rows"]:
        assert len(row) == 3
        for one, other in itertools.pairwise(row):
            beside = other[0] >= one[2] - 1 and device == "desktop"
            below = other[1] >= one[3] - 1 and device == "phone"
            assert beside or below, row
        assert all(cell[2] <= WIDTHS[device] for cell in row)


@needs_browser
def test_red_is_for_tables_that_must_not_be_published(layouts):
    def colour(kind):
        return tuple(map(int, re.findall(r"\d+", layouts[f"{kind} desktop"]["colour"])[:3]))

    red, green, blue = colour("bad")
    assert red > 2 * max(green, blue)
    red, green, blue = colour("good")
    assert green > red
    assert len({colour(kind) for kind in ("good", "warn", "bad")}) == 3
    assert layouts["bad phone"]["title"] == "Do not publish this table"
    assert layouts["good phone"]["title"] == "No warnings"


def share_of_red(path):
    from matplotlib.image import imread

    picture = imread(path)[:400, :, :3]
    red = (picture[..., 0] > 0.6) & (picture[..., 1] < 0.35) & (picture[..., 2] < 0.35)
    return red.mean()


@needs_browser
def test_a_screenshot_shows_red_at_the_top(pages):
    shares = {}
    for kind in ("good", "bad"):
        picture = pages / f"{kind}.png"
        page = (pages / f"{kind}.html").as_uri()
        browse(pages, "--window-size=1000,800", f"--screenshot={picture}", page)
        shares[kind] = share_of_red(picture)
    assert shares["bad"] > 0.01
    assert shares["good"] == 0.0


@needs_browser
@pytest.mark.parametrize("kind", ["bad", "plan"])
def test_paper(pages, kind):
    page = (pages / f"{kind}.html").read_text()
    folded = pages / f"{kind}-folded.htm"
    folded.write_text(page.replace("::details-content", "::nothing"))
    counts = []
    for source in (pages / f"{kind}.html", folded):
        file = pages / "paper.pdf"
        browse(pages, "--no-pdf-header-footer", f"--print-to-pdf={file}", source.as_uri())
        counts.append(len(re.findall(rb"/Type\s*/Page\b", file.read_bytes())))
    opened, closed = counts
    assert closed < opened <= 5  # paper cannot be unfolded


def test_words_of_the_page(pages):
    text = (pages / "bad.html").read_text()
    fold = text.index("<details>")
    assert text.index("Do not publish") < text.index("The released table")
    for formula in ("p(y|x)", "HammingChannel", "Wang"):
        assert formula not in html.unescape(text[:fold])
    assert "HammingChannel" in text[fold:]
    assert not re.search(r"\d\.0000\d", text[:fold])  # 3.00001 beside 3
    assert re.search(r"[0-9a-f]{16} under the key [0-9a-f]{32}", text)
    assert "kept with probability" in text
    assert "smokes = yes and region = west" in text


def test_no_class_is_named_before_the_fold():
    """Neither where the library chose the mechanisms nor where they were given."""
    many = {"code": list(range(300)), "sex": ["f", "m"]}
    records = [{"code": k % 300, "sex": "f"} for k in range(600)]
    chosen = fp.release(records, domain=many, epsilon=3.0, mechanism="auto").report
    given = fp.release([0, 1] * 100, mechanism=fp.Channel([[0.9, 0.1], [0.3, 0.7]])).report
    for report in (chosen, given):
        text = report.to_html()
        plain = text[text.index("<body>") : text.index("<details>")]
        assert "Channel" not in plain
        assert "Channel" in text[text.index("<details>") :]
    assert "smallest variance" in chosen.to_html()


def test_errors_are_those_of_estimates():
    """The margins on the page against the spread of estimates over many releases."""
    rng = np.random.default_rng(5)
    table = np.stack([rng.permutation(np.repeat([0, 1], 300)), np.tile([0, 1, 2], 200)], axis=1)
    plan = fp.preview_release(600, domain=[2, 3], epsilon=2.0, split="columns")
    found = []
    for seed in range(400):
        released = fp.release(table, domain=[2, 3], epsilon=2.0, split="columns", rng=seed)
        found.append(fp.estimate_frequencies(released, columns=[0, 1]).records.estimates[-1])
    rows = re.findall(r'class="num">± ([\d,]+)<', plan.to_html())
    margin = float(rows[2].replace(",", ""))
    assert margin == pytest.approx(1.96 * np.std(found), rel=0.2)


def test_the_file_is_named(tmp_path):
    source = tmp_path / "people.csv"
    source.write_text("smokes\n" + "no\nyes\n" * 60)
    out = tmp_path / "released.csv"
    made = fp.release(source, domain={"smokes": ["no", "yes"]}, epsilon=1.0, out=out)
    assert made.report.file == "released.csv"
    assert "<dd>released.csv</dd>" in made.report.to_html()
    again = fp.ReleaseReport.from_json(made.report.to_json())
    assert again.file == "released.csv"
    assert str(tmp_path) not in made.report.to_json()
