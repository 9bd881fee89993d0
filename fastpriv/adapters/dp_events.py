"""The profile of each event of dp-accounting, under each relation that has a bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from fastpriv._core import validation as check
from fastpriv._core.extras import optional
from fastpriv._core.rounding import log1p_up, lowered, raised
from fastpriv.accounting.profile.profile import PrivacyProfile
from fastpriv.accounting.profile.repeated import repeat_and_select
from fastpriv.channels import AbstractChannel
from fastpriv.errors import InvalidInput, described
from fastpriv.measures.inputs import as_channel

optional("dp_accounting", "dp-accounting")

import attr  # noqa: E402  (dp-accounting brings it)
from dp_accounting import dp_event, privacy_accountant  # noqa: E402

_Relation = privacy_accountant.NeighboringRelation


@attr.s(frozen=True, slots=True, auto_attribs=True)
class ChannelDpEvent(dp_event.DpEvent):  # type: ignore[misc]
    """One step of a fastpriv channel. Neighbours differ in the value of one record.

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


class Unsupported(Exception):
    """An event that is not supported, with the reason."""


_ADDED = (_Relation.ADD_OR_REMOVE_ONE, _Relation.REPLACE_SPECIAL)
_REPLACED = (_Relation.REPLACE_ONE, _Relation.REPLACE_SPECIAL)
_EVERY = (*_ADDED, _Relation.REPLACE_ONE)
_NAMES = {
    _Relation.ADD_OR_REMOVE_ONE: "add-or-remove",
    _Relation.REPLACE_ONE: "replace-one",
    _Relation.REPLACE_SPECIAL: "replace-special",
}

_KINDS = {name: relation for relation, name in _NAMES.items()}
_FIXED_SIZE = dp_event.SampledWithoutReplacementDpEvent | dp_event.SampledWithReplacementDpEvent
#: Events that wrap another one, whose name belongs into an error.
_WRAPPERS = _FIXED_SIZE | dp_event.PoissonSampledDpEvent | dp_event.RepeatAndSelectDpEvent


#: Noise on sums, for which a subsampled step has a bound if a record is replaced.
_ON_SUMS = (
    dp_event.GaussianDpEvent
    | dp_event.LaplaceDpEvent
    | dp_event.DiscreteLaplaceDpEvent
    | dp_event.ComposedDpEvent
    | dp_event.SelfComposedDpEvent
)


def event_profile(event: Any, relation: str | None) -> PrivacyProfile:
    """Return the profile of an event under a relation, or under that of its neighbours.

    An event that reveals its input has the profile of the identity.
    """
    if not isinstance(event, dp_event.DpEvent):
        raise InvalidInput(
            f"mechanism must be a DpEvent of dp-accounting; got {described(event)}. Give "
            "the event, or a PrivacyProfile."
        )
    kind = relation or (_NAMES[_REPLACED[0]] if replaces(event) else _NAMES[_ADDED[0]])
    try:
        profile = profile_of(event, _KINDS[kind])
    except Unsupported as error:
        raise InvalidInput(f"mechanism: {error.args[-1]}") from None
    revealing = PrivacyProfile.of([[1.0, 0.0], [0.0, 1.0]])
    return revealing.with_relation(kind) if profile is None else profile


def replaces(event: Any) -> bool:
    """Whether the neighbours of an event differ in the value of one record."""
    if isinstance(event, dp_event.ComposedDpEvent):
        return any(map(replaces, event.events))
    if isinstance(event, dp_event.SelfComposedDpEvent):
        return replaces(event.event)
    return isinstance(event, ChannelDpEvent | dp_event.RandomizedResponseDpEvent | _FIXED_SIZE)


@lru_cache(maxsize=256)
def _cached(event: Any, relation: Any) -> PrivacyProfile | None:
    return _one(event, relation)


