"""Minimum distortion at a level of differential privacy or identifiability (PD-DP, PD-I)."""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from fastpriv import kernels
from fastpriv._core import validation as check
from fastpriv._core.highs import Rows, minimise
from fastpriv._core.rounding import ULP, exp_down, lowered, raised
from fastpriv._core.threads import split
from fastpriv._core.validation import Floats, Ints
from fastpriv._core.wide import wide
from fastpriv._matrices.leakage import TINY
from fastpriv._structure.rows import RowKernel, RowKernels
from fastpriv._structure.types import Blocks, expand, types_of
from fastpriv.channels import AbstractChannel, Channel, ProductChannel
from fastpriv.channels.types import TypeChannel, type_weights
from fastpriv.design import engine, growing
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
from fastpriv.design.engine import SOLVERS
from fastpriv.design.interior import Iterate, OutOfRange, OutOfTime, Program
from fastpriv.design.neighbours import CHAIN, components, distances, hamming_distances, spanner
from fastpriv.design.problem import Task, made_task, told
from fastpriv.design.reduced import solve_reduced
from fastpriv.design.reductions import Orbits, automorphisms, swappable_rows
from fastpriv.design.repair import TOLERANCE, Shape, matrix_closed, repair, rounding
from fastpriv.errors import Infeasible, InvalidInput, SolverFailure, TooLarge, described, short
from fastpriv.measures.distortion import expected_distance
from fastpriv.measures.dp import neighbour_level
from fastpriv.priors import Distribution, Exchangeable, Markov, Product
from fastpriv.priors.arguments import as_prior
from fastpriv.results import Solution
from fastpriv.spaces import Space

if TYPE_CHECKING:
    from fastpriv.design.exact.solution import ExactSolution

