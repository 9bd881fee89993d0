"""Gaussian noise on a bounded query: what it lets through at most, and exactly."""

from __future__ import annotations

import math

from fastpriv._core import validation as check
from fastpriv._core.rounding import LEAST, lowered, raised
from fastpriv.errors import Infeasible, InvalidInput
from fastpriv.mechanisms.amplitude import amplitude_capacity, shannon_bound
from fastpriv.mechanisms.point_search import best_points
from fastpriv.results import Bracket

__all__ = ["GaussianChannel", "gaussian_variance"]

_GAP = 1e-9
#: Most values of a row.
_MANY = 1 << 1000


class GaussianChannel:
    """A query with answers in [-T, T], released with normal noise added.

    The Gaussian privacy channel of Wu-Xia-He 2020, Definition 16. The paper gives its individual
    channel capacity as ln(1 + T^2/N)/2 (Corollary 6); that is the capacity under a bound on the
    mean square and only an upper bound here, where answers are bounded. What a row of m values
    can get through is the capacity of the best m points in [-T, T] (Theorem 3), which a query
    reaches if it can take those points under the m values.

    Parameters
    ----------
    T : float
        Bound on the absolute value of the query, above 0.
    variance : float
        Variance N of the noise, above 0.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = fp.mechanisms.GaussianChannel(1.0, 0.5)
    >>> round(channel.capacity_bound(), 6), f"{channel.capacity(2):.6f}"
    (0.549306, '[0.500072, 0.500072]')
    """

    def __init__(self, T: float, variance: float) -> None:
        self.T = check.real(T, "T", least=LEAST)
        self.variance = check.real(variance, "variance", least=LEAST)
        #: T in standard deviations of the noise, which is all that capacities depend on.
        self._reach = self.T / math.sqrt(self.variance)
        if not 0.0 < self._reach < math.inf:
            raise InvalidInput(
                f"T = {self.T} and variance = {self.variance} are too far apart for doubles"
            )

    def capacity_bound(self) -> float:
        """Return ln(1 + T^2/N)/2, which no row exceeds, whatever its number of values. Rounded up.

        It is what :func:`gaussian_variance` calibrates to.
        """
        return raised(shannon_bound(self._reach), 8.0)

    def capacity(self, m: float = math.inf, *, gap: float = _GAP) -> Bracket:
        """Largest information of m points in [-T, T] about themselves: a certified bracket.

        Parameters
        ----------
        m : int or infinity
            Number of values of a row; by default any number, the amplitude-limited capacity
            (Smith 1971).
        gap : float
            Width to reach, in nats, and relative to capacities below one nat. It is reached up to
            T of 12 standard deviations where m is 2 or enough for the amplitude-limited capacity
            (3 values up to T = 2.78 standard deviations, about T + 1 later). Between, places of up
            to 6 points are searched, to a width of 1e-7: 3 points always, 4 and 5 up to T = 6
            standard deviations at least. Otherwise the upper end is the amplitude-limited capacity
            or ln m, the lower end a local optimum. From 12 standard deviations the width is about
            0.003, from 64 bounds in closed form are given.

        Notes
        -----
        The lower end is the information of a law on points, the upper end the largest divergence
        of any input from its output law, both integrals with a proven error: see
        ``fastpriv.mechanisms.amplitude``. Milliseconds up to T = 5 standard deviations, a second
        at 10. A search over places (``fastpriv.mechanisms.point_search``) takes 0.1 s for 3 points,
        1 s for 4, and up to 10 s.
        """
        gap = check.real(gap, "gap", least=0.0)
        number = _values(m)
        bracket = amplitude_capacity(self._reach, number, gap)
        bracket = best_points(self._reach, number, bracket, gap)
        # The reach is a quotient, rounded; capacities grow with its square at most.
        return Bracket(lowered(bracket.lower, 8.0), raised(bracket.upper, 8.0))

    def __repr__(self) -> str:
        return f"GaussianChannel(T={self.T:g}, variance={self.variance:g})"


