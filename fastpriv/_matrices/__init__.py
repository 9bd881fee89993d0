"""Algorithms on plain matrices and laws; nothing here knows a channel or a prior."""
