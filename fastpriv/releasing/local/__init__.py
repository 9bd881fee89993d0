"""Releases whose values become reports of local mechanisms."""
