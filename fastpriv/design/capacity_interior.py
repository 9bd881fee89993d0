"""An interior-point method for least cost under bounds on capacities of a few rows of the channel.

    minimise <cost, W>  subject to  C_k(W) <= epsilon,  W >= 0,  rows of W sum to 1,

where C_k is the capacity of the rows of W that selection k names. It is the least radius of a ball
around them: C_k(W) <= epsilon if and only if D(W[k_a] || q) <= epsilon for some q and all a. So
each selection has an output law q_k as further variables, and a constraint for each of its m rows.
All of them are convex and smooth, also where the best input law leaves rows out. D is taken as

    D(w || q) = sum_y w ln(w/q) - w + q,

so that q needs no constraint of its own. Let l[k, a] >= 0 be the multipliers. For the laws
p_a = l[k, a]/sum_a l[k, a] and any posterior r(a | y), Gibbs' inequality says

    sum_a p_a sum_y W'[k_a, y] ln(r(a | y)/p_a) <= I(p, W') <= C_k(W')

for every channel W'. With the posterior of W, no channel within the bounds costs less than

    sum_x min_y [cost + sum_k sum_(a: k_a = x) l[k, a] ln(W[x, y]/mean_k(y))] - epsilon sum l,

where mean_k is the output law of selection k under p.

Second derivatives are diagonal in y except for one vector for each constraint. A Newton step
eliminates q_k (diagonal) and the multipliers (m x m) of each selection and factors one matrix of
size N K. Cost O((N K)^3 + B m^3 K^2) for each of about 30 steps, with B selections of m rows.
"""

from __future__ import annotations

import math
import time
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from fastpriv._core.clock import Clock
from fastpriv._core.rounding import ULP, lowered, raised
from fastpriv._core.validation import Floats, Ints
from fastpriv.errors import SolverFailure

_STEPS = 80
#: Share of the way to the boundary that a step goes; shares of the complementarity it aims at, at
#: least and in the first step.
_STEP, _AIM, _FIRST = 0.99, 0.1, 0.5
#: Share of the gap that was asked for which the iterates reach, to leave some for the repair.
_INNER = 0.25
#: How far the gap may exceed the complementarity before a step only centres.
_AHEAD = 2.0
_SHORTER = 40
#: Least product of a number and its multiplier, relative to the mean of all products.
_CENTRAL = 1e-2
#: Multipliers below this share of the largest are left out of the last program, and its seconds.
_NEEDED, _SECONDS = 1e-7, 60.0
#: Share of the time that is kept for the last program.
_RESERVED = 0.15
#: Entries of the low-rank part of the second derivative that are formed at once.
_BLOCK = 1 << 23
#: Least W/q - 1 that floats tell from -1.
_FLOOR = -1.0 + 2.0 * ULP


class Point(NamedTuple):
    """A channel, an output law for each selection of a part, and all multipliers."""

    W: Floats
    laws: list[Floats]  # (B, K) for each part
    Z: Floats  # of W >= 0
    weights: list[Floats]  # (B, m) for each part


class Part:
    """Selections of m rows each: rows (B, m) of the channel."""

    def __init__(self, rows: Ints) -> None:
        self.rows = rows

    def view(self, W: Floats) -> Floats:
        """Return the channel that the rows are taken from, which is linear in W."""
        return W

    def ratios(self, W: Floats, q: Floats) -> Floats:
        """Return W/q - 1, (B, m, K)."""
        return np.asarray((W[self.rows] - q[:, None]) / q[:, None])

    def radii(self, W: Floats, q: Floats) -> Floats:
        """Return D(W || q), (B, m), from terms none of which is negative."""
        ratio = self.ratios(W, q)
        return np.asarray((q[:, None] * ((1.0 + ratio) * _logs(ratio) - ratio)).sum(axis=2))

    def slopes(self, W: Floats, weights: Floats) -> Floats:
        """Return weights times ln(W/mean), for the means of rows under the weights.

        Means are taken relative to the heaviest row, which is at most m times the mean, so that
        relative errors are a few times m ulp.
        """
        V = W[self.rows]
        share = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
        heavy = V[np.arange(len(V)), weights.argmax(axis=1)][:, None]
        apart = V - heavy
        mean = np.einsum("ba,bak->bk", share, apart)[:, None]
        return np.asarray(weights[:, :, None] * _logs((apart - mean) / (heavy + mean)))


class _Reduced(NamedTuple):
    """What is left of a part after q_k and the multipliers are eliminated."""

    low: Floats  # (B, m, K, m): the second derivative has sum over the last axis of low low^T
    rhs: Floats  # (B, m, K): what is added to the right-hand side


