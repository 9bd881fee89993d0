"""An output law tilted towards the database: the shape of every rate-distortion optimum."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from fastpriv import kernels
from fastpriv._core import validation as check
from fastpriv._core.logs import round_up
from fastpriv._core.rounding import ULP
from fastpriv._core.transform import mix
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.leakage import (
    TINY,
    Leakages,
    log_masses,
    row_slack,
    tilted,
    tropical,
    vector_leakages,
)
from fastpriv._matrices.pairs import Pairs, apart, apart_by
from fastpriv._sampling.source import Source
from fastpriv._sampling.thresholds import Codes
from fastpriv._structure.rows import RowKernel, RowKernels, Symmetric
from fastpriv._structure.tilted_row import TiltedRow
from fastpriv.channels.base import AbstractChannel
from fastpriv.channels.product import ProductChannel
from fastpriv.channels.witnesses import home_step, rows_step
from fastpriv.errors import InvalidInput
from fastpriv.priors import Dense, Distribution, Product
from fastpriv.priors.base import as_prior
from fastpriv.priors.dense import apply_rows
from fastpriv.results import Witness

__all__ = ["TiltedChannel"]

#: Least positive double.
_LEAST = 5e-324


class TiltedChannel(AbstractChannel):
    """W[x, y] proportional to q(y) e^(-epsilon d(x, y)): an output law q, tilted towards x.

    Every optimum of the rate-distortion problem with Hamming distortion has this form (Wang-Ying-
    Zhang 2015, proof of Theorem 2). With R the Hamming kernel of E_d, W[x, y] = q(y) R[x, y] /
    (R q)(x). Under the prior R q, which the channel is at home with, it is E_d run backwards.

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

    def __init__(self, law: Distribution, epsilon: float) -> None:
        self.epsilon = check.real(epsilon, "epsilon", least=0.0)
        self._set(as_prior(law))
        self.prior = self._law.through(self._kernels)
        if self._moves and not math.isfinite(self.prior.epsilon_x()):
            raise InvalidInput(
                f"at epsilon {self.epsilon:g} some database is too far from all outputs of {law!r} "
                "for their weights to be told from zero; use a smaller epsilon, or no zeros"
            )

    def _set(self, law: Distribution) -> None:
        self._law = law
        self.space = self.output_space = law.space
        self._kernels = RowKernels.symmetric(law.space.sizes, self.epsilon)

    @cached_property
    def _rows(self) -> ProductChannel | None:
        """The same channel as a product of row channels, where the law is one."""
        if not (isinstance(self.prior, Product) and isinstance(self._law, Product)):
            return None
        laws, which, _, place = self._law._pairs(self._kernels)
        factors = [
            TiltedRow(self._kernels.distinct[j], self._law._laws[k])
            for k, j in zip(laws, which, strict=True)
        ]
        return ProductChannel._trusted(RowKernels(factors, place))

    @property
    def _rounding(self) -> float:
        """Error of the logs of the rows' kernels, whose terms may cancel."""
        assert self._rows is not None
        kinds = self._rows._kernels.distinct
        parts = [kernel.noise for kernel in kinds if isinstance(kernel, TiltedRow)]
        return 2.0 * math.fsum(np.bincount(self._rows._kernels.assignment) * parts)

    def _own(self, prior: Distribution) -> bool:
        return prior is self.prior or prior.equals(self.prior)

    def _vectors(self) -> tuple[Floats, Floats]:
        """Output law q and the prior R q that the channel is at home with, as vectors."""
        law = self._law._vector()
        return law, apply_rows(law, self._kernels)

    def _tilt(self) -> tuple[np.ndarray, Floats]:
        """Which outputs occur, and -ln (R q)(x) up to a constant."""
        law, logs = self._law._vector(), self._law._logs()
        home = apply_rows(law, self._kernels)
        # R is symmetric, and all its rows have the same largest entry.
        small = home.min() < TINY
        tilt = -log_masses(law, self._kernels, logs) if small else -np.log(home)
        return law > 0.0 if logs is None else logs > -math.inf, tilt

    def matrix(self) -> Floats:
        """Return W[x, y] = p(y|x), an N x N array."""
        self._check_matrix()
        law, home = self._vectors()
        joint = ProductChannel._trusted(self._kernels).matrix() * law
        return np.asarray(joint / home[:, None])

    def scaled_matrix(self) -> Floats:
        """Return R[x, y] / (R q)(x) up to a factor, 0 where y never comes out."""
        occurs, tilt = self._tilt()
        near = ProductChannel._trusted(self._kernels).scaled_matrix()
        return np.asarray(near * np.exp(tilt - tilt.max())[:, None] * occurs)

    def _output(self, prior: Distribution) -> Distribution:
        if self._own(prior):
            return self._law
        if self._rows is not None:
            return self._rows._output(prior)
        law, home = self._vectors()
        return Dense._trusted(law * apply_rows(prior._vector() / home, self._kernels), self.space)

    def neighbour_level(self) -> float:
        """Epsilon + eps_X of R q while every value of every row can come out, else less."""
        if self._all_alive:
            return round_up(self.epsilon + self.prior.epsilon_x()) if self._moves else 0.0
        return self._worst([self.prior._log_ratios(rows[:1]).T for rows in self._groups])

    def posterior_level(self, prior: Distribution) -> float:
        """Epsilon under the channel's own prior; under another one as for neighbours."""
        if not self._moves:
            return 0.0
        if self._own(prior):
            return self._own_level
        if self._rows is not None:
            return self._rows.posterior_level(prior)
        home, logs = self._vectors()[1], prior._logs()
        rare = None if logs is None else logs - np.log(home)
        odds = Dense._trusted(prior._vector() / home, self.space, rare)
        if self._all_alive:
            return round_up(self.epsilon + odds.epsilon_x())
        return self._worst([odds._log_ratios(rows[:1]) for rows in self._groups])

    @property
    def _own_level(self) -> float:
        return self.epsilon

    @property
    def _misfit(self) -> float:
        """Largest |ln p(x)/(R q)(x)| of the channel's own prior."""
        return 0.0

    @property
    def _moves(self) -> bool:
        """Whether there are neighbours at all."""
        return max(self.space.sizes) > 1

    @cached_property
    def _groups(self) -> list[Ints]:
        return self.prior._alike()

    @cached_property
    def _alive(self) -> list[np.ndarray]:
        """Which values of a row can come out, per group of rows."""
        return [self._law._log_marginal(int(rows[0]))[0] > -math.inf for rows in self._groups]

    @property
    def _all_alive(self) -> bool:
        return all(map(np.all, self._alive))

    def _worst(self, ratios: Sequence[Floats]) -> float:
        """Largest e ([y_i = s] - [y_i = t]) + ratio[s, t] over rows, values and live outputs.

        Row i of x moving from s to t changes R[x, y] by e^(epsilon ([y_i = s] - [y_i = t])), so a
        value s that never comes out never gives the full e^epsilon.
        """
        worst = [0.0]
        for alive, ratio in zip(self._alive, ratios, strict=True):
            elsewhere = alive.sum() - alive[:, None] - alive[None, :] > 0
            gain = np.where(alive[:, None], 1.0, np.where(elsewhere, 0.0, -1.0))
            np.fill_diagonal(gain, 0.0)
            worst.append(float((self.epsilon * gain + ratio).max()))
        return round_up(max(worst))

    def neighbour_laws(self) -> Iterator[Pairs]:
        """Laws of y_i given x: that is all of y that tells databases apart which differ in row i.

        Cost O(N n) for each row; rounded apart.
        """
        if self._rows is not None:
            for laws, pairs in self._rows.neighbour_laws():
                yield from apart(laws, [(pairs[:, 0], pairs[:, 1])], 1)
            return
        law, sizes = self._law._vector(), self.space.sizes
        steps = [k.mixing if isinstance(k, Symmetric) else 0.0 for k in self._kernels]
        for i, (m, inner) in enumerate(zip(sizes, self.space._strides.tolist(), strict=True)):
            mixed = mix(law.copy(), sizes, [*steps[:i], 0.0, *steps[i + 1 :]])
            values = mixed.reshape(-1, 1, m, inner).swapaxes(2, 3)
            laws = (self._kernels[i].matrix[:, None, :] * values).reshape(-1, m)
            yield from apart(
                laws / laws.sum(axis=1, keepdims=True), self.space._steps_of(i), len(sizes)
            )

    @property
    def laws_apart(self) -> float:
        """As ``apart`` rounds the laws of one row's values."""
        return apart_by(max(self.space.sizes), self.space.n)

    def attribute_range(self, low: Ints, high: Ints) -> tuple[Ints, Ints]:
        """Every database can cause every output that can occur."""
        return low.min(keepdims=True), high.max(keepdims=True)

    def least_support(self) -> int:
        """All databases."""
        return self.space.size

    def ruling_out(self) -> tuple[int, Ints]:
        """No output that can occur does."""
        return 0, np.empty((0, self.space.n), dtype=np.int64)

    def step_witness(self, prior: Distribution | None = None) -> Witness:
        """Find what attains the neighbour or the posterior level, in the structure of the prior.

        W moves by e^epsilon as a row of x leaves its value in y, and by the ratio of R q.
        """
        if self._rows is not None:
            return self._rows.step_witness(prior)
        if prior is None:
            found = home_step(self.prior, self._groups)
        elif self._own(prior):
            found = rows_step(self._kernels, None)
        else:
            tilted = Dense._trusted(prior._vector() / self._vectors()[1], self.space)
            found = rows_step(self._kernels, tilted)
        occurs = self._law.log_prob(found.output) > -math.inf
        return found if occurs and self._all_alive else super().step_witness(prior)

    def extreme_witness(self) -> Witness:
        """Find what attains the extreme level. Cost O(N n m)."""
        if self._rows is not None:
            return self._rows.extreme_witness()
        law, home = self._vectors()
        most, least = (tropical(-np.log(home), self._kernels, j) for j in (np.maximum, np.minimum))
        y = self.space.rows(int(np.where(law > 0, most - least, -1.0).argmax()))
        column = self._log_column(y)
        return Witness(y, *self.space.rows(np.array([column.argmax(), column.argmin()])))

    def leakage_witness(self, prior: Distribution) -> Witness:
        """Find the output that leaks most, and the likeliest database behind it. O(N n m)."""
        if self._rows is not None:
            return self._rows.leakage_witness(prior)
        y = self.space.rows(int(self.leakages(prior).above.argmax()))
        column = np.where(prior._vector() > 0, self._log_column(y), -math.inf)
        return Witness(y, self.space.rows(int(column.argmax())))

    def _log_column(self, y: Ints) -> Floats:
        """Log of W[x, y] for every x, up to a constant."""
        logs = np.zeros(1)
        for value, m in zip(y.tolist(), self.space.sizes, strict=True):
            logs = np.add.outer(logs, -self.epsilon * (np.arange(m) != value)).reshape(-1)
        return np.asarray(logs - np.log(self._vectors()[1]))

    @property
    def _law_error(self) -> float:
        """Bound the relative error of an output law."""
        return super()._law_error + (0.0 if self._rows is None else self._rounding)

    def leakages(self, prior: Distribution) -> Leakages:
        """How far every output moves the odds: those of R, tilted by 1 / (R q). Cost O(N n m)."""
        if self._rows is not None:
            found = self._rows.leakages(prior)
            return Leakages(*(np.where(v > 0.0, v + self._rounding, 0.0) for v in found))
        occurs, tilt = self._tilt()
        found = vector_leakages(prior._vector(), self._kernels, prior._logs(), tilt)
        return Leakages(*(np.where(occurs, part, 0.0) for part in found))

    def log_output(self, prior: Distribution) -> Floats:
        """Log of the law of the output up to a factor for every y. Cost O(N n m)."""
        if self._rows is not None:
            return self._rows.log_output(prior)
        occurs, tilt = self._tilt()
        weights, logs, factor = tilted(prior._vector(), prior._logs(), tilt)
        found = math.log(weights.sum()) + log_masses(weights, self._kernels, logs) + factor
        return np.where(occurs, found, -math.inf)

    def leakage_levels(self, prior: Distribution) -> tuple[float, float]:
        """Row by row where the channel is a product, from all outputs otherwise."""
        if self._rows is not None:
            above, below = self._rows.leakage_levels(prior)
            return above + self._rounding, below + self._rounding
        return super().leakage_levels(prior)

    def row_columns(self, y: Ints) -> RowKernels | None:
        """Row by row where the channel is a product."""
        return None if self._rows is None else self._rows.row_columns(y)

    def leakage_at(self, prior: Distribution, y: Ints) -> float:
        """Pointwise maximal leakage of one output."""
        if self._rows is not None:
            return self._rows.leakage_at(prior, y) + self._rounding
        return float(self.leakages(prior).above[self.space.index(y)])

    def row_leakage_at(self, prior: Distribution, i: int, y: Ints) -> float:
        """Leakage of one output about row i."""
        if self._rows is not None:
            return self._rows.row_leakage_at(prior, i, y) + self._rounding
        return super().row_leakage_at(prior, i, y)

    def extreme_level(self) -> float:
        """Largest ln W[x, y]/W[x', y] over all x, x' and outputs y. Cost O(N n m)."""
        if self._rows is not None:  # whose factors were rounded
            return self._rows.extreme_level() + 4.0 * row_slack(self._kernels)
        occurs, tilt = self._tilt()
        most, least = (tropical(tilt, self._kernels, j) for j in (np.maximum, np.minimum))
        return round_up(float((most - least)[occurs].max())) + 4.0 * row_slack(self._kernels)

    def maximal_leakage(self) -> float:
        """Log of the sum of column maxima, the sum over rows where the channel is a product."""
        if self._rows is not None:
            return self._rows.maximal_leakage() + 4.0 * row_slack(self._kernels)
        return super().maximal_leakage() + 4.0 * row_slack(self._kernels)

    def row_kernels(self) -> RowKernels | None:
        """Return the kernels of the rows, where they are independent."""
        return None if self._rows is None else self._rows.row_kernels()

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
        law, home = self._vectors()
        return self._scale() * law * self._closure(1.0 / home, math.exp(-self.epsilon))

    def column_minima(self) -> Floats:
        """Least p(y|x) over x, for every output y. Cost O(N n)."""
        law, home = self._vectors()
        with np.errstate(over="ignore"):  # beyond the range of a double the minimum rounds to 0
            return self._scale() * law / self._closure(home, float(np.exp(self.epsilon)))

    @cached_property
    def _drawn(self) -> ProductChannel | None:
        """The rows as they are drawn: chances that rounded to zero are the least double instead.

        Samplers make 2^-64 of it, and so an output that can occur stays possible for all.
        """
        if self._rows is None:
            return None
        matrices = [kernel.matrix for kernel in self._rows._kernels.distinct]
        raised = [np.where((W == 0.0) & (W.max(axis=0) > 0.0), _LEAST, W) for W in matrices]
        assignment = self._rows._kernels.assignment
        return ProductChannel._trusted(RowKernels([RowKernel(W) for W in raised], assignment))

    def _sample(self, rows: Codes, source: Source) -> Codes:
        if self._drawn is not None:
            return self._drawn._sample(rows, source)
        drawn = self._law.tilted_draws(rows.astype(np.int64), self.epsilon, source)
        return drawn.astype(rows.dtype)

    def realised_level(self) -> float:
        """Level of the thresholds of the rows, or a bound where rows are drawn one by one.

        Row i comes out with a chance that is right to some ulp, given the rows before it, so
        p(y|x) is realised to within n times as much. Two of those errors, and what clipping the
        law of E_i cost, come on top of the nominal level.
        """
        if self._drawn is not None:
            return self._drawn.realised_level()
        if not self._moves:
            return 0.0
        row = 8 * max(self.space.sizes) + 64 + 2.0 * self.epsilon
        error = ULP * (self.space.n * row + 16.0 * abs(self._law._log_least()) + 1024.0)
        return self.neighbour_level() + 2.0 * (error + self._misfit)

    def realised(self) -> tuple[AbstractChannel, float]:
        """Return the thresholds of independent rows as doubles, or the channel itself."""
        return super().realised() if self._drawn is None else self._drawn.realised()

    def __repr__(self) -> str:
        return f"TiltedChannel({self._law!r}, epsilon={self.epsilon:g})"
