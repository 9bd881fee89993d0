"""Search for the largest information about one row under an entropy constraint."""
