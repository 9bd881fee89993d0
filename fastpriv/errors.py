"""The errors fastpriv raises: what was wrong, what was expected, what to do."""

from __future__ import annotations

__all__ = ["Infeasible", "InvalidInput", "SolverFailure", "TooLarge"]


class InvalidInput(ValueError):
    """An argument does not mean what the function needs it to mean."""


class Infeasible(ValueError):
    """No mechanism meets the request; the message names the level that would do."""


class TooLarge(ValueError):
    """The answer needs an array that does not fit; the message says which structure avoids it."""

    @classmethod
    def entries(cls, what: str, count: int, instead: str) -> TooLarge:
        """Build the error for an array of ``count`` doubles.

        Parameters
        ----------
        what : str
            What would have been formed.
        count : int
            Its number of entries.
        instead : str
            What to do instead.
        """
        return cls(f"{what} has {short(count)} entries ({short(8 * count)} bytes); {instead}.")


class SolverFailure(ValueError):
    """A solver stopped without an answer; the message keeps the solver's own status."""


def short(count: int) -> str:
    """Write a count in full while it is readable, in powers of two beyond."""
    return f"{count:,}" if abs(count) < 10**15 else f"about 2^{abs(count).bit_length() - 1}"
