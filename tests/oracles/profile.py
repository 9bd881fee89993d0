"""Plain references for composed privacy losses, in mpmath, from the definitions."""

from collections import Counter
from itertools import combinations_with_replacement, product

from mpmath import exp, factorial, log, mpf

DIGITS = 80


def response_masses(m, eps):
    """Return {loss / eps: mass} of m-ary randomised response."""
    a = 1 / (1 + (m - 1) * exp(-mpf(eps)))
    return {1: a, -1: a * exp(-mpf(eps)), 0: (m - 2) * a * exp(-mpf(eps))}


def composed_response(m, eps, k):
    """Return [(net, mass)] of k releases for net > 0, by the recurrence from the top down.

    a i q_i = z (k-i+1) q_(i-1) + b (2k-i+2) q_(i-2) for the mass q_i of net k - i.
    """
    p = response_masses(m, eps)
    a, b, z = p[1], p[-1], p[0]
    masses = [a**k]
    for i in range(1, k):
        before = masses[i - 2] if i > 1 else 0
        masses.append((z * (k - i + 1) * masses[i - 1] + b * (2 * k - i + 2) * before) / (a * i))
    return [(k - i, q) for i, q in enumerate(masses)]


def delta_of(pairs, t):
    """Return the sum of mass (1 - e^(t - loss))_+ over (loss, mass)."""
    total = sum((q * (1 - exp(mpf(t) - l)) for l, q in pairs if l > t), mpf(0))
    return min(total, mpf(1))


def response_delta(m, eps, k, t):
    """Return delta(t) of k releases."""
    return delta_of([(mpf(eps) * g, q) for g, q in composed_response(m, eps, k)], t)


def epsilon_of(pairs, delta):
    """Return the least t >= 0 with delta(t) <= delta, from the piece where the curve crosses."""
    pairs = sorted(pairs, reverse=True)
    mass, test = mpf(0), mpf(0)  # delta(t) = mass - e^t test between two losses
    for i, (l, q) in enumerate(pairs):
        mass, test = mass + q, test + q * exp(-l)
        after = max(pairs[i + 1][0], mpf(0)) if i + 1 < len(pairs) else mpf(0)
        if mass - exp(after) * test > delta:
            return min(log((mass - delta) / test), l)
        if after == 0:
            break
    return mpf(0)


def response_epsilon(m, eps, k, delta):
    """Return epsilon(delta) of k releases."""
    return epsilon_of([(mpf(eps) * g, q) for g, q in composed_response(m, eps, k)], mpf(delta))


def convolved(laws):
    """Return (loss, mass) of a sum of independent losses, all outcomes listed."""
    total = {mpf(0): mpf(1)}
    for law in laws:
        found = Counter()
        for (l, p), (h, q) in product(total.items(), law):
            found[l + h] += p * q
        total = found
    return list(total.items())


def response_law(m, eps):
    """Return [(loss, mass)] of one release."""
    return [(g * mpf(eps), q) for g, q in response_masses(m, eps).items() if q > 0]


def pair_law(P, Q):
    """Return [(loss, mass)] of finite losses under P, and the mass where Q is zero."""
    law = [(log(mpf(p) / mpf(q)), mpf(p)) for p, q in zip(P, Q, strict=True) if p > 0 and q > 0]
    return law, sum((mpf(p) for p, q in zip(P, Q, strict=True) if q == 0), mpf(0))


def power_law(law, k):
    """Return (loss, mass) of k independent losses from a short law, by counts of each."""
    found = []

    def go(i, left, loss, weight):
        if i == len(law) - 1:
            l, p = law[i]
            found.append((loss + left * l, weight * p**left / factorial(left)))
            return
        l, p = law[i]
        for c in range(left + 1):
            go(i + 1, left - c, loss + c * l, weight * p**c / factorial(c))

    go(0, k, mpf(0), factorial(k))
    return found


