"""Minimum distortion at an individual capacity: a convex program, by an interior-point method.

    minimise <cost, W>  subject to  C_k(W) <= epsilon,  W >= 0,  rows of W sum to 1,

where C_k is the capacity of the channel with the rows of W in selection k. It is the radius of the
smallest ball around them: C_k(W) <= epsilon if and only if D(W[k_a] || q) <= epsilon for some q and
all a. So each selection has an output distribution q_k as further variables, and a constraint for
each of its m rows. All constraints are convex and smooth, even if the best input distribution
leaves rows out. D is written as

    D(w || q) = sum_y w ln(w/q) - w + q,

so that q needs no constraint. Let l[k, a] >= 0 be the multipliers. For the distributions p_a = l[k,
a]/sum_a l[k, a] and any posterior r(a | y), Gibbs' inequality gives

    sum_a p_a sum_y W'[k_a, y] ln(r(a | y)/p_a) <= I(p, W') <= C_k(W')

for every channel W'. With the posterior of W, every channel within the bounds costs at least

    sum_x min_y [cost + sum_k sum_(a: k_a = x) l[k, a] ln(W[x, y]/mean_k(y))] - epsilon sum l,

where mean_k is the output distribution of selection k under p.

Second derivatives are diagonal in y except for one vector for each constraint. A Newton step
eliminates q_k (diagonal) and the multipliers (m x m) of each selection. It factors one matrix of
size N K. Cost O((N K)^3 + B m^3 K^2) per step, with B selections of m rows.
"""

from __future__ import annotations

import itertools
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.clock import Clock
from fastpriv._core.highs import Block, Rows, minimise
from fastpriv._core.rounding import log_up, lowered, raised, round_up, roundoff
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.capacity import capacities
from fastpriv._structure.counts import log_binomials
from fastpriv._structure.neighbours import hamming_distances
from fastpriv._structure.rows import RowKernel, RowKernels
from fastpriv._structure.types import Blocks, Stack, classes_against, types_of
from fastpriv.channels import AbstractChannel, Channel, HammingChannel, ProductChannel
from fastpriv.channels.types import TypeChannel, type_error, type_weights
from fastpriv.design.certificate import mixed_until
from fastpriv.design.closed_forms import constant_mechanism, identity_mechanism, rounded_up
from fastpriv.design.engines.interior import step_length
from fastpriv.design.problem import Answer, Limits, Problem, minimum
from fastpriv.errors import SolverFailure, TooLarge, short
from fastpriv.measures.distortion import expected_distance
from fastpriv.priors import Distribution, Exchangeable, Product
from fastpriv.priors.base import as_prior
from fastpriv.results import Solution
from fastpriv.spaces import Space

__all__ = ["solve_pd_capacity"]

#: Most databases.
_MAX_DATABASES = 64
#: Most numbers that are stored for all selections (0.5 GB).
_MAX_KEPT = 1 << 26
#: Most classes of a program on types: the second derivatives are a matrix of this size.
_MAX_CLASSES = 3_300
#: Smallest capacity of a program; below it, a constant is within about 1e-6 of the optimum.
_SMALLEST = 1e-12
#: Gap of the certified capacities.
_FINE = 1e-13
#: Most mixtures with a constant that are tried to meet the capacity.
_MIXTURES = 60
#: Level of randomised response from which the search for a start begins.
_STEEP = 20.0
#: Share of the capacity that a start may have.
_START = 0.6
#: Maximum number of steps.
_MAX_STEPS = 80
#: Share of the distance to the boundary that a step covers.
_STEP = 0.99
#: Share of the complementarity that the first step aims at, and the smallest share later.
_FIRST_AIM = 0.5
_AIM = 0.1
#: Share of the gap for the iterates; the rest is for the repair.
_INNER_GAP = 0.25
#: The same on types, without a final program that improves the bound.
_INNER_GAP_TYPES = 0.025
#: Largest ratio of gap to complementarity before a step only centres.
_AHEAD = 2.0
#: Most times that a step is shortened to stay central.
_SHORTER = 40
#: Smallest product of a number and its multiplier, relative to the mean of all products.
_CENTRAL = 1e-2
#: Multipliers below this share of the largest are left out of the final program.
_NEEDED = 1e-7
#: Largest time of the final program in seconds, and the share of the time limit kept for it.
_SECONDS = 60.0
_RESERVED = 0.15
#: Entries of the low-rank part of the second derivative that are formed at a time.
_BLOCK = 1 << 23
#: Smallest W/q - 1 that floats distinguish from -1.
_FLOOR = -1.0 + roundoff(2.0)


