from .chain import pml_chain
from .laws import LAWS, Law, compose_levels, two_data_sets
from .profile import PrivacyProfile

__all__ = [
    "LAWS",
    "Law",
    "PrivacyProfile",
    "compose_levels",
    "pml_chain",
    "two_data_sets",
]
