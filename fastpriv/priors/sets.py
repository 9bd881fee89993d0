"""Sets of priors, for guarantees that do not rest on knowing the one."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.rounding import ULP, lowered, raised
from fastpriv._core.validation import Floats
from fastpriv.errors import Infeasible, InvalidInput, SolverFailure, short
from fastpriv.spaces import Space

__all__ = ["PriorSet"]

#: Relative distance between the value of a linear program and its certified bound.
_TIGHT = 1e-6
#: Seconds after which one linear program is given up.
_SECONDS = 300.0


class PriorSet:
    """A set of laws over databases: everything that a user is ready to assume about the prior.

    Made by the class methods below; asked through :func:`fastpriv.pml_level`.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = [[0.75, 0.25], [0.25, 0.75]]
    >>> around = fp.PriorSet.box([0.4, 0.4], [0.6, 0.6])
    >>> round(fp.pml_level(channel, around), 6), round(fp.pml_level(channel, fp.PriorSet.all(2)), 6)
    (0.510826, 1.098612)
    """

    #: Number of databases.
    size: int

    @staticmethod
    def all(size: int) -> PriorSet:
        """Return every law over ``size`` databases."""
        return AllPriors(check.integer(size, "size", 1))

    @staticmethod
    def box(lower: ArrayLike, upper: ArrayLike) -> PriorSet:
        """Return the laws with lower[x] <= p(x) <= upper[x] for every database x."""
        most = np.minimum(check.floats(upper, "upper", 1), 1.0)  # and no more than certain
        return Box(check.floats(lower, "lower", 1), most)

    @staticmethod
    def polytope(A: ArrayLike, b: ArrayLike) -> PriorSet:
        """Return the laws p with A p <= b (p >= 0 and sum p = 1 go without saying)."""
        return _Polytope(_finite(A, "A", 2), _finite(b, "b", 1))

    @staticmethod
    def product(space: Space | ArrayLike) -> PriorSet:
        """Return the laws under which the rows of a space are independent."""
        return ProductPriors(space if isinstance(space, Space) else Space(space))

    @staticmethod
    def bernoulli_interval(n: int, c: float) -> PriorSet:
        """Return ``n`` independent bits, each one with its own chance between c and 1 - c.

        A larger set than :meth:`iid_interval`, the P_c of Saeidian et al. 2024 (Proposition 4.6).
        """
        return BernoulliPriors(Space.hamming(n, 2), check.real(c, "c", 0.0, 0.5))

    @staticmethod
    def iid_interval(n: int, c: float) -> PriorSet:
        """Return ``n`` independent bits with one chance for all of them, between c and 1 - c."""
        return IidPriors(Space.hamming(n, 2), check.real(c, "c", 0.0, 0.5))

    @staticmethod
    def row_box(lower: ArrayLike, upper: ArrayLike, n: int) -> PriorSet:
        """Return ``n`` independent rows, each with a law of its own, lower <= p <= upper.

        ``lower`` and ``upper`` have a number for each value of a row. For two values and the
        bounds c and 1 - c this is :meth:`bernoulli_interval`.
        """
        most = np.minimum(check.floats(upper, "upper", 1), 1.0)
        box = Box(check.floats(lower, "lower", 1), most)
        return RowBoxPriors(Space.hamming(n, box.size), box)

    @staticmethod
    def total_variation(centre: ArrayLike, radius: float) -> PriorSet:
        """Return the laws p with sum |p - centre| / 2 <= radius."""
        return VariationBall(check.law(centre, "centre"), check.real(radius, "radius", 0.0, 1.0))

    @staticmethod
    def kl_ball(centre: ArrayLike, radius: float) -> PriorSet:
        """Return the laws p with D(p || centre) <= radius, in nats."""
        return DivergenceBall(check.law(centre, "centre"), check.real(radius, "radius", 0.0))

    @staticmethod
    def entropy(size: int, b: float) -> PriorSet:
        """Return the laws over ``size`` databases with H(p) >= b nats (Wu-Xia-He, Assumption 3)."""
        count = check.integer(size, "size", 1)
        check.fits(count, "a law over the databases", "use fewer databases")
        least, most = check.real(b, "b", 0.0), math.log(count)
        if least > raised(most, 4.0):
            raise Infeasible(f"no law over {count} databases has an entropy of {least!r} nats")
        # H(p) = ln N - D(p || uniform); the radius is rounded up.
        radius = max(0.0, most - least) + 4.0 * ULP * most
        return DivergenceBall(np.full(count, 1.0 / count), radius)

    @staticmethod
    def min_entropy(size: int, b: float) -> PriorSet:
        """Return the laws over ``size`` databases with no probability above e^-b: a box."""
        count = check.integer(size, "size", 1)
        check.fits(count, "a law over the databases", "use fewer databases")
        least = check.real(b, "b", 0.0)
        if least > raised(math.log(count), 4.0):
            raise Infeasible(f"no law over {count} databases has a min-entropy of {least!r} nats")
        most = min(1.0, raised(max(1.0 / count, math.exp(-least)), 4.0))
        return Box(np.zeros(count), np.full(count, most))


class AllPriors(PriorSet):
    """Every law over a number of databases."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __repr__(self) -> str:
        return f"PriorSet.all({short(self.size)})"


