"""Information in noisy copies of one value, by types of the outputs.

A value V, uniform on m values, is sent n times through R_epsilon. Given outputs in which value v
occurs c_v times, the probability of V = v is proportional to e^(epsilon c_v). So

    I_n = sum over outputs of P(output) D(posterior || uniform),

and both factors depend only on the sorted counts, a partition of n into at most m parts. I_n grows
with n and is concave, because the copies are independent given V.
"""

from __future__ import annotations

import math

import numpy as np

from fastpriv._core.clock import Clock
from fastpriv._core.rounding import ULP, log_up, lowered, raised
from fastpriv._core.validation import Floats, Ints
from fastpriv._structure.rows import Symmetric
from fastpriv.measures.individual.merged import merged
from fastpriv.results import Bracket

#: Most entries in a list of partitions, and those that there is always time for.
_ENTRIES, _QUICK = 1 << 21, 1 << 18
#: Most copies whose partitions may fit. Three values have n^2/12 of them.
_COPIES = 8000
#: Seconds that long lists may take, and information that is lost to underflow.
_SECOND, _LOST = 1.0, 1e-290


def copies_bracket(copies: int, kernel: Symmetric, clock: Clock) -> Bracket:
    """Information about a uniform value in copies of it, each sent through R_epsilon.

    The bracket is as narrow as rounding allows while the partitions can be listed: for m = 3 up to
    2800 copies, for m = 10 up to 60. Otherwise it is the better one of :func:`extended` and
    :func:`~fastpriv.measures.individual.merged.merged`. Cost O(min(m, n)) for each partition of n
    into at most m parts. With less than a second left only short lists are made.
    """
    if kernel.m == 1 or copies == 0 or kernel.epsilon == 0.0:
        return Bracket(0.0, 0.0)
    top = min(copies, _COPIES)
    counts = partition_counts(top, kernel.m) * np.minimum(kernel.m, np.arange(top + 1))
    entries = _ENTRIES if clock.left() > _SECOND else _QUICK
    fitting = max(1, int((counts <= entries).sum()) - 1)
    if fitting == copies:
        return listed(copies, kernel)
    told = extended(copies, kernel, [listed(j, kernel) for j in (fitting - 1, fitting)], fitting)
    near = merged(copies, kernel, clock)
    if near is None:
        return told
    lower = max(told.lower, near.lower)
    return Bracket(lower, max(lower, min(told.upper, near.upper)))


def mixed_bracket(law: Floats, kernel: Symmetric) -> Bracket:
    """Mean of the information in r copies over a law of r = 0 .. n, n at least 1.

    Cost O(min(m, n)) for each partition of each r that is listed.
    """
    n, m = len(law) - 1, kernel.m
    entries = partition_counts(min(n, _COPIES), m) * min(m, n)
    fitting = max(1, int((np.cumsum(entries) <= _ENTRIES).sum()) - 1)
    told = [listed(r, kernel) for r in range(fitting + 1)]
    last = told[-2:]
    told += [extended(r, kernel, last, fitting) for r in range(fitting + 1, n + 1)]
    lower = math.fsum(law * [part.lower for part in told])
    upper = math.fsum(law * [part.upper for part in told])
    return Bracket(lowered(lower, 4.0), raised(upper, 4.0))


def extended(copies: int, kernel: Symmetric, last: list[Bracket], fitting: int) -> Bracket:
    """Bracket for n copies, more than j that can be listed, from those for j - 1 and j.

    I_j <= I_n <= I_j + (n - j)(I_j - I_(j-1)), and I_n <= ln m. Moreover
    I_n >= ln m - (m - 1) (1 - (sqrt(a) - sqrt(b))^2)^n with the chances a and b of the true value
    and of another one: H(V | Y) is the mean of ln(1 + sum_u e^(epsilon (c_u - c_v))), u != v, and
    ln(1 + t) <= sqrt(t).
    """
    before, at = last
    all_of_it = math.log(kernel.m)
    rise = (copies - fitting) * (at.upper - before.lower)
    most = min(log_up(kernel.m), raised(at.upper + rise, 4.0))
    # sqrt(a) - sqrt(b) = sqrt(a) (1 - e^(-epsilon/2)). Near 1 its square is taken from what it
    # leaves, 2 sqrt(a b) + (m - 2) b, where nothing cancels.
    apart = kernel.stay * math.expm1(-0.5 * kernel.epsilon) ** 2
    half = math.exp(-0.5 * kernel.epsilon)
    rest = kernel.stay * half * (2.0 + (kernel.m - 2) * half)
    log = math.log1p(-apart) if apart < 0.5 else math.log(max(rest, _LOST))
    missed = (kernel.m - 1) * math.exp(raised(copies * log, 16.0))
    least = lowered(all_of_it, 4.0) - raised(missed, 16.0)
    return Bracket(max(at.lower, least), max(at.lower, most))


