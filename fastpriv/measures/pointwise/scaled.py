"""Matrices whose columns are divided by a number of their own, for levels of rare outputs."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from fastpriv._core.validation import Floats
from fastpriv.channels import AbstractChannel, ProductChannel, TiltedChannel


@singledispatch
def scaled_matrix(channel: AbstractChannel) -> Floats:
    """Return the matrix with every column divided by some number.

    Levels do not depend on these numbers. Columns of structured channels that would underflow
    are kept.
    """
    return np.asarray(channel.nearest_matrix())


@scaled_matrix.register
def _product_scaled_matrix(channel: ProductChannel) -> Floats:
    """Every column divided by its largest entry."""
    channel.check_matrix_fits()
    return np.array(channel.kron([k.near for k in channel.kernels.distinct]), order="C")


@scaled_matrix.register
def _tilted_scaled_matrix(channel: TiltedChannel) -> Floats:
    """R[x, y] / (R q)(x) up to a factor, 0 where y never comes out."""
    occurs, tilt = channel.tilt()
    near = scaled_matrix(ProductChannel.of(channel.kernels))
    return np.asarray(near * np.exp(tilt - tilt.max())[:, None] * occurs)
