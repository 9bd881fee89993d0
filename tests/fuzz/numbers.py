"""Numbers that break things: zeros, denormals, neighbours of one, equal and nearly equal rows."""

import math

EPSILONS = (0.0, 5e-324, 1e-300, 1e-100, 1e-17, 1e-16, 1e-9, 1e-8, 0.5, 1.0, 30.0, 700.0, 745.0)

DELTAS = (0.0, 5e-324, 1e-323, 1e-300, 1e-17, 1e-9, 0.5, 1.0 - 1e-16, 1.0 - 1e-9, 1.0)


def epsilon(rng):
    """Return a level from 0 to 745, often at an edge."""
    kind = rng.integers(4)
    if kind == 0:
        return float(EPSILONS[rng.integers(len(EPSILONS))])
    if kind == 1:
        return float(10.0 ** rng.uniform(-20, 0))
    if kind == 2:
        return float(10.0 ** rng.uniform(-300, 2.8))
    return float(rng.uniform(0, 6))


def delta(rng):
    """Return a probability, often at an edge."""
    kind = rng.integers(3)
    if kind == 0:
        return float(DELTAS[rng.integers(len(DELTAS))])
    return float(10.0 ** rng.uniform(-320, 0) if kind == 1 else rng.uniform(0, 1))


def law(rng, size):
    """Return probabilities whose floats sum to one within a rounding error."""
    kind = rng.integers(6)
    if size == 1:
        return [1.0]
    if kind == 0:
        weights = rng.dirichlet([1.0] * size)
    elif kind == 1:
        weights = 10.0 ** rng.uniform(-320, 0, size)
    elif kind == 2:
        weights = 10.0 ** rng.uniform(-17, 0, size)
    elif kind == 3:
        weights = rng.integers(0, 4, size).astype(float)
    elif kind == 4:
        weights = 1.0 + rng.integers(-2, 3, size) * 2.0**-52
    else:
        weights = rng.dirichlet([0.1] * size) * rng.integers(0, 2, size)
    if not weights.max() > 0:
        weights[rng.integers(size)] = 1.0
    return settled((weights / weights.max()).tolist())


def settled(weights):
    """Return weights over their sum, the largest mended so that the floats sum to one."""
    total = math.fsum(weights)
    entries = [w / total for w in weights]
    top = entries.index(max(entries))
    entries[top] = max(0.0, 1.0 - math.fsum(entries[:top] + entries[top + 1 :]))
    return entries


def matrix(rng, rows, columns):
    """Return rows of probabilities, some equal, some one unit in the last place apart."""
    made = [law(rng, columns)]
    while len(made) < rows:
        kind = rng.integers(4)
        if kind == 0:
            made.append(list(made[rng.integers(len(made))]))
        elif kind == 1:
            made.append(nudged(rng, made[rng.integers(len(made))]))
        else:
            made.append(law(rng, columns))
    return made


def nudged(rng, entries):
    """Return the entries with one raised and one lowered by a few units in the last place."""
    entries = list(entries)
    up, down = rng.integers(len(entries), size=2)
    for _ in range(rng.integers(1, 4)):
        if up != down and 0.0 < entries[up] < 1.0 and entries[down] > 0.0:
            entries[up] = math.nextafter(entries[up], 1.0)
            entries[down] = math.nextafter(entries[down], 0.0)
    return entries
