"""Processes that spend from one ledger while some of them, and the server, are killed.

Run ``python benchmarks/ledger_storm.py [file|postgres|both] [spends] [processes]``. The processes
share a list of jobs, 2,000 unless told, each with a key, and every job is given to two processes.
Each process is killed three times (SIGKILL), at a random moment of a random spend, and replaced;
on PostgreSQL the server is killed too, and started again. Each process writes down what was
acknowledged to it. At the end: every acknowledged spend must be in the ledger, no job may be in it
twice, and the budget, which has room for all but twenty jobs, must be spent to the last decimal and
not exceeded. It prints spends per second and the 99th percentile of the time of a spend.

With ``growth`` it prints instead what one more spend costs after 100, 1,000, ... spends. With
``flips`` it kills a process after 30 spends on a file, changes one bit of the file, opens it,
spends and opens it again: 500 times unless told, each time another bit of the file as it was.
"""

import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from decimal import Decimal
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from fastpriv.accounting import Ledger, PrivacyProfile
from fastpriv.errors import BudgetExceeded, LedgerError
from postgres_server import NoServer, Server, schema

LEVEL = Decimal("0.01")
REFUSED = 20
KILLS = 3  # of each process


def spender(place, acknowledged, jobs, last):
    """Spend each job once more, writing down every acknowledgement and how long it took.

    The process is killed during or soon after the job with the number ``last``, if there is one.
    """
    log = os.open(acknowledged, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    ledger = None
    for k, job in enumerate(jobs):
        if k == last:
            moment = random.uniform(0.0, 0.01)
            threading.Timer(moment, os.kill, (os.getpid(), signal.SIGKILL)).start()
        while True:
            begun = time.perf_counter()
            try:
                ledger = ledger or Ledger.open(place, timeout=20.0)
                ledger.spend({"dp": LEVEL}, key=job)
            except BudgetExceeded:
                break
            except LedgerError:  # the server is down for longer than the timeout
                time.sleep(0.05)
                continue
            seconds = time.perf_counter() - begun
            os.write(log, f"{json.dumps([job, seconds])}\n".encode())
            break
    if last is not None:
        time.sleep(60.0)  # the timer ends the process
    os._exit(0)


def start(place, acknowledged, jobs, last):
    """Start a spender and return its process id."""
    child = os.fork()
    if child == 0:
        try:
            spender(place, acknowledged, jobs, last)
        finally:
            os._exit(1)
    return child


def storm(place, server, folder, spends, processes, rng):
    """One ledger, its processes and kills; return counts of what happened, and the times."""
    budget = LEVEL * (spends - REFUSED)
    Ledger.open(place, {"dp": budget}).close()
    acknowledged = folder / "acknowledged"
    jobs = [f"job {k}" for k in range(spends)]
    shares = [jobs[j::processes] + jobs[(j + 1) % processes :: processes] for j in range(processes)]
    for share in shares:
        rng.shuffle(share)
    begun, found = time.perf_counter(), Counter()
    running = {}

    def begin(share, kills):
        last = rng.randrange(len(share)) if kills else None
        running[start(place, acknowledged, share, last)] = share, kills

    for share in shares:
        begin(share, KILLS)
    while running:
        time.sleep(rng.uniform(0.0, 0.1))
        for child in list(running):
            done, code = os.waitpid(child, os.WNOHANG)
            if done:
                share, kills = running.pop(child)
                killed = os.WIFSIGNALED(code)
                found["killed clients" if killed else "failed" if code else "finished"] += 1
                if killed or code:
                    begin(share, kills - killed)
        if server is not None and found["killed servers"] < 5 and rng.random() < 0.15:
            server.kill()
            server.start()
            found["killed servers"] += 1
    seconds = time.perf_counter() - begun
    said = [json.loads(line) for line in acknowledged.read_text().splitlines() if line[-1:] == "]"]
    with Ledger.open(place) as ledger:
        ledger.verify()
        kept = Counter(receipt.key for receipt in ledger.history())
        total = Decimal(repr(ledger.spent["dp"]))
    found["acknowledged"] = len({job for job, _ in said})
    found["in the ledger"] = len(kept)
    found["lost"] = sum(job not in kept for job in {job for job, _ in said})
    found["doubled"] = sum(count > 1 for count in kept.values())
    found["overspent"] = int(total > budget or total != LEVEL * len(kept))
    found["left over"] = int(total != budget)
    times = sorted(taken for _, taken in said)
    return found, seconds, times


def growth(place, most):
    """Print what a spend costs as the history grows: declared levels, and distinct noise."""
    with Ledger.open(place, {"dp": 1e6, "approximate-dp": (1e3, 1e-6)}) as ledger:
        times = []
        for k in range(most):
            begun = time.perf_counter()
            ledger.spend(PrivacyProfile.laplace(500.0 + k))
            times.append(time.perf_counter() - begun)
            if k + 1 in (10, 30, 100, 300, 1000, most):
                last = sorted(times[-10:])[5]
                print(f"{k + 1:>7} kinds of noise, one more: {1e3 * last:8.1f} ms")
    print(f"{'all':>7} {sum(times):8.1f} s")


def killed(place):
    """Spend thirty times and be killed."""
    ledger = Ledger.open(place, {"dp": 1000.0})
    for k in range(30):
        ledger.spend({"dp": LEVEL}, label=f"spend {k}", key=str(k))
    os.kill(os.getpid(), signal.SIGKILL)


def flips(place, count, rng):
    """Flip bits of the file of a process that was killed; print when each was found."""
    child = os.fork()
    if child == 0:
        killed(place)
    os.waitpid(child, 0)
    whole, found = place.read_bytes(), Counter()
    with Ledger.open(place) as ledger:
        history = ledger.history()
    for _ in range(count):
        bit, data = rng.randrange(8 * len(whole)), bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        place.write_bytes(data)
        when = "found at opening"
        try:
            with Ledger.open(place) as ledger:
                when = "changed history" if ledger.history() != history else "not found"
                ledger.spend({"dp": LEVEL})
                when = "found after a spend" if when == "not found" else when
            with Ledger.open(place) as ledger:
                ledger.verify()
            when = "not found, no harm" if when == "found after a spend" else when
        except LedgerError:
            pass
        found[when] += 1
    for when, times in sorted(found.items()):
        print(f"  {when:<24}{times:>8} of {count}")
    return count - found["found at opening"]


def main(which="both", spends=None, processes=8, seed=0):
    if which == "flips":
        with tempfile.TemporaryDirectory() as name:
            print("file of a killed process")
            return flips(Path(name) / "ledger", int(spends or 500), random.Random(seed))
    wrong, spends = 0, int(spends or 2000)
    for kind in ("file", "postgres") if which in ("both", "growth") else (which,):
        with tempfile.TemporaryDirectory() as name:
            server, place = None, Path(name) / "ledger"
            if kind == "postgres":
                try:
                    server = Server()
                except (NoServer, ImportError) as error:
                    print(f"postgres: skipped, {error}")
                    continue
                place = schema(server.address, "storm")
            try:
                print(kind)
                if which == "growth":
                    growth(place, spends)
                    continue
                counts, seconds, times = storm(
                    place, server, Path(name), spends, int(processes), random.Random(seed)
                )
            finally:
                if server is not None:
                    server.close()
        for what, count in sorted(counts.items()):
            print(f"  {what:<24}{count:>8}")
        print(f"  {'spends per second':<24}{counts['in the ledger'] / seconds:>8.0f}")
        print(f"  {'median, ms':<24}{1e3 * times[len(times) // 2]:>8.1f}")
        print(f"  {'99th percentile, ms':<24}{1e3 * times[int(0.99 * len(times))]:>8.1f}")
        wrong += sum(counts[what] for what in ("lost", "doubled", "overspent", "failed"))
        wrong += counts["left over"]
    return wrong


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) > 0)
