"""Ledgers: exact sums, composition laws, threads, processes, files, exports."""

import copy
import json
import math
import multiprocessing
import os
import pickle
import sqlite3
import subprocess
import sys
import threading
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
from fastpriv.accounting import LAWS, Ledger
from fastpriv.accounting.ledger import charges as _charges
from fastpriv.accounting.ledger import levels as _levels
from fastpriv.errors import BudgetExceeded, InvalidInput, LedgerError
from fastpriv.measures.realised import drawn_level
from oracles.ledger import accept, both, exact, truth

NOTIONS = [
    "strong-dp",
    "dp",
    "product-row-pml",
    "product-row-max-information",
    "identifiability",
    "pml-all-priors",
    "information-privacy",
    "pml",
    "divergence",
    "maximal-leakage",
    "mutual-information",
    "leakage-factor",
]
GENEROUS = dict.fromkeys(NOTIONS, 1000.0)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.ledger"


@pytest.fixture(params=["memory", "file"])
def make(request, path):
    """Make a ledger in memory, or in a file."""
    made = []

    def build(budget):
        ledger = Ledger(budget) if request.param == "memory" else Ledger.open(path, budget)
        made.append(ledger)
        return ledger

    yield build
    for ledger in made:
        ledger.close()


# Sums.


def test_ten_tenths_are_one(make):
    ledger = make({"dp": 1.0})
    for _ in range(10):
        ledger.spend({"dp": 0.1})
    assert ledger.spent == {"dp": 1.0}
    assert ledger.remaining == {"dp": 0.0}
    with pytest.raises(BudgetExceeded):
        ledger.spend({"dp": 5e-324})
    ledger.spend({"dp": 0})
    assert len(ledger) == 11


def test_ten_channels_of_a_tenth_fit_one(make):
    ledger = make({"dp": 1.0})
    channel = fp.HammingChannel(5, 3, 0.1)
    ledger.spend(channel)
    ledger.spend(channel, count=9)
    assert ledger.spent["dp"] <= 1.0
    with pytest.raises(BudgetExceeded):
        ledger.spend(channel)


LEVELS = st.one_of(
    st.floats(0.0, 1.0), st.sampled_from([0.1, 0.2, 0.3, 0.7, 1e-8, 5e-324, 1e-300, 1e300, 700.0])
)


@settings(deadline=None)
@given(budget=st.floats(0.0, 3.0), levels=st.lists(LEVELS, max_size=12))
def test_accepts_exactly_what_fits(budget, levels):
    taken, total = accept(budget, levels)
    ledger, found = Ledger({"dp": budget}), []
    for level in levels:
        try:
            ledger.spend({"dp": level})
            found.append(True)
        except BudgetExceeded:
            found.append(False)
    assert found == taken
    spent, left = ledger.spent["dp"], ledger.remaining["dp"]
    assert exact(spent) >= total  # rounded up, and no further than needed
    assert spent == 0.0 or exact(math.nextafter(spent, 0.0)) < total
    assert exact(left) <= exact(budget) - total
    assert exact(math.nextafter(left, math.inf)) > exact(budget) - total
    assert sum(Fraction(Decimal(r.charged["dp"].__repr__())) for r in ledger.history()) == total
    ledger.spend({"dp": left})


@settings(deadline=None)
@given(level=st.floats(0.0, 1.0), count=st.integers(1, 2**63 - 1))
def test_count_is_that_many_spends(level, count):
    ledger = Ledger({"dp": 1.0})
    if exact(level) * count <= 1:
        ledger.spend({"dp": level}, count=count)
        assert exact(ledger.spent["dp"]) >= exact(level) * count
    else:
        with pytest.raises(BudgetExceeded):
            ledger.spend({"dp": level}, count=count)
        assert ledger.spent["dp"] == 0.0


def test_other_numbers_are_taken_for_what_they_are():
    ledger = Ledger({"dp": Decimal("0.3"), "strong-dp": 7})
    ledger.spend({"dp": "0.1", "strong-dp": 2})
    ledger.spend({"dp": np.float64(0.1), "strong-dp": np.int64(5)})
    ledger.spend({"dp": Decimal("0.1"), "strong-dp": 0})
    assert ledger.spent == {"dp": 0.3, "strong-dp": 7.0}
    assert ledger.budget == {"dp": 0.3, "strong-dp": 7.0}


