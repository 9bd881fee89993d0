"""The largest leakage over all priors, for one gain function: branch and bound over strategies.

A strategy chooses an action for each output. For one strategy the posterior gain is linear in the
prior, so that the best prior solves a linear program. For all strategies at once, a prior p
with vulnerability t is divided for each output y among the actions w: p = sum_w z[y, w] and
t = sum_w t[y, w], where z[y, w] has vulnerability at most t[y, w]. This relaxation is a linear
program too, and is often exact. If it is not, the actions allowed after one output are divided.

A bound is proved by its multipliers, not by the solver's status. For weights c[y] of the outputs
and mixed actions m[y, w], whose gain is at most the vulnerability V,

    sum_y max_w <p W_y, g_w>  <=  sum_y c[y] V(p)
                                  + sum_x p(x) sum_y max_w (W[x, y] g[w, x] - c[y] m[y, w](x)).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastpriv._core.clock import Meter
from fastpriv._core.highs import Model, Rows
from fastpriv._core.rounding import sum_error
from fastpriv._core.search import BestFirst
from fastpriv._core.validation import Floats, Ints

#: Units of work of a linear program, for each of its coefficients.
_PER_ENTRY = 2e4
#: Units of work of a search without a time limit.
_WORK = 2e10
#: Most coefficients of the relaxation.
_LARGEST = 1 << 19
#: Seconds after which HiGHS gives up on one program.
_SECONDS = 600.0
#: Cost of a share of the prior at an action that is not allowed; gains are at most 1.
_FORBIDDEN = 4.0

Mask = NDArray[np.bool_]


class Search(NamedTuple):
    """Proved bounds on the largest leakage, and a distribution that attains the lower one."""

    lower: float
    upper: float
    prior: Floats


class Problem:
    """Maximise a leakage of one channel over priors; gains are at most 1 in absolute value.

    Additive: posterior minus prior vulnerability of a distribution. Multiplicative: their ratio,
    for a gain that is not negative and has a largest entry of 1 for every database. It is the
    posterior vulnerability of weights p >= 0 whose prior vulnerability is at most 1.
    """

    def __init__(self, W: Floats, gain: Floats, additive: bool) -> None:
        self.W, self.gain, self.additive = W, gain, additive
        self.slack = sum_error(len(gain) + 2 * sum(W.shape), 32)
        # One strategy: p, and t of at least the gain of every action.
        actions, size = gain.shape
        entries = np.hstack([gain, np.full((actions, 1), -1.0)])
        rows = np.concatenate([entries.reshape(-1), _total(size, additive)])
        starts = np.arange(actions + 2) * (size + 1)
        places = np.tile(np.arange(size + 1), actions + 1)
        low = np.append(np.full(actions, -math.inf), 1.0)
        high = np.append(np.zeros(actions), 1.0)
        least = np.append(np.zeros(size), -math.inf)
        self._model = Model(np.zeros(size + 1), least, Rows(starts, places, rows, low, high))

    def best_law(self, strategy: Ints) -> Floats:
        """Return the best prior for one strategy."""
        c = (self.W * self.gain[strategy].T).sum(axis=1)
        self._model.reprice(np.append(-c, float(self.additive)))
        return as_law(self._model.solve(_SECONDS).values[: len(c)])

    def attained(self, law: Floats) -> float:
        """Return the leakage of one distribution. Rounded down."""
        after = math.fsum((self.gain @ (law[:, None] * self.W)).max(axis=0))
        before = float((self.gain @ law).max())
        error = self.slack * float(law @ np.abs(self.gain).max(axis=0))
        if self.additive:
            return after - before - 2.0 * error
        return (after - error) / (before + error) if before + error > 0.0 else 1.0

    def climb(self, law: Floats) -> tuple[float, Floats]:
        """Take the best prior of the best strategy in turn while that helps."""
        value = self.attained(law)
        while True:
            strategy = (self.gain @ (law[:, None] * self.W)).argmax(axis=0)
            better = self.best_law(strategy)
            reached = self.attained(better)
            if not reached > value + 1e-12 * abs(value):
                return value, law
            value, law = reached, better

    def proved(self, weights: Floats, mixed: Floats, allowed: Mask) -> float:
        """Bound the leakage from weights c[y] and mixed gains m[y, w, x]. Rounded up."""
        total = math.fsum(weights)
        if self.additive:  # weights that add up to one take the prior vulnerability away
            weights = weights / total if total > 0.0 else np.full(len(weights), 1.0 / len(weights))
        own = self.W.T[:, None, :] * self.gain - weights[:, None, None] * mixed
        rest = np.where(allowed[:, :, None], own, -math.inf).max(axis=1).sum(axis=0)
        sizes = np.abs(self.gain).max(axis=0)
        rest = rest + self.slack * 2.0 * sizes
        if self.additive:
            return float(rest.max())
        # The mean of all actions is worth at least 1/actions for every database.
        even = self.gain.mean(axis=0) * (1.0 - self.slack)
        return float((total + max(0.0, (rest / even).max())) * (1.0 + self.slack))


class _Node(NamedTuple):
    """Strategies in which some actions are allowed after each output."""

    allowed: Mask
    bound: float  # on the leakage of these strategies
    law: Floats  # of the relaxation
    loose: int  # output whose actions are divided next, -1 if each output has one action
    action: int  # the best one after that output


class Relaxation:
    """The linear program of all strategies at once; see the module."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        (actions, size), outputs = problem.gain.shape, problem.W.shape[1]
        self.shape = outputs, actions, size
        divided, shares = outputs * actions * size, outputs * actions
        z = np.arange(divided).reshape(self.shape)
        t = divided + np.arange(shares).reshape(outputs, actions)
        p, whole = divided + shares + np.arange(size), divided + shares + size
        minus = np.append(np.ones(actions), -1.0)
        square = (outputs, actions, actions, 1)
        # p = sum_w z[y, w]; t = sum_w t[y, w]; the scale; and <z[y, w], g_v> <= t[y, w].
        places = [
            np.concatenate([z.transpose(0, 2, 1), np.tile(p[:, None], (outputs, 1, 1))], axis=2),
            np.hstack([t, np.full((outputs, 1), whole)]),
            np.append(p, whole)[None],
            np.concatenate(
                [
                    np.tile(z[:, :, None], (1, 1, actions, 1)),
                    np.broadcast_to(t[:, :, None, None], square),
                ],
                axis=3,
            ),
        ]
        entries = [
            minus,
            minus,
            _total(size, problem.additive),
            np.hstack([problem.gain, -np.ones((actions, 1))]),
        ]
        widths = [part.shape[-1] for part in places]
        counts = [part.size // width for part, width in zip(places, widths, strict=True)]
        rows = Rows(
            np.concatenate([[0], np.cumsum(np.repeat(widths, counts))]),
            np.concatenate([part.reshape(-1) for part in places]),
            np.concatenate(
                [
                    np.broadcast_to(own, part.shape).reshape(-1)
                    for own, part in zip(entries, places, strict=True)
                ]
            ),
            np.repeat([0.0, 0.0, 1.0, -math.inf], counts),
            np.repeat([0.0, 0.0, 1.0, 0.0], counts),
        )
        self._first = sum(counts[:3])  # of the rows that have multipliers of actions
        least = np.zeros(whole + 1)
        least[t.reshape(-1)] = least[whole] = -math.inf
        self._gains = problem.W.T[:, None, :] * problem.gain
        self._model = Model(np.zeros(whole + 1), least, rows)

    def solve(self, allowed: Mask) -> _Node:
        """Bound the leakage if only some actions are allowed after each output."""
        outputs, actions, size = self.shape
        divided = self._gains.size
        cost = np.where(allowed[:, :, None], -self._gains, _FORBIDDEN)
        rest = np.append(np.zeros(outputs * actions + size), float(self.problem.additive))
        self._model.reprice(np.concatenate([cost.reshape(-1), rest]))
        answer = self._model.solve(_SECONDS)
        prices = np.maximum(-answer.duals[self._first :], 0.0).reshape(outputs, actions, actions)
        sums = prices.sum(axis=2)
        known = sums[:, :, None] > 0.0
        mixtures = np.where(known, prices / np.where(known, sums[:, :, None], 1.0), 1.0 / actions)
        weights = np.where(allowed, sums, -math.inf).max(axis=1)
        bound = self.problem.proved(weights, mixtures @ self.problem.gain, allowed)
        z = np.maximum(answer.values[:divided], 0.0).reshape(self.shape)
        place = divided + outputs * actions
        # The output at which the relaxation gains most over one action, and that action.
        whole = np.maximum(answer.values[place : place + size], 0.0)
        values = np.where(allowed, (self._gains * whole).sum(axis=2), -math.inf)
        spare = (z * self._gains).sum(axis=(1, 2)) - values.max(axis=1)
        spare[allowed.sum(axis=1) == 1] = -math.inf
        loose = int(spare.argmax())
        action = int(values[loose].argmax())
        return _Node(
            allowed, bound, as_law(whole), loose if spare[loose] > -math.inf else -1, action
        )


def search(problem: Problem, cap: float, gap: float, time_limit: float | None) -> Search:
    """Bracket the largest leakage over priors, the loosest bound first.

    ``cap`` is an upper bound that is known. The search ends at a width of ``gap``, at the time
    limit, or without one after a fixed amount of work.
    """
    meter = Meter(time_limit, _WORK)
    (actions, size), outputs = problem.gain.shape, problem.W.shape[1]
    lower, law = problem.climb(np.full(size, 1.0 / size))
    entries = outputs * actions * actions * (size + 1)
    if entries > _LARGEST:
        return Search(lower, max(lower, min(cap, _plain_bound(problem))), law)
    relaxation = Relaxation(problem)
    root = relaxation.solve(np.ones((outputs, actions), np.bool_))
    best, proved = max((lower, law), problem.climb(root.law), key=lambda pair: pair[0]), lower

    def split(node: _Node) -> list[_Node]:
        nonlocal best, proved
        best = max(best, problem.climb(node.law), key=lambda pair: pair[0])
        if node.bound <= max(best[0], proved) + gap or node.loose < 0:
            proved = max(proved, node.bound)  # close enough, or the value of one strategy
            return []
        parts = []
        for kept in (True, False):
            allowed = node.allowed.copy()
            allowed[node.loose] &= (np.arange(actions) == node.action) == kept
            part = relaxation.solve(allowed)
            meter.spend(_PER_ENTRY * entries)
            parts.append(part._replace(bound=min(part.bound, node.bound)))
        return parts

    tree = BestFirst([root._replace(bound=min(root.bound, cap))], split)
    rest = tree.run(lambda: max(best[0], proved) + gap, lambda: meter.used() >= meter.limit)
    lower, law = best
    return Search(lower, max(lower, min(max(proved, rest), cap)), law)


def _plain_bound(problem: Problem) -> float:
    """Bound the leakage of a problem too large for its relaxation, by one mixed action."""
    outputs = problem.W.shape[1]
    strategy = np.zeros(outputs, np.int64)
    law = problem.best_law(strategy)
    best = problem.gain[(problem.gain @ law).argmax()]
    mixed = np.broadcast_to(best, (outputs, len(problem.gain), len(best)))
    weights = problem.W.T @ law
    return problem.proved(weights, mixed, np.ones((outputs, len(problem.gain)), np.bool_))


def _total(size: int, additive: bool) -> Floats:
    """Return the row that fixes the scale: the sum of p, or the vulnerability t, is one."""
    return np.append(np.full(size, float(additive)), float(not additive))


def as_law(values: Floats) -> Floats:
    """Return a solver's weights as a distribution."""
    clipped = np.maximum(values, 0.0)
    total = clipped.sum()
    return clipped / total if total > 0.0 else np.full(len(values), 1.0 / len(values))