def profile_of(event: Any, relation: Any) -> PrivacyProfile | None:
    """Return the profile of one event, None for an event that reveals its input."""
    if isinstance(event, dp_event.NonPrivateDpEvent):
        return None
    if isinstance(event, dp_event.NoOpDpEvent):
        return PrivacyProfile({})
    if isinstance(event, dp_event.SelfComposedDpEvent):
        inner = profile_of(event.event, relation)
        times = check.integer(event.count, "count", 0)
        return inner if inner is None else inner.self_compose(times)
    if isinstance(event, dp_event.ComposedDpEvent):
        parts = [profile_of(part, relation) for part in event.events]
        known = [part for part in parts if part is not None]
        return PrivacyProfile({}).compose(*known) if len(known) == len(parts) else None
    try:
        return _cached(event, relation)  # an event is looked at before it is composed
    except TypeError:  # it holds lists
        return _one(event, relation)


def _one(event: Any, relation: Any) -> PrivacyProfile | None:
    """Return the profile of one event that is not a composition."""
    later = LATER.get(type(event).__name__) if isinstance(event, dp_event.DpEvent) else None
    if later is not None:
        return later(event, _NAMES[relation])
    for kind, (taken, make) in SUPPORTED.items():
        if type(event) is kind:
            _require(event, relation, taken)
            return make(event, _NAMES[relation])
    names = ", ".join(kind.__name__ for kind in SUPPORTED)
    raise Unsupported(event, f"Unsupported event. Supported are {names}, and compositions of them.")


def _require(event: Any, relation: Any, taken: Sequence[Any]) -> None:
    if relation not in taken:
        names = " or ".join(f"`{each.name}`" for each in taken)
        what = f"`{type(event).__name__}`"
        if isinstance(event, _WRAPPERS):
            what += f" of a `{type(event.event).__name__}`"
        raise Unsupported(
            event, f"neighboring_relation must be {names} for {what}. Found {relation}."
        )


def _channel(event: ChannelDpEvent, relation: str) -> PrivacyProfile:
    return PrivacyProfile.of(event.channel)


def _response(event: Any, relation: str) -> PrivacyProfile | None:
    """Randomised response; a removed record is replaced by a uniform answer."""
    noise = check.real(event.noise_parameter, "noise_parameter", least=0.0, most=1.0)
    m = check.integer(event.num_buckets, "num_buckets", 1)
    if m == 1:
        return PrivacyProfile({})
    odds = (1.0 - noise) * m / noise if noise > 0.0 else math.inf
    if odds == math.inf:
        return None
    if relation == "replace-one":
        return PrivacyProfile.randomised_response(m, log1p_up(raised(odds, 5.0)))
    wrong = lowered(noise * (m - 1) / m, 16.0)  # the entries beside it are rounded too
    blank = [1.0 / m, (m - 1) / m]
    return PrivacyProfile.of([[1.0 - wrong, wrong], blank]).with_relation(relation)


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
    kind = _KINDS[relation]
    if q < 1.0 and kind is _Relation.REPLACE_ONE and not isinstance(event.event, _ON_SUMS):
        _require(event, kind, _ADDED)
    if isinstance(event.event, dp_event.GaussianDpEvent) and event.event.noise_multiplier:
        # On a sum of vectors of bounded length.
        return PrivacyProfile.gaussian(event.event.noise_multiplier, q, relation=relation)
    return _sampled(event, profile_of(event.event, kind), lambda made: made.poisson_subsampled(q))


def _without_replacement(event: Any, relation: str) -> PrivacyProfile | None:
    made = profile_of(event.event, _Relation.REPLACE_ONE)  # samples have one size
    sizes = event.sample_size, event.source_dataset_size
    return _sampled(
        event, made, lambda one: one.sampled_without_replacement(*sizes, relation=relation)
    )


def _with_replacement(event: Any, relation: str) -> PrivacyProfile | None:
    made = profile_of(event.event, _Relation.REPLACE_ONE)
    sizes = event.sample_size, event.source_dataset_size
    return _sampled(
        event, made, lambda one: one.sampled_with_replacement(*sizes, relation=relation)
    )


