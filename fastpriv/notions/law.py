"""How the levels of several releases combine in one notion.

Every law has one shape: the first release counts with its own level, each later one with a level
that holds whatever was seen before. In most notions the two are the same number and levels just
add. In identifiability and in the leakages under one prior they differ, because a later release
meets the posterior and not the prior.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from fastpriv._core.rounding import sum_up

__all__ = ["Law"]

#: What a law may need.
INDEPENDENT = "releases that are independent given the database"
ADAPTIVE = "nothing: later mechanisms may depend on earlier outputs"
POSTERIOR = "nothing: a later release is counted at its worst over all posteriors"


@dataclass(frozen=True)
class Law:
    """How the levels of one notion combine: first level + sum of the later ones.

    Attributes
    ----------
    notion : str
        The notion of the total, a key of ``fastpriv.notions.NOTIONS``.
    first, later : str
        The notions in which the first and every later release are to be measured.
    name : str
        The law in a few words.
    needs : str
        What has to hold.
    source : str
        Where it is proved.
    most : float
        What no total exceeds.

    Examples
    --------
    >>> from fastpriv.accounting import LAWS
    >>> LAWS["identifiability"].later
    'dp'
    >>> LAWS["dp"].combine([0.5, 0.25, 0.25])
    1.0
    """

    notion: str
    first: str
    later: str
    name: str
    needs: str
    source: str
    most: float = math.inf

    @property
    def adds(self) -> bool:
        """Whether the total is the sum of levels of one and the same notion."""
        return self.first == self.later

    def combine(self, levels: Iterable[float]) -> float:
        """Add levels, the first in notion ``first`` and the others in ``later``. Rounded up."""
        return min(sum_up(list(levels)), self.most)


def additive(notion: str, needs: str, source: str, most: float = math.inf) -> Law:
    """Return the law by which levels of one notion add."""
    return Law(notion, notion, notion, "levels add", needs, source, most)
