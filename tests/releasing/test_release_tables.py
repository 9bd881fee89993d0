"""Kinds of tables through fp.release: columns, types, blocks of files and values come back."""

import csv
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
from release_cases import DOMAIN, PEOPLE, frame


def test_frames_keep_columns_types_and_index():
    table = frame(sex="category", age="int8")
    table.index = pd.Index([f"person {k}" for k in range(len(table))], name="id")
    domain = {"age": [1, 2, 3], "sex": ["F", "M"]}
    found = fp.release(table, domain=domain, epsilon=700.0)
    pd.testing.assert_frame_equal(found.table, table)
    assert any("index" in note for note in found.report.notes)
    noisy = fp.release(table, domain=domain, epsilon=0.0, accept="useless").table
    assert list(noisy.dtypes) == list(table.dtypes)
    assert set(noisy["sex"]) == {"F", "M"}


def test_categories_that_would_tell_which_values_occurred_are_replaced():
    table = pd.DataFrame({"c": pd.Categorical(["a", "b", "a"], ["a", "b"])})
    out = fp.release(table, domain={"c": ["z", "a", "b"]}, epsilon=700.0).table
    assert list(out["c"].cat.categories) == ["z", "a", "b"]
    assert list(out["c"]) == ["a", "b", "a"]


def test_types_that_cannot_hold_the_domain_give_way_to_one_that_can():
    table = pd.DataFrame({"c": np.array([0, 1, 1], dtype=np.int64)})
    out = fp.release(table, domain={"c": [0, 1, None]}, epsilon=0.0, rng=0, accept="useless").table
    assert out["c"].dtype == np.float64
    assert set(out["c"].dropna()) <= {0.0, 1.0}


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([True, False], "bool"),
        ([True, None, False], "boolean"),
        ([0.5, None, 1.5], "float64"),
        ([1, None, 2], "Int64"),
        (["x", None, "é"], "str"),
        (["x", None, 3], "object"),
        ([pd.Timestamp("2020-01-01"), pd.Timestamp("2021-01-01")], "datetime64[ns]"),
    ],
)
def test_frame_types_come_back(values, dtype):
    table = pd.DataFrame({"c": pd.Series(values * 4, dtype=dtype)})
    out = fp.release(table, domain={"c": values}, epsilon=700.0).table
    pd.testing.assert_frame_equal(out, table)


def test_lists_of_records_and_of_codes():
    found = fp.release(PEOPLE, domain=DOMAIN, epsilon=700.0)
    assert found.table == PEOPLE
    assert fp.release([0, 1, 1], domain=2, epsilon=700.0).table.tolist() == [0, 1, 1]
    with pytest.raises(fp.InvalidInput, match=r"record 2 \(index 1\) and the first differ in 'b'"):
        fp.release([{"a": 1}, {"a": 1, "b": 2}], domain={"a": [1]}, epsilon=1.0)


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.uint64, bool])
@pytest.mark.parametrize("shape", [(40,), (20, 2)])
def test_arrays_keep_their_type(dtype, shape):
    table = (np.arange(40).reshape(shape) % 2).astype(dtype)
    sizes = 2 if len(shape) == 1 else [2, 2]
    out = fp.release(table, domain=sizes, epsilon=700.0).table
    assert out.dtype == dtype
    assert np.array_equal(out, table)
    fp.estimate_frequencies(out, fp.HammingChannel(len(shape), 2, 700.0), domain=sizes)


def test_parquet(tmp_path):
    path, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    table = frame(sex="category")
    table.to_parquet(path)
    found = fp.release(path, domain=DOMAIN, epsilon=700.0, out=out)
    assert found.table == out
    back = pq.read_table(out)
    assert back.to_pylist() == PEOPLE
    assert back.schema.metadata is None  # nothing about the data travels beside it
    assert pa.types.is_dictionary(back.schema.field("sex").type)
    pq.write_table(pa.table({"c": pa.array([1, None, 2], pa.int16())}), path)
    fp.release(
        path, domain={"c": [None, 1, 2]}, epsilon=700.0, out=fp.ReleaseFile(out, overwrite=True)
    )
    assert pq.read_table(out).to_pydict() == {"c": [1, None, 2]}
    assert pq.read_schema(out).field("c").type == pa.int16()
    with pytest.raises(fp.InvalidInput, match="able to hold"):
        fp.release(
            path,
            domain={"c": [None, 1, 2, "x"]},
            epsilon=1.0,
            out=fp.ReleaseFile(out, overwrite=True),
        )
    with pytest.raises(fp.InvalidInput, match=r"record 2 .* a missing value in column 'c'"):
        fp.release(path, domain={"c": [1, 2]}, epsilon=1.0, out=fp.ReleaseFile(out, overwrite=True))
    path.write_bytes(b"PAR1 not really")
    with pytest.raises(fp.InvalidInput, match="cannot read"):
        fp.release(path, domain=DOMAIN, epsilon=1.0, out=fp.ReleaseFile(out, overwrite=True))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.parquet", "out.parquet"]


