"""Convert and check arguments: channels, priors, records and outputs."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastpriv._core import validation as check
from fastpriv._core.threads import split
from fastpriv._core.validation import Floats, Ints
from fastpriv.channels import AbstractChannel, Channel
from fastpriv.channels.tilted import TiltedProduct
from fastpriv.errors import InvalidInput, described, short
from fastpriv.priors import Dense, Distribution
from fastpriv.priors.base import as_prior
from fastpriv.priors.sets import PriorSet
from fastpriv.spaces import Space

#: Entries of a block: half a megabyte, which stays in the cache.
_BLOCK = 1 << 16
#: Fewest entries for which a further thread is started.
_GRAIN = 1 << 15
#: Numbers that were checked before are not checked again.
_ANY = float("inf")
#: From this number of entries on, one matrix is split over threads.
LARGE = 1 << 17
#: Types of a stack.
_ARRAYS = (np.ndarray, list, tuple)
#: A kernel of ``fastpriv.kernels.stacks``: matrices, priors if it takes any, tolerance, results.
Kernel = Callable[..., int]


def as_channel(channel: AbstractChannel | ArrayLike, space: Space | None = None) -> AbstractChannel:
    """Return the channel, made from a plain matrix if it is one."""
    if isinstance(channel, AbstractChannel):
        return channel
    if isinstance(channel, Distribution):
        raise InvalidInput(
            f"channel must be a channel or a matrix; got the prior {channel!r}. Give the channel "
            "first."
        )
    if hasattr(channel, "channel"):
        kind = type(channel).__name__
        raise InvalidInput(
            f"channel must be a channel or a matrix; got a {kind}. Give its channel."
        )
    if not _array_like(channel):
        raise InvalidInput(
            "channel must be a finite channel or a matrix of probabilities; got "
            f"{described(channel)}. Noise with infinitely many outputs has these measures as "
            "its methods."
        )
    return Channel(channel, space)


def table(channel: AbstractChannel) -> Floats:
    """Return W[x, y] to the nearest doubles, in C order for kernels. It must not be changed."""
    return (
        channel.table()
        if isinstance(channel, Channel)
        else np.array(channel.nearest_matrix(), order="C")
    )


def measure_as_product(measure: Any) -> None:
    """Let a dispatched measure treat a tilted product as its product channel."""

    def tilted_product(channel: TiltedProduct, *further: Any) -> Any:
        return measure(channel.as_product, *further)

    measure.register(TiltedProduct, tilted_product)


def _array_like(given: object) -> bool:
    """Whether it may hold numbers: a sequence, an array, a frame; or names a file that does."""
    return (
        isinstance(given, Sequence | os.PathLike)
        or hasattr(given, "__array__")
        or hasattr(given, "__len__")
    )


def as_pair(
    channel: AbstractChannel | ArrayLike, prior: Distribution | ArrayLike
) -> tuple[AbstractChannel, Distribution]:
    """Return a channel and a prior on its space; a 2-D array gets the prior's space."""
    if isinstance(prior, PriorSet):
        raise InvalidInput(
            "prior must be one distribution here; got a PriorSet. pml_level, row_pml, "
            "conditional_pml and individual_capacity take sets."
        )
    _same_labels(channel, prior)
    mechanism = as_channel(channel, prior.space if isinstance(prior, Distribution) else None)
    return mechanism, as_prior(prior, mechanism.space)


def plain_pair(channel: Any, prior: Any) -> tuple[Floats, Floats] | None:
    """Return W and p as stacks of one: a ``Channel`` and a ``Dense`` prior on its space.

    They were checked when they were made, so that kernels take them as they are. None for other
    arguments, for a prior that underflows, and for a matrix that is split over threads.
    """
    if type(channel) is not Channel or type(prior) is not Dense:
        return None
    if prior.space.sizes != channel.space.sizes or prior.logs_if_rare() is not None:
        return None
    cube = channel.cube
    return (cube, prior.one) if cube.size < LARGE else None


def _same_labels(channel: object, prior: object) -> None:
    """Refuse a labelled matrix and a labelled vector (pandas) whose labels are in other orders."""
    rows, values = getattr(channel, "index", None), getattr(prior, "index", None)
    equals = getattr(rows, "equals", None)
    if equals is None or not hasattr(values, "equals") or equals(values):
        return
    raise InvalidInput(
        "the labels of the prior are not those of the channel's rows, in the same order; align "
        "them: prior.reindex(channel.index), or give .to_numpy() of both."
    )


def row_number(mechanism: AbstractChannel | Distribution, i: Any) -> int:
    """Return the number of a record, checked."""
    number = check.integer(i, "row", 0)
    if number >= mechanism.space.n:
        raise InvalidInput(f"row must be below n = {mechanism.space.n}; got {short(number)}.")
    return number


