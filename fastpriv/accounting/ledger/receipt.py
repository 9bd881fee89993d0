"""What a ledger gives for a spend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fastpriv._core import validation as check
from fastpriv.accounting.ledger.amounts import up
from fastpriv.accounting.ledger.store import Entry
from fastpriv.errors import InvalidInput

__all__ = ["Receipt"]

#: Largest count of one spend, that of SQLite's integers.
MOST_COUNT = 2**63 - 1


@dataclass(frozen=True)
class Receipt:
    """One spend that a ledger has acknowledged.

    Attributes
    ----------
    number : int
        Its place in the ledger, from 1.
    time : datetime
        When it was made, in UTC by the clock of the process that made it.
    label : str or None
        The name it was given.
    count : int
        How many releases it is for.
    charged : dict
        What it added to each notion's total, in nats, rounded up.

    Examples
    --------
    >>> import fastpriv as fp
    >>> receipt = fp.accounting.Ledger({"dp": 1.0}).spend({"dp": 0.1}, count=3, label="weekly")
    >>> receipt.number, receipt.label, receipt.count, receipt.charged
    (1, 'weekly', 3, {'dp': 0.3})
    """

    number: int
    time: datetime
    label: str | None
    count: int
    charged: Mapping[str, float]

    @classmethod
    def _of(cls, entry: Entry) -> Receipt:
        charged = {notion: up(value) for notion, value in entry.charged.items()}
        when = datetime.fromisoformat(entry.time)
        return cls(entry.number, when, entry.label, entry.count, charged)


def checked_count(count: Any) -> int:
    """Return how many releases a spend is for."""
    number = check.integer(count, "count", 1)
    if number > MOST_COUNT:
        raise InvalidInput(f"count must be at most 2^63 - 1, got {number}")
    return number


def checked_label(label: Any) -> str | None:
    """Return the name of a spend: text that can be written, or none."""
    if label is None:
        return None
    try:
        if not isinstance(label, str):
            raise TypeError
        label.encode()
    except (TypeError, UnicodeEncodeError):
        raise InvalidInput(f"label must be a string of Unicode text, got {label!r:.60}") from None
    return label
