"""What fastpriv returns when a number is bounded rather than known."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Bracket"]


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
