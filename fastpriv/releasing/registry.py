"""Files of the public registry of deployments: read what they state, write what we released.

The registry keeps one YAML file for each deployment of differential privacy. A file states a
variant (pure, approximate, zero-concentrated) and its parameters. :class:`Deployment` computes what
these parameters imply, and names contradictions. :func:`entry` describes a release of ours in the
same form.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fastpriv._core import validation as check
from fastpriv._core.extras import optional
from fastpriv._core.rounding import lowered, root_up
from fastpriv._text import encoding
from fastpriv._text.numbers import down, up
from fastpriv._text.table import table
from fastpriv.accounting.profile.profile import PrivacyProfile
from fastpriv.errors import InvalidInput, described
from fastpriv.results import Bracket, top

if TYPE_CHECKING:
    from fastpriv.releasing.report import ReleaseReport

__all__ = ["Deployment", "Consequence"]

#: Variants, as the registry spells them.
PURE = "Pure DP"
APPROXIMATE = "Approximate DP"
CONCENTRATED = "Zero-concentrated DP"
_VARIANTS = (PURE, APPROXIMATE, CONCENTRATED)
#: Deltas at which epsilon is computed, in addition to the one that a file states.
DELTAS = (1e-6, 1e-10)
#: Numbers of releases that are composed if a deployment makes many.
RELEASES = (1, 10, 100)
#: False positive rate of the attack whose true positive rate is computed.
FPR = 0.01
#: Word for a field that a file leaves out.
NOT_STATED = "not stated"
#: Significant digits of printed numbers.
_DIGITS = 4
#: Words of a privacy unit that covers a part of a person's data only.
_PARTIAL = ("event", "day", "month", "quarter", "trip", "contribution", "tuple", "birth")


@dataclass(frozen=True)
class Consequence:
    """Consequences of the stated parameters for a number of releases.

    Attributes
    ----------
    releases : int
        Number of releases that are composed.
    mechanism : str
        "any" for every mechanism with the stated parameters, or "Gaussian noise".
    epsilon : dict
        Bracket of epsilon for every delta.
    advantage : Bracket
        Largest difference of true and false positive rate of a membership attack, delta(0).
    tpr : Bracket
        Largest true positive rate at a false positive rate of 1 %.
    """

    releases: int
    mechanism: str
    epsilon: dict[float, Bracket]
    advantage: Bracket
    tpr: Bracket

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, for JSON."""
        return {
            "releases": self.releases,
            "mechanism": self.mechanism,
            "epsilon": {f"{delta:g}": encoding.plain(e) for delta, e in self.epsilon.items()},
            "advantage": encoding.plain(self.advantage),
            "tpr": encoding.plain(self.tpr),
        }


