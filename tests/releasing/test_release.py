"""Tables of every kind through fp.release: what comes out, what is refused, what is reported."""

import csv
import json
import math
import os
import re
import subprocess
import sys
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import fastpriv as fp
import oracles as o
from fastpriv.measures.realised import realised
from oracles import release as oracle

DATA = Path(__file__).parents[1] / "data"
DOMAIN = {"sex": ["F", "M"], "age": [1, 2, 3]}
PEOPLE = [{"sex": s, "age": a} for s, a in product(*DOMAIN.values())] * 50


def frame(**types):
    return pd.DataFrame(PEOPLE).astype(types)


# The mechanism.


@pytest.mark.parametrize("per_column", [False, True])
def test_records_move_with_the_chances_of_the_mechanism(per_column):
    sizes, epsilon, copies = (2, 3), 1.5, 40_000
    matrix = o.floats(o.e_d_matrix(sizes if per_column else [6], epsilon))
    for x, record in enumerate(product(range(2), range(3))):
        table = np.tile(np.array(record, dtype=np.uint8), (copies, 1))
        out = fp.release(table, domain=sizes, epsilon=epsilon, per_column=per_column, rng=x).table
        counts = np.bincount(out[:, 0] * 3 + out[:, 1], minlength=6)
        assert chisquare(counts, np.array(matrix[x]) * copies).pvalue > 1e-4


def test_chunks_do_not_repeat_their_noise(tmp_path, monkeypatch):
    monkeypatch.setattr("fastpriv.releasing.tables.csv._BLOCK", 4_000)
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text("bit\n" + "0\n" * 8_000)
    fp.release(path, domain={"bit": [0, 1]}, epsilon=0.0, out=out, rng=3, accept_useless=True)
    bits = np.array(out.read_text().split()[1:], dtype=int)
    assert 0.4 < bits.mean() < 0.6
    first, second = bits[:1990], bits[2000:3990]  # about one block of 4,000 characters each
    assert 0.4 < (first == second).mean() < 0.6


def test_a_seed_repeats_and_is_called_insecure():
    table = np.arange(1000) % 4
    one, two = (fp.release(table, domain=4, epsilon=1.0, rng=5) for _ in range(2))
    assert np.array_equal(one.table, two.table)
    assert not one.report.secure
    assert "NOT secure" in one.report.to_json()
    assert "5" not in one.report.to_dict()["randomness"]
    fresh = [fp.release(table, domain=4, epsilon=1.0) for _ in range(2)]
    assert fresh[0].report.secure
    assert not np.array_equal(fresh[0].table, fresh[1].table)


def test_distortion_is_the_expected_number_of_changes():
    table = np.zeros(200, dtype=int)
    found = fp.release(table, domain=4, distortion=30.0).report
    assert found.levels["dp"] == pytest.approx(fp.h_inverse(30.0, 200, 4))
    assert found.distortion == pytest.approx(30.0)
    assert found.counted == "records"
    cells = fp.release(np.zeros((200, 2), int), domain=[4, 2], distortion=30.0, per_column=True)
    assert cells.report.distortion == pytest.approx(30.0)
    assert cells.report.counted == "cells"
    with pytest.raises(fp.Infeasible, match="useless"):
        fp.release(table, domain=4, distortion=180.0)
    most = fp.release(table, domain=4, distortion=180.0, accept_useless=True).report
    assert most.levels["dp"] == 0.0  # pure noise changes 150
    with pytest.raises(fp.Infeasible, match="no finite level"):
        fp.release(table, domain=4, distortion=0.0)