__all__ = ["solve_pd_dp", "solve_pd_i", "solve_r_pd"]


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
    """Find the mechanism of least expected distortion at a differential privacy level.

    Parameters
    ----------
    prior : Distribution or 1-D array
        Law of the databases; a plain vector is that of one row.
    epsilon : float
        Differential privacy level, at least 0.
    gap : float
        Certified relative gap at which to stop.
    time_limit : float
        Seconds after which to return the best certified solution so far.
    solver : {"auto", "interior", "highs"}
        Engine of the linear program: an interior-point method, or HiGHS. "auto" takes the one
        that is faster at the size, and HiGHS to finish where the other stops above the gap.
    metric : 2-D array, optional
        ``metric[x, y]``, the cost of output y for database x, with any number of outputs; by
        default the number of changed rows.
    neighbours : array or sparse array, optional
        Which databases must look alike, by default those that differ in one row. Pairs (k, 2) of
        integers or a boolean matrix: the edges of a graph. A matrix of numbers: distances d, and
        ratios are bounded by e^(epsilon d(x, x')) (geo-indistinguishability).
    group : int
        Number of rows in which neighbours may differ.
    delta : float
        Ratios may be exceeded by this much probability: (epsilon, delta)-differential privacy,
        ``hockey_stick(channel, epsilon) <= delta``. Only with the default neighbours.
    exact : bool
        Whether to solve in rational arithmetic, for small programs with the default cost and
        neighbours: to the end, so that gap and engine say nothing and a time limit is refused.

    Returns
    -------
    Solution
        ``.value`` is the distortion of ``.channel``, ``.bound`` a proved lower bound. Where they
        are further apart than ``gap``, ``.converged`` is False and a :class:`GapWarning` says so.
    ExactSolution
        With ``exact``: the optimum as fractions, with its pattern and its proof.

    Notes
    -----
    PD-DP of Wang-Ying-Zhang 2015. From ``prior.epsilon_hat()`` on, E_d is optimal (closed form).
    Below it, cost per interior-point step: N^4 for a dense prior on N databases, n^5 for an
    exchangeable one on n bits, m^4 per distinct row of a product. With a metric or neighbours of
    one's own, N^3 per step for every output, once per orbit of the symmetries that are found.
    With delta, a program of HiGHS's with N^2 n m variables.

    Examples
    --------
    >>> import fastpriv as fp
    >>> prior = fp.Exchangeable.beta_binomial(20, 0.5, 0.8)
    >>> solution = fp.solve_pd_dp(prior, 1.0)
    >>> round(solution.value, 4), solution.method  # E_d has 5.3788
    (3.4676, 'types')

    Where people are among 3 x 3 cells, within a factor of 2 for cells one apart:

    >>> import numpy as np
    >>> cells = np.array([(i, j) for i in range(3) for j in range(3)])
    >>> apart = np.linalg.norm(cells[:, None] - cells, axis=2)
    >>> private = fp.solve_pd_dp([1 / 9] * 9, np.log(2), metric=apart, neighbours=apart)
    >>> round(private.value, 4), round(private.level, 4)
    (1.0219, 0.6931)
    """
    prior = as_prior(prior)
    epsilon = check.real(epsilon, "epsilon", least=0.0)
    task = made_task(epsilon, False, gap, time_limit, solver)
    group = check.integer(group, "group", 1)
    if check.flag(exact, "exact"):
        _check_plain(time_limit, metric, neighbours, group, delta)
        from fastpriv.design.exact.point import solve_exact

        return solve_exact(prior, epsilon, joint=False)
    delta = check.real(delta, "delta", 0.0, 1.0)
    if delta > 0.0:
        if neighbours is not None or group != 1:
            raise InvalidInput("delta goes with the default neighbours: one row, no graph or group")
        return _up(solve_within_delta(prior, metric, delta, task), prior, metric)
    if metric is not None or neighbours is not None or group != 1:
        return _up(solve_general(prior, metric, neighbours, group, task), prior, metric)
    if epsilon >= prior.epsilon_hat():
        return rounded_up(randomised_response(prior.space.sizes, epsilon), prior)
    if epsilon == 0.0:
        return rounded_up(constant_mechanism(prior), prior)
    return rounded_up(solve_program(prior, task), prior)


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
    """Find the mechanism of least expected distortion at an identifiability level.

    Parameters
    ----------
    prior : Distribution or 1-D array
        Law of the databases; a plain vector is that of one row.
    epsilon : float
        Identifiability level, at least ``prior.epsilon_x()``.
    gap : float
        Certified relative gap at which to stop.
    time_limit : float
        Seconds after which to return the best certified solution so far.
    solver : {"auto", "interior", "highs"}
        Engine of the linear program: an interior-point method, or HiGHS. "auto" takes the one
        that is faster at the size, and HiGHS to finish where the other stops above the gap.
    metric : 2-D array, optional
        ``metric[x, y]``, the cost of output y for database x, with any number of outputs; by
        default the number of changed rows.
    neighbours : array or sparse array, optional
        Which databases must look alike, by default those that differ in one row. Pairs (k, 2) of
        integers or a boolean matrix: the edges of a graph. A matrix of numbers: distances d, and
        ratios are bounded by e^(epsilon d(x, x')) (geo-indistinguishability).
    exact : bool
        Whether to solve in rational arithmetic, for small programs with the default cost and
        neighbours: to the end, so that gap and engine say nothing and a time limit is refused.

    Returns
    -------
    Solution
        ``.value`` is the distortion of ``.channel``, ``.bound`` a proved lower bound. Where they
        are further apart than ``gap``, ``.converged`` is False and a :class:`GapWarning` says so.
    ExactSolution
        With ``exact``: the optimum as fractions, with its pattern and its proof.

    Raises
    ------
    Infeasible
        Below ``prior.epsilon_x()``: the prior alone tells neighbours apart that well.

    Notes
    -----
    PD-I of Wang-Ying-Zhang 2015, linear in the joint law. From ``prior.epsilon_tilde()`` on, E_i
    is optimal (Theorem 1). Costs as for :func:`solve_pd_dp`. Within some 1e-14 of that threshold
    E_i has no room to round inwards. Independent rows, and up to 64 databases, get a mechanism
    beside it that meets ``epsilon``. Others, and priors whose own eps_X is as close, get E_i, and
    ``.level`` is above ``epsilon`` by what rounding may have added.

    Examples
    --------
    >>> import fastpriv as fp
    >>> prior = fp.Product([[0.6, 0.4], [0.3, 0.7]])
    >>> fp.solve_pd_i(prior, 2.0).method
    'closed-form'
    """
    prior = as_prior(prior)
    epsilon = check.real(epsilon, "epsilon", least=0.0)
    task = made_task(epsilon, True, gap, time_limit, solver)
    if check.flag(exact, "exact"):
        _check_plain(time_limit, metric, neighbours)
        from fastpriv.design.exact.point import solve_exact

        return solve_exact(prior, epsilon, joint=True)
    if metric is not None or neighbours is not None:
        return _up(solve_general(prior, metric, neighbours, 1, task), prior, metric)
    least = prior.epsilon_x()
    if epsilon < least:
        raise Infeasible(
            f"no mechanism has identifiability {described(epsilon)} for {prior!r}: the prior alone "
            f"has epsilon_x = {described(least)}, which is the least possible"
        )
    tilde = _tilde(prior)
    if epsilon >= tilde:
        # A nearly uniform prior may leave E_i to rounding; then the program has to do.
        with suppress(Infeasible):
            closed = posterior_response(prior, epsilon, tilde)
            if closed.level > epsilon:
                mended = rounded_inwards(prior, epsilon, closed.bound)
                closed = mended if mended is not None and mended.gap <= gap else closed
            return rounded_up(closed, prior)
    return rounded_up(solve_program(prior, task), prior)


