"""Witnesses: two databases and an output that attain a level, in the channel's structure.

Three witnesses are dispatched on the channel: ``step_witness`` for levels over neighbours,
``extreme_witness`` for levels over all databases, ``leakage_witness`` for pointwise leakage.
``ruling_out`` lists outputs that exclude a database.
"""

from __future__ import annotations

import math
from functools import singledispatch

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.logs import log_ratio
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.ratios import matrix_level
from fastpriv._structure.leakage import tropical, vector_leakages
from fastpriv._structure.rows import RowKernel, RowKernels, Symmetric
from fastpriv.channels import (
    AbstractChannel,
    HammingChannel,
    ProductChannel,
    QueryChannel,
    TiltedChannel,
)
from fastpriv.channels.types import TypeChannel
from fastpriv.errors import InvalidInput
from fastpriv.measures.identifiability import likeliest_move, likeliest_step, type_odds
from fastpriv.measures.inputs import measure_as_product
from fastpriv.measures.pointwise.database import (
    count_leakages,
    leakages,
    pml,
    possible_types,
    rows_leakages,
    type_leakages,
)
from fastpriv.priors import Dense, Distribution, Exchangeable, Markov, Product
from fastpriv.results import Witness
from fastpriv.spaces import Space

#: Most outputs that are listed.
FEW = 5
#: Most entries that are searched.
_SCANNED = 1 << 25


@singledispatch
def step_witness(channel: AbstractChannel, prior: Distribution | None = None) -> Witness:
    """Return a witness of the neighbour level, or under a prior of the posterior level."""
    return matrix_step_witness(channel, prior)


@singledispatch
def extreme_witness(channel: AbstractChannel) -> Witness:
    """Return a witness of the leakage capacity, from the matrix."""
    x, other, y = _furthest(_small_matrix(channel))
    return Witness(channel.output_row(y), *channel.space.rows(np.array([x, other])))


@singledispatch
def leakage_witness(channel: AbstractChannel, prior: Distribution) -> Witness:
    """Return the output that leaks most, and the likeliest database behind it."""
    return matrix_leakage_witness(channel, prior)


def matrix_leakage_witness(channel: AbstractChannel, prior: Distribution) -> Witness:
    """Use the matrix; raise TooLarge if it is too large to search."""
    y = int(pml(channel, prior).argmax())
    column = np.where(prior.probabilities() > 0, _small_matrix(channel)[:, y], -1.0)
    return Witness(channel.output_row(y), channel.space.rows(int(column.argmax())))


@singledispatch
def ruling_out(channel: AbstractChannel) -> tuple[int, Ints]:
    """Count the outputs that some database cannot cause and others can; list the first few."""
    most, least = channel.column_maxima(), channel.column_minima()
    found = np.flatnonzero((most > 0.0) & (least == 0.0))
    return len(found), _few(channel, found)


def _few(channel: AbstractChannel, columns: Ints) -> Ints:
    """Return the first few outputs of some columns, as tuples of their space."""
    rows = [channel.output_row(y) for y in columns[:FEW].tolist()]
    return np.array(rows, dtype=np.int64).reshape(-1, channel.output_space.n)


def _small_matrix(channel: AbstractChannel) -> Floats:
    """Return the matrix of a channel, if it is small enough to look for a single entry."""
    entries = channel.space.size * channel.output_count
    check.fits(entries, f"the matrix of {channel!r}", "ask for levels only", _SCANNED)
    return channel.nearest_matrix()


