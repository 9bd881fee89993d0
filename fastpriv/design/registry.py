"""The function that finds the best mechanism of each notion.

``PROGRAMS[slug](prior, goal)`` belongs to ``NOTIONS[slug]``: the smallest distortion at level
``goal``, or for "mutual-information" the smallest level at distortion ``goal``.
"""

from __future__ import annotations

from collections.abc import Callable

from fastpriv.design.capacity_program import solve_pd_capacity
from fastpriv.design.leakage_program import solve_pd_pml
from fastpriv.design.rate_distortion import solve_pd_mip
from fastpriv.design.ratio_programs import solve_pd_dp, solve_pd_i
from fastpriv.results import Solution

__all__ = ["PROGRAMS"]

#: The program of each notion, by its slug.
PROGRAMS: dict[str, Callable[..., Solution]] = {
    "dp": solve_pd_dp,
    "individual-capacity": solve_pd_capacity,
    "identifiability": solve_pd_i,
    "mutual-information": solve_pd_mip,
    "pml": solve_pd_pml,
}
