"""``fastpriv solve``, driven end to end: what is written has what its certificate says."""

import hashlib
import math

import numpy as np
import pytest

import fastpriv as fp
from command_line import answer, done, parsed, prepare, refused
from fastpriv.cli import solve as solving
from fastpriv.design import problem


@pytest.fixture
def work(tmp_path, monkeypatch):
    return prepare(tmp_path, monkeypatch)


def written(name):
    return np.load(name) if name.endswith(".npy") else np.loadtxt(name, delimiter=",")


LEVELS = {
    "dp": lambda channel, prior: fp.dp_level(channel),
    "identifiability": fp.identifiability_level,
    "mutual-information": fp.mutual_information,
    "pml": fp.pml_level,
    "individual-capacity": lambda channel, prior: fp.individual_capacity(channel, gap=1e-14).lower,
}


@pytest.mark.grid(every=3)
@pytest.mark.parametrize("out", ["best.csv", "best.npy"])
@pytest.mark.parametrize(
    ("notion", "prior", "law", "goal"),
    [
        ("dp", "iid:p=0.7,0.2,0.1,n=2", fp.Product.iid([0.7, 0.2, 0.1], 2), ("epsilon", 1.0)),
        ("dp", "uniform:n=3,m=2", fp.Uniform(3, 2), ("epsilon", 0.7)),
        ("dp", "prior.csv", fp.Dense([0.4, 0.3, 0.2, 0.1]), ("epsilon", 1e-8)),
        ("dp", "prior.csv", fp.Dense([0.4, 0.3, 0.2, 0.1]), ("distortion", 0.5)),
        ("identifiability", "prior.csv", fp.Dense([0.4, 0.3, 0.2, 0.1]), ("epsilon", 2.5)),
        ("identifiability", "prior.csv", fp.Dense([0.4, 0.3, 0.2, 0.1]), ("distortion", 0.2)),
        (
            "identifiability",
            "beta-binomial:a=0.5,b=0.8,n=4",
            fp.Exchangeable.beta_binomial(4, 0.5, 0.8),
            ("distortion", 1.0),
        ),
        (
            "mutual-information",
            "markov:initial=0.5,0.5,transition=0.9,0.1,0.1,0.9,n=4",
            fp.Markov([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], 4),
            ("distortion", 0.5),
        ),
        ("mutual-information", "uniform:n=2,m=3", fp.Uniform(2, 3), ("epsilon", 0.5)),
        ("mutual-information", "prior.csv", fp.Dense([0.4, 0.3, 0.2, 0.1]), ("epsilon", 0.0)),
        ("mutual-information", "prior.csv", fp.Dense([0.4, 0.3, 0.2, 0.1]), ("epsilon", 0.01)),
        ("mutual-information", "prior.csv", fp.Dense([0.4, 0.3, 0.2, 0.1]), ("epsilon", 2.0)),
        ("pml", "prior.csv", fp.Dense([0.4, 0.3, 0.2, 0.1]), ("epsilon", 0.5)),
        ("pml", "iid:p=0.7,0.3,n=2", fp.Product.iid([0.7, 0.3], 2), ("distortion", 0.3)),
        ("individual-capacity", "prior.csv", fp.Dense([0.4, 0.3, 0.2, 0.1]), ("distortion", 0.2)),
        ("individual-capacity", "uniform:n=2,m=2", fp.Uniform(2, 2), ("epsilon", 0.1)),
    ],
)
def test_the_file_has_what_the_certificate_says(notion, prior, law, goal, out, work, capsys):
    words = ["solve", notion, "--prior", prior, f"--{goal[0]}", str(goal[1]), "--out", out]
    page = answer([*words, "--certificate", "best.json"], capsys)
    assert page == parsed((work / "best.json").read_text())
    channel = fp.Channel(written(out), law.space)
    level, cost = LEVELS[notion](channel, law), fp.distortion(channel, law)
    assert page["level"] >= level * (1 - 1e-15)
    assert page["level"] == pytest.approx(level, rel=1e-12)
    assert page["distortion"] == pytest.approx(cost, rel=1e-12)
    if goal[0] == "epsilon":
        assert level <= goal[1]
        assert (page["minimised"], page["value"]) == ("distortion", page["distortion"])
    else:
        assert cost <= goal[1] * (1 + 1e-12)
        assert (page["minimised"], page["value"]) == ("level", page["level"])
    assert page["bound"] <= page["value"] <= page["bound"] + 1e-5
    assert page["asked"] == {goal[0]: goal[1]}
    assert page["channel"]["sha256"] == hashlib.sha256((work / out).read_bytes()).hexdigest()
    source = {"spec": prior}
    if prior.endswith(".csv"):
        source = {"file": prior, "sha256": hashlib.sha256((work / prior).read_bytes()).hexdigest()}
    assert page["prior"] == source


