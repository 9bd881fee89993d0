"""Individual capacity over Markov chains and over independent bits of bounded chances."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
from pointwise_cases import CHANNELS, SEEDS, random_case


def about(matrix, pmf, i, n):
    """I(X_i; Y) under a law of n bits."""
    joint = (pmf[:, None] * matrix).reshape(2**i, 2, 2 ** (n - i - 1), -1).sum(axis=(0, 2))
    p = joint.sum(axis=1)
    return fp.mutual_information(joint / np.where(p > 0, p, 1.0)[:, None], p) if p.min() else 0.0


def chain(rng, n, sharp):
    """A law of a Markov chain with a step of its own for every row."""
    pmf = rng.dirichlet([1, 1])
    for _ in range(n - 1):
        step = rng.dirichlet([sharp, sharp], 2)
        pmf = (pmf.reshape(-1, 2, 1) * step).reshape(-1)
    return pmf


@settings(deadline=None, max_examples=8)
@given(SEEDS, st.integers(1, 3), CHANNELS)
def test_markov_chains_by_all_functions(seed, n, zeros):
    """No random chain tells more; the best chain of functions tells as much."""
    rng, matrix = random_case(seed, (2,) * n, 4, zeros)
    channel = fp.Channel(matrix, [2] * n)
    bracket = fp.individual_capacity(channel, "markov")
    for sharp in np.repeat([0.05, 1.0], 20):
        pmf = chain(rng, n, sharp)
        assert max(about(matrix, pmf, i, n) for i in range(n)) <= bracket.upper + 1e-12
    best = 0.0
    functions = [(0, 1), (1, 0), (0, 0), (1, 1)]
    for i in range(n):
        for left in itertools.product(functions, repeat=i):
            for right in itertools.product(functions, repeat=n - 1 - i):
                rows = [[x] for x in (0, 1)]
                for row in rows:
                    for f in right:
                        row.append(f[row[-1]])
                    for f in left:
                        row.insert(0, f[row[0]])
                chosen = matrix[channel.space.index(np.array(rows))]
                best = max(best, fp.channel_capacity(chosen).lower)
    assert bracket.lower - 1e-8 <= best <= bracket.upper + 1e-12
    assert bracket.width < 1e-8
    assert bracket.lower <= fp.individual_capacity(channel).upper
    assert bracket.upper >= fp.individual_capacity(channel, "independent").lower


def test_markov_is_less_than_all():
    """Databases 000 and 101 differ in the outer bits alone, and no chain ties only these."""
    told = np.full(8, 0.5)
    told[0b000], told[0b101] = 0.1, 0.9
    channel = fp.Channel(np.stack([1 - told, told], axis=1), [2, 2, 2])
    flip, half = [[0.9, 0.1], [0.1, 0.9]], [[0.9, 0.1], [0.5, 0.5]]
    for kind, rows in (("all", flip), ("markov", half)):
        truth = fp.channel_capacity(rows).midpoint
        assert fp.individual_capacity(channel, kind).midpoint == pytest.approx(truth, rel=1e-8)
    assert fp.max_individual_capacity(channel, "markov") == pytest.approx(math.log(5))
    assert fp.max_individual_capacity(channel) == pytest.approx(math.log(9))
    bits = fp.HammingChannel(4, 2, 1.0)
    plain = fp.Channel(bits.matrix(), bits.space)
    for measure in (fp.individual_capacity, fp.max_individual_capacity):
        tied, dense, every = measure(bits, "markov"), measure(plain, "markov"), measure(bits)
        assert float(tied) == float(every)
        assert float(dense) == pytest.approx(float(every), rel=1e-8)


@settings(deadline=None, max_examples=25)
@given(SEEDS, st.integers(1, 3), CHANNELS, st.sampled_from([0.05, 0.3, 0.5]))
def test_bits_of_bounded_chances_by_a_grid(seed, n, zeros, c):
    """No law of the set tells more, and a grid at its corners comes close."""
    rng, matrix = random_case(seed, (2,) * n, 4, zeros)
    channel, priors = fp.Channel(matrix, [2] * n), fp.PriorSet.bernoulli_interval(n, c)
    bracket = fp.individual_capacity(channel, priors)
    best = 0.0
    for i in range(n):
        for corner in itertools.product([c, 1 - c], repeat=n - 1):
            for p in np.linspace(c, 1 - c, 21):
                chances = [*corner[:i], p, *corner[i:]]
                law = fp.Product([[1 - q, q] for q in chances]).pmf()
                best = max(best, about(matrix, law, i, n))
        inside = rng.uniform(c, 1 - c, n)
        law = fp.Product([[1 - q, q] for q in inside]).pmf()
        assert about(matrix, law, i, n) <= bracket.upper + 1e-12
    assert best <= bracket.upper + 1e-12
    assert bracket.lower <= best + 0.01
    assert bracket.width <= 1e-6
    assert bracket.upper <= fp.individual_capacity(channel, "independent").upper + 1e-9


def test_sets_by_structure():
    """Products and counts agree with their matrices; other sets and sizes are refused in words."""
    count = fp.mechanisms.GeometricCount(5, 0.8).channel()
    for channel in (count, fp.HammingChannel(5, 2, 0.8)):
        plain = fp.Channel(channel.matrix(), channel.space)
        priors = fp.PriorSet.bernoulli_interval(5, 0.2)
        one, other = (fp.individual_capacity(ch, priors) for ch in (channel, plain))
        assert one.midpoint == pytest.approx(other.midpoint, rel=1e-6)
        assert fp.max_individual_capacity(channel, priors) == fp.pml_level(
            channel, priors, row="worst"
        )
        assert fp.individual_capacity(channel, fp.PriorSet.all(32)) == fp.individual_capacity(
            channel
        )
    with pytest.raises(fp.InvalidInput, match="two values"):
        fp.individual_capacity(np.eye(3), "markov")
    with pytest.raises(fp.TooLarge):
        fp.individual_capacity(fp.mechanisms.GeometricCount(40, 1.0).channel(), "markov")
