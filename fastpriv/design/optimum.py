"""The best mechanism in a notion: minimum distortion at a level, or minimum level."""

from __future__ import annotations

import math
import warnings
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.search import bisect
from fastpriv._text.numbers import up
from fastpriv.channels import AbstractChannel, Channel
from fastpriv.design.closed_forms import constant_mechanism, distortion_up
from fastpriv.design.problem import ENGINES, Limits, reported
from fastpriv.design.registry import PROGRAMS
from fastpriv.design.tradeoff import privacy_level
from fastpriv.errors import GapWarning, Infeasible, InvalidInput, SolverFailure, described
from fastpriv.measures.distortion import expected_distance
from fastpriv.measures.realised import INFORMATION_ERROR
from fastpriv.notions.registry import COMPARED, DESIGNED, NOTIONS
from fastpriv.priors import Distribution
from fastpriv.priors.base import as_prior
from fastpriv.results import Solution, top

if TYPE_CHECKING:
    from fastpriv.design.exact.solution import ExactSolution

__all__ = ["Optimum", "solve"]

#: Most entries of a matrix that is formed.
_FORMED = 1 << 24
#: Log-probabilities above minus this do not underflow as floats.
_EXPONENT = 700.0
#: Attempts at a slightly lower level or distortion, to stay within the request after rounding.
_TRIES = 8
#: Gap at which levels are searched, so that the search ends at a channel that can be found again.
_GAP = 2e-7
#: Tolerance of searches for a level or a distortion, relative to 1 + its value: twice the bracket
#: of :func:`privacy_level`, whose upper bound may be rounded up.
_SEARCHED = 2e-6
#: Width of a level, relative to 1 + level, from which its lower bound is tried as well.
_WIDE = 1e-5
#: Notions whose optima are linear programs, which are also solved in rational arithmetic.
_LINEAR = ("dp", "identifiability")


@dataclass(frozen=True, repr=False)
class Optimum(Solution):
    """The best mechanism in a notion; see :func:`solve`.

    Attributes
    ----------
    value, bound, channel, level, method, solver
        As in :class:`Solution`; ``value`` is the distortion or the level, whichever is minimised.
    converged : bool
        Whether the requested gap is met, or 1e-6 if a level or a distortion is searched for. If
        not, a :class:`GapWarning` is given.
    distortion : float
        Expected number of records that the channel changes.
    notion : str
        The notion of the level.
    minimised : {"distortion", "level"}
        The quantity that ``value`` and ``bound`` refer to.
    structured : channel
        The channel as the program returned it, in its own structure. It equals ``channel`` unless a
        matrix was requested.
    exact : ExactSolution or None
        The optimum in rational arithmetic, if requested.

    Examples
    --------
    >>> import fastpriv as fp
    >>> best = fp.solve(fp.Uniform(3, 2), "dp", epsilon=1.0)
    >>> best.minimised, round(best.distortion, 6), best.level
    ('distortion', 0.806824, 1.0)
    """

    distortion: float
    notion: str
    minimised: str
    structured: AbstractChannel
    exact: ExactSolution | None = None

    def __repr__(self) -> str:
        return (
            f"Optimum({self.notion}, level={up(self.level)}, distortion={up(self.distortion)}, "
            f"gap={self.gap:.3g} in {self.minimised}, method={self.method!r})"
        )


