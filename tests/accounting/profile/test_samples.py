"""Samples of the people: bounds against every sample, listed, and against quadrature."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

import fastpriv as fp
from fastpriv.accounting import PrivacyProfile
from fastpriv.errors import InvalidInput

LEVELS = (0.0, 0.1, 0.4, 1.0)


def excess(p, q, t):
    """D_t of two laws on a list."""
    return float(
        sum(max(a - b * Fraction(math.exp(t)), Fraction(0)) for a, b in zip(p, q, strict=True))
    )


# Finite mechanisms: every subset is listed.


def on_subsets(kernel, database, m):
    """Exact law of the output where a subset of m people is counted and its count goes in."""
    subsets = list(itertools.combinations(database, m))
    law = [Fraction(0)] * len(kernel[0])
    for subset in subsets:
        for y, chance in enumerate(kernel[sum(subset)]):
            law[y] += chance / len(subsets)
    return law


@st.composite
def counts(draw):
    m = draw(st.integers(1, 3))
    rows = draw(
        st.lists(
            st.lists(st.integers(1, 9), min_size=3, max_size=3), min_size=m + 1, max_size=m + 1
        )
    )
    return m, [[Fraction(v, sum(row)) for v in row] for row in rows]


@pytest.mark.search(every=10)
@given(counts(), st.integers(1, 2))
@settings(max_examples=12, deadline=None)
def test_subsets_of_a_finite_mechanism(case, more):
    m, kernel = case
    n = m + more
    space = fp.Space.hamming(m, 2)
    channel = fp.QueryChannel(
        space.rows(np.arange(space.size)).sum(axis=1), np.array(kernel, float), space
    )
    whole = PrivacyProfile.of(channel)
    replaced = whole.sampled_without_replacement(m, n)
    removed = whole.sampled_without_replacement(m, n, relation="add-or-remove")
    for database in itertools.combinations_with_replacement((0, 1), n - 1):
        laws = [on_subsets(kernel, (*database, v), m) for v in (0, 1)]
        fewer = on_subsets(kernel, database, m)
        for t in LEVELS:
            for first, second in (laws, laws[::-1]):
                assert excess(first, second, t) <= replaced.delta(t).upper * (1 + 1e-12)
            for law in laws:
                assert excess(law, fewer, t) <= removed.delta(t).upper * (1 + 1e-12)
                assert excess(fewer, law, t) <= removed.delta(t).upper * (1 + 1e-12)


def test_one_release_attains_the_bound():
    """delta'(t) = q delta(ln(1 + (e^t - 1)/q)) of randomised response and of noise."""
    for made in (
        PrivacyProfile.from_epsilon_delta(1.0, 1e-3, relation="replace-one"),
        PrivacyProfile.gaussian(1.5, relation="replace-one"),
        PrivacyProfile.laplace(1.5, relation="replace-one"),
        PrivacyProfile.discrete_gaussian(1.5, relation="replace-one"),
    ):
        step = made.sampled_without_replacement(3, 40)
        q = 3 / 40
        for t in LEVELS:
            expected = q * made.delta(math.log1p(math.expm1(t) / q)).upper
            assert step.delta(t).upper == pytest.approx(expected, rel=1e-8, abs=1e-15)
            assert step.delta(t).lower == pytest.approx(expected, rel=1e-8, abs=1e-15)


def test_two_databases_may_change_their_order():
    """Two releases, in the first of which x has the value and in the second x'."""
    e, q = 1.0, Fraction(1, 4)
    a = Fraction(1 / (1 + math.exp(-e)))
    P, Q = [a, 1 - a], [1 - a, a]
    R = [(1 - q) * y + q * x for x, y in zip(P, Q, strict=True)]
    step = PrivacyProfile.from_epsilon_delta(e, relation="replace-one")
    both = step.sampled_without_replacement(1, 4).self_compose(2)
    for t in LEVELS:
        turned = excess([x * y for x in R for y in Q], [x * y for x in Q for y in R], t)
        same = excess([x * y for x in R for y in R], [x * y for x in Q for y in Q], t)
        back = excess([x * y for x in Q for y in Q], [x * y for x in R for y in R], t)
        answer = both.delta(t)
        assert max(turned, same, back) <= answer.upper * (1 + 1e-12)
        assert answer.lower == pytest.approx(max(same, back), rel=1e-9, abs=1e-15)


# Noise on a sum: every sample is listed, outputs are integrated.

X = np.linspace(-40.0, 40.0, 40001)


def density(kind, scale, sums):
    z = (X[:, None] - np.array(sums)) / scale
    if kind == "gaussian":
        laws = np.exp(-0.5 * z * z) / (scale * math.sqrt(2 * math.pi))
    else:
        laws = np.exp(-np.abs(z)) / (2 * scale)
    return laws.mean(axis=1)