def test_too_much_says_what_and_spends_nothing(make):
    ledger = make({"dp": 1.0, "mutual-information": 0.25})
    ledger.spend({"dp": 0.25, "mutual-information": 0.125})
    with pytest.raises(BudgetExceeded, match=r"mutual-information: .* asks for 0\.5 but 0\.125 of"):
        ledger.spend({"dp": 0.25, "mutual-information": 0.5})
    with pytest.raises(BudgetExceeded) as caught:
        ledger.spend({"dp": math.inf, "mutual-information": 0.0})
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.notion, error.asked, error.remaining, error.budget) == ("dp", math.inf, 0.75, 1.0)
    assert str(error) == str(caught.value)
    assert ledger.spent == {"dp": 0.25, "mutual-information": 0.125}
    assert len(ledger) == len(ledger.history()) == 1


# Levels and laws.


@st.composite
def releases(draw):
    """Two channels on one space and a prior, all entries positive."""
    sizes = draw(st.sampled_from([(2,), (3,), (2, 2), (2, 3)]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    N = math.prod(sizes)
    sharpness = draw(st.sampled_from([0.3, 1.0, 5.0]))
    first, second = (
        rng.dirichlet(np.full(draw(st.integers(2, 4)), sharpness), N) + 1e-6 for _ in range(2)
    )
    first, second = (W / W.sum(axis=1, keepdims=True) for W in (first, second))
    prior = rng.dirichlet(np.ones(N)) + 1e-6
    return sizes, first, second, prior / prior.sum()


@settings(deadline=None, max_examples=60)
@given(releases())
def test_spent_covers_what_is_composed(case):
    sizes, first, second, p = case
    ledger, prior = Ledger(GENEROUS), fp.Dense(p, sizes)
    ledger.spend(fp.Channel(first, sizes), prior)
    one = truth(first, p, sizes)
    for notion, level in ledger.spent.items():
        slack = 1e-9 if notion != "divergence" else math.inf  # charged its pml level
        assert one[notion] * (1 - 1e-12) - 1e-14 <= level <= one[notion] * (1 + 1e-9) + slack
    ledger.spend(fp.Channel(second, sizes), prior)
    two = truth(both(first, second), p, sizes)
    for notion, level in ledger.spent.items():
        assert level >= two[notion] * (1 - 1e-12) - 1e-14, notion


def test_count_follows_the_law_too():
    W, p = np.array([[0.7, 0.3], [0.2, 0.8]]), np.array([0.1, 0.9])
    ledger, triple = Ledger(GENEROUS), both(W, both(W, W))
    receipt = ledger.spend(W, p, count=3)
    for notion, level in truth(triple, p, (2,)).items():
        assert receipt.charged[notion] >= level * (1 - 1e-12)
    assert math.isclose(
        receipt.charged["identifiability"],
        fp.identifiability_level(W, p) + 2 * fp.dp_level(W),
    )


def test_pointwise_levels_under_the_prior_do_not_add():
    """Why later releases are charged their leakage capacity: the sum of levels is too little."""
    W, p = np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([0.9, 0.1])
    assert truth(both(W, W), p, (2,))["pml"] < 2 * truth(W, p, (2,))["pml"]
    V = np.array([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [0.001, 0.4995, 0.4995]]) + 1e-9
    V, q = V / V.sum(axis=1, keepdims=True), np.array([0.005, 0.005, 0.99])
    one, two = truth(V, q, (3,)), truth(both(V, V), q, (3,))
    ledger = Ledger({"pml": 100.0})
    ledger.spend(V, q, count=2)
    assert ledger.spent["pml"] >= two["pml"]
    assert one["pml"] > 0


def test_information_on_rows_is_at_most_the_dp_level():
    ledger, W = Ledger({"product-row-information": 10.0}), [[0.7, 0.3], [0.2, 0.8]]
    ledger.spend(W, count=2)
    assert ledger.spent["product-row-information"] >= 2 * fp.channel_capacity(W).upper
    ledger.spend({"product-row-information": 0.5})
    assert len(ledger) == 2


def test_individual_capacity_adds_where_it_is_declared():
    ledger = Ledger({"individual-capacity": 1.0})
    ledger.spend({"individual-capacity": 0.25}, count=2)
    assert ledger.spent == {"individual-capacity": 0.5}


def test_identifiability_is_charged_once():
    ledger = Ledger({"identifiability": 10.0})
    prior = fp.Product.iid([0.8, 0.2], 3)
    ledger.spend(fp.HammingChannel(3, 2, 0.5), prior)
    ledger.spend(fp.HammingChannel(3, 2, 0.25))  # a later release needs no prior
    ledger.spend({"dp": 0.125})
    assert math.isclose(ledger.spent["identifiability"], math.log(4) + 0.875, rel_tol=1e-14)
    with pytest.raises(InvalidInput, match="charged the dp level"):
        ledger.spend({"identifiability": 0.1})


def test_the_first_release_of_a_prior_notion_needs_the_prior(make):
    ledger = make({"identifiability": 10.0})
    with pytest.raises(InvalidInput, match="give prior="):
        ledger.spend(fp.HammingChannel(3, 2, 0.5))
    with pytest.raises(InvalidInput, match="charged the identifiability level"):
        ledger.spend({"dp": 0.5})
    assert ledger.spent == {"identifiability": 0.0}


def test_information_is_kept_under_one_prior(make):
    ledger, W = make({"mutual-information": 1.0}), [[0.6, 0.4], [0.4, 0.6]]
    ledger.spend(W, [0.5, 0.5])
    ledger.spend(W, fp.Product([[0.5, 0.5]]))  # the same law, said in another way
    with pytest.raises(InvalidInput, match="under one prior"):
        ledger.spend(W, [0.25, 0.75])
    ledger.spend({"mutual-information": 0.1})
    assert len(ledger) == 3


def test_million_rows_on_a_markov_prior():
    n = 100_000
    prior = fp.Markov([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], n)
    ledger = Ledger({"dp": 1.0, "mutual-information": 1e5})
    ledger.spend(fp.HammingChannel(n, 2, 0.5), prior)
    bracket = fp.mutual_information(fp.HammingChannel(n, 2, 0.5), prior)
    assert ledger.spent["mutual-information"] >= bracket.upper


def test_what_is_drawn_counts_and_is_computed_once():
    calls = []

    class Drawn(fp.HammingChannel):
        pass

    @drawn_level.register
    def _(channel: Drawn) -> float:
        calls.append(channel)
        return 0.75

    ledger, channel = Ledger({"dp": 10.0}), Drawn(3, 2, 0.5)
    for _ in range(5):
        ledger.spend(channel)
    assert ledger.spent["dp"] == 3.75
    assert calls == [channel]
    ledger.spend(Drawn(3, 2, 0.5))  # another one is another one
    assert len(calls) == 2


def test_every_level_is_that_of_what_is_drawn():
    """A chance of 1e-30 is drawn as 2^-64: ratios and leakages are those of the draws."""
    channel = fp.QueryChannel([0, 1], [[1.0, 1e-30], [0.5, 0.5]], [2])
    prior = fp.Dense([0.5, 0.5])
    budget = {"strong-dp": 100.0, "pml": 100.0, "identifiability": 100.0, "maximal-leakage": 9.0}
    ledger = Ledger(budget | {"approximate-dp": (100.0, 1e-25)})
    ledger.spend(channel, prior)
    level = 63 * math.log(2)  # ln of 0.5 over 2^-64, not of 0.5 over 1e-30
    for notion in ("strong-dp", "identifiability", "approximate-dp"):
        assert ledger.spent[notion] == pytest.approx(level, rel=1e-9)
    assert ledger.spent["pml"] >= math.log(2 / (1 + 2**-63))


def test_every_law_has_a_measure():
    measured = _levels._PLAIN.keys() | _levels._UNDER_PRIOR.keys()
    assert {law.first for law in LAWS.values()} <= measured
    assert _levels._UNDER_PRIOR.keys() == _charges.UNDER_PRIOR


@pytest.mark.parametrize("epsilon", [1e-8, 0.0, 700.0])
def test_extreme_levels(epsilon):
    ledger = Ledger({"dp": 1400.0, "strong-dp": 1400.0})
    ledger.spend(fp.HammingChannel(1, 2, epsilon), count=2)
    assert ledger.spent["dp"] >= 0.0
    assert ledger.remaining["dp"] <= 1400.0


# What is refused.


@pytest.mark.parametrize(
    "budget",
    [None, {}, 3.0, {"dp": -1}, {"dp": math.nan}, {"dp": math.inf}, {"dp": "much"}, {"dp": None},
     {"dp": True}, {"privacy": 1.0}, {"dp": Decimal("1e-4000")}, {"dp": 10**400}],
)  # fmt: skip
def test_budgets_that_mean_nothing(budget):
    with pytest.raises(InvalidInput):
        Ledger(budget)


@pytest.mark.parametrize(
    "arguments",
    [
        {"mechanism": {"dp": -0.1}},
        {"mechanism": {"dp": math.nan}},
        {"mechanism": {"dp": "a lot"}},
        {"mechanism": {"privacy": 0.1}},
        {"mechanism": {}},
        {"mechanism": 0.1},
        {"mechanism": None},
        {"mechanism": {"dp": 0.1}, "count": 0},
        {"mechanism": {"dp": 0.1}, "count": 1.5},
        {"mechanism": {"dp": 0.0}, "count": 2**63},
        {"mechanism": {"dp": 0.1}, "label": 7},
        {"mechanism": {"dp": 0.1}, "label": "\ud800"},
        {"mechanism": fp.Uniform(2, 2)},
    ],
)
def test_spends_that_mean_nothing(make, arguments):
    ledger = make({"dp": 1.0})
    with pytest.raises(InvalidInput):
        ledger.spend(**arguments)
    assert ledger.spent == {"dp": 0.0}
    assert len(ledger) == 0


# Threads and processes.


def spend_all(ledger, level, made):
    while True:
        try:
            made.append(ledger.spend({"dp": level}).number)
        except BudgetExceeded:
            return


def test_threads_share_a_budget(make):
    ledger, made = make({"dp": 1.0}), []
    threads = [threading.Thread(target=spend_all, args=(ledger, 0.01, made)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == list(range(1, 101))
    assert ledger.spent["dp"] == 1.0


def test_ledgers_of_one_file_see_each_other(path):
    with Ledger.open(path, {"dp": 1.0}) as one, Ledger.open(path) as other:
        one.spend({"dp": 0.5}, label="one")
        assert other.remaining == {"dp": 0.5}
        other.spend({"dp": 0.25}, label="other")
        assert one.spent == {"dp": 0.75}
        with pytest.raises(BudgetExceeded):
            one.spend({"dp": 0.5})
        assert [(r.label, r.number) for r in one.history()] == [("one", 1), ("other", 2)]
        assert [r.label for r in one.history(last=1)] == ["other"]


def test_a_first_release_that_comes_second_is_charged_as_later(path):
    """Somebody else spends after the levels were computed and before the transaction."""
    budget, prior = {"identifiability": 10.0}, [0.8, 0.2]
    channel = fp.Channel([[0.6, 0.4], [0.4, 0.6]])
    with Ledger.open(path, budget) as slow, Ledger.open(path) as fast:
        write = slow._store.write

        def late(make):
            fast.spend({"identifiability": 1.0})
            write(make)

        slow._store.write = late
        receipt = slow.spend(channel, prior)
    assert receipt.charged["identifiability"] == pytest.approx(fp.dp_level(channel), rel=1e-12)


FORKED = """
import os, sys, warnings
import fastpriv as fp
from fastpriv.accounting import Ledger
file, memory = Ledger.open(sys.argv[1], {"dp": 1.0}), Ledger({"dp": 1.0})
file.spend({"dp": 0.25})
child = os.fork()
if child == 0:
    file.spend({"dp": 0.5}, label="child")
    try:
        memory.spend({"dp": 0.5})
    except fp.LedgerError as error:
        print(error, flush=True)
        sys.exit(0)
    sys.exit(1)
assert os.waitpid(child, 0)[1] == 0
memory.spend({"dp": 0.5})
print(file.spent, memory.spent, [r.label for r in file.history()])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork(path):
    out = subprocess.run(
        [sys.executable, "-W", "error", "-c", FORKED, path],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    assert "share a file" in out[0]
    assert out[1] == "{'dp': 0.75} {'dp': 0.5} [None, 'child']"


CROWDED = """
import os, sys, threading, time
from fastpriv.accounting import Ledger
ledger, stop = Ledger.open(sys.argv[1], {"dp": 1e6}), threading.Event()
other = Ledger.open(sys.argv[1])
made = []
def work(mine):
    while not stop.is_set():
        made.append(mine.spend({"dp": 1}).number)
threads = [threading.Thread(target=work, args=(each,)) for each in (ledger, ledger, other)]
for thread in threads:
    thread.start()
children = []
for _ in range(5):
    child = os.fork()
    if child == 0:
        ledger.spend({"dp": 1})
        other.spend({"dp": 1})
        os._exit(0)
    children.append(child)
    time.sleep(0.005)
codes = [os.waitpid(child, 0)[1] for child in children]
stop.set()
for thread in threads:
    thread.join()
print(set(codes), ledger.spent["dp"] == len(ledger) == len(made) + 10, len(made) > 3)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forks_while_threads_spend(path):
    """No child finds a lock taken by a thread that it does not have, nor half a transaction."""
    out = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", CROWDED, path],
        capture_output=True, text=True, check=True, timeout=120,
    ).stdout  # fmt: skip
    assert out.strip() == "{0} True True"


def test_declared_levels_need_no_kernels(path):
    code = """
import sys
from fastpriv.accounting import Ledger
with Ledger.open(sys.argv[1], {"dp": 1}) as ledger:
    ledger.spend({"dp": 0.5})
    ledger.from_json(ledger.to_json()).report()
print([name for name in ("numba", "scipy", "highspy") if name in sys.modules])
"""
    out = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, path],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert out.strip() == "[]"


def spend_once(ledger):
    ledger.spend({"dp": 0.25})
    return ledger.spent


def test_a_file_ledger_is_sent_as_its_path(path):
    with Ledger.open(path, {"dp": 1.0}) as ledger:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            assert pool.apply(spend_once, (ledger,)) == {"dp": 0.25}
            pool.close()
            pool.join()
        assert ledger.spent == {"dp": 0.25}


def test_a_ledger_in_memory_cannot_be_copied():
    ledger = Ledger({"dp": 1.0})
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="whole budget"):
            attempt(ledger)


STORM = Path(__file__).parents[2] / "benchmarks" / "ledger_storm.py"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_storm_of_kills():
    memory = {"TMPDIR": "/dev/shm"} if os.access("/dev/shm", os.W_OK) else {}  # kills, not disks
    done = subprocess.run(
        [sys.executable, STORM, "20"], capture_output=True, text=True, env={**os.environ, **memory}
    )
    counts = dict(line.rsplit(maxsplit=1) for line in done.stdout.splitlines())
    assert done.returncode == 0, done.stdout + done.stderr
    assert counts["rounds"] == "20"
    assert int(counts["killed"]) > 10
    assert int(counts["in the ledger"]) >= int(counts["acknowledged"]) > 100
    assert counts["lost"] == counts["overspent"] == counts["damaged"] == "0"


# Files.


def test_reopening_keeps_everything(path):
    with Ledger.open(path, {"dp": 1.0, "strong-dp": 5}) as ledger:
        receipt = ledger.spend({"dp": 0.1, "strong-dp": 0.3}, count=3, label="été")
        shown = ledger.report()
    with pytest.raises(LedgerError, match="closed"):
        ledger.spend({"dp": 0.1, "strong-dp": 0.1})
    with pytest.raises(LedgerError, match="closed"):
        ledger.remaining  # noqa: B018
    ledger.close()
    with Ledger.open(path) as again:
        assert again.history() == [receipt]
        assert again.report() == shown
        assert again.spent == {"dp": 0.3, "strong-dp": 0.9}


def test_the_budget_of_a_file_stays(path):
    Ledger.open(path, {"dp": 1.0}).close()
    Ledger.open(path, {"dp": Decimal("1.00")}).close()
    for other in ({"dp": 2.0}, {"dp": 1.0, "pml": 1.0}, {"strong-dp": 1.0}):
        with pytest.raises(InvalidInput, match=r"has the budget \{'dp': '1'\}, not"):
            Ledger.open(path, other)


def test_no_file_is_made_without_a_budget(path):
    with pytest.raises(LedgerError, match="there is no ledger"):
        Ledger.open(path)
    assert not path.exists()


def test_files_that_are_no_ledger(tmp_path):
    empty, words, other = (tmp_path / name for name in ("empty", "words", "other"))
    empty.touch()
    with pytest.raises(LedgerError, match="is empty; give a budget"):
        Ledger.open(empty)
    Ledger.open(
        empty, {"dp": 1.0}
    ).close()  # made by somebody who was killed before the first write
    words.write_text("not a database at all, " * 100)
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE notes (line TEXT)")
    connection.commit()
    connection.close()
    before = other.read_bytes()
    for budget in (None, {"dp": 1.0}):
        with pytest.raises(LedgerError, match="the file is something else, or damaged"):
            Ledger.open(words, budget)
        with pytest.raises(LedgerError, match="is no ledger"):
            Ledger.open(other, budget)
        with pytest.raises(LedgerError, match="folder must exist"):
            Ledger.open(tmp_path / "nowhere" / "x", {"dp": 1.0})
        with pytest.raises(LedgerError):
            Ledger.open(tmp_path, budget)
    assert other.read_bytes() == before


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="a folder that even root cannot write")
def test_a_folder_that_cannot_be_written():
    with pytest.raises(LedgerError, match="folder must exist and be writeable"):
        Ledger.open("/proc/study.ledger", {"dp": 1.0})


