"""Random channels, laws and checks that the tests of individual capacity share."""

import math

import numpy as np
from hypothesis import strategies as st

import fastpriv as fp
import oracles as o
from cases import kernel


def channel(rng, sizes, outputs, zeros=False):
    """A random channel, some of its rows equal, some of its entries zero."""
    size = math.prod(sizes)
    matrix = kernel(rng, size, outputs, floor=0.0)
    if zeros:
        matrix = np.where(rng.random(matrix.shape) < 0.3, 0.0, matrix)
        matrix[:, 0] += 0.05
        matrix /= matrix.sum(axis=1, keepdims=True)
    if size > 2:
        matrix[size // 2] = matrix[0]
    return matrix


def holds(found, low, high):
    """Whether a bracket and an oracle's bounds on the same number meet."""
    return found.lower <= high + 1e-12 and low <= found.upper + 1e-12


def reached(found, matrix, sizes):
    """Whether the adversary's databases fit together and carry the lower end of the bracket."""
    who = found.adversary
    values = who.databases[:, who.rows]
    assert len({tuple(v) for v in values.tolist()}) == len(values)
    assert ((who.databases >= 0) & (who.databases < np.array(sizes))).all()
    assert (who.law >= 0).all()
    assert abs(who.law.sum() - 1.0) < 1e-12
    rows = fp.Space(sizes).index(who.databases)
    # The law has been divided by its sum, which may cost its last digit.
    return found.lower <= float(o.capacity_bracket(matrix[rows], who.law)[0]) * (1 + 1e-13)


@st.composite
def laws(draw, rows):
    outputs = draw(st.integers(1, 6))
    entry = st.one_of(st.just(0.0), st.floats(1e-12, 1.0), st.floats(0.99, 1.0))
    found = []
    for _ in range(rows):
        row = np.array(draw(st.lists(entry, min_size=outputs, max_size=outputs)))
        row[0] += row.sum() == 0
        found.append(row / row.sum())
    if draw(st.booleans()):  # close together
        found = [0.999999 * found[0] + 0.000001 * row for row in found]
    return np.array(found)
