"""Frequencies before the randomisation: unbiased, with the exact variance, and covered."""

import math
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
import oracles as o
from oracles import release as oracle

SIZES = (2, 3)
RECORDS = list(product(range(2), range(3)))
TRUE = np.array([500, 120, 0, 60, 20, 300])  # of each of six records
TABLE = np.repeat(np.array(RECORDS), TRUE, axis=0)


def random_channel(seed, m, weight):
    """A matrix with most of its mass on the diagonal."""
    rng = np.random.default_rng(seed)
    return weight * np.eye(m) + (1.0 - weight) * rng.dirichlet(np.ones(m), m)


def mechanisms():
    dense = random_channel(0, 6, 0.5)
    parts = [random_channel(1, 2, 0.6), random_channel(2, 3, 0.4)]
    e_i = fp.PosteriorChannel(fp.Product([[0.3, 0.2, 0.1, 0.1, 0.1, 0.2]]), 2.5)
    return {
        "E_d": (fp.HammingChannel(1, 6, 1.5), o.floats(o.e_d_matrix([6], 1.5))),
        "E_d on the table": (
            fp.HammingChannel(len(TABLE), 6, 1.5),
            o.floats(o.e_d_matrix([6], 1.5)),
        ),
        "columns": (fp.HammingChannel(2, SIZES, 1.0), o.floats(o.e_d_matrix(SIZES, 1.0))),
        "product": (fp.ProductChannel(parts), np.kron(*parts).tolist()),
        "matrix": (fp.Channel(dense), dense.tolist()),
        "matrix on columns": (fp.Channel(dense, SIZES), dense.tolist()),
        "E_i": (e_i, e_i.matrix().tolist()),
    }


@pytest.mark.parametrize("name", mechanisms())
def test_estimates_and_variances_are_those_of_the_definition(name):
    channel, matrix = mechanisms()[name]
    released = fp.release(TABLE, mechanism=channel, domain=SIZES, rng=1)
    found = fp.estimate_frequencies(released)
    codes = released.table[:, 0] * 3 + released.table[:, 1]
    counts = np.bincount(codes, minlength=6).tolist()
    for marginal, groups in [
        (found.records, list(range(6))),
        (found[0], [record[0] for record in RECORDS]),
        (found[1], [record[1] for record in RECORDS]),
    ]:
        expected = oracle.estimate(matrix, counts, groups)
        for k, (estimate, variance, least) in enumerate(expected):
            assert marginal.estimates[k] == pytest.approx(estimate, abs=1e-7)
            error = marginal.standard_errors[k]
            # The plain estimate of the variance, unless no table of this size has one so small.
            if variance >= least * (1.0 + 1e-9):
                assert error**2 == pytest.approx(variance, rel=1e-7)
            assert error**2 >= min(least, variance) * (1.0 - 1e-9) >= -1e-9
        assert marginal.estimates.sum() == pytest.approx(len(TABLE))
    assert found.records.values == tuple(RECORDS)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["E_d", "columns", "product", "matrix", "E_i"])
