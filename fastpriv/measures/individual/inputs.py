"""The largest information over a convex set of input laws, as a bracket."""

from __future__ import annotations

import math

import numpy as np

from fastpriv._core.clock import Clock
from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats
from fastpriv._matrices.rewarded import rewarded_law
from fastpriv.priors.sets import ConvexPriors

#: Rounds, and laws to start from.
_ROUNDS, _STARTS = 80, 8
#: Least probability in a logarithm.
_LEAST = 1e-300


def some_laws(priors: ConvexPriors, count: int) -> list[Floats]:
    """Return laws of a set in several directions."""
    rng = np.random.default_rng(0)  # where searches start; what they reach is computed
    return [priors.smallest_sum(rng.random(priors.size))[1] for _ in range(count)]


def most_information(
    W: Floats, priors: ConvexPriors, gap: float, clock: Clock
) -> tuple[float, float]:
    """Return the largest I(X; Y) over a convex set of input laws, as a bracket.

    I(p) is at most <p, D(W || q)> for every output law q, and equal for its own. The law with the
    largest mean of such a bound joins the laws seen so far, and q comes from the best mixture of
    these: for shares s of laws with outputs V, it has I(s, V) plus the mean information of a law.
    """
    seen = np.ascontiguousarray(W[:, W.any(axis=0)])
    laws = np.array(some_laws(priors, _STARTS))
    lower, upper = 0.0, math.inf
    for _ in range(_ROUNDS):
        rewards = np.array([law @ _told(seen, law) for law in laws])
        p = rewarded_law(laws @ seen, rewards, 0.02 * gap) @ laws
        told = _told(seen, p)
        slack = (8.0 * seen.size + 64.0) * ULP * (1.0 + float(np.abs(told).max()))
        lower = max(lower, float(p @ told) - slack)
        least, law = priors.smallest_sum(-told)
        upper = min(upper, slack - least)
        if upper <= lower + 0.1 * gap * min(1.0, lower) or clock.left() == 0.0:
            break
        laws = np.vstack([laws, law])
    return max(0.0, lower), max(upper, lower)


def _told(W: Floats, p: Floats) -> Floats:
    """Return D(W_x || q) for the output law q of p."""
    q = np.maximum(p @ W, _LEAST)
    return np.asarray((W * np.log(np.maximum(W, _LEAST) / q)).sum(axis=1))
