"""Priors: laws over databases, each in its own structure."""

from fastpriv.priors.base import Distribution
from fastpriv.priors.dense import Dense
from fastpriv.priors.exchangeable import Exchangeable
from fastpriv.priors.fit import estimate
from fastpriv.priors.markov import HiddenMarkov, Markov
from fastpriv.priors.product import Product, Uniform

__all__ = [
    "Dense",
    "Distribution",
    "Exchangeable",
    "HiddenMarkov",
    "Markov",
    "Product",
    "Uniform",
    "estimate",
]