def largest_ratio(top: Floats, bottom: Floats) -> int:
    """Return the place, in C order, of the largest top/bottom of those with a positive top."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        excess = (top - bottom) / bottom
    excess[top == 0.0] = -1.0
    place = int(excess.argmax())
    if excess.flat[place] < math.inf or bottom.flat[place] == 0.0:
        return place
    # Overflow: a zero below, or else the largest by logarithms.
    apart = np.where(top > 0.0, log_ratio(np.maximum(top, bottom), bottom), -1.0)
    return int(apart.argmax())


def matrix_step_witness(channel: AbstractChannel, prior: Distribution | None) -> Witness:
    """Find the neighbours and the output with the largest ratio of joint (or given) probabilities.

    Use the matrix; raise TooLarge if it is too large to search.
    """
    joint, space = np.array(_small_matrix(channel)), channel.space
    if prior is not None:  # a power of two keeps products of small numbers from underflowing
        joint *= (prior.probabilities() * 2.0**900)[:, None]
    axes = [(int(s), m) for s, m in zip(space.strides, space.sizes, strict=True) if m > 1]
    if not axes:
        raise InvalidInput(
            "no record has a second value, so there are no neighbours. "
            "Give a record two values or more."
        )
    levels = [matrix_level(joint, np.array([axis])) for axis in axes]
    inner, m = axes[int(np.argmax(levels))]
    blocks = joint.reshape(-1, m, inner, joint.shape[1])
    tops, bottoms = blocks.max(axis=1), blocks.min(axis=1)
    outer, rest, y = np.unravel_index(largest_ratio(tops, bottoms), tops.shape)
    line = blocks[outer, :, rest, y]
    ends = [int((outer * m + v) * inner + rest) for v in (line.argmax(), line.argmin())]
    return Witness(channel.output_row(int(y)), *space.rows(np.array(ends)))


def _furthest(laws: Floats) -> tuple[int, int, int]:
    """Return two rows and the column with the largest ratio of any two entries of a column."""
    y = largest_ratio(laws.max(axis=0), laws.min(axis=0))
    return int(laws[:, y].argmax()), int(laws[:, y].argmin()), y


def _widest(laws: Floats, pairs: Ints) -> tuple[int, int]:
    """Return the listed pair of rows with the largest ratio of two entries."""
    check.fits(
        pairs.size * laws.shape[1], "the distributions of neighbours", "ask for levels", _SCANNED
    )
    place = largest_ratio(laws[pairs[:, 0]], laws[pairs[:, 1]])
    v, w = pairs[place // laws.shape[1]].tolist()
    return v, w


@ruling_out.register
def _product_ruling_out(channel: ProductChannel) -> tuple[int, Ints]:
    """All outputs that occur, less those that every value of every record can cause."""
    kernels = channel.kernels
    counts = np.bincount(kernels.assignment, minlength=len(kernels.distinct)).tolist()
    seen = [np.flatnonzero(kernel.matrix.max(axis=0) > 0.0) for kernel in kernels.distinct]
    full = [np.flatnonzero(kernel.matrix.min(axis=0) > 0.0) for kernel in kernels.distinct]
    number = math.prod(len(y) ** c for y, c in zip(seen, counts, strict=True))
    number -= math.prod(len(y) ** c for y, c in zip(full, counts, strict=True))
    # All records have their first output except one, whose output excludes a value.
    start = np.array([y[0] for y in seen])[kernels.assignment]
    partial = [k for k, y in enumerate(seen) if len(y) > len(full[k])]
    first = [
        (int((kernels.assignment == k).argmax()), y)
        for k in partial[:FEW]
        for y in np.setdiff1d(seen[k], full[k])[:FEW].tolist()
    ][:FEW]
    listed = np.repeat(start[None], len(first), axis=0)
    for line, (i, y) in zip(listed, first, strict=True):
        line[i] = y
    return number, listed


@ruling_out.register(HammingChannel)
@ruling_out.register(TiltedChannel)
def _hamming_or_tilted_ruling_out(channel: AbstractChannel) -> tuple[int, Ints]:
    """No output that occurs excludes a database, even if a probability rounds to 0."""
    return 0, np.empty((0, channel.space.n), dtype=np.int64)


@ruling_out.register
def _type_ruling_out(channel: TypeChannel) -> tuple[int, Ints]:
    """The outputs whose type some class cannot reach. Cost O(classes)."""
    kinds, entries = channel.types, channel.entries
    types = [j for j, e in enumerate(entries) if e.max() > 0.0 and e.min() == 0.0]
    count = sum(kinds.size(j) for j in types)
    first = [np.repeat(np.arange(channel.space.sizes[0]), kinds.counts[j][0]) for j in types]
    return count, np.array(first[:FEW], dtype=np.int64).reshape(-1, channel.space.n)


@step_witness.register
def _product_step_witness(channel: ProductChannel, prior: Distribution | None = None) -> Witness:
    return _rows_step(channel.kernels, prior)


def _rows_step(kernels: RowKernels, prior: Distribution | None) -> Witness:
    """Return the worst record with its two values and output; other outputs are the likeliest."""
    best, place = -math.inf, (kernels.distinct[0], np.arange(1), 0, 0)
    for kernel, rows in kernels.groups():
        level, s, t = kernel.largest_ratio()
        if prior is not None:
            check.fits(kernel.shape[0] ** 2, "the pairs of a row's values", "ask for levels only")
            ratios = prior.log_ratios(rows)
            possible = ratios > -math.inf
            total = np.where(possible, np.where(possible, ratios, 0.0) + kernel.log_ratios, -1.0)
            s, t = map(int, np.unravel_index(total.argmax(), total.shape))
            level = float(total[s, t])
        if level > best:
            best, place = level, (kernel, rows, s, t)
    kernel, rows, s, t = place
    x, i = (
        (np.zeros(len(kernels), np.int64), int(rows[0]))
        if prior is None
        else steepest(prior, rows, s, t)
    )
    x[i] = s
    y = np.empty_like(x)
    for other, users in kernels.groups():
        y[users] = other.likeliest(x[users])
    y[i] = kernel.revealing_output(s, t)
    moved = x.copy()
    moved[i] = t
    return Witness(y, x, moved)


def _prior_step(prior: Distribution, groups: list[Ints]) -> Witness:
    """Return the neighbours x, x' of largest p(x')/p(x), and x itself as the output."""
    best, place = -math.inf, (groups[0], 0, 0)
    for rows in groups:
        ratios = prior.log_ratios(rows[:1])
        np.fill_diagonal(ratios, -math.inf)
        s, t = map(int, np.unravel_index(ratios.argmax(), ratios.shape))
        if ratios[s, t] > best:
            best, place = float(ratios[s, t]), (rows[:1], s, t)
    rows, s, t = place
    other, i = steepest(prior, rows, s, t)
    x = other.copy()
    x[i] = t
    return Witness(x.copy(), x, other)


@extreme_witness.register
def _product_extreme_witness(channel: ProductChannel) -> Witness:
    """Take in every record the two values and the output with the largest ratio."""
    kernels = channel.kernels
    x, other, y = (np.empty(len(kernels), dtype=np.int64) for _ in range(3))
    for kernel, rows in kernels.groups():
        _, s, t = kernel.largest_ratio()
        x[rows], other[rows], y[rows] = s, t, kernel.revealing_output(s, t)
    return Witness(y, x, other)


@leakage_witness.register
def _product_leakage_witness(channel: ProductChannel, prior: Distribution) -> Witness:
    return Witness(*leading(prior, channel.kernels))


@step_witness.register
def _query_step_witness(channel: QueryChannel, prior: Distribution | None = None) -> Witness:
    """Search answers for the neighbour level, and databases for the posterior level.

    Cost as for these levels. Raises TooLarge for too many entries.
    """
    query = channel.query
    if prior is not None:
        _, x, other = likeliest_step(channel, prior)
        first, second = channel.space.rows(np.array([x, other]))
        v, w = query.of(np.stack([first, second])).tolist()
    else:
        v, w = _widest(channel.kernel.matrix, query.neighbours())
        first, second = query.step(v, w)
    return Witness(np.array([channel.kernel.revealing_output(v, w)]), first, second)


@extreme_witness.register
def _query_extreme_witness(channel: QueryChannel) -> Witness:
    """Search the answers that occur."""
    seen = channel.query.seen()
    v, w, y = _furthest(channel.occurring_rows())
    first, second = (channel.query.database((), (), int(seen[a])) for a in (v, w))
    return Witness(np.array([y]), first, second)


@leakage_witness.register
def _query_leakage_witness(channel: QueryChannel, prior: Distribution) -> Witness:
    """The output that leaks most, and a database with the likeliest answer behind it."""
    query = channel.query
    y = int(pml(channel, prior).argmax())
    column = np.where(query.law(prior) > 0, channel.kernel.matrix[:, y], -1.0)
    x = query.database((), (), int(column.argmax()))
    if prior.log_prob(x) == -math.inf:
        chances = np.where(prior.probabilities() > 0, column[query.listed()], -1.0)
        x = channel.space.rows(int(chances.argmax()))
    return Witness(np.array([y]), x)


@step_witness.register
def _type_step_witness(channel: TypeChannel, prior: Distribution | None = None) -> Witness:
    """Search the moves of one record from class to class. Cost O(classes)."""
    source, target = channel.all_classes.source, channel.all_classes.target
    if prior is None:
        at = largest_ratio(channel.all_entries[source], channel.all_entries[target])
    else:
        odds = type_odds(channel, prior) if prior.by_type() is not None else None
        if odds is None:
            return matrix_step_witness(channel, prior)
        at = likeliest_move(channel, odds)[1]
    pairs = channel.pair_counts(int(source[at]))
    moved = pairs - channel.pair_counts(int(target[at]))
    x, y = _laid_out(pairs)
    v, s = np.unravel_index(moved.argmax(), moved.shape)
    other = x.copy()
    other[np.flatnonzero((y == v) & (x == s))[0]] = moved[v].argmin()
    return Witness(y, x, other)


@extreme_witness.register
def _type_extreme_witness(channel: TypeChannel) -> Witness:
    """Search the classes against each type of output. Cost O(classes)."""
    most, least = (np.array([f(e) for e in channel.entries]) for f in (np.max, np.min))
    j = largest_ratio(most, least)
    first, entry = int(channel.all_classes.starts[j]), channel.entries[j]
    x, y = _laid_out(channel.pair_counts(first + int(entry.argmax())))
    other, _ = _laid_out(channel.pair_counts(first + int(entry.argmin())))
    return Witness(y, x, other)


@leakage_witness.register
def _type_leakage_witness(channel: TypeChannel, prior: Distribution) -> Witness:
    """Search the types of outputs, under an exchangeable prior."""
    types = prior.by_type()
    if types is None:
        return matrix_leakage_witness(channel, prior)
    j = int(type_leakages(channel, types).above.argmax())
    alive = possible_types(channel, types)[channel.classes[j].row]
    entry = np.where(alive, channel.entries[j], -1.0)
    x, y = _laid_out(channel.pair_counts(int(channel.all_classes.starts[j]) + int(entry.argmax())))
    return Witness(y, x)


def _laid_out(pairs: Ints) -> tuple[Ints, Ints]:
    """Return a database and an output with ``pairs[v, s]`` records that have v in y and s in x."""
    values = np.arange(len(pairs))
    y = np.repeat(values, pairs.sum(axis=1))
    return np.repeat(np.tile(values, len(values)), pairs.reshape(-1)), y


@step_witness.register
def _tilted_step_witness(channel: TiltedChannel, prior: Distribution | None = None) -> Witness:
    """Use the structure of the prior.

    If a record of x leaves its value in y, W changes by e^epsilon and by a ratio of R q. Here q is
    the base distribution and R the randomised response.
    """
    if prior is None:
        witness = _prior_step(channel.prior, channel.alike_groups)
    elif channel.is_own_prior(prior):
        witness = _rows_step(channel.hamming_kernels, None)
    else:
        tilted = Dense.of(prior.probabilities() / channel.base_and_mixture()[1], channel.space)
        witness = _rows_step(channel.hamming_kernels, tilted)
    occurs = channel.base.log_prob(witness.output) > -math.inf
    if occurs and channel.all_values_occur:
        return witness
    return matrix_step_witness(channel, prior)


@extreme_witness.register
def _tilted_extreme_witness(channel: TiltedChannel) -> Witness:
    """Use the largest and smallest tilt of every output. Cost O(N n m)."""
    base, mixture = channel.base_and_mixture()
    tilt = -np.log(mixture)
    most, least = (tropical(tilt, channel.hamming_kernels, j) for j in (np.maximum, np.minimum))
    y = channel.space.rows(int(np.where(base > 0, most - least, -1.0).argmax()))
    column = _log_column(channel, y)
    return Witness(y, *channel.space.rows(np.array([column.argmax(), column.argmin()])))


@leakage_witness.register
def _tilted_leakage_witness(channel: TiltedChannel, prior: Distribution) -> Witness:
    """Use the leakages of all outputs. Cost O(N n m)."""
    y = channel.space.rows(int(leakages(channel, prior).above.argmax()))
    column = np.where(prior.probabilities() > 0, _log_column(channel, y), -math.inf)
    return Witness(y, channel.space.rows(int(column.argmax())))


def _log_column(channel: TiltedChannel, y: Ints) -> Floats:
    """Return the log of W[x, y] for every x, up to a constant."""
    logs = np.zeros(1)
    for value, m in zip(y.tolist(), channel.space.sizes, strict=True):
        logs = np.add.outer(logs, -channel.epsilon * (np.arange(m) != value)).reshape(-1)
    return np.asarray(logs - np.log(channel.base_and_mixture()[1]))


for _witness in (step_witness, extreme_witness, leakage_witness):
    measure_as_product(_witness)


# Databases and outputs that stand out under a prior, for witnesses of record-by-record channels.


@singledispatch
def leading(prior: Distribution, kernels: RowKernels) -> tuple[Ints, Ints]:
    """Return the output of a record-by-record channel that leaks most, and its likeliest cause."""
    return vector_leading(prior, kernels)


def vector_leading(prior: Distribution, kernels: RowKernels) -> tuple[Ints, Ints]:
    """Use the leakages of all outputs."""
    y = Space(kernels.sizes_out).rows(int(rows_leakages(prior, kernels).above.argmax()))
    return y, _cause(prior, kernels, y)


@leading.register
def _product_leading(prior: Product, kernels: RowKernels) -> tuple[Ints, Ints]:
    """Independent records: use the witnesses of every record alone."""
    laws, which, _, place = prior.paired(kernels)
    pairs = zip(laws, which, strict=True)
    ends = np.array([_row_leading(kernels.distinct[j], prior.distinct[k]) for k, j in pairs])
    y, x = ends[place].T
    return y.copy(), x.copy()


@leading.register
def _exchangeable_leading(prior: Exchangeable, kernels: RowKernels) -> tuple[Ints, Ints]:
    """Exchangeable bits with one kernel: search the types of outputs."""
    by_type = count_leakages(prior, kernels)
    if by_type is None:
        return vector_leading(prior, kernels)
    ones = max(by_type, key=lambda leak: leak[1])[0]
    y = np.repeat([0, 1], [prior.space.n - ones, ones])
    return y, _cause(prior, kernels, y)


@singledispatch
def _row_leading(kernel: RowKernel, law: Floats) -> tuple[int, int]:
    """Return the output of one record that leaks most, and the likeliest value behind it."""
    y = int(vector_leakages(law, [kernel]).above.argmax())
    return y, int(np.where(law > 0, kernel.matrix[:, y], -1.0).argmax())


@_row_leading.register
def _symmetric_row_leading(kernel: Symmetric, law: Floats) -> tuple[int, int]:
    """Randomised response: the rarest value that occurs, twice."""
    y = int(np.where(law > 0, law, math.inf).argmin())
    return y, y


def _cause(prior: Distribution, kernels: RowKernels, y: Ints) -> Ints:
    """Return the database with the largest probability of y, of those that can occur."""
    x = np.empty_like(y)
    for kernel, rows in kernels.groups():
        x[rows] = kernel.causes(y[rows])
    if prior.log_prob(x) > -math.inf:
        return x
    possible, logs = prior.probabilities() > 0, np.zeros(1)
    for kernel, value in zip(kernels, y.tolist(), strict=True):
        logs = np.add.outer(logs, kernel.log_relative[:, value]).reshape(-1)
    return prior.space.rows(int(np.where(possible, logs, -math.inf).argmax()))


@singledispatch
def steepest(prior: Distribution, rows: Ints, s: int, t: int) -> tuple[Ints, int]:
    """Return a database and one of ``rows``; p falls most if its value s becomes t.

    The records have the same size.
    """
    return vector_steepest(prior, rows, s, t)


def vector_steepest(prior: Distribution, rows: Ints, s: int, t: int) -> tuple[Ints, int]:
    """Use the vector of the prior."""
    p, best, space = prior.probabilities(), (-math.inf, 0, 0), prior.space
    for i in rows.tolist():
        m, inner = space.sizes[i], int(space.strides[i])
        lanes = p.reshape(-1, m, inner)
        top, seen = lanes[:, s], lanes[:, s] > 0
        logs = log_ratio(np.where(seen, top, 1.0), np.where(seen, lanes[:, t], 1.0))
        place = int(np.where(seen, logs, -math.inf).argmax())
        if logs.flat[place] > best[0] and seen.flat[place]:
            index = (place // inner * m + s) * inner + place % inner
            best = float(logs.flat[place]), i, index
    return space.rows(best[2]), best[1]


@steepest.register
def _product_steepest(prior: Product, rows: Ints, s: int, t: int) -> tuple[Ints, int]:
    """Independent records: use the steepest distribution, and likeliest values of the others."""
    used, first = np.unique(prior.assignment[rows], return_index=True)
    tops, bottoms = np.array([(prior.distinct[k][s], prior.distinct[k][t]) for k in used]).T
    seen = tops > 0
    logs = log_ratio(np.where(seen, tops, 1.0), np.where(seen, bottoms, 1.0))
    i = int(rows[first[np.where(seen, logs, -math.inf).argmax()]])
    x = np.array([int(law.argmax()) for law in prior.distinct])[prior.assignment]
    x[i] = s
    return x, i


@steepest.register
def _exchangeable_steepest(prior: Exchangeable, rows: Ints, s: int, t: int) -> tuple[Ints, int]:
    """Exchangeable records: use the counts of the other records on the steepest line."""
    lines, n, axes = prior.conditional_lines(rows), prior.space.n, prior.type_weights.ndim
    seen = lines[:, s] > 0
    top, bottom = (np.where(seen, lines[:, v], 1.0) for v in (s, t))
    best = int(np.where(seen, log_ratio(top, bottom), -math.inf).argmax())
    counts = np.indices((n,) * axes)
    others = counts[:, counts.sum(axis=0) < n][:, best]
    x = np.repeat(np.arange(axes + 1), [n - 1 - others.sum(), *others])
    i = int(rows[0])
    return np.insert(x, i, s), i


@steepest.register
def _markov_steepest(prior: Markov, rows: Ints, s: int, t: int) -> tuple[Ints, int]:
    """Chain: by the values on both sides of a record that make it steepest."""
    first, T, n = prior.initial, prior.transition, prior.space.n
    if n == 1 or first.min() == 0 or T.min() == 0:
        return vector_steepest(prior, rows, s, t)
    # Gain of a record's value from being first, from the previous and from the next record.
    start = log_ratio(first[s : s + 1], first[t : t + 1])
    before, after = log_ratio(T[:, s], T[:, t]), log_ratio(T[s], T[t])
    gains = np.full(len(rows), before.max() + after.max())
    gains[rows == 0] = start + after.max()
    gains[rows == n - 1] = before.max()
    i = int(rows[gains.argmax()])
    x = np.full(n, int(before.argmax()))
    x[i], x[i + 1 :] = s, int(after.argmax())
    return x, i
