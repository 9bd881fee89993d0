"""Functions of one row as attributes, their thresholds, and singling out under a prior."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
import oracles as o
from cases import law
from oracles import disclosure as od
from oracles import pointwise as op


def sparse(rng, inputs, outputs):
    """Return a channel with many zeros and some deterministic rows."""
    matrix = rng.random((inputs, outputs)) * (rng.random((inputs, outputs)) < 0.5)
    matrix[matrix.sum(axis=1) == 0, rng.integers(outputs)] = 1.0
    return matrix / matrix.sum(axis=1, keepdims=True)


@st.composite
def cases(draw):
    """Return a channel, a row, a label for each of its values, and priors of all structures."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    size, kind = math.prod(sizes), draw(st.integers(0, 3))
    if kind == 0:
        channel = fp.ProductChannel([sparse(rng, m, draw(st.integers(1, 3))) for m in sizes])
    elif kind == 1:
        scores = [rng.integers(0, 3, m) for m in sizes]
        answers = 1 + sum(int(score.max()) for score in scores)
        channel = fp.QueryChannel.sum(scores, sparse(rng, answers, 3))
    elif kind == 2:
        channel = fp.HammingChannel(len(sizes), max(sizes), 1.0)
        sizes, size = channel.space.sizes, channel.space.size
    else:
        channel = fp.Channel(sparse(rng, size, 4), sizes)
    row = draw(st.integers(0, len(sizes) - 1))
    labels = rng.integers(0, 3, sizes[row]).tolist()
    pmf = law(rng, size)
    pmf = np.where(rng.random(size) < draw(st.sampled_from([0.0, 0.4])), 0.0, pmf)
    pmf = pmf / pmf.sum() if pmf.any() else law(rng, size)
    rows = [sparse(rng, 1, m)[0] for m in sizes]
    return channel, row, labels, [fp.Dense(pmf, sizes), fp.Product(rows)]


@pytest.mark.search(every=10)
@settings(max_examples=80, deadline=None)
@given(cases())
def test_functions_of_a_row_are_labels_of_databases(case):
    channel, i, labels, priors = case
    matrix, space = channel.matrix(), channel.space
    if isinstance(channel, fp.HammingChannel):
        matrix = np.maximum(matrix, 1e-300)
    listed = np.array(labels)[space.rows(np.arange(space.size))[:, i]]
    kernel = od.labels_kernel(listed.tolist())
    forms = [labels, dict(enumerate(labels)), lambda value: f"label {labels[value]}"]
    for prior in (None, *priors):
        pmf = [1 / space.size] * space.size if prior is None else prior.pmf()
        truth = od.discloses(matrix, kernel, pmf)
        for form in forms:
            assert fp.discloses(channel, form, prior, row=i) == truth
    identity = od.labels_kernel(range(space.size))
    for prior in priors:
        assert fp.singles_out(channel, prior) == od.discloses(matrix, identity, prior.pmf())


@pytest.mark.search(every=10)
@settings(max_examples=80, deadline=None)
@given(cases())
def test_threshold_of_an_attribute(case):
    """A mechanism that discloses it leaks as much; the mechanism of the proof no more."""
    channel, i, labels, priors = case
    space = channel.space
    listed = np.array(labels)[space.rows(np.arange(space.size))[:, i]]
    for prior in priors:
        pmf = prior.pmf()
        threshold = fp.disclosure_threshold(prior, labels, row=i)
        assert threshold == pytest.approx(fp.disclosure_threshold(prior, listed), rel=1e-12)
        chances = od.attribute_law(od.labels_kernel(listed.tolist()), pmf)
        if max(chances) == sum(chances):
            assert threshold == math.inf
            continue
        truth = o.min_entropy([c / sum(chances) for c in chances])
        assert threshold <= truth * (1 + o.num("1e-14")) + 1e-15
        assert threshold >= truth * (1 - o.num("1e-11"))
        if not isinstance(channel, fp.HammingChannel) and fp.discloses(channel, listed, prior):
            assert max(op.pml(channel.matrix(), pmf)) >= truth * (1 - o.num("1e-14"))
        likeliest = sorted(set(listed.tolist()))[int(np.argmax(list(map(float, chances))))]
        told = 1e-6 * (listed == likeliest)
        proof = np.stack([told, 1 - told], axis=1)
        assert fp.discloses(proof, listed, fp.Dense(pmf))
        level = max(op.pml(proof, pmf))
        assert level == pytest.approx(threshold, rel=1e-9) or level < 2e-6