def solve_r_pd(n: int, m: int, epsilon: float) -> Solution:
    """Solve the relaxation R-PD: least distortion h(epsilon), a bound on both programs.

    Whatever the prior, no mechanism of identifiability epsilon has less distortion, and none of
    differential privacy epsilon - eps_X.

    Parameters
    ----------
    n, m : int
        Number of rows and of values per row.
    epsilon : float
        Level of the posterior, at least 0.

    Returns
    -------
    Solution
        With E_d as its channel (Wang-Ying-Zhang 2015, Lemma 1).

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.solve_r_pd(10, 2, 0.0).value
    5.0
    """
    return randomised_response(check.row_sizes(n, m), check.real(epsilon, "epsilon", least=0.0))


def _up(solution: Solution, prior: Distribution, metric: ArrayLike | None) -> Solution:
    """Round the value up, of a cost of one's own."""
    cost = None if metric is None else check.metric(metric, prior.space.size)
    return rounded_up(solution, prior, cost)


def _check_plain(
    time_limit: float,
    metric: ArrayLike | None,
    neighbours: ArrayLike | None,
    group: int = 1,
    delta: float = 0.0,
) -> None:
    if time_limit != math.inf:
        raise InvalidInput(
            "an exact program is solved to the end, however long it takes; leave out time_limit, "
            "or exact"
        )
    if metric is not None or neighbours is not None or group != 1 or delta != 0.0:
        raise InvalidInput(
            "exact goes with the Hamming distance and one-row neighbours; leave out metric, "
            "neighbours, group and delta, or exact"
        )


def _tilde(prior: Distribution) -> float:
    """Return eps_tilde or the upper end of its bracket, infinite where neither can be had."""
    try:
        return float(prior.epsilon_tilde())
    except TooLarge:
        return math.inf


_UNSOLVED = "a chain this long has no program, only the bounds of theorems"
#: Most databases of a program without structure.
_DENSE = 1 << 13


def solve_program(prior: Distribution, task: Task) -> Solution:
    """Solve the program in the prior's structure: rows, types or all databases."""
    try:
        solution = _program(prior, task)
    except OutOfTime:  # what needs no program is what there is
        solution = _certify(
            prior, task, constant_mechanism(prior).channel, 0.0, "closed-form", None
        )
    return told(solution, task, why=_UNSOLVED if has_no_program(prior) else "")


def has_no_program(prior: Distribution) -> bool:
    """Whether only theorems bound the optimum: a Markov chain with too many databases."""
    return isinstance(prior, Markov) and prior.space.size > _DENSE


def _program(prior: Distribution, task: Task) -> Solution:
    if isinstance(prior, Product):
        return _by_rows(prior, task)
    if isinstance(prior, Exchangeable):
        types = types_of(Blocks.single(prior.space.n, prior.space.sizes[0]))
        solved = solve_reduced(types, type_weights(types, prior), task)
        channel: AbstractChannel = TypeChannel(types, solved.classes, solved.entries)
        return _certify(prior, task, channel, solved.bound, "types", solved.solver)
    if isinstance(prior, Markov) and has_no_program(prior):
        return _without_program(prior, task)
    if prior.space.size > _DENSE:
        raise TooLarge(
            f"the program of {prior!r} is solved over at most {_DENSE:,} databases, and there are "
            f"{short(prior.space.size)}; use fewer rows, a product or exchangeable prior, or an "
            f"epsilon of at least {'epsilon_tilde()' if task.joint else 'epsilon_hat()'} of the "
            "prior, where no program is needed"
        )
    dense = prior.as_dense("the program")
    types = types_of(swappable_rows(dense.probabilities().reshape(dense.space.sizes)))
    rows = dense.space.rows(np.arange(dense.space.size))
    weights = np.asarray(np.bincount(types.number(rows), dense.probabilities()), dtype=np.float64)
    solved = solve_reduced(types, weights, task)
    channel = Channel(expand(types, solved.classes, solved.entries), dense.space)
    # Products along a chain are rounded.
    bound = solved.bound if prior is dense else lowered(solved.bound, 8.0 * (prior.space.n + 2))
    return _certify(prior, task, channel, bound, "dense", solved.solver)


