"""Relations of neighbours: every profile has one, and what has different ones does not add up."""

import json
import math
import sqlite3

import numpy as np
import pytest
from scipy.stats import norm

import fastpriv as fp
from fastpriv.accounting import Ledger, PrivacyFilter, PrivacyOdometer, PrivacyProfile
from fastpriv.errors import InvalidInput

ADDED, REPLACED, SPECIAL = "add-or-remove", "replace-one", "replace-special"
BIT = [[0.75, 0.25], [0.25, 0.75]]

NOISE = {
    "gaussian": lambda **relation: PrivacyProfile.gaussian(1.0, **relation),
    "sampled gaussian": lambda **relation: PrivacyProfile.gaussian(1.0, 0.1, **relation),
    "laplace": lambda **relation: PrivacyProfile.laplace(1.0, **relation),
    "sampled laplace": lambda **relation: PrivacyProfile.laplace(1.0, 0.1, **relation),
    "discrete gaussian": lambda **relation: PrivacyProfile.discrete_gaussian(2.0, **relation),
    "discrete laplace": lambda **relation: PrivacyProfile.discrete_laplace(0.5, **relation),
    "exponential": lambda **relation: PrivacyProfile.exponential(1.0, **relation),
    "truncated": lambda **relation: PrivacyProfile.truncated_subsampled_gaussian(
        100, 0.1, 20, 1.0, **relation
    ),
    "zcdp": lambda **relation: PrivacyProfile.zcdp(0.5, **relation),
    "renyi": lambda **relation: PrivacyProfile.renyi([2.0, 4.0], [0.1, 0.2], **relation),
    "gdp": lambda **relation: PrivacyProfile.gdp(0.5, **relation),
    "declared": lambda **relation: PrivacyProfile.from_epsilon_delta(0.5, 1e-6, **relation),
}
CHANNELS = {
    "of": lambda: PrivacyProfile.of(BIT),
    "realised": lambda: PrivacyProfile.realised(fp.HammingChannel(3, 2, 0.5)),
    "response": lambda: PrivacyProfile.randomised_response(3, 0.5),
    "shuffled": lambda: fp.accounting.shuffled(BIT, 10),
}


# Every profile says what neighbours are.


@pytest.mark.parametrize("make", NOISE.values(), ids=NOISE)
def test_noise_is_for_records_that_come_and_go_unless_said(make):
    assert make().relation == ADDED
    assert make() == make(relation=ADDED)
    for relation in (ADDED, REPLACED, SPECIAL):
        profile = make(relation=relation)
        assert profile.relation == profile.self_compose(3).relation == relation
        assert f"relation={relation!r}" in repr(profile)
        assert json.loads(profile.to_json())["relation"] == relation
        assert PrivacyProfile.from_json(profile.to_json()) == profile


@pytest.mark.parametrize("make", CHANNELS.values(), ids=CHANNELS)
def test_channels_are_for_records_that_are_replaced(make):
    assert make().relation == REPLACED
    assert f"relation={REPLACED!r}" in repr(make())


def test_other_profiles_have_a_relation():
    assert PrivacyProfile({}).relation == ADDED
    assert fp.accounting.random_allocation(1.0, 10).relation == ADDED
    assert PrivacyProfile.mixture_of_gaussians(1.0, [0, 1], [0.5, 0.5]).relation == ADDED
    noise = PrivacyProfile.gaussian(2.0, relation=REPLACED)
    assert noise.sampled_without_replacement(1, 10).relation == REPLACED
    assert noise.sampled_with_replacement(1, 10, relation=SPECIAL).relation == SPECIAL
    assert PrivacyProfile.gaussian(1.0).poisson_subsampled(0.1).relation == ADDED
    assert PrivacyProfile({}, None).relation == ADDED
    with pytest.raises(InvalidInput, match="must be one of add-or-remove"):
        PrivacyProfile({}, "remove")


def test_the_issue_in_numbers():
    """1,000 steps of DP-SGD: both numbers are right, for different questions."""
    added = PrivacyProfile.gaussian(1.0, 0.01).self_compose(1000).epsilon(1e-5)
    replaced = PrivacyProfile.gaussian(1.0, 0.01, relation=REPLACED).self_compose(1000)
    assert round(added.upper, 3) == 1.828
    assert round(replaced.epsilon(1e-5).upper, 3) == 2.843


