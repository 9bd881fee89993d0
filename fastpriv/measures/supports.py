"""Measures of local mechanisms whose messages support a set of values of one record.

Let r = e^-epsilon, and let s be the prior mass of the support of a message. The message has
probability b (r + (1-r) s) / (r + (1-r) pi), and its information depends on s alone. So measures
under a prior are means or extremes of functions of s under the distribution b of messages. They are
computed over listed messages, or over the size of the support for a uniform prior. Otherwise a
mean, a variance and a range prove bounds.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from itertools import product

import numpy as np

from fastpriv._core.logs import gain
from fastpriv._core.rounding import LEAST, lowered, raised, round_up
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.leakage import Leakages
from fastpriv.channels import AbstractChannel, ColumnsChannel
from fastpriv.channels.local import SubsetChannel, SupportChannel
from fastpriv.channels.local.support import EXACT
from fastpriv.priors import Dense, Distribution, Product
from fastpriv.results import Bracket

#: Relative error of a mean of gains, far above the error of its terms.
_ERROR = 2.0**-40
#: Absolute error of masses that come from a transform over all messages.
_MASS_ERROR = 2.0**-44
#: How many of the likeliest values are followed one by one in a bracket.
_FOLLOWED = 12
#: Terms of a binomial distribution below this share of the largest one do not reach the last digit.
_NEGLIGIBLE = 1e-30


def independent(
    channel: ColumnsChannel, prior: Distribution
) -> list[tuple[AbstractChannel, Distribution]] | None:
    """Return every column with its distribution if columns are independent, otherwise None."""
    if not isinstance(prior, Product):
        return None
    laws = [prior.distinct[k] for k in prior.assignment.tolist()]
    pairs = zip(channel.columns, laws, strict=True)
    return [(column, Dense.of(law, column.space)) for column, law in pairs]


def maxima(channel: SupportChannel) -> float:
    """Log of the sum of column maxima, (e^epsilon (1 - b(empty)) + b(empty))/Z. Rounded up."""
    with localcontext(EXACT):
        pi = Decimal(channel.inclusion.numerator) / channel.inclusion.denominator
        excess = channel.excess * (1 - channel.empty_mass - pi) / (1 + channel.excess * pi)
        level = float((1 + excess).ln()) if excess > Decimal("1e-20") else float(excess)
    return round_up(max(level, LEAST)) if channel.excess > 0 else 0.0


def _gains(channel: SupportChannel, s: Floats, missing: Floats | None = None) -> Floats:
    """Return r z D(u || s), the information of a message of support mass s (r e^epsilon = 1).

    ``missing`` is 1 - s, if it is known to more digits than s.

    z = 1 + (e^epsilon - 1) s is the likelihood of the message, u = e^epsilon s/z the posterior mass
    of its support. Both terms are f(d) = (1+d) ln(1+d) - d >= 0 of an excess d, so none cancel.
    """
    r, loss = channel.shrink
    likelihood, missing = r + loss * s, 1.0 - s if missing is None else missing
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        inside = np.where(s > 0.0, s * gain(loss * missing / likelihood), 0.0)
        outside = missing * gain(-loss * s / likelihood)
        return np.where(s > 0.0, likelihood * (inside + outside), 0.0)


def _scale(channel: SupportChannel) -> float:
    """Z e^-epsilon = r + (1-r) pi, by which means of gains are divided."""
    r, loss = channel.shrink
    return r + loss * float(channel.inclusion)


def information(channel: SupportChannel, prior: Distribution) -> float | Bracket:
    """Mutual information: exact for listed messages and a uniform prior, otherwise a bracket."""
    p = prior.probabilities()
    if channel.listed is not None:
        masses = np.clip(channel.masses(p), 0.0, 1.0)
        return math.fsum(_gains(channel, masses)) / channel.listed / _scale(channel)
    if p.min() == p.max():
        return uniform_information(channel)
    lower, upper = _bounded_gain(channel, p)
    scale = _scale(channel)
    return Bracket(lower / scale * (1.0 - _ERROR), upper / scale * (1.0 + _ERROR))


def small_information(channel: SupportChannel, joint: Floats) -> float:
    """I(S; Y | L) of a mechanism with few messages, from the supports of all messages.

    It is multiplied by the total of ``joint[l, s]``, a multiple of P(L = l, S = s).
    """
    base, member = channel.support_table()
    mass = joint.sum(axis=1, keepdims=True)
    p = joint / np.where(mass > 0.0, mass, 1.0)
    held, missing = (np.clip(p @ part, 0.0, 1.0) for part in (member, ~member))
    terms = mass * base * _gains(channel, held, missing)
    return math.fsum(terms.reshape(-1)) / _scale(channel)


def uniform_information(channel: SupportChannel) -> float:
    """Mutual information under the uniform prior: the gain for every size of the support."""
    masses, weights = _uniform_masses(channel)
    return math.fsum(weights * _gains(channel, masses)) / _scale(channel)


def _uniform_masses(channel: SupportChannel) -> tuple[Floats, Floats]:
    """Masses of supports under the uniform prior, and their probabilities under b."""
    if channel.listed is not None:
        masses = np.clip(channel.masses(np.full(channel.k, 1.0 / channel.k)), 0.0, 1.0)
        return masses, np.full(len(masses), 1.0 / len(masses))
    if isinstance(channel, SubsetChannel):
        return np.array([channel.size / channel.k]), np.ones(1)
    sizes, weights = binomial(channel.k, float(channel.inclusion))
    return sizes / channel.k, weights


def capacity(channel: SupportChannel) -> Bracket:
    """Largest mutual information over priors.

    The mean of s is pi under every prior, and the gain is concave in s. So the gain at pi is an
    upper bound, attained if all supports have one size. If every permutation of the values leaves
    the channel unchanged, the uniform prior is best, because information is concave in the prior.
    """
    reached = uniform_information(channel)
    most = reached
    if not channel.symmetric:
        mean = np.array([float(channel.inclusion)])
        most = max(reached, float(_gains(channel, mean)[0]) / _scale(channel))
    least = LEAST if channel.excess > 0 else 0.0
    return Bracket(reached * (1.0 - _ERROR), max(most * (1.0 + _ERROR), least))


def contraction(channel: SupportChannel) -> Bracket:
    """Contraction of the two values that are easiest to distinguish.

    Messages support one, the other, or both or none. The first two have probabilities e^epsilon c
    and c for one value, c and e^epsilon c for the other. A mixture of both halves is worst, with
    (e^epsilon - 1)^2 c/(e^epsilon + 1).
    """
    with localcontext(EXACT):
        own = Decimal(channel.separation.numerator) / channel.separation.denominator
        eta = float(own / channel.total_weight() * channel.excess**2 / (channel.odds + 1))
    least = LEAST if channel.excess > 0 else 0.0
    return Bracket(lowered(eta, 4.0), max(min(raised(eta, 4.0), 1.0), least))


def correlation(channel: SupportChannel) -> Bracket:
    """Maximal correlation under the uniform prior, if any permutation of values is allowed.

    The squared correlation is the second eigenvalue of a matrix u I + v J. For messages of support
    mass s it is (e^epsilon - 1)^2 s (1-s)/((k-1) Z z), z = 1 + (e^epsilon - 1) s.
    """
    r, loss = channel.shrink
    if loss == 0.0:
        return Bracket(0.0, 0.0)
    masses, weights = _uniform_masses(channel)
    parts = loss * loss * masses * (1.0 - masses) / (r + loss * masses)
    squared = math.fsum(weights * parts) / ((channel.k - 1.0) * _scale(channel))
    rho = math.sqrt(squared)
    return Bracket(rho * (1.0 - _ERROR), min(1.0, max(rho * (1.0 + _ERROR), LEAST)))


def binomial(n: int, q: float) -> tuple[Floats, Floats]:
    """Sizes and probabilities of a binomial distribution that matter, relative to its mode."""
    mode = min(n, int((n + 1) * q))
    reach = int(14.0 * math.sqrt(n * q * (1.0 - q))) + 60
    up = np.arange(mode, min(n, mode + reach), dtype=np.float64)
    down = np.arange(mode, max(0, mode - reach), -1, dtype=np.float64)
    odds = q / (1.0 - q)
    above = np.cumprod((n - up) / (up + 1.0) * odds)
    below = np.cumprod(down / (n - down + 1.0) / odds)
    weights = np.concatenate([below[::-1], [1.0], above])
    sizes = np.arange(mode - len(below), mode + len(above) + 1, dtype=np.float64)
    kept = weights > _NEGLIGIBLE
    return sizes[kept], weights[kept] / math.fsum(weights[kept])


def _bounded_gain(channel: SupportChannel, p: Floats) -> tuple[float, float]:
    """Bound the mean gain: the likeliest values one by one, the others by moments.

    Given which of the likeliest values are supported, the mean and the variance of the mass of the
    others are known, and its range. The third derivative of the gain in s is positive, so it lies
    between two parabolas: both touch it inside the range, one meets it at the lower bound and is
    below, the other meets it at the upper bound and is above. The mean of a parabola follows from
    mean and variance. It is the mean over a distribution on two points (Markov and Krein).
    """
    rising = np.sort(p)
    rest, followed = rising[:-_FOLLOWED], rising[-_FOLLOWED:]
    held = np.array(list(product((0, 1), repeat=len(followed))))
    counts, masses = held.sum(axis=1), held @ followed
    lower, upper = [], []
    for count in range(len(followed) + 1):
        weight, mean, variance, low, high = _others(channel, len(followed), count, rest)
        if weight > 0.0:
            base = masses[counts == count]
            lower.append(weight * _two_points(channel, base + mean, base + low, variance))
            upper.append(weight * _two_points(channel, base + mean, base + high, variance))
    return math.fsum(np.concatenate(lower)), math.fsum(np.concatenate(upper))


def _others(
    channel: SupportChannel, followed: int, chosen: int, rest: Floats
) -> tuple[float, float, float, float, float]:
    """Probability that exactly these followed values are supported, and the others' mass.

    The mass is given by its mean, its variance and the bounds of its range. ``rest`` is sorted.
    """
    count, k = len(rest), channel.k
    total, squares = float(rest.sum()), float(rest @ rest)
    if not isinstance(channel, SubsetChannel):
        q = float(channel.inclusion)
        weight = q**chosen * (1.0 - q) ** (followed - chosen)
        return weight, q * total, q * (1.0 - q) * squares, 0.0, total
    left = channel.size - chosen
    if not 0 <= left <= count:
        return 0.0, 0.0, 0.0, 0.0, 0.0
    weight = 1.0  # size (size - 1) ... times (k - size)(k - size - 1) ... over k (k - 1) ...
    for i in range(followed):
        part = channel.size - i if i < chosen else k - channel.size - (i - chosen)
        weight *= part / (k - i)
    low, high = float(rest[:left].sum()), float(rest[count - left :].sum())
    if count < 2:
        return weight, low, 0.0, low, low
    spread = left * (count - left) / (count * count * (count - 1.0))
    variance = max(0.0, spread * (count * squares - total * total))
    return weight, left / count * total, variance, low, high


def _two_points(channel: SupportChannel, mean: Floats, end: Floats, variance: float) -> Floats:
    """Mean gains of distributions on two points, one a bound of the range, by their moments."""
    away = mean - end
    moved = (away != 0.0) & (variance > 0.0)
    safe = np.where(moved, away, 1.0)
    other = np.clip(np.where(moved, mean + variance / safe, mean), 0.0, 1.0)
    share = np.where(moved, variance / (variance + safe * safe), 0.0)
    at_end = _gains(channel, np.clip(end, 0.0, 1.0))
    return np.asarray(share * at_end + (1.0 - share) * _gains(channel, other))


def leakages(channel: SupportChannel, prior: Distribution) -> Leakages:
    """Both leakages of every listed message."""
    p = prior.probabilities()
    masses = channel.masses(p)
    sizes = np.rint(channel.masses((p > 0.0).astype(np.float64)))
    return _leakages(channel, p, masses, sizes, _MASS_ERROR)


def leakage_levels(channel: SupportChannel, prior: Distribution) -> tuple[float, float]:
    """Largest leakages over messages, from the smallest and the largest supports.

    Subset selection reaches the sum of the smallest values, unary encoding every sum. Supports of
    prior mass zero or one reveal nothing.
    """
    if channel.listed is not None:
        return leakages(channel, prior).largest()
    p = prior.probabilities()
    rising = np.sort(p[p > 0.0])
    ruled_out = channel.k - len(rising)
    if len(rising) == 1:
        return 0.0, 0.0
    if isinstance(channel, SubsetChannel):
        few = max(1, channel.size - ruled_out)
        many = min(channel.size, len(rising) - 1)
        if few >= len(rising):
            return 0.0, 0.0
    else:
        few, many = 1, len(rising) - 1
    masses = np.array([math.fsum(rising[:few]), math.fsum(rising[len(rising) - many :])])
    least = _leakages(channel, p, masses, np.array([few, many]), 2.0**-50)
    return float(least.above[0]), float(least.below[1])


def leakage_at(channel: SupportChannel, prior: Distribution, y: Ints) -> float:
    """Leakage of one message, from the values that it supports. Cost O(k)."""
    p, member = prior.probabilities(), channel.members(y)
    mass = np.array([math.fsum(p[member])])
    size = np.array([np.count_nonzero(p[member] > 0.0)])
    return float(_leakages(channel, p, mass, size, 2.0**-50).above[0])


def _leakages(
    channel: SupportChannel, p: Floats, masses: Floats, sizes: Floats | Ints, error: float
) -> Leakages:
    """Leakages of messages by the mass of their supports and their number of possible values.

    above = -ln(r + (1-r) s) unless the support is empty, below = ln(1 + (e^epsilon - 1) s) unless
    it holds every possible value. Both are rounded up by the errors of the masses.
    """
    r, loss = channel.shrink
    possible = p[p > 0.0]
    least, count = float(possible.min()), len(possible)
    low = np.clip(np.maximum(masses - error, least), 0.0, 1.0)
    missing = np.clip(1.0 - low, 0.0, 1.0)
    with np.errstate(divide="ignore"):
        above = np.where(loss * missing < 0.5, -np.log1p(-loss * missing), -np.log(r + loss * low))
        high = np.clip(np.minimum(masses + error, 1.0 - least), 0.0, 1.0)
        grown = np.where(loss * high < r, np.log1p(loss * high / max(r, LEAST)), 0.0)
        below = np.where(loss * high < r, grown, np.log(r + loss * high) + channel.level)
    empty, full = sizes == 0, sizes == count
    told = ~empty & ~full & (loss > 0.0)
    return Leakages(_raised(above, told), _raised(below, told))


def _raised(levels: Floats, told: np.ndarray) -> Floats:
    return np.where(told, np.maximum(levels, LEAST) * (1.0 + 2.0**-48), 0.0)
