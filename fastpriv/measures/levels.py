"""The function that measures each notion of privacy.

``LEVELS[slug]`` belongs to ``NOTIONS[slug]``. The notion's scope determines its arguments:
``level(channel)`` for "mechanism", ``level(channel, prior)`` for "prior", and ``level(prior)`` for
"facts". Arguments are the same as for the public functions. A notion without an entry gets its
level only from an audit or an implication.

Two slugs with the same function name the same measure: ``LEVELS[a] is LEVELS[b]``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from fastpriv.measures.approximate_dp import hockey_stick_epsilon
from fastpriv.measures.capacity import channel_capacity
from fastpriv.measures.contraction import contraction_coefficient
from fastpriv.measures.correlation import maximal_correlation
from fastpriv.measures.disclosure import disclosure_threshold, singles_out
from fastpriv.measures.distortion import distortion
from fastpriv.measures.dp import dp_level
from fastpriv.measures.identifiability import identifiability_level
from fastpriv.measures.individual import individual_capacity, max_individual_capacity
from fastpriv.measures.information import mutual_information
from fastpriv.measures.leakage import (
    leakage_factor,
    maximal_leakage,
    strong_dp_level,
    worst_leakage_factor,
)
from fastpriv.measures.pointwise import information_privacy_level, max_information, pml_level
from fastpriv.measures.realised import realised_level
from fastpriv.measures.sdpi import sdpi_constant

__all__ = ["LEVELS"]

#: The function of each notion, by its slug.
LEVELS: dict[str, Callable[..., Any]] = {
    # of a mechanism
    "dp": dp_level,
    "approximate-dp": dp_level,
    "approximate-dp-1e-3": partial(hockey_stick_epsilon, delta=1e-3),
    "approximate-dp-1e-6": partial(hockey_stick_epsilon, delta=1e-6),
    "approximate-dp-1e-9": partial(hockey_stick_epsilon, delta=1e-9),
    "realised-dp": realised_level,
    "strong-dp": strong_dp_level,
    "product-row-pml": dp_level,
    "product-row-max-information": dp_level,
    "product-row-information": dp_level,  # an upper bound
    "pml-all-priors": strong_dp_level,
    "max-individual-capacity": max_individual_capacity,
    "maximal-leakage": maximal_leakage,
    "channel-capacity": channel_capacity,
    "individual-capacity": individual_capacity,
    "contraction": contraction_coefficient,
    "singles-out": singles_out,
    # of a mechanism under a prior
    "identifiability": identifiability_level,
    "mutual-information": mutual_information,
    "pml": pml_level,
    "max-information": max_information,
    "information-privacy": information_privacy_level,
    "leakage-factor": leakage_factor,
    "worst-leakage-factor": worst_leakage_factor,
    "distortion": distortion,
    "maximal-correlation": maximal_correlation,
    "sdpi": sdpi_constant,
    # of a prior alone
    "entropy": lambda prior: prior.entropy(),
    "min-entropy": lambda prior: prior.min_entropy(),
    "epsilon-x": lambda prior: prior.epsilon_x(),
    "epsilon-hat": lambda prior: prior.epsilon_hat(),
    "epsilon-tilde": lambda prior: prior.epsilon_tilde(),
    "disclosure-threshold": disclosure_threshold,
}
