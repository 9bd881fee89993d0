"""Measures what a plan of a release gives away."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

from fastpriv._core import validation as check
from fastpriv._core.rounding import lowered, product_up, round_up
from fastpriv._text.numbers import up
from fastpriv.channels import AbstractChannel, ColumnsChannel, HammingChannel
from fastpriv.errors import TooLarge
from fastpriv.measures.capacity import capacity
from fastpriv.measures.distortion import expected_distance
from fastpriv.measures.dp import neighbour_level
from fastpriv.measures.identifiability import posterior_level
from fastpriv.measures.information import information
from fastpriv.measures.leakage import extreme_level, maxima_level
from fastpriv.measures.pointwise.database import leakage_levels
from fastpriv.measures.realised import INFORMATION_ERROR, raised, raised_information, realised
from fastpriv.notions.registry import NOTIONS
from fastpriv.priors import Distribution
from fastpriv.releasing.domain import named
from fastpriv.releasing.estimator import expected_errors
from fastpriv.releasing.local.plan import LocalPlan
from fastpriv.releasing.plan import RECORD, TABLE, Plan
from fastpriv.releasing.report import ReleaseReport
from fastpriv.results import Bracket, Value

Raise = Callable[[float, float], float]

#: Share of changed records, and level, from which a report gives advice.
_MOST_CHANGED, _WEAK = 0.8, 10.0
#: Tables of fewer records are released without asking what can be counted in them.
_FEW = 100
#: Most databases of a matrix whose capacity a report waits for.
_OPTIMISED = 512

_SCOPE = {
    "record": " on every record",
    "columns": " on the columns of every record",
    "table": " on the table",
}


def write(
    plan: Plan,
    prior: Any,
    n: int,
    *,
    secure: bool,
    notes: tuple[str, ...],
) -> ReleaseReport:
    """Measure what a plan realises on n records."""
    channel, slack = realised(plan.channel)
    law, name = plan.prior(prior)
    always, under = Levels(n, slack), Levels(n, slack)
    (_table_levels if plan.unit == TABLE else _record_levels)(channel, law, always, under)
    times = 1 if plan.unit == TABLE else n
    if isinstance(plan, LocalPlan):
        changed, errors, reasons = plan.expected_changes(), plan.errors(n), plan.reasons
    else:
        changed, errors, reasons = expected_distance(channel, law), expected_errors(plan, n), ()
    return ReleaseReport(
        n=n,
        m=plan.domain.size,
        mechanism=repr(plan.channel) + _SCOPE[plan.unit],
        levels=always.levels,
        levels_under_prior=under.levels,
        prior=name,
        distortion=times * changed,
        counted=plan.counted,
        secure=secure,
        domain_source=plan.domain.source,
        unit=plan.unit,
        notes=(
            *notes,
            *reasons,
            *_advice(plan, n, changed, always.levels),
            *(f"not computed: {name}" for name in always.left_out + under.left_out),
        ),
        private={},
        channel=plan.about_people,
        domain=plan.domain,
        standard_errors=errors,
        time=datetime.now(timezone.utc),
    )


def useless_columns(plan: Plan, rows: Callable[[], int]) -> dict[object, float]:
    """Return the columns whose counts have a standard error of the number of records or more.

    With these errors; nobody is asked about tables of fewer than 100 records.
    """
    errors = plan.errors(1) if isinstance(plan, LocalPlan) else expected_errors(plan, 1)
    # The error of n records is sqrt(n) times that of one, and at least n if it is at least sqrt(n).
    if max(errors.values()) < math.sqrt(_FEW) or (n := rows()) < _FEW:
        return {}
    root = math.sqrt(n)
    return {name: error * root for name, error in errors.items() if error >= root}


def _advice(plan: Plan, n: int, changed: float, levels: dict[str, Value]) -> list[str]:
    """What a data owner would rather know before than after publishing."""
    notes, columns, level = [], len(plan.domain.columns), levels.get("dp", 0.0)
    estimable = plan.unit != TABLE and plan.channel.kernels is not None
    useless = useless_columns(plan, lambda: n) if estimable or isinstance(plan, LocalPlan) else {}
    if useless:
        notes.append(
            f"nothing can be learnt about {named(list(useless))}: a count would have a standard "
            "error of the number of records or more"
        )
    if plan.unit == RECORD and columns > 1 and changed > _MOST_CHANGED:
        notes.append(
            f"{100 * changed:.0f}% of the records are expected to change; every column by itself "
            f"(split='columns', --split columns) at epsilon/{columns} protects a record as much "
            "and usually keeps more of each column"
        )
    if isinstance(level, float) and level > _WEAK:
        notes.append(
            f"a level of {up(level, 3)} protects little: an output may change the odds of two "
            f"records by a factor of e^{up(level, 3)}"
        )
    return notes


def _record_levels(
    channel: AbstractChannel, prior: Distribution, always: Levels, under: Levels
) -> None:
    """Measure records that go through the channel independently, each drawn from the prior.

    A record may change altogether, so differential privacy compares any two databases of the
    record's channel. Whatever is additive over independent records is n times one record's.
    """
    if channel.space.n > 1:
        always.add("column-dp", lambda: neighbour_level(channel))
    always.add("dp", lambda: extreme_level(channel))
    always.add_scaled("maximal-leakage", lambda: maxima_level(channel))
    always.add_scaled("strong-dp", lambda: extreme_level(channel))
    always.add_scaled("channel-capacity", lambda: _capacity(channel), raised_information)
    under.add("identifiability", lambda: _identifiability(channel, prior))
    under.add_scaled("mutual-information", lambda: _information(channel, prior), raised_information)
    under.add_scaled("pml", lambda: leakage_levels(channel, prior)[0])


def _capacity(channel: AbstractChannel) -> float:
    """Most mutual information under any law: closed for E_d, an optimisation for matrices."""
    if not isinstance(channel, HammingChannel | ColumnsChannel):
        check.fits(channel.space.size, "a capacity", "ask channel_capacity for it", _OPTIMISED)
    return capacity(channel, 1e-9).upper


def _information(channel: AbstractChannel, prior: Distribution) -> Value:
    """Mutual information: a sum of non-negative terms, raised past the rounding of any such sum."""
    value = information(channel, prior)
    return value if isinstance(value, Bracket) else value * (1.0 + INFORMATION_ERROR)


def _identifiability(channel: AbstractChannel, prior: Distribution) -> float:
    """Identifiability of a whole record: exact for one row, bounded by eps_X for several."""
    if channel.space.n == 1:
        return posterior_level(channel, prior)
    spread = -lowered(prior.min_entropy(), 64.0) - prior.log_smallest()
    return round_up(extreme_level(channel) + max(spread, 0.0))


def _table_levels(
    channel: AbstractChannel, prior: Distribution, always: Levels, under: Levels
) -> None:
    """Measure a channel that takes the whole table at once."""
    always.add("dp", lambda: neighbour_level(channel))
    always.add("maximal-leakage", lambda: maxima_level(channel))
    always.add("strong-dp", lambda: extreme_level(channel))
    always.add("channel-capacity", lambda: _capacity(channel), raised_information)
    under.add("identifiability", lambda: posterior_level(channel, prior))
    under.add("mutual-information", lambda: _information(channel, prior), raised_information)
    under.add("pml", lambda: leakage_levels(channel, prior)[0])


class Levels:
    """Levels as they are measured, and the titles of those that would take too much.

    Each is raised by what the draws can have on top of what was measured.
    """

    def __init__(self, n: int, slack: float) -> None:
        self._n, self._slack = n, slack
        self.levels: dict[str, Value] = {}
        self.left_out: list[str] = []

    def add(self, slug: str, level: Callable[[], Value], raise_by: Raise = raised) -> None:
        """Note a level of the whole release."""
        try:
            value = level()
        except TooLarge:
            self.left_out.append(NOTIONS[slug].title)
            return
        if isinstance(value, Bracket):
            lower = max(value.lower - self._slack, 0.0)
            self.levels[slug] = Bracket(lower, raise_by(value.upper, self._slack))
        else:
            self.levels[slug] = raise_by(value, self._slack)

    def add_scaled(self, slug: str, level: Callable[[], Value], raise_by: Raise = raised) -> None:
        """Note a level of one record, and n times it for the table."""
        one = f"record-{slug}"
        self.add(one, level, raise_by)
        if one not in self.levels:
            return
        value = self.levels[one]
        if isinstance(value, Bracket):
            lower = lowered(self._n * value.lower, 4.0)
            self.levels[slug] = Bracket(lower, product_up(self._n, value.upper))
        else:
            self.levels[slug] = product_up(self._n, value)