def test_a_ledger_of_another_version(path):
    Ledger.open(path, {"dp": 1.0}).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 7")
    connection.close()
    with pytest.raises(LedgerError, match="of version 7, not 1"):
        Ledger.open(path)


def test_damage_is_found(path):
    with Ledger.open(path, {"dp": 1000.0}) as ledger:
        for _ in range(40):
            ledger.spend({"dp": 0.1}, label="x" * 500)
    whole = bytearray(path.read_bytes())
    whole[1000:] = bytes(len(whole) - 1000)
    path.write_bytes(whole)
    with pytest.raises(LedgerError):
        Ledger.open(path).spend({"dp": 0.1})


def test_a_file_that_was_replaced_is_not_spent_from(path):
    with Ledger.open(path, {"dp": 1.0}) as old:
        path.rename(path.with_suffix(".moved"))
        with pytest.raises(LedgerError, match="moved, deleted or replaced"):
            old.spend({"dp": 0.1})
        with Ledger.open(path, {"dp": 1.0}) as new:
            new.spend({"dp": 0.1})
            with pytest.raises(LedgerError, match="moved, deleted or replaced"):
                old.spend({"dp": 0.1})
        assert old.spent == {"dp": 0.0}


def test_a_lock_that_is_held(path):
    with Ledger.open(path, {"dp": 1.0}, timeout=0.05) as ledger:
        ledger.spend({"dp": 0.1})
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="nothing was spent"):
            ledger.spend({"dp": 0.1})
        assert ledger.spent == {"dp": 0.1}  # readers go on
        holder.execute("ROLLBACK")
        holder.close()
        ledger.spend({"dp": 0.1})
        assert ledger.spent == {"dp": 0.2}


