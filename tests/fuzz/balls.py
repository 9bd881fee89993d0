"""The definitions in ball arithmetic: every number is an interval that is proved to hold it.

The references in ``oracles`` take as many digits as the least number of a case may need. Here a
comparison is tried with few digits, and with more only where the balls do not decide it. What is
larger by less than a part in 2^200 counts as equal, and so does what differs by less than 2^-1300.
"""

from functools import lru_cache
from itertools import combinations_with_replacement, product
from math import factorial, prod

from flint import arb, ctx

from oracles import databases, hamming
from oracles.channels import product_matrix, query_matrix
from oracles.priors import exchangeable_pmf, markov_pmf, product_pmf, unmix
from oracles.spaces import lines

#: Bits that are tried in turn.
PRECISIONS = (128, 640, 2560, 10240)
ZERO, ONE, INFINITE = arb(0), arb(1), arb("inf")
#: What is between a ball around an exact zero and any number that a case can give rise to.
_NOTHING = arb(2) ** -4000


class Undecided(Exception):
    """Two balls overlap: ask again with more bits."""


def at_some_precision(question):
    """Return the answer of a question at the least precision that decides it."""
    before = ctx.prec
    try:
        for bits in PRECISIONS:
            ctx.prec = bits
            try:
                return question()
            except Undecided:
                continue
    finally:
        ctx.prec = before
    raise Undecided


def less(a, b):
    """Whether a < b, which is decided or raises; what is equal up to the slack is not less."""
    if a >= b:
        return False
    if a < b:
        return not a.is_finite() or not b.is_finite() or not _close(a, b)
    if _close(a, b):
        return False
    raise Undecided


def _close(a, b):
    room = abs(a).max(abs(b)) * arb(2) ** -200 + arb(2) ** -1300
    return abs(a - b) <= room


def positive(v):
    """Whether a number that cannot be negative is positive."""
    if v > 0:
        return True
    if v == 0 or abs(v) < _NOTHING:
        return False
    raise Undecided


def balls(rows):
    """Return a table of floats as exact balls."""
    return [[arb(float(v)) for v in row] for row in rows]


def largest(values, start=ZERO):
    """Return the largest of balls and of a number to start with."""
    for value in values:
        start = start.max(value)
    return start


def normal(law):
    """Return numbers divided by their sum."""
    law = [v if isinstance(v, arb) else arb(v) for v in law]
    total = sum(law, ZERO)
    return law if total == 1 else [v / total for v in law]


@lru_cache(maxsize=256)
def pairs_of(sizes):
    """Return all ordered pairs of neighbours."""
    every = databases(sizes)
    size = range(len(every))
    return [(i, j) for i in size for j in size if hamming(every[i], every[j]) == 1]


@lru_cache(maxsize=256)
def distances(sizes):
    """Return the table of Hamming distances."""
    every = databases(sizes)
    return [[hamming(x, z) for z in every] for x in every]


# Laws and channels.


def prior(spec, normal=normal):
    """Return the exact probabilities, every law of the definition divided by its exact sum."""
    kind = spec["kind"]
    if kind == "dense":
        return normal(spec["pmf"])
    if kind == "product":
        return product_pmf([normal(law) for law in spec["marginals"]])
    if kind == "iid":
        return product_pmf([normal(spec["law"])] * spec["n"])
    if kind == "uniform":
        return normal([1] * spec["m"] ** spec["n"])
    if kind == "exchangeable":
        return exchangeable_pmf(normal(spec["weights"]), len(spec["weights"]) - 1)
    chain = [normal(row) for row in spec["transition"]]
    return markov_pmf(normal(spec["initial"]), chain, spec["n"])


def hamming_matrix(sizes, epsilon):
    """Return E_d."""
    r = (-arb(epsilon)).exp()
    factors = []
    for m in sizes:
        stay = 1 / (1 + (m - 1) * r)
        factors.append([[stay if x == y else stay * r for y in range(m)] for x in range(m)])
    return product_matrix(factors)


def tilted_matrix(law, sizes, epsilon):
    """Return W[x][y] proportional to q(y) e^(-epsilon d(x, y))."""
    powers = [(-arb(epsilon) * d).exp() for d in range(len(sizes) + 1)]
    table = distances(tuple(sizes))
    joint = [[w * powers[d] for w, d in zip(law, row, strict=True)] for row in table]
    return [normal(row) for row in joint]


