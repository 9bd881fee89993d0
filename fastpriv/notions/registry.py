"""The one registry of notions. To add a notion, declare it in the file of its scope."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from fastpriv.notions.mechanism import MECHANISM
from fastpriv.notions.notion import Notion
from fastpriv.notions.papers import WANG
from fastpriv.notions.prior import FACTS, UNDER_PRIOR
from fastpriv.notions.secret import ABOUT_SECRET

#: Every notion by its slug, in the order in which notions are shown.
NOTIONS: Mapping[str, Notion] = MappingProxyType(
    {notion.slug: notion for notion in (*MECHANISM, *UNDER_PRIOR, *ABOUT_SECRET, *FACTS)}
)

#: Notions that a guarantee may be given in: others follow from them, or they from others.
RELATED = tuple(
    slug
    for slug, notion in NOTIONS.items()
    if notion.implies
    or any(rule.conclusion == slug for each in NOTIONS.values() for rule in each.implies)
)

#: Notions whose best mechanisms can be computed.
DESIGNED = tuple(slug for slug, notion in NOTIONS.items() if notion.program is not None)

#: Those of Wang-Ying-Zhang 2015, which curves compare by default: they scale to long priors.
COMPARED = tuple(slug for slug in DESIGNED if NOTIONS[slug].source.startswith(WANG))
