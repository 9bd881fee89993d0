"""Leakage over sets of priors when there is no time: brackets that hold the level."""

import numpy as np
import pytest

import fastpriv as fp

CENTRE = np.random.default_rng(1).dirichlet(np.ones(8))
SETS = {
    "ball": lambda: fp.PriorSet.total_variation(CENTRE, 0.1),
    "divergence": lambda: fp.PriorSet.kl_ball(CENTRE, 0.05),
    "entropy": lambda: fp.PriorSet.entropy(8, 1.6),
    "polytope": lambda: fp.PriorSet.polytope(np.eye(8), np.full(8, 0.3)),
}


@pytest.mark.slow(only=["entropy-0"])
@pytest.mark.parametrize("row", [None, 0])
@pytest.mark.parametrize("name", SETS)
def test_without_time_a_bracket_holds_the_level(name, row):
    """At once the ends are apart; with time the level is one number between them."""
    channel = fp.Channel(np.random.default_rng(2).dirichlet(np.ones(3), 8), [2] * 3)
    hasty = fp.pml_level(channel, SETS[name](), row=row, time_limit=0.0)
    level = fp.pml_level(channel, SETS[name](), row=row)
    assert isinstance(level, float)
    assert isinstance(hasty, fp.Bracket)
    assert hasty.lower <= level <= hasty.upper
    assert hasty.upper <= fp.pml_level(channel, fp.PriorSet.all(8)) + 1e-9


@pytest.mark.slow
def test_outputs_without_time_are_bounded():
    """Every output has at least its leakage."""
    channel = fp.Channel(np.random.default_rng(2).dirichlet(np.ones(3), 8), [2] * 3)
    priors = SETS["ball"]()
    hasty = fp.row_pml(channel, priors, 0, time_limit=0.0)
    assert (hasty >= fp.row_pml(channel, priors, 0)).all()
    proved = fp.max_individual_capacity(channel, priors, time_limit=0.0)
    assert proved >= fp.max_individual_capacity(channel, priors)
