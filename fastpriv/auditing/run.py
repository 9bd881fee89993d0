"""``audit``: measure every notion that applies, find what attains it, and derive what follows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.clock import Clock
from fastpriv.auditing.case import Case, SecretCase, as_joint, guaranteed
from fastpriv.auditing.report import Audit, Implied, Level
from fastpriv.auditing.sentences import LINES, Line, where
from fastpriv.channels import AbstractChannel, Channel
from fastpriv.errors import (
    Infeasible,
    InvalidInput,
    SolverFailure,
    TooLarge,
    described,
    did_you_mean,
)
from fastpriv.measures.inputs import as_channel, as_pair
from fastpriv.notions.implications import facts_of, follow, steps_to
from fastpriv.notions.notion import Notion
from fastpriv.notions.registry import NOTIONS, RELATED
from fastpriv.priors import Dense, Distribution
from fastpriv.results import Value, Worst, top

if TYPE_CHECKING:
    from fastpriv.releasing.release import Release
    from fastpriv.releasing.report import ReleaseReport

__all__ = ["audit"]

#: Errors of one measure, which do not end the audit.
_LEFT_OUT = (Infeasible, InvalidInput, SolverFailure, TooLarge)
#: Most inputs of a matrix for an audit to ask whether they are several records.
_ADVISED = 1 << 31


def audit(
    channel: AbstractChannel | ArrayLike | Release | ReleaseReport,
    prior: Distribution | ArrayLike | None = None,
    joint: ArrayLike | None = None,
    *,
    notions: Iterable[str] | None = None,
    name: str | None = None,
    time_limit: float | None = None,
) -> Audit:
    """Measure every level of a mechanism that applies, with its meaning and its worst case.

    Parameters
    ----------
    channel : channel, 2-D array, Release or ReleaseReport
        The mechanism. A 2-D array is a mechanism on one record; row x is the output distribution
        for value x. The sizes of a prior take precedence. For a release, the mechanism on one
        person's record, with all of its columns, is audited.
    prior : Distribution or 1-D array, optional
        Distribution of the databases. Without it, levels that need one are skipped.
    joint : 2-D array, optional
        ``joint[s, x]`` = P(S = s, X = x) of a secret S that reaches the output through the
        database. Adds the levels about S. Its distribution of X is the prior; a prior that is
        given as well must agree with it.
    notions : list of str, optional
        Which levels to measure, by their slugs, such as ``["dp", "pml"]``; by default all that
        apply.
    name : str, optional
        What to call the mechanism; by default what it is.
    time_limit : float, optional
        Seconds for the whole audit. Searches (individual capacities) then return brackets that
        are as tight as time allowed, and large measures that would begin later are skipped. By
        default the work is bounded instead, and an audit has the same numbers on every machine.

    Returns
    -------
    Audit
        Shows as a table and prints with explanations. ``audit["dp"]`` is a number or a
        :class:`Bracket`; ``.levels["dp"]`` has its meaning and what attains it. ``.implied`` lists
        guarantees that follow from others, ``.skipped`` the notions that were not measured and
        why. It is written by ``.to_dict``, ``.to_json`` and ``.to_html``.

    Notes
    -----
    Levels are rounded against the mechanism. Each is measured in the channel's own structure: a
    million records of randomised response take seconds. Optimisations over matrices with more
    than 2^20 entries are skipped; call the measure for them. Closed forms are not interrupted, so
    the last of them may end a second after the time limit.

    Examples
    --------
    >>> import fastpriv as fp
    >>> audit = fp.audit(fp.HammingChannel(1_000_000, 2, 0.5))
    >>> audit["dp"], audit["strong-dp"]
    (0.5, 500000.0)
    >>> audit.levels["dp"].meaning
    'Changing one record changes the probability of any output by a factor of at most 1.649.'
    >>> fp.audit([[0.9, 0.1], [0.2, 0.8]], [0.5, 0.5]).levels["identifiability"].where
    'Output 1, for 1 against 0, which differ in record 0.'
    """
    limit = check.optional_limit(time_limit, "time_limit")
    clock = None if limit is None else Clock(limit)
    wanted = _chosen(notions)
    if not isinstance(name, str | None):
        raise InvalidInput(f"name must be a text; got {described(name)}.")
    report = _report(channel)
    if report is not None:
        name = f"the record of a person in: {report.mechanism}" if name is None else name
        channel = report.channel
    mechanism, law = _arguments(channel, prior, joint)
    case = Case(mechanism, law, clock)
    findings = _Findings(wanted)
    findings.add("mechanism", case)
    if law is None:
        findings.skip("prior", "it depends on the distribution of the database: give a prior")
    else:
        findings.add("prior", case)
        findings.add("facts", case)
    if joint is not None:
        secret = SecretCase(mechanism, as_joint(joint, mechanism.space.size), clock)
        findings.add("secret", secret)
    return Audit(
        name=repr(mechanism) if name is None else name,
        channel=mechanism,
        prior=law,
        levels=findings.levels,
        implied=_implied(findings.levels, mechanism, law),
        skipped=findings.skipped,
        notes=_advice(mechanism),
    )


def _report(channel: Any) -> ReleaseReport | None:
    """Return the report of a release. A channel or a matrix is seen without loading releases."""
    if isinstance(channel, AbstractChannel | np.ndarray | list | tuple):
        return None
    from fastpriv.releasing.release import Release
    from fastpriv.releasing.report import ReleaseReport

    found = channel.report if isinstance(channel, Release) else channel
    return found if isinstance(found, ReleaseReport) else None


def _arguments(
    channel: Any,
    prior: Distribution | ArrayLike | None,
    joint: ArrayLike | None,
) -> tuple[AbstractChannel, Distribution | None]:
    """Return the mechanism and the prior, which prior and joint must agree on."""
    if prior is None:
        mechanism, law = as_channel(channel), None
    else:
        mechanism, law = as_pair(channel, prior)
    if joint is None:
        return mechanism, law
    marginal = as_joint(joint, mechanism.space.size).sum(axis=0)
    if law is None:
        return mechanism, Dense(marginal, mechanism.space.sizes)
    apart = np.abs(law.probabilities() - marginal)
    if apart.max() > check.SUM_TOLERANCE:
        x = int(apart.argmax())
        raise InvalidInput(
            f"prior and joint must agree; database {x} has probability "
            f"{law.probabilities()[x]:g} under the prior, but joint[:, {x}] sums to "
            f"{marginal[x]:g}. Give one of them only."
        )
    return mechanism, law


class _Findings:
    """The levels that were measured, and the reasons for those that were not."""

    def __init__(self, wanted: frozenset[str]) -> None:
        self.wanted = wanted
        self.levels: dict[str, Level] = {}
        self.skipped: dict[str, str] = {}

    def skip(self, scope: str, why: str) -> None:
        """Leave out all notions of a scope."""
        self.skipped |= {notion.slug: why for notion in self._audited(scope)}

    def add(self, scope: str, case: Case) -> None:
        """Measure the notions of a scope one after the other; none of them spoils the others."""
        for notion in self._audited(scope):
            line = LINES[notion.slug]
            try:
                case.begin()
                value = guaranteed(notion, line.measure(case))
                meaning = line.meaning(value, case)
            except _LEFT_OUT as problem:
                self.skipped[notion.slug] = str(problem)
                continue
            worst, place = _attained(notion, line, value, case)
            self.levels[notion.slug] = Level(
                notion=notion.slug,
                title=notion.title,
                value=value,
                unit=notion.unit,
                meaning=meaning,
                worst=worst,
                where=place,
                source=notion.source,
                scope=notion.scope,
            )

    def _audited(self, scope: str) -> list[Notion]:
        """Return the wanted notions of a scope, in the order of the registry."""
        return [
            notion
            for notion in NOTIONS.values()
            if notion.scope == scope and notion.slug in self.wanted
        ]


def _chosen(notions: Iterable[str] | None) -> frozenset[str]:
    """Return the slugs of the notions to measure; all that audits know, where none are given."""
    if notions is None:
        return frozenset(LINES)
    names = [] if isinstance(notions, str) else check.items(notions, "notions", "slugs")
    if not names:
        raise InvalidInput(
            f'notions must be a list of slugs, such as ["dp", "pml"]; got {described(notions)}.'
        )
    for name in names:
        if not isinstance(name, str) or name not in LINES:
            advice = did_you_mean(name, LINES) or ". Leave notions out to measure all."
            raise InvalidInput(
                f'notions must be slugs that audits measure, such as "dp"; got '
                f"{described(name)}{advice}"
            )
    return frozenset(names)


def _attained(notion: Notion, line: Line, value: Value, case: Case) -> tuple[Worst | None, str]:
    """Return what attains a level, and the same in one sentence."""
    if line.worst is None or not top(value) > 0:
        return None, ""
    try:
        worst = line.worst(case)
        if worst is None:
            raise TooLarge("it is too long to list.")
        excluded = notion.slug in ("ruling-out", "disclosure")
        level = math.inf if excluded else top(value)
        return worst, where(worst, level, "S = " if notion.scope == "secret" else "")
    except _LEFT_OUT as problem:
        return None, f"What attains it was not located: {problem}"


def _advice(mechanism: AbstractChannel) -> tuple[str, ...]:
    """Point out that the inputs of a matrix without a space may be several records."""
    size = mechanism.space.size
    if not isinstance(mechanism, Channel) or mechanism.space.n > 1 or size > _ADVISED:
        return ()
    for m in range(2, math.isqrt(size) + 1):
        k = round(math.log(size, m))
        if m**k == size:
            return (
                f"the {size} inputs were taken for values of a single record. If they are "
                f"databases of {k} records with {m} values each, pass "
                f"Channel(matrix, [{m}] * {k}); on the command line --sizes "
                f"{','.join([str(m)] * k)}",
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
    followed = {}
    best: dict[str, tuple[float, str]] = {}
    for premise in RELATED:
        if premise == "leakage-factor" or premise not in levels:
            continue  # the factor is the mutual information in another unit
        given = top(levels[premise].value)
        if not math.isfinite(given):
            continue
        followed[premise] = follow(given, premise, facts)
        for notion, level in followed[premise][0].items():
            if notion == premise or (notion == "maximal-leakage" and not facts.full_support):
                continue  # measured over all databases, implied over those that can occur
            if math.isfinite(level) and (notion not in best or level < best[notion][0]):
                best[notion] = level, premise
    implied = []
    for notion in RELATED:
        if notion in best:
            level, premise = best[notion]
            measured = levels[notion].value if notion in levels else None
            chain = steps_to(notion, *followed[premise])
            implied.append(Implied(notion, level, premise, chain, measured))
    return implied
