"""What the outputs around a record of a Markov chain reveal about it.

Given record i, the outputs before it and after it are independent. A message stands for the outputs
on one side, as the vector of its probabilities for the values of record i. The outputs far from the
record are left out for a lower bound on information. For an upper bound, the record at the end of
the window is revealed in their place. Both bounds converge geometrically in the length of the
window.

Messages about one bit are pairs of numbers, and many have nearly the same ratio. For a lower bound
they are merged, which is a post-processing. For an upper bound a message is divided between two
messages with ratios below and above its own; the message is then a post-processing of these.
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
#: A window is long enough if its first message has lost its influence to this factor.
_FORGOTTEN = 1e-12
#: Relative error of the joint distributions of messages and records.
CHAIN_ERROR = 1e-12


class Contexts(NamedTuple):
    """Joint distributions [context, setting of a group] for a lower and an upper bound."""

    lower: Floats
    upper: Floats

    @property
    def exact(self) -> bool:
        """Whether both bounds are the same: no output was left out and no message merged."""
        return self.lower is self.upper


def chain_contexts(chain: Markov, kernels: RowKernels, i: int) -> Contexts:
    """Return what the outputs of all other records of a chain reveal about record i."""
    sides = (i > 0) + (i < chain.space.n - 1)
    each = int((_ENTRIES // len(chain.initial)) ** (1.0 / max(sides, 1)))
    results = []
    for upper in (False, True):
        before, whole = _before(chain, kernels, i, each, upper)
        after, complete = _after(chain, kernels, i, each, upper)
        joint = (before[:, None, :] * after).reshape(-1, before.shape[1])
        if whole and complete:
            return Contexts(joint, joint)
        results.append(joint)
    return Contexts(*results)


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
    chain: Markov, kernels: RowKernels, i: int, most: int, upper: bool
) -> tuple[Floats, bool]:
    """Return P(message, x_i) of the outputs before record i, and whether this is exact."""
    T = chain.transition
    start = max(0, i - _length(chain, kernels, most))
    marginal = chain.marginal(start) if start else chain.initial
    exact = start == 0
    joint = np.diag(marginal) if upper and start else marginal[None, :]
    for j in range(start, i):
        matrix = kernels[j].matrix
        joint = np.einsum("lx,xy,xz->lyz", joint, matrix, T).reshape(-1, len(T))
        joint, kept = _reduced(joint, most, upper)
        exact &= kept
    return joint, exact


def _after(
    chain: Markov, kernels: RowKernels, i: int, most: int, upper: bool
) -> tuple[Floats, bool]:
    """Return P(message | x_i) of the outputs after record i, and whether this is exact."""
    T, n = chain.transition, chain.space.n
    stop = min(n - 1, i + _length(chain, kernels, most))
    exact = stop == n - 1
    given = np.eye(len(T)) if upper and not exact else np.ones((1, len(T)))
    for j in range(stop, i, -1):
        matrix = kernels[j].matrix
        given = np.einsum("xz,zy,rz->yrx", T, matrix, given).reshape(-1, len(T))
        given, kept = _reduced(given, most, upper)
        exact &= kept
    return given, exact


def _length(chain: Markov, kernels: RowKernels, most: int) -> int:
    """Return the number of outputs of a window with at most ``most`` messages."""
    widest = max(kernel.shape[1] for kernel in kernels.distinct)
    alone = max(1, _fitting(most // len(chain.initial), widest))
    if len(chain.initial) != 2:
        return alone
    # The second eigenvalue bounds how fast a chain of bits forgets.
    forgets = abs(1.0 - chain.transition[0, 1] - chain.transition[1, 0])
    needed = math.log(_FORGOTTEN) / math.log(forgets) if 0.0 < forgets < 1.0 else 1.0
    return max(alone, min(_WINDOW, math.ceil(needed) if forgets < 1.0 else _WINDOW))


def _reduced(messages: Floats, most: int, upper: bool) -> tuple[Floats, bool]:
    """Merge or divide messages about one bit if there are too many."""
    messages = messages[messages.max(axis=1) > 0.0]
    if messages.shape[1] != 2 or len(messages) <= min(most, _RATIOS):
        return messages, True
    count = min(most, _RATIOS)
    total = messages.sum(axis=1)
    share = messages[:, 1] / total
    inside = (share > 0.0) & (share < 1.0)
    low, high = float(share[inside].min(initial=0.5)), float(share[inside].max(initial=0.5))
    odds = [math.log(p) - math.log1p(-p) for p in (low, high)]
    grid = 1.0 / (1.0 + np.exp(-np.linspace(odds[0], odds[1], count - 2)))
    grid = np.concatenate([[0.0], [low], grid[1:-1], [high], [1.0]])
    grid = np.maximum.accumulate(grid)
    place = np.clip(np.searchsorted(grid, share, side="right") - 1, 0, count - 2)
    if not upper:
        place = np.where(share == 1.0, count - 1, place)
        merged = [np.bincount(place, column, count) for column in messages.T]
        result = np.asarray(np.stack(merged, axis=1), np.float64)
        return result[result.max(axis=1) > 0.0], False
    width = grid[place + 1] - grid[place]
    part = np.clip((share - grid[place]) / np.where(width > 0.0, width, 1.0), 0.0, 1.0)
    weights = np.bincount(place, total * (1.0 - part), count)
    weights += np.bincount(place + 1, total * part, count)
    result = np.stack([weights * (1.0 - grid), weights * grid], axis=1)
    return result[weights > 0.0], False


def information_off(value: float) -> float:
    """Bound the error of an information, given the error of the joint distribution."""
    return CHAIN_ERROR * (2.0 * math.sqrt(value) + value + CHAIN_ERROR)
