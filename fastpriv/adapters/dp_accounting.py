"""Channels in dp-accounting; needs ``pip install 'fastpriv[dp-accounting]'``."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.extras import optional
from fastpriv._core.logs import round_up
from fastpriv._core.rounding import ULP
from fastpriv.accounting.profile.atoms import Atom
from fastpriv.accounting.profile.profile import PrivacyProfile
from fastpriv.channels import AbstractChannel
from fastpriv.errors import InvalidInput
from fastpriv.measures.arguments import as_channel

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
    >>> ChannelDpEvent([[0.75, 0.25], [0.25, 0.75]]).channel  # a matrix is checked at once
    Channel(Space.hamming(n=1, m=2) -> 2 outputs)
    """

    channel: AbstractChannel = attr.ib(converter=as_channel)


class ProfileAccountant(privacy_accountant.PrivacyAccountant):  # type: ignore[misc]
    """Accountant of dp-accounting that composes certified privacy profiles.

    Takes what ``SUPPORTED`` lists, compositions of them, and :class:`ChannelDpEvent`. What it
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
        if self._open and _replaces(event):
            relation = _Relation.REPLACE_ONE
        times = check.integer(count, "count", 0)
        try:
            # What is wrong is found before anything is composed.
            profile = _profile_of(event, relation)
        except _Unsupported as error:
            return _Details(invalid_event=error.args[0], error_message=error.args[1])
        if do_compose and profile is None:
            self._private = False
        elif do_compose and profile is not None:
            self._profile = self._profile.compose(profile.self_compose(times))
            if profile._parts:
                self._neighboring_relation, self._open = relation, False
        return None

    def get_epsilon(self, target_delta: float) -> float:
        """Least epsilon at a delta, rounded up."""
        return self._profile.epsilon(target_delta).upper if self._private else math.inf

    def get_delta(self, target_epsilon: float) -> float:
        """Least delta at an epsilon of at least 0, which may be infinite, rounded up."""
        level = min(target_epsilon, sys.float_info.max)
        return self._profile.delta(level).upper if self._private else 1.0


class _Unsupported(Exception):
    """An event that is not taken, and why."""


_ADDED = (_Relation.ADD_OR_REMOVE_ONE, _Relation.REPLACE_SPECIAL)
_REPLACED = (_Relation.REPLACE_ONE, _Relation.REPLACE_SPECIAL)
_EVERY = (*_ADDED, _Relation.REPLACE_ONE)
_NAMES = {
    _Relation.ADD_OR_REMOVE_ONE: "add-or-remove",
    _Relation.REPLACE_ONE: "replace-one",
    _Relation.REPLACE_SPECIAL: "replace-special",
}


def _replaces(event: Any) -> bool:
    """Whether an event is about neighbours that differ in the value of one row."""
    if isinstance(event, dp_event.ComposedDpEvent):
        return any(map(_replaces, event.events))
    if isinstance(event, dp_event.SelfComposedDpEvent):
        return _replaces(event.event)
    return isinstance(event, ChannelDpEvent | dp_event.RandomizedResponseDpEvent)


@lru_cache(maxsize=256)
def _cached(event: Any, relation: Any) -> PrivacyProfile | None:
    return _one(event, relation)


def _profile_of(event: Any, relation: Any) -> PrivacyProfile | None:
    """Return the profile of one event, None for one that shows its input."""
    if isinstance(event, dp_event.NonPrivateDpEvent):
        return None
    if isinstance(event, dp_event.NoOpDpEvent):
        return PrivacyProfile({})
    if isinstance(event, dp_event.SelfComposedDpEvent):
        inner = _profile_of(event.event, relation)
        times = check.integer(event.count, "count", 0)
        return inner if inner is None else inner.self_compose(times)
    if isinstance(event, dp_event.ComposedDpEvent):
        parts = [_profile_of(part, relation) for part in event.events]
        known = [part for part in parts if part is not None]
        return PrivacyProfile({}).compose(*known) if len(known) == len(parts) else None
    try:
        return _cached(event, relation)  # an event is looked at before it is composed
    except TypeError:  # it holds lists
        return _one(event, relation)


def _one(event: Any, relation: Any) -> PrivacyProfile | None:
    """Return the profile of one event that is not a composition."""
    for kind, (taken, make) in SUPPORTED.items():
        if type(event) is kind:
            _require(event, relation, taken)
            return make(event, _NAMES[relation])
    names = ", ".join(kind.__name__ for kind in SUPPORTED)
    raise _Unsupported(
        event, f"Unsupported event. Supported are {names}, and compositions of them."
    )


def _require(event: Any, relation: Any, taken: Sequence[Any]) -> None:
    if relation not in taken:
        names = " or ".join(f"`{each.name}`" for each in taken)
        what = f"`{type(event).__name__}`"
        if isinstance(event, dp_event.PoissonSampledDpEvent):
            what += f" of a `{type(event.event).__name__}`"
        raise _Unsupported(
            event, f"neighboring_relation must be {names} for {what}. Found {relation}."
        )


def _channel(event: ChannelDpEvent, relation: str) -> PrivacyProfile:
    return PrivacyProfile.of(event.channel)


def _response(event: Any, relation: str) -> PrivacyProfile | None:
    """Randomised response; a record that is taken out is replaced by a uniform answer."""
    noise = check.real(event.noise_parameter, "noise_parameter", least=0.0, most=1.0)
    m = check.integer(event.num_buckets, "num_buckets", 1)
    if m == 1:
        return PrivacyProfile({})
    odds = (1.0 - noise) * m / noise if noise > 0.0 else math.inf
    if odds == math.inf:
        return None
    if relation == "replace-one":
        return PrivacyProfile.randomised_response(m, round_up(math.log1p(odds)))
    wrong = noise * (m - 1) / m
    result = PrivacyProfile.of([[1.0 - wrong, wrong], [1.0 / m, (m - 1) / m]])
    return PrivacyProfile(result._parts, relation)


def _gaussian(event: Any, relation: str) -> PrivacyProfile | None:
    if event.noise_multiplier == 0:
        return None
    return PrivacyProfile.gaussian(event.noise_multiplier, relation=relation)


def _laplace(event: Any, relation: str) -> PrivacyProfile | None:
    if event.noise_multiplier == 0:
        return None
    return PrivacyProfile.laplace(event.noise_multiplier, relation=relation)


def _discrete_laplace(event: Any, relation: str) -> PrivacyProfile | None:
    if event.noise_parameter == 0:
        return None
    return PrivacyProfile.discrete_laplace(
        event.noise_parameter, event.sensitivity, relation=relation
    )


def _mixture(event: Any, relation: str) -> PrivacyProfile | None:
    shifts = list(event.sensitivities)
    if not any(shifts):
        return PrivacyProfile({})
    if event.standard_deviation == 0:
        return None
    return PrivacyProfile.mixture_of_gaussians(
        event.standard_deviation, shifts, list(event.sampling_probs), relation=relation
    )


def _truncated(event: Any, relation: str) -> PrivacyProfile | None:
    none = 0 in (event.sampling_probability, event.truncated_batch_size, event.dataset_size)
    if event.noise_multiplier == 0 and not none:
        return None
    return PrivacyProfile.truncated_subsampled_gaussian(
        event.dataset_size,
        event.sampling_probability,
        event.truncated_batch_size,
        event.noise_multiplier,
        relation=relation,
    )


def _poisson(event: Any, relation: str) -> PrivacyProfile | None:
    q = check.real(event.sampling_probability, "sampling_probability", least=0.0, most=1.0)
    if q == 0.0:
        return PrivacyProfile({})
    inner, kind = event.event, next(key for key, name in _NAMES.items() if name == relation)
    if relation == "replace-one" and q < 1.0:
        if not isinstance(inner, dp_event.GaussianDpEvent):
            _require(event, kind, _ADDED)
        if inner.noise_multiplier == 0:
            return None
        return PrivacyProfile.gaussian(inner.noise_multiplier, q, relation=relation)
    made = _profile_of(inner, kind)
    try:
        return made if made is None else made.poisson_subsampled(q)
    except InvalidInput as error:
        raise _Unsupported(
            event, f"Unsupported subevent of `PoissonSampledDpEvent`: {error}."
        ) from None


def _tree(event: Any, relation: str) -> PrivacyProfile | None:
    """A record is in at most ceil(log2(steps + 1)) nodes of one tree."""
    counts = event.step_counts if hasattr(event.step_counts, "__len__") else [event.step_counts]
    steps = max((check.integer(count, "step_counts", 0) for count in counts), default=0)
    if steps == 0:
        return PrivacyProfile({})
    if event.noise_multiplier == 0:
        return None
    return PrivacyProfile.gaussian(event.noise_multiplier, relation=relation).self_compose(
        steps.bit_length()
    )


def _zcdp(event: Any, relation: str) -> PrivacyProfile:
    return PrivacyProfile.zcdp(event.rho, event.xi, relation=relation)


#: Events of dp-accounting that are taken, the relations of neighbours they are taken for, and how.
SUPPORTED: dict[type, tuple[tuple[Any, ...], Callable[[Any, str], PrivacyProfile | None]]] = {
    ChannelDpEvent: ((_Relation.REPLACE_ONE,), _channel),
    dp_event.RandomizedResponseDpEvent: (_REPLACED, _response),
    dp_event.GaussianDpEvent: (_EVERY, _gaussian),
    dp_event.LaplaceDpEvent: (_EVERY, _laplace),
    dp_event.DiscreteLaplaceDpEvent: (_EVERY, _discrete_laplace),
    dp_event.MixtureOfGaussiansDpEvent: (_ADDED, _mixture),
    dp_event.TruncatedSubsampledGaussianDpEvent: (_EVERY, _truncated),
    dp_event.PoissonSampledDpEvent: (_EVERY, _poisson),
    dp_event.SingleEpochTreeAggregationDpEvent: ((_Relation.REPLACE_SPECIAL,), _tree),
    dp_event.ZCDpEvent: (_EVERY, _zcdp),
}


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
    result = privacy_loss_distribution.identity(width)
    if not all(isinstance(part, Atom) for part in profile._parts):
        raise InvalidInput("only channels and declared levels become loss distributions here")
    for atom, count in profile._atoms.items():
        pmf = _pmf(atom.upper, width)
        result = result.compose(
            privacy_loss_distribution.PrivacyLossDistribution(pmf).self_compose(count)
        )
    return result


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
