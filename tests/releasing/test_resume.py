"""A release that is killed at any step: never two published draws for one charge.

Until the table is about to appear, the charge pays for a repetition; afterwards it does not.
"""

import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import fastpriv as fp
from fastpriv.accounting import Ledger

DOMAIN = {"sex": ["F", "M"], "age": ["20", "30", "40"]}
LINES = ["F,20", "M,30", "F,40", "M,20"] * 50


class Killed(BaseException):
    """The process ends here."""


#: What runs one after the other in a release, and whether nothing is published by then.
STEPS = [
    ("fastpriv.accounting.ledger.ledger.Ledger.spend", "after", "resumable"),
    ("fastpriv.releasing.release.Run.write", "before", "resumable"),
    ("fastpriv.releasing.tables.csv.CsvWriter.write", "after", "resumable"),
    ("fastpriv.releasing.release.Run.write", "after", "resumable"),
    ("fastpriv.releasing.report.ReleaseReport.to_json", "after", "resumable"),
    ("fastpriv.releasing.tables.csv.CsvWriter.__exit__", "before", "resumable"),
    ("os.fsync", "before", "resumable"),
    ("fastpriv.accounting.ledger.ledger.Ledger.publish", "before", "resumable"),
    ("fastpriv.accounting.ledger.ledger.Ledger.publish", "after", "closed"),
    ("os.replace", "before", "closed"),
    ("os.replace", "after", "published"),
    ("fastpriv.releasing.tables.csv.CsvWriter.__exit__", "after", "published"),
]
NAMES = [f"{when} {what.rpartition('.')[0].rpartition('.')[2]}.{what.rpartition('.')[2]}"
         for what, when, _ in STEPS]  # fmt: skip


def kill(monkeypatch, what, when, error=Killed):
    """Make the first call of a function end the process, before or after its work."""
    owner, _, name = what.rpartition(".")
    target = os if owner == "os" else _resolved(owner)
    function = getattr(target, name)

    def ending(*given, **options):
        if when == "after":
            function(*given, **options)
        elif name == "__exit__":
            given[0]._stream.close()  # as the system closes the files of a process that ends
        monkeypatch.undo()  # the next process is whole
        raise error

    monkeypatch.setattr(target, name, ending)


def _resolved(dotted):
    module, _, name = dotted.rpartition(".")
    return getattr(__import__(module, fromlist=[name]), name)


@pytest.fixture
def files(tmp_path):
    (tmp_path / "in.csv").write_text("\n".join(["sex,age", *LINES]) + "\n")
    Ledger.open(tmp_path / "ledger", {"dp": 20.0}).close()
    return tmp_path


def run(folder, overwrite=False, **options):
    given = {"epsilon": 3.0, "domain": DOMAIN, "label": "survey"} | options
    out = fp.ReleaseFile(folder / "out.csv", folder / "report.json", overwrite=overwrite)
    return fp.release(folder / "in.csv", out=out, ledger=folder / "ledger", **given)


def spends(folder):
    with Ledger.open(folder / "ledger") as ledger:
        return len(ledger)


@pytest.mark.parametrize(("what", "when", "state"), STEPS, ids=NAMES)
@pytest.mark.parametrize("error", [Killed, KeyboardInterrupt, MemoryError])
def test_a_release_that_ends_at_any_step(what, when, state, error, files, monkeypatch):
    kill(monkeypatch, what, when, error)
    with pytest.raises(error) as caught:
        run(files)
    assert spends(files) == 1
    assert (files / "out.csv").exists() == (state == "published")
    assert not (files / "report.json").exists()
    notes = [*map(str, caught.value.args), *getattr(caught.value, "__notes__", [])]
    assert "'survey'" in " ".join(notes)
    assert ("--resume" in " ".join(notes)) == (state == "resumable")
    assert ("used up" in " ".join(notes)) == (state != "resumable")
    if state != "resumable":
        before = (files / "out.csv").read_text() if state == "published" else None
        with pytest.raises(fp.InvalidInput, match="has none under 'survey'"):
            run(files, resume="survey", overwrite=True)
        after = (files / "out.csv").read_text() if state == "published" else None
        assert before == after
        return
    released = run(files, resume="survey")
    assert spends(files) == 1
    assert released.report.receipt.number == 1
    assert released.report.receipt.label == "survey"
    assert fp.estimate_frequencies(files / "out.csv", released.report).n == len(LINES)
    with pytest.raises(fp.InvalidInput, match="has none under 'survey'"):
        run(files, resume="survey", overwrite=True)
    assert spends(files) == 1


def test_nothing_is_charged_before_the_charge(files, monkeypatch):
    kill(monkeypatch, "fastpriv.accounting.ledger.ledger.Ledger.spend", "before")
    with pytest.raises(Killed) as caught:
        run(files)
    assert not getattr(caught.value, "__notes__", [])
    assert spends(files) == 0
    with pytest.raises(fp.InvalidInput, match="has none under"):
        run(files, resume="survey")


