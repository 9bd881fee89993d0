"""Draw the pictures of README and documentation from the library itself.

``python tools/pictures.py`` writes ``docs/_static/pictures``; ``python tools/pictures.py NAME ...``
writes some of them. Each picture has an entry in ``pictures.json``: the numbers that it shows and a
digest of its file, by which the tests recognise a picture that is out of date. The officer's page
needs Debian's ``chromium`` or another Chromium.
"""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "_static" / "pictures"
MANIFEST = FOLDER / "pictures.json"
#: Answers of other accountants, kept by ``python benchmarks/court.py --answers FILE``.
ANSWERS = ROOT / "docs" / "_static" / "accountants.json"
#: A mechanism on cells, kept by ``python benchmarks/large_programs.py --rows NAME --keep FILE``.
CELLS = ROOT / "docs" / "_static" / "cells.json"
STRUCTURE = ROOT / "docs" / "guides" / "structure.json"
#: Names under which Chromium is installed.
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
#: Options for a browser that runs as root in a container and calls nobody.
HEADLESS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
]
#: Significant digits of the numbers in the manifest.
DIGITS = 6
#: Smallest relative excess that the strip plot distinguishes.
TIGHT = 1e-9
#: Colours of the kinds of answers in the structure table, and what they mean.
KINDS = {
    "exact": ("#0072B2", "exact, in the structure"),
    "bracket": ("#56B4E9", "bracket, in the structure"),
    "vector": ("#CFE3F1", "exact, from a list of databases"),
    "dense only": ("#F0C9A8", "only for few databases"),
    "matrix": ("#F0C9A8", "only for few databases"),
    "time": ("#F0C9A8", "only for few databases"),
    "memory": ("#F0C9A8", "only for few databases"),
}

#: Answers in the survey of the trade-off curve.
ANSWERED = 12
#: Columns of the structure table in words.
CHANNELS = {"E_d": "randomised\nresponse", "E_i of the prior": "E_i of\nthe prior"}


def rounded(number: float) -> float:
    """Round a number to the digits that a picture can show."""
    return float(f"{number:.{DIGITS}g}")


# What the pictures show, as plain numbers and texts.


def tradeoff_data() -> dict[str, Any]:
    """Return the points of the trade-off curve."""
    curve = _curve()
    return {
        "distortions": [rounded(d) for d in curve.distortions],
        **{notion: [rounded(level) for level in curve.upper[notion]] for notion in curve.upper},
    }


def officer_data() -> dict[str, Any]:
    """Return the digest of the officer's page."""
    return {"page": hashlib.sha256(officer_page().encode()).hexdigest()}


def accountants_data() -> dict[str, Any]:
    """Return the answers of every accountant relative to the proved lower bound."""
    strips: dict[str, Any] = {}
    for case in json.loads(ANSWERS.read_text())["cases"]:
        for name, epsilon in case["answers"].items():
            strip = strips.setdefault(name, {"excess": [], "below": [], "infinite": 0})
            if case["lower"] == 0.0:
                continue  # an excess relative to 0 means nothing
            if epsilon == "infinite":
                strip["infinite"] += 1
            elif epsilon < case["lower"] * (1.0 - TIGHT):
                strip["below"].append(rounded(1.0 - epsilon / case["lower"]))
            else:
                strip["excess"].append(rounded(max(epsilon / case["lower"] - 1.0, TIGHT)))
    return dict(sorted(strips.items(), key=lambda item: (item[0] != "fastpriv", item[0].lower())))


def structure_data() -> dict[str, Any]:
    """Return how many priors each measure and channel answers in which way."""
    table: dict[str, Any] = {}
    for answer in json.loads(STRUCTURE.read_text()):
        if answer["channel"]:
            row = table.setdefault(answer["measure"], {})
            row.setdefault(answer["channel"], []).append(KINDS[answer["kind"]][1])
    return table


def cells_data() -> dict[str, Any]:
    """Return the prior, the distribution of one cell, and the expected cost of every cell."""
    kept = json.loads(CELLS.read_text())
    return {name: kept[name] for name in ("at", "level", "value", "bound")} | {
        name: [[rounded(number) for number in row] for row in kept[name]]
        for name in ("prior", "outputs", "costs")
    }


# How they are drawn.


def _curve() -> Any:
    import numpy as np

    import fastpriv as fp

    prior = fp.Exchangeable.beta_binomial(ANSWERED, 0.5, 0.8)
    return fp.tradeoff_curve(prior, ["dp"], np.linspace(0.5, 4.5, 81))


