"""What every store of a ledger must do: SQLite in memory and in a file, PostgreSQL on a server."""

import asyncio
import itertools
import json
import linecache
import logging
import os
import pickle
import signal
import sys
import threading
import time
from collections import Counter
from datetime import timedelta

import numpy as np
import pytest

import fastpriv as fp
from fastpriv.accounting import Ledger, PrivacyFilter, PrivacyOdometer, PrivacyProfile
from fastpriv.accounting.ledger import ledger as module
from fastpriv.accounting.ledger import postgres
from fastpriv.accounting.ledger.budget import Budget
from fastpriv.accounting.ledger.store import LostConnection
from fastpriv.errors import BudgetExceeded, InvalidInput, LedgerError
from postgres_server import NoServer, Server, schema

CURVE = {"approximate-dp": (20.0, 1e-6)}
NOISE = PrivacyProfile.gaussian(5.0)


def test_a_key_is_charged_once(make):
    ledger = make({"dp": 1.0})
    first = ledger.spend({"dp": 0.25}, label="a", key="job", actor="me", metadata={"run": [1, 2.5]})
    again = ledger.spend({"dp": 0.25}, label="a", key="job", actor="me", metadata={"run": [1, 2.5]})
    assert again == first
    assert (again.key, again.actor, again.metadata, again.digest) == (
        "job", "me", {"run": [1, 2.5]}, first.digest,
    )  # fmt: skip
    assert ledger.spent == {"dp": 0.25}
    same = {"label": "a", "actor": "me", "metadata": {"run": [1, 2.5]}}
    for level, other in (
        (0.5, {}), (0.25, {"count": 2}), (0.25, {"label": "b"}), (0.25, {"actor": "you"}),
        (0.25, {"metadata": {}}), (0.25, {"metadata": None}),
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match="'job' belongs to spend 1"):
            ledger.spend({"dp": level}, key="job", **{**same, **other})
    assert len(ledger) == 1
    ledger.spend({"dp": 0.75}, key="last")
    assert ledger.spend({"dp": 0.25}, key="job", **same) == first  # nothing is left, nor needed


@pytest.mark.parametrize("mechanism", [NOISE, fp.HammingChannel(3, 2, 0.5), {"dp": 0.125}])
def test_keys_of_every_kind_of_step(make, mechanism):
    ledger = make(CURVE)
    first = ledger.spend(mechanism, key="k")
    assert ledger.spend(mechanism, key="k") == first
    with pytest.raises(InvalidInput, match="belongs to spend 1"):
        ledger.spend(fp.HammingChannel(3, 2, 0.25), key="k")
    assert len(ledger) == 1


@pytest.mark.parametrize(
    ("first", "again", "other"),
    [
        ({"dp": 1}, {"dp": "1.00"}, {"dp": "1.0000000000000000000000000000000000001"}),
        ({"approximate-dp": (1, 1e-7)}, {"approximate-dp": [1.0, "0.0000001"]}, {"dp": 1}),
    ],
)
def test_a_key_knows_a_level_that_is_written_in_another_way(first, again, other):
    ledger = Ledger(CURVE)
    receipt = ledger.spend(first, key="k")
    assert ledger.spend(again, key="k") == receipt
    with pytest.raises(InvalidInput, match="belongs to spend 1"):
        ledger.spend(other, key="k")


def test_the_digits_of_a_budget_stay():
    with pytest.raises(BudgetExceeded):
        Ledger({"dp": "1.00000000000000000000000000000000005"}).spend(
            {"dp": "1.00000000000000000000000000000000006"}
        )


@pytest.mark.parametrize(
    "wrong",
    [{"key": ""}, {"key": 5}, {"key": "x" * 2000}, {"key": "\u4e2d" * 1000}, {"key": "a\0"},
     {"actor": 5},
     {"label": "\ud800"},
     {"metadata": object()}, {"metadata": float("nan")}, {"metadata": {"x": "y" * 70000}},
     {"metadata": {"a": {1, 2}}}, {"metadata": "\0"}],
)  # fmt: skip
def test_what_cannot_be_kept_is_refused(make, wrong):
    ledger = make({"dp": 1.0})
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        ledger.spend({"dp": 0.1}, **wrong)
    assert len(ledger) == 0


