"""Optimal mechanisms: minimum distortion at a privacy level, and minimum level at a distortion.

Public: ``ratio_programs`` (PD-DP, PD-I), ``leakage_program`` (PML), ``capacity_program``
(individual capacity), ``rate_distortion`` (mutual information), ``inference`` (a secret S),
``worst_case`` (unknown priors or secrets), ``tradeoff`` (curves), ``optimum`` (``fp.solve``),
``closed_forms``.

Inside: ``problem`` (requests and reporting), ``reductions`` (fewer unknowns), ``cone`` (the linear
program), ``engines`` (its solvers), ``certificate`` (proved bounds), ``mixture`` (output
distributions at a slope), ``exact`` (rational arithmetic).
"""
