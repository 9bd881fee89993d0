"""Channels in dp-accounting; needs ``pip install 'fastpriv[dp-accounting]'``."""

from __future__ import annotations

import math
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.extras import optional
from fastpriv._core.logs import round_up
from fastpriv._core.rounding import ULP
from fastpriv.accounting.profile.profile import PrivacyProfile
from fastpriv.channels import AbstractChannel
from fastpriv.errors import InvalidInput

optional("dp_accounting", "dp-accounting")

import attr  # noqa: E402  (dp-accounting brings it)
from dp_accounting import dp_event, privacy_accountant  # noqa: E402
from dp_accounting.pld import pld_pmf, privacy_loss_distribution  # noqa: E402

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from fastpriv.accounting.profile.measures import Measure

__all__ = ["ChannelDpEvent", "ProfileAccountant", "to_pld"]

_Relation = privacy_accountant.NeighboringRelation
_Details = privacy_accountant.PrivacyAccountant.CompositionErrorDetails


@attr.s(frozen=True, slots=True, auto_attribs=True)
class ChannelDpEvent(dp_event.DpEvent):  # type: ignore[misc]
    """One release by a channel of ours, whose neighbours differ in the value of one row.

    Examples
    --------
    >>> import fastpriv as fp
    >>> from fastpriv.adapters.dp_accounting import ChannelDpEvent, ProfileAccountant
    >>> event = ChannelDpEvent(fp.HammingChannel(1_000_000, 4, 0.5))
    >>> round(ProfileAccountant().compose(event, 1000).get_epsilon(1e-14), 6)
    157.682917
    """

    channel: AbstractChannel


class ProfileAccountant(privacy_accountant.PrivacyAccountant):  # type: ignore[misc]
    """Accountant of dp-accounting that composes certified privacy profiles.

    Takes :class:`ChannelDpEvent` (neighbours: REPLACE_ONE), dp-accounting's randomised response
    (REPLACE_ONE or REPLACE_SPECIAL), and compositions of them. What it reports is the upper end
    of a :class:`~fastpriv.accounting.PrivacyProfile`'s bracket: never below the truth, for delta
    down to 1e-300 and counts up to 10^6.

    Parameters
    ----------
    neighboring_relation : dp_accounting.NeighboringRelation
        REPLACE_ONE, that of our channels, if it is not given.

    Examples
    --------
    >>> import dp_accounting
    >>> from fastpriv.adapters.dp_accounting import ProfileAccountant
    >>> event = dp_accounting.RandomizedResponseDpEvent(noise_parameter=0.25, num_buckets=4)
    >>> ten = dp_accounting.SelfComposedDpEvent(event, 10)
    >>> round(ProfileAccountant().compose(ten).get_epsilon(0.0), 6)  # ten times ln 13
    25.649494
    """

    def __init__(self, neighboring_relation: Any = _Relation.REPLACE_ONE) -> None:
        super().__init__(neighboring_relation)
        self._profile, self._private = PrivacyProfile({}), True

    def _maybe_compose(self, event: Any, count: int, do_compose: bool) -> Any:
        if isinstance(event, dp_event.SelfComposedDpEvent):
            return self._maybe_compose(event.event, event.count * count, do_compose)
        if isinstance(event, dp_event.ComposedDpEvent):
            wrong = (self._maybe_compose(part, count, do_compose) for part in event.events)
            return next((details for details in wrong if details is not None), None)
        if isinstance(event, dp_event.NoOpDpEvent):
            return None
        if isinstance(event, dp_event.NonPrivateDpEvent):
            self._private = self._private and not do_compose
            return None
        taken = _RELATIONS.get(type(event))
        if taken is None:
            return _Details(invalid_event=event, error_message="Unsupported event.")
        if self.neighboring_relation not in taken:
            names = " or ".join(f"`{relation.name}`" for relation in taken)
            return _Details(
                invalid_event=event,
                error_message=f"neighboring_relation must be {names} for `{type(event).__name__}`. "
                f"Found {self.neighboring_relation}.",
            )
        # Both may raise; what is wrong is found before anything is composed.
        times = check.integer(count, "count", 0)
        profile = _profile_of(event, self.neighboring_relation)
        if do_compose and profile is not None:
            self._profile = self._profile.compose(profile.self_compose(times))
        elif do_compose:
            self._private = False
        return None

    def get_epsilon(self, target_delta: float) -> float:
        """Least epsilon at a delta, rounded up."""
        return self._profile.epsilon(target_delta).upper if self._private else math.inf

    def get_delta(self, target_epsilon: float) -> float:
        """Least delta at an epsilon of at least 0, which may be infinite, rounded up."""
        level = min(target_epsilon, sys.float_info.max)
        return self._profile.delta(level).upper if self._private else 1.0


