"""What a notion of privacy is."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from fastpriv.errors import InvalidInput
from fastpriv.notions.law import Law
from fastpriv.notions.rules import Ceiling, Rule, no_ceiling

if TYPE_CHECKING:
    from fastpriv.results import Solution, Value

__all__ = ["Notion"]

Scope = Literal["mechanism", "prior", "secret", "facts"]


@dataclass(frozen=True, repr=False)
class Notion:
    """One notion of privacy, or another number of an audit: its one declaration.

    Attributes
    ----------
    slug : str
        Its key everywhere: "dp", "pml", ...
    title : str
        Its name in words.
    bounds : str
        What its level bounds or is, as a formula in words.
    source : str
        The paper and the statement that defines it.
    measure : str or None
        The public function that computes it, by its name in ``fastpriv``, or the method of a
        prior; see :meth:`level`. None for numbers that only an audit or an implication has.
    arguments : tuple
        What the function takes after the channel and the prior.
    scope : {"mechanism", "prior", "secret", "facts"}
        Whether it holds whatever the law of the database, depends on the prior, is about a secret
        S that reaches the output through the database, or is a fact about the prior alone.
    unit : str
        "nats", "share", "probability", "rows", "outputs" or "".
    direction : {"upper", "lower"}
        Which end is guaranteed: levels are bounded from above, so that less is more private;
        chances of error and thresholds from below, so that more is.
    information : bool
        Whether it is an expectation (an information or a capacity) rather than a largest ratio.
    law : Law or None
        How levels of several releases combine.
    implies : tuple of Rule
        What follows for other notions.
    ceiling : callable
        What no level exceeds, given facts about the prior.
    program : str or None
        The public function that finds the mechanism of least distortion at a level, or of least
        level at a distortion; see :meth:`solve`.
    display : {"headline", "bar", "row"}
        How much room an audit gives it: at the top of the page, a bar in the figure, or a row of
        the table only, for second names of one number and points of the privacy profile.

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
    measure: str | None = None
    arguments: tuple[Any, ...] = ()
    scope: Scope = "mechanism"
    unit: str = "nats"
    direction: Literal["upper", "lower"] = "upper"
    information: bool = False
    law: Law | None = None
    implies: tuple[Rule, ...] = ()
    ceiling: Ceiling = no_ceiling
    program: str | None = None
    display: Literal["headline", "bar", "row"] = "bar"

    def level(self, channel: Any, prior: Any = None) -> Value:
        """Return the level of a channel, under a prior where the notion depends on one."""
        if self.measure is None:
            raise InvalidInput(f"{self.slug} has no function of its own; ask fastpriv.audit for it")
        given = {"mechanism": (channel,), "facts": (prior,)}.get(self.scope, (channel, prior))
        if given[-1] is None:
            raise InvalidInput(f"{self.slug} depends on the law of the database: give a prior")
        _, method, name = self.measure.rpartition("Distribution.")
        # By name, because measures stand above this room.
        owner = given[0] if method else importlib.import_module("fastpriv")
        value: Value = getattr(owner, name)(*(() if method else given), *self.arguments)
        return value

    def solve(self, prior: Any, goal: float, **limits: Any) -> Solution:
        """Find the best mechanism at a level; at a distortion, of least mutual information."""
        if self.program is None:
            raise InvalidInput(f"{self.slug} has no program that finds its best mechanism")
        solution: Solution = getattr(importlib.import_module("fastpriv"), self.program)(
            prior, goal, **limits
        )
        return solution

    def __repr__(self) -> str:
        unit = f" {self.unit}," if self.unit else ""
        return f"Notion({self.slug!r},{unit} {self.source})"
