"""Composition rules: how the levels of several steps combine, for every notion with a rule."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from fastpriv._core import validation as check
from fastpriv.notions.notion import Law
from fastpriv.notions.registry import NOTIONS

__all__ = ["LAWS", "Law", "compose_levels"]

#: zCDP levels rho, and probabilities of failure. They are no notions of a single mechanism here:
#: their levels come from privacy profiles and declarations.
_ADDED = tuple(
    Law(
        notion,
        notion,
        notion,
        "levels add",
        "nothing: levels may be chosen after seeing earlier outputs",
        source,
    )
    for notion, source in (
        ("zcdp", "Bun and Steinke 2016, lemma 2.3; Feldman and Zrnic 2021 for chosen levels"),
        ("delta", "union bound"),
    )
)
#: The composition rule of every notion that has one, by its slug.
LAWS: Mapping[str, Law] = MappingProxyType(
    {slug: notion.law for slug, notion in NOTIONS.items() if notion.law is not None}
    | {law.notion: law for law in _ADDED}
)


def compose_levels(notion: str, levels: Iterable[float]) -> float:
    """Compose the levels of several steps into their joint level.

    Parameters
    ----------
    notion : str
        A key of :data:`LAWS`.
    levels : iterable of float
        One level per step, in nats. The first is a level of ``LAWS[notion].first``. The others are
        levels of ``LAWS[notion].later``: DP levels for identifiability, leakage capacities for
        leakage.

    Returns
    -------
    float
        Level in nats, rounded up. It is 0 without steps, although a prior alone already has the
        identifiability level ``prior.epsilon_x()``.

    Examples
    --------
    >>> import fastpriv as fp
    >>> prior, channel = fp.Product.iid([0.8, 0.2], 3), fp.HammingChannel(3, 2, 0.5)
    >>> first = fp.identifiability_level(channel, prior)
    >>> level = fp.accounting.compose_levels("identifiability", [first, 0.5, 0.5])
    >>> round(level - prior.epsilon_x(), 12)
    1.5
    """
    check.word(notion, "notion", LAWS, "fastpriv.accounting.LAWS, such as 'dp'")
    given = [
        math.inf if check.endless(level) else check.real(level, "level", least=0.0)
        for level in check.items(levels, "levels", "numbers, one per release")
    ]
    return LAWS[notion].combine(given)
