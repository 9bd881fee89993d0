"""Which local mechanism a column goes through: the one that was named, or the one that is best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from fastpriv.channels import AbstractChannel, ColumnsChannel, HammingChannel
from fastpriv.channels.local import (
    HadamardChannel,
    HashingChannel,
    ProjectiveChannel,
    SubsetChannel,
    UnaryChannel,
)
from fastpriv.errors import InvalidInput, TooLarge, described, did_you_mean
from fastpriv.releasing.domain import Domain
from fastpriv.releasing.local.plan import LocalPlan, record_variance

Make = Callable[[int, float], AbstractChannel]

AUTO, RESPONSE = "auto", "randomised-response"


def _response(k: int, epsilon: float) -> AbstractChannel:
    return HammingChannel(1, k, epsilon)


#: Mechanisms by their names in a release. Of equally good ones the first is taken.
MECHANISMS: dict[str, Make] = {
    RESPONSE: _response,
    "subset-selection": SubsetChannel,
    "projective": ProjectiveChannel,
    "hashing": HashingChannel,
    "hadamard": HadamardChannel,
    "unary": UnaryChannel,
    "symmetric-unary": partial(UnaryChannel, encoding="symmetric"),
}
#: Most numbers in a report for a mechanism to be chosen; a report is a cell of a table.
_LONGEST = 64


def named(mechanism: Any) -> bool:
    """Whether a mechanism is given by its name; the name is checked."""
    if not isinstance(mechanism, str):
        return False
    known = [AUTO, *MECHANISMS]
    if mechanism not in known:
        raise InvalidInput(
            f"there is no local mechanism {described(mechanism[:40])}"
            f"{did_you_mean(mechanism, known)}; give one of {', '.join(known)}, or a channel"
        )
    return True


def plan(domain: Domain, mechanism: str, epsilons: Sequence[float]) -> LocalPlan:
    """Return the plan of a named mechanism, each column at its own level."""
    columns, reasons = [], []
    for name, k, epsilon in zip(domain.columns, domain.sizes, epsilons, strict=True):
        if k == 1:
            columns.append(_response(1, epsilon))
        elif mechanism == AUTO:
            column, reason = best(k, epsilon)
            columns.append(column)
            reasons.append(f"column {described(name)} goes through {reason}")
        else:
            columns.append(MECHANISMS[mechanism](k, epsilon))
    return LocalPlan.of(ColumnsChannel(columns), domain, tuple(reasons))


def best(k: int, epsilon: float) -> tuple[AbstractChannel, str]:
    """Return the mechanism of the least variance whose reports are short, and why.

    The variance is that of an estimated count for each record, at a share of 1/k, from the
    chances that are drawn.
    """
    rated: dict[str, tuple[float, AbstractChannel]] = {}
    for name, make in MECHANISMS.items():
        if name.endswith("unary") and k > _LONGEST:
            continue
        try:
            channel = make(k, epsilon)
        except TooLarge:
            continue
        if (getattr(channel, "width", None) or 1) <= _LONGEST:
            rated[name] = record_variance(channel), channel
    chosen = min(rated, key=lambda name: rated[name][0])
    others = ", ".join(f"{name} {rated[name][0]:.4g}" for name in rated if name != chosen)
    reason = f"{rated[chosen][1]!r}, whose counts have the least variance for each record, "
    return rated[chosen][1], f"{reason}{rated[chosen][0]:.4g} ({others})"
