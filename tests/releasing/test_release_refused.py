"""What fp.release refuses, in words, and what it leaves as it was."""

import json
import math
import os
import sys
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpriv as fp
from fastpriv.measures.realised import realised
from release_cases import DOMAIN, PEOPLE, frame


@pytest.mark.parametrize(
    ("table", "options", "words"),
    [
        (PEOPLE, {"epsilon": 1.0}, r'domain=\{"sex": \[...\], "age": \[...\]\}'),
        (PEOPLE, {"domain": DOMAIN}, "exactly one of"),
        (PEOPLE, {"domain": DOMAIN, "epsilon": 1.0, "distortion": 2.0}, "exactly one of"),
        (PEOPLE, {"domain": {"sex": ["F", "M"]}, "epsilon": 1.0}, "does not declare 'age'"),
        (PEOPLE, {"domain": DOMAIN | {"zip": [1]}, "epsilon": 1.0}, "no column 'zip'"),
        (PEOPLE, {"domain": DOMAIN | {"age": [1, 2]}, "epsilon": 1.0}, "record 3 .*of type int"),
        (PEOPLE, {"domain": DOMAIN | {"age": []}, "epsilon": 1.0}, "lists no values"),
        (PEOPLE, {"domain": DOMAIN | {"age": [1, 1.0]}, "epsilon": 1.0}, "lists 1.0 twice"),
        (PEOPLE, {"domain": DOMAIN | {"age": [[1]]}, "epsilon": 1.0}, "plain values"),
        (PEOPLE, {"domain": DOMAIN | {"age": "123"}, "epsilon": 1.0}, "must be a list"),
        (PEOPLE, {"domain": {}, "epsilon": 1.0}, "no columns"),
        (PEOPLE, {"domain": DOMAIN, "epsilon": -1.0}, "epsilon must be"),
        (PEOPLE, {"domain": DOMAIN, "epsilon": math.nan}, "epsilon must be"),
        (PEOPLE, {"domain": DOMAIN, "epsilon": math.inf}, "epsilon must be"),
        (PEOPLE, {"domain": DOMAIN, "epsilon": 1.0, "rng": -1}, "rng must be"),
        (PEOPLE, {"domain": DOMAIN, "epsilon": 1.0, "out": "x.csv"}, "out is for files"),
        ([], {"domain": DOMAIN, "epsilon": 1.0}, "have records"),
        (np.zeros(0, int), {"domain": 2, "epsilon": 1.0}, "no records"),
        (np.array([0, 2, 5]), {"domain": 2, "epsilon": 1.0}, "record 2 .*2 such records"),
        (np.array([0, -1]), {"domain": 2, "epsilon": 1.0}, "must hold codes.*record 2"),
        (np.array([0.5]), {"domain": 2, "epsilon": 1.0}, "integer codes"),
        (np.zeros((2, 2), int), {"domain": 2, "epsilon": 1.0}, "2 columns, the domain 1"),
        (np.zeros(2, np.int8), {"domain": 1000, "epsilon": 1.0}, "do not fit into int8"),
        ("missing.csv", {"domain": 2, "epsilon": 1.0, "out": "x.csv"}, "no file missing.csv"),
        ("table.xls", {"domain": 2, "epsilon": 1.0, "out": "x.xls"}, "or .parquet file"),
        (7, {"domain": 2, "epsilon": 1.0}, "table must be"),
    ],
)  # fmt: skip
def test_refusals_say_what_to_do(table, options, words):
    with pytest.raises(fp.InvalidInput, match=words):
        fp.release(table, **options)


@pytest.mark.parametrize("missing", [None, math.nan, pd.NA, pd.NaT])
def test_missing_values_are_refused_unless_declared(missing):
    table = pd.DataFrame({"c": pd.Series(["a", missing, "b"], dtype=object)})
    with pytest.raises(fp.InvalidInput, match=r"record 2 .* a missing value in column 'c'"):
        fp.release(table, domain={"c": ["a", "b"]}, epsilon=1.0)
    out = fp.release(table, domain={"c": ["a", "b", missing]}, epsilon=700.0).table
    assert list(out["c"].isna()) == [False, True, False]


