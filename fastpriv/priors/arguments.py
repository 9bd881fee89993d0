"""Priors as users give them: objects of the package, or plain vectors."""

from __future__ import annotations

from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv.errors import InvalidInput, short
from fastpriv.priors.base import Distribution
from fastpriv.priors.dense import Dense
from fastpriv.spaces import Space


def as_prior(prior: Distribution | ArrayLike, space: Space | None = None) -> Distribution:
    """Return a prior: the given one, or a vector as a law over the databases of ``space``.

    Without a space a vector is the law of a single row. With one, the prior must be on it.
    """
    if isinstance(prior, Distribution):
        if space is not None and prior.space is not space and prior.space != space:
            raise InvalidInput(
                f"the prior is on {prior.space!r} but the channel on {space!r}; make both on the "
                "same space (for a matrix: Channel(matrix, space=prior.space))"
            )
        return prior
    if space is None:
        try:
            pmf = check.law(prior, "prior")
        except InvalidInput as problem:
            raise InvalidInput(
                "prior must be a Distribution, or a vector with the probability of each value of "
                f"a single row: {problem}"
            ) from None
        return Dense.of(pmf, Space.of((len(pmf),)))
    pmf = check.law(prior, "prior")
    if len(pmf) != space.size:
        raise InvalidInput(
            f"prior has {len(pmf)} entries, but the channel has {short(space.size)} databases"
        )
    return Dense.of(pmf, space)
