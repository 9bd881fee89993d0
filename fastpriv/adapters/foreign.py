"""Profiles of steps that other libraries describe, by the library that their class is from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fastpriv.accounting.profile.profile import PrivacyProfile
from fastpriv.errors import InvalidInput, described


def _of_event(event: Any, relation: str | None) -> PrivacyProfile:
    """Return the profile of a DpEvent of dp-accounting."""
    from fastpriv.adapters.dp_events import event_profile  # the library is there: it made the event

    return event_profile(event, relation)


def _of_measurement(measurement: Any, relation: str | None) -> PrivacyProfile:
    """Return the profile of a measurement of OpenDP at distance 1, or of its curve."""
    from fastpriv.adapters.opendp import measurement_profile

    for distance in (1, 1.0):  # of the type that the metric has
        try:
            return measurement_profile(measurement, distance, relation=relation)
        except TypeError:
            continue
    raise InvalidInput(
        "mechanism must be a measurement of OpenDP with numbers as distances; got "
        f"{described(measurement)}. Give fastpriv.adapters.opendp.measurement_profile(...) of it."
    )


#: Functions of a step and the relation of a ledger, by the package of the step's class.
FOREIGN: Mapping[str, Callable[[Any, str | None], PrivacyProfile]] = {
    "dp_accounting": _of_event,
    "opendp": _of_measurement,
}
