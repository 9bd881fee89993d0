"""What a notion of privacy is, and how levels of several steps combine in it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from fastpriv._core.rounding import sum_up
from fastpriv._core.tables import table
from fastpriv.errors import InvalidInput
from fastpriv.notions.rules import Ceiling, Rule, no_ceiling

if TYPE_CHECKING:
    from fastpriv.results import Solution, Value

__all__ = ["Law", "Notion"]

# Conditions under which a composition rule holds.
INDEPENDENT = "outputs that are independent given the database"
ADAPTIVE = "nothing: later mechanisms may depend on earlier outputs"
POSTERIOR = "nothing: a later step is counted at its worst over all posteriors"


@dataclass(frozen=True)
class Law:
    """How the levels of one notion combine: first level + sum of the later levels.

    The first step counts with its own level, each later one with a level that holds after any
    earlier outputs. In most notions the two are the same number. Under one prior they differ,
    because a later step meets the posterior and not the prior.

    Attributes
    ----------
    notion : str
        The notion of the total, a key of ``fastpriv.notions.NOTIONS``.
    first, later : str
        The notions in which the first and every later step are measured.
    name : str
        The rule in a few words.
    needs : str
        The condition under which it holds.
    source : str
        The proof.
    most : float
        A bound on every total.

    Examples
    --------
    >>> from fastpriv.accounting import LAWS
    >>> LAWS["identifiability"].later
    'dp'
    >>> LAWS["dp"].combine([0.5, 0.25, 0.25])
    1.0
    """

    notion: str
    first: str
    later: str
    name: str
    needs: str
    source: str
    most: float = math.inf

    @property
    def adds(self) -> bool:
        """Whether the total is the sum of levels of one and the same notion."""
        return self.first == self.later

    def combine(self, levels: Iterable[float]) -> float:
        """Add levels, the first in notion ``first`` and the others in ``later``. Rounded up."""
        return min(sum_up(list(levels)), self.most)


def additive(notion: str, needs: str, source: str, most: float = math.inf) -> Law:
    """Return the rule by which levels of one notion add."""
    return Law(notion, notion, notion, "levels add", needs, source, most)


Scope = Literal["mechanism", "prior", "secret", "facts"]


@dataclass(frozen=True, repr=False)
class Notion:
    """Declare one notion of privacy, or another number of an audit.

    ``measures/levels.py`` has the function that measures it, ``design/registry.py`` the program
    that finds its best mechanism.

    Attributes
    ----------
    slug : str
        Its key, such as "dp" or "pml".
    title : str
        Its name in words.
    bounds : str
        The quantity that its level bounds, as a formula in words.
    source : str
        The paper and the statement that defines it.
    scope : {"mechanism", "prior", "secret", "facts"}
        Whether it holds for every distribution of the database, depends on the prior, is about a
        secret S that reaches the output through the database, or is a fact about the prior alone.
    unit : str
        "nats", "share", "probability", "rows", "outputs" or "".
    direction : {"upper", "lower"}
        The guaranteed bound. A smaller upper bound is more private. Error probabilities and
        thresholds are bounded from below: larger is more private.
    information : bool
        Whether it is an expectation (an information or a capacity) rather than a largest ratio.
    law : Law or None
        How levels of several steps combine.
    implies : tuple of Rule
        The implications for other notions.
    ceiling : callable
        A bound on every level, given facts about the prior.
    display : {"headline", "bar", "row"}
        Where an audit shows it: at the top of the page, as a bar in the figure, or in the table
        only (second names of one number, and points of the privacy profile).

    Examples
    --------
    >>> import fastpriv as fp
    >>> notion = fp.notions.NOTIONS["identifiability"]
    >>> notion
    Notion('identifiability', nats, Wang-Ying-Zhang 2015, Definition 2)
    >>> notion.law.name
    'first level + later DP levels'
    >>> notion.level(fp.HammingChannel(3, 2, 1.0), fp.Uniform(3, 2))
    1.0
    """

    slug: str
    title: str
    bounds: str
    source: str
    scope: Scope = "mechanism"
    unit: str = "nats"
    direction: Literal["upper", "lower"] = "upper"
    information: bool = False
    law: Law | None = None
    implies: tuple[Rule, ...] = ()
    ceiling: Ceiling = no_ceiling
    display: Literal["headline", "bar", "row"] = "bar"

    def level(self, channel: Any, prior: Any = None) -> Value:
        """Return the level of a channel, under a prior where the notion depends on one."""
        measure = table("levels").get(self.slug)
        if measure is None:
            raise InvalidInput(f"{self.slug} has no function of its own. Call fastpriv.audit.")
        given = {"mechanism": (channel,), "facts": (prior,)}.get(self.scope, (channel, prior))
        if given[-1] is None:
            raise InvalidInput(
                f"prior must be a distribution, because {self.slug} depends on it; got None. "
                "Pass a prior."
            )
        value: Value = measure(*given)
        return value

    def solve(self, prior: Any, goal: float, **limits: Any) -> Solution:
        """Find the best mechanism at a level; at a distortion, of smallest mutual information."""
        program = table("programs").get(self.slug)
        if program is None:
            raise InvalidInput(
                f"{self.slug} has no program that finds its best mechanism. Use one of "
                f"{', '.join(table('programs'))}."
            )
        solution: Solution = program(prior, goal, **limits)
        return solution

    def __repr__(self) -> str:
        unit = f" {self.unit}," if self.unit else ""
        return f"Notion({self.slug!r},{unit} {self.source})"
