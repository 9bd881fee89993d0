"""Helpers of all layers: validation, rounding, threads, HiGHS, files."""
