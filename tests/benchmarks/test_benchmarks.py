"""Instances and tables of the benchmarks. No timings."""

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import contenders
import instances
import tables
from records import Record, records_of

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


@pytest.mark.parametrize("number", [33.319788249, 0.53768646549, 1.0, 9.9999999999e-7, 85780.73965])
def test_lower_ends_are_printed_rounded_down(number):
    assert number * (1 - 2e-9) < float(tables.rounded_down(number)) <= number


def made(mine, *others):
    """Records of one question."""
    base = {"topic": "b", "question": "q", "instance": "i", "seed": 0, "headline": True}
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
        ({}, {"seconds": 0.5}, "**faster**"),
        (
            {"error": 1e-10, "target": 1e-9},
            {"seconds": 0.5, "error": 1e-3, "target": 1e-9},
            "**faster**; its answer is less accurate",
        ),
        (
            {"error": 1e-5, "target": 1e-9},
            {"seconds": 2.0, "error": 1e-10, "target": 1e-9},
            "**more accurate**",
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
        ({}, {"seconds": 0.5, "kind": "ours"}, "ours as well"),
        (
            {"status": "failed: X"},
            {"seconds": 9.0},
            "ours: failed: X",
        ),
    ],
)
def test_verdicts(mine, other, verdict):
    first, second = made({"seconds": 1.0, **mine}, dict(other))
    assert tables.verdict(first, second) == verdict
    listed = tables.lost_list([first, second])
    assert ("Nowhere" in listed) == ("**" not in verdict and "failed" not in verdict)
    assert verdict in tables.full_table([first, second])


def test_a_broken_promise_is_a_loss():
    (slow,) = made({"seconds": 1.0, "growth": 21.0, "promised": 10.0})
    assert "promised cost (growth 21.0, promised 10.0)" in tables.lost_list([slow])
    (fine,) = made({"seconds": 1.0, "growth": 19.0, "promised": 10.0})
    assert "Nowhere" in tables.lost_list([fine])


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.5e-9, "0.500 ns"), (6.61e-6, "6.61 us"), (0.0123, "12.3 ms"), (1234.0, "1,234 s")],
)
def test_durations(seconds, shown):
    assert tables.duration(seconds) == shown


def entry(seconds, **info):
    """An entry of pytest-benchmark, as far as the tables read it."""
    base = {"topic": "b", "question": "q", "instance": "i", "headline": True, "items": 2}
    return {"extra_info": base | info, "stats": {"min": seconds}}


RESULTS = {
    "datetime": "2025-02-03T04:05:06+00:00",
    "commit_info": {"id": "0123456789abcdef", "dirty": False},
    "conditions": {
        "cpu": "C", "cores": 2, "load_before": 0.1, "load_after": 0.2, "python": "3",
    },
    "versions": {"fastpriv": "1", "qif": None},
    "selected": None,
    "benchmarks": [
        entry(2.0, solver="fastpriv", kind="ours", seed=0, absent={"qif": "not installed"}),
        entry(3.0, solver="fastpriv", kind="ours", instance="j", topic="a"),
        entry(0.5, solver="them", kind="peer", seed=0),
    ],
}  # fmt: skip


def test_entries_become_records():
    other, mine, theirs, absent = records_of(RESULTS)
    assert (other.topic, other.instance, other.seconds) == ("a", "j", 1.5)
    assert (mine.solver, mine.seconds, mine.status) == ("fastpriv", 1.0, "ok")
    assert (theirs.solver, theirs.seconds) == ("them", 0.25)
    assert (absent.solver, absent.kind, absent.status) == ("qif", "peer", "not installed")
    assert absent.seconds is None
    with pytest.raises(TypeError, match="colour"):
        records_of({"benchmarks": [entry(1.0, colour="red")]})


