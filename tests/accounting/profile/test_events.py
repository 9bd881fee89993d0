"""Profiles of noise and sampling against mpmath: other formulas, other quadratures, 40 digits."""

import math
import pickle

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf

import fastpriv as fp
from fastpriv.accounting import PrivacyProfile
from fastpriv.errors import InvalidInput


@pytest.fixture(autouse=True)
def digits():
    with mp.workdps(40):
        yield


def holds(bracket, truth, width):
    """The bracket contains the truth and is at most so wide, relatively."""
    assert mpf(bracket.lower) <= truth <= mpf(bracket.upper), (bracket, truth)
    assert bracket.upper - bracket.lower <= width * bracket.upper, (bracket, truth)


# Plain references.


def tail(x):
    return mp.erfc(x / mp.sqrt(2)) / 2


def normal_delta(mu, t):
    """Balle and Wang: Phi(mu/2 - t/mu) - e^t Phi(-mu/2 - t/mu)."""
    mu, t = mpf(mu), mpf(t)
    return tail(t / mu - mu / 2) - mp.exp(t) * tail(t / mu + mu / 2)


def sampled_normal_delta(sigma, q, t, removed):
    """One release: q times the normal curve at another level, or (1 - (1-q) e^t) times it."""
    sigma, q, t = mpf(sigma), mpf(q), mpf(t)
    if removed:
        if mp.exp(t) <= 1 - q:
            return 1 - mp.exp(t)
        return q * normal_delta(1 / sigma, mp.log((mp.exp(t) - 1 + q) / q))
    rest = 1 - mp.exp(t) * (1 - q)
    return rest * normal_delta(1 / sigma, t + mp.log(q / rest)) if rest > 0 else mpf(0)


def laplace_delta(e, t):
    """One release of Laplace noise whose losses are at most e."""
    e, t = mpf(e), mpf(t)
    if t >= e:
        return mpf(0)
    return 1 - mp.exp((t - e) / 2) if t > -e else 1 - mp.exp(t)


def two_laplace_delta(e, t):
    """The mean of one curve under the losses of another release."""
    e, t = mpf(e), mpf(t)

    def inner(l):
        return mp.exp((l - e) / 2) / 4 * laplace_delta(e, t - l)

    corners = sorted({-e, e, *(x for x in (t - e, t + e) if -e < x < e)})
    total = laplace_delta(e, t - e) / 2 + mp.exp(-e) / 2 * laplace_delta(e, t + e)
    return total + mp.quad(inner, corners)


def two_sampled_delta(sigma, q, t, removed):
    sigma, q = mpf(sigma), mpf(q)

    def loss(x):
        return mp.log(1 - q + q * mp.exp((2 * x - 1) / (2 * sigma**2)))

    def inner(x):
        density = mp.npdf(x, 0, sigma)
        if removed:
            density *= mp.exp(loss(x))
        return density * sampled_normal_delta(
            sigma, q, t - (loss(x) if removed else -loss(x)), removed
        )

    # Where t less the loss is the least one, the inner curve is smooth but not analytic.
    low, high = -10 * sigma, 1 + 10 * sigma
    points = {low, high, *mp.linspace(low, high, 40)}
    if removed:
        corner = sigma**2 * mp.log((mp.exp(mpf(t)) / (1 - q) - 1 + q) / q) + mpf(1) / 2
        near = (corner + sign * mpf(2) ** -i for i in range(0, 30, 2) for sign in (-1, 0, 1))
        points |= {x for x in near if low < x < high}
    return mp.quad(inner, sorted(points))


def fourier_delta(moment, k, t, c):
    """1/pi times the integral of Re M^k e^(-st) / (s (s+1)), on another line than the engine's."""

    def inner(angle):
        s = mp.mpc(c, angle)
        return (mp.exp(k * mp.log(moment(s)) - s * t) / (s * (s + 1))).real

    return mp.quad(inner, mp.linspace(0, 12, 25)) / mp.pi


# One kind of noise.


@pytest.mark.grid(every=7)
@pytest.mark.parametrize("sigma", [0.03, 0.5, 1.0, 7.0, 1e4])
@pytest.mark.parametrize("count", [1, 37, 10**9])
@pytest.mark.parametrize("level", [0.0, 1e-3, 1.0, 30.0])
def test_gaussian(sigma, count, level):
    mu = mp.sqrt(count) / mpf(sigma)
    truth = normal_delta(mu, level)
    if truth > mpf(10) ** -300 and truth < 1 - mpf(10) ** -6:
        holds(PrivacyProfile.gaussian(sigma).self_compose(count).delta(level), truth, 1e-10)


