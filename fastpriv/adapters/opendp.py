"""Channels and profiles in OpenDP; needs ``pip install 'fastpriv[opendp]'``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.extras import optional
from fastpriv.accounting.profile.profile import PrivacyProfile
from fastpriv.accounting.profile.relations import ADDED, REPLACED, as_relation
from fastpriv.accounting.profile.steps.finite import FiniteStep, from_envelope
from fastpriv.errors import InvalidInput, described
from fastpriv.measures.inputs import as_channel
from fastpriv.measures.realised import drawn_level

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from fastpriv.channels import AbstractChannel

__all__ = ["make_channel", "measurement_profile", "to_privacy_profile"]

#: Levels at which a curve is read.
_READ = 1 << 10
#: Delta below which a curve is not followed.
_LEAST = 1e-18
#: Orders less one at which Renyi divergences are read.
_ORDERS = np.geomspace(0.05, 1e3, 160)


def make_channel(channel: AbstractChannel | ArrayLike) -> Any:
    """Return a channel as a measurement that OpenDP's combinators compose.

    Its inputs are vectors of n integers, record i in 0 .. m_i - 1, under the Hamming distance:
    neighbours differ in one record. Its outputs are sampled by ``channel.sample`` with the entropy
    of the operating system, under the max-divergence. If records have different sizes, a value that
    is too large for its record counts as the largest one.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.

    Returns
    -------
    opendp.Measurement
        Its privacy map sends d changed records to d times the DP level of the sampler, rounded up
        (group privacy). Its outputs are lists of values if outputs are databases, and integers
        otherwise. OpenDP cannot check the map, so its features "contrib" and "honest-but-curious"
        must be enabled.

    Examples
    --------
    >>> import opendp.prelude as dp
    >>> import fastpriv as fp
    >>> from fastpriv.adapters.opendp import make_channel
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> survey = make_channel(fp.HammingChannel(4, 3, 0.5))
    >>> both = dp.c.make_composition([survey, survey])
    >>> first, second = both([0, 1, 2, 0])
    >>> len(first), round(both.map(1), 9)
    (4, 1.0)
    """
    dp = optional("opendp.prelude", "opendp")
    mechanism = as_channel(channel)
    level, sizes = drawn_level(mechanism), np.array(mechanism.space.sizes)

    def release(rows: list[int]) -> Any:
        database = np.asarray(rows).reshape(1, len(sizes))  # or an error: no broadcasting
        return mechanism.sample(np.minimum(database, sizes - 1))[0].tolist()

    def privacy_map(changed: int) -> float:
        together = min(changed, len(sizes))
        if together < 2:
            return level if together else 0.0
        return math.nextafter(level * together, math.inf)

    return dp.m.make_user_measurement(
        dp.vector_domain(dp.atom_domain(bounds=(0, int(sizes.max()) - 1), T=int), size=len(sizes)),
        dp.hamming_distance(),
        dp.max_divergence(),
        release,
        privacy_map,
    )


def measurement_profile(
    measurement: Any, d_in: Any = 1, *, relation: str | None = None
) -> PrivacyProfile:
    """Return the profile of an OpenDP measurement, from its privacy map at a distance.

    The map of OpenDP is a bound, so the profile is an upper bound:

    - max-divergence, also approximate: the worst mechanism of that level;
    - zero-concentrated divergence, also approximate: ``PrivacyProfile.zcdp``, and with probability
      delta everything is revealed;
    - smoothed max-divergence: a curve, read at 1,025 levels. The curve of a mechanism is convex in
      e^epsilon, so it is below the chords of these points, and below the last point beyond it;
    - Renyi divergence: ``PrivacyProfile.renyi`` at 160 orders.

    The composed profile is far below OpenDP's sums of levels.

    Parameters
    ----------
    measurement : opendp.Measurement or opendp.PrivacyProfile
        Any measurement with one of these output measures; or a curve itself, without ``d_in``.
    d_in : distance
        Distance of neighbours, as in ``measurement.map``.
    relation : {"add-or-remove", "replace-one", "replace-special"}, optional
        The relation of databases at this distance. By default "add-or-remove" for symmetric and
        insert-delete distances, which may also be "replace-one" from distance 2 on, "replace-one"
        for Hamming and change-one distances, and "add-or-remove" for other metrics.

    Examples
    --------
    >>> import opendp.prelude as dp
    >>> from fastpriv.adapters.opendp import measurement_profile
    >>> dp.enable_features("contrib")
    >>> space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    >>> laplace = measurement_profile(dp.m.make_laplace(*space, scale=10.0), 1.0)
    >>> laplace.self_compose(100).epsilon(1e-6).upper < 4.89  # levels add to 10
    True
    """
    curves = optional("opendp.mod", "opendp").PrivacyProfile
    if isinstance(measurement, curves):
        return _curve(measurement).with_relation(as_relation(relation))
    try:
        measure, level = str(measurement.output_measure), measurement.map(d_in)
    except AttributeError:
        raise InvalidInput(
            f"measurement must be an OpenDP measurement; got {described(measurement)}."
        ) from None
    read = _READERS.get(measure)
    if read is None:
        raise InvalidInput(
            f"the output measure must be one of {', '.join(_READERS)}; got {described(measure)}."
        )
    return read(level).with_relation(_relation(measurement, d_in, relation))


def _relation(measurement: Any, d_in: Any, relation: str | None) -> str:
    """Return the relation of databases at a distance, or refuse one that they do not have."""
    metric = str(measurement.input_metric).partition("(")[0]
    natural = _METRICS.get(metric)
    if natural is None:
        return as_relation(relation)
    kind = natural if relation is None else as_relation(relation)
    if kind == natural or (natural == ADDED and kind == REPLACED and d_in >= 2):
        return kind
    remedy = " Give d_in=2." if (natural, kind) == (ADDED, REPLACED) else ""
    raise InvalidInput(
        f"relation must be {natural!r} for the metric {metric} and d_in={described(d_in)}; got "
        f"{kind!r}.{remedy}"
    )


#: The relation of data sets at distance 1 in OpenDP's metrics between data sets.
_METRICS = {
    "SymmetricDistance": ADDED,
    "InsertDeleteDistance": ADDED,
    "ChangeOneDistance": REPLACED,
    "HammingDistance": REPLACED,
}


def _pure(level: Any) -> PrivacyProfile:
    return _approximate((level, 0.0))


def _approximate(level: Any) -> PrivacyProfile:
    epsilon, delta = level
    if epsilon == math.inf or delta >= 1.0:
        return PrivacyProfile.from_epsilon_delta(0.0, 1.0)
    return PrivacyProfile.from_epsilon_delta(epsilon, delta)


def _zcdp(level: Any) -> PrivacyProfile:
    return _approximate_zcdp((level, 0.0))


def _approximate_zcdp(level: Any) -> PrivacyProfile:
    rho, delta = level
    if rho == math.inf or delta >= 1.0:
        return PrivacyProfile.from_epsilon_delta(0.0, 1.0)
    return PrivacyProfile.zcdp(rho).compose(PrivacyProfile.from_epsilon_delta(0.0, delta))


def _renyi(level: Callable[[float], float]) -> PrivacyProfile:
    known = [(1.0 + s, float(level(1.0 + s))) for s in _ORDERS.tolist()]
    finite = [(order, value) for order, value in known if value < math.inf]
    if not finite:
        return PrivacyProfile.from_epsilon_delta(0.0, 1.0)
    return PrivacyProfile.renyi([order for order, _ in finite], [value for _, value in finite])


def _curve(level: Any) -> PrivacyProfile:
    """Return the profile whose curve is made of the chords of a curve, over e^t - 1."""
    try:
        top = float(level.epsilon(_LEAST))
    except Exception:  # curves of users may not know how to invert themselves
        top = math.inf
    levels = np.linspace(0.0, min(top, 100.0), _READ + 1) if top > 0.0 else np.zeros(1)
    points = [(math.expm1(t), min(max(float(level.delta(t)), 0.0), 1.0)) for t in levels.tolist()]
    hull: list[tuple[float, float]] = []
    for point in points:  # the lower hull, which a convex curve below the points is below too
        while len(hull) > 1 and _above(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    lines = [(hull[-1][1], 0.0)]
    for (x, d), (y, e) in zip(hull[-2::-1], hull[:0:-1], strict=True):
        slope = (d - e) / (y - x)
        line = (d + slope * x, slope)
        if line[0] <= lines[-1][0]:
            continue  # rounding; a line is nowhere above the one before it
        if slope <= lines[-1][1] * (1.0 + 1e-9):
            line = (line[0], lines.pop()[1])  # as good as one line
        lines.append(line)
    high = np.array(lines) * np.array([1.0 + 1e-12, 1.0 - 1e-12])
    high[:, 0] = np.minimum(high[:, 0], 1.0)
    low = np.zeros((1, 2))
    key = ("laws", low.tobytes(), high.tobytes())
    return PrivacyProfile(
        {FiniteStep(from_envelope(low, False), from_envelope(high, True), key): 1}
    )


def _above(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    """Whether b is on or above the line from a to c."""
    return (b[1] - a[1]) * (c[0] - a[0]) >= (c[1] - a[1]) * (b[0] - a[0])


#: How the distance of each output measure of OpenDP is read.
_READERS: dict[str, Callable[[Any], PrivacyProfile]] = {
    "MaxDivergence": _pure,
    "Approximate(MaxDivergence)": _approximate,
    "ZeroConcentratedDivergence": _zcdp,
    "Approximate(ZeroConcentratedDivergence)": _approximate_zcdp,
    "SmoothedMaxDivergence": _curve,
    "RenyiDivergence": _renyi,
}


def to_privacy_profile(profile: PrivacyProfile) -> Any:
    """Return a profile as OpenDP's privacy profile: the distance of its smoothed max-divergence.

    It answers ``epsilon(delta)`` and ``delta(epsilon)`` like profiles of OpenDP's own measurements.
    (OpenDP 0.16 does not accept one from the privacy map of a user's measurement.)

    Parameters
    ----------
    profile : PrivacyProfile
        Its upper bound is read. Neighbours have distance 1: in the symmetric distance for the
        relation "add-or-remove", in the Hamming distance for "replace-one".

    Examples
    --------
    >>> import opendp.prelude as dp
    >>> import fastpriv as fp
    >>> from fastpriv.adapters.opendp import to_privacy_profile
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> steps = fp.accounting.PrivacyProfile.gaussian(0.8, 0.005).self_compose(1000)
    >>> round(to_privacy_profile(steps).epsilon(1e-6), 6)
    2.004106
    """
    dp = optional("opendp.prelude", "opendp")
    if not isinstance(profile, PrivacyProfile):
        raise InvalidInput(f"profile must be a PrivacyProfile; got {described(profile)}.")

    def delta(epsilon: float) -> float:
        return profile.delta(check.real(epsilon, "epsilon", least=0.0)).upper

    return dp.new_privacy_profile(delta)
