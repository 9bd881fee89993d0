"""A report is written and read back; what it says is what estimates and ledgers use."""

import json
import pickle

import numpy as np
import pytest

import fastpriv as fp

DOMAIN = {"sex": ["F", "M"], "age": [1, 2, None]}


def people(n=300):
    rng = np.random.default_rng(3)
    return [
        {"sex": DOMAIN["sex"][s], "age": DOMAIN["age"][a]}
        for s, a in zip(rng.integers(0, 2, n), rng.integers(0, 3, n), strict=True)
    ]


@pytest.mark.parametrize(
    "how",
    [
        {"epsilon": 2.0},
        {"epsilon": 2.0, "split": "record"},
        {"epsilon": 2.0, "split": "columns"},
        {"epsilon": {"sex": 1.0, "age": 0.5}},
        {"epsilon": 1.0, "per_column": True},
    ],
)
def test_a_report_survives_json(how, tmp_path):
    released = fp.release(people(), domain=DOMAIN, rng=1, **how)
    for given in (released.report.to_json(), tmp_path / "report.json"):
        if not isinstance(given, str):
            given.write_text(released.report.to_json())
        read = fp.ReleaseReport.from_json(given)
        assert read.levels == released.report.levels
        assert read.levels_under_prior == released.report.levels_under_prior
        assert read.spending() == released.report.spending()
        assert read.standard_errors == released.report.standard_errors
        assert (read.n, read.m, read.unit) == (300, 6, released.report.unit)
        assert read.private == {}
        np.testing.assert_array_equal(read.channel.matrix(), released.report.channel.matrix())
        one = fp.estimate_frequencies(released.table, read)
        two = fp.estimate_frequencies(released)
        np.testing.assert_array_equal(one.records.estimates, two.records.estimates)


def test_a_receipt_survives_json():
    ledger = fp.accounting.Ledger({"dp": 3.0})
    report = fp.release(people(), domain=DOMAIN, epsilon=2.0, ledger=ledger, label="wave 1").report
    assert fp.ReleaseReport.from_json(report.to_json()).receipt == report.receipt


def test_coded_columns_survive_json():
    report = fp.release(np.zeros((200, 2), int), domain=[2, 3], epsilon=2.0).report
    assert fp.ReleaseReport.from_json(report.to_json()).domain.sizes == (2, 3)


def test_a_domain_read_off_the_data_is_not_published():
    report = fp.release(people(), epsilon=2.0, accept="domain-from-data").report
    assert "columns" not in json.loads(report.to_json())


def test_another_domain_than_the_released_one_is_refused():
    released = fp.release(people(), domain=DOMAIN, epsilon=2.0)
    swapped = {"sex": ["M", "F"], "age": [1, 2, None]}
    with pytest.raises(fp.InvalidInput, match="must be the one of the release"):
        fp.estimate_frequencies(released.table, released.report, domain=swapped)


def test_a_pickled_report_holds_no_tables():
    report = fp.release(np.zeros(200, dtype=int), domain=4, epsilon=1.0).report
    assert len(pickle.dumps(report)) < 4_000
    again = pickle.loads(pickle.dumps(report))
    assert again.levels == report.levels
    assert again.channel.sample([[1]], rng=1).shape == (1, 1)


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "{",
        "[]",
        '{"version": 1, "levels": {}}',
        '{"version": 2, "levels": {}, "columns": [2], "randomised": "table"}',
        '{"version": 2, "columns": 3, "randomised": "record"}',
        "missing.json",
    ],
)
def test_what_is_no_report_is_refused_in_words(text):
    with pytest.raises(fp.InvalidInput, match="report"):
        fp.ReleaseReport.from_json(text)


def five_columns(**how):
    rng = np.random.default_rng(0)
    return fp.release(rng.integers(0, 3, (500, 5)), domain=[3] * 5, rng=1, **how)


@pytest.mark.slow
def test_audits_of_a_release_speak_of_the_person():
    released = five_columns(epsilon=0.4, per_column=True)
    for given in (released, released.report, released.report.channel):
        audit = fp.audit(given)
        assert audit["dp"] == pytest.approx(2.0)
        assert audit["strong-dp"] == pytest.approx(2.0)
    assert "record of a person" in fp.audit(released).name
    ledger = fp.accounting.Ledger({"dp": 3.0})
    ledger.spend(released.report.channel)
    assert ledger.spent["dp"] == pytest.approx(2.0)
    assert fp.dp_level(released.report.channel.columns) == pytest.approx(0.4)
    assert fp.estimate_frequencies(released.table, released.report).n == 500


def test_a_record_of_many_columns_is_audited_without_its_matrix():
    wide = fp.release(
        np.zeros((200, 20), int), domain=[10] * 18 + [2, 2], epsilon=40.0, split="columns"
    )
    level = fp.audit(wide)["dp"]
    assert 40.0 * (1.0 - 1e-9) <= level <= 40.0


def test_record_channels_draw_what_their_columns_draw():
    channel = fp.RecordChannel(fp.HammingChannel(2, [2, 3], 1.0))
    n = 60_000
    drawn = channel.sample(np.full((n, 1), 4), rng=3)
    share = np.bincount(drawn[:, 0], minlength=6) / n
    assert abs(share - channel.matrix()[4]).max() < 6.0 * np.sqrt(0.25 / n)
    assert fp.realised_level(channel) <= 2.0
    prior = fp.Dense([0.1, 0.2, 0.3, 0.1, 0.2, 0.1])
    np.testing.assert_allclose(channel.output(prior).pmf(), prior.pmf() @ channel.matrix())
    assert fp.AbstractChannel.from_json(channel.to_json()) == channel


def test_a_page_for_the_officer(tmp_path):
    released = five_columns(epsilon=2.0, split="columns")
    path = tmp_path / "report.html"
    text = released.report.to_html(path)
    assert path.read_text() == text
    for words in (
        "500 records",
        "Replacing one person&#x27;s whole record",
        "factor of at most 7.39",
        "NOT secure",
        "Do not publish this table",
        "What is not protected",
        "order of the records",
        "Margin of error",
    ):
        assert words in text, words
    assert "http://" not in text.replace("http-equiv", "")
    assert "<script" not in text
    with pytest.raises(fp.InvalidInput, match="exists"):
        released.report.to_html(path)
    assert "fp-audit" in released.report._repr_html_()


def test_a_page_escapes_what_it_is_told():
    domain = {"<script>alert(1)</script>": ["a", "b"]}
    report = fp.preview_release(100, domain=domain, epsilon=1.0)
    assert "<script" not in report.to_html()