def test_the_issue_in_a_ledger():
    """1.848 was reported for both together, where 2.859 is reached."""
    ledger = Ledger({"approximate-dp": (9.0, 1e-5)})
    ledger.spend(PrivacyProfile.gaussian(1.0, 0.01), count=1000)
    with pytest.raises(InvalidInput, match=r"do not compose; .* relation='replace-one'"):
        ledger.spend(PrivacyProfile.gaussian(1.0, 0.01, relation=REPLACED), count=10)


# Mixing is refused.


@pytest.mark.parametrize("channel", CHANNELS.values(), ids=CHANNELS)
@pytest.mark.parametrize("noise", ["gaussian", "zcdp", "declared"])
def test_channels_and_noise_compose_for_one_relation_only(noise, channel):
    for pair in ((NOISE[noise](), channel()), (channel(), NOISE[noise]())):
        with pytest.raises(InvalidInput, match=r"do not compose; .* relation='replace-one'"):
            pair[0].compose(pair[1])
    assert channel().compose(NOISE[noise](relation=REPLACED)).relation == REPLACED


def test_nothing_composes_with_everything():
    """No release is private for every relation; its own word does not count."""
    for nothing in (
        PrivacyProfile({}),
        PrivacyProfile.gaussian(1.0, 0.0),
        PrivacyProfile.from_epsilon_delta(0.0),
        PrivacyProfile.laplace(1.0).self_compose(0),
    ):
        for profile in (PrivacyProfile.of(BIT), PrivacyProfile.gaussian(1.0, relation=SPECIAL)):
            assert nothing.compose(profile) == profile == profile.compose(nothing)
        ledger = Ledger({"approximate-dp": (3.0, 1e-6)})
        ledger.spend(nothing)
        assert ledger.relation is None
    assert PrivacyProfile({}, REPLACED).compose(PrivacyProfile({})).relation == REPLACED


@pytest.mark.parametrize("method", ["sampled_without_replacement", "sampled_with_replacement"])
def test_samples_of_fixed_size_need_a_step_for_replacement(method):
    with pytest.raises(InvalidInput, match="got 'add-or-remove'"):
        getattr(PrivacyProfile.gaussian(1.0), method)(1, 10)


@pytest.mark.parametrize("budget", [{"approximate-dp": (9.0, 1e-5)}, {"dp": 900.0}])
def test_a_ledger_has_one_relation(tmp_path, budget):
    noise = PrivacyProfile.discrete_laplace(0.001)
    path = tmp_path / "a.ledger"
    with Ledger.open(path, budget) as ledger:
        assert ledger.relation is None
        ledger.spend({"dp": 0.1})
        assert ledger.relation is None
        assert "relation: not stated" in ledger.report()
        ledger.spend(noise, count=100)
        assert ledger.relation == ADDED
        before = ledger.spent
        for other in (
            PrivacyProfile.discrete_laplace(0.001, relation=REPLACED),
            BIT,
            fp.mechanisms.GeometricCount(9, 0.5),
        ):
            with pytest.raises(InvalidInput, match="do not compose"):
                ledger.spend(other, count=10)
            with pytest.raises(InvalidInput, match="do not compose"):
                ledger.runs_left(other)
        assert ledger.spent == before
        text = ledger.to_json()
    for again in (Ledger.open(path), Ledger.from_json(text)):
        assert again.relation == ADDED
        assert again.report().endswith("relation: add-or-remove")
        with pytest.raises(InvalidInput, match="do not compose"):
            again.spend(BIT)
        again.spend(noise)
        again.close()


def test_a_relation_may_be_given_to_a_ledger(tmp_path):
    path = tmp_path / "a.ledger"
    with Ledger.open(path, {"dp": 1.0}, relation=REPLACED) as ledger:
        assert ledger.relation == REPLACED
    with Ledger.open(path, relation=REPLACED) as ledger:
        with pytest.raises(InvalidInput, match="do not compose"):
            ledger.spend(PrivacyProfile.laplace(9.0))
        ledger.spend(fp.HammingChannel(2, 2, 0.1))
    with pytest.raises(InvalidInput, match="relation must be 'replace-one', that of the ledger"):
        Ledger.open(path, relation=ADDED)
    with pytest.raises(InvalidInput, match="must be one of add-or-remove"):
        Ledger({"dp": 1.0}, relation="remove")
    assert Ledger({"dp": 1.0}, relation=SPECIAL).relation == SPECIAL