def test_keys_and_texts_of_any_characters(make):
    """The last one has the most bytes that an index of PostgreSQL takes, and no repetition."""
    ledger = make({"dp": 9.0})
    texts = [
        "é",
        "e\u0301",
        " a",
        "a",
        "A",
        "'; DROP TABLE entry; --",
        "a\nb",
        "%s {entry} ?",
        "\x01",
    ]
    texts += [
        "\U0001f600",
        "\u202e",
        "\uffff",
        "NULL",
        "".join(map(chr, range(0x4E00, 0x4E00 + 866))),
    ]
    for text in texts:
        given = {"key": text, "label": text, "actor": text, "metadata": {text: [text]}}
        assert ledger.spend({"dp": 0.1}, **given) == ledger.spend({"dp": 0.1}, **given)
    assert [receipt.key for receipt in ledger.history()] == texts
    assert Ledger.from_json(ledger.to_json()).verify() == ledger.verify()


def test_a_dry_run_spends_nothing(make):
    ledger = make(CURVE)
    told = ledger.spend(NOISE, dry_run=True, label="x", actor="me")
    assert (told.number, told.digest, len(ledger)) == (1, None, 0)
    assert ledger.spend(NOISE, label="x").charged == told.charged
    with pytest.raises(BudgetExceeded):
        ledger.spend(PrivacyProfile.gaussian(0.1), dry_run=True)
    assert len(ledger) == 1


def test_receipts_are_json(make):
    ledger = make({"dp": 1.0})
    given = json.loads(ledger.spend({"dp": 0.25}, count=2, metadata=[None, "é"]).to_json())
    assert given["charged"] == {"dp": 0.5}
    assert given["metadata"] == [None, "é"]
    assert given["digest"] == ledger.verify()


def test_an_amendment_is_an_entry_of_the_chain(place):
    with Ledger.open(place, {"dp": 1.0}) as ledger, Ledger.open(place) as other:
        ledger.spend({"dp": 0.75})
        with pytest.raises(BudgetExceeded):
            other.spend({"dp": 0.5})
        change = ledger.amend({"dp": 2}, actor="board", reason="second wave")
        other.spend({"dp": 0.5})
        assert other.budget == {"dp": 2.0}
        assert other.amendments() == [change]
        assert (change.number, change.actor, change.budget) == (2, "board", {"dp": 2.0})
        assert [r.number for r in other.history()] == [1, 3]
        assert [r.number for r in other.history(1)] == [3]
        for wrong in ({"dp": 1.0}, {"pml": 5.0}, {"dp": 3.0, "pml": 1.0}):
            with pytest.raises(InvalidInput):
                ledger.amend(wrong, actor="a", reason="b")
        for words in ({"actor": "", "reason": "b"}, {"actor": "a", "reason": None}):
            with pytest.raises(InvalidInput, match="must be a"):
                ledger.amend({"dp": 3.0}, **words)
        head, text = ledger.verify(), other.to_json()
    with Ledger.open(place, {"dp": 2.0}) as again:
        assert again.verify() == head
        assert again.amendments() == [change]
    with pytest.raises(InvalidInput, match="has the budget"):
        Ledger.open(place, {"dp": 1.0})
    copy = Ledger.from_json(text)
    assert copy.verify() == head
    assert copy.budget == {"dp": 2.0}


def test_an_amended_curve_keeps_its_composition(make):
    ledger = make({"approximate-dp": (1.0, 1e-6)})
    ledger.spend(NOISE)
    with pytest.raises(BudgetExceeded):
        ledger.spend(NOISE, count=5)
    ledger.amend({"approximate-dp": (9.0, 1e-6)}, actor="a", reason="b")
    ledger.spend(NOISE, count=5)
    with pytest.raises(InvalidInput, match="the delta of the ledger"):
        ledger.amend({"approximate-dp": (9.0, 1e-5)}, actor="a", reason="b")
    ledger.verify()


