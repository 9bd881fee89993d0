"""Calls on small dense channels against plain numpy.

The cost of validation is the constructor's, shown apart: measures trust what it has checked.
"""

from functools import partial

import numpy as np
import pytest

import fastpriv as fp
import instances
from contenders import ours, peer, yardstick


def plain_dp_level(matrix, sizes):
    """Worst log-ratio between rows that differ in one digit, by numpy."""
    worst = 1.0
    cube = matrix.reshape(*sizes, -1)
    for axis in range(len(sizes)):
        worst = max(worst, (cube.max(axis=axis) / cube.min(axis=axis)).max())
    return np.log(worst)


def plain_information(matrix, pmf):
    """I(X; Y) from the definition, by numpy."""
    output = pmf @ matrix
    return (pmf[:, None] * matrix * np.log(matrix / output)).sum()


def plain_identifiability(matrix, pmf, sizes):
    """Worst log-ratio of posteriors of neighbours, by numpy."""
    return plain_dp_level(pmf[:, None] * matrix, sizes)


def calls(bits):
    """(name, ours, numpy) triples."""
    size = 2**bits
    matrix, pmf = instances.channel(size), instances.prior(size)
    one, rows = fp.Channel(matrix), fp.Channel(matrix, [2] * bits)
    flat, law = fp.Dense(pmf), fp.Dense(pmf, [2] * bits)
    return [
        ("dp_level, one row", partial(fp.dp_level, one), partial(plain_dp_level, matrix, [size])),
        (
            "dp_level, bits",
            partial(fp.dp_level, rows),
            partial(plain_dp_level, matrix, [2] * bits),
        ),
        (
            "mutual_information",
            partial(fp.mutual_information, one, flat),
            partial(plain_information, matrix, pmf),
        ),
        ("output law", partial(one.output, flat), lambda: pmf @ matrix),
        (
            "identifiability_level, bits",
            partial(fp.identifiability_level, rows, law),
            partial(plain_identifiability, matrix, pmf, [2] * bits),
        ),
    ]


def number(answer):
    """The answer, where it is a number."""
    return {"value": float(answer)} if np.ndim(answer) == 0 and np.isscalar(answer) else {}


@pytest.mark.parametrize("bits", [1, 6])
def test_measures(versus, bits):
    """Measures."""
    size = 2**bits
    for title, mine, plain in calls(bits):
        versus(
            title,
            f"random {size} x {size}",
            ours(mine, number),
            peer("numpy", plain, number),
            seed=0,
            headline=bits == 6 and "bits" not in title,
        )


@pytest.mark.parametrize("bits", [1, 6])
def test_constructor(versus, bits):
    """Constructors."""
    size = 2**bits
    for title, make, array in (
        ("Channel(matrix)", fp.Channel, instances.channel(size)),
        ("Dense(pmf)", fp.Dense, instances.prior(size)),
    ):
        versus(
            f"{title}, with all checks",
            f"random {size}",
            ours(partial(make, array)),
            yardstick("a copy", array.copy),
            seed=0,
        )
