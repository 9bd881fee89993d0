"""Ledgers: files, damage and interruptions, exports."""

import json
import os
import random
import sqlite3
import subprocess
import sys
from decimal import Decimal

import pytest

from fastpriv.accounting import Ledger, PrivacyProfile
from fastpriv.accounting.ledger import sqlite
from fastpriv.errors import BudgetExceeded, InvalidInput, LedgerError
from fastpriv.mechanisms import GeometricCount


def changed(path, statement):
    """Let somebody else change a file."""
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()


def test_reopening_keeps_everything(path):
    with Ledger.open(path, {"dp": 1.0, "strong-dp": 5}) as ledger:
        receipt = ledger.spend({"dp": 0.1, "strong-dp": 0.3}, count=3, label="été")
        shown = ledger.report()
    with pytest.raises(LedgerError, match="closed"):
        ledger.spend({"dp": 0.1, "strong-dp": 0.1})
    with pytest.raises(LedgerError, match="closed"):
        ledger.remaining  # noqa: B018
    ledger.close()
    with Ledger.open(path) as again:
        assert again.history() == [receipt]
        assert again.report() == shown
        assert again.spent == {"dp": 0.3, "strong-dp": 0.9}


def test_the_budget_of_a_file_stays(path):
    Ledger.open(path, {"dp": 1.0}).close()
    Ledger.open(path, {"dp": Decimal("1.00")}).close()
    for other in ({"dp": 2.0}, {"dp": 1.0, "pml": 1.0}, {"strong-dp": 1.0}):
        with pytest.raises(InvalidInput, match=r"has the budget \{'dp': '1'\}, not"):
            Ledger.open(path, other)


def test_no_file_is_made_without_a_budget(path):
    with pytest.raises(LedgerError, match="there is no ledger"):
        Ledger.open(path)
    assert not path.exists()


def test_files_that_are_no_ledger(tmp_path):
    empty, words, other = (tmp_path / name for name in ("empty", "words", "other"))
    empty.touch()
    with pytest.raises(LedgerError, match="is empty; give a budget"):
        Ledger.open(empty)
    Ledger.open(
        empty, {"dp": 1.0}
    ).close()  # made by somebody who was killed before the first write
    words.write_text("not a database at all, " * 100)
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE notes (line TEXT)")
    connection.commit()
    connection.close()
    before = other.read_bytes()
    for budget in (None, {"dp": 1.0}):
        with pytest.raises(LedgerError, match="the file is something else, or damaged"):
            Ledger.open(words, budget)
        with pytest.raises(LedgerError, match="is no ledger"):
            Ledger.open(other, budget)
        with pytest.raises(LedgerError, match="folder must exist"):
            Ledger.open(tmp_path / "nowhere" / "x", {"dp": 1.0})
        with pytest.raises(LedgerError):
            Ledger.open(tmp_path, budget)
    assert other.read_bytes() == before


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="a folder that even root cannot write")
def test_a_folder_that_cannot_be_written():
    with pytest.raises(LedgerError, match="folder must exist and be writeable"):
        Ledger.open("/proc/study.ledger", {"dp": 1.0})


def test_a_ledger_of_another_version(path):
    Ledger.open(path, {"dp": 1.0}).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 7")
    connection.close()
    with pytest.raises(LedgerError, match="of version 7, not 1 to 3"):
        Ledger.open(path)


