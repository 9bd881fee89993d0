"""Fano's lower bound on the probability of a wrong guess."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.rounding import ULP, raised, roundoff
from fastpriv._core.search import bisect
from fastpriv.priors import Dense, Distribution
from fastpriv.priors.base import as_prior
from fastpriv.results import Bracket

__all__ = ["error_probability_bound"]

#: Relative rounding error of the entropy of a structured prior.
_ROUNDING = 2.0**-44


def error_probability_bound(factor: float, prior: Distribution | ArrayLike) -> float:
    """Bound from below the probability that any adversary guesses S wrongly (Fano).

    The bound is the smallest P_e with h2(P_e) + P_e log2(|S| - 1) >= (1 - f) H(S), H(S) in bits and
    h2 the binary entropy. |S| is the number of values that can occur; for a structured prior, the
    number of all values.

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
    Makhdoumi-Fawaz 2013, Proposition 1, with h2(P_e) <= 1 for |S| > 2: P_e >= ((1 - f) H(S) - 1) /
    log2(|S| - 1), which is smaller. Cover-Thomas 2006, Theorem 2.10.1, for the full form.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(fp.error_probability_bound(0.5, [0.5, 0.5]), 6)  # h2(0.110028) = 1/2
    0.110028
    >>> round(fp.error_probability_bound(0.1, [0.5, 0.3, 0.2]), 6)
    0.379348
    """
    # A quotient of two rounded numbers may slightly exceed 1.
    f = min(check.real(factor, "factor", least=0.0, most=1.0 + check.SUM_TOLERANCE), 1.0)
    law = as_prior(prior)
    if isinstance(law, Dense):
        p = law.probabilities()
        p = p[p > 0.0]
        values, nats, lost = len(p), float(-(p @ np.log(p))), roundoff(len(p) + 32)
    else:
        entropy = law.entropy()
        nats = entropy.lower if isinstance(entropy, Bracket) else entropy
        values, lost = law.space.size, _ROUNDING
    left = (1.0 - f) * nats / math.log(2.0) * (1.0 - lost)
    if values < 2 or left <= 0.0:
        return 0.0
    return _smallest_error(left, values)


def _smallest_error(bits: float, values: int) -> float:
    """Return the largest p <= 1 - 1/values with h2(p) + p log2(values - 1) <= bits, rounded down.

    The left side increases with p there.
    """
    others = math.log2(values - 1)
    most = 1.0 - 1.0 / values if values < 2**60 else 1.0 - ULP

    def small(p: float) -> bool:
        entropy = -(p * math.log(p) + (1.0 - p) * math.log1p(-p))
        return raised(entropy / math.log(2.0) + p * others, 16.0) <= bits

    return most if small(most) else bisect(small, 0.0, most)[0]