def _without_program(prior: Markov, task: Task) -> Solution:
    """Long chain: the better of a constant output and E_d, with the bound of Theorem 1.

    E_d at epsilon - eps_X has identifiability epsilon (Wang-Ying-Zhang 2015, Lemma 5).
    """
    safe = task.epsilon - (prior.epsilon_x() if task.joint else 0.0)
    channel = randomised_response(prior.space.sizes, max(safe, 0.0)).channel
    return _certify(prior, task, channel, 0.0, "closed-form", None)


def _by_rows(prior: Product, task: Task) -> Solution:
    """Independent rows: both programs tensorise, so the optimum is the sum over rows."""
    kernels, bounds, solvers = [], [], list[str]()
    for law in prior.distinct:
        matrix, bound, solver = _one_row(law, task, extra=rounding_margin(0.0, prior.space.n))
        kernels.append(RowKernel(matrix))
        bounds.append(bound)
        solvers += [solver] if solver else []
    channel = ProductChannel.of(RowKernels(kernels, prior.assignment))
    # One row that took the interior-point method is worth telling.
    engine = max(solvers, default=None)
    return _certify(prior, task, channel, prior.total(bounds), "rows", engine)


def _one_row(law: Floats, task: Task, extra: float) -> tuple[Floats, float, str | None]:
    m = len(law)
    if m == 1:
        return np.ones((1, 1)), 0.0, None
    if m == 2 and not task.joint and task.solver == SOLVERS[0]:
        return *_one_bit(law, task.epsilon, extra), None
    types = types_of(Blocks(((0,),), (m,)))
    order = types.number(np.arange(m)[:, None])
    weights = np.empty(m)
    weights[order] = law
    solved = solve_reduced(types, weights, task, extra)
    row = Product.of([law], np.zeros(1, dtype=np.int64))
    best, constant = Channel(expand(types, solved.classes, solved.entries)), constant_mechanism(row)
    chosen = best if expected_distance(best, row) <= constant.value else constant.channel
    return chosen.matrix(), solved.bound, solved.solver


def _one_bit(law: Floats, epsilon: float, extra: float) -> tuple[Floats, float]:
    """Solve PD-DP of one bit in closed form: randomised response or a constant.

    Private mechanisms are a polygon in the plane of both chances of a flip. Besides the two
    constants its only vertex below the line between them is randomised response, with the flip
    1/(1 + e^epsilon).
    """
    rare = float(law.min())
    safe = max(0.0, epsilon - rounding_margin(epsilon, 1) - extra)
    flip, best = (math.exp(-level) / (1.0 + math.exp(-level)) for level in (safe, epsilon))
    if rare <= flip:
        matrix = np.zeros((2, 2))
        matrix[:, int(law.argmax())] = 1.0
    else:
        matrix = np.array([[1.0 - flip, flip], [flip, 1.0 - flip]])
    return matrix, lowered(min(rare, best), 8)


def _certify(
    prior: Distribution,
    task: Task,
    channel: AbstractChannel,
    bound: float,
    method: str,
    solver: str | None,
) -> Solution:
    """Keep the best of what is known to be private: the program's mechanism, a constant, E_d.

    The bound is at least what the relaxation R-PD gives for nothing (Theorem 1). At a small level
    of differential privacy it is nearly that of a constant: two databases differ in at most n
    records, so W[x, y] >= e^(-n epsilon) W[z, y] for one fixed z, and so are the distortions.
    """
    sizes, epsilon = prior.space.sizes, task.epsilon
    bound = max(0.0, bound)  # 0 also where the program proved no number
    relaxed = epsilon if task.joint else epsilon + prior.epsilon_x()
    if relaxed < math.inf:
        bound = max(bound, least_distance(sizes, raised(relaxed, 4.0)))
    level = joint_level(channel, prior) if task.joint else neighbour_level(channel)
    made = Solution(expected_distance(channel, prior), bound, channel, level, method)
    others = [constant_mechanism(prior)]
    if task.joint:  # epsilon is at least eps_X, which two ways of rounding may tell differently
        others = [replace(others[0], level=min(prior.epsilon_x(), epsilon))]
    else:
        others.append(randomised_response(sizes, epsilon))
        far = exp_down(-raised(prior.space.n * epsilon, 4.0))
        bound = max(bound, lowered(far * others[0].bound, 4.0))
    if not level <= epsilon or not math.isfinite(made.value):
        made = others[0]
    best = min([made, *others], key=lambda solution: solution.value)
    return replace(best, bound=min(bound, best.value), method=method, solver=solver)


