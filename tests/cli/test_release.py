"""``fastpriv release`` and ``fastpriv estimate``, on a real table and on bad ones."""

import csv
import json
import os
import signal
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import fastpriv as fp
from command_line import answer, done, prepare, refused, stopped
from fastpriv.cli.main import main

DATA = Path(__file__).parents[1] / "data"
TITANIC, TITANIC_DOMAIN = str(DATA / "titanic.csv"), str(DATA / "titanic.json")


def titanic():
    with open(TITANIC, newline="") as stream:
        return list(csv.DictReader(stream))


def test_the_table_is_the_one_everybody_knows():
    people = titanic()
    assert len(people) == 2201
    counts = {name: Counter(person[name] for person in people) for name in people[0]}
    assert counts["class"] == {"1st": 325, "2nd": 285, "3rd": 706, "Crew": 885}
    assert counts["sex"] == {"Male": 1731, "Female": 470}
    assert counts["age"] == {"Child": 109, "Adult": 2092}
    assert counts["survived"] == {"No": 1490, "Yes": 711}


@pytest.mark.parametrize("options", [[], ["--per-column"]])
def test_release_and_estimate_a_real_table(options, tmp_path, capsys):
    """From the command line: sanitised, then the true counts within their intervals."""
    out, report = tmp_path / "released.csv", tmp_path / "report.json"
    common = ["--domain", TITANIC_DOMAIN, "--epsilon", "3.0", *options]
    files = ["--out", str(out), "--report", str(report), "--seed", "2"]
    assert main(["release", TITANIC, *common, *files]) == 0
    printed = capsys.readouterr().out
    assert "differential privacy" in printed
    assert "seeded, NOT secure" in printed
    public = json.loads(report.read_text())
    level = 12.0 if options else 3.0
    assert public["levels"]["dp"] == pytest.approx(level)
    assert "private" not in report.read_text()
    with open(out, newline="") as stream:
        released = list(csv.DictReader(stream))
    assert len(released) == 2201
    assert list(released[0]) == ["class", "sex", "age", "survived"]
    assert released != titanic()

    arguments = ["estimate", str(out), *common, "--confidence", "0.99", "--simultaneous"]
    assert main([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["columns"]
    for name, column in found.items():
        true = Counter(person[name] for person in titanic())
        for value, low, high in zip(
            column["values"], column["lower"], column["upper"], strict=True
        ):
            assert low <= true[value] <= high
            assert high - low < 600
    assert main(arguments) == 0
    told = capsys.readouterr().out
    assert "survived" in told
    base = ["estimate", str(out), "--domain", TITANIC_DOMAIN, "--confidence", "0.99"]
    assert main([*base, "--simultaneous", "--report", str(report)]) == 0
    assumed, _, estimates = told.partition("\n")  # the report leaves nothing to assume
    assert assumed.startswith("Assumed: ")
    assert capsys.readouterr().out == estimates


def test_advice_before_publishing():
    table = np.zeros((100, 3), dtype=np.int64)
    report = fp.preview_release(1_000, domain=[4, 4, 4], epsilon=1.0, split="record")
    notes = " ".join(report.notes)
    assert "at epsilon/3 protects a record as much" in notes
    notes = " ".join(fp.release(table, domain=[4, 4, 4], distortion=0.1).report.notes)
    assert "protects little" in notes
    assert not fp.release(table[:, :1], domain=4, epsilon=1.0).report.notes


def write(folder, text, domain='{"c": ["x", "y"]}', encoding="utf-8"):
    (folder / "in.csv").write_bytes(text.encode(encoding))
    (folder / "domain.json").write_bytes(domain.encode())
    return [
        "release", str(folder / "in.csv"), "--domain", str(folder / "domain.json"),
        "--out", str(folder / "out.csv"), "--epsilon", "1",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "domain", "words"),
    [
        ("c\nx\n", "{", "valid JSON"),
        ("c\nx\n", "[" * 100_000, "valid JSON"),
        ("c\nx\n", r'{"c": ["x", "\ud800"]}', "text that UTF-8 can write"),
        ("c\nx\n", "[1]", 'must be a JSON object {"column": [values]}'),
        ("c\nx\n", '{"c": ["x"], "c": ["y"]}', "twice"),
        ("c\nx\n", '{"c": ["x", "x"]}', "twice"),
        ("c\nx\n", '{"c": [1, true]}', "twice"),
        ("c\nx\n", '{"c": [{}]}', "plain values"),
        ("c\nx\n", '{"c": "xy"}', "must be a list"),
        ("c\nx\n", '{"d": ["x"]}', "no column 'd'"),
        ("c,e\nx,1\n", '{"c": ["x"]}', "does not declare 'e'"),
        ("c;e\nx;1\n", '{"c": ["x"], "e": [1]}', "it has 'c;e'"),
        ("", '{"c": ["x"]}', "is empty"),
        ("c\n", '{"c": ["x"]}', "no records"),
        ("c,c\nx,x\n", '{"c": ["x"]}', "two columns named 'c'"),
        ("c\n" + "x\n" * 9_999 + "z\n", '{"c": ["x"]}', "record 10000 (index 9999) has a value"),
        ("c\nx\n\nx\n", '{"c": ["x"]}', "record 2 (index 1) must have 1 fields"),
        ("c\nx,y\n", '{"c": ["x"]}', "record 1 (index 0) must have 1 fields"),
        ('c\n""\n', '{"c": ["x"]}', "record 1 (index 0) has a missing value"),
        ('c\n"x\n', '{"c": ["x"]}', "record 1 (index 0) cannot be read"),
        ('c\n"x"y\n', '{"c": ["x"]}', "record 1 (index 0) cannot be read"),
        ("c\ntrue\n", '{"c": [true, false]}', "(of type str) in column 'c'"),
        ("c\n01\n", '{"c": [1]}', "record 1 (index 0) has a value (of type str)"),
        ("c\nx\n", '{"c": ["x", null, ""]}', "two are written ''"),
    ],
)
@pytest.mark.parametrize("block", [1 << 22, 7])
def test_bad_files_are_refused_in_one_sentence(
    text, domain, words, block, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr("fastpriv.releasing.tables.csv._BLOCK", block)
    arguments = write(tmp_path, text, domain)
    assert main(arguments) == 2
    streams = capsys.readouterr()
    assert streams.out == ""
    assert streams.err.startswith("fastpriv: ")
    assert streams.err.count("\n") == 1
    assert words in streams.err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["domain.json", "in.csv"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"--out": "/proc/out.csv"}, "cannot write"),
        ({"--out": "no/such/out.csv"}, "there is no folder"),
        ({"--domain": "no.json"}, "cannot read the domain"),
        ({"--epsilon": "-1"}, "epsilon must be"),
        ({"--epsilon": "nan"}, "epsilon must be"),
        ({"--seed": "-3"}, "rng must be"),
        ({"--report": "no/such/report.json"}, "there is no folder"),
    ],
)
def test_bad_options_are_refused_in_one_sentence(change, words, tmp_path, capsys):
    arguments = write(tmp_path, "c\nx\n")
    for name, value in change.items():
        if name in arguments:
            arguments[arguments.index(name) + 1] = value
        else:
            arguments += [f"{name}={value}"]
    assert main(arguments) == 2
    assert words in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["domain.json", "in.csv"]