def test_a_released_table_is_for_replacement():
    table = fp.preview_release(3, domain={"x": [0, 1]}, epsilon=0.5)
    ledger = Ledger({"dp": 2.0})
    ledger.spend(table)
    assert ledger.relation == REPLACED
    with pytest.raises(InvalidInput, match="do not compose"):
        ledger.spend(PrivacyProfile.laplace(9.0))


@pytest.mark.parametrize(
    "make", [lambda **given: PrivacyFilter(50.0, 1e-6, **given), PrivacyOdometer]
)
def test_filters_and_odometers_have_one_relation(make):
    spends = make()
    spends.spend(0.1)
    assert spends.relation is None
    spends.spend(PrivacyProfile.of(BIT))
    for each in (spends, type(spends).from_dict(spends.to_dict())):
        assert each.relation == REPLACED
        before = each.to_dict()
        with pytest.raises(InvalidInput, match="do not compose"):
            each.spend(PrivacyProfile.gaussian(20.0))
        assert each.to_dict() == before
        each.spend(PrivacyProfile.gaussian(20.0, relation=REPLACED))
    assert make(relation=SPECIAL).relation == SPECIAL
    with pytest.raises(InvalidInput, match="do not compose"):
        make(relation=SPECIAL).spend(PrivacyProfile.of(BIT))
    with pytest.raises(InvalidInput, match="must be one of add-or-remove"):
        make(relation="remove")


# What earlier versions wrote.


@pytest.mark.parametrize("without", [{}, {"relation": None}])
def test_profiles_without_a_relation_are_refused(without):
    for profile in (PrivacyProfile.gaussian(2.0), PrivacyProfile.of(BIT)):
        with pytest.raises(InvalidInput, match="relation"):
            PrivacyProfile.from_dict({**without, "releases": profile.to_dict()["releases"]})
    assert PrivacyProfile.from_dict({**without, "releases": []}) == PrivacyProfile({})


def earlier(path, relation):
    """Make a file one of the first version, which kept a relation only where some spend had."""
    with Ledger.open(path) as ledger:
        text = json.loads(ledger.to_json())
    path.unlink()
    connection = sqlite3.connect(path)
    connection.executescript(
        "CREATE TABLE ledger (budget TEXT, entries INTEGER, spent TEXT, prior TEXT);"
        "CREATE TABLE part (id INTEGER PRIMARY KEY, text TEXT UNIQUE, count TEXT);"
        "CREATE TABLE entry (number INTEGER PRIMARY KEY, time TEXT, label TEXT, count INTEGER, "
        "charged TEXT, part INTEGER REFERENCES part);"
        "PRAGMA application_id = 1718645366; PRAGMA user_version = 1;"
    )
    counts = {}
    for entry in text["entries"]:
        if entry["part"] is not None:
            counts[entry["part"]] = counts.get(entry["part"], 0) + entry["count"]
    for part, count in counts.items():
        connection.execute("INSERT INTO part (text, count) VALUES (?, ?)", (part, str(count)))
    for entry in text["entries"]:
        values = [entry.get(name) for name in ("number", "time", "label", "count")]
        connection.execute(
            "INSERT INTO entry VALUES (?, ?, ?, ?, ?, (SELECT id FROM part WHERE text = ?))",
            (*values, json.dumps(entry["charged"]), entry["part"]),
        )
    totals = json.dumps(text["budget"]), len(text["entries"]), json.dumps(text["spent"]), None
    connection.execute("INSERT INTO ledger VALUES (?, ?, ?, ?)", totals)
    if relation is not None:
        connection.execute("CREATE TABLE relation (id INTEGER PRIMARY KEY, name TEXT NOT NULL)")
        connection.execute("INSERT INTO relation VALUES (0, ?)", (relation,))
    connection.commit()
    connection.close()


def recorded(path):
    """Whether all spends of a ledger were checked against its relation."""
    with Ledger.open(path) as ledger:
        return json.loads(ledger.to_json())["recorded"]


CURVE, PURE = {"approximate-dp": (9.0, 1e-5)}, {"dp": 9.0}