def posterior_matrix(law, sizes, epsilon):
    """Return E_i: W[x][y] = p_Y(y) R(x, y)/p(x) with p_Y = R^-1 p; at 0, p_Y = p."""
    output = unmix(law, sizes, (-arb(epsilon)).exp()) if epsilon > 0 else law
    kernel = hamming_matrix(sizes, epsilon)
    return [
        [q * r / p for q, r in zip(output, row, strict=True)]
        for p, row in zip(law, kernel, strict=True)
    ]


def channel(spec, sizes):
    """Return the exact matrix; entries of a matrix that was given are taken as they are."""
    kind = spec["kind"]
    if kind == "dense":
        return balls(spec["matrix"])
    if kind == "product":
        return product_matrix([balls(factor) for factor in spec["factors"]])
    if kind == "hamming":
        return hamming_matrix(sizes, spec["epsilon"])
    if kind == "query":
        return query_matrix(spec["values"], balls(spec["matrix"]))
    law = prior(spec["law"])
    made = tilted_matrix if kind == "tilted" else posterior_matrix
    return made(law, sizes, spec["epsilon"])


# Levels.


def _excess(u, v):
    """Return u/v - 1, or nothing where u is zero."""
    if not positive(u):
        return -ONE
    return (u - v) / v if positive(v) else INFINITE


def dp_level(W, pairs):
    """Return the largest ln W[x][y]/W[x'][y] over pairs."""
    cells = ((W[i][y], W[j][y]) for i, j in pairs for y in range(len(W[0])))
    return largest(_excess(u, v) for u, v in cells).log1p()


def strong_dp_level(W):
    """Return the largest over all pairs of rows."""
    columns = list(zip(*W, strict=True))
    most = [largest(column) for column in columns]
    least = [_smallest(column) for column in columns]
    return largest(_excess(u, v) for u, v in zip(most, least, strict=True)).log1p()


def _smallest(values):
    least = values[0]
    for value in values:
        least = least.min(value)
    return least


def maximal_leakage(W):
    """Return ln of the sum of column maxima."""
    return (sum((largest(column) for column in zip(*W, strict=True)), -ONE)).log1p()


def hockey_stick(W, pairs, epsilon):
    """Return the largest sum of (W[x][y] - e^epsilon W[x'][y])_+ over pairs."""
    factor = arb(epsilon).exp()
    scaled = [[factor * v for v in row] for row in W]
    sums = (
        sum(((u - v).max(ZERO) for u, v in zip(W[i], scaled[j], strict=True)), ZERO)
        for i, j in pairs
    )
    return largest(sums).min(ONE)


def output(W, p):
    """Return p_Y."""
    return [sum((a * row[y] for a, row in zip(p, W, strict=True)), ZERO) for y in range(len(W[0]))]


def identifiability_level(W, p, pairs):
    """Return the DP level of the joint law: the output law cancels in ratios."""
    return dp_level([[a * w for w in row] for a, row in zip(p, W, strict=True)], pairs)


def _seen(W, p):
    """Return rows that occur, with the output law."""
    return [row for a, row in zip(p, W, strict=True) if positive(a)], output(W, p)


def pml_level(W, p):
    """Return the largest ln W[x][y]/p_Y(y)."""
    rows, q = _seen(W, p)
    columns = zip(zip(*rows, strict=True), q, strict=True)
    return largest(_excess(largest(column), v) for column, v in columns).log1p()


def information_privacy(W, p):
    """Return the larger of that and of the largest ln p_Y(y)/W[x][y]."""
    rows, q = _seen(W, p)
    columns = list(zip(zip(*rows, strict=True), q, strict=True))
    above = (_excess(largest(column), v) for column, v in columns)
    below = (_excess(v, _smallest(column)) for column, v in columns)
    return largest(below, largest(above)).log1p()


def distortion(W, p, sizes):
    """Return the expected Hamming distance."""
    rows = zip(p, W, distances(tuple(sizes)), strict=True)
    return sum(
        (a * w * d for a, row, far in rows for w, d in zip(row, far, strict=True) if d), ZERO
    )


def divergence(w, q):
    """Return the sum of w ln(w/q) - w + q, infinite where q is zero and w is not."""
    total = ZERO
    for a, b in zip(w, q, strict=True):
        if not positive(a):
            total += b
        elif not positive(b):
            return INFINITE
        else:
            total += a * (a / b).log() + (b - a)
    return total


def mutual_information(W, p):
    """Return I(X;Y)."""
    q = output(W, p)
    used = [(a, row) for a, row in zip(p, W, strict=True) if positive(a)]
    return sum((a * divergence(row, q) for a, row in used), ZERO)


