"""Attributes of a database, and which values of them an output leaves possible."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastpriv._core import validation as check
from fastpriv._core.validation import Ints
from fastpriv.channels import (
    AbstractChannel,
    HammingChannel,
    ProductChannel,
    QueryChannel,
    TiltedChannel,
)
from fastpriv.channels.queries.ways import slice_ways
from fastpriv.errors import InvalidInput, short
from fastpriv.priors import Distribution, Product
from fastpriv.priors.arguments import as_prior
from fastpriv.priors.columns import log_marginal
from fastpriv.spaces import Space

#: Neutral elements of the least and the largest attribute value.
_NO_LOW, _NO_HIGH = np.iinfo(np.int64).max, -1
#: How many entries of a boolean matrix are read at a time.
_BLOCK = 1 << 20
#: Most values of a row that an attribute is asked for.
_VALUES = 1 << 20

#: A function of the value of one row.
RowFunction = Callable[[int], Hashable] | Mapping[int, Hashable] | Sequence[Hashable]


def value_range(
    space: Space, attribute: ArrayLike, prior: Distribution | ArrayLike | None
) -> tuple[Ints, Ints]:
    """Return the least and largest attribute value of every database, neutral if impossible."""
    given = check.array(attribute, "attribute")
    size = space.size
    if given.ndim not in (1, 2) or len(given) != size:
        raise InvalidInput(
            f"attribute must hold a label or a row p(u|x) for each of the {short(size)} databases, "
            f"got shape {given.shape}"
        )
    if given.ndim == 1:
        if given.dtype.kind not in "iub":
            raise InvalidInput(f"labels must be integers, got {given.dtype}")
        low = np.unique(given, return_inverse=True)[1].reshape(-1).astype(np.int64)
        high = low.copy()
    else:
        possible = check.stochastic(given, "attribute") > 0.0
        low = np.argmax(possible, axis=1)
        high = possible.shape[1] - 1 - np.argmax(possible[:, ::-1], axis=1)
    if prior is not None:
        never = ~possible_databases(as_prior(prior, space))
        low[never], high[never] = _NO_LOW, _NO_HIGH
    return low, high


def possible_databases(prior: Distribution) -> NDArray[np.bool_]:
    """Return which databases can occur, also those that are too rare for a double."""
    logs = prior.logs_if_rare()
    return np.asarray(prior.probabilities() > 0.0 if logs is None else logs > -math.inf)


def every_database(prior: Distribution | None) -> bool:
    """Whether all databases can occur, as they do if no prior is given."""
    return prior is None or prior.epsilon_x() < math.inf


def settled(channel: AbstractChannel, low: Ints, high: Ints) -> Ints:
    """Return the attribute values that some output settles; none for a constant attribute."""
    if low.min() == high.max():
        return np.empty(0, dtype=np.int64)
    least, most = attribute_range(channel, low, high)
    return np.unique(least[least == most])


@singledispatch
def attribute_range(channel: AbstractChannel, low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Return the least ``low`` and largest ``high`` over the databases that can cause each output.

    Through the matrix. An output that nothing causes keeps the neutral elements.
    """
    return _support_range(np.array(channel.nearest_matrix()) > 0.0, low, high)


