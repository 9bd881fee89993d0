"""The linear program of perfect privacy: the cheapest Y that is independent of S."""

from __future__ import annotations

import math

import numpy as np

from fastpriv._core.highs import Rows, minimise
from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats


def least_private(
    kernel: Floats, inputs: Floats, secrets: Floats, cost: Floats, seconds: float
) -> tuple[Floats, float]:
    """Return W[x, y] and a lower bound on the least cost with P(y|s) = P(y).

    Parameters
    ----------
    kernel, inputs, secrets : ndarray
        P(s|x), p(x) and P(s), all of full support.
    cost : ndarray
        ``cost[x, y]`` >= 0, of order one.
    seconds : float
        Time limit.
    """
    (k, n), m = kernel.shape, cost.shape[1]
    centred = kernel - secrets[:, None]
    size = np.abs(centred).max(axis=1)
    # Rows that are rounding say nothing; the last of the others follows from the rest.
    told = np.flatnonzero(size > 64.0 * (k + 4) * ULP * secrets)
    B = centred[told] / size[told, None]
    # Unknowns n V[y, x]: for every y the rows of B, then for every x the sum over y.
    blocks = np.arange(m)[:, None, None] * n + np.arange(n)
    index = np.concatenate(
        [
            np.broadcast_to(blocks, (m, len(told), n)).reshape(-1),
            (np.arange(m) * n + np.arange(n)[:, None]).reshape(-1),
        ]
    )
    entries = np.concatenate([np.broadcast_to(B, (m, len(told), n)).reshape(-1), np.ones(m * n)])
    lengths = np.repeat([n, m], [m * len(told), n])
    starts = np.concatenate([[0], np.cumsum(lengths)])
    rhs = np.concatenate([np.zeros(m * len(told)), n * inputs])
    answer = minimise(
        np.ascontiguousarray(cost.T).reshape(-1),
        np.zeros(m * n),
        Rows(starts, index, entries, rhs, rhs),
        seconds,
    )
    V = np.maximum(answer.values, 0.0).reshape(m, n)
    # An input too rare for the solver's tolerance may be left without an output.
    V[np.argmin(cost, axis=1), np.arange(n)] += V.sum(axis=0) == 0.0
    nu = answer.duals[: m * len(told)].reshape(m, len(told))
    reach = np.abs(nu) @ ((kernel + secrets[:, None])[told] / size[told, None])
    price = cost - (nu @ B).T - (2 * k + 16) * ULP * (reach.T + cost)
    floor = price.min(axis=1)
    bound = math.fsum(inputs * floor) - (k + 8) * ULP * math.fsum(inputs * np.abs(floor))
    return (V / V.sum(axis=0)).T, bound
