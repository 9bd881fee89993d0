"""Random draws with exactly known probabilities."""
