"""Leakage under laws with probabilities that no double holds, in mpmath."""

from mpmath import log, mpf

from oracles.numbers import num


def level_of(laws, weights):
    """Return the largest ln max_c W[c, y] / p_Y(y) over outputs, all answers being possible."""
    worst = mpf(0)
    for y in range(len(laws[0])):
        column = [num(w[y]) for w in laws]
        worst = max(
            worst, log(max(column) / sum(w * p for w, p in zip(column, weights, strict=True)))
        )
    return worst


def bit_level(laws, rest, c):
    """Return the most that an output tells about a bit with chance c or 1 - c of a count.

    ``rest`` is the law of the number of ones among the other bits.
    """
    worst = mpf(0)
    for y in range(len(laws[0])):
        zero, one = (sum(num(laws[s + v][y]) * p for s, p in enumerate(rest)) for v in (0, 1))
        for a, b in ((zero, one), (one, zero)):
            for share in (num(c), 1 - num(c)):
                worst = max(worst, log(a / (share * a + (1 - share) * b)))
    return worst
