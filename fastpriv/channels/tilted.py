"""An output law tilted towards the database: the shape of every rate-distortion optimum.

``TiltedChannel`` takes any output law and works with vectors over databases. A law of independent
rows makes a ``TiltedProduct``, which acts row by row. Calling ``TiltedChannel`` chooses the class.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from fastpriv import kernels
from fastpriv._core import validation as check
from fastpriv._core.defined import load
from fastpriv._core.rounding import LEAST, NORMAL, ULP, raised, round_up
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.excess import (
    FORMED,
    SMALL,
    Excess,
    distances,
    far_matrix,
    perturbed,
    relative_excess,
)
from fastpriv._matrices.leakage import TINY
from fastpriv._matrices.levels import inwards
from fastpriv._sampling.source import Source
from fastpriv._sampling.thresholds import Codes
from fastpriv._structure.leakage import log_masses, tropical
from fastpriv._structure.rows import RowKernel, RowKernels, Symmetric, inner_level
from fastpriv._structure.tilted_row import TiltedRow
from fastpriv.channels.base import AbstractChannel
from fastpriv.channels.product import ProductChannel
from fastpriv.channels.tilted_draws import tilted_draws
from fastpriv.channels.tilted_types import TypeTilt, type_tilt
from fastpriv.errors import InvalidInput
from fastpriv.priors import Dense, Distribution, Product
from fastpriv.priors.arguments import as_prior
from fastpriv.priors.columns import log_marginal
from fastpriv.priors.dense import apply_rows
from fastpriv.priors.exchanging import LISTED
from fastpriv.priors.unmixing import rounding
from fastpriv.results import Bracket

__all__ = ["TiltedChannel"]

#: Most databases that are gone through one by one.
FEW = 1 << 16


class TiltedChannel(AbstractChannel):
    """W[x, y] proportional to q(y) e^(-epsilon d(x, y)): an output law q, tilted towards x.

    Every optimum of the rate-distortion problem with Hamming distortion has this form (Wang-Ying-
    Zhang 2015, proof of Theorem 2). With R the Hamming kernel of E_d, W[x, y] = q(y) R[x, y] /
    (R q)(x). Under the prior R q it is E_d run backwards; R q is called the channel's own prior.

    Parameters
    ----------
    law : Distribution
        The output law q before tilting.
    epsilon : float
        How fast weights fall with the Hamming distance, at least 0.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = fp.TiltedChannel(fp.Dense([0.4, 0.3, 0.2, 0.1], [2, 2]), 1.0)
    >>> round(fp.distortion(channel, fp.Uniform(2, 2)), 4)
    0.577
    """

    #: The prior R q, under which the posterior is R itself.
    prior: Distribution

    def __new__(cls, law: Distribution, epsilon: float) -> TiltedChannel:
        """Make a row-by-row channel from a law of independent rows."""
        rows = cls is TiltedChannel and isinstance(law, Product)
        return super().__new__(TiltedProduct if rows else cls)

    def __getnewargs__(self) -> tuple[Distribution, float]:
        return self.base, self.epsilon

    def __init__(self, law: Distribution, epsilon: float) -> None:
        self.epsilon = check.real(epsilon, "epsilon", least=0.0)
        self._set(as_prior(law))
        self.prior = self.base.through(self.kernels)
        if self.moves and not math.isfinite(self.prior.epsilon_x()):
            raise InvalidInput(
                f"at epsilon {self.epsilon:g} some database is too far from all outputs of {law!r} "
                "for their weights to be told from zero; use a smaller epsilon, or no zeros"
            )

    def definition(self) -> dict[str, Any]:
        return {"law": self.base, "epsilon": self.epsilon}

    @classmethod
    def from_definition(cls, given: Mapping[str, Any]) -> TiltedChannel:
        return cls(load(given["law"]), given["epsilon"])

    def _set(self, law: Distribution) -> None:
        self.base = law
        self.space = self.output_space = law.space
        self.kernels = RowKernels.symmetric(law.space.sizes, self.epsilon)

    def owns(self, prior: Distribution) -> bool:
        return prior == self.prior

    def vectors(self) -> tuple[Floats, Floats]:
        """Return the output law q and the channel's own prior R q, as vectors."""
        law = self.base.probabilities()
        return law, apply_rows(law, self.kernels)

    @property
    def entry_error(self) -> float:
        """Bound on the relative error of the entries of the matrix."""
        return (40 * self.space.n + sum(self.space.sizes) + 32) * ULP

    @property
    def matrix_error(self) -> float:
        """Entries are products over rows, divided by sums over values for every row."""
        return 8.0 * (self.space.n * (max(self.space.sizes) + 2) + 16) * ULP

    def widened(self, bracket: Bracket) -> Bracket:
        """Bounds on a capacity or a contraction for the error of the matrix it was computed from.

        ln R[x, y] and ln (R q)(x) change by epsilon n at most from one database to another.
        """
        strong = raised(2.0 * self.epsilon * self.space.n, 8.0)
        return perturbed(bracket, self.entry_error, strong)

    def excess(self) -> Excess | None:
        """Return u with W[x, y] = q(y) (1 + u[x, y]).

        None if that is too large, or not needed because the matrix has all digits.
        """
        if self.space.size**2 > FORMED or self.epsilon * self.space.n > SMALL:
            return None
        return relative_excess(self.base.probabilities(), self.space.sizes, self.epsilon)

    def tilt(self) -> tuple[np.ndarray, Floats]:
        """Return which outputs occur, and -ln (R q)(x) up to a constant."""
        law, logs = self.base.probabilities(), self.base.logs_if_rare()
        home = apply_rows(law, self.kernels)
        # R is symmetric, and all its rows have the same largest entry.
        small = home.min() < TINY
        tilt = -log_masses(law, self.kernels, logs) if small else -np.log(home)
        return law > 0.0 if logs is None else logs > -math.inf, tilt

    def matrix(self) -> Floats:
        """Return W[x, y] = p(y|x), an N x N array of doubles, rounded inwards.

        Weights are computed at a level that is lower by a few units of 2^-53, and a chance that is
        too small for a double is raised until its ratio to those of neighbours is within the level.
        """
        n, m = self.space.n, max(self.space.sizes)
        matrix = self._rounded(inner_level(self.epsilon, n, m, room=0.0))
        if matrix.min() >= NORMAL:
            return matrix
        closed = inwards(matrix, self.space.axes, self._spread())
        return np.where(matrix < NORMAL, closed, matrix)

    def _spread(self) -> float:
        """Return the largest |ln W[x, y]/W[x', y]| of neighbours, from logarithms."""
        occurs, tilt = self.tilt()
        logs = (tilt[:, None] - self.epsilon * distances(self.space.sizes))[:, occurs]
        axes = self.space.axes.tolist()
        lines = (logs.reshape(-1, m, inner, logs.shape[1]) for inner, m in axes)
        return max((float(np.ptp(line, axis=1).max()) for line in lines), default=0.0)

    def nearest_matrix(self) -> Floats:
        """Return W[x, y] to the nearest doubles, up to the error that ``entry_error`` bounds."""
        return self._rounded(self.epsilon)

    def _rounded(self, level: float) -> Floats:
        self.check_matrix_fits()
        if self.is_rare:
            return far_matrix(self.base.wide(), self.space.sizes, level)
        kernels = RowKernels.symmetric(self.space.sizes, level)
        joint = ProductChannel.of(kernels).nearest_matrix() * self.base.probabilities()
        # By its own sum, so that an output which is nearly certain has a chance of 1.
        return np.asarray(joint / joint.sum(axis=1, keepdims=True))

    def output_distribution(self, prior: Distribution) -> Distribution:
        if self.owns(prior):
            return self.base
        law, home = self.vectors()
        return Dense.of(law * apply_rows(prior.probabilities() / home, self.kernels), self.space)

    @cached_property
    def by_type(self) -> TypeTilt | None:
        """The channel in types, where its rows are exchangeable and databases are many."""
        return type_tilt(self.base, self.kernels) if self.space.size > LISTED else None

    @property
    def own_level(self) -> float:
        """Epsilon, and the rounding of R q to the floats of a prior."""
        return round_up(self.epsilon + rounding(self.space.n))

    @cached_property
    def _far(self) -> bool:
        """Whether some database is too far from all outputs for its weight in a double."""
        return bool(self.vectors()[1].min() < TINY)

    @cached_property
    def is_rare(self) -> bool:
        """Whether some weight q(y) R[x, y] may underflow, or lose digits."""
        law = self.base.probabilities()
        least = math.log(law[law > 0.0].min()) - self.space.n * (self.epsilon + 10.0)
        return self.base.logs_if_rare() is not None or least < math.log(TINY)

    @cached_property
    def is_listable(self) -> bool:
        """Whether databases are few, and none too far from all outputs for its weight."""
        return self.space.size <= FEW and not self._far

    @property
    def misfit(self) -> float:
        """Largest |ln p(x)/(R q)(x)| of the channel's own prior."""
        return 0.0

    @property
    def moves(self) -> bool:
        """Whether there are neighbours at all."""
        return max(self.space.sizes) > 1

    @cached_property
    def alike_groups(self) -> list[Ints]:
        return self.prior.alike_records()

    @cached_property
    def occurring_values(self) -> list[np.ndarray]:
        """Which values of a row can come out, for every group of rows."""
        return [log_marginal(self.base, int(rows[0]))[0] > -math.inf for rows in self.alike_groups]

    @property
    def all_values_occur(self) -> bool:
        return all(map(np.all, self.occurring_values))

    def scale(self) -> float:
        """R[x, x], the chance that no row moves."""
        return math.prod(k.stay for k in self.kernels if isinstance(k, Symmetric))

    def column_maxima(self) -> Floats:
        """Largest p(y|x) over x, for every output y: at x = y. Cost O(N n).

        (R q)(x) >= e^(-epsilon d(x, y)) (R q)(y), because R[x, z] >= e^(-epsilon d(x, y)) R[y, z].
        """
        if self._far:
            return _log_columns(self.base, self.tilt()[1])
        law, home = self.vectors()
        return np.asarray(self.scale() * law / home)

    def column_minima(self) -> Floats:
        """Least p(y|x) over x, for every output y; 0 beyond the range of a double. Cost O(N n)."""
        if self._far:
            return _log_columns(self.base, tropical(self.tilt()[1], self.kernels, np.minimum))
        law, farthest = self.vectors()
        with np.errstate(over="ignore"):
            away = float(np.exp(self.epsilon))
        for i, m in enumerate(self.space.sizes):
            if m > 1:
                kernels.axis_closure(farthest, away, int(self.space.strides[i]), m)
        return np.asarray(self.scale() * law / farthest)

    def draw(self, rows: Codes, source: Source) -> Codes:
        drawn = tilted_draws(self.base, rows.astype(np.int64), self.epsilon, source)
        return drawn.astype(rows.dtype)

    def __repr__(self) -> str:
        return f"TiltedChannel({self.base!r}, epsilon={self.epsilon:g})"


