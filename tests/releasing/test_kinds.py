"""Tables of every package come back as what they were; no error shows what they hold."""

import gzip

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fastpriv as fp

DOMAIN = {"sex": ["F", "M"], "age": [1, 2, 3]}
DATA = {"sex": ["F", "M", "M", "F"] * 30, "age": [1, 2, 3, 1] * 30}
CERTAIN = {"domain": DOMAIN, "epsilon": 700.0}


def test_arrow_tables():
    table = pa.table(DATA)
    assert fp.release(table, **CERTAIN).table.equals(table)
    batch = pa.RecordBatch.from_pydict(DATA)
    assert fp.release(batch, **CERTAIN).table.to_pydict() == DATA
    chunked = pa.concat_tables([table, table])
    assert fp.release(chunked, **CERTAIN).table.to_pydict() == chunked.to_pydict()
    coded = pa.table({"sex": pa.array(DATA["sex"]).dictionary_encode(), "age": DATA["age"]})
    assert fp.release(coded, **CERTAIN).table.to_pydict() == DATA


def test_polars_frames_and_series():
    frame = pl.DataFrame(DATA)
    released = fp.release(frame, **CERTAIN).table
    assert isinstance(released, pl.DataFrame)
    assert released.equals(frame)
    series = pl.Series("sex", DATA["sex"])
    column = fp.release(series, domain={"sex": ["F", "M"]}, epsilon=700.0).table
    assert column.equals(series)
    assert column.name == "sex"


def test_series_of_pandas():
    series = pd.Series(DATA["sex"], name="sex")
    released = fp.release(series, domain={"sex": ["F", "M"]}, epsilon=700.0)
    pd.testing.assert_series_equal(released.table, series)
    assert fp.estimate_frequencies(released)["sex"].estimates.sum() == pytest.approx(120.0)


def test_missing_values_keep_their_place():
    data = {"c": ["a", None, "b", "a"]}
    for table in (pa.table(data), pl.DataFrame(data)):
        released = fp.release(table, domain={"c": ["a", "b", None]}, epsilon=700.0).table
        assert (
            released.to_dict(as_series=False) == data
            if isinstance(released, pl.DataFrame)
            else released.to_pydict() == data
        )


def test_compressed_files(tmp_path):
    text = "sex,age\n" + "F,1\nM,3\n" * 60
    source, out, plain = (tmp_path / name for name in ("in.csv.gz", "out.csv.gz", "out.csv"))
    source.write_bytes(gzip.compress(text.encode()))
    fp.release(source, **CERTAIN, out=out)
    assert gzip.decompress(out.read_bytes()).decode() == text
    fp.release(source, **CERTAIN, out=plain)
    assert plain.read_text() == text
    assert fp.estimate_frequencies(out, fp.HammingChannel(1, 6, 700.0), domain=DOMAIN).n == 120
    source.write_bytes(gzip.compress(text.encode())[:-20])
    with pytest.raises(fp.InvalidInput, match="not a whole gzip file"):
        fp.release(source, **CERTAIN, out=tmp_path / "other.csv")
    assert not (tmp_path / "other.csv").exists()


SECRET = "hunter2-hiv-positive"


def wrong_tables():
    values = ["no", SECRET, "yes"]
    yield "series", pd.Series(values, name="hiv")
    yield "frame", pd.DataFrame({"hiv": values})
    yield "records", [{"hiv": value} for value in values]
    yield "polars", pl.DataFrame({"hiv": values})
    yield "arrow", pa.table({"hiv": values})
    yield "list", values
    yield "tuple of mappings and text", ({"hiv": "no"}, SECRET)
    yield "set", {SECRET}
    yield "text array", np.array(values)
    yield "object array", np.array([{SECRET: 1}], dtype=object)
    yield "nested", pd.DataFrame({"hiv": [[SECRET]]})
    yield "nested arrow", pa.table({"hiv": [[SECRET]]})
    yield "mapping", {"hiv": values}
    yield "odd records", [{"hiv": "no"}, {"hiv": SECRET, "age": 3}]


@pytest.mark.parametrize(
    ("kind", "table"), list(wrong_tables()), ids=lambda v: v if isinstance(v, str) else ""
)
@pytest.mark.parametrize("domain", [{"hiv": ["no", "yes"]}, None, [2], {"other": ["no"]}])
def test_no_error_shows_a_value_of_the_table(kind, table, domain):
    with pytest.raises(fp.FastprivError) as refused:
        fp.release(table, domain=domain, epsilon=1.0)
    assert SECRET not in str(refused.value)
    assert "hunter2" not in repr(refused.value)
    with pytest.raises(fp.FastprivError) as refused:
        fp.estimate_frequencies(table, fp.HammingChannel(1, 2, 1.0), domain=domain)
    assert "hunter2" not in repr(refused.value)


@pytest.mark.parametrize(
    "text", [f"hiv\nno\n{SECRET}\n", f'hiv\n"{SECRET}\n', f"hiv,age\n{SECRET}\n"]
)
def test_no_error_shows_a_value_of_a_file(tmp_path, text):
    path = tmp_path / "in.csv"
    path.write_text(text)
    with pytest.raises(fp.FastprivError) as refused:
        fp.release(path, domain={"hiv": ["no", "yes"]}, epsilon=1.0, out=tmp_path / "out.csv")
    assert "hunter2" not in str(refused.value)
