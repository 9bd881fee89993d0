"""Implications between notions: from a level of one, a bound on the level of another."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fastpriv._core.rounding import LEAST, product_up, raised, sum_up

if TYPE_CHECKING:
    from fastpriv.results import Bracket

#: Factors past the rounding of a few operations, and of an entropy.
_FEW, _ENTROPY = 1.0 + 2.0**-51, 1.0 + 2.0**-44


@dataclass(frozen=True)
class Facts:
    """The numbers that implications depend on; None where they are not known.

    Attributes
    ----------
    n : int or None
        Number of rows.
    epsilon_x : float or None
        Largest log-ratio of the prior's probabilities of two neighbours.
    entropy : Bracket or None
        Entropy of the prior.
    log_least : float or None
        Logarithm of the least positive probability of a database.
    """

    n: int | None
    epsilon_x: float | None = None
    entropy: Bracket | None = None
    log_least: float | None = None

    @property
    def full_support(self) -> bool:
        """Whether every database can occur; assumed of a prior that is not given."""
        return self.epsilon_x is None or self.epsilon_x < math.inf


Bound = Callable[[float, Facts], float | None]
#: What no level of a notion exceeds, and why.
Ceiling = Callable[[Facts], tuple[float, str]]


@dataclass(frozen=True)
class Rule:
    """One implication: a level of the notion that declares it bounds the level of ``conclusion``.

    Attributes
    ----------
    conclusion : str
        The notion that is bounded.
    source : str
        Where it is proved.
    formula : str
        The bound, in terms of the level e of the premise.
    bound : callable
        The bound for a level and the facts, rounded up; None where it depends on unknown facts.
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
    """Bound by n e: two databases differ in at most n rows."""
    return None if facts.n is None else product_up(facts.n, level)


def capacity_bound(level: float, facts: Facts) -> float | None:
    """Bound by psi(e) = u - 1 - ln u, u = e/(1 - e^-e): the capacity of laws within ratios e^e.

    Take the reference law min_x W_x, divided by its sum Z. By the chord of r ln r on [1, e^e], no
    divergence from it exceeds (1 - Z) e/(1 - e^-e) + ln Z, which is largest at Z = 1/u. Both series
    below alternate and are cut after a positive term.
    """
    if level < 0.1:
        e = level * level
        x = 0.5 * level + e / 12.0 - e * e / 720.0 + e * e * e / 30240.0
    else:
        x = (level + math.expm1(-level)) / -math.expm1(-level)
    value = sum((-x) ** k / k for k in range(10, 1, -1)) if x < 0.05 else x - math.log1p(x)
    # Subnormal numbers would lose digits in later rules, and a chain of rules could go round.
    return min(level, max(raised(value, 512.0), 1e-290))


def twice(level: float, facts: Facts) -> float | None:
    """Bound by 2 e, if every database can occur."""
    return 2.0 * level if facts.full_support else None


def two_sided(level: float, facts: Facts) -> float | None:
    """Bound by -ln of the least p(y|x)/p(y) that leakage e leaves.

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


def _scaled_up(value: float, factor: float) -> float:
    """Return a positive number times a factor past its rounding.

    A subnormal number has lost digits that no factor covers, and may have become 0.
    """
    return value * factor + (0.0 if value >= sys.float_info.min else 2.0 * LEAST)


def no_ceiling(facts: Facts) -> tuple[float, str]:
    """Return infinity: the level may be any number."""
    return math.inf, ""


def at_most_one(facts: Facts) -> tuple[float, str]:
    """Return 1, of a share."""
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
