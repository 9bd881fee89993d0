"""Filters and odometers against every strategy of an adversary, in fractions."""

import json
import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import cache

import pytest

import fastpriv as fp
from fastpriv.accounting import Ledger, PrivacyFilter, PrivacyOdometer, PrivacyProfile
from fastpriv.errors import BudgetExceeded, FastprivError, InvalidInput

RATIO = Fraction(3, 2)  # e^h
H = math.log(1.5)


def spends(budget, *step):
    """Whether a filter charges a step; otherwise it must raise and spend nothing."""
    before = budget.remaining
    try:
        budget.spend(*step)
    except BudgetExceeded:
        assert budget.remaining == before
        assert not budget.admits(*step)
        return False
    return True


def by_filter(budget, levels):
    """Whether a filter admits so many responses of each level."""

    @cache
    def admitted(counts):
        copy = PrivacyFilter.from_dict(budget.to_dict())
        return all(not n or spends(copy, k * H, n) for k, n in zip(levels, counts, strict=True))

    return admitted


def best_strategy(admitted, target, levels, depth):
    """Largest P(A) - e^epsilon Q(A) of any adaptive choice of responses that is admitted.

    The loss is an integer number of h; the state is the loss and what has been spent of each level.
    With likelihoods p and q = p e^-loss, a game that stops is worth p (1 - e^(epsilon - loss))_+.
    """
    odds = RATIO**target

    @cache
    def value(loss, spent):
        here = max(1 - odds / RATIO**loss, Fraction(0))
        best = here
        if sum(spent) == depth:
            return best
        for i, k in enumerate(levels):
            after = (*spent[:i], spent[i] + 1, *spent[i + 1 :])
            if admitted(after):
                yes = RATIO**k / (1 + RATIO**k)
                best = max(best, yes * value(loss + k, after) + (1 - yes) * value(loss - k, after))
        return best

    return value(0, (0,) * len(levels))


@pytest.mark.slow(but=["1-0.05", "1-0.001", "2-0.001"])
@pytest.mark.parametrize("delta", [0.3, 0.05, 1e-3])
@pytest.mark.parametrize("target", [1, 2, 4])
def test_no_strategy_beats_the_filter(target, delta):
    budget = PrivacyFilter(target * H, delta)
    worst = best_strategy(by_filter(budget, (1, 2)), target, (1, 2), 12)
    assert worst <= Fraction(delta)
    assert budget.remaining["rho"] > 0.0


def test_the_basic_filter_is_sharp():
    """Levels that add reach the budget exactly, and no further."""
    budget = PrivacyFilter(4 * H * (1 + 1e-12), rule="basic")
    assert best_strategy(by_filter(budget, (1, 2)), 4, (1, 2), 8) == 0
    wider = PrivacyFilter(6 * H * (1 + 1e-12))
    assert best_strategy(by_filter(wider, (1, 2)), 4, (1, 2), 8) > 0


def test_composed_profiles_are_no_filter():
    """Levels that are chosen on the way while the composed profile allows beat its delta."""
    target, levels, delta = 3, (1, 2), 0.1

    @cache
    def admitted(counts):
        kinds = [
            PrivacyProfile.randomised_response(2, k * H).self_compose(n)
            for k, n in zip(levels, counts, strict=True)
        ]
        return kinds[0].compose(kinds[1]).delta(target * H).upper <= delta

    assert best_strategy(admitted, target, levels, 8) > Fraction(delta)
    budget = PrivacyFilter(target * H, delta)
    assert best_strategy(by_filter(budget, levels), target, levels, 8) <= Fraction(delta)


@pytest.mark.parametrize("delta", [0.2, 0.01])
def test_no_strategy_beats_the_odometer(delta):
    """The chance that the loss is ever above what the odometer shows, largest over strategies."""
    levels, depth = (1, 3), 8
    odometer = PrivacyOdometer()

    @cache
    def shown(counts):
        odometer = PrivacyOdometer()
        for k, n in zip(levels, counts, strict=True):
            if n:
                odometer.spend(k * H, n)
        return odometer.epsilon(delta)

    @cache
    def value(loss, spent):
        if loss * H > shown(spent):
            return Fraction(1)
        if sum(spent) == depth:
            return Fraction(0)
        best = Fraction(0)
        for i, k in enumerate(levels):
            after = (*spent[:i], spent[i] + 1, *spent[i + 1 :])
            yes = RATIO**k / (1 + RATIO**k)
            best = max(best, yes * value(loss + k, after) + (1 - yes) * value(loss - k, after))
        return best

    assert value(0, (0, 0)) <= Fraction(delta)
    assert odometer.epsilon(delta) == 0.0