def test_estimates_are_unbiased_and_intervals_cover(name):
    """The fixed table released many times: mean, spread and coverage of all intervals."""
    channel, matrix = mechanisms()[name]
    runs, tables = 1500, np.tile(TABLE, (1500, 1))  # records are randomised independently
    released = fp.release(tables, mechanism=channel, domain=SIZES, rng=11).table
    groupings = {
        "records": (TRUE, list(range(6))),
        0: (np.bincount(TABLE[:, 0]), [record[0] for record in RECORDS]),
        1: (np.bincount(TABLE[:, 1]), [record[1] for record in RECORDS]),
    }
    seen = {key: [] for key in groupings}
    covered = {key: [] for key in groupings}
    all_covered = {key: 0 for key in groupings}
    for table in np.split(released, runs):
        plain, wide = (
            fp.estimate_frequencies(table, channel, domain=SIZES, simultaneous=together)
            for together in (False, True)
        )
        for key, (true, _) in groupings.items():
            one, all_at_once = (f.records if key == "records" else f[key] for f in (plain, wide))
            seen[key].append(one.estimates)
            covered[key].append((one.lower <= true) & (true <= one.upper))
            inside = (all_at_once.lower <= true) & (true <= all_at_once.upper)
            all_covered[key] += inside.all()
    for key, (true, groups) in groupings.items():
        sample = np.array(seen[key])
        variance = [oracle.exact_variance(matrix, TRUE, groups, t) for t in range(len(true))]
        error = np.sqrt(np.array(variance) / runs)
        assert np.all(np.abs(sample.mean(axis=0) - true) < 4.5 * error)
        spread = sample.var(axis=0) / variance
        assert np.all((spread > 0.8) & (spread < 1.25))
        # Estimates beyond 0 or n are moved there first, so near these ends one side never misses.
        share = np.mean(covered[key], axis=0)
        assert np.all(share > 0.925)
        assert np.all(share < 0.99)
        inner = (true > 3.0 * error * np.sqrt(runs)) & (
            len(TABLE) - true > 3.0 * error * np.sqrt(runs)
        )
        assert np.all(share[inner] < 0.975)
        assert all_covered[key] / runs > 0.925


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    epsilon=st.sampled_from([0.01, 0.3, 2.0, 30.0, 700.0]),
    per_column=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_columns_agree_with_records(sizes, epsilon, per_column, seed):
    """A column's estimate is the sum of its records' estimates, however it was computed."""
    rng = np.random.default_rng(seed)
    table = np.stack([rng.integers(0, m, 200) for m in sizes], axis=1)
    released = fp.release(
        table,
        domain=sizes,
        epsilon=epsilon,
        per_column=per_column,
        split=None if per_column else "record",
        accept="useless",
        rng=rng,
    )
    found = fp.estimate_frequencies(released, confidence=0.9)
    cube = found.records.estimates.reshape(sizes)
    for j in range(len(sizes)):
        others = tuple(k for k in range(len(sizes)) if k != j)
        scale = np.abs(cube).sum()
        np.testing.assert_allclose(found[j].estimates, cube.sum(axis=others), atol=1e-9 * scale)
        for marginal in (found[j], found.records):
            assert np.all(marginal.lower <= marginal.upper)
            assert np.all((marginal.lower >= 0) & (marginal.upper <= 200))
            assert np.all(marginal.standard_errors >= 0)
        if sizes[j] == 1:
            assert found[j].estimates == pytest.approx([200.0])
            assert found[j].standard_errors == pytest.approx([0.0], abs=1e-4)
    projected = found.records.projected()
    assert projected.min() >= 0
    assert projected.sum() == pytest.approx(200)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-50, 100), min_size=1, max_size=6), st.integers(0, 99))
def test_projection_is_the_nearest_point(values, seed):
    from fastpriv.releasing.frequencies import Marginal

    estimates = np.array(values)
    estimates += (100.0 - estimates.sum()) / len(estimates)
    zeros = np.zeros(len(estimates))
    found = Marginal(tuple(values), estimates, zeros, zeros, zeros).projected()
    assert found.min() >= 0
    assert found.sum() == pytest.approx(100.0)
    # A projection makes an obtuse angle with every point of the set.
    other = 100.0 * np.random.default_rng(seed).dirichlet(np.ones(len(estimates)))
    assert (estimates - found) @ (other - found) <= 1e-6


def test_many_values_need_no_matrix():
    m = 1 << 18
    table = np.repeat([5, 77_777], [30_000, 10_000]).astype(np.int32)
    released = fp.release(table, domain=m, epsilon=12.0, rng=2)
    found = fp.estimate_frequencies(released)[0]
    assert found.estimates[5] == pytest.approx(30_000, abs=5 * found.standard_errors[5])
    assert found.lower[77_777] <= 10_000 <= found.upper[77_777]


def test_kinds_of_tables_and_of_mechanisms(tmp_path):
    domain = {"a": ["x", "y"], "b": [1, 2, None]}
    frame = pd.DataFrame({"a": ["x", "y"] * 300, "b": [1, 1, 2, None] * 150})
    released = fp.release(frame, domain=domain, epsilon=2.0, rng=0)
    found = fp.estimate_frequencies(released)
    report = fp.estimate_frequencies(released.table, released.report)
    channel = fp.estimate_frequencies(released.table, fp.HammingChannel(1, 6, 2.0), domain=domain)
    path = tmp_path / "released.csv"
    released.table.astype({"b": "Int64"}).to_csv(path, index=False)
    file = fp.estimate_frequencies(path, released.report)
    for other in (report, channel, file):
        assert np.array_equal(found["b"].estimates, other["b"].estimates)
        assert np.array_equal(found.records.upper, other.records.upper)
    assert found["b"].values == (1, 2, None)
    assert repr(found["b"]).split()[:6] == ["value", "count", "std.", "error", "lower", "upper"]
    assert len(repr(found["b"]).splitlines()) == 4
    assert found.to_dict()["columns"]["b"]["values"] == [1, 2, None]


