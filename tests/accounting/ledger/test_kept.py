"""The composed law of an (epsilon, delta) ledger is kept, and is what composing anew gives."""

import math
import multiprocessing
import sqlite3
import threading
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from fastpriv.accounting import Ledger, PrivacyProfile
from fastpriv.accounting.ledger import profiles
from fastpriv.accounting.ledger.profiles import (
    Composer,
    composed_epsilon,
    packed,
    profile_of,
    profile_text,
    unpacked,
)
from fastpriv.accounting.profile.running import Amounts, Running
from fastpriv.errors import BudgetExceeded

DELTA = 1e-5
levels = st.lists(st.floats(0.05, 0.5), min_size=5, max_size=6, unique=True)


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Keep the laws of few kinds of releases too, whose levels can be summed in full."""
    monkeypatch.setattr(profiles, "_COMPOSED_AFRESH", 4)


def texts(epsilons, deltas=None):
    deltas = deltas or [0.0] * len(epsilons)
    pairs = zip(epsilons, deltas, strict=True)
    return [profile_text(PrivacyProfile.from_epsilon_delta(e, d)) for e, d in pairs]


def one_by_one(parts, delta=DELTA):
    """Spend kinds one after the other, the last release of each at the end: level and laws."""
    running, sofar, level = Composer(delta, None), {}, 0.0
    for last in (False, True):
        for text, count in parts.items():
            sofar[text] = count if last else count - 1
            level = running.epsilon(sofar)
            running.spent(dict(sofar), False)
    return level, running.kept[1]


def exact_delta(epsilons, count, t):
    """Delta at level t of binary responses, ``count`` of each, as a sum over all numbers of 0s."""
    with mp.workdps(40):
        kinds = []
        for e in map(mpf, epsilons):
            stay = 1 / (1 + mp.exp(-e))
            kinds.append([
                (e * (2 * j - count), mp.binomial(count, j) * stay**j * (1 - stay) ** (count - j))
                for j in range(count + 1)
            ])  # fmt: skip
        total = mpf(0)
        for outcome in product(*kinds):
            loss = sum(loss for loss, _ in outcome)
            if loss > t:
                total += mp.fprod(mass for _, mass in outcome) * (1 - mp.exp(t - loss))
        return total


@pytest.mark.search(every=10)
@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.floats(0.05, 0.5), min_size=5, max_size=5, unique=True))
def test_levels_are_upper_and_close_to_a_sum_over_all_outcomes(epsilons):
    level, laws = one_by_one(dict.fromkeys(texts(epsilons), 4))
    assert laws
    assert exact_delta(epsilons, 4, mpf(level)) <= DELTA
    assert exact_delta(epsilons, 4, mpf(level) * (1 - mpf("1e-5"))) > DELTA


@pytest.mark.search(every=10)
@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(levels, st.integers(4, 9), st.sampled_from([1e-2, DELTA, 1e-8]))
def test_one_by_one_is_all_at_once(epsilons, count, delta):
    deltas = [0.0 if e > 0.3 else 1e-13 for e in epsilons]
    parts = {text: count + k for k, text in enumerate(texts(epsilons, deltas))}
    level, laws = one_by_one(parts, delta)
    assert laws
    assert level == pytest.approx(composed_epsilon(parts, delta), rel=1e-5)
    once = Composer(delta, None).epsilon(dict(sorted(parts.items())))
    assert level == pytest.approx(once, rel=1e-5)
    profile = PrivacyProfile({}).compose(*(profile_of(t).self_compose(k) for t, k in parts.items()))
    assert level >= profile.epsilon(delta).lower


def test_a_law_plus_a_release_is_the_law_of_both():
    """With the same tilt and grid, to rounding; and the bounds on errors only grow."""
    parts = dict.fromkeys(texts(np.linspace(0.1, 0.9, 12)), 3)
    releases = profiles.upper_measures(parts, DELTA, False)
    whole = Running.of(releases, DELTA)
    assert whole.epsilon(DELTA) is not None
    empty = Running(
        whole.s, whole.h, np.ones_like(whole.transform), np.zeros_like(whole.error), 0.0,
        whole.turns, np.zeros_like(whole.chernoff), (0.0, 0.0), 0, np.longdouble(0.0), Amounts(),
    )  # fmt: skip
    part = empty.plus(releases[:5])
    for one in releases[5:]:
        part = part.plus([one])
    np.testing.assert_allclose(part.transform, whole.transform, rtol=1e-12, atol=1e-12)
    assert part.window == whole.window
    assert part.epsilon(DELTA) == pytest.approx(whole.epsilon(DELTA), rel=1e-12)


def test_a_coarser_grid_bounds_from_above():
    """Moved again and again, the losses only rise, by the second order of the spacing."""
    parts = dict.fromkeys(texts(np.linspace(0.1, 0.3, 5)), 4)
    fine = Running.of(profiles.upper_measures(parts, DELTA, False), DELTA)
    truth = exact_level(np.linspace(0.1, 0.3, 5), 4)
    levels, grid = [fine.epsilon(DELTA)], fine
    for _ in range(5):
        grid = grid._coarser()
        assert grid.h > levels[0] * 1e-7
        levels.append(grid.epsilon(DELTA))
    assert truth <= levels[0] * (1 + 1e-12)
    assert levels == sorted(levels)
    assert levels[-1] == pytest.approx(truth, rel=1e-3)
    assert levels[-1] > levels[0]


def exact_level(epsilons, count):
    low, high = 0.0, 10.0
    for _ in range(30):
        middle = 0.5 * (low + high)
        above = exact_delta(epsilons, count, mpf(middle)) > DELTA
        low, high = (middle, high) if above else (low, middle)
    return low


@pytest.mark.slow(only=["1e-12", "1e-09"])
@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-7, 1e-9, 1e-12])
def test_noise_is_added_step_by_step(delta):
    """Subsampled Gaussians, both directions, beside Laplace noise and declared levels."""
    noise = [PrivacyProfile.gaussian(s, 0.02) for s in (1.0, 1.4, 2.0)]
    noise += [PrivacyProfile.laplace(20.0), PrivacyProfile.gaussian(4.0)]
    kinds = [profile_text(each) for each in noise] + texts([0.03])
    parts = {text: 1 + k for k, text in enumerate(kinds)}
    composer, sofar = Composer(delta, None), {}
    for text, count in parts.items():
        for k in range(count):
            sofar[text] = k + 1
            level = composer.epsilon(sofar)
            composer.spent(dict(sofar), False)
    assert len(composer.kept[1]) == 2
    truth = PrivacyProfile({}).compose(*(profile_of(t).self_compose(k) for t, k in parts.items()))
    found = truth.epsilon(delta)
    assert found.lower <= level <= found.upper * (1 + 2e-4)


def test_a_hundred_steps_match_the_contour():
    """The window grows with every step, and the grid becomes coarser."""
    step = PrivacyProfile.gaussian(10.0)
    measures = profiles.upper_measures({profile_text(step): 1}, DELTA, False)
    running = Running.of([*measures, *measures], DELTA)
    spacing = running.h
    for _ in range(98):
        running = running.plus(measures)
    found = step.self_compose(100).epsilon(DELTA)
    assert running.h > 2 * spacing
    assert found.lower <= running.epsilon(DELTA) <= found.upper * (1 + 1e-4)


@pytest.mark.slow
def test_refused_spends_and_questions_leave_no_trace():
    ledger, twin = (Ledger({"approximate-dp": (2.0, DELTA)}) for _ in range(2))
    for k in range(12):
        for each in (ledger, twin):
            each.spend({"dp": 0.02 + 0.001 * k}, count=20)
        if k >= 8:
            with pytest.raises(BudgetExceeded, match="approximate-dp"):
                ledger.spend({"dp": 3.0 + k})
        if k == 10:
            assert ledger.runs_left({"dp": 0.2}) > 0
    assert ledger._budget._composer.kept[1]
    assert ledger.spent == twin.spent
    assert len(ledger) == 12


@pytest.fixture
def spent(tmp_path):
    """A ledger file of twelve kinds of releases, which keeps their law."""
    path = tmp_path / "ledger"
    with Ledger.open(path, {"approximate-dp": (200.0, DELTA)}) as ledger:
        for k in range(12):
            ledger.spend({"dp": 0.1 + 0.02 * k}, count=5)
    return path


@pytest.fixture
def composed(monkeypatch):
    """How often all releases were composed again."""
    calls, make = [], Running.of.__func__
    monkeypatch.setattr(
        Running, "of", classmethod(lambda cls, *given: calls.append(1) or make(cls, *given))
    )
    return calls


def law_of(path, change=None):
    connection = sqlite3.connect(path)
    (data,) = connection.execute("SELECT data FROM composition").fetchone()
    if change is not None:
        connection.execute("UPDATE composition SET data = ?", (change(data),))
        connection.commit()
    connection.close()
    return data


def test_a_file_keeps_the_law(spent, composed):
    with Ledger.open(spent) as ledger:
        before = ledger.spent["approximate-dp"]
        ledger.spend({"dp": 0.001})
        after = ledger.spent["approximate-dp"]
        parts = dict(ledger._store.state().parts)
    assert not composed
    assert before <= after == pytest.approx(composed_epsilon(parts, DELTA), rel=1e-5)


def flipped(data, place):
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


@pytest.mark.parametrize(
    "change",
    [
        lambda data: flipped(data, 5),
        lambda data: flipped(data, len(data) // 2),
        lambda data: data[:-8],
        lambda data: b"",
        lambda data: b"no law at all",
    ],
)
def test_a_damaged_law_is_composed_again(spent, composed, change):
    law_of(spent, change)
    with Ledger.open(spent) as ledger:
        ledger.spend({"dp": 0.33})
        parts = dict(ledger._store.state().parts)
        level = ledger.spent["approximate-dp"]
    assert composed
    assert level == pytest.approx(composed_epsilon(parts, DELTA), rel=1e-5)


def test_a_law_is_used_after_the_entry_it_was_made_for(spent):
    data = law_of(spent)
    number, mark, law = unpacked(data)
    with Ledger.open(spent) as ledger:
        parts = dict(ledger._store.state().parts)
        assert number == 11  # each spend but one is stored
        assert parts.popitem() == (*texts([0.32]), 5)
        assert ledger._store.parts_at(number, mark) == parts
        ledger.spend({"dp": 0.1})
        ledger.amend({"approximate-dp": (300.0, DELTA)}, actor="a", reason="b")
        ledger.spend({"dp": 0.7}, count=2)
        assert ledger._store.parts_at(number, mark) == parts
        assert ledger._store.parts_at(number, mark + 1) is None
        assert ledger._store.parts_at(number - 1, mark) is None
        assert ledger._store.parts_at(99, mark) is None
    again = unpacked(packed(number, mark, law))[2]
    for one, other in zip(law, again, strict=True):
        assert one.log_total == other.log_total
        assert (one.chernoff == other.chernoff).all()
        assert one.epsilon(DELTA) == pytest.approx(other.epsilon(DELTA), rel=1e-14)


@pytest.fixture
def added(monkeypatch):
    """How many kinds were added to a kept law, in each spend."""
    calls, add = [], profiles.more
    monkeypatch.setattr(
        profiles,
        "more",
        lambda law, parts, delta: calls.append(len(parts)) or add(law, parts, delta),
    )
    return calls


def test_a_spend_after_others_adds_its_own_step_alone(spent, added, monkeypatch):
    """Their law is read from the file, whether few or many of them were faster."""
    monkeypatch.setattr(profiles, "_SMALL", profiles.LENGTH)
    with Ledger.open(spent) as busy, Ledger.open(spent) as beside:
        beside.spend({"dp": 0.01})
        for others in (1, 2, 9):
            for k in range(others):
                busy.spend({"dp": 0.2 + 0.001 * k + 0.05 * others})
            added.clear()
            beside.spend({"dp": 0.01})
            assert added == [1]
        level, parts = beside.spent["approximate-dp"], dict(beside._store.state().parts)
    assert level == pytest.approx(composed_epsilon(parts, DELTA), rel=1e-5)


def test_a_spend_that_is_overtaken_has_the_next_turn(spent, added, monkeypatch):
    """It is composed again as a writer, by adding its own step to what the faster one left."""
    monkeypatch.setattr(profiles, "_SMALL", profiles.LENGTH)
    with Ledger.open(spent) as busy, Ledger.open(spent) as slow:
        make, overtaken = type(slow)._next, []

        def late(self, before, *given):
            result = make(self, before, *given)
            if self is slow and len(overtaken) < 30 and not slow._store._writing:
                overtaken.append(busy.spend({"dp": 0.5 + 0.001 * len(overtaken)}))
                added.clear()
            return result

        monkeypatch.setattr(Ledger, "_next", late)
        receipt = slow.spend({"dp": 0.01})
        assert receipt.number == overtaken[-1].number + 1
        assert len(overtaken) == 1
        assert added == [1]


def test_nobody_waits_for_a_new_tilt(spent, monkeypatch):
    """If all steps must be composed again, the writer's turn is given back."""
    with Ledger.open(spent) as busy, Ledger.open(spent) as slow:
        slow.spend({"dp": 0.01})
        make, overtaken = type(slow)._next, []

        def late(self, before, *given):
            if self is slow and slow._store._writing:
                monkeypatch.setattr(Running, "is_close", lambda *given: False)
            result = make(self, before, *given)
            if self is slow and not overtaken:
                overtaken.append(busy.spend({"dp": 0.5}))
            return result

        def composed_alone(*given):
            assert not slow._store._writing
            return make_all(*given)

        make_all = profiles.composed
        monkeypatch.setattr(profiles, "composed", composed_alone)
        monkeypatch.setattr(Ledger, "_next", late)
        assert slow.spend({"dp": 0.01}).number == overtaken[0].number + 1


