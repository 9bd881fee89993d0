"""Counting with noise: the Laplace curve exactly, and geometric noise that can be released."""

import math

import numpy as np
import pytest
import scipy
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

import fastpriv as fp
from fastpriv.mechanisms import GeometricCount, laplace_count_leakage, laplace_count_pml
from oracles import noise as oracle


def formula(t, c):
    t, c = mpf(t), mpf(c)
    return t - mp.log((1 - c) + c * mp.exp(t))


@pytest.mark.grid(every=5)
@pytest.mark.parametrize("t", [1e-12, 1e-3, 0.3, 0.999, 1.0, 5.0, 40.0, 600.0, 1e5])
@pytest.mark.parametrize("c", [0.0, 1e-300, 1e-9, 0.1, 0.49, 0.5])
def test_closed_form_is_rounded_up_and_stable(t, c):
    exact = formula(1 / (mpf(8) * mpf(0.125 / t)), c)
    found = laplace_count_pml(8, 0.125 / t, c)
    assert exact <= found <= exact * (1 + mpf("1e-14"))
    assert found <= t * (1 + 1e-14)


@given(
    st.integers(1, 30),
    st.floats(-12.0, 9.0),
    st.floats(1e-6, 1 - 1e-6) | st.sampled_from([1e-100, 1e-60, 1e-9, 1 - 1e-15]),
    st.lists(st.floats(-0.5, 1.5), min_size=1, max_size=4),
)
@example(3, 8.0, 0.5, [0.5, 0.1])  # both densities below the range of a double
@example(2, 0.0, 1e-5, [0.0])
@example(9, 7.0, 0.03125, [0.0625])
@settings(max_examples=60, deadline=None)
def test_curve_against_the_definition(n, log_t, p, places):
    scale = math.exp(-log_t) / n
    found = laplace_count_leakage(n, scale, p, places)
    for y, level in zip(places, found, strict=True):
        exact = oracle.laplace_leakage(n, scale, p, y)
        assert exact <= level <= exact * (1 + mpf("1e-14")) + granted(n, 1 / (n * scale))


def granted(n, t):
    """What rounding up may add, t being the step 1/(n b): the errors that the code grants.

    Both densities are right to a share s = (64 + 64 sqrt(n) + 16 t) u, u = 2^-53, and the place of
    y to 16 t u. Relative to the larger density, which is at least 1, their difference is a sum of
    three terms of at most min(t, 1), so it is off by e = 3 s min(t, 1) + 16 t u, and what is
    granted doubles that. The level is -ln(1 - r loss) with r loss <= 3/4, so that it grows by at
    most 4 times what is added to the loss, or else the log of a sum of densities, off by 2 s.
    """
    u = 2.0**-53
    s = (64 + 64 * math.sqrt(n) + 16 * t) * u
    return max(8 * (3 * s * min(t, 1) + 16 * t * u), 2 * s)


@given(st.integers(1, 40), st.floats(-8.0, 5.0), st.floats(0.0, 0.5))
@settings(max_examples=60, deadline=None)
def test_curve_reaches_the_closed_form_and_no_more(n, log_t, c):
    scale = math.exp(-log_t) / n
    grid = np.concatenate([[-math.inf, math.inf], np.linspace(-0.2, 1.2, 400)])
    for p in {max(c, 1e-12), 0.5 * (c + 0.5), 0.5, 1 - max(c, 1e-12)}:
        curve = laplace_count_leakage(n, scale, p, grid)
        level = laplace_count_pml(n, scale, min(p, 1 - p))
        assert curve.max() == pytest.approx(level, rel=1e-11)
        assert level <= laplace_count_pml(n, scale, c) * (1 + 1e-7)  # 1 - p is rounded
        assert curve.max() <= max(curve[0], curve[1]) * (1 + 1e-12)  # beyond all counts
    if c > 1e-9:
        top = laplace_count_leakage(n, scale, c, [1.0, 7.0, math.inf])
        assert top == pytest.approx(laplace_count_pml(n, scale, c), rel=1e-11)