def tradeoff(path: Path) -> None:
    """Draw the best level of differential privacy over the expected number of changes."""
    from matplotlib import pyplot as plt

    import fastpriv as fp

    curve = _curve()
    changes, best = curve.distortions, curve.upper["dp"]
    response = [fp.h_inverse(d, ANSWERED, 2) for d in changes]
    few, many = (float(changes[k]) for k in (_first(best), _first(response)))
    _, ax = plt.subplots(figsize=(7.2, 3.6), layout="constrained")
    ax.plot(changes, response, "--", color="0.35", label="randomised response")
    ax.step(changes, best, where="post", color="#0072B2", linewidth=2.2, label="best mechanism")
    ax.annotate(
        "", (few, 1.0), (many, 1.0), arrowprops={"arrowstyle": "->", "color": "#D55E00", "lw": 1.5}
    )
    ax.text(
        many + 0.08,
        1.0,
        f"epsilon 1: {few:.1f} instead of {many:.1f}\nanswers changed",
        color="#B04A00",
        va="bottom",
    )
    ax.set_xlim(0.5, 4.5)
    ax.set_ylim(0.0, 3.2)
    ax.set_xlabel(f"expected number of changed answers, of {ANSWERED}")
    ax.set_ylabel("level of differential privacy\n(epsilon; less is more private)")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    save(ax, path)


def _first(levels: Any) -> int:
    """Return the index of the first level of at most 1."""
    return next(k for k, level in enumerate(levels) if level <= 1.0)


def accountants(path: Path) -> None:
    """Draw a strip for each accountant; answers below the proved lower bound are crosses."""
    from matplotlib import pyplot as plt

    strips = accountants_data()
    _, (left, right) = plt.subplots(
        1,
        2,
        sharey=True,
        figsize=(7.6, 0.8 + 0.45 * len(strips)),
        layout="constrained",
        width_ratios=[1, 2.4],
    )
    for i, (name, strip) in enumerate(strips.items()):
        count = len(strip["excess"]) + len(strip["below"]) + strip["infinite"]
        right.scatter(strip["excess"], _spread(i, strip["excess"]), s=9, color="#0072B2", alpha=0.5)
        left.scatter(strip["below"], _spread(i, strip["below"]), s=28, marker="x", color="#D55E00")
        note = f"{name}\n{count} answers"
        note += f", {strip['infinite']} infinite" if strip["infinite"] else ""
        strips[name] = strip | {"label": note}
    right.set_yticks(range(len(strips)), [strip["label"] for strip in strips.values()])
    right.set_ylim(len(strips) - 0.5, -0.5)
    for ax in (left, right):
        ax.set_xscale("log")
        ax.grid(axis="x", color="0.9", linewidth=0.6)
        ax.set_axisbelow(True)
        ax.tick_params(axis="y", length=0)
        ax.spines[["top", "right", "left"]].set_visible(False)
    left.invert_xaxis()
    left.set_xlim(2.0, 0.5 * TIGHT)
    left.set_title("unsound: below the lower bound", fontsize="medium", color="#D55E00")
    left.set_xlabel("relative shortfall")
    right.set_title("sound: at or above the lower bound", fontsize="medium", color="#0072B2")
    right.set_xlabel("relative excess over the proved lower bound")
    save(right, path)


def cells(path: Path) -> None:
    """Draw three maps of the best mechanism on cells: prior, outputs of one cell, and cost."""
    from matplotlib import pyplot as plt

    shown = cells_data()
    figure, panels = plt.subplots(1, 3, figsize=(9.6, 3.1), layout="constrained")
    titles = {
        "prior": "where people are",
        "outputs": "outputs of the marked cell",
        "costs": "expected distance, in cells",
    }
    for ax, (name, title) in zip(panels, titles.items(), strict=True):
        image = ax.imshow(shown[name], cmap="Blues", vmin=0.0)
        figure.colorbar(image, ax=ax, shrink=0.8)
        ax.set_title(title, fontsize="medium")
        ax.set_xticks([])
        ax.set_yticks([])
    row, column = shown["at"]
    for ax in panels[:2]:
        ax.plot(column, row, "x", color="#D55E00", markersize=8, markeredgewidth=2.0)
    save(panels[0], path)


def _spread(row: int, values: list[float]) -> list[float]:
    """Return heights around a row, spread evenly so that dots do not hide each other."""
    golden = (math.sqrt(5.0) - 1.0) / 2.0
    return [row + 0.56 * ((k * golden) % 1.0 - 0.5) for k in range(len(values))]


