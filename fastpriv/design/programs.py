"""The exact privacy-distortion programs: least distortion for a privacy level.

The way is chosen by the prior: a closed form where a theorem gives the optimum, one small program
per distinct row for independent rows, a program on types for exchangeable rows, and otherwise a
program over databases, reduced by the rows that may be swapped. Solutions are repaired and
certified before they are returned.
"""

from __future__ import annotations

import math
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats
from fastpriv._structure.rows import RowKernel, RowKernels
from fastpriv._structure.types import Blocks, expand, types_of
from fastpriv.channels import (
    AbstractChannel,
    Channel,
    HammingChannel,
    PosteriorChannel,
    ProductChannel,
)
from fastpriv.channels.types import TypeChannel, type_weights
from fastpriv.design.common import constant_mechanism, rounding_margin, symmetries
from fastpriv.design.interior import OutOfTime
from fastpriv.design.reduced import solve_reduced
from fastpriv.errors import Infeasible, TooLarge, short
from fastpriv.measures.distortion import expected_distance, hamming_distance
from fastpriv.measures.dp import neighbour_level, posterior_level
from fastpriv.priors import Distribution, Exchangeable, Product
from fastpriv.priors.arguments import as_prior
from fastpriv.results import Solution

if TYPE_CHECKING:
    from fastpriv.design.exact.solution import ExactSolution

__all__ = ["solve_pd_dp", "solve_pd_i", "solve_r_pd"]

#: Programs are solved up to here; h(200) is 1e-87 of a row.
_LARGEST = 200.0
#: Most databases of a program without structure.
_DENSE = 1 << 13


@overload
def solve_pd_dp(
    prior: Distribution | ArrayLike,
    epsilon: float,
    *,
    gap: float = ...,
    time_limit: float = ...,
    exact: Literal[False] = ...,
) -> Solution: ...
@overload
def solve_pd_dp(
    prior: Distribution | ArrayLike,
    epsilon: float,
    *,
    gap: float = ...,
    time_limit: float = ...,
    exact: Literal[True],
) -> ExactSolution: ...
def solve_pd_dp(
    prior: Distribution | ArrayLike,
    epsilon: float,
    *,
    gap: float = 1e-6,
    time_limit: float = math.inf,
    exact: bool = False,
) -> Solution | ExactSolution:
    """Find the mechanism of least expected Hamming distortion at a differential privacy level.

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
    exact : bool
        Whether to solve in rational arithmetic, for small programs: to the end, so that ``gap``
        and ``time_limit`` say nothing.

    Returns
    -------
    Solution
        ``.value`` is the distortion of ``.channel``, ``.bound`` a proved lower bound.
    ExactSolution
        With ``exact``: the optimum as fractions, with its pattern and its proof.

    Notes
    -----
    PD-DP of Wang-Ying-Zhang 2015. From ``prior.epsilon_hat()`` on, E_d is optimal (closed form).
    Below it, cost per interior-point step: N^4 for a dense prior on N databases, n^5 for an
    exchangeable one on n bits, m^4 per distinct row of a product.

    Examples
    --------
    >>> import fastpriv as fp
    >>> prior = fp.Exchangeable.beta_binomial(20, 0.5, 0.8)
    >>> solution = fp.solve_pd_dp(prior, 1.0)
    >>> round(solution.value, 4), solution.method  # E_d has 5.3788
    (3.4676, 'types')
    """
    prior = as_prior(prior)
    epsilon = check.real(epsilon, "epsilon", least=0.0)
    check_limits(gap, time_limit)
    if exact:
        from fastpriv.design.exact.solve import solve_exact

        return solve_exact(prior, epsilon, joint=False)
    if epsilon >= prior.epsilon_hat() or epsilon > _LARGEST:
        # Beyond the largest level of a program E_d errs by less than any double can tell.
        return _e_d(prior.space.sizes, epsilon)
    if epsilon == 0.0:
        return constant_mechanism(prior)
    return _solve(prior, epsilon, False, gap, time.monotonic() + time_limit)


