"""Ledgers in memory and in files, closed when a test ends."""

import pytest

from fastpriv.accounting import Ledger


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.ledger"


@pytest.fixture(params=["memory", "file"])
def make(request, path):
    """Make a ledger in memory, or in a file."""
    made = []

    def build(budget):
        ledger = Ledger(budget) if request.param == "memory" else Ledger.open(path, budget)
        made.append(ledger)
        return ledger

    yield build
    for ledger in made:
        ledger.close()
