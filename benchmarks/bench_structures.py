"""How the cost of priors, shells and E_d's information grows with N, n and m.

The growth between neighbouring sizes stands beside the growth that the docstring promises.
"""

import math

import numpy as np
import pytest

import fastpriv as fp
import instances
from contenders import ours, sizes


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
    "markov entropy": (*LENGTHS, float, chain, lambda p: p.entropy()),
    "markov log_prob": (
        *LENGTHS,
        float,
        chain,
        lambda p: p.log_prob(np.zeros(p.space.n, dtype=np.int64)),
    ),
    "product E_d information": (*LENGTHS, float, rows, information(3)),
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
