"""Dask frames: every partition is checked, counted and drawn on its own worker.

Dask runs a task again when its worker dies, and computes a lazy table as often as it is asked for.
Two different draws of one record must never both be published: together they reveal more than the
reported level. So a partition is drawn from a keystream that is a function of a secret of this
release, the number of the partition and the records in it. Drawn again it is the same bit for bit.
A partition is refused if its records have changed since they were checked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fastpriv._core.extras import optional
from fastpriv._sampling.source import Keyed
from fastpriv.errors import FastprivError, InvalidInput
from fastpriv.releasing.domain import Digest, Digits, Domain
from fastpriv.releasing.estimator import Counts, Places
from fastpriv.releasing.plan import Plan
from fastpriv.releasing.tables.memory import Cells, Frame, Writer, in_order

_CHANGED = (
    "a partition holds other records than when the table was checked; nothing of it was drawn; "
    "release it once it no longer changes"
)


@dataclass(frozen=True)
class Check:
    """A checked partition: its number of records, its fingerprint, and what comes out as it was."""

    records: int
    fingerprint: bytes
    kept: str
    #: First the digest of the records as they will be drawn, then of the given ones by key.
    digests: tuple[Digest, ...]


@dataclass(frozen=True)
class Secret:
    """The key of one release, which tasks carry and no output contains."""

    key: bytes = field(repr=False)
    secure: bool

    def fingerprint(self, number: int, digits: Digits) -> bytes:
        """Return a keyed digest of the records of a partition."""
        return self._digest(b"records", 16, number, digits)

    def source(self, number: int, digits: Digits) -> Keyed:
        """Return the random words of a partition: a function of the key and its records."""
        return Keyed(self._digest(b"stream", 48, number, digits), self.secure)

    def _digest(self, purpose: bytes, size: int, number: int, digits: Digits) -> bytes:
        about = f"{number} {digits.shape} {digits.dtype.str}".encode()
        state = hashlib.blake2b(about, digest_size=size, key=self.key, person=purpose)
        state.update(np.ascontiguousarray(digits.T).data)  # frames are encoded column by column
        return state.digest()


class DaskFrame:
    """A Dask DataFrame. The released one is lazy; computing it twice gives the same records."""

    kept = ""

    def __init__(self, frame: Any) -> None:
        self._delayed = optional("dask", "dask").delayed
        self.frame = frame
        self._meta = Frame(frame._meta)
        self.columns = self._meta.columns

    def _partitions(self, columns: Sequence[Hashable]) -> list[Any]:
        """Return the partitions of some columns as delayed frames."""
        kept = [name for name in self.columns if name in columns]
        parts: list[Any] = self.frame[kept].to_delayed()
        return parts

    def _compute(self, task: Any, columns: Sequence[Hashable], *shared: Any) -> list[Any]:
        """Run a task over all partitions; raise the first error that one returns."""
        run, held = self._delayed(task, pure=False), [self._share(one) for one in shared]
        tasks = [run(part, k, *held) for k, part in enumerate(self._partitions(columns))]
        results: tuple[Any, ...] = optional("dask", "dask").compute(*tasks)
        for result in results:
            if isinstance(result, FastprivError):
                raise result
        return list(results)

    def _share(self, value: Any) -> Any:
        """Send a value once for all tasks."""
        return self._delayed(value, pure=False, traverse=False)

    def rows(self) -> int:
        """Count the records on their workers."""
        return sum(self._compute(_length, self.columns[:1]))

    def observed(self, column: Hashable) -> list[Any]:
        """List the distinct values of a column: one pass over it."""
        return in_order(set().union(*self._compute(_values, [column], column)))

    def chunks(self, domain: Domain, progress: bool = False) -> Iterator[Digits]:
        """Yield the codes of one partition after the other, in this process."""
        for k, part in enumerate(self._partitions(domain.columns)):
            digits = _encoded(part.compute(), k, domain)
            if isinstance(digits, FastprivError):
                raise digits
            yield digits

    def cells(self, columns: Sequence[Hashable]) -> Cells:
        """Raise: messages are not read from Dask frames."""
        raise InvalidInput(
            "messages are not read from a DaskFrame; give a frame in memory, records or a file."
        )

    def writer(
        self, domain: Domain, messages: Sequence[Hashable], before: Callable[[], None]
    ) -> Writer:
        """Raise: a released Dask frame is lazy and not written."""
        raise NotImplementedError

    def counted(self, domain: Domain, choices: Sequence[Places], expected: Digest | None) -> Counts:
        """Count the values of chosen columns, each partition on its worker."""
        counts = Counts(domain, choices, expected)
        for part in self._compute(_counted, domain.columns, domain, list(choices), expected):
            counts.include(part)
        return counts

    def checked(self, plan: Plan, secret: Secret, digests: list[Digest]) -> list[Check]:
        """Check that all values are in the domain, and take the fingerprints of all partitions.

        The first empty digest is for the drawn records, the others for the given ones.
        """
        columns = plan.domain.columns
        checks: list[Check] = self._compute(_checked, columns, plan, secret, digests)
        self.kept = next((check.kept for check in checks if check.kept), "")
        return checks

    def released(self, plan: Plan, secret: Secret, checks: Sequence[Check]) -> Any:
        """Return the lazy frame of released records, with the partitions and index of this one."""
        draw, empty = self._delayed(_drawn, pure=False), self._meta.frame.iloc[:0]
        shared = [self._share(one) for one in (plan, secret, empty)]
        parts = self._partitions(plan.domain.columns)
        frames = [
            draw(p, k, c, *shared) for k, (p, c) in enumerate(zip(parts, checks, strict=True))
        ]
        nothing = np.empty((0, len(plan.domain.columns)), plan.domain.dtype)
        return optional("dask.dataframe", "dask").from_delayed(
            frames,
            meta=self._meta.decoded(nothing, plan.domain, empty.index),
            divisions=self.frame.divisions if self.frame.known_divisions else None,
            verify_meta=False,
        )


class DaskSeries(DaskFrame):
    """A Dask Series: a table of one column."""

    def __init__(self, series: Any) -> None:
        super().__init__(series.to_frame(series.name if series.name is not None else "value"))
        self._name = series.name

    def released(self, plan: Plan, secret: Secret, checks: Sequence[Check]) -> Any:
        """Return the lazy series of released values."""
        return super().released(plan, secret, checks)[self.columns[0]].rename(self._name)


# Tasks on workers. They return errors of this package: a worker logs a task that raises, together
# with its arguments, which may be records.


def _length(part: Any, number: int) -> int:
    return len(part)


def _values(part: Any, number: int, column: Hashable) -> set[Any]:
    return set(Frame(part).observed(column))


def _encoded(part: Any, number: int, domain: Domain) -> Digits | FastprivError:
    try:
        return Frame(part).encode(domain)
    except FastprivError as problem:
        return InvalidInput(f"partition {number}: {problem}")


def _counted(
    part: Any, number: int, domain: Domain, choices: list[Places], expected: Digest | None
) -> Counts | FastprivError:
    digits = _encoded(part, number, domain)
    if isinstance(digits, FastprivError):
        return digits
    counts = Counts(domain, choices, expected)
    counts.add(digits)
    return counts


def _checked(
    part: Any, number: int, plan: Plan, secret: Secret, empty: list[Digest]
) -> Check | FastprivError:
    digits = _encoded(part, number, plan.domain)
    if isinstance(digits, FastprivError):
        return digits
    after = plan.draw(digits, secret.source(number, digits)).codes
    digests = (empty[0].plus(after), *(one.plus(digits) for one in empty[1:]))
    return Check(len(digits), secret.fingerprint(number, digits), Frame(part).kept, digests)


def _drawn(part: Any, number: int, check: Check, plan: Plan, secret: Secret, empty: Any) -> Any:
    digits = _encoded(part, number, plan.domain)
    same = isinstance(digits, np.ndarray) and secret.fingerprint(number, digits)
    if not isinstance(digits, np.ndarray) or same != check.fingerprint:
        raise InvalidInput(_CHANGED)
    after = plan.draw(digits, secret.source(number, digits)).codes
    return Frame(empty).decoded(after, plan.domain, part.index)
