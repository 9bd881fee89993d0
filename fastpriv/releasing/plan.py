"""Which channel a release goes through: whole records, columns, or a mechanism that was given.

A :class:`Plan` is a channel and what it acts on. A :class:`LocalPlan` has a local mechanism for
each column. :func:`choose` turns the arguments of a release into one of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpriv._core import validation as check
from fastpriv._structure.rows import RowKernels, Symmetric
from fastpriv.accounting.ledger.amounts import ZERO, down, plus
from fastpriv.channels import (
    AbstractChannel,
    ColumnsChannel,
    HammingChannel,
    ProductChannel,
    RecordChannel,
)
from fastpriv.channels.local import (
    HadamardChannel,
    HashingChannel,
    ProjectiveChannel,
    SubsetChannel,
    SupportChannel,
    UnaryChannel,
)
from fastpriv.channels.record import MOST_VALUES
from fastpriv.design.closed_forms import h_inverse
from fastpriv.errors import (
    Infeasible,
    InvalidInput,
    TooLarge,
    described,
    did_you_mean,
    hint_or_list,
    short,
)
from fastpriv.measures.distortion import expected_distance
from fastpriv.measures.inputs import as_channel
from fastpriv.measures.leakage import extreme_level
from fastpriv.measures.realised import realised, with_draws
from fastpriv.priors import Dense, Distribution, Uniform
from fastpriv.priors.base import as_prior
from fastpriv.releasing.domain import COLUMNS, RECORD, TABLE, Digits, Domain
from fastpriv.releasing.estimator import expected_errors
from fastpriv.releasing.messages import texts_of

#: Units in the last place by which the levels of columns may be lowered to fit their total.
_LOWERED_ULPS = 64
#: Most numbers in a message for "auto" to choose its mechanism: a message is a cell of a table.
_LONGEST_MESSAGE = 64


@dataclass(frozen=True)
class Drawn:
    """Records that went through a plan.

    Attributes
    ----------
    codes : integer array
        One row per record, one column per column of the domain.
    domain : Domain
        What the codes stand for; messages of local mechanisms are values of it, as texts.
    integers : integer array
        The integers that were drawn, one row per record: codes, and those of messages.
    changed : int
        Number of changed records, or of changed cells if columns are randomised by themselves.
    """

    codes: Digits
    domain: Domain
    integers: Digits
    changed: int


@dataclass(frozen=True)
class Plan:
    """A channel and what it acts on.

    ``unit`` is the input of the channel. "record": a whole record as one value. "columns": a
    record as one value per column. Records are then drawn independently. "table": the whole table,
    with one value per record.
    """

    channel: AbstractChannel
    unit: str
    domain: Domain
    #: How each mechanism was chosen, for the notes of a report.
    reasons: tuple[str, ...] = ()

    @property
    def about_people(self) -> AbstractChannel:
        """The channel that takes a whole record as one value: its levels protect a person."""
        if self.unit != COLUMNS or self.channel.space.n == 1 or self.domain.size > MOST_VALUES:
            return self.channel
        return RecordChannel(self.channel)

    @property
    def counted(self) -> str:
        """What the distortion counts."""
        return "cells" if self.unit == COLUMNS else "records"

    @property
    def message_columns(self) -> tuple[int, ...]:
        """The places of the columns whose values become messages of local mechanisms."""
        return ()

    def draw(self, digits: Digits, rng: Any) -> Drawn:
        """Send records through the channel."""
        before = digits if self.unit == COLUMNS else self.domain.records(digits)
        if self.unit == COLUMNS:
            after = self.channel.sample(before, rng)
        elif self.unit == TABLE:
            after = self.channel.sample(before[None], rng)[0]
        else:
            after = self.channel.sample(before[:, None], rng).reshape(-1)
        changed = int(np.count_nonzero(before != after))
        codes = after if self.unit == COLUMNS else self.domain.digits(after)
        return Drawn(codes, self.domain, codes, changed)

    def expected_changes(self, drawn: AbstractChannel, prior: Distribution) -> float:
        """Return the expected number of changes in one database of the channel that is drawn."""
        return expected_distance(drawn, prior)

    def errors(self, n: int) -> dict[object, float]:
        """Return the standard error of a count of each column, its values equally common."""
        return expected_errors(self.channel, self.unit, self.domain, n)

    def prior(self, given: Any) -> tuple[Distribution, str]:
        """Return the prior of the levels, on the channel's space, and its name."""
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
            "prior must be the distribution of one "
            f"record{', or of the table record by record' if self.unit == TABLE else ''}; got "
            f"one on {given.space!r} for a mechanism on {space!r}."
        )


