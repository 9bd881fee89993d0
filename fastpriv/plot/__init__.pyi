from .channels import balance, leakage
from .papers import matrix, mean_deviation, noise, relaxation, threshold_query
from .profiles import bayes_risk, composition, profile, renyi, risks, roc, type_two_error
from .results import exact, frequencies, implications, levels, tradeoff

__all__ = [
    "balance",
    "bayes_risk",
    "composition",
    "exact",
    "frequencies",
    "implications",
    "leakage",
    "levels",
    "matrix",
    "mean_deviation",
    "noise",
    "profile",
    "relaxation",
    "renyi",
    "risks",
    "roc",
    "threshold_query",
    "tradeoff",
    "type_two_error",
]
