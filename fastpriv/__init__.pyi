from . import accounting as accounting
from . import gains as gains
from . import mechanisms as mechanisms
from . import notions as notions
from . import plot as plot
from ._core.observing import observe
from ._core.warm_up import warm_up
from .auditing.compare import Comparison, compare
from .auditing.many import audit_many
from .auditing.report import Audit, Implied, Level
from .auditing.run import audit
from .channels import (
    AbstractChannel,
    Channel,
    ColumnsChannel,
    HadamardChannel,
    HammingChannel,
    HashingChannel,
    PosteriorChannel,
    ProductChannel,
    ProjectiveChannel,
    QueryChannel,
    RecordChannel,
    SubsetChannel,
    SupportChannel,
    TiltedChannel,
    UnaryChannel,
)
from .channels.types import TypeChannel
from .design.capacity_program import solve_pd_capacity
from .design.closed_forms import h, h_inverse
from .design.exact.curve import ExactCurve, ExactPiece, exact_curve, hamming_threshold
from .design.exact.solution import ExactSolution
from .design.inference import InferenceSolution, design_mapping, least_distortion, perfect_privacy
from .design.leakage_program import solve_pd_pml
from .design.optimum import Optimum, solve
from .design.rate_distortion import RateDistortion, solve_pd_mip
from .design.ratio_programs import solve_pd_dp, solve_pd_i, solve_r_pd
from .design.tradeoff import TradeoffCurve, privacy_level, tradeoff_curve
from .design.worst_case import design_worst_case, least_capacity, solve_minimax
from .errors import (
    BudgetExceeded,
    EstimateWarning,
    FastprivError,
    GapWarning,
    Infeasible,
    InvalidInput,
    LedgerError,
    SolverFailure,
    TooLarge,
    UnknownName,
)
from .measures.approximate_dp import hockey_stick, hockey_stick_epsilon
from .measures.capacity import capacity_prior, channel_capacity
from .measures.collusion import Collusion, collusion
from .measures.composition import (
    compose,
    composition_bound,
    constrained_composition_bound,
    group_bound,
    pair_datasets,
    two_dataset_bound,
)
from .measures.constrained import balance_function, constrained_capacity
from .measures.contraction import contraction_coefficient
from .measures.correlation import channel_from_correlation, maximal_correlation
from .measures.disclosure import (
    discloses,
    disclosure_threshold,
    lower_entropy_attribute,
    remaining_uncertainty,
    remaining_uncertainty_bound,
    singles_out,
)
from .measures.distortion import distortion
from .measures.dp import dp_level
from .measures.effective import Estimate, effective_entropy, effective_information
from .measures.fano import error_probability_bound
from .measures.gain_capacity import (
    GainCapacity,
    additive_g_capacity,
    additive_gain_capacity,
    g_capacity,
    gain_capacity,
)
from .measures.hyper import Hyper, hyper
from .measures.identifiability import identifiability_level
from .measures.individual import (
    cross_capacity,
    group_capacity,
    individual_capacity,
    max_individual_capacity,
)
from .measures.information import mutual_information
from .measures.joint import Joint
from .measures.leakage import (
    leakage_capacity,
    leakage_factor,
    maximal_leakage,
    strong_dp_level,
    worst_leakage_factor,
)
from .measures.pointwise import (
    conditional_pml,
    information_privacy_level,
    max_information,
    pml,
    pml_level,
    row_pml,
)
from .measures.realised import realised_level
from .measures.records import row_information
from .measures.refinement import Refinement, refines
from .measures.sampled import SampledLeakage, leakage_from_counts, leakage_from_samples
from .measures.sdpi import sdpi_constant
from .measures.symmetry import (
    data_independent_bound,
    is_data_independent,
    is_weakly_symmetric,
)
from .measures.vulnerability import (
    additive_g_leakage,
    g_leakage,
    posterior_vulnerability,
    vulnerability,
)
from .mechanisms.counting import threshold_query_bound, threshold_query_leakage
from .notions.implications import Implications, implications
from .plot.units import in_bits
from .priors import (
    Dense,
    Distribution,
    Exchangeable,
    HiddenMarkov,
    Markov,
    Product,
    Uniform,
    estimate,
)
from .priors.sets import PriorSet
from .priors.shells import shell_profile
from .releasing.frequencies import Frequencies, estimate_frequencies
from .releasing.registry import Deployment
from .releasing.release import Release, ReleaseFile, preview_release, release
from .releasing.report import ReleaseReport
from .results import (
    Adversary,
    Bracket,
    Brackets,
    IndividualCapacity,
    SdpiConstant,
    Solution,
    Witness,
)
from .spaces import Space