_RELATIONS = {
    ChannelDpEvent: (_Relation.REPLACE_ONE,),
    dp_event.RandomizedResponseDpEvent: (_Relation.REPLACE_ONE, _Relation.REPLACE_SPECIAL),
}


@lru_cache(maxsize=16)  # an event is looked at before it is composed
def _profile_of(event: Any, relation: Any) -> PrivacyProfile | None:
    """Return the profile of one release, None for one that shows its input."""
    if isinstance(event, ChannelDpEvent):
        return PrivacyProfile.of(event.channel)
    noise = check.real(event.noise_parameter, "noise_parameter", least=0.0, most=1.0)
    m = check.integer(event.num_buckets, "num_buckets", 1)
    if m == 1:
        return PrivacyProfile({})
    odds = (1.0 - noise) * m / noise if noise > 0.0 else math.inf
    if odds == math.inf:
        return None
    if relation == _Relation.REPLACE_ONE:
        return PrivacyProfile.randomised_response(m, round_up(math.log1p(odds)))
    # A record that is taken out is replaced by one that answers uniformly.
    wrong = noise * (m - 1) / m
    return PrivacyProfile.of([[1.0 - wrong, wrong], [1.0 / m, (m - 1) / m]])


def to_pld(
    mechanism: PrivacyProfile | AbstractChannel | ArrayLike,
    value_discretization_interval: float = 1e-4,
) -> Any:
    """Return the privacy loss distribution of a mechanism or a profile, for dp-accounting.

    Every loss of the upper dominating pair is rounded up to the grid, and the distribution is
    the same in both directions. Several releases are composed by dp-accounting, whose truncation
    of tails can end below the truth (at delta 1e-14 and 1,000 releases by 1.5%): ask the profile
    itself, or :class:`ProfileAccountant`, for guarantees.

    Parameters
    ----------
    mechanism : PrivacyProfile, channel or 2-D array
        What is released.
    value_discretization_interval : float
        Width of the grid.

    Returns
    -------
    dp_accounting.pld.PrivacyLossDistribution
        Of neighbours that differ in one row.

    Examples
    --------
    >>> import fastpriv as fp
    >>> from fastpriv.adapters.dp_accounting import to_pld
    >>> pld = to_pld(fp.HammingChannel(1_000, 4, 0.5)).self_compose(100)
    >>> round(pld.get_epsilon_for_delta(1e-6), 4)
    23.4675
    """
    width = check.real(value_discretization_interval, "value_discretization_interval", least=1e-12)
    profile = mechanism if isinstance(mechanism, PrivacyProfile) else PrivacyProfile.of(mechanism)
    found = privacy_loss_distribution.identity(width)
    for atom, count in profile._parts.items():
        pmf = _pmf(atom.upper, width)
        found = found.compose(
            privacy_loss_distribution.PrivacyLossDistribution(pmf).self_compose(count)
        )
    return found


def _pmf(measure: Measure, width: float) -> Any:
    """Return a measure with its losses rounded up to multiples of a width."""
    if measure.top > 1e9 * width:
        raise InvalidInput(f"losses up to {measure.top:g} need a wider grid than {width:g}")
    steps = np.ceil(measure.losses / width).astype(np.int64)
    steps += steps * width < measure.losses
    masses = np.exp(measure.logs).astype(np.float64) * (1.0 + 4.0 * ULP)
    totals: dict[int, float] = {}
    for step, mass in zip(steps.tolist(), masses.tolist(), strict=True):
        totals[step] = totals.get(step, 0.0) + mass
    return pld_pmf.create_pmf(totals, width, measure.infinite, pessimistic_estimate=True)
