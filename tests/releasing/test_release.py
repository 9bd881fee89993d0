"""Tables through fp.release: the chances of the mechanism, and what the report says of them."""

import json
import math
import re
from itertools import product

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
import oracles as o
from oracles import release as oracle

# The mechanism.


@pytest.mark.parametrize("per_column", [False, True])
def test_records_move_with_the_chances_of_the_mechanism(per_column):
    sizes, epsilon, copies = (2, 3), 1.5, 40_000
    matrix = o.floats(o.e_d_matrix(sizes if per_column else [6], epsilon))
    for x, record in enumerate(product(range(2), range(3))):
        table = np.tile(np.array(record, dtype=np.uint8), (copies, 1))
        out = fp.release(table, domain=sizes, epsilon=epsilon, per_column=per_column, rng=x).table
        counts = np.bincount(out[:, 0] * 3 + out[:, 1], minlength=6)
        assert scipy.stats.chisquare(counts, np.array(matrix[x]) * copies).pvalue > 1e-4


def test_chunks_do_not_repeat_their_noise(tmp_path, monkeypatch):
    monkeypatch.setattr("fastpriv.releasing.tables.csv._BLOCK", 4_000)
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text("bit\n" + "0\n" * 8_000)
    fp.release(path, domain={"bit": [0, 1]}, epsilon=0.0, out=out, rng=3, accept="useless")
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
    most = fp.release(table, domain=4, distortion=180.0, accept="useless").report
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
    with pytest.raises(fp.InvalidInput, match="must be for one record"):
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
        # As a number: not as digits of one, nor of the random key of the digest.
        assert str(changed) not in re.findall(r"\b[\d.]+\b", text)
        assert "private" not in text


def test_levels_of_a_table_prior():
    prior = fp.Markov([0.6, 0.4], [[0.9, 0.1], [0.2, 0.8]], 6)
    report = fp.release(np.zeros(6, int), domain=2, epsilon=1.0, prior=prior).report
    channel = fp.HammingChannel(6, 2, 1.0)
    under = report.levels_under_prior
    assert under["mutual-information"] == pytest.approx(fp.mutual_information(channel, prior))
    assert under["identifiability"] == fp.identifiability_level(channel, prior)
    with pytest.raises(fp.InvalidInput, match="prior must be the distribution"):
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
        report = fp.release(table, domain=3, epsilon=epsilon, accept="useless").report
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
