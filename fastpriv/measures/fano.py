"""Fano's lower bound on the probability of a wrong guess."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.rounding import ULP, raised
from fastpriv._core.search import bisect
from fastpriv.priors import Dense, Distribution
from fastpriv.priors.base import as_prior
from fastpriv.results import Bracket

__all__ = ["error_probability_bound"]

#: Relative rounding error of the entropy of a structured prior.
_ROUNDING = 2.0**-44


def error_probability_bound(factor: float, prior: Distribution | ArrayLike) -> float:
    """Bound from below the probability that any adversary guesses S wrongly (Fano).

    With H(S) in bits, P_e >= ((1 - f) H(S) - 1)/log2(|S| - 1) for |S| > 2. For two values the bound
    solves h2(P_e) >= (1 - f) H(S). |S| is the number of values that can occur; for a structured
    prior, the number of all values.

    Parameters
    ----------
    factor : float
        Leakage factor f = I(S; Y)/H(S), between 0 and 1, or an upper bound on it.
    prior : Distribution or 1-D array
        Distribution of S.

    Returns
    -------
    float
        Probability in [0, 1 - 1/|S|], rounded down.

    References
    ----------
    Makhdoumi-Fawaz 2013, Proposition 1.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(fp.error_probability_bound(0.5, [0.5, 0.5]), 6)  # h2(0.110028) = 1/2
    0.110028
    >>> round(fp.error_probability_bound(0.25, fp.Uniform(4, 2)), 6)  # (3/4 of 4 bits - 1)/log2(15)
    0.511916
    """
    # A quotient of two rounded numbers may slightly exceed 1.
    f = min(check.real(factor, "factor", least=0.0, most=1.0 + check.SUM_TOLERANCE), 1.0)
    law = as_prior(prior)
    if isinstance(law, Dense):
        p = law.probabilities()
        p = p[p > 0.0]
        values, nats, lost = len(p), float(-(p @ np.log(p))), (len(p) + 32) * ULP
    else:
        entropy = law.entropy()
        nats = entropy.lower if isinstance(entropy, Bracket) else entropy
        values, lost = law.space.size, _ROUNDING
    left = (1.0 - f) * nats / math.log(2.0) * (1.0 - lost)
    if values < 2 or left <= 0.0:
        return 0.0
    if values == 2:
        return _inverse_binary_entropy(left)
    bound = (left - 1.0) / math.log2(values - 1)
    most = 1.0 - 1.0 / values if values < 2**60 else 1.0 - ULP
    return min(max(bound, 0.0), most) * (1.0 - lost)


def _inverse_binary_entropy(bits: float) -> float:
    """Return the largest p <= 1/2 with h2(p) <= bits, rounded down."""

    def small(p: float) -> bool:
        entropy = -(p * math.log(p) + (1.0 - p) * math.log1p(-p))
        return raised(entropy / math.log(2.0), 8.0) <= bits

    return bisect(small, 0.0, 0.5)[0]