@dataclass(frozen=True)
class LocalPlan(Plan):
    """A mechanism for each column: randomised response, or a local one with messages."""

    channel: ColumnsChannel

    @property
    def about_people(self) -> AbstractChannel:
        """The channel that takes a whole record as one value."""
        return on_records(self.channel)

    @property
    def message_columns(self) -> tuple[int, ...]:
        """The places of the columns whose values become messages."""
        kinds = enumerate(self.channel.columns)
        return tuple(j for j, column in kinds if isinstance(column, SupportChannel))

    def draw(self, digits: Digits, rng: Any) -> Drawn:
        """Send records through the mechanisms; a cell that becomes a message counts as changed."""
        values, changed, integers = list(self.domain.values), 0, []
        codes = np.empty(digits.shape, dtype=np.int64, order="F")
        for j, column in enumerate(self.channel.columns):
            drawn = column.sample(np.ascontiguousarray(digits[:, j : j + 1]), rng)
            integers.append(drawn)
            if isinstance(column, SupportChannel):
                texts = np.array(texts_of(column, drawn))
                distinct, codes[:, j] = np.unique(texts, return_inverse=True)
                values[j] = distinct.tolist()
                changed += len(digits)
            else:
                codes[:, j] = drawn[:, 0]
                changed += int(np.count_nonzero(codes[:, j] != digits[:, j]))
        domain = Domain(self.domain.columns, tuple(values), self.domain.source)
        return Drawn(codes, domain, side_by_side(integers), changed)

    def expected_changes(self, drawn: AbstractChannel, prior: Distribution) -> float:
        """Return the expected number of changed cells of a record, whatever its values."""
        return math.fsum(map(_change_probability, self.channel.columns))

    def errors(self, n: int) -> dict[object, float]:
        """Return the standard error of a count of each column, its values equally common."""
        pairs = zip(self.domain.columns, self.channel.columns, strict=True)
        return {name: math.sqrt(n * record_variance(column)) for name, column in pairs}


