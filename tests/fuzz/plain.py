"""The same truths from the plain references, with as many digits as a case can need: a check.

``balls`` and ``optima`` answer the same questions in a fraction of the time. Here every truth
comes from ``oracles`` in mpmath, by way of the definition alone. ``python -m tests.fuzz`` compares
the two now and then, and so do the tests.
"""

import math
from itertools import combinations

import mpmath
from mpmath import mpf

import fastpriv as fp
import oracles as o
from fuzz import specs
from oracles.correlation import maximal_correlation, pair_contraction, sdpi_ratio
from oracles.pointwise import information_privacy, pml
from oracles.profile import attained_delta, declared_pair, worst_delta, worst_epsilon

#: Relative error of averages, which are rounded to nearest.
NEAR = mpf("1e-12")
#: Most digits for composed profiles: 400 tell probabilities apart down to the least double.
_DIGITS = {"composed_delta": 400, "composed_epsilon": 400}


class Exact:
    """The exact matrix and prior of a case."""

    def __init__(self, spec):
        self.spec = spec
        self.sizes = specs.sizes_of(spec["channel"])
        self.W = specs.true_channel(spec["channel"])
        self.p = specs.true_prior(spec["prior"])


def _both(value):
    return value, value


def _profile_truth(case):
    pairs = o.neighbour_pairs(case.sizes)
    count, epsilon = case.spec["count"], case.spec["epsilon"]
    return min(mpf(1), worst_delta([(case.W, count)], pairs, epsilon))


def _composed_delta(case):
    pairs, count = o.neighbour_pairs(case.sizes), case.spec["count"]
    extra, epsilon = declared_pair(*case.spec["part"]), case.spec["epsilon"]
    if not pairs:  # of the same people, whom the other release has neighbours of
        return attained_delta([(extra, 1)], 0, 1, epsilon)
    both = [([case.W[x], case.W[z]], count) for x, z in [*pairs, *((z, x) for x, z in pairs)]]
    return min(mpf(1), max(attained_delta([one, (extra, 1)], 0, 1, epsilon) for one in both))


def _composed_epsilon(case):
    pairs, kinds = o.neighbour_pairs(case.sizes), [(case.W, case.spec["count"])]
    extra, delta = declared_pair(*case.spec["part"]), case.spec["delta"]
    slack = mpf(10) ** (20 - mpmath.mp.dps)
    if delta == 1.0:  # anything goes
        return mpf(0), mpf(0)
    if not pairs:
        return worst_epsilon([], extra, [(0, 1)], delta, slack)
    return worst_epsilon(kinds, extra, pairs, delta, slack)


def _contraction(case):
    """Bounds: the curve of every pair at a good point, and 1e-9 more, or 1 if that is at an end."""
    pairs = [pair_contraction(P, Q, 10) for P, Q in combinations(case.W, 2)]
    low = min(max(pairs, default=mpf(0)), mpf(1))
    return low, mpf(1) if low < mpf("1e-3") else low * (1 + mpf("1e-9"))


def _correlation(case):
    # the root of an eigenvalue has half of its digits
    with mpmath.workdps(2 * mpmath.mp.dps):
        return maximal_correlation(case.W, case.p)


def _sdpi_least(case):
    """A lower bound: the ratio of every vertex, of a few mixtures, and the squared correlation."""
    if sum(v > 0 for v in case.p) < 2:
        return mpf(0)
    best = _correlation(case) ** 2
    support = [x for x, v in enumerate(case.p) if v > 0]
    for x in support:
        for t in (mpf(1), mpf("0.9"), mpf("0.5"), mpf("0.1")):
            q = [(1 - t) * v + (t if x == y else 0) for y, v in enumerate(case.p)]
            if o.divergence(q, case.p) > 0:
                best = max(best, sdpi_ratio(case.W, case.p, q))
    return min(best, mpf(1))


TRUTHS = {
    "dp_level": lambda c: _both(o.dp_level(c.W, c.sizes)),
    "strong_dp_level": lambda c: _both(o.strong_dp_level(c.W)),
    "leakage_capacity": lambda c: _both(o.strong_dp_level(c.W)),
    "maximal_leakage": lambda c: _both(o.maximal_leakage(c.W)),
    "hockey_stick": lambda c: _both(min(mpf(1), o.hockey_stick(c.W, c.sizes, c.spec["epsilon"]))),
    "identifiability_level": lambda c: _both(o.identifiability_level(c.W, c.p, c.sizes)),
    "pml_level": lambda c: _both(max(pml(c.W, c.p))),
    "information_privacy_level": lambda c: _both(information_privacy(c.W, c.p)),
    "max_information": lambda c: _both(max(pml(c.W, c.p))),
    "mutual_information": lambda c: _both(o.mutual_information(c.W, c.p)),
    "distortion": lambda c: _both(o.distortion(c.W, c.p, c.sizes)),
    "maximal_correlation": lambda c: _both(_correlation(c)),
    "contraction_coefficient": _contraction,
    "sdpi_constant": lambda c: (_sdpi_least(c), mpf(1)),
    "channel_capacity": lambda c: o.capacity(c.W, 60),
    "profile": lambda c: _both(_profile_truth(c)),
    "composed_delta": lambda c: _both(_composed_delta(c)),
    "composed_epsilon": _composed_epsilon,
    "epsilon_x": lambda c: _both(o.epsilon_x(c.p, c.sizes)),
    "epsilon_hat": lambda c: _both(o.epsilon_hat(c.p, c.sizes)),
}


def broken(spec, channel, given, question):
    """Return what is wrong with an answer, or None: the slow way."""
    digits = 60 - 4 * int(math.log10(specs.least_number(spec)))
    name = spec["question"]
    with mpmath.workdps(min(digits, _DIGITS.get(name, 10**4))):
        case, truths = Exact(spec), []
        as_given = case.W
        for W in specs.readings(spec["channel"], as_given, channel, question.laws):
            case.W = W
            truths.append(TRUTHS[name](case))
        low, high = min(t[0] for t in truths), max(t[1] for t in truths)
        if name == "profile" and spec["count"] == 1 and spec["channel"]["kind"] != "posterior":
            case.W = as_given
            other = TRUTHS[name](case)[0]  # the bracket holds both
            low, high = max(low, other), min(high, other)
        return _broken(given, low, high, question.near, question.least(spec))


def _broken(given, low, high, near, chance):
    least, most = (given.lower, given.upper) if isinstance(given, fp.Bracket) else (given, given)
    slack = mpf(10) ** (20 - mpmath.mp.dps)
    low, high = low - slack * (1 + abs(low)), high + slack * (1 + abs(high))
    if near and not isinstance(given, fp.Bracket):
        room = NEAR * abs(high) + chance
        return None if low - room <= most <= high + room else "not near"
    if most < low:
        return "below"
    if isinstance(given, fp.Bracket) and least > high:
        return "lower end above"
    return None
