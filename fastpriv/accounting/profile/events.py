"""What profiles are made of besides channels: noise, sampling, and levels that are declared."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

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
from fastpriv.accounting.profile.pairs import Blend, Pair
from fastpriv.accounting.profile.renyi import Moments
from fastpriv.errors import InvalidInput, did_you_mean

if TYPE_CHECKING:
    from fastpriv.accounting.profile.composed import Part

#: Relations of neighbours.
RELATIONS = ("add-or-remove", "replace-one", "replace-special")
#: Least and largest noise that is computed with; none at all shows everything.
_LEAST, _MOST = 1e-6, 1e15


def as_relation(relation: str | None) -> str | None:
    """Return a relation of neighbours that is known, or None."""
    if relation is None or relation in RELATIONS:
        return relation
    hint = did_you_mean(relation, RELATIONS)
    raise InvalidInput(f"relation must be one of {', '.join(RELATIONS)}, got {relation!r}{hint}")


def _noise(value: float, name: str) -> float:
    """Return an amount of noise that is none, or neither tiny nor huge."""
    noise = check.real(value, name, least=0.0)
    if noise != 0.0 and not _LEAST <= noise <= _MOST:
        raise InvalidInput(f"{name} must be 0 or between {_LEAST:g} and {_MOST:g}, got {noise:g}")
    return noise


class Events:
    """Profiles of mechanisms that add noise, sample, or are known by their levels only."""

    _parts: dict[Part, int]
    relation: str | None

    def __init__(self, parts: dict[Part, int], relation: str | None = None) -> None:
        raise NotImplementedError

    @classmethod
    def gaussian(
        cls,
        noise_multiplier: float,
        sampling_probability: float = 1.0,
        *,
        relation: str | None = None,
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
        relation : {"add-or-remove", "replace-one", "replace-special"}, optional
            What neighbours are. Not given, a person against nobody, to compose with anything.

        Examples
        --------
        >>> import fastpriv as fp
        >>> step = fp.accounting.PrivacyProfile.gaussian(0.8, 0.005)
        >>> step.self_compose(1000).epsilon(1e-6)
        Bracket(2.004106293, 2.004106294)
        """
        sigma = _noise(noise_multiplier, "noise_multiplier")
        q = check.real(sampling_probability, "sampling_probability", least=0.0, most=1.0)
        kind = as_relation(relation)
        if q == 0.0:
            return cls({}, kind)
        if sigma == 0.0:
            return cls({show_all(): 1} if q == 1.0 else {Lopsided(show_all(), q): 1}, kind)
        replaced = kind == "replace-one"
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
        relation: str | None = None,
    ) -> Self:
        """Profile of Laplace noise, on a Poisson sample of the people where one is drawn.

        Parameters
        ----------
        noise_multiplier : float
            Scale over the 1-norm of what one person contributes; 0 shows everything.
        sampling_probability : float
            Probability that a person takes part; 1 where neighbours replace a person.
        relation : {"add-or-remove", "replace-one", "replace-special"}, optional
            What neighbours are.

        Examples
        --------
        >>> import fastpriv as fp
        >>> fp.accounting.PrivacyProfile.laplace(1.0).self_compose(100).epsilon(1e-6)
        Bracket(71.54600365, 71.54600366)
        """
        scale = _noise(noise_multiplier, "noise_multiplier")
        q = check.real(sampling_probability, "sampling_probability", least=0.0, most=1.0)
        kind = as_relation(relation)
        if kind == "replace-one" and 0.0 < q < 1.0:
            raise InvalidInput(
                "no tight pair is known for sampled Laplace noise where a person is replaced; use "
                "relation='add-or-remove' or 'replace-special'"
            )
        if q == 0.0:
            return cls({}, kind)
        if scale == 0.0:
            return cls({show_all(): 1} if q == 1.0 else {Lopsided(show_all(), q): 1}, kind)
        return cls({Interval((2.0 if kind == "replace-one" else 1.0) / scale, True, q): 1}, kind)

    @classmethod
    def mixture_of_gaussians(
        cls,
        standard_deviation: float,
        sensitivities: ArrayLike,
        probabilities: ArrayLike,
        *,
        relation: str | None = None,
    ) -> Self:
        """Profile of Gaussian noise on a random sensitivity: N(0) against sum p_i N(c_i).

        Parameters
        ----------
        standard_deviation : float
            Of the noise.
        sensitivities, probabilities : arrays
            The c_i >= 0 and their chances, which sum to one.
        relation : {"add-or-remove", "replace-special"}, optional
            What neighbours are.

        Examples
        --------
        >>> import fastpriv as fp
        >>> of = fp.accounting.PrivacyProfile.mixture_of_gaussians
        >>> step = of(1.0, [0, 1, 2], [0.2, 0.6, 0.2])
        >>> step.self_compose(3).epsilon(1e-6).width < 1e-5
        True
        """
        sigma = _noise(standard_deviation, "standard_deviation")
        shifts = check.floats(sensitivities, "sensitivities", 1)
        chances = check.floats(probabilities, "probabilities", 1)
        if as_relation(relation) == "replace-one":
            raise InvalidInput("a mixture of Gaussians is for people added, removed or left blank")
        if len(shifts) != len(chances) or not len(shifts):
            raise InvalidInput(
                f"there must be a probability for each sensitivity, got {len(shifts)} and "
                f"{len(chances)}"
            )
        if not np.all((shifts >= 0.0) & (shifts < math.inf)):
            raise InvalidInput("sensitivities must be finite numbers of at least 0")
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
    def truncated_subsampled_gaussian(
        cls,
        dataset_size: int,
        sampling_probability: float,
        truncated_batch_size: int,
        noise_multiplier: float,
        *,
        relation: str | None = None,
    ) -> Self:
        """Profile of Gaussian noise on a Poisson sample that is cut to a largest size.

        An upper bound: with the chance that the sample is cut, the person may take another's place,
        which counts as replacement at twice the sensitivity (Ganesh 2025, arXiv:2508.15089).

        Parameters
        ----------
        dataset_size, truncated_batch_size : int
            Number of people, and the most that are kept of a sample.
        sampling_probability, noise_multiplier : float
            As for :meth:`gaussian`.
        relation : {"add-or-remove", "replace-one", "replace-special"}, optional
            What neighbours are.

        Examples
        --------
        >>> import fastpriv as fp
        >>> of = fp.accounting.PrivacyProfile.truncated_subsampled_gaussian
        >>> round(of(1000, 0.01, 30, 1.0).self_compose(100).epsilon(1e-5).upper, 6)
        0.718122
        """
        from scipy.stats import binom

        n = check.integer(dataset_size, "dataset_size", 0)
        most = check.integer(truncated_batch_size, "truncated_batch_size", 0)
        sigma = _noise(noise_multiplier, "noise_multiplier")
        q = check.real(sampling_probability, "sampling_probability", least=0.0, most=1.0)
        whole = cls.gaussian(sigma, q, relation=relation)
        cut = float(binom.sf(most - 1, n - 1, q)) if n > 0 and most > 0 else 0.0
        if n == 0 or most == 0:
            return cls({}, as_relation(relation))
        if cut < 1e-300 or not whole._parts or sigma == 0.0:
            return whole
        chosen = min(float(binom.sf(most, n, q)) * most / cut / n * (1.0 + 1e-11), 1.0)
        replaced = cls.gaussian(0.5 * sigma, chosen, relation="replace-one")
        pairs = tuple(pair for made in (replaced, whole) for pair in made._parts)
        if len(pairs) != 2:
            return whole
        cut = min(cut * (1.0 + 1e-11), 1.0)
        if cut == 1.0:
            return cls({pairs[0]: 1}, as_relation(relation))
        part = Blend(_spread(pairs), (cut, 1.0 - cut), 1e-10)
        part.attained = False
        return cls({part: 1}, as_relation(relation))

    @classmethod
    def discrete_gaussian(
        cls, sigma: float, sensitivity: int = 1, *, relation: str | None = None
    ) -> Self:
        """Profile of discrete Gaussian noise on an integer: e^(-x^2/(2 sigma^2)) / Z at x.

        Parameters
        ----------
        sigma : float
            Parameter of the noise, at most 1e4.
        sensitivity : int
            How far one person moves the integer.
        relation : {"add-or-remove", "replace-one", "replace-special"}, optional
            What neighbours are; a person that is replaced moves it twice as far.

        Examples
        --------
        >>> import fastpriv as fp
        >>> fp.accounting.PrivacyProfile.discrete_gaussian(2.0).self_compose(10).epsilon(1e-6)
        Bracket(8.303280557, 8.303280558)
        """
        scale = check.real(sigma, "sigma", least=0.0, most=1e4)
        distance = check.integer(sensitivity, "sensitivity", 0)
        kind = as_relation(relation)
        if distance == 0:
            return cls({}, kind)
        if scale < 0.05:  # the other value has a chance below 1e-80
            return cls({show_all(): 1}, kind)
        return cls({discrete_gaussian(scale, distance * (1 + (kind == "replace-one"))): 1}, kind)

    @classmethod
    def discrete_laplace(
        cls, noise_parameter: float, sensitivity: int = 1, *, relation: str | None = None
    ) -> Self:
        """Profile of discrete Laplace (geometric) noise: e^(-a|x|) tanh(a/2) at x.

        Parameters
        ----------
        noise_parameter : float
            The a, the level per unit; 0 shows nothing in theory and everything in dp-accounting.
        sensitivity : int
            How far one person moves the integer.
        relation : {"add-or-remove", "replace-one", "replace-special"}, optional
            What neighbours are.

        Examples
        --------
        >>> import fastpriv as fp
        >>> fp.accounting.PrivacyProfile.discrete_laplace(0.5).epsilon([0.0, 0.1])[0]
        Bracket(0.5, 0.5)
        """
        a = check.real(noise_parameter, "noise_parameter", least=0.0)
        distance = check.integer(sensitivity, "sensitivity", 0)
        if distance > 1 << 20:
            raise InvalidInput(f"sensitivity must be at most 2^20, got {distance}")
        kind = as_relation(relation)
        if distance == 0 or a == 0.0:
            return cls({}, kind)
        return cls({discrete_laplace(a, distance * (1 + (kind == "replace-one"))): 1}, kind)

    @classmethod
    def exponential(cls, epsilon: float, *, relation: str | None = None) -> Self:
        """Profile of any mechanism of bounded range, such as the exponential mechanism.

        Its curve is at most (e^(epsilon/2) - e^(t/2))^2 / (e^epsilon - 1), which some mechanism
        attains at each t; the lower end after composition is that of one mechanism.

        Parameters
        ----------
        epsilon : float
            Largest difference of any two losses of one pair of neighbours, at most 700.
        relation : {"add-or-remove", "replace-one", "replace-special"}, optional
            What neighbours are.

        Examples
        --------
        >>> import fastpriv as fp
        >>> fp.accounting.PrivacyProfile.exponential(1.0).delta(0.0)
        Bracket(0.2449186624, 0.2449186625)
        """
        level = check.real(epsilon, "epsilon", least=0.0, most=700.0)
        kind = as_relation(relation)
        return cls({Interval(level, False): 1} if level > 1e-100 else {}, kind)

    @classmethod
    def zcdp(cls, rho: float, xi: float = 0.0, *, relation: str | None = None) -> Self:
        """Profile of any (xi, rho)-zCDP mechanism: bounds from above only.

        Composed with others, all are bounded by their Renyi divergences; the lower end is what the
        others attain.

        Examples
        --------
        >>> import fastpriv as fp
        >>> fp.accounting.PrivacyProfile.zcdp(0.5).epsilon(1e-6).upper < 5.76
        True
        """
        level = check.real(rho, "rho", least=0.0)
        extra = check.real(xi, "xi", least=0.0)
        part = Moments((), (), level, extra)
        return cls({} if part.is_trivial else {part: 1}, as_relation(relation))

    @classmethod
    def renyi(cls, orders: ArrayLike, levels: ArrayLike, *, relation: str | None = None) -> Self:
        """Profile of any mechanism with given Renyi divergences: bounds from above only.

        Parameters
        ----------
        orders, levels : arrays
            Orders above 1, rising, and the levels at them.
        relation : {"add-or-remove", "replace-one", "replace-special"}, optional
            What neighbours are.

        Examples
        --------
        >>> import fastpriv as fp
        >>> profile = fp.accounting.PrivacyProfile.renyi([2.0, 8.0, 32.0], [1.0, 4.0, 16.0])
        >>> profile.epsilon(1e-5).lower
        0.0
        """
        at, values = check.floats(orders, "orders", 1), check.floats(levels, "levels", 1)
        if len(at) != len(values) or not len(at):
            raise InvalidInput("renyi needs a level for each order, and at least one")
        if not (np.all(at > 1.0) and np.all(np.diff(at) > 0.0) and np.all(at < math.inf)):
            raise InvalidInput("orders must be above 1, finite and rising")
        if not np.all((values >= 0.0) & (values < math.inf)):
            raise InvalidInput("levels must be finite numbers of at least 0")
        part = Moments(tuple(at.tolist()), tuple(values.tolist()), 0.0, 0.0)
        return cls({part: 1}, as_relation(relation))

    def poisson_subsampled(self, sampling_probability: float) -> Self:
        """Profile of one release of which each person takes part with a probability.

        For neighbours of which one has a person more: the release's pair (P, Q) becomes
        ((1 - q) Q + q P, Q), in both orders.

        Parameters
        ----------
        sampling_probability : float
            The q. The profile must be of one release, or of Gaussian noise only.

        Examples
        --------
        >>> import fastpriv as fp
        >>> response = fp.accounting.PrivacyProfile.from_epsilon_delta(1.0)
        >>> response.poisson_subsampled(0.1).epsilon(0.0)  # ln(1 + 0.1 (e - 1))
        Bracket(0.1585650787, 0.1585650788)
        """
        q = check.real(sampling_probability, "sampling_probability", least=0.0, most=1.0)
        if q == 1.0 or not self._parts:
            return self
        if self.relation == "replace-one":
            raise InvalidInput(
                "a Poisson sample is for people added or removed; its tight pair is not known "
                "where a person is replaced"
            )
        if q == 0.0:
            return type(self)({}, self.relation)
        part = _sampled(self._parts, q)
        if part is None:
            raise InvalidInput(
                "only one release, or Gaussian noise, is sampled from; sample each release by "
                "itself"
            )
        return type(self)({part: 1}, self.relation)


def _sampled(parts: dict[Part, int], q: float) -> Part | None:
    """Return one release by a Poisson sample, None where its pair is not known."""
    if all(isinstance(part, Normal) for part in parts):
        whole = Normal.together(
            [(part, k) for part, k in parts.items() if isinstance(part, Normal)]
        )
        return Mixtures(whole.sigma, ((1.0, q),))
    if sum(parts.values()) > 1:
        return None
    part: Any = next(iter(parts))
    if isinstance(part, Atom):
        return Lopsided(part, q)
    if type(part) is Lopsided:
        return Lopsided(part.atom, part.q * q)
    if isinstance(part, Interval):
        return Interval(part.e, part.atoms, part.q * q)
    if isinstance(part, Mixtures) and not part.down:
        _, sigma, up, _ = part.key
        return Mixtures(sigma, tuple((c, p * q) for c, p in up))
    return None


def _spread(pairs: tuple[Any, ...]) -> tuple[Pair, ...]:
    """Return pairs as mixtures, whose moments are sums over points."""
    return tuple(
        Mixtures(pair.sigma, ((1.0, 1.0),)) if isinstance(pair, Normal) else pair for pair in pairs
    )
