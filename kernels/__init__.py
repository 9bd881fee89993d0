"""Numba kernels: arrays in, arrays or numbers out. They know nothing of priors or channels."""

from .balance import entropy_bound, widest_edge
from .boxes import box_bound
from .cache import writable_folder
from .capacity import (
    are_channels,
    capacities,
    output_law,
    row_divergences,
    two_row_capacities,
    two_row_divergences,
)
from .climb import entropy_climb
from .cliques import list_cliques
from .cone import (
    cone_adjoint,
    cone_ceiling,
    cone_closure,
    cone_factor,
    cone_slack,
    cone_solve,
)
from .convex import divergence, divergence_terms
from .correlation import net_contraction, pair_contractions, reflected, tridiagonal
from .declare import KERNELS
from .descent import add_line_sums, descend, finish_product, multiply, turn
from .hockey_stick import largest_excess, least_slope
from .information import (
    divergence_columns,
    entropy,
    entropy_range,
    factor_information,
    information_rows,
    mutual_information,
    shift_rows,
    symmetric_information,
)
from .leakage import (
    binomial_product,
    chain_log_best,
    chain_log_mass,
    chain_log_sum,
    column_extremes,
    column_gaps,
    column_summary,
)
from .lines import (
    any_below,
    axis_closure,
    axis_log_ratios,
    axis_spreads,
    hamming_cost,
    matrix_spread,
)
from .logs import log_excess_up, log_ratio_up, log_ratios
from .mapping import mapping_direction, mapping_factor
from .markov import (
    chain_extreme_mass,
    chain_odds_range,
    hidden_markov_log_prob,
    markov_best_path,
    markov_counts,
    markov_paths,
)
from .metric import (
    metric_adjoint,
    metric_closure,
    metric_level,
    metric_nearest,
    metric_normal,
    metric_reach,
    metric_slack,
    metric_spanner,
)
from .noise import draw_noise, tilted_sums
from .posterior import posterior_bound
from .records import number_records, remember_record, spell_records
from .reports import draw_bits, draw_subsets
from .sampling import (
    chain_draws,
    guide_tables,
    integer_weights,
    look_up,
    shuffle_segments,
    state_draws,
    state_sums,
    step_by_cells,
    step_by_words,
    tree_draws,
    tree_sums,
)
from .sdpi import sdpi_cells
from .selection import (
    negative_entropies,
    pair_bounds,
    row_distances,
    row_dots,
    sharp_pair_bounds,
)
from .shells import fill_shell, shell_masses
from .stack_information import entropy_shares, information_shares, informations
from .stacks import (
    expected_costs,
    leakage_levels,
    maxima_levels,
    posterior_levels,
    ratio_levels,
    stack_excess,
)
from .sums import add_laws
from .tails import characteristic_powers, tail_excess, tail_tables
from .transform import contiguous, strided
from .type_forms import multiply_linear, substitute_pair
from .vulnerability import bayes_vulnerabilities, gain_vulnerabilities
