"""The command line, driven end to end."""

import json
import subprocess
import sys

import pytest

from fastpriv.cli import main


def test_audit_prints_every_level_of_both_mechanisms(capsys):
    assert main(["audit"]) == 0
    out = capsys.readouterr().out
    for word in ("E_d", "E_i", "differential privacy", "identifiability", "mutual information"):
        assert word in out
    assert out.count("0.639042") == 2  # both have distortion h(2) = 3/(1 + e^2/2)


def test_audit_as_json(capsys):
    assert main(["audit", "--epsilon", "2.0", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["mechanisms"]["E_d"]["differential privacy"] == 2.0
    assert found["mechanisms"]["E_i"]["identifiability"] == 2.0


@pytest.mark.parametrize("epsilon", ["0.5", "-1", "nan", "inf"])
def test_audit_says_in_one_sentence_what_is_wrong(epsilon, capsys):
    assert main(["audit", f"--epsilon={epsilon}"]) == 2
    streams = capsys.readouterr()
    assert streams.out == ""
    assert streams.err.startswith("fastpriv: ")
    assert streams.err.count("\n") == 1


def test_wrong_words_exit_with_2():
    with pytest.raises(SystemExit) as stop:
        main(["audit", "--epsilon", "much"])
    assert stop.value.code == 2


def test_installed_command():
    done = subprocess.run(
        [sys.executable, "-m", "fastpriv", "audit"], capture_output=True, text=True, check=True
    )
    assert "E_i" in done.stdout