def test_damage_is_found(path):
    with Ledger.open(path, {"dp": 1000.0}) as ledger:
        for _ in range(40):
            ledger.spend({"dp": 0.1}, label="x" * 500)
    whole = bytearray(path.read_bytes())
    whole[1000:] = bytes(len(whole) - 1000)
    path.write_bytes(whole)
    with pytest.raises(LedgerError):
        Ledger.open(path).spend({"dp": 0.1})


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE ledger SET genesis = 'words'",
        "UPDATE ledger SET genesis = '[]'",
        "UPDATE ledger SET genesis = replace(genesis, '9', '8')",
        f"UPDATE ledger SET genesis = '{'[' * 100_000}'",
        "UPDATE ledger SET genesis = CAST(x'ff' AS TEXT)",
        "UPDATE ledger SET head = replace(head, 'a', 'b')",
        "UPDATE ledger SET entries = 1",
        "UPDATE ledger SET entries = 'words'",
        "INSERT INTO ledger SELECT * FROM ledger",
        "DELETE FROM ledger",
        "DELETE FROM entry WHERE number = 1",
        "DELETE FROM entry WHERE number = 2",
        "DELETE FROM entry",
        "UPDATE entry SET number = 5 - number",
        "UPDATE entry SET body = replace(body, '0.5', '0.4') WHERE number = 1",
        "UPDATE entry SET body = 'words' WHERE number = 2",
        "UPDATE entry SET digest = replace(digest, 'a', 'b') WHERE number = 2",
        "UPDATE entry SET spend_key = 'other' WHERE number = 1",
        "UPDATE entry SET spend_key = NULL WHERE number = 1",
        "UPDATE entry SET part = 3 - part",
        "DELETE FROM part WHERE id = 1",
        "DELETE FROM part",
        "UPDATE part SET count = '1' WHERE id = 1",
        "UPDATE part SET count = 'words' WHERE id = 1",
        "UPDATE part SET count = '-3' WHERE id = 1",
        "DROP TABLE part",
        "DROP TABLE entry",
        "UPDATE part SET text = replace(text, '0.25', '0.05')",
        "UPDATE part SET digest = replace(digest, 'a', 'b')",
    ],
)
def test_damage_within_the_tables_is_found(path, damage):
    """At opening: no spend is acknowledged before."""
    with Ledger.open(path, {"dp": 9.0, "approximate-dp": (9.0, 1e-6)}) as ledger:
        ledger.spend({"dp": 0.25}, count=2, key="first")
        ledger.spend([[0.75, 0.25], [0.25, 0.75]])
    changed(path, damage)
    with pytest.raises(LedgerError):
        Ledger.open(path)


def test_every_flipped_bit_is_found_at_opening(path):
    """Also in bytes that SQLite does not use."""
    with Ledger.open(path, {"dp": 1000.0}) as ledger:
        for k in range(30):
            ledger.spend({"dp": 0.1}, label=f"spend {k}", key=str(k))
    whole, rng = path.read_bytes(), random.Random(1)
    bits = [rng.randrange(8 * len(whole)) for _ in range(100)] + list(range(8 * 18, 8 * 100, 3))
    for bit in bits:
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        with pytest.raises(LedgerError):
            Ledger.open(path)
    path.write_bytes(whole)
    with Ledger.open(path) as ledger:
        assert len(ledger) == 30


ENDED = """
import sys
from fastpriv.accounting import Ledger
ledger = Ledger.open(sys.argv[1], {"dp": 1.0})
ledger.spend({"dp": 0.25})
"""


def test_a_file_is_sealed_when_its_process_ends(path):
    """Also without close: every bit is checked, as those that SQLite does not use."""
    subprocess.run([sys.executable, "-c", ENDED, path], check=True)
    whole, rng = path.read_bytes(), random.Random(1)
    for bit in (rng.randrange(8 * len(whole)) for _ in range(50)):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        with pytest.raises(LedgerError):
            Ledger.open(path)
        assert path.read_bytes() == data  # nobody seals what was refused
    path.write_bytes(whole)
    assert len(Ledger.open(path)) == 1


