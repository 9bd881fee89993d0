"""The machinery of the benchmarks: instances, records, limits and tables. No timings."""

import json
import subprocess
import sys
import time
from dataclasses import asdict, fields
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import _bench
import _tables
import instances
import run as runner
from _bench import Bench, Record, ours, peer, yardstick

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = None

ROOT = Path(__file__).parents[2]

#: First digits of SHA-256 of the numbers.
CHECKSUMS = {
    "channel-3": "4e25c35a30b00918",
    "channel-64": "f22fbbc353400d69",
    "channel-512x16": "0ee77662e4bb065b",
    "even-prior-256": "ee4e08209005996f",
    "prior-65536": "2ed730a2bdf21f27",
    "joint-20x20": "a873fa3744016056",
    "channels-8x8": "4d19883833e5e53d",
    "codes-titanic": "b2e817453ecc16d7",
}


@pytest.mark.parametrize("name", CHECKSUMS)
def test_instances_are_the_same_bits(name):
    assert instances.checksum(instances.make(name))[:16] == CHECKSUMS[name]


@pytest.mark.parametrize("weight", [1, 3])
def test_laws_add_up_exactly(weight):
    laws = instances.simplex([7, 1], 5, 40, weight)
    assert laws.shape == (40, 5)
    assert laws.min() > 0
    assert all(sum(map(Fraction, law)) == 1 for law in laws.tolist())
    # Dirichlet(w, ..., w) over 5 outputs has mean 1/5 and variance (1/5)(4/5)/(5 w + 1).
    many = instances.simplex(3, 5, 20_000, weight)
    assert abs(many.mean(axis=0) - 0.2).max() < 0.01
    assert many.var() == pytest.approx(0.16 / (5 * weight + 1), rel=0.03)


def test_hamming_distances():
    assert instances.hamming(3)[0b101, 0b011] == 2
    np.testing.assert_array_equal(instances.hamming(2)[0], [0, 1, 1, 2])


def test_instances_are_written_with_checksums(tmp_path):
    script = ROOT / "benchmarks" / "instances.py"
    wanted = ["channel-3", "codes-4"]
    subprocess.run([sys.executable, script, "--out", tmp_path, *wanted], check=True)
    listed = json.loads((tmp_path / "instances.json").read_text())
    assert list(listed) == wanted
    for name in wanted:
        array = np.load(tmp_path / f"{name}.npy")
        np.testing.assert_array_equal(array, instances.make(name))
        assert instances.checksum(array) == listed[name]["data"]
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=tmp_path, check=True)


@pytest.fixture
def bench(tmp_path):
    """A quick bench, and the records it has written."""
    path = tmp_path / "records"
    with path.open("a") as sink:
        made = Bench("test", quick=True, sink=sink)
        made.written = lambda: [
            Record(**json.loads(line)) for line in path.read_text().splitlines()
        ]
        yield made