#: Most inputs: a matrix of distances between them has 32 MB.
_MAX_INPUTS = 1 << 11
#: More pairs than this are met one by one as they come near.
_LISTED = 60_000
#: Most entries of the dense factors (2.4 GB).
_MAX_FACTORS = 300_000_000
#: Stretch of the first working set; pairs that a chain implies up to this are left out.
_STRETCH = 1e-2
#: Pairs whose ratio may be e^60 say nothing.
_FAR = 60.0


def solve_general(
    prior: Distribution,
    metric: ArrayLike | None,
    neighbours: ArrayLike | None,
    group: int,
    task: Task,
) -> Solution:
    """Check the arguments, solve, and warn where the gap is not met."""
    dense = prior.as_dense("the program", _MAX_INPUTS)
    size = dense.space.size
    if group > 1 and neighbours is not None:
        raise InvalidInput("give either neighbours or group, not both: group is one of rows")
    cost = hamming_distances(dense.space) if metric is None else check.metric(metric, size)
    if neighbours is None:
        distance = hamming_distances(dense.space, group)
    else:
        distance = distances(neighbours, size)
    solution = solve_metric(dense.probabilities(), cost, distance, dense.space, task)
    return told(solution, task, why=_cramped(distance, task))


def solve_metric(
    prior: Floats, cost: Floats, distance: Floats, space: Space, task: Task
) -> Solution:
    """Solve and certify: see :func:`fastpriv.solve_pd_dp` with ``metric`` or ``neighbours``.

    Parameters
    ----------
    prior : ndarray
        p(x).
    cost : ndarray
        Cost of output y for input x.
    distance : ndarray
        d(x, z), its own shortest paths.
    space : Space
        The inputs.
    task : Task
        Level, program and limits.
    """
    if task.joint:
        _check_feasible(prior, distance, task.epsilon)
        if not prior.all():
            return _beside_impossible(prior, cost, distance, space, task)
    floor = np.minimum(cost.min(axis=1), 0.0)  # costs are counted from 0 on
    offset = math.fsum(prior * floor)
    problem = RatioProblem(prior, cost - floor[:, None], distance, task)
    part = components(distance)
    constant = _constant_of_parts(prior, cost, part, space, problem.least)
    apart = part.max() + 1 == len(prior)  # nothing has to look alike
    free = not (prior[:, None] * problem.cost).any()
    if task.epsilon == 0.0 or apart or cost.shape[1] == 1 or free:
        return replace(constant, method="closed-form")
    try:
        matrix, bound, solver = problem.solve()
    except OutOfTime:
        matrix, bound, solver = None, 0.0, None
    bound = max(bound, 0.0)  # shifted costs are no less
    bound += offset - 4.0 * ULP * (abs(offset) + bound)
    best = constant
    if matrix is not None:
        level = certified_level(matrix, distance, prior if task.joint else None)
        value = math.fsum((prior[:, None] * matrix * cost).reshape(-1))
        if level <= task.epsilon and value < constant.value:
            best = Solution(value, bound, Channel(matrix, space), level, "dense")
    return Solution(
        best.value, min(bound, best.value), best.channel, best.level, "dense", solver=solver
    )


def _cramped(distance: Floats, task: Task) -> str:
    """Say so where rounding is more than the shortest distance leaves room for, in the gap."""
    shortest = float(distance[distance > 0.0].min(initial=1.0))
    room = task.epsilon * shortest
    late = bool(task.stopped) or time.monotonic() > task.deadline
    if late or shortest >= 1.0 or room * task.gap > 4.0 * TOLERANCE:
        return ""
    return (
        f"inputs at a distance of {shortest:.3g} may differ by a factor of 1 + {room:.1e} only, "
        "which rounding spoils; merge inputs so close to each other"
    )


