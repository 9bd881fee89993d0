from .laws import LAWS, Law, compose_levels, two_data_sets
from .profile import PrivacyProfile

__all__ = [
    "LAWS",
    "Law",
    "PrivacyProfile",
    "compose_levels",
    "two_data_sets",
]
