"""Subset selection: a message is a set of values of a fixed size."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastpriv._core import validation as check
from fastpriv._core.validation import Floats, Ints
from fastpriv._sampling.local import InsideThresholds, subsets
from fastpriv._sampling.source import Source
from fastpriv._sampling.thresholds import Codes
from fastpriv.channels.local.support import SupportChannel
from fastpriv.errors import InvalidInput, short
from fastpriv.spaces import Space

__all__ = ["SubsetChannel"]

#: Most numbers in all messages of one call.
_DRAWN = 1 << 28


class SubsetChannel(SupportChannel):
    """Subset selection: the message is a set of ``size`` of the k values.

    A set that holds the true value is e^epsilon times as likely as a set that does not. With size =
    k/(e^epsilon + 1), rounded to the better side, its mean squared error is asymptotically the
    smallest at the level (Ye and Barg 2018). Size 1 is randomised response.

    Parameters
    ----------
    k : int
        Number of values, at least 2.
    epsilon : float
        Differential privacy level, at least 0.
    size : int, optional
        Number of values in a message, below k. Default: the size of smallest variance.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = fp.SubsetChannel(20, 1.0)
    >>> channel
    SubsetChannel(k=20, epsilon=1, size=5)
    >>> channel.sample([[3], [3]], rng=1)
    array([[ 6, 10, 16, 17, 18],
           [ 1,  5,  8, 16, 17]])
    >>> fp.dp_level(channel), round(fp.maximal_leakage(channel), 6)
    (1.0, 0.642626)
    """

    _parameter = "size"
    symmetric = True

    def __init__(self, k: int, epsilon: float, size: int | None = None) -> None:
        self._set(k, epsilon)
        self.size = _best_size(self) if size is None else check.integer(size, "size", 1)
        if self.size >= self.k:
            raise InvalidInput(f"size must be below k = {self.k}; got {short(self.size)}.")
        self._thresholds = InsideThresholds(self.size, self.k - self.size, self.epsilon)
        self.growth = self._thresholds.growth
        self.inclusion, joint = _chances(self.k, self.size)
        self.joint = (joint,)
        self.width = self.size
        self.output_space = Space.of((self.k,) * self.size)

    def definition(self) -> dict[str, Any]:
        return {"k": self.k, "epsilon": self.epsilon, "size": self.size}

    @property
    def output_count(self) -> int:
        small = min(self.size, self.k - self.size)
        log = math.lgamma(self.k + 1) - math.lgamma(small + 1) - math.lgamma(self.k - small + 1)
        return math.comb(self.k, small) if log < 60.0 else 1 << int(log / math.log(2.0))

    def output_row(self, y: int) -> Ints:
        """Return the set of that number, in the order of ``itertools.combinations``."""
        held: list[int] = []
        value, rest = 0, int(y)
        while len(held) < self.size:
            with_value = math.comb(self.k - value - 1, self.size - len(held) - 1)
            if rest < with_value:
                held.append(value)
            else:
                rest -= with_value
            value += 1
        return np.array(held, dtype=np.int64)

    def column_index(self, output: Ints) -> int:
        held = self.checked_reports(output[None])[0].tolist()
        passed = (
            math.comb(self.k - value - 1, self.size - j - 1)
            for j, (last, own) in enumerate(zip([-1, *held], held, strict=False))
            for value in range(last + 1, own)
        )
        return sum(passed)

    def support_table(self) -> tuple[Floats, NDArray[np.bool_]]:
        sets = list(itertools.combinations(range(self.k), self.size))
        member = np.zeros((self.k, len(sets)), dtype=np.bool_)
        for y, held in enumerate(sets):
            member[list(held), y] = True
        return np.full(len(sets), 1.0 / len(sets)), member

    def members(self, report: Ints) -> NDArray[np.bool_]:
        member = np.zeros(self.k, dtype=np.bool_)
        member[self.checked_reports(report[None])[0]] = True
        return member

    def checked_reports(self, reports: ArrayLike) -> Codes:
        given = super().checked_reports(reports)
        if (given[:, 1:] <= given[:, :-1]).any():
            raise InvalidInput(
                "a message of a subset must list its values in increasing order, each once. "
                "Give messages as sample returned them."
            )
        return given

    @property
    def empty_mass(self) -> Decimal:
        return Decimal(0)

    def draw_messages(self, values: Ints, source: Source) -> Codes:
        check.fits(len(values) * self.size, "the reports", "draw fewer at a time", _DRAWN)
        inside = self._thresholds.draw(len(values), source)
        return subsets(values, inside, self.k, self.size, source)

    def tally(self, reports: Codes) -> Floats:
        flat = reports.reshape(-1).astype(np.int64, copy=False)
        return np.bincount(flat, minlength=self.k).astype(np.float64)


def _chances(k: int, size: int) -> tuple[Fraction, Fraction]:
    """Return the probabilities that a random subset holds a value, and two values."""
    return Fraction(size, k), Fraction(size * (size - 1), k * (k - 1))


def _best_size(channel: SupportChannel) -> int:
    """Return the size of smallest variance at a share of 1/k, one of two next to k/(e^e + 1)."""
    k = channel.k
    near = int(k / (channel.odds + 1))
    sizes = {min(max(1, size), k - 1) for size in (near, near + 1)}
    return min(sizes, key=lambda size: (design_variance(channel, *_chances(k, size)), size))


def design_variance(channel: SupportChannel, single: Fraction, pair: Fraction) -> float:
    """Return (e^epsilon - 1)^2 times the variance per record at a share of 1/k.

    ``single`` and ``pair`` are the probabilities that a message of the distribution b supports a
    value, and two values.
    """
    odds, k = float(min(channel.odds, Decimal(10**9))), channel.k
    total = 1.0 + (odds - 1.0) * float(single)
    p = odds * float(single) / total
    q = (float(single) + (odds - 1.0) * float(pair)) / total
    spread = p * (1.0 - p) / k + q * (1.0 - q) * (1.0 - 1.0 / k)
    return spread * (total / float(single - pair)) ** 2
