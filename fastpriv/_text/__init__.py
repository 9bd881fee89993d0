"""How results are written down: one formatter of numbers, one table, one JSON encoder."""
