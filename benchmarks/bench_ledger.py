"""Spends and queries of ledgers in memory and in a file.

A spend in a file is on the disk before it is acknowledged, so it is shown beside the disk's own
time for one small write and fsync in the same folder. Queries are asked with 10,000 spends in the
ledger, and of a file that another connection has just written to.
"""

import os
from functools import partial

import pytest

import fastpriv as fp
from contenders import ours, yardstick
from fastpriv.accounting import Ledger


def fsync(file):
    """Append a page to a file and wait for the disk."""
    os.write(file, bytes(4096))
    os.fsync(file)


DECLARED = {"dp": 0.1}


@pytest.fixture
def ledger_file(tmp_path):
    """A ledger in a file."""
    with Ledger.open(tmp_path / "ledger", {"dp": 1e6}) as ledger:
        yield ledger


@pytest.fixture
def disk(tmp_path):
    """The disk's own time for a small write, in the folder of the ledger."""
    raw = os.open(tmp_path / "raw", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    yield yardstick("write and fsync", partial(fsync, raw))
    os.close(raw)


def test_spend_in_memory(versus):
    """Spends of levels that are declared, and of levels that have to be computed."""
    channel = fp.HammingChannel(1_000_000, 2, 0.1)
    prior = fp.Product.iid([0.8, 0.2], 1_000_000)
    memory = Ledger({"dp": 1e6})
    several = Ledger({"dp": 1e6, "strong-dp": 1e12, "identifiability": 1e6, "pml": 1e12})
    versus("spend", "in memory, declared", ours(partial(memory.spend, DECLARED)))
    versus("spend", "in memory, E_d of 10^6 rows", ours(partial(memory.spend, channel)))
    versus("spend", "in memory, 4 notions", ours(partial(several.spend, channel, prior)))


def test_spend_in_a_file(versus, ledger_file, disk):
    """A spend that is on the disk before it is acknowledged."""
    spend = ours(partial(ledger_file.spend, DECLARED))
    versus("spend", "in a file", spend, disk)


def test_remaining(versus, ledger_file):
    """Queries."""
    memory = Ledger({"dp": 1e6})
    for _ in range(10_000):
        memory.spend(DECLARED)
    ledger_file.spend(DECLARED)
    versus("remaining", "in memory, 10,000 spends", ours(lambda: memory.remaining))
    versus("remaining", "in a file", ours(lambda: ledger_file.remaining))


def test_two_connections(versus, ledger_file, disk, tmp_path):
    """A query of a file that another connection has just written to."""
    with Ledger.open(tmp_path / "ledger") as other:

        def written():
            other.spend(DECLARED)
            return ledger_file.remaining

        versus("spend here, remaining there", "in a file", ours(written), disk)
