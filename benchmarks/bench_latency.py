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
        ("output distribution", partial(one.output, flat), lambda: pmf @ matrix),
        (
            "identifiability_level, bits",
            partial(fp.identifiability_level, rows, law),
            partial(plain_identifiability, matrix, pmf, [2] * bits),
        ),
    ]


def every_measure(size):
    """(name, call) of every measure that people call in loops, on objects made before."""
    channel, prior = fp.Channel(instances.channel(size)), fp.Dense(instances.prior(size))
    other, gain = fp.Channel(instances.channel(size, seed=1)), np.eye(size)
    joint = instances.prior(size * size).reshape(size, size)
    alone = [
        fp.dp_level,
        fp.strong_dp_level,
        fp.leakage_capacity,
        fp.maximal_leakage,
        fp.contraction_coefficient,
        fp.channel_capacity,
        fp.individual_capacity,
        fp.singles_out,
        partial(fp.hockey_stick, epsilon=0.5),
        partial(fp.hockey_stick_epsilon, delta=0.1),
        partial(fp.refines, b=other),
    ]
    under = [
        fp.mutual_information,
        fp.max_information,
        fp.information_privacy_level,
        fp.identifiability_level,
        fp.leakage_factor,
        fp.worst_leakage_factor,
        fp.pml,
        fp.pml_level,
        partial(fp.row_pml, i=0),
        fp.posterior_vulnerability,
        fp.g_leakage,
        partial(fp.g_leakage, gain=gain),
        fp.additive_g_leakage,
        fp.hyper,
        fp.distortion,
        partial(fp.distortion, metric=1.0 - gain),
        fp.maximal_correlation,
        partial(fp.sdpi_constant, time_limit=None),
    ]
    yield from ((named(measure), partial(measure, channel)) for measure in alone)
    yield from ((named(measure), partial(measure, channel, prior)) for measure in under)
    yield "output distribution", partial(channel.output, prior)
    yield "collusion", partial(fp.collusion, joint, channel, other)
    yield "audit", partial(fp.audit, channel, prior)
    yield "entropy of a prior", prior.entropy


def named(measure):
    """Name of a measure with its further arguments."""
    if not isinstance(measure, partial):
        return measure.__name__
    return f"{measure.func.__name__}, {', '.join(measure.keywords)}"


@pytest.mark.parametrize("size", [8])
def test_every_measure(versus, size):
    """Every measure of a matrix of one record, beside a sum of its entries."""
    matrix = instances.channel(size)
    for title, call in every_measure(size):
        versus(
            title,
            f"random {size} x {size}, checked before",
            ours(call),
            yardstick("np.sum", partial(np.sum, matrix)),
            seed=0,
        )


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
