"""How the cost of priors, shells, queries, types and E_d's information grows with N, n and m.

The growth between neighbouring sizes stands beside the growth that the docstring promises.
"""

import math

import numpy as np
import pytest

import fastpriv as fp
import instances
from contenders import ours, sizes
from fastpriv._structure.types import Blocks, classes_against, types_of
from fastpriv.channels.types import TypeChannel


def dense(k):
    """A random dense prior over k bits."""
    pmf = instances.even_prior(2**k)
    return lambda: fp.Dense(pmf, [2] * k)


def chain(n):
    """A chain of n rows with three values."""
    step = np.full((3, 3), 0.2) + 0.4 * np.eye(3)
    return lambda: fp.Markov([0.3, 0.3, 0.4], step, n)


def types(n):
    """Bits with a common unknown bias."""
    return lambda: fp.Exchangeable.beta_binomial(n, 0.5, 0.8)


def rows(n):
    """Independent rows of three values."""
    return lambda: fp.Product.iid([0.2, 0.3, 0.5], n)


def bit_chain(n):
    """A chain of n bits."""
    return lambda: fp.Markov([0.6, 0.4], [[0.8, 0.2], [0.3, 0.7]], n)


def bit_rows(n):
    """Independent bits, each with a law of its own."""
    share = 0.1 + 0.8 * np.arange(n) / n
    return lambda: fp.Product(list(np.stack([1.0 - share, share], axis=1)))


def counted(measure):
    """A measure of a count with two-sided geometric noise, rows of two values."""

    def work(prior):
        count = np.arange(prior.space.n + 1)
        noise = np.exp(-0.5 * np.abs(count[:, None] - count))
        noise /= noise.sum(axis=1, keepdims=True)
        return measure(fp.QueryChannel.count(prior.space.n, noise), prior)

    return work


def on_types(measure):
    """A measure of E_d as a mechanism on types of bits."""

    def work(prior):
        n = prior.space.n
        types = types_of(Blocks.single(n, 2))
        classes = [classes_against(kind, types) for kind in types.counts]
        scale = -n * math.log1p(math.exp(-1.0))
        entries = [np.exp(scale - part.distance) for part in classes]
        return measure(TypeChannel(types, classes, entries), prior)

    return work


def worst_row(channel, prior):
    """Leakage about the row that leaks most."""
    return fp.pml_level(channel, prior, row="worst")


def bits(n):
    """The space of n bits."""
    return lambda: fp.Space.hamming(n, 2)


def information(m):
    """Mutual information of E_d on rows with m values."""
    return lambda prior: fp.mutual_information(fp.HammingChannel(prior.space.n, m, 1.0), prior)


def walk(space):
    """Walk a shell of radius 5 without keeping it."""
    return sum(len(part) for part in space.iter_shell(0, 5))


def transform(k):
    """Cost of one transform over k bits."""
    return k * 2.0**k


COUNTS = (125, 250), (500, 1000)
ON_TYPES = (20, 40), (80,)
LENGTHS = (10**4, 10**5), (10**6,)
#: Small and large sizes, promised cost, maker of the prior, and work on it. Making the prior is
#: timed as well, because priors keep what they have computed.
CASES = {
    "dense epsilon_x": ((12, 16), (20, 24), transform, dense, lambda p: p.epsilon_x()),
    "dense E_d information": ((12, 16), (20, 22), transform, dense, information(2)),
    "dense epsilon_tilde": ((12, 16), (20,), transform, dense, lambda p: p.epsilon_tilde()),
    "exchangeable epsilon_tilde": (
        (200, 400),
        (1000, 5000),
        lambda n: n**2,
        types,
        lambda p: p.epsilon_tilde(),
    ),
    "exchangeable E_d information": (
        (200, 400),
        (1000, 5000),
        lambda n: n**2,
        types,
        information(2),
    ),
    "exchangeable E_d information about two records": (
        (200, 400),
        (1000, 5000),
        lambda n: n**2,
        types,
        lambda p: fp.row_information(fp.HammingChannel(p.space.n, 2, 1.0), p, [0, 1]),
    ),
    "markov entropy": (*LENGTHS, float, chain, lambda p: p.entropy()),
    "markov log_prob": (
        *LENGTHS,
        float,
        chain,
        lambda p: p.log_prob(np.zeros(p.space.n, dtype=np.int64)),
    ),
    "product E_d information": (*LENGTHS, float, rows, information(3)),
    "count of a chain, identifiability": (
        *COUNTS,
        lambda n: n**2,
        bit_chain,
        counted(fp.identifiability_level),
    ),
    "count of a chain, information about a record": (
        *COUNTS,
        lambda n: n**2,
        bit_chain,
        counted(lambda channel, prior: fp.row_information(channel, prior, prior.space.n // 2)),
    ),
    "count of a chain, information": (
        *COUNTS,
        lambda n: n**2,
        bit_chain,
        counted(fp.mutual_information),
    ),
    "count of a chain, worst factor": (
        *COUNTS,
        lambda n: n**2,
        bit_chain,
        counted(fp.worst_leakage_factor),
    ),
    "count of a chain, worst row": (*COUNTS, lambda n: n**3, bit_chain, counted(worst_row)),
    "count of different bits, worst row": (*COUNTS, lambda n: n**3, bit_rows, counted(worst_row)),
    "count of exchangeable bits, correlation": (
        *COUNTS,
        lambda n: n**3,
        types,
        counted(fp.maximal_correlation),
    ),
    "on types, identifiability": (
        *ON_TYPES,
        lambda n: n**3,
        types,
        on_types(fp.identifiability_level),
    ),
    "on types, worst factor": (
        *ON_TYPES,
        lambda n: n**3,
        types,
        on_types(fp.worst_leakage_factor),
    ),
    "on types, correlation": (*ON_TYPES, lambda n: n**4, types, on_types(fp.maximal_correlation)),
    "on types, capacity": (
        *ON_TYPES,
        lambda n: n**3,
        types,
        on_types(lambda channel, _: fp.channel_capacity(channel)),
    ),
    "shell walk, radius 5": ((20, 40), (60,), lambda n: math.comb(n, 5), bits, walk),
}


@pytest.mark.parametrize(
    ("name", "size"),
    [
        each
        for name, (small, large, *_) in CASES.items()
        for each in sizes(*((name, n) for n in small), large=[(name, n) for n in large])
    ],
)
def test_growth(versus, name, size):
    """One sweep for each."""
    *_, cost, make, work = CASES[name]
    build = make(size)
    versus(
        name,
        f"n = {size:,}",
        ours(lambda: work(build())),
        seed=0 if make is dense else None,
        cost=cost(size),
    )
