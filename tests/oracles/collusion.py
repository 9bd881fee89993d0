"""Plain references for two outputs about one secret, in mpmath."""

from itertools import chain, product

from oracles.information import joint_information
from oracles.numbers import num


def outputs(joint, first, second):
    """Return the law [s][y1][y2] from joint[s][x1][x2] and two channels."""
    inputs = list(product(range(len(first)), range(len(second))))
    return [
        [
            [
                sum(num(table[a][b]) * num(first[a][y]) * num(second[b][z]) for a, b in inputs)
                for z in range(len(second[0]))
            ]
            for y in range(len(first[0]))
        ]
        for table in joint
    ]


def both(joint, first, second):
    """Return I(S; Y1, Y2)."""
    return joint_information([[*chain(*table)] for table in outputs(joint, first, second)])


def one(joint, first, second, which):
    """Return I(S; Y1) where which is 1, I(S; Y2) where it is 2."""
    law = outputs(joint, first, second)
    along = [table if which == 1 else zip(*table, strict=True) for table in law]
    return joint_information([[sum(cells) for cells in table] for table in along])