def test_a_clock_that_is_set_back_is_recorded_as_seen(place, monkeypatch):
    now = module._now
    with Ledger.open(place, {"dp": 1.0}) as ledger:
        first = ledger.spend({"dp": 0.1})
        monkeypatch.setattr(module, "_now", lambda: (first.time - timedelta(hours=1)).isoformat())
        second = ledger.spend({"dp": 0.1})
        monkeypatch.setattr(module, "_now", now)
        ledger.spend({"dp": 0.1})
    assert second.time == first.time - timedelta(hours=1)
    with Ledger.open(place) as ledger:
        assert [receipt.number for receipt in ledger.history()] == [1, 2, 3]
        assert ledger.history()[1].time == second.time


def test_ledgers_of_one_place_see_each_other(place):
    with Ledger.open(place, CURVE) as one, Ledger.open(place) as other:
        for k in range(20):
            (one, other)[k % 2].spend(PrivacyProfile.gaussian(20.0 + k, 0.1), label=str(k))
        assert one.spent == other.spent
        assert [r.label for r in one.history()] == [str(k) for k in range(20)]
        assert one.verify() == other.verify()
    with Ledger.open(place) as again:
        assert len(again) == 20


def test_nobody_waits_while_another_one_composes(place, monkeypatch):
    """A spend that thinks for long holds no lock, and sees what was spent meanwhile."""
    charges, thinking, go, calls = Budget.charges, threading.Event(), threading.Event(), []

    def slow(self, before, *given):
        result = charges(self, before, *given)
        if threading.current_thread() is thinker:
            calls.append(before.spends)
            thinking.set()
            go.wait(20)
        return result

    with Ledger.open(place, CURVE) as ledger, Ledger.open(place) as other:
        ledger.spend(NOISE)
        monkeypatch.setattr(Budget, "charges", slow)
        done = []
        thinker = threading.Thread(target=lambda: done.append(ledger.spend(NOISE)))
        thinker.start()
        assert thinking.wait(20)
        assert other.spend(NOISE).number == 2
        assert ledger.spend(NOISE).number == 3  # of the same object, in another thread
        go.set()
        thinker.join()
        assert done[0].number == 4
        assert calls == [1, 3]
        twin = Ledger(CURVE)
        twin.spend(NOISE, count=4)
        assert ledger.spent["approximate-dp"] == pytest.approx(twin.spent["approximate-dp"])
        ledger.verify()


@pytest.mark.parametrize(("brief", "others"), [(1.0, [1]), (0.0, [1, 2, 3])])
def test_somebody_who_is_always_late_gets_through(place, monkeypatch, brief, others):
    """At once if composing is brief, otherwise after some attempts while nobody waits."""
    monkeypatch.setattr(module, "_ATTEMPTS", 3)
    monkeypatch.setattr(module, "_BRIEF", brief)
    with Ledger.open(place, CURVE) as slow, Ledger.open(place) as fast:
        next_of, late = Ledger._next, []

        def busy(self, *given):
            if self is slow and not slow._store._writing:
                late.append(fast.spend(NOISE).number)
            return next_of(self, *given)

        fast.spend(NOISE, dry_run=True)  # kernels are loaded
        monkeypatch.setattr(Ledger, "_next", busy)
        assert slow.spend(NOISE).number == len(others) + 1
        assert late == others