def gaussian_variance(
    T: float, epsilon: float, balance: float = 0.0, *, m: float | None = None
) -> float:
    """Variance of normal noise that lets at most epsilon nats about a row through.

    N = T^2/(e^(2 (epsilon + balance)) - 1), from the bound ln(1 + T^2/N)/2 <= epsilon + balance
    (Wu-Xia-He 2020, Corollary 6 and eq. (121)).

    Parameters
    ----------
    T : float
        Bound on the absolute value of the query, above 0.
    epsilon : float
        Bound on the individual channel capacity in nats, above 0 together with ``balance``.
    balance : float
        The secrecy that adversaries lack who do not know b nats of the data: the value g(b) of the
        balance function of this channel, or less. The guarantee then is epsilon against
        adversaries with H(X) >= b (Proposition 3), and epsilon + balance against all. 0 assumes
        nothing about adversaries.
    m : int or infinity, optional
        Calibrate to the exact capacity of m points in [-T, T] (infinity: any number) instead of
        the bound: less noise. At most m values of a row must then be possible.

    Returns
    -------
    float
        The variance, rounded up: the float returned keeps the promise. 0 where m values cannot
        tell more than epsilon + balance even without noise.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(fp.mechanisms.gaussian_variance(1.0, 0.5), 6)
    0.581977
    >>> round(fp.mechanisms.gaussian_variance(1.0, 0.5, m=2), 6)  # bits: less noise does
    0.500156
    """
    T = check.real(T, "T", least=LEAST)
    level = check.real(epsilon, "epsilon", least=0.0) + check.real(balance, "balance", least=0.0)
    if level == 0.0:
        raise Infeasible("no finite noise hides everything; give an epsilon above 0")
    reach = _safe_reach(level)
    if m is not None:
        m = _values(m)
        if level >= raised(math.log(m), 4.0):
            return 0.0
        reach = _exact_reach(level, m) if reach > 0.0 else 0.0
    scale = T / reach if reach > 0.0 else math.inf
    variance = raised(scale * scale, 16.0)
    if variance == math.inf:
        raise Infeasible(f"epsilon = {level} and T = {T} need a variance beyond the doubles")
    return max(variance, 2.0**-1022)


def _values(m: float) -> float:
    """Return a number of values as a float."""
    if check.endless(m):
        return math.inf
    number = check.integer(m, "m", 1)
    check.fits(number, "a row", "leave the number open: m = infinity", _MANY)
    return float(number)


def _safe_reach(level: float) -> float:
    """T in standard deviations at which ln(1 + reach^2)/2 is the level; rounded down."""
    level = min(level, 350.0)
    return lowered(math.sqrt(math.expm1(lowered(2.0 * level, 32.0))), 8.0)


def _exact_reach(level: float, m: float) -> float:
    """Return the same for the capacity of m points: what is returned was certified."""
    from scipy.optimize import brentq

    def over(log_reach: float) -> float:
        bracket = amplitude_capacity(math.exp(log_reach), m, _GAP)
        # Asked for again, the bracket may be as wide as its gap: stay below that as well.
        widest = bracket.lower + _GAP * min(1.0, bracket.lower)
        return raised(max(bracket.upper, widest), 32.0) / level - 1.0

    low = high = math.log(_safe_reach(level))
    if over(low) > 0.0:  # by rounding
        return math.exp(low)
    step = min(max(1e-9, level * level), 0.1)  # about how far apart bound and capacity are
    while over(high) <= 0.0:
        high += step
        step *= 2.0
        if high > 600.0:
            return math.exp(low)
    log_reach = brentq(over, low, high, xtol=1e-12, rtol=1e-12)
    step = 1e-13
    while over(log_reach) > 0.0:
        log_reach -= step
        step *= 2.0
    return math.exp(max(log_reach, low))
