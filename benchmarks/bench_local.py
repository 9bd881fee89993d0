"""Reports of local mechanisms: time for each, and the variance of a count, beside multi-freq-ldpy.

pytest benchmarks/bench_local.py --benchmark-only
python benchmarks/bench_local.py        # variances and times as one table
"""

import math
import time
from functools import partial

import numpy as np
import pytest

import fastpriv as fp
from contenders import ours, peer, sizes

EPSILON = 1.0
#: Reports of ours in one call, for so many values.
COUNTS = {100: 100_000, 10_000: 2_000, 1_000_000: 20}
PEER = "multi_freq_ldpy"


def mechanisms(k):
    """Our channels, by the names of the table, and the module and client of the peer."""
    return {
        "randomised response": (fp.SubsetChannel(k, EPSILON, 1), "GRR"),
        "subset selection": (fp.SubsetChannel(k, EPSILON), "SS"),
        "optimised unary": (fp.UnaryChannel(k, EPSILON), "UE"),
        "local hashing": (fp.HashingChannel(k, EPSILON), "LH"),
        "Hadamard response": (fp.HadamardChannel(k, EPSILON), None),
        "projective geometry": (fp.ProjectiveChannel(k, EPSILON), None),
    }


def chances(module, k):
    """Chances p and q to support the own and another value that the peer's estimators take."""
    odds = math.exp(EPSILON)
    if module == "GRR":
        return odds / (odds + k - 1), 1.0 / (odds + k - 1)
    if module == "UE":
        return 0.5, 1.0 / (odds + 1.0)
    if module == "LH":
        g = round(odds) + 1
        return odds / (odds + g - 1), 1.0 / g
    size = max(1, round(k / (odds + 1.0)))
    total = size * odds + k - size
    return size * odds / total, size * ((size - 1) * odds + k - size) / ((k - 1) * total)


NAMES = list(mechanisms(100))


def response(k):
    """Randomised response has a faster sampler of its own."""
    return fp.HammingChannel(1, k, EPSILON)


def theirs(module, k, values):
    """A loop over records, which is how the peer is called."""
    from importlib import import_module

    send = getattr(import_module(f"{PEER}.pure_frequency_oracles.{module}"), f"{module}_Client")
    return [send(int(x), k, EPSILON) for x in values]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("k", sizes(100, 10_000, large=[1_000_000]))
def test_reports(versus, k, name):
    """Draw reports."""
    channel, module = mechanisms(k)[name]
    sampler = response(k) if name == "randomised response" else channel
    count = COUNTS[k] if channel.listed is None else 100_000
    values = np.random.default_rng(0).integers(0, k, count)
    few = values[: max(1, 20_000 // k)]
    contenders = [ours(lambda: sampler.sample(values[:, None]), items=count)]
    if module is not None:
        contenders.append(
            peer(
                "multi-freq-ldpy",
                lambda: theirs(module, k, few),
                items=len(few),
                needs="multi-freq-ldpy",
            )
        )
    versus(f"reports, {name}", f"{k:,} values", *contenders, seed=0, unit="report")


def _each(call, count):
    """Least time of three calls, in microseconds for each report."""
    call()
    times = []
    for _ in range(3):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1e6 * min(times) / count


def main():
    """Print the table."""
    try:
        from multi_freq_ldpy.pure_frequency_oracles.Variance_PURE import VAR_Pure
    except ImportError:
        VAR_Pure = None
    print("| mechanism | k | variance | its variance | us a report | its us a report |")
    print("|---|---|---|---|---|---|")
    for k in COUNTS:
        for name, (channel, module) in mechanisms(k).items():
            sampler = response(k) if name == "randomised response" else channel
            count = COUNTS[k] if channel.listed is None else 100_000
            values = np.random.default_rng(0).integers(0, k, count)
            took = _each(partial(sampler.sample, values[:, None]), count)
            line = [name, f"{k:,}", f"{channel.variance():.5g}", "", f"{took:.3g}", ""]
            if VAR_Pure is not None and module is not None:
                few = values[: max(1, 20_000 // k)]
                line[3] = f"{VAR_Pure(*chances(module, k)):.5g}"
                line[5] = f"{_each(partial(theirs, module, k, few), len(few)):.3g}"
            print(f"| {' | '.join(line)} |")


if __name__ == "__main__":
    main()
