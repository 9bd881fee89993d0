"""Queries: maps from databases to answers, with or without a list of all databases."""