@overload
def solve_pd_i(
    prior: Distribution | ArrayLike,
    epsilon: float,
    *,
    gap: float = ...,
    time_limit: float = ...,
    exact: Literal[False] = ...,
) -> Solution: ...
@overload
def solve_pd_i(
    prior: Distribution | ArrayLike,
    epsilon: float,
    *,
    gap: float = ...,
    time_limit: float = ...,
    exact: Literal[True],
) -> ExactSolution: ...
def solve_pd_i(
    prior: Distribution | ArrayLike,
    epsilon: float,
    *,
    gap: float = 1e-6,
    time_limit: float = math.inf,
    exact: bool = False,
) -> Solution | ExactSolution:
    """Find the mechanism of least expected Hamming distortion at an identifiability level.

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
    exact : bool
        Whether to solve in rational arithmetic, for small programs: to the end, so that ``gap``
        and ``time_limit`` say nothing.

    Returns
    -------
    Solution
        ``.value`` is the distortion of ``.channel``, ``.bound`` a proved lower bound.
    ExactSolution
        With ``exact``: the optimum as fractions, with its pattern and its proof.

    Raises
    ------
    Infeasible
        Below ``prior.epsilon_x()``: the prior alone tells neighbours apart that well.

    Notes
    -----
    PD-I of Wang-Ying-Zhang 2015, linear in the joint law. From ``prior.epsilon_tilde()`` on, E_i
    is optimal (Theorem 1). Costs as for :func:`solve_pd_dp`. Exactly at that threshold E_i has no
    room to round inwards: ``.level`` then says what rounding may have added, some 1e-14.

    Examples
    --------
    >>> import fastpriv as fp
    >>> prior = fp.Product([[0.6, 0.4], [0.3, 0.7]])
    >>> fp.solve_pd_i(prior, 2.0).method
    'closed-form'
    """
    prior = as_prior(prior)
    epsilon = check.real(epsilon, "epsilon", least=0.0)
    check_limits(gap, time_limit)
    if exact:
        from fastpriv.design.exact.solve import solve_exact

        return solve_exact(prior, epsilon, joint=True)
    least = prior.epsilon_x()
    if epsilon < least:
        raise Infeasible(
            f"no mechanism has identifiability {epsilon!r} for {prior!r}: the prior alone has "
            f"epsilon_x = {least!r}, which is the least possible"
        )
    tilde = _tilde(prior)
    if epsilon >= tilde:
        # A nearly uniform prior may leave E_i to rounding; then the program has to do.
        with suppress(Infeasible):
            return _e_i(prior, epsilon, tilde)
    return _solve(prior, epsilon, True, gap, time.monotonic() + time_limit)


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
    return _e_d(check.row_sizes(n, m), check.real(epsilon, "epsilon", least=0.0))


def check_limits(gap: float, time_limit: float) -> None:
    """Check what every program takes: the gap to stop at and the seconds to stop after."""
    check.real(gap, "gap", least=1e-12, most=1.0)
    if time_limit != math.inf:
        check.real(time_limit, "time_limit", least=1e-9)


def _tilde(prior: Distribution) -> float:
    """Return eps_tilde, infinite where it cannot be had: a Markov prior beyond the dense form."""
    try:
        return prior.epsilon_tilde()
    except TooLarge:
        return math.inf


# Closed forms. Levels are lowered by a margin so that the rounded numbers still meet epsilon.


def _e_d(sizes: tuple[int, ...], epsilon: float) -> Solution:
    safe = max(0.0, epsilon - rounding_margin(epsilon, len(sizes)))
    channel = HammingChannel(len(sizes), sizes, safe)
    value = hamming_distance(RowKernels.symmetric(sizes, safe))
    best = hamming_distance(RowKernels.symmetric(sizes, epsilon))
    return Solution(value, best * (1.0 - 8 * ULP), channel, epsilon, "closed-form")


def _e_i(prior: Distribution, epsilon: float, tilde: float) -> Solution:
    best = hamming_distance(RowKernels.symmetric(prior.space.sizes, epsilon))
    margin = rounding_margin(epsilon, prior.space.n)
    channel = PosteriorChannel._near(prior, max(epsilon - margin, 0.0))
    level = max(posterior_level(channel, prior), epsilon)
    if epsilon - margin < tilde:
        # Exactly at the threshold there is nowhere to retreat to: say what rounding may add.
        level += 2.0 * margin
    value = expected_distance(channel, prior)
    return Solution(value, best * (1.0 - 8 * ULP), channel, level, "closed-form")


# Programs.


def _solve(
    prior: Distribution, epsilon: float, joint: bool, gap: float, deadline: float
) -> Solution:
    try:
        return _program(prior, epsilon, joint, gap, deadline)
    except OutOfTime:  # what needs no program is what there is
        return _certify(
            prior, epsilon, joint, constant_mechanism(prior).channel, 0.0, "closed-form"
        )


