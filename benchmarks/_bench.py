"""What every benchmark shares: solvers timed in turns, and one record per measurement.

A script defines ``main(bench)`` and ends with ``run(main)``. It asks a *question* on a named
*instance*; ``bench.compare`` times ours and every peer on it in turns, so that noise hits all of
them, and keeps the least time of each. A record is written as soon as it is known, so a script that
is stopped has lost nothing.
"""

import argparse
import importlib
import json
import math
import resource
import signal
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

import fastpriv as fp

#: Distributions of the extra ``peers``, and what is imported of each.
PEERS = {
    "autodp": "autodp",
    "cvxpy": "cvxpy",
    "dit": "dit",
    "dp-accounting": "dp_accounting",
    "multi-freq-ldpy": "multi_freq_ldpy",
    "opendp": "opendp.prelude",
    "prv-accountant": "prv_accountant",
    "qif": "qif",
}
OURS = "fastpriv"
#: Bytes of address space that a peer may add to what is in use.
MEMORY = 2 << 30


def says(meaning, default=None):
    """A field of a record with its meaning, which the generated page repeats."""
    return field(default=default, metadata={"meaning": meaning})


@dataclass
class Record:
    """One solver on one instance; None where a field does not apply."""

    benchmark: str = says("script, without bench_ and .py")
    question: str = says("what was asked")
    instance: str = says("of what")
    seed: int | str | None = says("seed of the instance in benchmarks/instances.py")
    solver: str = says("fastpriv, or the peer")
    kind: str = says("ours, peer, or yardstick (such as a copy: no contest)")
    status: str = says("ok, not installed, not run: why, or failed: its words", "ok")
    seconds: float | None = says("least time of one call, or of one unit")
    median: float | None = says("median time of the same")
    rounds: int = says("number of timings", 0)
    unit: str = says("what the time is of: a call, a row, a draw", "call")
    value: float | None = says("the answer, as a number")
    error: float | None = says("how far the answer may be or is from the truth")
    error_of: str | None = says("what error measures")
    target: float | None = says("error that was asked for; errors below it count as equal")
    sound: bool | None = says("whether the answer is on the safe side")
    growth: float | None = says("time over the time at the size before")
    promised: float | None = says("the same by the cost in the docstring")
    headline: bool = says("whether the README shows it", False)


@dataclass
class Solver:
    """A way to answer: the call, and a judge that turns its result into fields of a record.

    A peer that has to be set up first, such as compiled, makes its call: ``made`` says so.
    """

    name: str
    call: Callable[[], Any]
    judge: Callable[[Any], dict] = lambda result: {}
    items: int = 1
    kind: str = "peer"
    needs: str | None = None
    skip: str | None = None
    made: bool = False


def ours(call, judge=lambda result: {}, items=1, name=OURS):
    """Solver of this library."""
    return Solver(name, call, judge, items, "ours")


def peer(name, call, judge=lambda result: {}, items=1, needs=None, skip=None, made=False):
    """Solver of another one: ``needs`` is a name in PEERS, ``skip`` a reason not to ask it."""
    return Solver(name, call, judge, items, "peer", needs, skip, made)


def yardstick(name, call, items=1, judge=lambda result: {}):
    """What does not answer the question but puts our time in proportion, such as a copy."""
    return Solver(name, call, judge, items, "yardstick")


class Bench:
    """Where a script puts its questions."""

    def __init__(self, name, quick=False, sink=None):
        self.name, self.quick, self._sink = name, quick, sink
        #: Seconds of timing for each solver, before one is given up, and before it is asked again.
        self.least, self.limit, self.patience = (0.05, 10, 1.0) if quick else (0.3, 60, 5.0)
        self._slow: dict[tuple[str, str], str] = {}
        self._costs: dict[str, tuple[float, float]] = {}

    def sizes(self, quick, full):
        """Sizes for this run."""
        return quick if self.quick else full

    def compare(self, question, instance, *solvers, seed=None, cost=None, **fields):
        """Time all solvers in turns; return the records, ours first.

        A peer that took longer than the patience is not given the next instance of a question.
        ``cost`` is what the docstring promises, up to a factor; how it and the time have grown
        since the last instance of the question is recorded.
        """
        found = []
        for solver in solvers:
            record = Record(self.name, question, instance, seed, solver.name, solver.kind, **fields)
            record.status = self._refusal(question, solver) or "ok"
            found.append((solver, record, Stopwatch()))
        going = [each for each in found if each[1].status == "ok"]
        while going:
            for each in list(going):
                solver, record, watch = each
                try:
                    with guarded(self.limit) if solver.kind == "peer" else plain():
                        watch.time(solver)
                    if watch.enough(self.least):
                        going.remove(each)
                except Exception as error:
                    record.status = f"failed: {words(error)}"
                    going.remove(each)
        for solver, record, watch in found:
            if record.status == "ok":
                record.seconds = watch.least / solver.items
                record.median = watch.median / solver.items
                record.rounds = len(watch.times)
                for name, value in solver.judge(watch.result).items():
                    setattr(record, name, value)
                if cost is not None:
                    seconds, before = self._costs.get(question, (math.nan, math.nan))
                    if cost > before:
                        record.growth, record.promised = record.seconds / seconds, cost / before
                    self._costs[question] = record.seconds, cost
            if record.status.startswith("failed: TimeoutError"):
                self._slow[question, solver.name] = f"no answer at {instance}"
            elif watch.times and watch.least > self.patience:
                self._slow[question, solver.name] = f"{watch.least:.1f} s at {instance}"
            self.keep(record)
        return [record for _, record, _ in found]

    def keep(self, record):
        """Print a record and write it down."""
        print(line(record), flush=True)
        if self._sink is not None:
            print(json.dumps(asdict(record)), file=self._sink, flush=True)

    def _refusal(self, question, solver):
        """Why a solver is not asked, or None."""
        if solver.needs is not None:
            try:
                with guarded(self.limit):
                    importlib.import_module(PEERS[solver.needs])
            except ImportError:
                return "not installed"
        reason = solver.skip
        if solver.kind == "peer":
            reason = reason or self._slow.get((question, solver.name))
        return None if reason is None else f"not run: {reason}"