def test_values_that_cannot_be_told_apart_are_refused():
    for table in ([{"c": [1]}], pd.DataFrame({"c": [[1], [2]]})):
        with pytest.raises(fp.InvalidInput, match="'c'"):
            fp.release(table, domain={"c": [1, 2]}, epsilon=1.0)
        with pytest.raises(fp.InvalidInput, match="only columns of plain values"):
            fp.release(table, accept="domain-from-data", epsilon=1.0)


def test_dates_of_any_unit_are_dates():
    days = pd.to_datetime(["2020-01-01", "2020-01-02"])
    for listed in (days, days.to_numpy("datetime64[ns]"), days.to_numpy("datetime64[D]")):
        out = fp.release(pd.DataFrame({"c": days}), domain={"c": listed}, epsilon=700.0).table
        assert out["c"].tolist() == days.tolist()


def test_sizes_are_not_spelt_out():
    found = fp.release(np.array([5, 7]), domain=1 << 20, epsilon=1.0)
    assert found.report.domain.values == (range(1 << 20),)


def test_columns_are_dropped_only_on_request():
    table = frame().assign(name="secret")
    found = fp.release(table, domain=DOMAIN, epsilon=1.0, accept="undeclared-columns")
    assert list(found.table.columns) == ["sex", "age"]
    assert found.report.notes == ("columns left out: name",)


def test_a_domain_from_the_data_is_named_as_such(tmp_path):
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text("c\nx\ny\nx\n")
    pq.write_table(pa.table({"c": ["x", "y", None]}), tmp_path / "in.parquet")
    for table, options in [
        (pd.DataFrame({"c": ["x", "y", None]}), {}),
        ([{"c": "x"}, {"c": None}], {}),
        (np.array([0, 2]), {}),
        (path, {"out": out}),
        (tmp_path / "in.parquet", {"out": tmp_path / "out.parquet"}),
    ]:
        with pytest.raises(fp.InvalidInput, match="domain-from-data"):
            fp.release(table, epsilon=1.0, **options)
        found = fp.release(table, epsilon=1.0, accept="domain-from-data", **options).report
        assert "read from the data" in found.domain_source
        assert "given away" in found.notes[0]


def test_records_too_many_to_number_go_by_column():
    wide = np.zeros((5, 30), dtype=np.uint8)
    with pytest.raises(fp.TooLarge, match="per_column=True"):
        fp.release(wide, domain=[10] * 30, epsilon=1.0, split="record")
    with pytest.raises(fp.TooLarge, match="per_column=True"):
        fp.release(wide, domain=[10] * 30, distortion=1.0)
    found = fp.release(wide, domain=[10] * 30, epsilon=1.0, per_column=True)
    assert found.report.levels["dp"] == 30.0
    assert found.report.m == 10**30
    assert fp.estimate_frequencies(found).records is None
    json.loads(found.report.to_json())


def test_two_columns_of_one_name():
    table = pd.DataFrame([[1, 2]], columns=["a", "a"])
    with pytest.raises(fp.InvalidInput, match="two columns named 'a'"):
        fp.release(table, domain={"a": [1, 2]}, epsilon=1.0)


