"""Records on their way through a plan."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from fastpriv._core import validation as check
from fastpriv._sampling.source import is_secure
from fastpriv.releasing.digest import Digest
from fastpriv.releasing.domain import Digits
from fastpriv.releasing.local.plan import LocalPlan
from fastpriv.releasing.plan import TABLE, Plan
from fastpriv.releasing.tables.memory import Table, Writer


class Run:
    """Records on their way through the plan, counted."""

    def __init__(self, plan: Plan, rng: Any) -> None:
        self.plan, self.secure = plan, is_secure(rng)
        # One generator for all chunks: a seed used again for each would repeat its noise.
        self.rng = None if rng is None else check.generator(rng)
        self.n = self.changed = 0
        #: Of the released records.
        self.digest = Digest(os.urandom(16))

    def write(self, writer: Writer, source: Table, progress: bool) -> None:
        """Draw all records and write them."""
        if not isinstance(self.plan, LocalPlan):
            for digits in self._drawn(source, progress):
                writer.write(digits)
            return
        for before in source.chunks(self.plan.domain, progress):
            after, domain, drawn, changed = self.plan.reported(before, self.rng)
            self._count(drawn, changed)
            writer.write_reports(after, domain)

    def _drawn(self, source: Table, progress: bool) -> Iterator[Digits]:
        chunks: Any = source.chunks(self.plan.domain, progress)
        if self.plan.unit == TABLE:
            chunks = [np.concatenate(whole)] if (whole := list(chunks)) else []
        for before in chunks:
            after, changed = self.plan.randomise(before, self.rng)
            self._count(after, changed)
            yield after

    def _count(self, drawn: Digits, changed: int) -> None:
        self.n += len(drawn)
        self.changed += changed
        self.digest = self.digest.plus(drawn)
