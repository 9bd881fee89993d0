"""``fastpriv solve``: the best mechanism for a prior, with a certificate."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fastpriv import __version__
from fastpriv._text.encoding import to_json
from fastpriv._text.numbers import down, up
from fastpriv._text.table import table
from fastpriv.cli import files
from fastpriv.cli.mechanisms import add_prior, load_prior, prior_on, spec_of
from fastpriv.cli.parser import add_file, add_force, add_json, examples
from fastpriv.cli.tradeoff import EXACT_NOTIONS
from fastpriv.errors import InvalidInput, described, short
from fastpriv.notions.registry import DESIGNED, NOTIONS

if TYPE_CHECKING:
    from fastpriv._core.validation import Floats, Ints
    from fastpriv.design.exact.solution import ExactSolution
    from fastpriv.priors import Distribution
    from fastpriv.results import Solution

#: The task outside the registry of notions: a mapping with the smallest information about S.
INFERENCE = "inference"
#: Engines of linear programs, as in ``design.problem``, which would load numpy for a help page.
ENGINES = ("auto", "interior", "highs", "first-order")
#: Most cells of a grid: a program takes as many inputs.
_MAX_CELLS = 1 << 11
#: Options for programs over any inputs, costs and neighbours.
_GENERAL = ("metric", "neighbours", "grid")
#: Level of a mechanism that reveals nothing, except for rounding.
_NOTHING = 1e-9


@dataclass(frozen=True)
class Certificate:
    """What was asked for, the solution, and what it was computed from."""

    notion: str
    asked: dict[str, float]
    minimised: str
    solution: Solution
    distortion: float
    channel: dict[str, Any]
    sources: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as plain numbers and words."""
        best = self.solution
        return {
            "format": "fastpriv certificate",
            "version": 1,
            "fastpriv": __version__,
            "notion": self.notion,
            "asked": self.asked,
            "minimised": self.minimised,
            "value": best.value,
            "bound": best.bound,
            "gap": best.value - best.bound,
            "level": best.level,
            "distortion": self.distortion,
            "method": best.method,
            **self.sources,
            "channel": self.channel,
        }

    def __str__(self) -> str:
        best = self.solution
        rows = [
            [f"{_title(self.notion)} (nats)", up(best.level)],
            ["distortion", up(self.distortion)],
            [f"smallest possible {self.minimised}, at least", down(best.bound)],
            ["method", best.method],
        ]
        spec = self.channel["spec"]
        lines = [table(rows), *([f"The channel is {spec}"] if spec else [])]
        if self.sources.get("grid") or self.sources.get("neighbours"):
            lines.append("The level is per unit of distance between databases.")
        if "exact" in self.sources:
            proof = self.sources["exact"]
            lines.append(f"The smallest distortion at ratio {proof['ratio']} is exactly")
            lines.append(f"{proof['value']}, verified in rational arithmetic.")
        if self.notion != "identifiability" and best.level < _NOTHING:
            lines.append("The best output does not depend on the database at all.")
        return "\n".join(lines)


def _title(notion: str) -> str:
    if notion == INFERENCE:
        return "information about S"
    title = NOTIONS[notion].title
    return title if NOTIONS[notion].information else f"{title} level"


def solved(given: argparse.Namespace, dense: bool) -> Certificate:
    """Solve what the options ask for; ``dense`` if the channel will be written as a matrix."""
    _check(given)
    limits = {"gap": given.gap, "time_limit": given.time_limit}
    limits = {name: value for name, value in limits.items() if value is not None}
    if given.notion == INFERENCE:
        return _inference(given, limits)
    if any(getattr(given, name) is not None for name in _GENERAL):
        return _over_inputs(given, limits)
    from fastpriv.design.optimum import solve

    prior = load_prior(given.prior, given.sizes)
    solver = {} if given.solver is None else {"solver": given.solver}
    goals = {"epsilon": given.epsilon, "distortion": given.distortion}
    asked = {name: value for name, value in goals.items() if value is not None}
    best = solve(prior, given.notion, dense=dense, exact=given.exact, **asked, **limits, **solver)
    sources = {"prior": files.source(given.prior), "sizes": given.sizes}
    return Certificate(
        given.notion,
        asked,
        best.minimised,
        best,
        best.distortion,
        {"is": repr(best.structured), "spec": spec_of(best.structured)},
        sources if best.exact is None else sources | {"exact": _proof(best.exact)},
    )