def test_threads_share_a_budget_and_keys(place):
    """Each of eight threads has the same forty jobs."""
    with Ledger.open(place, {"dp": 4.0}) as ledger, Ledger.open(place) as other:
        failed = []

        def work(mine):
            try:
                for k in range(40):
                    mine.spend({"dp": 0.1}, key=f"job {k}")
            except Exception as error:
                failed.append(error)

        threads = [threading.Thread(target=work, args=((ledger, other)[j % 2],)) for j in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []
        assert (ledger.spent, len(other)) == ({"dp": 4.0}, 40)
        other.verify()


def test_export_and_import_between_stores(place):
    with Ledger.open(place, CURVE, relation="add-or-remove") as ledger:
        ledger.spend(NOISE, key="k", actor="me", metadata={"a": 1})
        ledger.spend({"dp": 0.25}, count=3)
        text = ledger.to_json()
        copy = Ledger.from_json(text)
        assert copy.to_json() == text
        assert copy.verify() == ledger.verify()
        assert copy.spend(NOISE, key="k", actor="me", metadata={"a": 1}).number == 1
        with pytest.raises(InvalidInput, match="path must be a new file"):
            Ledger.from_json(text, place)


def test_a_relation_that_is_stated_later(place):
    with Ledger.open(place, {"dp": 1.0}) as ledger:
        ledger.spend({"dp": 0.1})
    with Ledger.open(place, relation="replace-one") as ledger:
        assert ledger.relation == "replace-one"
        assert ledger.spend({"dp": 0.1}).number == 3
        ledger.verify()
    with pytest.raises(InvalidInput, match="that of the ledger"):
        Ledger.open(place, relation="add-or-remove")


def test_a_ledger_that_many_make_at_once(place):
    """One of them makes it; those with another budget are refused."""
    found = []

    def work(k):
        try:
            with Ledger.open(place, {"dp": 1.0 + k % 2}) as ledger:
                ledger.spend({"dp": 0.125})
            found.append(k % 2)
        except Exception as error:
            found.append(type(error))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(found) in ({each: 4, InvalidInput: 4} for each in (0, 1))
    with Ledger.open(place) as ledger:
        assert ledger.spent == {"dp": 0.5}


@pytest.mark.parametrize("address", ["mysql://x/y", "postgresql+psycopg://x/y", "POSTGRESQL://x"])
def test_addresses_of_other_services(address):
    with pytest.raises(InvalidInput, match='an address "postgresql://'):
        Ledger.open(address, {"dp": 1.0})


def test_a_schema_that_does_not_exist(server):
    with pytest.raises(LedgerError, match="must exist"):
        Ledger.open(f"{server}?options=-csearch_path%3Dnowhere", {"dp": 1.0})


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_databases_of_other_encodings(server, encoding):
    psycopg = pytest.importorskip("psycopg")
    name = f"test_{os.getpid()}_{encoding.lower()}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(
            f"CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}' "
            "LC_COLLATE 'C' LC_CTYPE 'C'"
        )
        place = f"{server.rpartition('/')[0]}/{name}"
        with Ledger.open(place, {"dp": 1.0}) as ledger:
            ledger.spend({"dp": 0.1}, key="é")
            if encoding == "LATIN1":
                with pytest.raises(LedgerError, match=r"nothing was spent.*UTF8"):
                    ledger.spend({"dp": 0.1}, key="\u4e2d")
            else:
                ledger.spend({"dp": 0.1}, key="\u4e2d")
        with Ledger.open(place) as ledger:
            assert [receipt.key for receipt in ledger.history()] in (["é"], ["é", "\u4e2d"])
        connection.execute(f"DROP DATABASE {name}")


def test_a_place_without_a_ledger(place):
    with pytest.raises(LedgerError, match="there is no ledger"):
        Ledger.open(place)


def test_a_claim_is_published_once(place):
    with Ledger.open(place, {"dp": 1.0}) as ledger, Ledger.open(place) as other:
        receipt = ledger.spend({"dp": 0.1}, label="t", claim="c")
        assert other.unpublished("t") == [(receipt, "c")]
        assert "claim" not in other.to_json()
        other.publish(receipt)
        with pytest.raises(LedgerError, match="another release"):
            ledger.publish(receipt)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_connection_that_is_lost_at_the_commit(server, moment, monkeypatch):
    """The spend is in the ledger or not; the ledger finds out, and charges once."""
    place = schema(server, f"lost_{moment}")
    with Ledger.open(place, {"dp": 1.0}) as ledger:
        ledger.spend({"dp": 0.1})
        store, execute, lost = ledger._store, ledger._store.execute, []

        def losing(statement, values=()):
            if statement == "COMMIT" and store._writing and not lost:
                lost.append(1)
                if moment == "after":
                    execute(statement)
                store._connection.close()
                return execute("SELECT 1")
            return execute(statement, values)

        monkeypatch.setattr(store, "execute", losing)
        assert ledger.spend({"dp": 0.25}).number == 2
        assert lost
        assert ledger.spent == {"dp": 0.35}
        assert len(ledger.history()) == 2
        ledger.verify()
        assert issubclass(LostConnection, LedgerError)


