"""How results are written down: numbers, tables, plain data."""
