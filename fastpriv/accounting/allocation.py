"""Random allocation: every person in one batch of an epoch, as training loops do it."""

from __future__ import annotations

from fastpriv._core import validation as check
from fastpriv.accounting.profile.profile import PrivacyProfile
from fastpriv.accounting.profile.relations import ADDED, REPLACED, as_relation
from fastpriv.accounting.profile.steps.allocation import Allocated
from fastpriv.errors import InvalidInput, short

__all__ = ["random_allocation"]


def random_allocation(
    noise_multiplier: float, batches: int, epochs: int = 1, *, relation: str = ADDED
) -> PrivacyProfile:
    """Profile of Gaussian noise on batches, each person being in one of them at random.

    In every epoch a person is put into one of t batches, uniformly and independently of all others,
    and each batch is released with Gaussian noise: t sums, of which the person is in one. The pair
    is mean over i of N(e_i, sigma^2 I) against N(0, sigma^2 I), in both orders (Chua et al. 2024,
    arXiv:2403.17673; Feldman and Shenfeld 2025, arXiv:2502.08202). Poisson samples at the rate 1/t
    are not the same, and often cost more.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation over the norm of what one person contributes, at least 0.1.
    batches : int
        Number t of batches of an epoch; the noise times sqrt(t) is at most 1000.
    epochs : int
        Number of epochs, each with an allocation of its own.
    relation : {"add-or-remove", "replace-special"}
        Which databases are neighbours.

    Returns
    -------
    PrivacyProfile
        Certified on both sides. One epoch is an integral at the level asked for, known to about
        1e-14: a delta above 1e-9 has six digits or more. Below, and where noise is small or batches
        are few, sums of likelihood ratios are bounded in convex order, which tells delta to about
        1e-3 down to 1e-36. For several epochs the law of the likelihood ratio is put on some
        thousand points: epsilon is known to about 1e-5, or 3e-4 with little noise. One to ten
        seconds for each kind of epoch, whatever their number.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.accounting.random_allocation(1.0, 100).delta(0.1)
    Bracket(0.01788232478, 0.01788232479)
    """
    sigma = check.real(noise_multiplier, "noise_multiplier", least=0.1, most=1e3)
    t = check.integer(batches, "batches", 1)
    times, kind = check.integer(epochs, "epochs", 0), as_relation(relation)
    if t > max((1000.0 / sigma) ** 2, 1.0):
        raise InvalidInput(
            f"noise_multiplier times sqrt(batches) must be at most 1000, got {sigma:g} and "
            f"{short(t)} batches; Poisson samples of the rate 1/batches: PrivacyProfile.gaussian"
        )
    if kind == REPLACED:
        raise InvalidInput(
            "no tight pair is known for random allocation with relation='replace-one'; from "
            "'add-or-remove' follows that delta(2 e) is at most (1 + exp(e)) delta(e)"
        )
    if t == 1:
        return PrivacyProfile.gaussian(sigma, relation=kind).self_compose(times)
    return PrivacyProfile({Allocated(sigma, t): times}, kind)