def _log_columns(q: Distribution, extreme: Floats) -> Floats:
    """q(y) e^extreme(y), over the total of q, where weights of R q are out of range."""
    law, logs = q.probabilities(), q.logs_if_rare()
    with np.errstate(divide="ignore"):
        own = np.log(law) if logs is None else logs
    return np.asarray(np.exp(np.minimum(own - math.log(law.sum()) + extreme, 0.0)))


class TiltedProduct(TiltedChannel, form=True):
    """A tilted law of independent rows, which acts on every row by itself.

    Made by ``TiltedChannel(law, epsilon)`` from a product law.
    """

    @cached_property
    def as_product(self) -> ProductChannel:
        """The same channel as a product of row channels."""
        assert isinstance(self.base, Product)
        laws, which, _, place = self.base.paired(self.kernels)
        factors = [
            TiltedRow(self.kernels.distinct[j], self.base.distinct[k])
            for k, j in zip(laws, which, strict=True)
        ]
        return ProductChannel.of(RowKernels(factors, place))

    @property
    def rounding_error(self) -> float:
        """Bound on the error of the logs of all rows' kernels, whose terms may cancel."""
        kinds = self.as_product.kernels.distinct
        parts = [kernel.noise for kernel in kinds if isinstance(kernel, TiltedRow)]
        return 2.0 * math.fsum(np.bincount(self.as_product.kernels.assignment) * parts)

    def matrix(self) -> Floats:
        """Return W[x, y] = p(y|x), an N x N array: products of the rows' chances.

        The law of all rows may be out of range where those of single rows are not.
        """
        self.check_matrix_fits()
        return self.as_product.matrix()

    def nearest_matrix(self) -> Floats:
        """Return W[x, y] to the nearest doubles."""
        self.check_matrix_fits()
        return self.as_product.nearest_matrix()

    def output_distribution(self, prior: Distribution) -> Distribution:
        return self.base if self.owns(prior) else self.as_product.output_distribution(prior)

    @cached_property
    def drawn_product(self) -> ProductChannel:
        """The rows as they are drawn: a chance that rounded to zero is the least double instead.

        Samplers turn it into 2^-64, so an output that can occur stays possible for all databases.
        """
        matrices = [kernel.matrix for kernel in self.as_product.kernels.distinct]
        raised = [np.where((W == 0.0) & (W.max(axis=0) > 0.0), LEAST, W) for W in matrices]
        assignment = self.as_product.kernels.assignment
        return ProductChannel.of(RowKernels([RowKernel(W) for W in raised], assignment))

    def draw(self, rows: Codes, source: Source) -> Codes:
        return self.drawn_product.draw(rows, source)
