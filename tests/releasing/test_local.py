"""Releases whose values become messages of local mechanisms."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import fastpriv as fp
from fastpriv.releasing.messages import messages_of, texts_of
from fastpriv.releasing.plan import MECHANISMS, best_local, record_variance
from tests.local_cases import SMALL

pd = pytest.importorskip("pandas")

CITIES = [f"c{i:02d}" for i in range(12)]
DOMAIN = {"city": CITIES, "sex": ["F", "M"], "kind": ["x"], "zip": list(range(700))}
NAMES = ["auto", *MECHANISMS]


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    n = 3_000
    return pd.DataFrame(
        {
            "city": rng.choice(CITIES, n, p=rng.dirichlet(np.ones(12))),
            "sex": rng.choice(["F", "M"], n),
            "kind": ["x"] * n,
            "zip": rng.integers(0, 700, n),
        }
    )


def _close(people, counts):
    """All true counts within five standard errors."""
    for name, column in counts.columns.items():
        truth = people[name].value_counts()
        for value, estimate, error in zip(
            column.values, column.estimates, column.standard_errors, strict=True
        ):
            assert abs(estimate - truth.get(value, 0)) <= 5.0 * error + 1e-9


@pytest.mark.slow(only=["subset-selection"])
@pytest.mark.parametrize("name", NAMES)
def test_a_release_by_name_is_charged_and_estimated(name, people, tmp_path):
    ledger = fp.accounting.Ledger({"dp": 4.0})
    released = fp.release(people, domain=DOMAIN, epsilon=4.0, mechanism=name, ledger=ledger, rng=3)
    report = released.report
    assert 4.0 - 1e-9 < report.levels["dp"] <= 4.0
    assert report.receipt.charged["dp"] == report.levels["dp"]
    assert len(released.table) == len(people)
    assert list(released.table.columns) == list(people.columns)
    assert set(released.table["kind"]) == {"x"}
    counts = fp.estimate_frequencies(released)
    _close(people, counts)
    # The report as JSON, and the table as a CSV file that pandas wrote and reads as it likes.
    released.table.to_csv(tmp_path / "released.csv", index=False)
    again = fp.ReleaseReport.from_json(report.to_json())
    assert again.levels == report.levels
    assert again.channel == report.channel
    for table in (tmp_path / "released.csv", pd.read_csv(tmp_path / "released.csv")):
        same = fp.estimate_frequencies(table, again)
        for column in DOMAIN:
            np.testing.assert_array_equal(same[column].estimates, counts[column].estimates)


def test_files_and_records(people, tmp_path):
    pytest.importorskip("pyarrow")
    few = people.head(500)
    few.to_csv(tmp_path / "a.csv", index=False)
    few.to_parquet(tmp_path / "a.parquet")
    records = few.to_dict("records")
    for source, out in (
        (tmp_path / "a.csv", tmp_path / "b.csv"),
        (tmp_path / "a.parquet", tmp_path / "b.parquet"),
        (records, None),
        (few["city"], None),
    ):
        domain = {"city": CITIES} if out is None and source is not records else DOMAIN
        written = None if out is None else fp.ReleaseFile(out, tmp_path / f"{out.name}.json")
        released = fp.release(
            source, domain=domain, epsilon=6.0, mechanism="auto", out=written, rng=1
        )
        _close(few, fp.estimate_frequencies(released))
        if out is not None:
            report = fp.ReleaseReport.from_json(tmp_path / f"{out.name}.json")
            _close(few, fp.estimate_frequencies(out, report))


@pytest.mark.slow
def test_arrays_hold_texts():
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 40, 4_000)
    released = fp.release(codes, domain=40, epsilon=2.0, mechanism="hashing", rng=2)
    assert released.table.shape == (4_000,)
    assert released.table.dtype.kind == "U"
    estimates = fp.estimate_frequencies(released)[0]
    truth = np.bincount(codes, minlength=40)
    assert (np.abs(estimates.estimates - truth) < 5.0 * estimates.standard_errors).all()
    both = np.stack([codes, codes % 3], axis=1)
    released = fp.release(both, domain=[40, 3], epsilon=4.0, mechanism="auto", rng=2)
    assert released.table.shape == (4_000, 2)
    assert set(fp.estimate_frequencies(released).columns) == {0, 1}


def test_reports_as_they_are_drawn():
    values = np.random.default_rng(5).integers(0, 9, 5_000)
    truth = np.bincount(values, minlength=9)
    for channel in (fp.UnaryChannel(9, 2.0), fp.HadamardChannel(9, 2.0), fp.SubsetChannel(9, 1.0)):
        reports = channel.sample(values[:, None], rng=7)
        column = fp.estimate_frequencies(reports, channel)[0]
        assert (np.abs(column.estimates - truth) < 5.0 * column.standard_errors).all()
        expected, variances = channel.moments(channel.tally(reports), 5_000)
        np.testing.assert_array_equal(column.estimates, expected)
        np.testing.assert_allclose(column.standard_errors**2, variances)


@pytest.mark.parametrize("channel", SMALL, ids=repr)
def test_texts_come_back(channel):
    reports = channel.sample(np.zeros((30, 1), dtype=np.int64), rng=1)
    texts = texts_of(channel, reports)
    assert all(not set(text) & set(',"\n') for text in texts)
    np.testing.assert_array_equal(messages_of(channel, texts, "a"), reports)
    for wrong in ("", "-1", "b", "9:9:9", "one", "1e3", str(10**30)):
        with pytest.raises(fp.InvalidInput, match=r"must hold messages.*record 2 "):
            messages_of(channel, [texts[0], wrong], "a")


def test_auto_takes_the_least_variance_and_says_so():
    for k, epsilon in ((2, 1.0), (5, 0.1), (12, 1.0), (12, 4.0), (400, 0.5), (5_000, 2.0)):
        channel, reason = best_local(k, epsilon)
        variance = record_variance(channel)
        assert repr(channel) in reason
        for name, make in MECHANISMS.items():
            other = make(k, epsilon)
            if (getattr(other, "width", None) or 1) <= 64:
                assert variance <= record_variance(other) * (1 + 1e-12), name
    plan = fp.preview_release(1_000, domain={"a": range(12)}, epsilon=1.0, mechanism="auto")
    assert any("'a' goes through SubsetChannel" in note for note in plan.notes)
    assert math.isclose(
        plan.standard_errors["a"], math.sqrt(1_000 * fp.SubsetChannel(12, 1.0).variance(1 / 12))
    )


def test_levels_of_a_release_are_those_of_its_columns():
    """Against the matrix of the whole record, at the chances that are drawn."""
    domain = {"a": range(5), "b": range(3)}
    plan = fp.preview_release(100, domain=domain, epsilon=2.0, mechanism="subset-selection")
    assert isinstance(plan.channel, fp.RecordChannel)
    dense = fp.Channel(plan.channel.columns.matrix())
    uniform = fp.Uniform(1, 15)
    levels, under = plan.levels, plan.levels_under_prior
    for slug, exact in (
        ("dp", fp.dp_level(dense)),
        ("record-maximal-leakage", fp.maximal_leakage(dense)),
        ("record-channel-capacity", fp.channel_capacity(dense).upper),
    ):
        assert math.isclose(levels[slug], exact, rel_tol=1e-9)
    assert math.isclose(
        under["record-mutual-information"], fp.mutual_information(dense, uniform), rel_tol=1e-9
    )
    assert math.isclose(under["record-pml"], fp.pml_level(dense, uniform), rel_tol=1e-9)
    assert math.isclose(fp.audit(plan)["dp"], levels["dp"], rel_tol=1e-12)


def test_epsilons_by_column_and_for_each():
    domain = {"a": range(5), "b": range(3)}
    given = fp.preview_release(9, domain=domain, epsilon={"a": 1.0, "b": 0.5}, mechanism="hadamard")
    assert [column.epsilon for column in given.channel.columns.columns] == [1.0, 0.5]
    each = fp.preview_release(9, domain=domain, epsilon=1.0, per_column=True, mechanism="unary")
    assert 1.99 < each.levels["dp"] <= 2.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mechanism": "hashin", "epsilon": 1.0}, "hashing"),
        ({"mechanism": "auto"}, "must come with epsilon"),
        ({"mechanism": "auto", "epsilon": 1.0, "distortion": 3.0}, "without distortion"),
        ({"mechanism": "auto", "epsilon": 1.0, "split": "record"}, "each column independently"),
        ({"mechanism": "auto", "epsilon": -1.0}, "epsilon"),
        ({"mechanism": "auto", "epsilon": 1e-6}, "useless"),
        ({"mechanism": "auto", "epsilon": 0.0}, "useless"),
    ],
)
def test_refusals(options, words, people):
    with pytest.raises(fp.FastprivError, match=words):
        fp.release(people[["city"]], domain={"city": CITIES}, **options)


def test_estimates_that_are_refused(people):
    released = fp.release(
        people[["city"]], domain={"city": CITIES}, epsilon=3.0, mechanism="hashing", rng=1
    )
    with pytest.raises(fp.InvalidInput, match="unbiased estimates only"):
        fp.estimate_frequencies(released, method="bayesian")
    with pytest.raises(fp.InvalidInput, match="messages of HashingChannel"):
        fp.estimate_frequencies(people[["city"]], released.report)
    document = json.loads(released.report.to_json())
    document["mechanisms"][0]["k"] = 13
    with pytest.raises(fp.InvalidInput, match="is no report"):
        fp.ReleaseReport.from_json(json.dumps(document))
    channel = fp.HashingChannel(12, 1.0)
    with pytest.raises(fp.InvalidInput, match="no messages"):
        fp.estimate_frequencies(np.zeros((0, 2), np.int64), channel)
    with pytest.raises(fp.InvalidInput, match="one column of 12"):
        fp.estimate_frequencies(np.zeros((1, 2), np.int64), channel, domain=13)


@pytest.mark.parametrize("mechanism", ["auto", "randomised-response"])
@pytest.mark.parametrize("columns", [1, 2])
def test_codes_that_go_through_randomised_response_stay_codes(mechanism, columns):
    """They were written as texts, which the estimate of the release itself refused."""
    codes = np.repeat(np.arange(3), [300, 200, 100])
    table = codes if columns == 1 else np.stack([codes, codes % 2], axis=1)
    domain = 3 if columns == 1 else [3, 2]
    released = fp.release(table, domain=domain, epsilon=6.0, mechanism=mechanism, rng=1)
    assert released.table.dtype == codes.dtype
    found = fp.estimate_frequencies(released).columns[0]
    assert np.allclose(found.estimates, [300, 200, 100], atol=60)
