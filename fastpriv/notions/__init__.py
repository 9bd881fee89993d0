"""Notions of privacy: what implies what and how levels combine."""
