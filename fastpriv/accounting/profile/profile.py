"""Privacy profiles: the (epsilon, delta) curve of one mechanism or of a composition."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import cached_property
from types import MethodType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.defined import headed, unheaded
from fastpriv._core.rounding import lowered
from fastpriv._text import html
from fastpriv.accounting.profile.cases import Cases, FixedCases
from fastpriv.accounting.profile.composition import RenyiStep
from fastpriv.accounting.profile.discrete import Step
from fastpriv.accounting.profile.losses import ContinuousStep
from fastpriv.accounting.profile.parallel import Largest
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
from fastpriv.accounting.profile.steps.laplace import Interval, PermuteAndFlip
from fastpriv.accounting.profile.steps.sampling import (
    Blend,
    group_of,
    one_release,
    poisson_sample,
    replaced_in_sample,
    with_replacement,
)
from fastpriv.accounting.profile.strategy import goal
from fastpriv.accounting.profile.text import KINDS, counted, plain, title
from fastpriv.channels import AbstractChannel
from fastpriv.errors import InvalidInput, described, short, unread
from fastpriv.measures.inputs import as_channel
from fastpriv.measures.neighbours import ResponseGroup, group_size, with_neighbours
from fastpriv.measures.realised import realised
from fastpriv.results import Bracket, Brackets

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["PrivacyProfile"]

#: Largest number of steps of one kind.
_COUNTED = 10**100
#: Largest number of records of a user.
_GROUP = 4096
#: Largest dataset_size of a truncated sample; the size is used as a double.
_PEOPLE = 10**12

_ONE = (
    "only one release, or Gaussian noise, is sampled from: several releases on one sample are not "
    "releases on refreshed samples; draw a new sample for each, and compose the sampled profiles"
)

_Made = ParamSpec("_Made")
_Asked = ParamSpec("_Asked")
_Answer = TypeVar("_Answer")
_Owner = TypeVar("_Owner")


class Named(Generic[_Made, _Asked, _Answer]):
    """Bind one name to a constructor on the class and to a query on its instances.

    Parameters
    ----------
    make : callable
        Constructor; called with the class and the declared levels.
    ask : callable
        Query; called with the instance and its arguments.
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
    """Profile of any (xi, rho)-zCDP mechanism; upper bounds only.

    In a composition, Renyi divergences bound all steps from above, and the other steps set the
    lower bound. On an instance, ``profile.zcdp()`` returns the smallest rho, as ``zcdp_level``.

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
    """Profile of any mechanism with given Renyi divergences; upper bounds only.

    On an instance, ``profile.renyi(order)`` returns the divergence at that order, as
    ``renyi_level``.

    Parameters
    ----------
    orders, levels : arrays
        Increasing orders above 1, and the Renyi divergence at each order, in nats.
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
        raise InvalidInput(
            f"levels must hold one level for each order, and at least one; got {len(values)} "
            f"levels and {len(at)} orders."
        )
    if not (np.all(at > 1.0) and np.all(np.diff(at) > 0.0) and np.all(at < math.inf)):
        raise InvalidInput("orders must be above 1, finite and rising.")
    if not np.all((values >= 0.0) & (values < math.inf)):
        raise InvalidInput("levels must be finite numbers of at least 0.")
    part = RenyiStep(tuple(at.tolist()), tuple(values.tolist()), 0.0, 0.0)
    return cls({part: 1}, as_relation(relation))


def gdp(cls: Any, mu: float, *, relation: str = ADDED) -> Any:
    """Profile of any mu-GDP mechanism; the worst pair is N(0, 1) against N(mu, 1).

    On an instance, ``profile.gdp()`` returns the smallest mu, as ``gdp_level``.

    Examples
    --------
    >>> import fastpriv as fp
    >>> profile = fp.accounting.PrivacyProfile.gdp(0.5)
    >>> 0.5 in profile.gdp(), profile.self_compose(4).epsilon(1e-5)
    (True, Bracket(4.377178095, 4.377178096))
    """
    level = check.real(mu, "mu", least=0.0)
    if level != 0.0 and not 1e-15 <= level <= 1e6:
        raise InvalidInput(f"mu must be 0 or between 1e-15 and 1e6; got {level:g}.")
    return cls({} if level == 0.0 else {GaussianNoise(1.0 / level): 1}, as_relation(relation))


