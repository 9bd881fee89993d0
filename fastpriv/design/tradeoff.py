"""The best privacy level for a distortion, at one point or over a grid."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.clock import Clock
from fastpriv._core.executors import mapping
from fastpriv._core.extras import optional, progress_bar
from fastpriv._core.rounding import roundoff
from fastpriv._core.validation import Floats
from fastpriv._drawing.results import tradeoff as draw_tradeoff
from fastpriv._text.encoding import to_json
from fastpriv._text.tabular import Tabular, written
from fastpriv.design.closed_forms import (
    LEVEL_ERROR,
    constant_mechanism,
    h,
    h_inverse,
    theorem_bracket,
    tilde_upper,
)
from fastpriv.design.rate_distortion import RateDistortion, solve_pd_mip
from fastpriv.design.ratio_programs import has_no_program
from fastpriv.design.registry import PROGRAMS
from fastpriv.errors import GapWarning, InvalidInput, SolverFailure, TooLarge
from fastpriv.notions.registry import COMPARED, DESIGNED, NOTIONS
from fastpriv.priors import Distribution
from fastpriv.priors.base import as_prior
from fastpriv.results import Bracket, Solution

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["TradeoffCurve", "privacy_level", "tradeoff_curve"]

#: Default width of a bracket that counts as found, relative to 1 + level.
_GAP = 1e-6
#: Gap of the programs of a search, as a part of the width.
_PROGRAM_PART = 0.2
#: Smallest gap of a program.
_FINEST = 1e-12
#: Relative error of a distortion: a sum of at most 2^6 rounded products per record.
_ROUNDED = 2.0**-46
#: Level, lower bound and distortion of programs that were solved.
Solved = list[tuple[float, float, float]]
#: Programs that are closer to each other than this share of their distance count as one.
_CLOSE = 0.1
#: Share of the difference of two interpolations by which the better one may be off.
_DOUBT = 0.1
#: Smallest time limit of a program, in seconds.
_AT_LEAST = 1e-3
#: Most points of a curve.
_POINTS = 1 << 20
#: Distortion just before a jump, as a fraction of the distortion of a constant output.
_BEFORE = 1.0 - 1e-4
#: Smallest fall that counts as a jump, relative to 1 + level.
_JUMP = 1e-2
#: Relative difference below which two distortions are the same.
_SAME = 1e-9


def privacy_level(
    prior: Distribution | ArrayLike,
    distortion: float,
    notion: str,
    *,
    gap: float | None = None,
    time_limit: float = math.inf,
    progress: bool = False,
) -> Bracket:
    """Find the best privacy level that any mechanism reaches at an expected distortion.

    Parameters
    ----------
    prior : Distribution or 1-D array
        Distribution of the databases; a vector is the distribution of one record.
    distortion : float
        Largest expected number of changed records, between 0 and n. A constant output counts as
        within the distortion up to a relative rounding error of 1e-14.
    notion : {"dp", "identifiability", "mutual-information", "pml", "individual-capacity"}
        The level to use. The last two are searched over few databases (:func:`solve_pd_pml`,
        :func:`solve_pd_capacity`).
    gap : float, optional
        Width to reach in nats, at least 1e-11. Default: 1e-6 (1 + level), and 1e-9 for mutual
        information.
    time_limit : float
        Seconds for all programs together. After that the current bracket is returned.
    progress : bool
        Show how many programs have been solved. Needs a terminal and tqdm.

    Returns
    -------
    Bracket
        Proved lower and upper bounds, in nats. Their width is rounding if a closed form applies.
        Otherwise it is at most ``gap``, unless the time ends or rounding stops the programs, which
        often happens below 1e-9. If the program is too large, as for long Markov chains, the
        bracket has the bounds of the theorems and may be wide.

    Notes
    -----
    Closed forms hold for identifiability and mutual information up to distortion h(eps_tilde)
    (Wang-Ying-Zhang 2015, Theorems 1 and 2), and for differential privacy below h(eps_hat).

    Examples
    --------
    >>> import fastpriv as fp
    >>> prior = fp.Product.iid([0.6, 0.4], 10)
    >>> fp.h_inverse(1.0, 10, 2) in fp.privacy_level(prior, 1.0, "dp")
    True
    >>> fp.privacy_level(prior, 4.0, "dp")
    Bracket(0, 0)
    """
    prior = as_prior(prior)
    check.word(notion, "notion", DESIGNED)
    cost = check.real(distortion, "distortion", 0.0, float(prior.space.n))
    width = None if gap is None else check.real(gap, "gap", least=1e-11, most=1.0)
    return _bracket(prior, cost, notion, width, time_limit, progress, {})


def _bracket(
    prior: Distribution,
    cost: float,
    notion: str,
    gap: float | None,
    time_limit: float,
    progress: bool,
    solved: dict[str, Solved],
) -> Bracket:
    """Return the level for checked arguments, by the theorems if the program is too large."""
    clock, known = Clock(time_limit), solved.setdefault(notion, [])
    try:
        with progress_bar(None, "program", progress) as bar:
            return _level(prior, cost, notion, gap, Programs(notion, prior, clock, bar, known))
    except TooLarge:
        return theorem_bracket(prior, cost, notion)


class Programs(NamedTuple):
    """Solves the programs of a notion at several levels, within a common time."""

    notion: str
    prior: Distribution
    clock: Clock
    bar: Any
    solved: Solved  # earlier programs of the notion; new ones are added
    width: float = _GAP  # of the bracket to reach, relative to 1 + level

    def until(self, gap: float | None, high: float) -> Programs:
        """Return the same with a width of at most ``gap`` nats for levels of at most ``high``."""
        if gap is None:
            return self
        scale = 1.0 if math.isinf(high) else 1.0 + max(high, 0.0) * (1.0 + LEVEL_ERROR)
        return self._replace(width=gap / scale)

    def at(self, epsilon: float) -> Solution:
        """Solve the program of a level; the width of the bracket shows its gap."""
        gap = max(_PROGRAM_PART * self.width, _FINEST)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GapWarning)
            limit = max(self.clock.left(), _AT_LEAST)
            solution = PROGRAMS[self.notion](self.prior, epsilon, gap=gap, time_limit=limit)
        self.bar.update(1)
        self.solved.append((epsilon, solution.bound, solution.value))
        return solution


def _level(
    prior: Distribution, cost: float, notion: str, gap: float | None, programs: Programs
) -> Bracket:
    if notion == "mutual-information":
        limits: dict[str, float] = {} if gap is None else {"gap": gap}
        limits["time_limit"] = max(programs.clock.left(), _AT_LEAST)
        with warnings.catch_warnings():  # the width of the bracket shows the gap
            warnings.simplefilter("ignore", GapWarning)
            point = solve_pd_mip(prior, cost, **limits)
        return Bracket(point.bound, point.value * (1.0 + LEVEL_ERROR) + _beyond(prior, point, cost))
    joint = notion == "identifiability"
    least = prior.epsilon_x_lower() if joint else 0.0
    if cost >= constant_mechanism(prior).value or math.isinf(least):
        # A constant output reveals nothing; the level of the prior alone remains.
        return Bracket(least, prior.epsilon_x() if joint else 0.0)
    if notion not in COMPARED:
        return _from_theorems(cost, programs, gap)
    if cost == 0.0:
        return Bracket(math.inf, math.inf)
    sizes = [m for m in prior.space.sizes if m > 1]
    plain = h_inverse(cost, len(sizes), sizes)
    closed = prior.epsilon_hat() if notion == "dp" else float(prior.epsilon_tilde())
    if plain <= closed and has_no_program(prior):
        return theorem_bracket(prior, cost, notion)
    if notion == "dp":
        if plain > closed:
            return _around(plain, cost, sizes)
        low = max(plain - prior.epsilon_x(), 0.0)
        return _search(cost, low, max(plain, 0.0), programs.until(gap, plain))
    if plain >= closed:
        return _around(plain, cost, sizes)
    # Beyond some distortion the prior's own level is reached, so try that first.
    low, programs = max(plain, least), programs.until(gap, closed)
    first = low + 0.9 * programs.width * (1.0 + low)
    return _search(cost, low, closed, programs, first)


def _from_theorems(cost: float, programs: Programs, gap: float | None) -> Bracket:
    """Narrow the bounds of the theorems; distortion 0 means the identity where p(x) > 0."""
    prior, notion = programs.prior, programs.notion
    known = theorem_bracket(prior, cost, notion)
    if cost > 0.0:
        return _search(cost, known.lower, known.upper, programs.until(gap, known.upper))
    if notion == "pml":
        return Bracket(known.upper * (1.0 - 4.0 * LEVEL_ERROR), known.upper)
    seen = prior.space.rows(np.flatnonzero(prior.probabilities()))
    values = max(len(np.unique(column)) for column in seen.T)
    return Bracket(math.log(values) * (1.0 - LEVEL_ERROR), known.upper)


def _beyond(prior: Distribution, point: RateDistortion, cost: float) -> float:
    """Bound the information saved by a distortion that rounding put above the requested one.

    The curve is convex and at most H(X) <= ln N at distortion 0, so from c down to ``cost`` it
    rises by at most ln N (c - cost) / c.
    """
    reached = point.distortion * (1.0 + _ROUNDED)
    if reached <= cost:
        return 0.0
    return math.fsum(map(math.log, prior.space.sizes)) * (reached - cost) / reached


def _around(value: float, cost: float, sizes: Sequence[int]) -> Bracket:
    """Return a closed form with its rounding error.

    Records of different sizes are solved by bisection. The slope of h turns the error of their
    summed distortion into an error of the level, which is relatively large for a level close to 0.
    """
    error = LEVEL_ERROR * value
    if len(set(sizes)) > 1:
        odds = ((m - 1.0) * math.exp(-value) for m in sizes)
        slope = math.fsum(t / (1.0 + t) ** 2 for t in odds)
        error += roundoff((len(set(sizes)) + 8.0) * 2.0) * cost / slope
    return Bracket(max(value - error, 0.0), value + error)


def _search(
    cost: float, low: float, high: float, programs: Programs, first: float = math.nan
) -> Bracket:
    """Narrow [low, high] by solving programs; either bound moves only on a certificate.

    Earlier programs narrow the interval at once.
    """
    low, high = low * (1.0 - LEVEL_ERROR), high * (1.0 + LEVEL_ERROR)  # closed forms are rounded
    for level, bound, value in programs.solved:  # what other distortions have proved
        if value * (1.0 + _ROUNDED) <= cost and level < high:
            high = max(low, level)
        elif bound > cost and level > low:
            low = min(high, level)
    while high - low > programs.width * (1.0 + high) and programs.clock.left() > 0.0:
        guess = first if low < first < high else _interpolated(programs, cost, low, high)
        solution = programs.at(guess)
        if solution.value * (1.0 + _ROUNDED) <= cost:
            high = guess
        elif solution.bound > cost:
            low = guess
        else:  # bound and value lie on both sides: step aside
            low, high = _aside(cost, low, guess, high, programs)
            break
    return Bracket(low, high)


def _interpolated(programs: Programs, cost: float, low: float, high: float) -> float:
    """Return a level near which the distortion should be ``cost``, between the bounds.

    The level is interpolated in the logarithms of the distortions of the nearest programs, by a
    line through two and by a parabola through three. The difference of both says how far to go
    past the estimate, so that the bound that is farther away moves.
    """
    logs = {math.log(value / cost): level for level, _, value in programs.solved if value > 0.0}
    near: list[tuple[float, float]] = []
    for at, level in sorted(logs.items(), key=lambda each: abs(each[0])):
        # Of two programs that are close to each other, the slope would be rounding.
        if all(abs(at - other) > _CLOSE * abs(at) for other, _ in near):
            near.append((at, level))
    least, width = 0.4 * programs.width * (1.0 + high), high - low
    if len(near) < 2:
        return 0.5 * (low + high)
    (u, a), (v, b) = near[:2]
    slope = (b - a) / (v - u)
    guess, doubt = a - u * slope, 0.02 * width
    if len(near) > 2:
        w, c = near[2]
        change = u * v * ((c - b) / (w - v) - slope) / (w - u)
        guess, doubt = guess + change, _DOUBT * abs(change)
    nudge = max(min(doubt, 0.25 * width), least)
    guess += nudge if guess - low < high - guess else -nudge
    edge = 0.01 * width
    return min(max(guess, low + edge), high - edge) if width > 0.0 else guess


def _aside(
    cost: float, low: float, middle: float, high: float, programs: Programs
) -> tuple[float, float]:
    """Move both bounds towards a point that no program can distinguish from the answer."""
    step = 0.5 * programs.width * (1.0 + high)
    ends = [low, high]
    for side, sign in enumerate((-1.0, 1.0)):
        for k in count():
            guess = middle + sign * step * 4.0**k
            if not low < guess < high or programs.clock.left() <= 0.0:
                break
            solution = programs.at(guess)
            if (solution.bound > cost, solution.value * (1.0 + _ROUNDED) <= cost)[side]:
                ends[side] = guess
                break
    return ends[0], ends[1]


@dataclass(frozen=True)
class TradeoffCurve(Tabular):
    """Best levels over a grid of distortions, with Theorem 1's bounds beside them.

    Attributes
    ----------
    distortions : ndarray
        The grid.
    lower, upper : dict of ndarray
        Certified bounds on the best level, per notion.
    theorem_lower, theorem_upper : dict of ndarray
        Bounds of Wang-Ying-Zhang 2015, Theorem 1, and of Main Result 1 of its poster, per notion.
        The upper bound for identifiability is at most eps_tilde beyond h(eps_tilde), because the
        posterior response exists there. No program is solved; finite if eps_X is.
    closed_form : dict of (distortion, level)
        Point up to which the best level is h^-1 of the distortion, per notion. Its level is eps_hat
        for differential privacy and eps_tilde for identifiability.
    jumps : dict of (distortion, level, level)
        Points at which the best level falls discontinuously, per notion: the distortion of a
        constant output, an upper bound on the level just before, and the level from there on.
        Absent if the level is continuous or the point is outside the grid.
    beside : dict of (distortion, lower, upper)
        A point just before each jump, with the bounds on its level.
    sizes : tuple of int
        Numbers of values of the records.
    """

    distortions: Floats
    lower: dict[str, Floats]
    upper: dict[str, Floats]
    theorem_lower: dict[str, Floats]
    theorem_upper: dict[str, Floats]
    closed_form: dict[str, tuple[float, float]] = field(default_factory=dict)
    jumps: dict[str, tuple[float, float, float]] = field(default_factory=dict)
    beside: dict[str, tuple[float, float, float]] = field(default_factory=dict)
    sizes: tuple[int, ...] = ()

    def columns(self) -> dict[str, Floats]:
        """Return all columns by name, the distortion first."""
        columns = {"distortion": self.distortions}
        for notion in self.lower:
            columns[f"{notion} lower"] = self.lower[notion]
            columns[f"{notion} upper"] = self.upper[notion]
            for name, table in (("lower", self.theorem_lower), ("upper", self.theorem_upper)):
                if notion in table:
                    columns[f"{notion} theorem {name}"] = table[notion]
        return columns

    def columns_of_table(self) -> dict[str, list[float]]:
        """Return the columns as lists."""
        return {name: column.tolist() for name, column in self.columns().items()}

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the table as JSON, written to ``path`` if one is given.

        Infinite levels are written as "infinite".
        """
        return written(to_json(self.columns()), path)

    def plot(self, ax: Axes | None = None, *, legend: bool | str = True) -> Axes:
        """Draw the curve; see :func:`fastpriv.plot.tradeoff`."""
        titles = {notion: NOTIONS[notion].title for notion in self.lower}
        several = [m for m in self.sizes if m > 1]
        plain = partial(h_inverse, n=len(several), m=several) if several else None
        return draw_tradeoff(self, titles, ax, legend, plain)

    def __repr__(self) -> str:
        return f"TradeoffCurve({len(self.distortions)} distortions, {', '.join(self.lower)})"


