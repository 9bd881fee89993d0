"""Structure that channels and priors share: rows that act alone, types and pair types."""
