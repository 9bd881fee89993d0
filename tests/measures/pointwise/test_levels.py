"""Pointwise leakage on every pairing of channel and prior, against the definitions."""

import math

import numpy as np
import pytest

import cases
import fastpriv as fp
import oracles as o
from cases import close, kernel, law, priors
from fastpriv.measures.pointwise.database import leakages
from oracles import pointwise as op
from pointwise_cases import covers


def sparse_priors():
    """Return (name, prior, pmf) where some databases never occur."""
    found = []
    rows = [[0.0, 1.0], [0.3, 0.0, 0.7]]
    found.append(("product-zeros", fp.Product(rows), o.product_pmf(rows)))
    for w in ([0.0, 0.4, 0.6, 0.0], [0.5, 0.0, 0.0, 0.5], [0.0, 0.0, 1.0, 0.0], [1.0, 0, 0, 0]):
        found.append((f"exchangeable-{w}", fp.Exchangeable(w), o.exchangeable_pmf(w, 3)))
    chain = ([0.4, 0.6], [[0.0, 1.0], [0.5, 0.5]])
    found.append(("markov-zeros", fp.Markov(*chain, 3), o.markov_pmf(*chain, 3)))
    pmf = [0.0, 0.2, 0.0, 0.1, 0.3, 0.4, 0.0, 0.0]
    found.append(("dense-zeros", fp.Dense(pmf, [2, 2, 2]), pmf))
    pmf = [0.0, 0.2, 0.0, 0.1, 0.3, 0.4]
    found.append(("dense-mixed-zeros", fp.Dense(pmf, [2, 3]), pmf))
    return found


every_pair = cases.every_pair(9, sparse_priors())


@pytest.mark.grid
@every_pair
def test_pairings(prior, pmf, channel, matrix):
    truth = op.pml(matrix, pmf)
    covers(fp.pml(channel, prior), truth)
    covers(leakages(channel, prior).below, op.below(matrix, pmf))
    covers(fp.pml_level(channel, prior), [max(truth)])
    covers(fp.max_information(channel, prior), [max(truth)])
    covers(fp.information_privacy_level(channel, prior), [op.information_privacy(matrix, pmf)])
    covers(fp.maximal_leakage(channel), [o.maximal_leakage(matrix)])
    covers(fp.leakage_capacity(channel), [o.strong_dp_level(matrix)])
    assert fp.strong_dp_level(channel) == fp.leakage_capacity(channel)
    for y in range(len(truth)):
        covers(fp.pml(channel, prior, y=y), [truth[y]])
        rows = channel.output_space.rows(y)
        assert fp.pml(channel, prior, y=rows) == fp.pml(channel, prior, y=y)


@pytest.mark.grid
@every_pair
def test_rows(prior, pmf, channel, matrix):
    sizes = prior.space.sizes
    for i in range(len(sizes)):
        truth = op.row_pml(matrix, pmf, sizes, i)
        covers(fp.row_pml(channel, prior, i), truth)
        covers(fp.pml_level(channel, prior, row=i), [max(truth)])
        for y in range(0, len(truth), 3):
            covers(fp.row_pml(channel, prior, i, y=y), [truth[y]])


@pytest.mark.grid
@every_pair
def test_factors(prior, pmf, channel, matrix):
    entropy = o.entropy(o.normal(pmf))
    gain = op.worst_gain(matrix, pmf)
    worst, mean = fp.worst_leakage_factor(channel, prior), fp.leakage_factor(channel, prior)
    if entropy < 1e-15:
        assert worst == mean == 0.0
    else:
        covers(worst, [gain / entropy], 1e-10, 1e-12)
        assert close(mean, o.mutual_information(matrix, pmf) / entropy, 1e-11, 1e-15)
        assert mean <= worst + 1e-15


@pytest.mark.grid
@every_pair
def test_conditional(prior, pmf, channel, matrix):
    rng = np.random.default_rng(0)
    event = rng.random(len(pmf)) < 0.6
    if sum(o.num(v) for v, k in zip(pmf, event, strict=True) if k) > 0:
        covers(fp.conditional_pml(channel, prior, event), op.pml(matrix, op.given(pmf, event)))
    dbs, i = o.databases(prior.space.sizes), prior.space.n - 1
    for v in range(prior.space.sizes[i]):
        keep = [x[i] == v for x in dbs]
        if any(k and w > 0 for k, w in zip(keep, pmf, strict=True)):
            truth = op.pml(matrix, op.given(pmf, keep))
            covers(fp.conditional_pml(channel, prior, {i: v}), truth)
            covers(fp.conditional_pml(channel, prior, {i: v}, y=0), truth[:1])
        else:
            with pytest.raises(fp.InvalidInput, match="probability zero"):
                fp.conditional_pml(channel, prior, {i: v})
    with pytest.raises(fp.InvalidInput, match="probability zero"):
        fp.conditional_pml(channel, prior, np.zeros(len(pmf), bool))


