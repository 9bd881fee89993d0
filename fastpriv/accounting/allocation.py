"""Random allocation: every record is in k of the t batches of an epoch, as in training loops."""

from __future__ import annotations

from fastpriv._core import validation as check
from fastpriv.accounting.profile.composition import RenyiStep
from fastpriv.accounting.profile.discrete import Step
from fastpriv.accounting.profile.losses import ContinuousStep
from fastpriv.accounting.profile.profile import PrivacyProfile
from fastpriv.accounting.profile.relations import REPLACED, as_relation
from fastpriv.accounting.profile.steps.allocation import Selected, one_of
from fastpriv.accounting.profile.steps.finite import CurveStep
from fastpriv.accounting.profile.steps.gaussian import GaussianNoise
from fastpriv.accounting.profile.steps.groups import Replaced, losses_of
from fastpriv.accounting.profile.steps.sampling import one_release
from fastpriv.errors import InvalidInput, short

__all__ = ["random_allocation"]

#: Largest number of batches with noise other than Gaussian.
_BATCHES = 10**6
#: Largest loss of one batch: likelihood ratios are doubles.
_LARGEST_LOSS = 300.0


def random_allocation(
    noise_multiplier: float | PrivacyProfile,
    batches: int,
    epochs: int = 1,
    selected: int = 1,
    *,
    relation: str | None = None,
) -> PrivacyProfile:
    """Return the profile of noise on batches, each record being in k random batches of an epoch.

    In every epoch, each record is assigned to k of the t batches, uniformly and independently of
    the other records and of earlier epochs. Noise is added to the sum of each batch. For k = 1,
    this is also called balls-in-bins sampling. With Gaussian noise, the pair is the mean over
    k-subsets A of N(e_A, sigma^2 I) against N(0, sigma^2 I), where e_A has ones in A, in both
    orders (Chua et al. 2024, arXiv:2403.17673; Feldman and Shenfeld 2025, arXiv:2502.08202).
    Poisson sampling at rate k/t is a different mechanism and often costs more.

    Parameters
    ----------
    noise_multiplier : float or PrivacyProfile
        Standard deviation of Gaussian noise divided by the largest norm of one record's
        contribution, at least 0.1. Or the profile of one step, such as
        ``PrivacyProfile.laplace(2.0)``, for neighbours by "add-or-remove" or "replace-special".
    batches : int
        Number t of batches in an epoch. For Gaussian noise, noise_multiplier times sqrt(t) must be
        at most 1000; otherwise t must be at most 10^6.
    epochs : int
        Number of epochs, each with an independent allocation.
    selected : int
        Number k of batches with the same record, at most t.
    relation : {"add-or-remove", "replace-special", "replace-one"}
        Which databases are neighbours; the default is the relation of the profile. For
        "replace-one", the upper bound removes one record and adds another one. No pair of records
        is known to attain it: with noise 1 and 100 batches, epsilon at 1e-6 is 0.976 to 1.432.

    Returns
    -------
    PrivacyProfile
        Certified lower and upper bounds. For one epoch with k = 1 and Gaussian noise, delta is an
        integral with an error of about 1e-14, so a delta above 1e-9 has at least six digits. For a
        smaller delta, little noise, few batches or other noise, sums of likelihood ratios are
        bounded in convex order. This gives delta to about 1e-3, down to 1e-36. Below, the noise of
        a known batch bounds epsilon from above, and the output of one batch from below. For several
        epochs, the distribution of the likelihood ratio is discretised to some thousand points.
        This gives epsilon to about 1e-5, or 3e-4 with little noise. The cost does not depend on the
        number of epochs.

        For 1 < k < t, the upper bound is a composition of k steps, each with one of floor(t/k) or
        ceil(t/k) batches. The lower bound is a test by a sum of scores. The two differ by some per
        cent: 6.50 to 6.90 for 10 of 100 batches with noise 1. A tighter upper bound for such k is
        open. For k = t, any profile is composed t times.

    Notes
    -----
    A loader that shuffles the records and cuts them into batches of fixed size is not covered: the
    batches of different records depend on each other. The guide on relations and
    ``fastpriv.adapters.opacus`` say which bound holds for such a loader.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.accounting.random_allocation(1.0, 100).delta(0.1)
    Bracket(0.01788232478, 0.01788232479)
    >>> level = fp.accounting.random_allocation(1.0, 100, selected=10).epsilon(1e-6)
    >>> level.lower < level.upper < 1.1 * level.lower
    True
    """
    t = check.integer(batches, "batches", 1)
    times, k = check.integer(epochs, "epochs", 0), check.integer(selected, "selected", 1)
    if k > t:
        raise InvalidInput(
            f"selected must be at most the number of batches, {short(t)}; got {short(k)}."
        )
    if isinstance(noise_multiplier, PrivacyProfile):
        if k == t and relation in (None, noise_multiplier.relation):
            return noise_multiplier.self_compose(t * times)
        step, kind = (
            _single_step(noise_multiplier, t),
            as_relation(relation or noise_multiplier.relation),
        )
    else:
        step, kind = _gaussian_step(noise_multiplier, t), as_relation(relation)
    if step is None:
        return PrivacyProfile({}, kind)
    if k == t and kind == REPLACED and isinstance(step, GaussianNoise):
        return PrivacyProfile.gaussian(step.sigma, relation=kind).self_compose(k * times)
    if k == t:
        one, count = step, k * times
    else:
        one, count = one_of(step, t) if k == 1 else Selected(step, t, k), times
    if kind == REPLACED:
        one = Replaced(one)
    return PrivacyProfile({one: count}, kind)


