"""Plain reference implementations, written from the definitions and meant to be read, not fast.

A database is a tuple of rows; flat lists follow C order (row 0 is the most significant digit).
A channel is W[x][y] = p(y|x). Entries are int, float, Fraction or mpf; levels are mpf, in nats.
"""

from fractions import Fraction
from itertools import pairwise, product
from math import comb, factorial, prod

from mpmath import beta, exp, inf, libmp, log, lu_solve, matrix, mp, mpf

mp.dps = 50


def num(v):
    """Return v as an mpf (Fractions are divided at the working precision)."""
    return mpf(v.numerator) / v.denominator if isinstance(v, Fraction) else mpf(v)


def exact(v):
    """Return v as a Fraction without any rounding."""
    return Fraction(*map(int, libmp.to_rational(v._mpf_))) if isinstance(v, mpf) else Fraction(v)


def log_ratio(u, v):
    """Return ln(u/v) with positive/0 = inf; a zero u (0/0 too) gives -inf, so a max ignores it."""
    return -inf if u == 0 else inf if v == 0 else log(num(u) / num(v))


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


def product_pmf(marginals):
    """Return the pmf of independent rows."""
    return [prod(choice) for choice in product(*marginals)]


def exchangeable_pmf(weights, n):
    """Return the pmf over n bits with weights[k] = P(k ones), spread evenly over the class."""
    return [weights[sum(x)] / comb(n, sum(x)) for x in databases([2] * n)]


