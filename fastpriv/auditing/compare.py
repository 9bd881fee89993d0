"""``compare``: two mechanisms side by side, and which levels are proved to be better."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.clock import Clock
from fastpriv._text import html
from fastpriv._text.table import table
from fastpriv._text.tabular import Tabular
from fastpriv.auditing.report import Audit, Level
from fastpriv.auditing.run import audit
from fastpriv.channels import AbstractChannel
from fastpriv.errors import InvalidInput
from fastpriv.notions.registry import NOTIONS
from fastpriv.priors import Distribution
from fastpriv.releasing.release import Release
from fastpriv.releasing.report import ReleaseReport
from fastpriv.results import Bracket, top

__all__ = ["Comparison", "compare"]

#: Levels that differ by less than this, relative to 1 + level, count as the same.
_SAME = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Tabular):
    """The levels of two mechanisms, and which of the two is better at each.

    Attributes
    ----------
    first, second : Audit
        The two audits.

    Examples
    --------
    >>> import fastpriv as fp
    >>> weak, strong = fp.HammingChannel(2, 2, 2.0), fp.HammingChannel(2, 2, 1.0)
    >>> fp.compare(weak, strong)["dp"]
    'second'
    """

    first: Audit
    second: Audit

    def __getitem__(self, notion: str) -> str | None:
        """Return which of the two has the better level: "first", "second", "same", or None."""
        for audited in (self.first, self.second):
            audited[notion]  # raises for a name that is not among its levels
        return better(self.first.levels[notion], self.second.levels[notion])

    def columns_of_table(self) -> dict[str, list[Any]]:
        """Return one row for each notion that both have."""
        pairs = common(self.first, self.second)
        return {
            "notion": list(pairs),
            "title": [a.title for a, _ in pairs.values()],
            "first": [float(top(a.value)) for a, _ in pairs.values()],
            "second": [float(top(b.value)) for _, b in pairs.values()],
            "better": [better(a, b) for a, b in pairs.values()],
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the two mechanisms and their common levels, as plain numbers and words."""
        levels = {
            notion: {
                "title": a.title,
                "unit": a.unit,
                "first": a.value,
                "second": b.value,
                "better": better(a, b),
            }
            for notion, (a, b) in common(self.first, self.second).items()
        }
        return {"first": self.first.name, "second": self.second.name, "levels": levels}

    def _repr_html_(self) -> str:
        pairs = common(self.first, self.second).values()
        rows = [(a.title, a.shown, b.shown, better(a, b) or "?") for a, b in pairs]
        names = f"first: {self.first.name}; second: {self.second.name}"
        return html.listing("Comparison", ("", "first", "second", "better"), rows, names)

    def __repr__(self) -> str:
        pairs = common(self.first, self.second).values()
        rows = [["", "first", "second", "better"]]
        rows += [[a.title, a.shown, b.shown, better(a, b) or "?"] for a, b in pairs]
        return f"first:  {self.first.name}\nsecond: {self.second.name}\n\n{table(rows)}"


def compare(
    first: AbstractChannel | ArrayLike | Release | ReleaseReport,
    second: AbstractChannel | ArrayLike | Release | ReleaseReport,
    prior: Distribution | ArrayLike | None = None,
    *,
    notions: Iterable[str] | None = None,
    time_limit: float | None = None,
) -> Comparison:
    """Audit two mechanisms on the same databases and find which is better at each notion.

    Parameters
    ----------
    first, second : channels, 2-D arrays, releases or reports of releases
        The mechanisms.
    prior : Distribution or 1-D array, optional
        Distribution of the databases, for levels that depend on one.
    notions : list of str, optional
        Which levels to compare; see :func:`audit`.
    time_limit : float, optional
        Seconds for both audits together; see :func:`audit`.

    Returns
    -------
    Comparison
        Shows as a table. ``comparison["dp"]`` is "first", "second", "same", or None if the
        brackets of the two overlap. It is written by ``to_frame``, ``to_csv`` and ``to_latex``.

    Examples
    --------
    >>> import fastpriv as fp
    >>> strong, weak = [[0.6, 0.4], [0.4, 0.6]], [[0.9, 0.1], [0.1, 0.9]]
    >>> comparison = fp.compare(strong, weak)
    >>> comparison["dp"], comparison["channel-capacity"]
    ('first', 'first')
    """
    chosen = list(notions) if isinstance(notions, Iterator) else notions  # it is read twice
    limit = check.optional_limit(time_limit, "time_limit")
    clock = None if limit is None else Clock(limit)
    one, two = (
        audit(
            given, prior, notions=chosen, time_limit=None if clock is None else clock.share(parts)
        )
        for given, parts in ((first, 2), (second, 1))
    )
    return side_by_side(one, two)


def side_by_side(first: Audit, second: Audit) -> Comparison:
    """Compare two audits, which must be about the same databases."""
    if first.channel.space != second.channel.space:
        raise InvalidInput(
            f"the two mechanisms must have the same databases; got {first.channel.space!r} and "
            f"{second.channel.space!r}. For a matrix use Channel(matrix, sizes), or --sizes."
        )
    return Comparison(first, second)


def common(first: Audit, second: Audit) -> dict[str, tuple[Level, Level]]:
    """Return the levels that both mechanisms have, facts about the prior left out."""
    return {
        slug: (level, second.levels[slug])
        for slug, level in first.levels.items()
        if slug in second.levels and level.scope != "facts"
    }


def better(first: Level, second: Level) -> str | None:
    """Return which of two levels is proved to be better: "first", "second", "same", or None."""
    a, b = _bounds(first), _bounds(second)
    if a.lower == b.lower == math.inf:
        return "same"
    lower, upper = min(a.lower, b.lower), max(a.upper, b.upper)
    if upper < math.inf and upper - lower <= _SAME * (1.0 + abs(upper)):
        return "same"
    less, more = ("first", "second") if a.upper < b.lower else ("second", "first")
    if not (a.upper < b.lower or b.upper < a.lower):
        return None
    return more if NOTIONS[first.notion].direction == "lower" else less


def _bounds(level: Level) -> Bracket:
    value = level.value
    return value if isinstance(value, Bracket) else Bracket(float(value), float(value))
