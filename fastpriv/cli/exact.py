"""``--exact``: optima and curves in rational arithmetic, on the command line."""

from __future__ import annotations

import argparse
import csv
import io
import math
from typing import TYPE_CHECKING, Any

from fastpriv._core.extras import optional
from fastpriv._text.encoding import to_json
from fastpriv._text.numbers import down, up
from fastpriv._text.table import table
from fastpriv.errors import InvalidInput, TooLarge

if TYPE_CHECKING:
    from fastpriv.design.exact.curve import ExactCurve
    from fastpriv.priors import Distribution

NOTIONS = ("dp", "identifiability")
#: How far beyond the end of the last closed form a curve goes by default.
_BEYOND = 1.0
#: Where a curve ends by default, if there is no such end.
_ENDLESS = 5.0
#: Most characters of a polynomial in a table.
_SHOWN = 60


def check_solve(given: argparse.Namespace) -> None:
    """Refuse options that do not apply to exact optima."""
    if given.notion not in NOTIONS or given.epsilon is None:
        raise InvalidInput("--exact is for dp and identifiability at a level: give --epsilon")
    if given.gap is not None or given.time_limit is not None:
        raise InvalidInput("an exact optimum has no gap: leave out --gap and --time-limit")


def curves(given: argparse.Namespace, prior: Distribution) -> list[ExactCurve]:
    """Return the exact curves that the options of ``tradeoff`` ask for."""
    from fastpriv.design.exact.curve import exact_curve

    if given.distortions is not None or given.points is not None:
        raise InvalidInput("an exact curve has no grid: leave out --distortions and --points")
    notions = [notion for notion in given.notions if notion in NOTIONS]
    if not notions:
        raise InvalidInput("--exact is for dp and identifiability")
    return [exact_curve(prior, *_levels(given, prior, notion), notion) for notion in notions]


def _levels(given: argparse.Namespace, prior: Distribution, notion: str) -> tuple[float, float]:
    """Return the range of levels: as given, or from the least one to where a closed form holds."""
    if given.levels is not None:
        if len(given.levels) != 2:
            raise InvalidInput("--levels takes two numbers, such as 0,3")
        low, high = given.levels
        return low, high
    least = prior.epsilon_x() if notion == "identifiability" else 0.0
    try:
        end = prior.epsilon_tilde if notion == "identifiability" else prior.epsilon_hat
        last = float(end())
    except TooLarge:
        last = math.inf
    return least, last + _BEYOND if last < math.inf else least + _ENDLESS


def as_json(given: list[ExactCurve]) -> str:
    """Return the pieces as JSON, coefficients as strings: they are longer than doubles."""
    page: dict[str, Any] = {
        curve.notion: [
            {
                "low": piece.low,
                "high": piece.high,
                "numerator": list(map(str, piece.numerator)),
                "denominator": list(map(str, piece.denominator)),
            }
            for piece in curve.pieces
        ]
        for curve in given
    }
    return to_json(page)


def as_csv(given: list[ExactCurve]) -> str:
    """Return one line per piece, with all coefficients."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["notion", "low", "high", "numerator", "denominator"])
    for curve in given:
        for piece in curve.pieces:
            sides = (" ".join(map(str, side)) for side in (piece.numerator, piece.denominator))
            writer.writerow([curve.notion, repr(piece.low), repr(piece.high), *sides])
    return stream.getvalue()


def as_table(given: list[ExactCurve]) -> str:
    """Return one line per piece."""
    rows = [["notion", "from", "to", "numerator", "denominator"]]
    for curve in given:
        for piece in curve.pieces:
            ends = down(piece.low), up(piece.high)
            sides = _polynomial(piece.numerator), _polynomial(piece.denominator)
            rows.append([curve.notion, *ends, *sides])
    return f"Least distortion as a quotient of polynomials in a = e^epsilon:\n{table(rows)}"


def _polynomial(coefficients: tuple[int, ...]) -> str:
    powers = ["", " a", *(f" a^{k}" for k in range(2, len(coefficients)))]
    terms = [f"{c}{powers[k]}" for k, c in enumerate(coefficients) if c]
    text = " + ".join(terms).replace("+ -", "- ") or "0"
    return text if len(text) <= _SHOWN else f"degree {len(coefficients) - 1} (see --out or --json)"


def drawn(given: list[ExactCurve], kind: str) -> bytes:
    """Return the figure of the curves as a file of a kind."""
    stream = io.BytesIO()
    ax = given[0].plot()
    for curve in given[1:]:
        curve.plot(ax)
    figure: Any = ax.figure
    figure.savefig(stream, format=kind, dpi=200)
    optional("matplotlib.pyplot", "plot").close(figure)
    return stream.getvalue()