def test_threshold_of_a_random_attribute():
    """Only databases at which U is certain count: more than the min-entropy of U."""
    prior = [0.5, 0.3, 0.2]
    kernel = [[0.9, 0.1], [1.0, 0.0], [0.0, 1.0]]
    assert fp.disclosure_threshold(prior, kernel) == pytest.approx(-math.log(0.3))
    assert fp.Dense(np.array(prior) @ kernel).min_entropy() < 0.3
    # The proof's mechanism tells database 1 apart; nothing below that level settles U.
    proof = [[0.0, 1.0], [1e-9, 1 - 1e-9], [0.0, 1.0]]
    assert fp.discloses(proof, kernel, prior)
    assert fp.pml_level(proof, prior) == pytest.approx(-math.log(0.3))
    assert fp.disclosure_threshold(prior, [[0.5, 0.5]] * 3) == math.inf
    assert fp.disclosure_threshold(prior, [1, 1, 1]) == math.inf
    rare = fp.disclosure_threshold([1e-320, 1.0], [0, 1])
    assert rare == 0.0  # too small for a double to be rounded relatively


def test_the_least_threshold_of_all_attributes():
    """Over all functions of the database, the least threshold is that of Proposition 3.8."""
    prior = [0.4, 0.35, 0.25]
    labels = [(a, b, c) for a in range(3) for b in range(3) for c in range(3)]
    each = [fp.disclosure_threshold(prior, label) for label in labels]
    assert min(each) == pytest.approx(fp.disclosure_threshold(prior), rel=1e-13)


def test_huge_structures():
    """No list of databases: products, counts, chains and exchangeable rows of any length."""
    n = 100_000
    told = fp.ProductChannel([[[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]] * n)
    assert fp.discloses(told, lambda v: v == 2, row=n - 1)
    assert not fp.discloses(told, lambda v: v == 1, fp.Product.iid([0.5, 0.5, 0.0], n), row=3)
    assert fp.singles_out(told)  # every row shows its 2
    assert not fp.singles_out(told, fp.Product.iid([0.5, 0.5, 0.0], n))
    assert fp.singles_out(told, fp.Product.iid([0.5, 0.0, 0.5], n))
    assert not fp.singles_out(told, fp.Product.iid([1.0, 0.0, 0.0], n))
    chain = fp.Markov([0.5, 0.5], [[1.0, 0.0], [0.5, 0.5]], n)
    for prior in (chain, None):
        assert not fp.discloses(fp.HammingChannel(n, 2, 900.0), [0, 1], prior, row=5)
        assert not fp.singles_out(fp.HammingChannel(n, 2, 900.0), prior)
    assert fp.disclosure_threshold(chain, [0, 1], row=1) == pytest.approx(-math.log(0.75))
    ties = fp.Exchangeable([0.25] + [0.0] * (n - 1) + [0.75])
    assert fp.disclosure_threshold(ties, [0, 1], row=7) == pytest.approx(-math.log(0.75))
    count = fp.QueryChannel.sum([[0, 1]] * 50, np.eye(51))
    assert fp.discloses(count, [0, 1], row=0)  # all or none
    assert fp.discloses(count, [0, 1], fp.Uniform(50, 2), row=0)
    blurred = fp.mechanisms.GeometricCount(50, 1.0).channel()
    assert not fp.discloses(blurred, [0, 1], row=0)


@pytest.mark.parametrize(
    ("attribute", "row", "word"),
    [
        ([0, 1, 2], 0, "list of 2 labels"),
        (3, 0, "function of the value"),
        ([[0, 1]], 0, "function of the value"),
        ({0: "a"}, 0, "mapping"),
        ({0: "a", 1: "b", 2: "c"}, 1, "mapping"),
        (lambda v: [v], 0, "compared"),
        (lambda: 1, 0, "it failed at the value"),
        (lambda v: 1 / v, 0, "it failed at the value"),
        ([0, 1], 2, "below n"),
        ([0, 1], -1, "at least 0"),
        ([0, 1], "first", "integer"),
        (lambda v: v, None, "row=i"),
        ({0: 1, 1: 0}, None, "row=i"),
    ],
)
def test_hostile_row_attributes(attribute, row, word):
    for call in (
        lambda: fp.discloses(fp.HammingChannel(2, 2, 1.0), attribute, row=row),
        lambda: fp.disclosure_threshold(fp.Uniform(2, 2), attribute, row=row),
    ):
        with pytest.raises(fp.InvalidInput, match=word):
            call()


def test_what_is_too_large_is_refused():
    chain = fp.Markov([0.5, 0.5], [[1.0, 0.0], [0.5, 0.5]], 100)
    told = fp.ProductChannel([np.eye(2)] * 100)
    for call in (
        lambda: fp.discloses(told, [0, 1], chain, row=0),
        lambda: fp.singles_out(told, chain),
    ):
        with pytest.raises(fp.TooLarge, match="independent rows"):
            call()
    with pytest.raises(fp.InvalidInput, match="Give the attribute"):
        fp.disclosure_threshold([0.5, 0.5], row=0)
