"""``fastpriv audit``, driven end to end."""

import math
import shlex
import sys

import numpy as np
import pytest

import fastpriv as fp
from command_line import answer, done, prepare, refused
from fastpriv.cli.main import main


@pytest.fixture
def work(tmp_path, monkeypatch):
    return prepare(tmp_path, monkeypatch)


# The built-in example.


def test_the_example_prints_every_level_of_both_mechanisms(capsys):
    out = done(["audit"], capsys)
    for word in ("E_d", "E_i", "differential privacy", "identifiability", "mutual information"):
        assert word in out
    assert out.count("0.639041874") == 2  # both have distortion h(2) = 3/(1 + e^2/2)


def test_the_example_as_json(capsys):
    found = answer(["audit", "--epsilon", "2.0"], capsys)
    assert found["mechanisms"]["E_d"]["dp"] == 2.0
    assert found["mechanisms"]["E_i"]["identifiability"] == 2.0


# Files and named mechanisms.


def test_a_channel_of_ones_own(work, capsys):
    found = answer(["audit", "channel.csv", "--prior", "prior.csv"], capsys)
    matrix, prior = (np.loadtxt(name, delimiter=",") for name in ("channel.csv", "prior.csv"))
    assert found["mechanism"] == "channel.csv"
    level = {notion: each["value"] for notion, each in found["levels"].items()}
    assert level["dp"] == pytest.approx(math.log(7.0), rel=1e-12)
    assert level["dp"] >= math.log(7.0)
    assert level["identifiability"] == fp.identifiability_level(matrix, prior)
    assert level["mutual-information"] == pytest.approx(fp.mutual_information(matrix, prior))
    text = done(["audit", "channel.csv", "--prior", "prior.csv"], capsys)
    assert "by a factor of at most 7." in text


def test_sizes_make_neighbours(work, capsys):
    one = answer(["audit", "channel.csv"], capsys)
    two = answer(["audit", "channel.csv", "--sizes", "2,2"], capsys)
    assert (one["rows"], two["rows"]) == (1, 2)
    assert two["levels"]["individual-capacity"] != one["levels"]["individual-capacity"]


def test_infinite_levels_are_words(work, capsys):
    (work / "exact.csv").write_text("1,0\n0,1\n")
    assert answer(["audit", "exact.csv"], capsys)["levels"]["dp"]["value"] == "infinite"
    assert "infinite" in done(["audit", "exact.csv"], capsys)


@pytest.mark.slow
def test_a_named_mechanism(capsys):
    found = answer(["audit", "hamming:n=1000,m=4,epsilon=0.5", "--prior", "uniform"], capsys)
    assert found["levels"]["dp"]["value"] == 0.5
    assert found["levels"]["identifiability"]["value"] == 0.5


def test_a_secret_behind_the_database(work, capsys):
    found = answer(["audit", "channel.csv", "--joint", "joint.csv"], capsys)
    scopes = {each["scope"] for each in found["levels"].values()}
    assert "secret" in scopes


def test_what_solve_wrote_is_confirmed(work, capsys):
    """The audit of the file finds the level and the distortion of its certificate."""
    prior = ["--prior", "iid:p=0.7,0.2,0.1,n=2"]
    solve = ["solve", "dp", *prior, "--epsilon", "1", "--out", "best.npy"]
    certificate = answer(solve, capsys)
    told = done([*solve, "--force"], capsys).splitlines()[-1]
    assert told == "To confirm it: fastpriv audit best.npy --prior iid:p=0.7,0.2,0.1,n=2"
    level = answer(shlex.split(told)[4:], capsys)["levels"]
    assert level["dp"]["value"] == certificate["level"] <= 1.0
    assert level["distortion"]["value"] == pytest.approx(certificate["value"], rel=1e-12)
    assert certificate["bound"] <= level["distortion"]["value"]


