"""Disclosure, singling out and threshold queries, against posteriors in Fractions."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fastpriv as fp
import oracles as o
from cases import channels, close, law, priors
from oracles import disclosure as od
from oracles import pointwise as op

SPACES = [(2,), (3,), (2, 2), (3, 2), (2, 3, 1), (1,), (2, 2, 2)]
CHANNELS = [
    pytest.param(sizes, channel, id=f"{sizes}-{name}")
    for sizes in SPACES
    for name, channel, _ in channels(sizes)
]


def sparse(rng, inputs, outputs):
    """Return a channel with many zeros and some deterministic rows."""
    matrix = rng.random((inputs, outputs)) * (rng.random((inputs, outputs)) < 0.4)
    matrix[matrix.sum(axis=1) == 0, rng.integers(outputs)] = 1.0
    return matrix / matrix.sum(axis=1, keepdims=True)


@st.composite
def cases(draw):
    """Return sizes, a channel with zeros, an attribute (labels or kernel) and a prior."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    size, outputs = math.prod(sizes), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    if draw(st.booleans()):
        factors = [sparse(rng, m, draw(st.integers(1, 3))) for m in sizes]
        channel = fp.ProductChannel(factors)
    elif draw(st.booleans()):
        answers = draw(st.integers(1, 4))
        values = rng.integers(0, answers, size)
        channel = fp.QueryChannel(values, sparse(rng, answers, outputs), sizes)
    else:
        channel = fp.Channel(sparse(rng, size, outputs), sizes)
    if draw(st.booleans()):
        attribute = rng.integers(-2, draw(st.integers(-1, 3)), size)
    else:
        attribute = sparse(rng, size, draw(st.integers(1, 3)))
    prior = law(rng, size)
    if draw(st.booleans()):
        prior = np.where(rng.random(size) < 0.3, 0.0, prior)
        prior = prior / prior.sum() if prior.any() else law(rng, size)
    return channel, attribute, prior


def as_kernel(attribute):
    return od.labels_kernel(list(attribute)) if np.ndim(attribute) == 1 else attribute


@pytest.mark.search(every=10)
@settings(max_examples=300, deadline=None)
@given(cases())
def test_disclosure_is_a_degenerate_posterior(case):
    channel, attribute, prior = case
    matrix, kernel, size = channel.matrix(), as_kernel(attribute), channel.space.size
    full = [1 / size] * size
    assert fp.discloses(channel, attribute) == od.discloses(matrix, kernel, full)
    assert fp.discloses(channel, attribute, prior) == od.discloses(matrix, kernel, prior)
    plain = fp.Channel(matrix, channel.space)
    assert fp.discloses(plain, attribute, prior) == fp.discloses(channel, attribute, prior)
    identity = od.labels_kernel(range(size))
    assert fp.singles_out(channel) == od.discloses(matrix, identity, full)
    assert fp.singles_out(channel) == fp.discloses(channel, np.arange(size))


@settings(max_examples=100, deadline=None)
@given(cases(), st.integers(0, 2**32))
def test_disclosures_are_the_same_for_all_full_support_priors(case, seed):
    channel, attribute, _ = case
    prior = law(np.random.default_rng(seed), channel.space.size, 1e-6)
    assert fp.discloses(channel, attribute, prior) == fp.discloses(channel, attribute)


@pytest.mark.search(every=10)
@settings(max_examples=300, deadline=None)
@given(cases())
def test_leakage_below_the_min_entropy_of_an_attribute_hides_it(case):
    channel, attribute, prior = case
    level = max(op.pml(channel.matrix(), prior))
    uncertain = o.min_entropy(od.attribute_law(as_kernel(attribute), prior))
    if fp.discloses(channel, attribute, prior):
        assert level >= uncertain * (1 - o.num("1e-15"))
    if level < o.num(fp.disclosure_threshold(prior)):  # Proposition 3.8
        assert not fp.discloses(channel, attribute, prior)


@pytest.mark.search(every=10)
@settings(max_examples=300, deadline=None)
@given(cases())
def test_a_disclosed_attribute_takes_one_of_lower_entropy_with_it(case):
    channel, attribute, prior = case
    if not fp.discloses(channel, attribute, prior):
        with pytest.raises(fp.InvalidInput, match="must be disclosed"):
            fp.lower_entropy_attribute(channel, attribute, prior)
        return
    lower = fp.lower_entropy_attribute(channel, attribute, prior)
    assert np.allclose(lower.sum(axis=1), 1.0, atol=1e-15)
    assert od.discloses(channel.matrix(), lower, prior)
    before = max(od.attribute_law(as_kernel(attribute), prior))
    assert max(od.attribute_law(lower, prior)) > before


