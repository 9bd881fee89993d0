"""Mechanisms against inference: publish Y made from X so that Y reveals little about S."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from fastpriv import kernels
from fastpriv._core import validation as check
from fastpriv._core.highs import Block, Rows, minimise
from fastpriv._core.rounding import ULP, raised, roundoff
from fastpriv._core.search import bisect
from fastpriv._core.threads import split
from fastpriv._core.validation import Floats
from fastpriv.channels import Channel
from fastpriv.design.certificate import Progress
from fastpriv.design.problem import Answer, Limits, Problem, minimum
from fastpriv.errors import Infeasible, InvalidInput, SolverFailure, described
from fastpriv.measures.fano import error_probability_bound
from fastpriv.priors import Distribution
from fastpriv.results import Solution

__all__ = ["InferenceSolution", "design_mapping", "least_distortion", "perfect_privacy"]

#: Gaps below this many nats count as met.
_CLOSE = 1e-10
#: Information below this is rounding of an independent pair.
_NOTHING = 2.0**-100
#: Values of S or X below this probability are left out.
_RARE = 1e-60
#: Lowers bounds: exceeds the effect on an information, in nats, of values left out.
_LOWERED = 1e-50
#: Share of I(S; X) that a perfectly private mapping may keep by rounding.
_PRIVATE = 1e-9
#: Maximum number of steps.
_MAX_STEPS = 200
#: Fewest operations for a separate thread.
_GRAIN = 1 << 20
#: Share of the distance to the boundary that a step covers.
_STEP = 0.98
#: First complementarity, as a share of I(S; X) per entry, and the second try if it stalls.
_FIRST = 0.3
_SECOND = 0.03
#: Smallest gap, in nats, for which a second start is tried.
_SMALL = 1e-10
#: Steps in which the gap must shrink by a tenth; otherwise rounding dominates.
_PATIENCE = 40
#: Information below this is rounding.
_ROUNDING_NATS = 1e-24
#: Relative width of the search for a start: a factor of 1.3.
_ROUGHLY = 0.25


@dataclass(frozen=True, repr=False)
class InferenceSolution(Solution):
    """A mapping from X to Y with its leakage about S; see :func:`design_mapping`.

    Attributes
    ----------
    leakage_factor : float
        I(S; Y)/H(S).
    error_bound : float
        Fano's lower bound on the probability of error of any guess of S from Y. The smallest
        probability of error may be larger (Makhdoumi-Fawaz 2013, Proposition 1).

    Examples
    --------
    >>> import fastpriv as fp
    >>> best = fp.design_mapping([[0.4, 0.1], [0.1, 0.4]], [[0, 1], [1, 0]], 0.3)
    >>> round(best.leakage_factor, 6), round(best.error_bound, 6)
    (0.041958, 0.38)
    """

    leakage_factor: float
    error_bound: float

    def __repr__(self) -> str:
        inside = super().__repr__().split("(", 1)[1][:-1]
        return f"InferenceSolution({inside}, error_bound={self.error_bound:.6g})"


def design_mapping(
    joint: ArrayLike,
    metric: ArrayLike | None = None,
    distortion: float | None = None,
    *,
    gap: float = 1e-8,
    time_limit: float = math.inf,
) -> InferenceSolution:
    """Find the mapping from X to Y that reveals the minimum about S within a distortion budget.

    Minimises I(S; Y) over W[x, y] = p(y|x) subject to E d(X, Y) <= D, where S -> X -> Y.

    Parameters
    ----------
    joint : 2-D array
        ``joint[s, x]`` = P(S = s, X = x), any finite alphabets.
    metric : 2-D array, optional
        ``metric[x, y]``, the cost of publishing y for x; finite, with any number of outputs.
        Default: 0 for y = x and 1 otherwise.
    distortion : float
        The budget D on the expected cost. It must be given.
    gap : float
        Certified gap at which to stop, relative to the information.
    time_limit : float
        Seconds after which to return the best certified mapping so far.

    Returns
    -------
    InferenceSolution
        ``.value`` and ``.level`` are I(S; Y) of ``.channel`` in nats. ``.bound`` is a proved lower
        bound on the minimum, rounded down. Differences below 1e-10 nats count as none. If value and
        bound differ by more than that and ``gap``, ``.converged`` is False and a
        :class:`GapWarning` is given.

    Raises
    ------
    Infeasible
        If the budget is below :func:`least_distortion`.

    Notes
    -----
    Program (2) of Makhdoumi-Fawaz 2013, convex in W. A primal-dual interior-point method takes some
    10 to 20 steps of cost O(|Y| |X| (|X| + |S|) min(|X|, |S|)) each. The bound is Gibbs'
    inequality, which holds for any posteriors. The floats of the channel meet the budget. A budget
    within rounding of the minimum distortion, or of the best constant output's distortion, is taken
    as equal to it.

    Examples
    --------
    A fair bit S, seen as X through BSC(0.2), to be released with at most 0.1 of the bits flipped
    (Example 1: ln 2 - h2(0.2 * 0.1) nats, by flipping at random):

    >>> import fastpriv as fp
    >>> best = fp.design_mapping([[0.4, 0.1], [0.1, 0.4]], distortion=0.1)
    >>> round(best.value, 6), best.value - best.bound < 1e-8, round(best.error_bound, 6)
    (0.12009, True, 0.26)
    """
    law = _joint(joint)
    costs = check.metric(1.0 - np.eye(law.shape[1]) if metric is None else metric, law.shape[1])
    if distortion is None:
        raise InvalidInput("distortion must be a number; got none. Give the budget.")
    budget = check.real(distortion, "distortion")
    limits = Limits.checked(gap, time_limit, negligible=_CLOSE)
    check.fits(
        costs.size * min(law.shape),
        "the program",
        "merge values of S or X, or allow fewer outputs",
        check.MAX_MATRIX,
    )
    problem = MappingProblem(law, costs, budget)
    if problem.room < -problem.margin:
        least = least_distortion(law.sum(axis=0), costs)
        raise Infeasible(
            f"distortion must be at least {described(least)}, the smallest possible; got "
            f"{described(budget)}."
        )
    return minimum(problem, limits)


def least_distortion(prior: Distribution | ArrayLike, metric: ArrayLike) -> float:
    """Return the minimum expected distortion of any mapping, sum_x p(x) min_y d(x, y).

    With this budget :func:`design_mapping` can only choose among the cheapest outputs of each x.

    Parameters
    ----------
    prior : Distribution, 1-D or 2-D array
        Distribution of X, or ``joint[s, x]`` as :func:`design_mapping` takes it.
    metric : 2-D array
        ``metric[x, y]``.

    Returns
    -------
    float
        Correct up to rounding.

    Examples
    --------
    Two of three outputs are exact for the first x, so some of S can be hidden at no cost:

    >>> import fastpriv as fp
    >>> joint, metric = [[0.5, 0.1], [0.1, 0.3]], [[0, 0, 2], [1, 0, 0]]
    >>> free = fp.design_mapping(joint, metric, fp.least_distortion(joint, metric))
    >>> free.value < 1e-15
    True
    """
    if isinstance(prior, Distribution):
        p = prior.probabilities()
    elif np.ndim(check.array(prior, "prior")) == 2:
        p = check.law(prior, "prior", 2).sum(axis=0)
    else:
        p = check.law(prior, "prior (the distribution of X, or the joint distribution of S and X)")
    return math.fsum(p * check.metric(metric, len(p)).min(axis=1)) / math.fsum(p)


def perfect_privacy(
    joint: ArrayLike, metric: ArrayLike, *, time_limit: float = math.inf
) -> Solution:
    """Find the minimum expected distortion at which Y can be independent of S.

    The linear program min E d(X, Y) subject to sum_x P(s, x) W[x, y] = P(s) q(y) for all s and y.
    A constant output qualifies, but it is not always the cheapest: Y may reveal information in X
    that is independent of S.

    Parameters
    ----------
    joint : 2-D array
        ``joint[s, x]`` = P(S = s, X = x).
    metric : 2-D array
        ``metric[x, y]``.
    time_limit : float
        Seconds after which the solver stops.

    Returns
    -------
    Solution
        ``.value`` is the expected distortion of ``.channel``. ``.bound`` is a proved lower bound
        for any perfectly private mapping. Rounding breaks independence unless Y is constant:
        ``.level`` is the remaining I(S; Y) in nats, typically 1e-32.

    Notes
    -----
    If HiGHS stops without an optimum (S and X nearly independent, or out of time), the best
    constant output is returned. The bound is then the minimum distortion of any mapping.

    Full privacy of Makhdoumi-Fawaz 2013, Definition 1. The bound is sum_x p(x) min_y [d(x, y) -
    sum_s nu(s, y) (P(s|x) - P(s))], rounded down; it holds for any multipliers nu(s, y). Cost: a
    linear program of |X| |Y| unknowns and |X| + |S| |Y| equations.

    Examples
    --------
    X is the pair (S, a fair bit), and each wrong half costs 1. Y keeps the bit:

    >>> import fastpriv as fp
    >>> joint = [[0.3, 0.3, 0.0, 0.0], [0.0, 0.0, 0.2, 0.2]]
    >>> metric = [[0, 1, 1, 2], [1, 0, 2, 1], [1, 2, 0, 1], [2, 1, 1, 0]]
    >>> best = fp.perfect_privacy(joint, metric)
    >>> round(best.value, 9), best.level < 1e-20
    (0.4, True)
    """
    law = _joint(joint)
    problem = MappingProblem(law, check.metric(metric, law.shape[1]), 0.0)
    return problem.perfect(Limits.checked(1.0, time_limit).clock.left())


def _joint(joint: ArrayLike) -> Floats:
    law = check.law(joint, "joint", ndim=2)
    return np.asarray(law / math.fsum(law.flat))


class MappingProblem(Problem[InferenceSolution]):
    """One design problem: impossible values are dropped, distortions are counted from 0."""

    def __init__(self, law: Floats, metric: Floats, budget: float) -> None:
        self.metric, self.seen = metric, law.sum(axis=0) > _RARE
        law = np.ascontiguousarray(law[np.ix_(law.sum(axis=1) > _RARE, self.seen)])
        self.inputs, self.secrets = law.sum(axis=0), law.sum(axis=1)
        self.kernel = law / self.inputs
        self.backward = law / self.secrets[:, None]  # P(x|s)
        # A power of two keeps differences of huge costs finite, and is exact.
        self.exponent = exponent = -int(np.frexp(np.abs(metric).max())[1])
        with np.errstate(over="ignore", under="ignore"):
            costs = np.ldexp(metric[self.seen], exponent)
            limit = float(np.ldexp(budget, exponent))
        least = costs.min(axis=1)
        self.cost = costs - least[:, None]
        size = math.fsum(self.inputs * np.abs(least)) + min(abs(limit), 2.0)
        self.margin = roundoff(sum(costs.shape) + len(law) + 16) * size
        self.offset = math.fsum(self.inputs * least)
        self.room = limit - self.offset
        self.ties = self.cost <= roundoff(4.0) * np.abs(least)[:, None]

    def closed_form(self, limits: Limits) -> InferenceSolution | None:
        """Return a constant output or the cheapest outputs, if one of them is optimal."""
        constant = self.inputs @ self.cost
        output = int(np.argmin(constant))
        if constant[output] <= self.room + self.margin:
            return self.solution(self.only(np.full(len(self.inputs), output)), 0.0, "closed-form")
        cheapest = self.only(np.argmin(self.cost, axis=1))
        if kernels.mutual_information(self.backward, self.secrets) <= _NOTHING:
            return self.solution(cheapest, 0.0, "closed-form")
        if self._tight() and (self.ties.sum(axis=1) == 1).all():
            return self.solution(cheapest, math.inf, "closed-form")
        return None

    def _tight(self) -> bool:
        """Whether the budget leaves only the cheapest outputs of every input."""
        return bool(self.room <= 4.0 * self.margin)

    def answer(self, limits: Limits) -> Answer:
        """Solve over the outputs that may be used."""
        cost, allowed = self.cost, np.ones_like(self.cost)
        budget = (self.room - self.margin, self.room + self.margin)
        if self._tight():
            cost, allowed, budget = np.zeros_like(cost), self.ties.astype(np.float64), (1.0, 1.0)
        used = allowed.any(axis=0)
        program = InformationProgram(
            self.kernel,
            self.inputs,
            self.secrets,
            np.ascontiguousarray(cost[:, used].T),
            np.ascontiguousarray(allowed[:, used].T),
            budget,
        )
        V, bound = _solve_mapping(program, limits)
        W = np.zeros_like(self.cost)
        W[:, used] = (V / self.inputs).T
        matrix = self._whole(W / W.sum(axis=1, keepdims=True))
        return Answer(Channel(matrix), bound - _LOWERED, "dense")

    def measured(self, answer: Answer) -> InferenceSolution:
        """Measure the information that the floats leak."""
        return self.solution(answer.channel.matrix()[self.seen], answer.bound, "dense")

    def perfect(self, seconds: float) -> Solution:
        """Keep the cheaper of the program's mapping and the best constant output."""
        constant = self.only(np.full(len(self.inputs), int(np.argmin(self.inputs @ self.cost))))
        known = kernels.mutual_information(self.backward, self.secrets)
        if known <= _NOTHING:
            free = self.only(np.argmin(self.cost, axis=1))
            return self.priced(free, 0.0, "closed-form")
        try:
            W, bound = least_private(self.kernel, self.inputs, self.secrets, self.cost, seconds)
        except SolverFailure:  # nearly independent: below the solver's tolerance
            return self.priced(constant, 0.0, "dense")
        result, simple = (self.priced(each, bound, "dense") for each in (W, constant))
        private = result.level <= _PRIVATE * known
        return result if private and result.value < simple.value else simple

    def priced(self, W: Floats, bound: float, method: str) -> Solution:
        """Measure the cost of a mapping, in the units of the metric."""
        result = self.solution(W, 0.0, method)
        matrix = result.channel.matrix()[self.seen]
        value = math.fsum(self.inputs * (matrix * self.metric[self.seen]).sum(axis=1))
        lower = float(np.ldexp(bound + self.offset - self.margin, -self.exponent))
        return Solution(value, min(lower, value), result.channel, result.level, method)

    def only(self, outputs: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Floats:
        """Return the deterministic mapping to one output for each input."""
        return np.eye(self.cost.shape[1])[outputs]

    def solution(self, W: Floats, bound: float, method: str) -> InferenceSolution:
        """Measure a mapping of the values of X that occur."""
        alike = bool((W[0] == W).all())
        value = 0.0 if alike else kernels.mutual_information(self.backward @ W, self.secrets)
        entropy = kernels.entropy(self.secrets)
        factor = min(1.0, value / entropy) if entropy > 0.0 else 0.0
        error = error_probability_bound(factor, self.secrets)
        bound = min(max(bound - _LOWERED, 0.0), value)
        return InferenceSolution(
            value, bound, Channel(self._whole(W)), value, method, factor, error
        )

    def _whole(self, W: Floats) -> Floats:
        """Give values of X that never occur their cheapest output."""
        matrix = np.eye(W.shape[1])[np.argmin(self.metric, axis=1)]
        matrix[self.seen] = W
        return np.asarray(matrix)


# The program. For V[y, x] = P(y, x) and posteriors r_y = r(.|y) of S, in logarithms
# eta = ln(r/P(s)), the program and its dual are
#
#     min  I(S; Y)            V >= 0,  sum_y V[y, x] = p(x),  <d, V> <= D,
#     max  sum_x p(x) mu(x) - lambda D,
#          mu(x) <= sum_s P(s|x) eta(s, y) + lambda d(x, y),   sum_s P(s) e^eta(s, y) <= 1.
#
# The dual is Gibbs' inequality: I(S; Y) >= sum P(s, y) ln(r(s|y)/P(s)) for any posteriors r. So
# method converge. A posterior computed from V would be a ratio of two vanishing numbers for an
# output of vanishing mass, and would jump from step to step.
#
# A Newton step solves an |X| x |X| system for every output, a diagonal plus a matrix of rank |S|;
# the |X| row sums and the budget couple them (kernels/mapping.py).


@dataclass
class InformationProgram:
    """Minimum I(S; Y) for distributions of full support, distortions counted from 0 in each row."""

    kernel: Floats  # P(s|x), an |S| x |X| array
    inputs: Floats  # p(x) > 0
    secrets: Floats  # P(s) > 0
    cost: Floats  # d[y, x] >= 0
    allowed: Floats  # 1.0 where output y may follow x, else 0.0
    budget: tuple[float, float]  # D, rounded down for mechanisms and up for bounds

    @cached_property
    def centred(self) -> Floats:
        """P(s|x) - P(s), which keeps the digits of a small information."""
        return self.kernel - self.secrets[:, None]

    @cached_property
    def least(self) -> Floats:
        """The joint distribution of x with its outputs of no distortion, all equally likely."""
        free = self.allowed * (self.cost == 0.0)
        return np.asarray(free * (self.inputs / free.sum(axis=0)))

    @cached_property
    def most(self) -> Floats:
        """Largest ln(r/P(s)), for a posterior that is certain."""
        return np.asarray(-np.log(self.secrets))

    def start(self) -> Floats:
        """Return a joint distribution inside the budget, with weights 1/(1 + b d) in every row."""
        target = 0.5 * self.budget[0]
        low, high = 1.0, 1.0
        while self._distortion(self._spread(high)) > target:
            low, high = high, 8.0 * high

        def beyond(b: float) -> bool:
            return self._distortion(self._spread(b)) > target

        _, high = bisect(beyond, low, high, relative=_ROUGHLY, geometric=True)
        return self._spread(high)

    def _spread(self, b: float) -> Floats:
        weights = self.allowed / (1.0 + b * self.cost)
        return np.asarray(weights * (self.inputs / weights.sum(axis=0)))

    def _distortion(self, V: Floats) -> float:
        return float(np.vdot(V, self.cost))

    def repaired(self, V: Floats) -> Floats:
        """Return V mixed with the mechanism of minimum distortion until it meets the budget."""
        most = self.budget[0]
        spent = raised(self._distortion(V), V.size)
        if spent <= most:
            return V
        share = min(1.0, (spent - most) / spent * (1.0 + 1e-9) + roundoff(4.0))
        return np.asarray((1.0 - share) * V + share * self.least)

    def excess(self, V: Floats) -> tuple[Floats, Floats]:
        """Return q(y) and P(s|y)/P(s) - 1 for every output."""
        q = V.sum(axis=1)
        return q, (V @ self.centred.T) / q[:, None] / self.secrets

    def information(self, V: Floats) -> float:
        """Return I(S; Y), the sum of P(s) q(y) f(d) with f(d) = (1+d) ln(1+d) - d."""
        q, d = self.excess(V)
        d = np.maximum(d, -1.0 + ULP)
        return float(q @ (((1.0 + d) * np.log1p(d) - d) @ self.secrets))

    def normalised(self, eta: Floats) -> tuple[Floats, Floats]:
        """Shift ln(r/P(s)) so that every r sums to one; also return the terms' size."""
        eta = np.minimum(eta, self.most)
        excess = np.expm1(eta)
        total = excess @ self.secrets
        return eta - np.log1p(total)[:, None], np.abs(excess) @ self.secrets / (1.0 + total)

    def bound(self, eta: Floats, scale: Floats, slope: float, prices: Floats) -> float:
        """Return the lower bound on I(S; Y) of normalised log posteriors, rounded down.

        ``prices`` is eta @ kernel + slope * cost. The bound is lowered by the rounding errors of
        these sums, of the normalisation (terms of total size ``scale``) and of the budget.
        """
        lost = roundoff(2 * len(self.secrets) + 16)
        size = np.abs(eta) @ self.kernel + slope * self.cost + scale[:, None]
        floor = np.where(self.allowed > 0.0, prices - lost * size, np.inf).min(axis=0)
        total = math.fsum(self.inputs * floor)
        spare = roundoff(len(self.secrets) + 8) * math.fsum(self.inputs * np.abs(floor))
        return total - spare - raised(slope * self.budget[1], 4.0)


def _solve_mapping(program: InformationProgram, limits: Limits) -> tuple[Floats, float]:
    """Return a joint distribution V[y, x] within the budget and a lower bound on I(S; Y)."""
    best = _follow(program, _FIRST, limits)
    if best.value - best.bound > max(limits.gap * best.value, _SMALL) and not limits.late:
        other = _follow(program, _SECOND, limits)
        point = other.point if other.value < best.value else best.point
        return point, max(best.bound, other.bound)
    return best.point, best.bound


@np.errstate(over="ignore", divide="ignore", invalid="ignore")
def _follow(program: InformationProgram, part: float, limits: Limits) -> Progress[Floats]:
    """Follow the path from one start; return the best V, its I(S; Y) and the best bound.

    A step that overflows yields NaNs, which end the method.
    """
    A, p, d = program.kernel, program.inputs, program.cost
    allowed, count = program.allowed, float(program.allowed.sum()) + 1.0
    most = program.budget[0]
    V = program.start()
    t = most - float(np.vdot(V, d))
    first = part * max(program.information(np.diag(p)), 1e-30) / count
    Z = np.where(allowed > 0.0, first / np.where(allowed > 0.0, V, 1.0), 1.0)
    slope, mu = first / t, np.zeros(len(p))
    eta = np.log1p(np.maximum(program.excess(V)[1], -1.0 + 1e-14))
    progress = Progress(limits.gap, limits.clock, V, patience=_PATIENCE, absolute=_ROUNDING_NATS)
    for _ in range(_MAX_STEPS):
        eta, scale = program.normalised(eta)
        prices = eta @ A + slope * d
        within = program.repaired(V)
        bound = program.bound(eta, scale, slope, prices)
        if not progress.offer(within, program.information(within), bound):
            break
        dV, dZ, deta, dmu, dslope, dt, length = _direction(program, V, Z, eta, prices, mu, slope, t)
        if not length > 0.0:  # rounding dominates
            break
        length *= _STEP
        V, Z = V + length * dV, Z + length * dZ
        # A vanishing posterior falls by the same factor as V, not by one in logarithms.
        deta *= length
        eta = eta + np.where(deta < 0.0, np.log1p(np.maximum(deta, -_STEP)), deta)
        mu, slope, t = mu + length * dmu, slope + length * dslope, t + length * dt
        V *= p / V.sum(axis=0)
    return progress


def _direction(
    program: InformationProgram,
    V: Floats,
    Z: Floats,
    eta: Floats,
    prices: Floats,
    mu: Floats,
    slope: float,
    t: float,
) -> tuple[Floats, Floats, Floats, Floats, float, float, float]:
    """Return the Newton step of all unknowns and its length."""
    A, (k, n) = program.kernel, program.kernel.shape
    few = 2 * k <= n
    r, e = program.secrets * np.exp(eta), np.sqrt(V / Z)
    j = V.sum(axis=1)[:, None] * r
    K = np.empty((len(V), k if few else n, n))

    def factor(first: int, last: int) -> Floats:
        gram = np.zeros((n, n))
        if not kernels.mapping_factor(A, r, j, e, few, first, last, K, gram):
            gram[:] = math.nan  # the step that follows has length 0
        return gram

    grams = split(factor, len(V), 1 + _GRAIN // (K[0].size * n))
    gram = grams[0] if len(grams) == 1 else np.sum(grams, axis=0)
    return kernels.mapping_direction(
        A, program.inputs, program.cost, program.allowed, program.budget[0], V, Z, r, j, prices,
        mu, slope, t, K, e, few, gram,
    )  # fmt: skip


def least_private(
    kernel: Floats, inputs: Floats, secrets: Floats, cost: Floats, seconds: float
) -> tuple[Floats, float]:
    """Return W[x, y] and a lower bound on the minimum cost with P(y|s) = P(y).

    Parameters
    ----------
    kernel, inputs, secrets : ndarray
        P(s|x), p(x) and P(s), all of full support.
    cost : ndarray
        ``cost[x, y]`` >= 0, of order one.
    seconds : float
        Time limit.
    """
    (k, n), m = kernel.shape, cost.shape[1]
    centred = kernel - secrets[:, None]
    size = np.abs(centred).max(axis=1)
    # Rows that are only rounding are dropped; the last of the others is implied.
    kept = np.flatnonzero(size > roundoff(64.0 * (k + 4)) * secrets)
    B = centred[kept] / size[kept, None]
    # Unknowns n V[y, x]: for every y the rows of B, then for every x the sum over y.
    number = np.arange(m * n).reshape(m, n)
    rows = Rows.stacked(
        [
            Block(np.repeat(number, len(kept), axis=0), np.tile(B, (m, 1)), 0.0, 0.0),
            Block(number.T, 1.0, n * inputs, n * inputs),
        ]
    )
    prices = np.ascontiguousarray(cost.T).reshape(-1)
    answer = minimise(prices, np.zeros(m * n), rows, seconds)
    V = np.maximum(answer.values, 0.0).reshape(m, n)
    # The solver may leave an input without output if its probability is below the tolerance.
    V[np.argmin(cost, axis=1), np.arange(n)] += V.sum(axis=0) == 0.0
    nu = answer.duals[: m * len(kept)].reshape(m, len(kept))
    reach = np.abs(nu) @ ((kernel + secrets[:, None])[kept] / size[kept, None])
    price = cost - (nu @ B).T - roundoff(2 * k + 16) * (reach.T + cost)
    floor = price.min(axis=1)
    bound = math.fsum(inputs * floor) - roundoff(k + 8) * math.fsum(inputs * np.abs(floor))
    return (V / V.sum(axis=0)).T, bound
