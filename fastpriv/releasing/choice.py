"""How a release divides its level: whole records, columns, or a mechanism that was given."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from decimal import Decimal
from functools import reduce
from typing import Any

from fastpriv._core import validation as check
from fastpriv.accounting.ledger.amounts import ZERO, down, plus
from fastpriv.channels import HammingChannel
from fastpriv.design.closed_forms import h_inverse
from fastpriv.errors import Infeasible, InvalidInput, described, did_you_mean
from fastpriv.measures.inputs import as_channel
from fastpriv.measures.leakage import leakage_capacity
from fastpriv.measures.realised import raised, realised
from fastpriv.priors import Distribution
from fastpriv.releasing.domain import Domain
from fastpriv.releasing.estimator import expected_errors
from fastpriv.releasing.local.choosing import named
from fastpriv.releasing.local.choosing import plan as local_plan
from fastpriv.releasing.plan import COLUMNS, Plan, given, hamming, record_sizes, responses

#: Units in the last place by which the levels of columns may give way to their total.
_GIVE = 64


def make(
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
    """Choose the channel: E_d at a level or a distortion, or the one that was given."""
    check.flag(per_column, "per_column")
    if split is not None and not isinstance(split, Mapping):
        check.word(split, "split", ("columns", "record"))
    if named(mechanism):
        return _local(domain, mechanism, epsilon, distortion, per_column, split)
    chosen = [value is not None for value in (epsilon, distortion, mechanism)]
    if sum(chosen) != 1:
        raise InvalidInput("give exactly one of epsilon, distortion and mechanism")
    if mechanism is not None:
        if per_column or split is not None:
            raise InvalidInput("a mechanism acts as it is made; leave out per_column and split")
        return given(as_channel(mechanism), domain, rows)
    if per_column and split is not None:
        raise InvalidInput(
            "per_column gives epsilon to every column and split divides it among them; give one"
        )
    if isinstance(epsilon, Mapping):
        if split is not None or per_column:
            raise InvalidInput("epsilons by column are a split already; leave out the other")
        return _as_given(domain, _by_column(domain, epsilon))
    if epsilon is None:
        sizes = record_sizes(domain, per_column or split == "columns")
        epsilon = _level(check.real(distortion, "distortion", least=0.0), rows(), sizes)
        return hamming(domain, epsilon, per_column or split == "columns")
    epsilon = check.real(epsilon, "epsilon", least=0.0)
    tables = isinstance(prior, Distribution) and prior.space.n > 1 and prior.space.m == domain.size
    if tables and not per_column and split is None:
        return given(HammingChannel(prior.space.n, domain.size, epsilon), domain, rows)
    if isinstance(split, Mapping):
        return _columns(domain, _by_column(domain, split), epsilon)
    if per_column:
        return _as_given(domain, [epsilon] * len(domain.columns))
    if split == "record" or len(domain.columns) == 1:
        return hamming(domain, epsilon, False)
    evenly = _columns(domain, [epsilon / _moving(domain)] * len(domain.columns), epsilon)
    return evenly if split == "columns" else _keeping_most(domain, epsilon, evenly)


def _local(
    domain: Domain,
    mechanism: str,
    epsilon: float | Mapping[Hashable, float] | None,
    distortion: float | None,
    per_column: bool,
    split: str | Mapping[Hashable, float] | None,
) -> Plan:
    """Return a named local mechanism on every column, at levels that add up to epsilon."""
    if epsilon is None or distortion is not None:
        raise InvalidInput(f"mechanism={described(mechanism)} needs epsilon, and no distortion")
    if split is not None and split != "columns":
        raise InvalidInput(
            f"mechanism={described(mechanism)} treats columns by themselves: leave out split, or "
            "give epsilons by column"
        )
    if isinstance(epsilon, Mapping):
        epsilons = _by_column(domain, epsilon)
    else:
        level = check.real(epsilon, "epsilon", least=0.0)
        share = level if per_column else level / _moving(domain)
        epsilons = [share] * len(domain.columns)
    if per_column or isinstance(epsilon, Mapping):
        return local_plan(domain, mechanism, epsilons)
    for units in range(_GIVE):
        plan = local_plan(domain, mechanism, [e * (1.0 - units * 2.0**-52) for e in epsilons])
        drawn, slack = realised(plan.channel)
        if raised(leakage_capacity(drawn), slack) <= level:
            break
    return plan


def _moving(domain: Domain) -> int:
    """Count the columns that have a second value; the others spend nothing."""
    return max(1, sum(size > 1 for size in domain.sizes))


def _keeping_most(domain: Domain, epsilon: float, evenly: Plan) -> Plan:
    """Choose between whole records and columns: the one whose worst column is estimated better.

    Both protect a record at epsilon.
    """
    if domain.size > check.MAX_VECTOR:
        return evenly
    whole = hamming(domain, epsilon, False)
    worst = [max(expected_errors(plan, 1).values()) for plan in (whole, evenly)]
    return whole if worst[0] <= worst[1] else evenly


def _by_column(domain: Domain, given: Mapping[Hashable, float]) -> list[float]:
    """Return the epsilon of every column."""
    for name in given:
        if name not in domain.columns:
            hint = did_you_mean(name, domain.columns)
            raise InvalidInput(f"there is no column {described(name)} to give an epsilon to{hint}")
    absent = [name for name in domain.columns if name not in given]
    if absent:
        raise InvalidInput(
            f"column {described(absent[0])} has no epsilon; give one for every column"
        )
    return [
        check.real(given[name], f"the epsilon of column {described(name)}", least=0.0)
        for name in domain.columns
    ]


def _columns(domain: Domain, epsilons: Sequence[float], total: float) -> Plan:
    """Return randomised response on every column, at levels that add up to at most a total."""
    plan = _within(domain, epsilons, total)
    if plan is None:
        raise InvalidInput(
            f"the epsilons of the columns add up to {described(math.fsum(epsilons))}, more than "
            f"{described(total)} for a record"
        )
    return plan


def _as_given(domain: Domain, epsilons: Sequence[float]) -> Plan:
    """Return randomised response at given levels, whose total is that of the decimals they are.

    Five times 0.4 is 2 and fits a budget of 2, though the double 0.4 is a little more than 0.4.
    """
    moving = [e for e, size in zip(epsilons, domain.sizes, strict=True) if size > 1]
    total = down(reduce(plus, (Decimal(repr(float(e))) for e in moving), ZERO))
    plan = _within(domain, epsilons, total)
    return plan or Plan(responses(domain.sizes, epsilons), COLUMNS, domain)


def _within(domain: Domain, epsilons: Sequence[float], total: float) -> Plan | None:
    """Return randomised response at about these levels, None where they exceed the total.

    What is compared with the total is what a report or a ledger will charge: the level of the
    probabilities that are drawn, rounded up. The levels give way by a few units in the last place
    so that it stays within the total exactly.
    """
    for units in range(_GIVE):
        levels = [epsilon * (1.0 - units * 2.0**-52) for epsilon in epsilons]
        channel = responses(domain.sizes, levels)
        drawn, slack = realised(channel)
        if raised(leakage_capacity(drawn), slack) <= total:
            return Plan(channel, COLUMNS, domain)
    return None


def _level(distortion: float, n: int, sizes: tuple[int, ...]) -> float:
    """Level of E_d at an expected number of changes in n records; 0 beyond that of pure noise."""
    moving = [m for m in sizes if m > 1]
    if not moving or not n:
        return 0.0
    level = float(h_inverse(min(distortion / n, len(moving)), len(moving), moving))
    if level == math.inf:
        raise Infeasible(
            f"a distortion of {distortion:g} in {n} records has no finite level; allow more, or "
            "give epsilon"
        )
    return max(level, 0.0)
