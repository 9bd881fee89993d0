"""Where the output law of E_i stops being a law: the search shared by dense and type vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from fastpriv._core.rounding import ULP
from fastpriv._core.transform import mix
from fastpriv._core.validation import Floats
from fastpriv._core.wide import Wide, wide_exp
from fastpriv._matrices.leakage import TINY
from fastpriv._structure.rows import Symmetric
from fastpriv.errors import Infeasible

if TYPE_CHECKING:
    from fastpriv.priors.base import Distribution

_STEP = 0.25
_WIDER = 1e-13
#: Relative misfit of R p_Y to the prior beyond which a clipped p_Y is not its output law.
_MISFIT = 1e-6


def rounding(n: int) -> float:
    """Relative error of a prior that is right to a few ulp, after n axes of R^-1."""
    return (4 * n + 16) * ULP


def least_epsilon(
    epsilon_x: float, epsilon_hat: float, n: int, m: int, fails: Callable[[float], bool]
) -> float:
    """Search for eps_tilde between eps_hat and a bound from eps_X.

    ``fails(e)`` is True only when R_e^-1 p has an entry that is negative beyond rounding. Below
    the truth it may still be False, because R_e^-1 amplifies the rounding of the prior without
    limit as e falls. Feasibility is upward closed (R_e = R_e' R_e'' for e < e'), so one certain
    failure settles everything below it: walk down from above to the first one, then bisect.
    """
    # With g = 1/(e^e + m - 2), p_Y >= c p (2 - (1 + g (m-1) e^eps_X)^n): from here on it passes.
    upper = math.log(n * (m - 1) / math.log(2.0) + 1.0) + epsilon_x
    if epsilon_x == 0.0 or math.isinf(epsilon_x):
        return epsilon_x
    # eps_hat itself fails only where it is not the answer, so the walk includes it.
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
    """Return eps_tilde through the vector of the law: about a hundred O(N n) transforms.

    Numbers that doubles hold with all digits take compiled transforms, others wide ones.
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
    """Whether some entry of R_e^-1 p is below minus a share of that of |R_e^-1| p."""
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
    """Return R_e^-1 p, and |R_e^-1| p, which its rounding errors are relative to."""
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
    """Return a closed upper bound on eps_tilde from eps_X = ``spread`` and the row sizes.

    R_e^(-1) p is non-negative when 2^(1/n) - 1 >= (m-1) e^(eps_X) / (e^e + m - 2) for every row:
    the terms of odd distance in the inverse are then at most those of even distance. So eps_tilde
    <= ln((m-1) e^(eps_X) / (2^(1/n) - 1) - m + 2), which is below ln(n (m-1)/ln 2 + 1) + eps_X.
    """
    sizes = [m for m in sizes if m > 1]
    if not sizes:
        return 0.0
    if spread == math.inf:
        return math.inf
    part = math.expm1(math.log(2.0) / len(sizes))
    m = max(sizes)
    return (spread + math.log((m - 1) / part - (m - 2) * math.exp(-spread))) * (1.0 + _WIDER)


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
        f"no output law makes the posterior a Hamming kernel at epsilon {e:.6g} for this prior in "
        "double precision: its smallest entries drown in rounding; use a larger epsilon, or a "
        "Product prior if the rows are independent"
    )
