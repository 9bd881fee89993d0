"""Noise on the cells of a rectangular grid: planar Laplace and planar geometric mechanisms."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.validation import Floats
from fastpriv.channels import Channel
from fastpriv.errors import InvalidInput, TooLarge

__all__ = ["planar_geometric", "planar_laplace"]

#: Most cells: the matrix of the channel has 32 MB.
_CELLS = 1 << 11
#: Noise beyond this many units of 1/epsilon is left out: e^-45 is far below rounding.
_REACH = 45.0
#: Most offsets of the noise in a quarter of the plane (240 MB).
_OFFSETS = 30_000_000
#: The mechanism is built at a level lower by this, which covers the rounding of its sums.
_MARGIN = 1e-13
#: Largest epsilon times the diagonal of the grid; exp(-700) is a normal double.
_EXPONENT = 690.0
#: Nodes of an integral over a cell, in each direction, and over the angle in the central cell.
_NODES = 12


def planar_geometric(shape: Sequence[int], epsilon: float) -> Channel:
    """Move a cell by noise of probability proportional to exp(-epsilon distance).

    The noise is on the whole plane of cells. An output outside of the grid is replaced by the
    nearest cell of the grid. Probabilities for two inputs differ at most by a factor of
    exp(epsilon d), with the Euclidean distance d in cells (Chatzikokolakis, ElSalamouny and
    Palamidessi 2017).

    Parameters
    ----------
    shape : (int, int)
        Rows and columns of the grid, at most 2,048 cells.
    epsilon : float
        Level per cell of distance, above 0 and at most 690 / diagonal of the grid.

    Returns
    -------
    Channel
        Inputs and outputs are the cells, numbered row by row. Its level is at most epsilon:
        ``dp_level(channel, neighbours=distances)``.

    Notes
    -----
    Costs O(rows^2 columns^2 + (rows + columns + 45 / epsilon)^2).

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = fp.mechanisms.planar_geometric((3, 3), 1.0)
    >>> channel.matrix()[4].round(4).reshape(3, 3)
    array([[0.1221, 0.0894, 0.1221],
           [0.0894, 0.1537, 0.0894],
           [0.1221, 0.0894, 0.1221]])
    """
    rows, columns, level, size = _checked(shape, epsilon)
    across = np.arange(size, dtype=np.float64)
    return _clamped(np.exp(-level * np.hypot(across[:, None], across)), rows, columns)


def planar_laplace(shape: Sequence[int], epsilon: float) -> Channel:
    """Move a cell by planar Laplace noise, whose density is proportional to exp(-epsilon distance).

    The noise is added to the centre of the cell, and the output is the nearest cell of the grid
    (Andres, Bordenabe, Chatzikokolakis and Palamidessi 2013). Probabilities for two inputs differ
    at most by a factor of exp(epsilon d), with the Euclidean distance d in cells.

    Parameters
    ----------
    shape : (int, int)
        Rows and columns of the grid, at most 2,048 cells.
    epsilon : float
        Level per cell of distance, above 0 and at most 690 / diagonal of the grid.

    Returns
    -------
    Channel
        Inputs and outputs are the cells, numbered row by row. Its level is at most epsilon:
        ``dp_level(channel, neighbours=distances)``.

    Notes
    -----
    Probabilities are integrals of the density over cells, by Gauss-Legendre quadrature. Costs
    O(rows^2 columns^2 + 144 (rows + columns + 45 / epsilon)^2).

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = fp.mechanisms.planar_laplace((3, 3), 1.0)
    >>> channel.matrix()[4].round(4).reshape(3, 3)
    array([[0.1294, 0.0931, 0.1294],
           [0.0931, 0.1097, 0.0931],
           [0.1294, 0.0931, 0.1294]])
    """
    rows, columns, level, size = _checked(shape, epsilon)
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    across = np.arange(size, dtype=np.float64)
    noise = np.zeros((size, size))
    for u, a in zip(nodes / 2.0, weights, strict=True):
        for v, b in zip(nodes / 2.0, weights, strict=True):
            noise += a * b / 4.0 * np.exp(-level * np.hypot((across + u)[:, None], across + v))
    # The density has a kink in the middle of the central cell, which is eight triangles from there:
    # the integral over the radius has a closed form.
    angle = math.pi / 8.0 * (1.0 + nodes)
    end = level * 0.5 / np.cos(angle)
    radial = -(np.expm1(-end) + end * np.exp(-end)) / level**2
    noise[0, 0] = math.pi * float(weights @ radial)
    return _clamped(noise, rows, columns)


def _checked(shape: Sequence[int], epsilon: float) -> tuple[int, int, float, int]:
    """Return rows, columns, the level to use and the number of offsets in each direction."""
    sizes = check.sizes(shape, "shape")
    if len(sizes) != 2 or math.prod(sizes) > _CELLS:
        raise InvalidInput(
            f"shape must be the rows and columns of at most {_CELLS:,} cells; got {sizes}."
        )
    rows, columns = sizes
    most = _EXPONENT / math.hypot(rows, columns)  # no probability underflows
    level = check.real(epsilon, "epsilon", least=1e-9, most=most) - _MARGIN
    size = max(rows, columns) + math.ceil(_REACH / level)
    if size * size > _OFFSETS:
        raise TooLarge.entries("the noise on the plane", size * size, "use larger cells")
    return rows, columns, level, size


def _clamped(noise: Floats, rows: int, columns: int) -> Channel:
    """Return the channel of symmetric noise[i, j] whose outputs are clamped to the grid."""
    lines = _sides(noise, rows)  # [a, c, j]: from row a to row c, moved by j columns
    matrix = np.stack([_sides(np.ascontiguousarray(part.T), columns) for part in lines])
    # [a, b, d, c]: from (a, b) to (c, d)
    matrix = matrix.transpose(0, 1, 3, 2).reshape(rows * columns, rows * columns)
    return Channel(matrix / matrix.sum(axis=1, keepdims=True))


def _sides(noise: Floats, count: int) -> Floats:
    """Return sums of noise[|c - a|] over outputs c of the line that are clamped to 0 .. count - 1.

    The result is [a, c, ...]. Offsets beyond the noise are left out.
    """
    tails = np.cumsum(noise[::-1], axis=0)[::-1]  # offsets of at least i
    a = np.arange(count)
    out = noise[np.abs(a[:, None] - a)]
    out[a, 0] = tails[a]
    out[a, count - 1] = tails[count - 1 - a]
    if count == 1:
        out[0, 0] = 2.0 * tails[0] - noise[0]
    return np.asarray(out)
