"""``fastpriv capacity``, driven end to end."""

import math

import numpy as np
import pytest

import fastpriv as fp
from command_line import answer, done, prepare, refused


@pytest.fixture
def work(tmp_path, monkeypatch):
    return prepare(tmp_path, monkeypatch)


def entropy(p):
    return -p * math.log(p) - (1 - p) * math.log(1 - p)


def test_capacity_of_a_binary_symmetric_channel(work, capsys):
    """ln 2 - H(1/4), which the printed number is not below."""
    found = answer(["capacity", "bit.csv"], capsys)
    true = math.log(2) - entropy(0.25)
    assert (
        found["value"]["lower"] <= true <= found["value"]["upper"] <= found["value"]["lower"] + 1e-9
    )
    text = done(["capacity", "bit.csv"], capsys)
    assert text.startswith("channel capacity: 0.130812036")
    assert float(text.split()[-2]) >= true


def test_capacities_about_individuals_and_groups(work, capsys):
    words = ["capacity", "hamming:n=3,m=2,epsilon=1"]
    one, two, three = (answer([*words, "--group", k], capsys) for k in "123")
    individual = answer([*words, "--individual"], capsys)
    whole = answer(words, capsys)
    assert individual["value"]["lower"] == one["value"]["lower"]
    assert (
        one["value"]["upper"]
        <= two["value"]["upper"]
        <= three["value"]["upper"]
        <= whole["value"]["upper"] * (1 + 1e-9)
    )
    assert individual["adversary"]["databases"] == [[0, 0, 0], [1, 1, 1]]
    assert individual["adversary"]["law"] == [0.5, 0.5]
    assert "who expects" in done([*words, "--individual"], capsys)


def test_the_adversary_learns_the_lower_end(work, capsys):
    found = answer(["capacity", "channel.csv", "--sizes", "2,2", "--individual"], capsys)
    matrix = np.loadtxt("channel.csv", delimiter=",")
    belief = np.zeros(4)
    for rows, chance in zip(*(found["adversary"][k] for k in ("databases", "law")), strict=True):
        belief[2 * rows[0] + rows[1]] = chance
    assert fp.mutual_information(matrix, belief) == pytest.approx(found["value"]["lower"], rel=1e-9)


def test_constrained_capacity(work, capsys):
    words = ["capacity", "geometric-count:n=3,epsilon=1", "--constrained"]
    none, much = (answer([*words, b], capsys) for b in ("0", "1.5"))
    free = answer(["capacity", "geometric-count:n=3,epsilon=1", "--individual"], capsys)
    assert none["value"]["lower"] == pytest.approx(free["value"]["lower"], abs=1e-3)
    assert much["value"]["upper"] < none["value"]["lower"]


def test_e_i_needs_its_prior(work, capsys):
    words = ["capacity", "posterior:epsilon=2", "--prior", "iid:p=0.6,0.4,n=2"]
    assert "channel capacity" in done(words, capsys)


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ([], 2, "required: MECHANISM"),
        (["bit.csv", "--group", "2"], 2, "k must"),
        (["bit.csv", "--group", "0"], 2, "k must be"),
        (["bit.csv", "--group", "one"], 2, "must be an integer; got"),
        (["bit.csv", "--individual", "--group", "1"], 2, "not allowed with"),
        (["bit.csv", "--constrained", "-1"], 2, "b must be"),
        (["bit.csv", "--constrained", "9"], 3, "the most is ln 2"),
        (["bit.csv", "--gap", "-1"], 2, "gap must be"),
        (["bit.csv", "--individual", "--time-limit", "-1"], 2, "time_limit must be"),
        (["bit.csv", "--time-limit", "1"], 2, "--time-limit must come with --individual"),
        (["bit.csv", "--prior", "uniform"], 2, "capacities are over all priors"),
    ],
)
def test_wrong_input_is_refused(words, code, says, work, capsys):
    refused(["capacity", *words], code, says, capsys)