@pytest.mark.parametrize("weights", [[1.0, 0.0], [0.0, 1.0], [1.0, 0, 0, 0], [0, 0, 0, 1.0]])
def test_under_a_point_mass_nothing_is_left_to_find_out(weights):
    law = fp.Exchangeable(weights)
    assert fp.remaining_uncertainty_bound(0.1, law) == math.inf
    assert fp.remaining_uncertainty_bound(0.1, fp.Dense(law.pmf())) == math.inf


@pytest.mark.grid
@pytest.mark.parametrize(("sizes", "channel"), CHANNELS)
def test_structured_channels(sizes, channel):
    size = channel.space.size
    matrix, rng = channel.matrix(), np.random.default_rng(0)
    full = [1 / size] * size
    for attribute in [np.arange(size), rng.integers(0, 2, size), sparse(rng, size, 2)]:
        assert fp.discloses(channel, attribute) == od.discloses(matrix, as_kernel(attribute), full)
    assert fp.singles_out(channel) == od.discloses(matrix, od.labels_kernel(range(size)), full)


def test_e_d_discloses_nothing_even_where_its_numbers_vanish():
    channel = fp.HammingChannel(2, 2, 5000.0)
    assert channel.nearest_matrix()[0, 3] == 0.0
    assert channel.matrix()[0, 3] > 0.0  # rounded inwards, so that its level is finite too
    assert not fp.singles_out(channel)
    assert not fp.discloses(channel, [0, 0, 0, 1])
    assert fp.singles_out(fp.ProductChannel([np.eye(2)] * 1000))
    assert not fp.singles_out(fp.ProductChannel([np.eye(2)] * 1000 + [[[0.5, 0.5]] * 2]))
    assert not fp.singles_out([[1.0]])


@pytest.mark.parametrize(
    "attribute",
    [[0, 1, 2], [0.0, 1.0], [[1.0], [0.5]], [[[1]], [[1]]], 3, ["a", "b"], [[0.5, np.nan]] * 2],
)
def test_hostile_attributes(attribute):
    with pytest.raises(fp.InvalidInput):
        fp.discloses([[0.5, 0.5], [0.0, 1.0]], attribute)


# The threshold and the remaining uncertainty.


@pytest.mark.parametrize(("name", "prior", "pmf"), [pytest.param(*p, id=p[0]) for p in priors()])
def test_threshold(name, prior, pmf):
    least = min(o.num(v) for v in pmf if v > 0)
    truth = -o.log(1 - least) if least < 1 else o.inf
    found = fp.disclosure_threshold(prior)
    assert found <= truth * (1 + o.num("1e-15"))  # priors hold rounded numbers themselves
    assert close(found, truth, 1e-13) or least > 1 - o.num("1e-14")
    capacity = 0.7
    left = fp.remaining_uncertainty_bound(capacity, prior)
    bound = o.log(1 + least / (1 - least) * o.exp(-o.num(capacity))) if least < 1 else o.inf
    assert close(left, bound, 1e-13) or least > 1 - o.num("1e-14")


@pytest.mark.parametrize("least", [0.5, 0.3, 1e-3, 1e-17, 1e-300, 5e-324])
@pytest.mark.parametrize("capacity", [0.0, 1e-8, 1.0, 300.0, math.inf])
def test_bounds_are_rounded_down(least, capacity):
    pmf = [least, 1 - least]
    with o.mp.workdps(400):
        truth = -o.log(1 - o.num(least))
        assert truth * (1 - o.num("1e-12")) - o.num("2.3e-308") <= fp.disclosure_threshold(pmf)
        assert fp.disclosure_threshold(pmf) <= truth
        shrink = o.exp(-o.num(capacity)) if capacity < math.inf else 0
        truth = o.log(1 + o.num(least) / (1 - o.num(least)) * shrink)
        found = fp.remaining_uncertainty_bound(capacity, pmf)
        assert truth * (1 - o.num("1e-12")) - o.num("2.3e-308") <= found <= truth


