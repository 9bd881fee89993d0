"""E_i: the mechanism whose posterior, not whose likelihood, is the Hamming kernel."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from fastpriv import _validation as check
from fastpriv import kernels
from fastpriv._rows import RowKernel, RowKernels, Symmetric, round_up
from fastpriv._validation import Floats, Ints
from fastpriv.channels.base import AbstractChannel
from fastpriv.channels.product import ProductChannel, hamming_distance
from fastpriv.distributions import Dense, Distribution, Product
from fastpriv.distributions._unmixing import rounding
from fastpriv.distributions.base import as_prior
from fastpriv.distributions.dense import apply_rows
from fastpriv.errors import Infeasible
from fastpriv.results import Bracket

__all__ = ["PosteriorChannel"]


class PosteriorChannel(AbstractChannel):
    """E_i: p(x|y) = e^(-epsilon d(x, y)) / (1 + (m-1) e^-epsilon)^n, for a given prior.

    Optimal for identifiability (Wang-Ying-Zhang 2015, Theorem 1, Lemma 4) and for mutual
    information (Theorem 2) at distortion h(epsilon). With p_Y = R^-1 p the channel is
    W[x, y] = p_Y(y) R[x, y] / p(x). Under its own prior it is E_d run backwards, from p_Y to p,
    which is how its information is computed.

    Parameters
    ----------
    prior : Distribution
        Law of the databases.
    epsilon : float
        Identifiability level, at least ``prior.epsilon_tilde()``.

    Raises
    ------
    Infeasible
        Below ``prior.epsilon_tilde()``, which the message names.

    Examples
    --------
    >>> import fastpriv as fp
    >>> prior = fp.Product([[0.6, 0.4], [0.3, 0.7]])
    >>> channel = fp.PosteriorChannel(prior, 1.0)
    >>> fp.identifiability_level(channel, prior)
    1.0
    """

    def __init__(self, prior: Distribution, epsilon: float) -> None:
        least = as_prior(prior).epsilon_tilde()
        if least == math.inf:
            raise Infeasible(
                f"E_i does not exist for {prior!r}: some database has probability zero, and no "
                "finite epsilon will do"
            )
        self.epsilon = check.real(epsilon, "epsilon", least=0.0)
        if self.epsilon < least:
            raise Infeasible(
                f"E_i does not exist at epsilon {self.epsilon!r} for {prior!r}; it needs epsilon "
                f">= epsilon_tilde = {least!r}"
            )
        self._set(prior)

    @classmethod
    def _near(cls, prior: Distribution, epsilon: float) -> PosteriorChannel:
        """Build E_i a rounding error below ``epsilon_tilde``, where clipping p_Y costs nothing."""
        self = cls.__new__(cls)
        self.epsilon = epsilon
        self._set(prior)
        return self

    def _set(self, prior: Distribution) -> None:
        self.prior = prior
        self.space = self.output_space = prior.space
        self._kernels = RowKernels.symmetric(prior.space.sizes, self.epsilon)
        self._law = prior.unmixed(self.epsilon)

    @cached_property
    def _rows(self) -> ProductChannel | None:
        """The same channel as a product of row channels, where the prior is one."""
        if not (isinstance(self.prior, Product) and isinstance(self._law, Product)):
            return None
        pairs = self._law._pairs(self._kernels)
        factors = []
        for k, j in zip(pairs[0], pairs[1], strict=True):
            joint = self._kernels.distinct[j].matrix * self._law._laws[k]
            factors.append(RowKernel(joint / joint.sum(axis=1, keepdims=True)))
        return ProductChannel._trusted(RowKernels(factors, pairs[3]))

    def _own(self, prior: Distribution) -> bool:
        return prior is self.prior or prior.equals(self.prior)

    def _vectors(self) -> tuple[Floats, Floats]:
        """Output law p_Y and the prior R p_Y that the channel realises, as vectors."""
        law = self._law._vector()
        return law, apply_rows(law, self._kernels)

    def matrix(self) -> Floats:
        """Return W[x, y] = p(y|x), an N x N array."""
        self._check_matrix()
        law, realised = self._vectors()
        joint = ProductChannel._trusted(self._kernels).matrix() * law
        return np.asarray(joint / realised[:, None])

    def _output(self, prior: Distribution) -> Distribution:
        if self._own(prior):
            return self._law
        if self._rows is not None:
            return self._rows._output(prior)
        law, realised = self._vectors()
        tilted = prior._vector() / realised
        return Dense._trusted(law * apply_rows(tilted, self._kernels), self.space)

    def neighbour_level(self) -> float:
        """Epsilon + eps_X while every value of every row can come out, less where some cannot.

        Row i of x moving from s to t changes W[x, y] by e^(epsilon ([y_i = s] - [y_i = t]))
        p(x')/p(x), so a value s that never comes out never gives the full e^epsilon.
        """
        groups = self.prior._alike()
        live = [self._law._expected_counts(rows[:1]) > 0.0 for rows in groups]
        if all(map(np.all, live)):
            return round_up(self.epsilon + self.prior.epsilon_x()) if self._moves else 0.0
        worst = [0.0]
        for rows, alive in zip(groups, live, strict=True):
            ratios = self.prior._log_ratios(rows[:1]).T
            elsewhere = alive.sum() - alive[:, None] - alive[None, :] > 0
            gain = np.where(alive[:, None], 1.0, np.where(elsewhere, 0.0, -1.0))
            np.fill_diagonal(gain, 0.0)
            worst.append(float((self.epsilon * gain + ratios).max()))
        return round_up(max(worst))

    @property
    def _moves(self) -> bool:
        """Whether there are neighbours at all."""
        return max(self.space.sizes) > 1

    def posterior_level(self, prior: Distribution) -> float:
        """Epsilon under the channel's own prior (Lemma 4)."""
        if not self._moves:
            return 0.0
        if self._own(prior):
            return self._own_level
        if self._rows is not None:
            return self._rows.posterior_level(prior)
        _, realised = self._vectors()
        tilted = Dense._trusted(prior._vector() / realised, self.space)
        return round_up(self.epsilon + tilted.epsilon_x())

    @cached_property
    def _own_level(self) -> float:
        """Epsilon, plus what clipping p_Y cost where R^-1 had amplified the prior's rounding."""
        if isinstance(self._law, Product):
            return self.epsilon
        misfit = self.prior._misfit(self._law.through(self._kernels))
        return self.epsilon if misfit <= rounding(self.space.n) else self.epsilon + 2.0 * misfit

    def information(self, prior: Distribution) -> float | Bracket:
        """Return I(X; Y): under its own prior that of E_d applied to p_Y. Cost O(N n) if dense.

        Under another dense prior the entropies are subtracted, so the absolute error is a few
        ulp of n ln m.
        """
        if self._own(prior):
            return self._law.information_through(self._kernels)
        if self._rows is not None:
            return self._rows.information(prior)
        output = self._output(prior).entropy()
        return max(0.0, float(output) - float(prior._vector() @ self.row_entropies()))  # type: ignore[arg-type]

    def capacity(self, gap: float) -> Bracket:
        """Row by row where the channel is a product, through the matrix otherwise."""
        return super().capacity(gap) if self._rows is None else self._rows.capacity(gap)

    def capacity_prior(self, gap: float) -> Distribution:
        """Row by row where the channel is a product, through the matrix otherwise."""
        return super().capacity_prior(gap) if self._rows is None else self._rows.capacity_prior(gap)

    def expected_distance(self, prior: Distribution) -> float:
        """Return h(epsilon) under the channel's own prior (Lemma 4)."""
        if self._own(prior):
            return hamming_distance(self._kernels)
        if self._rows is not None:
            return self._rows.expected_distance(prior)
        return float(prior._vector() @ self._distances())

    def _distances(self) -> Floats:
        """Expected Hamming distance of the output for every database. Cost O(N n)."""
        value, realised = self._vectors()
        total = np.zeros_like(value)
        # Carry (sum of R q, sum of R q d) through the axes; moving on an axis adds one to d.
        for i, m in enumerate(self.space.sizes):
            kernel = self._kernels[i]
            assert isinstance(kernel, Symmetric)
            shape = (-1, m, int(self.space._strides[i]))
            v, t = value.reshape(shape), total.reshape(shape)
            moved = kernel.off * (v.sum(axis=1, keepdims=True) - v)
            total = (kernel.gap * t + kernel.off * t.sum(axis=1, keepdims=True) + moved).reshape(-1)
            value = (kernel.stay * v + moved).reshape(-1)
        return np.asarray(total / realised)

    def _closure(self, start: Floats, move: float) -> Floats:
        """Max over x of start(x) move^d(x, y), for every y, axis by axis. Cost O(N n)."""
        best = start.copy()
        for i, m in enumerate(self.space.sizes):
            if m > 1:
                kernels.axis_closure(best, move, int(self.space._strides[i]), m)
        return best

    def _scale(self) -> float:
        """R[x, x], the chance that no row moves."""
        return math.prod(k.stay for k in self._kernels if isinstance(k, Symmetric))

    def column_maxima(self) -> Floats:
        """Largest p(y|x) over x, for every output y. Cost O(N n)."""
        law, realised = self._vectors()
        return self._scale() * law * self._closure(1.0 / realised, math.exp(-self.epsilon))

    def column_minima(self) -> Floats:
        """Least p(y|x) over x, for every output y. Cost O(N n)."""
        law, realised = self._vectors()
        with np.errstate(over="ignore"):  # beyond the range of a double the minimum rounds to 0
            return self._scale() * law / self._closure(realised, float(np.exp(self.epsilon)))

    def row_entropies(self) -> Floats:
        """Entropy of the output for every database x. Cost O(N n)."""
        law, realised = self._vectors()
        with np.errstate(divide="ignore", invalid="ignore"):
            own = np.where(law > 0, law * np.log(law), 0.0)
        mixed = apply_rows(own, self._kernels) / realised
        return np.asarray(
            self.epsilon * self._distances() - math.log(self._scale()) + np.log(realised) - mixed
        )

    def _sample(self, rows: Ints, rng: np.random.Generator) -> Ints:
        if self._rows is not None:
            return self._rows._sample(rows, rng)
        law = self._law._dense("sampling E_i")._vector()
        drawn = np.empty(len(rows), dtype=np.int64)
        for j, row in enumerate(rows):
            chances = np.ones(1)
            for i, value in enumerate(row):
                chances = np.multiply.outer(chances, self._kernels[i].matrix[value]).reshape(-1)
            edges = np.cumsum(chances * law)
            drawn[j] = np.searchsorted(edges, rng.random() * edges[-1], side="right")
        return self.space.rows(drawn)

    def __repr__(self) -> str:
        return f"PosteriorChannel({self.prior!r}, epsilon={self.epsilon:g})"
