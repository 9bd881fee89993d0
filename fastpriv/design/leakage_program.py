"""Minimum distortion at a level of pointwise maximal leakage: a linear program.

PML at level epsilon means W[x, y] <= e^epsilon p_Y(y) for all x in the support of the prior. The
output distribution p_Y(y) = sum_x p(x) W[x, y] is linear in W.

Let p be exchangeable, and let P permute the records of databases. If W is a mechanism at the level,
so is W[Px, Py], with the same distortion. Averages keep both, as the program is linear. So some
optimal W depends only on how many records hold value s in x and v in y: the class of (x, y).

The variables are v = P(the output makes this class | x), one for each class, and the distribution Q
of the type of the output. Let r be the share of the databases of the type of x that are in the
class for one y. Then p(y|x)/p_Y(y) = v/(r Q). With d the distance and P the distribution of the
type of x, the program is

    min sum P d v,  subject to  sum of v over the classes of x = 1,  Q = sum of P v over the classes
    of y,  v <= e^epsilon r Q  for types x that occur.

Without symmetry every database is a type, and r = 1. Two lower bounds hold. Let k >= 0 be any
numbers, one for each class, with the sum K over the classes of a type of y. Then the optimum is at
least

    sum over types of x of the minimum of  P d + e^-epsilon k/r - P K  over their classes.

The second bound is sharp as epsilon goes to 0. W <= e^epsilon q for all databases but x implies
p(x) W[x, y] >= q(y) (p(x) - (e^epsilon - 1)(1 - p(x))). The distortion is a mean over y of sums of
d times the positive part of this bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.highs import TINY, Block, Rows, minimise
from fastpriv._core.rounding import expm1_up, lowered, raised, roundoff
from fastpriv._core.validation import Floats, Ints
from fastpriv._structure.types import Blocks, Stack, classes_against, types_of
from fastpriv.channels import AbstractChannel, Channel
from fastpriv.channels.types import TypeChannel, type_error, type_weights
from fastpriv.design.certificate import mixed_until
from fastpriv.design.closed_forms import constant_mechanism, rounded_up
from fastpriv.design.problem import Answer, Limits, NoAnswer, OutOfTime, Problem, minimum
from fastpriv.errors import SolverFailure, TooLarge
from fastpriv.measures.distortion import expected_distance
from fastpriv.measures.pointwise import pml_level
from fastpriv.priors import Distribution, Exchangeable
from fastpriv.priors.base import as_prior
from fastpriv.results import Solution

__all__ = ["solve_pd_pml"]

#: Most databases: the program has N^2 variables and constraints.
_MAX_DATABASES = 128
#: Most classes of a program on types.
_MAX_CLASSES = 50_000
#: Shares of a constant mechanism that are mixed in beyond the share that the level needs.
_SHARES = (0.0, *(2.0**k for k in range(-50, 0)), 1.0)
#: Largest root of a coefficient: with a larger one, v is 0 to all digits.
_MAX_ROOT = 1e8
#: Smallest room of a constant output; with less, HiGHS may find no solution.
_ROOM = 1e-6
#: Largest level whose ratio is a double.
_MAX_EXPONENT = 700.0


def solve_pd_pml(
    prior: Distribution | ArrayLike,
    epsilon: float,
    *,
    gap: float = 1e-6,
    time_limit: float = math.inf,
) -> Solution:
    """Find the mechanism of minimum Hamming distortion whose outputs leak at most epsilon.

    min sum p(x) d(x, y) W[x, y] subject to ln W[x, y]/p_Y(y) <= epsilon for every output and every
    x in the support (Saeidian et al. 2024, Definition 2.6). A database of probability zero gets the
    output distribution of a possible one.

    Parameters
    ----------
    prior : Distribution or 1-D array
        Distribution of the databases. At most 128 databases of positive probability. If the order
        of records does not matter (:class:`Exchangeable`, or independent records of one
        distribution), the limit is 64 bits, or 10 records of three values.
    epsilon : float
        Level of pointwise maximal leakage in nats, at least 0.
    gap : float
        Certified relative gap above which a :class:`GapWarning` is given.
    time_limit : float
        Seconds for the linear program.

    Returns
    -------
    Solution
        ``value`` is the distortion of the channel, rounded up. ``level`` is its :func:`pml_level`;
        the floats of the channel have at most epsilon. ``bound`` is a proved lower bound, rounded
        down.

    Notes
    -----
    A linear program with a variable and a constraint for each pair of databases: 0.03 s for N = 16,
    0.3 s for N = 64, 5 s for N = 128. If the order of records does not matter, it has a variable
    for each class of pairs. From epsilon = -ln p_min on, the identity is optimal. At epsilon = 0
    the best mechanism is constant. A constant is also returned if the solver fails.

    Examples
    --------
    >>> import fastpriv as fp
    >>> best = fp.solve_pd_pml([0.7, 0.2, 0.1], 0.5)
    >>> round(best.value, 6), best.level <= 0.5, best.gap < 1e-9
    (0.3, True, True)
    """
    law = as_prior(prior)
    epsilon = check.real(epsilon, "epsilon", least=0.0)
    limits = Limits.checked(gap, time_limit)
    return rounded_up(minimum(LeakageProblem(law, epsilon), limits), law)


class LeakageProblem(Problem[Solution]):
    """Minimum Hamming distortion at a level of pointwise maximal leakage."""

    def __init__(self, prior: Distribution, epsilon: float) -> None:
        self.prior, self.level = prior, epsilon
        if epsilon == 0.0:
            return
        small = prior.space.size <= _MAX_DATABASES and not isinstance(prior, Exchangeable)
        types = None if small else prior.by_type()
        self.method = "dense" if types is None else "types"
        self.measured_under = prior if types is None else types
        made = _over_databases(prior) if types is None else _on_types(types)
        self.program, self.channel = made

    def closed_form(self, limits: Limits) -> Solution | None:
        """Return a constant at level 0, where p_Y(y) >= W[x, y] for all x."""
        return constant_mechanism(self.prior) if self.level == 0.0 else None

    def known(self) -> tuple[list[Solution], float]:
        """Return the best constant, and the bound that is sharp as epsilon goes to 0."""
        return [constant_mechanism(self.prior)], self.program.near_constant(self.level)

    def answer(self, limits: Limits) -> Answer:
        """Solve by HiGHS, then mix in the output distribution until the level is met."""
        try:
            v, k = self.program.solve(self.level, limits.clock.left())
        except SolverFailure as failure:
            raise OutOfTime if limits.late else NoAnswer(str(failure)) from failure
        bound = self.program.lower_bound(self.level, k)
        v, same, needed = self.program.flattened(v, self.level)

        def accept(mixed: Floats) -> tuple[AbstractChannel, float] | None:
            channel = self.channel(self.program.normalised(mixed))
            level = float(pml_level(channel, self.measured_under))
            return (channel, level) if level <= self.level else None

        shares = (min(1.0, needed + share) for share in _SHARES)
        # If epsilon is within rounding of 0, only a constant has the level.
        constant = constant_mechanism(self.prior).channel, 0.0
        channel, level = mixed_until(accept, v, same, shares) or constant
        return Answer(channel, bound, self.method, "highs", level=level)

    def measured(self, answer: Answer) -> Solution:
        """Measure the distortion; the leakage was certified with the repair."""
        value = expected_distance(answer.channel, self.measured_under)
        return Solution(value, answer.bound, answer.channel, answer.level, answer.method)


#: A program, and the channel with given masses of its classes.
Made = tuple["LeakageProgram", Callable[[Floats], AbstractChannel]]


def _over_databases(prior: Distribution) -> Made:
    """Return the program over the databases that occur."""
    size = prior.space.size
    support = np.arange(0)
    if size <= _MAX_DATABASES**2:
        support = np.flatnonzero(prior.probabilities())
    if not 0 < len(support) <= _MAX_DATABASES:
        raise TooLarge.entries(
            "the program over databases",
            size,
            f"use a prior with at most {_MAX_DATABASES} possible ones",
        )
    records = prior.space.rows(np.arange(size))
    distance = (records[support][:, None] != records[None]).sum(axis=2)
    weights = prior.probabilities()[support]
    count = len(support)
    program = LeakageProgram(
        np.repeat(np.arange(count), size),
        np.tile(np.arange(size), count),
        distance.reshape(-1).astype(np.float64),
        np.ones(count * size),
        weights,
        np.ones(count),
        0.0,
    )
    # A database of probability zero gets the row of the nearest possible one.
    nearest = distance.argmin(axis=0)
    return program, lambda v: Channel(v.reshape(count, size)[nearest], prior.space)


def _on_types(prior: Exchangeable) -> Made:
    """Return the program over classes of pairs of databases."""
    n, m = prior.space.n, prior.space.sizes[0]
    check.fits(
        math.comb(n + m * m - 1, n),
        "the program over classes of databases and outputs",
        "use fewer records or values",
        _MAX_CLASSES,
    )
    types = types_of(Blocks.single(n, m))
    classes = [classes_against(kind, types) for kind in types.counts]
    stack = Stack.of(types, classes)
    with np.errstate(over="ignore"):  # the number of databases overflows: the bound near 0 is 0
        sizes = np.exp(types.log_sizes)
    program = LeakageProgram(
        stack.row,
        stack.kind,
        stack.distance.astype(np.float64),
        np.exp(stack.log_count - types.log_sizes[stack.row]),
        type_weights(types, prior),
        sizes,
        4.0 * type_error(n),
    )

    def channel(v: Floats) -> TypeChannel:
        parts = np.split(v / np.exp(stack.log_outputs), stack.starts[1:-1])
        return TypeChannel(types, classes, parts)

    return program, channel


class LeakageProgram(NamedTuple):
    """The classes of pairs (x, y), as one-dimensional arrays."""

    row: Ints  # type of x
    kind: Ints  # type of y
    distance: Floats
    share: Floats  # r
    weights: Floats  # P, the distribution of the type of x
    sizes: Floats  # number of databases of every type of x
    error: float  # relative error of shares and weights

    @property
    def kinds(self) -> int:
        """Number of types of y."""
        return int(self.kind.max()) + 1

    def outputs(self, v: Floats) -> Floats:
        """Return Q, the distribution of the type of y."""
        masses = self.weights[self.row] * v
        return np.asarray(np.bincount(self.kind, masses, self.kinds), dtype=np.float64)

    def independent(self, v: Floats) -> Floats:
        """Return r Q: the masses of a mechanism that draws from Q for every x."""
        return np.asarray(self.share * self.outputs(v)[self.kind])

    def normalised(self, v: Floats) -> Floats:
        """Normalise the masses of every type of x to sum to 1."""
        return np.asarray(v / np.bincount(self.row, v, len(self.weights))[self.row])

    def ratios(self, v: Floats) -> Floats:
        """Return p(y|x)/p_Y(y); 0 for y and x of probability zero."""
        whole = self.independent(v)
        seen = (whole > 0.0) & (self.weights[self.row] > 0.0)
        return np.asarray(np.where(seen, v / np.where(seen, whole, 1.0), 0.0))

    def flattened(self, v: Floats, epsilon: float) -> tuple[Floats, Floats, float]:
        """Return repaired masses, the masses of Q alone, and the share of Q that the level needs.

        The classes of every type of y are mixed with their own mean, because the solver's tolerance
        is a large ratio if Q is nearly 0. (1 - t) v + t r Q has the same Q, and ratios (1 - t) v/(r
        Q) + t.
        """
        most = math.exp(min(epsilon, _MAX_EXPONENT))
        worst = np.zeros(self.kinds)
        np.maximum.at(worst, self.kind, self.ratios(v))
        t = _excess(worst, most)[self.kind]
        v = self.normalised((1.0 - t) * v + t * self.independent(v))
        same = self.independent(v)
        v = np.where(self.weights[self.row] > 0.0, v, same)
        return v, same, float(_excess(self.ratios(v), most).max())

    def solve(self, epsilon: float, seconds: float) -> tuple[Floats, Floats]:
        """Return the solver's masses v, and its multipliers k >= 0 of the leakage constraints."""
        row, kind, distance, share, weights, *_ = self
        number, types, kinds = len(row), len(weights), self.kinds
        # A leakage constraint is v root - Q/root <= 0 with root^2 = e^-epsilon/r. If it is so steep
        # that v is 0 to all digits, v is fixed at 0. If it is so flat that it never binds, it is
        # left out.
        root = np.exp(-0.5 * epsilon) / np.sqrt(share)
        leaking = np.flatnonzero((weights[row] > 0.0) & (root > 1.0 / _MAX_ROOT))
        root = np.minimum(root[leaking], _MAX_ROOT)
        # The constraint Q = sum of P v has the classes of a type of y and then Q itself.
        by_kind, in_kind = np.argsort(kind, kind="stable"), np.bincount(kind, minlength=kinds)
        ends = np.cumsum(in_kind)
        averages = Block(
            np.insert(by_kind, ends, number + np.arange(kinds)),
            np.insert(_solver_weights(weights, epsilon)[row[by_kind]], ends, -1.0),
            0.0,
            0.0,
            in_kind + 1,
        )
        leaks = Block(
            np.column_stack([leaking, number + kind[leaking]]),
            np.column_stack([root, -1.0 / root]),
            -math.inf,
            0.0,
        )
        rows = Rows.stacked([Block.sums(row, types, 1.0), averages, leaks])
        cost = np.append(weights[row] * distance, np.zeros(kinds))
        answer = minimise(cost, np.zeros(number + kinds), rows, seconds)
        k = np.zeros(number)
        k[leaking] = np.maximum(-answer.duals[types + kinds :], 0.0) / root
        return self.normalised(np.maximum(answer.values[:number], 0.0)), k

    def lower_bound(self, epsilon: float, k: Floats) -> float:
        """Return the lower bound of any k >= 0, rounded down."""
        row, kind, distance, share, weights, *_ = self
        own = math.exp(-epsilon) * k / share
        all_of = np.bincount(kind, k, self.kinds)[kind]
        terms = weights[row] * (distance - all_of) + own
        sizes = weights[row] * (distance + all_of) + own
        # A sum over the classes of a type of y has one rounding for each class.
        error = self.error + roundoff(2.0 * (float(np.bincount(kind).max()) + 16.0))
        least = np.full(len(weights), math.inf)
        np.minimum.at(least, row, terms - error * sizes)
        return lowered(math.fsum(least), 4.0)

    def near_constant(self, epsilon: float) -> float:
        """Return the lower bound that is sharp as epsilon goes to 0, rounded down, at least 0."""
        count = len(self.weights)
        whole = float(self.weights.sum()) * (1.0 + roundoff(count + 8.0))
        others = self.sizes * (1.0 + self.error) * whole - self.weights
        weights = lowered(self.weights * (1.0 - self.error), 4.0)
        least = np.maximum(weights - raised(expm1_up(epsilon) * others, 8.0), 0.0)
        terms = self.share * (1.0 - self.error) * self.distance * least[self.row]
        sums = np.asarray(np.bincount(self.kind, terms, self.kinds), dtype=np.float64)
        return max(0.0, float(lowered(sums, 4.0 * float(len(self.row)) + 16.0).min()))


def _excess(ratios: Floats, most: float) -> Floats:
    """Return the share of the mean that lowers a ratio to ``most``."""
    above = ratios > most
    return np.where(above, (ratios - most) / np.where(above, ratios - 1.0, 1.0), 0.0)


def _solver_weights(p: Floats, epsilon: float) -> Floats:
    """Return the distribution for HiGHS, which drops tiny coefficients.

    A constant output V = q needs e^epsilon sum p >= 1. Near epsilon = 0 the weights that are kept
    must therefore sum to one.
    """
    kept = np.where(p > TINY, p, 0.0)
    return kept / kept.sum() if math.exp(min(epsilon, 1.0)) * kept.sum() < 1.0 + _ROOM else p
