"""What a guarantee in one notion of privacy implies in all others, with the theorems."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fastpriv._core import validation as check
from fastpriv._drawing.results import outline
from fastpriv._text import html
from fastpriv._text.numbers import up
from fastpriv._text.table import table
from fastpriv.errors import Infeasible, InvalidInput, described, short
from fastpriv.notions.registry import NOTIONS, RELATED
from fastpriv.notions.rules import Facts
from fastpriv.priors import Distribution
from fastpriv.priors.base import as_prior
from fastpriv.results import Bracket

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

__all__ = ["Implications", "Step", "implications"]

#: Levels that are smaller only by the rounding of a bound are possible.
_ROUNDED = 1e-9
#: Significant digits of the levels in a table or a graph.
_DIGITS = 6


@dataclass(frozen=True)
class Step:
    """One implication that was used, from ``premise`` to ``conclusion``.

    Examples
    --------
    >>> import fastpriv as fp
    >>> step = fp.implications(0.25, "maximal-leakage").steps["mutual-information"]
    >>> step.premise, step.level
    ('maximal-leakage', 0.25)
    """

    premise: str
    conclusion: str
    level: float
    formula: str
    source: str


@dataclass(frozen=True, repr=False)
class Implications:
    """The guarantees that follow from one guarantee; see :func:`implications`.

    Attributes
    ----------
    notion, level
        The guarantee.
    levels : dict
        The best level that follows, for every notion that has one; the guarantee first.
    steps : dict
        The last ``Step`` of the chain that leads to each notion.

    Examples
    --------
    >>> import fastpriv as fp
    >>> derived = fp.implications(0.5, "information-privacy")
    >>> derived.levels["dp"]
    1.0
    >>> [step.source for step in derived.chain("dp")]
    ['Makhdoumi-Fawaz 2013, Proposition 4 (2)', 'Makhdoumi-Fawaz 2013, Definition 7']
    """

    notion: str
    level: float
    levels: dict[str, float]
    steps: dict[str, Step]

    def chain(self, notion: str) -> list[Step]:
        """Return the implications that lead from the guarantee to a notion, in order."""
        if notion not in self.levels:
            raise InvalidInput(
                f"notion must be one that follows, of {[*self.levels]}; got {described(notion)}."
            )
        steps: list[Step] = []
        while notion != self.notion:
            steps.insert(0, self.steps[notion])
            notion = steps[0].premise
        return steps

    def table(self) -> str:
        """Return the levels as text, each with the implication it comes from."""
        lines = [("notion", "level", "from", "as", "source")]
        lines.append((self.notion, up(self.level, _DIGITS), "", "", "given"))
        lines += [
            (s.conclusion, up(s.level, _DIGITS), s.premise, s.formula, s.source)
            for s in self.steps.values()
        ]
        return table(lines)

    def to_dot(self) -> str:
        """Return the chains as a graph in the DOT language of Graphviz."""
        nodes = [
            f'  "{name}" [label="{name}\\n{up(level, _DIGITS)}"];'
            for name, level in self.levels.items()
        ]
        edges = [
            f'  "{s.premise}" -> "{s.conclusion}" [label="{s.formula}\\n{s.source}"];'
            for s in self.steps.values()
        ]
        return "\n".join(["digraph implications {", "  rankdir=LR;", *nodes, *edges, "}"])

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the chains; see :func:`fastpriv.plot.implications`."""
        return outline(self.notion, self.level, self.levels, self.steps, ax)

    def _repr_html_(self) -> str:
        rows = [
            (s.conclusion, up(s.level, _DIGITS), s.premise, s.formula, s.source)
            for s in self.steps.values()
        ]
        name = f"What follows from {self.notion} at level {up(self.level, _DIGITS)}"
        return html.listing(name, ("notion", "level", "from", "as", "source"), rows)

    def __repr__(self) -> str:
        return self.table()


