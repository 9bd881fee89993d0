"""What the outputs around a record of a Markov chain reveal about it.

Given record i, the outputs before it and after it are independent. A message stands for the outputs
on one side, as the vector of its probabilities for the values of record i. The outputs far from the
record are left out for a lower bound on information. For an upper bound, the record at the end of
the window is revealed in their place. Both bounds converge geometrically in the length of the
window.

Many messages are nearly proportional. For a lower bound these are merged, which is a
post-processing. For an upper bound a message is divided between messages on a grid, whose mean is
its own share of every value; the message is then a post-processing of these.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from fastpriv._core.validation import Floats
from fastpriv._structure.rows import RowKernels
from fastpriv.priors.markov import Markov

#: Most entries of the joint distribution of the messages on both sides and the record.
_ENTRIES = 1 << 22
#: Ratios to which messages about one bit are merged, at most.
_RATIOS = 1 << 11
#: Most outputs of a window of bits, whose messages are merged.
_WINDOW = 4096
#: Messages about more values that are kept on the way to a record.
_MESSAGES = 1 << 11
#: Grids that are tried for messages about more than two values.
_FITS = 3
#: Share of the allowed messages that a grid should have.
_FILLED = 0.8
#: Most outputs of a window of records with more values.
_WIDE_WINDOW = 256
#: A window is long enough if its first message has lost its influence to this factor.
_FORGOTTEN = 1e-12
#: The same for messages about more values, whose merging has larger errors.
_NEARLY_FORGOTTEN = 1e-5
#: Bound on the total variation by which rounding moves messages in one step, for each value: sums
#: of m products, and the division between m messages of a grid.
_SHIFTED = 2.0**-49
#: Smallest probability in a logarithm.
_LEAST = 1e-300
#: Relative error of the joint distributions of messages and records.
CHAIN_ERROR = 1e-12


class Contexts(NamedTuple):
    """Joint distributions [context, setting of a group] for a lower and an upper bound."""

    lower: Floats
    upper: Floats
    #: Bound on the total variation by which rounding moves a joint distribution.
    lost: float = 0.0

    @property
    def exact(self) -> bool:
        """Whether both bounds are the same: no output was left out and no message merged."""
        return self.lower is self.upper


def chain_contexts(chain: Markov, kernels: RowKernels, i: int) -> Contexts:
    """Return what the outputs of all other records of a chain reveal about record i.

    A chain of bits has a long window with merged messages. Chains of more values have that window
    and a short one without merging; of each bound the tighter one is returned.
    """
    sides = (i > 0) + (i < chain.space.n - 1)
    each = int((_ENTRIES // len(chain.initial)) ** (1.0 / max(sides, 1)))
    best: list[Floats | None] = [None, None]
    known, lost = [-math.inf, math.inf], 0.0
    for merging in [True] if len(chain.initial) == 2 else [False, True]:
        steps = _length(chain, kernels, each, merging)
        for upper in (False, True):
            before, whole = _before(chain, kernels, i, each, upper, steps)
            after, complete = _after(chain, kernels, i, each, upper, steps)
            joint = (before[:, None, :] * after).reshape(-1, before.shape[1])
            if whole and complete:
                return Contexts(joint, joint)
            if len(chain.initial) > 2:
                lost = 2.0 * steps * len(chain.initial) * _SHIFTED
            told = _minus_entropy(joint)
            if told < known[upper] if upper else told > known[upper]:
                best[upper], known[upper] = joint, told
    lower, upper_joint = best
    assert lower is not None
    assert upper_joint is not None
    return Contexts(lower, upper_joint, lost)


def _minus_entropy(joint: Floats) -> float:
    """Return -H(X_i | context), up to rounding: larger if the context reveals more."""
    totals = np.maximum(joint.sum(axis=1, keepdims=True), _LEAST)
    return float((joint * np.log(np.maximum(joint, _LEAST) / totals)).sum())


def conditional_chains(
    chain: Markov, kernels: RowKernels, group: Sequence[int]
) -> Iterator[tuple[float, Markov, RowKernels, int]]:
    """Yield chains whose informations about one record add up to the information about a group.

    I(X_G; Y) is the sum over the group of I(X_j; Y | the group's records before j). Given the last
    of these, X_h = v, only the outputs after record h matter, and they belong to a chain that
    starts from the transitions of v. Each chain comes with P(X_h = v), its kernels, and the place
    of record j in it.
    """
    yield 1.0, chain, kernels, group[0]
    for h, j in itertools.pairwise(group):
        rest = kernels.part(range(h + 1, chain.space.n))
        for chance, steps in zip(chain.marginal(h).tolist(), chain.transition, strict=True):
            if chance > 0.0:
                later = Markov(steps, chain.transition, chain.space.n - h - 1)
                yield chance, later, rest, j - h - 1


def _fitting(room: int, widest: int) -> int:
    """Return how many outputs have at most ``room`` settings together."""
    return int(math.log(max(room, 1)) / math.log(max(widest, 2)))


def _before(
    chain: Markov, kernels: RowKernels, i: int, most: int, upper: bool, steps: int
) -> tuple[Floats, bool]:
    """Return P(message, x_i) of the outputs before record i, and whether this is exact."""
    T = chain.transition
    start = max(0, i - steps)
    marginal = chain.marginal(start) if start else chain.initial
    exact = start == 0
    joint = np.diag(marginal) if upper and start else marginal[None, :]
    for j in range(start, i):
        matrix = kernels[j].matrix
        joint = np.einsum("lx,xy,xz->lyz", joint, matrix, T).reshape(-1, len(T))
        joint, kept = _reduced(joint, max(most, _merged(joint)), upper)
        exact &= kept
    joint, kept = _reduced(joint, most, upper)
    return joint, exact & kept


def _after(
    chain: Markov, kernels: RowKernels, i: int, most: int, upper: bool, steps: int
) -> tuple[Floats, bool]:
    """Return P(message | x_i) of the outputs after record i, and whether this is exact."""
    T, n = chain.transition, chain.space.n
    stop = min(n - 1, i + steps)
    exact = stop == n - 1
    given = np.eye(len(T)) if upper and not exact else np.ones((1, len(T)))
    for j in range(stop, i, -1):
        matrix = kernels[j].matrix
        given = np.einsum("xz,zy,rz->yrx", T, matrix, given).reshape(-1, len(T))
        given, kept = _reduced(given, max(most, _merged(given)), upper)
        exact &= kept
    given, kept = _reduced(given, most, upper)
    return given, exact & kept


def _length(chain: Markov, kernels: RowKernels, most: int, merging: bool) -> int:
    """Return the number of outputs of a window; without merging it has ``most`` messages."""
    widest = max(kernel.shape[1] for kernel in kernels.distinct)
    alone = max(1, _fitting(most // len(chain.initial), widest))
    if not merging:
        return alone
    if len(chain.initial) > 2:
        sizes = np.sort(np.abs(np.linalg.eigvals(chain.transition)))
        forgets, kept, window = float(sizes[-2]), _NEARLY_FORGOTTEN, _WIDE_WINDOW
    else:
        # The second eigenvalue bounds how fast a chain of bits forgets.
        forgets, kept = abs(1.0 - chain.transition[0, 1] - chain.transition[1, 0]), _FORGOTTEN
        window = _WINDOW
    needed = math.log(kept) / math.log(forgets) if 0.0 < forgets < 1.0 else 1.0
    return max(alone, min(window, math.ceil(needed) if forgets < 1.0 else window))


def _merged(messages: Floats) -> int:
    """Return how many messages are kept on the way to a record."""
    return _RATIOS if messages.shape[1] == 2 else _MESSAGES


def _reduced(messages: Floats, most: int, upper: bool) -> tuple[Floats, bool]:
    """Merge or divide messages if there are too many.

    The shares of the values in a message have a place on a grid. Its coordinates are the shares of
    values 1 .. m-1, of 2 .. m-1, and so on; they decrease, and so do the coordinates of all corners
    of the simplices into which the cells of the grid are cut.
    """
    messages = messages[messages.max(axis=1) > 0.0]
    m = messages.shape[1]
    most = min(most, _merged(messages))
    if len(messages) <= most:
        return messages, True
    count, result = most if m == 2 else _levels(m, most), messages
    for _ in range(1 if m == 2 else _FITS):  # messages may be in a small part of the grid
        fitted = _on_grid(messages, count, upper)
        if len(fitted) > most and result is not messages:
            break
        result = fitted
        count = int(count * (_FILLED * most / len(result)) ** (1.0 / (m - 1)))
        if len(result) > _FILLED * most or count < 2:
            break
    return result, False


def _on_grid(messages: Floats, count: int, upper: bool) -> Floats:
    """Merge the messages in a cell of the grid, or divide them between corners of the grid."""
    m = messages.shape[1]
    total = messages.sum(axis=1)
    tails = np.cumsum((messages / total[:, None])[:, :0:-1], axis=1)[:, ::-1]
    tails = np.minimum(tails, 1.0)
    grid = _grid(tails, count)
    place = np.clip(np.searchsorted(grid, tails, side="right") - 1, 0, count - 2)
    bases = count ** np.arange(m - 1)
    if not upper:
        cells = np.where(tails == 1.0, count - 1, place) @ bases
        cells = np.unique(cells, return_inverse=True)[1]
        merged = [np.bincount(cells, column) for column in messages.T]
        return np.asarray(np.stack(merged, axis=1), np.float64)
    width = grid[place + 1] - grid[place]
    part = np.clip((tails - grid[place]) / np.where(width > 0.0, width, 1.0), 0.0, 1.0)
    # Corners of the simplex: one coordinate after the other moves up, largest part first.
    order = np.argsort(-part, axis=1, kind="stable")
    ends = np.pad(np.take_along_axis(part, order, axis=1), ((0, 0), (1, 1)))
    ends[:, 0] = 1.0
    corners = place @ bases + np.cumsum(np.pad(bases[order].T, ((1, 0), (0, 0))), axis=0)
    weights = total * (ends[:, :-1] - ends[:, 1:]).T
    seen, which = np.unique(corners[weights > 0.0], return_inverse=True)
    tails = np.pad(grid[seen[:, None] // bases % count], ((0, 0), (1, 1)))
    tails[:, 0] = 1.0
    sums = np.bincount(which, weights[weights > 0.0])
    return np.asarray(sums[:, None] * (tails[:, :-1] - tails[:, 1:]))


def _levels(m: int, most: int) -> int:
    """Return the number of levels of each coordinate of a grid with at most ``most`` points."""
    count = 2
    while math.comb(count + m - 1, m - 1) <= most:
        count += 1
    return count


def _grid(tails: Floats, count: int) -> Floats:
    """Return levels between 0 and 1, dense where the coordinates are."""
    if count < 4:
        return np.linspace(0.0, 1.0, count)
    inside = (tails > 0.0) & (tails < 1.0)
    low, high = float(tails[inside].min(initial=0.5)), float(tails[inside].max(initial=0.5))
    if tails.shape[1] == 1:
        odds = [math.log(p) - math.log1p(-p) for p in (low, high)]
        grid = 1.0 / (1.0 + np.exp(-np.linspace(odds[0], odds[1], count - 2)))
    else:
        angles = [math.asin(math.sqrt(p)) for p in (low, high)]
        grid = np.sin(np.linspace(angles[0], angles[1], count - 2)) ** 2
    grid = np.concatenate([[0.0], [low], grid[1:-1], [high], [1.0]])
    return np.asarray(np.maximum.accumulate(np.clip(grid, 0.0, 1.0)))


def information_off(value: float, lost: float = 0.0) -> float:
    """Bound the error of an information, given the error of the joint distribution.

    A change by t = ``lost`` in total variation changes H(X) and H(X | context) by at most
    t ln m + (1 + t) h(t/(1 + t)) each, where h is the binary entropy (Alicki and Fannes 2004,
    Winter 2016). Both together are less than 4 t ln(1/t), because 1 + ln m is less than ln(1/t).
    """
    moved = -4.0 * lost * math.log(lost) if lost > 0.0 else 0.0
    return moved + CHAIN_ERROR * (2.0 * math.sqrt(value) + value + CHAIN_ERROR)
