"""Pointwise maximal leakage: what one output tells about the database or about one row."""

from fastpriv.measures.pointwise.conditional import conditional_pml
from fastpriv.measures.pointwise.database import pml
from fastpriv.measures.pointwise.levels import (
    information_privacy_level,
    max_information,
    pml_level,
)
from fastpriv.measures.pointwise.row import row_pml

__all__ = [
    "conditional_pml",
    "information_privacy_level",
    "max_information",
    "pml",
    "pml_level",
    "row_pml",
]
