"""What a guarantee in one notion of privacy says in all the others, with the theorem for it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fastpriv._core import validation as check
from fastpriv._drawing.outline import outline
from fastpriv._text.numbers import up
from fastpriv._text.table import table
from fastpriv.errors import InvalidInput, described, short
from fastpriv.notions.registry import NOTIONS, RELATED
from fastpriv.notions.rules import Facts
from fastpriv.priors import Distribution
from fastpriv.priors.arguments import as_prior
from fastpriv.results import Bracket

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

__all__ = ["Implications", "Step", "implications"]

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
    """Everything that follows from one guarantee; see :func:`implications`.

    Attributes
    ----------
    notion, level
        The guarantee.
    levels : dict
        Best level that follows, for every notion that one follows for; the guarantee first.
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
                f"no level of {described(notion)} follows; those that do: {[*self.levels]}"
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
        """Return the chains as a graph in the DOT language, to be drawn by Graphviz."""
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

    def __repr__(self) -> str:
        return self.table()


def implications(
    level: float,
    notion: str,
    *,
    prior: Distribution | ArrayLike | None = None,
    n: int | None = None,
) -> Implications:
    """From a guarantee in one notion of privacy, derive what theorems give in every other.

    Parameters
    ----------
    level : float
        What is guaranteed: a level in nats, a fraction for "leakage-factor".
    notion : str
        Of what: "dp", "strong-dp", "approximate-dp", "identifiability", "information-privacy",
        "pml", "pml-all-priors", "divergence", "maximal-leakage", "mutual-information",
        "leakage-factor", or, about one row under priors with independent rows, "product-row-pml",
        "product-row-max-information", "product-row-information".
        ``fastpriv.notions.NOTIONS`` says what each level bounds.
    prior : Distribution or 1-D array, optional
        Law of the databases. It gives eps_X, H(S), p_min and n to the implications that depend
        on them; without it those are left out, and the prior is taken to have full support.
    n : int, optional
        Number of rows, for group privacy; by default that of the prior.

    Returns
    -------
    Implications
        Levels rounded up, with the chain of theorems that each comes from. Notions for which no
        finite level follows are left out. In formulas e is the level of the premise, S the
        database.

    Notes
    -----
    Makhdoumi-Fawaz 2013 print a Proposition 4 (3) that is not true of their worst-case
    divergence privacy, (H(S) - min_y H(S|Y=y))/H(S): it can exceed epsilon/H(S). What holds is
    the bound on the Kullback-Leibler divergence of the posterior from the prior, used here.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(fp.implications(0.1, "identifiability", prior=[0.5, 0.5]).levels["pml"], 12)
    0.1
    >>> fp.implications(0.25, "maximal-leakage")
    notion              level  from             as  source
    maximal-leakage     0.25                        given
    mutual-information  0.25   maximal-leakage  e   Sibson order 1 below infinity
    """
    check.word(notion, "notion", RELATED, "fastpriv.notions.registry.RELATED, such as 'dp'")
    given = check.real(level, "level", least=0.0)
    return derive(given, notion, facts_of(prior, n))


def derive(given: float, notion: str, facts: Facts) -> Implications:
    """Follow the rules from one guarantee, with the facts that are known."""
    levels, steps = {notion: given}, dict[str, Step]()
    improved = True
    while improved:  # rules only raise levels around a cycle, so this ends
        improved = False
        for premise in RELATED:
            if premise not in levels:
                continue
            for rule in NOTIONS[premise].implies:
                if rule.conclusion == notion:
                    continue
                bound, formula = rule.bound(levels[premise], facts), rule.formula
                most, why = NOTIONS[rule.conclusion].ceiling(facts)
                if bound is not None and bound > most:
                    bound, formula = most, why
                if bound is not None and bound < levels.get(rule.conclusion, math.inf):
                    levels[rule.conclusion] = bound
                    steps[rule.conclusion] = Step(
                        premise, rule.conclusion, bound, formula, rule.source
                    )
                    improved = True
    order = [name for name in RELATED if name in steps]
    return Implications(
        notion,
        given,
        {notion: given} | {name: levels[name] for name in order},
        {name: steps[name] for name in order},
    )


def facts_of(prior: Distribution | ArrayLike | None, n: int | None) -> Facts:
    """Return the facts about a prior, or a number of rows, that implications depend on."""
    rows = None if n is None else check.integer(n, "n", 1, check.MAX_COUNT)
    if prior is None:
        return Facts(rows)
    law = as_prior(prior)
    if rows is not None and rows != law.space.n:
        raise InvalidInput(
            f"n must be the number of rows of the prior, {law.space.n}; got {short(rows)}. "
            "Leave n out."
        )
    entropy = law.entropy()
    return Facts(
        law.space.n,
        law.epsilon_x(),
        entropy if isinstance(entropy, Bracket) else Bracket(entropy, entropy),
        law.log_smallest(),
    )
