"""``fastpriv compare``, driven end to end."""

import math
from types import SimpleNamespace

import pytest

import fastpriv as fp
from command_line import answer, done, prepare, refused
from fastpriv.auditing import compare


@pytest.fixture
def work(tmp_path, monkeypatch):
    return prepare(tmp_path, monkeypatch)


def test_two_levels_of_one_mechanism(capsys):
    """Less epsilon is better for privacy at every notion, and worse for distortion."""
    words = ["compare", "hamming:n=2,m=2,epsilon=0.5", "hamming:n=2,m=2,epsilon=1"]
    levels = answer([*words, "--prior", "uniform"], capsys)["levels"]
    assert (levels["dp"]["first"], levels["dp"]["second"]) == (0.5, 1.0)
    better = {notion: each["better"] for notion, each in levels.items()}
    assert better.pop("distortion") == "second"
    same = {"ruling-out", "singles-out", "disclosure"}
    assert {notion for notion, who in better.items() if who == "same"} <= same
    assert set(better.values()) == {"first", "same"}
    assert better["error-probability"] == "first"  # where more is better
    text = done([*words, "--prior", "uniform"], capsys)
    assert text.startswith("first:  hamming:n=2,m=2,epsilon=0.5\nsecond: hamming")
    lines = [line.split() for line in text.splitlines()]
    assert ["differential", "privacy", "0.5", "nats", "1", "nat", "first"] in lines


def test_a_matrix_is_the_same_as_its_structure(work, capsys):
    """Rounding tells nobody apart."""
    words = ["compare", "rows:kernel=bit.csv,n=2", "hamming:n=2,m=2,epsilon=1.0986122886681098"]
    levels = answer(words, capsys)["levels"]
    assert {each["better"] for each in levels.values()} == {"same"}


@pytest.mark.slow
def test_the_two_optimal_mechanisms(capsys):
    words = ["compare", "hamming:n=2,m=2,epsilon=1", "posterior:epsilon=1"]
    levels = answer([*words, "--prior", "iid:p=0.6,0.4,n=2"], capsys)["levels"]
    assert levels["dp"]["better"] == "first"
    assert levels["identifiability"]["better"] == "second"
    assert levels["distortion"]["better"] == "same"


@pytest.mark.parametrize(
    ("first", "second", "better"),
    [("exact.csv", "bit.csv", "second"), ("bit.csv", "exact.csv", "first"),
     ("exact.csv", "exact.csv", "same")],
)  # fmt: skip
def test_infinite_levels_are_the_worst(first, second, better, work, capsys):
    (work / "exact.csv").write_text("1,0\n0,1\n")
    levels = answer(["compare", first, second], capsys)["levels"]
    assert levels["dp"]["better"] == better
    assert levels["strong-dp"]["better"] == better


@pytest.mark.parametrize(
    ("first", "second", "better"),
    [
        (fp.Bracket(0.1, 0.5), fp.Bracket(0.1, 0.5), None),  # equal bounds prove nothing
        (fp.Bracket(0.1, math.inf), fp.Bracket(0.1, math.inf), None),
        (fp.Bracket(0.1, math.inf), math.inf, None),
        (fp.Bracket(0.1, 0.2), math.inf, "first"),
        (fp.Bracket(0.5, 0.5), 0.5, "same"),
        (True, False, "second"),
    ],
)
def test_only_what_is_proved_is_decided(first, second, better):
    a, b = (SimpleNamespace(notion="dp", value=value) for value in (first, second))
    assert compare.better(a, b) == better


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "required: FIRST, SECOND"),
        (["bit.csv"], "required: SECOND"),
        (["bit.csv", "channel.csv"], "must have the same databases"),
        (["hamming:n=2,m=2,epsilon=1", "channel.csv"], "or --sizes"),
        (["hamming:epsilon=1", "hamming:epsilon=2", "--sizes", "2"], "--sizes must be left out"),
        (["bit.csv", "none.csv"], "cannot read the channel none.csv"),
        (["bit.csv", "haming"], "did you mean hamming?"),
        (["bit.csv", "bit.csv", "--prior", "prior.csv"], "databases; got 4"),
        (["bit.csv", "bit.csv", "--joint", "none.csv"], "cannot read the joint distribution"),
        (["bit.csv", "bit.csv", "--time-limit", "x"], "must be a number"),
    ],
)
def test_wrong_input_is_refused(words, says, work, capsys):
    refused(["compare", *words], 2, says, capsys)
