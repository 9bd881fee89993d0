"""Noise on a query under a known prior: information, leakage factor, pointwise leakage."""

import itertools
import math

import numpy as np
import pytest
from mpmath import exp, log, mp, mpf, npdf, quad, workdps

import fastpriv as fp
from fastpriv.mechanisms import (
    SumQuery,
    gaussian_query_information,
    laplace_count_leakage,
    laplace_query_information,
    laplace_query_pml,
)


def laplace(y, v, b):
    return exp(-abs(y - v) / b) / (2 * b)


def normal(y, v, s):
    return npdf(y, v, s)


@workdps(30)
def information(density, values, scale, prior):
    """I(X; Y) by quadrature in 30 digits, split where a density has a kink."""
    masses = {}
    for v, p in zip(values, prior, strict=True):
        masses[mpf(v)] = masses.get(mpf(v), 0) + mpf(p)
    total = sum(masses.values())  # floats such as 0.9 and 0.1 do not add up to 1
    masses = {v: p / total for v, p in masses.items() if p > 0}
    ends = sorted(masses)
    cuts = [ends[0] - 80 * scale, ends[0] - 12 * scale]
    steps = [mp.linspace(a, b, 5) for a, b in itertools.pairwise(ends)]
    cuts += [c for part in steps for c in part] + ends
    cuts = sorted({*cuts, ends[-1] + 12 * scale, ends[-1] + 80 * scale})

    def integrand(y):
        parts = [(p, density(y, v, mpf(scale))) for v, p in masses.items()]
        mean = sum(p * d for p, d in parts)
        return sum(p * d * log(d / mean) for p, d in parts if d > 0)

    return quad(integrand, cuts)


CASES = [
    ([0.0, 1.0], 1.0, [0.5, 0.5]),
    ([0.0, 1.0, 5.0], 0.7, [0.2, 0.3, 0.5]),
    ([3.0, 3.0, -1.0, 2.5], 2.0, [0.1, 0.2, 0.3, 0.4]),
    ([0.0, 1.0, 2.0], 1.0, [0.5, 0.0, 0.5]),  # an answer that does not occur
    ([0.0, 1e-3], 1.0, [0.9, 0.1]),
]


@pytest.mark.parametrize(
    ("call", "density"),
    [(laplace_query_information, laplace), (gaussian_query_information, normal)],
)
@pytest.mark.parametrize(("values", "scale", "prior"), CASES)
def test_information_against_quadrature(call, density, values, scale, prior):
    found, exact = call(values, scale, prior), information(density, values, scale, prior)
    assert found.lower <= exact <= found.upper
    assert found.width <= 1e-11
    entropy = -sum(mpf(p) * log(mpf(p)) for p in prior if p > 0)
    assert found.leakage_factor.lower <= exact / entropy <= found.leakage_factor.upper


def test_example_4_of_makhdoumi_fawaz():
    found = laplace_query_information(range(0, 257, 4), 1.0, fp.Uniform(1, 65))
    assert round(found.leakage_factor.upper, 4) == 0.9067
    assert found.leakage_factor.width < 1e-9
    # Geometric noise, the stand-in on the integers, tells a little more.
    kernel = fp.mechanisms.GeometricCount(256, 1.0).kernel()[::4]
    assert fp.leakage_factor(kernel, fp.Uniform(1, 65)) > found.leakage_factor.upper


def test_vectors_and_constant_answers():
    # Two coordinates that are functions of one bit: noise on one direction.
    flat = gaussian_query_information([[0.0, 0.0], [3.0, 4.0]], 5.0, [0.4, 0.6])
    line = gaussian_query_information([0.0, 1.0], 1.0, [0.4, 0.6])
    assert max(flat.lower, line.lower) <= min(flat.upper, line.upper)
    corners = np.array(list(itertools.product((0.0, 1.0), repeat=2)))
    both = gaussian_query_information(corners, 1.0, [0.24, 0.36, 0.16, 0.24])  # independent bits
    parts = [gaussian_query_information([0.0, 1.0], 1.0, [q, 1 - q]) for q in (0.6, 0.4)]
    assert both.lower <= sum(part.upper for part in parts)
    assert both.upper >= sum(part.lower for part in parts)
    assert both.width < 1e-10
    three = gaussian_query_information(np.eye(4), 1.0, [0.25] * 4)
    assert 0 < three.lower <= three.upper <= math.log(4)
    for call in (laplace_query_information, gaussian_query_information):
        assert call([3, 3], 1.0, [0.5, 0.5]) == 0.0
        assert call([3, 4], 1.0, [1.0, 0.0]).leakage_factor == 0.0
        # Far apart, everything is told.
        assert call([0, 1e3], 1.0, [0.3, 0.7]).leakage_factor.lower > 1 - 1e-8


@pytest.mark.parametrize("call", [laplace_query_information, gaussian_query_information])
@pytest.mark.parametrize(
    "prior",
    [
        fp.Product([[0.3, 0.7], [0.5, 0.5], [0.9, 0.1], [0.0, 1.0]]),
        fp.Exchangeable([0.1, 0.2, 0.0, 0.3, 0.4]),
        fp.Markov([0.2, 0.8], [[0.9, 0.1], [0.3, 0.7]], 4),
    ],
)
def test_sums_equal_lists(call, prior):
    scores = [[0.0, 0.75]] * 3 + [[-1.0, 2.5]]
    values = [sum(s[v] for s, v in zip(scores, x, strict=True)) for x in np.ndindex(2, 2, 2, 2)]
    structured, listed = call(SumQuery(scores), 0.8, prior), call(values, 0.8, prior.pmf())
    assert structured.midpoint == pytest.approx(listed.midpoint, abs=1e-11)
    assert structured.leakage_factor.midpoint == pytest.approx(listed.leakage_factor.midpoint)