def divergence(p, q, t):
    return float(np.maximum(p - math.exp(t) * q, 0.0).sum() * (X[1] - X[0]))


def sums(database, m, replace):
    if replace:
        return [sum(draw) for draw in itertools.product(database, repeat=m)]
    return [sum(draw) for draw in itertools.combinations(database, m)]


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize("replace", [False, True])
def test_sums_of_samples(kind, replace):
    rng, n, m, scale = np.random.default_rng(5), 4, 2, 1.5
    noise = getattr(PrivacyProfile, kind)(scale, relation="replace-one")
    draw = noise.sampled_with_replacement if replace else noise.sampled_without_replacement
    bounds = {
        (relation, t): draw(m, n, relation=relation).delta(t).upper
        for relation in ("replace-one", "replace-special", "add-or-remove")
        for t in (0.0, 0.4, 1.0)
    }
    for case in range(12):
        others = rng.choice([-1.0, 1.0, rng.uniform(-1, 1)], n - 1) if case else -np.ones(n - 1)
        a, b = (1.0, -1.0) if case % 2 == 0 else rng.uniform(-1, 1, 2)
        law = {
            name: density(kind, scale, sums(database, m, replace))
            for name, database in {
                "a": [*others, a],
                "b": [*others, b],
                "0": [*others, 0.0],
                "-": list(others),
            }.items()
        }
        for (relation, t), bound in bounds.items():
            name = {"replace-one": "b", "replace-special": "0", "add-or-remove": "-"}[relation]
            for first, second in ((law["a"], law[name]), (law[name], law["a"])):
                assert divergence(first, second, t) <= bound * (1 + 1e-6) + 1e-9, (relation, t)


def test_poisson_samples_where_a_person_is_replaced():
    scale, q = 1.5, 0.3
    step = PrivacyProfile.laplace(scale, q, relation="replace-one")
    zero, one, minus = (density("laplace", scale, [v]) for v in (0.0, 1.0, -1.0))
    for t in (0.0, 0.2, 0.6):
        first, second = (1 - q) * zero + q * one, (1 - q) * zero + q * minus
        answer = step.delta(t)
        assert divergence(first, second, t) <= answer.upper + 1e-7
        assert answer.lower <= max(divergence(first, zero, t), divergence(zero, first, t)) + 1e-6


def test_mixtures_of_draws_are_tight():
    """Three of five people with replacement, one removed: N(0) against the mixture of N(2k)."""
    step = PrivacyProfile.gaussian(2.0, relation="replace-one").sampled_with_replacement(
        3, 5, relation="add-or-remove"
    )
    chances = [math.comb(3, k) * 0.2**k * 0.8 ** (3 - k) for k in range(4)]
    laws = [density("gaussian", 2.0, [2.0 * k]) for k in range(4)]
    mixed = sum(c * law for c, law in zip(chances, laws, strict=True))
    for t in (0.0, 0.5):
        truth = max(divergence(mixed, laws[0], t), divergence(laws[0], mixed, t))
        assert step.delta(t).upper == pytest.approx(truth, rel=1e-4)
        assert step.delta(t).lower == pytest.approx(truth, rel=1e-4)


@pytest.mark.parametrize("order", [1.5, 4.0, 20.0])
def test_moments_of_the_symmetric_law(order):
    """E e^(sL) by mpmath: the rest at zero, and l > 0 with its mirror image."""
    sigma, q, s = mpf(1), mpf(1) / 50, mpf(order) - 1
    a = 2 / sigma
    step = PrivacyProfile.gaussian(1.0, relation="replace-one").sampled_without_replacement(1, 50)
    with mp.workdps(30):

        def moment(x):
            A = 1 - q + q * mpmath.exp(a * x - a * a / 2)
            return mpmath.npdf(x) * (A ** (1 + s) + A**-s)

        rest = (1 - q) * mpmath.erf(a / mpmath.sqrt(8))
        truth = mpmath.log(rest + mpmath.quad(moment, [a / 2, 3, 8, 20, 45, 60])) / s
    assert step.renyi(order).upper >= truth * (1 - mpf(10) ** -12)
    assert step.renyi(order).upper == pytest.approx(float(truth), rel=1e-9)