def test_confidence_at_the_ends():
    released = fp.release(np.arange(100) % 2, domain=2, epsilon=1.0, rng=0)
    all_of_it = fp.estimate_frequencies(released, confidence=1.0)[0]
    assert all_of_it.lower.tolist() == [0, 0]
    assert all_of_it.upper.tolist() == [100, 100]
    point = fp.estimate_frequencies(released, confidence=0.0)[0]
    np.testing.assert_allclose(point.lower, np.clip(point.estimates, 0, 100))


@pytest.mark.parametrize(
    ("channel", "words"),
    [
        (fp.HammingChannel(1, 3, 0.0), "cannot be undone"),
        (fp.Channel([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]), "condition number"),
        (fp.HammingChannel(1, 4, 1.0), "must be for one record"),
        (
            fp.PosteriorChannel(fp.Markov([0.5, 0.3, 0.2], [[0.4, 0.3, 0.3]] * 3, 4), 2.0),
            "records alike",
        ),
        (fp.ProductChannel([np.eye(3)] * 3 + [np.full((3, 3), 1 / 3)]), "records alike"),
        (None, "mechanism="),
    ],
)
def test_what_cannot_be_undone_is_refused(channel, words):
    with pytest.raises(fp.InvalidInput, match=words):
        fp.estimate_frequencies(np.array([0, 1, 2, 2]), channel, domain=3)


@pytest.mark.slow
def test_refusals():
    channel = fp.HammingChannel(1, 2, 1.0)
    with pytest.raises(fp.InvalidInput, match="declare"):
        fp.estimate_frequencies(np.array([0, 1]), channel)
    with pytest.raises(fp.InvalidInput, match="confidence"):
        fp.estimate_frequencies(np.array([0, 1]), channel, domain=2, confidence=math.nan)
    with pytest.raises(fp.InvalidInput, match="no records"):
        fp.estimate_frequencies(np.zeros(0, int), channel, domain=2)
    with pytest.raises(fp.InvalidInput, match="no column 'c'"):
        fp.estimate_frequencies([{"a": 0}], channel, domain={"c": [0, 1]})
    with pytest.raises(fp.TooLarge, match="matrix to invert"):
        fp.estimate_frequencies(np.array([0]), fp.Channel(np.eye(4097)), domain=4097)


def test_estimates_outside_what_is_possible_are_said():
    released = fp.release(np.zeros(20, dtype=int), domain=3, epsilon=0.1, rng=3)
    found = fp.estimate_frequencies(released)
    beyond = sum(
        int(((c.estimates < 0) | (c.estimates > 20)).sum()) for c in found.columns.values()
    )
    assert beyond > 0
    assert f"{beyond} estimates outside 0 .. 20" in repr(found)


def test_an_unknown_column_is_explained():
    released = fp.release(
        [{"smokes": "no"}] * 9, domain={"smokes": ["no", "yes"]}, epsilon=1.0, rng=1
    )
    found = fp.estimate_frequencies(released)
    with pytest.raises(fp.InvalidInput, match=r"'smoke'; did you mean smokes\?"):
        found["smoke"]


def test_a_cross_tabulation_is_printed_and_written():
    people = [{"a": "x", "b": None}, {"a": "y", "b": 1}] * 200
    released = fp.release(people, domain={"a": ["x", "y"], "b": [1, None]}, epsilon=4.0, rng=1)
    table = fp.estimate_frequencies(released, columns=["a", "b"])
    lines = str(table).splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith("a x b "))
    names = [line.split("  ")[0] for line in lines[start + 1 :]]
    assert names == ["x, 1", "x, (missing)", "y, 1", "y, (missing)"]
    joint = table.to_dict()["joint"]
    assert joint["values"] == [["x", 1], ["x", None], ["y", 1], ["y", None]]
    assert joint["estimates"] == table.records.estimates.tolist()
    plain = fp.estimate_frequencies(released)
    assert "a x b" not in str(plain)
    assert "joint" not in plain.to_dict()
