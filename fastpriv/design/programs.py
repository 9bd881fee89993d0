"""The exact privacy-distortion programs: least distortion for a privacy level.

The way is chosen by the prior: a closed form where a theorem gives the optimum, one small program
per distinct row for independent rows, a program on types for exchangeable rows, and otherwise a
program over databases, reduced by the rows that may be swapped. Solutions are repaired and
certified before they are returned.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, overload

from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv.design.approximate import solve_within_delta
from fastpriv.design.common import (
    constant_mechanism,
    posterior_response,
    randomised_response,
    rounded_up,
)
from fastpriv.design.metric_privacy import solve_general
from fastpriv.design.solving import solve_program
from fastpriv.design.task import made_task
from fastpriv.design.threshold import rounded_inwards
from fastpriv.errors import Infeasible, InvalidInput, TooLarge, described
from fastpriv.priors import Distribution
from fastpriv.priors.arguments import as_prior
from fastpriv.results import Solution

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