def test_tables_go_into_readme_and_docs(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{tables.START}\nold\n{tables.END}\nafter\n")
    for _ in range(2):  # writing again changes nothing
        tables.write(RESULTS, tmp_path)
        text = readme.read_text()
        assert text.startswith(f"before\n{tables.START}\n")
        assert text.endswith(f"{tables.END}\nafter\n")
        assert "old" not in text
        assert text.count("| q | i | 1.00 s | them 0.250 |") == 1
        assert "measured at revision 0123456." in text
        assert "Others are faster, with an answer as good, on 1 question: them (1).\n" in text
    page = (tmp_path / "docs" / "benchmarks.md").read_text()
    for words in (
        "not installed: qif",
        "date: 2025-02-03",
        "revision: 0123456\n",
        "| `error_of` |",
        "- q, i: them is faster (250 ms, ours 1.00 s)",
    ):
        assert words in page
    readme.write_text("no markers")
    with pytest.raises(SystemExit, match=r"README\.md has no"):
        tables.write(RESULTS, tmp_path)


@pytest.mark.parametrize(
    ("seconds", "sound", "words"),
    [
        (0.5, True, "on 1 question: them (1)."),
        (0.5, False, "no other tool is faster"),  # quick and wrong
        (1.95, True, "no other tool is faster"),  # within 10 %
        (3.0, True, "no other tool is faster"),
    ],
)
def test_the_sentence_on_faster_tools_follows_the_run(seconds, sound, words):
    run = [
        entry(2.0, solver="fastpriv", kind="ours", sound=True),
        entry(seconds, solver="them", kind="peer", sound=sound),
    ]
    assert words in tables.faster_sentence(records_of({"benchmarks": run}))


def test_a_run_that_is_not_all_of_a_revision_says_so():
    part = RESULTS | {"selected": "not large", "commit_info": {"id": "0123456789", "dirty": True}}
    assert tables.revision(part) == (
        '0123456, with changes that were not committed, benchmarks -m "not large"'
    )


def test_the_page_says_what_each_topic_is_about():
    for topic in tables.topics():
        assert tables.about(topic), topic
    assert {"capacity", "programs"} <= tables.topics()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "is not what --benchmark-json"),
        ("{", "is not what --benchmark-json"),
        ("[]", "is not what --benchmark-json"),
        ('{"benchmarks": []}', "'conditions'"),
        (json.dumps(RESULTS), "the run lacks "),
    ],
)
def test_what_is_no_run_is_refused(tmp_path, text, words):
    path = tmp_path / "results.json"
    if text is not None:
        path.write_text(text)
    command = [sys.executable, ROOT / "benchmarks" / "tables.py", path, "--root", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "docs").exists()


def test_readme_has_its_markers():
    text = (ROOT / "README.md").read_text()
    assert text.count(tables.START) == text.count(tables.END) == 1


@pytest.mark.skipif(tomllib is None, reason="tomllib came with Python 3.11")
def test_peers_are_those_of_the_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert sorted(project["optional-dependencies"]["peers"]) == sorted(contenders.PEERS)


def test_a_page_of_one_topic_lists_unsound_answers(tmp_path):
    base = {"topic": "accounting", "question": "q", "instance": "i", "items": 1}
    mine = base | {"solver": "fastpriv", "kind": "ours", "value": 2.0, "lower": 1.5, "sound": True}
    other = base | {"solver": "peer", "kind": "peer", "value": 1.0, "sound": False, "line": "ask()"}
    run = {
        "benchmarks": [{"extra_info": info, "stats": {"min": 1.0}} for info in (mine, other)],
        "conditions": {"cpu": "some"},
        "versions": {"peer": "1.0", "other": None},
        "commit_info": {"id": "0123456789", "dirty": False},
        "datetime": "2024-01-01T00:00:00",
    }
    results, page = tmp_path / "run.json", tmp_path / "page.md"
    results.write_text(json.dumps(run))
    script = ROOT / "benchmarks" / "tables.py"
    asked = [sys.executable, script, results, "--topic", "accounting", "--page", page]
    subprocess.run(asked, check=True)
    assert "| peer | `ask()` | 1 | 1.5 |" in page.read_text()
    assert "not installed: other" in page.read_text()
    assert subprocess.run(asked[:-2], capture_output=True).returncode == 2