@pytest.mark.parametrize("budget", [{"dp": 1.0}, CURVE])
@pytest.mark.parametrize("key", [None, "job"])
def test_a_connection_that_is_lost_at_any_statement(server, budget, key, monkeypatch):
    """Before each statement of a spend in turn: it is charged once, within one transaction."""
    place = schema(server, f"lost_{len(budget)}_{key}_{next(iter(budget))[:2]}")
    with Ledger.open(place, budget) as ledger:
        ledger.spend({"dp": 0.01})
        store, execute = ledger._store, ledger._store.execute
        losses, outside = 0, []
        for nth in itertools.count(1):
            asked = 0

            def losing(statement, values=(), nth=nth):
                nonlocal asked
                asked += 1
                if asked == nth:
                    store._connection.close()
                if statement.startswith(("INSERT", "UPDATE")):
                    connection = store._connection
                    if not connection.closed and connection.info.transaction_status == 0:
                        outside.append(statement)
                return execute(statement, values)

            monkeypatch.setattr(store, "execute", losing)
            receipt = ledger.spend({"dp": 0.01}, key=key and f"{key} {nth}")
            monkeypatch.setattr(store, "execute", execute)
            assert receipt.number == len(ledger) == nth + 1
            if asked < nth:
                break
            losses += 1
        assert losses >= 8
        assert outside == []
        ledger.verify()


def test_a_lost_transaction_that_the_server_still_commits(server, monkeypatch):
    """Whether it was written is asked only after the server is done with it."""
    place = schema(server, "slow_commit")
    with Ledger.open(place, {"dp": 1.0}) as ledger:
        store, execute, committing = ledger._store, ledger._store.execute, []

        def losing(statement, values=()):
            if statement == "COMMIT" and store._writing and not committing:
                connection, store._connection = store._connection, None
                commit = threading.Timer(0.3, connection.execute, ("COMMIT",))
                committing.append(commit)
                commit.start()
                raise LostConnection("lost")
            return execute(statement, values)

        monkeypatch.setattr(store, "execute", losing)
        assert ledger.spend({"dp": 0.25}).number == 1
        committing[0].join()
        assert (len(ledger), ledger.spent) == (1, {"dp": 0.25})
        ledger.verify()


def test_a_server_that_is_gone_after_the_commit_leaves_it_open(server, monkeypatch):
    place = schema(server, "gone")
    with Ledger.open(place, {"dp": 1.0}, timeout=0.1) as ledger:
        store, execute = ledger._store, ledger._store.execute

        def losing(statement, values=()):
            if statement == "COMMIT" and store._writing:
                execute(statement)
                store._connection.close()
                monkeypatch.setattr(store, "address", "postgresql://127.0.0.1:1/nowhere")
            return execute(statement, values)

        monkeypatch.setattr(store, "execute", losing)
        with pytest.raises(LedgerError, match=r"counts, or it does not.*with the same key"):
            ledger.spend({"dp": 0.25}, key="job")
    with Ledger.open(place) as ledger:
        assert ledger.spend({"dp": 0.25}, key="job").number == len(ledger) == 1


def test_spends_under_asyncio(make):
    ledger = make({"dp": 1.0})

    async def work():
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        ticking = asyncio.create_task(tick())
        receipts = await asyncio.gather(
            *(ledger.aspend({"dp": 0.1}, label=str(k), key=str(k)) for k in range(10))
        )
        ticking.cancel()
        with pytest.raises(BudgetExceeded):
            await ledger.aspend({"dp": 0.1})
        return receipts, ticks

    receipts, ticks = asyncio.run(work())
    assert sorted(r.number for r in receipts) == list(range(1, 11))
    assert ledger.spent == {"dp": 1.0}
    assert ticks >= 2  # the loop was not blocked


