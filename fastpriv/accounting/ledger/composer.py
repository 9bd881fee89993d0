"""The composed law of all that was spent, kept so that a spend costs one composition."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fastpriv.accounting.ledger import kept
from fastpriv.accounting.ledger.parts import level_of, read
from fastpriv.accounting.profile.discrete import Releases
from fastpriv.accounting.profile.running import Running, composable
from fastpriv.accounting.profile.steps.finite import FiniteStep

#: So few kinds of releases are composed from scratch, to the last digits.
_FEW = 16
#: Laws that are kept: a spend that fails after all leaves the one before.
_KEPT = 2
#: Kinds of releases that may be missing in the law that a file keeps, to be added when it is read.
_MISSING = 32

Parts = Mapping[str, int]
Known = tuple[Parts, Running]


class Composer:
    """Epsilon of releases at one delta; the laws of what was spent last are kept.

    A law is used again where its releases are among those that are asked about: what is missing is
    added to it. So it makes no difference who spent what in between. Many threads may ask: laws do
    not change, and at worst one is composed twice. ``stored`` returns the law that a file keeps.
    """

    def __init__(self, delta: float, stored: Callable[[], bytes | None]) -> None:
        self._delta, self._stored = delta, stored
        self._laws: tuple[Known, ...] = ()
        self._asked: Known | None = None
        self._saved: Parts | None = None  # releases of the law in the file, None if not looked up

    def level(self, parts: Parts) -> float:
        """Return epsilon of all releases together, rounded up, from their texts and counts."""
        if len(parts) > _FEW and (releases := _measures(parts)) is not None:
            self._load(parts)
            law = self._nearest(parts)
            level = None if law is None else law.epsilon(self._delta)
            if level is None:
                law = Running.of(releases, self._delta)
                level = None if law is None else law.epsilon(self._delta)
            if law is not None and level is not None:
                self._asked = dict(parts), law
                return level
        return level_of(parts, self._delta)

    def spent(self, parts: Parts) -> bytes | None:
        """Keep the law of releases that are made; as bytes too, where the file's lacks many."""
        asked, saved = self._asked, self._saved or {}
        if asked is None or asked[0] != parts:
            return None
        again = not self._laws or self._laws[-1][1].s != asked[1].s  # all were composed again
        self._laws = (*self._laws[1 - _KEPT :], asked)
        missing = sum(saved.get(text) != count for text, count in parts.items())
        if missing < _MISSING and not again:
            return None
        self._saved = asked[0]
        return kept.written(*asked)

    def _load(self, parts: Parts) -> None:
        """Take the law that the file keeps, once."""
        if self._saved is None:
            data = self._stored()
            known = None if data is None else kept.read(data, parts)
            self._saved = {} if known is None else known[0]
            self._laws = self._laws if known is None else (known, *self._laws)

    def _nearest(self, parts: Parts) -> Running | None:
        """Add what is missing to the last law of releases that are among these."""
        for known, law in reversed(self._laws):
            if all(parts.get(text, 0) >= count for text, count in known.items()):
                rest = {t: k - known.get(t, 0) for t, k in parts.items() if k > known.get(t, 0)}
                more = _measures(rest)
                return law.plus(more) if more else law
        return None


def _measures(parts: Parts) -> Releases | None:
    """Return the measures that bound the releases from above; None where some are not finite."""
    releases = []
    for text, count in parts.items():
        for part, k in read(text).parts.items():
            if not isinstance(part, FiniteStep) or not composable(part.upper):
                return None
            if part.upper.top > 0.0 or part.upper.infinite > 0.0:
                releases.append((part.upper, k * count))
    return releases
