"""Individual capacity: counts of many bits, random channels, and peers that loop over selections.

Peers are given what they lack, the list of all selections of one row of W per value of each
individual, each selection once, and loop their channel capacity over it.
"""

import itertools
import math
from functools import partial

import numpy as np
import pytest

import fastpriv as fp
import instances
from contenders import ours, peer, sizes

GAP = 1e-9


def with_qif(matrix):
    """Blahut-Arimoto in C++."""
    import qif

    return qif.measure.shannon.add_capacity(matrix, GAP, GAP)[0] * math.log(2)


def with_dit(matrix):
    """Blahut-Arimoto in numpy."""
    from dit.algorithms.channelcapacity import channel_capacity

    return channel_capacity(matrix, rtol=0.0, atol=GAP)[0] * math.log(2)


def over_pairs(solve, matrix):
    """Largest capacity over all selections for bits: two databases differ in some bit."""
    pairs = itertools.combinations(range(len(matrix)), 2)
    return max(solve(matrix[[x, other]]) for x, other in pairs)


def geometric(n, rate):
    """Noise e^(-rate |y - c|/n) on a count, cut off at 0 and n."""
    steps = np.arange(n + 1)
    row, noise = np.exp(-rate / n * steps), np.empty((n + 1, n + 1))
    for c in steps:
        noise[c] = row[np.abs(steps - c)]
    noise /= noise.sum(axis=1, keepdims=True)
    return noise


def rounded(n, outputs):
    """The share of bits that are set, rounded to a few values with noise."""
    share, marks = np.linspace(0, 1, n + 1), np.linspace(0, 1, outputs)
    noise = np.exp(-3.0 * np.abs(share[:, None] - marks))
    return noise / noise.sum(axis=1, keepdims=True)


def bracketed(bracket):
    """Lower end and width."""
    return {"value": bracket.lower, "error": bracket.width}


#: Name and maker of the noise on a count.
KERNELS = {
    "4 outputs": lambda n: rounded(n, 4),
    "n + 1 outputs, rate 2": lambda n: geometric(n, 2.0),
    "n + 1 outputs, rate 1000": lambda n: geometric(n, 1000.0),
}


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("n", sizes(100, large=[1000, 10_000]))
def test_count(versus, n, name):
    """How the time for a count grows with the number of bits."""
    channel = fp.QueryChannel.count(n, KERNELS[name](n))
    versus(
        "individual capacity of a count to 1e-9",
        f"n = {n:,}, {name}",
        ours(partial(fp.individual_capacity, channel, gap=GAP), bracketed),
        error_of="width",
        target=GAP,
    )


#: Bits and outputs; peers are asked where there are 16 outputs.
SMALL = [(4, 16), (6, 4), (6, 64)]
LARGE = [(5, 16), (7, 16), (8, 4), (8, 256), (9, 16), (10, 4), (10, 1024)]


@pytest.mark.parametrize(("bits", "outputs"), sizes(*SMALL, large=LARGE))
def test_random(versus, bits, outputs):
    """How the time for random channels grows with the number of databases, and peers."""
    matrix = instances.channel(2**bits, outputs)
    channel = fp.Channel(matrix, [2] * bits)
    bound = fp.individual_capacity(channel, gap=GAP).lower

    def judge(best):
        return {"value": best, "error": abs(best - bound)}

    versus(
        "individual capacity to 1e-9",
        f"random 2^{bits} databases, {outputs} outputs",
        ours(partial(fp.individual_capacity, channel, gap=GAP), bracketed),
        *(
            peer(name, partial(over_pairs, solve, matrix), judge, needs=name)
            for name, solve in (("qif", with_qif), ("dit", with_dit))
            if outputs == 16
        ),
        seed=0,
        error_of="width or difference",
        target=GAP,
    )


@pytest.mark.parametrize(
    ("m", "n", "outputs", "k"),
    sizes((3, 4, 8, 1), large=[(4, 4, 4, 1), (3, 6, 4, 1), (2, 6, 4, 2), (4, 4, 64, 1)]),
)
def test_group(versus, m, n, outputs, k):
    """Values beyond bits, and groups: how narrow the bracket is after some time."""
    channel = fp.Channel(instances.channel(m**n, outputs), [m] * n)
    versus(
        f"group capacity, k = {k}",
        f"{n} rows of {m}, {outputs} outputs",
        ours(partial(fp.group_capacity, channel, k, time_limit=8.0), bracketed),
        seed=0,
        error_of="width",
    )