def test_a_full_disk(path):
    with Ledger.open(path, {"dp": 1e6}) as ledger:
        store = ledger._store._connection
        (pages,) = store.execute("PRAGMA page_count").fetchone()
        store.execute(f"PRAGMA max_page_count = {pages + 1}")
        with pytest.raises(LedgerError, match="make room and try again"):
            spend_all(ledger, 1, [])
        assert ledger.spent["dp"] == len(ledger) == len(ledger.history()) > 0
        store.execute("PRAGMA max_page_count = 1000")
        ledger.spend({"dp": 1}, label="x" * 100)


def test_an_interruption_after_the_commit_is_counted(monkeypatch):
    """Interrupted before it could be acknowledged: the totals in memory must not be stale."""
    ledger = Ledger({"dp": 1.0})
    ledger.spend({"dp": 0.1})
    store, inner = ledger._store, ledger._store._connection

    class Interrupted:
        def __getattr__(self, name):
            return getattr(inner, name)

        def execute(self, statement, *arguments):
            found = inner.execute(statement, *arguments)
            if statement == "COMMIT":
                raise KeyboardInterrupt
            return found

    store._connection = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        ledger.spend({"dp": 0.5})
    store._connection = inner
    assert ledger.spent == {"dp": 0.6}
    with pytest.raises(BudgetExceeded):
        ledger.spend({"dp": 0.5})


