"""What an output tells about the whole database under an entropy constraint, bounded from above.

For any output law q and any t > 0, and inputs x that stand for k_x databases each,

    max {I(X; Y): H(X) >= b} <= t ln sum_x k_x e^(D(W_x || q)/t) - t b.

It bounds what the output tells about one row. It costs O(inputs outputs) for each q and t, so that
it is there for queries with thousands of answers.
"""

from __future__ import annotations

import math

import numpy as np

from fastpriv._core.clock import Meter
from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats
from fastpriv._matrices.entropy_search.slices import Individual, gibbs

#: Steps of a bisection for ln t, its range, and most steps of the ascent for one t.
_BISECTIONS, _COLDEST, _WARMEST, _ASCENT = 16, 16.0, 2.0, 300
#: How the steps are lengthened and shortened, and the relative gain below which they end.
_FASTER, _SLOWER, _STALLED = 1.3, 2.0, 1e-6
#: Output probabilities below are raised to this one, which raises the bound.
_TINY = 1e-290
#: Units of work of a step, for each entry.
_STEP = 8


def database_bound(individual: Individual, b: float, meter: Meter, deadline: float) -> float:
    """Bound I(X; Y) over laws of the inputs with H(X) >= b. Infinite if there is no time.

    For one t the law that maximises I + t H is a fixed point of p_x ~ k_x e^(D(W_x || q)/t),
    q = p W. Steps of Blahut and Arimoto move ln p by a share t/(1 + t) of the way. They are
    lengthened while the bound falls. The entropy of the fixed point grows with t.
    """
    W, logs = individual.W, individual.logs
    own = np.where(W > 0.0, W * np.log(np.maximum(W, _TINY)), 0.0).sum(axis=1)
    best, weights = math.inf, np.log(np.maximum(individual.best[1], _TINY))
    low, high = -_COLDEST, _WARMEST
    for _ in range(_BISECTIONS):
        t, last, pace = math.exp(0.5 * (low + high)), math.inf, 1.0
        for _ in range(_ASCENT):
            if meter.used() >= deadline:
                return best
            meter.spend(_STEP * W.size)
            p = gibbs(weights)
            q = np.maximum(p @ W, _TINY)
            far = own - W @ np.log(q) + (q.sum() - 1.0)
            now = _bound(far, logs, t, b - individual.doubt, W.shape[1])
            pace = _FASTER * pace if now < last else max(1.0, pace / _SLOWER)
            if 0.0 <= last - now <= _STALLED * now:
                break
            best, last, share = min(best, now), now, min(pace * t / (1.0 + t), 1.0)
            weights = (1.0 - share) * np.log(np.maximum(p, _TINY)) + share * (logs + far / t)
        if individual.entropy(gibbs(weights)) < b:
            low = math.log(t)
        else:
            high = math.log(t)
    return best


def _bound(far: Floats, logs: Floats, t: float, b: float, outputs: int) -> float:
    """Return t ln sum e^(far/t + logs) - t b, rounded up."""
    scores = far / t + logs
    top = float(scores.max())
    value = t * (top + math.log(math.fsum(np.exp(scores - top))) - b)
    size = float(np.abs(far).max()) + t * (abs(top) + abs(b) + float(np.abs(logs).max()) + 1.0)
    rough = float(np.abs(far).max()) + math.log(1.0 / _TINY)  # of the two parts of a divergence
    return value + (2 * outputs + 64) * ULP * rough + (len(far) + 64) * ULP * size