@pytest.mark.grid
@pytest.mark.parametrize("epsilon", [1e-8, 1e-4, 1.0, 37.0, 700.0])
@pytest.mark.parametrize(
    "prior", [p for _, p, _ in priors() + sparse_priors() if 1 < p.space.size <= 9], ids=repr
)
def test_e_d_at_extreme_epsilons(prior, epsilon):
    sizes, pmf = prior.space.sizes, list(prior.pmf())
    channel, matrix = fp.HammingChannel(len(sizes), sizes, epsilon), o.e_d_matrix(sizes, epsilon)
    truth = op.pml(matrix, pmf)
    # Outputs that are no possible database come from afar: ln W and ln p_Y are both of order
    # -n epsilon, and their difference is exact to a few ulp of that.
    error = 1e-13 + 4e-15 * len(sizes) * epsilon
    covers(fp.pml(channel, prior), truth, 1e-12, error)
    covers(fp.pml_level(channel, prior), [max(truth)], 1e-12, error)
    both = op.information_privacy(matrix, pmf)
    covers(fp.information_privacy_level(channel, prior), [both], 1e-12, error)
    for y in range(len(truth)):
        covers(fp.pml(channel, prior, y=y), [truth[y]], 1e-12, error)


@pytest.mark.parametrize("scale", [1e-12, 1e-8, 1e-4])
def test_nearly_useless_matrices_keep_their_digits(scale):
    rng = np.random.default_rng(3)
    matrix = law(rng, 5) * (1 + scale * (rng.random((6, 5)) - 0.5))
    matrix /= matrix.sum(axis=1, keepdims=True)
    p = law(rng, 6)
    truth = op.pml(matrix, p)
    assert all(close(a, b, 1e-12) for a, b in zip(fp.pml(matrix, p), truth, strict=True))
    assert close(fp.leakage_capacity(matrix), o.strong_dp_level(matrix))
    assert close(fp.information_privacy_level(matrix, p), op.information_privacy(matrix, p))
    uniform = [1 / 8] * 8
    rows = np.repeat(matrix[:2], 4, axis=0)
    covers(fp.worst_leakage_factor(rows, uniform) * math.log(8), [op.worst_gain(rows, uniform)])


@pytest.mark.parametrize("weights", [[0.1, 0.2, 0.3, 0.4], [0.0, 0.4, 0.6, 0.0]])
def test_channels_that_see_types(weights):
    made = fp.solve_pd_dp(fp.Exchangeable([0.4, 0.3, 0.2, 0.1]), 0.8).channel
    assert isinstance(made, fp.TypeChannel)
    matrix = made.matrix()
    for prior in (fp.Exchangeable(weights), fp.Dense(o.exchangeable_pmf(weights, 3), [2] * 3)):
        pmf = prior.pmf()
        truth = op.pml(matrix, pmf)
        covers(fp.pml(made, prior), truth)
        covers(fp.pml_level(made, prior), [max(truth)])
        covers(fp.information_privacy_level(made, prior), [op.information_privacy(matrix, pmf)])
        covers([fp.pml(made, prior, y=y) for y in range(8)], truth)
        covers(fp.row_pml(made, prior, 1), op.row_pml(matrix, pmf, (2, 2, 2), 1))
        gain = op.worst_gain(matrix, pmf) / o.entropy(pmf)
        covers(fp.worst_leakage_factor(made, prior), [gain])
    covers(fp.maximal_leakage(made), [o.maximal_leakage(matrix)])
    covers(fp.leakage_capacity(made), [o.strong_dp_level(matrix)])


@pytest.mark.parametrize("prior", [p for _, p, _ in priors() if 1 < p.space.size <= 9], ids=repr)
def test_e_i(prior):
    channel = fp.PosteriorChannel(prior, prior.epsilon_tilde() + 0.3)
    matrix, pmf = channel.matrix(), prior.pmf()
    truth = op.pml(matrix, pmf)
    values = fp.pml(channel, prior)
    assert all(close(a, b, 1e-9, 1e-12) for a, b in zip(values, truth, strict=True))
    assert close(fp.pml_level(channel, prior), max(truth), 1e-9, 1e-12)
    assert close(fp.leakage_capacity(channel), o.strong_dp_level(matrix), 1e-9, 1e-12)
    assert close(fp.maximal_leakage(channel), o.maximal_leakage(matrix), 1e-9, 1e-12)
    assert close(fp.pml(channel, prior, y=1), truth[1], 1e-9, 1e-12)


