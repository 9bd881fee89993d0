"""Plain references for samplers: Fractions, whole numbers, mpmath. No fastpriv here."""

import math
from fractions import Fraction

import mpmath

from oracles.numbers import log_ratio

WORDS = 1 << 64


def shares(law):
    """Each probability of a law of doubles as an exact multiple of 2^-64."""
    total = sum(map(Fraction, law))
    return [Fraction(p) * WORDS / total for p in law]


def double_above(number):
    """Least double that is at least a number of 60 digits."""
    with mpmath.workdps(60):
        near = float(number)
        return near if mpmath.mpf(near) >= number else math.nextafter(near, math.inf)


def column_level(weights):
    """Largest log-ratio within a column of whole numbers; rows are inputs."""
    worst = mpmath.mpf(0)
    for column in zip(*weights, strict=True):
        if max(column) > 0:
            if min(column) == 0:
                return mpmath.inf
            worst = max(worst, log_ratio(max(column), min(column)))
    return worst


def heads(chance, words):
    """Whether the real number with the given 64-bit digits lies below ``chance``, a Fraction.

    None where the words do not tell.
    """
    place = Fraction(1)
    below = Fraction(0)
    for word in words:
        place /= WORDS
        below += word * place
        if below + place <= chance:
            return True
        if below >= chance:
            return False
    return None


def tilted(law, sizes, ratio, x):
    """Chances proportional to law(y) ratio^d(x, y), as Fractions; databases in C order."""
    weights = []
    for y, p in enumerate(law):
        distance, place = 0, y
        for size, value in zip(reversed(sizes), reversed(x), strict=True):
            distance += place % size != value
            place //= size
        weights.append(Fraction(p) * ratio**distance)
    total = sum(weights)
    return [w / total for w in weights]