@pytest.mark.parametrize("flip", [1e-3, 0.1, 0.3, 0.49])
def test_the_least_distortion_at_which_one_learns_so_much(flip, work, capsys):
    """A bit, Shannon: information ln 2 - H(D) at distortion D."""
    (work / "fair.csv").write_text("0.5,0.5\n")
    level = math.log(2) + flip * math.log(flip) + (1 - flip) * math.log(1 - flip)
    words = ["solve", "mutual-information", "--prior", "fair.csv", "--epsilon", str(level)]
    page = answer(words, capsys)
    assert page["bound"] <= flip * (1 + 1e-12) <= page["value"] * (1 + 1e-9)
    assert page["gap"] <= 1e-6
    assert page["level"] <= level


@pytest.mark.parametrize("notion", ["dp", "identifiability"])
@pytest.mark.parametrize("epsilon", [360.0, 700.0, 1e5])
def test_chances_too_small_for_a_file(notion, epsilon, work, capsys):
    """A matrix in which they are 0 would have must be one that follows at all."""
    words = ["solve", notion, "--prior", "prior.csv", "--sizes", "2,2", "--epsilon", str(epsilon)]
    page = answer([*words, "--out", "best.csv"], capsys)
    assert written("best.csv").min() > 0.0
    channel = fp.Channel(written("best.csv"), fp.Space([2, 2]))
    prior = fp.Dense([0.4, 0.3, 0.2, 0.1], [2, 2])
    assert LEVELS[notion](channel, prior) <= page["level"] <= epsilon
    assert page["gap"] < 1e-100


def test_the_distortion_of_a_constant_output_needs_no_level(work, capsys):
    """0.7 = 0.3 + 0.4 in decimals, but not in floats."""
    words = ["solve", "dp", "--prior", "prior.csv", "--sizes", "2,2", "--distortion", "0.7"]
    page = answer([*words, "--out", "best.csv"], capsys)
    assert (page["level"], page["bound"], page["distortion"]) == (0.0, 0.0, 0.7)


def test_the_least_distortion_is_that_of_the_program(work, capsys):
    prior = fp.Exchangeable.beta_binomial(6, 0.5, 0.8)
    words = ["solve", "dp", "--prior", "beta-binomial:a=0.5,b=0.8,n=6", "--epsilon", "1"]
    page = answer(words, capsys)
    assert page["value"] == pytest.approx(fp.solve_pd_dp(prior, 1.0).value, rel=1e-6)
    assert page["method"] == "types"
    text = done(words, capsys)
    assert "differential privacy level (nats)" in text
    assert "smallest possible distortion, at least" in text


@pytest.mark.slow
def test_a_structured_optimum_needs_no_file(capsys):
    words = ["solve", "dp", "--prior", "uniform:n=1000000,m=4", "--epsilon", "2"]
    spec = answer(words, capsys)["channel"]["spec"]
    assert spec.startswith("hamming:n=1000000,m=4,epsilon=1.99999999")
    assert f"The channel is {spec}" in done(words, capsys)
    found = answer(["capacity", spec], capsys)
    assert found["value"]["upper"] > 0.0


def test_mappings_against_inference(work, capsys):
    (work / "joint.csv").write_text("0.4,0.1\n0.1,0.4\n")
    words = ["solve", "inference", "--joint", "joint.csv", "--distortion", "0.1"]
    page = answer([*words, "--out", "mapping.csv"], capsys)
    flipped = 0.2 * 0.9 + 0.8 * 0.1
    least = math.log(2) + flipped * math.log(flipped) + (1 - flipped) * math.log(1 - flipped)
    assert page["bound"] <= least <= page["value"] + 1e-12
    assert page["error bound"] == pytest.approx(flipped, abs=1e-6)
    joint = np.array([[0.4, 0.1], [0.1, 0.4]]) @ written("mapping.csv")
    information = fp.mutual_information(joint / joint.sum(axis=1, keepdims=True), joint.sum(axis=1))
    assert information == pytest.approx(page["level"], rel=1e-9)
    (work / "metric.csv").write_text("0,1,0.5\n1,0,0.5\n")
    wider = answer([*words, "--metric", "metric.csv"], capsys)
    assert wider["value"] <= page["value"] + 1e-9