def test_a_spend_within_a_spend_is_refused(make):
    """As by a signal handler: the outer one is not disturbed."""
    ledger = make({"dp": 1.0})

    def inside(state):
        with pytest.raises(LedgerError, match="signal handler"):
            ledger.spend({"dp": 0.25})
        return [], state

    ledger._store.write(inside)
    assert ledger.spent == {"dp": 0.0}


# Exports.


def test_export_and_import(make, tmp_path):
    ledger = make({"dp": 3.0, "identifiability": 5.0})
    ledger.spend({"dp": 0.1, "identifiability": 1e-300}, label="a")
    ledger.spend({"dp": 0.2}, count=3, label="b")
    text = ledger.to_json()
    again = Ledger.from_json(text)
    with Ledger.from_json(text, tmp_path / "copy") as copied:
        for found in (again, copied):
            assert found.history() == ledger.history()
            assert found.to_json() == text
            assert found.remaining == ledger.remaining
    with pytest.raises(InvalidInput, match="has spends already"):
        Ledger.from_json(text, tmp_path / "copy")
    assert json.loads(text)["spent"]["dp"] == "0.7"


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["spent"].update(dp="0.1"),
        lambda d: d["spent"].update(dp="NaN"),
        lambda d: d["spent"].pop("dp"),
        lambda d: d["budget"].update(dp="0.05"),
        lambda d: d["budget"].pop("dp"),
        lambda d: d["entries"].pop(),
        lambda d: d["entries"].pop(0),
        lambda d: d["entries"].reverse(),
        lambda d: d["entries"][0]["charged"].update(dp="-0.1"),
        lambda d: d["entries"][0]["charged"].update(dp="0.05"),
        lambda d: d["entries"][0]["charged"].update(pml="0.05"),
        lambda d: d["entries"][0].update(time="yesterday"),
        lambda d: d["entries"][0].update(label=5),
        lambda d: d["entries"][0].update(count=0),
        lambda d: d["entries"][0].update(count=2**63),
        lambda d: d.update(prior=5),
        lambda d: d.update(version=2),
        lambda d: d.update(format="bank ledger"),
        lambda d: d.pop("entries"),
        lambda d: d.update(entries=7),
        lambda d: d.update(spent=None),
    ],
)
def test_exports_that_were_changed_are_refused(change, path):
    ledger = Ledger({"dp": 1.0})
    ledger.spend({"dp": 0.1})
    ledger.spend({"dp": 0.2})
    data = json.loads(ledger.to_json())
    change(data)
    for where in (None, path):
        with pytest.raises(InvalidInput):
            Ledger.from_json(json.dumps(data), where)


