"""``fastpriv completion``: the scripts load, and complete what they should."""

import shutil
import subprocess
import sys

import pytest

from command_line import done, prepare, refused

pytest.importorskip("shtab", reason="needs the extra fastpriv[completion]")
bash = pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")


@bash
@pytest.mark.parametrize(
    ("typed", "expected", "unexpected"),
    [
        (["fastpriv", "au"], {"audit"}, {"solve"}),
        (["fastpriv", ""], {"audit", "solve", "ledger", "warm-up", "completion"}, {"init"}),
        (["fastpriv", "solve", "dp", "--pr"], {"--prior"}, {"--epsilon"}),
        (["fastpriv", "ledger", "sp"], {"spend"}, {"show"}),
        (["fastpriv", "ledger", "spend", "--dry"], {"--dry-run"}, {"--json"}),
        (["fastpriv", "completion", ""], {"bash", "zsh", "fish", "tcsh"}, {"audit"}),
        (["fastpriv", "audit", "chan"], {"channel.csv"}, {"prior.csv"}),
    ],
)
def test_bash_completes(typed, expected, unexpected, tmp_path, monkeypatch, capsys):
    prepare(tmp_path, monkeypatch)
    (tmp_path / "script").write_text(done(["completion", "bash"], capsys))
    subprocess.run(["bash", "-n", "script"], check=True)
    words = " ".join(f"'{word}'" for word in typed)
    code = f"""
source ./script
COMP_WORDS=({words}); COMP_CWORD={len(typed) - 1}
function_name=$(complete -p fastpriv | sed 's/.*-F \\([^ ]*\\).*/\\1/')
$function_name fastpriv '{typed[-1]}' '{typed[-2]}'
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    ran = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
    found = {word.strip() for word in ran.stdout.split("\n")}
    assert expected <= found
    assert not unexpected & found


@pytest.mark.parametrize("shell", ["zsh", "fish", "tcsh"])
def test_other_shells(shell, capsys):
    script = done(["completion", shell], capsys)
    assert "fastpriv" in script
    assert "warm-up" in script


def test_wrong_input_is_refused(tmp_path, monkeypatch, capsys):
    prepare(tmp_path, monkeypatch)
    refused(["completion"], 2, "required: shell", capsys, as_json=False)
    refused(["completion", "bsh"], 2, "did you mean bash?", capsys, as_json=False)


def test_without_shtab_the_extra_is_named(tmp_path, monkeypatch, capsys):
    prepare(tmp_path, monkeypatch)
    monkeypatch.setitem(sys.modules, "shtab", None)
    says = "pip install 'fastpriv[completion]'"
    refused(["completion", "bash"], 2, says, capsys, as_json=False)
