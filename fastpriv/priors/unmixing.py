"""Existence of the posterior response: the smallest epsilon with R_epsilon^-1 p >= 0.

Vectors over databases and over types share the search. For Markov chains of any length, a cone that
the chain never leaves gives an upper bound.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from fastpriv._core.logs import log_ratio
from fastpriv._core.rounding import roundoff
from fastpriv._core.transform import mix
from fastpriv._core.validation import Floats
from fastpriv._core.wide import Wide, wide_exp
from fastpriv._matrices.leakage import TINY
from fastpriv._matrices.tilted import wide_home
from fastpriv._structure.rows import Symmetric
from fastpriv.errors import Infeasible

if TYPE_CHECKING:
    from fastpriv.priors.base import Distribution

_STEP = 0.25
_WIDER = 1e-13
#: Relative misfit of R p_Y to the prior beyond which a clipped p_Y is not its output distribution.
_MISFIT = 1e-6
#: Factor by which a cone is widened before it is checked, to cover rounding.
_CONE_WIDENED = 1e-9
#: Relative margin of the checks of a cone, above the rounding of sums over m <= 1000 values.
_CONE_MARGIN = 1e-12
#: Most steps towards the smallest cone.
_CONE_STEPS = 100
#: Relative width at which the bisection for a cone stops.
_CONE_WIDTH = 1e-6
#: Most values of a record whose corners are listed.
_CORNERS = 8


def rounding(n: int) -> float:
    """Relative error of a prior that is correct to a few ulp, after n axes of R^-1."""
    return roundoff(4 * n + 16)


def least_epsilon(
    epsilon_x: float, epsilon_hat: float, n: int, m: int, fails: Callable[[float], bool]
) -> float:
    """Search for eps_tilde between eps_hat and a bound from eps_X.

    ``fails(e)`` is True only if R_e^-1 p has an entry that is negative beyond rounding. Below
    eps_tilde it may still be False, because R_e^-1 amplifies the rounding of the prior without
    limit as e falls. Feasibility is upward closed (R_e = R_e' R_e'' for e < e'), so one certain
    failure decides all smaller e. The search steps down from above to the first failure, then
    bisects.
    """
    # With g = 1/(e^e + m - 2), p_Y >= c p (2 - (1 + g (m-1) e^eps_X)^n): from here on it passes.
    upper = math.log(n * (m - 1) / math.log(2.0) + 1.0) + epsilon_x
    if epsilon_x == 0.0 or math.isinf(epsilon_x):
        return epsilon_x
    # eps_hat fails only if it is not the answer, so the search includes it.
    lower = upper
    while lower > epsilon_hat and not fails(lower):
        upper, lower = lower, max(lower - _STEP, epsilon_hat)
    if lower == epsilon_hat and not fails(lower):
        return epsilon_hat
    while True:
        middle = 0.5 * (lower + upper)
        if not lower < middle < upper or upper - lower < 1e-15 * upper:
            return upper
        if fails(middle):
            lower = middle
        else:
            upper = middle


def vector_threshold(prior: Distribution, vector: Callable[[], Floats]) -> float:
    """Return eps_tilde through the vector of the distribution. Cost O(N n) for each step.

    Compiled transforms are used if doubles hold all digits, and wide numbers otherwise.
    """
    sizes = prior.space.sizes
    fails: Callable[[float], bool]
    if prior.log_smallest() > math.log(TINY):
        fails = partial(_fails, vector(), sizes)
    else:
        fails = partial(_wide_fails, prior.wide(), sizes)
    spread, hat = prior.epsilon_x(), prior.epsilon_hat()
    return least_epsilon(spread, hat, prior.space.n, max(sizes), fails)


def _fails(law: Floats, sizes: Sequence[int], e: float) -> bool:
    """Whether R_e^-1 p has an entry that is negative beyond rounding."""
    return _any_below(law, sizes, e, rounding(len(sizes)))


def surely_positive(law: Floats, sizes: Sequence[int], e: float) -> bool:
    """Whether R_e^-1 p has no entry that may be negative but for rounding."""
    return not _any_below(law, sizes, e, -rounding(len(sizes)))


def _any_below(law: Floats, sizes: Sequence[int], e: float, share: float) -> bool:
    """Whether some entry of R_e^-1 p is below minus a share of the entry of |R_e^-1| p."""
    from fastpriv.kernels import any_below

    down = [Symmetric(m, e).unmixing for m in sizes]
    value = mix(law.copy(), sizes, down)
    # |R^-1| has row sums 1 + 2 (m-1) |c|; divided by them it is a mixing step itself.
    sums = [1.0 - 2.0 * (m - 1) * c for m, c in zip(sizes, down, strict=True)]
    up = [-c / s for c, s in zip(down, sums, strict=True)]
    error = mix(law.copy(), sizes, up)
    return any_below(value, error, share * math.prod(sums))


def _wide_fails(law: Wide, sizes: Sequence[int], e: float) -> bool:
    value, size = wide_unmixed(law, sizes, e)
    return bool(((value + size * rounding(len(sizes))).mantissa < 0.0).any())


def wide_unmixed(law: Wide, sizes: Sequence[int], e: float) -> tuple[Wide, Wide]:
    """Return R_e^-1 p, and |R_e^-1| p, which scales its rounding errors."""
    value = size = law
    c = wide_exp(-e) * (-1.0 / math.expm1(-e))
    inner = math.prod(sizes)
    for m in sizes:
        inner //= m
        value, size = value.reshape(-1, m, inner), size.reshape(-1, m, inner)
        value = value + (value * float(m) + value.sum(1) * -1.0) * c
        size = size + (size * (m - 2.0) + size.sum(1)) * c
    return value.reshape(-1), size.reshape(-1)


def tilde_bound(sizes: Sequence[int], spread: float) -> float:
    """Return a closed upper bound on eps_tilde from eps_X = ``spread`` and the record sizes.

    R_e^(-1) p is non-negative if 2^(1/n) - 1 >= (m-1) e^(eps_X) / (e^e + m - 2) for every record:
    the terms of odd distance in the inverse are then at most the terms of even distance. So
    eps_tilde <= ln((m-1) e^(eps_X) / (2^(1/n) - 1) - m + 2), which is below ln(n (m-1)/ln 2 + 1) +
    eps_X.
    """
    sizes = [m for m in sizes if m > 1]
    if not sizes:
        return 0.0
    if spread == math.inf:
        return math.inf
    part = math.expm1(math.log(2.0) / len(sizes))
    m = max(sizes)
    return (spread + math.log((m - 1) / part - (m - 2) * math.exp(-spread))) * (1.0 + _WIDER)


def log_misfit(p: Floats, q: Floats) -> float:
    """Return the largest |ln p/q| over the support of p."""
    p, q = p[p > 0], q[p > 0]
    return float(np.abs(log_ratio(p, q)).max())


def wide_misfit(p: Wide, q: Wide, sizes: Sequence[int], epsilon: float) -> float:
    """Return the largest |ln p(x)/(R q)(x)| if doubles do not hold all digits of p or q."""
    mixed = wide_home(q, sizes, epsilon) * math.prod(Symmetric(m, epsilon).stay for m in sizes)
    if not (mixed.mantissa > 0.0).all():
        return math.inf
    return float(np.abs((p / mixed).logs()).max())


def clipped(
    inverse: Floats, forward: Callable[[Floats], Floats], prior: Floats, e: float
) -> Floats:
    """Clip R^-1 p at zero, in place, and check that it still mixes to the prior."""
    from fastpriv.kernels import any_below

    law = np.maximum(inverse, 0.0, out=inverse)
    misfit = forward(law)
    np.subtract(misfit, prior, out=misfit)
    np.abs(misfit, out=misfit)
    np.negative(misfit, out=misfit)
    total = float(law.sum())
    if math.isfinite(total) and not any_below(misfit.reshape(-1), prior.reshape(-1), _MISFIT):
        law /= total
        return law
    raise Infeasible(
        f"no output distribution makes the posterior a Hamming kernel at epsilon {e:.6g} for "
        "this prior in double precision, because its smallest entries are lost to rounding. "
        "Use a larger epsilon, or a Product prior if the records are independent."
    )


def chain_bound(initial: Floats, transition: Floats, low: float, high: float) -> float:
    """Return an epsilon from which the posterior response exists, for a chain of any length.

    ``high`` is such an epsilon. With M_y = diag(R^-1[., y]) the output distribution is q(y) =
    initial M_y1 T M_y2 ... 1. After M_y a row vector f has a positive entry only at y. Suppose that
    the ratios -f_s/f_y stay below some U[y, s] for every next step, and sum_s U[y, s] <= 1. Then q
    >= 0 for any length. The smallest such U is the limit of an iteration, and a bisection finds the
    smallest epsilon with one. Feasibility is upward closed, so every epsilon that passes is an
    upper bound.
    """
    while high - low > _CONE_WIDTH * high:
        middle = 0.5 * (low + high)
        if _stays(initial, transition, middle):
            high = middle
        else:
            low = middle
    return high


def _stays(initial: Floats, transition: Floats, epsilon: float) -> bool:
    """Whether some cone contains all partial products at this epsilon."""
    m = len(initial)
    # R^-1 has 1 + (m-1) k on the diagonal and -k beside it.
    k = -Symmetric(m, epsilon).unmixing
    share = k / (1.0 + (m - 1) * k)
    first = share * initial[None, :] / initial[:, None]
    np.fill_diagonal(first, 0.0)
    bound = first
    for _ in range(_CONE_STEPS):
        ahead = _ahead(transition, share, bound)
        if ahead is None:
            return False
        grown = np.maximum(first, ahead)
        if grown.sum(axis=1).max() >= 1.0:  # the bounds only grow
            return False
        if np.allclose(grown, bound, rtol=0.1 * _CONE_WIDENED, atol=0.0):
            break
        bound = grown
    wide = bound * (1.0 + _CONE_WIDENED)
    after = _ahead(transition, share, wide)
    if after is None or np.any(np.maximum(first, after) > wide * (1.0 - _CONE_MARGIN)):
        return False
    return bool((wide.sum(axis=1) < 1.0 - _CONE_MARGIN).all())


def _ahead(transition: Floats, share: float, bound: Floats) -> Floats | None:
    """Return the largest ratios -f_s/f_y after one more record, None if a sign is uncertain.

    Before the record f is 1 at z and -u_s elsewhere, 0 <= u_s <= bound[z, s]. Its image g = f T has
    g_s / g_y as a ratio of linear functions of u, which is largest at a corner of the box.
    """
    m = len(transition)
    worst = np.zeros((m, m))
    for z in range(m):
        others = [s for s in range(m) if s != z]
        least = transition[z] - bound[z, others] @ transition[others]
        if np.any(least <= _CONE_MARGIN * transition[z]):
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
    """Return the largest ln p(x)/p(y) over paths that differ in every record. Cost O(n m^4)."""
    from fastpriv.kernels import markov_best_path

    a, b = np.array(list(itertools.permutations(range(len(initial)), 2))).T
    start, steps = np.log(initial), np.log(transition)
    apart = steps[a[:, None], a[None, :]] - steps[b[:, None], b[None, :]]
    return float(markov_best_path(start[a] - start[b], np.ascontiguousarray(apart), n))


def log_mean_inverse(initial: Floats, transition: Floats, n: int, epsilon: float) -> float:
    """Return ln sum_y q(y)/p(y), q = R^-1 p, with enough decimals for the cancellation.

    The forward recursion over pairs (hidden value, output) takes O(n m^4) decimal operations.
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
