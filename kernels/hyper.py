"""Posteriors of one channel, the equal ones merged; processings of one channel into another."""

import numpy as np

from .declare import Ints, Matrix, Vector, helper, kernel

UNIT = 2.0**-53
LEAST = 5e-324


@helper(error_model="numpy")
def _sort(keys, order, count, spare):
    """Put the first numbers of ``order`` in rising order of their keys, equal ones as they are."""
    width = 1
    while width < count:
        for start in range(0, count, 2 * width):
            left, middle = start, min(start + width, count)
            right, stop = middle, min(start + 2 * width, count)
            for place in range(start, stop):
                take_right = left == middle
                if left < middle and right < stop:
                    take_right = keys[order[right]] < keys[order[left]]
                spare[place] = order[right] if take_right else order[left]
                if take_right:
                    right += 1
                else:
                    left += 1
        for place in range(count):
            order[place] = spare[place]
        width *= 2


@kernel(error_model="numpy")
def posteriors(
    W: Matrix,
    p: Vector,
    direction: Vector,
    same: float,
    outer: Vector,
    inners: Matrix,
    outputs: Ints,
) -> int:
    """Write different posteriors and their probabilities, the likeliest first; count them.

    Posteriors that are nearest along ``direction`` are merged if no probabilities differ by more
    than ``same``. ``outputs`` receives the posterior of every output, -1 if it does not occur.
    """
    rows, columns = W.shape
    each, keys, masses = np.empty((columns, rows)), np.empty(columns), np.empty(columns)
    order, spare = np.empty(columns, np.int64), np.empty(columns, np.int64)
    count = 0
    for y in range(columns):
        mass, most, total, key = 0.0, 0.0, 0.0, 0.0
        for x in range(rows):
            each[y, x] = p[x] * W[x, y]
            mass += each[y, x]
            most = max(most, each[y, x])
        masses[y], outputs[y] = mass, -1
        if mass > 0.0:  # scaled first: a column of tiny numbers would lose digits
            order[count] = y
            count += 1
            for x in range(rows):
                each[y, x] /= most
                total += each[y, x]
            for x in range(rows):
                each[y, x] /= total
                key += each[y, x] * direction[x]
            keys[y] = key
    _sort(keys, order, count, spare)
    first, groups = np.empty(count, np.int64), 0
    for k in range(count):
        y = order[k]
        differ = k == 0
        for x in range(0 if differ else rows):
            differ = differ or abs(each[y, x] - each[order[k - 1], x]) > same
        if differ:
            first[groups] = y
            groups += 1
        outputs[y] = groups - 1
        first[groups - 1] = min(first[groups - 1], y)
    sums, place = np.zeros(groups), np.empty(groups, np.int64)
    for y in range(columns):
        if outputs[y] >= 0:
            sums[outputs[y]] -= masses[y]
    # Equally likely posteriors in the order of their first outputs.
    count = 0
    for y in range(columns):
        if outputs[y] >= 0 and first[outputs[y]] == y:
            order[count] = outputs[y]
            count += 1
    _sort(sums, order, groups, spare)
    for k in range(groups):
        place[order[k]], outer[k] = k, -sums[order[k]]
        for x in range(rows):
            inners[k, x] = each[first[order[k]], x]
    for y in range(columns):
        if outputs[y] >= 0:
            outputs[y] = place[outputs[y]]
    return groups


@kernel(error_model="numpy")
def processing_gap(A: Matrix, B: Matrix, R: Matrix, missing: Vector) -> None:
    """Turn R into a channel, and write sum_z (B - A R)_+ of every row, rounded up.

    Negative entries become 0 before rows are divided by their sums. The sums of missing[x] still
    have to be raised by the error of as many terms as B has columns.
    """
    inner, outer = R.shape
    for y in range(inner):
        total = 0.0
        for z in range(outer):
            R[y, z] = max(R[y, z], 0.0)
            total += R[y, z]
        for z in range(outer):
            R[y, z] = R[y, z] / total if total > 0.0 else 1.0 / outer
    reached = np.empty(outer)
    for x in range(A.shape[0]):
        for z in range(outer):
            reached[z] = 0.0
        for y in range(inner):
            for z in range(outer):
                reached[z] += A[x, y] * R[y, z]
        missing[x] = 0.0
        for z in range(outer):
            error = (inner + 4) * UNIT * (B[x, z] + reached[z]) + inner * LEAST
            missing[x] += max(B[x, z] - reached[z], 0.0) + error
