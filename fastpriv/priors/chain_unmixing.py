"""Where E_i exists for a Markov chain of any length: a cone that the chain never leaves."""

from __future__ import annotations

import itertools
import math

import numpy as np

from fastpriv._core.validation import Floats
from fastpriv._structure.rows import Symmetric

#: How far a bound is widened before it is checked, and how much may be lost to rounding.
_WIDER, _ROUNDING = 1e-9, 1e-12
#: Steps towards the smallest cone, and the relative width at which the bisection stops.
_STEPS, _NARROW = 100, 1e-6
#: Most values of a row whose corners are listed.
_CORNERS = 8


def chain_bound(initial: Floats, transition: Floats, low: float, high: float) -> float:
    """Return an epsilon from which E_i exists for a chain of any length; ``high`` is one.

    With M_y = diag(R^-1[., y]) the output law is q(y) = initial M_y1 T M_y2 ... 1. After M_y a row
    vector f has a positive entry at y only. If the ratios -f_s/f_y stay below some U[y, s] for
    every next step, and sum_s U[y, s] <= 1, then q >= 0 whatever the length. The least such U is
    the limit of an iteration. A bisection then finds the least epsilon with one. Feasibility is
    upward closed, so every epsilon that passes is a bound.
    """
    while high - low > _NARROW * high:
        middle = 0.5 * (low + high)
        if _stays(initial, transition, middle):
            high = middle
        else:
            low = middle
    return high


def _stays(initial: Floats, transition: Floats, epsilon: float) -> bool:
    """Whether some cone holds all partial products at this epsilon."""
    m = len(initial)
    # R^-1 has 1 + (m-1) k on the diagonal and -k beside it.
    k = -Symmetric(m, epsilon).unmixing
    share = k / (1.0 + (m - 1) * k)
    first = share * initial[None, :] / initial[:, None]
    np.fill_diagonal(first, 0.0)
    bound = first
    for _ in range(_STEPS):
        ahead = _ahead(transition, share, bound)
        if ahead is None:
            return False
        grown = np.maximum(first, ahead)
        if grown.sum(axis=1).max() >= 1.0:  # the bounds only grow
            return False
        if np.allclose(grown, bound, rtol=0.1 * _WIDER, atol=0.0):
            break
        bound = grown
    wide = bound * (1.0 + _WIDER)
    after = _ahead(transition, share, wide)
    if after is None or np.any(np.maximum(first, after) > wide * (1.0 - _ROUNDING)):
        return False
    return bool((wide.sum(axis=1) < 1.0 - _ROUNDING).all())


def _ahead(transition: Floats, share: float, bound: Floats) -> Floats | None:
    """Return the largest ratios -f_s/f_y after one more row, None where a sign is not certain.

    Before the row f is 1 at z and -u_s beside it, 0 <= u_s <= bound[z, s]. Its image g = f T has
    g_s / g_y as a ratio of linear functions of u, which is largest at a corner of the box.
    """
    m = len(transition)
    worst = np.zeros((m, m))
    for z in range(m):
        others = [s for s in range(m) if s != z]
        least = transition[z] - bound[z, others] @ transition[others]
        if np.any(least <= _ROUNDING * transition[z]):
            return None
        if m <= _CORNERS:
            ends = itertools.product((0.0, 1.0), repeat=m - 1)
            corners = np.array(list(ends)) * bound[z, others]
            images = transition[z] - corners @ transition[others]
            ratios = (images[:, None, :] / images[:, :, None]).max(axis=0)
        else:
            ratios = transition[z][None, :] / least[:, None]
        worst = np.maximum(worst, share * ratios)
    np.fill_diagonal(worst, 0.0)
    return worst


def opposite_path(initial: Floats, transition: Floats, n: int) -> float:
    """Return the largest ln p(x)/p(y) over paths x, y that differ in every row. Cost O(n m^4)."""
    from fastpriv.kernels import markov_best_path

    a, b = np.array(list(itertools.permutations(range(len(initial)), 2))).T
    start, steps = np.log(initial), np.log(transition)
    apart = steps[a[:, None], a[None, :]] - steps[b[:, None], b[None, :]]
    return float(markov_best_path(start[a] - start[b], np.ascontiguousarray(apart), n))


def log_mean_inverse(initial: Floats, transition: Floats, n: int, epsilon: float) -> float:
    """Return ln sum_y q(y)/p(y), q = R^-1 p, with decimals enough for what cancels.

    The forward recursion over pairs (hidden value, output), O(n m^4) decimal operations.
    """
    from decimal import Decimal, localcontext

    m, kernel = len(initial), Symmetric(len(initial), epsilon)
    c = -kernel.unmixing
    lost = n * math.log10(1.0 + 2.0 * (m - 1) * c)
    with localcontext() as context:
        context.prec = 40 + math.ceil(lost)
        off = Decimal(-c)
        inverse = [[1 - (m - 1) * off if s == y else off for y in range(m)] for s in range(m)]
        law = [Decimal(float(p)) for p in initial]
        steps = [[Decimal(float(p)) for p in row] for row in transition]
        pairs = list(itertools.product(range(m), repeat=2))
        front = {(s, y): law[s] * inverse[s][y] / law[y] for s, y in pairs}
        factor = {
            (s, y, t, z): steps[s][t] * inverse[t][z] / steps[y][z]
            for s, y in pairs
            for t, z in pairs
        }
        for _ in range(n - 1):
            front = {
                (t, z): sum((front[s, y] * factor[s, y, t, z] for s, y in pairs), Decimal(0))
                for t, z in pairs
            }
        return float(sum(front.values(), Decimal(0)).ln())