def test_curve_of_a_million_rows():
    n = 10**6
    y = np.linspace(-0.1, 1.1, 1001)
    for t in (1e-6, 0.1, 30.0):
        curve = laplace_count_leakage(n, 1 / (n * t), 0.3, y)
        assert np.isfinite(curve).all()
        assert curve.max() == pytest.approx(laplace_count_pml(n, 1 / (n * t), 0.3), rel=1e-9)
        assert curve.min() >= 0


def test_known_rows_and_bad_arguments():
    assert laplace_count_leakage(5, 0.1, 0.0, [0.5]).tolist() == [0.0]
    assert laplace_count_leakage(5, 0.1, 1.0, 0.5).shape == ()
    assert laplace_count_leakage(1, 1e-300, 0.25, [0.0, 1.0]) == pytest.approx(
        [-math.log(0.75), -math.log(0.25)]
    )
    for bad in (
        lambda: laplace_count_pml(0, 1.0),
        lambda: laplace_count_pml(3, 0.0),
        lambda: laplace_count_pml(3, 1.0, 0.6),
        lambda: laplace_count_leakage(3, 1.0, 0.5, [math.nan]),
        lambda: laplace_count_leakage(3, -1.0, 0.5, [0.0]),
        lambda: GeometricCount(0, 1.0),
        lambda: GeometricCount(3, 0.0),
        lambda: GeometricCount(3, math.inf),
        lambda: GeometricCount(3, 701.0).kernel(),  # a zero would make the level infinite
        lambda: laplace_count_leakage(3, 1.0, 1e-101, [0.0]),
        lambda: GeometricCount(3, 1.0).sample([4]),
        lambda: GeometricCount(3, 1.0).sample([-1]),
        lambda: GeometricCount(3, 1.0).sample([0.5]),
    ):
        with pytest.raises(fp.InvalidInput):
            bad()
    with pytest.raises(fp.TooLarge):
        GeometricCount(10**6, 1.0).kernel()
    assert fp.dp_level(GeometricCount(3, 700.0).channel()) == pytest.approx(700.0)
    for small in (1e-18, 1e-300):
        with pytest.raises(fp.TooLarge):
            GeometricCount(3, small).sample([1])
    assert set(GeometricCount(3, 1e-12).sample(np.full(200, 1)).tolist()) == {0, 3}
    assert (GeometricCount(3, 700.0).sample(np.arange(4)) == np.arange(4)).all()


@pytest.mark.parametrize("n", [1, 2, 5, 8])
@pytest.mark.parametrize("epsilon", [1e-8, 0.3, 2.0, 50.0])
def test_geometric_count_measured_by_the_library(n, epsilon):
    query = GeometricCount(n, epsilon)
    channel = query.channel()
    q = mp.exp(-mpf(epsilon))
    for v, row in enumerate(query.kernel()):
        for y, found in enumerate(row):
            inner = (1 - q) / (1 + q) * q ** abs(y - v)
            edge = q ** abs(y - v) / (1 + q)
            exact = edge if y in (0, n) else inner
            assert abs(found - exact) <= 1e-13 * exact
    assert query.realised_level() == epsilon
    assert fp.dp_level(channel) == pytest.approx(epsilon, rel=1e-7 if epsilon < 1e-6 else 1e-13)
    for c in (0.01, 0.2, 0.5):
        prior = fp.Product.iid([1 - c, c], n)
        found = query.pml_level(c)
        exact = formula(epsilon, c)
        assert exact <= found <= exact * (1 + mpf("1e-13"))
        assert fp.row_pml(channel, prior, 0).max() == pytest.approx(
            found, rel=1e-6 if epsilon < 1e-6 else 1e-11
        )


def test_geometric_count_is_drawn_from_its_kernel():
    query = GeometricCount(6, 0.7)
    rng = np.random.default_rng(5)
    for v in (0, 2, 6):
        for source, seldom in ((rng, 1e-6), (None, 1e-10)):  # the default source has no seed
            drawn = query.sample(np.full(300_000, v), source)
            seen = np.bincount(drawn, minlength=7)
            assert scipy.stats.chisquare(seen, query.kernel()[v] * 300_000).pvalue > seldom
    free = GeometricCount(6, 0.7, clamp=False).sample(np.zeros(1000, dtype=int), rng)
    assert free.min() < 0
    assert query.sample([[1, 2], [3, 4]]).shape == (2, 2)
