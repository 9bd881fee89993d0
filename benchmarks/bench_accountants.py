"""Composed noise against dp-accounting, prv-accountant and autodp.

Every accountant is asked for epsilon at one delta, from scratch: Gaussian noise on Poisson samples,
for the settings of well-known training runs and more, and Laplace noise. Errors are relative to our
certified bracket; ours is the width of the bracket. An epsilon below our lower end is no guarantee,
hence unsound.
"""

from functools import partial

import pytest

import fastpriv as fp
from contenders import ours, peer, sizes

#: Noise multiplier, sampling rate, steps, delta.
GAUSSIAN = [
    (0.8, 0.005, 1000, 1e-6),
    (1.0, 0.01, 1000, 1e-5),
    (0.9, 0.00256, 4900, 1e-5),
    (0.5, 0.002, 10**4, 1e-5),
    (1.1, 256 / 60_000, 15 * 234, 1e-5),
    (0.7, 0.001, 10**5, 1e-7),
    (2.0, 0.1, 500, 1e-9),
    (5.0, 0.5, 2000, 1e-12),
    (1.0, 1e-4, 10**6, 1e-8),
    (20.0, 0.01, 10**8, 1e-6),
    (1.0, 0.01, 20, 1e-6),
    (1.0, 0.2, 4, 1e-6),
]
#: Scale, releases, delta.
LAPLACE = [(1.0, 100, 1e-6), (2.0, 1000, 1e-10), (10.0, 50, 1e-6), (20.0, 10**5, 1e-9)]


def sampled(sigma, q, steps, delta):
    """Our bracket."""
    return fp.accounting.PrivacyProfile.gaussian(sigma, q).self_compose(steps).epsilon(delta)


def laplace(scale, count, delta):
    """Our bracket."""
    return fp.accounting.PrivacyProfile.laplace(scale).self_compose(count).epsilon(delta)


def with_dp_accounting(sigma, q, steps, delta):
    """Privacy loss distributions on a grid of 1e-4, pessimistic."""
    import dp_accounting
    from dp_accounting.pld import pld_privacy_accountant

    event = dp_accounting.PoissonSampledDpEvent(q, dp_accounting.GaussianDpEvent(sigma))
    return pld_privacy_accountant.PLDAccountant().compose(event, steps).get_epsilon(delta)


def with_prv(sigma, q, steps, delta):
    """Privacy random variables, epsilon to 0.01 and delta to a thousandth; its upper bound."""
    from prv_accountant import PRVAccountant
    from prv_accountant.privacy_random_variables import PoissonSubsampledGaussianMechanism

    accountant = PRVAccountant(
        prvs=PoissonSubsampledGaussianMechanism(noise_multiplier=sigma, sampling_probability=q),
        max_self_compositions=steps,
        eps_error=0.01,
        delta_error=delta / 1000,
    )
    return accountant.compute_epsilon(delta, [steps])[2]


def with_autodp(sigma, q, steps, delta):
    """Renyi differential privacy, converted."""
    from autodp.mechanism_zoo import GaussianMechanism
    from autodp.transformer_zoo import AmplificationBySampling, Composition

    one = GaussianMechanism(sigma=sigma)
    one.neighboring = "add_remove"
    step = AmplificationBySampling(PoissonSampling=True)(one, q, improved_bound_flag=True)
    return float(Composition()([step], [steps]).get_approxDP(delta))


def laplace_dp_accounting(scale, count, delta):
    """Privacy loss distributions on a grid of 1e-4, pessimistic."""
    import dp_accounting
    from dp_accounting.pld import pld_privacy_accountant

    event = dp_accounting.LaplaceDpEvent(scale)
    return pld_privacy_accountant.PLDAccountant().compose(event, count).get_epsilon(delta)


#: Name, solver and distribution.
PEERS = [
    ("dp-accounting", with_dp_accounting, "dp-accounting"),
    ("prv-accountant", with_prv, "prv-accountant"),
    ("autodp", with_autodp, "autodp"),
]


def contenders_for(solve, case, peers):
    """Ours, and peers judged by our bracket."""
    exact = solve(*case)

    def judge(epsilon):
        error = abs(epsilon - exact.midpoint) / exact.midpoint
        return {"value": epsilon, "error": error, "sound": epsilon >= exact.lower}

    def certified(epsilon):
        return {"value": epsilon, "error": exact.width / exact.upper, "sound": True}

    yield ours(lambda: solve(*case).upper, certified)
    for title, other, needs in peers:
        yield peer(title, partial(other, *case), judge, needs=needs)


@pytest.mark.parametrize(("sigma", "q", "steps", "delta"), sizes(*GAUSSIAN[:2], large=GAUSSIAN[2:]))
def test_sampled_gaussian(versus, sigma, q, steps, delta):
    """Gaussian noise on Poisson samples."""
    case = sigma, q, steps, delta
    versus(
        "composed epsilon, sampled Gaussian noise",
        f"noise {sigma:g}, rate {q:.4g}, {steps:,} steps, delta {delta:g}",
        *contenders_for(sampled, case, PEERS),
        error_of="relative error",
        target=1e-9,
        headline=case == GAUSSIAN[0],
    )


@pytest.mark.parametrize(("scale", "count", "delta"), sizes(*LAPLACE[:1], large=LAPLACE[1:]))
def test_laplace(versus, scale, count, delta):
    """Laplace noise."""
    rival = [("dp-accounting", laplace_dp_accounting, "dp-accounting")]
    versus(
        "composed epsilon, Laplace noise",
        f"scale {scale:g}, {count:,} times, delta {delta:g}",
        *contenders_for(laplace, (scale, count, delta), rival),
        error_of="relative error",
        target=1e-9,
    )