class Capped:
    """The program: costs, selections of equal size in each part, and the bound on capacities."""

    #: Whether the time was over before the gap was met.
    late = False

    def __init__(self, cost: Floats, selections: list[Ints], epsilon: float) -> None:
        self.cost, self.epsilon = cost, epsilon
        self.parts: list[Part] = [Part(rows) for rows in selections]
        self.number = cost.size + sum(part.rows.size for part in self.parts)

    def means(self, W: Floats) -> list[Floats]:
        """Return the mean of the rows of each selection."""
        return [np.asarray(part.view(W)[part.rows].mean(axis=1)) for part in self.parts]

    def slacks(self, W: Floats, laws: list[Floats]) -> list[Floats]:
        """Return epsilon minus the divergences, (B, m) for each part."""
        pairs = zip(self.parts, laws, strict=True)
        return [self.epsilon - part.radii(part.view(W), q) for part, q in pairs]

    def normalised(self, W: Floats) -> Floats:
        """Let the law of the output given each database sum to 1."""
        return np.asarray(W / W.sum(axis=1, keepdims=True))

    def bound(self, W: Floats, weights: list[Floats]) -> float:
        """Lower bound on the cost, from multipliers >= 0 and a channel. Rounded down."""
        total, size, spent = self.cost.copy(), np.abs(self.cost), 0.0
        for part, weight in zip(self.parts, weights, strict=True):
            slopes = part.slopes(W, weight)
            np.add.at(total, part.rows, slopes)
            # Logarithms are off by a few ulp of 1, of themselves, and of the sum of the law.
            np.add.at(size, part.rows, weight[:, :, None] + np.abs(slopes))
            spent += math.fsum(weight.reshape(-1))
        error = (64.0 + 4.0 * max(part.rows.size for part in self.parts)) * ULP
        least = math.fsum((total - error * size).min(axis=1))
        return lowered(least, 8.0) - raised(self.epsilon * spent, 8.0) - 8.0 * ULP * abs(least)

    def solve(self, W: Floats, gap: float, clock: Clock) -> tuple[Floats, float]:
        """Return a channel strictly within the bounds, and the best lower bound on the cost.

        ``W`` is a channel with positive entries; the divergences of its rows from the means of
        their selections are below epsilon.
        """
        laws = self.means(W)
        slacks = self.slacks(W, laws)
        first = float((self.cost * W).sum()) / self.number
        point = Point(W, laws, first / W, [first / slack for slack in slacks])
        best, aim = -math.inf, _FIRST
        limit = clock.left()
        kept, step = 0.0 if math.isinf(limit) else _RESERVED * limit, 0.0
        for _ in range(_STEPS):
            start = time.monotonic()
            bound, value = self.bound(point.W, point.weights), float((self.cost * point.W).sum())
            best, rest = max(best, bound), float(_products(point, slacks).sum())
            # Rounding may spoil the bound of the multipliers themselves; the last program mends it.
            if min(value - best, 2.0 * rest) <= _INNER * gap * value:
                break
            if clock.left() <= kept + step:  # no step begins that would end too late
                self.late = True
                break
            if value - bound > _AHEAD * rest and aim < 1.0:
                aim = 1.0
            move = self._direction(point, slacks, aim * rest / self.number)
            taken = None if move is None else self._taken(point, move)
            if taken is None:
                break
            point, slacks, length = taken
            aim = min(max(_AIM, (1.0 - length) ** 2), 0.99)  # short steps ask for centring
            step = time.monotonic() - start
        seconds = min(_SECONDS, max(1.0, clock.left()))
        return point.W, max(best, self._polished(point.W, point.weights, seconds))

    def _taken(self, point: Point, move: Point) -> tuple[Point, list[Floats], float] | None:
        """Take the longest step that stays central; None where there is none."""
        pairs = [(point.W, move.W), (point.Z, move.Z)]
        pairs += [*zip(point.laws, move.laws, strict=True)]
        pairs += [*zip(point.weights, move.weights, strict=True)]
        length = min(1.0, _STEP * min(_room(at, by) for at, by in pairs))
        for _ in range(_SHORTER):
            W = point.W + length * move.W
            near = Point(
                self.normalised(W),
                [q + length * by for q, by in zip(point.laws, move.laws, strict=True)],
                point.Z + length * move.Z,
                [w + length * by for w, by in zip(point.weights, move.weights, strict=True)],
            )
            slacks = self.slacks(near.W, near.laws)
            products = _products(near, slacks)
            if products.min() >= _CENTRAL * products.mean():
                return near, slacks, length
            length *= 0.7
        return None

    def _direction(self, point: Point, slacks: list[Floats], aim: float) -> Point | None:
        """Newton step towards complementarity ``aim``; None where rounding leaves none."""
        W, laws, Z, weights = point
        flat, rhs = self._system(point, slacks, aim)
        flat[np.diag_indices(len(flat))] += (Z / W).reshape(-1)
        scale = W.reshape(-1)  # scaled by W, the matrix has entries of one size
        flat *= scale
        flat *= scale[:, None]
        sums = self._sums()
        try:
            factor = cho_factor(flat, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            return None
        solved = cho_solve(factor, scale[:, None] * np.column_stack([rhs.reshape(-1), sums]))
        solved *= scale[:, None]
        means = np.linalg.lstsq(sums.T @ solved[:, 1:], sums.T @ solved[:, 0], rcond=None)[0]
        dW = (solved[:, 0] - solved[:, 1:] @ means).reshape(W.shape)
        if not np.isfinite(dW).all():
            return None
        moves = [
            _recovered(part, part.view(W), q, weight, slack, aim, part.view(dW))
            for part, q, weight, slack in zip(self.parts, laws, weights, slacks, strict=True)
        ]
        return Point(dW, [dq for dq, _ in moves], aim / W - Z - Z / W * dW, [dl for _, dl in moves])

    def _system(self, point: Point, slacks: list[Floats], aim: float) -> tuple[Floats, Floats]:
        """Return the second derivatives without those of W >= 0, and the right-hand side."""
        W, laws, _, weights = point
        N, K = W.shape
        total, rhs = np.zeros((N, K, N, K)), aim / W - self.cost
        for part, q, weight, slack in zip(self.parts, laws, weights, slacks, strict=True):
            left = reduced(part, W, q, weight, slack, aim)
            np.add.at(rhs, part.rows, left.rhs)
            _add_blocks(total, part, W, q, weight)
            _add_low(total, part, left.low)
        return total.reshape(N * K, N * K), rhs

    def _sums(self) -> Floats:
        """Return which entries of W sum to 1, a column for each sum."""
        N, K = self.cost.shape
        return np.asarray(np.kron(np.eye(N), np.ones((K, 1))), dtype=np.float64)

    def _polished(self, W: Floats, weights: list[Floats], seconds: float) -> float:
        """Lower bound from the best multiples of the same multipliers, by a linear program."""
        from fastpriv._core.highs import Rows, minimise

        N, K = W.shape
        sums = [weight.sum(axis=1) for weight in weights]
        largest = max(float(total.max()) for total in sums)
        kept = [total > _NEEDED * largest for total in sums]
        shares, table = [], []
        for part, weight, total, keep in zip(self.parts, weights, sums, kept, strict=True):
            share = np.where(keep[:, None], weight / total[:, None], 0.0)
            spread = np.zeros((int(keep.sum()), N, K))
            where = np.arange(len(spread))[:, None], part.rows[keep]
            np.add.at(spread, where, part.slopes(W, share)[keep])
            shares.append(share)
            table.append(spread.reshape(len(spread), N * K))
        slopes = np.concatenate(table)
        # Variables: multipliers, then the least reduced cost of every x, which is free.
        left = np.concatenate([slopes.T, -np.kron(np.eye(N), np.ones((K, 1)))], axis=1)
        filled = left != 0.0
        rows = Rows(
            np.concatenate([[0], np.cumsum(filled.sum(axis=1))]),
            np.nonzero(filled)[1],
            left[filled],
            -self.cost.reshape(-1),
            np.full(N * K, math.inf),
        )
        lower = np.concatenate([np.zeros(len(slopes)), np.full(N, -math.inf)])
        costs = np.concatenate([np.full(len(slopes), self.epsilon), -np.ones(N)])
        try:
            answer = minimise(costs, lower, rows, seconds).values[: len(slopes)]
        except SolverFailure:
            return -math.inf
        best, start = [], 0
        for share, keep in zip(shares, kept, strict=True):
            multiple = np.zeros(len(share))
            multiple[keep] = np.maximum(answer[start : start + int(keep.sum())], 0.0)
            start += int(keep.sum())
            best.append(multiple[:, None] * share)
        return self.bound(W, best)


def reduced(
    part: Part, W: Floats, q: Floats, weight: Floats, slack: Floats, aim: float
) -> _Reduced:
    """Eliminate dq and dl from the Newton system of a part.

    With t = W/q - 1 and E = sum_a l_a (1 + t_a)/q, the equations of dq and dl are

        E dq = sum_a (l_a/q) dW_a + sum_a (l_a + dl_a) t_a,
        sum_y ln(1 + t_a) dW_a - t_a dq - (s_a/l_a) dl_a = s_a - aim/l_a.
    """
    ratio, E, root, lack = _eliminated(part, W, q, weight, slack, aim)
    logs = _logs(ratio)
    count, m, outputs = ratio.shape
    # How dl depends on dW: own logarithms, less what dq takes along.
    taken = weight[:, :, None, None] * np.swapaxes(ratio / (E * q)[:, None], 1, 2)[:, None]
    bond = np.eye(m)[:, None] * logs[..., None] - taken
    low = np.linalg.solve(root, np.swapaxes(bond.reshape(count, -1, m), 1, 2))
    low = np.swapaxes(low, 1, 2)
    drawn = low @ np.linalg.solve(root, lack[..., None])
    pulled = np.einsum("ba,bak->bk", weight, ratio) / (E * q)
    rhs = weight[:, :, None] * (pulled[:, None] - logs) + drawn.reshape(count, m, outputs)
    return _Reduced(np.asarray(low, dtype=np.float64).reshape(count, m, outputs, m), rhs)


def _eliminated(
    part: Part, W: Floats, q: Floats, weight: Floats, slack: Floats, aim: float
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return W/q - 1, E, the Cholesky factor of the equations of dl, and their right-hand sides.

    The equations are S dl = bond . dW - lack, S = diag(s/l) + sum_y t t^T/E.
    """
    ratio = part.ratios(W, q)
    E = np.einsum("ba,bak->bk", weight, 1.0 + ratio) / q
    S = np.einsum("bak,bck->bac", ratio / E[:, None], ratio)
    S += np.eye(weight.shape[1]) * (slack / weight)[:, :, None]
    pulled = np.einsum("ba,bak->bk", weight, ratio) / E
    lack = slack - aim / weight + np.einsum("bak,bk->ba", ratio, pulled)
    return ratio, E, np.linalg.cholesky(S), lack


def _recovered(
    part: Part, W: Floats, q: Floats, weight: Floats, slack: Floats, aim: float, dW: Floats
) -> tuple[Floats, Floats]:
    """Return dq and dl of a part for the step of the channel."""
    ratio, E, root, lack = _eliminated(part, W, q, weight, slack, aim)
    step = dW[part.rows]
    carried = np.einsum("ba,bak->bk", weight, step) / (q * E)
    rise = (_logs(ratio) * step).sum(axis=2) - np.einsum("bak,bk->ba", ratio, carried)
    dl = np.linalg.solve(root @ np.swapaxes(root, 1, 2), (rise - lack)[..., None])[..., 0]
    dq = carried + np.einsum("ba,bak->bk", weight + dl, ratio) / E
    return np.asarray(dq), np.asarray(dl)


def _add_blocks(total: Floats, part: Part, W: Floats, q: Floats, weight: Floats) -> None:
    """Add l_a/W_a on the diagonal, less l_a l_c/(q^2 E) for pairs of rows, for each y alone."""
    V, m, y = W[part.rows], weight.shape[1], np.arange(W.shape[1])
    mass = np.einsum("ba,bak->bk", weight, V)  # q^2 E
    diagonal = np.zeros((len(W), len(W), W.shape[1]))
    for a in range(m):
        for c in range(m):
            block = -(weight[:, a] * weight[:, c])[:, None] / mass
            if a == c:
                block = block + weight[:, a, None] / V[:, a]
            np.add.at(diagonal, (part.rows[:, a], part.rows[:, c]), block)
    total[:, y, :, y] += np.moveaxis(diagonal, 2, 0)


def _add_low(total: Floats, part: Part, low: Floats) -> None:
    """Add the products of the vectors of all constraints with themselves.

    The vectors of a selection touch its own rows only: a block of K x K for each pair of them.
    """
    N, K = total.shape[:2]
    m, blocks = low.shape[1], total.transpose(0, 2, 1, 3)
    step = max(1, _BLOCK // (K * K))
    for a in range(m):
        for c in range(m):
            pairs = part.rows[:, a] * N + part.rows[:, c]
            order = np.argsort(pairs, kind="stable")
            for start in range(0, len(order), step):
                chosen = order[start : start + step]
                products = low[chosen, a] @ np.swapaxes(low[chosen, c], 1, 2)
                which, first = np.unique(pairs[chosen], return_index=True)
                blocks[which // N, which % N] += np.add.reduceat(products, first, axis=0)


def _logs(ratio: Floats) -> Floats:
    """Return ln(1 + ratio); a ratio of -1 counts as the next larger float."""
    return np.asarray(np.log1p(np.maximum(ratio, _FLOOR)))


def _products(point: Point, slacks: list[Floats]) -> Floats:
    """Return the products of all numbers that stay positive and their multipliers."""
    pairs = zip(point.weights, slacks, strict=True)
    parts = [(weight * slack).reshape(-1) for weight, slack in pairs]
    return np.concatenate([(point.W * point.Z).reshape(-1), *parts])


def _room(at: Floats, move: Floats) -> float:
    """Longest step that keeps positive numbers at least 0."""
    falling = move < 0.0
    return float((-at[falling] / move[falling]).min(initial=math.inf))