def test_files_are_never_touched_by_failures(tmp_path):
    path, out, page = tmp_path / "in.csv", tmp_path / "out.csv", tmp_path / "report.json"
    path.write_text("c\n" + "x\n" * 10)
    options = {"domain": {"c": ["x", "y"]}, "epsilon": 1.0}
    before = path.read_bytes()
    for target, force, words in [
        (path, True, "would be written over"),
        (tmp_path, True, "must be a .csv|is a folder"),
        (tmp_path / "no" / "out.csv", False, "there is no folder"),
        (tmp_path / "out.parquet", False, "must be a .csv file"),
        (Path("/proc/out.csv"), False, "cannot write /proc/out.csv"),
    ]:
        with pytest.raises(fp.InvalidInput, match=words):
            fp.release(path, out=fp.ReleaseFile(target, overwrite=force), **options)
    with pytest.raises(fp.InvalidInput, match="would be written over"):
        fp.release(path, out=fp.ReleaseFile(out, out), **options)
    with pytest.raises(fp.InvalidInput, match="there is no folder"):
        fp.release(path, out=fp.ReleaseFile(out, tmp_path / "no" / "report.json"), **options)
    assert [p.name for p in tmp_path.iterdir()] == ["in.csv"]
    fp.release(path, out=fp.ReleaseFile(out, page), **options)
    assert json.loads(page.read_text())["records"] == 10
    with pytest.raises(fp.InvalidInput, match="exists"):
        fp.release(path, out=out, **options)
    fp.release(path, out=fp.ReleaseFile(out, page, overwrite=True), **options)
    assert path.read_bytes() == before
    if os.name == "posix":
        (tmp_path / "link.csv").symlink_to(path)
        with pytest.raises(fp.InvalidInput, match="would be written over"):
            fp.release(path, out=fp.ReleaseFile(tmp_path / "link.csv", overwrite=True), **options)


def test_progress_is_shown_on_a_terminal_only(tmp_path, monkeypatch, capsys):
    path = tmp_path / "in.csv"
    path.write_text("c\nx\n")
    for terminal in (True, False):
        monkeypatch.setattr(sys.stderr, "isatty", lambda terminal=terminal: terminal)
        out = tmp_path / f"{terminal}.csv"
        fp.release(path, domain={"c": ["x"]}, epsilon=1.0, out=fp.ReleaseFile(out, progress=True))
        assert bool(capsys.readouterr().err) == terminal


@pytest.mark.parametrize(
    "channel",
    [
        fp.Channel([[0.9, 0.1 - 1e-25, 1e-25], [0.1, 0.9, 0.0], [1 / 3, 1 / 3, 1 / 3]]),
        fp.ProductChannel([[[0.7, 0.2, 0.1], [1e-30, 0.5, 0.5], [0.1, 0.1, 0.8]]]),
        fp.PosteriorChannel(fp.Product([[0.5, 0.3, 0.2]]), 3.0),
        fp.HammingChannel(1, 3, 50.0),
    ],
)
def test_levels_are_those_of_what_is_drawn(channel):
    """Of the thresholds, as fractions of 2^64: a chance of 1e-25 is drawn as 2^-64."""
    drawn, slack = realised(channel)
    matrix = [[Fraction(float(p)) for p in row] for row in drawn.matrix()]
    nominal = np.asarray(channel.matrix())
    for x, y in product(range(3), repeat=2):
        assert abs(matrix[x][y] - Fraction(float(nominal[x, y]))) < Fraction(1, 1 << 52)
        if nominal[x, y] > 0:
            assert matrix[x][y] >= Fraction(1, 1 << 65)
    top = max(
        (matrix[x][y] / matrix[z][y] if matrix[z][y] else math.inf)
        for x, y, z in product(range(3), repeat=3)
        if matrix[x][y]
    )
    report = fp.release(np.array([0, 1, 2]), mechanism=channel, domain=3).report
    level = report.levels["dp"]
    assert level >= math.log(top) - 1e-15
    assert level <= math.log(top) + slack + 1e-12 or top == math.inf
    assert level >= fp.realised_level(channel)


def test_a_failing_disk_leaves_nothing(tmp_path, monkeypatch):
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text("c\nx\n")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fastpriv._core.files.os.fsync", full)
    with pytest.raises(fp.InvalidInput, match="No space left"):
        fp.release(path, domain={"c": ["x"]}, epsilon=1.0, out=out)
    assert [p.name for p in tmp_path.iterdir()] == ["in.csv"]
