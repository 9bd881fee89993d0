"""What every channel answers: the primitives that measures are formulas over."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastpriv import _validation as check
from fastpriv._capacity import matrix_capacity
from fastpriv._validation import Floats, Ints
from fastpriv.channels._pairs import Pairs, crossing, excesses
from fastpriv.distributions import Dense, Distribution
from fastpriv.errors import InvalidInput, short
from fastpriv.results import Bracket
from fastpriv.spaces import Space


class AbstractChannel(ABC):
    """A mechanism p(y|x) from the databases of a space to finitely many outputs.

    Subclasses answer the primitives below in their own structure; measures combine the answers
    and never ask which class they came from.
    """

    space: Space
    #: The space of the outputs; one row of K values where outputs are not databases.
    output_space: Space

    # What a user asks.

    @abstractmethod
    def matrix(self) -> Floats:
        """Return W[x, y] = p(y|x), an N x K array."""

    @abstractmethod
    def _output(self, prior: Distribution) -> Distribution:
        """Law of the output when the database follows ``prior``."""

    @abstractmethod
    def _sample(self, rows: Ints, rng: np.random.Generator) -> Ints:
        """Outputs for databases of shape (k, n)."""

    def output(self, prior: Distribution | ArrayLike) -> Distribution:
        """Law of the output when the database follows ``prior``, structured where it can be."""
        return self._output(self.prior_for(prior))

    def sample(self, rows: ArrayLike, rng: np.random.Generator | int | None = None) -> Ints:
        """Draw an output for each database.

        Parameters
        ----------
        rows : integer array of shape (k, n)
            The databases.
        rng : numpy.random.Generator or int, optional
            Source of randomness; by default one seeded from the operating system.

        Returns
        -------
        ndarray
            (k, n) rows where outputs come row by row, (k,) output indices otherwise.
        """
        given = check.rows(rows, self.space.sizes)
        if given.ndim != 2:
            raise InvalidInput(
                f"rows must have shape (k, n), got {given.shape}; one row: rows[None]"
            )
        return self._sample(given, check.generator(rng))

    # Primitives.

    @abstractmethod
    def neighbour_level(self) -> float:
        """Largest ln W[x, y]/W[x', y] over neighbours x, x' and outputs y."""

    @abstractmethod
    def posterior_level(self, prior: Distribution) -> float:
        """Largest ln p(x|y)/p(x'|y) over neighbours x, x' and outputs y that can occur."""

    @abstractmethod
    def information(self, prior: Distribution) -> float | Bracket:
        """Return I(X; Y)."""

    @abstractmethod
    def expected_distance(self, prior: Distribution) -> float:
        """Expected Hamming distance between database and output."""

    @abstractmethod
    def column_maxima(self) -> Floats:
        """Largest p(y|x) over x, for every output y."""

    @abstractmethod
    def column_minima(self) -> Floats:
        """Least p(y|x) over x, for every output y."""

    @abstractmethod
    def row_entropies(self) -> Floats:
        """Entropy of the output for every database x."""

    def neighbour_laws(self) -> Iterator[Pairs]:
        """Yield output laws and which of them neighbours have, through the matrix.

        Only outputs that tell the two apart count, so a channel may leave out common factors.
        """
        matrix = np.array(self.matrix())
        for x, other in self.space._steps():
            yield matrix, np.stack([x, other], axis=1)

    def excess(self, epsilons: Floats) -> Floats:
        """Largest sum_y (W[x, y] - e^epsilon W[x', y])_+ over neighbours, for each epsilon."""
        return excesses(self.neighbour_laws(), epsilons)

    def excess_crossing(self, delta: float) -> float:
        """Least epsilon >= 0 from which the excess is at most delta > 0."""
        return crossing(self.neighbour_laws(), delta)

    def attribute_range(self, low: Ints, high: Ints) -> tuple[Ints, Ints]:
        """Least ``low`` and largest ``high`` over the databases that can cause each output.

        Through the matrix; an output that nothing causes keeps the neutral elements.
        """
        return support_range(np.array(self.matrix()) > 0.0, low, high)

    def least_support(self) -> int:
        """Least number of databases that can cause an output, over outputs that can occur."""
        counts = (self.matrix() > 0.0).sum(axis=0)
        return int(counts[counts > 0].min())

    def capacity(self, gap: float) -> Bracket:
        """Largest I(X; Y) over priors, through the matrix."""
        return matrix_capacity(np.array(self.matrix()), gap)[0]

    def capacity_prior(self, gap: float) -> Distribution:
        """Return a prior that reaches the lower end of the capacity."""
        return Dense._trusted(matrix_capacity(np.array(self.matrix()), gap)[1], self.space)

    def expected_cost(self, prior: Distribution, metric: Floats) -> float:
        """Sum of p(x) W[x, y] metric[x, y], through the matrix."""
        return float(prior._vector() @ (self.matrix() * metric).sum(axis=1))

    # Helpers.

    def prior_for(self, prior: Distribution | ArrayLike) -> Distribution:
        """Return the prior, made from a plain vector if it is one, and on this channel's space."""
        if not isinstance(prior, Distribution):
            pmf = check.law(prior, "prior")
            if len(pmf) != self.space.size:
                raise InvalidInput(
                    f"prior has {len(pmf)} entries, but the channel has "
                    f"{short(self.space.size)} databases"
                )
            return Dense._trusted(pmf, self.space)
        if prior.space is not self.space and prior.space != self.space:
            raise InvalidInput(
                f"the prior is on {prior.space!r} but the channel on {self.space!r}; make both on "
                "the same space (for a matrix: Channel(matrix, space=prior.space))"
            )
        return prior

    def _check_matrix(self) -> None:
        check.fits(
            self.space.size * self.output_space.size,
            f"the matrix of {self!r}",
            "ask the channel itself, which needs no matrix",
            check.MAX_MATRIX,
        )

    def __repr__(self) -> str:
        outputs = short(self.output_space.size)
        return f"{type(self).__name__}({self.space!r} -> {outputs} outputs)"


#: Neutral elements of the least and the largest attribute value.
NO_LOW, NO_HIGH = np.iinfo(np.int64).max, -1
#: Entries of a boolean matrix that are looked at in one go.
_BLOCK = 1 << 20


def support_range(seen: NDArray[np.bool_], low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Least ``low[x]`` and largest ``high[x]`` over the x with ``seen[x, y]``, for every y.

    ``low`` and ``high`` may have further axes after the first. Cost O(N K) for each of them.
    """
    tail = low.shape[1:]
    least = np.full((seen.shape[1], *tail), NO_LOW, dtype=np.int64)
    most = np.full((seen.shape[1], *tail), NO_HIGH, dtype=np.int64)
    rows = max(1, _BLOCK // (seen.shape[1] * math.prod(tail)))
    for start in range(0, len(seen), rows):
        part = slice(start, start + rows)
        mask = seen[part].reshape(*seen[part].shape, *(1,) * len(tail))
        np.minimum(least, np.where(mask, low[part, None], NO_LOW).min(axis=0), out=least)
        np.maximum(most, np.where(mask, high[part, None], NO_HIGH).max(axis=0), out=most)
    return least, most