def solve(
    prior: Distribution | ArrayLike,
    notion: str,
    *,
    epsilon: float | None = None,
    distortion: float | None = None,
    dense: bool = False,
    exact: bool = False,
    gap: float | None = None,
    time_limit: float = math.inf,
    solver: str = "auto",
) -> Optimum:
    """Find the mechanism of minimum distortion at a level, or of minimum level at a distortion.

    Parameters
    ----------
    prior : Distribution or 1-D array
        Distribution of the databases; a vector is the distribution of one record.
    notion : {"dp", "identifiability", "mutual-information", "pml", "individual-capacity"}
        The level to use. The last two have programs over few databases.
    epsilon : float, optional
        Largest level, in nats: the distortion is minimised. Give this or ``distortion``.
    distortion : float, optional
        Largest expected number of changed records: the level is minimised.
    dense : bool
        Whether the channel is a matrix. Level and distortion are then measured on its floats, and
        stay within the request.
    exact : bool
        Whether to solve in rational arithmetic, for "dp" and "identifiability" at a level.
    gap : float, optional
        Certified gap at which a program stops. Default: the program's own gap. Levels at a
        distortion are searched to 1e-6 and take no gap, except "mutual-information".
    time_limit : float
        Seconds for each program that is solved.
    solver : {"auto", "interior", "highs", "first-order"}
        Engine of the linear program, for "dp" and "identifiability" at a level.

    Returns
    -------
    Optimum

    Raises
    ------
    Infeasible
        If no mechanism meets the request.
    SolverFailure
        If the matrix exceeds the request in 64-bit floats, even at a slightly lower level.

    Notes
    -----
    At a level, and for the information at a distortion, one program is solved
    (:func:`solve_pd_dp`, :func:`solve_pd_i`, :func:`solve_pd_mip`, :func:`solve_pd_pml`,
    :func:`solve_pd_capacity`). The minimum level at a distortion comes from :func:`privacy_level`,
    with the channel at its upper bound. The minimum distortion at an information is found by
    bisection over distortions: the minimum information falls with the distortion, so both bounds
    are proved. A matrix has N^2 entries.

    Examples
    --------
    >>> import fastpriv as fp
    >>> prior = fp.Product.iid([0.7, 0.3], 2)
    >>> best = fp.solve(prior, "mutual-information", epsilon=0.2)
    >>> best.level <= 0.2, best.bound <= best.distortion <= best.bound + 1e-6
    (True, True)
    """
    check.word(notion, "notion", DESIGNED)
    if (epsilon is None) == (distortion is None):
        raise InvalidInput("exactly one of epsilon and distortion must be given. Choose one.")
    if gap is not None and epsilon is None and notion != "mutual-information":
        raise InvalidInput(
            "gap must come with epsilon. Levels at a distortion are searched to 1e-6."
        )
    check.flag(dense, "dense")
    if check.flag(exact, "exact") and (epsilon is None or notion not in _LINEAR):
        raise InvalidInput(
            "exact=True must come with dp or identifiability, and epsilon. Give epsilon."
        )
    if exact and (gap is not None or time_limit != math.inf):
        raise InvalidInput(
            "gap and time_limit must be left out with exact=True: an exact optimum has no gap."
        )
    if check.word(solver, "solver", ENGINES) != "auto" and (
        epsilon is None or notion not in _LINEAR or exact
    ):
        raise InvalidInput(
            "solver must be left out here: only dp and identifiability at an epsilon are one "
            "linear program. Use solver='auto'."
        )
    law = as_prior(prior)
    if dense:
        instead = "leave out dense=True (--out) to have its levels and bounds without it"
        check.fits(law.space.size**2, "the channel", instead, _FORMED)
    limits: dict[str, Any] = {"time_limit": time_limit}
    limits |= ({} if gap is None else {"gap": gap}) | (
        {} if solver == "auto" else {"solver": solver}
    )
    problem = Request(notion, law, dense, limits)
    if epsilon is not None:
        level = check.real(epsilon, "epsilon", 0.0)
        if exact:
            return problem.least_distortion_exactly(level)
        if notion == "mutual-information":
            return problem.least_distortion_by_bisection(level)
        return problem.least_distortion(level)
    if notion == "mutual-information":
        return problem.least_information(distortion)
    return problem.least_level(distortion)