@pytest.mark.slow
def test_many_releases_of_the_symmetric_law():
    """delta of 200 releases by a fine grid and Fourier transforms."""
    e, q, k, h = 1.0, 0.05, 200, 1e-4
    step = PrivacyProfile.laplace(2.0 / e, relation="replace-one").sampled_without_replacement(
        1, 20
    )
    edges = np.linspace(0.0, e, 20001)
    middle = 0.5 * (edges[1:] + edges[:-1])
    L = np.append(np.log1p(q * np.expm1(middle)), np.log1p(q * np.expm1(e)))
    Q = np.append(0.25 * np.exp(-0.5 * (middle + e)) * np.diff(edges), 0.5 * math.exp(-e))
    P = Q * np.exp(L)
    size = 1 << 18
    pmf = np.zeros(size)
    for losses, masses in ((L, P), (-L, Q), (np.zeros(1), [1 - P.sum() - Q.sum()])):
        at, part = np.divmod(losses / h, 1.0)
        np.add.at(pmf, at.astype(int) % size, masses * (1 - part))
        np.add.at(pmf, (at.astype(int) + 1) % size, masses * part)
    composed = np.fft.irfft(np.fft.rfft(pmf) ** k, size)
    losses = h * ((np.arange(size) + size // 2) % size - size // 2)
    for t in (0.3, 1.0):
        truth = float((composed * np.maximum(-np.expm1(t - losses), 0.0)).sum())
        answer = step.self_compose(k).delta(t)
        assert answer.upper == pytest.approx(truth, rel=1e-4)
        assert answer.lower < answer.upper


def test_truncated_samples_have_a_lower_end():
    step = PrivacyProfile.truncated_subsampled_gaussian(100, 0.1, 12, 1.0)
    used = sum(math.comb(100, b) * 0.1**b * 0.9 ** (100 - b) * min(b, 12) for b in range(101)) / 100
    plain = PrivacyProfile.gaussian(1.0, used)
    assert step.delta(0.5).lower == pytest.approx(plain.delta(0.5).lower, rel=1e-9)
    assert step.delta(0.5).lower < step.delta(0.5).upper


# Edges.

ROUND = PrivacyProfile.gaussian(1.0, relation="replace-one")


def test_edges_of_samples():
    assert ROUND.sampled_without_replacement(0, 5).epsilon(0.0).upper == 0.0
    assert ROUND.sampled_without_replacement(5, 5).delta(1.0) == ROUND.delta(1.0)
    assert ROUND.sampled_with_replacement(0, 5).epsilon(0.0).upper == 0.0
    twice = ROUND.sampled_with_replacement(2, 1).delta(1.0)
    assert twice == PrivacyProfile.gaussian(0.5, relation="replace-one").delta(1.0)
    shown = PrivacyProfile.gaussian(0.0, relation="replace-one").sampled_without_replacement(1, 4)
    assert shown.delta(3.0).upper == pytest.approx(0.25) == shown.delta(0.0).lower
    little = PrivacyProfile.gaussian(1e-3, relation="replace-one").sampled_without_replacement(1, 2)
    assert 0.5 in little.delta(1.0)
    nested = ROUND.sampled_without_replacement(5, 10).sampled_without_replacement(10, 50)
    assert nested.delta(0.5).upper == pytest.approx(
        ROUND.sampled_without_replacement(5, 50).delta(0.5).upper, rel=1e-12
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: ROUND.sampled_without_replacement(6, 5),
        lambda: ROUND.sampled_without_replacement(-1, 5),
        lambda: ROUND.sampled_without_replacement(1, 0),
        lambda: ROUND.sampled_without_replacement(1.5, 5),
        lambda: ROUND.sampled_without_replacement(5, 5, relation="add-or-remove"),
        lambda: ROUND.sampled_without_replacement(1, 5, relation="one"),
        lambda: ROUND.sampled_with_replacement(100, 2),
        lambda: ROUND.sampled_with_replacement(1, 1, relation="add-or-remove"),
        lambda: PrivacyProfile.gaussian(1.0, relation="add-or-remove").sampled_without_replacement(
            1, 5
        ),
        lambda: PrivacyProfile.randomised_response(2, 1.0).sampled_with_replacement(1, 5),
        lambda: PrivacyProfile.randomised_response(2, 1.0).sampled_without_replacement(
            1, 5, relation="replace-special"
        ),
        lambda: (
            PrivacyProfile.randomised_response(2, 1.0)
            .self_compose(2)
            .sampled_without_replacement(1, 5)
        ),
    ],
)
def test_samples_that_mean_nothing(make):
    with pytest.raises(InvalidInput) as error:
        make()
    assert len(str(error.value)) < 250


def test_samples_are_written_and_read():
    for made in (
        ROUND.sampled_without_replacement(1, 5),
        ROUND.sampled_with_replacement(2, 50),
        PrivacyProfile.laplace(1.0, 0.2, relation="replace-one"),
        PrivacyProfile.randomised_response(2, 1.0).sampled_without_replacement(1, 5),
        PrivacyProfile.discrete_laplace(1.0, relation="replace-one").poisson_subsampled(0.1),
    ):
        again = PrivacyProfile.from_json(made.to_json())
        assert again.delta(0.3) == made.delta(0.3)
        assert again.to_dict() == made.to_dict()
