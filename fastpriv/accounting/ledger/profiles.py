"""Privacy profiles of spends: as text, and composed.

Budgets at (epsilon, delta) compose the profiles of all spends. A ledger keeps profiles as text, and
a :class:`Composer` keeps the composed privacy loss, in the store too, so that a spend costs one
convolution, also if others have spent meanwhile. The kept bytes only save time. They begin with
their own digest and state after which entry they were made. If they are damaged, of another version
or platform, or of an entry that is not in the ledger, they are ignored and the profiles are
composed again.

This module imports the engines of profiles, so the ledger imports it when a spend needs it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from fastpriv._core.rounding import raised
from fastpriv.accounting.profile.discrete import FINE, DiscreteLosses, Releases, Step
from fastpriv.accounting.profile.losses import ContinuousStep, Directed, NoBound, in_range
from fastpriv.accounting.profile.profile import PrivacyProfile
from fastpriv.accounting.profile.running import LENGTH, Amounts, Running, composable
from fastpriv.accounting.profile.steps.finite import FiniteStep, SampledFinite
from fastpriv.accounting.profile.steps.gaussian import GaussianNoise
from fastpriv.accounting.profile.steps.laplace import Interval
from fastpriv.accounting.profile.text import counted, plain
from fastpriv.errors import unread

#: How often each profile was spent, by its text.
Parts = Mapping[str, int]

#: Up to this many kinds of finite steps are composed from scratch, to the last digits.
_COMPOSED_AFRESH = 16
#: Cells into which the outputs of continuous noise are partitioned, and of all kinds together if
#: they are composed at once. Errors of epsilon are of second order in the width of a cell.
_CELLS = 1 << 12
_ALL_CELLS = 1 << 22
_FEWEST_CELLS = 1 << 9
#: Outputs beyond the cells have the probability e^-32 of delta, and count as infinite losses.
_BEYOND = 32.0
#: Compositions that were asked about last, in memory: some of them will be spent.
_ASKED = 4
#: A composition of at most this many values, of 24 bytes each, is stored with every spend.
_SMALL = 1 << 13
#: Kinds of profiles that may be missing in a larger one that is stored; its readers add them.
_MISSING = 2
#: Upper bounds of steps that are kept, of 0.2 MB each.
_MEASURES = 16
#: Version of the bytes of a composition.
_VERSION = 3
#: Bytes of the SHA-256 digest in front of them.
_DIGEST = 32
#: Values of a transform below this one are not written; they count as errors. Its rounding is 2^-46
#: of its largest value, so those of a thousand spends are far below it.
_UNWRITTEN = 2.0**-72
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

#: One composition for both directions of neighbours, or one for each.
Composed = tuple[Running, ...]
#: Steps and their composition.
Known = tuple[Parts, Composed]


class Compositions(Protocol):
    """What a composer needs of a store."""

    @property
    def address(self) -> str | None:
        """Where other processes find the store; None in memory."""

    def composition(self) -> bytes | None:
        """Return the composed profiles that are kept, if any."""

    def parts_at(self, number: int, mark: int) -> Parts | None:
        """Return how often each part was spent after an entry with a mark; None without it."""


class Composer:
    """Epsilon of steps at one delta; the last compositions are kept.

    A composition is used again if all its steps are among those asked about; the missing steps are
    added to it. If others have spent, their composition is read from the store. Many threads may
    ask: compositions do not change, and at worst one is computed twice.

    Parameters
    ----------
    delta : float
        The delta of the budget.
    store : Compositions, optional
        The store of the ledger.
    """

    def __init__(self, delta: float, store: Compositions | None) -> None:
        self._delta, self._store = delta, store
        self.kept: Known = ({}, ())  # of the last spend that was made here
        self._stored: Known = ({}, ())  # what the store is known to have
        self._asked: tuple[Known, ...] = ()

    def epsilon(self, parts: Parts, own: str | None = None, brief: bool = False) -> float | None:
        """Return epsilon of all steps together, rounded up.

        ``own`` is the part that is to be spent; all others were spent before. If ``brief``, return
        None instead of composing all profiles again.
        """
        many = bool(self.kept[1]) or not _is_short(parts)  # what is spent does not become less
        if many and all(map(_is_composable, parts)):
            composition = self._nearest(parts, own)
            epsilon = None if composition is None else self._level(composition)
            if epsilon is None:
                if brief:
                    return None
                composition = composed(parts, self._delta)
                epsilon = None if composition is None else self._level(composition, True)
            if composition is not None and epsilon is not None:
                self._asked = (*self._asked[1 - _ASKED :], (dict(parts), composition))
                return epsilon
        return composed_epsilon(parts, self._delta)

    def to_store(self, parts: Parts, number: int, mark: int) -> bytes | None:
        """Return the bytes to store with an entry after which these parts are spent, if any."""
        composition, (stored, before) = self._found(parts), self._stored
        if composition is None or self._store is None or self._store.address is None:
            return None
        missing = sum(stored.get(text) != count for text, count in parts.items())
        tilted = [each.s for each in composition] != [each.s for each in before]
        if missing < _MISSING and not tilted and sum(map(_extent, composition)) > _SMALL:
            return None
        return packed(number, mark, composition)

    def spent(self, parts: Parts, stored: bool) -> None:
        """Keep the composition of a spend that was made, and possibly stored."""
        composition = self._found(parts)
        if composition is not None:
            self.kept = parts, composition
            self._stored = self.kept if stored else self._stored

    def _found(self, parts: Parts) -> Composed | None:
        asked = reversed(self._asked)
        return next((composition for known, composition in asked if known == parts), None)

    def _nearest(self, parts: Parts, own: str | None) -> Composed | None:
        """Add the missing steps to the composition that lacks the fewest kinds of others."""
        for loaded in (False, True):
            composition, rest = _closest((self.kept, self._stored, *self._asked), parts, own)
            if not rest.keys() - {own} or loaded or not self._load():
                break
        return more(composition, rest, self._delta) if composition else None

    def _load(self) -> bool:
        """Read the composition that the store keeps; return whether there is one."""
        data = None if self._store is None else self._store.composition()
        found = None if data is None else unpacked(data)
        if self._store is None or found is None:
            return False
        number, mark, composition = found
        parts = self._store.parts_at(number, mark)
        if parts is None:
            return False
        self._stored = parts, composition
        return True

    def _level(self, composition: Composed, anyway: bool = False) -> float | None:
        """Return the larger level of the directions; None if another tilt would do better."""
        level = 0.0
        for each in composition:
            found = each.epsilon(self._delta)
            if found is None or not (anyway or each.is_close(self._delta, found)):
                return None
            level = max(level, found)
        return level


def _closest(
    known: Iterable[Known], parts: Parts, own: str | None
) -> tuple[Composed, dict[str, int]]:
    """Return the composition that lacks the fewest kinds, not counting ``own``, and its rest."""
    found: tuple[Composed, dict[str, int]] = (), dict(parts)
    for steps, composition in known:
        if composition and all(parts.get(text, 0) >= count for text, count in steps.items()):
            rest = {t: k - steps.get(t, 0) for t, k in parts.items() if k > steps.get(t, 0)}
            missing = rest.keys() - {own}
            if not found[0] or len(missing) < len(found[1].keys() - {own}):
                found = composition, rest
            if not missing:
                break
    return found


def _is_short(parts: Parts) -> bool:
    """Whether steps are so few that composing them from scratch is cheap."""
    steps = {part for text in parts for part in profile_of(text).parts}
    noise = {part for part in steps if not isinstance(part, FiniteStep)}
    normal = {part for part in noise if isinstance(part, GaussianNoise)}
    if not noise:
        return len(parts) <= _COMPOSED_AFRESH
    return len(steps) - len(normal) + bool(normal) <= 1


@lru_cache(maxsize=1 << 16)
def _is_composable(text: str) -> bool:
    """Whether all steps of a profile have upper bounds by discrete losses."""
    for part in profile_of(text).parts:
        if isinstance(part, FiniteStep):
            if part.upper.shift != 0.0:
                return False
        elif isinstance(part, ContinuousStep):
            # Several bounded ranges have a joint bound, which is below that of their envelopes.
            ranges = isinstance(part, Interval) and not part.attained and part.q == 1.0
            if not part.can_be_cut or ranges:
                return False
        elif not isinstance(part, SampledFinite):
            return False
    return True


def upper_measures(
    parts: Parts, delta: float, flipped: bool, cells: int = _CELLS
) -> Releases | None:
    """Return discrete losses that bound the steps from above in one direction, or None."""
    steps = []
    for text, count in parts.items():
        for part, k in profile_of(text).parts.items():
            try:
                with in_range():
                    measure = _measure(part, delta, flipped, cells)
            except NoBound:
                return None
            if measure is None or not composable(measure):
                return None
            if measure.top > 0.0 or measure.infinite > 0.0:
                steps.append((measure, k * count))
    return steps


@lru_cache(maxsize=_MEASURES)
def _measure(part: Step, delta: float, flipped: bool, cells: int) -> DiscreteLosses | None:
    if isinstance(part, FiniteStep):
        return part.upper
    if isinstance(part, SampledFinite):
        return part.measure(flipped, True)
    if isinstance(part, ContinuousStep):
        return Directed(part, flipped).measure(_BEYOND - math.log(delta), cells, True)
    return None


def _is_symmetric(parts: Parts) -> bool:
    """Whether all steps have the same losses in both directions."""
    return all(
        part.symmetric
        for text in parts
        for part in profile_of(text).parts
        if isinstance(part, ContinuousStep | SampledFinite)
    )


def composed(parts: Parts, delta: float) -> Composed | None:
    """Compose all steps, in both directions unless these are the same; None if no grid suits."""
    cells = min(max(_ALL_CELLS // max(len(parts), 1), _FEWEST_CELLS), _CELLS)
    result = []
    for flipped in (False,) if _is_symmetric(parts) else (False, True):
        measures = upper_measures(parts, delta, flipped, cells)
        each = None if not measures else Running.of(measures, delta)
        if each is None:
            return None
        result.append(each)
    return tuple(result)


def more(composition: Composed, parts: Parts, delta: float) -> Composed | None:
    """Add steps to a composition."""
    if len(composition) == 1 and not _is_symmetric(parts):
        composition = composition * 2
    result = []
    for flipped, each in zip((False, True), composition, strict=False):
        measures = upper_measures(parts, delta, flipped)
        if measures is None:
            return None
        result.append(each.plus(measures))
    return tuple(result)


def _extent(one: Running) -> int:
    """Return how many values of the transform are worth writing."""
    seen = np.flatnonzero(np.abs(one.transform) + one.error > _UNWRITTEN)
    return int(seen[-1]) + 1 if len(seen) else 1


def packed(number: int, mark: int, composition: Composed) -> bytes:
    """Return a composition as bytes, with the entry after which it holds."""
    about: dict[str, Any] = {
        "version": _VERSION,
        "fine": FINE,
        "length": LENGTH,
        "number": number,
        "mark": f"{mark:x}",
        "directions": [],
    }
    body = b""
    for one in composition:
        kept = _extent(one)
        first = np.longdouble(one.log_total).astype(np.float64)
        rest = (one.log_total - first).astype(np.float64)
        arrays = [
            one.transform[:kept].real,
            one.transform[:kept].imag,
            one.error[:kept],
            one.turns,
            one.chernoff.reshape(-1),
            np.array(one.amounts),
            np.array([one.s, one.h, one.off, *one.reach, first, rest]),
        ]
        about["directions"].append({"centre": one.centre, "sizes": [len(a) for a in arrays]})
        body += b"".join(array.astype("<f8").tobytes() for array in arrays)
    body = json.dumps(about).encode() + b"\n" + body
    return hashlib.sha256(body).digest() + body


def unpacked(data: bytes) -> tuple[int, int, Composed] | None:
    """Return the entry and its mark, and the composition; None if the bytes are of no use."""
    if hashlib.sha256(data[_DIGEST:]).digest() != data[:_DIGEST]:
        return None
    head, _, body = data[_DIGEST:].partition(b"\n")
    about = json.loads(head)
    if about["version"] != _VERSION or (about["fine"], about["length"]) != (FINE, LENGTH):
        return None
    start, composition = 0, []
    for each in about["directions"]:
        arrays = []
        for size in each["sizes"]:
            arrays.append(np.frombuffer(body, "<f8", size, 8 * start).astype(np.float64))
            start += size
        real, imaginary, error, turns, chernoff, amounts, (s, h, off, low, high, *log) = arrays
        transform = np.zeros(LENGTH // 2 + 1, np.complex128)
        transform[: len(real)] = real + 1j * imaginary
        errors = np.full(len(transform), 2.0 * _UNWRITTEN)
        errors[: len(error)] = error
        reach, total = (float(low), float(high)), np.longdouble(log[0]) + np.longdouble(log[1])
        kept = Amounts(*amounts.tolist())
        sums = turns, chernoff.reshape(2, -1), reach, each["centre"], total, kept
        composition.append(Running(float(s), float(h), transform, errors, float(off), *sums))
    return about["number"], int(about["mark"], 16), tuple(composition)