class RowPriors(PriorSet):
    """Laws under which rows are independent: the set knows the space, not only its size."""

    def __init__(self, space: Space) -> None:
        self.space, self.size = space, space.size


class ProductPriors(RowPriors):
    """Every law of independent rows."""

    def __repr__(self) -> str:
        return f"PriorSet.product({self.space!r})"


class BernoulliPriors(RowPriors):
    """Independent bits, each with a chance of one between c and 1 - c."""

    def __init__(self, space: Space, c: float) -> None:
        super().__init__(space)
        self.c = c

    def __repr__(self) -> str:
        return f"PriorSet.bernoulli_interval({self.space.n}, {self.c:g})"


class IidPriors(RowPriors):
    """Independent bits with the same chance of one, between c and 1 - c."""

    def __init__(self, space: Space, c: float) -> None:
        super().__init__(space)
        self.c = c

    def __repr__(self) -> str:
        return f"PriorSet.iid_interval({self.space.n}, {self.c:g})"


class ConvexPriors(PriorSet, ABC):
    """A convex set of laws, described by the least mean of a vector over it."""

    @abstractmethod
    def _least(self, column: Floats) -> float:
        """Return a lower bound on the least mean of a column with entries in [0, 1]."""

    @abstractmethod
    def _possible(self) -> np.ndarray:
        """Return which databases some law of the set allows."""


class Box(ConvexPriors):
    """Laws between two bounds for every database."""

    def __init__(self, lower: Floats, upper: Floats) -> None:
        if lower.shape != upper.shape:
            raise InvalidInput(f"lower has {len(lower)} entries, upper {len(upper)}")
        if np.any(lower > upper):
            x = int(np.flatnonzero(lower > upper)[0])
            raise InvalidInput(f"lower exceeds upper at database {x}: {lower[x]} > {upper[x]}")
        room, taken = math.fsum(upper), math.fsum(lower)
        if taken > 1.0 + check.SUM_TOLERANCE or room < 1.0 - check.SUM_TOLERANCE:
            raise InvalidInput(
                f"no law lies in the box: lower sums to {taken!r} and upper to {room!r}, but a "
                "law sums to 1"
            )
        self._lower, self._upper, self.size = lower, upper, len(lower)
        self._free = max(0.0, 1.0 - taken)

    def _possible(self) -> np.ndarray:
        return (self._upper if self._free > 0 else self._lower) > 0

    def _least(self, column: Floats) -> float:
        """Fill up from the smallest entries: a fractional knapsack. Cost O(N log N)."""
        order = np.argsort(column)
        room = (self._upper - self._lower)[order]
        before = np.cumsum(room) - room
        added = np.clip(self._free - before, 0.0, room)
        mean = float(column @ self._lower + column[order] @ added)
        # The sums of room may be off by so many ulp of 1, which the last entry filled then gets.
        last = float(column[order][added > 0].max(initial=0.0))
        return mean - (4 * self.size + 16) * ULP * (mean + last)

    def __repr__(self) -> str:
        return f"PriorSet.box({self.size} databases)"