# What they say.


@pytest.mark.parametrize("level", [1e-8, 0.1, 1.0, 5.0, 40.0])
def test_levels_in_zcdp(level):
    """e tanh(e/2), against the largest D_a / a of randomised response."""
    odometer = PrivacyOdometer()
    odometer.spend(level)
    exact = PrivacyProfile.from_epsilon_delta(level).zcdp()
    assert exact.lower * (1 - 1e-9) <= odometer.rho <= exact.upper * (1 + 1e-9)
    assert odometer.rho <= 0.5 * level**2 * (1 + 1e-12)


def test_better_than_advanced_composition():
    e, k, delta = 0.05, 400, 1e-6
    advanced = math.sqrt(2 * k * e * e * math.log(1 / delta)) + k * e * e / 2
    assert PrivacyFilter(advanced, delta).admits(e, k)
    assert not PrivacyFilter(0.8 * advanced, delta).admits(e, k)
    odometer = PrivacyOdometer()
    odometer.spend(e, k)
    assert odometer.epsilon(delta) < k * e


def test_profiles_and_deltas():
    budget = PrivacyFilter(2.0, 1e-5, reserved=4e-6)
    assert spends(budget, PrivacyProfile.gaussian(20.0), 3)
    assert budget.remaining["rho"] < 0.1
    assert spends(budget, (0.05, 2e-6))
    assert spends(budget, (0.05, 2e-6))
    assert not spends(budget, (0.0, 1e-9))
    assert not spends(budget, PrivacyProfile.from_epsilon_delta(0.1, 1e-9))  # no zCDP
    assert spends(budget, 0.0, 10**9)
    basic = PrivacyFilter(1.0, 1e-6, rule="basic")
    assert spends(basic, fp.accounting.PrivacyProfile.laplace(2.0))
    assert spends(basic, (0.25, 1e-6))
    assert basic.remaining == {"epsilon": pytest.approx(0.25), "delta": 0.0}
    assert not spends(basic, PrivacyProfile.gaussian(1.0))


def test_ten_tenths_are_one():
    budget = PrivacyFilter(1.0)
    assert all(spends(budget, 0.1) for _ in range(10))
    assert budget.remaining["epsilon"] == 0.0
    assert not spends(budget, 5e-324)


def charged(budget, level):
    try:
        budget.spend(level)
    except BudgetExceeded:
        return False
    return True


def test_threads_never_overspend():
    budget = PrivacyFilter(1.0)
    with ThreadPoolExecutor(8) as pool:
        admitted = sum(pool.map(lambda _: charged(budget, 0.01), range(300)))
    assert admitted == 100


def test_kept_and_read():
    budget, odometer = PrivacyFilter(1.0, 1e-6, reserved=1e-7), PrivacyOdometer()
    budget.spend(0.01, 5)
    odometer.spend(0.3, 2)
    again = PrivacyFilter.from_dict(json.loads(json.dumps(budget.to_dict())))
    assert again.to_dict() == budget.to_dict() == pickle.loads(pickle.dumps(budget)).to_dict()
    assert again.remaining == budget.remaining
    read = PrivacyOdometer.from_dict(json.loads(json.dumps(odometer.to_dict())))
    assert read.epsilon(1e-6) == odometer.epsilon(1e-6)
    assert "rho" in repr(read)
    assert "left" in repr(again)
    spent = budget.to_dict()
    spent["spent"]["level"] = "10"
    with pytest.raises(InvalidInput, match="more than its budget"):
        PrivacyFilter.from_dict(spent)


@pytest.mark.parametrize("wrong", ["0.1", object(), fp.HammingChannel(3, 2, 0.1), None])
def test_what_is_no_level_names_the_argument(wrong):
    for budget in (PrivacyFilter(1.0), PrivacyFilter(1.0, 1e-6), PrivacyOdometer()):
        with pytest.raises(InvalidInput, match=r"release must be a level.*fastpriv\.adapters"):
            budget.spend(wrong)


