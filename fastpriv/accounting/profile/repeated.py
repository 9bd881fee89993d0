"""A mechanism that is run a random number of times; the best of its outputs is shown."""

from __future__ import annotations

import math

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.rounding import LEAST, lowered, raised, roundoff
from fastpriv._core.search import bisect
from fastpriv.accounting.profile.profile import PrivacyProfile
from fastpriv.errors import InvalidInput

#: Orders minus one at which Renyi divergences are bounded: neighbours differ by 4 %, where the best
#: order of most mechanisms is, and by 38 % beyond.
_ORDERS = np.concatenate([np.geomspace(0.05, 64.0, 200), np.geomspace(80.0, 1e4, 16), [1e6]])
#: Relative error of gamma, far above the rounding of E[K] and the width of the bisection.
_GAMMA_ERROR = 1e-12


def repeat_and_select(profile: PrivacyProfile, mean: float, shape: float) -> PrivacyProfile:
    """Profile of the best output of K runs, an upper bound; K is random and not shown.

    The bounds on Renyi divergences are from Papernot and Steinke (2022): Theorem 2 for truncated
    negative binomial K, Theorem 6 for Poisson K. See docs/theory/sampling.md. The cost is the cost
    of about 220 moments of the profile.

    Parameters
    ----------
    profile : PrivacyProfile
        Profile of one run.
    mean : float
        Mean of K, at least 1.
    shape : float
        Shape eta >= 0 of the negative binomial distribution: 1 is geometric, 0 logarithmic.
        Infinity stands for the Poisson distribution.

    Examples
    --------
    >>> import fastpriv as fp
    >>> from fastpriv.accounting.profile.repeated import repeat_and_select
    >>> one = fp.accounting.PrivacyProfile.from_epsilon_delta(0.1)
    >>> repeat_and_select(one, 10.0, 1.0).epsilon(1e-6).upper < 0.3001  # 3 epsilon, and rounding
    True
    """
    runs = check.real(mean, "mean", least=1.0)
    eta = math.inf if shape == math.inf else check.real(shape, "shape", least=0.0)
    if not profile.parts:
        return profile
    orders, levels = [], []
    for s in _ORDERS.tolist():
        level = profile.renyi_level(1.0 + s).upper
        if level < math.inf:
            orders.append(1.0 + s)
            levels.append(level)
    if not orders:
        raise InvalidInput(
            "runs of which the best is chosen are bounded by Renyi divergences, which are infinite "
            "for this mechanism. Compose the runs instead: self_compose(count)."
        )
    # The level at order a is e(a) + ln E[K]/(a - 1) + ``more``.
    largest = math.inf
    if eta == math.inf:  # E[K] delta(ln(1 + 1/(a - 1)))
        more = [runs * profile.delta(lowered(math.log1p(1.0 / (a - 1.0)), 4)).upper for a in orders]
    else:  # (1 + eta) min over orders c of (1 - 1/c) e(c) + ln(1/gamma)/c, or the pure level
        gamma = _gamma(runs, eta)
        at_orders = [
            (1.0 - 1.0 / c) * level - math.log(gamma) / c
            for c, level in zip(orders, levels, strict=True)
        ]
        pure = profile.cases.guaranteed(0.0)
        largest = (2.0 + eta) * pure
        more = [(1.0 + eta) * min(*at_orders, pure)] * len(orders)
    result = [
        raised(min(level + math.log(runs) / (a - 1.0) + added, largest), 16.0)
        for a, level, added in zip(orders, levels, more, strict=True)
    ]
    # Divergences increase with their order, so a bound at a larger order holds at a smaller one.
    result = np.minimum.accumulate(result[::-1])[::-1].tolist()
    return PrivacyProfile.renyi(orders, result, relation=profile.relation)


def _gamma(mean: float, eta: float) -> float:
    """Return the gamma of a mean E[K], rounded down. E[K] decreases in gamma, to 1 at gamma = 1."""
    if mean == 1.0:
        return 1.0
    low, _ = bisect(lambda gamma: _mean(gamma, eta) > mean, 0.0, 1.0, relative=roundoff(4.0))
    return low * (1.0 - _GAMMA_ERROR) if low > 0.0 else LEAST


def _mean(gamma: float, eta: float) -> float:
    """E[K] = eta (1/gamma - 1) / (1 - gamma^eta), and its limit (1/gamma - 1) / ln(1/gamma)."""
    log = -math.log(gamma)
    scaled = -math.expm1(-eta * log) / eta if eta > 0.0 else log
    return math.expm1(log) / scaled
