"""An output distribution tilted towards the database, and the posterior response.

Every rate-distortion optimum with Hamming distortion has this form. ``TiltedChannel`` takes any
output distribution and works with vectors over databases. Independent records make a
``TiltedProduct``, which acts record by record. ``PosteriorChannel`` is the posterior response: its
posterior under a given prior is the matrix of randomised response. Calling a class chooses the
subclass.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from functools import cached_property, singledispatch
from typing import Any

import numpy as np

from fastpriv import kernels
from fastpriv._core import validation as check
from fastpriv._core.defined import load
from fastpriv._core.rounding import LEAST, NORMAL, raised, round_up, roundoff
from fastpriv._core.validation import Floats, Ints
from fastpriv._core.wide import wide
from fastpriv._matrices.leakage import TINY
from fastpriv._matrices.ratios import inwards
from fastpriv._matrices.tilted import (
    FORMED,
    SMALL,
    Excess,
    distances,
    far_matrix,
    perturbed,
    relative_excess,
)
from fastpriv._sampling.sequential import States, chain_draws
from fastpriv._sampling.source import Source
from fastpriv._sampling.thresholds import Codes
from fastpriv._structure.counts import log_multinomials, types_array
from fastpriv._structure.leakage import log_masses, row_slack, tropical
from fastpriv._structure.rows import RowKernel, RowKernels, Symmetric, TiltedRow, inner_level
from fastpriv._structure.type_pairs import TypePairs, pairs_fit
from fastpriv.channels.base import AbstractChannel
from fastpriv.channels.product import ProductChannel
from fastpriv.errors import Infeasible, InvalidInput, TooLarge, described
from fastpriv.priors import Dense, Distribution, Exchangeable, Markov, Product
from fastpriv.priors.base import apply_rows, as_prior
from fastpriv.priors.exchangeable import LISTED
from fastpriv.priors.unmixing import rounding, wide_misfit
from fastpriv.results import Bracket

__all__ = ["PosteriorChannel", "TiltedChannel"]

#: Largest distribution that is sampled by sums over its prefixes.
_MAX_DRAWN = 1 << 25
#: Most types, counted with one axis for each value, of three or more values.
_BOX = 1 << 24
#: Most databases that are processed one by one.
FEW = 1 << 16


@singledispatch
def tilted_draws(law: Distribution, rows: Ints, epsilon: float, source: Source) -> Ints:
    """Draw y with probability proportional to q(y) e^(-epsilon d(x, y)) for each database x.

    Cost O(N) for every distinct x and O(n m) for each draw.
    """
    vector = law.as_dense("sampling a tilted distribution", _MAX_DRAWN).probabilities()
    return States.dense(vector, law.space.sizes).draws(rows, epsilon, source)


@tilted_draws.register
def _exchangeable_tilted_draws(
    law: Exchangeable, rows: Ints, epsilon: float, source: Source
) -> Ints:
    """Draw for exchangeable records, taken in the order of their values.

    Databases of one type then share the sums over possible continuations: O(n^2) for each type for
    m = 2, O(n m) for each draw.
    """
    n = law.space.n
    check.fits(n * law.type_weights.size, "the table of types", "use fewer records", 1 << 27)
    states = States.types(law.log_per_database, law.type_strides)
    order = np.argsort(rows, axis=1, kind="stable")
    drawn = states.draws(np.take_along_axis(rows, order, axis=1), epsilon, source)
    out = np.empty_like(drawn)
    np.put_along_axis(out, order, drawn, axis=1)
    return out


@tilted_draws.register
def _markov_tilted_draws(law: Markov, rows: Ints, epsilon: float, source: Source) -> Ints:
    """Draw for a chain: backward sums, then one record at a time. Cost O(n m^2) each."""
    return chain_draws(law.initial, law.transition, rows, epsilon, source)


class TypeTilt:
    """The distributions q and R q of a tilted channel over types, and the channel they make.

    In W[x, y] = q(y) R[x, y] / (R q)(x) the largest entry of column y is at x = y. A step of x away
    from y divides R by e^epsilon, and R q, an output distribution of randomised response, changes
    by at most this factor. For the same reason the smallest entry is at an x that differs from y in
    every record.
    """

    def __init__(self, law: Exchangeable, home: Exchangeable, kernel: Symmetric) -> None:
        self.n, self.kernel = law.space.n, kernel
        self.types = types_array(self.n, kernel.m)
        self.sizes = log_multinomials(self.types)
        place = tuple(self.types[1:])
        #: Logs of q and of R q, summed over the databases of each type.
        self.log_law, self.log_home = law.log_weights[place], home.log_weights[place]
        self.occurs = self.log_law > -math.inf
        #: Log of (R q)(x) for one database of each type.
        self.log_each = self.log_home - self.sizes
        self.log_stay = self.n * math.log(kernel.stay)
        slack = row_slack(RowKernels([kernel], np.zeros(self.n, dtype=np.int64)))
        largest = float(np.abs(self.log_each).max() + self.sizes.max())
        #: Bound on the error of sums of a few of these logarithms.
        self.error = 4.0 * slack + roundoff(64.0) * (1.0 + largest + self.n * kernel.epsilon)

    @cached_property
    def pairs(self) -> TypePairs:
        """Tables over pairs of types."""
        return TypePairs(self.n, self.kernel)

    @property
    def fits(self) -> bool:
        """Whether the tables over pairs of types are small enough."""
        return pairs_fit(self.n, self.kernel)

    @cached_property
    def opposite(self) -> Floats:
        """Return the largest ln (R q)(x) over x that differ from y in every record, by type of y.

        Types s and t have such databases if s_v + t_v <= n for every value v.
        """
        if self.kernel.m == 2:
            return np.asarray(self.log_each[::-1])
        m, n = self.kernel.m, self.n
        check.fits((n + 1) ** m, "the table of types", "use fewer records or values", _BOX)
        best = np.full((n + 1,) * m, -math.inf)
        best[tuple(self.types)] = self.log_each
        for axis in range(m):
            best = np.maximum.accumulate(best, axis=axis)
        return np.asarray(best[tuple(n - self.types)])

    def log_joint(self, log_prior: Floats) -> Floats:
        """Return the log of the joint distribution of types: output (first axis) and database."""
        return np.asarray(self.log_law[:, None] + self.pairs.log_laws + (log_prior - self.log_home))

    def log_ratios(self, logs: Floats) -> Floats:
        """Return the largest logs(x) - logs(x') if one record goes from s to t, for every (s, t).

        ``logs`` is a number for each type, -inf if x cannot occur.
        """
        m, n = self.kernel.m, self.n
        table = np.full((n + 1,) * (m - 1), -math.inf)
        table[tuple(self.types[1:])] = logs
        worst = np.full((m, m), -math.inf)
        for s, t in itertools.product(range(m), repeat=2):
            moved = self.types[:, (self.types[s] > 0) & (logs > -math.inf)].copy()
            here = table[tuple(moved[1:])]
            moved[s] -= 1
            moved[t] += 1
            worst[s, t] = (here - table[tuple(moved[1:])]).max(initial=-math.inf)
        return worst

    def log_prior(self, prior: Exchangeable) -> Floats:
        """Return the log of the probability of each type under a prior."""
        return np.asarray(prior.log_weights[tuple(self.types[1:])])


def type_tilt(law: Distribution, kernels: RowKernels) -> TypeTilt | None:
    """Return the distributions over types; None if there are none, or doubles underflow."""
    kernel = kernels.distinct[0]
    if not isinstance(law, Exchangeable) or not isinstance(kernel, Symmetric):
        return None
    home = law.through(kernels)
    assert isinstance(home, Exchangeable)
    if home.type_weights[home.inside].min() < TINY:
        return None
    return TypeTilt(law, home, kernel)


class TiltedChannel(AbstractChannel):
    """W[x, y] proportional to q(y) e^(-epsilon d(x, y)): a distribution q tilted towards x.

    W[x, y] = q(y) R[x, y] / (R q)(x), where R is the matrix of randomised response. Every optimum
    of the rate-distortion problem with Hamming distortion has this form (Wang-Ying-Zhang 2015,
    proof of Theorem 2). R q is called the channel's own prior: under it the posterior is R.

    Parameters
    ----------
    law : Distribution
        The output distribution q before tilting.
    epsilon : float
        Rate at which log-weights fall with the Hamming distance, at least 0.

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
        """Make a record-by-record channel from a distribution of independent records."""
        rows = cls is TiltedChannel and isinstance(law, Product)
        return super().__new__(TiltedProduct if rows else cls)

    def __getnewargs__(self) -> tuple[Distribution, float]:
        return self.base, self.epsilon

    def __init__(self, law: Distribution, epsilon: float) -> None:
        self.epsilon = check.real(epsilon, "epsilon", least=0.0)
        self._set(as_prior(law))
        self.prior = self.base.through(self.hamming_kernels)
        if self.space.has_neighbours and not math.isfinite(self.prior.epsilon_x()):
            raise InvalidInput(
                f"at epsilon {self.epsilon:g} the weights of all outputs of {law!r} for some "
                "database round to zero; use a smaller epsilon, or a distribution without zeros."
            )

    def definition(self) -> dict[str, Any]:
        return {"law": self.base, "epsilon": self.epsilon}

    @classmethod
    def from_definition(cls, given: Mapping[str, Any]) -> TiltedChannel:
        return cls(load(given["law"]), given["epsilon"])

    def _set(self, law: Distribution) -> None:
        #: The distribution q that is tilted.
        self.base = law
        self.space = self.output_space = law.space
        #: R, record by record.
        self.hamming_kernels = RowKernels.symmetric(law.space.sizes, self.epsilon)

    def is_own_prior(self, prior: Distribution) -> bool:
        """Whether a prior is R q, under which the posterior is R itself."""
        return prior == self.prior

    def base_and_mixture(self) -> tuple[Floats, Floats]:
        """Return the output distribution q and the channel's own prior R q, as vectors."""
        law = self.base.probabilities()
        return law, apply_rows(law, self.hamming_kernels)

    @property
    def entry_error(self) -> float:
        """Bound on the relative error of the entries of the matrix."""
        return roundoff(40 * self.space.n + sum(self.space.sizes) + 32)

    @property
    def matrix_error(self) -> float:
        """Bound on the relative error: products over records, divided by sums over values."""
        return roundoff(8.0 * (self.space.n * (max(self.space.sizes) + 2) + 16))

    def widened(self, bracket: Bracket) -> Bracket:
        """Bounds on a capacity or a contraction, for the error of the matrix it was computed from.

        ln R[x, y] and ln (R q)(x) change by at most epsilon n from one database to another.
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

    def log_tilt(self) -> tuple[np.ndarray, Floats]:
        """Return which outputs occur, and -ln (R q)(x) up to a constant."""
        law, logs = self.base.probabilities(), self.base.logs_if_rare()
        home = apply_rows(law, self.hamming_kernels)
        # R is symmetric, and all its rows have the same largest entry.
        small = home.min() < TINY
        tilt = -log_masses(law, self.hamming_kernels, logs) if small else -np.log(home)
        return law > 0.0 if logs is None else logs > -math.inf, tilt

    def matrix(self) -> Floats:
        """Return W[x, y] = p(y|x), an N x N array of doubles, rounded inwards.

        Weights are computed at a level that is lower by a few units of 2^-53. A probability that
        underflows is raised until its ratio to the entries of neighbours is within the level.
        """
        n, m = self.space.n, max(self.space.sizes)
        matrix = self._rounded(inner_level(self.epsilon, n, m, room=0.0))
        if matrix.min() >= NORMAL:
            return matrix
        closed = inwards(matrix, self.space.axes, self._spread())
        return np.where(matrix < NORMAL, closed, matrix)

    def _spread(self) -> float:
        """Return the largest |ln W[x, y]/W[x', y]| of neighbours, from logarithms."""
        occurs, tilt = self.log_tilt()
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
        # Normalised by its own sum, so that a nearly certain output has probability 1.
        return np.asarray(joint / joint.sum(axis=1, keepdims=True))

    def output_distribution(self, prior: Distribution) -> Distribution:
        if self.is_own_prior(prior):
            return self.base
        law, home = self.base_and_mixture()
        return Dense.of(
            law * apply_rows(prior.probabilities() / home, self.hamming_kernels), self.space
        )

    @cached_property
    def by_type(self) -> TypeTilt | None:
        """The channel in types, if its records are exchangeable and databases are many."""
        return type_tilt(self.base, self.hamming_kernels) if self.space.size > LISTED else None

    @property
    def own_level(self) -> float:
        """Epsilon plus the rounding error of R q as the floats of a prior."""
        return round_up(self.epsilon + rounding(self.space.n))

    @cached_property
    def _far(self) -> bool:
        """Whether the total weight of some database underflows."""
        return bool(self.base_and_mixture()[1].min() < TINY)

    @cached_property
    def is_rare(self) -> bool:
        """Whether some weight q(y) R[x, y] may underflow, or lose digits."""
        law = self.base.probabilities()
        least = math.log(law[law > 0.0].min()) - self.space.n * (self.epsilon + 10.0)
        return self.base.logs_if_rare() is not None or least < math.log(TINY)

    @cached_property
    def is_listable(self) -> bool:
        """Whether databases are few, and no database's total weight underflows."""
        return self.space.size <= FEW and not self._far

    @property
    def misfit(self) -> float:
        """Largest |ln p(x)/(R q)(x)| of the channel's own prior."""
        return 0.0

    @cached_property
    def alike_groups(self) -> list[Ints]:
        """Records in groups that are interchangeable under R q."""
        return self.prior.alike_records()

    @cached_property
    def occurring_values(self) -> list[np.ndarray]:
        """Which values of a record are possible outputs, for every group of records."""
        return [self.base.log_marginal(int(rows[0]))[0] > -math.inf for rows in self.alike_groups]

    @property
    def all_values_occur(self) -> bool:
        """Whether every value of every record is a possible output."""
        return all(map(np.all, self.occurring_values))

    def stay_probability(self) -> float:
        """R[x, x], the probability that no record changes."""
        return math.prod(k.stay for k in self.hamming_kernels if isinstance(k, Symmetric))

    def column_maxima(self) -> Floats:
        """Return the largest p(y|x) over x, for every output y: at x = y. Cost O(N n).

        (R q)(x) >= e^(-epsilon d(x, y)) (R q)(y), because R[x, z] >= e^(-epsilon d(x, y)) R[y, z].
        """
        if self._far:
            return _log_columns(self.base, self.log_tilt()[1])
        law, home = self.base_and_mixture()
        return np.asarray(self.stay_probability() * law / home)

    def column_minima(self) -> Floats:
        """Return the smallest p(y|x) over x, for every y; 0 if it underflows. Cost O(N n)."""
        if self._far:
            return _log_columns(
                self.base, tropical(self.log_tilt()[1], self.hamming_kernels, np.minimum)
            )
        law, farthest = self.base_and_mixture()
        with np.errstate(over="ignore"):
            away = float(np.exp(self.epsilon))
        for i, m in enumerate(self.space.sizes):
            if m > 1:
                kernels.axis_closure(farthest, away, int(self.space.strides[i]), m)
        return np.asarray(self.stay_probability() * law / farthest)

    def draw(self, rows: Codes, source: Source) -> Codes:
        drawn = tilted_draws(self.base, rows.astype(np.int64), self.epsilon, source)
        return drawn.astype(rows.dtype)

    def __repr__(self) -> str:
        return f"TiltedChannel({self.base!r}, epsilon={self.epsilon:g})"


def _log_columns(q: Distribution, extreme: Floats) -> Floats:
    """Return q(y) e^extreme(y), over the total of q, if weights of R q underflow."""
    law, logs = q.probabilities(), q.logs_if_rare()
    with np.errstate(divide="ignore"):
        own = np.log(law) if logs is None else logs
    return np.asarray(np.exp(np.minimum(own - math.log(law.sum()) + extreme, 0.0)))


class TiltedProduct(TiltedChannel, form=True):
    """A tilted distribution of independent records, which acts on every record by itself.

    Made by ``TiltedChannel(law, epsilon)`` from a product distribution.
    """

    @cached_property
    def as_product(self) -> ProductChannel:
        """The same channel as a product of channels on one record."""
        assert isinstance(self.base, Product)
        laws, which, _, place = self.base.paired(self.hamming_kernels)
        factors = [
            TiltedRow(self.hamming_kernels.distinct[j], self.base.distinct[k])
            for k, j in zip(laws, which, strict=True)
        ]
        return ProductChannel.of(RowKernels(factors, place))

    @property
    def kernels(self) -> RowKernels:  # type: ignore[override]
        """The kernel of every record."""
        return self.as_product.kernels

    @property
    def rounding_error(self) -> float:
        """Bound on the error of the logs of all records' kernels, whose terms may cancel."""
        kinds = self.as_product.kernels.distinct
        parts = [kernel.log_error for kernel in kinds if isinstance(kernel, TiltedRow)]
        return 2.0 * math.fsum(np.bincount(self.as_product.kernels.assignment) * parts)

    def matrix(self) -> Floats:
        """Return W[x, y] = p(y|x), an N x N array: products of the records' probabilities.

        The joint distribution may underflow even if the distributions of single records do not.
        """
        self.check_matrix_fits()
        return self.as_product.matrix()

    def nearest_matrix(self) -> Floats:
        """Return W[x, y] to the nearest doubles."""
        self.check_matrix_fits()
        return self.as_product.nearest_matrix()

    def output_distribution(self, prior: Distribution) -> Distribution:
        return self.base if self.is_own_prior(prior) else self.as_product.output_distribution(prior)

    @cached_property
    def drawn_product(self) -> ProductChannel:
        """The kernels used for draws: a probability rounded to zero is the smallest double.

        Samplers turn it into 2^-64, so a possible output stays possible for all databases.
        """
        matrices = [kernel.matrix for kernel in self.as_product.kernels.distinct]
        possible = [np.where((W == 0.0) & (W.max(axis=0) > 0.0), LEAST, W) for W in matrices]
        assignment = self.as_product.kernels.assignment
        return ProductChannel.of(RowKernels([RowKernel(W) for W in possible], assignment))

    def draw(self, rows: Codes, source: Source) -> Codes:
        return self.drawn_product.draw(rows, source)


class PosteriorChannel(TiltedChannel):
    """Posterior response: p(x|y) = e^(-epsilon d(x, y)) / (1 + (m-1) e^-epsilon)^n, for a prior.

    It has the minimum distortion for identifiability and the minimum mutual information at
    distortion h(epsilon). Its DP level is epsilon + eps_X. The matrix is W[x, y] = p_Y(y) R[x, y] /
    p(x), where R is randomised response and p_Y = R^-1 p is the output distribution.

    Parameters
    ----------
    prior : Distribution
        Distribution of the databases.
    epsilon : float
        Identifiability level in nats, at least ``prior.epsilon_tilde()``.

    Raises
    ------
    Infeasible
        If epsilon is below ``prior.epsilon_tilde()``, which the message names.
    TooLarge
        If epsilon is within the bracket of ``epsilon_tilde()`` of a long Markov chain.

    Notes
    -----
    E_i of Wang-Ying-Zhang 2015: optimal for identifiability (Theorem 1, Lemma 4) and for mutual
    information (Theorem 2). Its information equals the information of randomised response from p_Y
    to p.

    Examples
    --------
    >>> import fastpriv as fp
    >>> prior = fp.Product([[0.6, 0.4], [0.3, 0.7]])
    >>> channel = fp.PosteriorChannel(prior, 1.0)
    >>> fp.identifiability_level(channel, prior)
    1.0
    """

    def __new__(cls, prior: Distribution, epsilon: float) -> PosteriorChannel:
        """Choose the class: for independent records, for a long chain, or for any prior."""
        if cls is PosteriorChannel and isinstance(prior, Product):
            return object.__new__(PosteriorProduct)
        if cls is PosteriorChannel and isinstance(prior, Markov) and prior.is_long:
            return object.__new__(PosteriorChain)
        return object.__new__(cls)

    def __getnewargs__(self) -> tuple[Distribution, float]:
        return self.prior, self.epsilon

    def __init__(self, prior: Distribution, epsilon: float) -> None:
        self.prior = as_prior(prior)
        least = self.prior.epsilon_tilde()
        if least == math.inf:
            raise Infeasible(
                f"E_i does not exist for {self.prior!r}: some database has probability zero, and "
                "no finite epsilon will do. Use a prior that gives every database a positive "
                "probability."
            )
        self.epsilon = check.real(epsilon, "epsilon", least=0.0)
        if isinstance(least, Bracket) and least.lower <= self.epsilon < least.upper:
            raise TooLarge(
                f"whether the mechanism exists at epsilon {described(self.epsilon)} for "
                f"{self.prior!r} is not known: epsilon_tilde is in {described(least)} and its "
                "search needs all databases; use an epsilon of at least the upper bound, or "
                "fewer records."
            )
        if self.epsilon < least:
            raise Infeasible(
                f"E_i does not exist at epsilon {described(self.epsilon)} for {self.prior!r}; it "
                f"needs epsilon >= epsilon_tilde = {described(float(least))}."
            )
        self._set(self.prior.unmixed(self.epsilon))

    @classmethod
    def up_to_rounding(cls, prior: Distribution, epsilon: float) -> PosteriorChannel:
        """Build the channel just below ``epsilon_tilde``, if clipping p_Y is harmless."""
        self = cls.__new__(cls, prior, epsilon)
        self.epsilon, self.prior = epsilon, prior
        self._set(prior.unmixed(epsilon))
        return self

    def definition(self) -> dict[str, Any]:
        return {"prior": self.prior, "epsilon": self.epsilon}

    @classmethod
    def from_definition(cls, given: Mapping[str, Any]) -> PosteriorChannel:
        epsilon = check.real(given["epsilon"], "epsilon", least=0.0)
        prior = load(given["prior"])
        if epsilon >= float(prior.epsilon_tilde()) * (1.0 - 2.0**-30):
            return cls.up_to_rounding(prior, epsilon)
        return cls(prior, epsilon)  # raises the error

    @cached_property
    def own_level(self) -> float:
        """Epsilon, or the level of the draws if the channel exists only up to rounding."""
        if self.misfit <= rounding(self.space.n) and self.prior.surely_unmixed(self.epsilon):
            return self.epsilon
        return self.drawn_level

    @property
    def drawn_level(self) -> float:
        """Bound on the identifiability of the output distribution as rounded to floats.

        p(x|y) is R[x, y] p(x)/(R q)(x), so the level is at most epsilon plus twice the misfit. At
        epsilon 0 the output does not depend on x, and the level is the prior's own.
        """
        if self.epsilon == 0.0:
            return self.prior.epsilon_x()
        return round_up(self.epsilon + 2.0 * (self._worst_misfit + self._misfit_error))

    @cached_property
    def _worst_misfit(self) -> float:
        """The misfit, from wide numbers if doubles have lost digits of the distributions."""
        if self.prior.log_smallest() > math.log(TINY) or self.space.size > FEW:
            return self.misfit
        laws = self.prior.wide(), self.base.wide()
        return wide_misfit(*laws, self.space.sizes, self.epsilon)

    @property
    def _misfit_error(self) -> float:
        """Bound on the error of the misfit: n sums of positive terms, and a logarithm."""
        return rounding(self.space.n)

    @cached_property
    def misfit(self) -> float:
        """Largest |ln p(x)/(R q)(x)|: the effect of clipping."""
        return self.prior.misfit(self.base.through(self.hamming_kernels))

    def __repr__(self) -> str:
        return f"PosteriorChannel({self.prior!r}, epsilon={self.epsilon:g})"


class PosteriorProduct(PosteriorChannel, TiltedProduct, form=True):
    """The posterior response for independent records, which acts on every record by itself."""

    @property
    def own_level(self) -> float:
        return self.epsilon

    @property
    def _worst_misfit(self) -> float:
        """The largest misfit of a record: neighbours differ in one record."""
        assert isinstance(self.prior, Product)
        assert isinstance(self.base, Product)
        rare = [
            wide_misfit(wide(p), wide(q), (len(p),), self.epsilon)
            for p, q in zip(self.prior.distinct, self.base.distinct, strict=True)
            if p.min() < TINY
        ]
        return max([self.prior.record_misfit(self.base.through(self.hamming_kernels)), *rare])

    @property
    def _misfit_error(self) -> float:
        return rounding(1)


class PosteriorChain(PosteriorChannel, form=True):
    """The posterior response for a Markov chain that is too long for a list of its databases.

    Every output can occur, and under the chain itself every posterior is R. Measures under this
    prior use passes along the chain. Measures under another prior need the list.
    """

    prior: Markov

    @property
    def own_level(self) -> float:
        return self.epsilon

    @property
    def drawn_level(self) -> float:
        """No distribution is rounded: outputs are drawn along the chain."""
        return self.epsilon

    @property
    def misfit(self) -> float:
        return 0.0

    @property
    def all_values_occur(self) -> bool:
        return True
