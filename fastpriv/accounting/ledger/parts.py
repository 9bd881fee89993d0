"""Profiles of releases as text, for files that outlive the process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from fastpriv._core import validation as check
from fastpriv.accounting.profile.atoms import Atom, from_envelope
from fastpriv.accounting.profile.curve import Curve
from fastpriv.accounting.profile.profile import PrivacyProfile
from fastpriv.errors import InvalidInput


def written(profile: PrivacyProfile) -> str:
    """Return a profile as JSON: what each of its releases is, exactly, and how often."""
    return json.dumps([[_plain(atom), count] for atom, count in profile._parts.items()])


def _plain(atom: Atom) -> list[Any]:
    kind, *rest = atom.key
    if kind == "laws":
        rest = [np.frombuffer(lines).reshape(-1, 2).tolist() for lines in rest]
    return [kind, *rest]


@lru_cache(maxsize=4096)
def read(text: str) -> PrivacyProfile:
    """Read a profile. Only its upper ends mean something: the channel itself is not stored."""
    try:
        return PrivacyProfile({_atom(*plain): int(count) for plain, count in json.loads(text)})
    except (TypeError, ValueError, IndexError, KeyError) as error:
        raise InvalidInput(f"this is no profile: {text!r:.60} ({error})") from None


def _atom(kind: str, *rest: Any) -> Atom:
    if kind == "response":
        m, epsilon, delta = rest
        return Atom.response(
            check.integer(m, "m", 1),
            check.real(epsilon, "epsilon", least=0.0),
            check.real(delta, "delta", least=0.0, most=1.0),
        )
    low, high = (check.floats(lines, "lines", 2) for lines in rest)
    key = ("laws", low.tobytes(), high.tobytes())
    return Atom(from_envelope(low, up=False), from_envelope(high, up=True), key)


def composed(parts: Mapping[str, int]) -> Curve:
    """Return the guarantee for all releases, from their texts and how often each was made."""
    return PrivacyProfile({}).compose(*(read(t).self_compose(k) for t, k in parts.items()))._above
