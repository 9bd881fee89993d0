"""Folders of Parquet files are one table."""

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import fastpriv as fp

DOMAIN = {"sex": ["F", "M"], "age": [1, 2, 3]}


@pytest.fixture
def folder(tmp_path):
    """Twelve files of 1 .. 12 records, and one of none; part.10 comes after part.9."""
    path, rng = tmp_path / "people", np.random.default_rng(2)
    path.mkdir()
    for k in range(13):
        data = {"sex": rng.choice(["F", "M"], k).astype(str), "age": rng.integers(1, 4, k)}
        pd.DataFrame(data).astype({"sex": "str"}).to_parquet(path / f"part.{k}.parquet")
    (path / "_SUCCESS").touch()
    return path


def records(path):
    files = sorted(path.glob("*.parquet"), key=lambda f: int("".join(filter(str.isdigit, f.stem))))
    return [pd.read_parquet(file) for file in files]


def test_files_come_out_as_they_went_in(folder, tmp_path):
    out, report = tmp_path / "released", tmp_path / "report.json"
    released = fp.release(folder, domain=DOMAIN, epsilon=700.0, out=fp.ReleaseFile(out, report))
    assert released.table == out
    assert released.report.n == 78
    for before, after in zip(records(folder), records(out), strict=True):
        pd.testing.assert_frame_equal(before, after)
    assert sorted(file.name for file in out.iterdir())[:2] == [
        "part-00000.parquet",
        "part-00001.parquet",
    ]
    assert pq.read_schema(out / "part-00001.parquet").metadata is None
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []


def test_estimates_equal_those_of_one_frame(folder, tmp_path):
    out = tmp_path / "released"
    released = fp.release(folder, domain=DOMAIN, epsilon=1.0, out=out, rng=3)
    whole = pd.concat(records(out), ignore_index=True)
    there = fp.estimate_frequencies(released, columns=["sex", "age"]).records
    alone = fp.estimate_frequencies(whole, released.report, columns=["sex", "age"]).records
    np.testing.assert_array_equal(there.estimates, alone.estimates)


def test_a_domain_can_be_read_off_all_files(folder, tmp_path):
    out = tmp_path / "released"
    released = fp.release(folder, epsilon=700.0, out=out, accept="domain-from-data")
    assert {c: list(v) for c, v in zip(*vars_of(released.report.domain), strict=True)} == DOMAIN


def vars_of(domain):
    return domain.columns, domain.values


def test_nothing_appears_when_a_file_is_wrong(folder, tmp_path):
    out = tmp_path / "released"
    pd.DataFrame({"sex": ["F", "X"], "age": [1, 2]}).to_parquet(folder / "part.20.parquet")
    with pytest.raises(fp.InvalidInput, match=r"part\.20\.parquet: record 2 .*'sex'"):
        fp.release(folder, domain=DOMAIN, epsilon=1.0, out=out)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["people"]


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda path: (path / "sex=F").mkdir(), "has folders in it"),
        (
            lambda path: [file.unlink() for file in path.glob("*.parquet")],
            "must hold .parquet files",
        ),
        (
            lambda path: pd.DataFrame({"sex": ["F"]}).to_parquet(path / "part.20.parquet"),
            "parts of one table",
        ),
        (lambda path: (path / "part.20.parquet").write_bytes(b"PAR1"), "cannot read"),
    ],
)
def test_other_folders_are_refused(folder, tmp_path, spoil, words):
    spoil(folder)
    with pytest.raises(fp.InvalidInput, match=words):
        fp.release(folder, domain=DOMAIN, epsilon=1.0, out=tmp_path / "released")


def test_targets_are_new_folders(folder, tmp_path):
    taken = tmp_path / "taken"
    taken.mkdir()
    for out, words in (
        (taken, "a folder is not overwritten"),
        (folder / "released", "which is read"),
        (tmp_path / "a" / "b", "there is no folder"),
    ):
        with pytest.raises(fp.InvalidInput, match=words):
            fp.release(folder, domain=DOMAIN, epsilon=1.0, out=fp.ReleaseFile(out, overwrite=True))