def _proof(exact: ExactSolution) -> dict[str, str | bool]:
    """Return the exact numbers of an optimum, as strings: they are longer than doubles."""
    return {
        "ratio": str(exact.ratio),
        "value": str(exact.value),
        "verified": exact.verify(),
    }


def _check(given: argparse.Namespace) -> None:
    """Refuse options that a task does not use, and require those it needs."""
    if given.exact:
        _check_exact(given)
    wrong: tuple[str, ...] = ("prior", "sizes", "neighbours", "grid", "solver")
    needed = "joint"
    if given.notion != INFERENCE:
        wrong, needed = ("joint",), "prior"
    if given.notion not in (*EXACT_NOTIONS, INFERENCE):
        wrong = ("joint", *_GENERAL, "solver")
    for name in wrong:
        if getattr(given, name) is not None:
            raise InvalidInput(
                f"--{name} must be left out for {given.notion}. See fastpriv solve --help."
            )
    if getattr(given, needed) is None:
        raise InvalidInput(
            f"--{needed} must be given for {given.notion}. See fastpriv solve --help."
        )
    if given.epsilon is not None and given.notion == INFERENCE:
        raise InvalidInput(
            f"--epsilon must be left out: {given.notion} is minimised at a --distortion."
        )
    if given.notion in EXACT_NOTIONS and given.epsilon is None:
        for name in (*_GENERAL, "solver"):
            if getattr(given, name) is not None:
                raise InvalidInput(
                    f"--{name} must come with --epsilon. A --distortion is searched for over "
                    "Hamming distances."
                )
    if given.grid is not None and given.sizes is not None:
        raise InvalidInput("--sizes must be left out: with --grid every cell is a database.")
    searched = given.notion not in ("mutual-information", INFERENCE)
    if None not in (given.gap, given.distortion) and searched:
        raise InvalidInput(
            "--gap must come with --epsilon. Levels at a --distortion are searched to 1e-6."
        )


def _check_exact(given: argparse.Namespace) -> None:
    """Refuse options that do not apply to exact optima."""
    if given.notion not in EXACT_NOTIONS or given.epsilon is None:
        raise InvalidInput("--exact must come with dp or identifiability, and --epsilon.")
    if given.gap is not None or given.time_limit is not None:
        raise InvalidInput("--gap and --time-limit must be left out: an exact optimum has no gap.")
    for name in (*_GENERAL, "solver"):
        if getattr(given, name) is not None:
            raise InvalidInput(
                f"--{name} must be left out: --exact is for Hamming distances and has one method."
            )


def _over_inputs(given: argparse.Namespace, limits: dict[str, float]) -> Certificate:
    """Solve for a cost and neighbours from files, or for the cells of a grid."""
    from fastpriv.design.registry import PROGRAMS

    metric: Any = None
    neighbours: Any = None
    if given.grid is None:
        prior = load_prior(given.prior, given.sizes)
    else:
        prior = _prior_on_cells(given)
        metric = neighbours = _cell_distances(*given.grid)
    if given.metric is not None:
        metric = files.read(given.metric, "the metric")
    if given.neighbours is not None:
        neighbours = _neighbours(given.neighbours, prior.space.size)
    best = PROGRAMS[given.notion](
        prior,
        given.epsilon,
        metric=metric,
        neighbours=neighbours,
        solver=given.solver or "auto",
        **limits,
    )
    tables = {"metric": given.metric, "neighbours": given.neighbours}
    return Certificate(
        given.notion,
        {"epsilon": given.epsilon},
        "distortion",
        best,
        best.value,
        {"is": repr(best.channel), "spec": None},
        {
            "prior": files.source(given.prior),
            "sizes": given.sizes,
            "grid": given.grid,
            **{name: path and files.source(path) for name, path in tables.items()},
        },
    )


