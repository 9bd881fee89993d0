"""Rows that are copies of each other: an epsilon-private mechanism may leak all about a row."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv.channels import HammingChannel
from fastpriv.errors import InvalidInput
from fastpriv.priors import Markov

__all__ = ["correlated_example"]


def correlated_example(
    law: ArrayLike, epsilon: float, delta: float
) -> tuple[Markov, HammingChannel]:
    """Correlated rows for which an epsilon-private mechanism leaks all but ``delta`` about a row.

    Every row is a copy of the first, which follows ``law``, and E_d releases the table. When the
    least likely value d comes out in all n rows, the leakage about any row is
    -ln(p(d) + (1 - p(d)) e^(-n epsilon)). Releasing the row itself leaks ln 1/p(d), and this limit
    is reached within ``delta`` once n is large enough (Saeidian et al. 2024, Theorem 4.3). The
    least such n is taken.

    Parameters
    ----------
    law : 1-D array
        Law of a single row.
    epsilon : float
        Differential privacy level of the mechanism, more than 0.
    delta : float
        How far from the limit the leakage may stay, more than 0.

    Returns
    -------
    prior, channel
        The law of the database and the mechanism.

    Examples
    --------
    >>> import fastpriv as fp
    >>> prior, channel = fp.correlated_example([0.75, 0.25], 0.5, 1e-3)
    >>> fp.dp_level(channel), prior.space.n
    (0.5, 17)
    """
    row = check.law(law, "law")
    level, gap = check.real(epsilon, "epsilon", least=0.0), check.real(delta, "delta", least=0.0)
    if level == 0.0 or gap == 0.0:
        raise InvalidInput("epsilon and delta must be more than 0")
    least = row[row > 0].min()
    # p + (1-p) e^(-n epsilon) < p e^delta, in logarithms so that no delta is too large or small.
    rest = math.log1p(-least) if least < 1.0 else -math.inf
    limit = rest - math.log(least) - (gap + math.log(-math.expm1(-gap)))
    # Beyond the range of doubles there are far too many rows, whatever their number.
    count = max(1, math.floor(min(limit / level, 2.0**1000)) + 1) if limit > 0.0 else 1
    check.fits(count, "a database", "use a larger epsilon or delta")
    return Markov(row, np.eye(len(row)), count), HammingChannel(count, len(row), level)
