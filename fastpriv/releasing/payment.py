"""What a ledger is charged for a release, from the charge until the table is published.

A charge is reserved in the ledger before anything is drawn, together with a claim: a keyed digest
of the table, the plan and its cost. The reservation is deleted immediately before the table
appears, in one transaction that is on the disk by then. Only the process that deletes it may
publish. Therefore

- whatever is published has been charged before;
- every charge pays for at most one published draw: of several releases that use one reservation,
  in whatever processes, one deletes it, and the others publish nothing;
- as long as the reservation is there, nothing has been published, and the same release may use it
  without another charge. Its cost is the same: the cost is part of the claim.

A process that is killed between the deletion and the appearance of the table has paid for nothing.
The file may have been there and have been taken away since, so that its absence proves nothing.

The claim depends on the original table. It stays in the file of the ledger, in no export, and is
overwritten when the reservation is deleted.
"""

from __future__ import annotations

import hashlib
import os
import re
import warnings
from contextlib import suppress
from types import TracebackType

from fastpriv._text.numbers import up
from fastpriv.accounting.ledger.ledger import Ledger
from fastpriv.accounting.ledger.receipt import Receipt
from fastpriv.errors import InvalidInput, described
from fastpriv.releasing.digest import Digest
from fastpriv.releasing.report import ReleaseReport

#: The key of a digest and what it has to be; others may keep claims of another kind in a ledger.
_CLAIM = re.compile("[0-9a-f]{32}:[0-9a-f]{128}")


class Payment:
    """The charge of one release. Whatever interrupts the release, its error says what was charged.

    Parameters
    ----------
    ledger : Ledger or path
        What is charged. A path is opened, and closed with the context.
    label : str
        Name of the spend.
    resume : bool
        Whether to use a reservation under this label instead of a new charge.
    """

    def __init__(self, ledger: Ledger | str | os.PathLike[str], label: str, resume: bool) -> None:
        self._opened = not isinstance(ledger, Ledger)
        self._ledger = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
        self._label, self._resume = label, resume
        self._claim: str | None = None
        self.receipt: Receipt | None = None

    def __enter__(self) -> Payment:
        return self

    def __exit__(
        self, kind: object, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is not None and self._claim is not None:
                with suppress(Exception):  # the error itself matters more
                    _add(error, self._told())
        finally:
            if self._opened:
                self._ledger.close()

    def digests(self) -> list[Digest]:
        """Return empty digests under the keys with which the table must be read.

        A new charge has a key of its own, the last one.
        """
        kept = self._kept()
        if self._resume and not kept:
            raise InvalidInput(
                f"resume must be the label of a charge whose release was not published; the ledger "
                f"has none under {described(self._label)}. Release without it, which is charged"
            )
        keys = [bytes.fromhex(claim.partition(":")[0]) for _, claim in kept]
        return [Digest(key) for key in (keys if self._resume else [*keys, os.urandom(16)])]

    def charge(self, planned: ReleaseReport, digests: list[Digest]) -> None:
        """Reserve what a release will cost, or find the reservation for it."""
        claims = [_claim(planned, digest) for digest in digests]
        kept = self._kept()
        same = [(receipt, claim) for receipt, claim in kept if claim in claims]
        if not self._resume:
            if same:
                warnings.warn(_repeated(same[0][0]), stacklevel=4)
            self._claim = claims[-1]
            self.receipt = self._ledger.spend(planned, label=self._label, claim=self._claim)
        elif same:
            self.receipt, self._claim = same[0]
        else:
            raise InvalidInput(
                f"resume must be the label of the same release; the charge under "
                f"{described(self._label)} was for another table, domain or mechanism. Give the "
                "same ones, or release without resume, which is charged"
            )

    def publish(self) -> None:
        """Use the charge up; whoever returns from here may show the table."""
        assert self.receipt is not None
        self._ledger.publish(self.receipt)

    def _kept(self) -> list[tuple[Receipt, str]]:
        """Return the reservations of releases under the label, with their claims."""
        every = self._ledger.unpublished(self._label)
        return [(receipt, claim) for receipt, claim in every if _CLAIM.fullmatch(claim)]

    def _told(self) -> str:
        """Say what was charged and whether it can still be used; nothing where nothing was."""
        label = described(self._label)
        for receipt, claim in self._kept():
            if claim == self._claim:
                return (
                    f"the ledger was charged {_levels(receipt)} under the label {label} and "
                    f"nothing was published; resume={label} (--resume) repeats the release without "
                    "a charge"
                )
        if self.receipt is None:
            return ""
        return (
            f"the charge under the label {label} is used up: the table was published or about to "
            "be; if it is not there, release it anew, which is charged"
        )


def _levels(receipt: Receipt) -> str:
    return ", ".join(f"{notion} {up(level)}" for notion, level in receipt.charged.items())


def _repeated(receipt: Receipt) -> str:
    label = described(receipt.label)
    return (
        f"this release is charged again: spend {receipt.number} ({_levels(receipt)}) under the "
        f"label {label} paid for the same release, which is not published yet; resume={label} "
        "(--resume) uses it without a charge"
    )


def _claim(planned: ReleaseReport, digest: Digest) -> str:
    """Return the key and what only this release has: its table, its plan and its cost.

    What a ledger charges is a function of the cost alone, so that equal claims cost the same.
    """
    plan = (planned.n, planned.mechanism, planned.unit, planned.domain.columns)
    about = repr((digest.total, plan, planned.domain.values, sorted(planned.spending().items())))
    return f"{digest.key.hex()}:{hashlib.blake2b(about.encode(), key=digest.key).hexdigest()}"


def _add(error: BaseException, told: str) -> None:
    """Add a sentence to an error: a note, which Python 3.11 prints; Ctrl-C has no text itself."""
    if told and isinstance(error, KeyboardInterrupt):
        error.args = (told,)
    elif told:
        vars(error).setdefault("__notes__", []).append(told)
