"""Figures of a mechanism: leakage of its outputs, constrained capacity, maps of cells."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastpriv._core import validation as check
from fastpriv._drawing.safe import stairs
from fastpriv._drawing.style import FAMILY, INK, axes, band, finish, number
from fastpriv.errors import InvalidInput, TooLarge, short
from fastpriv.measures.constrained import balance_and_capacity
from fastpriv.measures.disclosure import disclosure_threshold
from fastpriv.measures.inputs import as_channel, as_pair
from fastpriv.measures.pointwise.database import leakage_at, leakage_levels, leakages

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from fastpriv._core.validation import Floats, Ints
    from fastpriv.channels import AbstractChannel
    from fastpriv.priors import Distribution

__all__ = ["balance", "cells", "leakage"]

#: Most outputs that are listed: about a second.
_LISTED = 1 << 20
#: Most outputs that get a bar with a name each: more would overlap.
_NAMED = 24
#: Rows of databases that are sampled together.
_SAMPLED = 1 << 22
#: Worst outputs that are rarer than this are looked at on a logarithmic axis.
_RARE = 1e-2
#: Steps of a curve are merged where a picture of so many points in height does not show them.
_POINTS = 1000
#: A threshold so many times above the picture is not shown in it.
_FAR = 4.0


def leakage(
    channel: AbstractChannel | ArrayLike,
    prior: Distribution | ArrayLike,
    *,
    draws: int = 100,
    rng: int = 0,
    ax: Axes | None = None,
    legend: bool | str = True,
) -> Axes:
    """Draw the pointwise maximal leakage of every output, as wide as the output is likely.

    Outputs stand side by side, most leaking first, so that the height over a probability q is
    what the q most leaking part of the outputs exceeds. Lines mark the level, which is the
    leakage of the worst output, and :func:`fastpriv.disclosure_threshold`.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    prior : Distribution or 1-D array
        Law of the databases.
    draws, rng : int
        Where there are more than 2^20 outputs, so many are drawn at random, from this seed; the
        figure states that.
    ax, legend
        As for :func:`profile`.

    Returns
    -------
    matplotlib Axes
        Bars with the names of the outputs for at most 24 of them, else a curve; on a logarithmic
        axis where the worst output is rarer than 1%. Cost as for :func:`fastpriv.pml`.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = [[0.6, 0.2, 0.1, 0.1], [0.3, 0.4, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]]
    >>> ax = fp.plot.leakage(channel, [0.5, 0.3, 0.2])
    >>> ax.get_xlabel()
    'probability of leaking at least as much'
    """
    mechanism, given = as_pair(channel, prior)
    outputs = _outputs(
        mechanism, given, check.integer(draws, "draws", 1), check.integer(rng, "rng", 0)
    )
    ax = axes(ax)
    shown = outputs.leakages[np.isfinite(outputs.leakages)]
    top = 1.15 * max([*shown[:1], outputs.level if math.isfinite(outputs.level) else 0.0]) or 1.0
    _draw_steps(ax, outputs, top)
    label = f"level {number(outputs.level)}{outputs.worst}"
    ax.axhline(outputs.level, color=FAMILY[1], linestyle="--", linewidth=1.2, label=label)
    threshold = disclosure_threshold(given)
    label = f"disclosure threshold {number(threshold)}"
    ax.axhline(threshold, color=INK, linestyle=":", linewidth=1.2, label=label)
    if threshold <= _FAR * top:
        top = max(top, 1.15 * threshold)
    ax.set_ylim(0.0, top)
    finish(
        ax,
        "probability of leaking at least as much",
        "leakage of the output (nats)",
        outputs.title,
        legend=legend,
    )
    return ax


class _Leaking(NamedTuple):
    """Outputs, most leaking first."""

    leakages: Floats
    probabilities: Floats
    names: list[str]
    level: float
    title: str
    worst: str = ""


def _outputs(channel: AbstractChannel, prior: Distribution, draws: int, seed: int) -> _Leaking:
    """Every output that can occur, or some drawn at random where there are too many."""
    size = channel.output_count
    try:
        level = leakage_levels(channel, prior)[0]
    except TooLarge:
        level = math.nan
    if size <= _LISTED:
        above, masses = leakages(channel, prior).above, channel.output(prior).pmf()
        # In the order of their numbers where leakages differ by rounding only.
        scale = above[np.isfinite(above)].max(initial=0.0) or 1.0
        order = np.argsort(-np.round(above / scale, 12), kind="stable")
        # Outputs that leak can occur, even if their probability underflows.
        order = order[(masses[order] > 0.0) | (above[order] > 0.0)]
        names = [_name(channel, channel.output_row(y)) for y in order[:_NAMED]]
        worst_mass = number(masses[order[0]]) if masses[order[0]] > 0.0 else "below 1e-300"
        title = f"{size:,} outputs; the worst has probability {worst_mass}"
        worst = f": output {names[0]}"
        return _Leaking(above[order], masses[order], names, level, title, worst)
    rng = np.random.default_rng(seed)
    block = max(1, _SAMPLED // channel.space.n)
    counts = [min(block, draws - start) for start in range(0, draws, block)]
    drawn = [y for count in counts for y in channel.sample(prior.sample(count, rng), rng)]
    rows = [y if np.ndim(y) else channel.output_row(y) for y in drawn]
    sampled = np.sort([leakage_at(channel, prior, np.asarray(y, np.int64)) for y in rows])[::-1]
    title = f"{draws:,} of {short(size)} outputs, drawn at random"
    return _Leaking(sampled, np.full(draws, 1.0 / draws), [], level, title)


def _name(channel: AbstractChannel, y: Ints) -> str:
    """Write an output: its number, or its records."""
    narrow = max(channel.output_space.sizes) <= 10
    text = ("" if narrow else " ").join(map(str, y.tolist()))
    return text if len(text) <= 16 else f"{text[:13]}..."


def _draw_steps(ax: Axes, outputs: _Leaking, top: float) -> None:
    """Draw outputs side by side: bars with names, or a curve."""
    heights = np.minimum(outputs.leakages, top)
    ends = np.cumsum(outputs.probabilities)
    ends /= ends[-1]
    bars = len(ends) <= _NAMED
    rare = not bars and outputs.names != [] and ends[0] < _RARE
    starts = np.append(0.0, ends[:-1])
    if rare:
        starts = np.maximum(starts, ends[ends > 0.0][0] / 3.0)
    if not bars:  # steps too narrow to see are one, as high as the highest
        first = np.append(True, np.diff(np.rint(_POINTS * heights / top)) != 0.0)
        starts, heights = starts[first], heights[first]
    edges = np.append(starts, 1.0)
    ax.stairs(heights, edges, fill=True, color=FAMILY[0], alpha=0.25, linewidth=0)
    ax.stairs(heights, edges, baseline=0.0, color=FAMILY[0], linewidth=1.2)
    if bars:
        ax.vlines(starts[1:], 0.0, heights[1:], color=FAMILY[0], linewidth=0.8)
        _write_names(ax, outputs, edges, heights)
    ax.set_xscale("log" if rare else "linear")
    ax.set_xlim(edges[0], 1.0)


def _write_names(ax: Axes, outputs: _Leaking, edges: Floats, heights: Floats) -> None:
    """Name the bars that are wide enough for it."""
    for j, name in enumerate(outputs.names):
        text = name if math.isfinite(outputs.leakages[j]) else f"{name}: infinite"
        if outputs.probabilities[j] > 0.01 + 0.024 * len(text):
            ax.annotate(
                text,
                (0.5 * (edges[j] + edges[j + 1]), heights[j]),
                xytext=(0, 2),
                textcoords="offset points",
                ha="center",
                color=FAMILY[0],
            )


def balance(
    channel: AbstractChannel | ArrayLike,
    points: int = 17,
    *,
    gap: float = 1e-2,
    time_limit: float = 2.0,
    ax: Axes | None = None,
    legend: bool | str = True,
) -> Axes:
    """Draw constrained capacity and balance function over b, each as a band between its bounds.

    Both are monotone in b, so the stairs between computed values are bounds as well.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    points : int
        Values of b, evenly from 0 to ln N.
    gap, time_limit : float
        As for :func:`fastpriv.constrained_capacity`; the time is for each point.
    ax, legend
        As for :func:`profile`.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.plot.balance(fp.HammingChannel(2, 2, 1.0), points=5).get_xlabel()
    'entropy that every adversary lacks (nats)'
    """
    mechanism = as_channel(channel)
    count = check.integer(points, "points", 2, check.MAX_POINTS)
    grid = np.linspace(0.0, np.log(mechanism.space.size), count)
    gained, left = balance_and_capacity(mechanism, grid, gap, time_limit)
    ax = axes(ax)
    for bracket, colour, style, name, rising in (
        (left, FAMILY[0], "-", "information about an individual", False),
        (gained, FAMILY[1], "--", "balance function: what is gained", True),
    ):
        look: Any = {"color": colour, "linestyle": style, "linewidth": 1.0}
        band(ax, grid, bracket.lower, bracket.upper, name, rising=rising, **look)
        ax.plot(*stairs(grid, bracket.lower, not rising), **look)
    ax.set_ylim(bottom=0.0)
    finish(
        ax,
        "entropy that every adversary lacks (nats)",
        "largest information, and its decrease (nats)",
        "between proved bounds",
        legend=legend,
    )
    return ax


def cells(
    channel: AbstractChannel | ArrayLike,
    grid: tuple[int, int],
    at: tuple[int, int] | None = None,
    *,
    metric: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a map of a mechanism on the cells of a grid.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism. Input x is the cell in row x // width and column x % width.
    grid : (int, int)
        Height and width of the grid, in cells.
    at : (int, int), optional
        Row and column of a cell: the map shows the distribution of its outputs, which are the same
        cells. Default: the map shows the expected cost of every cell.
    metric : 2-D array, optional
        ``metric[x, y]``, the cost of output y for cell x. Default: the distance of the cells.
    ax : matplotlib Axes, optional
        Where; by default new ones.

    Returns
    -------
    matplotlib Axes
        With a colour bar. A cross marks ``at``.

    Examples
    --------
    >>> import fastpriv as fp
    >>> far = fp.mechanisms.planar_geometric((5, 4), 0.7)
    >>> fp.plot.cells(far, (5, 4), at=(2, 1)).get_title()
    'distribution of the outputs of cell (2, 1)'
    """
    mechanism = as_channel(channel)
    height, width = (check.integer(side, "grid", 1) for side in _pair(grid, "grid"))
    count = mechanism.space.size
    if height * width != count:
        raise InvalidInput(
            f"grid must have a cell for each of {count} inputs; got {height} x {width} cells. "
            "Give the height and the width."
        )
    table = mechanism.matrix()
    square = table.shape[1] == count
    if at is None:
        if metric is None and not square:
            raise InvalidInput(
                f"metric must be given if the {table.shape[1]} outputs are not the {count} cells. "
                "Give the cost of every output for every cell."
            )
        cost = _cell_distances(height, width) if metric is None else check.metric(metric, count)
        shown, title, label = (table * cost).sum(axis=1), "expected cost of every cell", "cost"
    else:
        if not square:
            raise InvalidInput(
                f"at needs a mechanism whose outputs are the {count} cells; this one has "
                f"{table.shape[1]} outputs. Leave out at."
            )
        row, column = _pair(at, "at")
        row = check.integer(row, "at", 0, height - 1)
        column = check.integer(column, "at", 0, width - 1)
        shown, label = table[row * width + column], "probability"
        title = f"distribution of the outputs of cell ({row}, {column})"
    ax = axes(ax, (5.4, 4.4))
    image = ax.imshow(shown.reshape(height, width), cmap="Blues", vmin=0.0)
    if at is not None:
        ax.plot(column, row, "x", color=FAMILY[1], markersize=9, markeredgewidth=2.0)
    figure: Any = ax.figure
    figure.colorbar(image, ax=ax, label=label)
    ax.set_title(title, fontsize="small")
    ax.set_xlabel("column of the grid", fontsize="small")
    ax.set_ylabel("row of the grid", fontsize="small")
    return ax


def _pair(value: object, name: str) -> list[Any]:
    """Return the two parts of a pair."""
    parts = check.items(value, name, "a row and a column")
    if len(parts) != 2:
        raise InvalidInput(f"{name} must be two integers; got {len(parts)} values.")
    return parts


def _cell_distances(height: int, width: int) -> Floats:
    """Return the Euclidean distances between the cells of a grid, numbered row by row."""
    places = np.stack(np.divmod(np.arange(height * width), width), axis=1)
    steps = places[:, None] - places
    return np.asarray(np.hypot(steps[..., 0], steps[..., 1]))
