"""What is too rare for a double is not impossible: it may leak most of all."""

import math

import numpy as np
import pytest
from mpmath import mp

import fastpriv as fp
import oracles as o
from cases import close
from oracles import pointwise as op
from oracles import rare as orr


def covers(values, truths, rel=1e-10):
    """Whether levels agree with exact ones, and none is below its own by more than an ulp.

    Differences of logs of size 2,000, each good to some hundred ulp where it is added up.
    """
    values, truths = np.atleast_1d(values).tolist(), list(truths)
    assert len(values) == len(truths)
    for value, truth in zip(values, truths, strict=True):
        assert close(value, truth, rel, 4e-10), (value, truth)
        below = value < math.inf and o.num(value) < truth - mp.mpf(2) ** -52 * max(1, truth)
        assert not below, (value, truth)


TINY = 1e-150
ROWS = [[TINY, 1 - TINY], [3 * TINY, 1.0], [0.25, 0.75], [1e-60, 1.0]]
FACTORS = [[[0.75, 0.25], [0.5, 0.5]], [[1e-200, 1.0], [2e-200, 1.0]]] * 2
CHAIN = [0.5, 0.5], [[1.0, 1e-160], [1e-160, 1.0]]


def chain_law(initial, transition, n):
    return o.markov_pmf(*o.nums([initial]), o.nums(transition), n)


def noisy_chain_law():
    return o.output_law(o.e_d_matrix([2] * 4, 300.0), chain_law(*CHAIN, 4))


def beta_binomial_law():
    return o.exchangeable_pmf(o.beta_binomial_weights(4, 1e-150, 1e-170), 4)


CHANNELS = [
    (fp.HammingChannel(4, 2, 1.0), lambda: o.e_d_matrix([2] * 4, 1.0)),
    (fp.HammingChannel(4, 2, 400.0), lambda: o.e_d_matrix([2] * 4, 400.0)),
    (fp.ProductChannel(FACTORS), lambda: o.product_matrix([o.nums(f) for f in FACTORS])),
]
PRIORS = [
    pytest.param(fp.Product(ROWS), lambda: o.product_pmf(o.nums(ROWS)), id="product"),
    pytest.param(fp.Markov(*CHAIN, 4), lambda: chain_law(*CHAIN, 4), id="chain"),
    pytest.param(
        fp.HammingChannel(4, 2, 300.0).output(fp.Markov(*CHAIN, 4)),
        noisy_chain_law,
        id="noisy chain",
    ),
    pytest.param(
        fp.Exchangeable.beta_binomial(4, 1e-150, 1e-170), beta_binomial_law, id="exchangeable"
    ),
]


@pytest.fixture
def law(request):
    """The law of a prior with all its digits, made when a test asks for it."""
    return request.param()


@pytest.mark.parametrize(("prior", "law"), PRIORS, indirect=["law"])
@pytest.mark.parametrize(("channel", "matrix"), CHANNELS, indirect=["matrix"])
def test_rare_databases_of_every_structure(channel, matrix, prior, law):
    truth = op.pml(matrix, law)
    covers(fp.pml(channel, prior), truth)
    covers(fp.pml_level(channel, prior), [max(truth)])
    covers(fp.max_information(channel, prior), [max(truth)])
    covers(fp.information_privacy_level(channel, prior), [op.information_privacy(matrix, law)])
    for y in (0, 5, 15):
        covers(fp.pml(channel, prior, y=y), [truth[y]])
    for i in (0, 2):
        rows = op.row_pml(matrix, law, (2,) * 4, i)
        covers(fp.row_pml(channel, prior, i), rows)
        covers(
            [fp.row_pml(channel, prior, i, y=y) for y in (0, 5, 15)], [rows[y] for y in (0, 5, 15)]
        )
        covers(fp.pml_level(channel, prior, row=i), [max(rows)])
    event = np.arange(16) % 3 == 1
    covers(fp.conditional_pml(channel, prior, event), op.pml(matrix, op.given(law, event)))


@pytest.mark.parametrize(("prior", "law"), PRIORS, indirect=["law"])
def test_rare_databases_of_a_matrix_and_of_a_list_of_answers(prior, law):
    rng = np.random.default_rng(5)
    matrix = rng.random((16, 3)) * (rng.random((16, 3)) > 0.3)
    matrix[:, 0] += 1e-6
    matrix /= matrix.sum(axis=1, keepdims=True)
    answers = np.arange(16) % 5
    for channel, rows in (
        (fp.Channel(matrix, [2] * 4), matrix),
        (fp.QueryChannel(answers, matrix[:5], [2] * 4), matrix[answers]),
    ):
        truth = op.pml(rows, law)
        covers(fp.pml(channel, prior), truth)
        covers([fp.pml(channel, prior, y=y) for y in range(3)], truth)
        covers(fp.information_privacy_level(channel, prior), [op.information_privacy(rows, law)])
        covers(fp.row_pml(channel, prior, 1), op.row_pml(rows, law, (2,) * 4, 1))


