"""A ledger as JSON, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from decimal import Decimal

from fastpriv.accounting.ledger.budget import CURVE, Budget
from fastpriv.accounting.ledger.charges import Offer
from fastpriv.accounting.ledger.rows import (
    UNREADABLE,
    Entry,
    State,
    amounts_of,
    checked_label,
    entry_of,
)
from fastpriv.accounting.profile.relations import optional_relation
from fastpriv.errors import BudgetExceeded, InvalidInput, described, unread

_FORMAT, _VERSION = "fastpriv ledger", 1
_ENTRY = tuple(field.name for field in fields(Entry))
#: How closely two compositions of the same releases agree, on whatever grids they are.
_SAME = Decimal("1e-5")


def exported(budget: Budget, state: State, entries: list[Entry]) -> str:
    """Return the budget, the totals, the laws and every spend as JSON."""
    return json.dumps(
        {
            "format": _FORMAT,
            "version": _VERSION,
            "budget": budget.stored(),
            "spent": state.spent,
            "prior": state.prior,
            "relation": state.relation,
            "recorded": state.recorded,
            "laws": {notion: law.name for notion, law in budget.laws.items()},
            "entries": [vars(entry) for entry in entries],
        },
        default=str,
        indent=1,
    )


def imported(text: str) -> tuple[Budget, list[Entry], State]:
    """Read an export. Its totals are added up again and must agree."""
    try:
        given = json.loads(text)
        if (given["format"], given["version"]) != (_FORMAT, _VERSION):
            raise InvalidInput(
                f"this is {described(given['format'])} of version {described(given['version'])}, "
                f"not {_FORMAT!r} of version {_VERSION}"
            )
        budget, prior = Budget(given["budget"]), checked_label(given["prior"])
        relation = optional_relation(given.get("relation"))  # older exports do not tell
        recorded = given.get("recorded") is True and "relation" in given
        total = amounts_of(given["spent"])
        entries = [entry_of(*map(each.__getitem__, _ENTRY)) for each in given["entries"]]
    except InvalidInput:
        raise
    except UNREADABLE as error:
        raise unread("export of a ledger", text, error) from None
    after = _added_up(budget, entries, total, prior)
    return budget, entries, replace(after, relation=relation, recorded=recorded)


def _added_up(
    budget: Budget, entries: list[Entry], total: Mapping[str, Decimal], prior: str | None
) -> State:
    state = budget.empty()
    for entry in entries:
        whole = (
            entry.number == state.entries + 1
            and entry.charged.keys() == budget.limits.keys()
            and (entry.part is None) == (budget.delta is None)
        )
        if not whole:
            raise InvalidInput(f"spend {state.entries + 1} of the export is not whole")
        try:
            state = budget.after(state, entry.charged, Offer({}, entry.part, prior), entry.count)
        except BudgetExceeded as error:
            raise InvalidInput(f"the export goes beyond its own budget: {error}") from None
    if state.spent != total:
        raise InvalidInput(
            f"the export's spends add up to {_shown(state.spent)}, but its totals are "
            f"{_shown(total)}; it was changed"
        )
    if budget.delta is not None:
        level = budget.epsilon(state.parts)
        if abs(level - total[CURVE]) > total[CURVE] * _SAME:
            raise InvalidInput(
                f"the export's profiles compose to epsilon {level}, but its total is "
                f"{total[CURVE]}; it was changed"
            )
    return state


def _shown(amounts: Mapping[str, Decimal]) -> str:
    return ", ".join(f"{notion} {value}" for notion, value in amounts.items())