def tradeoff_curve(
    prior: Distribution | ArrayLike,
    notions: Sequence[str] = COMPARED,
    distortions: ArrayLike | None = None,
    executor: Executor | Any = None,
    progress: bool = False,
    *,
    points: int = 25,
    time_limit: float = math.inf,
) -> TradeoffCurve:
    """Compute the best level of each notion over a grid of distortions.

    Parameters
    ----------
    prior : Distribution or 1-D array
        Distribution of the databases; a vector is the distribution of one record.
    notions : sequence of str
        Any of "dp", "identifiability", "mutual-information" (the default) and, over few
        databases, "pml" and "individual-capacity".
    distortions : array, optional
        The grid. Default: ``points`` distortions, evenly spaced up to the distortion of a constant
        output.
    executor : concurrent.futures.Executor or dask.distributed.Client, optional
        Runs the points: a process pool, a Dask client or its ``get_executor()``, ...
    progress : bool
        Show a progress bar (needs the extra ``fastpriv[progress]``).
    points : int
        Size of the default grid.
    time_limit : float
        Seconds for the whole curve, shared evenly by its points. A shorter limit gives wider
        brackets, which are still valid.

    Returns
    -------
    TradeoffCurve

    Examples
    --------
    >>> import fastpriv as fp
    >>> curve = fp.tradeoff_curve(fp.Product.iid([0.6, 0.4], 3), ["dp"], [0.3, 0.6, 0.9])
    >>> curve.upper["dp"].round(4).tolist()
    [2.1972, 1.3863, 0.8473]
    """
    prior = as_prior(prior)
    names = [notions] if isinstance(notions, str) else check.items(notions, "notions", "names")
    if not names:
        raise InvalidInput(f"notions must be chosen from {', '.join(DESIGNED)}; got none.")
    for name in names:
        check.word(name, "notions", DESIGNED)
    if distortions is None:
        size = check.integer(points, "points", 1)
        check.fits(size, "the curve", "ask for fewer points", _POINTS)
        grid = constant_mechanism(prior).value * np.arange(1, size + 1) / size
    else:
        grid = np.atleast_1d(check.array(distortions, "distortions").astype(np.float64))
        if grid.ndim != 1:
            raise InvalidInput(f"distortions must be one-dimensional; got shape {grid.shape}.")
    tasks = [(prior, float(cost), name) for name in names for cost in grid]
    closed = _closed_forms(prior, names)
    constant = constant_mechanism(prior).value
    before, beyond = constant * _BEFORE, 1.0 + _SAME
    reached = grid.size > 0 and grid.min() < before and constant <= grid.max() * beyond
    falling = [name for name in names if not NOTIONS[name].information] if reached else []
    tasks += [(prior, constant * _BEFORE, name) for name in falling]
    seconds = Clock(time_limit).share(len(tasks))
    # Here, one point after another, each starts from the programs of the others.
    point = partial(_point, seconds, dict[str, Solved]() if executor is None else None)
    results: Any = mapping(executor)(point, tasks)
    if progress:
        results = optional("tqdm", "progress").tqdm(results, total=len(tasks), unit="level")
    brackets = list(results)
    per_notion = [brackets[k * len(grid) : (k + 1) * len(grid)] for k in range(len(names))]
    lower = {n: np.array([b.lower for b in bs]) for n, bs in zip(names, per_notion, strict=True)}
    upper = {n: np.array([b.upper for b in bs]) for n, bs in zip(names, per_notion, strict=True)}
    jumps, beside = {}, {}
    for name, before in zip(falling, brackets[len(names) * len(grid) :], strict=True):
        at, level = closed.get(name, (0.0, 0.0))
        top = level if abs(at - constant) <= _SAME * constant else before.upper
        after = prior.epsilon_x() if name == "identifiability" else 0.0
        if before.lower > after + _JUMP * (1.0 + after):
            jumps[name] = constant, top, after
            beside[name] = constant * _BEFORE, before.lower, before.upper
    theorems = _theorem_1(prior, names, grid)
    sizes = tuple(prior.space.sizes)
    return TradeoffCurve(grid, lower, upper, *theorems, closed, jumps, beside, sizes)