@pytest.mark.parametrize(("prior", "law"), PRIORS, indirect=["law"])
def test_posterior_odds_of_databases_whose_chances_have_lost_digits(prior, law):
    rng = np.random.default_rng(6)
    matrix, answers = rng.dirichlet(np.ones(3), size=16), np.arange(16) % 5
    q = rng.dirichlet(np.ones(16))
    for channel, rows in (
        (fp.Channel(matrix, [2] * 4), matrix),
        (fp.QueryChannel(answers, matrix[:5], [2] * 4), matrix[answers]),
        (fp.TiltedChannel(fp.Dense(q, [2] * 4), 1.0), o.tilted_matrix(q, [2] * 4, 1.0)),
        (fp.HammingChannel(4, 2, 1.0), o.e_d_matrix([2] * 4, 1.0)),
    ):
        truth = o.identifiability_level(rows, law, (2,) * 4)
        covers(fp.identifiability_level(channel, prior), [truth])


@pytest.mark.parametrize("seed", range(20))
def test_posterior_odds_of_chances_below_the_least_normal_double(seed):
    rng = np.random.default_rng(seed)
    rows = [[1.0, rng.uniform(1, 10) * 1e-161], [1.0, rng.uniform(1, 10) * 1e-161]]
    matrix, law = rng.dirichlet(np.ones(3), size=4), o.product_pmf(o.nums(rows))
    truth = o.identifiability_level(matrix, law, (2, 2))
    covers(fp.identifiability_level(fp.Channel(matrix, [2, 2]), fp.Product(rows)), [truth])


def test_entries_and_chances_below_the_least_normal_double():
    matrix = [[1.0, 1e-310, 5e-324], [1.0, 2e-310, 5e-324], [1.0, 1.5e-310, 1e-323]]
    for p in ([0.5, 0.25, 0.25], [1.0, 1e-200, 1e-320]):
        covers(fp.pml(matrix, p), op.pml(matrix, p))
        covers(fp.information_privacy_level(matrix, p), [op.information_privacy(matrix, p)])
        truth = o.identifiability_level(matrix, p, (3,))
        covers(fp.identifiability_level(matrix, p), [truth])


def test_outputs_whose_chance_is_a_product_too_small_for_a_double():
    matrix, p = [[1.0, 1e-200, 0.0], [1.0, 0.0, 1e-180]], [1.0, 1e-250]
    covers(fp.pml(matrix, p), op.pml(matrix, p))
    assert fp.information_privacy_level(matrix, p) == math.inf
    square = fp.Channel(np.repeat(matrix, 2, axis=0), [2, 2])
    law = np.repeat(p, 2) / 2
    covers(fp.row_pml(square, law, 0), op.row_pml(np.repeat(matrix, 2, axis=0), law, (2, 2), 0))
    assert fp.worst_leakage_factor(matrix, p) == 1.0


CHAINS = [
    ([1.0, 1e-200], [[1.0, 1e-200], [1.0, 1e-200]], [[0.9, 0.1], [0.2, 0.8]]),
    ([1.0, 1e-300], [[1.0, 1e-300], [1.0, 1e-300]], np.eye(2)),
    ([1.0, 0.0, 0.0], [[1.0, 1e-200, 0.0], [0.0, 1.0, 1e-200], [0.0, 0.0, 1.0]], np.eye(3)),
    ([1.0, 0.0, 0.0], [[1.0, 1e-200, 0.0], [0.0, 1.0, 1e-200], [0.0, 0.0, 1.0]], [[1.0]] * 3),
]


@pytest.mark.parametrize(("initial", "transition", "W"), CHAINS)
def test_values_of_a_chain_that_are_too_rare_for_a_double(initial, transition, W):
    prior, m, K = fp.Markov(initial, transition, 3), len(initial), len(W[0])
    law, matrix = chain_law(initial, transition, 3), o.product_matrix([o.nums(W)] * 3)
    product, listed = fp.ProductChannel([W] * 3), fp.Channel(np.kron(np.kron(W, W), W), [m] * 3)
    for i in range(3):
        truth = op.row_pml(matrix, law, (m,) * 3, i)
        covers(fp.row_pml(product, prior, i), truth)
        covers(fp.row_pml(listed, prior, i), truth)
        seen = [y for y in range(K**3) if o.output_law(matrix, law)[y] > 0]
        outputs = product.output_space.rows(np.array(seen))
        covers([fp.row_pml(product, prior, i, y=y) for y in outputs], [truth[y] for y in seen])