def exchangeable_pmf_general(counts, n, m):
    """Return the pmf of n m-valued rows from {(count of 0, ..., count of m-1): probability}."""
    kinds = [tuple(x.count(a) for a in range(m)) for x in databases([m] * n)]
    return [counts.get(k, 0) / (factorial(n) // prod(map(factorial, k))) for k in kinds]


def markov_pmf(initial, transition, n):
    """Return the pmf of a homogeneous Markov chain of n rows, transition[from][to]."""
    dbs = databases([len(initial)] * n)
    return [initial[x[0]] * prod(transition[a][b] for a, b in pairwise(x)) for x in dbs]


def beta_binomial_weights(n, a, b):
    """Return P(k ones), k = 0..n, of the beta-binomial law."""
    a, b = num(a), num(b)
    return [comb(n, k) * beta(k + a, n - k + b) / beta(a, b) for k in range(n + 1)]


def epsilon_x(pmf, sizes):
    """Return the largest ln p(x)/p(x') over neighbours, 0 if there are none."""
    return max([mpf(0)] + [log_ratio(pmf[i], pmf[j]) for i, j in neighbour_pairs(sizes)])


def epsilon_hat(pmf, sizes):
    """Return the largest ln(1/p(x_i|x_-i) - m_i + 1), at least 0."""
    level = mpf(0)
    for axis, m in enumerate(sizes):
        for line in lines(axis, sizes):
            least, mass = min(exact(pmf[i]) for i in line), sum(exact(pmf[i]) for i in line)
            if m > 1 and mass > 0:  # the least conditional probability gives the largest value
                level = max(level, inf if least == 0 else log(num(mass / least - m + 1)))
    return level


def unmix(pmf, sizes, r):
    """Return R^-1 pmf with r = e^-eps < 1: on one row, stay g - r and move -r, both over 1 - r."""
    for axis, m in enumerate(sizes):
        stay, move, new = (1 + (m - 2) * r) / (1 - r), -r / (1 - r), {}
        for line in lines(axis, sizes):
            for i in line:
                new[i] = sum((stay if i == j else move) * pmf[j] for j in line)
        pmf = [new[i] for i in range(len(pmf))]
    return pmf


def epsilon_tilde(pmf, sizes):
    """Return the least eps >= 0 at which R^-1 pmf is non-negative, from above to 1e-31."""
    # A zero anywhere: inf. At finite eps all entries of R are positive, so p = R q for a law q has
    # none. R^-1 p tends to p as eps -> inf, yet has a negative entry (maybe elsewhere) all the way.
    # Full support: finite, as R^-1 p tends to p > 0; 0 exactly if uniform, as R_eps q tends to that
    # as eps -> 0. In between it is upward closed: R_eps = R_eps' S, S stochastic, for eps' > eps.
    # In r = e^-eps all is rational, so signs are exact (equal rows: entries of order 1e-31^n).
    p = [exact(v) for v in pmf]
    if min(p) == max(p) or min(p) == 0:
        return mpf(0) if min(p) == max(p) else inf
    low, high = Fraction(1, 2), Fraction(1)  # r = 1 is infeasible here
    while min(unmix(p, sizes, low)) < 0:
        low, high = low / 2, low
    while high - low > low / 10**31:
        middle = (low + high) / 2
        low, high = (middle, high) if min(unmix(p, sizes, middle)) >= 0 else (low, middle)
    return -log(num(low))


def randomised_response(m, eps):
    """Return the m-ary symmetric channel R_eps."""
    stay = 1 / (1 + (m - 1) * exp(-num(eps)))
    return [[stay if x == y else stay * exp(-num(eps)) for y in range(m)] for x in range(m)]


def product_matrix(factors):
    """Return the channel that sends row i through factors[i] (m_i x k_i), independently."""
    inputs, outputs = databases(map(len, factors)), databases([len(f[0]) for f in factors])
    rows = range(len(factors))
    return [[prod(factors[i][x[i]][y[i]] for i in rows) for y in outputs] for x in inputs]


def query_matrix(values, kernel):
    """Return the channel p(.|x) = kernel[values[x]]."""
    return [list(kernel[v]) for v in values]


def e_d_matrix(sizes, eps):
    """Return E_d: every row through its own symmetric channel, all at eps."""
    return product_matrix([randomised_response(m, eps) for m in sizes])


def inverse_output(pmf, sizes, eps):
    """Return p_Y = R^-1 p, signed; at eps = 0, where any law serves a uniform p, p itself."""
    if eps > 0:
        return unmix([num(v) for v in pmf], sizes, exp(-num(eps)))
    if min(pmf) != max(pmf):
        raise ValueError("R is singular at eps = 0")
    return [num(v) for v in pmf]


def e_i_matrix(pmf, sizes, eps):
    """Return E_i: W[x][y] = p_Y(y) R(x, y) / p(x) with p_Y = R^-1 p."""
    p_y = inverse_output(pmf, sizes, eps)
    rows = zip(pmf, e_d_matrix(sizes, eps), strict=True)
    return [[q * r / num(p) for q, r in zip(p_y, row, strict=True)] for p, row in rows]


def tilted_matrix(q, sizes, eps):
    """Return W[x][y] proportional to q(y) e^(-eps d(x, y)), rows normalised."""
    dbs = databases(sizes)
    joint = [
        [num(w) * exp(-num(eps) * hamming(x, y)) for w, y in zip(q, dbs, strict=True)] for x in dbs
    ]
    return [[v / sum(row) for v in row] for row in joint]


def output_law(W, p):
    """Return p_Y(y) = sum over x of p(x) W[x][y]."""
    return [sum(num(p[x]) * num(W[x][y]) for x in range(len(W))) for y in range(len(W[0]))]


def distortion_metric(W, p, d):
    """Return the expected d[X][Y]."""
    cells = product(range(len(W)), range(len(W[0])))
    return sum(num(p[x]) * num(W[x][y]) * num(d[x][y]) for x, y in cells)


def distortion(W, p, sizes):
    """Return the expected Hamming distance between X and Y."""
    dbs = databases(sizes)
    return distortion_metric(W, p, [[hamming(x, y) for y in dbs] for x in dbs])


def dp_level(W, sizes):
    """Return the largest ln W[x][y]/W[x'][y] over neighbours and outputs."""
    pairs, outputs = neighbour_pairs(sizes), range(len(W[0]))
    return max([mpf(0)] + [log_ratio(W[i][y], W[j][y]) for i, j in pairs for y in outputs])


def identifiability_level(W, p, sizes):
    """Return the largest ln p(x|y)/p(x'|y) over neighbours and outputs with p_Y(y) > 0."""
    p_y = output_law(W, p)
    seen = [y for y in range(len(p_y)) if p_y[y] > 0]
    posterior = [[num(p[x]) * num(W[x][y]) / p_y[y] for y in seen] for x in range(len(W))]
    return dp_level(posterior, sizes)


def mutual_information(W, p):
    """Return I(X;Y) from the joint law, with 0 ln 0 = 0; p is divided by its exact sum first."""
    p = [num(v) / sum(map(num, p)) for v in p]
    p_y, cells = output_law(W, p), product(range(len(W)), range(len(W[0])))
    used = [(num(p[x]), num(W[x][y]), p_y[y]) for x, y in cells if p[x] > 0 and W[x][y] > 0]
    return sum(a * w * log(w / b) for a, w, b in used)


def entropy(p):
    """Return the Shannon entropy, with 0 ln 0 = 0."""
    return sum((-num(v) * log(num(v)) for v in p if v > 0), mpf(0))


def min_entropy(p):
    """Return -ln of the largest probability."""
    return -log(max(num(v) for v in p))


def h(eps, n, m):
    """Return n / (1 + e^eps / (m - 1)), the distortion of E_d and E_i; 0 for m = 1."""
    return mpf(0) if m == 1 else n / (1 + exp(num(eps)) / (m - 1))


def h_inverse(D, n, m):
    """Return ln(n/D - 1) + ln(m - 1) for m >= 2: inf at D = 0, -inf at D = n."""
    return {0: inf, n: -inf}[D] if D in (0, n) else log(n / num(D) - 1) + log(m - 1)


def shell_profile(pmf, y_index, sizes):
    """Return the mass of the shell at each distance l = 0..n from y."""
    shells = [shell(y_index, k, sizes) for k in range(len(sizes) + 1)]
    return [sum((num(pmf[i]) for i in indices), mpf(0)) for indices in shells]


def blahut_bounds(p, d, q, slope, enough):
    """Return Blahut's bounds on the least I + slope E d, from any output law q.

    The lower one is the best of his iteration's, which goes on until the bounds are ``enough``
    close: a law may be optimal but for the outputs of nearly impossible inputs.
    """
    p = [num(v) / sum(map(num, p)) for v in p]
    best = -inf
    for _ in range(1000):
        lower, upper, q = _blahut_step(p, d, q, slope)
        best = max(best, lower)
        if upper - best < enough:
            break
    return best, upper


def _blahut_step(p, d, q, slope):
    inputs, outputs = range(len(p)), range(len(q))
    K = [[exp(-num(slope) * num(d[x][y])) for y in outputs] for x in inputs]
    v = [sum(K[x][y] * num(q[y]) for y in outputs) for x in inputs]
    c = [sum(p[x] * K[x][y] / v[x] for x in inputs) for y in outputs]
    base = -sum(p[x] * log(v[x]) for x in inputs)
    upper = base - sum(num(w) * b * log(b) for w, b in zip(q, c, strict=True) if b > 0)
    return base - log(max(c)), upper, [num(w) * b for w, b in zip(q, c, strict=True)]


def divergence(w, q):
    """Return the sum of w ln(w/q) - w + q, for laws the Kullback-Leibler divergence."""
    w, q = list(map(num, w)), list(map(num, q))
    return sum((a * log(a / b) for a, b in zip(w, q, strict=True) if a > 0), sum(q) - sum(w))


def capacity_bracket(W, p):
    """Return I(p, W) and the largest divergence of a row from the output law: C lies between."""
    p = [num(v) / sum(map(num, p)) for v in p]
    distances = [divergence(row, output_law(W, p)) for row in W]
    return sum(a * d for a, d in zip(p, distances, strict=True)), max(distances)


def capacity(W, steps=150):
    """Return lower and upper bounds on the capacity: multiplicative steps, then Newton's method.

    Both are heuristic ways to a good input law; whatever law they end at, its bracket is exact.
    """
    p = [mpf(1) / len(W)] * len(W)
    for _ in range(steps):  # Blahut-Arimoto, with steps as long for small capacities as for large
        distances = [divergence(row, output_law(W, p)) for row in W]
        scale = max(distances)
        if scale == 0:
            return scale, scale
        p = [a * exp(d / scale) for a, d in zip(p, distances, strict=True)]
        p = [a / sum(p) for a in p]
    best, support = p, [x for x in range(len(W)) if p[x] > 1e-3]
    p = [p[x] for x in support]
    rows = [list(map(num, W[x])) for x in support]
    for _ in range(8):  # all divergences on the support equal, and p a law
        q, n = output_law(rows, p), len(p)
        ratio = [[w / v if v > 0 else 0 for w, v in zip(row, q, strict=True)] for row in rows]
        cells = [[sum(b * (1 - r) for b, r in zip(y, x, strict=True)) for y in rows] for x in ratio]
        system = matrix([[*line, -1] for line in cells] + [[1] * n + [0]])
        level = [divergence(row, q) for row in rows]
        try:
            step = lu_solve(system, matrix([level[0] - d for d in level] + [1 - sum(p)]))
        except ZeroDivisionError:
            break
        p = [a + step[i] for i, a in enumerate(p)]
        if min(p) < 0:
            break
    if min(p) > 0:
        polished = [p[support.index(x)] if x in support else mpf(0) for x in range(len(W))]
        best = min(best, polished, key=lambda law: -capacity_bracket(W, law)[0])
    return capacity_bracket(W, best)


def secret_channel(joint, W):
    """Return P(y|s) and P(s) of S -> X -> Y, from joint[s][x] and W[x][y]."""
    total = sum(num(v) for row in joint for v in row)
    P = [[num(v) / total for v in row] for row in joint]
    prior = [sum(row) for row in P]
    seen = [s for s in range(len(P)) if prior[s] > 0]
    outputs, inputs = range(len(W[0])), range(len(W))
    rows = [[sum(P[s][x] * num(W[x][y]) for x in inputs) / prior[s] for y in outputs] for s in seen]
    return rows, [prior[s] for s in seen]


def inference_leakage(joint, W):
    """Return I(S;Y) of S -> X -> Y."""
    return mutual_information(*secret_channel(joint, W))


def guessing_error(joint, W):
    """Return the error of the best guess of S from Y: 1 - sum over y of max over s of P(s, y)."""
    rows, prior = secret_channel(joint, W)
    cells = [[prior[s] * v for v in row] for s, row in enumerate(rows)]
    return 1 - sum(max(column) for column in zip(*cells, strict=True))


def mirror_descent(joint, metric, slope, steps, rate=0.5):
    """Return W that nearly minimises I(S;Y) + slope E d(X,Y), by exponentiated gradients."""
    from math import exp as e
    from math import log as ln

    secrets, inputs, outputs = range(len(joint)), range(len(metric)), range(len(metric[0]))
    p = [sum(joint[s][x] for s in secrets) for x in inputs]
    prior = [sum(joint[s]) for s in secrets]
    W = [[1 / len(outputs) * (1 + 0.1 * (x == y)) for y in outputs] for x in inputs]
    W = [[v / sum(row) for v in row] for row in W]
    for _ in range(steps):
        j = [[sum(joint[s][x] * W[x][y] for x in inputs) for y in outputs] for s in secrets]
        q = [sum(j[s][y] for s in secrets) for y in outputs]
        for x in inputs:
            pull = [
                sum(joint[s][x] / p[x] * ln(j[s][y] / (prior[s] * q[y])) for s in secrets)
                + slope * metric[x][y]
                for y in outputs
            ]
            weights = [W[x][y] * e(-rate * (pull[y] - min(pull))) for y in outputs]
            W[x] = [max(w / sum(weights), 1e-300) for w in weights]
    return W


def chi_square(P, Q, b):
    """Return b(1-b) sum (P-Q)^2/(bP+(1-b)Q), whose largest over b and pairs of rows is eta(W)."""
    pairs = [(num(u), num(v)) for u, v in zip(P, Q, strict=True) if u + v > 0]
    return sum(b * (1 - b) * (u - v) ** 2 / (b * u + (1 - b) * v) for u, v in pairs)
