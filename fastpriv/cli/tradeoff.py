"""``fastpriv tradeoff``: the best levels over distortions, or in closed form."""

from __future__ import annotations

import argparse
import csv
import io
import math
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from fastpriv._core.extras import optional
from fastpriv._text.encoding import to_json
from fastpriv._text.numbers import down, up
from fastpriv._text.table import table
from fastpriv.cli import files
from fastpriv.cli.mechanisms import add_prior, load_prior
from fastpriv.cli.parser import add_file, add_force, add_json, examples
from fastpriv.errors import InvalidInput, TooLarge, described
from fastpriv.notions.registry import COMPARED, DESIGNED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fastpriv.design.exact.curve import ExactCurve
    from fastpriv.design.tradeoff import TradeoffCurve
    from fastpriv.priors import Distribution

#: Notions with exact optima.
EXACT_NOTIONS = ("dp", "identifiability")
#: How far beyond the end of the last closed form a curve goes by default.
_BEYOND = 1.0
#: Where a curve ends by default, if there is no such end.
_ENDLESS = 5.0
#: Most characters of a polynomial in a table.
_SHOWN = 60


def add(commands: Any) -> argparse.ArgumentParser:
    """Declare the subcommand and its options."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "tradeoff",
        help="the best privacy levels over a grid of distortions",
        description="Print the smallest privacy level of any mechanism at each expected\n"
        "distortion (number of changed records), between proved bounds, as a table, as CSV and as\n"
        "a figure.",
        epilog=examples(
            "fastpriv tradeoff --prior iid:p=0.7,0.3,n=3 --distortions 0.3,0.6",
            "fastpriv tradeoff --prior prior.csv --notions dp --points 5 --out curve.csv",
            "fastpriv tradeoff --prior uniform:n=2,m=2 --points 4 --plot curve.svg --json",
            "fastpriv tradeoff --prior prior.csv --notions pml individual-capacity --points 3",
            "fastpriv tradeoff --prior iid:p=0.7,0.3,n=3 --exact --levels 1,2",
        ),
    )
    add_prior(parser, required=True)
    parser.add_argument(
        "--notions",
        nargs="+",
        choices=DESIGNED,
        default=COMPARED,
        help=f"some of {', '.join(DESIGNED)} (default: {', '.join(COMPARED)})",
    )
    grid = parser.add_mutually_exclusive_group()
    grid.add_argument(
        "--distortions", type=_numbers, metavar="D,D,...", help="the distortions to look at"
    )
    grid.add_argument(
        "--points",
        type=int,
        metavar="K",
        help="look at K of them (25), evenly up to where a constant output is as good",
    )
    parser.add_argument(
        "--exact",
        action="store_true",
        help="smallest distortion over levels in closed form, for small priors",
    )
    parser.add_argument(
        "--levels", type=_numbers, metavar="LOW,HIGH", help="between which levels, with --exact"
    )
    add_file(parser, "--out", metavar="CSV", help="write all digits there")
    add_file(parser, "--plot", metavar="FILE", help="draw there: .png, .svg or .pdf")
    add_force(parser)
    add_json(parser)
    return parser


def run(given: argparse.Namespace) -> str:
    """Return what the subcommand prints."""
    outputs = {}
    if given.out is not None:
        outputs["out"] = files.target(given.out, given.force, (".csv",), given.prior)
    if given.plot is not None:
        optional("matplotlib", "plot").use("Agg")
        outputs["plot"] = files.target(given.plot, given.force, (".png", ".svg", ".pdf"))
    prior = load_prior(given.prior, given.sizes)
    written = [f"Written to {path}" for path in outputs.values()]
    if given.exact:
        curves = exact_curves(given, prior)
        if "out" in outputs:
            files.write(outputs["out"], exact_csv(curves).encode(), given.force)
        if "plot" in outputs:
            picture = exact_figure(curves, outputs["plot"].suffix[1:])
            files.write(outputs["plot"], picture, given.force)
        text = exact_json(curves) if given.json else exact_table(curves)
        return text if given.json else "\n".join([text, *written])
    if given.levels is not None:
        raise InvalidInput("--levels must come with --exact. A grid is given by --distortions.")
    from fastpriv.design.tradeoff import tradeoff_curve

    bar = sys.stderr.isatty() and find_spec("tqdm") is not None
    grid = {} if given.points is None else {"points": given.points}
    curve = tradeoff_curve(prior, list(given.notions), given.distortions, progress=bar, **grid)
    if "out" in outputs:
        files.write(outputs["out"], curve.to_csv().encode(), given.force)
    if "plot" in outputs:
        files.write(outputs["plot"], saved(curve.plot(), outputs["plot"].suffix[1:]), given.force)
    if given.json:
        return curve.to_json()
    return "\n".join([_table(curve), *written])


def _table(curve: TradeoffCurve) -> str:
    head = ["distortion"]
    for notion in curve.lower:
        head += [f"{notion} from", "to"]
    rows = [head]
    for k, cost in enumerate(curve.distortions.tolist()):
        row = [up(cost)]
        for notion in curve.lower:
            row += [down(float(curve.lower[notion][k])), up(float(curve.upper[notion][k]))]
        rows.append(row)
    return f"Best levels in nats, between proved bounds:\n{table(rows)}"


def saved(ax: Axes, kind: str) -> bytes:
    """Return the figure of some axes as a file of a kind, and close it."""
    stream = io.BytesIO()
    figure: Any = ax.figure
    figure.savefig(stream, format=kind, dpi=200)
    optional("matplotlib.pyplot", "plot").close(figure)
    return stream.getvalue()


def _numbers(text: str) -> list[float]:
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{described(text)} must be a list of numbers") from None


def exact_curves(given: argparse.Namespace, prior: Distribution) -> list[ExactCurve]:
    """Return the exact curves that the options of ``tradeoff`` ask for."""
    from fastpriv.design.exact.curve import exact_curve

    if given.distortions is not None or given.points is not None:
        raise InvalidInput(
            "--distortions and --points must be left out: an exact curve has no grid."
        )
    notions = [notion for notion in given.notions if notion in EXACT_NOTIONS]
    if not notions:
        raise InvalidInput("--exact must come with dp or identifiability.")
    return [exact_curve(prior, *_exact_levels(given, prior, notion), notion) for notion in notions]


def _exact_levels(
    given: argparse.Namespace, prior: Distribution, notion: str
) -> tuple[float, float]:
    """Return the given range of levels, or from the smallest to past the last closed form."""
    if given.levels is not None:
        if len(given.levels) != 2:
            raise InvalidInput("--levels must be two numbers, such as 0,3.")
        low, high = given.levels
        return low, high
    smallest = prior.epsilon_x() if notion == "identifiability" else 0.0
    try:
        end = prior.epsilon_tilde if notion == "identifiability" else prior.epsilon_hat
        last = float(end())
    except TooLarge:
        last = math.inf
    return smallest, last + _BEYOND if last < math.inf else smallest + _ENDLESS


def exact_json(given: list[ExactCurve]) -> str:
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


def exact_csv(given: list[ExactCurve]) -> str:
    """Return one line per piece, with all coefficients."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["notion", "low", "high", "numerator", "denominator"])
    for curve in given:
        for piece in curve.pieces:
            sides = (" ".join(map(str, side)) for side in (piece.numerator, piece.denominator))
            writer.writerow([curve.notion, repr(piece.low), repr(piece.high), *sides])
    return stream.getvalue()


def exact_table(given: list[ExactCurve]) -> str:
    """Return one line per piece."""
    rows = [["notion", "from", "to", "numerator", "denominator"]]
    for curve in given:
        for piece in curve.pieces:
            ends = down(piece.low), up(piece.high)
            sides = _polynomial(piece.numerator), _polynomial(piece.denominator)
            rows.append([curve.notion, *ends, *sides])
    return f"Smallest distortion as a quotient of polynomials in a = e^epsilon:\n{table(rows)}"


def _polynomial(coefficients: tuple[int, ...]) -> str:
    powers = ["", " a", *(f" a^{k}" for k in range(2, len(coefficients)))]
    terms = [f"{c}{powers[k]}" for k, c in enumerate(coefficients) if c]
    text = " + ".join(terms).replace("+ -", "- ") or "0"
    return text if len(text) <= _SHOWN else f"degree {len(coefficients) - 1} (see --out or --json)"


def exact_figure(given: list[ExactCurve], kind: str) -> bytes:
    """Return the figure of the curves as a file of a kind."""
    ax = given[0].plot()
    for curve in given[1:]:
        curve.plot(ax)
    return saved(ax, kind)
