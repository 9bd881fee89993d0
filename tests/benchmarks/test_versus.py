"""The fixture of the benchmarks, on contenders that only move a clock. No timings."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tables
from records import records_of

pytest.importorskip("pytest_benchmark", reason="needs fastpriv[bench]")

ROOT = Path(__file__).parents[2]

#: A clock that moves only when somebody sleeps, and what contenders share.
CLOCK = """
now = 0.0

def read():
    return now

def sleep(seconds):
    global now
    now += seconds
"""

HEAD = """
import time
from functools import partial

import numpy as np
import pytest

import clock
import contenders
import fastpriv
from contenders import ours, peer, sizes, yardstick

fastpriv.warm_up = lambda: None
contenders.PEERS["absent"] = "no_such_module_anywhere"
asked = []

def solve(name, seconds=0.02):
    asked.append(name)
    clock.sleep(seconds)
    return np.float64(len(name))
"""


def plain_environment(*folders):
    """The variables without pytest's: a worker of xdist names itself there, and is not timed."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    return kept | {"PYTHONPATH": os.pathsep.join(map(str, [*folders, ROOT]))}


@pytest.fixture
def run(tmp_path):
    """Run a file of benchmarks with the fixture; return the process and its entries."""
    for name in ("conftest.py", "contenders.py", "pytest.ini"):
        shutil.copy(ROOT / "benchmarks" / name, tmp_path)
    (tmp_path / "clock.py").write_text(CLOCK)

    def run(body, *options, check=True):
        (tmp_path / "bench_fake.py").write_text(HEAD + body)
        out = tmp_path / "results.json"
        out.unlink(missing_ok=True)
        command = [sys.executable, "-m", "pytest", str(tmp_path)]
        command += ["--benchmark-timer=clock.read", "--benchmark-max-time=0"]
        command += ["--benchmark-min-rounds=4", f"--benchmark-json={out}", *options]
        env = plain_environment(tmp_path)
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=env)
        assert not check or done.returncode == 0, done.stdout + done.stderr
        has_results = out.exists() and out.stat().st_size
        return done, json.loads(out.read_text()) if has_results else None

    return run


TURNS = """
def test_turns(versus):
    versus(
        "length",
        "a name",
        ours(partial(solve, "us"), lambda n: {"value": n, "error": 0.0}, items=10),
        peer("them", partial(solve, "them", 0.04), lambda n: {"value": n, "sound": False}),
        yardstick("nothing", partial(solve, "nothing", 0.01)),
        seed=3,
        unit="letter",
    )
    assert asked == 5 * ["us", "them", "nothing"]
"""


def test_contenders_take_turns_and_are_judged(run):
    done, results = run(TURNS, "--benchmark-only")
    assert "benchmark 'length | a name': 3 tests" in done.stdout
    mine, theirs, nothing = results["benchmarks"]
    for entry, name, kind, seconds in (
        (mine, "fastpriv", "ours", 0.02),
        (theirs, "them", "peer", 0.04),
        (nothing, "nothing", "yardstick", 0.01),
    ):
        assert entry["group"] == "length | a name"
        assert (entry["name"], entry["extra_info"]["kind"]) == (name, kind)
        assert entry["fullname"] == f"bench_fake::length | a name::{name}"
        # The first call is not counted.
        assert entry["stats"]["data"] == pytest.approx([seconds] * 4)
    told = mine["extra_info"]
    assert (told["topic"], told["seed"], told["unit"], told["items"]) == ("fake", 3, "letter", 10)
    assert (told["value"], told["error"], told["absent"]) == (2.0, 0.0, {})
    assert (theirs["extra_info"]["value"], theirs["extra_info"]["sound"]) == (4.0, False)
    assert results["versions"]["fastpriv"]
    assert results["conditions"]["load_after"] is not None
    assert results["selected"] is None


def test_rounds_go_on_until_the_time_is_up(run):
    body = """
def test_rounds(versus):
    versus("q", "i", peer("quick", partial(solve, "q", 0.001)), ours(partial(solve, "us", 0.02)))
"""
    _, results = run(body, "--benchmark-max-time=0.19", "--benchmark-min-rounds=1")
    assert [entry["name"] for entry in results["benchmarks"]] == ["quick", "fastpriv"]
    theirs, mine = (entry["stats"] for entry in results["benchmarks"])
    assert (mine["rounds"], mine["iterations"]) == (10, 1)
    # Short calls are timed in rounds of 5 ms; a time is that of one call.
    assert theirs["iterations"] == 5
    assert theirs["rounds"] == 38
    assert theirs["min"] == pytest.approx(0.001)