def test_a_value_that_a_long_chain_leaves_in_the_end():
    n, W = 3000, [[0.6, 0.4], [0.3, 0.7]]
    prior = fp.Markov([1.0, 0.0], [[0.5, 0.5], [0.0, 1.0]], n)
    # The chain leaves 0 after k rows or stays to the end, which has a chance of 2^-2999.
    stay = o.num(0.6) * (o.num(0.6) / 2) ** (n - 1)
    gone = sum((o.num(0.6) / 2) ** k * o.num(0.3) ** (n - k) for k in range(1, n))
    truth = mp.log(stay * mp.mpf(2) ** (n - 1) / (stay + gone))
    value = fp.row_pml(fp.ProductChannel([W] * n), prior, n - 1, y=[0] * n)
    assert o.num(value) >= truth
    assert close(value, truth, 1e-9, 0.0)


def noisy_counts(n, epsilon):
    """Return a kernel that shows a count as few, some or many."""
    share = np.arange(n + 1) / n
    few, many = np.exp(-epsilon * n * share), np.exp(-epsilon * n * (1 - share))
    return np.stack([few / 2, many / 2, 1 - (few + many) / 2], axis=1)


def test_counts_of_many_bits():
    n = 1500
    kernel = noisy_counts(n, 0.01)
    channel, fair = fp.QueryChannel.count(n, kernel), fp.Product.iid([0.5, 0.5], n)
    truth = max(op.pml(kernel, o.binomial_weights(n, o.num(0.5))))
    covers(fp.pml_level(channel, fair), [truth], 1e-8)
    # Counts whose chance rounds to zero are what leaks most.
    seen = [v if v > 1e-300 else 0 for v in o.binomial_weights(n, o.num(0.5))]
    assert max(op.pml(kernel, seen)) < truth - 0.5


def test_an_exact_count_of_many_bits():
    n = 1200
    channel = fp.QueryChannel.count(n, np.eye(n + 1))
    bits = fp.Product.iid([0.75, 0.25], n)
    leaks = fp.pml(channel, bits)
    for k in (0, 300, 1200):
        covers(leaks[k], [-mp.log(o.binomial_weights(n, o.num(0.25))[k])], 1e-9)
    mixed = fp.Product([[0.75, 0.25]] * 700 + [[0.5, 0.5]] * 500)
    covers(fp.pml(channel, mixed)[n], [-700 * mp.log(0.25) - 500 * mp.log(0.5)], 1e-9)
    # Given a row, the chance of no ones is 1/0.75 times as large: both are too small for doubles.
    covers(fp.row_pml(channel, bits, 0)[0], [-mp.log(0.75)], 1e-6)


def test_beta_binomial_weights_too_small_for_a_double():
    n, a, b = 120, 1e6, 2.0
    prior, weights = fp.Exchangeable.beta_binomial(n, a, b), o.beta_binomial_weights(n, a, b)
    assert (prior.weights == 0.0).any()
    kernel = noisy_counts(n, 2.0)
    counted = fp.QueryChannel.count(n, kernel)
    covers(fp.pml_level(counted, prior), [max(op.pml(kernel, weights))], 1e-9)
    channel = fp.HammingChannel(n, 2, 3.0)
    level = fp.pml_level(channel, prior)
    for ones in (0, 50, 120):
        # The likeliest database behind an output is the output itself.
        r = mp.exp(-3)
        mass = mp.mpf(0)
        for k, weight in enumerate(weights):
            share = sum(
                mp.binomial(ones, j) * mp.binomial(n - ones, k - j) * r ** (ones + k - 2 * j)
                for j in range(max(0, ones + k - n), min(ones, k) + 1)
            )
            mass += weight * share / mp.binomial(n, k)
        y = [1] * ones + [0] * (n - ones)
        covers(fp.pml(channel, prior, y=y), [-mp.log(mass)], 1e-9)
        assert level >= -mp.log(mass)


