"""Rate-distortion close to its ends, and programs at levels where numbers underflow."""

import math

import numpy as np
import pytest
from mpmath import log, mp, mpf

import fastpriv as fp
import oracles as o
from fuzz import numbers


@pytest.fixture(autouse=True)
def many_digits():
    with mp.workdps(60):
        yield


def binary(p):
    return -p * log(p) - (1 - p) * log(1 - p)


def of_a_bit(law, D):
    """R(D) = h(p) - h(D) up to D = p, the smaller chance of the law divided by its sum."""
    p = min(o.normal(law))
    return binary(p) - binary(mpf(D)) if p > D else mpf(0)


def of_a_uniform_value(m, D):
    """R(D) = ln m - h(D) - D ln(m-1) up to D = 1 - 1/m."""
    return log(m) - binary(mpf(D)) - mpf(D) * log(m - 1) if mpf(D) < 1 - mpf(1) / m else mpf(0)


LAWS = [[0.506136088055236, 0.4938639119447638], [0.7, 0.3], [0.9, 0.1], [0.5, 0.5]]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("steps", [-2, -1, 0, 1, 3, 1000, 10**6, 10**9, 10**12])
def test_close_to_the_largest_distortion(law, steps):
    D = min(law) - steps * math.ulp(min(law))
    for prior in (fp.Product([law]), fp.Dense(law, [2])):
        truth = of_a_bit(law, D)
        assert fp.solve_pd_mip(prior, D).bound <= truth
        level = fp.privacy_level(prior, D, "mutual-information")
        assert level.lower <= truth <= level.upper <= truth + mpf("1e-12")


@pytest.mark.parametrize("share", [1e-3, 1e-6, 1e-8, 3.6e-9, 1e-12, 1e-16])
@pytest.mark.parametrize("m", [2, 3, 5])
def test_uniform_values(m, share):
    D = (1.0 - 1.0 / m) * (1.0 - share)
    truth = of_a_uniform_value(m, D)
    level = fp.privacy_level(fp.Uniform(1, m), D, "mutual-information")
    assert level.lower <= truth <= level.upper <= truth + mpf("1e-12")


@pytest.mark.parametrize("rare", [2.2236682399502684e-92, 0.0, 5e-324, 1e-30])
@pytest.mark.parametrize("epsilon", [100.0, 200.0, 700.0, 745.0])
@pytest.mark.filterwarnings("ignore::fastpriv.GapWarning")
def test_programs_at_large_levels_with_rare_values(rare, epsilon):
    """The least distortion at most that of E_d, and that of a constant output."""
    law = [1.0, rare]
    solution = fp.solve_pd_dp(fp.Dense(law, [2]), epsilon)
    least = min(min(o.normal(law)), 1 / (1 + mp.exp(mpf(epsilon))))
    assert solution.bound <= least
    assert o.dp_level(o.nums(solution.channel.matrix()), [2]) <= mpf(solution.level)


@pytest.mark.parametrize(
    "prior", [fp.Product([[0.43, 0.57], [0.25, 0.25, 0.5]]), fp.Uniform(2, 2), fp.Uniform(3, 3)]
)
def test_bounds_below_the_least_double(prior):
    """The distortion of E_d at 745 is no multiple of the least double."""
    sizes = prior.space.sizes
    truth = sum(1 / (1 + mp.exp(745) / (m - 1)) for m in sizes)
    for solve in (fp.solve_pd_dp, fp.solve_pd_i):
        assert solve(prior, 745.0).bound <= truth


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_levels_at_the_threshold_are_met(seed):
    """E_i at eps_tilde has no room: a mechanism beside it meets the level, and costs no more."""
    pmf = numbers.settled(np.random.default_rng(seed).dirichlet(np.ones(6)).tolist())
    prior = fp.Dense(pmf, [2, 3])
    asked = prior.epsilon_tilde()
    solution = fp.solve_pd_i(prior, asked)
    truth = o.identifiability_level(o.nums(solution.channel.matrix()), o.normal(pmf), [2, 3])
    assert truth <= solution.level <= asked
    assert solution.gap < 1e-9


@pytest.mark.slow
def test_levels_at_a_tight_threshold_say_what_rounding_adds():
    """Of one bit in three, eps_tilde is eps_X: rows of tight neighbours would have to be equal."""
    prior = fp.Dense(np.outer([0.7, 0.3], np.full(35, 1 / 35)).reshape(-1), [2, 5, 7])
    asked = prior.epsilon_tilde()
    solution = fp.solve_pd_i(prior, asked)
    W = o.tilted_matrix(solution.channel.base.pmf(), [2, 5, 7], solution.channel.epsilon)
    truth = o.identifiability_level(W, o.normal(prior.pmf()), [2, 5, 7])
    assert truth <= solution.level
    assert asked < solution.level <= asked * (1.0 + 1e-13)


@pytest.mark.parametrize("seed", range(6))
def test_the_level_of_e_i_is_that_of_its_rounded_law(seed):
    rng = np.random.default_rng(seed)
    prior = fp.Dense(numbers.settled(rng.dirichlet(np.ones(4)).tolist()), [2, 2])
    asked = prior.epsilon_tilde() + float(rng.uniform(0.0, 3.0))
    solution = fp.solve_pd_i(prior, asked)
    W = o.tilted_matrix(solution.channel.base.pmf(), [2, 2], solution.channel.epsilon)
    assert o.identifiability_level(W, o.normal(prior.pmf()), [2, 2]) <= solution.level <= asked


def test_two_ways_of_rounding_eps_x_do_not_lift_the_level():
    prior = fp.Markov(
        [0.36839659700740146, 0.6316034029925985], [[0.0, 1.0], [0.99999396, 6.04e-06]], 1
    )
    assert fp.solve_pd_i(prior, prior.epsilon_x()).level <= prior.epsilon_x()


@pytest.mark.parametrize(
    "prior",
    [
        fp.Product([[1e-16, 1e-16, 1e-16, 1.0]]),
        fp.Product.iid([0.6, 0.4], 4),
        fp.Markov([0.5, 0.5], [[0.7, 0.3], [0.3, 0.7]], 3),
    ],
    ids=["rare", "product", "chain"],
)
def test_the_prior_s_own_level_is_bracketed(prior):
    """Lower ends come from eps_X rounded down, not from the one that is rounded up."""
    truth = o.epsilon_x(o.normal(_exact(prior)), prior.space.sizes)
    level = fp.privacy_level(prior, float(prior.space.n), "identifiability")
    assert level.lower <= truth <= level.upper <= level.lower * (1.0 + 1e-12)


def _exact(prior):
    if isinstance(prior, fp.Markov):
        return o.markov_pmf(o.nums([prior.initial])[0], o.nums(prior.transition), prior.space.n)
    return o.product_pmf([o.normal(law) for law in prior.marginals])
