"""Outputs that are drawn a piece at a time, each piece given the pieces before.

The probabilities of a piece are ratios of floating-point sums, and the coin that decides has
exactly that probability (:mod:`fastpriv.kernels.sampling`). Sums are of positive numbers that can
be of any size, so a probability is right to a few units in its last place, however small: what is
realised is the distribution times factors within e^(+-error), zeros stay zeros, and nothing
positive vanishes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from fastpriv import kernels
from fastpriv._core.validation import Floats, Ints
from fastpriv._sampling.source import Source, Words
from fastpriv.errors import InvalidInput

#: Numbers of any size are v 2^(512 e), v in [2^-256, 2^256); this is ln 2^512.
_STEP = 512.0 * math.log(2.0)
#: Largest epsilon of a tilt: powers of e^-epsilon over all rows have exponents that fit.
_LARGEST = 1e12
#: Words that are drawn at a time.
_CHUNK = 1 << 15

_State = tuple[Floats, Ints, Ints, Ints, Ints, Ints, Ints, float, int]


def scaled(numbers: Floats) -> tuple[Floats, Ints]:
    """Write non-negative doubles as v 2^(512 e), exactly."""
    value, power = np.array(numbers, dtype=np.float64), np.zeros(numbers.shape, dtype=np.int64)
    for _ in range(2):  # 2^-1074 takes two steps
        tiny, huge = (value > 0.0) & (value < 2.0**-256), value >= 2.0**256
        value[tiny] *= 2.0**512
        value[huge] *= 2.0**-512
        power[tiny] -= 1
        power[huge] += 1
    return value, power


def scaled_exp(logs: Floats) -> tuple[Floats, Ints]:
    """Write e^logs as v 2^(512 e), to a few ulp of the logarithm; 0 for -inf."""
    seen = logs > -math.inf
    finite = np.where(seen, logs, 0.0)
    power = np.rint(finite / _STEP)
    return np.where(seen, np.exp(finite - power * _STEP), 0.0), power.astype(np.int64)


def tilt(epsilon: float) -> tuple[float, int]:
    """Return e^-epsilon as a number of any size."""
    if epsilon > _LARGEST:
        raise InvalidInput(
            f"a distribution tilted by epsilon = {epsilon:g} cannot be sampled; "
            f"use at most {_LARGEST:g}, "
            "which moves nothing either."
        )
    value, power = scaled_exp(np.array([-epsilon]))
    return float(value[0]), int(power[0])


def draw_all(
    step: Callable[[int, Words], tuple[int, int]], count: int, each: int, source: Source
) -> None:
    """Call ``step(done, words)`` with fresh words until all ``count`` draws are done.

    The step returns the number of draws that it added and of words that it used. Unused words come
    first in the next call. ``each`` is about the number of words of a draw.
    """
    words, done = np.empty(0, dtype=np.uint64), 0
    while done < count:
        wanted = min((count - done) * each, max(_CHUNK, each)) + 1
        words = np.concatenate([words, source.words(wanted)])
        more, used = step(done, words)
        done, words = done + more, words[used:]


def alike(keys: Ints) -> Iterator[Ints]:
    """Yield the places of every distinct key."""
    order = np.argsort(keys, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(keys[order])) + 1) if len(keys) else ()


class States:
    """A distribution over outputs that is reached row by row through numbered states.

    State c of row i becomes ``c factors[i] + jumps[v]`` when the row comes out as v; the states
    after the last row carry the distribution. A dense distribution counts prefixes, an exchangeable
    one counts how many rows have each value.
    """

    def __init__(
        self, law: tuple[Floats, Ints], counts: Ints, factors: Ints, jumps: Ints, sizes: Ints
    ) -> None:
        self._starts = np.concatenate([[0], np.cumsum(counts)])
        self._value = np.zeros(self._starts[-1] + len(law[0]))
        self._power = np.zeros(len(self._value), dtype=np.int64)
        self._value[self._starts[-1] :], self._power[self._starts[-1] :] = law
        self._walk = self._starts, factors, jumps, sizes

    @classmethod
    def dense(cls, pmf: Floats, sizes: tuple[int, ...]) -> States:
        """Any distribution over databases: a state is the index of the rows so far."""
        factors = np.array(sizes, dtype=np.int64)
        counts = np.concatenate([[1], np.cumprod(factors)[:-1]])
        return cls(scaled(pmf), counts, factors, np.arange(max(sizes)), factors)

    @classmethod
    def types(cls, logs: Floats, strides: Ints) -> States:
        """An exchangeable distribution, from ln p(x) for the types: a state is the type so far."""
        n = logs.shape[0] - 1
        jumps = np.concatenate([[0], strides])
        counts = np.arange(n, dtype=np.int64) * strides[0] + 1
        law = scaled_exp(logs.reshape(-1)[: n * strides[0] + 1])
        ones = np.ones(n, dtype=np.int64)
        return cls(law, counts, ones, jumps, len(jumps) * ones)

    def draws(self, rows: Ints, epsilon: float, source: Source) -> Ints:
        """Draw y with probability proportional to p(y) e^(-epsilon d(x, y)) for each database x.

        One pass over all states for every distinct x, then O(n m) for each draw.
        """
        out = np.empty_like(rows)
        lean = tilt(epsilon)
        # The final state of x itself identifies x, or its type.
        _, factors, jumps, _ = self._walk
        weights = np.append(np.cumprod(factors[:0:-1])[::-1], 1)
        for places in alike((jumps[rows] * weights).sum(axis=1)):
            x = np.ascontiguousarray(rows[places[0]])
            state = self._value, self._power, *self._walk, x, *lean
            kernels.state_sums(*state)
            out[places] = self._draws_of(state, len(places), source)
        return out

    def _draws_of(self, state: _State, count: int, source: Source) -> Ints:
        sizes = self._walk[3]
        out = np.empty((count, len(sizes)), dtype=np.int64)

        def step(done: int, words: Words) -> tuple[int, int]:
            return kernels.state_draws(*state, words, out[done:])

        draw_all(step, count, int(sizes.sum()) - len(sizes), source)
        return out


def chain_draws(
    initial: Floats, transition: Floats, rows: Ints, epsilon: float, source: Source
) -> Ints:
    """Draw from a chain tilted towards each database. Cost O(n m^2) for each draw."""
    out = np.empty_like(rows)
    lean = tilt(epsilon)
    chain = *scaled(initial), *scaled(transition)

    def step(done: int, words: Words) -> tuple[int, int]:
        return kernels.chain_draws(*chain, rows[done:], *lean, words, out[done:])

    draw_all(step, len(rows), rows.shape[1] * (len(initial) - 1), source)
    return out


class Tree:
    """A distribution over many outputs, drawn from by halving them until one is left."""

    def __init__(self, weights: Floats) -> None:
        depth = max((len(weights) - 1).bit_length(), 1)
        leaves = np.zeros(1 << depth)
        leaves[: len(weights)] = weights
        value, power = scaled(leaves)
        self.depth = depth
        self._nodes = np.concatenate([np.zeros_like(value), value]), np.tile(power, 2)
        kernels.tree_sums(*self._nodes)

    def draws(self, count: int, source: Source) -> Ints:
        """Draw ``count`` outputs, O(log of their number) each."""
        out = np.empty(count, dtype=np.int64)

        def step(done: int, words: Words) -> tuple[int, int]:
            return kernels.tree_draws(*self._nodes, words, out[done:])

        draw_all(step, count, self.depth, source)
        return out


def shuffle(items: Ints, ends: Ints, source: Source) -> None:
    """Put the segments of every row of ``items`` in uniformly random order, in place."""

    def step(done: int, words: Words) -> tuple[int, int]:
        return kernels.shuffle_segments(items[done:], ends[done:], words)

    draw_all(step, len(items), items.shape[1], source)
