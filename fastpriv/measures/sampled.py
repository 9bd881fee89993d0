"""Leakage of a black box from samples: brackets that hold with a stated probability."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices import samples
from fastpriv._matrices.samples import Box
from fastpriv._text.numbers import down, up
from fastpriv.errors import InvalidInput, described
from fastpriv.priors import Distribution
from fastpriv.priors.base import as_prior
from fastpriv.results import Bracket, Brackets
from fastpriv.spaces import Space

__all__ = ["SampledLeakage", "leakage_from_counts", "leakage_from_samples"]

#: Most cells of the table of counts.
_LARGEST = 1 << 22
#: Padding of logarithms of bounds.
_LOG = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class SampledLeakage:
    """Brackets of the leakage of a mechanism, from draws.

    All brackets hold at once with probability at least 1 - beta over the draws, for any number of
    draws. Levels are in nats. Measures that need a prior are None if no prior was given.

    Attributes
    ----------
    dp_level : Bracket
        Differential privacy level. The lower bound is an audit. The upper bound is infinite if some
        output was never drawn from some database.
    maximal_leakage : Bracket
        ln sum_y max_x p(y|x).
    mutual_information, min_entropy_leakage : Bracket or None
        Under the prior.
    pml : Brackets or None
        Pointwise maximal leakage of every output, provided that it can occur. With an unknown prior
        the upper bound is infinite if the probability of the output may be zero.
    pml_level : Bracket or None
        Pointwise maximal leakage of the worst output.
    lower, upper : arrays of shape (N, K)
        Bounds on p(y|x).
    draws : int
        Number of draws.
    beta : float
        Upper bound on the probability that some bracket is wrong.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.leakage_from_counts([[7_311, 2_689], [2_702, 7_298]], prior=[0.5, 0.5])
    SampledLeakage(20,000 draws, beta=0.05)
      dp_level             [0.9477, 1.05]
      maximal_leakage      [0.3651, 0.3926]
      mutual_information   [0.1005, 0.1205]
      min_entropy_leakage  [0.3651, 0.3926]
      pml_level            [0.3655, 0.393]
    """

    dp_level: Bracket
    maximal_leakage: Bracket
    mutual_information: Bracket | None
    min_entropy_leakage: Bracket | None
    pml: Brackets | None
    pml_level: Bracket | None
    lower: Floats
    upper: Floats
    draws: int
    beta: float

    def __repr__(self) -> str:
        names = (
            "dp_level",
            "maximal_leakage",
            "mutual_information",
            "min_entropy_leakage",
            "pml_level",
        )
        lines = [f"SampledLeakage({self.draws:,} draws, beta={self.beta:g})"]
        for name in names:
            value: Bracket | None = getattr(self, name)
            if value is not None:
                lines.append(f"  {name:<20} [{down(value.lower, 4)}, {up(value.upper, 4)}]")
        return "\n".join(lines)


def leakage_from_samples(
    x: ArrayLike,
    y: ArrayLike,
    inputs: int | Space,
    outputs: int,
    prior: Distribution | ArrayLike | str | None = None,
    *,
    beta: float = 0.05,
) -> SampledLeakage:
    """Bound the leakage of a black box from draws of inputs x and their outputs y.

    Parameters
    ----------
    x : integer array of length k, or databases of shape (k, n)
        The input of each draw. The choice of inputs must not depend on the outputs.
    y : integer array of length k
        The output of each draw, 0 .. outputs - 1. Draws must be independent given the inputs.
    inputs : int or Space
        Number of inputs, or their space. With a number, all inputs are neighbours.
    outputs : int
        Number of possible outputs. Draws cannot bound the leakage of outputs that are not listed.
    prior : Distribution, 1-D array, "drawn" or None
        The distribution of the inputs if it is known. ``"drawn"`` if x are independent draws from
        an unknown prior. None for the measures that need no prior.
    beta : float
        Upper bound on the probability that some bracket is wrong.

    Returns
    -------
    SampledLeakage
        Cost O(k + N K log K).

    Notes
    -----
    This function calls :func:`leakage_from_counts`; see its notes.

    Examples
    --------
    >>> import fastpriv as fp
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> channel = fp.HammingChannel(2, 2, 1.0)
    >>> x = rng.integers(0, 2, (20_000, 2))
    >>> y = channel.output_space.index(channel.sample(x, rng=rng))
    >>> sampled = fp.leakage_from_samples(x, y, channel.space, 4, fp.Uniform(2, 2))
    >>> fp.dp_level(channel) in sampled.dp_level
    True
    """
    space = inputs if isinstance(inputs, Space) else Space([check.integer(inputs, "inputs", 1)])
    count = check.integer(outputs, "outputs", 1)
    check.fits(space.size * count, "the table of counts", "use fewer outputs", _LARGEST)
    given, seen = check.array(x, "x"), check.array(y, "y")
    if given.ndim == 2:
        given = np.asarray(space.index(check.rows(given, space.sizes)))
    for values, most, name in ((given, space.size, "x"), (seen, count, "y")):
        if values.ndim != 1 or (values.size and values.dtype.kind not in "iu"):
            raise InvalidInput(
                f"{name} must be one integer for each draw; got shape {values.shape} of "
                f"{values.dtype}."
            )
        if values.size and not (values.min() >= 0 and values.max() < most):
            wrong = values[(values < 0) | (values >= most)][0]
            raise InvalidInput(f"{name} must be in 0 .. {most - 1}; got {wrong}")
    if len(given) != len(seen):
        raise InvalidInput(
            f"x and y must have one entry for each draw; got {len(given)} and {len(seen)}."
        )
    cells = given.astype(np.int64) * count + seen.astype(np.int64)
    counts = np.bincount(cells, minlength=space.size * count).reshape(space.size, count)
    return _measured(counts, space, prior, beta)


def leakage_from_counts(
    counts: ArrayLike,
    prior: Distribution | ArrayLike | str | None = None,
    *,
    space: Space | ArrayLike | None = None,
    beta: float = 0.05,
) -> SampledLeakage:
    """Bound the leakage of a black box from counts of inputs and outputs.

    Parameters
    ----------
    counts : integer array of shape (N, K)
        ``counts[x, y]``, the number of draws of output y from input x. A row of zeros is an input
        without draws.
    prior : Distribution, 1-D array, "drawn" or None
        The distribution of the inputs if it is known. ``"drawn"`` if the inputs are independent
        draws from an unknown prior. None for the measures that need no prior.
    space : Space or sequence of int, optional
        Space of the N databases, which defines neighbours. By default all inputs are neighbours.
    beta : float
        Upper bound on the probability that some bracket is wrong.

    Returns
    -------
    SampledLeakage
        Every bracket holds for the given sample size, not only asymptotically. Cost O(N K log K).

    Notes
    -----
    Every p(y|x) gets a Clopper-Pearson interval. By the union bound all intervals hold at once with
    probability at least 1 - beta. With ``prior="drawn"`` this includes intervals of every p(x, y),
    p(x) and p(y). Brackets are bounds over all distributions within these intervals:

    - I(X; Y) is at most sum_x p(x) D(W_x || q) for every distribution q, and at least
      sum p(x, y) ln V(x|y)/p(x) for every V. Over the intervals, the first is bounded by chords
      and the second is linear. Both q and V are improved in turn.
    - Posterior vulnerability is at least the success probability of one guessing strategy. It is at
      most a sum of largest upper bounds, less the mass above one in a row.
    - l(X -> y) = ln max_x p(y|x)/p(y) is extreme at bounds of the intervals.

    Examples
    --------
    >>> import fastpriv as fp
    >>> sampled = fp.leakage_from_counts([[90, 10], [10, 90]])
    >>> sampled.dp_level  # surely not private below the lower end
    Bracket(1.464535968, 3.08248066)
    """
    given = check.array(counts, "counts")
    if given.ndim != 2 or given.size == 0 or given.dtype.kind not in "iu" or given.min() < 0:
        raise InvalidInput(
            "counts[x, y] must hold the number of draws of every output from every input, whole "
            f"numbers of at least 0; got shape {given.shape} of {given.dtype}."
        )
    check.fits(given.size, "the table of counts", "use fewer outputs", _LARGEST)
    if int(given.max()) > 1 << 40:
        raise InvalidInput(f"counts must be at most 2^40; got {int(given.max())}.")
    if space is None:
        space = prior.space if isinstance(prior, Distribution) else Space([len(given)])
    space = space if isinstance(space, Space) else Space(space)
    if space.size != len(given):
        raise InvalidInput(
            f"counts must have a row for each of {space.size} databases; got {len(given)}."
        )
    return _measured(given.astype(np.int64), space, prior, beta)


def _measured(
    counts: Ints, space: Space, prior: Distribution | ArrayLike | str | None, beta: float
) -> SampledLeakage:
    beta = check.real(beta, "beta", least=1e-300, most=0.5)
    N, K = counts.shape
    if isinstance(prior, str) and prior != "drawn":
        raise InvalidInput(
            f'prior must be a distribution, "drawn" or None; got {described(prior)}.'
        )
    drawn = isinstance(prior, str)
    law = None if prior is None or isinstance(prior, str) else as_prior(prior, space)
    rows_sides = N * samples.sides(K)
    cell_sides = (samples.sides(N * K) + samples.sides(N) + samples.sides(K)) if drawn else 0
    each = beta / max(1, rows_sides + cell_sides)
    table, draws = counts.astype(np.float64), counts.sum(axis=1, keepdims=True).astype(np.float64)
    rows = samples.clopper_pearson(table, draws, each).tightened()
    centre = (table + 0.5) / (draws + 0.5 * K)
    own = _Own()
    if law is not None:
        own = _known(rows, law.probabilities(), centre)
    elif drawn:
        own = _drawn(table, rows, each)
    return SampledLeakage(
        _dp(rows, space),
        _logs(*samples.best_guess(rows, np.ones(N), centre)),
        own.information,
        own.guess,
        own.pml,
        own.pml_level,
        rows.low,
        rows.high,
        int(counts.sum()),
        beta,
    )


class _Own(NamedTuple):
    """Measures that depend on the prior."""

    information: Bracket | None = None
    guess: Bracket | None = None
    pml: Brackets | None = None
    pml_level: Bracket | None = None


def _known(rows: Box, prior: Floats, centre: Floats) -> _Own:
    """Bound the measures that depend on a known prior."""
    lower, upper = samples.information_of_rows(rows, prior, centre)
    live = prior > 0.0
    entropy = -float((prior[live] * np.log(prior[live])).sum())
    most = min(entropy, math.log(rows.low.shape[1])) + _LOG
    information = Bracket(min(lower, most), min(upper, most))
    low, high = samples.best_guess(rows, prior, centre)
    top = float(prior.max())
    guess = _logs(low / top, min(1.0, high) / top)
    # l(X -> y) grows with p(y|x) at its largest and falls with the others.
    joint_low, joint_high = prior[:, None] * rows.low, prior[:, None] * rows.high
    # Quotients of probabilities of 1e-310 may overflow; infinity is a valid upper bound.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        most_others = joint_high.sum(axis=0) - joint_high
        least_others = np.maximum(joint_low.sum(axis=0) - joint_low - _LOG * joint_low.sum(), 0.0)
        least = np.where(rows.low > 0.0, rows.low / (joint_low + most_others), 0.0)[live]
        largest = (rows.high / (joint_high + least_others))[live]
    return _Own(information, guess, *_pointwise(least.max(axis=0), largest.max(axis=0)))


def _drawn(table: Floats, rows: Box, each: float) -> _Own:
    """Bound the measures that depend on an unknown prior of the inputs."""
    shape, whole = table.shape, float(table.sum())

    def bounded(counts: Floats) -> Box:
        return samples.clopper_pearson(counts.reshape(1, -1), np.array(whole), each).tightened()

    cells, inputs, outputs = (bounded(c) for c in (table, table.sum(axis=1), table.sum(axis=0)))
    centre = (table + 0.5) / (whole + 0.5 * table.size)
    lower, upper = samples.information_of_cells(cells, inputs, centre.reshape(1, -1), shape)
    most = math.log(min(shape)) + _LOG
    information = Bracket(min(lower, most), min(upper, most))
    low, high = samples.best_cells(cells, centre, shape)
    with np.errstate(divide="ignore"):
        before = float(inputs.low.max()), float(inputs.high.max())
        guess = _logs(low / before[1], float(np.divide(min(1.0, high), before[0])))
        least = rows.low.max(axis=0) / outputs.high[0]
        by_cells = cells.high.reshape(shape) / inputs.low.T
        largest = np.minimum(rows.high, by_cells).max(axis=0) / outputs.low[0]
    return _Own(information, guess, *_pointwise(least, largest))


def _pointwise(least: Floats, largest: Floats) -> tuple[Brackets, Bracket]:
    """Return the leakages of all outputs, and of the worst one, from bounds on the ratios."""
    lower = np.maximum(np.log(np.maximum(least, 1.0)) - _LOG, 0.0)
    upper = np.maximum(np.log(largest), 0.0) + _LOG
    return Brackets(lower, upper), Bracket(float(lower.max()), float(upper.max()))


def _logs(low: float, high: float) -> Bracket:
    """Return the bracket of the logarithm of a ratio that is at least 1."""
    lower = max(0.0, math.log(low) - _LOG) if low > 1.0 else 0.0
    return Bracket(lower, max(lower, math.log(max(high, 1.0)) + _LOG))


def _dp(rows: Box, space: Space) -> Bracket:
    """Bound the largest ln p(y|x)/p(y|x') over neighbours and outputs."""
    lower, upper = 0.0, 0.0
    outer, inner = 1, space.size
    with np.errstate(divide="ignore", invalid="ignore"):
        for m in space.sizes:
            inner //= m
            shape = outer, m, inner, rows.low.shape[1]
            low, high = (side.reshape(shape) for side in rows)
            outer *= m
            if m == 1:
                continue
            lower = max(lower, float(np.log(low.max(axis=1) / high.min(axis=1)).max()))
            for other in range(m):
                top = np.delete(high, other, axis=1).max(axis=1)
                upper = max(upper, float(np.log(top / low[:, other]).max()))
    lower = max(0.0, lower - _LOG)
    return Bracket(lower, max(lower, upper + _LOG))
