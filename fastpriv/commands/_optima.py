"""The optimum that ``fastpriv solve`` is asked for, and its certificate."""

from __future__ import annotations

import argparse
import math
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fastpriv import __version__
from fastpriv.commands import _arrays, _files
from fastpriv.commands._mechanisms import load_prior, spec_of
from fastpriv.commands._text import down, table, up
from fastpriv.errors import Infeasible, InvalidInput, SolverFailure

if TYPE_CHECKING:
    from fastpriv._validation import Floats
    from fastpriv.distributions import Distribution
    from fastpriv.results import Solution

#: Most entries of a channel that is written out.
_WRITTEN = 1 << 24
#: How often a level or a distortion is asked for a little lower, to stay within it after rounding.
_TRIES = 8


@dataclass
class Optimum:
    """A solution, measured on the channel as it will be written."""

    notion: str
    asked: dict[str, float]
    minimised: str  #: "distortion", or "level"
    bound: float
    level: float
    distortion: float
    solution: Solution
    about: dict[str, Any]

    @property
    def value(self) -> float:
        """What was minimised, of the channel itself."""
        return self.distortion if self.minimised == "distortion" else self.level

    def matrix(self) -> Floats:
        """Return the channel as it is written."""
        return self.solution.channel.matrix()

    def certificate(self) -> dict[str, Any]:
        """Return the optimum as plain numbers and words."""
        channel = self.solution.channel
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
            "method": self.solution.method,
            **self.about,
            "channel": {"is": repr(channel), "spec": spec_of(channel)},
        }

    def __str__(self) -> str:
        spec = spec_of(self.solution.channel)
        rows = [
            [f"{_LEVELS[self.notion]} (nats)", up(self.level)],
            ["distortion", up(self.distortion)],
            [f"least possible {self.minimised}, at least", down(self.bound)],
            ["method", self.solution.method],
        ]
        return "\n".join([table(rows), *([f"The channel is {spec}"] if spec else [])])


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
        from fastpriv import _validation as check

        instead = "leave out --out to have its levels and bounds without it"
        check.fits(prior.space.size**2, "the channel", instead, _WRITTEN)
    task = _Task(given.notion, prior, {"prior": _files.source(given.prior)}, dense, limits)
    if given.notion == "mutual-information":
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
    if given.epsilon is not None and given.notion in ("mutual-information", "inference"):
        raise InvalidInput(f"{given.notion} is minimised at a distortion: give --distortion")


@dataclass
class _Task:
    notion: str
    prior: Distribution
    about: dict[str, Any]
    dense: bool
    limits: dict[str, float]

    def solve(self, epsilon: float, **limits: float) -> Solution:
        from fastpriv.tradeoff.programs import solve_pd_dp, solve_pd_i

        solver = solve_pd_dp if self.notion == "dp" else solve_pd_i
        return solver(self.prior, epsilon, **(self.limits | limits))

    def measured(self, solution: Solution) -> tuple[float, float]:
        """Level and distortion of the numbers that are written, or of the channel itself."""
        from fastpriv.channels import Channel
        from fastpriv.measures.indistinguishability import dp_level, identifiability_level
        from fastpriv.measures.information import distortion

        if not self.dense:
            return solution.level, distortion(solution.channel, self.prior)
        channel = Channel(solution.channel.matrix(), self.prior.space)
        level = (
            dp_level(channel) if self.notion == "dp" else identifiability_level(channel, self.prior)
        )
        return level, distortion(channel, self.prior)

    def least_distortion(self, epsilon: float) -> Optimum:
        """Solve at a level, a little below it where the rounded matrix would exceed it."""
        solution = self.solve(epsilon)
        bound = solution.bound
        level, cost = self.measured(solution)
        aim = epsilon
        for _ in range(_TRIES):
            if level <= epsilon:
                break
            aim -= 2.0 * (level - epsilon)
            with suppress(Infeasible):  # at the prior's own level there is nothing below
                solution = self.solve(max(aim, 0.0))
            level, cost = self.measured(solution)
        asked = {"epsilon": epsilon}
        return Optimum(self.notion, asked, "distortion", bound, level, cost, solution, self.about)

    def least_level(self, distortion: float) -> Optimum:
        """Find the level, then the channel at the proved end of it."""
        from fastpriv.tradeoff.curve import privacy_level

        limit = self.limits.get("time_limit", math.inf)
        best = privacy_level(self.prior, distortion, self.notion, time_limit=limit)
        if math.isinf(best.upper):
            raise Infeasible(
                f"at distortion {distortion!r} no mechanism has a finite {_LEVELS[self.notion]}; "
                "allow more distortion, or take a prior without impossible databases"
            )
        aim = best.upper
        for k in range(_TRIES):
            solution = self.solve(aim, gap=2e-7)
            level, cost = self.measured(solution)
            if cost <= distortion:
                asked = {"distortion": distortion}
                return Optimum(
                    self.notion, asked, "level", best.lower, level, cost, solution, self.about
                )
            aim += 10.0 ** (k - 14) * (1.0 + aim)
        raise SolverFailure(
            f"the channel at level {aim!r} still has distortion {cost!r}, above {distortion!r}"
        )

    def least_information(self, distortion: float) -> Optimum:
        from fastpriv.measures.information import distortion as expected
        from fastpriv.tradeoff.rate_distortion import solve_pd_mip

        solution = solve_pd_mip(self.prior, distortion, **self.limits)
        cost = expected(solution.channel, self.prior)
        return Optimum(
            self.notion,
            {"distortion": distortion},
            "level",
            solution.bound,
            solution.value,
            cost,
            solution,
            self.about,
        )


def _inference(given: argparse.Namespace, limits: dict[str, float]) -> Optimum:
    import numpy as np

    from fastpriv.tradeoff.inference import design_mapping

    joint = _arrays.read(given.joint, "the joint law")
    metric = (
        1.0 - np.eye(joint.shape[1])
        if given.metric is None
        else _arrays.read(given.metric, "the metric")
    )
    found = design_mapping(joint, metric, given.distortion, **limits)
    cost = float((joint.sum(axis=0)[:, None] * found.channel.matrix() * metric).sum())
    about = {
        "joint": _files.source(given.joint),
        "metric": None if given.metric is None else _files.source(given.metric),
        "leakage factor": found.leakage_factor,
        "error bound": found.error_bound,
    }
    asked = {"distortion": given.distortion}
    return Optimum("inference", asked, "level", found.bound, found.level, cost, found, about)
