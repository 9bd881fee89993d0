"""Channels in dp-accounting; needs ``pip install 'fastpriv[dp-accounting]'``."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.extras import optional
from fastpriv._core.rounding import raised
from fastpriv.accounting.profile.profile import PrivacyProfile
from fastpriv.accounting.profile.steps.finite import FiniteStep
from fastpriv.channels import AbstractChannel
from fastpriv.errors import InvalidInput

optional("dp_accounting", "dp-accounting")

from dp_accounting import privacy_accountant  # noqa: E402
from dp_accounting.pld import pld_pmf, privacy_loss_distribution  # noqa: E402

from fastpriv.adapters.dp_events import ChannelDpEvent, Unsupported, profile_of, replaces  # noqa: E402

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from fastpriv.accounting.profile.discrete import DiscreteLosses

__all__ = ["ChannelDpEvent", "ProfileAccountant", "to_pld"]

_Relation = privacy_accountant.NeighboringRelation
_Details = privacy_accountant.PrivacyAccountant.CompositionErrorDetails


class ProfileAccountant(privacy_accountant.PrivacyAccountant):  # type: ignore[misc]
    """Accountant of dp-accounting that composes certified privacy profiles.

    Takes every event of dp-accounting but ``UnsupportedDpEvent``, under the relations that
    ``fastpriv.adapters.dp_events.SUPPORTED`` lists, compositions of them, and
    :class:`ChannelDpEvent`. The guide on embedding says what is not taken, and why. What it
    reports is the upper end of a :class:`~fastpriv.accounting.PrivacyProfile`'s bracket: never
    below the truth, for delta down to 1e-300 and counts up to 10^9.

    Parameters
    ----------
    neighboring_relation : dp_accounting.NeighboringRelation, optional
        Not given, the first event decides: REPLACE_ONE for channels and randomised response,
        ADD_OR_REMOVE_ONE, the default of dp-accounting, for others.

    Examples
    --------
    >>> import dp_accounting
    >>> from fastpriv.adapters.dp_accounting import ProfileAccountant
    >>> step = dp_accounting.PoissonSampledDpEvent(0.005, dp_accounting.GaussianDpEvent(0.8))
    >>> round(ProfileAccountant().compose(step, 1000).get_epsilon(1e-6), 9)
    2.004106293
    """

    def __init__(self, neighboring_relation: Any = None) -> None:
        super().__init__(neighboring_relation or _Relation.ADD_OR_REMOVE_ONE)
        self._open = neighboring_relation is None
        self._profile, self._private = PrivacyProfile({}), True

    def _maybe_compose(self, event: Any, count: int, do_compose: bool) -> Any:
        relation = self.neighboring_relation
        if self._open and replaces(event):
            relation = _Relation.REPLACE_ONE
        times = check.integer(count, "count", 0)
        try:
            # What is wrong is found before anything is composed.
            profile = profile_of(event, relation)
        except Unsupported as error:
            return _Details(invalid_event=error.args[0], error_message=error.args[1])
        if do_compose and profile is None:
            self._private = False
        elif do_compose and profile is not None:
            self._profile = self._profile.compose(profile.self_compose(times))
            if profile.parts:
                self._neighboring_relation, self._open = relation, False
        return None

    def get_epsilon(self, target_delta: float) -> float:
        """Least epsilon at a delta, rounded up."""
        return self._profile.epsilon(target_delta).upper if self._private else math.inf

    def get_delta(self, target_epsilon: float) -> float:
        """Least delta at an epsilon of at least 0, which may be infinite, rounded up."""
        level = min(target_epsilon, sys.float_info.max)
        return self._profile.delta(level).upper if self._private else 1.0


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
        For the relation of the profile; "replace-one" for channels.

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
    result = privacy_loss_distribution.identity(width)
    for step, count in profile.parts.items():
        if not isinstance(step, FiniteStep):
            raise InvalidInput(
                "a loss distribution is made here of channels and declared levels only. Use "
                "ProfileAccountant for other steps."
            )
        pmf = _pmf(step.upper, width)
        result = result.compose(
            privacy_loss_distribution.PrivacyLossDistribution(pmf).self_compose(count)
        )
    return result


def _pmf(measure: DiscreteLosses, width: float) -> Any:
    """Return a measure with its losses rounded up to multiples of a width."""
    if measure.top > 1e9 * width:
        raise InvalidInput(
            f"value_discretization_interval must be larger: losses up to {measure.top:g} do "
            f"not fit on a grid of {width:g}. Use ProfileAccountant, which needs no grid."
        )
    steps = np.ceil(measure.losses / width).astype(np.int64)
    steps += steps * width < measure.losses
    masses = raised(np.exp(measure.logs).astype(np.float64), 4.0)
    totals: dict[int, float] = {}
    for step, mass in zip(steps.tolist(), masses.tolist(), strict=True):
        totals[step] = totals.get(step, 0.0) + mass
    return pld_pmf.create_pmf(totals, width, measure.infinite, pessimistic_estimate=True)
