"""The steps of the proofs in docs/theory, in exact or 50-digit arithmetic."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import exp, mpf

import fastpriv as fp
from fastpriv._structure.neighbours import hamming_distances
from fastpriv.design import engines
from fastpriv.design.certificate import Layout, distance_closure, lower_bound, repaired
from fastpriv.spaces import Space


@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from([(1, 2), (1, 3), (2, 2), (2, 3), (3, 2)]),
    st.lists(st.integers(1, 30), min_size=9, max_size=9),
    st.fractions(0, 3),
)
def test_the_multipliers_of_randomised_response(shape, weights, more):
    """With a = e^epsilon rational and at least what eps_hat asks for, all signs are exact."""
    n, m = shape
    databases = list(itertools.product(range(m), repeat=n))
    total = sum(weights[: len(databases)])
    p = {x: Fraction(w, total) for x, w in zip(databases, weights, strict=False)}

    def line(x, i):
        return [(*x[:i], b, *x[i + 1 :]) for b in range(m)]

    def mass(x, i):
        return sum(p[z] for z in line(x, i))

    least = max(mass(x, i) / p[x] for x in databases for i in range(n)) - m + 1
    a = max(least, Fraction(1)) + more + Fraction(1, 100)
    r = 1 / a
    g = 1 + (m - 1) * r
    mu = {x: r / (1 - r) * (sum(mass(x, i) for i in range(n)) / g - n * p[x]) for x in databases}
    assert sum(mu.values()) == n * (m - 1) * r / g
    for y in databases:
        together = dict.fromkeys(databases, Fraction(0))
        for i in range(n):
            for rest in {tuple(x[:i] + x[i + 1 :]) for x in databases}:
                at = (*rest[:i], y[i], *rest[i:])
                for b in set(range(m)) - {y[i]}:
                    x = (*rest[:i], b, *rest[i:])
                    share = (p[x] - mass(x, i) / (a + m - 1)) / (1 - r)
                    assert share >= 0
                    together[x] += share
                    together[at] -= r * share
        for x in databases:
            apart = sum(s != t for s, t in zip(x, y, strict=True))
            assert p[x] * apart - mu[x] == together[x]


@pytest.mark.search(every=10)
@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1), st.floats(0.01, 4.0))
def test_the_repair_makes_noise_private(seed, epsilon):
    rng = np.random.default_rng(seed)
    space = Space([2, 3])
    distance = hamming_distances(space)
    noise = np.where(rng.random((4, 6)) < 0.3, 0.0, rng.random((4, 6)) ** 8)
    noise[0] += 1e-9
    layout = Layout(np.tile(np.arange(6), 4), np.ones(24), np.ones(6), distance_closure(distance))
    entry = repaired(noise.reshape(-1), np.full(24, 0.25), layout, epsilon, 0.0).reshape(4, 6)
    assert np.abs(entry.sum(axis=0) - 1.0).max() < 1e-14
    for v in entry:
        for x, z in itertools.permutations(range(6), 2):
            assert mpf(v[x]) <= exp(mpf(epsilon) * int(distance[x, z])) * mpf(v[z])


def test_the_repair_leaves_what_is_private_alone():
    matrix = fp.HammingChannel(2, 2, 1.0).matrix()
    distance = hamming_distances(Space([2, 2]))
    layout = Layout(np.tile(np.arange(4), 4), np.ones(16), np.ones(4), distance_closure(distance))
    entry = repaired(matrix.T.reshape(-1), np.full(16, 0.25), layout, 1.0 + 1e-9, 0.0)
    assert np.abs(entry.reshape(4, 4).T - matrix).max() < 1e-15


@pytest.mark.parametrize("joint", [False, True])
def test_any_multipliers_prove_a_bound(joint, monkeypatch):
    """Random weights, of any size, never give more than the optimum."""
    rng, kept = np.random.default_rng(5), []
    plain = engines.solve

    def watched(program, *rest):
        kept.append(program)
        return plain(program, *rest)

    monkeypatch.setattr(engines, "solve", watched)
    for sizes in [(3,), (2, 2), (2, 3)]:
        prior = fp.Dense(rng.dirichlet(np.full(math.prod(sizes), 2.0)), sizes)
        low = prior.epsilon_x() if joint else 0.0
        high = prior.epsilon_tilde() if joint else prior.epsilon_hat()
        solve = fp.solve_pd_i if joint else fp.solve_pd_dp
        kept.clear()
        best = solve(prior, low + 0.5 * (high - low)).value
        assert len(kept) == 1
        for size in (1e-6, 1e-2, 1.0, 1e3):
            for _ in range(50):
                weight = size * rng.exponential(size=len(kept[0].source))
                weight *= rng.random(len(weight)) < 0.5
                assert lower_bound(kept[0], weight) <= best
