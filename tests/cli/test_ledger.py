"""``fastpriv ledger``, driven end to end."""

import contextlib
import sqlite3
import subprocess
import sys

import pytest

import fastpriv as fp
from command_line import answer, done, parsed, prepare, refused


@pytest.fixture
def work(tmp_path, monkeypatch):
    return prepare(tmp_path, monkeypatch)


@pytest.fixture
def book(work, capsys):
    done(["ledger", "init", "study.ledger", "--budget", "dp=1.0"], capsys)
    return "study.ledger"


def remaining(book):
    with fp.accounting.Ledger.open(book) as ledger:
        return ledger.remaining


def test_ten_spends_of_a_tenth_fit_exactly(book, capsys):
    for week in range(10):
        found = answer(["ledger", "spend", book, "--level", "dp=0.1", "--label", str(week)], capsys)
        assert (found["number"], found["spent"], found["charged"]) == (week + 1, True, {"dp": 0.1})
    assert answer(["ledger", "remaining", book], capsys) == {
        "budget": {"dp": 1.0}, "spent": {"dp": 1.0}, "remaining": {"dp": 0.0},
    }  # fmt: skip
    says = "dp: the release asks for 1e-05 but 0.0 of the budget 1.0 remains; nothing was spent"
    refused(["ledger", "spend", book, "--level", "dp=1e-5"], 5, says, capsys)
    shown = done(["ledger", "show", book, "--last", "2"], capsys).splitlines()
    assert shown[1].split() == ["dp", "1", "0", "1", "levels", "add"]
    assert [line.split()[0] for line in shown[4:]] == ["9", "10"]


def test_mechanisms_are_charged_what_they_draw(book, capsys):
    words = ["ledger", "spend", book, "hamming:n=100,m=2,epsilon=0.25", "--count", "2"]
    found = answer(words, capsys)
    assert 0.5 - 1e-9 < found["charged"]["dp"] <= 0.5
    text = done(words, capsys)
    assert "It is spend 2 of study.ledger" in text
    refused(words, 5, "nothing was spent", capsys)


def test_a_dry_run_spends_nothing(book, capsys):
    words = ["ledger", "spend", book, "--level", "dp=0.75", "--dry-run"]
    for _ in range(2):
        found = answer(words, capsys)
        assert (found["spent"], found["remaining"]) == (False, {"dp": 0.25})
    assert "Nothing was spent." in done(words, capsys)
    assert remaining(book) == {"dp": 1.0}
    refused(["ledger", "spend", book, "--level", "dp=1.5", "--dry-run"], 5, "asks for 1.5", capsys)


def test_notions_that_need_a_prior(work, capsys):
    budgets = ["--budget", "dp=2", "--budget", "identifiability=3"]
    done(["ledger", "init", "both.ledger", *budgets], capsys)
    words = ["ledger", "spend", "both.ledger", "hamming:n=3,m=2,epsilon=0.5"]
    refused(words, 2, "identifiability", capsys)
    found = answer([*words, "--prior", "iid:p=0.8,0.2"], capsys)
    assert found["charged"]["identifiability"] == pytest.approx(1.886294, abs=1e-6)


def test_profiles_compose_at_a_delta(work, capsys):
    done(["ledger", "init", "curve.ledger", "--budget", "approximate-dp=3,1e-6"], capsys)
    found = answer(["ledger", "remaining", "curve.ledger"], capsys)
    assert found["budget"] == {"approximate-dp": [3.0, 1e-6]}
    assert "3 at delta 1e-06" in done(["ledger", "show", "curve.ledger"], capsys)
    words = ["ledger", "spend", "curve.ledger", "hamming:n=10,m=2,epsilon=0.1", "--count", "30"]
    assert answer(words, capsys)["charged"]["approximate-dp"] < 2.99  # less than the sum


def test_a_release_is_charged_by_its_report(book, work, capsys):
    release = ["release", "people.csv", "--domain", "domain.json", "--epsilon", "0.5"]
    done([*release, "--out", "out.csv", "--report", "report.json"], capsys)
    found = answer(["ledger", "spend", book, "--report", "report.json"], capsys)
    level = parsed((work / "report.json").read_text())["levels"]["dp"]
    assert found["charged"] == {"dp": level}


def test_show_exports_everything(book, capsys):
    done(["ledger", "spend", book, "--level", "dp=0.25", "--label", "survey"], capsys)
    text = done(["ledger", "show", book, "--json"], capsys)
    again = fp.accounting.Ledger.from_json(text)
    assert again.spent == {"dp": 0.25}
    assert parsed(text)["entries"][0]["label"] == "survey"
    assert "survey" in done(["ledger", "show", book], capsys)


def test_a_new_ledger_says_so(book, capsys):
    assert "Nothing has been spent." in done(["ledger", "show", book], capsys)
    assert "remaining" in done(["ledger", "remaining", book], capsys)


