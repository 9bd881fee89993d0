"""Privacy profiles of spends: as text, and composed.

Budgets at (epsilon, delta) compose the profiles of all spends. A ledger keeps profiles as text, and
a :class:`Composer` keeps the composed privacy loss, in the file too, so that a spend costs one
convolution. The kept bytes only save time. They begin with their own digest and name the spends
they were made of. If they are damaged, of another version or platform, or of spends that are not in
the ledger, they are ignored and the profiles are composed again.

This module imports the engines of profiles, so the ledger imports it when a spend needs it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np

from fastpriv._core.rounding import raised
from fastpriv.accounting.profile.discrete import FINE, Releases
from fastpriv.accounting.profile.profile import PrivacyProfile
from fastpriv.accounting.profile.running import Running, composable
from fastpriv.accounting.profile.steps.finite import FiniteStep
from fastpriv.accounting.profile.text import counted, plain
from fastpriv.errors import unread

#: How often each profile was spent, by its text.
Parts = Mapping[str, int]

#: Up to this many kinds of profiles are composed from scratch, to the last digits.
_COMPOSED_AFRESH = 16
#: Compositions in memory: if a spend fails, the one before it is still there.
_IN_MEMORY = 2
#: Kinds of profiles that may be missing in the file's composition; they are added when it is read.
_MISSING = 32
#: Version of the bytes of a composition.
_VERSION = 1
#: Bytes of the SHA-256 digest in front of them.
_DIGEST = 32
#: Arrays of a composition that are written as doubles.
_DOUBLES = ("turns", "logs", "amounts")
#: Arrays of longer floats, each written as two doubles.
_LONG_DOUBLES = ("chernoff", "log_total")
#: Rounding of a sum of zCDP levels, in units in the last place: fsum rounds once, products once.
_SUM_ULPS = 8.0


# Profiles as text.


def profile_text(profile: PrivacyProfile) -> str:
    """Return a profile as JSON: its steps with their counts, of a channel only the curve."""
    return json.dumps([[plain(part, True), count] for part, count in profile.parts.items()])


@lru_cache(maxsize=4096)
def profile_of(text: str) -> PrivacyProfile:
    """Return the profile of a text, for its upper bounds: a text keeps no channels."""
    try:
        return PrivacyProfile(counted((given, int(count)) for given, count in json.loads(text)))
    except (TypeError, ValueError, IndexError, KeyError) as error:
        raise unread("profile", text, error) from None


def composed_epsilon(parts: Parts, delta: float) -> float:
    """Return epsilon of all steps together at a delta, rounded up."""
    steps = (profile_of(text).self_compose(count) for text, count in parts.items())
    return PrivacyProfile({}).compose(*steps).cases.guaranteed(delta)


def adaptive_epsilon(parts: Parts, delta: float) -> float:
    """Return epsilon at a delta of steps whose levels were chosen after earlier outputs.

    It is the epsilon of the sum of their zCDP levels, as in
    :class:`fastpriv.accounting.PrivacyFilter`.
    """
    total = raised(math.fsum(count * _zcdp(text) for text, count in parts.items()), _SUM_ULPS)
    return PrivacyProfile.zcdp(total).epsilon(delta).upper if total < math.inf else math.inf


@lru_cache(maxsize=4096)
def _zcdp(text: str) -> float:
    return profile_of(text).zcdp_level().upper


# The composition of all that was spent.


class Composer:
    """Epsilon of steps at one delta; the last compositions are kept.

    A composition is used again if all its steps are among those asked about; the missing steps are
    added to it. So it does not matter who spent what in between. Many threads may ask: compositions
    do not change, and at worst one is computed twice.

    Parameters
    ----------
    delta : float
        The delta of the budget.
    stored : callable
        Returns the bytes of the composition that the ledger's file keeps, or None.
    """

    def __init__(self, delta: float, stored: Callable[[], bytes | None]) -> None:
        self._delta, self._stored = delta, stored
        self.kept: tuple[tuple[Parts, Running], ...] = ()
        self._asked: tuple[Parts, Running] | None = None
        self._saved: Parts | None = None  # steps of the file's composition, None before it is read

    def epsilon(self, parts: Parts) -> float:
        """Return epsilon of all steps together, rounded up."""
        if len(parts) > _COMPOSED_AFRESH and (measures := upper_measures(parts)) is not None:
            self._load(parts)
            composition = self._nearest(parts)
            epsilon = None if composition is None else composition.epsilon(self._delta)
            if epsilon is None:
                composition = Running.of(measures, self._delta)
                epsilon = None if composition is None else composition.epsilon(self._delta)
            if composition is not None and epsilon is not None:
                self._asked = dict(parts), composition
                return epsilon
        return composed_epsilon(parts, self._delta)

    def spent(self, parts: Parts) -> bytes | None:
        """Keep the composition of steps that were made; return its bytes if the file needs them."""
        asked, saved = self._asked, self._saved or {}
        if asked is None or asked[0] != parts:
            return None
        afresh = not self.kept or self.kept[-1][1].s != asked[1].s  # the tilt of the file is old
        self.kept = (*self.kept[1 - _IN_MEMORY :], asked)
        missing = sum(saved.get(text) != count for text, count in parts.items())
        if missing < _MISSING and not afresh:
            return None
        self._saved = asked[0]
        return packed(*asked)

    def _load(self, parts: Parts) -> None:
        """Read the composition that the file keeps, once."""
        if self._saved is None:
            data = self._stored()
            kept = None if data is None else unpacked(data, parts)
            self._saved = {} if kept is None else kept[0]
            self.kept = self.kept if kept is None else (kept, *self.kept)

    def _nearest(self, parts: Parts) -> Running | None:
        """Add the missing steps to the last composition whose steps are all among these."""
        for known, composition in reversed(self.kept):
            if all(parts.get(text, 0) >= count for text, count in known.items()):
                rest = {t: k - known.get(t, 0) for t, k in parts.items() if k > known.get(t, 0)}
                more = upper_measures(rest)
                return None if more is None else composition.plus(more) if more else composition
        return None


def upper_measures(parts: Parts) -> Releases | None:
    """Return the measures that bound the steps from above; None if a step has no such measure."""
    steps = []
    for text, count in parts.items():
        for part, k in profile_of(text).parts.items():
            if not isinstance(part, FiniteStep) or not composable(part.upper):
                return None
            if part.upper.top > 0.0 or part.upper.infinite > 0.0:
                steps.append((part.upper, k * count))
    return steps


def packed(parts: Parts, composition: Running) -> bytes:
    """Return a composition as bytes, with the names of its steps."""
    arrays = {name: np.asarray(getattr(composition, name), np.float64) for name in _DOUBLES}
    for name in _LONG_DOUBLES:
        value = np.asarray(getattr(composition, name), np.longdouble)
        first = value.astype(np.float64)
        arrays[name] = np.stack([first, (value - first).astype(np.float64)])
    about = {
        "version": _VERSION,
        "fine": FINE,
        "parts": {_short_name(text): count for text, count in parts.items()},
        "s": composition.s.hex(),
        "h": composition.h.hex(),
        "places": composition.places.tolist(),
        "shapes": {name: array.shape for name, array in arrays.items()},
    }
    head = json.dumps(about).encode() + b"\n"
    body = head + b"".join(array.astype("<f8").tobytes() for array in arrays.values())
    return hashlib.sha256(body).digest() + body


def unpacked(data: bytes, parts: Parts) -> tuple[dict[str, int], Running] | None:
    """Return the steps and their composition; None unless all steps are among the ledger's."""
    if hashlib.sha256(data[_DIGEST:]).digest() != data[:_DIGEST]:
        return None
    head, _, body = data[_DIGEST:].partition(b"\n")
    about = json.loads(head)
    if (about["version"], about["fine"]) != (_VERSION, FINE):
        return None
    texts = {_short_name(text): text for text in parts}
    counts = about["parts"]
    if not all(name in texts and parts[texts[name]] >= counts[name] for name in counts):
        return None
    arrays, start = {}, 0
    for name, shape in about["shapes"].items():
        size = int(np.prod(shape))
        arrays[name] = np.frombuffer(body, "<f8", size, 8 * start).astype(np.float64)
        arrays[name] = arrays[name].reshape(shape)
        start += size
    fine = {name: arrays[name].astype(np.longdouble).sum(axis=0) for name in _LONG_DOUBLES}
    composition = Running(
        float.fromhex(about["s"]),
        float.fromhex(about["h"]),
        arrays["turns"],
        arrays["logs"],
        fine["chernoff"],
        np.array(about["places"], np.int64),
        np.longdouble(fine["log_total"]),
        arrays["amounts"],
    )
    return {texts[name]: count for name, count in counts.items()}, composition


def _short_name(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