def _prior_on_cells(given: argparse.Namespace) -> Distribution:
    """Return the prior of a grid, with a probability for every cell."""
    from fastpriv._core import validation as check
    from fastpriv.spaces import Space

    height, width = given.grid
    check.fits(height * width, "the grid", "use fewer cells", _MAX_CELLS)
    prior = prior_on(given.prior, Space([height * width]))
    if prior.space.size != height * width:
        raise InvalidInput(
            f"--grid must have a cell for each of {short(prior.space.size)} databases of the prior "
            f"{given.prior}; got {height}x{width}."
        )
    return prior


def _cell_distances(height: int, width: int) -> Floats:
    """Return the Euclidean distances between the cells of a grid, numbered row by row."""
    import numpy as np

    cells = np.stack(np.divmod(np.arange(height * width), width), axis=1)
    steps = cells[:, None] - cells
    return np.asarray(np.hypot(steps[..., 0], steps[..., 1]))


def _neighbours(path: str, size: int) -> Floats | Ints:
    """Return a matrix, or pairs of integers: two columns, one line for each pair."""
    import numpy as np

    table = files.read(path, "the neighbours")
    pairs = table.shape[1] == 2 and table.shape != (size, size)
    return table.astype(np.int64) if pairs and (table == np.floor(table)).all() else table


def _inference(given: argparse.Namespace, limits: dict[str, float]) -> Certificate:
    """Find the mapping with the smallest information about S."""
    import numpy as np

    from fastpriv.design.inference import design_mapping
    from fastpriv.measures.distortion import distortion

    joint = files.read(given.joint, "the joint distribution")
    metric = 1.0 - np.eye(joint.shape[1])
    if given.metric is not None:
        metric = files.read(given.metric, "the metric")
    best = design_mapping(joint, metric, given.distortion, **limits)
    return Certificate(
        INFERENCE,
        {"distortion": given.distortion},
        "level",
        best,
        distortion(best.channel, joint.sum(axis=0), metric),
        {"is": repr(best.channel), "spec": None},
        {
            "joint": files.source(given.joint),
            "metric": None if given.metric is None else files.source(given.metric),
            "leakage factor": best.leakage_factor,
            "error bound": best.error_bound,
        },
    )


def _sides(text: str) -> tuple[int, int]:
    """Return the height and width of a grid such as 32x32."""
    height, cross, width = text.partition("x")
    if cross and height.isdecimal() and width.isdecimal() and int(height) and int(width):
        return int(height), int(width)
    raise argparse.ArgumentTypeError(
        f"{described(text)} must be the height and width of a grid, such as 32x32"
    )


TASKS = (*DESIGNED, INFERENCE)


