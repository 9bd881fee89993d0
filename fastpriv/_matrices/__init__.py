"""Algorithms on plain matrices and distributions; nothing here knows a channel or a prior."""