class RowBoxPriors(RowPriors):
    """Independent rows, each with its own law in one box."""

    def __init__(self, space: Space, box: Box) -> None:
        super().__init__(space)
        self._row = box

    def __repr__(self) -> str:
        return f"PriorSet.row_box({self.space!r})"


class VariationBall(ConvexPriors):
    """Laws within a total variation distance of one."""

    def __init__(self, centre: Floats, radius: float) -> None:
        self._centre, self._radius, self.size = centre, radius, len(centre)

    def _possible(self) -> np.ndarray:
        return (self._centre > 0) | (self._radius > 0)

    def _least(self, column: Floats) -> float:
        """Move as much as allowed from the largest entries to the least. Cost O(N log N)."""
        order = np.argsort(column)[::-1]
        law, values = self._centre[order], column[order]
        radius = raised(self._radius, 4.0)
        taken = np.clip(radius - (np.cumsum(law) - law), 0.0, law)
        least = float(values[-1])
        mean = least * float(taken.sum()) + float(values @ (law - taken))
        top = float(values[taken < law].max(initial=least))
        return max(least, mean - (4 * self.size + 16) * ULP * (mean + top))

    def __repr__(self) -> str:
        return f"PriorSet.total_variation({self.size} databases, {self._radius:g})"


class DivergenceBall(ConvexPriors):
    """Laws p with D(p || centre) at most a radius."""

    def __init__(self, centre: Floats, radius: float) -> None:
        self._centre, self._radius, self.size = centre / centre.sum(), radius, len(centre)

    def _possible(self) -> np.ndarray:
        return np.asarray(self._centre > 0)

    def _least(self, column: Floats) -> float:
        """Bound the mean by duality, from the best of many multipliers. Cost O(100 N).

        For every t > 0, <c, p> >= -t radius - t ln sum centre e^(-c/t) (Donsker-Varadhan). The
        right side is concave in t, and a bound wherever the search stops.
        """
        seen = self._centre > 0
        law, least = self._centre[seen], float(column[seen].min())
        gaps = column[seen] - least
        low, high = math.log(1e-12), math.log(1e12)
        ratio = 0.5 * (math.sqrt(5.0) - 1.0)
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        at_a, at_b = self._dual(law, gaps, a), self._dual(law, gaps, b)
        best = max(0.0, at_a, at_b)
        for _ in range(96):
            if at_a < at_b:
                low, a, at_a = a, b, at_b
                b = low + ratio * (high - low)
                at_b = self._dual(law, gaps, b)
            else:
                high, b, at_b = b, a, at_a
                a = high - ratio * (high - low)
                at_a = self._dual(law, gaps, a)
            best = max(best, at_a, at_b)
        return lowered(least + best, 4.0)

    def _dual(self, law: Floats, gaps: Floats, log_t: float) -> float:
        """Return -t radius - t ln sum law e^(-gaps/t), rounded down."""
        t = math.exp(log_t)
        lost = float(law @ -np.expm1(-gaps / t))
        # Where little is lost the sum is 1 - lost, and keeps its digits.
        near = lost < 0.5
        log_mean = math.log1p(-lost) if near else math.log(float(law @ np.exp(-gaps / t)))
        slack = (4 * self.size + 32) * ULP
        radius = self._radius * (1.0 + slack) + slack * (1.0 if self._radius > 0 else 0.0)
        error = slack * (-log_mean if near else 1.0 - log_mean)
        return t * (-radius - log_mean - error)

    def __repr__(self) -> str:
        return f"PriorSet.kl_ball({self.size} databases, {self._radius:g})"


