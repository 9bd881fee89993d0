"""Spends and queries per second of ledgers in memory and in a file.

Run ``python benchmarks/bench_ledger.py [folder]``. A spend in a file is on the disk before it is
acknowledged, so it is shown beside the disk's own time for one small write and fsync in the same
folder. Queries are asked with 10,000 spends in the ledger, and of a file that another connection
has just written to.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

import fastpriv as fp
from fastpriv.accounting import Ledger


def seconds(work, number, rounds=5):
    """Least time of one call over a few rounds of many."""
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(number):
            work()
        best = min(best, (time.perf_counter() - start) / number)
    return best


def row(name, time_of_one):
    print(f"{name:<44}{1e6 * time_of_one:>12.2f}{1 / time_of_one:>14,.0f}")


def fsync(path):
    """Append a page to a file and wait for the disk."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def work():
        os.write(file, bytes(4096))
        os.fsync(file)

    return work


def main(folder=None):
    channel, declared = fp.HammingChannel(1_000_000, 2, 0.1), {"dp": 0.1}
    prior = fp.Product.iid([0.8, 0.2], 1_000_000)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        path = Path(place) / "ledger"
        memory, file = Ledger({"dp": 1e6}), Ledger.open(path, {"dp": 1e6})
        several = Ledger({"dp": 1e6, "strong-dp": 1e12, "identifiability": 1e6, "pml": 1e12})
        print(f"{'':<44}{'us':>12}{'per second':>14}")
        row("spend in memory, declared", seconds(lambda: memory.spend(declared), 1000))
        row("spend in memory, E_d of 10^6 rows", seconds(lambda: memory.spend(channel), 1000))
        row("the same in 4 notions", seconds(lambda: several.spend(channel, prior), 500))
        row("one write and fsync of this disk", seconds(fsync(path.with_suffix(".raw")), 50))
        row("spend in a file", seconds(lambda: file.spend(declared), 50))
        while len(memory) < 10_000:
            memory.spend(declared)
        row("remaining, in memory", seconds(lambda: memory.remaining, 10_000))
        row("remaining, of a file", seconds(lambda: file.remaining, 2000))
        with Ledger.open(path) as other:

            def written():
                other.spend(declared)
                start = time.perf_counter()
                assert file.remaining
                return time.perf_counter() - start

            row("remaining, of a file just written by another", min(written() for _ in range(50)))
        file.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
