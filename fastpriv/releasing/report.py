"""What a release gave away, in every notion the library can certify."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastpriv._core import validation as check
from fastpriv._core.logs import round_up
from fastpriv._core.rounding import ULP
from fastpriv._text.numbers import shown
from fastpriv.channels import AbstractChannel, HammingChannel
from fastpriv.errors import InvalidInput, TooLarge
from fastpriv.measures.capacity import capacity
from fastpriv.measures.distortion import expected_distance
from fastpriv.measures.dp import neighbour_level, posterior_level
from fastpriv.measures.draws import INFORMATION_ERROR, raised, raised_information
from fastpriv.measures.information import information
from fastpriv.measures.leakage import extreme_level, maxima_level
from fastpriv.measures.pointwise.database import leakage_levels
from fastpriv.measures.realised import realised
from fastpriv.priors import Distribution
from fastpriv.releasing.domain import Domain
from fastpriv.releasing.plan import RECORD, TABLE, Plan
from fastpriv.results import Bracket

Level = float | Bracket
Raise = Callable[[float, float], float]

#: Share of changed records, and level, from which a report gives advice.
_MOST_CHANGED, _WEAK = 0.8, 10.0
#: Most databases of a matrix whose capacity a report waits for.
_OPTIMISED = 512

#: Notions of a ledger, and what a report calls them.
_SPENT = {
    "dp": "differential privacy",
    "strong-dp": "leakage capacity",
    "pml-all-priors": "leakage capacity",
    "maximal-leakage": "maximal leakage",
}


@dataclass(frozen=True, repr=False)
class ReleaseReport:
    """What may be published about a release, and apart from it what may not.

    Attributes
    ----------
    n, m : int
        Number of records, and of values a record can take.
    levels : dict
        Levels in nats that hold whatever the law of the table: those of the probabilities the
        sampler realised, rounded up.
    levels_under_prior : dict
        Levels under ``prior``.
    prior : str
        The law they are for, and whether it was given or assumed.
    distortion : float
        Expected number of changed records, or of changed cells (``counted``) where every column
        goes by itself.
    secure : bool
        Whether the randomness was cryptographic. A release from a seeded generator can be undone
        by whoever guesses the seed.
    domain_source : str
        Whether the domain was declared.
    unit : {"record", "columns", "table"}
        What is randomised by itself.
    notes : tuple of str
        What else to know before publishing.
    private : dict
        Realised distortion. It is computed from the data and not protected: keep it. ``to_dict``
        and ``to_json`` leave it out.
    channel, domain
        What :func:`fastpriv.estimate_frequencies` needs.

    Examples
    --------
    >>> import fastpriv as fp
    >>> import numpy as np
    >>> report = fp.release(np.zeros(100, dtype=int), domain=4, epsilon=1.0).report
    >>> report.levels["differential privacy"] <= 1.0, report.secure
    (True, True)
    """

    n: int
    m: int
    mechanism: str
    levels: dict[str, Level]
    levels_under_prior: dict[str, Level]
    prior: str
    distortion: float
    counted: str
    secure: bool
    domain_source: str
    unit: str
    notes: tuple[str, ...]
    private: dict[str, int]
    channel: AbstractChannel = field(compare=False)
    domain: Domain = field(compare=False)

    def spending(self) -> dict[str, float]:
        """Return what the release costs a ledger: levels that hold whatever the law of the table.

        Neighbouring tables differ in one record, all columns of it.
        """
        found = {notion: self.levels.get(name) for notion, name in _SPENT.items()}
        return {
            notion: level.upper if isinstance(level, Bracket) else level
            for notion, level in found.items()
            if level is not None
        }

    def to_dict(self) -> dict[str, Any]:
        """Return what may be published, as plain numbers and words."""
        columns = zip(self.domain.columns, self.domain.sizes, strict=True)
        return {
            "records": self.n,
            "values of a record": self.m,
            "values of each column": {str(name): size for name, size in columns},
            "mechanism": self.mechanism,
            "randomised": self.unit,
            **(
                {"epsilon": self.channel.epsilon}
                if isinstance(self.channel, HammingChannel)
                else {}
            ),
            "levels": {name: _plain(level) for name, level in self.levels.items()},
            "prior": self.prior,
            "levels under the prior": {
                name: _plain(level) for name, level in self.levels_under_prior.items()
            },
            f"expected number of changed {self.counted}": self.distortion,
            "randomness": "cryptographic" if self.secure else "seeded, NOT secure",
            "domain": self.domain_source,
            "notes": list(self.notes),
        }

    def to_json(self) -> str:
        """Return what may be published, as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    def __repr__(self) -> str:
        return f"ReleaseReport({self.n} records of {self.m} values, {self.mechanism})"

    def __str__(self) -> str:
        lines = [f"{self.n} records of {self.m} values each, through {self.mechanism}"]
        lines += ["Levels whatever the law of the table (nats)", *_listed(self.levels)]
        lines += [f"Levels under the prior ({self.prior})", *_listed(self.levels_under_prior)]
        lines.append(f"Expected number of changed {self.counted}: {self.distortion:.6g}")
        lines.append(f"Randomness: {self.to_dict()['randomness']}")
        lines.append(f"Domain: {self.domain_source}")
        lines += [f"Note: {note}" for note in self.notes]
        return "\n".join(lines)