def test_a_resumed_release_may_be_interrupted_again(files, monkeypatch):
    for _ in range(3):
        kill(monkeypatch, "fastpriv.releasing.release.Run.write", "after")
        resume = "survey" if spends(files) else None
        with pytest.raises(Killed):
            run(files, resume=resume)
    run(files, resume="survey")
    assert spends(files) == 1


def test_one_of_two_releases_that_use_one_charge_is_published(files, monkeypatch):
    """The second resumes and publishes while the first is about to."""
    publish = Ledger.publish

    def overtaken(ledger, receipt):
        monkeypatch.undo()
        run(files, resume="survey", overwrite=True)
        publish(ledger, receipt)

    monkeypatch.setattr(Ledger, "publish", overtaken)
    with pytest.raises(fp.LedgerError, match="has paid for another release; nothing was published"):
        run(files, overwrite=True)
    assert spends(files) == 1
    report = fp.ReleaseReport.from_json(files / "report.json")
    assert fp.estimate_frequencies(files / "out.csv", report).n == len(LINES)


OTHERS = {
    "table": {},
    "epsilon": {"epsilon": 2.9},
    "split": {"split": "columns"},
    "domain": {"domain": {**DOMAIN, "age": ["20", "30", "40", "50"]}},
    "order": {"domain": {**DOMAIN, "age": ["40", "30", "20"]}},
    "mechanism": {"mechanism": "hashing"},
}


@pytest.mark.parametrize("other", OTHERS)
def test_only_the_same_release_may_use_a_charge(other, files, monkeypatch):
    kill(monkeypatch, "fastpriv.releasing.release.Run.write", "after")
    with pytest.raises(Killed):
        run(files)
    given = (files / "in.csv").read_text()
    if other == "table":
        (files / "in.csv").write_text(given.replace("F,20", "F,30", 1))
    with pytest.raises(fp.InvalidInput, match="another table, domain or mechanism"):
        run(files, resume="survey", **OTHERS[other])
    assert not (files / "out.csv").exists()
    (files / "in.csv").write_text(given)
    run(files, resume="survey")
    assert spends(files) == 1


def test_the_right_one_of_several_charges_is_used(files, monkeypatch):
    for epsilon in (1.0, 2.0, 3.0):
        kill(monkeypatch, "fastpriv.releasing.release.Run.write", "after")
        with pytest.raises(Killed):
            run(files, epsilon=epsilon, accept="useless")
    for epsilon, number in ((2.0, 2), (3.0, 3), (1.0, 1)):
        again = run(files, epsilon=epsilon, resume="survey", overwrite=True, accept="useless")
        assert again.report.receipt.number == number
    assert spends(files) == 3


def test_the_same_release_without_resume_is_charged_with_a_warning(files, monkeypatch):
    kill(monkeypatch, "fastpriv.releasing.release.Run.write", "after")
    with pytest.raises(Killed):
        run(files)
    run(files, label="other", overwrite=True)  # under another label
    run(files, epsilon=2.0, overwrite=True)  # another release
    assert spends(files) == 3
    warning = r"charged again; spend 1 \(dp 3\) under the label 'survey' .* resume='survey'"
    with pytest.warns(UserWarning, match=warning):
        run(files, overwrite=True)
    assert spends(files) == 4
    run(files, resume="survey", overwrite=True)
    run(files, overwrite=True)  # nothing is unpublished by now
    assert spends(files) == 5


def test_claims_of_others_are_left_alone(files):
    with Ledger.open(files / "ledger") as ledger:
        with pytest.raises(fp.InvalidInput, match="claim must be a string"):
            ledger.spend({"dp": 1.0}, label="survey", claim=7)
        unclaimed = ledger.spend({"dp": 1.0}, label="survey")
        with pytest.raises(fp.LedgerError, match="nothing was published"):
            ledger.publish(unclaimed)
        receipt = ledger.spend({"dp": 1.0}, label="survey", claim="a poster")
    run(files)
    with pytest.raises(fp.InvalidInput, match="has none under 'survey'"):
        run(files, resume="survey", overwrite=True)
    with Ledger.open(files / "ledger") as ledger:
        assert ledger.unpublished("survey") == [(receipt, "a poster")]
        ledger.publish(receipt)
        assert ledger.unpublished("survey") == []


def test_a_resume_needs_a_ledger_and_a_known_label(files):
    with pytest.raises(fp.InvalidInput, match="resume must come with ledger="):
        fp.release([0, 1] * 10, domain=2, epsilon=1.0, resume="survey")
    run(files)
    for label in ("survey", "other"):
        with pytest.raises(fp.InvalidInput, match=f"has none under '{label}'"):
            run(files, resume=label, overwrite=True)