@pytest.mark.parametrize("text", ["", "[]", "7", "{}", "null", '"x"', "{"])
def test_texts_that_are_no_export(text):
    with pytest.raises(InvalidInput):
        Ledger.from_json(text)


# Budgets of epsilon and delta.


@pytest.mark.parametrize("budget", [(23.5, 1e-6), {"epsilon": "23.5", "delta": 1e-6}])
def test_profiles_compose(budget, make):
    ledger, channel = make({"approximate-dp": budget, "dp": 100}), fp.HammingChannel(10**6, 4, 0.5)
    ledger.spend(channel, count=60)
    ledger.spend(channel, count=39)
    ledger.spend(channel)
    assert ledger.spent["dp"] == pytest.approx(50.0, rel=1e-12)
    assert ledger.spent["approximate-dp"] == pytest.approx(23.4674670330556, rel=1e-9)
    assert ledger.spent["approximate-dp"] >= 23.46746703305
    assert ledger.budget == {"approximate-dp": (23.5, 1e-6), "dp": 100.0}
    with pytest.raises(BudgetExceeded) as caught:
        ledger.spend(channel)
    assert caught.value.notion == "approximate-dp"
    assert caught.value.remaining == pytest.approx(0.0325, abs=1e-4)
    assert "epsilon at delta 1e-06" in ledger.report()
    assert [receipt.count for receipt in ledger.history()] == [60, 39, 1]


