"""The errors fastpriv raises: what was wrong, what was expected, what to do."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = [
    "BudgetExceeded",
    "FastprivError",
    "GapWarning",
    "Infeasible",
    "InvalidInput",
    "LedgerError",
    "SolverFailure",
    "TooLarge",
    "UnknownName",
]


class FastprivError(Exception):
    """Base of every error that fastpriv raises on purpose: one sentence on one line."""

    def __init__(self, *parts: object) -> None:
        # An array that is quoted in a sentence is printed on several lines.
        super().__init__(*(" ".join(p.split()) if isinstance(p, str) else p for p in parts))


class InvalidInput(FastprivError, ValueError):
    """An argument does not mean what the function needs it to mean."""


class UnknownName(InvalidInput, KeyError):
    """A name that is asked for is not there: an error of input and of looking up at once."""

    __str__ = Exception.__str__  # KeyError would put the sentence in quotes


class Infeasible(FastprivError, ValueError):
    """No mechanism meets the request; the message names the level that would do."""


class TooLarge(FastprivError, ValueError):
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


class SolverFailure(FastprivError, ValueError):
    """A solver stopped without an answer; the message keeps the solver's own status."""


class GapWarning(UserWarning):
    """An optimum was certified less closely than was asked for; ``Solution.gap`` says how closely.

    The mechanism is private and its bound is proved all the same. ``Solution.converged`` is False.
    """


class BudgetExceeded(FastprivError, ValueError):
    """A release would cost more than a ledger has left; nothing was spent.

    Attributes
    ----------
    notion : str
        The notion of privacy whose budget is too small.
    asked, remaining : float
        What the release would cost, and what is left, in nats.
    """

    def __init__(self, notion: str, asked: float, remaining: float, budget: float) -> None:
        super().__init__(notion, asked, remaining, budget)
        self.notion, self.asked, self.remaining, self.budget = notion, asked, remaining, budget

    def __str__(self) -> str:
        return (
            f"{self.notion}: the release asks for {self.asked!r} but {self.remaining!r} of the "
            f"budget {self.budget!r} remains; nothing was spent. Add noise, release less often, or "
            "have the owner of the data open a ledger with a larger budget"
        )


class LedgerError(FastprivError, OSError):
    """The file that keeps a ledger cannot be opened, locked, written or trusted."""


def did_you_mean(word: object, known: Iterable[object]) -> str:
    """Return the nearest known word as a hint, or nothing."""
    from difflib import get_close_matches

    near = get_close_matches(str(word), list(map(str, known)), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def short(count: int) -> str:
    """Write a count in full while it is readable, in powers of two beyond."""
    return f"{count:,}" if abs(count) < 10**15 else f"about 2^{abs(count).bit_length() - 1}"
