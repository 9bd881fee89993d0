"""The optimum that ``fastpriv solve`` is asked for, and its certificate."""

from __future__ import annotations

import argparse
import math
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fastpriv import __version__
from fastpriv._text.numbers import down, up
from fastpriv._text.table import table
from fastpriv.cli import arrays as _arrays
from fastpriv.cli import files as _files
from fastpriv.cli.mechanisms import load_prior, spec_of
from fastpriv.errors import Infeasible, InvalidInput, SolverFailure

if TYPE_CHECKING:
    from fastpriv.channels import AbstractChannel
    from fastpriv.priors import Distribution
    from fastpriv.results import Solution

#: Most entries of a channel that is written out.
_WRITTEN = 1 << 24
#: The logarithm of a chance that floats hold with all digits is above minus this.
_EXPONENT = 700.0
#: How often a level or a distortion is asked for a little lower, to stay within it after rounding.
_TRIES = 8
#: Gap at which levels are searched, so that the channel at the end of a search is found again.
_GAP = 2e-7
#: Width of a level, relative to 1 + level, at which its lower end is tried as well.
_WIDE = 1e-5
#: Level of a mechanism that tells nothing, but for rounding.
_NOTHING = 1e-9


@dataclass(frozen=True)
class Optimum:
    """A solution, measured on the channel as it is written.

    ``channel`` is what was measured; ``spec`` and ``described`` name what the solver found.
    """

    notion: str
    asked: dict[str, float]
    bound: float
    channel: AbstractChannel
    level: float
    distortion: float
    spec: str | None
    described: str
    method: str
    about: dict[str, Any]

    @property
    def minimised(self) -> str:
        """What is not asked for."""
        return "distortion" if "epsilon" in self.asked else "level"

    @property
    def value(self) -> float:
        """What was minimised, of the channel itself."""
        return self.distortion if self.minimised == "distortion" else self.level

    def certificate(self) -> dict[str, Any]:
        """Return the optimum as plain numbers and words."""
        return {
            "format": "fastpriv certificate",
            "version": 1,
            "fastpriv": __version__,
            "notion": self.notion,
            "asked": self.asked,
            "minimised": self.minimised,
            "value": self.value,
            "bound": self.bound,
            "gap": self.value - self.bound,
            "level": self.level,
            "distortion": self.distortion,
            "method": self.method,
            **self.about,
            "channel": {"is": self.described, "spec": self.spec},
        }

    def __str__(self) -> str:
        rows = [
            [f"{_LEVELS[self.notion]} (nats)", up(self.level)],
            ["distortion", up(self.distortion)],
            [f"least possible {self.minimised}, at least", down(self.bound)],
            ["method", self.method],
        ]
        lines = [table(rows), *([f"The channel is {self.spec}"] if self.spec else [])]
        if self.notion != "identifiability" and self.level < _NOTHING:
            lines.append("The best output does not depend on the database at all.")
        return "\n".join(lines)


_LEVELS = {
    "dp": "differential privacy level",
    "identifiability": "identifiability level",
    "mutual-information": "mutual information",
    "inference": "information about S",
}


def find(given: argparse.Namespace, dense: bool) -> Optimum:
    """Solve what the options ask for; ``dense`` if the channel will be written as a matrix."""
    _check(given)
    limits = {"gap": given.gap, "time_limit": given.time_limit}
    limits = {name: value for name, value in limits.items() if value is not None}
    if given.notion == "inference":
        return _inference(given, limits)
    prior = load_prior(given.prior, given.sizes)
    if dense:
        from fastpriv._core import validation as check

        instead = "leave out --out to have its levels and bounds without it"
        check.fits(prior.space.size**2, "the channel", instead, _WRITTEN)
    about = {"prior": _files.source(given.prior), "sizes": given.sizes}
    task = _Task(given.notion, prior, about, dense, limits)
    if given.notion == "mutual-information":
        if given.epsilon is not None:
            return task.least_distortion_to_learn(given.epsilon)
        return task.least_information(given.distortion)
    if given.epsilon is not None:
        return task.least_distortion(given.epsilon)
    return task.least_level(given.distortion)


def _check(given: argparse.Namespace) -> None:
    """Refuse options that a notion has no use for, and miss those it needs."""
    wrong, needed = ("prior", "sizes"), "joint"
    if given.notion != "inference":
        wrong, needed = ("joint", "metric"), "prior"
    for name in wrong:
        if getattr(given, name) is not None:
            raise InvalidInput(f"{given.notion} takes no --{name}; see fastpriv solve --help")
    if getattr(given, needed) is None:
        raise InvalidInput(f"{given.notion} needs --{needed}; see fastpriv solve --help")
    if given.epsilon is not None and given.notion == "inference":
        raise InvalidInput(f"{given.notion} is minimised at a distortion: give --distortion")
    if None not in (given.gap, given.distortion) and given.notion in ("dp", "identifiability"):
        raise InvalidInput("levels are searched to 1e-6; --gap is for --epsilon")


