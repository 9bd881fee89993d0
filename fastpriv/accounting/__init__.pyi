from .allocation import random_allocation
from .calibration import calibrate
from .chain import pml_chain
from .filters import PrivacyFilter, PrivacyOdometer
from .laws import LAWS, Law, compose_levels
from .ledger.ledger import Amendment, Ledger, Receipt
from .profile.profile import PrivacyProfile
from .shuffling import shuffled
from .together import best_of_runs, parallel, partition_selection

__all__ = [
    "LAWS",
    "Amendment",
    "Law",
    "Ledger",
    "PrivacyFilter",
    "PrivacyOdometer",
    "PrivacyProfile",
    "Receipt",
    "best_of_runs",
    "calibrate",
    "compose_levels",
    "parallel",
    "partition_selection",
    "pml_chain",
    "random_allocation",
    "shuffled",
]
