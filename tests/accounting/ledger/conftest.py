"""Ledgers in memory, in files and on a server, closed when a test ends."""

import itertools
import os

import pytest

from fastpriv.accounting import Ledger
from postgres_server import NoServer, Server, schema

_names = itertools.count()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.ledger"


@pytest.fixture(scope="session")
def server():
    """The address of a PostgreSQL server; without one its tests are skipped."""
    pytest.importorskip("psycopg")
    known = os.environ.get("FASTPRIV_TEST_POSTGRES")
    if known:
        yield known
        return
    try:
        own = Server()
    except NoServer as error:
        pytest.skip(str(error))
    yield own.address
    own.close()


@pytest.fixture(params=["file", "postgres"])
def place(request, path):
    """Where a ledger may be opened again and again: a path, or an address."""
    if request.param == "file":
        return path
    return schema(request.getfixturevalue("server"), f"test_{os.getpid()}_{next(_names)}")


@pytest.fixture(params=["memory", "file", "postgres"])
def make(request, path):
    """Make a ledger in memory, in a file or on a server."""
    made = []
    where = None if request.param == "memory" else path
    if request.param == "postgres":
        where = schema(request.getfixturevalue("server"), f"test_{os.getpid()}_{next(_names)}")

    def build(budget, **options):
        ledger = (
            Ledger(budget, **options) if where is None else Ledger.open(where, budget, **options)
        )
        made.append(ledger)
        return ledger

    yield build
    for ledger in made:
        ledger.close()
