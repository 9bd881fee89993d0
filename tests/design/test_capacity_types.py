"""Least distortion at an individual capacity, for bits whose order does not matter."""

import numpy as np
import pytest

import fastpriv as fp


@pytest.mark.parametrize("priors", ["all", "independent"])
@pytest.mark.parametrize("epsilon", [0.02, 0.3])
@pytest.mark.parametrize("n", [2, 3])
def test_types_reach_the_optimum_over_all_databases(n, epsilon, priors):
    """The program over all databases has the same optimum, and the level is the capacity."""
    prior = fp.Exchangeable(np.random.default_rng(n).dirichlet(np.ones(n + 1)))
    best = fp.solve_pd_capacity(prior, epsilon, priors=priors)
    every = fp.solve_pd_capacity(fp.Dense(prior.pmf(), [2] * n), epsilon, priors=priors)
    assert (best.method, every.method) == ("types", "dense")
    assert best.bound <= every.value
    assert every.bound <= best.value
    assert best.gap < 2e-6
    plain = fp.Channel(best.channel.matrix(), prior.space)
    told = fp.individual_capacity(plain, priors, gap=1e-12)
    assert told.lower <= best.level + 1e-12
    assert best.level <= min(epsilon, told.upper + 1e-9)
    assert best.value == pytest.approx(fp.distortion(plain, prior), abs=1e-9)


def test_a_constant_where_nothing_else_is_allowed():
    """Near 0 the constant is all there is; it is proved to be nearly the best."""
    prior = fp.Exchangeable([0.1, 0.2, 0.3, 0.4])
    best = fp.solve_pd_capacity(prior, 1e-13)
    assert best.level == 0.0
    assert best.gap < 1e-5


@pytest.mark.slow
def test_more_rows_than_databases_are_listed():
    """Eight bits, through the pairs of databases in which one row differs."""
    prior = fp.Exchangeable.beta_binomial(8, 2.0, 3.0)
    best = fp.solve_pd_capacity(prior, 0.1, priors="independent", gap=1e-3)
    assert best.gap <= 1e-3
    plain = fp.Channel(best.channel.matrix(), prior.space)
    assert fp.individual_capacity(plain, "independent").lower <= best.level <= 0.1
    with pytest.raises(fp.TooLarge, match="classes"):
        fp.solve_pd_capacity(fp.Exchangeable.beta_binomial(60, 2.0, 3.0), 0.1)
