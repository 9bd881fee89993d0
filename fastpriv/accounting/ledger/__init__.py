"""Budgets, spends and receipts, in memory or in a file."""
