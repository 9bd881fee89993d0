"""Profiles of releases as text, for files that outlive the process."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import lru_cache

from fastpriv._core.rounding import raised
from fastpriv.accounting.profile.profile import PrivacyProfile
from fastpriv.accounting.profile.text import counted, plain
from fastpriv.errors import unread


def written(profile: PrivacyProfile) -> str:
    """Return a profile as JSON: what each of its releases is, and how often; curves of channels."""
    return json.dumps([[plain(part, True), count] for part, count in profile.parts.items()])


@lru_cache(maxsize=4096)
def read(text: str) -> PrivacyProfile:
    """Return the profile that was written, for its upper ends: of channels nothing is kept."""
    try:
        return PrivacyProfile(counted((given, int(count)) for given, count in json.loads(text)))
    except (TypeError, ValueError, IndexError, KeyError) as error:
        raise unread("profile", text, error) from None


def level_of(parts: Mapping[str, int], delta: float) -> float:
    """Return epsilon of all releases at a delta, rounded up, from their texts and counts."""
    whole = PrivacyProfile({}).compose(*(read(t).self_compose(k) for t, k in parts.items()))
    return whole.cases.guaranteed(delta)


@lru_cache(maxsize=4096)
def _zcdp(text: str) -> float:
    return read(text).zcdp_level().upper


def filtered_level_of(parts: Mapping[str, int], delta: float) -> float:
    """Return epsilon at a delta of releases whose levels were chosen after earlier outputs.

    That of the sum of their zCDP levels, as in :class:`fastpriv.accounting.PrivacyFilter`.
    """
    total = raised(math.fsum(k * _zcdp(text) for text, k in parts.items()), 8.0)
    return PrivacyProfile.zcdp(total).epsilon(delta).upper if total < math.inf else math.inf