@pytest.mark.parametrize(
    ("budget", "spends", "stored", "found"),
    [
        (CURVE, [PrivacyProfile.gaussian(9.0)], None, ADDED),
        (PURE, [PrivacyProfile.laplace(9.0)], None, ADDED),
        (PURE, [{"dp": 0.1}], None, ADDED),
        (CURVE, [BIT, {"dp": 0.1}], REPLACED, REPLACED),
        (CURVE, [BIT, PrivacyProfile.gaussian(9.0, relation=REPLACED)], REPLACED, SPECIAL),
        (PURE, [BIT], REPLACED, SPECIAL),
        (CURVE, [PrivacyProfile.gaussian(9.0)], ADDED, ADDED),
        (CURVE, [PrivacyProfile.gaussian(9.0, relation=SPECIAL)], SPECIAL, SPECIAL),
    ],
)
def test_ledgers_of_earlier_versions(tmp_path, budget, spends, stored, found):
    """They open with their totals. What is added to them is for what their spends hold for."""
    path = tmp_path / "old.ledger"
    with Ledger.open(path, budget) as ledger:
        for spend in spends:
            ledger.spend(spend)
        spent, text = ledger.spent, json.loads(ledger.to_json())
    earlier(path, stored)
    del text["recorded"]
    names = ("number", "time", "label", "count", "charged", "part")
    entries = [{name: each.get(name) for name in names} for each in text["entries"]]
    text |= {"relation": stored, "version": 1, "entries": entries}
    others = {
        ADDED: PrivacyProfile.laplace(90.0),
        REPLACED: fp.HammingChannel(2, 2, 0.01),
        SPECIAL: PrivacyProfile.laplace(90.0, relation=SPECIAL),
    }
    copy = tmp_path / "copy.ledger"
    Ledger.from_json(json.dumps(text), copy).close()
    for where in (path, copy):
        with Ledger.open(where) as ledger:
            assert (ledger.spent, ledger.relation) == (spent, found)
            ledger.spend({"dp": 0.01})
            for relation, other in others.items():
                if relation != found:
                    with pytest.raises(InvalidInput, match=f"open it with relation={relation!r}"):
                        ledger.spend(other)
        assert not recorded(where)
        with Ledger.open(where) as ledger:
            assert ledger.relation == found
            ledger.spend(others[found])
        assert recorded(where)
        with Ledger.open(where) as ledger:
            assert ledger.relation == found
            for relation, other in others.items():
                if relation != found:
                    with pytest.raises(InvalidInput, match="do not compose"):
                        ledger.spend(other)


def test_the_relation_of_an_earlier_ledger_may_be_stated(tmp_path):
    path = tmp_path / "old.ledger"
    with Ledger.open(path, PURE) as ledger:
        ledger.spend(BIT)
    earlier(path, REPLACED)
    with pytest.raises(InvalidInput, match="relation must be 'replace-one'"):
        Ledger.open(path, relation=ADDED)
    with Ledger.open(path, relation=REPLACED) as ledger:
        ledger.spend(BIT)
    with Ledger.open(path) as ledger:
        assert ledger.relation == REPLACED


@pytest.mark.parametrize(("stored", "found"), [(None, ADDED), (REPLACED, SPECIAL), (ADDED, ADDED)])
def test_filters_of_earlier_versions(stored, found):
    for spends in (PrivacyFilter(9.0, 1e-6), PrivacyOdometer()):
        spends.spend(0.1)
        given = spends.to_dict()
        del given["spent"]["recorded"]
        given["spent"]["relation"] = stored
        assert type(spends).from_dict(given).relation == found


# What a relation means, by brute force.


GRID = np.linspace(-16.0, 16.0, 1 << 16)


def hockey_stick(first, second, t):
    """sup over events of P(A) - e^t Q(A), for densities on the line, to about 1e-8."""
    return np.maximum(first - math.exp(t) * second, 0.0).sum() * (GRID[1] - GRID[0])


@pytest.mark.parametrize("q", [1.0, 0.3, 0.01])
@pytest.mark.parametrize("t", [0.0, 0.2, 1.0])
def test_sampled_gaussian_noise(q, t):
    """With, without and with another person, whose record is the opposite."""
    with_one, without, other = (
        (1.0 - q) * norm.pdf(GRID, 0, 1.5) + q * norm.pdf(GRID, at, 1.5) for at in (1, 0, -1)
    )
    added = PrivacyProfile.gaussian(1.5, q).delta(t)
    pairs = hockey_stick(with_one, without, t), hockey_stick(without, with_one, t)
    assert added.lower - 1e-7 <= max(pairs) <= added.upper + 1e-7
    replaced = PrivacyProfile.gaussian(1.5, q, relation=REPLACED).delta(t)
    assert replaced.lower - 1e-7 <= hockey_stick(with_one, other, t) <= replaced.upper + 1e-7


def geometric(a, most=80):
    x = np.arange(-most, most + 1)
    return np.exp(-a * np.abs(x)) * np.tanh(a / 2)