def partition_counts(n: int, m: int) -> Floats:
    """Return the numbers of partitions of 0 .. n into at most m parts, as floats."""
    counts = np.zeros(n + 1)
    counts[0] = 1.0
    for size in range(1, min(m, n, 100) + 1):  # with 100 parts they are too many to matter
        for first in range(min(size, n + 1)):
            np.cumsum(counts[first::size], out=counts[first::size])
    return counts


def partitions(n: int, m: int) -> Ints:
    """Return the partitions of n into at most m parts, decreasing, with min(m, n) columns."""
    width = min(m, n)
    parts = np.zeros((1, 0), dtype=np.int64)
    rest, most = np.array([n]), np.array([n])
    for column in range(width):
        low, high = -(-rest // (width - column)), np.minimum(rest, most)
        number = high - low + 1
        own = np.repeat(np.arange(len(rest)), number)
        start = np.repeat(np.cumsum(number) - number, number)
        most = low[own] + np.arange(len(own)) - start
        parts = np.concatenate([parts[own], most[:, None]], axis=1)
        rest = rest[own] - most
    return parts


def listed(copies: int, kernel: Symmetric) -> Bracket:
    """Information in copies, by a list of the partitions. Relative errors are counted below."""
    if copies == 0:
        return Bracket(0.0, 0.0)
    m, epsilon = kernel.m, kernel.epsilon
    parts = partitions(copies, m)
    width = parts.shape[1]
    below = parts[:, :1] - parts
    weight = np.ones(width + 1)
    if m > width:  # values that never occur have count 0
        below, weight[-1] = np.concatenate([below, parts[:, :1]], axis=1), m - width
    else:
        weight = weight[:-1]
    near = np.exp(-epsilon * below)
    mean = near @ weight / m
    gains = posterior_gains(near, np.expm1(-epsilon * below), mean, weight / m)
    logs = _log_outputs(parts, m) - epsilon * (copies - parts[:, 0])
    logs -= copies * math.log1p((m - 1) * math.exp(-epsilon))
    value = math.fsum(np.exp(logs) * mean * gains)
    # Logarithms up to these sizes are rounded. Terms with a larger epsilon (n - c) underflow.
    sizes = copies * (math.log(copies + 2.0) + math.log(m))
    sizes += min(epsilon * copies, 745.0 + copies * math.log(m)) + 16.0
    error = (32.0 * sizes + 64.0 * (width + 8) * math.sqrt(m)) * ULP
    return Bracket(max(value * (1.0 - error) - _LOST, 0.0), value * (1.0 + error) + _LOST)


def _log_outputs(parts: Ints, m: int) -> Floats:
    """Return the logarithm of the number of outputs with the given sorted counts."""
    from scipy.special import gammaln

    copies, width = int(parts[0].sum()), parts.shape[1]
    log_factorials = gammaln(np.arange(max(copies, width) + 1) + 1.0)
    falling = np.concatenate([[0.0], np.cumsum(np.log(m - np.arange(width)))])
    logs = log_factorials[copies] - log_factorials[parts].sum(axis=1)
    logs += falling[(parts > 0).sum(axis=1)]  # which values have the positive counts
    run = np.ones(len(parts), dtype=np.int64)
    for column in range(1, width):  # equal counts are exchanged without effect
        same = (parts[:, column] == parts[:, column - 1]) & (parts[:, column] > 0)
        run = np.where(same, run + 1, 1)
        logs -= np.log(run)
    return np.asarray(logs)


def posterior_gains(near: Floats, minus: Floats, mean: Floats, share: Floats) -> Floats:
    """Return D(posterior || uniform) for posteriors near/mean/m, given minus = near - 1.

    The terms are w ln w - w + 1 with w = near/mean. For w about 1 the difference w - 1 is taken
    from ``minus``, which has all its digits for small epsilon, and the logarithm from a series, so
    that nothing cancels.
    """
    w = near / mean[:, None]
    exact = (minus - (minus @ share)[:, None]) / mean[:, None]
    diff = np.where((mean[:, None] > 0.25) & (w > 0.5) & (w < 2.0), exact, w - 1.0)
    s = diff / (w + 1.0)
    z, tail = s * s, np.zeros_like(s)
    for k in range(21, 1, -2):
        tail = tail * z + 2.0 / k
    far = np.abs(s) > 0.2
    direct = w * np.log(np.where(far & (w > 0.0), w, 1.0)) - diff
    return np.asarray(np.where(far, direct, s * diff + w * s * z * tail) @ share)
