"""The protocol of row-wise action: which channels act row by row, and which rows are alike."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from fastpriv._core.validation import Ints
from fastpriv._structure.rows import RowKernels
from fastpriv.channels.base import AbstractChannel
from fastpriv.channels.product import ProductChannel
from fastpriv.channels.query import QueryChannel
from fastpriv.channels.tilted import TiltedProduct
from fastpriv.channels.types import TypeChannel


@singledispatch
def row_kernels(channel: AbstractChannel) -> RowKernels | None:
    """Return the kernels of a channel that acts on every row by itself; None for others."""
    return None


@row_kernels.register
def _product_row_kernels(channel: ProductChannel) -> RowKernels | None:
    return channel.kernels


@row_kernels.register
def _tilted_product_row_kernels(channel: TiltedProduct) -> RowKernels | None:
    return channel.as_product.kernels


@singledispatch
def row_kinds(channel: AbstractChannel) -> Ints:
    """Number the rows so that rows with equal numbers play the same part."""
    return np.arange(channel.space.n)


@row_kinds.register
def _product_row_kinds(channel: ProductChannel) -> Ints:
    return channel.kernels.assignment


@row_kinds.register
def _query_row_kinds(channel: QueryChannel) -> Ints:
    return channel.query.kinds()


@row_kinds.register
def _type_row_kinds(channel: TypeChannel) -> Ints:
    return np.zeros(channel.space.n, dtype=np.int64)