class Stopwatch:
    """Times of one solver; short calls are timed in batches."""

    def __init__(self):
        self.call, self.times, self.number, self.total, self.result = None, [], 1, 0.0, None

    def time(self, solver):
        """Time one batch; a first call tells the size of a batch, and counts only if it is long.

        Ours has lazy imports to do in it, and so has a peer.
        """
        first, number = self.call is None, self.number
        if first:
            self.call = solver.call() if solver.made else solver.call
        call = self.call
        start = time.perf_counter()
        for _ in repeat(None, number - 1):
            call()
        self.result = call()
        taken = time.perf_counter() - start
        if not first or taken > (2.0 if solver.kind == "peer" else 5.0):
            self.times.append(taken / number)
            self.total += taken
        if taken < 0.002:
            self.number = max(2 * number, int(0.005 * number / taken))

    def enough(self, least):
        """Whether this solver has been timed for long enough."""
        return bool(self.times) and self.total >= least

    @property
    def least(self):
        return min(self.times)

    @property
    def median(self):
        return statistics.median(self.times)


@contextmanager
def plain():
    """Let our own code run as users run it."""
    yield


@contextmanager
def guarded(seconds):
    """Let a peer warn, and let it fail alone where it takes too long or asks for too much memory.

    A call into compiled code is stopped only when it returns.
    """

    def stop(*_):
        raise TimeoutError(f"no answer in {seconds} s")

    before, handler = resource.getrlimit(resource.RLIMIT_AS), signal.signal(signal.SIGALRM, stop)
    limit = in_use() + MEMORY
    if before[0] != resource.RLIM_INFINITY:
        limit = min(limit, before[0])
    resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        resource.setrlimit(resource.RLIMIT_AS, before)


def in_use():
    """Bytes of address space of this process."""
    with open("/proc/self/statm") as pages:
        return int(pages.read().split()[0]) * resource.getpagesize()


def words(error):
    """An error in one short line."""
    return f"{type(error).__name__}: {error}".split("\n")[0].rstrip(": ")[:80]


def duration(seconds):
    """Seconds in a unit that suits them, three digits."""
    if seconds is None:
        return ""
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= size:
            return f"{shown(seconds / size)} {unit}"
    return f"{shown(seconds * 1e9)} ns"


def shown(number):
    """A number to three digits, without powers of ten while it is moderate."""
    if number is None:
        return ""
    if number == 0 or not math.isfinite(number):
        return f"{number:g}"
    size = math.floor(math.log10(abs(number)))
    return f"{number:,.{max(0, 2 - size)}f}" if -3 <= size < 9 else f"{number:.2g}"


def line(record):
    """A record as it is printed."""
    what = f"{record.question}, {record.instance}"
    if record.status != "ok":
        return f"{what:<58.58} {record.solver:<18}{record.status}"
    taken = duration(record.seconds) + ("" if record.unit == "call" else f" per {record.unit}")
    error = "" if record.error is None else f"{record.error_of or 'error'} {record.error:.0e}"
    error += "" if record.sound in (None, True) else "  UNSOUND"
    if record.growth is not None:
        error = f"growth {record.growth:.1f}, promised {record.promised:.1f}"
    value = "" if record.value is None else f"{record.value:.9g}"
    return f"{what:<58.58} {record.solver:<18}{taken:>16}  {value:<16}{error}".rstrip()


def run(main):
    """Run a script from the command line."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, short timings")
    parser.add_argument("--records", metavar="FILE", help="append a line of JSON per measurement")
    given = parser.parse_args()
    fp.warm_up()
    name = Path(sys.argv[0]).stem.removeprefix("bench_")
    if given.records is None:
        main(Bench(name, given.quick))
    else:
        with open(given.records, "a") as sink:
            main(Bench(name, given.quick, sink))
