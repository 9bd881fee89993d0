"""``audit``: measure all that applies, point at what attains it, and say what follows."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._text.words import top, where
from fastpriv.auditing.case import Case, Notion
from fastpriv.auditing.mechanism import ALWAYS
from fastpriv.auditing.prior import FACTS, UNDER_PRIOR
from fastpriv.auditing.report import Audit, Implied, Level
from fastpriv.auditing.secret import ABOUT_SECRET, SecretCase, checked
from fastpriv.channels import AbstractChannel, Channel
from fastpriv.errors import Infeasible, InvalidInput, SolverFailure, TooLarge
from fastpriv.measures.arguments import as_channel, as_pair
from fastpriv.notions.implications import NOTIONS, derive, facts_of
from fastpriv.priors import Dense, Distribution

__all__ = ["audit"]

_LEFT_OUT = (Infeasible, InvalidInput, SolverFailure, TooLarge)


def audit(
    channel: AbstractChannel | ArrayLike,
    prior: Distribution | ArrayLike | None = None,
    joint: ArrayLike | None = None,
    *,
    name: str | None = None,
    time_limit: float = 3.0,
) -> Audit:
    """Say how private a mechanism is: every level that applies, its meaning, and its worst case.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism. A plain matrix is one row with as many values as it has rows, unless the
        prior says otherwise.
    prior : Distribution or 1-D array, optional
        Law of the databases; without it, levels that need one are skipped.
    joint : 2-D array, optional
        ``joint[s, x]`` = P(S = s, X = x) of a secret S that reaches the output through the
        database; adds what the output tells about S. Its law of X is the prior, and a prior that
        is given as well must agree with it.
    name : str, optional
        What to call the mechanism; by default what it is.
    time_limit : float
        Seconds for the searches (capacities of individuals), which return brackets that are as
        tight as time allowed. Large measures that would begin later are skipped; small ones are
        always taken.

    Returns
    -------
    Audit
        Shows as a table and prints with explanations; ``audit["dp"]`` is a number or a
        :class:`Bracket`, ``.levels["dp"]`` has its meaning and what attains it, ``.implied`` says
        which guarantee follows from which, ``.skipped`` what was not measured and why;
        ``.to_dict``, ``.to_json``, ``.to_html``.

    Notes
    -----
    Levels are those of the single measures, rounded against the mechanism, in each channel's own
    structure: a million rows of randomised response take seconds. Optimisations over
    matrices with more than 2^20 entries are skipped; call the measure for them. Single measures
    are not interrupted, so that they may overrun the limit; half a minute past it none is begun.

    Examples
    --------
    >>> import fastpriv as fp
    >>> audit = fp.audit(fp.HammingChannel(1_000_000, 2, 0.5))
    >>> audit["dp"], audit["strong-dp"]
    (0.5, 500000.0)
    >>> audit.levels["dp"].meaning
    'Changing one row changes the chance of any output by a factor of at most 1.649.'
    >>> fp.audit([[0.9, 0.1], [0.2, 0.8]], [0.5, 0.5]).levels["identifiability"].where
    'Output 1, for 1 against 0, which differ in row 0.'
    """
    limit = check.real(time_limit, "time_limit", least=0.0)
    mechanism, law = _arguments(channel, prior, joint)
    case = Case(mechanism, law, limit)
    found = _Findings()
    found.add(ALWAYS, case, "mechanism")
    notes = _advice(mechanism)
    if law is None:
        found.skip(UNDER_PRIOR, "it depends on the law of the database: give prior=")
    else:
        found.add(UNDER_PRIOR, case, "prior")
        found.add(FACTS, case, "facts")
    if joint is not None:
        secret = SecretCase(mechanism, checked(joint, mechanism.space.size), limit)
        found.add(ABOUT_SECRET, secret, "secret")
    return Audit(
        name=repr(mechanism) if name is None else str(name),
        channel=mechanism,
        prior=law,
        levels=found.levels,
        implied=_implied(found.levels, mechanism, law),
        skipped=found.skipped,
        notes=notes,
    )


def _arguments(
    channel: AbstractChannel | ArrayLike,
    prior: Distribution | ArrayLike | None,
    joint: ArrayLike | None,
) -> tuple[AbstractChannel, Distribution | None]:
    """Return the mechanism and the law of the database, which prior and joint must agree on."""
    if prior is None:
        mechanism, law = as_channel(channel), None
    else:
        mechanism, law = as_pair(channel, prior)
    if joint is None:
        return mechanism, law
    marginal = checked(joint, mechanism.space.size).sum(axis=0)
    if law is None:
        return mechanism, Dense(marginal, mechanism.space.sizes)
    apart = np.abs(law._vector() - marginal)
    if apart.max() > check.SUM_TOLERANCE:
        x = int(apart.argmax())
        raise InvalidInput(
            f"prior and joint disagree: database {x} has probability {law._vector()[x]:g} under "
            f"the prior, but joint[:, {x}] adds up to {marginal[x]:g}; give one of them only"
        )
    return mechanism, law


class _Findings:
    """Levels as they are found, and the reasons for those that are not."""

    def __init__(self) -> None:
        self.levels: dict[str, Level] = {}
        self.skipped: dict[str, str] = {}

    def skip(self, notions: Iterable[Notion], why: str) -> None:
        """Leave notions out."""
        self.skipped |= {notion.slug: why for notion in notions}

    def add(self, notions: Iterable[Notion], case: Case, scope: str) -> None:
        """Measure notions one after the other; none of them spoils the others."""
        for notion in notions:
            try:
                case.begin()
                value = notion.measure(case)
                meaning = notion.says(value, case)
            except _LEFT_OUT as problem:
                self.skip([notion], str(problem))
                continue
            worst, place = None, ""
            if notion.worst is not None and top(value) > 0:
                try:
                    worst = notion.worst(case)
                    if worst is None:
                        raise TooLarge("it is too long to be listed")
                    excluded = notion.slug in ("ruling-out", "disclosure")
                    level = math.inf if excluded else top(value)
                    place = where(worst, level, "S = " if scope == "secret" else "")
                except _LEFT_OUT as problem:
                    place = f"What attains it was not located: {problem}"
            self.levels[notion.slug] = Level(
                notion=notion.slug,
                title=notion.title,
                value=value,
                unit=notion.unit,
                meaning=meaning,
                worst=worst,
                where=place,
                source=notion.source,
                scope=scope,
            )


def _advice(mechanism: AbstractChannel) -> tuple[str, ...]:
    """Point out that a matrix without a space may be meant to have several rows."""
    size = mechanism.space.size
    if not isinstance(mechanism, Channel) or mechanism.space.n > 1 or size > 1 << 31:
        return ()
    for m in range(2, math.isqrt(size) + 1):
        k = round(math.log(size, m))
        if m**k == size:
            return (
                f"the {size} inputs were taken for values of a single row; if they are databases "
                f"of {k} rows with {m} values each, pass Channel(matrix, [{m}] * {k}); on the "
                f"command line --sizes {','.join([str(m)] * k)}",
            )
    return ()


def _implied(
    levels: dict[str, Level], mechanism: AbstractChannel, prior: Distribution | None
) -> list[Implied]:
    """Derive from every measured level what follows, and keep the best for each notion."""
    try:
        facts = facts_of(prior, mechanism.space.n)
    except TooLarge:  # the prior's facts would take too much
        facts = facts_of(None, mechanism.space.n)
    best: dict[str, Implied] = {}
    for premise in NOTIONS:
        if premise == "leakage-factor" or premise not in levels:
            continue  # the factor is the mutual information over again
        if not math.isfinite(top(levels[premise].value)):
            continue
        found = derive(top(levels[premise].value), premise, facts)
        for notion in found.steps:
            if notion == "maximal-leakage" and not facts.full_support:
                continue  # measured over all databases, implied over those that can occur
            known = best.get(notion)
            if math.isfinite(found.levels[notion]) and (
                known is None or found.levels[notion] < known.level
            ):
                measured = levels[notion].value if notion in levels else None
                chain = tuple(found.chain(notion))
                best[notion] = Implied(notion, found.levels[notion], premise, chain, measured)
    return [best[notion] for notion in NOTIONS if notion in best]