def small_and_large(n, seed):
    """Return pairs of channel and prior that any n makes, structures that list nothing."""
    rng = np.random.default_rng(seed)
    weights = rng.random(n + 1)
    holes = np.where(np.arange(n + 1) % 3 == 1, 0.0, weights)
    start, step = law(rng, 2), kernel(rng, 2, 2)
    chain = fp.Markov(start, step, n)
    factors = [kernel(rng, 2, 3), kernel(rng, 2, 3)]
    noisy = [fp.HammingChannel(n, 2, 0.7), fp.ProductChannel([factors[i % 2] for i in range(n)])]
    found = [
        (channel, prior)
        for channel in noisy
        for prior in (
            chain,
            fp.Markov(start, [[0.0, 1.0], [0.5, 0.5]], n),
            fp.HammingChannel(n, 2, 1.1).output(chain),
            fp.Product([law(rng, 2), [0.0, 1.0]] * (n // 2)),
        )
    ]
    found += [(noisy[0], fp.Exchangeable(w / w.sum())) for w in (weights, holes)]
    zeros = fp.ProductChannel([[[0.75, 0.25], [0.0, 1.0]]] * n)
    return [*found, (zeros, fp.Exchangeable(weights / weights.sum())), (zeros, chain)]


@pytest.mark.slow(but=["3", "10", "11"])
@pytest.mark.parametrize("case", range(12))
def test_realised_outputs_of_a_few_rows(case):
    """What a million rows are asked in the next test, where the table still fits."""
    n = 6
    channel, prior = small_and_large(n, 4)[case]
    matrix, pmf = channel.matrix(), prior.pmf()
    truth = op.pml(matrix, pmf)
    rows = [op.row_pml(matrix, pmf, (2,) * n, i) for i in (0, 3)]
    for y in range(0, len(truth), 7):
        covers(fp.pml(channel, prior, y=y), [truth[y]])
        for i, part in zip((0, 3), rows, strict=True):
            covers(fp.row_pml(channel, prior, i, y=y), [part[y]])


@pytest.mark.slow
@pytest.mark.parametrize("case", range(12))
def test_realised_outputs_of_a_million_rows(case):
    n = 1_000_000
    channel, prior = small_and_large(n, 4)[case]
    if isinstance(prior, fp.Exchangeable):  # drawing one would sort a million rows: any output
        y = np.random.default_rng(1).integers(0, 2, n)
    else:
        y = channel.sample(prior.sample(1, rng=1), rng=2)[0]
    whole, one = fp.pml(channel, prior, y=y), fp.row_pml(channel, prior, 500_000, y=y)
    assert 0.0 <= one <= whole < math.inf
    assert one < 20.0


@pytest.mark.slow
def test_a_million_rows_by_another_road():
    n = 1_000_000
    channel, stay = fp.HammingChannel(n, 2, 1.0), 1 / (1 + math.exp(-1))
    # Independent rows as a product, as a chain and as binomial weights.
    q = 0.25 * stay + 0.75 * (1 - stay)
    y = (np.random.default_rng(3).random(n) < q).astype(int)
    ones = int(y.sum())
    truth = ones * math.log(stay / q) + (n - ones) * math.log(stay / (1 - q))
    assert fp.pml(channel, fp.Product.iid([0.75, 0.25], n), y=y) == pytest.approx(truth, rel=1e-13)
    chain = fp.Markov([0.75, 0.25], [[0.75, 0.25]] * 2, n)
    assert fp.pml(channel, chain, y=y) == pytest.approx(truth, rel=1e-13)
    from scipy.stats import binom

    # A millionth of all types alike keeps tails possible that binomial weights lose to underflow.
    weights = (1 - 1e-6) * binom.pmf(np.arange(n + 1), n, 0.25) + 1e-6 / (n + 1)
    types = fp.Exchangeable(weights)
    assert fp.pml(channel, types, y=y) == pytest.approx(truth, abs=2e-6)
    level = n * math.log(stay / (0.25 * stay + 0.75 * (1 - stay)))
    assert fp.pml_level(channel, fp.Product.iid([0.75, 0.25], n)) == pytest.approx(level)
    assert fp.leakage_capacity(channel) == n


@pytest.mark.parametrize("weights", [[0.2, 0.1, 0.3, 0.1, 0.3], [0.0, 0.5, 0.0, 0.5, 0.0]])
@pytest.mark.parametrize("factor", [[[0.9, 0.1], [0.3, 0.7]], [[1.0, 0.0], [0.4, 0.6]]])
def test_levels_of_types(weights, factor):
    prior, channel = fp.Exchangeable(weights), fp.ProductChannel([factor] * 4)
    pmf, matrix = o.exchangeable_pmf(weights, 4), o.product_matrix([factor] * 4)
    covers(fp.pml_level(channel, prior), [max(op.pml(matrix, pmf))])
    covers(fp.information_privacy_level(channel, prior), [op.information_privacy(matrix, pmf)])


def test_a_tiny_entry_changes_no_route_to_the_level():
    """The second leakage is beyond the range of a double; the first has the same bits as ever."""
    flat, steep = [1e-300, 1.0, 0.0], [0.28571428571428575, 0.28571428571428575, 0.4285714285714285]
    W = [steep] * 4 + [flat] * 4
    channel = fp.Channel(W, [2, 2, 2])
    prior = fp.Dense(fp.Product.iid([0.060839915553300365, 0.9391600844466996], 3).pmf(), [2] * 3)
    level = fp.pml_level(channel, prior)
    assert fp.audit(channel, prior).levels["pml"].value == level
    assert fp.pml_level(W, prior.pmf()) == level