def certified_level(matrix: Floats, distance: Floats, prior: Floats | None = None) -> float:
    """Return the largest ln(V[x, y] / V[z, y]) / d(x, z) over all pairs, rounded up.

    V is the matrix, or p(x) times it where a prior is given: products that may be smaller than any
    double. Columns are divided by powers of two, which changes no ratio and no digit.
    """
    entries, slack = wide(matrix), 0.0
    if prior is not None:
        entries, slack = entries * wide(prior[:, None]), 3.0 * ULP  # two rounded products
    given = entries.to_one(axis=0), entries.mantissa, entries.exponent.astype(np.float64)
    parts = split(
        lambda first, last: kernels.metric_level(*given, distance, slack, first, last),
        len(matrix),
        1,
    )
    return raised(max(parts), 24.0)


def _check_feasible(prior: Floats, distance: Floats, epsilon: float) -> None:
    least = certified_level(prior[:, None], distance)
    if least == math.inf:
        raise Infeasible(
            "no mechanism has a finite identifiability here: a database of probability zero is "
            "related to a possible one, which every output tells from it; leave it out"
        )
    if epsilon < least:
        raise Infeasible(
            f"no mechanism has identifiability {described(epsilon)} here: the prior alone has "
            f"level {described(least)}, which is the least possible"
        )


def _beside_impossible(
    prior: Floats, cost: Floats, distance: Floats, space: Space, task: Task
) -> Solution:
    """Solve over the databases that can occur; to the others none of those is related.

    Posteriors of a database of probability zero are zero whatever it is mapped to, so that its
    cheapest output is as good as any.
    """
    seen = np.flatnonzero(prior)
    within = Space([len(seen)])
    best = solve_metric(prior[seen], cost[seen], distance[np.ix_(seen, seen)], within, task)
    matrix = np.eye(cost.shape[1])[cost.argmin(axis=1)]
    matrix[seen] = best.channel.matrix()
    return replace(best, channel=Channel(matrix, space))


def _constant_of_parts(
    prior: Floats, cost: Floats, part: Ints, space: Space, level: float
) -> Solution:
    """Return the best mechanism that gives one output to all inputs that anything relates.

    At epsilon 0 no other has its level: related inputs have the same row, and the cheapest one
    has a single output.
    """
    charge = prior[:, None] * cost
    expected, size = np.zeros((2, part.max() + 1, cost.shape[1]))
    np.add.at(expected, part, charge)
    np.add.at(size, part, np.abs(charge))
    matrix = np.eye(cost.shape[1])[expected.argmin(axis=1)[part]]
    value = math.fsum((charge * matrix).reshape(-1))
    least = (expected - (len(prior) + 4.0) * ULP * size).min(axis=1)
    bound = math.fsum(least) - 4.0 * ULP * math.fsum(np.abs(least))
    return Solution(value, min(bound, value), Channel(matrix, space), level, "dense")


