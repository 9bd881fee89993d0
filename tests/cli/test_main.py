"""What all commands share: help that works, exit codes, one-line errors, pipes and signals."""

import argparse
import hashlib
import io
import json
import os
import shlex
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

import fastpriv as fp
from command_line import answer, done, prepare, refused, stopped
from fastpriv.cli import files as _files
from fastpriv.cli.main import main, make_parser


@pytest.fixture
def work(tmp_path, monkeypatch):
    return prepare(tmp_path, monkeypatch)


def parsers(parser):
    """Every parser by its name, subcommands included."""
    yield parser.prog, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from parsers(each)


PARSERS = dict(parsers(make_parser()))
LEAVES = {
    name.removeprefix("fastpriv "): each
    for name, each in PARSERS.items()
    if each._subparsers is None
}


def test_the_commands_are_these():
    names = ["audit", "compare", "capacity", "solve", "tradeoff", "release", "estimate"]
    names += ["deployment", "warm-up", "completion"]
    ledger = [f"ledger {action}" for action in ("init", "spend", "show", "remaining")]
    assert sorted(LEAVES) == sorted([*names, *ledger])


@pytest.mark.slow(
    but=[
        "fastpriv release",
        "fastpriv estimate",
        "fastpriv ledger",
        "fastpriv ledger init",
        "fastpriv ledger spend",
        "fastpriv ledger show",
        "fastpriv ledger remaining",
        "fastpriv completion",
    ]
)
@pytest.mark.parametrize("name", PARSERS)
def test_examples_of_every_help_page_run(name, work, capsys):
    """In the order they are printed, in a folder with files of those names."""
    lines = [line.strip() for line in PARSERS[name].format_help().splitlines()]
    shown = [line for line in lines[lines.index("examples:") :] if line.startswith("fastpriv ")]
    assert shown
    for line in shown:
        try:
            code = main(shlex.split(line)[1:])
        except SystemExit as left:  # --list
            code = left.code or 0
        assert code == 0, (line, capsys.readouterr().err)
        assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("name", PARSERS)
def test_help_fits_a_terminal_and_names_the_command(name, capsys):
    with pytest.raises(SystemExit) as left:
        main([*name.split()[1:], "--help"])
    assert left.value.code == 0
    assert name in capsys.readouterr().out


@pytest.mark.parametrize("name", sorted(set(LEAVES) - {"completion"}))
def test_json_is_everywhere(name):
    assert "--json" in LEAVES[name]._option_string_actions


def test_alone_it_starts_newcomers(capsys):
    assert main([]) == 0
    out = capsys.readouterr().out
    assert "New here?" in out
    assert "exit codes:" in out


def test_version(capsys):
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"fastpriv {fp.__version__}\n"


# Words that are not understood.


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["audti"], "did you mean audit?"),
        (["audit", "--epsilom", "2"], "there is no option --epsilom; did you mean --epsilon?"),
        (["audit", "--eps", "2"], "there is no option --eps"),
        (["audit", "--xyz"], "there is no option --xyz. See fastpriv audit --help"),
        (["audit", "--epsilon", "much"], "must be a number, with a point for decimals; got 'much'"),
        (["audit", "--epsilon"], "expected one argument"),
        (["audit", "bit.csv", "and", "more"], "unrecognized arguments: and more"),
        (["solve", "identifability", "--epsilon", "1"], "did you mean identifiability?"),
        (["solve", "dp", "--pior", "prior.csv"], "did you mean --prior?"),
        (["ledger"], "required: ACTION"),
        (["ledger", "inti", "x"], "did you mean init?"),
    ],
)
def test_misspelt_words_get_a_hint(words, says, work, capsys):
    refused(words, 2, says, capsys)