def test_a_latin_1_file_is_refused(tmp_path, capsys):
    assert main(write(tmp_path, "c\né\n", encoding="latin-1")) == 2
    assert "not UTF-8" in capsys.readouterr().err


def test_overwriting_needs_force(tmp_path, capsys):
    arguments = write(tmp_path, "\ufeffc\r\nx\r\ny", '\ufeff{"c": ["x", "y"]}')
    assert main(arguments) == 0
    assert main(arguments) == 2
    assert "--force" in capsys.readouterr().err
    assert main([*arguments, "--force"]) == 0
    assert (tmp_path / "out.csv").read_text().splitlines()[0] == "c"
    assert main([*arguments, "--force", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.split("out.csv\n")[-1])["records"] == 2


def test_distortion_and_dropped_columns(tmp_path, capsys):
    arguments = write(tmp_path, "c,name\n" + "x,Ann\n" * 400)[:-2]
    assert main([*arguments, "--distortion", "100", "--drop-undeclared"]) == 0
    assert "changed records: 100" in capsys.readouterr().out
    assert "Ann" not in (tmp_path / "out.csv").read_text()
    free = [a for a in arguments if "domain" not in a]
    options = ["--epsilon", "1", "--accept-domain-from-data", "--force"]
    assert main([*free, *options]) == 0
    assert "read from the data" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGKILL", 9)])
def test_a_release_that_is_stopped_leaves_no_output(number, tmp_path):
    """Writing sleeps, so the release is under way when it is stopped."""
    arguments = write(tmp_path, "c\nx\n")
    slow = """
import signal, sys, time
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in background jobs otherwise
import fastpriv.releasing.tables.csv as r
import fastpriv as fp
from fastpriv.cli.main import main
write = r.CsvFile.writer
def writer(self, *given):
    found = write(self, *given)
    def wait(digits, domain):
        assert any(path.suffix == ".part" for path in Path(sys.argv[2]).parent.iterdir())
        print("writing", flush=True)
        time.sleep(600)
    found.write = wait
    return found
r.CsvFile.writer = writer
sys.exit(main(sys.argv[1:]))
"""
    code, errors = stopped(slow, arguments, "writing", number)
    left = [p.name for p in tmp_path.iterdir()]
    assert "out.csv" not in left
    if number != signal.SIGKILL:
        assert code == 130
        assert errors == "fastpriv: interrupted; no unfinished file was left\n"
        assert sorted(left) == ["domain.json", "in.csv"]


def test_printed_levels_are_rounded_up(tmp_path, monkeypatch, capsys):
    prepare(tmp_path, monkeypatch)
    words = ["release", "people.csv", "--domain", "domain.json", "--epsilon", "0.7", "--force"]
    printed = done([*words, "--out", "out.csv"], capsys)
    levels = answer([*words, "--out", "out.csv"], capsys)["levels"]
    for slug in ("dp", "maximal-leakage", "strong-dp", "channel-capacity"):
        start = f"  {fp.notions.NOTIONS[slug].title}  "
        (line,) = (line for line in printed.splitlines() if line.startswith(start))
        assert levels[slug] <= float(line.split()[-1]) <= levels[slug] * (1 + 1e-8)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "arguments are required: table"),
        (["people.csv", "--out", "out.csv"], "one of the arguments --epsilon --distortion"),
        (["people.csv", "--epsilon", "1"], "--out --preview is required"),
        (["people.csv", "--epsilon", "1", "--out", "o.csv"], "(--accept-domain-from-data)"),
        (["people.csv", "--epsilon", "much", "--out", "o.csv"], "must be a number"),
        (["people.csv", "--epsilon", "1", "--out", "o.csv", "--domian", "domain.json"],
         "there is no option --domian; did you mean --domain?"),
        (["none.csv", "--epsilon", "1", "--out", "o.csv", "--domain", "domain.json"],
         "none.csv"),
        (["people.csv", "--epsilon", "1", "--out", "people.csv", "--domain", "domain.json"],
         "would be written over people.csv"),
        (["people.csv", "--epsilon", "1", "--out", "o.csv", "--domain", "domain.json",
          "--report", "domain.json", "--force"], "would be written over domain.json"),
    ],
)  # fmt: skip
def test_wrong_releases_are_refused(words, says, tmp_path, monkeypatch, capsys):
    prepare(tmp_path, monkeypatch)
    refused(["release", *words], 2, says, capsys)