def write(
    plan: Plan, prior: Any, n: int, *, changed: int, secure: bool, notes: tuple[str, ...]
) -> ReleaseReport:
    """Measure what a plan realised on n records."""
    channel, slack = realised(plan.channel)
    law, name = plan.prior(prior)
    always, under = Levels(n, slack), Levels(n, slack)
    (_table_levels if plan.unit == TABLE else _record_levels)(channel, law, always, under)
    times = 1 if plan.unit == TABLE else n
    return ReleaseReport(
        n=n,
        m=plan.domain.size,
        mechanism=repr(plan.channel) + _SCOPE[plan.unit],
        levels=always.found,
        levels_under_prior=under.found,
        prior=name,
        distortion=times * expected_distance(channel, law),
        counted=plan.counted,
        secure=secure,
        domain_source=plan.domain.source,
        unit=plan.unit,
        notes=(
            *notes,
            *_advice(plan, expected_distance(channel, law), always.found),
            *(f"not computed: {name}" for name in always.left_out + under.left_out),
        ),
        private={f"changed {plan.counted}": changed},
        channel=plan.channel,
        domain=plan.domain,
    )


def _advice(plan: Plan, changed: float, levels: dict[str, Level]) -> list[str]:
    """What a data owner would rather know before than after publishing."""
    notes, columns, level = [], len(plan.domain.columns), levels.get("differential privacy", 0.0)
    if plan.unit == RECORD and columns > 1 and changed > _MOST_CHANGED:
        notes.append(
            f"{100 * changed:.0f}% of the records are expected to change; every column by itself "
            f"(per_column, --per-column) at epsilon/{columns} protects a record as much and "
            "usually keeps more of each column"
        )
    if isinstance(level, float) and level > _WEAK:
        notes.append(
            f"a level of {level:.3g} protects little: an output may change the odds of two records "
            f"by a factor of e^{level:.3g}"
        )
    return notes