def _closed_forms(prior: Distribution, notions: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return distortion and level up to which the best level is h^-1, if known."""
    result, space = dict[str, tuple[float, float]](), prior.space
    for notion, end in (("dp", prior.epsilon_hat), ("identifiability", prior.epsilon_tilde)):
        if notion in notions:
            with suppress(TooLarge):
                level = float(end())
                result[notion] = float(h(level, space.n, space.sizes)), level
    return result


def _point(
    seconds: float, solved: dict[str, Solved] | None, task: tuple[Distribution, float, str]
) -> Bracket:
    prior, given, notion = task
    cost = check.real(given, "distortion", 0.0, float(prior.space.n))
    try:
        return _bracket(prior, cost, notion, None, seconds, False, {} if solved is None else solved)
    except SolverFailure:  # keep the other points of the curve
        return theorem_bracket(*task)


def _theorem_1(
    prior: Distribution, notions: Sequence[str], grid: Floats
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Return the bounds of Wang-Ying-Zhang 2015, Theorem 1, at every distortion."""
    sizes = [m for m in prior.space.sizes if m > 1]
    if not sizes:
        return {}, {}
    plain = h_inverse(np.minimum(grid, len(sizes)), len(sizes), sizes)
    spread = prior.epsilon_x()
    with np.errstate(invalid="ignore"):
        least = np.nan_to_num(np.maximum(plain - spread, 0.0), nan=0.0, posinf=math.inf)
    lower = {"dp": least, "identifiability": np.maximum(plain, spread)}
    tilde = tilde_upper(prior)
    lower["identifiability"] = np.where(plain >= tilde, plain, lower["identifiability"])
    # Beyond h(eps_tilde) the posterior response at eps_tilde has a smaller distortion.
    beyond = np.minimum(np.maximum(plain, 0.0) + spread, max(tilde, spread))
    upper = {
        "dp": np.maximum(plain, 0.0),
        "identifiability": np.where(plain >= tilde, plain, beyond),
    }
    keep = set(notions)
    return (
        {name: values for name, values in lower.items() if name in keep},
        {name: values for name, values in upper.items() if name in keep},
    )