def test_mechanisms_on_a_record_on_its_columns_and_on_the_table():
    table = np.array([[0, 0], [1, 2], [1, 1], [0, 2]], dtype=np.int16)
    flip = fp.ProductChannel([[[0, 1], [1, 0]], np.roll(np.eye(3), 1, axis=1)])  # x + 1
    moved = fp.release(table, mechanism=flip)
    assert moved.table.tolist() == [[1, 1], [0, 0], [0, 2], [1, 0]]
    assert moved.table.dtype == np.int16
    assert moved.report.levels["dp"] == math.inf
    assert json.loads(moved.report.to_json())["levels"]["dp"] == "infinite"
    whole = fp.Channel(np.roll(np.eye(6), 1, axis=1))
    assert fp.release(table, mechanism=whole, domain=[2, 3]).table.tolist() == [
        [0, 1], [0, 0], [1, 2], [1, 0]
    ]  # fmt: skip
    column = np.array([0, 2, 2])
    for channel in (
        fp.HammingChannel(3, 3, 1.0),
        fp.PosteriorChannel(fp.Product.iid([0.4, 0.3, 0.3], 3), 2.0),
        fp.PosteriorChannel(fp.Markov([0.5, 0.3, 0.2], np.full((3, 3), 1 / 3), 3), 2.0),
    ):
        found = fp.release(column, mechanism=channel)
        assert found.table.shape == (3,)
        assert found.report.levels["dp"] >= fp.dp_level(channel)
    one = fp.PosteriorChannel(fp.Product([[0.4, 0.3, 0.3]]), 2.0)
    report = fp.release(column, mechanism=one).report
    assert report.levels_under_prior["identifiability"] == pytest.approx(2.0)
    assert report.prior.startswith("given: ")
    with pytest.raises(fp.InvalidInput, match="does not fit"):
        fp.release(column, mechanism=fp.HammingChannel(5, 3, 1.0), domain=3)
    with pytest.raises(fp.InvalidInput, match="not databases"):
        fp.release(column, mechanism=fp.Channel([[1.0]] * 3))
    with pytest.raises(fp.InvalidInput, match="not databases"):
        fp.release(column, mechanism=fp.QueryChannel([1, 2, 0], np.eye(3), [3]))


# The report.


@settings(max_examples=30, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    epsilon=st.floats(0.01, 6.0),
    per_column=st.booleans(),
    seed=st.integers(0, 99),
    uniform=st.booleans(),
)
def test_levels_are_those_of_the_definition(sizes, epsilon, per_column, seed, uniform):
    size, n = math.prod(sizes), 7
    law = np.random.default_rng(seed).dirichlet(np.ones(size)) if not uniform else np.ones(size)
    law = law / law.sum()
    table = np.zeros((n, len(sizes)), dtype=int)
    given = {} if uniform else {"prior": law}
    given["split"] = None if per_column else "record"
    report = fp.release(table, domain=sizes, epsilon=epsilon, per_column=per_column, **given).report
    matrix = o.floats(o.e_d_matrix(sizes if per_column else [size], epsilon))
    expected = oracle.levels(matrix, law)
    found = report.levels | report.levels_under_prior
    close = {"rel": 1e-9, "abs": 1e-12}
    for name, level in expected.items():
        if name == "identifiability" and per_column:
            assert found[name] >= level - 1e-12  # a bound where columns go by themselves
            assert found[name] <= expected["dp"] + np.ptp(np.log(law)) + 1e-9
        elif name in ("dp", "identifiability"):
            assert found[name] == pytest.approx(level, **close)
        else:
            assert found[f"record-{name}"] == pytest.approx(level, **close)
            assert found[name] == pytest.approx(n * level, **close)
    assert found["strong-dp"] == pytest.approx(n * expected["dp"], **close)


def test_the_realised_distortion_stays_private():
    table = np.arange(500) % 5
    found = fp.release(table, domain=5, epsilon=1.0)
    changed = int((found.table != table).sum())
    assert found.report.private == {"changed records": changed}
    for text in (repr(found), repr(found.report), str(found.report), found.report.to_json()):
        assert str(changed) not in re.findall(r"[\d.]+", text)  # as a number, not as digits of one
        assert "private" not in text


def test_levels_of_a_table_prior():
    prior = fp.Markov([0.6, 0.4], [[0.9, 0.1], [0.2, 0.8]], 6)
    report = fp.release(np.zeros(6, int), domain=2, epsilon=1.0, prior=prior).report
    channel = fp.HammingChannel(6, 2, 1.0)
    under = report.levels_under_prior
    assert under["mutual-information"] == pytest.approx(fp.mutual_information(channel, prior))
    assert under["identifiability"] == fp.identifiability_level(channel, prior)
    with pytest.raises(fp.InvalidInput, match="prior is on"):
        fp.release(np.zeros(6, int), domain=2, epsilon=1.0, prior=fp.Uniform(1, 3))


