"""Dask frames: one report, one charge, and draws that stay the same when they are made again."""

import contextlib
import os
import pickle
import sys
import uuid
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fastpriv as fp
from fastpriv.releasing.tables import dask as tables

pytest.importorskip("distributed")
cloudpickle = pytest.importorskip("cloudpickle")
dd = pytest.importorskip("dask.dataframe")

# Dask's own threads and sockets warn while workers start and die.
pytestmark = pytest.mark.filterwarnings("ignore")

DOMAIN = {"sex": ["F", "M"], "age": [1, 2, 3]}


def people(n=600, seed=1):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"sex": rng.choice(["F", "M"], n), "age": rng.integers(1, 4, n)})


def as_values(frame):
    return list(zip(frame["sex"].tolist(), frame["age"].tolist(), strict=True))


@pytest.fixture(scope="module")
def client():
    """Two worker processes, which nannies start again when they die."""
    import distributed

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def here():
    """Dask without a cluster."""
    import dask

    with dask.config.set(scheduler="synchronous"):
        yield


def deadly(part, folder, partition_info=None):
    """Write down what was drawn; the first task of partition 1 that does so kills its worker."""
    number = partition_info["number"]
    part.to_pickle(Path(folder) / f"{number}-{uuid.uuid4().hex}")
    if number == 1:
        with contextlib.suppress(FileExistsError):
            (Path(folder) / "killed").touch(exist_ok=False)
            os.kill(os.getpid(), 9)
    return part


@pytest.mark.slow
def test_a_worker_dies_and_nothing_is_released_twice(client, tmp_path):
    frame = people()
    ledger = fp.accounting.Ledger({"dp": 5.0})
    released = fp.release(
        dd.from_pandas(frame, npartitions=4), domain=DOMAIN, epsilon=2.0, ledger=ledger
    )
    out = released.table.map_partitions(deadly, str(tmp_path), meta=released.table._meta).compute()
    assert (tmp_path / "killed").exists()
    draws = {k: [pd.read_pickle(f) for f in tmp_path.glob(f"{k}-*")] for k in range(4)}
    assert len(draws[1]) >= 2  # by the worker that died, and by another
    for k, part in draws.items():
        for again in part:
            pd.testing.assert_frame_equal(again, part[0])
            pd.testing.assert_frame_equal(again, out.iloc[150 * k : 150 * (k + 1)])
    assert len(ledger) == 1
    assert ledger.spent == {"dp": released.report.levels["dp"]}
    assert released.report.n == len(out) == 600
    assert 0 < sum(a != b for a, b in zip(as_values(out), as_values(frame), strict=True)) < 600
    counts = fp.estimate_frequencies(released, columns=["sex", "age"])
    same = fp.estimate_frequencies(out, released.report, columns=["sex", "age"])
    np.testing.assert_array_equal(counts.records.estimates, same.records.estimates)


def test_searches_on_a_cluster(client):
    rng = np.random.default_rng(4)
    stack = rng.dirichlet(np.ones(4), (20, 3))
    assert fp.audit_many(stack).equals(fp.audit_many(stack, executor=client))
    prior = fp.Exchangeable.beta_binomial(3, 0.5, 0.8)
    alone = fp.tradeoff_curve(prior, ["dp"], [0.2, 0.5])
    there = fp.tradeoff_curve(prior, ["dp"], [0.2, 0.5], executor=client)
    np.testing.assert_array_equal(alone.upper["dp"], there.upper["dp"])


def test_a_wrong_value_is_named_without_being_shown(client):
    frame = people()
    frame.loc[400, "sex"] = "secret-value"
    ledger = fp.accounting.Ledger({"dp": 5.0})
    table = dd.from_pandas(frame, npartitions=4)
    with pytest.raises(fp.InvalidInput, match=r"partition 2: record 101 .* 'sex'") as caught:
        fp.release(table, domain=DOMAIN, epsilon=2.0, ledger=ledger)
    assert "secret-value" not in str(caught.value)
    assert len(ledger) == 0
    assert not any("secret-value" in str(log) for log in client.get_worker_logs().values())


def test_partitions_that_changed_are_refused(here, tmp_path):
    files = [tmp_path / f"{k}.pkl" for k in range(3)]
    for k, file in enumerate(files):
        people(50, seed=k).to_pickle(file)
    table = dd.from_map(pd.read_pickle, files)
    released = fp.release(table, domain=DOMAIN, epsilon=1.0)
    first = released.table.compute()
    people(50, seed=7).to_pickle(files[1])
    with pytest.raises(fp.InvalidInput, match="other records than when the table was checked"):
        released.table.compute()
    people(50, seed=1).to_pickle(files[1])
    pd.testing.assert_frame_equal(released.table.compute(), first)


