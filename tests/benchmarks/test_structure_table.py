"""The table of structures in the documentation says what the code answers."""

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ANSWERS = json.loads((ROOT / "docs" / "guides" / "structure.json").read_text())


@pytest.fixture(scope="module")
def table():
    path = ROOT / "benchmarks" / "structure_table.py"
    spec = importlib.util.spec_from_file_location("structure_table", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


#: Quick questions: channels on types take seconds to make, and lists take their time.
QUICK = [
    answer
    for answer in ANSWERS
    if answer["channel"] not in ("on types", "histogram") and answer["prior"] != "dense"
]


def name(answer):
    return "-".join([answer["channel"], answer["measure"], answer["prior"]])


@pytest.mark.parametrize("answer", QUICK[::9], ids=name)
def test_a_sample_of_cells(table, answer):
    cell = table.Cell(answer["measure"], answer["channel"], answer["prior"])
    assert table.kind(cell) == answer["kind"]


def test_every_question_is_answered(table):
    asked = {
        (measure, mechanism, prior)
        for mechanism in ("", *table.CHANNELS)
        for measure in (table.UNDER_PRIOR if mechanism else table.OF_PRIOR)
        for prior in table.PRIORS
        if table.Cell(measure, mechanism, prior).sensible
    }
    assert asked == {(a["measure"], a["channel"], a["prior"]) for a in ANSWERS}
    kinds = {"exact", "bracket", "dense only", "vector", "matrix", "time", "memory"}
    assert {answer["kind"] for answer in ANSWERS} <= kinds