@pytest.mark.parametrize(
    "asked",
    [
        ["identifiability", "--prior", "prior.csv", "--sizes", "2,2", "--epsilon", "2"],
        ["inference", "--joint", "joint.csv", "--distortion", "0.1"],
    ],
)
def test_what_confirms_a_solution_is_told(asked, work, capsys):
    told = done(["solve", *asked, "--out", "best.csv"], capsys).splitlines()[-1]
    certificate = answer(["solve", *asked], capsys)
    levels = answer(shlex.split(told)[4:], capsys)["levels"]
    key = {"identifiability": "identifiability", "inference": "secret-mutual-information"}
    found = levels[key[asked[0]]]["value"]
    assert found == pytest.approx(certificate["level"], rel=1e-6)


@pytest.mark.slow
def test_a_page_is_written(work, capsys, monkeypatch):
    words = ["audit", "bit.csv", "--html", "page.html"]
    text = done(words, capsys)
    assert text.endswith("Written to page.html\n")
    page = (work / "page.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "bit.csv" in page
    assert "<svg" in page
    refused(words, 2, "--force", capsys)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "without figures: they take pip install 'fastpriv[plot]'" in done(
        [*words, "--force"], capsys
    )
    page = (work / "page.html").read_text(encoding="utf-8")
    assert "<svg" not in page
    assert "This page has no figures" in page


def test_levels_are_chosen(work, capsys):
    page = answer(["audit", "bit.csv", "--notions", "dp,strong-dp"], capsys)
    assert [*page["levels"]] == ["dp", "strong-dp"]
    refused(["audit", "bit.csv", "--notions", "dp,pmll"], 2, "did you mean pml?", capsys)


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--epsilon", "0.5"], 3, "0.5"),  # E_i does not exist there
        (["--epsilon", "-1"], 2, "epsilon must be"),
        (["--epsilon", "nan"], 2, "epsilon must be"),
        (["--epsilon", "inf"], 2, "epsilon must be"),
        (["--prior", "prior.csv"], 2, "--prior needs a mechanism"),
        (["--html", "page.html"], 2, "--html needs a mechanism"),
        (["bit.csv", "--epsilon", "1"], 2, "it is for the built-in example"),
        (["hamming:n=3,m=2,epsilon=1", "--sizes", "2,2,2"], 2, "--sizes must be left out"),
        (["haming"], 2, "did you mean hamming?"),
        (["over.csv"], 2, "row 0 sums to 1.1"),
        (["bit.csv", "--prior", "prior.csv"], 2, "a probability for each of 2 databases; got 4"),
        (["bit.csv", "--prior", "iid:p=0.5,0.5,n=2"], 2, "4 databases"),
        (["hamming:n=3,m=2,epsilon=1", "--prior", "uniform:n=2,m=2"], 2, "n=2"),
        (["bit.csv", "--joint", "joint.csv"], 2, "joint"),
        (["channel.csv", "--joint", "channel.csv"], 2, "sum to 1"),
        (["channel.csv", "--joint", "joint.csv", "--prior", "prior.csv"], 2, "prior"),
        (["bit.csv", "--time-limit", "-1"], 2, "time_limit must be"),
        (["bit.csv", "--html", "page.txt"], 2, "must end in .html"),
        (["bit.csv", "--html", "none/page.html"], 2, "there is no folder none"),
        (["posterior:epsilon=1"], 2, "posterior needs --prior"),
        (["posterior:epsilon=0.1", "--prior", "iid:p=0.9,0.1,n=2"], 3, "0.1"),
    ],
)  # fmt: skip
def test_wrong_input_is_refused(words, code, says, work, capsys):
    refused(["audit", *words], code, says, capsys)


def test_a_first_audit_fits_one_screen(capsys):
    words = ["audit", "randomised-response:n=3,epsilon=1", "--prior", "iid:p=0.7,0.3,n=3"]
    assert main(words) == 0
    brief = capsys.readouterr().out
    assert len(brief.splitlines()) <= 24
    assert "differential privacy: 1 nat" in brief
    assert "Changing one record changes the probability" in brief
    assert main([*words, "--all"]) == 0
    everything = capsys.readouterr().out
    assert "What follows from what" in everything
    assert "What follows from what" not in brief
