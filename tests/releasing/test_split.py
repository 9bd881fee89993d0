"""How epsilon is divided among columns, what a release charges, and what it refuses."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp


def table(sizes, n=400, seed=0):
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, m, n) for m in sizes], axis=1)


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=7),
    epsilon=st.sampled_from([0.1, 0.3, 1.0, 2.0, 3.3, 7.0]),
)
def test_a_split_never_exceeds_its_total(sizes, epsilon):
    report = fp.preview_release(10**6, domain=sizes, epsilon=epsilon, split="columns")
    level = report.spending()["dp"]
    assert level <= epsilon
    ledger = fp.accounting.Ledger({"dp": epsilon})
    ledger.spend(report)
    if max(sizes) > 1:
        assert level >= epsilon * (1.0 - 1e-13)
        assert ledger.remaining["dp"] < 1e-12


def test_columns_have_their_own_levels():
    epsilons = {"a": 1.25, "b": 0.5, "c": 0.25}
    domain = {"a": [0, 1], "b": [0, 1, 2], "c": [0, 1]}
    by_level = fp.preview_release(10**5, domain=domain, epsilon=epsilons)
    assert by_level.spending()["dp"] == pytest.approx(2.0)
    checked = fp.preview_release(10**5, domain=domain, epsilon=2.0, split=epsilons)
    assert checked.spending()["dp"] <= 2.0
    matrix = by_level.channel.columns.kernels[1].matrix
    assert math.log(matrix[0, 0] / matrix[0, 1]) == pytest.approx(0.5)
    with pytest.raises(fp.InvalidInput, match=r"at most 1\.5.*got 2\.0"):
        fp.preview_release(10**5, domain=domain, epsilon=1.5, split=epsilons)
    with pytest.raises(fp.InvalidInput, match="'c' has none"):
        fp.preview_release(10**5, domain=domain, epsilon={"a": 1.0, "b": 1.0})
    with pytest.raises(fp.InvalidInput, match="no column 'd'"):
        fp.preview_release(10**5, domain=domain, epsilon={**epsilons, "d": 1.0})


def test_different_levels_are_drawn_as_accounted():
    n = 200_000
    zeros = np.zeros((n, 2), dtype=np.int64)
    released = fp.release(zeros, domain=[2, 2], epsilon={0: 2.0, 1: 0.5}, rng=4)
    moved = released.table.mean(axis=0)
    expected = [1.0 / (1.0 + math.exp(2.0)), 1.0 / (1.0 + math.exp(0.5))]
    assert np.all(abs(moved - expected) < 6.0 * np.sqrt(0.25 / n))


def test_the_default_keeps_most():
    few = fp.preview_release(1_000, domain=[2, 3], epsilon=2.0)
    many = fp.preview_release(1_000, domain=[6, 5, 4, 6, 5], epsilon=2.0)
    assert (few.unit, many.unit) == ("record", "columns")
    for domain, chosen in (([2, 3], few), ([6, 5, 4, 6, 5], many)):
        errors = [
            max(
                fp.preview_release(
                    1_000, domain=domain, epsilon=2.0, split=split
                ).standard_errors.values()
            )
            for split in ("record", "columns")
        ]
        assert max(chosen.standard_errors.values()) == pytest.approx(min(errors))


def test_standard_errors_are_told_before_drawing():
    n, m, epsilon = 900, 3, 1.0
    told = fp.preview_release(n, domain=m, epsilon=epsilon).standard_errors[0]
    stay = math.exp(epsilon) / (math.exp(epsilon) + m - 1)
    off = (1.0 - stay) / (m - 1)
    own, other = stay * (1.0 - stay), off * (1.0 - off)
    exact = math.sqrt(n * (own / m + other * (m - 1) / m)) / (stay - off)
    assert told == pytest.approx(exact, rel=1e-9)


def test_useless_releases_are_refused_unless_insisted_on():
    wide = table([6, 5, 4, 6, 5])
    with pytest.raises(fp.Infeasible, match=r"useless.*standard error of about"):
        fp.release(wide, domain=[6, 5, 4, 6, 5], epsilon=2.0, split="record")
    insisted = fp.release(
        wide, domain=[6, 5, 4, 6, 5], epsilon=2.0, split="record", accept="useless", rng=1
    )
    frequencies = fp.estimate_frequencies(insisted)
    for column in frequencies.columns.values():
        assert np.all(column.upper > column.lower)  # no interval of [0, 0]
    assert fp.release(wide, domain=[6, 5, 4, 6, 5], epsilon=5.0).report.unit == "columns"


def test_a_ledger_is_charged_before_anything_is_drawn(tmp_path):
    people = table([2, 2])
    ledger = fp.accounting.Ledger({"dp": 1.5})
    first = fp.release(people, domain=[2, 2], epsilon=1.0, ledger=ledger, label="first")
    assert first.report.receipt.label == "first"
    assert first.report.receipt.charged["dp"] == ledger.spent["dp"] <= 1.0
    with pytest.raises(fp.BudgetExceeded):
        fp.release(people, domain=[2, 2], epsilon=1.0, ledger=ledger)
    wrong = people.copy()
    wrong[7, 0] = 9
    with pytest.raises(fp.InvalidInput, match="must hold codes"):
        fp.release(wrong, domain=[2, 2], epsilon=0.1, ledger=ledger)
    assert ledger.spent["dp"] <= 1.0  # records are checked before the budget is touched
    path, source, out = (tmp_path / name for name in ("study.ledger", "in.csv", "out.csv"))
    fp.accounting.Ledger.open(path, {"dp": 0.5}).close()
    source.write_text("bit\n" + "0\n1\n" * 100)
    with pytest.raises(fp.BudgetExceeded):
        fp.release(source, domain={"bit": [0, 1]}, epsilon=1.0, out=out, ledger=path)
    assert not out.exists()
    fp.release(source, domain={"bit": [0, 1]}, epsilon=0.5, out=out, ledger=path, label="bits")
    with fp.accounting.Ledger.open(path) as opened:
        assert opened.remaining["dp"] < 1e-12


def test_a_file_that_grows_after_it_was_charged_is_not_released(tmp_path, monkeypatch):
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("bit\n" + "0\n1\n" * 100)
    ledger = fp.accounting.Ledger({"dp": 5.0})
    spend = ledger.spend

    def spend_while_it_grows(*given, **options):
        with source.open("a") as more:
            more.write("1\n")
        return spend(*given, **options)

    monkeypatch.setattr(ledger, "spend", spend_while_it_grows)
    with pytest.raises(fp.InvalidInput, match="200 records when the ledger was charged and 201"):
        fp.release(source, domain={"bit": [0, 1]}, epsilon=1.0, out=out, ledger=ledger)
    assert not out.exists()


@settings(max_examples=30, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 3), min_size=3, max_size=4),
    split=st.sampled_from(["record", "columns"]),
    seed=st.integers(0, 99),
)
def test_cross_tabs_are_sums_of_records(sizes, split, seed):
    people = table(sizes, seed=seed)
    released = fp.release(
        people, domain=sizes, epsilon=3.0, split=split, rng=seed, accept="useless"
    )
    whole = fp.estimate_frequencies(released).records.estimates.reshape(sizes)
    chosen = [2, 0]
    pair = fp.estimate_frequencies(released, columns=chosen)
    others = tuple(j for j in range(len(sizes)) if j not in chosen)
    expected = whole.sum(axis=others).T.reshape(-1)
    np.testing.assert_allclose(pair.records.estimates, expected, atol=1e-8 * len(people))
    assert pair[2, 0] is pair.records
    assert list(pair.columns) == chosen
    assert len(pair.records.values) == sizes[2] * sizes[0]


def test_cross_tab_of_a_general_mechanism():
    rng = np.random.default_rng(3)
    matrix = 0.7 * np.eye(6) + 0.3 * rng.dirichlet(np.ones(6), size=6)
    people = table([2, 3])
    released = fp.release(people, domain=[2, 3], mechanism=fp.Channel(matrix), rng=5)
    one = fp.estimate_frequencies(released, columns=[1])
    whole = fp.estimate_frequencies(released).records.estimates.reshape(2, 3)
    np.testing.assert_allclose(one[1].estimates, whole.sum(axis=0), atol=1e-8)


@pytest.mark.slow
def test_the_standard_error_of_a_cell_is_its_spread():
    people = table([2, 3], n=300)
    runs = [
        fp.estimate_frequencies(
            fp.release(people, domain=[2, 3], epsilon=4.0, split="columns", rng=seed),
            columns=[0, 1],
        ).records
        for seed in range(400)
    ]
    spread = np.std([run.estimates for run in runs], axis=0)
    told = np.mean([run.standard_errors for run in runs], axis=0)
    assert np.all(abs(spread / told - 1.0) < 0.2)


def test_bayesian_update_is_a_law_of_larger_likelihood():
    people = np.repeat([0, 1, 2], [290, 10, 0])
    released = fp.release(people, domain=3, epsilon=1.0, rng=2)
    plain = fp.estimate_frequencies(released)[0]
    likeliest = fp.estimate_frequencies(released, method="bayesian")[0]
    assert likeliest.estimates.min() >= 0.0
    assert likeliest.estimates.sum() == pytest.approx(300.0)
    kernel = released.report.channel.matrix()
    counts = np.bincount(released.table, minlength=3)

    def likelihood(estimates):
        return counts @ np.log(estimates / 300.0 @ kernel)

    assert likelihood(likeliest.estimates) >= likelihood(plain.projected()) - 1e-9
    with pytest.raises(fp.InvalidInput, match="method"):
        fp.estimate_frequencies(released, method="magic")


def test_unknown_columns_are_explained():
    released = fp.release([{"smokes": "no"}] * 3, domain={"smokes": ["no", "yes"]}, epsilon=3.0)
    with pytest.raises(fp.InvalidInput, match="did you mean smokes"):
        fp.estimate_frequencies(released, columns=["smoke"])
    with pytest.raises(fp.InvalidInput, match="list of at least one"):
        fp.estimate_frequencies(released, columns=[])


def test_a_total_of_decimals_is_exact():
    ledger = fp.accounting.Ledger({"dp": 2.0})
    report = fp.preview_release(10**5, domain=[3] * 5, epsilon=2.0, split="columns")
    receipt = ledger.spend(report)
    assert Fraction(receipt.charged["dp"]) <= 2


@pytest.mark.parametrize(
    ("epsilon", "total"),
    [(0.4, 2.0), (0.1, 0.5), (1.2, 6.0), ({"a": 0.5, "b": 0.2, "c": 0.2, "d": 0.5, "e": 0.6}, 2.0)],
)
def test_levels_of_columns_add_up_as_the_decimals_they_are(epsilon, total):
    """Five times 0.4 fits a budget of 2 and prints as 2, whatever the double 0.4 is."""
    columns = [{"a": 0, "b": 1, "c": 0, "d": 1, "e": 2}] * 50
    domain = {"a": [0, 1], "b": [0, 1], "c": [0, 1], "d": [0, 1], "e": [0, 1, 2]}
    ledger = fp.accounting.Ledger({"dp": total})
    report = fp.release(
        columns,
        domain=domain,
        epsilon=epsilon,
        per_column=not isinstance(epsilon, dict),
        ledger=ledger,
    ).report
    assert total * (1 - 1e-14) < report.levels["dp"] <= total
    assert f" {total:g}\n" in str(report)
