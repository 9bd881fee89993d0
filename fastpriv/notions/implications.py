"""What a guarantee in one notion of privacy says in all the others, with the theorem for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fastpriv._core import validation as check
from fastpriv._core.logs import round_up
from fastpriv._text.table import table
from fastpriv.errors import InvalidInput
from fastpriv.priors import Dense, Distribution
from fastpriv.results import Bracket

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

__all__ = ["NOTIONS", "Step"]

#: The notions, each with what its level bounds; "the prior" is the given one, or any fixed one.
NOTIONS: Mapping[str, str] = {
    "strong-dp": "ln p(y|x)/p(y|x') over all databases x, x' (local, free-lunch)",
    "dp": "ln p(y|x)/p(y|x') over neighbours x, x'",
    "approximate-dp": "epsilon of (epsilon, delta)-DP, for every delta >= 0",
    "product-row-pml": "leakage of an output about one row, over all priors with independent rows",
    "product-row-max-information": "max-information of one row and output, over the same priors",
    "product-row-information": "mutual information of one row and output, over the same priors",
    "identifiability": "ln p(x|y)/p(x'|y) over neighbours x, x', under the prior",
    "pml-all-priors": "leakage of an output about the database, over all priors",
    "information-privacy": "|ln p(x|y)/p(x)| over databases and outputs, under the prior",
    "pml": "leakage of an output about the database, under the prior",
    "divergence": "KL divergence of the posterior from the prior, over outputs",
    "maximal-leakage": "ln of the sum over y of max_x p(y|x), x in the support of the prior",
    "mutual-information": "mutual information of database and output, under the prior",
    "leakage-factor": "mutual information over the entropy of the prior",
}

_W, _M = "Wang-Ying-Zhang 2015", "Makhdoumi-Fawaz 2013"
_D, _P = "Wu-Xia-He 2020", "Saeidian et al. 2024"


@dataclass(frozen=True)
class Facts:
    """The numbers that implications depend on; None where they are not known."""

    n: int | None
    epsilon_x: float | None = None
    entropy: Bracket | None = None
    log_least: float | None = None

    @property
    def full_support(self) -> bool:
        """Whether every database can occur; taken for granted of a prior that is not given."""
        return self.epsilon_x is None or self.epsilon_x < math.inf


@dataclass(frozen=True)
class _Rule:
    """One implication: a level of ``premise`` gives ``bound(level, facts)`` of ``conclusion``."""

    premise: str
    conclusion: str
    source: str
    formula: str
    bound: Callable[[float, Facts], float | None]


def _same(level: float, facts: Facts) -> float:
    return level


def _plus_epsilon_x(level: float, facts: Facts) -> float | None:
    return None if facts.epsilon_x is None else round_up(level + facts.epsilon_x)


def _groups(level: float, facts: Facts) -> float | None:
    return None if facts.n is None else round_up(facts.n * level)


def _twice(level: float, facts: Facts) -> float | None:
    return 2.0 * level if facts.full_support else None


def _two_sided(level: float, facts: Facts) -> float | None:
    """-ln of the least p(y|x)/p(y) that leakage e leaves: (1 - (1-p) E)/p with E = e^e, p = p_min.

    From p_Y(y) <= p(x) W[x, y] + (1 - p(x)) e^e p_Y(y). In terms of E - 1: 1 - (E - 1)(1-p)/p.
    """
    if facts.log_least is None:
        return None
    if facts.log_least >= 0.0 or level == 0.0:
        return 0.0
    odds = math.exp(facts.log_least) / -math.expm1(facts.log_least)
    drop = math.expm1(level) / odds * (1.0 + 2.0**-49) if odds > 0.0 and level < 1.0 else 1.0
    return max(level, round_up(-math.log1p(-drop))) if drop < 1.0 else None


def _over_entropy(level: float, facts: Facts) -> float | None:
    if facts.entropy is None or facts.entropy.lower <= 0.0:
        return None
    return level / facts.entropy.lower * (1.0 + 2.0**-44)


def _times_entropy(level: float, facts: Facts) -> float | None:
    return None if facts.entropy is None else level * facts.entropy.upper * (1.0 + 2.0**-44)


_RULES = (
    _Rule("strong-dp", "dp", f"{_M}, Definition 7", "e", _same),
    _Rule("dp", "strong-dp", "group privacy, one row at a time", "n e", _groups),
    _Rule("strong-dp", "information-privacy", f"{_M}, Proposition 4 (1)", "e", _same),
    _Rule("information-privacy", "strong-dp", f"{_M}, Proposition 4 (2)", "2 e", _twice),
    _Rule("dp", "approximate-dp", f"{_M}, Proposition 4 (5)", "e", _same),
    _Rule("dp", "product-row-pml", f"{_P}, Theorem 4.2 (3)", "e", _same),
    _Rule("product-row-pml", "dp", f"{_P}, Theorem 4.2 (3)", "e", _same),
    _Rule("dp", "product-row-max-information", f"{_D}, Theorem 1", "e", _same),
    _Rule("product-row-max-information", "dp", f"{_D}, Theorem 1", "e", _same),
    _Rule(
        "product-row-max-information", "product-row-information", f"{_D}, Corollary 1", "e", _same
    ),
    _Rule("dp", "identifiability", f"{_W}, Theorem 1 (eq. 25)", "e + eps_X", _plus_epsilon_x),
    _Rule("identifiability", "dp", f"{_W}, Theorem 1 (eq. 25)", "e + eps_X", _plus_epsilon_x),
    _Rule("strong-dp", "pml-all-priors", f"{_P}, Theorem 4.5 (1)", "e", _same),
    _Rule("pml-all-priors", "strong-dp", f"{_P}, Theorem 4.5 (1)", "e", _same),
    _Rule("pml-all-priors", "pml", f"{_P}, Definition 2.6", "e", _same),
    _Rule("information-privacy", "pml", f"{_P}, Theorem 2.4", "e", _same),
    _Rule(
        "pml",
        "information-privacy",
        f"{_P}, proof of Proposition 3.8",
        "max(e, -ln(1 - (e^e - 1)(1 - p_min)/p_min))",
        _two_sided,
    ),
    _Rule("pml", "divergence", f"{_M}, Proposition 4 (3) for KL", "e", _same),
    _Rule("pml", "maximal-leakage", f"{_P}, Definition 2.3, averaged", "e", _same),
    _Rule("divergence", "mutual-information", f"{_M}, Proposition 4 (4)", "e", _same),
    _Rule("maximal-leakage", "mutual-information", "Sibson order 1 below infinity", "e", _same),
    _Rule("mutual-information", "leakage-factor", f"{_M}, Definition 1", "e / H(S)", _over_entropy),
    _Rule("leakage-factor", "mutual-information", f"{_M}, Definition 1", "e H(S)", _times_entropy),
)


def _ceiling(notion: str, facts: Facts) -> tuple[float, str]:
    """Return what a level cannot exceed whatever the mechanism, and why."""
    if notion == "leakage-factor":
        return 1.0, "at most 1"
    if notion in ("mutual-information", "divergence") and facts.entropy is not None:
        if notion == "mutual-information":
            return facts.entropy.upper * (1.0 + 2.0**-44), "at most H(S)"
        return _most(facts), "at most -ln p_min"
    return (_most(facts), "at most -ln p_min") if notion == "pml" else (math.inf, "")


def _most(facts: Facts) -> float:
    return math.inf if facts.log_least is None else round_up(-facts.log_least)


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
    >>> found = fp.implications(0.5, "information-privacy")
    >>> found.levels["dp"]
    1.0
    >>> [step.source for step in found.chain("dp")]
    ['Makhdoumi-Fawaz 2013, Proposition 4 (2)', 'Makhdoumi-Fawaz 2013, Definition 7']
    """

    notion: str
    level: float
    levels: dict[str, float]
    steps: dict[str, Step]

    def chain(self, notion: str) -> list[Step]:
        """Return the implications that lead from the guarantee to a notion, in order."""
        if notion not in self.levels:
            raise InvalidInput(f"no level of {notion!r} follows; those that do: {[*self.levels]}")
        found: list[Step] = []
        while notion != self.notion:
            found.insert(0, self.steps[notion])
            notion = found[0].premise
        return found

    def table(self) -> str:
        """Return the levels as text, each with the implication it comes from."""
        lines = [("notion", "level", "from", "as", "source")]
        lines.append((self.notion, f"{self.level:.6g}", "", "", "given"))
        lines += [
            (s.conclusion, f"{s.level:.6g}", s.premise, s.formula, s.source)
            for s in self.steps.values()
        ]
        return table(lines)

    def to_dot(self) -> str:
        """Return the chains as a graph in the DOT language, to be drawn by Graphviz."""
        nodes = [f'  "{name}" [label="{name}\\n{v:.6g}"];' for name, v in self.levels.items()]
        edges = [
            f'  "{s.premise}" -> "{s.conclusion}" [label="{s.formula}\\n{s.source}"];'
            for s in self.steps.values()
        ]
        return "\n".join(["digraph implications {", "  rankdir=LR;", *nodes, *edges, "}"])

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the chains; see :func:`fastpriv.plot.implications`."""
        from fastpriv.plot import implications

        return implications(self, ax)

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
        ``fastpriv.notions.implications.NOTIONS`` says what each level bounds.
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
    if not isinstance(notion, str) or notion not in NOTIONS:
        raise InvalidInput(f"notion must be one of {', '.join(NOTIONS)}; got {notion!r:.60}")
    given = check.real(level, "level", least=0.0)
    return derive(given, notion, facts_of(prior, n))


def derive(given: float, notion: str, facts: Facts) -> Implications:
    """Follow the rules from one guarantee, with the facts that are known."""
    levels, steps = {notion: given}, dict[str, Step]()
    improved = True
    while improved:  # rules only raise levels around a cycle, so this ends
        improved = False
        for rule in _RULES:
            if rule.premise not in levels or rule.conclusion == notion:
                continue
            bound, formula = rule.bound(levels[rule.premise], facts), rule.formula
            most, why = _ceiling(rule.conclusion, facts)
            if bound is not None and bound > most:
                bound, formula = most, why
            if bound is not None and bound < levels.get(rule.conclusion, math.inf):
                levels[rule.conclusion] = bound
                steps[rule.conclusion] = Step(
                    rule.premise, rule.conclusion, bound, formula, rule.source
                )
                improved = True
    order = [name for name in NOTIONS if name in steps]
    return Implications(
        notion,
        given,
        {notion: given} | {name: levels[name] for name in order},
        {name: steps[name] for name in order},
    )


def facts_of(prior: Distribution | ArrayLike | None, n: int | None) -> Facts:
    """Return the facts about a prior, or a number of rows, that implications depend on."""
    rows = None if n is None else check.integer(n, "n", 1)
    if prior is None:
        return Facts(rows)
    law = prior if isinstance(prior, Distribution) else Dense(prior)
    if rows is not None and rows != law.space.n:
        raise InvalidInput(f"n = {rows} but the prior has {law.space.n} rows; leave n out")
    entropy = law.entropy()
    return Facts(
        law.space.n,
        law.epsilon_x(),
        entropy if isinstance(entropy, Bracket) else Bracket(entropy, entropy),
        law._log_least(),
    )
