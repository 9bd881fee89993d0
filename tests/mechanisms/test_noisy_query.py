"""Normal and Laplace noise on a query, against integrals in many digits and all adversaries."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from scipy.integrate import quad

import fastpriv as fp
from fastpriv._matrices.capacity import matrix_capacity
from fastpriv.mechanisms import gaussian_query_capacity, laplace_query_capacity
from fastpriv.mechanisms import noise as tables
from fastpriv.mechanisms.noisy_query import laplace_query_leakage
from oracles.dalenius import two_point_capacity

QUERIES = {"gaussian": gaussian_query_capacity, "laplace": laplace_query_capacity}
LN2 = math.log(2.0)
DENSITIES = {"gaussian": mp.npdf, "laplace": lambda z: mp.exp(-abs(z)) / 2}


def divergences(kind, points, law):
    """D(x || mixture) of every point, by integrals between the points in 20 digits."""
    density = DENSITIES[kind]
    ends = (9, 5) if kind == "gaussian" else (48, 20, 6)
    with mp.workdps(20):
        x, p = [mpf(float(v)) for v in points], [mpf(float(w)) for w in law]

        def term(y, a):
            own = density(y - x[a])
            q = mp.fsum(w * density(y - v) for v, w in zip(x, p, strict=True))
            return own * mp.log(own / q)

        def divergence(a):
            inner = {v for v in x if abs(v - x[a]) < ends[0]}
            cuts = sorted(inner | {x[a] + side * end for end in ends for side in (-1, 1)})
            return mp.quad(lambda y: term(y, a), cuts)

        return [divergence(a) for a in range(len(x))]


def quick_divergences(kind, points, law):
    """The same in doubles, by adaptive quadrature."""

    def logs(y):
        z = np.abs(y - points)
        return -0.5 * z * z - 0.5 * math.log(2.0 * math.pi) if kind == "gaussian" else -z - LN2

    def term(y, a):
        own = logs(y)
        top = own.max()
        return math.exp(own[a]) * (own[a] - top - math.log((law * np.exp(own - top)).sum()))

    end = 9.5 if kind == "gaussian" else 50.0
    for a, x in enumerate(points):
        inner = [v for v in points if abs(v - x) < end]
        cuts = sorted({x - end, x + end, x - 0.2 * end, x + 0.2 * end, *inner})
        pieces = itertools.pairwise(cuts)
        yield sum(quad(term, *piece, (a,), epsabs=1e-14, epsrel=1e-12)[0] for piece in pieces)


def laplace_pair(distance):
    with mp.workdps(40):
        a = mpf(distance) / 2
        return a - mp.log(mp.cosh(a)) - mp.exp(-a) * mp.atan(mp.sinh(a))


def selections(space, priors):
    """Rows, and one database for each value of the row."""
    rows = [tuple(r) for r in space.rows(np.arange(space.size)).tolist()]
    for i, m in enumerate(space.sizes):
        slices = [[x for x in range(space.size) if rows[x][i] == a] for a in range(m)]
        for chosen in itertools.product(*slices):
            others = {rows[x][:i] + rows[x][i + 1 :] for x in chosen}
            if priors == "all" or len(others) == 1:
                yield chosen


def plain_capacity(kind, points):
    """Capacity of given points by a fine sum over outputs and plain iteration, to about 1e-7."""
    points = np.asarray(points, dtype=float)
    y = np.arange(points.min() - 25.0, points.max() + 25.0, 0.02) + 0.01
    z = y - points[:, None]
    W = np.exp(-0.5 * z * z) if kind == "gaussian" else np.exp(-np.abs(z))
    W /= W.sum(axis=1, keepdims=True)
    return matrix_capacity(W, 1e-10)[0].midpoint


@pytest.mark.parametrize("priors", ["all", "independent"])
@pytest.mark.parametrize("noise", [0.7, 1.5])
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_all_adversaries(kind, noise, priors):
    space = fp.Space([3, 2])
    values = np.random.default_rng(3).normal(size=6).round(2)
    told = QUERIES[kind](values, noise, space, priors=priors)
    want = max(plain_capacity(kind, values[list(c)] / noise) for c in selections(space, priors))
    assert told.lower <= want * (1 + 2e-5)
    assert told.upper >= want * (1 - 2e-5)
    assert told.width <= 1e-8
    # The adversary's own information and divergences, in many digits.
    who = told.adversary
    points = (values[space.index(who.databases)] / noise)[who.law > 0.0]
    law = who.law[who.law > 0.0]
    parts = divergences(kind, points, law / law.sum())
    reached = mp.fsum(mpf(w) * d for w, d in zip((law / law.sum()).tolist(), parts, strict=True))
    assert told.lower <= reached * (1 + mpf(10) ** -14)
    assert reached <= told.upper * (1 + mpf(10) ** -14)
    assert max(parts) <= told.upper * (1 + mpf(10) ** -6)


@pytest.mark.parametrize("noise", [1e-3, 0.3, 1.0, 7.0, 1e3, 1e9])
def test_bits_know_the_answers_furthest_apart(noise):
    values = [0.0, 1.0, 1.5, 4.0]  # row 0 changes by at most 4, alone by at most 3
    for priors, distance in (("all", 4.0), ("independent", 3.0)):
        normal = gaussian_query_capacity(values, noise, [2, 2], priors=priors)
        half = mpf(distance) / (2 * mpf(noise))
        if half < 20:
            want = two_point_capacity(half)
            if noise < 1e6:  # there the reference itself loses digits
                assert normal.lower <= want * (1 + mpf(10) ** -14)
                assert want <= normal.upper * (1 + mpf(10) ** -14)
        assert normal.width <= 1e-10 * normal.upper
        laplace = laplace_query_capacity(values, noise, [2, 2], priors=priors)
        assert laplace.lower <= laplace_pair(mpf(distance) / mpf(noise)) <= laplace.upper
        assert laplace.width <= 1e-13 * laplace.upper
        rows = laplace.adversary.databases
        assert len({row[laplace.adversary.rows[0]] for row in rows.tolist()}) == 2
        answers = [values[2 * a + b] for a, b in rows.tolist()]
        assert abs(answers[0] - answers[1]) == distance


@settings(max_examples=60, deadline=None)
@given(st.floats(-12.0, 2.5).map(lambda e: 10.0**e))
def test_two_points_behind_laplace_noise(distance):
    value = tables.laplace_pair(distance)
    assert abs(value - laplace_pair(distance)) <= 32 * mpf(2) ** -53 * laplace_pair(distance)


@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from(["gaussian", "laplace"]),
    st.lists(st.floats(0.0, 8.0), min_size=3, max_size=4, unique=True),
    st.integers(0, 2**32),
)
def test_tables_have_the_divergences(kind, points, seed):
    """For any mixture, not only the best one."""
    points = np.sort(np.array(points))
    assume(np.diff(points).min() >= 1e-3)
    law = np.random.default_rng(seed).dirichlet(np.full(len(points), 0.3))
    law = np.maximum(law, 1e-9)
    law /= law.sum()
    make = tables.gaussian_table if kind == "gaussian" else tables.laplace_table
    table = make(points)
    q = law @ table.rows
    seen = q > 0.0
    W = table.rows[:, seen]
    with np.errstate(divide="ignore", invalid="ignore"):
        told = np.where(W > 0.0, W * np.log(W / q[seen]), 0.0).sum(axis=1)
    want = quick_divergences(kind, points, law)
    for got, exact in zip(told.tolist(), want, strict=True):
        assert abs(got - exact) <= table.error + table.rounding * (exact + 1) + 1e-12
    assert table.error < 1e-11


def test_far_answers():
    far = [0.0, 5.0, 10.0, 1.0, 5.1, 11.0]
    for call in QUERIES.values():
        told = call(far, 1e-3, [3, 2])
        assert told.lower <= math.log(3.0) * (1 + 1e-15)
        assert told.lower >= math.log(3.0) * (1 - 1e-14)
        assert told.upper >= math.log(3.0)
    # Two of three values are told apart, the third is close to one of them.
    close = [0.0, 1.0, 1.2]
    for kind, call in QUERIES.items():
        told = call(close, 0.01 if kind == "gaussian" else 0.002, [3])
        scaled = np.array(close) / (0.01 if kind == "gaussian" else 0.002)
        assert plain_capacity(kind, scaled) == pytest.approx(told.midpoint, abs=1e-6)
        assert told.width <= 1e-8


@pytest.mark.slow
def test_vectors():
    """On a line like numbers; three points of a triangle by Gauss-Hermite quadrature."""
    values = np.array([0.0, 1.0, 2.5, 0.5, 1.5, 4.0])
    flat = gaussian_query_capacity(values, 1.0, [3, 2])
    turned = gaussian_query_capacity(np.outer(values, [2.0, -1.0, 2.0]), 3.0, [3, 2])
    assert turned.midpoint == pytest.approx(flat.midpoint, rel=1e-9)
    line = np.column_stack([0.6 * values, 0.8 * values])
    plane = matrix_capacity(tables.plane_table(line[[0, 2, 5]]).rows, 1e-12)[0]
    points = matrix_capacity(tables.gaussian_table(values[[0, 2, 5]]).rows, 1e-12)[0]
    assert plane.midpoint == pytest.approx(points.midpoint, abs=1e-10)
    nodes, weights = np.polynomial.hermite_e.hermegauss(90)
    for side in (0.01, 1.0, 2.5):
        corners = side * np.array([[0.0, 0.0], [1.0, 0.0], [0.5, math.sqrt(0.75)]])
        z = np.array(list(itertools.product(nodes, nodes)))
        mass = np.outer(weights, weights).reshape(-1) / (2.0 * math.pi)
        logs = -0.5 * ((z[:, None] + corners[0] - corners) ** 2).sum(axis=2)
        own = -0.5 * (z**2).sum(axis=1)
        mixture = np.log(np.exp(logs - own[:, None]).mean(axis=1))
        want = -float(mass @ mixture)  # even odds, by symmetry
        told = gaussian_query_capacity(corners, 1.0, [3])
        assert told.midpoint == pytest.approx(want, rel=1e-7)
        assert told.width <= 1e-8 * told.upper
    apart = np.random.default_rng(0).normal(size=(4, 2))
    bits = gaussian_query_capacity(apart * [1.0, 3.0], [1.0, 3.0], [2, 2])
    longest = max(
        np.linalg.norm(apart[x] - apart[y]) for x, y in itertools.combinations(range(4), 2)
    )
    assert bits.midpoint == pytest.approx(float(two_point_capacity(longest / 2)), rel=1e-10)
    # Four directions: proved, but wide.
    wide = gaussian_query_capacity(2.0 * np.eye(5), 1.0, [5])
    even = gaussian_query_capacity(2.0 * np.eye(5)[:3], 1.0, [3])
    assert wide.upper >= even.lower
    # Five corners of a simplex, even odds, by draws: within five deviations.
    z = np.random.default_rng(1).normal(size=(20_000, 5))
    logs = -0.5 * ((z[:, None] + 2.0 * (np.eye(5)[0] - np.eye(5))) ** 2).sum(axis=2)
    parts = logs[:, 0] - np.log(np.exp(logs).mean(axis=1))
    spread = 5.0 * parts.std() / math.sqrt(len(parts))
    assert wide.lower - spread <= parts.mean() <= wide.upper + spread


def test_nothing_to_tell():
    for call in QUERIES.values():
        for values, sizes in (([3.0] * 4, [2, 2]), ([1.0], [1]), ([2.0] * 3, [3])):
            assert call(values, 1.0, sizes) == fp.Bracket(0.0, 0.0)
    assert gaussian_query_capacity(np.zeros((4, 2)), 1.0, [4]) == fp.Bracket(0.0, 0.0)
    # Noise larger than all numbers: still a bracket.
    tiny = laplace_query_capacity([0.0, 1e-150, 2e-150], 1e100, [3])
    assert 0.0 <= tiny.lower <= tiny.upper <= 1e-280


@pytest.mark.parametrize("scale", [1e-3, 0.7, 4.0, 1e6])
def test_leakage_about_the_database(scale):
    values = [0.0, 0.3, 1.0, 1.0, 4.0]
    with mp.workdps(20):
        b = mpf(scale)
        total = 1
        for left, right in itertools.pairwise([mpf(v) for v in sorted(set(values))]):
            # The largest density between two answers is that of the nearer one.
            middle = (left + right) / 2
            cuts = sorted({left, middle, *(min(left + k * b, middle) for k in (1, 5, 15, 60))})
            total += 2 * mp.quad(lambda y, left=left: mp.exp(-(y - left) / b) / (2 * b), cuts)
        want = mp.log(total)
    told = laplace_query_leakage(values, scale)
    assert want * (1 - mpf(10) ** -15) <= told <= want * (1 + mpf(10) ** -14)
    assert laplace_query_leakage([2.0], 1.0) == 0.0


def test_leakage_is_that_of_a_fine_table():
    answers = np.array([0.0, 0.4, 1.7, 3.0])
    laws = tables.laplace_table(answers).rows
    whole = math.log(laws.max(axis=0).sum())
    # The largest density has a kink in the middle of every gap, which Gauss quadrature blurs.
    assert laplace_query_leakage(answers, 1.0) == pytest.approx(whole, abs=2e-3)


@pytest.mark.parametrize(
    ("values", "noise", "space", "match"),
    [
        ([0.0, 1.0, 2.0], 1.0, [2, 2], "one answer for each of the 4"),
        ([0.0, math.nan], 1.0, [2], "NaN"),
        ([0.0, 1.0], 0.0, [2], "above 0|at least"),
        ([0.0, 1.0], -1.0, [2], "above 0|at least"),
        ([0.0, 1.0], math.inf, [2], "finite"),
        ([0.0, 1e300], 1e-300, [2], "apart"),
        (["a", "b"], 1.0, [2], "values"),
        ([], 1.0, [1], "values"),
    ],
)
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_refusals(kind, values, noise, space, match):
    with pytest.raises(fp.InvalidInput, match=match):
        QUERIES[kind](values, noise, space)


def test_more_refusals():
    with pytest.raises(fp.InvalidInput, match="priors"):
        gaussian_query_capacity([0.0, 1.0], 1.0, [2], priors="markov")
    with pytest.raises(fp.InvalidInput, match="gap"):
        laplace_query_capacity([0.0, 1.0], 1.0, [2], gap=-1.0)
    with pytest.raises(fp.InvalidInput, match="sigma"):
        gaussian_query_capacity([[0.0, 1.0], [1.0, 1.0]], [1.0, 1.0, 1.0], [2])
    with pytest.raises(fp.InvalidInput, match="shape"):
        laplace_query_capacity([[0.0], [1.0]], 1.0, [2])
    with pytest.raises(fp.InvalidInput, match="values"):
        laplace_query_leakage([], 1.0)
    with pytest.raises(fp.InvalidInput, match="scale"):
        laplace_query_leakage([1.0], 0.0)