@pytest.mark.parametrize(
    "make",
    [
        lambda: PrivacyFilter(-1.0),
        lambda: PrivacyFilter(math.nan),
        lambda: PrivacyFilter(1.0, 2.0),
        lambda: PrivacyFilter(1.0, rule="zcdp"),
        lambda: PrivacyFilter(1.0, 1e-6, rule="renyi"),
        lambda: PrivacyFilter(1.0, 1e-6, reserved=1e-6),
        lambda: PrivacyFilter(1.0).spend(-0.1),
        lambda: PrivacyFilter(1.0).spend(math.inf),
        lambda: PrivacyFilter(1.0).spend("0.1"),
        lambda: PrivacyFilter(1.0).spend(None),
        lambda: PrivacyFilter(1.0).spend((0.1,)),
        lambda: PrivacyFilter(1.0).spend((0.1, 2.0)),
        lambda: PrivacyFilter(1.0).spend(0.1, -1),
        lambda: PrivacyFilter(1.0).spend(0.1, 0),
        lambda: PrivacyFilter(1.0).spend(0.1, 1.5),
        lambda: PrivacyFilter.from_dict({"epsilon": 1.0}),
        lambda: PrivacyOdometer().spend((0.1, 1e-6)),
        lambda: PrivacyOdometer().spend(PrivacyProfile.from_epsilon_delta(1.0, 1e-6)),
        lambda: PrivacyOdometer().epsilon(-1.0),
        lambda: PrivacyOdometer.from_dict({}),
    ],
)
def test_input_that_means_nothing(make):
    with pytest.raises(FastprivError) as error:
        make()
    assert len(str(error.value)) < 250


def test_edges():
    assert spends(PrivacyFilter(0.0, 1e-6), 0.0)
    assert not spends(PrivacyFilter(0.0, 0.0), 1e-300)
    odometer = PrivacyOdometer()
    odometer.spend(1.0)
    assert odometer.epsilon(0.0) == math.inf
    assert odometer.epsilon(1.0) == 0.0


# A ledger whose levels are chosen after earlier outputs.


def test_a_ledger_with_adaptive_levels(tmp_path):
    path = tmp_path / "ledger"
    with Ledger.open(path, {"approximate-dp": (2.0, 1e-6, "adaptive")}) as ledger:
        ledger.spend(PrivacyProfile.gaussian(20.0), count=10)
        ledger.spend({"dp": 0.02}, count=5)
        rho = 10 / 800 + 5 * 0.02 * math.tanh(0.01)
        expected = PrivacyProfile.zcdp(rho).epsilon(1e-6).upper
        # The zCDP level of a response is known to some 1e-6, from above.
        assert expected <= ledger.spent["approximate-dp"] <= expected * (1 + 1e-5)
        room = ledger.runs_left(PrivacyProfile.gaussian(20.0))
        budget = PrivacyFilter(2.0, 1e-6)
        budget.spend(PrivacyProfile.gaussian(20.0), 10)
        budget.spend(0.02, 5)
        assert budget.admits(PrivacyProfile.gaussian(20.0), room)
        assert not budget.admits(PrivacyProfile.gaussian(20.0), room + 1)
        with pytest.raises(BudgetExceeded):
            ledger.spend({"approximate-dp": (0.01, 1e-9)})  # not zCDP
    with Ledger.open(path) as ledger:
        assert ledger.budget == {"approximate-dp": (2.0, 1e-6, "adaptive")}
        copy = Ledger.from_json(ledger.to_json())
        assert copy.spent == ledger.spent
        assert "zCDP levels add" in ledger.report()
    with pytest.raises(InvalidInput, match="adaptive"):
        Ledger({"approximate-dp": (2.0, 1e-6, "free")})


def test_releases_for_different_relations_do_not_add_up():
    """Totals of both would be a guarantee for neither: 2.6 was told where 5.2 is reached."""
    added, replaced = (
        PrivacyProfile.gaussian(2.0, relation=name) for name in ("add-or-remove", "replace-one")
    )
    for spends in (PrivacyFilter(50.0, 1e-6), PrivacyOdometer()):
        spends.spend(added)
        again = type(spends).from_dict(spends.to_dict())
        for each in (spends, again):
            before = each.to_dict()
            with pytest.raises(InvalidInput, match="do not compose"):
                each.spend(replaced)
            assert each.to_dict() == before
            each.spend(PrivacyProfile.gaussian(2.0))  # the same relation
            each.spend(0.1)
    budget = PrivacyFilter(50.0, 1e-6)
    budget.spend(added)
    with pytest.raises(InvalidInput, match="do not compose"):
        budget.admits(replaced)
