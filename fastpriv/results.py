"""What fastpriv returns when a number is bounded rather than known, or something was optimised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastpriv._validation import Floats
    from fastpriv.channels import AbstractChannel

__all__ = ["Bracket", "Brackets", "Solution"]


@dataclass(frozen=True)
class Bracket:
    """A value that is proved to lie in ``[lower, upper]``.

    Examples
    --------
    >>> from fastpriv import Bracket
    >>> Bracket(0.5, 0.75).width
    0.25
    >>> 0.6 in Bracket(0.5, 0.75)
    True
    """

    lower: float
    upper: float

    @property
    def width(self) -> float:
        """How far apart the two bounds are; 0 for two equal infinities."""
        return 0.0 if self.lower == self.upper else self.upper - self.lower

    @property
    def midpoint(self) -> float:
        """Halfway between the two bounds; the value is within half a width of it."""
        return self.lower if self.lower == self.upper else 0.5 * (self.lower + self.upper)

    def __format__(self, spec: str) -> str:
        return f"[{self.lower:{spec}}, {self.upper:{spec}}]"

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    def __repr__(self) -> str:
        return f"Bracket({self.lower:.10g}, {self.upper:.10g})"


@dataclass(frozen=True, eq=False, repr=False)
class Brackets:
    """Many values, the b-th proved to lie in ``[lower[b], upper[b]]``.

    Examples
    --------
    >>> import fastpriv as fp
    >>> found = fp.channel_capacity([[[1, 0], [0, 1]], [[0.5, 0.5], [0.5, 0.5]]])
    >>> found, found[1]
    (Brackets(2 values), Bracket(0, 0))
    """

    lower: Floats
    upper: Floats

    @property
    def width(self) -> Floats:
        """How far apart the two bounds of each value are."""
        return self.upper - self.lower

    @property
    def midpoint(self) -> Floats:
        """Halfway between the two bounds of each value."""
        return 0.5 * (self.lower + self.upper)

    def __len__(self) -> int:
        return len(self.lower)

    def __getitem__(self, b: int) -> Bracket:
        return Bracket(float(self.lower[b]), float(self.upper[b]))

    def __repr__(self) -> str:
        return f"Brackets({len(self)} values)"


@dataclass(frozen=True)
class Solution:
    """An optimised mechanism with its certificate.

    Attributes
    ----------
    value : float
        What was minimised, of the returned channel itself.
    bound : float
        Proved lower bound on what any mechanism can reach; ``value`` is optimal within the gap.
    channel : channel
        The mechanism. It meets its privacy constraint for the very floats in it.
    level : float
        Certified privacy level of that channel.
    method : {"closed-form", "rows", "types", "dense"}
        How it was found.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.solve_pd_dp(fp.Uniform(3, 2), 1.0)
    Solution(value=0.8068242641, bound=0.8068242641, level=1, method='closed-form')
    """

    value: float
    bound: float
    channel: AbstractChannel
    level: float
    method: str

    @property
    def gap(self) -> float:
        """Certified relative distance from the optimum."""
        return 0.0 if self.value == self.bound else (self.value - self.bound) / abs(self.value)

    def __repr__(self) -> str:
        return (
            f"Solution(value={self.value:.10g}, bound={self.bound:.10g}, level={self.level:.6g}, "
            f"method={self.method!r})"
        )
