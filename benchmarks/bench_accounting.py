"""Composed randomised response against dp-accounting, prv-accountant and autodp.

Every solver is asked for epsilon at one delta, from scratch. Errors are relative to the exact
value: the composed loss is a sum over a lattice, which our bracket holds to 1e-12
(tests/accounting/profile checks it with 80 digits); ours is the width of the bracket. An
epsilon below the exact one is no guarantee, hence unsound. All peers answer for binary response;
dp-accounting also for more values, by its PLDAccountant as well, whose pld module ignores the count
of a response. At 10^5 releases dp-accounting and prv-accountant ask for several arrays of
gigabytes, and are given 2 GB.
"""

import math
from functools import partial

import pytest

import fastpriv as fp
import instances
from contenders import ours, peer, sizes


def profile_of(m, releases):
    """Profile of m-ary randomised responses."""
    one = fp.accounting.PrivacyProfile.randomised_response
    return one(m, 0.0).compose(*(one(m, e).self_compose(k) for e, k in releases))


def noise(m, epsilon):
    """Chance of a uniform answer, as dp-accounting counts it."""
    return m / (math.exp(epsilon) + m - 1.0)


def with_dp_accounting(m, releases, delta):
    """Privacy loss distributions on a grid of 1e-4, pessimistic."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    total = None
    for epsilon, count in releases:
        one = pld.from_randomized_response(noise(m, epsilon), m).self_compose(count)
        total = one if total is None else total.compose(one)
    return total.get_epsilon_for_delta(delta)


def with_dp_accountant(m, releases, delta):
    """The same through its accountant, which is given events and their counts."""
    import dp_accounting
    from dp_accounting.pld import pld_privacy_accountant

    relation = dp_accounting.NeighboringRelation.REPLACE_ONE
    accountant = pld_privacy_accountant.PLDAccountant(relation)
    for epsilon, count in releases:
        event = dp_accounting.RandomizedResponseDpEvent(noise(m, epsilon), m)
        accountant.compose(event, count)
    return accountant.get_epsilon(delta)


def with_prv(m, releases, delta):
    """Privacy random variables, epsilon to 0.1 and delta to a thousandth."""
    from prv_accountant import PRVAccountant
    from prv_accountant.privacy_random_variables import PureDPMechanism

    counts = [count for _, count in releases]
    accountant = PRVAccountant(
        prvs=[PureDPMechanism(eps=epsilon) for epsilon, _ in releases],
        max_self_compositions=counts,
        eps_error=0.1,
        delta_error=delta / 1000,
    )
    return accountant.compute_epsilon(delta, counts)[2]


def with_autodp(m, releases, delta):
    """Renyi differential privacy, converted."""
    from autodp.mechanism_zoo import RandresponseMechanism
    from autodp.transformer_zoo import Composition

    kinds = [RandresponseMechanism(1 / (1 + math.exp(-epsilon))) for epsilon, _ in releases]
    return float(Composition()(kinds, [count for _, count in releases]).get_approxDP(delta))


#: Name, solver, distribution, and whether it has more than binary response.
PEERS = [
    ("dp-accounting", with_dp_accounting, "dp-accounting", True),
    ("its PLDAccountant", with_dp_accountant, "dp-accounting", True),
    ("prv-accountant", with_prv, "prv-accountant", False),
    ("autodp", with_autodp, "autodp", False),
]


def releases(name):
    """Epsilons and counts of a named list."""
    if name == "740 at 3 epsilons":
        return [(0.1, 500), (0.25, 200), (0.7, 40)]
    if name == "300 at 30 epsilons":
        return [(0.01 + 0.49 * float(u), 10) for u in instances.uniform(0, 30)]
    count, _, epsilon = name.replace(",", "").partition(" at ")
    return [(float(epsilon), int(count))]


@pytest.mark.parametrize("delta", [1e-6, 1e-14])
@pytest.mark.parametrize(
    ("m", "name"),
    [
        *((m, "100 at 0.5") for m in (2, 4)),
        *sizes(large=[(m, f"{k} at 0.5") for m in (2, 4) for k in ("1,000", "100,000")]),
        *sizes(large=[(2, "740 at 3 epsilons"), (2, "300 at 30 epsilons")]),
    ],
)
def test_composed(versus, m, name, delta):
    """Epsilon of composed responses."""
    case = m, releases(name), delta
    exact = profile_of(*case[:2]).epsilon(delta)

    def judge(epsilon):
        error = abs(epsilon - exact.midpoint) / exact.midpoint
        return {"value": epsilon, "error": error, "sound": epsilon >= exact.lower}

    def certified(epsilon):
        return {"value": epsilon, "error": exact.width / exact.upper, "sound": True}

    versus(
        f"composed epsilon, {'binary' if m == 2 else f'{m}-ary'} response",
        f"{name}, delta {delta:g}",
        ours(lambda: profile_of(*case[:2]).epsilon(delta).upper, certified),
        *(
            peer(title, partial(solve, *case), judge, needs=needs)
            for title, solve, needs, general in PEERS
            if general or m == 2
        ),
        error_of="relative error",
        target=1e-9,
    )


@pytest.mark.parametrize("k", sizes(10, large=[1000, 100_000]))
@pytest.mark.parametrize("size", [3, 8])
def test_matrix(versus, size, k):
    """Time for a random channel with many losses, and the width of its bracket.

    That is from what the best pair of neighbours attains to the composed envelope of all pairs.
    """
    one = fp.accounting.PrivacyProfile.of(instances.channel(size))
    versus(
        "composed epsilon of a matrix, delta 1e-9",
        f"{k:,} x random {size} x {size}",
        ours(
            lambda: one.self_compose(k).epsilon(1e-9),
            lambda b: {"value": b.upper, "error": b.width / b.upper, "sound": True},
        ),
        seed=0,
        error_of="relative width",
    )