def group_numbers(mechanism: AbstractChannel | Distribution, rows: Any) -> tuple[int, ...]:
    """Return the different numbers of one record or of a group, checked and in order."""
    try:
        is_one = np.ndim(rows) == 0
    except ValueError:  # lists of different depths
        is_one = False
    if is_one:
        return (row_number(mechanism, rows),)
    given = [row_number(mechanism, i) for i in check.items(rows, "rows", "numbers of records")]
    if not given or len(set(given)) < len(given):
        raise InvalidInput(
            f"rows must be one record or different records of a group; got {described(rows)}. "
            "Give each record once."
        )
    return tuple(sorted(given))


def output_rows(mechanism: AbstractChannel, y: ArrayLike) -> Ints:
    """Return one output as an element of the output space, from its index or its values."""
    space: Space = mechanism.output_space
    if check.array(y, "y").ndim == 0:
        number = check.integer(y, "y", 0)
        count = mechanism.output_count
        if number >= count:
            raise InvalidInput(
                f"y must be below the number of outputs {short(count)}; got {short(number)}."
            )
        return mechanism.output_row(number)
    rows = check.rows(y, space.sizes)
    if rows.ndim != 1:
        raise InvalidInput(f"y must be one output; got shape {rows.shape}. Of samples, take y[0].")
    return rows


# Channels given as scipy.sparse matrices.


def as_mechanism(channel: Any, prior: Any = None) -> AbstractChannel:
    """Return the channel. A dense or sparse matrix is made into one."""
    if hasattr(channel, "tocsr"):
        matrix = sparse_matrix(channel)
        entries = matrix.shape[0] * matrix.shape[1]
        check.fits(entries, "the dense matrix", "only maximal_correlation", check.MAX_MATRIX)
        channel = matrix.toarray()
    return as_channel(channel, prior.space if isinstance(prior, Distribution) else None)


