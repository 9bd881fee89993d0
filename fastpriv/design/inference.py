"""Mechanisms against inference: release Y made from X so that Y tells little about S."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fastpriv import kernels
from fastpriv._core import validation as check
from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats
from fastpriv.channels import Channel
from fastpriv.design.mapping import Program, solve_mapping
from fastpriv.design.perfect import least_private
from fastpriv.design.task import limits, made_task, told
from fastpriv.errors import Infeasible, SolverFailure, described
from fastpriv.measures.fano import error_probability_bound
from fastpriv.priors import Distribution
from fastpriv.results import Solution

__all__ = ["InferenceSolution", "design_mapping", "least_distortion", "perfect_privacy"]

#: Nats that count as none when a gap is compared with the gap asked for.
_CLOSE = 1e-10
#: Information below this is the rounding of an independent pair.
_NOTHING = 2.0**-100
#: Values of S or X below this probability are left out: they move an information by far less
#: than the amount that bounds are lowered by.
_RARE, _LOWERED = 1e-60, 1e-50
#: Part of I(S; X) that a perfectly private mapping may keep by rounding.
_PRIVATE = 1e-9


@dataclass(frozen=True, repr=False)
class InferenceSolution(Solution):
    """A mapping from X to Y with what it leaks about S; see :func:`design_mapping`.

    Attributes
    ----------
    leakage_factor : float
        I(S; Y)/H(S).
    error_bound : float
        Fano's bound: nobody guesses S from Y with a smaller chance of error, and the true least
        chance may be larger (Makhdoumi-Fawaz 2013, Proposition 1).

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
    metric: ArrayLike,
    distortion: float,
    *,
    gap: float = 1e-8,
    time_limit: float = math.inf,
) -> InferenceSolution:
    """Find the mapping from X to Y that tells least about S within a distortion budget.

    Minimises I(S; Y) over W[x, y] = p(y|x) subject to E d(X, Y) <= D, where S -> X -> Y.

    Parameters
    ----------
    joint : 2-D array
        ``joint[s, x]`` = P(S = s, X = x), any finite alphabets.
    metric : 2-D array
        ``metric[x, y]``, the cost of releasing y for x; any finite numbers, any number of outputs.
    distortion : float
        The budget D on the expected cost.
    gap : float
        Certified gap at which to stop, relative to the information.
    time_limit : float
        Seconds after which to return the best certified mapping so far.

    Returns
    -------
    InferenceSolution
        ``.value`` and ``.level`` are I(S; Y) of ``.channel`` in nats, ``.bound`` a proved lower
        bound on the least, rounded down. Where the least is near 0 only the difference of the
        two is small, not its part of the information: 1e-10 nats count as none. Where they are
        further apart than that and ``gap``, ``.converged`` is False and a :class:`GapWarning`
        says so.

    Raises
    ------
    Infeasible
        Below :func:`least_distortion`.

    Notes
    -----
    Program (2) of Makhdoumi-Fawaz 2013, convex in W. Solved by a primal-dual interior-point
    method in some 10 to 20 steps of cost O(|Y| |X| (|X| + |S|) min(|X|, |S|)) each. The bound is
    Gibbs' inequality, so that it holds for whatever posteriors the method ended with. The channel
    meets the budget for its floats; a budget within rounding of the least distortion, or of that
    of the best constant output, is taken to be equal to it.

    Examples
    --------
    A fair bit S, seen as X through BSC(0.2), to be released with at most 0.1 of the bits flipped
    (Example 1: ln 2 - h2(0.2 * 0.1) nats, by flipping at random):

    >>> import fastpriv as fp
    >>> best = fp.design_mapping([[0.4, 0.1], [0.1, 0.4]], [[0, 1], [1, 0]], 0.1)
    >>> round(best.value, 6), best.value - best.bound < 1e-8, round(best.error_bound, 6)
    (0.12009, True, 0.26)
    """
    law = _joint(joint)
    costs = check.metric(metric, law.shape[1])
    budget = check.real(distortion, "distortion")
    task = made_task(0.0, False, gap, time_limit, "auto")
    check.fits(
        costs.size * min(law.shape),
        "the program",
        "merge values of S or X, or allow fewer outputs",
        check.MAX_MATRIX,
    )
    problem = _Problem(law, costs, budget)
    if problem.room < -problem.margin:
        least = least_distortion(law.sum(axis=0), costs)
        raise Infeasible(
            f"no mapping has an expected distortion of {described(budget)}: the least possible is "
            f"{described(least)}"
        )
    return told(problem.solve(task.gap, task.deadline), task, depth=3, least=_CLOSE)