def test_profiles_of_different_releases_compose(path):
    W, declared = fp.Channel([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]]), {"approximate-dp": (0.5, 1e-9)}
    of = fp.accounting.PrivacyProfile
    with Ledger.open(path, {"approximate-dp": (30.0, 1e-6)}) as ledger, Ledger.open(path) as other:
        ledger.spend(W, count=3)
        other.spend(declared, count=2)
        ledger.spend({"dp": 0.25})
        other.spend(np.asarray(W.matrix()))
        truth = (
            of.of(W)
            .self_compose(4)
            .compose(of.from_epsilon_delta(0.5, 1e-9).self_compose(2), of.from_epsilon_delta(0.25))
        )
        found = truth.epsilon(1e-6)
        assert ledger.spent == other.spent
        assert found.lower <= ledger.spent["approximate-dp"] <= found.upper * (1 + 1e-12)
        again = Ledger.from_json(ledger.to_json())
        assert again.spent == ledger.spent
        ledger.spend(declared)
        again.spend(declared)
        assert again.spent == ledger.spent


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["entries"][0].update(count=1),
        lambda d: d["entries"][0].update(part=None),
        lambda d: d["entries"][0].update(part="[]"),
        lambda d: d["entries"][0].update(part="nonsense"),
        lambda d: d["entries"][0].update(part='[[["response", 2, -1.0, 0.0], 1]]'),
        lambda d: d["budget"].update({"approximate-dp": ["3", "0.5"]}),
    ],
)
def test_profiles_that_were_changed_are_refused(change):
    ledger = Ledger({"approximate-dp": (3.0, 1e-6)})
    ledger.spend(fp.HammingChannel(3, 2, 0.25), count=5)
    data = json.loads(ledger.to_json())
    change(data)
    with pytest.raises(InvalidInput):
        Ledger.from_json(json.dumps(data))