def test_gaussian_level():
    holds(PrivacyProfile.gaussian(1.0).epsilon(1e-5), mpf("4.377178095681224608553986"), 1e-13)
    replaced = PrivacyProfile.gaussian(2.0, relation="replace-one").epsilon(1e-5)
    assert replaced.lower == pytest.approx(4.377178095681224, rel=1e-13)


REFERENCES = [  # sigma, q, steps, delta, epsilon of the removed person
    (0.8, 0.005, 1000, 1e-6, 2.004106293),
    (1.0, 0.01, 1000, 1e-5, 1.828236667),
    (0.9, 0.00256, 4900, 1e-5, 1.139922178),
    (0.5, 0.002, 10**4, 1e-5, 8.865908867),
]


@pytest.mark.parametrize(("sigma", "q", "steps", "delta", "epsilon"), REFERENCES)
def test_sampled_gaussian_steps(sigma, q, steps, delta, epsilon):
    found = PrivacyProfile.gaussian(sigma, q).self_compose(steps).epsilon(delta)
    assert found.lower - 1e-9 <= epsilon <= found.upper + 1e-9
    assert found.upper - found.lower <= 1e-10 * found.upper


@pytest.mark.parametrize(("sigma", "q"), [(1.0, 0.01), (0.6, 0.3), (3.0, 0.9), (1.0, 1e-6)])
@pytest.mark.parametrize("level", [0.0, 1e-4, 0.3, 2.0])
def test_one_sampled_release(sigma, q, level):
    truth = max(sampled_normal_delta(sigma, q, level, removed) for removed in (True, False))
    found = PrivacyProfile.gaussian(sigma, q).delta(level)
    assert mpf(found.lower) <= truth <= mpf(found.upper)
    assert found.upper - found.lower <= 1e-10 * found.upper + 1e-300 or truth < 1e-13


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sigma", "q", "level"), [(1.0, 0.2, 1.0), (0.8, 0.05, 0.1), (0.5, 0.002, 0.2)]
)
def test_two_sampled_releases(sigma, q, level):
    """By the contour, and where one large loss among small ones decides."""
    with mp.workdps(20):
        truth = max(two_sampled_delta(sigma, q, level, removed) for removed in (True, False))
    found = PrivacyProfile.gaussian(sigma, q).self_compose(2).delta(level)
    assert (
        mpf(found.lower) * (1 - mpf(10) ** -12) <= truth <= mpf(found.upper) * (1 + mpf(10) ** -12)
    )
    # Rare samples are bounded to 1e-6 or better in a fraction of a second.
    assert found.upper - found.lower <= 5e-9 * found.upper


@pytest.mark.parametrize("e", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.5, 1.99])
def test_laplace_by_hand(e, share):
    level = share * e
    one = PrivacyProfile.laplace(1.0 / e)
    if share < 1:
        holds(one.delta(level), laplace_delta(1 / mpf(1.0 / e), level), 1e-13)
    truth = two_laplace_delta(1 / mpf(1.0 / e), level)
    found = one.self_compose(2).delta(level)
    assert mpf(found.lower) <= truth <= mpf(found.upper)
    assert found.upper - found.lower <= 1e-11 * found.upper


@pytest.mark.parametrize(
    ("b", "k", "delta", "epsilon"),
    [(1.0, 100, 1e-6, 71.54600366), (2.0, 1000, 1e-10, 195.4117633)],
)
def test_laplace_many(b, k, delta, epsilon):
    profile = PrivacyProfile.laplace(b).self_compose(k)
    found = profile.epsilon(delta)
    assert found.lower - 1e-7 <= epsilon <= found.upper + 1e-7
    e = 1 / mpf(b)

    def moment(s):
        a = s + mpf(1) / 2
        return mp.exp(-e / 2) * (mp.cosh(a * e) + mp.sinh(a * e) / (2 * a))

    with mp.workdps(20):
        truth = fourier_delta(moment, k, mpf(epsilon), mpf("0.9"))
    bracket = profile.delta(epsilon)
    assert (
        mpf(bracket.lower) * (1 - mpf(10) ** -8)
        <= truth
        <= mpf(bracket.upper) * (1 + mpf(10) ** -8)
    )


