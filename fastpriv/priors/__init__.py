"""Priors: distributions over databases, each in its own structure.

``base`` has the protocol and ``Dense``. ``product``, ``exchangeable`` and ``markov`` have one
structure each. ``unmixing`` finds the levels at which the posterior response exists. ``sums`` has
distributions of sums of scores, ``sets`` sets of priors, ``estimate`` priors from data, and
``shells`` the mass by distance.
"""

from fastpriv.priors.base import Dense, Distribution
from fastpriv.priors.estimate import estimate
from fastpriv.priors.exchangeable import Exchangeable
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