def test_events_are_logged_and_counted(make, caplog):
    ledger, seen = make({"dp": 1.0}), []
    stop = fp.observe(lambda event, fields: seen.append((event, fields)))
    failing = fp.observe(lambda event, fields: 1 / 0)
    with caplog.at_level(logging.INFO, logger="fastpriv"):
        ledger.spend({"dp": 0.25}, label="secret", key="hidden", metadata={"name": "Ada"})
        with pytest.raises(BudgetExceeded):
            ledger.spend({"dp": 2.0})
        ledger.spend({"dp": 0.25}, label="secret", key="hidden", metadata={"name": "Ada"})
    stop()
    failing()
    ledger.spend({"dp": 0.25})
    assert [event for event, _ in seen] == ["spend", "refused", "repeated"]
    assert seen[0][1]["charged"] == {"dp": 0.25}
    assert seen[1][1]["remaining"] == 0.75
    records = [r for r in caplog.records if hasattr(r, "event")]
    assert [(r.event, r.levelname) for r in records] == [
        ("spend", "INFO"), ("refused", "WARNING"), ("repeated", "INFO"),
    ]  # fmt: skip
    assert records[0].fields["number"] == records[2].fields["number"] == 1
    assert not any(word in caplog.text for word in ("secret", "hidden", "Ada"))
    assert "a hook failed" in caplog.text


def test_budgets_of_zcdp(make):
    ledger = make({"zcdp": 0.5})
    ledger.spend(PrivacyProfile.gaussian(2.0))  # 1/8
    assert ledger.spend({"zcdp": "0.1"}, count=2).charged == {"zcdp": 0.2}
    charged = ledger.spend({"dp": 0.5}).charged["zcdp"]
    assert charged == pytest.approx(0.12245933120185457, rel=1e-12)  # 0.5 tanh(0.25)
    with pytest.raises(BudgetExceeded, match="zcdp"):
        ledger.spend(PrivacyProfile.gaussian(2.0))
    with pytest.raises(InvalidInput, match="zCDP level"):
        ledger.spend({"approximate-dp": (0.1, 1e-9)})
    ledger.verify()


def test_steps_of_other_libraries(make):
    accounting = pytest.importorskip("dp_accounting")
    ledger = make({"approximate-dp": (5.0, 1e-6)})
    event = accounting.PoissonSampledDpEvent(0.01, accounting.GaussianDpEvent(1.0))
    ledger.spend(accounting.SelfComposedDpEvent(event, 100))
    twin = Ledger({"approximate-dp": (5.0, 1e-6)})
    twin.spend(PrivacyProfile.gaussian(1.0, 0.01), count=100)
    assert ledger.spent["approximate-dp"] == pytest.approx(twin.spent["approximate-dp"], rel=1e-4)
    with pytest.raises(BudgetExceeded):
        ledger.spend(accounting.NonPrivateDpEvent())
    with pytest.raises(InvalidInput, match="Unsupported event"):
        ledger.spend(accounting.UnsupportedDpEvent())
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    pure = make({"dp": 1.0}) if ledger._store.address is None else Ledger({"dp": 1.0})
    assert pure.spend(dp.m.make_laplace(*space, scale=10.0)).charged["dp"] == pytest.approx(0.1)


@pytest.mark.parametrize(
    "wrong", ["x", b"x", 5, None, object(), 0.1, np.float64(0.1), (1.0, 1e-6), np.ones(2)]
)
def test_what_is_no_mechanism_names_the_adapters(wrong):
    with pytest.raises(InvalidInput, match=r"mechanism must be a channel.*fastpriv\.adapters") as e:
        Ledger({"dp": 1.0}).spend(wrong)
    assert "loadtxt" not in str(e.value)


@pytest.mark.parametrize("mechanism", [NOISE, {"dp": 0.25}])
def test_a_count_by_position_is_not_taken_as_a_prior(make, mechanism):
    """A count in the place of the prior would be charged once."""
    ledger = make({"dp": 1.0, "approximate-dp": (3.0, 1e-6)})
    with pytest.raises(InvalidInput, match="Did you mean count=1954"):
        ledger.spend(mechanism, 1954)
    assert len(ledger) == 0


