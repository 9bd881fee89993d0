"""Levels about a secret S that reaches the output through the database only."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.clock import Clock
from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats
from fastpriv._matrices.leakage import Leakages, matrix_leakages
from fastpriv.auditing.case import Case, Line, amount, ratio, share, wrong
from fastpriv.channels import AbstractChannel, Channel
from fastpriv.errors import InvalidInput
from fastpriv.measures.draws import INFORMATION_ERROR, raised_information
from fastpriv.measures.fano import error_probability_bound
from fastpriv.measures.information import information
from fastpriv.measures.leakage import (
    extreme_level,
    leakage_factor,
    worst_leakage_factor,
)
from fastpriv.measures.maxima import maxima_level
from fastpriv.measures.pointwise.row import law_error
from fastpriv.priors import Dense
from fastpriv.results import Witness, top
from fastpriv.spaces import Space


class SecretCase(Case):
    """The channel from S to the output, with a bound on the errors of its entries."""

    def __init__(self, mechanism: AbstractChannel, joint: Floats, clock: Clock | None) -> None:
        masses = joint.sum(axis=1)
        self.values = np.flatnonzero(masses)
        self._mechanism, self._given = mechanism, joint[self.values] / masses[self.values, None]
        self._masses = masses[self.values] / masses.sum()
        super().__init__(mechanism, Dense.of(self._masses, Space([len(self.values)])), clock)

    @cached_property
    def secret(self) -> Channel:
        """Law of the output for every value of S."""
        outputs = self._mechanism.output_count
        check.fits(len(self.values) * outputs, "the law of the output per value of S", "use fewer")
        space = self._mechanism.space
        laws = [
            self._mechanism.output_distribution(Dense.of(p, space)).probabilities()
            for p in self._given
        ]
        return Channel(np.array(laws))

    @property
    def error(self) -> float:
        """Relative error of the entries."""
        return law_error(self._mechanism) + 16.0 * ULP

    @cached_property
    def odds(self) -> Leakages:
        """How far outputs move the odds of values of S."""
        return matrix_leakages(self.secret.array, self._masses, self.error)

    def told(self) -> Witness:
        """Return the output that leaks most, and the value of S that it speaks for."""
        y = int(self.odds.above.argmax())
        s = self.values[self.secret.array[:, y].argmax()]
        return Witness(self._mechanism.output_row(y), np.array([s]))

    def share(self, worst: bool = False) -> float:
        """Share of the entropy of S that is told, raised past all rounding."""
        factor = worst_leakage_factor if worst else leakage_factor
        told = top(factor(self.secret, self._masses))
        whole = top(self.prior.entropy())
        slack = 8.0 * self.error * (1.0 + math.log(len(self.values)))
        return min(1.0, told * (1.0 + INFORMATION_ERROR) + slack / whole) if whole else 0.0


def checked(joint: object, size: int) -> Floats:
    """Return joint[s, x] as a law over values of S and databases."""
    law = check.law(joint, "joint", 2)  # type: ignore[arg-type]
    if law.shape[1] != size:
        raise InvalidInput(
            f"joint[s, x] must have a column for each of {size} databases, got shape {law.shape}"
        )
    return law


def _case(case: Case) -> SecretCase:
    assert isinstance(case, SecretCase)
    return case


def _information(case: Case) -> float:
    """I(S; Y), raised by what the errors of the computed channel may have taken from it."""
    about = _case(case)
    return raised_information(top(information(about.secret, case.prior)), about.error)


def _strong(case: Case) -> float:
    return extreme_level(_case(case).secret) + 2.0 * _case(case).error


#: The leakage measures, about S.
ABOUT_SECRET: dict[str, Line] = {
    "secret-mutual-information": Line(
        amount("On average an output tells {} about the secret."), _information
    ),
    "secret-pml": Line(
        ratio(
            "No output makes a value of the secret more than {} times as likely as before.",
            "Some output makes a value likely that seemed impossible.",
        ),
        lambda case: float(_case(case).odds.above.max()),
        lambda case: _case(case).told(),
    ),
    "secret-information-privacy": Line(
        ratio(
            "No output makes a value of the secret more than {} times as likely, or as unlikely, "
            "as before.",
            "Some output rules out a value of the secret.",
        ),
        lambda case: max(_case(case).odds.largest()),
    ),
    "secret-strong-dp": Line(
        ratio(
            "Any two values of the secret have every output with chances within a factor of {}.",
            "Some output is possible for one value of the secret and impossible for another.",
        ),
        _strong,
    ),
    "secret-maximal-leakage": Line(
        ratio(
            "Seeing an output multiplies the chance of guessing the secret by at most {} on "
            "average.",
            "",
        ),
        lambda case: maxima_level(_case(case).secret) + _case(case).error,
    ),
    "secret-leakage-factor": Line(
        share("On average an output tells {} of what there is to know about the secret."),
        lambda case: _case(case).share(),
    ),
    "secret-worst-leakage-factor": Line(
        share("The most telling output takes away {} of the uncertainty about the secret."),
        lambda case: _case(case).share(worst=True),
    ),
    "secret-error-probability": Line(
        wrong("the secret"), lambda case: error_probability_bound(_case(case).share(), case.prior)
    ),
}