@pytest.mark.parametrize("epsilon", [1e-8, 1e-4, 1.0, 30.0])
def test_tilted_rows_keep_their_digits(epsilon):
    rows = [[0.5 + 2e-9, 0.5 - 2e-9], [0.3, 0.7], [0.2, 0.5, 0.3]]
    law, sizes = o.product_pmf(o.nums(rows)), (2, 2, 3)
    channel = fp.TiltedChannel(fp.Product(rows), epsilon)
    matrix = o.tilted_matrix(law, sizes, epsilon)
    home = o.output_law(o.product_matrix([o.e_d_matrix([m], epsilon) for m in sizes]), law)
    other = [[0.9, 0.1], [0.5, 0.5], [0.1, 0.1, 0.8]]
    for prior, p in ((channel.prior, home), (fp.Product(other), o.product_pmf(o.nums(other)))):
        truth = op.pml(matrix, p)
        for value, exact in zip(fp.pml(channel, prior), truth, strict=True):
            assert close(value, exact, 1e-11, 0.0)
            assert o.num(value) >= exact
        assert o.num(fp.pml_level(channel, prior)) >= max(truth)
        assert close(fp.pml_level(channel, prior), max(truth), 1e-11, 0.0)
        exact = op.row_pml(matrix, p, sizes, 1)
        for value, truth in zip(fp.row_pml(channel, prior, 1), exact, strict=True):
            assert o.num(value) >= truth
            assert close(value, truth, 1e-11, 1e-13)


@pytest.mark.parametrize("law", [[1.0, 1.4e-16], [1 - 1e-9, 1e-9], [1e-30, 1.0], [0.75, 0.25]])
def test_an_output_that_settles_the_database_has_worst_factor_one(law):
    matrix = [[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]]
    assert fp.worst_leakage_factor(matrix, law) == 1.0
    assert fp.worst_leakage_factor(fp.ProductChannel([matrix] * 3), fp.Product([law] * 3)) == 1.0


def test_rows_that_never_occur_do_not_loosen_the_worst_factor():
    matrix = [[0.5 + 1e-4, 0.5 - 1e-4], [0.5, 0.5], [1.0, 0.0]]
    p = [0.5, 0.5, 0.0]
    truth = op.worst_gain(matrix, p) / o.entropy(p)
    value = fp.worst_leakage_factor(matrix, p)
    assert close(value, truth, 1e-8, 0.0)
    assert o.num(value) >= truth


@pytest.mark.parametrize("c", [0.0, 1e-3, 0.2, 0.5])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_counts_under_an_interval_of_priors_are_those_of_the_list(n, c):
    rng = np.random.default_rng(n)
    kernel = rng.random((n + 1, 4)) + np.eye(n + 1, 4)
    kernel[:, 3] = 0.0
    kernel /= kernel.sum(axis=1, keepdims=True)
    space = fp.Space.hamming(n, 2)
    listed = fp.QueryChannel(space.rows(np.arange(space.size)).sum(axis=1), kernel, space)
    priors = fp.PriorSet.bernoulli_interval(n, c)
    for made in (fp.QueryChannel.count(n, kernel), fp.QueryChannel.histogram(n, 2, kernel)):
        for row in (None, 0, "worst"):
            level = fp.pml_level(listed, priors, row)
            assert fp.pml_level(made, priors, row) == pytest.approx(level, rel=1e-11, abs=1e-12)


@pytest.mark.slow
def test_many_bits_under_an_interval_of_priors():
    n, c = 120, 0.1
    kernel = noisy_counts(n, 0.3)
    channel, priors = fp.QueryChannel.count(n, kernel), fp.PriorSet.bernoulli_interval(n, c)
    one, whole = mp.mpf(0), mp.mpf(0)
    for k in range(n + 1):
        law = mix(o.binomial_weights(k, 1 - o.num(c)), o.binomial_weights(n - k, o.num(c)))
        whole = max(whole, orr.level_of(kernel, law))
        if k < n:
            rest = mix(o.binomial_weights(k, 1 - o.num(c)), o.binomial_weights(n - 1 - k, o.num(c)))
            one = max(one, orr.bit_level(kernel, rest, c))
    covers(fp.pml_level(channel, priors), [whole])
    covers(fp.pml_level(channel, priors, row="worst"), [one])


def mix(a, b):
    """Convolve two laws."""
    found = [mp.mpf(0)] * (len(a) + len(b) - 1)
    for i, u in enumerate(a):
        for j, v in enumerate(b):
            found[i + j] += u * v
    return found


RARE_LAW = [3.785356754250787e-256, 9.02741914737088e-133, 2.4e-273, 1.9e-86, 9.8e-144, 1.0]


