"""The (epsilon, delta) curve of a mechanism, and of many of them together."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from functools import cached_property
from types import MethodType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.defined import headed, unheaded
from fastpriv._core.rounding import lowered
from fastpriv.accounting.profile.cases import Cases, FixedCases
from fastpriv.accounting.profile.composition import RenyiStep
from fastpriv.accounting.profile.discrete import Step
from fastpriv.accounting.profile.losses import ContinuousStep
from fastpriv.accounting.profile.questions import Questions
from fastpriv.accounting.profile.relations import (
    ADDED,
    LEAST_NOISE,
    RELATIONS,
    REPLACED,
    amount_of_noise,
    as_relation,
    one_relation,
)
from fastpriv.accounting.profile.steps.finite import (
    FiniteStep,
    SampledFinite,
    discrete_gaussian,
    discrete_laplace,
    show_all,
)
from fastpriv.accounting.profile.steps.gaussian import GaussianMixture, GaussianNoise
from fastpriv.accounting.profile.steps.laplace import Interval
from fastpriv.accounting.profile.steps.sampling import (
    Blend,
    one_release,
    poisson_sample,
    replaced_in_sample,
    with_replacement,
)
from fastpriv.channels import AbstractChannel
from fastpriv.errors import InvalidInput, described, short, unread
from fastpriv.measures.inputs import as_channel
from fastpriv.measures.realised import realised
from fastpriv.results import Bracket, Brackets

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["PrivacyProfile"]

#: Most steps of a kind.
_COUNTED = 10**100
#: Most people that a sample is drawn from: their number is computed with as a double.
_PEOPLE = 10**12

_ONE = "only one release, or Gaussian noise, is sampled from; sample each release by itself"

_Made = ParamSpec("_Made")
_Asked = ParamSpec("_Asked")
_Answer = TypeVar("_Answer")
_Owner = TypeVar("_Owner")


class Named(Generic[_Made, _Asked, _Answer]):
    """A constructor on the class, and a question on its instances, under one name.

    Parameters
    ----------
    make : callable
        Takes the class and what is declared.
    ask : callable
        Takes an instance and what is asked.
    """

    def __init__(
        self,
        make: Callable[Concatenate[Any, _Made], Any],
        ask: Callable[Concatenate[Any, _Asked], _Answer],
    ) -> None:
        self._make, self._ask = make, ask
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, instance: None, owner: type[_Owner]) -> Callable[_Made, _Owner]: ...
    @overload
    def __get__(self, instance: object, owner: Any = None) -> Callable[_Asked, _Answer]: ...
    def __get__(self, instance: object, owner: Any = None) -> Any:
        if instance is None:
            return MethodType(self._make, owner)
        return MethodType(self._ask, instance)


def zcdp(cls: Any, rho: float, xi: float = 0.0, *, relation: str = ADDED) -> Any:
    """Profile of any (xi, rho)-zCDP mechanism: bounds from above only.

    Composed with others, all are bounded by their Renyi divergences; the lower bound is what the
    others attain. Asked of a profile, ``profile.zcdp()`` is its least rho, ``zcdp_level``.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.accounting.PrivacyProfile.zcdp(0.5).epsilon(1e-6).upper < 5.76
    True
    >>> 0.125 in fp.accounting.PrivacyProfile.gaussian(2.0).zcdp()
    True
    """
    level = check.real(rho, "rho", least=0.0)
    extra = check.real(xi, "xi", least=0.0)
    part = RenyiStep((), (), level, extra)
    return cls({} if part.is_trivial else {part: 1}, as_relation(relation))


def renyi(cls: Any, orders: ArrayLike, levels: ArrayLike, *, relation: str = ADDED) -> Any:
    """Profile of any mechanism with given Renyi divergences: bounds from above only.

    Asked of a profile, ``profile.renyi(order)`` is its level at an order, ``renyi_level``.

    Parameters
    ----------
    orders, levels : arrays
        Orders above 1, rising, and the levels at them.
    relation : {"add-or-remove", "replace-one", "replace-special"}
        Which databases are neighbours.

    Examples
    --------
    >>> import fastpriv as fp
    >>> profile = fp.accounting.PrivacyProfile.renyi([2.0, 8.0, 32.0], [1.0, 4.0, 16.0])
    >>> profile.epsilon(1e-5).lower
    0.0
    >>> round(profile.renyi(8.0).upper, 9)
    4.0
    """
    at, values = check.floats(orders, "orders", 1), check.floats(levels, "levels", 1)
    if len(at) != len(values) or not len(at):
        raise InvalidInput("renyi needs a level for each order, and at least one")
    if not (np.all(at > 1.0) and np.all(np.diff(at) > 0.0) and np.all(at < math.inf)):
        raise InvalidInput("orders must be above 1, finite and rising")
    if not np.all((values >= 0.0) & (values < math.inf)):
        raise InvalidInput("levels must be finite numbers of at least 0")
    part = RenyiStep(tuple(at.tolist()), tuple(values.tolist()), 0.0, 0.0)
    return cls({part: 1}, as_relation(relation))


def gdp(cls: Any, mu: float, *, relation: str = ADDED) -> Any:
    """Profile of any mu-GDP mechanism: that of N(0, 1) against N(mu, 1), which is the worst.

    Asked of a profile, ``profile.gdp()`` is its least mu, ``gdp_level``.

    Examples
    --------
    >>> import fastpriv as fp
    >>> profile = fp.accounting.PrivacyProfile.gdp(0.5)
    >>> 0.5 in profile.gdp(), profile.self_compose(4).epsilon(1e-5)
    (True, Bracket(4.377178095, 4.377178096))
    """
    level = check.real(mu, "mu", least=0.0)
    if level != 0.0 and not 1e-15 <= level <= 1e6:
        raise InvalidInput(f"mu must be 0 or between 1e-15 and 1e6, got {level:g}")
    return cls({} if level == 0.0 else {GaussianNoise(1.0 / level): 1}, as_relation(relation))


class PrivacyProfile(Questions):
    """The (epsilon, delta) curve of some releases, as a pair of laws that dominates them.

    For one mechanism the curve is the upper envelope, over neighbours x, x' in both orders, of
    their hockey-stick divergences: convex and piecewise linear in e^epsilon, hence that of one
    pair of laws (P, Q), which is at least as easy to tell apart as any two neighbours. Releases
    compose by multiplying their pairs, whatever later mechanisms do with earlier outputs.

    Make one with :meth:`of`, :meth:`realised`, :meth:`randomised_response`,
    :meth:`from_epsilon_delta`, or from noise: ``gaussian``, ``laplace`` and the others.

    Attributes
    ----------
    relation : {"add-or-remove", "replace-one", "replace-special"}
        Which databases are neighbours. Noise and declared levels: "add-or-remove" unless given.
        Channels: "replace-one". Profiles of different relations do not compose; the guide on
        relations explains what each covers.

    Notes
    -----
    The upper end of a bracket is a guarantee: for the releases that the profiles were made of, and
    for any others with these curves, each of which may depend on what came before. The lower bound
    is attained: two neighbouring databases, in one order and the same in every release, are at
    least as easy to tell apart from the outputs of the given channels. Channels on different
    spaces read data of the same people, one pair of neighbours each; :meth:`randomised_response`
    and :meth:`from_epsilon_delta` are the worst mechanisms of their levels, whatever the pair.

    After one release both ends are the same but for rounding. They stay the same where one pair of
    neighbours, in either order, sets the whole curve, as in E_d and in counts with symmetric
    noise. Otherwise no pair reaches the composed envelope, and the bracket shows by how much. The
    lower bound is that of the best of a few pairs, which Renyi divergences pick: all of them where
    they are few. For channels of different kinds on one space they are found through the kernels
    of their rows or through small matrices; failing that, it is the best for the releases of one
    kind.

    Rows of a matrix are divided by their exact sums. The bracket of one release also holds the
    delta of the entries as they are, that of ``hockey_stick``: see docs/theory/rounding.md.

    Losses are listed, on their lattice where there is one, for randomised response and E_d in any
    number, mixtures of a few such epsilons, and other channels while sums are few; beyond that a
    grid bounds the curve from both sides. A law is tilted towards the question asked, so that
    relative accuracy does not depend on how small delta is.

    Examples
    --------
    >>> import fastpriv as fp
    >>> lopsided = fp.accounting.PrivacyProfile.of([[0.9, 0.1], [0.4, 0.6]])
    >>> lopsided.delta(0.5), lopsided.self_compose(2).delta(0.5)
    (Bracket(0.4351278729, 0.435127873), Bracket(0.5462045966, 0.6045895111))
    >>> profile = fp.accounting.PrivacyProfile.of(fp.HammingChannel(1_000_000, 4, 0.5))
    >>> thousand = profile.self_compose(1000)
    >>> thousand.epsilon(1e-14)
    Bracket(157.6829167, 157.6829168)
    >>> thousand.delta(124.0)
    Bracket(1.136353683e-6, 1.136353684e-6)
    """

    def __init__(self, parts: dict[Step, int], relation: str = ADDED) -> None:
        self.parts = {part: count for part, count in parts.items() if count and not part.is_trivial}
        self.relation = check.word(relation or ADDED, "relation", RELATIONS)
        if max(self.parts.values(), default=0) > _COUNTED:
            raise InvalidInput("a profile is of at most 10^100 releases of a kind; compose fewer")

    def __reduce__(self) -> tuple[Any, ...]:
        return PrivacyProfile, (self.parts, self.relation)

    @classmethod
    def of(cls, channel: AbstractChannel | ArrayLike) -> PrivacyProfile:
        """Profile of one release by a mechanism.

        Parameters
        ----------
        channel : channel or 2-D array
            The mechanism. Closed form for E_d; the pairs of one row's laws for channels that act
            row by row; O(N n (m-1) K log K) through the matrix otherwise.

        Examples
        --------
        >>> import fastpriv as fp
        >>> profile = fp.accounting.PrivacyProfile.of([[0.5, 0.5, 0.0], [0.25, 0.5, 0.25]])
        >>> profile.epsilon(0.2), profile.delta(0.0)
        (Bracket(infinite, infinite), Bracket(0.2499999999, 0.2500000001))
        """
        return cls({FiniteStep.of(as_channel(channel), 0.0): 1}, REPLACED)

    @classmethod
    def realised(cls, channel: AbstractChannel | ArrayLike) -> PrivacyProfile:
        """Profile of one release as ``channel.sample`` draws it: of its integer thresholds.

        Parameters
        ----------
        channel : channel or 2-D array
            The mechanism. Where its draws are known up to a relative error only, laws of
            neighbours are moved apart by it. Cost as for :meth:`of`.

        Examples
        --------
        >>> import fastpriv as fp
        >>> laws = [[1.0, 1e-25], [1.0, 1e-22]]  # both chances are drawn as 2^-64
        >>> fp.accounting.PrivacyProfile.realised(laws).epsilon(0.0).upper < 1e-13
        True
        """
        given = as_channel(channel)
        drawn, slack = realised(given)
        atom, rows = FiniteStep.of(drawn, slack), given.kernels
        if atom.is_response and rows is not None:
            m = atom.key[1]  # of the rows that are the worst
            levels = [kernel.thresholds.level() for kernel in rows.distinct if kernel.shape[0] == m]
            atom = atom.down_to(lowered(min(levels, default=0.0), 4.0))
        return cls({atom: 1}, REPLACED)

    @classmethod
    def randomised_response(cls, m: int, epsilon: float) -> PrivacyProfile:
        """Profile of m-ary randomised response at level epsilon, the same as E_d of any length.

        Examples
        --------
        >>> import fastpriv as fp
        >>> fp.accounting.PrivacyProfile.randomised_response(4, 0.5).self_compose(100).epsilon(1e-6)
        Bracket(23.46746703, 23.46746704)
        """
        size = check.integer(m, "m", 1)
        level = check.real(epsilon, "epsilon", least=0.0)
        return cls({FiniteStep.response(size, level): 1}, REPLACED)

    @classmethod
    def from_epsilon_delta(
        cls, epsilon: float, delta: float = 0.0, *, relation: str = ADDED
    ) -> PrivacyProfile:
        """Worst profile of any (epsilon, delta)-DP mechanism.

        With probability delta the database is shown, else binary randomised response.

        Parameters
        ----------
        epsilon, delta : float
            The level, in nats, and the delta of the mechanism.
        relation : {"add-or-remove", "replace-one", "replace-special"}
            The neighbours for which the mechanism has this level.

        Examples
        --------
        >>> import fastpriv as fp
        >>> fp.accounting.PrivacyProfile.from_epsilon_delta(1.0, 1e-6).delta(1.0)
        Bracket(1e-6, 1e-6)
        """
        level = check.real(epsilon, "epsilon", least=0.0)
        shown = check.real(delta, "delta", least=0.0, most=1.0)
        return cls({FiniteStep.response(2, level, shown): 1}, relation)

    # Declared levels: each name makes a profile on the class, and asks for the level on a profile.
    zcdp = Named(zcdp, Questions.zcdp_level)
    renyi = Named(renyi, Questions.renyi_level)
    gdp = Named(gdp, Questions.gdp_level)

    # Noise.

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
        part: ContinuousStep
        if q == 1.0:
            part = GaussianNoise(0.5 * sigma if replaced else sigma)
        else:
            part = GaussianMixture(sigma, ((1.0, q),), ((1.0, q),) if replaced else ())
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
            The c_i >= 0 and their probabilities, which sum to one.
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
            return cls({show_all(): 1} if q == 1.0 else {SampledFinite(show_all(), q): 1}, relation)
        up = tuple(sorted(moved.items()))
        if len(up) == 1 and up[0][1] >= 1.0:
            return cls({GaussianNoise(sigma / up[0][0]): 1}, relation)
        return cls({GaussianMixture(sigma, up): 1}, relation)

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
        if scale < 0.05:  # the other value has a probability below 1e-80
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
        levels, the lower bound is that of one mechanism, the upper that of epsilon^2/8-zCDP.

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
            return cls({FiniteStep.response(2, level).down_to(0.0): 1}, kind)
        return cls({Interval(level, False): 1}, kind)

    @classmethod
    def truncated_subsampled_gaussian(
        cls,
        dataset_size: int,
        sampling_probability: float,
        truncated_batch_size: int,
        noise_multiplier: float,
        *,
        relation: str = ADDED,
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
        relation : {"add-or-remove", "replace-one", "replace-special"}
            Which databases are neighbours.

        Examples
        --------
        >>> import fastpriv as fp
        >>> of = fp.accounting.PrivacyProfile.truncated_subsampled_gaussian
        >>> round(of(1000, 0.01, 30, 1.0).self_compose(100).epsilon(1e-5).upper, 6)
        0.718122
        """
        from scipy.stats import binom

        n = check.integer(dataset_size, "dataset_size", 0, check.MAX_COUNT)
        most = min(check.integer(truncated_batch_size, "truncated_batch_size", 0), n)
        if n > _PEOPLE:
            raise InvalidInput(f"dataset_size must be at most {_PEOPLE:,}, got {short(n)}")
        sigma = amount_of_noise(noise_multiplier, "noise_multiplier")
        q = check.real(sampling_probability, "sampling_probability", least=0.0, most=1.0)
        whole = cls.gaussian(sigma, q, relation=relation)
        cut = float(binom.sf(most - 1, n - 1, q)) if n > 0 and most > 0 else 0.0
        if n == 0 or most == 0:
            return cls({}, as_relation(relation))
        if cut < 1e-300 or not whole.parts or sigma == 0.0:
            return whole
        # With the others at zero, a person that takes part moves the sum by one.
        used = q * float(binom.cdf(most - 1, n - 1, q)) + float(binom.sf(most, n, q)) * most / n
        (attained,) = _pairs(cls.gaussian(sigma, used * (1.0 - 1e-11), relation=relation))
        chosen = min(float(binom.sf(most, n, q)) * most / cut / n * (1.0 + 1e-11), 1.0)
        replaced = cls.gaussian(0.5 * sigma, chosen, relation=REPLACED)
        pairs = (*_pairs(replaced), *_pairs(whole))
        if len(pairs) != 2:
            return whole
        cut = min(cut * (1.0 + 1e-11), 1.0)
        spread = tuple(
            GaussianMixture(pair.sigma, ((1.0, 1.0),)) if isinstance(pair, GaussianNoise) else pair
            for pair in pairs
        )
        if cut == 1.0:
            part = Blend(spread[:1], (1.0,), 1e-10, attained)
        else:
            part = Blend(spread, (cut, 1.0 - cut), 1e-10, attained)
        return cls({part: 1}, as_relation(relation))

    # Samples.

    def poisson_subsampled(self, sampling_probability: float) -> Self:
        """Profile of one release of which each person takes part with a probability.

        For neighbours of which one has a person more: the release's pair (P, Q) becomes
        ((1 - q) Q + q P, Q), in both orders. For neighbours of which a person is replaced the
        release must be one of noise on a sum: with and without the person the sums then differ by
        no more than where it is replaced. The curve is at most q delta(ln(1 + (e^t - 1)/q)), t >=
        0, with the curve delta of the release. A count attains it. Gaussian noise on a sum of
        vectors of bounded length has less: ``gaussian(sigma, q, relation="replace-one")``.

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
        if q == 1.0 or not self.parts:
            return type(self)(dict(self.parts), self.relation)
        if q == 0.0:
            return type(self)({}, self.relation)
        release = one_release(self.parts)
        if release is None:
            raise InvalidInput(_ONE)
        if self.relation != REPLACED:
            part = poisson_sample(release, q)
            if part is None:
                raise InvalidInput(_ONE)
            return type(self)({part: 1}, self.relation)
        part = replaced_in_sample(release, q, blank=True)
        if part is None:
            raise InvalidInput(
                "a Poisson sample where a record is replaced is known for noise on a sum only; use "
                "sampled_without_replacement"
            )
        return type(self)({part: 1}, self.relation)

    def sampled_without_replacement(
        self, sample_size: int, dataset_size: int, *, relation: str = REPLACED
    ) -> Self:
        """Profile of one release of a random subset of fixed size m of the n people.

        The profile itself must be for neighbours of which a person is replaced: samples have one
        size. With q = m/n, (P, Q) the pair of the release and delta its curve:

        - "replace-one": at most q delta(ln(1 + (e^t - 1)/q)) for t >= 0, Balle, Barthe and Gaboardi
          (2018). Tight for Gaussian noise and one release.
        - "add-or-remove", n being the size of the larger database: ((1 - q) Q + q P, Q) in both
          orders, exactly. Of the smaller database a subset is what the larger one gives if the
          person is not drawn; if it is, a person stands in the place of another.
        - "replace-special", for noise on a sum: at most that of "replace-one", because a person
          that counts zero is one more value.

        The proofs are in docs/theory/sampling.md. What is attained is one of these pairs in both
        orders: the lower bound. Where a person is replaced, some releases may be of one order and
        some of the other for the same two databases, so that their composition may be larger.

        Parameters
        ----------
        sample_size, dataset_size : int
            The m, and the n of at least m.
        relation : {"replace-one", "add-or-remove", "replace-special"}
            What neighbours are for the whole database.

        Examples
        --------
        >>> import fastpriv as fp
        >>> noise = fp.accounting.PrivacyProfile.gaussian(2.0, relation="replace-one")
        >>> step = noise.sampled_without_replacement(100, 10_000)
        >>> step.delta(0.1)
        Bracket(7.290037695e-5, 7.290037696e-5)
        >>> round(step.self_compose(1000).epsilon(1e-6).upper, 6)
        2.512844
        """
        m, n, kind = self._sizes(sample_size, dataset_size, relation)
        if m > n or (m == n > 0 and kind == "add-or-remove"):
            raise InvalidInput(
                f"a subset must be smaller than the database, got {short(m)} of {short(n)} people"
            )
        release = one_release(self.parts)
        if m == 0 or not self.parts:
            return type(self)({}, kind)
        if m == n:
            return type(self)(dict(self.parts), kind)
        part: Step | None = None
        if release is not None and kind == "add-or-remove":
            part = poisson_sample(release, m / n)
        elif release is not None:
            part = replaced_in_sample(release, m / n, blank=kind == "replace-special")
        if part is None:
            raise InvalidInput(_ONE)
        return type(self)({part: 1}, kind)

    def sampled_with_replacement(
        self, sample_size: int, dataset_size: int, *, relation: str = REPLACED
    ) -> Self:
        """Profile of one release of m people drawn one by one, maybe several times, from n.

        For Gaussian and Laplace noise on a sum, made for neighbours of which a person is replaced.
        A person is drawn k times with probability b_k, that of k successes of m with chance 1/n,
        and then counts k-fold. With p = 1 - b_0 and delta_k the curve at k times the distance:

        - "replace-one": at most the sum of b_k delta_k(ln(1 + (e^t - 1)/p)), t >= 0, Balle, Barthe
          and Gaboardi (2018);
        - "add-or-remove", n being the size of the larger database: for Gaussian noise the mixture
          of N(k) with probabilities b_k against N(0), tight; for Laplace noise k counts as shown;
        - "replace-special": at most that of "replace-one".

        Numbers k whose probability is below 1e-24 together count as showing everything.

        Parameters
        ----------
        sample_size, dataset_size : int
            The m, at most 16 n, and the n.
        relation : {"replace-one", "add-or-remove", "replace-special"}
            What neighbours are for the whole database.

        Examples
        --------
        >>> import fastpriv as fp
        >>> noise = fp.accounting.PrivacyProfile.gaussian(4.0, relation="replace-one")
        >>> step = noise.sampled_with_replacement(100, 10_000)
        >>> round(step.delta(0.1).upper, 9)
        3.69e-07
        """
        m, n, kind = self._sizes(sample_size, dataset_size, relation)
        if m > 16 * n:
            raise InvalidInput(
                f"sample_size must be at most 16 times dataset_size, got {short(m)} of {short(n)}"
            )
        if kind == "add-or-remove" and n == 1 and m:
            raise InvalidInput("nobody is left to draw from where one person of 1 is removed")
        release = one_release(self.parts)
        if m == 0 or not self.parts:
            return type(self)({}, kind)
        parts = None if release is None else with_replacement(release, m, n, kind)
        if parts is None:
            raise InvalidInput(
                "sampling with replacement is for Gaussian and Laplace noise; its curve for "
                "people that count several times is not known otherwise"
            )
        return type(self)(parts, kind)

    def _sizes(self, sample_size: int, dataset_size: int, relation: str) -> tuple[int, int, str]:
        """Return checked sizes of a sample and a database, and the relation."""
        m = check.integer(sample_size, "sample_size", 0, check.MAX_COUNT)
        n = check.integer(dataset_size, "dataset_size", 1, check.MAX_COUNT)
        kind = as_relation(relation)
        if self.parts and self.relation != REPLACED:
            raise InvalidInput(
                "a sample of fixed size has the same size for all neighbours; make the step with "
                f"relation='replace-one', not {self.relation!r}"
            )
        return m, n, kind

    # Composition.

    def compose(self, *others: PrivacyProfile) -> PrivacyProfile:
        """Profile of these releases and others together, all for one relation of neighbours.

        A profile of no release composes with any.

        Examples
        --------
        >>> import fastpriv as fp
        >>> of = fp.accounting.PrivacyProfile.randomised_response
        >>> of(2, 0.5).compose(of(4, 0.1), of(4, 0.1))
        PrivacyProfile(3 releases of 2 kinds, relation='replace-one')
        """
        parts: dict[Step, int] = {}
        relation: str | None = None
        for each_profile in (self, *others):
            if not isinstance(each_profile, PrivacyProfile):
                raise InvalidInput(f"only profiles compose, got {described(each_profile)}")
            if each_profile.parts:
                relation = one_relation(relation, each_profile.relation)
            for part, count in each_profile.parts.items():
                parts[part] = parts.get(part, 0) + count
        return PrivacyProfile(parts, relation or self.relation)

    def self_compose(self, count: int) -> PrivacyProfile:
        """Profile of ``count`` independent runs of these releases, 0 for none."""
        times = check.integer(count, "count", 0)
        return PrivacyProfile({part: k * times for part, k in self.parts.items()}, self.relation)

    def with_relation(self, relation: str) -> PrivacyProfile:
        """Return the same curve, stated for another relation of neighbours. It is not converted.

        For steps whose noise multiplier or sensitivity is already that of the relation: a count
        also moves by one if a record is replaced, and a table of counts in two cells.

        Parameters
        ----------
        relation : {"add-or-remove", "replace-one", "replace-special"}
            The neighbours for which the curve holds.

        Examples
        --------
        >>> import fastpriv as fp
        >>> count = fp.accounting.PrivacyProfile.discrete_laplace(0.5).with_relation("replace-one")
        >>> count.epsilon(0.0), count.relation
        (Bracket(0.5, 0.5), 'replace-one')
        """
        return PrivacyProfile(self.parts, check.word(relation, "relation", RELATIONS))

    def to_dict(self) -> dict[str, Any]:
        """Return what the releases are, for JSON: numbers, and the definitions of channels.

        Of a channel that does not say what defines it only the curve is kept, so that the lower
        end is what one release attains.

        Examples
        --------
        >>> import fastpriv as fp
        >>> fp.accounting.PrivacyProfile.gaussian(2.0).self_compose(3).to_dict()
        {'relation': 'add-or-remove', 'releases': [[['normal', 2.0], 3]]}
        """
        from fastpriv.accounting.profile.text import plain

        releases = [[plain(part), count] for part, count in self.parts.items()]
        return {"relation": self.relation, "releases": releases}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> PrivacyProfile:
        """Return the profile that :meth:`to_dict` was called on.

        A text without its relation is refused, for no curve holds for every relation.

        Examples
        --------
        >>> import fastpriv as fp
        >>> profile = fp.accounting.PrivacyProfile.laplace(2.0, 0.1).self_compose(5)
        >>> fp.accounting.PrivacyProfile.from_dict(profile.to_dict()).epsilon(0.0)
        Bracket(0.3142736173, 0.3142736174)
        """
        from fastpriv.accounting.profile.text import counted

        try:
            fields = check.mapping(given, "a profile")
            releases = check.items(fields["releases"], "releases", "pairs")
            counts = ((part, check.integer(count, "count", 0)) for part, count in releases)
            parts = counted(counts)
            relation = fields["relation"] if parts else fields.get("relation") or ADDED
        except (KeyError, TypeError, ValueError) as error:
            raise unread("profile", given, error) from None
        return cls(parts, check.word(relation, "relation", RELATIONS))

    def to_json(self) -> str:
        """Return what the releases are as JSON; ``from_json`` reads it."""
        return headed("profile", "PrivacyProfile", self.to_dict())

    @classmethod
    def from_json(cls, text: str | os.PathLike[str]) -> PrivacyProfile:
        """Return the profile that ``to_json`` was called on: from its text, or a file's path.

        Examples
        --------
        >>> import fastpriv as fp
        >>> profile = fp.accounting.PrivacyProfile.gaussian(2.0).self_compose(3)
        >>> fp.accounting.PrivacyProfile.from_json(profile.to_json()).to_dict()
        {'relation': 'add-or-remove', 'releases': [[['normal', 2.0], 3]]}
        """
        return cls.from_dict(unheaded(text, "profile", "PrivacyProfile"))

    # Questions.

    @overload
    def delta(self, epsilon: float, adaptive: bool = True) -> Bracket: ...
    @overload
    def delta(self, epsilon: ArrayLike, adaptive: bool = True) -> Bracket | Brackets: ...
    def delta(self, epsilon: float | ArrayLike, adaptive: bool = True) -> Bracket | Brackets:
        """Smallest delta for which the releases are (epsilon, delta)-differentially private.

        Parameters
        ----------
        epsilon : float or 1-D array
            Levels of at least 0, in nats.
        adaptive : bool
            Whether mechanisms may be chosen after earlier outputs. If not, they are fixed, and
            read one database: the exact maximum over pairs of neighbours, at most 4,096 of them,
            or 256 together with noise.

        Returns
        -------
        Bracket or Brackets
            Certified on both sides (of what, see Notes), with relative accuracy down to 1e-300.
            The upper bound holds for every mechanism with these curves, the lower bound is attained
            by neighbours.

        Examples
        --------
        >>> import fastpriv as fp
        >>> profile = fp.accounting.PrivacyProfile.of([[0.75, 0.25], [0.25, 0.75]])
        >>> profile.delta([0.0, 0.5])[1]
        Bracket(0.3378196823, 0.3378196824)
        """
        kind = check.flag(adaptive, "adaptive")
        cases = self.cases if kind else self.fixed_cases
        return _each(epsilon, "epsilon", math.inf, cases.delta)

    @overload
    def epsilon(self, delta: float, adaptive: bool = True) -> Bracket: ...
    @overload
    def epsilon(self, delta: ArrayLike, adaptive: bool = True) -> Bracket | Brackets: ...
    def epsilon(self, delta: float | ArrayLike, adaptive: bool = True) -> Bracket | Brackets:
        """Smallest epsilon for which the releases are (epsilon, delta)-differentially private.

        Parameters
        ----------
        delta : float or 1-D array
            In [0, 1]; 0 asks for the differential privacy level.
        adaptive : bool
            Whether mechanisms may be chosen after earlier outputs. If not, they are fixed, and
            read one database: the exact maximum over pairs of neighbours, at most 4,096 of them,
            or 256 together with noise.

        Returns
        -------
        Bracket or Brackets
            Certified on both sides as in :meth:`delta`; infinite when outputs that give a
            database away are more likely than delta.

        Examples
        --------
        >>> import fastpriv as fp
        >>> profile = fp.accounting.PrivacyProfile.randomised_response(2, 1.0).self_compose(10)
        >>> profile.epsilon([0.0, 1e-3])[0]
        Bracket(9.999999999, 10.00000001)
        """
        kind = check.flag(adaptive, "adaptive")
        cases = self.cases if kind else self.fixed_cases
        return _each(delta, "delta", 1.0, cases.epsilon)

    def __eq__(self, other: object) -> bool:
        """Whether the releases are the same, float for float, for the same relation."""
        if not isinstance(other, PrivacyProfile):
            return NotImplemented
        return self.relation == other.relation and self.parts == other.parts

    def __hash__(self) -> int:
        return hash((self.relation, frozenset(self.parts.items())))

    def __repr__(self) -> str:
        kinds = len(self.parts)
        releases = f"{sum(self.parts.values()):,} releases of {kinds} kinds"
        return f"PrivacyProfile({releases}, relation={self.relation!r})"

    # Bounds.

    @cached_property
    def fixed_cases(self) -> Cases:
        """The same for fixed mechanisms, where the pairs of neighbours of channels are known."""
        atoms = [part for part in self.parts if isinstance(part, FiniteStep) and not part.free]
        known = bool(atoms) and all(atom.source is not None for atom in atoms)
        return FixedCases(self.parts) if known else self.cases


def _each(
    given: float | ArrayLike, name: str, most: float, ask: Callable[[float], Bracket]
) -> Bracket | Brackets:
    """Ask for one number, or for each of many."""
    numbers = check.array(given, name)
    if numbers.ndim == 0:
        return ask(check.real(given, name, least=0.0, most=most))
    values = check.floats(numbers, name, 1)
    ends = [ask(check.real(value, name, least=0.0, most=most)) for value in values.tolist()]
    return Brackets(np.array([b.lower for b in ends]), np.array([b.upper for b in ends]))


def _without_noise(q: float, relation: str) -> dict[Step, int]:
    """Return what a sample of people leaks if they are in it: nothing, or all of them."""
    if q == 0.0:
        return {}
    if relation == REPLACED:  # outside the sample both records leave the same output
        return {FiniteStep.response(2, 0.0, q): 1}
    return {show_all(): 1} if q == 1.0 else {SampledFinite(show_all(), q): 1}


def _pairs(made: PrivacyProfile) -> list[ContinuousStep]:
    """Return the steps of Gaussian noise."""
    return [part for part in made.parts if isinstance(part, ContinuousStep)]
