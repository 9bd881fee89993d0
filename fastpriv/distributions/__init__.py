"""Priors: laws over databases, each in its own structure."""

from fastpriv.distributions.base import Distribution
from fastpriv.distributions.dense import Dense
from fastpriv.distributions.estimate import estimate
from fastpriv.distributions.exchangeable import Exchangeable
from fastpriv.distributions.markov import HiddenMarkov, Markov
from fastpriv.distributions.product import Product, Uniform

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
