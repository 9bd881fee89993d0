"""Sums of two independent numbers, put on points."""

from .declare import Ints, Vector, kernel


@kernel()
def add_laws(
    first: Vector,
    chances: Vector,
    second: Vector,
    weights: Vector,
    points: Vector,
    shared: bool,
    masses: Vector,
    means: Vector,
    terms: Ints,
) -> None:
    """Add the distribution of a sum to ``masses`` on rising points; count the terms of each cell.

    A value between two points is shared between them so that its mean stays; or, if not
    ``shared``, all of it is added to the mass and to the mean of its cell, under the lower point.
    All values are rising and between the first point and the last.
    """
    last = points.size - 2
    for i in range(first.size):
        cell = 0
        width = 1.0 / (points[1] - points[0])
        for j in range(second.size):
            value = first[i] + second[j]
            if cell < last and points[cell + 1] <= value:
                while cell < last and points[cell + 1] <= value:
                    cell += 1
                width = 1.0 / (points[cell + 1] - points[cell])
            mass = chances[i] * weights[j]
            terms[cell] += 1
            if shared:
                share = min(max((value - points[cell]) * width, 0.0), 1.0)
                masses[cell] += mass * (1.0 - share)
                masses[cell + 1] += mass * share
            else:
                masses[cell] += mass
                means[cell] += mass * value