def side_by_side(columns: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    """Return the integers of all columns, one row for each record."""
    return np.column_stack([column.astype(np.int64, copy=False) for column in columns])


def on_records(channel: ColumnsChannel) -> AbstractChannel:
    """Return the channel on whole records, if they are few enough to be numbered."""
    if len(channel.columns) == 1:
        return channel.columns[0]
    return channel if channel.space.size > MOST_VALUES else RecordChannel(channel)


def record_variance(column: AbstractChannel) -> float:
    """Variance a record adds to a count if k values are equally common; inf at level 0."""
    k = column.space.sizes[0]
    if k == 1:
        return 0.0
    if isinstance(column, HammingChannel):  # subset selection of one value
        column = SubsetChannel(k, column.epsilon, 1)
    assert isinstance(column, SupportChannel)
    return column.variance(1.0 / k) if column.growth > 1 else math.inf


def _change_probability(column: AbstractChannel) -> float:
    if isinstance(column, SupportChannel):
        return 1.0
    assert isinstance(column, HammingChannel)
    (kernel,) = column.symmetric()
    return (kernel.m - 1) * kernel.off


# Plans of randomised response, and of a channel that was given.


def responses(sizes: Sequence[int], epsilons: Sequence[float]) -> ProductChannel:
    """Return randomised response on every column, each at its own level."""
    if len(set(epsilons)) == 1:
        return HammingChannel(len(sizes), sizes, epsilons[0])
    kinds = sorted(set(zip(sizes, epsilons, strict=True)))
    which = [kinds.index(pair) for pair in zip(sizes, epsilons, strict=True)]
    kernels = [Symmetric(m, epsilon) for m, epsilon in kinds]
    return ProductChannel.of(RowKernels(kernels, np.array(which, dtype=np.int64)))


def _response(domain: Domain, epsilon: float, per_column: bool) -> Plan:
    """Return randomised response on whole records, or on every column at the same level."""
    sizes = _response_sizes(domain, per_column)
    channel = HammingChannel(len(sizes), sizes, epsilon)
    return Plan(channel, COLUMNS if per_column else RECORD, domain)


def _response_sizes(domain: Domain, per_column: bool) -> tuple[int, ...]:
    """Return the sizes of the rows that randomised response acts on."""
    if per_column:
        return domain.sizes
    if domain.size > check.MAX_VECTOR:
        raise TooLarge(
            f"a whole record has {short(domain.size)} values (the product of "
            f"{described(list(domain.sizes))}), more than {short(check.MAX_VECTOR)}; release fewer "
            "or coarser columns, or every column by itself with per_column=True (--per-column)."
        )
    return (domain.size,)


def plan_of(channel: AbstractChannel, domain: Domain, rows: Callable[[], int]) -> Plan:
    """Find out what a given channel acts on, from the sizes of its rows."""
    if isinstance(channel, RecordChannel):
        channel = channel.columns
    sizes, size = channel.space.sizes, domain.size
    if channel.output_space != channel.space:
        raise InvalidInput(
            f"mechanism must have records as outputs for a release; the outputs of {channel!r} "
            "are not databases. Use a HammingChannel or a ProductChannel."
        )
    if sizes == (size,):
        return Plan(channel, RECORD, domain)
    if sizes == domain.sizes:
        return Plan(channel, COLUMNS, domain)
    if len(sizes) == rows() and set(sizes) == {size}:
        return Plan(channel, TABLE, domain)
    raise InvalidInput(
        f"mechanism must be for one record, with {short(size)} values or one value for each "
        f"column, or for the table, with {short(rows())} records of {short(size)} values; got "
        f"{channel!r}."
    )


# The choice.


def choose(
    domain: Domain,
    rows: Callable[[], int],
    *,
    epsilon: float | Mapping[Hashable, float] | None = None,
    distortion: float | None = None,
    mechanism: Any = None,
    prior: Any = None,
    per_column: bool = False,
    split: str | Mapping[Hashable, float] | None = None,
) -> Plan:
    """Choose the channel of a release from its arguments; ``rows`` counts the records."""
    check.flag(per_column, "per_column")
    if split is not None and not isinstance(split, Mapping):
        check.word(split, "split", ("columns", "record"))
    if isinstance(mechanism, str):
        return _local(domain, mechanism, epsilon, distortion, per_column, split)
    given = [value is not None for value in (epsilon, distortion, mechanism)]
    if sum(given) != 1:
        raise InvalidInput(
            "exactly one of epsilon, distortion and mechanism must be given. Choose one."
        )
    if mechanism is not None:
        if per_column or split is not None:
            raise InvalidInput(
                "per_column and split must be left out with a channel as mechanism, which "
                "states both."
            )
        return plan_of(as_channel(mechanism), domain, rows)
    if per_column and split is not None:
        raise InvalidInput(
            "one of per_column and split must be left out: per_column gives epsilon to every "
            "column, split divides it among them."
        )
    if isinstance(epsilon, Mapping):
        if split is not None or per_column:
            raise InvalidInput(
                "split and per_column must be left out with an epsilon for each column, which "
                "is a split already."
            )
        return _as_given(domain, _by_column(domain, epsilon))
    if epsilon is None:
        by_column = per_column or split == "columns"
        sizes = _response_sizes(domain, by_column)
        level = _level_at(check.real(distortion, "distortion", least=0.0), rows(), sizes)
        return _response(domain, level, by_column)
    epsilon = check.real(epsilon, "epsilon", least=0.0)
    tables = isinstance(prior, Distribution) and prior.space.n > 1 and prior.space.m == domain.size
    if tables and not per_column and split is None:
        return plan_of(HammingChannel(prior.space.n, domain.size, epsilon), domain, rows)
    if isinstance(split, Mapping):
        return _columns(domain, _by_column(domain, split), epsilon)
    if per_column:
        return _as_given(domain, [epsilon] * len(domain.columns))
    if split == "record" or len(domain.columns) == 1:
        return _response(domain, epsilon, False)
    evenly = _columns(domain, [epsilon / _moving(domain)] * len(domain.columns), epsilon)
    return evenly if split == "columns" else _keeping_most(domain, epsilon, evenly)


def _keeping_most(domain: Domain, epsilon: float, evenly: Plan) -> Plan:
    """Choose between whole records and columns: the plan whose worst column has smaller errors.

    Both protect a record at epsilon.
    """
    if domain.size > check.MAX_VECTOR:
        return evenly
    whole = _response(domain, epsilon, False)
    worst = [max(plan.errors(1).values()) for plan in (whole, evenly)]
    return whole if worst[0] <= worst[1] else evenly


def _moving(domain: Domain) -> int:
    """Count the columns that have a second value; the others spend nothing."""
    return max(1, sum(size > 1 for size in domain.sizes))


def _by_column(domain: Domain, given: Mapping[Hashable, float]) -> list[float]:
    """Return the epsilon of every column."""
    for name in given:
        if name not in domain.columns:
            hint = did_you_mean(name, domain.columns)
            raise InvalidInput(
                "epsilon must be given by the names of columns; there is no column "
                f"{described(name)}{hint}"
            )
    absent = [name for name in domain.columns if name not in given]
    if absent:
        raise InvalidInput(
            f"epsilon must be given for every column; column {described(absent[0])} has none."
        )
    return [
        check.real(given[name], f"the epsilon of column {described(name)}", least=0.0)
        for name in domain.columns
    ]


def _columns(domain: Domain, epsilons: Sequence[float], total: float) -> Plan:
    """Return randomised response on every column, at levels that add up to at most a total."""
    plan, fits = _within(partial(_responses, domain), epsilons, total)
    if not fits:
        raise InvalidInput(
            f"the epsilons of the columns must add up to at most {described(total)}, the "
            f"epsilon of a record; got {described(math.fsum(epsilons))}. Lower some of them."
        )
    return plan


def _as_given(domain: Domain, epsilons: Sequence[float]) -> Plan:
    """Return randomised response at given levels; their total is the sum of their decimals.

    Five times 0.4 is 2 and fits a budget of 2, though the double 0.4 is a little more than 0.4.
    """
    moving = [e for e, size in zip(epsilons, domain.sizes, strict=True) if size > 1]
    total = down(reduce(plus, (Decimal(repr(float(e))) for e in moving), ZERO))
    plan, fits = _within(partial(_responses, domain), epsilons, total)
    return plan if fits else _responses(domain, epsilons)


def _responses(domain: Domain, epsilons: Sequence[float]) -> Plan:
    return Plan(responses(domain.sizes, epsilons), COLUMNS, domain)


def _within(
    make: Callable[[Sequence[float]], Plan], epsilons: Sequence[float], total: float
) -> tuple[Plan, bool]:
    """Return a plan at about these levels, and whether it stays within the total.

    The level compared with the total is the one that a report or a ledger will charge: of the
    probabilities that are drawn, rounded up. The levels are lowered by a few units in the last
    place so that it stays within the total exactly.
    """
    for units in range(_LOWERED_ULPS):
        plan = make([epsilon * (1.0 - units * 2.0**-52) for epsilon in epsilons])
        drawn, slack = realised(plan.channel)
        if with_draws(extreme_level(drawn), slack) <= total:
            return plan, True
    return plan, False


def _level_at(distortion: float, n: int, sizes: tuple[int, ...]) -> float:
    """Level of randomised response at an expected number of changes in n records.

    It is 0 beyond the distortion of pure noise.
    """
    moving = [m for m in sizes if m > 1]
    if not moving or not n:
        return 0.0
    level = float(h_inverse(min(distortion / n, len(moving)), len(moving), moving))
    if level == math.inf:
        raise Infeasible(
            f"a distortion of {distortion:g} in {n} records has no finite level; allow more, or "
            "give epsilon."
        )
    return max(level, 0.0)


# Local mechanisms by name.


def _randomised_response(k: int, epsilon: float) -> AbstractChannel:
    return HammingChannel(1, k, epsilon)


#: Local mechanisms by their names in a release. Of equally good ones "auto" takes the first.
MECHANISMS: dict[str, Callable[[int, float], AbstractChannel]] = {
    "randomised-response": _randomised_response,
    "subset-selection": SubsetChannel,
    "projective": ProjectiveChannel,
    "hashing": HashingChannel,
    "hadamard": HadamardChannel,
    "unary": UnaryChannel,
    "symmetric-unary": partial(UnaryChannel, encoding="symmetric"),
}


def _local(
    domain: Domain,
    mechanism: str,
    epsilon: float | Mapping[Hashable, float] | None,
    distortion: float | None,
    per_column: bool,
    split: str | Mapping[Hashable, float] | None,
) -> Plan:
    """Return a named local mechanism on every column. Levels add up to epsilon, or are given."""
    known = ["auto", *MECHANISMS]
    if mechanism not in known:
        raise InvalidInput(
            f"there is no local mechanism {described(mechanism[:40])}"
            f"{hint_or_list(mechanism, known, 'a channel or ')}"
        )
    if epsilon is None or distortion is not None:
        raise InvalidInput(
            f"mechanism={described(mechanism)} must come with epsilon, and without distortion."
        )
    if split is not None and split != "columns":
        raise InvalidInput(
            f"mechanism={described(mechanism)} releases each column independently. Leave out "
            "split, or give an epsilon for each column."
        )
    if isinstance(epsilon, Mapping):
        return _named(domain, mechanism, _by_column(domain, epsilon))
    level = check.real(epsilon, "epsilon", least=0.0)
    if per_column:
        return _named(domain, mechanism, [level] * len(domain.columns))
    shares = [level / _moving(domain)] * len(domain.columns)
    return _within(partial(_named, domain, mechanism), shares, level)[0]


def _named(domain: Domain, mechanism: str, epsilons: Sequence[float]) -> LocalPlan:
    """Return the plan of a named mechanism, each column at its own level."""
    columns, reasons = [], []
    for name, k, epsilon in zip(domain.columns, domain.sizes, epsilons, strict=True):
        if k == 1:
            columns.append(_randomised_response(1, epsilon))
        elif mechanism == "auto":
            column, reason = best_local(k, epsilon)
            columns.append(column)
            reasons.append(f"column {described(name)} goes through {reason}")
        else:
            columns.append(MECHANISMS[mechanism](k, epsilon))
    return LocalPlan(ColumnsChannel(columns), COLUMNS, domain, tuple(reasons))


def best_local(k: int, epsilon: float) -> tuple[AbstractChannel, str]:
    """Return the mechanism of smallest variance whose messages are short, and the reason.

    The variance is the one of :func:`record_variance`, for the probabilities that are drawn.
    """
    rated: dict[str, tuple[float, AbstractChannel]] = {}
    for name, make in MECHANISMS.items():
        if name.endswith("unary") and k > _LONGEST_MESSAGE:
            continue
        try:
            channel = make(k, epsilon)
        except TooLarge:
            continue
        if (getattr(channel, "width", None) or 1) <= _LONGEST_MESSAGE:
            rated[name] = record_variance(channel), channel
    chosen = min(rated, key=lambda name: rated[name][0])
    others = ", ".join(f"{name} {rated[name][0]:.4g}" for name in rated if name != chosen)
    variance, channel = rated[chosen]
    reason = f"{channel!r}, whose counts have the smallest variance for each record, "
    return channel, f"{reason}{variance:.4g} ({others})"
