"""Which channel a release goes through, and what of the table it takes for a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fastpriv._core import validation as check
from fastpriv._structure.rows import RowKernels, Symmetric
from fastpriv.channels import AbstractChannel, HammingChannel, ProductChannel, RecordChannel
from fastpriv.channels.record import MOST_VALUES
from fastpriv.errors import InvalidInput, TooLarge, described, short
from fastpriv.priors import Dense, Distribution, Uniform
from fastpriv.priors.base import as_prior
from fastpriv.releasing.domain import Digits, Domain

RECORD, COLUMNS, TABLE = "record", "columns", "table"


@dataclass(frozen=True)
class Plan:
    """A channel and what it acts on.

    ``unit`` says what the channel takes for a database: a record as one row ("record"), a record
    as one row per column ("columns"), each record independently of the others; or the whole table
    as one row per record ("table").
    """

    channel: AbstractChannel
    unit: str
    domain: Domain

    @property
    def about_people(self) -> AbstractChannel:
        """The channel whose rows are records, so that its levels are those of a person."""
        if self.unit != COLUMNS or self.channel.space.n == 1 or self.domain.size > MOST_VALUES:
            return self.channel
        return RecordChannel(self.channel)

    @property
    def counted(self) -> str:
        """What the distortion counts."""
        return "cells" if self.unit == COLUMNS else "records"

    def randomise(self, digits: Digits, rng: Any) -> tuple[Digits, int]:
        """Send records through the channel, and count what changed: records, or cells."""
        before = digits if self.unit == COLUMNS else self.domain.records(digits)
        if self.unit == COLUMNS:
            after = self.channel.sample(before, rng)
        elif self.unit == TABLE:
            after = self.channel.sample(before[None], rng)[0]
        else:
            after = self.channel.sample(before[:, None], rng).reshape(-1)
        changed = int(np.count_nonzero(before != after))
        return (after if self.unit == COLUMNS else self.domain.digits(after)), changed

    def prior(self, given: Any) -> tuple[Distribution, str]:
        """Return the prior the levels are for, on the channel's space, and its name."""
        given = getattr(self.channel, "prior", None) if given is None else given
        space = self.channel.space
        if given is None:
            return Uniform(space.n, space.sizes), "assumed: independent uniform records"
        given = as_prior(given)
        name = f"given: {given!r}"
        if given.space == space:
            return given, name if self.unit == TABLE else f"{name} for every record, independently"
        if given.space.size == space.size and self.unit != TABLE:
            return Dense(given.pmf(), space.sizes), f"{name} for every record, independently"
        raise InvalidInput(
            f"the prior is on {given.space!r}, but the mechanism on {space!r}; give the law of one "
            "record" + (", or of the table row by row" if self.unit == TABLE else "")
        )


def hamming(domain: Domain, epsilon: float, per_column: bool) -> Plan:
    """Return E_d on whole records, or on every column by itself."""
    sizes = record_sizes(domain, per_column)
    channel = HammingChannel(len(sizes), sizes, epsilon)
    return Plan(channel, COLUMNS if per_column else RECORD, domain)


def responses(sizes: Sequence[int], epsilons: Sequence[float]) -> ProductChannel:
    """Return randomised response on every column, each at its own level."""
    if len(set(epsilons)) == 1:
        return HammingChannel(len(sizes), sizes, epsilons[0])
    kinds = sorted(set(zip(sizes, epsilons, strict=True)))
    which = [kinds.index(pair) for pair in zip(sizes, epsilons, strict=True)]
    kernels = [Symmetric(m, epsilon) for m, epsilon in kinds]
    return ProductChannel.of(RowKernels(kernels, np.array(which, dtype=np.int64)))


def record_sizes(domain: Domain, per_column: bool) -> tuple[int, ...]:
    """Return the sizes of the rows that randomised response acts on."""
    if per_column:
        return domain.sizes
    if domain.size > check.MAX_VECTOR:
        raise TooLarge(
            f"a whole record has {short(domain.size)} values (the product of "
            f"{described(list(domain.sizes))}), more than {short(check.MAX_VECTOR)}; release fewer "
            "or coarser columns, or every column by itself with per_column=True (--per-column)"
        )
    return (domain.size,)


def given(channel: AbstractChannel, domain: Domain, rows: Callable[[], int]) -> Plan:
    """Find out what a given channel acts on, from the sizes of its rows."""
    if isinstance(channel, RecordChannel):
        channel = channel.columns
    sizes, size = channel.space.sizes, domain.size
    if channel.output_space != channel.space:
        raise InvalidInput(
            f"{channel!r} has outputs that are not databases; a release needs a mechanism from "
            "records to records"
        )
    if sizes == (size,):
        return Plan(channel, RECORD, domain)
    if sizes == domain.sizes:
        return Plan(channel, COLUMNS, domain)
    if len(sizes) == rows() and set(sizes) == {size}:
        return Plan(channel, TABLE, domain)
    raise InvalidInput(
        f"{channel!r} does not fit: a mechanism for one record has a row of {short(size)} values "
        f"or a row for each column; one for the table has {short(rows())} rows of {short(size)}"
    )
