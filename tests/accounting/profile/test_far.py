"""Levels far out and chances too rare for a double: right answers, no raw errors, no zeros."""

import math

import mpmath
import numpy as np
import pytest

import fastpriv as fp

P = fp.accounting.PrivacyProfile


@pytest.mark.parametrize("t", [1e5, 1e10, 1e20, 1e200, 1e308])
def test_unbounded_losses_are_never_impossible(t):
    for profile in (P.gaussian(1.0), P.zcdp(0.5), P.zcdp(0.5).compose(P.laplace(1.0))):
        delta = profile.delta(t)
        assert delta.lower == 0.0
        assert 0.0 < delta.upper < 1e-300


def test_zcdp_never_proves_pure_privacy():
    with pytest.raises(fp.Infeasible, match="no noise"):
        fp.accounting.calibrate(lambda s: P.zcdp(1 / (2 * s * s)), epsilon=1.0, delta=0.0)


def test_the_rarest_first_errors():
    for profile in (P.gaussian(1.0), P.zcdp(0.5)):
        assert profile.tradeoff(0.0).upper == 1.0
        rare = profile.tradeoff(1e-310)
        assert profile.tradeoff(1e-300).lower <= rare.lower <= rare.upper <= 1.0
        assert not math.isnan(profile.tpr(0.0).upper)


def test_a_table_of_nothing_writes_nothing():
    empty, guard = np.empty(0), np.full(4, 7.0)
    fp.kernels.tail_tables(empty, empty, empty, 1.0, guard[2:2], guard[2:2])
    assert guard.tolist() == [7.0] * 4


@pytest.mark.parametrize("q", [0.5, 1e-5, 1e-10, 1e-300])
@pytest.mark.parametrize("t", [1.0, 39.0, 41.0, 695.0, 699.0, 705.0, 790.0, 798.0])
def test_levels_whose_exponential_overflows_for_sampled_laplace_noise(q, t):
    delta = P.laplace(1.0 / 800.0, q).delta(t)
    with mpmath.workdps(500):
        level = mpmath.log(1 + mpmath.expm1(t) / mpmath.mpf(q))
        truth = q * -mpmath.expm1(min(0, (level - 1 / mpmath.mpf(1.0 / 800.0)) / 2))
    assert delta.lower <= truth <= delta.upper


@pytest.mark.parametrize("t", [690.0, 705.0, 740.0, 800.0, 900.0])
def test_levels_whose_exponential_overflows_for_mixtures(t):
    sigma, shifts, chances = 0.02625, [0.5, 1.0], [0.25, 0.75]
    delta = P.mixture_of_gaussians(sigma, shifts, chances).delta(t)
    with mpmath.workdps(900):
        at = [c / mpmath.mpf(sigma) for c in shifts]

        def tail(y):
            return mpmath.erfc(y / mpmath.sqrt(2)) / 2

        def curve(sign):
            def loss(x):
                terms = zip(chances, at, strict=True)
                return mpmath.log(sum(p * mpmath.exp(c * x - c * c / 2) for p, c in terms))

            y = mpmath.findroot(lambda x: loss(x) - sign * t, (-100, 100), solver="anderson")
            mixed = sum(p * tail(sign * (y - c)) for p, c in zip(chances, at, strict=True))
            first, second = (mixed, tail(y)) if sign > 0 else (tail(-y), mixed)
            return first - mpmath.exp(t) * second

        truth = max(curve(1), curve(-1))
    assert delta.lower <= truth <= delta.upper


@pytest.mark.parametrize(
    "call",
    [
        lambda: P.discrete_gaussian(1.0, 10**30),
        lambda: P.from_json(3),
        lambda: fp.accounting.calibrate(3, epsilon=1.0, delta=1e-5),
    ],
)
def test_refused_in_words(call):
    with pytest.raises(fp.FastprivError):
        call()


def test_levels_next_to_the_largest_loss():
    """The saddle point grows without limit there; the bound stays close to zero."""
    once = P.laplace(1.0)
    assert once.self_compose(100).delta(100.0).upper < 1e-42
    mixed = once.self_compose(3).compose(P.laplace(2.0).self_compose(2))
    assert mixed.delta(4.0).upper < 1e-15
    assert abs(mixed.epsilon(1e-14).upper - 4.0) < 1e-8