def _program(
    prior: Distribution, epsilon: float, joint: bool, gap: float, deadline: float
) -> Solution:
    if isinstance(prior, Product):
        return _rows(prior, epsilon, joint, gap, deadline)
    if isinstance(prior, Exchangeable):
        types = types_of(Blocks.single(prior.space.n, prior.space.sizes[0]))
        weights = type_weights(types, prior)
        classes, entries, bound = solve_reduced(types, weights, epsilon, joint, gap, deadline, 0.0)
        channel: AbstractChannel = TypeChannel(types, classes, entries)
        return _certify(prior, epsilon, joint, channel, bound, "types")
    if prior.space.size > _DENSE:
        raise TooLarge(
            f"the program of {prior!r} is solved over at most {_DENSE:,} databases, and there are "
            f"{short(prior.space.size)}; use fewer rows, a product or exchangeable prior, or an "
            f"epsilon of at least {'epsilon_tilde()' if joint else 'epsilon_hat()'} of the prior, "
            "where no program is needed"
        )
    dense = prior._dense("the program")
    types = types_of(symmetries(dense))
    rows = dense.space.rows(np.arange(dense.space.size))
    weights = np.asarray(np.bincount(types.number(rows), dense._vector()), dtype=np.float64)
    classes, entries, bound = solve_reduced(types, weights, epsilon, joint, gap, deadline, 0.0)
    channel = Channel(expand(types, classes, entries), dense.space)
    return _certify(dense, epsilon, joint, channel, bound, "dense")


def _rows(prior: Product, epsilon: float, joint: bool, gap: float, deadline: float) -> Solution:
    """Independent rows: both programs tensorise, so the optimum is the sum over rows."""
    found, bounds = [], []
    solve_row = partial(_one_row, epsilon=epsilon, joint=joint, gap=gap, deadline=deadline)
    for law in prior._laws:
        matrix, bound = solve_row(law, extra=rounding_margin(0.0, prior.space.n))
        found.append(RowKernel(matrix))
        bounds.append(bound)
    channel = ProductChannel._trusted(RowKernels(found, prior._assignment))
    return _certify(prior, epsilon, joint, channel, prior._sum(bounds), "rows")


def _one_row(
    law: Floats, epsilon: float, joint: bool, gap: float, deadline: float, extra: float
) -> tuple[Floats, float]:
    m = len(law)
    if m == 1:
        return np.ones((1, 1)), 0.0
    types = types_of(Blocks(((0,),), (m,)))
    order = types.number(np.arange(m)[:, None])
    weights = np.empty(m)
    weights[order] = law
    classes, entries, bound = solve_reduced(types, weights, epsilon, joint, gap, deadline, extra)
    row = Product._trusted([law], np.zeros(1, dtype=np.int64))
    best, constant = Channel(expand(types, classes, entries)), constant_mechanism(row)
    found = best if expected_distance(best, row) <= constant.value else constant.channel
    return found.matrix(), bound


def _certify(
    prior: Distribution,
    epsilon: float,
    joint: bool,
    channel: AbstractChannel,
    bound: float,
    method: str,
) -> Solution:
    """Keep the best of what is known to be private: the program's mechanism, a constant, E_d.

    The bound is at least what the relaxation R-PD gives for nothing (Theorem 1).
    """
    sizes = prior.space.sizes
    relaxed = epsilon if joint else epsilon + prior.epsilon_x()
    if relaxed < math.inf:
        free = hamming_distance(RowKernels.symmetric(sizes, relaxed))
        bound = max(bound, free * (1.0 - 1e-12))
    level = posterior_level(channel, prior) if joint else neighbour_level(channel)
    level += rounding_margin(0.0, prior.space.n)
    found = Solution(expected_distance(channel, prior), bound, channel, min(level, epsilon), method)
    others = [constant_mechanism(prior)]
    if joint:
        least = prior.epsilon_x()
        others = [Solution(others[0].value, bound, others[0].channel, least, method)]
    else:
        others.append(_e_d(sizes, epsilon))
    if not level <= epsilon + rounding_margin(0.0, prior.space.n) or not math.isfinite(found.value):
        found = others[0]
    best = min([found, *others], key=lambda solution: solution.value)
    return Solution(best.value, min(bound, best.value), best.channel, best.level, method)
