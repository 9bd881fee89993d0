"""Small steps on arrays, as loops.

Numba's own forms of these (``a[:] = b``, ``a.max()``, ``np.argmax(a)``, ``np.searchsorted``) take
much longer to compile than a loop.
"""

from .declare import helper

#: From here on doubles have all their digits.
NORMAL = 2.0**-1022
#: Sums of at most this many terms are added in one order, so that Python returns the same bits.
SHORT = 8


@helper()
def copy(source, target):
    """Set target = source."""
    for i in range(source.size):
        target[i] = source[i]


@helper()
def sum_of(v):
    """Return the sum of the entries, from the first to the last."""
    result = 0.0
    for i in range(v.size):
        result += v[i]
    return result


@helper()
def largest(v):
    """Return the largest entry."""
    result = v[0]
    for i in range(1, v.size):
        result = max(result, v[i])
    return result


@helper()
def smallest(v):
    """Return the smallest entry."""
    result = v[0]
    for i in range(1, v.size):
        result = min(result, v[i])
    return result


@helper()
def largest_at(v):
    """Return the place of the largest entry, the first if there are several."""
    place = 0
    for i in range(1, v.size):
        if v[i] > v[place]:
            place = i
    return place


@helper()
def count_up_to(v, bound):
    """Return how many entries of an increasing vector are at most ``bound``."""
    first, last = 0, v.size
    while first < last:
        middle = (first + last) // 2
        if v[middle] <= bound:
            first = middle + 1
        else:
            last = middle
    return first


@helper(fastmath={"contract", "reassoc"})
def dot(u, v):
    """Return the inner product."""
    result = 0.0
    for i in range(u.size):
        result += u[i] * v[i]
    return result


@helper()
def low(u, v):
    """Return the lesser of two, as a select that vectorises."""
    return u if u < v else v


@helper()
def high(u, v):
    """Return the greater of two, as a select that vectorises."""
    return v if u < v else u