@pytest.mark.parametrize(
    ("problem", "code", "says"),
    [
        (fp.InvalidInput("wrong\n  input"), 2, "wrong input"),
        (fp.Infeasible("no"), 3, "no"),
        (fp.TooLarge("big"), 4, "big"),
        (MemoryError(), 4, "out of memory"),
        (fp.BudgetExceeded("dp", 1.0, 0.5, 2.0), 5, "nothing was spent"),
        (fp.SolverFailure("stuck"), 6, "stuck"),
        (fp.LedgerError("locked"), 2, "locked"),
        (PermissionError(13, "Permission denied", "secret"), 2, "secret: Permission denied"),
        (ImportError("install it with: pip install 'fastpriv[plot]'"), 2, "fastpriv[plot]"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (ValueError("oops"), 1, "ValueError: oops; this is a defect of fastpriv"),
        (AssertionError(), 1, "AssertionError"),
    ],
)
def test_exit_codes(problem, code, says, work, capsys, monkeypatch):
    def fail(channel):
        raise problem

    monkeypatch.setattr(fp, "channel_capacity", fail)
    refused(["capacity", "hamming:epsilon=1"], code, says, capsys)


def test_a_defect_shows_where_when_asked(capsys, monkeypatch):
    def fail(channel):
        raise ValueError("oops")

    monkeypatch.setattr(fp, "channel_capacity", fail)
    monkeypatch.setenv("FASTPRIV_DEBUG", "1")
    assert main(["capacity", "hamming:epsilon=1"]) == 1
    assert "Traceback" in capsys.readouterr().err


# The installed command, pipes and signals.


def fastpriv(*words, **options):
    command = [sys.executable, "-W", "error", "-m", "fastpriv", *words]
    return subprocess.run(command, capture_output=True, text=True, **options)


@pytest.mark.slow
def test_installed_command():
    ran = fastpriv("capacity", "hamming:epsilon=1")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("channel capacity: 0.110944")


def test_errors_go_to_stderr_and_into_the_code():
    ran = fastpriv("capacity", "haming", "--json")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert json.loads(ran.stderr)["kind"] == "InvalidInput"


def test_help_and_errors_load_no_kernels():
    code = """
import sys
from fastpriv.cli.main import main
def loaded(*words):
    main(words)
    return [name for name in ("numpy", "numba", "scipy") if name in sys.modules]
print(loaded(), loaded("audit", "--epsilom", "1"), loaded("capacity", "haming"))
for command in (["audit"], ["compare", "x.csv"], ["capacity"], ["tradeoff", "--prior"]):
    assert loaded(*command, "none.csv") == ["numpy"], command
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.stdout.endswith("\n[] [] []\n")
    assert ran.returncode == 0, ran.stderr


def test_letters_that_the_terminal_lacks_are_escaped(work, monkeypatch, capsys):
    done(["ledger", "init", "study.ledger", "--budget", "dp=1"], capsys)
    done(["ledger", "spend", "study.ledger", "--level", "dp=0.5", "--label", "Größe"], capsys)
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", terminal)
    assert main(["ledger", "show", "study.ledger"]) == 0
    assert rb"Gr\xf6\xdfe" in terminal.buffer.getvalue()


def test_what_others_wrote_does_not_steer_the_terminal(work, capsys):
    done(["ledger", "init", "a.ledger", "--budget", "dp=1"], capsys)
    words = ["ledger", "spend", "a.ledger", "--level", "dp=0.1", "--label"]
    done([*words, "x\x1b[2J\n2  y"], capsys)
    assert done(["ledger", "show", "a.ledger"], capsys).endswith("  x\\x1b[2J\\n2  y\n")
    refused(["audit", "\x1b[2J.csv"], 2, "\\x1b[2J.csv", capsys, as_json=False)


def test_files_whose_names_are_no_text(work, capsys):
    name = os.fsdecode(b"\xff.csv")
    (work / name).write_text("0.75,0.25\n0.25,0.75\n")
    assert done(["audit", name, "--html", "page.html"], capsys).startswith("Audit of \\udcff.csv\n")
    assert rb"\udcff.csv" in (work / "page.html").read_bytes()


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_pipes_are_read_as_csv(name, work, monkeypatch, capsys):
    """Also where they are asked for twice: the certificate has the hash of the prior."""
    text = (work / "prior.csv").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    _files._piped.cache_clear()
    found = answer(["solve", "dp", "--prior", name, "--epsilon", "2"], capsys)
    assert found["prior"]["sha256"] == hashlib.sha256(text).hexdigest()
    _files._piped.cache_clear()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes")
def test_named_pipes_are_read_as_csv(work, capsys):
    os.mkfifo("pipe")
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit((work / "pipe").write_text, "0.75,0.25\n0.25,0.75\n")
        assert "0.130812036" in done(["capacity", "./pipe"], capsys)
        writing.result()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_the_code_tells_where_nothing_can_be_printed(monkeypatch):
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stderr", full)
        assert main(["audti"]) == 2
        monkeypatch.undo()
        with suppress(OSError):
            full.close()


def test_errors_never_go_to_stdout(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stderr", None)  # as it is where it was closed
    assert main(["audti"]) == 2
    assert capsys.readouterr().out == ""


def test_threads_may_run_it(capsys):
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(main, []).result() == 0


@pytest.mark.skipif(os.name != "posix", reason="pipes")
def test_a_reader_that_leaves_is_no_error():
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "fastpriv"]
    ran = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (ran.returncode, ran.stderr) == (141, "")


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_any_command_can_be_stopped(number):
    slow = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in background jobs otherwise
from fastpriv._core import warm_up
from fastpriv.cli.main import main
def wait(*given):
    print("working", flush=True)
    time.sleep(600)
warm_up.compile_all = wait
sys.exit(main(["warm-up"]))
"""
    code, errors = stopped(slow, [], "working", number)
    assert code == 130
    assert errors == "fastpriv: interrupted; no unfinished file was left\n"
