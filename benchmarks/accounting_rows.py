"""Seconds and widths of accounting questions: ``python -m benchmarks.accounting_rows``.

Each row is asked once to load kernels and then ``--repeat`` times, each time with a little more
noise, so that nothing kept from an earlier answer helps; the smallest CPU time counts. Profiles are
made within that time, as in a loop over different questions. The last column is the time aimed at,
in seconds or dp-accounting's in the same run. ``--json FILE`` keeps the rows, ``--before FILE``
prints them beside kept ones and fails if a bracket does not meet its earlier one. ``--peers`` asks
dp-accounting too. ``--row TEXT`` selects rows by their names.
"""

import argparse
import json
import math
import sys
import time
from pathlib import Path

import numpy as np

from fastpriv.accounting import PrivacyProfile, calibrate

#: Seconds after which a row is not repeated.
LONG = 1.0


def gaussian(sigma, q, steps, delta):
    """Epsilon of Gaussian noise on Poisson samples."""
    return lambda x: PrivacyProfile.gaussian(sigma * x, q).self_compose(steps).epsilon(delta)


def laplace(scale, steps, delta, q=1.0):
    """Epsilon of Laplace noise."""
    return lambda x: PrivacyProfile.laplace(scale * x, q).self_compose(steps).epsilon(delta)


def channels():
    """Epsilon of ten random 8 x 8 channels."""
    rows = np.random.default_rng(0).dirichlet(np.ones(8), 8)

    def ask(x):
        mixed = rows / x + (1.0 - 1.0 / x) / 8.0
        return PrivacyProfile.of(mixed).self_compose(10).epsilon(1e-9)

    return ask


def queries(count):
    """Epsilon of different questions, one after the other; the last bracket."""

    def ask(x):
        for i in range(count):
            result = gaussian(0.8 + 0.01 * i, 1e-3 * (1.0 + 0.5 * i), 500 + 37 * i, 1e-6)(x)
        return result

    return ask


def multipliers(count):
    """Noise multipliers of different budgets, one after the other; the last bracket."""

    def ask(x):
        for i in range(count):
            result = calibrate(
                lambda sigma: PrivacyProfile.gaussian(sigma, 0.01).self_compose(1000),
                epsilon=(1.0 + 0.01 * i) / x,
                delta=1e-5,
            )
        return result

    return ask


def service(count, every):
    """Compose one event at a time and ask after some of them; the last bracket."""

    def ask(x):
        total, one = PrivacyProfile({}), PrivacyProfile.gaussian(x, 0.01)
        for i in range(1, count + 1):
            total = total.compose(one)
            if i % every == 0:
                result = total.epsilon(1e-5)
        return result

    return ask


ROWS = {
    "rare: gaussian(1, 1e-5) x 10, 1e-8": gaussian(1.0, 1e-5, 10, 1e-8),
    "rare: gaussian(1, 1e-5) x 1,000, 1e-8": gaussian(1.0, 1e-5, 1000, 1e-8),
    "rare: gaussian(1, 1e-4) x 100, 1e-6": gaussian(1.0, 1e-4, 100, 1e-6),
    "rare: gaussian(.7, 1e-5) x 1,000, 1e-10": gaussian(0.7, 1e-5, 1000, 1e-10),
    "laplace(10) x 50, 1e-6": laplace(10.0, 50, 1e-6),
    "laplace(1) x 100, 1e-6": laplace(1.0, 100, 1e-6),
    "laplace(2) x 1,000, 1e-10": laplace(2.0, 1000, 1e-10),
    "laplace(20) x 100,000, 1e-9": laplace(20.0, 10**5, 1e-9),
    "sampled laplace(1, .01) x 1,000, 1e-6": laplace(1.0, 1000, 1e-6, 0.01),
    "DP-SGD: gaussian(.8, .005) x 1,000, 1e-6": gaussian(0.8, 0.005, 1000, 1e-6),
    "DP-SGD: gaussian(1, .01) x 1,000, 1e-5": gaussian(1.0, 0.01, 1000, 1e-5),
    "DP-SGD: gaussian(.9, .00256) x 4,900, 1e-5": gaussian(0.9, 0.00256, 4900, 1e-5),
    "DP-SGD: gaussian(1, .2) x 4, 1e-6": gaussian(1.0, 0.2, 4, 1e-6),
    "DP-SGD: gaussian(1, .01) x 20, 1e-6": gaussian(1.0, 0.01, 20, 1e-6),
    "DP-SGD: gaussian(20, .01) x 10^8, 1e-6": gaussian(20.0, 0.01, 10**8, 1e-6),
    "20 different DP-SGD questions": queries(20),
    "random 8 x 8 x 10, 1e-9": channels(),
    "discrete Gaussian 300 x 10^4, 1e-6": lambda x: (
        PrivacyProfile.discrete_gaussian(300.0 * x).self_compose(10**4).epsilon(1e-6)
    ),
    "4-ary response .5 x 1,000, 1e-14": lambda x: (
        PrivacyProfile.randomised_response(4, 0.5 / x).self_compose(1000).epsilon(1e-14)
    ),
    "100 noise multipliers": multipliers(100),
    "service: 10,000 steps, asked after every 100th": service(10**4, 100),
}

