"""The optimum that ``fastpriv solve`` is asked for, as a certificate and as text."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fastpriv import __version__
from fastpriv._text.numbers import down, up
from fastpriv._text.table import table
from fastpriv.cli import arrays, exact, files
from fastpriv.cli.mechanisms import load_prior, spec_of
from fastpriv.errors import InvalidInput
from fastpriv.notions.registry import NOTIONS

if TYPE_CHECKING:
    from fastpriv.design.exact.solution import ExactSolution
    from fastpriv.results import Solution

#: The task that is no notion of the registry: a mapping that tells least about a secret.
INFERENCE = "inference"
#: Level of a mechanism that tells nothing, but for rounding.
_NOTHING = 1e-9


@dataclass(frozen=True)
class Certificate:
    """What was asked for, the solution, and what it was computed from."""

    notion: str
    asked: dict[str, float]
    minimised: str
    solution: Solution
    distortion: float
    channel: dict[str, Any]
    sources: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as plain numbers and words."""
        best = self.solution
        return {
            "format": "fastpriv certificate",
            "version": 1,
            "fastpriv": __version__,
            "notion": self.notion,
            "asked": self.asked,
            "minimised": self.minimised,
            "value": best.value,
            "bound": best.bound,
            "gap": best.value - best.bound,
            "level": best.level,
            "distortion": self.distortion,
            "method": best.method,
            **self.sources,
            "channel": self.channel,
        }

    def __str__(self) -> str:
        best = self.solution
        rows = [
            [f"{_title(self.notion)} (nats)", up(best.level)],
            ["distortion", up(self.distortion)],
            [f"least possible {self.minimised}, at least", down(best.bound)],
            ["method", best.method],
        ]
        spec = self.channel["spec"]
        lines = [table(rows), *([f"The channel is {spec}"] if spec else [])]
        if "exact" in self.sources:
            proof = self.sources["exact"]
            lines.append(f"The least distortion at ratio {proof['ratio']} is exactly")
            lines.append(f"{proof['value']}, verified in rational arithmetic.")
        if self.notion != "identifiability" and best.level < _NOTHING:
            lines.append("The best output does not depend on the database at all.")
        return "\n".join(lines)


def _title(notion: str) -> str:
    if notion == INFERENCE:
        return "information about S"
    title = NOTIONS[notion].title
    return title if NOTIONS[notion].information else f"{title} level"


def solved(given: argparse.Namespace, dense: bool) -> Certificate:
    """Solve what the options ask for; ``dense`` if the channel will be written as a matrix."""
    _check(given)
    limits = {"gap": given.gap, "time_limit": given.time_limit}
    limits = {name: value for name, value in limits.items() if value is not None}
    if given.notion == INFERENCE:
        return _inference(given, limits)
    from fastpriv.design.optimum import solve

    prior = load_prior(given.prior, given.sizes)
    goals = {"epsilon": given.epsilon, "distortion": given.distortion}
    asked = {name: value for name, value in goals.items() if value is not None}
    best = solve(prior, given.notion, dense=dense, exact=given.exact, **asked, **limits)
    sources = {"prior": files.source(given.prior), "sizes": given.sizes}
    return Certificate(
        given.notion,
        asked,
        best.minimised,
        best,
        best.distortion,
        {"is": repr(best.structured), "spec": spec_of(best.structured)},
        sources if best.exact is None else sources | {"exact": _proof(best.exact)},
    )


def _proof(exact: ExactSolution) -> dict[str, str | bool]:
    """Return what is exact about an optimum: fractions as strings, longer than doubles."""
    return {
        "ratio": str(exact.ratio),
        "value": str(exact.value),
        "verified": exact.verify(),
    }


def _check(given: argparse.Namespace) -> None:
    """Refuse options that a task has no use for, and ask for those it needs."""
    if given.exact:
        exact.check_solve(given)
    wrong, needed = ("prior", "sizes"), "joint"
    if given.notion != INFERENCE:
        wrong, needed = ("joint", "metric"), "prior"
    for name in wrong:
        if getattr(given, name) is not None:
            raise InvalidInput(f"{given.notion} takes no --{name}; see fastpriv solve --help")
    if getattr(given, needed) is None:
        raise InvalidInput(f"{given.notion} needs --{needed}; see fastpriv solve --help")
    if given.epsilon is not None and given.notion == INFERENCE:
        raise InvalidInput(f"{given.notion} is minimised at a distortion: give --distortion")
    searched = given.notion not in ("mutual-information", INFERENCE)
    if None not in (given.gap, given.distortion) and searched:
        raise InvalidInput("levels are searched to 1e-6; --gap is for --epsilon")


def _inference(given: argparse.Namespace, limits: dict[str, float]) -> Certificate:
    """Find the mapping that tells least about S."""
    import numpy as np

    from fastpriv.design.inference import design_mapping
    from fastpriv.measures.distortion import distortion

    joint = arrays.read(given.joint, "the joint law")
    metric = 1.0 - np.eye(joint.shape[1])
    if given.metric is not None:
        metric = arrays.read(given.metric, "the metric")
    best = design_mapping(joint, metric, given.distortion, **limits)
    return Certificate(
        INFERENCE,
        {"distortion": given.distortion},
        "level",
        best,
        distortion(best.channel, joint.sum(axis=0), metric),
        {"is": repr(best.channel), "spec": None},
        {
            "joint": files.source(given.joint),
            "metric": None if given.metric is None else files.source(given.metric),
            "leakage factor": best.leakage_factor,
            "error bound": best.error_bound,
        },
    )
