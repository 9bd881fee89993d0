"""Random allocation: every record is in exactly one batch of an epoch, as in training loops."""

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
    """Profile of Gaussian noise on batches, with each record in one random batch per epoch.

    In every epoch, each record is assigned to one of t batches, uniformly and independently of the
    others. Gaussian noise is added to the sum of each batch. The pair is the mean over i of
    N(e_i, sigma^2 I) against N(0, sigma^2 I), with unit vectors e_i, in both orders (Chua et al.
    2024, arXiv:2403.17673; Feldman and Shenfeld 2025, arXiv:2502.08202). Poisson sampling at rate
    1/t is a different mechanism and often costs more.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation divided by the largest norm of one record's contribution, at least 0.1.
    batches : int
        Number t of batches in an epoch; noise_multiplier times sqrt(t) must be at most 1000.
    epochs : int
        Number of epochs, each with an independent allocation.
    relation : {"add-or-remove", "replace-special"}
        Which databases are neighbours.

    Returns
    -------
    PrivacyProfile
        Certified lower and upper bounds. For one epoch, delta is an integral with an error of about
        1e-14, so a delta above 1e-9 has at least six digits. For a smaller delta, little noise or
        few batches, sums of likelihood ratios are bounded in convex order. This gives delta to
        about 1e-3, down to 1e-36. For several epochs, the distribution of the likelihood ratio is
        discretised to some thousand points. This gives epsilon to about 1e-5, or 3e-4 with little
        noise. The cost does not depend on the number of epochs.

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
