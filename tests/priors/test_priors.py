"""Every prior against the full table of its probabilities."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
import oracles as o
from cases import close, kernel, law, priors, simplex_weights

PRIORS = priors()
IDS = [name for name, _, _ in PRIORS]
each_prior = pytest.mark.parametrize(("prior", "pmf"), [c[1:] for c in PRIORS], ids=IDS)


@each_prior
def test_probabilities(prior, pmf):
    sizes = prior.space.sizes
    assert np.allclose(prior.pmf(), [float(v) for v in pmf], rtol=1e-14, atol=0)
    logs = prior.log_prob(prior.space.rows(np.arange(prior.space.size)))
    assert np.allclose(logs, np.log([float(v) for v in pmf]), rtol=1e-13, atol=1e-14)
    assert prior.log_prob(o.databases(sizes)[-1]) == pytest.approx(float(o.log(o.num(pmf[-1]))))


@each_prior
def test_entropies(prior, pmf):
    assert close(prior.entropy(), o.entropy(pmf), abs_=1e-15)
    assert close(prior.min_entropy(), o.min_entropy(pmf), abs_=1e-15)


@each_prior
def test_epsilons(prior, pmf):
    sizes = prior.space.sizes
    assert close(prior.epsilon_x(), o.epsilon_x(pmf, sizes), abs_=2e-15)
    assert close(prior.epsilon_hat(), o.epsilon_hat(pmf, sizes), abs_=2e-15)


# Product floats are not exact products, and eps_tilde of the rounded table differs from that of
# the rows (it amplifies rounding); products have their own test in exact arithmetic below.
@pytest.mark.parametrize(
    ("prior", "pmf"),
    [c[1:] for c in PRIORS if not isinstance(c[1], fp.Product)],
    ids=[c[0] for c in PRIORS if not isinstance(c[1], fp.Product)],
)
def test_epsilon_tilde(prior, pmf):
    assert close(prior.epsilon_tilde(), o.epsilon_tilde(pmf, prior.space.sizes), 1e-11, 1e-14)


def test_epsilon_tilde_of_products_in_exact_arithmetic():
    rows = [[Fraction(1, 8), Fraction(7, 8)], [Fraction(1, 4), Fraction(1, 4), Fraction(1, 2)]]
    prior = fp.Product([[float(v) for v in row] for row in rows])
    truth = o.epsilon_tilde(o.product_pmf(rows), (2, 3))
    assert close(prior.epsilon_tilde(), truth, 1e-14)
    assert close(prior.epsilon_hat(), o.epsilon_hat(o.product_pmf(rows), (2, 3)), 1e-14)


@pytest.mark.parametrize("n", [4, 20])
def test_epsilon_tilde_survives_rounded_binomial_weights(n):
    # A bare sign test gives 1.184 at n = 20.
    prior = fp.Exchangeable(scipy.stats.binom.pmf(np.arange(n + 1), n, 0.3))
    assert prior.epsilon_tilde() == pytest.approx(np.log(7 / 3), rel=1e-9)
    dense = fp.Dense(fp.Product.iid([0.7, 0.3], min(n, 12)).pmf(), [2] * min(n, 12))
    assert dense.epsilon_tilde() == pytest.approx(np.log(7 / 3), rel=1e-9)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_epsilons_are_ordered(data):
    sizes = tuple(data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=4)))
    weights = data.draw(
        st.lists(st.integers(1, 60), min_size=int(np.prod(sizes)), max_size=int(np.prod(sizes)))
    )
    prior = fp.Dense(np.array(weights) / sum(weights), sizes)
    x, hat, tilde = prior.epsilon_x(), prior.epsilon_hat(), prior.epsilon_tilde()
    assert x <= hat * (1 + 1e-14)
    assert hat <= tilde * (1 + 1e-12)
    if set(sizes) <= {1, 2}:
        assert x == pytest.approx(hat, rel=1e-13)
    # R^-1 p is a law at eps_tilde and, by the definition, no longer one below it.
    if tilde > 0:
        assert min(o.inverse_output(prior.pmf(), sizes, tilde * (1 + 1e-9))) >= 0
        if tilde > hat * (1 + 1e-6):
            assert min(o.inverse_output(prior.pmf(), sizes, tilde * (1 - 1e-6))) < 0


def test_zero_probability_means_infinite_levels():
    cases = [
        fp.Dense([0.5, 0.5, 0.0, 0.0], [2, 2]),
        fp.Product([[1.0, 0.0], [0.5, 0.5]]),
        fp.Exchangeable([0.5, 0.5, 0.0]),
        fp.Markov([0.5, 0.5], [[1.0, 0.0], [0.5, 0.5]], 3),
        fp.Exchangeable({(2, 0, 0): 0.5, (0, 2, 0): 0.5}),
    ]
    for prior in cases:
        assert prior.epsilon_x() == prior.epsilon_hat() == prior.epsilon_tilde() == np.inf
        assert np.isfinite(prior.entropy())
        assert np.isfinite(prior.min_entropy())


def test_denormal_ratios_do_not_overflow():
    prior = fp.Dense([1.0, 5e-320], [2])
    truth = o.log(o.num(1.0) / o.num(5e-320))
    assert close(prior.epsilon_x(), truth)
    assert close(prior.epsilon_hat(), truth)
    assert close(fp.Product([[1.0, 5e-320]]).epsilon_x(), truth)
    assert close(fp.Product([[1.0, 5e-320]]).epsilon_hat(), truth)


@each_prior
def test_shell_profile(prior, pmf):
    for y in (0, prior.space.size - 1, prior.space.size // 2):
        truth = [float(v) for v in o.shell_profile(pmf, y, prior.space.sizes)]
        assert np.allclose(fp.shell_profile(prior, y), truth, rtol=1e-13, atol=1e-16)
        rows = prior.space.rows(y)
        assert np.array_equal(fp.shell_profile(prior, rows), fp.shell_profile(prior, y))


def test_shell_profile_answers_the_output_law_for_every_epsilon():
    prior = fp.Dense(law(np.random.default_rng(3), 27), [3] * 3)
    profile = fp.shell_profile(prior, 11)
    for epsilon in (0.0, 0.7, 5.0):
        r = np.exp(-epsilon)
        direct = (profile * r ** np.arange(4)).sum() / (1 + 2 * r) ** 3
        assert fp.HammingChannel(3, 3, epsilon).output(prior).pmf()[11] == pytest.approx(
            direct, rel=1e-13
        )


@each_prior
def test_samples_follow_the_law(prior, pmf):
    draws = 20_000
    rows = prior.sample(draws, rng=1)
    assert rows.shape == (draws, prior.space.n)
    counts = np.bincount(prior.space.index(rows), minlength=prior.space.size)
    expected = draws * np.array([float(v) for v in pmf])
    chi = ((counts - expected) ** 2 / expected).sum()
    assert chi < prior.space.size + 6 * np.sqrt(2 * prior.space.size)
    assert np.array_equal(rows, prior.sample(draws, rng=np.random.default_rng(1)))


def test_exchangeable_from_counts_and_array_agree():
    array, counts = simplex_weights(np.random.default_rng(5), 3, 3)
    assert fp.Exchangeable(array) == fp.Exchangeable(counts)


def test_beta_binomial():
    weights = fp.Exchangeable.beta_binomial(12, 0.5, 0.8).weights
    truth = [float(w) for w in o.beta_binomial_weights(12, 0.5, 0.8)]
    assert np.allclose(weights, truth, rtol=1e-13, atol=0)


@pytest.mark.slow
def test_large_structures_never_expand():
    n = 1_000_000
    rng = np.random.default_rng(0)
    chain = fp.Markov([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], n)
    free = fp.Product.iid([0.6, 0.3, 0.1], n)
    for prior in (chain, free):
        rows = prior.sample(1, rng=rng)
        assert np.isfinite(prior.log_prob(rows[0]))
        assert 0 < prior.entropy() < n * np.log(3)
        assert prior.epsilon_x() > 0
    # The chain's entropy rate, from its stationary law (2/3, 1/3).
    rate = 2 / 3 * float(o.entropy([0.9, 0.1])) + 1 / 3 * float(o.entropy([0.2, 0.8]))
    assert chain.entropy() / n == pytest.approx(rate, rel=1e-5)
    assert chain.epsilon_hat() < chain.epsilon_tilde().lower < chain.epsilon_tilde().upper < 5
    bits = fp.Exchangeable.beta_binomial(5000, 0.5, 0.8)
    assert bits.epsilon_x() == pytest.approx(np.log(4999.8 / 0.5), rel=1e-12)
    assert bits.epsilon_hat() == pytest.approx(bits.epsilon_x(), rel=1e-12)
    assert bits.epsilon_tilde() >= bits.epsilon_hat()


def test_exchangeable_epsilon_tilde_matches_dense():
    prior = fp.Exchangeable.beta_binomial(10, 0.5, 0.8)
    dense = fp.Dense(prior.pmf(), [2] * 10)
    assert prior.epsilon_tilde() == pytest.approx(dense.epsilon_tilde(), rel=1e-11)


@pytest.mark.slow
def test_wild_dense_prior_is_not_declared_feasible_where_rounding_hides_it():
    # At eps_hat ~ 0.3 the inverse of 14 axes amplifies rounding by 1e11 or so.
    rng = np.random.default_rng(8)
    pmf = 1 + 0.1 * rng.random(2**14)
    prior = fp.Dense(pmf / pmf.sum(), [2] * 14)
    tilde = prior.epsilon_tilde()
    assert tilde > 2 * prior.epsilon_hat()
    exact = [Fraction(v) for v in prior.pmf()[:64]]
    small = fp.Dense(prior.pmf()[:64] / prior.pmf()[:64].sum(), [2] * 6)
    assert close(small.epsilon_tilde(), o.epsilon_tilde(exact, [2] * 6), 1e-9)
    fp.PosteriorChannel(prior, tilde)


@pytest.mark.parametrize("kind", ["iid", "product", "exchangeable", "markov", "dense"])
def test_estimate(kind):
    rng = np.random.default_rng(4)
    truth = fp.Markov([0.5, 0.3, 0.2], kernel(rng, 3, 3), 3)
    samples = truth.sample(30_000, rng=rng)
    prior = fp.estimate(samples, kind, smoothing=0.5, sizes=[3, 3, 3])
    assert prior.space == truth.space
    assert prior.epsilon_x() < np.inf
    if kind in ("markov", "dense"):
        assert np.abs(prior.pmf() - truth.pmf()).max() < 0.01
    # The stated smoothing, to the digit, on a sample small enough to count by hand.
    few = fp.estimate([[0, 1], [1, 1]], kind, smoothing=1.0, sizes=[2, 2]).pmf()
    by_hand = {
        "iid": o.product_pmf([[2 / 6, 4 / 6]] * 2),
        "product": o.product_pmf([[0.5, 0.5], [0.25, 0.75]]),
        "exchangeable": o.exchangeable_pmf([1 / 5, 2 / 5, 2 / 5], 2),
        "markov": o.markov_pmf([0.5, 0.5], [[1 / 3, 2 / 3], [1 / 3, 2 / 3]], 2),
        "dense": [1 / 6, 2 / 6, 1 / 6, 2 / 6],
    }[kind]
    assert np.allclose(few, by_hand, rtol=1e-15)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: fp.Dense([0.5, 0.6]), "sum to 1"),
        (lambda: fp.Dense([1.5, -0.5]), "at least 0"),
        (lambda: fp.Dense([np.nan, 1.0]), "NaN"),
        (lambda: fp.Dense([0.5, 0.5], [3]), "2 entries"),
        (lambda: fp.Dense([]), "empty"),
        (lambda: fp.Dense("abc"), "must be an array; got 'abc'"),
        (lambda: fp.Product([]), "one item per row"),
        (lambda: fp.Product([[0.5, 0.5], [0.5, 0.4]]), "record 1"),
        (lambda: fp.Product.iid([0.5, 0.5], 0), "at least 1"),
        (lambda: fp.Exchangeable([1.0]), ">= 2 entries"),
        (lambda: fp.Exchangeable(np.full((3, 3), 1 / 9)), "more than n"),
        (lambda: fp.Exchangeable({(1, 1): 0.5, (2, 1): 0.5}), "add up"),
        (lambda: fp.Exchangeable.beta_binomial(3, 0.0, 1.0), "above 0"),
        (lambda: fp.Markov([0.5, 0.5], [[1.0]], 3), "2 x 2"),
        (lambda: fp.Markov([0.5, 0.5], [[0.5, 0.6], [0.5, 0.5]], 3), "row 0"),
        (lambda: fp.Uniform(2, [2, 3, 4]), "one for each"),
        (lambda: fp.Uniform(2.5, 2), "integer"),
        (lambda: fp.estimate([[0, 1]], "magic"), "kind must be"),
        (lambda: fp.estimate([[0, -1]], "iid"), "at least 0"),
        (lambda: fp.estimate([[0, 5]], "iid", sizes=[2, 2]), "0 .. size - 1"),
        (lambda: fp.Uniform(2, 2).log_prob([0, 2]), "0 .. size - 1"),
        (lambda: fp.Uniform(2, 2).log_prob([0]), "n = 2"),
        (lambda: fp.Uniform(2, 2).sample(1, rng="seed"), "rng"),
        (lambda: fp.shell_profile(fp.Uniform(2, 2), 4), "below"),
    ],
)
def test_errors_say_what_was_wrong(make, words):
    with pytest.raises(fp.InvalidInput, match=words):
        make()


def test_a_prior_does_not_follow_later_changes_of_the_array_it_was_given():
    pmf = np.array([0.5, 0.5])
    prior = fp.Dense(pmf)
    pmf[:] = [1.0, 0.0]
    assert prior.epsilon_x() == 0.0
    with pytest.raises(ValueError, match="read-only"):
        prior.pmf()[0] = 1.0


@pytest.mark.slow
def test_a_million_exchangeable_bits():
    prior = fp.Exchangeable.beta_binomial(10**6, 1.0, 1.0)  # flat over counts
    rows = np.zeros(10**6, dtype=int)
    assert prior.log_prob(rows) == pytest.approx(-math.log(10**6 + 1))
    rows[: 10**6 // 2] = 1
    half = mpmath.log(mpmath.binomial(10**6, 10**6 // 2)) + mpmath.log(10**6 + 1)
    assert prior.log_prob(rows) == pytest.approx(-float(half), rel=1e-13)


@each_prior
def test_marginals(prior, pmf):
    sizes = prior.space.sizes
    for i, m in enumerate(sizes):
        truth = [0] * m
        for x, p in zip(o.databases(sizes), pmf, strict=True):
            truth[x[i]] += p
        assert np.allclose(prior.marginal(i), [float(p) for p in truth], rtol=1e-13, atol=1e-16)


@pytest.mark.parametrize("row", [-1, 3, 1.5, "0", None])
def test_a_marginal_is_that_of_a_row(row):
    with pytest.raises(fp.InvalidInput, match="i must be"):
        fp.Uniform(3, 2).marginal(row)


def test_a_marginal_is_not_part_of_the_prior():
    prior = fp.Product.iid([0.6, 0.4], 2)
    prior.marginal(0)[:] = 0.0
    assert prior.marginal(0).tolist() == [0.6, 0.4]


class Given(fp.Distribution):
    """A prior that defines no more than the protocol asks of one."""

    space = fp.Space([2, 3])

    def pmf(self):
        return np.array([0.1, 0.2, 0.3, 0.1, 0.1, 0.2])

    def log_probabilities(self, rows):
        return np.log(self.pmf()[self.space.index(rows)])

    def entropy(self):
        return fp.Dense(self.pmf(), self.space).entropy()

    def draw(self, k, rng):
        return self.space.rows(rng.choice(6, k, p=self.pmf()))


def test_four_methods_make_a_prior():
    prior, dense, channel = (
        Given(),
        fp.Dense(Given().pmf(), [2, 3]),
        fp.HammingChannel(2, [2, 3], 1),
    )
    for ask in (
        lambda p: (p.epsilon_x(), p.epsilon_hat(), p.epsilon_tilde(), p.min_entropy()),
        lambda p: p.marginal(1).tolist(),
        lambda p: p.given({0: 1}).pmf().tolist(),
        lambda p: fp.pml_level(channel, p),
        lambda p: fp.mutual_information(channel, p),
        lambda p: fp.identifiability_level(channel, p),
    ):
        assert ask(prior) == ask(dense)
    assert prior.log_smallest() <= dense.log_smallest() <= prior.log_smallest() + 1e-12