def test_no_release_is_above_its_largest_loss():
    three = PrivacyProfile.laplace(1.0).self_compose(3)
    assert 3.0 in three.epsilon(0.0)
    assert three.epsilon(0.0).width < 1e-14
    assert three.delta(3.1) == fp.Bracket(0.0, 0.0)
    assert PrivacyProfile.gaussian(1.0).epsilon(0.0) == fp.Bracket(math.inf, math.inf)


# Lattices.


@pytest.mark.slow(but=["0.0-1-0.4-1", "0.4-1-2.0-1", "2.5-1-2.0-1"])
@pytest.mark.parametrize(("sigma", "d"), [(0.4, 1), (2.0, 1), (3.0, 2), (10.0, 5)])
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("level", [0.0, 0.4, 2.5])
def test_discrete_gaussian(sigma, d, count, level):
    x = range(-int(30 * sigma) - d, int(30 * sigma) + d)
    mass = {n: mp.exp(-(mpf(n) ** 2) / (2 * mpf(sigma) ** 2)) for n in range(x[0] - d, x[-1] + 1)}
    total = mp.fsum(mass.values())
    P, Q = [mass[n - d] / total for n in x], [mass[n] / total for n in x]
    if count == 1 or len(P) <= 200:
        if count == 2:
            P, Q = ([a * b for a in law for b in law] for law in (P, Q))
        truth = mp.fsum(max(p - mp.exp(mpf(level)) * q, mpf(0)) for p, q in zip(P, Q, strict=True))
        found = PrivacyProfile.discrete_gaussian(sigma, d).self_compose(count).delta(level)
        assert mpf(found.lower) - mpf(10) ** -30 <= truth <= mpf(found.upper) + mpf(10) ** -30
        assert found.upper - found.lower <= 1e-10 * found.upper


@pytest.mark.parametrize(("a", "d"), [(0.1, 1), (0.5, 3), (3.0, 2)])
@pytest.mark.parametrize("level", [0.0, 0.25, 1.0])
def test_discrete_laplace(a, d, level):
    x = range(-int(80 / a), int(80 / a) + d)
    P = [mp.exp(-mpf(a) * abs(n - d)) * mp.tanh(mpf(a) / 2) for n in x]
    Q = [mp.exp(-mpf(a) * abs(n)) * mp.tanh(mpf(a) / 2) for n in x]
    truth = mp.fsum(max(p - mp.exp(mpf(level)) * q, mpf(0)) for p, q in zip(P, Q, strict=True))
    found = PrivacyProfile.discrete_laplace(a, d).delta(level)
    assert mpf(found.lower) - mpf(10) ** -30 <= truth <= mpf(found.upper) + mpf(10) ** -30
    assert found.upper - found.lower <= 1e-13 * max(found.upper, 1e-3)


# Sampling of finite releases, by listing all outcomes.


@pytest.mark.parametrize("q", [0.01, 0.5, 0.999])
@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("level", [0.0, 0.02, 0.4])
def test_sampled_response(q, count, level):
    epsilon, delta = 1.0, 0.01
    stay = (1 - mpf(delta)) / (1 + mp.exp(-mpf(epsilon)))
    P = [mpf(delta), stay, 1 - mpf(delta) - stay, mpf(0)]
    Q = P[::-1]
    both = [(1 - mpf(q)) * b + mpf(q) * a for a, b in zip(P, Q, strict=True)]
    truth = mpf(0)
    for first, second in ((both, Q), (Q, both)):
        outcomes = [(mpf(1), mpf(1))]
        for _ in range(count):
            outcomes = [
                (a * p, b * r) for a, b in outcomes for p, r in zip(first, second, strict=True)
            ]
        truth = max(truth, mp.fsum(max(a - mp.exp(mpf(level)) * b, mpf(0)) for a, b in outcomes))
    profile = PrivacyProfile.from_epsilon_delta(epsilon, delta).poisson_subsampled(q)
    holds(profile.self_compose(count).delta(level), truth, 1e-10)


def test_mixed_kinds_by_hand():
    """Randomised response and Gaussian noise: the mean of the normal curve over two losses."""
    level, epsilon, mu = 0.7, 0.5, mpf(1) / 2
    stay = 1 / (1 + mp.exp(-mpf(epsilon)))
    truth = stay * normal_delta(mu, level - epsilon) + (1 - stay) * normal_delta(
        mu, level + epsilon
    )
    both = PrivacyProfile.gaussian(2.0).compose(PrivacyProfile.from_epsilon_delta(epsilon))
    holds(both.delta(level), truth, 1e-10)
    channel = PrivacyProfile.of(fp.HammingChannel(5, 2, epsilon))
    noise = PrivacyProfile.gaussian(2.0).with_relation("replace-one")
    holds(noise.compose(channel).delta(level), truth, 1e-10)


