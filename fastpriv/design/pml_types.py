"""Least distortion at a level of pointwise maximal leakage for rows whose order does not matter.

Let p be exchangeable, and let P permute the rows of databases. If W is a mechanism at the level,
so is W[Px, Py], with the same distortion. Both are kept by averages, as the program is linear. So
some optimal W depends only on how many rows hold value s in x and v in y: the class of (x, y).

The variables are v = P(the output makes this class | x), one for each class, and the law Q of
the type of the output. If r is the share of the databases of the type of x that are in the class
against one y, then p(y|x)/p_Y(y) = v/(r Q). With d the distance and P the law of the type of x the
program is

    min sum P d v,  subject to  sum of v over the classes of x = 1,  Q = sum of P v over the classes
    of y,  v <= e^epsilon r Q  for types x that occur.

For any numbers k >= 0, one for each class, with the sum K over the classes of a type of y, the
optimum is at least

    sum over types of x of the least  P d + e^-epsilon k/r - P K  over their classes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats, Ints
from fastpriv._structure.types import Blocks, Stack, classes_against, types_of
from fastpriv.channels.types import TypeChannel, type_error, type_weights
from fastpriv.priors import Exchangeable

#: Most classes of a program.
_CLASSES = 50_000
#: Largest root of a coefficient; what would have a larger one is 0 in all digits.
_STEEPEST = 1e8
#: Room of a constant answer below which the solver may find none.
_ROOM = 1e-6


class _Program(NamedTuple):
    """The classes: types of x and y, d, r, and the law of the types of x."""

    row: Ints
    kind: Ints
    distance: Floats
    share: Floats
    weights: Floats

    @property
    def types(self) -> int:
        return len(self.weights)

    def law(self, v: Floats) -> Floats:
        """Return the law of the type of the output."""
        masses = self.weights[self.row] * v
        return np.asarray(np.bincount(self.kind, masses, self.types), dtype=np.float64)

    def normalised(self, v: Floats) -> Floats:
        """Let the masses of every type of x sum to 1."""
        return np.asarray(v / np.bincount(self.row, v, self.types)[self.row])

    def ratios(self, v: Floats) -> Floats:
        """Return p(y|x)/p_Y(y); 0 where y does not occur."""
        whole = self.share * self.law(v)[self.kind]
        return np.asarray(np.where(whole > 0.0, v / np.where(whole > 0.0, whole, 1.0), 0.0))


class TypeMechanism(NamedTuple):
    """A solved program: the masses of classes, and a proved lower bound on the distortion."""

    masses: Floats
    bound: float
    program: _Program

    def mixed(self, epsilon: float, share: float) -> Floats:
        """Mix in the output law as much as the level asks for, and a share more.

        Every type of output is first mixed with its own mean, as for programs over databases.
        """
        most, v, program = math.exp(min(epsilon, 700.0)), self.masses, self.program
        alive = program.weights[program.row] > 0.0
        ratios = np.where(alive, program.ratios(v), 0.0)
        worst = np.zeros(program.types)
        np.maximum.at(worst, program.kind, ratios)
        t = _excess(worst, most)[program.kind]
        v = program.normalised((1.0 - t) * v + t * program.share * program.law(v)[program.kind])
        ratios = np.where(alive, program.ratios(v), 0.0)
        more = min(1.0, float(_excess(ratios, most).max()) + share)
        same = program.share * program.law(v)[program.kind]
        return program.normalised(np.where(alive, (1.0 - more) * v + more * same, same))


def _excess(worst: Floats, most: float) -> Floats:
    """Share of the mean that brings a ratio down to ``most``."""
    above = worst > most
    return np.where(above, (worst - most) / np.where(above, worst - 1.0, 1.0), 0.0)


def solver_law(p: Floats, epsilon: float) -> Floats:
    """Return a law for the solver, which drops weights that are tiny.

    A constant answer V = q needs e^epsilon sum p >= 1. Near epsilon = 0 the weights that are kept
    must therefore be a law by themselves.
    """
    from fastpriv._core.highs import TINY

    kept = np.where(p > TINY, p, 0.0)
    return kept / kept.sum() if math.exp(min(epsilon, 1.0)) * kept.sum() < 1.0 + _ROOM else p


class TypeProgram:
    """The program of an exchangeable prior."""

    def __init__(self, prior: Exchangeable, epsilon: float) -> None:
        n, m = prior.space.n, prior.space.sizes[0]
        check.fits(
            math.comb(n + m * m - 1, n),
            "the program over classes of databases and outputs",
            "use fewer rows or values",
            _CLASSES,
        )
        self._types = types_of(Blocks.single(n, m))
        self._classes = [classes_against(kind, self._types) for kind in self._types.counts]
        stack = Stack.of(self._types, self._classes)
        self._stack, self._epsilon, self._n = stack, epsilon, n
        share = np.exp(stack.log_count - self._types.log_sizes[stack.row])
        weights = type_weights(self._types, prior)
        distance = stack.distance.astype(np.float64)
        self._program = _Program(stack.row, stack.kind, distance, share, weights)

    def channel(self, masses: Floats) -> TypeChannel:
        """Return the mechanism with these masses of classes."""
        entries = masses / np.exp(self._stack.log_outputs)
        parts = np.split(entries, self._stack.starts[1:-1])
        return TypeChannel(self._types, self._classes, parts)

    def solve(self, seconds: float) -> TypeMechanism:
        """Return the solver's masses with the bound of its multipliers."""
        from fastpriv._core.highs import Rows, minimise

        row, kind, distance, share, weights = self._program
        number, types = len(row), len(weights)
        # A leakage row is v root - Q/root <= 0 with root^2 = e^-epsilon/r. Where it is so steep
        # that v must be 0 in all digits, v is held at 0 by the row alone.
        roots = np.exp(-0.5 * self._epsilon) / np.sqrt(share)
        leaking = np.flatnonzero(weights[row] > 0.0)
        root = np.minimum(roots[leaking], _STEEPEST)
        by_row, by_kind = np.argsort(row, kind="stable"), np.argsort(kind, kind="stable")
        in_row, in_kind = np.bincount(row, minlength=types), np.bincount(kind, minlength=types)
        averages = np.insert(by_kind, np.cumsum(in_kind), number + np.arange(types))
        law = solver_law(weights, self._epsilon)
        masses = np.insert(law[row[by_kind]], np.cumsum(in_kind), -1.0)
        leaks = np.column_stack([leaking, number + kind[leaking]])
        starts = np.concatenate([[0], np.cumsum(in_row), number + np.cumsum(in_kind + 1)])
        starts = np.append(starts, starts[-1] + 2 * np.arange(1, len(leaking) + 1))
        rows = Rows(
            starts,
            np.concatenate([by_row, averages, leaks.reshape(-1)]),
            np.concatenate(
                [np.ones(number), masses, np.column_stack([root, -1.0 / root]).reshape(-1)]
            ),
            np.concatenate([np.ones(types), np.zeros(types), np.full(len(leaking), -math.inf)]),
            np.concatenate([np.ones(types), np.zeros(types + len(leaking))]),
        )
        cost = np.append(weights[row] * distance, np.zeros(types))
        answer = minimise(cost, np.zeros(number + types), rows, seconds)
        v = np.maximum(answer.values[:number], 0.0)
        k = np.zeros(number)
        k[leaking] = np.maximum(-answer.duals[2 * types :], 0.0) / root
        return TypeMechanism(self._program.normalised(v), self._bound(k), self._program)

    def _bound(self, k: Floats) -> float:
        """Return the bound of any k >= 0, rounded down."""
        row, kind, distance, share, weights = self._program
        own = math.exp(-self._epsilon) * k / share
        all_of = np.bincount(kind, k, len(weights))[kind]
        terms = weights[row] * (distance - all_of) + own
        sizes = weights[row] * (distance + all_of) + own
        # Sizes of classes and weights are rounded, and so is a sum over the classes of a type.
        error = 4.0 * type_error(self._n) + 4.0 * (len(row) + 16.0) * ULP
        least = np.full(len(weights), math.inf)
        np.minimum.at(least, row, terms - error * sizes)
        return math.fsum(least) - 1e-15
