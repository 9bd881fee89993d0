from .allocation import random_allocation
from .calibration import calibrate
from .chain import pml_chain
from .filters import PrivacyFilter, PrivacyOdometer
from .laws import LAWS, Law, compose_levels
from .ledger.ledger import Ledger, Receipt
from .profile.profile import PrivacyProfile
from .shuffling import shuffled

__all__ = [
    "LAWS",
    "Law",
    "Ledger",
    "PrivacyFilter",
    "PrivacyOdometer",
    "PrivacyProfile",
    "Receipt",
    "calibrate",
    "compose_levels",
    "pml_chain",
    "random_allocation",
    "shuffled",
]