@attribute_range.register
def _product_attribute_range(channel: ProductChannel, low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """One row after the other."""
    for i, m in enumerate(channel.space.sizes):
        # Rows before i are outputs by now. Row i comes first, the rest behind it.
        seen = channel.kernels[i].matrix > 0.0
        before = math.prod(channel.output_space.sizes[:i])
        low, high = (np.moveaxis(v.reshape(before, m, -1), 1, 0) for v in (low, high))
        least, most = _support_range(seen, low, high)
        low, high = (np.moveaxis(v, 0, 1).reshape(-1) for v in (least, most))
    return low, high


@attribute_range.register(HammingChannel)
@attribute_range.register(TiltedChannel)
def _hamming_or_tilted_attribute_range(
    channel: AbstractChannel, low: Ints, high: Ints
) -> tuple[Ints, Ints]:
    """Every database can cause every output that occurs, also where its chance rounds to 0."""
    return low.min(keepdims=True), high.max(keepdims=True)


@attribute_range.register
def _query_attribute_range(channel: QueryChannel, low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Per answer, then per output."""
    answers = channel.kernel.shape[0]
    least = np.full(answers, _NO_LOW, dtype=np.int64)
    most = np.full(answers, _NO_HIGH, dtype=np.int64)
    values = channel.query.listed()
    np.minimum.at(least, values, low)
    np.maximum.at(most, values, high)
    return _support_range(channel.kernel.matrix > 0.0, least, most)


def _support_range(seen: NDArray[np.bool_], low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Return the least ``low[x]`` and largest ``high[x]`` over the x with ``seen[x, y]``, per y.

    ``low`` and ``high`` may have further axes after the first. Cost O(N K) for each of them.
    """
    tail = low.shape[1:]
    least = np.full((seen.shape[1], *tail), _NO_LOW, dtype=np.int64)
    most = np.full((seen.shape[1], *tail), _NO_HIGH, dtype=np.int64)
    rows = max(1, _BLOCK // (seen.shape[1] * math.prod(tail)))
    for start in range(0, len(seen), rows):
        part = slice(start, start + rows)
        mask = seen[part].reshape(*seen[part].shape, *(1,) * len(tail))
        np.minimum(least, np.where(mask, low[part, None], _NO_LOW).min(axis=0), out=least)
        np.maximum(most, np.where(mask, high[part, None], _NO_HIGH).max(axis=0), out=most)
    return least, most


def row_codes(attribute: Any, row: int, m: int) -> Ints:
    """Return a number for each value of a row, equal where the attribute is equal."""
    check.fits(m, "the attribute of every value of the row", "merge values", _VALUES)
    if callable(attribute):
        labels = [_called(attribute, value) for value in range(m)]
    elif isinstance(attribute, Mapping):
        missing = [value for value in range(m) if value not in attribute]
        if missing or len(attribute) != m:
            raise InvalidInput(
                f"the mapping must have a label for each of the values 0 .. {m - 1} of row {row} "
                f"and no others, got {len(attribute)} labels"
            )
        labels = [attribute[value] for value in range(m)]
    else:
        try:
            labels = np.asarray(attribute).tolist() if np.ndim(attribute) == 1 else []
        except (TypeError, ValueError):
            labels = []
        if len(labels) != m:
            raise InvalidInput(
                f"with row={row} the attribute must be a function of the value of this row, a "
                f"mapping from its values or a list of {m} labels"
            )
    numbers: dict[Hashable, int] = {}
    try:
        return np.array([numbers.setdefault(label, len(numbers)) for label in labels])
    except TypeError:
        raise InvalidInput(
            "labels must be numbers, strings or other values that can be compared"
        ) from None


def _called(attribute: Callable[[int], Hashable], value: int) -> Hashable:
    try:
        return attribute(value)
    except Exception as error:
        raise InvalidInput(
            f"the attribute must be a function of one value of the row; at the value {value} it "
            f"raised {type(error).__name__}: {error!s:.80}"
        ) from None


def row_settled(channel: AbstractChannel, codes: Ints, i: int, prior: Distribution | None) -> bool:
    """Whether some output settles a function of row i, given as a number for each value."""
    seen = row_causes(channel, prior, i)
    if seen is None:
        space = channel.space
        check.fits(
            space.size,
            "the list of databases, needed where a prior rules some of them out,",
            "use independent rows or a prior that allows every database",
        )
        values = np.arange(space.size) // int(space.strides[i]) % space.sizes[i]
        return bool(settled(channel, *value_range(space, codes[values], prior)).size)
    if len(np.unique(codes[seen.any(axis=1)])) == 1:
        return False
    least, most = _support_range(seen, codes, codes)
    return bool((least == most).any())


@singledispatch
def row_causes(
    channel: AbstractChannel, prior: Distribution | None, i: int
) -> NDArray[np.bool_] | None:
    """Return which values of row i can be behind each output, None where databases are listed.

    Outputs that leave the same values possible may be taken together.
    """
    return None


@row_causes.register
def _product_row_causes(
    channel: ProductChannel, prior: Distribution | None, i: int
) -> NDArray[np.bool_] | None:
    """The row by itself, if the other rows cannot rule out any of its values."""
    if not (isinstance(prior, Product) or every_database(prior)):
        return None
    return np.asarray((channel.kernels[i].matrix > 0.0) & _occurs(channel, prior, i)[:, None])


@row_causes.register(HammingChannel)
@row_causes.register(TiltedChannel)
def _hamming_or_tilted_row_causes(
    channel: AbstractChannel, prior: Distribution | None, i: int
) -> NDArray[np.bool_]:
    """Every database can cause every output that occurs, also where its chance rounds to 0."""
    return _occurs(channel, prior, i)[:, None]


@row_causes.register
def _query_row_causes(
    channel: QueryChannel, prior: Distribution | None, i: int
) -> NDArray[np.bool_] | None:
    """From the answers that each value of the row can have."""
    if not every_database(prior):
        return None
    kernel = channel.kernel.matrix > 0.0
    ways = slice_ways(channel.query, i)
    return np.array([kernel[answers].any(axis=0) for answers, _ in ways])


def _occurs(channel: AbstractChannel, prior: Distribution | None, i: int) -> NDArray[np.bool_]:
    """Return which values of row i can occur."""
    if prior is None:
        return np.ones(channel.space.sizes[i], dtype=bool)
    return np.asarray(log_marginal(prior, i)[0] > -math.inf)
