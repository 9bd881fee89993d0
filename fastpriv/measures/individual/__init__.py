"""Individual capacity: the most an output reveals about one record, over all priors.

``capacity``: the public functions, and which algorithm answers. ``adversary``: search over all
priors. ``copies``: one value through randomised response. ``equal_records``: many records through
one kernel. ``prior_sets``: independent records, intervals, boxes and Markov chains. ``convex``:
convex sets of priors.
"""

from fastpriv.measures.individual.capacity import (
    cross_capacity,
    group_capacity,
    individual_capacity,
    largest_leak,
    max_individual_capacity,
)

__all__ = [
    "cross_capacity",
    "group_capacity",
    "individual_capacity",
    "largest_leak",
    "max_individual_capacity",
]
