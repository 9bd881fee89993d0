"""``fastpriv tradeoff``, driven end to end."""

import csv
import io
import sys

import numpy as np
import pytest

import fastpriv as fp
from command_line import answer, done, prepare, refused


@pytest.fixture
def work(tmp_path, monkeypatch):
    return prepare(tmp_path, monkeypatch)


def test_the_curve_is_that_of_the_library(work, capsys):
    words = ["tradeoff", "--prior", "iid:p=0.6,0.4,n=3", "--distortions", "0.3,0.6,0.9"]
    found = answer([*words, "--notions", "dp", "mutual-information"], capsys)
    prior = fp.Product.iid([0.6, 0.4], 3)
    curve = fp.tradeoff_curve(prior, ["dp", "mutual-information"], [0.3, 0.6, 0.9])
    assert found == {name: column.tolist() for name, column in curve.columns().items()}


def test_the_table_rounds_outwards(work, capsys):
    text = done(["tradeoff", "--prior", "uniform:n=2,m=2", "--points", "3"], capsys)
    rows = [line.split() for line in text.splitlines()[2:]]
    curve = fp.tradeoff_curve(fp.Uniform(2, 2), distortions=[1 / 3, 2 / 3, 1.0])
    for k, notion in enumerate(curve.lower):
        for row, low, high in zip(rows, curve.lower[notion], curve.upper[notion], strict=True):
            assert float(row[1 + 2 * k]) <= low <= high <= float(row[2 + 2 * k])


@pytest.mark.slow
def test_leakages_of_few_databases(work, capsys):
    words = ["tradeoff", "--prior", "prior.csv", "--notions", "pml", "individual-capacity"]
    told = answer([*words, "--distortions", "0,0.3,0.6", "--plot", "curve.png"], capsys)
    # Without distortion the database is told: -ln of the least chance, and one of four values.
    assert told["pml upper"][0] == pytest.approx(np.log(10.0))
    assert told["individual-capacity upper"][0] == pytest.approx(np.log(4.0))
    for notion in ("pml", "individual-capacity"):
        low, high = told[f"{notion} lower"], told[f"{notion} upper"]
        assert np.all(np.abs(np.subtract(high, low)) <= 5e-6)
        assert high[0] > low[1] > high[2] == 0.0
    assert (work / "curve.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_csv_and_figure_are_written(work, capsys):
    words = ["tradeoff", "--prior", "prior.csv", "--notions", "dp", "--points", "3"]
    text = done([*words, "--out", "curve.csv", "--plot", "curve.png"], capsys)
    assert text.endswith("Written to curve.csv\nWritten to curve.png\n")
    with open("curve.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert np.allclose([float(row["distortion"]) for row in rows], [0.2, 0.4, 0.6])
    assert (work / "curve.png").read_bytes().startswith(b"\x89PNG")
    refused([*words, "--plot", "curve.png"], 2, "--force", capsys)
    done([*words, "--plot", "curve.svg"], capsys)
    assert b"<svg" in (work / "curve.svg").read_bytes()
    done([*words, "--plot", "curve.png", "--force"], capsys)


def test_levels_too_close_to_tell_are_bounded(work, capsys):
    """Up to level 0.37 or so a constant output, of distortion 0.7, is the best of all."""
    words = ["tradeoff", "--prior", "prior.csv", "--sizes", "2,2", "--notions", "dp"]
    found = answer([*words, "--distortions", "0.7"], capsys)
    assert found["dp lower"] == [0.0]
    assert found["dp upper"][0] < 0.55 < found["dp theorem upper"][0]


def test_infinite_levels_are_words(work, capsys):
    words = ["tradeoff", "--prior", "prior.csv", "--notions", "dp", "--distortions", "0"]
    assert answer(words, capsys)["dp upper"] == ["infinite"]
    assert "infinite" in done(words, capsys)


def test_a_progress_bar_only_on_a_terminal(work, capsys, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    words = ["tradeoff", "--prior", "prior.csv", "--notions", "dp", "--points", "2"]
    done(words, capsys)
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    done(words, capsys)
    assert "level" in stream.getvalue()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "required: --prior"),
        (["--prior", "none.csv"], "cannot read the prior none.csv"),
        (
            ["--prior", "prior.csv", "--notions", "privacy"],
            "'privacy' is not known; it must be one of dp",
        ),
        (["--prior", "prior.csv", "--points", "0"], "points must be at least 1"),
        (["--prior", "prior.csv", "--points", "2", "--distortions", "1"], "not allowed with"),
        (["--prior", "prior.csv", "--distortions", "a,b"], "must be a list of numbers"),
        (["--prior", "prior.csv", "--distortions", "nan"], "distortion must be"),
        (["--prior", "prior.csv", "--distortions", "7"], "distortion must be"),
        (["--prior", "prior.csv", "--out", "curve.txt"], "must end in .csv"),
        (["--prior", "prior.csv", "--out", "prior.csv"], "would be written over prior.csv"),
        (["--prior", "prior.csv", "--plot", "curve.gif"], "must end in .png or .svg or .pdf"),
        (["--prior", "prior.csv", "--plot", "none/curve.png"], "there is no folder none"),
    ],
)
def test_wrong_input_is_refused(words, says, work, capsys):
    refused(["tradeoff", *words], 2, says, capsys)


def test_too_many_points(work, capsys):
    words = ["tradeoff", "--prior", "prior.csv", "--points", str(10**9)]
    refused(words, 4, "ask for fewer points", capsys)


def test_without_matplotlib_the_extra_is_named(work, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    words = ["tradeoff", "--prior", "prior.csv", "--plot", "curve.png"]
    refused(words, 2, "pip install 'fastpriv[plot]'", capsys)


def test_exact_curves(work, capsys):
    words = ["tradeoff", "--prior", "prior.csv", "--exact", "--levels", "1.5,3"]
    page = answer(words, capsys)
    prior = fp.Dense([0.4, 0.3, 0.2, 0.1])
    for notion in ("dp", "identifiability"):
        curve = fp.exact_curve(prior, 1.5, 3.0, notion)
        assert [(p["low"], p["high"]) for p in page[notion]] == [
            (p.low, p.high) for p in curve.pieces
        ]
        for got, piece in zip(page[notion], curve.pieces, strict=True):
            assert tuple(map(int, got["numerator"])) == piece.numerator
            assert tuple(map(int, got["denominator"])) == piece.denominator
    text = done([*words, "--out", "curve.csv", "--plot", "curve.svg"], capsys)
    assert "Written to curve.csv" in text
    rows = list(csv.DictReader(io.StringIO((work / "curve.csv").read_text())))
    assert [float(row["low"]) for row in rows if row["notion"] == "dp"] == [
        p["low"] for p in page["dp"]
    ]
    assert "<svg" in (work / "curve.svg").read_text()
    whole = answer(["tradeoff", "--prior", "prior.csv", "--exact", "--notions", "dp"], capsys)
    assert whole["dp"][0]["low"] == 0.0
    assert whole["dp"][-1]["high"] == prior.epsilon_hat() + 1.0


def test_exact_curves_have_levels_and_no_grid(work, capsys):
    start = ["tradeoff", "--prior", "prior.csv"]
    refused([*start, "--exact", "--points", "3"], 2, "--distortions", capsys)
    refused([*start, "--exact", "--levels", "1"], 2, "two numbers", capsys)
    refused([*start, "--levels", "0,1"], 2, "--exact", capsys)
    one = [*start, "--exact", "--notions", "mutual-information"]
    refused(one, 2, "dp or identifiability", capsys)
