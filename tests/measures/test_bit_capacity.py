"""Constrained capacity of one bit, in closed form."""

import numpy as np
import pytest

import fastpriv as fp


def information(W, t):
    """I(X; Y) under (t, 1-t), by plain sums over a grid of t."""
    q = t[:, None] * W[0] + (1.0 - t[:, None]) * W[1]
    total = np.zeros(len(t))
    for weight, row in ((t, W[0]), (1.0 - t, W[1])):
        with np.errstate(divide="ignore", invalid="ignore"):
            total += weight * np.where(row > 0.0, row * np.log(row / q), 0.0).sum(axis=1)
    return total


@pytest.mark.parametrize("outputs", [2, 3, 5])
@pytest.mark.parametrize("share", [0.01, 0.3, 0.7, 0.9, 0.99, 0.999999, 1.0 - 1e-12])
def test_against_a_grid(outputs, share):
    rng = np.random.default_rng(outputs)
    W = rng.dirichlet(np.full(outputs, 0.5), 2)
    b = share * np.log(2.0)
    t = np.append(np.linspace(0.0, 1.0, 400_001)[1:-1], 0.5)
    entropy = -t * np.log(t) - (1.0 - t) * np.log1p(-t)
    best = information(W, t[entropy >= b]).max()
    bracket = fp.constrained_capacity(W, b)
    assert bracket.lower <= bracket.upper <= bracket.lower * (1.0 + 1e-6)
    assert best <= bracket.upper * (1.0 + 1e-12)
    assert bracket.lower <= best * (1.0 + 1e-4)


@pytest.mark.parametrize("W", [[[1.0, 0.0], [0.5, 0.5]], [[1.0, 0.0], [0.0, 1.0]]])
def test_zeros(W):
    bracket = fp.constrained_capacity(W, 0.6931)
    even = fp.mutual_information(W, [0.5, 0.5])
    assert even * (1.0 - 1e-12) <= bracket.upper
    assert bracket.lower <= fp.channel_capacity(W).upper
