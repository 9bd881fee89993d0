"""Privacy profiles of spends: as text, and composed.

Budgets at (epsilon, delta) compose the profiles of all spends. A ledger keeps profiles as text, and
a :class:`Composer` keeps the composed privacy loss, in the store too, so that a spend costs one
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
from typing import Any

import numpy as np

from fastpriv._core.rounding import raised
from fastpriv.accounting.profile.discrete import FINE, DiscreteLosses, Releases, Step
from fastpriv.accounting.profile.losses import ContinuousStep, Directed, NoBound, in_range
from fastpriv.accounting.profile.profile import PrivacyProfile
from fastpriv.accounting.profile.running import LENGTH, Running, composable
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
#: Compositions in memory: if a spend fails, the one before it is still there.
_IN_MEMORY = 2
#: Kinds of profiles that may be missing in the kept composition; they are added when it is read.
_MISSING = 32
#: Version of the bytes of a composition.
_VERSION = 2
#: Bytes of the SHA-256 digest in front of them.
_DIGEST = 32
#: Values of a transform below this one are not written; they count as errors.
_UNWRITTEN = 2.0**-90
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
        Returns the bytes of the composition that the ledger's store keeps, or None.
    """

    def __init__(self, delta: float, stored: Callable[[], bytes | None]) -> None:
        self._delta, self._stored = delta, stored
        self.kept: tuple[tuple[Parts, Composed], ...] = ()
        self._asked: tuple[Parts, Composed] | None = None
        self._saved: Parts | None = None  # steps of the stored composition, None before it is read

    def epsilon(self, parts: Parts) -> float:
        """Return epsilon of all steps together, rounded up."""
        if not _is_short(parts) and all(map(_is_composable, parts)):
            self._load(parts)
            composition = self._nearest(parts)
            epsilon = None if composition is None else self._level(composition)
            if epsilon is None:
                composition = composed(parts, self._delta)
                epsilon = None if composition is None else self._level(composition, True)
            if composition is not None and epsilon is not None:
                self._asked = dict(parts), composition
                return epsilon
        return composed_epsilon(parts, self._delta)

    def spent(self, parts: Parts) -> bytes | None:
        """Keep the composition of steps that were made; return its bytes if it should be stored."""
        asked, saved = self._asked, self._saved or {}
        if asked is None or asked[0] != parts:
            return None
        tilts = [each.s for each in asked[1]]
        afresh = not self.kept or [each.s for each in self.kept[-1][1]] != tilts
        self.kept = (*self.kept[1 - _IN_MEMORY :], asked)
        missing = sum(saved.get(text) != count for text, count in parts.items())
        if missing < _MISSING and not afresh:
            return None
        self._saved = asked[0]
        return packed(*asked)

    def _load(self, parts: Parts) -> None:
        """Read the composition that the store keeps, once."""
        if self._saved is None:
            data = self._stored()
            kept = None if data is None else unpacked(data, parts)
            self._saved = {} if kept is None else kept[0]
            self.kept = self.kept if kept is None else (kept, *self.kept)

    def _nearest(self, parts: Parts) -> Composed | None:
        """Add the missing steps to the largest composition whose steps are all among these."""
        known = [*self.kept, *([] if self._asked is None else [self._asked])]
        for steps, composition in sorted(known, key=lambda each: -sum(each[0].values())):
            if all(parts.get(text, 0) >= count for text, count in steps.items()):
                rest = {t: k - steps.get(t, 0) for t, k in parts.items() if k > steps.get(t, 0)}
                return composition if not rest else more(composition, rest, self._delta)
        return None

    def _level(self, composition: Composed, anyway: bool = False) -> float | None:
        """Return the larger level of the directions; None if another tilt would do better."""
        level = 0.0
        for each in composition:
            found = each.epsilon(self._delta)
            if found is None or not (anyway or each.is_close(self._delta, found)):
                return None
            level = max(level, found)
        return level


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


def packed(parts: Parts, composition: Composed) -> bytes:
    """Return a composition as bytes, with the names of its steps."""
    about: dict[str, Any] = {
        "version": _VERSION,
        "fine": FINE,
        "length": LENGTH,
        "parts": {_short_name(text): count for text, count in parts.items()},
        "directions": [],
    }
    body = b""
    for one in composition:
        seen = np.flatnonzero(np.abs(one.transform) + one.error > _UNWRITTEN)
        kept = int(seen[-1]) + 1 if len(seen) else 1
        first = np.longdouble(one.log_total).astype(np.float64)
        rest = (one.log_total - first).astype(np.float64)
        arrays = [
            one.transform[:kept].real,
            one.transform[:kept].imag,
            one.error[:kept],
            one.turns,
            one.chernoff.reshape(-1),
            one.amounts,
            np.array([one.s, one.h, one.off, *one.reach, first, rest]),
        ]
        about["directions"].append({"centre": one.centre, "sizes": [len(a) for a in arrays]})
        body += b"".join(array.astype("<f8").tobytes() for array in arrays)
    body = json.dumps(about).encode() + b"\n" + body
    return hashlib.sha256(body).digest() + body


def unpacked(data: bytes, parts: Parts) -> tuple[dict[str, int], Composed] | None:
    """Return the steps and their composition; None unless all steps are among the ledger's."""
    if hashlib.sha256(data[_DIGEST:]).digest() != data[:_DIGEST]:
        return None
    head, _, body = data[_DIGEST:].partition(b"\n")
    about = json.loads(head)
    if about["version"] != _VERSION or (about["fine"], about["length"]) != (FINE, LENGTH):
        return None
    texts = {_short_name(text): text for text in parts}
    counts = about["parts"]
    if not all(name in texts and parts[texts[name]] >= counts[name] for name in counts):
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
        sums = turns, chernoff.reshape(2, -1), reach, each["centre"], total, amounts
        composition.append(Running(float(s), float(h), transform, errors, float(off), *sums))
    return {texts[name]: count for name, count in counts.items()}, tuple(composition)


def _short_name(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