class RatioProblem:
    """The program, reduced by its symmetries."""

    def __init__(self, prior: Floats, cost: Floats, distance: Floats, task: Task) -> None:
        self.prior, self.cost, self.distance, self.task = prior, cost, distance, task
        self.orbits = Orbits.of(automorphisms(prior, cost, distance), cost.shape[1])
        # Chains of pairs and averages over symmetries round; the repair allows for it.
        self.extra = 32.0 * CHAIN * task.epsilon + 32.0 * ULP
        self.least = certified_level(prior[:, None], distance) if task.joint else 0.0
        margin = (2.0 * TOLERANCE + rounding(task.epsilon, self.extra)) / self._shortest()
        self.margin = margin if self.least + 4.0 * margin < task.epsilon else 0.0

    def _shortest(self) -> float:
        return min(1.0, float(self.distance[self.distance > 0.0].min(initial=1.0)))

    def solve(self) -> tuple[Floats, float, str]:
        """Return W[x, y], the proved lower bound, and the engine."""
        task, orbits = self.task, self.orbits
        outputs, size = len(orbits.outputs), len(self.prior)
        if outputs * size * size > _MAX_FACTORS:
            raise TooLarge.entries(
                f"the factors of {outputs} outputs over {size} inputs after symmetry",
                outputs * size * size,
                "use fewer inputs or outputs, or a prior and a metric with more symmetry",
            )
        if time.monotonic() > task.deadline:
            raise OutOfTime
        if task.joint and self.prior.min() < TINY:
            raise OutOfRange
        weights = self.prior if task.joint else np.ones(size)
        cost = self.cost[:, orbits.outputs].T * (1.0 if task.joint else self.prior)
        rhs = np.asarray(np.bincount(orbits.row, weights), dtype=np.float64)
        inside = np.tile(weights / outputs, (outputs, 1))
        listed = self._listed(outputs)
        if listed is not None:
            point, solver = self._by_pairs(listed, cost, rhs, inside)
        else:
            point, solver = self._by_growth(cost, rhs, inside), "interior"
        # Masses of whole orbits of outputs become entries of one output.
        entry = (point.v.reshape(outputs, size) / orbits.copies[:, None] / weights).reshape(-1)
        shape = Shape(
            np.tile(orbits.row, outputs),
            np.outer(orbits.copies, 1.0 / orbits.sizes[orbits.row]).reshape(-1),
            rhs / orbits.sizes,
            matrix_closed(self.distance),
        )
        constant = np.full(outputs * size, 1.0 / self.cost.shape[1])
        entry = repair(entry, constant, shape, task.epsilon, self.extra)
        matrix = orbits.expand(entry.reshape(outputs, size))
        return matrix / matrix.sum(axis=1, keepdims=True), point.bound, solver

    def _listed(self, outputs: int) -> np.ndarray | None:
        """Return the pairs to list for every output, None where they are too many."""
        needed = spanner(self.distance)
        with np.errstate(over="ignore"):  # an infinite exponent is far, too
            needed &= self.task.epsilon * self.distance <= _FAR
        few = np.count_nonzero(needed) * outputs <= _LISTED
        return needed if few or self.task.solver == "highs" else None

    def _by_pairs(
        self, needed: np.ndarray, cost: Floats, rhs: Floats, inside: Floats
    ) -> tuple[Iterate, str]:
        outputs, size = cost.shape
        source, target = np.nonzero(needed)
        length = np.tile(self.distance[source, target], outputs)
        shift = np.repeat(size * np.arange(outputs), len(source))
        program = Program(
            cost.reshape(-1), rhs, np.tile(self.orbits.row, outputs),
            np.tile(source, outputs) + shift, np.tile(target, outputs) + shift,
            np.exp((self.task.epsilon - self.margin) * length), 0.0, self.margin,
            size * np.arange(outputs + 1), len(source) * np.arange(outputs + 1),
            np.full(outputs, size - 1), inside.reshape(-1), length,
        )  # fmt: skip
        task = self.task
        return engine.solve(program, 0.5 * task.gap, task.deadline, task.solver)

    def _by_growth(self, cost: Floats, rhs: Floats, inside: Floats) -> Iterate:
        task, capped = self.task, np.minimum(self.distance, _FAR / self.task.epsilon)
        cone = growing.Cone(
            np.ascontiguousarray(cost), self.orbits.row, rhs,
            np.exp((task.epsilon - self.margin) * capped),
            np.exp(task.epsilon * capped),
            spanner(self.distance, _STRETCH) & (capped == self.distance),
        )  # fmt: skip
        return growing.solve(cone, inside, 0.8 * task.gap, task.deadline)


#: Most variables of the program.
_MAX_VARIABLES = 200_000
#: Largest level whose ratio is a double.
_MAX_EXPONENT = 700.0


def solve_within_delta(
    prior: Distribution, metric: ArrayLike | None, delta: float, task: Task
) -> Solution:
    """Check the arguments, solve, and warn where the gap is not met."""
    dense = prior.as_dense("the program", 1 << 11)
    space = dense.space
    cost = hamming_distances(space) if metric is None else check.metric(metric, space.size)
    floor = min(float(cost.min()), 0.0)  # every row sums to one, so that a shift is a constant
    solution = _solve_delta(dense.probabilities(), cost - floor, space, delta, task)
    shifted = replace(solution, value=solution.value + floor, bound=solution.bound + floor)
    return told(shifted, task)