def add(commands: Any) -> argparse.ArgumentParser:
    """Declare the subcommand and its options."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "solve",
        help="find the best mechanism, and write it with a certificate",
        description="Find the mechanism of smallest distortion (expected number of changed\n"
        "records) at a privacy level, or of smallest level at a distortion. The certificate has\n"
        "the level and the distortion of the written numbers, and a proved lower bound for every\n"
        "mechanism.\n\n"
        "  dp, identifiability, mutual-information\n"
        "             --prior with --epsilon or --distortion\n"
        "  pml, individual-capacity\n"
        "             the same, for priors on few databases\n"
        "  inference  --joint, a file with P(S = s, X = x), with --distortion: the output for X\n"
        "             with the smallest information about S",
        epilog=examples(
            "fastpriv solve dp --prior beta-binomial:a=0.5,b=0.8,n=4 --epsilon 1 --out best.csv "
            "--certificate best.json",
            "fastpriv audit best.csv --prior beta-binomial:a=0.5,b=0.8,n=4",
            "fastpriv solve identifiability --prior prior.csv --distortion 0.2 --json",
            "fastpriv solve dp --prior beta-binomial:a=0.5,b=0.8,n=4 --epsilon 1 --exact",
            "fastpriv solve dp --prior uniform --grid 3x3 --epsilon 0.7 --out cells.csv",
            "fastpriv solve dp --prior prior.csv --neighbours edges.csv --epsilon 1 --solver highs",
            "fastpriv solve pml --prior prior.csv --epsilon 0.5 --out leaks.csv",
            "fastpriv solve inference --joint joint.csv --distortion 0.1 --out mapping.npy",
        ),
    )
    parser.add_argument("notion", choices=TASKS, metavar="NOTION", help=", ".join(TASKS))
    add_prior(parser)
    add_file(parser, "--joint", help="inference: .csv or .npy file, a line for each s")
    add_file(
        parser,
        "--metric",
        help="inference, dp, identifiability: .csv or .npy file with the cost of output y for x, "
        "a line for each x (default: number of changed records)",
    )
    add_file(
        parser,
        "--neighbours",
        help="dp, identifiability: .csv or .npy file with pairs x,z of databases (numbers from 0), "
        "a matrix of 0 and 1, or a matrix of distances d: ratios are at most e^(epsilon d)",
    )
    parser.add_argument(
        "--grid",
        type=_sides,
        metavar="HxW",
        help="dp, identifiability: databases are the cells of a grid, such as 32x32, row by row; "
        "distances between cells are the cost and the neighbours, unless files are given",
    )
    goal = parser.add_mutually_exclusive_group(required=True)
    goal.add_argument("--epsilon", type=float, help="privacy level in nats")
    goal.add_argument(
        "--distortion", type=float, help="expected number of changed records, or cost"
    )
    parser.add_argument(
        "--solver",
        choices=ENGINES,
        help=f"dp, identifiability: engine of the linear program, {', '.join(ENGINES)}",
    )
    parser.add_argument("--gap", type=float, help="certified gap to stop at")
    parser.add_argument(
        "--time-limit", type=float, metavar="SECONDS", help="then take the best found so far"
    )
    parser.add_argument(
        "--exact",
        action="store_true",
        help="dp and identifiability: solve in rational arithmetic, and prove the optimum",
    )
    add_file(parser, "--out", metavar="FILE", help="write the channel there: .csv or .npy")
    add_file(parser, "--certificate", metavar="JSON", help="write the certificate there")
    add_force(parser)
    add_json(parser)
    return parser


def run(given: argparse.Namespace) -> str:
    """Return what the subcommand prints."""
    out = certificate = None
    if given.out is not None:
        inputs = given.prior, given.joint, given.metric, given.neighbours
        out = files.target(given.out, given.force, files.SUFFIXES, *inputs)
    if given.certificate is not None:
        certificate = files.target(given.certificate, given.force, (".json",))
    best = solved(given, dense=out is not None)
    page = best.to_dict()
    if out is not None:
        content = files.encoded(best.solution.channel.matrix(), out.suffix)
        page["channel"] |= files.identity(out, content)
        files.write(out, content, given.force)
    if certificate is not None:
        files.write(certificate, (to_json(page) + "\n").encode(), given.force)
    if given.json:
        return to_json(page)
    lines = [str(best)]
    lines += [f"Written to {path}" for path in (out, certificate) if path is not None]
    # An audit measures databases that differ in one record, not other neighbours.
    if out is not None and given.grid is None and given.neighbours is None:
        lines.append(f"To confirm it: {_confirming(given)}")
    return "\n".join(lines)


def _confirming(given: argparse.Namespace) -> str:
    """Return the command that measures again what was written."""
    words = ["fastpriv", "audit", given.out]
    for name in ("prior", "joint"):
        if getattr(given, name) is not None:
            words += [f"--{name}", getattr(given, name)]
    if given.sizes is not None:
        words += ["--sizes", ",".join(map(str, given.sizes))]
    return shlex.join(words)