KILLED = """
import os, signal, sys
from fastpriv.accounting import Ledger
ledger = Ledger.open(sys.argv[1], {"dp": 9.0})
for k in range(5):
    ledger.spend({"dp": 0.25}, key=str(k))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_a_file_is_sealed_after_a_spend(path):
    """So that every bit is checked although its process was killed."""
    subprocess.run([sys.executable, "-c", KILLED, path], check=False)
    whole, rng = path.read_bytes(), random.Random(2)
    for bit in (rng.randrange(8 * len(whole)) for _ in range(100)):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        with pytest.raises(LedgerError):
            Ledger.open(path)
    path.write_bytes(whole)
    assert len(Ledger.open(path)) == 5


def test_a_large_file_is_sealed_after_some_spends(path, monkeypatch):
    monkeypatch.setattr(sqlite, "_SEALED_AT_ONCE", 1 << 14)
    with Ledger.open(path, {"dp": 9.0}) as ledger:
        seals = []
        for _ in range(8):
            ledger.spend({"dp": 0.25}, label="x" * 1000)
            seals.append(path.read_bytes()[72:92])
    assert 2 <= len(set(seals)) <= 5


def test_a_file_without_a_seal_is_checked_by_its_chain(path, tmp_path):
    ledger = Ledger.open(path, {"dp": 1000.0})
    for k in range(30):
        ledger.spend({"dp": 0.1}, label=f"spend {k}")
    copy = tmp_path / "copy"
    whole = path.read_bytes()
    whole = whole[:72] + bytes(20) + whole[92:]  # as if killed before it was sealed
    copy.write_bytes(whole)
    with Ledger.open(copy) as found:
        assert found.verify() == ledger.verify()
    data = whole.replace(b"spend 17", b"spend 71")
    copy.unlink()
    copy.write_bytes(data)
    with pytest.raises(LedgerError, match="entry 18 is not the one that was written"):
        Ledger.open(copy)
    ledger.close()


EARLIER = """
CREATE TABLE ledger (budget TEXT NOT NULL, entries INTEGER NOT NULL, spent TEXT NOT NULL,
  prior TEXT);
CREATE TABLE part (id INTEGER PRIMARY KEY, text TEXT UNIQUE NOT NULL, count TEXT NOT NULL);
CREATE TABLE entry (number INTEGER PRIMARY KEY, time TEXT NOT NULL, label TEXT,
  count INTEGER NOT NULL, charged TEXT NOT NULL, part INTEGER REFERENCES part);
