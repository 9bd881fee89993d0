"""Draws with exactly known probabilities.

``source`` has the random bits, ``thresholds`` distributions as integer weights, ``local`` the
draws of local mechanisms, ``sequential`` outputs that are drawn piece by piece, ``power_law``
integer noise.
"""