class Clock:
    """A clock that moves on a microsecond at every look, and when somebody sleeps."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        self.now += 1e-6
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(_bench, "time", clock)
    return clock


def test_solvers_are_timed_in_turns_and_judged(bench, clock):
    asked = []

    def solve(name):
        asked.append(name)
        clock.sleep(0.02)
        return len(name)

    found = bench.compare(
        "length",
        "a name",
        ours(lambda: solve("us"), lambda n: {"value": n, "error": 0.0}, items=10),
        peer("them", lambda: solve("them"), lambda n: {"value": n, "sound": False}),
        yardstick("nothing", lambda: clock.sleep(0.01)),
        seed=3,
        unit="letter",
    )
    assert asked[:4] == ["us", "them", "us", "them"]
    assert bench.written() == found
    mine, theirs, _ = found
    assert (mine.kind, mine.value, mine.error, mine.seed) == ("ours", 2, 0.0, 3)
    assert (theirs.kind, theirs.value, theirs.sound) == ("peer", 4, False)
    assert mine.seconds == pytest.approx(0.002, rel=1e-3)
    assert theirs.seconds == pytest.approx(0.02, rel=1e-3)
    assert mine.seconds <= mine.median < theirs.seconds
    assert mine.rounds >= 2


def test_peers_that_give_no_answer_are_named(bench, monkeypatch):
    monkeypatch.setitem(_bench.PEERS, "absent", "no_such_module_anywhere")
    bench.limit = 0.2

    def forever():
        while True:
            time.sleep(0.01)

    def broken():
        raise ArithmeticError("seven\nlines")

    found = bench.compare(
        "q",
        "i",
        ours(lambda: 1),
        peer("absent", lambda: 1, needs="absent"),
        peer("endless", forever),
        peer("broken", broken),
        peer("greedy", lambda: np.ones(1 << 33)),
        peer("slow", lambda: 1, skip="minutes at this size"),
    )
    statuses = {record.solver: record.status for record in found}
    greedy = statuses.pop("greedy")
    assert greedy.startswith("failed: ")
    assert "MemoryError" in greedy
    assert statuses == {
        "fastpriv": "ok",
        "absent": "not installed",
        "endless": "failed: TimeoutError: no answer in 0.2 s",
        "broken": "failed: ArithmeticError: seven",
        "slow": "not run: minutes at this size",
    }
    again = bench.compare("q", "larger", peer("endless", forever))
    assert again[0].status.startswith("not run: ")


def test_growth_is_recorded_beside_the_promise(bench, clock):
    for size in (1, 2):
        work = ours(lambda s=size: clock.sleep(0.01 * s))
        (found,) = bench.compare("sleep", f"n = {size}", work, cost=size)
    assert found.promised == 2.0
    assert found.growth == pytest.approx(2.0, rel=1e-3)
    (other,) = bench.compare("another sleep", "n = 3", work, cost=3)
    assert other.growth is None


SCRIPT = f"""
import sys, time
sys.path.insert(0, {str(ROOT / "benchmarks")!r})
import fastpriv, numpy as np
fastpriv.warm_up = lambda: None
from _bench import ours, run

def main(bench):
    bench.compare("q", "small", ours(lambda: 1))
    ENDING

