"""Exports of a ledger: the chain is added up again, entry by entry, and must agree with itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from fastpriv.accounting.ledger.budget import CURVE, Budget, Offer
from fastpriv.accounting.ledger.store import (
    AMENDMENT,
    SPEND,
    UNREADABLE,
    Entry,
    State,
    amounts_of,
    beginning,
    checked_label,
    entry_of,
    first_state,
    linked,
)
from fastpriv.accounting.profile.relations import optional_relation
from fastpriv.errors import BudgetExceeded, InvalidInput, described, unread

#: Names an export, and its version; the first had no chain.
FORMAT = "fastpriv ledger"
VERSION = 2
#: Advice for an export or a file that does not agree with itself.
_WHOLE = "Use the file as it was written, or a backup."
#: Relative difference of two compositions of the same profiles, on whatever grids they are.
_SAME_COMPOSITION = Decimal("1e-3")


class Chain:
    """Entries that are added up one by one, as when they were written."""

    def __init__(self, genesis: Mapping[str, Any]) -> None:
        self.genesis = dict(genesis)
        self.budget = Budget(genesis["budget"])
        self.state = first_state(genesis)
        self.entries: list[Entry] = []
        self.states: list[State] = []

    def add(self, text: str, key: str | None, part: str | None, digest: str | None) -> None:
        """Add an entry that was written, and compare its digest unless it is None."""
        given, before = json.loads(text), self.state
        entry = entry_of(text, key, part, None)
        if entry.number != before.entries + 1:
            raise InvalidInput(
                f"spend {before.entries + 1} is not whole: it has another number. {_WHOLE}"
            )
        if entry.kind == SPEND:
            whole = entry.charged.keys() == self.budget.limits.keys() and (part is None) == (
                self.budget.delta is None
            )
            if not whole:
                raise InvalidInput(f"spend {entry.number} is not whole. {_WHOLE}")
            offer = Offer({}, part)
            after = self.budget.after(before, entry.charged, offer, entry.count)
        else:
            after = replace(before, entries=entry.number)
        if entry.kind == AMENDMENT:
            self.budget = self.budget.amended(entry.budget or {})
            after = replace(after, budget=self.budget.stored(), amended=entry.number)
        prior, relation = (
            checked_label(given.get("prior")),
            optional_relation(given.get("relation")),
        )
        recorded = given["recorded"] is True
        after = replace(after, prior=prior, relation=relation, recorded=recorded)
        linking = linked(entry, before, after)
        if digest is not None and linking[0].digest != digest:
            raise InvalidInput(
                f"spend {entry.number} differs from the one that was written. {_WHOLE}"
            )
        self.state = linking[2]
        self.entries.append(entry)
        self.states.append(self.state)

    def check_composition(self) -> None:
        """Compose all profiles again; they must agree with the total."""
        if self.budget.delta is None:
            return
        level, total = self.budget.epsilon(self.state.parts), self.state.spent[CURVE]
        if level > total * (1 + _SAME_COMPOSITION) or total > level * (1 + _SAME_COMPOSITION):
            raise InvalidInput(
                f"its profiles compose to epsilon {level}, but its total is {total}; it was "
                f"changed. {_WHOLE}"
            )


def imported(text: str) -> Chain:
    """Read an export; its totals are added up again and must agree."""
    try:
        given = json.loads(text)
        version = given["version"]
        if given["format"] != FORMAT or version not in (1, VERSION):
            raise InvalidInput(
                f"text must be {FORMAT!r} of version 1 or {VERSION}; got "
                f"{described(given['format'])} of version {described(version)}. Export the "
                "ledger again."
            )
        prior, total = checked_label(given["prior"]), amounts_of(given["spent"])
        relation = optional_relation(given.get("relation"))  # older exports have none
        if version == 1:
            recorded = given.get("recorded") is True and "relation" in given
            chain = Chain(beginning(Budget(given["budget"]).stored(), relation, {}, recorded))
        else:
            chain = Chain(given["beginning"])
        rows = [_row(entry, version, prior, chain) for entry in given["entries"]]
        for row in rows:
            chain.add(*row)
        state, limits = chain.state, Budget(given["budget"]).stored()
        head = state.head if version == 1 else given["head"]
        known = version == 1 or (state.prior, state.relation) == (prior, relation)
    except InvalidInput:
        raise
    except BudgetExceeded as error:
        raise InvalidInput(f"the export exceeds its own budget: {error} {_WHOLE}") from None
    except UNREADABLE as error:
        raise unread("export of a ledger", text, error) from None
    if state.spent != total:
        raise InvalidInput(
            f"the export's spends add up to {_amounts(state.spent)}, but its totals are "
            f"{_amounts(total)}; it was changed. {_WHOLE}"
        )
    if limits != state.budget or head != state.head or not known:
        raise InvalidInput(
            f"the export's budget or head is not that of its entries; it was changed. {_WHOLE}"
        )
    chain.check_composition()
    return chain


def _row(
    given: Mapping[str, Any], version: int, prior: str | None, chain: Chain
) -> tuple[str, str | None, str | None, str | None]:
    """Return text, key, part and digest of an entry of an export."""
    fields = dict(given)
    key, part, digest = (fields.pop(name, None) for name in ("key", "part", "digest"))
    if version == 1:
        more = {"prior": prior, "relation": chain.genesis["relation"]}
        fields |= {"kind": SPEND, "recorded": chain.genesis["recorded"], **more}
    elif digest is None:
        raise InvalidInput(f"spend {described(given.get('number'))} must have a digest. {_WHOLE}")
    return json.dumps(fields), key, part, digest


def _amounts(amounts: Mapping[str, Decimal]) -> str:
    return ", ".join(f"{notion} {value}" for notion, value in amounts.items())
