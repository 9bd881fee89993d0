from ._warm_up import warm_up
from .channels import (
    Channel,
    HammingChannel,
    PosteriorChannel,
    ProductChannel,
    QueryChannel,
    TiltedChannel,
)
from .channels.types import TypeChannel
from .distributions import (
    Dense,
    Distribution,
    Exchangeable,
    HiddenMarkov,
    Markov,
    Product,
    Uniform,
    estimate,
)
from .errors import Infeasible, InvalidInput, SolverFailure, TooLarge
from .measures.capacity import capacity_prior, channel_capacity
from .measures.correlation import (
    contraction_coefficient,
    maximal_correlation,
    sdpi_constant,
)
from .measures.indistinguishability import dp_level, identifiability_level
from .measures.information import distortion, mutual_information
from .results import Bracket, Brackets, Solution
from .spaces import Space, shell_profile
from .tradeoff.closed_form import h, h_inverse
from .tradeoff.curve import TradeoffCurve, privacy_level, tradeoff_curve
from .tradeoff.programs import solve_pd_dp, solve_pd_i, solve_r_pd
from .tradeoff.rate_distortion import RateDistortion, solve_pd_mip

__version__: str

__all__ = [
    "Bracket",
    "Brackets",
    "Channel",
    "Dense",
    "Distribution",
    "Exchangeable",
    "HammingChannel",
    "HiddenMarkov",
    "Infeasible",
    "InvalidInput",
    "Markov",
    "PosteriorChannel",
    "Product",
    "ProductChannel",
    "QueryChannel",
    "RateDistortion",
    "Solution",
    "SolverFailure",
    "Space",
    "TiltedChannel",
    "TooLarge",
    "TradeoffCurve",
    "TypeChannel",
    "Uniform",
    "capacity_prior",
    "channel_capacity",
    "contraction_coefficient",
    "distortion",
    "dp_level",
    "estimate",
    "h",
    "h_inverse",
    "identifiability_level",
    "maximal_correlation",
    "mutual_information",
    "privacy_level",
    "sdpi_constant",
    "shell_profile",
    "solve_pd_dp",
    "solve_pd_i",
    "solve_pd_mip",
    "solve_r_pd",
    "tradeoff_curve",
    "warm_up",
]
