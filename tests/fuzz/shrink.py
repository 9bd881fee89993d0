"""Smaller cases that break the same claim."""

import copy
import math

from fuzz import specs

#: Numbers that are simpler than others.
SIMPLE = (0.0, 1.0, 0.5, 0.25, 1e-300, 1e-100, 1e-16, 1e-8)


def shrunk(violation, answer, tries=300):
    """Return a violation of the same kind whose case has fewer and simpler numbers."""
    best = violation
    progress = True
    while progress and tries > 0:
        progress = False
        for smaller in _smaller(best.case):
            if not specs.as_given(smaller["channel"]):
                continue
            tries -= 1
            if tries <= 0:
                break
            try:
                again = answer(smaller)
            except Exception:  # the smaller case is no case
                continue
            if again is not None and again.kind == best.kind:
                best, progress = again, True
                break
    return best


def _smaller(case):
    """Yield cases with one number made simpler, simplest first."""
    places = [place for place in _places(case) if isinstance(_at(case, place), float)]
    for place in places:
        value = _at(case, place)
        for simple in (*SIMPLE, *_shorter(value)):
            if simple != value and _weight(simple) < _weight(value):
                yield _with(case, place, simple)


def _shorter(value):
    return [float(f"{value:.{digits}g}") for digits in (1, 2, 4, 8)] if math.isfinite(value) else []


def _weight(value):
    """Length of the number when written."""
    return len(repr(value)) - 0.5 * (value in SIMPLE)


def _places(spec, prefix=()):
    if isinstance(spec, dict):
        return [p for key, v in spec.items() for p in _places(v, (*prefix, key))]
    if isinstance(spec, list):
        return [p for key, v in enumerate(spec) for p in _places(v, (*prefix, key))]
    return [prefix]


def _at(spec, place):
    for key in place:
        spec = spec[key]
    return spec


def _with(spec, place, value):
    spec = copy.deepcopy(spec)
    _at(spec, place[:-1])[place[-1]] = value
    return spec