def envelope_law(matrix, pairs):
    """Return the symmetric law whose curve is the largest over pairs of rows, both orders.

    Corners are found from all crossings of all lines P(A) - a Q(A), A = {p > r q}.
    """
    lines = {(mpf(0), mpf(0))}
    for x, z in pairs:
        for P, Q in ((matrix[x], matrix[z]), (matrix[z], matrix[x])):
            order = sorted(range(len(P)), key=lambda y: -(mpf(P[y]) / mpf(Q[y])))
            s, t = mpf(0), mpf(0)
            for y in order:
                s, t = s + mpf(P[y]), t + mpf(Q[y])
                lines.add((s, t))
    lines = sorted(lines, key=lambda v: v[1])

    def value(a):
        return max(s - a * t for s, t in lines)

    law, at, here = [], mpf("inf"), (mpf(0), mpf(0))
    while True:  # from a = infinity down, the next line to overtake
        steeper = [v for v in lines if v[1] > here[1] and v[0] > here[0]]
        crossings = [((v[0] - here[0]) / (v[1] - here[1]), v) for v in steeper]
        crossings = [c for c in crossings if c[0] > 1]
        if not crossings:
            break
        at = max(c[0] for c in crossings)
        line = max(
            (c[1] for c in crossings if c[0] >= at * (1 - mpf(10) ** -60)), key=lambda v: v[1]
        )
        law.append((log(at), line[0] - here[0]))
        assert abs(value(at) - (here[0] - at * here[1])) < mpf(10) ** -40
        here = line
    law += [(-l, q * exp(-l)) for l, q in law]
    rest = 1 - sum(q for _, q in law)
    return [*law, (mpf(0), rest)]


def attained_delta(kinds, x, z, t):
    """Return the sum of (P - e^t Q)_+ over outputs of all releases, x against z in each of them.

    Kinds are (matrix, count); outputs of one kind that differ in their order only count together.
    """
    joint = [(mpf(1), mpf(1))]
    for matrix, count in kinds:
        P, Q = ([mpf(v) for v in matrix[row]] for row in (x, z))
        found = []
        for chosen in combinations_with_replacement(range(len(P)), count):
            p, q = factorial(count), factorial(count)
            for y, times in Counter(chosen).items():
                p, q = p * P[y] ** times / factorial(times), q * Q[y] ** times / factorial(times)
            if p > 0:
                found.append((p, q))
        joint = [(a * p, b * q) for a, b in joint for p, q in found]
    return sum((max(p - exp(mpf(t)) * q, mpf(0)) for p, q in joint), mpf(0))


def declared_pair(eps, delta):
    """Return the worst pair of laws of any (epsilon, delta)-DP mechanism."""
    a = (1 - mpf(delta)) / (1 + exp(-mpf(eps)))
    first = [mpf(delta), a, a * exp(-mpf(eps)), mpf(0)]
    return [first, first[::-1]]


def attained_epsilon(kinds, x, z, delta, slack):
    """Return bounds on the least t >= 0 whose delta is within the given one, x against z.

    A mass at infinity within ``slack`` of delta may be on either side of it.
    """
    finite, kept = [], mpf(1)
    for matrix, count in kinds:
        law, lost = pair_law(matrix[x], matrix[z])
        kept *= (1 - lost) ** count
        finite.append(power_law(law, count) if law else [])
    room = mpf(delta) - (1 - kept)
    if room < -slack:
        return mpf("inf"), mpf("inf")
    least = epsilon_of(convolved(finite), max(room, mpf(0)) + slack)
    return least, mpf("inf") if room <= slack else epsilon_of(convolved(finite), room - slack)


def worst_epsilon(kinds, extra, pairs, delta, slack):
    """Return bounds on the largest of them over pairs of neighbours, each in both orders."""
    best = mpf(0), mpf(0)
    for x, z in [*pairs, *((z, x) for x, z in pairs)]:
        both = [([matrix[x], matrix[z]], count) for matrix, count in kinds]
        here = attained_epsilon([*both, (extra, 1)], 0, 1, delta, slack)
        best = max(best[0], here[0]), max(best[1], here[1])
    return best


def worst_delta(kinds, pairs, t):
    """Return the largest of them over pairs of neighbours, each in both orders."""
    both = [*pairs, *((z, x) for x, z in pairs)]
    return max((attained_delta(kinds, x, z, t) for x, z in both), default=mpf(0))


def best_rate(first, second, alpha):
    """Largest chance of an alarm under the first law, at most alpha under the second: Fractions.

    By Neyman and Pearson outputs are taken in the order of their ratios, the last in part.
    """
    certain = sum(p for p, q in zip(first, second, strict=True) if q == 0)
    rest = [(p / q, p, q) for p, q in zip(first, second, strict=True) if q > 0]
    total, left = certain, alpha
    for _, p, q in sorted(rest, reverse=True):
        share = min(1, left / q)
        total, left = total + share * p, left - share * q
    return total
