"""Every measure on every pairing of channel and prior, against the full tables."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cases
import fastpriv as fp
import oracles as o
from cases import close, kernel, law, priors

every_pair = cases.every_pair(16)


@pytest.mark.grid
@every_pair
def test_pairings(prior, pmf, channel, matrix):
    sizes = prior.space.sizes
    assert np.allclose(channel.matrix(), [[float(v) for v in row] for row in matrix], rtol=1e-14)
    out = channel.output(prior)
    truth = [float(v) for v in o.output_law(matrix, pmf)]
    assert np.allclose(out.pmf(), truth, rtol=1e-13, atol=1e-300)
    assert close(fp.dp_level(channel), o.dp_level(matrix, sizes), abs_=1e-15)
    identifiability = o.identifiability_level(matrix, pmf, sizes)
    assert close(fp.identifiability_level(channel, prior), identifiability, abs_=1e-15)
    information = fp.mutual_information(channel, prior)
    assert close(information, o.mutual_information(matrix, pmf), abs_=1e-18)
    if "Query" not in repr(channel) and channel.output_space == channel.space:
        assert close(fp.distortion(channel, prior), o.distortion(matrix, pmf, sizes), abs_=1e-18)
    metric = np.random.default_rng(0).random((len(matrix), len(matrix[0])))
    cost = fp.distortion(channel, prior, metric)
    assert close(cost, o.distortion_metric(matrix, pmf, metric))


@pytest.mark.grid
@every_pair
def test_primitives(prior, pmf, channel, matrix):
    columns = list(zip(*matrix, strict=True))
    assert np.allclose(channel.column_maxima(), [float(max(c)) for c in columns], rtol=1e-14)
    assert np.allclose(channel.column_minima(), [float(min(c)) for c in columns], rtol=1e-14)


@pytest.mark.grid
@every_pair
def test_structured_answers_agree_with_the_matrix(prior, pmf, channel, matrix):
    plain = fp.Channel(channel.matrix(), prior.space)
    assert fp.dp_level(plain) == pytest.approx(fp.dp_level(channel), rel=1e-13, abs=1e-14)
    assert fp.mutual_information(plain, prior) == pytest.approx(
        fp.mutual_information(channel, prior), rel=1e-12, abs=1e-15
    )


# E_i.

POSTERIOR = [c for c in priors() if c[1].space.size > 1]
each_posterior = pytest.mark.parametrize(
    ("prior", "pmf"), [c[1:] for c in POSTERIOR], ids=[c[0] for c in POSTERIOR]
)


@pytest.mark.grid
@each_posterior
@pytest.mark.parametrize("above", [0.05, 1.0, 20.0])
def test_posterior_channel(prior, pmf, above):
    """Lemma 4 and the levels that follow from it, against the table of E_i."""
    sizes, epsilon = prior.space.sizes, prior.epsilon_tilde() + above
    channel, matrix = fp.PosteriorChannel(prior, epsilon), o.e_i_matrix(pmf, sizes, epsilon)
    floats = [[float(v) for v in row] for row in matrix]
    assert np.allclose(channel.matrix(), floats, rtol=1e-9, atol=1e-14)
    assert fp.identifiability_level(channel, prior) == epsilon
    assert close(fp.dp_level(channel), o.dp_level(matrix, sizes), abs_=1e-12)
    assert close(fp.distortion(channel, prior), o.distortion(matrix, pmf, sizes))
    assert close(fp.mutual_information(channel, prior), o.mutual_information(matrix, pmf), 1e-10)
    law_y = [float(v) for v in o.output_law(matrix, pmf)]
    assert np.allclose(channel.output(prior).pmf(), law_y, rtol=1e-9, atol=1e-14)
    assert np.allclose(channel.column_maxima(), np.max(floats, axis=0), rtol=1e-9, atol=1e-14)
    assert np.allclose(channel.column_minima(), np.min(floats, axis=0), rtol=1e-9, atol=1e-14)


@each_posterior
def test_posterior_channel_under_another_prior(prior, pmf):
    sizes, epsilon = prior.space.sizes, prior.epsilon_tilde() + 0.4
    channel, matrix = fp.PosteriorChannel(prior, epsilon), o.e_i_matrix(pmf, sizes, epsilon)
    rng = np.random.default_rng(9)
    p = law(rng, prior.space.size)
    for other, table in [
        (fp.Dense(p, sizes), p),
        (fp.Product([law(np.random.default_rng(2), m) for m in sizes]), None),
    ]:
        truth = o.product_pmf([law(np.random.default_rng(2), m) for m in sizes])
        table = truth if table is None else table
        level = o.identifiability_level(matrix, table, sizes)
        assert close(fp.identifiability_level(channel, other), level, 1e-9, 1e-9)
        assert close(fp.distortion(channel, other), o.distortion(matrix, table, sizes), 1e-9)
        information = o.mutual_information(matrix, table)
        assert close(fp.mutual_information(channel, other), information, 1e-9, 1e-12)
        out = [float(v) for v in o.output_law(matrix, table)]
        assert np.allclose(channel.output(other).pmf(), out, rtol=1e-9, atol=1e-14)


@each_posterior
def test_posterior_channel_is_refused_below_epsilon_tilde(prior, pmf):
    least = prior.epsilon_tilde()
    channel = fp.PosteriorChannel(prior, least)
    assert fp.identifiability_level(channel, prior) <= least * (1 + 1e-9) + 1e-9
    if least > 0:
        with pytest.raises(fp.Infeasible, match=f"epsilon_tilde = {least!r}".replace("+", r"\+")):
            fp.PosteriorChannel(prior, least * (1 - 1e-9))


@pytest.mark.parametrize(
    "prior",
    [
        fp.Product([[0.125, 0.875]]),
        fp.Dense([0.125, 0.875]),
        fp.Dense([0.125, 0.375, 0.5]),
        fp.Dense([0.125, 0.375, 0.25, 0.25]),
        fp.Exchangeable([0.25, 0.25, 0.5]),
    ],
    ids=repr,
)
def test_dp_level_of_e_i_where_some_value_hardly_comes_out(prior):
    """At eps_tilde part of p_Y vanishes, and with it the pair that reaches epsilon + eps_X."""
    channel = fp.PosteriorChannel(prior, prior.epsilon_tilde())
    truth = o.dp_level(channel.matrix(), prior.space.sizes)
    assert close(fp.dp_level(channel), truth, 1e-9, 1e-12)


@pytest.mark.parametrize("q", [[0.0, 0.25, 0.75], [0.0, 0.0, 1.0], [0.5, 0.0, 0.5]])
def test_levels_of_tilted_laws_with_values_that_never_come_out(q):
    """The same with exact zeros, which rounding of eps_tilde may or may not leave."""
    channel, prior = fp.TiltedChannel(fp.Dense(q), 1.8), fp.Dense([0.125, 0.375, 0.5])
    matrix = channel.matrix()
    assert close(fp.dp_level(channel), o.dp_level(matrix, [3]), abs_=1e-12)
    level = o.identifiability_level(matrix, prior.pmf(), [3])
    assert close(fp.identifiability_level(channel, prior), level, abs_=1e-12)


def test_posterior_channel_of_a_uniform_prior_is_e_d():
    prior = fp.Uniform(3, 3)
    for epsilon in (0.0, 1e-8, 1.0, 700.0):
        e_i, e_d = fp.PosteriorChannel(prior, epsilon), fp.HammingChannel(3, 3, epsilon)
        assert np.allclose(e_i.matrix(), e_d.matrix(), rtol=1e-12, atol=0)
        assert fp.dp_level(e_i) == pytest.approx(epsilon, rel=1e-15)
        assert fp.mutual_information(e_i, prior) == fp.mutual_information(e_d, prior)


def test_posterior_channel_of_zero_probabilities_never_exists():
    with pytest.raises(fp.Infeasible, match="no finite epsilon"):
        fp.PosteriorChannel(fp.Dense([0.5, 0.5, 0.0, 0.0], [2, 2]), 50.0)


# Extremes.

EXTREME = [
    fp.Product([[0.3, 0.7], [0.2, 0.3, 0.5]]),
    fp.Uniform(2, 3),
    fp.Exchangeable([0.1, 0.2, 0.3, 0.4]),
    fp.Exchangeable({(2, 0, 0): 0.25, (1, 1, 0): 0.25, (0, 1, 1): 0.25, (0, 0, 2): 0.25}),
    fp.Markov([0.3, 0.7], [[0.9, 0.1], [0.4, 0.6]], 3),
    fp.Dense(law(np.random.default_rng(6), 8), [2, 2, 2]),
    fp.Dense(law(np.random.default_rng(6), 6), [3, 2]),
]


@pytest.mark.parametrize("prior", EXTREME, ids=repr)
@pytest.mark.parametrize("epsilon", [1e-8, 1e-4, 1.0, 37.0, 700.0])
def test_e_d_at_extreme_epsilons(prior, epsilon):
    sizes, pmf = prior.space.sizes, list(prior.pmf())
    channel, matrix = fp.HammingChannel(len(sizes), sizes, epsilon), o.e_d_matrix(sizes, epsilon)
    assert close(fp.mutual_information(channel, prior), o.mutual_information(matrix, pmf))
    assert close(fp.distortion(channel, prior), o.distortion(matrix, pmf, sizes))
    assert fp.dp_level(channel) == epsilon
    level = o.identifiability_level(matrix, pmf, sizes)
    assert close(fp.identifiability_level(channel, prior), level)
    assert all(
        close(a, b)
        for a, b in zip(channel.output(prior).pmf(), o.output_law(matrix, pmf), strict=True)
    )


@pytest.mark.parametrize("prior", [p for p in EXTREME if p.epsilon_tilde() < 700], ids=repr)
def test_e_i_at_700(prior):
    sizes, pmf = prior.space.sizes, list(prior.pmf())
    channel, matrix = fp.PosteriorChannel(prior, 700.0), o.e_i_matrix(pmf, sizes, 700)
    assert close(fp.mutual_information(channel, prior), o.mutual_information(matrix, pmf))
    assert close(fp.distortion(channel, prior), o.distortion(matrix, pmf, sizes))
    assert close(fp.dp_level(channel), o.dp_level(matrix, sizes))


@pytest.mark.parametrize("scale", [1e-8, 1e-4, 0.3])
@pytest.mark.parametrize("sizes", [(6,), (2, 3), (2, 2, 2)])
def test_nearly_useless_matrices(sizes, scale):
    rng = np.random.default_rng(3)
    size = int(np.prod(sizes))
    base = law(rng, 5)
    matrix = base * (1 + scale * (rng.random((size, 5)) - 0.5))
    matrix /= matrix.sum(axis=1, keepdims=True)
    p = np.ones(size) + scale * rng.random(size)
    p /= p.sum()
    prior, channel = fp.Dense(p, sizes), fp.Channel(matrix, sizes)
    assert close(fp.mutual_information(channel, prior), o.mutual_information(matrix, p))
    assert close(fp.dp_level(channel), o.dp_level(matrix, sizes))
    level = o.identifiability_level(matrix, p, sizes)
    assert close(fp.identifiability_level(channel, prior), level)
    assert close(prior.epsilon_x(), o.epsilon_x(p, sizes))


@pytest.mark.parametrize("scale", [1e-8, 0.3])
def test_nearly_useless_factors(scale):
    rng = np.random.default_rng(4)
    factors = []
    for m in (2, 3):
        matrix = law(rng, 3) * (1 + scale * (rng.random((m, 3)) - 0.5))
        factors.append(matrix / matrix.sum(axis=1, keepdims=True))
    p = law(rng, 6)
    table = o.product_matrix([[[o.num(v) for v in row] for row in f] for f in factors])
    channel = fp.ProductChannel(factors)
    for prior, pmf in [
        (fp.Dense(p, [2, 3]), p),
        (
            fp.Product([[0.3, 0.7], [0.2, 0.3, 0.5]]),
            fp.Product([[0.3, 0.7], [0.2, 0.3, 0.5]]).pmf(),
        ),
    ]:
        assert close(fp.mutual_information(channel, prior), o.mutual_information(table, pmf))
        assert close(fp.dp_level(channel), o.dp_level(table, [2, 3]))


def test_levels_beyond_the_range_of_a_ratio():
    matrix = np.array([[1.0, 5e-320], [5e-320, 1.0]])
    assert close(fp.dp_level(matrix), o.dp_level(matrix, [2]))
    assert fp.dp_level([[1.0, 0.0], [0.5, 0.5]]) == math.inf
    assert fp.dp_level([[1.0, 0.0], [1.0, 0.0]]) == 0.0


def test_one_of_everything():
    channel, prior = fp.Channel([[1.0]]), fp.Dense([1.0])
    assert fp.dp_level(channel) == fp.identifiability_level(channel, prior) == 0.0
    assert fp.mutual_information(channel, prior) == fp.distortion(channel, prior) == 0.0
    assert fp.dp_level(fp.HammingChannel(3, 1, 2.0)) == 0.0
    assert (
        fp.identifiability_level(fp.PosteriorChannel(fp.Uniform(2, 1), 1.0), fp.Uniform(2, 1)) == 0
    )


# The paper's statements, as properties.


@settings(deadline=None, max_examples=50)
@given(
    st.integers(0, 2**32 - 1), st.sampled_from([(2, 2), (3,), (2, 3), (2, 2, 2)]), st.floats(0, 5)
)
def test_lemma_5_and_theorem_1(seed, sizes, epsilon):
    """E_d has distortion h(e) and identifiability e + eps_X; no mechanism at e is below h(e)."""
    rng = np.random.default_rng(seed)
    prior = fp.Dense(law(rng, int(np.prod(sizes))), sizes)
    channel = fp.HammingChannel(len(sizes), sizes, epsilon)
    moved = sum(fp.h(epsilon, 1, m) for m in sizes)
    assert fp.distortion(channel, prior) == pytest.approx(moved, rel=1e-13)
    assert fp.identifiability_level(channel, prior) == pytest.approx(
        epsilon + prior.epsilon_x(), rel=1e-13
    )
    # Theorem 1 through R-PD (Lemma 1): a mechanism of identifiability e has distortion >= h(e).
    any_channel = fp.Channel(kernel(rng, prior.space.size, prior.space.size, 0.3), sizes)
    level = fp.identifiability_level(any_channel, prior)
    floor = sum(fp.h(level, 1, m) for m in sizes)
    assert fp.distortion(any_channel, prior) >= floor * (1 - 1e-12)
    assert level <= fp.dp_level(any_channel) + prior.epsilon_x() + 1e-12


@settings(deadline=None, max_examples=50)
@given(
    st.integers(0, 2**32 - 1), st.sampled_from([(2, 2), (3,), (2, 3), (2, 2, 2)]), st.floats(0, 3)
)
def test_lemma_4_and_theorem_2(seed, sizes, above):
    """E_i has distortion h(e), level e, and the KKT point of rate-distortion at slope e."""
    rng = np.random.default_rng(seed)
    prior = fp.Dense(law(rng, int(np.prod(sizes))), sizes)
    epsilon = prior.epsilon_tilde() + above
    e_i, e_d = fp.PosteriorChannel(prior, epsilon), fp.HammingChannel(len(sizes), sizes, epsilon)
    moved = sum(fp.h(epsilon, 1, m) for m in sizes)
    assert fp.distortion(e_i, prior) == pytest.approx(moved, rel=1e-12)
    assert fp.mutual_information(e_i, prior) <= fp.mutual_information(e_d, prior) * (1 + 1e-10)
    assert fp.dp_level(e_i) <= epsilon + prior.epsilon_x() + 1e-9
    # KKT: W = q K / (K q) with sum_x p K / (K q) = 1 wherever q > 0.
    q, K = e_i.output(prior).pmf(), e_d.matrix() / e_d.matrix()[0, 0]
    assert np.allclose(K.T @ (prior.pmf() / (K @ q)), 1.0, rtol=1e-9)


@pytest.mark.slow
def test_markov_information_is_bracketed_when_it_does_not_fit(monkeypatch):
    from fastpriv.priors import markov

    chain = fp.Markov([0.9, 0.1], [[0.8, 0.2], [0.3, 0.7]], 12)
    channel = fp.HammingChannel(12, 2, 1.0)
    exact = fp.mutual_information(channel, chain)
    assert exact == pytest.approx(fp.mutual_information(channel, fp.Dense(chain.pmf(), [2] * 12)))
    previous = math.inf
    for window in (2, 4, 6, 8):
        monkeypatch.setattr(markov, "_MAX_WINDOW", 2**window)
        bracket = fp.mutual_information(channel, chain)
        assert exact in bracket
        assert bracket.width < previous
        previous = bracket.width
    monkeypatch.undo()
    long = fp.Markov([0.9, 0.1], [[0.8, 0.2], [0.3, 0.7]], 1_000_000)
    bracket = fp.mutual_information(fp.HammingChannel(1_000_000, 2, 1.0), long)
    assert bracket.width < 1e-3 * bracket.upper
    entropy = fp.HammingChannel(1_000_000, 2, 1.0).output(long).entropy()
    assert entropy.width == pytest.approx(bracket.width, abs=1e-12 * entropy.upper)


@pytest.mark.slow
def test_a_skewed_start_does_not_fool_the_bracket():
    # The first row is nearly constant and all others fair: windows must be taken where they are.
    for start, step in [([0.99, 0.01], [[0.5, 0.5]] * 2), ([0.5, 0.5], [[0.99, 0.01]] * 2)]:
        exact = fp.mutual_information(fp.HammingChannel(10, 2, 2.0), fp.Markov(start, step, 10))
        rows = [start] + [step[0]] * 9
        free = fp.mutual_information(fp.HammingChannel(10, 2, 2.0), fp.Product(rows))
        assert exact == pytest.approx(free, rel=1e-13)
        n = 1000
        long = fp.mutual_information(fp.HammingChannel(n, 2, 2.0), fp.Markov(start, step, n))
        rows = [start] + [step[0]] * (n - 1)
        assert fp.mutual_information(fp.HammingChannel(n, 2, 2.0), fp.Product(rows)) in long


def test_output_keeps_structure():
    channel = fp.HammingChannel(3, 2, 1.0)
    assert isinstance(channel.output(fp.Uniform(3, 2)), fp.Product)
    assert isinstance(channel.output(fp.Exchangeable([0.1, 0.2, 0.3, 0.4])), fp.Exchangeable)
    chain = fp.Markov([0.3, 0.7], [[0.9, 0.1], [0.4, 0.6]], 3)
    hidden = channel.output(chain)
    assert isinstance(hidden, fp.HiddenMarkov)
    dense = fp.Dense(hidden.pmf(), [2] * 3)
    assert hidden.epsilon_x() == pytest.approx(dense.epsilon_x(), rel=1e-14)
    assert hidden.epsilon_hat() == pytest.approx(dense.epsilon_hat(), rel=1e-14)
    assert hidden.entropy() == pytest.approx(dense.entropy(), rel=1e-13)
    assert hidden.min_entropy() == dense.min_entropy()
    rows = np.arange(3)
    assert np.allclose(hidden.marginal_sum(rows), dense.marginal_sum(rows), rtol=1e-14)
    rows = hidden.space.rows(np.arange(8))
    assert np.allclose(hidden.log_prob(rows), np.log(dense.pmf()), rtol=1e-13)
    again = channel.output(hidden)
    assert np.allclose(again.pmf(), channel.output(dense).pmf(), rtol=1e-14)
    big = fp.HammingChannel(1_000_000, 2, 1.0).output(
        fp.Markov([0.5, 0.5], [[0.9, 0.1]] * 2, 10**6)
    )
    assert np.isfinite(big.log_prob(np.zeros(10**6, dtype=int)))


@pytest.mark.parametrize(
    "make",
    [
        lambda: fp.HammingChannel(2, [2, 3], 0.8),
        lambda: fp.ProductChannel([kernel(np.random.default_rng(1), m, m) for m in (2, 3)]),
        lambda: fp.Channel(kernel(np.random.default_rng(2), 6, 6), [2, 3]),
        lambda: fp.Channel(kernel(np.random.default_rng(2), 6, 4), [2, 3]),
        lambda: fp.QueryChannel([0, 1, 2, 0, 1, 2], kernel(np.random.default_rng(3), 3, 2), [2, 3]),
        lambda: fp.PosteriorChannel(fp.Dense(law(np.random.default_rng(4), 6), [2, 3]), 3.0),
        lambda: fp.PosteriorChannel(fp.Product([[0.4, 0.6], [0.3, 0.3, 0.4]]), 3.0),
        lambda: fp.TiltedChannel(fp.Dense(law(np.random.default_rng(5), 6), [2, 3]), 0.4),
    ],
)
def test_samples_follow_the_channel(make):
    channel, x, draws = make(), 4, 30_000
    rows = np.repeat(channel.space.rows(np.array([x])), draws, axis=0)
    out = channel.sample(rows, rng=7)
    if channel.output_space == channel.space:
        assert out.shape == rows.shape
        out = channel.space.index(out)
    expected = draws * channel.matrix()[x]
    counts = np.bincount(out, minlength=len(expected))
    chi = ((counts - expected) ** 2 / expected).sum()
    assert chi < len(expected) + 6 * np.sqrt(2 * len(expected))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: fp.dp_level([[0.5, 0.6], [0.5, 0.5]]), "row 0 sums to"),
        (lambda: fp.dp_level([0.5, 0.5]), "list of rows"),
        (lambda: fp.dp_level([[np.nan, 1.0]]), "NaN"),
        (lambda: fp.Channel(np.eye(4), [2, 3]), "6 databases but the matrix has 4"),
        (lambda: fp.HammingChannel(2, 2, -1.0), "at least 0"),
        (lambda: fp.HammingChannel(2, 2, math.inf), "finite"),
        (lambda: fp.HammingChannel(2, 2, math.nan), "finite"),
        (lambda: fp.HammingChannel(2, 2, "a lot"), "number"),
        (lambda: fp.ProductChannel([]), "one item per row"),
        (lambda: fp.ProductChannel([np.eye(2), [[0.5, 0.4]]]), "factor 1"),
        (lambda: fp.QueryChannel([0, 3], np.eye(2), [2]), "rows of the kernel"),
        (lambda: fp.QueryChannel([0], np.eye(2), [2]), "one integer for each"),
        (lambda: fp.PosteriorChannel([0.5, 0.6], 1.0), "Distribution"),
        (
            lambda: fp.mutual_information(fp.HammingChannel(2, 2, 1.0), fp.Uniform(3, 2)),
            "same space",
        ),
        (lambda: fp.mutual_information(fp.HammingChannel(2, 2, 1.0), [0.5, 0.5]), "4 databases"),
        (lambda: fp.distortion(fp.Channel(np.ones((2, 1))), [0.5, 0.5]), "metric must be given"),
        (lambda: fp.distortion(np.eye(2), [0.5, 0.5], np.eye(3)), "shape"),
        (lambda: fp.HammingChannel(2, 2, 1.0).sample([0, 1]), "shape"),
        (lambda: fp.HammingChannel(2, 2, 1.0).sample([[0.0, 1.0]]), "integer"),
    ],
)
def test_errors_say_what_was_wrong(make, words):
    with pytest.raises(fp.InvalidInput, match=words):
        make()


def test_matrices_that_do_not_fit_are_refused():
    with pytest.raises(fp.TooLarge, match="without its matrix"):
        fp.HammingChannel(40, 2, 1.0).matrix()
    with pytest.raises(fp.TooLarge, match="log_prob"):
        fp.Uniform(100, 2).pmf()


def test_labels_in_another_order_are_refused():
    """Matrices and vectors are read by position: labels that say otherwise are a mistake."""
    pandas = pytest.importorskip("pandas")
    W = pandas.DataFrame([[0.9, 0.1], [0.2, 0.8]], index=["a", "b"])
    p = pandas.Series([0.3, 0.7], index=["b", "a"])
    with pytest.raises(fp.InvalidInput, match="labels"):
        fp.mutual_information(W, p)
    aligned = fp.mutual_information(W, p.reindex(W.index))
    assert aligned == fp.mutual_information(W.to_numpy(), [0.7, 0.3])
    assert fp.mutual_information(W, [0.7, 0.3]) == aligned


def test_rows_of_one_value_have_no_neighbours():
    chain = fp.Markov([1.0], [[1.0]], 3)
    for prior in (chain, fp.Uniform(3, 1), fp.Dense([1.0], [1, 1, 1])):
        assert fp.identifiability_level(fp.HammingChannel(3, 1, 0.1), prior) == 0.0


@pytest.mark.parametrize("sizes", [[2], [2, 2]])
def test_identifiability_covers_the_rounding_of_products(sizes):
    """Levels from 0.1 to 1 come from products p W, each off by a rounding error."""
    rng, N = np.random.default_rng(0), math.prod(sizes)
    for _ in range(150):
        p, W = rng.dirichlet([20.0] * N), rng.dirichlet([500.0] * 2, size=N)
        truth = o.identifiability_level(o.nums(W), o.nums([p])[0], sizes)
        assert truth <= fp.identifiability_level(fp.Channel(W, fp.Space(sizes)), fp.Dense(p, sizes))
