from .balances import balance
from .curves import tradeoff
from .exact import exact
from .graphs import implications
from .levels import levels
from .outputs import leakage
from .papers import mean_deviation, noise, threshold_query
from .profiles import composition, profile
from .questions import bayes_risk, renyi, roc, type_two_error

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