def _gaussian_step(noise_multiplier: float, t: int) -> Step:
    sigma = check.real(noise_multiplier, "noise_multiplier", least=0.1, most=1e3)
    if t > max((1000.0 / sigma) ** 2, 1.0):
        raise InvalidInput(
            f"noise_multiplier times sqrt(batches) must be at most 1000; got {sigma:g} and "
            f"{short(t)} batches. Use Poisson samples: PrivacyProfile.gaussian(sigma, 1 / batches)."
        )
    return GaussianNoise(sigma)


def _single_step(profile: PrivacyProfile, t: int) -> Step | None:
    """Return the only step of a profile; None if it is empty."""
    if not profile.parts:
        return None
    step = one_release(profile.parts)
    if profile.relation == REPLACED:
        raise InvalidInput(
            "noise_multiplier must be a profile for neighbours by 'add-or-remove' or "
            "'replace-special'; got 'replace-one'. A record of other batches is absent, not "
            "replaced; pass relation='replace-one' to random_allocation."
        )
    if step is None or isinstance(step, RenyiStep | CurveStep):
        raise InvalidInput(
            "noise_multiplier must be a profile of one step with a pair of distributions, such as "
            f"PrivacyProfile.laplace(2.0); got {profile!r}."
        )
    if t > _BATCHES:
        raise InvalidInput(f"batches must be at most {_BATCHES:,}; got {short(t)}.")
    if isinstance(step, GaussianNoise):
        return _gaussian_step(step.sigma, t)
    if isinstance(step, ContinuousStep) and not step.can_be_cut:
        raise InvalidInput(
            "noise_multiplier must be a profile whose outputs can be partitioned; got a mixture "
            "of samples. Use Gaussian or Laplace noise, also on Poisson samples."
        )
    top = max(abs(each) for each in _ends(step))
    if top > _LARGEST_LOSS:
        raise InvalidInput(
            f"noise_multiplier must have losses of at most {_LARGEST_LOSS:g} nats here; got "
            f"{top:g}. Add noise."
        )
    return step


def _ends(step: Step) -> tuple[float, float]:
    """Return the smallest and the largest finite loss of the cells of a step."""
    losses = losses_of(step, False, True, 64)
    return float(losses.losses[0] + losses.shift), float(losses.losses[-1] + losses.shift)