# Estimates.


def test_estimates_need_every_column_of_records_released_as_a_whole(tmp_path, capsys):
    """The noise of a record depends on how many values records have."""
    out, part = tmp_path / "released.csv", tmp_path / "part.json"
    part.write_text('{"sex": ["Male", "Female"]}')
    release = ["release", TITANIC, "--domain", TITANIC_DOMAIN, "--epsilon", "3", "--out", str(out)]
    done([*release, "--seed", "1"], capsys)
    words = ["estimate", str(out), "--domain", str(part), "--epsilon", "3"]
    assert main(words) == 2
    assert "does not declare 'class', 'age', 'survived'" in capsys.readouterr().err
    done([*release, "--seed", "1", "--per-column", "--force"], capsys)
    found = answer([*words, "--per-column", "--confidence", "0.9999"], capsys)["columns"]["sex"]
    assert found["lower"][0] <= 1731 <= found["upper"][0]


@pytest.mark.parametrize("text", ["{}", "[]", "no", '{"epsilon": 1.0, "randomised": "table"}'])
def test_estimates_need_a_report_of_a_release(text, tmp_path, capsys):
    page = tmp_path / "report.json"
    page.write_text(text)
    given = ["estimate", TITANIC, "--domain", TITANIC_DOMAIN, "--report"]
    assert main([*given, str(page)]) == 2
    assert "is no report" in capsys.readouterr().err
    assert main([*given, str(tmp_path / "none.json")]) == 2
    assert "cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["people.csv"], "--epsilon --report is required"),
        (["people.csv", "--epsilon", "1"], "--domain or --report must be given"),
        (["people.csv", "--domain", "domain.json"], "--epsilon --report is required"),
        (["people.csv", "--domain", "domain.json", "--epsilon", "-1"], "epsilon must be"),
        (["people.csv", "--domain", "domain.json", "--epsilon", "1", "--confidence", "2"],
         "confidence"),
        (["people.csv", "--domain", "bit.csv", "--epsilon", "1"], "valid JSON"),
        (["bit.csv", "--domain", "domain.json", "--epsilon", "1"], "no column 'c'"),
        (["folder.csv", "--domain", "domain.json", "--epsilon", "1"], "folder.csv"),
    ],
)  # fmt: skip
def test_wrong_estimates_are_refused(words, says, tmp_path, monkeypatch, capsys):
    prepare(tmp_path, monkeypatch)
    refused(["estimate", *words], 2, says, capsys)


