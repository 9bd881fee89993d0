"""Markov chains too long to list: where E_i exists, what it leaks, and what theorems bound."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
import fastpriv.priors.markov as chains


def random_chain(seed, n, m, sharp=2.0):
    rng = np.random.default_rng(seed)
    initial = rng.dirichlet(np.full(m, sharp)) + 1e-3
    steps = rng.dirichlet(np.full(m, sharp), m) + 1e-3
    return fp.Markov(initial / initial.sum(), steps / steps.sum(axis=1, keepdims=True), n)


@pytest.fixture(autouse=True)
def _restored():
    before = chains._MAX_LISTED, chains._MAX_PART
    yield
    chains._MAX_LISTED, chains._MAX_PART = before


def as_long(chain):
    """Return the same chain, which is treated as one too long to list until the test ends."""
    chains._MAX_LISTED, chains._MAX_PART = 0, 64
    return fp.Markov(chain.initial, chain.transition, chain.space.n)


small = st.sampled_from([(2, 2), (6, 2), (2, 3), (3, 3)])
shapes = st.sampled_from([(2, 2), (6, 2), (9, 2), (2, 3), (4, 3), (3, 4)])


@pytest.mark.search(every=10)
@settings(max_examples=25)
@given(shapes, st.integers(0, 10**6), st.sampled_from([0.5, 2.0, 20.0]))
def test_the_bracket_holds_eps_tilde(shape, seed, sharp):
    chains._MAX_LISTED = 1 << 22
    chain = random_chain(seed, *shape, sharp)
    truth = chain.epsilon_tilde()
    bracket = as_long(chain).epsilon_tilde()
    assert bracket.lower <= truth * (1 + 1e-12) <= bracket.upper * (1 + 2e-12)


@pytest.mark.parametrize("seed", range(4))
def test_a_part_of_the_chain_bounds_from_below(seed):
    chain = random_chain(seed, 9, 2)
    truth = chain.epsilon_tilde()
    bracket = as_long(chain).epsilon_tilde()
    assert bracket.lower < truth <= bracket.upper


def test_the_bracket_does_not_grow_with_the_length():
    chain = [0.5, 0.5], [[0.7, 0.3], [0.4, 0.6]]
    long, longer = (fp.Markov(*chain, n).epsilon_tilde() for n in (10**2, 10**5))
    assert isinstance(longer, fp.Bracket)
    assert longer.upper < long.upper + 1e-3
    assert longer.width < 0.1


def test_impossible_and_uniform_chains():
    assert fp.Markov([0.5, 0.5], [[1.0, 0.0], [0.4, 0.6]], 100).epsilon_tilde() == np.inf
    assert fp.Markov([0.5, 0.5], [[0.5, 0.5]] * 2, 100).epsilon_tilde() == 0.0


@pytest.mark.search(every=10)
@settings(max_examples=20)
@given(small, st.integers(0, 10**6), st.floats(0.0, 4.0))
def test_e_i_of_a_chain(shape, seed, beyond):
    chains._MAX_LISTED = 1 << 22
    listed = random_chain(seed, *shape)
    chain = as_long(listed)
    epsilon = float(chain.epsilon_tilde()) * (1 + 1e-9) + beyond
    channel = fp.PosteriorChannel(chain, epsilon)
    y = np.random.default_rng(seed).integers(0, shape[1], shape[0])
    made = levels(channel, chain, y)
    eta, rho = fp.contraction_coefficient(channel), fp.maximal_correlation(channel, chain)
    chains._MAX_LISTED = 1 << 22
    plain = fp.PosteriorChannel(listed, epsilon)
    assert type(plain) is fp.PosteriorChannel
    assert channel.base.pmf() == pytest.approx(plain.base.pmf(), rel=1e-9, abs=1e-15)
    assert made == pytest.approx(levels(plain, listed, y), rel=1e-10, abs=1e-12)
    assert np.max(fp.pml(plain, listed)) == pytest.approx(made[6], rel=1e-10)
    truth = fp.contraction_coefficient(plain.matrix())
    assert eta.lower <= truth.upper
    assert truth.lower <= eta.upper
    assert float(fp.maximal_correlation(plain, listed)) <= float(rho) * (1 + 1e-9)


def levels(channel, prior, y):
    return [
        fp.dp_level(channel),
        fp.identifiability_level(channel, prior),
        fp.distortion(channel, prior),
        fp.mutual_information(channel, prior),
        fp.leakage_factor(channel, prior),
        fp.worst_leakage_factor(channel, prior),
        fp.pml_level(channel, prior),
        fp.information_privacy_level(channel, prior),
        fp.pml(channel, prior, y=y),
        fp.strong_dp_level(channel),
        fp.maximal_leakage(channel),
    ]


CHAIN = fp.Markov([0.5, 0.5], [[0.7, 0.3], [0.4, 0.6]], 1000)


def test_e_i_says_where_it_exists():
    tilde = CHAIN.epsilon_tilde()
    with pytest.raises(fp.Infeasible, match="epsilon_tilde"):
        fp.PosteriorChannel(CHAIN, tilde.lower - 0.01)
    with pytest.raises(fp.TooLarge, match="upper bound"):
        fp.PosteriorChannel(CHAIN, tilde.midpoint)
    channel = fp.PosteriorChannel(CHAIN, tilde.upper + 0.1)
    assert fp.PosteriorChannel.from_dict(channel.to_dict()) == channel
    assert repr(channel).startswith("PosteriorChannel(Markov(")
    with pytest.raises(fp.TooLarge):
        fp.pml(channel, CHAIN)
    with pytest.raises(fp.TooLarge):
        fp.mutual_information(channel, fp.Uniform(1000, 2))
    with pytest.raises(fp.TooLarge):
        channel.sample(np.zeros((1, 1000), dtype=np.int64), rng=1)


def test_programs_of_long_chains():
    tilde = float(CHAIN.epsilon_tilde())
    best = fp.solve_pd_i(CHAIN, tilde + 0.5)
    assert best.converged
    assert best.value == pytest.approx(fp.h(tilde + 0.5, 1000, 2))
    for solve, epsilon in ((fp.solve_pd_i, 2.0), (fp.solve_pd_dp, 0.5), (fp.solve_pd_dp, 1.2)):
        with pytest.warns(fp.GapWarning, match="theorems"):
            solution = solve(CHAIN, epsilon)
        assert not solution.converged
        assert 0 < solution.bound <= solution.value <= 500
        assert solution.level <= epsilon


@pytest.mark.parametrize("epsilon", [0.6, 1.0, 1.6])
def test_bounds_without_a_program_hold(epsilon, monkeypatch):
    chain = fp.Markov([0.5, 0.5], [[0.7, 0.3], [0.4, 0.6]], 5)
    truth = fp.solve_pd_dp(chain, epsilon).value, fp.solve_pd_i(chain, epsilon + 1.0).value
    monkeypatch.setattr("fastpriv.design.ratio_programs._MAX_DATABASES", 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fp.GapWarning)
        made = fp.solve_pd_dp(chain, epsilon), fp.solve_pd_i(chain, epsilon + 1.0)
    for solution, value in zip(made, truth, strict=True):
        assert solution.bound <= value * (1 + 1e-6)
        assert solution.value >= value * (1 - 1e-6)


@pytest.mark.slow
def test_levels_of_long_chains_are_brackets():
    for notion in ("dp", "identifiability"):
        wide = fp.privacy_level(CHAIN, 300.0, notion)
        assert wide.lower < wide.upper
        exact = fp.privacy_level(CHAIN, 10.0, notion)
        assert exact.width < 1e-9
    beyond = fp.privacy_level(CHAIN, 110.0, "identifiability")
    assert beyond.upper <= float(CHAIN.epsilon_tilde()) + 1e-9
    curve = fp.tradeoff_curve(CHAIN, ["dp", "identifiability"], [10.0, 300.0])
    assert (curve.lower["identifiability"] <= curve.upper["identifiability"]).all()
