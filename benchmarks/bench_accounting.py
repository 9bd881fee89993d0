"""Composed randomised response against dp-accounting, prv-accountant and autodp, in one run.

Run ``python benchmarks/bench_accounting.py``; peers that are not installed are left out
(``pip install 'fastpriv[peers]'``). Every solver is asked for epsilon at one delta, from scratch.
Beside each time stands its error against the exact value: the composed loss is a sum over a
lattice, which our bracket holds to 1e-12 (tests/test_profile.py checks it with 80 digits). An
epsilon below the exact one is no guarantee, and is marked. Peers answer for binary response, which
all of them know; the ratio is the peer's time over ours.
"""

import math
import signal
import sys
import time
import warnings

import numpy as np
import pytest

import fastpriv as fp

#: Seconds after which a peer is stopped.
PATIENCE = 20


def with_fastpriv(releases, delta):
    """Certified on both sides; the upper end is what a user reports."""
    total = fp.accounting.PrivacyProfile.randomised_response(2, 0.0)
    for epsilon, count in releases:
        one = fp.accounting.PrivacyProfile.randomised_response(2, epsilon)
        total = total.compose(one.self_compose(count))
    return total.epsilon(delta).upper


def with_dp_accounting(releases, delta):
    """Privacy loss distributions on a grid of 1e-4, pessimistic."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    total = None
    for epsilon, count in releases:
        flip = 2.0 / (math.exp(epsilon) + 1.0)
        one = pld.from_randomized_response(flip, 2).self_compose(count)
        total = one if total is None else total.compose(one)
    return total.get_epsilon_for_delta(delta)


def with_prv(releases, delta):
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


def with_autodp(releases, delta):
    """Renyi differential privacy, converted."""
    from autodp.mechanism_zoo import RandresponseMechanism
    from autodp.transformer_zoo import Composition

    kinds = [RandresponseMechanism(1 / (1 + math.exp(-epsilon))) for epsilon, _ in releases]
    return float(Composition()(kinds, [count for _, count in releases]).get_approxDP(delta))


PEERS = {"dp-accounting": with_dp_accounting, "prv-accountant": with_prv, "autodp": with_autodp}


def cases():
    """Yield a name, releases and delta."""
    for k in (100, 1000, 10**5):
        for delta in (1e-6, 1e-14):
            yield f"{k:,} x 0.5", [(0.5, k)], delta
    rng = np.random.default_rng(0)
    three = [(float(e), int(k)) for e, k in zip((0.1, 0.25, 0.7), (500, 200, 40), strict=True)]
    yield "3 epsilons, 740", three, 1e-6
    many = [(float(e), 10) for e in rng.uniform(0.01, 0.5, 30)]
    yield "30 epsilons, 300", many, 1e-6


def timed(solve, releases, delta, least=0.1):
    """Best seconds of a few calls, or of one that is long, and the result."""
    best, total = math.inf, 0.0
    while total < least:
        start = time.perf_counter()
        result = solve(releases, delta)
        seconds = time.perf_counter() - start
        best, total = min(best, seconds), total + seconds
    return best, result


@pytest.mark.parametrize("k", [100, 1000, 100_000])
def test_response(benchmark, k):
    benchmark(with_fastpriv, [(0.5, k)], 1e-6)


def stop(*_):
    """Give up on a peer."""
    raise TimeoutError(f"no answer in {PATIENCE} s")


def row(case, delta, solver, seconds, ratio, epsilon, error):
    print(f"{case:<18}{delta:<8}{solver:<15}{seconds:>9}{ratio:>9}{epsilon:>16}  {error}")
    sys.stdout.flush()


def compare():
    """One line per case and solver."""
    peers = dict(PEERS)
    row("releases", "delta", "solver", "seconds", "ratio", "epsilon", "error")
    for name, releases, delta in cases():
        mine, upper = timed(with_fastpriv, releases, delta)
        profile = fp.accounting.PrivacyProfile.randomised_response(2, 0.0).compose(
            *(
                fp.accounting.PrivacyProfile.randomised_response(2, e).self_compose(k)
                for e, k in releases
            )
        )
        exact = profile.epsilon(delta)
        width = exact.width / exact.upper
        row(name, delta, "fastpriv", f"{mine:.2g}", "", f"{upper:.9f}", f"width {width:.0e}")
        for solver, solve in list(peers.items()):
            signal.alarm(PATIENCE)
            try:
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    seconds, found = timed(solve, releases, delta)
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
    """Time and certified width for a random channel with many losses."""
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
    with_fastpriv([(0.5, 10)], 1e-3)
    compare()
    general()