def sparse_matrix(channel: Any) -> Any:
    """Check a scipy.sparse matrix, and return it in compressed rows that sum to one."""
    from scipy.sparse import csr_matrix

    if channel.dtype.kind not in "iufb" or len(channel.shape) != 2:
        raise InvalidInput(f"a sparse channel must be a real matrix; got {described(channel)}.")
    matrix = csr_matrix(channel, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    if min(matrix.shape) == 0 or matrix.nnz == 0:
        raise InvalidInput("channel must not be empty. Give a row for each input.")
    check.floats(matrix.data, "the sparse channel", 1)
    matrix.eliminate_zeros()
    totals = np.asarray(matrix.sum(axis=1)).reshape(-1)
    wrong = np.flatnonzero(np.abs(totals - 1.0) > check.SUM_TOLERANCE)
    if len(wrong):
        raise InvalidInput(
            f"every row of the sparse channel must sum to 1 within {check.SUM_TOLERANCE:g}; row "
            f"{wrong[0]} sums to {described(float(totals[wrong[0]]))}"
        )
    matrix.data /= np.repeat(totals, np.diff(matrix.indptr))
    return matrix


# Stacks: many matrices of one shape, measured by one call.
#
# Each matrix W[b] of a stack (B, N, K) is a channel of one record with N values. A stack is
# processed in blocks that fit the cache, split over threads. No array of the size of the stack is
# allocated.


def is_stack(channel: object, out: object = None) -> bool:
    """Whether a channel is a stack of matrices: an array of three axes, or a list of matrices."""
    # A channel object, the usual argument, is revealed by its type alone.
    stack = isinstance(channel, _ARRAYS) and _axes(channel) == 3
    if out is not None and not stack:
        raise InvalidInput(
            "out is for a stack of matrices, an array of shape (B, N, K). "
            "Leave it out for one matrix."
        )
    return stack


def _axes(values: Any) -> int:
    """Count the axes of an array, or of nested lists by the first of each; 4 stands for more."""
    for axes in range(4):
        if isinstance(values, np.ndarray):
            return axes + values.ndim
        if not isinstance(values, _ARRAYS) or not values:
            return axes
        values = values[0]
    return 4


def stacked(
    run: Kernel | None,
    alone: Callable[..., Any],
    channel: Any,
    prior: Distribution | ArrayLike | None = None,
    out: Floats | None = None,
    shape: tuple[int, ...] = (),
) -> Floats:
    """Measure every channel of a stack.

    Parameters
    ----------
    run : kernel or None
        Called as ``run(matrices, priors, off, out)``, without ``priors`` if there is no prior. It
        returns the index of the first invalid channel, and leaves NaN if it has no answer.
    alone : callable
        Called as ``alone(matrix, prior)`` if the kernel has no answer, or if there is no kernel.
    channel, prior
        As the user gave them.
    out : array, optional
        Array that receives the results.
    shape : tuple
        Shape of the results of one channel.
    """
    matrices = as_stack(channel)
    count, size = len(matrices), matrices[0].size
    priors = None if prior is None else _priors(prior, matrices.shape)
    results = _results(out, (count, *shape))
    step = max(1, _BLOCK // size)

    def task(start: int, stop: int) -> None:
        for first in range(start, stop, step):
            _block(first, min(first + step, stop))

    def _block(first: int, last: int) -> None:
        part = matrices[first:last]
        if not (part.dtype == np.float64 and part.flags.carray):
            part = np.array(part, dtype=np.float64, order="C")
        laws = () if priors is None else (_own(priors, first, last),)
        done = results[first:last]
        if run is None:
            part, laws = _repaired(part, laws, first)
            done[...] = np.nan
        elif run(part, *laws, check.ROUNDED, done) >= 0:
            part, laws = _repaired(part, laws, first)
            run(part, *laws, _ANY, done)
        for b in np.flatnonzero(np.isnan(done.reshape(len(done), -1)[:, 0])).tolist():
            done[b] = alone(part[b], *(law[min(b, len(law) - 1)] for law in laws))

    split(task, count, max(1, _GRAIN // size))
    return results


def plainly(run: Kernel, *stacks: Floats) -> float:
    """Measure a stack of one checked channel; NaN if the kernel has no answer."""
    out = np.empty(1)
    run(*stacks, _ANY, out)
    return out.item()


def measured(run: Kernel, matrix: Floats, *further: Any) -> float:
    """Measure one checked matrix as a stack of one.

    NaN if the kernel has no answer, or if the matrix is large enough for several threads.
    """
    if matrix.size >= LARGE:
        return math.nan
    out = np.empty(1)
    run(matrix[None], *further, _ANY, out)
    return out.item()


def as_stack(channel: Any) -> NDArray[Any]:
    """Return a stack as an array of three axes and any type of real numbers."""
    given = check.array(channel, "channel")
    if given.ndim != 3 or given.size == 0:
        raise InvalidInput(
            "a stack of channels must have shape (B, N, K) with no empty side, "
            f"got shape {given.shape}."
        )
    return given


def _priors(prior: Distribution | ArrayLike, shape: tuple[int, ...]) -> Floats:
    """Return one checked prior (1, N), or priors (B, N) that are still to be checked."""
    if isinstance(prior, PriorSet):
        raise InvalidInput(
            "prior must be one distribution here; got a PriorSet. Only pml_level takes sets."
        )
    if isinstance(prior, Distribution):
        if prior.space.n > 1 or prior.logs_if_rare() is not None:
            raise InvalidInput(
                f"the channels of a stack are on one row, but the prior on {prior.space!r}; give "
                "prior.pmf() to take databases as the values of one row."
            )
        prior = prior.pmf()
    given = check.array(prior, "prior")
    if given.shape not in ((shape[1],), shape[:2]):
        raise InvalidInput(
            f"the priors of a stack of {shape[0]} channels with {shape[1]} inputs must have shape "
            f"({shape[1]},) or {shape[:2]}; got {given.shape}."
        )
    if given.ndim == 1 or len(given) == 1:
        return check.law(given.reshape(-1), "prior")[None]
    plain = given.dtype == np.float64 and given.flags.carray
    return given if plain else np.array(given, dtype=np.float64, order="C")


def _own(priors: Floats, first: int, last: int) -> Floats:
    """Return the priors of a block; one record is a checked prior, common to all channels."""
    if len(priors) == 1:
        return priors
    if last - first == 1:
        return check.law(priors[first], f"prior {first} of the stack")[None]
    return priors[first:last]


def _results(out: Floats | None, shape: tuple[int, ...]) -> Floats:
    """Return an array for the results: the given one, checked, or a new one."""
    if out is None:
        return np.empty(shape)
    plain = isinstance(out, np.ndarray) and out.dtype == np.float64 and out.flags.carray
    if not plain or out.shape != shape:
        raise InvalidInput(
            f"out must be a writeable array of doubles of shape {shape}, in C order."
        )
    return out


def _repaired(part: Floats, laws: tuple[Floats, ...], first: int) -> tuple[Floats, tuple[Any, ...]]:
    """Divide the rows and priors of a block by their sums, as for single channels.

    Raises
    ------
    InvalidInput
        If one is not a distribution; the message names it.
    """
    part = part.copy()
    for b in np.flatnonzero(_off(part).any(axis=1)).tolist():
        part[b] = check.stochastic(part[b], f"channel {first + b} of the stack")
    if laws and len(laws[0]) > 1:
        priors = laws[0].copy()
        for b in np.flatnonzero(_off(priors)).tolist():
            priors[b] = check.law(priors[b], f"prior {first + b} of the stack")
        laws = (priors,)
    return part, laws


def _off(laws: Floats) -> NDArray[np.bool_]:
    """Which distributions along the last axis have negative numbers or do not sum to one."""
    with np.errstate(over="ignore", invalid="ignore"):
        close = np.abs(laws.sum(axis=-1) - 1.0) <= check.ROUNDED
    return np.asarray(~close | ~(laws.min(axis=-1) >= 0.0))
