"""Rows of randomised response: fastpriv beside its peers and a memory copy; other samplers.

Values are bytes, four per row, epsilon = 1. Ours draws from the default cryptographic source, and
once from NumPy's SFC64. Peers are timed on as many rows as a second or so allows.
"""

from functools import partial

import numpy as np
import pytest

import fastpriv as fp
import instances
from contenders import ours, peer, sizes, yardstick

M, EPSILON = 4, 1.0


def fast():
    """A generator that is quick and predictable."""
    return np.random.Generator(np.random.SFC64(1))


def multi_freq(count):
    """Generalised randomised response of multi-freq-ldpy, in a compiled loop."""
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client
    from numba import njit

    @njit
    def loop(values):
        out = np.empty_like(values)
        for j in range(len(values)):
            out[j] = GRR_Client(values[j], M, EPSILON)
        return out

    values = instances.codes(count, [M])[:, 0].astype(np.int64)
    loop(values[:10])
    return partial(loop, values)


def opendp(count):
    """Randomised response of OpenDP, value by value."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    keep = np.exp(EPSILON) / (np.exp(EPSILON) + M - 1)
    measure = dp.m.make_randomized_response(list(range(M)), prob=float(keep))
    values = instances.codes(count, [M])[:, 0].tolist()
    return lambda: [measure(v) for v in values]


#: Name, maker of the call, and number of rows.
PEERS = [("multi-freq-ldpy", multi_freq, 10**6), ("opendp", opendp, 3000)]


#: Channels of the other families, each with a good number of databases, and how many are drawn.
OTHERS = {
    "E_d, 1000 values": (lambda: fp.HammingChannel(1, 1000, 5.0), 10**6),
    "E_d, 10^6 values": (lambda: fp.HammingChannel(1, 10**6, 9.0), 10**6),
    "product of 10 x 10": (lambda: fp.ProductChannel([instances.channel(10)]), 10**6),
    "matrix, 100 x 100": (lambda: fp.Channel(instances.channel(100)), 10**6),
    "matrix, 1000 x 1000": (lambda: fp.Channel(instances.channel(1000)), 10**6),
    "E_i of 20 bits, types": (
        lambda: fp.PosteriorChannel(types(20), types(20).epsilon_tilde() + 1),
        10**5,
    ),
    "E_i of 20 bits, product": (
        lambda: fp.PosteriorChannel(fp.Product.iid([0.4, 0.6], 20), 1.0),
        10**5,
    ),
    "tilted chain of 16 bits": (
        lambda: fp.TiltedChannel(fp.Markov([0.5, 0.5], [[0.6, 0.4], [0.4, 0.6]], 16), 1.0),
        10**5,
    ),
    "optimum of 20 bits, types": (lambda: fp.solve_pd_dp(types(20), 1.0).channel, 10**5),
}


def types(n):
    """Bits with a common unknown bias."""
    return fp.Exchangeable.beta_binomial(n, 0.5, 0.8)


@pytest.mark.parametrize("k", sizes(10**4, 10**6, large=[10**8]))
def test_response(versus, k):
    """Randomised response of growing tables."""
    channel = fp.HammingChannel(1, M, EPSILON)
    table = instances.codes(k, [M])
    others = []
    if k == 10**6:
        others = [
            peer(name, partial(make, count), items=count, needs=name, made=True)
            for name, make, count in PEERS
        ]
    versus(
        "randomised response",
        f"{k:,} rows of 4 values",
        ours(partial(channel.sample, table), items=k),
        yardstick("ours, SFC64", partial(channel.sample, table, fast()), k),
        yardstick("np.copyto", partial(np.copyto, np.empty_like(table), table), k),
        *others,
        seed=0,
        unit="row",
        headline=k == 10**6,
    )


@pytest.mark.parametrize("name", OTHERS)
def test_other_channels(versus, name):
    """The other samplers."""
    make, count = OTHERS[name]
    channel = make()
    index = (instances.uniform(0, count) * channel.space.size).astype(np.int64)
    table = channel.space.rows(index)
    versus(
        "samples",
        name,
        ours(partial(channel.sample, table), items=count),
        yardstick("ours, SFC64", partial(channel.sample, table, fast()), count),
        seed=0,
        unit="output",
    )
