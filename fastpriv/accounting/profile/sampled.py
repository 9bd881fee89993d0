"""Profiles of mechanisms that read a sample of the people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastpriv._core import validation as check
from fastpriv.accounting.profile.mixtures import Mixtures
from fastpriv.accounting.profile.noise import Noise
from fastpriv.accounting.profile.normal import Normal
from fastpriv.accounting.profile.pairs import Blend, Pair
from fastpriv.accounting.profile.relations import ADDED, REPLACED, amount_of_noise, as_relation
from fastpriv.accounting.profile.samples import (
    one_release,
    poisson_sample,
    replaced_in_sample,
    with_replacement,
)
from fastpriv.errors import InvalidInput, short

if TYPE_CHECKING:
    from typing_extensions import Self

    from fastpriv.accounting.profile.composed import Part

#: Most people that a sample is drawn from: their number is computed with as a double.
_PEOPLE = 10**12

_ONE = "only one release, or Gaussian noise, is sampled from; sample each release by itself"


class Sampled(Noise):
    """Profiles of mechanisms on a sample that is drawn at random, and not shown."""

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
        if cut < 1e-300 or not whole._parts or sigma == 0.0:
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
            Mixtures(pair.sigma, ((1.0, 1.0),)) if isinstance(pair, Normal) else pair
            for pair in pairs
        )
        if cut == 1.0:
            part = Blend(spread[:1], (1.0,), 1e-10, attained)
        else:
            part = Blend(spread, (cut, 1.0 - cut), 1e-10, attained)
        return cls({part: 1}, as_relation(relation))

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
        if q == 1.0 or not self._parts:
            return type(self)(dict(self._parts), self.relation)
        if q == 0.0:
            return type(self)({}, self.relation)
        release = one_release(self._parts)
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
        orders: the lower end. Where a person is replaced, some releases may be of one order and
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
        release = one_release(self._parts)
        if m == 0 or not self._parts:
            return type(self)({}, kind)
        if m == n:
            return type(self)(dict(self._parts), kind)
        part: Part | None = None
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
          of N(k) with chances b_k against N(0), tight; for Laplace noise k counts as shown;
        - "replace-special": at most that of "replace-one".

        Numbers k whose chance is below 1e-24 together count as showing everything.

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
        release = one_release(self._parts)
        if m == 0 or not self._parts:
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
        if self._parts and self.relation != REPLACED:
            raise InvalidInput(
                "a sample of fixed size has the same size for all neighbours; make the step with "
                f"relation='replace-one', not {self.relation!r}"
            )
        return m, n, kind


def _pairs(made: Noise) -> list[Pair]:
    """Return the pairs of Gaussian noise."""
    return [part for part in made._parts if isinstance(part, Pair)]
