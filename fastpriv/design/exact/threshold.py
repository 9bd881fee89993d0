"""From which level on E_d is the best differentially private mechanism, exactly."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core.rounding import ULP
from fastpriv.design.exact.extent import Basis, reach, step_over
from fastpriv.design.exact.numbers import exp_bounds, level_bounds, simplest
from fastpriv.design.exact.proof import programs_of
from fastpriv.design.exact.simplex import hamming_rays
from fastpriv.errors import TooLarge
from fastpriv.priors import Distribution, Product
from fastpriv.priors.base import as_prior
from fastpriv.results import Bracket

__all__ = ["hamming_threshold"]

#: Largest prior whose lower bound is read off its vector.
_MAX_DENSE = 1 << 20


def hamming_threshold(prior: Distribution | ArrayLike) -> Bracket:
    """Return the level from which on E_d solves PD-DP, exactly.

    Parameters
    ----------
    prior : Distribution or 1-D array
        Law of the databases; a plain vector is that of one row.

    Returns
    -------
    Bracket
        At every level from ``upper`` on, E_d is optimal; at ``lower`` it is not (unless that is
        0). Some 1e-12 apart where the exact programs can be solved; otherwise ``upper`` is
        ``prior.epsilon_hat()`` and ``lower`` a necessary condition.

    Notes
    -----
    ``prior.epsilon_hat()`` is sufficient, and exact for independent rows. For dependent rows the
    threshold is lower. E_d has one dual candidate, and is optimal where its supplies can be
    routed away from every output; the flows are polynomials in e^epsilon, followed down from
    ``epsilon_hat`` to the first that changes its sign. Needs python-flint; the cost is that of
    one piece of :func:`fastpriv.exact_curve`.

    Necessary: e^epsilon >= mean over rows of 1/p(x_i | x_-i) - m_i + 1, for every database x.

    Examples
    --------
    >>> import fastpriv as fp
    >>> prior = fp.Dense([0.35, 0.25, 0.22, 0.18], [2, 2])
    >>> f"{prior.epsilon_hat():.4f} {fp.hamming_threshold(prior):.4f}"
    '0.4643 [0.4189, 0.4189]'
    """
    prior = as_prior(prior)
    enough = prior.epsilon_hat()
    if isinstance(prior, Product) or enough in (0.0, math.inf):
        return Bracket(enough, enough)
    try:
        _, (program,) = programs_of(prior, joint=False)
        above = exp_bounds(enough)[1]
        start = simplest(above, above * (1 + Fraction(1, 10**9)))
        basis = Basis(program, hamming_rays(program))
        end = reach(basis, start, Fraction(1), up=False)
    except TooLarge:
        return Bracket(_necessary(prior), enough)
    if end is None:
        return Bracket(_necessary(prior), enough)
    if end.root is None:
        return Bracket(0.0, 0.0)
    below = step_over(end.root, up=False, limit=Fraction(1))
    fails = below is not None and not basis.optimal(below)
    least = level_bounds(below)[0] if below is not None and fails else 0.0
    return Bracket(least, min(end.above, enough))


def _necessary(prior: Distribution) -> float:
    """Return a level that E_d's threshold is not below. Cost O(N n); rounded down.

    A database x differs from some y in every row. No arc away from y leaves it, so what reaches
    it must be non-negative: the sum over rows of (e^epsilon + m_i - 1) p(x) less the sum of p
    along row i.
    """
    sizes = prior.space.sizes
    if prior.space.size > _MAX_DENSE or min(sizes) < 2:
        return 0.0
    cube = prior.as_dense("the threshold", _MAX_DENSE).probabilities().reshape(sizes)
    sums = sum(cube.sum(axis=i, keepdims=True) for i in range(len(sizes)))
    needed = float((sums / cube).max()) / len(sizes) - float(np.mean(sizes)) + 1.0
    error = 64 * len(sizes) * max(sizes) * ULP
    return max(0.0, math.log(needed) - error) if needed > 1.0 else 0.0
