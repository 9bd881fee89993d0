"""The exact programs against a naive linear program, in exact arithmetic and by duality."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import exp, mpf

import fastpriv as fp
from cases import kernel, law, simplex_weights
from program_cases import check, naive, violations


def small_priors():
    """Every kind of prior on all small shapes."""
    rng = np.random.default_rng(11)
    found = []
    for n, m in [(1, 2), (2, 2), (3, 2), (4, 2), (1, 3), (2, 3), (3, 3), (1, 5), (1, 27), (2, 5)]:
        size = m**n
        found.append((f"dense-{n}-{m}", fp.Dense(law(rng, size), [m] * n)))
        found.append((f"product-{n}-{m}", fp.Product([law(rng, m) for _ in range(n)])))
        found.append((f"markov-{n}-{m}", fp.Markov(law(rng, m), kernel(rng, m, m), n)))
        if m <= 3:
            found.append((f"exchangeable-{n}-{m}", fp.Exchangeable(simplex_weights(rng, n, m)[0])))
    found.append(("mixed", fp.Dense(law(rng, 12), [2, 3, 2])))
    found.append(("one-value", fp.Dense(law(rng, 4), [2, 1, 2])))
    return found


SMALL = small_priors()


@pytest.mark.grid
@pytest.mark.parametrize("prior", [p for _, p in SMALL], ids=[name for name, _ in SMALL])
@pytest.mark.parametrize("share", [0.15, 0.6])
def test_agreement_with_a_naive_program(prior, share):
    pmf, sizes = prior.pmf(), prior.space.sizes
    epsilon = share * prior.epsilon_hat()
    solution = fp.solve_pd_dp(prior, epsilon)
    check(solution, prior, pmf, epsilon, joint=False)
    assert solution.value == pytest.approx(naive(pmf, sizes, epsilon, False), rel=2e-6)
    assert solution.gap <= 1e-6
    low, tilde = prior.epsilon_x(), prior.epsilon_tilde()
    if tilde > low * (1 + 1e-9):
        epsilon = low + share * (tilde - low)
        solution = fp.solve_pd_i(prior, epsilon)
        check(solution, prior, pmf, epsilon, joint=True)
        assert solution.value == pytest.approx(naive(pmf, sizes, epsilon, True), rel=2e-6)
        assert solution.gap <= 1e-6


def test_methods():
    product = fp.Product([[0.2, 0.8], [0.4, 0.6]])
    chain = fp.Markov([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], 3)
    types = fp.Exchangeable.beta_binomial(3, 0.5, 0.8)
    assert fp.solve_pd_dp(product, 5.0).method == "closed-form"
    assert fp.solve_pd_dp(product, 0.5).method == "rows"
    assert fp.solve_pd_dp(types, 0.5).method == "types"
    assert fp.solve_pd_dp(chain, 0.5).method == "dense"
    assert fp.solve_pd_dp(chain, 0.0).method == "closed-form"
    assert fp.solve_pd_i(types, types.epsilon_tilde()).method == "closed-form"
    assert isinstance(fp.solve_pd_dp(types, 0.5).channel, fp.TypeChannel)


@pytest.mark.grid
@pytest.mark.parametrize("prior", [p for _, p in SMALL], ids=[name for name, _ in SMALL])
def test_closed_forms_hold_for_their_floats(prior):
    pmf = prior.pmf()
    for epsilon in (prior.epsilon_hat(), prior.epsilon_hat() + 0.7, 40.0):
        solution = fp.solve_pd_dp(prior, epsilon)
        assert solution.method == "closed-form"
        check(solution, prior, pmf, epsilon, joint=False)
        assert solution.gap < 1e-12
    for epsilon in (prior.epsilon_tilde(), prior.epsilon_tilde() + 0.7):
        solution = fp.solve_pd_i(prior, epsilon)
        assert solution.gap < 1e-9
        assert violations(solution, pmf, prior.space.sizes, solution.level, True) == 0
        assert solution.level <= epsilon * (1 + 1e-12)


@pytest.mark.grid
@pytest.mark.parametrize("prior", [p for _, p in SMALL], ids=[name for name, _ in SMALL])
@pytest.mark.parametrize("joint", [False, True])
def test_both_engines_agree(prior, joint):
    low, high = (prior.epsilon_x(), prior.epsilon_tilde()) if joint else (0.0, prior.epsilon_hat())
    epsilon = low + 0.5 * (high - low)
    solve = fp.solve_pd_i if joint else fp.solve_pd_dp
    if not high > low * (1 + 1e-9):  # closed forms at every level: there is nothing to solve
        assert solve(prior, high).method == "closed-form"
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fp.GapWarning)  # the interior point may stop short
        interior = solve(prior, epsilon, solver="interior")
    highs = solve(prior, epsilon, solver="highs", gap=1e-9)
    assert (interior.solver, highs.solver) == ("interior", "highs")
    assert "solver='highs'" in repr(highs)
    assert highs.gap <= 1e-9
    assert highs.value == pytest.approx(interior.value, rel=2.0 * interior.gap + 1e-9)
    assert max(interior.bound, highs.bound) <= min(interior.value, highs.value)
    check(highs, prior, prior.pmf(), epsilon, joint)
    check(interior, prior, prior.pmf(), epsilon, joint)


@pytest.mark.slow
def test_a_gap_that_rounding_does_not_allow_is_told():
    prior = fp.Exchangeable.beta_binomial(30, 0.5, 0.8)
    with pytest.warns(fp.GapWarning, match="wider than gap=1e-12: rounding"):
        solution = fp.solve_pd_dp(prior, 1.0, gap=1e-12, solver="interior")
    assert not solution.converged
    assert solution.gap > 1e-12
    assert fp.solve_pd_dp(prior, 1.0).converged


@pytest.mark.slow
def test_a_thousand_random_pairs_without_a_violation(capsys):
    rng = np.random.default_rng(0)
    broken = solved = worst = flagged = 0
    for trial in range(1000):
        kind, joint = trial % 4, bool(rng.integers(2))
        if kind == 0:
            sizes = [(2, 2), (3,), (2, 3), (4,), (2, 2, 2), (5,)][rng.integers(6)]
            pmf = rng.dirichlet(np.full(int(np.prod(sizes)), rng.choice([0.3, 1, 5]))) + 1e-6
            prior = fp.Dense(pmf / pmf.sum(), sizes)
        elif kind == 1:
            laws = [rng.dirichlet(np.ones(rng.integers(2, 4))) + 1e-3 for _ in range(2)]
            prior = fp.Product([p / p.sum() for p in laws])
        elif kind == 2:
            weights = rng.dirichlet(np.ones(rng.integers(2, 5))) + 1e-4
            prior = fp.Exchangeable(weights / weights.sum())
        else:
            prior = fp.Markov(law(rng, 2, 0.01), kernel(rng, 2, 2, 0.01), 2)
        epsilon = float(10 ** rng.uniform(-4, 1)) + (prior.epsilon_x() if joint else 0.0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            solution = (fp.solve_pd_i if joint else fp.solve_pd_dp)(prior, epsilon)
        assert solution.converged == (solution.gap <= 1e-6) == (not caught)
        flagged += not solution.converged
        level = max(epsilon, solution.level) if solution.method == "closed-form" else epsilon
        broken += violations(solution, prior.pmf(), prior.space.sizes, level, joint) > 0
        worst = max(worst, solution.gap if solution.converged else 0.0)
        solved += 1
    with capsys.disabled():
        print(f"\n{solved} random programs: {broken} violations, {flagged} flagged, {worst:.1e}")
    assert (solved, broken) == (1000, 0)
    assert worst <= 1e-6
    assert flagged <= 1


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32 - 1), st.sampled_from([(2, 2), (3,), (2, 3)]), st.floats(0.05, 3))
def test_theorem_1_and_monotony(seed, sizes, epsilon):
    """D*(e) lies between h(e + eps_X) and h(e), falls in e, and E_d is optimal from eps_hat on."""
    prior = fp.Dense(law(np.random.default_rng(seed), int(np.prod(sizes))), sizes)
    solution, looser = fp.solve_pd_dp(prior, epsilon), fp.solve_pd_dp(prior, epsilon * 1.3)
    n = len(sizes)
    assert fp.h(epsilon + prior.epsilon_x(), n, sizes) <= solution.value * (1 + 1e-6)
    assert solution.bound <= fp.h(epsilon, n, sizes) * (1 + 1e-12)
    assert looser.bound <= solution.value
    # Optimality by duality: no random private mechanism beats the proved bound.
    rng = np.random.default_rng(seed)
    base = kernel(rng, prior.space.size, prior.space.size)
    for mix in (0.0, 0.5, 0.9):
        channel = fp.Channel((1 - mix) * base + mix * base.mean(axis=0), sizes)
        if fp.dp_level(channel) <= epsilon:
            assert fp.distortion(channel, prior) >= solution.bound


@pytest.mark.slow
def test_what_was_reached_is_kept():
    """Near the end rounding may throw the method back; it once returned what it fell to."""
    prior = fp.Exchangeable.beta_binomial(6, 0.5, 0.8)
    for epsilon in np.linspace(0.05, 2.5, 60):
        assert fp.solve_pd_dp(prior, epsilon, gap=2e-7).gap <= 2e-7


def test_zero_probabilities():
    prior = fp.Dense([0.5, 0.5, 0.0, 0.0], [2, 2])
    solution = fp.solve_pd_dp(prior, 0.5)
    check(solution, prior, prior.pmf(), 0.5, joint=False)
    assert solution.value == pytest.approx(naive(prior.pmf(), [2, 2], 0.5, False), rel=2e-6)
    with pytest.raises(fp.Infeasible, match="epsilon_x = inf"):
        fp.solve_pd_i(prior, 5.0)


@pytest.mark.parametrize("epsilon", [1e-8, 1e-5])
def test_tiny_levels(epsilon):
    prior = fp.Dense(law(np.random.default_rng(0), 4), [2, 2])
    solution = fp.solve_pd_dp(prior, epsilon)
    check(solution, prior, prior.pmf(), epsilon, joint=False)
    assert solution.value <= fp.solve_pd_dp(prior, 0.0).value * (1 + 1e-9)
    assert solution.gap <= 1e-6


def test_infeasible_identifiability_names_the_least_level():
    prior = fp.Product([[0.2, 0.8]])
    with pytest.raises(fp.Infeasible, match=repr(prior.epsilon_x())):
        fp.solve_pd_i(prior, 1.0)


@pytest.mark.slow
def test_limits_return_what_was_proved():
    prior = fp.Exchangeable.beta_binomial(30, 0.5, 0.8)
    with pytest.warns(fp.GapWarning, match="the time limit passed"):
        hurried = fp.solve_pd_dp(prior, 0.5, time_limit=1e-3)
    assert not hurried.converged
    assert "converged=False" in repr(hurried)
    assert fp.dp_level(hurried.channel) <= 0.5
    assert hurried.bound <= fp.solve_pd_dp(prior, 0.5).value <= hurried.value
    loose = fp.solve_pd_dp(prior, 0.5, gap=0.05)
    assert loose.gap <= 0.05


@pytest.mark.parametrize(
    "call",
    [
        lambda: fp.solve_pd_dp([0.5, 0.6], 1.0),
        lambda: fp.solve_pd_dp(fp.Uniform(2, 2), -1.0),
        lambda: fp.solve_pd_dp(fp.Uniform(2, 2), 1.0, gap=0.0),
        lambda: fp.solve_pd_dp(fp.Uniform(2, 2), 1.0, time_limit=0.0),
        lambda: fp.solve_pd_dp(fp.Uniform(2, 2), 1.0, solver="simplex"),
        lambda: fp.solve_pd_i(fp.Uniform(2, 2), 1.0, solver=None),
        lambda: fp.solve_r_pd(0, 2, 1.0),
        lambda: fp.privacy_level(fp.Uniform(2, 2), 3.0, "dp"),
        lambda: fp.privacy_level(fp.Uniform(2, 2), 1.0, "magic"),
        lambda: fp.tradeoff_curve(fp.Uniform(2, 2), ["magic"]),
    ],
)
def test_errors(call):
    with pytest.raises(fp.InvalidInput):
        call()


def test_a_program_that_is_too_large_names_the_limit():
    prior = fp.Dense(np.random.default_rng(0).dirichlet(np.ones(1 << 14)), [2] * 14)
    with pytest.raises(fp.TooLarge, match=r"at most 8,192 databases.* epsilon_hat\(\)"):
        fp.solve_pd_dp(prior, 0.05)


# What once failed.


@pytest.mark.filterwarnings("ignore::fastpriv.errors.GapWarning")
@pytest.mark.parametrize("share", [0.0, 1e-12, 1e-10, 1e-8, 1e-6])
def test_identifiability_at_and_just_above_the_priors_own_level(share):
    for prior in (
        fp.Dense([0.1, 0.2, 0.3, 0.4], [2, 2]),
        fp.Dense([0.5, 0.3, 0.2]),
        fp.Exchangeable.beta_binomial(4, 0.5, 0.8),
        fp.Markov([0.6, 0.4], [[0.7, 0.3], [0.4, 0.6]], 3),
    ):
        epsilon = prior.epsilon_x() * (1 + share)
        solution = fp.solve_pd_i(prior, epsilon)
        if solution.method != "closed-form":
            assert violations(solution, prior.pmf(), prior.space.sizes, epsilon, True) == 0
        assert 0 < solution.bound <= solution.value
        best = fp.solve_pd_dp(prior, 0.0).value
        assert solution.value <= best * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", [5e-324, 1e-100, 1e-16, 1e-14, 1e-11, 1e-9])
def test_levels_too_small_to_use(epsilon):
    for prior in (fp.Dense([0.5, 0.3, 0.2]), fp.Exchangeable.beta_binomial(6, 0.5, 0.8)):
        solution = fp.solve_pd_dp(prior, epsilon)
        assert fp.dp_level(solution.channel) <= epsilon
        assert solution.value <= fp.solve_pd_dp(prior, 0.0).value * (1 + 1e-12)


@pytest.mark.filterwarnings("ignore::fastpriv.errors.GapWarning")
@pytest.mark.parametrize("epsilon", [30.0, 100.0, 400.0, 709.0, 800.0])
def test_large_levels_with_zero_probabilities(epsilon):
    for prior in (
        fp.Dense([0.5, 0.5, 0.0]),
        fp.Dense([0.5, 0.0, 0.0, 0.5], [2, 2]),
        fp.Exchangeable([0.5, 0.0, 0.0, 0.5]),
        fp.Product([[0.5, 0.5, 0.0], [0.2, 0.8]]),
    ):
        solution = fp.solve_pd_dp(prior, epsilon)
        sizes = prior.space.sizes
        most = fp.h(epsilon, len(sizes), sizes) * (1 + 1e-9)
        assert solution.value <= most + 5e-324  # rounded up, where h is rounded to 0
        assert solution.level <= epsilon


def test_never_worse_than_e_d_or_a_constant():
    rng = np.random.default_rng(7)
    for _ in range(60):
        pmf = rng.dirichlet(np.full(6, 0.2)) + 1e-9
        prior = fp.Dense(pmf / pmf.sum(), [3, 2])
        epsilon = float(10 ** rng.uniform(-6, 1.3))
        solution = fp.solve_pd_dp(prior, epsilon)
        assert solution.value <= fp.h(epsilon, 2, [3, 2]) * (1 + 1e-12)
        assert solution.value <= fp.solve_pd_dp(prior, 0.0).value * (1 + 1e-12)
        assert solution.bound >= fp.h(epsilon + prior.epsilon_x(), 2, [3, 2]) * (1 - 1e-9)


def test_nearly_uniform_priors_have_an_answer():
    pmf = 1 + 1e-9 * np.random.default_rng(0).random(8)
    prior = fp.Dense(pmf / pmf.sum(), [2] * 3)
    for epsilon in (prior.epsilon_tilde(), 1e-3):
        solution = fp.solve_pd_i(prior, epsilon)
        assert 0 < solution.bound <= solution.value


def test_every_bound_on_the_way_is_below_the_optimum(monkeypatch):
    from fastpriv.design.engines import interior

    plain, seen = interior.lower_bound, []

    def watched(cone, w):
        seen.append(plain(cone, w))
        return seen[-1]

    monkeypatch.setattr(interior, "lower_bound", watched)
    rng = np.random.default_rng(1)
    for sizes in [(2, 2), (3,), (2, 3), (2, 2, 2)] * 4:
        prior = fp.Dense(law(rng, int(np.prod(sizes)), 0.01), sizes)
        epsilon = rng.uniform(0.05, 0.9) * prior.epsilon_hat()
        seen.clear()
        fp.solve_pd_dp(prior, epsilon, solver="interior")
        optimum = naive(prior.pmf(), sizes, epsilon, False)
        assert len(seen) > 3
        assert max(seen) <= optimum * (1 + 1e-9)


@pytest.mark.parametrize(
    "prior",
    [
        fp.Product([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]]),
        fp.Exchangeable.beta_binomial(8, 0.5, 0.8),
        fp.Dense([0.05, 0.2, 0.1, 0.15, 0.3, 0.05, 0.05, 0.1], [2, 2, 2]),
    ],
    ids=repr,
)
@pytest.mark.parametrize("solve", [fp.solve_pd_dp, fp.solve_pd_i])
def test_a_program_out_of_time_falls_back_on_what_needs_none(solve, prior):
    epsilon = prior.epsilon_x() + 0.01 if solve is fp.solve_pd_i else 0.2
    best = solve(prior, epsilon)
    with pytest.warns(fp.GapWarning):
        late = solve(prior, epsilon, time_limit=1e-9)
    assert late.bound <= best.value * (1 + 1e-12)
    assert late.value >= best.bound * (1 - 1e-12)
    assert late.value == pytest.approx(fp.distortion(late.channel, prior), rel=1e-12)
    level = fp.dp_level(late.channel)
    if solve is fp.solve_pd_i:
        level = fp.identifiability_level(late.channel, prior)
    assert level <= epsilon
    assert late.level <= epsilon


def test_a_plain_vector_is_the_law_of_one_row():
    p, law = [0.1, 0.2, 0.7], fp.Dense([0.1, 0.2, 0.7])
    assert fp.solve_pd_dp(p, 0.4).value == fp.solve_pd_dp(law, 0.4).value
    assert fp.solve_pd_i(p, 2.5).value == fp.solve_pd_i(law, 2.5).value
    assert fp.solve_pd_mip(p, 0.1).value == fp.solve_pd_mip(law, 0.1).value
    assert fp.privacy_level(p, 0.1, "dp") == fp.privacy_level(law, 0.1, "dp")
    curves = [fp.tradeoff_curve(v, ["dp"], [0.1, 0.2]).upper["dp"] for v in (p, law)]
    assert (curves[0] == curves[1]).all()
    with pytest.raises(fp.InvalidInput, match="sum to 1"):
        fp.solve_pd_dp([0.5, 0.6], 1.0)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=4),
    st.one_of(st.floats(0.0, 5.0), st.sampled_from([1e-8, 30.0, 190.0])),
)
def test_bits_are_solved_in_closed_form(chances, epsilon):
    prior = fp.Product([[1.0 - p, p] for p in chances])
    solution = fp.solve_pd_dp(prior, epsilon)
    flip = 1 / (1 + exp(mpf(epsilon)))
    truth = sum(min(mpf(float(law.min())), flip) for law in prior.marginals)
    assert solution.bound <= truth <= solution.value * (1 + mpf(10) ** -15)
    assert solution.value <= truth * (1 + mpf(10) ** -9) + mpf(10) ** -300
    assert fp.dp_level(solution.channel) <= epsilon * (1 + 1e-12) + 1e-12
    if epsilon <= 5.0:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", fp.GapWarning)  # probabilities may be tiny
            program = fp.solve_pd_dp(prior, epsilon, solver="highs")
        assert program.bound <= solution.value * (1.0 + 1e-12) + 1e-15
        assert solution.bound <= program.value * (1.0 + 1e-12) + 1e-15