def test_threshold_of_structured_priors_is_never_listed():
    assert fp.disclosure_threshold(fp.Uniform(10**6, 3)) == 0.0
    assert fp.disclosure_threshold(fp.Product.iid([0.5, 0.5], 40)) == pytest.approx(2.0**-40)
    chain = fp.Markov([0.5, 0.5], [[0.9, 0.1], [0.0, 1.0]], 100)  # zeros are left out
    assert fp.disclosure_threshold(chain) == pytest.approx(0.5 * 0.9**98 * 0.1, rel=1e-4)
    assert fp.disclosure_threshold(fp.Markov([0.5, 0.5], np.eye(2), 10**6)) == pytest.approx(
        math.log(2)
    )
    binary = fp.Exchangeable([0.5, 0.0, 0.25, 0.25])
    assert fp.disclosure_threshold(binary) == pytest.approx(-math.log1p(-0.25 / 3))
    assert fp.disclosure_threshold([1.0, 0.0]) == math.inf
    assert fp.remaining_uncertainty_bound(1.0, [1.0]) == math.inf


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 6), st.integers(1, 4))
def test_remaining_uncertainty_of_every_function_of_the_database(seed, size, outputs):
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet(np.full(outputs, 0.5), size) + 1e-3
    matrix /= matrix.sum(axis=1, keepdims=True)
    prior, labels = law(rng, size, 0.01), rng.integers(0, 2, size)
    assume(len(set(labels.tolist())) == 2)
    bound = fp.remaining_uncertainty_bound(float(o.strong_dp_level(matrix)), prior)
    for y in range(outputs):
        after = od.posterior(matrix, prior, y)
        values = od.attribute_law(od.labels_kernel(labels.tolist()), after)
        assert o.min_entropy(values) >= bound * (1 - 1e-14)


def test_the_bound_on_remaining_uncertainty_is_reached():
    prior, epsilon = [0.2, 0.8], 1.3
    matrix = fp.HammingChannel(1, 2, epsilon).matrix()
    left = o.min_entropy(od.posterior(matrix, prior, 1))
    assert close(fp.remaining_uncertainty_bound(epsilon, prior), left)


@pytest.mark.parametrize("capacity", [-0.1, math.nan, "1", None])
def test_hostile_capacity(capacity):
    with pytest.raises(fp.InvalidInput):
        fp.remaining_uncertainty_bound(capacity, [0.5, 0.5])


# Correlated rows.


@pytest.mark.parametrize("row", [[0.75, 0.25], [0.6, 0.3, 0.1]])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.1), (2.0, 1e-3), (0.7, 0.5)])
def test_copies_of_a_row_leak_as_much_as_a_release_without_noise(row, epsilon, delta):
    """Saeidian et al. 2024, Theorem 4.3, with the number of rows from its closed form."""
    rare = min(row)
    n = math.floor(math.log((1 - rare) / rare / math.expm1(delta)) / epsilon) + 1
    prior, channel = fp.Markov(row, np.eye(len(row)), n), fp.HammingChannel(n, len(row), epsilon)
    limit, worst = -math.log(rare), fp.row_pml(channel, prior, 0, y=[row.index(rare)] * n)
    assert fp.dp_level(channel) == epsilon
    assert limit - delta < worst <= limit * (1 + 1e-12)
    exact = -math.log(rare + (1 - rare) * math.exp(-n * epsilon))
    assert worst == pytest.approx(exact, rel=1e-12)


# Threshold queries.


