"""Peak memory of dense work, in vectors of length N."""

import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import fastpriv as fp
from fastpriv.measures.information import rows_information

BITS = 20
N = 2**BITS


@pytest.fixture(scope="module")
def prior():
    pmf = np.random.default_rng(0).random(N) + 1.0
    return fp.Dense(pmf / pmf.sum(), [2] * BITS)


@pytest.mark.slow(but=["<lambda>0", "<lambda>8", "<lambda>9"])
@pytest.mark.parametrize(
    "work",
    [
        lambda prior: fp.HammingChannel(BITS, 2, 1.0).output(prior),
        lambda prior: fp.PosteriorChannel(prior, 6.0),
        lambda prior: fp.dp_level(fp.PosteriorChannel(prior, 6.0)),
        lambda prior: fp.mutual_information(fp.HammingChannel(BITS, 2, 1.0), prior),
        lambda prior: fp.mutual_information(fp.PosteriorChannel(prior, 6.0), prior),
        lambda prior: fp.identifiability_level(fp.HammingChannel(BITS, 2, 1.0), prior),
        lambda prior: prior.epsilon_tilde(),
        lambda prior: prior.epsilon_hat(),
        lambda prior: prior.entropy(),
        lambda prior: fp.shell_profile(prior, 12345),
        lambda prior: fp.distortion(fp.ProductChannel([[[0.9, 0.1], [0.2, 0.8]]] * BITS), prior),
    ],
)
def test_at_most_four_vectors_with_the_prior(prior, work):
    work(prior)  # kernels compiled and plans made
    tracemalloc.start()
    try:
        work(prior)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= (4 - 1) * 8 * N + 2**21  # three besides the prior itself, and scratch


@pytest.mark.skipif(sys.platform != "linux", reason="reads its own size from /proc")
def test_information_of_one_row_of_many_values():
    """A record has up to 2^28 values, and a report says what each record tells."""
    import resource

    m = 2**21
    channel, prior = fp.HammingChannel(1, m, 1.0), fp.Uniform(1, m)
    fp.mutual_information(fp.HammingChannel(1, 2, 1.0), fp.Uniform(1, 2))  # kernels loaded
    limits = resource.getrlimit(resource.RLIMIT_AS)
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + 64 * 8 * m, limits[1]))
    try:
        found = fp.mutual_information(channel, prior)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
    assert found == pytest.approx(fp.channel_capacity(channel).upper, rel=1e-9)


@pytest.mark.slow
def test_rows_that_all_differ_take_no_square():
    n = 4000
    prior = fp.Product(np.random.default_rng(1).dirichlet([9, 9], n))
    rows = fp.PosteriorChannel(prior, 3.0).kernels
    rows_information(fp.Uniform(1, 2), fp.ProductChannel([np.eye(2)]).kernels)  # compiled
    tracemalloc.start()
    try:
        assert rows_information(prior, rows) > 0.0
        assert sum(len(group) for _, group in rows.groups()) == n
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < n * n  # bytes: even a table of pairs with one byte each is more
