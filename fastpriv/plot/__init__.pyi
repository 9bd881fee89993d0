from .balances import balance
from .curves import tradeoff
from .exact import exact
from .graphs import implications
from .levels import levels
from .outputs import leakage
from .papers import mean_deviation, noise, threshold_query
from .profiles import composition, profile

__all__ = [
    "balance",
    "composition",
    "exact",
    "implications",
    "leakage",
    "levels",
    "mean_deviation",
    "noise",
    "profile",
    "threshold_query",
    "tradeoff",
]