class PrivacyProfile(Questions):
    """Privacy curve delta(epsilon) of one or more steps, as a dominating pair of distributions.

    For one mechanism, delta(epsilon) is the largest hockey-stick divergence over neighbours x, x'
    in both orders. This curve is convex and piecewise linear in e^epsilon. One pair of
    distributions (P, Q) therefore has the same curve, and it dominates every pair of neighbours.
    The product of the pairs dominates the composed steps, even if later steps depend on earlier
    outputs.

    Create a profile with :meth:`of`, :meth:`realised`, :meth:`randomised_response`,
    :meth:`from_epsilon_delta`, or a noise constructor such as ``gaussian`` or ``laplace``.

    Attributes
    ----------
    relation : {"add-or-remove", "replace-one", "replace-special"}
        Which databases are neighbours. The default is "add-or-remove" for noise and declared
        levels, and "replace-one" for channels. Profiles of different relations do not compose.
        The guide on relations explains what each relation covers.

    Notes
    -----
    The upper bound of a bracket is a guarantee. It holds for the given steps and for all steps
    with the same curves, and each step may depend on earlier outputs.

    The lower bound is attained by one pair of neighbouring databases, the same and in the same
    order in every step. Channels on different input spaces read data of the same people, with one
    pair of neighbours in each space. :meth:`randomised_response` and :meth:`from_epsilon_delta`
    are the worst mechanisms at their levels for every pair.

    For one step, the two bounds differ by rounding only. They also agree after composition if one
    pair of neighbours sets the whole curve, as in randomised response and in counts with symmetric
    noise. Otherwise no pair attains the composed envelope, and the bracket is wider. The relative
    accuracy does not depend on the size of delta. The pages "Contour" and "Rounding" of the
    documentation describe the algorithms and their errors.

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
        if not isinstance(parts, dict):
            raise InvalidInput(
                f"parts must be a dict of steps; got {described(parts)}. Make a profile by "
                "PrivacyProfile.gaussian, .laplace or .of(channel)."
            )
        self.parts = {part: count for part, count in parts.items() if count and not part.is_trivial}
        self.relation = check.word(ADDED if relation is None else relation, "relation", RELATIONS)
        if max(self.parts.values(), default=0) > _COUNTED:
            raise InvalidInput(
                "a composition must have at most 10^100 steps of one kind. Compose fewer."
            )

    def __reduce__(self) -> tuple[Any, ...]:
        return PrivacyProfile, (self.parts, self.relation)

    @classmethod
    def of(
        cls,
        channel: AbstractChannel | ArrayLike,
        *,
        neighbours: ArrayLike | None = None,
        group: int = 1,
    ) -> PrivacyProfile:
        """Profile of one run of a mechanism, for the relation "replace-one".

        Parameters
        ----------
        channel : channel or 2-D array
            The mechanism. Randomised response has a closed form, for groups of records too. A
            channel that acts on each record separately needs the pairs of distributions of one
            record. Other channels take O(N n (m-1) K log K) through the matrix.
        neighbours : array or sparse array, optional
            Pairs (k, 2) of databases, a matrix of zeros and ones, or the distances of a graph: its
            edges are the neighbours. Default: databases that differ in one record.
        group : int
            Number of records in which neighbours may differ. With a graph, the number of its edges
            between neighbours. Compose only profiles that have the same neighbours. With other
            neighbours or groups only the curve is kept, so ``adaptive=False`` changes nothing.

        Examples
        --------
        >>> import fastpriv as fp
        >>> profile = fp.accounting.PrivacyProfile.of([[0.5, 0.5, 0.0], [0.25, 0.5, 0.25]])
        >>> profile.epsilon(0.2), profile.delta(0.0)
        (Bracket(infinite, infinite), Bracket(0.2499999999, 0.2500000001))
        """
        parts = with_neighbours(channel, neighbours, group_size(group))
        if len(parts) != 1 or parts[0][0] != 1.0:
            raise InvalidInput(
                "neighbours must be a graph that relates some databases, because a profile has no "
                "other distances; got a metric or no pair. Pass a matrix of zeros and ones."
            )
        view = parts[0][1]
        if isinstance(view, ResponseGroup) and len(set(as_channel(channel).space.sizes) - {1}) == 1:
            columns = view.columns  # every group of as many records attains the curve
            response = FiniteStep.response(columns.space.sizes[0], columns.epsilon)
            return cls({response: columns.space.n}, REPLACED)
        step = FiniteStep.of(view, 0.0)
        if neighbours is not None or group > 1:
            step.source = None  # its pairs are not those of the databases, so only the curve holds
        return cls({step: 1}, REPLACED)

    @classmethod
    def realised(cls, channel: AbstractChannel | ArrayLike) -> PrivacyProfile:
        """Profile of one run as sampled by ``channel.sample``, from its integer thresholds.

        Parameters
        ----------
        channel : channel or 2-D array
            The mechanism. If the sampled distribution is known only up to a relative error, the
            profile includes this error as additional loss. The cost is as for :meth:`of`.

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
        """Profile of m-ary randomised response at level epsilon, in nats.

        The profile is the same for any number of records.

        Examples
        --------
        >>> import fastpriv as fp
        >>> fp.accounting.PrivacyProfile.randomised_response(4, 0.5).self_compose(100).epsilon(1e-6)
        Bracket(23.46746703, 23.46746704)
        """
        size = check.integer(m, "m", 1, check.MAX_COUNT)
        level = check.real(epsilon, "epsilon", least=0.0)
        return cls({FiniteStep.response(size, level): 1}, REPLACED)

    @classmethod
    def from_epsilon_delta(
        cls, epsilon: float, delta: float = 0.0, *, relation: str = ADDED
    ) -> PrivacyProfile:
        """Profile that bounds every (epsilon, delta)-DP mechanism.

        The worst mechanism reveals the database with probability delta, and otherwise applies
        binary randomised response at level epsilon.

        Parameters
        ----------
        epsilon, delta : float
            The level of the mechanism, in nats, and its delta, a probability.
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

    # Declared levels: each name is a constructor on the class and returns the level on an instance.
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
        """Profile of Gaussian noise on a sum, with optional Poisson sampling.

        The pair is N(0, sigma^2) against (1 - q) N(0, sigma^2) + q N(1, sigma^2), in both orders.
        If a record is replaced, it is (1 - q) N(0, sigma^2) + q N(1, sigma^2) against
        (1 - q) N(0, sigma^2) + q N(-1, sigma^2).

        Parameters
        ----------
        noise_multiplier : float
            Standard deviation sigma divided by the largest norm of one record's contribution.
            0 reveals everything.
        sampling_probability : float
            Probability q with which each record is sampled.
        relation : {"add-or-remove", "replace-one", "replace-special"}
            Which databases are neighbours. The default does not cover replacing a record. Use
            "replace-one" to compose with channels.

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
        """Profile of Laplace noise on a sum, with optional Poisson sampling.

        Parameters
        ----------
        noise_multiplier : float
            Scale divided by the largest 1-norm of one record's contribution. 0 reveals everything.
        sampling_probability : float
            Probability with which each record is sampled.
        relation : {"add-or-remove", "replace-one", "replace-special"}
            Which databases are neighbours. For "replace-one", a sample has an upper bound only:
            see :meth:`poisson_subsampled`.

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
        """Profile of Gaussian noise with a random sensitivity.

        The pair is N(0, sigma^2) against the mixture of N(c_i, sigma^2) with probabilities p_i.

        Parameters
        ----------
        standard_deviation : float
            Standard deviation sigma of the noise, in the unit of the sensitivities.
        sensitivities, probabilities : arrays
            The c_i >= 0 and their probabilities p_i, which sum to one.
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
                "got 'replace-one'."
            )
        if len(shifts) != len(chances) or not len(shifts):
            raise InvalidInput(
                "probabilities must hold one probability for each sensitivity; got "
                f"{len(chances)} for {len(shifts)} sensitivities."
            )
        most = sigma / LEAST_NOISE if sigma > 0.0 else math.inf
        if not np.all((shifts >= 0.0) & (shifts < math.inf) & (shifts <= most)):
            raise InvalidInput(
                "sensitivities must be finite numbers of at least 0, at most "
                f"{1.0 / LEAST_NOISE:g} times the standard deviation; add more noise."
            )
        if not np.all(chances >= 0.0) or abs(math.fsum(chances.tolist()) - 1.0) > 1e-9:
            raise InvalidInput(
                "probabilities must be at least 0 and sum to 1. Divide them by their sum."
            )
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
        """Profile of discrete Gaussian noise on an integer.

        The noise is x with probability e^(-x^2/(2 sigma^2)) / Z, and Z normalises the sum.

        Parameters
        ----------
        sigma : float
            Parameter of the noise, at most 1e4.
        sensitivity : int
            Largest change of the integer if one record is added or removed.
        relation : {"add-or-remove", "replace-one", "replace-special"}
            Which databases are neighbours. "replace-one" doubles the sensitivity.

        Examples
        --------
        >>> import fastpriv as fp
        >>> fp.accounting.PrivacyProfile.discrete_gaussian(2.0).self_compose(10).epsilon(1e-6)
        Bracket(8.303280557, 8.303280558)
        """
        scale = check.real(sigma, "sigma", least=0.0, most=1e4)
        distance = check.integer(sensitivity, "sensitivity", 0)
        if distance > 1 << 20:
            raise InvalidInput(f"sensitivity must be at most 2^20; got {short(distance)}.")
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
        """Profile of discrete Laplace (geometric) noise on an integer.

        The noise is x with probability e^(-a|x|) tanh(a/2).

        Parameters
        ----------
        noise_parameter : float
            The level a per unit of sensitivity, in nats, at most 1e9. 0 reveals nothing here;
            dp-accounting treats 0 as revealing everything.
        sensitivity : int
            Largest change of the integer if one record is added or removed.
        relation : {"add-or-remove", "replace-one", "replace-special"}
            Which databases are neighbours. "replace-one" doubles the sensitivity.

        Examples
        --------
        >>> import fastpriv as fp
        >>> fp.accounting.PrivacyProfile.discrete_laplace(0.5).epsilon([0.0, 0.1])[0]
        Bracket(0.5, 0.5)
        """
        a = check.real(noise_parameter, "noise_parameter", least=0.0, most=1e9)
        distance = check.integer(sensitivity, "sensitivity", 0)
        if distance > 1 << 20:
            raise InvalidInput(f"sensitivity must be at most 2^20; got {short(distance)}.")
        kind = as_relation(relation)
        if distance == 0 or a == 0.0:
            return cls({}, kind)
        return cls({discrete_laplace(a, distance * (1 + (kind == REPLACED))): 1}, kind)

    @classmethod
    def exponential(cls, epsilon: float, *, relation: str = ADDED) -> Self:
        """Profile of any mechanism of bounded range, such as the exponential mechanism.

        The curve is at most (e^(epsilon/2) - e^(t/2))^2 / (e^epsilon - 1), and some mechanism
        attains this value at each t. After composition, both bounds follow from the best adaptive
        choice of mechanisms (Dong, Durfee and Rogers 2020). For some hundreds of steps, or for
        different levels, one mechanism gives the lower bound and epsilon^2/8-zCDP the upper bound.

        Parameters
        ----------
        epsilon : float
            Largest difference of two losses of one pair of neighbours, in nats, at most 700.
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
    def permute_and_flip(cls, epsilon: float, *, relation: str = ADDED) -> Self:
        """Profile of permute-and-flip, a private choice among candidates.

        The curve is at most the curve of Laplace noise of the same level, 1 - e^((t - epsilon)/2),
        and some choice between two candidates attains this value at each t (proved in
        docs/theory/selection.md). After composition, Laplace noise gives the upper bound, and one
        choice between two candidates the lower bound.

        Parameters
        ----------
        epsilon : float
            Level of differential privacy, in nats, at most 700. If all scores move in the same
            direction, half of it.
        relation : {"add-or-remove", "replace-one", "replace-special"}
            Which databases are neighbours.

        Examples
        --------
        >>> import fastpriv as fp
        >>> fp.accounting.PrivacyProfile.permute_and_flip(1.0).delta(0.0)  # 1 - e^(-1/2)
        Bracket(0.3934693402, 0.3934693403)
        """
        level = check.real(epsilon, "epsilon", least=0.0, most=700.0)
        kind = as_relation(relation)
        if level == 0.0:
            return cls({}, kind)
        if level <= 1e-100:
            return cls({FiniteStep.response(2, level).down_to(0.0): 1}, kind)
        return cls({PermuteAndFlip(level): 1}, kind)

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
        """Profile of Gaussian noise on a Poisson sample truncated to a maximum size.

        This is an upper bound. If the sample is truncated, the record may displace another one,
        which counts as a replacement with twice the sensitivity (Ganesh 2025, arXiv:2508.15089).

        Parameters
        ----------
        dataset_size, truncated_batch_size : int
            Number of records in the database, and maximum number of records in a sample.
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
            raise InvalidInput(f"dataset_size must be at most {_PEOPLE:,}; got {short(n)}.")
        sigma = amount_of_noise(noise_multiplier, "noise_multiplier")
        q = check.real(sampling_probability, "sampling_probability", least=0.0, most=1.0)
        whole = cls.gaussian(sigma, q, relation=relation)
        cut = float(binom.sf(most - 1, n - 1, q)) if n > 0 and most > 0 else 0.0
        if n == 0 or most == 0:
            return cls({}, as_relation(relation))
        if cut < 1e-300 or not whole.parts or sigma == 0.0:
            return whole
        # If all other records contribute zero, a sampled record changes the sum by one.
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
        """Profile of one step on a Poisson sample of the records.

        If a record is added or removed, the pair (P, Q) of the step becomes
        ((1 - q) Q + q P, Q), in both orders.

        If a record is replaced, the step must be noise on a sum. Removing a record then changes
        the sum by at most as much as replacing it. The curve is at most
        q delta(ln(1 + (e^t - 1)/q)) for t >= 0, and delta is the curve of the step. A count
        attains this bound. For Gaussian noise on a sum of vectors of bounded norm,
        ``gaussian(sigma, q, relation="replace-one")`` is smaller.

        Parameters
        ----------
        sampling_probability : float
            Probability q with which each record is sampled. The profile must consist of one step,
            or of Gaussian noise only.

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
                "Poisson sampling with replace-one neighbours has a bound only for noise on a "
                "sum. Use sampled_without_replacement."
            )
        return type(self)({part: 1}, self.relation)

    def sampled_without_replacement(
        self, sample_size: int, dataset_size: int, *, relation: str = REPLACED
    ) -> Self:
        """Profile of one step on a random subset of m of the n records.

        The profile itself must be for the relation "replace-one", because all samples have the
        same size. Let q = m/n, let (P, Q) be the pair of the step and delta its curve.

        - "replace-one": the curve is at most q delta(ln(1 + (e^t - 1)/q)) for t >= 0 (Balle,
          Barthe and Gaboardi 2018). This is tight for one step with Gaussian noise.
        - "add-or-remove", with n the size of the larger database: the pair is exactly
          ((1 - q) Q + q P, Q), in both orders. If the record is not sampled, the subset is
          distributed as a subset of the smaller database. If it is sampled, it replaces another.
        - "replace-special", for noise on a sum: the curve is at most the "replace-one" curve,
          because a record that contributes zero is one more value.

        The proofs are in docs/theory/sampling.md. The lower bound is attained by one of these
        pairs in both orders. If a record is replaced, the same two databases may use one order in
        some steps and the other order in others, so their composition may be larger.

        Parameters
        ----------
        sample_size, dataset_size : int
            Numbers of records: m in the sample and n >= m in the database.
        relation : {"replace-one", "add-or-remove", "replace-special"}
            Which whole databases are neighbours.

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
                f"sample_size must be below dataset_size; got {short(m)} of {short(n)}. "
                "Without sampling use the profile itself."
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
        """Profile of one step on m records sampled with replacement from n.

        The step must be Gaussian or Laplace noise on a sum, for the relation "replace-one".
        A record is sampled k times with binomial probability b_k (m trials, success probability
        1/n), and then contributes k-fold. Let p = 1 - b_0, and let delta_k be the curve at k times
        the sensitivity.

        - "replace-one": the curve is at most the sum of b_k delta_k(ln(1 + (e^t - 1)/p)) for
          t >= 0 (Balle, Barthe and Gaboardi 2018).
        - "add-or-remove", with n the size of the larger database: for Gaussian noise, the mixture
          of N(k) with probabilities b_k against N(0), which is tight. For Laplace noise, k counts
          as revealed.
        - "replace-special": the curve is at most the "replace-one" curve.

        Values of k with total probability below 1e-24 count as revealing everything.

        Parameters
        ----------
        sample_size, dataset_size : int
            Numbers of records: m <= 16 n in the sample and n in the database.
        relation : {"replace-one", "add-or-remove", "replace-special"}
            Which whole databases are neighbours.

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
                f"sample_size must be at most 16 times dataset_size; got {short(m)} of {short(n)}."
            )
        if kind == "add-or-remove" and n == 1 and m:
            raise InvalidInput(
                "dataset_size must be at least 2 for add-or-remove neighbours; a database of "
                "one record without that record is empty. Use 2 records or more."
            )
        release = one_release(self.parts)
        if m == 0 or not self.parts:
            return type(self)({}, kind)
        parts = None if release is None else with_replacement(release, m, n, kind)
        if parts is None:
            raise InvalidInput(
                "sampling with replacement must be of Gaussian or Laplace noise; other steps "
                "have no known bound if a record is drawn several times. Use "
                "sampled_without_replacement."
            )
        return type(self)(parts, kind)

    def _sizes(self, sample_size: int, dataset_size: int, relation: str) -> tuple[int, int, str]:
        """Validate and return the sample size, the database size and the relation."""
        m = check.integer(sample_size, "sample_size", 0, check.MAX_COUNT)
        n = check.integer(dataset_size, "dataset_size", 1, check.MAX_COUNT)
        kind = as_relation(relation)
        if self.parts and self.relation != REPLACED:
            raise InvalidInput(
                "a sample of fixed size needs steps for replace-one neighbours; got "
                f"{self.relation!r}. Make the step with relation='replace-one'."
            )
        return m, n, kind

    # Composition.

    def compose(self, *others: PrivacyProfile) -> PrivacyProfile:
        """Compose these steps with the steps of other profiles.

        All profiles must have the same relation. A profile without steps composes with any.

        Examples
        --------
        >>> import fastpriv as fp
        >>> of = fp.accounting.PrivacyProfile.randomised_response
        >>> of(4, 0.5).compose(of(4, 0.5), of(4, 0.5))
        PrivacyProfile(3 x randomised response, 4 values, epsilon 0.5; relation='replace-one')
        """
        parts: dict[Step, int] = {}
        relation: str | None = None
        for each_profile in (self, *others):
            if not isinstance(each_profile, PrivacyProfile):
                raise InvalidInput(
                    f"profiles must be PrivacyProfiles; got {described(each_profile)}. Make "
                    "one by PrivacyProfile.of(channel)."
                )
            if each_profile.parts:
                relation = one_relation(relation, each_profile.relation)
            for part, count in each_profile.parts.items():
                parts[part] = parts.get(part, 0) + count
        return PrivacyProfile(parts, relation or self.relation)

    def self_compose(self, count: int) -> PrivacyProfile:
        """Profile of ``count`` independent runs of these steps; 0 gives an empty profile."""
        times = check.integer(count, "count", 0)
        return PrivacyProfile({part: k * times for part, k in self.parts.items()}, self.relation)

    def group(self, size: int) -> PrivacyProfile:
        """Profile for databases that differ in up to k records: user-level or group privacy.

        If a user has at most k records, this is the profile for neighbours that differ in all
        records of one user. Each step is converted, and the results compose.

        - Gaussian, Laplace and discrete noise: k times the sensitivity, which is tight.
        - Gaussian noise on a Poisson sample: the number of sampled records is binomial, which is
          tight. It is not k times the level.
        - zCDP: k^2 rho, and k (1 + 1/2 + ... + 1/k) xi (Bun and Steinke 2016).
        - All others: the k-fold trade-off curve (Dong, Roth and Su 2022, theorem 2.14), which some
          mechanism with the same curve attains. The lower bound is that of one record, and 0 for
          channels.

        A step whose pair is that of a Poisson sample counts as one, also if it was made as a sample
        of fixed size or as a mixture of Gaussians. For samples of fixed size and "add-or-remove",
        the probability of a record grows when others are removed. The bound then holds if
        ``dataset_size`` was n - k + 1, with n the size of the largest database.

        Parameters
        ----------
        size : int
            Number k of records, at most 4096.

        Examples
        --------
        >>> import fastpriv as fp
        >>> of = fp.accounting.PrivacyProfile.gaussian
        >>> of(4.0).group(2) == of(2.0)
        True
        >>> step = of(1.0, 0.01).self_compose(1000)  # DP-SGD; a user has up to 5 records
        >>> round(step.epsilon(1e-5).upper, 4), round(step.group(5).epsilon(1e-5).upper, 3)
        (1.8282, 11.638)
        """
        k = check.integer(size, "size", 1, _GROUP)
        if k == 1:
            return PrivacyProfile(dict(self.parts), self.relation)
        parts: dict[Step, int] = {}
        grouped: Step | None
        for part, count in self.parts.items():
            if isinstance(part, RenyiStep):
                grouped = part.group(k)
            else:
                grouped = group_of(part, k, self.relation)
            if grouped is None:
                raise InvalidInput(
                    "size must be 1 for a step that is known by its Renyi divergences at some "
                    "orders or by a composition; they do not bound groups. Use zCDP, noise or a "
                    "curve."
                )
            parts[grouped] = parts.get(grouped, 0) + count
        return PrivacyProfile(parts, self.relation)

    def with_relation(self, relation: str) -> PrivacyProfile:
        """Return the same curve with another relation; the curve is not converted.

        Use it if the noise multiplier or sensitivity already fits the other relation. For example,
        a count also changes by one if a record is replaced. A table of counts changes in two cells.

        Parameters
        ----------
        relation : {"add-or-remove", "replace-one", "replace-special"}
            Relation for which the curve holds.

        Examples
        --------
        >>> import fastpriv as fp
        >>> count = fp.accounting.PrivacyProfile.discrete_laplace(0.5).with_relation("replace-one")
        >>> count.epsilon(0.0), count.relation
        (Bracket(0.5, 0.5), 'replace-one')
        """
        return PrivacyProfile(self.parts, check.word(relation, "relation", RELATIONS))

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-serialisable definition of the steps.

        If a channel does not provide its definition, only its curve is kept. The lower bound is
        then the bound attained by one step.

        Examples
        --------
        >>> import fastpriv as fp
        >>> fp.accounting.PrivacyProfile.gaussian(2.0).self_compose(3).to_dict()
        {'relation': 'add-or-remove', 'releases': [[['normal', 2.0], 3]]}
        """
        releases = [[plain(part), count] for part, count in self.parts.items()]
        return {"relation": self.relation, "releases": releases}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> PrivacyProfile:
        """Return the profile described by the result of :meth:`to_dict`.

        Steps without a relation are refused, because no curve holds for every relation.

        Examples
        --------
        >>> import fastpriv as fp
        >>> profile = fp.accounting.PrivacyProfile.laplace(2.0, 0.1).self_compose(5)
        >>> fp.accounting.PrivacyProfile.from_dict(profile.to_dict()).epsilon(0.0)
        Bracket(0.3142736173, 0.3142736174)
        """
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
        """Return the definition of the steps as JSON text, for ``from_json``."""
        return headed("profile", "PrivacyProfile", self.to_dict())

    @classmethod
    def from_json(cls, text: str | os.PathLike[str]) -> PrivacyProfile:
        """Return the profile written by ``to_json``, from its text or the path of a file.

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
    def delta(
        self,
        epsilon: float,
        adaptive: bool = True,
        *,
        accuracy: float = 0.0,
        time_limit: float = math.inf,
    ) -> Bracket: ...
    @overload
    def delta(
        self,
        epsilon: ArrayLike,
        adaptive: bool = True,
        *,
        accuracy: float = 0.0,
        time_limit: float = math.inf,
    ) -> Bracket | Brackets: ...
    def delta(
        self,
        epsilon: float | ArrayLike,
        adaptive: bool = True,
        *,
        accuracy: float = 0.0,
        time_limit: float = math.inf,
    ) -> Bracket | Brackets:
        """Smallest delta for which the steps are (epsilon, delta)-differentially private.

        Parameters
        ----------
        epsilon : float or 1-D array
            Levels of at least 0, in nats.
        adaptive : bool
            Whether mechanisms may be chosen after earlier outputs. If not, they are fixed and
            read one database. The result is then the exact maximum over pairs of neighbours: at
            most 4,096 pairs, or 256 pairs with noise.
        accuracy : float
            Relative width of a bracket at which no further method is tried. The default is as
            narrow as all methods make it.
        time_limit : float
            Seconds after which no further method is tried. A method that has begun is not
            interrupted. The bounds hold in any case.

        Returns
        -------
        Bracket or Brackets
            Certified bounds, with relative accuracy for delta down to 1e-300. The upper bound is
            rounded up and holds for every mechanism with these curves. The lower bound is rounded
            down and attained by neighbours.

        Examples
        --------
        >>> import fastpriv as fp
        >>> profile = fp.accounting.PrivacyProfile.of([[0.75, 0.25], [0.25, 0.75]])
        >>> profile.delta([0.0, 0.5])[1]
        Bracket(0.3378196823, 0.3378196824)
        """
        kind = check.flag(adaptive, "adaptive")
        cases = self.cases if kind else self.fixed_cases
        with _goal(accuracy, time_limit):
            return _each(epsilon, "epsilon", math.inf, cases.delta)

    @overload
    def epsilon(
        self,
        delta: float,
        adaptive: bool = True,
        *,
        accuracy: float = 0.0,
        time_limit: float = math.inf,
    ) -> Bracket: ...
    @overload
    def epsilon(
        self,
        delta: ArrayLike,
        adaptive: bool = True,
        *,
        accuracy: float = 0.0,
        time_limit: float = math.inf,
    ) -> Bracket | Brackets: ...
    def epsilon(
        self,
        delta: float | ArrayLike,
        adaptive: bool = True,
        *,
        accuracy: float = 0.0,
        time_limit: float = math.inf,
    ) -> Bracket | Brackets:
        """Smallest epsilon for which the steps are (epsilon, delta)-differentially private.

        Parameters
        ----------
        delta : float or 1-D array
            Probability in [0, 1]; 0 requests the level of pure differential privacy.
        adaptive : bool
            Whether mechanisms may be chosen after earlier outputs. If not, they are fixed and
            read one database. The result is then the exact maximum over pairs of neighbours: at
            most 4,096 pairs, or 256 pairs with noise.
        accuracy : float
            Relative width of a bracket at which no further method is tried. The default is as
            narrow as all methods make it.
        time_limit : float
            Seconds after which no further method is tried. A method that has begun is not
            interrupted. The bounds hold in any case.

        Returns
        -------
        Bracket or Brackets
            Certified bounds in nats, rounded as in :meth:`delta`. They are infinite if the outputs
            that reveal the database have a probability above delta.

        Examples
        --------
        >>> import fastpriv as fp
        >>> profile = fp.accounting.PrivacyProfile.randomised_response(2, 1.0).self_compose(10)
        >>> profile.epsilon([0.0, 1e-3])[0]
        Bracket(9.999999999, 10.00000001)
        """
        kind = check.flag(adaptive, "adaptive")
        cases = self.cases if kind else self.fixed_cases
        with _goal(accuracy, time_limit):
            return _each(delta, "delta", 1.0, cases.epsilon)

    def __eq__(self, other: object) -> bool:
        """Whether both profiles have identical steps, float for float, and the same relation."""
        if not isinstance(other, PrivacyProfile):
            return NotImplemented
        return self.relation == other.relation and self.parts == other.parts

    def __hash__(self) -> int:
        return hash((self.relation, frozenset(self.parts.items())))

    def __repr__(self) -> str:
        shown = [f"{count:,} x {title({part: 1})}" for part, count in self.parts.items()]
        if len(shown) > _LISTED:
            rest = sum(list(self.parts.values())[_LISTED:])
            kinds = len(shown) - _LISTED
            shown = [*shown[:_LISTED], f"{rest:,} steps of {kinds:,} more kinds"]
        steps = " + ".join(shown) or "no steps"
        return f"PrivacyProfile({steps}; relation={self.relation!r})"

    @property
    def title(self) -> str:
        """The steps in words, as legends name them.

        Noise is relative to the distance of neighbours, the sensitivity, which is twice as large
        if a record is replaced.
        """
        return title(self.parts)

    def _repr_html_(self) -> str:
        rows = [(title({part: 1}), f"{count:,}") for part, count in self.parts.items()]
        note = f"neighbours: {self.relation}; .epsilon(delta) and .delta(epsilon) are brackets"
        return html.listing("Privacy profile", ("step", "times"), rows, note)

    # Bounds.

    @cached_property
    def fixed_cases(self) -> Cases:
        """Bounds for mechanisms fixed beforehand, or ``cases`` if the pairs are not known."""
        atoms = [part for part in self.parts if isinstance(part, FiniteStep) and not part.free]
        known = bool(atoms) and all(atom.source is not None for atom in atoms)
        return FixedCases(self.parts) if known else self.cases


#: Kinds of steps that a repr writes out.
_LISTED = 4


def _goal(accuracy: float, time_limit: float) -> AbstractContextManager[None]:
    """Validate and set the goal of a question."""
    return goal(
        check.real(accuracy, "accuracy", least=0.0, most=1.0),
        check.limit(time_limit, "time_limit"),
    )


def _each(
    given: float | ArrayLike, name: str, most: float, ask: Callable[[float], Bracket]
) -> Bracket | Brackets:
    """Evaluate ``ask`` at one number, or at each number of an array."""
    if isinstance(given, str | bytes):
        raise InvalidInput(
            f"{name} must be a number or an array of numbers; got the text {described(given)}. "
            "Convert it by float."
        )
    numbers = check.array(given, name)
    if numbers.ndim == 0:
        return ask(check.real(given, name, least=0.0, most=most))
    values = check.floats(numbers, name, 1)
    ends = [ask(check.real(value, name, least=0.0, most=most)) for value in values.tolist()]
    return Brackets(np.array([b.lower for b in ends]), np.array([b.upper for b in ends]))


def _without_noise(q: float, relation: str) -> dict[Step, int]:
    """Return the steps of a sample published without noise."""
    if q == 0.0:
        return {}
    if relation == REPLACED:  # if the record is not sampled, both databases have the same output
        return {FiniteStep.response(2, 0.0, q): 1}
    return {show_all(): 1} if q == 1.0 else {SampledFinite(show_all(), q): 1}


def _pairs(made: PrivacyProfile) -> list[ContinuousStep]:
    """Return the continuous steps of a profile."""
    return [part for part in made.parts if isinstance(part, ContinuousStep)]


def _largest(profiles: Any) -> Largest:
    """Read the largest of several profiles."""
    given = check.items(profiles, "profiles", "profiles")
    return Largest(tuple(PrivacyProfile.from_dict(each) for each in given))


KINDS["largest"] = _largest
