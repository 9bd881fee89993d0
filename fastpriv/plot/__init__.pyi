from .channels import balance, cells, leakage
from .papers import matrix, mean_deviation, models, noise, relaxation, threshold_query
from .profiles import bayes_risk, composition, profile, renyi, risks, roc, type_two_error
from .results import exact, frequencies, implications, levels, tradeoff

__all__ = [
    "balance",
    "bayes_risk",
    "cells",
    "composition",
    "exact",
    "frequencies",
    "implications",
    "leakage",
    "levels",
    "matrix",
    "mean_deviation",
    "models",
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
