"""Mechanisms for an unknown prior or an unknown secret.

Contraction and correlation, two criteria for an unknown secret, are suprema of sums of squares of
linear forms, (f'v)^2/q, of the mechanism. Such a term is at least 2 h f'v - h^2 q for every h. The
third, S*, is a supremum of sums of a ln(a/b), where a and b are linear forms. Such a term is at
least a (1 + ln t) - b t for every t > 0. So each criterion is convex and every point gives cuts
through the origin. Any weights of the cuts give a lower bound. Kelley's method with HiGHS collects
the cuts.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.clock import Clock
from fastpriv._core.divergence import divergence
from fastpriv._core.highs import Block, Rows, minimise
from fastpriv._core.rounding import lowered, raised, roundoff
from fastpriv._core.search import bisect_each
from fastpriv._core.validation import Floats
from fastpriv._matrices.contraction import contractions
from fastpriv._matrices.sdpi import matrix_sdpi
from fastpriv._structure.neighbours import components, distances, hamming_distances, spanner
from fastpriv.channels import Channel
from fastpriv.design.certificate import (
    TOLERANCE,
    Layout,
    Progress,
    certified_level,
    distance_closure,
    repair_margin,
    repaired,
)
from fastpriv.design.problem import Answer, Limits, Problem, minimum, reported
from fastpriv.design.ratio_programs import metric_solution
from fastpriv.errors import Infeasible, InvalidInput, SolverFailure, TooLarge, described
from fastpriv.measures.capacity import channel_capacity
from fastpriv.priors import Distribution
from fastpriv.priors.base import as_prior
from fastpriv.priors.sets import (
    AllPriors,
    Box,
    ConvexPriors,
    HullPriors,
    PolytopePriors,
    PriorSet,
    ProductPriors,
    as_prior_set,
)
from fastpriv.results import SdpiConstant, Solution
from fastpriv.spaces import Space

__all__ = ["design_worst_case", "least_capacity", "solve_minimax"]

#: Maximum rounds of cutting planes.
_MAX_ROUNDS = 400
#: Rounds in which the gap must shrink by a tenth.
_PATIENCE = 60
#: Relative error of an eigenvalue of a matrix of some dozen rows.
_EIGENVALUE_ERROR = 1e-12
#: Most halvings of an interval of slopes; adjacent doubles are reached earlier.
_HALVINGS = 80
#: Divergences D(Q || P) below are left to the cuts of rho^2.
_NEAR_PRIOR = 1e-6
#: Smallest t of a cut: its logarithm is a moderate coefficient.
_SMALLEST_RATIO = 1e-8
#: Relative rounding error of a divergence above ``_NEAR_PRIOR``, in units: sums that are off by an
#: ulp count as 1/_NEAR_PRIOR times more.
_SLACK = 1e8
#: Part of the gap for the cutting planes, and part for the proof of S* of their result.
_CERTIFIED_PART = 0.4
#: Most seconds of one proof of S*.
_CERTIFY_SECONDS = 60.0
#: Most runs of the cutting planes for S*.
_CERTIFICATES = 4
#: Value of a mechanism, rounded up, and cuts G with criterion(W) >= <G, W> for every W.
Criterion = Callable[[Floats], tuple[float, list[Floats]]]


def design_worst_case(
    prior: Distribution | ArrayLike | None,
    distortion: float,
    metric: ArrayLike | None = None,
    criterion: str = "contraction",
    *,
    gap: float = 1e-4,
    time_limit: float = math.inf,
) -> Solution:
    """Find a mapping from X to Y that limits the leakage about every S, for unknown S.

    For any P(s|x), I(S; Y) <= S*(X; Y) I(S; X), and rho^2 <= S* <= eta. Here eta(W) is the
    contraction coefficient, the largest S* over distributions of X, and rho is the maximal
    correlation of X and Y. ``"contraction"`` minimises eta(W), a guarantee for all S and all
    distributions of X. ``"sdpi"`` minimises S* under the given distribution of X, a guarantee for
    all S. ``"correlation"`` minimises rho^2 under the given distribution of X. It is a lower bound
    on S* and equals it for weak dependence: a design rule, not a guarantee.

    Parameters
    ----------
    prior : Distribution, 1-D array or None
        Distribution of X for the expected distortion. None if it is unknown: then the expected
        distortion of every single x must meet the budget.
    distortion : float
        The budget D.
    metric : 2-D array, optional
        ``metric[x, y]``; by default 0 for y = x and 1 otherwise, which needs a prior.
    criterion : {"contraction", "sdpi", "correlation"}
        The criterion to minimise.
    gap : float
        Certified absolute gap at which to stop; the criterion is at most 1.
    time_limit : float
        Seconds after which to return the best certified mapping so far.

    Returns
    -------
    Solution
        ``.value`` and ``.level`` are the criterion of ``.channel``, rounded up. ``.bound`` is a
        proved lower bound on the minimum, rounded down. If they differ by more than ``gap``,
        ``.converged`` is False and a :class:`GapWarning` is given.

    Notes
    -----
    Programs (5) = (8), (9) and (10) = (11) of Makhdoumi-Fawaz 2013. Corollary 1 there states that
    (11) is convex for a fixed distribution of Y. It is convex in W without fixing it: rho^2 is the
    largest sum_y (sum_x f(x) P(x, y))^2 / q(y) over f with E f = 0, E f^2 = 1, and all terms are
    convex. S* is convex in W, too: for each Q, D(QW || PW) is jointly convex in QW and PW.

    The default metric has closed forms by symmetry. If the distribution of X is uniform (or, for
    eta, unknown), the optimum is the m-ary symmetric channel, with eta = (1-D-d)^2/(1-D+d), d =
    D/(m-1), and rho^2 = (1 - mD/(m-1))^2. For two values, rho^2 has a closed form for any
    distribution. Other cases use cutting planes, for alphabets of about a dozen values: each round
    solves a linear program of |X| |Y| unknowns. S* of the result is proved by
    :func:`sdpi_constant`, which limits that criterion to about five values of X; 2 to 5 s for
    three or four values.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.design_worst_case([1 / 3] * 3, 0.3)
    Solution(value=0.355882353, bound=0.3558823529, level=0.355882353, method='closed-form')
    >>> round(fp.design_worst_case([0.5, 0.5], 0.1, criterion="correlation").value, 9)  # (1-2D)^2
    0.64
    >>> best = fp.design_worst_case([0.2, 0.3, 0.5], 0.2, criterion="sdpi")
    >>> round(best.value, 3), best.value - best.bound <= 1e-4
    (0.458, True)
    """
    check.word(criterion, "criterion", ("contraction", "sdpi", "correlation"))
    p = None if prior is None else _law(prior)
    if p is not None:
        costs = check.metric(1.0 - np.eye(len(p)) if metric is None else metric, len(p))
    elif metric is None or criterion != "contraction":
        raise InvalidInput(
            "prior must be given, or a metric and criterion='contraction'; got none of them."
        )
    else:
        costs = check.metric(metric, len(np.atleast_1d(check.array(metric, "metric"))))
    budget = check.real(distortion, "distortion")
    limits = Limits.checked(gap, time_limit, absolute=True)
    check.fits(costs.size**2, "the program", "use fewer values of X and Y", check.MAX_MATRIX)
    nearest = costs.min(axis=1)
    least = float(nearest.max()) if p is None else math.fsum(p * nearest)
    size = max(abs(least), float(np.abs(nearest).max()))
    if budget < least - roundoff(8.0 * len(costs)) * size:
        raise Infeasible(
            f"distortion must be at least {described(least)}, the smallest possible; got "
            f"{described(budget)}."
        )
    known = _closed_form(p, max(budget, least), costs, criterion, limits)
    if known is not None:
        return reported(known, limits)
    seen = np.ones(len(costs), bool) if p is None else p > 0.0
    if p is not None and criterion == "sdpi":
        W, value, bound = _least_sdpi(p[seen], costs[seen], budget, limits)
    else:
        weights = np.eye(len(costs)) if p is None else p[None, seen]
        oracle = _contraction if p is None or criterion == "contraction" else _correlation(p[seen])
        W, bound = _cutting_planes(oracle, weights, costs[seen], budget, limits)
        value = oracle(W)[0]
    matrix = np.eye(costs.shape[1])[np.argmin(costs, axis=1)]
    matrix[seen] = W
    if criterion == "contraction":  # all x count equally
        matrix[~seen] = W[0]
    best = Solution(value, min(bound, value), Channel(matrix), value, "dense")
    return reported(best, limits)


def _law(prior: Distribution | ArrayLike) -> Floats:
    p = as_prior(prior).probabilities()
    return np.asarray(p / math.fsum(p))


def _closed_form(
    p: Floats | None, D: float, costs: Floats, criterion: str, limits: Limits
) -> Solution | None:
    """Return the optimum by symmetry or a constant output, None if neither applies."""
    n, m = costs.shape
    if p is not None and (p @ costs).min() <= D:
        constant = np.tile(np.eye(m)[np.argmin(p @ costs)], (n, 1))
        return Solution(0.0, 0.0, Channel(constant), 0.0, "closed-form")
    if n != m or n < 2 or not np.array_equal(costs, 1.0 - np.eye(n)):
        return None
    if p is None or np.ptp(p) == 0.0:
        D = min(D, 1.0 - 1.0 / n)
        off = D / (n - 1)
        W = np.full((n, n), off)
        np.fill_diagonal(W, 1.0 - D)
        keep = max(1.0 - D - off, 0.0)
        if p is not None and criterion == "sdpi":
            found = _measured_sdpi(W, p, limits)
            return Solution(found.upper, found.lower, Channel(W), found.upper, "closed-form")
        value = keep**2 / (1.0 - D + off) if criterion == "contraction" else keep**2
    elif n == 2 and criterion == "correlation" and p.min() > 0.0:
        W, value = _binary(p, D)
    else:
        return None
    return Solution(value, value, Channel(W), value, "closed-form")


def _binary(p: Floats, D: float) -> tuple[Floats, float]:
    """Return the smallest rho^2 = det^2/(p0 p1 q0 q1) for two values and D < min p.

    The budget is spent in full: v = P(X = minority, Y = majority), and u = D - v for the reverse.
    The stationary point of the quotient is the root of a linear equation.
    """
    major = int(p[1] > p[0])
    p0, p1 = float(p[major]), float(p[1 - major])
    beta, alpha = p0 - p1, p1 * (p0 - D)
    v = (beta * (p0 - D) * (p1 + D) - alpha * (beta - 2.0 * D)) / (
        4.0 * alpha + beta * (beta - 2.0 * D)
    )
    v = min(max(v, 0.0), D)
    u = D - v
    det = p0 * p1 - p0 * v - p1 * u
    value = det**2 / (p0 * p1 * (p0 - u + v) * (p1 + u - v))
    W = np.array([[1.0 - u / p0, u / p0], [v / p1, 1.0 - v / p1]])
    return (W if major == 0 else W[::-1, ::-1].copy()), value


def _contraction(W: Floats) -> tuple[float, list[Floats]]:
    """eta(W), the largest b(1-b) sum_y (P-Q)^2/(bP + (1-b)Q) over pairs of rows and b in (0, 1)."""
    left, right = np.triu_indices(len(W), 1)
    if not len(left):
        return 0.0, []
    _, most, values, weights = contractions(np.ascontiguousarray(W), left, right)
    cuts = []
    for i in np.flatnonzero(values >= 0.5 * values.max()):
        P, Q = W[left[i]], W[right[i]]
        b = min(max(float(weights[i]), 1e-4), 1.0 - 1e-4)  # moderate coefficients for cuts
        mean = b * P + (1.0 - b) * Q
        h = np.divide(P - Q, mean, out=np.zeros_like(mean), where=mean > 0.0)
        G = np.zeros_like(W)
        G[left[i]] = b * (1.0 - b) * (2.0 * h - h**2 * b)
        G[right[i]] = -b * (1.0 - b) * (2.0 * h + h**2 * (1.0 - b))
        cuts.append(G)
    return min(most, 1.0), cuts


def _correlation(p: Floats) -> Criterion:
    """Return rho^2 under p, the largest sum_y q(y) E[f|y]^2 with E f = 0 and E f^2 = 1."""
    root = np.sqrt(p)

    def criterion(W: Floats) -> tuple[float, list[Floats]]:
        q = p @ W
        scaled = (root[:, None] * W - root[:, None] * q) / np.sqrt(np.where(q > 0.0, q, 1.0))
        values, vectors = np.linalg.eigh(scaled @ scaled.T)
        value = max(float(values[-1]), 0.0) * (1.0 + _EIGENVALUE_ERROR) + roundoff(64.0 * len(p))
        cuts = []
        for f in (vectors[:, values >= 0.3 * values[-1]] / root[:, None]).T:
            f = f - p @ f
            f /= math.sqrt(p @ f**2)
            h = (p * f) @ W / np.where(q > 0.0, q, 1.0)
            cuts.append(p[:, None] * (2.0 * f[:, None] * h - h**2))
        return min(value, 1.0), cuts

    return criterion


def _sdpi(p: Floats, laws: list[Floats]) -> Criterion:
    """Return a lower estimate of S* under p by local searches, which start from ``laws`` too.

    A distribution Q gives the cut sum_y (QW)(1 + ln t) - (PW) t over D(Q || P), t(y) near QW/PW.
    The cuts of rho^2 stand for distributions Q near P. Entries are lowered by their rounding error.
    """
    correlation = _correlation(p)

    def criterion(W: Floats) -> tuple[float, list[Floats]]:
        found, q = matrix_sdpi(W, p, gap=math.inf), p @ W  # no proof
        value, cuts = found.lower, correlation(W)[1]
        for Q in [*laws, *([] if found.law is None else [found.law])]:
            below = divergence(Q, p)
            if below < _NEAR_PRIOR:
                continue
            ratio = np.divide(Q @ W, q, out=np.ones_like(q), where=q > 0.0)
            t = np.maximum(ratio, _SMALLEST_RATIO)
            value = max(value, lowered(divergence(Q @ W, q) / below, _SLACK))
            size = Q[:, None] * (1.0 + np.abs(np.log(t))) + p[:, None] * t
            cut = (Q - p)[:, None] + Q[:, None] * np.log(t) - p[:, None] * (t - 1.0)
            cuts.append((cut - roundoff(8.0) * size) / raised(below, _SLACK))
        return value, cuts

    return criterion


def _measured_sdpi(W: Floats, p: Floats, limits: Limits) -> SdpiConstant:
    """Bracket S* of a matrix, to a part of the gap."""
    seconds = min(limits.clock.left(), _CERTIFY_SECONDS)
    return matrix_sdpi(W, p, _CERTIFIED_PART * limits.gap, seconds)


def _least_sdpi(
    p: Floats, costs: Floats, budget: float, limits: Limits
) -> tuple[Floats, float, float]:
    """Return the mapping of smallest S* under p, its S* rounded up, and a lower bound.

    Cutting planes need distributions Q that nearly attain S*, from local searches. The proof of S*
    at the end may find a better one; then it joins the starts and the cutting planes run again.
    """
    laws: list[Floats] = []
    inner = limits._replace(gap=_CERTIFIED_PART * limits.gap)
    best, value, bound = np.empty((0, 0)), math.inf, 0.0
    for _ in range(_CERTIFICATES):
        oracle = _sdpi(p, laws)
        W, lower = _cutting_planes(oracle, p[None], costs, budget, inner)
        found, bound = _measured_sdpi(W, p, limits), max(bound, lower)
        if found.upper < value:
            best, value = W, found.upper
        missed = found.law is not None and found.lower > raised(oracle(W)[0], _SLACK)
        if value - bound <= limits.gap or limits.late or found.law is None or not missed:
            break
        laws.append(found.law)
    return best, value, bound


def _cutting_planes(
    oracle: Criterion, weights: Floats, costs: Floats, budget: float, limits: Limits
) -> tuple[Floats, float]:
    """Return a mapping within the budgets, weights[r] @ (W * costs).sum(1) <= D, and a bound.

    New cuts are taken halfway between the program's answer and the best mapping, which reduces the
    oscillations of Kelley's method.
    """
    n, m = costs.shape
    size = float(np.abs(costs).max()) or 1.0
    costs, budget = costs / size, budget / size
    nearest = costs <= costs.min(axis=1, keepdims=True) + roundoff(4.0)
    cheapest = nearest / nearest.sum(axis=1, keepdims=True)
    rows = (weights[:, :, None] * costs).reshape(len(weights), -1)
    slack = roundoff(n + m + 16) * (1.0 + abs(budget))
    least = (rows @ cheapest.ravel()).max()
    tight = len(weights) == 1 and budget - least <= 1e-9  # only the nearest outputs fit

    def within(W: Floats) -> Floats:
        W = np.maximum(W, 0.0) * nearest + 1e-12 * cheapest if tight else np.maximum(W, 0.0)
        W = W / W.sum(axis=1, keepdims=True)
        spent = (rows @ W.ravel()).max()
        if tight or spent <= budget - slack or spent <= least:
            return np.asarray(W)
        share = min(1.0, (spent - budget + slack) / (spent - least))
        return np.asarray((1.0 - share) * W + share * cheapest)

    best = within(np.full((n, m), 1.0 / m))
    value, cuts = oracle(best)
    progress = Progress(0.0, limits.clock, best, patience=_PATIENCE, absolute=limits.gap)
    bound = 0.0
    for _ in range(_MAX_ROUNDS):
        if not progress.offer(best, value, bound) or not cuts:
            break
        try:
            W, weight, price = _master(np.array(cuts), rows, budget, n, m, limits.clock)
        except SolverFailure:
            break
        lost = roundoff(len(cuts) + n + m + 64)
        reach = np.tensordot(weight, np.abs(cuts), 1).ravel() + price @ np.abs(rows)
        floor = np.tensordot(weight, cuts, 1).ravel() + price @ rows - lost * reach
        total = math.fsum(floor.reshape(n, m).min(axis=1)) - price.sum() * (budget + slack)
        bound = float(total - lost * (4.0 + price.sum() * abs(budget)))
        for point in (within(0.5 * (W + best)), within(0.9 * W + 0.1 * best)):
            reached, result = oracle(point)
            cuts = cuts + result
            if reached < value:
                best, value = point, reached
    return best, max(progress.bound, bound)


def _master(
    cuts: Floats, rows: Floats, budget: float, n: int, m: int, clock: Clock
) -> tuple[Floats, Floats, Floats]:
    """Minimise the largest cut; return W, weights of the cuts (sum 1) and budget prices."""
    count, budgets = len(cuts), len(rows)
    width = n * m + 1  # the entries of W and the value
    dense = np.zeros((count + budgets, width))
    dense[:count, :-1], dense[:count, -1] = cuts.reshape(count, -1), -1.0
    dense[count:, :-1] = rows
    # Rounding must not make a tight budget infeasible.
    upper = np.repeat([0.0, budget + 1e-9], [count, budgets])
    sums = np.arange(n * m).reshape(n, m)
    stacked = Rows.stacked([Block.dense(dense, -math.inf, upper), Block(sums, 1.0, 1.0, 1.0)])
    answer = minimise(np.eye(width)[-1], np.zeros(width), stacked, clock.left())
    weight = np.maximum(-answer.duals[:count], 0.0)
    price = np.maximum(-answer.duals[count : count + budgets], 0.0)
    total = weight.sum()
    scale = 1.0 / total if total > 0.0 else 0.0
    return answer.values[:-1].reshape(n, m), weight * scale, price * scale


#: Pairs whose ratio may be e^40 are left out of the program.
_FAR = 40.0
#: Rounding of the entries of a mechanism after the repair.
_EXTRA = roundoff(32.0)
#: Smallest time limit of HiGHS, in seconds.
_AT_LEAST = 1e-3
#: Most privacy constraints of the program.
_MAX_PRIVACY_ROWS = 400_000


def solve_minimax(
    priors: PriorSet,
    epsilon: float,
    *,
    sizes: Sequence[int] | None = None,
    metric: ArrayLike | None = None,
    neighbours: ArrayLike | None = None,
    gap: float = 1e-6,
    time_limit: float = math.inf,
) -> Solution:
    """Find the mechanism of smallest expected distortion under the worst prior of a set.

    Parameters
    ----------
    priors : PriorSet
        All distributions, a box, a polytope, a hull, or all product distributions. A single prior
        is a set of one.
    epsilon : float
        Differential privacy level, at least 0.
    sizes : sequence of int, optional
        Number of values of every record. Default: one record with one value per database.
    metric, neighbours : array, optional
        Costs and pairs as for :func:`solve_pd_dp`.
    gap : float
        Certified relative gap to reach.
    time_limit : float
        Seconds after which HiGHS stops.

    Returns
    -------
    Solution
        ``.value`` is an upper bound on the distortion of ``.channel`` for every prior of the set.
        ``.bound`` is a lower bound for every mechanism, from the least favourable prior of the set.
        A distribution counts as in a polytope if it is within rounding of it.

    Notes
    -----
    One linear program. By duality, the worst case of the losses l(x) over {p : A p <= b} is the
    smallest t + <b, u> with t + (A' u)(x) >= l(x) and u >= 0. The multipliers of these constraints
    are the least favourable prior. The program has N K variables and as many privacy constraints
    for every needed pair.

    Examples
    --------
    >>> import fastpriv as fp
    >>> near = fp.PriorSet.box([0.5, 0.0, 0.0], [0.7, 0.3, 0.3])
    >>> known, unknown = (fp.solve_minimax(s, 0.5).value for s in (near, fp.PriorSet.all(3)))
    >>> round(known, 4), round(unknown, 4)
    (0.5, 0.5481)
    """
    if sizes is None and isinstance(priors, Distribution):
        sizes = priors.space.sizes
    priors = as_prior_set(priors)
    epsilon = check.real(epsilon, "epsilon", least=0.0)
    limits = Limits.checked(gap, time_limit)
    space = Space([priors.size]) if sizes is None else Space(sizes)
    if space.size != priors.size:
        raise InvalidInput(
            f"priors must be over the {space.size} databases of sizes {tuple(space.sizes)}; "
            f"got {priors.size} databases."
        )
    cost = hamming_distances(space) if metric is None else check.metric(metric, space.size)
    apart = hamming_distances(space) if neighbours is None else distances(neighbours, space.size)
    return minimum(MinimaxProblem(priors, cost, apart, space, epsilon), limits)


class MinimaxProblem(Problem[Solution]):
    """Minimum over mechanisms at a level of the largest expected cost over a set of priors."""

    def __init__(
        self, priors: PriorSet, cost: Floats, distance: Floats, space: Space, epsilon: float
    ) -> None:
        # Every row sums to one, so a shift of all costs is a constant.
        self.floor = min(float(cost.min()), 0.0)
        self.priors, self.cost, self.distance = priors, cost - self.floor, distance
        self.space, self.level = space, epsilon
        self.A, self.b = _inequalities(priors)

    def known(self) -> tuple[list[Solution], float]:
        """Return the mechanisms with one constant output; shifted costs are at least 0."""
        outputs = np.eye(self.cost.shape[1])
        constants = [np.tile(output, (len(self.cost), 1)) for output in outputs]
        return [self._solution(min(constants, key=self._worst), 0.0)], self.floor

    def answer(self, limits: Limits) -> Answer:
        """Solve by HiGHS; the prior given by its multipliers proves the bound."""
        given, prior = self._program(limits)
        matrix, alike = self._repaired(given), self._alike(given)
        met = certified_level(matrix, self.distance) <= self.level
        if not met or self._worst(alike) <= self._worst(matrix):
            matrix = alike
        forced = metric_solution(
            prior, self.cost, self.distance, self.space, self.level, False, limits, warn=False
        )
        bound = max(forced.bound, 0.0) if self._inside(prior) else 0.0
        if self.floor:
            bound += self.floor - roundoff(4.0) * (abs(bound) + abs(self.floor))
        return Answer(Channel(matrix, self.space), bound, "dense", "highs")

    def measured(self, answer: Answer) -> Solution:
        """Measure the largest cost and the level of the floats."""
        matrix = answer.channel.matrix()
        return self._solution(matrix, certified_level(matrix, self.distance))

    def _solution(self, matrix: Floats, level: float) -> Solution:
        value = self._worst(matrix) + self.floor
        return Solution(value, self.floor, Channel(matrix, self.space), level, "dense")

    def _program(self, limits: Limits) -> tuple[Floats, Floats]:
        """Return the solver's mechanism and the least favourable prior."""
        inputs, outputs = self.cost.shape
        source, target = np.nonzero(spanner(self.distance) & np.isfinite(self.distance))
        with np.errstate(over="ignore"):  # an infinite exponent is far, too
            near = self.level * self.distance[source, target] <= _FAR
        source, target = source[near], target[near]
        count = len(source) * outputs
        if count > _MAX_PRIVACY_ROWS:
            raise TooLarge.entries("the minimax program", count, "use fewer databases or outputs")
        margin = 2.0 * TOLERANCE + repair_margin(self.level, _EXTRA)
        level = max(self.level - margin, 0.0)
        half = np.exp(0.5 * level * self.distance[source, target])
        y = np.arange(outputs)
        entries, bounds = inputs * outputs, len(self.b)
        number = np.arange(entries).reshape(inputs, outputs)
        unit = max(float(self.cost.max()), 1e-300)
        # Variables: the mechanism, t, and u. Losses: t + A' u - sum_y c W >= 0 for every database.
        others = np.tile(entries + np.arange(1 + bounds), (inputs, 1))
        losses = Block(
            np.hstack([number, others]),
            np.hstack([-self.cost / unit, np.ones((inputs, 1)), self.A.T]),
            0.0,
            math.inf,
        )
        corners = self.priors.laws if isinstance(self.priors, HullPriors) else None
        if corners is not None:  # the mean loss of every corner is at most t
            means = (corners[:, :, None] * self.cost / unit).reshape(len(corners), -1)
            losses = Block(
                np.tile(np.arange(entries + 1), (len(corners), 1)),
                np.hstack([-means, np.ones((len(corners), 1))]),
                0.0,
                math.inf,
            )
        rows = Rows.stacked(
            [
                Block(
                    np.stack(
                        [target[:, None] * outputs + y, source[:, None] * outputs + y], axis=2
                    ).reshape(-1, 2),
                    np.stack([half, -1.0 / half], axis=1).repeat(outputs, axis=0),
                    0.0,
                    math.inf,
                ),
                losses,
                Block(number, 1.0, 1.0, 1.0),
            ]
        )
        answer = minimise(
            np.concatenate([np.zeros(entries), [1.0], self.b]),
            np.concatenate([np.zeros(entries), [-math.inf], np.zeros(bounds)]),
            rows,
            max(_AT_LEAST, limits.clock.left()),
        )
        if corners is None:
            prior = np.maximum(answer.duals[count : count + inputs], 0.0)
        else:
            prior = np.maximum(answer.duals[count : count + len(corners)], 0.0) @ corners
        return answer.values[:entries].reshape(inputs, outputs), prior / prior.sum()

    def _repaired(self, matrix: Floats) -> Floats:
        inputs, outputs = matrix.shape
        layout = Layout(
            np.tile(np.arange(inputs), outputs),
            np.ones(inputs * outputs),
            np.ones(inputs),
            distance_closure(self.distance),
        )
        mean = np.maximum(matrix, 0.0).mean(axis=0)
        constant = np.repeat(mean / mean.sum(), inputs)
        entry = repaired(matrix.T.reshape(-1), constant, layout, self.level, _EXTRA)
        return np.ascontiguousarray(entry.reshape(outputs, inputs).T)

    def _worst(self, matrix: Floats) -> float:
        """Return an upper bound on the expected cost over the set."""
        loss = raised((matrix * self.cost).sum(axis=1), 4.0 * matrix.shape[1])
        if isinstance(self.priors, HullPriors):  # a mean is linear, so a corner attains the maximum
            return float(raised(self.priors.laws @ loss, 2.0 * len(loss) + 8.0).max())
        if isinstance(self.priors, ConvexPriors):
            loss = np.where(self.priors.possible(), loss, 0.0)
        most = float(loss.max())
        if most == 0.0 or not isinstance(self.priors, ConvexPriors):
            return most
        # The prior set searches for the smallest mean of numbers between 0 and 1. One half is added
        # so that the minimum is not lost to rounding.
        spared = self.priors.smallest(1.0 - loss / (2.0 * most))
        return min(2.0 * most * (1.0 - spared) + roundoff(8.0) * most, most)

    def _alike(self, matrix: Floats) -> Floats:
        """Give related inputs the mean of their rows, which has level 0."""
        part = components(self.distance)
        total = np.zeros((part.max() + 1, matrix.shape[1]))
        np.add.at(total, part, np.maximum(matrix, 0.0))
        return np.asarray((total / total.sum(axis=1, keepdims=True))[part])

    def _inside(self, prior: Floats) -> bool:
        """Whether a distribution is in the set up to rounding."""
        reach = np.abs(self.A) @ prior + np.abs(self.b)
        return bool((self.A @ prior <= self.b + roundoff(64.0 * len(prior)) * reach).all())


def _inequalities(priors: PriorSet) -> tuple[Floats, Floats]:
    """Return A and b with the set {p >= 0 : sum p = 1, A p <= b}."""
    size = priors.size
    if isinstance(priors, AllPriors | ProductPriors):
        return np.empty((0, size)), np.empty(0)  # point masses are products
    if isinstance(priors, Box):
        return np.vstack([np.eye(size), -np.eye(size)]), np.append(priors.upper, -priors.lower)
    if isinstance(priors, HullPriors):
        return np.empty((0, size)), np.empty(0)  # the program lists its corners instead
    if isinstance(priors, PolytopePriors):
        return priors.inequalities.A, priors.inequalities.b
    raise InvalidInput(
        "priors must be all distributions, all product distributions, a box, a polytope or a hull; "
        f"got {priors!r}. Use a box around it."
    )


#: Largest slope, as a multiple of the inverse of the largest cost.
_STEEP = 600.0
#: Time limit of one linear program, in seconds.
_SECONDS = 300.0


def least_capacity(metric: ArrayLike, budget: ArrayLike, *, gap: float = 1e-6) -> Solution:
    """Find the mapping of minimum capacity whose expected cost is within budget for every input.

    Parameters
    ----------
    metric : 2-D array
        ``metric[x, y]``, the cost of output y for input x.
    budget : float or 1-D array
        Largest expected cost, for all inputs or one for each.
    gap : float
        Certified relative gap to reach.

    Returns
    -------
    Solution
        ``.value`` is the capacity of ``.channel`` in nats, ``.bound`` a proved lower bound.

    Raises
    ------
    Infeasible
        If an input has no output within its budget.

    Notes
    -----
    Makhdoumi-Fawaz 2013, Case 2 of Section III: the secret S and the data X are both unknown. The
    worst case is S = X with the capacity-achieving distribution. Let g_x(q) be the smallest
    divergence D(w || q) of a row w within budget, which is convex in q. The smallest capacity is
    the minimum over output distributions q of max over x of g_x(q). For a distribution p of inputs
    and slopes s >= 0, every mapping within budget has capacity at least -sum p (ln Z_x + s_x b_x) -
    ln max_y sum_x p(x) e^(-s_x d(x, y)) / Z_x, Z_x = sum_y q(y) e^(-s_x d(x, y)) (Blahut 1972).
    Cost O(N K) per step of a sequential quadratic method in K unknowns; meant for K below 100.

    Examples
    --------
    >>> import fastpriv as fp
    >>> apart = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    >>> round(fp.least_capacity(apart, 0.4).value, 4)
    0.2615
    """
    limits = Limits.checked(gap, math.inf)
    given = check.array(metric, "metric")
    cost = check.metric(given, len(given) if given.ndim else 0)
    budgets = check.array(budget, "budget")
    if budgets.shape not in ((), (len(cost),)):
        raise InvalidInput(
            f"budget must be one number or one for each of {len(cost)} inputs; got shape "
            f"{budgets.shape}."
        )
    most = np.broadcast_to(budgets, len(cost)).astype(np.float64)
    if not np.isfinite(most).all():
        raise InvalidInput("budget must hold finite numbers; got a NaN or an infinity.")
    least = cost.min(axis=1)
    if (most < least).any():
        x = int((least - most).argmax())
        raise Infeasible(
            f"budget must allow an output for every input: the smallest cost of input {x} is "
            f"{described(float(least[x]))}; got {described(most[x])}."
        )
    cost, most = cost - least[:, None], most - least
    silent = _constant_distribution(cost, most)
    if (raised(cost @ silent, 4.0 * len(silent)) <= most).all():
        channel = Channel(np.tile(silent, (len(cost), 1)))
        return Solution(0.0, 0.0, channel, 0.0, "closed-form")
    problem = BudgetProblem(cost, most)
    q = problem.minimise()
    matrix = problem.rows(q)
    channel = Channel(matrix)
    value = channel_capacity(channel).upper
    bound = min(max(problem.bound(q), 0.0), value)
    return reported(Solution(value, bound, channel, value, "dense"), limits)


def _constant_distribution(cost: Floats, budget: Floats) -> Floats:
    """Return the output distribution that exceeds the budgets by the minimum, for every input."""
    inputs, outputs = cost.shape
    unit = max(float(cost.max()), 1e-300)
    table = np.column_stack([cost / unit, -np.ones(inputs)])
    whole = Block(np.arange(outputs)[None], 1.0, 1.0, 1.0)
    rows = Rows.stacked([Block.dense(table, -math.inf, budget / unit), whole])
    free = np.append(np.zeros(outputs), -math.inf)
    answer = minimise(np.append(np.zeros(outputs), 1.0), free, rows, _SECONDS)
    law = np.maximum(answer.values[:-1], 0.0)
    return np.asarray(law / law.sum())


class BudgetProblem:
    """max over x of g_x(q), with costs that are 0 at the best output of every input."""

    def __init__(self, cost: Floats, budget: Floats) -> None:
        self.cost, self.budget = cost, budget
        self.steepest = _STEEP / max(float(cost.max()), 1e-300)

    def slopes(self, q: Floats) -> Floats:
        """Return the slope at which the tilted row of each input meets its budget, by bisection."""
        low, high = np.zeros(len(self.cost)), np.full(len(self.cost), self.steepest)
        low = np.where(self._mean(q, low) <= self.budget, 0.0, low)
        high = np.where(self._mean(q, low) <= self.budget, 0.0, high)
        return bisect_each(lambda s: self._mean(q, s) > self.budget, low, high, _HALVINGS)[1]

    def _tilted(self, q: Floats, slope: Floats) -> Floats:
        return np.asarray(q * np.exp(-slope[:, None] * self.cost))

    def _mean(self, q: Floats, slope: Floats) -> Floats:
        tilted = self._tilted(q, slope)
        return np.asarray((tilted * self.cost).sum(axis=1) / tilted.sum(axis=1))

    def divergences(self, q: Floats) -> tuple[Floats, Floats]:
        """Return g_x(q) and its gradient."""
        slope = self.slopes(q)
        kernel = np.exp(-slope[:, None] * self.cost)
        total = kernel @ q
        return -np.log(total) - slope * self.budget, -kernel / total[:, None]

    def minimise(self) -> Floats:
        """Minimise the largest divergence over output distributions."""
        from scipy.optimize import minimize

        outputs = self.cost.shape[1]
        start = np.full(outputs, 1.0 / outputs)
        floor = 1e-12  # keeps divergences finite; the gap shows its cost
        with warnings.catch_warnings():  # some versions warn of steps that they clip
            warnings.filterwarnings("ignore", "Values in x were outside bounds", RuntimeWarning)
            result = minimize(
                lambda z: z[-1],
                np.append(start, self.divergences(start)[0].max()),
                jac=lambda z: np.append(np.zeros(outputs), 1.0),
                method="SLSQP",
                bounds=[(floor, 1.0)] * outputs + [(0.0, None)],
                constraints=[
                    {
                        "type": "ineq",
                        "fun": lambda z: z[-1] - self.divergences(z[:-1])[0],
                        "jac": lambda z: np.column_stack(
                            [-self.divergences(z[:-1])[1], np.ones(len(self.cost))]
                        ),
                    },
                    {
                        "type": "eq",
                        "fun": lambda z: z[:-1].sum() - 1.0,
                        "jac": lambda z: np.append(np.ones(outputs), 0.0),
                    },
                ],
                options={"ftol": 1e-15, "maxiter": 1000},
            )
        q = np.maximum(result.x[:-1], floor)
        return np.asarray(q / q.sum())

    def rows(self, q: Floats) -> Floats:
        """Return the tilted rows, mixed with the cheapest output if rounding exceeds a budget."""
        tilted = self._tilted(q, self.slopes(q))
        rows = tilted / tilted.sum(axis=1, keepdims=True)
        spent = raised((rows * self.cost).sum(axis=1), 16.0 * self.cost.shape[1])
        with np.errstate(divide="ignore", invalid="ignore"):
            kept = np.where(spent > self.budget, self.budget / spent, 1.0)
        cheapest = np.eye(self.cost.shape[1])[self.cost.argmin(axis=1)]
        return np.asarray(kept[:, None] * rows + (1.0 - kept)[:, None] * cheapest)

    def bound(self, q: Floats) -> float:
        """Return a lower bound on the minimum capacity.

        It holds for any distribution of inputs; a linear program chooses the one that maximises it.
        """
        slope = self.slopes(q)
        kernel = np.exp(-slope[:, None] * self.cost)
        total = kernel @ q
        gain = -np.log(total) - slope * self.budget
        share = kernel / total[:, None]
        inputs, outputs = self.cost.shape
        # Largest sum p gain - r with sum_x p share <= 1 + r for every output, p a distribution.
        table = np.column_stack([share.T, -np.ones(outputs)])
        whole = Block(np.arange(inputs)[None], 1.0, 1.0, 1.0)
        rows = Rows.stacked([Block.dense(table, -math.inf, 1.0), whole])
        try:
            lower = np.append(np.zeros(inputs), -1.0)
            p = np.maximum(minimise(np.append(-gain, 1.0), lower, rows, _SECONDS).values[:-1], 0.0)
        except SolverFailure:
            return 0.0
        p /= p.sum()
        reach = float((p @ share).max())
        size = math.fsum(p * (np.abs(np.log(total)) + slope * self.budget))
        error = roundoff(4 * inputs + 4 * outputs + 64) * (1.0 + size)
        return float(math.fsum(p * gain) - math.log(reach) - error)