def test_mixture_of_gaussians_by_hand():
    """One release: P(x > y) - e^t Q(x > y) at the y where the ratio is e^t."""
    shifts, chances, level = [0.0, 1.0, 2.5], [0.3, 0.5, 0.2], 0.8

    def ratio(x):
        return mp.fsum(
            mpf(p) * mp.exp(mpf(c) * x - mpf(c) ** 2 / 2)
            for c, p in zip(shifts, chances, strict=True)
        )

    y = mp.findroot(lambda x: ratio(x) - mp.exp(mpf(level)), mpf(1))
    truth = mp.fsum(mpf(p) * tail(y - mpf(c)) for c, p in zip(shifts, chances, strict=True))
    truth -= mp.exp(mpf(level)) * tail(y)
    found = PrivacyProfile.mixture_of_gaussians(1.0, shifts, chances).delta(level)
    assert mpf(found.lower) <= truth * (1 + mpf(10) ** -15)
    assert truth * (1 - mpf(10) ** -15) <= mpf(found.upper)
    # The chances sum to one in doubles only.
    assert found.upper - found.lower <= 1e-11


# Levels that are declared.


def test_bounded_range():
    epsilon = 1.0
    one = PrivacyProfile.exponential(epsilon)
    for level in (0.0, 0.3, 0.9):
        truth = (mp.exp(mpf(epsilon) / 2) - mp.exp(mpf(level) / 2)) ** 2 / (
            mp.exp(mpf(epsilon)) - 1
        )
        holds(one.delta(level), truth, 1e-12)
        worst = mpf(0)  # over pairs with losses u and u - epsilon
        for u in np.linspace(0.01, 0.99, 99):
            p = (mp.exp(mpf(epsilon)) - mp.exp(mpf(u))) / (mp.exp(mpf(epsilon)) - 1)
            worst = max(worst, p * (1 - mp.exp(mpf(level) - mpf(u))))
        assert worst * (1 - mpf(10) ** -30) <= truth <= worst * (1 + mpf("1e-3"))
    many = one.self_compose(20).delta(3.0)
    assert (
        0.0
        < many.lower
        < many.upper
        < PrivacyProfile.from_epsilon_delta(1.0).self_compose(20).delta(3.0).upper
    )


def test_zcdp_is_above_gaussian_noise():
    for sigma, delta in ((1.0, 1e-6), (4.0, 1e-3), (0.3, 1e-30)):
        noise = PrivacyProfile.gaussian(sigma).epsilon(delta)
        declared = PrivacyProfile.zcdp(0.5 / sigma**2).epsilon(delta)
        assert declared.lower == 0.0
        assert noise.upper < declared.upper < 1.3 * noise.upper
    both = PrivacyProfile.zcdp(0.1).compose(PrivacyProfile.gaussian(1.0)).epsilon(1e-6)
    assert both.lower >= PrivacyProfile.gaussian(1.0).epsilon(1e-6).lower - 1e-9
    assert PrivacyProfile.zcdp(2.556225581).epsilon(1e-10).upper == pytest.approx(17.1436, abs=1e-4)


def test_renyi_levels():
    orders = np.array([1.5, 2.0, 4.0, 8.0, 16.0])
    declared = PrivacyProfile.renyi(orders, 0.5 * orders)
    for delta in (1e-3, 1e-6):
        truth = PrivacyProfile.gaussian(1.0).epsilon(delta).lower
        assert truth <= declared.epsilon(delta).upper <= 1.6 * truth
    assert PrivacyProfile.renyi([2.0], [0.0]).delta(0.1).upper < 1.0


# Any tree of releases.

