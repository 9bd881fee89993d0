"""The curve of a profile in other words: errors of tests, Renyi divergences, a Bayesian's error."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

from fastpriv._core import validation as check
from fastpriv._core.rounding import ULP, lowered, raised, sum_down, sum_up
from fastpriv.accounting.profile.normal import Normal
from fastpriv.accounting.profile.relations import ADDED
from fastpriv.results import Bracket

if TYPE_CHECKING:
    from fastpriv.accounting.profile.composed import Part
    from fastpriv.accounting.profile.distinguishing import Distinguishers

#: Least positive chance of a first error at which the curve is computed.
_RARE = 1e-300


class Questions:
    """Curves that follow from delta(epsilon)."""

    _parts: dict[Part, int]
    relation: str

    def __init__(self, parts: dict[Part, int], relation: str = ADDED) -> None:
        raise NotImplementedError

    @property
    def _is_normal(self) -> bool:
        """Whether all releases are of normal noise on everybody."""
        return all(isinstance(part, Normal) for part in self._parts)

    def _epsilon(self, delta: float) -> Bracket:
        raise NotImplementedError

    def _delta(self, epsilon: float) -> Bracket:
        raise NotImplementedError

    def _log_moment(self, s: float) -> tuple[float, float]:
        raise NotImplementedError

    @property
    def _distinguishers(self) -> Distinguishers:
        raise NotImplementedError

    def tradeoff(self, alpha: float) -> Bracket:
        """Least type II error of a test with type I error alpha, between neighbours (f-DP).

        Of one pair of neighbours in one order, with curve d, and d' in the other order,
        T(alpha) = sup over t >= 0 of max(0, 1 - d(t) - e^t alpha, e^-t (1 - d'(t) - alpha)),
        Dong, Roth and Su (2022). The least of these over pairs and orders is meant. It may be above
        what follows from delta(t), which is that of the worse order at each t: channels of several
        pairs of neighbours that are composed have a bracket between the two.

        Parameters
        ----------
        alpha : float
            Chance in [0, 1] of taking the first database for the second.

        Examples
        --------
        >>> import fastpriv as fp
        >>> found = fp.accounting.PrivacyProfile.gaussian(1.0).tradeoff(0.05)
        >>> round(found.lower, 6), round(found.upper, 6)  # Phi(Phi^-1(0.95) - 1)
        (0.740489, 0.740489)
        """
        a = check.real(alpha, "alpha", least=0.0, most=1.0)
        if a == 0.0:
            missed = self._delta(sys.float_info.max)  # what gives a database away
            return Bracket(sum_down([1.0, -missed.upper]), sum_up([1.0, -missed.lower]))
        if a < _RARE:  # e^t a would overflow; the curve falls
            return Bracket(self.tradeoff(_RARE).lower, self.tradeoff(0.0).upper)
        return self._distinguishers.least_error(a)

    def tpr(self, fpr: float) -> Bracket:
        """Largest true-positive rate of a test at a false-positive rate: 1 - T(fpr).

        Examples
        --------
        >>> import fastpriv as fp
        >>> round(fp.accounting.PrivacyProfile.gaussian(1.0).tpr(0.05).upper, 6)
        0.259511
        """
        result = self.tradeoff(fpr)
        return Bracket(
            math.nextafter(1.0 - result.upper, 0.0),
            min(math.nextafter(1.0 - result.lower, 2.0), 1.0),
        )

    def bayes_risk(self, prior: float = 0.5) -> Bracket:
        """Least error of a guess between two neighbours, of which one has a prior probability.

        min(p, 1-p) (1 - delta(t)) with t = |ln p/(1-p)|.

        Examples
        --------
        >>> import fastpriv as fp
        >>> round(fp.accounting.PrivacyProfile.gaussian(1.0).bayes_risk(0.5).lower, 6)  # Phi(-1/2)
        0.308538
        """
        p = check.real(prior, "prior", least=0.0, most=1.0)
        less = min(p, 1.0 - p)
        if less == 0.0:
            return Bracket(0.0, 0.0)
        t = abs(math.log(p) - math.log1p(-p))
        slack = 4.0 * ULP * (1.0 + t)
        high, low = self._delta(max(t - slack, 0.0)).upper, self._delta(t + slack).lower
        return Bracket(lowered(less * (1.0 - high), 4.0), raised(less * (1.0 - low), 4.0))

    def renyi_level(self, order: float) -> Bracket:
        """Renyi divergence of an order above 1 between the laws of neighbours, composed.

        ln M(order - 1) / (order - 1), the larger of both orders of the neighbours. Infinite where
        some output gives a database away.

        Examples
        --------
        >>> import fastpriv as fp
        >>> found = fp.accounting.PrivacyProfile.gaussian(2.0).self_compose(3).renyi_level(5.0)
        >>> round(found.lower, 9), round(found.upper, 9)  # 3 * 5 / 8
        (1.875, 1.875)
        """
        alpha = check.real(order, "order", least=1.0 + 1e-9)
        low, high = self._log_moment(alpha - 1.0)
        s = alpha - 1.0
        return Bracket(max(lowered(low / s, 8.0), 0.0), max(raised(high / s, 8.0), 0.0))

    def zcdp_level(self) -> Bracket:
        """Least rho for which the releases are rho-zCDP (Bun and Steinke 2016).

        rho is the largest of D_alpha / alpha over all orders alpha > 1. Gaussian noise, also on
        samples, and discrete Gaussian noise are known in closed form; other releases must have
        bounded losses, or the upper end is infinite. Up to some 300 evaluations of moments.

        Examples
        --------
        >>> import fastpriv as fp
        >>> found = fp.accounting.PrivacyProfile.gaussian(2.0).self_compose(3).zcdp_level()
        >>> round(found.lower, 9), round(found.upper, 9)  # 3 / (2 * 2^2)
        (0.375, 0.375)
        """
        from fastpriv.accounting.profile.summaries import (
            declared_rate,
            largest_rate,
            normal_square,
        )

        others, declared = declared_rate(self._parts)
        parts, least, most = normal_square(others, zcdp=True)
        most = most + 2.0 * declared
        if not parts:
            return Bracket(0.5 * least, raised(0.5 * most, 4.0))
        rest = type(self)(parts, self.relation)
        top = rest._epsilon(0.0)
        if top.lower == math.inf:
            return Bracket(math.inf, math.inf)
        if top.upper == math.inf:
            return Bracket(0.5 * least, math.inf)
        low, high = largest_rate(rest._log_moment, top.upper)
        # The rate of normal noise is the same at all orders; that of samples is a limit.
        constant = math.fsum(k * p.square for p, k in others.items() if isinstance(p, Normal))
        low = lowered(low + 0.5 * constant, 16.0)
        return Bracket(max(low, 0.5 * least), raised(high + 0.5 * most, 4.0))

    def gdp_level(self) -> Bracket:
        """Least mu for which the releases are mu-GDP: no worse than N(0, 1) against N(mu, 1).

        The least mu whose curve is above delta(epsilon) at every epsilon, Dong, Roth and Su (2022).
        Gaussian noise is known in closed form, also on samples: far out in the tail those that
        take part decide, so that sampling does not lower mu. Other releases must have bounded
        losses, or the upper end is infinite. Up to some 250 evaluations of delta, to about three
        digits.

        Examples
        --------
        >>> import fastpriv as fp
        >>> found = fp.accounting.PrivacyProfile.gaussian(2.0).self_compose(4).gdp_level()
        >>> round(found.lower, 9), round(found.upper, 9)
        (1.0, 1.0)
        """
        from fastpriv.accounting.profile.summaries import gaussian_mu, largest_mu, normal_square

        parts, least, most = normal_square(self._parts)
        # ln delta(t) is at least -(t + C)^2 / (2 least) - C for some C, below which no curve of a
        # smaller mu stays for large t.
        low = lowered(math.sqrt(least), 4.0)
        if not parts:
            return Bracket(low, raised(math.sqrt(most), 4.0))
        low = max(low, gaussian_mu(0.0, self._delta(0.0).lower, up=False))
        rest = type(self)(parts, self.relation)
        top = rest._epsilon(0.0)
        if top.upper == math.inf:
            return Bracket(math.inf if top.lower == math.inf else low, math.inf)

        def bounds(t: float) -> tuple[float, float]:
            result = rest._delta(t)
            return result.lower, result.upper

        mu = largest_mu(bounds, top.upper)
        return Bracket(max(low, mu[0]), raised(math.sqrt(mu[1] ** 2 + most), 8.0))
