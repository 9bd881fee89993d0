"""Sets of priors, for guarantees that hold for every prior of a set."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.rounding import lowered, raised, roundoff
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.convex_sets import Least, box_least, divergence_least, variation_least
from fastpriv.errors import Infeasible, InvalidInput, described, short
from fastpriv.priors.base import Distribution
from fastpriv.spaces import Space

__all__ = ["PriorSet"]


class PriorSet:
    """A set of distributions over databases: assumptions about the prior.

    Made by the class methods below; used by :func:`fastpriv.pml_level`, by
    :func:`fastpriv.individual_capacity` and by :func:`fastpriv.solve_minimax`. A single prior in
    the place of a set is a set of one.

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
        """Return every distribution over ``size`` databases."""
        return AllPriors(check.integer(size, "size", 1))

    @staticmethod
    def box(lower: ArrayLike, upper: ArrayLike) -> PriorSet:
        """Return the distributions with lower[x] <= p(x) <= upper[x] for every database x."""
        most = np.minimum(check.floats(upper, "upper", 1), 1.0)  # probabilities are at most 1
        return Box(check.floats(lower, "lower", 1), most)

    @staticmethod
    def polytope(A: ArrayLike, b: ArrayLike) -> PriorSet:
        """Return the distributions p with A p <= b, p >= 0 and sum p = 1."""
        return PolytopePriors(_finite(A, "A", 2), _finite(b, "b", 1))

    @staticmethod
    def hull(priors: Sequence[Distribution | ArrayLike]) -> PriorSet:
        """Return the mixtures of some distributions, their convex hull.

        ``priors`` are distributions over the same databases, or vectors of probabilities. The hull
        of one distribution is that distribution alone.
        """
        return HullPriors(_listed_laws(priors))

    @staticmethod
    def product(space: Space | ArrayLike) -> PriorSet:
        """Return the distributions under which the records of a space are independent."""
        return ProductPriors(space if isinstance(space, Space) else Space(space))

    @staticmethod
    def bernoulli_interval(n: int, c: float) -> PriorSet:
        """Return ``n`` independent bits, each one with its own probability between c and 1 - c.

        A larger set than :meth:`iid_interval`, the P_c of Saeidian et al. 2024 (Proposition 4.6).
        """
        return BernoulliPriors(Space.hamming(n, 2), check.real(c, "c", 0.0, 0.5))

    @staticmethod
    def iid_interval(n: int, c: float) -> PriorSet:
        """Return ``n`` independent bits that share one probability of 1, between c and 1 - c."""
        return IidPriors(Space.hamming(n, 2), check.real(c, "c", 0.0, 0.5))

    @staticmethod
    def row_box(lower: ArrayLike, upper: ArrayLike, n: int) -> PriorSet:
        """Return ``n`` independent records, each with its own distribution, lower <= p <= upper.

        ``lower`` and ``upper`` have a number for each value of a record. For two values and the
        bounds c and 1 - c this is :meth:`bernoulli_interval`.
        """
        most = np.minimum(check.floats(upper, "upper", 1), 1.0)
        box = Box(check.floats(lower, "lower", 1), most)
        return RowBoxPriors(Space.hamming(n, box.size), box)

    @staticmethod
    def total_variation(centre: ArrayLike, radius: float) -> PriorSet:
        """Return the distributions p with sum |p - centre| / 2 <= radius."""
        return VariationBall(check.law(centre, "centre"), check.real(radius, "radius", 0.0, 1.0))

    @staticmethod
    def kl_ball(centre: ArrayLike, radius: float) -> PriorSet:
        """Return the distributions p with D(p || centre) <= radius, in nats."""
        return DivergenceBall(check.law(centre, "centre"), check.real(radius, "radius", 0.0))

    @staticmethod
    def entropy(size: int, b: float) -> PriorSet:
        """Return the distributions with H(p) >= b nats (Wu-Xia-He, Assumption 3)."""
        count = check.integer(size, "size", 1)
        check.fits(count, "a distribution over the databases", "use fewer databases")
        least, most = check.real(b, "b", 0.0), math.log(count)
        if least > raised(most, 4.0):
            raise Infeasible(
                f"b must be at most ln {count}, the largest entropy of {count} databases; got "
                f"{described(least)} nats."
            )
        # H(p) = ln N - D(p || uniform). Upper bounds use the radius rounded up, and lower bounds
        # the radius rounded down: information changes with the root of a small radius.
        slack = roundoff(4.0) * most
        radius, inner = max(0.0, most - least) + slack, max(0.0, most - least - slack)
        return DivergenceBall(np.full(count, 1.0 / count), radius, inner)

    @staticmethod
    def min_entropy(size: int, b: float) -> PriorSet:
        """Return the distributions with no probability above e^-b: a box."""
        count = check.integer(size, "size", 1)
        check.fits(count, "a distribution over the databases", "use fewer databases")
        least = check.real(b, "b", 0.0)
        if least > raised(math.log(count), 4.0):
            raise Infeasible(
                f"b must be at most ln {count}, the largest min-entropy of {count} databases; "
                f"got {described(least)} nats."
            )
        most = min(1.0, raised(max(1.0 / count, math.exp(-least)), 4.0))
        return Box(np.zeros(count), np.full(count, most))


