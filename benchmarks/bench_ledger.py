"""Spends and queries of ledgers in memory and in a file.

A spend in a file is on the disk before it is acknowledged, so it is shown beside the disk's own
time for one small write and fsync in the same folder. Queries are asked with 10,000 spends in the
ledger, and of a file that another connection has just written to.
"""

import os
import tempfile
from functools import partial
from pathlib import Path

import fastpriv as fp
from _bench import ours, run, yardstick
from fastpriv.accounting import Ledger


def fsync(file):
    """Append a page to a file and wait for the disk."""
    os.write(file, bytes(4096))
    os.fsync(file)


def main(bench):
    """Spends, then queries."""
    channel, declared = fp.HammingChannel(1_000_000, 2, 0.1), {"dp": 0.1}
    prior = fp.Product.iid([0.8, 0.2], 1_000_000)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "ledger"
        memory, file = Ledger({"dp": 1e6}), Ledger.open(path, {"dp": 1e6})
        several = Ledger({"dp": 1e6, "strong-dp": 1e12, "identifiability": 1e6, "pml": 1e12})
        raw = os.open(path.with_suffix(".raw"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        disk = yardstick("write and fsync", partial(fsync, raw))
        ask = bench.compare
        ask("spend", "in memory, declared", ours(partial(memory.spend, declared)))
        ask("spend", "in memory, E_d of 10^6 rows", ours(partial(memory.spend, channel)))
        ask("spend", "in memory, 4 notions", ours(partial(several.spend, channel, prior)))
        ask("spend", "in a file", ours(partial(file.spend, declared)), disk, headline=True)
        while len(memory) < 10_000:
            memory.spend(declared)
        ask("remaining", "in memory, 10,000 spends", ours(lambda: memory.remaining))
        ask("remaining", "in a file", ours(lambda: file.remaining))
        with Ledger.open(path) as other:

            def written():
                other.spend(declared)
                return file.remaining

            ask("spend here, remaining there", "in a file", ours(written), disk)
        file.close()
        os.close(raw)


if __name__ == "__main__":
    run(main)