# Filters and odometers.


def test_a_filter_is_opened_again(place, tmp_path):
    with PrivacyFilter.open(place, 2.0, 1e-6, relation="add-or-remove") as budget:
        first = budget.spend(PrivacyProfile.gaussian(20.0), 3, "a", key="k", actor="me")
        assert budget.spend(PrivacyProfile.gaussian(20.0), 3, "a", key="k", actor="me") == first
        with pytest.raises(InvalidInput, match="belongs to spend 1"):
            budget.spend(0.1, key="k")
        assert budget.spend(0.1, dry_run=True).digest is None
        left = budget.remaining
        read = pickle.loads(pickle.dumps(budget))
        assert read.remaining == left
        read.close()
    with PrivacyFilter.open(place) as budget, PrivacyFilter.open(place, 2.0, 1e-6) as other:
        assert budget.remaining == left == PrivacyFilter.from_dict(budget.to_dict()).remaining
        assert (budget.epsilon, budget.rule, budget.relation) == (2.0, "zcdp", "add-or-remove")
        assert [(r.label, r.count, r.actor) for r in other.history()] == [("a", 3, "me")]
        with pytest.raises(BudgetExceeded, match="zcdp"):
            other.spend(1.5)
        other.spend(0.1)
        assert budget.remaining["rho"] < left["rho"]
        budget.ledger.verify()
    for wrong in (
        lambda: PrivacyFilter.open(place, 3.0, 1e-6),
        lambda: PrivacyFilter.open(place, 2.0, 1e-6, rule="basic"),
        lambda: PrivacyOdometer.open(place),
    ):
        with pytest.raises(InvalidInput, match="must be of"):
            wrong()
    Ledger.open(tmp_path / "ledger", {"dp": 1.0}).close()
    with pytest.raises(InvalidInput, match="no filter"):
        PrivacyFilter.open(tmp_path / "ledger")


def test_the_budget_of_a_filter_is_its_guarantee(place):
    """An amendment would leave an (epsilon, delta) on the filter that its steps exceed."""
    with PrivacyFilter.open(place, 1.0, 1e-6) as budget:
        with Ledger.open(place) as other:
            for ledger in (budget.ledger, PrivacyOdometer().ledger, other):
                with pytest.raises(InvalidInput, match="whose guarantee is its budget"):
                    ledger.amend({"zcdp": 100, "delta": 0}, actor="a", reason="b")
        assert not budget.admits(5.0)


def test_an_odometer_is_opened_again(place):
    twin = PrivacyOdometer()
    twin.spend(0.3, 2)
    with PrivacyOdometer.open(place) as odometer:
        odometer.spend(0.3, 2, key="k")
        odometer.spend(0.3, 2, key="k")
    with PrivacyOdometer.open(place) as odometer:
        assert odometer.epsilon(1e-6) == twin.epsilon(1e-6)
        assert len(odometer.history()) == 1
        odometer.ledger.verify()
        assert PrivacyOdometer.from_dict(odometer.to_dict()).rho == odometer.rho == twin.rho
    with pytest.raises(InvalidInput, match="must be of"):
        PrivacyFilter.open(place, 1.0)