def test_a_long_count_is_near_the_normal_formula():
    n, sigma = 1000, 10.0
    found = gaussian_query_information(SumQuery.count(n), sigma, fp.Product.iid([0.7, 0.3], n))
    assert found.width < 1e-10
    assert found.midpoint == pytest.approx(0.5 * math.log1p(n * 0.21 / sigma**2), abs=1e-4)


@workdps(30)
def plain_pml(values, scale, prior, y, u=None):
    """Leakage at y about the databases, or about an attribute u of them."""
    labels = range(len(values)) if u is None else u
    masses, joint, total = {}, {}, mpf(0)
    for v, p, label in zip(values, prior, labels, strict=True):
        weight = mpf(p) * laplace(mpf(y), mpf(v), mpf(scale))
        masses[label] = masses.get(label, 0) + mpf(p)
        joint[label] = joint.get(label, 0) + weight
        total += weight
    return log(max(joint[k] / masses[k] for k in joint if masses[k] > 0) / total)


@pytest.mark.parametrize(
    "prior",
    [
        fp.Product([[0.3, 0.7], [0.5, 0.5], [0.9, 0.1]]),
        fp.Product([[0.3, 0.7], [0.0, 1.0], [0.9, 0.1]]),
        fp.Exchangeable([0.1, 0.0, 0.5, 0.4]),
        fp.Dense([0.1, 0.0, 0.2, 0.05, 0.25, 0.1, 0.1, 0.2], [2, 2, 2]),
    ],
)
@pytest.mark.parametrize("row", [None, 0, 1, 2])
def test_leakage_at_outputs_and_its_supremum(prior, row):
    scores = [[0.0, 1.0], [0.0, 0.5], [2.0, -1.0]]
    databases = list(np.ndindex(2, 2, 2))
    values = [sum(s[v] for s, v in zip(scores, x, strict=True)) for x in databases]
    labels = None if row is None else [x[row] for x in databases]
    ys = [*np.linspace(-3.0, 5.0, 65).tolist(), -50.0, 60.0]
    exact = [plain_pml(values, 0.7, prior.pmf(), y, labels) for y in ys]
    for query, law in ((SumQuery(scores), prior), (values, prior), (values, prior.pmf())):
        if row is not None and law is not prior:
            continue  # a vector is a single row
        found = laplace_query_pml(query, 0.7, law, ys, row=row)
        assert np.array([float(e) for e in exact]) == pytest.approx(found, abs=1e-12)
        assert all(f >= e for f, e in zip(found.tolist(), exact, strict=True))
        level = laplace_query_pml(query, 0.7, law, row=row)
        at_answers = max(plain_pml(values, 0.7, prior.pmf(), v, labels) for v in values)
        assert float(at_answers) == pytest.approx(level, abs=1e-12)
        assert max(exact) <= level
        ends = laplace_query_pml(query, 0.7, law, [-math.inf, math.inf], row=row)
        assert ends == pytest.approx(found[-2:], abs=1e-12)


def test_one_bit_of_a_fraction():
    ys = [-0.5, 0.0, 0.29, 0.31, 0.8, 1.5]
    query, bits = SumQuery([[0.0, 0.01]] * 100), fp.Product.iid([0.7, 0.3], 100)
    found = laplace_query_pml(query, 0.01, bits, ys, row=7)
    assert found == pytest.approx(laplace_count_leakage(100, 0.01, 0.3, ys), abs=1e-11)


def test_probabilities_that_underflow():
    n = 3000
    level = laplace_query_pml(SumQuery.count(n), 1.0, fp.Product.iid([0.5, 0.5], n))
    # At the answer 0: -ln E e^(-count) for independent bits.
    assert level == pytest.approx(-n * math.log((1 + math.exp(-1)) / 2), rel=1e-10)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: laplace_query_information([0, 1], 0.0, [0.5, 0.5]), "scale"),
        (lambda: gaussian_query_information([0, 1], math.inf, [0.5, 0.5]), "sigma"),
        (lambda: laplace_query_information([0, 1, 2], 1.0, [0.5, 0.5]), "one answer"),
        (lambda: laplace_query_information([[0, 1]], 1.0, [1.0]), "list of numbers"),
        (lambda: laplace_query_pml([0, 1], 1.0, [0.5, 0.5], [math.nan]), "NaN"),
        (lambda: laplace_query_pml([0, 1], 1.0, [0.5, 0.5], row=1), "row"),
        (lambda: laplace_query_pml(SumQuery.histogram(2, 2), 1.0, fp.Uniform(2, 2)), "numbers"),
        (lambda: laplace_query_information(SumQuery.count(3), 1.0, fp.Uniform(2, 2)), "space"),
    ],
)
def test_bad_arguments(call, match):
    with pytest.raises(fp.InvalidInput, match=match):
        call()
