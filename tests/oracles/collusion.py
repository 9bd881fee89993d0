"""Plain references for two outputs about one secret, in mpmath."""

from itertools import product

from mpmath import log, mpf


def information(joint):
    """Return I(A; B) of {(a, b): mass}."""
    left, right = {}, {}
    for (a, b), p in joint.items():
        left[a] = left.get(a, mpf(0)) + p
        right[b] = right.get(b, mpf(0)) + p
    return sum((p * log(p / (left[a] * right[b])) for (a, b), p in joint.items() if p > 0), mpf(0))


def outputs(joint, first, second):
    """Return {(s, y1, y2): mass} from joint[s][x1][x2] and two channels."""
    found = {}
    for s, table in enumerate(joint):
        for x1, x2 in product(range(len(first)), range(len(second))):
            for y1, y2 in product(range(len(first[0])), range(len(second[0]))):
                mass = mpf(table[x1][x2]) * mpf(first[x1][y1]) * mpf(second[x2][y2])
                found[s, y1, y2] = found.get((s, y1, y2), mpf(0)) + mass
    return found


def both(joint, first, second):
    """Return I(S; Y1, Y2)."""
    law = outputs(joint, first, second)
    return information({(s, (y, z)): p for (s, y, z), p in law.items()})


def one(joint, first, second, which):
    """Return I(S; Y1) or I(S; Y2)."""
    found = {}
    for key, p in outputs(joint, first, second).items():
        found[key[0], key[which]] = found.get((key[0], key[which]), mpf(0)) + p
    return information(found)
