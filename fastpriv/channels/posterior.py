"""E_i: the mechanism whose posterior, not whose likelihood, is the Hamming kernel."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from fastpriv._core import validation as check
from fastpriv._core.defined import load
from fastpriv._core.rounding import round_up
from fastpriv._core.wide import wide
from fastpriv._matrices.leakage import TINY
from fastpriv.channels.tilted import FEW, TiltedChannel, TiltedProduct
from fastpriv.channels.unmixed import misfit, row_misfit, surely_exists, unmixed, wide_misfit
from fastpriv.errors import Infeasible, TooLarge, described
from fastpriv.priors import Distribution, Markov, Product
from fastpriv.priors.arguments import as_prior
from fastpriv.priors.unmixing import rounding
from fastpriv.results import Bracket

__all__ = ["PosteriorChannel"]


class PosteriorChannel(TiltedChannel):
    """E_i: p(x|y) = e^(-epsilon d(x, y)) / (1 + (m-1) e^-epsilon)^n, for a given prior.

    Optimal for identifiability (Wang-Ying-Zhang 2015, Theorem 1, Lemma 4) and for mutual
    information (Theorem 2) at distortion h(epsilon). With p_Y = R^-1 p the channel is
    W[x, y] = p_Y(y) R[x, y] / p(x): the law p_Y tilted, at home with the prior. Its DP level is
    epsilon + eps_X, its information that of E_d run backwards, from p_Y to p.

    Parameters
    ----------
    prior : Distribution
        Law of the databases.
    epsilon : float
        Identifiability level, at least ``prior.epsilon_tilde()``.

    Raises
    ------
    Infeasible
        Below ``prior.epsilon_tilde()``, which the message names.
    TooLarge
        For a long Markov chain within the bracket of its ``epsilon_tilde()``.

    Examples
    --------
    >>> import fastpriv as fp
    >>> prior = fp.Product([[0.6, 0.4], [0.3, 0.7]])
    >>> channel = fp.PosteriorChannel(prior, 1.0)
    >>> fp.identifiability_level(channel, prior)
    1.0
    """

    def __new__(cls, prior: Distribution, epsilon: float) -> PosteriorChannel:
        """Make a row-by-row channel from independent rows, one without lists from a long chain."""
        if cls is PosteriorChannel and isinstance(prior, Product):
            return object.__new__(PosteriorProduct)
        if cls is PosteriorChannel and isinstance(prior, Markov) and prior.is_long:
            return object.__new__(PosteriorChain)
        return object.__new__(cls)

    def __getnewargs__(self) -> tuple[Distribution, float]:
        return self.prior, self.epsilon

    def __init__(self, prior: Distribution, epsilon: float) -> None:
        self.prior = as_prior(prior)
        least = self.prior.epsilon_tilde()
        if least == math.inf:
            raise Infeasible(
                f"E_i does not exist for {self.prior!r}: some database has probability zero, and "
                "no finite epsilon will do"
            )
        self.epsilon = check.real(epsilon, "epsilon", least=0.0)
        if isinstance(least, Bracket) and least.lower <= self.epsilon < least.upper:
            raise TooLarge(
                f"whether E_i exists at epsilon {described(self.epsilon)} for {self.prior!r} is "
                f"not known: epsilon_tilde lies in {described(least)} and its search needs all "
                "databases; use an epsilon from the upper end on, or fewer rows"
            )
        if self.epsilon < least:
            raise Infeasible(
                f"E_i does not exist at epsilon {described(self.epsilon)} for {self.prior!r}; it "
                f"needs epsilon >= epsilon_tilde = {described(float(least))}"
            )
        self._set(unmixed(self.prior, self.epsilon))

    @classmethod
    def near(cls, prior: Distribution, epsilon: float) -> PosteriorChannel:
        """Build E_i a rounding error below ``epsilon_tilde``, where clipping p_Y is harmless."""
        self = cls.__new__(cls, prior, epsilon)
        self.epsilon, self.prior = epsilon, prior
        self._set(unmixed(prior, epsilon))
        return self

    def definition(self) -> dict[str, Any]:
        return {"prior": self.prior, "epsilon": self.epsilon}

    @classmethod
    def from_definition(cls, given: Mapping[str, Any]) -> PosteriorChannel:
        epsilon = check.real(given["epsilon"], "epsilon", least=0.0)
        prior = load(given["prior"])
        if epsilon >= float(prior.epsilon_tilde()) * (1.0 - 2.0**-30):
            return cls.near(prior, epsilon)
        return cls(prior, epsilon)  # says why not

    @cached_property
    def own_level(self) -> float:
        """Epsilon, or the level of what is drawn where E_i may exist up to rounding only."""
        if self.misfit <= rounding(self.space.n) and surely_exists(self.prior, self.epsilon):
            return self.epsilon
        return self.drawn_level

    @property
    def drawn_level(self) -> float:
        """Bound on the identifiability of the output law as it was rounded to floats.

        p(x|y) is R[x, y] p(x)/(R q)(x), so the level is epsilon and twice the misfit at most. At
        epsilon 0 the output does not depend on x, and the prior's own level remains.
        """
        if self.epsilon == 0.0:
            return self.prior.epsilon_x()
        return round_up(self.epsilon + 2.0 * (self._worst_misfit + self._misfit_error))

    @cached_property
    def _worst_misfit(self) -> float:
        """The misfit, from wide numbers where doubles have lost digits of the laws."""
        if self.prior.log_smallest() > math.log(TINY) or self.space.size > FEW:
            return self.misfit
        laws = self.prior.wide(), self.base.wide()
        return wide_misfit(*laws, self.space.sizes, self.epsilon)

    @property
    def _misfit_error(self) -> float:
        """Bound on the error of the misfit: n sums of positive terms, and a logarithm."""
        return rounding(self.space.n)

    @cached_property
    def misfit(self) -> float:
        """Largest |ln p(x)/(R q)(x)|: the effect of clipping."""
        return misfit(self.prior, self.base.through(self.kernels))

    def __repr__(self) -> str:
        return f"PosteriorChannel({self.prior!r}, epsilon={self.epsilon:g})"


class PosteriorProduct(PosteriorChannel, TiltedProduct, form=True):
    """E_i for independent rows, which acts on every row by itself."""

    @property
    def own_level(self) -> float:
        return self.epsilon

    @property
    def _worst_misfit(self) -> float:
        """Neighbours differ in one row, whose misfit counts."""
        assert isinstance(self.prior, Product)
        assert isinstance(self.base, Product)
        rare = [
            wide_misfit(wide(p), wide(q), (len(p),), self.epsilon)
            for p, q in zip(self.prior.distinct, self.base.distinct, strict=True)
            if p.min() < TINY
        ]
        return max([row_misfit(self.prior, self.base.through(self.kernels)), *rare])

    @property
    def _misfit_error(self) -> float:
        return rounding(1)


class PosteriorChain(PosteriorChannel, form=True):
    """E_i for a Markov chain that is too long for a list of its databases.

    Every output can occur, and under the chain itself every posterior is R. Measures under this
    prior follow from passes along the chain; under another prior they need the list.
    """

    prior: Markov

    @property
    def own_level(self) -> float:
        return self.epsilon

    @property
    def drawn_level(self) -> float:
        """No law is rounded: outputs are drawn along the chain."""
        return self.epsilon

    @property
    def misfit(self) -> float:
        return 0.0

    @property
    def all_values_occur(self) -> bool:
        return True