def test_an_abyss_of_brackets_is_no_report(tmp_path, monkeypatch, capsys):
    prepare(tmp_path, monkeypatch)
    (tmp_path / "deep.json").write_text("[" * 100_000)
    words = ["estimate", "people.csv", "--domain", "domain.json", "--report", "deep.json"]
    refused(words, 2, "is no report", capsys)


@pytest.fixture
def semicolons(tmp_path, monkeypatch):
    """A table as offices of several countries write it."""
    monkeypatch.chdir(tmp_path)
    lines = ["F;north, far"] * 90 + ["M;south"] * 60
    Path("two.csv").write_text("\n".join(["sex;region", *lines]) + "\n")
    Path("two.json").write_text('{"sex": ["F", "M"], "region": ["north, far", "south"]}')
    return ["release", "two.csv", "--domain", "two.json", "--epsilon", "30"]


def test_other_delimiters(semicolons, capsys):
    done([*semicolons, "--delimiter", ";", "--out", "out.csv", "--report", "r.json"], capsys)
    lines = Path("out.csv").read_text().splitlines()
    assert lines[:2] == ["sex;region", "F;north, far"]  # a comma needs no quotes here
    words = ["estimate", "out.csv", "--report", "r.json", "--delimiter", ";"]
    assert answer([*words, "--columns", "sex", "region"], capsys)["records"] == 150
    assert answer([*words, "--columns", "sex", "region"], capsys) == answer(
        [*words, "--columns", "sex,region"], capsys
    )


def test_one_column_suggests_a_delimiter(semicolons, capsys):
    refused([*semicolons, "--out", "out.csv"], 2, "--delimiter ';'", capsys)
    refused([*semicolons, "--out", "out.csv", "--delimiter", ";;"], 2, "one ASCII", capsys)


def test_a_preview_releases_nothing(semicolons, capsys):
    before = sorted(os.listdir())
    words = [*semicolons[:-1], "2", "--delimiter", ";", "--preview"]
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert "nothing was released" in printed
    plan = fp.preview_release(150, domain="two.json", epsilon=2.0)
    for name, error in plan.standard_errors.items():
        assert f"{error:,.1f}" in next(line for line in printed.splitlines() if name in line)
    assert answer(words, capsys)["records"] == 150
    refused([*words, "--report", "r.json"], 2, "--report must be left out", capsys)
    assert sorted(os.listdir()) == before


def test_a_preview_names_columns_that_a_release_refuses(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("id,smokes\n" + "1,no\n2,yes\n" * 50)
    Path("domain.json").write_text('{"smokes": ["no", "yes"]}')
    words = ["release", "people.csv", "--domain", "domain.json", "--epsilon", "2", "--preview"]
    assert main(words) == 0
    assert "does not declare 'id'" in capsys.readouterr().out
    assert main([*words, "--drop-undeclared"]) == 0
    assert "does not declare" not in capsys.readouterr().out


def test_a_folder_is_not_called_like_a_file(tmp_path, monkeypatch, capsys):
    pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    Path("parts").mkdir()
    pandas.DataFrame({"sex": ["F", "M"] * 40}).to_parquet("parts/a.parquet")
    Path("one.json").write_text('{"sex": ["F", "M"]}')
    words = ["release", "parts", "--domain", "one.json", "--epsilon", "3", "--out"]
    refused([*words, "x.csv"], 2, "must be the name of a folder", capsys)
    refused([*words, "x.parquet"], 2, "Leave out the ending .parquet", capsys)
    assert not Path("x.csv").exists()
    done([*words, "x"], capsys)
    assert Path("x").is_dir()


def test_cross_tabulations_of_messages_are_refused(semicolons, capsys):
    more = ["--delimiter", ";", "--mechanism", "hashing", "--report", "r.json"]
    done([*semicolons[:-1], "4", *more, "--out", "out.csv"], capsys)
    words = ["estimate", "out.csv", "--report", "r.json", "--delimiter", ";"]
    assert answer([*words, "--columns", "sex"], capsys)["records"] == 150
    refused([*words, "--columns", "sex", "region"], 2, "one column at a time", capsys)
