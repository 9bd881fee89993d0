"""Minimum distortion at a level of differential privacy or identifiability (PD-DP, PD-I).

Three problems share the public functions. The first bounds ratios of neighbouring databases, with
the Hamming distance as cost. It has a closed form if a theorem gives the optimum. Otherwise it is
one small program per distinct record for independent records, a program on types for exchangeable
records, and a program over databases for others. The second has any cost and any graph or metric
over inputs. The third has (epsilon, delta) levels.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.highs import Block, Rows, minimise
from fastpriv._core.rounding import exp_down, lowered, raised, roundoff
from fastpriv._core.validation import Floats, Ints
from fastpriv._structure.neighbours import CHAIN, components, distances, hamming_distances
from fastpriv._structure.rows import RowKernel, RowKernels
from fastpriv._structure.types import Blocks, Types, expand, types_of
from fastpriv.channels import AbstractChannel, Channel, ProductChannel
from fastpriv.channels.types import TypeChannel, type_weights
from fastpriv.design.certificate import TOLERANCE, certified_level
from fastpriv.design.closed_forms import (
    constant_mechanism,
    joint_level,
    least_distance,
    posterior_response,
    randomised_response,
    rounded_inwards,
    rounded_up,
    rounding_margin,
)
from fastpriv.design.problem import Answer, Limits, NoAnswer, OutOfRange, Problem, minimum
from fastpriv.design.reductions import ByOrbits, ByTypes, Reduced, swappable_rows
from fastpriv.errors import Infeasible, InvalidInput, SolverFailure, TooLarge, described, short
from fastpriv.measures.distortion import expected_distance
from fastpriv.measures.dp import neighbour_level
from fastpriv.priors import Distribution, Exchangeable, Markov, Product
from fastpriv.priors.base import as_prior
from fastpriv.results import Solution
from fastpriv.spaces import Space

if TYPE_CHECKING:
    from fastpriv.design.exact.solution import ExactSolution

__all__ = ["solve_pd_dp", "solve_pd_i", "solve_r_pd"]

#: Most databases of a program without structure.
_MAX_DATABASES = 1 << 13
#: Largest level of PD-DP: coefficients are products with e^epsilon of up to e^100 apart.
_MAX_LEVEL_DP = 200.0
#: Largest level of PD-I: e^epsilon is a double.
_MAX_LEVEL_I = 700.0
#: Most inputs of a metric: a matrix of distances between them has 32 MB.
_MAX_INPUTS = 1 << 11
#: Most variables of a program at an (epsilon, delta) level.
_MAX_VARIABLES = 200_000
#: Largest level whose ratio is a double.
_MAX_EXPONENT = 700.0
#: Smallest time limit of HiGHS, in seconds.
_AT_LEAST = 1e-3


@overload
def solve_pd_dp(
    prior: Distribution | ArrayLike,
    epsilon: float,
    *,
    gap: float = ...,
    time_limit: float = ...,
    solver: str = ...,
    metric: ArrayLike | None = ...,
    neighbours: ArrayLike | None = ...,
    group: int = ...,
    delta: float = ...,
    exact: Literal[False] = ...,
) -> Solution: ...


@overload
def solve_pd_dp(
    prior: Distribution | ArrayLike,
    epsilon: float,
    *,
    gap: float = ...,
    time_limit: float = ...,
    solver: str = ...,
    metric: ArrayLike | None = ...,
    neighbours: ArrayLike | None = ...,
    group: int = ...,
    delta: float = ...,
    exact: Literal[True],
) -> ExactSolution: ...


def solve_pd_dp(
    prior: Distribution | ArrayLike,
    epsilon: float,
    *,
    gap: float = 1e-6,
    time_limit: float = math.inf,
    solver: str = "auto",
    metric: ArrayLike | None = None,
    neighbours: ArrayLike | None = None,
    group: int = 1,
    delta: float = 0.0,
    exact: bool = False,
) -> Solution | ExactSolution:
    """Find the mechanism of minimum expected distortion at a differential privacy level.

    Parameters
    ----------
    prior : Distribution or 1-D array
        Distribution of the databases; a vector is the distribution of one record.
    epsilon : float
        Differential privacy level in nats, at least 0.
    gap : float
        Certified relative gap at which to stop.
    time_limit : float
        Seconds after which to return the best certified solution so far.
    solver : {"auto", "interior", "highs", "first-order"}
        Engine of the linear program: an interior-point method, HiGHS, or a first-order method for
        programs that are too large for the others. "auto" takes the fastest one for the size, and
        another one to finish if it stops above the gap and is small enough.
    metric : 2-D array, optional
        ``metric[x, y]``, the cost of output y for database x, with any number of outputs. Default:
        the number of changed records.
    neighbours : array or sparse array, optional
        Databases that must be hard to distinguish. Default: those that differ in one record. Pairs
        (k, 2) of integers or a boolean matrix are the edges of a graph. A matrix of numbers has
        distances d: ratios are at most e^(epsilon d(x, x')) (geo-indistinguishability).
    group : int
        Number of records in which neighbours may differ.
    delta : float
        Probability by which ratios may be exceeded: (epsilon, delta)-differential privacy,
        ``hockey_stick(channel, epsilon) <= delta``. Only with the default neighbours.
    exact : bool
        Whether to solve in rational arithmetic, for small programs with the default cost and
        neighbours. Gap and engine are then ignored, and a time limit is refused.

    Returns
    -------
    Solution
        ``.value`` is the distortion of ``.channel``, ``.bound`` a proved lower bound. If they
        differ by more than ``gap``, ``.converged`` is False and a :class:`GapWarning` is given.
    ExactSolution
        With ``exact``: the optimum as fractions, with its pattern and its proof.

    Notes
    -----
    PD-DP of Wang-Ying-Zhang 2015. From ``prior.epsilon_hat()`` on, randomised response is optimal
    (closed form). Below it, an interior-point step costs N^4 for a dense prior on N databases, n^5
    for an exchangeable prior on n bits, and m^4 per distinct record of a product. With a metric or
    custom neighbours, a step costs N^3 for every output. If a factorisation would take 1e10
    operations, the first-order method is used: a step costs N^2 for every neighbour of a database,
    and thousands of steps reach a gap of 1e-3. A metric keeps the interior-point method as long as
    its factors fit into 2.4 GB and 60 steps into the time limit. Programs above 4 GB are refused
    before they start.

    Examples
    --------
    >>> import fastpriv as fp
    >>> prior = fp.Exchangeable.beta_binomial(20, 0.5, 0.8)
    >>> solution = fp.solve_pd_dp(prior, 1.0)
    >>> round(solution.value, 4), solution.method  # E_d has 5.3788
    (3.4676, 'types')

    People are located in 3 x 3 cells, with a factor of 2 for cells one apart:

    >>> import numpy as np
    >>> cells = np.array([(i, j) for i in range(3) for j in range(3)])
    >>> apart = np.linalg.norm(cells[:, None] - cells, axis=2)
    >>> private = fp.solve_pd_dp([1 / 9] * 9, np.log(2), metric=apart, neighbours=apart)
    >>> round(private.value, 4), round(private.level, 4)
    (1.0219, 0.6931)
    """
    prior = as_prior(prior)
    epsilon = check.real(epsilon, "epsilon", least=0.0)
    limits = Limits.checked(gap, time_limit, solver)
    group = check.integer(group, "group", 1)
    if check.flag(exact, "exact"):
        _check_plain(time_limit, metric, neighbours, group, delta)
        from fastpriv.design.exact.point import solve_exact

        return solve_exact(prior, epsilon, joint=False)
    delta = check.real(delta, "delta", 0.0, 1.0)
    if delta > 0.0:
        if neighbours is not None or group != 1:
            raise InvalidInput(
                "delta must come with the default neighbours, one record. Leave out "
                "neighbours= and group=."
            )
        return _within_delta(prior, metric, epsilon, delta, limits)
    if metric is not None or neighbours is not None or group != 1:
        return _over_inputs(prior, metric, neighbours, group, epsilon, False, limits)
    return rounded_up(minimum(RatioProblem(prior, epsilon, False), limits), prior)


@overload
def solve_pd_i(
    prior: Distribution | ArrayLike,
    epsilon: float,
    *,
    gap: float = ...,
    time_limit: float = ...,
    solver: str = ...,
    metric: ArrayLike | None = ...,
    neighbours: ArrayLike | None = ...,
    exact: Literal[False] = ...,
) -> Solution: ...


@overload
def solve_pd_i(
    prior: Distribution | ArrayLike,
    epsilon: float,
    *,
    gap: float = ...,
    time_limit: float = ...,
    solver: str = ...,
    metric: ArrayLike | None = ...,
    neighbours: ArrayLike | None = ...,
    exact: Literal[True],
) -> ExactSolution: ...


def solve_pd_i(
    prior: Distribution | ArrayLike,
    epsilon: float,
    *,
    gap: float = 1e-6,
    time_limit: float = math.inf,
    solver: str = "auto",
    metric: ArrayLike | None = None,
    neighbours: ArrayLike | None = None,
    exact: bool = False,
) -> Solution | ExactSolution:
    """Find the mechanism of minimum expected distortion at an identifiability level.

    Parameters
    ----------
    prior : Distribution or 1-D array
        Distribution of the databases; a vector is the distribution of one record.
    epsilon : float
        Identifiability level in nats, at least ``prior.epsilon_x()``.
    gap : float
        Certified relative gap at which to stop.
    time_limit : float
        Seconds after which to return the best certified solution so far.
    solver : {"auto", "interior", "highs", "first-order"}
        Engine of the linear program: an interior-point method, HiGHS, or a first-order method for
        programs that are too large for the others. "auto" takes the fastest one for the size, and
        another one to finish if it stops above the gap and is small enough.
    metric : 2-D array, optional
        ``metric[x, y]``, the cost of output y for database x, with any number of outputs. Default:
        the number of changed records.
    neighbours : array or sparse array, optional
        Databases that must be hard to distinguish. Default: those that differ in one record. Pairs
        (k, 2) of integers or a boolean matrix are the edges of a graph. A matrix of numbers has
        distances d: ratios are at most e^(epsilon d(x, x')) (geo-indistinguishability).
    exact : bool
        Whether to solve in rational arithmetic, for small programs with the default cost and
        neighbours. Gap and engine are then ignored, and a time limit is refused.

    Returns
    -------
    Solution
        ``.value`` is the distortion of ``.channel``, ``.bound`` a proved lower bound. If they
        differ by more than ``gap``, ``.converged`` is False and a :class:`GapWarning` is given.
    ExactSolution
        With ``exact``: the optimum as fractions, with its pattern and its proof.

    Raises
    ------
    Infeasible
        If epsilon is below ``prior.epsilon_x()``, the level of the prior alone.

    Notes
    -----
    PD-I of Wang-Ying-Zhang 2015, linear in the joint distribution. From ``prior.epsilon_tilde()``
    on, the posterior response is optimal (Theorem 1). Costs as for :func:`solve_pd_dp`.

    Within some 1e-14 of that threshold the posterior response has no room to round inwards.
    Independent records, and up to 64 databases, get a nearby mechanism that meets ``epsilon``.
    Other priors, and priors whose eps_X is as close, get the posterior response. Its ``.level``
    then exceeds ``epsilon`` by a bound on the rounding error.

    Examples
    --------
    >>> import fastpriv as fp
    >>> prior = fp.Product([[0.6, 0.4], [0.3, 0.7]])
    >>> fp.solve_pd_i(prior, 2.0).method
    'closed-form'
    """
    prior = as_prior(prior)
    epsilon = check.real(epsilon, "epsilon", least=0.0)
    limits = Limits.checked(gap, time_limit, solver)
    if check.flag(exact, "exact"):
        _check_plain(time_limit, metric, neighbours)
        from fastpriv.design.exact.point import solve_exact

        return solve_exact(prior, epsilon, joint=True)
    if metric is not None or neighbours is not None:
        return _over_inputs(prior, metric, neighbours, 1, epsilon, True, limits)
    least = prior.epsilon_x()
    if epsilon < least:
        raise Infeasible(
            f"no mechanism has identifiability {described(epsilon)} for {prior!r}: the prior alone "
            f"has epsilon_x = {described(least)}, which is the smallest possible. "
            "Ask for that level or a larger one."
        )
    return rounded_up(minimum(RatioProblem(prior, epsilon, True), limits), prior)


def solve_r_pd(n: int, m: int, epsilon: float) -> Solution:
    """Solve the relaxation R-PD: minimum distortion h(epsilon), a lower bound for both programs.

    For any prior, h(epsilon) is a lower bound on the distortion of every mechanism of
    identifiability epsilon, or of differential privacy epsilon - eps_X.

    Parameters
    ----------
    n, m : int
        Number of records and of values per record.
    epsilon : float
        Level of the posterior, at least 0.

    Returns
    -------
    Solution
        With randomised response as its channel (Wang-Ying-Zhang 2015, Lemma 1).

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.solve_r_pd(10, 2, 0.0).value
    5.0
    """
    return randomised_response(check.row_sizes(n, m), check.real(epsilon, "epsilon", least=0.0))


def _check_plain(
    time_limit: float,
    metric: ArrayLike | None,
    neighbours: ArrayLike | None,
    group: int = 1,
    delta: float = 0.0,
) -> None:
    if time_limit != math.inf:
        raise InvalidInput("time_limit must be left out with exact=True, which runs to the end.")
    if metric is not None or neighbours is not None or group != 1 or delta != 0.0:
        raise InvalidInput(
            "metric, neighbours, group and delta must be left out with exact=True, which is "
            "for the Hamming distance and neighbours that differ in one record."
        )


class RatioProblem(Problem[Solution]):
    """PD-DP, or PD-I (``joint``) on the joint distribution, with the Hamming distance."""

    def __init__(self, prior: Distribution, epsilon: float, joint: bool) -> None:
        self.prior, self.level, self.joint = prior, epsilon, joint

    def closed_form(self, limits: Limits) -> Solution | None:
        """Return randomised or posterior response, or a constant at level 0, if optimal."""
        prior, epsilon = self.prior, self.level
        if not self.joint:
            if epsilon >= prior.epsilon_hat():
                return randomised_response(prior.space.sizes, epsilon)
            return constant_mechanism(prior) if epsilon == 0.0 else None
        # If eps_tilde has no known bound, the program follows.
        with suppress(Infeasible, TooLarge):
            tilde = float(prior.epsilon_tilde())
            if epsilon >= tilde:
                # For a nearly uniform prior, rounding may dominate the response.
                closed = posterior_response(prior, epsilon, tilde)
                if closed.level > epsilon:
                    mended = rounded_inwards(prior, epsilon, closed.bound)
                    if mended is not None and mended.gap <= limits.gap:
                        return mended
                return closed
        return None

    def known(self) -> tuple[list[Solution], float]:
        """Return a constant and, for PD-DP, randomised response; and a proved lower bound.

        The relaxation R-PD is a lower bound on the optimum (Theorem 1). At a small level of
        differential privacy another bound is close to the distortion of a constant: two databases
        differ in at most n records, so W[x, y] >= e^(-n epsilon) W[z, y] for one fixed z.
        """
        prior, epsilon = self.prior, self.level
        sizes, constant = prior.space.sizes, constant_mechanism(prior)
        relaxed = epsilon if self.joint else epsilon + prior.epsilon_x()
        bound = least_distance(sizes, raised(relaxed, 4.0)) if relaxed < math.inf else 0.0
        if self.joint:  # epsilon is at least eps_X, but two ways of rounding may disagree
            return [replace(constant, level=min(prior.epsilon_x(), epsilon))], bound
        far = exp_down(-raised(prior.space.n * epsilon, 4.0))
        bound = max(bound, lowered(far * constant.bound, 4.0))
        return [constant, randomised_response(sizes, epsilon)], bound

    def answer(self, limits: Limits) -> Answer:
        """Solve the program in the structure of the prior: records, types or all databases."""
        prior = self.prior
        if isinstance(prior, Product):
            return self._by_rows(prior, limits)
        if isinstance(prior, Exchangeable):
            types = types_of(Blocks.single(prior.space.n, prior.space.sizes[0]))
            parts, answer = self._on_types(types, type_weights(types, prior), limits)
            mechanism = TypeChannel(types, parts.classes, parts.split(answer.entries))
            return Answer(mechanism, answer.bound, "types", answer.engine, answer.late)
        if isinstance(prior, Markov) and has_no_program(prior):
            # At epsilon - eps_X randomised response has identifiability epsilon (Lemma 5).
            safe = self.level - (prior.epsilon_x() if self.joint else 0.0)
            return Answer(
                randomised_response(prior.space.sizes, max(safe, 0.0)).channel, 0.0, "closed-form"
            )
        if prior.space.size > _MAX_DATABASES:
            raise TooLarge(
                f"the program of {prior!r} is solved over at most {_MAX_DATABASES:,} databases, "
                f"and there are {short(prior.space.size)}; use fewer records, a product or "
                "exchangeable prior, or an epsilon of at least "
                f"{'epsilon_tilde()' if self.joint else 'epsilon_hat()'} of the prior, where no "
                "program is needed."
            )
        dense = prior.as_dense("the program")
        types = types_of(swappable_rows(dense.probabilities().reshape(dense.space.sizes)))
        numbers = types.number(dense.space.rows(np.arange(dense.space.size)))
        weights = np.asarray(np.bincount(numbers, dense.probabilities()), dtype=np.float64)
        parts, answer = self._on_types(types, weights, limits)
        channel = Channel(expand(types, parts.classes, parts.split(answer.entries)), dense.space)
        # Products along a chain are rounded.
        products = 8.0 * (prior.space.n + 2)
        bound = answer.bound if prior is dense else lowered(answer.bound, products)
        return Answer(channel, bound, "dense", answer.engine, answer.late)

    def _on_types(
        self, types: Types, weights: Floats, limits: Limits, extra: float = 0.0
    ) -> tuple[ByTypes, Reduced]:
        if self.level > (_MAX_LEVEL_I if self.joint else _MAX_LEVEL_DP):
            raise OutOfRange
        parts = ByTypes(types, weights, self.joint, limits.clock)
        return parts, parts.solve(self.level, limits, extra, reserve=parts.seconds)

    def _by_rows(self, prior: Product, limits: Limits) -> Answer:
        """Solve every distinct record: both programs tensorise, and the optimum is a sum."""
        rows = [self._one_row(p, prior.space.n, limits) for p in prior.distinct]
        kernels = RowKernels([RowKernel(row.channel.matrix()) for row in rows], prior.assignment)
        bound = prior.total([row.bound for row in rows])
        # Report the interior-point method if any record used it.
        engine = max((row.engine for row in rows if row.engine is not None), default=None)
        late = any(row.late for row in rows)
        return Answer(ProductChannel.of(kernels), bound, "rows", engine, late)

    def _one_row(self, p: Floats, n: int, limits: Limits) -> Answer:
        m, extra = len(p), rounding_margin(0.0, n)
        if m == 1:
            return Answer(Channel(np.ones((1, 1))), 0.0, "closed-form")
        if m == 2 and not self.joint and limits.engine == "auto":
            matrix, bound = _one_bit(p, self.level, extra)
            return Answer(Channel(matrix), bound, "closed-form")
        types = types_of(Blocks(((0,),), (m,)))
        weights = np.empty(m)
        weights[types.number(np.arange(m)[:, None])] = p
        parts, answer = self._on_types(types, weights, limits, extra)
        row = Product.of([p], np.zeros(1, dtype=np.int64))
        best = Channel(expand(types, parts.classes, parts.split(answer.entries)))
        constant = constant_mechanism(row)
        better = expected_distance(best, row) <= constant.value
        chosen = best if better else constant.channel
        return Answer(chosen, answer.bound, "dense", answer.engine, answer.late)

    def measured(self, answer: Answer) -> Solution:
        """Measure the distortion and the level of the floats."""
        channel, prior = answer.channel, self.prior
        level = joint_level(channel, prior) if self.joint else neighbour_level(channel)
        value = expected_distance(channel, prior)
        return Solution(value, answer.bound, channel, level, answer.method)

    def obstacle(self, limits: Limits) -> str:
        """Return a reason if the chain is too long for a program, else an empty string."""
        unsolved = "a chain this long has no program, only the bounds of theorems"
        return unsolved if has_no_program(self.prior) else ""


def has_no_program(prior: Distribution) -> bool:
    """Whether only theorems bound the optimum: a Markov chain with too many databases."""
    return isinstance(prior, Markov) and prior.space.size > _MAX_DATABASES


def _one_bit(p: Floats, epsilon: float, extra: float) -> tuple[Floats, float]:
    """Solve PD-DP of one bit in closed form: randomised response or a constant.

    Private mechanisms are a polygon in the plane of the two flip probabilities. The two constants
    are vertices. The only vertex below the line between them is randomised response, with flip
    probability 1/(1 + e^epsilon).
    """
    rare = float(p.min())
    safe = max(0.0, epsilon - rounding_margin(epsilon, 1) - extra)
    flip, best = (math.exp(-level) / (1.0 + math.exp(-level)) for level in (safe, epsilon))
    if rare <= flip:
        matrix = np.zeros((2, 2))
        matrix[:, int(p.argmax())] = 1.0
    else:
        matrix = np.array([[1.0 - flip, flip], [flip, 1.0 - flip]])
    return matrix, lowered(min(rare, best), 8)


# Any cost, any number of outputs, any graph or metric. This covers differential privacy for groups
# or custom neighbours, and geo-indistinguishability (Andres, Bordenabe, Chatzikokolakis and
# Palamidessi 2013; the optimal mechanism as a linear program: Bordenabe, Chatzikokolakis and
# Palamidessi 2014).


def _over_inputs(
    prior: Distribution,
    metric: ArrayLike | None,
    neighbours: ArrayLike | None,
    group: int,
    epsilon: float,
    joint: bool,
    limits: Limits,
) -> Solution:
    """Check the arguments of a metric problem, and solve it."""
    dense = prior.as_dense("the program", _MAX_INPUTS)
    size = dense.space.size
    if group > 1 and neighbours is not None:
        raise InvalidInput("one of neighbours and group must be left out: group counts records.")
    cost = hamming_distances(dense.space) if metric is None else check.metric(metric, size)
    if neighbours is None:
        distance = hamming_distances(dense.space, group)
    else:
        distance = distances(neighbours, size)
    p = dense.probabilities()
    best = metric_solution(p, cost, distance, dense.space, epsilon, joint, limits)
    return rounded_up(best, prior, None if metric is None else cost)


def metric_solution(
    prior: Floats,
    cost: Floats,
    distance: Floats,
    space: Space,
    epsilon: float,
    joint: bool,
    limits: Limits,
    warn: bool = True,
) -> Solution:
    """Minimise a cost at a level that scales with a distance between inputs.

    Parameters
    ----------
    prior : ndarray
        p(x).
    cost : ndarray
        ``cost[x, y]`` of output y for input x.
    distance : ndarray
        d(x, z), closed under shortest paths.
    space : Space
        The inputs.
    epsilon, joint
        The level, of the joint distribution if ``joint``.
    limits : Limits
        Gap, time and engine.
    warn : bool
        Whether to warn about a missed gap.
    """
    if not joint:
        problem = MetricProblem(prior, cost, distance, space, epsilon, joint)
        return minimum(problem, limits, warn)
    _check_feasible(prior, distance, epsilon)
    # A database of probability zero has posterior zero for every output, and no possible database
    # is related to it. So it gets its cheapest output.
    seen = np.flatnonzero(prior)
    inside = space if len(seen) == len(prior) else Space([len(seen)])
    within = distance[np.ix_(seen, seen)]
    problem = MetricProblem(prior[seen], cost[seen], within, inside, epsilon, joint)
    best = minimum(problem, limits, warn)
    if inside is space:
        return best
    matrix = np.eye(cost.shape[1])[cost.argmin(axis=1)]
    matrix[seen] = best.channel.matrix()
    return replace(best, channel=Channel(matrix, space))


class MetricProblem(Problem[Solution]):
    """Minimum expected cost with W[x, y] <= e^(epsilon d(x, z)) W[z, y], or for p(x) W[x, y]."""

    def __init__(
        self,
        prior: Floats,
        cost: Floats,
        distance: Floats,
        space: Space,
        epsilon: float,
        joint: bool,
    ) -> None:
        self.prior, self.cost, self.distance, self.space = prior, cost, distance, space
        self.level, self.joint = epsilon, joint
        floor = np.minimum(cost.min(axis=1), 0.0)  # costs are counted from 0 on
        self.offset = math.fsum(prior * floor)
        self.reduction = ByOrbits(prior, cost - floor[:, None], distance, joint)
        self.part = components(distance)
        self.constant = _constant_of_parts(prior, cost, self.part, space, self.reduction.least)

    def closed_form(self, limits: Limits) -> Solution | None:
        """Return a constant for every part if the level is 0 or nothing relates inputs."""
        apart = self.part.max() + 1 == len(self.prior)  # no inputs are related
        free = not (self.prior[:, None] * self.reduction.cost).any()
        simple = self.level == 0.0 or apart or self.cost.shape[1] == 1 or free
        return replace(self.constant, method="closed-form") if simple else None

    def known(self) -> tuple[list[Solution], float]:
        """Return the best constant; costs counted from 0 are at least 0."""
        return [self.constant], self._shifted(0.0)

    def _shifted(self, bound: float) -> float:
        """Return a lower bound on the cost from a bound on the shifted cost, rounded down."""
        bound = max(bound, 0.0)
        return bound + (self.offset - roundoff(4.0) * (abs(self.offset) + bound))

    def answer(self, limits: Limits) -> Answer:
        """Solve over one output of every orbit."""
        # Chains of pairs and averages over symmetries are rounded; the repair allows for it.
        extra = 32.0 * CHAIN * self.level + roundoff(32.0)
        reserve = 0.0
        if not (limits.late or math.isinf(limits.clock.left())):
            reserve = min(self.reduction.finishing_seconds(), 0.5 * limits.clock.left())
        entries, bound, engine, late = self.reduction.solve(self.level, limits, extra, reserve)
        channel = Channel(self.reduction.matrix(entries), self.space)
        return Answer(channel, self._shifted(bound), "dense", engine, late)

    def measured(self, answer: Answer) -> Solution:
        """Measure the cost and the level of the floats."""
        matrix = answer.channel.matrix()
        level = certified_level(matrix, self.distance, self.prior if self.joint else None)
        value = math.fsum((self.prior[:, None] * matrix * self.cost).reshape(-1))
        return Solution(value, answer.bound, answer.channel, level, "dense")

    def obstacle(self, limits: Limits) -> str:
        """Return a reason if the shortest distance leaves less room than rounding takes."""
        shortest = self.reduction.shortest
        room = self.level * shortest
        if shortest >= 1.0 or room * limits.gap > 4.0 * TOLERANCE:
            return ""
        return (
            f"inputs at a distance of {shortest:.3g} may differ by a factor of 1 + {room:.1e} "
            "only, which rounding spoils; merge inputs so close to each other"
        )


def _check_feasible(prior: Floats, distance: Floats, epsilon: float) -> None:
    least = certified_level(prior[:, None], distance)
    if least == math.inf:
        raise Infeasible(
            "no mechanism has a finite identifiability here: a database of probability zero is "
            "a neighbour of a possible one. Leave it out of neighbours."
        )
    if epsilon < least:
        raise Infeasible(
            f"no mechanism has identifiability {described(epsilon)} here: the prior alone has "
            f"level {described(least)}, which is the smallest possible. "
            "Ask for that level or a larger one."
        )


def _constant_of_parts(
    prior: Floats, cost: Floats, part: Ints, space: Space, level: float
) -> Solution:
    """Return the best mechanism with one output for all inputs that are related.

    At epsilon 0 it is optimal: related inputs have the same row, and the cheapest row has a single
    output.
    """
    charge = prior[:, None] * cost
    expected, size = np.zeros((2, part.max() + 1, cost.shape[1]))
    np.add.at(expected, part, charge)
    np.add.at(size, part, np.abs(charge))
    matrix = np.eye(cost.shape[1])[expected.argmin(axis=1)[part]]
    value = math.fsum((charge * matrix).reshape(-1))
    least = (expected - roundoff(len(prior) + 4.0) * size).min(axis=1)
    bound = math.fsum(least) - roundoff(4.0) * math.fsum(np.abs(least))
    return Solution(value, min(bound, value), Channel(matrix, space), level, "dense")


# (epsilon, delta): a linear program with an excess u of total at most delta.
#
#     W[x, y] - e^epsilon W[z, y] <= u[x, z, y],   u >= 0,   sum_y u[x, z, y] <= delta
#
# for neighbours x, z. Mixing with a constant mechanism shrinks every sum by the mixing share. This
# repairs a solution whose sums are slightly too large.


def _within_delta(
    prior: Distribution, metric: ArrayLike | None, epsilon: float, delta: float, limits: Limits
) -> Solution:
    """Check the arguments of an (epsilon, delta) problem, and solve it."""
    dense = prior.as_dense("the program", _MAX_INPUTS)
    space, p = dense.space, dense.probabilities()
    cost = hamming_distances(space) if metric is None else check.metric(metric, space.size)
    best = minimum(DeltaProblem(p, cost, space, epsilon, delta), limits)
    return rounded_up(best, prior, None if metric is None else cost)


class DeltaProblem(Problem[Solution]):
    """Minimum expected cost at an (epsilon, delta) level; neighbours differ in one record."""

    def __init__(
        self, prior: Floats, cost: Floats, space: Space, epsilon: float, delta: float
    ) -> None:
        self.prior, self.space, self.level, self.delta = prior, space, epsilon, delta
        # Every row sums to one, so a shift of all costs is a constant.
        self.floor = min(float(cost.min()), 0.0)
        self.cost = cost - self.floor
        self.charge = prior[:, None] * self.cost
        self.first, self.second = _neighbour_pairs(space)
        # A level whose ratio overflows is lowered: the program proves nothing there.
        self.grow = math.exp(min(epsilon, _MAX_EXPONENT))

    def closed_form(self, limits: Limits) -> Solution | None:
        """Return the cheapest outputs if delta is 1, where every mechanism is allowed."""
        if self.delta < 1.0:
            return None
        matrix = np.eye(self.cost.shape[1])[self.cost.argmin(axis=1)]
        value = math.fsum(self.prior * self.cost.min(axis=1)) + self.floor
        return Solution(value, value, Channel(matrix, self.space), self.level, "closed-form")

    def known(self) -> tuple[list[Solution], float]:
        """Return the best constant; shifted costs are at least 0."""
        return [self._solution(Channel(self._constant(), self.space))], self.floor

    def _constant(self) -> Floats:
        matrix = np.zeros(self.cost.shape)
        matrix[:, int((self.prior @ self.cost).argmin())] = 1.0
        return matrix

    def answer(self, limits: Limits) -> Answer:
        """Solve by HiGHS, then mix in a constant until every excess is within delta."""
        inputs, outputs = self.cost.shape
        excesses = len(self.first) * outputs
        variables = inputs * outputs + excesses
        if variables > _MAX_VARIABLES:
            raise TooLarge.entries(
                "the program at an (epsilon, delta) level", variables, "use fewer databases"
            )
        unit = max(float(self.charge.max()), 1e-300)
        prices = np.concatenate([self.charge.reshape(-1) / unit, np.zeros(excesses)])
        seconds = max(_AT_LEAST, limits.clock.left())
        try:
            answer = minimise(prices, np.zeros(variables), self._rows(), seconds)
        except SolverFailure as failure:
            raise NoAnswer from failure
        entries = answer.values[: inputs * outputs].reshape(inputs, outputs)
        duals = np.maximum(-answer.duals[:excesses], 0.0).reshape(-1, outputs) * unit
        bound = self._bound(duals) if self.level <= _MAX_EXPONENT else 0.0
        channel = Channel(self._repaired(entries), self.space)
        return Answer(channel, max(bound, 0.0) + self.floor, "dense", "highs")

    def _rows(self) -> Rows:
        """Return ratios with their excess, sums of excesses, sums of rows."""
        inputs, outputs = self.cost.shape
        y, count = np.arange(outputs), len(self.first) * outputs
        excess = inputs * outputs + np.arange(count)
        one, two = ((part[:, None] * outputs + y).reshape(-1) for part in (self.first, self.second))
        return Rows.stacked(
            [
                Block(
                    np.stack([one, two, excess], axis=1),
                    np.array([1.0, -self.grow, -1.0]),
                    -math.inf,
                    0.0,
                ),
                Block(excess.reshape(-1, outputs), 1.0, -math.inf, self.delta),
                Block(np.arange(inputs * outputs).reshape(inputs, outputs), 1.0, 1.0, 1.0),
            ]
        )

    def _repaired(self, entries: Floats) -> Floats:
        """Make rows sum to one and every excess at most delta."""
        matrix = np.maximum(entries, 0.0)
        matrix /= matrix.sum(axis=1, keepdims=True)
        excess = np.maximum(matrix[self.first] - self.grow * matrix[self.second], 0.0).sum(axis=1)
        rounding = roundoff(8 * entries.shape[1] + 64) * (1.0 + self.grow)
        worst = float(excess.max(initial=0.0)) + rounding
        keep = min(1.0, max(self.delta - rounding, 0.0) / worst)
        return np.asarray(keep * matrix + (1.0 - keep) * self._constant())

    def _bound(self, duals: Floats) -> float:
        """Return the lower bound of the ratios' multipliers, rounded down.

        For l >= 0 and n(x, z) = max_y l(x, z, y), the cost of any mechanism is at least the sum
        over x of min_y (c(x, y) + sum_z l(x, z, y) - e^epsilon sum_z l(z, x, y)), less delta sum n.
        """
        first, second, grow = self.first, self.second, self.grow
        price, size = self.charge.copy(), np.abs(self.charge)
        np.add.at(price, first, duals)
        np.add.at(price, second, -grow * duals)
        np.add.at(size, first, duals)
        np.add.at(size, second, grow * duals)
        price -= roundoff(int(np.bincount(first).max(initial=0)) * 2 + 16) * size
        floor, paid = price.min(axis=1), self.delta * duals.max(axis=1, initial=0.0)
        total = math.fsum(np.abs(floor)) + math.fsum(paid)
        return math.fsum(floor) - math.fsum(paid) - roundoff(8.0) * total

    def measured(self, answer: Answer) -> Solution:
        """Measure the cost of the floats; the repair has certified the level."""
        return self._solution(answer.channel)

    def _solution(self, channel: AbstractChannel) -> Solution:
        value = math.fsum((self.charge * channel.matrix()).reshape(-1)) + self.floor
        return Solution(value, self.floor, channel, self.level, "dense")


def _neighbour_pairs(space: Space) -> tuple[Ints, Ints]:
    pairs = [(x, z) for x in range(space.size) for z in np.asarray(space.neighbours(x)).tolist()]
    table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]
