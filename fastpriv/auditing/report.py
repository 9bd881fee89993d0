"""The result of an audit: every level with its meaning, as text, JSON or a page."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastpriv._text.encoding import plain, to_json
from fastpriv._text.numbers import quantity, shown
from fastpriv._text.tabular import Tabular
from fastpriv.auditing.page import fragment, page
from fastpriv.channels import AbstractChannel
from fastpriv.errors import UnknownName, described, hint_or_list, short
from fastpriv.notions.implications import Step
from fastpriv.notions.registry import NOTIONS
from fastpriv.priors import Distribution
from fastpriv.results import Bracket, Value, Worst, top

__all__ = ["Audit", "Implied", "Level"]

#: What levels are about, in the order in which they are shown.
SCOPES = {
    "mechanism": "For every distribution of the database",
    "prior": "Under the prior",
    "secret": "About the secret S, through S -> X -> Y",
    "facts": "The prior itself",
}
#: Width of the text.
_WIDTH = 100
#: Notions of a first audit.
_BRIEF = ("dp", "maximal-leakage", "identifiability", "mutual-information", "pml")
#: Width of the column of titles.
_TITLE = 26
#: Width of the column of values, unless one is longer.
_VALUE = 27
#: Relative difference from which on a measured level is better than an implied one.
_BETTER = 1e-9
#: Significant digits of a level.
DIGITS = 6


@dataclass(frozen=True, eq=False)
class Level:
    """One number of an audit, and what it means.

    Attributes
    ----------
    notion : str
        Its key in ``Audit.levels``, such as "dp".
    title : str
        The notion in words.
    value : float or Bracket
        The number, rounded against the mechanism; a bool for yes-or-no questions, an int for
        counts.
    unit : str
        "nats", "share", "probability", "rows", "outputs" or "".
    meaning : str
        The meaning of the number, in one sentence.
    worst : Witness, Adversary or None
        What attains it: an output and the databases it separates, or an adversary.
    where : str
        The same in one sentence, or why it was not located. Empty if there is nothing to show.
    source : str
        The paper and the statement that defines it.
    scope : {"mechanism", "prior", "secret", "facts"}
        Whether it holds for every distribution of the database, under the prior, about S, or is a
        fact about the prior alone.

    Examples
    --------
    >>> import fastpriv as fp
    >>> level = fp.audit([[0.75, 0.25], [0.25, 0.75]]).levels["dp"]
    >>> round(level.value, 6), level.unit
    (1.098612, 'nats')
    >>> level.meaning
    'Changing one record changes the probability of any output by a factor of at most 3.'
    >>> level.where
    'Output 0, for 0 against 1, which differ in record 0.'
    """

    notion: str
    title: str
    value: Value
    unit: str
    meaning: str
    worst: Worst | None
    where: str
    source: str
    scope: str

    @property
    def shown(self) -> str:
        """The value in a few digits, rounded up (error probabilities down), with its unit."""
        from_below = NOTIONS[self.notion].direction == "lower"
        return quantity(shown(self.value, DIGITS, from_below=from_below), self.unit)

    @property
    def place(self) -> str:
        """What attains the level, introduced as the worst case; empty if nothing is known."""
        return f"Worst case: {self.where}" if self.worst is not None else self.where

    def to_dict(self) -> dict[str, Any]:
        """Return the level as plain numbers and words."""
        return {
            "title": self.title,
            "value": plain(self.value),
            "unit": self.unit,
            "meaning": self.meaning,
            "worst": plain(self.worst),
            "where": self.where,
            "source": self.source,
            "scope": self.scope,
        }


@dataclass(frozen=True)
class Implied:
    """A guarantee that follows from a measured level by theorems.

    Attributes
    ----------
    notion : str
        The notion that is guaranteed.
    level : float
        The level that is not exceeded.
    premise : str
        The measured notion that it follows from.
    steps : tuple of Step
        The theorems, in order.
    measured : float, Bracket or None
        The measured level of the notion itself: at most ``level``, except for rounding.

    Examples
    --------
    >>> import fastpriv as fp
    >>> implied = fp.audit(fp.HammingChannel(3, 2, 1.0), fp.Uniform(3, 2)).implied
    >>> one = next(each for each in implied if each.notion == "information-privacy")
    >>> one.premise, round(one.level, 6), round(one.measured, 6), one.better
    ('dp', 3.0, 1.860344, True)
    """

    notion: str
    level: float
    premise: str
    steps: tuple[Step, ...]
    measured: Value | None

    @property
    def better(self) -> bool:
        """Whether measuring gave a better level than the theorems do."""
        return self.measured is not None and top(self.measured) < self.level * (1.0 - _BETTER)

    @property
    def shown(self) -> str:
        """The level in a few digits, rounded up."""
        return shown(self.level, DIGITS)

    @property
    def reason(self) -> str:
        """The premise with its sources, and whether the measured level is better, in words."""
        sources = "; ".join(dict.fromkeys(step.source for step in self.steps))
        text = f"from {self.premise} ({sources})"
        if self.better and self.measured is not None:
            text += f"; measured {shown(self.measured, DIGITS)}, which is better"
        return text

    def to_dict(self) -> dict[str, Any]:
        """Return the implication as plain numbers and words."""
        return {
            "notion": self.notion,
            "level": plain(self.level),
            "premise": self.premise,
            "steps": [
                f"{s.premise} -> {s.conclusion}: {s.formula} ({s.source})" for s in self.steps
            ],
            "measured": plain(self.measured),
        }


@dataclass(frozen=True, eq=False, repr=False)
class Audit(Tabular):
    """Every level of a mechanism that applies; see :func:`fastpriv.audit`.

    Attributes
    ----------
    name : str
        The name of the mechanism.
    levels : dict
        :class:`Level` by notion: "dp", "strong-dp", "channel-capacity", "pml", ...
    implied : list
        Guarantees that follow from the measured levels, with the theorems.
    skipped : dict
        Notions that were not measured, each with the reason.
    notes : tuple of str
        Remarks about the input.
    channel, prior
        The audited mechanism and the prior, or None.

    Examples
    --------
    >>> import fastpriv as fp
    >>> audit = fp.audit(fp.HammingChannel(3, 2, 1.0), fp.Uniform(3, 2))
    >>> audit["dp"], audit["strong-dp"], round(audit["pml"], 6)
    (1.0, 3.0, 1.139656)
    >>> audit.to_dict()["levels"]["dp"]["value"]
    1.0
    """

    name: str
    channel: AbstractChannel
    prior: Distribution | None
    levels: dict[str, Level]
    implied: list[Implied]
    skipped: dict[str, str]
    notes: tuple[str, ...] = field(default=())

    def __getitem__(self, notion: str) -> Value:
        if notion in self.levels:
            return self.levels[notion].value
        known = [*self.levels, *self.skipped]
        unknown = f"it is not a notion of this audit{hint_or_list(notion, known)}"
        raise UnknownName(
            f"{described(notion)} was not measured: {self.skipped.get(notion, unknown)}"
        )

    def __contains__(self, notion: object) -> bool:
        return notion in self.levels

    def __iter__(self) -> Iterator[str]:
        return iter(self.levels)

    @property
    def summary(self) -> str:
        """The numbers of databases, records and outputs, in one line."""
        space, outputs = self.channel.space, self.channel.output_count
        counts = ((space.size, "database"), (space.n, "record"), (outputs, "output"))
        databases, records, outcomes = (f"{short(n)} {name}{'s' * (n > 1)}" for n, name in counts)
        return f"{databases} of {records}, {outcomes}"

    def reasons(self) -> dict[str, list[str]]:
        """Return why notions were not measured, each reason with its notions."""
        reasons: dict[str, list[str]] = {}
        for notion, why in self.skipped.items():
            reasons.setdefault(why, []).append(notion)
        return reasons

    def scopes(self) -> Iterator[tuple[str, list[Level]]]:
        """Yield the title of each scope with its levels."""
        for scope, title in SCOPES.items():
            levels = [level for level in self.levels.values() if level.scope == scope]
            if levels:
                yield title, levels

    def to_dict(self) -> dict[str, Any]:
        """Return the audit as plain numbers and words: infinities as the word "infinite"."""
        return {
            "mechanism": self.name,
            "databases": short(self.channel.space.size),
            "rows": self.channel.space.n,
            "outputs": short(self.channel.output_count),
            "prior": None if self.prior is None else repr(self.prior),
            "levels": {notion: level.to_dict() for notion, level in self.levels.items()},
            "implied": [implied.to_dict() for implied in self.implied],
            "skipped": dict(self.skipped),
            "notes": list(self.notes),
        }

    def to_json(self, indent: int | None = 2) -> str:
        """Return the audit as JSON."""
        return to_json(self.to_dict(), indent)

    def columns_of_table(self) -> dict[str, list[Any]]:
        """Return one row for each level: its notion, both bounds, unit, meaning and source."""
        levels = list(self.levels.values())
        ends = [
            value if isinstance(value, Bracket) else Bracket(float(value), float(value))
            for value in (level.value for level in levels)
        ]
        return {
            "notion": [level.notion for level in levels],
            "title": [level.title for level in levels],
            "value": [float(top(level.value)) for level in levels],
            "lower": [end.lower for end in ends],
            "upper": [end.upper for end in ends],
            "unit": [level.unit for level in levels],
            "scope": [level.scope for level in levels],
            "meaning": [level.meaning for level in levels],
            "where": [level.where for level in levels],
            "source": [level.source for level in levels],
        }

    def to_html(self, path: str | Path | None = None, *, plots: bool = True) -> str:
        """Return the audit as one HTML page that loads nothing, and write it to a file.

        Parameters
        ----------
        path : str or Path, optional
            Where to write the page (UTF-8).
        plots : bool
            Whether to draw figures, which needs the ``plot`` extra. Without the extra, the page
            states that it has no figures.

        Examples
        --------
        >>> import fastpriv as fp
        >>> page = fp.audit([[0.75, 0.25], [0.25, 0.75]]).to_html(plots=False)
        >>> page.startswith("<!doctype html>"), "differential privacy" in page
        (True, True)
        """
        text = page(self, plots)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def _repr_html_(self) -> str:
        return fragment(self)

    def _head(self) -> list[str]:
        lines = [f"Audit of {self.name}", self.summary]
        return lines if self.prior is None else [*lines, f"prior: {self.prior!r}"]

    def __repr__(self) -> str:
        lines = self._head()
        for title, levels in self.scopes():
            lines += ["", title, *(f"  {level.title:<46} {level.shown}" for level in levels)]
        if self.skipped:
            text = f"Not measured, for reasons in .skipped: {', '.join(self.skipped)}"
            lines += ["", *textwrap.wrap(text, _WIDTH, break_on_hyphens=False)]
        lines += ["", "print() it for meanings and worst cases, or write .to_html(path)."]
        return "\n".join(line.rstrip() for line in lines)

    def brief(self) -> str:
        """Return the levels that most readers ask for, with their meanings, on one screen."""
        lines = self._head()
        for title, levels in self.scopes():
            chosen = [level for level in levels if level.notion.removeprefix("secret-") in _BRIEF]
            if chosen:
                lines += ["", title]
            for level in chosen:
                words = textwrap.wrap(level.meaning, _WIDTH - 4, break_on_hyphens=False)
                lines += [f"  {level.title}: {level.shown}", *(f"    {line}" for line in words)]
        left = sum(level.notion not in _BRIEF for level in self.levels.values())
        if left or self.implied or self.skipped:
            lines += [
                "",
                f"{left} more levels, their worst cases and what follows from them: --all",
            ]
        return "\n".join(line.rstrip() for line in lines)

    def __str__(self) -> str:
        lines = self._head()
        for title, levels in self.scopes():
            lines += ["", title]
            for level in levels:
                lines += _line(level.title, level.shown, f"{level.meaning} {level.place}")
        if self.implied:
            lines += ["", "What follows from what"]
            for implied in self.implied:
                lines += _line(implied.notion, f"{implied.shown} at most", implied.reason)
        if self.skipped:
            lines += ["", "Not measured"]
            for why, notions in self.reasons().items():
                text = f"{', '.join(notions)}: {why}"
                wrapped = textwrap.wrap(text, _WIDTH - 4, break_on_hyphens=False)
                lines += [f"  {wrapped[0]}", *(f"    {line}" for line in wrapped[1:])]
        for note in self.notes:
            lines += ["", *textwrap.wrap(f"Note: {note}", _WIDTH)]
        return "\n".join(line.rstrip() for line in lines)


def _line(title: str, value: str, text: str) -> list[str]:
    """Lay out one entry in three columns, the last one wrapped."""
    column = max(_VALUE, len(value) + 1)
    room = _WIDTH - 2 - _TITLE - column
    names = textwrap.wrap(title, _TITLE - 1)
    body = textwrap.wrap(text, room, break_on_hyphens=False) or [""]
    names += [""] * (len(body) - len(names))
    body += [""] * (len(names) - len(body))
    values = [value] + [""] * (len(names) - 1)
    return [
        f"  {name:<{_TITLE}}{number:<{column}}{part}"
        for name, number, part in zip(names, values, body, strict=True)
    ]
