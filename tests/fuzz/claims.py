"""The questions, what the library claims about each answer, and whether the claim is true."""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import mpmath
from mpmath import mpf

import fastpriv as fp
import oracles as o
from fastpriv.errors import FastprivError
from fuzz import specs
from oracles.correlation import maximal_correlation, pair_contraction, sdpi_ratio
from oracles.pointwise import information_privacy, pml
from oracles.profile import attained_delta, declared_pair, worst_delta, worst_epsilon

#: Relative error of averages, which are rounded to nearest.
NEAR = mpf("1e-12")


@dataclass(frozen=True)
class Question:
    """One measure: how to ask it, its true value or bounds on it, and what is claimed."""

    ask: Callable
    truth: Callable
    claim: str
    prior: bool = False
    weight: int = 4
    #: Averages below this number may be wrong: they come from chances near the least double.
    least: float = 5e-324
    #: Most digits that are needed: 400 tell probabilities from each other down to the least double.
    digits: int = 10**4
    #: Most databases, where the truth takes long.
    databases: int = 10**4


@dataclass(frozen=True)
class Violation:
    """An answer that breaks its claim, in one line."""

    case: dict
    kind: str
    answer: str
    truth: str

    def __str__(self):
        return f"{self.case['question']}: {self.kind}: got {self.answer}, truth {self.truth}"


class Case:
    """A case with everything that its questions need, exact and in the library."""

    def __init__(self, spec):
        self.spec = spec
        self.sizes = specs.sizes_of(spec["channel"])
        self.channel = specs.build_channel(spec["channel"])
        self.prior = specs.build_prior(spec["prior"])

    @cached_property
    def W(self):  # noqa: N802
        """The exact matrix, entries that were given as floats taken as they are."""
        return specs.true_channel(self.spec["channel"])

    @cached_property
    def p(self):
        """The exact prior."""
        return specs.true_prior(self.spec["prior"])


def _both(value):
    return value, value


def _profile_truth(case):
    pairs = o.neighbour_pairs(case.sizes)
    count, epsilon = case.spec["count"], case.spec["epsilon"]
    return min(mpf(1), worst_delta([(case.W, count)], pairs, epsilon))


def _composed(case):
    part = fp.accounting.PrivacyProfile.from_epsilon_delta(*case.spec["part"])
    whole = fp.accounting.PrivacyProfile.of(case.channel).self_compose(case.spec["count"])
    return whole.compose(part)


def _composed_delta(case):
    pairs, count = o.neighbour_pairs(case.sizes), case.spec["count"]
    extra, epsilon = declared_pair(*case.spec["part"]), case.spec["epsilon"]
    if not pairs:  # of the same people, whom the other release has neighbours of
        return attained_delta([(extra, 1)], 0, 1, epsilon)
    both = [([case.W[x], case.W[z]], count) for x, z in [*pairs, *((z, x) for x, z in pairs)]]
    found = max(attained_delta([one, (extra, 1)], 0, 1, epsilon) for one in both)
    return min(mpf(1), found)


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
    low = max(pairs, default=mpf(0))
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
    return best