@pytest.mark.slow
def test_processes_never_overspend(book):
    """Of eight processes that want 0.3 of 1.0, three get it; the others exit with 5."""
    command = [sys.executable, "-m", "fastpriv", "ledger", "spend", book, "--level", "dp=0.3"]
    running = [
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(8)
    ]
    assert sorted(process.wait(timeout=300) for process in running) == [0] * 3 + [5] * 5
    assert remaining(book) == {"dp": pytest.approx(0.1)}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["init"], "required: file, --budget"),
        (["init", "new.ledger"], "required: --budget"),
        (["init", "new.ledger", "--budget", "dp"], "must be NOTION=LEVEL"),
        (["init", "new.ledger", "--budget", "dp=1", "--budget", "dp=2"], "names dp twice"),
        (["init", "new.ledger", "--budget", "dp=much"], "must be a number"),
        (["init", "new.ledger", "--budget", "dp=-1"], "at least 0"),
        (["init", "new.ledger", "--budget", "dp=inf"], "must be finite"),
        (["init", "new.ledger", "--budget", "dp=1,1e-6"], "approximate-dp"),
        (["init", "new.ledger", "--budget", "pd=1"], "'pd'"),
        (["init", "none/new.ledger", "--budget", "dp=1"], "none/new.ledger"),
        (["init", "bit.csv", "--budget", "dp=1"], "bit.csv exists"),
        (["init", "folder.csv", "--budget", "dp=1"], "folder.csv exists"),
        (["spend", "none.ledger", "--level", "dp=1"], "there is no ledger"),
        (["spend", "none.ledger"], "one of a mechanism, --level and --report must be given"),
        (["spend", "none.ledger", "bit.csv", "--level", "dp=1"], "one of a mechanism"),
        (["spend", "none.ledger", "--level", "dp=1", "--prior", "uniform"], "are for mechanisms"),
        (["spend", "none.ledger", "haming"], "did you mean hamming?"),
        (["spend", "none.ledger", "--report", "domain.json"], "is no report of a release"),
        (["spend", "none.ledger", "--report", "none.json"], "cannot be read"),
        (["spend", "none.ledger", "--level", "dp=1", "--count", "x"], "must be an integer; got"),
        (["spend", "bit.csv", "--level", "dp=1"], "bit.csv"),
        (["show", "none.ledger"], "there is no ledger"),
        (["show", "folder.csv"], "folder.csv"),
        (["remaining", "bit.csv"], "bit.csv"),
        (["remaining"], "required: file"),
    ],
)
def test_wrong_input_is_refused(words, says, work, capsys):
    refused(["ledger", *words], 2, says, capsys)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["spend", "--level", "dp=-1"], "at least 0"),
        (["spend", "--level", "pd=1"], "pd"),
        (["spend", "--level", "dp=0.1,1e-6"], "only approximate-dp takes"),
        (["spend", "--level", "dp=0.1", "--count", "0"], "count must be at least 1"),
        (["show", "--last", "-1"], "last must be at least 0"),
    ],
)
def test_wrong_spends_are_refused(words, says, book, capsys):
    refused(["ledger", words[0], book, *words[1:]], 2, says, capsys)
    assert remaining(book) == {"dp": 1.0}


def test_how_many_spends_are_shown(work, capsys):
    done(["ledger", "init", "a.ledger", "--budget", "dp=1"], capsys)
    done(["ledger", "spend", "a.ledger", "--level", "dp=0.1", "--label", "first"], capsys)
    assert "first" in done(["ledger", "show", "a.ledger", "--last", str(10**30)], capsys)
    none = done(["ledger", "show", "a.ledger", "--last", "0"], capsys)
    assert "first" not in none
    assert "Nothing has been spent" not in none


@pytest.mark.parametrize(
    "damage",
    ["update ledger set head='garbage'", "update ledger set genesis='x'", "delete from ledger"],
)
@pytest.mark.parametrize("words", [["remaining"], ["show"], ["spend", "--level", "dp=0.1"]])
def test_a_damaged_file_is_no_defect_of_ours(damage, words, book, capsys):
    done(["ledger", "spend", book, "--level", "dp=0.25"], capsys)
    with contextlib.closing(sqlite3.connect(book)) as file:
        file.execute(damage)
        file.commit()
    refused(["ledger", words[0], book, *words[1:]], 2, "study.ledger", capsys)


def test_a_ledger_prints_its_relation(book, work, capsys):
    assert "relation" not in done(["ledger", "show", book], capsys)
    done(["ledger", "spend", book, "hamming:n=9,m=2,epsilon=0.25"], capsys)
    assert "relation: replace-one" in done(["ledger", "show", book], capsys)
    assert answer(["ledger", "remaining", book], capsys)["relation"] == "replace-one"
    stated = ["ledger", "spend", book, "--level", "dp=0.1", "--relation", "add-or-remove"]
    refused(stated, 2, "relation must be 'replace-one', that of the ledger", capsys)
    words = ["ledger", "init", "sgd.ledger", "--budget", "dp=1.0", "--relation", "add-or-remove"]
    assert "relation: add-or-remove" in done(words, capsys)
    spend = ["ledger", "spend", "sgd.ledger", "hamming:n=9,m=2,epsilon=0.25"]
    refused(spend, 2, "do not compose", capsys)
    refused([*spend, "--dry-run"], 2, "do not compose", capsys)
    (work / "report.json").write_text('{"levels": {"dp": 0.1}}')
    refused([*spend[:3], "--report", "report.json"], 2, "do not compose", capsys)
    wrong = ["ledger", "init", "x.ledger", "--budget", "dp=1", "--relation", "remove"]
    refused(wrong, 2, "did you mean add-or-remove? It must be one of", capsys)
    assert not (work / "x.ledger").exists()