@pytest.mark.parametrize("rule", ["basic", "zcdp"])
def test_threads_share_a_filter(place, rule):
    """Two objects of one filter, four threads each: exactly what fits is admitted."""
    with PrivacyFilter.open(place, 1.0, 1e-6, rule=rule) as one, PrivacyFilter.open(place) as other:
        twin, room = PrivacyFilter(1.0, 1e-6, rule=rule), 0
        while twin.admits(0.05):
            room += len([twin.spend(0.05)])
        admitted, failed = [], []

        def work(mine, name):
            try:
                for k in range(room):
                    admitted.append(mine.spend(0.05, key=f"{name} {k}").number)
            except BudgetExceeded:
                pass
            except Exception as error:
                failed.append(error)

        threads = [threading.Thread(target=work, args=((one, other)[j % 2], j)) for j in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []
        assert sorted(admitted) == list(range(1, room + 1))
        assert one.remaining == other.remaining == twin.remaining
        one.ledger.verify()


# Interrupts.


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_spend_that_is_interrupted_at_any_line(place):
    """It is spent once or not at all; the ledger goes on, and nothing of it is left open."""
    stores = tuple(f"{name}.py" for name in ("sqlite", "postgres", "store"))
    resets = ("self._writing", "self._within", "connection.patience")
    with Ledger.open(place, {"dp": 1000.0}) as ledger:
        ledger.spend({"dp": 0.25})
        for nth in itertools.count(1):
            lines = 0

            def each_line(frame, event, arg, nth=nth):
                nonlocal lines
                if not frame.f_code.co_filename.endswith(stores):
                    return None
                text = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
                # Python interrupts after calls, and so not before these.
                if event == "line" and text.split("=")[0].strip() not in resets:
                    lines += 1
                    if lines == nth:
                        raise KeyboardInterrupt
                return each_line

            tracing, written = sys.gettrace(), len(ledger)
            sys.settrace(each_line)
            try:
                ledger.spend({"dp": 0.25}, key=str(nth))
                break
            except KeyboardInterrupt:
                pass
            finally:
                sys.settrace(tracing)
            assert len(ledger) in (written, written + 1)
            with Ledger.open(place, timeout=2.0) as other:
                assert other.spend({"dp": 0.25}, key=str(nth)).number == written + 1
                assert (ledger.spent, len(ledger)) == (other.spent, written + 1)
            assert ledger.spend({"dp": 0.25}, key=str(nth)).number == written + 1
        assert nth > 50
        ledger.verify()


# Clients and servers that do not answer.


def test_a_client_that_is_frozen_while_it_writes_loses_the_lock(server, monkeypatch):
    """The server ends its transaction; nothing of it was written, and it writes again."""
    monkeypatch.setattr(postgres, "_FROZEN", 0.3)
    place = schema(server, "frozen_client")
    with Ledger.open(place, {"dp": 1.0}) as frozen, Ledger.open(place) as other:
        add, waiting, receipts = frozen._store.add, threading.Event(), []

        def late(*given):
            if not waiting.is_set():
                waiting.set()
                time.sleep(1.0)
            return add(*given)

        monkeypatch.setattr(frozen._store, "add", late)
        thread = threading.Thread(target=lambda: receipts.append(frozen.spend({"dp": 0.25})))
        thread.start()
        assert waiting.wait(20)
        assert other.spend({"dp": 0.25}).number == 1
        thread.join()
        assert [receipt.number for receipt in receipts] == [2]
        assert (len(frozen), other.spent) == (2, {"dp": 0.5})
        frozen.verify()


@pytest.fixture
def own_server():
    """A server that a test may freeze."""
    pytest.importorskip("psycopg")
    try:
        server = Server()
    except NoServer as error:
        pytest.skip(str(error))
    yield server
    server.close()


@pytest.mark.slow
def test_a_server_that_is_frozen_is_an_error_after_the_timeout(own_server):
    """It holds the connection but answers nothing, so its own timeouts do not help."""
    place = schema(own_server.address, "frozen")
    with Ledger.open(place, {"dp": 1.0}, timeout=2.0) as ledger:
        ledger.spend({"dp": 0.25}, key="before")
        processes = own_server.processes()
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        try:
            for ask in (lambda: ledger.spend({"dp": 0.25}, key="job"), lambda: ledger.spent):
                begun = time.monotonic()
                with pytest.raises(LedgerError, match=r"not answer|reached"):
                    ask()
                assert time.monotonic() - begun < 20.0
            with pytest.raises(LedgerError, match="reached"):
                Ledger.open(place, timeout=2.0)
        finally:
            for process in processes:
                os.kill(process, signal.SIGCONT)
        assert ledger.spend({"dp": 0.25}, key="job").number == 2
        assert (len(ledger), ledger.spent) == (2, {"dp": 0.5})
        ledger.verify()
