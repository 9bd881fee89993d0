"""Lists of databases, their distances and neighbours."""

from itertools import product
from math import prod


def databases(sizes):
    """Return every database as a tuple of rows, in C order."""
    return list(product(*[range(m) for m in sizes]))


def hamming(x, y):
    """Return the number of rows where the databases x and y differ."""
    return sum(1 for a, b in zip(x, y, strict=True) if a != b)


def index(row, sizes):
    """Return the position of a database in C order."""
    return databases(sizes).index(tuple(row))


def shell(center_index, l, sizes):
    """Return the sorted indices of the databases at Hamming distance l from the centre."""
    dbs = databases(sizes)
    return [i for i, x in enumerate(dbs) if hamming(x, dbs[center_index]) == l]


def shell_size(l, sizes):
    """Return the number of databases at distance l (the same around every centre)."""
    return len(shell(0, l, sizes))


def neighbours(x, sizes):
    """Return the sorted indices of the neighbours of the database with index x."""
    return shell(x, 1, sizes)


def neighbour_pairs(sizes):
    """Return all ordered pairs of indices of neighbouring databases."""
    return [(x, y) for x in range(prod(sizes)) for y in neighbours(x, sizes)]


def lines(axis, sizes):
    """Return the lists of indices of databases that agree everywhere but on one row."""
    groups = {}
    for i, x in enumerate(databases(sizes)):
        groups.setdefault(x[:axis] + x[axis + 1 :], []).append(i)
    return list(groups.values())