def test_files_are_replaced_only_by_force(work, capsys):
    words = ["solve", "dp", "--prior", "uniform:n=1,m=2", "--epsilon", "1"]
    for option, name in (("--out", "bit.csv"), ("--certificate", "domain.json")):
        refused([*words, option, name], 2, "--force", capsys)
    done([*words, "--out", "bit.csv", "--force"], capsys)
    assert written("bit.csv")[0, 0] == pytest.approx(1 / (1 + math.exp(-1.0)))


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ([], 2, "NOTION"),
        (["privacy", "--epsilon", "1"], 2, "must be one of dp, individual-capacity"),
        (["dp", "--prior", "prior.csv"], 2, "--epsilon --distortion is required"),
        (["dp", "--epsilon", "1"], 2, "--prior must be given for dp"),
        (["dp", "--prior", "prior.csv", "--epsilon", "1", "--distortion", "1"], 2, "not allowed"),
        (["dp", "--prior", "prior.csv", "--epsilon", "-1"], 2, "epsilon must be"),
        (["dp", "--prior", "prior.csv", "--epsilon", "inf"], 2, "epsilon must be"),
        (["dp", "--prior", "prior.csv", "--distortion", "2"], 2, "distortion must be"),
        (["dp", "--prior", "prior.csv", "--distortion", "0"], 3, "no mechanism has a finite"),
        (["dp", "--prior", "prior.csv", "--epsilon", "1", "--gap", "-1"], 2, "gap"),
        (["dp", "--prior", "prior.csv", "--distortion", "0.1", "--gap", "1"], 2, "--gap must"),
        (["dp", "--prior", "prior.csv", "--epsilon", "1", "--joint", "joint.csv"], 2,
         "--joint must be left out for dp"),
        (["dp", "--prior", "prior.csv", "--epsilon", "1", "--out", "best.txt"], 2,
         "must end in .csv or .npy"),
        (["dp", "--prior", "prior.csv", "--epsilon", "1", "--out", "none/best.csv"], 2,
         "there is no folder none"),
        (["dp", "--prior", "prior.csv", "--epsilon", "1", "--out", "folder.csv"], 2, "is a folder"),
        (["dp", "--prior", "prior.csv", "--epsilon", "1", "--out", "prior.csv", "--force"], 2,
         "would be written over prior.csv"),
        (["dp", "--prior", "prior.csv", "--epsilon", "1", "--certificate", "c.txt"], 2,
         "must end in .json"),
        (["dp", "--prior", "uniform:n=20,m=2", "--epsilon", "1", "--out", "o.npy"], 4,
         "1,099,511,627,776 entries"),
        (["identifiability", "--prior", "prior.csv", "--epsilon", "0.5"], 3, "epsilon_x"),
        (["mutual-information", "--prior", "prior.csv", "--epsilon", "-1"], 2, "epsilon must be"),
        (["inference", "--distortion", "1"], 2, "--joint must be given for inference"),
        (["inference", "--distortion", "1", "--joint", "joint.csv", "--prior", "uniform"], 2,
         "--prior must be left out for inference"),
        (["inference", "--epsilon", "1", "--joint", "joint.csv"], 2, "--distortion"),
        (["inference", "--distortion", "-1", "--joint", "joint.csv"], 3, "distortion"),
        (["inference", "--distortion", "1", "--joint", "bit.csv"], 2, "sum to 1"),
        (["inference", "--distortion", "1", "--joint", "joint.csv", "--metric", "bit.csv"], 2,
         "metric[x, y] must have a row for each of 4 inputs"),
    ],
)  # fmt: skip
def test_wrong_input_is_refused(words, code, says, work, capsys):
    refused(["solve", *words], code, says, capsys)