def solve_pd_capacity(
    prior: Distribution | ArrayLike,
    epsilon: float,
    *,
    priors: str = "all",
    gap: float = 1e-6,
    time_limit: float = math.inf,
) -> Solution:
    """Find the mechanism of minimum Hamming distortion at an individual capacity.

    min sum p(x) d(x, y) W[x, y] subject to C_1(W) <= epsilon. C_1 is the individual channel
    capacity (Wu-Xia-He 2020, Definition 5): the maximum information in nats that the output reveals
    about one record, over all priors of an adversary.

    Parameters
    ----------
    prior : Distribution or 1-D array
        Distribution of the databases, used for the expected distortion.
    epsilon : float
        Individual capacity in nats, at least 0.
    priors : {"all", "independent"}
        Priors that an adversary may have; see :func:`individual_capacity`.
    gap : float
        Certified relative gap at which to stop. Rounding may stop the method at gaps of 1e-6 to
        1e-5: for several records with three or more values at small capacities, and for small
        distortions. A :class:`GapWarning` is then given.
    time_limit : float
        Seconds after which to return the best certified solution so far.

    Returns
    -------
    Solution
        ``value`` is the distortion of the channel, rounded up. ``level`` is an upper bound on the
        individual capacity of its floats, at most epsilon. ``bound`` is a proved lower bound,
        rounded down.

    Raises
    ------
    TooLarge
        If there are more than 64 databases, or more selections than fit. The limit is 25 bits if
        their order does not matter (:class:`Exchangeable`, or independent bits of one
        distribution). There is no limit for ``priors="independent"`` with independent records under
        the prior.

    Notes
    -----
    C_1 is the largest capacity of a channel with one row of W for each value of some x_i (Theorem 2
    there), so the program is convex. For adversaries with independent records, only databases that
    differ in x_i alone are selected together. If the records are also independent under ``prior``,
    the optimum is a sum over records. From epsilon = ln m on, the identity is optimal.

    Cost O(N^6 + B m^3 N^2) for each of about 40 interior-point steps with B selections of m rows,
    and N^4 numbers in memory: 0.1 s for 8 databases, 1 s for 16. For 64 databases some 30 s with
    independent records; over all priors a gap of 1 % after a minute. If the order of bits does not
    matter, there is a variable for each class of pairs.

    Examples
    --------
    >>> import fastpriv as fp
    >>> prior = fp.Dense([0.4, 0.1, 0.1, 0.4], [2, 2])
    >>> best = fp.solve_pd_capacity(prior, 0.1)
    >>> best.level <= 0.1, best.gap < 1e-6
    (True, True)
    >>> tied, alone = best.value, fp.solve_pd_capacity(prior, 0.1, priors="independent").value
    >>> round(tied, 4), round(alone, 4)
    (0.6087, 0.3654)
    """
    law = as_prior(prior)
    epsilon = check.real(epsilon, "epsilon", least=0.0)
    check.word(priors, "priors", ("all", "independent"))
    limits = Limits.checked(gap, time_limit)
    return rounded_up(minimum(CapacityProblem(law, epsilon, priors), limits), law)


