"""Steps that belong together: disjoint parts of the data, the best of many runs, partitions."""

from __future__ import annotations

import math

from fastpriv._core import validation as check
from fastpriv._core.rounding import (
    LEAST,
    directed,
    exp_down,
    exp_up,
    lowered,
    quotient_up,
    raised,
    sum_down,
    sum_up,
)
from fastpriv.accounting.profile.parallel import Largest
from fastpriv.accounting.profile.profile import PrivacyProfile
from fastpriv.accounting.profile.relations import ADDED, REPLACED, as_relation, one_relation
from fastpriv.accounting.profile.repeated import repeat_and_select
from fastpriv.accounting.profile.steps.finite import revealed
from fastpriv.accounting.profile.steps.gaussian import GaussianNoise
from fastpriv.errors import InvalidInput, described

__all__ = ["best_of_runs", "parallel", "partition_selection"]

#: Shape of the truncated negative binomial distribution of the number of runs.
_SHAPES = {"geometric": 1.0, "logarithmic": 0.0, "poisson": math.inf}
#: Largest number of partitions of one record.
_PARTITIONS = 32
#: Units of roundoff that the complementary error function of the C library may be off.
_ERFC = 256.0
#: Units of roundoff of expm1 and log1p of the C library together, of LIBM units each, and more.
_POWER = 32.0


def parallel(*profiles: PrivacyProfile, fixed_parts: bool = False) -> PrivacyProfile:
    """Return the profile of mechanisms on disjoint parts of the data: the largest curve.

    Every record is in at most one part, and its part depends on the record alone, not on the rest
    of the data or on earlier outputs. If a record is added or removed, or replaced by a blank, one
    part changes. If a record is replaced, it may move from one part to another, so that two parts
    change: this is refused, unless ``fixed_parts`` states that a record never moves.

    Parameters
    ----------
    *profiles : PrivacyProfile
        The profile of each part, all for the same relation.
    fixed_parts : bool
        Whether neighbours differ in values only, and not in the part of a record.

    Returns
    -------
    PrivacyProfile
        delta is the largest of the deltas, exact for one use. It can be composed, and charged to a
        ledger as one step.

    Examples
    --------
    >>> import fastpriv as fp
    >>> of = fp.accounting.PrivacyProfile.gaussian
    >>> fp.accounting.parallel(of(2.0), of(4.0), of(2.0)) == of(2.0)
    True
    >>> laplace = fp.accounting.PrivacyProfile.laplace(1.0)
    >>> both = fp.accounting.parallel(of(2.0), laplace)
    >>> of(2.0).epsilon(1e-6), both.epsilon(1e-6)  # the noise that is worse at this delta
    (Bracket(2.25408465, 2.254084651), Bracket(2.25408465, 2.254084651))
    >>> laplace.delta(0.0), both.delta(0.0)
    (Bracket(0.3934693402, 0.3934693403), Bracket(0.3934693402, 0.3934693403))
    """
    kind = check.flag(fixed_parts, "fixed_parts")
    relation: str | None = None
    for each in profiles:
        if not isinstance(each, PrivacyProfile):
            raise InvalidInput(f"profiles must be PrivacyProfiles; got {described(each)}.")
        if each.parts:
            relation = one_relation(relation, each.relation)
    if relation == REPLACED and not kind:
        raise InvalidInput(
            "profiles must be for neighbours by 'add-or-remove' or 'replace-special'; got "
            "'replace-one', under which a record may move from one part to another. Compose the "
            "two worst parts, or state fixed_parts=True."
        )
    return largest([each for each in profiles if each.parts], relation or ADDED)


def largest(profiles: list[PrivacyProfile], relation: str) -> PrivacyProfile:
    """Return the profile whose curve is the largest of the given ones."""
    different = list(dict.fromkeys(profiles))
    gaussian = [each for each in different if _mu_square(each) is not None]
    if len(gaussian) > 1:  # the smallest noise dominates
        worst = max(gaussian, key=lambda each: _mu_square(each) or 0.0)
        different = [each for each in different if each is worst or _mu_square(each) is None]
    if not different:
        return PrivacyProfile({}, relation)
    if len(different) == 1:
        return different[0]
    return PrivacyProfile({Largest(tuple(different)): 1}, relation)


def _mu_square(profile: PrivacyProfile) -> float | None:
    """Return mu^2 of a profile of Gaussian noise without sampling; None for others."""
    exact = [
        k * part.square for part, k in profile.parts.items() if isinstance(part, GaussianNoise)
    ]
    return math.fsum(exact) if len(exact) == len(profile.parts) else None


