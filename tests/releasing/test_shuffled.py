"""Levels of releases whose records are shuffled: the channel of a whole record."""

import json

import numpy as np
import pytest

import fastpriv as fp
from fastpriv.cli.main import main

DOMAIN = {"sex": ["F", "M"], "smokes": ["no", "yes"]}


@pytest.mark.slow
def test_a_record_of_one_value_is_a_response():
    plan = fp.preview_release(10_000, domain={"answer": list(range(9))}, epsilon=2.0)
    level = plan.shuffled().epsilon(1e-6)
    expected = fp.accounting.shuffled(fp.HammingChannel(1, 9, 2.0), 10_000).epsilon(1e-6)
    assert level.lower == pytest.approx(expected.lower, rel=1e-9)
    assert level.upper == pytest.approx(expected.upper, rel=1e-9)
    assert level.upper < 0.2 * plan.levels["dp"]


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(2, 2), (2, 3), (6, 2)])
def test_columns_count_together(sizes):
    """The joint matrix of a record, against the reduced one; not each column by itself."""
    domain = {str(i): list(range(m)) for i, m in enumerate(sizes)}
    plan = fp.preview_release(40, domain=domain, epsilon=1.5, split="columns")
    matrix = fp.Channel(plan.channel.matrix())
    for t in (0.0, 0.3):
        short, long = plan.shuffled().delta(t), fp.accounting.shuffled(matrix, 40).delta(t)
        assert short.upper == pytest.approx(long.upper, rel=1e-6)
        assert short.lower == pytest.approx(long.lower, rel=1e-6)
    alone = fp.accounting.shuffled(fp.HammingChannel(1, sizes[0], 0.75), 40)
    assert plan.shuffled().delta(0.3).lower > alone.delta(0.3).upper


def test_what_cannot_be_shuffled():
    channel = fp.PosteriorChannel(fp.Uniform(3, 2), 1.0)
    report = fp.release(np.array([0, 1, 1]), domain=2, mechanism=channel).report
    with pytest.raises(fp.InvalidInput, match="one by one"):
        report.shuffled()
    plan = fp.preview_release(
        100, domain={str(i): list(range(9)) for i in range(8)}, epsilon=8.0, split="columns"
    )
    with pytest.raises(fp.TooLarge, match="too many triples"):
        plan.shuffled()


@pytest.mark.slow
def test_on_the_command_line(tmp_path, capsys):
    table, domain = tmp_path / "people.csv", tmp_path / "domain.json"
    table.write_text("sex,smokes\n" + "F,no\nM,yes\n" * 100)
    domain.write_text(json.dumps(DOMAIN))
    given = ["release", str(table), "--domain", str(domain), "--epsilon", "2", "--force"]
    given += ["--out", str(tmp_path / "out.csv"), "--split", "record", "--shuffled"]
    assert main([*given, "1e-5"]) == 0
    printed = capsys.readouterr().out.partition("Shuffled before anybody looks: (")[2]
    assert main([*given, "1e-5", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["shuffled"]
    level = fp.accounting.shuffled(fp.HammingChannel(1, 4, 2.0), 200).epsilon(1e-5)
    assert told["delta"] == 1e-5
    assert float(printed.partition(",")[0]) == pytest.approx(level.upper, rel=1e-4)
    assert told["epsilon"]["upper"] == pytest.approx(level.upper, rel=1e-9)
    (tmp_path / "out.csv").unlink()
    assert main([*given, "-1"]) != 0
    assert not (tmp_path / "out.csv").exists()