@dataclass(frozen=True)
class Request:
    """One notion under one prior."""

    notion: str
    prior: Distribution
    dense: bool
    limits: dict[str, Any]

    def program(self, goal: Any, **limits: float) -> Solution:
        """Solve the notion's program for a level, or for a distortion (information)."""
        return PROGRAMS[self.notion](self.prior, goal, **(self.limits | limits))

    def optimum(self, solution: Solution, minimised: str, bound: float) -> Optimum:
        """Measure the matrix, or use the channel as it is."""
        channel, level = solution.channel, solution.level
        # Programs that return a matrix have certified that matrix.
        if self.dense and (not isinstance(channel, Channel) or self.notion in COMPARED):
            channel = Channel(channel.matrix(), self.prior.space)
            level = top(NOTIONS[self.notion].level(channel, self.prior))
            if NOTIONS[self.notion].information:
                level *= 1.0 + INFORMATION_ERROR
        distortion = expected_distance(channel, self.prior)
        if minimised == "distortion":
            distortion = self.spent(channel, distortion)
        return Optimum(
            value=distortion if minimised == "distortion" else level,
            bound=bound,
            channel=channel,
            level=level,
            method=solution.method,
            solver=solution.solver,
            converged=solution.converged,
            distortion=distortion,
            notion=self.notion,
            minimised=minimised,
            structured=solution.channel,
        )

    def spent(self, channel: AbstractChannel, distortion: float) -> float:
        """Return the distortion of a channel, rounded up if it was minimised."""
        return distortion_up(channel, self.prior, None, distortion)

    def least_distortion(self, epsilon: float) -> Optimum:
        """Solve at a level, or slightly below it if the rounded matrix would exceed it."""
        solution, aim = self.program(epsilon), epsilon
        bound = solution.bound
        for _ in range(_TRIES):
            best = self.optimum(solution, "distortion", bound)
            if best.level <= epsilon:
                return best
            if math.isinf(best.level):  # the smallest probabilities underflowed
                aim = min(0.5 * aim, _EXPONENT / self.prior.space.n)
            else:
                aim = max(aim - 2.0 * (best.level - epsilon), 0.0)
            with suppress(Infeasible):  # nothing is below the prior's own level
                solution = self.program(aim)
        raise SolverFailure(
            f"in 64-bit floats the channel has level {described(best.level)}, above "
            f"{described(epsilon)}; ask for a little more, or leave out dense=True (--out)."
        )

    def least_distortion_exactly(self, epsilon: float) -> Optimum:
        """Solve in rational arithmetic; the bound is rounded down to a float."""
        from fastpriv.design.exact.point import solve_exact

        best = solve_exact(self.prior, epsilon, joint=self.notion == "identifiability")
        bound = float(best.bound)
        if Fraction(bound) > best.bound:
            bound = math.nextafter(bound, -math.inf)
        solution = Solution(float(best.value), bound, best.channel, epsilon, best.method)
        return replace(self.optimum(solution, "distortion", bound), exact=best)

    def least_level(self, distortion: Any) -> Optimum:
        """Find the level, then the channel at its upper bound."""
        limit = self.limits["time_limit"]
        limits = Limits.checked(_SEARCHED, limit, absolute=True)
        level = privacy_level(self.prior, distortion, self.notion, time_limit=limit)
        if math.isinf(level.upper):
            raise Infeasible(
                f"at distortion {described(distortion)} no mechanism has a finite level of "
                f"{self.notion}; allow more distortion, or take a prior without impossible "
                "databases."
            )
        if level.width > _WIDE * (1.0 + level.upper):  # the lower bound may be reached
            best = self.optimum(self.quietly(level.lower), "level", level.lower)
            if best.distortion <= distortion:
                return self.searched(best, limits)
        aim = level.upper
        for k in range(_TRIES):
            best = self.optimum(self.quietly(aim, gap=_GAP), "level", level.lower)
            if best.distortion <= distortion:
                return self.searched(best, limits)
            aim += 10.0 ** (k - 14) * (1.0 + aim)
        raise SolverFailure(
            f"the search ended at level {described(aim)} with distortion "
            f"{described(best.distortion)}, above {described(distortion)}. Allow a little more "
            "distortion."
        )

    def least_information(self, distortion: Any) -> Optimum:
        """Solve the rate-distortion problem."""
        solution = self.program(distortion)
        return self.optimum(solution, "level", solution.bound)

    def quietly(self, goal: Any, **limits: float) -> Solution:
        """Solve a program within a search; the search reports its own gap."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GapWarning)
            return self.program(goal, **limits)

    def searched(self, best: Optimum, limits: Limits) -> Optimum:
        """Compare the bounds of a search with its tolerance, relative to 1 + value."""
        wanted = limits._replace(gap=limits.gap * (1.0 + best.value))
        return reported(replace(best, converged=True), wanted)

    def least_distortion_by_bisection(self, epsilon: float) -> Optimum:
        """Bisect the distortion: the minimum information falls with it."""
        limits = Limits.checked(_SEARCHED, self.limits["time_limit"], absolute=True)
        most = constant_mechanism(self.prior).value  # the distortion of a constant output
        best, bound, step = self._information(0.0), 0.0, _GAP * most

        def above(distortion: float) -> bool:
            nonlocal best, bound
            point = self._information(distortion)
            if point.level <= epsilon:
                best = point
                return False
            bound = distortion if point.bound > epsilon else bound
            return True

        low = 0.0
        if best.level > epsilon:
            best = self._information(most)
            low, _ = bisect(above, 0.0, most, absolute=step)
        while bound < (guess := low - step):  # the last steps were too close to decide
            if self._information(guess).bound > epsilon:
                bound = guess
            step *= 4.0
        spent = self.spent(best.channel, best.distortion)
        best = replace(best, minimised="distortion", value=spent, distortion=spent, bound=bound)
        return self.searched(best, limits)

    def _information(self, distortion: float) -> Optimum:
        """Return a point of the search over distortions."""
        solution = self.quietly(distortion)
        return self.optimum(solution, "level", solution.bound)
