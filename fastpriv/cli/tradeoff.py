"""``fastpriv tradeoff``: the best levels over a grid of distortions."""

from __future__ import annotations

import argparse
import io
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from fastpriv._core.extras import optional
from fastpriv._text.numbers import down, up
from fastpriv._text.table import table
from fastpriv.cli import exact, files
from fastpriv.cli.mechanisms import add_prior, load_prior
from fastpriv.cli.parser import add_file, add_force, add_json, examples
from fastpriv.errors import InvalidInput, described
from fastpriv.notions.registry import COMPARED, DESIGNED

if TYPE_CHECKING:
    from fastpriv.design.tradeoff import TradeoffCurve


def add(commands: Any) -> argparse.ArgumentParser:
    """Declare the subcommand and its options."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "tradeoff",
        help="the best privacy levels over a grid of distortions",
        description="Print the least privacy level of any mechanism at each expected distortion\n"
        "(number of changed rows), between proved bounds, as a table, as CSV and as a figure.",
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
        help="least distortion over levels in closed form, for small priors",
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
        curves = exact.curves(given, prior)
        if "out" in outputs:
            files.write(outputs["out"], exact.as_csv(curves).encode(), given.force)
        if "plot" in outputs:
            picture = exact.drawn(curves, outputs["plot"].suffix[1:])
            files.write(outputs["plot"], picture, given.force)
        text = exact.as_json(curves) if given.json else exact.as_table(curves)
        return text if given.json else "\n".join([text, *written])
    if given.levels is not None:
        raise InvalidInput("--levels goes with --exact; a grid is given by --distortions")
    from fastpriv.design.tradeoff import tradeoff_curve

    bar = sys.stderr.isatty() and find_spec("tqdm") is not None
    grid = {} if given.points is None else {"points": given.points}
    curve = tradeoff_curve(prior, list(given.notions), given.distortions, progress=bar, **grid)
    if "out" in outputs:
        files.write(outputs["out"], curve.to_csv().encode(), given.force)
    if "plot" in outputs:
        files.write(outputs["plot"], _drawn(curve, outputs["plot"].suffix[1:]), given.force)
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


def _drawn(curve: TradeoffCurve, kind: str) -> bytes:
    stream = io.BytesIO()
    figure: Any = curve.plot().figure
    figure.savefig(stream, format=kind, dpi=200)
    optional("matplotlib.pyplot", "plot").close(figure)
    return stream.getvalue()


def _numbers(text: str) -> list[float]:
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{described(text)} is no list of numbers") from None
