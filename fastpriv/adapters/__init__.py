"""Profiles and channels in other libraries: dp-accounting, Opacus and OpenDP.

``dp_accounting`` has an accountant and loss distributions, ``dp_events`` the profile of each of its
events, ``opacus`` an accountant, and ``opendp`` measurements and privacy profiles.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach(
    __name__, ["dp_accounting", "dp_events", "opacus", "opendp"]
)
