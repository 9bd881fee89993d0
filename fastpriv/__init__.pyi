from ._warm_up import warm_up
from .channels import Channel, HammingChannel, PosteriorChannel, ProductChannel, QueryChannel
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
from .measures.indistinguishability import dp_level, identifiability_level
from .measures.information import distortion, mutual_information
from .results import Bracket
from .spaces import Space, shell_profile
from .tradeoff.closed_form import h, h_inverse

__version__: str

__all__ = [
    "Bracket",
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
    "SolverFailure",
    "Space",
    "TooLarge",
    "Uniform",
    "distortion",
    "dp_level",
    "estimate",
    "h",
    "h_inverse",
    "identifiability_level",
    "mutual_information",
    "shell_profile",
    "warm_up",
]