def test_equal_partitions_are_drawn_differently(here):
    part = people(200)
    table = dd.concat([dd.from_pandas(part, npartitions=1)] * 2, interleave_partitions=False)
    out = fp.release(table, domain=DOMAIN, epsilon=0.5).table.compute()
    assert as_values(out.iloc[:200]) != as_values(out.iloc[200:])
    again = fp.release(table, domain=DOMAIN, epsilon=0.5).table.compute()
    assert as_values(again) != as_values(out)


@pytest.mark.slow
def test_draws_have_the_reported_chances(here):
    """Records of one value in 20 partitions: counts of the outputs against R_epsilon's law."""
    n, epsilon = 60_000, 1.0
    frame = pd.DataFrame({"sex": ["F"] * n, "age": [2] * n})
    table = dd.from_pandas(frame, npartitions=20)
    options = {"domain": DOMAIN, "epsilon": epsilon, "split": "record"}
    released = fp.release(table, rng=11, **options)
    assert not released.report.secure
    out = released.table.compute()
    counts = pd.Series(as_values(out)).value_counts()
    stay = np.exp(epsilon) / (np.exp(epsilon) + 5.0)
    law = {(s, a): (1.0 - stay) / 5.0 for s in "FM" for a in (1, 2, 3)} | {("F", 2): stay}
    statistic = sum((counts[v] - n * p) ** 2 / (n * p) for v, p in law.items())
    assert statistic < 25.7  # the quantile of chi-square with 5 degrees of freedom at 1 - 1e-4
    again = fp.release(table, rng=11, **options).table.compute()
    pd.testing.assert_frame_equal(again, out)


def test_the_secret_is_in_no_report(here, monkeypatch):
    kept = []

    class Watched(tables.Secret):
        def __init__(self, key, secure):
            super().__init__(key, secure)
            kept.append(key)

    monkeypatch.setattr("fastpriv.releasing.release.Secret", Watched)
    released = fp.release(dd.from_pandas(people(), npartitions=2), domain=DOMAIN, epsilon=1.0)
    (key,) = kept
    assert len(key) == 32
    assert released.report.secure
    assert key not in pickle.dumps(released.report)
    for text in (released.report.to_json(), released.report.to_html(), repr(Watched(key, True))):
        assert key.hex() not in text
        assert repr(key)[2:-1] not in text


def test_frames_come_back_as_they_were(here):
    frame = people().set_index(np.cumsum(np.arange(600) % 3 + 1))
    frame["sex"] = frame["sex"].astype("category")
    table = dd.from_pandas(frame, npartitions=3)
    released = fp.release(table, domain=DOMAIN, epsilon=700.0)
    pd.testing.assert_frame_equal(released.table.compute(), frame)
    assert released.table.divisions == table.divisions
    assert any("index" in note for note in released.report.notes)
    column = fp.release(table["age"], domain={"age": [1, 2, 3]}, epsilon=700.0)
    pd.testing.assert_series_equal(column.table.compute(), frame["age"])
    some = fp.release(table, domain={"age": [1, 2, 3]}, epsilon=700.0, accept="undeclared-columns")
    assert list(some.table.columns) == ["age"]
    read = fp.release(table, epsilon=700.0, accept="domain-from-data")
    pd.testing.assert_frame_equal(read.table.compute(), frame)


def test_what_a_dask_frame_cannot_do_is_said(here, tmp_path):
    table = dd.from_pandas(people(4), npartitions=2)
    whole = fp.PosteriorChannel(fp.Uniform(4, 6), 2.0)
    with pytest.raises(fp.InvalidInput, match=r"whole table at once.*table\.compute\(\)"):
        fp.release(table, mechanism=whole, domain=DOMAIN)
    with pytest.raises(fp.InvalidInput, match="out is for files"):
        fp.release(table, domain=DOMAIN, epsilon=1.0, out=tmp_path / "x")
    empty = dd.from_pandas(people(4).iloc[:0], npartitions=1)
    with pytest.raises(fp.InvalidInput, match="no records"):
        fp.release(empty, domain=DOMAIN, epsilon=1.0)


@pytest.mark.slow
def test_the_report_goes_to_a_file_and_estimates_need_no_more(here, tmp_path):
    table, path = dd.from_pandas(people(), npartitions=3), tmp_path / "report.json"
    released = fp.release(table, domain=DOMAIN, epsilon=3.0, out=fp.ReleaseFile(report=path))
    report = fp.ReleaseReport.from_json(path.read_text())
    out = released.table.compute()
    there = fp.estimate_frequencies(dd.from_pandas(out, npartitions=2), report)
    alone = fp.estimate_frequencies(out, report)
    for name in DOMAIN:
        np.testing.assert_array_equal(there[name].estimates, alone[name].estimates)
        np.testing.assert_array_equal(there[name].lower, alone[name].lower)