def least_distortion(prior: Distribution | ArrayLike, metric: ArrayLike) -> float:
    """Least expected distortion of any mapping, sum_x p(x) min_y d(x, y).

    As the budget of :func:`design_mapping` it leaves only the choice among the cheapest outputs of
    each x, and gives the least I(S; Y) that costs nothing.

    Parameters
    ----------
    prior : Distribution, 1-D or 2-D array
        Law of X, or ``joint[s, x]`` as :func:`design_mapping` takes it.
    metric : 2-D array
        ``metric[x, y]``.

    Returns
    -------
    float
        Correct up to rounding.

    Examples
    --------
    Two of three outputs are exact for the first x, so that some of S can be hidden for nothing:

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
        p = check.law(prior, "prior (the law of X, or the joint law of S and X)")
    return math.fsum(p * check.metric(metric, len(p)).min(axis=1)) / math.fsum(p)


def perfect_privacy(
    joint: ArrayLike, metric: ArrayLike, *, time_limit: float = math.inf
) -> Solution:
    """Find the least expected distortion at which Y can be independent of S.

    The linear program min E d(X, Y) subject to sum_x P(s, x) W[x, y] = P(s) q(y) for all s and y.
    A constant output is one way, but not always the cheapest: Y may tell what X holds besides S.

    Parameters
    ----------
    joint : 2-D array
        ``joint[s, x]`` = P(S = s, X = x).
    metric : 2-D array
        ``metric[x, y]``.
    time_limit : float
        Seconds after which the solver gives up.

    Returns
    -------
    Solution
        ``.value`` is the expected distortion of ``.channel``, ``.bound`` a proved lower bound on
        that of any perfectly private mapping. Independence does not survive rounding unless Y is
        constant: ``.level`` is the I(S; Y) that is left, in nats, and typically 1e-32.

    Notes
    -----
    Where HiGHS stops without an optimum (S and X nearly independent, or the time is up) the best
    constant output is returned, with the least distortion of any mapping as the bound.

    Full privacy of Makhdoumi-Fawaz 2013, Definition 1. The bound comes from multipliers nu(s, y) of
    the program, repaired: sum_x p(x) min_y [d(x, y) - sum_s nu(s, y) (P(s|x) - P(s))], which holds
    for any nu and is rounded down. Cost: a linear program of |X| |Y| unknowns and |X| + |S| |Y|
    equations.

    Examples
    --------
    X is the pair (S, a fair bit), and each half that is wrong costs 1. Y keeps the bit:

    >>> import fastpriv as fp
    >>> joint = [[0.3, 0.3, 0.0, 0.0], [0.0, 0.0, 0.2, 0.2]]
    >>> metric = [[0, 1, 1, 2], [1, 0, 2, 1], [1, 2, 0, 1], [2, 1, 1, 0]]
    >>> best = fp.perfect_privacy(joint, metric)
    >>> round(best.value, 9), best.level < 1e-20
    (0.4, True)
    """
    law = _joint(joint)
    problem = _Problem(law, check.metric(metric, law.shape[1]), 0.0)
    return problem.perfect(limits(1.0, time_limit)[1])


def _joint(joint: ArrayLike) -> Floats:
    law = check.law(joint, "joint", ndim=2)
    return np.asarray(law / math.fsum(law.flat))


class _Problem:
    """One design problem: impossible values dropped, distortions counted from the least."""

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
        self.margin = (sum(costs.shape) + len(law) + 16) * ULP * size
        self.offset = math.fsum(self.inputs * least)
        self.room = limit - self.offset
        self.ties = self.cost <= 4.0 * ULP * np.abs(least)[:, None]

    def solve(self, gap: float, deadline: float) -> InferenceSolution:
        """Take the first way that applies."""
        constant = self.inputs @ self.cost
        output = int(np.argmin(constant))
        if constant[output] <= self.room + self.margin:
            return self.solution(self.only(np.full(len(self.inputs), output)), 0.0, "closed-form")
        cheapest = self.only(np.argmin(self.cost, axis=1))
        if kernels.mutual_information(self.backward, self.secrets) <= _NOTHING:
            return self.solution(cheapest, 0.0, "closed-form")
        cost, allowed = self.cost, np.ones_like(self.cost)
        budget = (self.room - self.margin, self.room + self.margin)
        if self.room <= 4.0 * self.margin:  # the least distortion: only the cheapest outputs
            if (self.ties.sum(axis=1) == 1).all():
                return self.solution(cheapest, math.inf, "closed-form")
            cost, allowed, budget = np.zeros_like(cost), self.ties.astype(np.float64), (1.0, 1.0)
        used = allowed.any(axis=0)
        program = Program(
            self.kernel,
            self.inputs,
            self.secrets,
            np.ascontiguousarray(cost[:, used].T),
            np.ascontiguousarray(allowed[:, used].T),
            budget,
        )
        V, bound = solve_mapping(program, gap, deadline)
        W = np.zeros_like(self.cost)
        W[:, used] = (V / self.inputs).T
        return self.solution(W / W.sum(axis=1, keepdims=True), bound, "dense")

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
        """Measure what a mapping costs, back in the units of the metric."""
        result = self.solution(W, 0.0, method)
        matrix = result.channel.matrix()[self.seen]
        value = math.fsum(self.inputs * (matrix * self.metric[self.seen]).sum(axis=1))
        lower = float(np.ldexp(bound + self.offset - self.margin, -self.exponent))
        return Solution(value, min(lower, value), result.channel, result.level, method)

    def only(self, outputs: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Floats:
        """Return the deterministic mapping to one output for each input."""
        return np.eye(self.cost.shape[1])[outputs]

    def solution(self, W: Floats, bound: float, method: str) -> InferenceSolution:
        """Measure a mapping; values of X that never occur get their cheapest output."""
        alike = bool((W[0] == W).all())
        value = 0.0 if alike else kernels.mutual_information(self.backward @ W, self.secrets)
        matrix = np.eye(W.shape[1])[np.argmin(self.metric, axis=1)]
        matrix[self.seen] = W
        entropy = kernels.entropy(self.secrets)
        factor = min(1.0, value / entropy) if entropy > 0.0 else 0.0
        error = error_probability_bound(factor, self.secrets)
        bound = min(max(bound - _LOWERED, 0.0), value)
        return InferenceSolution(value, bound, Channel(matrix), value, method, factor, error)
