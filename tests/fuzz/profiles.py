"""Questions about profiles of several releases, with exact references."""

import math

import numpy as np
from flint import arb

import fastpriv as fp
from fuzz import balls
from fuzz.balls import ONE, ZERO, less
from fuzz.judging import Question, ball, compared, level


def _profile(case):
    whole = fp.accounting.PrivacyProfile.of(case.channel)
    return whole.self_compose(case.spec["count"])


def _composed(case):
    part = fp.accounting.PrivacyProfile.from_epsilon_delta(*case.spec["part"])
    return _profile(case).compose(part)


def _delta(case, W, epsilon, part=None, other=None):
    """Return the delta that two neighbours reach, the worst of them.

    They see the channel several times, and perhaps a declared part and another channel once.
    """
    extra = None
    if part is not None:
        first, second = balls.declared_pair(*part)
        extra = [(a, b) for a, b in zip(first, second, strict=True) if balls.positive(a)]
        if not case.pairs:  # of the same people, whom the other release has neighbours of
            return balls.excess_mass(extra, epsilon)
    worst = ZERO
    for i, j in case.pairs:
        outcomes = balls.joint_outcomes(W[i], W[j], case.spec["count"])
        if extra is not None:
            outcomes = balls.crossed(outcomes, extra)
        if other is not None:
            outcomes = balls.crossed(outcomes, balls.joint_outcomes(other[i], other[j], 1))
        worst = worst.max(balls.excess_mass(outcomes, epsilon))
    return worst


def _profile_delta(case, W, given):
    """Of one release, the bracket holds the delta of the entries as they are, too."""
    epsilon = case.spec["epsilon"]
    low = high = _delta(case, W, epsilon)
    if case.spec["count"] == 1 and W is case.laws:
        as_given = _delta(case, case.W, epsilon)
        low, high = low.min(as_given), high.max(as_given)
    return compared(given, high, low)


def _epsilon(case, W, given, other=None):
    """A level is enough if its delta is, and too much if a smaller one was enough."""
    delta, part, broken = ball(case.spec["delta"]), case.spec["part"], set()
    if given.upper < math.inf and less(delta, _delta(case, W, arb(given.upper), part, other)):
        broken.add("below")
    if given.lower > 0.0:
        at = math.inf if given.lower == math.inf else arb(given.lower) * (ONE - arb(2) ** -150)
        if less(_delta(case, W, at, part, other), delta):
            broken.add("lower end above")
    return broken


# Mechanisms that are fixed beforehand: all of them are about the same two neighbours.


def _mirrored(case):
    """Return the floats of the channel with the values of every row in reverse.

    What tells two neighbours apart best tells others apart in the mirror.
    """
    return case.channel.matrix()[::-1]


def _fixed(case):
    mirror = fp.Channel(np.array(_mirrored(case)), case.sizes)
    return _profile(case).compose(fp.accounting.PrivacyProfile.of(mirror))


def _mirror(case):
    return [balls.normal(row) for row in balls.balls(_mirrored(case))]


def _fixed_delta(case, W, given):
    value = _delta(case, W, case.spec["epsilon"], other=_mirror(case))
    return compared(given, value, value)


def _ask_fixed_epsilon(case):
    part = fp.accounting.PrivacyProfile.from_epsilon_delta(*case.spec["part"])
    return _fixed(case).compose(part).epsilon(case.spec["delta"], adaptive=False)


PROFILES = {
    "profile": Question(
        lambda c: _profile(c).delta(c.spec["epsilon"]), _profile_delta, weight=2, laws=True
    ),
    "composed_delta": Question(
        lambda c: _composed(c).delta(c.spec["epsilon"]),
        level(lambda c, W: _delta(c, W, c.spec["epsilon"], c.spec["part"])),
        weight=2,
        databases=4,
        laws=True,
    ),
    "composed_epsilon": Question(
        lambda c: _composed(c).epsilon(c.spec["delta"]), _epsilon, weight=2, databases=4, laws=True
    ),
    "fixed_delta": Question(
        lambda c: _fixed(c).delta(c.spec["epsilon"], adaptive=False),
        _fixed_delta,
        weight=1,
        databases=4,
        laws=True,
    ),
    "fixed_epsilon": Question(
        _ask_fixed_epsilon,
        lambda c, W, given: _epsilon(c, W, given, _mirror(c)),
        weight=1,
        databases=4,
        laws=True,
    ),
}
