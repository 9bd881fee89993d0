"""Distinct spends of one (epsilon, delta) ledger: what each costs, as they become many.

Run ``python benchmarks/many_spends.py [spends] [--file]``; 200 in memory unless told. Every spend
declares another level, so that nothing is equal and all profiles have to be composed. It prints
the processor time of the spends so far, of the last ten of them and of the slowest, and checks the
level at the end against a composition from scratch, whose time stands beside it.

With ``--beside`` one process spends distinct subsampled Gaussians on a file without pause, while
this one spends a small declared level about ten times a second, then a subsampled Gaussian of its
own. It prints the median, the 99th percentile and the largest time of a spend of this process, by
the clock and by the processor, and how often it was overtaken. With ``--postgres`` as well, the
ledger is on a server.
"""

import multiprocessing
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import fastpriv as fp
from fastpriv.accounting import Ledger, PrivacyProfile
from fastpriv.accounting.ledger.profiles import composed_epsilon

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

DELTA = 1e-6
PAUSE = 0.1


def main(count, in_file):
    """Spend, and print what it took."""
    with tempfile.TemporaryDirectory() as folder:
        budget = {"approximate-dp": (1e6, DELTA)}
        ledger = Ledger.open(Path(folder) / "ledger", budget) if in_file else Ledger(budget)
        ledger.spend({"dp": 1e-5}, label="kernels are loaded")
        times = []
        for k in range(count):
            start = time.process_time()
            ledger.spend({"dp": 0.01 + 1e-5 * ((7919 * k) % 10_007)})
            times.append(time.process_time() - start)
            if k + 1 in (count, *(10**j * i for j in (1, 2, 3, 4) for i in (1, 2, 5))):
                last = sum(times[-10:]) / 10
                print(
                    f"{k + 1:>6} spends {sum(times):>8.2f} s, the last ten {1e3 * last:>7.1f} ms "
                    f"each, the slowest {max(times):>6.2f} s"
                )
        parts = ledger._store.state().parts
        start = time.process_time()
        scratch = composed_epsilon(parts, DELTA)
        seconds = time.process_time() - start
        level = ledger.spent["approximate-dp"]
        print(f"epsilon {level!r}; from scratch {scratch!r} in {seconds:.2f} s")
        assert abs(level - scratch) <= 1e-5 * scratch
        ledger.close()


def busy(place, first, count, results):
    """Spend distinct subsampled Gaussians without pause."""
    with Ledger.open(place) as ledger:
        start = time.perf_counter(), time.process_time()
        for k in range(first, first + count):
            ledger.spend(PrivacyProfile.gaussian(0.8 + 1e-3 * k, 0.01))
        results.put((time.perf_counter() - start[0], time.process_time() - start[1]))


def beside(place, count):
    """Spend beside a busy process, and print what it took."""
    ledger = Ledger.open(place, {"approximate-dp": (1e6, DELTA)})
    for noise in (1.0, 1.1):
        ledger.spend(PrivacyProfile.gaussian(noise, 0.02), label="kernels are loaded")
    conflicts, spawned = [], multiprocessing.get_context("spawn")
    stop = fp.observe(lambda event, fields: event == "conflict" and conflicts.append(event))
    for first, what in ((0, "a declared level"), (count, "a subsampled Gaussian")):
        own = [PrivacyProfile.gaussian(3.0 + 1e-3 * k, 0.01) for k in range(count)]
        ledger.spend({"dp": 1e-3})
        known, results = len(ledger), spawned.Queue()
        process = spawned.Process(target=busy, args=(place, first, count, results))
        process.start()
        while len(ledger) == known:
            time.sleep(0.01)
        times = []
        conflicts.clear()
        while process.is_alive() and results.empty():
            time.sleep(PAUSE)
            start = time.perf_counter(), time.process_time()
            ledger.spend({"dp": 1e-3} if first == 0 else own[len(times)])
            times.append((time.perf_counter() - start[0], time.process_time() - start[1]))
        seconds = results.get()
        process.join()
        print(f"{count} subsampled Gaussians: {seconds[0]:.1f} s, {seconds[1]:.1f} s of processor")
        print(f"  beside them {what}, {len(times)} times, overtaken {len(conflicts)} times")
        for name, some in zip(("clock", "processor"), 1e3 * np.array(times).T, strict=True):
            median, high = np.quantile(some, [0.5, 0.99])
            print(f"  {name:<12}median {median:.1f} ms, p99 {high:.1f}, largest {some.max():.1f}")
    stop()
    level, parts = ledger.spent["approximate-dp"], ledger._store.state().parts
    ledger.close()
    print(f"epsilon {level!r} of {len(parts)} kinds; load of the machine {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    numbers = [int(given) for given in sys.argv[1:] if given.isdigit()]
    number = numbers[0] if numbers else 200
    if "--beside" not in sys.argv:
        main(number, "--file" in sys.argv)
    elif "--postgres" in sys.argv:
        from postgres_server import Server, schema

        server = Server()
        try:
            beside(schema(server.address, "beside"), number)
        finally:
            server.close()
    else:
        with tempfile.TemporaryDirectory() as name:
            beside(Path(name) / "ledger", number)