class CapacityProblem(Problem[Solution]):
    """Minimum Hamming distortion at an individual capacity."""

    def __init__(self, prior: Distribution, epsilon: float, priors: str) -> None:
        self.prior, self.level, self.priors = prior, epsilon, priors

    def closed_form(self, limits: Limits) -> Solution | None:
        """Return the identity if it is allowed, or a constant if nothing else is."""
        most = log_up(max(self.prior.space.sizes))
        if most <= self.level:
            return Solution(0.0, 0.0, identity_mechanism(self.prior), most, "closed-form")
        constant = constant_mechanism(self.prior)
        return constant if self.level == 0.0 or constant.value == 0.0 else None

    def known(self) -> tuple[list[Solution], float]:
        """Return the best constant; distortions are at least 0."""
        return [constant_mechanism(self.prior)], 0.0

    def answer(self, limits: Limits) -> Answer:
        """Solve record by record, on types or over all databases."""
        prior = self.prior
        if self.priors == "independent" and isinstance(prior, Product):
            # Averaged over the other records, W is a channel of one record with at most the same
            # capacity: the program tensorises.
            rows = [self._solved(Space([len(p)]), p, limits) for p in prior.distinct]
            kernels = RowKernels(
                [RowKernel(row.channel.matrix()) for row in rows], prior.assignment
            )
            level, late = max(row.level for row in rows), any(row.late for row in rows)
            bound = lowered(prior.total([row.bound for row in rows]), 4.0)
            return Answer(ProductChannel.of(kernels), bound, "rows", "interior", late, level)
        types = self._types()
        if types is None:
            return self._solved(prior.space, prior.probabilities(), limits)
        path = OnTypes(types, max(self.level, _SMALLEST), self.priors)
        return path.answer(limits, "types")

    def _types(self) -> Exchangeable | None:
        """Return the distribution of types of bits whose order does not matter, else None."""
        prior = self.prior
        few = prior.space.size <= _MAX_DATABASES and not isinstance(prior, Exchangeable)
        return None if few or prior.space.m != 2 or prior.space.n < 2 else prior.by_type()

    def _solved(self, space: Space, p: Floats, limits: Limits) -> Answer:
        """Solve the program over all databases of a space."""
        check_size(space, self.priors)
        most = log_up(max(space.sizes))
        if most <= self.level:
            return Answer(Channel(np.eye(space.size), space), 0.0, "dense", "interior", False, most)
        # The minimum distortion falls with the capacity, so a bound at a larger capacity is valid.
        path = OverDatabases(space, p, max(self.level, _SMALLEST), self.priors)
        constant = Answer(path.channel(path.constant), 0.0, "dense", "interior", False, 0.0)
        if float((path.cost * path.constant).sum()) == 0.0:  # one database has all the mass
            return constant
        answer = path.answer(limits, "dense")
        within = answer.level <= self.level and path.improves(answer.channel.matrix())
        return answer if within else constant._replace(bound=answer.bound, late=answer.late)

    def measured(self, answer: Answer) -> Solution:
        """Measure the distortion; the repair has certified the capacity."""
        value = expected_distance(answer.channel, self.prior)
        return Solution(value, answer.bound, answer.channel, answer.level, answer.method)


