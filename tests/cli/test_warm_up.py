"""``fastpriv warm-up``, driven end to end."""

from pathlib import Path

from command_line import answer, done, prepare, refused
from fastpriv import kernels
from fastpriv.kernels import loader


def test_says_what_was_compiled_and_where(capsys):
    report = answer(["warm-up"], capsys)
    if loader.SHIPPED:
        assert report["compiled"] == 0
        assert "nothing to do" in done(["warm-up"], capsys)
        return
    assert report["compiled"] + report["cached"] > 0
    assert Path(report["cache"]).is_dir()
    for kernel in kernels.KERNELS.values():
        assert set(kernel.declared) <= set(kernel.signatures)
    text = done(["warm-up"], capsys)
    assert report["cache"] in text


def test_wrong_input_is_refused(tmp_path, monkeypatch, capsys):
    prepare(tmp_path, monkeypatch)
    refused(["warm-up", "everything"], 2, "unrecognized arguments: everything", capsys)
    refused(["warm-up", "--jsn"], 2, "did you mean --json?", capsys)
