"""The fixture ``versus``: contenders timed in turns, each an entry of pytest-benchmark.

A benchmark is a test that asks a *question* on a named *instance*::

    from contenders import ours, peer, sizes, yardstick

    @pytest.mark.parametrize("size", sizes(16, 64, large=[256]))
    def test_capacity(versus, size):
        matrix = instances.channel(size)
        versus(
            "channel capacity",                      # question
            f"random {size} x {size}",               # instance
            ours(lambda: fp.channel_capacity(matrix), lambda b: {"error": b.width}),
            peer("qif", lambda: with_qif(matrix), needs="qif"),
            seed=0, error_of="width", target=1e-9,   # more fields of extra_info
        )

The group of the entries is ``question | instance``. Every round is timed by ``pedantic`` of
pytest-benchmark, one contender after another, so that noise hits all alike; its options
``--benchmark-max-time`` (seconds of timing for each contender) and ``--benchmark-min-rounds``
apply. A first call is not counted, unless it takes longer than ``contenders.PATIENCE``: then it is
the only round, ``note`` says so, and a peer is not given the next instance of the question. A peer
that is not installed, fails, or is stopped after ``contenders.LIMIT`` is named with the reason in
``absent`` of our entry and below the run. If ours fails, the test fails.

The second argument of a contender, its judge, turns the result into fields of ``extra_info``:
``value``, ``error``, ``sound``. ``records.Record`` says what the fields mean. ``cost=`` is what the
docstring promises, up to a factor: growth of time and of cost since the last instance of the
question are recorded. With ``--benchmark-disable`` every contender is called once and not timed.

To convert a script with ``main(bench)``: name it ``test_<question>(versus)``, write ``versus(...)``
for ``bench.compare(...)``, and move ``for size in bench.sizes(quick, full)`` into ``parametrize``.
"""

import math
import os
import platform
from copy import copy
from dataclasses import dataclass, field
from importlib import metadata
from itertools import chain, repeat
from pathlib import Path

import numpy as np
import pytest

import contenders
import fastpriv as fp
from contenders import OURS, PEERS, words

#: Seconds that one round of short calls should take.
ROUND = 0.005
#: Whose versions are told, beside ours and those of the peers.
BASIS = ("numpy", "scipy", "numba", "highspy", "clarabel", "pandas")
LOAD, ABSENT = pytest.StashKey[float](), pytest.StashKey[list]()


@dataclass
class History:
    """What earlier instances of a question tell about the next one."""

    slow: dict = field(default_factory=dict)
    costs: dict = field(default_factory=dict)


class Turns:
    """The rounds of one contender, merged into one entry."""

    def __init__(self, contender, benchmark, group, info):
        self.contender, self.entry, self.result = contender, None, None
        self.one = copy(benchmark)
        self.one.name, self.one.group, self.one.extra_info = contender.name, group, info
        self.one.fullname = f"{Path(benchmark.fullname.partition('::')[0]).stem}::{group}"
        self.one.fullname += f"::{contender.name}"
        self.one.param = self.one.params = None
        self.one._add_stats = lambda entry: None  # the merged entry is added at the end
        self.least, self.rounds = float(benchmark._max_time), benchmark._min_rounds
        self.iterations = 1

    def time(self):
        """Time one round; return the seconds of one call."""
        self.one._mode = self.one.stats = None
        with self.contender.limits():
            self.result = self.one.pedantic(self.call, iterations=self.iterations)
        return 0.0 if self.one.stats is None else self.one.stats.stats.data[0]

    def keep(self, seconds):
        """Put a round into the entry."""
        if self.entry is None:
            self.entry = self.one.stats
        else:
            self.entry.stats.update(seconds)

    def start(self):
        """Make the first call; return whether there are more to come."""
        contender = self.contender
        with contender.limits():
            self.call = contender.call() if contender.made else contender.call
        seconds = self.time()
        if self.one.disabled:
            return False
        if seconds > contenders.PATIENCE:
            self.one.extra_info["note"] = f"one round: the first call took {seconds:.1f} s"
            self.keep(seconds)
            return False
        return True

    def calibrate(self):
        """Choose the number of calls in a round by a second call; one that fills it is a round."""
        seconds = self.time()
        self.iterations = max(1, math.ceil(ROUND / max(seconds, 1e-7)))
        if self.iterations == 1:
            self.keep(seconds)
        return self.unfinished()

    def go_on(self):
        """Time and keep a round; return whether there are more to come."""
        self.keep(self.time())
        return self.unfinished()

    def unfinished(self):
        """Whether it has been timed too little."""
        data = [] if self.entry is None else self.entry.stats.data
        return len(data) < self.rounds or sum(data) * self.iterations < self.least