def response(path: str) -> tuple[float, bool]:
    """Read from a report's JSON the epsilon of its randomised response, and whether per column."""
    text = _read(path)
    try:
        found = json.loads(text)
        return float(found["epsilon"]), {"record": False, "columns": True}[found["randomised"]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidInput(
            f"{path} is no report of randomised response on records or columns; give the file that "
            "the release wrote with --report, or --epsilon"
        ) from error


def spending(path: str) -> dict[str, float]:
    """Read from a report's JSON what the release costs a ledger."""
    text = _read(path)
    try:
        levels = json.loads(text)["levels"]
        found = {notion: levels[name] for notion, name in _SPENT.items() if name in levels}
        return {notion: _number(level) for notion, level in found.items()}
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise InvalidInput(
            f"{path} is no report of a release; give the file that the release wrote with --report"
        ) from error


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InvalidInput(f"the report {path} cannot be read: {error.strerror}") from error


_SCOPE = {
    "record": " on every record",
    "columns": " on the columns of every record",
    "table": " on the table",
}


def _record_levels(
    channel: AbstractChannel, prior: Distribution, always: Levels, under: Levels
) -> None:
    """Measure records that go through the channel independently, each drawn from the prior.

    A record may change altogether, so differential privacy compares any two databases of the
    record's channel. Whatever is additive over independent records is n times one record's.
    """
    if channel.space.n > 1:
        always.add("differential privacy of one column", lambda: neighbour_level(channel))
    always.add("differential privacy", lambda: extreme_level(channel))
    always.add_scaled("maximal leakage", lambda: maxima_level(channel))
    always.add_scaled("leakage capacity", lambda: extreme_level(channel))
    always.add_scaled("channel capacity", lambda: _capacity(channel), raised_information)
    under.add("identifiability", lambda: _identifiability(channel, prior))
    under.add_scaled("mutual information", lambda: _information(channel, prior), raised_information)
    under.add_scaled("pointwise maximal leakage", lambda: leakage_levels(channel, prior)[0])


def _capacity(channel: AbstractChannel) -> float:
    """Most mutual information under any law: closed for E_d, an optimisation for matrices."""
    if not isinstance(channel, HammingChannel):
        check.fits(channel.space.size, "a capacity", "ask channel_capacity for it", _OPTIMISED)
    return capacity(channel, 1e-9).upper


def _information(channel: AbstractChannel, prior: Distribution) -> Level:
    """Mutual information: a sum of non-negative terms, raised past the rounding of any such sum."""
    found = information(channel, prior)
    return found if isinstance(found, Bracket) else found * (1.0 + INFORMATION_ERROR)


def _identifiability(channel: AbstractChannel, prior: Distribution) -> float:
    """Identifiability of a whole record: exact for one row, bounded by eps_X for several."""
    if channel.space.n == 1:
        return posterior_level(channel, prior)
    spread = -prior.min_entropy() - prior._log_least()
    return round_up(extreme_level(channel) + max(spread, 0.0))


def _table_levels(
    channel: AbstractChannel, prior: Distribution, always: Levels, under: Levels
) -> None:
    """Measure a channel that takes the whole table at once."""
    always.add("differential privacy", lambda: neighbour_level(channel))
    always.add("maximal leakage", lambda: maxima_level(channel))
    always.add("leakage capacity", lambda: extreme_level(channel))
    always.add("channel capacity", lambda: _capacity(channel), raised_information)
    under.add("identifiability", lambda: posterior_level(channel, prior))
    under.add("mutual information", lambda: _information(channel, prior), raised_information)
    under.add("pointwise maximal leakage", lambda: leakage_levels(channel, prior)[0])


class Levels:
    """Levels as they are found, and the names of those that would take too much.

    Each is raised by what the draws can have on top of what was measured.
    """

    def __init__(self, n: int, slack: float) -> None:
        self._n, self._slack = n, slack
        self.found: dict[str, Level] = {}
        self.left_out: list[str] = []

    def add(self, name: str, level: Callable[[], Level], up: Raise = raised) -> None:
        """Note a level of the whole release."""
        try:
            found = level()
        except TooLarge:
            self.left_out.append(name)
            return
        if isinstance(found, Bracket):
            lower = max(found.lower - self._slack, 0.0)
            self.found[name] = Bracket(lower, up(found.upper, self._slack))
        else:
            self.found[name] = up(found, self._slack)

    def add_scaled(self, name: str, level: Callable[[], Level], up: Raise = raised) -> None:
        """Note a level of one record, and n times it for the table."""
        one = f"{name} per record"
        self.add(one, level, up)
        if one in self.found:
            found = self.found[one]
            self.found[name] = (
                Bracket(self._n * found.lower * (1.0 - 4.0 * ULP), round_up(self._n * found.upper))
                if isinstance(found, Bracket)
                else round_up(self._n * found)
            )


def _plain(level: Level) -> float | str | list[float]:
    if isinstance(level, Bracket):
        return [level.lower, level.upper]
    return level if math.isfinite(level) else "infinite"  # JSON has no infinity


def _number(level: Any) -> float:
    """Return the upper end of what ``_plain`` made."""
    if isinstance(level, list):
        level = level[1]
    return math.inf if level == "infinite" else float(level)


def _listed(levels: dict[str, Level]) -> list[str]:
    return [f"  {name:<38}{shown(level):>14}" for name, level in levels.items()]
