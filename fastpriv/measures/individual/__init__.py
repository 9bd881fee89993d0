"""Individual capacity: the most an output can tell about one row, over all priors."""

from fastpriv.measures.individual.capacity import (
    group_capacity,
    individual_capacity,
    largest_leak,
    max_individual_capacity,
)
from fastpriv.measures.individual.cross import cross_capacity

__all__ = [
    "cross_capacity",
    "group_capacity",
    "individual_capacity",
    "largest_leak",
    "max_individual_capacity",
]