@pytest.mark.parametrize("q", [1.0, 0.3])
@pytest.mark.parametrize("t", [0.0, 0.3])
def test_sampled_discrete_noise_on_all_databases(q, t):
    """Sums of at most two records in {-1, 0, 1}, each in the sample with probability q."""

    def law(records):
        result = geometric(0.7)
        for record in records:
            result = (1 - q) * result + q * np.roll(result, record)
        return result

    def worst(pairs):
        return max(np.maximum(law(a) - math.exp(t) * law(b), 0.0).sum() for a, b in pairs)

    values = (-1, 0, 1)
    added = [((a,), (a, b)) for a in values for b in values]
    added += [(b, a) for a, b in added]
    replaced = [((a, b), (a, c)) for a in values for b in values for c in values]
    blank = [pair for pair in replaced if 0 in (pair[0][1], pair[1][1])]
    for relation, pairs in ((ADDED, added), (REPLACED, replaced), (SPECIAL, blank)):
        noise = PrivacyProfile.discrete_laplace(0.7, relation=relation)
        found = (noise if q == 1.0 else noise.poisson_subsampled(q)).delta(t)
        assert worst(pairs) <= found.upper + 1e-12, relation
        assert worst(pairs) >= found.lower - 1e-12, relation


def test_a_sample_that_is_shown_beside_noise():
    """It was 0.5416 where 0.1 + 0.9 delta is reached: who is not sampled is replaced unseen."""
    shown = PrivacyProfile.gaussian(0.0, 0.1, relation=REPLACED)
    noise = PrivacyProfile.gaussian(1.0, relation=REPLACED)
    alone = noise.delta(1.0)
    together = shown.compose(noise).delta(1.0)
    assert together.lower <= 0.1 + 0.9 * alone.upper
    assert together.upper >= 0.1 + 0.9 * alone.lower
    assert together.lower > 0.5588


@pytest.mark.parametrize(
    "make",
    [
        lambda r: PrivacyProfile.gaussian(1.0, relation=r).self_compose(5),
        lambda r: PrivacyProfile.gaussian(1.0, 0.01, relation=r),
        lambda r: PrivacyProfile.laplace(3.0, relation=r).self_compose(7),
        lambda r: PrivacyProfile.laplace(3.0, 0.1, relation=r),
        lambda r: PrivacyProfile.discrete_laplace(0.3, relation=r).self_compose(4),
        lambda r: PrivacyProfile.discrete_gaussian(3.0, relation=r).self_compose(4),
    ],
)
@pytest.mark.parametrize("e", [0.1, 0.5])
def test_a_replacement_is_a_removal_and_an_addition(make, e):
    """delta(2 e) where a record is replaced is at most (1 + exp(e)) delta(e) of the other."""
    one, two = make(ADDED), make(REPLACED)
    assert two.delta(2 * e).lower <= (1 + math.exp(e)) * one.delta(e).upper
    assert two.delta(e).lower >= one.delta(e).lower * (1 - 1e-9)


def test_group_privacy_of_two_on_random_channels():
    """The rules of the guide, for three laws of which the first two and the last two are near."""
    rng = np.random.default_rng(5)
    for _ in range(200):
        laws = rng.dirichlet([0.7] * 4, 3)
        e = rng.uniform(0.05, 1.5)

        def delta(a, b, t):
            return max(np.maximum(x - math.exp(t) * y, 0.0).sum() for x, y in ((a, b), (b, a)))

        near = max(delta(laws[0], laws[1], e), delta(laws[1], laws[2], e))
        assert delta(laws[0], laws[2], 2 * e) <= (1 + math.exp(e)) * near + 1e-12
    one = PrivacyProfile.gaussian(2.0)
    assert PrivacyProfile.gdp(2 * 0.5).delta(0.7) == PrivacyProfile.gaussian(1.0).delta(0.7)
    twice = PrivacyProfile.gaussian(2.0, relation=REPLACED)
    assert twice.zcdp().upper == pytest.approx(4 * one.zcdp().upper)
    assert twice.gdp().upper == pytest.approx(2 * one.gdp().upper)


# Messages.


