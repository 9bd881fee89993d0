"""Ledgers: threads, processes, forks, kills and full disks."""

import copy
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import fastpriv as fp
from fastpriv.accounting import Ledger
from fastpriv.errors import BudgetExceeded, LedgerError


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

        def late(*given):
            fast.spend({"identifiability": 1.0})
            return write(*given)

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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_file_ledger_is_sent_as_its_path(path):
    with Ledger.open(path, {"dp": 1.0}) as ledger:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            assert pool.apply(Ledger.spend, (ledger, {"dp": 0.25})).number == 1
            pool.close()
            pool.join()
        assert ledger.spent == {"dp": 0.25}


def test_a_ledger_in_memory_cannot_be_copied():
    ledger = Ledger({"dp": 1.0})
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="whole budget"):
            attempt(ledger)


STORM = Path(__file__).parents[3] / "benchmarks" / "ledger_storm.py"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["file", "postgres"])
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_storm_of_kills(kind):
    memory = {"TMPDIR": "/dev/shm"} if os.access("/dev/shm", os.W_OK) else {}  # kills, not disks
    done = subprocess.run(
        [sys.executable, STORM, kind, "300", "6"],
        capture_output=True,
        text=True,
        env={**os.environ, **memory},
    )
    if "skipped" in done.stdout:
        pytest.skip(done.stdout)
    lines = [line.rsplit(maxsplit=1) for line in done.stdout.splitlines()[1:]]
    counts = {name.strip(): float(count) for name, count in lines}
    assert done.returncode == 0, done.stdout + done.stderr
    assert counts["killed clients"] == 18
    assert counts["acknowledged"] == counts["in the ledger"] == 280
    assert counts["lost"] == counts["doubled"] == counts["overspent"] == 0


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
