"""A mechanism that is run a random number of times, of whose outputs the best is shown."""

from __future__ import annotations

import math

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.rounding import lowered, raised, roundoff
from fastpriv._core.search import bisect
from fastpriv.accounting.profile.profile import PrivacyProfile
from fastpriv.errors import InvalidInput

#: Orders less one at which Renyi divergences are bounded.
_ORDERS = np.concatenate([np.geomspace(0.05, 64.0, 200), np.geomspace(80.0, 1e4, 16), [1e6]])


def repeat_and_select(profile: PrivacyProfile, mean: float, shape: float) -> PrivacyProfile:
    """Profile of the best output of K runs, from above only; K is random and not shown.

    Papernot and Steinke (2022): theorem 2 for truncated negative binomial K with ``shape`` eta >= 0
    (1 is geometric, 0 logarithmic), theorem 6 for Poisson K (``shape`` infinite). Both bound Renyi
    divergences; see docs/theory/sampling.md. About 220 moments of the profile.

    Parameters
    ----------
    profile : PrivacyProfile
        Of one run.
    mean : float
        Of K, at least 1.
    shape : float
        The eta.

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
    extra = [math.log(runs) / (a - 1.0) for a in orders]
    most = math.inf
    if eta == math.inf:
        more = [runs * profile.delta(lowered(math.log1p(1.0 / (a - 1.0)), 4)).upper for a in orders]
    else:
        gamma = _gamma(runs, eta)
        spent = [
            (1.0 - 1.0 / c) * level - math.log(gamma) / c
            for c, level in zip(orders, levels, strict=True)
        ]
        pure = profile.cases.guaranteed(0.0)
        most = (2.0 + eta) * pure
        more = [(1.0 + eta) * min(*spent, pure)] * len(orders)
    result = [
        raised(min(each + a + b, most), 16.0)
        for each, a, b in zip(levels, more, extra, strict=True)
    ]
    # Divergences rise with their order.
    result = np.minimum.accumulate(result[::-1])[::-1].tolist()
    return PrivacyProfile.renyi(orders, result, relation=profile.relation)


def _gamma(mean: float, eta: float) -> float:
    """Return the gamma of a mean, rounded down: E[K] falls with it, and is 1 at gamma = 1."""
    if mean == 1.0:
        return 1.0
    low, _ = bisect(lambda gamma: _mean(gamma, eta) > mean, 0.0, 1.0, relative=roundoff(4.0))
    return low * (1.0 - 1e-12) if low > 0.0 else 5e-324


def _mean(gamma: float, eta: float) -> float:
    """E[K] = eta (1/gamma - 1) / (1 - gamma^eta), and its limit (1/gamma - 1) / ln(1/gamma)."""
    log = -math.log(gamma)
    scaled = -math.expm1(-eta * log) / eta if eta > 0.0 else log
    return math.expm1(log) / scaled