class _Polytope(ConvexPriors):
    def __init__(self, A: Floats, b: Floats) -> None:
        if len(A) != len(b):
            raise InvalidInput(f"A has {len(A)} rows, b {len(b)} entries")
        scale = np.abs(A).max(axis=1)
        scale[scale == 0] = 1.0
        scale = np.exp2(np.floor(np.log2(scale)))  # a power of two: exact
        self._A, self._b, self.size = A / scale[:, None], b / scale, A.shape[1]
        self._least(np.zeros(self.size))

    def _possible(self) -> np.ndarray:
        """All databases but those that a row with b = 0 and no negative entry rules out."""
        possible = np.ones(self.size, dtype=bool)
        while True:
            bars = (self._b <= 0) & (self._A[:, possible] >= 0).all(axis=1)
            out = possible & (self._A[bars] > 0).any(axis=0)
            if not out.any():
                return possible
            possible &= ~out

    def _least(self, column: Floats) -> float:
        """Bound <column, p> from below by weak duality, whatever HiGHS says of its optimum.

        For any multipliers l >= 0, <column, p> >= min(column + A^T l) - b l, p being a law.
        """
        answer = self._solve(column, np.ones(self.size, dtype=bool))
        if answer is None:
            raise Infeasible("no law p satisfies A p <= b")
        p, multipliers = answer
        reached = float(column @ p)
        sums = column + multipliers @ self._A
        size = np.abs(column) + multipliers @ np.abs(self._A)
        error = (len(self._b) + 8) * ULP * (float(size.max()) + multipliers @ np.abs(self._b))
        bound = float(sums.min() - multipliers @ self._b - error)
        if reached == 0.0 or reached <= bound * (1.0 + _TIGHT):
            return bound
        if self._solve(np.zeros(self.size), column == 0) is not None:
            return 0.0  # some law has no part in the output at all
        raise SolverFailure(
            f"the least chance of an output, {reached:.3g} of its largest, is certified only from "
            f"{bound:.3g} on; scale A and b to moderate numbers"
        )

    def _solve(self, cost: Floats, allowed: np.ndarray) -> tuple[Floats, Floats] | None:
        """Return a law of least cost on the allowed databases and multipliers, None if none is."""
        from fastpriv._core.highs import Rows, minimise

        columns = np.flatnonzero(allowed)
        table = np.vstack([self._A[:, columns], np.ones(len(columns))])
        rows = Rows(
            np.arange(len(table) + 1) * len(columns),
            np.tile(np.arange(len(columns)), len(table)),
            table.reshape(-1),
            np.append(np.full(len(self._b), -math.inf), 1.0),
            np.append(self._b, 1.0),
        )
        if not len(columns):
            return None
        try:
            optimum = minimise(cost[columns], np.zeros(len(columns)), rows, _SECONDS)
        except SolverFailure as failure:
            if "nfeasible" in str(failure):
                return None
            raise
        p = np.zeros(self.size)
        p[columns] = np.maximum(optimum.values, 0.0)
        return p / p.sum(), np.maximum(-optimum.duals[:-1], 0.0)

    def __repr__(self) -> str:
        return f"PriorSet.polytope({len(self._b)} inequalities, {self.size} databases)"


def _finite(values: ArrayLike, name: str, ndim: int) -> Floats:
    numbers = np.ascontiguousarray(check.array(values, name), dtype=np.float64)
    if numbers.ndim != ndim or numbers.size == 0:
        raise InvalidInput(f"{name} must be a non-empty array of {ndim} dimension(s)")
    if not np.isfinite(numbers).all():
        raise InvalidInput(f"{name} must hold finite numbers")
    return check.owned(numbers, values)