def test_a_mechanism_that_tells_nothing_says_so(work, capsys):
    words = ["solve", "dp", "--epsilon", "1", "--prior"]
    said = "does not depend on the database"
    assert said in done([*words, "iid:p=0.7,0.2,0.1,n=2"], capsys)
    assert said not in done([*words, "beta-binomial:a=0.5,b=0.8,n=4"], capsys)


def test_an_exact_optimum(work, capsys):
    words = ["solve", "dp", "--prior", "prior.csv", "--sizes", "2,2", "--epsilon", "0.5", "--exact"]
    page = answer(words, capsys)
    best = fp.solve_pd_dp(fp.Dense([0.4, 0.3, 0.2, 0.1], [2, 2]), 0.5, exact=True)
    assert page["exact"] == {
        "ratio": str(best.ratio),
        "value": str(best.value),
        "verified": True,
    }
    assert page["bound"] <= best.value <= page["value"]
    assert page["level"] <= 0.5
    text = done([*words, "--out", "best.csv"], capsys)
    assert str(best.value) in text
    assert "verified in rational arithmetic" in text
    written = np.loadtxt("best.csv", delimiter=",")
    assert fp.dp_level(fp.Channel(written, [2, 2])) <= 0.5


def test_exact_optima_take_a_level_and_no_gap(work, capsys):
    start = ["solve", "dp", "--prior", "prior.csv", "--exact"]
    refused([*start, "--distortion", "0.2"], 2, "--epsilon", capsys)
    refused([*start, "--epsilon", "1", "--gap", "1e-6"], 2, "--gap", capsys)
    asked = ["solve", "mutual-information", "--prior", "prior.csv", "--exact", "--epsilon", "1"]
    refused(asked, 2, "dp or identifiability", capsys)


def hypotenuses(height, width):
    """Distances between cells, numbered row by row."""
    cells = [(i, j) for i in range(height) for j in range(width)]
    return np.array([[math.dist(one, other) for other in cells] for one in cells])


def largest_ratio(matrix, apart, weights=None):
    """The level per unit of distance, from the definition."""
    rows = matrix[:, matrix.any(axis=0)]
    rows = rows if weights is None else rows * np.asarray(weights)[:, None]
    return max(
        (np.log(rows[x]) - np.log(rows[z])).max() / apart[x, z]
        for x in range(len(rows))
        for z in range(len(rows))
        if x != z and np.isfinite(apart[x, z])
    )


@pytest.mark.parametrize("notion", ["dp", "identifiability"])
def test_a_grid_of_cells(notion, work, capsys):
    (work / "cells.csv").write_text("0.3,0.2,0.1,0.1,0.1,0.2\n")
    words = ["solve", notion, "--prior", "cells.csv", "--grid", "2x3", "--epsilon", "1.2"]
    page = answer([*words, "--out", "best.csv"], capsys)
    prior, apart, best = [0.3, 0.2, 0.1, 0.1, 0.1, 0.2], hypotenuses(2, 3), written("best.csv")
    weights = prior if notion == "identifiability" else None
    assert largest_ratio(best, apart, weights) <= page["level"] * (1 + 1e-12) <= 1.2 * (1 + 1e-12)
    cost = float(np.asarray(prior) @ (best * apart).sum(axis=1))
    assert page["distortion"] == page["value"] == pytest.approx(cost, rel=1e-12)
    assert page["bound"] <= page["value"] <= page["bound"] * (1 + 2e-6)
    assert page["grid"] == [2, 3]
    text = done([*words, "--out", "again.csv"], capsys)
    assert "per unit of distance" in text
    assert "To confirm it" not in text  # an audit has other neighbours


