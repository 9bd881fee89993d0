"""Help for tests that drive the command line: files to work on, and what a refusal looks like."""

import json
import subprocess
import sys
from pathlib import Path

from fastpriv.cli.main import main

DATA = Path(__file__).parent / "data"

FILES = {
    "channel.csv": "0.7,0.1,0.1,0.1\n0.1,0.7,0.1,0.1\n0.1,0.1,0.7,0.1\n0.1,0.1,0.1,0.7\n",
    "bit.csv": "0.75,0.25\n0.25,0.75\n",
    "prior.csv": "0.4\n0.3\n0.2\n0.1\n",
    "marginals.csv": "0.6,0.4\n0.3,0.7\n",
    "edges.csv": "0,1\n1,2\n2,3\n",
    "joint.csv": "0.2,0.1,0.1,0.1\n0.1,0.1,0.1,0.2\n",
    "people.csv": "c\n" + "x\n" * 300 + "y\n" * 100,
    "domain.json": '{"c": ["x", "y"]}',
    "deployment.yaml": "deployment: {privacy_loss: {privacy_parameters: {epsilon: 1}}}",
    # What is wrong with these is said by the tests that use them.
    "header.csv": "a,b\n0.5,0.5\n",
    "ragged.csv": "0.5,0.5\n1\n",
    "empty.csv": "",
    "nan.csv": "0.5,nan\n0.5,0.5\n",
    "semicolons.csv": "0.5;0.5\n0.5;0.5\n",
    "percent.csv": "50,50\n50,50\n",
    "over.csv": "0.5,0.6\n0.5,0.5\n",
    "negative.csv": "1.5,-0.5\n0.5,0.5\n",
    "text.npy": "0.5,0.5\n",
    "notes.txt": "0.5,0.5\n",
}


def prepare(folder, monkeypatch):
    """Fill a folder with files to work on, and go there."""
    for name, text in FILES.items():
        (folder / name).write_text(text)
    (folder / "latin.csv").write_bytes("0.5,é\n".encode("latin-1"))
    (folder / "folder.csv").mkdir()
    monkeypatch.chdir(folder)
    return folder


def done(words, capsys):
    """Run a command that ends well; return what it printed."""
    assert main(words) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def parsed(text):
    """Parse JSON as strict parsers do, without NaN and Infinity."""

    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


def answer(words, capsys):
    """Run a command with ``--json``; return what it printed as data."""
    return parsed(done([*words, "--json"], capsys))


def contents(folder):
    return {path: path.is_file() and path.read_bytes() for path in folder.rglob("*")}


def refused(words, code, says, capsys, as_json=True):
    """Run a command that is refused: one sentence on stderr, a code, and no file touched."""
    before = contents(Path.cwd())
    assert main(words) == code
    streams = capsys.readouterr()
    assert streams.out == ""
    assert streams.err.startswith("fastpriv: ")
    assert streams.err.count("\n") == 1
    assert says in streams.err
    assert "Traceback" not in streams.err
    assert contents(Path.cwd()) == before
    if as_json:
        assert main([*words, "--json"]) == code
        streams = capsys.readouterr()
        assert streams.out == ""
        told = parsed(streams.err)
        assert told["exit_code"] == code
        assert says in told["error"]
        assert contents(Path.cwd()) == before


def stopped(script, arguments, says, number):
    """Run a script until it prints a line, send it a signal; return its code and its errors."""
    with subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        try:
            assert running.stdout.readline() == f"{says}\n"
            running.send_signal(number)
            _, errors = running.communicate(timeout=300)
        finally:
            running.kill()
    return running.returncode, errors