run(main)
"""


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        ("pass", "ok"),
        ("time.sleep(1000)", "stopped after 8 s"),
        ("sys.exit('no more')", "failed with code 1: no more"),
        ("np.ones(9 << 27)", "failed with code 1: "),
    ],
)
def test_what_was_measured_before_the_end_is_kept(tmp_path, ending, status):
    path = tmp_path / "bench_test.py"
    path.write_text(SCRIPT.replace("ENDING", ending))
    limit = 8 if "sleep" in ending else 300
    found, seconds, records = runner.measure(path, True, limit)
    assert found.startswith(status)
    assert ("MemoryError" in found) == ("ones" in ending)
    assert seconds < 200
    assert [(r["benchmark"], r["instance"], r["status"]) for r in records] == [
        ("test", "small", "ok")
    ]


def test_a_quick_run_writes_the_documented_results(tmp_path):
    out = tmp_path / "results.json"
    command = [sys.executable, ROOT / "benchmarks" / "run.py", "--quick", "--json", out]
    done = subprocess.run([*command, "transform", "latency"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Where we lose:" in done.stdout
    results = json.loads(out.read_text())
    keys = "schema started seconds quick revision machine versions benchmarks records"
    assert set(results) == set(keys.split())
    assert results["schema"] == 1
    assert results["quick"] is True
    assert set(_bench.PEERS) < set(results["versions"])
    assert results["versions"]["fastpriv"]
    assert results["machine"]["cpu"]
    assert results["machine"]["load_after"] is not None
    assert [(b["name"], b["status"]) for b in results["benchmarks"]] == [
        ("latency", "ok"),
        ("transform", "ok"),
    ]
    names = {field.name for field in fields(Record)}
    for record in results["records"]:
        assert set(record) == names
        assert record["kind"] in ("ours", "peer", "yardstick")
        assert record["status"] == "ok"
        assert 0 < record["seconds"] <= record["median"]
        assert record["rounds"] >= 1
    kept = subprocess.run([*command[:2], "--from", out], capture_output=True, text=True, check=True)
    assert done.stdout.endswith(kept.stdout)
    levels = {r["value"] for r in results["records"] if r["question"] == "dp_level, bits"}
    assert len(levels) >= 2  # two instances


def test_unknown_benchmarks_are_refused():
    for arguments in (["no-such"], ["latency", "--write"]):
        command = [sys.executable, ROOT / "benchmarks" / "run.py", *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 2
        assert "benchmark" in done.stderr
        assert "Traceback" not in done.stderr


def records_of(mine, *others):
    """Records of one question."""
    base = {"benchmark": "b", "question": "q", "instance": "i", "seed": 0, "headline": True}
    found = [Record(**base, solver="fastpriv", kind="ours", **mine)]
    for number, other in enumerate(others):
        kind = other.pop("kind", "peer")
        found.append(Record(**base, solver=f"peer {number}", kind=kind, **other))
    return found


@pytest.mark.parametrize(
    ("mine", "other", "verdict"),
    [
        ({}, {"seconds": 2.0}, "ours"),
        ({}, {"seconds": 1.05}, "even"),
        ({}, {"seconds": 0.5}, "**WE LOSE** on time"),
        (
            {"error": 1e-10, "target": 1e-9},
            {"seconds": 0.5, "error": 1e-3, "target": 1e-9},
            "**WE LOSE** on time; its answer is less accurate",
        ),
        (
            {"error": 1e-5, "target": 1e-9},
            {"seconds": 2.0, "error": 1e-10, "target": 1e-9},
            "**WE LOSE** on accuracy",
        ),
        (
            {"error": 8e-10, "target": 1e-9},
            {"seconds": 2.0, "error": 1e-15, "target": 1e-9},
            "ours",
        ),
        ({"sound": True}, {"seconds": 2.0, "sound": False}, "ours; its answer is unsound"),
        ({}, {"status": "not installed"}, "not installed"),
        (
            {},
            {"seconds": 0.5, "kind": "yardstick"},
            "yardstick: ours takes 2.00 times as long",
        ),
        (
            {"status": "failed: X"},
            {"seconds": 9.0},
            "**WE LOSE** on failed: X",
        ),
    ],
)
def test_verdicts(mine, other, verdict):
    first, second = records_of({"seconds": 1.0, **mine}, dict(other))
    assert _tables.verdict(first, second) == verdict
    listed = _tables.lost_list([first, second])
    assert ("Nowhere" in listed) == ("WE LOSE" not in verdict)
    assert verdict in _tables.full_table([first, second])


def test_a_broken_promise_is_a_loss():
    (slow,) = records_of({"seconds": 1.0, "growth": 21.0, "promised": 10.0})
    assert "promised cost (growth 21.0, promised 10.0)" in _tables.lost_list([slow])
    (fine,) = records_of({"seconds": 1.0, "growth": 19.0, "promised": 10.0})
    assert "Nowhere" in _tables.lost_list([fine])


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.5e-9, "0.500 ns"), (6.61e-6, "6.61 us"), (0.0123, "12.3 ms"), (1234.0, "1,234 s")],
)
def test_durations(seconds, shown):
    assert _bench.duration(seconds) == shown


def test_tables_go_into_readme_and_docs(tmp_path):
    records = records_of({"seconds": 1.0}, {"seconds": 0.25}, {"status": "not installed"})
    results = {
        "quick": True,
        "revision": "abc",
        "machine": {
            "cpu": "C", "cores": 2, "load_before": 0.1, "load_after": 0.2, "python": "3",
        },
        "versions": {"fastpriv": "1", "qif": None},
        "benchmarks": [{"name": "b", "status": "stopped after 9 s", "about": "About b."}],
        "records": [asdict(record) for record in records],
    }  # fmt: skip
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{runner.START}\nold\n{runner.END}\nafter\n")
    for _ in range(2):  # writing again changes nothing
        runner.write(results, tmp_path)
        text = readme.read_text()
        assert text.startswith(f"before\n{runner.START}\n")
        assert text.endswith(f"{runner.END}\nafter\n")
        assert "old" not in text
        assert text.count("peer 0 0.250 **WE LOSE**; peer 1: not installed") == 1
        assert "- q, i: to peer 0 on time" in text
    page = (tmp_path / "docs" / "benchmarks.md").read_text()
    for words in ("not installed: qif", "b (stopped after 9 s)", "About b.", "| `error_of` |"):
        assert words in page
    readme.write_text("no markers")
    with pytest.raises(SystemExit, match=r"README\.md has no"):
        runner.write(results, tmp_path)


def test_readme_has_its_markers():
    text = (ROOT / "README.md").read_text()
    assert text.count(runner.START) == text.count(runner.END) == 1


@pytest.mark.skipif(tomllib is None, reason="tomllib came with Python 3.11")
def test_peers_are_those_of_the_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert sorted(project["optional-dependencies"]["peers"]) == sorted(_bench.PEERS)