def test_levels_of_a_long_chain_are_bracketed():
    long = fp.Markov([0.6, 0.4], [[0.9, 0.1], [0.2, 0.8]], 60)
    report = fp.release(np.zeros(60, int), domain=2, epsilon=1.0, prior=long).report
    channel = fp.HammingChannel(60, 2, 1.0)
    assert float(report.levels_under_prior["pml"]) >= fp.pml_level(channel, long).lower
    bracket = report.to_dict()["levels under the prior"]["mutual-information"]
    assert set(bracket) == {"lower", "upper"}


def test_levels_at_the_ends():
    for epsilon in (0.0, 1e-8, 700.0):
        table = np.zeros(50, int)
        report = fp.release(table, domain=3, epsilon=epsilon, accept_useless=True).report
        numbers = [*report.levels.values(), *report.levels_under_prior.values()]
        assert all(0.0 <= level < math.inf for level in numbers)
        assert report.levels["dp"] <= epsilon
    assert 44.0 < report.levels["dp"] < 44.4  # 64 bits tell no more
    assert report.distortion == pytest.approx(50 * 2 * 2.0**-64)
    alone = fp.release(np.zeros(50, int), domain=1, epsilon=2.0)
    assert alone.table.tolist() == [0] * 50
    assert alone.report.levels["dp"] == 0.0
    many = fp.release(np.zeros(3, int), domain=1 << 16, epsilon=1.0).report
    top = many.levels_under_prior["record-pml"]
    assert top == pytest.approx(many.levels["record-maximal-leakage"], rel=1e-9)


# Kinds of tables.


def test_frames_keep_columns_types_and_index():
    table = frame(sex="category", age="int8")
    table.index = pd.Index([f"person {k}" for k in range(len(table))], name="id")
    domain = {"age": [1, 2, 3], "sex": ["F", "M"]}
    found = fp.release(table, domain=domain, epsilon=700.0)
    pd.testing.assert_frame_equal(found.table, table)
    assert any("index" in note for note in found.report.notes)
    noisy = fp.release(table, domain=domain, epsilon=0.0, accept_useless=True).table
    assert list(noisy.dtypes) == list(table.dtypes)
    assert set(noisy["sex"]) == {"F", "M"}


def test_categories_that_would_tell_which_values_occurred_are_replaced():
    table = pd.DataFrame({"c": pd.Categorical(["a", "b", "a"], ["a", "b"])})
    out = fp.release(table, domain={"c": ["z", "a", "b"]}, epsilon=700.0).table
    assert list(out["c"].cat.categories) == ["z", "a", "b"]
    assert list(out["c"]) == ["a", "b", "a"]