@dataclass
class _Task:
    notion: str
    prior: Distribution
    about: dict[str, Any]
    dense: bool
    limits: dict[str, Any]

    def solve(self, epsilon: float, **limits: Any) -> Solution:
        from fastpriv.design.programs import solve_pd_dp, solve_pd_i

        solver = solve_pd_dp if self.notion == "dp" else solve_pd_i
        solution: Solution = solver(self.prior, epsilon, **(self.limits | limits))
        return solution

    def optimum(self, solution: Solution, asked: dict[str, float], bound: float) -> Optimum:
        """Measure the numbers that are written, or the channel itself."""
        from fastpriv.channels import Channel
        from fastpriv.measures.distortion import expected_distance
        from fastpriv.measures.dp import neighbour_level, posterior_level
        from fastpriv.measures.draws import INFORMATION_ERROR
        from fastpriv.measures.information import information

        channel, level = solution.channel, solution.level
        if self.dense:
            channel = Channel(channel.matrix(), self.prior.space)
            if self.notion == "dp":
                level = neighbour_level(channel)
            elif self.notion == "identifiability":
                level = posterior_level(channel, self.prior)
            else:
                told = information(channel, self.prior)
                assert isinstance(told, float)  # a matrix has no bracket
                level = told * (1.0 + INFORMATION_ERROR)
        return Optimum(
            self.notion,
            asked,
            bound,
            channel,
            level,
            expected_distance(channel, self.prior),
            spec_of(solution.channel),
            repr(solution.channel),
            solution.method,
            self.about,
        )

    def least_distortion(self, epsilon: float) -> Optimum:
        """Solve at a level, a little below it where the rounded matrix would exceed it."""
        solution, aim = self.solve(epsilon), epsilon
        bound = solution.bound
        for _ in range(_TRIES):
            found = self.optimum(solution, {"epsilon": epsilon}, bound)
            if found.level <= epsilon:
                return found
            if math.isinf(found.level):  # the least chances became 0: much lower costs nothing
                aim = min(0.5 * aim, _EXPONENT / self.prior.space.n)
            else:
                aim = max(aim - 2.0 * (found.level - epsilon), 0.0)
            with suppress(Infeasible):  # at the prior's own level there is nothing below
                solution = self.solve(aim)
        raise SolverFailure(
            f"in 64-bit floats the channel has level {found.level!r}, above {epsilon!r}; ask for a "
            "little more, or leave out --out"
        )

    def least_level(self, distortion: float) -> Optimum:
        """Find the level, then the channel at the proved end of it."""
        from fastpriv.design.curve import privacy_level

        limit = self.limits.get("time_limit", math.inf)
        best = privacy_level(self.prior, distortion, self.notion, time_limit=limit)
        if math.isinf(best.upper):
            raise Infeasible(
                f"at distortion {distortion!r} no mechanism has a finite {_LEVELS[self.notion]}; "
                "allow more distortion, or take a prior without impossible databases"
            )
        if best.width > _WIDE * (1.0 + best.upper):  # what the prior alone allows may be enough
            found = self.optimum(self.solve(best.lower), {"distortion": distortion}, best.lower)
            if found.distortion <= distortion:
                return found
        aim = best.upper
        for k in range(_TRIES):
            solution = self.solve(aim, gap=_GAP)
            found = self.optimum(solution, {"distortion": distortion}, best.lower)
            if found.distortion <= distortion:
                return found
            aim += 10.0 ** (k - 14) * (1.0 + aim)
        raise SolverFailure(
            f"at level {aim!r} the distortion is still {found.distortion!r}, above {distortion!r}"
        )

    def least_information(self, distortion: float) -> Optimum:
        """Solve the rate-distortion problem."""
        from fastpriv.design.rate_distortion import solve_pd_mip

        solution = solve_pd_mip(self.prior, distortion, **self.limits)
        return self.optimum(solution, {"distortion": distortion}, solution.bound)

    def least_distortion_to_learn(self, epsilon: float) -> Optimum:
        """Bisect the distortion: the least information falls with it, so both ends are proved."""
        from fastpriv._core import validation as check
        from fastpriv.design.common import constant_mechanism

        asked = {"epsilon": check.real(epsilon, "epsilon", 0.0)}
        most = constant_mechanism(self.prior).value  # where a constant output does
        best = self.least_information(0.0)
        low, high, bound, step = 0.0, 0.0, 0.0, _GAP * most
        if best.level > epsilon:
            best, high = self.least_information(most), most
        while high - low > step:
            middle = 0.5 * (low + high)
            found = self.least_information(middle)
            if found.level <= epsilon:
                best, high = found, middle
            else:
                low = middle
                bound = middle if found.bound > epsilon else bound
        while bound < (guess := low - step):  # the last steps were too close to tell
            if self.least_information(guess).bound > epsilon:
                bound = guess
            step *= 4.0
        return replace(best, asked=asked, bound=bound)


def _inference(given: argparse.Namespace, limits: dict[str, float]) -> Optimum:
    """Find the mapping that tells least about S."""
    import numpy as np

    from fastpriv.design.inference import design_mapping

    joint = _arrays.read(given.joint, "the joint law")
    metric = 1.0 - np.eye(joint.shape[1])
    if given.metric is not None:
        metric = _arrays.read(given.metric, "the metric")
    found = design_mapping(joint, metric, given.distortion, **limits)
    cost = float((joint.sum(axis=0)[:, None] * found.channel.matrix() * metric).sum())
    about = {
        "joint": _files.source(given.joint),
        "metric": None if given.metric is None else _files.source(given.metric),
        "leakage factor": found.leakage_factor,
        "error bound": found.error_bound,
    }
    return Optimum(
        "inference",
        {"distortion": given.distortion},
        found.bound,
        found.channel,
        found.level,
        cost,
        None,
        repr(found.channel),
        found.method,
        about,
    )
