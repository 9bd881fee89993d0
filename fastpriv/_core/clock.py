"""A time limit that several searches share."""

from __future__ import annotations

import math
import time

from fastpriv._core import validation as check


class Clock:
    """Counts down from a time limit in seconds; ``math.inf`` never ends."""

    def __init__(self, time_limit: float) -> None:
        limit = check.limit(time_limit, "time_limit")
        self.deadline = time.monotonic() + limit

    def left(self) -> float:
        """Return the seconds that are left, 0 when the time is over."""
        return max(0.0, self.deadline - time.monotonic())

    def share(self, parts: int) -> float:
        """Return an even share of what is left, for one of ``parts`` tasks to come."""
        left = self.left()
        return left if math.isinf(left) else left / max(parts, 1)
