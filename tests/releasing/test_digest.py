"""A report recognises the table that was released, and estimates refuse any other."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

import fastpriv as fp
from fastpriv.releasing.domain import Digest

DOMAIN = {"sex": ["F", "M"], "region": ["north", "south", "west"], "age": [20, 30, 40, None]}
N = 600


def people(n=N, seed=1):
    rng = np.random.default_rng(seed)
    columns = {name: rng.integers(0, len(values), n) for name, values in DOMAIN.items()}
    frame = pd.DataFrame({name: np.array(DOMAIN[name], object)[c] for name, c in columns.items()})
    return frame.astype({"age": "Int64"})


def released(**options):
    return fp.release(people(), domain=DOMAIN, epsilon=6.0, rng=3, **options)


def records(frame):
    given = frame.astype(object).where(frame.notna(), None)
    return given.to_dict("records")


def test_the_digest_is_the_sum_of_mixed_words():
    """The definition, in integers of any size, one record at a time."""
    import hashlib

    def mixed(word):
        for shift, multiplier in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            word = (word ^ (word >> shift)) * multiplier % 2**64
        return word ^ (word >> 31)

    digits = np.random.default_rng(5).integers(0, 1000, (50, 3))
    text = hashlib.shake_256(b"key").digest(32)
    words = [int.from_bytes(text[8 * k : 8 * k + 8], "little") for k in range(4)]
    expected = 0
    for row in digits.tolist():
        linear = words[0] + sum(word * code for word, code in zip(words[1:], row, strict=True))
        expected += mixed(linear % 2**64)
    assert Digest(b"key").plus(digits).total == expected % 2**64


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint32, np.int64, np.uint64])
def test_parts_order_and_types_do_not_matter_for_the_digest(dtype, monkeypatch):
    digits = np.random.default_rng(5).integers(0, 100, (500, 4))
    whole = Digest(b"key").plus(digits)
    shuffled = np.random.default_rng(6).permutation(digits).astype(dtype)
    parts = [Digest(b"key").plus(part) for part in np.array_split(np.asfortranarray(shuffled), 7)]
    total = Digest(b"key")
    for part in parts:
        total = total.joined(part)
    assert total == whole
    monkeypatch.setattr("fastpriv.releasing.domain._CHUNK", 33)
    assert Digest(b"key").plus(shuffled) == whole
    assert Digest(b"other").plus(digits).total != whole.total


@pytest.mark.parametrize("change", ["value", "swap", "twice", "pairing"])
def test_any_change_of_the_records_changes_the_digest(change):
    digits = np.random.default_rng(5).integers(0, 3, (500, 2))
    other = digits.copy()
    if change == "value":
        other[17, 1] = (other[17, 1] + 1) % 3
    elif change == "swap":
        other = other[:, ::-1]
    elif change == "twice":
        other[0] = other[np.flatnonzero((digits != digits[0]).any(axis=1))[0]]
    else:  # all counts of single columns stay
        other[:, 1] = np.roll(other[:, 1], 1)
    assert Digest(b"key").plus(digits) != Digest(b"key").plus(other)


def converted(kind, table, folder):
    """The same released table, as other programs would hand it back."""
    shuffled = table.sample(frac=1.0, random_state=4)[list(table.columns[::-1])]
    if kind == "frame":
        return shuffled
    if kind == "records":
        return records(shuffled)
    if kind == "csv":
        shuffled.to_csv(folder / "table.csv", index=False)
        return folder / "table.csv"
    if kind == "csv.gz":
        shuffled.to_csv(folder / "table.csv.gz", index=False)
        return folder / "table.csv.gz"
    if kind == "parquet":
        shuffled.to_parquet(folder / "table.parquet", index=False)
        return folder / "table.parquet"
    if kind == "folder":
        (folder / "table").mkdir()
        for k, part in enumerate(np.array_split(np.arange(len(table)), 3)):
            shuffled.iloc[part].to_parquet(folder / "table" / f"{k}.parquet", index=False)
        return folder / "table"
    if kind == "arrow":
        return pytest.importorskip("pyarrow").Table.from_pandas(shuffled, preserve_index=False)
    if kind == "polars":
        return pytest.importorskip("polars").DataFrame(records(shuffled))
    return pytest.importorskip("dask.dataframe").from_pandas(shuffled, npartitions=3)


KINDS = ["frame", "records", "csv", "csv.gz", "parquet", "folder", "arrow", "polars"]


@pytest.mark.parametrize("kind", [*KINDS, pytest.param("dask", marks=pytest.mark.slow)])
@pytest.mark.parametrize("split", ["columns", "record"])
def test_the_released_table_is_recognised_in_any_order_and_format(kind, split, tmp_path):
    given = released(split=split)
    report = fp.ReleaseReport.from_json(given.report.to_json())
    same = fp.estimate_frequencies(converted(kind, given.table, tmp_path), report)
    for name, column in fp.estimate_frequencies(given).columns.items():
        assert np.array_equal(same[name].estimates, column.estimates)


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "csv.gz"])
def test_reports_of_local_mechanisms_are_recognised_too(kind, tmp_path):
    epsilons = {"sex": 2.0, "region": 0.5, "age": 0.5}
    given = fp.release(people(), domain=DOMAIN, epsilon=epsilons, mechanism="hashing", rng=3)
    table = converted(kind, given.table, tmp_path)
    report = fp.ReleaseReport.from_json(given.report.to_json())
    for chosen in (None, ["region"]):
        same = fp.estimate_frequencies(table, report, columns=chosen)
        assert same["region"].estimates.tolist() == pytest.approx(
            fp.estimate_frequencies(given)["region"].estimates.tolist()
        )
    changed = records(given.table)
    changed[0]["age"] = next(r["age"] for r in changed if r["age"] != changed[0]["age"])
    with pytest.raises(fp.InvalidInput, match="not the one that was released"):
        fp.estimate_frequencies(changed, report, columns=["region"])


@pytest.mark.parametrize("mechanism", ["auto", "subset-selection", "unary", "hadamard"])
def test_every_local_mechanism_recognises_its_codes(mechanism):
    codes = np.random.default_rng(2).integers(0, 12, (300, 2))
    given = fp.release(codes, domain=[12, 12], epsilon=4.0, mechanism=mechanism)
    assert fp.estimate_frequencies(given).n == 300
    with pytest.raises(fp.InvalidInput, match=r"records differ|messages of"):
        fp.estimate_frequencies(codes, given.report)


@pytest.mark.parametrize("form", ["report", "json"])
def test_other_tables_are_refused(form):
    given = released()
    report = (
        given.report if form == "report" else fp.ReleaseReport.from_json(given.report.to_json())
    )
    table = given.table
    for other in (
        people(),
        people(seed=2),
        table.assign(sex="F"),
        released().table.assign(sex="M"),
    ):
        with pytest.raises(fp.InvalidInput, match="not the one that was released"):
            fp.estimate_frequencies(other, report)
    for part in (table[:-1], pd.concat([table, table[:1]])):
        with pytest.raises(fp.InvalidInput, match="records, but the report is of a release of 600"):
            fp.estimate_frequencies(part, report)
    again = fp.release(people(), domain=DOMAIN, epsilon=6.0)
    with pytest.raises(fp.InvalidInput, match="not the one that was released"):
        fp.estimate_frequencies(again.table, report)


def test_part_of_a_table_is_estimated_on_purpose():
    given = released(split="columns")
    part = fp.estimate_frequencies(given.table[:500], given.report.channel, domain=DOMAIN)
    assert part.n == 500


def test_reports_without_a_digest_still_work():
    given = released()
    document = json.loads(given.report.to_json())
    assert set(document["digest"]) == {"key", "sum"}
    del document["digest"]
    old = fp.ReleaseReport.from_json(json.dumps(document))
    assert old.digest is None
    assert fp.estimate_frequencies(given.table, old).n == N
    preview = fp.preview_release(N, domain=DOMAIN, epsilon=6.0)
    assert preview.digest is None
    assert "digest" not in preview.to_dict()


@pytest.mark.parametrize("digest", [1, [], {}, {"key": "zz", "sum": "0"}, {"key": "00", "sum": []}])
def test_a_damaged_digest_is_refused(digest):
    document = {**json.loads(released().report.to_json()), "digest": digest}
    with pytest.raises(fp.InvalidInput, match="is no report"):
        fp.ReleaseReport.from_json(json.dumps(document))


def test_the_key_is_drawn_anew_and_seeded_tables_stay_the_same():
    one, two = released(), released()
    assert one.table.equals(two.table)
    assert one.report == two.report
    assert one.report.digest.key != two.report.digest.key


@pytest.mark.slow
def test_a_lazy_release_is_recognised_and_the_original_refused():
    dd = pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(people(), npartitions=3)
    given = fp.release(frame, domain=DOMAIN, epsilon=6.0)
    assert fp.estimate_frequencies(given).n == N
    assert fp.estimate_frequencies(given.table.compute(), given.report).n == N
    with pytest.raises(fp.InvalidInput, match="not the one that was released"):
        fp.estimate_frequencies(frame, given.report)


# Estimates that no table of this mechanism has.


def test_estimates_far_outside_the_possible_counts_are_a_warning():
    raw = np.repeat([0, 1, 2], [9_000, 900, 100])
    with pytest.warns(fp.EstimateWarning, match="did not go through this mechanism"):
        fp.estimate_frequencies(raw, fp.HammingChannel(1, 3, 1.0), domain=3)
    reports = np.ones((2_000, 5), dtype=np.uint8)
    with pytest.warns(fp.EstimateWarning, match="outside 0 .. 2,000"):
        fp.estimate_frequencies(reports, fp.UnaryChannel(5, 1.0))


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 40.0])
def test_estimates_of_released_tables_are_no_warning(epsilon):
    truth = np.repeat([0, 1], [1_000, 0]).astype(np.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in range(20):
            given = fp.release(truth, domain=50, epsilon=epsilon, rng=seed, accept="useless")
            part = fp.estimate_frequencies(given)[0]
            assert (part.lower <= part.upper).all()


def test_an_estimate_outside_its_interval_is_said_to_be():
    truth = np.zeros(1_000, dtype=np.int64)
    found = fp.estimate_frequencies(fp.release(truth, domain=4, epsilon=1.0, rng=1))
    part = found[0]
    assert part.outside.any()
    assert (part.outside == ((part.estimates < part.lower) | (part.estimates > part.upper))).all()
    for text in (str(found), repr(part)):
        rows = text.splitlines()[-4:]
        assert ["outside its interval" in row for row in rows] == part.outside.tolist()
    assert found.to_dict()["columns"]["0"]["outside"] == part.outside.tolist()