def test_tables_in_memory_are_resumed_in_the_same_ledger(monkeypatch):
    ledger = Ledger({"dp": 3.0})
    table = np.arange(300) % 3
    kill(monkeypatch, "fastpriv.releasing.release.Run.write", "after", KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt, match="charged dp 2 under the label 'release'"):
        fp.release(table, domain=3, epsilon=2.0, ledger=ledger)
    given = {"domain": 3, "epsilon": 2.0, "ledger": ledger, "resume": "release"}
    shuffled = np.random.default_rng(1).permutation(table)
    assert len(fp.release(shuffled, **given).table) == 300
    assert ledger.spent == {"dp": 2.0}
    with pytest.raises(fp.InvalidInput, match="has none"):
        fp.release(table, **given)


@pytest.mark.parametrize("kind", ["parquet", "folder"])
def test_parquet_files_and_folders_are_published_after_the_charge_is_closed(
    kind, files, monkeypatch
):
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(files / "in.csv", dtype=str)
    source, out = files / f"in.{kind}", files / f"out.{kind}"
    if kind == "folder":
        source.mkdir()
        frame.to_parquet(source / "0.parquet", index=False)
    else:
        frame.to_parquet(source, index=False)
    given = {"domain": DOMAIN, "epsilon": 3.0, "out": out, "ledger": files / "ledger"}
    kill(monkeypatch, "fastpriv.accounting.ledger.ledger.Ledger.publish", "before")
    with pytest.raises(Killed):
        fp.release(source, **given)
    assert not out.exists()
    fp.release(source, resume="release", **given)
    assert out.exists()
    assert spends(files) == 1


@pytest.mark.slow
def test_a_lazy_release_is_resumed(files, monkeypatch):
    pandas, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(pandas.read_csv(files / "in.csv", dtype=str), npartitions=3)
    given = {"domain": DOMAIN, "epsilon": 3.0, "ledger": files / "ledger"}
    kill(monkeypatch, "fastpriv.accounting.ledger.ledger.Ledger.publish", "before")
    with pytest.raises(Killed):
        fp.release(frame, **given)
    released = fp.release(frame, resume="release", **given)
    assert fp.estimate_frequencies(released).n == len(LINES)
    assert spends(files) == 1
    with pytest.raises(fp.InvalidInput, match="has none"):
        fp.release(frame, resume="release", **given)


def test_a_claim_is_in_no_export_and_leaves_the_file(files, monkeypatch):
    kill(monkeypatch, "fastpriv.releasing.release.Run.write", "after")
    with pytest.raises(Killed):
        run(files)
    with Ledger.open(files / "ledger") as ledger:
        ((_, claim),) = ledger.unpublished("survey")
        assert claim not in ledger.to_json()
        assert Ledger.from_json(ledger.to_json()).unpublished("survey") == []
    assert claim.encode() in (files / "ledger").read_bytes()
    run(files, resume="survey")
    assert claim.encode() not in (files / "ledger").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(("what", "when", "state"), STEPS, ids=NAMES)
def test_a_process_that_is_killed_at_any_step(what, when, state, files):
    owner, _, name = what.rpartition(".")
    script = f"""
        import os, signal
        import fastpriv as fp
        module, _, kind = {owner!r}.rpartition(".")
        target = getattr(__import__(module, fromlist=[kind]), kind) if module else os
        function = getattr(target, {name!r})

        def ending(*given, **options):
            if {when!r} == "after":
                function(*given, **options)
            os.kill(os.getpid(), signal.SIGKILL)

        setattr(target, {name!r}, ending)
        fp.release("in.csv", domain={DOMAIN!r}, epsilon=3.0, label="survey", ledger="ledger",
                   out=fp.ReleaseFile("out.csv", "report.json"))
    """
    words = [sys.executable, "-c", textwrap.dedent(script)]
    ended = subprocess.run(words, cwd=files, capture_output=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert spends(files) == 1
    assert (files / "out.csv").exists() == (state == "published")
    if state == "resumable":
        run(files, resume="survey")
        assert spends(files) == 1
    with pytest.raises(fp.InvalidInput, match="has none under 'survey'"):
        run(files, resume="survey", overwrite=True)


@pytest.mark.parametrize("target", ["path", "report"])
def test_a_release_is_not_written_over_its_ledger(tmp_path, target):
    path = tmp_path / "study.ledger"
    Ledger.open(path, {"dp": 10.0}).close()
    table = tmp_path / "table.csv"
    table.write_text("a\nx\ny\n")
    files = {"path": tmp_path / "released.csv", target: path}
    out = fp.ReleaseFile(**files, overwrite=True)
    options = {"domain": {"a": ["x", "y"]}, "epsilon": 1.0, "out": out}
    with Ledger.open(path) as ledger:
        for books in (ledger, path):
            with pytest.raises(fp.InvalidInput, match="would be written over"):
                fp.release(table, ledger=books, **options)
    with Ledger.open(path) as ledger:
        assert ledger.spent == {"dp": 0.0}