def best_of_runs(
    profile: PrivacyProfile, mean_runs: float, distribution: str = "geometric"
) -> PrivacyProfile:
    """Return the profile of the best of a random number of runs, such as a hyperparameter search.

    The number of runs K is drawn before, and is not shown. Only the best run is published, by any
    score computed from its output. A fixed number of runs has no such bound: it costs as much as
    all runs. The bounds are on Renyi divergences, by theorems 2 and 6 of Papernot and Steinke
    (2022, arXiv:2110.03620), and hold from above only.

    Parameters
    ----------
    profile : PrivacyProfile
        One run.
    mean_runs : float
        Mean of K, at least 1.
    distribution : {"geometric", "logarithmic", "poisson"}
        Distribution of K.

    Examples
    --------
    >>> import fastpriv as fp
    >>> run = fp.accounting.PrivacyProfile.gaussian(4.0)
    >>> best = fp.accounting.best_of_runs(run, 10.0, "poisson").epsilon(1e-6).upper
    >>> run.epsilon(1e-6).upper < best < run.self_compose(10).epsilon(1e-6).upper
    True
    """
    if not isinstance(profile, PrivacyProfile):
        raise InvalidInput(f"profile must be a PrivacyProfile; got {described(profile)}.")
    kind = check.word(distribution, "distribution", tuple(_SHAPES))
    return repeat_and_select(profile, check.real(mean_runs, "mean_runs", least=1.0), _SHAPES[kind])


def partition_selection(
    noise: str,
    scale: float,
    threshold: float,
    partitions: int = 1,
    *,
    relation: str = ADDED,
) -> PrivacyProfile:
    """Return the profile of publishing partitions whose noisy counts exceed a threshold.

    Only partitions with records are looked at, such as the groups of a GROUP BY. A record is in at
    most k partitions and counts one in each. If j of them have no other record, they are published
    with probability d = P(1 + noise > threshold) each, and never without the record. The numbers
    of the other k - j partitions change by one. So the curve is the largest over j of noise on
    k - j numbers, composed with the probability 1 - (1 - d)^j of an output that reveals the
    record. The noisy numbers of published partitions may be published too; they attain the lower
    bound.

    Parameters
    ----------
    noise : {"laplace", "gaussian"}
        Noise on each number.
    scale : float
        Scale of Laplace noise, or standard deviation of Gaussian noise.
    threshold : float
        At least 1.
    partitions : int
        Number k, at most 32.
    relation : {"add-or-remove", "replace-special"}
        Which databases are neighbours. A replaced record is in 2 k partitions.

    Examples
    --------
    >>> import fastpriv as fp
    >>> profile = fp.accounting.partition_selection("laplace", 1.0, 15.0)
    >>> profile.delta(1.0)  # e^-14 / 2
    Bracket(4.157643595e-7, 4.157643596e-7)
    """
    word = check.word(noise, "noise", ("laplace", "gaussian"))
    b = check.real(scale, "scale", least=1e-6, most=1e15)
    limit = check.real(threshold, "threshold", least=1.0)
    k = check.integer(partitions, "partitions", 1, _PARTITIONS)
    kind = as_relation(relation)
    if kind == REPLACED:
        raise InvalidInput(
            "relation must be 'add-or-remove' or 'replace-special' for partition_selection; got "
            "'replace-one'. A replaced record is in twice as many partitions."
        )
    make = PrivacyProfile.laplace if word == "laplace" else PrivacyProfile.gaussian
    one = make(b, relation=kind)
    low, high = _tail(word, b, limit)
    cases = []
    for j in range(k + 1):
        step = revealed(_any_of(j, low, up=False), _any_of(j, high, up=True))
        new = PrivacyProfile({step: 1}, kind)
        cases.append(one.self_compose(k - j).compose(new) if j else one.self_compose(k))
    return largest([case for case in cases if case.parts], kind)


def _tail(noise: str, scale: float, threshold: float) -> tuple[float, float]:
    """Return bounds on P(1 + noise > threshold), from a threshold of at least 1."""
    low, high = sum_down([threshold, -1.0]), sum_up([threshold, -1.0])
    if noise == "laplace":
        far, near = quotient_up(high, scale), -quotient_up(-low, scale)
        return lowered(0.5 * exp_down(-far), 4.0), raised(0.5 * exp_up(-near), 4.0)
    root = math.sqrt(2.0)
    far, near = raised(high / scale / root, 8.0), lowered(low / scale / root, 8.0)
    return lowered(0.5 * math.erfc(far), _ERFC), raised(0.5 * math.erfc(near), _ERFC) + LEAST


def _any_of(j: int, probability: float, up: bool) -> float:
    """Return a bound on the probability 1 - (1 - p)^j of at least one of j events."""
    if j == 1 or probability == 0.0:
        return probability
    value = -math.expm1(j * math.log1p(-min(probability, 0.5)))
    return min(max(directed(value, _POWER, up), 0.0), 1.0)
