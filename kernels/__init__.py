"""Numba kernels: arrays in, arrays or numbers out. They know nothing of priors or channels."""

from fastpriv.kernels.balance import entropy_bound, widest_edge
from fastpriv.kernels.boxes import box_bound
from fastpriv.kernels.capacity import (
    are_channels,
    capacities,
    output_law,
    row_divergences,
    two_row_capacities,
    two_row_divergences,
)
from fastpriv.kernels.climb import entropy_climb
from fastpriv.kernels.cliques import list_cliques
from fastpriv.kernels.cone import (
    cone_adjoint,
    cone_ceiling,
    cone_closure,
    cone_factor,
    cone_slack,
    cone_solve,
)
from fastpriv.kernels.convex import divergence
from fastpriv.kernels.correlation import net_contraction, pair_contractions, reflected, tridiagonal
from fastpriv.kernels.declare import KERNELS
from fastpriv.kernels.descent import add_line_sums, descend, finish_product, multiply, turn
from fastpriv.kernels.hockey_stick import largest_excess, least_slope
from fastpriv.kernels.information import (
    divergence_columns,
    entropy,
    entropy_range,
    factor_information,
    information_rows,
    mutual_information,
    shift_rows,
    symmetric_information,
)
from fastpriv.kernels.leakage import (
    binomial_product,
    chain_log_best,
    chain_log_mass,
    chain_log_sum,
    column_extremes,
    column_gaps,
    column_summary,
)
from fastpriv.kernels.lines import (
    any_below,
    axis_closure,
    axis_log_ratios,
    axis_spreads,
    hamming_cost,
    matrix_spread,
)
from fastpriv.kernels.logs import log_excess_up, log_ratio_up, log_ratios
from fastpriv.kernels.mapping import mapping_direction, mapping_factor
from fastpriv.kernels.markov import (
    chain_extreme_mass,
    chain_odds_range,
    hidden_markov_log_prob,
    markov_best_path,
    markov_counts,
    markov_paths,
)
from fastpriv.kernels.metric import (
    metric_adjoint,
    metric_closure,
    metric_level,
    metric_nearest,
    metric_normal,
    metric_reach,
    metric_slack,
    metric_spanner,
)
from fastpriv.kernels.noise import draw_noise, tilted_sums
from fastpriv.kernels.posterior import posterior_bound
from fastpriv.kernels.records import number_records, remember_record, spell_records
from fastpriv.kernels.reports import draw_bits, draw_subsets
from fastpriv.kernels.sampling import (
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
from fastpriv.kernels.sdpi import sdpi_cells
from fastpriv.kernels.selection import (
    negative_entropies,
    pair_bounds,
    row_distances,
    row_dots,
    sharp_pair_bounds,
)
from fastpriv.kernels.shells import fill_shell, shell_masses
from fastpriv.kernels.stack_information import entropy_shares, information_shares, informations
from fastpriv.kernels.stacks import (
    expected_costs,
    leakage_levels,
    maxima_levels,
    posterior_levels,
    ratio_levels,
    stack_excess,
)
from fastpriv.kernels.sums import add_laws
from fastpriv.kernels.tails import characteristic_powers, tail_excess, tail_tables
from fastpriv.kernels.transform import contiguous, strided
from fastpriv.kernels.type_forms import multiply_linear, substitute_pair
from fastpriv.kernels.vulnerability import bayes_vulnerabilities, gain_vulnerabilities

__all__ = ["KERNELS", *KERNELS]