def test_peers_that_give_no_answer_are_named(run):
    body = """
def forever():
    while True:
        time.sleep(0.01)

def broken():
    raise ArithmeticError("seven\\nlines")

def late(state=[]):
    state.append(1)
    if len(state) > 3:
        raise ArithmeticError("late")
    clock.sleep(0.01)

@pytest.mark.parametrize("size", ["small", "larger"])
def test_absent(versus, size):
    contenders.LIMIT = 3.0
    versus(
        "q",
        size,
        ours(partial(solve, "us")),
        peer("absent", partial(solve, "us"), needs="absent"),
        peer("endless", forever),
        peer("broken", broken),
        peer("late", late),
        peer("greedy", lambda: np.ones(1 << 33)),
        peer("skipped", partial(solve, "us"), skip="minutes at this size"),
    )
"""
    done, results = run(body)
    small, larger = results["benchmarks"]  # ours only
    absent = small["extra_info"]["absent"]
    greedy = absent.pop("greedy")
    assert greedy.startswith("failed: ")
    assert "MemoryError" in greedy
    assert absent == {
        "absent": "not installed",
        "endless": "failed: TimeoutError: no answer in 3 s",
        "broken": "failed: ArithmeticError: seven",
        "late": "failed: ArithmeticError: late",
        "skipped": "not run: minutes at this size",
    }
    assert larger["extra_info"]["absent"]["endless"] == "not run: no answer at small"
    assert "q | small: absent: not installed" in done.stdout


def test_a_slow_first_call_is_the_only_round(run):
    body = """
@pytest.mark.parametrize("size", [1, 2])
def test_slow(versus, size):
    versus("q", f"n = {size}", ours(partial(solve, "us", 7)), peer("slow", partial(solve, "s", 6)))
    assert asked == ["us", "s", "us"][: size + 1]
"""
    _, results = run(body)
    mine, slow, again = results["benchmarks"]
    assert slow["stats"]["data"] == [6.0]
    assert slow["extra_info"]["note"] == "one round: the first call took 6.0 s"
    # Ours is given every instance.
    assert mine["stats"]["data"] == again["stats"]["data"] == [7.0]
    assert again["extra_info"]["absent"] == {"slow": "not run: 6.0 s at n = 1"}


def test_growth_is_recorded_beside_the_promise(run):
    body = """
@pytest.mark.parametrize("size", [1, 2])
def test_growth(versus, size):
    versus("sleep", f"n = {size}", ours(partial(solve, "us", 0.01 * size)), cost=size)
    versus("another", f"n = {size}", ours(partial(solve, "us")))
"""
    _, results = run(body)
    first, other, second, _ = (entry["extra_info"] for entry in results["benchmarks"])
    assert "growth" not in first
    assert "growth" not in other
    assert (second["growth"], second["promised"]) == (pytest.approx(2.0), 2.0)


def test_our_own_failure_fails(run):
    body = """
def test_broken(versus):
    versus("q", "i", ours(lambda: 1 / 0), peer("them", partial(solve, "them")))
"""
    done, _ = run(body, check=False)
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stdout


def test_large_sizes_can_be_left_out(run):
    body = """
@pytest.mark.parametrize("size", sizes(1, large=[100]))
@pytest.mark.parametrize(("a", "b"), sizes((1, 2), large=[(3, 4)]))
def test_sizes(versus, size, a, b):
    versus("q", f"{size}, {a}, {b}", ours(partial(solve, "us")))
"""
    _, results = run(body)
    names = {entry["extra_info"]["instance"] for entry in results["benchmarks"]}
    assert names == {"1, 1, 2", "1, 3, 4", "100, 1, 2", "100, 3, 4"}
    _, results = run(body, "-m", "not large")
    (entry,) = results["benchmarks"]
    assert entry["extra_info"]["instance"] == "1, 1, 2"
    assert results["selected"] == "not large"


def test_disabled_benchmarks_are_called_once(run):
    body = """
def test_once(versus):
    versus("q", "i", ours(partial(solve, "us")), peer("them", partial(solve, "them")))
    assert asked == ["us", "them"]
"""
    done, results = run(body, "--benchmark-disable")
    assert "1 passed" in done.stdout
    assert results is None


def test_runs_are_compared_as_a_report(run, tmp_path):
    options = ["--benchmark-only", f"--benchmark-storage=file://{tmp_path / 'saved'}"]
    run(TURNS, *options, "--benchmark-autosave")
    done, _ = run(TURNS.replace("0.04", "0.4"), *options, "--benchmark-compare")
    assert "them (NOW)" in done.stdout
    assert "them (0001" in done.stdout


def test_a_real_run_is_what_the_tables_read(tmp_path):
    out = tmp_path / "results.json"
    command = [sys.executable, "-m", "pytest", ROOT / "benchmarks" / "bench_latency.py"]
    command += ["--benchmark-only", f"--benchmark-json={out}"]
    command += ["--benchmark-max-time=0", "--benchmark-min-rounds=1"]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env=plain_environment()
    )
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads(out.read_text())
    records = records_of(results)
    assert {record.topic for record in records} == {"latency"}
    assert all(record.seconds > 0 for record in records)
    levels = [record for record in records if record.question == "dp_level, bits"]
    assert [record.solver for record in levels] == 2 * ["fastpriv", "numpy"]
    for mine, plain in zip(levels[::2], levels[1::2], strict=True):
        assert mine.value == pytest.approx(plain.value, rel=1e-12)
    assert "dp_level, bits" in tables.page(results, records)
    assert tables.revision(results)
