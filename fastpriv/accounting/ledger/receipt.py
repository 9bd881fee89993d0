"""What a ledger gives for a spend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from fastpriv.accounting.ledger.amounts import up
from fastpriv.accounting.ledger.rows import Entry

__all__ = ["Receipt"]


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
