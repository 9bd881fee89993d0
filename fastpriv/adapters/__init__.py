"""Profiles and channels in other libraries: dp-accounting, Opacus and OpenDP.

``dp_accounting`` has an accountant and loss distributions, ``dp_events`` the profile of each of its
events, ``opacus`` an accountant, and ``opendp`` measurements and privacy profiles.
"""
