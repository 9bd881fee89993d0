"""Implications between notions: a level of one bounds the level of another."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fastpriv._core.rounding import LEAST, product_up, raised, root_up, sum_up

if TYPE_CHECKING:
    from fastpriv.results import Bracket

#: Factor past the rounding of two or three operations, of 2^-53 each.
_FEW = 1.0 + 2.0**-51
#: Factor past the rounding of an entropy: 512 operations of 2^-53 each.
_ENTROPY = 1.0 + 2.0**-44
#: Relative error of the capacity bound, in units of 2^-53, with much to spare.
_PSI_ERROR = 512.0
#: Below this level the series of u - 1 is used; cutting it adds less than 1e-12 of the sum.
_SMALL_LEVEL = 0.1
#: Below this u - 1 the series of psi is used; cutting it adds less than 1e-12 of the sum.
_SMALL_EXCESS = 0.05
#: Largest exponent of a double.
_LARGEST = 700.0
#: Smallest bound: products of smaller ones are subnormal and lose digits, and a chain of rules
#: could go round.
_SMALLEST = 1e-290


@dataclass(frozen=True)
class Facts:
    """The numbers that implications depend on; None if they are not known.

    Attributes
    ----------
    n : int or None
        Number of records.
    epsilon_x : float or None
        Largest log-ratio of the prior's probabilities of two neighbours.
    entropy : Bracket or None
        Entropy of the prior.
    log_least : float or None
        Logarithm of the smallest positive probability of a database.
    """

    n: int | None
    epsilon_x: float | None = None
    entropy: Bracket | None = None
    log_least: float | None = None

    @property
    def full_support(self) -> bool:
        """Whether every database can occur; assumed if no prior is given."""
        return self.epsilon_x is None or self.epsilon_x < math.inf


Bound = Callable[[float, Facts], float | None]
#: A bound on every level of a notion, and the reason.
Ceiling = Callable[[Facts], tuple[float, str]]


@dataclass(frozen=True)
class Rule:
    """One implication: a level of the notion that declares it bounds the level of ``conclusion``.

    Attributes
    ----------
    conclusion : str
        The notion that is bounded.
    source : str
        The proof.
    formula : str
        The bound, in terms of the level e of the premise.
    bound : callable
        The bound for a level and the facts, rounded up; None if it depends on unknown facts.
    """

    conclusion: str
    source: str
    formula: str
    bound: Bound


def same(conclusion: str, source: str) -> Rule:
    """Return the rule by which the level of the premise is a bound itself."""
    return Rule(conclusion, source, "e", lambda level, facts: level)


def plus_epsilon_x(level: float, facts: Facts) -> float | None:
    """Bound by e + eps_X."""
    return None if facts.epsilon_x is None else sum_up([level, facts.epsilon_x * _FEW])


def groups(level: float, facts: Facts) -> float | None:
    """Bound by n e: two databases differ in at most n records."""
    if facts.n is None or facts.n == 1:
        return None if facts.n is None else level
    return product_up(facts.n, level)


def capacity_bound(level: float, facts: Facts) -> float | None:
    """Bound by psi(e) = u - 1 - ln u with u = e/(1 - e^-e), the capacity of rows within e^e."""
    # Divide min_x W_x by its sum Z, as reference distribution. By the chord of r ln r on [1, e^e],
    # no divergence from it exceeds (1 - Z) e/(1 - e^-e) + ln Z, which is largest at Z = 1/u. Both
    # series below alternate and are cut after a positive term.
    if level < _SMALL_LEVEL:
        e = level * level
        x = 0.5 * level + e / 12.0 - e * e / 720.0 + e * e * e / 30240.0
    else:
        x = (level + math.expm1(-level)) / -math.expm1(-level)
    small = x < _SMALL_EXCESS
    value = sum((-x) ** k / k for k in range(10, 1, -1)) if small else x - math.log1p(x)
    return min(level, max(raised(value, _PSI_ERROR), _SMALLEST))


def twice(level: float, facts: Facts) -> float | None:
    """Bound by 2 e, if every database can occur."""
    return 2.0 * level if facts.full_support else None


def two_sided(level: float, facts: Facts) -> float | None:
    """Bound by -ln of the smallest p(y|x)/p(y) at leakage e.

    With E = e^e and p = p_min that ratio is at least (1 - (1-p) E)/p, because
    p_Y(y) <= p(x) W[x, y] + (1 - p(x)) E p_Y(y). In terms of E - 1: 1 - (E - 1)(1-p)/p.
    """
    if facts.log_least is None:
        return None
    if facts.log_least >= 0.0 or level == 0.0:
        return 0.0
    odds = math.exp(facts.log_least) / -math.expm1(facts.log_least)
    drop = raised(math.expm1(level) / odds, 16.0) if odds > 0.0 and level < 1.0 else 1.0
    return max(level, -math.log1p(-drop) * _FEW) if drop < 1.0 else None


def over_entropy(level: float, facts: Facts) -> float | None:
    """Bound by e / H(S)."""
    if facts.entropy is None or facts.entropy.lower <= 0.0:
        return None
    return _scaled_up(level / facts.entropy.lower, _ENTROPY) if level > 0.0 else 0.0


def times_entropy(level: float, facts: Facts) -> float | None:
    """Bound by e H(S)."""
    if facts.entropy is None:
        return None
    if level == 0.0 or facts.entropy.upper == 0.0:
        return 0.0
    return _scaled_up(level * facts.entropy.upper, _ENTROPY)


def root(level: float, facts: Facts) -> float | None:
    """Bound by the square root of e."""
    return min(1.0, root_up(level)) if level > 0.0 else 0.0


def correlated(level: float, facts: Facts) -> float | None:
    """Bound by ln(1 + e^2 (1/p_min - 1)), the information at a maximal correlation e.

    I(X; Y) is at most ln(1 + c), where c is the chi-square divergence of the joint distribution
    from the product: the sum of squared correlations, at most N - 1 of them, and N <= 1/p_min.
    """
    if facts.log_least is None:
        return None
    if level == 0.0 or facts.log_least >= 0.0:
        return 0.0
    odds = math.expm1(-facts.log_least) if facts.log_least > -_LARGEST else math.inf
    square = raised(level * level * odds, 16.0)
    return max(raised(math.log1p(square), 16.0), _SMALLEST) if square < math.inf else None


def single_record(level: float, facts: Facts) -> float | None:
    """Bound by e if there is one record: the record is the database."""
    return level if facts.n == 1 else None


def _scaled_up(value: float, factor: float) -> float:
    """Return a positive number times a factor past its rounding, also if it is subnormal."""
    return value * factor + (0.0 if value >= sys.float_info.min else 2.0 * LEAST)


def no_ceiling(facts: Facts) -> tuple[float, str]:
    """Return infinity: the level may be any number."""
    return math.inf, ""


def at_most_one(facts: Facts) -> tuple[float, str]:
    """Return 1, for a share."""
    return 1.0, "at most 1"


def at_most_entropy(facts: Facts) -> tuple[float, str]:
    """Return H(S)."""
    return (
        (math.inf, "")
        if facts.entropy is None
        else (facts.entropy.upper * _ENTROPY, "at most H(S)")
    )


def at_most_rarest(facts: Facts) -> tuple[float, str]:
    """Return -ln p_min: p(x|y)/p(x) is at most 1/p(x)."""
    if facts.log_least is None:
        return math.inf, ""
    return -facts.log_least * _FEW, "at most -ln p_min"
