"""Pointwise leakage on every pairing of channel and prior, against the definitions."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
import oracles as o
import oracles_pointwise as op
from cases import close, full_channels, kernel, law, priors, row_channels


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


PAIRS = [
    pytest.param(prior, pmf, channel, matrix, id=f"{a}-{b}")
    for a, prior, pmf in priors() + sparse_priors()
    for b, channel, matrix in row_channels(prior.space.sizes) + full_channels(prior.space.sizes)
    if prior.space.size <= 9
]
every_pair = pytest.mark.parametrize(("prior", "pmf", "channel", "matrix"), PAIRS)


def covers(values, truths, rel=1e-11, abs_=1e-13):
    """Whether floats agree with the oracle's numbers and none is below its own."""
    values, truths = np.atleast_1d(values).tolist(), list(truths)
    assert len(values) == len(truths)
    for value, truth in zip(values, truths, strict=True):
        assert close(value, truth, rel, abs_), (value, truth)
        # Inputs are rounded to doubles before either side sees them, at times in another order.
        assert value == math.inf or value >= truth - 1e-15 * max(1, truth), (value, truth)


@every_pair
def test_pairings(prior, pmf, channel, matrix):
    truth = op.pml(matrix, pmf)
    covers(fp.pml(channel, prior), truth)
    covers(fp.pml_level(channel, prior), [max(truth)])
    covers(fp.max_information(channel, prior), [max(truth)])
    covers(fp.information_privacy_level(channel, prior), [op.information_privacy(matrix, pmf)])
    covers(fp.maximal_leakage(channel), [op.maximal_leakage(matrix)])
    covers(fp.leakage_capacity(channel), [op.leakage_capacity(matrix)])
    assert fp.strong_dp_level(channel) == fp.leakage_capacity(channel)
    for y in range(len(truth)):
        covers(fp.pml(channel, prior, y=y), [truth[y]])
        rows = channel.output_space.rows(y)
        assert fp.pml(channel, prior, y=rows) == fp.pml(channel, prior, y=y)


@every_pair
def test_rows(prior, pmf, channel, matrix):
    sizes = prior.space.sizes
    for i in range(len(sizes)):
        truth = op.row_pml(matrix, pmf, sizes, i)
        covers(fp.row_pml(channel, prior, i), truth)
        covers(fp.pml_level(channel, prior, row=i), [max(truth)])
        for y in range(0, len(truth), 3):
            covers(fp.row_pml(channel, prior, i, y=y), [truth[y]])


@every_pair
def test_factors(prior, pmf, channel, matrix):
    entropy = o.entropy(op.normal(pmf))
    gain = op.worst_gain(matrix, pmf)
    worst, mean = fp.worst_leakage_factor(channel, prior), fp.leakage_factor(channel, prior)
    if entropy < 1e-15:
        assert worst == mean == 0.0
    else:
        covers(worst, [gain / entropy], 1e-10, 1e-12)
        assert close(mean, o.mutual_information(matrix, pmf) / entropy, 1e-11, 1e-15)
        assert mean <= worst + 1e-15


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
    assert close(fp.leakage_capacity(matrix), op.leakage_capacity(matrix))
    assert close(fp.information_privacy_level(matrix, p), op.information_privacy(matrix, p))
    uniform = [1 / 8] * 8
    rows = np.repeat(matrix[:2], 4, axis=0)
    covers(fp.worst_leakage_factor(rows, uniform) * math.log(8), [op.worst_gain(rows, uniform)])