PRAGMA application_id = 1718645366;
INSERT INTO ledger VALUES ('{"dp": "9"}', 2, '{"dp": "0.75"}', NULL);
INSERT INTO entry VALUES (1, '2025-01-02T03:04:05+00:00', 'a', 2, '{"dp": "0.5"}', NULL);
INSERT INTO entry VALUES (2, '2025-01-02T03:04:06+00:00', NULL, 1, '{"dp": "0.25"}', NULL);
CREATE TABLE pending (number INTEGER PRIMARY KEY, claim TEXT NOT NULL);
INSERT INTO pending VALUES (2, 'table');
"""


def earlier(path, version, more=""):
    connection = sqlite3.connect(path)
    connection.executescript(f"{EARLIER} PRAGMA user_version = {version}; {more}")
    connection.close()


@pytest.mark.parametrize("version", [1, 2])
def test_files_of_earlier_versions_are_migrated(path, version):
    relation = "CREATE TABLE relation (id INTEGER, name TEXT);"
    relation += "INSERT INTO relation VALUES (0, 'replace-one');"
    earlier(path, version, relation)
    with Ledger.open(path, {"dp": 9.0}) as ledger:
        assert ledger.spent == {"dp": 0.75}
        assert [(r.number, r.label, r.count) for r in ledger.history()] == [
            (1, "a", 2),
            (2, None, 1),
        ]
        assert ledger.relation == ("replace-one" if version == 2 else "replace-special")
        assert ledger.unpublished(None) == [(ledger.history()[1], "table")]
        head = ledger.verify()
    with Ledger.open(path) as ledger:
        assert ledger.verify() == head
        ledger.spend({"dp": 0.25})
    with Ledger.open(path) as ledger:
        assert ledger.spent == {"dp": 1.0}


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE ledger SET entries = 3",
        'UPDATE ledger SET spent = \'{"dp": "0.5"}\'',
        "DELETE FROM entry WHERE number = 1",
        'UPDATE entry SET charged = \'{"dp": "0.4"}\' WHERE number = 1',
        "CREATE TABLE seal (id INTEGER, digest TEXT); INSERT INTO seal VALUES (0, 'x')",
        "CREATE TABLE relation (id INTEGER, name TEXT)",
        "UPDATE entry SET time = 'once'",
    ],
)
def test_damage_in_files_of_earlier_versions_is_found(path, damage):
    earlier(path, 2, damage)
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="damaged"):
        Ledger.open(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "lines",
    [[[0.0, 5.0], [0.2, 0.4]], [[0.0, 0.0], [0.9, 0.4]], [[0.0, 0.0], [0.2, -0.1]], [[0.0]]],
)
def test_curves_that_no_laws_have(lines):
    """Composing them may not end."""
    with Ledger({"approximate-dp": (9.0, 1e-6)}) as ledger:
        ledger.spend([[0.75, 0.25], [0.375, 0.625]])
        export = json.loads(ledger.to_json())
    ((_, count),) = json.loads(export["entries"][0]["part"])
    export["entries"][0]["part"] = json.dumps([[["laws", lines, lines], count]])
    with pytest.raises(InvalidInput):
        Ledger.from_json(json.dumps(export))


@pytest.mark.slow
def test_counts_beyond_32_bits_are_those_of_the_parts(path):
    with Ledger.open(path, {"approximate-dp": (1e9, 0.5)}) as ledger:
        for count in (2**40 + 3, 2**33 - 1):
            ledger.spend({"dp": 1e-15}, count=count)
    with Ledger.open(path) as ledger:
        assert [receipt.count for receipt in ledger.history()] == [2**40 + 3, 2**33 - 1]


@pytest.mark.parametrize("wrong", [None, 5, "", "a\0b", b"study"])
def test_paths_that_are_none(wrong):
    with pytest.raises(InvalidInput, match="path must be the path of a file"):
        Ledger.open(wrong, {"dp": 1.0})


def test_a_file_that_was_replaced_is_not_spent_from(path):
    with Ledger.open(path, {"dp": 1.0}) as old:
        path.rename(path.with_suffix(".moved"))
        with pytest.raises(LedgerError, match="moved, deleted or replaced"):
            old.spend({"dp": 0.1})
        with Ledger.open(path, {"dp": 1.0}) as new:
            new.spend({"dp": 0.1})
            with pytest.raises(LedgerError, match="moved, deleted or replaced"):
                old.spend({"dp": 0.1})
        assert old.spent == {"dp": 0.0}


def test_a_lock_that_is_held(path):
    with Ledger.open(path, {"dp": 1.0}, timeout=0.05) as ledger:
        ledger.spend({"dp": 0.1})
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="nothing was spent"):
            ledger.spend({"dp": 0.1})
        assert ledger.spent == {"dp": 0.1}  # readers go on
        holder.execute("ROLLBACK")
        holder.close()
        ledger.spend({"dp": 0.1})
        assert ledger.spent == {"dp": 0.2}


def test_an_interruption_after_the_commit_is_counted(monkeypatch):
    """Interrupted before it could be acknowledged: the totals in memory must not be stale."""
    ledger = Ledger({"dp": 1.0})
    ledger.spend({"dp": 0.1})
    store, inner = ledger._store, ledger._store._connection

    class Interrupted:
        def __getattr__(self, name):
            return getattr(inner, name)

        def execute(self, statement, *arguments):
            found = inner.execute(statement, *arguments)
            if statement == "COMMIT":
                raise KeyboardInterrupt
            return found

    store._connection = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        ledger.spend({"dp": 0.5})
    store._connection = inner
    assert ledger.spent == {"dp": 0.6}
    with pytest.raises(BudgetExceeded):
        ledger.spend({"dp": 0.5})


def test_a_spend_within_a_spend_is_refused(make):
    """As by a signal handler: the outer one is not disturbed."""
    ledger = make({"dp": 1.0})

    def inside(state):
        with pytest.raises(LedgerError, match="signal handler"):
            ledger.spend({"dp": 0.25})
        return [], None, None

    ledger._store.write(inside)
    assert ledger.spent == {"dp": 0.0}


def test_export_and_import(make, tmp_path):
    ledger = make({"dp": 3.0, "identifiability": 5.0})
    ledger.spend({"dp": 0.1, "identifiability": 1e-300}, label="a")
    ledger.spend({"dp": 0.2}, count=3, label="b")
    text = ledger.to_json()
    again = Ledger.from_json(text)
    with Ledger.from_json(text, tmp_path / "copy") as copied:
        for found in (again, copied):
            assert found.history() == ledger.history()
            assert found.to_json() == text
            assert found.remaining == ledger.remaining
    with pytest.raises(InvalidInput, match="path must be a new file"):
        Ledger.from_json(text, tmp_path / "copy")
    assert json.loads(text)["spent"]["dp"] == "0.7"


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["spent"].update(dp="0.1"),
        lambda d: d["spent"].update(dp="NaN"),
        lambda d: d["spent"].pop("dp"),
        lambda d: d["budget"].update(dp="0.05"),
        lambda d: d["budget"].pop("dp"),
        lambda d: d["entries"].pop(),
        lambda d: d["entries"].pop(0),
        lambda d: d["entries"].reverse(),
        lambda d: d["entries"][0]["charged"].update(dp="-0.1"),
        lambda d: d["entries"][0]["charged"].update(dp="0.05"),
        lambda d: d["entries"][0]["charged"].update(pml="0.05"),
        lambda d: d["entries"][0].update(time="yesterday"),
        lambda d: d["entries"][0].update(label=5),
        lambda d: d["entries"][0].update(count=0),
        lambda d: d["entries"][0].update(count=2**63),
        lambda d: d.update(prior=5),
        lambda d: d.update(version=3),
        lambda d: d.update(head="0" * 64),
        lambda d: d["entries"][0].update(actor="me"),
        lambda d: d["entries"][0].update(key="k"),
        lambda d: d["entries"][1].pop("digest"),
        lambda d: d["beginning"].update(relation="replace-one"),
        lambda d: d.update(format="bank ledger"),
        lambda d: d.pop("entries"),
        lambda d: d.update(entries=7),
        lambda d: d.update(spent=None),
    ],
)
def test_exports_that_were_changed_are_refused(change, path):
    ledger = Ledger({"dp": 1.0})
    ledger.spend({"dp": 0.1})
    ledger.spend({"dp": 0.2})
    data = json.loads(ledger.to_json())
    change(data)
    for where in (None, path):
        with pytest.raises(InvalidInput):
            Ledger.from_json(json.dumps(data), where)


@pytest.mark.parametrize("text", ["", "[]", "7", "{}", "null", '"x"', "{", "[" * 100_000])
def test_texts_that_are_no_export(text):
    with pytest.raises(InvalidInput):
        Ledger.from_json(text)


@pytest.mark.slow(only=["budget0"])
@pytest.mark.parametrize("budget", [{"approximate-dp": (50.0, 1e-6)}, {"dp": 50.0}])
def test_releases_for_different_relations_are_refused(path, budget):
    """A channel's neighbours differ in one row; those of others come and go."""
    added = PrivacyProfile.laplace(2.0, relation="add-or-remove")
    with Ledger.open(path, budget) as ledger:
        ledger.spend(added)
        ledger.spend({"dp": 0.25})
        ledger.spend(PrivacyProfile.laplace(2.0))  # the same relation
        text = ledger.to_json()
    with Ledger.open(path) as opened:
        for ledger in (opened, Ledger.from_json(text)):
            before = ledger.spent
            for other in (
                [[0.75, 0.25], [0.25, 0.75]],
                PrivacyProfile.laplace(2.0, relation="replace-one"),
                GeometricCount(9, 0.5),
            ):
                with pytest.raises(InvalidInput, match="'add-or-remove' and by 'replace-one'"):
                    ledger.spend(other)
            assert ledger.spent == before
            ledger.spend(added)


def test_exports_that_tell_no_relation_are_read():
    ledger = Ledger({"dp": 2.0})
    ledger.spend([[0.75, 0.25], [0.25, 0.75]])
    given = json.loads(ledger.to_json())
    assert given.pop("relation") == "replace-one"
    names = ("number", "time", "label", "count", "charged", "part")
    given["entries"] = [{name: each.get(name) for name in names} for each in given["entries"]]
    assert Ledger.from_json(json.dumps(given | {"version": 1})).spent == ledger.spent


def test_a_repeated_key_writes_nothing(path):
    with Ledger.open(path, {"dp": 1.0}) as ledger:
        receipt = ledger.spend({"dp": 0.25}, key="job")
        before = path.read_bytes()
        assert ledger.spend({"dp": 0.25}, key="job") == receipt
        assert path.read_bytes() == before