#: Seconds aimed at; None for those of dp-accounting.
WANTED = {
    "rare": 0.2,
    "laplace": 0.01,
    "sampled laplace": None,
    "DP-SGD": 0.01,
    "20 different": 20 / 50,
    "random 8 x 8": 0.005,
    "discrete Gaussian": None,
    "4-ary": None,
    "100 noise": 5.0,
    "service": 1.0,
}


def with_dp_accounting(event, relation, steps, delta):
    """Epsilon by dp-accounting's privacy loss distributions."""
    import dp_accounting
    from dp_accounting.pld import pld_privacy_accountant

    accountant = pld_privacy_accountant.PLDAccountant(
        getattr(dp_accounting.NeighboringRelation, relation)
    )
    return accountant.compose(event, steps).get_epsilon(delta)


def peers():
    """Return the questions that dp-accounting takes, by row."""
    import dp_accounting as dp
    from dp_accounting.pld import privacy_loss_distribution as losses

    def sampled(sigma, q, steps, delta):
        event = dp.PoissonSampledDpEvent(q, dp.GaussianDpEvent(sigma))
        return lambda _: with_dp_accounting(event, "ADD_OR_REMOVE_ONE", steps, delta)

    def noise(event, steps, delta):
        return lambda _: with_dp_accounting(event, "ADD_OR_REMOVE_ONE", steps, delta)

    answer = 4.0 / (math.exp(0.5) + 3.0)
    return {
        "rare: gaussian(1, 1e-5) x 10, 1e-8": sampled(1.0, 1e-5, 10, 1e-8),
        "rare: gaussian(1, 1e-5) x 1,000, 1e-8": sampled(1.0, 1e-5, 1000, 1e-8),
        "rare: gaussian(1, 1e-4) x 100, 1e-6": sampled(1.0, 1e-4, 100, 1e-6),
        "rare: gaussian(.7, 1e-5) x 1,000, 1e-10": sampled(0.7, 1e-5, 1000, 1e-10),
        "laplace(10) x 50, 1e-6": noise(dp.LaplaceDpEvent(10.0), 50, 1e-6),
        "laplace(1) x 100, 1e-6": noise(dp.LaplaceDpEvent(1.0), 100, 1e-6),
        "laplace(2) x 1,000, 1e-10": noise(dp.LaplaceDpEvent(2.0), 1000, 1e-10),
        "sampled laplace(1, .01) x 1,000, 1e-6": noise(
            dp.PoissonSampledDpEvent(0.01, dp.LaplaceDpEvent(1.0)), 1000, 1e-6
        ),
        "DP-SGD: gaussian(.8, .005) x 1,000, 1e-6": sampled(0.8, 0.005, 1000, 1e-6),
        "DP-SGD: gaussian(1, .01) x 1,000, 1e-5": sampled(1.0, 0.01, 1000, 1e-5),
        "discrete Gaussian 300 x 10^4, 1e-6": lambda _: (
            losses.from_discrete_gaussian_mechanism(300.0)
            .self_compose(10**4)
            .get_epsilon_for_delta(1e-6)
        ),
        "4-ary response .5 x 1,000, 1e-14": lambda _: with_dp_accounting(
            dp.RandomizedResponseDpEvent(answer, 4), "REPLACE_ONE", 1000, 1e-14
        ),
    }  # fmt: skip


def timed(ask, repeat):
    """Return the first answer and the smallest CPU time of the others in seconds."""
    best, answer = math.inf, ask(1.0)
    for i in range(1, repeat + 1):
        start = time.process_time()
        ask(1.0 + 1e-9 * i)
        best = min(best, time.process_time() - start)
        if best > LONG:
            break
    return answer, best


def main(arguments=None):
    """Print the rows; 1 if a bracket misses an earlier one."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accounting_rows")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--row", default="")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--peers", action="store_true")
    given = parser.parse_args(arguments)
    before = json.loads(given.before.read_text()) if given.before else {}
    others = peers() if given.peers else {}
    rows, missed = {}, 0
    for name, ask in ROWS.items():
        if given.row not in name:
            continue
        bracket, seconds = timed(ask, given.repeat)
        width = bracket.width / bracket.upper if 0.0 < bracket.upper < math.inf else bracket.width
        rows[name] = [seconds, width, bracket.lower, bracket.upper]
        line = f"{name:46} {1e3 * seconds:10.1f} ms {width:8.1e} {bracket.upper:.12g}"
        if name in before:
            past, wide, low, high = before[name]
            meets = max(low, bracket.lower) <= min(high, bracket.upper)
            missed += not meets
            line += f"   before {1e3 * past:10.1f} ms {wide:8.1e}{'' if meets else ' DISAGREES'}"
        peer = math.nan
        if name in others:
            answer, peer = timed(others[name], min(given.repeat, 2))
            line += f"   dp-accounting {1e3 * peer:8.1f} ms {answer / bracket.upper - 1.0:8.1e}"
        aim = next(wanted for start, wanted in WANTED.items() if name.startswith(start))
        aim = peer if aim is None else aim
        if not math.isnan(aim):
            line += f"   wanted {1e3 * aim:8.1f} ms {'met' if seconds <= aim else 'not met'}"
        print(line, flush=True)
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
