"""Local mechanisms that are small enough to be listed, and their laws in fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import fastpriv as fp

SMALL = [
    fp.SubsetChannel(2, 1.0),
    fp.SubsetChannel(7, 1.0),
    fp.SubsetChannel(5, 0.3, size=3),
    fp.SubsetChannel(6, 2.5, size=5),
    fp.UnaryChannel(2, 0.7),
    fp.UnaryChannel(6, 1.0),
    fp.UnaryChannel(5, 2.0, "symmetric"),
    fp.HashingChannel(2, 1.0),
    fp.HashingChannel(10, 1.0),
    fp.HashingChannel(9, 1.0, g=3),
    fp.HashingChannel(4, 3.0, g=5),
    fp.HashingChannel(11, 0.4, g=2),
    fp.ProjectiveChannel(2, 1.0),
    fp.ProjectiveChannel(10, 1.0),
    fp.ProjectiveChannel(13, 1.0, q=3),
    fp.ProjectiveChannel(4, 1.0, q=5),
    fp.ProjectiveChannel(12, 0.2, q=2),
    fp.HadamardChannel(2, 1.0),
    fp.HadamardChannel(10, 1.0),
    fp.HadamardChannel(7, 0.5, blocks=1),
    fp.HadamardChannel(9, 2.0, blocks=8),
    fp.HadamardChannel(11, 2.0, blocks=4),
    fp.HadamardChannel(4, 2.0, blocks=4),
]


def fractions(channel: fp.SupportChannel) -> list[list[Fraction]]:
    """Return the law of the draws, p(y|x) = b(y) growth^[x in S(y)] / Z, column by column."""
    base, member = channel.support_table()
    if isinstance(channel, fp.UnaryChannel):
        q = channel.chances[1]
        exact = [q ** int(column.sum()) * (1 - q) ** int((~column).sum()) for column in member.T]
    else:
        exact = [Fraction(1, len(base))] * len(base)
    total = 1 + (channel.growth - 1) * channel.inclusion
    return [
        [b * (channel.growth if held else 1) / total for held in column]
        for b, column in zip(exact, member.T, strict=True)
    ]


def priors(k: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Return priors of all sorts, some with values that cannot occur."""
    sparse = rng.dirichlet(np.full(k, 0.2))
    sparse[: k // 3] = 0.0
    one = np.zeros(k)
    one[-1] = 1.0
    return [np.full(k, 1.0 / k), rng.dirichlet(np.ones(k)), sparse / sparse.sum(), one]
