"""Plain reference implementations, written from the definitions and meant to be read, not fast.

A database is a tuple of rows; flat lists follow C order (row 0 is the most significant digit).
A channel is W[x][y] = p(y|x). Entries are int, float, Fraction or mpf; levels are mpf, in nats.
What several tests need stands here; a module per topic holds the rest. Nothing knows fastpriv.
"""

from mpmath import exp, inf, log, matrix, mp, mpf

from oracles.channels import (
    both,
    e_d_matrix,
    e_i_matrix,
    inverse_output,
    product_matrix,
    query_matrix,
    randomised_response,
    tilted_matrix,
)
from oracles.information import (
    chi_square,
    divergence,
    entropy,
    guessing_error,
    inference_leakage,
    joint_information,
    min_entropy,
    mutual_information,
    output_law,
    secret_channel,
)
from oracles.levels import (
    distortion,
    distortion_metric,
    dp_level,
    h,
    h_inverse,
    hockey_stick,
    identifiability_level,
    maximal_leakage,
    strong_dp_level,
)
from oracles.numbers import exact, floats, log_ratio, normal, num, nums
from oracles.optima import blahut_bounds, capacities, capacity, capacity_bracket, mirror_descent
from oracles.priors import (
    beta_binomial_weights,
    binomial_weights,
    epsilon_hat,
    epsilon_tilde,
    epsilon_x,
    exchangeable_pmf,
    exchangeable_pmf_general,
    markov_pmf,
    product_pmf,
    shell_profile,
    unmix,
)
from oracles.spaces import (
    databases,
    hamming,
    index,
    lines,
    neighbour_pairs,
    neighbours,
    shell,
    shell_size,
)