def _solve_delta(prior: Floats, cost: Floats, space: Space, delta: float, task: Task) -> Solution:
    """Solve, repair and certify; databases that differ in one row are neighbours."""
    if delta == 1.0:  # anything goes
        matrix, value = (
            np.eye(cost.shape[1])[cost.argmin(axis=1)],
            math.fsum(prior * cost.min(axis=1)),
        )
        return Solution(value, value, Channel(matrix, space), task.epsilon, "closed-form")
    first, second = _neighbour_pairs(space)
    inputs, outputs = cost.shape
    variables = (inputs + len(first)) * outputs
    if variables > _MAX_VARIABLES:
        raise TooLarge.entries(
            "the program at an (epsilon, delta) level", variables, "use fewer databases"
        )
    charge = prior[:, None] * cost
    unit = max(float(charge.max()), 1e-300)
    # A level beyond the largest double is lowered: the program proves nothing there anyway.
    grow = math.exp(min(task.epsilon, _MAX_EXPONENT))
    seconds = max(1e-3, task.deadline - time.monotonic())
    best, bound = _cheapest_output(prior, cost), 0.0
    try:
        answer = minimise(
            np.concatenate([charge.reshape(-1) / unit, np.zeros(len(first) * outputs)]),
            np.zeros(variables),
            _delta_rows(first, second, inputs, outputs, grow, delta),
            seconds,
        )
    except SolverFailure:
        pass  # what needs no program is what there is
    else:
        entries = answer.values[: inputs * outputs].reshape(inputs, outputs)
        matrix = _delta_repaired(entries, best, first, second, grow, delta)
        if (charge * matrix).sum() < (charge * best).sum():
            best = matrix
        duals = np.maximum(-answer.duals[: len(first) * outputs], 0.0).reshape(-1, outputs) * unit
        if task.epsilon <= _MAX_EXPONENT:
            bound = _delta_bound(charge, duals, first, second, grow, delta)
    value = math.fsum((charge * best).reshape(-1))
    lower = min(max(bound, 0.0), value)
    return Solution(value, lower, Channel(best, space), task.epsilon, "dense", solver="highs")


def _neighbour_pairs(space: Space) -> tuple[Ints, Ints]:
    pairs = [(x, z) for x in range(space.size) for z in np.asarray(space.neighbours(x)).tolist()]
    table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def _cheapest_output(prior: Floats, cost: Floats) -> Floats:
    matrix = np.zeros(cost.shape)
    matrix[:, int((prior @ cost).argmin())] = 1.0
    return matrix


def _delta_rows(
    first: Ints, second: Ints, inputs: int, outputs: int, grow: float, delta: float
) -> Rows:
    """Ratios with their excess, sums of excesses, sums of rows."""
    y = np.arange(outputs)
    count = len(first) * outputs
    excess = inputs * outputs + np.arange(count)
    one, two = ((part[:, None] * outputs + y).reshape(-1) for part in (first, second))
    ratios = np.stack([one, two, excess], axis=1).reshape(-1)
    entries = np.tile([1.0, -grow, -1.0], count)
    lengths = np.repeat([3, outputs, outputs], [count, len(first), inputs])
    return Rows(
        np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate([ratios, excess, np.arange(inputs * outputs)]),
        np.concatenate([entries, np.ones(count + inputs * outputs)]),
        np.repeat([-math.inf, -math.inf, 1.0], [count, len(first), inputs]),
        np.repeat([0.0, delta, 1.0], [count, len(first), inputs]),
    )


def _delta_repaired(
    entries: Floats, constant: Floats, first: Ints, second: Ints, grow: float, delta: float
) -> Floats:
    """Make rows sum to one and mix in a constant mechanism until every excess is within delta."""
    matrix = np.maximum(entries, 0.0)
    matrix /= matrix.sum(axis=1, keepdims=True)
    excess = np.maximum(matrix[first] - grow * matrix[second], 0.0).sum(axis=1)
    rounding = (8 * entries.shape[1] + 64) * ULP * (1.0 + grow)
    worst = float(excess.max(initial=0.0)) + rounding
    keep = min(1.0, max(delta - rounding, 0.0) / worst)
    return np.asarray(keep * matrix + (1.0 - keep) * constant)


def _delta_bound(
    charge: Floats, duals: Floats, first: Ints, second: Ints, grow: float, delta: float
) -> float:
    """Lower bound from multipliers of the ratios.

    For l >= 0 and n(x, z) = max_y l(x, z, y), the cost of any mechanism is at least the sum over x
    of min_y (c(x, y) + sum_z l(x, z, y) - e^epsilon sum_z l(z, x, y)), less delta sum n.
    """
    price, size = charge.copy(), np.abs(charge)
    np.add.at(price, first, duals)
    np.add.at(price, second, -grow * duals)
    np.add.at(size, first, duals)
    np.add.at(size, second, grow * duals)
    price -= (int(np.bincount(first).max(initial=0)) * 2 + 16) * ULP * size
    floor, paid = price.min(axis=1), delta * duals.max(axis=1, initial=0.0)
    total = math.fsum(np.abs(floor)) + math.fsum(paid)
    return math.fsum(floor) - math.fsum(paid) - 8.0 * ULP * total