PARTS = [
    PrivacyProfile.gaussian(3.0),
    PrivacyProfile.gaussian(2.0, 0.1),
    PrivacyProfile.laplace(4.0),
    PrivacyProfile.laplace(2.0, 0.2),
    PrivacyProfile.from_epsilon_delta(0.2, 1e-10),
    PrivacyProfile.discrete_laplace(0.1, 2),
    PrivacyProfile.of([[0.6, 0.4], [0.5, 0.5]]),
]


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(st.lists(st.integers(0, len(PARTS) - 1), min_size=1, max_size=4), st.integers(10, 200))
def test_trees(chosen, count):
    kinds = [part.with_relation("replace-one") for part in PARTS]
    parts = [kinds[i] for i in chosen]
    whole = parts[0].compose(*parts[1:]).self_compose(count)
    again = PrivacyProfile({}).compose(*(part.self_compose(count) for part in parts[::-1]))
    assert whole.parts == again.parts
    first, second = whole.delta(1.0), again.delta(1.0)
    assert max(first.lower, second.lower) <= min(first.upper, second.upper)
    found = whole.epsilon(1e-6)
    assert found.lower <= found.upper
    assert whole.delta(found.upper).lower <= 1e-6
    if found.lower > 0.0:
        assert whole.delta(found.lower).upper >= 1e-6
    # More releases are no more private.
    assert whole.compose(kinds[0]).delta(1.0).upper >= first.lower


@pytest.mark.slow
def test_copies_and_threads():
    from concurrent.futures import ThreadPoolExecutor

    profile = PrivacyProfile.gaussian(1.0, 0.01).self_compose(100)
    expected = profile.epsilon(1e-6)
    assert pickle.loads(pickle.dumps(profile)).epsilon(1e-6) == expected
    with ThreadPoolExecutor(4) as pool:
        found = list(
            pool.map(
                lambda _: PrivacyProfile.gaussian(1.0, 0.01).self_compose(100).epsilon(1e-6),
                range(8),
            )
        )
    assert set(map(repr, found)) == {repr(expected)}


# What means nothing, and what is trivial.


@pytest.mark.parametrize(
    "make",
    [
        lambda: PrivacyProfile.gaussian(-1.0),
        lambda: PrivacyProfile.gaussian(math.inf),
        lambda: PrivacyProfile.gaussian(1e-9),
        lambda: PrivacyProfile.gaussian(1.0, 1.1),
        lambda: PrivacyProfile.gaussian(1.0, relation="remove"),
        lambda: PrivacyProfile.mixture_of_gaussians(1.0, [1.0], [0.5]),
        lambda: PrivacyProfile.mixture_of_gaussians(1.0, [-1.0], [1.0]),
        lambda: PrivacyProfile.discrete_gaussian(1.0, -1),
        lambda: PrivacyProfile.exponential(-1.0),
        lambda: PrivacyProfile.zcdp(math.nan),
        lambda: PrivacyProfile.renyi([1.0], [1.0]),
        lambda: PrivacyProfile.renyi([2.0, 3.0], [1.0]),
        lambda: PrivacyProfile.gaussian(1.0).self_compose(-1),
        lambda: (
            PrivacyProfile.gaussian(1.0)
            .self_compose(2)
            .compose(PrivacyProfile.laplace(1.0))
            .poisson_subsampled(0.5)
        ),
        lambda: PrivacyProfile.of([[0.6, 0.4], [0.5, 0.5]]).poisson_subsampled(0.5),
        lambda: PrivacyProfile.gaussian(1.0, relation="replace-one").compose(
            PrivacyProfile.gaussian(1.0, relation="add-or-remove")
        ),
    ],
)
def test_input_that_means_nothing(make):
    with pytest.raises(InvalidInput) as error:
        make()
    assert len(str(error.value)) < 250


@pytest.mark.parametrize(
    "profile",
    [
        PrivacyProfile.gaussian(1.0, 0.0),
        PrivacyProfile.gaussian(0.0, 0.0),
        PrivacyProfile.laplace(1.0).self_compose(0),
        PrivacyProfile.mixture_of_gaussians(0.0, [0.0], [1.0]),
        PrivacyProfile.zcdp(0.0),
        PrivacyProfile.gaussian(1.0).poisson_subsampled(0.0),
    ],
)
def test_nothing_is_released(profile):
    assert profile.delta(0.0) == profile.epsilon(0.0) == fp.Bracket(0.0, 0.0)


def test_no_noise():
    assert PrivacyProfile.gaussian(0.0).delta(5.0) == fp.Bracket(1.0, 1.0)
    assert PrivacyProfile.gaussian(0.0).epsilon(0.5) == fp.Bracket(math.inf, math.inf)
    shown = PrivacyProfile.gaussian(0.0, 0.1)  # the person is seen if it takes part
    assert shown.delta(1.0).upper == pytest.approx(0.1, rel=1e-14)
    assert shown.epsilon(0.05).lower == math.inf
    assert PrivacyProfile.gaussian(1.0, 1.0).parts == PrivacyProfile.gaussian(1.0).parts
