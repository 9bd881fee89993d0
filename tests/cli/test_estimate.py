"""``fastpriv estimate``: of the released table only, and what it assumes without a report."""

import json
import subprocess
import sys

import pytest

from command_line import answer, done, prepare, refused

TWO = '{"sex": ["F", "M"], "region": ["north", "south", "west"]}'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    prepare(tmp_path, monkeypatch)
    lines = ["F,north"] * 900 + ["M,south"] * 300
    (tmp_path / "two.csv").write_text("\n".join(["sex,region", *lines]) + "\n")
    (tmp_path / "two.json").write_text(TWO)
    return tmp_path


def release(capsys, *more):
    words = ["release", "two.csv", "--domain", "two.json", "--epsilon", "2", "--seed", "2"]
    done([*words, "--out", "out.csv", "--report", "report.json", *more], capsys)


def test_the_released_table_only(folder, capsys):
    release(capsys)
    words = ["estimate", "out.csv", "--report", "report.json"]
    expected = answer(words, capsys)
    lines = (folder / "out.csv").read_text().splitlines()
    sexes, regions = zip(*(line.split(",") for line in lines), strict=True)
    turned = [f"{region},{sex}" for region, sex in zip(regions, sexes, strict=True)]
    (folder / "turned.csv").write_text("\n".join([turned[0], *turned[:0:-1]]) + "\n")
    assert answer(["estimate", "turned.csv", *words[2:]], capsys) == expected
    refused(["estimate", "two.csv", *words[2:]], 2, "not the one that was released", capsys)
    (folder / "part.csv").write_text("\n".join(lines[:-1]) + "\n")
    says = "has 1,199 records, but the report is of a release of 1,200"
    refused(["estimate", "part.csv", *words[2:]], 2, says, capsys)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--split", "record"], "each record as one value at epsilon 2 (--split record)"),
        (["--split", "columns"], "each of 2 columns by itself at epsilon 1 (--split columns)"),
        (["--per-column"], "each of 2 columns by itself at epsilon 2 (--per-column)"),
    ],
)
def test_estimates_without_a_report_state_the_split(options, says, folder, capsys):
    release(capsys, *options)
    words = ["estimate", "out.csv", "--domain", "two.json", "--epsilon", "2", *options]
    assert done(words, capsys).startswith(f"Assumed: {says}.")
    assert answer(words, capsys)["assumed"] == says


@pytest.mark.parametrize("epsilon", ["0.5", "12"])
def test_the_split_that_is_stated_is_that_of_the_release(epsilon, folder, capsys):
    words = ["--domain", "two.json", "--epsilon", epsilon]
    given = ["release", "two.csv", *words, "--out", "out.csv", "--report", "report.json", "--force"]
    done(given, capsys)
    unit = json.loads((folder / "report.json").read_text())["randomised"]
    option = {"record": "--split record", "columns": "--split columns"}[unit]
    assert option in answer(["estimate", "out.csv", *words], capsys)["assumed"]


def test_an_estimate_outside_its_interval_is_printed_with_a_word(folder, capsys):
    release(capsys)
    words = ["estimate", "out.csv", "--report", "report.json"]
    marked = [line for line in done(words, capsys).splitlines() if "outside its interval" in line]
    outside = {
        value: out
        for column in answer(words, capsys)["columns"].values()
        for value, out in zip(column["values"], column["outside"], strict=True)
    }
    assert {line.split()[0] for line in marked} == {v for v, out in outside.items() if out}
    assert "west" in {line.split()[0] for line in marked}


def test_a_cross_tabulation_of_local_reports_is_refused(folder, capsys):
    release(capsys, "--mechanism", "hashing")
    words = ["estimate", "out.csv", "--report", "report.json", "--columns"]
    refused([*words, "sex,region"], 2, "not messages, for a cross-tabulation", capsys)
    assert answer([*words, "sex"], capsys)["joint"]["values"] == [["F"], ["M"]]
    release(capsys, "--mechanism", "randomised-response", "--force")
    assert len(answer([*words, "sex,region"], capsys)["joint"]["values"]) == 6


@pytest.mark.slow
def test_a_warning_is_one_line(folder):
    words = ["estimate", "two.csv", "--domain", "two.json", "--epsilon", "2", "--split", "record"]
    run = [sys.executable, "-m", "fastpriv", *words]
    ended = subprocess.run(run, capture_output=True, text=True, check=True)
    assert ended.stderr.startswith("fastpriv: warning: an estimated count of ")
    assert all(line.startswith("fastpriv: warning: ") for line in ended.stderr.splitlines())


def test_an_interrupted_release_says_what_was_charged_and_is_resumed(folder, capsys, monkeypatch):
    done(["ledger", "init", "study.ledger", "--budget", "dp=3"], capsys)
    words = ["release", "two.csv", "--domain", "two.json", "--epsilon", "2", "--out", "out.csv"]
    words += ["--ledger", "study.ledger", "--label", "wave 1"]

    def interrupted(*given):
        monkeypatch.undo()
        monkeypatch.chdir(folder)
        raise KeyboardInterrupt

    monkeypatch.setattr("fastpriv.releasing.release.Run.write", interrupted)
    from fastpriv.cli.main import main

    assert main(words) == 130
    told = capsys.readouterr().err
    assert "charged dp 2 under the label 'wave 1' and nothing was published" in told
    assert "--resume" in told
    refused(words, 5, "1.0 of the budget 3.0 remains", capsys)
    refused(words, 5, "spend 1 (dp 2) under the label 'wave 1' paid for the same release", capsys)
    refused([*words, "--resume", "wave 2"], 2, "has none under 'wave 2'", capsys)
    assert "Written to out.csv" in done([*words, "--resume", "wave 1"], capsys)
    (spend,) = answer(["ledger", "show", "study.ledger"], capsys)["entries"]
    assert spend["label"] == "wave 1"
    refused([*words, "--force", "--resume", "wave 1"], 2, "has none under 'wave 1'", capsys)
