"""Two mechanisms side by side, and results as tables of other programs."""

import csv
import io
import math

import numpy as np
import pandas as pd
import pytest

import fastpriv as fp

STRONG, WEAK = [[0.6, 0.4], [0.4, 0.6]], [[0.9, 0.1], [0.1, 0.9]]


def test_the_better_of_two():
    comparison = fp.compare(STRONG, WEAK, [0.5, 0.5])
    assert comparison["dp"] == comparison["pml"] == "first"
    assert fp.compare(WEAK, STRONG)["dp"] == "second"
    assert fp.compare(WEAK, WEAK)["dp"] == "same"
    assert fp.compare(np.eye(2), WEAK)["dp"] == "second"
    assert "first" in repr(comparison)
    frame = comparison.to_frame().set_index("notion")
    assert frame.loc["dp", "better"] == "first"
    assert frame.loc["dp", "first"] == fp.dp_level(STRONG)
    with pytest.raises(KeyError):
        comparison["dpp"]
    with pytest.raises(fp.InvalidInput, match="must have the same databases"):
        fp.compare(STRONG, np.full((3, 2), 0.5))


def test_releases_are_compared():
    one = fp.preview_release(1_000, domain=[2, 2], epsilon=1.0)
    two = fp.preview_release(1_000, domain=[2, 2], epsilon=2.0)
    assert fp.compare(one, two)["dp"] == "first"


def test_an_audit_as_a_frame_csv_and_latex(tmp_path):
    audit = fp.audit(WEAK, [0.5, 0.5])
    frame = audit.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert frame.set_index("notion").loc["dp", "value"] == audit["dp"]
    path = tmp_path / "audit.csv"
    audit.to_csv(path)
    rows = list(csv.DictReader(io.StringIO(path.read_text())))
    assert float(next(r for r in rows if r["notion"] == "dp")["upper"]) == audit["dp"]
    latex = audit.to_latex()
    assert latex.count(r"\\") == len(rows) + 1
    assert "&" in latex
    infinite = fp.audit(np.eye(2)).to_latex()
    assert r"$\infty$" in infinite


def test_curves_and_frequencies_as_frames():
    curve = fp.tradeoff_curve(fp.Product.iid([0.6, 0.4], 2), ["dp"], [0.2, 0.5])
    assert list(curve.to_frame()["distortion"]) == [0.2, 0.5]
    assert "distortion" in curve.to_latex()
    released = fp.release(np.zeros((200, 2), int), domain=[2, 3], epsilon=4.0, rng=1)
    frame = fp.estimate_frequencies(released).to_frame()
    assert len(frame) == 5
    joint = fp.estimate_frequencies(released, columns=[0, 1]).to_frame()
    assert len(joint) == 6
    assert joint["count"].sum() == pytest.approx(200.0)


def test_csv_runs_nothing_in_a_spreadsheet():
    released = fp.release(
        [{"=cmd()": "+1"}] * 5, domain={"=cmd()": ["+1", "@x"]}, epsilon=3.0, rng=1
    )
    text = fp.estimate_frequencies(released).to_csv()
    assert "'=cmd()" in text
    assert ",'+1" in text
    assert math.isfinite(float(text.splitlines()[1].split(",")[2]))