def structure(path: Path) -> None:
    """Draw the structure table: one cell for each measure, channel and prior."""
    from matplotlib import pyplot as plt
    from matplotlib.patches import Rectangle

    answers = [a for a in json.loads(STRUCTURE.read_text()) if a["channel"]]
    measures = list(dict.fromkeys(a["measure"] for a in answers))
    channels = list(dict.fromkeys(a["channel"] for a in answers))
    priors = list(dict.fromkeys(a["prior"] for a in answers))
    _, ax = plt.subplots(figsize=(9.6, 0.26 * len(measures) + 1.6), layout="constrained")
    for a in answers:
        x = channels.index(a["channel"]) * (len(priors) + 1) + priors.index(a["prior"])
        y = measures.index(a["measure"])
        ax.add_patch(Rectangle((x, y), 0.92, 0.86, color=KINDS[a["kind"]][0], linewidth=0))
    width = len(priors) + 1
    ax.set_xlim(-0.3, width * len(channels))
    ax.set_ylim(len(measures), -0.2)
    ax.set_yticks([k + 0.43 for k in range(len(measures))], measures, fontsize="small")
    middles = [width * k + len(priors) / 2 for k in range(len(channels))]
    ax.set_xticks(middles, [CHANNELS.get(name, name) for name in channels], fontsize="small")
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_xlabel(
        f"Priors in each block, from left to right: {'; '.join(priors)}.\n"
        "White: the answer does not depend on this prior, or the question does not apply.",
        fontsize="small",
    )
    for colour, words in dict.fromkeys(KINDS.values()):
        ax.add_patch(Rectangle((0, 0), 0, 0, color=colour, label=words))
    ax.legend(
        loc="upper left", bbox_to_anchor=(0.0, -0.11), ncols=4, frameon=False, fontsize="small"
    )
    save(ax, path)


def officer_page() -> str:
    """Return the page of a release as an officer gets it, with an example of file and digest."""
    from dataclasses import replace

    import fastpriv as fp
    from fastpriv.releasing.domain import Digest

    domain = {
        "smokes": ["no", "yes"],
        "region": ["north", "south", "west"],
        "age": ["18-29", "30-44", "45-64", "65 and over"],
    }
    plan = fp.preview_release(120_000, domain=domain, epsilon=3.0)
    return replace(
        plan,
        time=datetime(2026, 1, 15, 9, 30, tzinfo=timezone.utc),
        file="survey-2026.csv",
        digest=Digest(bytes(range(16)), 0x4E83CD6AFA8FA202),
    ).to_html()


def officer(path: Path) -> None:
    """Take a picture of the officer's page as a browser shows it."""
    screenshot(officer_page(), path, width=1000, height=1960)


def browser() -> str | None:
    """Return the path of a Chromium, if there is one."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def screenshot(page: str, path: Path, width: int, height: int) -> None:
    """Show a page in a browser of this size and write what is seen as a PNG."""
    program = browser()
    if program is None:
        raise SystemExit(f"the officer's page needs a browser: install {BROWSERS[0]}")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "page.html"
        source.write_text(page, encoding="utf-8")
        command = [program, *HEADLESS, f"--user-data-dir={folder}/profile"]
        command += [f"--window-size={width},{height}", f"--screenshot={path}", source.as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=120)


def save(ax: Any, path: Path) -> None:
    """Write the figure of some axes as an SVG that does not depend on the day."""
    import matplotlib
    from matplotlib import pyplot as plt

    with matplotlib.rc_context({"svg.hashsalt": "fastpriv", "svg.fonttype": "path"}):
        ax.figure.savefig(path, metadata={"Date": None}, facecolor="white")
    plt.close(ax.figure)
    text = "\n".join(line.rstrip() for line in path.read_text().splitlines())
    path.write_text(text + "\n")


#: Every picture: its data, and how it is drawn.
PICTURES: dict[str, tuple[Callable[[], dict[str, Any]], Callable[[Path], None]]] = {
    "tradeoff.svg": (tradeoff_data, tradeoff),
    "officer.png": (officer_data, officer),
    "accountants.svg": (accountants_data, accountants),
    "structure.svg": (structure_data, structure),
    "cells.svg": (cells_data, cells),
}


def digest(path: Path) -> str:
    """Return the digest of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main(names: list[str]) -> int:
    """Write the pictures of these names, or all of them."""
    unknown = [name for name in names if name not in PICTURES]
    if unknown:
        print(f"no picture is called {unknown[0]}; there are {', '.join(PICTURES)}")
        return 2
    import matplotlib

    matplotlib.use("agg")
    FOLDER.mkdir(parents=True, exist_ok=True)
    shown = json.loads(MANIFEST.read_text()) if MANIFEST.exists() else {}
    for name in names or PICTURES:
        data, draw = PICTURES[name]
        draw(FOLDER / name)
        shown[name] = {"file": digest(FOLDER / name), "shows": data()}
        print(FOLDER / name)
    MANIFEST.write_text(json.dumps(dict(sorted(shown.items())), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
