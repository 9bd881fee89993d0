"""delta of small compositions from the definition: all outcomes listed, or a closed form.

Leaves are given as tuples: ``("response", m, epsilon)``, ``("discrete laplace", a)``,
``("discrete gaussian", sigma)``, ``("gaussian", sigma)`` and ``("sampled gaussian", sigma, q)``.
Parameters are the doubles they are given as.
"""

import math
from collections import Counter
from functools import partial

from mpmath import erfc, exp, log, mpf, sqrt, workdps

from oracles.profile import response_masses

DIGITS = 60
#: Discrete Gaussian noise is listed up to this many sigmas: what is left is below 1e-380.
REACH = 42
#: Most outcomes that are listed.
MOST = 40_000


def units(leaf):
    """Return the unit of the loss of a finite leaf, and {loss / unit: mass}."""
    kind, *given = leaf
    if kind == "response":
        return mpf(given[1]), response_masses(*given)
    if kind == "discrete laplace":  # the loss a(|x-1| - |x|) is a up to 0 and -a from 1 on
        return mpf(given[0]), response_masses(2, given[0])
    sigma = mpf(given[0])
    reach = int(REACH * sigma) + 2
    weights = {x: exp(-(mpf(x) ** 2) / (2 * sigma**2)) for x in range(-reach, reach + 1)}
    whole = sum(weights.values())
    return 1 / (2 * sigma**2), {1 - 2 * x: w / whole for x, w in weights.items()}


def size(leaf):
    """Return how many losses a finite leaf has."""
    return 3 if leaf[0] != "discrete gaussian" else 2 * int(REACH * leaf[1]) + 5


def repeated(masses, count):
    """Return the masses of a sum of independent integers."""
    total = {0: mpf(1)}
    for _ in range(count):
        step = Counter()
        for i, p in total.items():
            for j, q in masses.items():
                step[i + j] += p * q
        total = step
    return total


def listed_delta(counts):
    """Return t -> delta(t) of finite leaves, {leaf: count}; None if there are too many outcomes."""
    if any(size(leaf) ** 2 * count**2 > MOST for leaf, count in counts.items()):
        return None
    laws = []
    for leaf, count in counts.items():
        unit, masses = units(leaf)
        law = [(unit * i, p) for i, p in repeated(masses, count).items() if p > 0]
        laws.append([(loss, p, p * exp(-loss)) for loss, p in law])
    if math.prod(map(len, laws)) > MOST:
        return None
    joint = [(mpf(0), mpf(1), mpf(1))]
    for law in laws:
        joint = [(loss + l, p * a, q * b) for loss, p, q in joint for l, a, b in law]

    def delta(t):
        above = [(p, q) for loss, p, q in joint if loss > t]
        return sum(p for p, _ in above) - exp(t) * sum(q for _, q in above)

    return delta


def above(x):
    """Return the chance that a standard normal number is above x."""
    return erfc(x / sqrt(mpf(2))) / 2


def gaussian_delta(counts, t):
    """Return delta(t) of Gaussian noise alone: one shift of mu^2 = sum count / sigma^2."""
    mu = sqrt(sum(count / mpf(sigma) ** 2 for (_, sigma), count in counts.items()))
    return above(t / mu - mu / 2) - exp(t) * above(t / mu + mu / 2)


def sampled_gaussian_delta(sigma, q, t):
    """Return delta(t) of one release on a sample, the larger of both directions.

    Removed: outputs above the x with 1 - q + q e^((2x-1)/(2 sigma^2)) = e^t; added: those below
    the x where it is e^-t.
    """
    s, q, t = mpf(sigma), mpf(q), mpf(t)

    def crossing(ratio):
        return s**2 * log((ratio - 1 + q) / q) + mpf(1) / 2

    x = crossing(exp(t))
    removed = (1 - q - exp(t)) * above(x / s) + q * above((x - 1) / s)
    if exp(-t) - 1 + q <= 0:
        return removed
    x = crossing(exp(-t))
    below, moved = above(-x / s), above((1 - x) / s)
    return max(removed, below - exp(t) * ((1 - q) * below + q * moved))


def exact_curve(counts):
    """Return t -> delta(t) of {leaf: count} in mpmath, or None where it is not known."""
    kinds = {leaf[0] for leaf in counts}
    curve = None
    with workdps(DIGITS):
        if kinds == {"gaussian"}:
            curve = partial(gaussian_delta, counts)
        elif kinds == {"sampled gaussian"} and sum(counts.values()) == 1:
            ((_, sigma, q),) = counts
            curve = partial(sampled_gaussian_delta, sigma, q)
        elif kinds <= {"response", "discrete laplace", "discrete gaussian"}:
            curve = listed_delta(counts)
    return curve and partial(_in_digits, curve)


def _in_digits(curve, t):
    with workdps(DIGITS):
        return curve(mpf(t))


def exact_delta(counts, t):
    """Return delta(t) of {leaf: count}, or None where it is not known."""
    curve = exact_curve(counts)
    return curve and curve(t)