@pytest.mark.parametrize("product", [False, True], ids=["dense", "product"])
def test_chances_of_tilted_laws_keep_their_digits_where_weights_underflow(product):
    epsilon = 430.34488335003846
    law = fp.Product([[4e-157, 1.0, 7e-172]] * 2) if product else fp.Dense(RARE_LAW, [3, 2])
    sizes = list(law.space.sizes)
    exact = o.product_pmf([o.normal(p) for p in law.marginals]) if product else o.normal(RARE_LAW)
    truth = o.tilted_matrix(exact, sizes, epsilon)
    found = fp.TiltedChannel(law, epsilon).matrix()
    for row, true_row in zip(found.tolist(), truth, strict=True):
        for value, true in zip(row, true_row, strict=True):
            assert abs(value - true) <= mp.mpf("1e-14") * true + mp.mpf("1e-250")


def test_information_of_a_database_rarer_than_a_normal_double():
    p = 4.5e-310
    found = fp.mutual_information([[0.0, 1.0], [1.0, 0.0]], [1.0, p])
    truth = mp.mpf(p) * (1 - mp.log(mp.mpf(p)))
    assert close(found, truth, 1e-12)
    factors = [[[0.0, 1.0], [1.0, 0.0]], [[1.0], [1.0]]]
    prior = fp.Product([[1.0, p], [0.5, 0.5]])
    assert close(fp.mutual_information(fp.ProductChannel(factors), prior), truth, 1e-12)


CLOSE = [[1.0, 1e-200], [1.0, 3e-200]]
FEW_BITS = fp.Uniform(3, 2)


@pytest.mark.parametrize(
    ("channel", "prior"),
    [
        (CLOSE, [1.0, 1e-200]),
        (fp.QueryChannel([0, 1, 1, 1], CLOSE, [2, 2]), fp.Dense([1.0, 0.0, 0.0, 1e-200], [2, 2])),
        (fp.ProductChannel([CLOSE, CLOSE]), fp.Product([[1.0, 1e-200]] * 2)),
        (fp.HammingChannel(3, 2, 1e-200), FEW_BITS),
        (fp.HammingChannel(3, 2, 1e-200), fp.Exchangeable([0.1, 0.2, 0.3, 0.4])),
        (fp.HammingChannel(3, 2, 1e-200), fp.Markov([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], 3)),
        (
            fp.HammingChannel(3, 2, 1e-200),
            fp.Dense([0.3, 0.0, 0.0, 0.2, 0.1, 0.1, 0.2, 0.1], [2] * 3),
        ),
        (fp.PosteriorChannel(FEW_BITS, 1e-200), FEW_BITS),
        (fp.TiltedChannel(fp.Dense([0.3, 0.2, 0.4, 0.1], [2, 2]), 1e-200), fp.Uniform(2, 2)),
    ],
)
def test_information_below_the_least_double_is_not_zero(channel, prior):
    """Zero says that nothing is told."""
    for measure in (fp.mutual_information, fp.leakage_factor, fp.worst_leakage_factor):
        assert measure(channel, prior) > 0.0
    assert 0.0 < fp.mutual_information(channel, prior) < 1e-320


def test_information_of_many_channels_below_the_least_double():
    same = [[1.0, 1e-200], [1.0, 1e-200]]
    for measure in (fp.mutual_information, fp.leakage_factor, fp.worst_leakage_factor):
        told = measure([CLOSE, same, CLOSE], [1.0, 1e-200])
        assert (told > 0.0).tolist() == [True, False, True]
        assert measure([CLOSE], [1.0, 0.0]).tolist() == [0.0]
        assert measure(same, [0.5, 0.5]) == measure(CLOSE, [1.0, 0.0]) == 0.0
    assert fp.audit(CLOSE, [1.0, 1e-200])["mutual-information"] > 0.0


def test_information_that_is_zero():
    """Values that never meet, or that a row treats alike, tell nothing."""
    alike = fp.ProductChannel([[[0.3, 0.7], [0.3, 0.7], [0.9, 0.1]], CLOSE])
    certain = fp.Product([[0.5, 0.5, 0.0], [1.0, 0.0]])
    assert fp.mutual_information(alike, certain) == 0.0
    assert fp.mutual_information(fp.HammingChannel(2, 2, 0.0), fp.Uniform(2, 2)) == 0.0
    assert fp.mutual_information(fp.HammingChannel(2, 2, 3.0), fp.Product([[1.0, 0.0]] * 2)) == 0.0
