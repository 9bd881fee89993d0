"""Hadamard response: a message is a column of a block of Hadamard matrices."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpriv._core import validation as check
from fastpriv._core.validation import Floats, Ints
from fastpriv._sampling.local import InsideThresholds, below
from fastpriv._sampling.source import Source
from fastpriv._sampling.thresholds import Codes
from fastpriv.channels.local.support import SupportChannel, cannot_undo
from fastpriv.errors import InvalidInput, short
from fastpriv.spaces import Space

__all__ = ["HadamardChannel"]


class HadamardChannel(SupportChannel):
    """Hadamard response: B blocks of b columns each, both powers of two.

    Value x belongs to block x mod B and to row j = 1 + x // B of a Hadamard matrix of order b. The
    message is one of the B b columns. It supports x if it lies in the block of x and the entry of
    the matrix, (-1)^(bits that j and the column share), is 1. Every value has b/2 such columns,
    each e^epsilon times as likely as any other. The estimate of a count is (e^epsilon + 2B -
    1)/(e^epsilon - 1) times the sum of the signs of its row over the messages of its block. It is
    unbiased, and a Walsh-Hadamard transform computes it.

    Parameters
    ----------
    k : int
        Number of values, at least 2.
    epsilon : float
        Differential privacy level, at least 0.
    blocks : int, optional
        Number of blocks B, a power of two of at most k. Default: the number of smallest variance.

    Notes
    -----
    Acharya, Sun and Zhang 2019; B = 1 is their mechanism for small epsilon.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = fp.HadamardChannel(100, 3.0)
    >>> channel
    HadamardChannel(k=100, epsilon=3, blocks=8)
    >>> channel.sample([[3], [99]], rng=1).shape
    (2,)
    >>> round(channel.variance(), 4), fp.dp_level(channel)
    (0.4155, 3.0)
    """

    _parameter = "blocks"

    def __init__(self, k: int, epsilon: float, blocks: int | None = None) -> None:
        self._set(k, epsilon)
        self.blocks = self._best_blocks() if blocks is None else _power(blocks, self.k)
        self._rows = -(-self.k // self.blocks)
        self.columns = 1 << self._rows.bit_length()  # the smallest power of two above the rows
        self.inclusion = Fraction(1, 2 * self.blocks)
        kinds = {Fraction(0)} if self.blocks > 1 else set()
        if self.k > self.blocks:
            kinds.add(self.inclusion / 2)
        self.joint = tuple(sorted(kinds))
        self._thresholds = InsideThresholds(1, 2 * self.blocks - 1, self.epsilon)
        self.growth = self._thresholds.growth
        self.listed = self.blocks * self.columns
        self.output_space = Space.of((self.listed,))

    def _best_blocks(self) -> int:
        """Return the number of blocks of the smallest variance at a share of 1/k."""
        powers = [1 << j for j in range(self.k.bit_length()) if 1 << j <= self.k]
        odds = Fraction(min(self.odds, Decimal(10**9)))
        if odds == 1:
            return 1
        return min(powers, key=lambda b: (_variance(odds, b, self.k, Fraction(1, self.k)), b))

    def definition(self) -> dict[str, Any]:
        return {"k": self.k, "epsilon": self.epsilon, "blocks": self.blocks}

    def _place(self, values: Ints) -> tuple[Ints, Ints]:
        """Return the block of every value and its row of the matrix."""
        return values % self.blocks, 1 + values // self.blocks

    def support_table(self) -> tuple[Floats, NDArray[np.bool_]]:
        count = self.blocks * self.columns
        return np.full(count, 1.0 / count), np.stack(
            [self.members(np.array([y])) for y in range(count)], axis=1
        )

    def members(self, report: Ints) -> NDArray[np.bool_]:
        block, row = self._place(np.arange(self.k))
        own, column = divmod(int(report[0]), self.columns)
        return np.asarray((block == own) & (_parity(row & column) == 0))

    @property
    def empty_mass(self) -> Decimal:
        """Probability under b of no support: needs blocks of one or two rows."""
        full = self.k - self.blocks * (self._rows - 1)  # blocks that have the last row as well
        missed = {1: 2, 2: 4}  # one column in two, or in four
        lost = Fraction(0)
        for rows, blocks in ((self._rows, full), (self._rows - 1, self.blocks - full)):
            if rows in missed:
                lost += Fraction(blocks, missed[rows])
        return Decimal(lost.numerator) / lost.denominator / self.blocks

    def masses(self, weights: Floats) -> Floats:
        """Return half the weight of the block, plus half the signed sum over its rows."""
        table = self._table(weights)
        return np.asarray(0.5 * (table.sum(axis=1, keepdims=True) + walsh(table))).reshape(-1)

    def _table(self, weights: Floats) -> Floats:
        """Arrange numbers of values by block and row."""
        table = np.zeros((self.blocks, self.columns))
        block, row = self._place(np.arange(self.k))
        table[block, row] = weights
        return table

    def draw_messages(self, values: Ints, source: Source) -> Codes:
        """Draw an even column of the block inside; outside an odd one, or another block.

        In a column of the wrong parity, the bit at the lowest set bit of the row is flipped.
        Columns of the right parity are then uniform.
        """
        block, row = self._place(values)
        inside = self._thresholds.draw(len(values), source)
        column = below(self.columns, len(values), source)
        # Outside, one half-block of 2 B - 1 is the odd one of the own block.
        step = (below(2 * self.blocks - 1, len(values), source) + 1) // 2
        away = ~inside & (step > 0)
        wrong = ~away & (_parity(row & column) == inside)
        column = np.where(wrong, column ^ (row & -row), column)
        return np.where(away, (block + step) % self.blocks, block) * self.columns + column

    def tally(self, reports: Codes) -> Floats:
        counts = np.bincount(reports.astype(np.int64), minlength=self.blocks * self.columns)
        return counts.astype(np.float64)

    def supports(self, tally: Floats) -> Floats:
        """Return half the messages of the block, plus half their signed sum."""
        counts = tally.reshape(self.blocks, self.columns)
        both = 0.5 * (counts.sum(axis=1, keepdims=True) + walsh(counts))
        block, row = self._place(np.arange(self.k))
        return np.asarray(both[block, row])

    def variance(self, share: float = 0.0) -> float:
        """Return the variance of an estimated count per record, if a share of records holds it.

        With e the factor that draws realise, a record adds (e + 2B - 1)/(e - 1)^2 times e + 1 if it
        belongs to the block of the value and times 2 if not, less 1 if it holds the value. The
        value is in a largest block, and the other records are uniform over the other values.

        Parameters
        ----------
        share : float
            Share of the records that hold the value.
        """
        held = Fraction(check.real(share, "share", least=0.0, most=1.0))
        if self.growth == 1:
            raise cannot_undo()
        return float(_variance(self.growth, self.blocks, self.k, held))

    def moments(self, tally: Floats, n: int) -> tuple[Floats, Floats]:
        if self.growth == 1:
            raise cannot_undo()
        block, row = self._place(np.arange(self.k))
        counts = tally.reshape(self.blocks, self.columns)
        odds, scale = float(self.growth - 1), float(self.growth + 2 * self.blocks - 1)
        estimates = (scale / odds) * walsh(counts)[block, row]
        # A message falls into its own block with probability (e + 1)/scale, another with 2/scale.
        held = ((scale * counts.sum(axis=1) - 2.0 * n) / odds)[block]
        spread = scale / odds**2
        least = n * max(0.0, min(2.0 * spread, (odds + 2.0) * spread - 1.0))
        return estimates, np.maximum(spread * (2.0 * n + odds * held) - estimates, least)


def _variance(odds: Fraction, blocks: int, k: int, share: Fraction) -> Fraction:
    """Return the variance per record, with other records uniform over the other values."""
    rows = -(-k // blocks)
    spread = (odds + 2 * blocks - 1) / (odds - 1) ** 2
    near = Fraction(rows - 1, k - 1)
    other = near * (odds + 1) + (1 - near) * 2
    return share * ((odds + 1) * spread - 1) + (1 - share) * other * spread


def _power(blocks: int, k: int) -> int:
    number = check.integer(blocks, "blocks", 1)
    if number > k or number & (number - 1):
        raise InvalidInput(
            f"blocks must be a power of two of at most k = {k}; got {short(number)}."
        )
    return number


def _parity(numbers: Ints) -> Ints:
    """Return whether numbers have an odd number of bits."""
    folded = numbers
    for shift in (32, 16, 8, 4, 2, 1):
        folded = folded ^ (folded >> shift)
    return folded & 1


def walsh(table: Floats) -> Floats:
    """Transform every row of a table: out[j] = sum over z of (-1)^(bits of j and z) in[z]."""
    out, width = table.copy(), table.shape[1]
    h = 1
    while h < width:
        parts = out.reshape(len(out), -1, 2, h)
        out = np.stack([parts[:, :, 0] + parts[:, :, 1], parts[:, :, 0] - parts[:, :, 1]], axis=2)
        out = out.reshape(len(table), width)
        h *= 2
    return out
