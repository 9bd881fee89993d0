from .laws import LAWS, Law, compose_levels, two_data_sets
from .ledger import Ledger, Receipt
from .profile import PrivacyProfile

__all__ = [
    "LAWS",
    "Law",
    "Ledger",
    "PrivacyProfile",
    "Receipt",
    "compose_levels",
    "two_data_sets",
]