def test_cost_and_neighbours_from_files(work, capsys):
    (work / "cost.csv").write_text("0,1,2\n1,0,1\n2,1,0\n3,2,1\n")
    (work / "path.csv").write_text("0,1,0,0\n1,0,1,0\n0,1,0,1\n0,0,1,0\n")
    words = ["solve", "dp", "--prior", "prior.csv", "--epsilon", "0.8", "--metric", "cost.csv"]
    page = answer([*words, "--neighbours", "edges.csv", "--out", "best.csv"], capsys)
    cost = np.loadtxt("cost.csv", delimiter=",")
    prior, steps = [0.4, 0.3, 0.2, 0.1], np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
    expected = fp.solve_pd_dp(prior, 0.8, metric=cost, neighbours=steps).value
    assert page["value"] == pytest.approx(expected, rel=2e-6)
    assert largest_ratio(written("best.csv"), steps) <= 0.8 * (1 + 1e-12)
    digest = hashlib.sha256((work / "edges.csv").read_bytes()).hexdigest()
    assert page["neighbours"] == {"file": "edges.csv", "sha256": digest}
    as_matrix = answer([*words, "--neighbours", "path.csv"], capsys)
    assert as_matrix["value"] == pytest.approx(page["value"], rel=2e-6)
    without = answer(words, capsys)  # one record of four values: all are neighbours
    assert without["value"] > page["value"]
    # A file takes precedence over the distances of a grid.
    lined = answer([*words, "--grid", "1x4"], capsys)
    assert lined["value"] == pytest.approx(page["value"], rel=2e-6)


@pytest.mark.parametrize("solver", solving.ENGINES)
def test_engines_agree(solver, work, capsys):
    words = ["solve", "dp", "--prior", "prior.csv", "--sizes", "2,2", "--epsilon", "0.5"]
    expected = fp.solve_pd_dp(fp.Dense([0.4, 0.3, 0.2, 0.1], [2, 2]), 0.5)
    page = answer([*words, "--solver", solver, "--gap", "1e-4"], capsys)
    assert page["bound"] <= expected.value
    assert expected.bound <= page["value"] <= expected.value * (1 + 1e-4)


def test_the_engines_are_those_of_the_programs():
    assert solving.ENGINES == problem.ENGINES


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["dp", "--solver", "simplex", "--epsilon", "1"], 2, "one of auto, interior, highs"),
        (["dp", "--solver", "highs", "--distortion", "0.2"], 2, "--solver must come with --eps"),
        (["dp", "--grid", "2x2", "--distortion", "0.2"], 2, "--grid must come with --epsilon"),
        (["pml", "--grid", "2x2", "--epsilon", "1"], 2, "--grid must be left out for pml"),
        (["pml", "--metric", "bit.csv", "--epsilon", "1"], 2, "--metric must be left out for pml"),
        (["pml", "--solver", "highs", "--epsilon", "1"], 2, "--solver must be left out for pml"),
        (["dp", "--solver", "highs", "--epsilon", "1", "--exact"], 2, "--solver must be left out"),
        (["dp", "--grid", "2x2", "--epsilon", "1", "--exact"], 2, "--grid must be left out"),
        (["dp", "--grid", "2x2", "--epsilon", "1", "--sizes", "2,2"], 2, "--sizes must be left"),
        (["dp", "--grid", "3x3", "--epsilon", "1"], 2, "a probability for each of 9 databases"),
        (["dp", "--grid", "0x3", "--epsilon", "1"], 2, "such as 32x32"),
        (["dp", "--grid", "32", "--epsilon", "1"], 2, "such as 32x32"),
        (["dp", "--grid", "99999x99999", "--epsilon", "1"], 4, "use fewer cells"),
        (["dp", "--neighbours", "bit.csv", "--epsilon", "1"], 2, "neighbours must be pairs"),
        (["dp", "--neighbours", "none.csv", "--epsilon", "1"], 2, "cannot read the neighbours"),
        (["dp", "--metric", "bit.csv", "--epsilon", "1"], 2, "metric[x, y] must have a row"),
        (["identifiability", "--grid", "2x2", "--epsilon", "0.1"], 3, "prior alone"),
    ],
)  # fmt: skip
def test_impossible_combinations_are_refused(words, code, says, work, capsys):
    refused(["solve", *words, "--prior", "prior.csv"], code, says, capsys)


def test_a_grid_fits_its_prior(work, capsys):
    words = ["solve", "dp", "--prior", "uniform:n=2,m=2", "--epsilon", "1", "--grid", "2x3"]
    refused(words, 2, "--grid must have a cell for each of 4 databases", capsys)


def test_inference_has_no_neighbours(work, capsys):
    words = ["solve", "inference", "--joint", "joint.csv", "--distortion", "0.1"]
    refused([*words, "--neighbours", "bit.csv"], 2, "--neighbours must be left out", capsys)
    refused([*words, "--solver", "highs"], 2, "--solver must be left out", capsys)
