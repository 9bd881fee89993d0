"""Pointwise maximal leakage: how much one output reveals about the database or one record.

``database``: leakage about the database under one prior. ``record``: about one record.
``conditional``: to an adversary with side information. ``prior_sets``: under the worst prior of a
set; ``convex``: its search over convex sets. ``levels``: the public functions that accept a
prior or a set.
"""

from fastpriv.measures.pointwise.conditional import conditional_pml
from fastpriv.measures.pointwise.database import pml
from fastpriv.measures.pointwise.levels import (
    information_privacy_level,
    max_information,
    pml_level,
    row_pml,
)

__all__ = [
    "conditional_pml",
    "information_privacy_level",
    "max_information",
    "pml",
    "pml_level",
    "row_pml",
]
