"""Kinds of releases as plain lists, for files that outlive the process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import pairwise
from typing import Any

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.defined import load
from fastpriv._core.validation import Floats
from fastpriv.accounting.profile.composition import RenyiStep
from fastpriv.accounting.profile.discrete import Step
from fastpriv.accounting.profile.losses import ContinuousStep
from fastpriv.accounting.profile.parallel import Largest
from fastpriv.accounting.profile.relations import amount_of_noise
from fastpriv.accounting.profile.steps.allocation import Allocated, OneOf, Selected
from fastpriv.accounting.profile.steps.finite import (
    FiniteStep,
    FixedSizeSample,
    SampledFinite,
    discrete_gaussian,
    discrete_laplace,
    from_envelope,
    revealed,
)
from fastpriv.accounting.profile.steps.gaussian import GaussianMixture, GaussianNoise
from fastpriv.accounting.profile.steps.groups import Grouped, Replaced
from fastpriv.accounting.profile.steps.laplace import Interval, PermuteAndFlip
from fastpriv.accounting.profile.steps.sampling import Blend, Symmetrised
from fastpriv.accounting.profile.steps.shuffling import Shuffled
from fastpriv.channels import AbstractChannel
from fastpriv.errors import InvalidInput, described, unread

#: How far probabilities that were rounded outwards may be from those of distributions.
_SUMMED = 1e-6
#: Most kinds of steps that a title names.
_NAMED = 2


def plain(part: Step, curves: bool = False) -> list[Any]:
    """Return what a release is, exactly, as lists, numbers and words.

    Parameters
    ----------
    part : release
        What to write.
    curves : bool
        Whether to keep only the curves of channels: enough for upper bounds, and small.
    """
    if isinstance(part, FiniteStep) and part.source is not None and not curves:
        with suppress(InvalidInput):  # else the channel does not say what defines it
            return ["channel", part.source.channel.to_dict(), part.source.slack, part.drawn]
    if isinstance(part, FixedSizeSample):
        reached = None if part.reached is None else plain(part.reached, curves)
        return ["without-replacement", part.q, plain(part.atom, curves), reached]
    if isinstance(part, Symmetrised):
        attained = None if part.attained_pair is None else plain(part.attained_pair)
        return ["symmetrised", [plain(pair) for pair in part.sampled], list(part.weights), attained]
    if type(part) is SampledFinite:
        return ["sampled", part.q, plain(part.atom, curves)]
    if isinstance(part, Blend):
        attained = None if part.attained_pair is None else plain(part.attained_pair)
        pairs = [plain(pair) for pair in part.pairs]
        return ["blend", pairs, list(part.weights), part.slack, attained]
    if isinstance(part, Largest):
        return ["largest", [each.to_dict() for each in part.profiles]]
    if isinstance(part, Grouped):
        return ["group", plain(part.step, curves), part.k]
    if isinstance(part, Replaced):
        return ["replaced", plain(part.step, curves)]
    if isinstance(part, Selected):
        return ["selected", plain(part.step, curves), part.t, part.k]
    if type(part) is OneOf:
        return ["one-of", plain(part.step, curves), part.t]
    kind, *rest = part.key
    if kind == "laws":
        rest = [np.frombuffer(lines).reshape(-1, 2).tolist() for lines in rest]
    if isinstance(part, FiniteStep) and part.drawn is not None and not curves:
        rest.append(part.drawn)
    return [kind, *_listed(rest)]


def title(parts: Mapping[Step, int]) -> str:
    """Return the steps of a composition in words."""
    if not parts:
        return "no steps"
    if len(parts) > _NAMED:
        return f"{sum(parts.values()):,} steps of {len(parts)} kinds"
    return ", ".join(
        f"{count:,} x {_title(part)}" if count > 1 else _title(part)
        for part, count in parts.items()
    )


def _title(part: Step) -> str:
    """Return what a step is, in words."""
    if isinstance(part, FiniteStep) and part.source is not None:
        return repr(part.source.channel)
    if isinstance(part, Selected):
        return f"{_title(part.step)}, {part.k} of {part.t} batches"
    if type(part) is OneOf:
        return f"{_title(part.step)}, one of {part.t} batches"
    if isinstance(part, Grouped):
        return f"{_title(part.step)}, groups of {part.k} records"
    kind, *rest = part.key
    if kind in _TITLES:
        return _TITLES[kind](*rest)
    inner = getattr(part, "atom", getattr(part, "step", None))
    if isinstance(inner, Step):
        return f"{_title(inner)}, {kind.replace('-', ' ')}"
    return str(kind).replace("-", " ")


def _sampled_at(q: float) -> str:
    return "" if q == 1.0 else f", sampled with probability {q:.3g}"


def _mixture_title(sigma: float, up: Any, down: Any) -> str:
    if len(up) == 1 and up[0][0] == 1.0 and down in ((), up):
        return f"Gaussian noise, multiplier {sigma:g}{_sampled_at(up[0][1])}"
    return f"mixture of Gaussians of deviation {sigma:g}"


def _response_title(m: int, epsilon: float, delta: float) -> str:
    if delta > 0.0:
        return f"({epsilon:g}, {delta:g})-DP"
    return f"randomised response, {m} values, epsilon {epsilon:g}"


_TITLES: dict[str, Callable[..., str]] = {
    "normal": lambda sigma: f"Gaussian noise, multiplier {sigma:g}",
    "mixtures": _mixture_title,
    "laplace": lambda e, q: f"Laplace noise, multiplier {1.0 / e:g}{_sampled_at(q)}",
    "range": lambda e, q: f"bounded range {e:g}{_sampled_at(q)}",
    "discrete-gaussian": lambda sigma, _: f"discrete Gaussian noise {sigma:g}",
    "discrete-laplace": lambda a, _: f"discrete Laplace noise, parameter {a:g}",
    "response": _response_title,
    "revealed": lambda _, high: f"revealed with probability {high:.3g}",
    "laws": lambda *_: "finite mechanism",
    "allocation": lambda sigma, t, *_: f"Gaussian noise, multiplier {sigma:g}, one of {t} batches",
    "shuffled": lambda laws, n, *_: f"messages of {n:,} users, shuffled",
    "renyi": lambda orders, _, rho, xi: "Renyi bounds" if orders or xi else f"zCDP {rho:g}",
}


def _listed(value: Any) -> Any:
    """Return tuples as lists, all the way down."""
    return [_listed(each) for each in value] if isinstance(value, tuple | list) else value


def counted(releases: Iterable[tuple[Any, int]]) -> dict[Step, int]:
    """Return the parts that are written and their counts; one that stands twice counts twice."""
    result: dict[Step, int] = {}
    for given, count in releases:
        part = part_of(given)
        result[part] = result.get(part, 0) + count
    return result


def part_of(given: Any) -> Step:
    """Return the release that was written."""
    try:
        kind, *rest = given
        return KINDS[kind](*rest)
    except (TypeError, ValueError, KeyError, IndexError) as error:
        raise unread("release", given, error) from None


def _response(m: Any, epsilon: Any, delta: Any, drawn: Any = None) -> FiniteStep:
    result = FiniteStep.response(
        check.integer(m, "m", 1),
        check.real(epsilon, "epsilon", least=0.0),
        check.real(delta, "delta", least=0.0, most=1.0),
    )
    return _drawn(result, drawn)


def _revealed(low: Any, high: Any) -> FiniteStep:
    most = _rate(high)
    return revealed(check.real(low, "a probability", least=0.0, most=most), most)


def _drawn(response: FiniteStep, level: Any) -> FiniteStep:
    """The release itself, or a randomised response of which only a lower level is attained."""
    if level is None:
        return response
    if not response.is_response:
        raise InvalidInput(
            "a step drawn at a level must be randomised response. Give the text as it was written."
        )
    return response.down_to(check.real(level, "a level", least=0.0, most=response.key[2]))


def _channel(definition: Any, slack: Any, drawn: Any) -> FiniteStep:
    channel = load(definition)
    if not isinstance(channel, AbstractChannel):
        raise InvalidInput(
            f"channel must be a channel; got {described(channel)}. Give the text as it was written."
        )
    return _drawn(FiniteStep.of(channel, check.real(slack, "slack", least=0.0, most=0.5)), drawn)


def _laws(*both: Any) -> FiniteStep:
    low, high = map(_lines, both)
    key = ("laws", low.tobytes(), high.tobytes())
    return FiniteStep(from_envelope(low, up=False), from_envelope(high, up=True), key)


def _lines(given: Any) -> Floats:
    """Return the lines D - E T of a curve: from E = infinity down D and T rise, D less and less."""
    lines = check.floats(given, "lines", 2)
    if lines.shape[1] != 2 or not len(lines):
        raise InvalidInput(
            f"lines must be pairs of numbers; got shape {lines.shape}. Give the text as it was "
            "written."
        )
    rises = np.diff(lines, axis=0)
    with np.errstate(over="ignore"):
        slopes = rises[:, 0] / np.where(rises[:, 1] > 0.0, rises[:, 1], 1.0)
    right = (
        (lines[0] >= 0.0).all()
        and (rises > 0.0).all()
        and lines[-1].sum() <= 1.0 + _SUMMED
        and (slopes[1:] <= slopes[:-1] * (1.0 + _SUMMED)).all()
    )
    if not right:
        raise InvalidInput(
            "lines must belong to a pair of distributions, and these do not: the text was "
            "changed. Give it as it was written."
        )
    return lines


def _sampled(q: Any, atom: Any) -> SampledFinite:
    return SampledFinite(_finite(atom), _rate(q))


def _without_replacement(q: Any, atom: Any, reached: Any) -> FixedSizeSample:
    lower = None if reached is None else _finite(reached)
    return FixedSizeSample(_finite(atom), _rate(q), lower)


def _finite(atom: Any) -> FiniteStep:
    result = part_of(atom)
    if not isinstance(result, FiniteStep):
        raise InvalidInput(
            "a sampled step must have finitely many outputs. Give the text as it was written."
        )
    return result


def _blend(pairs: Any, weights: Any, slack: Any, attained: Any = None) -> Blend:
    result = tuple(map(_pair, pairs))
    lower = None if attained is None else _pair(attained)
    return Blend(result, tuple(map(_rate, weights)), _rate(slack), lower)


def _symmetrised(sampled: Any, weights: Any, attained: Any) -> Symmetrised:
    lower = None if attained is None else _pair(attained)
    return Symmetrised(tuple(map(_pair, sampled)), tuple(map(_rate, weights)), lower)


def _pair(given: Any) -> ContinuousStep:
    result = part_of(given)
    if not isinstance(result, ContinuousStep):
        raise InvalidInput(
            f"a continuous step must be a pair of known distributions; got {described(given)}. "
            "Give the text as it was written."
        )
    return result


def _mixtures(sigma: Any, up: Any, down: Any) -> GaussianMixture:
    shifts = [tuple((_positive(c), _rate(p)) for c, p in each) for each in (up, down)]
    return GaussianMixture(_positive(sigma), shifts[0], shifts[1])


def _shuffled(laws: Any, n: Any, alike: Any) -> Shuffled:
    return Shuffled(check.stochastic(laws, "laws"), check.integer(n, "n", 1), bool(alike))


def _moments(orders: Any, levels: Any, rho: Any, xi: Any) -> RenyiStep:
    at = tuple(check.real(order, "an order", least=1.0) for order in orders)
    known = tuple(check.real(level, "a level", least=0.0) for level in levels)
    if len(at) != len(known) or any(b <= a for a, b in pairwise((1.0, *at))):
        raise InvalidInput("orders must rise from above 1, each with a level.")
    return RenyiStep(at, known, check.real(rho, "rho", 0.0), check.real(xi, "xi", 0.0))


def _selected(step: Any, t: Any, k: Any) -> Selected:
    total = check.integer(t, "t", 3)
    return Selected(part_of(step), total, check.integer(k, "k", 2, total - 1))


def _rate(value: Any) -> float:
    return check.real(value, "a probability", least=0.0, most=1.0)


def _noise(value: Any) -> float:
    return amount_of_noise(_positive(value), "sigma")


def _positive(value: Any) -> float:
    return check.real(value, "a parameter", least=5e-324)


#: How a step of each kind is read. The kinds that hold profiles are added by ``profile``.
KINDS: dict[str, Callable[..., Step]] = {
    "response": _response,
    "revealed": _revealed,
    "channel": _channel,
    "laws": _laws,
    "sampled": _sampled,
    "without-replacement": _without_replacement,
    "symmetrised": _symmetrised,
    "blend": _blend,
    "mixtures": _mixtures,
    "normal": lambda sigma: GaussianNoise(_positive(sigma)),
    "laplace": lambda e, q: Interval(_positive(e), True, _rate(q)),
    "range": lambda e, q: Interval(_positive(e), False, _rate(q)),
    "permute-and-flip": lambda e, q: PermuteAndFlip(_positive(e), _rate(q)),
    "discrete-gaussian": lambda s, d: discrete_gaussian(_noise(s), check.integer(d, "d", 1)),
    "discrete-laplace": lambda a, d: discrete_laplace(_positive(a), check.integer(d, "d", 1)),
    "allocation": lambda sigma, t: Allocated(_noise(sigma), check.integer(t, "t", 2)),
    "one-of": lambda step, t: OneOf(part_of(step), check.integer(t, "t", 2)),
    "selected": _selected,
    "replaced": lambda step: Replaced(part_of(step)),
    "group": lambda step, k: Grouped(part_of(step), check.integer(k, "k", 1)),
    "shuffled": _shuffled,
    "renyi": _moments,
}
