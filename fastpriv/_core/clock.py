"""How long searches go on: a time limit that several share, and meters of time or work."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

from fastpriv._core import validation as check


class Clock:
    """Counts down from a time limit in seconds; ``math.inf`` never ends."""

    def __init__(self, time_limit: float) -> None:
        self.limit = check.limit(time_limit, "time_limit")
        self.deadline = time.monotonic() + self.limit

    def left(self) -> float:
        """Return the seconds that are left, 0 when the time is over."""
        return max(0.0, self.deadline - time.monotonic())

    def past(self) -> float:
        """Return the seconds since the time was over, 0 before."""
        return max(0.0, time.monotonic() - self.deadline)

    def share(self, parts: int) -> float:
        """Return an even share of what is left, for one of ``parts`` tasks to come."""
        left = self.left()
        return left if math.isinf(left) else left / max(parts, 1)


#: Units of work that take about a second.
_PER_SECOND = 1e9
#: Units of work that are done whatever the limit.
_AT_ONCE = 2e8


class Meter:
    """What a search has used of its limit.

    Under a time limit it is counted in seconds. Without one (None) it is counted in units of work,
    about one operation on an entry of a matrix each, so that a search ends at the same place on
    every machine, busy or idle.
    """

    def __init__(self, time_limit: float | None, work: float) -> None:
        self.limit = work if time_limit is None else time_limit
        self._timed, self._start, self._work = time_limit is not None, time.monotonic(), 0.0

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Count no time meanwhile, for instance while a kernel is compiled."""
        begin = time.monotonic()
        yield
        self._start += time.monotonic() - begin

    def spend(self, work: float) -> None:
        """Count some units of work."""
        self._work += work

    def used(self) -> float:
        """Return how much is used, in seconds or in units of work."""
        return time.monotonic() - self._start if self._timed else self._work

    @property
    def over(self) -> bool:
        """Whether the limit is used up."""
        return self.used() > self.limit

    def seconds_left(self) -> float | None:
        """Return what is left of a time limit; None without one."""
        return max(0.0, self.limit - self.used()) if self._timed else None

    def too_late(self, work: float) -> bool:
        """Whether a time limit leaves no room for a step of some work that takes a while."""
        return self._timed and work > max(self.room(), _AT_ONCE)

    def overdue(self, seconds: float) -> bool:
        """Whether a time limit was over some seconds ago."""
        return self._timed and self.used() > self.limit + seconds

    def room(self) -> float:
        """Return about how many units of work are left."""
        return (self.limit - self.used()) * (_PER_SECOND if self._timed else 1.0)
