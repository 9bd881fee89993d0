"""Numbers of any size: a double times a power of two, so that no product leaves the range.

A double ends at 5e-324, while a database of three rows of probability 1e-300 has 1e-900. Sums and
products here have the relative errors of doubles, whatever the size of the numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext

import numpy as np

from fastpriv._core.validation import Floats, Ints

#: The exponent of a zero, below all others and far from the end of integers.
_NONE = -(1 << 40)
_LOG_2 = math.log(2.0)
#: Largest exponent: products of thousands of such numbers still have theirs in 64 bits.
_FARTHEST = 1e15


@dataclass(frozen=True)
class Wide:
    """An array of numbers mantissa * 2^exponent, mantissas from 1/2 to 1 or zero."""

    mantissa: Floats
    exponent: Ints

    def __add__(self, other: Wide) -> Wide:
        """One rounding error of a double."""
        top = np.maximum(self.exponent, other.exponent)
        return scaled(self._below(top) + other._below(top), top)

    def __mul__(self, other: Wide | float) -> Wide:
        """One rounding error of a double."""
        factor = other if isinstance(other, Wide) else wide(other)
        return scaled(self.mantissa * factor.mantissa, self.exponent + factor.exponent)

    def __truediv__(self, other: Wide) -> Wide:
        """One rounding error of a double; the divisor has no zeros."""
        return scaled(self.mantissa / other.mantissa, self.exponent - other.exponent)

    def sum(self, axis: int) -> Wide:
        """Sum along an axis, which stays with length one: the errors of a sum of doubles."""
        top = self.exponent.max(axis=axis, keepdims=True)
        return scaled(self._below(top).sum(axis=axis, keepdims=True), top)

    def reshape(self, *shape: int) -> Wide:
        """Return the numbers in another shape."""
        return Wide(self.mantissa.reshape(shape), self.exponent.reshape(shape))

    @property
    def T(self) -> Wide:  # noqa: N802
        """The transpose."""
        return Wide(self.mantissa.T, self.exponent.T)

    def __getitem__(self, chosen: Ints) -> Wide:
        return Wide(self.mantissa[chosen], self.exponent[chosen])

    def floats(self) -> Floats:
        """Return the nearest doubles."""
        return self._below(np.zeros_like(self.exponent))

    def to_one(self, axis: int) -> Floats:
        """Return doubles: numbers along an axis are divided by one power of two.

        The largest is then from 1/2 to 1, and those 2^1022 times smaller lose digits.
        """
        return self._below(self.exponent.max(axis=axis, keepdims=True))

    def logs(self) -> Floats:
        """Natural logarithms, -inf of zeros."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.mantissa)
        return np.asarray(np.where(self.mantissa > 0.0, logs + self.exponent * _LOG_2, -math.inf))

    def _below(self, top: Ints) -> Floats:
        """Return the numbers divided by 2^top; what is 2^1100 times smaller counts for nothing."""
        shift = np.clip(self.exponent - top, -1100, 1100).astype(np.int32)
        return np.asarray(np.ldexp(self.mantissa, shift))


def scaled(values: Floats, exponent: Ints | int) -> Wide:
    """Return values times 2^exponent."""
    mantissa, shift = np.frexp(values)
    return Wide(mantissa, np.where(mantissa == 0.0, _NONE, shift.astype(np.int64) + exponent))


def wide(values: Floats | float) -> Wide:
    """Return doubles as they are."""
    return scaled(np.asarray(values, dtype=np.float64), 0)


def wide_exp(value: float) -> Wide:
    """Return e^value, right to two units in the last place also where no double holds it.

    Beyond 1e15 the exponent itself would be lost: there it stays what it is at 1e15.
    """
    value = max(-_FARTHEST, min(value, _FARTHEST))
    exponent = round(value / _LOG_2)
    with localcontext(Context(prec=40, Emax=MAX_EMAX, Emin=MIN_EMIN)):
        mantissa = float(Decimal(value).exp() / Decimal(2) ** exponent)
    return scaled(np.array(mantissa), exponent)


def wide_powers(base: Wide, most: int) -> Wide:
    """Return the powers of one number from 0 to ``most``."""
    powers = [wide(1.0)]
    for _ in range(most):
        powers.append(powers[-1] * base)
    return Wide(np.array([p.mantissa for p in powers]), np.array([p.exponent for p in powers]))


def wide_from_logs(logs: Floats) -> Wide:
    """Return e^logs, with the relative errors that the logarithms have in absolute terms."""
    exponent = np.rint(np.where(logs > -math.inf, logs, 0.0) / _LOG_2)
    mantissa = np.exp(logs - exponent * _LOG_2)
    return scaled(mantissa, exponent.astype(np.int64))