# Composed profiles.


@lru_cache(maxsize=256)
def _outcomes(outputs, count):
    """Return (number of orders, outputs) of the releases that differ in more than their order."""
    return [
        (factorial(count) // prod(factorial(chosen.count(y)) for y in set(chosen)), chosen)
        for chosen in combinations_with_replacement(range(outputs), count)
    ]


def joint_outcomes(P, Q, count):
    """Return the probabilities of all outputs of a few releases under two laws."""
    kept = [(a, b) for a, b in zip(P, Q, strict=True) if positive(a)]
    found = []
    for ways, chosen in _outcomes(len(kept), count):
        p, q = arb(ways), arb(ways)
        for y in chosen:
            p, q = p * kept[y][0], q * kept[y][1]
        found.append((p, q))
    return found


def excess_mass(outcomes, epsilon):
    """Return the sum of (p - e^epsilon q)_+; at infinity the mass where q is zero."""
    if epsilon == float("inf"):
        return sum((p for p, q in outcomes if not positive(q)), ZERO).min(ONE)
    factor = arb(epsilon).exp()
    return sum(((p - factor * q).max(ZERO) for p, q in outcomes), ZERO).min(ONE)


def declared_pair(epsilon, delta):
    """Return the worst pair of laws of an (epsilon, delta)-DP mechanism."""
    r = (-arb(epsilon)).exp()
    a = (1 - arb(delta)) / (1 + r)
    first = [arb(delta), a, a * r, ZERO]
    return first, first[::-1]


def crossed(outcomes, extra):
    """Return the outcomes of two independent parts together."""
    return [(a * p, b * q) for (a, b), (p, q) in product(outcomes, extra)]


# Correlation, thresholds.


def positive_definite(M):
    """Whether a symmetric matrix is, by elimination."""
    M = [list(row) for row in M]
    for k in range(len(M)):
        if M[k][k] < 0 or M[k][k] == 0:
            return False
        if not M[k][k] > 0:
            raise Undecided
        for i in range(k + 1, len(M)):
            factor = M[i][k] / M[k][k]
            for j in range(k + 1, len(M)):
                M[i][j] -= factor * M[k][j]
    return True


def correlation_below(W, p, square):
    """Whether the squared maximal correlation is below a number.

    So it is where square * diag(p) - sum_y J_y J_y'/q_y + p p' is positive definite.
    """
    total = sum((a * w for a, row in zip(p, W, strict=True) for w in row), ZERO)
    J = [[a * w / total for w in row] for a, row in zip(p, W, strict=True) if positive(a)]
    rows = [sum(row, ZERO) for row in J]
    q = [sum(column, ZERO) for column in zip(*J, strict=True)]
    ys = [y for y in range(len(q)) if positive(q[y])]
    ratios = [[row[y] / q[y] - a for y in ys] for row, a in zip(J, rows, strict=True)]
    M = [
        [
            (square * rows[i] if i == j else ZERO)
            - sum((q[y] * u * v for y, u, v in zip(ys, ratios[i], ratios[j], strict=True)), ZERO)
            for j in range(len(J))
        ]
        for i in range(len(J))
    ]
    return positive_definite(M)


def epsilon_x(p, pairs):
    """Return the largest ln p(x)/p(x') over neighbours."""
    return largest(_excess(p[i], p[j]) for i, j in pairs).log1p()


def epsilon_hat(p, lines):
    """Return the largest ln(1/p(x_i|x_-i) - m_i + 1), at least 0."""
    worst = ZERO
    for line in lines:
        mass = sum((p[i] for i in line), ZERO)
        if len(line) > 1 and positive(mass):
            least = _smallest([p[i] for i in line])
            if not positive(least):
                return INFINITE
            # 1/p - m = sum over the others of (p(z) - p)/p
            worst = worst.max(sum(((p[i] - least) / least for i in line), ZERO))
    return worst.log1p()


def inverse_output(p, sizes, epsilon):
    """Return R^-1 p, and |R^-1| p."""
    r = (-arb(epsilon)).exp()
    signed, size = list(p), list(p)
    for axis, m in enumerate(sizes):
        stay, move = (1 + (m - 2) * r) / (1 - r), r / (1 - r)
        for line in lines(axis, sizes):
            total, much = sum((signed[i] for i in line), ZERO), sum((size[i] for i in line), ZERO)
            for i in line:
                signed[i] = stay * signed[i] - move * (total - signed[i])
                size[i] = stay * size[i] + move * (much - size[i])
    return signed, size
