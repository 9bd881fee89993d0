"""Individual and group capacity for priors of a minimum entropy, and the balance function."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastpriv._core import validation as check
from fastpriv._core.clock import Clock
from fastpriv._core.rounding import lowered, raised, ratio_log_up, sum_up
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.information import told_information
from fastpriv._matrices.searches.entropy import (
    Constrained,
    bit_capacity,
    bit_ends,
    record_capacity,
)
from fastpriv._matrices.searches.entropy_parts import Individual
from fastpriv._structure.rows import RowKernels
from fastpriv.channels import AbstractChannel, ProductChannel, QueryChannel
from fastpriv.channels.queries import (
    Group,
    Query,
    group_lines,
    group_ways,
    slice_ways,
    unlike_groups,
    ways_error,
)
from fastpriv.errors import Infeasible, InvalidInput, TooLarge, described, short
from fastpriv.measures.individual import largest_leak
from fastpriv.measures.individual.adversary import (
    adversary_of,
    as_query,
    information_error,
    representatives,
)
from fastpriv.measures.inputs import as_channel
from fastpriv.results import Adversary, Bracket, Brackets, IndividualCapacity

__all__ = ["balance_function", "constrained_capacity"]

#: Most databases for which the matrix is searched for records of equal roles.
_LISTED = 64
#: Most inputs of a search. Databases with the same output distribution count once for every value
#: of a record. The search holds a few vectors of this length for each part.
_INPUTS = 1 << 14
#: Most entries of the output distributions of these inputs, 128 MB.
_ENTRIES = 1 << 24
#: Width to reach unless another one is asked for.
_GAP = 1e-3
#: Width to reach in an audit, whose other levels take no searches.
_AUDITED = 1e-2
#: Gap of the individual capacity, which is an upper bound.
_FINE = 1e-9
#: Share of the time limit for the individual capacity.
_FIRST = 0.5
#: Most values and outputs of a single record whose problem is solved as a concave one.
_RECORD = 256
#: Most databases of an adversary that is listed.
_SHOWN = 1 << 12
#: Largest difference of output distributions that were computed in two ways.
_SAME = 1e-12
#: Relative distance from ln N below which b counts as ln N.
_TOP = 2.0**-51


@overload
def constrained_capacity(
    channel: AbstractChannel | ArrayLike,
    b: float,
    *,
    k: int = ...,
    gap: float = ...,
    time_limit: float | None = ...,
) -> IndividualCapacity: ...
@overload
def constrained_capacity(
    channel: AbstractChannel | ArrayLike,
    b: NDArray[Any] | list[float],
    *,
    k: int = ...,
    gap: float = ...,
    time_limit: float | None = ...,
) -> Brackets: ...
def constrained_capacity(
    channel: AbstractChannel | ArrayLike,
    b: ArrayLike,
    *,
    k: int = 1,
    gap: float = _GAP,
    time_limit: float | None = 10.0,
) -> IndividualCapacity | Brackets:
    """Bound the individual or group capacity over priors with an entropy of at least b nats.

    C_1^b = max over records i and priors with H(X) >= b of I(X_i; Y) (Wu-Xia-He 2020, Definition
    11, which is Definition 5 under Assumption 3). It does not increase with b. At b = 0 it is the
    individual capacity, and at b = ln N it is the information under the uniform prior. C_k^b is the
    analogue for groups of k records.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism. A 2-D array is a mechanism on one record; row x is the output distribution
        for value x.
    b : float or array
        Minimum entropy of the prior in nats, 0 .. ln N; one value or a grid.
    k : int
        Size of the group, 1 .. n. A group of k bits has 2^k values.
    gap : float
        Target width of the bracket in nats, relative for capacities below one nat.
    time_limit : float or None
        Seconds for each b. After them the current bracket is returned; it is wider but valid. None
        bounds the work instead, so that the bracket is the same on every machine.

    Returns
    -------
    IndividualCapacity or Brackets
        Capacity in nats. The lower bound is the information under an explicit prior, rounded down.
        The upper bound is proved and rounded up. For one b, ``adversary`` has that prior: the
        record or group, all databases that can occur, and their probabilities. It is None beyond
        4,096 databases, unless the adversary of the individual capacity has enough entropy.

    Notes
    -----
    Branch and bound over the distributions of the other records given x_i (page "Individuals" of
    the documentation). After 10 seconds on one core random channels reach the gap of 1e-3 for one
    record, for two outputs, and for up to four bits with 8 outputs. The bracket keeps a width of
    0.01 to 0.1 for four bits with 16 outputs. It keeps 0.1 for five bits with 8 noisy outputs, and
    1.3 for six. A query is searched over its answers, at most 2^14 for each value of a record.
    Counts of thousands of records fit.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = fp.HammingChannel(2, 2, 1.0)
    >>> fp.constrained_capacity(channel, 0.0)  # both records the same: two looks at one bit
    IndividualCapacity(0.1989093021, 0.1989093022)
    >>> bracket = fp.constrained_capacity(channel, 1.0)
    >>> round(bracket.lower, 3), bracket.width < 1e-3 * bracket.lower
    (0.169, True)
    >>> both = fp.constrained_capacity(channel, 1.0, k=2)  # both records: the whole database
    >>> round(both.lower, 3)
    0.222
    """
    return _solve(channel, b, gap, time_limit, k)[1]


@overload
def balance_function(
    channel: AbstractChannel | ArrayLike,
    b: float,
    *,
    gap: float = ...,
    time_limit: float | None = ...,
) -> Bracket: ...
@overload
def balance_function(
    channel: AbstractChannel | ArrayLike,
    b: NDArray[Any] | list[float],
    *,
    gap: float = ...,
    time_limit: float | None = ...,
) -> Brackets: ...
def balance_function(
    channel: AbstractChannel | ArrayLike,
    b: ArrayLike,
    *,
    gap: float = _GAP,
    time_limit: float | None = 10.0,
) -> Bracket | Brackets:
    """Bound the balance function: the privacy gained if priors have entropy at least b.

    g(b) = C_1 - C_1^b (Wu-Xia-He 2020, Definition 11). It is 0 at b = 0 and does not decrease. A
    channel with individual capacity epsilon + g(b) leaks at most epsilon to an adversary whose
    prior has an entropy of at least b (Proposition 3 there).

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    b : float or array
        Minimum entropy of the prior in nats, 0 .. ln N; one value or a grid.
    gap, time_limit
        As for :func:`constrained_capacity`.

    Returns
    -------
    Bracket or Brackets
        g(b) in nats, rounded outwards. The lower bound is the guaranteed gain.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = fp.HammingChannel(2, 2, 1.0)
    >>> fp.balance_function(channel, 0.5).upper < 1e-9  # the worst prior has an entropy of ln 2
    True
    >>> grid = fp.balance_function(channel, [0.0, 0.7, 1.0, 1.3])
    >>> grid.midpoint.round(3)
    array([0.   , 0.   , 0.03 , 0.074])
    """
    gained: Bracket | Brackets = balance_and_capacity(channel, b, gap, time_limit)[0]
    return gained


def balance_and_capacity(
    channel: AbstractChannel | ArrayLike, b: ArrayLike, gap: float, time_limit: float | None
) -> tuple[Any, Any]:
    """Return g(b) and C_1^b from one search."""
    worst, capacity = _solve(channel, b, gap, time_limit)
    lower = np.maximum(lowered(worst.lower - capacity.upper, 2.0), 0.0)
    upper = raised(worst.upper - capacity.lower, 2.0)
    upper = np.where(np.asarray(b) == 0.0, 0.0, upper)  # the same number, however wide its bracket
    if isinstance(capacity, Bracket):
        return Bracket(float(lower), float(upper), guaranteed="lower"), capacity
    return Brackets(np.asarray(lower), np.asarray(upper)), capacity


def constrained_given(
    channel: AbstractChannel, b: float, worst: IndividualCapacity, time_limit: float | None
) -> Bracket:
    """Return C_1^b of a channel whose individual capacity was computed before."""
    bracket = _solve(channel, b, _AUDITED, time_limit, worst=worst)[1]
    assert isinstance(bracket, Bracket)
    return bracket


def _solve(
    channel: AbstractChannel | ArrayLike,
    b: ArrayLike,
    gap: float,
    time_limit: float | None,
    k: int = 1,
    worst: IndividualCapacity | None = None,
) -> tuple[Bracket, IndividualCapacity | Brackets]:
    """Return the capacity about k records, unless ``worst`` is it, and the constrained one."""
    mechanism = as_channel(channel)
    k = check.integer(k, "k", 1)
    n = mechanism.space.n
    if k > n:
        raise InvalidInput(f"k must be at most the number of records {n}; got {short(k)}.")
    gap = check.real(gap, "gap", least=0.0)
    time_limit = check.optional_limit(time_limit, "time_limit")
    given = check.array(b, "b")
    if given.ndim > 1 or given.size == 0:
        raise InvalidInput(f"b must be a number or a list of them; got shape {given.shape}.")
    size = mechanism.space.size
    top = math.log(size)
    levels = [check.real(level, "b", least=0.0) for level in given.reshape(-1).tolist()]
    if max(levels) > top * (1.0 + _TOP):
        raise Infeasible(
            f"no prior on {short(size)} databases has an entropy of {described(max(levels))} nats: "
            f"the most is ln {short(size)} = {described(top)}, of the uniform one; ask for b in 0 "
            f".. {described(top)}."
        )
    alone: Floats | None = None  # the prior of a single record
    problem: Constrained | None = None  # a bit has a closed form, and needs no search
    clock = Clock(math.inf if time_limit is None else time_limit)
    first = None if time_limit is None else _FIRST * time_limit
    if worst is None:
        worst = largest_leak(mechanism, k, min(gap, _FINE), first)
    entropy = _entropy(worst.adversary.law) if worst.adversary is not None else -1.0
    lower, upper, searched = np.empty(len(levels)), np.empty(len(levels)), False
    for at in np.argsort(levels)[::-1]:  # the search for b starts from the priors for larger b
        if levels[at] <= entropy or worst.upper == 0.0:
            lower[at], upper[at] = worst.lower, worst.upper
            continue
        if levels[at] >= top * (1.0 - _TOP):
            problem = problem or _problem(mechanism, k)
            far = max(0.0, sum_up([ratio_log_up(Fraction(size)), -levels[at]]))
            even = problem.near_uniform(far)
            bracket: Bracket = Bracket(even.lower, max(even.lower, min(even.upper, worst.upper)))
        elif size == 2:
            bracket = bit_capacity(np.array(mechanism.nearest_matrix()), levels[at], worst.upper)
        elif n == 1 and size <= _RECORD and (one := _one_record(mechanism, levels[at], gap, worst)):
            bracket, alone = one
        else:
            problem = problem or _problem(mechanism, k)
            # The first search gets the remaining time of the individual capacity.
            seconds = time_limit if time_limit is None or searched else clock.left()
            bracket, searched = problem.at(levels[at], gap, worst.upper, seconds), True
        bracket = _widened(bracket, mechanism.matrix_error, worst.upper)
        lower[at], upper[at] = bracket.lower, bracket.upper
    if given.ndim == 0:
        known = _attaining(mechanism, levels[0], k, worst, levels[0] <= entropy, problem, alone)
        return worst, IndividualCapacity(float(lower[0]), float(upper[0]), known)
    order = np.argsort(levels)
    lower[order] = np.maximum.accumulate(lower[order][::-1])[::-1]
    upper[order] = np.minimum.accumulate(upper[order])
    return worst, Brackets(lower, upper)


def _one_record(
    channel: AbstractChannel, b: float, gap: float, worst: IndividualCapacity
) -> tuple[Bracket, Floats] | None:
    """Return C_1^b of a channel on one record with few outputs, None if it needs a search."""
    if channel.output_count > _RECORD:
        return None
    return record_capacity(np.array(channel.nearest_matrix()), b, gap, worst.upper)


def _attaining(
    channel: AbstractChannel,
    b: float,
    k: int,
    worst: IndividualCapacity,
    enough: bool,
    problem: Constrained | None,
    alone: Floats | None,
) -> Adversary | None:
    """Return the prior of the lower bound for one b; None if databases are not listed."""
    size = channel.space.size
    if enough or worst.upper == 0.0:
        return worst.adversary
    if size > _SHOWN or size * channel.output_count > _ENTRIES:
        return None
    groups = list(itertools.islice(itertools.combinations(range(channel.space.n), k), _SHOWN))
    matrix = np.array(channel.nearest_matrix(), order="C")
    if size == 2 or b >= math.log(size) * (1.0 - _TOP):
        ends = bit_ends(b)[0] if size == 2 else ()
        laws = [np.array([t, 1.0 - t]) for t in ends] or [np.full(size, 1.0 / size)]
    elif alone is not None:
        laws = [alone]
    else:
        assert problem is not None
        best = max(problem.individuals, key=lambda each: each.best[0])
        found = (_over_databases(channel, matrix, best, group) for group in groups)
        laws = [law for law in found if law is not None][:1]
    tried = [(_told(matrix, law, channel.space.sizes, group), j, group)
             for j, law in enumerate(laws) for group in groups]  # fmt: skip
    if not tried:
        return None
    _, j, group = max(tried)
    return adversary_of(channel.space, group, laws[j])


def _told(matrix: Floats, law: Floats, sizes: tuple[int, ...], group: Group) -> float:
    """Return I(X_G; Y) under a prior."""
    weights = group_lines(law, sizes, group)
    places = group_lines(np.arange(len(law)), sizes, group)
    joint = np.stack([w @ matrix[x] for w, x in zip(weights, places, strict=True)])
    settings = weights.sum(axis=1)
    seen = settings > 0.0
    return told_information(joint[seen] / settings[seen, None], settings[seen])


def _over_databases(
    channel: AbstractChannel, matrix: Floats, individual: Individual, group: Group
) -> Floats | None:
    """Return the best prior of a search as a vector over databases; None for other groups.

    An input of the search stands for all databases that have its output distribution and value of
    the group, and its probability is divided among them.
    """
    sizes = channel.space.sizes
    if math.prod(sizes[i] for i in group) != len(individual.slices):
        return None
    if individual.others and channel.kernels is not None:  # the record's own output comes first
        outputs = matrix.reshape(len(matrix), *channel.kernels.sizes_out)
        matrix = np.moveaxis(outputs, 1 + group[0], 1).reshape(len(matrix), -1)
    matrix = matrix[:, matrix.any(axis=0)]
    if matrix.shape[1] != individual.W.shape[1]:
        return None
    law = np.zeros(len(matrix))
    places = group_lines(np.arange(len(matrix)), sizes, group)
    inputs = individual.best[1] / individual.best[1].sum()
    for x, own, start, stop in zip(
        places, individual.split(inputs), individual.edges[:-1], individual.edges[1:], strict=True
    ):
        apart = np.abs(matrix[x][:, None, :] - individual.W[start:stop]).max(axis=2)
        which = apart.argmin(axis=1)
        counts = np.bincount(which, minlength=len(own))
        if apart.min(axis=1).max() > _SAME or not np.allclose(
            np.log(np.maximum(counts, 0.5)), individual.logs[start:stop]
        ):
            return None
        law[x] = (own / counts)[which]
    return law


def _problem(channel: AbstractChannel, k: int) -> Constrained:
    """Return the records of different roles, each with its distinct output distributions."""
    if k > 1:
        return _group_problem(channel, k)
    size = channel.space.size
    if isinstance(channel, ProductChannel) and size * channel.output_space.size <= _ENTRIES:
        return Constrained(_looked_at(channel.kernels))
    if size <= _LISTED:
        return Constrained.of_matrix(
            np.array(channel.nearest_matrix(), order="C"), channel.space.sizes
        )
    query, table = _query(channel)
    kinds, first = query.kinds(), representatives(table)
    individuals = []
    for i in np.unique(kinds, return_index=True)[1].tolist():
        if channel.space.sizes[i] > 1:
            blocks = [_merged(first[answers], logs) for answers, logs in slice_ways(query, i)]
            inputs = sum(len(rows) for rows, _ in blocks)
            _check_inputs(inputs, table.shape[1])
            rows = [(np.ascontiguousarray(table[rows]), logs) for rows, logs in blocks]
            individuals.append(Individual(_seen(rows), ways_error(query)))
    return Constrained(individuals)


def _query(channel: AbstractChannel) -> tuple[Query, Floats]:
    """Return the query behind a channel, unless it has too many databases to search among."""
    size = channel.space.size
    if not isinstance(channel, QueryChannel) and size > _INPUTS:
        raise TooLarge.entries(
            "a prior over the databases",
            size,
            f"priors are searched among up to {_INPUTS} of them, or through a QueryChannel, which "
            "counts databases with the same answer together",
        )
    return as_query(channel)


def _group_problem(channel: AbstractChannel, k: int) -> Constrained:
    """Return the groups of k records of different roles, each group as one record."""
    query, table = _query(channel)
    first, individuals = representatives(table), []
    for group in unlike_groups(query.kinds(), k):
        values = math.prod(channel.space.sizes[i] for i in group)
        _check_inputs(values, table.shape[1])
        blocks = [_merged(first[answers], logs) for answers, logs in group_ways(query, group)]
        _check_inputs(sum(len(rows) for rows, _ in blocks), table.shape[1])
        rows = [(np.ascontiguousarray(table[rows]), logs) for rows, logs in blocks]
        if values > 1 or channel.space.size == 1:
            individuals.append(Individual(_seen(rows), ways_error(query)))
    return Constrained(individuals)


def _widened(bracket: Bracket, error: float, most: float) -> Bracket:
    """Allow for relative errors of the output distributions, as for individual capacities."""
    slack = information_error(bracket.upper, error)
    lower = max(bracket.lower - slack, 0.0)
    return Bracket(lower, max(lower, min(bracket.upper + slack, most)))


def _looked_at(kernels: RowKernels) -> list[Individual]:
    """Return the records with different channels.

    An output of a record depends on this record alone.
    """
    individuals = []
    for kernel, users in kernels.groups():
        if kernel.shape[0] > 1 or kernels.assignment.size == 1:
            others = [kernels[j].matrix for j in range(len(kernels)) if j != users[0]]
            individuals.append(Individual.looked_at(kernel.matrix, others, _order(others)))
    return individuals


def _order(kernels: list[Floats]) -> Ints:
    """Return pairs of outputs; without loss the first output has the larger posterior.

    If a cyclic shift of all values and outputs of every record leaves the channel unchanged, some
    shift moves the largest posterior to the first output. Then records with the same channel can be
    ordered by the outputs in which they alone differ from the first output.
    """
    strides = np.cumprod([1, *(kernel.shape[1] for kernel in kernels[::-1])])[-2::-1]
    pairs = []
    if all(np.array_equal(np.roll(kernel, (1, 1), (0, 1)), kernel) for kernel in kernels):
        pairs += [(0, y) for y in range(1, math.prod(kernel.shape[1] for kernel in kernels))]
    last: dict[tuple[int, bytes], int] = {}
    for kernel, stride in zip(kernels, strides.tolist(), strict=True):
        if kernel.shape[1] > 1:
            if (key := (len(kernel), kernel.tobytes())) in last:
                pairs.append((last[key], stride))
            last[key] = stride
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _check_inputs(inputs: int, outputs: int) -> None:
    """Reject problems that are too large for a search."""
    if inputs > _INPUTS or inputs * outputs > _ENTRIES:
        raise TooLarge(
            f"the search for a prior would have {short(inputs)} inputs with {short(outputs)} "
            f"outputs each; it takes up to {_INPUTS} inputs and {_ENTRIES} entries: use a query "
            "with fewer answers, or merge outputs."
        )


def _merged(rows: Ints, logs: Floats) -> tuple[Ints, Floats]:
    """Return each record once, with the logarithm of its number of databases."""
    distinct, which = np.unique(rows, return_inverse=True)
    total = np.full(len(distinct), -math.inf)
    np.logaddexp.at(total, which, logs)
    return distinct, total


def _seen(blocks: list[tuple[Floats, Floats]]) -> list[tuple[Floats, Floats]]:
    """Leave out outputs that never occur."""
    occurs = np.any([rows.any(axis=0) for rows, _ in blocks], axis=0)
    return [(np.ascontiguousarray(rows[:, occurs]), logs) for rows, logs in blocks]


def _entropy(law: Floats) -> float:
    """H, rounded down."""
    seen = law[law > 0.0] / math.fsum(law)
    return lowered(-math.fsum(seen * np.log(seen)), 32.0)
