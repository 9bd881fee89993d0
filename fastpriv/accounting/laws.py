"""How levels of several releases combine, notion by notion, and what each law needs.

Every law has one shape: the first release counts with its own level, each later one with a level
that holds whatever was seen before. In most notions the two are the same number and levels just
add; identifiability and the leakages under one prior are not, because a later release meets the
posterior and not the prior.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from fastpriv._core import validation as check
from fastpriv._core.rounding import sum_up
from fastpriv.errors import InvalidInput

__all__ = ["LAWS", "Law", "compose_levels"]

_INDEPENDENT = "releases that are independent given the database"
_ADAPTIVE = "nothing: later mechanisms may depend on earlier outputs"
_POSTERIOR = "nothing: a later release is counted at its worst over all posteriors"


@dataclass(frozen=True)
class Law:
    """How the levels of one notion combine: first level + sum of the later ones.

    Attributes
    ----------
    notion : str
        The notion of the total, a key of ``fastpriv.notions.implications.NOTIONS``, or
        "individual-capacity".
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


def _additive(notion: str, needs: str, source: str, most: float = math.inf) -> Law:
    return Law(notion, notion, notion, "levels add", needs, source, most)


_W, _M = "Wang-Ying-Zhang 2015", "Makhdoumi-Fawaz 2013"
_D, _P = "Wu-Xia-He 2020", "Saeidian et al. 2024"
_CHAIN = "first level + leakage capacities"

#: The law of every notion.
LAWS: Mapping[str, Law] = MappingProxyType(
    {
        law.notion: law
        for law in (
            _additive("strong-dp", _ADAPTIVE, "likelihood ratios multiply"),
            _additive("dp", _ADAPTIVE, "likelihood ratios multiply"),
            _additive("approximate-dp", _ADAPTIVE, "likelihood ratios multiply; deltas add too"),
            _additive("product-row-pml", _ADAPTIVE, f"{_P}, Theorem 4.2: it is the DP level"),
            _additive("product-row-max-information", _ADAPTIVE, f"{_D}, Theorem 1: the DP level"),
            _additive("product-row-information", _INDEPENDENT, "chain rule given the other rows"),
            Law(
                "identifiability",
                "identifiability",
                "dp",
                "first level + later DP levels",
                _ADAPTIVE,
                f"{_W}, Theorem 1 (eq. 25), on the posterior",
            ),
            _additive("pml-all-priors", _ADAPTIVE, f"{_P}, Theorem 4.5: it is the strong DP level"),
            Law(
                "information-privacy",
                "information-privacy",
                "strong-dp",
                "first level + later strong DP levels",
                _POSTERIOR,
                f"{_M}, Proposition 4 (1), on the posterior",
            ),
            Law("pml", "pml", "pml-all-priors", _CHAIN, _POSTERIOR, f"{_P}, composition of PML"),
            Law(
                "divergence",
                "pml",
                "pml-all-priors",
                _CHAIN,
                _POSTERIOR,
                "a divergence is at most the leakage",
            ),
            _additive("maximal-leakage", _INDEPENDENT, "column maxima of a product of channels"),
            _additive("mutual-information", _INDEPENDENT, "chain rule, conditioning on the rest"),
            _additive("leakage-factor", _INDEPENDENT, "mutual information over one entropy", 1.0),
            _additive(
                "individual-capacity",
                _INDEPENDENT,
                f"{_D}, Theorem 5: one data set; ``two_dataset_bound`` for two",
            ),
        )
    }
)


def compose_levels(notion: str, levels: Iterable[float]) -> float:
    """Level of several releases together, from the level of each.

    Parameters
    ----------
    notion : str
        A key of :data:`LAWS`.
    levels : iterable of float
        One per release. The first is a level of ``LAWS[notion].first``, the others are levels of
        ``LAWS[notion].later``: DP levels for identifiability, leakage capacities for leakage.

    Returns
    -------
    float
        Level in nats, rounded up; 0 for no release, except that a prior alone already has an
        identifiability level, which is ``prior.epsilon_x()``.

    Examples
    --------
    >>> import fastpriv as fp
    >>> prior, channel = fp.Product.iid([0.8, 0.2], 3), fp.HammingChannel(3, 2, 0.5)
    >>> first = fp.identifiability_level(channel, prior)
    >>> level = fp.accounting.compose_levels("identifiability", [first, 0.5, 0.5])
    >>> round(level - prior.epsilon_x(), 12)
    1.5
    """
    if not isinstance(notion, str) or notion not in LAWS:
        raise InvalidInput(f"notion must be one of {', '.join(LAWS)}; got {notion!r:.60}")
    given = []
    for level in levels:
        endless = isinstance(level, float) and level == math.inf
        given.append(math.inf if endless else check.real(level, "level", least=0.0))
    return LAWS[notion].combine(given)