def test_deltas_are_spent_too():
    ledger = Ledger({"approximate-dp": (1.0, 1e-6)})
    ledger.spend({"approximate-dp": (0, 4e-7)}, count=2)
    assert ledger.spent == {"approximate-dp": 0.0}
    for far in ({"approximate-dp": (0.0, 4e-7)}, {"dp": math.inf}, np.eye(2)):
        with pytest.raises(BudgetExceeded) as caught:
            ledger.spend(far)
        assert caught.value.asked == math.inf
    ledger.spend([[0.5, 0.5], [0.5, 0.5]], count=10**6)
    assert ledger.spent == {"approximate-dp": 0.0}


def test_one_level_for_every_delta_adds():
    ledger = Ledger({"approximate-dp": 1.0})
    ledger.spend({"approximate-dp": 0.1}, count=9)
    ledger.spend(fp.HammingChannel(3, 2, 0.1))
    assert ledger.spent["approximate-dp"] <= 1.0
    with pytest.raises(InvalidInput, match="charged the approximate-dp level"):
        ledger.spend({"approximate-dp": (0.0, 0.1)})


@pytest.mark.parametrize(
    "budget",
    [{"dp": (1.0, 1e-6)}, {"approximate-dp": (1.0,)}, {"approximate-dp": (1.0, 0.0)},
     {"approximate-dp": (1.0, 1.0)}, {"approximate-dp": (math.inf, 0.1)},
     {"approximate-dp": {"epsilon": 1.0}}, {"approximate-dp": (1.0, 1e-6, 0)},
     {"approximate-dp": (-1.0, 1e-6)}],
)  # fmt: skip
def test_pairs_that_mean_nothing(budget):
    with pytest.raises(InvalidInput):
        Ledger(budget)


@pytest.mark.parametrize(
    "declared",
    [{"pml": 0.1}, {"approximate-dp": (0.1,)}, {"approximate-dp": (0.1, 2.0)},
     {"approximate-dp": (0.1, -1e-6)}, {"approximate-dp": ("a", "b")}],
)  # fmt: skip
def test_declared_pairs_that_mean_nothing(declared):
    ledger = Ledger({"approximate-dp": (1.0, 1e-6)})
    with pytest.raises(InvalidInput):
        ledger.spend(declared)
    assert len(ledger) == 0


def test_releases_and_counts_say_what_they_spend():
    table = np.zeros((50, 2), dtype=np.int64)
    ledger = Ledger({"dp": 3.0, "strong-dp": 1000.0, "maximal-leakage": 1000.0})
    columns = fp.release(table, domain=[2, 3], epsilon=0.5, per_column=True)  # 1.0 a record
    receipt = ledger.spend(columns)
    assert 0.999 < receipt.charged["dp"] <= 1.0
    assert ledger.spend(columns.report).charged == receipt.charged
    whole = fp.release(table, domain=[2, 3], epsilon=0.5)
    assert ledger.spend(whole).charged["dp"] <= 0.5
    counts = Ledger({"dp": 0.5, "strong-dp": 1000.0})
    counts.spend(fp.mechanisms.GeometricCount(1000, 0.5))
    assert counts.spent["dp"] == 0.5
    assert 500.0 <= counts.spent["strong-dp"] < 500.0 + 1e-9
    with pytest.raises(fp.InvalidInput, match="got a GeometricCount; give its channel"):
        fp.dp_level(fp.mechanisms.GeometricCount(1000, 0.5))