def spender(path, first):
    with Ledger.open(path) as ledger:
        for k in range(6):
            ledger.spend({"dp": 0.1 + 0.01 * (first + 3 * k)})


@pytest.mark.slow
def test_threads_and_processes_compose_what_all_of_them_spent(spent):
    process = multiprocessing.get_context("spawn").Process(target=spender, args=(spent, 100))
    process.start()
    threads = [threading.Thread(target=spender, args=(spent, 50 + j)) for j in range(2)]
    for thread in threads:
        thread.start()
    for task in (*threads, process):
        task.join()
    assert process.exitcode == 0
    with Ledger.open(spent) as ledger:
        assert len(ledger) == 30
        parts = dict(ledger._store.state().parts)
        assert sum(parts.values()) == 78
        assert ledger.spent["approximate-dp"] == pytest.approx(
            composed_epsilon(parts, DELTA), rel=1e-5
        )
        assert Ledger.from_json(ledger.to_json()).spent == ledger.spent


def test_releases_that_show_their_input_or_moments_are_composed_as_before():
    kinds = texts(np.linspace(0.1, 0.9, 10).tolist())
    known = profile_text(PrivacyProfile.zcdp(0.01))  # no losses are known, only their moments
    parts = dict.fromkeys([*kinds, known], 1)
    assert Composer(DELTA, None).epsilon(parts) == composed_epsilon(parts, DELTA)
    shows = profile_text(PrivacyProfile.of([[1.0, 0.0], [0.0, 1.0]]))
    assert Composer(DELTA, None).epsilon(dict.fromkeys([*kinds, shows], 1)) == math.inf
    hidden = texts(np.linspace(0.1, 0.9, 10), [2e-6] * 10)  # more than delta together
    assert Composer(DELTA, None).epsilon(dict.fromkeys(hidden, 1)) == math.inf
