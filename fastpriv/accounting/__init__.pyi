from .chain import pml_chain
from .laws import LAWS, Law, compose_levels
from .ledger import Ledger
from .profile import PrivacyProfile
from .receipt import Receipt

__all__ = [
    "LAWS",
    "Law",
    "Ledger",
    "PrivacyProfile",
    "Receipt",
    "compose_levels",
    "pml_chain",
]
