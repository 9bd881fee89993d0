"""Profiles of mechanisms that add noise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv.accounting.profile.atoms import Atom
from fastpriv.accounting.profile.intervals import Interval
from fastpriv.accounting.profile.lopsided import (
    Lopsided,
    discrete_gaussian,
    discrete_laplace,
    show_all,
)
from fastpriv.accounting.profile.mixtures import Mixtures
from fastpriv.accounting.profile.normal import Normal
from fastpriv.accounting.profile.pairs import Pair
from fastpriv.accounting.profile.relations import (
    ADDED,
    LEAST_NOISE,
    REPLACED,
    amount_of_noise,
    as_relation,
)
from fastpriv.accounting.profile.samples import replaced_in_sample
from fastpriv.errors import InvalidInput, short

if TYPE_CHECKING:
    from typing_extensions import Self

    from fastpriv.accounting.profile.composed import Part


class Noise:
    """Profiles of mechanisms that add noise, or choose by it."""

    _parts: dict[Part, int]
    relation: str

    def __init__(self, parts: dict[Part, int], relation: str = ADDED) -> None:
        raise NotImplementedError

    @classmethod
    def gaussian(
        cls,
        noise_multiplier: float,
        sampling_probability: float = 1.0,
        *,
        relation: str = ADDED,
    ) -> Self:
        """Profile of Gaussian noise, on a Poisson sample of the people where one is drawn.

        The pair is N(0, sigma^2) against (1 - q) N(0, sigma^2) + q N(1, sigma^2), in both orders;
        where a person is replaced, the mixtures with q N(1) against q N(-1).

        Parameters
        ----------
        noise_multiplier : float
            Standard deviation over the norm of what one person contributes; 0 shows everything.
        sampling_probability : float
            Probability q that a person takes part.
        relation : {"add-or-remove", "replace-one", "replace-special"}
            Which databases are neighbours. The default does not cover replacing a record: to
            compose with channels give "replace-one".

        Examples
        --------
        >>> import fastpriv as fp
        >>> step = fp.accounting.PrivacyProfile.gaussian(0.8, 0.005)
        >>> step.self_compose(1000).epsilon(1e-6)
        Bracket(2.004106293, 2.004106294)
        """
        sigma = amount_of_noise(noise_multiplier, "noise_multiplier")
        q = check.real(sampling_probability, "sampling_probability", least=0.0, most=1.0)
        kind = as_relation(relation)
        if q == 0.0 or sigma == 0.0:
            return cls(_without_noise(q, kind), kind)
        replaced = kind == REPLACED
        part: Pair
        if q == 1.0:
            part = Normal(0.5 * sigma if replaced else sigma)
        else:
            part = Mixtures(sigma, ((1.0, q),), ((1.0, q),) if replaced else ())
        return cls({part: 1}, kind)

    @classmethod
    def laplace(
        cls,
        noise_multiplier: float,
        sampling_probability: float = 1.0,
        *,
        relation: str = ADDED,
    ) -> Self:
        """Profile of Laplace noise, on a Poisson sample of the people where one is drawn.

        Parameters
        ----------
        noise_multiplier : float
            Scale over the 1-norm of what one person contributes; 0 shows everything.
        sampling_probability : float
            Probability that a person takes part.
        relation : {"add-or-remove", "replace-one", "replace-special"}
            Which databases are neighbours. Where a person is replaced, a sample has an upper bound
            only, see :meth:`poisson_subsampled`.

        Examples
        --------
        >>> import fastpriv as fp
        >>> fp.accounting.PrivacyProfile.laplace(1.0).self_compose(100).epsilon(1e-6)
        Bracket(71.54600365, 71.54600366)
        """
        scale = amount_of_noise(noise_multiplier, "noise_multiplier")
        q = check.real(sampling_probability, "sampling_probability", least=0.0, most=1.0)
        kind = as_relation(relation)
        if q == 0.0 or scale == 0.0:
            return cls(_without_noise(q, kind), kind)
        if kind != REPLACED or q == 1.0:
            return cls({Interval((2.0 if kind == REPLACED else 1.0) / scale, True, q): 1}, kind)
        part = replaced_in_sample(Interval(2.0 / scale, True), q, blank=True)
        return cls({} if part is None else {part: 1}, kind)

    @classmethod
    def mixture_of_gaussians(
        cls,
        standard_deviation: float,
        sensitivities: ArrayLike,
        probabilities: ArrayLike,
        *,
        relation: str = ADDED,
    ) -> Self:
        """Profile of Gaussian noise on a random sensitivity: N(0) against sum p_i N(c_i).

        Parameters
        ----------
        standard_deviation : float
            Of the noise.
        sensitivities, probabilities : arrays
            The c_i >= 0 and their chances, which sum to one.
        relation : {"add-or-remove", "replace-special"}
            Which databases are neighbours.

        Examples
        --------
        >>> import fastpriv as fp
        >>> of = fp.accounting.PrivacyProfile.mixture_of_gaussians
        >>> step = of(1.0, [0, 1, 2], [0.2, 0.6, 0.2])
        >>> step.self_compose(3).epsilon(1e-6).width < 1e-5
        True
        """
        sigma = amount_of_noise(standard_deviation, "standard_deviation")
        shifts = check.floats(sensitivities, "sensitivities", 1)
        chances = check.floats(probabilities, "probabilities", 1)
        if as_relation(relation) == REPLACED:
            raise InvalidInput(
                'relation must be "add-or-remove" or "replace-special" for a mixture of Gaussians; '
                "got 'replace-one'"
            )
        if len(shifts) != len(chances) or not len(shifts):
            raise InvalidInput(
                f"there must be a probability for each sensitivity, got {len(shifts)} and "
                f"{len(chances)}"
            )
        most = sigma / LEAST_NOISE if sigma > 0.0 else math.inf
        if not np.all((shifts >= 0.0) & (shifts < math.inf) & (shifts <= most)):
            raise InvalidInput(
                "sensitivities must be finite numbers of at least 0, at most "
                f"{1.0 / LEAST_NOISE:g} times the standard deviation; add more noise"
            )
        if not np.all(chances >= 0.0) or abs(math.fsum(chances.tolist()) - 1.0) > 1e-9:
            raise InvalidInput("probabilities must be at least 0 and sum to one")
        total = math.fsum(chances.tolist())
        moved: dict[float, float] = {}
        for c, p in zip(shifts.tolist(), (chances / total).tolist(), strict=True):
            if c > 0.0 and p > 0.0:
                moved[c] = moved.get(c, 0.0) + p
        if not moved:
            return cls({}, relation)
        if sigma == 0.0:
            q = min(math.fsum(moved.values()), 1.0)
            return cls({show_all(): 1} if q == 1.0 else {Lopsided(show_all(), q): 1}, relation)
        up = tuple(sorted(moved.items()))
        if len(up) == 1 and up[0][1] >= 1.0:
            return cls({Normal(sigma / up[0][0]): 1}, relation)
        return cls({Mixtures(sigma, up): 1}, relation)

    @classmethod
    def discrete_gaussian(
        cls, sigma: float, sensitivity: int = 1, *, relation: str = ADDED
    ) -> Self:
        """Profile of discrete Gaussian noise on an integer: e^(-x^2/(2 sigma^2)) / Z at x.

        Parameters
        ----------
        sigma : float
            Parameter of the noise, at most 1e4.
        sensitivity : int
            How far one person moves the integer.
        relation : {"add-or-remove", "replace-one", "replace-special"}
            Which databases are neighbours; a person that is replaced moves it twice as far.

        Examples
        --------
        >>> import fastpriv as fp
        >>> fp.accounting.PrivacyProfile.discrete_gaussian(2.0).self_compose(10).epsilon(1e-6)
        Bracket(8.303280557, 8.303280558)
        """
        scale = check.real(sigma, "sigma", least=0.0, most=1e4)
        distance = check.integer(sensitivity, "sensitivity", 0)
        if distance > 1 << 20:
            raise InvalidInput(f"sensitivity must be at most 2^20, got {short(distance)}")
        kind = as_relation(relation)
        if distance == 0:
            return cls({}, kind)
        if scale < 0.05:  # the other value has a chance below 1e-80
            return cls({show_all(): 1}, kind)
        return cls({discrete_gaussian(scale, distance * (1 + (kind == REPLACED))): 1}, kind)

    @classmethod
    def discrete_laplace(
        cls, noise_parameter: float, sensitivity: int = 1, *, relation: str = ADDED
    ) -> Self:
        """Profile of discrete Laplace (geometric) noise: e^(-a|x|) tanh(a/2) at x.

        Parameters
        ----------
        noise_parameter : float
            The a, the level per unit, at most 1e9; 0 shows nothing in theory and everything in
            dp-accounting.
        sensitivity : int
            How far one person moves the integer.
        relation : {"add-or-remove", "replace-one", "replace-special"}
            Which databases are neighbours.

        Examples
        --------
        >>> import fastpriv as fp
        >>> fp.accounting.PrivacyProfile.discrete_laplace(0.5).epsilon([0.0, 0.1])[0]
        Bracket(0.5, 0.5)
        """
        a = check.real(noise_parameter, "noise_parameter", least=0.0, most=1e9)
        distance = check.integer(sensitivity, "sensitivity", 0)
        if distance > 1 << 20:
            raise InvalidInput(f"sensitivity must be at most 2^20, got {short(distance)}")
        kind = as_relation(relation)
        if distance == 0 or a == 0.0:
            return cls({}, kind)
        return cls({discrete_laplace(a, distance * (1 + (kind == REPLACED))): 1}, kind)

    @classmethod
    def exponential(cls, epsilon: float, *, relation: str = ADDED) -> Self:
        """Profile of any mechanism of bounded range, such as the exponential mechanism.

        Its curve is at most (e^(epsilon/2) - e^(t/2))^2 / (e^epsilon - 1), which some mechanism
        attains at each t. After composition both ends are those of the best choices after earlier
        outputs (Dong, Durfee and Rogers 2020). Where releases are some hundreds or have different
        levels, the lower end is that of one mechanism, the upper that of epsilon^2/8-zCDP.

        Parameters
        ----------
        epsilon : float
            Largest difference of any two losses of one pair of neighbours, at most 700.
        relation : {"add-or-remove", "replace-one", "replace-special"}
            Which databases are neighbours.

        Examples
        --------
        >>> import fastpriv as fp
        >>> fp.accounting.PrivacyProfile.exponential(1.0).delta(0.0)
        Bracket(0.2449186624, 0.2449186625)
        """
        level = check.real(epsilon, "epsilon", least=0.0, most=700.0)
        kind = as_relation(relation)
        if level == 0.0:
            return cls({}, kind)
        if level <= 1e-100:  # squares underflow: no worse than randomised response
            return cls({Atom.response(2, level).down_to(0.0): 1}, kind)
        return cls({Interval(level, False): 1}, kind)


def _without_noise(q: float, relation: str) -> dict[Part, int]:
    """Return what a sample of people leaks if they are in it: nothing, or all of them."""
    if q == 0.0:
        return {}
    if relation == REPLACED:  # outside the sample both records leave the same output
        return {Atom.response(2, 0.0, q): 1}
    return {show_all(): 1} if q == 1.0 else {Lopsided(show_all(), q): 1}