@dataclass(frozen=True)
class Deployment:
    """What a file of the public registry of deployments states, and what follows from it.

    Attributes
    ----------
    name : str
        Name of the deployment.
    variant : str
        Variant of differential privacy, as stated.
    unit : str
        Privacy unit, as stated.
    epsilon, delta, rho : float or None
        Parameters that are stated as numbers.
    many : bool
        Whether the deployment makes many releases, each with these parameters.
    gaussian : bool
        Whether the file names Gaussian noise as a mechanism.
    contradictions : tuple of str
        Statements that exclude each other or have no meaning.
    remarks : tuple of str
        Limits of what the parameters promise.

    Notes
    -----
    Parameters are taken as upper bounds that some mechanism attains. Upper bounds of ``implied()``
    hold for every mechanism with these parameters. For zero-concentrated differential privacy with
    Gaussian noise the curve is exact: Gaussian noise of level rho has mu = sqrt(2 rho), also after
    composition. Discrete Gaussian noise differs from it by less than the printed digits if its
    standard deviation is not small.

    Examples
    --------
    >>> import fastpriv as fp
    >>> stated = {"deployment": {
    ...     "basic": {"name": "Example"},
    ...     "dp_variant": {"variant_name": "Pure DP"},
    ...     "privacy_loss": {"privacy_unit": "User-level", "privacy_parameters": {"epsilon": 2}}}}
    >>> deployment = fp.Deployment.from_dict(stated)
    >>> once = deployment.implied()[0]
    >>> round(once.advantage.upper, 4), round(once.tpr.upper, 4)
    (0.7616, 0.0739)
    """

    name: str
    variant: str
    unit: str
    epsilon: float | None
    delta: float | None
    rho: float | None
    many: bool
    gaussian: bool
    contradictions: tuple[str, ...]
    remarks: tuple[str, ...]

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Deployment:
        """Read a YAML file of the registry (extra ``registry``).

        Parameters
        ----------
        path : path
            The file.
        """
        yaml = optional("yaml", "registry")
        target = check.path(path, "path")
        try:
            given = yaml.safe_load(target.read_text(encoding="utf-8"))
        except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as problem:
            first = " ".join(str(problem).split())[:200]
            raise InvalidInput(
                f"{target} must be a YAML file: {first}. Export it from the registry again."
            ) from None
        return cls.from_dict(given)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Deployment:
        """Read the content of a file.

        Parameters
        ----------
        given : mapping
            The content, with the key "deployment".
        """
        deployment = given.get("deployment") if isinstance(given, Mapping) else None
        if not isinstance(deployment, Mapping):
            raise InvalidInput(
                "a file of the registry must be a mapping with the key 'deployment'; got "
                f"{described(given)}. See docs/guides/deployments.md for its form."
            )
        variant = _text(deployment, "dp_variant", "variant_name")
        variant = next((v for v in _VARIANTS if v.lower() == variant.lower()), variant)
        parameters = _field(deployment, "privacy_loss", "privacy_parameters")
        parameters = parameters if isinstance(parameters, Mapping) else {}
        faults: list[str] = []
        epsilon = _number(parameters, "epsilon", faults)
        delta = _number(parameters, "delta", faults)
        rho = _number(parameters, "rho", faults)
        if delta is not None and delta >= 1.0:
            faults.append(f"delta is {delta:g}; it must be below 1 to promise anything.")
        unit = _text(deployment, "privacy_loss", "privacy_unit")
        many = _text(deployment, "deployment_model", "release_type") == "Many releases"
        mechanisms = str(_field(deployment, "implementation", "mechanisms") or "")
        read = cls(
            _text(deployment, "basic", "name"), variant, unit, epsilon, delta, rho, many,
            "gaussian" in mechanisms.lower(), (), (),
        )  # fmt: skip
        faults += read._contradictions()
        return cls(
            read.name, variant, unit, epsilon, delta, rho, many, read.gaussian, tuple(faults),
            tuple(read._remarks()),
        )  # fmt: skip

    def _contradictions(self) -> list[str]:
        """Return statements that exclude each other."""
        faults = []
        if self.variant == PURE and self.delta:
            faults.append(
                f"The variant is pure, which means delta = 0, but delta is {self.delta:g}. The "
                "implied numbers are those of approximate differential privacy."
            )
        if self.variant == PURE and self.rho is not None:
            faults.append("The variant is pure, but a rho of zero-concentrated privacy is stated.")
        if self.variant == APPROXIMATE and self.delta is None:
            faults.append("The variant is approximate, but delta is not stated as a number.")
        if self.variant == CONCENTRATED and self.rho is None:
            faults.append("The variant is zero-concentrated, but rho is not stated as a number.")
        if self.rho is not None and self.epsilon is not None and self.delta:
            faults += self._against_rho(self.rho, self.epsilon, self.delta)
        return faults

    def _against_rho(self, rho: float, epsilon: float, delta: float) -> list[str]:
        reached = _gaussian(rho).epsilon(delta)
        if epsilon < reached.lower:
            return [
                f"epsilon {epsilon:g} at delta {delta:g} is below {down(reached.lower, _DIGITS)}, "
                f"which Gaussian noise of the stated rho reaches."
            ]
        return []

    def _remarks(self) -> list[str]:
        """Return limits of what the parameters promise."""
        remarks = []
        if self.unit == NOT_STATED:
            remarks.append("The file does not state whose data the parameters protect.")
        elif any(word in self.unit.lower() for word in _PARTIAL):
            remarks.append(
                f"The unit is {self.unit!r}: a person with more data than one unit is protected "
                "less. In Python, profile().group(k) has the bounds for k units."
            )
        if self.profile() is None:
            remarks.append("The stated parameters imply no bound.")
        return remarks

    def profile(self) -> PrivacyProfile | None:
        """Return the privacy profile of one release; None if the parameters imply no bound."""
        if self.rho is not None:
            return PrivacyProfile.zcdp(self.rho)
        if self.epsilon is None or (self.delta is None and self.variant != PURE):
            return None
        delta = self.delta or 0.0
        if delta >= 1.0:
            return None
        return PrivacyProfile.from_epsilon_delta(self.epsilon, delta)

    def implied(self) -> list[Consequence]:
        """Return the consequences for one release, and for more if the deployment makes many."""
        profile = self.profile()
        if profile is None:
            return []
        profiles = [("any", profile)]
        if self.rho is not None and self.gaussian:
            profiles.append(("Gaussian noise", _gaussian(self.rho)))
        deltas = sorted({*DELTAS, *([self.delta] if self.delta else [])}, reverse=True)
        counts = RELEASES if self.many else RELEASES[:1]
        return [
            _implied(mechanism, one.self_compose(count), count, deltas)
            for count in counts
            for mechanism, one in profiles
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return what was stated and what follows, as plain numbers and texts."""
        return {
            "name": self.name,
            "variant": self.variant,
            "privacy unit": self.unit,
            "stated": {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho},
            "implied": [implied.to_dict() for implied in self.implied()],
            "contradictions": list(self.contradictions),
            "remarks": list(self.remarks),
        }

    def to_json(self) -> str:
        """Return the content of :meth:`to_dict` as JSON."""
        return encoding.to_json(self.to_dict())

    def __str__(self) -> str:
        """Return contradictions first, then a table of the consequences."""
        named = ("epsilon", self.epsilon), ("delta", self.delta), ("rho", self.rho)
        stated = ", ".join(f"{name} {value:g}" for name, value in named if value is not None)
        lines = [f"{self.name}: {self.variant}, {stated or 'no parameters'}, unit {self.unit}"]
        lines += [f"CONTRADICTION: {fault}" for fault in self.contradictions]
        implied = self.implied()
        if implied:
            deltas = list(implied[0].epsilon)
            head = ["releases", "mechanism", *(f"epsilon at delta {d:g}" for d in deltas)]
            rows = [[*head, "advantage", "TPR at FPR 1 %"]]
            rows += [
                [
                    str(one.releases),
                    one.mechanism,
                    *(up(one.epsilon[d].upper, _DIGITS) for d in deltas),
                    up(one.advantage.upper, _DIGITS),
                    up(one.tpr.upper, _DIGITS),
                ]
                for one in implied
            ]
            lines += ["", "Implied upper bounds:", table(rows, "  "), ""]
        return "\n".join([*lines, *self.remarks])


def _implied(
    mechanism: str, profile: PrivacyProfile, releases: int, deltas: list[float]
) -> Consequence:
    epsilon = {delta: profile.epsilon(delta) for delta in deltas}
    return Consequence(releases, mechanism, epsilon, profile.delta(0.0), profile.tpr(FPR))


def _gaussian(rho: float) -> PrivacyProfile:
    """Return Gaussian noise of level rho: mu = sqrt(2 rho), rounded towards less noise."""
    if rho == 0.0:
        return PrivacyProfile.from_epsilon_delta(0.0, 0.0)
    return PrivacyProfile.gaussian(lowered(1.0 / root_up(2.0 * rho), 4))


def _field(given: Mapping[str, Any], group: str, name: str) -> Any:
    """Return a field of a group; None if either is missing."""
    fields = given.get(group)
    return fields.get(name) if isinstance(fields, Mapping) else None


def _text(given: Mapping[str, Any], group: str, name: str) -> str:
    value = _field(given, group, name)
    return " ".join(str(value).split()) if value else NOT_STATED


def _number(parameters: Mapping[str, Any], name: str, faults: list[str]) -> float | None:
    """Return a parameter that is a non-negative number; other statements are faults."""
    value = parameters.get(name)
    if value is None or value == "":
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        faults.append(f"{name} is stated as {described(value)}, which is not a number.")
        return None
    if isinstance(value, bool) or not 0.0 <= number < math.inf:
        faults.append(f"{name} is stated as {described(value)}; it must be a number of at least 0.")
        return None
    return number


def entry(report: ReleaseReport, name: str, curators: tuple[str, ...], use: str) -> str:
    """Return a release as a YAML file of the registry (extra ``registry``)."""
    level = top(report.levels["dp"])
    charged = report.receipt is not None
    described_mechanism = f"{report.mechanism}, randomised by: {report.unit}"
    content = {
        "url_slug": "-".join(name.lower().split()),
        "status": "draft",
        "tier": None,
        "deployment": {
            "basic": {
                "name": name,
                "data_curators": list(curators),
                "intended_use": use,
                "data_product_type": "Table of randomised records",
                "data_product_region": None,
                "description": f"{report.n} records, each with one of {report.m} values.",
                "publication_date": report.time.date().isoformat(),
                "data_product_sector": None,
            },
            "dp_variant": {
                "variant_name": PURE if math.isfinite(level) else None,
                "data_domain": f"Columns and their values: {report.domain_source}.",
                "unprotected_quantities": "The number of records.",
            },
            "privacy_loss": {
                "privacy_unit": "Record-level",
                "privacy_unit_details": "Neighbouring tables differ in one whole record, which is "
                "replaced.",
                "privacy_parameters": {"epsilon": level if math.isfinite(level) else None},
                "privacy_parameters_details": "The level of the probabilities that were sampled, "
                "rounded up.",
            },
            "deployment_model": {
                "model_name": "Central",
                "actors": "The curator randomises the table and publishes the result.",
                "release_type": "One release",
                "data_source_type": "Static",
                "access_type": "Non-interactive",
            },
            "accounting": {
                "post_processing": None,
                "composition": "Charged to a ledger before sampling." if charged else None,
            },
            "implementation": {
                "mechanisms": described_mechanism,
                "justification": None,
                "randomness": report.randomness,
            },
            "administrative": {"sources": [], "registry_authors": []},
        },
    }
    yaml = optional("yaml", "registry")
    text: str = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100)
    return text