class AllPriors(PriorSet):
    """Every distribution over a number of databases."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __repr__(self) -> str:
        return f"PriorSet.all({short(self.size)})"


class RowPriors(PriorSet):
    """Distributions of independent records, with the space and not only its size."""

    def __init__(self, space: Space) -> None:
        self.space, self.size = space, space.size


class ProductPriors(RowPriors):
    """Every distribution of independent records."""

    def __repr__(self) -> str:
        return f"PriorSet.product({self.space!r})"


class BernoulliPriors(RowPriors):
    """Independent bits, each with a probability of one between c and 1 - c."""

    def __init__(self, space: Space, c: float) -> None:
        super().__init__(space)
        self.c = c

    def __repr__(self) -> str:
        return f"PriorSet.bernoulli_interval({self.space.n}, {self.c:g})"


class IidPriors(RowPriors):
    """Independent bits with the same probability of one, between c and 1 - c."""

    def __init__(self, space: Space, c: float) -> None:
        super().__init__(space)
        self.c = c

    def __repr__(self) -> str:
        return f"PriorSet.iid_interval({self.space.n}, {self.c:g})"


class ConvexPriors(PriorSet, ABC):
    """A convex set of distributions, described by the smallest mean of a vector over it."""

    @abstractmethod
    def lowest(self, column: Floats) -> Least:
        """Return a lower bound on the smallest mean of a column in [0, 1], and a minimiser."""

    @abstractmethod
    def possible(self) -> np.ndarray:
        """Return which databases some distribution of the set allows."""

    @abstractmethod
    def reordered(self, order: Ints) -> ConvexPriors:
        """Return the same set for databases in another order."""

    def symmetric(self) -> bool:
        """Whether the set is known to be symmetric in the databases."""
        return False

    def smallest(self, column: Floats) -> float:
        """Return a lower bound on the smallest mean of a column with entries in [0, 1]."""
        return self.lowest(column)[0]

    def smallest_sum(self, weights: Floats) -> Least:
        """Return a lower bound on the smallest mean of weights, and a distribution near it.

        Databases that no distribution allows are ignored. Distributions may differ from a sum of 1
        by rounding.
        """
        possible = self.possible()
        low, high = float(weights[possible].min()), float(weights[possible].max())
        width = (high - low) * (1.0 + roundoff(4.0))
        if not width > 0.0:
            return low - roundoff(4.0) * abs(low), self.lowest(np.zeros(self.size))[1]
        column = np.where(possible, np.clip((weights - low) / width, 0.0, 1.0), 1.0)
        bound, law = self.lowest(column)
        slack = roundoff(4 * self.size + 32)
        return low + width * bound - slack * (abs(low) + width), law


class Box(ConvexPriors):
    """Distributions between two bounds for every database."""

    def __init__(self, lower: Floats, upper: Floats) -> None:
        if lower.shape != upper.shape:
            raise InvalidInput(
                f"lower and upper must have one length; got {len(lower)} and {len(upper)} entries."
            )
        if np.any(lower > upper):
            x = int(np.flatnonzero(lower > upper)[0])
            raise InvalidInput(
                f"lower must be at most upper; at database {x} it is {lower[x]}, above {upper[x]}."
            )
        room, taken = math.fsum(upper), math.fsum(lower)
        if taken > 1.0 + check.SUM_TOLERANCE or room < 1.0 - check.SUM_TOLERANCE:
            raise InvalidInput(
                "lower must sum to at most 1 and upper to at least 1, or no distribution lies "
                f"between; got {described(taken)} and {described(room)}."
            )
        self.lower, self.upper, self.size = lower, upper, len(lower)
        self.free = max(0.0, 1.0 - taken)

    def possible(self) -> np.ndarray:
        return (self.upper if self.free > 0 else self.lower) > 0

    def reordered(self, order: Ints) -> Box:
        return Box(self.lower[order], self.upper[order])

    def symmetric(self) -> bool:
        return bool(np.ptp(self.lower) == 0.0 and np.ptp(self.upper) == 0.0)

    def lowest(self, column: Floats) -> Least:
        return box_least(self.lower, self.upper, self.free, column)

    def __repr__(self) -> str:
        return f"PriorSet.box({self.size} databases)"


class RowBoxPriors(RowPriors):
    """Independent records, each with its own distribution in one box."""

    def __init__(self, space: Space, box: Box) -> None:
        super().__init__(space)
        self.record_set = box

    def __repr__(self) -> str:
        return f"PriorSet.row_box({self.space!r})"


class VariationBall(ConvexPriors):
    """Distributions within a total variation distance of a centre."""

    def __init__(self, centre: Floats, radius: float) -> None:
        self._centre, self._radius, self.size = centre, radius, len(centre)

    def possible(self) -> np.ndarray:
        return (self._centre > 0) | (self._radius > 0)

    def reordered(self, order: Ints) -> VariationBall:
        return VariationBall(self._centre[order], self._radius)

    def symmetric(self) -> bool:
        return bool(np.ptp(self._centre) == 0.0)

    def lowest(self, column: Floats) -> Least:
        return variation_least(self._centre, self._radius, column)

    def __repr__(self) -> str:
        return f"PriorSet.total_variation({self.size} databases, {self._radius:g})"


class DivergenceBall(ConvexPriors):
    """Distributions p with D(p || centre) at most a radius."""

    def __init__(self, centre: Floats, radius: float, inner: float | None = None) -> None:
        self._centre, self._radius, self.size = centre / centre.sum(), radius, len(centre)
        #: Radius for lower bounds; smaller than the other radius if that was rounded up.
        self._inner = radius if inner is None else inner

    def possible(self) -> np.ndarray:
        return np.asarray(self._centre > 0)

    def reordered(self, order: Ints) -> DivergenceBall:
        return DivergenceBall(self._centre[order], self._radius, self._inner)

    def symmetric(self) -> bool:
        return bool(np.ptp(self._centre) == 0.0)

    def lowest(self, column: Floats) -> Least:
        return divergence_least(self._centre, self._radius, column, self._inner)

    def __repr__(self) -> str:
        return f"PriorSet.kl_ball({self.size} databases, {self._radius:g})"


class HullPriors(ConvexPriors):
    """Mixtures of some distributions, the rows of ``laws``."""

    def __init__(self, laws: Floats) -> None:
        self.laws, self.size = laws, laws.shape[1]

    def possible(self) -> np.ndarray:
        return np.asarray(self.laws.max(axis=0) > 0.0)

    def reordered(self, order: Ints) -> HullPriors:
        return HullPriors(np.ascontiguousarray(self.laws[:, order]))

    def lowest(self, column: Floats) -> Least:
        """Minimise over the corners: a mean is linear. Cost O(corners N)."""
        means = self.laws @ column
        at = int(means.argmin())
        return max(float(column.min()), lowered(float(means[at]), 2.0 * self.size + 8.0)), (
            self.laws[at]
        )

    def __repr__(self) -> str:
        return f"PriorSet.hull({len(self.laws)} distributions, {self.size} databases)"


def as_prior_set(priors: Any, size: int | None = None) -> PriorSet:
    """Return a set of priors: the given one, or a single prior as a set of one."""
    if isinstance(priors, PriorSet):
        return priors
    if isinstance(priors, str | bytes) or priors is None or callable(priors):
        raise InvalidInput(
            f"priors must be a PriorSet or a single prior; got {described(priors)}. Make a set by "
            "PriorSet.all, PriorSet.hull or another of its methods."
        )
    try:
        return HullPriors(_listed_laws([priors]))
    except InvalidInput as problem:
        raise InvalidInput(
            f"priors must be a PriorSet or a single prior; got {described(priors)}: {problem} "
            "Several priors are PriorSet.hull([...])."
        ) from None


def _listed_laws(priors: Any) -> Floats:
    """Return distributions over the same databases as the rows of a matrix."""
    if isinstance(priors, Distribution):
        priors = [priors]
    given = check.items(priors, "priors", "distributions")
    laws = [
        prior.probabilities() if isinstance(prior, Distribution) else check.law(prior, f"prior {k}")
        for k, prior in enumerate(given)
    ]
    if not laws or len({len(law) for law in laws}) > 1:
        raise InvalidInput(
            "priors must be at least one distribution, all over the same databases; got "
            f"{len(laws)} of lengths {sorted({len(law) for law in laws})}. Give them one length."
        )
    return np.ascontiguousarray(np.stack(laws))


class PolytopePriors(ConvexPriors):
    """Distributions p with A p <= b."""

    def __init__(self, A: Floats, b: Floats) -> None:
        if len(A) != len(b):
            raise InvalidInput(f"A has {len(A)} rows, b {len(b)} entries. Give as many.")
        from fastpriv._matrices.convex_sets import Polytope

        self.inequalities, self.size = Polytope(A, b), A.shape[1]
        if self.inequalities.empty:
            raise Infeasible("no distribution p satisfies A p <= b. Relax the constraints.")

    def possible(self) -> np.ndarray:
        return self.inequalities.possible()

    def reordered(self, order: Ints) -> PolytopePriors:
        A = np.ascontiguousarray(self.inequalities.A[:, order])
        return PolytopePriors(A, self.inequalities.b)

    def lowest(self, column: Floats) -> Least:
        return self.inequalities.least(column)

    def __repr__(self) -> str:
        return f"PriorSet.polytope({len(self.inequalities.b)} inequalities, {self.size} databases)"


def _finite(values: ArrayLike, name: str, ndim: int) -> Floats:
    numbers = np.ascontiguousarray(check.array(values, name), dtype=np.float64)
    if numbers.ndim != ndim or numbers.size == 0:
        raise InvalidInput(f"{name} must be a non-empty array of {ndim} dimension(s).")
    if not np.isfinite(numbers).all():
        raise InvalidInput(f"{name} must hold finite numbers.")
    return check.owned(numbers, values)