def test_parquet_that_cannot_be_read(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    options = {"epsilon": 1.0, "out": out}
    known = [{"domain": {"c": ["x", "y"]}}, {"accept": "domain-from-data"}]
    parquet.write_table(arrow.table({"c": ["x", "y"]}), path)
    pages = bytearray(path.read_bytes())
    pages[8:40] = b"\xff" * 32
    path.write_bytes(pages)
    for domain in known:
        with pytest.raises(fp.InvalidInput, match=r"cannot read .*in\.parquet"):
            fp.release(path, **domain, **options)
    parquet.write_table(arrow.table({"c": [["x"], ["y"]]}), path)
    with pytest.raises(fp.InvalidInput, match="must hold plain values"):
        fp.release(path, accept="domain-from-data", **options)
    assert [p.name for p in tmp_path.iterdir()] == ["in.parquet"]


def test_csv_with_everything_that_csv_allows(tmp_path):
    values = [
        "plain",
        "with, comma",
        'with "quotes"',
        "two\nlines",
        "crlf\r\ninside",
        " é\u2028 ",
        "",
    ]
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    with open(path, "w", newline="", encoding="utf-8-sig") as stream:
        writer = csv.writer(stream)
        writer.writerow(["a, name", "n"])
        writer.writerows([value, k % 2] for k, value in enumerate(values * 3))
    domain = {"n": [0, 1], "a, name": [v or None for v in values]}
    fp.release(path, domain=domain, epsilon=700.0, out=out)
    with open(out, newline="", encoding="utf-8") as stream:
        rows = list(csv.reader(stream))
    assert rows == [["a, name", "n"], *([v, str(k % 2)] for k, v in enumerate(values * 3))]


@pytest.mark.search(every=10)
@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(
        st.tuples(*[st.text(st.sampled_from('a,"\n\r ;é'), max_size=4)] * 2), min_size=1, max_size=8
    ),
    block=st.integers(1, 40),
)
def test_any_text_survives_any_block_size(rows, block, tmp_path_factory):
    folder = tmp_path_factory.mktemp("csv")
    path, out = folder / "in.csv", folder / "out.csv"
    with open(path, "w", newline="", encoding="utf-8") as stream:
        csv.writer(stream, quoting=csv.QUOTE_ALL).writerows([("a", "b"), *rows])
    domain = {name: sorted({row[j] for row in rows}) for j, name in enumerate("ab")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fastpriv.releasing.tables.csv._BLOCK", block)
        fp.release(path, domain=domain, epsilon=700.0, out=out)
    with open(out, newline="", encoding="utf-8") as stream:
        assert [tuple(row) for row in csv.reader(stream)] == [("a", "b"), *rows]


def test_csv_of_more_records_than_are_spelt_out(tmp_path, monkeypatch):
    monkeypatch.setattr("fastpriv.releasing.tables.csv._REMEMBERED", 5)
    monkeypatch.setattr("fastpriv.releasing.tables.csv._BLOCK", 50)
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text("a,b\n" + "".join(f"{k % 4},{k % 3}\n" for k in range(100)))
    fp.release(path, domain={"a": [0, 1, 2, 3], "b": [0, 1, 2]}, epsilon=700.0, out=out)
    assert out.read_text() == path.read_text()


def test_values_of_a_csv_are_what_str_writes(tmp_path):
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text("c\nTrue\n1\n0.5\n2.0\n")
    fp.release(path, domain={"c": [True, "1", 0.5, 2.0]}, epsilon=700.0, out=out)
    assert out.read_text() == path.read_text()
    with pytest.raises(fp.InvalidInput, match="two are written '1'"):
        fp.release(
            path, domain={"c": [1, "1"]}, epsilon=1.0, out=fp.ReleaseFile(out, overwrite=True)
        )


@pytest.mark.slow
def test_pandas_and_pyarrow_stay_optional(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("c\n0\n1\n")
    code = f"""
import sys
sys.modules["pandas"] = sys.modules["pyarrow"] = sys.modules["tqdm"] = None
import numpy as np, fastpriv as fp
fp.release(np.zeros(9, int), domain=2, epsilon=1.0)
out = {str(path) + "2.csv"!r}
files = fp.ReleaseFile(out, progress=True)
found = fp.release({str(path)!r}, domain={{"c": [0, 1]}}, epsilon=1.0, out=files)
fp.estimate_frequencies(found)
try:
    fp.release({str(path)[:-4] + ".parquet"!r}, domain={{"c": [0]}}, epsilon=1.0, out="x.parquet")
except ImportError as problem:
    print(problem)
"""
    (tmp_path / "in.parquet").write_bytes(b"")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'fastpriv[tables]'" in done.stdout
