"""Bits in place of nats: for numbers, brackets and figures."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.rounding import lowered, raised
from fastpriv._drawing.style import number
from fastpriv.errors import InvalidInput, described
from fastpriv.results import Bracket, Brackets

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["in_bits"]

#: One bit in nats.
_BIT = math.log(2.0)
#: Rounding of a quotient by ln 2, which is rounded itself.
_UNITS = 4.0
#: How labels name the units.
_NATS, _BITS = "(nats)", "(bits)"

Given = TypeVar("Given")


def in_bits(value: Given) -> Given:
    """Return levels and informations in bits, or show a figure in bits.

    All calls of fastpriv take and return nats; 1 bit is ln 2 nats. This is the one way to print or
    draw bits.

    Parameters
    ----------
    value : float, array, Bracket, Brackets or matplotlib Axes
        Numbers in nats, or a figure of ``fastpriv.plot``.

    Returns
    -------
    the same kind
        Numbers divided by ln 2. The bounds of a bracket are rounded outwards; a bracket that has
        more than bounds becomes a :class:`Bracket`. Axes are returned themselves: ticks and label
        of each axis in nats now count bits. The data of the figure are unchanged.

    Examples
    --------
    >>> import math, fastpriv as fp
    >>> fp.in_bits(math.log(8.0))
    3.0
    >>> fp.in_bits(fp.channel_capacity([[0.9, 0.1], [0.1, 0.9]]))
    Bracket(0.5310044064, 0.5310044065)
    >>> fp.in_bits(fp.plot.tradeoff(fp.Product.iid([0.7, 0.3], 4))).get_ylabel()
    'best privacy level (bits)'
    """
    given: Any = value
    result: Any
    if isinstance(given, Bracket):
        low, high = lowered(given.lower / _BIT, _UNITS), raised(given.upper / _BIT, _UNITS)
        result = Bracket(low, high, guaranteed=given.guaranteed)
    elif isinstance(given, Brackets):
        result = Brackets(lowered(given.lower / _BIT, _UNITS), raised(given.upper / _BIT, _UNITS))
    elif hasattr(given, "xaxis") and hasattr(given, "yaxis"):
        result = _axes(given)
    elif isinstance(given, bool | str) or given is None:
        raise InvalidInput(
            f"value must be numbers in nats, a bracket of them or Axes; got {described(given)}."
        )
    else:
        numbers = check.array(given, "value").astype(np.float64)
        if np.isnan(numbers).any():
            raise InvalidInput("value must be numbers in nats; got one that is not a number.")
        result = float(numbers) / _BIT if numbers.ndim == 0 else numbers / _BIT
    return cast("Given", result)


def _axes(ax: Axes) -> Axes:
    """Count bits on every axis that is labelled in nats, on twins as well."""
    figure: Any = ax.figure
    for other in figure.axes:
        if other is ax or np.array_equal(other.bbox.bounds, ax.bbox.bounds):
            for axis in (other.xaxis, other.yaxis):
                label = axis.get_label_text()
                if _NATS in label:
                    _count_bits(axis)
                    axis.set_label_text(label.replace(_NATS, _BITS))
    return ax


def _count_bits(axis: Any) -> None:
    """Put the ticks of an axis at round numbers of bits."""
    from matplotlib import ticker

    class InBits(ticker.Locator):
        """Places that another locator finds on the axis in bits."""

        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def __call__(self) -> Any:
            own: Any = self.axis
            low, high = own.get_view_interval()
            return self.tick_values(low, high)

        def tick_values(self, vmin: float, vmax: float) -> Any:
            return np.asarray(self.inner.tick_values(vmin / _BIT, vmax / _BIT)) * _BIT

    inner = ticker.LogLocator() if axis.get_scale() == "log" else ticker.MaxNLocator(7)
    axis.set_major_locator(InBits(inner))
    axis.set_minor_locator(ticker.NullLocator())
    axis.set_major_formatter(lambda value, _: number(value / _BIT))
