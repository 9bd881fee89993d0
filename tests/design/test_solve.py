"""The best mechanism in a notion: against Shannon's formula, the programs and the measures."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp

LEVELS = {
    "dp": lambda channel, prior: fp.dp_level(channel),
    "identifiability": fp.identifiability_level,
    "mutual-information": fp.mutual_information,
    "pml": fp.pml_level,
    "individual-capacity": lambda channel, prior: fp.individual_capacity(channel).lower,
}
PRIOR = fp.Dense([0.4, 0.3, 0.2, 0.1], [2, 2])


@pytest.mark.parametrize("flip", [1e-3, 0.1, 0.3, 0.49])
def test_least_distortion_at_an_information(flip):
    """A fair bit, Shannon: information ln 2 - H(D) at distortion D."""
    level = math.log(2) + flip * math.log(flip) + (1 - flip) * math.log(1 - flip)
    best = fp.solve([0.5, 0.5], "mutual-information", epsilon=level)
    assert best.bound <= flip * (1 + 1e-12)
    assert flip <= best.value * (1 + 1e-9)
    assert best.value - best.bound <= 1e-6
    assert fp.mutual_information(best.channel, [0.5, 0.5]) <= level
    assert best.minimised == "distortion"


@pytest.mark.search(every=10)
@settings(max_examples=15, deadline=None)
@given(
    notion=st.sampled_from(sorted(LEVELS)),
    goal=st.one_of(
        st.tuples(st.just("epsilon"), st.floats(1.4, 4.0)),
        st.tuples(st.just("distortion"), st.floats(0.05, 0.6)),
    ),
    dense=st.booleans(),
)
def test_what_was_asked_for_holds_and_the_rest_is_measured(notion, goal, dense):
    name, value = goal
    best = fp.solve(PRIOR, notion, dense=dense, **{name: value})
    level, cost = LEVELS[notion](best.channel, PRIOR), fp.distortion(best.channel, PRIOR)
    assert best.level >= level * (1 - 1e-12)
    assert best.distortion == pytest.approx(cost, rel=1e-12, abs=1e-15)
    if name == "epsilon":
        assert level <= value * (1 + 1e-12)
        assert (best.minimised, best.value) == ("distortion", best.distortion)
    else:
        assert cost <= value * (1 + 1e-12)
        assert (best.minimised, best.value) == ("level", best.level)
    assert best.bound <= best.value <= best.bound + 1e-5
    assert isinstance(best.channel, fp.Channel) or not dense


def test_the_two_ways_round_meet():
    cheap = fp.solve(PRIOR, "dp", epsilon=1.5)
    private = fp.solve(PRIOR, "dp", distortion=cheap.distortion)
    assert private.bound <= 1.5 * (1 + 1e-9)
    assert private.level == pytest.approx(1.5, rel=1e-5)


def test_edges():
    nothing = fp.solve([0.7, 0.3], "mutual-information", epsilon=0.0)
    assert nothing.distortion == pytest.approx(0.3)
    assert nothing.level == pytest.approx(0.0, abs=1e-12)
    everything = fp.solve([0.7, 0.3], "mutual-information", epsilon=1.0)
    assert everything.distortion == 0.0
    alone = fp.solve([1.0], "dp", epsilon=1.0)
    assert (alone.distortion, alone.level <= 1.0) == (0.0, True)


def test_rationals():
    pytest.importorskip("flint")
    best = fp.solve([0.75, 0.25], "dp", epsilon=1.5, exact=True)
    assert best.exact.verify()
    assert best.bound <= 1.0 / (1.0 + math.exp(1.5)) <= best.value * (1 + 1e-12)
    assert best.level <= 1.5


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"notion": "row-pml", "epsilon": 1.0}, "unknown notion .*must be one of"),
        ({"notion": "dp"}, "exactly one of"),
        ({"notion": "dp", "epsilon": 1.0, "distortion": 0.1}, "exactly one of"),
        ({"notion": "dp", "distortion": 0.1, "gap": 1e-3}, "gap must come with epsilon"),
        ({"notion": "dp", "epsilon": -1.0}, "epsilon must"),
        ({"notion": "mutual-information", "epsilon": math.nan}, "epsilon must"),
        ({"notion": "dp", "distortion": 0.1, "exact": True}, "exact=True must come with"),
        ({"notion": "dp", "epsilon": 1.0, "exact": True, "gap": 0.1}, "has no gap"),
        ({"notion": "dp", "distortion": 0.1, "solver": np.eye(2)}, "solver must be one of"),
    ],
)
def test_wrong_input_is_refused_in_words(arguments, says):
    with pytest.raises(fp.InvalidInput, match=says):
        fp.solve(PRIOR, **arguments)


def test_a_matrix_that_does_not_fit_is_refused():
    with pytest.raises(fp.TooLarge, match="dense"):
        fp.solve(fp.Uniform(20, 2), "dp", epsilon=1.0, dense=True)
    assert fp.solve(fp.Uniform(20, 2), "dp", epsilon=1.0).level <= 1.0


def test_a_grid_of_so_many_points():
    curve = fp.tradeoff_curve([0.5, 0.5], ["dp"], points=4)
    np.testing.assert_allclose(curve.distortions, [0.125, 0.25, 0.375, 0.5])
