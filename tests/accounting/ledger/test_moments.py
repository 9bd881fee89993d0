"""Reads of a ledger file into which somebody else spends between any two of their statements."""

import pytest

from fastpriv.accounting import Ledger, PrivacyProfile
from fastpriv.accounting.ledger import sqlite
from fastpriv.errors import LedgerError

BUDGET = {"approximate-dp": (50.0, 1e-6)}
NOISE = PrivacyProfile.gaussian(20.0)


class Intruder:
    """Another connection, which tries to spend when the reader comes to one of its statements."""

    def __init__(self, path, place):
        self.ledger = Ledger.open(path, timeout=0.0)
        self.place, self.seen, self.spent = place, 0, 0

    def watch(self, connection):
        connection.set_trace_callback(self._before)
        return connection

    def _before(self, statement):
        self.seen += 1
        if self.seen == self.place:
            try:
                self.ledger.spend(NOISE)
            except LedgerError as error:  # the reader has the file
                assert "locked" in str(error)  # noqa: PT017
            else:
                self.spent += 1


def opened(path, intruder, monkeypatch):
    """Open the file, which checks its whole history."""
    connected = sqlite._connected
    with monkeypatch.context() as patch:
        patch.setattr(sqlite, "_connected", lambda *given: intruder.watch(connected(*given)))
        with Ledger.open(path) as ledger:
            return len(ledger.history())


def asked(path, intruder, monkeypatch):
    """Ask for the totals."""
    with Ledger.open(path) as ledger:
        intruder.watch(ledger._store._connection)
        ledger.spent  # noqa: B018
        return len(ledger.history())


def listed(path, intruder, monkeypatch):
    """List the entries: as many as the totals count."""
    with Ledger.open(path) as ledger:
        intruder.watch(ledger._store._connection)
        state, entries = ledger._store.snapshot()
        assert [entry.number for entry in entries] == list(range(1, state.entries + 1))
        return state.entries


@pytest.mark.parametrize("read", [opened, asked, listed])
def test_nobody_is_suspected_who_spends_between_two_reads(path, read, monkeypatch):
    with Ledger.open(path, BUDGET) as ledger:
        ledger.spend(NOISE, count=2)
    count, spent, place, seen = 1, 0, 0, 1
    while place < seen:
        place += 1
        intruder = Intruder(path, place)
        found = read(path, intruder, monkeypatch)
        assert found in (count, count + intruder.spent)
        count, spent, seen = count + intruder.spent, spent + intruder.spent, intruder.seen
        intruder.ledger.close()
    assert spent > 0  # the file was free at some place
    assert place > 3
