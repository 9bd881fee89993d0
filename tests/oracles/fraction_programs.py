"""The privacy-distortion programs in fractions, as plainly as they can be written.

Two ways to know an optimum that share nothing with the library: the simplex method on the whole
program with Bland's rule, for a handful of databases; and a list of all rays of the cone, against
which the multipliers of an optimum are tried one by one.
"""

from fractions import Fraction

from oracles import databases, hamming


def law(weights):
    """Return floats or fractions as fractions divided by their sum."""
    result = [w if isinstance(w, Fraction) else Fraction(float(w)) for w in weights]
    return [w / sum(result) for w in result]


def neighbours(sizes):
    """Return all ordered pairs of databases that differ in one row, as numbers."""
    rows = databases(sizes)
    return [(i, j) for i, x in enumerate(rows) for j, y in enumerate(rows) if hamming(x, y) == 1]


def distances(sizes):
    """Return the table of Hamming distances."""
    rows = databases(sizes)
    return [[hamming(x, y) for y in rows] for x in rows]


def check_mechanism(W, p, sizes, ratio, joint):
    """Assert that p(y|x) is a channel within the ratio, and return its distortion."""
    size = len(p)
    assert all(sum(row) == 1 and min(row) >= 0 for row in W)
    table = [[W[x][y] * (p[x] if joint else 1) for y in range(size)] for x in range(size)]
    for i, j in neighbours(sizes):
        assert all(table[i][y] <= ratio * table[j][y] for y in range(size))
    d = distances(sizes)
    return sum(p[x] * W[x][y] * d[x][y] for x in range(size) for y in range(size))


def patterns(sizes):
    """Yield every integer f on databases with |f(x) - f(x')| <= 1 for neighbours, f(0) = 0."""
    size = len(databases(sizes))
    near = [[] for _ in range(size)]
    for i, j in neighbours(sizes):
        if j < i:
            near[i].append(j)

    def extend(f):
        x = len(f)
        if x == size:
            yield tuple(f)
            return
        low = max(f[j] for j in near[x]) - 1
        high = min(f[j] for j in near[x]) + 1
        for k in range(low, high + 1):
            yield from extend([*f, k])

    yield from extend([0])


def is_dual(mu, p, sizes, ratio, joint):
    """Whether no ray of the cone costs less than the multipliers say, tried one by one.

    Minimise the sum of c(x, y) v_y(x) with the v_y adding up to b: for every y, c_y - mu must be
    non-negative on the cone, and so on all rays a^f. c is p d, or d for the joint law.
    """
    size, d = len(p), distances(sizes)
    costs = [[(1 if joint else p[x]) * d[x][y] - mu[x] for x in range(size)] for y in range(size)]
    for f in patterns(sizes):
        ray = [ratio**k for k in f]
        if any(sum(c * v for c, v in zip(cost, ray, strict=True)) < 0 for cost in costs):
            return False
    return True


def least_distortion(p, sizes, ratio, joint):
    """Return the optimum by the simplex method: variables v_y(x), Bland's rule, fractions."""
    size, d, pairs = len(p), distances(sizes), neighbours(sizes)
    cells = [(x, y) for x in range(size) for y in range(size)]
    place = {cell: k for k, cell in enumerate(cells)}
    b = p if joint else [Fraction(1)] * size
    count = len(cells) + len(pairs) * size
    table, basis = [], []
    for x in range(size):  # one artificial variable per equation
        row = [Fraction(0)] * (count + size + 1)
        for y in range(size):
            row[place[x, y]] = Fraction(1)
        row[count + x], row[-1] = Fraction(1), b[x]
        table.append(row)
        basis.append(count + x)
    slack = len(cells)
    for y in range(size):
        for i, j in pairs:
            row = [Fraction(0)] * (count + size + 1)
            row[place[i, y]], row[place[j, y]], row[slack] = Fraction(1), -ratio, Fraction(1)
            table.append(row)
            basis.append(slack)
            slack += 1
    first = [Fraction(0)] * count + [Fraction(1)] * size
    assert _minimise(table, basis, first, count + size) == 0
    cost = [(1 if joint else p[x]) * Fraction(d[x][y]) for x, y in cells]
    cost += [Fraction(0)] * (count - len(cells) + size)
    return _minimise(table, basis, cost, count)


def _minimise(table, basis, cost, allowed):
    """Pivot until no reduced cost among the allowed columns is negative; return the value."""
    while True:
        line = [*cost, Fraction(0)]
        for row, k in zip(table, basis, strict=True):
            if cost[k]:
                line = [a - cost[k] * e for a, e in zip(line, row, strict=True)]
        entering = next((k for k in range(allowed) if line[k] < 0), None)
        if entering is None:
            return -line[-1]
        rows = [i for i, row in enumerate(table) if row[entering] > 0]
        leaving = min(rows, key=lambda i: (table[i][-1] / table[i][entering], basis[i]))
        lead = table[leaving][entering]
        table[leaving] = [e / lead for e in table[leaving]]
        for i, row in enumerate(table):
            if i != leaving and row[entering]:
                factor = row[entering]
                table[i] = [e - factor * q for e, q in zip(row, table[leaving], strict=True)]
        basis[leaving] = entering