def _repeated(event: Any, relation: str) -> PrivacyProfile | None:
    made = profile_of(event.event, _KINDS[relation])
    return _sampled(event, made, lambda one: repeat_and_select(one, event.mean, event.shape))


def _sampled(
    event: Any, made: PrivacyProfile | None, use: Callable[[PrivacyProfile], PrivacyProfile]
) -> PrivacyProfile | None:
    """Return the profile of an event from its subevent's, or raise why it is not supported."""
    try:
        return made if made is None else use(made)
    except InvalidInput as error:
        raise Unsupported(
            event, f"Unsupported subevent or parameters of `{type(event).__name__}`: {error}."
        ) from None


def _tree(event: Any, relation: str) -> PrivacyProfile | None:
    """A record is in at most ceil(log2(steps + 1)) nodes of one tree.

    If it is replaced by another record, each of these moves twice as far.
    """
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


def _epsilon_delta(event: Any, relation: str) -> PrivacyProfile:
    return PrivacyProfile.from_epsilon_delta(event.epsilon, event.delta, relation=relation)


def _discrete_gaussian(event: Any, relation: str) -> PrivacyProfile | None:
    """Discrete Gaussian noise on integers; on vectors of unknown dimension, its zCDP level."""
    sigma = check.real(event.sigma, "sigma", least=0.0)
    distance = check.real(event.sensitivity, "sensitivity", least=0.0)
    if distance == 0.0:
        return PrivacyProfile({})
    if sigma == 0.0:
        return None
    if event.dimension == 1:  # integers differ by an integer
        return PrivacyProfile.discrete_gaussian(sigma, math.floor(distance), relation=relation)
    if event.dimension is not None:
        check.integer(event.dimension, "dimension", 1)
    ratio = raised(distance / sigma, 4.0) * (2.0 if relation == "replace-one" else 1.0)
    return PrivacyProfile.zcdp(raised(0.5 * ratio * ratio, 4.0), relation=relation)


def _exponential(event: Any, relation: str) -> PrivacyProfile:
    return PrivacyProfile.exponential(event.epsilon, relation=relation)


def _permute_and_flip(event: Any, relation: str) -> PrivacyProfile:
    return PrivacyProfile.permute_and_flip(event.epsilon, relation=relation)


#: Events of later versions of dp-accounting, by name, under every relation.
LATER: dict[str, Callable[[Any, str], PrivacyProfile | None]] = {
    "EpsilonDeltaDpEvent": _epsilon_delta,
    "DiscreteGaussianDpEvent": _discrete_gaussian,
    "ExponentialMechanismDpEvent": _exponential,
    "PermuteAndFlipDpEvent": _permute_and_flip,
}
#: Supported events of dp-accounting, with their relations of neighbours and their profiles.
SUPPORTED: dict[type, tuple[tuple[Any, ...], Callable[[Any, str], PrivacyProfile | None]]] = {
    ChannelDpEvent: ((_Relation.REPLACE_ONE,), _channel),
    dp_event.RandomizedResponseDpEvent: (_REPLACED, _response),
    dp_event.GaussianDpEvent: (_EVERY, _gaussian),
    dp_event.LaplaceDpEvent: (_EVERY, _laplace),
    dp_event.DiscreteLaplaceDpEvent: (_EVERY, _discrete_laplace),
    dp_event.MixtureOfGaussiansDpEvent: (_ADDED, _mixture),
    dp_event.TruncatedSubsampledGaussianDpEvent: (_EVERY, _truncated),
    dp_event.PoissonSampledDpEvent: (_EVERY, _poisson),
    dp_event.SampledWithoutReplacementDpEvent: (_EVERY, _without_replacement),
    dp_event.SampledWithReplacementDpEvent: (_EVERY, _with_replacement),
    dp_event.RepeatAndSelectDpEvent: (_EVERY, _repeated),
    dp_event.SingleEpochTreeAggregationDpEvent: (_REPLACED, _tree),
    dp_event.ZCDpEvent: (_EVERY, _zcdp),
}
