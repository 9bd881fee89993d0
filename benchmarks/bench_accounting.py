"""Composed randomised response against dp-accounting, prv-accountant and autodp, in one run.

Run ``python benchmarks/bench_accounting.py``; peers that are not installed are left out
(``pip install 'fastpriv[peers]'``). Every solver is asked for epsilon at one delta, from scratch.
Beside each time stands its error against the exact value: the composed loss is a sum over a
lattice, which our bracket holds to 1e-12 (tests/test_profile.py checks it with 80 digits). An
epsilon below the exact one is no guarantee, and is marked. All peers answer for binary response;
dp-accounting also for more values, by its accountant as well, whose pld module ignores the count of
a response. The ratio is the peer's time over ours. At 10^5 releases dp-accounting and
prv-accountant ask for several arrays of gigabytes, so a peer may take 2 GB more than is in use, or
as many as the command line says: ``python benchmarks/bench_accounting.py 16``.
"""

import math
import resource
import signal
import sys
import time
import warnings
from contextlib import contextmanager

import numpy as np
import pytest

import fastpriv as fp

#: Seconds after which a peer is stopped.
PATIENCE = 20
#: Bytes of address space that a peer may add to what is in use.
MEMORY = int(sys.argv[1] if __name__ == "__main__" and len(sys.argv) > 1 else 2) << 30


def profile_of(m, releases):
    """Profile of m-ary randomised responses."""
    one = fp.accounting.PrivacyProfile.randomised_response
    return one(m, 0.0).compose(*(one(m, e).self_compose(k) for e, k in releases))


def with_fastpriv(m, releases, delta):
    """Certified on both sides; the upper end is what a user reports."""
    return profile_of(m, releases).epsilon(delta).upper


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

    binary(m)
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

    binary(m)
    kinds = [RandresponseMechanism(1 / (1 + math.exp(-epsilon))) for epsilon, _ in releases]
    return float(Composition()(kinds, [count for _, count in releases]).get_approxDP(delta))


def binary(m):
    """Refuse what a peer has no mechanism for."""
    if m != 2:
        raise NotImplementedError("binary response only")


PEERS = {
    "dp-accounting": with_dp_accounting,
    "its accountant": with_dp_accountant,
    "prv-accountant": with_prv,
    "autodp": with_autodp,
}


def cases():
    """Yield a name, the number of values, releases and delta."""
    for m in (2, 4):
        for k in (100, 1000, 10**5):
            for delta in (1e-6, 1e-14):
                yield f"{k:,} x {m}-ary 0.5", m, [(0.5, k)], delta
    rng = np.random.default_rng(0)
    three = [(float(e), int(k)) for e, k in zip((0.1, 0.25, 0.7), (500, 200, 40), strict=True)]
    yield "3 epsilons, 740", 2, three, 1e-6
    many = [(float(e), 10) for e in rng.uniform(0.01, 0.5, 30)]
    yield "30 epsilons, 300", 2, many, 1e-6


def timed(solve, case, least=0.1):
    """Best seconds of a few calls, or of one that is long, and the result."""
    best, total = math.inf, 0.0
    while total < least:
        start = time.perf_counter()
        result = solve(*case)
        seconds = time.perf_counter() - start
        best, total = min(best, seconds), total + seconds
    return best, result


@pytest.mark.parametrize("k", [100, 1000, 100_000])
def test_response(benchmark, k):
    benchmark(with_fastpriv, 2, [(0.5, k)], 1e-6)


def stop(*_):
    """Give up on a peer."""
    raise TimeoutError(f"no answer in {PATIENCE} s")


@contextmanager
def limited():
    """Let a peer that asks for too much memory fail, instead of the machine."""
    with open("/proc/self/statm") as pages:
        used = int(pages.read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def row(case, delta, solver, seconds, ratio, epsilon, error):
    print(f"{case:<22}{delta:<8}{solver:<15}{seconds:>9}{ratio:>9}{epsilon:>16}  {error}")
    sys.stdout.flush()


def compare():
    """One line per case and solver."""
    peers = dict(PEERS)
    row("releases", "delta", "solver", "seconds", "ratio", "epsilon", "error")
    for name, m, releases, delta in cases():
        mine, upper = timed(with_fastpriv, (m, releases, delta))
        exact = profile_of(m, releases).epsilon(delta)
        width = exact.width / exact.upper
        row(name, delta, "fastpriv", f"{mine:.2g}", "", f"{upper:.9f}", f"width {width:.0e}")
        for solver, solve in list(peers.items()):
            signal.alarm(PATIENCE)
            try:
                with warnings.catch_warnings(), np.errstate(all="ignore"), limited():
                    warnings.simplefilter("ignore")
                    seconds, found = timed(solve, (m, releases, delta))
            except NotImplementedError:
                continue
            except ImportError:
                row("", "", solver, "", "", "", "not installed")
                del peers[solver]
                continue
            except Exception as error:
                words = f"{type(error).__name__}: {error}".split("\n")[0][:60]
                row("", "", solver, "", "", "", words)
                continue
            finally:
                signal.alarm(0)
            error = (found - exact.midpoint) / exact.midpoint
            mark = "  BELOW" if found < exact.lower else ""
            ratio = f"{seconds / mine:.1f}"
            row("", "", solver, f"{seconds:.2g}", ratio, f"{found:.9f}", f"{error:+.0e}{mark}")


def general():
    """Time for a random channel with many losses, and the width of its bracket.

    That is from what the best pair of neighbours attains to the composed envelope of all pairs.
    """
    print(f"\n{'matrix':<10}{'losses':>8}{'releases':>12}{'seconds':>10}{'width':>10}")
    for size in (3, 8):
        matrix = np.random.default_rng(size).dirichlet(np.ones(size), size)
        one = fp.accounting.PrivacyProfile.of(matrix)
        (atom,) = one._parts
        for k in (10, 1000, 100_000):
            start = time.perf_counter()
            found = one.self_compose(k).epsilon(1e-9)
            seconds = time.perf_counter() - start
            losses = int((atom.upper.losses > 0).sum())
            width = f"{found.width / found.upper:.0e}"
            print(f"{size} x {size:<6}{losses:>8}{k:>12,}{seconds:>10.2g}{width:>10}")


if __name__ == "__main__":
    import fastpriv.kernels

    signal.signal(signal.SIGALRM, stop)
    fp.warm_up()
    with_fastpriv(2, [(0.5, 10)], 1e-3)
    compare()
    general()