def check_size(space: Space, priors: str) -> None:
    """Refuse spaces that are too large for the program."""
    sizes = [m for m in space.sizes if m > 1]
    if space.size > _MAX_DATABASES:
        raise TooLarge(
            f"the program at an individual capacity is solved over at most "
            f"{_MAX_DATABASES} databases, and there are {short(space.size)}; use fewer records, or "
            'independent rows with priors="independent".'
        )
    number = sum(m * (space.size // m) ** (m if priors == "all" else 1) for m in sizes)
    if number * max(sizes, default=1) ** 2 * space.size > _MAX_KEPT:
        raise TooLarge(
            f"an adversary has {number:,} selections of {space.size} databases, too many for the "
            'program; use fewer values, or priors="independent".'
        )


def selections(space: Space, priors: str) -> list[Ints]:
    """Return the sets of databases that an adversary may choose from, by their size: (B, m)."""
    rows = space.rows(np.arange(space.size))
    sets: dict[int, list[Ints]] = {}
    for i, m in enumerate(space.sizes):
        if m == 1:
            continue
        slices = [np.flatnonzero(rows[:, i] == a) for a in range(m)]
        chosen = zip(*slices, strict=True) if priors != "all" else itertools.product(*slices)
        sets.setdefault(m, []).append(np.sort(np.array(list(chosen)), axis=1))
    return [np.unique(np.concatenate(parts), axis=0) for parts in sets.values()]


class Point(NamedTuple):
    """A channel, an output distribution for each selection of a part, and all multipliers."""

    W: Floats
    laws: list[Floats]  # (B, K) for each part
    Z: Floats  # of W >= 0
    weights: list[Floats]  # (B, m) for each part


class Selections:
    """Sets of m rows of a channel each: rows (B, m)."""

    def __init__(self, rows: Ints) -> None:
        self.rows = rows

    def view(self, W: Floats) -> Floats:
        """Return the channel that the rows are taken from, which is linear in W."""
        return W

    def ratios(self, W: Floats, q: Floats) -> Floats:
        """Return W/q - 1, (B, m, K)."""
        return np.asarray((W[self.rows] - q[:, None]) / q[:, None])

    def radii(self, W: Floats, q: Floats) -> Floats:
        """Return D(W || q), (B, m), from non-negative terms."""
        ratio = self.ratios(W, q)
        return np.asarray((q[:, None] * ((1.0 + ratio) * _logs(ratio) - ratio)).sum(axis=2))

    def slopes(self, W: Floats, weights: Floats) -> Floats:
        """Return weights times ln(W/mean), for the means of rows under the weights.

        Means are taken relative to the heaviest row, which is at most m times the mean. Relative
        errors are a few times m ulp.
        """
        V = W[self.rows]
        share = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
        heavy = V[np.arange(len(V)), weights.argmax(axis=1)][:, None]
        apart = V - heavy
        mean = np.einsum("ba,bak->bk", share, apart)[:, None]
        return np.asarray(weights[:, :, None] * _logs((apart - mean) / (heavy + mean)))


class Eliminated(NamedTuple):
    """The system of a part after q_k and the multipliers are eliminated."""

    low: Floats  # (B, m, K, m): the second derivative has sum over the last axis of low low^T
    rhs: Floats  # (B, m, K): added to the right-hand side


class CapacityPath(ABC):
    """The central path of a program: costs, selections in parts, and the bound on capacities."""

    cost: Floats
    epsilon: float
    parts: Sequence[Selections]
    constant: Floats  # the cheapest mechanism that does not depend on x
    inner_gap: float

    @property
    def number(self) -> int:
        """Number of products of a number and its multiplier."""
        return self.cost.size + sum(part.rows.size for part in self.parts)

    @abstractmethod
    def normalised(self, W: Floats) -> Floats:
        """Normalise the output distribution of each database to sum to 1."""

    @abstractmethod
    def randomised(self, level: float) -> Floats:
        """Return randomised response at a level."""

    @abstractmethod
    def level(self, W: Floats) -> float:
        """Return the largest capacity of all selections. Rounded up."""

    @abstractmethod
    def bound(self, W: Floats, weights: list[Floats]) -> float:
        """Return the lower bound on the cost of multipliers >= 0 and a channel. Rounded down."""

    @abstractmethod
    def system(self, point: Point, slacks: list[Floats], aim: float) -> tuple[Floats, Floats]:
        """Return the second derivatives without the part of W >= 0, and the right-hand side."""

    @abstractmethod
    def sums(self) -> Floats:
        """Return which entries of W sum to 1, a column for each sum."""

    @abstractmethod
    def channel(self, W: Floats) -> AbstractChannel:
        """Return the mechanism."""

    def polished(self, W: Floats, weights: list[Floats], seconds: float) -> float:
        """Return a better lower bound from the same multipliers, if there is one."""
        return self.bound(W, weights)

    def improves(self, W: Floats) -> bool:
        """Whether a mechanism costs less than a constant."""
        return float((W * self.cost).sum()) < float((self.constant * self.cost).sum())

    def answer(self, limits: Limits, method: str) -> Answer:
        """Follow the path, and mix in a constant until the capacity is met."""
        W, bound, late = self.follow(self.start(), self.inner_gap * limits.gap, limits.clock)
        W, level = self.repaired(W)
        return Answer(self.channel(W), bound, method, "interior", late, level)

    def start(self) -> Floats:
        """Return randomised response at a level with about half of the allowed capacity."""
        level = _STEEP
        while True:
            W = self.randomised(level)
            slacks = self.slacks(W, self.means(W))
            most = self.epsilon - min(float(slack.min()) for slack in slacks)
            if most <= _START * self.epsilon:
                return W
            level *= max(0.3, math.sqrt(0.5 * self.epsilon / most))

    def repaired(self, W: Floats) -> tuple[Floats, float]:
        """Return a mixture with a constant of capacity at most epsilon, and this capacity."""
        excess = 0.0

        def accept(mixed: Floats) -> tuple[Floats, float] | None:
            nonlocal excess
            mixed = self.normalised(mixed)
            level = self.level(mixed)
            excess = (level - self.epsilon) / level if level > 0.0 else 0.0
            return (mixed, level) if level <= self.epsilon else None

        def shares() -> Iterator[float]:
            # Capacity is convex: mixing with a constant lowers it by at least the mixing share.
            share = 0.0
            for _ in range(_MIXTURES):
                yield share
                share = min(1.0, max(4.0 * share, 2.0 * excess, roundoff(2.0)))

        return mixed_until(accept, W, self.constant, shares()) or (self.constant, 0.0)

    def means(self, W: Floats) -> list[Floats]:
        """Return the mean of the rows of each selection."""
        return [np.asarray(part.view(W)[part.rows].mean(axis=1)) for part in self.parts]

    def slacks(self, W: Floats, laws: list[Floats]) -> list[Floats]:
        """Return epsilon minus the divergences, (B, m) for each part."""
        pairs = zip(self.parts, laws, strict=True)
        return [self.epsilon - part.radii(part.view(W), q) for part, q in pairs]

    def follow(self, W: Floats, gap: float, clock: Clock) -> tuple[Floats, float, bool]:
        """Return a channel within the bounds, the best lower bound, and whether time was short.

        ``W`` has positive entries. The divergences of its rows from the means of their selections
        are below epsilon.
        """
        laws = self.means(W)
        slacks = self.slacks(W, laws)
        first = float((self.cost * W).sum()) / self.number
        point = Point(W, laws, first / W, [first / slack for slack in slacks])
        best, aim, late = -math.inf, _FIRST_AIM, False
        limit = clock.left()
        kept, step = 0.0 if math.isinf(limit) else _RESERVED * limit, 0.0
        for _ in range(_MAX_STEPS):
            start = time.monotonic()
            bound, value = self.bound(point.W, point.weights), float((self.cost * point.W).sum())
            best, rest = max(best, bound), float(_products(point, slacks).sum())
            # Rounding may weaken the bound of the multipliers; the final program improves it.
            if min(value - best, 2.0 * rest) <= gap * value:
                break
            if clock.left() <= kept + step:  # start no step that would end too late
                late = True
                break
            if value - bound > _AHEAD * rest and aim < 1.0:
                aim = 1.0
            move = self._direction(point, slacks, aim * rest / self.number)
            taken = None if move is None else self._taken(point, move)
            if taken is None:
                break
            point, slacks, length = taken
            aim = min(max(_AIM, (1.0 - length) ** 2), 0.99)  # after short steps, centre more
            step = time.monotonic() - start
        seconds = min(_SECONDS, max(1.0, clock.left()))
        return point.W, max(best, self.polished(point.W, point.weights, seconds)), late

    def _taken(self, point: Point, move: Point) -> tuple[Point, list[Floats], float] | None:
        """Take the longest step that stays central; None if there is none."""
        pairs = [(point.W, move.W), (point.Z, move.Z)]
        pairs += [*zip(point.laws, move.laws, strict=True)]
        pairs += [*zip(point.weights, move.weights, strict=True)]
        length = min(step_length(at, by, _STEP) for at, by in pairs)
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
        """Return the Newton step towards complementarity ``aim``; None if rounding prevents it."""
        from scipy.linalg import cho_factor, cho_solve

        W, laws, Z, weights = point
        flat, rhs = self.system(point, slacks, aim)
        flat[np.diag_indices(len(flat))] += (Z / W).reshape(-1)
        scale = W.reshape(-1)  # scaled by W, the matrix has entries of one size
        flat *= scale
        flat *= scale[:, None]
        sums = self.sums()
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


class OverDatabases(CapacityPath):
    """The program over all databases of a space."""

    inner_gap = _INNER_GAP

    def __init__(self, space: Space, p: Floats, epsilon: float, priors: str) -> None:
        self.space, self.epsilon = space, epsilon
        self.cost = p[:, None] * hamming_distances(space)
        self.parts = [Selections(rows) for rows in selections(space, priors)]
        self.constant = np.zeros((space.size, space.size))
        self.constant[:, int(self.cost.sum(axis=0).argmin())] = 1.0

    def channel(self, W: Floats) -> Channel:
        return Channel(W, self.space)

    def randomised(self, level: float) -> Floats:
        return np.array(HammingChannel(self.space.n, self.space.sizes, level).matrix())

    def level(self, W: Floats) -> float:
        ends = [capacities(np.ascontiguousarray(W[part.rows]), _FINE)[1] for part in self.parts]
        return max(float(upper.max()) for upper in ends)

    def normalised(self, W: Floats) -> Floats:
        return np.asarray(W / W.sum(axis=1, keepdims=True))

    def bound(self, W: Floats, weights: list[Floats]) -> float:
        total, size, spent = self.cost.copy(), np.abs(self.cost), 0.0
        for part, weight in zip(self.parts, weights, strict=True):
            slopes = part.slopes(W, weight)
            np.add.at(total, part.rows, slopes)
            # Logarithms are off by a few ulp of 1, of themselves, and of the sum of the
            # distribution.
            np.add.at(size, part.rows, weight[:, :, None] + np.abs(slopes))
            spent += math.fsum(weight.reshape(-1))
        error = roundoff(64.0 + 4.0 * max(part.rows.size for part in self.parts))
        least = math.fsum((total - error * size).min(axis=1))
        return lowered(least, 8.0) - raised(self.epsilon * spent, 8.0) - roundoff(8.0) * abs(least)

    def system(self, point: Point, slacks: list[Floats], aim: float) -> tuple[Floats, Floats]:
        W, laws, _, weights = point
        N, K = W.shape
        total, rhs = np.zeros((N, K, N, K)), aim / W - self.cost
        for part, q, weight, slack in zip(self.parts, laws, weights, slacks, strict=True):
            left = eliminate(part, W, q, weight, slack, aim)
            np.add.at(rhs, part.rows, left.rhs)
            _add_blocks(total, part, W, q, weight)
            _add_low(total, part, left.low)
        return total.reshape(N * K, N * K), rhs

    def sums(self) -> Floats:
        N, K = self.cost.shape
        return np.asarray(np.kron(np.eye(N), np.ones((K, 1))), dtype=np.float64)

    def polished(self, W: Floats, weights: list[Floats], seconds: float) -> float:
        """Return the lower bound of the best multiples of the multipliers, by a linear program."""
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
        # Variables: multipliers, then the smallest reduced cost of every x, which is free.
        left = np.concatenate([slopes.T, -np.kron(np.eye(N), np.ones((K, 1)))], axis=1)
        filled = left != 0.0
        block = Block(
            np.nonzero(filled)[1],
            left[filled],
            -self.cost.reshape(-1),
            math.inf,
            filled.sum(axis=1),
        )
        rows = Rows.stacked([block])
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


class ClassPair(Selections):
    """Two databases: shares ``scale[a, c]`` of the masses of the classes ``index[a, c]``."""

    def __init__(self, index: Ints, scale: Floats) -> None:
        super().__init__(np.array([[0, 1]]))
        self.index, self.scale = index, scale

    def view(self, W: Floats) -> Floats:
        """Return the output distributions of both databases."""
        return np.asarray(self.scale * W[self.index])


class OnTypes(CapacityPath):
    """The program over masses of classes, for the bits of an exchangeable prior.

    Let P permute the records of databases. W[Px, Py] has the individual capacity and the distortion
    of W. Capacity is convex in W, so the mean over all P has at most this capacity, and the same
    distortion. Hence some optimal W depends only on the class of (x, y): how many records hold s in
    x and v in y. The variables are the masses of classes: the probability, given x, that the output
    makes the class.

    An adversary selects two databases x and x'. A permuted pair reveals as much. So one pair
    represents all pairs with the same numbers of records (0, 0), (0, 1), (1, 0) and (1, 1). For
    this pair, outputs with the same numbers of ones among these four kinds of records have equal
    probabilities. The two output distributions are therefore given by products of four binomial
    ranges, each a share of the mass of a class.
    """

    inner_gap = _INNER_GAP_TYPES
    parts: list[ClassPair]

    def __init__(self, prior: Exchangeable, epsilon: float, priors: str) -> None:
        n = prior.space.n
        check.fits(
            math.comb(n + 3, 3),
            "the program over classes of databases and outputs",
            'use fewer records, or independent records with priors="independent"',
            _MAX_CLASSES,
        )
        self.n, self.types = n, types_of(Blocks.single(n, 2))
        self.classes = [classes_against(kind, self.types) for kind in self.types.counts]
        self.stack = Stack.of(self.types, self.classes)
        weights = type_weights(self.types, prior)
        self.cost = weights[self.stack.row] * self.stack.distance
        self.epsilon, self.parts = epsilon, self._pairs(priors)
        constants = [(self.stack.kind == kind).astype(np.float64) for kind in (0, n)]
        constant = min(constants, key=lambda masses: float(self.cost @ masses))
        self.constant = self.normalised(constant)

    def _pairs(self, priors: str) -> list[ClassPair]:
        """Return the pairs of databases that an adversary may choose, up to permutations."""
        n, table = self.n, self._table()
        logs = [log_binomials(k) for k in range(n + 1)]
        parts: list[ClassPair] = []
        for up in range(1, n + 1):
            for down in range(0, min(up, n - up) + 1):
                if priors != "all" and (up, down) != (1, 0):
                    continue
                for both in range(n - up - down + 1):
                    kinds = n - up - down - both, up, down, both
                    ones = np.indices([k + 1 for k in kinds]).reshape(4, -1)
                    ways = sum(logs[k][o] for k, o in zip(kinds, ones, strict=True))
                    j = ones.sum(axis=0)
                    index = np.stack(
                        [
                            table[down + both, j, ones[2] + ones[3]],
                            table[up + both, j, ones[1] + ones[3]],
                        ]
                    )
                    scale = np.exp(ways - self.stack.log_outputs[index])
                    parts.append(ClassPair(index, scale))
        return parts

    def _table(self) -> Ints:
        """Return the number of the class with i ones in x, j in y and t in both, [i, j, t]."""
        table = np.zeros((self.n + 1,) * 3, dtype=np.int64)
        starts = self.stack.starts.tolist()
        for kind, part, start in zip(self.types.counts, self.classes, starts, strict=False):
            shared = part.held(1, 2)[1]
            numbers = start + np.arange(len(part.row))
            table[shared + part.held(0, 2)[1], kind[0][1], shared] = numbers
        return table

    def normalised(self, W: Floats) -> Floats:
        return np.asarray(W / np.bincount(self.stack.row, W)[self.stack.row])

    def randomised(self, level: float) -> Floats:
        each = self.n * math.log1p(math.exp(-level))
        return self.normalised(np.exp(self.stack.log_outputs - level * self.stack.distance - each))

    def channel(self, W: Floats) -> TypeChannel:
        parts = np.split(W / np.exp(self.stack.log_outputs), self.stack.starts[1:-1])
        return TypeChannel(self.types, self.classes, parts)

    def bound(self, W: Floats, weights: list[Floats]) -> float:
        total, size, spent = self.cost.copy(), np.abs(self.cost), 0.0
        terms = np.zeros(len(W))
        for part, weight in zip(self.parts, weights, strict=True):
            slopes = part.slopes(part.view(W), weight)[0]
            np.add.at(total, part.index, part.scale * slopes)
            np.add.at(size, part.index, part.scale * (weight[0][:, None] + np.abs(slopes)))
            np.add.at(terms, part.index, 1.0)
            spent += math.fsum(weight.reshape(-1))
        error = roundoff(256.0 + 4.0 * float(terms.max())) + 4.0 * type_error(self.n)
        least = np.full(self.n + 1, math.inf)
        np.minimum.at(least, self.stack.row, total - error * size)
        whole = math.fsum(least)
        return lowered(whole, 8.0) - raised(self.epsilon * spent, 8.0) - roundoff(8.0) * abs(whole)

    def system(self, point: Point, slacks: list[Floats], aim: float) -> tuple[Floats, Floats]:
        W, laws, _, weights = point
        total, rhs = np.zeros((len(W), len(W))), aim / W - self.cost
        low = np.zeros((2 * len(self.parts), len(W)))
        for k, (part, q, weight, slack) in enumerate(
            zip(self.parts, laws, weights, slacks, strict=True)
        ):
            V, index, scale = part.view(W), part.index, part.scale
            left = eliminate(part, V, q, weight, slack, aim)
            np.add.at(rhs, index, scale * left.rhs[0])
            mass = weight[0] @ V
            for a in range(2):
                for b in range(2):
                    block = -weight[0, a] * weight[0, b] / mass
                    if a == b:
                        block = block + weight[0, a] / V[a]
                    np.add.at(total, (index[a], index[b]), scale[a] * scale[b] * block)
                np.add.at(low[2 * k + a], index, scale * left.low[0, :, :, a])
        total += low.T @ low
        return total, rhs

    def sums(self) -> Floats:
        return np.asarray(self.stack.row[:, None] == np.arange(self.n + 1), dtype=np.float64)

    def level(self, W: Floats) -> float:
        worst = max(
            float(capacities(np.ascontiguousarray(part.view(W)[None]), _FINE)[1][0])
            for part in self.parts
        )
        error = 4.0 * type_error(self.n)
        return round_up(worst + error * (worst + math.sqrt(2.0 * worst) + 4.0 * error))


def eliminate(
    part: Selections, W: Floats, q: Floats, weight: Floats, slack: Floats, aim: float
) -> Eliminated:
    """Eliminate dq and dl from the Newton system of a part.

    With t = W/q - 1 and E = sum_a l_a (1 + t_a)/q, the equations of dq and dl are

        E dq = sum_a (l_a/q) dW_a + sum_a (l_a + dl_a) t_a,
        sum_y ln(1 + t_a) dW_a - t_a dq - (s_a/l_a) dl_a = s_a - aim/l_a.
    """
    ratio, E, root, lack = _eliminated(part, W, q, weight, slack, aim)
    logs = _logs(ratio)
    count, m, outputs = ratio.shape
    # Dependence of dl on dW: own logarithms, less the part through dq.
    taken = weight[:, :, None, None] * np.swapaxes(ratio / (E * q)[:, None], 1, 2)[:, None]
    bond = np.eye(m)[:, None] * logs[..., None] - taken
    low = np.linalg.solve(root, np.swapaxes(bond.reshape(count, -1, m), 1, 2))
    low = np.swapaxes(low, 1, 2)
    drawn = low @ np.linalg.solve(root, lack[..., None])
    pulled = np.einsum("ba,bak->bk", weight, ratio) / (E * q)
    rhs = weight[:, :, None] * (pulled[:, None] - logs) + drawn.reshape(count, m, outputs)
    return Eliminated(np.asarray(low, dtype=np.float64).reshape(count, m, outputs, m), rhs)


def _eliminated(
    part: Selections, W: Floats, q: Floats, weight: Floats, slack: Floats, aim: float
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
    part: Selections, W: Floats, q: Floats, weight: Floats, slack: Floats, aim: float, dW: Floats
) -> tuple[Floats, Floats]:
    """Return dq and dl of a part for the step of the channel."""
    ratio, E, root, lack = _eliminated(part, W, q, weight, slack, aim)
    step = dW[part.rows]
    carried = np.einsum("ba,bak->bk", weight, step) / (q * E)
    rise = (_logs(ratio) * step).sum(axis=2) - np.einsum("bak,bk->ba", ratio, carried)
    dl = np.linalg.solve(root @ np.swapaxes(root, 1, 2), (rise - lack)[..., None])[..., 0]
    dq = carried + np.einsum("ba,bak->bk", weight + dl, ratio) / E
    return np.asarray(dq), np.asarray(dl)


def _add_blocks(total: Floats, part: Selections, W: Floats, q: Floats, weight: Floats) -> None:
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


def _add_low(total: Floats, part: Selections, low: Floats) -> None:
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