QUESTIONS = {
    "dp_level": Question(
        lambda c: fp.dp_level(c.channel), lambda c: _both(o.dp_level(c.W, c.sizes)), "level"
    ),
    "strong_dp_level": Question(
        lambda c: fp.strong_dp_level(c.channel), lambda c: _both(o.strong_dp_level(c.W)), "level"
    ),
    "leakage_capacity": Question(
        lambda c: fp.leakage_capacity(c.channel), lambda c: _both(o.strong_dp_level(c.W)), "level"
    ),
    "maximal_leakage": Question(
        lambda c: fp.maximal_leakage(c.channel), lambda c: _both(o.maximal_leakage(c.W)), "level"
    ),
    "hockey_stick": Question(
        lambda c: fp.hockey_stick(c.channel, c.spec["epsilon"]),
        lambda c: _both(min(mpf(1), o.hockey_stick(c.W, c.sizes, c.spec["epsilon"]))),
        "level",
    ),
    "identifiability_level": Question(
        lambda c: fp.identifiability_level(c.channel, c.prior),
        lambda c: _both(o.identifiability_level(c.W, c.p, c.sizes)),
        "level",
        prior=True,
    ),
    "pml_level": Question(
        lambda c: fp.pml_level(c.channel, c.prior),
        lambda c: _both(max(pml(c.W, c.p))),
        "level",
        prior=True,
    ),
    "information_privacy_level": Question(
        lambda c: fp.information_privacy_level(c.channel, c.prior),
        lambda c: _both(information_privacy(c.W, c.p)),
        "level",
        prior=True,
    ),
    "max_information": Question(
        lambda c: fp.max_information(c.channel, c.prior),
        lambda c: _both(max(pml(c.W, c.p))),
        "level",
        prior=True,
    ),
    "mutual_information": Question(
        lambda c: fp.mutual_information(c.channel, c.prior),
        lambda c: _both(o.mutual_information(c.W, c.p)),
        "near",
        prior=True,
    ),
    "distortion": Question(
        lambda c: fp.distortion(c.channel, c.prior),
        lambda c: _both(o.distortion(c.W, c.p, c.sizes)),
        "near",
        prior=True,
        least=1e-120,
    ),
    "maximal_correlation": Question(
        lambda c: fp.maximal_correlation(c.channel, c.prior),
        lambda c: _both(_correlation(c)),
        "level",
        prior=True,
        weight=2,
    ),
    "contraction_coefficient": Question(
        lambda c: fp.contraction_coefficient(c.channel),
        _contraction,
        "level",
        weight=1,
    ),
    "sdpi_constant": Question(
        lambda c: fp.sdpi_constant(c.channel, c.prior, time_limit=None),
        lambda c: (_sdpi_least(c), mpf(1)),
        "bracket",
        prior=True,
        weight=1,
    ),
    "channel_capacity": Question(
        lambda c: fp.channel_capacity(c.channel), lambda c: o.capacity(c.W, 60), "bracket", weight=1
    ),
    "profile": Question(
        lambda c: (
            fp.accounting.PrivacyProfile.of(c.channel)
            .self_compose(c.spec["count"])
            .delta(c.spec["epsilon"])
        ),
        lambda c: _both(_profile_truth(c)),
        "bracket",
        weight=2,
    ),
    "composed_delta": Question(
        lambda c: _composed(c).delta(c.spec["epsilon"]),
        lambda c: _both(_composed_delta(c)),
        "bracket",
        weight=2,
        digits=400,
        databases=4,
    ),
    "composed_epsilon": Question(
        lambda c: _composed(c).epsilon(c.spec["delta"]),
        _composed_epsilon,
        "bracket",
        weight=2,
        digits=400,
        databases=4,
    ),
    "epsilon_x": Question(
        lambda c: c.prior.epsilon_x(), lambda c: _both(o.epsilon_x(c.p, c.sizes)), "level", True
    ),
    "epsilon_hat": Question(
        lambda c: c.prior.epsilon_hat(), lambda c: _both(o.epsilon_hat(c.p, c.sizes)), "level", True
    ),
}


def answer(spec):
    """Ask one case: the violation, or None; an error of ours in words is an answer too."""
    question = QUESTIONS[spec["question"]]
    digits = min(60 - 4 * int(math.log10(specs.least_number(spec))), question.digits)
    with mpmath.workdps(digits), warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            case = Case(spec)
            given = question.ask(case)
        except FastprivError:
            return None
        except Exception as error:
            return Violation(spec, "raised", repr(error)[:200], "no error")
        low, high = _truth(question, case)
        broken = _broken(question, given, low, high)
        shown = mpmath.nstr(low, 20) if low == high else f"{mpmath.nstr(low, 17)} or more"
        return Violation(spec, broken, repr(given), shown) if broken else None


def _truth(question, case):
    """Bounds on the truth, over the ways to read the numbers of a channel."""
    low, high = question.truth(case)
    for again in specs.readings(case.spec["channel"], case.W, case.channel):
        case.W = again
        other = question.truth(case)
        low, high = min(low, other[0]), max(high, other[1])
    return low, high


def _broken(question, given, low, high):
    """Return what is wrong with an answer, or None."""
    least, most = (given.lower, given.upper) if isinstance(given, fp.Bracket) else (given, given)
    if math.isnan(least) or math.isnan(most):
        return "nan"
    slack = mpf(10) ** (20 - mpmath.mp.dps)
    low, high = low - slack * (1 + abs(low)), high + slack * (1 + abs(high))
    if question.claim == "near" and not isinstance(given, fp.Bracket):
        room = NEAR * abs(high) + question.least
        return None if low - room <= most <= high + room else "not near"
    if most < low:
        return "below"
    if isinstance(given, fp.Bracket) and least > high:
        return "lower end above"
    return None