def test_types_that_cannot_hold_the_domain_give_way_to_one_that_can():
    table = pd.DataFrame({"c": np.array([0, 1, 1], dtype=np.int64)})
    out = fp.release(
        table, domain={"c": [0, 1, None]}, epsilon=0.0, rng=0, accept_useless=True
    ).table
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
    fp.release(path, domain={"c": [None, 1, 2]}, epsilon=700.0, out=out, overwrite=True)
    assert pq.read_table(out).to_pydict() == {"c": [1, None, 2]}
    assert pq.read_schema(out).field("c").type == pa.int16()
    with pytest.raises(fp.InvalidInput, match="cannot hold"):
        fp.release(path, domain={"c": [None, 1, 2, "x"]}, epsilon=1.0, out=out, overwrite=True)
    with pytest.raises(fp.InvalidInput, match=r"record 2 .* a missing value in column 'c'"):
        fp.release(path, domain={"c": [1, 2]}, epsilon=1.0, out=out, overwrite=True)
    path.write_bytes(b"PAR1 not really")
    with pytest.raises(fp.InvalidInput, match="cannot read"):
        fp.release(path, domain=DOMAIN, epsilon=1.0, out=out, overwrite=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.parquet", "out.parquet"]


def test_parquet_that_cannot_be_read(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    options = {"epsilon": 1.0, "out": out}
    known = [{"domain": {"c": ["x", "y"]}}, {"accept_domain_from_data": True}]
    parquet.write_table(arrow.table({"c": ["x", "y"]}), path)
    pages = bytearray(path.read_bytes())
    pages[8:40] = b"\xff" * 32
    path.write_bytes(pages)
    for domain in known:
        with pytest.raises(fp.InvalidInput, match=r"cannot read .*in\.parquet"):
            fp.release(path, **domain, **options)
    parquet.write_table(arrow.table({"c": [["x"], ["y"]]}), path)
    with pytest.raises(fp.InvalidInput, match="only columns of plain values"):
        fp.release(path, accept_domain_from_data=True, **options)
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
    with pytest.raises(fp.InvalidInput, match="both written '1'"):
        fp.release(path, domain={"c": [1, "1"]}, epsilon=1.0, out=out, overwrite=True)


def test_pandas_and_pyarrow_stay_optional(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("c\n0\n1\n")
    code = f"""
import sys
sys.modules["pandas"] = sys.modules["pyarrow"] = sys.modules["tqdm"] = None
import numpy as np, fastpriv as fp
fp.release(np.zeros(9, int), domain=2, epsilon=1.0)
out = {str(path) + "2.csv"!r}
found = fp.release({str(path)!r}, domain={{"c": [0, 1]}}, epsilon=1.0, out=out, progress=True)
fp.estimate_frequencies(found)
try:
    fp.release({str(path)[:-4] + ".parquet"!r}, domain={{"c": [0]}}, epsilon=1.0, out="x.parquet")
except ImportError as problem:
    print(problem)
"""
    (tmp_path / "in.parquet").write_bytes(b"")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'fastpriv[tables]'" in done.stdout


# What is refused.


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
        ([], {"domain": DOMAIN, "epsilon": 1.0}, "has records"),
        (np.zeros(0, int), {"domain": 2, "epsilon": 1.0}, "no records"),
        (np.array([0, 2, 5]), {"domain": 2, "epsilon": 1.0}, "record 2 .*2 such records"),
        (np.array([0, -1]), {"domain": 2, "epsilon": 1.0}, "record 2 .* has a code in column"),
        (np.array([0.5]), {"domain": 2, "epsilon": 1.0}, "integer codes"),
        (np.zeros((2, 2), int), {"domain": 2, "epsilon": 1.0}, "2 columns, the domain 1"),
        (np.zeros(2, np.int8), {"domain": 1000, "epsilon": 1.0}, "do not fit into int8"),
        ("missing.csv", {"domain": 2, "epsilon": 1.0, "out": "x.csv"}, "no file missing.csv"),
        ("table.xls", {"domain": 2, "epsilon": 1.0, "out": "x.xls"}, "or .parquet file"),
        (7, {"domain": 2, "epsilon": 1.0}, "a table is"),
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
            fp.release(table, accept_domain_from_data=True, epsilon=1.0)


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
    found = fp.release(table, domain=DOMAIN, epsilon=1.0, drop_undeclared=True)
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
        with pytest.raises(fp.InvalidInput, match="accept_domain_from_data"):
            fp.release(table, epsilon=1.0, **options)
        found = fp.release(table, epsilon=1.0, accept_domain_from_data=True, **options).report
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
            fp.release(path, out=target, overwrite=force, **options)
    with pytest.raises(fp.InvalidInput, match="would be written over"):
        fp.release(path, out=out, report=out, **options)
    with pytest.raises(fp.InvalidInput, match="there is no folder"):
        fp.release(path, out=out, report=tmp_path / "no" / "report.json", **options)
    assert [p.name for p in tmp_path.iterdir()] == ["in.csv"]
    fp.release(path, out=out, report=page, **options)
    assert json.loads(page.read_text())["records"] == 10
    with pytest.raises(fp.InvalidInput, match="exists"):
        fp.release(path, out=out, **options)
    fp.release(path, out=out, report=page, overwrite=True, **options)
    assert path.read_bytes() == before
    if os.name == "posix":
        (tmp_path / "link.csv").symlink_to(path)
        with pytest.raises(fp.InvalidInput, match="would be written over"):
            fp.release(path, out=tmp_path / "link.csv", overwrite=True, **options)


def test_progress_is_shown_on_a_terminal_only(tmp_path, monkeypatch, capsys):
    path = tmp_path / "in.csv"
    path.write_text("c\nx\n")
    for terminal in (True, False):
        monkeypatch.setattr(sys.stderr, "isatty", lambda terminal=terminal: terminal)
        out = tmp_path / f"{terminal}.csv"
        fp.release(path, domain={"c": ["x"]}, epsilon=1.0, out=out, progress=True)
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
