"""The errors fastpriv raises: what was wrong, what was expected, what to do."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = [
    "BudgetExceeded",
    "EstimateWarning",
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
    """An argument is not what the function expects."""


class UnknownName(InvalidInput, KeyError):
    """A name is not among the known ones; also a KeyError."""

    __str__ = Exception.__str__  # KeyError would put the sentence in quotes


class Infeasible(FastprivError, ValueError):
    """No mechanism meets the request; the message names a level that can be met."""


class TooLarge(FastprivError, ValueError):
    """The answer needs an array that does not fit; the message names a structure that avoids it."""

    @classmethod
    def entries(cls, what: str, count: int, instead: str) -> TooLarge:
        """Build the error for an array of ``count`` doubles.

        Parameters
        ----------
        what : str
            The name of the array.
        count : int
            Its number of entries.
        instead : str
            What to do instead.
        """
        return cls(f"{what} has {short(count)} entries ({short(8 * count)} bytes); {instead}.")


class SolverFailure(FastprivError, ValueError):
    """A solver stopped without an answer; the message keeps the solver's own status."""


class GapWarning(UserWarning):
    """An optimum was certified with a larger gap than requested; see ``Solution.gap``.

    The mechanism is private and its bound is proved. ``Solution.converged`` is False.
    """


class EstimateWarning(UserWarning):
    """An estimated count is outside the possible counts by more than noise explains.

    The table was probably not released through the given mechanism.
    """


class BudgetExceeded(FastprivError, ValueError):
    """A release would cost more than a ledger has left; nothing was spent.

    Attributes
    ----------
    notion : str
        The notion of privacy whose budget is too small.
    asked, remaining : float
        The cost of the release, and the remaining budget, in nats.
    """

    def __init__(self, notion: str, asked: float, remaining: float, budget: float) -> None:
        super().__init__(notion, asked, remaining, budget)
        self.notion, self.asked, self.remaining, self.budget = notion, asked, remaining, budget

    def __str__(self) -> str:
        return (
            f"{self.notion}: the release asks for {described(self.asked)} but "
            f"{described(self.remaining)} of the budget {described(self.budget)} remains; nothing "
            "was spent. Add noise, or release less often."
        )


class LedgerError(FastprivError, OSError):
    """The file that keeps a ledger cannot be opened, locked, written or trusted."""


#: Words of other texts for notions, and symbols of the papers for names.
_SYNONYMS = {
    "epsilon": "dp",
    "ldp": "dp",
    "differential-privacy": "dp",
    "pure-dp": "dp",
    "delta": "approximate-dp",
    "mi": "mutual-information",
    "leakage": "maximal-leakage",
    "capacity": "channel-capacity",
    "e-d": "HammingChannel",
    "e-i": "PosteriorChannel",
    "c-1": "individual_capacity",
    "randomizedresponse": "HammingChannel",
    "randomisedresponse": "HammingChannel",
    "rr": "randomised-response",
    "approx-dp": "approximate-dp",
    "bounded": "replace-one",
    "substitution": "replace-one",
    "swap": "replace-one",
    "unbounded": "add-or-remove",
}


#: Most names that a message lists in full.
_ALL = 16


def did_you_mean(
    word: object, known: Iterable[object], written: Sequence[str] | None = None
) -> str:
    """Return the nearest known word as a hint, or nothing; ``written`` has longer forms of them."""
    if not isinstance(word, str):
        return ""
    from difflib import get_close_matches

    names, usual = list(map(str, known)), word.lower().replace(" ", "-").replace("_", "-")
    likely = [each for each in (_SYNONYMS.get(usual), usual) if each]
    near = [each for each in likely if each in names]
    near += [name for each in likely for name in names if name.startswith(f"{each}-")]
    near = near or get_close_matches(word, names, n=1)
    if not near:
        return ""
    return f"; did you mean {written[names.index(near[0])] if written else near[0]}?"


def hint_or_list(word: object, known: Iterable[object], before: str = "") -> str:
    """Return the nearest known word as a hint or, if none is near, all of them."""
    names = list(map(str, known))
    near = did_you_mean(word, names)
    if len(names) > _ALL:
        names = [*names[: _ALL // 2], f"... ({len(names)} in all)"]
    return near or f"; it must be {before}one of {', '.join(names)}"


def short(count: int) -> str:
    """Write a count in full while it is readable, in powers of two beyond."""
    if abs(count) < 10**15:
        return f"{count:,}"
    return f"about {'-' if count < 0 else ''}2^{abs(count).bit_length() - 1}"


def unread(what: str, given: object, error: Exception) -> InvalidInput:
    """Return the error for text that cannot be read back."""
    return InvalidInput(
        f"this is no {what}: {described(given)} ({cause(error)}). Give the text as it was written."
    )


def cause(error: Exception) -> str:
    """Describe an error of reading without Python's own words."""
    if isinstance(error, FastprivError):
        return str(error).rstrip(".")
    if isinstance(error, KeyError) and error.args:
        return f"{described(error.args[0])} is missing or not known"
    return "it has another form"


def described(value: object) -> str:
    """Write a given value for a message, briefly and on one line.

    Numbers, texts and containers are written as in Python, shortened; numpy numbers as Python
    numbers. Objects of other libraries are named by their type: their own text may be long or fail.
    """
    text = " ".join(_spelt(value, _DEPTH).split())
    ours = type(value).__module__.partition(".")[0] == "fastpriv"  # short by itself
    return text if ours or len(text) <= _MOST else f"{text[: _MOST - 3]}..."


#: Containers within containers that are written out.
_DEPTH = 3
#: Items of each container that are written out.
_ITEMS = 8
#: Most characters of a value.
_MOST = 80
_BRACKETS: dict[type, tuple[str, str]] = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    set: ("{", "}"),
    frozenset: ("{", "}"),
    dict: ("{", "}"),
}
#: Modules whose values have short texts.
_SPELT = ("builtins", "datetime", "decimal", "fractions", "pathlib", "fastpriv")


def _spelt(value: Any, depth: int) -> str:
    kind, module = type(value), type(value).__module__.partition(".")[0]
    if kind in _BRACKETS and (value or kind in (list, tuple, dict)):
        return _listed(value, depth)
    if kind is int and abs(value) >= 10**15:
        return short(value)
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if module == "numpy" and getattr(value, "shape", False):
        return f"an array of shape {value.shape}"
    if module == "numpy" and hasattr(value, "item"):
        plain = value.item()  # an extended float is its own item
        return str(value) if type(plain) is kind else _spelt(plain, depth)
    article = "an" if kind.__name__[:1].lower() in tuple("aeiou") else "a"
    named = "a function" if callable(value) else f"{article} {kind.__name__}"
    try:
        text = repr(value[:_MOST] if kind in (str, bytes) else value) if module in _SPELT else ""
    except Exception:  # such as a fraction of more digits than Python writes
        return named
    return named if text.startswith("<") or not text else text


def _listed(values: Any, depth: int) -> str:
    """Write the first items of a container of Python's own."""
    left, right = _BRACKETS[type(values)]
    if depth == 0:
        return f"{left}...{right}"
    pairs = isinstance(values, dict)
    items = list(itertools.islice(values.items() if pairs else values, _ITEMS + 1))
    parts = [
        ": ".join(_spelt(part, depth - 1) for part in (item if pairs else (item,)))
        for item in items[:_ITEMS]
    ]
    alone = "," if isinstance(values, tuple) and len(items) == 1 else ""
    return f"{left}{', '.join(parts)}{alone}{', ...' if len(items) > _ITEMS else ''}{right}"