@pytest.mark.parametrize("notion", ["dp", "identifiability", "pml", "strong-dp"])
def test_a_budget_that_fits_is_named(notion):
    """Gaussian noise has no pure level to declare."""
    for release in (PrivacyProfile.gaussian(1.0), {"approximate-dp": (1.0, 1e-6)}):
        with pytest.raises(InvalidInput, match=r'"approximate-dp": \(epsilon, delta\)') as error:
            Ledger({notion: 1.0}).spend(release)
        assert "declare" not in str(error.value)
    Ledger({"approximate-dp": (9.0, 1e-6)}).spend(PrivacyProfile.gaussian(1.0))


HUGE = 10**400
SHORT = {
    "budget": lambda: Ledger({"epsilon": 1.0}),
    "level": lambda: Ledger({"dp": 1.0}).spend({"epsilon": 1.0}),
    "notion": lambda: fp.accounting.compose_levels("epsilon", [1.0]),
    "implications": lambda: fp.implications(1.0, "epsilon"),
    "implications n": lambda: fp.implications(1.0, "dp", n=-HUGE),
    "missing": lambda: Ledger({"mutual-information": 1.0}).spend({"dp": 1.0}),
    "exceeded": lambda: Ledger({"mutual-information": 1 / 3}).spend({"mutual-information": 2 / 3}),
    "huge level": lambda: Ledger({"dp": HUGE}),
    "huge count": lambda: Ledger({"dp": 1.0}).spend({"dp": 0.1}, count=HUGE),
    "huge copies": lambda: PrivacyProfile.gaussian(1.0).self_compose(HUGE),
    "huge sample": lambda: PrivacyProfile.gaussian(1.0, relation=REPLACED).sampled_with_replacement(
        HUGE, 5
    ),
    "huge subset": lambda: PrivacyProfile.gaussian(
        1.0, relation=REPLACED
    ).sampled_without_replacement(HUGE, 5),
    "huge data set": lambda: PrivacyProfile.truncated_subsampled_gaussian(HUGE, 0.1, 5, 1.0),
    "huge sensitivity": lambda: PrivacyProfile.discrete_laplace(1.0, HUGE),
    "huge noise": lambda: PrivacyProfile.gaussian(HUGE),
    "huge shuffle": lambda: fp.accounting.shuffled(BIT, HUGE),
    "huge allocation": lambda: fp.accounting.random_allocation(1.0, HUGE),
    "allocation": lambda: fp.accounting.random_allocation(1.0, 5, relation="x" * 999),
    "huge pair": lambda: Ledger({"approximate-dp": (HUGE, HUGE)}),
    "long budget": lambda: Ledger({"approximate-dp": {"epsilon" * 9: HUGE, "x" * 999: [1] * 999}}),
    "long relation": lambda: PrivacyProfile.gaussian(1.0, relation="x" * 999),
    "long label": lambda: Ledger({"dp": 1.0}).spend({"dp": 0.1}, label=["x" * 99] * 99),
    "huge filter": lambda: PrivacyFilter(1.0).spend(HUGE),
    "huge parameter": lambda: fp.accounting.calibrate(
        PrivacyProfile.gaussian, epsilon=1.0, delta=1e-6, parameter="x" * 999
    ),
    "mixed": lambda: PrivacyProfile.gaussian(1.0, relation=SPECIAL).compose(PrivacyProfile.of(BIT)),
}


@pytest.mark.parametrize("call", SHORT.values(), ids=SHORT)
def test_messages_are_short(call):
    with pytest.raises(fp.errors.FastprivError) as error:
        call()
    assert len(str(error.value)) <= 200, str(error.value)


@pytest.mark.parametrize(
    "call",
    [
        lambda: Ledger({"identifiabilty": 1.0}),
        lambda: Ledger({"dp": 1.0}).spend({"identifiabilty": 1.0}),
        lambda: fp.accounting.compose_levels("identifiabilty", [1.0]),
        lambda: fp.implications(1.0, "identifiabilty"),
    ],
)
def test_the_nearest_notion_is_named(call):
    with pytest.raises(InvalidInput, match="did you mean identifiability"):
        call()


def test_a_curve_may_be_stated_for_another_relation():
    """A count moves by one also where a record is replaced."""
    count = PrivacyProfile.discrete_laplace(0.5)
    stated = count.with_relation(REPLACED)
    assert (stated.relation, count.relation) == (REPLACED, ADDED)
    assert stated.epsilon(0.0) == count.epsilon(0.0)
    assert stated.compose(PrivacyProfile.of(BIT)).relation == REPLACED
    for wrong in (None, "remove"):
        with pytest.raises(InvalidInput, match="must be one of add-or-remove"):
            count.with_relation(wrong)