def implications(
    level: float,
    notion: str,
    *,
    prior: Distribution | ArrayLike | None = None,
    n: int | None = None,
) -> Implications:
    """Derive from a guarantee in one notion of privacy the levels that follow in all others.

    Parameters
    ----------
    level : float
        The guaranteed level, in nats; a fraction for "leakage-factor".
    notion : str
        Its notion: "dp", "strong-dp", "approximate-dp", "identifiability", "information-privacy",
        "pml", "pml-all-priors", "divergence", "maximal-leakage", "mutual-information",
        "leakage-factor", "contraction", "sdpi", "maximal-correlation", "max-information",
        "row-pml", "max-individual-capacity", "individual-capacity", "group-capacity",
        "channel-capacity", or, about one record under priors with independent records,
        "product-row-pml", "product-row-max-information", "product-row-information".
        ``fastpriv.notions.NOTIONS[notion].bounds`` is what its level bounds.
    prior : Distribution or 1-D array, optional
        Distribution of the databases, from which eps_X, H(S), p_min and n are computed. Without
        it, implications that depend on these are left out, and full support is assumed.
    n : int, optional
        Number of records, for group privacy; by default the prior's.

    Returns
    -------
    Implications
        Levels rounded up, each with its chain of theorems. Notions without a finite level are left
        out. In formulas e is the level of the premise and S the database.

    Raises
    ------
    Infeasible
        If no mechanism has the level under the prior: identifiability below eps_X.

    Notes
    -----
    Proposition 4 (3) of Makhdoumi-Fawaz 2013 does not hold as printed, for the worst-case
    divergence privacy (H(S) - min_y H(S|Y=y))/H(S), which can exceed epsilon/H(S). It holds for the
    Kullback-Leibler divergence of the posterior from the prior, which is used here.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(fp.implications(0.1, "identifiability", prior=[0.5, 0.5]).levels["pml"], 12)
    0.1
    >>> fp.implications(0.25, "maximal-leakage")
    notion              level  from             as  source
    maximal-leakage     0.25                        given
    mutual-information  0.25   maximal-leakage  e   Sibson order 1 below infinity
    >>> fp.implications(0.2, "contraction").levels["leakage-factor"]
    0.2
    """
    check.word(notion, "notion", RELATED)
    given = check.real(level, "level", least=0.0)
    facts = facts_of(prior, n)
    if notion == "identifiability" and prior is not None:
        _check_possible(given, as_prior(prior))
    return derive(given, notion, facts)


def _check_possible(level: float, prior: Distribution) -> None:
    """Refuse a level of identifiability that no mechanism has under the prior."""
    least = prior.epsilon_x_lower()
    if level < least * (1.0 - _ROUNDED):
        raise Infeasible(
            f"an identifiability of {described(level)} is impossible under this prior: its own "
            f"odds of neighbours reach eps_X = {described(least)}, and no output lowers them all. "
            f"Give a level of at least {described(least)}."
        )


#: Of each notion that follows: its premise, the formula and the source.
Reasons = dict[str, tuple[str, str, str]]


def derive(given: float, notion: str, facts: Facts) -> Implications:
    """Follow the rules from one guarantee, with the facts that are known."""
    levels, reasons = follow(given, notion, facts)
    order = [name for name in RELATED if name in reasons]
    return Implications(
        notion,
        given,
        {notion: given} | {name: levels[name] for name in order},
        {name: _step(name, levels, reasons) for name in order},
    )


def _step(name: str, levels: dict[str, float], reasons: Reasons) -> Step:
    """Return the last step that leads to a notion."""
    premise, formula, source = reasons[name]
    return Step(premise, name, levels[name], formula, source)


def steps_to(name: str, levels: dict[str, float], reasons: Reasons) -> tuple[Step, ...]:
    """Return the steps that lead to a notion, in order."""
    steps: list[Step] = []
    while name in reasons:
        steps.insert(0, _step(name, levels, reasons))
        name = steps[0].premise
    return tuple(steps)


def follow(given: float, notion: str, facts: Facts) -> tuple[dict[str, float], Reasons]:
    """Return the levels that follow, and why."""
    levels, reasons, pending = {notion: given}, Reasons(), {notion}
    while pending:  # rules only raise levels around a cycle, so this ends
        for premise in RELATED:
            if premise not in pending:
                continue
            pending.remove(premise)
            level = levels[premise]
            for rule in NOTIONS[premise].implies:
                name = rule.conclusion
                bound, known = rule.bound(level, facts), levels.get(name)
                if bound is None or name == notion or (known is not None and bound >= known):
                    continue
                formula, (most, why) = rule.formula, NOTIONS[name].ceiling(facts)
                if bound > most:
                    bound, formula = most, why
                if bound < math.inf:
                    levels[name] = bound
                    reasons[name] = premise, formula, rule.source
                    pending.add(name)
    return levels, reasons


def facts_of(prior: Distribution | ArrayLike | None, n: int | None) -> Facts:
    """Return the facts about a prior, or a number of records, that implications depend on."""
    records = None if n is None else check.integer(n, "n", 1, check.MAX_COUNT)
    if prior is None:
        return Facts(records)
    given = as_prior(prior)
    if records is not None and records != given.space.n:
        raise InvalidInput(
            f"n must be the number of records of the prior, {given.space.n}; got {short(records)}. "
            "Leave n out."
        )
    entropy = given.entropy()
    return Facts(
        given.space.n,
        given.epsilon_x(),
        entropy if isinstance(entropy, Bracket) else Bracket(entropy, entropy),
        given.log_smallest(),
    )