@pytest.mark.parametrize("n", [1, 2, 7, 60])
@pytest.mark.parametrize("p", [1e-12, 0.01, 0.3, 0.5, 0.999, 1 - 1e-12])
def test_threshold_query_small(n, p):
    for t in {0, 1, n // 3, n // 2, n - 1, n, n + 5}:
        for answer in (True, False):
            tail = od.binomial_tail(n, t, p, answer)
            found = fp.threshold_query_leakage(n, t, p, answer)
            if tail == 0:
                assert found == math.inf
                continue
            truth = -o.log(o.num(tail)) if tail < 0.5 else -o.mp.log1p(-o.num(1 - tail))
            assert truth <= found + 5e-324
            assert close(found, truth, 2e-12, 1e-320), (t, answer)


#: People, the probability of a one and a threshold, so many standard deviations from the mean.
LARGE = [
    (n, p, t)
    for n in (200, 10_000, 10**6, 10**7)
    for p in (1e-6, 0.3, 0.5, 0.97)
    for sigmas in (-200.0, -30.0, -1.0, 0.0, 4.0, 36.0, 150.0)
    if 0 <= (t := round(n * p + sigmas * math.sqrt(n * p * (1 - p)))) < n
]


@pytest.mark.grid(every=9)
@pytest.mark.parametrize(("n", "p", "t"), LARGE)
def test_threshold_query_large(n, p, t):
    from mpmath import loggamma

    with o.mp.workdps(40):

        def log_upper(k, q):  # ln P(Bin(n, q) >= k), from where terms fall
            ways = loggamma(n + 1) - loggamma(k + 1) - loggamma(n - k + 1)
            first = ways + k * o.log(q) + (n - k) * o.log(1 - q)
            term = total = o.mpf(1)
            while k < n and term > total * 1e-25:
                term *= (n - k) * q / ((k + 1) * (1 - q))
                k, total = k + 1, total + term
            return first + o.log(total)

        q = o.num(p)
        if t > n * q:
            yes = log_upper(t + 1, q)
            no = o.mp.log1p(-o.exp(yes))
        else:
            no = log_upper(n - t, 1 - q)
            yes = o.mp.log1p(-o.exp(no))
        for answer, log_tail in ((True, yes), (False, no)):
            found = fp.threshold_query_leakage(n, t, p, answer)
            assert -log_tail <= found + 5e-324
            assert close(found, -log_tail, 2e-12, 1e-310), answer


@pytest.mark.parametrize("n", [10, 200, 5000])
@pytest.mark.parametrize("p", [0.0, 0.05, 0.3, 0.5, 1.0])
def test_chernoff_bound(n, p):
    for t in {0, 1, n // 20, n // 4, n // 2, n - 1, n}:
        for answer in (True, False):
            valid = t < n * o.exact(p) if answer else t + 1 > n * o.exact(p)
            if not valid:
                with pytest.raises(fp.InvalidInput, match="Chernoff bound"):
                    fp.threshold_query_bound(n, t, p, answer)
                continue
            bound = fp.threshold_query_bound(n, t, p, answer)
            assert bound >= fp.threshold_query_leakage(n, t, p, answer) * (1 - 2e-12)
            k = t if answer else t + 1
            if 0 < p < 1 and k <= n:
                with o.mp.workdps(100):  # 10 times the float 0.3 is just below 3
                    r, q = o.num(k) / n, o.num(p)
                    parts = [(r, q), (1 - r, 1 - q)]
                    exponent = n * sum(a * o.log(a / b) for a, b in parts if a > 0)
                truth = -o.mp.log1p(-o.exp(-exponent))
                assert truth <= bound + 5e-324
                assert close(bound, truth, 1e-12, 1e-310)


def test_figure_of_the_paper():
    # Example 3.11: several orders of magnitude below the entropy of a single entry, 0.36.
    assert fp.threshold_query_bound(200, 20, 0.3) < 1e-10
    assert fp.threshold_query_leakage(200, 20, 0.3) < 0.36 * 1e-10


@pytest.mark.parametrize(
    "arguments",
    [
        (0, 0, 0.5),
        (5, -1, 0.5),
        (5, 1, 1.5),
        (5, 1, -0.1),
        (5.5, 1, 0.5),
        (5, 1, math.nan),
        (2**40, 1, 0.5),
    ],
)
def test_hostile_threshold_queries(arguments):
    for function in (fp.threshold_query_leakage, fp.threshold_query_bound):
        with pytest.raises((fp.InvalidInput, fp.TooLarge)):
            function(*arguments)


def test_plot_of_threshold_queries():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from fastpriv import plot

    ax = plot.threshold_query()
    assert len(ax.lines) == 8
    assert {line.get_label() for line in ax.lines} >= {"200 records, probability 0.3"}
    assert "fraction" in ax.get_xlabel()
    assert "leakage" in ax.get_ylabel()
    line = ax.lines[0]
    t = round(line.get_xdata()[8] * 200)
    assert line.get_ydata()[8] == fp.threshold_query_bound(200, t, 0.3)
    matplotlib.pyplot.close("all")


@pytest.mark.parametrize("p", [1e-310, 1e-308, 1e-200])
def test_threshold_queries_at_vanishing_chances(p):
    for n in (1, 2):
        assert fp.threshold_query_leakage(n, 0, p) == pytest.approx(-math.log(n * p), rel=1e-12)
        assert fp.threshold_query_leakage(n, 0, p, answer=False) == pytest.approx(n * p, rel=1e-9)
