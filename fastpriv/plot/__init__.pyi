from .channels import balance, leakage
from .papers import mean_deviation, noise, threshold_query
from .profiles import bayes_risk, composition, profile, renyi, roc, type_two_error
from .results import exact, implications, levels, tradeoff

__all__ = [
    "balance",
    "bayes_risk",
    "composition",
    "exact",
    "implications",
    "leakage",
    "levels",
    "mean_deviation",
    "noise",
    "profile",
    "renyi",
    "roc",
    "threshold_query",
    "tradeoff",
    "type_two_error",
]
