"""delta of small compositions from the definition: all outcomes listed, or a closed form.

Leaves are given as tuples: ``("response", m, epsilon)``, ``("discrete laplace", a)``,
``("discrete gaussian", sigma)``, ``("gaussian", sigma)`` and ``("sampled gaussian", sigma, q)``.
Parameters are the doubles they are given as.
"""

from collections import Counter

from mpmath import erfc, exp, log, mpf, sqrt, workdps

from oracles.profile import delta_of, response_masses

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


def listed_delta(counts, t):
    """Return delta(t) of finite leaves, {leaf: count}; None if there are too many outcomes."""
    laws = []
    for leaf, count in counts.items():
        unit, masses = units(leaf)
        if len(masses) * (len(masses) * count) * count > MOST:
            return None
        laws.append([(unit * i, p) for i, p in repeated(masses, count).items() if p > 0])
    joint = [(mpf(0), mpf(1))]
    for law in laws:
        if len(joint) * len(law) > MOST:
            return None
        joint = [(loss + l, mass * p) for loss, mass in joint for l, p in law]
    return delta_of(joint, t)


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


def exact_delta(counts, t):
    """Return delta(t) of {leaf: count} in mpmath, or None where it is not known."""
    kinds = {leaf[0] for leaf in counts}
    with workdps(DIGITS):
        t = mpf(t)
        if kinds == {"gaussian"}:
            return gaussian_delta(counts, t)
        if kinds == {"sampled gaussian"} and sum(counts.values()) == 1:
            ((_, sigma, q),) = counts
            return sampled_gaussian_delta(sigma, q, t)
        if kinds <= {"response", "discrete laplace", "discrete gaussian"}:
            return listed_delta(counts, t)
        return None