__version__: str

__all__ = [
    "AbstractChannel",
    "Adversary",
    "Audit",
    "Bracket",
    "Brackets",
    "BudgetExceeded",
    "Channel",
    "Collusion",
    "ColumnsChannel",
    "Comparison",
    "Dense",
    "Deployment",
    "Distribution",
    "Estimate",
    "EstimateWarning",
    "ExactCurve",
    "ExactPiece",
    "ExactSolution",
    "Exchangeable",
    "FastprivError",
    "Frequencies",
    "GainCapacity",
    "GapWarning",
    "HadamardChannel",
    "HammingChannel",
    "HashingChannel",
    "HiddenMarkov",
    "Hyper",
    "Implications",
    "Implied",
    "IndividualCapacity",
    "Infeasible",
    "InferenceSolution",
    "InvalidInput",
    "Joint",
    "LedgerError",
    "Level",
    "Markov",
    "Optimum",
    "PosteriorChannel",
    "PriorSet",
    "Product",
    "ProductChannel",
    "ProjectiveChannel",
    "QueryChannel",
    "RecordChannel",
    "RateDistortion",
    "Refinement",
    "Release",
    "ReleaseFile",
    "ReleaseReport",
    "SampledLeakage",
    "SdpiConstant",
    "Solution",
    "SolverFailure",
    "Space",
    "SubsetChannel",
    "SupportChannel",
    "TiltedChannel",
    "TooLarge",
    "TradeoffCurve",
    "TypeChannel",
    "UnaryChannel",
    "Uniform",
    "UnknownName",
    "Witness",
    "additive_g_capacity",
    "additive_g_leakage",
    "additive_gain_capacity",
    "audit",
    "audit_many",
    "balance_function",
    "capacity_prior",
    "channel_capacity",
    "channel_from_correlation",
    "collusion",
    "compare",
    "compose",
    "composition_bound",
    "conditional_pml",
    "constrained_capacity",
    "constrained_composition_bound",
    "contraction_coefficient",
    "cross_capacity",
    "data_independent_bound",
    "design_mapping",
    "design_worst_case",
    "discloses",
    "disclosure_threshold",
    "distortion",
    "dp_level",
    "effective_entropy",
    "effective_information",
    "error_probability_bound",
    "estimate",
    "estimate_frequencies",
    "exact_curve",
    "g_capacity",
    "g_leakage",
    "gain_capacity",
    "group_bound",
    "group_capacity",
    "h",
    "hamming_threshold",
    "h_inverse",
    "hockey_stick",
    "hockey_stick_epsilon",
    "hyper",
    "identifiability_level",
    "implications",
    "in_bits",
    "individual_capacity",
    "information_privacy_level",
    "is_data_independent",
    "is_weakly_symmetric",
    "leakage_capacity",
    "leakage_factor",
    "leakage_from_counts",
    "leakage_from_samples",
    "least_capacity",
    "least_distortion",
    "lower_entropy_attribute",
    "max_individual_capacity",
    "max_information",
    "maximal_correlation",
    "maximal_leakage",
    "mutual_information",
    "observe",
    "pair_datasets",
    "perfect_privacy",
    "pml",
    "pml_level",
    "posterior_vulnerability",
    "preview_release",
    "privacy_level",
    "realised_level",
    "refines",
    "release",
    "remaining_uncertainty",
    "remaining_uncertainty_bound",
    "row_information",
    "row_pml",
    "sdpi_constant",
    "shell_profile",
    "singles_out",
    "solve",
    "solve_minimax",
    "solve_pd_capacity",
    "solve_pd_dp",
    "solve_pd_i",
    "solve_pd_mip",
    "solve_pd_pml",
    "solve_r_pd",
    "strong_dp_level",
    "threshold_query_bound",
    "threshold_query_leakage",
    "tradeoff_curve",
    "two_dataset_bound",
    "vulnerability",
    "warm_up",
    "worst_leakage_factor",
]