@pytest.fixture(scope="session")
def history():
    """What is remembered between benchmarks; compiles the kernels that are not compiled yet."""
    fp.warm_up()
    return History()


@pytest.fixture
def versus(benchmark, history, request):
    """Time contenders in turns: ``versus(question, instance, *contenders, seed=, cost=, ...)``."""
    benchmark._mode = "versus"
    topic = request.path.stem.removeprefix("bench_")

    def compare(question, instance, *solvers, cost=None, **fields):
        absent, going = {}, []
        for each in solvers:
            reason = each.refusal()
            if each.kind == "peer":
                reason = reason or history.slow.get((question, each.name))
            if reason is not None:
                absent[each.name] = reason
                continue
            info = {"topic": topic, "question": question, "instance": instance, **fields}
            info |= {"solver": each.name, "kind": each.kind, "items": each.items}
            going.append(Turns(each, benchmark, f"{question} | {instance}", info))
        timed, steps = list(going), chain([Turns.start, Turns.calibrate], repeat(Turns.go_on))
        while going:
            step = next(steps)
            for turns in list(going):
                try:
                    more = step(turns)
                except Exception as error:
                    if turns.contender.kind != "peer":
                        raise
                    absent[turns.contender.name] = f"failed: {words(error)}"
                    timed.remove(turns)
                    more = False
                if not more:
                    going.remove(turns)
        for turns in timed:
            told = turns.contender.judge(turns.result)
            turns.one.extra_info |= {name: plain(value) for name, value in told.items()}
            if turns.entry is not None:
                benchmark._add_stats(turns.entry)
        for name, reason in absent.items():
            request.config.stash[ABSENT].append(f"{question} | {instance}: {name}: {reason}")
        first = next((t for t in timed if t.contender.kind == "ours" and t.entry), None)
        if first is not None:
            first.one.extra_info["absent"] = absent
            remember_cost(history, question, first, cost)
        remember_slow(history, question, instance, timed, absent)

    return compare


def plain(value):
    """A number of NumPy as one of Python, which JSON can hold."""
    return value.item() if isinstance(value, np.generic) else value


def remember_cost(history, question, first, cost):
    """Record how our time and the promised cost have grown since the last instance."""
    if cost is None:
        return
    seconds = min(first.entry.stats.data)
    last, before = history.costs.get(question, (math.nan, math.nan))
    if cost > before:
        first.one.extra_info |= {"growth": seconds / last, "promised": cost / before}
    history.costs[question] = seconds, cost


def remember_slow(history, question, instance, timed, absent):
    """Remember who need not be given the next instance."""
    for turns in timed:
        if turns.one.extra_info.get("note", "").startswith("one round"):
            taken = min(turns.entry.stats.data)
            history.slow[question, turns.one.name] = f"not run: {taken:.1f} s at {instance}"
    for name, reason in absent.items():
        if reason.startswith("failed: TimeoutError"):
            history.slow[question, name] = f"not run: no answer at {instance}"


def pytest_configure(config):
    """Note the load before anything runs."""
    config.stash[LOAD], config.stash[ABSENT] = os.getloadavg()[0], []


def pytest_terminal_summary(terminalreporter, config):
    """Name who was not timed, and why."""
    if config.stash[ABSENT]:
        terminalreporter.section("not timed")
        for line in config.stash[ABSENT]:
            terminalreporter.line(line)


@pytest.hookimpl(optionalhook=True)
def pytest_benchmark_update_json(config, benchmarks, output_json):
    """Add what the tables tell about the machine, beside pytest-benchmark's own fields."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    output_json["conditions"] = {
        "cpu": cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "os": f"{platform.system()} {platform.machine()}, {' '.join(platform.libc_ver())}",
        "python": platform.python_version(),
        "blas": f"{blas['name']} {blas['version']}",
        "load_before": round(config.stash[LOAD], 2),
        "load_after": round(os.getloadavg()[0], 2),
    }
    output_json["selected"] = config.option.markexpr or config.option.keyword or None
    output_json["versions"] = {name: version(name) for name in (OURS, *BASIS, *PEERS)}


def version(name):
    """Installed version, or None."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def cpu():
    """Name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
